#include "server/app.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "server/api.h"
#include "server/ask.h"
#include "server/capture/capture.h"
#include "server/events.h"
#include "server/links.h"
#include "server/login.h"
#include "server/metrics.h"
#include "server/pages.h"
#include "server/ratelimit.h"
#include "server/runfacts.h"
#include "server/runs.h"
#include "server/stock.h"
#include "server/uploads.h"
#include "server/upstream.h"
#include "server/warm.h"
#include "server/xprof.h"

/* Of the memory there is, the share for profiles; the rest is for buffers, answers and the
 * system's page cache. */
#define BUDGET_SHARE 0.6

/* Requests a second, where there are identities: of one, and of one address without. */
#define RATE_WHO 200
#define RATE_ADDRESS 20

/* An upload of which nothing has come for that long is given up. */
#define UPLOAD_STALL_MS 120000
#define UPLOAD_FIRST_MS 20000 /* a piece's request has 15 s to come */
#define MINUTE_MS 60000

/* For the small objects of share links. */
#define LINKS_BUCKET_MEMORY ((size_t)4 << 20)

static const struct route api_routes[] = {
#define API(methods, path, fn, op, right) {methods, path, fn, op, right},
#define XPROF(path, fn, op, right)
#include "server/routes.def"
#undef API
#undef XPROF
};

static const struct route xprof_routes[] = {
#define API(methods, path, fn, op, right)
#define XPROF(path, fn, op, right) {METHOD_ANY, path, fn, op, right},
#include "server/routes.def"
#undef API
#undef XPROF
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char *const route_names[] = {
#define API(methods, path, fn, op, right) "api/" path,
#define XPROF(path, fn, op, right)
#include "server/routes.def"
#undef API
#undef XPROF
#define API(methods, path, fn, op, right)
#define XPROF(path, fn, op, right) "xprof/" path,
#include "server/routes.def"
#undef API
#undef XPROF
};

static int method_of(const struct http_exchange *ex)
{
    switch (http_request(ex)->method) {
    case HTTP_GET:
    case HTTP_HEAD:
        return METHOD_READ;
    case HTTP_POST:
        return METHOD_POST;
    case HTTP_DELETE:
        return METHOD_DELETE;
    default:
        return 0;
    }
}

/* The row of that path and method; *allowed: the methods of all rows of the path. */
static const struct route *find_route(const struct route *routes, size_t n, struct xp_span path,
                                      int method, int *allowed)
{
    const struct route *found = NULL;
    *allowed = 0;
    for (size_t i = 0; i < n; i++) {
        if (!xp_span_eq(xp_span_str(routes[i].path), path))
            continue;
        *allowed |= routes[i].methods;
        if (routes[i].methods & (method | METHOD_ANY))
            found = &routes[i];
    }
    return found;
}

/* --- life --- */

uint64_t app_memory_budget(const struct options *o)
{
    if (o->memory_budget)
        return (uint64_t)o->memory_budget;
    return (uint64_t)((double)options_memory_limit() * BUDGET_SHARE);
}

static enum xp_status open_links(const struct options *o, struct links **out, struct xp_error *err)
{
    struct xp_bucket_options bucket = {.gcs_endpoint = o->gcs_endpoint,
                                       .s3_endpoint = o->s3_endpoint,
                                       .memory = LINKS_BUCKET_MEMORY};
    return links_new(&(struct links_config){o->link_keys, o->state, &bucket}, out, err);
}

/* Who comes in: the gate, and what is told and limited there. */
static enum xp_status open_gate(const struct options *o, struct app *app, struct xp_error *err)
{
    XP_TRY(gate_new(o, &app->gate, err));
    bool open = gate_is_open(app->gate);
    double who = o->rate_limit >= 0 ? (double)o->rate_limit : open ? 0 : RATE_WHO;
    double address = o->rate_limit_address >= 0 ? (double)o->rate_limit_address : RATE_ADDRESS;
    app->by_who = ratelimit_new(who);
    app->by_address = ratelimit_new(open ? 0 : address);
    return open && !o->audit_log ? XP_OK : audit_open(o->audit_log, &app->audit, err);
}

static void close_gate(struct app *app)
{
    gate_free(app->gate);
    ratelimit_free(app->by_who);
    ratelimit_free(app->by_address);
    audit_close(app->audit);
}

/* That nothing is to be seen there may be meant, runs can come later; or it is the wrong place. */
static enum xp_work_next look_at_start(void *ctx)
{
    struct app *app = ctx;
    const struct project *p = projects_default(app->projects);
    struct run_page page = {0};

    if (p &&
        run_index_list(p->runs, (struct xp_span){0}, (struct xp_span){0}, 1, &page, NULL) ==
            XP_OK &&
        page.found)
        xp_log(XP_LOG_WARN, "runs", "%s: found %s; expected %s", page.read, page.found,
               page.expected);
    run_page_fini(&page);
    project_unref(p);
    atomic_fetch_sub(&app->asks, 1);
    return XP_WORK_DONE;
}

/* Of directories only: a bucket is asked when somebody asks. */
static bool has_directories(const struct app *app)
{
    const struct project *p = projects_default(app->projects);
    bool all = p != NULL;
    for (size_t i = 0; p && i < p->n_roots; i++)
        all &= !xp_store_is_remote(p->stores[i]);
    project_unref(p);
    return all;
}

static void look_later(struct app *app)
{
    atomic_fetch_add(&app->asks, 1);
    if (xp_workers_post(app->workers, XP_WORK_QUERY, look_at_start, app) != XP_OK)
        atomic_fetch_sub(&app->asks, 1);
}

/* A frontend has no memory for profiles: there no run is looked at though nobody asked. */
static enum xp_status open_facts(const struct options *o, struct app *app, struct xp_error *err)
{
    struct runfacts_config config = {.app = app,
                                     .limit = o->role == ROLE_ALL ? (uint64_t)o->figures_limit : 0,
                                     .dir = o->figures_dir};
    return options_blame("figures-dir", runfacts_new(&config, &app->facts, err), err);
}

static void captures_changed(void *ctx, bool runs)
{
    const struct app *app = ctx;
    events_poke(app->events, runs);
}

/* After the events, which it tells. */
static enum xp_status open_captures(const struct options *o, struct app *app, struct xp_error *err)
{
    const struct project *p = projects_default(app->projects);
    enum xp_status status = captures_new(
        &(struct captures_config){
            .targets = o->targets, .project = p, .changed = captures_changed, .ctx = app},
        &app->captures, err);
    project_unref(p);
    return status;
}

enum xp_status app_new(const struct options *o, const char *version, struct xp_workers *workers,
                       struct app **out, struct xp_error *err)
{
    struct app *app = calloc(1, sizeof *app);

    XP_ASSERT(app);
    app->workers = workers;
    app->version = version;
    app->peaks = o->peaks;
    app->started_ns = xp_now_ns();
    enum xp_status status = open_gate(o, app, err);
    struct projects_config config = {o->logdir, o->projects, o->default_project, app->audit};
    if (status == XP_OK)
        status = projects_new(&config, &app->projects, err);
    if (status == XP_OK && o->ui)
        status = stock_open(o->ui + strlen("stock="), &app->stock, err);
    if (status == XP_OK && o->rpc_key)
        status = options_blame("rpc-key", xp_keyring_open(o->rpc_key, &app->keys, err), err);
    if (status == XP_OK && o->role == ROLE_FRONTEND)
        status = upstream_new(&(struct upstream_config){o->shards, app->keys}, &app->upstream, err);
    if (status == XP_OK && o->link_keys)
        status = open_links(o, &app->links, err);
    if (status == XP_OK)
        status = open_facts(o, app, err);
    if (status == XP_OK)
        app->events = events_new(app);
    if (status == XP_OK && !app->upstream)
        status = open_captures(o, app, err);
    if (status != XP_OK) {
        events_free(app->events);
        runfacts_free(app->facts);
        close_gate(app);
        links_free(app->links);
        projects_free(app->projects);
        stock_free(app->stock);
        xp_keyring_close(app->keys);
        free(app);
        return status;
    }
    if (!app->upstream)
        app->shard = shard_new(workers, app_memory_budget(o));
    if (!app->upstream && o->upload_limit)
        app->uploads =
            uploads_new(&(struct uploads_config){.limit = (uint64_t)o->upload_limit,
                                                 .keep_ms = o->upload_minutes * MINUTE_MS,
                                                 .stall_ms = UPLOAD_STALL_MS,
                                                 .first_ms = UPLOAD_FIRST_MS,
                                                 .shares = !gate_is_open(app->gate)});
    app->warm = warm_new();
    app->metrics = metrics_new(route_names, COUNT(route_names));
    runfacts_start(app->facts);
    if (has_directories(app))
        look_later(app);
    *out = app;
    return XP_OK;
}

void app_stop(struct app *app)
{
    atomic_store(&app->stopping, true);
    captures_stop(app->captures);
    events_stop(app->events);
}

void app_free(struct app *app)
{
    if (!app)
        return;
    runfacts_stop(app->facts);
    gate_settle(app->gate);
    while (atomic_load(&app->asks) > 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    captures_free(app->captures);
    events_free(app->events);
    runfacts_free(app->facts);
    shard_free(app->shard);
    upstream_free(app->upstream);
    xp_keyring_close(app->keys);
    warm_free(app->warm);
    links_free(app->links);
    uploads_free(app->uploads);
    projects_free(app->projects);
    close_gate(app);
    stock_free(app->stock);
    metrics_free(app->metrics);
    free(app);
}

struct metrics *app_metrics(struct app *app, struct metrics_sources *from)
{
    from->shard = app->shard;
    from->upstream = app->upstream;
    from->links = app->links;
    from->captures = app->captures;
    return app->metrics;
}

/* --- a request's way --- */

/* A request, who asks, and the project that it names; until it is answered or an ask is made. */
struct way {
    struct app *app;
    struct http_exchange *ex;
    const struct who *who;
    const struct project *project; /* NULL: none is named, or the asker may not see it */
    enum right right;              /* of who in project */
    bool by_link;                  /* no right of one's own: what link says may be read */
    struct link_claims link;
};

static void answer_problem(struct http_exchange *ex, enum xp_status status, const char *allow,
                           const char *text)
{
    struct http_answer a;
    struct xp_error err;
    xp_fail(&err, status, 0, "%s", text);
    http_answer_problem(&a, &err);
    if (allow)
        http_answer_header(&a, "allow", xp_span_str(allow));
    http_answer(ex, &a);
}

static void problem(struct http_exchange *ex, enum xp_status status, const char *text)
{
    answer_problem(ex, status, NULL, text);
}

static void wrong_method(struct http_exchange *ex, int methods)
{
    char allow[64];
    snprintf(allow, sizeof allow, "%s%s%s", methods & METHOD_READ ? ", GET, HEAD" : "",
             methods & METHOD_POST ? ", POST" : "", methods & METHOD_DELETE ? ", DELETE" : "");
    answer_problem(ex, XP_METHOD, allow + 2,
                   methods == METHOD_READ ? "this resource is only read: GET or HEAD"
                                          : "this resource does not take that method");
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

static void start(const struct way *w, const struct route *route, bool compatible)
{
    struct http_answer a;
    struct xp_error err = {0};
    struct ask *ask;

    if (ask_new(w->app, w->ex, route, w->project, w->who, &ask, &err) != XP_OK) {
        http_answer_problem(&a, &err);
        http_answer(w->ex, &a);
        return;
    }
    ask->compatible = compatible;
    ask->one_page = w->by_link && w->link.tool[0];
    ask->number = compatible ? COUNT(api_routes) + (size_t)(route - xprof_routes)
                             : (size_t)(route - api_routes);
    http_note(w->ex, who_name(w->who), route_names[ask->number]);
    if ((route->fn == xprof_data || route->fn == api_host) && ask_at_once(ask))
        return;
    if (xp_workers_post(w->app->workers, XP_WORK_QUERY, run_ask, ask) != XP_OK) {
        xp_fail(&err, XP_BUSY, 0, "too many requests are waiting; try again in a moment");
        xp_error_retry(&err, xp_workers_wait_ms(w->app->workers));
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
    return method_of(ex) == METHOD_READ;
}

/* The reference becomes the way's. A project that the asker may not see is none. */
static void take_project(struct way *w, const struct project *p)
{
    w->right = p ? project_right(p, w->who) : RIGHT_NONE;
    w->by_link =
        p && w->right == RIGHT_NONE && links_admit(w->app->links, w->ex, p, w->who, &w->link);
    if (w->right == RIGHT_NONE && !w->by_link) {
        project_unref(p);
        p = NULL;
    }
    w->project = p;
}

static void tell(const struct way *w, const char *what, const char *outcome, const char *detail)
{
    char address[GATE_ADDRESS_MAX];
    if (!w->app->audit)
        return;
    gate_address(w->app->gate, w->ex, address);
    audit(w->app->audit, &(struct audit_event){.what = what,
                                               .who = who_name(w->who),
                                               .project = w->project ? w->project->name : NULL,
                                               .outcome = outcome,
                                               .detail = detail,
                                               .address = address});
}

/* What may be there, but not for the asker: who has not said who it is may do so. */
static void no_project(const struct way *w, const char *text)
{
    if (w->who->kind == WHO_NOBODY)
        gate_challenge(w->app->gate, w->ex, NULL);
    else
        problem(w->ex, XP_NOT_FOUND, text);
}

/* Whether a request that changes something comes from whom it seems to; else it is answered. */
static bool is_own(const struct way *w, const struct route *route, bool compatible)
{
    struct http_answer a;
    struct xp_error err = {0};
    bool post = http_request(w->ex)->method == HTTP_POST;
    if ((method_of(w->ex) == METHOD_READ && route->right < RIGHT_EDIT) ||
        gate_is_own(w->app->gate, w->ex, post && !compatible, &err) == XP_OK)
        return true;
    tell(w, route->path, "refused", err.text);
    http_answer_problem(&a, &err);
    http_answer(w->ex, &a);
    return false;
}

/* Whether the asker may use the route; else it is answered. */
static bool may(const struct way *w, const struct route *route, bool compatible)
{
    if (route->right == RIGHT_NONE && w->who->kind == WHO_NOBODY && route->fn != api_me) {
        gate_challenge(w->app->gate, w->ex, NULL);
        return false;
    }
    if (route->right == RIGHT_NONE || w->right >= route->right) {
        if (route->right >= RIGHT_EDIT)
            tell(w, route->path, "ok", NULL);
        return is_own(w, route, compatible);
    }
    if (w->by_link) {
        if (links_cover(&w->link, route, compatible, http_request(w->ex)->query))
            return true;
        problem(w->ex, XP_DENIED, "the link that you came by does not show that");
        return false;
    }
    if (!w->project) {
        no_project(w, "there is no such project here: they are /p/<project>/");
        return false;
    }
    tell(w, route->path, "refused", "the right is missing");
    problem(w->ex, XP_DENIED, "this takes another right in the project than you have");
    return false;
}

static void api(const struct way *w, struct xp_span path)
{
    int allowed;
    const struct route *route =
        find_route(api_routes, COUNT(api_routes), path, method_of(w->ex), &allowed);
    if (!allowed)
        problem(w->ex, XP_NOT_FOUND, "there is no such endpoint in this API");
    else if (!route)
        wrong_method(w->ex, allowed);
    else if (may(w, route, false))
        start(w, route, false);
}

/* XProf ignores one trailing slash. */
static bool xprof(const struct way *w, struct xp_span path)
{
    int allowed;
    if (path.n && path.p[path.n - 1] == '/')
        path.n--;
    const struct route *route = find_route(xprof_routes, COUNT(xprof_routes), path, 0, &allowed);
    if (route && may(w, route, true))
        start(w, route, true);
    return route != NULL;
}

/* XProf's pages and routes below data/plugin/profile/ of whatever place. */
static bool plugin(const struct way *w, struct xp_span path)
{
    const struct stock *stock = w->app->stock;
    return xprof(w, path) || (is_read(w->ex) && stock && stock_answer(stock, w->ex, path, true));
}

/* Our pages' own code and looks, which are no secret: they are answered to whoever asks. */
static bool is_asset(const struct http_exchange *ex, struct xp_span path)
{
    return is_read(ex) && xp_span_starts(path, XP_SPAN_LIT("assets/"));
}

/* What lies below /p/<project>/. */
static void below_project(const struct way *w, struct xp_span path)
{
    if (cut(&path, "api/v1/"))
        api(w, path);
    else if (is_asset(w->ex, path) && pages_answer(w->ex, path))
        return;
    else if (!w->project)
        no_project(w, "there is no such project here");
    else if (cut(&path, "data/plugin/profile/")) {
        if (!plugin(w, path))
            not_found(w->ex);
    } else if (!is_read(w->ex))
        answer_problem(w->ex, XP_METHOD, "GET, HEAD", "a page is only read: GET or HEAD");
    else if (!pages_answer(w->ex, path))
        not_found(w->ex);
}

static void open_link(struct way *w, const struct project *p, struct xp_span token)
{
    char id[LINK_ID_TEXT], address[GATE_ADDRESS_MAX];

    w->project = p;
    gate_address(w->app->gate, w->ex, address); /* once it is answered, the exchange is gone */
    if (!links_answer(w->app->links, w->ex, p, w->who, project_right(p, w->who), token, id))
        gate_challenge(w->app->gate, w->ex, NULL);
    else if (id[0])
        audit(w->app->audit, &(struct audit_event){.what = "link_opened",
                                                   .who = who_name(w->who),
                                                   .project = p->name,
                                                   .outcome = "ok",
                                                   .detail = id,
                                                   .address = address});
}

static void in_project(struct way *w, struct xp_span path)
{
    const uint8_t *slash = memchr(path.p, '/', path.n);
    struct xp_span name = xp_span_of(path.p, slash ? (size_t)(slash - path.p) : path.n);
    struct xp_span rest = slash ? xp_span_of(slash + 1, path.n - name.n - 1) : (struct xp_span){0};
    char to[PROJECT_NAME_MAX + 2];

    const struct project *p = projects_find(w->app->projects, name);
    if (p && slash && is_read(w->ex) && cut(&rest, LINKS_PATH)) {
        open_link(w, p, rest);
        return;
    }
    take_project(w, p);
    if (slash)
        below_project(w, rest);
    else if (!w->project)
        no_project(w, "there is no such project here");
    else {
        snprintf(to, sizeof to, "%s/", w->project->name);
        pages_redirect(w->ex, to);
    }
}

/* The page of the default project, the only one there is, or their list. */
static void first_page(const struct way *w)
{
    char to[PROJECT_NAME_MAX + 4];
    size_t n;
    const struct project **v = projects_list(w->app->projects, w->who, &n);
    const struct project *p = w->project ? w->project : n == 1 ? v[0] : NULL;

    snprintf(to, sizeof to, "p/%s/", p ? p->name : "");
    if (p)
        pages_redirect(w->ex, to);
    else
        pages_projects(w->ex, v, n);
    for (size_t i = 0; i < n; i++)
        project_unref(v[i]);
    free(v);
}

/* What lies at the root: XProf's routes, its pages if it is told to, and our assets. */
static void root(const struct way *w, struct xp_span path)
{
    const struct stock *stock = w->project ? w->app->stock : NULL;
    bool below = xp_span_eq(path, XP_SPAN_LIT("data/plugin/profile"));
    if (below)
        path.n = 0;
    else
        below = cut(&path, "data/plugin/profile/");
    bool page = is_read(w->ex) && (path.n == 0 || below || memchr(path.p, '.', path.n) ||
                                   (stock && xp_span_eq(path, XP_SPAN_LIT("local"))));

    if (xprof(w, path) || (page && stock && stock_answer(stock, w->ex, path, below)))
        return;
    if (w->who->kind == WHO_NOBODY && !is_asset(w->ex, path))
        gate_challenge(w->app->gate, w->ex, NULL);
    else if (path.n == 0 && !below)
        first_page(w);
    else if (below || !page || !pages_answer(w->ex, path))
        not_found(w->ex);
}

static void route(struct way *w)
{
    struct xp_span path = http_request(w->ex)->path;

    cut(&path, "/");
    if (cut(&path, "auth/")) {
        if (!login_answer(w->app->gate, w->app->audit, w->ex, w->who, path))
            not_found(w->ex);
    } else if (cut(&path, "p/")) {
        in_project(w, path);
    } else {
        take_project(w, projects_default(w->app->projects));
        if (cut(&path, "api/v1/"))
            api(w, path);
        else
            root(w, path);
    }
    project_unref(w->project);
}

/* Whether the asker has asked too often; then it is answered. */
static bool is_too_often(struct app *app, struct http_exchange *ex, const struct who *who)
{
    char address[GATE_ADDRESS_MAX] = "";
    bool known = who->kind != WHO_NOBODY;
    struct ratelimit *limit = known ? app->by_who : app->by_address;

    if (!limit || xp_span_has(http_request(ex)->path, XP_SPAN_LIT("/assets/")))
        return false;
    if (!known)
        gate_address(app->gate, ex, address);
    int wait_s = ratelimit_take(limit, known ? who_name(who) : address, xp_now_ns());
    if (wait_s == 0)
        return false;
    struct http_answer a;
    struct xp_error err;
    xp_fail(&err, XP_LIMITED, 0, "that was too many requests; go on in a moment");
    xp_error_retry(&err, (uint64_t)wait_s * 1000);
    http_answer_problem(&a, &err);
    http_answer(ex, &a);
    return true;
}

/* A request that waits for a provider's keys. */
struct parked {
    struct app *app;
    struct http_exchange *ex;
};

static void admit(struct app *app, struct http_exchange *ex, bool last);

static void admit_again(void *ctx)
{
    struct parked p = *(struct parked *)ctx;
    free(ctx);
    admit(p.app, p.ex, true);
}

static void park(struct app *app, struct http_exchange *ex)
{
    struct parked *p = malloc(sizeof *p);
    XP_ASSERT(p);
    *p = (struct parked){app, ex};
    if (!gate_wait(app->gate, ex, admit_again, p))
        admit_again(p);
}

static void admit(struct app *app, struct http_exchange *ex, bool last)
{
    struct way w = {.app = app, .ex = ex};
    struct xp_error err = {0};

    switch (gate_who(app->gate, ex, last, &w.who, &err)) {
    case GATE_LATER:
        park(app, ex);
        return;
    case GATE_REFUSED:
        if (!is_too_often(app, ex, &who_nobody))
            gate_challenge(app->gate, ex, &err);
        return;
    case GATE_KNOWN:
        if (!is_too_often(app, ex, w.who))
            route(&w);
        who_unref(w.who);
    }
}

void app_handle(void *ctx, struct http_exchange *ex)
{
    admit(ctx, ex, false);
}
