/* Clients that send what they should not, and leave when they should not. An argument is another
 * seed. */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/http/http.h"
#include "tests/unit/h2_client.h"
#include "tests/unit/http_client.h"
#include "tests/unit/http_fixture.h"
#include "tests/unit/unit.h"

#define ROUNDS 200

static struct fixture f;
static uint32_t state_of_chance = 20261129;

static int setup(void **state)
{
    (void)state;
    fixture_start(&f, &(struct http_config){.body_max = 2000, .loops = 2});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_stop(&f);
    return 0;
}

static uint32_t chance(uint32_t below)
{
    state_of_chance = state_of_chance * 1664525 + 1013904223;
    return (state_of_chance >> 8) % below;
}

static const char *any_path(void)
{
    static const char *const paths[] = {"/hello",        "/size?n=300000", "/text?n=200000",
                                        "/gz?n=3000000", "/echo",          "/broken",
                                        "/tag",          "/a%2g",          "/.."};
    return paths[chance(sizeof paths / sizeof paths[0])];
}

static void http1_requests(struct xp_buf *b)
{
    for (uint32_t n = 1 + chance(5); n; n--) {
        xp_buf_fmt(b, "%s %s HTTP/1.%u\r\nHost: localhost\r\n", chance(4) ? "GET" : "HEAD",
                   any_path(), chance(8) ? 1 : 0);
        if (chance(2))
            xp_buf_str(b, "Accept-Encoding: gzip\r\n");
        if (!chance(4))
            xp_buf_fmt(b, "Content-Length: %u\r\n\r\n0123456789", chance(20));
        else if (!chance(6))
            xp_buf_str(b, "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n");
        else if (!chance(8))
            xp_buf_str(b, "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                          "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n");
        else
            xp_buf_str(b, "\r\n");
    }
}

/* The frames that the other helpers would send, taken from a socket pair. */
static void http2_requests(struct xp_buf *b)
{
    int fds[2];
    struct peer p = {0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    p.fd = fds[0];
    h2_start(&p, chance(3) ? 65535 : chance(1000), 65535 + chance(1 << 20));
    for (uint32_t i = 0, n = 1 + chance(20); i < n; i++) {
        uint32_t stream = 1 + 2 * i;
        h2_request_at(&p, stream, chance(4) ? "GET" : "HEAD", any_path(), "localhost",
                      chance(2) ? "gzip" : NULL, chance(6));
        if (!chance(3))
            h2_reset(&p, stream);
        if (!chance(4))
            h2_window(&p, chance(2) ? stream : 0, chance(1 << 16));
        if (!chance(6))
            h2_send(&p, H2_PRIORITY, 0, stream, (uint8_t[5]){0, 0, 0, (uint8_t)chance(8), 9}, 5);
        if (!chance(6))
            h2_send(&p, H2_DATA, (int)chance(2), stream, "some bytes of a body", 20);
        if (!chance(9))
            h2_send(&p, H2_PING, 0, 0, "12345678", 8);
    }
    uint8_t *to = xp_buf_room(b, 65536);
    ssize_t got = recv(fds[1], to, 65536, MSG_DONTWAIT);
    b->n += got > 0 ? (size_t)got : 0;
    close(fds[0]);
    close(fds[1]);
}

static void spoil(struct xp_buf *b)
{
    if (b->n && chance(2))
        for (uint32_t n = chance(4); n; n--)
            b->p[chance((uint32_t)b->n)] = (uint8_t)chance(256);
    if (b->n && !chance(4))
        b->n = chance((uint32_t)b->n);
}

static void one_client(void)
{
    struct linger reset = {.l_onoff = 1};
    struct xp_buf b;
    struct peer p;

    xp_buf_init(&b, 1 << 20);
    if (chance(2))
        http1_requests(&b);
    else
        http2_requests(&b);
    spoil(&b);
    peer_open(&p, f.port, chance(2) ? 0 : 4096);
    uint32_t cut = b.n ? chance((uint32_t)b.n) : 0;
    peer_send(&p, b.p, cut);
    if (!chance(3))
        usleep(chance(2000));
    peer_send(&p, b.p + cut, b.n - cut);
    for (uint32_t n = chance(4); n; n--) {
        char some[10000];
        struct pollfd ready = {.fd = p.fd, .events = POLLIN};
        if (poll(&ready, 1, 5) == 1 && recv(p.fd, some, sizeof some, 0) <= 0)
            break;
    }
    if (chance(2))
        setsockopt(p.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    peer_close(&p);
    xp_buf_fini(&b);
}

static void good_client_is_served_among_bad_ones(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        one_client();
        if (i % 50 == 0) {
            struct reply r;
            ask_path(f.port, "/hello", "", &r);
            assert_buf_is(&r.body, "hello\n");
            reply_fini(&r);
        }
    }
    fixture_wait_for(fixture_stats(&f).open_connections == 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_client_is_served_among_bad_ones),
    };
    if (argc > 1)
        state_of_chance = (uint32_t)atoi(argv[1]);
    return cmocka_run_group_tests(tests, setup, teardown);
}
