/* shard/gather.h - the hosts of a call that other shards map.
 *
 * Each host is asked of its owner, of the next one if that fails, a few at a time for each peer.
 * Partials are handed over as they come, in any order; a host that no peer could map is handed
 * back, to be mapped here.
 *
 * Order      gather_new -> gather_start -> partial or here once for each host, then rest once,
 * after which the gather is gone. gather_stop: nobody wants what was not asked for yet. Ownership
 * What the request and its objects point to stays the caller's until rest. Threads    The three run
 * on workers, several at once, and may do so before gather_start returns; rest comes last.
 */
#ifndef SHARD_GATHER_H
#define SHARD_GATHER_H

#include "shard/shard.h"

/* Asked for at once, of all peers together: so many for each, so that all have work and none has
 * to hold more than a few profiles for one call. */
#define GATHER_EACH 2
#define GATHER_MAX 64

struct gather_calls {
    /* What the peer made of host i: a partial and how far it could be read, or why not. */
    void (*partial)(void *ctx, size_t i, struct xp_span one, const struct xp_error *damage);
    void (*unreadable)(void *ctx, size_t i, const struct xp_error *err);
    void (*here)(void *ctx, size_t i); /* no peer can be asked */
    void (*rest)(void *ctx);
};

struct gather;

/* NULL when no object is a peer's. */
struct gather *gather_new(struct xp_workers *w, const struct shard_request *req, shard_ask_fn ask,
                          void *ask_ctx, const struct gather_calls *calls, void *ctx);
/* req: whole and for good, as the objects are. */
void gather_start(struct gather *g);
void gather_stop(struct gather *g);

#endif
