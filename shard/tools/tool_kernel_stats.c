#include <stdio.h>

#include "shard/tools/op_tool.h"
#include "shard/tools/reports.h"

/* kernel_stats: GPU kernels by what they were launched with, the longest first. */

static const struct {
    const char *id;
    enum table_type type;
    const char *label;
} columns[] = {
    {"rank", TABLE_NUMBER, "Rank"},
    {"kernel_name", TABLE_STRING, "Kernel Name"},
    {"registers_per_thread", TABLE_NUMBER, "Registers per thread"},
    {"shmem_bytes", TABLE_NUMBER, "Shared Mem bytes"},
    {"block_dim", TABLE_STRING, "Block dim"},
    {"grid_dim", TABLE_STRING, "Grid dim"},
    {"occupancy_pct", TABLE_NUMBER, "Theoretical Occupancy %"},
    {"is_op_tensor_core_eligible", TABLE_BOOLEAN, "Op is TensorCore eligible"},
    {"is_kernel_using_tensor_core", TABLE_BOOLEAN, "Kernel uses TensorCore"},
    {"op_name", TABLE_STRING, "Op Name"},
    {"occurrences", TABLE_NUMBER, "Occurrences"},
    {"total_duration_us", TABLE_NUMBER, "Total Duration (μs)"},
    {"avg_duration_us", TABLE_NUMBER, "Avg Duration (μs)"},
    {"min_duration_us", TABLE_NUMBER, "Min Duration (μs)"},
    {"max_duration_us", TABLE_NUMBER, "Max Duration (μs)"},
};

static void write_dims(struct tables *t, const uint32_t d[3])
{
    char text[40];
    snprintf(text, sizeof text, "%u,%u,%u", d[0], d[1], d[2]);
    table_cstr(t, text);
}

static void write_kernel(struct tables *t, uint32_t rank, const struct op_kernel *k)
{
    uint64_t n = k->occurrences ? k->occurrences : 1;
    table_row(t);
    table_num(t, rank);
    table_str(t, k->name);
    table_num(t, k->registers);
    table_num(t, (double)k->static_shmem + (double)k->dynamic_shmem);
    write_dims(t, k->block);
    write_dims(t, k->grid);
    table_num(t, (double)k->occupancy);
    table_bool(t, k->eligible);
    table_bool(t, k->tensor_core);
    table_str(t, k->op_name);
    table_num(t, (double)k->occurrences);
    uint64_t mean_ns = k->total_ns / n; /* whole, as XProf has it */
    table_num(t, (double)k->total_ns / 1e3);
    table_num(t, (double)mean_ns / 1e3);
    table_num(t, (double)k->min_ns / 1e3);
    table_num(t, (double)k->max_ns / 1e3);
}

static enum xp_status render(struct xp_span merged, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct op_stats *s;
    struct tables t;
    XP_TRY(op_stats_unpack(merged, scratch, &s, err));
    tables_begin(&t, out, args->csv, false);
    table_begin(&t);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        table_col(&t, columns[i].id, columns[i].type, columns[i].label);
    for (uint32_t i = 0; i < s->nkernels; i++)
        write_kernel(&t, i + 1, &s->kernels[i]);
    table_end(&t);
    tables_end(&t);
    return XP_OK;
}

const struct tool tool_kernel_stats = {
    .id = "kernel_stats",
    .map = op_tool_map,
    .merge = op_tool_merge,
    .render = render,
    .report = &report_kernel_stats,
};
