/* server/events.h - server-sent events: what changes, told to those who look (docs/api.md).
 *
 * One thread serves all streams. It wakes while there are any: each second, or four times a
 * second while somebody watches a load; without streams it sleeps. What is to be sent is
 * posted to the stream's own loop, since only that may touch it.
 *
 * Order      events_new -> events_add from any thread -> events_stop, which ends all streams ->
 *            the HTTP server drains -> events_free, which waits for the thread.
 * Ownership  A stream's exchange is held until it was ended: because its client left, or by
 *            events_stop. Nothing of a client that left stays longer than a second.
 * Limits     EVENTS_MAX streams; a client that does not read misses events (http_stream_send).
 */
#ifndef SERVER_EVENTS_H
#define SERVER_EVENTS_H

#include "lib/http/http.h"
#include "server/projects.h"
#include "server/runs.h"

#define EVENTS_MAX 128

struct app;
struct events;

/* The app outlives it. */
struct events *events_new(struct app *app);
void events_stop(struct events *e);
void events_free(struct events *e); /* NULL is fine */

/* Opens a stream on the exchange, which becomes ours: about the load of a run's host, or, without
 * a run, about the project's list of runs. The reference to run becomes ours too. XP_BUSY: there
 * are too many; then nothing was taken. */
/* Captures have changed, or also the list of runs: told at once. Any thread, does not wait. */
void events_poke(struct events *e, bool runs);

enum xp_status events_add(struct events *e, struct http_exchange *ex, const struct project *project,
                          const struct run *run, const struct run_host *host, struct xp_error *err);

#endif
