#include "shard/derive/pick.h"

static int at_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int plane_event_order(const void *a, const void *b)
{
    const struct plane_event *x = a, *y = b;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    if (x->end_ps != y->end_ps)
        return x->end_ps > y->end_ps ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Offsets of the line's events with stats of these kinds, ascending. */
static bool marks_find(const struct derive_line *l, uint64_t kinds, struct vec *marks)
{
    struct side_cursor c;
    bool sorted = true;
    uint64_t last = 0;
    if (!(side_kinds(l->side) & kinds))
        return true;
    side_open(&c, l->side);
    while (side_next(&c)) {
        bool hit = false;
        for (int i = 0; i < c.n && !hit; i++)
            hit = c.stats[i].kind < 64 && kinds >> c.stats[i].kind & 1;
        if (!hit)
            continue;
        uint64_t *m = vec_push(marks, sizeof *m);
        if (!m)
            return false;
        *m = c.at;
        sorted = sorted && c.at >= last;
        last = c.at;
    }
    if (!sorted)
        qsort(marks->p, marks->n, sizeof(uint64_t), at_order);
    return true;
}

/* Is `at` among the marks? *i moves along with ascending questions. */
static inline bool marked(const struct vec *marks, size_t *i, uint64_t at)
{
    const uint64_t *m = marks->p;
    if (*i && m[*i - 1] >= at)
        *i = 0;
    for (size_t step = 1; *i + step <= marks->n && m[*i + step - 1] < at; step *= 2)
        *i += step;
    while (*i < marks->n && m[*i] < at)
        ++*i;
    return *i < marks->n && m[*i] == at;
}

static bool pick_lane(const struct derive_line *l, uint32_t line, uint32_t lane,
                      const struct vec *marks, const uint16_t *evflags, uint32_t nevmeta,
                      uint16_t special, struct vec *out)
{
    struct lane_event ev[LANE_BLOCK];
    struct lane_cursor c;
    size_t mark = 0, n;
    lane_seek_ord(&c, l->line->lanes[lane], 0);
    while ((n = lane_next_block(&c, ev))) {
        for (size_t i = 0; i < n; i++) {
            bool hit = marks->n && marked(marks, &mark, ev[i].at);
            if (!hit &&
                !(special && evflags && ev[i].name < nevmeta && evflags[ev[i].name] & special))
                continue;
            struct plane_event *p = vec_push(out, sizeof *p);
            if (!p)
                return false;
            *p = (struct plane_event){l->line->base_ps + ev[i].begin_ps,
                                      l->line->base_ps + ev[i].end_ps, ev[i].at, ev[i].name, line};
        }
    }
    return true;
}

bool derive_pick(const struct derive_line *l, uint32_t line, uint64_t kinds,
                 const uint16_t *evflags, uint32_t nevmeta, uint16_t special, struct vec *out)
{
    struct vec marks = {0};
    bool ok = marks_find(l, kinds, &marks);
    for (uint32_t k = 0; ok && (marks.n || special) && k < l->line->nlanes; k++)
        ok = pick_lane(l, line, k, &marks, evflags, nevmeta, special, out);
    vec_free(&marks);
    return ok;
}
