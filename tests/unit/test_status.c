#include "lib/base/status.h"
#include "tests/unit/unit.h"

static void fail_fills_the_error_and_returns_the_status(void **state)
{
    (void)state;
    struct xp_error err;
    assert_int_equal(xp_fail(&err, XP_CORRUPT, 77, "tag %u", 9u), XP_CORRUPT);
    assert_int_equal(err.status, XP_CORRUPT);
    assert_int_equal(err.offset, 77);
    assert_string_equal(err.text, "tag 9");
}

static void fail_without_an_error_still_returns_the_status(void **state)
{
    (void)state;
    assert_int_equal(xp_fail(NULL, XP_BUSY, 0, "%s", "x"), XP_BUSY);
}

static void a_long_text_is_cut_and_ends_in_nul(void **state)
{
    (void)state;
    struct xp_error err;
    char text[2000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = 0;
    xp_fail(&err, XP_IO, 0, "%s", text);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void the_table_knows_every_status(void **state)
{
    (void)state;
    for (int s = 0; s < XP_STATUS_COUNT; s++) {
        int http = xp_status_http((enum xp_status)s);
        assert_true(http >= 200 && http < 600);
        assert_true(*xp_status_code((enum xp_status)s));
        assert_true(*xp_status_text((enum xp_status)s));
    }
    assert_int_equal(xp_status_http(XP_BUSY), 503);
    assert_true(xp_status_retry(XP_BUSY));
    assert_false(xp_status_retry(XP_CORRUPT));
    assert_string_equal(xp_status_code(XP_NOT_FOUND), "not_found");
}

static void when_to_ask_again_is_whole_seconds_up_to_thirty(void **state)
{
    static const struct {
        uint64_t ms;
        int s;
    } v[] = {{0, 1}, {1, 1}, {1000, 1}, {1001, 2}, {29999, 30}, {UINT64_MAX, XP_RETRY_MAX_S}};
    struct xp_error err;
    (void)state;
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        xp_fail(&err, XP_BUSY, 0, "x");
        assert_int_equal(err.retry_s, 0);
        xp_error_retry(&err, v[i].ms);
        assert_int_equal(err.retry_s, v[i].s);
    }
    xp_error_retry(NULL, 1);
}

static void a_status_out_of_the_table_is_internal(void **state)
{
    (void)state;
    assert_int_equal(xp_status_http((enum xp_status)9999), 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_fills_the_error_and_returns_the_status),
        cmocka_unit_test(fail_without_an_error_still_returns_the_status),
        cmocka_unit_test(a_long_text_is_cut_and_ends_in_nul),
        cmocka_unit_test(the_table_knows_every_status),
        cmocka_unit_test(when_to_ask_again_is_whole_seconds_up_to_thirty),
        cmocka_unit_test(a_status_out_of_the_table_is_internal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
