#include "shard/tools/table.h"

#include <math.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

static char *finish(struct out *o)
{
    struct xp_error err = {0};
    uint8_t *body;
    size_t n;
    bool encoded;
    assert_int_equal(out_finish(o, &body, &n, &encoded, &err), XP_OK);
    assert_false(encoded);
    char *text = calloc(1, n + 1);
    memcpy(text, body, n);
    free(body);
    out_fini(o);
    return text;
}

static void write_small(struct tables *t)
{
    table_begin(t);
    table_col(t, "a", TABLE_NUMBER, "A");
    table_col_role(t, "b", TABLE_STRING, "B \"b\"", "tooltip");
    table_row(t);
    table_num(t, 5);
    table_cstr(t, "x,\"y\"");
    table_row(t);
    table_num_text(t, 31, "0x1f");
    table_null(t);
    table_prop(t, "p", XP_SPAN_LIT("v"));
    table_end(t);
}

static void tables_are_google_charts_json(void **state)
{
    (void)state;
    struct out o;
    struct tables t;
    out_init(&o, NULL);
    tables_begin(&t, &o, false, true);
    write_small(&t);
    table_begin(&t);
    table_end(&t);
    tables_raw(&t, XP_SPAN_LIT("{}"));
    tables_end(&t);
    assert_string_equal(o.content_type, "application/json");
    char *s = finish(&o);
    assert_string_equal(s, "[{\"cols\":[{\"id\":\"a\",\"label\":\"A\",\"type\":\"number\"},"
                           "{\"id\":\"b\",\"label\":\"B "
                           "\\\"b\\\"\",\"type\":\"string\",\"p\":{\"role\":\"tooltip\"}}],"
                           "\"rows\":[{\"c\":[{\"v\":5},{\"v\":\"x,\\\"y\\\"\"}]},"
                           "{\"c\":[{\"v\":31,\"f\":\"0x1f\"},{\"v\":\"\"}]}],\"p\":{\"p\":\"v\"}},"
                           "{\"cols\":[],\"rows\":[]},{}]");
    free(s);
}

static void csv_is_the_first_table_quoted(void **state)
{
    (void)state;
    struct out o;
    struct tables t;
    out_init(&o, NULL);
    tables_begin(&t, &o, true, true);
    write_small(&t);
    write_small(&t);
    tables_end(&t);
    assert_string_equal(o.content_type, "text/csv");
    char *s = finish(&o);
    assert_string_equal(s, "\"A\",\"B \"\"b\"\"\"\n\"5.0\",\"x,\"\"y\"\"\"\n\"31.0\",\"\"\n");
    free(s);
}

static void csv_of_no_rows_is_the_header(void **state)
{
    (void)state;
    struct out o;
    struct tables t;
    out_init(&o, NULL);
    tables_begin(&t, &o, true, false);
    table_begin(&t);
    table_col(&t, "a", TABLE_BOOLEAN, "A");
    table_end(&t);
    tables_end(&t);
    char *s = finish(&o);
    assert_string_equal(s, "\"A\"\n");
    free(s);
}

static void numbers_are_as_python_prints_them(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *text;
    } cases[] = {
        {0, "\"0.0\""},
        {-0.0, "\"-0.0\""},
        {5, "\"5.0\""},
        {0.1, "\"0.1\""},
        {1e-6, "\"1e-06\""},
        {0.00012, "\"0.00012\""},
        {1e16, "\"1e+16\""},
        {1e15, "\"1000000000000000.0\""},
        {123456.75, "\"123456.75\""},
        {1.0 / 3, "\"0.3333333333333333\""},
        {-2.5e-9, "\"-2.5e-09\""},
        {1.7976931348623157e308, "\"1.7976931348623157e+308\""},
        {12345678901234567000.0, "\"1.2345678901234567e+19\""},
        {NAN, "\"\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct out o;
        struct tables t;
        out_init(&o, NULL);
        tables_begin(&t, &o, true, false);
        table_begin(&t);
        table_col(&t, "a", TABLE_NUMBER, "A");
        table_row(&t);
        table_num(&t, cases[i].v);
        table_end(&t);
        tables_end(&t);
        char *s = finish(&o), *line = strchr(s, '\n') + 1;
        line[strlen(line) - 1] = 0;
        assert_string_equal(line, cases[i].text);
        free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_google_charts_json),
        cmocka_unit_test(csv_is_the_first_table_quoted),
        cmocka_unit_test(csv_of_no_rows_is_the_header),
        cmocka_unit_test(numbers_are_as_python_prints_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
