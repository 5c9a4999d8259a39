/* lib/run/loop.h - how other threads reach an event loop.
 *
 * One xp_loop wraps one uv_loop_t of one thread. xp_loop_post may be called from any thread:
 * fn(ctx) then runs once on the loop's thread. Posts are run in order; none is lost while the
 * loop lives. Loop-thread-only: everything else.
 */
#ifndef XP_RUN_LOOP_H
#define XP_RUN_LOOP_H

#include <uv.h>

#include "lib/base/status.h"

struct xp_loop;

struct xp_loop *xp_loop_new(void);
uv_loop_t *xp_loop_uv(struct xp_loop *l);
void xp_loop_run(struct xp_loop *l);  /* until xp_loop_stop and no live handles but its own */
void xp_loop_stop(struct xp_loop *l); /* any thread */
void xp_loop_free(struct xp_loop *l);
void xp_loop_post(struct xp_loop *l, void (*fn)(void *ctx), void *ctx);

#endif
