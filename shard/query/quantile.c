#include "shard/query/quantile.h"

bool quantile_init(struct quantile *q, struct xp_arena *a, uint64_t n, uint64_t min, uint64_t max)
{
    *q = (struct quantile){.min = min, .max = max};
    if (n <= QUANTILE_EXACT) {
        q->exact = xp_arena_alloc(a, n * sizeof *q->exact + 1);
        return q->exact != NULL;
    }
    q->n = n;
    q->low = quantile_bucket(min);
    q->buckets = xp_arena_zalloc(a, (quantile_bucket(max) - q->low + 1) * sizeof *q->buckets);
    return q->buckets != NULL;
}

/* The k-th smallest of v[0..n) (Hoare's selection). */
static uint64_t select_kth(uint64_t *v, size_t n, size_t k)
{
    size_t lo = 0, hi = n - 1;
    while (lo < hi) {
        uint64_t pivot = v[lo + (hi - lo) / 2];
        size_t i = lo, j = hi;
        for (;;) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i >= j)
                break;
            uint64_t t = v[i];
            v[i++] = v[j];
            v[j--] = t;
        }
        if (k <= j)
            hi = j;
        else
            lo = j + 1;
    }
    return v[k];
}

/* The middle of a bucket. */
static uint64_t bucket_value(uint32_t bucket)
{
    if (bucket < 128)
        return bucket;
    uint32_t shift = bucket / 64 - 1;
    uint64_t low = (uint64_t)(bucket - 64 * shift) << shift;
    return low + (UINT64_C(1) << shift) / 2;
}

uint64_t quantile_get(struct quantile *q, uint32_t percent)
{
    if (!q->n)
        return 0;
    uint64_t rank = (uint64_t)(((unsigned __int128)q->n * percent + 99) / 100);
    rank = rank ? rank : 1;
    if (q->exact)
        return select_kth(q->exact, q->n, rank - 1);
    uint32_t i = 0;
    for (uint64_t seen = q->buckets[0]; seen < rank && i < quantile_bucket(q->max) - q->low;)
        seen += q->buckets[++i];
    uint64_t v = bucket_value(q->low + i);
    return v < q->min ? q->min : v > q->max ? q->max : v;
}
