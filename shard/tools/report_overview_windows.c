#include "shard/stats/figures_run.h"
#include "shard/tools/report_ops.h"
#include "shard/tools/report_overview.h"

/* Where in the timeline a figure of the page is seen best: a window for each. */

#define WINDOWS_MAX 6

struct window {
    const char *metric, *what;
    const struct op_metrics *op; /* NULL: a step */
    const struct run_step *step;
};

struct windows {
    const struct figures *f;
    struct window v[WINDOWS_MAX];
    uint32_t n;
};

static const struct report_column columns[] = {
    {"metric", "Figure", "", REPORT_COL_TEXT, false, "id of the figure"},
    {"what", "What is there", "", REPORT_COL_TEXT, false, ""},
    {"op", "Op", "", REPORT_COL_OP, false, "name of the HLO op, if it is one"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, "id of its program"},
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, "the device"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, "session time of that host"},
    {"duration", "Time", "ps", REPORT_COL_NUMBER, false, "of the step; of an op's run, the mean"},
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct windows *w = ctx;
    const struct window *x = &w->v[i];
    c[0] = report_of_text(xp_span_str(x->metric));
    c[1] = report_of_text(xp_span_str(x->what));
    if (x->op) {
        c[2] = report_of_text(x->op->name);
        c[3] = x->op->program ? report_of_id(x->op->program) : report_none();
        c[4] = op_host_name(w->f, x->op->host);
        c[5] = report_of_text(x->op->first_plane);
        c[6] = report_of_i64(x->op->first_begin_ps);
        c[7] =
            x->op->occurrences ? report_of_u64(x->op->time_ps / x->op->occurrences) : report_none();
        return;
    }
    const struct figure_host *h = &w->f->hosts[x->step->slowest_host];
    c[4] = report_of_text(h->name);
    c[5] = report_of_text(h->cores[x->step->slowest_core].name);
    c[6] = report_of_i64(x->step->begin_ps);
    c[7] = report_of_u64((uint64_t)(x->step->max_ps + 0.5));
}

static void add(struct windows *w, bool known, struct window x)
{
    if (known && (x.op || x.step))
        w->v[w->n++] = x;
}

static const struct run_step *longest_step(const struct figures *f)
{
    const struct run_step *most = NULL;
    for (uint32_t i = 0; i < f->nsteps; i++)
        if (f->steps[i].whole && (!most || f->steps[i].max_ps > most->max_ps))
            most = &f->steps[i];
    return most;
}

void report_overview_windows(struct report *r, const struct figures *f,
                             const struct op_metrics *const *ops, uint32_t n)
{
    struct windows w = {.f = f};
    const struct op_metrics *flops = NULL, *bytes = NULL, *wait = NULL;
    for (uint32_t i = 0; i < n; i++) { /* by self time, the longest first */
        const struct op_metrics *m = ops[i];
        if (!m->first_plane.n)
            continue;
        if (!flops && figure_flops(m) > 0)
            flops = m;
        if (figure_hbm_bytes(m) > (bytes ? figure_hbm_bytes(bytes) : 0))
            bytes = m;
        if (!wait && figure_is_collective(m->category, m->name))
            wait = m;
    }
    static const char step[] = "the longest step", flop[] = "the op with flops that takes longest",
                      byte[] = "the op that moves most bytes of HBM",
                      hold[] = "the op that waits longest for other devices";
    add(&w, f->step_time_mean.known,
        (struct window){"step_time_mean", step, NULL, longest_step(f)});
    add(&w, f->mxu.known, (struct window){"mxu_utilization", flop, flops, NULL});
    add(&w, f->flop_rate.known, (struct window){"flop_rate", flop, flops, NULL});
    add(&w, f->hbm.known, (struct window){"hbm_utilization", byte, bytes, NULL});
    add(&w, f->hbm_rate.known, (struct window){"hbm_rate", byte, bytes, NULL});
    add(&w, f->collective.known, (struct window){"collective_fraction", hold, wait, NULL});
    report_table(r, &(struct report_rows){.id = "windows",
                                          .title = "Where to look",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = w.n,
                                          .row = row,
                                          .ctx = &w,
                                          .aside = true});
    report_link(r, "windows", "what");
}
