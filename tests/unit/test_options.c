#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/options.h"

static enum options_result parse(struct options *o, const char *a, const char *b, const char *c)
{
    char *argv[] = {"xprofd", (char *)a, (char *)b, (char *)c, NULL};
    int argc = 1;
    while (argv[argc])
        argc++;
    return options_parse(argc, argv, "test", o);
}

static void values_follow_by_equals_sign_or_as_the_next_word(void **state)
{
    struct options o;
    (void)state;
    assert_int_equal(parse(&o, "--logdir", "d", "--port=0"), OPTIONS_OK);
    assert_string_equal(o.logdir[0], "d");
    assert_int_equal(o.port, 0);
    assert_string_equal(o.host, "127.0.0.1");
}

static void a_bare_word_is_the_place_of_the_profiles(void **state)
{
    struct options o;
    (void)state;
    assert_int_equal(parse(&o, "x.xplane.pb", NULL, NULL), OPTIONS_OK);
    assert_string_equal(o.logdir[0], "x.xplane.pb");
    assert_int_equal(parse(&o, "a", "b", NULL), OPTIONS_WRONG);
}

static void wrong_flags_and_values_are_refused(void **state)
{
    struct options o;
    (void)state;
    assert_int_equal(parse(&o, NULL, NULL, NULL), OPTIONS_WRONG);
    assert_int_equal(parse(&o, "--nope", NULL, NULL), OPTIONS_WRONG);
    assert_int_equal(parse(&o, "-l", "d", NULL), OPTIONS_WRONG);
    assert_int_equal(parse(&o, "d", "--port", NULL), OPTIONS_WRONG);
    assert_int_equal(parse(&o, "d", "--port=65536", NULL), OPTIONS_WRONG);
    assert_int_equal(parse(&o, "d", "--port=-1", NULL), OPTIONS_WRONG);
    assert_int_equal(parse(&o, "d", "--port=80x", NULL), OPTIONS_WRONG);
    assert_int_equal(parse(&o, "d", "--threads=0", NULL), OPTIONS_WRONG);
    assert_int_equal(parse(&o, "d", "--memory-budget=1MB", NULL), OPTIONS_WRONG);
    assert_int_equal(parse(&o, "d", "--tls-cert=c", NULL), OPTIONS_WRONG);
    assert_int_equal(parse(&o, "--logdir=", NULL, NULL), OPTIONS_WRONG);
    assert_int_equal(parse(&o, "d", "--ui=other", NULL), OPTIONS_WRONG);
    assert_int_equal(parse(&o, "d", "--ui", "stock=x"), OPTIONS_OK);
    assert_int_equal(parse(&o, "d", "--peak", "flops"), OPTIONS_WRONG);
    assert_int_equal(parse(&o, "d", "--peak=clock=1e9", NULL), OPTIONS_WRONG);
    assert_int_equal(parse(&o, "d", "--peak=hbm=fast", NULL), OPTIONS_WRONG);
    assert_int_equal(parse(&o, "d", "--peak=hbm=1.6e12", "--peak=flops=9.18e14"), OPTIONS_OK);
    assert_string_equal(o.peaks[1], "flops=9.18e14");
    assert_null(o.peaks[2]);
    assert_int_equal(parse(&o, "d", "--target=a=h:1", "--target=b:2"), OPTIONS_OK);
    assert_string_equal(o.targets[1], "b:2");
    assert_int_equal(parse(&o, "d", "--target=h", NULL), OPTIONS_WRONG);
    assert_int_equal(parse(&o, "d", "--target=a=h:1", "--target=a=h:2"), OPTIONS_WRONG);
    assert_int_equal(parse(&o, "shard", "d", "--target=a=h:1"), OPTIONS_WRONG);
}

static void sizes_take_decimal_and_binary_units(void **state)
{
    int64_t v;
    (void)state;
    assert_true(options_parse_bytes("128MB", &v) && v == 128000000);
    assert_true(options_parse_bytes("1GiB", &v) && v == 1073741824);
    assert_true(options_parse_bytes("1.5k", &v) && v == 1500);
    assert_true(options_parse_bytes("77", &v) && v == 77);
    assert_false(options_parse_bytes("", &v));
    assert_false(options_parse_bytes("-1", &v));
    assert_false(options_parse_bytes("1QB", &v));
    assert_false(options_parse_bytes("inf", &v));
    assert_false(options_parse_bytes("1e30GB", &v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_follow_by_equals_sign_or_as_the_next_word),
        cmocka_unit_test(a_bare_word_is_the_place_of_the_profiles),
        cmocka_unit_test(wrong_flags_and_values_are_refused),
        cmocka_unit_test(sizes_take_decimal_and_binary_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
