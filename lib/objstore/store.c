#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/objstore/objstore_int.h"

#define EACH_THREADS 31

const char *xp_key_shorten(const char *key, struct xp_key_text *t)
{
    size_t n = strlen(key);
    if (n < sizeof t->s)
        snprintf(t->s, sizeof t->s, "%s", key);
    else
        snprintf(t->s, sizeof t->s, "...%s", key + n - (sizeof t->s - 4));
    return t->s;
}

char *xp_store_join(const char *prefix, const char *name)
{
    size_t np = strlen(prefix), nn = strlen(name);
    char *key = malloc(np + nn + 1);
    if (!key)
        return NULL;
    memcpy(key, prefix, np);
    memcpy(key + np, name, nn + 1);
    return key;
}

/* --- keys --- */

static enum xp_status check_part(const char *key, const char *part, size_t n, struct xp_error *err)
{
    struct xp_key_text t;
    if (n == 0)
        return xp_fail(err, XP_BAD_REQUEST, 0, "\"%s\" is no key: it has an empty part",
                       xp_key_shorten(key, &t));
    if (n == 2 && part[0] == '.' && part[1] == '.')
        return xp_fail(err, XP_DENIED, 0, "\"%s\" leads outside: \"..\" is not allowed",
                       xp_key_shorten(key, &t));
    if (n == 1 && part[0] == '.')
        return xp_fail(err, XP_BAD_REQUEST, 0, "\"%s\" is no key: it has a \".\" part",
                       xp_key_shorten(key, &t));
    return XP_OK;
}

/* Checks the parts of key[0..n). */
static enum xp_status check_parts(const char *key, size_t n, struct xp_error *err)
{
    struct xp_key_text t;
    if (n > XP_KEY_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0, "a key of %zu bytes is too long (limit %d)", n,
                       XP_KEY_MAX);
    if (key[0] == '/')
        return xp_fail(err, XP_DENIED, 0, "\"%s\" leads outside: keys are relative",
                       xp_key_shorten(key, &t));
    size_t from = 0;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && key[i] != '/')
            continue;
        XP_TRY(check_part(key, key + from, i - from, err));
        from = i + 1;
    }
    return XP_OK;
}

static enum xp_status check_key(const char *key, struct xp_error *err)
{
    return check_parts(key, strlen(key), err);
}

static enum xp_status check_prefix(const char *prefix, struct xp_error *err)
{
    struct xp_key_text t;
    size_t n = strlen(prefix);
    if (n == 0)
        return XP_OK;
    if (prefix[n - 1] != '/')
        return xp_fail(err, XP_BAD_REQUEST, 0, "\"%s\" is no prefix: it must end in '/'",
                       xp_key_shorten(prefix, &t));
    if (n == 1)
        return xp_fail(err, XP_DENIED, 0, "\"/\" leads outside: keys are relative");
    return check_parts(prefix, n - 1, err);
}

bool xp_store_key_ok(const char *key)
{
    return check_key(key, NULL) == XP_OK;
}

bool xp_store_prefix_ok(const char *prefix)
{
    return check_prefix(prefix, NULL) == XP_OK;
}

/* --- pages --- */

bool xp_store_page_add(struct xp_store_page *page, const char *prefix, const char *name,
                       const struct xp_object *what)
{
    if ((page->n & (page->n - 1)) == 0) { /* full at each power of two, and at 0 */
        size_t cap = page->n ? page->n * 2 : 1;
        struct xp_object *items = realloc(page->items, cap * sizeof *items);
        if (!items)
            return false;
        page->items = items;
    }
    struct xp_object *o = &page->items[page->n];
    *o = *what;
    o->key = xp_store_join(prefix, name);
    if (!o->key)
        return false;
    page->n++;
    return true;
}

void xp_store_page_fini(struct xp_store_page *page)
{
    for (size_t i = 0; i < page->n; i++)
        free(page->items[i].key);
    free(page->items);
    free(page->next);
    *page = (struct xp_store_page){0};
}

/* --- stores --- */

void xp_store_free(struct xp_store *s)
{
    if (!s)
        return;
    free(s->name);
    free(s->label);
    s->ops->free(s);
}

const char *xp_store_name(const struct xp_store *s)
{
    return s->name;
}

const char *xp_store_label(const struct xp_store *s)
{
    return s->label;
}

bool xp_store_is_file(const struct xp_store *s)
{
    return s->is_file;
}

bool xp_store_is_remote(const struct xp_store *s)
{
    return s->ops->parallel > 1;
}

enum xp_status xp_store_locate(struct xp_store *s, const char *path, char **prefix,
                               struct xp_error *err)
{
    *prefix = NULL;
    return s->ops->locate(s, path, prefix, err);
}

enum xp_status xp_store_list(struct xp_store *s, const char *prefix, bool delimiter,
                             const char *token, size_t max, struct xp_store_page *page,
                             struct xp_error *err)
{
    *page = (struct xp_store_page){0};
    XP_TRY(check_prefix(prefix, err));
    if (max < 1 || max > XP_LIST_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0, "a page holds 1 to %d items, not %zu", XP_LIST_MAX,
                       max);
    /* A token is the last key of the page before. */
    if (token && strncmp(token, prefix, strlen(prefix)) != 0)
        return xp_fail(err, XP_BAD_REQUEST, 0, "the page token belongs to another listing");
    enum xp_status status = s->ops->list(s, prefix, delimiter, token, max, page, err);
    if (status != XP_OK)
        xp_store_page_fini(page);
    return status;
}

/* --- several at a time --- */

static _Thread_local uint32_t patience_ms;

void xp_store_set_patience(uint32_t ms)
{
    patience_ms = ms;
}

uint32_t xp_store_patience(void)
{
    return patience_ms;
}

struct each {
    struct xp_store *store;
    uint32_t patience_ms;
    size_t n;
    _Atomic size_t next;
    void (*one)(struct each *e, size_t i);
    union {
        const char *const *prefixes;
        const struct xp_object *objects;
    };
    union {
        struct xp_store_page *pages;
        struct xp_buf *bodies;
    };
    struct xp_error *errs;
};

static void *do_some(void *ctx)
{
    struct each *e = ctx;
    size_t i;
    patience_ms = e->patience_ms;
    while ((i = atomic_fetch_add(&e->next, 1)) < e->n) {
        e->errs[i] = (struct xp_error){0};
        e->one(e, i);
    }
    return NULL;
}

/* Calls wait for the network and little else, so that threads which live for these calls only do
 * well: some 30 us each, to a round trip of milliseconds. */
static void do_each(struct each *e)
{
    pthread_t threads[EACH_THREADS];
    size_t want = e->store->ops->parallel > 1 ? (size_t)e->store->ops->parallel : 1, started = 0;
    if (want > e->n)
        want = e->n;
    e->patience_ms = patience_ms;
    while (started + 1 < want && started < EACH_THREADS &&
           pthread_create(&threads[started], NULL, do_some, e) == 0)
        started++;
    do_some(e);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

static void list_one(struct each *e, size_t i)
{
    xp_store_list(e->store, e->prefixes[i], true, NULL, XP_LIST_MAX, &e->pages[i], &e->errs[i]);
}

void xp_store_list_each(struct xp_store *s, const char *const *prefixes, size_t n,
                        struct xp_store_page *pages, struct xp_error *errs)
{
    do_each(&(struct each){
        .store = s, .n = n, .one = list_one, .prefixes = prefixes, .pages = pages, .errs = errs});
}

static void read_one(struct each *e, size_t i)
{
    const struct xp_object *o = &e->objects[i];
    struct xp_buf *body = &e->bodies[i];
    struct xp_error *err = &e->errs[i];
    struct xp_reader *r = NULL;
    size_t got = 0, most = body->max;

    if (xp_store_open_sized(e->store, o->key, o->generation, o->size, &r, err) != XP_OK)
        return;
    uint64_t size = xp_reader_size(r);
    uint8_t *to = size && size <= most ? xp_buf_room(body, (size_t)size) : NULL;
    if (size > most)
        xp_fail(err, XP_TOO_LARGE, 0, "the object has more than %zu bytes", most);
    else if (size && !to)
        xp_fail(err, XP_BUSY, 0, "out of memory");
    else if (xp_reader_read(r, 0, to, (size_t)size, &got, err) == XP_OK)
        body->n = got;
    xp_reader_close(r);
}

void xp_store_read_each(struct xp_store *s, const struct xp_object *objects, size_t n, size_t max,
                        struct xp_buf *bodies, struct xp_error *errs)
{
    for (size_t i = 0; i < n; i++)
        xp_buf_init(&bodies[i], max);
    do_each(&(struct each){
        .store = s, .n = n, .one = read_one, .objects = objects, .bodies = bodies, .errs = errs});
}

enum xp_status xp_store_stat(struct xp_store *s, const char *key, struct xp_object *out,
                             struct xp_error *err)
{
    *out = (struct xp_object){0};
    XP_TRY(check_key(key, err));
    return s->ops->stat(s, key, out, err);
}

enum xp_status xp_store_open(struct xp_store *s, const char *key, uint64_t generation,
                             struct xp_reader **out, struct xp_error *err)
{
    *out = NULL;
    XP_TRY(check_key(key, err));
    return s->ops->open(s, key, generation, out, err);
}

enum xp_status xp_store_open_sized(struct xp_store *s, const char *key, uint64_t generation,
                                   uint64_t size, struct xp_reader **out, struct xp_error *err)
{
    *out = NULL;
    XP_TRY(check_key(key, err));
    if (s->ops->open_sized && generation)
        return s->ops->open_sized(s, key, generation, size, out, err);
    return s->ops->open(s, key, generation, out, err);
}

enum xp_status xp_store_put_if(struct xp_store *s, const char *key, struct xp_span body,
                               uint64_t if_generation, uint64_t *generation, struct xp_error *err)
{
    *generation = 0;
    XP_TRY(check_key(key, err));
    return s->ops->put_if(s, key, body, if_generation, generation, err);
}

/* --- readers --- */

uint64_t xp_reader_size(const struct xp_reader *r)
{
    return r->size;
}

uint64_t xp_reader_generation(const struct xp_reader *r)
{
    return r->generation;
}

enum xp_status xp_reader_read(struct xp_reader *r, uint64_t off, void *buf, size_t n, size_t *got,
                              struct xp_error *err)
{
    *got = 0;
    if (off >= r->size || n == 0)
        return XP_OK;
    if (n > r->size - off)
        n = (size_t)(r->size - off);
    XP_TRY(r->ops->read(r, off, buf, n, err));
    *got = n;
    return XP_OK;
}

void xp_reader_close(struct xp_reader *r)
{
    if (r)
        r->ops->close(r);
}

void xp_reader_plan(struct xp_reader *r, const struct xp_range *ranges, size_t n)
{
    if (r->ops->plan)
        r->ops->plan(r, ranges, n);
}

bool xp_reader_ready(struct xp_reader *r, uint64_t off, size_t n, void (*wake)(void *ctx),
                     void *ctx)
{
    if (!r->ops->ready || off >= r->size || n == 0)
        return true;
    if (n > r->size - off)
        n = (size_t)(r->size - off);
    return r->ops->ready(r, off, n, wake, ctx);
}

void xp_reader_cancel(struct xp_reader *r)
{
    if (r->ops->cancel)
        r->ops->cancel(r);
}

/* --- bytes in memory --- */

struct mem_reader {
    struct xp_reader base;
    struct xp_span bytes;
};

static enum xp_status mem_read(struct xp_reader *r, uint64_t off, void *buf, size_t n,
                               struct xp_error *err)
{
    (void)err;
    memcpy(buf, ((struct mem_reader *)r)->bytes.p + off, n);
    return XP_OK;
}

static void mem_close(struct xp_reader *r)
{
    free(r);
}

static const struct xp_reader_ops mem_ops = {.read = mem_read, .close = mem_close};

enum xp_status xp_reader_open_mem(struct xp_span bytes, uint64_t generation, struct xp_reader **out,
                                  struct xp_error *err)
{
    struct mem_reader *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    m->base = (struct xp_reader){&mem_ops, bytes.n, generation};
    m->bytes = bytes;
    *out = &m->base;
    return XP_OK;
}
