#include "shard/store/lane_int.h"
#include "shard/store/part.h"

struct line_builder {
    struct xp_arena *scratch;
    struct xp_bump *out;
    struct xp_bump own; /* `out` of a builder made by line_builder_new */
    uint32_t nlanes, npens;
    uint32_t top; /* lane of the last event; low[] holds up to it */
    uint32_t overflow;
    uint64_t nevents;
    int64_t last_begin, first_begin, last_end;
    int64_t end[LANE_MAX]; /* last end of each lane */
    int64_t low[LANE_MAX]; /* low[i] = min(end[0..i]): is any of these lanes free? */
    struct lane_pen *pens[LANE_MAX];
    const struct lane_source *sources;
};

/* --- pens --- */

void lane_pen_reset(struct lane_pen *pen)
{
    pen->n = pen->nblk = pen->nsegs = 0;
    pen->last_end = INT64_MIN;
}

static bool flush_segment(struct lane_pen *pen, struct xp_arena *scratch, struct xp_bump *out)
{
    if (pen->nsegs == pen->cap) {
        uint32_t cap = pen->cap ? pen->cap * 4 : 16;
        struct lane_block **segs = xp_arena_alloc(scratch, cap * sizeof *segs);
        if (!segs)
            return false;
        if (pen->nsegs)
            memcpy(segs, pen->segs, pen->nsegs * sizeof *segs);
        pen->segs = segs;
        pen->cap = cap;
    }
    struct lane_block *seg =
        xp_bump_alloc(out, pen->nblk * sizeof *seg, _Alignof(struct lane_block));
    if (!seg)
        return false;
    memcpy(seg, pen->blk, pen->nblk * sizeof *seg);
    pen->segs[pen->nsegs++] = seg;
    pen->nblk = 0;
    return true;
}

static __attribute__((noinline)) bool flush_block(struct lane_pen *pen, bool last,
                                                  struct xp_arena *scratch, struct xp_bump *out)
{
    uint8_t packed[LANE_PACK_MAX];
    struct lane_columns c;
    if (pen->nblk == LANE_SEG && !flush_segment(pen, scratch, out))
        return false;
    struct lane_block *b = &pen->blk[pen->nblk];
    lane_measure(pen->ev, pen->n, b, &c);
    if (b->end_ps < pen->last_end)
        b->end_ps = pen->last_end;
    pen->last_end = b->end_ps;
    size_t n = 0;
    if (pen->sources)
        n = lane_view_pack(pen->ev, pen->ref, pen->n, pen->sources, b, packed);
    if (!n)
        n = lane_pack(pen->ev, pen->n, &c, b, packed);
    uint8_t *data = xp_bump_alloc(out, n + LANE_PACK_PAD, 1);
    if (!data)
        return false;
    memcpy(data, packed, n);
    /* What follows may serve as the padding, but not behind the last block: it may be written when
     * this lane is read already. */
    if (!last && out->at == data + n + LANE_PACK_PAD)
        out->at -= LANE_PACK_PAD;
    b->data = data;
    b->bytes = (uint16_t)n;
    pen->nblk++;
    pen->n = 0;
    return true;
}

static inline bool put(struct lane_pen *pen, const struct lane_raw *ev, struct xp_arena *scratch,
                       struct xp_bump *out)
{
    if (pen->n == LANE_BLOCK && !flush_block(pen, false, scratch, out))
        return false;
    pen->ev[pen->n++] = *ev;
    return true;
}

bool lane_pen_add(struct lane_pen *pen, const struct lane_raw *ev, struct xp_arena *scratch,
                  struct xp_bump *out)
{
    return put(pen, ev, scratch, out);
}

/* Folds the node `c` into `u`, which spans what came before it. */
static void fold(struct lane_up *u, const struct lane_up *c)
{
    int64_t gap = c->begin_ps - u->end_ps;
    if (gap > u->max_gap_ps)
        u->max_gap_ps = gap;
    if (c->max_gap_ps > u->max_gap_ps)
        u->max_gap_ps = c->max_gap_ps;
    if (c->end_ps > u->end_ps)
        u->end_ps = c->end_ps;
    u->busy_ps = lane_add_sat(u->busy_ps, c->busy_ps);
    if (c->longest_ps > u->longest_ps) {
        u->longest_ps = c->longest_ps;
        u->longest_begin_ps = c->longest_begin_ps;
        u->longest_at = c->longest_at;
        u->longest_name = c->longest_name;
    }
}

static struct lane_up up_from_block(const struct lane_block *b)
{
    return (struct lane_up){b->begin_ps,   b->end_ps,           b->busy_ps,    b->max_gap_ps,
                            b->longest_ps, b->longest_begin_ps, b->longest_at, b->longest_name};
}

/* The levels above the blocks, one after the other in one array. */
static bool build_up(struct lane *l, struct xp_bump *out)
{
    uint64_t total = 0;
    l->levels = 1;
    for (uint64_t n = l->nblocks; n > 1; l->levels++) {
        n = (n + LANE_FAN - 1) / LANE_FAN;
        total += n;
    }
    if (!total)
        return true;
    struct lane_up *to = xp_bump_alloc(out, total * sizeof *to, _Alignof(struct lane_up));
    if (!to)
        return false;
    l->up = to;
    const struct lane_up *from = NULL;
    for (uint64_t n = l->nblocks; n > 1;) {
        struct lane_up *level = to;
        for (uint64_t i = 0; i < n; i++) {
            struct lane_up c = from ? from[i] : up_from_block(lane_block(l, i));
            if (i % LANE_FAN == 0)
                *to++ = c;
            else
                fold(to - 1, &c);
        }
        from = level;
        n = (uint64_t)(to - level);
    }
    return true;
}

struct lane *lane_pen_end(struct lane_pen *pen, struct xp_arena *scratch, struct xp_bump *out)
{
    struct lane *l = xp_bump_alloc(out, sizeof *l, _Alignof(struct lane));
    if (!l || (pen->n && !flush_block(pen, true, scratch, out)))
        return NULL;
    *l = (struct lane){.id = lane_new_id()};
    uint64_t last = pen->nblk;
    if (last && !flush_segment(pen, scratch, out))
        return NULL;
    if (pen->nsegs) {
        l->segs = xp_bump_alloc(out, pen->nsegs * sizeof *l->segs, _Alignof(void *));
        if (!l->segs)
            return NULL;
        memcpy(l->segs, pen->segs, pen->nsegs * sizeof *l->segs);
        l->nblocks = (uint64_t)(pen->nsegs - 1) * LANE_SEG + last;
        l->count = (l->nblocks - 1) * LANE_BLOCK + lane_block(l, l->nblocks - 1)->count;
        if (!build_up(l, out))
            return NULL;
    }
    lane_pen_reset(pen);
    return l;
}

/* --- dealing events into lanes --- */

struct line_builder *line_builder_on(struct xp_arena *scratch, struct xp_bump *out)
{
    struct line_builder *b = xp_arena_zalloc(scratch, sizeof *b);
    if (!b)
        return NULL;
    b->scratch = scratch;
    b->out = out;
    line_builder_reset(b);
    return b;
}

struct line_builder *line_builder_new(struct xp_arena *a)
{
    struct line_builder *b = line_builder_on(a, NULL);
    if (!b)
        return NULL;
    xp_bump_init(&b->own, a);
    b->out = &b->own;
    return b;
}

struct line_builder *line_builder_view(struct xp_arena *a, const struct lane_source *sources)
{
    struct line_builder *b = line_builder_new(a);
    if (b)
        line_builder_source(b, sources);
    return b;
}

void line_builder_source(struct line_builder *b, const struct lane_source *sources)
{
    b->sources = sources;
    for (uint32_t i = 0; i < b->npens; i++)
        b->pens[i]->sources = sources;
}

void line_builder_reset(struct line_builder *b)
{
    for (uint32_t i = 0; i < b->nlanes; i++)
        lane_pen_reset(b->pens[i]);
    b->nlanes = b->top = b->overflow = 0;
    b->nevents = 0;
    b->last_begin = INT64_MIN;
    b->first_begin = b->last_end = 0;
}

static bool open_lane(struct line_builder *b)
{
    if (b->nlanes == b->npens) {
        struct lane_pen *pen = xp_arena_alloc(b->scratch, sizeof *pen);
        if (!pen)
            return false;
        pen->cap = 0;
        pen->segs = NULL;
        pen->sources = b->sources;
        lane_pen_reset(pen);
        b->pens[b->npens++] = pen;
    }
    b->end[b->nlanes++] = INT64_MIN;
    return true;
}

/* The lowest lane that is free at t, or b->nlanes. Steps up or down from the last event's lane:
 * in a stack of calls that is a step or two, however deep. */
static inline uint32_t free_lane(struct line_builder *b, int64_t t)
{
    uint32_t i = b->top;
    if (!b->nlanes)
        return 0;
    if (b->low[i] <= t) {
        while (i > 0 && b->low[i - 1] <= t)
            i--;
        return i;
    }
    while (++i < b->nlanes) {
        b->low[i] = b->end[i] < b->low[i - 1] ? b->end[i] : b->low[i - 1];
        if (b->low[i] <= t)
            break;
    }
    return i;
}

static inline __attribute__((always_inline)) enum xp_status
add(struct line_builder *b, const struct lane_raw *ev, const struct lane_ref *ref)
{
    uint32_t i = free_lane(b, ev->begin_ps);
    if (i == LANE_MAX) {
        i--;
        b->overflow++;
    } else if (i == b->nlanes && !open_lane(b)) {
        return XP_BUSY;
    }
    struct lane_pen *pen = b->pens[i];
    if (!put(pen, ev, b->scratch, b->out))
        return XP_BUSY;
    if (ref)
        pen->ref[pen->n - 1] = *ref;
    if (ev->end_ps > b->end[i])
        b->end[i] = ev->end_ps;
    b->low[i] = i && b->low[i - 1] < b->end[i] ? b->low[i - 1] : b->end[i];
    b->top = i;
    return XP_OK;
}

enum xp_status line_builder_add_many(struct line_builder *b, const struct lane_raw *ev, size_t n)
{
    if (n && !b->nevents) {
        b->first_begin = ev[0].begin_ps;
        b->last_end = ev[0].end_ps;
    }
    for (size_t i = 0; i < n; i++) {
        XP_TRY(add(b, &ev[i], NULL));
        if (ev[i].end_ps > b->last_end)
            b->last_end = ev[i].end_ps;
    }
    b->nevents += n;
    return XP_OK;
}

enum xp_status line_builder_add_views(struct line_builder *b, const struct lane_view *ev, size_t n)
{
    if (n && !b->nevents) {
        b->first_begin = ev[0].ev.begin_ps;
        b->last_end = ev[0].ev.end_ps;
    }
    for (size_t i = 0; i < n; i++) {
        XP_TRY(add(b, &ev[i].ev, &ev[i].ref));
        if (ev[i].ev.end_ps > b->last_end)
            b->last_end = ev[i].ev.end_ps;
    }
    b->nevents += n;
    return XP_OK;
}

static int64_t clamp(int64_t t)
{
    return t > LANE_TIME_MAX ? LANE_TIME_MAX : t < -LANE_TIME_MAX ? -LANE_TIME_MAX : t;
}

enum xp_status line_builder_add(struct line_builder *b, int64_t begin_ps, int64_t end_ps,
                                uint32_t name, uint64_t at)
{
    struct lane_raw ev = {clamp(begin_ps), clamp(end_ps), at, name};
    if (ev.begin_ps < b->last_begin)
        return XP_INTERNAL;
    if (ev.end_ps < ev.begin_ps)
        ev.end_ps = ev.begin_ps;
    b->last_begin = ev.begin_ps;
    return line_builder_add_many(b, &ev, 1);
}

enum xp_status line_builder_end(struct line_builder *b, struct part_line *line)
{
    line->lanes = NULL;
    line->nlanes = b->nlanes;
    line->nevents = b->nevents;
    line->overflow = b->overflow;
    line->begin_ps = b->nevents ? lane_add_sat(line->base_ps, b->first_begin) : 0;
    line->end_ps = b->nevents ? lane_add_sat(line->base_ps, b->last_end) : 0;
    if (b->nlanes) {
        line->lanes = xp_bump_alloc(b->out, b->nlanes * sizeof *line->lanes, _Alignof(void *));
        if (!line->lanes)
            return XP_BUSY;
    }
    for (uint32_t i = 0; i < b->nlanes; i++) {
        line->lanes[i] = lane_pen_end(b->pens[i], b->scratch, b->out);
        if (!line->lanes[i])
            return XP_BUSY;
    }
    line_builder_reset(b);
    return XP_OK;
}
