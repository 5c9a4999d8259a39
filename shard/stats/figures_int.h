/* shard/stats/figures_int.h - what the files of figures share. */
#ifndef SHARD_FIGURES_INT_H
#define SHARD_FIGURES_INT_H

#include "shard/derive/vec.h"
#include "shard/stats/figures.h"

enum { FIGURE_NAME_WAIT = 1, FIGURE_NAME_SYNC = 2, FIGURE_NAME_INFEED = 4 };

/* Bits of what an op of that name does. */
uint8_t figure_name_of(struct xp_span name);

/* While a host is looked at. */
struct figure_build {
    struct part *part;
    const struct derive *d;
    struct xp_span marker;
    struct figure_host *host;
    const struct figure_host *whole; /* of a part that is cut to a range: the whole one's */
    struct xp_bump bump;
    struct xp_arena *scratch;
    struct vec inputs;  /* struct figure_span, united */
    struct vec syncs;   /* struct figure_sync */
    struct vec modules; /* struct figure_module */
    struct xp_error *err;
};

enum xp_status figure_busy(struct xp_error *err);

/* --- figures_spans.c: intervals, struct figure_span --- */

/* One more, which often touches the last. False: memory is out. */
static inline bool figure_push(struct vec *v, int64_t begin_ps, int64_t end_ps)
{
    struct figure_span *last = v->n ? &VEC(*v, struct figure_span)[v->n - 1] : NULL;
    if (last && begin_ps >= last->begin_ps && begin_ps <= last->end_ps) {
        if (end_ps > last->end_ps)
            last->end_ps = end_ps;
        return true;
    }
    struct figure_span *s = vec_push(v, sizeof *s);
    if (s)
        *s = (struct figure_span){begin_ps, end_ps};
    return s;
}

/* A lane's events, in order, are joined to what its line's outer lanes cover. They lie within that
 * but for those that end later: to unite after each lane keeps the list short. */
struct figure_join {
    struct vec *spans;
    size_t united, at; /* the first of them are united; where the last event was sought */
    bool deeper;
};
struct figure_join figure_join_lane(struct vec *spans, uint32_t lane);
void figure_join_end(struct figure_join *j);

/* Is all of it covered already? Begins ascend from call to call. */
static inline bool figure_joined(struct figure_join *j, int64_t begin_ps, int64_t end_ps)
{
    const struct figure_span *v = VEC(*j->spans, struct figure_span);
    while (j->at < j->united && v[j->at].end_ps <= begin_ps)
        ++j->at;
    return j->at < j->united && v[j->at].begin_ps <= begin_ps && end_ps <= v[j->at].end_ps;
}

static inline bool figure_join(struct figure_join *j, int64_t begin_ps, int64_t end_ps)
{
    return figure_joined(j, begin_ps, end_ps) || figure_push(j->spans, begin_ps, end_ps);
}

/* figures_steps.c: the core's steps; in `steps`, struct figure_step in order of begin. */
enum xp_status figure_marked_steps(struct figure_build *b, uint32_t plane, struct vec *steps);
/* Runs of modules of the plane, counted in b->modules. */
enum xp_status figure_count_modules(struct figure_build *b, uint32_t plane);
/* "jit_f(123)" -> "jit_f" */
struct xp_span figure_plain(struct xp_span name);
/* The module that steps are inferred from: the one asked for, or that of the most time. */
void figure_choose_module(struct figure_build *b);
enum xp_status figure_module_steps(struct figure_build *b, uint32_t plane, struct vec *steps);
/* Events of host threads called b->marker. */
enum xp_status figure_event_steps(struct figure_build *b, struct vec *steps);
/* Of GPUs and CPUs, from stats/steps.h. */
enum xp_status figure_host_steps(struct figure_build *b, bool with_input, struct vec *steps);
/* Order, numbers, until_ps, whole; no more than FIGURE_STEPS_MAX. */
void figure_finish_steps(struct figure_build *b, struct vec *steps, bool device_marked);

static inline bool figure_is_sparse(struct xp_span plane)
{
    return xp_span_has(plane, XP_SPAN_LIT(" SparseCore "));
}

#endif
