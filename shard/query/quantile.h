/* shard/query/quantile.h - quantiles of non-negative 64-bit values, when their number and range
 * are known before the first is added.
 *
 * Up to QUANTILE_EXACT values are kept and answered exactly (nearest rank); more go into
 * buckets, 64 to a power of two, whose middle is at most 1/128 off.
 */
#ifndef SHARD_QUERY_QUANTILE_H
#define SHARD_QUERY_QUANTILE_H

#include "lib/base/arena.h"

#define QUANTILE_EXACT 4096

struct quantile {
    uint64_t *exact;   /* NULL: in buckets */
    uint32_t *buckets; /* of values from `low` on */
    uint32_t low;      /* bucket number of the least value */
    uint64_t n, min, max;
};

/* n values between min and max are to come. False when the arena is spent. */
bool quantile_init(struct quantile *q, struct xp_arena *a, uint64_t n, uint64_t min, uint64_t max);

/* Values below 128 have a bucket each. */
static inline uint32_t quantile_bucket(uint64_t v)
{
    if (v < 128)
        return (uint32_t)v;
    uint32_t shift = (uint32_t)(57 - __builtin_clzll(v)); /* leaves 7 bits: 64..127 */
    return 64 * shift + (uint32_t)(v >> shift);
}

static inline void quantile_add(struct quantile *q, uint64_t v)
{
    if (q->exact)
        q->exact[q->n++] = v;
    else
        q->buckets[quantile_bucket(v) - q->low]++;
}

/* The value of rank ceil(percent / 100 * n). Reorders what is kept. */
uint64_t quantile_get(struct quantile *q, uint32_t percent);

#endif
