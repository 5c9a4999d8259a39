/* shard/tools/trace_sieve.h - the events of a lane that a window shows, packed anew.
 *
 * A lane of many short events (the calls of a Python program) shows few of them in a window of some
 * size, but a few of nearly each block, all of which is unpacked for these. So such a lane has a
 * sieve: a lane of those events alone that are in the first layers. Windows that load no others
 * read it in the place of the lane.
 *
 * Order      trace_sieves_open with the row, _add with its events in order, _close: the lanes of
 * the index have their sieves then, or none where memory is out or too much would be kept.
 */
#ifndef SHARD_TRACE_SIEVE_H
#define SHARD_TRACE_SIEVE_H

#include "shard/tools/trace.h"

struct trace_sieve {
    struct trace_index_lane index; /* of its own events; serials: the lane's */
    const struct lane *lane;
    const uint32_t *ords; /* of its events in the lane */
    int layer;            /* the last that is in it */
};

struct sieve_lane;

struct trace_sieves {
    struct trace_index *x;
    const struct trace_row *row;
    struct xp_arena *scratch;
    struct xp_bump *out;
    int layer;                /* -1: none is made */
    struct sieve_lane *lanes; /* of the row */
};

void trace_sieves_open(struct trace_sieves *s, const struct trace_host *h,
                       const struct trace_row *row, struct trace_index *x, struct xp_bump *out);
/* An event of the row's lane i that is in layer z <= s->layer. */
void trace_sieves_add(struct trace_sieves *s, uint32_t i, const struct lane_event *ev, unsigned z);
void trace_sieves_close(struct trace_sieves *s);

#endif
