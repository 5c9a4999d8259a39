/* shard/tools/trace_radix.h - sorting by begin, digit by digit, as many as there are. */
#ifndef SHARD_TRACE_RADIX_H
#define SHARD_TRACE_RADIX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TRACE_RADIX_BITS 11

struct trace_begin {
    int64_t begin_ps;
    uint32_t item;
};

static inline size_t trace_radix_digit(int64_t begin, int64_t low, unsigned shift)
{
    return ((uint64_t)begin - (uint64_t)low) >> shift & ((1 << TRACE_RADIX_BITS) - 1);
}

/* Stable. `other` has room for as many; returns which of the two arrays holds them in order. */
static inline struct trace_begin *trace_sort_begins(struct trace_begin *from,
                                                    struct trace_begin *other, size_t n)
{
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        low = from[i].begin_ps < low ? from[i].begin_ps : low;
        high = from[i].begin_ps > high ? from[i].begin_ps : high;
    }
    for (unsigned shift = 0; n && shift < 64; shift += TRACE_RADIX_BITS) {
        uint32_t at[(1 << TRACE_RADIX_BITS) + 1] = {0};
        if (((uint64_t)high - (uint64_t)low) >> shift == 0)
            break;
        for (size_t i = 0; i < n; i++)
            at[trace_radix_digit(from[i].begin_ps, low, shift) + 1]++;
        for (size_t d = 1; d < 1 << TRACE_RADIX_BITS; d++)
            at[d] += at[d - 1];
        for (size_t i = 0; i < n; i++)
            other[at[trace_radix_digit(from[i].begin_ps, low, shift)]++] = from[i];
        struct trace_begin *was = from;
        from = other;
        other = was;
    }
    return from;
}

#endif
