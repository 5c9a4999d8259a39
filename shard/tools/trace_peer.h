/* shard/tools/trace_peer.h - XProf's order of events that begin together.
 *
 * The one that ends last comes first; then by device; asynchronous ones after the others; by row
 * and line, asynchronous ones by line; by place in the file. What lies between end and place is one
 * number. Structs that are sorted begin with a struct trace_peer.
 */
#ifndef SHARD_TRACE_PEER_H
#define SHARD_TRACE_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct trace_peer {
    int64_t end_ps;
    uint64_t order, at;
};

/* first_lane: of the line, in host->lanes, which are in order of rows and lines. */
static inline uint64_t trace_peer_place(uint32_t device, uint32_t first_lane)
{
    return (uint64_t)device << 33 | first_lane;
}

/* Of an asynchronous event of that line, whose others have `order`. */
static inline uint64_t trace_peer_async(uint64_t order, uint32_t line)
{
    return order >> 33 << 33 | UINT64_C(1) << 32 | line;
}

static inline bool trace_peer_is_async(uint64_t order)
{
    return order >> 32 & 1;
}

static inline int trace_peer_order(const void *a, const void *b)
{
    const struct trace_peer *x = a, *y = b;
    if (x->end_ps != y->end_ps)
        return x->end_ps > y->end_ps ? -1 : 1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

#define TRACE_PEER_SIZE 64

/* Most are few. To be called with a constant size of at most TRACE_PEER_SIZE. */
static inline void trace_peers_sort(void *v, size_t n, size_t size)
{
    uint8_t *p = v;
    if (n > 32) {
        qsort(p, n, size, trace_peer_order);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        _Alignas(struct trace_peer) uint8_t x[TRACE_PEER_SIZE];
        size_t k = i;
        memcpy(x, p + i * size, size);
        for (; k && trace_peer_order(x, p + (k - 1) * size) < 0; k--)
            memcpy(p + k * size, p + (k - 1) * size, size);
        memcpy(p + k * size, x, size);
    }
}

#endif
