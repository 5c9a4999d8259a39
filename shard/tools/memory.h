/* shard/tools/memory.h - the memory profile of a host: its allocators' events in order of time and
 * what was alive at each allocator's peak.
 *
 * memory_read takes what is kept of every event (store/memory_log.h); memory_analyse works out one
 * allocator, and memory_describe reads the rest of the few events that are shown. About 60 bytes an
 * event, from the arena.
 */
#ifndef SHARD_MEMORY_H
#define SHARD_MEMORY_H

#include "lib/base/strpool.h"
#include "shard/tools/profile.h"

#define MEMORY_NO_TYPE INT64_MIN
#define MEMORY_TIMELINE_MAX 1000

/* An event, as far as every one of them counts. */
struct memory_change {
    int64_t time_ps; /* of the event */
    uint64_t at;
    int64_t used; /* reserved and on the heap, after it */
    int64_t allocated;
    uint64_t address;
    int64_t step;
    uint32_t of; /* of what is freed: index + 1 of its allocation; 0: not in the profile */
    uint32_t allocator : 31;
    uint32_t frees : 1;
};

/* One that is shown. */
struct memory_event {
    int64_t time_ps;
    uint64_t at;
    int64_t reserved, heap, available, peak;
    double fragmentation;
    int64_t requested, allocated;
    uint64_t address;
    int64_t step;
    int64_t type;               /* TensorFlow's number of it, or MEMORY_NO_TYPE */
    uint32_t op, region, shape; /* in memory->strings */
    bool frees;
};

struct memory_peak {
    int64_t lifetime; /* peak that the allocator reported last */
    int64_t reserved, heap, available, bytes, time_ps, capacity;
    double fragmentation;
};

struct memory_allocator {
    uint32_t name;                 /* in memory->strings */
    struct memory_change *changes; /* by time */
    size_t n;
    uint64_t count[2], bytes[2]; /* of all events: allocations, what frees */
    struct memory_peak peak;
    uint64_t peak_at, last_at; /* the events that tell of the peak: it, and the file's last */
};

struct memory {
    struct xp_strpool strings;
    struct memory_change *changes;
    size_t n;
    struct memory_allocator *allocators; /* by name */
    size_t nallocators;
    struct xp_arena *arena;
    struct memory_details *details; /* where more of an event is read */
};

/* Whether the host's threads have any event of an allocator: by names alone. */
bool memory_has_events(const struct part *p);

/* Whose times: XProf orders events by their line's, which agree with each other where all lines
 * begin at once. */
enum memory_times { MEMORY_LINE_TIMES, MEMORY_SESSION_TIMES };

/* Of one plane, "/host:CPU". */
enum xp_status memory_read(struct part *p, const struct part_plane *plane, enum memory_times times,
                           struct xp_arena *a, struct memory *m, struct xp_error *err);
/* Nothing but what memory_describe needs. */
enum xp_status memory_open(const struct part *p, const struct part_plane *plane, struct xp_arena *a,
                           struct memory *m, struct xp_error *err);
/* All of an event of al; what is freed is described by its allocation. al may be NULL if that is
 * not known (c->of). */
enum xp_status memory_describe(struct memory *m, const struct memory_allocator *al,
                               const struct memory_change *c, struct memory_event *ev,
                               struct xp_error *err);

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
    /* All events, or of each of as many stretches the one with the most in use; of these also the
     * one with the least. */
    const struct memory_change *timeline[MEMORY_TIMELINE_MAX];
    size_t ntimeline;
    const struct memory_change *lows[MEMORY_TIMELINE_MAX];
    size_t nlows; /* 0 where the timeline is all events */
};

#define MEMORY_TYPE_TEXT 64
/* TensorFlow's name of one of its types; empty for MEMORY_NO_TYPE. */
void memory_type_text(int64_t type, char text[MEMORY_TYPE_TEXT]);

enum xp_status memory_analyse(struct memory *m, struct memory_allocator *al,
                              struct memory_analysis *an, struct xp_error *err);
/* The timeline alone. */
void memory_outline(const struct memory_allocator *al, struct memory_analysis *an);
/* Puts the largest first and counts equal ones together: how many are left. */
size_t memory_group(struct memory *m, struct memory_active *v, size_t n);

#endif
