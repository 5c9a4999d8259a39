#include <stdio.h>

#include "shard/tools/memory_live.h"
#include "shard/tools/report_figures.h"
#include "shard/tools/report_ops.h"
#include "shard/tools/reports_more.h"
#include "shard/tools/suggestions.h"

/* What should be changed? Rules with thresholds, each with its measured share and its evidence.
 *
 * Shares are of the devices' time (their windows), unless the rule says otherwise, so that they can
 * be compared and are what could be won at most. Rules never guess: one without its facts is
 * unknown, with the reason. */

static const struct rule rules[RULES] = {
    [INPUT] = {"input_bound", "input_pipeline_analyzer", "The device waits for its input",
               "Prefetch more, read and preprocess in parallel, move preprocessing off the hosts.",
               0.10},
    [IDLE] = {"idle", "trace", "The device idles, neither for its input nor at a barrier",
              "Look at what the host does in the gaps: launches one by one, Python between steps, "
              "compilation, transfers that block.",
              0.10},
    [COLLECTIVES] = {"collectives", "op_profile", "Ops wait for other devices",
                     "Shard so that less is exchanged, overlap collectives with compute, combine "
                     "small ones, check the slowest host.",
                     0.20},
    [BARRIERS] = {"barrier_cores", "pod_viewer", "Cores wait at barriers",
                  "Find the core or host that comes last; balance the work.", 0.10},
    [STRAGGLER] = {"straggler", "pod_viewer", "The others wait for one host or core",
                   "Compare its input, its host work and its clock with the others'.", 0.03},
    [COPIES] =
        {"copies", "hlo_stats", "Ops wait for copies between memories to end",
         "Start copies earlier, keep on the device what is used again, avoid offloading to the "
         "host what the next op needs.",
         0.10},
    [SHUFFLE] = {"data_formatting", "hlo_stats", "Data is copied, transposed and reshaped",
                 "Keep one layout through the program; avoid transposes and slices between large "
                 "ops; pad dimensions to the tile.",
                 0.10},
    [TRANSFER] = {"host_transfer", "hlo_stats", "Data moves between host and device in the program",
                  "Move it in larger pieces and ahead of its use; keep on the device what is used "
                  "again.",
                  0.10},
    [REMAT] = {"rematerialization", "hlo_stats", "Ops are computed again to save memory",
               "Free memory (smaller batch, sharding, offload) or choose what is kept.", 0.05},
    [LOOSE] = {"unattributed", "kernel_stats", "Work that no HLO op explains",
               "Custom calls and command buffers: name them, or capture with command buffers off.",
               0.10},
    [SPARSE] = {"sparse_core", "op_profile", "The SparseCores work for much of the time",
                "Balance embedding tables over cores; check that lookups overlap with dense work.",
                0.10},
    [MEMORY_NEAR] = {"memory_near_limit", "memory_profile", "The memory of a device is nearly full",
                     "Donate buffers, shard or shrink the largest ones, compute more again; what "
                     "comes next may not fit.",
                     0.80},
    [MEMORY_BOUND] = {"hbm_bound", "roofline_model", "HBM is near its peak",
                      "Fuse ops, use narrower types, reuse what is in VMEM; larger batches.", 0.70},
    [COMPUTE_BOUND] = {"compute_bound", "roofline_model", "The matrix units are near their peak",
                       "Little is left but fewer or narrower flops.", 0.70},
    [LOW_USE] = {"low_utilization", "roofline_model",
                 "Neither matrix units nor HBM are used much while ops run",
                 "Look for small ops, wrong layouts, padding, and scalar work in op_profile.",
                 0.50},
};

/* --- facts --- */

static bool has(struct xp_span s, const char *part)
{
    return xp_span_has(s, xp_span_str(part));
}

static bool any_of(struct xp_span s, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (xp_span_eq(s, xp_span_str(words[i])))
            return true;
    return false;
}

static bool is_shuffle(const struct op_metrics *m)
{
    static const char *const words[] = {"data formatting", "copy", "transpose",  "reshape",
                                        "slice",           "pad",  "concatenate"};
    return any_of(m->category, words, sizeof words / sizeof *words);
}

/* Asynchronous: what the device spends in them is waiting for the rest of the copy. */
static bool is_copy(const struct op_metrics *m)
{
    static const char *const words[] = {"copy-start", "copy-done", "async-start", "async-done"};
    return any_of(m->category, words, sizeof words / sizeof *words);
}

static bool is_transfer(const struct op_metrics *m)
{
    return has(m->category, "host send") || has(m->category, "host recv") ||
           has(m->category, "outfeed");
}

static bool is_barrier(const struct op_metrics *m)
{
    return has(m->name, "barrier-cores");
}

static bool is_collective(const struct op_metrics *m)
{
    return figure_is_collective(m->category, m->name);
}

static bool is_custom_call(const struct op_metrics *m)
{
    return has(m->category, "custom-call");
}

static bool is_infeed(const struct op_metrics *m)
{
    return has(m->category, "infeed");
}

static bool is_sparse(const struct op_metrics *m)
{
    return m->core_type == OP_CORE_SPARSE || m->children_total_ps > 0;
}

/* --- findings --- */

static void say(struct finding *d, double share)
{
    d->share = share;
    d->state = share >= d->rule->threshold ? APPLIES : FINE;
}

static void unknown(struct finding *d, const char *reason)
{
    d->state = UNKNOWN;
    snprintf(d->evidence, sizeof d->evidence, "%s", reason);
}

/* The largest of them are evidence. */
static void name_ops(struct view *v, int rule, bool (*is)(const struct op_metrics *m))
{
    struct finding *d = &v->v[rule];
    double busy = v->f->window_ps ? (double)v->f->busy_ps / (double)v->f->window_ps : 0;
    for (uint32_t i = 0; i < v->nops && d->ntop < TOP && v->self_ps > 0; i++) {
        if (!is(v->ops[i]))
            continue;
        d->top_share[d->ntop] = busy * (double)v->ops[i]->self_ps / v->self_ps;
        d->top[d->ntop++] = v->ops[i];
    }
    if (!d->op && d->ntop)
        d->op = d->top[0];
}

/* A group of ops: their share, and the largest by name. */
static void from_ops(struct view *v, int rule, bool (*is)(const struct op_metrics *m))
{
    struct finding *d = &v->v[rule];
    double sum = 0, busy = v->f->window_ps ? (double)v->f->busy_ps / (double)v->f->window_ps : 0;
    int named = 0, n = 0;
    if (!v->self_ps || !busy) {
        unknown(d, "the profile has no ops of a device");
        return;
    }
    name_ops(v, rule, is);
    for (uint32_t i = 0; i < v->nops; i++) {
        const struct op_metrics *m = v->ops[i];
        if (!is(m))
            continue;
        sum += (double)m->self_ps;
        if (named++ < TOP && n < TEXT_MAX - 100)
            n += snprintf(d->evidence + n, sizeof d->evidence - (size_t)n, "%s%.*s %.1f %%",
                          n ? ", " : "", (int)(m->name.n < 70 ? m->name.n : 70),
                          (const char *)m->name.p, 100 * busy * (double)m->self_ps / v->self_ps);
    }
    if (named > TOP && n < TEXT_MAX - 30)
        snprintf(d->evidence + n, sizeof d->evidence - (size_t)n, ", %d more", named - TOP);
    say(d, busy * sum / v->self_ps);
}

double suggestion_share(const struct view *v, bool (*is)(const struct op_metrics *m))
{
    double sum = 0, busy = v->f->window_ps ? (double)v->f->busy_ps / (double)v->f->window_ps : 0;
    for (uint32_t i = 0; i < v->nops; i++)
        sum += is(v->ops[i]) ? (double)v->ops[i]->self_ps : 0;
    return v->self_ps > 0 ? busy * sum / v->self_ps : 0;
}

static void from_figure(struct view *v, int rule, const struct figure *f)
{
    struct finding *d = &v->v[rule];
    if (!f->known) {
        unknown(d, f->reason);
        return;
    }
    say(d, f->v);
    if (f->has_spread && f->max_host.n)
        snprintf(d->evidence, sizeof d->evidence, "most on %.*s: %.1f %%",
                 (int)(f->max_host.n < 100 ? f->max_host.n : 100), (const char *)f->max_host.p,
                 100 * f->max);
}

/* What cores wait for at barriers between ops is no busy time. */
static double barrier_share(const struct figures *f)
{
    return f->window_ps ? (double)f->barrier_ps / (double)f->window_ps : 0;
}

static void barriers(struct view *v)
{
    struct finding *d = &v->v[BARRIERS];
    from_ops(v, BARRIERS, is_barrier);
    if (d->state == UNKNOWN || !v->f->barrier_ps)
        return;
    say(d, d->share + barrier_share(v->f));
    snprintf(d->evidence, sizeof d->evidence, "%.1f %% between ops, mean over cores",
             100 * barrier_share(v->f));
}

/* Less what another rule explains. */
static void idle(struct view *v)
{
    const struct figures *f = v->f;
    double told = (f->input.known ? f->input.v : 0) + barrier_share(f);
    from_figure(v, IDLE, &f->idle);
    if (f->idle.known && !f->busy_ps)
        unknown(&v->v[IDLE], "no op ran on a device while it was watched: the capture has other "
                             "things only, such as counters, or fell into a pause");
    else if (f->idle.known)
        say(&v->v[IDLE], f->idle.v > told ? f->idle.v - told : 0);
}

static void straggler(struct view *v)
{
    const struct figures *f = v->f;
    struct finding *d = &v->v[STRAGGLER];
    if (!f->straggler.known) {
        unknown(d, f->straggler.reason);
        return;
    }
    say(d, f->straggler_text[0] ? f->straggler.v : 0);
    d->state = f->straggler_text[0] ? APPLIES : FINE;
    snprintf(d->evidence, sizeof d->evidence, "%s", f->straggler_text);
}

/* A custom call is an op, though nobody knows what is in it. */
static void loose(struct view *v)
{
    const struct figures *f = v->f;
    struct finding *d = &v->v[LOOSE];
    from_figure(v, LOOSE, &f->unattributed);
    if (d->state != UNKNOWN) /* the figure is of busy time */
        say(d, f->window_ps ? f->unattributed.v * (double)f->busy_ps / (double)f->window_ps : 0);
    if (d->state == APPLIES)
        name_ops(v, LOOSE, is_custom_call);
    if (!d->op)
        return;
    d->tool = "hlo_stats";
    snprintf(d->evidence, sizeof d->evidence, "the largest custom call is %.*s",
             (int)(d->op->name.n < 100 ? d->op->name.n : 100), (const char *)d->op->name.p);
}

/* More than there can be says that the counts, or the peak, are not right. */
static void from_peak(struct finding *d, const struct figure *f)
{
    if (f->known && f->v <= 1)
        say(d, f->v);
    else
        unknown(d, f->known ? "it is above 100 % of the peak: the profile's counts or the peak are "
                              "wrong (give it with --peak)"
                            : f->reason);
}

static void usage(struct view *v)
{
    const struct figures *f = v->f;
    struct finding *low = &v->v[LOW_USE];
    from_peak(&v->v[MEMORY_BOUND], &f->hbm);
    from_peak(&v->v[COMPUTE_BOUND], &f->mxu);
    if (!f->hbm.known || !f->mxu.known || !f->window_ps || !f->busy_ps) {
        unknown(low, f->hbm.known ? f->mxu.reason : f->hbm.reason);
        return;
    }
    double busy = (double)f->busy_ps / (double)f->window_ps;
    double best = (f->hbm.v > f->mxu.v ? f->hbm.v : f->mxu.v) / busy;
    low->share = busy * (best < 1 ? 1 - best : 0);
    low->state = best < low->rule->threshold ? APPLIES : FINE;
    snprintf(low->evidence, sizeof low->evidence,
             "while ops run: matrix units %.1f %%, HBM %.1f %% of their peaks",
             100 * f->mxu.v / busy, 100 * f->hbm.v / busy);
}

static void memory_near(struct view *v)
{
    struct finding *d = &v->v[MEMORY_NEAR];
    const struct run_memory *m = v->memory;
    if (!m->known || !(m->full > 0)) {
        unknown(d, m->known ? "no allocator says how much it may use" : MEMORY_NO_EVENTS);
        return;
    }
    say(d, m->full < 1 ? m->full : 1);
    snprintf(d->evidence, sizeof d->evidence, "%.2f of %.2f GiB of allocator %.*s on %.*s",
             (double)m->full_bytes / 0x1p30, (double)m->capacity / 0x1p30,
             (int)(m->allocator.n < 60 ? m->allocator.n : 60), (const char *)m->allocator.p,
             (int)(m->host.n < 100 ? m->host.n : 100), (const char *)m->host.p);
}

/* --- where --- */

static struct place place_of(const struct figure_host *h, const struct figure_core *c,
                             int64_t begin_ps, int64_t end_ps)
{
    return (struct place){h->name, c->name, begin_ps, figure_length(begin_ps, end_ps)};
}

/* The longest pause of all cores that is one for input, or for something else. */
static struct place longest_pause(const struct figures *f, bool input)
{
    struct place best = {0};
    for (uint32_t h = 0; h < f->nhosts; h++)
        for (uint32_t c = 0; c < f->hosts[h].ncores; c++) {
            const struct figure_core *core = &f->hosts[h].cores[c];
            for (uint32_t k = 0; k < core->npauses && core->kind != FIGURE_SPARSE_CORE; k++) {
                const struct figure_pause *p = &core->pauses[k];
                uint64_t ps = figure_length(p->begin_ps, p->end_ps);
                if (p->input == input && ps > best.duration_ps)
                    best = place_of(&f->hosts[h], core, p->begin_ps, p->end_ps);
            }
        }
    return best;
}

/* The step of a core of a host with the most of something, and how much that is. */
static void more_of(const struct figure_host *h, uint32_t core,
                    uint64_t (*amount)(const struct figure_step *s), struct place *best,
                    uint64_t *most)
{
    const struct figure_core *c = &h->cores[core];
    for (uint32_t k = 0; k < c->nsteps; k++) {
        const struct figure_step *s = &c->steps[k];
        if (!s->whole || amount(s) <= *most)
            continue;
        *most = amount(s);
        *best = place_of(h, c, s->begin_ps, s->end_ps);
    }
}

/* Of all cores; with none of it, nowhere. */
static struct place step_with_most(const struct figures *f,
                                   uint64_t (*amount)(const struct figure_step *s))
{
    struct place best = {0};
    uint64_t most = 0;
    for (uint32_t h = 0; h < f->nhosts; h++)
        for (uint32_t c = 0; c < f->hosts[h].ncores; c++)
            more_of(&f->hosts[h], c, amount, &best, &most);
    return best;
}

static uint64_t barrier_ps(const struct figure_step *s)
{
    return s->barrier_ps;
}
static uint64_t busy_ps(const struct figure_step *s)
{
    return s->busy_ps;
}
static uint64_t own_ps(const struct figure_step *s)
{
    uint64_t ps = figure_length(s->begin_ps, s->end_ps);
    return ps > s->wait_ps ? ps - s->wait_ps : 0;
}

/* Of the host or core that is named, though a step elsewhere may have taken longer once. */
static struct place step_of_straggler(const struct figures *f)
{
    struct place best = {0};
    uint64_t most = 0;
    if (!f->straggler_text[0])
        return step_with_most(f, own_ps);
    const struct figure_host *h = &f->hosts[f->straggler_host];
    for (uint32_t c = 0; c < h->ncores; c++)
        if (f->straggler_core == UINT32_MAX || f->straggler_core == c)
            more_of(h, c, own_ps, &best, &most);
    return best;
}

struct place suggestion_op_place(const struct view *v, const struct op_metrics *op)
{
    for (uint32_t h = 0; h < v->f->nhosts && op->first_plane.n; h++)
        if (v->f->hosts[h].index == op->host)
            return (struct place){v->f->hosts[h].name, op->first_plane, op->first_begin_ps,
                                  op->occurrences ? op->self_ps / op->occurrences : 0};
    return (struct place){0};
}

/* An op's own run, else what the rule is about. */
static struct place where(const struct view *v, int rule)
{
    const struct op_metrics *op = v->v[rule].op;
    if (rule == INPUT || rule == IDLE) {
        struct place pause = longest_pause(v->f, rule == INPUT);
        return pause.host.n || !op ? pause : suggestion_op_place(v, op);
    }
    if (rule == BARRIERS && v->f->barrier_ps)
        return step_with_most(v->f, barrier_ps);
    if (rule == STRAGGLER)
        return step_of_straggler(v->f);
    if (rule == MEMORY_BOUND || rule == COMPUTE_BOUND || rule == LOW_USE)
        return step_with_most(v->f, busy_ps);
    if (rule == MEMORY_NEAR && v->memory->full > 0)
        return (struct place){v->memory->host, {0}, v->memory->full_at_ps, 0};
    return op ? suggestion_op_place(v, op) : (struct place){0};
}

static bool gather(struct view *v, struct xp_arena *a)
{
    const struct op_db *db = &v->f->stats->device;
    v->ops = op_db_sorted(db, a);
    for (uint32_t i = 0; v->ops && i < db->n; i++) {
        if (op_is_idle(v->ops[i]) || !v->ops[i]->self_ps)
            continue;
        v->self_ps += (double)v->ops[i]->self_ps;
        v->ops[v->nops++] = v->ops[i];
    }
    return v->ops != NULL;
}

static void judge(struct view *v)
{
    for (int i = 0; i < RULES; i++)
        v->v[i].rule = &rules[i];
    from_figure(v, INPUT, &v->f->input);
    if (v->v[INPUT].state == APPLIES)
        name_ops(v, INPUT, is_infeed);
    idle(v);
    from_ops(v, COLLECTIVES, is_collective);
    barriers(v);
    straggler(v);
    from_ops(v, COPIES, is_copy);
    from_ops(v, SHUFFLE, is_shuffle);
    from_ops(v, TRANSFER, is_transfer);
    from_ops(v, REMAT, op_is_remat);
    loose(v);
    from_ops(v, SPARSE, is_sparse);
    memory_near(v);
    usage(v);
    for (int i = 0; i < RULES; i++) {
        v->applies += v->v[i].state == APPLIES;
        v->v[i].at = where(v, i);
    }
}

/* --- the report --- */

static const struct report_column columns[] = {
    {"rule", "Rule", "", REPORT_COL_TEXT, false, "id"},
    {"priority", "Priority", "", REPORT_COL_TEXT, false,
     "P0: 30 % of the time or more, P1: 10 %, P2: less; of memory: 95 %, 90 %"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, false,
     "of the devices' time: what could be won at most; of a peak for the rules about peaks"},
    {"finding", "Finding", "", REPORT_COL_TEXT, false, "what happens"},
    {"evidence", "Evidence", "", REPORT_COL_TEXT, false, "ops with their shares, hosts"},
    {"fix", "What helps", "", REPORT_COL_TEXT, false, ""},
    {"tool", "See", "", REPORT_COL_TEXT, false, "tool that shows it"},
    {"op", "Op", "", REPORT_COL_OP, false, "largest of the evidence"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, "of the op"},
    {"first_host", "Host", "", REPORT_COL_TEXT, false, "where it is seen best"},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, "where it is seen best"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false,
     "of the longest pause, the step with most of it, or a run of the op"},
    {"first_duration_ps", "Lasts", "ps", REPORT_COL_NUMBER, false, "that"},
    {"impact", "Impact", "ps", REPORT_COL_NUMBER, false,
     "share * mean step time: what a step would be shorter by at most"},
};

static const struct finding *nth(const struct view *v, uint64_t i, bool applies)
{
    for (int k = 0; k < RULES; k++)
        if ((v->v[k].state == APPLIES) == applies && i-- == 0)
            return &v->v[k];
    return &v->v[0];
}

bool suggestion_is_time(const struct view *v, const struct finding *d)
{
    ptrdiff_t rule = d - v->v;
    return rule < MEMORY_NEAR || rule == LOW_USE;
}

const char *suggestion_whole(const struct view *v, const struct finding *d)
{
    if (d == &v->v[LOW_USE])
        return "what devices could do is unused";
    return suggestion_is_time(v, d)  ? "the time"
           : d == &v->v[MEMORY_NEAR] ? "its capacity"
                                     : "the peak";
}

/* Being near a peak is no fault, but for memory, whose end is one of the program. */
const char *suggestion_priority(const struct view *v, const struct finding *d)
{
    ptrdiff_t rule = d - v->v;
    if (rule == MEMORY_NEAR)
        return d->share >= 0.95 ? "P0" : d->share >= 0.9 ? "P1" : "P2";
    if (d->share < 0.1 || !suggestion_is_time(v, d))
        return "P2";
    return d->share >= 0.3 ? "P0" : "P1";
}

double suggestion_impact_ps(const struct view *v, const struct finding *d)
{
    const struct figure *step = &v->f->step_time_mean;
    ptrdiff_t rule = d - v->v;
    /* Work that nobody explains, or that SparseCores do, is no time lost. */
    if (!step->known || !suggestion_is_time(v, d) || rule == LOOSE || rule == SPARSE)
        return 0;
    return step->v * (d->share < 1 ? d->share : 1);
}

static void finding_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct finding *d = nth(v, i, true);
    double impact = suggestion_impact_ps(v, d);
    c[0] = report_of_text(xp_span_str(d->rule->id));
    c[1] = report_of_text(xp_span_str(suggestion_priority(v, d)));
    c[2] = report_of_double(d->share);
    c[3] = report_of_text(xp_span_str(d->rule->what));
    c[4] = d->evidence[0] ? report_of_text(xp_span_str(d->evidence)) : report_none();
    c[5] = report_of_text(xp_span_str(d->rule->fix));
    c[6] = report_of_text(xp_span_str(d->tool ? d->tool : d->rule->tool));
    c[7] = d->op ? report_of_text(d->op->name) : report_none();
    c[8] = d->op && d->op->program ? report_of_id(d->op->program) : report_none();
    if (impact > 0 && impact < 9e18)
        c[13] = report_of_u64((uint64_t)(impact + 0.5));
    if (!d->at.host.n)
        return;
    c[9] = report_of_text(d->at.host);
    c[10] = d->at.plane.n ? report_of_text(d->at.plane) : report_none();
    c[11] = report_of_i64(d->at.begin_ps);
    c[12] = report_of_u64(d->at.duration_ps);
}

static const struct report_column quiet_columns[] = {
    {"rule", "Rule", "", REPORT_COL_TEXT, false, "id"},
    {"state", "State", "", REPORT_COL_TEXT, false, "fine, or unknown"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, false, "as measured"},
    {"threshold", "From", "fraction", REPORT_COL_NUMBER, false, "where it would apply"},
    {"reason", "Why", "", REPORT_COL_TEXT, false, "it is not known"},
};

static void quiet_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct finding *d = nth(ctx, i, false);
    c[0] = report_of_text(xp_span_str(d->rule->id));
    c[1] = report_of_text(xp_span_str(d->state == FINE ? "fine" : "unknown"));
    c[2] = d->state == FINE ? report_of_double(d->share) : report_none();
    c[3] = report_of_double(d->rule->threshold);
    c[4] = d->state == UNKNOWN ? report_of_text(xp_span_str(d->evidence)) : report_none();
}

static void verdict(struct report *r, const struct view *v)
{
    const struct finding *most = NULL;
    for (int i = 0; i < MEMORY_NEAR; i++)
        if (v->v[i].state == APPLIES && (!most || v->v[i].share > most->share))
            most = &v->v[i];
    for (int i = MEMORY_NEAR; i < RULES && !most; i++) /* what is left, not what is in the way */
        most = v->v[i].state == APPLIES ? &v->v[i] : NULL;
    if (most)
        report_verdict(r, "%s: %.1f %% of %s. %s", most->rule->what, 100 * most->share,
                       suggestion_whole(v, most), most->rule->fix);
    else if (v->f->window_ps)
        report_verdict(r, "No rule applies: nothing stands out.");
    else
        report_verdict(r, "No device was captured, so there is little to say about speed.");
}

enum xp_status report_suggestion_counts(struct report *r, const struct figures *f,
                                        const struct run_memory *memory, struct xp_error *err)
{
    static const char *const ids[] = {"findings_p0", "findings_p1", "findings_p2"};
    struct view *v = xp_arena_zalloc(r->a, sizeof *v);
    uint64_t counts[3] = {0};
    if (!v)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the report");
    v->f = f;
    v->memory = memory;
    if (!gather(v, r->a))
        return xp_fail(err, XP_BUSY, 0, "no memory left to sort ops");
    judge(v);
    for (int i = 0; i < RULES; i++)
        if (v->v[i].state == APPLIES)
            counts[suggestion_priority(v, &v->v[i])[1] - '0']++;
    bool judged = f->window_ps || v->applies; /* without a device most rules have no facts */
    for (int i = 0; i < 3; i++)
        if (judged)
            report_u64(r, ids[i], counts[i], NULL);
        else
            report_na(r, ids[i], "no device was captured, so there is little to say about speed");
    return XP_OK;
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct session s;
    struct run_facts t;
    struct run_memory memory;
    struct figures *f = xp_arena_alloc(r->a, sizeof *f);
    struct view *v = xp_arena_zalloc(r->a, sizeof *v);
    if (!f || !v)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the report");
    XP_TRY(run_facts_open(merged, &t, err));
    XP_TRY(run_facts_memory(t.memory, r->a, &memory, err));
    XP_TRY(session_open_report(t.session, args, r->a, &s, f, err));
    v->f = f;
    v->memory = &memory;
    if (!gather(v, r->a))
        return xp_fail(err, XP_BUSY, 0, "no memory left to sort ops");
    judge(v);
    verdict(r, v);
    suggestion_status(r, v);
    report_u64(r, "suggestions", v->applies, NULL);
    report_steps(r, f);
    report_usage(r, f);
    report_figure(r, "collective_fraction", &f->collective, false);
    if (memory.known)
        report_u64(r, "peak_memory", memory.peak_bytes > 0 ? (uint64_t)memory.peak_bytes : 0, NULL);
    else
        report_na(r, "peak_memory", "%s", MEMORY_NO_EVENTS);
    report_environment(r, f);
    report_table(r, &(struct report_rows){.id = "findings",
                                          .title = "Findings",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = v->applies,
                                          .row = finding_row,
                                          .ctx = v,
                                          .sort = "share",
                                          .descending = true});
    report_link(r, "findings", "finding");
    suggestion_evidence(r, v);
    report_table(r, &(struct report_rows){.id = "rules",
                                          .title = "Rules that do not apply",
                                          .columns = quiet_columns,
                                          .ncolumns = sizeof quiet_columns / sizeof *quiet_columns,
                                          .n = RULES - v->applies,
                                          .row = quiet_row,
                                          .ctx = v});
    report_remarks(r, f);
    return XP_OK;
}

const struct tool_report report_smart_suggestion = {
    .question = "What should be changed?",
    .map = run_facts_map,
    .merge = run_facts_merge,
    .write = write_report,
};
