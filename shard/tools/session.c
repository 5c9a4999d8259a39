#include "shard/tools/session.h"

#include "lib/base/pb_wire.h"
#include "shard/tools/profile.h"
#include "shard/tools/requests.h"

enum { SESSION_OPS = 1, SESSION_STEPS, SESSION_REQUESTS, SESSION_FIGURES };

static enum xp_status keep(struct xp_buf *b, struct xp_arena *a, struct xp_span *out,
                           struct xp_error *err)
{
    uint8_t *p = b->failed ? NULL : xp_arena_alloc(a, b->n + 1);
    if (!p)
        return xp_fail(err, b->failed ? XP_TOO_LARGE : XP_BUSY, 0,
                       "the profile's steps and ops do not fit into memory");
    if (b->n)
        memcpy(p, b->p, b->n);
    *out = xp_span_of(p, b->n);
    return XP_OK;
}

static void put(struct xp_buf *all, uint32_t field, struct xp_buf *one)
{
    xp_pb_put_bytes(all, field, xp_buf_all(one));
    all->failed |= one->failed;
    one->n = 0;
}

static enum xp_status pack(const struct op_stats *stats, const struct steps *steps, uint32_t index,
                           struct xp_buf *requests, struct xp_buf *figures, struct xp_arena *a,
                           struct xp_span *out, struct xp_error *err)
{
    struct xp_buf all, one;
    xp_buf_init(&all, SESSION_MAX);
    xp_buf_init(&one, SESSION_MAX);
    op_stats_pack(stats, index, false, &one);
    put(&all, SESSION_OPS, &one);
    steps_pack(steps, index, &one);
    put(&all, SESSION_STEPS, &one);
    put(&all, SESSION_REQUESTS, requests);
    put(&all, SESSION_FIGURES, figures);
    enum xp_status st = keep(&all, a, out, err);
    xp_buf_fini(&one);
    xp_buf_fini(&all);
    return st;
}

struct parts {
    struct op_stats *stats;
    struct steps steps;
    struct xp_span requests, figures;
};

static enum xp_status unpack(struct xp_span bytes, struct xp_arena *a, struct parts *out,
                             struct xp_error *err)
{
    struct xp_pb r = xp_pb_open(bytes);
    struct xp_pb_field f;
    struct xp_span ops = {0}, steps = {0};
    *out = (struct parts){0};
    while (xp_pb_next(&r, &f)) {
        if (f.num == SESSION_OPS)
            ops = f.bytes;
        else if (f.num == SESSION_STEPS)
            steps = f.bytes;
        else if (f.num == SESSION_REQUESTS)
            out->requests = f.bytes;
        else if (f.num == SESSION_FIGURES)
            out->figures = f.bytes;
    }
    if (r.bad)
        return xp_fail(err, XP_CORRUPT, 0, "steps and ops of another server cannot be read");
    XP_TRY(op_stats_unpack(ops, a, &out->stats, err));
    return steps_unpack(steps, a, &out->steps, err);
}

static enum xp_status map_figures(const struct tool_host *host, const struct tool_args *args,
                                  struct xp_arena *a, struct xp_buf *out, struct xp_error *err)
{
    struct figure_host h;
    struct xp_span marker = {0};
    tool_arg(args, "step_marker", &marker);
    XP_TRY(figures_of(host->part, host->name, marker, a, &h, err));
    figures_pack(&h, host->index, out);
    return XP_OK;
}

/* args: with figures. */
static enum xp_status map(const struct tool_host *host, bool requests, const struct tool_args *args,
                          struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    const struct op_stats *stats;
    const struct steps *steps;
    struct xp_buf b, f;
    XP_TRY(op_stats_get(host->part, &stats, err));
    XP_TRY(steps_get(host->part, &steps, err));
    xp_buf_init(&b, SESSION_MAX);
    xp_buf_init(&f, SESSION_MAX);
    enum xp_status st = args ? map_figures(host, args, a, &f, err) : XP_OK;
    if (st == XP_OK && requests && !stats->hosts[0].training)
        st = requests_pack(host->part, a, &b, err);
    if (st == XP_OK)
        st = pack(stats, steps, host->index, &b, &f, a, partial, err);
    xp_buf_fini(&b);
    xp_buf_fini(&f);
    return st;
}

enum xp_status session_map(const struct tool_host *host, const struct tool_args *args,
                           struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    (void)args;
    XP_TRY(profile_all_readable(host, 1, err));
    return map(host, false, NULL, a, partial, err);
}

enum xp_status session_map_requests(const struct tool_host *host, const struct tool_args *args,
                                    struct xp_arena *a, struct xp_span *partial,
                                    struct xp_error *err)
{
    (void)args;
    XP_TRY(profile_all_readable(host, 1, err));
    return map(host, true, NULL, a, partial, err);
}

enum xp_status session_map_report(const struct tool_host *host, const struct tool_args *args,
                                  struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    return map(host, true, args, a, partial, err);
}

enum xp_status session_merge(struct xp_span x, struct xp_span y, struct xp_arena *a,
                             struct xp_span *both, struct xp_error *err)
{
    struct parts px, py;
    struct op_stats *stats;
    struct steps steps;
    struct xp_buf requests, figures;
    *both = x.n ? x : y;
    if (!x.n || !y.n)
        return XP_OK;
    XP_TRY(unpack(x, a, &px, err));
    XP_TRY(unpack(y, a, &py, err));
    XP_TRY(op_stats_merge(px.stats, py.stats, a, &stats, err));
    XP_TRY(steps_merge(&px.steps, &py.steps, a, &steps, err));
    xp_buf_init(&requests, SESSION_MAX);
    xp_buf_span(&requests, px.requests);
    xp_buf_span(&requests, py.requests);
    xp_buf_init(&figures, SESSION_MAX);
    xp_buf_span(&figures, px.figures);
    xp_buf_span(&figures, py.figures);
    enum xp_status st = pack(stats, &steps, 0, &requests, &figures, a, both, err);
    xp_buf_fini(&requests);
    xp_buf_fini(&figures);
    return st;
}

enum xp_status session_open(struct xp_span merged, struct xp_arena *a, struct session *out,
                            struct xp_error *err)
{
    struct parts p;
    XP_TRY(unpack(merged, a, &p, err));
    *out = (struct session){
        .stats = p.stats, .steps = p.steps, .requests = p.requests, .figures = p.figures};
    op_stats_session(p.stats, &out->all);
    return XP_OK;
}

/* "worker-1:250000": picoseconds to add to the host's times. */
static enum xp_status parse_offset(struct xp_span text, struct figure_override *out,
                                   struct xp_error *err)
{
    const uint8_t *colon = text.n ? memrchr(text.p, ':', text.n) : NULL;
    size_t n = colon ? (size_t)(colon - text.p) : 0, i = n + 1;
    bool minus = colon && i < text.n && text.p[i] == '-';
    double v = 0;
    for (i += minus; colon && i < text.n && text.p[i] >= '0' && text.p[i] <= '9'; i++)
        v = v * 10 + (text.p[i] - '0');
    if (!colon || i != text.n || i == n + 1 + minus || v > 1e18)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "offset is HOST:PS, picoseconds to add to the times of that host");
    *out = (struct figure_override){xp_span_of(text.p, n), minus ? -v : v};
    return XP_OK;
}

enum xp_status session_open_report(struct xp_span merged, const struct tool_args *args,
                                   struct xp_arena *a, struct session *out, struct figures *f,
                                   struct xp_error *err)
{
    struct peak_override *peaks = xp_arena_alloc(a, (args->n + 1) * sizeof *peaks);
    struct figure_override *offsets = xp_arena_alloc(a, (args->n + 1) * sizeof *offsets);
    struct figures_ask ask = {.peaks = peaks, .offsets = offsets};
    if (!peaks || !offsets)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the report");
    for (size_t i = 0; i < args->n; i++) {
        if (xp_span_eq(args->args[i].name, XP_SPAN_LIT("peak")))
            XP_TRY(peak_parse(args->args[i].value, &peaks[ask.npeaks++], err));
        else if (xp_span_eq(args->args[i].name, XP_SPAN_LIT("offset")))
            XP_TRY(parse_offset(args->args[i].value, &offsets[ask.noffsets++], err));
    }
    XP_TRY(session_open(merged, a, out, err));
    return figures_open(out->figures, out->stats, &ask, a, f, err);
}

const char *session_step_warning(const struct step_db *db)
{
    if (db->n)
        return NULL;
    if (db->empty_intersection)
        return "Although there are steps observed on some host(s), the intersection of the steps "
               "over all hosts is empty (because the differences among individual host's step "
               "sequences are too big). Consequently, the overall step time is unknown.";
    return "No step marker observed and hence the step time is unknown. This may happen if (1) "
           "training steps are not instrumented (e.g., if you are not using Keras) or (2) the "
           "profiling duration is shorter than the step time. For (1), you need to add step "
           "instrumentation; for (2), you may try to profile longer.";
}
