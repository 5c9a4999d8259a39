#include "lib/net/parse.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LINE_MAX_N 4096

void net_parse_init(struct net_parse *p)
{
    if (!p->head.max)
        xp_buf_init(&p->head, PARSE_HEAD_MAX);
    p->head.n = 0;
    p->head.failed = false;
    p->state = PARSE_HEAD;
    p->n_fields = 0;
    p->code = 0;
    p->keep = false;
    p->left = 0;
    p->piece = p->line_n = 0;
    p->digits = p->extension = p->cr = false;
}

void net_parse_fini(struct net_parse *p)
{
    xp_buf_fini(&p->head);
}

const char *net_parse_field(const struct net_parse *p, const char *name)
{
    for (size_t i = 0; i < p->n_fields; i++)
        if (!strcasecmp(p->fields[i].name, name))
            return p->fields[i].value;
    return NULL;
}

/* --- the head --- */

/* "name: value", cut in place; false: it is none. */
static bool read_field(struct net_parse *p, char *line)
{
    char *colon = strchr(line, ':');
    if (!colon || colon == line || p->n_fields == PARSE_FIELDS_MAX)
        return false;
    *colon = 0;
    if (strpbrk(line, " \t"))
        return false;
    char *value = colon + 1 + strspn(colon + 1, " \t");
    for (char *end = value + strlen(value); end > value && (end[-1] == ' ' || end[-1] == '\t');)
        *--end = 0;
    p->fields[p->n_fields++] = (struct parse_field){line, value};
    return true;
}

static bool read_length(struct net_parse *p, const char *text)
{
    if (!*text || strspn(text, "0123456789") != strlen(text) || strlen(text) > 18)
        return false;
    p->left = strtoull(text, NULL, 10);
    p->state = p->left ? PARSE_LENGTH : PARSE_OVER;
    return true;
}

/* "a, b, c" has "b". */
static bool list_has(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; *at;) {
        at += strspn(at, ", \t");
        size_t len = strcspn(at, ", \t");
        if (len == n && !strncasecmp(at, word, n))
            return true;
        at += len;
    }
    return false;
}

static size_t count_fields(const struct net_parse *p, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_fields; i++)
        n += !strcasecmp(p->fields[i].name, name);
    return n;
}

static bool says_close(const struct net_parse *p)
{
    for (size_t i = 0; i < p->n_fields; i++)
        if (!strcasecmp(p->fields[i].name, "connection") && list_has(p->fields[i].value, "close"))
            return true;
    return false;
}

/* Where the body ends. */
static bool read_framing(struct net_parse *p)
{
    const char *coding = net_parse_field(p, "transfer-encoding");
    const char *length = net_parse_field(p, "content-length");
    if (count_fields(p, "transfer-encoding") + count_fields(p, "content-length") > 1)
        return false;
    p->keep = !says_close(p);
    if (p->code == 204 || p->code == 304) {
        p->state = PARSE_OVER;
        return true;
    }
    if (coding) {
        p->state = PARSE_CHUNK_SIZE;
        return strcasecmp(coding, "chunked") == 0;
    }
    if (length)
        return read_length(p, length);
    p->state = PARSE_TO_THE_END;
    p->keep = false;
    return true;
}

/* All of it is there, with a 0 after it. */
static bool read_head(struct net_parse *p)
{
    char *at = (char *)p->head.p, *next;
    if (strlen(at) != p->head.n - 1 || strncmp(at, "HTTP/1.1 ", 9) != 0)
        return false;
    p->code = (int)strtol(at + 9, NULL, 10);
    if (p->code < 100 || p->code > 999)
        return false;
    for (bool first = true; (next = strstr(at, "\r\n")) != at; at = next + 2, first = false) {
        *next = 0;
        if (strpbrk(at, "\r\n") || (!first && !read_field(p, at)))
            return false;
    }
    if (p->code < 200) { /* another head follows */
        net_parse_init(p);
        return true;
    }
    return read_framing(p);
}

/* How many of the bytes belong to the head; *whole: it ends with them. */
static size_t head_part(const struct net_parse *p, struct xp_span bytes, bool *whole)
{
    static const uint8_t end[] = "\r\n\r\n";
    size_t old = p->head.n < 3 ? p->head.n : 3;
    uint8_t seam[6];
    memcpy(seam, p->head.p ? p->head.p + p->head.n - old : seam, old);
    size_t some = bytes.n < 3 ? bytes.n : 3;
    memcpy(seam + old, bytes.p, some);
    const uint8_t *at = memmem(seam, old + some, end, 4);
    *whole = true;
    if (at)
        return (size_t)(at - seam) + 4 - old;
    at = memmem(bytes.p, bytes.n, end, 4);
    if (at)
        return (size_t)(at - bytes.p) + 4;
    *whole = false;
    return bytes.n;
}

static enum parse_says take_head(struct net_parse *p, struct xp_span *bytes)
{
    bool whole;
    size_t n = head_part(p, *bytes, &whole);
    xp_buf_add(&p->head, bytes->p, n);
    bytes->p += n;
    bytes->n -= n;
    if (whole)
        xp_buf_byte(&p->head, 0);
    if (p->head.failed || (whole && !read_head(p)))
        return PARSE_BROKEN;
    return PARSE_MORE;
}

/* --- chunks --- */

static int digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A byte of the line that says how long the chunk is. */
static bool size_byte(struct net_parse *p, uint8_t c)
{
    if (++p->line_n > LINE_MAX_N)
        return false;
    if (c == '\n') {
        bool any = p->digits;
        p->state = p->left ? PARSE_CHUNK : PARSE_TRAILER;
        p->line_n = 0;
        p->digits = p->extension = false;
        return any;
    }
    if (p->extension)
        return true;
    if (c == ';' || c == ' ') {
        p->extension = true;
        return p->digits;
    }
    int d = digit(c);
    if (d < 0 || p->left >> 56)
        return false;
    p->left = p->left << 4 | (uint64_t)d;
    p->digits = true;
    return true;
}

/* The trailer's lines up to an empty one. */
static bool trailer_byte(struct net_parse *p, uint8_t c)
{
    if (c == '\n') {
        if (p->line_n == 0)
            p->state = PARSE_OVER;
        p->line_n = 0;
    } else if (++p->line_n > LINE_MAX_N) {
        return false;
    }
    return true;
}

/* Lines end with CR LF, and neither is anywhere else. */
static bool framing_byte(struct net_parse *p, uint8_t c)
{
    if ((c == '\n') != p->cr)
        return false;
    p->cr = c == '\r';
    if (p->cr)
        return true;
    switch (p->state) {
    case PARSE_CHUNK_SIZE:
        return size_byte(p, c);
    case PARSE_CHUNK_END:
        if (c == '\n')
            p->state = PARSE_CHUNK_SIZE;
        return c == '\n';
    default:
        return trailer_byte(p, c);
    }
}

/* --- steps --- */

enum parse_says net_parse_step(struct net_parse *p, struct xp_span *bytes)
{
    for (;;) {
        if (p->state == PARSE_OVER)
            return PARSE_DONE;
        if (bytes->n == 0)
            return PARSE_MORE;
        switch (p->state) {
        case PARSE_HEAD:
            if (take_head(p, bytes) == PARSE_BROKEN)
                return PARSE_BROKEN;
            break;
        case PARSE_TO_THE_END:
            p->piece = bytes->n;
            return PARSE_BODY;
        case PARSE_LENGTH:
        case PARSE_CHUNK:
            p->piece = bytes->n < p->left ? bytes->n : (size_t)p->left;
            return PARSE_BODY;
        default:
            if (!framing_byte(p, *bytes->p))
                return PARSE_BROKEN;
            bytes->p++;
            bytes->n--;
        }
    }
}

void net_parse_took(struct net_parse *p, struct xp_span *bytes, size_t n)
{
    bytes->p += n;
    bytes->n -= n;
    p->piece = 0;
    if (p->state == PARSE_TO_THE_END)
        return;
    p->left -= n;
    if (p->left == 0)
        p->state = p->state == PARSE_CHUNK ? PARSE_CHUNK_END : PARSE_OVER;
}

bool net_parse_end(const struct net_parse *p)
{
    return p->state == PARSE_TO_THE_END || p->state == PARSE_OVER;
}
