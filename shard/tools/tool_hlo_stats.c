#include <inttypes.h>
#include <stdio.h>

#include "shard/tools/op_tool.h"
#include "shard/tools/op_traits.h"
#include "shard/tools/reports.h"

/* hlo_stats: every op of the device with its times, rates and what bounds it. Ops that ran on
 * SparseCores for another op follow that op. */

static const struct {
    const char *id;
    enum table_type type;
    const char *label;
} columns[] = {
    {"rank", TABLE_NUMBER, "Rank"},
    {"program_id", TABLE_STRING, "Program id"},
    {"category", TABLE_STRING, "HLO op category"},
    {"hlo_op_name", TABLE_STRING, "HLO op name"},
    {"hlo_op_expression", TABLE_STRING, "HLO op text"},
    {"tf_op_name", TABLE_STRING, "Framework op name"},
    {"occurrences", TABLE_NUMBER, "#Occurrences"},
    {"total_time", TABLE_NUMBER, "Total time (us)"},
    {"avg_time", TABLE_NUMBER, "Avg. time (us)"},
    {"total_self_time", TABLE_NUMBER, "Total self time (us)"},
    {"avg_self_time", TABLE_NUMBER, "Avg. self time (us)"},
    {"total_self_time_percent", TABLE_NUMBER, "Total self time (%)"},
    {"cumulative_total_self_time_percent", TABLE_NUMBER, "Cumulative total self time (%)"},
    {"dma_stall_percent", TABLE_NUMBER, "%time stalled by DMA"},
    {"model_flop_rate", TABLE_NUMBER, "Model GFLOP/s"},
    {"normalized_flop_rate", TABLE_NUMBER, "Normalized GFLOP/s"},
    {"measured_memory_bw", TABLE_NUMBER, "Measured memory BW (GiB/s)"},
    {"hbm_bw", TABLE_NUMBER, "HBM BW (GiB/s)"},
    {"cmem_read_bw", TABLE_NUMBER, "CMEM Read BW (GiB/s)"},
    {"cmem_write_bw", TABLE_NUMBER, "CMEM Write BW (GiB/s)"},
    {"operational_intensity", TABLE_NUMBER, "Operational intensity (FLOPS/Byte)"},
    {"bound_by", TABLE_STRING, "Bound by"},
    {"hlo_rematerialization", TABLE_STRING, "Rematerialization"},
    {"outside_compilation", TABLE_STRING, "Outside Compilation"},
    {"autotuned", TABLE_STRING, "Autotuned"},
    {"source_info", TABLE_STRING, "Source Info"},
    {"core_type", TABLE_STRING, "TPU core type"},
    {"parent_op_name", TABLE_STRING, "Parent op name"},
    {"vdd_energy", TABLE_NUMBER, "VDD Energy (J)"},
};

struct view {
    struct tables t;
    struct op_session session;
    double total_us, cumulative;
    uint32_t rank;
    struct xp_arena *a;
    bool busy;
};

static struct xp_span before(struct xp_span s, struct xp_span mark)
{
    const uint8_t *p = s.n ? memmem(s.p, s.n, mark.p, mark.n) : NULL;
    return p ? xp_span_of(s.p, (size_t)(p - s.p)) : s;
}

/* "%name = f32[] ..." */
static struct xp_span op_name(struct xp_span expression)
{
    struct xp_span s = before(expression, XP_SPAN_LIT(" = "));
    if (s.n && s.p[0] == '%')
        s = xp_span_of(s.p + 1, s.n - 1);
    return s;
}

static void write_rates(struct view *v, const struct op_metrics *m)
{
    struct tables *t = &v->t;
    struct op_rates r;
    op_rates_of(m, &v->session.limits, v->session.hardware, &r);
    table_num(t, r.model_flop_rate);
    table_num(t, r.flop_rate);
    table_num(t, r.memory_bw);
    table_num(t, r.hbm_bw);
    table_num(t, r.cmem_rd_bw);
    table_num(t, r.cmem_wr_bw);
    table_num(t, r.intensity);
    table_cstr(t, r.bound_by);
}

/* Of an op that ran for another (parent not empty) neither rank nor shares are told. */
static void write_op(struct view *v, const struct op_metrics *m, struct xp_span parent)
{
    static const char *const cores[] = {"", "TensorCore", "SparseCore"};
    struct tables *t = &v->t;
    struct xp_span expression = m->long_name.n ? m->long_name : m->name;
    double n = (double)m->occurrences, share = 0;
    char program[24];

    if (!parent.n) {
        share = op_divide(op_us(m->self_ps), v->total_us);
        v->cumulative += share;
        v->rank++;
    }
    snprintf(program, sizeof program, "%" PRIu64, m->program);
    table_row(t);
    table_num(t, parent.n ? 0 : v->rank);
    table_cstr(t, program);
    table_str(t, m->category);
    table_str(t, op_name(expression));
    table_str(t, expression);
    table_str(t, m->provenance);
    table_num(t, n);
    table_num(t, op_us(m->time_ps));
    table_num(t, op_divide(op_us(m->time_ps), n));
    table_num(t, op_us(m->self_ps));
    table_num(t, op_divide(op_us(m->self_ps), n));
    table_num(t, share * 100);
    table_num(t, parent.n ? 0 : v->cumulative * 100);
    table_num(t, op_divide((double)m->dma_stall_ps, (double)m->time_ps));
    write_rates(v, m);
    table_cstr(t, op_is_remat(m) ? "Yes" : "No");
    table_cstr(t, op_is_outside(m) ? "Yes" : "No");
    table_cstr(t, "No");
    op_table_source(t, &m->source);
    table_cstr(t, cores[m->core_type <= OP_CORE_SPARSE ? m->core_type : 0]);
    table_str(t, parent);
    table_num(t, m->energy_j);
}

static void write_sparse(struct view *v, const struct op_metrics *parent)
{
    struct op_db db = {.ops = parent->children, .n = parent->nchildren};
    if (!parent->children_total_ps || !db.n)
        return;
    const struct op_metrics **sorted = op_db_sorted(&db, v->a);
    v->busy |= !sorted;
    for (uint32_t i = 0; sorted && i < db.n; i++)
        if (sorted[i]->occurrences && sorted[i]->core_type == OP_CORE_SPARSE)
            write_op(v, sorted[i], parent->name);
}

static enum xp_status render(struct xp_span merged, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct op_stats *s;
    struct view v = {.a = scratch};
    XP_TRY(op_stats_unpack(merged, scratch, &s, err));
    op_stats_session(s, &v.session);
    v.total_us = op_us(s->device.total_ps);
    const struct op_metrics **sorted = op_db_sorted(&s->device, scratch);
    if (!sorted)
        return xp_fail(err, XP_BUSY, 0, "no memory left to sort ops");
    tables_begin(&v.t, out, args->csv, false);
    table_begin(&v.t);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        table_col(&v.t, columns[i].id, columns[i].type, columns[i].label);
    for (uint32_t i = 0; i < s->device.n && !out_cancelled(out); i++) {
        if (!sorted[i]->occurrences)
            continue;
        write_op(&v, sorted[i], (struct xp_span){0});
        write_sparse(&v, sorted[i]);
    }
    table_end(&v.t);
    tables_end(&v.t);
    return v.busy ? xp_fail(err, XP_BUSY, 0, "no memory left to sort ops") : XP_OK;
}

const struct tool tool_hlo_stats = {
    .id = "hlo_stats",
    .map = op_tool_map,
    .merge = op_tool_merge,
    .render = render,
    .report = &report_hlo_stats,
};
