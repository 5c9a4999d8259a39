#include "server/relay.h"

#include <pthread.h>
#include <stdlib.h>

struct relay {
    struct http_exchange *ex;
    struct http_answer head;
    size_t length;
    pthread_mutex_t lock;       /* the next seven */
    struct upstream_feed *feed; /* NULL: it has ended */
    struct xp_buf queue;
    bool scheduled; /* on_post will run */
    bool full;      /* the feed waits for room */
    bool gone;      /* the client has left */
    bool broken;    /* the feed broke off */
    /* The loop's own. */
    struct xp_buf piece; /* being sent */
    size_t at;
};

static void free_relay(struct relay *r)
{
    xp_buf_fini(&r->queue);
    xp_buf_fini(&r->piece);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* Takes what came meanwhile. False: that is all, and nothing else will call pump. */
static bool take_queue(struct relay *r)
{
    struct xp_buf empty = r->piece;
    empty.n = 0;
    pthread_mutex_lock(&r->lock);
    r->piece = r->queue;
    r->queue = empty;
    r->at = 0;
    bool more = r->feed || r->scheduled;
    if (r->feed && r->full)
        upstream_resume(r->feed);
    r->full = false;
    pthread_mutex_unlock(&r->lock);
    return more;
}

static void leave(struct relay *r)
{
    pthread_mutex_lock(&r->lock);
    if (!r->gone && r->feed)
        upstream_stop(r->feed);
    r->gone = true;
    r->queue.n = 0;
    pthread_mutex_unlock(&r->lock);
}

/* On the loop: as much as the client takes. Also called when it has room again, or has left. */
static void pump(void *ctx)
{
    struct relay *r = ctx;
    bool more = true;
    for (;;) {
        while (r->at < r->piece.n) {
            size_t left = r->piece.n - r->at, n = left < 65536 ? left : 65536;
            enum xp_status s = http_stream_send(r->ex, xp_span_of(r->piece.p + r->at, n));
            if (s == XP_BUSY)
                return;
            if (s == XP_CANCELLED) {
                leave(r);
                r->at = r->piece.n;
                break;
            }
            r->at += n;
        }
        more = take_queue(r);
        if (r->piece.n == 0)
            break;
    }
    if (more)
        return;
    if (r->broken)
        http_stream_break(r->ex);
    else
        http_stream_end(r->ex);
    free_relay(r);
}

static void on_post(void *ctx)
{
    struct relay *r = ctx;
    pthread_mutex_lock(&r->lock);
    r->scheduled = false;
    pthread_mutex_unlock(&r->lock);
    pump(r);
}

static void begin(void *ctx)
{
    struct relay *r = ctx;
    http_stream_begin_whole(r->ex, &r->head, r->length, pump, r);
}

struct relay *relay_new(struct http_exchange *ex, struct http_answer *head, size_t length,
                        struct upstream_feed *feed)
{
    struct relay *r = calloc(1, sizeof *r);
    XP_ASSERT(r);
    r->ex = ex;
    r->head = *head;
    *head = (struct http_answer){0};
    r->length = length;
    r->feed = feed;
    pthread_mutex_init(&r->lock, NULL);
    xp_buf_init(&r->queue, RELAY_MAX + UPSTREAM_HOLD);
    xp_buf_init(&r->piece, RELAY_MAX + UPSTREAM_HOLD);
    http_on_loop(ex, begin, r);
    return r;
}

/* Under the lock: once for all that comes until it runs. */
static void schedule(struct relay *r)
{
    if (!r->scheduled)
        http_on_loop(r->ex, on_post, r);
    r->scheduled = true;
}

bool relay_push(void *relay, struct xp_span bytes)
{
    struct relay *r = relay;
    pthread_mutex_lock(&r->lock);
    bool room = r->gone || r->queue.n == 0 || r->queue.n + bytes.n <= RELAY_MAX;
    if (room && !r->gone)
        xp_buf_span(&r->queue, bytes);
    r->full = !room;
    schedule(r);
    pthread_mutex_unlock(&r->lock);
    return room;
}

void relay_end(void *relay, bool whole)
{
    struct relay *r = relay;
    pthread_mutex_lock(&r->lock);
    r->feed = NULL;
    r->broken = !whole;
    schedule(r);
    pthread_mutex_unlock(&r->lock);
}
