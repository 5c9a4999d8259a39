#include "lib/cluster/ring.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"

struct xp_ring {
    _Atomic int refs;
    size_t n;
    struct xp_ring_member *members; /* by name */
    uint64_t *seeds;                /* a hash of each name */
};

/* The finalizer of MurmurHash3: each bit of the input turns half of the output. FNV alone keeps
 * names that differ in their last letter close together, and so would the scores be. */
static uint64_t mix(uint64_t h)
{
    h ^= h >> 33;
    h *= UINT64_C(0xff51afd7ed558ccd);
    h ^= h >> 33;
    h *= UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ (h >> 33);
}

static uint64_t score(uint64_t key, uint64_t seed)
{
    return mix(key ^ mix(seed));
}

/* --- life --- */

static void free_ring(struct xp_ring *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free((char *)r->members[i].name);
        free((char *)r->members[i].address);
    }
    free(r->members);
    free(r->seeds);
    free(r);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct xp_ring_member *)a)->name,
                  ((const struct xp_ring_member *)b)->name);
}

static enum xp_status check(const struct xp_ring *r, struct xp_error *err)
{
    for (size_t i = 0; i < r->n; i++) {
        const char *name = r->members[i].name;
        if (!*name || strlen(name) > RING_NAME_MAX)
            return xp_fail(err, XP_BAD_REQUEST, 0, "a member's name is empty or above %d bytes",
                           RING_NAME_MAX);
        if (i > 0 && !strcmp(name, r->members[i - 1].name))
            return xp_fail(err, XP_BAD_REQUEST, 0, "member \"%s\" is there twice", name);
    }
    return XP_OK;
}

enum xp_status xp_ring_new(const struct xp_ring_member *members, size_t n, struct xp_ring **out,
                           struct xp_error *err)
{
    if (n > RING_MEMBERS_MAX)
        return xp_fail(err, XP_TOO_LARGE, 0, "%zu members, but at most %d can be", n,
                       RING_MEMBERS_MAX);
    struct xp_ring *r = calloc(1, sizeof *r);
    XP_ASSERT(r);
    atomic_init(&r->refs, 1);
    r->n = n;
    r->members = calloc(n + 1, sizeof *r->members);
    r->seeds = calloc(n + 1, sizeof *r->seeds);
    XP_ASSERT(r->members && r->seeds);
    for (size_t i = 0; i < n; i++) {
        r->members[i].name = strdup(members[i].name);
        r->members[i].address = strdup(members[i].address);
        XP_ASSERT(r->members[i].name && r->members[i].address);
    }
    qsort(r->members, n, sizeof *r->members, by_name);
    enum xp_status status = check(r, err);
    if (status != XP_OK) {
        free_ring(r);
        return status;
    }
    for (size_t i = 0; i < n; i++)
        r->seeds[i] = xp_fnv(XP_FNV_INIT, xp_span_str(r->members[i].name));
    *out = r;
    return XP_OK;
}

struct xp_ring *xp_ring_ref(struct xp_ring *r)
{
    atomic_fetch_add(&r->refs, 1);
    return r;
}

void xp_ring_unref(struct xp_ring *r)
{
    if (r && atomic_fetch_sub(&r->refs, 1) == 1)
        free_ring(r);
}

size_t xp_ring_size(const struct xp_ring *r)
{
    return r->n;
}

const struct xp_ring_member *xp_ring_member(const struct xp_ring *r, size_t i)
{
    return &r->members[i];
}

bool xp_ring_same(const struct xp_ring *a, const struct xp_ring *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->members[i].name, b->members[i].name) != 0 ||
            strcmp(a->members[i].address, b->members[i].address) != 0)
            return false;
    return true;
}

/* --- keys and ranks --- */

uint64_t xp_ring_key(const struct xp_span *parts, size_t n)
{
    uint64_t h = XP_FNV_INIT;
    for (size_t i = 0; i < n; i++) {
        uint64_t length = parts[i].n;
        h = xp_fnv(xp_fnv(h, xp_span_of(&length, sizeof length)), parts[i]);
    }
    return h;
}

size_t xp_ring_rank(const struct xp_ring *r, uint64_t key, uint32_t *out, size_t max)
{
    uint64_t best[16];
    size_t found = 0;

    if (max > sizeof best / sizeof *best)
        max = sizeof best / sizeof *best;
    for (size_t i = 0; i < r->n; i++) {
        uint64_t s = score(key, r->seeds[i]);
        size_t at = found;
        while (at > 0 && s > best[at - 1])
            at--;
        if (at == max)
            continue;
        size_t kept = found < max ? found : max - 1;
        for (size_t j = kept; j > at; j--) {
            best[j] = best[j - 1];
            out[j] = out[j - 1];
        }
        best[at] = s;
        out[at] = (uint32_t)i;
        found = kept + 1;
    }
    return found;
}

/* The best member that still has room. */
static uint32_t best_with_room(const struct xp_ring *r, uint64_t key, const uint32_t *load,
                               uint32_t cap)
{
    uint64_t best = 0;
    uint32_t at = UINT32_MAX;
    for (size_t i = 0; i < r->n; i++) {
        uint64_t s = score(key, r->seeds[i]);
        if (load[i] < cap && (at == UINT32_MAX || s > best)) {
            best = s;
            at = (uint32_t)i;
        }
    }
    return at;
}

enum xp_status xp_ring_spread(const struct xp_ring *r, const uint64_t *keys, size_t n,
                              uint32_t *owner, struct xp_error *err)
{
    if (r->n == 0)
        return xp_fail(err, XP_BUSY, 0, "no shard is there at the moment");
    uint32_t *load = calloc(r->n, sizeof *load);
    uint32_t cap = (uint32_t)ceil((double)n / (double)r->n * RING_SPREAD);
    XP_ASSERT(load);
    for (size_t i = 0; i < n; i++) {
        owner[i] = best_with_room(r, keys[i], load, cap);
        load[owner[i]]++;
    }
    free(load);
    return XP_OK;
}
