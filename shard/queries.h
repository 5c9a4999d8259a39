/* shard/queries.h - our own API's questions about one part, from arguments to an answer.
 *
 * The arguments and their limits are those of docs/api.md; the answers are made by shard/query.
 */
#ifndef SHARD_QUERIES_H
#define SHARD_QUERIES_H

#include "shard/args.h"

struct queries_ask {
    enum shard_op op; /* TRACKS .. CURVE */
    struct part *part;
    const struct args *args;
    struct xp_arena *scratch;
};

/* On a worker, the part pinned. */
enum xp_status queries_answer(const struct queries_ask *k, struct out *out, struct xp_error *err);

#endif
