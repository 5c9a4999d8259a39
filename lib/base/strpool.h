/* lib/base/strpool.h - strings kept once, named by 32-bit ids.
 *
 * Lives in an arena and dies with it. Id 0 is the empty string. Ids are dense, in order of
 * first appearance, and stay valid for the arena's life; the bytes too.
 *
 * Threads    One writer at a time. xp_strpool_get of an id that the caller was given in order (a
 *            published plane's) may run beside the writer; nothing else may.
 */
#ifndef XP_BASE_STRPOOL_H
#define XP_BASE_STRPOOL_H

#include "lib/base/arena.h"

struct xp_strpool {
    struct xp_bump bump;
    struct xp_span *strs;
    uint32_t n, cap;
    uint32_t *table; /* open addressing, id + 1; 0 is free */
    uint32_t mask;
};

#define XP_STRPOOL_FULL UINT32_MAX

/* False when the budget is spent. */
bool xp_strpool_init(struct xp_strpool *sp, struct xp_arena *a);

/* The id of s, added if new; XP_STRPOOL_FULL when the budget is spent. */
uint32_t xp_strpool_add(struct xp_strpool *sp, struct xp_span s);

/* The id of s, or XP_STRPOOL_FULL if it is not there. */
uint32_t xp_strpool_find(const struct xp_strpool *sp, struct xp_span s);

static inline struct xp_span xp_strpool_get(const struct xp_strpool *sp, uint32_t id)
{
    /* The array is published before the count: an id below the count is in it. */
    if (id >= __atomic_load_n(&sp->n, __ATOMIC_ACQUIRE))
        return (struct xp_span){0};
    return __atomic_load_n(&sp->strs, __ATOMIC_ACQUIRE)[id];
}

#endif
