/* server/metrics.h - counters of a process, as Prometheus reads them. docs/operations.md lists
 * them.
 *
 * What modules count already (lib/http, the shard's cache, the upstream) is asked when somebody
 * scrapes; only answers to requests are counted here: how many, with which status, how long.
 *
 * Threads    metrics_answer from any thread, without a lock; metrics_write whenever.
 * Labels     Routes and statuses come from fixed sets, so that no request can make a new series.
 */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include "lib/base/buf.h"
#include "lib/http/http.h"
#include "lib/run/workers.h"
#include "server/access.h"
#include "server/upstream.h"
#include "shard/shard.h"

struct captures;
struct links;
struct metrics;

struct metrics_sources { /* NULL: the process has none */
    const char *version, *role;
    struct http_server *server;
    struct xp_workers *workers;
    struct shard *shard;
    struct upstream *upstream; /* a frontend's, for its shards */
    struct upstream *peers;    /* a shard's, for the others */
    struct access *access;
    struct links *links;
    struct captures *captures;
};

/* routes: names, which live as long as the process; a route is known by its place in them. */
struct metrics *metrics_new(const char *const *routes, size_t n);
void metrics_free(struct metrics *m); /* NULL is fine */

void metrics_answer(struct metrics *m, size_t route, int status, uint64_t ns);

/* Of this process; 0 when the system does not say. */
uint64_t metrics_resident_bytes(void);

/* The text format, version 0.0.4. */
void metrics_write(struct metrics *m, const struct metrics_sources *from, struct xp_buf *out);

#endif
