#include "shard/tools/idmap.h"

static bool grow(struct idmap *m)
{
    struct idmap old = *m;
    size_t cap = m->mask ? 2 * (m->mask + 1) : 64;
    m->keys = xp_arena_alloc(m->a, cap * sizeof *m->keys);
    m->values = xp_arena_zalloc(m->a, cap * sizeof *m->values);
    if (!m->keys || !m->values) {
        *m = old;
        return false;
    }
    m->mask = cap - 1;
    for (size_t i = 0; old.mask && i <= old.mask; i++)
        if (old.values[i]) {
            size_t to = idmap_slot(m, old.keys[i]);
            m->keys[to] = old.keys[i];
            m->values[to] = old.values[i];
        }
    return true;
}

bool idmap_put(struct idmap *m, uint64_t key, uint32_t value)
{
    if (2 * m->n >= m->mask && !grow(m))
        return false;
    size_t i = idmap_slot(m, key);
    m->n += !m->values[i];
    m->keys[i] = key;
    m->values[i] = value + 1;
    return true;
}
