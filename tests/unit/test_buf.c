#include "lib/base/buf.h"
#include "tests/unit/unit.h"

static void buf_keeps_what_is_appended(void **state)
{
    (void)state;
    struct xp_buf b;
    xp_buf_init(&b, 1 << 20);
    xp_buf_str(&b, "abc");
    xp_buf_byte(&b, '-');
    xp_buf_fmt(&b, "%d/%s", 42, "x");
    xp_buf_span(&b, XP_SPAN_LIT("!"));
    xp_buf_add(&b, NULL, 0);
    assert_buf_is(&b, "abc-42/x!");
    xp_buf_fini(&b);
}

static void buf_formats_text_of_any_length(void **state)
{
    (void)state;
    struct xp_buf b;
    xp_buf_init(&b, 5000);
    for (int n = 250; n < 262; n++) {
        b.n = 0;
        xp_buf_fmt(&b, "%0*d", n, 7);
        assert_int_equal(b.n, n);
        assert_int_equal(b.p[n - 1], '7');
    }
    b.n = 0;
    xp_buf_fmt(&b, "%05000d", 1);
    assert_false(b.failed);
    assert_int_equal(b.n, 5000);
    xp_buf_fini(&b);
}

static void buf_refuses_to_grow_past_its_limit(void **state)
{
    (void)state;
    struct xp_buf b;
    xp_buf_init(&b, 1000);
    for (int i = 0; i < 1000; i++)
        xp_buf_byte(&b, 'x');
    assert_false(b.failed);
    assert_int_equal(b.n, 1000);
    xp_buf_byte(&b, 'y');
    assert_true(b.failed);
    assert_int_equal(b.n, 1000);
    xp_buf_fini(&b);
}

static void buf_drops_all_that_follows_a_failure(void **state)
{
    (void)state;
    struct xp_buf b;
    xp_buf_init(&b, 10);
    xp_buf_add(&b, "12345", 5);
    xp_buf_add(&b, "1234567", 7);
    assert_true(b.failed);
    xp_buf_byte(&b, 'z');
    xp_buf_add(&b, "z", 1);
    assert_null(xp_buf_room(&b, 1));
    assert_int_equal(b.n, 5);
    xp_buf_fini(&b);
}

static void buf_refuses_a_size_that_would_wrap(void **state)
{
    (void)state;
    struct xp_buf b;
    xp_buf_init(&b, SIZE_MAX);
    xp_buf_str(&b, "abc");
    assert_null(xp_buf_room(&b, SIZE_MAX - 1));
    assert_true(b.failed);
    xp_buf_fini(&b);
}

static void buf_hands_its_bytes_over(void **state)
{
    (void)state;
    struct xp_buf b;
    xp_buf_init(&b, 100);
    xp_buf_str(&b, "mine");
    size_t n;
    uint8_t *p = xp_buf_take(&b, &n);
    assert_int_equal(n, 4);
    assert_memory_equal(p, "mine", 4);
    free(p);
    assert_null(b.p);
    xp_buf_str(&b, "again");
    assert_buf_is(&b, "again");
    xp_buf_fini(&b);
}

static void span_comparisons_are_those_of_bytes(void **state)
{
    (void)state;
    struct xp_span empty = {0}, ab = XP_SPAN_LIT("ab"), abc = XP_SPAN_LIT("abc");
    assert_true(xp_span_eq(empty, XP_SPAN_LIT("")));
    assert_true(xp_span_cmp(ab, abc) < 0);
    assert_true(xp_span_cmp(abc, ab) > 0);
    assert_true(xp_span_cmp(XP_SPAN_LIT("\xff"), abc) > 0);
    assert_true(xp_span_starts(abc, ab) && !xp_span_starts(ab, abc));
    assert_true(xp_span_ends(abc, XP_SPAN_LIT("bc")) && !xp_span_ends(abc, ab));
    assert_true(xp_span_starts(abc, empty) && xp_span_ends(abc, empty));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buf_keeps_what_is_appended),
        cmocka_unit_test(buf_formats_text_of_any_length),
        cmocka_unit_test(buf_refuses_to_grow_past_its_limit),
        cmocka_unit_test(buf_drops_all_that_follows_a_failure),
        cmocka_unit_test(buf_refuses_a_size_that_would_wrap),
        cmocka_unit_test(buf_hands_its_bytes_over),
        cmocka_unit_test(span_comparisons_are_those_of_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
