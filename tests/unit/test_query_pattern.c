#include "shard/query/pattern.h"
#include "tests/unit/unit.h"

static struct pattern pat;

static enum xp_status parse(const char *q)
{
    struct xp_error err = {0};
    enum xp_status status = pattern_parse(&pat, xp_span_str(q), &err);
    if (status != XP_OK)
        assert_true(strlen(err.text) > 5);
    return status;
}

static bool name_matches(const char *q, const char *name)
{
    assert_int_equal(parse(q), XP_OK);
    return pattern_match(&pat, PATTERN_NAME, xp_span_str(name));
}

static void words_are_substrings_in_any_case(void **state)
{
    (void)state;
    assert_true(name_matches("reduce", "all-Reduce.1"));
    assert_true(name_matches("REDUCE all", "all-reduce.1"));
    assert_false(name_matches("reduce scatter", "all-reduce.1"));
    assert_true(name_matches("1", "all-reduce.1"));
    assert_false(name_matches("all-reduce.12", "all-reduce.1"));
    assert_true(name_matches("  name:reduce  ", "all-reduce"));
}

static void excluded_and_quoted_words_work(void **state)
{
    (void)state;
    assert_false(name_matches("fusion -loop", "loop_fusion"));
    assert_true(name_matches("fusion -loop", "fusion.3"));
    assert_true(name_matches("\"a b\"", "xa bx"));
    assert_false(name_matches("\"a b\"", "b a"));
    assert_true(name_matches("\"-x\"", "a-x"));
    assert_false(name_matches("-\"a b\"", "a b"));
    assert_true(name_matches("-", "all-reduce"));
    assert_true(name_matches("-name:x", "abc"));
}

static void words_may_be_about_line_and_plane(void **state)
{
    (void)state;
    assert_int_equal(parse("LINE:Ops -plane:host add"), XP_OK);
    assert_true(pattern_match(&pat, PATTERN_LINE, XP_SPAN_LIT("XLA Ops")));
    assert_false(pattern_match(&pat, PATTERN_LINE, XP_SPAN_LIT("Steps")));
    assert_true(pattern_match(&pat, PATTERN_PLANE, XP_SPAN_LIT("/device:TPU:0")));
    assert_false(pattern_match(&pat, PATTERN_PLANE, XP_SPAN_LIT("/host:CPU")));
    assert_true(pattern_match(&pat, PATTERN_NAME, XP_SPAN_LIT("address")));
}

static void durations_are_exact(void **state)
{
    (void)state;
    assert_int_equal(parse("dur>10us"), XP_OK);
    assert_int_equal(pat.min_ps, 10000001);
    assert_int_equal(parse("dur>=1.5ms dur<2s"), XP_OK);
    assert_int_equal(pat.min_ps, 1500000000);
    assert_int_equal(pat.max_ps, INT64_C(1999999999999));
    assert_int_equal(parse("dur<=0.000001us"), XP_OK);
    assert_int_equal(pat.max_ps, 1);
    assert_int_equal(parse("dur<.5ns"), XP_OK);
    assert_int_equal(pat.max_ps, 499);
    assert_int_equal(parse("dur<1\xc2\xb5s"), XP_OK);
    assert_true(pat.timed);
    assert_int_equal(parse("duration"), XP_OK);
    assert_false(pat.timed);
}

static void what_cannot_be_read_gets_a_sentence(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "   ",
                                      "\"open",
                                      "dur>",
                                      "dur>10",
                                      "dur>us",
                                      "dur>1.2.3us",
                                      "dur>-1us",
                                      "dur>1h",
                                      "dur<.s",
                                      "dur>99999999999999999999ps",
                                      "dur>99999999s",
                                      "name:\"",
                                      "\"\""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (parse(bad[i]) != XP_BAD_REQUEST)
            fail_msg("<%s> was accepted", bad[i]);
    char many[200] = "";
    for (int i = 0; i < PATTERN_WORDS + 1; i++)
        strncat(many, "a ", 3);
    assert_int_equal(parse(many), XP_BAD_REQUEST);
    static char longest[PATTERN_MAX + 2];
    memset(longest, 'x', PATTERN_MAX + 1);
    assert_int_equal(parse(longest), XP_BAD_REQUEST);
    longest[PATTERN_MAX] = 0;
    assert_int_equal(parse(longest), XP_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_substrings_in_any_case),
        cmocka_unit_test(excluded_and_quoted_words_work),
        cmocka_unit_test(words_may_be_about_line_and_plane),
        cmocka_unit_test(durations_are_exact),
        cmocka_unit_test(what_cannot_be_read_gets_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
