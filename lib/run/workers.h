/* lib/run/workers.h - a bounded pool of threads for work that may block or take long.
 *
 * Decoding, queries, file reads and arena drops run here; event loops never do them.
 * Two classes: XP_WORK_QUERY is taken before XP_WORK_LOAD, so that an answer somebody waits
 * for overtakes a decode. A long task cuts itself into slices: it returns XP_WORK_AGAIN and is
 * queued again at the end of its class (decode slices are about 8 MiB, some 10 ms). However many
 * queries come, a load that waits has a turn every 30 ms or so.
 *
 * Order      xp_workers_new -> xp_workers_post from any thread -> xp_workers_free, which runs
 *            what is queued to its end and joins.
 * Ownership  ctx is the task's; the pool only carries the pointer.
 * Limit      At most `queue_max` waiting QUERY tasks: post returns XP_BUSY above it. LOAD tasks
 *            are bounded by admission (shard/budget) and are always taken.
 */
#ifndef XP_RUN_WORKERS_H
#define XP_RUN_WORKERS_H

#include "lib/base/status.h"

struct xp_workers;

enum xp_work_class { XP_WORK_QUERY, XP_WORK_LOAD };
enum xp_work_next { XP_WORK_DONE, XP_WORK_AGAIN };

typedef enum xp_work_next (*xp_work_fn)(void *ctx);

struct xp_workers *xp_workers_new(int threads, int queue_max);
void xp_workers_free(struct xp_workers *w);
enum xp_status xp_workers_post(struct xp_workers *w, enum xp_work_class cls, xp_work_fn fn,
                               void *ctx);
int xp_workers_threads(const struct xp_workers *w);
int xp_workers_queue_max(const struct xp_workers *w);
/* How long the QUERY task that is next has waited: how long one that was refused would have. */
uint64_t xp_workers_wait_ms(struct xp_workers *w);
/* Tasks waiting, for metrics and tests. */
int xp_workers_waiting(struct xp_workers *w);

#endif
