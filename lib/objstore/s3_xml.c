/* What S3 says, in XML: a reader of elements and their text, which is all that its lists hold.
 * Attributes, comments and processing instructions are stepped over; nothing is nested deeper than
 * DEPTH, and there is no DTD. */
#include <stdlib.h>

#include "lib/base/hash.h"
#include "lib/objstore/s3_int.h"

#define DEPTH 8
#define TEXT_MAX 8192

struct xml {
    const char *p, *end;
    struct xp_span open[DEPTH];
    int depth;
    bool bad;
    struct xp_buf text; /* of the element that was closed last */
};

/* &amp; and the like, from p (behind '&'). Returns behind the ';' or NULL. */
static const char *entity(const char *p, const char *end, struct xp_buf *out)
{
    static const struct {
        const char *name;
        char c;
    } known[] = {{"amp;", '&'}, {"lt;", '<'}, {"gt;", '>'}, {"quot;", '"'}, {"apos;", '\''}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = strlen(known[i].name);
        if ((size_t)(end - p) >= n && memcmp(p, known[i].name, n) == 0) {
            xp_buf_byte(out, (uint8_t)known[i].c);
            return p + n;
        }
    }
    if (end - p < 3 || *p != '#')
        return NULL;
    bool hex = p[1] == 'x';
    unsigned long v = 0;
    const char *q = p + 1 + hex;
    for (; q < end && *q != ';' && v < 0x110000; q++) {
        int d = *q >= '0' && *q <= '9'          ? *q - '0'
                : hex && *q >= 'a' && *q <= 'f' ? *q - 'a' + 10
                : hex && *q >= 'A' && *q <= 'F' ? *q - 'A' + 10
                                                : -1;
        if (d < 0)
            return NULL;
        v = v * (hex ? 16 : 10) + (unsigned long)d;
    }
    if (q == end || !v || v >= 0x80) /* lists are asked for with encoded names: all is ASCII */
        return NULL;
    xp_buf_byte(out, (uint8_t)v);
    return q + 1;
}

/* Text up to the next '<'. */
static void read_text(struct xml *x)
{
    while (x->p < x->end && *x->p != '<' && !x->bad) {
        if (*x->p != '&') {
            xp_buf_byte(&x->text, (uint8_t)*x->p++);
            continue;
        }
        const char *after = entity(x->p + 1, x->end, &x->text);
        x->bad = !after;
        x->p = after ? after : x->end;
    }
    x->bad |= x->text.failed;
}

static bool name_end(char c)
{
    return c == '>' || c == '/' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* True: an element was closed; its name is *name, its path x->open[0..depth), its text x->text. */
static bool xml_next(struct xml *x, struct xp_span *name)
{
    while (!x->bad) {
        read_text(x);
        if (x->p >= x->end || x->bad)
            return false;
        const char *gt = memchr(x->p, '>', (size_t)(x->end - x->p));
        const char *at = x->p + 1;
        x->bad = !gt;
        if (x->bad)
            return false;
        x->p = gt + 1;
        if (*at == '?' || *at == '!')
            continue;
        bool close = *at == '/', empty = gt[-1] == '/';
        at += close;
        const char *e = at;
        while (e < gt && !name_end(*e))
            e++;
        *name = xp_span_of(at, (size_t)(e - at));
        if (close) {
            x->bad = !x->depth || !xp_span_eq(x->open[x->depth - 1], *name);
            x->depth -= !x->bad;
            return !x->bad;
        }
        x->text.n = 0;
        if (empty)
            return true;
        x->bad = x->depth == DEPTH || !name->n;
        if (!x->bad)
            x->open[x->depth++] = *name;
    }
    return false;
}

static bool is(struct xp_span s, const char *name)
{
    return xp_span_eq(s, xp_span_str(name));
}

/* --- the list --- */

struct lists {
    const struct bucket *b;
    const char *prefix;
    struct xp_store_page *page;
    bool encoded, truncated, oom;
    char *next, *key;
    struct xp_object item;
    bool sized;
};

static char *take_text(struct xml *x)
{
    char *s = malloc(x->text.n + 1);
    if (!s)
        return NULL;
    if (x->text.n)
        memcpy(s, x->text.p, x->text.n);
    s[x->text.n] = 0;
    x->text.n = 0;
    return strlen(s) < TEXT_MAX ? s : (free(s), NULL);
}

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* In place; '+' is a space, as in forms. A name with a NUL byte ends there and is then no match. */
static void percent_decode(char *s)
{
    char *to = s;
    for (; *s; s++) {
        if (*s == '%' && digit(s[1]) >= 0 && digit(s[2]) >= 0) {
            *to++ = (char)(digit(s[1]) * 16 + digit(s[2]));
            s += 2;
        } else {
            *to++ = *s == '+' ? ' ' : *s;
        }
    }
    *to = 0;
}

uint64_t s3_generation(const char *etag)
{
    size_t n = strlen(etag);
    if (n >= 2 && strncmp(etag, "W/", 2) == 0)
        etag += 2, n -= 2;
    if (n >= 2 && etag[0] == '"' && etag[n - 1] == '"')
        etag++, n -= 2;
    uint64_t h = xp_fnv(XP_FNV_INIT, xp_span_of(etag, n));
    return h ? h : 1;
}

static void set_text(char **field, struct xml *x, struct lists *l)
{
    free(*field);
    *field = take_text(x);
    l->oom |= !*field;
}

static void of_object(struct lists *l, struct xml *x, struct xp_span name)
{
    char *text = NULL;
    if (is(name, "Key")) {
        set_text(&l->key, x, l);
        return;
    }
    text = take_text(x);
    if (!text)
        l->oom = true;
    else if (is(name, "Size"))
        l->sized = bucket_u64(text, &l->item.size);
    else if (is(name, "LastModified"))
        l->item.mtime_ms = bucket_time_ms(text);
    else if (is(name, "ETag"))
        l->item.generation = s3_generation(text);
    free(text);
}

static void end_entry(struct lists *l, struct xml *x, bool folder)
{
    size_t n = l->key ? strlen(l->key) : 0;
    if (n && l->encoded)
        percent_decode(l->key);
    l->item.prefix = folder;
    if (!n || (!folder && (!l->sized || !l->item.generation)) || (folder && l->key[n - 1] != '/'))
        x->bad = true;
    else if (!bucket_page_add(l->b, l->prefix, l->key, &l->item, l->page))
        l->oom = true;
    free(l->key);
    l->key = NULL;
    l->item = (struct xp_object){0};
    l->sized = false;
}

static void on_element(struct lists *l, struct xml *x, struct xp_span name)
{
    bool top = x->depth == 1;
    if (x->depth == 2 && is(x->open[1], "Contents"))
        of_object(l, x, name);
    else if (x->depth == 2 && is(x->open[1], "CommonPrefixes") && is(name, "Prefix"))
        set_text(&l->key, x, l);
    else if (top && is(name, "Contents"))
        end_entry(l, x, false);
    else if (top && is(name, "CommonPrefixes"))
        end_entry(l, x, true);
    else if (top && is(name, "EncodingType"))
        l->encoded = is(xp_buf_all(&x->text), "url");
    else if (top && is(name, "IsTruncated"))
        l->truncated = is(xp_buf_all(&x->text), "true");
    else if (top && is(name, "NextContinuationToken"))
        set_text(&l->next, x, l);
}

/* Whether names are encoded is said somewhere, not always before them. */
static bool says_encoded(struct xp_span body)
{
    return xp_span_has(body, XP_SPAN_LIT("<EncodingType>url<"));
}

enum xp_status s3_parse_list(const struct bucket *b, const char *prefix, struct xp_span body,
                             struct xp_store_page *page, struct xp_error *err)
{
    struct xml x = {(const char *)body.p, (const char *)body.p + body.n, .depth = 0};
    struct lists l = {.b = b, .prefix = prefix, .page = page, .encoded = says_encoded(body)};
    struct xp_span name = {0};
    bool over = false;
    xp_buf_init(&x.text, TEXT_MAX);
    while (!over && !l.oom && xml_next(&x, &name)) {
        over = x.depth == 0;
        if (!over)
            on_element(&l, &x, name);
    }
    bool ok = over && !x.bad && is(name, "ListBucketResult");
    xp_buf_fini(&x.text);
    free(l.key);
    if (ok && l.truncated && l.next && *l.next) {
        page->next = l.next;
        l.next = NULL;
    }
    free(l.next);
    if (l.oom)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    return ok ? XP_OK
              : xp_fail(err, XP_IO, 0,
                        "the store's answer cannot be understood: it is no list of objects");
}
