/* Answers that come over time. */
#include <unistd.h>

#include "lib/http/http.h"
#include "tests/unit/h2_client.h"
#include "tests/unit/http_client.h"
#include "tests/unit/http_fixture.h"
#include "tests/unit/unit.h"

static struct fixture f;

static int setup(void **state)
{
    (void)state;
    fixture_start(&f, &(struct http_config){.slow_reader_s = 1});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_stop(&f);
    return 0;
}

/* What a test wants done with a stream, on the loop. */
struct job {
    struct http_exchange *ex;
    struct xp_span bytes;
    bool end;
    enum xp_status status;
    atomic_bool done;
};

static void on_job(void *ctx)
{
    struct job *job = ctx;
    if (job->end)
        http_stream_end(job->ex);
    else
        job->status = http_stream_send(job->ex, job->bytes);
    atomic_store(&job->done, true);
}

static enum xp_status run(struct http_exchange *ex, struct xp_span bytes, bool end)
{
    struct job job = {.ex = ex, .bytes = bytes, .end = end};
    http_on_loop(ex, on_job, &job);
    fixture_wait_for(atomic_load(&job.done));
    return job.status;
}

static enum xp_status stream_say(struct http_exchange *ex, const char *text)
{
    return run(ex, xp_span_str(text), false);
}

static void stream_end(struct http_exchange *ex)
{
    run(ex, (struct xp_span){0}, true);
}

static struct http_exchange *open_stream(struct peer *p)
{
    int i = f.ndeferred;
    peer_open(p, f.port, 0);
    peer_say(p, "GET /stream HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n");
    return fixture_deferred(&f, i);
}

static void head_comes_at_once_and_each_event_as_it_is_sent(void **state)
{
    static const char *const pieces[] = {"3\r\n:\n\n\r\n", "9\r\ndata: 1\n\n\r\n",
                                         "9\r\ndata: 2\n\n\r\n", "0\r\n\r\n"};
    struct peer p;
    struct http_exchange *ex = open_stream(&p);
    uint8_t *end = NULL;
    (void)state;

    for (size_t n = 1; !end; n = p.in.n + 1) {
        assert_true(peer_want(&p, n));
        end = memmem(p.in.p, p.in.n, "\r\n\r\n", 4);
    }
    assert_non_null(memmem(p.in.p, p.in.n, "text/event-stream", 17));
    assert_null(memmem(p.in.p, p.in.n, "gzip", 4));
    peer_used(&p, (size_t)(end - p.in.p) + 4);
    for (int i = 0; i < 4; i++) {
        char event[32];
        size_t n = strlen(pieces[i]);
        snprintf(event, sizeof event, "data: %d\n\n", i);
        if (i == 3)
            stream_end(ex);
        else if (i > 0)
            assert_int_equal(stream_say(ex, event), XP_OK);
        assert_true(peer_want(&p, n));
        assert_memory_equal(p.in.p, pieces[i], n);
        peer_used(&p, n);
    }
    /* The connection is good for another request. */
    struct reply r;
    peer_say(&p, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    reply_read(&p, &r, false);
    assert_buf_is(&r.body, "hello\n");
    reply_fini(&r);
    peer_close(&p);
}

static void stream_works_over_http2(void **state)
{
    struct peer p;
    struct h2_reply r;
    int i = f.ndeferred;
    (void)state;
    peer_open(&p, f.port, 0);
    h2_start(&p, 1 << 20, 1 << 20);
    h2_request(&p, 1, "GET", "/stream");
    struct http_exchange *ex = fixture_deferred(&f, i);
    assert_int_equal(stream_say(ex, "data: x\n\n"), XP_OK);
    stream_end(ex);
    h2_read_reply(&p, 1, &r);
    assert_true(r.ended);
    assert_int_equal(r.n, 3 + 9);
    peer_close(&p);
}

static void stream_refuses_what_would_wait_too_long(void **state)
{
    static uint8_t bytes[100000];
    struct peer p;
    struct http_exchange *ex = open_stream(&p);
    enum xp_status status = XP_OK;
    size_t taken = 0;
    struct reply r;
    (void)state;

    /* Nobody reads: the sockets take some megabytes, then the queue fills. */
    while (status == XP_OK && taken < (size_t)64 << 20) {
        status = run(ex, xp_span_of(bytes, sizeof bytes), false);
        taken += status == XP_OK ? sizeof bytes : 0;
    }
    assert_int_equal(status, XP_BUSY);
    assert_int_equal(run(ex, xp_span_of(bytes, sizeof bytes), false), XP_BUSY);
    stream_end(ex);
    reply_read(&p, &r, false);
    assert_int_equal(r.body.n, taken + 3);
    reply_fini(&r);
    peer_close(&p);
}

static void stream_nobody_reads_is_closed(void **state)
{
    static uint8_t bytes[200000];
    struct peer p;
    struct http_exchange *ex = open_stream(&p);
    uint64_t before = fixture_stats(&f).slow_closed;
    (void)state;
    while (run(ex, xp_span_of(bytes, sizeof bytes), false) == XP_OK) {
    }
    fixture_wait_for(fixture_stats(&f).slow_closed == before + 1);
    fixture_wait_for(http_cancelled(ex));
    assert_int_equal(stream_say(ex, "x"), XP_CANCELLED);
    stream_end(ex);
    peer_close(&p);
}

static void idle_stream_is_left_alone(void **state)
{
    struct peer p;
    struct http_exchange *ex = open_stream(&p);
    uint64_t before = fixture_stats(&f).slow_closed;
    (void)state;
    usleep(1700000);
    assert_int_equal(fixture_stats(&f).slow_closed, before);
    assert_int_equal(stream_say(ex, "data: still here\n\n"), XP_OK);
    stream_end(ex);
    peer_close(&p);
}

static void client_that_leaves_is_noticed(void **state)
{
    struct peer p;
    struct http_exchange *ex = open_stream(&p);
    (void)state;
    peer_close(&p);
    fixture_wait_for(http_cancelled(ex));
    assert_int_equal(stream_say(ex, "data: x\n\n"), XP_CANCELLED);
    stream_end(ex);
}

static void *stop_in_thread(void *own)
{
    fixture_stop(own);
    return NULL;
}

static void drain_ends_a_stream_in_order(void **state)
{
    struct fixture own;
    struct peer p;
    struct reply r;
    pthread_t draining;
    (void)state;
    fixture_start(&own, NULL);
    peer_open(&p, own.port, 0);
    peer_say(&p, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    struct http_exchange *ex = fixture_deferred(&own, 0);
    assert_int_equal(stream_say(ex, "data: 1\n\n"), XP_OK);
    pthread_create(&draining, NULL, stop_in_thread, &own);
    reply_read(&p, &r, false);
    assert_buf_is(&r.body, ":\n\ndata: 1\n\n");
    reply_fini(&r);
    assert_true(http_cancelled(ex));
    assert_int_equal(stream_say(ex, "data: 2\n\n"), XP_CANCELLED);
    stream_end(ex);
    peer_wait_closed(&p);
    peer_close(&p);
    pthread_join(draining, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(head_comes_at_once_and_each_event_as_it_is_sent),
        cmocka_unit_test(stream_works_over_http2),
        cmocka_unit_test(stream_refuses_what_would_wait_too_long),
        cmocka_unit_test(stream_nobody_reads_is_closed),
        cmocka_unit_test(idle_stream_is_left_alone),
        cmocka_unit_test(client_that_leaves_is_noticed),
        cmocka_unit_test(drain_ends_a_stream_in_order),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
