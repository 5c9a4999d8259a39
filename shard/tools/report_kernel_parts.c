/* Charts and tables about one run of a custom kernel. */
#include <math.h>
#include <stdio.h>

#include "shard/tools/report_kernels.h"

static double took(const struct kernel_detail *d)
{
    return (double)(d->in.end_ps - d->in.begin_ps);
}

static double told(const struct kernel_detail *d)
{
    return took(d) - (double)d->in.causes.ps[CAUSE_UNRECORDED];
}

/* --- charts: x is the time since the run's begin --- */

struct chart {
    const struct kernel_inside *k;
    const struct kernel_unit *units;
    uint8_t causes[KERNEL_CAUSES];
    uint32_t n;
    const char *names[REPORT_NAMES_MAX];
};

static int64_t bin_ps(const struct kernel_inside *k, uint64_t i)
{
    return kernel_bin_begin(&k->bins, (uint32_t)i + 1) - kernel_bin_begin(&k->bins, (uint32_t)i);
}

static struct report_cell since_begin(const struct kernel_inside *k, uint64_t i)
{
    return report_of_i64(kernel_bin_begin(&k->bins, (uint32_t)i) - k->begin_ps);
}

static void unit_point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct chart *c = ctx;
    *x = since_begin(c->k, i);
    for (uint32_t u = 0; u < c->n; u++)
        y[u] = report_ratio((double)c->units[u].busy[i], (double)bin_ps(c->k, i));
}

static void schedule_point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct chart *c = ctx;
    *x = since_begin(c->k, i);
    for (uint32_t u = 0; u < c->n; u++)
        y[u] = report_ratio(c->units[u].fill[i], (double)c->units[u].told[i]);
}

static void bundle_point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct chart *c = ctx;
    uint64_t instructions = 0;
    *x = since_begin(c->k, i);
    for (uint32_t u = 0; u < c->k->nunits; u++)
        instructions += c->k->units[u].issued[i];
    y[0] = c->k->bundles_cut ? report_none() : report_of_u64(c->k->bundle_bins[i]);
    y[1] = report_of_u64(instructions);
}

static void cause_point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct chart *c = ctx;
    *x = since_begin(c->k, i);
    for (uint32_t k = 0; k < c->n; k++)
        y[k] = report_of_i64(c->k->causes.bins[i * KERNEL_CAUSES + c->causes[k]]);
}

static const char *zero_ended(struct xp_arena *a, struct xp_span s)
{
    char *p = xp_arena_alloc(a, s.n + 1);
    if (!p)
        return "";
    if (s.n)
        memcpy(p, s.p, s.n);
    p[s.n] = 0;
    return p;
}

static void series(struct kernel_view *v, struct chart *c, struct report_points p)
{
    if (!c->n || !c->k->bins.n)
        return;
    p.x_label = "time in the run";
    p.x_unit = "ps";
    p.names = c->names;
    p.nnames = c->n;
    p.n = c->k->bins.n;
    p.ctx = c;
    report_series(v->r, &p);
}

static void units_over_time(struct kernel_view *v, bool schedule)
{
    const struct kernel_inside *k = &v->d->in;
    struct chart c = {.k = k,
                      .units = schedule ? k->scheduled : k->units,
                      .n = schedule ? k->nscheduled : k->nunits};
    for (uint32_t u = 0; u < c.n; u++)
        c.names[u] = zero_ended(v->r->a, c.units[u].name);
    if (schedule)
        series(v, &c,
               (struct report_points){.id = "schedule_bins",
                                      .title = "Schedule over time: how full the bundles are",
                                      .y_label = "Full",
                                      .y_unit = "fraction",
                                      .kind = "heat",
                                      .point = schedule_point});
    else
        series(
            v, &c,
            (struct report_points){.id = "unit_bins",
                                   .title = "Units over time: share of the time that each issues",
                                   .y_label = "Busy",
                                   .y_unit = "fraction",
                                   .kind = "heat",
                                   .point = unit_point});
}

static void causes_over_time(struct kernel_view *v)
{
    struct chart c = {.k = &v->d->in};
    if (!(c.k->has & (KERNEL_HAS_INSTRUCTIONS | KERNEL_HAS_REGIONS)))
        return;
    for (int i = 0; i < KERNEL_CAUSES; i++) {
        int64_t any = 0;
        for (uint32_t b = 0; b < c.k->bins.n; b++)
            any |= c.k->causes.bins[(size_t)b * KERNEL_CAUSES + i];
        if (!any)
            continue;
        c.names[c.n] = kernel_cause_texts[i].label;
        c.causes[c.n++] = i;
    }
    series(v, &c,
           (struct report_points){.id = "cause_bins",
                                  .title = "Where the time goes",
                                  .y_label = "Time",
                                  .y_unit = "ps",
                                  .kind = "stack",
                                  .point = cause_point});
}

void report_kernel_series(struct kernel_view *v)
{
    struct chart bundles = {.k = &v->d->in, .n = 2, .names = {"bundles", "instructions"}};
    causes_over_time(v);
    units_over_time(v, false);
    if (v->d->in.has & KERNEL_HAS_INSTRUCTIONS)
        series(v, &bundles,
               (struct report_points){.id = "bundle_bins",
                                      .title = "Bundles over time",
                                      .y_label = "Issued",
                                      .y_unit = "count",
                                      .kind = "line",
                                      .point = bundle_point});
    units_over_time(v, true);
}

/* --- causes --- */

static const struct report_column stall_columns[] = {
    {"cause", "What it does", "", REPORT_COL_TEXT, false, "each moment of the run has one"},
    {"time", "Time", "ps", REPORT_COL_NUMBER, true, "of the run"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "time / the run"},
    {"recorded_share", "Of what is recorded", "fraction", REPORT_COL_NUMBER, false,
     "time / what is recorded of the run"},
    {"stall", "Stall", "", REPORT_COL_BOOL, false, "no unit computes"},
    {"from", "Told by", "", REPORT_COL_TEXT, false, "lines of the profile"},
    {"definition", "Definition", "", REPORT_COL_TEXT, false,
     "the first that fits, from the top down"},
    {"reason", "Why it is n/a", "", REPORT_COL_TEXT, false, "and how to capture it"},
    {"id", "Id", "", REPORT_COL_TEXT, false, "for programs"},
};

#define BOTH (KERNEL_HAS_INSTRUCTIONS | KERNEL_HAS_REGIONS)

/* Any of these lines tells it. */
static uint32_t told_by(int cause)
{
    switch (cause) {
    case CAUSE_DMA_IN:
    case CAUSE_DMA_OUT:
    case CAUSE_WAIT:
    case CAUSE_REGION:
        return KERNEL_HAS_REGIONS;
    case CAUSE_DMA:
    case CAUSE_SYNC:
        return BOTH;
    case CAUSE_UNRECORDED:
        return 0;
    default:
        return KERNEL_HAS_INSTRUCTIONS;
    }
}

static const char *why_not(const struct kernel_inside *k, int cause)
{
    uint32_t by = told_by(cause);
    if (cause == CAUSE_SPILL && k->has & KERNEL_HAS_INSTRUCTIONS && !k->has_details)
        return "instructions carry no text (details) that says which of them spill";
    if (!by || k->has & by)
        return NULL;
    if (by == KERNEL_HAS_REGIONS)
        return "the run has no regions (Pallas Primitives, XLA TraceMe): " KERNEL_HOW;
    return by == BOTH ? "the run has neither instructions nor regions: " KERNEL_HOW
                      : "the run has no lines of instructions: " KERNEL_HOW;
}

static const char *from_words(const struct kernel_inside *k, int cause)
{
    uint32_t by = told_by(cause) & k->has;
    if (cause == CAUSE_DMA_OUT && k->finalize_waits)
        return "regions; that ep_finalize waits is inferred";
    if (by == BOTH)
        return "instructions, regions";
    if (cause == CAUSE_UNRECORDED)
        return "what is left";
    return by & KERNEL_HAS_INSTRUCTIONS ? "instructions" : "regions";
}

static struct report_cell reason_cell(const struct kernel_view *v, const char *reason)
{
    size_t n = strlen(v->where) + strlen(reason) + 1;
    char *p = xp_arena_alloc(v->r->a, n);
    if (!p)
        return report_none();
    snprintf(p, n, "%s%s", v->where, reason);
    return report_of_text(xp_span_str(p));
}

static void stall_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct kernel_view *v = ctx;
    const struct kernel_detail *d = v->d;
    const struct kernel_cause_text *t = &kernel_cause_texts[i];
    const char *reason = why_not(&d->in, (int)i);
    double ps = (double)d->in.causes.ps[i];
    c[0] = report_of_text(xp_span_str(t->label));
    c[1] = reason ? report_none() : report_of_i64(d->in.causes.ps[i]);
    c[2] = reason ? report_none() : report_ratio(ps, took(d));
    c[3] = reason || i == CAUSE_UNRECORDED ? report_none() : report_ratio(ps, told(d));
    c[4] = report_of_bool(t->stall);
    c[5] = reason ? report_none() : report_of_text(xp_span_str(from_words(&d->in, (int)i)));
    c[6] = report_of_text(xp_span_str(t->definition));
    c[7] = reason ? reason_cell(v, reason) : report_none();
    c[8] = report_of_text(xp_span_str(t->id));
}

/* --- units --- */

static const struct report_column unit_columns[] = {
    {"unit", "Unit", "", REPORT_COL_TEXT, false, "of the core"},
    {"busy", "Busy", "ps", REPORT_COL_NUMBER, false,
     "time that it issues; slots at once count once"},
    {"share", "Of the run", "fraction", REPORT_COL_NUMBER, false, "busy / the run"},
    {"recorded_share", "Of the record", "fraction", REPORT_COL_NUMBER, false,
     "busy / time from the first to the last instruction of any unit"},
    {"instructions", "Instructions", "count", REPORT_COL_NUMBER, true, "that begin in the run"},
    {"a_bundle", "A bundle", "", REPORT_COL_NUMBER, false, "instructions / bundles"},
    {"schedule", "Schedule", "fraction", REPORT_COL_NUMBER, false,
     "how full the bundles are that the run came by, mean over the time for which it is told"},
};

struct unit_ctx {
    const struct kernel_detail *d;
    uint32_t n;
    struct {
        const struct kernel_unit *issued, *scheduled;
    } v[2 * KERNEL_UNITS];
};

/* Names of the schedule are other than those of the lines. */
static bool is_unit(struct xp_span line, struct xp_span scheduled)
{
    static const char *const names[][2] = {
        {"SALU", "Scalar ALU"}, {"VALU", "Vector ALU"},  {"EUP", "Vector EUP"},
        {"VLD", "Vector Load"}, {"VST", "Vector Store"}, {"XLU", "XLU"},
        {"MXU", "MXU"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (xp_span_eq(line, xp_span_str(names[i][0])))
            return xp_span_eq(scheduled, xp_span_str(names[i][1]));
    return false;
}

static void list_units(struct unit_ctx *u)
{
    const struct kernel_inside *k = &u->d->in;
    bool used[KERNEL_UNITS] = {false};
    for (uint32_t i = 0; i < k->nunits; i++) {
        u->v[u->n].issued = &k->units[i];
        for (uint32_t s = 0; s < k->nscheduled; s++)
            if (is_unit(k->units[i].name, k->scheduled[s].name)) {
                u->v[u->n].scheduled = &k->scheduled[s];
                used[s] = true;
            }
        u->n++;
    }
    for (uint32_t s = 0; s < k->nscheduled; s++)
        if (!used[s])
            u->v[u->n++].scheduled = &k->scheduled[s];
}

static void unit_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct unit_ctx *u = ctx;
    const struct kernel_inside *k = &u->d->in;
    const struct kernel_unit *x = u->v[i].issued, *s = u->v[i].scheduled;
    c[0] = report_of_text(x ? x->name : s->name);
    for (int n = 1; n < 7; n++)
        c[n] = report_none();
    if (x) {
        c[1] = report_of_i64(x->busy_ps);
        c[2] = report_ratio((double)x->busy_ps, took(u->d));
        c[3] = report_ratio((double)x->busy_ps, (double)(k->recorded_ps - k->record_ps));
        c[4] = report_of_u64(x->instructions);
        if (!k->bundles_cut)
            c[5] = report_ratio((double)x->instructions, (double)k->bundles);
    }
    if (s)
        c[6] = report_ratio(s->fill_ps, (double)s->told_ps);
}

/* --- regions --- */

struct rows_ctx {
    struct kernel_view *v;
    const struct kernel_rows *rows;
    struct xp_span *names; /* of regions: with those around */
    uint32_t *order;
    uint32_t n;
};

static const struct report_column region_columns[] = {
    {"region", "Region", "", REPORT_COL_TEXT, false, "with those around it"},
    {"time", "Time", "ps", REPORT_COL_NUMBER, false, "with the regions inside it"},
    {"own_time", "Own time", "ps", REPORT_COL_NUMBER, false,
     "without the regions inside it; primitives that run at once overlap"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, false, "time / the run"},
    {"count", "Times", "count", REPORT_COL_NUMBER, true, "that it begins in the run"},
    {"mean_time", "Mean", "ps", REPORT_COL_NUMBER, false, "time / times"},
    {"longest", "Longest", "ps", REPORT_COL_NUMBER, false, "of these"},
    {"waits", "Waits for", "", REPORT_COL_TEXT, false, "as its name says; empty: it does not wait"},
    {"source", "Source", "", REPORT_COL_TEXT, false,
     "line of most instructions of that primitive; n/a: no instruction tells one"},
    {"line", "Line", "", REPORT_COL_TEXT, false, "of the timeline"},
    {"name", "Name", "", REPORT_COL_TEXT, false, "of its events"},
    {"first_begin_ps", "First begin", "ps", REPORT_COL_NUMBER, false, ""},
    {"first_host", "Host", "", REPORT_COL_TEXT, false, ""},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, ""},
};

static struct report_cell waits_for(struct xp_span name)
{
    bool inferred;
    switch (kernel_region_kind(name, &inferred)) {
    case KERNEL_IN_DMA_IN:
        return report_of_text(XP_SPAN_LIT("input copies"));
    case KERNEL_IN_DMA_OUT:
        return report_of_text(inferred ? XP_SPAN_LIT("output copies (inferred)")
                                       : XP_SPAN_LIT("output copies"));
    case KERNEL_IN_DMA:
        return report_of_text(XP_SPAN_LIT("a DMA"));
    case KERNEL_IN_SYNC:
        return report_of_text(XP_SPAN_LIT("a semaphore or flag"));
    case KERNEL_IN_WAIT:
        return report_of_text(XP_SPAN_LIT("not told"));
    default:
        return report_none();
    }
}

static void region_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct rows_ctx *x = ctx;
    const struct kernel_row *r = &x->rows->v[i];
    c[0] = report_of_text(x->names[i]);
    c[1] = report_of_i64(r->time_ps);
    c[2] = report_of_i64(r->self_ps);
    c[3] = report_ratio((double)r->time_ps, took(x->v->d));
    c[4] = report_of_u64(r->count);
    c[5] = r->count ? report_of_i64(r->time_ps / (int64_t)r->count) : report_none();
    c[6] = report_of_i64(r->longest_ps);
    c[7] = waits_for(r->text[1]);
    c[8] = report_text_or_none(r->source);
    c[9] = report_of_text(r->text[2]);
    c[10] = report_of_text(r->text[1]);
    c[11] = report_of_i64(r->first_ps);
    c[12] = report_of_text(x->v->host->name);
    c[13] = report_of_text(x->v->d->plane);
}

#define PATH_MAX_BYTES 400

/* Names with those around them: "ep_run_kernel > init". */
static bool name_regions(struct rows_ctx *x)
{
    struct xp_arena *a = x->v->r->a;
    x->names = xp_arena_alloc(a, (x->rows->n + 1) * sizeof *x->names);
    for (size_t i = 0; x->names && i < x->rows->n; i++) {
        const struct kernel_row *r = &x->rows->v[i];
        struct xp_span outer = r->parent ? x->names[r->parent - 1] : (struct xp_span){0};
        x->names[i] = r->text[1];
        if (!outer.n || !r->text[1].n || outer.n + r->text[1].n > PATH_MAX_BYTES)
            continue;
        uint8_t *p = xp_arena_alloc(a, outer.n + 3 + r->text[1].n);
        if (!p)
            return false;
        memcpy(p, outer.p, outer.n);
        memcpy(p + outer.n, " > ", 3);
        memcpy(p + outer.n + 3, r->text[1].p, r->text[1].n);
        x->names[i] = xp_span_of(p, outer.n + 3 + r->text[1].n);
    }
    return x->names != NULL;
}

/* --- the tree of regions: of one line, since lines tell the same time twice --- */

static const struct report_column tree_columns[] = {
    {"time", "Time", "ps", REPORT_COL_NUMBER, false, "with what is inside"},
    {"own_time", "Own time", "ps", REPORT_COL_NUMBER, false, "without what is inside"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, false, "time / the run"},
    {"count", "Times", "count", REPORT_COL_NUMBER, false, "that it begins in the run"},
    {"op", "Op", "", REPORT_COL_OP, false, "the kernel"},
    {"program_id", "Program", "", REPORT_COL_NUMBER, false, "of the kernel"},
    {"first_begin_ps", "First begin", "ps", REPORT_COL_NUMBER, false, ""},
    {"mean_time", "Mean", "ps", REPORT_COL_NUMBER, false, "time / times"},
    {"first_host", "Host", "", REPORT_COL_TEXT, false, ""},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, ""},
};

static void tree_node(void *ctx, uint64_t i, int64_t *parent, struct xp_span *name,
                      struct report_cell *c)
{
    const struct rows_ctx *x = ctx;
    const struct kernel_view *v = x->v;
    const struct kernel_row *r = i ? &x->rows->v[x->order[i - 1]] : NULL;
    int64_t all = v->d->in.end_ps - v->d->in.begin_ps;
    *parent = -1;
    *name = r ? r->text[1] : v->call->op;
    for (uint32_t k = 1; r && k < i && *parent < 0; k++)
        if (r->parent && x->order[k - 1] == r->parent - 1)
            *parent = k;
    if (r && *parent < 0)
        *parent = 0;
    c[0] = report_of_i64(r ? r->time_ps : all);
    c[1] = r ? report_of_i64(r->self_ps) : report_none();
    c[2] = report_ratio(r ? (double)r->time_ps : (double)all, (double)all);
    c[3] = report_of_u64(r ? r->count : 1);
    c[4] = r ? report_none() : report_of_text(v->call->op);
    c[5] = r || !v->call->has_program ? report_none() : report_of_id(v->call->program);
    c[6] = report_of_i64(r ? r->first_ps : v->d->in.begin_ps);
    c[7] = !r         ? report_of_i64(all)
           : r->count ? report_of_i64(r->time_ps / (int64_t)r->count)
                      : report_none();
    c[8] = report_of_text(v->host->name);
    c[9] = report_of_text(v->d->plane);
}

#define TREE_MAX 400 /* parents are looked for among the nodes */

static void tree_regions(struct rows_ctx *x)
{
    struct xp_span line = {0};
    int64_t most = -1;
    for (size_t i = 0; i < x->rows->n; i++) {
        int64_t sum = 0;
        for (size_t k = 0; !x->rows->v[i].parent && k < x->rows->n; k++)
            if (!x->rows->v[k].parent && xp_span_eq(x->rows->v[k].text[2], x->rows->v[i].text[2]))
                sum = kernel_sum(sum, x->rows->v[k].time_ps);
        if (sum > most) {
            most = sum;
            line = x->rows->v[i].text[2];
        }
    }
    x->order = xp_arena_alloc(x->v->r->a, TREE_MAX * sizeof *x->order);
    for (size_t i = 0; x->order && i < x->rows->n && x->n < TREE_MAX; i++)
        if (xp_span_eq(x->rows->v[i].text[2], line))
            x->order[x->n++] = (uint32_t)i;
    if (x->n)
        report_tree(x->v->r,
                    &(struct report_nodes){.id = "regions",
                                           .columns = tree_columns,
                                           .ncolumns = sizeof tree_columns / sizeof *tree_columns,
                                           .n = x->n + 1,
                                           .weight = 1,
                                           .node = tree_node,
                                           .ctx = x});
}

/* --- bundles, and code between trace points --- */

static const struct report_column bundle_columns[] = {
    {"bundle", "Bundle", "", REPORT_COL_NUMBER, false, "its number in the program"},
    {"time", "Time", "ps", REPORT_COL_NUMBER, true,
     "from its begin to the next bundle's: what it waited is in it"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "time / the run"},
    {"runs", "Times", "count", REPORT_COL_NUMBER, true, "that it was issued"},
    {"mean_time", "Mean", "ps", REPORT_COL_NUMBER, false, "time / times"},
    {"instructions", "Instructions", "", REPORT_COL_NUMBER, false, "of it that are recorded, mean"},
    {"opcodes", "Opcodes", "", REPORT_COL_TEXT, false, "when it was issued first"},
    {"source", "Source", "", REPORT_COL_TEXT, false, "of an instruction that tells one"},
    {"first_begin_ps", "First begin", "ps", REPORT_COL_NUMBER, false, ""},
    {"first_host", "Host", "", REPORT_COL_TEXT, false, ""},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, ""},
};

static void bundle_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct kernel_view *v = ctx;
    const struct kernel_bundle *b = &v->d->in.bundle[i];
    c[0] = report_of_u64(b->number);
    c[1] = report_of_i64(b->time_ps);
    c[2] = report_ratio((double)b->time_ps, took(v->d));
    c[3] = report_of_u64(b->runs);
    c[4] = b->runs ? report_of_i64(b->time_ps / (int64_t)b->runs) : report_none();
    c[5] = report_ratio((double)b->instructions, (double)b->runs);
    c[6] = report_text_or_none(b->opcodes);
    c[7] = report_text_or_none(v->d->bundle_source[i]);
    c[8] = report_of_i64(b->first_ps);
    c[9] = report_of_text(v->host->name);
    c[10] = report_of_text(v->d->plane);
}

static const struct report_column code_columns[] = {
    {"from", "From", "", REPORT_COL_TEXT, false, "program counter of the trace point it came by"},
    {"to", "To", "", REPORT_COL_TEXT, false, "of the next"},
    {"time", "Time", "ps", REPORT_COL_NUMBER, true, "from the one to the other"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "time / the run"},
    {"runs", "Times", "count", REPORT_COL_NUMBER, true, ""},
    {"mean_time", "Mean", "ps", REPORT_COL_NUMBER, false, "time / times"},
    {"longest", "Longest", "ps", REPORT_COL_NUMBER, false, ""},
    {"first_begin_ps", "First begin", "ps", REPORT_COL_NUMBER, false, ""},
    {"first_host", "Host", "", REPORT_COL_TEXT, false, ""},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, ""},
};

static void code_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct kernel_view *v = ctx;
    const struct kernel_row *r = &v->d->codes.v[i];
    c[0] = report_of_text(r->text[0]);
    c[1] = report_of_text(r->text[1]);
    c[2] = report_of_i64(r->time_ps);
    c[3] = report_ratio((double)r->time_ps, took(v->d));
    c[4] = report_of_u64(r->count);
    c[5] = r->count ? report_of_i64(r->time_ps / (int64_t)r->count) : report_none();
    c[6] = report_of_i64(r->longest_ps);
    c[7] = report_of_i64(r->first_ps);
    c[8] = report_of_text(v->host->name);
    c[9] = report_of_text(v->d->plane);
}

/* --- instructions and their source --- */

static const struct report_column opcode_columns[] = {
    {"unit", "Unit", "", REPORT_COL_TEXT, false, "that it runs on"},
    {"opcode", "Instruction", "", REPORT_COL_TEXT, false, ""},
    {"count", "Count", "count", REPORT_COL_NUMBER, true, "that begin in the run"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "count / all instructions"},
    {"unit_time", "Unit time", "ps", REPORT_COL_NUMBER, true,
     "their durations added up, those at once too"},
};

static void opcode_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct kernel_detail *d = ((struct kernel_view *)ctx)->d;
    const struct kernel_row *r = &d->opcodes.v[i];
    c[0] = report_of_text(r->text[0]);
    c[1] = report_of_text(r->text[1]);
    c[2] = report_of_u64(r->count);
    c[3] = report_ratio((double)r->count, (double)d->in.instructions);
    c[4] = report_of_i64(r->time_ps);
}

static const struct report_column source_columns[] = {
    {"source", "Source", "", REPORT_COL_TEXT, false, "as instructions tell it; n/a: they do not"},
    {"primitive", "Primitive", "", REPORT_COL_TEXT, false, "of Pallas, that they come from"},
    {"scopes", "Scopes", "", REPORT_COL_TEXT, false, "named by the program, from outside in"},
    {"count", "Instructions", "count", REPORT_COL_NUMBER, true, "that begin in the run"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "instructions / all instructions"},
    {"unit_time", "Unit time", "ps", REPORT_COL_NUMBER, true,
     "durations of the instructions added up, those at once too"},
};

/* ["a", "b"]: a > b. Anything else stays what it is. */
static struct xp_span scopes_text(struct xp_arena *a, struct xp_span s)
{
    uint8_t *p =
        s.n >= 2 && s.p[0] == '[' && s.p[s.n - 1] == ']' ? xp_arena_alloc(a, 2 * s.n) : NULL;
    size_t n = 0;
    bool in = false;
    if (!p)
        return s;
    for (size_t i = 1; i + 1 < s.n; i++) {
        if (s.p[i] == '"') {
            in = !in;
        } else if (in) {
            i += s.p[i] == '\\' && i + 2 < s.n;
            p[n++] = s.p[i];
        } else if (s.p[i] == ',') {
            memcpy(p + n, " > ", 3);
            n += 3;
        }
    }
    return xp_span_of(p, n);
}

static void source_row(void *ctx, uint64_t i, struct report_cell *c)
{
    struct kernel_view *v = ctx;
    const struct kernel_row *r = &v->d->sources.v[i];
    c[0] = report_text_or_none(r->text[0]);
    c[1] = report_text_or_none(r->text[1]);
    c[2] = report_text_or_none(scopes_text(v->r->a, r->text[2]));
    c[3] = report_of_u64(r->count);
    c[4] = report_ratio((double)r->count, (double)v->d->in.instructions);
    c[5] = report_of_i64(r->time_ps);
}

/* How many instructions tell their line. */
static void source_share(struct kernel_view *v)
{
    uint64_t with = v->d->in.sourced, all = v->d->in.instructions;
    if (!(v->d->in.has & KERNEL_HAS_INSTRUCTIONS)) {
        report_na(v->r, "kernel_sourced_fraction",
                  "%sthe profile has no instructions of this run, and trace points tell no "
                  "source: " KERNEL_HOW,
                  v->where);
        return;
    }
    if (with || !all)
        report_metric(v->r, "kernel_sourced_fraction", report_ratio((double)with, (double)all),
                      all ? NULL : "no instruction begins in this run", NULL, NULL);
    else
        report_na(v->r, "kernel_sourced_fraction",
                  "%sno instruction tells its source (source_info): " KERNEL_HOW, v->where);
}

/* --- runs and lines --- */

static const struct report_column run_columns[] = {
    {"occurrence", "Run", "", REPORT_COL_NUMBER, false, "of the kernel on its host, by begin"},
    {"duration_ps", "Time", "ps", REPORT_COL_NUMBER, false, "of the run, cut to the range"},
    {"inside", "What is told", "", REPORT_COL_TEXT, false, "of its inside"},
    {"shown", "Shown", "", REPORT_COL_BOOL, false, "this page is about it"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, "from the session's start"},
    {"first_host", "Host", "", REPORT_COL_TEXT, false, ""},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, ""},
};

static struct xp_span kind_words(uint32_t has)
{
    if (has & KERNEL_HAS_INSTRUCTIONS)
        return XP_SPAN_LIT("instructions");
    if (has & KERNEL_HAS_REGIONS)
        return XP_SPAN_LIT("regions");
    if (has & KERNEL_HAS_POINTS)
        return XP_SPAN_LIT("trace points");
    if (has & KERNEL_HAS_SCHEDULE)
        return XP_SPAN_LIT("schedule");
    return has & KERNEL_HAS_FLAGS ? XP_SPAN_LIT("sync flags") : (struct xp_span){0};
}

static void run_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct kernel_view *v = ctx;
    const struct kernel_run_told *r = &v->d->runs[i];
    c[0] = report_of_u64(i + 1);
    c[1] = report_of_i64(r->end_ps - r->begin_ps);
    c[2] = report_text_or_none(kernel_told_words(r->has));
    c[3] = report_of_bool(i + 1 == v->d->number);
    c[4] = report_of_i64(r->begin_ps);
    c[5] = report_of_text(v->host->name);
    c[6] = report_of_text(r->plane);
}

static const struct report_column line_columns[] = {
    {"line", "Line", "", REPORT_COL_TEXT, false, "of the timeline"},
    {"kind", "What it tells", "", REPORT_COL_TEXT, false, ""},
    {"events", "Events", "count", REPORT_COL_NUMBER, true, "that begin in the run"},
    {"share", "Extent", "fraction", REPORT_COL_NUMBER, false,
     "from the first begin to the last end / the run"},
    {"first_begin_ps", "First begin", "ps", REPORT_COL_NUMBER, false, ""},
    {"duration_ps", "Time", "ps", REPORT_COL_NUMBER, false, "from the first begin to the last end"},
    {"first_host", "Host", "", REPORT_COL_TEXT, false, ""},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, ""},
};

static void line_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct kernel_view *v = ctx;
    const struct kernel_line *l = &v->d->in.lines[i];
    c[0] = report_of_text(l->name);
    c[1] = report_text_or_none(kind_words(l->kind));
    c[2] = report_of_u64(l->events);
    c[3] = report_ratio((double)(l->last_ps - l->first_ps), took(v->d));
    c[4] = report_of_i64(l->first_ps);
    c[5] = report_of_i64(l->last_ps - l->first_ps);
    c[6] = report_of_text(v->host->name);
    c[7] = report_of_text(v->d->plane);
}

/* --- all tables --- */

#define COLUMNS(c) .columns = c, .ncolumns = sizeof c / sizeof *c

static void put(struct kernel_view *v, struct report_rows t, void *ctx)
{
    t.ctx = ctx;
    if (t.n)
        report_table(v->r, &t);
}

static const char *cut_note(struct kernel_view *v, size_t n, uint64_t total)
{
    char *p = total > n ? xp_arena_alloc(v->r->a, 80) : NULL;
    if (p)
        snprintf(p, 80, "%zu of %llu are here, those with the most time", n,
                 (unsigned long long)total);
    return p;
}

static void region_tables(struct kernel_view *v)
{
    struct rows_ctx x = {.v = v, .rows = &v->d->regions};
    if (!x.rows->n || !name_regions(&x))
        return;
    put(v,
        (struct report_rows){.id = "regions",
                             .title = "Regions",
                             COLUMNS(region_columns),
                             .note = x.rows->total > x.rows->n ? "the first that were met" : NULL,
                             .n = x.rows->n,
                             .row = region_row,
                             .sort = "time",
                             .descending = true},
        &x);
    tree_regions(&x);
}

void report_kernel_tables(struct kernel_view *v)
{
    struct kernel_detail *d = v->host->detail;
    struct unit_ctx units = {.d = d};
    list_units(&units);
    source_share(v);
    put(v,
        (struct report_rows){.id = "stalls",
                             .title = "What the run does",
                             COLUMNS(stall_columns),
                             .n = KERNEL_CAUSES,
                             .row = stall_row,
                             .aside = true},
        v);
    put(v,
        (struct report_rows){.id = "unit_times",
                             .title = "Units",
                             COLUMNS(unit_columns),
                             .n = units.n,
                             .row = unit_row,
                             .aside = true},
        &units);
    region_tables(v);
    put(v,
        (struct report_rows){.id = "sources",
                             .title = "Instructions by source",
                             .note = cut_note(v, d->sources.n, d->sources.total),
                             COLUMNS(source_columns),
                             .n = d->sources.n,
                             .row = source_row,
                             .sort = "count",
                             .descending = true},
        v);
    put(v,
        (struct report_rows){.id = "bundles",
                             .title = "Bundles",
                             .note = cut_note(v, d->in.nbundle, d->in.bundle_numbers),
                             COLUMNS(bundle_columns),
                             .n = d->in.nbundle,
                             .row = bundle_row,
                             .sort = "time",
                             .descending = true},
        v);
    put(v,
        (struct report_rows){.id = "code",
                             .title = "Code between trace points",
                             .note = cut_note(v, d->codes.n, d->codes.total),
                             COLUMNS(code_columns),
                             .n = d->codes.n,
                             .row = code_row,
                             .sort = "time",
                             .descending = true},
        v);
    put(v,
        (struct report_rows){.id = "opcodes",
                             .title = "Instructions",
                             .note = cut_note(v, d->opcodes.n, d->opcodes.total),
                             COLUMNS(opcode_columns),
                             .n = d->opcodes.n,
                             .row = opcode_row,
                             .sort = "count",
                             .descending = true},
        v);
    put(v,
        (struct report_rows){.id = "runs",
                             .title = "Runs of the kernel",
                             .note = d->of > d->nruns ? "the first thousand" : NULL,
                             COLUMNS(run_columns),
                             .n = d->nruns,
                             .row = run_row,
                             .sort = "occurrence"},
        v);
    put(v,
        (struct report_rows){.id = "lines",
                             .title = "What is recorded of the run",
                             COLUMNS(line_columns),
                             .n = d->in.nlines,
                             .row = line_row,
                             .aside = true},
        v);
}
