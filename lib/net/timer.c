#include "lib/net/timer.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "lib/net/client_int.h"

struct net_timer {
    uv_timer_t uv;
    struct xp_loop *loop;
    _Atomic int refs;
    bool fired;
    uint64_t ms;
    void (*fn)(void *ctx);
    void *ctx;
};

static void unref(struct net_timer *t)
{
    if (atomic_fetch_sub(&t->refs, 1) == 1)
        free(t);
}

static void on_close(uv_handle_t *h)
{
    unref(h->data);
}

static void fire(struct net_timer *t)
{
    if (t->fired)
        return;
    t->fired = true;
    uv_close((uv_handle_t *)&t->uv, on_close);
    t->fn(t->ctx);
}

static void on_time(uv_timer_t *uv)
{
    fire(uv->data);
}

static void begin(void *ctx)
{
    struct net_timer *t = ctx;
    XP_ASSERT(uv_timer_init(xp_loop_uv(t->loop), &t->uv) == 0);
    t->uv.data = t;
    uv_timer_start(&t->uv, on_time, t->ms, 0);
}

struct net_timer *net_timer_start(struct net_client *c, uint64_t ms, void (*fn)(void *ctx),
                                  void *ctx)
{
    struct net_timer *t = calloc(1, sizeof *t);
    XP_ASSERT(t);
    *t = (struct net_timer){.loop = net_client_loop(c), .refs = 1, .ms = ms, .fn = fn, .ctx = ctx};
    xp_loop_post(t->loop, begin, t);
    return t;
}

static void hurry(void *ctx)
{
    struct net_timer *t = ctx;
    fire(t);
    unref(t);
}

void net_timer_hurry(struct net_timer *t)
{
    atomic_fetch_add(&t->refs, 1);
    xp_loop_post(t->loop, hurry, t);
}
