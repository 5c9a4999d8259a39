/* Which tools have something to say about a run, and for the others why not and what to capture.
 * A report like the others, of a tool that XProf does not have: its routes answer "No Data". */
#include "shard/decode/xspace_decoder.h"
#include "shard/tools/kernel_calls.h"
#include "shard/tools/reports.h"

enum {
    HAS_DEVICE = 1,     /* events of an accelerator */
    HAS_GPU = 2,        /* of a GPU */
    HAS_HLO = 4,        /* compiled modules */
    HAS_ALLOCATOR = 8,  /* allocations and deallocations */
    HAS_REQUESTS = 16,  /* a model server's requests */
    HAS_MEGASCALE = 32, /* transfers between slices */
    HAS_COUNTERS = 64,  /* counters of a TPU */
    HAS_KERNELS = 128,  /* custom calls on a TPU, or its counters */
};

static const struct {
    const char *id, *title;
    uint32_t needs;
    const char *reason; /* it is missing, and how to have it */
} rows[] = {
#define DEVICE                                                                                     \
    "the profile has no events of a device: it was taken without an accelerator, or with the "     \
    "device tracer off"
#define HLO                                                                                        \
    "the profile holds no compiled modules: capture with the device tracer on while a program "    \
    "runs that XLA compiled"
#define COUNTERS                                                                                   \
    "the profile has no hardware counters of a TPU: they are taken only when the capture asks "    \
    "for them"
    {"overview_page", "Overview", 0, NULL},
    {"trace", "Timeline", 0, NULL},
    {"smart_suggestion", "Suggestions", HAS_DEVICE, DEVICE},
    {"op_profile", "Op profile", HAS_DEVICE, DEVICE},
    {"hlo_stats", "HLO ops", HAS_DEVICE, DEVICE},
    {"framework_op_stats", "Framework ops", 0, NULL},
    {"kernel_stats", "GPU kernels", HAS_GPU, "the run has no GPU"},
    {"roofline_model", "Roofline", HAS_DEVICE, DEVICE},
    {"input_pipeline_analyzer", "Input pipeline", 0, NULL},
    {"memory_profile", "Memory over time", HAS_ALLOCATOR,
     "the profile has no allocations: capture with the host tracer at level 2 or above, on a "
     "runtime whose allocator reports them"},
    {"memory_viewer", "Program buffers", HAS_HLO, HLO},
    {"graph_viewer", "Graph", HAS_HLO, HLO},
    {"pod_viewer", "Hosts and steps", HAS_DEVICE, DEVICE},
    {"megascale_stats", "Megascale", HAS_MEGASCALE, "the run has no transfers between slices"},
    {"inference_profile", "Inference", HAS_REQUESTS,
     "the profile has no requests of a model server"},
    {"utilization_viewer", "Utilization", HAS_COUNTERS, COUNTERS},
    {"kernel_utilization", "Custom kernels", HAS_KERNELS,
     "no op of a TPU is a custom call (a kernel of Pallas or Mosaic), and the profile has no "
     "hardware counters of a TPU"},
    {"perf_counters", "Counters", HAS_COUNTERS, COUNTERS},
};

#define ROWS (sizeof rows / sizeof rows[0])

/* --- one host --- */

static bool line_counts(const struct part_line *l)
{
    struct side_cursor c;
    if (!l->side)
        return false;
    side_open(&c, l->side);
    while (side_next(&c))
        if (side_get(&c, STAT_COUNTER_VALUE))
            return true;
    return false;
}

static bool plane_counts(const struct part *p, const struct part_plane *pl)
{
    bool may = false;
    for (uint32_t i = 0; i < pl->nstatmeta && !may; i++)
        may = pl->statmeta[i].kind == STAT_COUNTER_VALUE;
    for (uint32_t i = 0; may && i < pl->nlines; i++)
        if (line_counts(&p->lines[pl->first_line + i]))
            return true;
    return false;
}

/* By the HLO text of its ops, which is their name; by their category where that is a name of the
 * plane's that stats refer to. */
static bool plane_calls(const struct part *p, const struct part_plane *pl)
{
    for (uint32_t i = 0; i < pl->nevmeta; i++)
        if (kernel_is_call(part_str(p, pl->evmeta[i].name), (struct xp_span){0}))
            return true;
    for (uint32_t i = 0; i < pl->nstatmeta; i++)
        if (kernel_is_call((struct xp_span){0}, part_str(p, pl->statmeta[i].name)))
            return true;
    return false;
}

static uint32_t look_device(const struct part *p, const struct part_plane *pl, struct xp_span name)
{
    uint32_t has = pl->nevents ? HAS_DEVICE : 0;
    if (xp_span_starts(name, XP_SPAN_LIT("/device:GPU:")))
        has |= pl->nevents ? HAS_GPU : 0;
    else if (xp_span_starts(name, XP_SPAN_LIT("/device:TPU:")))
        has |= plane_counts(p, pl)                 ? HAS_COUNTERS | HAS_KERNELS
               : pl->nevents && plane_calls(p, pl) ? HAS_KERNELS
                                                   : 0;
    return has;
}

static uint32_t look_modules(const struct part *p, const struct part_plane *pl)
{
    for (uint32_t i = 0; i < pl->nstatmeta; i++) {
        struct xp_span s = part_str(p, pl->statmeta[i].name);
        if (xp_span_eq(s, XP_SPAN_LIT("Hlo Proto")) || xp_span_eq(s, XP_SPAN_LIT("HLO Proto")))
            return HAS_HLO;
    }
    return 0;
}

/* As for shard/tools/inference_read.c: a request or a batch begins so. */
static bool is_request(struct xp_span name)
{
    static const char *const names[] = {
        "BatchingSessionRun", "TfrtModelRun", "ServingModelRun",           "SessionRun",
        "RunGraph",           "ProcessBatch", "OrbaxServing::ProcessBatch"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (xp_span_eq(name, xp_span_str(names[i])))
            return true;
    return xp_span_starts(name, XP_SPAN_LIT("ModelServerRequest_"));
}

static uint32_t look_host(const struct part *p, const struct part_plane *pl)
{
    uint32_t has = 0;
    for (uint32_t i = 0; i < pl->nevmeta; i++) {
        struct xp_span s = part_str(p, pl->evmeta[i].name);
        if (xp_span_starts(s, XP_SPAN_LIT("MegaScale:")))
            has |= HAS_MEGASCALE;
        else if (is_request(s))
            has |= HAS_REQUESTS;
        else if (xp_span_eq(s, XP_SPAN_LIT("MemoryAllocation")) ||
                 xp_span_eq(s, XP_SPAN_LIT("MemoryDeallocation")))
            has |= HAS_ALLOCATOR;
    }
    return has;
}

static enum xp_status map_host(const struct tool_host *host, const struct tool_args *args,
                               struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    const struct part *p = host->part;
    uint32_t *has = xp_arena_alloc(a, sizeof *has);
    (void)args;
    if (!has)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the list of tools");
    *has = 0;
    for (uint32_t i = 0; i < p->nplanes; i++) {
        const struct part_plane *pl = &p->planes[i];
        struct xp_span name = part_str(p, pl->name);
        if (xp_span_starts(name, XP_SPAN_LIT("/device:")))
            *has |= look_device(p, pl, name);
        else if (xp_span_eq(name, XP_SPAN_LIT("/host:metadata")))
            *has |= look_modules(p, pl);
        else if (xp_span_eq(name, XP_SPAN_LIT("/host:CPU")))
            *has |= look_host(p, pl);
    }
    *partial = xp_span_of(has, sizeof *has);
    return XP_OK;
}

/* Perhaps a peer's. Of no host: nothing. */
static enum xp_status read_flags(struct xp_span partial, uint32_t *has, struct xp_error *err)
{
    *has = 0;
    if (partial.n && partial.n != sizeof *has)
        return xp_fail(err, XP_CORRUPT, 0, "what another server said of a host cannot be read");
    if (partial.n)
        memcpy(has, partial.p, sizeof *has);
    return XP_OK;
}

static enum xp_status merge_hosts(struct xp_span x, struct xp_span y, struct xp_arena *a,
                                  struct xp_span *both, struct xp_error *err)
{
    uint32_t p, q, *has = xp_arena_alloc(a, sizeof *has);
    if (!has)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the list of tools");
    XP_TRY(read_flags(x, &p, err));
    XP_TRY(read_flags(y, &q, err));
    *has = p | q;
    *both = xp_span_of(has, sizeof *has);
    return XP_OK;
}

/* --- the report --- */

static void fill_row(void *ctx, uint64_t i, struct report_cell *cells)
{
    uint32_t has = *(const uint32_t *)ctx;
    bool available = (rows[i].needs & ~has) == 0;
    cells[0] = report_of_text(xp_span_str(rows[i].id));
    cells[1] = report_of_text(xp_span_str(rows[i].title));
    cells[2] = report_of_bool(available);
    cells[3] = available ? report_none() : report_of_text(xp_span_str(rows[i].reason));
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    static const struct report_column columns[] = {
        {"tool", "Tool", "", REPORT_COL_TEXT, false, "id of the tool"},
        {"title", "Title", "", REPORT_COL_TEXT, false, NULL},
        {"available", "Available", "", REPORT_COL_BOOL, false, "the run has what it is made from"},
        {"reason", "Reason", "", REPORT_COL_TEXT, false, "why not, and how to capture it"},
    };
    uint32_t has;
    (void)args;
    XP_TRY(read_flags(merged, &has, err));
    report_table(r, &(struct report_rows){.id = "tools",
                                          .title = "Tools",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof columns[0],
                                          .n = ROWS,
                                          .row = fill_row,
                                          .ctx = &has});
    return XP_OK;
}

static const struct tool_report report_tools = {
    .question = "Which tools have something to say about this run?",
    .whole = true,
    .map = map_host,
    .merge = merge_hosts,
    .write = write_report,
};

const struct tool tool_tools = {.id = "tools", .answer = tool_no_data, .report = &report_tools};
