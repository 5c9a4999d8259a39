/* shard/tools/trace_pile.h - the stack of trace_vis.h for events that come in order of time.
 *
 * What begins later is never deeper than what an earlier look found, until something is shown: so
 * the depth is kept, and goes down step by step. A row that is not in order says so at each look.
 */
#ifndef SHARD_TRACE_PILE_H
#define SHARD_TRACE_PILE_H

#include <string.h>

#include "shard/tools/trace_vis.h"

struct trace_pile {
    struct trace_vis_end *e;
    uint32_t n, cap; /* shown at depths 0..n */
    uint32_t depth;  /* of the last look */
};

static inline uint32_t trace_pile_depth(struct trace_pile *p, int64_t begin_ps, bool in_order)
{
    uint32_t d = in_order ? p->depth : p->n;
    while (d && p->e[d - 1].least_ps <= begin_ps)
        d--;
    return p->depth = d;
}

/* Is an event at the depth of the last look far enough from what was shown there? */
static inline bool trace_pile_apart(const struct trace_pile *p, int64_t begin_ps,
                                    int64_t resolution_ps)
{
    return p->depth == p->n || begin_ps - p->e[p->depth].end_ps >= resolution_ps;
}

static inline bool trace_pile_reserve(struct trace_pile *p, uint32_t cap)
{
    struct trace_vis_end *e = realloc(p->e, cap * sizeof *e);
    if (!e)
        return false;
    p->e = e;
    p->cap = cap;
    return true;
}

/* Shows an event at the depth of the last look. False when memory is out. */
static inline bool trace_pile_show(struct trace_pile *p, int64_t end_ps)
{
    uint32_t d = p->depth;
    if (d == p->cap && !trace_pile_reserve(p, p->cap ? p->cap * 2 : 16))
        return false;
    int64_t least = d && p->e[d - 1].least_ps < end_ps ? p->e[d - 1].least_ps : end_ps;
    p->e[d] = (struct trace_vis_end){end_ps, least};
    p->n = p->depth = d + 1;
    return true;
}

/* False when memory is out. */
static inline bool trace_pile_copy(struct trace_pile *to, const struct trace_pile *from)
{
    if (to->cap < from->n && !trace_pile_reserve(to, from->cap))
        return false;
    if (from->n)
        memcpy(to->e, from->e, from->n * sizeof *to->e);
    to->n = from->n;
    to->depth = from->depth;
    return true;
}

#endif
