/* HTTP/1.1: what is sent, and when a connection ends. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "lib/http/http.h"
#include "tests/unit/http_client.h"
#include "tests/unit/http_fixture.h"
#include "tests/unit/unit.h"

static struct fixture f;

static int setup(void **state)
{
    (void)state;
    fixture_start(&f, &(struct http_config){.slow_reader_s = 1, .loops = 2});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_stop(&f);
    return 0;
}

static void inflate_to(struct xp_buf *out, const struct xp_buf *in)
{
    z_stream z = {.next_in = in->p, .avail_in = (unsigned)in->n};
    assert_int_equal(inflateInit2(&z, 31), Z_OK);
    int rc = Z_OK;
    while (rc == Z_OK) {
        z.next_out = xp_buf_room(out, 65536);
        z.avail_out = 65536;
        rc = inflate(&z, Z_NO_FLUSH);
        out->n += 65536 - z.avail_out;
    }
    assert_int_equal(rc, Z_STREAM_END);
    inflateEnd(&z);
}

static void assert_is_text(const struct xp_buf *have, size_t n)
{
    struct xp_buf want;
    xp_buf_init(&want, n + 4096);
    fixture_text(&want, n);
    assert_int_equal(have->n, n);
    assert_memory_equal(have->p, want.p, n);
    xp_buf_fini(&want);
}

static void answer_carries_its_length_and_the_security_headers(void **state)
{
    struct reply r;
    (void)state;
    ask_path(f.port, "/hello", "", &r);
    assert_int_equal(r.status, 200);
    assert_buf_is(&r.body, "hello\n");
    assert_string_equal(reply_header(&r, "content-length"), "6");
    assert_string_equal(reply_header(&r, "x-content-type-options"), "nosniff");
    assert_string_equal(reply_header(&r, "referrer-policy"), "no-referrer");
    assert_string_equal(reply_header(&r, "cross-origin-resource-policy"), "same-origin");
    assert_string_equal(reply_header(&r, "cache-control"), "no-store");
    assert_string_equal(reply_header(&r, "server"), "xprofd");
    assert_string_equal(reply_header(&r, "x-note"), "a__b");
    reply_fini(&r);
}

static void error_is_a_problem_document(void **state)
{
    struct reply r;
    (void)state;
    ask_path(f.port, "/fail", "", &r);
    assert_int_equal(r.status, 503);
    assert_string_equal(reply_header(&r, "content-type"), "application/problem+json");
    assert_string_equal(reply_header(&r, "retry-after"), "7");
    assert_buf_is(&r.body,
                  "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,"
                  "\"code\":\"busy\",\"detail\":\"no room for \\\"it\\\"\",\"offset\":77}");
    reply_fini(&r);
}

static void end_stream(void *ex)
{
    http_stream_end(ex);
}

/* HEAD, with a GET right behind it on the same connection, which a body would shift. */
static void head_has_no_body_whatever_the_answer_is(void **state)
{
    static const char *const paths[] = {"/hello",       "/size?n=100000", "/text?n=100000",
                                        "/gz?n=100000", "/echo",          "/fail",
                                        "/broken",      "/stream"};
    static const char *const codings[] = {"", "Accept-Encoding: gzip\r\n"};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof paths / sizeof paths[0]; i++) {
        char request[512];
        struct reply r;
        struct peer p;
        int streams = f.ndeferred;
        snprintf(request, sizeof request,
                 "HEAD %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
                 "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 paths[i / 2], codings[i % 2]);
        peer_open(&p, f.port, 0);
        peer_say(&p, request);
        reply_read(&p, &r, true);
        assert_int_equal(r.status, strcmp(paths[i / 2], "/fail") == 0 ? 503 : 200);
        if (strcmp(paths[i / 2], "/size?n=100000") == 0)
            assert_string_equal(reply_header(&r, "content-length"), "100000");
        reply_fini(&r);
        reply_read(&p, &r, false);
        assert_buf_is(&r.body, "hello\n");
        reply_fini(&r);
        peer_close(&p);
        if (strcmp(paths[i / 2], "/stream") == 0) {
            struct http_exchange *ex = fixture_deferred(&f, streams);
            assert_true(http_cancelled(ex));
            http_on_loop(ex, end_stream, ex);
        }
    }
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct peer p;
    struct reply r;
    (void)state;
    peer_open(&p, f.port, 0);
    for (int i = 0; i < 50; i++) {
        char request[128];
        snprintf(request, sizeof request, "GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 i % 2 ? "size?n=70000" : "hello");
        peer_say(&p, request);
    }
    for (int i = 0; i < 50; i++) {
        reply_read(&p, &r, false);
        assert_int_equal(r.body.n, i % 2 ? 70000 : 6);
        reply_fini(&r);
    }
    peer_close(&p);
}

static void matching_etag_gives_304_without_a_body(void **state)
{
    static const char *const match[] = {"\"v1\"", "W/\"v1\"", "\"x\", \"v1\"", "*"};
    static const char *const other[] = {"\"v2\"", "v1", "\"v1", "\"\""};
    char header[128];
    struct reply r;
    (void)state;

    ask_path(f.port, "/tag", "", &r);
    assert_int_equal(r.status, 200);
    assert_string_equal(reply_header(&r, "etag"), "W/\"v1\"");
    assert_string_equal(reply_header(&r, "cache-control"), "no-cache");
    assert_string_equal(reply_header(&r, "vary"), "Accept-Encoding"); /* small as it is */
    reply_fini(&r);
    for (size_t i = 0; i < 4; i++) {
        snprintf(header, sizeof header, "If-None-Match: %s\r\n", match[i]);
        ask_path(f.port, "/tag", header, &r);
        assert_int_equal(r.status, 304);
        assert_string_equal(reply_header(&r, "etag"), "W/\"v1\"");
        assert_string_equal(reply_header(&r, "vary"), "Accept-Encoding");
        assert_null(reply_header(&r, "content-type"));
        reply_fini(&r);
        snprintf(header, sizeof header, "If-None-Match: %s\r\n", other[i]);
        ask_path(f.port, "/tag", header, &r);
        assert_int_equal(r.status, 200);
        assert_buf_is(&r.body, "tagged\n");
        reply_fini(&r);
    }
}

static void gzip_is_negotiated_and_the_text_is_the_same(void **state)
{
    static const struct {
        const char *header;
        bool gzip;
    } cases[] = {{"", false},
                 {"Accept-Encoding: gzip\r\n", true},
                 {"Accept-Encoding: deflate, GZIP;q=0.5, br\r\n", true},
                 {"Accept-Encoding: *\r\n", true},
                 {"Accept-Encoding: gzip;q=0\r\n", false},
                 {"Accept-Encoding: *, gzip; q=0.00\r\n", false},
                 {"Accept-Encoding: br\r\nAccept-Encoding: gzip\r\n", true},
                 {"Accept-Encoding: gzipped\r\n", false}};
    static const size_t sizes[] = {1025, 65535, 65536, 65537, 131072, 1000000};
    (void)state;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t j = 0; j < 2 * sizeof cases / sizeof cases[0]; j++) {
            char path[64];
            struct reply r;
            struct xp_buf text;
            bool gzip = cases[j / 2].gzip, packed = j % 2;
            snprintf(path, sizeof path, "/%s?n=%zu", packed ? "gz" : "text", sizes[i]);
            ask_path(f.port, path, cases[j / 2].header, &r);
            assert_int_equal(r.status, 200);
            assert_string_equal(reply_header(&r, "vary"), "Accept-Encoding");
            assert_string_equal(reply_header(&r, "etag"), "W/\"t1\"");
            xp_buf_init(&text, sizes[i] + 65536);
            if (gzip) {
                assert_string_equal(reply_header(&r, "content-encoding"), "gzip");
                assert_non_null(reply_header(&r, "content-length"));
                inflate_to(&text, &r.body);
            } else {
                assert_null(reply_header(&r, "content-encoding"));
                xp_buf_span(&text, xp_buf_all(&r.body));
            }
            assert_is_text(&text, sizes[i]);
            xp_buf_fini(&text);
            reply_fini(&r);
        }
}

static void small_and_dense_bodies_are_left_as_they_are(void **state)
{
    static const char *const paths[] = {"/hello", "/text?n=1024", "/size?n=100000"};
    struct reply r;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        ask_path(f.port, paths[i], "Accept-Encoding: gzip\r\n", &r);
        assert_null(reply_header(&r, "content-encoding"));
        assert_true((reply_header(&r, "vary") != NULL) == (i < 2)); /* larger ones would be coded */
        reply_fini(&r);
    }
}

static void gzip_that_is_none_is_an_error_not_a_broken_body(void **state)
{
    struct reply r;
    (void)state;
    ask_path(f.port, "/broken", "", &r);
    assert_int_equal(r.status, 500);
    assert_non_null(memmem(r.body.p, r.body.n, "\"internal\"", 10));
    reply_fini(&r);
}

static void http10_client_gets_a_body_it_can_frame(void **state)
{
    struct reply r;
    (void)state;
    ask(f.port, "GET /gz?n=200000 HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n",
        &r);
    assert_int_equal(r.status, 200);
    assert_null(reply_header(&r, "transfer-encoding"));
    assert_is_text(&r.body, 200000);
    reply_fini(&r);
}

static void deferred_answer_comes_from_any_thread(void **state)
{
    struct peer p;
    struct reply r;
    int i = f.ndeferred;
    (void)state;
    peer_open(&p, f.port, 0);
    peer_say(&p, "GET /defer HTTP/1.1\r\nHost: localhost\r\n\r\n");
    struct http_exchange *ex = fixture_deferred(&f, i);
    assert_false(http_cancelled(ex));
    fixture_answer(ex);
    reply_read(&p, &r, false);
    assert_buf_is(&r.body, "late\n");
    reply_fini(&r);
    peer_close(&p);
}

static void client_that_leaves_cancels_its_work(void **state)
{
    struct peer p;
    int i = f.ndeferred;
    (void)state;
    peer_open(&p, f.port, 0);
    peer_say(&p, "GET /defer HTTP/1.1\r\nHost: localhost\r\n\r\n");
    struct http_exchange *ex = fixture_deferred(&f, i);
    peer_close(&p);
    fixture_wait_for(http_cancelled(ex));
    fixture_answer(ex);
}

static void empty_body_is_an_answer_too(void **state)
{
    struct reply r;
    (void)state;
    ask_path(f.port, "/static?n=0", "Accept-Encoding: gzip\r\n", &r);
    assert_int_equal(r.status, 200);
    assert_string_equal(reply_header(&r, "content-length"), "0");
    reply_fini(&r);
    ask_path(f.port, "/text?n=0", "", &r);
    assert_int_equal(r.status, 200);
    assert_string_equal(reply_header(&r, "content-length"), "0");
    reply_fini(&r);
}

/* The server's side of the connection is in this process too. */
static int fd_of_peer(const struct peer *p)
{
    struct sockaddr_in client, other;
    socklen_t n = sizeof client;
    assert_int_equal(getsockname(p->fd, (struct sockaddr *)&client, &n), 0);
    for (int fd = 3; fd < 1024; fd++) {
        n = sizeof other;
        if (getpeername(fd, (struct sockaddr *)&other, &n) == 0 && other.sin_family == AF_INET &&
            other.sin_port == client.sin_port)
            return fd;
    }
    return -1;
}

static void accepted_connection_does_not_wait_for_full_segments(void **state)
{
    struct peer p;
    struct reply r;
    int on = 0;
    socklen_t n = sizeof on;
    (void)state;
    peer_open(&p, f.port, 0);
    peer_say(&p, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    reply_read(&p, &r, false);
    reply_fini(&r);
    assert_int_equal(getsockopt(fd_of_peer(&p), IPPROTO_TCP, TCP_NODELAY, &on, &n), 0);
    assert_int_equal(on, 1);
    peer_close(&p);
}

static size_t resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_int_equal(fscanf(file, "%*u %lu", &pages), 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void slow_readers_cost_little_and_are_closed(void **state)
{
    enum { N = 20 };
    struct peer p[N];
    uint64_t before = fixture_stats(&f).slow_closed;
    size_t resident = resident_bytes();
    (void)state;
    for (int i = 0; i < N; i++) {
        peer_open(&p[i], f.port, 4096);
        peer_say(&p[i], "GET /static?n=50000000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    fixture_wait_for(fixture_stats(&f).slow_closed == before + N);
    assert_true(resident_bytes() < resident + N * ((size_t)256 << 10) + ((size_t)8 << 20));
    for (int i = 0; i < N; i++) {
        peer_wait_closed(&p[i]);
        peer_close(&p[i]);
    }
}

static void reader_that_is_slow_but_reads_is_served(void **state)
{
    struct peer p;
    (void)state;
    peer_open(&p, f.port, 65536);
    peer_say(&p, "GET /static?n=8000000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    /* Twice the limit in all, and never long without a read. */
    for (int i = 0; i < 8; i++) {
        usleep(250000);
        assert_true(peer_want(&p, 300000));
        peer_used(&p, 300000);
    }
    assert_true(peer_want(&p, 8000000 - 8 * 300000));
    peer_close(&p);
}

static void port_that_is_taken_gives_a_sentence(void **state)
{
    struct http_config c = {.port = f.port, .loops = 2};
    struct http_server *s = NULL;
    struct xp_error err;
    char want[64];
    (void)state;
    assert_int_equal(http_server_start(&c, &s, &err), XP_IO);
    snprintf(want, sizeof want, "port %d on 127.0.0.1 is taken by another process", f.port);
    assert_non_null(strstr(err.text, want));
    c.port = 65536;
    assert_int_equal(http_server_start(&c, &s, &err), XP_IO);
    assert_non_null(strstr(err.text, "65536 is no port"));
    c = (struct http_config){.host = "203.0.113.77"};
    assert_int_equal(http_server_start(&c, &s, &err), XP_IO);
    assert_non_null(strstr(err.text, "no address 203.0.113.77"));
    c = (struct http_config){.host = "no-such-name.invalid"};
    assert_int_equal(http_server_start(&c, &s, &err), XP_IO);
    assert_non_null(strstr(err.text, "no-such-name.invalid"));
}

static void *stop_in_thread(void *own)
{
    fixture_stop(own);
    return NULL;
}

static void *answer_when_cancelled(void *ex)
{
    fixture_wait_for(http_cancelled(ex));
    fixture_answer(ex);
    return NULL;
}

static void drain_waits_for_the_answer_and_ends_idle_connections(void **state)
{
    struct fixture own;
    struct peer idle, busy, fresh;
    struct reply r;
    pthread_t draining;
    (void)state;

    fixture_start(&own, NULL);
    peer_open(&idle, own.port, 0);
    peer_say(&idle, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    reply_read(&idle, &r, false);
    reply_fini(&r);
    peer_open(&fresh, own.port, 0);
    peer_open(&busy, own.port, 0);
    peer_say(&busy, "GET /defer HTTP/1.1\r\nHost: localhost\r\n\r\n");
    struct http_exchange *ex = fixture_deferred(&own, 0);
    pthread_create(&draining, NULL, stop_in_thread, &own);
    peer_wait_closed(&idle);
    peer_wait_closed(&fresh);
    fixture_answer(ex);
    reply_read(&busy, &r, false);
    assert_buf_is(&r.body, "late\n");
    reply_fini(&r);
    peer_wait_closed(&busy);
    pthread_join(draining, NULL);
    peer_close(&idle);
    peer_close(&busy);
    peer_close(&fresh);
}

static void grace_that_is_over_cancels_and_cuts(void **state)
{
    struct fixture own;
    struct peer p;
    pthread_t answering;
    (void)state;

    fixture_start(&own, NULL);
    peer_open(&p, own.port, 0);
    peer_say(&p, "GET /defer HTTP/1.1\r\nHost: localhost\r\n\r\n");
    struct http_exchange *ex = fixture_deferred(&own, 0);
    pthread_create(&answering, NULL, answer_when_cancelled, ex);
    http_server_drain(own.server, 100);
    pthread_join(answering, NULL);
    xp_workers_free(own.workers);
    peer_wait_closed(&p);
    peer_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answer_carries_its_length_and_the_security_headers),
        cmocka_unit_test(error_is_a_problem_document),
        cmocka_unit_test(head_has_no_body_whatever_the_answer_is),
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(matching_etag_gives_304_without_a_body),
        cmocka_unit_test(gzip_is_negotiated_and_the_text_is_the_same),
        cmocka_unit_test(small_and_dense_bodies_are_left_as_they_are),
        cmocka_unit_test(gzip_that_is_none_is_an_error_not_a_broken_body),
        cmocka_unit_test(http10_client_gets_a_body_it_can_frame),
        cmocka_unit_test(empty_body_is_an_answer_too),
        cmocka_unit_test(deferred_answer_comes_from_any_thread),
        cmocka_unit_test(client_that_leaves_cancels_its_work),
        cmocka_unit_test(accepted_connection_does_not_wait_for_full_segments),
        cmocka_unit_test(slow_readers_cost_little_and_are_closed),
        cmocka_unit_test(reader_that_is_slow_but_reads_is_served),
        cmocka_unit_test(port_that_is_taken_gives_a_sentence),
        cmocka_unit_test(drain_waits_for_the_answer_and_ends_idle_connections),
        cmocka_unit_test(grace_that_is_over_cancels_and_cuts),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
