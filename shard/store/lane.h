/* shard/store/lane.h - events that do not overlap, in order of time, packed.
 *
 * A line's events are dealt into lanes: an event goes to the lowest lane that is free at its
 * begin (the last event there ended at or before it). Properly nested events thus land at
 * their stack depth; partly overlapping ones get lanes of their own. Within a lane begins
 * ascend and no two events overlap, which makes a lane cheap to pack (the gap to the previous
 * end instead of a begin), to search (at most one event spans an instant) and to summarise.
 *
 * Format     Blocks of LANE_BLOCK events, four columns each: gap from the previous end, duration,
 *            name id, distance in the file from the previous event of the lane; a column's numbers
 *            are packed in as many bits as its block needs. 4 to 8 bytes an event on real profiles;
 *            measured against other layouts in docs/internals/store.md. Code outside store/ sees
 *            only cursors, so the format may change.
 * Views      Lines that are made of other lines' events (derive/) have blocks that say which events
 *            of another lane theirs begin and end with (lane_view.c): a third of the bytes. Readers
 *            cannot tell, but that such a block takes longer when it is read event by event.
 * Pyramid    Level 0 has one node a block, level k+1 one node for LANE_FAN nodes of level k, up
 *            to a single root.
 * Times      int64 picoseconds relative to the line's timestamp ("line time"); add
 *            line->base_ps for session time. Durations are >= 0 here: a negative or
 *            overflowing one in the file is kept as 0 / clamped and counted in the line.
 * Threads    A finished lane is immutable; cursors are independent.
 */
#ifndef SHARD_LANE_H
#define SHARD_LANE_H

#include "lib/base/arena.h"
#include "lib/base/status.h"

#define LANE_BLOCK 64
#define LANE_FAN 16
#define LANE_LEVELS 12
#define LANE_MAX 255 /* lanes a line; events that find none free go to the last and may overlap */

/* Line times are clamped to +-LANE_TIME_MAX, so that no difference of two overflows. */
#define LANE_TIME_MAX ((INT64_C(1) << 62) - 1)

/* An event before it is packed. */
struct lane_raw {
    int64_t begin_ps, end_ps;
    uint64_t at;
    uint32_t name;
};

struct lane_event {
    int64_t begin_ps, end_ps; /* line time */
    uint32_t name;            /* index into the plane's event metadata */
    uint64_t at;              /* offset of the XEvent message in the object: the event's id */
    uint64_t ord;             /* position in the lane */
};

/* The order of a line's events: by begin, the longer first, then as in the file. */
static inline bool lane_event_before(const struct lane_event *a, const struct lane_event *b)
{
    if (a->begin_ps != b->begin_ps)
        return a->begin_ps < b->begin_ps;
    if (a->end_ps != b->end_ps)
        return a->end_ps > b->end_ps;
    return a->at < b->at;
}

struct lane_node {
    int64_t begin_ps, end_ps; /* of the first and the last event below */
    int64_t busy_ps;          /* sum of durations below */
    int64_t max_gap_ps;       /* longest pause between neighbours below */
    uint64_t first, count;    /* events below: ordinals [first, first + count) */
    int64_t longest_ps;       /* the longest event below: its duration, begin, name, at */
    int64_t longest_begin_ps;
    uint32_t longest_name;
    uint64_t longest_at;
};

struct lane; /* see lane_int.h */

/* What a view is made of: */
struct lane_source {
    const struct lane *lane; /* no view itself */
    int64_t base_ps;         /* to add to its times */
    uint64_t id;             /* lane_id */
};

/* A number that nothing else of the process ever has; that of a lane. */
uint64_t lane_new_id(void);
uint64_t lane_id(const struct lane *l);

/* The event that a view's event begins or ends with: number of the source << 48 | ordinal. */
#define LANE_REF_NONE UINT64_MAX
#define LANE_REF(source, ord) ((uint64_t)(source) << 48 | (ord))

struct lane_ref {
    uint64_t first, last; /* LANE_REF_NONE: the event's times are its own */
    uint32_t cut_ns;      /* ends so much sooner than `last`, but not before its begin */
};

struct lane_view {
    struct lane_raw ev;
    struct lane_ref ref;
    int64_t group; /* its maker's own */
};

uint64_t lane_count(const struct lane *l);
/* First begin and last end; both 0 when empty. */
void lane_span(const struct lane *l, int64_t *begin_ps, int64_t *end_ps);

int lane_levels(const struct lane *l);                /* 0 when empty */
uint64_t lane_nodes(const struct lane *l, int level); /* nodes on a level */
void lane_node_get(const struct lane *l, int level, uint64_t i, struct lane_node *out);

/* Where a reader is in a block; for lane_pack.c and lane_view.c only. */
struct lane_unpack {
    const uint8_t *column[4];
    int64_t prev_end, gap_base;
    uint64_t prev_at, at_base, duration_base;
    const struct lane_source *source; /* of a view */
    uint32_t name_base, i;
    uint8_t width[4];
    uint8_t flags;
};

struct lane_cursor {
    const struct lane *lane;
    uint64_t block, ord;
    uint32_t left; /* events left in the block */
    struct lane_unpack unpack;
};

/* At the first event whose end is after t_ps (so also one that spans it), or, for events of no
 * length, whose begin is at or after t_ps. */
void lane_seek(struct lane_cursor *c, const struct lane *l, int64_t t_ps);
/* At event number ord (a block's begin is cheapest). */
void lane_seek_ord(struct lane_cursor *c, const struct lane *l, uint64_t ord);
/* The event at the cursor, which moves on; false at the end. */
bool lane_next(struct lane_cursor *c, struct lane_event *ev);
/* Decodes the rest of the cursor's block at once: up to LANE_BLOCK events; 0 at the end. */
size_t lane_next_block(struct lane_cursor *c, struct lane_event ev[LANE_BLOCK]);
/* Only the names, of events [block * LANE_BLOCK, ...): how many; 0 behind the end. A
 * quarter of the time. */
size_t lane_names(const struct lane *l, uint64_t block, uint32_t names[LANE_BLOCK]);

/* Begins that somebody looks for, in session time: each has two bits of one word, so that few
 * others are let through. */
struct lane_sieve {
    uint64_t *words; /* 2^(64 - shift) of them */
    unsigned shift;
    uint64_t id; /* lane_new_id: once it is used it stays as it is */
};

static inline uint64_t lane_sieve_hash(int64_t t)
{
    return (uint64_t)t * 0x9e3779b97f4a7c15;
}

static inline uint64_t lane_sieve_bits(uint64_t hash)
{
    return UINT64_C(1) << (hash >> 20 & 63) | UINT64_C(1) << (hash >> 26 & 63);
}

static inline bool lane_sieve_has(const struct lane_sieve *s, int64_t t)
{
    uint64_t hash = lane_sieve_hash(t), bits = lane_sieve_bits(hash);
    return (s->words[hash >> s->shift] & bits) == bits;
}

/* For those who look for few events of a block: with the cursor at its first event, those whose
 * begin the sieve lets through, when base_ps is added: how many, their positions in the block,
 * ascending, and begins in line time. The cursor stays there. Views that are read along with each
 * other and then their source look at each event of the source once. */
size_t lane_sift(const struct lane_cursor *c, const struct lane_sieve *s, int64_t base_ps,
                 uint8_t which[LANE_BLOCK], int64_t begins[LANE_BLOCK]);
/* These events, or some of them. */
void lane_pick(const struct lane_cursor *c, const int64_t *begins, const uint8_t *which, size_t n,
               struct lane_event *ev);
/* The first block that ends at or after t: events that begin then, or last until then, are in it
 * and later ones. The number of blocks where there is none. */
uint64_t lane_find_block(const struct lane *l, int64_t t_ps);
/* The begin of a block's first event. */
int64_t lane_block_begin(const struct lane *l, uint64_t block);
/* The offset in the file of a block's first event; of lanes from the file, no views. */
uint64_t lane_block_at(const struct lane *l, uint64_t block);

#endif
