#include "server/upstream.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/cluster/members.h"
#include "lib/http/http.h"
#include "lib/net/client.h"
#include "server/rpc.h"
#include "server/upstream_int.h"

#define CONNECT_MS 1000
#define ANSWER_MS 600000 /* a load of a large profile before the first byte */
#define HELLO_MS 1000
#define MEMBERS_MS 2000           /* by then there may be others */
#define LOOK_MS 250               /* how often asks under way are looked at */
#define LOOK_BUSY_MS 10           /* and when there are some, */
#define BUSY_NS 1000000000ull     /* or were so lately */
#define GIVE_UP_NS 15000000000ull /* on the last shard that could be asked, when it hangs */
#define PATIENCE_NS 1000000000ull /* an ask this old makes us say hello */
#define TRIES_AT_ONCE 2

struct upstream {
    struct net_client *net;
    struct xp_members *members; /* NULL: a shard's, for its peers */
    const struct xp_keyring *keys;
    struct healths *healths;
    struct hots *hots;
    struct paces *paces;
    struct places *places;
    pthread_mutex_t lock; /* asks, stop */
    pthread_cond_t wake;
    pthread_t monitor;
    struct upstream_feed *asks;
    bool stop;
    _Atomic int n_asks, n_hellos;
    _Atomic uint64_t asked, retries, failed, seconds, won, copies, copied;
};

/* One shard that is asked. */
struct
try {
    struct upstream_feed *ask;
    uint32_t member;
    struct net_call *call; /* NULL: none is under way */
    struct xp_buf body;
    uint64_t since_ns;
    bool live;
    bool hung;   /* it was ended because the shard hangs */
    bool second; /* another one was slow */
};

/* One request under way: one shard is asked, or two, and then others until one has answered. It
 * lives until the last try is over. `lock` orders tries that run against whoever wants to end them.
 */
struct upstream_feed {
    struct upstream *u;
    struct upstream_feed *prev, *next;
    shard_answer_fn fn;
    const struct upstream_stream *stream;
    void *ctx;
    void *streaming; /* what begin returned: the head is out, no other shard can be asked */
    struct try *streamer;
    struct xp_buf message;
    const atomic_bool *cancel;
    enum shard_op op;
    bool gzip, one_object, warm, again;
    bool is_peers;                         /* a host of a run: who asks can look at it itself */
    char trace[HTTP_TRACEPARENT_MAX + 16]; /* a header; "": none */
    uint64_t key;
    struct xp_ring *ring;
    uint32_t ranks[UPSTREAM_TRIES];
    size_t n, at; /* ranks; the next to be asked */
    _Atomic int refs;
    pthread_mutex_t lock; /* the rest; over and last are written on lib/net's thread */
    struct try tries[TRIES_AT_ONCE];
    bool over; /* an answer is on its way to who asked */
    struct xp_error last;
};

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

static void unref_ask(struct upstream_feed *ask)
{
    struct upstream *u = ask->u;
    if (atomic_fetch_sub(&ask->refs, 1) > 1)
        return;
    xp_buf_fini(&ask->message);
    for (int i = 0; i < TRIES_AT_ONCE; i++)
        xp_buf_fini(&ask->tries[i].body);
    xp_ring_unref(ask->ring);
    pthread_mutex_destroy(&ask->lock);
    free(ask);
    atomic_fetch_sub(&u->n_asks, 1);
}

/* Whoever else is asked need not answer any more. */
static void end_others(struct upstream_feed *ask, const struct try *but)
{
    pthread_mutex_lock(&ask->lock);
    ask->over = true;
    for (int i = 0; i < TRIES_AT_ONCE; i++)
        if (&ask->tries[i] != but && ask->tries[i].call)
            net_cancel(ask->tries[i].call);
    pthread_mutex_unlock(&ask->lock);
}

static void end_ask(struct upstream_feed *ask, const struct try *by, struct shard_answer *answer)
{
    end_others(ask, by);
    unlink_ask(ask);
    ask->fn(ask->ctx, answer);
    unref_ask(ask);
}

/* When to ask again, where no shard said so: when the first of them is looked at again. */
static void say_when(struct upstream_feed *ask)
{
    uint64_t now = xp_now_ns(), least = MEMBERS_MS;
    for (size_t i = 0; i < ask->n; i++) {
        uint64_t ms = healths_wait_ms(ask->u->healths, place_name(ask->ring, ask->ranks[i]), now);
        if (i == 0 || ms < least)
            least = ms;
    }
    xp_error_retry(&ask->last, least);
}

static void fail_ask(struct upstream_feed *ask)
{
    if (xp_status_retry(ask->last.status) && !ask->last.retry_s)
        say_when(ask);
    struct shard_answer answer = {.error = ask->last};
    if (ask->last.status != XP_CANCELLED)
        atomic_fetch_add(&ask->u->failed, 1);
    end_ask(ask, NULL, &answer);
}

/* --- an answer --- */

static enum xp_status status_named(const char *code, size_t n)
{
    for (int i = 0; i < XP_STATUS_COUNT; i++) {
        const char *one = xp_status_code((enum xp_status)i);
        if (strlen(one) == n && !strncmp(one, code, n))
            return (enum xp_status)i;
    }
    return XP_INTERNAL; /* of a newer version */
}

static uint64_t number(const char *text, int base)
{
    return text ? strtoull(text, NULL, base) : 0;
}

static void read_when(struct net_call *call, struct xp_error *err)
{
    uint64_t s = number(net_header(call, "xprofd-retry"), 10);
    if (s > 0 && s <= XP_RETRY_MAX_S)
        xp_error_retry(err, s * 1000);
}

/* "<code> <byte> <sentence>" */
static void read_damage(const char *text, struct xp_error *damage)
{
    const char *space = text ? strchr(text, ' ') : NULL;
    char *sentence = NULL;
    if (!space)
        return;
    uint64_t offset = strtoull(space, &sentence, 10);
    damage->status = status_named(text, (size_t)(space - text));
    damage->offset = offset;
    char plain[3 * sizeof damage->text + 1];
    snprintf(plain, sizeof plain, "%s", *sentence ? sentence + 1 : "");
    rpc_unescape(plain);
    snprintf(damage->text, sizeof damage->text, "%s", plain);
}

/* All of an answer but its body. */
static void read_head(struct net_call *call, struct shard_answer *answer)
{
    *answer = (struct shard_answer){.version = number(net_header(call, "xprofd-version"), 16)};
    answer->content_type = rpc_content_type(xp_span_str(net_header(call, "content-type")));
    answer->encoded = net_header(call, "content-encoding") != NULL;
    answer->volatile_answer = net_header(call, "xprofd-volatile") != NULL;
    read_damage(net_header(call, "xprofd-damage"), &answer->damage);
}

/* What an answer says about how long its kind takes and where the profile is. */
static void learn(struct upstream_feed *ask, const struct try *try, bool whole)
{
    struct upstream *u = ask->u;
    if (ask->one_object && whole)
        hots_set_warm(u->hots, ask->key, place_name(ask->ring, try->member));
    if (paces_may(ask->op, ask->warm))
        paces_note(u->paces, ask->op, ask->warm, (xp_now_ns() - try->since_ns) / 1000);
    if (try->second)
        atomic_fetch_add(&u->won, 1);
}

/* What the shard said is an answer, good or not. */
static void take_answer(struct try *try, struct net_call *call, const char *code)
{
    struct upstream_feed *ask = try->ask;
    struct shard_answer answer = {0};
    size_t n;

    if (strcmp(code, "ok") != 0) {
        uint64_t offset = number(net_header(call, "xprofd-offset"), 10);
        xp_fail(&answer.error, status_named(code, strlen(code)), offset, "%.*s", (int)try->body.n,
                try->body.n ? (const char *)try->body.p : "");
        read_when(call, &answer.error);
        end_ask(ask, try, &answer);
        return;
    }
    read_head(call, &answer);
    learn(ask, try, !answer.volatile_answer);
    uint8_t *p = xp_buf_take(&try->body, &n);
    answer.body = xp_blob_new(p, n);
    end_ask(ask, try, &answer);
}

/* Whether the answer is a good one that will be larger than what is held: by its length, or, as the
 * shard inflates for clients without gzip, by what has come. */
static bool is_large(const struct try *try, struct net_call *call, size_t more, size_t *length)
{
    const char *code = net_header(call, "xprofd-status");
    const char *said = net_header(call, "content-length");
    *length = said ? (size_t)number(said, 10) : SIZE_MAX;
    if (net_code(call) != 200 || !code || strcmp(code, "ok") != 0)
        return false;
    return (said ? *length : try->body.n + more) > UPSTREAM_HOLD;
}

static void begin_stream(struct try *try, struct net_call *call, size_t length)
{
    struct upstream_feed *ask = try->ask;
    struct shard_answer head;
    read_head(call, &head);
    end_others(ask, try);
    pthread_mutex_lock(&ask->lock);
    ask->streamer = try;
    pthread_mutex_unlock(&ask->lock);
    ask->streaming = ask->stream->begin(ask->ctx, &head, length, ask);
    if (try->body.n)
        ask->stream->push(ask->streaming, xp_buf_all(&try->body));
    xp_buf_fini(&try->body);
}

static bool on_body(void *ctx, struct net_call *call, struct xp_span bytes)
{
    struct try *try = ctx;
    struct upstream_feed *ask = try->ask;
    size_t length;
    if (ask->over && ask->streamer != try)
        return false;
    if (ask->stream && !ask->streaming && is_large(try, call, bytes.n, &length))
        begin_stream(try, call, length);
    if (!ask->streaming) {
        xp_buf_span(&try->body, bytes);
        return !try->body.failed;
    }
    if (ask->stream->push(ask->streaming, bytes))
        return true;
    net_pause(call);
    return false;
}

/* --- tries --- */

static bool start_try(struct upstream_feed *ask, bool second);

static bool is_cancelled(const struct upstream_feed *ask)
{
    return ask->cancel && atomic_load(ask->cancel);
}

static bool is_any_live(struct upstream_feed *ask)
{
    for (int i = 0; i < TRIES_AT_ONCE; i++)
        if (ask->tries[i].live)
            return true;
    return false;
}

/* One has failed: another, unless one is asked already. */
static void next_rank(struct upstream_feed *ask)
{
    for (;;) {
        pthread_mutex_lock(&ask->lock);
        bool cancelled = is_cancelled(ask);
        bool wait = is_any_live(ask) && !cancelled;
        bool again = !wait && !cancelled && ask->at < ask->n;
        bool started = again && start_try(ask, false);
        pthread_mutex_unlock(&ask->lock);
        if (again)
            atomic_fetch_add(&ask->u->retries, 1);
        if (wait || started)
            return;
        if (cancelled)
            ask->last = (struct xp_error){.status = XP_CANCELLED};
        if (!again)
            break;
    }
    fail_ask(ask);
}

/* What came is no answer: why, for whoever asked if nobody else answers either. */
static void note_failure(struct try *try, const struct net_answer *a, const char *code, bool hung)
{
    struct upstream_feed *ask = try->ask;
    const struct xp_ring_member *m = xp_ring_member(ask->ring, try->member);
    int n = (int)try->body.n;
    const char *text = n ? (const char *)try->body.p : "";
    if (code) {
        xp_fail(&ask->last, XP_BUSY, 0, "%.*s", n, text);
        read_when(a->call, &ask->last);
    } else if (try->body.failed) {
        xp_fail(&ask->last, XP_TOO_LARGE, 0, "the answer is too large");
    } else if (a->status == XP_OK) {
        xp_fail(&ask->last, XP_INTERNAL, 0, "shard %s answered with %d: %.*s", m->name, a->code,
                n < 160 ? n : 160, text);
    } else {
        if (hung || !is_cancelled(ask)) /* it is not the shard that gave up */
            healths_failed(ask->u->healths, place_name(ask->ring, try->member), m->address,
                           xp_now_ns());
        xp_fail(&ask->last, XP_BUSY, 0, "shard %s: %s", m->name, hung ? "hangs" : a->why);
    }
}

static void note_head(struct upstream_feed *ask, uint32_t member, struct net_call *call)
{
    uint64_t name = place_name(ask->ring, member);
    const char *load = net_header(call, "xprofd-load");
    healths_well(ask->u->healths, name);
    if (load)
        healths_set_load(ask->u->healths, name, (uint32_t)number(load, 10), xp_now_ns());
}

static void on_done(void *ctx, const struct net_answer *a)
{
    struct try *try = ctx;
    struct upstream_feed *ask = try->ask;

    pthread_mutex_lock(&ask->lock);
    try->call = NULL;
    try->live = false;
    bool hung = try->hung, over = ask->over;
    pthread_mutex_unlock(&ask->lock);
    bool answered = a->status == XP_OK && a->code == 200;
    const char *code = answered ? net_header(a->call, "xprofd-status") : NULL;
    if (code)
        note_head(ask, try->member, a->call);
    if (ask->streamer == try) {
        unlink_ask(ask);
        ask->stream->end(ask->streaming, a->status == XP_OK);
        unref_ask(ask);
    } else if (over) {
        /* another one was quicker */
    } else if (code && strcmp(code, "busy") != 0) {
        take_answer(try, a->call, code);
    } else {
        note_failure(try, a, code, hung);
        next_rank(ask);
    }
    unref_ask(ask);
}

static struct try *free_try(struct upstream_feed *ask)
{
    for (int i = 0; i < TRIES_AT_ONCE; i++)
        if (!ask->tries[i].live)
            return &ask->tries[i];
    return NULL;
}

/* Asks the next rank; under the ask's lock. False: it could not even be tried. */
static bool start_try(struct upstream_feed *ask, bool second)
{
    const struct upstream *u = ask->u;
    struct try *try = free_try(ask);
    char url[512], auth[SIGN_TEXT_MAX + 32], sign[SIGN_TEXT_MAX];
    const char *headers[6] = {"content-type: application/x-protobuf",
                              RPC_VERSION_HEADER ": " RPC_VERSION};
    size_t n = 2;

    XP_ASSERT(try);
    try->ask = ask;
    try->member = ask->ranks[ask->at++];
    const struct xp_ring_member *m = xp_ring_member(ask->ring, try->member);
    snprintf(url, sizeof url, "http://%s" RPC_ASK_PATH, m->address);
    if (u->keys) {
        xp_sign(u->keys, time(NULL), XP_SPAN_LIT(RPC_ASK_PATH), xp_buf_all(&ask->message), sign);
        snprintf(auth, sizeof auth, RPC_SIGN_HEADER ": %s", sign);
        headers[n++] = auth;
    }
    if (ask->gzip)
        headers[n++] = "accept-encoding: gzip";
    if (ask->trace[0])
        headers[n++] = ask->trace;
    struct net_request r = {.method = "POST",
                            .url = url,
                            .headers = headers,
                            .body = xp_buf_all(&ask->message),
                            .connect_ms = CONNECT_MS,
                            .stall_ms = ANSWER_MS,
                            .direct = true,
                            .ctx = try,
                            .body_fn = on_body,
                            .done = on_done};
    xp_buf_fini(&try->body);
    xp_buf_init(&try->body, UPSTREAM_ANSWER_MAX);
    try->since_ns = xp_now_ns();
    try->hung = false;
    try->second = second;
    try->call = net_start(u->net, &r);
    try->live = try->call != NULL;
    if (try->live)
        atomic_fetch_add(&ask->refs, 1);
    else if (!second)
        xp_fail(&ask->last, XP_INTERNAL, 0, "shard %s cannot be asked", m->name);
    return try->live;
}

void upstream_resume(struct upstream_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    if (feed->streamer && feed->streamer->call)
        net_resume(feed->streamer->call);
    pthread_mutex_unlock(&feed->lock);
}

void upstream_stop(struct upstream_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    if (feed->streamer && feed->streamer->call)
        net_cancel(feed->streamer->call);
    pthread_mutex_unlock(&feed->lock);
}

/* --- an ask --- */

static struct upstream_feed *ask_new(struct upstream *u, const struct shard_request *req,
                                     struct xp_ring *ring, shard_answer_fn fn,
                                     const struct upstream_stream *stream, void *ctx)
{
    struct upstream_feed *ask = calloc(1, sizeof *ask);
    XP_ASSERT(ask);
    ask->u = u;
    ask->fn = fn;
    ask->stream = stream;
    ask->ctx = ctx;
    ask->cancel = req->cancel;
    if (req->trace)
        snprintf(ask->trace, sizeof ask->trace, "traceparent: %s", req->trace);
    ask->op = req->op;
    ask->gzip = req->gzip;
    ask->one_object = req->nobjects == 1;
    ask->key = place_key(req);
    ask->ring = ring;
    atomic_init(&ask->refs, 1);
    pthread_mutex_init(&ask->lock, NULL);
    xp_buf_init(&ask->message, RPC_ASK_MAX);
    atomic_fetch_add(&u->asked, 1);
    atomic_fetch_add(&u->n_asks, 1);
    return ask;
}

/* Those that are ill last. */
static void choose(struct upstream_feed *ask, const uint32_t *all, size_t n)
{
    uint32_t ill[UPSTREAM_TRIES];
    size_t n_ill = 0;
    for (size_t i = 0; i < n; i++)
        if (healths_is_ill(ask->u->healths, place_name(ask->ring, all[i])))
            ill[n_ill++] = all[i];
        else
            ask->ranks[ask->n++] = all[i];
    for (size_t i = 0; i < n_ill; i++)
        ask->ranks[ask->n++] = ill[i];
}

static void begin_ask(struct upstream_feed *ask, const struct shard_request *req)
{
    struct upstream *u = ask->u;
    rpc_write(req, &ask->message);
    if (ask->message.failed) {
        xp_fail(&ask->last, XP_TOO_LARGE, 0, "the request names too many hosts");
        fail_ask(ask);
        return;
    }
    if (ask->n == 0) {
        xp_fail(&ask->last, XP_BUSY, 0, "no shard is there at the moment; try again in a moment");
        fail_ask(ask);
        return;
    }
    if (ask->one_object)
        ask->warm = hots_is_warm(u->hots, ask->key, place_name(ask->ring, ask->ranks[0]));
    paces_earn(u->paces);
    pthread_mutex_lock(&u->lock);
    ask->next = u->asks;
    if (u->asks)
        u->asks->prev = ask;
    u->asks = ask;
    pthread_mutex_unlock(&u->lock);
    pthread_mutex_lock(&ask->lock);
    bool started = start_try(ask, false);
    pthread_mutex_unlock(&ask->lock);
    if (!started)
        next_rank(ask);
}

/* --- copies of what is hot --- */

struct copying {
    struct upstream *u;
    uint64_t key, member;
};

static void on_copy(void *ctx, struct shard_answer *a)
{
    struct copying *c = ctx;
    bool there = a->error.status == XP_OK && !a->volatile_answer;
    hots_copied(c->u->hots, c->key, c->member, there, xp_now_ns());
    atomic_fetch_add(&c->u->copies, there);
    xp_blob_unref(a->body);
    free(c);
}

/* Asks the member for its tracks once all is loaded, which nobody reads. */
static void make_copy(struct upstream_feed *ask, const struct shard_request *like, uint32_t member)
{
    static const struct shard_arg whole = {{(const uint8_t *)"wait", 4},
                                           {(const uint8_t *)"all", 3}};
    struct shard_request req = {
        .op = SHARD_TRACKS, .objects = like->objects, .nobjects = 1, .args = &whole, .nargs = 1};
    struct copying *c = calloc(1, sizeof *c);
    XP_ASSERT(c);
    *c = (struct copying){ask->u, ask->key, place_name(ask->ring, member)};
    struct upstream_feed *copy = ask_new(ask->u, &req, xp_ring_ref(ask->ring), on_copy, NULL, c);
    copy->ranks[copy->n++] = member;
    begin_ask(copy, &req);
}

/* Moves a copy to the front, if the key is hot and there is a better one. */
static void look_at_heat(struct upstream_feed *ask, const struct shard_request *req)
{
    uint64_t names[UPSTREAM_TRIES];
    struct upstream *u = ask->u;
    for (size_t i = 0; i < ask->n; i++)
        names[i] = place_name(ask->ring, ask->ranks[i]);
    struct hot_choice choice =
        hots_choose(u->hots, u->healths, ask->key, names, ask->n, xp_now_ns());
    if (choice.copy)
        make_copy(ask, req, ask->ranks[choice.copy]);
    if (!choice.rank)
        return;
    uint32_t first = ask->ranks[0];
    ask->ranks[0] = ask->ranks[choice.rank];
    ask->ranks[choice.rank] = first;
    atomic_fetch_add(&u->copied, 1);
}

void upstream_call(struct upstream *u, const struct shard_request *asked, const struct run *run,
                   shard_answer_fn fn, const struct upstream_stream *stream, void *ctx)
{
    uint32_t ranks[UPSTREAM_TRIES];
    struct shard_request req = *asked;
    struct upstream_feed *ask = ask_new(u, &req, xp_members_ring(u->members), fn, stream, ctx);
    choose(ask, ranks, places_ranks(u->places, ask->ring, &req, run, ranks, UPSTREAM_TRIES));
    bool shared = places_share_out(u->places, u->healths, ask->ring, run, &req);
    if (ask->n > 1 && req.nobjects == 1)
        look_at_heat(ask, &req);
    begin_ask(ask, &req);
    if (shared) {
        free((void *)req.owners);
        free((void *)req.peers);
    }
}

void upstream_ask_peers(void *upstream, const struct shard_peer *const *peers, size_t n,
                        const struct shard_request *req, shard_answer_fn fn, void *ctx)
{
    struct upstream *u = upstream;
    struct xp_ring_member members[UPSTREAM_TRIES] = {{0}};
    uint32_t ranks[UPSTREAM_TRIES] = {0};
    struct xp_ring *ring = NULL;
    struct shard_answer answer = {0};

    if (n > UPSTREAM_TRIES)
        n = UPSTREAM_TRIES;
    for (size_t i = 0; i < n; i++)
        members[i] = (struct xp_ring_member){peers[i]->name, peers[i]->address};
    if (xp_ring_new(members, n, &ring, &answer.error) != XP_OK) {
        fn(ctx, &answer);
        return;
    }
    for (size_t i = 0; i < n; i++) /* a ring is in order of names */
        for (uint32_t k = 0; k < n; k++)
            if (!strcmp(xp_ring_member(ring, k)->name, peers[i]->name))
                ranks[i] = k;
    struct upstream_feed *ask = ask_new(u, req, ring, fn, NULL, ctx);
    ask->is_peers = true;
    choose(ask, ranks, n);
    hots_touch(u->hots, ask->key, xp_now_ns());
    begin_ask(ask, req);
}

/* --- the monitor: shards that hang, answers that are late, clients that left --- */

struct hello {
    struct upstream *u;
    uint64_t name;
    char address[HEALTH_ADDRESS_MAX];
};

static void on_hello(void *ctx, const struct net_answer *a)
{
    struct hello *h = ctx;
    if (a->status == XP_OK && a->code == 200)
        healths_well(h->u->healths, h->name);
    else
        healths_failed(h->u->healths, h->name, h->address, xp_now_ns());
    atomic_fetch_sub(&h->u->n_hellos, 1);
    free(h);
}

static void say_hello(struct upstream *u, uint64_t name, const char *address)
{
    struct hello *h = calloc(1, sizeof *h);
    char url[512];
    XP_ASSERT(h);
    h->u = u;
    h->name = name;
    snprintf(h->address, sizeof h->address, "%s", address);
    snprintf(url, sizeof url, "http://%s" RPC_HELLO_PATH, address);
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
        healths_failed(u->healths, name, address, xp_now_ns());
        free(h);
    }
}

/* The last rank hangs, and those before it had no room or failed: they are asked once more, which
 * takes longer than waiting for what hangs for ever is worth. */
static bool begin_again(struct upstream_feed *ask)
{
    uint32_t all[UPSTREAM_TRIES];
    size_t n = ask->n;
    if (ask->again || n < 2)
        return false;
    memcpy(all, ask->ranks, n * sizeof *all);
    ask->again = true;
    ask->at = ask->n = 0;
    choose(ask, all, n);
    return true;
}

/* Under the ask's lock: a try that waits for long. */
static void look_at_patience(struct upstream_feed *ask, struct try *try, uint64_t now)
{
    struct upstream *u = ask->u;
    const struct xp_ring_member *m = xp_ring_member(ask->ring, try->member);
    uint64_t name = place_name(ask->ring, try->member);
    bool other = ask->at < ask->n || ask->tries[0].live + ask->tries[1].live > 1;
    if (!ask->over && healths_is_ill(u->healths, name) &&
        (other || ask->is_peers || begin_again(ask) || now - try->since_ns > GIVE_UP_NS)) {
        try->hung = true;
        net_cancel(try->call);
    } else if (healths_may_say(u->healths, name, now)) {
        say_hello(u, name, m->address);
    }
}

/* Is it later than nearly all of its kind, where that means something? */
static bool is_late(struct upstream_feed *ask, const struct try *try, uint64_t now)
{
    if (ask->over || ask->at >= ask->n || !paces_may(ask->op, ask->warm) || !free_try(ask))
        return false;
    uint64_t delay = paces_delay_us(ask->u->paces, ask->op, ask->warm);
    uint32_t next = ask->ranks[ask->at];
    return delay != UINT64_MAX && now - try->since_ns > delay * 1000 &&
           !healths_is_ill(ask->u->healths, place_name(ask->ring, next)) &&
           paces_spend(ask->u->paces);
}

/* Under u->lock. */
static void look_at(struct upstream_feed *ask, uint64_t now)
{
    pthread_mutex_lock(&ask->lock);
    bool cancelled = is_cancelled(ask);
    for (int i = 0; i < TRIES_AT_ONCE; i++) {
        struct try *try = &ask->tries[i];
        if (!try->call || try->hung)
            continue;
        if (cancelled) {
            net_cancel(try->call);
            continue;
        }
        if (!try->second && is_late(ask, try, now) && start_try(ask, true))
            atomic_fetch_add(&ask->u->seconds, 1);
        if (now - try->since_ns > PATIENCE_NS)
            look_at_patience(ask, try, now);
    }
    pthread_mutex_unlock(&ask->lock);
}

static void wait_a_moment(struct upstream *u, bool busy)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (busy ? LOOK_BUSY_MS : LOOK_MS) * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    pthread_cond_timedwait(&u->wake, &u->lock, &until);
}

static void *monitor(void *arg)
{
    struct upstream *u = arg;
    char address[HEALTH_ADDRESS_MAX];
    uint64_t name, asked = 0, idle_ns = 0;
    pthread_mutex_lock(&u->lock);
    while (!u->stop) {
        uint64_t now = xp_now_ns();
        if (atomic_load(&u->asked) != asked)
            idle_ns = now + BUSY_NS;
        asked = atomic_load(&u->asked);
        wait_a_moment(u, u->asks || now < idle_ns);
        now = xp_now_ns();
        for (struct upstream_feed *ask = u->asks; ask; ask = ask->next)
            look_at(ask, now);
        while (!u->stop && healths_due(u->healths, now, &name, address))
            say_hello(u, name, address);
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
    enum xp_status status = config->shards ? xp_members_new(&mc, &u->members, err) : XP_OK;
    if (status != XP_OK) {
        net_client_close(u->net);
        free(u);
        return status;
    }
    u->healths = healths_new();
    u->hots = hots_new();
    u->paces = paces_new();
    u->places = places_new();
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
    healths_free(u->healths);
    hots_free(u->hots);
    paces_free(u->paces);
    places_free(u->places);
    pthread_mutex_destroy(&u->lock);
    pthread_cond_destroy(&u->wake);
    free(u);
}

void upstream_stats(struct upstream *u, struct upstream_stats *out)
{
    *out = (struct upstream_stats){.ill = healths_ill(u->healths),
                                   .asks = atomic_load(&u->asked),
                                   .retries = atomic_load(&u->retries),
                                   .failed = atomic_load(&u->failed),
                                   .seconds = atomic_load(&u->seconds),
                                   .won = atomic_load(&u->won),
                                   .copies = atomic_load(&u->copies),
                                   .copied = atomic_load(&u->copied)};
    if (!u->members)
        return;
    struct xp_ring *ring = xp_members_ring(u->members);
    out->members = xp_ring_size(ring);
    xp_ring_unref(ring);
}
