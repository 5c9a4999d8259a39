#include <stdlib.h>
#include <strings.h>

#include "shard/tools/trace.h"

/* trace_viewer@ and trace_viewer. What XProf's converter refuses, it answers with "No Data"
 * (XP_NOT_FOUND here): numbers that are none, an event that is not there, a file that protobuf
 * cannot parse, and for the second tool more than one host. */

#define NUMBER_MAX 64
#define RESOLUTION 8000

/* --- arguments --- */

static bool parse_double(struct xp_span s, double *v)
{
    char text[NUMBER_MAX], *end;
    while (s.n && (s.p[0] == ' ' || (s.p[0] >= 9 && s.p[0] <= 13)))
        s = xp_span_of(s.p + 1, s.n - 1);
    while (s.n && (s.p[s.n - 1] == ' ' || (s.p[s.n - 1] >= 9 && s.p[s.n - 1] <= 13)))
        s.n--;
    if (!s.n || s.n >= sizeof text || memchr(s.p, 'x', s.n) || memchr(s.p, 'X', s.n) ||
        memchr(s.p, 0, s.n))
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = 0;
    *v = strtod(text, &end);
    return *end == 0;
}

static bool arg_double(const struct tool_args *args, const char *name, double *v)
{
    struct xp_span s;
    *v = 0;
    return !tool_arg(args, name, &s) || parse_double(s, v);
}

/* A whole number, or a decimal cut to one. */
static bool arg_u64(const struct tool_args *args, const char *name, uint64_t *v)
{
    double d;
    *v = 0;
    if (!arg_double(args, name, &d))
        return false;
    if (!(d >= 0 && d < 1.8e19))
        *v = UINT64_MAX; /* negative or no number: as unlikely a resolution as XProf makes of it */
    else if (d >= 1)
        *v = (uint64_t)d;
    return true;
}

static bool arg_true(const struct tool_args *args, const char *name)
{
    struct xp_span s;
    return tool_arg(args, name, &s) && s.n == 4 && strncasecmp((const char *)s.p, "true", 4) == 0;
}

static enum xp_status parse(const struct tool_args *args, struct trace_request *r,
                            struct xp_error *err)
{
    struct xp_span s;
    *r = (struct trace_request){.format = XP_SPAN_LIT("json")};
    if (!arg_double(args, "start_time_ms", &r->start_ms) ||
        !arg_double(args, "end_time_ms", &r->end_ms) ||
        !arg_double(args, "duration_ms", &r->duration_ms) ||
        !arg_u64(args, "resolution", &r->resolution) || !arg_u64(args, "unique_id", &r->unique_id))
        return xp_fail(err, XP_NOT_FOUND, 0, "a number is expected in the trace's arguments");
    if (tool_arg(args, "event_name", &s))
        r->event_name = s;
    if (tool_arg(args, "search_prefix", &s))
        r->search_prefix = s;
    if (tool_arg(args, "format", &s) && s.n)
        r->format = s;
    if (!tool_arg(args, "resolution", &s))
        r->resolution = RESOLUTION; /* what XProf's own server fills in */
    r->search_metadata = arg_true(args, "search_metadata");
    r->full_dma = arg_true(args, "full_dma");
    return XP_OK;
}

/* --- hosts --- */

static enum xp_status host_open(struct trace_host *h, const struct tool_host *th, uint32_t index,
                                struct xp_error *err)
{
    const struct part *p = th->part;
    if (p->damage.status != XP_OK || p->partial || p->utf8_bad)
        return xp_fail(err, XP_NOT_FOUND, p->damage.offset, "XProf would not read this profile");
    *h = (struct trace_host){.part = th->part, .name = th->name, .index = index};
    XP_TRY(derive_get(th->part, &h->d, err));
    return trace_host_init(h, err);
}

static enum xp_status trace_open(struct trace *t, const struct tool_host *hosts, size_t n)
{
    t->hosts = xp_arena_zalloc(t->scratch, (n + 1) * sizeof *t->hosts);
    if (!t->hosts)
        return trace_busy(t->err);
    for (size_t i = 0; i < n; i++) {
        t->nhosts++;
        XP_TRY(host_open(&t->hosts[i], &hosts[i], (uint32_t)i + 1, t->err));
        if (out_cancelled(t->out))
            return xp_fail(t->err, XP_CANCELLED, 0, "nobody waits for the trace any more");
    }
    return XP_OK;
}

static void trace_close(struct trace *t)
{
    for (size_t i = 0; t->hosts && i < t->nhosts; i++)
        trace_host_fini(&t->hosts[i]);
}

/* Hosts that do not have the event are left out; one that has it is enough. */
static enum xp_status select_event(struct trace *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->nhosts; i++) {
        enum xp_status st = trace_select_event(t, &t->hosts[i]);
        if (st != XP_OK && st != XP_NOT_FOUND)
            return st;
        struct trace_host h = t->hosts[i];
        if (st == XP_OK) {
            t->hosts[i] = t->hosts[kept];
            t->hosts[kept++] = h;
        }
    }
    for (size_t i = kept; i < t->nhosts; i++)
        trace_host_fini(&t->hosts[i]);
    t->nhosts = kept;
    return kept ? XP_OK : XP_NOT_FOUND;
}

/* What is shown of the hosts that are open. */
static enum xp_status find_events(struct trace *t)
{
    bool detail = t->req.event_name.n, search = !detail && t->req.search_prefix.n;
    if (detail)
        XP_TRY(select_event(t));
    for (size_t i = 0; !detail && i < t->nhosts; i++)
        XP_TRY(search ? trace_select_search(t, &t->hosts[i])
                      : trace_select_window(t, &t->hosts[i]));
    t->all_args = detail || (search && t->req.search_metadata);
    t->uid = !t->all_args;
    return XP_OK;
}

static enum xp_status run(struct trace *t, const struct tool_host *hosts, size_t n, bool csv)
{
    XP_TRY(trace_open(t, hosts, n));
    if (csv)
        return tool_no_csv(t->err);
    XP_TRY(find_events(t));
    return trace_is_pb(t) ? trace_write_pb(t, true) : trace_write_json(t);
}

static enum xp_status streaming(const struct tool_host *hosts, size_t n,
                                const struct tool_args *args, struct xp_arena *scratch,
                                struct out *out, struct xp_error *err)
{
    struct trace t = {.scratch = scratch, .out = out, .err = err};
    XP_TRY(parse(args, &t.req, err));
    enum xp_status st = run(&t, hosts, n, args->csv);
    trace_close(&t);
    return st;
}

/* --- several hosts, one by one --- */

static enum xp_status map_host(struct trace *t, const struct tool_host *host, bool csv,
                               struct xp_span *partial)
{
    XP_TRY(trace_open(t, host, 1));
    t->hosts[0].index = host->index + 1;
    if (csv)
        return tool_no_csv(t->err);
    enum xp_status st = find_events(t);
    if (st != XP_OK && !(st == XP_NOT_FOUND && t->nhosts == 0)) /* others may have the event */
        return st;
    return trace_join_map(t, host->index, partial);
}

static enum xp_status map(const struct tool_host *host, const struct tool_args *args,
                          struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    struct out out;
    struct trace t = {.scratch = a, .out = &out, .err = err};
    XP_TRY(parse(args, &t.req, err));
    out_init(&out, NULL);
    enum xp_status st = map_host(&t, host, args->csv, partial);
    trace_close(&t);
    out_fini(&out);
    return st;
}

static enum xp_status render(struct xp_span merged, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct trace t = {.scratch = scratch, .out = out, .err = err};
    XP_TRY(parse(args, &t.req, err));
    return trace_join_render(&t, merged);
}

/* Everything, without a window. */
static enum xp_status whole(const struct tool_host *hosts, size_t n, const struct tool_args *args,
                            struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct trace t = {.scratch = scratch, .out = out, .err = err};
    struct xp_span format;
    if (n != 1)
        return xp_fail(err, XP_NOT_FOUND, 0, "this viewer shows one host at a time");
    bool pb = tool_arg(args, "format", &format) && xp_span_eq(format, XP_SPAN_LIT("pb"));
    t.req.full_dma = true;
    enum xp_status st = trace_open(&t, hosts, n);
    if (st == XP_OK && args->csv) {
        st = tool_no_csv(err);
    } else if (st == XP_OK && pb) {
        t.hosts[0].index = 0;
        struct trace_window all = {.begin_ps = t.hosts[0].begin_ps,
                                   .end_ps = t.hosts[0].end_ps,
                                   .layer = TRACE_LAST_LAYER};
        for (uint32_t r = 0; st == XP_OK && r < t.hosts[0].rows.n; r++)
            st = trace_row_events(&t.hosts[0], r, &all, &t, &t.hosts[0].events, err);
        if (st == XP_OK)
            st = trace_write_pb(&t, false);
    } else if (st == XP_OK) {
        st = trace_write_legacy(&t);
    }
    trace_close(&t);
    return st;
}

const struct tool tool_trace_viewer_stream = {.id = "trace_viewer@",
                                              .answer = streaming,
                                              .map = map,
                                              .merge = trace_join_merge,
                                              .render = render};
const struct tool tool_trace_viewer = {.id = "trace_viewer", .answer = whole};
