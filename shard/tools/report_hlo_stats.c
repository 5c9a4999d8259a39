#include "shard/tools/report_ops.h"
#include "shard/tools/reports.h"

/* Every HLO op: its time, and how well it uses the device. */

static void verdict(struct report *r, const struct op_view *v)
{
    const struct op_metrics *most = NULL;
    for (uint32_t i = 0; i < v->n; i++)
        if (!v->rows[i].parent && (!most || v->rows[i].op->self_ps > most->self_ps))
            most = v->rows[i].op;
    if (!most || !v->total_ps)
        return;
    struct xp_span name = op_short_name(most);
    report_verdict(r, "%u ops ran; %.*s takes longest: %.1f %% of the time in ops.", v->n,
                   (int)(name.n < 120 ? name.n : 120), (const char *)name.p,
                   100 * (double)most->self_ps / (double)v->total_ps);
}

static uint64_t remat_ps(const struct op_view *v)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < v->n; i++)
        if (!v->rows[i].parent && op_is_remat(v->rows[i].op))
            sum += v->rows[i].op->self_ps;
    return sum;
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct session s;
    struct figures f;
    struct op_view v;
    XP_TRY(session_open_report(merged, args, r->a, &s, &f, err));
    XP_TRY(op_view_open(&v, &f, &s.stats->device, r->a, err));
    verdict(r, &v);
    report_usage(r, &f);
    report_figure(r, "collective_fraction", &f.collective, false);
    report_figure(r, "unattributed_fraction", &f.unattributed, false);
    if (v.total_ps)
        report_double(r, "remat_fraction", (double)remat_ps(&v) / (double)v.total_ps, NULL);
    else
        report_na(r, "remat_fraction", "%s", f.idle.known ? "no HLO op ran" : f.idle.reason);
    report_environment(r, &f);
    report_table_ops(r, &v);
    report_table_groups(r, &v, OPS_BY_CATEGORY);
    report_table_groups(r, &v, OPS_BY_LAYER);
    report_table_groups(r, &v, OPS_BY_SOURCE);
    report_table_groups(r, &v, OPS_BY_REPLICA_GROUP);
    report_table_groups(r, &v, OPS_BY_REMAT);
    report_table_groups(r, &v, OPS_BY_OUTSIDE);
    report_remarks(r, &f);
    return XP_OK;
}

const struct tool_report report_hlo_stats = {
    .question = "How long does each HLO op take, and how well does it use the device?",
    .map = session_map_report,
    .merge = session_merge,
    .write = write_report,
};
