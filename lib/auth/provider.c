#include "lib/auth/provider.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/net/client.h"

#define SECOND UINT64_C(1000000000)
#define URL_MAX 2048
#define DOCUMENT_MAX JWT_KEYS_MAX_BYTES

/* A view that is being put together, or is in use. */
struct view {
    struct xp_provider_view pub; /* first */
    _Atomic int refs;
};

struct waiter {
    struct waiter *next;
    void (*fn)(void *ctx);
    void *ctx;
};

struct xp_provider {
    struct net_client *net;
    char *issuer, *keys_url;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct view *view;
    struct view *coming; /* NULL: nothing is being fetched */
    struct waiter *waiters;
    uint64_t good_ns, tried_ns; /* when the last fetch that succeeded, that ended, did; 0: none */
    bool fetching, free;
    struct xp_buf body; /* of the call under way */
    bool of_keys;       /* what is being read: the key set, else the discovery document */
    char last[160];     /* the complaint that was logged last */
};

static void *must(void *p)
{
    XP_ASSERT(p);
    return p;
}

/* --- addresses --- */

static bool is_local(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    size_t n = strcspn(host, "/?#");
    if (memchr(host, '@', n))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t m = strlen(names[i]);
        if (strncmp(host, names[i], m) == 0 && strchr(":/?", host[m]))
            return true;
    }
    return false;
}

bool xp_provider_url_ok(const char *url)
{
    if (strlen(url) > URL_MAX)
        return false;
    for (const char *c = url; *c; c++)
        if (*c <= ' ' || *c >= 0x7f || strchr("\"<>\\", *c))
            return false;
    if (strncmp(url, "https://", 8) == 0)
        return url[8] != 0;
    return strncmp(url, "http://", 7) == 0 && is_local(url + 7);
}

/* --- views --- */

void xp_provider_view_unref(const struct xp_provider_view *pub)
{
    struct view *v = (struct view *)pub;
    if (!v || atomic_fetch_sub(&v->refs, 1) != 1)
        return;
    xp_keyset_unref(v->pub.keys);
    free(v->pub.authorize);
    free(v->pub.token);
    free(v->pub.logout);
    free(v);
}

static struct view *view_new(void)
{
    struct view *v = must(calloc(1, sizeof *v));
    atomic_init(&v->refs, 1);
    return v;
}

/* --- the documents --- */

/* An address of the document, copied; NULL when it is not there or not taken. */
static char *address(const json_t *o, const char *field)
{
    const char *s = json_string_value(json_object_get(o, field));
    return s && xp_provider_url_ok(s) ? must(strdup(s)) : NULL;
}

static bool has(const json_t *list, const char *text)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *s = json_string_value(json_array_get(list, i));
        if (s && strcmp(s, text) == 0)
            return true;
    }
    return false;
}

static enum xp_status read_discovery(const struct xp_provider *p, struct view *v, char **keys_url,
                                     struct xp_error *err)
{
    json_t *o = json_loadb((const char *)p->body.p, p->body.n, JSON_REJECT_DUPLICATES, NULL);
    const char *issuer = json_string_value(json_object_get(o, "issuer"));
    const json_t *methods = json_object_get(o, "token_endpoint_auth_methods_supported");
    enum xp_status status = XP_OK;

    if (!issuer || strcmp(issuer, p->issuer) != 0)
        status = xp_fail(err, XP_BAD_REQUEST, 0, "it calls itself another issuer");
    v->pub.authorize = address(o, "authorization_endpoint");
    v->pub.token = address(o, "token_endpoint");
    v->pub.logout = address(o, "end_session_endpoint");
    v->pub.secret_in_body =
        has(methods, "client_secret_post") && !has(methods, "client_secret_basic");
    *keys_url = address(o, "jwks_uri");
    if (status == XP_OK && !*keys_url)
        status = xp_fail(err, XP_BAD_REQUEST, 0, "it tells no jwks_uri that is https");
    json_decref(o);
    return status;
}

/* --- fetching --- */

static bool on_body(void *ctx, struct net_call *call, struct xp_span bytes)
{
    struct xp_provider *p = ctx;
    (void)call;
    xp_buf_span(&p->body, bytes);
    return !p->body.failed;
}

static void on_done(void *ctx, const struct net_answer *a);

static bool start_call(struct xp_provider *p, const char *url, bool of_keys)
{
    static const char *const headers[] = {"accept: application/json", NULL};
    struct net_request r = {.method = "GET",
                            .url = url,
                            .headers = headers,
                            .connect_ms = PROVIDER_WAIT_MS,
                            .total_ms = PROVIDER_WAIT_MS,
                            .ctx = p,
                            .body_fn = on_body,
                            .done = on_done};
    p->of_keys = of_keys;
    xp_buf_fini(&p->body);
    xp_buf_init(&p->body, DOCUMENT_MAX);
    return net_start(p->net, &r) != NULL;
}

/* The end of a fetch, good or not; everyone who waits is called. */
static void end_fetch(struct xp_provider *p, const struct xp_error *err)
{
    pthread_mutex_lock(&p->lock);
    struct view *old = p->coming;
    struct waiter *w = p->waiters;
    p->waiters = NULL;
    p->tried_ns = xp_now_ns();
    if (err->status == XP_OK) {
        old = p->view;
        p->view = p->coming;
        p->good_ns = p->tried_ns;
        p->last[0] = 0;
    } else if (strcmp(p->last, err->text) != 0) {
        snprintf(p->last, sizeof p->last, "%s", err->text);
        xp_log(XP_LOG_WARN, "auth", "the identity provider %s: %s", p->issuer, err->text);
    }
    p->coming = NULL;
    pthread_mutex_unlock(&p->lock);
    xp_provider_view_unref(old ? &old->pub : NULL);
    while (w) {
        struct waiter *next = w->next;
        w->fn(w->ctx);
        free(w);
        w = next;
    }
    pthread_mutex_lock(&p->lock);
    p->fetching = false;
    pthread_cond_broadcast(&p->idle);
    pthread_mutex_unlock(&p->lock);
}

static void on_done(void *ctx, const struct net_answer *a)
{
    struct xp_provider *p = ctx;
    struct xp_error err = {0};
    char *keys_url = NULL;
    enum xp_status status = XP_OK;

    if (a->status != XP_OK)
        status = xp_fail(&err, XP_IO, 0, "no answer: %.120s", a->why);
    else if (a->code != 200)
        status = xp_fail(&err, XP_IO, 0, "its answer is %d", a->code);
    else if (p->of_keys)
        status = xp_keyset_parse(xp_buf_all(&p->body), &p->coming->pub.keys, &err);
    else
        status = read_discovery(p, p->coming, &keys_url, &err);
    if (status == XP_OK && keys_url && !start_call(p, keys_url, true))
        status = xp_fail(&err, XP_IO, 0, "its keys cannot be asked for");
    if (status != XP_OK || !keys_url)
        end_fetch(p, &err);
    free(keys_url);
}

/* Under the lock: it is set that a fetch is under way. */
static bool may_fetch(struct xp_provider *p, uint64_t pause_s)
{
    uint64_t now = xp_now_ns();
    if (p->free || p->fetching || (p->tried_ns && now - p->tried_ns < PROVIDER_RETRY_S * SECOND) ||
        (p->good_ns && now - p->good_ns < pause_s * SECOND))
        return false;
    p->coming = view_new();
    return p->fetching = true;
}

static void fetch(struct xp_provider *p)
{
    char url[URL_MAX + 64];
    struct xp_error err = {0};
    size_t n = strlen(p->issuer);
    while (n && p->issuer[n - 1] == '/')
        n--;
    snprintf(url, sizeof url, "%.*s/.well-known/openid-configuration", (int)n, p->issuer);
    if (!start_call(p, p->keys_url ? p->keys_url : url, p->keys_url != NULL)) {
        xp_fail(&err, XP_IO, 0, "it cannot be asked");
        end_fetch(p, &err);
    }
}

const struct xp_provider_view *xp_provider_view(struct xp_provider *p)
{
    pthread_mutex_lock(&p->lock);
    struct view *v = p->view;
    if (v)
        atomic_fetch_add(&v->refs, 1);
    bool start = v && !p->coming && may_fetch(p, PROVIDER_FRESH_S);
    pthread_mutex_unlock(&p->lock);
    if (start)
        fetch(p);
    return v ? &v->pub : NULL;
}

bool xp_provider_ask(struct xp_provider *p, void (*fn)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&p->lock);
    bool start = !p->coming && may_fetch(p, PROVIDER_AGAIN_S);
    bool wait = p->coming != NULL;
    if (wait) {
        struct waiter *w = must(malloc(sizeof *w));
        *w = (struct waiter){p->waiters, fn, ctx};
        p->waiters = w;
    }
    pthread_mutex_unlock(&p->lock);
    if (start)
        fetch(p);
    return wait;
}

/* --- life --- */

enum xp_status xp_provider_new(struct net_client *net, const char *issuer, const char *keys_url,
                               struct xp_provider **out, struct xp_error *err)
{
    const char *url = keys_url ? keys_url : issuer;
    if (!xp_provider_url_ok(url))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "%.120s is no https address (http is for this machine)", url);
    struct xp_provider *p = must(calloc(1, sizeof *p));
    p->net = net;
    p->issuer = must(strdup(issuer));
    p->keys_url = keys_url ? must(strdup(keys_url)) : NULL;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->idle, NULL);
    xp_buf_init(&p->body, DOCUMENT_MAX);
    *out = p;
    return XP_OK;
}

void xp_provider_free(struct xp_provider *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->free = true;
    while (p->fetching)
        pthread_cond_wait(&p->idle, &p->lock);
    pthread_mutex_unlock(&p->lock);
    xp_provider_view_unref(p->view ? &p->view->pub : NULL);
    xp_buf_fini(&p->body);
    pthread_cond_destroy(&p->idle);
    pthread_mutex_destroy(&p->lock);
    free(p->keys_url);
    free(p->issuer);
    free(p);
}
