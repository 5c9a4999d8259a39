#include "shard/derive/framework_op.h"
#include "shard/stats/op_stats_int.h"

/* The framework op that a device op came from, and its type. */
static void origin_of(const struct op_metrics *m, struct xp_span *name, struct xp_span *type)
{
    *name = m->name;
    *type = XP_SPAN_LIT("Unknown");
    if (op_is_idle(m)) {
        *name = *type = XP_SPAN_LIT("IDLE");
    } else if (m->provenance.n) {
        struct framework_op op = framework_op_parse(m->provenance);
        *name = op.name;
        *type = op.type;
        if (xp_span_eq(op.type, XP_SPAN_LIT("")))
            *type = XP_SPAN_LIT("Unknown");
    }
}

static bool add(struct op_table *t, const struct op_metrics *m)
{
    struct xp_span name, type;
    origin_of(m, &name, &type);
    struct op_metrics *to = op_table_get(t, 0, name);
    if (!to)
        return false;
    if (!to->category.n)
        to->category = type;
    to->eager = m->eager;
    if (m->occurrences > to->occurrences)
        to->occurrences = m->occurrences;
    to->time_ps += m->time_ps;
    to->self_ps += m->self_ps;
    to->flops += m->flops;
    to->model_flops += m->model_flops;
    to->bytes += m->bytes;
    to->core_type = m->core_type;
    if (!to->source.file.n)
        to->source = m->source;
    if (!to->first_plane.n) {
        to->host = m->host;
        to->first_begin_ps = m->first_begin_ps;
        to->first_plane = m->first_plane;
    }
    return true;
}

enum xp_status op_stats_by_framework(const struct op_db *device, bool with_idle, struct xp_arena *a,
                                     struct op_db *out, struct xp_error *err)
{
    struct op_table t = {0};
    bool ok = true;
    *out = (struct op_db){.total_ps = with_idle ? device->total_ps : device->total_op_ps,
                          .total_op_ps = device->total_op_ps};
    for (uint32_t i = 0; ok && i < device->n; i++)
        if (with_idle || !op_is_idle(&device->ops[i]))
            ok = add(&t, &device->ops[i]);
    if (ok) {
        out->ops = xp_arena_alloc(a, (t.ops.n + 1) * sizeof *out->ops);
        ok = out->ops != NULL;
    }
    if (ok) {
        out->n = (uint32_t)t.ops.n;
        if (t.ops.n)
            memcpy(out->ops, t.ops.p, t.ops.n * sizeof *out->ops);
    }
    op_table_fini(&t);
    return ok ? XP_OK : xp_fail(err, XP_BUSY, 0, "no memory left to gather framework ops");
}
