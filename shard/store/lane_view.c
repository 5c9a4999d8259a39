#include "shard/store/lane_bits.h"

/* A block of a lane whose events are made of another lane's, its source: each begins where an event
 * of the source does, and ends where one does, or some nanoseconds sooner. So no time is kept but
 * which events these are: how many the first one is further than the first of the event before, how
 * many further the last one is, and the nanoseconds; each in as few bits as the block needs.
 *
 * To read it, the source's blocks are unpacked along with it, one after the other. A block that
 * spans too many of them is not made. */

enum { SKIP, SPAN, CUT, NAME, COLUMNS };

#define SOURCE_BLOCKS_MAX 24

struct view_head {
    const struct lane_source *source;
    uint32_t name_base;
    uint8_t width[COLUMNS];
};

struct view_columns {
    uint64_t v[COLUMNS][LANE_BLOCK];
    uint64_t all[COLUMNS]; /* or of them */
    uint64_t name_base;
};

/* False: some event is not made of the source's, or not in order. */
static bool split(struct view_columns *c, const struct lane_raw *ev, const struct lane_ref *ref,
                  uint32_t n)
{
    uint64_t at = ref[0].first, end = at, skips = 0, spans = 0, cuts = 0, names = 0;
    uint64_t low = ev[0].name, high = low, ats = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (ref[i].first < end || ref[i].last < ref[i].first)
            return false;
        skips |= c->v[SKIP][i] = ref[i].first - at;
        spans |= c->v[SPAN][i] = ref[i].last - ref[i].first;
        cuts |= c->v[CUT][i] = ref[i].cut_ns;
        names = c->v[NAME][i] = ev[i].name;
        low = names < low ? names : low;
        high = names > high ? names : high;
        ats |= ev[i].at;
        at = ref[i].first;
        end = ref[i].last;
    }
    c->all[SKIP] = skips;
    c->all[SPAN] = spans;
    c->all[CUT] = cuts;
    c->all[NAME] = high - low;
    c->name_base = low;
    return !ats && end - ref[0].first <= SOURCE_BLOCKS_MAX * LANE_BLOCK;
}

size_t lane_view_pack(const struct lane_raw *ev, const struct lane_ref *ref, uint32_t n,
                      const struct lane_source *sources, struct lane_block *b, uint8_t *out)
{
    struct view_columns c;
    struct view_head head;
    if (ref[0].first == LANE_REF_NONE || !split(&c, ev, ref, n))
        return 0;
    head.source = &sources[ref[0].first >> 48];
    head.name_base = (uint32_t)c.name_base;
    for (unsigned col = 0; col < COLUMNS; col++)
        head.width[col] = bits_width(c.all[col]);
    memcpy(out, &head, sizeof head);
    uint8_t *p = out + sizeof head;
    for (unsigned col = 0; col < COLUMNS; col++)
        p = bits_put(p, c.v[col], n, col == NAME ? c.name_base : 0, head.width[col]);
    b->flags = LANE_VIEW;
    b->first_at = ref[0].first & (LANE_REF(1, 0) - 1);
    return (size_t)(p - out);
}

/* --- reading --- */

void lane_view_open(struct lane_unpack *u, const struct lane_block *b)
{
    struct view_head head;
    memcpy(&head, b->data, sizeof head);
    const uint8_t *p = b->data + sizeof head;
    for (unsigned col = 0; col < COLUMNS; col++) {
        u->width[col] = head.width[col];
        u->column[col] = p;
        p += bits_bytes(u->width[col], b->count);
    }
    u->source = head.source;
    u->name_base = head.name_base;
    u->prev_at = b->first_at;
    u->flags = b->flags;
    u->i = 0;
}

void lane_view_skip(struct lane_unpack *u, uint32_t n)
{
    struct bits_run skips = bits_open(u, SKIP);
    for (uint32_t i = 0; i < n; i++)
        u->prev_at += bits_next(&skips);
    u->i += n;
}

/* One block of the source, unpacked. */
struct view_source {
    const struct lane *lane;
    uint64_t block;
    int64_t begins[LANE_BLOCK], ends[LANE_BLOCK];
};

static inline void source_at(struct view_source *s, uint64_t ord)
{
    if (s->block == ord / LANE_BLOCK)
        return;
    s->block = ord / LANE_BLOCK;
    lane_unpack_times(lane_block(s->lane, s->block), s->begins, s->ends);
}

static inline void view_times(struct view_source *s, int64_t base_ps, uint64_t ord, uint64_t span,
                              uint64_t cut_ns, int64_t *begin_ps, int64_t *end_ps)
{
    source_at(s, ord);
    *begin_ps = base_ps + s->begins[ord % LANE_BLOCK];
    source_at(s, ord + span);
    *end_ps = base_ps + s->ends[(ord + span) % LANE_BLOCK] - (int64_t)cut_ns * 1000;
    if (*end_ps < *begin_ps)
        *end_ps = *begin_ps;
}

void lane_view_many(struct lane_unpack *u, struct lane_event *ev, size_t n, uint64_t ord)
{
    struct bits_run skips = bits_open(u, SKIP), spans = bits_open(u, SPAN);
    struct bits_run cuts = bits_open(u, CUT), names = bits_open(u, NAME);
    struct view_source s;
    int64_t base_ps = u->source->base_ps;
    uint64_t at = u->prev_at;
    s.lane = u->source->lane;
    s.block = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        at += bits_next(&skips);
        view_times(&s, base_ps, at, bits_next(&spans), bits_next(&cuts), &ev[i].begin_ps,
                   &ev[i].end_ps);
        ev[i].name = u->name_base + (uint32_t)bits_next(&names);
        ev[i].at = 0;
        ev[i].ord = ord + i;
    }
    u->prev_at = at;
    u->i += (uint32_t)n;
}

void lane_view_next(struct lane_unpack *u, struct lane_event *ev)
{
    lane_view_many(u, ev, 1, 0);
}

void lane_view_names(const struct lane_block *b, uint32_t *names)
{
    struct lane_unpack u;
    lane_view_open(&u, b);
    struct bits_run run = bits_open(&u, NAME);
    for (uint32_t i = 0; i < b->count; i++)
        names[i] = u.name_base + (uint32_t)bits_next(&run);
}

void lane_view_begins(const struct lane_block *b, int64_t *begins)
{
    struct lane_unpack u;
    lane_view_open(&u, b);
    struct bits_run skips = bits_open(&u, SKIP);
    int64_t source[LANE_BLOCK], base_ps = u.source->base_ps;
    uint64_t at = u.prev_at, block = UINT64_MAX;
    for (uint32_t i = 0; i < b->count; i++) {
        at += bits_next(&skips);
        if (at / LANE_BLOCK != block) {
            block = at / LANE_BLOCK;
            lane_unpack_begins(lane_block(u.source->lane, block), source);
        }
        begins[i] = base_ps + source[at % LANE_BLOCK];
    }
}
