#include "shard/store/lane_bits.h"

#include <stdatomic.h>

/* A block of a lane whose events are made of another lane's, its source: each begins where an event
 * of the source does, and ends where one does, or some nanoseconds sooner. So no time is kept but
 * which events these are: how many the first one is further than the first of the event before, how
 * many further the last one is, and the nanoseconds. These and the name are one number an event, in
 * as few bits as the block needs for each.
 *
 * To read it, the source's blocks are unpacked along with it, one after the other. A block that
 * spans too many of them is not made. */

uint64_t lane_new_id(void)
{
    static _Atomic uint64_t last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

enum { SKIP, SPAN, CUT, NAME, COLUMNS };

#define SOURCE_BLOCKS_MAX 56

struct view_head {
    const struct lane_source *source;
    uint32_t name_base;
    uint8_t width[COLUMNS];
};

struct view_columns {
    uint32_t v[COLUMNS][LANE_BLOCK];
    uint32_t all[COLUMNS]; /* or of them */
    uint32_t name_base;
};

/* False: some event is not made of the source's, or not in order. */
static bool split(struct view_columns *c, const struct lane_raw *ev, const struct lane_ref *ref,
                  uint32_t n)
{
    uint64_t at = ref[0].first, end = at, ats = 0;
    uint32_t low = ev[0].name, high = low, skips = 0, spans = 0, cuts = 0;
    if (ref[n - 1].last - at > SOURCE_BLOCKS_MAX * LANE_BLOCK)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (ref[i].first < end || ref[i].last < ref[i].first)
            return false;
        skips |= c->v[SKIP][i] = (uint32_t)(ref[i].first - at);
        spans |= c->v[SPAN][i] = (uint32_t)(ref[i].last - ref[i].first);
        cuts |= c->v[CUT][i] = ref[i].cut_ns;
        c->v[NAME][i] = ev[i].name;
        low = ev[i].name < low ? ev[i].name : low;
        high = ev[i].name > high ? ev[i].name : high;
        ats |= ev[i].at;
        at = ref[i].first;
        end = ref[i].last;
    }
    c->all[SKIP] = skips;
    c->all[SPAN] = spans;
    c->all[CUT] = cuts;
    c->all[NAME] = high - low;
    c->name_base = low;
    return !ats;
}

size_t lane_view_pack(const struct lane_raw *ev, const struct lane_ref *ref, uint32_t n,
                      const struct lane_source *sources, struct lane_block *b, uint8_t *out)
{
    struct view_columns c;
    struct view_head head;
    uint64_t v[LANE_BLOCK];
    if (ref[0].first == LANE_REF_NONE || !split(&c, ev, ref, n))
        return 0;
    head.source = &sources[ref[0].first >> 48];
    head.name_base = c.name_base;
    for (unsigned col = 0; col < COLUMNS; col++)
        head.width[col] = bits_width(c.all[col]);
    unsigned span = head.width[SKIP], cut = span + head.width[SPAN], name = cut + head.width[CUT];
    if (name + head.width[NAME] > LANE_BITS)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        v[i] = c.v[SKIP][i] | (uint64_t)c.v[SPAN][i] << span | (uint64_t)c.v[CUT][i] << cut |
               (uint64_t)(c.v[NAME][i] - c.name_base) << name;
    memcpy(out, &head, sizeof head);
    b->flags = LANE_VIEW;
    b->first_at = ref[0].first & (LANE_REF(1, 0) - 1);
    uint8_t *p = out + sizeof head;
    return (size_t)(bits_put(p, v, n, 0, name + head.width[NAME]) - out);
}

/* --- reading --- */

/* In `unpack`: width[0..4) as in the head, column[0] the numbers. */
void lane_view_open(struct lane_unpack *u, const struct lane_block *b)
{
    struct view_head head;
    memcpy(&head, b->data, sizeof head);
    memcpy(u->width, head.width, sizeof u->width);
    u->column[0] = b->data + sizeof head;
    u->source = head.source;
    u->name_base = head.name_base;
    u->prev_at = b->first_at;
    u->flags = b->flags;
    u->i = 0;
}

/* An event's number, and its parts. */
struct view_run {
    struct bits_run all;
    uint64_t mask[COLUMNS];
    uint8_t shift[COLUMNS];
};

static inline struct view_run view_open(const struct lane_unpack *u)
{
    struct view_run r;
    uint32_t width = 0;
    for (unsigned col = 0; col < COLUMNS; col++) {
        r.mask[col] = bits_mask[u->width[col]];
        r.shift[col] = (uint8_t)width;
        width += u->width[col];
    }
    r.all = (struct bits_run){u->column[0], bits_mask[width], u->i * width, width};
    return r;
}

static inline uint64_t part_of(const struct view_run *r, uint64_t v, unsigned col)
{
    return v >> r->shift[col] & r->mask[col];
}

void lane_view_skip(struct lane_unpack *u, uint32_t n)
{
    struct view_run r = view_open(u);
    for (uint32_t i = 0; i < n; i++)
        u->prev_at += part_of(&r, bits_next(&r.all), SKIP);
    u->i += n;
}

/* Blocks of sources that this thread has unpacked: the lanes of a line are read along with each
 * other, and mostly have one source. */
#define KNOWN 256

struct view_block {
    uint64_t source; /* its id; 0: none */
    uint64_t block;
    uint64_t sieve; /* its id; 0: `may` is not known */
    int64_t sieve_base;
    uint64_t may;
    int64_t begins[LANE_BLOCK], ends[LANE_BLOCK];
};

static _Thread_local struct view_block known[KNOWN];

static inline struct view_block *known_place(uint64_t source, uint64_t block)
{
    return &known[(block + 89 * source) % KNOWN];
}

static inline struct view_block *source_block(const struct lane_source *s, uint64_t block)
{
    struct view_block *k = known_place(s->id, block);
    if (k->source != s->id || k->block != block) {
        k->source = s->id;
        k->block = block;
        k->sieve = 0;
        lane_block_ahead(s->lane, block);
        lane_unpack_times(lane_block(s->lane, block), k->begins, k->ends);
    }
    return k;
}

void lane_view_many(struct lane_unpack *u, struct lane_event *ev, size_t n, uint64_t ord)
{
    struct view_run r = view_open(u);
    const struct lane_source *s = u->source;
    const struct view_block *k = NULL;
    uint64_t at = u->prev_at, block = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        uint64_t v = bits_next(&r.all);
        at += part_of(&r, v, SKIP);
        if (at / LANE_BLOCK != block)
            k = source_block(s, block = at / LANE_BLOCK);
        ev[i].begin_ps = s->base_ps + k->begins[at % LANE_BLOCK];
        uint64_t last = at + part_of(&r, v, SPAN);
        if (last / LANE_BLOCK != block)
            k = source_block(s, block = last / LANE_BLOCK);
        int64_t end = s->base_ps + k->ends[last % LANE_BLOCK] - (int64_t)part_of(&r, v, CUT) * 1000;
        ev[i].end_ps = end < ev[i].begin_ps ? ev[i].begin_ps : end;
        ev[i].name = u->name_base + (uint32_t)part_of(&r, v, NAME);
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
    struct view_run r = view_open(&u);
    for (uint32_t i = 0; i < b->count; i++)
        names[i] = u.name_base + (uint32_t)part_of(&r, bits_next(&r.all), NAME);
}

/* Which of its events the sieve lets through. */
static inline uint64_t sift(struct view_block *k, const struct lane_sieve *s, int64_t base_ps)
{
    if (k->sieve == s->id && k->sieve_base == base_ps)
        return k->may;
    uint64_t may = 0;
    for (unsigned i = 0; i < LANE_BLOCK; i++)
        may |= (uint64_t)lane_sieve_has(s, base_ps + k->begins[i]) << i;
    k->sieve = s->id;
    k->sieve_base = base_ps;
    return k->may = may;
}

const int64_t *lane_view_known(uint64_t id, uint64_t block, const struct lane_sieve *s,
                               int64_t base_ps, uint64_t *may)
{
    struct view_block *k = known_place(id, block);
    if (k->source != id || k->block != block)
        return NULL;
    *may = sift(k, s, base_ps);
    return k->begins;
}

size_t lane_view_sift(const struct lane_unpack *u, size_t n, const struct lane_sieve *s,
                      int64_t base_ps, uint8_t *which, int64_t *begins)
{
    struct view_run r = view_open(u);
    const struct lane_source *source = u->source;
    const int64_t *times = NULL;
    uint64_t at = u->prev_at, block = UINT64_MAX, may = 0;
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        at += part_of(&r, bits_next(&r.all), SKIP);
        if (at / LANE_BLOCK != block) {
            struct view_block *k = source_block(source, block = at / LANE_BLOCK);
            may = sift(k, s, source->base_ps + base_ps);
            times = k->begins;
        }
        which[found] = (uint8_t)i;
        begins[found] = source->base_ps + times[at % LANE_BLOCK];
        found += may >> at % LANE_BLOCK & 1;
    }
    return found;
}

void lane_view_pick(const struct lane_unpack *u, const int64_t *begins, const uint8_t *which,
                    size_t n, struct lane_event *ev)
{
    struct view_run r = view_open(u);
    const struct lane_source *s = u->source;
    uint64_t at = u->prev_at, v = 0;
    for (size_t k = 0, i = 0; k < n; k++) {
        for (; i <= which[k]; i++)
            at += part_of(&r, v = bits_next(&r.all), SKIP);
        uint64_t last = at + part_of(&r, v, SPAN);
        int64_t end = s->base_ps + source_block(s, last / LANE_BLOCK)->ends[last % LANE_BLOCK] -
                      (int64_t)part_of(&r, v, CUT) * 1000;
        ev[k].begin_ps = begins[k];
        ev[k].end_ps = end < ev[k].begin_ps ? ev[k].begin_ps : end;
        ev[k].name = u->name_base + (uint32_t)part_of(&r, v, NAME);
        ev[k].at = 0;
    }
}
