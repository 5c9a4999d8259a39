/* shard/tools/memory.h - the memory profile of a host: its allocators' events in order of time and
 * what was alive at each allocator's peak.
 *
 * memory_read reads the events' stats in one pass over the file; memory_analyse works out one
 * allocator. About 130 bytes an event, from the arena.
 */
#ifndef SHARD_MEMORY_H
#define SHARD_MEMORY_H

#include "lib/base/strpool.h"
#include "shard/tools/profile.h"

#define MEMORY_NO_TYPE INT64_MIN
#define MEMORY_TIMELINE_MAX 1000

struct memory_event {
    int64_t time_ps; /* of the event in its line */
    uint64_t at;
    int64_t reserved, heap, available, peak;
    double fragmentation;
    int64_t requested, allocated;
    uint64_t address;
    int64_t step;
    int64_t type;                          /* TensorFlow's number of it, or MEMORY_NO_TYPE */
    uint32_t op, region, shape, allocator; /* in memory->strings */
    bool frees;
};

struct memory_peak {
    int64_t lifetime; /* peak that the allocator reported last */
    int64_t reserved, heap, available, bytes, time_ps, capacity;
    double fragmentation;
};

struct memory_allocator {
    uint32_t name;               /* in memory->strings */
    struct memory_event *events; /* by time */
    size_t n;
    struct memory_peak peak;
};

struct memory {
    struct xp_strpool strings;
    struct memory_event *events;
    size_t n;
    struct memory_allocator *allocators; /* by name */
    size_t nallocators;
    struct xp_arena *arena;
};

/* Whether the host's threads have any event of an allocator: by names alone. */
bool memory_has_events(const struct part *p);

/* Of one plane, "/host:CPU". */
enum xp_status memory_read(struct part *p, const struct part_plane *plane, struct xp_arena *a,
                           struct out *out, struct memory *m, struct xp_error *err);

/* What was alive at the peak: an allocation of the profile, or one that stands for what no event
 * tells of. Equal ones are counted together. */
struct memory_active {
    const struct memory_event *event;
    int special; /* 0, 1: index in specials; -1: an event */
    uint64_t count;
};

struct memory_analysis {
    struct memory_active *active;
    size_t nactive;
    struct memory_event specials[2];
    int nspecials;
    const struct memory_event *timeline[MEMORY_TIMELINE_MAX];
    size_t ntimeline;
};

#define MEMORY_TYPE_TEXT 64
/* TensorFlow's name of one of its types; empty for MEMORY_NO_TYPE. */
void memory_type_text(int64_t type, char text[MEMORY_TYPE_TEXT]);

enum xp_status memory_analyse(struct memory *m, struct memory_allocator *al,
                              struct memory_analysis *an, struct xp_error *err);

#endif
