/* server/admin.h - the port for those who run the process: health and metrics.
 *
 *     GET /livez     200 as long as the process answers at all
 *     GET /readyz    200 when requests should come here, else 503 with the reason: shutting down,
 * or a frontend without shards GET /healthz   the same as /readyz, for tools that know only one GET
 * /metrics   metrics.h
 *
 * It is a listener of its own, so that what is open to browsers never shows it, with one thread.
 *
 * Order      admin_start, once everything in the configuration is there -> admin_not_ready when the
 *            end begins -> admin_stop before any of it is gone.
 */
#ifndef SERVER_ADMIN_H
#define SERVER_ADMIN_H

#include "server/metrics.h"

struct admin;

struct admin_config {
    const char *host;
    int port; /* 0: any */
    struct metrics *metrics;
    struct metrics_sources sources;
};

enum xp_status admin_start(const struct admin_config *config, struct admin **out,
                           struct xp_error *err);
int admin_port(const struct admin *a);
void admin_not_ready(struct admin *a); /* NULL is fine */
void admin_stop(struct admin *a);      /* NULL is fine */

#endif
