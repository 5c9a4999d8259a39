/* loadtest/hammer.c - asks one server for windows of a profile, from many connections at once.
 *
 * One thread and epoll: it costs some 5 us a request, so that on two cores the server is what is
 * measured. Every request is for another window of [--lo, --hi), or, with --known N, for one of N.
 * In --path, {t0} and {t1} become picoseconds, {ms0} and {ms1} milliseconds with a fraction.
 * Prints one JSON object. HTTP/1.1 with keep-alive; it reconnects where the server closes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "loadtest/lib/xs.h"

#define HEAD_MAX 16384
#define READ_MAX 262144

enum state { IDLE, CONNECTING, SENDING, HEAD, BODY };

/* A chunked body: the size line, the bytes, the line end after them, what follows the last. */
enum chunk { CHUNK_SIZE, CHUNK_DATA, CHUNK_END, CHUNK_LAST };

struct conn {
    int fd;
    enum state state;
    char out[4096];
    size_t out_n, out_at;
    char head[HEAD_MAX];
    size_t head_n;
    uint64_t left; /* body bytes to come, or of the chunk */
    bool chunked, until_close, close, failed;
    enum chunk chunk;
    size_t line_n;  /* characters on the current chunk line */
    uint64_t size;  /* of the chunk, while its line is read */
    bool extension; /* after ';' on the size line */
    uint64_t began;
};

struct load {
    const char *path, *encoding;
    int port, clients, zoom_from, zoom_to;
    int64_t lo, hi;
    uint64_t count, known, seed;
    double seconds;

    struct conn *conns;
    int epoll;
    uint64_t started, ended, errors, bytes, end_at;
    uint32_t *lat_us;
    struct rng rng;
    uint8_t *buf;
};

/* --- requests --- */

static void window(struct load *l, int64_t *t0, int64_t *t1)
{
    struct rng fixed = rng_for(l->seed, 9, l->known ? rng_below(&l->rng, (uint32_t)l->known) : 0);
    struct rng *r = l->known ? &fixed : &l->rng;
    int zoom = l->zoom_from + (int)rng_below(r, (uint32_t)(l->zoom_to - l->zoom_from) + 1);
    double span = (double)(l->hi - l->lo);
    double width = span / (double)(UINT64_C(1) << zoom) * (0.8 + (double)rng_below(r, 200) / 1000);
    double room = span - width, at = (double)(rng_next(r) >> 11) / 9007199254740992.0;
    *t0 = l->lo + (int64_t)(room * at);
    *t1 = *t0 + (int64_t)width + 1;
}

static void put_path(struct load *l, struct xp_buf *b)
{
    int64_t t0, t1;
    window(l, &t0, &t1);
    for (const char *p = l->path; *p;) {
        if (strncmp(p, "{t0}", 4) == 0 || strncmp(p, "{t1}", 4) == 0) {
            xp_buf_fmt(b, "%lld", (long long)(p[2] == '0' ? t0 : t1));
            p += 4;
        } else if (strncmp(p, "{ms0}", 5) == 0 || strncmp(p, "{ms1}", 5) == 0) {
            xp_buf_fmt(b, "%.9f", (double)(p[3] == '0' ? t0 : t1) / 1e9);
            p += 5;
        } else {
            xp_buf_byte(b, (uint8_t)*p++);
        }
    }
}

static void make_request(struct load *l, struct conn *c)
{
    struct xp_buf b;
    xp_buf_init(&b, sizeof c->out);
    xp_buf_str(&b, "GET ");
    put_path(l, &b);
    xp_buf_fmt(&b, " HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept-Encoding: %s\r\n\r\n", l->port,
               l->encoding);
    if (b.failed) {
        fprintf(stderr, "hammer: the path is too long\n");
        exit(2);
    }
    memcpy(c->out, b.p, b.n);
    c->out_n = b.n;
    c->out_at = 0;
    xp_buf_fini(&b);
}

/* --- connections --- */

static void watch(struct load *l, struct conn *c, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = c};
    if (epoll_ctl(l->epoll, EPOLL_CTL_MOD, c->fd, &ev) != 0)
        epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &ev);
}

static bool dial(struct load *l, struct conn *c)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)l->port)};
    int on = 1;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return false;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(c->fd, (struct sockaddr *)&a, sizeof a) != 0 && errno != EINPROGRESS) {
        close(c->fd);
        c->fd = -1;
        return false;
    }
    return true;
}

static void hang_up(struct conn *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->state = IDLE;
}

static bool more_wanted(const struct load *l)
{
    return l->started < l->count && xp_now_ns() < l->end_at;
}

static void next_request(struct load *l, struct conn *c)
{
    c->state = IDLE;
    if (!more_wanted(l))
        return;
    make_request(l, c);
    c->head_n = 0;
    c->failed = false;
    c->began = xp_now_ns();
    l->started++;
    if (c->fd < 0 && !dial(l, c)) {
        l->errors++;
        return;
    }
    c->state = SENDING;
    watch(l, c, EPOLLOUT | EPOLLIN);
}

static void finish(struct load *l, struct conn *c, bool ok)
{
    if (!ok || c->failed)
        l->errors++;
    else
        l->lat_us[l->ended++] = (uint32_t)((xp_now_ns() - c->began) / 1000);
    if (!ok || c->close)
        hang_up(c);
    next_request(l, c);
}

/* --- answers --- */

static const char *header(const char *head, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = strstr(head, "\r\n"); p; p = strstr(p + 2, "\r\n")) {
        if (strncasecmp(p + 2, name, n) == 0 && p[2 + n] == ':') {
            p += 3 + n;
            while (*p == ' ')
                p++;
            return p;
        }
    }
    return NULL;
}

static void read_head(struct conn *c)
{
    const char *length = header(c->head, "content-length");
    const char *coding = header(c->head, "transfer-encoding");
    const char *keep = header(c->head, "connection");
    c->failed = c->head_n < 12 || strncmp(c->head + 9, "200", 3) != 0;
    c->chunked = coding && strncasecmp(coding, "chunked", 7) == 0;
    c->until_close = !c->chunked && !length;
    c->left = length ? strtoull(length, NULL, 10) : 0;
    c->close = c->until_close || (keep && strncasecmp(keep, "close", 5) == 0) ||
               strncmp(c->head, "HTTP/1.0", 8) == 0;
    c->chunk = CHUNK_SIZE;
    c->size = c->line_n = 0;
    c->extension = false;
    c->state = BODY;
}

/* One character of a chunk's size line or of what stands around the data. */
static void chunk_char(struct conn *c, char ch)
{
    if (c->chunk == CHUNK_SIZE) {
        if (ch == '\n') {
            c->chunk = c->size ? CHUNK_DATA : CHUNK_LAST;
            c->left = c->size;
            c->size = c->line_n = 0;
            c->extension = false;
        } else if (ch == ';') {
            c->extension = true;
        } else if (ch != '\r' && !c->extension) {
            char digit[2] = {ch, 0};
            c->size = c->size << 4 | strtoul(digit, NULL, 16);
        }
    } else if (c->chunk == CHUNK_END) {
        if (ch == '\n')
            c->chunk = CHUNK_SIZE;
    } else if (ch == '\n') {
        c->line_n = c->line_n ? 0 : SIZE_MAX; /* an empty line ends the body */
    } else if (ch != '\r') {
        c->line_n++;
    }
}

/* True when the body is whole. */
static bool read_chunked(struct conn *c, const uint8_t *p, size_t n)
{
    while (n) {
        if (c->chunk == CHUNK_DATA) {
            size_t k = n < c->left ? n : (size_t)c->left;
            p += k;
            n -= k;
            c->left -= k;
            if (!c->left)
                c->chunk = CHUNK_END;
        } else {
            chunk_char(c, (char)*p++);
            n--;
            if (c->chunk == CHUNK_LAST && c->line_n == SIZE_MAX)
                return true;
        }
    }
    return false;
}

static bool read_body(struct conn *c, const uint8_t *p, size_t n)
{
    if (c->chunked)
        return read_chunked(c, p, n);
    if (c->until_close)
        return false;
    c->left -= n < c->left ? n : c->left;
    return c->left == 0;
}

/* True when the answer is whole. */
static bool take_bytes(struct load *l, struct conn *c, const uint8_t *p, size_t n)
{
    l->bytes += n;
    if (c->state == BODY)
        return read_body(c, p, n);
    size_t old = c->head_n, k = n < HEAD_MAX - 1 - old ? n : HEAD_MAX - 1 - old;
    memcpy(c->head + old, p, k);
    c->head_n += k;
    c->head[c->head_n] = 0;
    char *end = strstr(c->head, "\r\n\r\n");
    if (!end)
        return false;
    size_t head_n = (size_t)(end - c->head) + 4;
    end[2] = 0;
    read_head(c);
    if (!c->chunked && !c->until_close && c->left == 0)
        return true;
    return read_body(c, p + (head_n - old), n - (head_n - old));
}

static void on_readable(struct load *l, struct conn *c)
{
    for (int i = 0; i < 16; i++) {
        ssize_t n = read(c->fd, l->buf, READ_MAX);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            bool whole = n == 0 && c->state == BODY && c->until_close;
            hang_up(c);
            finish(l, c, whole);
            return;
        }
        if (take_bytes(l, c, l->buf, (size_t)n)) {
            finish(l, c, true);
            return;
        }
    }
}

static void on_writable(struct load *l, struct conn *c)
{
    ssize_t n = write(c->fd, c->out + c->out_at, c->out_n - c->out_at);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        hang_up(c);
        finish(l, c, false);
        return;
    }
    c->out_at += (size_t)n;
    if (c->out_at == c->out_n) {
        c->state = HEAD;
        watch(l, c, EPOLLIN);
    }
}

static bool any_busy(const struct load *l)
{
    for (int i = 0; i < l->clients; i++) {
        if (l->conns[i].state != IDLE)
            return true;
    }
    return false;
}

static void run(struct load *l)
{
    /* An answer that takes a minute longer than the test counts as an error. */
    uint64_t give_up = l->end_at + UINT64_C(60000000000);
    for (int i = 0; i < l->clients; i++)
        next_request(l, &l->conns[i]);
    while (any_busy(l) && xp_now_ns() < give_up) {
        struct epoll_event ev[64];
        int n = epoll_wait(l->epoll, ev, 64, 1000);
        for (int i = 0; i < n; i++) {
            struct conn *c = ev[i].data.ptr;
            if (c->fd >= 0 && c->state == SENDING && ev[i].events & EPOLLOUT)
                on_writable(l, c);
            else if (c->fd >= 0 && ev[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                on_readable(l, c);
        }
    }
}

static int by_time(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void report(struct load *l, uint64_t began)
{
    double s = (double)(xp_now_ns() - began) / 1e9;
    uint64_t n = l->ended;
    qsort(l->lat_us, n, sizeof l->lat_us[0], by_time);
    printf("{\"requests\":%llu,\"errors\":%llu,\"seconds\":%.3f,\"per_second\":%.1f,"
           "\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,\"bytes\":%llu}\n",
           (unsigned long long)n, (unsigned long long)l->errors, s, (double)n / s,
           n ? l->lat_us[n / 2] / 1e3 : 0, n ? l->lat_us[n - 1 - n / 100] / 1e3 : 0,
           n ? l->lat_us[n - 1] / 1e3 : 0, (unsigned long long)l->bytes);
}

static const struct option options[] = {
    {"port", required_argument, NULL, 'p'},     {"path", required_argument, NULL, 'u'},
    {"lo", required_argument, NULL, 'l'},       {"hi", required_argument, NULL, 'h'},
    {"clients", required_argument, NULL, 'c'},  {"seconds", required_argument, NULL, 's'},
    {"count", required_argument, NULL, 'n'},    {"known", required_argument, NULL, 'k'},
    {"seed", required_argument, NULL, 'r'},     {"zoom", required_argument, NULL, 'z'},
    {"encoding", required_argument, NULL, 'e'}, {NULL, 0, NULL, 0}};

static int64_t number(const char *text, bool *ok)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    *ok = *ok && end != text && !*end && !errno;
    return v;
}

static bool take(struct load *l, int c, const char *arg)
{
    bool ok = true;
    if (c == 'p')
        l->port = (int)number(arg, &ok);
    else if (c == 'u')
        l->path = arg;
    else if (c == 'l')
        l->lo = number(arg, &ok);
    else if (c == 'h')
        l->hi = number(arg, &ok);
    else if (c == 'c')
        l->clients = (int)number(arg, &ok);
    else if (c == 's')
        l->seconds = strtod(arg, NULL);
    else if (c == 'n')
        l->count = (uint64_t)number(arg, &ok);
    else if (c == 'k')
        l->known = (uint64_t)number(arg, &ok);
    else if (c == 'r')
        l->seed = (uint64_t)number(arg, &ok);
    else if (c == 'e')
        l->encoding = arg;
    else
        ok = c == 'z' && sscanf(arg, "%d-%d", &l->zoom_from, &l->zoom_to) == 2;
    return ok;
}

static bool sane(const struct load *l)
{
    return l->path && l->port > 0 && l->port < 65536 && l->clients > 0 && l->clients <= 1024 &&
           l->hi > l->lo && l->zoom_from >= 0 && l->zoom_to >= l->zoom_from && l->zoom_to < 40 &&
           l->seconds > 0 && l->seconds <= 600 && l->count > 0 && l->count <= 50000000;
}

int main(int argc, char **argv)
{
    struct load l = {.clients = 1,
                     .seconds = 5,
                     .count = 2000000,
                     .zoom_from = 4,
                     .zoom_to = 7,
                     .seed = 1,
                     .encoding = "gzip"};
    int c;
    bool ok = true;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
        ok = take(&l, c, optarg) && ok;
    if (!ok || !sane(&l)) {
        fprintf(stderr, "usage: hammer --port P --path '/x?a={t0}&b={t1}' --lo PS --hi PS\n"
                        "  [--clients N] [--seconds S] [--count N] [--known N] [--zoom 4-7]\n"
                        "  [--seed N] [--encoding gzip]\n");
        return 2;
    }
    l.conns = calloc((size_t)l.clients, sizeof *l.conns);
    l.lat_us = malloc(l.count * sizeof *l.lat_us);
    l.buf = malloc(READ_MAX);
    l.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!l.conns || !l.lat_us || !l.buf || l.epoll < 0) {
        perror("hammer");
        return 1;
    }
    for (int i = 0; i < l.clients; i++)
        l.conns[i].fd = -1;
    l.rng = rng_for(l.seed, 8, 0);
    uint64_t began = xp_now_ns();
    l.end_at = began + (uint64_t)(l.seconds * 1e9);
    run(&l);
    report(&l, began);
    for (int i = 0; i < l.clients; i++)
        hang_up(&l.conns[i]);
    close(l.epoll);
    free(l.conns);
    free(l.lat_us);
    free(l.buf);
    return l.ended ? 0 : 1;
}
