#include <stdlib.h>

#include "lib/base/hash.h"
#include "shard/stats/steps_int.h"

static struct step_group *group_at(struct step_groups *g, uint32_t i)
{
    return &VEC(g->v, struct step_group)[i];
}

static size_t slot_of(struct step_groups *g, int64_t id)
{
    size_t i = xp_hash_u64((uint64_t)id) & g->mask;
    while (g->table[i] && group_at(g, g->table[i] - 1)->id != id)
        i = (i + 1) & g->mask;
    return i;
}

static bool room(struct step_groups *g)
{
    if (g->table && g->v.n * 2 < g->mask + 1)
        return true;
    size_t size = g->table ? (g->mask + 1) * 2 : 64;
    uint32_t *table = g->v.n < UINT32_MAX / 4 ? calloc(size, sizeof *table) : NULL;
    if (!table)
        return false;
    free(g->table);
    g->table = table;
    g->mask = size - 1;
    for (uint32_t i = 0; i < g->v.n; i++)
        table[slot_of(g, group_at(g, i)->id)] = i + 1;
    return true;
}

struct step_group *step_groups_find(struct step_groups *g, int64_t id)
{
    if (g->last < g->v.n && group_at(g, g->last)->id == id)
        return group_at(g, g->last);
    size_t slot = g->table ? slot_of(g, id) : 0;
    if (!g->table || !g->table[slot])
        return NULL;
    g->last = g->table[slot] - 1;
    return group_at(g, g->last);
}

struct step_group *step_groups_get(struct step_groups *g, int64_t id)
{
    struct step_group *found = step_groups_find(g, id);
    if (found)
        return found;
    if (!room(g) || !(found = vec_push(&g->v, sizeof *found)))
        return NULL;
    *found = (struct step_group){.id = id};
    g->last = (uint32_t)g->v.n - 1;
    g->table[slot_of(g, id)] = (uint32_t)g->v.n;
    return found;
}

static int by_id(const void *a, const void *b)
{
    const struct step_group *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

void step_groups_sort(struct step_groups *g)
{
    if (g->v.n)
        qsort(g->v.p, g->v.n, sizeof(struct step_group), by_id);
}

void step_groups_free(struct step_groups *g)
{
    for (uint32_t i = 0; i < g->v.n; i++)
        vec_free(&group_at(g, i)->spans);
    vec_free(&g->v);
    free(g->table);
    *g = (struct step_groups){0};
}

void step_group_marker(const struct step_group *g, uint64_t *begin_ps, uint64_t *duration_ps)
{
    bool host =
        !g->device_ps || (g->host_ps && g->host_begin_ps <= g->device_begin_ps &&
                          g->host_begin_ps + g->host_ps >= g->device_begin_ps + g->device_ps);
    *begin_ps = host ? g->host_begin_ps : g->device_begin_ps;
    *duration_ps = host ? g->host_ps : g->device_ps;
}
