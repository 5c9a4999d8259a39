#include "shard/tools/kernel_tally.h"

#include <stdlib.h>

#include "shard/tools/kernel_cause.h"

uint32_t kernel_text_id(struct xp_strpool *texts, struct xp_span s)
{
    s.n = s.n < KERNEL_TEXT_MAX ? s.n : KERNEL_TEXT_MAX;
    uint32_t id =
        texts->n < 4 * KERNEL_TALLY_MAX ? xp_strpool_add(texts, s) : xp_strpool_find(texts, s);
    return id == XP_STRPOOL_FULL ? 0 : id;
}

bool kernel_tally_init(struct kernel_tally *t, struct xp_arena *a)
{
    *t = (struct kernel_tally){.a = a, .n = 1, .cap = 64};
    t->rows = xp_arena_zalloc(a, t->cap * sizeof *t->rows);
    return t->rows && xp_strpool_init(&t->keys, a);
}

static bool grow(struct kernel_tally *t)
{
    struct kernel_tally_row *v = xp_arena_zalloc(t->a, 2 * (size_t)t->cap * sizeof *v);
    if (!v)
        return false;
    memcpy(v, t->rows, t->n * sizeof *v);
    t->rows = v;
    t->cap *= 2;
    return true;
}

struct kernel_tally_row *kernel_tally_row(struct kernel_tally *t, const uint32_t *key)
{
    struct xp_span bytes = xp_span_of(key, KERNEL_TALLY_KEYS * sizeof *key);
    if (t->n > KERNEL_TALLY_MAX) {
        uint32_t found = xp_strpool_find(&t->keys, bytes);
        return &t->rows[found == XP_STRPOOL_FULL ? 0 : found];
    }
    uint32_t id = xp_strpool_add(&t->keys, bytes);
    if (id == XP_STRPOOL_FULL)
        return NULL;
    if (id < t->n)
        return &t->rows[id];
    if (t->n == t->cap && !grow(t))
        return NULL;
    struct kernel_tally_row *r = &t->rows[t->n++];
    *r = (struct kernel_tally_row){.first_ps = INT64_MAX};
    memcpy(r->key, key, sizeof r->key);
    return r;
}

void kernel_tally_add(struct kernel_tally_row *r, int64_t begin_ps, int64_t time_ps, bool begins)
{
    r->count += begins;
    r->time_ps = kernel_sum(r->time_ps, time_ps);
    r->longest_ps = time_ps > r->longest_ps ? time_ps : r->longest_ps;
    r->first_ps = begin_ps < r->first_ps ? begin_ps : r->first_ps;
}

static int by_time(const void *x, const void *y, void *rows)
{
    uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;
    const struct kernel_tally_row *a = &((const struct kernel_tally_row *)rows)[i],
                                  *b = &((const struct kernel_tally_row *)rows)[k];
    if (a->time_ps != b->time_ps)
        return a->time_ps > b->time_ps ? -1 : 1;
    return (i > k) - (i < k);
}

uint32_t *kernel_tally_sorted(const struct kernel_tally *t, uint32_t max, uint32_t *n)
{
    uint32_t *v = xp_arena_alloc(t->a, (size_t)t->n * sizeof *v);
    if (!v)
        return NULL;
    for (uint32_t i = 1; i < t->n; i++)
        v[i - 1] = i;
    qsort_r(v, t->n - 1, sizeof *v, by_time, t->rows);
    *n = t->n - 1 < max ? t->n - 1 : max;
    return v;
}
