/* shard/tools/trace_rank.h - the serial of every event, kept with the layers.
 *
 * Half a byte each, in index->lanes[].serials: 0 to 14, or that it has to be looked for
 * (trace_serial.c): it is larger, or events of that begin cannot be told apart.
 */
#ifndef SHARD_TRACE_RANK_H
#define SHARD_TRACE_RANK_H

#include "shard/tools/trace.h"

#define TRACE_RANK_NONE 15

/* Fills in the serials, which are all 0. False: there are too many lanes or events of one begin, or
 * memory is out; what was filled in is worth nothing then. */
bool trace_rank(struct trace_host *h, struct trace_index *x);

/* Looks up the answered events whose serial is kept, but was not taken along. False when memory is
 * out. */
bool trace_rank_find(struct trace_host *h);

static inline void trace_rank_take(const struct trace_index_lane *x, uint64_t ord,
                                   struct trace_event *e)
{
    uint32_t z = x->serials ? x->serials[ord / 2] >> (ord & 1) * 4 & 15 : TRACE_RANK_NONE;
    e->serial = z;
    e->ranked = z < TRACE_RANK_NONE;
}

#endif
