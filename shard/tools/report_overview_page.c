#include <stdio.h>

#include "shard/stats/figures_run.h"
#include "shard/tools/report_figures.h"
#include "shard/tools/report_ops.h"
#include "shard/tools/report_overview.h"
#include "shard/tools/reports.h"
#include "shard/tools/run_kind.h"

/* Is it fast enough, and if not, is it compute, memory, communication, input or the host? */

struct view {
    const struct figures *f;
    const struct op_metrics **ops; /* sorted */
    uint32_t nops;
    struct {
        struct xp_span name;
        uint64_t self_ps;
        uint32_t ops;
    } categories[128];
    uint32_t ncategories;
    uint64_t total_ps;
};

/* --- the verdict --- */

struct cause {
    const char *what;
    double share;
};

static void verdict(struct report *r, const struct figures *f)
{
    char text[400];
    int n = 0;
    double input = f->input.known ? f->input.v : 0;
    double idle = f->idle.known ? f->idle.v : 0;
    double wait = f->collective.known ? f->collective.v : 0;
    double barrier = f->window_ps ? (double)f->barrier_ps / (double)f->window_ps : 0;
    double other = idle > input + barrier ? idle - input - barrier : 0;
    if (!f->window_ps && f->input.known) {
        report_verdict(r,
                       "Steps take %.3f ms; %.1f %% of that waits for input. No device was "
                       "captured.",
                       f->step_time_mean.v / 1e9, 100 * input);
        return;
    }
    if (!f->window_ps) {
        report_verdict(r, "No device was captured, so there is little to say about speed.");
        return;
    }
    struct cause v[] = {{"waits for input", input},
                        {"idles otherwise (host, launches)", other},
                        {"waits for other devices (collectives)", wait}};
    const struct cause *most = &v[0];
    for (int i = 1; i < 3; i++)
        most = v[i].share > most->share ? &v[i] : most;
    if (most->share >= 0.1)
        n = snprintf(text, sizeof text, "The device %s %.1f %% of the time", most->what,
                     100 * most->share);
    else
        n = snprintf(text, sizeof text, "The device computes %.1f %% of the time",
                     100 * (1 - idle + barrier - wait));
    if (f->mxu.known && f->hbm.known && n > 0 && n < (int)sizeof text)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "; it reaches %.1f %% of its FLOP/s and %.1f %% of its HBM bandwidth",
                      100 * f->mxu.v, 100 * f->hbm.v);
    if (f->straggler_text[0] && n > 0 && n < (int)sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, "; the others wait for %s", f->straggler_text);
    report_verdict(r, "%s.", text);
}

/* --- ops --- */

static const struct report_column op_columns[] = {
    {"op", "Op", "", REPORT_COL_OP, false, "name of the HLO op"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, "id of its program"},
    {"category", "Category", "", REPORT_COL_TEXT, false, ""},
    {"self_time", "Self time", "ps", REPORT_COL_NUMBER, true,
     "its time less that of ops inside, over all devices"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "of all devices' time in ops"},
    {"occurrences", "Occurrences", "count", REPORT_COL_NUMBER, true, ""},
    {"flop_rate", "FLOP rate", "flop/s", REPORT_COL_NUMBER, false, "flops / time"},
    {"mean_time", "Mean time", "ps", REPORT_COL_NUMBER, false, "time / occurrences"},
    {"host", "Host", "", REPORT_COL_TEXT, false, "of the run that first_begin_ps is of"},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, "where that was"},
    {"first_begin_ps", "First begin", "ps", REPORT_COL_NUMBER, false,
     "begin of one of its first runs, session time of that host"},
};

static void op_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct op_metrics *m = v->ops[i];
    c[0] = report_of_text(m->name);
    c[1] = m->program ? report_of_id(m->program) : report_none();
    c[2] = report_of_text(m->category);
    c[3] = report_of_u64(m->self_ps);
    c[4] = report_ratio((double)m->self_ps, (double)v->total_ps);
    c[5] = report_of_u64(m->occurrences);
    double flops = figure_flops(m);
    c[6] = flops > 0 ? report_ratio(flops, (double)m->time_ps / 1e12) : report_none();
    c[7] = m->occurrences ? report_of_u64(m->time_ps / m->occurrences) : report_none();
    if (!m->first_plane.n)
        return;
    c[8] = op_host_name(v->f, m->host);
    c[9] = report_of_text(m->first_plane);
    c[10] = report_of_i64(m->first_begin_ps);
}

static const struct report_column category_columns[] = {
    {"category", "Category", "", REPORT_COL_TEXT, false, "as XLA names it"},
    {"self_time", "Self time", "ps", REPORT_COL_NUMBER, true, "of its ops, over all devices"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "of all devices' time in ops"},
    {"ops", "Ops", "count", REPORT_COL_NUMBER, true, "different ops"},
};

static void category_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    c[0] = report_of_text(v->categories[i].name);
    c[1] = report_of_u64(v->categories[i].self_ps);
    c[2] = report_ratio((double)v->categories[i].self_ps, (double)v->total_ps);
    c[3] = report_of_u64(v->categories[i].ops);
}

static void add_category(struct view *v, const struct op_metrics *m)
{
    uint32_t i = 0, max = sizeof v->categories / sizeof *v->categories;
    while (i < v->ncategories && !xp_span_eq(v->categories[i].name, m->category))
        i++;
    if (i == max) /* the last stands for the others */
        v->categories[i = max - 1].name = XP_SPAN_LIT("others");
    else if (i == v->ncategories)
        v->categories[v->ncategories++].name = m->category;
    v->categories[i].self_ps += m->self_ps;
    v->categories[i].ops++;
}

static bool gather(struct view *v, struct xp_arena *a)
{
    const struct op_db *db = &v->f->stats->device;
    const struct op_metrics **all = op_db_sorted(db, a);
    v->ops = all;
    for (uint32_t i = 0; all && i < db->n; i++) {
        if (op_is_idle(all[i]) || !all[i]->self_ps)
            continue;
        v->total_ps += all[i]->self_ps;
        add_category(v, all[i]);
        all[v->nops++] = all[i];
    }
    return all;
}

static void tables(struct report *r, struct view *v, struct xp_arena *a)
{
    report_table(r, &(struct report_rows){.id = "ops",
                                          .title = "Ops that take longest",
                                          .columns = op_columns,
                                          .ncolumns = sizeof op_columns / sizeof *op_columns,
                                          .n = v->nops,
                                          .row = op_row,
                                          .ctx = v,
                                          .sort = "self_time",
                                          .descending = true});
    report_table(
        r, &(struct report_rows){.id = "categories",
                                 .title = "Where the time goes",
                                 .columns = category_columns,
                                 .ncolumns = sizeof category_columns / sizeof *category_columns,
                                 .n = v->ncategories,
                                 .row = category_row,
                                 .ctx = v,
                                 .sort = "self_time",
                                 .descending = true});
    report_table_hosts(r, v->f, a);
    report_table_pauses(r, v->f);
    report_table_steps(r, v->f);
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct session s;
    struct requests requests;
    struct figures *f = xp_arena_alloc(r->a, sizeof *f);
    struct view *v = xp_arena_zalloc(r->a, sizeof *v);
    if (!f || !v)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the report");
    XP_TRY(session_open_report(merged, args, r->a, &s, f, err));
    v->f = f;
    if (!gather(v, r->a))
        return xp_fail(err, XP_BUSY, 0, "no memory left to sort ops");
    XP_TRY(requests_open_all(s.requests, r->a, &requests, err));
    verdict(r, f);
    report_overview_latency(r, &s, &requests);
    report_steps(r, f);
    report_usage(r, f);
    report_roof(r, f);
    report_figure(r, "collective_fraction", &f->collective, false);
    report_figure(r, "unattributed_fraction", &f->unattributed, false);
    report_straggler(r, f);
    XP_TRY(report_overview_shares(r, &s, f, err));
    report_run_kind(r, f, requests.n > 0);
    report_environment(r, f);
    tables(r, v, r->a);
    report_overview_percentiles(r, &s, &requests);
    report_overview_windows(r, f, v->ops, v->nops);
    report_series_steps(r, f);
    XP_TRY(report_overview_kinds(r, &s, err));
    report_remarks(r, f);
    return XP_OK;
}

const struct tool_report report_overview_page = {
    .question = "Is it fast enough, and if not, why?",
    .map = session_map_report,
    .merge = session_merge,
    .write = write_report,
};
