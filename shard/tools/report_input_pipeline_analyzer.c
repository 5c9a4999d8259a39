#include <stdio.h>

#include "shard/tools/input_analysis.h"
#include "shard/tools/input_gaps.h"
#include "shard/tools/report_figures.h"
#include "shard/tools/reports.h"

/* Does the device wait for data, and which stage of the host's pipeline is slow? */

static const struct report_column columns[] = {
    {"op", "Input op", "", REPORT_COL_TEXT, false, "name of the host's events"},
    {"kind", "Kind", "", REPORT_COL_TEXT, false, "what it does for the input"},
    {"self_time", "Self time", "ps", REPORT_COL_NUMBER, true, "time less that of ops inside"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "of all input ops"},
    {"time", "Time", "ps", REPORT_COL_NUMBER, false, "with ops inside"},
    {"occurrences", "Occurrences", "count", REPORT_COL_NUMBER, true, ""},
    {"mean_time", "Mean time", "ps", REPORT_COL_NUMBER, false, "time / occurrences"},
};

/* What the host does for the input, and what helps where that is what takes the time. */
static const struct stage {
    const char *name, *hint;
} stages[INPUT_OP_KINDS] = {
    [INPUT_OP_ENQUEUE] = {"enqueue", "join small transfers, and hand the next batch over while the "
                                     "device works on this one"},
    [INPUT_OP_DEMAND] = {"reading on demand", "read in advance (prefetch), and from several files "
                                              "at once (interleave)"},
    [INPUT_OP_ADVANCE] = {"reading in advance", "read more in parallel, from faster storage, or "
                                                "keep what is read in memory (cache)"},
    [INPUT_OP_PREPROCESS] = {"preprocessing", "do it in more threads or processes, once and for "
                                              "all before the run, or on the device"},
    [INPUT_OP_UNKNOWN] = {"other", NULL},
};

static const struct report_column stage_columns[] = {
    {"stage", "Stage", "", REPORT_COL_TEXT, false, "of the host's input pipeline"},
    {"self_time", "Self time", "ps", REPORT_COL_NUMBER, true, "of its ops"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "of all input ops"},
    {"ops", "Ops", "count", REPORT_COL_NUMBER, true, "different ones"},
    {"longest", "Longest op", "", REPORT_COL_TEXT, false, "by self time"},
    {"hint", "What helps", "", REPORT_COL_TEXT, false, "where the stage takes much of the time"},
};

static void stage_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct input_analysis *in = ctx;
    const struct op_metrics *longest = NULL;
    uint64_t self = 0, ops = 0;
    for (uint32_t k = 0; k < in->nops; k++) {
        if (in->ops[k].kind != i)
            continue;
        self += in->ops[k].op->self_ps;
        ops++;
        if (!longest || in->ops[k].op->self_ps > longest->self_ps)
            longest = in->ops[k].op;
    }
    c[0] = report_of_text(xp_span_str(stages[i].name));
    c[1] = report_of_u64(self);
    c[2] = report_ratio((double)self, (double)in->ops_self_ps);
    c[3] = report_of_u64(ops);
    c[4] = longest ? report_of_text(longest->name) : report_none();
    c[5] = self && stages[i].hint ? report_of_text(xp_span_str(stages[i].hint)) : report_none();
}

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct input_analysis *in = ctx;
    const struct op_metrics *m = in->ops[i].op;
    c[0] = report_of_text(m->name);
    c[1] = report_of_text(xp_span_str(stages[in->ops[i].kind].name));
    c[2] = report_of_u64(m->self_ps);
    c[3] = report_ratio((double)m->self_ps, (double)in->ops_self_ps);
    c[4] = report_of_u64(m->time_ps);
    c[5] = report_of_u64(m->occurrences);
    c[6] = m->occurrences ? report_of_u64(m->time_ps / m->occurrences) : report_none();
}

/* meanwhile: who worked during the waits, or "". */
static void verdict(struct report *r, const struct figures *f, const char *meanwhile)
{
    const char *sep = meanwhile[0] ? "; meanwhile the busiest host thread is " : "";
    if (!f->input.known)
        return;
    const char *how = f->input.v >= 0.2    ? "The run is input bound"
                      : f->input.v >= 0.05 ? "The run waits for its input at times"
                                           : "The run does not wait for its input";
    if (f->step_time_mean.known)
        report_verdict(r, "%s: %.1f %% of the time of steps, which take %.3f ms%s%s.", how,
                       100 * f->input.v, f->step_time_mean.v / 1e9, sep, meanwhile);
    else
        report_verdict(r, "%s: %.1f %% of the time of steps%s%s.", how, 100 * f->input.v, sep,
                       meanwhile);
}

/* Which core waited most in which step. */
static void worst_core(struct report *r, const struct figures *f, int64_t number)
{
    double most = -1;
    char text[200] = "";
    for (uint32_t h = 0; h < f->nhosts; h++)
        for (uint32_t c = 0; c < f->hosts[h].ncores; c++) {
            const struct figure_core *core = &f->hosts[h].cores[c];
            for (uint32_t i = 0; i < core->nsteps; i++) {
                const struct figure_step *s = &core->steps[i];
                uint64_t span = figure_length(s->begin_ps, s->until_ps);
                double share = span ? (double)s->input_ps / (double)span : 0;
                if (s->number != number || share <= most)
                    continue;
                most = share;
                snprintf(text, sizeof text, "%.*s on %.*s",
                         (int)(core->name.n < 60 ? core->name.n : 60), (const char *)core->name.p,
                         (int)(f->hosts[h].name.n < 100 ? f->hosts[h].name.n : 100),
                         (const char *)f->hosts[h].name.p);
            }
        }
    if (most > 0)
        report_string(r, "input_core", xp_span_str(text), NULL);
    else
        report_na(r, "input_core", "no core waits for input in any step");
}

static void worst(struct report *r, const struct figures *f)
{
    const struct run_step *most = NULL;
    char text[200];
    for (uint32_t i = 0; f->input.known && i < f->nsteps; i++)
        if (!most || f->steps[i].worst_input > most->worst_input)
            most = &f->steps[i];
    if (!most) {
        report_na(r, "input_worst", "%s", f->input.reason);
        report_na(r, "input_core", "%s", f->input.reason);
        return;
    }
    snprintf(text, sizeof text, "step %lld", (long long)most->number);
    report_double(r, "input_worst", most->worst_input, text);
    worst_core(r, f, most->number);
}

/* --- who worked meanwhile --- */

struct gap_rows {
    const struct input_gaps **of; /* by row */
    const struct host_gap_row **row;
    size_t n;
};

static const struct report_column gap_columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"thread", "Thread", "", REPORT_COL_TEXT, false, "of the host"},
    {"event", "Event", "", REPORT_COL_TEXT, false, "that the thread was in"},
    {"kind", "Kind", "", REPORT_COL_TEXT, false,
     "work; input: an event of a loader; waits: by its name; around: ten times as long as the gap"},
    {"self_time", "Time in gaps", "ps", REPORT_COL_NUMBER, false, "less that of events inside"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, false, "of the gaps' time"},
    {"gaps", "Gaps", "count", REPORT_COL_NUMBER, false, "in which it was seen"},
    {"first_begin_ps", "Longest gap", "ps", REPORT_COL_NUMBER, false,
     "begin of the gap in which it took longest, session time of that host"},
    {"duration", "Its length", "ps", REPORT_COL_NUMBER, false, "of that gap"},
    {"core", "Waiting core", "", REPORT_COL_TEXT, false, "whose gaps they are"},
};

static void gap_row(void *ctx, uint64_t i, struct report_cell *c)
{
    static const char *const kinds[] = {[HOST_GAP_AROUND] = "around",
                                        [HOST_GAP_WAITS] = "waits",
                                        [HOST_GAP_INPUT] = "input",
                                        [HOST_GAP_WORK] = "work"};
    const struct gap_rows *rows = ctx;
    const struct input_gaps *g = rows->of[i];
    const struct host_gap_row *row = rows->row[i];
    const struct figure_span *most = &g->gaps[row->most];
    c[0] = report_of_text(g->host);
    c[1] = row->thread.n ? report_of_text(row->thread) : report_none();
    c[2] = report_of_text(row->event);
    c[3] = report_of_text(xp_span_str(kinds[row->kind]));
    c[4] = report_of_u64(row->self_ps);
    c[5] = report_ratio((double)row->self_ps, (double)g->all_ps);
    c[6] = report_of_u64(row->gaps);
    c[7] = report_of_i64(most->begin_ps);
    c[8] = report_of_u64(figure_length(most->begin_ps, most->end_ps));
    c[9] = report_of_text(g->core);
}

static void gap_table(struct report *r, const struct input_gaps *hosts, size_t n)
{
    struct gap_rows rows = {0};
    size_t max = 1;
    bool input = false;
    for (size_t i = 0; i < n; i++) {
        max += hosts[i].nrows;
        input |= hosts[i].ngaps && hosts[i].input;
    }
    rows.of = xp_arena_alloc(r->a, max * sizeof *rows.of);
    rows.row = xp_arena_alloc(r->a, max * sizeof *rows.row);
    if (!rows.of || !rows.row) {
        r->busy = true;
        return;
    }
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < hosts[i].nrows; k++, rows.n++) {
            rows.of[rows.n] = &hosts[i];
            rows.row[rows.n] = &hosts[i].rows[k];
        }
    report_table(r, &(struct report_rows){
                        .id = "gap_threads",
                        .title = "What host threads did in the gaps",
                        .note = input ? "gaps: the longest waits for input of the core that waited "
                                        "longest"
                                      : "gaps: the longest pauses of the core that paused longest; "
                                        "none is known to be a wait for input",
                        .columns = gap_columns,
                        .ncolumns = sizeof gap_columns / sizeof *gap_columns,
                        .n = rows.n,
                        .row = gap_row,
                        .ctx = &rows,
                        .sort = "self_time",
                        .descending = true});
    report_link(r, "gap_threads", "event");
}

/* The busiest of the host whose gaps are longest; in `text`, if it worked while others waited for
 * input. */
static void busiest(struct report *r, const struct input_gaps *hosts, size_t n, char text[200])
{
    const struct input_gaps *g = NULL;
    for (size_t i = 0; i < n; i++)
        if (hosts[i].ngaps && (!g || hosts[i].input > g->input ||
                               (hosts[i].input == g->input && hosts[i].all_ps > g->all_ps)))
            g = &hosts[i];
    if (!g) {
        report_na(r, "input_thread", "no core of a device paused");
        return;
    }
    const struct host_gap_row *row = host_gaps_busiest(g->rows, g->nrows, g->all_ps);
    if (!row) {
        report_na(r, "input_thread",
                  "no event of a host thread takes a tenth of the gaps: capture with "
                  "host_tracer_level=2 or higher, or the Python tracer");
        return;
    }
    char note[200];
    int ne = (int)(row->event.n < 100 ? row->event.n : 100);
    int nt = (int)(row->thread.n < 60 ? row->thread.n : 60);
    snprintf(text, 200, "%.*s, in %.*s", nt, (const char *)row->thread.p, ne,
             (const char *)row->event.p);
    snprintf(note, sizeof note, "%.0f %% of %.3f ms in %u %s on %.*s",
             100 * (double)row->self_ps / (double)g->all_ps, (double)g->all_ps / 1e9, g->ngaps,
             g->input ? "waits for input" : "pauses", (int)(g->host.n < 80 ? g->host.n : 80),
             (const char *)g->host.p);
    report_string(r, "input_thread", xp_span_str(text), note);
    if (!g->input)
        text[0] = '\0';
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct session s;
    struct figures f;
    struct step_db db;
    struct input_analysis in;
    struct input_gaps *gaps;
    struct xp_span session;
    size_t ngaps;
    char meanwhile[200] = "";
    XP_TRY(input_gaps_open(merged, r->a, &session, &gaps, &ngaps, err));
    XP_TRY(session_open_report(session, args, r->a, &s, &f, err));
    XP_TRY(steps_combine(&s.steps, s.stats, true, r->a, &db, err));
    XP_TRY(input_analyze(&s, &db, r->a, &in, err));
    report_steps(r, &f);
    worst(r, &f);
    busiest(r, gaps, ngaps, meanwhile);
    verdict(r, &f, f.input.known && f.input.v >= 0.05 ? meanwhile : "");
    if (in.nops)
        report_u64(r, "host_input_time", in.ops_self_ps, NULL);
    else
        report_na(r, "host_input_time",
                  "no host event is known as one of an input pipeline: "
                  "capture with host_tracer_level=2 or higher");
    report_figure(r, "idle_fraction", &f.idle, false);
    report_environment(r, &f);
    report_table_steps(r, &f);
    report_table(r, &(struct report_rows){.id = "stages",
                                          .title = "Stages of the input pipeline",
                                          .columns = stage_columns,
                                          .ncolumns = sizeof stage_columns / sizeof *stage_columns,
                                          .n = in.nops ? INPUT_OP_KINDS : 0,
                                          .row = stage_row,
                                          .ctx = &in,
                                          .sort = "self_time",
                                          .descending = true});
    report_table(r, &(struct report_rows){.id = "input_ops",
                                          .title = "Input ops of hosts",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = in.nops,
                                          .row = row,
                                          .ctx = &in,
                                          .sort = "self_time",
                                          .descending = true});
    gap_table(r, gaps, ngaps);
    report_table_pauses(r, &f);
    report_table_hosts(r, &f, r->a);
    report_series_steps(r, &f);
    report_remarks(r, &f);
    return XP_OK;
}

const struct tool_report report_input_pipeline_analyzer = {
    .question = "Does the device wait for data, and which stage of the host is slow?",
    .map = input_gaps_map,
    .merge = input_gaps_merge,
    .write = write_report,
};
