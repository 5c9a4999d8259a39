#include "shard/tools/addresses.h"

#define FIRST_SIZE 1024

static bool make(struct addresses *t, size_t cap)
{
    t->slots = xp_arena_alloc(t->a, cap * sizeof *t->slots);
    for (size_t i = 0; t->slots && i < cap; i++)
        t->slots[i].index = ADDRESS_FREE;
    t->mask = cap - 1;
    return t->slots != NULL;
}

bool addresses_init(struct addresses *t, struct xp_arena *a)
{
    *t = (struct addresses){.a = a};
    return make(t, FIRST_SIZE);
}

void addresses_clear(struct addresses *t)
{
    for (size_t i = 0; i <= t->mask; i++)
        t->slots[i].index = ADDRESS_FREE;
    t->n = 0;
}

static size_t home_of(const struct addresses *t, uint64_t address)
{
    return (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & t->mask;
}

static struct address *find(const struct addresses *t, uint64_t address)
{
    size_t i = home_of(t, address);
    while (t->slots[i].index != ADDRESS_FREE && t->slots[i].key != address)
        i = (i + 1) & t->mask;
    return &t->slots[i];
}

static bool grow(struct addresses *t)
{
    struct addresses old = *t;
    if (!make(t, 2 * (old.mask + 1)))
        return false;
    for (size_t i = 0; i <= old.mask; i++)
        if (old.slots[i].index != ADDRESS_FREE)
            *find(t, old.slots[i].key) = old.slots[i];
    return true;
}

struct address *address_at(struct addresses *t, uint64_t address)
{
    struct address *s = find(t, address);
    if (s->index != ADDRESS_FREE)
        return s;
    if (2 * ++t->n > t->mask) {
        if (!grow(t))
            return NULL;
        s = find(t, address);
    }
    s->key = address;
    return s;
}

/* Those that had to go past it move up. */
uint32_t address_take(struct addresses *t, uint64_t address)
{
    struct address *s = find(t, address);
    uint32_t taken = s->index;
    if (taken == ADDRESS_FREE)
        return ADDRESS_FREE;
    size_t hole = (size_t)(s - t->slots);
    for (size_t i = (hole + 1) & t->mask; t->slots[i].index != ADDRESS_FREE;
         i = (i + 1) & t->mask) {
        size_t home = home_of(t, t->slots[i].key);
        if (((i - home) & t->mask) < ((i - hole) & t->mask))
            continue;
        t->slots[hole] = t->slots[i];
        hole = i;
    }
    t->slots[hole].index = ADDRESS_FREE;
    t->n--;
    return taken;
}
