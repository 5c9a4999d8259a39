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

/* --- packing ---
 *
 * Loops are LANE_BLOCK long whatever the block has, so that compilers make them wide; the functions
 * below are compiled twice, for CPUs with AVX2 and for all. */

#define ALWAYS static inline __attribute__((always_inline))

/* By halves: no step waits for the one before. */
ALWAYS void measure(struct lane_columns *c, unsigned col)
{
    const int64_t *v = c->v[col];
    int64_t low[LANE_BLOCK / 2], high[LANE_BLOCK / 2];
#define HALVE(n, from_low, from_high)                                                              \
    for (uint32_t i = 0; i < (n); i++) {                                                           \
        low[i] = from_low[i] < from_low[i + (n)] ? from_low[i] : from_low[i + (n)];                \
        high[i] = from_high[i] > from_high[i + (n)] ? from_high[i] : from_high[i + (n)];           \
    }
    HALVE(32, v, v)
    HALVE(16, low, high)
    HALVE(8, low, high)
    HALVE(4, low, high)
    HALVE(2, low, high)
    HALVE(1, low, high)
#undef HALVE
    c->low[col] = low[0];
    c->high[col] = high[0];
}

/* Events that overlap, in a line's last lane. */
static void sum_up_overlap(const struct lane_raw *ev, uint32_t n, struct lane_block *b)
{
    int64_t busy = 0, max_gap = 0, end = ev[0].end_ps;
    for (uint32_t i = 0; i < n; i++) {
        int64_t gap = ev[i].begin_ps - end;
        busy = lane_add_sat(busy, ev[i].end_ps - ev[i].begin_ps);
        if (gap > max_gap)
            max_gap = gap;
        if (ev[i].end_ps > end)
            end = ev[i].end_ps;
    }
    b->end_ps = end;
    b->busy_ps = busy;
    b->max_gap_ps = max_gap;
}

ALWAYS void measure_times(const struct lane_raw *ev, uint32_t n, struct lane_block *b,
                          struct lane_columns *c)
{
    int64_t *gap = c->v[GAP], *duration = c->v[DURATION], busy = 0;
    duration[0] = ev[0].end_ps - ev[0].begin_ps;
    for (uint32_t i = 1; i < n; i++) { /* times are within +-LANE_TIME_MAX */
        gap[i] = ev[i].begin_ps - ev[i - 1].end_ps;
        duration[i] = ev[i].end_ps - ev[i].begin_ps;
    }
    gap[0] = n > 1 ? gap[1] : 0;
    for (uint32_t i = 0; i < n; i++)
        busy = (int64_t)((uint64_t)busy + (uint64_t)duration[i]);
    for (uint32_t i = n; i < LANE_BLOCK; i++) {
        gap[i] = gap[0];
        duration[i] = duration[0];
    }
    measure(c, GAP);
    measure(c, DURATION);
    uint32_t which = 0;
    while (duration[which] != c->high[DURATION])
        which++;
    *b = (struct lane_block){.begin_ps = ev[0].begin_ps,
                             .end_ps = ev[n - 1].end_ps,
                             .busy_ps = busy,
                             .max_gap_ps = c->high[GAP] > 0 ? c->high[GAP] : 0,
                             .longest_ps = duration[which],
                             .longest_begin_ps = ev[which].begin_ps,
                             .longest_at = ev[which].at,
                             .longest_name = ev[which].name,
                             .first_at = ev[0].at,
                             .count = (uint8_t)n};
    if (c->low[GAP] < 0)
        sum_up_overlap(ev, n, b);
}

/* x / 1000 where x is a multiple of it; else out of +-NS_MAX. */
#define NS_MAX (INT64_MAX / 1000)
ALWAYS int64_t exact_ns(int64_t x)
{
    return (int64_t)((uint64_t)(x >> 3) * UINT64_C(0x1cac083126e978d5)); /* 1 / 125 modulo 2^64 */
}

ALWAYS bool whole_ns(const int64_t *v)
{
    int64_t parts = 0, beyond = 0;
    for (uint32_t i = 0; i < LANE_BLOCK; i++) {
        int64_t ns = exact_ns(v[i]);
        parts |= v[i] & 7;
        beyond |= (ns > NS_MAX) | (ns < -NS_MAX);
    }
    return !parts && !beyond;
}

ALWAYS void to_ns(struct lane_columns *c, unsigned col)
{
    for (uint32_t i = 0; i < LANE_BLOCK; i++)
        c->v[col][i] = exact_ns(c->v[col][i]);
    c->low[col] = exact_ns(c->low[col]);
    c->high[col] = exact_ns(c->high[col]);
}

ALWAYS void measure_rest(const struct lane_raw *ev, uint32_t n, struct lane_columns *c)
{
    int64_t *name = c->v[NAME], *at = c->v[AT];
    name[0] = ev[0].name;
    for (uint32_t i = 1; i < n; i++) {
        name[i] = ev[i].name;
        at[i] = (int64_t)(ev[i].at - ev[i - 1].at);
    }
    at[0] = n > 1 ? at[1] : 0;
    for (uint32_t i = n; i < LANE_BLOCK; i++) {
        name[i] = name[0];
        at[i] = at[0];
    }
    measure(c, NAME);
    measure(c, AT);
}

/* Halves the numbers: each two, of w bits, become one of 2 w. */
ALWAYS void fold(uint64_t *v, uint32_t n, unsigned w)
{
    for (uint32_t i = 0; i < n; i++)
        v[i] = v[2 * i] | v[2 * i + 1] << w;
}

/* The column less its least; the first of a column of steps is 0. Numbers are put together in
 * pairs while they fit, so that few are left for the loop that depends on itself. */
ALWAYS uint8_t *put_column(uint8_t *p, const struct lane_columns *c, unsigned col, uint32_t n)
{
    uint64_t v[LANE_BLOCK], low = (uint64_t)c->low[col];
    unsigned w = bits_width((uint64_t)c->high[col] - low), width = w;
    uint32_t m = LANE_BLOCK;
    if (!w)
        return p;
    for (uint32_t i = 0; i < LANE_BLOCK; i++)
        v[i] = (uint64_t)c->v[col][i] - low;
    if (col == GAP || col == AT)
        v[0] = 0;
    if (n < LANE_BLOCK)
        memset(v + n, 0, (LANE_BLOCK - n) * sizeof *v);
    if (w <= 28) {
        fold(v, 32, w);
        w *= 2;
        m = 32;
    }
    if (w <= 28) {
        fold(v, 16, w);
        w *= 2;
        m = 16;
    }
    if (w <= 28) {
        fold(v, 8, w);
        w *= 2;
        m = 8;
    }
    bits_put(p, v, m, 0, w);
    return p + bits_bytes(width, n);
}

ALWAYS size_t pack(const struct lane_raw *ev, uint32_t n, struct lane_columns *c,
                   struct lane_block *b, uint8_t *out)
{
    uint8_t *p = out;
    b->flags = 0;
    if (whole_ns(c->v[GAP]) && whole_ns(c->v[DURATION])) {
        b->flags = UNIT_NS;
        to_ns(c, GAP);
        to_ns(c, DURATION);
    }
    measure_rest(ev, n, c);
    for (unsigned col = 0; col < COLUMNS; col++)
        *p++ = bits_width((uint64_t)c->high[col] - (uint64_t)c->low[col]);
    p = xp_varint_write(p, xp_zigzag(c->low[GAP]));
    p = xp_varint_write(p, (uint64_t)c->low[DURATION]);
    p = xp_varint_write(p, (uint64_t)c->low[NAME]);
    p = xp_varint_write(p, xp_zigzag(c->low[AT]));
    for (unsigned col = 0; col < COLUMNS; col++)
        p = put_column(p, c, col, n);
    return (size_t)(p - out);
}

void lane_measure_plain(const struct lane_raw *ev, uint32_t n, struct lane_block *b,
                        struct lane_columns *c)
{
    measure_times(ev, n, b, c);
}

size_t lane_pack_plain(const struct lane_raw *ev, uint32_t n, struct lane_columns *c,
                       struct lane_block *b, uint8_t *out)
{
    return pack(ev, n, c, b, out);
}

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2,bmi,bmi2")))

WIDE static void measure_wide(const struct lane_raw *ev, uint32_t n, struct lane_block *b,
                              struct lane_columns *c)
{
    measure_times(ev, n, b, c);
}

WIDE static size_t pack_wide(const struct lane_raw *ev, uint32_t n, struct lane_columns *c,
                             struct lane_block *b, uint8_t *out)
{
    return pack(ev, n, c, b, out);
}

static inline bool wide(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
}
#else
#define measure_wide lane_measure_plain
#define pack_wide lane_pack_plain
#define wide() false
#endif

void lane_measure(const struct lane_raw *ev, uint32_t n, struct lane_block *b,
                  struct lane_columns *c)
{
    wide() ? measure_wide(ev, n, b, c) : lane_measure_plain(ev, n, b, c);
}

size_t lane_pack(const struct lane_raw *ev, uint32_t n, struct lane_columns *c,
                 struct lane_block *b, uint8_t *out)
{
    return wide() ? pack_wide(ev, n, c, b, out) : lane_pack_plain(ev, n, c, b, out);
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
unpack_two(const struct lane_unpack *u, uint64_t unit, int64_t *begins, int64_t *ends, size_t n)
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

void lane_unpack_begins(const struct lane_unpack *u, int64_t *begins, size_t n)
{
    if (u->flags & UNIT_NS)
        unpack_two(u, 1000, begins, NULL, n);
    else
        unpack_two(u, 1, begins, NULL, n);
}

void lane_unpack_pick(const struct lane_unpack *u, const int64_t *begins, const uint8_t *which,
                      size_t n, struct lane_event *ev)
{
    uint64_t unit = u->flags & UNIT_NS ? 1000 : 1, at = u->prev_at;
    struct bits_run ats = bits_open(u, AT);
    for (size_t k = 0, i = 0; k < n; k++) {
        for (; i <= which[k]; i++)
            at += u->at_base + bits_next(&ats);
        uint64_t duration = bits_get(u->column[DURATION], u->width[DURATION], which[k]) * unit;
        ev[k].begin_ps = begins[k];
        ev[k].end_ps = (int64_t)((uint64_t)begins[k] + u->duration_base + duration);
        ev[k].name = u->name_base + (uint32_t)bits_get(u->column[NAME], u->width[NAME], which[k]);
        ev[k].at = at;
    }
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
