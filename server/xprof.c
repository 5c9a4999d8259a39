#include "server/xprof.h"

#include <stdlib.h>

#define JSON_MAX ((size_t)32 << 20)
#define HOSTS_AT_ONCE 64 /* of a run that the loop looks at: a key is made of all of them */

static const char json_type[] = "application/json";
static const char text_type[] = "text/plain";

/* The tools there are. */
static const char *const tools[] = {
#define TOOL(symbol, id, title, view, hosts) id,
#include "shard/tools/tools.def"
#undef TOOL
};

static struct run_scope scope_of(const struct ask *ask)
{
    return (struct run_scope){ask_arg(ask, "session_path"), ask_arg(ask, "run_path")};
}

static void answer_error(struct ask *ask, const struct xp_error *err)
{
    ask_text(ask, xp_status_http(err->status), text_type, xp_span_str(err->text));
}

static void answer_list(struct ask *ask, const struct run_names *names, bool as_hosts)
{
    struct xp_buf body;
    struct xp_json j;

    xp_buf_init(&body, JSON_MAX);
    xp_json_init(&j, &body);
    xp_json_arr(&j);
    for (size_t i = 0; i < names->n; i++) {
        if (as_hosts)
            xp_json_obj(&j), xp_json_key(&j, "hostname");
        xp_json_str(&j, names->v[i]);
        if (as_hosts)
            xp_json_obj_end(&j);
    }
    xp_json_arr_end(&j);
    ask_json(ask, &body);
}

/* --- constant answers --- */

void xprof_config(struct ask *ask)
{
    ask_text(ask, 200, json_type,
             XP_SPAN_LIT("{\"enableTabNameLabel\":false,\"hideCaptureProfileButton\":false,"
                         "\"srcPathPrefix\":null}"));
}

void xprof_version(struct ask *ask)
{
    ask_text(ask, 200, text_type, XP_SPAN_LIT(XPROF_VERSION));
}

/* --- lists --- */

void xprof_runs(struct ask *ask)
{
    struct xp_error err = {0};
    struct run_names names = {0};
    struct run_scope scope = scope_of(ask);

    if (run_index_compat_list(ask->project->runs, &scope, &names, &err) != XP_OK) {
        answer_error(ask, &err);
        return;
    }
    answer_list(ask, &names, false);
    run_names_fini(&names);
}

enum found { FOUND, UNKNOWN, ANSWERED };

/* The run that the parameters name. UNKNOWN: there is none, ask->run is NULL and the caller says
 * so in its own way. ANSWERED: something else was wrong, the ask is gone (or a worker's). */
static enum found find_run(struct ask *ask, struct xp_error *err)
{
    struct xp_span name = ask_arg(ask, "run");
    struct run_scope scope = scope_of(ask);

    if (name.n == 0) {
        ask_text(ask, 500, text_type, XP_SPAN_LIT("the parameter run is missing"));
        return ANSWERED;
    }
    if (ask->later && !scope.session_path.n && !scope.run_path.n && !ask_is_upload(ask, name))
        ask->run = run_index_known(ask->project->runs, name);
    if (ask->run && ask->run->n_hosts <= HOSTS_AT_ONCE)
        return FOUND;
    if (!ask_may_wait(ask))
        return ANSWERED;
    enum xp_status status =
        scope.session_path.n || scope.run_path.n || !ask_is_upload(ask, name)
            ? run_index_compat_get(ask->project->runs, &scope, name, &ask->run, err)
            : ask_take_run(ask, name, NULL, err);
    if (status == XP_OK)
        return FOUND;
    if (status == XP_NOT_FOUND)
        return UNKNOWN;
    answer_error(ask, err);
    return ANSWERED;
}

/* The list routes know no error but a run that is not where the path says: XProf drops the
 * connection then. */
static void unknown_on_a_list(struct ask *ask, const struct xp_error *err, struct xp_span nothing,
                              const char *type)
{
    struct run_scope scope = scope_of(ask);
    if (scope.session_path.n || scope.run_path.n)
        ask_text(ask, 500, text_type, xp_span_str(err->text));
    else
        ask_text(ask, 200, type, nothing);
}

void xprof_hosts(struct ask *ask)
{
    struct xp_error err = {0};
    struct run_names names = {0};

    switch (find_run(ask, &err)) {
    case ANSWERED:
        return;
    case UNKNOWN:
        unknown_on_a_list(ask, &err, XP_SPAN_LIT("[]"), json_type);
        return;
    case FOUND:
        break;
    }
    if (run_compat_hosts(ask->run, ask_arg(ask, "tag"), &names, &err) != XP_OK) {
        answer_error(ask, &err);
        return;
    }
    answer_list(ask, &names, true);
    run_names_fini(&names);
}

/* --- the shard's answers --- */

static struct shard_object object_of(const struct run *r, const struct run_host *h)
{
    return (struct shard_object){r->store, h->key, h->name, h->generation, h->size, h->gz};
}

/* All hosts in byte order, XProf's directory order made certain. */
static size_t all_objects(const struct run *r, struct shard_object *objects)
{
    for (size_t i = 0; i < r->n_hosts; i++)
        objects[i] = object_of(r, &r->hosts[r->by_name[i]]);
    return r->n_hosts;
}

static void list_by_shard(struct ask *ask, struct xp_span nothing, const char *type)
{
    struct xp_error err = {0};

    switch (find_run(ask, &err)) {
    case ANSWERED:
        return;
    case UNKNOWN:
        unknown_on_a_list(ask, &err, nothing, type);
        return;
    case FOUND:
        break;
    }
    if (ask->run->n_hosts == 0) {
        ask_text(ask, 200, type, nothing);
        return;
    }
    struct shard_object *objects = calloc(ask->run->n_hosts, sizeof *objects);
    XP_ASSERT(objects);
    size_t n = all_objects(ask->run, objects);
    ask_shard(ask, objects, n);
    free(objects);
}

void xprof_run_tools_route(struct ask *ask)
{
    list_by_shard(ask, XP_SPAN_LIT("[]"), json_type);
}

void xprof_module_list_route(struct ask *ask)
{
    list_by_shard(ask, XP_SPAN_LIT(""), text_type);
}

static bool is_trace(struct xp_span tag)
{
    return xp_span_eq(tag, XP_SPAN_LIT("trace_viewer@")) ||
           xp_span_eq(tag, XP_SPAN_LIT("trace_viewer"));
}

/* A file that is not there: XProf's two routes differ. */
static void no_file(struct ask *ask, const char *format, struct xp_span what, struct xp_span also)
{
    struct xp_buf text;
    xp_buf_init(&text, 65536);
    xp_buf_fmt(&text, format, (int)(what.n < 500 ? what.n : 500), (const char *)what.p,
               (int)(also.n < 500 ? also.n : 500), (const char *)also.p);
    ask_text(ask, ask->route->op == SHARD_TOOL_CSV ? 500 : 404, text_type, xp_buf_all(&text));
    xp_buf_fini(&text);
}

static bool named_object(struct ask *ask, struct xp_span name, struct shard_object *o)
{
    const struct run_host *h = run_host_find(ask->run, name);
    if (!h) {
        no_file(ask, "No xplane file found for host: %.*s in run: %.*s", name, ask_arg(ask, "run"));
        return false;
    }
    *o = object_of(ask->run, h);
    return true;
}

/* The comma list `hosts`, in its order; false: one is unknown and the ask is answered. */
static bool listed_objects(struct ask *ask, struct xp_span list, struct shard_object *objects,
                           size_t max, size_t *n)
{
    *n = 0;
    while (list.p) {
        const uint8_t *comma = list.n ? memchr(list.p, ',', list.n) : NULL;
        struct xp_span name = xp_span_of(list.p, comma ? (size_t)(comma - list.p) : list.n);

        list = comma ? xp_span_of(comma + 1, list.n - name.n - 1) : (struct xp_span){0};
        if (*n == max) {
            ask_text(ask, 400, text_type, XP_SPAN_LIT("too many hosts are named"));
            return false;
        }
        if (!named_object(ask, name, &objects[*n]))
            return false;
        (*n)++;
    }
    return true;
}

/* Which files a request reads (http-api 4.2); false: the ask is answered. */
static bool choose_objects(struct ask *ask, struct xp_span tag, struct shard_object *objects,
                           size_t max, size_t *n)
{
    struct xp_span host = ask_arg(ask, "host"), hosts = ask_arg(ask, "hosts");

    if (hosts.n && is_trace(tag))
        return listed_objects(ask, hosts, objects, max, n);
    if (host.n && !xp_span_eq(host, XP_SPAN_LIT("ALL_HOSTS")))
        return *n = 1, named_object(ask, host, &objects[0]);
    *n = all_objects(ask->run, objects);
    return true;
}

static void ask_tool(struct ask *ask, struct xp_span tag)
{
    size_t max = ask->run->n_hosts + ASK_ARGS_MAX, n;
    struct shard_object *objects = calloc(max, sizeof *objects);
    XP_ASSERT(objects);
    if (choose_objects(ask, tag, objects, max, &n))
        ask_shard(ask, objects, n);
    free(objects);
}

static bool is_tool(struct xp_span tag)
{
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
        if (xp_span_eq(tag, xp_span_str(tools[i])))
            return true;
    return false;
}

static void no_data(struct ask *ask)
{
    ask_text(ask, 404, text_type,
             ask->route->op == SHARD_TOOL_CSV ? XP_SPAN_LIT("No Data Found")
                                              : XP_SPAN_LIT("No Data"));
}

/* The one tool of XProf that does not take the absence of a host for all of them. */
static bool lacks_host(const struct ask *ask, struct xp_span tag)
{
    return xp_span_eq(tag, XP_SPAN_LIT("megascale_stats")) && !ask_arg(ask, "host").n;
}

void xprof_data(struct ask *ask)
{
    struct xp_span tag = ask_arg(ask, "tag");
    struct run_scope scope = scope_of(ask);
    struct xp_error err = {0};

    if (xp_span_eq(tag, XP_SPAN_LIT("perf_counters")) &&
        xp_span_eq(ask_arg(ask, "names_only"), XP_SPAN_LIT("1"))) {
        ask_shard(ask, NULL, 0); /* of no run */
        return;
    }
    switch (find_run(ask, &err)) {
    case ANSWERED:
        return;
    case UNKNOWN:
        if (scope.session_path.n || scope.run_path.n)
            ask_text(ask, 500, text_type, xp_span_str(err.text));
        else
            no_file(ask, "No xplane file found for run: %.*s, tool: %.*s", ask_arg(ask, "run"),
                    tag);
        return;
    case FOUND:
        break;
    }
    if (ask->run->n_hosts == 0)
        no_file(ask, "No xplane file found for run: %.*s, tool: %.*s", ask_arg(ask, "run"), tag);
    else if (is_tool(tag) && !lacks_host(ask, tag))
        ask_tool(ask, tag);
    else
        no_data(ask);
}
