/* shard/tools/report_kernels.h - kernel_utilization: the inside of custom kernels. Its counters are
 * report_counters.c's.
 */
#ifndef SHARD_REPORT_KERNELS_H
#define SHARD_REPORT_KERNELS_H

#include "shard/tools/kernel_facts.h"

struct kernel_view {
    struct report *r;
    const struct kernel_host *hosts;
    size_t n;
    const struct kernel_host *host; /* whose run is shown; NULL: none */
    const struct kernel_call *call;
    const struct kernel_detail *d;
    const char *where; /* the report is about: "" or "in this range " */
};

/* Behind the counters' samples of each host: facts are where these end. */
enum xp_status report_kernels(struct facts *facts, size_t n, const struct tool_args *args,
                              struct report *r, struct xp_error *err);

/* report_kernel_parts.c: charts, and the tables about the run. */
void report_kernel_series(struct kernel_view *v);
void report_kernel_tables(struct kernel_view *v);

/* Of a run: what is told of its inside. */
struct xp_span kernel_told_words(uint32_t has);

#define KERNEL_HOW                                                                                 \
    "compile and run with LIBTPU_INIT_ARGS=\"--xla_xprof_enable_custom_call_tracing=true "         \
    "--xla_xprof_register_llo_debug_info=true\""

#endif
