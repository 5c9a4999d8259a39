/* lib/run/ticker.h - something that is done every so often, on a thread of its own.
 *
 * For what may block for long (files, buckets) and must not hold a worker or a loop. The first
 * turn comes `every_ms` after the start, each further one that long after the last has ended.
 *
 * Order      xp_ticker_new -> fn(ctx) again and again -> xp_ticker_free, which waits for a turn
 *            under way; after it there is none.
 * Threads    xp_ticker_free from any but the ticker's own.
 */
#ifndef XP_RUN_TICKER_H
#define XP_RUN_TICKER_H

#include <stdint.h>

struct xp_ticker;

struct xp_ticker *xp_ticker_new(uint32_t every_ms, void (*fn)(void *ctx), void *ctx);
void xp_ticker_free(struct xp_ticker *t); /* NULL is fine */

#endif
