#include "shard/tools/report_ops.h"

#include <stdlib.h>

#include "shard/stats/figures_run.h"

static enum xp_status busy(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left to list ops");
}

static struct xp_span before(struct xp_span s, struct xp_span mark)
{
    const uint8_t *p = s.n ? memmem(s.p, s.n, mark.p, mark.n) : NULL;
    return p ? xp_span_of(s.p, (size_t)(p - s.p)) : s;
}

struct xp_span op_short_name(const struct op_metrics *m)
{
    struct xp_span s = before(m->name.n ? m->name : m->long_name, XP_SPAN_LIT(" = "));
    return s.n && s.p[0] == '%' ? xp_span_of(s.p + 1, s.n - 1) : s;
}

bool op_is_remat(const struct op_metrics *m)
{
    return xp_span_has(before(m->long_name, XP_SPAN_LIT("=")), XP_SPAN_LIT(".remat")) ||
           xp_span_has(m->provenance, XP_SPAN_LIT("rematted_computation"));
}

/* --- rows --- */

static uint32_t sparse_ops(const struct op_metrics *m)
{
    return m->children_total_ps ? m->nchildren : 0;
}

enum xp_status op_view_open(struct op_view *v, const struct figures *f, const struct op_db *db,
                            struct xp_arena *a, struct xp_error *err)
{
    size_t max = 1;
    *v = (struct op_view){.f = f};
    for (uint32_t i = 0; i < db->n; i++)
        max += 1 + (size_t)sparse_ops(&db->ops[i]);
    v->rows = xp_arena_alloc(a, max * sizeof *v->rows);
    if (!v->rows)
        return busy(err);
    for (uint32_t i = 0; i < db->n; i++) {
        const struct op_metrics *m = &db->ops[i];
        if (op_is_idle(m) || (!m->occurrences && !m->time_ps))
            continue;
        v->rows[v->n++] = (struct op_row){m, NULL};
        v->total_ps += m->self_ps;
        for (uint32_t k = 0; k < sparse_ops(m); k++)
            if ((m->children[k].occurrences || m->children[k].time_ps) &&
                m->children[k].core_type == OP_CORE_SPARSE)
                v->rows[v->n++] = (struct op_row){&m->children[k], m};
    }
    return XP_OK;
}

/* --- rates --- */

static bool has_inside(const struct op_metrics *m)
{
    return op_kind_of(m->category) & OP_KIND_INNER;
}

void op_use_of(const struct figures *f, const struct op_metrics *m, struct op_use *u)
{
    double s = (double)m->time_ps / 1e12, flops = figure_flops(m), bytes = figure_hbm_bytes(m);
    double roof = 0;
    struct op_rates rates;
    *u = (struct op_use){0};
    if (has_inside(m) || !(s > 0))
        return;
    op_rates_of(m, &f->limits, f->all.hardware, &rates);
    if (flops > 0) {
        u->flop_rate = report_of_double(flops / s);
        u->flop_use = report_ratio(flops / s, f->peaks.flops);
        u->intensity = report_ratio(flops, bytes);
    }
    if (bytes > 0) {
        u->hbm_rate = report_of_double(bytes / s);
        u->hbm_use = report_ratio(bytes / s, f->peaks.hbm);
    }
    if (u->flop_use.kind == REPORT_DOUBLE)
        roof = u->flop_use.d;
    if (u->hbm_use.kind == REPORT_DOUBLE && u->hbm_use.d > roof)
        roof = u->hbm_use.d;
    if (roof > 0)
        u->roof_use = report_of_double(roof);
    if (strcmp(rates.bound_by, "Unknown") != 0)
        u->bound = report_of_text(xp_span_str(rates.bound_by));
}

/* --- ops --- */

enum {
    COL_OP,
    COL_PROGRAM,
    COL_CATEGORY,
    COL_SELF,
    COL_SHARE,
    COL_TIME,
    COL_COUNT,
    COL_MEAN,
    COL_FLOP_RATE,
    COL_FLOP_USE,
    COL_HBM_RATE,
    COL_HBM_USE,
    COL_INTENSITY,
    COL_BOUND,
    COL_STALL,
    COL_FRAMEWORK,
    COL_SOURCE,
    COL_LINE,
    COL_REMAT,
    COL_CORE,
    COL_PARENT,
    COL_HOST,
    COL_PLANE,
    COL_BEGIN,
    COL_TEXT,
    COLUMNS
};

static const struct report_column op_columns[COLUMNS] = {
    [COL_OP] = {"op", "Op", "", REPORT_COL_OP, false, "name of the HLO op"},
    [COL_PROGRAM] = {"program_id", "Program", "", REPORT_COL_TEXT, false, "id of its program"},
    [COL_CATEGORY] = {"category", "Category", "", REPORT_COL_TEXT, false, "as XLA names it"},
    [COL_SELF] = {"self_time", "Self time", "ps", REPORT_COL_NUMBER, true,
                  "time less that of ops inside, over all devices"},
    [COL_SHARE] = {"share", "Share", "fraction", REPORT_COL_NUMBER, true,
                   "self time / self time of all ops"},
    [COL_TIME] = {"time", "Time", "ps", REPORT_COL_NUMBER, false,
                  "with ops inside, over all devices"},
    [COL_COUNT] = {"occurrences", "Occurrences", "count", REPORT_COL_NUMBER, true,
                   "runs, over all devices"},
    [COL_MEAN] = {"mean_time", "Mean time", "ps", REPORT_COL_NUMBER, false, "time / occurrences"},
    [COL_FLOP_RATE] = {"flop_rate", "FLOP rate", "flop/s", REPORT_COL_NUMBER, false,
                       "flops / time"},
    [COL_FLOP_USE] = {"flop_utilization", "FLOP use", "fraction", REPORT_COL_NUMBER, false,
                      "FLOP rate / peak_flop_rate"},
    [COL_HBM_RATE] = {"hbm_rate", "HBM rate", "bytes/s", REPORT_COL_NUMBER, false,
                      "HBM bytes / time"},
    [COL_HBM_USE] = {"hbm_utilization", "HBM use", "fraction", REPORT_COL_NUMBER, false,
                     "HBM rate / peak_hbm_rate"},
    [COL_INTENSITY] = {"intensity", "Intensity", "flop/byte", REPORT_COL_NUMBER, false,
                       "flops / HBM bytes"},
    [COL_BOUND] = {"bound_by", "Bound by", "", REPORT_COL_TEXT, false,
                   "the resource it uses the largest share of"},
    [COL_STALL] = {"dma_stall", "DMA stall", "fraction", REPORT_COL_NUMBER, false,
                   "time stalled by DMA / time"},
    [COL_FRAMEWORK] = {"framework_op", "Framework op", "", REPORT_COL_TEXT, false,
                       "where it comes from in the model"},
    [COL_SOURCE] = {"source", "Source", "", REPORT_COL_TEXT, false, "file"},
    [COL_LINE] = {"line", "Line", "", REPORT_COL_NUMBER, false, "in the file"},
    [COL_REMAT] = {"rematerialized", "Rematerialized", "", REPORT_COL_BOOL, false,
                   "computed again to save memory"},
    [COL_CORE] = {"core", "Core", "", REPORT_COL_TEXT, false, "kind of core"},
    [COL_PARENT] = {"parent", "Started by", "", REPORT_COL_TEXT, false,
                    "op of a TensorCore that had it run on a SparseCore"},
    [COL_HOST] = {"host", "Host", "", REPORT_COL_TEXT, false,
                  "of the run that first_begin_ps is of"},
    [COL_PLANE] = {"first_plane", "Plane", "", REPORT_COL_TEXT, false, "where that was"},
    [COL_BEGIN] = {"first_begin_ps", "First begin", "ps", REPORT_COL_NUMBER, false,
                   "begin of one of its first runs, session time of that host"},
    [COL_TEXT] = {"text", "HLO text", "", REPORT_COL_TEXT, false, "cut after 1024 bytes"},
};

static struct report_cell text_or_none(struct xp_span s)
{
    return s.n ? report_of_text(s) : report_none();
}

/* Hosts that could not be read leave gaps in the numbers. */
static struct report_cell host_name(const struct figures *f, uint32_t index)
{
    for (uint32_t h = 0; h < f->nhosts; h++)
        if (f->hosts[h].index == index)
            return report_of_text(f->hosts[h].name);
    return report_none();
}

static void op_row(void *ctx, uint64_t i, struct report_cell *c)
{
    static const char *const cores[] = {"", "TensorCore", "SparseCore"};
    const struct op_view *v = ctx;
    const struct op_metrics *m = v->rows[i].op, *parent = v->rows[i].parent;
    struct op_use u;
    op_use_of(v->f, m, &u);
    c[COL_OP] = report_of_text(op_short_name(m));
    c[COL_PROGRAM] = m->program ? report_of_id(m->program) : report_none();
    c[COL_CATEGORY] = text_or_none(m->category);
    if (!parent) {
        c[COL_SELF] = report_of_u64(m->self_ps);
        c[COL_SHARE] = report_ratio((double)m->self_ps, (double)v->total_ps);
    }
    c[COL_TIME] = report_of_u64(m->time_ps);
    c[COL_COUNT] = report_of_u64(m->occurrences);
    if (m->occurrences)
        c[COL_MEAN] = report_of_u64(m->time_ps / m->occurrences);
    c[COL_FLOP_RATE] = u.flop_rate;
    c[COL_FLOP_USE] = u.flop_use;
    c[COL_HBM_RATE] = u.hbm_rate;
    c[COL_HBM_USE] = u.hbm_use;
    c[COL_INTENSITY] = u.intensity;
    c[COL_BOUND] = u.bound;
    if (m->dma_stall_ps)
        c[COL_STALL] = report_ratio((double)m->dma_stall_ps, (double)m->time_ps);
    c[COL_FRAMEWORK] = text_or_none(m->provenance);
    c[COL_SOURCE] = text_or_none(m->source.file);
    if (m->source.file.n && m->source.line >= 0)
        c[COL_LINE] = report_of_i64(m->source.line);
    c[COL_REMAT] = report_of_bool(op_is_remat(m));
    if (m->core_type && m->core_type <= OP_CORE_SPARSE)
        c[COL_CORE] = report_of_text(xp_span_str(cores[m->core_type]));
    if (parent)
        c[COL_PARENT] = report_of_text(op_short_name(parent));
    if (m->first_plane.n) {
        c[COL_HOST] = host_name(v->f, m->host);
        c[COL_PLANE] = report_of_text(m->first_plane);
        c[COL_BEGIN] = report_of_i64(m->first_begin_ps);
    }
    c[COL_TEXT] = text_or_none(m->long_name);
}

void report_table_ops(struct report *r, struct op_view *v)
{
    report_table(r, &(struct report_rows){.id = "ops",
                                          .title = "HLO ops",
                                          .columns = op_columns,
                                          .ncolumns = COLUMNS,
                                          .n = v->n,
                                          .row = op_row,
                                          .ctx = v,
                                          .sort = "self_time",
                                          .descending = true});
    report_link(r, "ops", "op");
}

/* --- categories --- */

static const struct report_column group_columns[] = {
    {"category", "Category", "", REPORT_COL_TEXT, false, "as XLA names it"},
    {"self_time", "Self time", "ps", REPORT_COL_NUMBER, true, "of its ops, over all devices"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "self time / self time of all ops"},
    {"ops", "Ops", "count", REPORT_COL_NUMBER, true, "different ops"},
    {"occurrences", "Occurrences", "count", REPORT_COL_NUMBER, true, "runs, over all devices"},
    {"flop_rate", "FLOP rate", "flop/s", REPORT_COL_NUMBER, false, "flops / time of its ops"},
    {"hbm_rate", "HBM rate", "bytes/s", REPORT_COL_NUMBER, false, "HBM bytes / time of its ops"},
};

static void group_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct op_view *v = ctx;
    const struct op_group *g = &v->groups[i];
    double s = g->time_ps / 1e12;
    c[0] = report_of_text(g->name);
    c[1] = report_of_u64(g->self_ps);
    c[2] = report_ratio((double)g->self_ps, (double)v->total_ps);
    c[3] = report_of_u64(g->ops);
    c[4] = report_of_u64(g->occurrences);
    if (g->flops > 0)
        c[5] = report_ratio(g->flops, s);
    if (g->hbm_bytes > 0)
        c[6] = report_ratio(g->hbm_bytes, s);
}

static int by_category(const void *a, const void *b)
{
    const struct op_row *x = a, *y = b;
    return xp_span_cmp(x->op->category, y->op->category);
}

void report_table_categories(struct report *r, struct op_view *v, struct xp_arena *a)
{
    struct op_row *sorted = xp_arena_alloc(a, (v->n + (size_t)1) * sizeof *sorted);
    v->groups = xp_arena_zalloc(a, (v->n + (size_t)1) * sizeof *v->groups);
    v->ngroups = 0;
    if (!sorted || !v->groups) {
        r->busy = true;
        return;
    }
    memcpy(sorted, v->rows, v->n * sizeof *sorted);
    qsort(sorted, v->n, sizeof *sorted, by_category);
    for (uint32_t i = 0; i < v->n; i++) {
        const struct op_metrics *m = sorted[i].op;
        if (sorted[i].parent)
            continue;
        if (!v->ngroups || !xp_span_eq(v->groups[v->ngroups - 1].name, m->category))
            v->groups[v->ngroups++].name = m->category;
        struct op_group *g = &v->groups[v->ngroups - 1];
        g->self_ps += m->self_ps;
        g->occurrences += m->occurrences;
        g->ops++;
        if (has_inside(m))
            continue;
        g->flops += figure_flops(m);
        g->hbm_bytes += figure_hbm_bytes(m);
        g->time_ps += (double)m->time_ps;
    }
    report_table(r, &(struct report_rows){.id = "categories",
                                          .title = "Categories",
                                          .columns = group_columns,
                                          .ncolumns = sizeof group_columns / sizeof *group_columns,
                                          .n = v->ngroups,
                                          .row = group_row,
                                          .ctx = v,
                                          .sort = "self_time",
                                          .descending = true});
}
