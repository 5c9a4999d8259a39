/* shard/tools/reports_more.h - reports made of facts (facts.h) and of single modules, and the maps
 * that they share with their tools.
 */
#ifndef SHARD_REPORTS_MORE_H
#define SHARD_REPORTS_MORE_H

#include "shard/tools/tool.h"

extern const struct tool_report report_memory_profile;
extern const struct tool_report report_memory_viewer;
extern const struct tool_report report_graph_viewer;
extern const struct tool_report report_inference_profile;
extern const struct tool_report report_pod_viewer;
extern const struct tool_report report_megascale_stats;
extern const struct tool_report report_utilization_viewer;
extern const struct tool_report report_perf_counters;
extern const struct tool_report report_kernel_utilization;
extern const struct tool_report report_smart_suggestion;

/* Metrics findings_p0, findings_p1, findings_p2: how many rules of smart_suggestion apply. */
struct figures;
struct run_memory;
enum xp_status report_suggestion_counts(struct report *r, const struct figures *f,
                                        const struct run_memory *memory, struct xp_error *err);

/* Why there are none. */
#define COUNTERS_NONE                                                                              \
    "the profile has no hardware counters of a TPU: they are taken only when the capture asks "    \
    "for them (tpu_trace_mode with counters, xprof kernel profiling)"

/* tool_perf_counters.c: every counter's value, of any file. */
enum {
    PERF_COUNTERS_END,
    PERF_COUNTERS_ROW
}; /* then chip, kernel, sample, counter, value, words */
enum xp_status perf_counters_map_any(const struct tool_host *host, const struct tool_args *args,
                                     struct xp_arena *a, struct xp_span *partial,
                                     struct xp_error *err);

#endif
