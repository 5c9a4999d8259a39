#include "shard/tools/report_kernels.h"

#include <stdio.h>
#include <stdlib.h>

/* Reports of custom kernels: all of them, and the run that is looked into. */

static int print(struct xp_span s)
{
    return (int)(s.n < 120 ? s.n : 120);
}

/* --- all kernels --- */

struct calls {
    struct kernel_call *v;
    struct xp_span *host; /* of the first run */
    size_t n;
};

static bool same(const struct kernel_call *x, const struct kernel_call *y)
{
    return x->has_program == y->has_program && x->program == y->program && xp_span_eq(x->op, y->op);
}

static int by_name(const void *x, const void *y)
{
    const struct kernel_call *a = *(const struct kernel_call *const *)x,
                             *b = *(const struct kernel_call *const *)y;
    if (a->program != b->program)
        return a->program < b->program ? -1 : 1;
    int c = xp_span_cmp(a->op, b->op);
    return c ? c : (a > b) - (a < b);
}

static void take_text(struct xp_span *to, struct xp_span s)
{
    *to = to->n ? *to : s;
}

static void join(struct kernel_call *to, const struct kernel_call *k)
{
    if (k->runs) {
        to->least_ps = to->runs && to->least_ps < k->least_ps ? to->least_ps : k->least_ps;
        to->most_ps = to->runs && to->most_ps > k->most_ps ? to->most_ps : k->most_ps;
    }
    to->runs += k->runs;
    to->recorded += k->recorded;
    to->time_ps = kernel_sum(to->time_ps, k->time_ps);
    to->begun_ps = kernel_sum(to->begun_ps, k->begun_ps);
    to->best = kernel_worth(k->best) > kernel_worth(to->best) ? k->best : to->best;
    take_text(&to->target, k->target);
    take_text(&to->source, k->source);
    take_text(&to->stack, k->stack);
    take_text(&to->tf_op, k->tf_op);
}

/* Hosts run the same programs: one row for each kernel. */
static enum xp_status join_hosts(const struct kernel_view *v, struct calls *c, struct xp_error *err)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < v->n; i++)
        n += v->hosts[i].calls.n;
    const struct kernel_call **all = xp_arena_alloc(v->r->a, (n + 1) * sizeof *all);
    struct kernel_call *copy = xp_arena_alloc(v->r->a, (n + 1) * sizeof *copy);
    struct xp_span *host = xp_arena_alloc(v->r->a, (n + 1) * sizeof *host);
    c->v = xp_arena_alloc(v->r->a, (n + 1) * sizeof *c->v);
    c->host = xp_arena_alloc(v->r->a, (n + 1) * sizeof *c->host);
    c->n = 0;
    if (!all || !copy || !host || !c->v || !c->host)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the list of kernels");
    for (size_t i = 0; i < v->n; i++)
        for (uint32_t k = 0; k < v->hosts[i].calls.n; k++, at++) {
            copy[at] = v->hosts[i].calls.kernels[k];
            host[at] = v->hosts[i].name;
            all[at] = &copy[at];
        }
    qsort(all, n, sizeof *all, by_name);
    for (size_t i = 0; i < n; i++) {
        if (c->n && same(&c->v[c->n - 1], all[i])) {
            join(&c->v[c->n - 1], all[i]);
            continue;
        }
        c->host[c->n] = host[all[i] - copy];
        c->v[c->n++] = *all[i];
    }
    return XP_OK;
}

static const struct report_column call_columns[] = {
    {"op", "Kernel", "", REPORT_COL_OP, false, "the op that is a custom call"},
    {"time", "Time", "ps", REPORT_COL_NUMBER, true, "of all its runs, over all cores"},
    {"occurrences", "Runs", "count", REPORT_COL_NUMBER, true, "that begin in the profile"},
    {"mean_time", "Mean", "ps", REPORT_COL_NUMBER, false, "of its runs"},
    {"min_time", "Shortest", "ps", REPORT_COL_NUMBER, false, "of its runs"},
    {"max_time", "Longest", "ps", REPORT_COL_NUMBER, false, "of its runs"},
    {"recorded", "Runs told", "count", REPORT_COL_NUMBER, true,
     "runs of whose inside the profile says something"},
    {"inside", "What is told", "", REPORT_COL_TEXT, false,
     "of the run with the most: instructions, regions, trace points, schedule"},
    {"target", "Target", "", REPORT_COL_TEXT, false,
     "of the custom call: Pallas and Mosaic kernels are tpu_custom_call"},
    {"source", "Source", "", REPORT_COL_TEXT, false, "line that the kernel is called in"},
    {"tf_op", "Framework op", "", REPORT_COL_TEXT, false, "with its scopes"},
    {"program_id", "Program", "", REPORT_COL_NUMBER, false, "number of the program"},
    {"first_host", "Host", "", REPORT_COL_TEXT, false, "of a run, the first there"},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, "of that run"},
    {"first_begin_ps", "First begin", "ps", REPORT_COL_NUMBER, false, "of that run"},
    {"first_duration_ps", "First run", "ps", REPORT_COL_NUMBER, false, "time of that run"},
};

struct xp_span kernel_told_words(uint32_t has)
{
    if (has & KERNEL_HAS_INSTRUCTIONS)
        return has & KERNEL_HAS_REGIONS ? XP_SPAN_LIT("instructions, regions")
                                        : XP_SPAN_LIT("instructions");
    if (has & KERNEL_HAS_REGIONS)
        return has & KERNEL_HAS_POINTS ? XP_SPAN_LIT("regions, trace points")
                                       : XP_SPAN_LIT("regions");
    if (has & KERNEL_HAS_POINTS)
        return XP_SPAN_LIT("trace points");
    return has & KERNEL_HAS_SCHEDULE ? XP_SPAN_LIT("schedule") : (struct xp_span){0};
}

static void call_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct calls *calls = ctx;
    const struct kernel_call *k = &calls->v[i];
    c[0] = report_of_text(k->op);
    c[1] = report_of_i64(k->time_ps);
    c[2] = report_of_u64(k->runs);
    c[3] = k->runs ? report_of_i64(k->begun_ps / (int64_t)k->runs) : report_none();
    c[4] = k->runs ? report_of_i64(k->least_ps) : report_none();
    c[5] = k->runs ? report_of_i64(k->most_ps) : report_none();
    c[6] = report_of_u64(k->recorded);
    c[7] = report_text_or_none(kernel_told_words(k->best));
    c[8] = report_text_or_none(k->target);
    c[9] = report_text_or_none(k->source);
    c[10] = report_text_or_none(k->tf_op);
    c[11] = k->has_program ? report_of_id(k->program) : report_none();
    c[12] = report_of_text(calls->host[i]);
    c[13] = report_of_text(k->first_plane);
    c[14] = report_of_i64(k->first_ps);
    c[15] = report_of_i64(k->first_duration_ps);
}

static enum xp_status table_calls(struct kernel_view *v, struct xp_error *err)
{
    struct calls c;
    XP_TRY(join_hosts(v, &c, err));
    if (!c.n)
        return XP_OK;
    report_table(v->r, &(struct report_rows){.id = "calls",
                                             .title = "Custom kernels",
                                             .columns = call_columns,
                                             .ncolumns = sizeof call_columns / sizeof *call_columns,
                                             .n = c.n,
                                             .row = call_row,
                                             .ctx = &c,
                                             .sort = "time",
                                             .descending = true});
    report_link(v->r, "calls", "op");
    return XP_OK;
}

/* --- figures of the run --- */

static int64_t stalls_of(const struct kernel_detail *d)
{
    int64_t ps = 0;
    for (int c = CAUSE_DMA_IN; c <= CAUSE_WAIT; c++)
        ps += d->in.causes.ps[c];
    return ps;
}

static void figures_of_inside(struct kernel_view *v)
{
    const struct kernel_inside *k = &v->d->in;
    double took = (double)(k->end_ps - k->begin_ps);
    if (!(k->has & (KERNEL_HAS_INSTRUCTIONS | KERNEL_HAS_REGIONS)))
        report_na(v->r, "kernel_wait_fraction",
                  "%sthe profile has no instructions or regions of this run: " KERNEL_HOW,
                  v->where);
    else if (k->causes.ps[CAUSE_UNRECORDED] < k->end_ps - k->begin_ps)
        report_metric(
            v->r, "kernel_wait_fraction",
            report_ratio((double)stalls_of(v->d), took - (double)k->causes.ps[CAUSE_UNRECORDED]),
            NULL,
            k->finalize_waits ? "with ep_finalize, whose name does not say that it "
                                "waits (inferred)"
                              : NULL,
            NULL);
    else
        report_na(v->r, "kernel_wait_fraction",
                  "%swhat is recorded of this run takes no time: " KERNEL_HOW, v->where);
    report_metric(v->r, "kernel_recorded_fraction",
                  report_ratio(took - (double)k->causes.ps[CAUSE_UNRECORDED], took),
                  took > 0 ? NULL : "the run takes no time", NULL, NULL);
    if (k->has & KERNEL_HAS_INSTRUCTIONS) {
        report_u64(v->r, "kernel_instructions", k->instructions, NULL);
        if (k->bundles_cut)
            report_na(v->r, "kernel_bundles", "there are more than %zu instructions",
                      KERNEL_ISSUES_MAX);
        else
            report_u64(v->r, "kernel_bundles", k->bundles,
                       k->has_numbers ? NULL
                                      : "instructions that begin at one time are taken as one "
                                        "bundle (inferred)");
    } else {
        report_na(v->r, "kernel_instructions",
                  "%sthe profile has no instructions of this run: " KERNEL_HOW, v->where);
        report_na(v->r, "kernel_bundles",
                  "%sthe profile has no instructions of this run: " KERNEL_HOW, v->where);
    }
}

static void figures(struct kernel_view *v)
{
    char where[160];
    report_string(v->r, "kernel_name", v->call->op, NULL);
    if (v->call->has_program)
        report_metric(v->r, "kernel_program", report_of_id(v->call->program), NULL, NULL, NULL);
    else
        report_na(v->r, "kernel_program", "the op does not say of which program it is");
    snprintf(where, sizeof where, "run %llu of %llu on %.*s, %.*s",
             (unsigned long long)v->d->number, (unsigned long long)v->d->of, print(v->host->name),
             (const char *)v->host->name.p, (int)(v->d->plane.n < 30 ? v->d->plane.n : 30),
             (const char *)v->d->plane.p);
    report_metric(v->r, "kernel_run_time", report_of_i64(v->d->in.end_ps - v->d->in.begin_ps), NULL,
                  where, NULL);
    figures_of_inside(v);
    if (v->call->source.n)
        report_string(v->r, "kernel_source", v->call->source, NULL);
    else
        report_na(v->r, "kernel_source",
                  "the op carries no source: JAX adds it to the metadata of custom calls unless "
                  "tracebacks are switched off (jax_include_full_tracebacks_in_locations)");
}

static void say_most(struct kernel_view *v)
{
    const struct kernel_inside *k = &v->d->in;
    int most = CAUSE_WORK;
    double took = (double)(k->end_ps - k->begin_ps), told;
    told = took - (double)k->causes.ps[CAUSE_UNRECORDED];
    for (int c = CAUSE_WORK; c < CAUSE_UNRECORDED; c++)
        most = k->causes.ps[c] > k->causes.ps[most] ? c : most;
    if (took <= 0 || told <= 0)
        return;
    char label[64];
    snprintf(label, sizeof label, "%s", kernel_cause_texts[most].label);
    label[0] |= 0x20; /* it stands within a sentence */
    report_verdict(v->r, "%.1f %% of %s of %.*s: %s.", 100 * (double)k->causes.ps[most] / told,
                   told < 0.995 * took ? "what is recorded of the run" : "the run",
                   print(v->call->op), (const char *)v->call->op.p, label);
}

static void notes(struct kernel_view *v)
{
    const struct kernel_inside *k = &v->d->in;
    double took = (double)(k->end_ps - k->begin_ps);
    double told = took - (double)k->causes.ps[CAUSE_UNRECORDED];
    if (!v->d->fit)
        report_note(v->r, REPORT_INFO, "kernel_other",
                    "The op that was asked for is no custom kernel %s: this is the one "
                    "that took longest of those whose inside is told best.",
                    *v->where ? "of this range" : "of this run");
    else if (v->d->run_other)
        report_note(v->r, REPORT_INFO, "kernel_run_other",
                    "The run that was asked for is not %s: this is another of that kernel.",
                    *v->where ? "in this range" : "there");
    if (v->d->fit == 1)
        report_note(v->r, REPORT_INFO, "kernel_like",
                    "No kernel has the name that was asked for; this one has the same name but for "
                    "its number.");
    if (!k->has && v->call->recorded)
        report_note(v->r, REPORT_INFO, "kernel_inside_none",
                    "The profile says nothing of the inside of this run; of %llu of the kernel's "
                    "runs on that host it does.",
                    (unsigned long long)v->call->recorded);
    else if (!k->has)
        report_note(v->r, REPORT_INFO, "kernel_inside_none",
                    "%s profile says nothing of the inside of this kernel: %s.",
                    *v->where ? "In this range the" : "The", KERNEL_HOW);
    else if (k->has & (KERNEL_HAS_INSTRUCTIONS | KERNEL_HAS_REGIONS) && told < 0.9 * took)
        report_note(v->r, REPORT_WARNING, "kernel_cut",
                    "Only %.2g %% of the run is recorded; shares of units, regions and bundles are "
                    "of the whole run, charts are about the recorded part.",
                    100 * told / took);
    if (k->has & KERNEL_HAS_SCHEDULE)
        report_note(
            v->r, REPORT_INFO, "kernel_schedule",
            "Shares of the schedule are the compiler's: how full the bundles are that follow "
            "a trace point, not what the units did in that time.");
    if (k->units_cut)
        report_note(v->r, REPORT_WARNING, "kernel_units_cut", "%u more units are not shown.",
                    k->units_cut);
}

/* --- source --- */

struct frames {
    struct xp_span v[64], function[64];
    size_t n;
};

static const struct report_column stack_columns[] = {
    {"frame", "Frame", "", REPORT_COL_NUMBER, false, "the innermost first"},
    {"source", "Source", "", REPORT_COL_TEXT, false, "file:line"},
    {"function", "Function", "", REPORT_COL_TEXT, false, "as the stack names it"},
};

static void stack_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct frames *f = ctx;
    c[0] = report_of_u64(i + 1);
    c[1] = report_of_text(f->v[i]);
    c[2] = report_text_or_none(f->function[i]);
}

static bool is_number(struct xp_span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return s.n > 0;
}

/* "file:28:tiled_matmul" or "file:48:9", where the last is a column. */
static void split_frame(struct xp_span line, struct xp_span *source, struct xp_span *function)
{
    const uint8_t *colon = line.n ? memrchr(line.p, ':', line.n) : NULL;
    *source = line;
    *function = (struct xp_span){0};
    if (!colon)
        return;
    struct xp_span before = xp_span_of(line.p, (size_t)(colon - line.p)),
                   last = xp_span_of(colon + 1, (size_t)(line.p + line.n - colon - 1));
    const uint8_t *other = before.n ? memrchr(before.p, ':', before.n) : NULL;
    if (!other || !is_number(xp_span_of(other + 1, (size_t)(before.p + before.n - other - 1))))
        return;
    *source = before;
    if (!is_number(last))
        *function = last;
}

static void table_stack(struct kernel_view *v)
{
    struct frames f = {.n = 0};
    struct xp_span left = v->call->stack;
    while (left.n && f.n < sizeof f.v / sizeof *f.v) {
        const uint8_t *end = memchr(left.p, '\n', left.n);
        size_t n = end ? (size_t)(end - left.p) : left.n;
        if (n) {
            split_frame(xp_span_of(left.p, n), &f.v[f.n], &f.function[f.n]);
            f.n++;
        }
        left = xp_span_of(left.p + n + (end != NULL), left.n - n - (end != NULL));
    }
    if (f.n)
        report_table(v->r, &(struct report_rows){.id = "stack",
                                                 .title = "Where it is called",
                                                 .columns = stack_columns,
                                                 .ncolumns = 3,
                                                 .n = f.n,
                                                 .row = stack_row,
                                                 .ctx = &f,
                                                 .aside = true});
}

/* --- all of it --- */

static enum xp_status nothing_found(const struct kernel_view *v, const struct kernel_ask *ask,
                                    struct xp_error *err)
{
    bool any = false, tpu = false;
    for (size_t i = 0; i < v->n; i++) {
        any |= v->hosts[i].calls.n > 0;
        tpu |= v->hosts[i].calls.tpu;
    }
    if (any && (ask->kernel.n || ask->run || ask->host.n || ask->program.n))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "no host has that run of that kernel: the table calls lists the kernels");
    report_na(
        v->r, "kernel_name",
        tpu ? "%sno op of this run is a custom call: kernels are written with Pallas or Mosaic"
            : "%sthe run has no ops of a TPU: kernels of GPUs are in kernel_stats",
        tpu ? v->where : "");
    return XP_OK;
}

enum xp_status report_kernels(struct facts *facts, size_t n, const struct tool_args *args,
                              struct report *r, struct xp_error *err)
{
    struct kernel_host *hosts = xp_arena_zalloc(r->a, (n + 1) * sizeof *hosts);
    struct kernel_view v = {.r = r,
                            .hosts = hosts,
                            .n = n,
                            .where = args->range && args->range->cuts ? "in this range " : ""};
    struct kernel_ask ask;
    XP_TRY(kernel_ask_of(args, &ask, err));
    if (!hosts)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the kernels");
    for (size_t i = 0; i < n; i++)
        XP_TRY(kernel_facts_read(&facts[i], r->a, &hosts[i], err));
    v.host = kernel_facts_pick(hosts, n);
    if (!v.host)
        return nothing_found(&v, &ask, err);
    v.d = v.host->detail;
    v.call = &v.host->calls.kernels[v.d->kernel];
    say_most(&v);
    figures(&v);
    notes(&v);
    XP_TRY(table_calls(&v, err));
    report_kernel_series(&v);
    report_kernel_tables(&v);
    table_stack(&v);
    return XP_OK;
}
