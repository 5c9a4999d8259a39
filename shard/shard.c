#include "shard/shard.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "shard/answers.h"
#include "shard/args.h"
#include "shard/cache.h"
#include "shard/flights.h"
#include "shard/gather.h"
#include "shard/merged.h"
#include "shard/out.h"
#include "shard/queries.h"
#include "shard/tools/range.h"
#include "shard/tools/tool.h"
#include "shard/tools/xprof_lists.h"

/* A call's way: pin every object's part, wait for each in turn until enough of it is there, then
 * do the work as a QUERY task, so that it overtakes decoding. A tool that maps hosts looks at one
 * after the other, two loads ahead, so that a run of any number of hosts takes the memory of a
 * few. Hosts that are other shards' are asked of them meanwhile (gather.h); one that none of them
 * could map joins the list of those that are looked at here.
 *
 * What is made of the objects is made once for all who ask the same meanwhile (flights.h): they
 * take the first one's answer. If that one's asker has left, the next makes it; one whose asker
 * leaves while it waits for another is ended when the next joins them. Each waits for its
 * object by itself before, so that a load goes on as long as anyone wants it; but one that looks at
 * many hosts holds none while it waits for another. */

/* Scratch is not taken from the parts' budget: a cache that is full, as it always is in the end,
 * must not refuse the queries it is there for. */
#define SCRATCH_MIN (UINT64_C(64) << 20)

#define HOSTS_AHEAD 2
#define GLANCES_AHEAD 8
/* Alone an object may still meet what is left of loads that were given up. */
#define LONE_TRIES 4
/* Of so many, those loaded for this call alone are not kept, unless it is one of the many calls of
 * somebody who looks around. */
#define HOSTS_MANY 4

/* Answers that took more of a core than this to make are kept; quicker ones, which might cost less
 * than what they would push out, when they are asked for a second time. */
#define KEEP_NS (2 * UINT64_C(1000000))
#define KEEP_AGAIN_NS (UINT64_C(50000))
#define KEEP_PLAIN 1024 /* bytes; smaller ones are sent as they are */
/* Tools' answers are few beside windows, and asked for again by who goes back. */
#define KEEP_TOOL_NS (UINT64_C(100000))
#define ANSWERS_MAX ((size_t)64 << 20)

struct shard {
    struct xp_workers *workers;
    struct xp_budget budget;  /* parts */
    struct xp_budget scratch; /* what calls need while they run */
    struct cache *cache;
    struct answers *answers;
    struct flights *flights;
    shard_ask_fn ask_peers; /* NULL: there are none */
    void *peers;
    _Atomic uint64_t known, made, shared, maps, gathered, regained;
    _Atomic int calls; /* under way; shard_free waits for them */
};

struct call {
    struct shard *shard;
    enum shard_op op;
    const struct tool *tool;
    struct tool_report report;   /* of a report, and of a tool that looks at a host at a time */
    struct range range;          /* of a report: what part of the run it is about */
    struct report_host *sources; /* of a report, one an object: what could not be read */
    enum cache_until until;
    struct args args;
    struct xp_buf key; /* what was asked, whole: see answers.h */
    const atomic_bool *cancel;
    struct cache_handle **handles; /* one an object */
    char **hosts;
    struct cache_key *keys;   /* one an object; the texts are the call's */
    size_t n;                 /* objects */
    uint32_t *list;           /* those looked at here, in this order: */
    size_t opened, waiting;   /* places in it: asked for so far; the one waited for */
    bool aside;               /* nobody waits for it */
    bool lone;                /* there is no room for what is ahead */
    int refused;              /* times in a row that there was no room */
    uint32_t index;           /* MAP: of the object among those of the run */
    struct shard_peer *peers; /* copies */
    size_t npeers;
    uint64_t spent_ns;      /* CPU time of looking at hosts: what knowing the answer is worth */
    pthread_mutex_t lock;   /* from here to broken: peers' answers come on any thread */
    struct gather *gather;  /* until its rest came; else NULL */
    size_t listed;          /* in list */
    bool idle;              /* the list is through */
    struct merged merged;   /* by_host: what the hosts so far came to */
    struct xp_error broken; /* the call will fail with that when nothing is under way */
    struct flight flight;   /* once it joined those under way */
    bool joined;
    xp_work_fn work; /* what it does then, or when it goes on by itself */
    uint64_t version;
    shard_answer_fn fn;
    void *ctx;
    struct shard_answer answer;
    struct xp_arena *scratch;
    struct out out;
};

struct shard *shard_new(struct xp_workers *w, uint64_t memory_budget)
{
    struct shard *s = calloc(1, sizeof *s);
    XP_ASSERT(s);
    s->workers = w;
    xp_budget_init(&s->budget, memory_budget);
    xp_budget_init(&s->scratch, memory_budget / 4 > SCRATCH_MIN ? memory_budget / 4 : SCRATCH_MIN);
    s->cache = cache_new(w, &s->budget);
    s->answers =
        answers_new(memory_budget / 16 < ANSWERS_MAX ? (size_t)(memory_budget / 16) : ANSWERS_MAX);
    s->flights = flights_new();
    return s;
}

void shard_free(struct shard *s)
{
    if (!s)
        return;
    while (atomic_load(&s->calls) > 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    cache_free(s->cache);
    answers_free(s->answers);
    flights_free(s->flights);
    free(s);
}

/* --- a call's memory --- */

static void *must_alloc(size_t n)
{
    void *p = calloc(1, n ? n : 1);
    XP_ASSERT(p);
    return p;
}

static struct xp_span copy_span(struct xp_span s)
{
    uint8_t *p = must_alloc(s.n + 1);
    if (s.n)
        memcpy(p, s.p, s.n);
    return xp_span_of(p, s.n);
}

static void key_add(struct xp_buf *key, struct xp_span s)
{
    xp_buf_add(key, &s.n, sizeof s.n);
    xp_buf_span(key, s);
}

/* Lengths go before bytes, so that no two requests have the same key. */
static void make_key(struct xp_buf *key, const struct shard_request *req)
{
    xp_buf_init(key, SIZE_MAX);
    xp_buf_add(key, &req->op, sizeof req->op);
    xp_buf_add(key, &req->index, sizeof req->index);
    key_add(key, xp_span_str(req->tool ? req->tool : ""));
    for (size_t i = 0; i < req->nobjects; i++) {
        const struct shard_object *o = &req->objects[i];
        xp_buf_add(key, &o->store, sizeof o->store);
        xp_buf_add(key, &o->generation, sizeof o->generation);
        key_add(key, xp_span_str(o->key));
    }
    for (size_t i = 0; i < req->nargs; i++) {
        key_add(key, req->args[i].name);
        key_add(key, req->args[i].value);
    }
}

uint64_t shard_version(const struct shard_object *objects, size_t n)
{
    uint64_t version = XP_FNV_INIT;
    for (size_t i = 0; i < n; i++)
        version = xp_fnv(version, xp_span_of(&objects[i].generation, sizeof(uint64_t)));
    return version;
}

/* Shows no times of the device, so that a load for it leaves them in the file. */
static bool is_trace(const struct shard_request *req)
{
    return (req->op == SHARD_TOOL || req->op == SHARD_MAP) && req->tool &&
           strncmp(req->tool, "trace_viewer", 12) == 0;
}

static struct call *call_new(struct shard *s, const struct shard_request *req, shard_answer_fn fn,
                             void *ctx)
{
    struct call *c = must_alloc(sizeof *c);
    struct shard_arg *args = must_alloc(req->nargs * sizeof *args);

    for (size_t i = 0; i < req->nargs; i++)
        args[i] = (struct shard_arg){copy_span(req->args[i].name), copy_span(req->args[i].value)};
    c->shard = s;
    c->op = req->op;
    c->args = (struct args){args, req->nargs};
    c->cancel = req->cancel;
    c->n = req->nobjects;
    c->version = shard_version(req->objects, req->nobjects);
    c->handles = must_alloc(c->n * sizeof(struct cache_handle *));
    c->hosts = must_alloc(c->n * sizeof *c->hosts);
    c->keys = must_alloc(c->n * sizeof *c->keys);
    c->sources = must_alloc(c->n * sizeof *c->sources);
    c->list = must_alloc(c->n * sizeof *c->list);
    c->index = req->index;
    c->aside = req->aside;
    pthread_mutex_init(&c->lock, NULL);
    for (size_t i = 0; i < c->n; i++) {
        const struct shard_object *o = &req->objects[i];
        c->hosts[i] = strdup(o->host);
        c->keys[i] = (struct cache_key){o->store, strdup(o->key), o->generation, o->size,
                                        o->gz,    is_trace(req),  req->aside};
        XP_ASSERT(c->hosts[i] && c->keys[i].key);
        c->sources[i].name = xp_span_str(c->hosts[i]);
    }
    make_key(&c->key, req);
    c->fn = fn;
    c->ctx = ctx;
    atomic_fetch_add(&s->calls, 1);
    return c;
}

static void call_free(struct call *c)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->handles[i])
            cache_put(c->handles[i]);
        free(c->hosts[i]);
        free((void *)c->keys[i].key);
    }
    for (size_t i = 0; i < c->args.n; i++) {
        free((void *)c->args.v[i].name.p);
        free((void *)c->args.v[i].value.p);
    }
    for (size_t i = 0; i < c->npeers; i++) {
        free((void *)c->peers[i].name);
        free((void *)c->peers[i].address);
    }
    free(c->peers);
    free((void *)c->args.v);
    xp_buf_fini(&c->key);
    pthread_mutex_destroy(&c->lock);
    free(c->list);
    merged_fini(&c->merged);
    free(c->handles);
    free(c->hosts);
    free(c->keys);
    free(c->sources);
    free(c);
}

/* Gives the answer and ends the call. The pins go first: whoever waits for shard_free or for
 * room must not find a part held by a call that is over. */
static void call_answer(struct call *c)
{
    struct shard_answer answer = c->answer;
    struct shard *s = c->shard;
    shard_answer_fn fn = c->fn;
    void *ctx = c->ctx;

    answer.version = c->version;
    call_free(c);
    fn(ctx, &answer);
    atomic_fetch_sub(&s->calls, 1);
}

static struct call *call_of(struct flight *f)
{
    return (struct call *)((char *)f - offsetof(struct call, flight));
}

static void post_work(struct call *c);

/* Those who waited take the answer. If something was still loading when it began, it is not one for
 * those who came later. */
static void followers_end(struct flight *f, const struct shard_answer *a)
{
    for (struct flight *next; f; f = next) {
        struct call *c = call_of(f);
        next = f->next;
        if (a->volatile_answer) {
            post_work(c);
            continue;
        }
        c->answer = *a;
        if (a->body)
            xp_blob_ref(a->body);
        atomic_fetch_add(&c->shard->shared, 1);
        call_answer(c);
    }
}

static void call_end(struct call *c)
{
    struct flights *flights = c->shard->flights;
    struct shard_answer a = c->answer;
    struct flight *f = NULL;
    if (!c->flight.first) {
        call_answer(c);
    } else if (a.error.status == XP_CANCELLED) { /* its asker has left, others may not have */
        f = flights_pass(flights, &c->flight);
        call_answer(c);
        if (f)
            post_work(call_of(f));
    } else {
        f = flights_end(flights, &c->flight);
        if (f && a.body)
            xp_blob_ref(a.body);
        call_answer(c);
        followers_end(f, &a);
        if (f)
            xp_blob_unref(a.body);
    }
}

static void call_fail(struct call *c, enum xp_status status, const struct xp_error *err)
{
    if (err && err->status != XP_OK)
        c->answer.error = *err;
    else
        xp_fail(&c->answer.error, status, 0, "%s", xp_status_text(status));
    call_end(c);
}

/* --- the work, on a worker, parts pinned --- */

static struct part *first_part(const struct call *c)
{
    return cache_part(c->handles[0]);
}

static bool is_map(const struct call *c)
{
    return c->op == SHARD_MAP || c->op == SHARD_MAP_CSV || c->op == SHARD_MAP_REPORT ||
           c->op == SHARD_MAP_REPORT_CSV;
}

static bool is_report(const struct call *c)
{
    return c->op == SHARD_REPORT || c->op == SHARD_REPORT_CSV || c->op == SHARD_MAP_REPORT ||
           c->op == SHARD_MAP_REPORT_CSV;
}

/* The object that is waited for or looked at. */
static size_t at(const struct call *c)
{
    return c->list[c->waiting];
}

/* Is the tool one that looks at a host at a time? */
static bool by_host(const struct call *c)
{
    return c->tool && (is_report(c) || is_map(c) || !c->tool->answer || (c->tool->map && c->n > 1));
}

static struct tool_host host_of(const struct call *c, size_t i)
{
    return (struct tool_host){c->handles[i] ? cache_part(c->handles[i]) : NULL,
                              xp_span_str(c->hosts[i]), c->index + (uint32_t)i};
}

static bool tool_args_of(const struct call *c, struct xp_arena *a, struct tool_args *out)
{
    struct tool_arg *args = xp_arena_alloc(a, (c->args.n + 1) * sizeof *args);
    for (size_t i = 0; args && i < c->args.n; i++)
        args[i] = (struct tool_arg){c->args.v[i].name, c->args.v[i].value};
    bool csv = c->op == SHARD_TOOL_CSV || c->op == SHARD_REPORT_CSV || c->op == SHARD_MAP_CSV ||
               c->op == SHARD_MAP_REPORT_CSV;
    const struct report_range *range = c->range.any ? &c->range.shown : NULL;
    *out = (struct tool_args){args, c->args.n, csv, range};
    return args != NULL;
}

/* Of those hosts that could be read; if there is none, what is wrong with the first. */
static enum xp_status do_report(struct call *c, const struct tool_args *args, struct xp_error *err)
{
    size_t missing = 0;
    while (missing < c->n && c->sources[missing].missing.status != XP_OK)
        missing++;
    if (missing == c->n) {
        *err = c->sources[0].missing;
        return err->status;
    }
    struct xp_span merged;
    XP_TRY(range_close(&c->range, &c->report, err));
    XP_TRY(merged_all(&c->merged, c->report.merge, c->scratch, &merged, err));
    return tool_report_run(c->tool, c->sources, c->n, merged, args, c->scratch, &c->out, err);
}

static enum xp_status do_tool(struct call *c, struct xp_error *err)
{
    struct tool_host *hosts = xp_arena_alloc(c->scratch, (c->n + 1) * sizeof *hosts);
    struct tool_args a;
    if (!hosts || !tool_args_of(c, c->scratch, &a))
        return xp_fail(err, XP_BUSY, 0, "the memory budget is spent");
    for (size_t i = 0; i < c->n; i++)
        hosts[i] = host_of(c, i);

    if (is_report(c))
        return do_report(c, &a, err);
    if (by_host(c)) {
        struct xp_span merged;
        XP_TRY(merged_all(&c->merged, c->report.merge, c->scratch, &merged, err));
        return c->tool->render(merged, &a, c->scratch, &c->out, err);
    }
    return c->tool->answer(hosts, c->n, &a, c->scratch, &c->out, err);
}

/* The partial as it is, and what a report would say about the host. */
static enum xp_status do_map(struct call *c, struct xp_error *err)
{
    struct xp_span all;
    if (c->sources[0].missing.status != XP_OK) {
        *err = c->sources[0].missing;
        return err->status;
    }
    XP_TRY(merged_all(&c->merged, c->report.merge, c->scratch, &all, err));
    c->answer.damage = c->sources[0].damage;
    c->out.content_type = "application/octet-stream";
    range_put(&c->range, &c->out.text);
    xp_buf_span(&c->out.text, all);
    return XP_OK;
}

static enum xp_status work(struct call *c, struct xp_error *err)
{
    switch (c->op) {
    case SHARD_TRACKS:
    case SHARD_WINDOW:
    case SHARD_EVENT:
    case SHARD_NEIGHBOUR:
    case SHARD_SEARCH:
    case SHARD_AGGREGATE:
    case SHARD_CURVE:
        return queries_answer(&(struct queries_ask){c->op, first_part(c), &c->args, c->scratch},
                              &c->out, err);
    case SHARD_TOOL:
    case SHARD_TOOL_CSV:
    case SHARD_REPORT:
    case SHARD_REPORT_CSV:
    case SHARD_RUN_TOOLS:
    case SHARD_MODULE_LIST:
        return do_tool(c, err);
    case SHARD_MAP:
    case SHARD_MAP_CSV:
    case SHARD_MAP_REPORT:
    case SHARD_MAP_REPORT_CSV:
        return do_map(c, err);
    case SHARD_PROGRESS:
        break;
    }
    return xp_fail(err, XP_INTERNAL, 0, "unknown operation %d", (int)c->op);
}

/* Whether an answer made now will still be the answer later. Asked before the work: what is
 * published meanwhile may or may not be in it. */
static bool all_ready(const struct call *c)
{
    for (size_t i = 0; i < c->n; i++)
        if ((c->handles[i] && !part_ready(cache_part(c->handles[i]))) ||
            xp_status_retry(c->sources[i].missing.status)) /* a report's: it may be there soon */
            return false;
    return true;
}

static enum xp_status finish(struct call *c, struct xp_error *err)
{
    uint8_t *body;
    size_t n;
    XP_TRY(out_finish(&c->out, &body, &n, &c->answer.encoded, err));
    c->answer.body = xp_blob_new(body, n);
    c->answer.content_type = c->out.content_type;
    return XP_OK;
}

/* Once for all who will ask for it again: those few who take no gzip have it inflated. */
static void compress(struct call *c)
{
    const struct xp_blob *plain = c->answer.body;
    struct xp_buf b;
    size_t n;
    if (c->answer.encoded || plain->n < KEEP_PLAIN || is_map(c))
        return;
    xp_buf_init(&b, plain->n);
    struct xp_gzip *g = xp_gzip_new(&b);
    xp_gzip_add(g, xp_span_of(plain->p, plain->n));
    xp_gzip_end(g);
    if (b.failed) { /* it would grow */
        xp_buf_fini(&b);
        return;
    }
    xp_blob_unref(c->answer.body);
    uint8_t *p = xp_buf_take(&b, &n);
    c->answer.body = xp_blob_new(p, n);
    c->answer.encoded = true;
}

static void keep(struct call *c)
{
    compress(c);
    struct answers_item item = {.body = c->answer.body,
                                .content_type = c->answer.content_type,
                                .encoded = c->answer.encoded,
                                .damage = c->answer.damage};
    answers_put(c->shard->answers, xp_buf_all(&c->key), &item);
}

static bool worth_keeping(const struct call *c, uint64_t spent_ns)
{
    if (spent_ns >= (c->op == SHARD_TOOL ? KEEP_TOOL_NS : KEEP_NS))
        return true;
    if (spent_ns < KEEP_AGAIN_NS)
        return false;
    return (c->flight.first && flights_followed(c->shard->flights, &c->flight)) ||
           answers_again(c->shard->answers, xp_buf_all(&c->key));
}

static bool find_known(struct shard *s, enum shard_op op, struct xp_span key,
                       struct shard_answer *out)
{
    struct answers_item item;
    if (op == SHARD_PROGRESS || !answers_get(s->answers, key, &item))
        return false;
    out->body = item.body;
    out->content_type = item.content_type;
    out->encoded = item.encoded;
    out->damage = item.damage;
    atomic_fetch_add(&s->known, 1);
    return true;
}

/* True: the same was asked before, and the call is over. */
static bool answer_known(struct call *c)
{
    if (!find_known(c->shard, c->op, xp_buf_all(&c->key), &c->answer))
        return false;
    call_end(c);
    return true;
}

bool shard_known(struct shard *s, const struct shard_request *req, struct shard_answer *out)
{
    struct xp_buf key;
    *out = (struct shard_answer){.version = shard_version(req->objects, req->nobjects)};
    make_key(&key, req);
    bool known = find_known(s, req->op, xp_buf_all(&key), out);
    xp_buf_fini(&key);
    return known;
}

static enum xp_work_next run_call(void *ctx)
{
    struct call *c = ctx;
    struct xp_error err = {0};
    enum xp_status status = XP_CANCELLED;
    bool ready = all_ready(c);
    uint64_t began = xp_thread_cpu_ns() - c->spent_ns;

    c->scratch = xp_arena_new(&c->shard->scratch);
    out_init(&c->out, c->cancel);
    if (!out_cancelled(&c->out)) {
        atomic_fetch_add(&c->shard->made, 1);
        status = work(c, &err);
    }
    if (status == XP_OK && out_cancelled(&c->out))
        status = XP_CANCELLED;
    if (status == XP_OK)
        status = finish(c, &err);
    c->answer.volatile_answer = !ready;
    if (status == XP_OK && ready && !c->aside && worth_keeping(c, xp_thread_cpu_ns() - began))
        keep(c);
    out_fini(&c->out);
    xp_arena_free(c->scratch);
    if (status == XP_OK)
        call_end(c);
    else
        call_fail(c, status, &err);
    return XP_WORK_DONE;
}

/* --- waiting --- */

static void go_on(struct call *c);
static void on_ready(void *ctx, enum xp_status status, const struct xp_error *err);
static bool try_later(struct call *c);

/* Does a report go on without a host that fails so? Not when it would succeed a moment later. */
static bool may_miss(const struct call *c, enum xp_status status)
{
    return is_report(c) && status != XP_BUSY && status != XP_CANCELLED && status != XP_BAD_REQUEST;
}

/* The call will fail with the first of these. */
static void note_broken(struct call *c, enum xp_status status, const struct xp_error *err)
{
    pthread_mutex_lock(&c->lock);
    if (c->broken.status == XP_OK) {
        if (err && err->status != XP_OK)
            c->broken = *err;
        else
            xp_fail(&c->broken, status, 0, "%s", xp_status_text(status));
    }
    if (c->gather)
        gather_stop(c->gather);
    pthread_mutex_unlock(&c->lock);
}

/* Looking at the list ends with a failure, which is the call's once peers have answered. */
static void call_break(struct call *c, enum xp_status status, const struct xp_error *err)
{
    note_broken(c, status, err);
    pthread_mutex_lock(&c->lock);
    bool later = c->gather != NULL;
    c->idle = true;
    pthread_mutex_unlock(&c->lock);
    if (!later)
        call_fail(c, c->broken.status, &c->broken);
}

static void refuse(struct call *c, enum xp_status status)
{
    struct xp_error busy;
    xp_fail(&busy, status, 0, "too many requests are waiting; try again in a moment");
    xp_error_retry(&busy, xp_workers_wait_ms(c->shard->workers));
    call_break(c, status, &busy);
}

static void post_work(struct call *c)
{
    enum xp_status status = xp_workers_post(c->shard->workers, XP_WORK_QUERY, c->work, c);
    if (status != XP_OK)
        refuse(c, status);
}

/* Those that a flight waits for no more, since their askers have left. */
static void left_end(struct flight *f)
{
    for (struct flight *next; f; f = next) {
        next = f->next;
        call_fail(call_of(f), XP_CANCELLED, NULL);
    }
}

/* As many may wait for one answer as for a worker. */
static enum flights_place join_flight(struct call *c)
{
    struct flight *left;
    struct flights_ask ask = {xp_buf_all(&c->key), c->cancel,
                              (size_t)xp_workers_queue_max(c->shard->workers)};
    enum flights_place place = flights_join(c->shard->flights, &c->flight, &ask, &left);
    left_end(left);
    return place;
}

/* Does the work, unless the same is under way. A call that asks peers has begun already, and joins
 * none; what peers do for it is made once there. Nobody is to wait for one that is made aside. */
static void begin_work(struct call *c, xp_work_fn fn)
{
    enum flights_place place = FLIGHTS_FIRST;
    c->work = fn;
    if (!c->joined && !c->npeers && !c->aside) {
        c->joined = true;
        place = join_flight(c);
    }
    if (place == FLIGHTS_FIRST)
        post_work(c);
    else if (place == FLIGHTS_FULL)
        refuse(c, XP_BUSY); /* one that waits may be over by now */
}

/* All hosts were looked at, here and elsewhere. */
static void call_finish(struct call *c)
{
    if (c->broken.status != XP_OK) {
        call_fail(c, c->broken.status, &c->broken);
        return;
    }
    begin_work(c, run_call);
}

/* The list is through; hosts that peers failed at may still join it. */
static void list_done(struct call *c)
{
    pthread_mutex_lock(&c->lock);
    bool more = c->waiting < c->listed && c->broken.status == XP_OK;
    bool all = !c->gather && !more;
    c->idle = !more;
    pthread_mutex_unlock(&c->lock);
    if (more)
        go_on(c);
    else if (all)
        call_finish(c);
}

static size_t listed(struct call *c)
{
    pthread_mutex_lock(&c->lock);
    size_t n = c->listed;
    pthread_mutex_unlock(&c->lock);
    return n;
}

/* How many objects are asked for at once as long as there is room. */
static size_t ahead(const struct call *c)
{
    return c->tool && c->tool->glance ? GLANCES_AHEAD : HOSTS_AHEAD;
}

/* A file without a byte is an XSpace without planes, as XProf has it; to a report it is no host. */
static enum xp_status ask_for(struct call *c, size_t i, struct xp_error *err)
{
    if (c->keys[i].size == 0 && is_report(c))
        return xp_fail(err, XP_CORRUPT, 0, "the file is empty");
    return cache_get(c->shard->cache, &c->keys[i], &c->handles[i], err);
}

/* Asks for the objects to be looked at next; false: the call is over. */
static bool open_some(struct call *c)
{
    size_t n = listed(c), open = c->lone ? 1 : ahead(c);
    size_t end = by_host(c) && c->waiting + open < n ? c->waiting + open : n;
    struct xp_error err = {0};
    for (; c->opened < end; c->opened++) {
        size_t i = c->list[c->opened];
        enum xp_status status = ask_for(c, i, &err);
        if (status != XP_OK && may_miss(c, status)) {
            c->sources[i].missing = err;
            c->sources[i].missing.status = status;
        } else if (status != XP_OK) {
            call_break(c, status, &err);
            return false;
        }
    }
    return true;
}

static void wait_next(struct call *c)
{
    while (c->waiting < c->opened && !c->handles[at(c)]) { /* a report's host that is not there */
        c->waiting++;
        if (!open_some(c))
            return;
    }
    if (c->waiting == c->opened) {
        list_done(c);
        return;
    }
    /* Where there is room for one only, the next load must not begin beside what is left of it. */
    bool glance = c->tool && c->tool->glance && c->index + at(c) > 0 && !c->lone;
    cache_when(c->handles[at(c)], glance ? CACHE_INDEXED : c->until, c->cancel, on_ready, c);
}

static void go_on(struct call *c)
{
    if (open_some(c))
        wait_next(c);
}

static enum xp_work_next open_hosts(void *ctx)
{
    go_on(ctx);
    return XP_WORK_DONE;
}

static void next_object(struct call *c)
{
    c->waiting++;
    go_on(c);
}

static enum xp_status join(struct call *c, size_t i, struct xp_span one,
                           const struct range_seen *seen, struct xp_arena *a, struct xp_error *err)
{
    pthread_mutex_lock(&c->lock);
    range_see(&c->range, seen);
    enum xp_status status = merged_add(&c->merged, c->report.merge, (uint32_t)i, one, a, err);
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* The host's partial joins what there is. */
static enum xp_status map_and_merge(struct call *c, struct xp_arena *a, struct xp_error *err)
{
    struct tool_host host = host_of(c, at(c));
    struct xp_span one = {0};
    struct range_seen seen;
    struct tool_args args;
    if (!a || !tool_args_of(c, a, &args))
        return xp_fail(err, XP_BUSY, 0, "the memory budget is spent");
    if (c->cancel && atomic_load(c->cancel))
        return XP_CANCELLED;
    XP_TRY(range_map(&c->range, &c->report, &host, &args, a, &one, &seen, err));
    atomic_fetch_add(&c->shard->maps, 1);
    return join(c, at(c), one, &seen, a, err);
}

/* What a report says about the host: that it failed, or how far it could be read. */
static enum xp_status note_host(struct call *c, enum xp_status status, const struct xp_error *err)
{
    struct report_host *h = &c->sources[at(c)];
    const struct part *p = cache_part(c->handles[at(c)]);
    if (status != XP_OK && !may_miss(c, status))
        return status;
    if (status != XP_OK) {
        h->missing = *err;
        h->missing.status = status;
    } else if (p->damage.status != XP_OK) {
        h->damage = p->damage;
    }
    return XP_OK;
}

static enum xp_work_next map_host(void *ctx)
{
    struct call *c = ctx;
    struct xp_error err = {0};
    struct xp_arena *a = xp_arena_new(&c->shard->scratch);
    uint64_t began = xp_thread_cpu_ns();
    enum xp_status status = map_and_merge(c, a, &err);
    xp_arena_free(a);
    c->spent_ns += xp_thread_cpu_ns() - began;
    if (status == XP_BUSY && c->handles[at(c)] && try_later(c))
        return XP_WORK_DONE; /* what is loaded ahead took the room that the look needs */
    if (is_report(c))
        status = note_host(c, status, &err);
    if (status != XP_OK) {
        call_break(c, status, &err);
        return XP_WORK_DONE;
    }
    struct cache_handle *h = c->handles[at(c)];
    c->handles[at(c)] = NULL;
    c->refused = 0;
    if (h && (c->aside || (c->n >= HOSTS_MANY && !c->npeers && !c->tool->answer)))
        cache_put_once(h);
    else if (h)
        cache_put(h);
    next_object(c);
    return XP_WORK_DONE;
}

/* Loads that were given up end at their next step, unless the system has put their thread aside. */
static void let_others_end(int tries)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000L << tries}, NULL);
}

/* There was no room for the object beside those that are asked for as well: it is asked for again
 * after them, and from then on there is one at a time. False: that was tried. */
static bool try_later(struct call *c)
{
    size_t i = at(c), last = c->opened - 1;
    if (!by_host(c) || c->n == 1 || ++c->refused > (int)ahead(c) + LONE_TRIES)
        return false;
    cache_put(c->handles[i]);
    c->handles[i] = NULL;
    if (c->refused > (int)ahead(c))
        let_others_end(c->refused - (int)ahead(c));
    memmove(&c->list[c->waiting], &c->list[c->waiting + 1], (last - c->waiting) * sizeof *c->list);
    c->list[last] = (uint32_t)i;
    c->opened = last;
    c->lone = true;
    go_on(c);
    return true;
}

static void on_ready(void *ctx, enum xp_status status, const struct xp_error *err)
{
    struct call *c = ctx;
    size_t i = at(c);
    if (status == XP_BUSY && try_later(c))
        return;
    if (status == XP_CORRUPT && !is_report(c) && c->tool && c->tool->tolerant) {
        cache_put(c->handles[i]);
        c->handles[i] = NULL;
    } else if (status != XP_OK && may_miss(c, status)) {
        if (err)
            c->sources[i].missing = *err;
        else
            xp_fail(&c->sources[i].missing, status, 0, "%s", xp_status_text(status));
        c->sources[i].missing.status = status;
        cache_put(c->handles[i]);
        c->handles[i] = NULL;
        next_object(c);
        return;
    } else if (status != XP_OK) {
        call_break(c, status, err);
        return;
    }
    if (by_host(c))
        begin_work(c, map_host);
    else
        next_object(c);
}

/* --- hosts of other shards --- */

static void on_partial(void *ctx, size_t i, struct xp_span one, const struct xp_error *damage)
{
    struct call *c = ctx;
    struct xp_error err = {0};
    struct xp_arena *a = xp_arena_new(&c->shard->scratch);
    struct range_seen seen;
    enum xp_status status = a ? range_take(&c->range, &one, &seen, &err)
                              : xp_fail(&err, XP_BUSY, 0, "the memory budget is spent");
    if (status == XP_OK)
        status = join(c, i, one, &seen, a, &err);
    xp_arena_free(a);
    atomic_fetch_add(&c->shard->gathered, 1);
    if (status != XP_OK)
        note_broken(c, status, &err);
    else if (is_report(c))
        c->sources[i].damage = *damage;
}

static void on_unreadable(void *ctx, size_t i, const struct xp_error *err)
{
    struct call *c = ctx;
    atomic_fetch_add(&c->shard->gathered, 1);
    if (may_miss(c, err->status))
        c->sources[i].missing = *err;
    else
        note_broken(c, err->status, err);
}

static void on_here(void *ctx, size_t i)
{
    struct call *c = ctx;
    atomic_fetch_add(&c->shard->regained, 1);
    pthread_mutex_lock(&c->lock);
    c->list[c->listed++] = (uint32_t)i;
    bool resume = c->idle && c->broken.status == XP_OK;
    if (resume)
        c->idle = false;
    pthread_mutex_unlock(&c->lock);
    if (resume)
        go_on(c);
}

static void on_rest(void *ctx)
{
    struct call *c = ctx;
    pthread_mutex_lock(&c->lock);
    c->gather = NULL;
    bool all = c->idle;
    pthread_mutex_unlock(&c->lock);
    if (all)
        call_finish(c);
}

/* What a request's peers and objects point to, for as long as the call lives. */
static void keep_request(struct call *c, struct shard_request *req, struct shard_object *objects)
{
    c->peers = must_alloc(req->npeers * sizeof *c->peers);
    c->npeers = req->npeers;
    for (size_t i = 0; i < req->npeers; i++) {
        c->peers[i] =
            (struct shard_peer){strdup(req->peers[i].name), strdup(req->peers[i].address)};
        XP_ASSERT(c->peers[i].name && c->peers[i].address);
    }
    for (size_t i = 0; i < c->n; i++) {
        objects[i] = req->objects[i];
        objects[i].key = c->keys[i].key;
        objects[i].host = c->hosts[i];
    }
    req->objects = objects;
    req->peers = c->peers;
    req->tool = c->tool->id;
    req->args = (const struct shard_arg *)c->args.v;
}

/* What is looked at here, and by whom else what is not. */
static struct gather *share_out(struct call *c, const struct shard_request *asked)
{
    static const struct gather_calls calls = {on_partial, on_unreadable, on_here, on_rest};
    struct shard_request req = *asked;
    bool share = req.owners && c->shard->ask_peers && by_host(c) && !is_map(c) && c->n > 1;
    for (size_t i = 0; i < c->n; i++)
        if (!share || !req.owners[i].first)
            c->list[c->listed++] = (uint32_t)i;
    if (c->listed == c->n)
        return NULL;
    struct shard_object *objects = must_alloc(c->n * sizeof *objects);
    keep_request(c, &req, objects);
    c->spent_ns = KEEP_NS; /* peers spend some, too */
    c->gather =
        gather_new(c->shard->workers, &req, c->shard->ask_peers, c->shard->peers, &calls, c);
    free(objects);
    return c->gather;
}

static enum cache_until until_of(const struct call *c)
{
    bool whole = xp_span_eq(args_get(&c->args, "wait"), XP_SPAN_LIT("all"));
    switch (c->op) {
    case SHARD_TRACKS:
        return whole ? CACHE_ALL : CACHE_INDEXED;
    case SHARD_WINDOW:
        return whole ? CACHE_ALL : CACHE_FIRST_PLANE;
    default:
        return c->tool && c->tool->index_only && !is_report(c) ? CACHE_INDEXED : CACHE_ALL;
    }
}

static const char *progress_state(const struct cache_progress *p)
{
    if (p->status != XP_OK)
        return "failed";
    if (p->done)
        return "ready";
    return p->indexed ? "decoding" : "indexing";
}

static void answer_progress(struct call *c)
{
    struct cache_progress p;
    struct xp_json j;

    cache_progress(c->handles[0], &p);
    out_init(&c->out, NULL);
    xp_json_init(&j, &c->out.text);
    xp_json_obj(&j);
    xp_json_key(&j, "state"), xp_json_str(&j, progress_state(&p));
    xp_json_key(&j, "bytes_done"), xp_json_u64(&j, p.bytes_done);
    xp_json_key(&j, "bytes_total"), xp_json_u64(&j, p.bytes_total);
    xp_json_key(&j, "events"), xp_json_u64(&j, p.events_done);
    xp_json_key(&j, "planes_done"), xp_json_u64(&j, p.planes_done);
    xp_json_key(&j, "planes_total"), xp_json_u64(&j, p.planes_total);
    xp_json_key(&j, "error");
    if (p.status == XP_OK)
        xp_json_null(&j);
    else
        xp_json_str(&j, xp_status_code(p.status));
    xp_json_obj_end(&j);
    finish(c, &c->answer.error);
    c->answer.volatile_answer = true;
    out_fini(&c->out);
    call_end(c);
}

static bool find_tool(struct call *c, const struct shard_request *req, struct xp_error *err)
{
    bool report = is_report(c);
    if (req->op == SHARD_RUN_TOOLS)
        c->tool = &tool_run_tools;
    else if (req->op == SHARD_MODULE_LIST)
        c->tool = &tool_module_list;
    else if (report || req->op == SHARD_TOOL || req->op == SHARD_TOOL_CSV || is_map(c))
        c->tool = tool_find(xp_span_str(req->tool));
    else
        return true;
    if (!c->tool) {
        xp_fail(err, XP_NOT_FOUND, 0, "there is no tool \"%s\"", req->tool);
        return false;
    }
    if (report && !c->tool->report) {
        xp_fail(err, XP_NOT_FOUND, 0, "%s has no report", req->tool);
        return false;
    }
    c->report = report ? tool_report_of(c->tool)
                       : (struct tool_report){.map = c->tool->map, .merge = c->tool->merge};
    if (is_map(c) && (!c->report.map || c->n != 1)) {
        xp_fail(err, XP_BAD_REQUEST, 0, "%s does not look at one host at a time", req->tool);
        return false;
    }
    return true;
}

void shard_call(struct shard *s, const struct shard_request *req, shard_answer_fn fn, void *ctx)
{
    struct call *c = call_new(s, req, fn, ctx);
    struct xp_error err = {0};

    if (!find_tool(c, req, &err)) {
        call_fail(c, err.status, &err);
        return;
    }
    if (c->n == 0 && (is_report(c) || !(c->tool && c->tool->tolerant))) {
        xp_fail(&err, XP_NOT_FOUND, 0, "the run has no profile to read");
        call_fail(c, XP_NOT_FOUND, &err);
        return;
    }
    if (is_report(c) && range_parse(&c->args, &c->range, &err) != XP_OK) {
        call_fail(c, err.status, &err);
        return;
    }
    if (answer_known(c))
        return;
    struct gather *gather = share_out(c, req);
    c->until = until_of(c);
    if (gather)
        gather_start(gather); /* the call is here until its list is through */
    if (by_host(c) && c->n > 1 && !c->npeers) {
        begin_work(c, open_hosts);
        return;
    }
    if (!open_some(c))
        return;
    if (c->op == SHARD_PROGRESS)
        answer_progress(c);
    else
        wait_next(c);
}

void shard_set_peers(struct shard *s, shard_ask_fn ask, void *ctx)
{
    s->ask_peers = ask;
    s->peers = ctx;
}

void shard_stats(struct shard *s, struct shard_stats *out)
{
    struct cache_stats st;
    cache_stats(s->cache, &st);
    *out = (struct shard_stats){.parts = st.parts,
                                .pinned = st.pinned,
                                .bytes = st.bytes,
                                .budget = s->budget.limit,
                                .hits = st.hits,
                                .loads = st.loads,
                                .evictions = st.evictions,
                                .refused = st.refused,
                                .cancelled = st.cancelled,
                                .known = atomic_load(&s->known),
                                .made = atomic_load(&s->made),
                                .shared = atomic_load(&s->shared),
                                .maps = atomic_load(&s->maps),
                                .gathered = atomic_load(&s->gathered),
                                .regained = atomic_load(&s->regained)};
}
