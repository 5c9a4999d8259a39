/* HTTP/2: abort, attack, slow readers, the end. */
#include <unistd.h>

#include "lib/base/hash.h"
#include "lib/http/http.h"
#include "tests/unit/h2_client.h"
#include "tests/unit/http_client.h"
#include "tests/unit/http_fixture.h"
#include "tests/unit/unit.h"

static struct fixture f;

static int setup(void **state)
{
    (void)state;
    fixture_start(&f, &(struct http_config){.slow_reader_s = 1, .body_max = 1000});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_stop(&f);
    return 0;
}

static void open_h2(struct peer *p)
{
    peer_open(p, f.port, 0);
    h2_start(p, 1 << 20, 1 << 24);
}

static uint64_t pattern_sum(size_t n)
{
    uint8_t *p = malloc(n);
    fixture_pattern(p, n);
    uint64_t sum = xp_fnv(XP_FNV_INIT, xp_span_of(p, n));
    free(p);
    return sum;
}

static void head_has_no_body_and_the_connection_goes_on(void **state)
{
    static const char *const paths[] = {"/hello", "/size?n=100000", "/text?n=100000",
                                        "/gz?n=100000", "/echo"};
    struct peer p;
    struct h2_reply r;
    uint32_t stream = 1;
    (void)state;
    open_h2(&p);
    for (size_t i = 0; i < 2 * sizeof paths / sizeof paths[0]; i++, stream += 4) {
        h2_request_at(&p, stream, "HEAD", paths[i / 2], "localhost", i % 2 ? "gzip" : NULL, true);
        h2_request(&p, stream + 2, "GET", "/hello");
        h2_read_reply(&p, stream, &r);
        assert_true(r.ended && !r.reset && r.n == 0);
        h2_read_reply(&p, stream + 2, &r);
        assert_true(r.ended && !r.reset && r.n == 6);
    }
    peer_close(&p);
}

static void large_body_arrives_whole(void **state)
{
    struct peer p;
    struct h2_reply r;
    (void)state;
    open_h2(&p);
    h2_request(&p, 1, "GET", "/size?n=5000000");
    h2_read_reply(&p, 1, &r);
    assert_int_equal(r.status, 200);
    assert_true(r.ended);
    assert_int_equal(r.n, 5000000);
    assert_true(r.sum == pattern_sum(5000000));
    peer_close(&p);
}

static void answers_out_of_order_find_their_streams(void **state)
{
    enum { N = 20 };
    struct peer p;
    int first = f.ndeferred;
    (void)state;
    open_h2(&p);
    for (uint32_t i = 0; i < N; i++)
        h2_request(&p, 1 + 2 * i, "GET", "/defer");
    fixture_deferred(&f, first + N - 1);
    for (int i = N - 1; i >= 0; i--) {
        struct h2_reply r;
        fixture_answer(fixture_deferred(&f, first + i));
        h2_read_reply(&p, 1 + 2 * (uint32_t)i, &r);
        assert_true(r.ended && r.n == 5);
    }
    peer_close(&p);
}

static void reset_while_deferred_cancels_and_the_late_answer_is_dropped(void **state)
{
    struct peer p;
    struct h2_reply r;
    uint64_t aborted = fixture_stats(&f).aborted;
    int first = f.ndeferred;
    (void)state;
    open_h2(&p);
    h2_request(&p, 1, "GET", "/defer");
    struct http_exchange *ex = fixture_deferred(&f, first);
    h2_reset(&p, 1);
    fixture_wait_for(http_cancelled(ex));
    assert_int_equal(http_request(ex)->path.n, 6);
    fixture_answer(ex);
    h2_request(&p, 3, "GET", "/hello");
    h2_read_reply(&p, 3, &r);
    assert_true(r.ended && r.n == 6);
    assert_int_equal(fixture_stats(&f).aborted, aborted + 1);
    peer_close(&p);
}

static void lost_connection_cancels_every_deferred_request(void **state)
{
    struct peer p;
    int first = f.ndeferred;
    (void)state;
    open_h2(&p);
    for (uint32_t i = 0; i < 3; i++)
        h2_request(&p, 1 + 2 * i, "GET", "/defer");
    fixture_deferred(&f, first + 2);
    peer_close(&p);
    for (int i = 0; i < 3; i++) {
        fixture_wait_for(http_cancelled(fixture_deferred(&f, first + i)));
        fixture_answer(fixture_deferred(&f, first + i));
    }
}

static void reset_in_the_middle_of_a_body_leaves_the_connection_usable(void **state)
{
    struct peer p;
    struct h2_frame frame;
    struct h2_reply r;
    (void)state;
    open_h2(&p);
    h2_request(&p, 1, "GET", "/size?n=10000000");
    h2_request_at(&p, 3, "GET", "/gz?n=10000000", "localhost", NULL, true);
    for (int i = 0; i < 20; i++) {
        assert_true(h2_read(&p, &frame));
        if (frame.type == H2_DATA && frame.n)
            h2_window(&p, 0, (uint32_t)frame.n);
    }
    h2_reset(&p, 1);
    h2_reset(&p, 3);
    h2_request(&p, 5, "GET", "/hello");
    h2_read_reply(&p, 5, &r);
    assert_true(r.ended && r.n == 6);
    peer_close(&p);
}

static void rapid_reset_ends_the_connection_and_nobody_else(void **state)
{
    static const char *const paths[] = {"/size?n=1000", "/hello", "/gz?n=100000"};
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        struct http_stats before = fixture_stats(&f);
        struct peer attacker, other;
        struct h2_reply r;
        open_h2(&attacker);
        open_h2(&other);
        for (uint32_t i = 0; i < 2000; i++) {
            h2_request(&attacker, 1 + 2 * i, "GET", paths[k]);
            h2_reset(&attacker, 1 + 2 * i);
        }
        peer_wait_closed(&attacker);
        struct http_stats after = fixture_stats(&f);
        assert_int_equal(after.condemned, before.condemned + 1);
        h2_request(&other, 1, "GET", "/hello");
        h2_read_reply(&other, 1, &r);
        assert_true(r.ended && r.n == 6);
        peer_close(&attacker);
        peer_close(&other);
    }
}

static void some_cancelled_requests_are_forgiven(void **state)
{
    struct peer p;
    struct h2_reply r;
    uint64_t condemned = fixture_stats(&f).condemned;
    (void)state;
    open_h2(&p);
    for (uint32_t i = 0; i < 200; i++) {
        h2_request(&p, 1 + 2 * i, "GET", "/size?n=1000");
        h2_reset(&p, 1 + 2 * i);
    }
    h2_request(&p, 1001, "GET", "/hello");
    h2_read_reply(&p, 1001, &r);
    assert_true(r.ended && r.n == 6);
    assert_int_equal(fixture_stats(&f).condemned, condemned);
    peer_close(&p);
}

static void reader_that_opens_no_window_is_closed(void **state)
{
    struct peer whole, none;
    uint64_t before = fixture_stats(&f).slow_closed;
    (void)state;
    peer_open(&whole, f.port, 0);
    h2_start(&whole, 65535, 65535);
    h2_request(&whole, 1, "GET", "/static?n=50000000");
    peer_open(&none, f.port, 0);
    h2_start(&none, 0, 65535);
    h2_request(&none, 1, "GET", "/hello");
    fixture_wait_for(fixture_stats(&f).slow_closed == before + 2);
    peer_wait_closed(&whole);
    peer_wait_closed(&none);
    peer_close(&whole);
    peer_close(&none);
}

static void too_large_a_body_is_refused(void **state)
{
    struct peer p;
    struct h2_reply r;
    uint8_t body[1001] = {0};
    (void)state;
    open_h2(&p);
    h2_request_at(&p, 1, "POST", "/echo", "localhost", NULL, false);
    h2_send(&p, H2_DATA, H2_END_STREAM, 1, body, sizeof body);
    h2_read_reply(&p, 1, &r);
    assert_true(r.reset);
    h2_request_at(&p, 3, "POST", "/echo", "localhost", NULL, false);
    h2_send(&p, H2_DATA, H2_END_STREAM, 3, body, 1000);
    h2_read_reply(&p, 3, &r);
    assert_true(r.ended && r.status == 200);
    peer_close(&p);
}

static void host_is_checked_here_too(void **state)
{
    struct peer p;
    struct h2_reply r;
    (void)state;
    open_h2(&p);
    h2_request_at(&p, 1, "GET", "/hello", "evil.example", NULL, true);
    h2_read_reply(&p, 1, &r);
    assert_int_equal(r.status, 421);
    h2_request_at(&p, 3, "GET", "/hello", NULL, NULL, true);
    h2_read_reply(&p, 3, &r);
    assert_int_equal(r.status, 400);
    h2_request(&p, 5, "GET", "hello");
    h2_read_reply(&p, 5, &r);
    assert_int_equal(r.status, 400);
    peer_close(&p);
}

/* --- the end --- */

struct draining {
    struct fixture f;
    pthread_t thread;
};

static void *drain(void *arg)
{
    fixture_stop(arg);
    return NULL;
}

static void begin_drain(struct draining *d)
{
    pthread_create(&d->thread, NULL, drain, &d->f);
}

/* Some 40 MB/s, with windows and a socket buffer so small that the answer is under way in every
 * buffer there is for most of the drain. */
static void answer_is_read_whole_by_a_slow_client_while_the_server_drains(void **state)
{
    static struct draining d;
    struct peer p;
    struct h2_frame frame;
    size_t n = 0, pause_at = 0;
    uint64_t sum = XP_FNV_INIT;
    bool ended = false, told = false;
    (void)state;

    fixture_start(&d.f, NULL);
    peer_open(&p, d.f.port, 65536);
    h2_start(&p, 1 << 20, 1 << 20);
    h2_request(&p, 1, "GET", "/static?n=50000000");
    while (!ended && h2_read(&p, &frame)) {
        if (frame.type == H2_GOAWAY)
            told = true;
        if (frame.type != H2_DATA)
            continue;
        n += frame.n;
        sum = xp_fnv(sum, xp_span_of(frame.payload, frame.n));
        ended = frame.flags & H2_END_STREAM;
        h2_window(&p, 0, (uint32_t)frame.n);
        h2_window(&p, 1, (uint32_t)frame.n);
        if (n > pause_at) {
            if (pause_at == 0)
                begin_drain(&d);
            pause_at = n + (1 << 20);
            usleep(25000);
        }
    }
    assert_true(ended && told);
    assert_int_equal(n, 50000000);
    assert_true(sum == pattern_sum(50000000));
    peer_close(&p);
    pthread_join(d.thread, NULL);
}

/* All is in the sockets' buffers when the server would like to go. */
static void tail_in_the_buffers_survives_the_drain(void **state)
{
    static struct draining d;
    struct peer p;
    struct h2_reply r;
    (void)state;

    fixture_start(&d.f, NULL);
    peer_open(&p, d.f.port, 0);
    h2_start(&p, 1 << 24, 1 << 24);
    h2_request(&p, 1, "GET", "/static?n=3000000");
    fixture_wait_for(fixture_stats(&d.f).requests == 1);
    begin_drain(&d);
    usleep(600000);
    h2_read_reply(&p, 1, &r);
    assert_true(r.ended);
    assert_int_equal(r.n, 3000000);
    assert_true(r.sum == pattern_sum(3000000));
    peer_close(&p);
    pthread_join(d.thread, NULL);
}

static void deferred_answer_and_a_new_request_arrive_while_draining(void **state)
{
    static struct draining d;
    struct peer p;
    struct h2_reply r;
    struct h2_frame frame;
    (void)state;

    fixture_start(&d.f, NULL);
    peer_open(&p, d.f.port, 0);
    h2_start(&p, 1 << 20, 1 << 20);
    h2_request(&p, 1, "GET", "/defer");
    struct http_exchange *ex = fixture_deferred(&d.f, 0);
    begin_drain(&d);
    do {
        assert_true(h2_read(&p, &frame));
    } while (frame.type != H2_GOAWAY);
    /* It was under way when the GOAWAY came. */
    h2_request(&p, 3, "GET", "/hello");
    h2_read_reply(&p, 3, &r);
    assert_true(r.ended && r.n == 6);
    fixture_answer(ex);
    h2_read_reply(&p, 1, &r);
    assert_true(r.ended && r.n == 5);
    peer_wait_closed(&p);
    peer_close(&p);
    pthread_join(d.thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(head_has_no_body_and_the_connection_goes_on),
        cmocka_unit_test(large_body_arrives_whole),
        cmocka_unit_test(answers_out_of_order_find_their_streams),
        cmocka_unit_test(reset_while_deferred_cancels_and_the_late_answer_is_dropped),
        cmocka_unit_test(lost_connection_cancels_every_deferred_request),
        cmocka_unit_test(reset_in_the_middle_of_a_body_leaves_the_connection_usable),
        cmocka_unit_test(rapid_reset_ends_the_connection_and_nobody_else),
        cmocka_unit_test(some_cancelled_requests_are_forgiven),
        cmocka_unit_test(reader_that_opens_no_window_is_closed),
        cmocka_unit_test(too_large_a_body_is_refused),
        cmocka_unit_test(host_is_checked_here_too),
        cmocka_unit_test(answer_is_read_whole_by_a_slow_client_while_the_server_drains),
        cmocka_unit_test(tail_in_the_buffers_survives_the_drain),
        cmocka_unit_test(deferred_answer_and_a_new_request_arrive_while_draining),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
