#include "shard/gather.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct gather {
    struct xp_workers *workers;
    struct shard_request req; /* arrays are copies, what they point to is the caller's */
    shard_ask_fn ask;
    void *ask_ctx;
    struct gather_calls calls;
    void *ctx;
    uint32_t *theirs; /* objects that are peers' */
    size_t n, window;
    pthread_mutex_t lock; /* n and the next two */
    size_t next, settled;
};

/* One host that is asked for. */
struct asked {
    struct gather *g;
    size_t i;
    struct shard_answer answer;
};

static void *copy(const void *p, size_t n)
{
    void *to = malloc(n ? n : 1);
    XP_ASSERT(to);
    if (n)
        memcpy(to, p, n);
    return to;
}

static enum shard_op map_of(enum shard_op op)
{
    switch (op) {
    case SHARD_TOOL_CSV:
        return SHARD_MAP_CSV;
    case SHARD_REPORT:
        return SHARD_MAP_REPORT;
    case SHARD_REPORT_CSV:
        return SHARD_MAP_REPORT_CSV;
    default:
        return SHARD_MAP;
    }
}

struct gather *gather_new(struct xp_workers *w, const struct shard_request *req, shard_ask_fn ask,
                          void *ask_ctx, const struct gather_calls *calls, void *ctx)
{
    size_t n = 0;
    for (size_t i = 0; i < req->nobjects; i++)
        n += req->owners[i].first != 0;
    if (n == 0)
        return NULL;
    struct gather *g = calloc(1, sizeof *g);
    XP_ASSERT(g);
    *g = (struct gather){.workers = w, .req = *req, .ask = ask, .ask_ctx = ask_ctx};
    g->calls = *calls;
    g->ctx = ctx;
    g->req.op = map_of(req->op);
    g->req.objects = copy(req->objects, req->nobjects * sizeof *req->objects);
    g->req.owners = copy(req->owners, req->nobjects * sizeof *req->owners);
    g->req.peers = copy(req->peers, req->npeers * sizeof *req->peers);
    g->theirs = copy(NULL, 0);
    g->theirs = realloc(g->theirs, n * sizeof *g->theirs);
    XP_ASSERT(g->theirs);
    for (size_t i = 0; i < req->nobjects; i++)
        if (req->owners[i].first)
            g->theirs[g->n++] = (uint32_t)i;
    g->window = req->npeers * GATHER_EACH < GATHER_MAX ? req->npeers * GATHER_EACH : GATHER_MAX;
    pthread_mutex_init(&g->lock, NULL);
    return g;
}

static void free_gather(struct gather *g)
{
    free((void *)g->req.objects);
    free((void *)g->req.owners);
    free((void *)g->req.peers);
    free(g->theirs);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

static void ask_one(struct gather *g, size_t i);

/* The host is done with, one way or another. In one step with the next: there is one under way as
 * long as not all are settled. */
static void settle(struct gather *g)
{
    pthread_mutex_lock(&g->lock);
    bool last = ++g->settled == g->n;
    bool more = g->next < g->n;
    size_t i = more ? g->theirs[g->next++] : 0;
    pthread_mutex_unlock(&g->lock);
    if (more)
        ask_one(g, i);
    if (last) {
        g->calls.rest(g->ctx);
        free_gather(g);
    }
}

/* Did the peer look at the host, so that anyone else would say the same? */
static bool is_final(enum xp_status status)
{
    return status == XP_CORRUPT || status == XP_NOT_FOUND || status == XP_CANCELLED;
}

static enum xp_work_next take(void *ctx)
{
    struct asked *asked = ctx;
    struct gather *g = asked->g;
    struct shard_answer *a = &asked->answer;
    if (a->error.status == XP_OK) {
        struct xp_span one = a->body ? xp_span_of(a->body->p, a->body->n) : (struct xp_span){0};
        g->calls.partial(g->ctx, asked->i, one, &a->damage);
    } else if (is_final(a->error.status)) {
        g->calls.unreadable(g->ctx, asked->i, &a->error);
    } else {
        g->calls.here(g->ctx, asked->i);
    }
    xp_blob_unref(a->body);
    free(asked);
    settle(g);
    return XP_WORK_DONE;
}

/* On a thread that others wait for. The class that is never refused: what came is not given up. */
static void on_answer(void *ctx, struct shard_answer *a)
{
    struct asked *asked = ctx;
    asked->answer = *a;
    XP_ASSERT(xp_workers_post(asked->g->workers, XP_WORK_LOAD, take, asked) == XP_OK);
}

static void ask_one(struct gather *g, size_t i)
{
    const struct shard_owner *owner = &g->req.owners[i];
    const struct shard_peer *peers[2];
    struct shard_request req = g->req;
    struct asked *asked = calloc(1, sizeof *asked);
    size_t n = 0;

    XP_ASSERT(asked);
    peers[n++] = &req.peers[owner->first - 1];
    if (owner->next && owner->next != owner->first)
        peers[n++] = &req.peers[owner->next - 1];
    asked->g = g;
    asked->i = i;
    req.objects = &g->req.objects[i];
    req.nobjects = 1;
    req.owners = NULL;
    req.peers = NULL;
    req.npeers = 0;
    req.index = (uint32_t)i;
    req.gzip = false;
    g->ask(g->ask_ctx, peers, n, &req, on_answer, asked);
}

void gather_start(struct gather *g)
{
    /* Answers may come, and all of it end, before this is through. */
    size_t n = g->n < g->window ? g->n : g->window;
    uint32_t first[GATHER_MAX];
    memcpy(first, g->theirs, n * sizeof *first);
    g->next = n;
    for (size_t i = 0; i < n; i++)
        ask_one(g, first[i]);
}

void gather_stop(struct gather *g)
{
    pthread_mutex_lock(&g->lock);
    g->n = g->next; /* only those that are asked for are waited for */
    pthread_mutex_unlock(&g->lock);
}
