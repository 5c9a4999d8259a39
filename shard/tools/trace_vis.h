/* shard/tools/trace_vis.h - XProf's rule for what can be told apart in one row at one resolution.
 *
 * The row keeps a stack: the ends of the events shown last, by depth. An event is at the first
 * depth whose end lies not after its begin, and is shown if it is long enough, if nothing was shown
 * at its depth yet, or if it begins long enough after what was.
 */
#ifndef SHARD_TRACE_VIS_H
#define SHARD_TRACE_VIS_H

#include "shard/derive/vec.h"

struct trace_vis {
    struct vec ends; /* int64_t */
    int64_t last_flow;
    bool has_flow;
};

static inline size_t trace_vis_depth(const struct trace_vis *v, int64_t begin_ps)
{
    const int64_t *e = VEC(v->ends, int64_t);
    size_t d = 0;
    while (d < v->ends.n && e[d] > begin_ps)
        d++;
    return d;
}

static inline bool trace_vis_apart(const struct trace_vis *v, size_t depth, int64_t begin_ps,
                                   int64_t resolution_ps)
{
    return depth == v->ends.n || begin_ps - VEC(v->ends, int64_t)[depth] >= resolution_ps;
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
    int64_t *e = vec_push(&v->ends, sizeof *e);
    if (e)
        *e = end_ps;
    return e != NULL;
}

/* The earliest begin, at or after now_ps, at which a short event would be shown. */
static inline int64_t trace_vis_next(const struct trace_vis *v, int64_t now_ps,
                                     int64_t resolution_ps)
{
    const int64_t *e = VEC(v->ends, int64_t);
    size_t d = trace_vis_depth(v, now_ps);
    if (d == v->ends.n)
        return now_ps;
    for (;;) {
        int64_t at = e[d] + resolution_ps, until = INT64_MAX;
        size_t above = d;
        for (size_t i = 0; i < d; i++)
            if (e[i] < until) {
                until = e[i];
                above = i;
            }
        if (at < until || above == d)
            return at > now_ps ? at : now_ps;
        d = above;
    }
}

#endif
