/* server/app.h - the frontend: which answer belongs to which request.
 *
 * app_handle is lib/http's handler. It finds the row of routes.def, decodes the parameters and
 * hands the rest to a worker; pages and assets are answered at once.
 *
 * Order      app_new -> app_handle any number of times -> app_stop (long answers end) -> drain
 *            the HTTP server -> app_free, which waits for requests still under way.
 */
#ifndef SERVER_APP_H
#define SERVER_APP_H

#include "lib/http/http.h"
#include "server/options.h"

struct app;

/* version is static. */
enum xp_status app_new(const struct options *o, const char *version, struct xp_workers *workers,
                       struct app **out, struct xp_error *err);
/* Bytes for profiles: what was asked for, or a share of what the machine or cgroup has. */
uint64_t app_memory_budget(const struct options *o);
/* Its counters, and where more are; for the admin port. */
struct metrics_sources;
struct metrics *app_metrics(struct app *app, struct metrics_sources *from);
void app_stop(struct app *app);
void app_free(struct app *app);

void app_handle(void *app, struct http_exchange *ex);

#endif
