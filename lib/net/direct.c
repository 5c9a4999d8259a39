#include "lib/net/direct.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/net/parse.h"

#define READ_BYTES ((size_t)64 << 10)
#define READS_AT_ONCE 8
#define SECOND_NS UINT64_C(1000000000)
#define IDLE_NS (55 * SECOND_NS) /* the other side closes idle ones after a minute */
#define LOOK_MS 100
#define SLOW_BYTES_S 4096
#define CONNECT_MS 10000
#define STALL_MS 15000
#define HEAD_MAX 8192

struct conn {
    uv_poll_t poll;
    struct direct *d;
    struct conn *prev, *next; /* idle, newest first */
    struct direct_call *call; /* NULL: none, or none any more */
    struct sockaddr_storage to;
    int fd, events;
    bool idle, used; /* in the list; it has answered before */
    bool broken;     /* it can only be read to its end any more */
    uint64_t idle_ns;
};

struct direct {
    uv_loop_t *loop;
    uv_timer_t *timer;
    struct conn *idle;
    size_t n_idle;
    struct direct_call *calls;
    uint8_t room[READ_BYTES];
};

struct direct_call {
    struct direct *d;
    struct direct_call *prev, *next;
    struct direct_calls fns;
    void *ctx;
    struct sockaddr_storage to;
    struct xp_buf head; /* what is sent, before the body */
    struct xp_span body;
    size_t sent;
    struct conn *conn;
    struct net_parse parse;
    struct xp_buf held; /* came, but there was no room */
    bool connected, seen, again, paused;
    uint64_t connect_ns, stall_ns, total_ns; /* how long each may take; 0: for ever */
    uint64_t began, since, bytes;            /* bytes that went either way since */
};

/* --- an address --- */

/* "http://1.2.3.4:80/path", "http://[::1]:80/path". */
static bool read_url(const char *url, struct sockaddr_storage *to, const char **path, int *host_n)
{
    char host[64];
    if (strncmp(url, "http://", 7) != 0)
        return false;
    const char *at = url + 7, *end = at + strcspn(at, "/");
    const char *colon = memrchr(at, ':', (size_t)(end - at));
    if (!*end || !colon || (size_t)(colon - at) >= sizeof host)
        return false;
    snprintf(host, sizeof host, "%.*s", (int)(colon - at), at);
    char *stop;
    unsigned long port = strtoul(colon + 1, &stop, 10);
    if (stop != end || stop == colon + 1 || port == 0 || port > 65535)
        return false;
    *path = end;
    *host_n = (int)(end - at);
    *to = (struct sockaddr_storage){0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)to;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;
    size_t n = strlen(host);
    if (n > 2 && host[0] == '[' && host[n - 1] == ']') {
        host[n - 1] = 0;
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1;
    }
    v4->sin_family = AF_INET;
    v4->sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, host, &v4->sin_addr) == 1;
}

bool direct_fits(const struct net_request *r)
{
    struct sockaddr_storage to;
    const char *path;
    int host_n;
    return r->direct && !r->h2c && !r->ca_file && !r->connections &&
           strcmp(r->method, "POST") == 0 && read_url(r->url, &to, &path, &host_n);
}

/* --- a call --- */

static uint64_t ns_of(uint32_t ms, uint32_t other)
{
    return (uint64_t)(ms ? ms : other) * 1000000;
}

static uint64_t whole_seconds(uint64_t ns)
{
    return (ns + SECOND_NS - 1) / SECOND_NS * SECOND_NS;
}

struct direct_call *direct_new(const struct net_request *r, const struct direct_calls *calls,
                               void *ctx)
{
    struct direct_call *c = calloc(1, sizeof *c);
    const char *path;
    int host_n;
    if (!c || !read_url(r->url, &c->to, &path, &host_n)) {
        free(c);
        return NULL;
    }
    c->fns = *calls;
    c->ctx = ctx;
    c->body = r->body;
    c->connect_ns = ns_of(r->connect_ms, CONNECT_MS);
    c->stall_ns = whole_seconds(ns_of(r->stall_ms, STALL_MS));
    c->total_ns = ns_of(r->total_ms, 0);
    xp_buf_init(&c->head, HEAD_MAX);
    xp_buf_init(&c->held, 2 * READ_BYTES);
    net_parse_init(&c->parse);
    xp_buf_fmt(&c->head, "%s %s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: xprofd\r\n", r->method, path,
               host_n, r->url + 7);
    for (const char *const *h = r->headers; h && *h; h++)
        xp_buf_fmt(&c->head, "%s\r\n", *h);
    xp_buf_fmt(&c->head, "Content-Length: %zu\r\n\r\n", r->body.n);
    if (c->head.failed) {
        direct_free(c);
        return NULL;
    }
    return c;
}

void direct_free(struct direct_call *c)
{
    if (!c)
        return;
    xp_buf_fini(&c->head);
    xp_buf_fini(&c->held);
    net_parse_fini(&c->parse);
    free(c);
}

int direct_code(const struct direct_call *c)
{
    return c->parse.code;
}

const char *direct_field(const struct direct_call *c, const char *name)
{
    return net_parse_field(&c->parse, name);
}

void direct_each_field(const struct direct_call *c,
                       void (*fn)(void *ctx, const char *name, const char *value), void *ctx)
{
    for (size_t i = 0; i < c->parse.n_fields; i++)
        fn(ctx, c->parse.fields[i].name, c->parse.fields[i].value);
}

/* --- connections --- */

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

static void unlink_idle(struct conn *k)
{
    if (k->prev)
        k->prev->next = k->next;
    else
        k->d->idle = k->next;
    if (k->next)
        k->next->prev = k->prev;
    k->prev = k->next = NULL;
    k->idle = false;
    k->d->n_idle--;
}

static void drop(struct conn *k)
{
    if (k->idle)
        unlink_idle(k);
    k->call = NULL;
    uv_poll_stop(&k->poll);
    close(k->fd);
    uv_close((uv_handle_t *)&k->poll, on_closed);
}

static void on_poll(uv_poll_t *poll, int status, int events);

static void watch(struct conn *k, int events)
{
    if (k->events == events)
        return;
    k->events = events;
    uv_poll_start(&k->poll, events, on_poll);
}

static void make_idle(struct conn *k)
{
    struct direct *d = k->d;
    k->call = NULL;
    k->idle = k->used = true;
    k->idle_ns = xp_now_ns();
    k->prev = NULL;
    k->next = d->idle;
    if (d->idle)
        d->idle->prev = k;
    d->idle = k;
    d->n_idle++;
    watch(k, UV_READABLE); /* so that its end is seen */
    if (d->n_idle <= DIRECT_IDLE_MAX)
        return;
    while (k->next)
        k = k->next;
    drop(k);
}

static size_t size_of(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* Nothing has come since its answer: what nobody asked for must not become the begin of the next,
 * and the loop may not have come to it yet. */
static bool is_silent(const struct conn *k)
{
    uint8_t byte;
    return recv(k->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static struct conn *take_idle(struct direct *d, const struct sockaddr_storage *to)
{
    uint64_t now = xp_now_ns();
    struct conn *k = d->idle, *next;
    for (; k; k = next) {
        next = k->next;
        bool is_to = memcmp(&k->to, to, size_of(to)) == 0;
        if (now - k->idle_ns > IDLE_NS || (is_to && !is_silent(k)))
            drop(k);
        else if (is_to)
            break;
    }
    if (k)
        unlink_idle(k);
    return k;
}

/* -1: it cannot be, and errno says why. */
static int open_socket(const struct sockaddr_storage *to)
{
    int on = 1, fd = socket(to->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)to, (socklen_t)size_of(to)) != 0 &&
        errno != EINPROGRESS) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    return fd;
}

static struct conn *dial(struct direct *d, const struct sockaddr_storage *to)
{
    struct conn *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->d = d;
    k->to = *to;
    k->poll.data = k;
    k->fd = open_socket(to);
    int error = k->fd < 0 ? -errno : uv_poll_init_socket(d->loop, &k->poll, k->fd);
    if (error == 0)
        return k;
    if (k->fd >= 0)
        close(k->fd);
    free(k);
    errno = -error;
    return NULL;
}

/* --- the end of a call --- */

static void unlink_call(struct direct_call *c)
{
    struct direct *d = c->d;
    if (c->prev)
        c->prev->next = c->next;
    else
        d->calls = c->next;
    if (c->next)
        c->next->prev = c->prev;
    if (!d->calls)
        uv_timer_stop(d->timer);
}

static void end(struct direct_call *c, enum xp_status status, const char *why, bool keep)
{
    struct conn *k = c->conn;
    unlink_call(c);
    c->conn = NULL;
    if (k && keep && !k->broken)
        make_idle(k);
    else if (k)
        drop(k);
    c->fns.end(c->ctx, status, why);
}

void direct_abort(struct direct_call *c)
{
    if (!c->d)
        return;
    unlink_call(c);
    if (c->conn)
        drop(c->conn);
    c->conn = NULL;
}

static void start(struct direct_call *c);

/* The connection broke. */
static void lose(struct direct_call *c, const char *why)
{
    struct conn *k = c->conn;
    if (!c->connected || !k->used || c->seen || c->again) {
        end(c, XP_IO, why, false);
        return;
    }
    c->conn = NULL;
    drop(k);
    c->again = true;
    start(c);
}

/* --- bytes --- */

/* What the connection of a call that is not paused is waited for. */
static int wanted(const struct direct_call *c)
{
    bool unsent = c->sent < c->head.n + c->body.n && !c->conn->broken;
    return UV_READABLE | (unsent ? UV_WRITABLE : 0);
}

/* What is left of the request, as far as it goes out now. */
static void send_some(struct direct_call *c)
{
    while (wanted(c) & UV_WRITABLE) {
        size_t from = c->sent < c->head.n ? c->sent : c->head.n, past = c->sent - from;
        struct iovec v[2] = {{c->head.p + from, c->head.n - from},
                             {(void *)(c->body.p + past), c->body.n - past}};
        struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
        ssize_t n = sendmsg(c->conn->fd, &m, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == ENOTCONN))
            break;
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
            c->conn->broken = true; /* an answer may have come before: reading finds out */
            break;
        }
        if (n <= 0) {
            lose(c, strerror(errno));
            return;
        }
        c->sent += (size_t)n;
        c->bytes += (uint64_t)n;
    }
    watch(c->conn, wanted(c));
}

/* What came, as far as there is room for it; the rest is held. False: the call is over. */
static bool take(struct direct_call *c, struct xp_span bytes)
{
    for (;;) {
        switch (net_parse_step(&c->parse, &bytes)) {
        case PARSE_MORE:
            return true;
        case PARSE_BODY: {
            size_t n = c->parse.piece;
            if (c->fns.body(c->ctx, xp_span_of(bytes.p, n))) {
                net_parse_took(&c->parse, &bytes, n);
                break;
            }
            if (!c->paused) {
                end(c, XP_CANCELLED, "it is not wanted any more", false);
                return false;
            }
            xp_buf_span(&c->held, bytes);
            XP_ASSERT(!c->held.failed);
            watch(c->conn, 0);
            return true;
        }
        case PARSE_DONE:
            end(c, XP_OK, "", c->parse.keep && bytes.n == 0 && c->sent == c->head.n + c->body.n);
            return false;
        case PARSE_BROKEN:
            end(c, XP_IO, "what came is no answer", false);
            return false;
        }
    }
}

static void read_some(struct direct_call *c)
{
    struct direct *d = c->d;
    for (int i = 0; i < READS_AT_ONCE && !c->paused; i++) {
        ssize_t n = read(c->conn->fd, d->room, READ_BYTES);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {
            lose(c, strerror(errno));
            return;
        }
        if (n == 0 && net_parse_end(&c->parse) && !c->conn->broken) {
            end(c, XP_OK, "", false);
            return;
        }
        if (n == 0) {
            lose(c, c->seen ? "the answer broke off" : "the connection was closed");
            return;
        }
        c->seen = true;
        c->bytes += (uint64_t)n;
        if (!take(c, xp_span_of(d->room, (size_t)n)) || (size_t)n < READ_BYTES)
            return;
    }
}

static void on_connected(struct direct_call *c)
{
    int error = 0;
    socklen_t n = sizeof error;
    if (getsockopt(c->conn->fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0)
        error = errno;
    if (error || c->conn->broken) {
        lose(c, strerror(error ? error : ECONNRESET));
        return;
    }
    c->connected = true;
    c->since = xp_now_ns();
    send_some(c);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct conn *k = poll->data; /* even if it is dropped, it stays until all are called back */
    struct direct_call *c = k->call;
    if (!c) {
        drop(k); /* its end, or bytes that nobody asked for */
        return;
    }
    if (status < 0) {
        k->broken = true;
        k->events = 0; /* libuv has stopped watching it */
    }
    if (!c->connected)
        on_connected(c);
    else if (events & UV_WRITABLE)
        send_some(c);
    if (k->call == c && c->connected && (k->broken || events & UV_READABLE))
        read_some(c);
    if (k->call == c && k->broken && !c->paused)
        watch(k, UV_READABLE); /* bytes that came before, of which there may be more */
}

/* --- what others call --- */

static void start(struct direct_call *c)
{
    struct conn *k = c->again ? NULL : take_idle(c->d, &c->to);
    c->connected = k != NULL;
    c->sent = 0;
    if (!k)
        k = dial(c->d, &c->to);
    if (!k) {
        end(c, XP_IO, strerror(errno), false);
        return;
    }
    c->conn = k;
    k->call = c;
    c->since = xp_now_ns();
    c->bytes = 0;
    if (c->connected)
        send_some(c);
    else
        watch(k, UV_WRITABLE);
}

/* Those that wait too long: for a connection, for bytes, or for all of it. */
static const char *is_late(struct direct_call *c, uint64_t now)
{
    if (c->total_ns && now - c->began > c->total_ns)
        return "no answer in time";
    if (!c->connected)
        return now - c->since > c->connect_ns ? "no connection in time" : NULL;
    if (c->paused || now - c->since < c->stall_ns)
        return NULL;
    if (c->bytes < SLOW_BYTES_S * (c->stall_ns / SECOND_NS))
        return "hardly a byte came for too long";
    c->since = now;
    c->bytes = 0;
    return NULL;
}

static void on_timer(uv_timer_t *timer)
{
    struct direct *d = timer->data;
    uint64_t now = xp_now_ns();
    struct direct_call *c = d->calls, *next;
    for (; c; c = next) {
        next = c->next;
        const char *late = is_late(c, now);
        if (late)
            end(c, XP_TIMEOUT, late, false);
    }
}

void direct_begin(struct direct *d, struct direct_call *c)
{
    c->d = d;
    c->prev = NULL;
    c->next = d->calls;
    if (d->calls)
        d->calls->prev = c;
    else
        uv_timer_start(d->timer, on_timer, LOOK_MS, LOOK_MS);
    d->calls = c;
    c->began = xp_now_ns();
    start(c);
}

void direct_pause(struct direct_call *c)
{
    c->paused = true;
}

void direct_resume(struct direct_call *c)
{
    struct xp_buf held = c->held;
    c->paused = false;
    xp_buf_init(&c->held, 2 * READ_BYTES);
    c->since = xp_now_ns();
    c->bytes = 0;
    bool goes_on = take(c, xp_buf_all(&held));
    xp_buf_fini(&held);
    if (goes_on && !c->paused)
        watch(c->conn, wanted(c));
}

struct direct *direct_open(uv_loop_t *loop)
{
    struct direct *d = calloc(1, sizeof *d);
    XP_ASSERT(d);
    d->loop = loop;
    d->timer = calloc(1, sizeof *d->timer);
    XP_ASSERT(d->timer && uv_timer_init(loop, d->timer) == 0);
    d->timer->data = d;
    return d;
}

static void free_timer(uv_handle_t *h)
{
    free(h);
}

void direct_close(struct direct *d)
{
    while (d->idle)
        drop(d->idle);
    uv_close((uv_handle_t *)d->timer, free_timer);
    free(d);
}
