#include "shard/tools/report_beside.h"

#include <stdio.h>

#include "tests/unit/unit.h"

static enum xp_status samples(const char *sample, const char *against, struct beside_samples *s,
                              struct xp_error *err)
{
    struct tool_arg v[] = {{XP_SPAN_LIT("sample"), xp_span_str(sample)},
                           {XP_SPAN_LIT("against"), xp_span_str(against)}};
    struct tool_args args = {.args = v, .n = 2};
    return beside_samples_of(&args, s, err);
}

static void a_sample_is_a_whole_number_of_64_bits(void **state)
{
    static const char *const bad[] = {"99999999999999999999999",
                                      "9223372036854775808",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "--1",
                                      "-",
                                      "0x1",
                                      "1.5"};
    struct beside_samples s;
    struct xp_error err = {0};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(samples(bad[i], "", &s, &err), XP_BAD_REQUEST);
        assert_int_equal(samples("1", bad[i], &s, &err), XP_BAD_REQUEST);
    }
    assert_int_equal(samples("-9223372036854775808", "7", &s, &err), XP_OK);
    assert_true(s.has_sample && s.sample == INT64_MIN && s.has_against && s.against == 7);
    assert_int_equal(samples("", "", &s, &err), XP_OK);
    assert_false(s.has_sample || s.has_against);
}

static void a_sample_that_no_device_has_is_refused_with_those_that_there_are(void **state)
{
    struct beside_sample v[20];
    struct beside_samples s = {.sample = 777, .has_sample = true};
    struct xp_error err = {0};
    (void)state;
    for (int i = 0; i < 20; i++)
        v[i] = (struct beside_sample){.id = 10 - i / 2};           /* of two devices each */
    assert_int_equal(beside_samples_exist(&s, v, 0, &err), XP_OK); /* no counters at all */
    assert_int_equal(beside_samples_exist(&s, v, 20, &err), XP_BAD_REQUEST);
    assert_string_equal(err.text, "sample=777 is no sample of any device; there are "
                                  "1, 2, 3, 4, 5, 6, 7, 8, \xe2\x80\xa6");
    s.sample = 9;
    assert_int_equal(beside_samples_exist(&s, v, 20, &err), XP_OK);
    s.against = 11;
    s.has_against = true;
    assert_int_equal(beside_samples_exist(&s, v + 16, 4, &err), XP_BAD_REQUEST);
    assert_string_equal(err.text, "sample=9 is no sample of any device; there are 1, 2");
    assert_int_equal(beside_samples_exist(&s, v, 20, &err), XP_BAD_REQUEST);
    assert_non_null(strstr(err.text, "against=11"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_is_a_whole_number_of_64_bits),
        cmocka_unit_test(a_sample_that_no_device_has_is_refused_with_those_that_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
