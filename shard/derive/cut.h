/* shard/derive/cut.h - a part as if only [t0, t1) of it had been captured.
 *
 * What looks at a part, for a report, looks at a cut one likewise: planes, names, statistics and
 * groups are those of the whole part; lines have the events that are in the range, which costs
 * what these cost and not what the part holds.
 *
 * Events     One that overlaps the range is there, its times cut to it. Where it begins before the
 *            range it is `carried`: its time counts, it itself was counted where it began
 *            (part_begins). So both times and numbers of [a, b) and [b, c) add up to those of [a,
 * c). One of no length is in the range that it begins in. Steps      Lines of steps have only those
 * that are wholly inside. Window     A line's begin_ps, end_ps are the whole line's, cut to the
 * range: how long its device was watched, whatever ran. Time       Of all events it is session
 * time, as the timeline shows it: also of TPU ops, whose device's own clock differs by picoseconds
 * and is not looked at. Groups     Those of the whole part, made at the first cut and kept with it.
 * Ownership  The cut one borrows from the whole one, which is pinned meanwhile, and else lives in
 *            the arena; cut_close before that goes.
 */
#ifndef SHARD_DERIVE_CUT_H
#define SHARD_DERIVE_CUT_H

#include "shard/derive/derive.h"

/* t0 < t1. The whole part is ready. XP_BUSY: memory. */
enum xp_status cut_open(struct part *whole, int64_t t0_ps, int64_t t1_ps, struct xp_arena *a,
                        struct part **out, struct xp_error *err);
/* NULL is fine. */
void cut_close(struct part *cut);

/* First begin and last end of all events; false if there are none. */
bool cut_extent(const struct part *p, int64_t *begin_ps, int64_t *end_ps);

#endif
