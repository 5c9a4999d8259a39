#include "shard/store/lane_bits.h"

/* A block is a header (four widths in bits, four bases as varints), then four columns: gap,
 * duration, name, distance in the file. A number of a column is its difference to the column's
 * base, in `width` bits, one behind the other from the lowest bit on. No branch depends on a
 * number, each is found without those before it, and a column that is not asked for costs nothing.
 *
 * The first event has no predecessor: its gap and distance are taken to be the bases, and what a
 * reader adds them to is the block's begin and first offset less as much. */

enum { GAP, DURATION, NAME, AT, COLUMNS };

/* Times of host tracers are whole nanoseconds; dividing by 1000 saves ten bits of each. */
#define UNIT_NS 1

/* --- packing --- */

struct columns {
    uint64_t v[COLUMNS][LANE_BLOCK];
    uint64_t base[COLUMNS]; /* gap and distance: signed */
    uint8_t width[COLUMNS];
};

static void measure(struct columns *c, unsigned col, uint32_t n)
{
    uint64_t *v = c->v[col], low = v[0], high = v[0];
    for (uint32_t i = 1; i < n; i++) {
        low = v[i] < low ? v[i] : low;
        high = v[i] > high ? v[i] : high;
    }
    c->base[col] = low;
    c->width[col] = bits_width(high - low);
}

/* The same for signed numbers of which the first does not count. */
static void measure_steps(struct columns *c, unsigned col, uint32_t n)
{
    uint64_t *v = c->v[col];
    int64_t low = n > 1 ? (int64_t)v[1] : 0, high = low;
    for (uint32_t i = 2; i < n; i++) {
        int64_t x = (int64_t)v[i];
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    v[0] = (uint64_t)low;
    c->base[col] = (uint64_t)low;
    c->width[col] = bits_width((uint64_t)high - (uint64_t)low);
}

static bool whole_ns(const struct columns *c, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if ((int64_t)c->v[GAP][i] % 1000 || c->v[DURATION][i] % 1000)
            return false;
    return true;
}

static uint8_t split(struct columns *c, const struct lane_raw *ev, uint32_t n)
{
    int64_t end = ev[0].begin_ps;
    uint64_t at = ev[0].at;
    for (uint32_t i = 0; i < n; i++) {
        c->v[GAP][i] = (uint64_t)(ev[i].begin_ps - end); /* times are within +-LANE_TIME_MAX */
        c->v[DURATION][i] = (uint64_t)(ev[i].end_ps - ev[i].begin_ps);
        c->v[NAME][i] = ev[i].name;
        c->v[AT][i] = ev[i].at - at;
        end = ev[i].end_ps;
        at = ev[i].at;
    }
    if (!whole_ns(c, n))
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        c->v[GAP][i] = (uint64_t)((int64_t)c->v[GAP][i] / 1000);
        c->v[DURATION][i] /= 1000;
    }
    return UNIT_NS;
}

size_t lane_pack(const struct lane_raw *ev, uint32_t n, struct lane_block *b, uint8_t *out)
{
    struct columns c;
    uint8_t *p = out;
    b->flags = split(&c, ev, n);
    measure_steps(&c, GAP, n);
    measure(&c, DURATION, n);
    measure(&c, NAME, n);
    measure_steps(&c, AT, n);
    for (unsigned col = 0; col < COLUMNS; col++)
        *p++ = c.width[col];
    p = xp_varint_write(p, xp_zigzag((int64_t)c.base[GAP]));
    p = xp_varint_write(p, c.base[DURATION]);
    p = xp_varint_write(p, c.base[NAME]);
    p = xp_varint_write(p, xp_zigzag((int64_t)c.base[AT]));
    for (unsigned col = 0; col < COLUMNS; col++)
        p = bits_put(p, c.v[col], n, c.base[col], c.width[col]);
    return (size_t)(p - out);
}

/* --- unpacking; our own bytes, always whole --- */

static const uint8_t *take(const uint8_t *p, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0;; shift += 7) {
        *v |= (uint64_t)(*p & 0x7f) << shift;
        if (!(*p++ & 0x80))
            return p;
    }
}

void lane_unpack_open(struct lane_unpack *u, const struct lane_block *b)
{
    uint64_t gap, duration, name, at;
    const uint8_t *p = b->data;
    memcpy(u->width, p, COLUMNS);
    p = take(p + COLUMNS, &gap);
    p = take(p, &duration);
    p = take(p, &name);
    p = take(p, &at);
    for (unsigned col = 0; col < COLUMNS; col++) {
        u->column[col] = p;
        p += bits_bytes(u->width[col], b->count);
    }
    u->flags = b->flags;
    int64_t unit = b->flags & UNIT_NS ? 1000 : 1;
    u->i = 0;
    u->gap_base = xp_unzigzag(gap) * unit;
    u->duration_base = duration * (uint64_t)unit;
    u->name_base = (uint32_t)name;
    u->at_base = (uint64_t)xp_unzigzag(at);
    u->prev_end = (int64_t)((uint64_t)b->begin_ps - (uint64_t)u->gap_base);
    u->prev_at = b->first_at - u->at_base;
}

static inline __attribute__((always_inline)) void unpack_one(struct lane_unpack *u, uint64_t unit,
                                                             struct lane_event *ev)
{
    uint32_t i = u->i++;
    uint64_t gap = bits_get(u->column[GAP], u->width[GAP], i) * unit;
    uint64_t duration =
        bits_get(u->column[DURATION], u->width[DURATION], i) * unit + u->duration_base;
    ev->begin_ps = (int64_t)((uint64_t)u->prev_end + (uint64_t)u->gap_base + gap);
    ev->end_ps = ev->begin_ps + (int64_t)duration;
    ev->name = u->name_base + (uint32_t)bits_get(u->column[NAME], u->width[NAME], i);
    ev->at = u->prev_at + u->at_base + bits_get(u->column[AT], u->width[AT], i);
    u->prev_end = ev->end_ps;
    u->prev_at = ev->at;
}

void lane_unpack_next(struct lane_unpack *u, struct lane_event *ev)
{
    unpack_one(u, u->flags & UNIT_NS ? 1000 : 1, ev);
}

/* Two columns at a time: more do not fit the registers. */
static inline __attribute__((always_inline)) void unpack_times(struct lane_unpack *u, uint64_t unit,
                                                               struct lane_event *ev, size_t n)
{
    struct bits_run gaps = bits_open(u, GAP), durations = bits_open(u, DURATION);
    uint64_t gap_base = (uint64_t)u->gap_base, duration_base = u->duration_base;
    uint64_t end = (uint64_t)u->prev_end;
    for (size_t i = 0; i < n; i++) {
        uint64_t begin = end + gap_base + bits_next(&gaps) * unit;
        end = begin + duration_base + bits_next(&durations) * unit;
        ev[i].begin_ps = (int64_t)begin;
        ev[i].end_ps = (int64_t)end;
    }
    u->prev_end = (int64_t)end;
}

static inline void unpack_rest(struct lane_unpack *u, struct lane_event *ev, size_t n, uint64_t ord)
{
    struct bits_run names = bits_open(u, NAME), ats = bits_open(u, AT);
    uint64_t at = u->prev_at, at_base = u->at_base;
    uint32_t name_base = u->name_base;
    for (size_t i = 0; i < n; i++) {
        at += at_base + bits_next(&ats);
        ev[i].name = name_base + (uint32_t)bits_next(&names);
        ev[i].at = at;
        ev[i].ord = ord + i;
    }
    u->prev_at = at;
}

void lane_unpack_many(struct lane_unpack *u, struct lane_event *ev, size_t n, uint64_t ord)
{
    if (u->flags & UNIT_NS)
        unpack_times(u, 1000, ev, n);
    else
        unpack_times(u, 1, ev, n);
    unpack_rest(u, ev, n, ord);
    u->i += (uint32_t)n;
}

void lane_unpack_names(const struct lane_block *b, uint32_t *names)
{
    struct lane_unpack u;
    lane_unpack_open(&u, b);
    struct bits_run run = bits_open(&u, NAME);
    for (uint32_t i = 0; i < b->count; i++)
        names[i] = u.name_base + (uint32_t)bits_next(&run);
}

/* ends may be NULL. */
static inline __attribute__((always_inline)) void
unpack_two(struct lane_unpack *u, uint64_t unit, int64_t *begins, int64_t *ends, size_t n)
{
    struct bits_run gaps = bits_open(u, GAP), durations = bits_open(u, DURATION);
    uint64_t gap_base = (uint64_t)u->gap_base, duration_base = u->duration_base;
    uint64_t end = (uint64_t)u->prev_end;
    for (size_t i = 0; i < n; i++) {
        uint64_t begin = end + gap_base + bits_next(&gaps) * unit;
        end = begin + duration_base + bits_next(&durations) * unit;
        begins[i] = (int64_t)begin;
        if (ends)
            ends[i] = (int64_t)end;
    }
}

void lane_unpack_begins(const struct lane_block *b, int64_t *begins)
{
    struct lane_unpack u;
    lane_unpack_open(&u, b);
    if (u.flags & UNIT_NS)
        unpack_two(&u, 1000, begins, NULL, b->count);
    else
        unpack_two(&u, 1, begins, NULL, b->count);
}

void lane_unpack_times(const struct lane_block *b, int64_t *begins, int64_t *ends)
{
    struct lane_unpack u;
    lane_unpack_open(&u, b);
    if (u.flags & UNIT_NS)
        unpack_two(&u, 1000, begins, ends, b->count);
    else
        unpack_two(&u, 1, begins, ends, b->count);
}
