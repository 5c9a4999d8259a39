/* shard/tools/trace_vis.h - XProf's rule for what can be told apart in one row at one resolution.
 *
 * The row keeps a stack: the ends of the events shown last, by depth. An event is at the first
 * depth whose end lies not after its begin, and is shown if it is long enough, if nothing was shown
 * at its depth yet, or if it begins long enough after what was.
 */
#ifndef SHARD_TRACE_VIS_H
#define SHARD_TRACE_VIS_H

#include <stdbool.h>

#include "shard/derive/vec.h"

struct trace_vis_end {
    int64_t end_ps, least_ps; /* least: of this one and all before */
};

struct trace_vis {
    struct vec ends; /* struct trace_vis_end */
    int64_t last_flow;
    bool has_flow;
};

/* The first of n that ends, or has one before it that ends, at or before `t`; n: none does. */
static inline size_t trace_vis_first(const struct trace_vis *v, size_t n, int64_t t)
{
    const struct trace_vis_end *e = VEC(v->ends, struct trace_vis_end);
    size_t d = 0;
    while (d < n && d < 8) {
        if (e[d].end_ps <= t)
            return d;
        d++;
    }
    while (d < n) {
        size_t mid = d + (n - d) / 2;
        if (e[mid].least_ps > t)
            d = mid + 1;
        else
            n = mid;
    }
    return d;
}

static inline size_t trace_vis_depth(const struct trace_vis *v, int64_t begin_ps)
{
    return trace_vis_first(v, v->ends.n, begin_ps);
}

static inline bool trace_vis_apart(const struct trace_vis *v, size_t depth, int64_t begin_ps,
                                   int64_t resolution_ps)
{
    return depth == v->ends.n ||
           begin_ps - VEC(v->ends, struct trace_vis_end)[depth].end_ps >= resolution_ps;
}

/* Does the arrow of a flow end far enough from the one shown last? XProf's difference is unsigned:
 * an arrow that ends before the last one does is far from it. */
static inline bool trace_vis_flow_apart(const struct trace_vis *v, int64_t end_ps,
                                        int64_t resolution_ps)
{
    return !v->has_flow || (uint64_t)end_ps - (uint64_t)v->last_flow >= (uint64_t)resolution_ps;
}

/* False when memory is out. */
static inline bool trace_vis_show(struct trace_vis *v, size_t depth, int64_t end_ps)
{
    v->ends.n = depth;
    struct trace_vis_end *e = vec_push(&v->ends, sizeof *e);
    if (!e)
        return false;
    *e = (struct trace_vis_end){end_ps, depth && e[-1].least_ps < end_ps ? e[-1].least_ps : end_ps};
    return true;
}

#define TRACE_VIS_STEPS 64

/* The earliest begin, at or after now_ps, at which a short event would be shown; or one before it
 * that is easier to find. */
static inline int64_t trace_vis_next(const struct trace_vis *v, int64_t now_ps,
                                     int64_t resolution_ps)
{
    const struct trace_vis_end *e = VEC(v->ends, struct trace_vis_end);
    size_t d = trace_vis_depth(v, now_ps);
    if (d == v->ends.n)
        return now_ps;
    for (int steps = 0; steps < TRACE_VIS_STEPS; steps++) {
        int64_t at = e[d].end_ps + resolution_ps;
        if (!d || at < e[d - 1].least_ps)
            return at > now_ps ? at : now_ps;
        d = trace_vis_first(v, d, e[d - 1].least_ps);
    }
    return e[d].end_ps > now_ps ? e[d].end_ps : now_ps;
}

#endif
