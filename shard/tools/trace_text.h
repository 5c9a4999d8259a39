/* shard/tools/trace_text.h - texts of an event, written where there is room for them already.
 *
 * All return the place behind what they wrote.
 */
#ifndef SHARD_TRACE_TEXT_H
#define SHARD_TRACE_TEXT_H

#include <stdint.h>
#include <string.h>

#define TRACE_NUM_ROOM 21 /* bytes of a number; of a time one more */

#define trace_put_lit(p, lit) ((uint8_t *)memcpy(p, lit, sizeof lit - 1) + (sizeof lit - 1))

/* v in n digits, with zeros in front. */
static inline void trace_put_digits(uint8_t *p, uint64_t v, unsigned n)
{
    static const char pairs[201] = "0001020304050607080910111213141516171819"
                                   "2021222324252627282930313233343536373839"
                                   "4041424344454647484950515253545556575859"
                                   "6061626364656667686970717273747576777879"
                                   "8081828384858687888990919293949596979899";
    for (; n >= 2; v /= 100) {
        n -= 2;
        memcpy(p + n, pairs + v % 100 * 2, 2);
    }
    if (n)
        p[0] = (uint8_t)('0' + v % 10);
}

static inline unsigned trace_digits(uint64_t v)
{
    unsigned n = 1;
    for (; v >= 10000; v /= 10000)
        n += 4;
    return n + (v >= 10) + (v >= 100) + (v >= 1000);
}

static inline uint8_t *trace_put_u64(uint8_t *p, uint64_t v)
{
    unsigned n = trace_digits(v);
    trace_put_digits(p, v, n);
    return p + n;
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
    unsigned n = 6;
    if (rest % 1000 == 0) {
        rest /= 1000;
        n = 3;
    }
    for (; rest % 10 == 0; n--)
        rest /= 10;
    trace_put_digits(p, rest, n);
    return p + n;
}

#endif
