#include <stdlib.h>

#include "shard/tools/op_layer.h"
#include "shard/tools/report_nodes.h"
#include "shard/tools/reports.h"

/* The same by framework op (JAX primitive, TensorFlow op), on device and host, and rolled up by the
 * model's scopes. idle=1: idle time is an operation, too. */

struct type {
    struct xp_span name;
    uint64_t self_ps, occurrences, operations;
};

struct view {
    const struct figures *f;
    struct xp_arena *a;
    const struct op_metrics **ops;
    uint32_t n;
    uint64_t total_ps;
    bool device;
    struct type *types;
    uint32_t ntypes;
};

static const struct report_column columns[] = {
    {"operation", "Operation", "", REPORT_COL_TEXT, false, "name in the framework"},
    {"type", "Type", "", REPORT_COL_TEXT, false, "kind of operation"},
    {"self_time", "Self time", "ps", REPORT_COL_NUMBER, true, "time less that of ops inside"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true,
     "self time / self time of all that is listed"},
    {"time", "Time", "ps", REPORT_COL_NUMBER, false, "with ops inside"},
    {"occurrences", "Occurrences", "count", REPORT_COL_NUMBER, true, ""},
    {"mean_time", "Mean time", "ps", REPORT_COL_NUMBER, false, "time / occurrences"},
    {"flop_rate", "FLOP rate", "flop/s", REPORT_COL_NUMBER, false, "flops / time"},
    {"flop_utilization", "FLOP use", "fraction", REPORT_COL_NUMBER, false,
     "FLOP rate / peak_flop_rate"},
    {"hbm_rate", "HBM rate", "bytes/s", REPORT_COL_NUMBER, false, "HBM bytes / time"},
    {"hbm_utilization", "HBM use", "fraction", REPORT_COL_NUMBER, false,
     "HBM rate / peak_hbm_rate"},
    {"bound_by", "Bound by", "", REPORT_COL_TEXT, false,
     "the resource it uses the largest share of"},
    {"eager", "Eager", "", REPORT_COL_BOOL, false, "run op by op, not compiled"},
    {"layer", "Layer", "", REPORT_COL_TEXT, false, "of the model"},
    {"source", "Source", "", REPORT_COL_TEXT, false, "file of one of its ops"},
    {"line", "Line", "", REPORT_COL_NUMBER, false, "in the file"},
    {"host", "Host", "", REPORT_COL_TEXT, false, "of the run that first_begin_ps is of"},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, "where that was"},
    {"first_begin_ps", "First begin", "ps", REPORT_COL_NUMBER, false,
     "begin of a run of one of its ops, session time of that host"},
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct op_metrics *m = v->ops[i];
    struct op_use u = {0};
    if (v->device)
        op_use_of(v->f, m, &u);
    c[0] = report_of_text(m->name);
    c[1] = m->category.n ? report_of_text(m->category) : report_none();
    c[2] = report_of_u64(m->self_ps);
    c[3] = report_ratio((double)m->self_ps, (double)v->total_ps);
    c[4] = report_of_u64(m->time_ps);
    c[5] = op_is_idle(m) ? report_none() : report_of_u64(m->occurrences);
    c[6] = m->occurrences ? report_of_u64(m->time_ps / m->occurrences) : report_none();
    c[7] = u.flop_rate;
    c[8] = u.flop_use;
    c[9] = u.hbm_rate;
    c[10] = u.hbm_use;
    c[11] = u.bound;
    c[12] = report_of_bool(m->eager);
    struct xp_span layer = op_layer_of(m->name, v->a);
    if (layer.n)
        c[13] = report_of_text(layer);
    if (m->source.file.n) {
        c[14] = report_of_text(m->source.file);
        if (m->source.line >= 0)
            c[15] = report_of_i64(m->source.line);
    }
    if (m->first_plane.n) {
        c[16] = op_host_name(v->f, m->host);
        c[17] = report_of_text(m->first_plane);
        c[18] = report_of_i64(m->first_begin_ps);
    }
}

/* --- sums by type --- */

static const struct report_column type_columns[] = {
    {"type", "Type", "", REPORT_COL_TEXT, false, "kind of operation"},
    {"self_time", "Self time", "ps", REPORT_COL_NUMBER, true, "of its operations"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true,
     "self time / self time of all that is listed"},
    {"operations", "Operations", "count", REPORT_COL_NUMBER, true, "different ones"},
    {"occurrences", "Occurrences", "count", REPORT_COL_NUMBER, true, ""},
};

static int by_type(const void *a, const void *b)
{
    const struct op_metrics *x = *(const struct op_metrics *const *)a;
    const struct op_metrics *y = *(const struct op_metrics *const *)b;
    return xp_span_cmp(x->category, y->category);
}

static void type_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct type *t = &v->types[i];
    c[0] = t->name.n ? report_of_text(t->name) : report_none();
    c[1] = report_of_u64(t->self_ps);
    c[2] = report_ratio((double)t->self_ps, (double)v->total_ps);
    if (xp_span_eq(t->name, XP_SPAN_LIT("IDLE")))
        return;
    c[3] = report_of_u64(t->operations);
    c[4] = report_of_u64(t->occurrences);
}

/* Orders v->ops by type. */
static void table_of_types(struct report *r, struct view *v)
{
    v->types = xp_arena_alloc(r->a, ((size_t)v->n + 1) * sizeof *v->types);
    if (!v->types) {
        r->busy = true;
        return;
    }
    qsort(v->ops, v->n, sizeof *v->ops, by_type);
    for (uint32_t i = 0; i < v->n; i++) {
        const struct op_metrics *m = v->ops[i];
        if (!v->ntypes || !xp_span_eq(v->types[v->ntypes - 1].name, m->category))
            v->types[v->ntypes++] = (struct type){.name = m->category};
        struct type *t = &v->types[v->ntypes - 1];
        t->self_ps += m->self_ps;
        t->occurrences += m->occurrences;
        t->operations++;
    }
    report_table(r, &(struct report_rows){.id = v->device ? "device_types" : "host_types",
                                          .title = v->device ? "Types of operations on devices"
                                                             : "Types of operations on hosts",
                                          .columns = type_columns,
                                          .ncolumns = sizeof type_columns / sizeof *type_columns,
                                          .n = v->ntypes,
                                          .row = type_row,
                                          .ctx = v,
                                          .sort = "self_time",
                                          .descending = true});
}

/* --- tables --- */

static enum xp_status view_open(struct view *v, const struct op_db *db, bool idle,
                                struct xp_arena *a, struct xp_error *err)
{
    idle = idle && op_idle_ps(db) > 0;
    v->ops = op_db_sorted(db, a);
    if (!v->ops)
        return xp_fail(err, XP_BUSY, 0, "no memory left to sort ops");
    for (uint32_t i = 0; i < db->n; i++)
        if (idle || !op_is_idle(v->ops[i])) {
            v->total_ps += v->ops[i]->self_ps;
            v->ops[v->n++] = v->ops[i];
        }
    return XP_OK;
}

static void table(struct report *r, struct view *v)
{
    report_table(r, &(struct report_rows){.id = v->device ? "device" : "host",
                                          .title = v->device ? "On devices" : "On hosts",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = v->n,
                                          .row = row,
                                          .ctx = v,
                                          .sort = "self_time",
                                          .descending = true});
}

static void scopes(struct report *r, const struct op_view *v)
{
    struct op_nodes t;
    op_nodes_init(&t, v->f);
    for (uint32_t i = 0; i < v->n && !t.failed; i++) {
        const struct op_metrics *m = v->rows[i].op;
        if (v->rows[i].parent)
            continue;
        op_nodes_add(&t,
                     m->provenance.n ? op_nodes_path(&t, 0, m->provenance)
                                     : op_nodes_get(&t, 0, XP_SPAN_LIT("(no framework op)")),
                     m);
    }
    op_nodes_write(r, &t, "by_scope");
    op_nodes_fini(&t);
}

static uint64_t unnamed_ps(const struct op_view *v)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < v->n; i++)
        if (!v->rows[i].parent && !v->rows[i].op->provenance.n)
            sum += v->rows[i].op->self_ps;
    return sum;
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct session s;
    struct figures f;
    struct op_view v;
    struct op_db by_framework;
    struct view device = {.f = &f, .a = r->a, .device = true}, host = {.f = &f, .a = r->a};
    bool idle;
    XP_TRY(report_with_idle(args, &idle, err));
    XP_TRY(session_open_report(merged, args, r->a, &s, &f, err));
    XP_TRY(op_view_open(&v, &f, &s.stats->device, r->a, err));
    XP_TRY(op_stats_by_framework(&s.stats->device, idle, r->a, &by_framework, err));
    XP_TRY(view_open(&device, &by_framework, idle, r->a, err));
    XP_TRY(view_open(&host, &s.stats->host, idle, r->a, err));
    report_usage(r, &f);
    if (v.total_ps)
        report_double(r, "unnamed_fraction", (double)unnamed_ps(&v) / (double)v.total_ps, NULL);
    else
        report_na(r, "unnamed_fraction", "%s",
                  f.idle.known
                      ? "no op of the program ran on a device while the profile was captured"
                      : f.idle.reason);
    report_environment(r, &f);
    table(r, &device);
    table(r, &host);
    report_table_groups(r, &v, OPS_BY_LAYER);
    table_of_types(r, &device);
    table_of_types(r, &host);
    scopes(r, &v);
    report_remarks(r, &f);
    return XP_OK;
}

const struct tool_report report_framework_op_stats = {
    .question = "Which parts of the model take the time?",
    .map = session_map_report,
    .merge = session_merge,
    .write = write_report,
};
