#include "lib/base/json_out.h"

#include <float.h>
#include <jansson.h>
#include <math.h>

#include "lib/base/utf8.h"
#include "tests/unit/unit.h"

static struct xp_buf buf;
static struct xp_json json;

static void fresh(void)
{
    xp_buf_fini(&buf);
    xp_buf_init(&buf, 1 << 20);
    xp_json_init(&json, &buf);
}

static int setup(void **state)
{
    (void)state;
    fresh();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    xp_buf_fini(&buf);
    return 0;
}

static void commas_and_colons_are_placed(void **state)
{
    (void)state;
    xp_json_obj(&json);
    xp_json_key(&json, "a");
    xp_json_arr(&json);
    xp_json_i64(&json, -1);
    xp_json_obj(&json);
    xp_json_obj_end(&json);
    xp_json_arr(&json);
    xp_json_arr_end(&json);
    xp_json_null(&json);
    xp_json_arr_end(&json);
    xp_json_key_span(&json, XP_SPAN_LIT("b\""));
    xp_json_bool(&json, true);
    xp_json_key(&json, "c");
    xp_json_obj(&json);
    xp_json_key(&json, "d");
    xp_json_str(&json, "x");
    xp_json_key(&json, "e");
    xp_json_raw(&json, XP_SPAN_LIT("[1]"));
    xp_json_obj_end(&json);
    xp_json_key(&json, "f");
    xp_json_u64(&json, UINT64_MAX);
    xp_json_obj_end(&json);
    assert_buf_is(&buf, "{\"a\":[-1,{},[],null],\"b\\\"\":true,\"c\":{\"d\":\"x\",\"e\":[1]},"
                        "\"f\":18446744073709551615}");
}

static void integers_of_every_length_are_exact(void **state)
{
    (void)state;
    uint64_t power = 1;
    for (int n = 0; n < 20; n++, power *= 10) {
        for (int d = -1; d <= 1; d++) {
            char want[48];
            uint64_t v = power + (uint64_t)d;
            fresh();
            xp_json_u64(&json, v);
            snprintf(want, sizeof want, "%llu", (unsigned long long)v);
            assert_buf_is(&buf, want);
            fresh();
            xp_json_i64(&json, (int64_t)v);
            snprintf(want, sizeof want, "%lld", (long long)(int64_t)v);
            assert_buf_is(&buf, want);
        }
    }
    fresh();
    xp_json_i64(&json, INT64_MIN);
    assert_buf_is(&buf, "-9223372036854775808");
}

static void picoseconds_become_exact_microseconds(void **state)
{
    (void)state;
    static const struct {
        int64_t ps;
        const char *text;
    } rows[] = {
        {0, "0"},
        {1, "0.000001"},
        {-1, "-0.000001"},
        {1234567, "1.234567"},
        {1500000, "1.5"},
        {1000000, "1"},
        {10010, "0.01001"},
        {-12345678901234, "-12345678.901234"},
        {INT64_MAX, "9223372036854.775807"},
        {INT64_MIN, "-9223372036854.775808"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fresh();
        xp_json_us_from_ps(&json, rows[i].ps);
        assert_buf_is(&buf, rows[i].text);
    }
}

static void doubles_take_their_shortest_text(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *text;
    } rows[] = {
        {0, "0"},
        {-0.0, "-0.0"},
        {1, "1"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {1e15, "1e+15"},
        {123456789012345, "123456789012345"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {2.5e-7, "2.5e-07"},
        {0.000001, "0.000001"},
        {999999999.999999, "999999999.999999"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {5e-324, "4.94065645841247e-324"},
        {NAN, "null"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fresh();
        xp_json_double(&json, rows[i].v);
        assert_buf_is(&buf, rows[i].text);
    }
}

static uint64_t next_random(uint64_t *r)
{
    *r ^= *r << 13;
    *r ^= *r >> 7;
    *r ^= *r << 17;
    return *r;
}

static void every_double_reads_back(void **state)
{
    (void)state;
    uint64_t r = 88172645463325252u;
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = next_random(&r);
        double v;
        if (i % 2)
            memcpy(&v, &bits, sizeof v);
        else
            v = (double)(int64_t)(bits >> (bits & 63)) / (double)(1 + (bits >> 7) % 1000000);
        if (!isfinite(v))
            continue;
        fresh();
        xp_json_double(&json, v);
        xp_buf_byte(&buf, 0);
        assert_true(strtod((const char *)buf.p, NULL) == v);
    }
}

static void strings_are_escaped(void **state)
{
    (void)state;
    fresh();
    xp_json_span(&json, XP_SPAN_LIT("q\" b\\ n\n r\r t\t z\0 u\x1f </script> \x7f \xc3\xa9"));
    assert_buf_is(&buf, "\"q\\\" b\\\\ n\\n r\\r t\\t z\\u0000 u\\u001f \\u003c/script> \x7f "
                        "\xc3\xa9\"");
    fresh();
    xp_json_span(&json, XP_SPAN_LIT("\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa \xff"));
    assert_buf_is(&buf, "\"\\u2028\\u2029\xe2\x80\xaa \xef\xbf\xbd\"");
    fresh();
    xp_json_span(&json, (struct xp_span){0});
    assert_buf_is(&buf, "\"\"");
}

static void a_special_byte_is_found_at_any_place(void **state)
{
    (void)state;
    for (size_t n = 1; n < 70; n++) {
        for (size_t at = 0; at < n; at++) {
            char *text = malloc(n);
            memset(text, 'a', n);
            text[at] = '<';
            fresh();
            xp_json_escape(&buf, xp_span_of(text, n));
            assert_int_equal(buf.n, n + 2 + 5);
            assert_memory_equal(buf.p + 1 + at, "\\u003c", 6);
            free(text);
        }
    }
}

static void any_bytes_give_json_that_a_reader_takes(void **state)
{
    (void)state;
    uint64_t r = 1234567;
    for (int i = 0; i < 3000; i++) {
        uint8_t text[48];
        size_t n = next_random(&r) % sizeof text;
        for (size_t k = 0; k < n; k++)
            text[k] = (uint8_t)(next_random(&r) >> 11);
        fresh();
        xp_json_arr(&json);
        xp_json_span(&json, xp_span_of(text, n));
        xp_json_arr_end(&json);

        json_t *back = json_loadb((const char *)buf.p, buf.n, JSON_ALLOW_NUL, NULL);
        assert_non_null(back);
        json_t *s = json_array_get(back, 0);
        struct xp_buf want;
        xp_buf_init(&want, 1000);
        xp_utf8_append(&want, xp_span_of(text, n));
        assert_true(
            xp_span_eq(xp_buf_all(&want), xp_span_of(json_string_value(s), json_string_length(s))));
        xp_buf_fini(&want);
        json_decref(back);
    }
}

static void the_limit_of_the_buffer_is_exact(void **state)
{
    (void)state;
    struct xp_buf small;
    struct xp_json j;
    for (size_t max = 0; max < 40; max++) {
        xp_buf_init(&small, max);
        xp_json_init(&j, &small);
        xp_json_arr(&j);
        xp_json_us_from_ps(&j, 1234567);
        xp_json_str(&j, "a<b");
        xp_json_u64(&j, 12345);
        xp_json_arr_end(&j);
        assert_int_equal(small.failed, max < 27);
        xp_buf_fini(&small);
    }
}

static void too_deep_a_nest_fails_and_does_not_break(void **state)
{
    (void)state;
    fresh();
    for (int i = 0; i < 31; i++)
        xp_json_arr(&json);
    assert_false(buf.failed);
    for (int i = 0; i < 100; i++)
        xp_json_arr(&json);
    assert_true(buf.failed);
    for (int i = 0; i < 200; i++)
        xp_json_arr_end(&json);
    assert_true(buf.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(commas_and_colons_are_placed, setup, teardown),
        cmocka_unit_test_setup_teardown(integers_of_every_length_are_exact, setup, teardown),
        cmocka_unit_test_setup_teardown(picoseconds_become_exact_microseconds, setup, teardown),
        cmocka_unit_test_setup_teardown(doubles_take_their_shortest_text, setup, teardown),
        cmocka_unit_test_setup_teardown(every_double_reads_back, setup, teardown),
        cmocka_unit_test_setup_teardown(strings_are_escaped, setup, teardown),
        cmocka_unit_test_setup_teardown(a_special_byte_is_found_at_any_place, setup, teardown),
        cmocka_unit_test_setup_teardown(any_bytes_give_json_that_a_reader_takes, setup, teardown),
        cmocka_unit_test_setup_teardown(the_limit_of_the_buffer_is_exact, setup, teardown),
        cmocka_unit_test_setup_teardown(too_deep_a_nest_fails_and_does_not_break, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
