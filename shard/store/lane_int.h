/* shard/store/lane_int.h - what lane.c, its packers and line_builder.c share.
 *
 * A lane is a directory of blocks, each block a few hundred packed bytes somewhere in the
 * part's arena. The directory is cut into segments of LANE_SEG blocks so that it grows without
 * ever being copied. Above it lie the pyramid's upper levels, one array, level 1 first.
 *
 * A pen stages one block of one lane unpacked and writes it out when it is full; its memory is
 * scratch and is used again for the next line.
 */
#ifndef SHARD_LANE_INT_H
#define SHARD_LANE_INT_H

#include "lib/base/pb_wire.h"
#include "shard/store/lane.h"

#define LANE_SEG 64

struct lane_block {
    const uint8_t *data;
    int64_t begin_ps, end_ps;
    int64_t busy_ps, max_gap_ps;
    int64_t longest_ps, longest_begin_ps;
    uint64_t first_at, longest_at;
    uint32_t longest_name;
    uint16_t bytes;
    uint8_t count; /* 1..LANE_BLOCK */
    uint8_t flags; /* LANE_VIEW, or of lane_pack.c */
};

#define LANE_VIEW 0x80 /* lane_view.c: first_at is the ordinal that the first event begins with */

/* A node of level 1 and up; its place in the level tells what it spans. */
struct lane_up {
    int64_t begin_ps, end_ps;
    int64_t busy_ps, max_gap_ps;
    int64_t longest_ps, longest_begin_ps;
    uint64_t longest_at;
    uint32_t longest_name;
};

struct lane {
    uint64_t count, nblocks, id;
    struct lane_block **segs;
    struct lane_up *up;
    int levels;
};

static inline const struct lane_block *lane_block(const struct lane *l, uint64_t i)
{
    return &l->segs[i / LANE_SEG][i % LANE_SEG];
}

/* Readers come for the next block soon, and mostly find it in memory only. */
static inline void lane_block_ahead(const struct lane *l, uint64_t i)
{
    if (i + 1 < l->nblocks) {
        const struct lane_block *b = lane_block(l, i + 1);
        for (unsigned at = 0; at < b->bytes; at += 64)
            __builtin_prefetch(b->data + at);
    }
}

static inline int64_t lane_add_sat(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* --- lane_pack.c: the bytes of one block --- */

/* Room a packed block may need, with what the packer writes past its end. */
#define LANE_PACK_MAX (LANE_BLOCK * 32 + 64)
/* Bytes that must be readable behind a packed block. */
#define LANE_PACK_PAD 8

/* A block's numbers by column; entries behind the last event repeat it, so that loops are of one
 * length. */
struct lane_columns {
    int64_t v[4][LANE_BLOCK];
    int64_t low[4], high[4]; /* of the last two: lane_pack's */
};

/* Sums ev[0..n) up in the block, and keeps the times for lane_pack. */
void lane_measure(const struct lane_raw *ev, uint32_t n, struct lane_block *b,
                  struct lane_columns *c);
/* Packs what was measured to out; sets b->flags. Returns the bytes used. */
size_t lane_pack(const struct lane_raw *ev, uint32_t n, struct lane_columns *c,
                 struct lane_block *b, uint8_t *out);
/* The two without what only some CPUs have; same bytes. */
void lane_measure_plain(const struct lane_raw *ev, uint32_t n, struct lane_block *b,
                        struct lane_columns *c);
size_t lane_pack_plain(const struct lane_raw *ev, uint32_t n, struct lane_columns *c,
                       struct lane_block *b, uint8_t *out);

void lane_unpack_open(struct lane_unpack *u, const struct lane_block *b);
/* The events of the block one by one, or many at once. */
void lane_unpack_next(struct lane_unpack *u, struct lane_event *ev);
void lane_unpack_many(struct lane_unpack *u, struct lane_event *ev, size_t n, uint64_t ord);
/* The names of all events of a block. */
void lane_unpack_names(const struct lane_block *b, uint32_t *names);
/* Of an opened block: the begins of all n events, then some events of these begins. */
void lane_unpack_begins(const struct lane_unpack *u, int64_t *begins, size_t n);
void lane_unpack_pick(const struct lane_unpack *u, const int64_t *begins, const uint8_t *which,
                      size_t n, struct lane_event *ev);
void lane_unpack_times(const struct lane_block *b, int64_t *begins, int64_t *ends);

/* --- lane_view.c: blocks of events that begin and end with events of another lane --- */

/* The same as lane_pack, for events with `at` 0. Returns 0 if such a block cannot say it, or not
 * for less. */
size_t lane_view_pack(const struct lane_raw *ev, const struct lane_ref *ref, uint32_t n,
                      const struct lane_source *sources, struct lane_block *b, uint8_t *out);
void lane_view_open(struct lane_unpack *u, const struct lane_block *b);
void lane_view_skip(struct lane_unpack *u, uint32_t n);
void lane_view_next(struct lane_unpack *u, struct lane_event *ev);
void lane_view_many(struct lane_unpack *u, struct lane_event *ev, size_t n, uint64_t ord);
void lane_view_names(const struct lane_block *b, uint32_t *names);
size_t lane_view_sift(const struct lane_unpack *u, size_t n, const struct lane_sieve *s,
                      int64_t base_ps, uint8_t *which, int64_t *begins);
/* Begins of a block that was unpacked for a view, and which of them the sieve lets through; NULL:
 * it was not. */
const int64_t *lane_view_known(uint64_t id, uint64_t block, const struct lane_sieve *s,
                               int64_t base_ps, uint64_t *may);
void lane_view_pick(const struct lane_unpack *u, const int64_t *begins, const uint8_t *which,
                    size_t n, struct lane_event *ev);

/* --- line_builder.c --- */

struct lane_pen {
    struct lane_raw ev[LANE_BLOCK];
    struct lane_ref ref[LANE_BLOCK]; /* of a view only */
    struct lane_block blk[LANE_SEG];
    uint32_t n, nblk; /* staged events, blocks of the open segment */
    struct lane_block **segs;
    uint32_t nsegs, cap;
    int64_t last_end; /* of the blocks so far: ends never fall, so that they can be searched */
    const struct lane_source *sources; /* NULL: not a view */
};

void lane_pen_reset(struct lane_pen *pen);
/* False when the arena is spent. */
bool lane_pen_add(struct lane_pen *pen, const struct lane_raw *ev, struct xp_arena *scratch,
                  struct xp_bump *out);
/* Closes the lane; NULL when the arena is spent. The pen is empty again. */
struct lane *lane_pen_end(struct lane_pen *pen, struct xp_arena *scratch, struct xp_bump *out);

struct line_builder;
/* Forgets what was added. */
void line_builder_reset(struct line_builder *b);

#endif
