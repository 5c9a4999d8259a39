/* shard/tools/run_facts.h - one look at each host for the reports that need several: its session,
 * its allocators, its coverage.
 *
 * A partial is those of session.h (with requests), memory_live.h and coverage.h, each merged by its
 * own rule. map and merge are what such a report puts in its row; run_facts_open is the first thing
 * that its write does.
 */
#ifndef SHARD_RUN_FACTS_H
#define SHARD_RUN_FACTS_H

#include "shard/tools/session.h"

struct run_facts {
    struct xp_span session, memory, coverage; /* for their own functions */
};

enum xp_status run_facts_map(const struct tool_host *host, const struct tool_args *args,
                             struct xp_arena *a, struct xp_span *partial, struct xp_error *err);
enum xp_status run_facts_merge(struct xp_span x, struct xp_span y, struct xp_arena *a,
                               struct xp_span *both, struct xp_error *err);
enum xp_status run_facts_open(struct xp_span merged, struct run_facts *out, struct xp_error *err);

/* Of all hosts' allocators. */
struct run_memory {
    bool known;
    int64_t peak_bytes; /* most of one that was in use at once */
    /* Of the one that was nearest to all that it may use. full 0: none says how much that is. */
    double full;
    int64_t full_bytes, capacity, full_at_ps;
    struct xp_span host, allocator;
};
enum xp_status run_facts_memory(struct xp_span memory, struct xp_arena *a, struct run_memory *out,
                                struct xp_error *err);

#endif
