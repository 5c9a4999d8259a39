/* shard/store/side_int.h - how a side stream is laid out, and the pen that writes it.
 *
 * Blocks of SIDE_BLOCK events. Per event: varint distance in the file from the previous event
 * (the first of a block: 0), a byte with the number of stats, and per stat a byte kind * 4 +
 * type and the value: varint, zigzag varint for I64, 8 bytes for DOUBLE.
 */
#ifndef SHARD_SIDE_INT_H
#define SHARD_SIDE_INT_H

#include "lib/base/pb_wire.h"
#include "shard/store/side.h"

#define SIDE_BLOCK 64
#define SIDE_SEG 64

_Static_assert(STAT_KIND_COUNT <= 64, "kind and type share a byte");

struct side_block {
    const uint8_t *data;
    uint64_t first_at;
    uint32_t bytes;
    uint32_t count;
};

struct side {
    uint64_t count, nblocks;
    uint64_t kinds;         /* bit k: some event has that kind */
    uint64_t zeros;         /* bit k: and a 0 there */
    const uint64_t *counts; /* of the kinds there are, ascending: events that have it */
    struct side_block **segs;
};

static inline const struct side_block *side_block(const struct side *s, uint64_t i)
{
    return &s->segs[i / SIDE_SEG][i % SIDE_SEG];
}

/* Room for one event: distance, number, SIDE_MAX times kind and value. */
#define SIDE_EVENT_MAX (XP_VARINT_MAX + 1 + SIDE_MAX * (1 + XP_VARINT_MAX))

struct side_pen {
    uint8_t *buf; /* one block; scratch, made at the first event */
    size_t used;
    uint64_t first_at, prev_at, kinds, zeros;
    uint64_t counts[STAT_KIND_COUNT];
    uint32_t n, nblk;
    struct side_block blk[SIDE_SEG];
    struct side_block **segs;
    uint32_t nsegs, cap;
};

void side_pen_init(struct side_pen *pen);
void side_pen_reset(struct side_pen *pen);
/* Events come in ascending order of at. False when an arena is spent. */
bool side_pen_add(struct side_pen *pen, uint64_t at, const struct side_stat *stats, int n,
                  struct xp_arena *scratch, struct xp_bump *out);
/* Closes the stream: *side is NULL if nothing was added. False when an arena is spent. */
bool side_pen_end(struct side_pen *pen, struct xp_arena *scratch, struct xp_bump *out,
                  const struct side **side);

#endif
