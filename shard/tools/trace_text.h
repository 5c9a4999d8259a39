/* shard/tools/trace_text.h - texts of an event, written where there is room for them already.
 *
 * All return the place behind what they wrote, and may write up to seven bytes more. Digits are
 * made by eights and what is too many is not counted: a number's length is not worth a branch.
 */
#ifndef SHARD_TRACE_TEXT_H
#define SHARD_TRACE_TEXT_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define TRACE_NUM_ROOM 28 /* bytes of a number, and of what is written behind it */

#define trace_put_lit(p, lit) ((uint8_t *)memcpy(p, lit, sizeof lit - 1) + (sizeof lit - 1))

/* The digits of v < 10^8, zeros in front, as values of bytes; the first is the lowest byte. */
static inline uint64_t trace_eight(uint32_t v)
{
    const uint64_t sevens = UINT64_C(0x0000007f0000007f), nibbles = UINT64_C(0x000f000f000f000f);
    uint64_t x = v / 10000 | (uint64_t)(v % 10000) << 32;
    uint64_t high = (x * 10486 >> 20) & sevens; /* hundreds of each half */
    x = high | (x - 100 * high) << 16;
    high = (x * 103 >> 10) & nibbles; /* tens of each quarter */
    return high | (x - 10 * high) << 8;
}

/* Writes eight bytes, of which those count that are returned. */
static inline uint8_t *trace_put_eight(uint8_t *p, uint64_t digits, unsigned n)
{
    digits = htole64(digits | UINT64_C(0x3030303030303030));
    memcpy(p, &digits, 8);
    return p + n;
}

/* v < 10^8 without zeros in front. */
static inline uint8_t *trace_put_first(uint8_t *p, uint32_t v)
{
    uint64_t digits = trace_eight(v);
    unsigned zeros = (unsigned)__builtin_ctzll(digits | UINT64_C(1) << 56) / 8;
    return trace_put_eight(p, digits >> 8 * zeros, 8 - zeros);
}

static inline uint8_t *trace_put_u64(uint8_t *p, uint64_t v)
{
    const uint32_t eight = 100000000;
    if (v < eight)
        return trace_put_first(p, (uint32_t)v);
    uint64_t high = v / eight;
    if (high < eight) {
        p = trace_put_first(p, (uint32_t)high);
    } else {
        p = trace_put_first(p, (uint32_t)(high / eight));
        p = trace_put_eight(p, trace_eight((uint32_t)(high % eight)), 8);
    }
    return trace_put_eight(p, trace_eight((uint32_t)(v % eight)), 8);
}

/* The same, of what mostly has one digit. */
static inline uint8_t *trace_put_small(uint8_t *p, uint64_t v)
{
    if (v >= 10)
        return trace_put_u64(p, v);
    *p++ = (uint8_t)('0' + v);
    return p;
}

static inline uint8_t *trace_put_i64(uint8_t *p, int64_t v)
{
    if (v < 0)
        *p++ = '-';
    return trace_put_u64(p, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

/* Microseconds, exact. */
static inline uint8_t *trace_put_us(uint8_t *p, int64_t ps)
{
    uint64_t v = ps < 0 ? -(uint64_t)ps : (uint64_t)ps;
    if (ps < 0)
        *p++ = '-';
    p = trace_put_u64(p, v / 1000000);
    uint32_t rest = (uint32_t)(v % 1000000);
    if (!rest)
        return p;
    *p++ = '.';
    uint64_t digits = trace_eight(rest * 100);
    return trace_put_eight(p, digits, 8 - (unsigned)__builtin_clzll(digits) / 8);
}

#endif
