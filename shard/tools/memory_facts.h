/* shard/tools/memory_facts.h - a host's memory profile (memory.h) as facts (facts.h): what the
 * pages show, and totals of all events.
 */
#ifndef SHARD_MEMORY_FACTS_H
#define SHARD_MEMORY_FACTS_H

#include "shard/tools/facts.h"
#include "shard/tools/memory.h"

struct memory_fact {
    int64_t time_ps, reserved, heap, available, peak;
    double fragmentation;
    int64_t requested, allocated;
    uint64_t address;
    int64_t step, type;
    struct xp_span op, region, shape;
    bool frees;
};

struct memory_fact_active {
    struct memory_fact fact;
    int special; /* 0, 1: stands for what no event tells of; -1: an allocation */
    uint64_t count;
};

struct memory_fact_allocator {
    struct xp_span name;
    struct memory_peak peak;
    uint64_t allocations, frees, allocated_bytes, freed_bytes; /* of all events */
    struct memory_fact *timeline;
    size_t ntimeline;
    struct memory_fact *lows; /* of each stretch that the timeline has the peak of */
    size_t nlows;             /* 0: the timeline is all events */
    struct memory_fact_active *active;
    size_t nactive;
};

struct memory_fact_module {
    struct xp_span name, plane;
    int64_t begin_ps, end_ps;
};

struct memory_facts {
    bool has_threads; /* the host's plane, which would have the events */
    struct memory_fact_allocator *allocators;
    size_t nallocators;
    struct memory_fact_module *modules; /* runs, as they stand in the profile */
    size_t nmodules;
};

enum xp_status memory_facts_map(const struct tool_host *host, const struct tool_args *args,
                                struct xp_arena *a, struct xp_span *partial, struct xp_error *err);
/* The same of a file that XProf would not read, as far as it goes: for reports. */
enum xp_status memory_facts_map_any(const struct tool_host *host, const struct tool_args *args,
                                    struct xp_arena *a, struct xp_span *partial,
                                    struct xp_error *err);
enum xp_status memory_facts_read(struct facts *f, struct xp_arena *a, struct memory_facts *m,
                                 struct xp_error *err);

#endif
