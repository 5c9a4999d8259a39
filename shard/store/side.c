#include "shard/store/side_int.h"

static const char *const names[STAT_KIND_COUNT] = {
#define KIND(id, name) [STAT_##id] = name,
#include "shard/store/stat_kinds.def"
#undef KIND
};

const char *stat_kind_name(enum stat_kind kind)
{
    return (unsigned)kind < STAT_KIND_COUNT ? names[kind] : "";
}

enum stat_kind stat_kind_of(struct xp_span name)
{
    for (int k = 0; k < STAT_KIND_COUNT; k++)
        if (xp_span_eq(name, xp_span_str(names[k])))
            return (enum stat_kind)k;
    return STAT_NOT_KEPT;
}

/* --- reading; our own bytes, always whole --- */

static uint64_t take(const uint8_t **pp)
{
    const uint8_t *p = *pp;
    uint64_t v = *p & 0x7f;
    for (unsigned shift = 7; *p++ & 0x80; shift += 7)
        v |= (uint64_t)(*p & 0x7f) << shift;
    *pp = p;
    return v;
}

static void open_block(struct side_cursor *c, uint64_t i)
{
    c->block = i;
    c->p = c->end = NULL;
    if (!c->side || i >= c->side->nblocks)
        return;
    const struct side_block *b = side_block(c->side, i);
    c->p = b->data;
    c->end = b->data + b->bytes;
    c->prev_at = b->first_at;
}

uint64_t side_kinds(const struct side *side)
{
    return side ? side->kinds : 0;
}

uint64_t side_zeros(const struct side *side)
{
    return side ? side->zeros : 0;
}

uint64_t side_events(const struct side *side)
{
    return side ? side->count : 0;
}

uint64_t side_count(const struct side *side, enum stat_kind kind)
{
    uint64_t bit = UINT64_C(1) << kind;
    if (!(side_kinds(side) & bit))
        return 0;
    return side->counts[__builtin_popcountll(side->kinds & (bit - 1))];
}

void side_open(struct side_cursor *c, const struct side *side)
{
    c->side = side;
    c->at = c->prev_at = 0;
    c->n = 0;
    c->have = false;
    open_block(c, 0);
}

bool side_next(struct side_cursor *c)
{
    c->n = 0;
    c->have = false;
    if (c->p == c->end && c->side && c->block < c->side->nblocks)
        open_block(c, c->block + 1);
    if (c->p == c->end)
        return false;
    c->at = c->prev_at + take(&c->p);
    c->prev_at = c->at;
    int n = *c->p++;
    for (int i = 0; i < n; i++) {
        struct side_stat *s = &c->stats[i];
        uint8_t head = *c->p++;
        s->kind = head >> 2;
        s->type = head & 3;
        if (s->type == SIDE_DOUBLE) {
            memcpy(&s->num, c->p, 8);
            c->p += 8;
        } else {
            uint64_t v = take(&c->p);
            s->num = s->type == SIDE_I64 ? (uint64_t)xp_unzigzag(v) : v;
        }
    }
    c->n = n;
    c->have = true;
    return true;
}

/* Last block that begins at or before at; block 0 if none does. */
static uint64_t find_block(const struct side *s, uint64_t at)
{
    uint64_t lo = 0, hi = s->nblocks;
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (side_block(s, mid)->first_at <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? lo - 1 : 0;
}

/* Whether `at` cannot lie behind the cursor nor in a later block. */
static bool in_reach(const struct side_cursor *c, uint64_t at)
{
    if (!c->p || c->block >= c->side->nblocks || (c->have && at <= c->at))
        return false;
    const struct side_block *b = side_block(c->side, c->block);
    if (at < b->first_at || (c->p != b->data && at <= c->prev_at))
        return false;
    return c->block + 1 == c->side->nblocks || at < side_block(c->side, c->block + 1)->first_at;
}

bool side_find(struct side_cursor *c, uint64_t at)
{
    if (!c->side)
        return false;
    if (c->have && c->at == at)
        return true;
    if (!in_reach(c, at))
        open_block(c, find_block(c->side, at));
    while (c->p != c->end) {
        struct side_cursor before;
        before.p = c->p;
        before.prev_at = c->prev_at;
        if (!side_next(c))
            break;
        if (c->at == at)
            return true;
        if (c->at > at) { /* stays before it, for the next ascending question */
            c->p = before.p;
            c->prev_at = before.prev_at;
            break;
        }
    }
    c->n = 0;
    c->have = false;
    return false;
}

const struct side_stat *side_get(const struct side_cursor *c, enum stat_kind kind)
{
    for (int i = c->n - 1; i >= 0; i--)
        if (c->stats[i].kind == kind)
            return &c->stats[i];
    return NULL;
}

/* --- writing --- */

void side_pen_init(struct side_pen *pen)
{
    pen->buf = NULL;
    pen->segs = NULL;
    pen->cap = 0;
    side_pen_reset(pen);
}

void side_pen_reset(struct side_pen *pen)
{
    pen->used = 0;
    pen->n = pen->nblk = pen->nsegs = 0;
    pen->kinds = pen->zeros = 0;
    memset(pen->counts, 0, sizeof pen->counts);
}

static bool flush_segment(struct side_pen *pen, struct xp_arena *scratch, struct xp_bump *out)
{
    if (pen->nsegs == pen->cap) {
        uint32_t cap = pen->cap ? pen->cap * 4 : 16;
        struct side_block **segs = xp_arena_alloc(scratch, cap * sizeof *segs);
        if (!segs)
            return false;
        if (pen->nsegs)
            memcpy(segs, pen->segs, pen->nsegs * sizeof *segs);
        pen->segs = segs;
        pen->cap = cap;
    }
    struct side_block *seg =
        xp_bump_alloc(out, pen->nblk * sizeof *seg, _Alignof(struct side_block));
    if (!seg)
        return false;
    memcpy(seg, pen->blk, pen->nblk * sizeof *seg);
    pen->segs[pen->nsegs++] = seg;
    pen->nblk = 0;
    return true;
}

static bool flush_block(struct side_pen *pen, struct xp_arena *scratch, struct xp_bump *out)
{
    if (pen->nblk == SIDE_SEG && !flush_segment(pen, scratch, out))
        return false;
    uint8_t *data = xp_bump_alloc(out, pen->used, 1);
    if (!data)
        return false;
    memcpy(data, pen->buf, pen->used);
    pen->blk[pen->nblk++] = (struct side_block){data, pen->first_at, (uint32_t)pen->used, pen->n};
    pen->n = 0;
    pen->used = 0;
    return true;
}

bool side_pen_add(struct side_pen *pen, uint64_t at, const struct side_stat *stats, int n,
                  struct xp_arena *scratch, struct xp_bump *out)
{
    if (!pen->buf && !(pen->buf = xp_arena_alloc(scratch, SIDE_BLOCK * SIDE_EVENT_MAX)))
        return false;
    if (pen->n == SIDE_BLOCK && !flush_block(pen, scratch, out))
        return false;
    if (!pen->n)
        pen->first_at = pen->prev_at = at;
    uint8_t *p = xp_varint_write(pen->buf + pen->used, at - pen->prev_at);
    *p++ = (uint8_t)n;
    uint64_t kinds = 0;
    for (int i = 0; i < n; i++) {
        const struct side_stat *s = &stats[i];
        *p++ = (uint8_t)(s->kind << 2 | s->type);
        pen->counts[s->kind] += !(kinds >> s->kind & 1);
        kinds |= UINT64_C(1) << s->kind;
        pen->zeros |= (uint64_t)(s->num == 0) << s->kind;
        if (s->type == SIDE_DOUBLE) {
            memcpy(p, &s->num, 8);
            p += 8;
        } else {
            p = xp_varint_write(p, s->type == SIDE_I64 ? xp_zigzag((int64_t)s->num) : s->num);
        }
    }
    pen->kinds |= kinds;
    pen->used = (size_t)(p - pen->buf);
    pen->prev_at = at;
    pen->n++;
    return true;
}

static const uint64_t *keep_counts(const struct side_pen *pen, struct xp_bump *out)
{
    size_t n = (size_t)__builtin_popcountll(pen->kinds), k = 0;
    uint64_t *counts = xp_bump_alloc(out, (n + 1) * sizeof *counts, _Alignof(uint64_t));
    for (int i = 0; counts && i < STAT_KIND_COUNT; i++)
        if (pen->counts[i])
            counts[k++] = pen->counts[i];
    return counts;
}

bool side_pen_end(struct side_pen *pen, struct xp_arena *scratch, struct xp_bump *out,
                  const struct side **side)
{
    *side = NULL;
    if (pen->n && !flush_block(pen, scratch, out))
        return false;
    uint32_t last = pen->nblk;
    if (!last)
        return true;
    struct side *s = xp_bump_alloc(out, sizeof *s, _Alignof(struct side));
    if (!s || !flush_segment(pen, scratch, out))
        return false;
    s->segs = xp_bump_alloc(out, pen->nsegs * sizeof *s->segs, _Alignof(void *));
    s->counts = keep_counts(pen, out);
    if (!s->segs || !s->counts)
        return false;
    memcpy(s->segs, pen->segs, pen->nsegs * sizeof *s->segs);
    s->kinds = pen->kinds;
    s->zeros = pen->zeros;
    s->nblocks = (uint64_t)(pen->nsegs - 1) * SIDE_SEG + last;
    s->count = (s->nblocks - 1) * SIDE_BLOCK + side_block(s, s->nblocks - 1)->count;
    *side = s;
    side_pen_reset(pen);
    return true;
}

bool side_pick(const struct side *side, const uint64_t *at, size_t n, struct side_pen **pen,
               struct xp_arena *scratch, struct xp_bump *out, const struct side **picked)
{
    struct side_cursor c;
    bool any = false;
    *picked = NULL;
    if (!*pen) {
        if (!(*pen = xp_arena_alloc(scratch, sizeof **pen)))
            return false;
        side_pen_init(*pen);
    }
    side_open(&c, side);
    for (size_t i = 0; i < n; i++) {
        if ((i && at[i] == at[i - 1]) || !side_find(&c, at[i]))
            continue;
        any = true;
        if (!side_pen_add(*pen, at[i], c.stats, c.n, scratch, out))
            return false;
    }
    return !any || side_pen_end(*pen, scratch, out, picked);
}
