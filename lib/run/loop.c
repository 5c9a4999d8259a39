#include "lib/run/loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct post {
    struct post *next;
    void (*fn)(void *ctx);
    void *ctx;
};

struct xp_loop {
    uv_loop_t uv;
    uv_async_t async;
    pthread_mutex_t lock;
    struct post *first, **last;
    atomic_bool stop;
};

/* Runs what was posted up to now; true if there was any. Posts made meanwhile come in the next
 * turn, so that sockets get theirs. */
static bool run_posts(struct xp_loop *l)
{
    pthread_mutex_lock(&l->lock);
    struct post *p = l->first;
    l->first = NULL;
    l->last = &l->first;
    pthread_mutex_unlock(&l->lock);

    bool any = p != NULL;
    for (struct post *next; p; p = next) {
        next = p->next;
        p->fn(p->ctx);
        free(p);
    }
    return any;
}

static void on_async(uv_async_t *async)
{
    struct xp_loop *l = async->data;
    run_posts(l);
    /* From now on only the handles of others keep the loop running. */
    if (atomic_load(&l->stop))
        uv_unref((uv_handle_t *)async);
}

struct xp_loop *xp_loop_new(void)
{
    struct xp_loop *l = calloc(1, sizeof *l);
    XP_ASSERT(l);
    l->last = &l->first;
    atomic_init(&l->stop, false);
    pthread_mutex_init(&l->lock, NULL);
    XP_ASSERT(uv_loop_init(&l->uv) == 0);
    XP_ASSERT(uv_async_init(&l->uv, &l->async, on_async) == 0);
    l->async.data = l;
    return l;
}

uv_loop_t *xp_loop_uv(struct xp_loop *l)
{
    return &l->uv;
}

void xp_loop_run(struct xp_loop *l)
{
    do {
        uv_run(&l->uv, UV_RUN_DEFAULT);
        /* A post may have come after the last turn, and may have opened handles. */
    } while (run_posts(l) || uv_loop_alive(&l->uv));
}

void xp_loop_stop(struct xp_loop *l)
{
    atomic_store(&l->stop, true);
    uv_async_send(&l->async);
}

void xp_loop_free(struct xp_loop *l)
{
    if (!l)
        return;
    while (run_posts(l)) {
    }
    uv_close((uv_handle_t *)&l->async, NULL);
    uv_run(&l->uv, UV_RUN_DEFAULT);
    int rc = uv_loop_close(&l->uv);
    XP_ASSERT(rc == 0);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

void xp_loop_post(struct xp_loop *l, void (*fn)(void *ctx), void *ctx)
{
    struct post *p = malloc(sizeof *p);
    XP_ASSERT(p);
    *p = (struct post){.fn = fn, .ctx = ctx};
    pthread_mutex_lock(&l->lock);
    bool idle = l->first == NULL;
    *l->last = p;
    l->last = &p->next;
    /* Under the lock, so that a loop that was told to end cannot be freed between the two. */
    if (idle)
        uv_async_send(&l->async);
    pthread_mutex_unlock(&l->lock);
}
