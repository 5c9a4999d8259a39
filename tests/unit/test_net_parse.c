#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/net/parse.h"

/* What came of bytes that arrive n at a time. */
struct came {
    struct net_parse p;
    struct xp_buf body;
    enum parse_says says;
    size_t left; /* bytes after the answer */
};

static void feed(struct came *c, const char *text, size_t n)
{
    struct xp_span all = xp_span_str(text);
    memset(c, 0, sizeof *c);
    net_parse_init(&c->p);
    xp_buf_init(&c->body, 1 << 20);
    c->says = PARSE_MORE;
    while (all.n && c->says == PARSE_MORE) {
        struct xp_span some = xp_span_of(all.p, n < all.n ? n : all.n);
        size_t had = some.n;
        while ((c->says = net_parse_step(&c->p, &some)) == PARSE_BODY) {
            size_t half = (c->p.piece + 1) / 2; /* not all of it is taken at once */
            xp_buf_add(&c->body, some.p, half);
            net_parse_took(&c->p, &some, half);
        }
        all.p += had - some.n;
        all.n -= had - some.n;
    }
    c->left = all.n;
}

static void fini(struct came *c)
{
    net_parse_fini(&c->p);
    xp_buf_fini(&c->body);
}

static void expect(const char *text, int code, const char *body, bool keep)
{
    for (size_t n = 1; n <= strlen(text) + 1; n++) {
        struct came c;
        feed(&c, text, n);
        assert_int_equal(c.says, PARSE_DONE);
        assert_int_equal(c.p.code, code);
        assert_int_equal(c.left, 0);
        assert_int_equal(c.p.keep, keep);
        assert_int_equal(c.body.n, strlen(body));
        assert_memory_equal(c.body.n ? c.body.p : (const uint8_t *)"", body, c.body.n);
        fini(&c);
    }
}

static void an_answer_is_the_same_however_its_bytes_are_cut(void **state)
{
    (void)state;
    expect("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", true);
    expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nConnection: close\r\n\r\n", 200, "", false);
    expect("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x, Close\r\n\r\n", 200, "", false);
    expect("HTTP/1.1 200 OK\r\nConnection: x\r\nConnection: close ,y\r\nContent-Length: 0\r\n\r\n",
           200, "", false);
    expect("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive, closed\r\n\r\n", 200,
           "", true);
    expect("HTTP/1.1 204 No Content\r\n\r\n", 204, "", true);
    expect("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", 304, "", true);
    expect(
        "HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=1\r\n0123456789\r\n"
        "0\r\nTrailer: 1\r\n\r\n",
        503, "abc0123456789", true);
    expect("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, "x",
           true);
    expect("HTTP/1.1 103 Early Hints\r\nContent-Length: 7\r\nConnection: close\r\n\r\n"
           "HTTP/1.1 100 Continue\r\n\r\n"
           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
           200, "x", true);
}

static void fields_are_found_in_either_case_and_without_the_space_around(void **state)
{
    struct came c;
    (void)state;
    feed(&c, "HTTP/1.1 200 OK\r\nX-Name:\t some text \r\nEmpty:\r\nContent-Length: 0\r\n\r\n", 7);
    assert_string_equal(net_parse_field(&c.p, "x-name"), "some text");
    assert_string_equal(net_parse_field(&c.p, "empty"), "");
    assert_null(net_parse_field(&c.p, "name"));
    fini(&c);
}

static void without_a_length_the_body_ends_with_the_connection(void **state)
{
    struct came c;
    (void)state;
    feed(&c, "HTTP/1.1 200 OK\r\n\r\nall of it", 4);
    assert_int_equal(c.says, PARSE_MORE);
    assert_true(net_parse_end(&c.p));
    assert_false(c.p.keep);
    assert_memory_equal(c.body.p, "all of it", 9);
    fini(&c);
    feed(&c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", 4);
    assert_false(net_parse_end(&c.p));
    fini(&c);
    feed(&c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", 4);
    assert_false(net_parse_end(&c.p));
    fini(&c);
}

static void what_is_no_answer_is_broken(void **state)
{
    static const char *const texts[] = {
        "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 20\r\n\r\n",
        "nonsense\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\n folded: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nName : 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nName: a\nb\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nName: a\rb\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nName: a\r\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\nName: a\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\ncontent-length: 0\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: 0, 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nxxxxx",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r0\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x\ry\r\na",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nName: a\rb\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (size_t n = 1; n < 60; n += 29) {
            struct came c;
            feed(&c, texts[i], n);
            if (c.says != PARSE_BROKEN)
                fail_msg("taken, %zu bytes at a time: %s", n, texts[i]);
            fini(&c);
        }
    }
}

static void a_head_has_a_limit(void **state)
{
    struct xp_buf text;
    struct came c;
    (void)state;
    xp_buf_init(&text, 1 << 20);
    xp_buf_str(&text, "HTTP/1.1 200 OK\r\n");
    while (text.n < PARSE_HEAD_MAX)
        xp_buf_str(&text, "Name: 0123456789012345678901234567890123456789\r\n");
    xp_buf_add(&text, "\r\n", 3);
    feed(&c, (const char *)text.p, 1000);
    assert_int_equal(c.says, PARSE_BROKEN);
    fini(&c);
    text.n = 17;
    for (int i = 0; i <= PARSE_FIELDS_MAX; i++)
        xp_buf_str(&text, "a: b\r\n");
    xp_buf_add(&text, "\r\n", 3);
    feed(&c, (const char *)text.p, 1000);
    assert_int_equal(c.says, PARSE_BROKEN);
    fini(&c);
    xp_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_the_same_however_its_bytes_are_cut),
        cmocka_unit_test(fields_are_found_in_either_case_and_without_the_space_around),
        cmocka_unit_test(without_a_length_the_body_ends_with_the_connection),
        cmocka_unit_test(what_is_no_answer_is_broken),
        cmocka_unit_test(a_head_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
