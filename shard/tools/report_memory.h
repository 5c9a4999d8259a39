/* shard/tools/report_memory.h - what the files of memory_profile's report share.
 */
#ifndef SHARD_REPORT_MEMORY_H
#define SHARD_REPORT_MEMORY_H

#include "shard/tools/memory_live.h"

/* An allocator of a host. */
struct memory_pool {
    struct xp_span host;
    const struct memory_fact_allocator *al;
    const struct memory_live_pool *live;
    const struct memory_live *of; /* the host's steps */
};

struct memory_run {
    struct xp_span host;
    const struct memory_fact_module *module;
};

/* Does what is in use when steps end grow? Metric, table and series; n is at least 1. */
void report_memory_growth(struct report *r, const struct memory_pool *pools, size_t n);

/* --- which allocator, and why its curve may say little: report_memory_choice.c --- */

/* The pools that allocator= names, of all hosts, in the same order; all where it is absent or
 * there are none. XP_BAD_REQUEST: no allocator has that name. */
enum xp_status report_memory_choose(const struct tool_args *args, struct memory_pool *all, size_t n,
                                    struct xp_arena *a, struct memory_pool **of, size_t *nof,
                                    struct xp_error *err);
/* Notes: no events at all; what is in use hardly changes. */
void report_memory_none(struct report *r);
void report_memory_flat(struct report *r, const struct memory_pool *pools, size_t n);

#endif
