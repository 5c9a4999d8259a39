/* lib/net/timer.h - something to be done later, on the client's thread.
 *
 * Order  net_timer_start -> fn(ctx) once, after ms or when hurried -> the timer is gone.
 * net_timer_hurry only while fn was not called, which the caller makes sure of.
 */
#ifndef NET_TIMER_H
#define NET_TIMER_H

#include "lib/net/client.h"

struct net_timer;

struct net_timer *net_timer_start(struct net_client *c, uint64_t ms, void (*fn)(void *ctx),
                                  void *ctx);
void net_timer_hurry(struct net_timer *t);

#endif
