/* server/upstream.h - the frontend's way to the shards: choose one, ask it, and another if it
 * fails.
 *
 * The same call as shard_call (shard.h), answered by a process of its own. Which one: the ranks of
 * lib/cluster/ring.h for the key of what is asked: a host's profile for one object, the run's
 * folder for several, so that a profile is decoded where it already is. The hosts of one run are
 * spread evenly (xp_ring_spread); a tool over several is asked of the run's shard, which is told
 * who owns which host and asks them (upstream_ask_peers, in a shard). Any shard can answer
 * anything; a wrong choice costs a load, never an error.
 *
 * Answers are reads, so that each may be asked for again: on a connection that fails, an answer
 * that breaks off, a refusal (busy), and a shard that hangs, the next rank is asked, up to
 * UPSTREAM_TRIES. A shard hangs when it owes an answer for a second and does not say hello within
 * another. One that failed is asked last until it says hello, for which it is asked now and then.
 * What no other shard would answer differently (bad request, not found, damaged profile) is not
 * asked for again. Cheap reads and maps that take longer than nearly all of their kind are asked
 * of a second shard as well, and the first answer is taken; a profile that is hot gets copies
 * (upstream_int.h has both, with their bounds).
 *
 * Order      upstream_new -> upstream_call from any thread -> upstream_free, which waits.
 * Threads    The callback runs on lib/net's thread, or inside upstream_call when there is no shard.
 * Memory     An answer of up to UPSTREAM_HOLD is held whole, so that it can be asked for again
 * until its last byte. A larger one is passed on as it comes where the caller can take it so
 *            (upstream_stream), and else held as well.
 * Errors     XP_BUSY when no shard is there; else what the last one asked said.
 */
#ifndef SERVER_UPSTREAM_H
#define SERVER_UPSTREAM_H

#include "lib/cluster/sign.h"
#include "shard/shard.h"

#define UPSTREAM_TRIES 4
#define UPSTREAM_HOLD ((size_t)1 << 20)
#define UPSTREAM_ANSWER_MAX ((size_t)1 << 30)

struct upstream;
struct run; /* runs.h */

struct upstream_config {
    const char *shards;            /* members.h's spec; NULL: only upstream_ask_peers is used */
    const struct xp_keyring *keys; /* NULL: not signed */
};

enum xp_status upstream_new(const struct upstream_config *config, struct upstream **out,
                            struct xp_error *err);
void upstream_free(struct upstream *u); /* NULL is fine */

/* A large answer on its way. All calls on lib/net's thread.
 *   begin  in place of the callback: what is known of the answer (no body) and its length
 * (SIZE_MAX: unknown); what it returns is the context of the others push   false: no room; the same
 * bytes come again after upstream_resume. The first push, which may have up to UPSTREAM_HOLD bytes,
 * must have room end    once, the last call; whole is false when the shard broke off */
struct upstream_feed;
struct upstream_stream {
    void *(*begin)(void *ctx, const struct shard_answer *head, size_t length,
                   struct upstream_feed *feed);
    bool (*push)(void *stream, struct xp_span bytes);
    void (*end)(void *stream, bool whole);
};

/* From any thread, until end was called. */
void upstream_resume(struct upstream_feed *feed);
void upstream_stop(struct upstream_feed *feed); /* nobody wants the rest; end comes soon */

/* run: what the objects are of, so that its hosts are spread; NULL: unknown. stream NULL: the
 * answer is held whole, whatever its size. */
void upstream_call(struct upstream *u, const struct shard_request *req, const struct run *run,
                   shard_answer_fn fn, const struct upstream_stream *stream, void *ctx);

/* A shard_ask_fn (shard.h), with the upstream as its context: the peers in the order given. */
void upstream_ask_peers(void *upstream, const struct shard_peer *const *peers, size_t n,
                        const struct shard_request *req, shard_answer_fn fn, void *ctx);

struct upstream_stats {
    uint64_t members, ill;          /* shards; those that failed and have not said hello since */
    uint64_t asks, retries, failed; /* failed: ended without an answer of a shard */
    uint64_t seconds, won;   /* asks that were made of a second shard, and answered by it first */
    uint64_t copies, copied; /* of hot profiles: made, and asks that went to one */
};
void upstream_stats(struct upstream *u, struct upstream_stats *out);

#endif
