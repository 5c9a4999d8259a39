/* shard/tools/memory_live.h - a host's memory profile as our report has it: facts (facts.h) with
 * times of the session, what is alive at a moment, and what is in use when steps end.
 *
 * Moment     at=PS in the request, of session time; else each allocator's own peak. Alive is what
 *            was allocated by then and not taken back, of all steps; heap that no allocation of
 *            the profile explains was allocated before it.
 * Range      Of a part that is cut to one: allocators, peaks and steps are those of the range; what
 *            is alive is known of the whole profile.
 * Kept       With the part: the index of each allocator's events (memory_index.h). A moment then
 *            costs a millisecond, and a microsecond for each allocation that is alive.
 */
#ifndef SHARD_MEMORY_LIVE_H
#define SHARD_MEMORY_LIVE_H

#include "shard/tools/memory_facts.h"

#define MEMORY_NO_EVENTS                                                                           \
    "the profile has no allocations: capture with host_tracer_level=2 or higher, on a runtime "    \
    "whose allocator reports them"
#define MEMORY_STEPS_MAX 1000 /* steps that are looked at; of more, every second, third, ... */

enum memory_special { MEMORY_BEFORE, MEMORY_STACK }; /* stands for what no event tells of */

struct memory_live_row {
    struct memory_fact fact; /* of the first of equal ones */
    int special;             /* enum memory_special; -1: an allocation */
    uint64_t count;
};

/* An allocator at a moment. */
struct memory_live_pool {
    bool known; /* it had an event by then */
    int64_t time_ps;
    int64_t reserved, heap, available;
    uint64_t allocations; /* that are alive */
    struct memory_live_row *rows;
    size_t nrows;
    int64_t *heap_after; /* of each step that is looked at; INT64_MIN: no event yet */
};

struct memory_live {
    struct memory_facts facts;
    struct memory_live_pool *pools; /* of facts.allocators */
    int64_t *steps;                 /* their numbers */
    size_t nsteps;
    uint64_t stride; /* steps from one that is looked at to the next */
};

enum xp_status memory_live_map(const struct tool_host *host, const struct tool_args *args,
                               struct xp_arena *a, struct xp_span *partial, struct xp_error *err);
enum xp_status memory_live_read(struct facts *f, struct xp_arena *a, struct memory_live *m,
                                struct xp_error *err);

/* at= of the request: false when it is absent. XP_BAD_REQUEST when it is no time. */
enum xp_status memory_live_at(const struct tool_args *args, bool *asked, int64_t *at_ps,
                              struct xp_error *err);

#endif
