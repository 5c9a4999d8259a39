#include "shard/store/lane_int.h"

uint64_t lane_id(const struct lane *l)
{
    return l->id;
}

uint64_t lane_count(const struct lane *l)
{
    return l->count;
}

void lane_span(const struct lane *l, int64_t *begin_ps, int64_t *end_ps)
{
    *begin_ps = l->count ? lane_block(l, 0)->begin_ps : 0;
    *end_ps = l->count ? lane_block(l, l->nblocks - 1)->end_ps : 0;
}

int lane_levels(const struct lane *l)
{
    return l->levels;
}

static uint64_t nodes_above(uint64_t n)
{
    return (n + LANE_FAN - 1) / LANE_FAN;
}

uint64_t lane_nodes(const struct lane *l, int level)
{
    if (level < 0 || level >= l->levels)
        return 0;
    uint64_t n = l->nblocks;
    while (level-- > 0)
        n = nodes_above(n);
    return n;
}

static const struct lane_up *up_node(const struct lane *l, int level, uint64_t i)
{
    const struct lane_up *up = l->up;
    uint64_t n = nodes_above(l->nblocks);
    while (--level > 0) {
        up += n;
        n = nodes_above(n);
    }
    return &up[i];
}

void lane_node_get(const struct lane *l, int level, uint64_t i, struct lane_node *out)
{
    XP_ASSERT(i < lane_nodes(l, level));
    uint64_t per = LANE_BLOCK; /* LANE_FAN^11 * LANE_BLOCK is 2^50 */
    for (int k = 0; k < level; k++)
        per *= LANE_FAN;
    out->first = i * per;
    out->count = l->count - out->first < per ? l->count - out->first : per;
#define COPY(n)                                                                                    \
    out->begin_ps = (n)->begin_ps, out->end_ps = (n)->end_ps, out->busy_ps = (n)->busy_ps,         \
    out->max_gap_ps = (n)->max_gap_ps, out->longest_ps = (n)->longest_ps,                          \
    out->longest_begin_ps = (n)->longest_begin_ps, out->longest_name = (n)->longest_name,          \
    out->longest_at = (n)->longest_at
    if (level == 0) {
        const struct lane_block *b = lane_block(l, i);
        COPY(b);
    } else {
        const struct lane_up *u = up_node(l, level, i);
        COPY(u);
    }
#undef COPY
}

/* Opens block i (which may be one past the last) at its first event. */
static void open_block(struct lane_cursor *c, uint64_t i)
{
    c->block = i;
    c->ord = i * LANE_BLOCK;
    c->left = 0;
    if (i >= c->lane->nblocks) {
        c->ord = c->lane->count;
        return;
    }
    const struct lane_block *b = lane_block(c->lane, i);
    lane_block_ahead(c->lane, i);
    if (b->flags & LANE_VIEW)
        lane_view_open(&c->unpack, b);
    else
        lane_unpack_open(&c->unpack, b);
    c->left = b->count;
}

static bool ready(struct lane_cursor *c)
{
    if (!c->left && c->block < c->lane->nblocks)
        open_block(c, c->block + 1);
    return c->left > 0;
}

bool lane_next(struct lane_cursor *c, struct lane_event *ev)
{
    if (!ready(c))
        return false;
    if (c->unpack.flags & LANE_VIEW)
        lane_view_next(&c->unpack, ev);
    else
        lane_unpack_next(&c->unpack, ev);
    ev->ord = c->ord++;
    c->left--;
    return true;
}

size_t lane_next_block(struct lane_cursor *c, struct lane_event ev[LANE_BLOCK])
{
    if (!ready(c))
        return 0;
    size_t n = c->left;
    if (c->unpack.flags & LANE_VIEW)
        lane_view_many(&c->unpack, ev, n, c->ord);
    else
        lane_unpack_many(&c->unpack, ev, n, c->ord);
    c->ord += n;
    c->left = 0; /* the next one is opened when it is asked for: many ask for one block only */
    return n;
}

size_t lane_names(const struct lane *l, uint64_t block, uint32_t names[LANE_BLOCK])
{
    if (block >= l->nblocks)
        return 0;
    const struct lane_block *b = lane_block(l, block);
    if (b->flags & LANE_VIEW)
        lane_view_names(b, names);
    else
        lane_unpack_names(b, names);
    return b->count;
}

static size_t sift_all(const struct lane_cursor *c, const struct lane_sieve *s, int64_t base_ps,
                       uint8_t *which, int64_t *begins)
{
    size_t n = 0;
    int64_t all[LANE_BLOCK];
    lane_unpack_begins(&c->unpack, all, c->left);
    for (uint32_t i = 0; i < c->left; i++) {
        which[n] = (uint8_t)i;
        begins[n] = all[i];
        n += lane_sieve_has(s, base_ps + all[i]);
    }
    return n;
}

size_t lane_sift(const struct lane_cursor *c, const struct lane_sieve *s, int64_t base_ps,
                 uint8_t which[LANE_BLOCK], int64_t begins[LANE_BLOCK])
{
    size_t n = 0;
    uint64_t may;
    if (!c->left)
        return 0;
    if (c->unpack.flags & LANE_VIEW)
        return lane_view_sift(&c->unpack, c->left, s, base_ps, which, begins);
    const int64_t *known = lane_view_known(c->lane->id, c->block, s, base_ps, &may);
    if (!known)
        return sift_all(c, s, base_ps, which, begins);
    if (c->left < 64)
        may &= (UINT64_C(1) << c->left) - 1;
    for (; may; may &= may - 1) {
        which[n] = (uint8_t)__builtin_ctzll(may);
        begins[n] = known[which[n]];
        n++;
    }
    return n;
}

void lane_pick(const struct lane_cursor *c, const int64_t *begins, const uint8_t *which, size_t n,
               struct lane_event *ev)
{
    if (c->unpack.flags & LANE_VIEW)
        lane_view_pick(&c->unpack, begins, which, n, ev);
    else
        lane_unpack_pick(&c->unpack, begins, which, n, ev);
    for (size_t i = 0; i < n; i++)
        ev[i].ord = c->ord + which[i];
}

int64_t lane_block_begin(const struct lane *l, uint64_t block)
{
    return lane_block(l, block)->begin_ps;
}

uint64_t lane_block_at(const struct lane *l, uint64_t block)
{
    return lane_block(l, block)->first_at;
}

uint64_t lane_find_block(const struct lane *l, int64_t t_ps)
{
    uint64_t lo = 0, hi = l->nblocks;
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (lane_block(l, mid)->end_ps < t_ps)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool reaches(const struct lane_event *ev, int64_t t_ps)
{
    return ev->end_ps > t_ps || (ev->end_ps == ev->begin_ps && ev->begin_ps >= t_ps);
}

/* Views are unpacked by the block. */
static void seek_view(struct lane_cursor *c, int64_t t_ps)
{
    struct lane_event ev[LANE_BLOCK];
    while (ready(c) && c->unpack.flags & LANE_VIEW) {
        struct lane_cursor after = *c;
        uint32_t n = (uint32_t)lane_next_block(&after, ev), i = 0;
        while (i < n && !reaches(&ev[i], t_ps))
            i++;
        if (i < n) {
            lane_view_skip(&c->unpack, i);
            c->ord += i;
            c->left -= i;
            return;
        }
        *c = after;
    }
}

void lane_seek(struct lane_cursor *c, const struct lane *l, int64_t t_ps)
{
    *c = (struct lane_cursor){.lane = l};
    open_block(c, lane_find_block(l, t_ps));
    seek_view(c, t_ps);
    struct lane_event ev;
    struct lane_cursor before = *c;
    while (lane_next(c, &ev) && !reaches(&ev, t_ps))
        before = *c;
    *c = before;
}

void lane_seek_ord(struct lane_cursor *c, const struct lane *l, uint64_t ord)
{
    *c = (struct lane_cursor){.lane = l};
    if (ord >= l->count)
        ord = l->count;
    open_block(c, ord / LANE_BLOCK);
    struct lane_event ev;
    if (c->left && c->ord < ord && c->unpack.flags & LANE_VIEW) {
        lane_view_skip(&c->unpack, (uint32_t)(ord - c->ord));
        c->left -= (uint32_t)(ord - c->ord);
        c->ord = ord;
    }
    while (c->ord < ord && lane_next(c, &ev))
        ;
}
