/* server/shard_role.h - `xprofd shard`: a shard that frontends ask over server/rpc.h.
 *
 * Order      shard_role_new -> an HTTP server with rpc_handle and shard_role_rpc as its context ->
 *            drain it -> shard_role_free, which waits for what is under way.
 */
#ifndef SERVER_SHARD_ROLE_H
#define SERVER_SHARD_ROLE_H

#include "server/options.h"
#include "server/rpc.h"

struct shard_role;

/* version is static. */
enum xp_status shard_role_new(const struct options *o, const char *version,
                              struct xp_workers *workers, struct shard_role **out,
                              struct xp_error *err);
void shard_role_free(struct shard_role *r); /* NULL is fine */
struct rpc_server *shard_role_rpc(struct shard_role *r);
/* The port that it got, which is part of its name unless it was given one. */
void shard_role_listens(struct shard_role *r, int port);
/* Its counters, and where more are; for the admin port. */
struct metrics *shard_role_metrics(struct shard_role *r, struct metrics_sources *from);

#endif
