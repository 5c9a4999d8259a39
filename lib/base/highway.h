/* lib/base/highway.h - HighwayHash, 64 bits of it: the checksum of Riegeli files.
 *
 * Bytes may come in pieces of any size. The key is four numbers; with one that nobody else knows it
 * is a keyed hash, here it is part of a file format.
 *
 * Order      xp_highway_init -> xp_highway_add any number of times -> xp_highway_end once.
 * Source     J. Alakuijala, B. Cox, J. Wassenberg: Fast keyed hash/pseudo-random function using
 * SIMD multiply and permute, 2017; what its portable form computes.
 */
#ifndef XP_BASE_HIGHWAY_H
#define XP_BASE_HIGHWAY_H

#include "lib/base/span.h"

#define XP_HIGHWAY_PACKET 32

struct xp_highway {
    uint64_t v0[4], v1[4], mul0[4], mul1[4];
    uint8_t rest[XP_HIGHWAY_PACKET]; /* bytes that do not fill a packet yet */
    size_t rest_n;
};

void xp_highway_init(struct xp_highway *h, const uint64_t key[4]);
void xp_highway_add(struct xp_highway *h, struct xp_span s);
uint64_t xp_highway_end(struct xp_highway *h);

#endif
