#include <stdio.h>

#include "shard/tools/suggestions.h"

/* What shows a finding: its largest ops, the moment where it is seen best, the figure that it was
 * judged by. Each with a way to look at it. */

#define LINES_MAX (RULES * (TOP + 3))

struct line {
    const struct finding *d;
    char words[160];
    const struct op_metrics *op;
    double share; /* below 0: it is none */
    struct place at;
};

struct lines {
    struct line v[LINES_MAX];
    uint32_t n;
};

static struct line *add(struct lines *l, const struct finding *d, double share)
{
    struct line *one = &l->v[l->n++];
    *one = (struct line){.d = d, .share = share};
    return one;
}

static const char *moment_of(int rule)
{
    switch (rule) {
    case INPUT:
        return "the longest pause for input";
    case IDLE:
        return "the longest pause for something else";
    case BARRIERS:
        return "the step that waits most at barriers";
    case STRAGGLER:
        return "the step that took longest of its own";
    case MEMORY_NEAR:
        return "when most was in use";
    case MEMORY_BOUND:
    case COMPUTE_BOUND:
    case LOW_USE:
        return "the step with the most work in it";
    default:
        return "a run of the largest op";
    }
}

static void figure_line(struct lines *l, const struct view *v, int rule)
{
    const struct figures *f = v->f;
    const struct finding *d = &v->v[rule];
    struct line *one = add(l, d, d->share);
    switch (rule) {
    case INPUT:
        snprintf(one->words, sizeof one->words, "waiting for input, of the time of steps");
        break;
    case IDLE:
        snprintf(one->words, sizeof one->words, "idle in all, of the devices' time");
        one->share = f->idle.v;
        break;
    case STRAGGLER:
        snprintf(one->words, sizeof one->words, "how much longer its steps are without waiting");
        break;
    case MEMORY_NEAR:
        snprintf(one->words, sizeof one->words, "the peak, of what the allocator may use");
        break;
    case MEMORY_BOUND:
        snprintf(one->words, sizeof one->words, "of the peak of HBM");
        break;
    case COMPUTE_BOUND:
        snprintf(one->words, sizeof one->words, "of the peak of the matrix units");
        break;
    case LOW_USE:
        snprintf(one->words, sizeof one->words, "unused while ops run, of what devices could do");
        break;
    default:
        snprintf(one->words, sizeof one->words, "all of it, of the devices' time");
    }
}

static void text_line(struct lines *l, const struct finding *d)
{
    struct line *one = add(l, d, -1);
    snprintf(one->words, sizeof one->words, "%.150s", d->evidence);
}

static void lines_of(struct lines *l, const struct view *v, int rule)
{
    const struct finding *d = &v->v[rule];
    bool ops = d->ntop > 0, pause = rule == INPUT && d->at.duration_ps > 0 &&
                                    !(ops && d->at.begin_ps == d->op->first_begin_ps);
    figure_line(l, v, rule);
    if (d->evidence[0] && (!ops || rule == INPUT || (rule == BARRIERS && v->f->barrier_ps)))
        text_line(l, d);
    for (uint32_t i = 0; i < d->ntop; i++) {
        struct line *one = add(l, d, d->top_share[i]);
        one->op = d->top[i];
        one->at = suggestion_op_place(v, d->top[i]);
    }
    if (d->at.host.n && (!ops || pause || rule == BARRIERS)) {
        struct line *one = add(l, d, -1);
        snprintf(one->words, sizeof one->words, "%s", moment_of(rule));
        one->at = d->at;
    }
}

static const struct report_column columns[] = {
    {"rule", "Rule", "", REPORT_COL_TEXT, false, "whose evidence it is"},
    {"evidence", "Evidence", "", REPORT_COL_TEXT, false, "an op, a moment, or a figure"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, false,
     "of ops: of the devices' time; of figures, as their words say"},
    {"tool", "See", "", REPORT_COL_TEXT, false, "tool that shows it"},
    {"op", "Op", "", REPORT_COL_OP, false, "if it is one"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, "of the op"},
    {"first_host", "Host", "", REPORT_COL_TEXT, false, "of the moment, or of a run of the op"},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, "likewise"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, "likewise"},
    {"first_duration_ps", "Lasts", "ps", REPORT_COL_NUMBER, false,
     "of an op: its mean, less what is inside"},
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct line *l = &((const struct lines *)ctx)->v[i];
    const char *tool = l->d->tool ? l->d->tool : l->d->rule->tool;
    c[0] = report_of_text(xp_span_str(l->d->rule->id));
    c[1] = report_of_text(l->op ? l->op->name : xp_span_str(l->words));
    c[2] = l->share >= 0 ? report_of_double(l->share) : report_none();
    c[3] = report_of_text(xp_span_str(l->op ? "hlo_stats" : l->at.host.n ? "trace" : tool));
    c[4] = l->op ? report_of_text(l->op->name) : report_none();
    c[5] = l->op && l->op->program ? report_of_id(l->op->program) : report_none();
    if (!l->at.host.n)
        return;
    c[6] = report_of_text(l->at.host);
    c[7] = l->at.plane.n ? report_of_text(l->at.plane) : report_none();
    c[8] = report_of_i64(l->at.begin_ps);
    c[9] = report_of_u64(l->at.duration_ps);
}

void suggestion_evidence(struct report *r, const struct view *v)
{
    struct lines *l = xp_arena_zalloc(r->a, sizeof *l);
    for (int i = 0; l && i < RULES; i++)
        if (v->v[i].state == APPLIES)
            lines_of(l, v, i);
    report_table(r, &(struct report_rows){.id = "evidence",
                                          .title = "Evidence",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = l ? l->n : 0,
                                          .row = row,
                                          .ctx = l,
                                          .aside = true});
}
