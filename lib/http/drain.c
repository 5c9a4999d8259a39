/* lib/http/drain.c - how a loop ends without losing a byte.
 *
 * h2o's own graceful shutdown sends a second GOAWAY after a second and from then on closes each
 * HTTP/2 connection as its last stream is written, whatever the kernel still holds: libuv drops
 * what it had queued, and a window update that meets the closed socket makes the kernel drop the
 * rest. 50 MB answers ended up to 1.6 MB short. Here
 *   - the first GOAWAY goes out at once, listeners close, streams end;
 *   - the second waits until no answer is open and the kernel has sent all;
 *   - sockets linger (conn.c), so that late window updates meet an open one;
 *   - what has not ended by itself within the grace is cut.
 */
#include "lib/http/http_int.h"

#define DRAIN_TICK_MS 20
#define GOAWAY_GAP_MS 250 /* for what was under way when the first GOAWAY went out */

static uint64_t drain_age_ms(const struct http_loop *l)
{
    return uv_now(l->uv) - l->drain_start_ms;
}

static void end_idle_http1(struct http_loop *l)
{
    /* What the kernel has is still read and answered, then h2o sees an EOF. Who is in the middle
     * of a request may finish it. */
    for (struct http_conn *c = l->conns; c; c = c->next)
        if (c->version < 0x200 && !c->exchanges && !c->sock->input->size)
            shutdown(h2o_socket_get_fd(c->sock), SHUT_RD);
}

static bool all_is_sent(const struct http_loop *l)
{
    for (const struct http_conn *c = l->conns; c; c = c->next)
        if (c->exchanges || conn_unsent(c))
            return false;
    return true;
}

static void last_goaway(struct http_loop *l)
{
    h2o_timeout_entry_t *goaway = &l->ctx.http2._graceful_shutdown_timeout;
    l->goaway_sent = true;
    goaway->cb(goaway);
    h2o_timeout_unlink(goaway);
}

static void cut_all(struct http_loop *l)
{
    l->cut_off = true;
    for (struct http_conn *c = l->conns; c; c = c->next) {
        for (struct http_exchange *ex = c->exchanges; ex; ex = ex->next)
            exchange_cancel(ex);
        conn_cut(c);
    }
    linger_sweep(l, true);
}

static void loop_end(struct http_loop *l)
{
    uv_close((uv_handle_t *)&l->drain, NULL);
    uv_close((uv_handle_t *)&l->sweep, NULL);
    xp_loop_stop(l->run);
}

static void on_tick(uv_timer_t *timer)
{
    struct http_loop *l = timer->data;

    conn_find_lost_writes(l);
    end_idle_http1(l);
    if (!l->goaway_sent && drain_age_ms(l) >= GOAWAY_GAP_MS && all_is_sent(l))
        last_goaway(l);
    if (drain_age_ms(l) >= l->drain_grace_ms)
        cut_all(l);
    if (!l->nconns && !l->lingers && !l->nexchanges)
        loop_end(l);
}

void drain_begin(void *ctx)
{
    struct http_loop *l = ctx;

    l->draining = true;
    l->drain_start_ms = uv_now(l->uv);
    uv_close((uv_handle_t *)&l->listener, NULL);
    for (struct http_conn *c = l->conns; c; c = c->next) {
        conn_will_linger(c);
        for (struct http_exchange *ex = c->exchanges, *next; ex; ex = next) {
            next = ex->next;
            stream_cut(ex);
        }
    }
    h2o_context_request_shutdown(&l->ctx);
    h2o_timeout_unlink(&l->ctx.http2._graceful_shutdown_timeout);
    uv_timer_start(&l->drain, on_tick, 0, DRAIN_TICK_MS);
}
