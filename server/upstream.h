/* server/upstream.h - the frontend's way to the shards: choose one, ask it, and another if it
 * fails.
 *
 * The same call as shard_call (shard.h), answered by a process of its own. Which one: the ranks of
 * lib/cluster/ring.h for the key of what is asked: a host's profile for one object, the run's
 * folder for several, so that a profile is decoded where it already is. Any shard can answer
 * anything; a wrong choice costs a load, never an error.
 *
 * Answers are reads, so that each may be asked for again: on a connection that fails, an answer
 * that breaks off, a refusal (busy), and a shard that hangs, the next rank is asked, up to
 * UPSTREAM_TRIES. A shard hangs when it owes an answer for a second and does not say hello within
 * another. One that failed is asked last for a while. What no other shard would answer differently
 * (bad request, not found, damaged profile) is not asked for again.
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

struct upstream_config {
    const char *shards;            /* members.h's spec */
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

/* stream NULL: the answer is held whole, whatever its size. */
void upstream_call(struct upstream *u, const struct shard_request *req, shard_answer_fn fn,
                   const struct upstream_stream *stream, void *ctx);

struct upstream_stats {
    uint64_t members, asks, retries, failed; /* asks that ended without an answer of a shard */
};
void upstream_stats(struct upstream *u, struct upstream_stats *out);

#endif
