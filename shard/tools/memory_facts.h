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
enum xp_status memory_facts_read(struct facts *f, struct xp_arena *a, struct memory_facts *m,
                                 struct xp_error *err);

/* For those that write facts of their own: a host's allocators and modules. m is NULL where it has
 * no threads. Only with XProf's times it is told what XProf has as alive at the peak. */
enum xp_status memory_facts_put(struct facts_out *f, const struct part *p, struct memory *m,
                                enum memory_times times, struct xp_arena *a, struct xp_error *err);
void memory_facts_put_event(struct facts_out *f, const struct memory *m,
                            const struct memory_event *ev);
void memory_facts_get_event(struct facts *f, struct memory_fact *ev);

#endif
