#include "server/app.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "server/api.h"
#include "server/ask.h"
#include "server/events.h"
#include "server/metrics.h"
#include "server/pages.h"
#include "server/stock.h"
#include "server/upstream.h"
#include "server/warm.h"
#include "server/xprof.h"

/* Of the memory there is, the share for profiles; the rest is for buffers, answers and the
 * system's page cache. */
#define BUDGET_SHARE 0.6

static const struct route api_routes[] = {
#define API(path, fn, op) {path, fn, op},
#define XPROF(path, fn, op)
#include "server/routes.def"
#undef API
#undef XPROF
};

static const struct route xprof_routes[] = {
#define API(path, fn, op)
#define XPROF(path, fn, op) {path, fn, op},
#include "server/routes.def"
#undef API
#undef XPROF
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char *const route_names[] = {
#define API(path, fn, op) "api/" path,
#define XPROF(path, fn, op)
#include "server/routes.def"
#undef API
#undef XPROF
#define API(path, fn, op)
#define XPROF(path, fn, op) "xprof/" path,
#include "server/routes.def"
#undef API
#undef XPROF
};

static const struct route *find_route(const struct route *routes, size_t n, struct xp_span path)
{
    for (size_t i = 0; i < n; i++)
        if (xp_span_eq(xp_span_str(routes[i].path), path))
            return &routes[i];
    return NULL;
}

/* --- life --- */

uint64_t app_memory_budget(const struct options *o)
{
    if (o->memory_budget)
        return (uint64_t)o->memory_budget;
    return (uint64_t)((double)options_memory_limit() * BUDGET_SHARE);
}

enum xp_status app_new(const struct options *o, const char *version, struct xp_workers *workers,
                       struct app **out, struct xp_error *err)
{
    struct app *app = calloc(1, sizeof *app);

    XP_ASSERT(app);
    app->workers = workers;
    app->version = version;
    app->location = o->logdir;
    app->peaks = o->peaks;
    app->started_ns = xp_now_ns();
    enum xp_status status = xp_store_open_path(o->logdir, &app->store, err);
    if (status == XP_OK && o->ui)
        status = stock_open(o->ui + strlen("stock="), &app->stock, err);
    if (status == XP_OK && o->rpc_key)
        status = xp_sign_open(o->rpc_key, &app->keys, err);
    if (status == XP_OK && o->role == ROLE_FRONTEND)
        status = upstream_new(&(struct upstream_config){o->shards, app->keys}, &app->upstream, err);
    if (status != XP_OK) {
        if (app->store)
            xp_store_free(app->store);
        stock_free(app->stock);
        xp_sign_close(app->keys);
        free(app);
        return status;
    }
    app->runs = run_index_new(&app->store, 1);
    XP_ASSERT(app->runs);
    if (!app->upstream)
        app->shard = shard_new(workers, app_memory_budget(o));
    app->warm = warm_new();
    app->events = events_new(app);
    app->metrics = metrics_new(route_names, COUNT(route_names));
    *out = app;
    return XP_OK;
}

void app_stop(struct app *app)
{
    atomic_store(&app->stopping, true);
    events_stop(app->events);
}

void app_free(struct app *app)
{
    if (!app)
        return;
    while (atomic_load(&app->asks) > 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    events_free(app->events);
    shard_free(app->shard);
    upstream_free(app->upstream);
    xp_sign_close(app->keys);
    warm_free(app->warm);
    run_index_free(app->runs);
    xp_store_free(app->store);
    stock_free(app->stock);
    metrics_free(app->metrics);
    free(app);
}

struct metrics *app_metrics(struct app *app, struct metrics_sources *from)
{
    from->shard = app->shard;
    from->upstream = app->upstream;
    return app->metrics;
}

/* --- a request's way --- */

static void problem(struct http_exchange *ex, enum xp_status status, const char *text)
{
    struct http_answer a;
    struct xp_error err;
    xp_fail(&err, status, 0, "%s", text);
    http_answer_problem(&a, &err);
    if (status == XP_METHOD)
        http_answer_header(&a, "allow", XP_SPAN_LIT("GET, HEAD"));
    http_answer(ex, &a);
}

static void not_found(struct http_exchange *ex)
{
    static const char text[] = "Not Found";
    struct http_answer a;
    http_answer_init(&a, 404, "text/plain");
    a.body = (uint8_t *)text;
    a.body_n = sizeof text - 1;
    a.is_static = true;
    http_answer(ex, &a);
}

static enum xp_work_next run_ask(void *ctx)
{
    struct ask *ask = ctx;
    ask->route->fn(ask);
    return XP_WORK_DONE;
}

static void start(struct app *app, struct http_exchange *ex, const struct route *route,
                  bool compatible)
{
    struct http_answer a;
    struct xp_error err = {0};
    struct ask *ask;

    if (ask_new(app, ex, route, &ask, &err) != XP_OK) {
        http_answer_problem(&a, &err);
        http_answer(ex, &a);
        return;
    }
    ask->compatible = compatible;
    ask->number = compatible ? COUNT(api_routes) + (size_t)(route - xprof_routes)
                             : (size_t)(route - api_routes);
    if (xp_workers_post(app->workers, XP_WORK_QUERY, run_ask, ask) != XP_OK) {
        xp_fail(&err, XP_BUSY, 0, "too many requests are waiting; try again in a moment");
        ask_problem(ask, &err);
    }
}

/* Cuts prefix off path if it begins with it. */
static bool cut(struct xp_span *path, const char *prefix)
{
    struct xp_span p = xp_span_str(prefix);
    if (!xp_span_starts(*path, p))
        return false;
    *path = xp_span_of(path->p + p.n, path->n - p.n);
    return true;
}

static bool is_read(const struct http_exchange *ex)
{
    enum http_method m = http_request(ex)->method;
    return m == HTTP_GET || m == HTTP_HEAD;
}

static void api(struct app *app, struct http_exchange *ex, struct xp_span path)
{
    const struct route *route = find_route(api_routes, COUNT(api_routes), path);
    if (!route)
        problem(ex, XP_NOT_FOUND, "there is no such endpoint in this API");
    else if (!is_read(ex))
        problem(ex, XP_METHOD, "this resource is only read: GET or HEAD");
    else
        start(app, ex, route, false);
}

/* XProf ignores one trailing slash. */
static bool xprof(struct app *app, struct http_exchange *ex, struct xp_span path)
{
    if (path.n && path.p[path.n - 1] == '/')
        path.n--;
    const struct route *route = find_route(xprof_routes, COUNT(xprof_routes), path);
    if (route)
        start(app, ex, route, true);
    return route != NULL;
}

/* What lies below /p/<project>/. */
static void project(struct app *app, struct http_exchange *ex, struct xp_span path)
{
    const uint8_t *slash = memchr(path.p, '/', path.n);
    struct xp_span name = xp_span_of(path.p, slash ? (size_t)(slash - path.p) : path.n);

    if (!xp_span_eq(name, XP_SPAN_LIT("local"))) {
        problem(ex, XP_NOT_FOUND, "there is no such project here; a directory is \"local\"");
        return;
    }
    if (!slash) {
        pages_redirect(ex, "local/");
        return;
    }
    path = xp_span_of(slash + 1, path.n - name.n - 1);
    if (cut(&path, "api/v1/"))
        api(app, ex, path);
    else if (cut(&path, "data/plugin/profile/")) {
        if (!xprof(app, ex, path))
            not_found(ex);
    } else if (!is_read(ex))
        problem(ex, XP_METHOD, "a page is only read: GET or HEAD");
    else if (!pages_answer(ex, path))
        not_found(ex);
}

/* What lies at the root: XProf's routes, its pages if it is told to, and our assets. */
static void root(struct app *app, struct http_exchange *ex, struct xp_span path)
{
    bool below = xp_span_eq(path, XP_SPAN_LIT("data/plugin/profile"));
    if (below)
        path.n = 0;
    else
        below = cut(&path, "data/plugin/profile/");
    bool page = is_read(ex) && (path.n == 0 || below || memchr(path.p, '.', path.n) ||
                                (app->stock && xp_span_eq(path, XP_SPAN_LIT("local"))));

    if (xprof(app, ex, path) || (page && app->stock && stock_answer(app->stock, ex, path, below)))
        return;
    if (path.n == 0 && !below)
        pages_redirect(ex, "p/local/");
    else if (below || !page || !pages_answer(ex, path))
        not_found(ex);
}

void app_handle(void *ctx, struct http_exchange *ex)
{
    struct app *app = ctx;
    struct xp_span path = http_request(ex)->path;

    cut(&path, "/");
    if (cut(&path, "p/"))
        project(app, ex, path);
    else if (cut(&path, "api/v1/"))
        api(app, ex, path);
    else
        root(app, ex, path);
}
