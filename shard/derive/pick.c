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

struct pick {
    const struct derive_line *l;
    uint32_t line;
    const struct vec *marks;
    const uint16_t *evflags; /* NULL: no name is special */
    uint32_t nevmeta;
    uint16_t special;
    struct vec *out;
};

static inline bool name_special(const struct pick *k, uint32_t name)
{
    return name < k->nevmeta && k->evflags[name] & k->special;
}

static bool pick_block(const struct pick *k, const struct lane *lane, uint64_t block, size_t *mark)
{
    const struct part_line *line = k->l->line;
    struct lane_event ev[LANE_BLOCK];
    struct lane_cursor c;
    lane_seek_ord(&c, lane, block * LANE_BLOCK);
    size_t n = lane_next_block(&c, ev);
    for (size_t i = 0; i < n; i++) {
        bool hit = k->marks->n && marked(k->marks, mark, ev[i].at);
        if (!hit && !(k->evflags && name_special(k, ev[i].name)))
            continue;
        struct plane_event *p = vec_push(k->out, sizeof *p);
        if (!p)
            return false;
        *p = (struct plane_event){line->base_ps + ev[i].begin_ps, line->base_ps + ev[i].end_ps,
                                  ev[i].at, ev[i].name, k->line};
    }
    return true;
}

static bool block_special(const struct pick *k, const struct lane *lane, uint64_t block)
{
    uint32_t names[LANE_BLOCK];
    size_t n = lane_names(lane, block, names);
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= name_special(k, names[i]);
    return any;
}

/* The block from `from` on that `at` is in, if it is in the lane: the last that begins no later. */
static uint64_t block_of(const struct lane *lane, uint64_t from, uint64_t nblocks, uint64_t at)
{
    uint64_t lo = from + 1, hi = nblocks;
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (lane_block_at(lane, mid) <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo - 1;
}

/* A lane whose events are in the order of the file: blocks without a mark are stepped over, or only
 * their names are looked at. A host's line of millions of calls has a few dozen marks. */
static bool pick_sorted(const struct pick *k, const struct lane *lane)
{
    const uint64_t *m = k->marks->p;
    uint64_t nblocks = lane_nodes(lane, 0), block = 0;
    size_t mark = 0, seen = 0; /* marks before the block; where pick_block is among them */
    for (; block < nblocks; block++) {
        while (mark < k->marks->n && m[mark] < lane_block_at(lane, block))
            mark++;
        if (!k->evflags && mark == k->marks->n)
            return true;
        if (!k->evflags)
            block = block_of(lane, block, nblocks, m[mark]);
        bool last = block + 1 == nblocks;
        bool hit = mark < k->marks->n && (last || m[mark] < lane_block_at(lane, block + 1));
        if ((hit || (k->evflags && block_special(k, lane, block))) &&
            !pick_block(k, lane, block, &seen))
            return false;
    }
    return true;
}

static bool pick_lane(const struct pick *k, const struct lane *lane)
{
    size_t mark = 0;
    if (!lane_levels(lane))
        return true;
    if (k->l->line->sorted && !k->l->line->derived)
        return pick_sorted(k, lane);
    for (uint64_t block = 0; block < lane_nodes(lane, 0); block++)
        if (!pick_block(k, lane, block, &mark))
            return false;
    return true;
}

bool derive_pick(const struct derive_line *l, uint32_t line, uint64_t kinds,
                 const uint16_t *evflags, uint32_t nevmeta, uint16_t special, struct vec *out)
{
    struct vec marks = {0};
    struct pick k = {l, line, &marks, special ? evflags : NULL, nevmeta, special, out};
    bool ok = marks_find(l, kinds, &marks);
    for (uint32_t i = 0; ok && (marks.n || k.evflags) && i < l->line->nlanes; i++)
        ok = pick_lane(&k, l->line->lanes[i]);
    vec_free(&marks);
    return ok;
}
