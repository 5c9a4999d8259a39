#include <stdio.h>

#include "shard/tools/report_figures.h"
#include "shard/tools/reports.h"

/* Which GPU kernels dominate, from which op, with tensor cores or not. */

#define KERNELS_KEPT 1000 /* the longest, by op_stats.h */

struct view {
    const struct op_stats *s;
    uint64_t total_ns, tensor_ns;
    char (*dims)[2][48];
};

static const struct report_column columns[] = {
    {"kernel", "Kernel", "", REPORT_COL_TEXT, false, "name"},
    {"op", "Op", "", REPORT_COL_OP, false, "the op that launched it"},
    {"total_time", "Total time", "ns", REPORT_COL_NUMBER, true, "over all devices"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "of the kernels listed"},
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
    c[0] = report_of_text(k->name);
    c[1] = k->op_name.n ? report_of_text(k->op_name) : report_none();
    c[2] = report_of_u64(k->total_ns);
    c[3] = report_ratio((double)k->total_ns, (double)v->total_ns);
    c[4] = report_of_u64(k->occurrences);
    c[5] = report_ratio((double)k->total_ns, (double)k->occurrences);
    c[6] = report_of_u64(k->min_ns);
    c[7] = report_of_u64(k->max_ns);
    c[8] = report_of_bool(k->tensor_core);
    c[9] = report_of_bool(k->eligible);
    c[10] = k->registers ? report_of_u64(k->registers) : report_none();
    c[11] = report_of_u64((uint64_t)k->static_shmem + k->dynamic_shmem);
    c[12] = report_of_text(xp_span_str(v->dims[i][0]));
    c[13] = report_of_text(xp_span_str(v->dims[i][1]));
    c[14] = k->occupancy > 0 ? report_of_double((double)k->occupancy / 100) : report_none();
}

static enum xp_status gather(struct view *v, struct xp_arena *a, struct xp_error *err)
{
    v->dims = xp_arena_alloc(a, (v->s->nkernels + (size_t)1) * sizeof *v->dims);
    if (!v->dims)
        return xp_fail(err, XP_BUSY, 0, "no memory left to list kernels");
    for (uint32_t i = 0; i < v->s->nkernels; i++) {
        const struct op_kernel *k = &v->s->kernels[i];
        v->total_ns += k->total_ns;
        v->tensor_ns += k->tensor_core ? k->total_ns : 0;
        snprintf(v->dims[i][0], sizeof v->dims[i][0], "%u,%u,%u", k->block[0], k->block[1],
                 k->block[2]);
        snprintf(v->dims[i][1], sizeof v->dims[i][1], "%u,%u,%u", k->grid[0], k->grid[1],
                 k->grid[2]);
    }
    return XP_OK;
}

static void metrics(struct report *r, const struct view *v, const struct figures *f)
{
    static const char none[] = "the profile has no GPU kernels with launch details: on TPUs see "
                               "hlo_stats; on GPUs capture with CUPTI or ROCTracer available";
    if (v->total_ns) {
        report_u64(r, "kernel_time", v->total_ns, NULL);
        report_double(r, "tensor_core_fraction", (double)v->tensor_ns / (double)v->total_ns, NULL);
    } else {
        report_na(r, "kernel_time", none);
        report_na(r, "tensor_core_fraction", none);
    }
    report_figure(r, "unattributed_fraction", &f->unattributed, false);
    report_usage(r, f);
    report_environment(r, f);
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct session s;
    struct figures f;
    struct view v = {0};
    struct xp_span device;
    if (tool_arg(args, "device_to_use", &device) && device.n)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "device_to_use is not done here: choose hosts with host=");
    XP_TRY(session_open_report(merged, args, r->a, &s, &f, err));
    v.s = s.stats;
    XP_TRY(gather(&v, r->a, err));
    if (v.total_ns)
        report_verdict(r, "%.*s takes longest: %.1f %% of kernel time.",
                       (int)(s.stats->kernels[0].name.n < 120 ? s.stats->kernels[0].name.n : 120),
                       (const char *)s.stats->kernels[0].name.p,
                       100 * (double)s.stats->kernels[0].total_ns / (double)v.total_ns);
    metrics(r, &v, &f);
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
                    "Only the %d longest kernels are kept; sums are of these.", KERNELS_KEPT);
    report_remarks(r, &f);
    return XP_OK;
}

const struct tool_report report_kernel_stats = {
    .question = "Which GPU kernels take the time, from which op?",
    .map = session_map_report,
    .merge = session_merge,
    .write = write_report,
};
