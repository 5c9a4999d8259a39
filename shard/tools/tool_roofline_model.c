#include <inttypes.h>
#include <stdio.h>

#include "shard/tools/input_analysis.h"
#include "shard/tools/op_tool.h"
#include "shard/tools/reports.h"
#include "shard/tools/session.h"

/* roofline_model: the program and its ops against what the device could do, over the whole profile
 * and by step; with feeds, then without. */

#define OPS_MAX 1000

enum { TPU_ONLY = 1, GPU_ONLY = 2 };

static const struct {
    const char *id;
    enum table_type type;
    const char *label;
    uint8_t only;
} columns[] = {
    {"step", TABLE_STRING, "Step", 0},
    {"rank", TABLE_NUMBER, "Rank", 0},
    {"category", TABLE_STRING, "Category", 0},
    {"operation", TABLE_STRING, "Operation", 0},
    {"occurrences", TABLE_NUMBER, "# Occurrences", 0},
    {"total_time", TABLE_NUMBER, "Total Time (us)", 0},
    {"avg_time", TABLE_NUMBER, "Avg. time (us)", 0},
    {"total_self_time", TABLE_NUMBER, "Total self time (us)", 0},
    {"avg_self_time", TABLE_NUMBER, "Avg. self time (us)", 0},
    {"total_self_time_percent", TABLE_NUMBER, "Total self time (%)", 0},
    {"cumulative_total_self_time_percent", TABLE_NUMBER, "Cumulative total self time (%)", 0},
    {"dma_stall_percent", TABLE_NUMBER, "%time stalled by DMA", TPU_ONLY},
    {"measured_flop_rate", TABLE_NUMBER, "Normalized FLOP Rate (GFLOP/s)", 0},
    {"model_flop_rate", TABLE_NUMBER, "Model FLOP Rate (GFLOP/s)", 0},
    {"measured_memory_bw", TABLE_NUMBER, "Memory BW (GiB/s)", 0},
    {"hbm_bw", TABLE_NUMBER, "HBM BW (GiB/s)", 0},
    {"cmem_read_bw", TABLE_NUMBER, "CMEM Read BW (GiB/s)", TPU_ONLY},
    {"cmem_write_bw", TABLE_NUMBER, "CMEM Write BW (GiB/s)", TPU_ONLY},
    {"vmem_read_bw", TABLE_NUMBER, "VMEM Read BW (GiB/s)", TPU_ONLY},
    {"vmem_write_bw", TABLE_NUMBER, "VMEM Write BW (GiB/s)", TPU_ONLY},
    {"vmem_write_bw", TABLE_NUMBER, "SHM/L1 BW (GiB/s)", GPU_ONLY},
    {"operational_intensity", TABLE_NUMBER, "Operational Intensity (FLOP/Byte)", 0},
    {"hbm_operational_intensity", TABLE_NUMBER, "HBM Operational Intensity (FLOP/Byte)", 0},
    {"cmem_read_operational_intensity", TABLE_NUMBER, "CMEM Read Operational Intensity (FLOP/Byte)",
     TPU_ONLY},
    {"cmem_write_operational_intensity", TABLE_NUMBER,
     "CMEM Write Operational Intensity (FLOP/Byte)", TPU_ONLY},
    {"vmem_read_operational_intensity", TABLE_NUMBER, "VMEM Read Operational Intensity (FLOP/Byte)",
     TPU_ONLY},
    {"vmem_write_operational_intensity", TABLE_NUMBER,
     "VMEM Write Operational Intensity (FLOP/Byte)", TPU_ONLY},
    {"vmem_write_operational_intensity", TABLE_NUMBER, "SHM/L1 Operational Intensity (FLOP/Byte)",
     GPU_ONLY},
    {"bottleneck_operational_intensity", TABLE_NUMBER,
     "Bottleneck Operational Intensity (FLOP/Byte)", 0},
    {"bound_by", TABLE_STRING, "Bound by", 0},
    {"total_time_per_core", TABLE_NUMBER, "Total Time per core (us)", 0},
    {"total_time_in_percentage", TABLE_NUMBER, "Total Time (%)", 0},
    {"optimal_flop_rate", TABLE_NUMBER, "Optimal FLOP Rate (GFLOP/s)", 0},
    {"roofline_efficiency", TABLE_NUMBER, "Roofline efficiency (%)", 0},
    {"compute_efficiency", TABLE_NUMBER, "FLOP Rate / Peak (%)", 0},
    {"max_mem_bw_utilization", TABLE_NUMBER,
     "Max memory BW utilization (among supported memories) (%)", 0},
    {"include_infeed_outfeed", TABLE_BOOLEAN, "Include Infeed/Outfeed", 0},
    {"hlo_module_id", TABLE_STRING, "Program ID", 0},
    {"source_info", TABLE_STRING, "Source Info", 0},
};

/* What the device can do, in GFLOP/s and GiB/s. 0: has none, or it is not told. */
struct peaks {
    double flops, hbm, cmem_rd, cmem_wr, vmem_rd, vmem_wr;
    bool cmem, vmem;
};

struct view {
    struct tables t;
    const struct session *s;
    const struct step_db *steps;
    struct peaks peaks;
    bool gpu, feeds;
    struct xp_arena *a;
};

static void peaks_of(const struct op_session *all, struct peaks *p)
{
    const struct op_limits *l = &all->limits;
    bool tpu = all->hardware == OP_HW_TPU, gpu = all->hardware == OP_HW_GPU;
    *p = (struct peaks){.cmem = tpu && l->has_cmem, .vmem = gpu || (tpu && l->has_merged_vmem)};
    p->flops = l->peak_tflops * 1e3;
    p->hbm = l->gbs[OP_BW_HBM] * OP_GIB_PER_GB;
    if (p->cmem) {
        p->cmem_rd = l->gbs[OP_BW_CMEM_RD] * OP_GIB_PER_GB;
        p->cmem_wr = l->gbs[OP_BW_CMEM_WR] * OP_GIB_PER_GB;
    } else if (p->vmem) {
        p->vmem_rd = l->gbs[gpu ? OP_BW_SRAM_RD : OP_BW_VMEM_RD] * OP_GIB_PER_GB;
        p->vmem_wr = l->gbs[gpu ? OP_BW_SRAM_WR : OP_BW_VMEM_WR] * OP_GIB_PER_GB;
    }
}

/* --- a row --- */

struct row {
    const char *step;
    const struct op_metrics *m;
    uint32_t rank;
    double cumulative; /* with this row; fractions */
    double share;
    uint64_t total_ps;
    double per; /* times are divided by it */
};

static double most(double a, double b)
{
    return a > b ? a : b;
}

static double memory_use(const struct view *v, const struct op_rates *r)
{
    const struct peaks *p = &v->peaks;
    double use = op_divide(r->hbm_bw, p->hbm);
    if (p->cmem) {
        use = most(use, op_divide(r->cmem_rd_bw, p->cmem_rd));
        use = most(use, op_divide(r->cmem_wr_bw, p->cmem_wr));
    }
    if (p->vmem) {
        use = most(use, op_divide(r->vmem_rd_bw, p->vmem_rd));
        use = most(use, op_divide(r->vmem_wr_bw, p->vmem_wr));
    }
    return use;
}

static void write_times(struct view *v, const struct row *r)
{
    struct tables *t = &v->t;
    const struct op_metrics *m = r->m;
    double n = (double)m->occurrences;
    table_cstr(t, r->step);
    table_num(t, r->rank);
    table_str(t, m->category);
    table_str(t, m->name);
    table_num(t, n);
    table_num(t, op_divide(op_us(m->time_ps), r->per));
    table_num(t, op_divide(op_us(m->time_ps), n));
    table_num(t, op_divide(op_us(m->self_ps), r->per));
    table_num(t, op_divide(op_us(m->self_ps), n));
    table_num(t, r->share);
    table_num(t, r->cumulative);
    if (!v->gpu)
        table_num(t, op_divide((double)m->dma_stall_ps, (double)m->time_ps));
}

static void write_rates(struct view *v, const struct op_rates *r)
{
    struct tables *t = &v->t;
    table_num(t, r->flop_rate);
    table_num(t, r->model_flop_rate);
    table_num(t, r->memory_bw);
    table_num(t, r->hbm_bw);
    if (!v->gpu) {
        table_num(t, r->cmem_rd_bw);
        table_num(t, r->cmem_wr_bw);
        table_num(t, r->vmem_rd_bw);
    }
    table_num(t, r->vmem_wr_bw);
    table_num(t, r->intensity);
    table_num(t, r->hbm_intensity);
    if (!v->gpu) {
        table_num(t, r->cmem_rd_intensity);
        table_num(t, r->cmem_wr_intensity);
        table_num(t, r->vmem_rd_intensity);
    }
    table_num(t, r->vmem_wr_intensity);
    table_num(t, r->bound_intensity);
    table_cstr(t, r->bound_by);
}

static void write_row(struct view *v, const struct row *r)
{
    struct tables *t = &v->t;
    const struct op_metrics *m = r->m;
    struct op_rates rates;
    char program[24];

    op_rates_of(m, &v->s->all.limits, v->s->all.hardware, &rates);
    double compute = op_divide(rates.flop_rate, v->peaks.flops), memory = memory_use(v, &rates);
    double best = most(compute, memory);
    table_row(t);
    write_times(v, r);
    write_rates(v, &rates);
    table_num(t, op_divide(op_divide(op_us(m->time_ps), r->per), v->s->all.device_cores));
    table_num(t, op_divide((double)m->time_ps, (double)r->total_ps));
    table_num(t, op_divide(rates.flop_rate, best));
    table_num(t, best);
    table_num(t, compute);
    table_num(t, memory);
    table_bool(t, v->feeds);
    snprintf(program, sizeof program, "%" PRIu64, m->program);
    table_cstr(t, program);
    op_table_source(t, &m->source);
}

/* --- the program as a whole --- */

static void program_row(struct view *v, const char *step, struct op_metrics *m, double per)
{
    m->name = m->category = XP_SPAN_LIT("Program");
    m->occurrences = 1;
    write_row(v, &(struct row){.step = step, .m = m, .total_ps = m->time_ps, .per = per});
}

static bool is_feed(const struct op_metrics *m)
{
    return op_kind_of(m->category) & (OP_KIND_INFEED | OP_KIND_OUTFEED);
}

static void memory_add(struct op_memory *to, const struct op_memory *from, bool minus)
{
    to->known |= from->known && !minus;
    for (int s = 0; s < OP_MEM_SPACES; s++)
        for (int a = 0; a < OP_MEM_ACCESSES; a++)
            to->bytes[s][a] += minus ? (uint64_t)0 - from->bytes[s][a] : from->bytes[s][a];
}

static void add_work(struct op_metrics *to, const struct op_metrics *m)
{
    to->flops += m->flops;
    to->model_flops += m->model_flops;
    to->bytes += m->bytes;
    memory_add(&to->memory, &m->memory, false);
}

/* Ops of one step on one core. */
static void add_step(const struct view *v, struct op_metrics *to, const struct step_core *c)
{
    const struct op_step *s = c->ops;
    if (c->sparse || !s)
        return;
    to->time_ps += c->duration_ps;
    to->flops += s->flops;
    to->model_flops += s->model_flops;
    to->bytes += s->bytes;
    memory_add(&to->memory, &s->memory, false);
    if (v->feeds)
        return;
    to->time_ps -= s->feeds_ps;
    to->flops -= s->feeds_flops;
    to->model_flops -= s->feeds_model_flops;
    to->bytes -= s->feeds_bytes;
    memory_add(&to->memory, &s->feeds_memory, true);
}

static void write_steps(struct view *v)
{
    struct op_metrics all = {.program = 0};
    char step[24];
    for (uint32_t i = 0; i < v->steps->n; i++)
        for (uint32_t k = 0; k < v->steps->steps[i].ncores; k++)
            add_step(v, &all, &v->steps->steps[i].cores[k]);
    if (!v->gpu || v->s->stats->nhosts > 1)
        program_row(v, "Average", &all, v->steps->n);
    for (uint32_t i = 0; i < v->steps->n; i++) {
        struct op_metrics one = {.program = 0};
        for (uint32_t k = 0; k < v->steps->steps[i].ncores; k++)
            add_step(v, &one, &v->steps->steps[i].cores[k]);
        snprintf(step, sizeof step, "%" PRIu32, v->steps->steps[i].num);
        program_row(v, step, &one, 1);
    }
}

/* --- all rows --- */

static bool write_ops(struct view *v)
{
    const struct op_db *db = &v->s->stats->device;
    const struct op_metrics **sorted = op_db_sorted(db, v->a);
    struct op_metrics program = {.time_ps = db->total_ps};
    struct row r = {.step = "Total", .per = 1};
    if (!sorted)
        return false;
    for (uint32_t i = 0; i < db->n; i++) {
        uint32_t kind = op_kind_of(db->ops[i].category);
        bool feed = is_feed(&db->ops[i]) && !v->feeds;
        if (feed)
            program.time_ps -= db->ops[i].time_ps;
        if (!(kind & OP_KIND_INNER) && !feed)
            add_work(&program, &db->ops[i]);
    }
    r.total_ps = program.time_ps;
    program_row(v, "Total", &program, 1);
    for (uint32_t i = 0; i < db->n && i < OPS_MAX; i++) {
        if (!sorted[i]->occurrences || (!v->feeds && is_feed(sorted[i])))
            continue;
        r.m = sorted[i];
        r.rank++;
        r.share = op_divide(op_us(r.m->self_ps), op_us(r.total_ps));
        r.cumulative += r.share;
        write_row(v, &r);
    }
    return true;
}

static void ridge(struct view *v, const char *name, double bw)
{
    table_prop_num(&v->t, name, op_divide(v->peaks.flops, bw / OP_GIB_PER_GB));
}

static void write_props(struct view *v, bool device)
{
    const struct peaks *p = &v->peaks;
    const struct op_session *all = &v->s->all;
    const struct op_db *db = &v->s->stats->device;
    struct tables *t = &v->t;
    table_prop(t, "device_type", device ? all->device_type : (struct xp_span){0});
    if (!v->gpu) {
        table_prop_num(t, "megacore", device && all->limits.has_megacore);
        table_prop_num(t, "has_cmem", p->cmem);
        table_prop_num(t, "has_merged_vmem", p->vmem);
    }
    table_prop_num(t, "peak_flop_rate", p->flops);
    table_prop_num(t, "peak_hbm_bw", p->hbm);
    table_prop_num(t, "peak_vmem_write_bw", p->vmem_wr);
    ridge(v, "hbm_ridge_point", p->hbm);
    ridge(v, "vmem_write_ridge_point", p->vmem_wr);
    if (v->gpu)
        return;
    table_prop_num(t, "peak_cmem_read_bw", p->cmem_rd);
    table_prop_num(t, "peak_cmem_write_bw", p->cmem_wr);
    table_prop_num(t, "peak_vmem_read_bw", p->vmem_rd);
    ridge(v, "cmem_read_ridge_point", p->cmem_rd);
    ridge(v, "cmem_write_ridge_point", p->cmem_wr);
    ridge(v, "vmem_read_ridge_point", p->vmem_rd);
    table_prop_num(t, "time_scale_multiplier",
                   device ? op_divide((double)db->total_op_norm_ps, (double)db->total_op_ps) : 0);
}

static bool write_records(struct view *v, bool device)
{
    bool ok = true;
    table_begin(&v->t);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (!columns[i].only || columns[i].only == (v->gpu ? GPU_ONLY : TPU_ONLY))
            table_col(&v->t, columns[i].id, columns[i].type, columns[i].label);
    for (int pass = 0; device && ok && pass < 2; pass++) {
        v->feeds = pass == 0;
        ok = write_ops(v);
        write_steps(v);
    }
    write_props(v, device);
    table_end(&v->t);
    return ok;
}

static void write_diagnostics(struct view *v, bool device)
{
    const char *warning = device ? session_step_warning(v->steps) : NULL;
    struct xp_span text = xp_span_str(warning ? warning : "");
    input_table_diagnostics(&v->t, &text, warning ? 1 : 0, NULL, 0);
}

static enum xp_status render(struct xp_span merged, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct session s;
    struct step_db steps;
    XP_TRY(session_open(merged, scratch, &s, err));
    XP_TRY(steps_combine(&s.steps, s.stats, true, scratch, &steps, err));

    struct view v = {.s = &s, .steps = &steps, .a = scratch};
    bool device = s.all.hardware == OP_HW_TPU || s.all.hardware == OP_HW_GPU;
    v.gpu = s.all.hardware == OP_HW_GPU;
    if (device)
        peaks_of(&s.all, &v.peaks);
    tables_begin(&v.t, out, args->csv, true);
    bool ok = write_records(&v, device);
    write_diagnostics(&v, device);
    tables_end(&v.t);
    return ok ? XP_OK : xp_fail(err, XP_BUSY, 0, "no memory left to sort ops");
}

const struct tool tool_roofline_model = {
    .id = "roofline_model",
    .map = session_map,
    .merge = session_merge,
    .render = render,
    .report = &report_roofline_model,
};
