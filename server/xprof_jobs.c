/* XProf's two routes that start something: a capture, and work ahead of those who look. */
#include <stdlib.h>

#include "server/capture/capture.h"
#include "server/warm.h"
#include "server/xprof.h"

static const char json_type[] = "application/json";
static const char text_type[] = "text/plain";

/* --- generate_cache --- */

/* What XProf computes ahead; for us it is the same whatever is asked: the profile is loaded. */
static const char *const cached_tools[] = {
    "trace_viewer",       "trace_viewer@",      "overview_page",     "input_pipeline_analyzer",
    "kernel_stats",       "memory_profile",     "memory_viewer",     "roofline_model",
    "perf_counters",      "framework_op_stats", "hlo_stats",         "op_profile",
    "megascale_stats",    "pod_viewer",         "inference_profile", "graph_viewer",
    "utilization_viewer", "kernel_utilization", "smart_suggestion"};

static bool is_cached_tool(struct xp_span id)
{
    while (id.n && (*id.p == ' ' || *id.p == '\t'))
        id = xp_span_of(id.p + 1, id.n - 1);
    while (id.n && (id.p[id.n - 1] == ' ' || id.p[id.n - 1] == '\t'))
        id.n--;
    for (size_t i = 0; i < sizeof cached_tools / sizeof cached_tools[0]; i++)
        if (xp_span_eq(id, xp_span_str(cached_tools[i])))
            return true;
    return false;
}

/* Whether the comma list names a tool that makes sense; an empty one stands for the usual two. */
static bool names_a_tool(struct xp_span list)
{
    if (!list.n)
        return true;
    while (list.p) {
        const uint8_t *comma = list.n ? memchr(list.p, ',', list.n) : NULL;
        size_t n = comma ? (size_t)(comma - list.p) : list.n;
        if (is_cached_tool(xp_span_of(list.p, n)))
            return true;
        list = comma ? xp_span_of(comma + 1, list.n - n - 1) : (struct xp_span){0};
    }
    return false;
}

/* The run that session_path is; false: there is none, or the ask is answered. */
static bool find_session(struct ask *ask, bool *answered)
{
    struct run_scope scope = {ask_arg(ask, "session_path"), {0}};
    struct xp_error err = {0};
    struct run_names names = {0};
    enum xp_status status = run_index_compat_list(ask->project->runs, &scope, &names, &err);
    if (status == XP_OK && names.n == 1)
        status = run_index_compat_get(ask->project->runs, &scope, xp_span_str(names.v[0]),
                                      &ask->run, &err);
    else if (status == XP_OK)
        status = XP_NOT_FOUND;
    run_names_fini(&names);
    *answered = status != XP_OK && status != XP_NOT_FOUND;
    if (*answered)
        ask_text(ask, xp_status_http(status), text_type, xp_span_str(err.text));
    return status == XP_OK;
}

static void start_warming(struct ask *ask)
{
    struct xp_error err = {0};
    if (warm_start(ask->app, ask->run, &err) != XP_OK)
        ask_problem(ask, &err);
    else
        ask_text(ask, 202, json_type,
                 XP_SPAN_LIT("{\"message\":\"Cache generation started\",\"status\":\"ACCEPTED\"}"));
}

void xprof_generate_cache(struct ask *ask)
{
    bool answered = false;
    if (http_request(ask->ex)->method != HTTP_POST)
        ask_text(ask, 405, text_type, XP_SPAN_LIT("Method Not Allowed"));
    else if (!ask_arg(ask, "session_path").n)
        ask_text(ask, 400, text_type, XP_SPAN_LIT("Missing \"session_path\" parameter"));
    else if (find_session(ask, &answered) && ask->run->n_hosts) {
        if (names_a_tool(ask_arg(ask, "tools")))
            start_warming(ask);
        else
            ask_text(ask, 400, text_type,
                     XP_SPAN_LIT("No valid XPlane tools found or specified for caching."));
    } else if (!answered) {
        ask_text(ask, 404, text_type, XP_SPAN_LIT("No XPlane files found in session_path"));
    }
}

/* --- capture_profile --- */

/* Python's int(): digits with a sign and blanks around. */
static bool is_integer(struct xp_span s)
{
    size_t i = 0, end = s.n;
    while (i < end && (s.p[i] == ' ' || s.p[i] == '\t'))
        i++;
    while (end > i && (s.p[end - 1] == ' ' || s.p[end - 1] == '\t'))
        end--;
    if (i < end && (s.p[i] == '-' || s.p[i] == '+'))
        i++;
    size_t digits = i;
    while (i < end && s.p[i] >= '0' && s.p[i] <= '9')
        i++;
    return i == end && i > digits;
}

void xprof_capture_profile(struct ask *ask)
{
    static const char *const numbers[] = {
        "duration", "num_retry", "host_tracer_level", "device_tracer_level", "python_tracer_level",
        "delay"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct xp_span v = ask_arg(ask, numbers[i]);
        if (v.p && !is_integer(v)) { /* XProf closes the connection */
            ask_text(ask, 500, text_type, XP_SPAN_LIT("a parameter is not a whole number"));
            return;
        }
    }
    if (xp_span_eq(ask_arg(ask, "is_tpu_name"), XP_SPAN_LIT("true")))
        ask_text(ask, 500, json_type,
                 XP_SPAN_LIT("{\"error\":\"TensorFlow is not installed, but is required to use "
                             "TPU names.\"}"));
    else if (captures_have_targets(ask->app->captures))
        ask_text(ask, 500, json_type,
                 XP_SPAN_LIT("{\"error\":\"UNAVAILABLE: a GET captures nothing here: the page "
                             "Captures does (p/<project>/captures)\"}"));
    else
        ask_text(ask, 500, json_type,
                 XP_SPAN_LIT("{\"error\":\"UNAVAILABLE: this server does not capture profiles\"}"));
}
