#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "shard/tools/memory_live.h"
#include "shard/tools/suggestions.h"

/* What all findings say together. OPTIMAL: every condition of the gate is met, none that is weighty
 * applies. What could not be measured is not met either; it is then not known whether the run is
 * optimal, and why. */

#define SENTENCE 420
#define SENTENCES 5

enum { WORK, WAITS, OTHERS, MEMORY, WEIGHTY, GATES };

struct gate {
    const char *id, *what;
    double limit;
    bool at_least, known;
    double v;
    char reason[200];
};

struct summary {
    char v[SENTENCES][SENTENCE];
    uint32_t n;
};

struct status {
    const struct view *v;
    struct gate gates[GATES];
    uint32_t weighty[3];
    struct summary s;
};

static bool is_infeed(const struct op_metrics *m)
{
    return xp_span_has(m->category, xp_span_str("infeed"));
}

static bool is_met(const struct gate *g)
{
    return g->known && (g->at_least ? g->v >= g->limit : g->v <= g->limit);
}

static void known(struct gate *g, double v)
{
    g->known = true;
    g->v = v;
}

static void unknown(struct gate *g, const char *reason)
{
    snprintf(g->reason, sizeof g->reason, "%s", reason);
}

/* The matrix units, or else the roof that is nearer. */
static void work(struct gate *g, const struct figures *f)
{
    double mxu = f->mxu.known ? f->mxu.v : -1, hbm = f->hbm.known ? f->hbm.v : -1;
    if (mxu > 1 || hbm > 1)
        unknown(g, "it is above 100 % of a peak: the profile's counts or the peak are wrong (give "
                   "it with --peak)");
    else if (mxu >= 0 && (mxu >= g->limit || hbm < 0.6))
        known(g, mxu);
    else if (hbm >= 0) {
        g->what = "use of the program's optimum";
        g->limit = 0.6;
        known(g, hbm);
    } else
        unknown(g, f->mxu.reason);
}

/* What cores wait for each other at barriers between ops is among the waits for other devices. */
static double idle_of(const struct figures *f)
{
    double barriers = f->window_ps ? (double)f->barrier_ps / (double)f->window_ps : 0;
    return f->idle.v > barriers ? f->idle.v - barriers : 0;
}

static void gates(struct status *st)
{
    const struct view *v = st->v;
    const struct figures *f = v->f;
    struct gate *g = st->gates;
    g[WORK] = (struct gate){.id = "work", .what = "use of the matrix units", .limit = 0.5};
    g[WAITS] =
        (struct gate){.id = "waits", .what = "idle, feeds and waits for copies", .limit = 0.1};
    g[OTHERS] = (struct gate){.id = "others", .what = "waits for other devices", .limit = 0.1};
    g[MEMORY] =
        (struct gate){.id = "memory", .what = "memory in use, of its capacity", .limit = 0.9};
    g[WEIGHTY] = (struct gate){.id = "findings", .what = "findings of priority P0 or P1"};
    g[WORK].at_least = true;
    work(&g[WORK], f);
    if (f->idle.known && f->busy_ps)
        known(&g[WAITS], idle_of(f) + suggestion_share(v, is_infeed) + v->v[COPIES].share +
                             v->v[TRANSFER].share);
    else
        unknown(&g[WAITS], f->idle.known ? v->v[IDLE].evidence : f->idle.reason);
    if (f->collective.known && f->busy_ps)
        known(&g[OTHERS], f->collective.v);
    else
        unknown(&g[OTHERS], f->collective.known ? v->v[IDLE].evidence : f->collective.reason);
    if (v->memory->full > 0)
        known(&g[MEMORY], v->memory->full);
    else
        unknown(&g[MEMORY],
                v->memory->known ? "no allocator says how much it may use" : MEMORY_NO_EVENTS);
    known(&g[WEIGHTY], st->weighty[0] + st->weighty[1]);
}

static const struct finding *weightiest(const struct view *v)
{
    const struct finding *most = NULL;
    for (int i = 0; i < RULES; i++) {
        const struct finding *d = &v->v[i];
        if (d->state != APPLIES)
            continue;
        int order = most ? strcmp(suggestion_priority(v, d), suggestion_priority(v, most)) : -1;
        if (order < 0 || (order == 0 && d->share > most->share))
            most = d;
    }
    return most;
}

/* --- words --- */

__attribute__((format(printf, 2, 3))) static void say(struct summary *s, const char *fmt, ...)
{
    va_list ap;
    if (s->n == SENTENCES)
        return;
    va_start(ap, fmt);
    vsnprintf(s->v[s->n++], SENTENCE, fmt, ap);
    va_end(ap);
}

static const char *time_words(char *out, size_t n, double ps)
{
    static const struct {
        double size;
        const char *unit;
    } units[] = {{1e12, "s"}, {1e9, "ms"}, {1e6, "us"}, {1e3, "ns"}, {1, "ps"}};
    size_t k = 0;
    while (k < 4 && ps < units[k].size)
        k++;
    double x = ps / units[k].size;
    snprintf(out, n, x >= 100 ? "%.1f %s" : "%.2f %s", x, units[k].unit);
    return out;
}

static void say_status(struct status *st, const char *word, const char *why)
{
    const struct finding *most = weightiest(st->v);
    const uint32_t *n = st->weighty;
    if (strcmp(word, "NEEDS_ATTENTION") == 0 && most)
        say(&st->s,
            "It needs attention: %u finding%s of priority P0, %u of P1, %u of P2. The "
            "weightiest: %s, %.1f %% of %s.",
            n[0], n[0] == 1 ? "" : "s", n[1], n[2], most->rule->what, 100 * most->share,
            suggestion_whole(st->v, most));
    else if (strcmp(word, "NEEDS_ATTENTION") == 0)
        say(&st->s, "It needs attention: no rule applies, but %s.", why);
    else if (strcmp(word, "OPTIMAL") == 0)
        say(&st->s, "It is optimal as far as the profile tells: no finding of priority P0 or P1, "
                    "and the hardware is used well.");
    else
        say(&st->s, "Whether it is optimal is not known: %s.",
            st->v->f->busy_ps ? why : "the profile has too little of devices");
}

static void say_steps(struct status *st)
{
    const struct figures *f = st->v->f;
    char a[40], b[40];
    if (!f->step_time_mean.known) {
        say(&st->s, "How long a step takes is not known: %s.", f->step_time_mean.reason);
        return;
    }
    char sd[80] = "";
    uint32_t whole = 0; /* one that the capture cuts is no part of the mean */
    for (uint32_t i = 0; i < f->nsteps; i++)
        whole += f->steps[i].whole;
    if (f->step_time_sd.known && f->step_time_sd.v > 0)
        snprintf(sd, sizeof sd, ", with a deviation of %s",
                 time_words(b, sizeof b, f->step_time_sd.v));
    say(&st->s, "A step takes %s, the mean of %u%s%s%s.",
        time_words(a, sizeof a, f->step_time_mean.v), whole, sd,
        f->basis_text[0] ? "; steps are " : "", f->basis_text);
}

static void say_where(struct status *st)
{
    const struct figures *f = st->v->f;
    if (!f->idle.known || !f->busy_ps) {
        say(&st->s, "What devices did is not known: %s.",
            f->idle.known ? st->v->v[IDLE].evidence : f->idle.reason);
        return;
    }
    char input[80] = "", others[80] = "";
    if (f->input.known)
        snprintf(input, sizeof input, "; %.1f %% of the steps waits for input", 100 * f->input.v);
    if (f->collective.known)
        snprintf(others, sizeof others, "; %.1f %% of the time is spent with other devices",
                 100 * f->collective.v);
    say(&st->s, "Devices are busy %.1f %% of the time and idle %.1f %%%s%s.", 100 * (1 - f->idle.v),
        100 * f->idle.v, input, others);
}

static void say_use(struct status *st)
{
    const struct figures *f = st->v->f;
    if (!f->window_ps)
        return;
    if (f->mxu.known && f->hbm.known)
        say(&st->s, "The matrix units reach %.1f %% of their peak, HBM %.1f %%%s.", 100 * f->mxu.v,
            100 * f->hbm.v,
            f->mxu.v > 1 || f->hbm.v > 1 ? ": more than there is, so counts or peak are wrong"
                                         : "");
    else if (f->mxu.known || f->hbm.known)
        say(&st->s, "%s %.1f %% of their peak; of %s it is not known: %s.",
            f->mxu.known ? "The matrix units reach" : "The HBM's bytes reach",
            100 * (f->mxu.known ? f->mxu.v : f->hbm.v), f->mxu.known ? "HBM" : "the matrix units",
            f->mxu.known ? f->hbm.reason : f->mxu.reason);
    else
        say(&st->s, "How much of the hardware is used is not known: %s.", f->mxu.reason);
}

static void say_what_helps(struct status *st)
{
    const struct finding *most = weightiest(st->v);
    char a[40], won[100] = "";
    if (!most) {
        if (!st->v->f->window_ps)
            say(&st->s, "Capture while steps run on a device.");
        return;
    }
    double ps = suggestion_impact_ps(st->v, most);
    if (ps > 0)
        snprintf(won, sizeof won, " At most %s of a step would be won.",
                 time_words(a, sizeof a, ps));
    say(&st->s, "What helps first: %s%s", most->rule->fix, won);
}

/* --- tables --- */

static const struct report_column summary_columns[] = {
    {"sentence", "Sentence", "", REPORT_COL_TEXT, false, ""},
};

static void summary_row(void *ctx, uint64_t i, struct report_cell *c)
{
    c[0] = report_of_text(xp_span_str(((struct summary *)ctx)->v[i]));
}

static const struct report_column gate_columns[] = {
    {"condition", "Condition", "", REPORT_COL_TEXT, false, "of a run that is optimal"},
    {"id", "Id", "", REPORT_COL_TEXT, false, ""},
    {"value", "Value", "", REPORT_COL_NUMBER, false, "a fraction, but for the count of findings"},
    {"limit", "Limit", "", REPORT_COL_NUMBER, false, ""},
    {"at_least", "At least", "", REPORT_COL_BOOL, false, "else: at most"},
    {"met", "Met", "", REPORT_COL_BOOL, false, "n/a: not known"},
    {"reason", "Why", "", REPORT_COL_TEXT, false, "it is not known"},
};

static void gate_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct gate *g = &((struct status *)ctx)->gates[i];
    c[0] = report_of_text(xp_span_str(g->what));
    c[1] = report_of_text(xp_span_str(g->id));
    c[2] = g->known ? report_of_double(g->v) : report_none();
    c[3] = report_of_double(g->limit);
    c[4] = report_of_bool(g->at_least);
    c[5] = g->known ? report_of_bool(is_met(g)) : report_none();
    c[6] = g->known ? report_none() : report_of_text(xp_span_str(g->reason));
}

/* Programs by what they are called, whatever number their compilation has. */
struct programs {
    struct xp_span *v;
    uint32_t n;
};

/* jit_train(123), jit_train.5: jit_train */
static struct xp_span base_name(struct xp_span s)
{
    const uint8_t *paren = s.n ? memchr(s.p, '(', s.n) : NULL;
    size_t n = paren ? (size_t)(paren - s.p) : s.n, k = n;
    while (k > 0 && s.p[k - 1] >= '0' && s.p[k - 1] <= '9')
        k--;
    if (k > 1 && k < n && (s.p[k - 1] == '.' || s.p[k - 1] == '_' || s.p[k - 1] == '-'))
        n = k - 1;
    return xp_span_of(s.p, n);
}

static void programs_of(const struct figures *f, struct xp_arena *a, struct programs *p)
{
    uint32_t most = 0;
    for (uint32_t h = 0; h < f->nhosts; h++)
        most += f->hosts[h].nmodules;
    p->v = xp_arena_alloc(a, (most + 1) * sizeof *p->v);
    for (uint32_t h = 0; p->v && h < f->nhosts; h++)
        for (uint32_t i = 0; i < f->hosts[h].nmodules; i++) {
            struct xp_span name = base_name(f->hosts[h].modules[i].name);
            uint32_t k = 0;
            while (k < p->n && !xp_span_eq(p->v[k], name))
                k++;
            if (k == p->n && name.n && p->n < FIGURE_MODULES_MAX)
                p->v[p->n++] = name;
        }
}

static const struct report_column program_columns[] = {
    {"program", "Program", "", REPORT_COL_TEXT, false,
     "that ran, without the number of its compilation"},
};

static void program_row(void *ctx, uint64_t i, struct report_cell *c)
{
    c[0] = report_of_text(((struct programs *)ctx)->v[i]);
}

static void write_tables(struct report *r, struct status *st)
{
    struct programs p = {0};
    programs_of(st->v->f, r->a, &p);
    report_table(r, &(struct report_rows){.id = "summary",
                                          .title = "Summary",
                                          .columns = summary_columns,
                                          .ncolumns = 1,
                                          .n = st->s.n,
                                          .row = summary_row,
                                          .ctx = &st->s,
                                          .aside = true});
    report_table(r, &(struct report_rows){.id = "gate",
                                          .title = "What an optimal run has",
                                          .columns = gate_columns,
                                          .ncolumns = sizeof gate_columns / sizeof *gate_columns,
                                          .n = GATES,
                                          .row = gate_row,
                                          .ctx = st,
                                          .aside = true});
    report_table(r, &(struct report_rows){.id = "programs",
                                          .title = "Programs",
                                          .columns = program_columns,
                                          .ncolumns = 1,
                                          .n = p.n,
                                          .row = program_row,
                                          .ctx = &p,
                                          .aside = true});
}

void suggestion_status(struct report *r, const struct view *v)
{
    struct status *st = xp_arena_zalloc(r->a, sizeof *st);
    const struct gate *failed = NULL, *blank = NULL;
    char why[400] = "";
    if (!st) {
        report_na(r, "status", "no memory left to say");
        return;
    }
    st->v = v;
    for (int i = 0; i < RULES; i++)
        if (v->v[i].state == APPLIES)
            st->weighty[suggestion_priority(v, &v->v[i])[1] - '0']++;
    gates(st);
    for (int i = 0; i < GATES; i++) {
        const struct gate *g = &st->gates[i];
        failed = !failed && g->known && !is_met(g) ? g : failed;
        blank = !blank && !g->known ? g : blank;
    }
    bool some = v->f->busy_ps || st->weighty[0] + st->weighty[1] > 0; /* of a device, or steps */
    const char *word = !some    ? "UNKNOWN"
                       : failed ? "NEEDS_ATTENTION"
                       : blank  ? "UNKNOWN"
                                : "OPTIMAL";
    if (failed && some)
        snprintf(why, sizeof why, "%s: %.1f %%, and it should be %s %.0f %%", failed->what,
                 100 * failed->v, failed->at_least ? "at least" : "at most", 100 * failed->limit);
    else if (blank)
        snprintf(why, sizeof why, "%s: %s", blank->what, blank->reason);
    if (!some)
        snprintf(why, sizeof why, "the profile has too little of devices: %s",
                 v->f->idle.known ? v->v[IDLE].evidence : v->f->idle.reason);
    if (strcmp(word, "UNKNOWN") == 0)
        report_na(r, "status", "%s%s",
                  some ? "nothing weighty was found, but not all is known: " : "", why);
    else
        report_string(r, "status", xp_span_str(word),
                      failed && some && failed != &st->gates[WEIGHTY] ? why : NULL);
    say_status(st, word, why);
    say_steps(st);
    say_where(st);
    say_use(st);
    say_what_helps(st);
    write_tables(r, st);
}
