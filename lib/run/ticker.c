#include "lib/run/ticker.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/status.h"

struct xp_ticker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
    uint32_t every_ms;
    void (*fn)(void *ctx);
    void *ctx;
};

/* False: it is to stop. Lock held. */
static bool wait_turn(struct xp_ticker *t)
{
    struct timespec until;
    int rc = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += t->every_ms / 1000;
    until.tv_nsec += t->every_ms % 1000 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    while (!t->stop && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&t->wake, &t->lock, &until);
    return !t->stop;
}

static void *run(void *arg)
{
    struct xp_ticker *t = arg;
    pthread_mutex_lock(&t->lock);
    while (wait_turn(t)) {
        pthread_mutex_unlock(&t->lock);
        t->fn(t->ctx);
        pthread_mutex_lock(&t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

struct xp_ticker *xp_ticker_new(uint32_t every_ms, void (*fn)(void *ctx), void *ctx)
{
    struct xp_ticker *t = calloc(1, sizeof *t);
    pthread_condattr_t attr;

    XP_ASSERT(t);
    *t = (struct xp_ticker){.every_ms = every_ms, .fn = fn, .ctx = ctx};
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&t->wake, &attr);
    pthread_condattr_destroy(&attr);
    XP_ASSERT(pthread_create(&t->thread, NULL, run, t) == 0);
    return t;
}

void xp_ticker_free(struct xp_ticker *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
