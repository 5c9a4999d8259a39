#include <stdio.h>

#include "shard/tools/kernel_name.h"
#include "shard/tools/report_figures.h"
#include "shard/tools/reports.h"

/* Which GPU kernels dominate, from which op, with tensor cores or not. */

#define KERNELS_KEPT 1000 /* the longest of a host, and again of all, by op_stats.h */

struct text {
    char dims[2][48];
    struct xp_span short_name, demangled; /* the latter is empty where the name is no mangled one */
};

struct view {
    const struct op_stats *s;
    struct text *texts; /* of each kernel */
    double device_ns;   /* 0: not known */
};

static const struct report_column columns[] = {
    {"short_name", "Kernel", "", REPORT_COL_TEXT, false, "its name without types and arguments"},
    {"kernel", "Full name", "", REPORT_COL_TEXT, false, "as the profile has it"},
    {"demangled", "Full name, demangled", "", REPORT_COL_TEXT, false,
     "with types and arguments; n/a: it is not mangled, or has what is not read"},
    {"op", "Op", "", REPORT_COL_OP, false, "the op that launched it"},
    {"total_time", "Total time", "ns", REPORT_COL_NUMBER, true, "over all devices"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "total time / time of all kernels"},
    {"gpu_share", "Of GPU time", "fraction", REPORT_COL_NUMBER, true,
     "total time / device_time; kernels that run at the same time count one by one"},
    {"occurrences", "Occurrences", "count", REPORT_COL_NUMBER, true, "launches"},
    {"mean_time", "Mean time", "ns", REPORT_COL_NUMBER, false, "total time / occurrences"},
    {"min_time", "Shortest", "ns", REPORT_COL_NUMBER, false, ""},
    {"max_time", "Longest", "ns", REPORT_COL_NUMBER, false, ""},
    {"tensor_core", "Uses tensor cores", "", REPORT_COL_BOOL, false, "by the kernel's name"},
    {"eligible", "Could use tensor cores", "", REPORT_COL_BOOL, false, "by the op's type"},
    {"registers", "Registers", "count", REPORT_COL_NUMBER, false, "a thread"},
    {"shared_memory", "Shared memory", "bytes", REPORT_COL_BYTES, false, "static and dynamic"},
    {"block", "Block", "", REPORT_COL_TEXT, false, "threads: x, y, z"},
    {"grid", "Grid", "", REPORT_COL_TEXT, false, "blocks: x, y, z"},
    {"occupancy", "Occupancy", "fraction", REPORT_COL_NUMBER, false, "as the profiler says"},
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct op_kernel *k = &v->s->kernels[i];
    c[0] = report_of_text(v->texts[i].short_name);
    c[1] = report_of_text(k->name);
    c[2] = v->texts[i].demangled.n ? report_of_text(v->texts[i].demangled) : report_none();
    c[3] = k->op_name.n ? report_of_text(k->op_name) : report_none();
    c[4] = report_of_u64(k->total_ns);
    c[5] = report_ratio((double)k->total_ns, (double)v->s->kernel_sums.total_ns);
    c[6] = report_ratio((double)k->total_ns, v->device_ns);
    c[7] = report_of_u64(k->occurrences);
    c[8] = report_ratio((double)k->total_ns, (double)k->occurrences);
    c[9] = report_of_u64(k->min_ns);
    c[10] = report_of_u64(k->max_ns);
    c[11] = report_of_bool(k->tensor_core);
    c[12] = report_of_bool(k->eligible);
    c[13] = k->registers ? report_of_u64(k->registers) : report_none();
    c[14] = report_of_u64((uint64_t)k->static_shmem + k->dynamic_shmem);
    c[15] = report_of_text(xp_span_str(v->texts[i].dims[0]));
    c[16] = report_of_text(xp_span_str(v->texts[i].dims[1]));
    c[17] = k->occupancy > 0 ? report_of_double((double)k->occupancy / 100) : report_none();
}

static enum xp_status gather(struct view *v, struct xp_arena *a, struct xp_error *err)
{
    struct xp_bump names;
    xp_bump_init(&names, a);
    v->texts = xp_arena_alloc(a, (v->s->nkernels + (size_t)1) * sizeof *v->texts);
    if (!v->texts)
        return xp_fail(err, XP_BUSY, 0, "no memory left to list kernels");
    for (uint32_t i = 0; i < v->s->nkernels; i++) {
        const struct op_kernel *k = &v->s->kernels[i];
        struct text *t = &v->texts[i];
        t->short_name = kernel_short_name(k->name, &names);
        t->demangled = kernel_full_name(k->name, &names);
        if (t->demangled.p == k->name.p)
            t->demangled.n = 0;
        snprintf(t->dims[0], sizeof t->dims[0], "%u,%u,%u", k->block[0], k->block[1], k->block[2]);
        snprintf(t->dims[1], sizeof t->dims[1], "%u,%u,%u", k->grid[0], k->grid[1], k->grid[2]);
    }
    return XP_OK;
}

/* --- durations --- */

struct bins {
    uint64_t n[OP_KERNEL_BINS];
    uint32_t first, end; /* those between the shortest and the longest */
};

static void trim(struct bins *b)
{
    b->end = OP_KERNEL_BINS;
    while (b->end && !b->n[b->end - 1])
        b->end--;
    while (b->first < b->end && !b->n[b->first])
        b->first++;
}

static void bin(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct bins *b = ctx;
    *x = report_of_u64(op_kernel_bin_begin(b->first + (uint32_t)i));
    y[0] = report_of_u64(b->n[b->first + i]);
}

static void histogram(struct report *r, struct bins *b, const char *id, const char *title)
{
    static const char *const names[] = {"launches"};
    trim(b);
    report_series(r, &(struct report_points){.id = id,
                                             .title = title,
                                             .x_label = "Duration, from",
                                             .x_unit = "ns",
                                             .y_label = "Launches",
                                             .y_unit = "count",
                                             .kind = "bar",
                                             .names = names,
                                             .nnames = 1,
                                             .n = b->end - b->first,
                                             .point = bin,
                                             .ctx = b});
}

static void durations(struct report *r, const struct view *v, const struct tool_args *args)
{
    struct bins all = {.first = 0}, one = {.first = 0};
    struct xp_span name = {0};
    bool found = false;
    memcpy(all.n, v->s->kernel_sums.bins, sizeof all.n);
    if (v->s->kernel_sums.occurrences)
        histogram(r, &all, "durations", "How long kernels take");
    if (!tool_arg(args, "kernel", &name) || !name.n)
        return;
    for (uint32_t i = 0; i < v->s->nkernels; i++) {
        const struct op_kernel *k = &v->s->kernels[i];
        if (!xp_span_eq(k->name, name))
            continue;
        found = true;
        for (int n = 0; n < OP_KERNEL_BINS; n++)
            one.n[n] += k->bins[n];
    }
    if (found)
        histogram(r, &one, "kernel_durations", "How long this kernel takes");
    else
        report_note(r, REPORT_WARNING, "no_such_kernel",
                    "None of the kernels listed is called as kernel= says.");
}

static void metrics(struct report *r, const struct view *v, const struct figures *f)
{
    static const char none[] = "the profile has no GPU kernels with launch details: on TPUs see "
                               "hlo_stats; on GPUs capture with CUPTI or ROCTracer available";
    const struct op_kernel_sums *s = &v->s->kernel_sums;
    if (s->total_ns) {
        double all = (double)s->total_ns;
        report_u64(r, "kernel_time", s->total_ns, NULL);
        report_double(r, "tensor_core_fraction", (double)s->tensor_ns / all, NULL);
        report_double(r, "unnamed_kernel_fraction", (double)s->unnamed_ns / all, NULL);
    } else {
        report_na(r, "kernel_time", none);
        report_na(r, "tensor_core_fraction", none);
        report_na(r, "unnamed_kernel_fraction", none);
    }
    report_figure(r, "unattributed_fraction", &f->unattributed, false);
    report_usage(r, f);
    report_environment(r, f);
}

static void verdict(struct report *r, const struct view *v)
{
    if (!v->s->nkernels)
        return;
    struct xp_span name = v->texts[0].short_name;
    report_verdict(r, "%.*s takes longest: %.1f %% of kernel time.",
                   (int)(name.n < 120 ? name.n : 120), (const char *)name.p,
                   100 * (double)v->s->kernels[0].total_ns / (double)v->s->kernel_sums.total_ns);
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct session s;
    struct figures f;
    struct view v = {0};
    struct xp_span device, one;
    if (tool_arg(args, "device_to_use", &device) && device.n)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "device_to_use is not done here: choose hosts with host=");
    XP_TRY(session_open_report(merged, args, r->a, &s, &f, err));
    v.s = s.stats;
    v.device_ns = f.device_time.known ? f.device_time.v / 1000 : 0;
    XP_TRY(gather(&v, r->a, err));
    verdict(r, &v);
    metrics(r, &v, &f);
    durations(r, &v, args);
    report_table(r, &(struct report_rows){.id = "kernels",
                                          .title = "Kernels",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = s.stats->nkernels,
                                          .row = row,
                                          .ctx = &v,
                                          .sort = "total_time",
                                          .descending = true});
    if (s.stats->nkernels >= KERNELS_KEPT)
        report_note(r, REPORT_INFO, "kernels_cut",
                    "Only the %d longest kernels of each host, and again of all hosts together, "
                    "are kept and listed; figures and durations are of all.%s",
                    KERNELS_KEPT,
                    tool_arg(args, "kernel", &one) && one.n
                        ? " Launches of kernel= that are not among those kept are missing from "
                          "kernel_durations."
                        : "");
    report_remarks(r, &f);
    return XP_OK;
}

const struct tool_report report_kernel_stats = {
    .question = "Which GPU kernels take the time, from which op?",
    .map = session_map_report,
    .merge = session_merge,
    .write = write_report,
};
