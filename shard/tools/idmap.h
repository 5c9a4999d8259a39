/* shard/tools/idmap.h - numbers found by numbers: a small hash table in an arena. */
#ifndef SHARD_IDMAP_H
#define SHARD_IDMAP_H

#include "lib/base/arena.h"

struct idmap {
    struct xp_arena *a;
    uint64_t *keys;
    uint32_t *values; /* + 1; 0: free */
    size_t n, mask;   /* mask 0: nothing was put yet */
};

static inline void idmap_init(struct idmap *m, struct xp_arena *a)
{
    *m = (struct idmap){.a = a};
}

static inline size_t idmap_slot(const struct idmap *m, uint64_t key)
{
    size_t i = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & m->mask;
    while (m->values[i] && m->keys[i] != key)
        i = (i + 1) & m->mask;
    return i;
}

/* False: it is not there. */
static inline bool idmap_get(const struct idmap *m, uint64_t key, uint32_t *value)
{
    size_t i = m->mask ? idmap_slot(m, key) : 0;
    if (!m->mask || !m->values[i])
        return false;
    *value = m->values[i] - 1;
    return true;
}

/* Adds or replaces. False when memory is out. */
bool idmap_put(struct idmap *m, uint64_t key, uint32_t value);

#endif
