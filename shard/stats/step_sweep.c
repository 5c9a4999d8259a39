#include <stdlib.h>

#include "shard/stats/steps.h"

/* A begin or an end as one number, whose order is that of the sweep: by time, ends before begins,
 * higher types first.
 *
 * XProf's order has an odd effect, which is kept: an event of no length ends before it begins, so
 * that its type stays the current one until the next event of that type ends. */
#define TYPE_BITS 5
#define TYPE_MASK ((1u << TYPE_BITS) - 1)
#define BEGIN_BIT (UINT64_C(1) << TYPE_BITS)
#define TIME_SHIFT (TYPE_BITS + 1)
#define TIME_MAX (UINT64_MAX >> TIME_SHIFT)
#define SMALL 256 /* keys that qsort orders faster than counting does */

static uint64_t key_of(uint64_t time, bool begin, uint8_t type)
{
    return (time < TIME_MAX ? time : TIME_MAX) << TIME_SHIFT | (begin ? BEGIN_BIT : 0) |
           (TYPE_MASK - type);
}

static int key_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Counting sort by bytes, lowest first; bytes that all keys share cost one look. */
static void sort_keys(uint64_t *keys, uint64_t *temp, size_t n)
{
    if (n <= SMALL) {
        qsort(keys, n, sizeof *keys, key_order);
        return;
    }
    uint64_t *from = keys, *to = temp;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t count[257] = {0};
        for (size_t i = 0; i < n; i++)
            count[(from[i] >> shift & 255) + 1]++;
        if (count[(from[0] >> shift & 255) + 1] == n)
            continue;
        for (unsigned b = 0; b < 256; b++)
            count[b + 1] += count[b];
        for (size_t i = 0; i < n; i++)
            to[count[from[i] >> shift & 255]++] = from[i];
        uint64_t *t = from;
        from = to;
        to = t;
    }
    if (from != keys)
        memcpy(keys, from, n * sizeof *keys);
}

static uint64_t overlap(uint64_t a_begin, uint64_t a_end, uint64_t b_begin, uint64_t b_end)
{
    uint64_t begin = a_begin > b_begin ? a_begin : b_begin;
    uint64_t end = a_end < b_end ? a_end : b_end;
    return begin < end ? end - begin : 0;
}

struct tracker {
    int64_t count[STEP_TYPES];
    int current;
};

static int track(struct tracker *t, uint64_t key)
{
    int type = (int)(TYPE_MASK - (key & TYPE_MASK));
    if (key & BEGIN_BIT) {
        t->count[type]++;
        if (type > t->current)
            t->current = type;
    } else if (--t->count[type] == 0 && type == t->current) {
        while (--type > STEP_UNKNOWN && t->count[type] <= 0)
            ;
        t->current = type > STEP_UNKNOWN ? type : STEP_UNKNOWN;
    }
    return t->current;
}

static void sweep(const uint64_t *keys, size_t n, uint64_t base, uint64_t begin_ps, uint64_t end_ps,
                  struct step_mix *out)
{
    struct tracker t = {.current = STEP_UNKNOWN};
    for (size_t i = 0; i + 1 < n; i++) {
        int type = track(&t, keys[i]);
        uint64_t from = base + (keys[i] >> TIME_SHIFT), to = base + (keys[i + 1] >> TIME_SHIFT);
        out->seen[type] = true;
        out->all_ps[type] += to - from;
        out->within_ps[type] += overlap(from, to, begin_ps, end_ps);
    }
}

enum xp_status step_sweep(const struct step_span *spans, size_t n, uint64_t begin_ps,
                          uint64_t end_ps, struct step_mix *out, struct xp_error *err)
{
    *out = (struct step_mix){0};
    if (!n)
        return XP_OK;
    uint64_t *keys = n <= SIZE_MAX / 32 ? malloc(n * 4 * sizeof *keys) : NULL;
    if (!keys)
        return xp_fail(err, XP_BUSY, 0, "no memory left to take steps apart");
    uint64_t base = UINT64_MAX;
    for (size_t i = 0; i < n; i++)
        base = spans[i].begin_ps < base ? spans[i].begin_ps : base;
    for (size_t i = 0; i < n; i++) {
        keys[2 * i] = key_of(spans[i].begin_ps - base, true, spans[i].type);
        keys[2 * i + 1] = key_of(spans[i].end_ps - base, false, spans[i].type);
    }
    sort_keys(keys, keys + 2 * n, 2 * n);
    sweep(keys, 2 * n, base, begin_ps, end_ps, out);
    free(keys);
    return XP_OK;
}
