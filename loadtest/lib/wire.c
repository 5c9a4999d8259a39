#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/status.h"
#include "loadtest/lib/wire_int.h"

#define ROOM ((size_t)256 << 10)

/* --- the end of an ask --- */

static void unlink_one(struct wire_one *one)
{
    struct wire *w = one->w;
    if (one->prev)
        one->prev->next = one->next;
    else
        w->asks = one->next;
    if (one->next)
        one->next->prev = one->prev;
    w->n_asks--;
}

static void free_one(struct wire_one *one)
{
    xp_buf_fini(&one->sent);
    xp_buf_fini(&one->body);
    free(one->method);
    free(one->path);
    free(one);
}

void wire_end(struct wire_one *one, bool whole)
{
    struct wire_answer a = {whole ? one->status : 0, one->location, xp_buf_all(&one->body)};
    unlink_one(one);
    one->done(one->ctx, &a);
    free_one(one);
}

void wire_note_location(struct wire_one *one, const void *p, size_t n)
{
    if (n >= sizeof one->location)
        n = sizeof one->location - 1;
    memcpy(one->location, p, n);
    one->location[n] = 0;
}

void wire_keep(struct wire_one *one, const uint8_t *p, size_t n)
{
    if (one->look)
        xp_buf_add(&one->body, p, n);
}

/* --- a connection --- */

static void open_tls(struct wire *w)
{
    w->ssl = SSL_new(w->set->tls);
    XP_ASSERT(w->ssl && SSL_set_fd(w->ssl, w->fd) == 1);
    SSL_set_connect_state(w->ssl);
}

static bool dial(struct wire *w)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)w->set->config.port)};
    struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP, .data.ptr = w};
    int on = 1;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    w->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (w->fd < 0)
        return false;
    setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if ((connect(w->fd, (struct sockaddr *)&a, sizeof a) != 0 && errno != EINPROGRESS) ||
        epoll_ctl(w->set->epoll, EPOLL_CTL_ADD, w->fd, &ev) != 0) {
        close(w->fd);
        w->fd = -1;
        return false;
    }
    if (w->set->tls)
        open_tls(w);
    if (w->set->config.h2)
        h2_open(w);
    return true;
}

static void hang_up(struct wire *w)
{
    h2_close(w);
    SSL_free(w->ssl);
    w->ssl = NULL;
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
    w->set->n_up -= w->up;
    w->up = w->broken = w->leaving = false;
    w->out.n = w->out_at = 0;
    if (w->h1)
        *w->h1 = (struct wire_h1){0};
}

static void submit(struct wire *w, struct wire_one *one)
{
    one->waiting = false;
    if (w->set->config.h2)
        h2_ask(w, one);
    else
        h1_ask(w, one);
}

static void fail_all(struct wire *w)
{
    while (w->asks)
        wire_end(w->asks, false);
}

/* What was under way is asked again, once, where nothing of an answer had come. */
static void lose(struct wire *w)
{
    struct wire_one *one = w->asks, *next;
    bool had = w->up, any = false;
    hang_up(w);
    for (; one; one = next) {
        next = one->next;
        if (!had || (!one->waiting && (one->seen || one->again))) {
            wire_end(one, false);
            continue;
        }
        w->set->retries += !one->waiting;
        one->again = one->again || !one->waiting;
        one->waiting = any = true;
    }
    if (!any)
        return;
    if (w->fd < 0 && !dial(w)) {
        fail_all(w);
        return;
    }
    for (one = w->asks; one; one = one->next)
        if (one->waiting)
            submit(w, one);
}

static bool any_answered_here(const struct wire *w)
{
    for (const struct wire_one *one = w->asks; one; one = one->next)
        if (!one->waiting)
            return true;
    return false;
}

/* -1: broken; 0: not now. */
static ssize_t put(struct wire *w, const uint8_t *p, size_t n)
{
    if (!w->ssl) {
        ssize_t k = send(w->fd, p, n, MSG_NOSIGNAL);
        return k < 0 && (errno == EAGAIN || errno == ENOTCONN) ? 0 : k;
    }
    int k = SSL_write(w->ssl, p, n < INT32_MAX ? (int)n : INT32_MAX);
    if (k > 0)
        return k;
    int why = SSL_get_error(w->ssl, k);
    return why == SSL_ERROR_WANT_WRITE || why == SSL_ERROR_WANT_READ ? 0 : -1;
}

static ssize_t get(struct wire *w)
{
    if (!w->ssl) {
        ssize_t k = read(w->fd, w->set->room, ROOM);
        return k < 0 && errno == EAGAIN ? 0 : k > 0 ? k : -1;
    }
    int k = SSL_read(w->ssl, w->set->room, (int)ROOM);
    if (k > 0)
        return k;
    int why = SSL_get_error(w->ssl, k);
    return why == SSL_ERROR_WANT_WRITE || why == SSL_ERROR_WANT_READ ? 0 : -1;
}

static void flush(struct wire *w)
{
    while (w->up && !w->broken) {
        if (w->h2)
            h2_write(w);
        if (w->out_at == w->out.n)
            return;
        ssize_t n = put(w, w->out.p + w->out_at, w->out.n - w->out_at);
        if (n == 0)
            return;
        w->broken = n < 0;
        w->out_at += n > 0 ? (size_t)n : 0;
        if (w->out_at == w->out.n)
            w->out.n = w->out_at = 0;
    }
}

/* True: bytes may go to and fro. */
static bool shake_hands(struct wire *w)
{
    int error = 0;
    socklen_t n = sizeof error;
    if (w->up)
        return true;
    if (w->ssl) {
        int k = SSL_do_handshake(w->ssl);
        int why = k == 1 ? SSL_ERROR_NONE : SSL_get_error(w->ssl, k);
        w->up = k == 1;
        w->broken = !w->up && why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE;
    } else {
        w->broken = getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0 || error != 0;
        w->up = !w->broken;
    }
    w->set->n_up += w->up;
    return w->up;
}

static void read_all(struct wire *w)
{
    while (!w->broken) {
        ssize_t n = get(w);
        if (n == 0)
            return;
        if (n < 0) {
            w->broken = true;
            return;
        }
        w->set->bytes += (uint64_t)n;
        if (w->h2)
            h2_read(w, w->set->room, (size_t)n);
        else
            h1_read(w, w->set->room, (size_t)n);
    }
}

static void on_event(struct wire *w)
{
    w->inside = true;
    if (shake_hands(w)) {
        flush(w);
        read_all(w);
        flush(w);
    }
    w->inside = false;
    if (w->broken || (w->leaving && !any_answered_here(w)))
        lose(w);
}

/* --- what others call --- */

bool wire_room(const struct wire *w)
{
    return w->n_asks < (w->set->config.h2 ? WIRE_STREAMS : 1);
}

static struct wire_one *one_new(struct wire *w, const struct wire_request *r, wire_fn done,
                                void *ctx)
{
    struct wire_one *one = calloc(1, sizeof *one);
    XP_ASSERT(one);
    one->w = w;
    one->done = done;
    one->ctx = ctx;
    one->method = strdup(r->method);
    one->path = strdup(r->path);
    XP_ASSERT(one->method && one->path);
    one->look = r->look;
    xp_buf_init(&one->sent, WIRE_BODY_MAX);
    xp_buf_init(&one->body, WIRE_BODY_MAX);
    xp_buf_span(&one->sent, r->body);
    one->next = w->asks;
    if (w->asks)
        w->asks->prev = one;
    w->asks = one;
    w->n_asks++;
    return one;
}

void wire_ask(struct wire *w, const struct wire_request *r, wire_fn done, void *ctx)
{
    struct wire_one *one = one_new(w, r, done, ctx);
    if (w->fd < 0 && !dial(w)) {
        wire_end(one, false);
        return;
    }
    if (w->leaving) {
        one->waiting = true;
        return;
    }
    submit(w, one);
    if (!w->inside)
        flush(w); /* what breaks here is found by the event that follows */
}

struct wire *wire_new(struct wires *ws)
{
    struct wire *w = calloc(1, sizeof *w);
    XP_ASSERT(w);
    w->set = ws;
    w->fd = -1;
    w->older = ws->wires;
    ws->wires = w;
    xp_buf_init(&w->out, WIRE_OUT_MAX);
    if (!ws->config.h2) {
        w->h1 = calloc(1, sizeof *w->h1);
        XP_ASSERT(w->h1);
    }
    return w;
}

static SSL_CTX *tls_new(bool h2)
{
    static const unsigned char alpn_h2[] = "\x02h2", alpn_h1[] = "\x08http/1.1";
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    XP_ASSERT(ctx);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL); /* it is a certificate made for the test */
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_protos(ctx, h2 ? alpn_h2 : alpn_h1,
                            (unsigned)(h2 ? sizeof alpn_h2 : sizeof alpn_h1) - 1);
    return ctx;
}

struct wires *wires_open(const struct wire_config *config)
{
    if (config->h2 && !h2_is_there()) {
        fprintf(stderr, "built without libnghttp2: there is no HTTP/2\n");
        return NULL;
    }
    struct wires *ws = calloc(1, sizeof *ws);
    XP_ASSERT(ws);
    ws->config = *config;
    ws->tls = config->tls ? tls_new(config->h2) : NULL;
    ws->epoll = epoll_create1(EPOLL_CLOEXEC);
    ws->room = malloc(ROOM);
    XP_ASSERT(ws->epoll >= 0 && ws->room);
    return ws;
}

void wires_close(struct wires *ws)
{
    struct wire *w;
    while ((w = ws->wires)) {
        ws->wires = w->older;
        hang_up(w);
        while (w->asks) {
            struct wire_one *one = w->asks;
            unlink_one(one);
            free_one(one);
        }
        xp_buf_fini(&w->out);
        free(w->h1);
        free(w);
    }
    SSL_CTX_free(ws->tls);
    close(ws->epoll);
    free(ws->room);
    free(ws);
}

void wires_wait(struct wires *ws, uint64_t ns)
{
    struct epoll_event ev[256];
    struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    int n = epoll_pwait2(ws->epoll, ev, 256, &t, NULL);
    if (n < 0 && errno == ENOSYS)
        n = epoll_wait(ws->epoll, ev, 256, (int)(ns / 1000000));
    for (int i = 0; i < n; i++)
        on_event(ev[i].data.ptr);
}

uint64_t wires_bytes(const struct wires *ws)
{
    return ws->bytes;
}

uint64_t wires_retries(const struct wires *ws)
{
    return ws->retries;
}

size_t wires_up(const struct wires *ws)
{
    return ws->n_up;
}
