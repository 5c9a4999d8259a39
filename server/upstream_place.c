#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "server/upstream_int.h"

#define SLOTS 256
#define RANKS 4

/* The owners of a run's hosts, among the members of one ring. */
struct place {
    uint64_t run; /* a hash of what names it and of how many hosts there are */
    struct xp_ring *ring;
    uint32_t *owners;
    size_t n;
};

struct places {
    pthread_mutex_t lock;
    struct place slots[SLOTS];
};

struct places *places_new(void)
{
    struct places *p = calloc(1, sizeof *p);
    XP_ASSERT(p);
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void places_free(struct places *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < SLOTS; i++) {
        xp_ring_unref(p->slots[i].ring);
        free(p->slots[i].owners);
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}

uint64_t place_name(const struct xp_ring *ring, uint32_t member)
{
    return xp_fnv(XP_FNV_INIT, xp_span_str(xp_ring_member(ring, member)->name));
}

static uint64_t key_of(struct xp_store *store, struct xp_span key)
{
    struct xp_span parts[] = {xp_span_str(xp_store_name(store)), key};
    return xp_ring_key(parts, 2);
}

uint64_t place_key(const struct shard_request *req)
{
    if (req->nobjects == 0)
        return 0;
    const struct shard_object *o = &req->objects[0];
    struct xp_span key = xp_span_str(o->key);
    const uint8_t *slash = key.n ? memrchr(key.p, '/', key.n) : NULL;
    if (req->nobjects > 1)
        key.n = slash ? (size_t)(slash - key.p) : 0;
    return key_of(o->store, key);
}

/* --- owners --- */

static uint64_t run_hash(const struct run *run)
{
    uint64_t h = xp_fnv(XP_FNV_INIT, xp_span_str(xp_store_name(run->store)));
    h = xp_fnv(h, xp_span_str(run->prefix));
    h = xp_fnv(h, xp_span_str(run->name)); /* joined ones have no folder */
    h = xp_fnv(h, xp_span_of(&run->n_hosts, sizeof run->n_hosts));
    return xp_fnv(h, xp_span_of(&run->bytes, sizeof run->bytes));
}

static bool make_place(struct place *to, uint64_t hash, const struct xp_ring *ring,
                       const struct run *run)
{
    uint64_t *keys = calloc(run->n_hosts, sizeof *keys);
    uint32_t *owners = calloc(run->n_hosts, sizeof *owners);
    struct xp_error err;
    XP_ASSERT(keys && owners);
    for (size_t i = 0; i < run->n_hosts; i++)
        keys[i] = key_of(run->store, xp_span_str(run->hosts[i].key));
    bool ok = xp_ring_spread(ring, keys, run->n_hosts, owners, &err) == XP_OK;
    free(keys);
    if (!ok) {
        free(owners);
        return false;
    }
    xp_ring_unref(to->ring);
    free(to->owners);
    *to = (struct place){hash, xp_ring_ref((struct xp_ring *)ring), owners, run->n_hosts};
    return true;
}

/* The owner of each host given, by its number within the run. */
static bool owners_of(struct places *p, const struct xp_ring *ring, const struct run *run,
                      const size_t *hosts, size_t n, uint32_t *owners)
{
    uint64_t hash = run_hash(run);
    pthread_mutex_lock(&p->lock);
    struct place *s = &p->slots[(hash ^ hash >> 32) % SLOTS];
    bool ok = (s->run == hash && s->ring == ring && s->n == run->n_hosts) ||
              make_place(s, hash, ring, run);
    for (size_t i = 0; ok && i < n; i++)
        owners[i] = s->owners[hosts[i]];
    pthread_mutex_unlock(&p->lock);
    return ok;
}

/* The object's number within the run, looked for from `hint`; n_hosts: it is none of the run's. */
static size_t host_of(const struct run *run, const struct shard_object *o, size_t hint)
{
    for (size_t i = 0; i < run->n_hosts; i++) {
        size_t at = (hint + i) % run->n_hosts;
        if (!strcmp(run->hosts[at].key, o->key))
            return at;
    }
    return run->n_hosts;
}

size_t places_ranks(struct places *p, const struct xp_ring *ring, const struct shard_request *req,
                    const struct run *run, uint32_t *ranks, size_t max)
{
    size_t n = xp_ring_rank(ring, place_key(req), ranks, max);
    uint32_t owner;
    if (n < 2 || req->nobjects != 1 || !run || run->n_hosts < 2)
        return n;
    size_t host = host_of(run, &req->objects[0], 0);
    if (host == run->n_hosts || !owners_of(p, ring, run, &host, 1, &owner))
        return n;
    size_t at = 0;
    while (at < n - 1 && ranks[at] != owner)
        at++;
    memmove(ranks + 1, ranks, at * sizeof *ranks); /* the last falls out if it was not there */
    ranks[0] = owner;
    return n;
}

/* --- sharing out --- */

struct sharing {
    const struct xp_ring *ring;
    struct healths *healths;
    uint32_t *number; /* of each member among peers, from 1; 0: none yet */
    struct shard_peer *peers;
    size_t n;
};

static uint32_t peer_of(struct sharing *s, uint32_t member)
{
    if (!s->number[member]) {
        const struct xp_ring_member *m = xp_ring_member(s->ring, member);
        s->peers[s->n++] = (struct shard_peer){m->name, m->address};
        s->number[member] = (uint32_t)s->n;
    }
    return s->number[member];
}

/* The owner, and the best rank besides it; an owner that is ill comes second. */
static struct shard_owner owner_of(struct sharing *s, uint32_t owner, uint64_t key)
{
    uint32_t ranks[RANKS];
    size_t n = xp_ring_rank(s->ring, key, ranks, RANKS);
    uint32_t next = owner;
    for (size_t i = 0; i < n && next == owner; i++)
        if (ranks[i] != owner && !healths_is_ill(s->healths, place_name(s->ring, ranks[i])))
            next = ranks[i];
    if (next == owner)
        return (struct shard_owner){peer_of(s, owner), 0};
    if (healths_is_ill(s->healths, place_name(s->ring, owner)))
        return (struct shard_owner){peer_of(s, next), peer_of(s, owner)};
    return (struct shard_owner){peer_of(s, owner), peer_of(s, next)};
}

static bool maps_hosts(enum shard_op op)
{
    return op == SHARD_TOOL || op == SHARD_TOOL_CSV || op == SHARD_REPORT || op == SHARD_REPORT_CSV;
}

/* Where the request's objects are in the run; false: not all are in it. */
static bool find_hosts(const struct run *run, const struct shard_request *req, size_t *hosts)
{
    for (size_t i = 0; i < req->nobjects; i++) {
        hosts[i] = host_of(run, &req->objects[i], i ? hosts[i - 1] + 1 : 0);
        if (hosts[i] == run->n_hosts)
            return false;
    }
    return true;
}

bool places_share_out(struct places *p, struct healths *healths, const struct xp_ring *ring,
                      const struct run *run, struct shard_request *req)
{
    if (!run || req->nobjects < 2 || !maps_hosts(req->op) || xp_ring_size(ring) < 2)
        return false;
    size_t n = req->nobjects, most = 2 * n < xp_ring_size(ring) ? 2 * n : xp_ring_size(ring);
    size_t *hosts = calloc(n, sizeof *hosts);
    uint32_t *members = calloc(n, sizeof *members);
    struct sharing s = {ring, healths, calloc(xp_ring_size(ring), sizeof *s.number),
                        calloc(most, sizeof *s.peers), 0};
    XP_ASSERT(hosts && members && s.number && s.peers);
    bool ok = find_hosts(run, req, hosts) && owners_of(p, ring, run, hosts, n, members);
    if (ok) {
        struct shard_owner *owners = calloc(n, sizeof *owners);
        XP_ASSERT(owners);
        for (size_t i = 0; i < n; i++)
            owners[i] = owner_of(&s, members[i],
                                 key_of(req->objects[i].store, xp_span_str(req->objects[i].key)));
        req->owners = owners;
        req->peers = s.peers;
        req->npeers = s.n;
    } else {
        free(s.peers);
    }
    free(hosts);
    free(members);
    free(s.number);
    return ok;
}
