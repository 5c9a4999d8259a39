#include <stdio.h>

#include "shard/tools/input_analysis.h"
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

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    static const char *const kinds[INPUT_OP_KINDS] = {
        [INPUT_OP_ENQUEUE] = "enqueue",
        [INPUT_OP_DEMAND] = "reading on demand",
        [INPUT_OP_ADVANCE] = "reading in advance",
        [INPUT_OP_PREPROCESS] = "preprocessing",
        [INPUT_OP_UNKNOWN] = "other",
    };
    const struct input_analysis *in = ctx;
    const struct op_metrics *m = in->ops[i].op;
    c[0] = report_of_text(m->name);
    c[1] = report_of_text(xp_span_str(kinds[in->ops[i].kind]));
    c[2] = report_of_u64(m->self_ps);
    c[3] = report_ratio((double)m->self_ps, (double)in->ops_self_ps);
    c[4] = report_of_u64(m->time_ps);
    c[5] = report_of_u64(m->occurrences);
    c[6] = m->occurrences ? report_of_u64(m->time_ps / m->occurrences) : report_none();
}

static void verdict(struct report *r, const struct figures *f)
{
    if (!f->input.known)
        return;
    const char *how = f->input.v >= 0.2    ? "The run is input bound"
                      : f->input.v >= 0.05 ? "The run waits for its input at times"
                                           : "The run does not wait for its input";
    if (f->step_time_mean.known)
        report_verdict(r, "%s: %.1f %% of the time of steps, which take %.3f ms.", how,
                       100 * f->input.v, f->step_time_mean.v / 1e9);
    else
        report_verdict(r, "%s: %.1f %% of the time of steps.", how, 100 * f->input.v);
}

/* Which core waited most in which step. */
static void worst(struct report *r, const struct figures *f)
{
    const struct run_step *most = NULL;
    char text[200];
    for (uint32_t i = 0; f->input.known && i < f->nsteps; i++)
        if (!most || f->steps[i].worst_input > most->worst_input)
            most = &f->steps[i];
    if (!most) {
        report_na(r, "input_worst", "%s", f->input.reason);
        return;
    }
    snprintf(text, sizeof text, "step %lld", (long long)most->number);
    report_double(r, "input_worst", most->worst_input, text);
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct session s;
    struct figures f;
    struct step_db db;
    struct input_analysis in;
    XP_TRY(session_open_report(merged, args, r->a, &s, &f, err));
    XP_TRY(steps_combine(&s.steps, s.stats, true, r->a, &db, err));
    XP_TRY(input_analyze(&s, &db, r->a, &in, err));
    verdict(r, &f);
    report_steps(r, &f);
    worst(r, &f);
    if (in.nops)
        report_u64(r, "host_input_time", in.ops_self_ps, NULL);
    else
        report_na(r, "host_input_time",
                  "no host event is known as one of an input pipeline: "
                  "capture with host_tracer_level=2 or higher");
    report_figure(r, "idle_fraction", &f.idle, false);
    report_environment(r, &f);
    report_table_steps(r, &f);
    report_table(r, &(struct report_rows){.id = "input_ops",
                                          .title = "Input ops of hosts",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = in.nops,
                                          .row = row,
                                          .ctx = &in,
                                          .sort = "self_time",
                                          .descending = true});
    report_table_pauses(r, &f);
    report_table_hosts(r, &f, r->a);
    report_series_steps(r, &f);
    report_remarks(r, &f);
    return XP_OK;
}

const struct tool_report report_input_pipeline_analyzer = {
    .question = "Does the device wait for data, and which stage of the host is slow?",
    .map = session_map_report,
    .merge = session_merge,
    .write = write_report,
};
