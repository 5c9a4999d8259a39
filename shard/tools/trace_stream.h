/* shard/tools/trace_stream.h - the events of a row one by one, in XProf's order.
 *
 * The lanes of the row are merged: by begin, longer first, then by place in the file. With an
 * index, only events of the first layers that overlap a window come, and blocks that hold none are
 * stepped over.
 *
 *     while ((l = s.now)) { use trace_stream_event(l); trace_stream_step(&s); }
 *
 * One thread; a lane that is read takes 3 KB.
 */
#ifndef SHARD_TRACE_STREAM_H
#define SHARD_TRACE_STREAM_H

#include "shard/tools/trace.h"

struct trace_stream_lane {
    const struct trace_lane *lane;
    const struct lane *events; /* the lane's, or its sieve's */
    const uint32_t *ords;      /* of the sieve's events in the lane; NULL: they are the lane's */
    const struct trace_index_lane *index;
    struct lane_event ev[LANE_BLOCK];
    uint8_t take[LANE_BLOCK]; /* which of ev come */
    uint32_t i, n;            /* in take */
    uint64_t block, nblocks;  /* the next to load */
};

struct trace_stream {
    struct trace_stream_lane *lanes;
    int64_t *heads; /* session begin of each lane's event; INT64_MAX: none */
    uint32_t nlanes;
    int64_t begin_ps, end_ps;
    int layer;
    struct trace_stream_lane *now; /* whose event it is; NULL at the end */
};

/* win NULL: all events of the row, whether ever shown or not. False when memory is out. */
bool trace_stream_open(struct trace_stream *s, const struct trace_host *h, uint32_t row,
                       const struct trace_window *win);
void trace_stream_close(struct trace_stream *s);

static inline const struct lane_event *trace_stream_at(const struct trace_stream_lane *l)
{
    return &l->ev[l->take[l->i]];
}

static inline struct trace_event trace_stream_event(const struct trace_stream_lane *l)
{
    const struct lane_event *e = trace_stream_at(l);
    return (struct trace_event){.begin_ps = l->lane->base_ps + e->begin_ps,
                                .end_ps = l->lane->base_ps + e->end_ps,
                                .at = e->at,
                                .name = e->name,
                                .line = l->lane->line};
}

/* Its position in the lane. */
static inline uint64_t trace_stream_ord(const struct trace_stream_lane *l)
{
    uint64_t ord = trace_stream_at(l)->ord;
    return l->ords ? l->ords[ord] : ord;
}

void trace_stream_load(struct trace_stream *s, struct trace_stream_lane *l);
void trace_stream_pick(struct trace_stream *s);

static inline void trace_stream_step(struct trace_stream *s)
{
    struct trace_stream_lane *l = s->now;
    if (++l->i == l->n)
        trace_stream_load(s, l);
    else
        s->heads[l - s->lanes] = l->lane->base_ps + trace_stream_at(l)->begin_ps;
    if (s->nlanes > 1)
        trace_stream_pick(s);
    else if (l->i == l->n)
        s->now = NULL;
}

#endif
