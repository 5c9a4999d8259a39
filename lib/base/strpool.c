#include "lib/base/strpool.h"

#include "lib/base/hash.h"

#define STRS_FIRST 32
#define IDS_MAX (UINT32_MAX - 1)

/* Outgrown arrays stay in the arena: their sum is at most the size of the last. */
static bool grow_strs(struct xp_strpool *sp)
{
    uint64_t cap = sp->cap ? (uint64_t)sp->cap * 2 : STRS_FIRST;
    if (cap > IDS_MAX)
        cap = IDS_MAX;
    struct xp_span *strs = xp_bump_alloc(&sp->bump, cap * sizeof *strs, 16);
    if (!strs)
        return false;
    if (sp->n)
        memcpy(strs, sp->strs, sp->n * sizeof *strs);
    __atomic_store_n(&sp->strs, strs, __ATOMIC_RELEASE);
    sp->cap = (uint32_t)cap;
    return true;
}

/* The slot that holds s, or the free one where it belongs. */
static uint32_t slot_of(const struct xp_strpool *sp, struct xp_span s, uint64_t hash)
{
    uint32_t i = (uint32_t)hash & sp->mask;
    while (sp->table[i] && !xp_span_eq(sp->strs[sp->table[i] - 1], s))
        i = (i + 1) & sp->mask;
    return i;
}

static bool grow_table(struct xp_strpool *sp)
{
    uint64_t size = sp->table ? ((uint64_t)sp->mask + 1) * 2 : (uint64_t)STRS_FIRST * 2;
    if (size > (uint64_t)UINT32_MAX + 1)
        return false;
    uint32_t *table = xp_bump_alloc(&sp->bump, size * sizeof *table, 16);
    if (!table)
        return false;
    memset(table, 0, size * sizeof *table);
    uint32_t mask = (uint32_t)(size - 1);
    for (uint32_t id = 0; id < sp->n; id++) {
        uint32_t i = (uint32_t)xp_hash(sp->strs[id]) & mask;
        while (table[i])
            i = (i + 1) & mask;
        table[i] = id + 1;
    }
    sp->table = table;
    sp->mask = mask;
    return true;
}

bool xp_strpool_init(struct xp_strpool *sp, struct xp_arena *a)
{
    *sp = (struct xp_strpool){0};
    xp_bump_init(&sp->bump, a);
    return grow_table(sp) && xp_strpool_add(sp, XP_SPAN_LIT("")) == 0;
}

uint32_t xp_strpool_add(struct xp_strpool *sp, struct xp_span s)
{
    uint64_t hash = xp_hash(s);
    uint32_t i = slot_of(sp, s, hash);
    if (sp->table[i])
        return sp->table[i] - 1;

    /* At most two thirds full. */
    if (((uint64_t)sp->n + 1) * 3 > ((uint64_t)sp->mask + 1) * 2) {
        if (!grow_table(sp))
            return XP_STRPOOL_FULL;
        i = slot_of(sp, s, hash);
    }
    if (sp->n == sp->cap && (sp->n == IDS_MAX || !grow_strs(sp)))
        return XP_STRPOOL_FULL;
    struct xp_span copy = xp_bump_span(&sp->bump, s);
    if (!copy.p)
        return XP_STRPOOL_FULL;
    sp->strs[sp->n] = copy;
    __atomic_store_n(&sp->n, sp->n + 1, __ATOMIC_RELEASE);
    sp->table[i] = sp->n;
    return sp->n - 1;
}

uint32_t xp_strpool_find(const struct xp_strpool *sp, struct xp_span s)
{
    uint32_t id = sp->table[slot_of(sp, s, xp_hash(s))];
    return id ? id - 1 : XP_STRPOOL_FULL;
}
