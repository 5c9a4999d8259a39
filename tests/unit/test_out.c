#include "shard/out.h"
#include "tests/unit/unit.h"

static void finish(struct out *o, uint8_t **body, size_t *n, bool *encoded)
{
    struct xp_error err;
    assert_int_equal(out_finish(o, body, n, encoded, &err), XP_OK);
    out_fini(o);
}

static void small_answers_stay_plain(void **state)
{
    (void)state;
    struct out o;
    uint8_t *body;
    size_t n;
    bool encoded;
    out_init(&o, NULL);
    xp_buf_str(&o.text, "{\"a\":1}");
    out_flush(&o);
    finish(&o, &body, &n, &encoded);
    assert_false(encoded);
    assert_int_equal(n, 7);
    assert_memory_equal(body, "{\"a\":1}", 7);
    free(body);
}

static void large_answers_are_compressed_as_they_grow(void **state)
{
    (void)state;
    struct out o;
    uint8_t *body, *text = malloc(1 << 20);
    size_t n, got = 0;
    bool encoded;
    out_init(&o, NULL);
    for (int i = 0; i < 20000; i++) {
        xp_buf_fmt(&o.text, "line %d\n", i);
        out_flush(&o);
        assert_true(o.text.n < 20000);
    }
    finish(&o, &body, &n, &encoded);
    assert_true(encoded);
    assert_true(n < 100000);
    struct xp_gunzip *g = xp_gunzip_new(xp_span_of(body, n));
    for (size_t more = 1; more; got += more)
        assert_int_equal(xp_gunzip_read(g, text + got, (1 << 20) - got, &more), XP_OK);
    xp_gunzip_free(g);
    assert_true(got > 200000);
    assert_memory_equal(text, "line 0\nline 1\n", 14);
    assert_memory_equal(text + got - 11, "line 19999\n", 11);
    free(text);
    free(body);
}

static void an_answer_past_the_limit_is_refused(void **state)
{
    (void)state;
    struct out o;
    struct xp_error err = {0};
    uint8_t *body = NULL;
    size_t n;
    bool encoded;
    out_init(&o, NULL);
    o.text.max = 100;
    for (int i = 0; i < 101; i++)
        xp_buf_byte(&o.text, 'x');
    assert_int_equal(out_finish(&o, &body, &n, &encoded, &err), XP_TOO_LARGE);
    assert_true(strlen(err.text) > 10);
    out_fini(&o);
}

static void an_answer_may_be_dropped_half_way(void **state)
{
    (void)state;
    struct out o;
    atomic_bool cancel = false;
    out_init(&o, &cancel);
    assert_false(out_cancelled(&o));
    atomic_store(&cancel, true);
    assert_true(out_cancelled(&o));
    for (int i = 0; i < 20000; i++)
        xp_buf_str(&o.text, "0123456789");
    out_flush(&o);
    assert_non_null(o.gz);
    out_fini(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_answers_stay_plain),
        cmocka_unit_test(large_answers_are_compressed_as_they_grow),
        cmocka_unit_test(an_answer_past_the_limit_is_refused),
        cmocka_unit_test(an_answer_may_be_dropped_half_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
