/* lib/cluster/ring.h - which member owns what: rendezvous hashing.
 *
 * Each member has a score for a key, a hash of both; the member with the highest score owns the
 * key, the next ones are where it goes when the owner is away. There is no ring to store: the
 * answer is a function of the key and the set of members, the same in every process and of every
 * version (the hash is part of the protocol, see RING_HASH_VERSION). Adding one of n members
 * moves one key in n+1, and only to the new one; losing one moves only its own.
 *
 * A ring is immutable and counted: a request keeps the one it began with while newer ones are
 * made. Correctness never depends on two processes having the same ring; only locality does.
 *
 * Order      xp_ring_new -> xp_ring_ref / xp_ring_unref from any thread; the rest is read-only.
 * Ownership  Strings are copied.
 * Limits     RING_MEMBERS_MAX members; names up to RING_NAME_MAX bytes.
 */
#ifndef XP_CLUSTER_RING_H
#define XP_CLUSTER_RING_H

#include <stdbool.h>

#include "lib/base/span.h"
#include "lib/base/status.h"

#define RING_HASH_VERSION 1
#define RING_MEMBERS_MAX 4096
#define RING_NAME_MAX 255

/* name is the identity that scores are made of (a pod's name), so that a member which comes back
 * at another address gets its own keys again; address is "host:port". */
struct xp_ring_member {
    const char *name, *address;
};

struct xp_ring;

/* Members in any order. XP_BAD_REQUEST when a name is empty, too long or there twice; n may be 0.
 */
enum xp_status xp_ring_new(const struct xp_ring_member *members, size_t n, struct xp_ring **out,
                           struct xp_error *err);
struct xp_ring *xp_ring_ref(struct xp_ring *r);
void xp_ring_unref(struct xp_ring *r); /* NULL is fine */

/* Members are numbered by name, in byte order: 0 .. size-1. */
size_t xp_ring_size(const struct xp_ring *r);
const struct xp_ring_member *xp_ring_member(const struct xp_ring *r, size_t i);
bool xp_ring_same(const struct xp_ring *a, const struct xp_ring *b); /* names and addresses */

/* A key of several parts, e.g. bucket, run: unlike a plain hash of them joined, ("a","bc") and
 * ("ab","c") differ. Not seeded. */
uint64_t xp_ring_key(const struct xp_span *parts, size_t n);

/* The first max ranks for a key, best first; how many were written. O(size * max). */
size_t xp_ring_rank(const struct xp_ring *r, uint64_t key, uint32_t *out, size_t max);

/* Spreads the parts of one session: owner[i] is the first rank of keys[i] that has not got more
 * than its share yet, ceil(n / size * RING_SPREAD). Without the cap the fullest of 8 members holds
 * half as much again as the mean, and the fullest decides how long the session takes. A function
 * of the keys in the order given and of the members. XP_BUSY when there is no member. */
#define RING_SPREAD 1.25
enum xp_status xp_ring_spread(const struct xp_ring *r, const uint64_t *keys, size_t n,
                              uint32_t *owner, struct xp_error *err);

#endif
