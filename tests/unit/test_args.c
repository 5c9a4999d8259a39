#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shard/args.h"

static struct args one(const char *name, const char *value)
{
    static struct shard_arg a;
    a = (struct shard_arg){xp_span_str(name), xp_span_str(value)};
    return (struct args){&a, 1};
}

static void numbers_are_whole_and_fit_or_are_refused(void **state)
{
    static const char *const bad[] = {"x",
                                      "1.5",
                                      "NaN",
                                      "1e3",
                                      " 1",
                                      "1 ",
                                      "+1",
                                      "--1",
                                      "-",
                                      "9223372036854775808",
                                      "99999999999999999999999",
                                      "0x10"};
    struct xp_error err;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct args a = one("t0", bad[i]);
        int64_t v = 7;
        assert_int_equal(args_i64(&a, "t0", INT64_MIN, INT64_MAX, &v, &err), XP_BAD_REQUEST);
        assert_int_equal(v, 7);
        assert_non_null(strstr(err.text, "t0="));
    }
}

static void the_extremes_of_int64_are_read_exactly(void **state)
{
    struct args a = one("t", "-9223372036854775808");
    int64_t v = 0;
    (void)state;
    assert_int_equal(args_i64(&a, "t", INT64_MIN, INT64_MAX, &v, NULL), XP_OK);
    assert_true(v == INT64_MIN);
    a = one("t", "9223372036854775807");
    assert_int_equal(args_i64(&a, "t", INT64_MIN, INT64_MAX, &v, NULL), XP_OK);
    assert_true(v == INT64_MAX);
}

static void an_absent_or_empty_argument_keeps_the_default(void **state)
{
    struct args a = one("px", "");
    uint32_t px = 1500;
    (void)state;
    assert_int_equal(args_u32(&a, "px", 1, 16384, &px, NULL), XP_OK);
    assert_int_equal(args_u32(&a, "other", 1, 16384, &px, NULL), XP_OK);
    assert_int_equal(px, 1500);
}

static void a_number_out_of_range_names_the_range(void **state)
{
    struct args a = one("px", "16385");
    struct xp_error err;
    uint32_t px = 1500;
    (void)state;
    assert_int_equal(args_u32(&a, "px", 1, 16384, &px, &err), XP_BAD_REQUEST);
    assert_non_null(strstr(err.text, "16384"));
}

static enum xp_status window(const char *t0, const char *t1)
{
    struct shard_arg v[2] = {{xp_span_str("t0"), xp_span_str(t0)},
                             {xp_span_str("t1"), xp_span_str(t1)}};
    struct args a = {v, 2};
    int64_t x, y;
    return args_window(&a, &x, &y, NULL);
}

static void a_window_needs_both_ends_in_order(void **state)
{
    (void)state;
    assert_int_equal(window("", ""), XP_OK);
    assert_int_equal(window("5", "6"), XP_OK);
    assert_int_equal(window("5", ""), XP_BAD_REQUEST);
    assert_int_equal(window("", "6"), XP_BAD_REQUEST);
    assert_int_equal(window("6", "5"), XP_BAD_REQUEST);
    assert_int_equal(window("6", "6"), XP_BAD_REQUEST);
}

static enum xp_status rows(const char *text, struct xp_arena *arena, struct query_rows *r)
{
    struct args a = one("rows", text);
    return args_rows(&a, arena, r, NULL);
}

static void rows_come_out_sorted_and_once(void **state)
{
    static const uint32_t want[] = {0, 3, 7, 8, 9};
    struct xp_arena *arena = xp_arena_new(NULL);
    struct query_rows r;
    (void)state;
    assert_int_equal(rows("7-9,3,0,8,3", arena, &r), XP_OK);
    assert_int_equal(r.n, 5);
    assert_memory_equal(r.lines, want, sizeof want);
    assert_int_equal(rows("4294967295", arena, &r), XP_OK);
    assert_int_equal(r.n, 1);
    xp_arena_free(arena);
}

static void malformed_and_endless_rows_are_refused(void **state)
{
    static const char *const bad[] = {",",
                                      "1,",
                                      ",1",
                                      "a",
                                      "3-1",
                                      "-1",
                                      "1-",
                                      "1-2-3",
                                      "4294967296",
                                      "0-4294967295",
                                      "0-65535,0-65535",
                                      "1,,2"};
    struct xp_arena *arena = xp_arena_new(NULL);
    struct query_rows r;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(rows(bad[i], arena, &r), XP_BAD_REQUEST);
    xp_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_whole_and_fit_or_are_refused),
        cmocka_unit_test(the_extremes_of_int64_are_read_exactly),
        cmocka_unit_test(an_absent_or_empty_argument_keeps_the_default),
        cmocka_unit_test(a_number_out_of_range_names_the_range),
        cmocka_unit_test(a_window_needs_both_ends_in_order),
        cmocka_unit_test(rows_come_out_sorted_and_once),
        cmocka_unit_test(malformed_and_endless_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
