#include "lib/http/http.h"
#include "tests/unit/http_client.h"
#include "tests/unit/http_fixture.h"
#include "tests/unit/unit.h"

static struct fixture f;

static int setup(void **state)
{
    static const char *const hosts[] = {"profiles.example", "*.wild.example", NULL};
    (void)state;
    fixture_start(&f, &(struct http_config){.hosts = hosts, .body_max = 1000});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_stop(&f);
    return 0;
}

static int status_of_path(const char *path)
{
    struct reply r;
    ask_path(f.port, path, "", &r);
    int status = r.status;
    reply_fini(&r);
    return status;
}

static int status_of_host(const char *host)
{
    char request[512];
    struct reply r;
    snprintf(request, sizeof request, "GET /hello HTTP/1.1\r\nHost: %s\r\n\r\n", host);
    ask(f.port, request, &r);
    int status = r.status;
    reply_fini(&r);
    return status;
}

static void path_is_decoded_once_and_query_is_left_alone(void **state)
{
    struct reply r;
    (void)state;
    ask_path(f.port, "/a%2520b%2Fc%ff?x=%41&y", "", &r);
    assert_int_equal(r.status, 200);
    assert_buf_is(&r.body, "GET\n/a%20b/c\xff\nx=%41&y\n\nlocalhost");
    reply_fini(&r);
}

static void malformed_paths_are_refused(void **state)
{
    static const char *const bad[] = {"/a%",   "/a%4",    "/a%zz",    "/a%00b",
                                      "/..",   "/../etc", "/a/../b",  "/a/%2e%2e/b",
                                      "/a/..", "/a%2f..", "/%2e%2e?", "/.%2e/x"};
    struct reply r;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (status_of_path(bad[i]) != 400)
            fail_msg("%s was not refused", bad[i]);
    assert_int_equal(status_of_path("/a..b/..c/d../..."), 200);
    assert_int_equal(status_of_path("/a?b=../.."), 200);
    ask(f.port, "GET http://localhost/hello HTTP/1.1\r\nHost: localhost\r\n\r\n", &r);
    assert_int_equal(r.status, 400);
    assert_string_equal(reply_header(&r, "content-type"), "application/problem+json");
    reply_fini(&r);
}

static void host_must_be_one_of_ours(void **state)
{
    static const char *const good[] = {"localhost",  "LOCALHOST:99",     "a.localhost",
                                       "127.0.0.1",  "127.9.9.9:1",      "[::1]",
                                       "[::1]:80",   "profiles.example", "x.wild.example:443",
                                       "localhost.", "Profiles.Example"};
    static const char *const bad[] = {"evil.example", "127.0.0.1.evil.example", "evillocalhost",
                                      "8.8.8.8",      "[2001:db8::1]",          "[::1",
                                      "wild.example", "localhost:80:80",        "localhost:x",
                                      "127.1",        "localhost evil.example"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (status_of_host(good[i]) != 200)
            fail_msg("%s was refused", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (status_of_host(bad[i]) != 421)
            fail_msg("%s was not refused", bad[i]);
}

static void request_without_host_is_refused(void **state)
{
    struct reply r;
    (void)state;
    ask(f.port, "GET /hello HTTP/1.1\r\n\r\n", &r);
    assert_int_equal(r.status, 400);
    reply_fini(&r);
    ask(f.port, "GET /hello HTTP/1.1\r\nHost:\r\n\r\n", &r);
    assert_int_equal(r.status, 400);
    reply_fini(&r);
}

static void any_address_is_ours_when_all_were_bound(void **state)
{
    struct fixture all;
    char request[128];
    struct reply r;
    (void)state;
    fixture_start(&all, &(struct http_config){.host = "0.0.0.0"});
    snprintf(request, sizeof request, "GET /hello HTTP/1.1\r\nHost: 10.1.2.3\r\n\r\n");
    ask(all.port, request, &r);
    assert_int_equal(r.status, 200);
    reply_fini(&r);
    ask(all.port, "GET /hello HTTP/1.1\r\nHost: evil.example\r\n\r\n", &r);
    assert_int_equal(r.status, 421);
    reply_fini(&r);
    fixture_stop(&all);
}

static void star_accepts_any_host(void **state)
{
    static const char *const hosts[] = {"*", NULL};
    struct fixture any;
    struct reply r;
    (void)state;
    fixture_start(&any, &(struct http_config){.hosts = hosts});
    ask(any.port, "GET /hello HTTP/1.1\r\nHost: whatever.example\r\n\r\n", &r);
    assert_int_equal(r.status, 200);
    reply_fini(&r);
    fixture_stop(&any);
}

static void body_arrives_whole_and_too_large_a_body_is_refused(void **state)
{
    struct reply r;
    struct peer p;
    char head[128];
    static char body[600000];
    (void)state;

    ask(f.port, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabcde", &r);
    assert_buf_is(&r.body, "POST\n/echo\n\nabcde\nlocalhost");
    reply_fini(&r);

    /* More than the sockets hold: the client is still sending when it is refused. */
    memset(body, 'x', sizeof body);
    snprintf(head, sizeof head,
             "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n", sizeof body);
    peer_open(&p, f.port, 0);
    peer_say(&p, head);
    peer_send(&p, body, sizeof body);
    reply_read(&p, &r, false);
    assert_int_equal(r.status, 413);
    assert_string_equal(reply_header(&r, "content-type"), "application/problem+json");
    assert_string_equal(reply_header(&r, "x-content-type-options"), "nosniff");
    assert_non_null(memmem(r.body.p, r.body.n, "\"too_large\"", 11));
    reply_fini(&r);
    peer_close(&p);
}

static void query_value(const char *query, const char *name, const char *want)
{
    struct xp_buf b;
    xp_buf_init(&b, 100);
    bool found = http_query_get(xp_span_str(query), name, &b);
    if (!want) {
        assert_false(found);
    } else {
        assert_true(found);
        assert_buf_is(&b, want);
    }
    xp_buf_fini(&b);
}

static void query_gives_the_first_value_decoded(void **state)
{
    (void)state;
    query_value("a=1&b=2&a=3", "a", "1");
    query_value("a=1&b=2", "b", "2");
    query_value("a=1&b=2", "c", NULL);
    query_value("", "a", NULL);
    query_value("a", "a", "");
    query_value("a=", "a", "");
    query_value("&&a=x", "a", "x");
    query_value("ab=1&a=2", "a", "2");
    query_value("a=x%20y+z%2B", "a", "x y z+");
    query_value("a=100%&b=1", "a", "100%");
    query_value("a=%4", "a", "%4");
    query_value("a=%zz", "a", "%zz");
    query_value("a%5B%5D=1", "a[]", "1");
    query_value("a=b=c", "a", "b=c");
    query_value("=x", "", "x");
}

static void query_keeps_every_byte(void **state)
{
    struct xp_buf b;
    (void)state;
    xp_buf_init(&b, 100);
    assert_true(http_query_get(xp_span_str("k=a%00%ff"), "k", &b));
    assert_int_equal(b.n, 3);
    assert_memory_equal(b.p, "a\0\xff", 3);
    xp_buf_fini(&b);
}

static void cookies_come_one_by_one(void **state)
{
    static const char header[] = ";; a=1;b=x=y ; c;=d;  ; e=";
    static const char *const want[][2] = {
        {"a", "1"}, {"b", "x=y "}, {"c", ""}, {"", "d"}, {"e", ""}};
    struct xp_span rest = xp_span_str(header), name, value;
    size_t n = 0;
    (void)state;
    while (http_cookie_next(&rest, &name, &value)) {
        assert_true(n < 5);
        assert_true(xp_span_eq(name, xp_span_str(want[n][0])));
        assert_true(xp_span_eq(value, xp_span_str(want[n][1])));
        n++;
    }
    assert_int_equal(n, 5);
    rest = (struct xp_span){0};
    assert_false(http_cookie_next(&rest, &name, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_is_decoded_once_and_query_is_left_alone),
        cmocka_unit_test(malformed_paths_are_refused),
        cmocka_unit_test(host_must_be_one_of_ours),
        cmocka_unit_test(request_without_host_is_refused),
        cmocka_unit_test(any_address_is_ours_when_all_were_bound),
        cmocka_unit_test(star_accepts_any_host),
        cmocka_unit_test(body_arrives_whole_and_too_large_a_body_is_refused),
        cmocka_unit_test(query_gives_the_first_value_decoded),
        cmocka_unit_test(query_keeps_every_byte),
        cmocka_unit_test(cookies_come_one_by_one),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
