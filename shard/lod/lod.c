#include "shard/lod/lod.h"

/* Events a node of this level spans; level 11 gives 2^50. */
static uint64_t node_size(int level)
{
    return (uint64_t)LANE_BLOCK << (4 * level);
}
_Static_assert(LANE_FAN == 16, "node_size shifts by four bits a level");

static uint64_t node_span(const struct lane_node *n)
{
    return (uint64_t)(n->end_ps - n->begin_ps);
}

static int64_t add_sat(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* --- which events --- */

/* How many events of the lane begin before t. Begins ascend in every lane. */
static uint64_t begun_before(const struct lane *l, int64_t t_ps)
{
    uint64_t lo = 0, hi = lane_nodes(l, 0);
    struct lane_node node;
    while (lo < hi) { /* the first block that begins at or after t */
        uint64_t mid = lo + (hi - lo) / 2;
        lane_node_get(l, 0, mid, &node);
        if (node.begin_ps < t_ps)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (!lo)
        return 0;
    struct lane_cursor c;
    struct lane_event ev[LANE_BLOCK];
    lane_seek_ord(&c, l, (lo - 1) * LANE_BLOCK);
    size_t n = lane_next_block(&c, ev), i = n;
    while (i > 0 && ev[i - 1].begin_ps >= t_ps)
        i--;
    return (lo - 1) * LANE_BLOCK + i;
}

void lod_range(const struct lane *l, int64_t t0_ps, int64_t t1_ps, uint64_t *first, uint64_t *last)
{
    int64_t begin, end;
    uint64_t n = lane_count(l);
    lane_span(l, &begin, &end);
    *first = 0;
    *last = n;
    if (!n || begin >= t1_ps || end < t0_ps || t0_ps >= t1_ps) {
        *last = 0;
        return;
    }
    if (t0_ps > begin) {
        struct lane_cursor c;
        lane_seek(&c, l, t0_ps);
        *first = c.ord;
    }
    if (t1_ps <= end)
        *last = begun_before(l, t1_ps);
    if (*last < *first)
        *last = *first;
}

/* --- grouping --- */

/* Where the rectangles of one lane are written, one item after the other. */
struct pen {
    struct lod_rect *v;
    size_t n;
    uint64_t cell_ps;
    int64_t cell_end; /* of the cell the last rectangle began in */
    bool open;        /* the last one takes further items of its cell */
};

/* Line times are within +-2^62, so that nothing here overflows. */
static int64_t cell_end(int64_t t, uint64_t cell_ps)
{
    if (cell_ps >= UINT64_C(1) << 62)
        return t < 0 ? 0 : INT64_MAX;
    int64_t cell = (int64_t)cell_ps, rest = t % cell;
    return t - (rest < 0 ? rest + cell : rest) + cell;
}

static void join(struct lod_rect *r, const struct lod_rect *item)
{
    if (item->end_ps > r->end_ps)
        r->end_ps = item->end_ps;
    r->busy_ps = add_sat(r->busy_ps, item->busy_ps);
    r->count += item->count;
    if (item->longest_ps > r->longest_ps) {
        r->longest_ps = item->longest_ps;
        r->id = item->id;
        r->name = item->name;
    }
}

static inline void put(struct pen *p, const struct lod_rect *item)
{
    bool narrow = (uint64_t)(item->end_ps - item->begin_ps) < p->cell_ps;
    if (p->n) {
        struct lod_rect *last = &p->v[p->n - 1];
        bool overlaps = item->begin_ps < last->end_ps;
        if (overlaps || (p->open && narrow && item->begin_ps < p->cell_end)) {
            join(last, item);
            return;
        }
    }
    p->v[p->n++] = *item;
    p->open = narrow;
    if (narrow)
        p->cell_end = cell_end(item->begin_ps, p->cell_ps);
}

size_t lod_merge(struct lod_rect *v, size_t n, uint64_t cell_ps)
{
    struct pen p = {.v = v, .cell_ps = cell_ps};
    for (size_t i = 0; i < n; i++) {
        struct lod_rect item = v[i];
        put(&p, &item);
    }
    return p.n;
}

/* --- walking --- */

static bool reserve(struct lod_rects *out, size_t more)
{
    if (out->cap - out->n >= more)
        return true;
    size_t cap = out->cap ? out->cap * 2 : 1024;
    while (cap - out->n < more)
        cap *= 2;
    struct lod_rect *v = xp_arena_alloc(out->a, cap * sizeof *v);
    if (!v)
        return false;
    if (out->n)
        memcpy(v, out->v, out->n * sizeof *v);
    out->v = v;
    out->cap = cap;
    return true;
}

static bool is_one(const struct lane_node *n, const struct lod_scale *s)
{
    uint64_t span = node_span(n);
    return span < s->cell_ps || (span < s->dense_ps && (uint64_t)n->longest_ps <= s->pixel_ps / 2 &&
                                 (uint64_t)n->max_gap_ps <= s->pixel_ps / 2);
}

/* Instead of the number of the longest event below a node its begin, until lod_number: most nodes
 * are merged before anybody asks. */
#define BEGIN_INSTEAD (UINT64_C(1) << 63)
_Static_assert(LANE_TIME_MAX < INT64_C(1) << 62, "a begin leaves room for the mark");

static uint64_t begin_instead(int64_t begin_ps)
{
    return BEGIN_INSTEAD | (uint64_t)(begin_ps + (INT64_C(1) << 62));
}

/* The event of that begin and length; the one there if events of the lane overlap. */
static uint64_t number_at(const struct lane *l, int64_t begin_ps, int64_t length_ps)
{
    struct lane_cursor c;
    struct lane_event ev;
    lane_seek(&c, l, begin_ps);
    uint64_t first = c.ord < lane_count(l) ? c.ord : lane_count(l) - 1;
    while (lane_next(&c, &ev) && ev.begin_ps <= begin_ps)
        if (ev.begin_ps == begin_ps && ev.end_ps - ev.begin_ps == length_ps)
            return ev.ord;
    return first;
}

void lod_number(const struct lane *l, struct lod_rect *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!(v[i].id & BEGIN_INSTEAD))
            continue;
        int64_t begin = (int64_t)(v[i].id & ~BEGIN_INSTEAD) - (INT64_C(1) << 62);
        v[i].id = number_at(l, begin, v[i].longest_ps);
    }
}

static void put_node(struct pen *p, const struct lane_node *n, bool numbers)
{
    struct lod_rect r = {n->begin_ps, n->end_ps,     n->busy_ps,      n->longest_ps,
                         n->count,    n->longest_at, n->longest_name, 0};
    if (numbers)
        r.id = begin_instead(n->longest_begin_ps);
    put(p, &r);
}

/* Events [first, last) of the block that holds first; returns the number after the last one. */
static uint64_t put_events(struct pen *p, const struct lane *l, uint64_t first, uint64_t last,
                           bool numbers)
{
    struct lane_cursor c;
    struct lane_event ev[LANE_BLOCK];
    uint64_t base = first - first % LANE_BLOCK;
    lane_seek_ord(&c, l, base);
    size_t n = lane_next_block(&c, ev);
    if (last - base < n)
        n = (size_t)(last - base);
    for (size_t i = (size_t)(first - base); i < n; i++) {
        int64_t dur = ev[i].end_ps - ev[i].begin_ps;
        struct lod_rect r = {ev[i].begin_ps, ev[i].end_ps, dur, dur, 1, ev[i].at, ev[i].name, 0};
        if (numbers)
            r.id = base + i;
        put(p, &r);
    }
    return base + n;
}

/* The highest level of which a node begins at ord. */
static int level_at(uint64_t ord, int level, int top)
{
    while (level < top && ord % node_size(level + 1) == 0)
        level++;
    return level;
}

bool lod_walk(const struct lane *l, uint64_t first, uint64_t last, const struct lod_scale *s,
              struct lod_rects *out)
{
    int top = lane_levels(l) - 1;
    int level = level_at(first, 0, top);
    struct pen p = {.cell_ps = s->cell_ps};
    size_t start = out->n;
    for (uint64_t ord = first; ord < last;) {
        if (!reserve(out, LANE_BLOCK))
            return false;
        p.v = out->v + start;
        struct lane_node node;
        lane_node_get(l, level, ord / node_size(level), &node);
        bool whole = node.first == ord && node.first + node.count <= last;
        if (whole && is_one(&node, s)) {
            put_node(&p, &node, out->numbers);
            ord += node.count;
        } else if (level > 0) {
            level--;
            continue;
        } else {
            ord = put_events(&p, l, ord, last, out->numbers);
        }
        out->n = start + p.n;
        level = level_at(ord, level, top);
    }
    return true;
}

static int64_t busy_events(const struct lane *l, uint64_t first, uint64_t last)
{
    struct lane_cursor c;
    struct lane_event ev;
    int64_t busy = 0;
    lane_seek_ord(&c, l, first);
    for (; first < last && lane_next(&c, &ev); first++)
        busy = add_sat(busy, ev.end_ps - ev.begin_ps);
    return busy;
}

int64_t lod_busy(const struct lane *l, uint64_t first, uint64_t last)
{
    int top = lane_levels(l) - 1;
    int level = level_at(first, 0, top);
    int64_t sum = 0;
    for (uint64_t ord = first; ord < last;) {
        struct lane_node node;
        lane_node_get(l, level, ord / node_size(level), &node);
        uint64_t end = node.first + node.count;
        if (node.first == ord && end <= last) {
            sum = add_sat(sum, node.busy_ps);
        } else if (level > 0) {
            level--;
            continue;
        } else {
            end = end < last ? end : last;
            sum = add_sat(sum, busy_events(l, ord, end));
        }
        ord = end;
        level = level_at(ord, level, top);
    }
    return sum;
}

/* --- what it will cost --- */

size_t lod_sample(const struct lane *l, uint64_t first, uint64_t last, struct lod_sample *out)
{
    int level = 0, top = lane_levels(l) - 1;
    while (level < top && (last - first) / node_size(level) > 32)
        level++;
    uint64_t size = node_size(level), i = first / size, end = (last + size - 1) / size;
    size_t n = 0;
    for (; i < end && n < LOD_SAMPLES; i++) {
        struct lane_node node;
        lane_node_get(l, level, i, &node);
        uint64_t from = node.first > first ? node.first : first;
        uint64_t to = node.first + node.count < last ? node.first + node.count : last;
        uint64_t span = node_span(&node);
        if (span > (uint64_t)node.max_gap_ps)
            span -= (uint64_t)node.max_gap_ps;
        if (to - from < node.count)
            span = (uint64_t)((double)span * (double)(to - from) / (double)node.count);
        out[n++] = (struct lod_sample){to - from, span};
    }
    return n;
}

uint64_t lod_expect(const struct lod_sample *v, size_t n, uint64_t cell_ps)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t cells = cell_ps ? v[i].span_ps / cell_ps + 1 : UINT64_MAX;
        sum += v[i].count < cells ? v[i].count : cells;
    }
    return sum;
}
