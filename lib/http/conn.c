/* lib/http/conn.c - our record of a connection, and the ends a connection can come to.
 *
 * h2o 2.2.5 neither limits resets (CVE-2023-44487, CVE-2025-8671) nor the time a client may take
 * to read, does not see an HTTP/1.1 client leave while a handler works, and closes a socket that
 * the other side still sends window updates to, which destroys what is on its way. Hence a
 * counter, a sweep once a second, and a duplicate of the socket that outlives h2o's.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "lib/http/http_int.h"

struct http_conn *conn_of(const h2o_req_t *req)
{
    return req->conn->callbacks->get_socket(req->conn)->on_close.data;
}

/* --- lingering --- */

static void linger_closed(uv_handle_t *handle)
{
    struct http_linger *g = handle->data;
    close(g->fd);
    free(g);
}

static void linger_end(struct http_linger *g)
{
    struct http_linger **at = &g->loop->lingers;
    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    uv_close((uv_handle_t *)&g->poll, linger_closed);
}

static void on_linger(uv_poll_t *poll, int status, int events)
{
    struct http_linger *g = poll->data;
    char discarded[4096];
    ssize_t n = status < 0 ? 0 : read(g->fd, discarded, sizeof discarded);
    (void)events;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        linger_end(g);
}

static void linger_begin(struct http_loop *l, int fd)
{
    struct http_linger *g = h2o_mem_alloc(sizeof *g);

    *g = (struct http_linger){.loop = l, .fd = fd, .until_ms = uv_now(l->uv) + HTTP_LINGER_MS};
    shutdown(fd, SHUT_WR);
    if (uv_poll_init(l->uv, &g->poll, fd) != 0) {
        close(fd);
        free(g);
        return;
    }
    g->poll.data = g;
    g->next = l->lingers;
    l->lingers = g;
    uv_poll_start(&g->poll, UV_READABLE, on_linger);
}

void linger_sweep(struct http_loop *l, bool all)
{
    for (struct http_linger *g = l->lingers, *next; g; g = next) {
        next = g->next;
        if (all || g->until_ms <= uv_now(l->uv))
            linger_end(g);
    }
}

void conn_will_linger(struct http_conn *c)
{
    if (c->linger_fd < 0)
        c->linger_fd = dup(h2o_socket_get_fd(c->sock));
}

/* --- a connection's life --- */

static void on_close(void *data)
{
    struct http_conn *c = data;
    struct http_loop *l = c->loop;

    if (c->prev)
        c->prev->next = c->next;
    else
        l->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
    l->nconns--;
    http_count(&l->count.open_connections, -1);
    if (c->linger_fd >= 0)
        linger_begin(l, c->linger_fd);
    free(c);
    if (l->full)
        conn_accept(l);
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

void conn_accept(struct http_loop *l)
{
    /* libuv stops polling the listener while a connection is not taken: the kernel's backlog
     * holds what comes, and on_close takes it up again. */
    l->full = l->nconns >= HTTP_CONNECTIONS_MAX;
    if (l->full || l->draining)
        return;

    uv_tcp_t *tcp = h2o_mem_alloc(sizeof *tcp);
    uv_tcp_init(l->uv, tcp);
    if (uv_accept((uv_stream_t *)&l->listener, (uv_stream_t *)tcp) != 0) {
        uv_close((uv_handle_t *)tcp, free_handle);
        return;
    }
    uv_tcp_nodelay(tcp, 1);

    struct http_conn *c = h2o_mem_alloc(sizeof *c);
    *c = (struct http_conn){.loop = l, .next = l->conns, .linger_fd = -1};
    c->window_ms = uv_now(l->uv);
    c->stream = (uv_stream_t *)tcp;
    c->sock = h2o_uv_socket_create(c->stream, free_handle);
    c->sock->on_close.cb = on_close;
    c->sock->on_close.data = c;
    if (l->conns)
        l->conns->prev = c;
    l->conns = c;
    l->nconns++;
    http_count(&l->count.connections, 1);
    http_count(&l->count.open_connections, 1);
    h2o_accept(&l->accept, c->sock);
}

void conn_cut(struct http_conn *c)
{
    shutdown(h2o_socket_get_fd(c->sock), SHUT_RDWR);
}

void conn_count_abort(struct http_conn *c)
{
    http_count(&c->loop->count.aborted, 1);
    c->window_aborts++;
    if (c->condemned || c->window_aborts <= HTTP_ABORTS_MAX ||
        c->window_aborts <= c->window_requests / 2)
        return;
    c->condemned = true;
    http_count(&c->loop->count.condemned, 1);
    conn_cut(c);
}

uint32_t conn_unsent(const struct http_conn *c)
{
    int n = 0;
    if (ioctl(h2o_socket_get_fd(c->sock), SIOCOUTQ, &n) != 0 || n < 0)
        return 0;
    return (uint32_t)n;
}

/* --- once in a while --- */

static bool peer_has_left(const struct http_conn *c)
{
    struct tcp_info info = {0};
    socklen_t n = sizeof info;
    if (getsockopt(h2o_socket_get_fd(c->sock), IPPROTO_TCP, TCP_INFO, &info, &n) != 0)
        return true;
    return info.tcpi_state == TCP_CLOSE_WAIT || info.tcpi_state == TCP_CLOSE;
}

/* Bytes wait for a client, of an answer or of a farewell, and it has taken none for too long. h2o
 * asks for the next piece only when a third of the kernel's buffer is free again and libuv has
 * written all of the last, so what is left in both is looked at too: a slow line is not a dead
 * one. */
static bool reads_too_slowly(struct http_conn *c)
{
    uint64_t limit_ms = (uint64_t)c->loop->server->config.slow_reader_s * 1000;
    uint64_t now = uv_now(c->loop->uv);
    size_t unsent = conn_unsent(c) + uv_stream_get_write_queue_size(c->stream);

    if (unsent != c->unsent) {
        c->unsent = unsent;
        c->progress_ms = now;
    }
    bool waits = c->in_flight || (unsent && !c->exchanges);
    return waits && now - c->progress_ms > limit_ms;
}

/* After a read that met a reset libuv refuses to write, and h2o 2.2.5 does not look at what
 * uv_write says: it waits for a callback that never comes, with the farewell of TLS in its hands.
 * The callback is given here, at the second look in a row: at the first it might be on its way. */
void conn_find_lost_writes(struct http_loop *l)
{
    for (struct http_conn *c = l->conns, *next; c; c = next) {
        next = c->next;
        bool lost = c->sock->_cb.write && !uv_is_writable(c->stream) &&
                    uv_stream_get_write_queue_size(c->stream) == 0;
        if (lost && c->write_lost) {
            h2o_socket_cb cb = c->sock->_cb.write;
            c->sock->_cb.write = NULL;
            cb(c->sock, h2o_socket_error_closed);
        } else {
            c->write_lost = lost;
        }
    }
}

void conn_sweep(struct http_loop *l)
{
    conn_find_lost_writes(l);
    for (struct http_conn *c = l->conns; c; c = c->next) {
        if (uv_now(l->uv) - c->window_ms >= HTTP_ABORT_WINDOW_MS) {
            c->window_requests = c->window_aborts = 0;
            c->window_ms = uv_now(l->uv);
        }
        if (!c->condemned && reads_too_slowly(c)) {
            c->condemned = true;
            http_count(&l->count.slow_closed, 1);
            conn_cut(c);
        }
        /* HTTP/1.1: h2o does not read while a handler works. */
        if (c->version < 0x200 && c->exchanges && !c->in_flight && peer_has_left(c))
            exchange_cancel(c->exchanges);
    }
    linger_sweep(l, false);
}
