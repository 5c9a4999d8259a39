/* shard/store/lane_bits.h - columns of numbers, each in the same few bits, for the packers of
 * blocks.
 *
 * A number begins up to 7 bits into the 8 bytes that are read for it, so that a column is at most
 * LANE_BITS wide, or 64. Columns are read and written up to 8 bytes beyond their end.
 */
#ifndef SHARD_LANE_BITS_H
#define SHARD_LANE_BITS_H

#include "shard/store/lane_int.h"

#define LANE_BITS 56

static inline uint64_t bits_load(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void bits_store(uint8_t *p, uint64_t v)
{
    memcpy(p, &v, sizeof v);
}

#define ONES(n) (UINT64_MAX >> (64 - (n)))
#define ONES8(n)                                                                                   \
    ONES(n), ONES(n + 1), ONES(n + 2), ONES(n + 3), ONES(n + 4), ONES(n + 5), ONES(n + 6),         \
        ONES(n + 7)

static const uint64_t bits_mask[65] = {0,         ONES8(1),  ONES8(9),  ONES8(17), ONES8(25),
                                       ONES8(33), ONES8(41), ONES8(49), ONES8(57)};
#undef ONES8
#undef ONES

/* Bits for numbers up to v. */
static inline uint8_t bits_width(uint64_t v)
{
    unsigned width = v ? 64 - (unsigned)__builtin_clzll(v) : 0;
    return (uint8_t)(width > LANE_BITS ? 64 : width);
}

static inline size_t bits_bytes(unsigned width, uint32_t n)
{
    return (width * n + 7) / 8;
}

static inline uint64_t bits_get(const uint8_t *column, unsigned width, uint32_t i)
{
    uint32_t bit = i * width;
    return bits_load(column + (bit >> 3)) >> (bit & 7) & bits_mask[width];
}

/* A column from one number on, in registers. */
struct bits_run {
    const uint8_t *column;
    uint64_t mask;
    uint32_t bit, width;
};

static inline struct bits_run bits_open(const struct lane_unpack *u, unsigned col)
{
    return (struct bits_run){u->column[col], bits_mask[u->width[col]], u->i * u->width[col],
                             u->width[col]};
}

static inline uint64_t bits_next(struct bits_run *r)
{
    uint64_t v = bits_load(r->column + (r->bit >> 3)) >> (r->bit & 7) & r->mask;
    r->bit += r->width;
    return v;
}

/* Writes v[i] - base; returns where the column ends. */
static inline uint8_t *bits_put(uint8_t *p, const uint64_t *v, uint32_t n, uint64_t base,
                                unsigned width)
{
    uint64_t open = 0; /* bits not yet complete as bytes */
    unsigned nopen = 0;
    if (!width)
        return p;
    if (width > LANE_BITS) {
        for (uint32_t i = 0; i < n; i++, p += 8)
            bits_store(p, v[i] - base);
        return p;
    }
    for (uint32_t i = 0; i < n; i++) {
        open |= (v[i] - base) << nopen;
        bits_store(p, open);
        nopen += width;
        p += nopen >> 3;
        open >>= nopen & ~7u;
        nopen &= 7;
    }
    return p + (nopen > 0);
}

#endif
