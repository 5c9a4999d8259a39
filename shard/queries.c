#include "shard/queries.h"

static enum xp_status want_derived(const struct args *args, bool *derived, struct xp_error *err)
{
    struct xp_span s = args_get(args, "derived");
    *derived = xp_span_eq(s, XP_SPAN_LIT("1"));
    if (s.n && !*derived && !xp_span_eq(s, XP_SPAN_LIT("0")))
        return xp_fail(err, XP_BAD_REQUEST, 0, "derived is 0 or 1 (of tracks also: only)");
    return XP_OK;
}

static enum xp_status do_tracks(const struct queries_ask *k, struct out *out, struct xp_error *err)
{
    struct query_tracks q = {.q = args_get(k->args, "q"), .limit = 2000};
    XP_TRY(args_u32(k->args, "limit", 1, QUERY_TRACKS_MAX, &q.limit, err));
    XP_TRY(args_u64(k->args, "page", UINT32_MAX, &q.first, err));
    XP_TRY(args_rows(k->args, k->scratch, &q.rows, err));
    struct xp_span derived = args_get(k->args, "derived");
    q.derived_only = xp_span_eq(derived, XP_SPAN_LIT("only"));
    if (!q.derived_only)
        XP_TRY(want_derived(k->args, &q.derived, err));
    return query_tracks(k->part, &q, k->scratch, out, err);
}

static enum xp_status do_window(const struct queries_ask *k, struct out *out, struct xp_error *err)
{
    struct query_window q = {.px = 1500};
    XP_TRY(args_window(k->args, &q.t0_ps, &q.t1_ps, err));
    XP_TRY(args_u32(k->args, "px", 1, 16384, &q.px, err));
    XP_TRY(args_u32(k->args, "max_bytes", 4096, 4194304, &q.max_bytes, err));
    XP_TRY(args_rows(k->args, k->scratch, &q.rows, err));
    return query_window(k->part, &q, k->scratch, out, err);
}

static enum xp_status do_event(const struct queries_ask *k, struct out *out, struct xp_error *err)
{
    struct xp_span step = args_get(k->args, "step");
    uint64_t id = 0;

    if (args_get(k->args, "id").n == 0)
        return xp_fail(err, XP_BAD_REQUEST, 0, "id is missing: the number of the event");
    XP_TRY(args_u64(k->args, "id", UINT64_MAX, &id, err));
    if (step.n == 0)
        return query_event(k->part, id, k->scratch, out, err);
    if (xp_span_eq(step, XP_SPAN_LIT("next")) || xp_span_eq(step, XP_SPAN_LIT("prev")))
        return query_neighbour(k->part, id, step.p[0] == 'n' ? 1 : -1, k->scratch, out, err);
    return xp_fail(err, XP_BAD_REQUEST, 0, "step is next or prev");
}

static enum xp_status do_search(const struct queries_ask *k, struct out *out, struct xp_error *err)
{
    struct query_search q = {.limit = 100, .dir = 1, .after_ps = INT64_MIN};
    struct xp_span dir = args_get(k->args, "dir");

    q.q = args_get(k->args, "q");
    if (q.q.n == 0 || q.q.n > 1024)
        return xp_fail(err, XP_BAD_REQUEST, 0, "q is missing or longer than 1024 bytes");
    if (xp_span_eq(dir, XP_SPAN_LIT("prev")))
        q.dir = -1, q.after_ps = INT64_MAX;
    else if (dir.n && !xp_span_eq(dir, XP_SPAN_LIT("next")))
        return xp_fail(err, XP_BAD_REQUEST, 0, "dir is next or prev");
    XP_TRY(args_i64(k->args, "after", INT64_MIN, INT64_MAX, &q.after_ps, err));
    XP_TRY(args_u64(k->args, "after_id", UINT64_MAX, &q.after_id, err));
    XP_TRY(args_u32(k->args, "limit", 1, 1000, &q.limit, err));
    XP_TRY(args_window(k->args, &q.t0_ps, &q.t1_ps, err));
    XP_TRY(args_rows(k->args, k->scratch, &q.rows, err));
    XP_TRY(want_derived(k->args, &q.derived, err));
    return query_search(k->part, &q, k->scratch, out, err);
}

static enum xp_status do_aggregate(const struct queries_ask *k, struct out *out,
                                   struct xp_error *err)
{
    struct query_aggregate q = {.limit = 200};
    XP_TRY(args_window(k->args, &q.t0_ps, &q.t1_ps, err));
    XP_TRY(args_u32(k->args, "limit", 1, 1000, &q.limit, err));
    XP_TRY(args_rows(k->args, k->scratch, &q.rows, err));
    XP_TRY(want_derived(k->args, &q.derived, err));
    return query_aggregate(k->part, &q, k->scratch, out, err);
}

static enum xp_status do_curve(const struct queries_ask *k, struct out *out, struct xp_error *err)
{
    struct query_curve q = {.px = 1024, .stat = args_get(k->args, "stat")};
    if (q.stat.n > 256)
        return xp_fail(err, XP_BAD_REQUEST, 0, "stat is longer than 256 bytes");
    XP_TRY(args_window(k->args, &q.t0_ps, &q.t1_ps, err));
    XP_TRY(args_u32(k->args, "px", 1, 4096, &q.px, err));
    XP_TRY(args_rows(k->args, k->scratch, &q.rows, err));
    return query_curve(k->part, &q, k->scratch, out, err);
}

enum xp_status queries_answer(const struct queries_ask *k, struct out *out, struct xp_error *err)
{
    switch (k->op) {
    case SHARD_TRACKS:
        return do_tracks(k, out, err);
    case SHARD_WINDOW:
        out->content_type = "application/x-protobuf";
        return do_window(k, out, err);
    case SHARD_EVENT:
    case SHARD_NEIGHBOUR:
        return do_event(k, out, err);
    case SHARD_SEARCH:
        return do_search(k, out, err);
    case SHARD_AGGREGATE:
        return do_aggregate(k, out, err);
    case SHARD_CURVE:
        return do_curve(k, out, err);
    default:
        return xp_fail(err, XP_INTERNAL, 0, "operation %d is not a query", (int)k->op);
    }
}
