/* lib/net/client_int.h - what fetch.c and timer.c need of client.c. */
#ifndef NET_CLIENT_INT_H
#define NET_CLIENT_INT_H

#include "lib/net/client.h"
#include "lib/run/loop.h"

/* Inside body_fn and done. */
void net_each_header(struct net_call *call,
                     void (*fn)(void *ctx, const char *name, const char *value), void *ctx);

struct xp_loop *net_client_loop(struct net_client *c);

#endif
