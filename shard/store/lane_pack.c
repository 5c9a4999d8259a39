#include "shard/store/lane_int.h"

/* A block is one control byte an event, then the events' bytes: four little-endian numbers each
 * (gap, duration, name, distance in the file), whose lengths the control byte tells, two bits a
 * number. The lengths to choose from depend on the unit of time. All control bytes stand in front,
 * so that where an event begins is known before the one before it is read. In the space of varints,
 * whose every byte is a branch; counting 12 M events by name takes 4 ns each where it took 9. */

/* Times of host tracers are whole nanoseconds; dividing by 1000 saves a byte or more of each. */
#define UNIT_NS 1
/* Some event begins before its predecessor ended: gaps are zigzag. */
#define OVERLAP 2

#define BYTES(n) (UINT64_MAX >> (64 - 8 * (n)))

enum field { GAP, DURATION, NAME, AT, FIELDS };

/* Lengths by code; the last takes any number of the field. */
static const uint8_t lengths[2][FIELDS][4] = {
    {{2, 3, 4, 8}, {2, 3, 4, 8}, {1, 2, 3, 4}, {1, 2, 3, 8}},
    {{1, 2, 3, 8}, {1, 2, 3, 8}, {1, 2, 3, 4}, {1, 2, 3, 8}},
};

static uint8_t choose_flags(const struct lane_raw *ev, uint32_t n)
{
    int64_t end = ev[0].begin_ps;
    uint8_t flags = UNIT_NS;
    for (uint32_t i = 0; i < n; i++) {
        int64_t gap = ev[i].begin_ps - end, dur = ev[i].end_ps - ev[i].begin_ps;
        if (gap < 0)
            flags |= OVERLAP;
        if ((flags & UNIT_NS) && (gap % 1000 || dur % 1000))
            flags &= (uint8_t)~UNIT_NS;
        end = ev[i].end_ps;
    }
    return flags;
}

static inline unsigned code_of(const uint8_t len[4], uint64_t v)
{
    return (v > BYTES(len[0])) + (v > BYTES(len[1])) + (v > BYTES(len[2]));
}

static inline __attribute__((always_inline)) size_t pack_run(const struct lane_raw *ev, uint32_t n,
                                                             uint8_t flags, uint8_t *out)
{
    const int64_t unit = flags & UNIT_NS ? 1000 : 1;
    const uint8_t(*len)[4] = lengths[flags & UNIT_NS];
    uint8_t *p = out + n;
    int64_t end = ev[0].begin_ps;
    uint64_t at = ev[0].at;
    for (uint32_t i = 0; i < n; i++) {
        int64_t gap = (ev[i].begin_ps - end) / unit;
        uint64_t v[FIELDS] = {flags & OVERLAP ? xp_zigzag(gap) : (uint64_t)gap,
                              (uint64_t)(ev[i].end_ps - ev[i].begin_ps) / (uint64_t)unit,
                              ev[i].name, xp_zigzag((int64_t)(ev[i].at - at))};
        unsigned control = 0;
#pragma GCC unroll 4
        for (unsigned f = 0; f < FIELDS; f++) {
            unsigned code = code_of(len[f], v[f]);
            memcpy(p, &v[f], 8);
            p += len[f][code];
            control |= code << 2 * f;
        }
        out[i] = (uint8_t)control;
        end = ev[i].end_ps;
        at = ev[i].at;
    }
    return (size_t)(p - out);
}

size_t lane_pack(const struct lane_raw *ev, uint32_t n, struct lane_block *b, uint8_t *out)
{
    b->flags = choose_flags(ev, n);
    if (b->flags == 0)
        return pack_run(ev, n, 0, out);
    if (b->flags == UNIT_NS)
        return pack_run(ev, n, UNIT_NS, out);
    return pack_run(ev, n, b->flags, out);
}

/* Where the numbers of an event lie, by control byte. */
struct layout {
    uint8_t at[FIELDS - 1], total; /* of all but the first number, and of the next event */
};

#define LEN(l, c, f) ((l) >> 4 * ((c) >> 2 * (f)&3) & 15)
#define LAYOUT(g, d, n, a, c)                                                                      \
    {                                                                                              \
        {LEN(g, c, 0), LEN(g, c, 0) + LEN(d, c, 1), LEN(g, c, 0) + LEN(d, c, 1) + LEN(n, c, 2)},   \
            LEN(g, c, 0) + LEN(d, c, 1) + LEN(n, c, 2) + LEN(a, c, 3)                              \
    }
#define LAYOUT4(g, d, n, a, c)                                                                     \
    LAYOUT(g, d, n, a, c), LAYOUT(g, d, n, a, c + 1), LAYOUT(g, d, n, a, c + 2),                   \
        LAYOUT(g, d, n, a, c + 3)
#define LAYOUT16(g, d, n, a, c)                                                                    \
    LAYOUT4(g, d, n, a, c), LAYOUT4(g, d, n, a, c + 4), LAYOUT4(g, d, n, a, c + 8),                \
        LAYOUT4(g, d, n, a, c + 12)
#define LAYOUT64(g, d, n, a, c)                                                                    \
    LAYOUT16(g, d, n, a, c), LAYOUT16(g, d, n, a, c + 16), LAYOUT16(g, d, n, a, c + 32),           \
        LAYOUT16(g, d, n, a, c + 48)
#define LAYOUT256(g, d, n, a)                                                                      \
    LAYOUT64(g, d, n, a, 0), LAYOUT64(g, d, n, a, 64), LAYOUT64(g, d, n, a, 128),                  \
        LAYOUT64(g, d, n, a, 192)

/* `lengths` again, a hexadecimal digit a code from the right. */
static const struct layout layouts[2][256] = {{LAYOUT256(0x8432, 0x8432, 0x4321, 0x8321)},
                                              {LAYOUT256(0x8321, 0x8321, 0x4321, 0x8321)}};

static const uint64_t masks[2][4] = {{BYTES(2), BYTES(3), BYTES(4), BYTES(8)},
                                     {BYTES(1), BYTES(2), BYTES(3), BYTES(8)}};
static const uint32_t name_masks[4] = {BYTES(1) & UINT32_MAX, BYTES(2) & UINT32_MAX,
                                       BYTES(3) & UINT32_MAX, BYTES(4) & UINT32_MAX};

static inline uint64_t load64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t load32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline __attribute__((always_inline)) void unpack_one(struct lane_unpack *u, uint8_t flags,
                                                             struct lane_event *ev)
{
    const int64_t unit = flags & UNIT_NS ? 1000 : 1;
    const uint64_t *mask = masks[flags & UNIT_NS];
    unsigned c = *u->control++;
    const struct layout *l = &layouts[flags & UNIT_NS][c];
    uint64_t gap = load64(u->p) & mask[c & 3];
    int64_t step = flags & OVERLAP ? xp_unzigzag(gap) : (int64_t)gap;
    ev->begin_ps = u->prev_end + step * unit;
    ev->end_ps = ev->begin_ps + (int64_t)(load64(u->p + l->at[0]) & mask[c >> 2 & 3]) * unit;
    ev->name = load32(u->p + l->at[1]) & name_masks[c >> 4 & 3];
    ev->at = u->prev_at + (uint64_t)xp_unzigzag(load64(u->p + l->at[2]) & masks[1][c >> 6]);
    u->p += l->total;
    u->prev_end = ev->end_ps;
    u->prev_at = ev->at;
}

void lane_unpack_next(struct lane_unpack *u, struct lane_event *ev)
{
    unpack_one(u, u->flags, ev);
}

static inline __attribute__((always_inline)) void
unpack_run(struct lane_unpack *u, uint8_t flags, struct lane_event *ev, size_t n, uint64_t ord)
{
    struct lane_unpack at = *u;
    for (size_t i = 0; i < n; i++) {
        unpack_one(&at, flags, &ev[i]);
        ev[i].ord = ord + i;
    }
    *u = at;
}

void lane_unpack_many(struct lane_unpack *u, struct lane_event *ev, size_t n, uint64_t ord)
{
    if (u->flags == UNIT_NS)
        unpack_run(u, UNIT_NS, ev, n, ord);
    else if (u->flags == 0)
        unpack_run(u, 0, ev, n, ord);
    else
        unpack_run(u, u->flags, ev, n, ord);
}

static inline __attribute__((always_inline)) void names_run(const struct lane_block *b,
                                                            uint8_t flags, uint32_t *names)
{
    const uint8_t *control = b->data, *p = b->data + b->count;
    for (size_t i = 0; i < b->count; i++) {
        const struct layout *l = &layouts[flags & UNIT_NS][control[i]];
        names[i] = load32(p + l->at[1]) & name_masks[control[i] >> 4 & 3];
        p += l->total;
    }
}

void lane_unpack_names(const struct lane_block *b, uint32_t *names)
{
    if (b->flags & UNIT_NS)
        names_run(b, UNIT_NS, names);
    else
        names_run(b, 0, names);
}
