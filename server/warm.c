#include "server/warm.h"

#include <pthread.h>
#include <stdlib.h>

struct warm_job {
    struct app *app;
    const struct run *run;
    size_t at; /* host that is being loaded */
    _Atomic int state;
    struct warm_job *next;
};

/* Whether shard_call has returned and whether its answer came: the second to happen goes on, so
 * that refusals, answered inside the call, do not nest. */
enum { CALLING, RETURNED, ANSWERED };

struct warm {
    pthread_mutex_t lock;
    struct warm_job *first, *last; /* first: under way */
    int n;
};

struct warm *warm_new(void)
{
    struct warm *w = calloc(1, sizeof *w);
    XP_ASSERT(w);
    pthread_mutex_init(&w->lock, NULL);
    return w;
}

void warm_free(struct warm *w)
{
    if (!w)
        return;
    XP_ASSERT(w->n == 0);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* Ends the first job; returns the next. */
static struct warm_job *end_job(struct warm_job *job)
{
    struct app *app = job->app;
    struct warm *w = app->warm;
    pthread_mutex_lock(&w->lock);
    struct warm_job *next = w->first = job->next;
    if (!next)
        w->last = NULL;
    w->n--;
    pthread_mutex_unlock(&w->lock);
    run_unref(job->run);
    free(job);
    if (!next)
        atomic_fetch_sub(&app->asks, 1); /* the last touch of app */
    return next;
}

static void on_loaded(void *ctx, struct shard_answer *sa);

static void load(struct warm_job *job)
{
    static const struct shard_arg whole = {{(const uint8_t *)"wait", 4},
                                           {(const uint8_t *)"all", 3}};
    const struct run_host *h = &job->run->hosts[job->at];
    struct shard_object o = {job->run->store, h->key, h->name, h->generation, h->size, h->gz};
    struct shard_request req = {.op = SHARD_TRACKS,
                                .tool = "",
                                .objects = &o,
                                .nobjects = 1,
                                .args = &whole,
                                .nargs = 1,
                                .cancel = &job->app->stopping};
    app_call(job->app, &req, job->run, on_loaded, job);
}

static void run_jobs(struct warm_job *job)
{
    while (job) {
        if (job->at == job->run->n_hosts || atomic_load(&job->app->stopping)) {
            job = end_job(job);
            continue;
        }
        atomic_store(&job->state, CALLING);
        load(job);
        if (atomic_exchange(&job->state, RETURNED) != ANSWERED)
            return;
    }
}

static void on_loaded(void *ctx, struct shard_answer *sa)
{
    struct warm_job *job = ctx;
    xp_blob_unref(sa->body);
    job->at++; /* whatever came of it: who looks at the run will be told */
    if (atomic_exchange(&job->state, ANSWERED) == RETURNED)
        run_jobs(job);
}

enum xp_status warm_start(struct app *app, const struct run *run, struct xp_error *err)
{
    struct warm *w = app->warm;
    struct warm_job *job = calloc(1, sizeof *job);
    XP_ASSERT(job);
    *job = (struct warm_job){.app = app, .run = run_ref(run)};
    pthread_mutex_lock(&w->lock);
    bool full = w->n == WARM_JOBS_MAX, idle = w->n == 0;
    if (!full) {
        if (w->last)
            w->last->next = job;
        else
            w->first = job;
        w->last = job;
        w->n++;
        if (idle)
            atomic_fetch_add(&app->asks, 1);
    }
    pthread_mutex_unlock(&w->lock);
    if (full) {
        run_unref(job->run);
        free(job);
        return xp_fail(err, XP_BUSY, 0, "too many runs wait to be loaded; try again later");
    }
    if (idle)
        run_jobs(job);
    return XP_OK;
}
