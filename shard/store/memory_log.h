/* shard/store/memory_log.h - what an allocator tells of each of its events: how much it handed out
 * or took back, where, and how much is in use after it.
 *
 * One packed stream a line, in file order, of the events that are named as allocations and
 * deallocations: some 16 bytes an event, where the file has 100 and more. A memory profile needs
 * these of every one of them; all else that they tell (who allocated, which shape) is read of the
 * few that are shown.
 *
 * Threads    Immutable once the line is published; cursors are independent.
 */
#ifndef SHARD_MEMORY_LOG_H
#define SHARD_MEMORY_LOG_H

#include "shard/store/chunks.h"

/* Fields that no stat tells are 0. Of stats that come twice the last counts. */
struct memory_row {
    uint64_t at;                   /* of the event in the file */
    int64_t begin_ps, duration_ps; /* line time */
    int64_t reserved, heap;        /* in use after it */
    int64_t allocated;             /* bytes handed out or taken back */
    uint64_t address;
    uint32_t allocator; /* its name, in the part's pool: a name, or a device's number as text */
    bool frees;
};

/* The stats that are kept. */
enum memory_stat {
    MEMORY_INDEX_ON_HOST,
    MEMORY_DEVICE_ORDINAL,
    MEMORY_ALLOCATOR_NAME,
    MEMORY_BYTES_RESERVED,
    MEMORY_BYTES_ALLOCATED,
    MEMORY_ALLOCATION_BYTES,
    MEMORY_ADDRESS,
    MEMORY_STATS
};
enum memory_stat memory_stat_of(struct xp_span name); /* MEMORY_STATS: none of them */

enum memory_act { MEMORY_NONE, MEMORY_ALLOCATES, MEMORY_FREES };
/* What events of a name do. */
enum memory_act memory_act_of(struct xp_span name);

struct memory_log {
    uint64_t count;
    const struct chunk *first;
};

struct memory_pen {
    struct memory_row prev;
    uint64_t count;
    struct chunks chunks;
};

void memory_pen_reset(struct memory_pen *pen);
/* Rows come in ascending order of at. False when the arena is spent. */
bool memory_pen_add(struct memory_pen *pen, const struct memory_row *row, struct xp_bump *out);
/* *log is NULL if nothing was added. */
bool memory_pen_end(struct memory_pen *pen, struct xp_bump *out, const struct memory_log **log);

struct memory_cursor {
    struct chunk_cursor at;
    struct memory_row row;
};

/* log may be NULL: nothing is there. */
void memory_log_open(struct memory_cursor *c, const struct memory_log *log);
/* The next is in c->row. False at the end. */
bool memory_log_next(struct memory_cursor *c);

/* Those that are in [t0, t1) of line time, cut to it: as events of a part that is cut to a range.
 */
bool memory_log_cut(const struct memory_log *log, int64_t t0_ps, int64_t t1_ps, struct xp_bump *out,
                    const struct memory_log **cut);

#endif
