#include "tests/unit/http_client.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define WAIT_MS 20000

void peer_open(struct peer *p, int port, int rcvbuf)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int on = 1;

    *p = (struct peer){.fd = socket(AF_INET, SOCK_STREAM, 0)};
    xp_buf_init(&p->in, (size_t)1 << 30);
    assert_true(p->fd >= 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (rcvbuf)
        setsockopt(p->fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof rcvbuf);
    setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct timeval wait = {.tv_sec = WAIT_MS / 1000};
    setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(p->fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    assert_int_equal(connect(p->fd, (struct sockaddr *)&to, sizeof to), 0);
}

void peer_open_tls(struct peer *p, int port, SSL_CTX *ctx, const char *alpn)
{
    peer_open(p, port, 0);
    p->ssl = SSL_new(ctx);
    SSL_set_fd(p->ssl, p->fd);
    if (alpn[0])
        SSL_set_alpn_protos(p->ssl, (const unsigned char *)alpn, (unsigned)strlen(alpn));
    assert_int_equal(SSL_connect(p->ssl), 1);
}

void peer_close(struct peer *p)
{
    SSL_free(p->ssl);
    close(p->fd);
    xp_buf_fini(&p->in);
}

void peer_send(struct peer *p, const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    while (n) {
        ssize_t sent = p->ssl ? SSL_write(p->ssl, at, (int)n) : send(p->fd, at, n, MSG_NOSIGNAL);
        /* The other side may have cut the connection: what it answered tells. */
        if (sent <= 0)
            return;
        at += sent;
        n -= (size_t)sent;
    }
}

void peer_say(struct peer *p, const char *text)
{
    peer_send(p, text, strlen(text));
}

static ssize_t peer_read_some(struct peer *p)
{
    uint8_t *to = xp_buf_room(&p->in, 65536);
    ssize_t n = p->ssl ? SSL_read(p->ssl, to, 65536) : recv(p->fd, to, 65536, 0);
    if (n < 0 && !p->ssl && errno == EAGAIN)
        fail_msg("nothing came for %d ms", WAIT_MS);
    if (n > 0)
        p->in.n += (size_t)n;
    return n;
}

bool peer_want(struct peer *p, size_t n)
{
    while (p->in.n < n)
        if (peer_read_some(p) <= 0)
            return false;
    return true;
}

void peer_used(struct peer *p, size_t n)
{
    p->in.n -= n;
    if (n && p->in.n)
        memmove(p->in.p, p->in.p + n, p->in.n);
}

void peer_wait_closed(struct peer *p)
{
    while (peer_read_some(p) > 0)
        p->in.n = 0;
}

/* --- HTTP/1.1 --- */

static void read_head(struct peer *p, struct reply *r)
{
    for (size_t n = 0;; n = p->in.n + 1) {
        assert_true(peer_want(p, n ? n : 1));
        uint8_t *end = memmem(p->in.p, p->in.n, "\r\n\r\n", 4);
        if (!end)
            continue;
        size_t head = (size_t)(end - p->in.p) + 4;
        assert_true(head < sizeof r->head);
        memcpy(r->head, p->in.p, head);
        r->head[head] = '\0';
        peer_used(p, head);
        return;
    }
}

static void read_exactly(struct peer *p, struct reply *r, size_t n)
{
    assert_true(peer_want(p, n));
    xp_buf_add(&r->body, p->in.p, n);
    peer_used(p, n);
}

static void read_chunks(struct peer *p, struct reply *r)
{
    for (;;) {
        size_t want = 1;
        uint8_t *line;
        while (assert_true(peer_want(p, want)), !(line = memmem(p->in.p, p->in.n, "\r\n", 2)))
            want = p->in.n + 1;
        size_t n = strtoul((char *)p->in.p, NULL, 16);
        peer_used(p, (size_t)(line - p->in.p) + 2);
        read_exactly(p, r, n);
        assert_true(peer_want(p, 2));
        assert_memory_equal(p->in.p, "\r\n", 2);
        peer_used(p, 2);
        if (!n)
            return;
    }
}

void reply_read(struct peer *p, struct reply *r, bool to_head)
{
    xp_buf_init(&r->body, (size_t)1 << 30);
    read_head(p, r);
    assert_int_equal(sscanf(r->head, "HTTP/1.%*d %d", &r->status), 1);
    const char *length = reply_header(r, "content-length");
    const char *coding = reply_header(r, "transfer-encoding");
    if (to_head || r->status == 304 || r->status == 204)
        return;
    if (coding) {
        read_chunks(p, r);
    } else if (length) {
        read_exactly(p, r, strtoul(length, NULL, 10));
    } else {
        while (peer_want(p, p->in.n + 1)) {
        }
        read_exactly(p, r, p->in.n);
    }
}

void reply_fini(struct reply *r)
{
    xp_buf_fini(&r->body);
}

const char *reply_header(const struct reply *r, const char *name)
{
    static char values[8][1024];
    static int turn;
    size_t n = strlen(name);

    for (const char *line = strstr(r->head, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, n) != 0 || line[n] != ':')
            continue;
        char *value = values[turn++ % 8];
        const char *from = line + n + 1 + strspn(line + n + 1, " ");
        snprintf(value, sizeof values[0], "%.*s", (int)strcspn(from, "\r"), from);
        return value;
    }
    return NULL;
}

void ask(int port, const char *request, struct reply *r)
{
    struct peer p;
    peer_open(&p, port, 0);
    peer_say(&p, request);
    reply_read(&p, r, strncmp(request, "HEAD", 4) == 0);
    peer_close(&p);
}

void ask_path(int port, const char *path, const char *more_headers, struct reply *r)
{
    char request[4096];
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", path,
             more_headers);
    ask(port, request, r);
}
