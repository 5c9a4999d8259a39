/* shard/lod/lod.h - a stretch of a lane as the rectangles that pixels can show.
 *
 * Walks a lane's pyramid from the top: a node that spans less than a cell becomes one
 * rectangle without looking below it, anything wider is looked into, down to single events. Time
 * is cut into cells of cell_ps, the same cells whatever the window, so that panning does not
 * regroup what stays in view. Events shorter than a cell that begin in the same cell share a
 * rectangle; a longer one stands alone. So there are at most two rectangles a cell, and the work
 * is proportional to cells, not to events.
 *
 * Exactness  Every event of the range is behind exactly one rectangle: counts add up. A rectangle
 *            lies from the begin of the first to the end of the last event behind it, in line
 *            time, and carries name and id of the longest. Rectangles ascend and do not
 *            overlap, also where the lane's events do (lane LANE_MAX - 1).
 * Dense      A node up to dense_ps wide whose events and gaps are all at most half of pixel_ps
 *            looks solid at any finer cut: it stays one rectangle.
 */
#ifndef SHARD_LOD_H
#define SHARD_LOD_H

#include "shard/store/lane.h"

struct lod_rect {
    int64_t begin_ps, end_ps; /* line time */
    int64_t busy_ps;          /* sum of the durations behind it */
    int64_t longest_ps;
    uint64_t count;
    uint64_t id;    /* of the longest event: its offset, or its number in the lane */
    uint32_t name;  /* of the longest event */
    uint32_t label; /* for the user of the rectangle */
};

/* Rectangles of many lanes, one after the other. */
struct lod_rects {
    struct xp_arena *a;
    struct lod_rect *v;
    size_t n, cap;
    bool numbers; /* ids are the events' numbers in the lane, not their offsets: see lod_number */
};

struct lod_scale {
    uint64_t cell_ps;  /* 0: every event by itself */
    uint64_t pixel_ps; /* for `Dense` */
    uint64_t dense_ps; /* 0: never */
};

/* The events that overlap [t0, t1) are numbers [*first, *last) of the lane. An event of no length
 * overlaps when it lies in the window. (In an overflow lane events that ended before t0 may be
 * among them.) */
void lod_range(const struct lane *l, int64_t t0_ps, int64_t t1_ps, uint64_t *first, uint64_t *last);

/* Appends the rectangles of events [first, last). False when the arena is spent. */
bool lod_walk(const struct lane *l, uint64_t first, uint64_t last, const struct lod_scale *s,
              struct lod_rects *out);

/* Merges the n rectangles of one lane into wider cells, in place; returns how many are left. */
size_t lod_merge(struct lod_rect *v, size_t n, uint64_t cell_ps);

/* To be called on the n rectangles of a lane that was walked with `numbers`, before their ids are
 * used; they may have been merged meanwhile. */
void lod_number(const struct lane *l, struct lod_rect *v, size_t n);

/* Sum of the durations of events [first, last), by whole nodes where possible. */
int64_t lod_busy(const struct lane *l, uint64_t first, uint64_t last);

/* What a lane will cost at any cell width: count events in span_ps ps of busy time. */
struct lod_sample {
    uint64_t count, span_ps;
};
#define LOD_SAMPLES 40
/* Writes up to LOD_SAMPLES of them for events [first, last); returns how many. */
size_t lod_sample(const struct lane *l, uint64_t first, uint64_t last, struct lod_sample *out);
/* Rectangles to be expected of n samples. */
uint64_t lod_expect(const struct lod_sample *v, size_t n, uint64_t cell_ps);

#endif
