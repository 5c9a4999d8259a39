#include "shard/tools/session.h"

#include "lib/base/pb_wire.h"
#include "shard/tools/profile.h"

enum { SESSION_OPS = 1, SESSION_STEPS };

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

static enum xp_status pack(const struct op_stats *stats, const struct steps *steps, uint32_t index,
                           struct xp_arena *a, struct xp_span *out, struct xp_error *err)
{
    struct xp_buf all, one;
    xp_buf_init(&all, SESSION_MAX);
    xp_buf_init(&one, SESSION_MAX);
    op_stats_pack(stats, index, false, &one);
    xp_pb_put_bytes(&all, SESSION_OPS, xp_buf_all(&one));
    all.failed |= one.failed;
    one.n = 0;
    steps_pack(steps, index, &one);
    xp_pb_put_bytes(&all, SESSION_STEPS, xp_buf_all(&one));
    all.failed |= one.failed;
    enum xp_status st = keep(&all, a, out, err);
    xp_buf_fini(&one);
    xp_buf_fini(&all);
    return st;
}

static enum xp_status unpack(struct xp_span bytes, struct xp_arena *a, struct op_stats **stats,
                             struct steps *steps, struct xp_error *err)
{
    struct xp_pb r = xp_pb_open(bytes);
    struct xp_pb_field f;
    struct xp_span ops = {0}, of_steps = {0};
    while (xp_pb_next(&r, &f)) {
        if (f.num == SESSION_OPS)
            ops = f.bytes;
        else if (f.num == SESSION_STEPS)
            of_steps = f.bytes;
    }
    if (r.bad)
        return xp_fail(err, XP_CORRUPT, 0, "steps and ops of another server cannot be read");
    XP_TRY(op_stats_unpack(ops, a, stats, err));
    return steps_unpack(of_steps, a, steps, err);
}

enum xp_status session_map(const struct tool_host *host, const struct tool_args *args,
                           struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    const struct op_stats *stats;
    const struct steps *steps;
    (void)args;
    XP_TRY(profile_all_readable(host, 1, err));
    XP_TRY(op_stats_get(host->part, &stats, err));
    XP_TRY(steps_get(host->part, &steps, err));
    return pack(stats, steps, host->index, a, partial, err);
}

enum xp_status session_merge(struct xp_span x, struct xp_span y, struct xp_arena *a,
                             struct xp_span *both, struct xp_error *err)
{
    struct op_stats *sx, *sy, *stats;
    struct steps tx, ty, steps;
    *both = x.n ? x : y;
    if (!x.n || !y.n)
        return XP_OK;
    XP_TRY(unpack(x, a, &sx, &tx, err));
    XP_TRY(unpack(y, a, &sy, &ty, err));
    XP_TRY(op_stats_merge(sx, sy, a, &stats, err));
    XP_TRY(steps_merge(&tx, &ty, a, &steps, err));
    return pack(stats, &steps, 0, a, both, err);
}

enum xp_status session_open(struct xp_span merged, struct xp_arena *a, struct session *out,
                            struct xp_error *err)
{
    struct op_stats *stats;
    XP_TRY(unpack(merged, a, &stats, &out->steps, err));
    out->stats = stats;
    op_stats_session(stats, &out->all);
    return XP_OK;
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
