#include "shard/merged.h"

#include <stdlib.h>

#define LEVELS 31
#define UNEVEN UINT8_MAX /* a level: neighbours that are not both halves of one */

struct merged_node {
    uint32_t first;
    uint8_t level; /* of 2^level hosts */
    struct xp_buf all;
};

/* One that is not in the list yet, and which of the list are in it. */
struct joined {
    struct merged_node node;
    struct xp_span all;
    size_t from, to;
};

static size_t place_of(const struct merged *m, uint32_t host)
{
    size_t i = 0;
    while (i < m->n && m->v[i].first < host)
        i++;
    return i;
}

/* The one before it, or behind it, joins it. */
static enum xp_status join_next(const struct merged *m, struct joined *j, bool before,
                                merged_fn merge, struct xp_arena *a, struct xp_error *err)
{
    const struct merged_node *next = &m->v[before ? j->from - 1 : j->to];
    struct xp_span x = xp_buf_all(&next->all), y = j->all;
    XP_TRY(merge(before ? x : y, before ? y : x, a, &j->all, err));
    if (before) {
        j->node.first = next->first;
        j->from--;
    } else {
        j->to++;
    }
    return XP_OK;
}

/* The other half of the next larger one, if it is there, and so on. */
static enum xp_status join_halves(const struct merged *m, struct joined *j, merged_fn merge,
                                  struct xp_arena *a, struct xp_error *err)
{
    for (; j->node.level < LEVELS; j->node.level++) {
        uint32_t bit = UINT32_C(1) << j->node.level;
        bool before = j->node.first & bit;
        if (before ? j->from == 0 : j->to == m->n)
            break;
        const struct merged_node *next = &m->v[before ? j->from - 1 : j->to];
        if (next->level != j->node.level || next->first != (j->node.first ^ bit))
            break;
        XP_TRY(join_next(m, j, before, merge, a, err));
    }
    return XP_OK;
}

static void put(struct merged *m, const struct joined *j)
{
    if (!m->v)
        m->v = malloc(MERGED_HELD * sizeof *m->v);
    XP_ASSERT(m->v);
    for (size_t i = j->from; i < j->to; i++)
        xp_buf_fini(&m->v[i].all);
    memmove(&m->v[j->from + 1], &m->v[j->to], (m->n - j->to) * sizeof *m->v);
    m->v[j->from] = j->node;
    m->n = m->n + 1 - (j->to - j->from);
}

enum xp_status merged_add(struct merged *m, merged_fn merge, uint32_t host, struct xp_span one,
                          struct xp_arena *a, struct xp_error *err)
{
    size_t at = place_of(m, host);
    struct joined j = {.node = {.first = host}, .all = one, .from = at, .to = at};
    XP_TRY(join_halves(m, &j, merge, a, err));
    if (m->n == MERGED_HELD && j.from == j.to) {
        XP_TRY(join_next(m, &j, at > 0, merge, a, err));
        j.node.level = UNEVEN;
    }
    xp_buf_init(&j.node.all, MERGED_MAX);
    xp_buf_span(&j.node.all, j.all);
    if (j.node.all.failed) {
        xp_buf_fini(&j.node.all);
        return xp_fail(err, XP_BUSY, 0, "the memory budget is spent");
    }
    put(m, &j);
    return XP_OK;
}

enum xp_status merged_all(const struct merged *m, merged_fn merge, struct xp_arena *a,
                          struct xp_span *all, struct xp_error *err)
{
    *all = (struct xp_span){0};
    for (size_t i = m->n; i-- > 0;) {
        if (!all->n)
            *all = xp_buf_all(&m->v[i].all);
        else
            XP_TRY(merge(xp_buf_all(&m->v[i].all), *all, a, all, err));
    }
    return XP_OK;
}

void merged_fini(struct merged *m)
{
    for (size_t i = 0; i < m->n; i++)
        xp_buf_fini(&m->v[i].all);
    free(m->v);
    *m = (struct merged){0};
}
