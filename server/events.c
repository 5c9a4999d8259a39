#include "server/events.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "lib/base/json_out.h"
#include "server/ask.h"
#include "server/capture/capture.h"
#include "server/runfacts.h"

#define TICK_MS 1000
#define LOAD_TICK_MS 250
#define BEAT_NS (15 * UINT64_C(1000000000))
#define RUNS_NS (2 * UINT64_C(1000000000)) /* between two looks at the list of runs */
#define EVENT_MAX 4096
/* Of a stream of somebody with an identity: a browser opens it again by itself, and is then asked
 * again whether it may. */
#define LIFE_NS (30 * UINT64_C(1000000000))

struct client {
    struct client *next;
    struct events *hub;
    struct http_exchange *ex;
    const struct project *project;
    const struct run *run; /* NULL: it is about the list of runs */
    const struct run_host *host;
    uint64_t runs_version, captures_version, sent_ns;
    uint64_t until_ns;   /* 0: as long as the client stays */
    struct xp_span last; /* what was told last about the load; malloc'd */
    bool done;           /* the load is over */
    bool ended;          /* the stream is: only to be unlinked */
    /* Under the hub's lock: the shard may answer from any thread. */
    bool asking;
    struct xp_span got; /* malloc'd; p == NULL: nothing new */
    bool failed;        /* got is a problem */
};

/* What is known of a project's list of runs, while somebody looks. */
struct list {
    struct list *next;
    const struct project *project;
    uint64_t version, due_ns, looked_ns;
    uint64_t facts; /* runfacts_version then */
    bool wanted;
};

struct events {
    struct app *app;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct client *clients;
    size_t n;
    bool stopping;
    bool poked, runs_poked; /* there is something new, and a run among it */
    struct list *lists;     /* the thread's own */
};

/* --- what is sent, on the stream's loop --- */

struct piece {
    struct client *client;
    struct xp_buf text;
    bool begin, end;
};

static void client_free(struct client *c)
{
    run_unref(c->run);
    project_unref(c->project);
    free((void *)c->last.p);
    free((void *)c->got.p);
    free(c);
}

static void begin_stream(struct http_exchange *ex)
{
    struct http_answer head;
    http_answer_init(&head, 200, "text/event-stream");
    head.cache_control = "no-store";
    http_answer_header(&head, "x-accel-buffering", XP_SPAN_LIT("no"));
    http_stream_begin(ex, &head);
}

static void on_loop(void *ctx)
{
    struct piece *p = ctx;
    if (p->begin)
        begin_stream(p->client->ex);
    if (p->text.n)
        http_stream_send(p->client->ex, xp_buf_all(&p->text)); /* who cannot take it misses it */
    if (p->end) {
        http_stream_end(p->client->ex);
        client_free(p->client);
    }
    xp_buf_fini(&p->text);
    free(p);
}

/* The text moves. After `end` the client is gone. */
static void post(struct client *c, struct xp_buf *text, bool begin, bool end)
{
    struct piece *p = calloc(1, sizeof *p);
    XP_ASSERT(p);
    *p = (struct piece){.client = c, .text = *text, .begin = begin, .end = end};
    *text = (struct xp_buf){0};
    http_on_loop(c->ex, on_loop, p);
}

static void send_event(struct client *c, const char *name, struct xp_span data)
{
    struct xp_buf text;
    xp_buf_init(&text, 2 * EVENT_MAX);
    xp_buf_fmt(&text, "event: %s\ndata: ", name);
    xp_buf_span(&text, data);
    xp_buf_str(&text, "\n\n");
    if (!text.failed)
        post(c, &text, false, false);
    xp_buf_fini(&text);
    c->sent_ns = xp_now_ns();
}

/* --- the list of runs --- */

static uint64_t hash_run(uint64_t h, const struct run *r)
{
    uint64_t facts[] = {(uint64_t)r->captured_ms, r->bytes, r->n_hosts};
    h = xp_fnv(h, xp_span_of(r->name, strlen(r->name) + 1));
    return xp_fnv(h, xp_span_of(facts, sizeof facts));
}

/* Of the newest RUN_PAGE_MAX runs; the same as before when the list cannot be read. */
static uint64_t runs_version(struct run_index *runs, uint64_t before)
{
    struct run_page page = {0};
    struct xp_error err;
    struct xp_span none = {0};
    if (run_index_list(runs, none, none, RUN_PAGE_MAX, &page, &err) != XP_OK)
        return before;
    uint64_t h = xp_fnv(XP_FNV_INIT, xp_span_of(&page.total, sizeof page.total));
    for (size_t i = 0; i < page.n; i++)
        h = hash_run(h, page.runs[i]);
    for (size_t i = 0; i < page.n_empty; i++)
        h = hash_run(h, page.empty[i]);
    run_page_fini(&page);
    return h;
}

/* Projects of an older and a newer table may share their runs. */
static struct list *list_of(struct events *e, const struct project *p)
{
    struct list *l = e->lists;
    while (l && l->project->runs != p->runs)
        l = l->next;
    if (l)
        return l;
    l = calloc(1, sizeof *l);
    XP_ASSERT(l);
    *l = (struct list){.next = e->lists, .project = project_ref(p)};
    return e->lists = l;
}

static void forget_lists(struct events *e)
{
    for (struct list **at = &e->lists; *at;) {
        struct list *l = *at;
        if (l->wanted) {
            l->wanted = false;
            at = &l->next;
            continue;
        }
        *at = l->next;
        project_unref(l->project);
        free(l);
    }
}

static void look_at_runs(struct events *e, struct client *const *v, size_t n, bool at_once)
{
    uint64_t began = xp_now_ns();
    for (size_t i = 0; i < n; i++) {
        if (v[i]->run)
            continue;
        struct list *l = list_of(e, v[i]->project);
        uint64_t now = xp_now_ns();
        l->wanted = true;
        if (now < l->due_ns && !(at_once && l->looked_ns < began))
            continue;
        l->version = runs_version(l->project->runs, l->version);
        l->facts = runfacts_version(e->app->facts);
        uint64_t took = xp_now_ns() - now; /* a list that costs much is looked at less often */
        l->looked_ns = now + took;
        l->due_ns = now + RUNS_NS + 10 * took;
    }
    forget_lists(e);
}

static void tell_runs(struct client *c)
{
    char text[64];
    const struct list *l = list_of(c->hub, c->project);
    uint64_t version = xp_fnv(l->version, xp_span_of(&l->facts, sizeof l->facts));
    if (c->runs_version == version)
        return;
    c->runs_version = version;
    snprintf(text, sizeof text, "{\"version\":\"%016llx\"}", (unsigned long long)c->runs_version);
    send_event(c, "runs", xp_span_str(text));
}

static void tell_captures(struct client *c)
{
    const struct captures *captures = c->hub->app->captures;
    char text[64];
    if (!captures || captures_reason(captures, c->project))
        return;
    uint64_t version = captures_version(captures);
    if (c->captures_version == version)
        return;
    c->captures_version = version;
    snprintf(text, sizeof text, "{\"version\":\"%016llx\"}", (unsigned long long)version);
    send_event(c, "captures", xp_span_str(text));
}

/* --- a load --- */

static struct xp_span copied(struct xp_span s)
{
    uint8_t *p = malloc(s.n + 1);
    XP_ASSERT(p);
    if (s.n)
        memcpy(p, s.p, s.n);
    return xp_span_of(p, s.n);
}

static void problem_text(const struct xp_error *err, struct xp_buf *b)
{
    struct xp_json j;
    xp_json_init(&j, b);
    xp_json_obj(&j);
    xp_json_key(&j, "status"), xp_json_i64(&j, xp_status_http(err->status));
    xp_json_key(&j, "code"), xp_json_str(&j, xp_status_code(err->status));
    xp_json_key(&j, "detail"), xp_json_str(&j, err->text);
    xp_json_obj_end(&j);
}

/* From any thread; the hub waits for it before it ends the stream. */
static void on_progress(void *ctx, struct shard_answer *sa)
{
    struct client *c = ctx;
    struct events *e = c->hub;
    struct xp_buf b;

    xp_buf_init(&b, EVENT_MAX);
    bool failed = sa->error.status != XP_OK;
    if (failed)
        problem_text(&sa->error, &b);
    else if (!sa->encoded)
        xp_buf_add(&b, sa->body->p, sa->body->n);
    xp_blob_unref(sa->body);
    pthread_mutex_lock(&e->lock);
    free((void *)c->got.p);
    c->got = b.failed || !b.n ? (struct xp_span){0} : copied(xp_buf_all(&b));
    c->failed = failed;
    c->asking = false;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
    xp_buf_fini(&b);
}

static void ask_progress(struct client *c)
{
    const struct run_host *h = c->host;
    struct shard_object o = {c->run->store, h->key, h->name, h->generation, h->size, h->gz};
    struct shard_request req = {
        .op = SHARD_PROGRESS, .objects = &o, .nobjects = 1, .cancel = http_cancel_flag(c->ex)};
    app_call(c->hub->app, &req, c->run, on_progress, c);
}

static bool is_over(struct xp_span progress)
{
    static const char *const ends[] = {"\"state\":\"ready\"", "\"state\":\"failed\""};
    for (size_t i = 0; i < 2; i++)
        if (memmem(progress.p, progress.n, ends[i], strlen(ends[i])))
            return true;
    return false;
}

/* Tells what is new and asks again; how often is the hub's pace. */
static void tell_progress(struct client *c)
{
    struct events *e = c->hub;
    pthread_mutex_lock(&e->lock);
    struct xp_span got = c->got;
    bool failed = c->failed, ask = !c->asking && !c->done;
    c->got = (struct xp_span){0};
    if (got.p && (failed || is_over(got)))
        c->done = true, ask = false;
    c->asking |= ask;
    pthread_mutex_unlock(&e->lock);
    if (got.p && !xp_span_eq(got, c->last)) {
        send_event(c, failed ? "problem" : "progress", got);
        free((void *)c->last.p);
        c->last = got;
    } else {
        free((void *)got.p);
    }
    if (ask)
        ask_progress(c);
}

/* --- the thread --- */

static void serve(struct client *c, bool stopping)
{
    struct events *e = c->hub;
    pthread_mutex_lock(&e->lock);
    bool asking = c->asking;
    pthread_mutex_unlock(&e->lock);
    bool over = c->until_ns && xp_now_ns() >= c->until_ns;
    if (stopping || over || http_cancelled(c->ex)) {
        c->ended = !asking;
        return;
    }
    if (c->run)
        tell_progress(c);
    else
        tell_runs(c), tell_captures(c);
    if (xp_now_ns() - c->sent_ns >= BEAT_NS) {
        struct xp_buf beat;
        xp_buf_init(&beat, 16);
        xp_buf_str(&beat, ":\n\n");
        post(c, &beat, false, false);
        c->sent_ns = xp_now_ns();
    }
}

/* Takes the streams that are over out of the list. Under the lock. */
static void unlink_ended(struct events *e)
{
    for (struct client **at = &e->clients; *at;) {
        struct client *c = *at;
        if (!c->ended) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        e->n--;
        struct xp_buf none = {0};
        post(c, &none, false, true);
    }
}

static void wait_a_while(struct events *e, bool loads)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (loads ? LOAD_TICK_MS : TICK_MS) * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (!e->poked && (!e->stopping || e->clients))
        pthread_cond_timedwait(&e->wake, &e->lock, &until);
}

static void *run_hub(void *arg)
{
    struct events *e = arg;
    struct client *v[EVENTS_MAX];

    pthread_mutex_lock(&e->lock);
    while (!e->stopping || e->clients) {
        if (!e->clients) {
            pthread_cond_wait(&e->wake, &e->lock);
            continue;
        }
        size_t n = 0;
        bool stopping = e->stopping, runs = e->runs_poked, loads = false;
        e->poked = e->runs_poked = false;
        for (struct client *c = e->clients; c; c = c->next)
            v[n++] = c;
        pthread_mutex_unlock(&e->lock);
        if (!stopping)
            look_at_runs(e, v, n, runs);
        for (size_t i = 0; i < n; i++) {
            serve(v[i], stopping);
            loads |= v[i]->run && !v[i]->done;
        }
        pthread_mutex_lock(&e->lock);
        unlink_ended(e);
        wait_a_while(e, loads);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

/* --- life --- */

struct events *events_new(struct app *app)
{
    struct events *e = calloc(1, sizeof *e);
    pthread_condattr_t attr;

    XP_ASSERT(e);
    e->app = app;
    pthread_mutex_init(&e->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&e->wake, &attr);
    pthread_condattr_destroy(&attr);
    XP_ASSERT(pthread_create(&e->thread, NULL, run_hub, e) == 0);
    return e;
}

void events_stop(struct events *e)
{
    pthread_mutex_lock(&e->lock);
    e->stopping = true;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
}

void events_poke(struct events *e, bool runs)
{
    pthread_mutex_lock(&e->lock);
    e->poked = true;
    e->runs_poked |= runs;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
}

void events_free(struct events *e)
{
    if (!e)
        return;
    events_stop(e);
    pthread_join(e->thread, NULL);
    forget_lists(e);
    pthread_cond_destroy(&e->wake);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

enum xp_status events_add(struct events *e, struct http_exchange *ex, const struct project *project,
                          const struct run *run, const struct run_host *host, struct xp_error *err)
{
    struct xp_buf none = {0};
    struct client *c = calloc(1, sizeof *c);

    XP_ASSERT(c);
    *c = (struct client){.hub = e,
                         .ex = ex,
                         .project = project_ref(project),
                         .run = run,
                         .host = host,
                         .sent_ns = xp_now_ns()};
    if (!gate_is_open(e->app->gate))
        c->until_ns = c->sent_ns + LIFE_NS;
    pthread_mutex_lock(&e->lock);
    bool full = e->n == EVENTS_MAX || e->stopping;
    if (!full) {
        post(c, &none, true, false);
        c->next = e->clients;
        e->clients = c;
        e->n++;
        pthread_cond_signal(&e->wake);
    }
    pthread_mutex_unlock(&e->lock);
    if (!full)
        return XP_OK;
    project_unref(project);
    free(c);
    return xp_fail(err, XP_BUSY, 0, "%d event streams are open, no more are served", EVENTS_MAX);
}
