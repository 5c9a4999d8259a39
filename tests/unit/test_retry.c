#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/objstore/retry.h"

#define SECOND UINT64_C(1000000000)

static void what_may_pass_is_tried_again(void **state)
{
    static const int may[] = {408, 429, 500, 502, 503, 504},
                     not [] = {400, 401, 403, 404, 412, 501};
    (void)state;
    for (size_t i = 0; i < sizeof may / sizeof *may; i++)
        assert_true(retry_may_pass(XP_OK, may[i]));
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
        assert_false(retry_may_pass(XP_OK, not [i]));
    assert_true(retry_may_pass(XP_IO, 0));
    assert_true(retry_may_pass(XP_TIMEOUT, 200));
    assert_false(retry_may_pass(XP_CANCELLED, 0));
}

static void delays_double_up_to_a_cap_and_are_drawn_below_it(void **state)
{
    struct retry r = {.deadline_ns = UINT64_MAX};
    struct retry_budget b;
    (void)state;
    retry_budget_init(&b);
    static const int64_t caps[] = {100, 200, 400, 800, 1600, 3200, 5000, 5000};
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
        struct retry same = r;
        assert_int_equal(retry_delay_ms(&same, &b, 0, (uint64_t)caps[i], 0), caps[i]);
        assert_int_equal(retry_delay_ms(&r, &b, 0, 0, 0), 0);
    }
}

static void the_server_may_ask_for_more_up_to_ten_seconds(void **state)
{
    struct retry r = {.deadline_ns = UINT64_MAX};
    struct retry_budget b;
    (void)state;
    retry_budget_init(&b);
    assert_int_equal(retry_delay_ms(&r, &b, 2000, 0, 0), 2000);
    assert_int_equal(retry_delay_ms(&r, &b, 3600000, 0, 0), 10000);
    assert_int_equal(retry_after_ms("7"), 7000);
    assert_int_equal(retry_after_ms("Wed, 21 Oct 2026 07:28:00 GMT"), 0);
    assert_int_equal(retry_after_ms("-1"), 0);
    assert_int_equal(retry_after_ms("99999999999999999999"), 3600000);
    assert_int_equal(retry_after_ms(NULL), 0);
}

static void nothing_is_tried_past_the_deadline(void **state)
{
    struct retry r = {.deadline_ns = 10 * SECOND};
    struct retry_budget b;
    (void)state;
    retry_budget_init(&b);
    assert_int_equal(retry_delay_ms(&r, &b, 0, 50, 9 * SECOND), 50);
    assert_int_equal(retry_delay_ms(&r, &b, 2000, 0, 9 * SECOND), -1);
    assert_int_equal(retry_later_ms(&r, 0), 4 * RETRY_FIRST_MS); /* two attempts failed */
    assert_int_equal(retry_later_ms(&r, 9000), 9000);
    r.attempts = 40;
    assert_int_equal(retry_later_ms(&r, 0), RETRY_CAP_MS);
}

static void a_store_that_fails_much_is_asked_slowly(void **state)
{
    struct retry_budget b;
    (void)state;
    retry_budget_init(&b);
    for (int i = 0; i < RETRY_TOKENS; i++) {
        struct retry r = {.deadline_ns = UINT64_MAX};
        assert_true(retry_delay_ms(&r, &b, 0, 100, 0) <= 100);
    }
    struct retry r = {.deadline_ns = UINT64_MAX};
    assert_int_equal(retry_delay_ms(&r, &b, 0, 5000, 0), 5000);
    for (int i = 0; i < 10; i++)
        retry_succeeded(&b);
    r = (struct retry){.deadline_ns = UINT64_MAX};
    assert_int_equal(retry_delay_ms(&r, &b, 0, 100, 0), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_pass_is_tried_again),
        cmocka_unit_test(delays_double_up_to_a_cap_and_are_drawn_below_it),
        cmocka_unit_test(the_server_may_ask_for_more_up_to_ten_seconds),
        cmocka_unit_test(nothing_is_tried_past_the_deadline),
        cmocka_unit_test(a_store_that_fails_much_is_asked_slowly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
