/* lib/http/exchange.c - a request as handlers know it, safe when the client leaves first.
 *
 * h2o frees a request whenever its stream or connection dies, and tells no handler. A guard in
 * the request's own pool does: when the pool is cleared the exchange is detached, and whoever
 * still works on it finds req == NULL and drops the answer.
 */
#include <netdb.h>
#include <stdlib.h>

#include "lib/http/http_int.h"

struct guard {
    struct http_exchange *ex;
};

const struct http_request *http_request(const struct http_exchange *ex)
{
    return &ex->rq;
}

bool http_cancelled(const struct http_exchange *ex)
{
    return atomic_load_explicit(&ex->cancelled, memory_order_relaxed);
}

const atomic_bool *http_cancel_flag(const struct http_exchange *ex)
{
    return &ex->cancelled;
}

struct xp_span http_header(const struct http_exchange *ex, const char *name)
{
    if (!ex->req)
        return (struct xp_span){0};
    if (strcmp(name, "host") == 0)
        return ex->rq.host;
    ssize_t at = h2o_find_header_by_str(&ex->req->headers, name, strlen(name), -1);
    if (at == -1)
        return (struct xp_span){0};
    h2o_iovec_t v = ex->req->headers.entries[at].value;
    return xp_span_of(v.base ? v.base : "", v.len);
}

size_t http_header_count(const struct http_exchange *ex, const char *name)
{
    size_t n = 0;
    ssize_t at = -1;
    while (ex->req &&
           (at = h2o_find_header_by_str(&ex->req->headers, name, strlen(name), at)) != -1)
        n++;
    return n;
}

void http_peer(const struct http_exchange *ex, char text[HTTP_PEER_MAX])
{
    struct sockaddr_storage peer;
    text[0] = 0;
    if (!ex->conn || h2o_socket_getpeername(ex->conn->sock, (struct sockaddr *)&peer) == 0 ||
        getnameinfo((struct sockaddr *)&peer, sizeof peer, text, HTTP_PEER_MAX, NULL, 0,
                    NI_NUMERICHOST) != 0)
        text[0] = 0;
    else if (strncmp(text, "::ffff:", 7) == 0 && strchr(text, '.'))
        memmove(text, text + 7, strlen(text + 7) + 1);
}

void exchange_cancel(struct http_exchange *ex)
{
    atomic_store_explicit(&ex->cancelled, true, memory_order_relaxed);
}

void exchange_flight(struct http_exchange *ex, bool on)
{
    struct http_conn *c = ex->conn;
    if (ex->in_flight == on)
        return;
    ex->in_flight = on;
    if (on && c->in_flight++ == 0)
        c->progress_ms = uv_now(c->loop->uv);
    else if (!on)
        c->in_flight--;
}

/* --- life --- */

static void exchange_free(struct http_exchange *ex)
{
    if (ex->attached || ex->owned || ex->posted)
        return;
    ex->loop->nexchanges--;
    http_answer_fini(&ex->answer);
    xp_gunzip_free(ex->gunzip);
    free(ex->piece);
    xp_buf_fini(&ex->waiting);
    xp_buf_fini(&ex->sending);
    free(ex);
}

void exchange_disown(struct http_exchange *ex)
{
    ex->owned = false;
    exchange_free(ex);
}

/* Whether the client left before it had the answer whole. */
static bool was_aborted(const struct http_exchange *ex)
{
    if (ex->stopped || ex->phase != HTTP_SENT)
        return true;
    return ex->rq.method != HTTP_HEAD && ex->req->res.content_length != SIZE_MAX &&
           ex->req->bytes_sent < ex->req->res.content_length;
}

/* In a turn of its own, as the owner may end the exchange; and not if it has done so meanwhile. */
static void on_leave(void *p)
{
    struct http_exchange *ex = p;
    if (ex->owned)
        ex->on_room(ex->room_ctx);
    ex->posted = false;
    exchange_free(ex);
}

static void on_guard_dispose(void *p)
{
    struct http_exchange *ex = ((struct guard *)p)->ex;
    struct http_conn *c = ex->conn;

    exchange_flight(ex, false);
    if (ex->prev)
        ex->prev->next = ex->next;
    else
        c->exchanges = ex->next;
    if (ex->next)
        ex->next->prev = ex->prev;
    bool aborted = was_aborted(ex);
    if (aborted) {
        exchange_cancel(ex);
        conn_count_abort(c);
    }
    trace_end(ex, aborted);
    ex->attached = false;
    ex->req = NULL;
    ex->conn = NULL;
    ex->posted = ex->on_room && ex->owned;
    if (ex->posted)
        xp_loop_post(ex->loop->run, on_leave, ex);
    exchange_free(ex);
}

static void on_stop(h2o_generator_t *gen, h2o_req_t *req)
{
    struct http_exchange *ex = (struct http_exchange *)gen;
    (void)req;
    ex->stopped = true;
    exchange_cancel(ex);
}

static void attach(struct http_exchange *ex, struct http_conn *c, h2o_req_t *req)
{
    struct guard *guard = h2o_mem_alloc_shared(&req->pool, sizeof *guard, on_guard_dispose);

    guard->ex = ex;
    ex->attached = true;
    ex->rq.tls = c->sock->ssl != NULL;
    ex->req = req;
    ex->conn = c;
    ex->next = c->exchanges;
    if (ex->next)
        ex->next->prev = ex;
    c->exchanges = ex;
}

/* --- h2o's request --- */

static enum http_method method_of(h2o_iovec_t m)
{
    static const char *const names[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"};
    for (int i = 0; i < HTTP_OTHER; i++)
        if (h2o_memis(m.base, m.len, names[i], strlen(names[i])))
            return (enum http_method)i;
    return HTTP_OTHER;
}

static struct xp_span copy_to(uint8_t **at, const void *p, size_t n)
{
    struct xp_span s = xp_span_of(*at, n);
    if (n)
        memcpy(*at, p, n);
    *at += n;
    return s;
}

static struct http_exchange *exchange_new(struct http_loop *l, const h2o_req_t *req)
{
    h2o_iovec_t target = req->input.path, host = req->input.authority, body = req->entity;
    const char *mark = target.len ? memchr(target.base, '?', target.len) : NULL;
    size_t path_n = mark ? (size_t)(mark - target.base) : target.len;
    size_t query_n = mark ? target.len - path_n - 1 : 0;
    struct http_exchange *ex = h2o_mem_alloc(sizeof *ex + target.len + host.len + body.len);

    memset(ex, 0, sizeof *ex);
    uint8_t *at = ex->bytes;
    ex->rq.path = copy_to(&at, target.base, path_n);
    ex->rq.query = copy_to(&at, mark ? mark + 1 : NULL, query_n);
    ex->rq.host = copy_to(&at, host.base, host.len);
    ex->rq.body = copy_to(&at, body.base, body.len);
    ex->rq.method = method_of(req->input.method);
    ex->rq.accepts_gzip = request_accepts_gzip(req);
    ex->rq.version = req->version;
    ex->gen.proceed = send_proceed;
    ex->gen.stop = on_stop;
    ex->loop = l;
    ex->owned = true;
    xp_buf_init(&ex->waiting, HTTP_STREAM_WAIT_MAX);
    xp_buf_init(&ex->sending, HTTP_STREAM_WAIT_MAX);
    trace_begin(ex, req);
    l->nexchanges++;
    return ex;
}

int exchange_on_req(h2o_handler_t *self, h2o_req_t *req)
{
    struct http_conn *c = conn_of(req);
    struct http_loop *l = c->loop;
    struct xp_error err;
    (void)self;

    c->version = req->version;
    c->window_requests++;
    http_count(&l->count.requests, 1);
    if (c->condemned) {
        h2o_send_error_503(req, "Service Unavailable", "", H2O_SEND_ERROR_HTTP1_CLOSE_CONNECTION);
        return 0;
    }
    /* Where proxies read framing otherwise than h2o does (two lengths, a length and chunks: it
     * takes one and does not say), what follows the body may be somebody else's. */
    struct http_exchange *ex = exchange_new(l, req);
    bool read_only = ex->rq.method == HTTP_GET || ex->rq.method == HTTP_HEAD;
    if (req->version < 0x200 && (req->entity.base || !read_only) &&
        !l->server->config.keep_after_body)
        req->http1_is_persistent = 0;
    attach(ex, c, req);
    if (request_check(ex, req, &err) == XP_OK) {
        l->server->config.handler(l->server->config.ctx, ex);
    } else {
        struct http_answer a;
        http_answer_problem(&a, &err);
        http_answer(ex, &a);
    }
    return 0;
}

/* --- answers --- */

/* By the owner's thread: it touches nothing that the loop may read at the same time. */
static void take_answer(struct http_exchange *ex, struct http_answer *a)
{
    XP_ASSERT(!ex->answered);
    ex->answered = true;
    ex->answer = *a;
    *a = (struct http_answer){0};
}

void http_answer(struct http_exchange *ex, struct http_answer *a)
{
    take_answer(ex, a);
    send_answer(ex);
}

static void on_answer_post(void *ctx)
{
    send_answer(ctx);
}

void http_answer_from(struct http_exchange *ex, struct http_answer *a)
{
    take_answer(ex, a);
    xp_loop_post(ex->loop->run, on_answer_post, ex);
}

void http_on_loop(struct http_exchange *ex, void (*fn)(void *ctx), void *ctx)
{
    xp_loop_post(ex->loop->run, fn, ctx);
}
