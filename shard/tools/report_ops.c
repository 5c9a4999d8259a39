#include "shard/tools/report_ops.h"

#include <stdlib.h>

#include "shard/stats/figures_run.h"
#include "shard/tools/op_layer.h"

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

uint64_t op_idle_ps(const struct op_db *db)
{
    return db->total_ps > db->total_op_ps ? db->total_ps - db->total_op_ps : 0;
}

enum xp_status report_with_idle(const struct tool_args *args, bool *idle, struct xp_error *err)
{
    struct xp_span s = {0};
    *idle = tool_arg(args, "idle", &s) && xp_span_eq(s, XP_SPAN_LIT("1"));
    if (!s.n || *idle || xp_span_eq(s, XP_SPAN_LIT("0")))
        return XP_OK;
    return xp_fail(err, XP_BAD_REQUEST, 0, "idle is 0 or 1");
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
    *v = (struct op_view){.f = f, .a = a};
    for (uint32_t i = 0; i < f->nsteps; i++)
        v->steps_ps += f->steps[i].mean_ps * f->steps[i].cores;
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

static struct report_cell above_zero(double v)
{
    return v > 0 ? report_of_double(v) : report_none();
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
    u->normalized_flop_rate = above_zero(rates.flop_rate * 1e9);
    u->cmem_read = above_zero(rates.cmem_rd_bw * 1073741824.0);
    u->cmem_write = above_zero(rates.cmem_wr_bw * 1073741824.0);
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
    COL_STEP,
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
    COL_NORMALIZED,
    COL_CMEM_READ,
    COL_CMEM_WRITE,
    COL_ENERGY,
    COL_LAYER,
    COL_FRAMEWORK,
    COL_SOURCE,
    COL_LINE,
    COL_REMAT,
    COL_OUTSIDE,
    COL_AUTOTUNED,
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
    [COL_STEP] = {"step_share", "Of the steps", "fraction", REPORT_COL_NUMBER, true,
                  "self time / time of the steps of all cores; runs between steps count, too"},
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
    [COL_NORMALIZED] = {"normalized_flop_rate", "Normalized FLOP rate", "flop/s", REPORT_COL_NUMBER,
                        false, "flops / time, counted as flops of the peak's data type"},
    [COL_CMEM_READ] = {"cmem_read_rate", "CMEM read", "bytes/s", REPORT_COL_NUMBER, false,
                       "bytes read from CMEM / time"},
    [COL_CMEM_WRITE] = {"cmem_write_rate", "CMEM write", "bytes/s", REPORT_COL_NUMBER, false,
                        "bytes written to CMEM / time"},
    [COL_ENERGY] = {"energy", "Energy", "J", REPORT_COL_NUMBER, true,
                    "from the supply VDD, over all devices; not every device tells it"},
    [COL_LAYER] = {"layer", "Layer", "", REPORT_COL_TEXT, false,
                   "outermost scope of the framework op that is called layer or block, or has a "
                   "number"},
    [COL_FRAMEWORK] = {"framework_op", "Framework op", "", REPORT_COL_TEXT, false,
                       "where it comes from in the model"},
    [COL_SOURCE] = {"source", "Source", "", REPORT_COL_TEXT, false, "file"},
    [COL_LINE] = {"line", "Line", "", REPORT_COL_NUMBER, false, "in the file"},
    [COL_REMAT] = {"rematerialized", "Rematerialized", "", REPORT_COL_BOOL, false,
                   "computed again to save memory"},
    [COL_OUTSIDE] = {"outside_compilation", "Outside compilation", "", REPORT_COL_BOOL, false,
                     "handed back to the host's framework"},
    [COL_AUTOTUNED] = {"autotuned", "Autotuned", "", REPORT_COL_BOOL, false,
                       "n/a: no profile tells it yet"},
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

/* Hosts that could not be read leave gaps in the numbers. */
struct report_cell op_host_name(const struct figures *f, uint32_t index)
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
    c[COL_CATEGORY] = report_text_or_none(m->category);
    if (!parent) {
        c[COL_SELF] = report_of_u64(m->self_ps);
        c[COL_SHARE] = report_ratio((double)m->self_ps, (double)v->total_ps);
        c[COL_STEP] = report_ratio((double)m->self_ps, v->steps_ps);
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
    c[COL_NORMALIZED] = u.normalized_flop_rate;
    c[COL_CMEM_READ] = u.cmem_read;
    c[COL_CMEM_WRITE] = u.cmem_write;
    c[COL_ENERGY] = above_zero(m->energy_j);
    c[COL_LAYER] = report_text_or_none(op_layer_of(m->provenance, v->a));
    c[COL_FRAMEWORK] = report_text_or_none(m->provenance);
    c[COL_SOURCE] = report_text_or_none(m->source.file);
    if (m->source.file.n && m->source.line >= 0)
        c[COL_LINE] = report_of_i64(m->source.line);
    c[COL_REMAT] = report_of_bool(op_is_remat(m));
    c[COL_OUTSIDE] = report_of_bool(op_is_outside(m));
    if (m->core_type && m->core_type <= OP_CORE_SPARSE)
        c[COL_CORE] = report_of_text(xp_span_str(cores[m->core_type]));
    if (parent)
        c[COL_PARENT] = report_of_text(op_short_name(parent));
    if (m->first_plane.n) {
        c[COL_HOST] = op_host_name(v->f, m->host);
        c[COL_PLANE] = report_of_text(m->first_plane);
        c[COL_BEGIN] = report_of_i64(m->first_begin_ps);
    }
    c[COL_TEXT] = report_text_or_none(m->long_name);
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

/* --- groups --- */

#define GROUP_COLUMNS 9
#define GROUP_BACKWARD (GROUP_COLUMNS - 1) /* only of layers */

static const struct group_kind {
    const char *id, *title;
    struct report_column name;
} group_kinds[] = {
    [OPS_BY_CATEGORY] = {"categories",
                         "Categories",
                         {"category", "Category", "", REPORT_COL_TEXT, false, "as XLA names it"}},
    [OPS_BY_LAYER] = {"layers",
                      "Layers",
                      {"layer", "Layer", "", REPORT_COL_TEXT, false,
                       "outermost scope that is called layer or block, or has a number"}},
    [OPS_BY_SOURCE] = {"sources",
                       "Source files",
                       {"source", "Source", "", REPORT_COL_TEXT, false,
                        "file that the op comes from"}},
    [OPS_BY_REPLICA_GROUP] = {"replica_groups",
                              "Collectives by replica group",
                              {"replica_group", "Replica group", "", REPORT_COL_TEXT, false,
                               "who takes part, as the op's text says; n/a: it says nothing, as of "
                               "the second half of an asynchronous one"}},
    [OPS_BY_REMAT] = {"rematerialization",
                      "Rematerialization",
                      {"computed", "Computed", "", REPORT_COL_TEXT, false,
                       "again, to save memory, or once"}},
    [OPS_BY_OUTSIDE] = {"outside_compilation",
                        "Outside compilation",
                        {"where", "Where", "", REPORT_COL_TEXT, false,
                         "handed back to the host's framework, or compiled"}},
};

static const struct report_column group_columns[GROUP_COLUMNS - 1] = {
    {"self_time", "Self time", "ps", REPORT_COL_NUMBER, true, "of its ops, over all devices"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "self time / self time of all ops"},
    {"step_share", "Of the steps", "fraction", REPORT_COL_NUMBER, true,
     "self time / time of the steps of all cores; runs between steps count, too"},
    {"ops", "Ops", "count", REPORT_COL_NUMBER, true, "different ops"},
    {"occurrences", "Occurrences", "count", REPORT_COL_NUMBER, true, "runs, over all devices"},
    {"flop_rate", "FLOP rate", "flop/s", REPORT_COL_NUMBER, false, "flops / time of its ops"},
    {"hbm_rate", "HBM rate", "bytes/s", REPORT_COL_NUMBER, false, "HBM bytes / time of its ops"},
    {"backward_time", "Backward", "ps", REPORT_COL_NUMBER, true,
     "self time of ops of the backward pass: a scope of theirs was transposed, or is one of "
     "gradients"},
};

static void group_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct op_view *v = ctx;
    const struct op_group *g = &v->groups[i];
    double s = g->time_ps / 1e12;
    c[0] = report_text_or_none(g->name);
    c[1] = report_of_u64(g->self_ps);
    c[2] = report_ratio((double)g->self_ps, (double)v->total_ps);
    c[3] = report_ratio((double)g->self_ps, v->steps_ps);
    c[4] = report_of_u64(g->ops);
    c[5] = report_of_u64(g->occurrences);
    if (g->flops > 0)
        c[6] = report_ratio(g->flops, s);
    if (g->hbm_bytes > 0)
        c[7] = report_ratio(g->hbm_bytes, s);
}

static void layer_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct op_view *v = ctx;
    group_row(ctx, i, c);
    c[GROUP_BACKWARD] = report_of_u64(v->groups[i].backward_ps);
}

struct keyed {
    struct xp_span key;
    const struct op_metrics *op;
};

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    return xp_span_cmp(x->key, y->key);
}

/* False: the op has none to be told by, and without any other there is nothing to tell. */
static bool key_of(const struct op_view *v, const struct op_metrics *m, enum op_group_by by,
                   struct xp_span *key)
{
    switch (by) {
    case OPS_BY_LAYER:
        *key = op_layer_of(m->provenance, v->a);
        return key->n > 0;
    case OPS_BY_SOURCE:
        *key = m->source.file;
        return key->n > 0;
    case OPS_BY_REPLICA_GROUP:
        *key = op_replica_groups(m);
        return key->n > 0;
    case OPS_BY_REMAT:
        *key = op_is_remat(m) ? XP_SPAN_LIT("again") : XP_SPAN_LIT("once");
        return op_is_remat(m);
    case OPS_BY_OUTSIDE:
        *key = op_is_outside(m) ? XP_SPAN_LIT("outside") : XP_SPAN_LIT("compiled");
        return op_is_outside(m);
    default:
        *key = m->category;
        return true;
    }
}

static void count_in(struct op_group *g, const struct op_metrics *m)
{
    g->self_ps += m->self_ps;
    g->backward_ps += op_is_backward(m->provenance) ? m->self_ps : 0;
    g->occurrences += m->occurrences;
    g->ops++;
    if (has_inside(m))
        return;
    g->flops += figure_flops(m);
    g->hbm_bytes += figure_hbm_bytes(m);
    g->time_ps += (double)m->time_ps;
}

static bool is_in_groups(const struct op_row *row, enum op_group_by by)
{
    return !row->parent &&
           (by != OPS_BY_REPLICA_GROUP || figure_is_collective(row->op->category, row->op->name));
}

/* False: no op has such a key. */
static bool gather_groups(struct op_view *v, enum op_group_by by, struct keyed *sorted)
{
    bool any = by == OPS_BY_CATEGORY;
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n; i++)
        if (is_in_groups(&v->rows[i], by)) {
            any |= key_of(v, v->rows[i].op, by, &sorted[n].key);
            sorted[n++].op = v->rows[i].op;
        }
    qsort(sorted, n, sizeof *sorted, by_key);
    v->ngroups = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!v->ngroups || !xp_span_eq(v->groups[v->ngroups - 1].name, sorted[i].key))
            v->groups[v->ngroups++] = (struct op_group){.name = sorted[i].key};
        count_in(&v->groups[v->ngroups - 1], sorted[i].op);
    }
    return any;
}

void report_table_groups(struct report *r, struct op_view *v, enum op_group_by by)
{
    const struct group_kind *k = &group_kinds[by];
    struct report_column columns[GROUP_COLUMNS] = {k->name};
    struct keyed *sorted = xp_arena_alloc(r->a, (v->n + (size_t)1) * sizeof *sorted);
    v->groups = xp_arena_alloc(r->a, (v->n + (size_t)1) * sizeof *v->groups);
    if (!sorted || !v->groups) {
        r->busy = true;
        return;
    }
    if (!gather_groups(v, by, sorted))
        return;
    memcpy(columns + 1, group_columns, sizeof group_columns);
    report_table(
        r, &(struct report_rows){.id = k->id,
                                 .title = k->title,
                                 .columns = columns,
                                 .ncolumns = by == OPS_BY_LAYER ? GROUP_COLUMNS : GROUP_BACKWARD,
                                 .n = v->ngroups,
                                 .row = by == OPS_BY_LAYER ? layer_row : group_row,
                                 .ctx = v,
                                 .sort = "self_time",
                                 .descending = true});
}

/* --- what would be gained at the roof --- */

static const struct report_column gain_columns[] = {
    {"op", "Op", "", REPORT_COL_OP, false, "name of the HLO op"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, "id of its program"},
    {"category", "Category", "", REPORT_COL_TEXT, false, "as XLA names it"},
    {"gain", "Gain at the roof", "ps", REPORT_COL_NUMBER, true, "self time x (1 - of the roof)"},
    {"gain_share", "Gain, share", "fraction", REPORT_COL_NUMBER, true,
     "gain / self time of all ops"},
    {"self_time", "Self time", "ps", REPORT_COL_NUMBER, true,
     "time less that of ops inside, over all devices"},
    {"roof_utilization", "Of the roof", "fraction", REPORT_COL_NUMBER, false,
     "the larger of FLOP use and HBM use"},
    {"bound_by", "Bound by", "", REPORT_COL_TEXT, false,
     "the resource it uses the largest share of"},
    {"layer", "Layer", "", REPORT_COL_TEXT, false, "of the model"},
    {"framework_op", "Framework op", "", REPORT_COL_TEXT, false,
     "where it comes from in the model"},
    {"source", "Source", "", REPORT_COL_TEXT, false, "file"},
};

static double gain_of(const struct op_metrics *m, const struct op_use *u)
{
    return u->roof_use.d < 1 ? (double)m->self_ps * (1 - u->roof_use.d) : 0;
}

static void gain_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct op_view *v = ctx;
    const struct op_metrics *m = v->gains[i];
    struct op_use u;
    op_use_of(v->f, m, &u);
    double gain = gain_of(m, &u);
    c[0] = report_of_text(op_short_name(m));
    c[1] = m->program ? report_of_id(m->program) : report_none();
    c[2] = report_text_or_none(m->category);
    c[3] = report_of_u64((uint64_t)gain);
    c[4] = report_ratio(gain, (double)v->total_ps);
    c[5] = report_of_u64(m->self_ps);
    c[6] = u.roof_use;
    c[7] = u.bound;
    c[8] = report_text_or_none(op_layer_of(m->provenance, v->a));
    c[9] = report_text_or_none(m->provenance);
    c[10] = report_text_or_none(m->source.file);
}

/* Links, hosts and other cores set the pace of the others, not the memory's or the units' peak. */
static bool has_roof(const struct op_view *v, const struct op_row *row)
{
    struct op_use u;
    const uint32_t waits = OP_KIND_INFEED | OP_KIND_OUTFEED | OP_KIND_HOST_XFER | OP_KIND_OFF_DUTY;
    op_use_of(v->f, row->op, &u);
    return !row->parent && u.roof_use.kind == REPORT_DOUBLE &&
           !(op_kind_of(row->op->category) & waits) &&
           !figure_is_collective(row->op->category, row->op->name);
}

void report_table_gains(struct report *r, struct op_view *v)
{
    double sum = 0;
    v->gains = xp_arena_alloc(r->a, (v->n + (size_t)1) * sizeof *v->gains);
    if (!v->gains) {
        r->busy = true;
        return;
    }
    for (uint32_t i = 0; i < v->n; i++) {
        struct op_use u;
        if (!has_roof(v, &v->rows[i]))
            continue;
        op_use_of(v->f, v->rows[i].op, &u);
        v->gains[v->ngains++] = v->rows[i].op;
        sum += gain_of(v->rows[i].op, &u);
    }
    if (v->ngains && v->total_ps)
        report_double(r, "roof_gain", sum / (double)v->total_ps, NULL);
    else
        report_na(r, "roof_gain",
                  "no op says its flops or bytes, or the peaks of this device are not known");
    if (v->ngains)
        report_table(r,
                     &(struct report_rows){.id = "gains",
                                           .title = "Largest gain at the roof",
                                           .columns = gain_columns,
                                           .ncolumns = sizeof gain_columns / sizeof *gain_columns,
                                           .n = v->ngains,
                                           .row = gain_row,
                                           .ctx = v,
                                           .sort = "gain",
                                           .descending = true});
}
