#include "lib/run/workers.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "lib/base/clock.h"

#define CLASSES 2

/* Queries without end must not keep a load from ever ending: after so many that overtook it, and
 * so long, it has a turn. A slice of some 10 ms then costs a query that much, now and then. */
#define OVERTAKE_MAX 8
#define LOAD_PATIENCE_NS UINT64_C(30000000)

struct task {
    struct task *next;
    xp_work_fn fn;
    void *ctx;
    enum xp_work_class cls;
    uint64_t since_ns;
};

struct queue {
    struct task *first, **last;
    int n;
};

struct xp_workers {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct queue queues[CLASSES];
    int queue_max, threads;
    bool stopping;
    int overtaken;    /* queries taken while a load waited, since a load's last turn */
    uint64_t load_ns; /* when that was */
    pthread_t ids[];
};

static void push(struct queue *q, struct task *t)
{
    t->next = NULL;
    *q->last = t;
    q->last = &t->next;
    q->n++;
}

static struct task *pop(struct queue *q)
{
    struct task *t = q->first;
    if (!t)
        return NULL;
    q->first = t->next;
    if (!q->first)
        q->last = &q->first;
    q->n--;
    return t;
}

static bool load_has_turn(const struct xp_workers *w)
{
    return w->queues[XP_WORK_LOAD].n && w->overtaken >= OVERTAKE_MAX &&
           xp_now_ns() - w->load_ns >= LOAD_PATIENCE_NS;
}

static struct task *next_task(struct xp_workers *w)
{
    struct task *t = load_has_turn(w) ? NULL : pop(&w->queues[XP_WORK_QUERY]);
    if (t) {
        w->overtaken += w->queues[XP_WORK_LOAD].n > 0;
        return t;
    }
    t = pop(&w->queues[XP_WORK_LOAD]);
    if (t) {
        w->overtaken = 0;
        w->load_ns = xp_now_ns();
    }
    return t;
}

static void *work(void *arg)
{
    struct xp_workers *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        struct task *t = next_task(w);
        if (!t) {
            if (w->stopping)
                break;
            pthread_cond_wait(&w->wake, &w->lock);
            continue;
        }
        pthread_mutex_unlock(&w->lock);
        enum xp_work_next next = t->fn(t->ctx);
        if (next == XP_WORK_DONE)
            free(t);
        pthread_mutex_lock(&w->lock);
        /* This thread looks at the queues next: nobody else need be woken. */
        if (next == XP_WORK_AGAIN)
            push(&w->queues[t->cls], t);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Signals are the main thread's business. */
static void start_thread(struct xp_workers *w, int i)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&w->ids[i], NULL, work, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    XP_ASSERT(rc == 0);
    pthread_setname_np(w->ids[i], "worker");
}

struct xp_workers *xp_workers_new(int threads, int queue_max)
{
    if (threads < 1)
        threads = 1;
    struct xp_workers *w = calloc(1, sizeof *w + (size_t)threads * sizeof w->ids[0]);
    XP_ASSERT(w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    for (int c = 0; c < CLASSES; c++)
        w->queues[c].last = &w->queues[c].first;
    w->queue_max = queue_max;
    w->threads = threads;
    for (int i = 0; i < threads; i++)
        start_thread(w, i);
    return w;
}

void xp_workers_free(struct xp_workers *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->threads; i++)
        pthread_join(w->ids[i], NULL);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

enum xp_status xp_workers_post(struct xp_workers *w, enum xp_work_class cls, xp_work_fn fn,
                               void *ctx)
{
    struct task *t = malloc(sizeof *t);
    XP_ASSERT(t);
    *t = (struct task){.fn = fn, .ctx = ctx, .cls = cls, .since_ns = xp_now_ns()};
    pthread_mutex_lock(&w->lock);
    bool full = cls == XP_WORK_QUERY && w->queues[cls].n >= w->queue_max;
    if (!full) {
        push(&w->queues[cls], t);
        pthread_cond_signal(&w->wake);
    }
    pthread_mutex_unlock(&w->lock);
    if (!full)
        return XP_OK;
    free(t);
    return XP_BUSY;
}

int xp_workers_threads(const struct xp_workers *w)
{
    return w->threads;
}

int xp_workers_queue_max(const struct xp_workers *w)
{
    return w->queue_max;
}

uint64_t xp_workers_wait_ms(struct xp_workers *w)
{
    pthread_mutex_lock(&w->lock);
    const struct task *t = w->queues[XP_WORK_QUERY].first;
    uint64_t ns = t ? xp_now_ns() - t->since_ns : 0;
    pthread_mutex_unlock(&w->lock);
    return ns / 1000000;
}

int xp_workers_waiting(struct xp_workers *w)
{
    pthread_mutex_lock(&w->lock);
    int n = 0;
    for (int c = 0; c < CLASSES; c++)
        n += w->queues[c].n;
    pthread_mutex_unlock(&w->lock);
    return n;
}
