/* shard/store/device.h - when a TPU line's events ran by the device's own clock.
 *
 * A TPU op carries that time in two stats besides the time that the host's tools shifted it to:
 * starts differ by an amount that rarely changes, lengths by the device's ticks, and sometimes by
 * a lot. What differs is kept here, two bytes an event, in file order; a line whose events
 * all differ by one shift keeps nothing but that.
 *
 * The pen sees a line's events in file order. The cursor gives the times of a line whose events
 * come in file order (line->sorted); those of other lines are put into that order first.
 * Differences wrap, so that times out of any range come back as they were.
 */
#ifndef SHARD_DEVICE_H
#define SHARD_DEVICE_H

#include "shard/store/chunks.h"

struct device_times {
    uint64_t shift;            /* of the first event: device time - line time */
    const struct chunk *first; /* NULL: all events have that shift, and their own length */
};

struct device_pen {
    bool any; /* an event was added */
    uint64_t shift, first_shift;
    uint64_t same; /* events so far that the shift alone tells; none is written yet */
    struct chunks chunks;
};

void device_pen_reset(struct device_pen *pen);
/* Out of line: an event that needs bytes. False when the arena is spent. */
bool device_pen_write(struct device_pen *pen, struct xp_bump *out, uint64_t shift, uint64_t longer);

static inline bool device_pen_add(struct device_pen *pen, struct xp_bump *out, uint64_t shift,
                                  uint64_t longer)
{
    if (!pen->any) {
        pen->any = true;
        pen->shift = pen->first_shift = shift;
    }
    if (!pen->chunks.first && shift == pen->shift && !longer) {
        pen->same++;
        return true;
    }
    return device_pen_write(pen, out, shift, longer);
}

/* NULL in *times: no event was added. */
bool device_pen_end(struct device_pen *pen, struct xp_bump *out, const struct device_times **times);

struct device_cursor {
    struct chunk_cursor at;
    uint64_t shift;
};

/* times may be NULL: device time is session time. base_ps: session time of line time 0. */
void device_open(struct device_cursor *c, const struct device_times *times, int64_t base_ps);
/* Of the next event in file order: what to add to its line time and its length. */
void device_next(struct device_cursor *c, uint64_t *shift, uint64_t *longer);

#endif
