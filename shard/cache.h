/* shard/cache.h - parts in memory: found, loaded once, pinned, evicted within a budget.
 *
 * A part is asked for by key (an object of one generation). The first asker starts its load;
 * later ones join it. A handle pins the part; when the last handle of a part is put back it
 * stays resident, until room is needed and it is the one least worth keeping (age, cost to
 * rebuild). A load goes on for a few seconds after the last handle was put back, since browsers ask
 * again and again while it runs; then, or when another load needs the room, it is cancelled.
 *
 * Admission  A load reserves an estimate plane by plane (size x ratio, learned) before it
 *            decodes; where there is no room after evicting unpinned parts it fails with XP_BUSY
 *            (503, Retry-After), never with the system's own out-of-memory.
 * Aside      A load that nobody waits for takes free room only: it evicts nothing, ends no other
 * load, and is refused where there is none. Once somebody else asks for the part, it is a load like
 * others. Waiting    cache_when runs the callback, on a worker, once the condition holds or the
 * load has failed, at once if it holds already. Nothing blocks. Threads    All functions from any
 * thread.
 */
#ifndef SHARD_CACHE_H
#define SHARD_CACHE_H

#include "lib/run/workers.h"
#include "shard/store/part.h"

struct cache;
struct cache_handle;

struct cache_key {
    struct xp_store *store; /* outlives the cache's use of it */
    const char *key;
    uint64_t generation, size;
    bool gz;
    bool device_later; /* no part of the key: how to load it if it must be, */
    bool aside;        /* and for whom: see above */
};

struct cache *cache_new(struct xp_workers *w, struct xp_budget *budget);
/* How long a load goes on without anyone; 3000 ms unless set. */
void cache_set_linger(struct cache *c, uint64_t ms);
void cache_free(struct cache *c); /* no handles may be out; waits for loads to stop */

/* Finds or starts. Fails only for reasons of its own (XP_BUSY); errors of the load come later. */
enum xp_status cache_get(struct cache *c, const struct cache_key *key, struct cache_handle **out,
                         struct xp_error *err);
void cache_put(struct cache_handle *h);
/* Puts it back for good: if nobody else ever asked for the part, it is dropped at once. For parts
 * that were loaded for one look, of which there are many. */
void cache_put_once(struct cache_handle *h);

enum cache_until {
    CACHE_INDEXED,     /* the table of planes is known */
    CACHE_FIRST_PLANE, /* a plane with events is published (or all are) */
    CACHE_ALL          /* every plane is published or has failed */
};

/* status XP_OK: the condition holds. Otherwise the load failed and there is no part to look
 * at (a damaged file with anything readable is XP_OK and part->partial). `cancel` (may be NULL):
 * when it is set, the callback comes early with XP_CANCELLED. */
typedef void (*cache_ready_fn)(void *ctx, enum xp_status status, const struct xp_error *err);
void cache_when(struct cache_handle *h, enum cache_until until, const atomic_bool *cancel,
                cache_ready_fn fn, void *ctx);

/* The part; valid from CACHE_INDEXED on, until cache_put. */
struct part *cache_part(struct cache_handle *h);

struct cache_progress {
    uint64_t bytes_total, bytes_done, events_done;
    uint32_t planes_total, planes_done;
    bool indexed, done;
    enum xp_status status;
};
void cache_progress(struct cache_handle *h, struct cache_progress *out);

struct cache_stats {
    uint64_t parts, pinned, bytes, hits, loads, evictions, refused, cancelled;
};
void cache_stats(struct cache *c, struct cache_stats *out);

#endif
