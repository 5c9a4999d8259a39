/* lib/base/hash.h - hashes for tables in memory; seeded per process, never written out. */
#ifndef XP_BASE_HASH_H
#define XP_BASE_HASH_H

#include "lib/base/span.h"

/* 64 bits of s. The seed is drawn once per process so that names from a profile or a
 * request cannot be chosen to collide. */
uint64_t xp_hash(struct xp_span s);
uint64_t xp_hash_u64(uint64_t v);

/* Not seeded: the same in every process; for ETags and cache names. FNV-1a folded over
 * further spans by passing the last value as h; start with XP_FNV_INIT. */
#define XP_FNV_INIT UINT64_C(0xcbf29ce484222325)
uint64_t xp_fnv(uint64_t h, struct xp_span s);

#endif
