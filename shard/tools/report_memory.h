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

#endif
