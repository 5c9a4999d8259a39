#include <stdlib.h>

#include "shard/stats/figures_run.h"
#include "shard/tools/report_ops.h"
#include "shard/tools/reports.h"

/* Memory- or compute-bound, and how far from the roof: programs' steps and ops. */

#define DOTS 1000

struct view {
    struct op_view ops;
    const struct op_metrics **dots; /* by self time; drawn: those with flops and bytes */
    uint32_t ndots, undrawn;
    uint64_t undrawn_ps;
    struct step_sum {
        int64_t group;
        struct xp_span name;
        double flops, hbm_bytes, ps; /* sums over its cores */
        uint32_t cores;
        uint32_t host; /* place in the request, and begin there, of the core that began first */
        int64_t begin_ps;
    } * steps, average;
    uint32_t nsteps;
    bool counted; /* some host's hardware counters say how much was used */
    double mxu, hbm;
};

/* --- what the device can do --- */

struct memory {
    const char *name;
    double bytes_per_s;
};

static const struct report_column roof_columns[] = {
    {"memory", "Memory", "", REPORT_COL_TEXT, false, ""},
    {"peak_rate", "Peak", "bytes/s", REPORT_COL_NUMBER, false, "of one core"},
    {"ridge", "Ridge point", "flop/byte", REPORT_COL_NUMBER, false, "peak_flop_rate / peak"},
};

struct roofs {
    const struct figures *f;
    struct memory v[OP_BW_COUNT];
    uint32_t n;
};

static void roof_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct roofs *x = ctx;
    c[0] = report_of_text(xp_span_str(x->v[i].name));
    c[1] = report_of_double(x->v[i].bytes_per_s);
    if (x->f->peaks.flops > 0)
        c[2] = report_ratio(x->f->peaks.flops, x->v[i].bytes_per_s);
}

static void table_roofs(struct report *r, const struct figures *f)
{
    static const char *const tpu[OP_BW_COUNT] = {
        "HBM", "SRAM read", "SRAM write", "CMEM read", "CMEM write", "VMEM read", "VMEM write"};
    struct roofs x = {.f = f};
    bool gpu = f->all.hardware == OP_HW_GPU;
    for (int i = 0; i < OP_BW_COUNT; i++) {
        bool sram = i == OP_BW_SRAM_RD || i == OP_BW_SRAM_WR;
        if (!(f->limits.gbs[i] > 0) || (sram && !gpu) || (gpu && i > OP_BW_SRAM_WR))
            continue;
        x.v[x.n++] = (struct memory){gpu && i == OP_BW_SRAM_RD   ? "Shared memory, L1 read"
                                     : gpu && i == OP_BW_SRAM_WR ? "Shared memory, L1 write"
                                                                 : tpu[i],
                                     f->limits.gbs[i] * 1e9};
    }
    report_table(r, &(struct report_rows){.id = "roofs",
                                          .title = "What a core can do",
                                          .columns = roof_columns,
                                          .ncolumns = sizeof roof_columns / sizeof *roof_columns,
                                          .n = x.n,
                                          .row = roof_row,
                                          .ctx = &x});
}

/* --- steps --- */

static int by_group(const void *a, const void *b)
{
    const struct step_sum *x = a, *y = b;
    return (x->group > y->group) - (x->group < y->group);
}

static double step_length(const struct op_step *x)
{
    return (double)figure_length(x->begin_ps, x->end_ps);
}

static void add_step(struct step_sum *to, const struct step_sum *x)
{
    to->flops += x->flops;
    to->hbm_bytes += x->hbm_bytes;
    to->ps += x->ps;
    to->cores += x->cores;
}

static bool sum_steps(struct view *v, const struct op_stats *s, struct xp_arena *a)
{
    size_t n = 1;
    for (uint32_t h = 0; h < s->nhosts; h++)
        for (uint32_t c = 0; c < s->hosts[h].ncores; c++)
            n += s->hosts[h].cores[c].nsteps;
    v->steps = xp_arena_alloc(a, n * sizeof *v->steps);
    n = 0;
    for (uint32_t h = 0; v->steps && h < s->nhosts; h++)
        for (uint32_t c = 0; c < s->hosts[h].ncores; c++)
            for (uint32_t i = 0; !s->hosts[h].cores[c].sparse && i < s->hosts[h].cores[c].nsteps;
                 i++) {
                const struct op_step *x = &s->hosts[h].cores[c].steps[i];
                if (x->marked && x->end_ps > x->begin_ps)
                    v->steps[n++] = (struct step_sum){.group = x->group,
                                                      .name = x->name,
                                                      .flops = x->run_flops,
                                                      .hbm_bytes = x->hbm_bytes,
                                                      .ps = step_length(x),
                                                      .cores = 1,
                                                      .host = s->hosts[h].index,
                                                      .begin_ps = x->begin_ps};
            }
    if (!v->steps)
        return false;
    qsort(v->steps, n, sizeof *v->steps, by_group);
    for (size_t i = 0; i < n; i++) {
        struct step_sum *last = v->nsteps ? &v->steps[v->nsteps - 1] : NULL;
        if (!last || last->group != v->steps[i].group) {
            v->steps[v->nsteps++] = v->steps[i];
            continue;
        }
        add_step(last, &v->steps[i]);
        if (v->steps[i].begin_ps < last->begin_ps) {
            last->begin_ps = v->steps[i].begin_ps;
            last->host = v->steps[i].host;
        }
    }
    for (uint32_t i = 0; i < v->nsteps; i++)
        add_step(&v->average, &v->steps[i]);
    return true;
}

/* What the host's own counters measured; XProf has the same two for a program. */
static void counters(struct view *v, const struct op_stats *s)
{
    uint32_t n = 0;
    for (uint32_t h = 0; h < s->nhosts; h++) {
        const struct op_host *x = &s->hosts[h];
        if (!x->has_mxu || !x->has_hbm_util)
            continue;
        v->mxu += x->mxu_percent / 100;
        v->hbm += x->hbm_percent / 100;
        n++;
    }
    v->counted = n && (v->mxu > 0 || v->hbm > 0);
    v->mxu /= n ? n : 1;
    v->hbm /= n ? n : 1;
}

/* Rows: all of the profile, the same by hardware counters, the average of steps, each step. */
enum { ROW_ALL, ROW_COUNTED, ROW_AVERAGE, ROW_STEPS };

static const struct report_column step_columns[] = {
    {"step", "Step", "", REPORT_COL_TEXT, false, "name of its marker"},
    {"kind", "Kind", "", REPORT_COL_TEXT, false,
     "total: the whole profile, idle time too; hardware: the same by counters of the hardware; "
     "average: of all steps; step: one"},
    {"time", "Time", "ps", REPORT_COL_NUMBER, false, "mean over cores"},
    {"flop_rate", "FLOP rate", "flop/s", REPORT_COL_NUMBER, false, "of a core"},
    {"flop_utilization", "FLOP use", "fraction", REPORT_COL_NUMBER, false,
     "FLOP rate / peak_flop_rate"},
    {"hbm_rate", "HBM rate", "bytes/s", REPORT_COL_NUMBER, false,
     "of a core: bytes that the ops inside of it read and write"},
    {"hbm_utilization", "HBM use", "fraction", REPORT_COL_NUMBER, false,
     "HBM rate / peak_hbm_rate"},
    {"intensity", "Intensity", "flop/byte", REPORT_COL_NUMBER, false, "flops / HBM bytes"},
    {"host", "Host", "", REPORT_COL_TEXT, false, "where it began first"},
    {"first_begin_ps", "First begin", "ps", REPORT_COL_NUMBER, false, "session time of that host"},
};

/* Rates of a core from what it did in so long; none: not known. */
static void rates(const struct figures *f, double flops, double bytes, double sec,
                  struct report_cell *c)
{
    if (flops > 0) {
        c[3] = report_ratio(flops, sec);
        c[4] = report_ratio(flops, sec * f->peaks.flops);
    }
    if (bytes > 0) {
        c[5] = report_ratio(bytes, sec);
        c[6] = report_ratio(bytes, sec * f->peaks.hbm);
    }
    if (flops > 0 && bytes > 0)
        c[7] = report_ratio(flops, bytes);
}

static void step_row(void *ctx, uint64_t i, struct report_cell *c)
{
    static const char *const kinds[] = {"total", "hardware", "average", "step"};
    const struct view *v = ctx;
    const struct figures *f = v->ops.f;
    i += i >= ROW_COUNTED && !v->counted;
    i += i >= ROW_AVERAGE && !v->nsteps;
    c[1] = report_of_text(xp_span_str(kinds[i < ROW_STEPS ? i : ROW_STEPS]));
    if (i == ROW_ALL || i == ROW_COUNTED) {
        double sec = (double)f->window_ps / 1e12;
        c[0] = report_of_text(i ? XP_SPAN_LIT("all, by hardware counters") : XP_SPAN_LIT("all"));
        rates(f, i ? v->mxu * f->peaks.flops * sec : f->flops,
              i ? v->hbm * f->peaks.hbm * sec : f->hbm_bytes, sec, c);
        return;
    }
    const struct step_sum *s = i == ROW_AVERAGE ? &v->average : &v->steps[i - ROW_STEPS];
    c[0] = report_of_text(i == ROW_AVERAGE ? XP_SPAN_LIT("average of steps") : s->name);
    c[2] = report_of_u64((uint64_t)(s->ps / s->cores));
    rates(f, s->flops, s->hbm_bytes, s->ps / 1e12, c);
    if (i == ROW_AVERAGE)
        return;
    c[8] = op_host_name(f, s->host);
    c[9] = report_of_i64(s->begin_ps);
}

static uint64_t step_rows(const struct view *v)
{
    if (!v->ops.f->window_ps)
        return 0;
    return (uint64_t)1 + v->counted + (v->nsteps ? 1 + (uint64_t)v->nsteps : 0);
}

static void step_notes(struct report *r, const struct view *v)
{
    if (!v->nsteps && v->ops.f->window_ps)
        report_note(r, REPORT_INFO, "no_program_steps",
                    "Steps are n/a here: the profile's devices have no line of steps whose ops "
                    "could be counted (on TPUs mark steps with jax.profiler.StepTraceAnnotation; "
                    "GPUs have none).");
    if (!v->counted && v->ops.f->all.hardware == OP_HW_TPU)
        report_note(r, REPORT_INFO, "no_counted_total",
                    "The total by hardware counters is n/a: the host's plane has no "
                    "matrix_unit_utilization_percent and hbm_utilization_percent, which the TPU "
                    "runtime writes where it samples counters.");
}

/* --- dots --- */

static const char *const dot_names[] = {"flop_rate", "self_time"};

static void dot(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct view *v = ctx;
    struct op_use u;
    op_use_of(v->ops.f, v->dots[i], &u);
    *x = u.intensity;
    y[0] = u.flop_rate;
    y[1] = report_of_u64(v->dots[i]->self_ps);
}

static bool choose_dots(struct view *v, const struct op_db *db, struct xp_arena *a)
{
    v->dots = op_db_sorted(db, a);
    for (uint32_t i = 0; v->dots && i < db->n; i++) {
        const struct op_metrics *m = v->dots[i];
        struct op_use u;
        if (op_is_idle(m) || (!m->occurrences && !m->time_ps))
            continue;
        op_use_of(v->ops.f, m, &u);
        if (v->ndots < DOTS && u.intensity.kind == REPORT_DOUBLE &&
            u.flop_rate.kind == REPORT_DOUBLE) {
            v->dots[v->ndots++] = m;
        } else {
            v->undrawn++;
            v->undrawn_ps += m->self_ps;
        }
    }
    return v->dots;
}

static void series(struct report *r, struct view *v)
{
    report_series(r, &(struct report_points){.id = "ops",
                                             .title = "Ops: intensity and FLOP rate",
                                             .x_label = "Intensity",
                                             .x_unit = "flop/byte",
                                             .y_label = "FLOP rate",
                                             .y_unit = "flop/s",
                                             .kind = "scatter",
                                             .names = dot_names,
                                             .nnames = 2,
                                             .n = v->ndots,
                                             .point = dot,
                                             .ctx = v});
    if (v->undrawn)
        report_note(r, REPORT_INFO, "not_drawn",
                    "%u ops are not drawn: they say no flops or no bytes, or are beyond the %d "
                    "longest. They take %.1f %% of the time in ops.",
                    v->undrawn, DOTS,
                    v->ops.total_ps ? 100 * (double)v->undrawn_ps / (double)v->ops.total_ps : 0.0);
}

/* --- the verdict --- */

static void verdict(struct report *r, const struct figures *f)
{
    double use = f->mxu.known ? f->mxu.v : 0;
    use = f->hbm.known && f->hbm.v > use ? f->hbm.v : use;
    if (f->peaks.flops > 0 && f->peaks.hbm > 0 && f->flops > 0 && f->hbm_bytes > 0)
        report_verdict(r,
                       "The program is %s bound: %.3g flops a byte, the ridge is at %.3g. It "
                       "reaches %.1f %% of the roof.",
                       f->flops / f->hbm_bytes < f->peaks.flops / f->peaks.hbm ? "memory"
                                                                               : "compute",
                       f->flops / f->hbm_bytes, f->peaks.flops / f->peaks.hbm, 100 * use);
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct session s;
    struct figures f;
    struct view v = {0};
    struct xp_span group;
    if (tool_arg(args, "group_by", &group) && group.n)
        return xp_fail(err, XP_BAD_REQUEST, 0, "group_by is not done here: op_profile groups ops");
    XP_TRY(session_open_report(merged, args, r->a, &s, &f, err));
    XP_TRY(op_view_open(&v.ops, &f, &s.stats->device, r->a, err));
    if (!sum_steps(&v, s.stats, r->a) || !choose_dots(&v, &s.stats->device, r->a))
        return xp_fail(err, XP_BUSY, 0, "no memory left for the report");
    counters(&v, s.stats);
    verdict(r, &f);
    report_roof(r, &f);
    report_usage(r, &f);
    report_environment(r, &f);
    table_roofs(r, &f);
    report_table(r, &(struct report_rows){.id = "programs",
                                          .title = "The program, and its steps",
                                          .columns = step_columns,
                                          .ncolumns = sizeof step_columns / sizeof *step_columns,
                                          .n = step_rows(&v),
                                          .row = step_row,
                                          .ctx = &v});
    report_table_gains(r, &v.ops);
    report_table_ops(r, &v.ops);
    series(r, &v);
    step_notes(r, &v);
    report_remarks(r, &f);
    return XP_OK;
}

const struct tool_report report_roofline_model = {
    .question = "Memory- or compute-bound, and how far from the roof?",
    .map = session_map_report,
    .merge = session_merge,
    .write = write_report,
};
