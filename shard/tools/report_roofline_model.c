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
        double flops, ps;
        uint32_t cores;
    } * steps;
    uint32_t nsteps;
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
                    v->steps[n++] =
                        (struct step_sum){x->group, x->name, x->flops,
                                          (double)figure_length(x->begin_ps, x->end_ps), 1};
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
        last->flops += v->steps[i].flops;
        last->ps += v->steps[i].ps;
        last->cores++;
    }
    return true;
}

static const struct report_column step_columns[] = {
    {"step", "Step", "", REPORT_COL_TEXT, false, "name of its marker; all: the whole profile"},
    {"time", "Time", "ps", REPORT_COL_NUMBER, false, "mean over cores"},
    {"flop_rate", "FLOP rate", "flop/s", REPORT_COL_NUMBER, false, "of a core"},
    {"flop_utilization", "FLOP use", "fraction", REPORT_COL_NUMBER, false,
     "FLOP rate / peak_flop_rate"},
    {"hbm_rate", "HBM rate", "bytes/s", REPORT_COL_NUMBER, false, "of a core; not told by step"},
    {"hbm_utilization", "HBM use", "fraction", REPORT_COL_NUMBER, false,
     "HBM rate / peak_hbm_rate"},
    {"intensity", "Intensity", "flop/byte", REPORT_COL_NUMBER, false, "flops / HBM bytes"},
};

static void step_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct figures *f = v->ops.f;
    const struct step_sum *s = &v->steps[i ? i - 1 : 0];
    double sec = i ? s->ps / 1e12 : (double)f->window_ps / 1e12;
    double flops = i ? s->flops : f->flops;
    c[0] = report_of_text(i ? s->name : XP_SPAN_LIT("all"));
    if (i)
        c[1] = report_of_u64((uint64_t)(s->ps / s->cores));
    if (flops > 0) {
        c[2] = report_ratio(flops, sec);
        c[3] = report_ratio(flops, sec * f->peaks.flops);
    }
    if (i || !(f->hbm_bytes > 0))
        return;
    c[4] = report_ratio(f->hbm_bytes, sec);
    c[5] = report_ratio(f->hbm_bytes, sec * f->peaks.hbm);
    if (flops > 0)
        c[6] = report_ratio(flops, f->hbm_bytes);
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
    verdict(r, &f);
    report_roof(r, &f);
    report_usage(r, &f);
    report_environment(r, &f);
    table_roofs(r, &f);
    report_table(r, &(struct report_rows){.id = "programs",
                                          .title = "The program, and its steps",
                                          .columns = step_columns,
                                          .ncolumns = sizeof step_columns / sizeof *step_columns,
                                          .n = f.window_ps ? v.nsteps + (uint64_t)1 : 0,
                                          .row = step_row,
                                          .ctx = &v});
    report_table_gains(r, &v.ops);
    report_table_ops(r, &v.ops);
    series(r, &v);
    report_remarks(r, &f);
    return XP_OK;
}

const struct tool_report report_roofline_model = {
    .question = "Memory- or compute-bound, and how far from the roof?",
    .map = session_map_report,
    .merge = session_merge,
    .write = write_report,
};
