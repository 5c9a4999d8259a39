#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "lib/objstore/bucket_int.h"
#include "lib/objstore/count.h"

#define CALL_NS UINT64_C(20000000000) /* a small call and its repetitions */
#define ATTEMPT_MS 10000
#define CONNECT_MS 5000
#define LIST_BYTES ((size_t)16 << 20)
#define STAT_BYTES ((size_t)256 << 10)
#define MEMORY_DEFAULT ((size_t)64 << 20)
#define PARALLEL 32

/* --- one request --- */

void ask_header(struct ask *a, const char *fmt, ...)
{
    char *line = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&line, fmt, ap);
    va_end(ap);
    XP_ASSERT(a->n_headers < ASK_HEADERS);
    if (n < 0) {
        a->failed = true;
        return;
    }
    a->headers[a->n_headers++] = line;
}

void ask_fini(struct ask *a)
{
    for (size_t i = 0; i < a->n_headers; i++) {
        explicit_bzero(a->headers[i], strlen(a->headers[i])); /* one of them may be a token */
        free(a->headers[i]);
    }
    free(a->url);
    free(a->own_body);
    *a = (struct ask){0};
}

uint64_t bucket_random(struct bucket *b)
{
    return xp_hash_u64(atomic_fetch_add(&b->calls, 1) ^ xp_now_ns());
}

char *bucket_name_of(const struct bucket *b, const char *key)
{
    return xp_store_join(b->root, key);
}

/* --- what went wrong --- */

static const char *doing(enum bucket_op op)
{
    static const char *const words[] = {"list", "look at", "read", "write"};
    return words[op];
}

/* The right that the store's words name ("... does not have storage.objects.get access ..."), or
 * the one that the call needs. */
static void missing_right(struct bucket *b, enum bucket_op op, struct xp_span body, char out[64])
{
    const char *word = "storage.";
    const uint8_t *p = body.n ? memmem(body.p, body.n, word, strlen(word)) : NULL;
    size_t n = 0;
    while (p && p + n < body.p + body.n && n < 60 &&
           ((p[n] >= 'a' && p[n] <= 'z') || (p[n] >= 'A' && p[n] <= 'Z') || p[n] == '.'))
        n++;
    while (n && p[n - 1] == '.')
        n--;
    if (n > strlen("storage.objects"))
        snprintf(out, 64, "%.*s", (int)n, (const char *)p);
    else
        snprintf(out, 64, "%s", b->kind->permission(op));
}

/* "gs://bucket/root/key", cut in the middle of what has no room. */
struct place {
    char s[160];
};
static const char *place_of(const struct bucket *b, const char *key, struct place *p)
{
    char head[96];
    struct xp_key_text t;
    snprintf(head, sizeof head, "%s://%.70s/", b->kind->scheme, b->bucket);
    size_t room = sizeof p->s - strlen(head) - 1, nr = strlen(b->root), nk = strlen(key);
    if (nr + nk <= room)
        snprintf(p->s, sizeof p->s, "%s%s%s", head, b->root, key);
    else
        snprintf(p->s, sizeof p->s, "%s...%.*s", head, (int)room - 3,
                 nk > room - 3 ? key + nk - (room - 3) : xp_key_shorten(key, &t));
    return p->s;
}

enum xp_status bucket_fail(struct bucket *b, enum bucket_op op, const char *key, int code,
                           struct xp_span body, struct xp_error *err)
{
    struct place at;
    char right[64];
    place_of(b, key, &at);
    switch (code) {
    case 401:
    case 403:
        missing_right(b, op, body, right);
        return xp_fail(err, XP_DENIED, 0, "cannot %s %s: HTTP %d, %s is missing", doing(op), at.s,
                       code, right);
    case 404:
        if (op == BUCKET_LIST)
            return xp_fail(err, XP_NOT_FOUND, 0, "there is no bucket %s://%.70s (HTTP 404)",
                           b->kind->scheme, b->bucket);
        return xp_fail(err, XP_NOT_FOUND, 0, "there is no object %s (HTTP 404)", at.s);
    case 304:
    case 409:
    case 412:
        return xp_fail(err, XP_STALE, 0, "%s is another object by now (HTTP %d)", at.s, code);
    default:
        return xp_fail(err, XP_IO, 0, "cannot %s %s: HTTP %d", doing(op), at.s, code);
    }
}

enum xp_status bucket_fail_net(struct bucket *b, enum bucket_op op, const char *key,
                               enum xp_status status, const char *why, struct xp_error *err)
{
    struct place at;
    return xp_fail(err, status, 0, "cannot %s %s: %.60s", doing(op), place_of(b, key, &at), why);
}

/* --- small calls --- */

static void sleep_ms(int64_t ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static const enum xp_store_call kinds[] = {[BUCKET_LIST] = XP_CALL_LIST,
                                           [BUCKET_STAT] = XP_CALL_STAT,
                                           [BUCKET_READ] = XP_CALL_READ,
                                           [BUCKET_PUT] = XP_CALL_WRITE};

static enum xp_status attempt(struct bucket *b, const struct bucket_call *c,
                              struct net_reply *reply, struct xp_error *err)
{
    struct ask a = {.method = "GET"};
    enum xp_status status = c->make(b, c->ctx, &a, err);
    if (status == XP_OK && a.failed)
        status = xp_fail(err, XP_BUSY, 0, "out of memory");
    if (status != XP_OK) {
        ask_fini(&a);
        xp_buf_init(&reply->body, 0);
        xp_buf_init(&reply->headers, 0);
        reply->code = -1; /* not asked: no other attempt will be better */
        return status;
    }
    uint32_t most = xp_store_patience();
    struct net_request r = {
        .method = a.method,
        .url = a.url,
        .headers = (const char *const *)a.headers,
        .body = a.body,
        .connect_ms = most && most < CONNECT_MS ? most : CONNECT_MS,
        /* uploads at 4 MB/s */
        .total_ms = most && most < ATTEMPT_MS ? most : ATTEMPT_MS + (uint32_t)(a.body.n / 4096),
        .connections = &store_connections,
    };
    uint64_t began = xp_now_ns();
    status = net_fetch(b->net, &r, c->max, reply, err);
    store_count_call(kinds[c->op], status, reply->code, xp_now_ns() - began);
    store_count_bytes(reply->body.n, reply->code / 100 == 2 ? a.body.n : 0);
    ask_fini(&a);
    return status;
}

/* XP_OK: the reply is what was asked for. */
static enum xp_status judge(struct bucket *b, const struct bucket_call *c, enum xp_status status,
                            const struct net_reply *reply, struct xp_error *err)
{
    if (status != XP_OK) {
        char why[sizeof err->text];
        if (reply->code < 0)
            return status;
        snprintf(why, sizeof why, "%s", err->text);
        return bucket_fail_net(b, c->op, c->key, status, why, err);
    }
    if (reply->code / 100 == 2 || (c->also && reply->code == c->also))
        return XP_OK;
    return bucket_fail(b, c->op, c->key, reply->code, xp_buf_all(&reply->body), err);
}

/* Milliseconds until the call is made again, -1: it is not. */
static int64_t wait_before_next(struct bucket *b, struct retry *retry, enum xp_status net,
                                const struct net_reply *reply, bool *refreshed,
                                struct xp_error *why)
{
    if (reply->code == 401 && !*refreshed) {
        *refreshed = true;
        return b->kind->refresh(b) ? 0 : -1;
    }
    if (reply->code < 0 || !retry_may_pass(net, reply->code))
        return -1;
    char *after = net_reply_header(reply, "retry-after");
    int64_t asked = retry_after_ms(after);
    int64_t ms = retry_delay_ms(retry, &b->retries, asked, bucket_random(b), xp_now_ns());
    xp_error_retry(why, retry_later_ms(retry, asked));
    free(after);
    return ms;
}

enum xp_status bucket_call(struct bucket *b, const struct bucket_call *c, struct net_reply *reply,
                           struct xp_error *err)
{
    uint64_t most = xp_store_patience() * UINT64_C(1000000);
    struct retry retry = {.deadline_ns = xp_now_ns() + (most ? most : CALL_NS)};
    struct xp_error why = {0};
    bool refreshed = false;
    for (;;) {
        enum xp_status net = attempt(b, c, reply, &why);
        enum xp_status status = judge(b, c, net, reply, &why);
        if (status == XP_OK) {
            retry_succeeded(&b->retries);
            atomic_store(&b->away, false);
            return XP_OK;
        }
        int64_t ms = wait_before_next(b, &retry, net, reply, &refreshed, &why);
        if (most && ms > 0 && atomic_load(&b->away))
            ms = -1;
        if (ms < 0) {
            if (reply->code >= 0 && retry_may_pass(net, reply->code))
                atomic_store(&b->away, true);
            if (err)
                *err = why;
            return status;
        }
        xp_log(XP_LOG_DEBUG, "bucket", "%s; again in %lld ms", why.text, (long long)ms);
        store_count_retry(kinds[c->op]);
        net_reply_fini(reply);
        sleep_ms(ms);
    }
}

enum xp_status bucket_call_once(struct bucket *b, const struct bucket_call *c,
                                struct net_reply *reply, struct xp_error *err)
{
    struct xp_error own;
    err = err ? err : &own;
    return judge(b, c, attempt(b, c, reply, err), reply, err);
}

void bucket_pause(struct bucket *b, int n)
{
    struct retry r = {.deadline_ns = UINT64_MAX, .attempts = (unsigned)n - 1};
    store_count_retry(XP_CALL_WRITE);
    sleep_ms(retry_delay_ms(&r, &b->retries, 0, bucket_random(b), xp_now_ns()));
}

/* --- list --- */

bool bucket_page_add(const struct bucket *b, const char *prefix, const char *name,
                     const struct xp_object *what, struct xp_store_page *page)
{
    size_t root = strlen(b->root);
    if (strncmp(name, prefix, strlen(prefix)) != 0 || strncmp(name, b->root, root) != 0)
        return true;
    if (!(what->prefix ? xp_store_prefix_ok(name + root) && name[root]
                       : xp_store_key_ok(name + root)))
        return true;
    return xp_store_page_add(page, "", name + root, what);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct xp_object *)a)->key, ((const struct xp_object *)b)->key);
}

static enum xp_status make_list(struct bucket *b, void *ctx, struct ask *a, struct xp_error *err)
{
    return b->kind->list(b, ctx, a, err);
}

static enum xp_status ask_list(struct bucket *b, struct list_ask *l, const char *key,
                               struct xp_store_page *page, struct xp_error *err)
{
    struct net_reply reply;
    struct bucket_call c = {BUCKET_LIST, key, make_list, l, LIST_BYTES, 0};
    enum xp_status status = bucket_call(b, &c, &reply, err);
    if (status == XP_OK)
        status = b->kind->list_answer(b, l, xp_buf_all(&reply.body), page, err);
    net_reply_fini(&reply);
    if (status == XP_OK && page->n)
        qsort(page->items, page->n, sizeof *page->items, by_key);
    return status;
}

/* store.c expects tokens that begin with the prefix they belong to. */
static enum xp_status bucket_list(struct xp_store *s, const char *prefix, bool delimiter,
                                  const char *token, size_t max, struct xp_store_page *page,
                                  struct xp_error *err)
{
    struct bucket *b = (struct bucket *)s;
    char *whole = bucket_name_of(b, prefix);
    struct list_ask l = {whole, delimiter, token ? token + strlen(prefix) : NULL, max};
    if (!whole)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    enum xp_status status = ask_list(b, &l, prefix, page, err);
    free(whole);
    if (status == XP_OK && page->next) {
        char *next = xp_store_join(prefix, page->next);
        free(page->next);
        page->next = next;
        if (!next)
            return xp_fail(err, XP_BUSY, 0, "out of memory");
    }
    return status;
}

/* --- stat --- */

struct named {
    char *name;
};

static enum xp_status make_stat(struct bucket *b, void *ctx, struct ask *a, struct xp_error *err)
{
    return b->kind->stat(b, ((struct named *)ctx)->name, a, err);
}

static enum xp_status bucket_stat(struct xp_store *s, const char *key, struct xp_object *out,
                                  struct xp_error *err)
{
    struct bucket *b = (struct bucket *)s;
    struct named n = {bucket_name_of(b, key)};
    struct net_reply reply;
    struct bucket_call c = {BUCKET_STAT, key, make_stat, &n, STAT_BYTES, 0};
    if (!n.name)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    enum xp_status status = bucket_call(b, &c, &reply, err);
    if (status == XP_OK)
        status = b->kind->stat_answer(b, &reply, out, err);
    net_reply_fini(&reply);
    free(n.name);
    if (status == XP_OK && !(out->key = strdup(key)))
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    return status;
}

/* --- put --- */

static enum xp_status bucket_put_if(struct xp_store *s, const char *key, struct xp_span body,
                                    uint64_t if_generation, uint64_t *generation,
                                    struct xp_error *err)
{
    struct bucket *b = (struct bucket *)s;
    struct xp_key_text t;
    if (!b->writable)
        return xp_fail(err, XP_DENIED, 0, "\"%s\" was not written: %.80s is open for reading only",
                       xp_key_shorten(key, &t), b->base.name);
    return b->kind->put(b, key, body, if_generation, generation, err);
}

/* --- paths people write --- */

/* The rest of path below this store's own address, without slashes around it; NULL: elsewhere. */
static char *rest_of(const struct bucket *b, const char *path)
{
    struct bucket_url u;
    char *rest = NULL;
    if (!bucket_is_url(path) || bucket_url_parse(path, &u, NULL) != XP_OK)
        return NULL;
    size_t n = strlen(b->root);
    if (strcmp(u.scheme, b->kind->scheme) == 0 && strcmp(u.bucket, b->bucket) == 0 &&
        strncmp(u.root, b->root, n) == 0)
        rest = strdup(u.root + n);
    bucket_url_fini(&u);
    return rest;
}

static enum xp_status bucket_locate(struct xp_store *s, const char *path, char **prefix,
                                    struct xp_error *err)
{
    struct bucket *b = (struct bucket *)s;
    struct xp_store_page page;
    struct xp_key_text t;
    char *rest = rest_of(b, path);
    if (!rest)
        return xp_fail(err, XP_DENIED, 0, "\"%s\" is outside of the configured locations",
                       xp_key_shorten(path, &t));
    enum xp_status status = xp_store_list(s, rest, true, NULL, 1, &page, err);
    if (status == XP_OK && !page.n && *rest)
        status =
            xp_fail(err, XP_NOT_FOUND, 0, "there is no folder \"%s\"", xp_key_shorten(path, &t));
    if (status == XP_OK)
        *prefix = rest;
    else
        free(rest);
    xp_store_page_fini(&page);
    return status;
}

/* --- the store --- */

static void bucket_free(struct xp_store *s)
{
    struct bucket *b = (struct bucket *)s;
    if (b->net)
        bucket_readers_end(b);
    b->kind->free(b);
    net_client_close(b->net);
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->changed);
    free(b->bucket);
    free(b->root);
    free(b->endpoint);
    free(b);
}

static const struct xp_store_ops bucket_ops = {
    .free = bucket_free,
    .locate = bucket_locate,
    .list = bucket_list,
    .stat = bucket_stat,
    .open = bucket_open,
    .open_sized = bucket_open_sized,
    .put_if = bucket_put_if,
    .parallel = PARALLEL,
};

/* The last part of gs://bucket/a/b/, as a title. */
static char *label_of(const struct bucket_url *u)
{
    size_t n = strlen(u->root);
    if (!n)
        return strdup(u->bucket);
    const char *from = u->root + --n;
    while (from > u->root && from[-1] != '/')
        from--;
    return strndup(from, (size_t)(u->root + n - from));
}

static struct bucket *bucket_new(const char *url, struct bucket_url *u)
{
    struct bucket *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->base.ops = &bucket_ops;
    b->kind = strcmp(u->scheme, "gs") == 0 ? &gcs_kind : &s3_kind;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    retry_budget_init(&b->retries);
    b->base.name = strdup(url);
    b->base.label = label_of(u);
    b->bucket = u->bucket;
    b->root = u->root;
    *u = (struct bucket_url){0};
    if (b->base.name && b->base.label)
        return b;
    xp_store_free(&b->base);
    return NULL;
}

static struct xp_bucket_options defaults;

void xp_store_set_bucket_defaults(const struct xp_bucket_options *o)
{
    defaults = *o;
}

bool xp_store_is_bucket(const char *path)
{
    return bucket_is_url(path);
}

enum xp_status xp_store_open_bucket(const char *url, const struct xp_bucket_options *o,
                                    struct xp_store **out, struct xp_error *err)
{
    struct bucket_url u;
    *out = NULL;
    o = o ? o : &defaults;
    if (!bucket_is_url(url))
        return xp_fail(err, XP_BAD_REQUEST, 0, "\"%.120s\" does not begin with gs:// or s3://",
                       url);
    XP_TRY(bucket_url_parse(url, &u, err));
    struct bucket *b = bucket_new(url, &u);
    bucket_url_fini(&u);
    if (!b)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    b->writable = o->writable;
    b->anonymous = o->anonymous;
    b->memory_max = o->memory ? o->memory : MEMORY_DEFAULT;
    b->latency_ns = 20000000; /* until something was seen */
    b->bytes_per_s = 50000000;
    enum xp_status status = b->kind->open(b, o, err);
    if (status != XP_OK) {
        xp_store_free(&b->base);
        return status;
    }
    b->net = net_client_open();
    *out = &b->base;
    return XP_OK;
}
