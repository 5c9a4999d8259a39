/* shard/tools/memory_index.h - one allocator's events in order of time, packed so that a moment is
 * found, and what was alive then, without going through all of them.
 *
 * Events are in blocks of 256, some 7 bytes each: time and place in the file as differences, and
 * how many events later an allocation is gone. A block says by which event all that it allocated is
 * gone, so that a look goes past all blocks but those that made something which still lives.
 *
 * An allocation is gone when its address is taken back, or handed out again: then the event that
 * took it back is not in the profile.
 *
 * Threads    Immutable once made.
 */
#ifndef SHARD_MEMORY_INDEX_H
#define SHARD_MEMORY_INDEX_H

#include "shard/tools/memory.h"

struct memory_index_block;

struct memory_index {
    struct memory_index_block *blocks;
    size_t nblocks;
    uint64_t n; /* events */
};

/* changes: by time, below 2^32. False when an arena is spent. */
bool memory_index_make(struct memory_index *x, const struct memory_change *changes, size_t n,
                       struct xp_arena *scratch, struct xp_bump *out);

struct memory_moment {
    uint64_t number; /* of the event, from 0 */
    int64_t time_ps;
    uint64_t at;
};

/* The last event that is not after that time, nor, at that time, after `at` in the file. False:
 * there is none. */
bool memory_index_find(const struct memory_index *x, int64_t time_ps, uint64_t at,
                       struct memory_moment *m);

/* How many allocations are alive after an event; in `alive`, unless it is NULL, by time. */
size_t memory_index_alive(const struct memory_index *x, uint64_t number,
                          struct memory_moment *alive);

#endif
