/* shard/tools/trace_rank.h - the serial of every event, kept with the layers.
 *
 * Half a byte each, in index->lanes[].serials: 0 to 14, or that it has to be looked for
 * (trace_serial.c): it is larger, or events of that begin cannot be told apart.
 *
 * The trace is cut into slices of time; those that a window touches are numbered when the first
 * one does. Events that begin in others, and are shown because they reach into the window, are
 * looked for.
 *
 * Threads    Any. One numbers at a time; the bytes are atomic, as neighbours share one.
 */
#ifndef SHARD_TRACE_RANK_H
#define SHARD_TRACE_RANK_H

#include <pthread.h>
#include <stdatomic.h>

#include "shard/tools/trace.h"

#define TRACE_RANK_NONE 15
#define TRACE_RANK_SLICES 1024

struct trace_ranks {
    pthread_mutex_t lock; /* who numbers; lives as long as the part, and is never destroyed */
    bool broken;          /* under it: what was numbered is all there will be */
    int64_t begin_ps;
    unsigned shift; /* a slice is 1 << shift ps long */
    _Atomic uint64_t made[TRACE_RANK_SLICES / 64];
};

/* NULL: no memory. */
struct trace_ranks *trace_ranks_new(const struct trace_host *h, struct xp_arena *arena);

/* Numbers what begins in the slices of [begin_ps, end_ps], as far as that was not done before. Goes
 * without where there are too many lanes or events of one begin, or memory is out. */
void trace_rank(struct trace_host *h, int64_t begin_ps, int64_t end_ps);

/* Looks up the answered events whose serial is kept, but was not taken along. False when memory is
 * out. */
bool trace_rank_find(struct trace_host *h);

/* The slice of events that begin at t; TRACE_RANK_SLICES and more: none. */
static inline uint64_t trace_rank_slice(const struct trace_ranks *r, int64_t t)
{
    return ((uint64_t)t - (uint64_t)r->begin_ps) >> r->shift;
}

static inline bool trace_rank_made(const struct trace_ranks *r, uint64_t slice)
{
    return slice < TRACE_RANK_SLICES &&
           (atomic_load_explicit(&r->made[slice / 64], memory_order_acquire) >> slice % 64 & 1);
}

static inline void trace_rank_take(const struct trace_index *x, const struct trace_index_lane *l,
                                   uint64_t ord, struct trace_event *e)
{
    uint32_t z = TRACE_RANK_NONE;
    if (x->ranks && trace_rank_made(x->ranks, trace_rank_slice(x->ranks, e->begin_ps)))
        z = atomic_load_explicit(&l->serials[ord / 2], memory_order_relaxed) >> (ord & 1) * 4 & 15;
    e->serial = z;
    e->ranked = z < TRACE_RANK_NONE;
}

#endif
