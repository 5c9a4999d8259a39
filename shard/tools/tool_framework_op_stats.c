#include "shard/derive/framework_op.h"
#include "shard/tools/op_tool.h"
#include "shard/tools/reports.h"

/* framework_op_stats: ops by the framework's names, on the device and on the host; twice, with and
 * without idle time. */

#define OPS_MAX 500 /* of the device, and of the host */

struct view {
    struct tables t;
    const struct op_stats *s;
    struct op_session session;
    bool gpu, training;
    uint32_t rank;
    double cumulative;
};

static const struct {
    const char *id;
    enum table_type type;
    const char *label;
} columns[] = {
    {"rank", TABLE_NUMBER, "Rank"},
    {"host_or_device", TABLE_STRING, "Host/device"},
    {"type", TABLE_STRING, "Operation Type"},
    {"operation", TABLE_STRING, "Operation Name"},
    {"occurrences", TABLE_NUMBER, "#Occurrences"},
    {"total_time", TABLE_NUMBER, "Total time (us)"},
    {"avg_time", TABLE_NUMBER, "Avg. time (us)"},
    {"total_self_time", TABLE_NUMBER, "Total self-time (us)"},
    {"avg_self_time", TABLE_NUMBER, "Avg. self-time (us)"},
    {"device_total_self_time_percent", TABLE_NUMBER, "Total self-time on Device (%)"},
    {"device_cumulative_total_self_time_percent", TABLE_NUMBER,
     "Cumulative total-self time on Device (%)"},
    {"host_total_self_time_percent", TABLE_NUMBER, "Total self-time on Host (%)"},
    {"Host_cumulative_total_self_time_percent", TABLE_NUMBER,
     "Cumulative total-self time on Host (%)"},
    {"measured_flop_rate", TABLE_NUMBER, "Normalized FLOP Rate (FLOPs/s)"},
    {"model_flop_rate", TABLE_NUMBER, "Model FLOP Rate (GFLOP/s)"},
    {"measured_memory_bw", TABLE_NUMBER, "Measured Memory BW (GBytes/Sec)"},
    {"operational_intensity", TABLE_NUMBER, "Operational Intensity (FLOPs/Byte)"},
    {"gpu_tensorcore_utilization", TABLE_NUMBER, "GPU TensorCore utilization"},
    {"bound_by", TABLE_STRING, "Bound by"},
    {"eager", TABLE_STRING, "Execution mode"},
};

static void write_columns(struct view *v)
{
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (v->gpu || strcmp(columns[i].id, "gpu_tensorcore_utilization") != 0)
            table_col(&v->t, columns[i].id, columns[i].type, columns[i].label);
}

/* Of the time of the op's kernels, the part in those that use tensor cores. */
static double tensor_core_share(const struct op_stats *s, struct xp_span op)
{
    double tensor = 0, all = 0;
    for (uint32_t i = 0; i < s->nkernels; i++) {
        const struct op_kernel *k = &s->kernels[i];
        if (!xp_span_eq(k->op_name, op))
            continue;
        all += (double)k->total_ns;
        tensor += k->tensor_core ? (double)k->total_ns : 0;
    }
    return op_divide(tensor, all);
}

static void write_row(struct view *v, const struct op_metrics *m, bool device, double total_us)
{
    struct tables *t = &v->t;
    struct op_rates r;
    double n = (double)m->occurrences;
    double share = op_divide(op_us(m->self_ps), total_us);

    v->cumulative += share;
    v->training |= framework_is_gradient(m->name, m->category);
    op_rates_of(m, &v->session.limits, v->session.hardware, &r);
    table_row(t);
    table_num(t, ++v->rank);
    table_cstr(t, device ? "Device" : "Host");
    table_str(t, m->category);
    table_str(t, m->name);
    table_num(t, n);
    table_num(t, op_us(m->time_ps));
    table_num(t, op_divide(op_us(m->time_ps), n));
    table_num(t, op_us(m->self_ps));
    table_num(t, op_divide(op_us(m->self_ps), n));
    table_num(t, device ? share : 0);
    table_num(t, device ? v->cumulative : 0);
    table_num(t, device ? 0 : share);
    table_num(t, device ? 0 : v->cumulative);
    table_num(t, r.flop_rate);
    table_num(t, r.model_flop_rate);
    table_num(t, r.memory_bw);
    table_num(t, r.intensity);
    if (v->gpu)
        table_num(t, device ? tensor_core_share(v->s, m->name) : 0);
    table_cstr(t, r.bound_by);
    table_cstr(t, m->eager ? "Eager" : "Function");
}

static bool write_ops(struct view *v, const struct op_db *db, bool device, bool idle,
                      struct xp_arena *a)
{
    const struct op_metrics **sorted = op_db_sorted(db, a);
    double total_us = op_us(idle ? db->total_ps : db->total_op_ps);
    v->cumulative = 0;
    for (uint32_t i = 0; sorted && i < db->n && i < OPS_MAX; i++)
        if (idle || !op_is_idle(sorted[i]))
            write_row(v, sorted[i], device, total_us);
    return sorted != NULL;
}

static bool write_table(struct view *v, const struct op_db *device, bool idle, struct xp_arena *a)
{
    v->rank = 0;
    v->training = false;
    table_begin(&v->t);
    write_columns(v);
    bool ok = write_ops(v, device, true, idle, a) && write_ops(v, &v->s->host, false, idle, a);
    table_prop(&v->t, "task_type", xp_span_str(v->training ? "Training" : "Inference"));
    table_prop(&v->t, "architecture_type", XP_SPAN_LIT("Unknown"));
    table_end(&v->t);
    return ok;
}

static enum xp_status render(struct xp_span merged, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct op_stats *s;
    struct op_db device;
    XP_TRY(op_stats_unpack(merged, scratch, &s, err));
    XP_TRY(op_stats_by_framework(&s->device, true, scratch, &device, err));

    struct view v = {.s = s};
    op_stats_session(s, &v.session);
    v.gpu = v.session.device_type.n &&
            memmem(v.session.device_type.p, v.session.device_type.n, "GPU", 3) != NULL;
    tables_begin(&v.t, out, args->csv, true);
    bool ok = write_table(&v, &device, true, scratch) && write_table(&v, &device, false, scratch);
    tables_end(&v.t);
    return ok ? XP_OK : xp_fail(err, XP_BUSY, 0, "no memory left to sort ops");
}

const struct tool tool_framework_op_stats = {
    .id = "framework_op_stats",
    .map = op_tool_map,
    .merge = op_tool_merge,
    .render = render,
    .report = &report_framework_op_stats,
};
