/* shard/store/side.h - the event stats that are kept, beside the events.
 *
 * One packed stream a line, in file order: for each event that has stats of a kind listed in
 * stat_kinds.def, its offset in the file and those stats. Strings are ids of the part's pool
 * (a reference to a stat's name is resolved to that name). Events without such stats cost
 * nothing. Stats of the event's metadata are not repeated here.
 *
 * Threads    Immutable once the line is published; cursors are independent.
 */
#ifndef SHARD_SIDE_H
#define SHARD_SIDE_H

#include "lib/base/arena.h"

enum stat_kind {
#define KIND(id, name) STAT_##id,
#include "shard/store/stat_kinds.def"
#undef KIND
    STAT_KIND_COUNT,
    STAT_NOT_KEPT = 255
};

enum side_type { SIDE_U64, SIDE_I64, SIDE_DOUBLE, SIDE_STR };

struct side_stat {
    uint8_t kind; /* enum stat_kind */
    uint8_t type; /* enum side_type */
    uint64_t num; /* value, bits of the double, or string id */
};

#define SIDE_MAX 32 /* stats an event; further ones are not kept */

struct side; /* see side_int.h; NULL in a line that has none */

struct side_cursor {
    const struct side *side;
    const uint8_t *p, *end;
    uint64_t block; /* which checkpoint p is after */
    uint64_t at;    /* of the event decoded last */
    uint64_t prev_at;
    int n;
    bool have;
    struct side_stat stats[SIDE_MAX];
};

/* Bit k: some event has a stat of kind k. 0 where side is NULL. */
uint64_t side_kinds(const struct side *side);
/* Bit k: some stat of kind k is 0. */
uint64_t side_zeros(const struct side *side);
/* How many events have stats at all; how many have one of this kind. */
uint64_t side_events(const struct side *side);
uint64_t side_count(const struct side *side, enum stat_kind kind);

/* side may be NULL: then nothing is ever found. */
void side_open(struct side_cursor *c, const struct side *side);
/* The next event that has stats, in file order: c->at, c->n, c->stats. False at the end. */
bool side_next(struct side_cursor *c);
/* The stats of the event at file offset `at`: c->n, c->stats; false if it has none (c->n is 0
 * then). Cheapest for ascending `at`; any order works. */
bool side_find(struct side_cursor *c, uint64_t at);
/* Of the stats found last, the one of this kind; NULL if there is none. */
const struct side_stat *side_get(const struct side_cursor *c, enum stat_kind kind);

/* A stream of the stats of these events only; at: ascending. *picked is NULL if they have none.
 * *pen: NULL at first, then for side after side. False when an arena is spent. */
struct side_pen;
bool side_pick(const struct side *side, const uint64_t *at, size_t n, struct side_pen **pen,
               struct xp_arena *scratch, struct xp_bump *out, const struct side **picked);

const char *stat_kind_name(enum stat_kind kind);
enum stat_kind stat_kind_of(struct xp_span name); /* STAT_NOT_KEPT */

#endif
