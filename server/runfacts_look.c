/* Runs looked at, one at a time: those that somebody has open, and by and by the newest. */
#include "lib/base/clock.h"
#include "server/runfacts_int.h"
#include "server/runs_int.h"

struct look {
    struct runfacts *rf;
    struct runfacts_wish wish;
    struct shard_object *objects;
    struct shard_arg *args;
    uint64_t began_ns;
};

static void wish_drop(struct runfacts_wish *w)
{
    run_unref(w->run);
    project_unref(w->project);
    *w = (struct runfacts_wish){0};
}

void runfacts_forget_wishes(struct runfacts *rf)
{
    for (size_t i = 0; i < rf->n_queue; i++)
        wish_drop(&rf->queue[i]);
    for (size_t i = 0; i < rf->n_newest; i++)
        wish_drop(&rf->newest[i]);
    for (size_t i = 0; i < RUNFACTS_PROJECTS; i++) {
        project_unref(rf->places[i].project);
        rf->places[i] = (struct runfacts_place){0};
    }
    rf->n_queue = rf->n_newest = 0;
}

/* --- a look --- */

/* Whether it would end so again tomorrow. */
static bool is_final(enum xp_status status)
{
    return status == XP_CORRUPT || status == XP_TOO_LARGE;
}

/* The last touch of all but the flag. */
static void look_end(struct look *l)
{
    struct runfacts *rf = l->rf;
    struct app *app = rf->app;
    wish_drop(&l->wish);
    pthread_mutex_lock(&rf->lock);
    /* By and by takes no more than half of the time. */
    rf->rest_until_ns = 2 * xp_now_ns() - l->began_ns;
    rf->busy = false;
    pthread_mutex_unlock(&rf->lock);
    free(l->objects);
    free(l->args);
    free(l);
    atomic_fetch_sub(&app->asks, 1);
}

static void on_report(void *ctx, struct shard_answer *sa)
{
    struct look *l = ctx;
    enum xp_status status = sa->error.status;
    const struct run_facts *f = NULL;
    if (status == XP_OK && !sa->volatile_answer)
        f = runfacts_read(xp_span_of(sa->body->p, sa->body->n), sa->encoded);
    else if (status != XP_OK && is_final(status))
        f = run_facts_failed(sa->error.text);
    if (f && !f->passing) {
        runfacts_put(l->rf, l->wish.run, f);
    } else { /* a report that cannot be read, too */
        runfacts_put_off(l->rf, l->wish.run);
        run_facts_unref(f);
    }
    xp_blob_unref(sa->body);
    look_end(l);
}

static void begin(struct runfacts *rf, struct runfacts_wish wish)
{
    struct app *app = rf->app;
    const struct run *r = wish.run;
    struct look *l = must(calloc(1, sizeof *l));
    size_t nargs = 0;

    atomic_fetch_add(&app->asks, 1);
    *l = (struct look){.rf = rf, .wish = wish, .began_ns = xp_now_ns()};
    l->objects = must(calloc(r->n_hosts, sizeof *l->objects));
    for (size_t i = 0; i < r->n_hosts; i++) {
        const struct run_host *h = &r->hosts[i];
        l->objects[i] =
            (struct shard_object){r->store, h->key, h->name, h->generation, h->size, h->gz};
    }
    while (app->peaks && app->peaks[nargs])
        nargs++;
    l->args = must(calloc(nargs + 1, sizeof *l->args));
    for (size_t i = 0; i < nargs; i++)
        l->args[i] = (struct shard_arg){XP_SPAN_LIT("peak"), xp_span_str(app->peaks[i])};
    struct shard_request req = {.op = SHARD_REPORT,
                                .tool = "run_facts",
                                .objects = l->objects,
                                .nobjects = r->n_hosts,
                                .args = l->args,
                                .nargs = nargs,
                                .aside = true,
                                .cancel = &app->stopping};
    app_call(app, &req, r, on_report, l);
}

/* --- which --- */

/* Takes the oldest of those that somebody has open. */
static bool take_opened(struct runfacts *rf, struct runfacts_wish *w)
{
    pthread_mutex_lock(&rf->lock);
    bool any = rf->n_queue > 0;
    if (any) {
        *w = rf->queue[0];
        memmove(rf->queue, rf->queue + 1, --rf->n_queue * sizeof *rf->queue);
    }
    pthread_mutex_unlock(&rf->lock);
    return any;
}

/* A project whose list was looked at lately, and whose newest runs were not asked for just now. */
static const struct project *place_due(struct runfacts *rf)
{
    uint64_t now = xp_now_ns();
    const struct project *p = NULL;
    pthread_mutex_lock(&rf->lock);
    for (size_t i = 0; i < RUNFACTS_PROJECTS && !p; i++) {
        struct runfacts_place *at = &rf->places[i];
        if (!at->project || now - at->wanted_ns > RUNFACTS_INTEREST_NS ||
            now - at->filled_ns < RUNFACTS_REFILL_NS)
            continue;
        at->filled_ns = now;
        p = project_ref(at->project);
    }
    pthread_mutex_unlock(&rf->lock);
    return p;
}

static bool is_small(const struct runfacts *rf, const struct run *r)
{
    return r->bytes <= rf->limit && r->n_hosts <= RUNFACTS_HOSTS_MAX;
}

/* Fills `newest`, the newest last; looks at the first bytes of others' files, too. */
static void refill(struct runfacts *rf)
{
    const struct project *p = place_due(rf);
    struct run_page page = {0};
    struct xp_error err;
    struct xp_span none = {0};
    if (!p)
        return;
    if (run_index_list(p->runs, none, none, RUNFACTS_NEWEST, &page, &err) == XP_OK) {
        for (size_t i = page.n; i-- > 0;) {
            const struct run *r = page.runs[i];
            if (!run_is_looked_at(r) && !atomic_load(&rf->app->stopping)) {
                run_look(r);
                atomic_fetch_add(&rf->version, run_unreadable_hosts(r, NULL, NULL) > 0);
            }
            if (is_small(rf, r) && runfacts_wants(rf, r))
                rf->newest[rf->n_newest++] = (struct runfacts_wish){project_ref(p), run_ref(r)};
        }
        run_page_fini(&page);
    }
    project_unref(p);
}

/* Nobody waits for anything. */
static bool is_quiet(const struct runfacts *rf)
{
    return atomic_load(&rf->app->asks) == 0 && xp_workers_waiting(rf->app->workers) == 0;
}

static bool take_newest(struct runfacts *rf, struct runfacts_wish *w)
{
    if (!rf->limit || !is_quiet(rf))
        return false;
    if (!rf->n_newest)
        refill(rf);
    while (rf->n_newest) {
        *w = rf->newest[--rf->n_newest];
        if (runfacts_wants(rf, w->run))
            return true;
        wish_drop(w);
    }
    return false;
}

void runfacts_turn(void *ctx)
{
    struct runfacts *rf = ctx;
    struct runfacts_wish w;
    pthread_mutex_lock(&rf->lock);
    bool free_now = !rf->busy && !rf->stopping, rested = xp_now_ns() >= rf->rest_until_ns;
    pthread_mutex_unlock(&rf->lock);
    if (atomic_load(&rf->app->stopping) || !free_now)
        return;
    if (rf->path && xp_now_ns() - rf->saved_ns > RUNFACTS_SAVE_NS)
        runfacts_save(rf);
    if (!take_opened(rf, &w) && !(rested && take_newest(rf, &w)))
        return;
    pthread_mutex_lock(&rf->lock);
    rf->busy = true;
    pthread_mutex_unlock(&rf->lock);
    begin(rf, w);
}
