#include "lib/base/regex.h"
#include "tests/unit/unit.h"

static bool finds(const char *pattern, const char *text)
{
    static struct xp_regex r;
    struct xp_error err;
    assert_int_equal(xp_regex_parse(&r, xp_span_str(pattern), &err), XP_OK);
    return xp_regex_find(&r, xp_span_str(text));
}

/* web/test/regex.test.ts has the same. */
static const struct {
    const char *pattern, *text;
    bool found;
} cases[] = {
    {"abc", "xxABCxx", true},
    {"abc", "ab", false},
    {"", "", true},
    {"a.c", "a-c", true},
    {"a.c", "ac", false},
    {"^abc$", "abc", true},
    {"^abc$", "abcd", false},
    {"^abc$", "xabc", false},
    {"^$", "", true},
    {"^$", "x", false},
    {"(foo$|bar)$", "foo", true},
    {"(foo$|bar)$", "food", false},
    {"(a$)$$", "ba", true},
    {"^(^foo|bar)", "foo", true},
    {"^(^foo|bar)", "xfoo", false},
    {"^^(^(^x))", "x", true},
    {"x(^y)", "xy", false},
    {"(^|_)mxu_[01]$", "busy_mxu_1", true},
    {"(^|_)mxu_[01]$", "busymxu_1", false},
    {"(^|_)mxu_[01]$", "mxu_0", true},
    {"ab*c", "ac", true},
    {"ab*c", "abbbc", true},
    {"ab+c", "ac", false},
    {"ab+?c", "ac", false},
    {"ab+?c", "abbc", true},
    {"ab?c", "abbc", false},
    {"(ab|cd)+e", "abcde", true},
    {"(ab|cd)+e", "ae", false},
    {"(?:ab)(c)", "abc", true},
    {"a||b", "zzz", true},
    {"[^a-y]", "abz", true},
    {"[^a-z]", "abz", false},
    {"[]x]", "]", true},
    {"[a-]", "-", true},
    {"[\\d_]x", "7x", true},
    {"[^\\d]", "123", false},
    {"\\w\\s\\W", "a !", true},
    {"\\D", "77", false},
    {"\\.", "x", false},
    {"\\.\\*", "a.*", true},
    {"a\\tb", "a\tb", true},
    {"\xc3\xa9+$", "caf\xc3\xa9\xc3\xa9", true},
    {"^\xc3\xa9+$", "\xc3\xa9x", false},
    {"(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", false},
    {"(a*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
};

static void patterns_find_what_they_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (finds(cases[i].pattern, cases[i].text) != cases[i].found)
            fail_msg("/%s/ in \"%s\"", cases[i].pattern, cases[i].text);
}

static void what_is_no_pattern_is_refused_with_a_sentence(void **state)
{
    static const char *const bad[] = {"(",    ")",          "[a",  "[",   "*a",
                                      "+",    "(?=a)",      "a\\", "\\b", "[z-a]",
                                      "a{2}", "[\xc3\xa9]", "(?",  "|*",  "(((((((((((((((("};
    static struct xp_regex r;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct xp_error err = {0};
        if (xp_regex_parse(&r, xp_span_str(bad[i]), &err) != XP_BAD_REQUEST)
            fail_msg("/%s/ was taken", bad[i]);
        assert_non_null(strstr(err.text, "regular expression, at "));
    }
}

static void a_pattern_has_64_places_at_most(void **state)
{
    static struct xp_regex r;
    char text[XP_REGEX_PLACES + 2];
    struct xp_error err;
    (void)state;
    memset(text, 'a', sizeof text);
    text[XP_REGEX_PLACES] = 0;
    assert_true(finds(text, text));
    text[XP_REGEX_PLACES - 1] = 0;
    assert_false(finds("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", text));
    text[XP_REGEX_PLACES - 1] = text[XP_REGEX_PLACES] = 'a';
    text[XP_REGEX_PLACES + 1] = 0;
    assert_int_equal(xp_regex_parse(&r, xp_span_str(text), &err), XP_BAD_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_find_what_they_say),
        cmocka_unit_test(what_is_no_pattern_is_refused_with_a_sentence),
        cmocka_unit_test(a_pattern_has_64_places_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
