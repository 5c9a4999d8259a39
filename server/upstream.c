#include "server/upstream.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "lib/cluster/members.h"
#include "lib/net/client.h"
#include "server/rpc.h"

#define CONNECT_MS 1000
#define ANSWER_MS 600000 /* a load of a large profile before the first byte */
#define HELLO_MS 1000
#define LOOK_MS 250               /* how often asks under way are looked at */
#define PATIENCE_NS 1000000000ull /* an ask this old makes us say hello */
#define SICK_NS 3000000000ull     /* how long one that failed is asked last */
#define SICK_MAX 256

struct sick {
    uint64_t name; /* hash */
    uint64_t until_ns;
};

struct upstream {
    struct net_client *net;
    struct xp_members *members;
    const struct xp_keyring *keys;
    pthread_mutex_t lock; /* asks, sick, stop */
    pthread_cond_t wake;
    pthread_t monitor;
    struct upstream_feed *asks;
    struct sick sick[SICK_MAX];
    bool stop;
    _Atomic int n_asks, n_hellos;
    _Atomic uint64_t asked, retries, failed;
};

/* One request under way. `lock` orders the attempt that runs against whoever wants to end it. */
struct upstream_feed {
    struct upstream *u;
    struct upstream_feed *prev, *next;
    shard_answer_fn fn;
    const struct upstream_stream *stream;
    void *ctx;
    void *streaming; /* what begin returned: the head is out, no other shard can be asked */
    struct xp_buf message;
    const atomic_bool *cancel;
    bool gzip;
    struct xp_ring *ring;
    uint32_t ranks[UPSTREAM_TRIES];
    size_t n, at;
    pthread_mutex_t lock;
    struct net_call *call;
    struct xp_buf body;
    uint64_t since_ns, hello_ns;
    bool move_on; /* the attempt was ended because the shard hangs */
    struct xp_error last;
};

/* --- who failed lately --- */

static uint64_t name_of(const struct xp_ring *ring, uint32_t i)
{
    return xp_fnv(XP_FNV_INIT, xp_span_str(xp_ring_member(ring, i)->name));
}

static bool is_sick(struct upstream *u, uint64_t name)
{
    const struct sick *s = &u->sick[name % SICK_MAX];
    return s->name == name && s->until_ns > xp_now_ns();
}

static void set_sick(struct upstream *u, uint64_t name, bool sick)
{
    pthread_mutex_lock(&u->lock);
    struct sick *s = &u->sick[name % SICK_MAX];
    if (sick)
        *s = (struct sick){name, xp_now_ns() + SICK_NS};
    else if (s->name == name)
        s->until_ns = 0;
    pthread_mutex_unlock(&u->lock);
}

/* The ranks, those that failed lately last. */
static void choose(struct upstream_feed *ask, uint64_t key)
{
    uint32_t all[UPSTREAM_TRIES];
    size_t n = xp_ring_rank(ask->ring, key, all, UPSTREAM_TRIES);
    pthread_mutex_lock(&ask->u->lock);
    for (int sick = 0; sick < 2; sick++)
        for (size_t i = 0; i < n; i++)
            if (is_sick(ask->u, name_of(ask->ring, all[i])) == (sick == 1))
                ask->ranks[ask->n++] = all[i];
    pthread_mutex_unlock(&ask->u->lock);
}

static uint64_t key_of(const struct shard_request *req)
{
    if (req->nobjects == 0)
        return 0;
    const struct shard_object *o = &req->objects[0];
    struct xp_span key = xp_span_str(o->key);
    const uint8_t *slash = key.n ? memrchr(key.p, '/', key.n) : NULL;
    if (req->nobjects > 1)
        key.n = slash ? (size_t)(slash - key.p) : 0;
    struct xp_span parts[] = {xp_span_str(xp_store_name(o->store)), key};
    return xp_ring_key(parts, 2);
}

/* --- the end of an ask --- */

static void unlink_ask(struct upstream_feed *ask)
{
    struct upstream *u = ask->u;
    pthread_mutex_lock(&u->lock);
    if (ask->prev)
        ask->prev->next = ask->next;
    else if (u->asks == ask)
        u->asks = ask->next;
    if (ask->next)
        ask->next->prev = ask->prev;
    pthread_mutex_unlock(&u->lock);
}

static void free_ask(struct upstream_feed *ask)
{
    struct upstream *u = ask->u;
    xp_buf_fini(&ask->message);
    xp_buf_fini(&ask->body);
    xp_ring_unref(ask->ring);
    pthread_mutex_destroy(&ask->lock);
    free(ask);
    atomic_fetch_sub(&u->n_asks, 1);
}

static void end_ask(struct upstream_feed *ask, struct shard_answer *answer)
{
    unlink_ask(ask);
    ask->fn(ask->ctx, answer);
    free_ask(ask);
}

static void fail_ask(struct upstream_feed *ask)
{
    struct shard_answer answer = {.error = ask->last};
    if (ask->last.status != XP_CANCELLED)
        atomic_fetch_add(&ask->u->failed, 1);
    end_ask(ask, &answer);
}

/* --- an attempt --- */

static enum xp_status status_named(const char *code)
{
    for (int i = 0; i < XP_STATUS_COUNT; i++)
        if (!strcmp(xp_status_code((enum xp_status)i), code))
            return (enum xp_status)i;
    return XP_INTERNAL; /* of a newer version */
}

static uint64_t number(const char *text, int base)
{
    return text ? strtoull(text, NULL, base) : 0;
}

/* All of an answer but its body. */
static void read_head(struct net_call *call, struct shard_answer *answer)
{
    *answer = (struct shard_answer){.version = number(net_header(call, "xprofd-version"), 16)};
    answer->content_type = rpc_content_type(xp_span_str(net_header(call, "content-type")));
    answer->encoded = net_header(call, "content-encoding") != NULL;
    answer->volatile_answer = net_header(call, "xprofd-volatile") != NULL;
}

/* What the shard said is an answer, good or not. */
static void take_answer(struct upstream_feed *ask, struct net_call *call, const char *code)
{
    struct shard_answer answer = {0};
    size_t n;

    if (strcmp(code, "ok") != 0) {
        uint64_t offset = number(net_header(call, "xprofd-offset"), 10);
        xp_fail(&answer.error, status_named(code), offset, "%.*s", (int)ask->body.n,
                ask->body.n ? (const char *)ask->body.p : "");
        end_ask(ask, &answer);
        return;
    }
    read_head(call, &answer);
    uint8_t *p = xp_buf_take(&ask->body, &n);
    answer.body = xp_blob_new(p, n);
    end_ask(ask, &answer);
}

/* Whether the answer is a good one that will be larger than what is held: by its length, or, as the
 * shard inflates for clients without gzip, by what has come. */
static bool is_large(struct upstream_feed *ask, struct net_call *call, size_t more, size_t *length)
{
    const char *code = net_header(call, "xprofd-status");
    const char *said = net_header(call, "content-length");
    *length = said ? (size_t)number(said, 10) : SIZE_MAX;
    if (net_code(call) != 200 || !code || strcmp(code, "ok") != 0)
        return false;
    return (said ? *length : ask->body.n + more) > UPSTREAM_HOLD;
}

static void begin_stream(struct upstream_feed *ask, struct net_call *call, size_t length)
{
    struct shard_answer head;
    read_head(call, &head);
    ask->streaming = ask->stream->begin(ask->ctx, &head, length, ask);
    if (ask->body.n)
        ask->stream->push(ask->streaming, xp_buf_all(&ask->body));
    xp_buf_fini(&ask->body);
}

static bool on_body(void *ctx, struct net_call *call, struct xp_span bytes)
{
    struct upstream_feed *ask = ctx;
    size_t length;
    if (ask->stream && !ask->streaming && is_large(ask, call, bytes.n, &length))
        begin_stream(ask, call, length);
    if (!ask->streaming) {
        xp_buf_span(&ask->body, bytes);
        return !ask->body.failed;
    }
    if (ask->stream->push(ask->streaming, bytes))
        return true;
    net_pause(call);
    return false;
}

static void attempt(struct upstream_feed *ask);

static void next_rank(struct upstream_feed *ask)
{
    if (ask->cancel && atomic_load(ask->cancel)) {
        ask->last = (struct xp_error){.status = XP_CANCELLED};
        fail_ask(ask);
        return;
    }
    if (++ask->at >= ask->n) {
        fail_ask(ask);
        return;
    }
    atomic_fetch_add(&ask->u->retries, 1);
    attempt(ask);
}

static void on_done(void *ctx, const struct net_answer *a)
{
    struct upstream_feed *ask = ctx;
    uint32_t member = ask->ranks[ask->at];
    const char *who = xp_ring_member(ask->ring, member)->name;

    pthread_mutex_lock(&ask->lock);
    ask->call = NULL;
    bool hung = ask->move_on;
    pthread_mutex_unlock(&ask->lock);
    if (ask->streaming) {
        unlink_ask(ask);
        ask->stream->end(ask->streaming, a->status == XP_OK);
        free_ask(ask);
        return;
    }
    const char *code =
        a->status == XP_OK && a->code == 200 ? net_header(a->call, "xprofd-status") : NULL;
    if (code && strcmp(code, "busy") != 0) {
        take_answer(ask, a->call, code);
        return;
    }
    if (code) {
        xp_fail(&ask->last, XP_BUSY, 0, "%.*s", (int)ask->body.n,
                ask->body.n ? (const char *)ask->body.p : "");
    } else if (ask->body.failed) {
        xp_fail(&ask->last, XP_TOO_LARGE, 0, "the answer is too large");
    } else if (a->status == XP_OK) {
        xp_fail(&ask->last, XP_INTERNAL, 0, "shard %s answered with %d", who, a->code);
    } else {
        set_sick(ask->u, name_of(ask->ring, member), true);
        xp_fail(&ask->last, XP_BUSY, 0, "shard %s: %s", who, hung ? "hangs" : a->why);
    }
    next_rank(ask);
}

/* Starts the attempt at ranks[at]. */
static void attempt(struct upstream_feed *ask)
{
    const struct upstream *u = ask->u;
    const struct xp_ring_member *m = xp_ring_member(ask->ring, ask->ranks[ask->at]);
    char url[512], auth[SIGN_TEXT_MAX + 32], sign[SIGN_TEXT_MAX];
    const char *headers[4] = {"content-type: application/x-protobuf"};
    size_t n = 1;

    snprintf(url, sizeof url, "http://%s" RPC_ASK_PATH, m->address);
    if (u->keys) {
        xp_sign(u->keys, time(NULL), XP_SPAN_LIT(RPC_ASK_PATH), xp_buf_all(&ask->message), sign);
        snprintf(auth, sizeof auth, RPC_SIGN_HEADER ": %s", sign);
        headers[n++] = auth;
    }
    if (ask->gzip)
        headers[n++] = "accept-encoding: gzip";
    struct net_request r = {.method = "POST",
                            .url = url,
                            .headers = headers,
                            .body = xp_buf_all(&ask->message),
                            .connect_ms = CONNECT_MS,
                            .stall_ms = ANSWER_MS,
                            .direct = true,
                            .ctx = ask,
                            .body_fn = on_body,
                            .done = on_done};
    xp_buf_fini(&ask->body);
    xp_buf_init(&ask->body, UPSTREAM_ANSWER_MAX);
    pthread_mutex_lock(&ask->lock);
    ask->since_ns = xp_now_ns();
    ask->move_on = false;
    ask->call = net_start(u->net, &r);
    bool started = ask->call != NULL;
    pthread_mutex_unlock(&ask->lock);
    if (!started) {
        xp_fail(&ask->last, XP_INTERNAL, 0, "shard %s cannot be asked", m->name);
        next_rank(ask);
    }
}

void upstream_resume(struct upstream_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    if (feed->call)
        net_resume(feed->call);
    pthread_mutex_unlock(&feed->lock);
}

void upstream_stop(struct upstream_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    if (feed->call)
        net_cancel(feed->call);
    pthread_mutex_unlock(&feed->lock);
}

void upstream_call(struct upstream *u, const struct shard_request *req, shard_answer_fn fn,
                   const struct upstream_stream *stream, void *ctx)
{
    struct upstream_feed *ask = calloc(1, sizeof *ask);
    XP_ASSERT(ask);
    ask->u = u;
    ask->fn = fn;
    ask->stream = stream;
    ask->ctx = ctx;
    ask->cancel = req->cancel;
    ask->gzip = req->gzip;
    ask->ring = xp_members_ring(u->members);
    pthread_mutex_init(&ask->lock, NULL);
    xp_buf_init(&ask->message, RPC_ASK_MAX);
    xp_buf_init(&ask->body, UPSTREAM_ANSWER_MAX);
    atomic_fetch_add(&u->asked, 1);
    atomic_fetch_add(&u->n_asks, 1);
    rpc_write(req, &ask->message);
    if (ask->message.failed) {
        xp_fail(&ask->last, XP_TOO_LARGE, 0, "the request names too many hosts");
        fail_ask(ask);
        return;
    }
    choose(ask, key_of(req));
    if (ask->n == 0) {
        xp_fail(&ask->last, XP_BUSY, 0, "no shard is there at the moment; try again in a moment");
        fail_ask(ask);
        return;
    }
    pthread_mutex_lock(&u->lock);
    ask->next = u->asks;
    if (u->asks)
        u->asks->prev = ask;
    u->asks = ask;
    pthread_mutex_unlock(&u->lock);
    attempt(ask);
}

/* --- the monitor: shards that hang, clients that left --- */

struct hello {
    struct upstream *u;
    uint64_t name;
};

static void on_hello(void *ctx, const struct net_answer *a)
{
    struct hello *h = ctx;
    set_sick(h->u, h->name, a->status != XP_OK || a->code != 200);
    atomic_fetch_sub(&h->u->n_hellos, 1);
    free(h);
}

static void say_hello(struct upstream *u, const struct xp_ring *ring, uint32_t member)
{
    struct hello *h = calloc(1, sizeof *h);
    char url[512];
    XP_ASSERT(h);
    *h = (struct hello){u, name_of(ring, member)};
    snprintf(url, sizeof url, "http://%s" RPC_HELLO_PATH, xp_ring_member(ring, member)->address);
    struct net_request r = {.method = "GET",
                            .url = url,
                            .connect_ms = HELLO_MS,
                            .total_ms = HELLO_MS,
                            .direct = true,
                            .ctx = h,
                            .done = on_hello};
    atomic_fetch_add(&u->n_hellos, 1);
    if (!net_start(u->net, &r)) {
        atomic_fetch_sub(&u->n_hellos, 1);
        free(h);
    }
}

/* Under u->lock. */
static void look_at(struct upstream *u, struct upstream_feed *ask, uint64_t now)
{
    pthread_mutex_lock(&ask->lock);
    if (ask->call && ask->cancel && atomic_load(ask->cancel)) {
        net_cancel(ask->call);
    } else if (ask->call && !ask->move_on && now - ask->since_ns > PATIENCE_NS) {
        uint32_t member = ask->ranks[ask->at];
        bool again = !ask->streaming && ask->at + 1 < ask->n;
        if (is_sick(u, name_of(ask->ring, member)) && again) {
            ask->move_on = true;
            net_cancel(ask->call);
        } else if (now - ask->hello_ns > PATIENCE_NS) {
            ask->hello_ns = now;
            say_hello(u, ask->ring, member);
        }
    }
    pthread_mutex_unlock(&ask->lock);
}

static void *monitor(void *arg)
{
    struct upstream *u = arg;
    pthread_mutex_lock(&u->lock);
    while (!u->stop) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_MS * 1000000L;
        if (until.tv_nsec >= 1000000000L) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000L;
        }
        pthread_cond_timedwait(&u->wake, &u->lock, &until);
        uint64_t now = xp_now_ns();
        for (struct upstream_feed *ask = u->asks; ask; ask = ask->next)
            look_at(u, ask, now);
    }
    pthread_mutex_unlock(&u->lock);
    return NULL;
}

/* --- life --- */

static bool identify(void *ctx, const char *address, char *name)
{
    struct upstream *u = ctx;
    struct net_reply reply;
    char url[512];
    snprintf(url, sizeof url, "http://%s" RPC_HELLO_PATH, address);
    struct net_request r = {
        .method = "GET", .url = url, .connect_ms = HELLO_MS, .total_ms = HELLO_MS, .direct = true};
    bool ok = net_fetch(u->net, &r, 1024, &reply, NULL) == XP_OK && reply.code == 200;
    const uint8_t *end = ok && reply.body.n ? memchr(reply.body.p, '\n', reply.body.n) : NULL;
    size_t n = end ? (size_t)(end - reply.body.p) : 0;
    ok = n > 0 && n <= RING_NAME_MAX;
    if (ok) {
        memcpy(name, reply.body.p, n);
        name[n] = 0;
    }
    net_reply_fini(&reply);
    return ok;
}

enum xp_status upstream_new(const struct upstream_config *config, struct upstream **out,
                            struct xp_error *err)
{
    struct upstream *u = calloc(1, sizeof *u);
    pthread_condattr_t attr;
    XP_ASSERT(u);
    u->keys = config->keys;
    u->net = net_client_open();
    struct xp_members_config mc = {.spec = config->shards, .identify = identify, .ctx = u};
    enum xp_status status = xp_members_new(&mc, &u->members, err);
    if (status != XP_OK) {
        net_client_close(u->net);
        free(u);
        return status;
    }
    pthread_mutex_init(&u->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&u->wake, &attr);
    pthread_condattr_destroy(&attr);
    XP_ASSERT(pthread_create(&u->monitor, NULL, monitor, u) == 0);
    *out = u;
    return XP_OK;
}

void upstream_free(struct upstream *u)
{
    if (!u)
        return;
    while (atomic_load(&u->n_asks) > 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    pthread_mutex_lock(&u->lock);
    u->stop = true;
    pthread_cond_signal(&u->wake);
    pthread_mutex_unlock(&u->lock);
    pthread_join(u->monitor, NULL);
    while (atomic_load(&u->n_hellos) > 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    xp_members_free(u->members);
    net_client_close(u->net);
    pthread_mutex_destroy(&u->lock);
    pthread_cond_destroy(&u->wake);
    free(u);
}

void upstream_stats(struct upstream *u, struct upstream_stats *out)
{
    struct xp_ring *ring = xp_members_ring(u->members);
    *out = (struct upstream_stats){.members = xp_ring_size(ring),
                                   .asks = atomic_load(&u->asked),
                                   .retries = atomic_load(&u->retries),
                                   .failed = atomic_load(&u->failed)};
    xp_ring_unref(ring);
}
