/* shard/tools/slack_peers.h - what slack.h's means hide: each transfer by itself, and messages by
 * who sent them to whom.
 *
 * A sample is one transfer of a rendezvous on the first device of a host. All are kept up to
 * SLACK_SAMPLES a host, else each k-th of a rendezvous; the slowest is kept in any case.
 *
 * Messages are the events "MegaScale: ...Receive..." of host threads: they carry who sent to whom
 * (slice and device), the bytes and how long it took, which ends where the event begins. One
 * without all of these is counted, and is none. The collective of a message is its label up to the
 * first "_": what follows numbers steps and chunks.
 */
#ifndef SHARD_SLACK_PEERS_H
#define SHARD_SLACK_PEERS_H

#include "shard/tools/facts.h"
#include "shard/tools/slack.h"

#define SLACK_SAMPLES ((size_t)1 << 16)
#define SLACK_MESSAGES ((size_t)1 << 20) /* of a host; later ones are counted only */

/* The messages of a collective from one device to another. */
struct slack_peer {
    uint32_t collective;    /* in slack->strings */
    uint32_t host;          /* place in the request: who received them */
    int64_t from[2], to[2]; /* slice, device in it */
    uint64_t messages, bytes;
    uint64_t total_us, p50_us, p99_us, longest_us;
    int64_t longest_begin_ps;
};

struct slack_peers {
    struct vec peers; /* struct slack_peer */
    uint64_t unknown; /* messages that do not tell all */
    uint64_t left;    /* beyond SLACK_MESSAGES */
};

/* Adds those of a host. */
enum xp_status slack_peers_read(struct slack_peers *p, struct slack *s,
                                const struct tool_host *host, struct xp_error *err);
void slack_peers_free(struct slack_peers *p);

/* Samples and peers as facts, after what slack_facts.h puts there. */
void slack_peers_put(struct facts_out *f, const struct slack *s, const struct slack_peers *p);
enum xp_status slack_peers_get(struct slack_peers *p, struct slack *s, struct facts *f,
                               struct xp_error *err);

#endif
