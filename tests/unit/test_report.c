/* The shape of reports: what is cut is counted, what is missing has a reason, answers stay small.
 */
#include <jansson.h>

#include "shard/report/report.h"
#include "tests/unit/unit.h"

struct rig {
    struct xp_arena *a;
    struct out out;
    struct report r;
    struct xp_error err;
};

static void begin(struct rig *g, const struct report_ask *with)
{
    struct report_ask ask = *with;
    *g = (struct rig){.a = xp_arena_new(NULL)};
    ask.tool = "t", ask.title = "T", ask.question = "?";
    out_init(&g->out, NULL);
    assert_int_equal(report_begin(&g->r, &ask, g->a, &g->out, &g->err), XP_OK);
}

static json_t *end(struct rig *g)
{
    json_t *j;
    assert_int_equal(report_end(&g->r, XP_OK, &g->err), XP_OK);
    assert_true(g->out.text.n < ((size_t)2 << 20));
    j = json_loadb((const char *)g->out.text.p, g->out.text.n, 0, NULL);
    assert_non_null(j);
    out_fini(&g->out);
    xp_arena_free(g->a);
    return j;
}

static json_t *at(json_t *j, const char *key, size_t i)
{
    return json_array_get(json_object_get(j, key), i);
}

static long long num(json_t *j, const char *key)
{
    json_t *v = json_object_get(j, key);
    assert_true(json_is_integer(v));
    return json_integer_value(v);
}

/* Row i: a name, i squared, and every third without a rate. */
static const struct report_column columns[] = {
    {"name", "Name", "", REPORT_COL_TEXT, false, "d"},
    {"time", "Time", "ps", REPORT_COL_NUMBER, true, "d"},
    {"rate", "Rate", "fraction", REPORT_COL_NUMBER, false, "d"},
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    static char names[8][8] = {"zero", "one", "two", "three", "four", "five", "six", "seven"};
    (void)ctx;
    c[0] = report_of_text(xp_span_str(names[i & 7]));
    c[1] = report_of_u64(i * i);
    if (i % 3)
        c[2] = report_of_double((double)i / 10);
}

static void table(struct report *r, uint64_t n)
{
    report_table(r, &(struct report_rows){.id = "rows",
                                          .title = "Rows",
                                          .columns = columns,
                                          .ncolumns = 3,
                                          .n = n,
                                          .row = row,
                                          .sort = "time",
                                          .descending = true});
}

static void totals_and_the_rest_are_of_all_rows(void **state)
{
    struct rig g;
    (void)state;
    begin(&g, &(struct report_ask){.limit = XP_SPAN_LIT("3")});
    table(&g.r, 8);
    json_t *j = end(&g), *t = at(j, "tables", 0);
    assert_int_equal(json_array_size(json_object_get(t, "rows")), 3);
    assert_string_equal(json_string_value(json_array_get(at(t, "rows", 0), 0)), "seven");
    assert_int_equal(num(t, "total_rows"), 8);
    assert_int_equal(num(json_object_get(t, "totals"), "time"), 140);
    assert_int_equal(num(json_object_get(t, "rest"), "rows"), 5);
    assert_int_equal(num(json_object_get(t, "rest"), "time"), 140 - 49 - 36 - 25);
    assert_null(json_object_get(json_object_get(t, "rest"), "rate"));
    json_decref(j);
}

static void rows_without_a_value_come_last_in_either_order(void **state)
{
    static const char *const orders[] = {"rate", "-rate"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct rig g;
        begin(&g, &(struct report_ask){.sort = xp_span_str(orders[k])});
        table(&g.r, 8);
        json_t *j = end(&g), *rows = json_object_get(at(j, "tables", 0), "rows");
        for (size_t i = 0; i < 8; i++)
            assert_int_equal(json_is_null(json_array_get(json_array_get(rows, i), 2)), i >= 5);
        double first = json_number_value(json_array_get(json_array_get(rows, 0), 2));
        assert_true(first == (k ? 0.7 : 0.1));
        json_decref(j);
    }
}

static void a_filter_finds_letters_of_either_case_and_keeps_the_totals(void **state)
{
    struct rig g;
    (void)state;
    begin(&g, &(struct report_ask){.filter = XP_SPAN_LIT("VE")});
    table(&g.r, 8);
    json_t *j = end(&g), *t = at(j, "tables", 0);
    assert_int_equal(num(t, "matched_rows"), 2); /* five, seven */
    assert_int_equal(num(json_object_get(t, "totals"), "time"), 140);
    assert_int_equal(num(json_object_get(t, "rest"), "rows"), 6);
    json_decref(j);
}

static void many_rows_stay_below_the_limit_of_bytes(void **state)
{
    struct rig g;
    (void)state;
    begin(&g, &(struct report_ask){.limit = XP_SPAN_LIT("100000")});
    table(&g.r, 200000);
    table(&g.r, 200000);
    json_t *j = end(&g);
    for (size_t i = 0; i < 2; i++) {
        json_t *t = at(j, "tables", i);
        size_t shown = json_array_size(json_object_get(t, "rows"));
        assert_true(shown > 1000 && shown < 100000);
        assert_int_equal(num(json_object_get(t, "rest"), "rows"), 200000 - (long long)shown);
    }
    json_decref(j);
}

static void arguments_that_are_no_numbers_are_refused(void **state)
{
    static const char *const bad[] = {"0", "-1", "1x", "100001", "99999999999999999999999"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct report r;
        struct out out;
        struct xp_error err = {0};
        out_init(&out, NULL);
        assert_int_equal(
            report_begin(&r, &(struct report_ask){.limit = xp_span_str(bad[i])}, NULL, &out, &err),
            XP_BAD_REQUEST);
        out_fini(&out);
    }
}

static void a_metric_that_is_no_number_has_a_reason(void **state)
{
    struct rig g;
    (void)state;
    begin(&g, &(struct report_ask){0});
    report_double(&g.r, "idle_fraction", 0.0 / 0.0 * 1.0, NULL);
    report_na(&g.r, "flop_rate", "because of %d", 7);
    report_u64(&g.r, "steps", 3, "a note");
    json_t *j = end(&g);
    for (size_t i = 0; i < 2; i++) {
        assert_true(json_is_null(json_object_get(at(j, "metrics", i), "value")));
        assert_true(json_is_string(json_object_get(at(j, "metrics", i), "reason")));
    }
    assert_int_equal(num(at(j, "metrics", 2), "value"), 3);
    assert_string_equal(json_string_value(json_object_get(at(j, "metrics", 2), "label")), "Steps");
    json_decref(j);
}

static void point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const uint64_t *peak = ctx;
    *x = report_of_u64(i);
    y[0] = report_of_u64(i == *peak ? 1000000 : i % 7);
}

static void a_series_keeps_its_peak_however_much_it_is_reduced(void **state)
{
    static const char *const names[] = {"y"};
    uint64_t peak = 777777;
    struct rig g;
    bool seen = false;
    (void)state;
    begin(&g, &(struct report_ask){0});
    report_series(&g.r, &(struct report_points){.id = "s",
                                                .title = "S",
                                                .x_label = "x",
                                                .y_label = "y",
                                                .kind = "line",
                                                .names = names,
                                                .nnames = 1,
                                                .n = 1000000,
                                                .point = point,
                                                .ctx = &peak});
    json_t *j = end(&g), *s = at(j, "series", 0), *points = json_object_get(s, "points");
    assert_true(json_array_size(points) <= REPORT_POINTS);
    assert_true(json_is_true(json_object_get(s, "reduced")));
    assert_int_equal(num(s, "total_points"), 1000000);
    for (size_t i = 0; i < json_array_size(points); i++)
        seen |= json_integer_value(json_array_get(json_array_get(points, i), 0)) == 777777;
    assert_true(seen);
    json_decref(j);
}

/* Node 0 is the root, i's parent is (i - 1) / 2; a parent has at least what its children have. */
static void node(void *ctx, uint64_t i, int64_t *parent, struct xp_span *name,
                 struct report_cell *c)
{
    (void)ctx;
    *parent = i ? (int64_t)(i - 1) / 2 : -1;
    *name = XP_SPAN_LIT("n");
    c[0] = report_of_u64(1000000 / (i + 1));
}

static void a_tree_keeps_its_heaviest_nodes_and_their_parents(void **state)
{
    struct rig g;
    (void)state;
    begin(&g, &(struct report_ask){.limit = XP_SPAN_LIT("100")});
    report_tree(&g.r, &(struct report_nodes){.id = "t",
                                             .columns = &columns[1],
                                             .ncolumns = 1,
                                             .n = 5000,
                                             .weight = 1,
                                             .node = node});
    json_t *j = end(&g), *t = json_object_get(j, "tree"), *nodes = json_object_get(t, "nodes");
    assert_int_equal(json_array_size(nodes), 100);
    assert_int_equal(num(t, "total_nodes"), 5000);
    for (size_t i = 0; i < 100; i++) {
        long long parent = num(json_array_get(nodes, i), "parent");
        assert_true(i ? parent >= 0 && parent < (long long)i : parent == -1);
    }
    json_decref(j);
}

static void a_missing_host_is_named_with_what_is_wrong(void **state)
{
    struct report_host hosts[2] = {{.name = XP_SPAN_LIT("a")}, {.name = XP_SPAN_LIT("b")}};
    struct rig g;
    (void)state;
    hosts[0].damage = (struct xp_error){.status = XP_CORRUPT, .offset = 50, .text = "cut off"};
    hosts[1].missing = (struct xp_error){.status = XP_CORRUPT, .offset = 12, .text = "no profile"};
    begin(&g, &(struct report_ask){.hosts = hosts, .nhosts = 2});
    json_t *j = end(&g);
    assert_int_equal(json_array_size(json_object_get(j, "hosts")), 1);
    assert_string_equal(json_string_value(json_object_get(at(j, "missing_hosts", 0), "code")),
                        "corrupt_profile");
    assert_int_equal(num(at(j, "missing_hosts", 0), "offset"), 12);
    assert_string_equal(json_string_value(json_object_get(at(j, "notes", 0), "code")),
                        "partial_profile");
    json_decref(j);
}

static void csv_is_the_table_asked_for_quoted(void **state)
{
    struct rig g;
    (void)state;
    begin(&g, &(struct report_ask){.csv = true, .table = XP_SPAN_LIT("rows")});
    report_u64(&g.r, "steps", 3, NULL);
    table(&g.r, 2);
    assert_int_equal(report_end(&g.r, XP_OK, &g.err), XP_OK);
    assert_buf_is(&g.out.text,
                  "\"name\",\"time (ps)\",\"rate (fraction)\"\r\n\"one\",1,0.1\r\n\"zero\",0,\r\n");
    out_fini(&g.out);
    xp_arena_free(g.a);
    begin(&g, &(struct report_ask){.csv = true, .table = XP_SPAN_LIT("nope")});
    table(&g.r, 2);
    assert_int_equal(report_end(&g.r, XP_OK, &g.err), XP_NOT_FOUND);
    out_fini(&g.out);
    xp_arena_free(g.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_and_the_rest_are_of_all_rows),
        cmocka_unit_test(rows_without_a_value_come_last_in_either_order),
        cmocka_unit_test(a_filter_finds_letters_of_either_case_and_keeps_the_totals),
        cmocka_unit_test(many_rows_stay_below_the_limit_of_bytes),
        cmocka_unit_test(arguments_that_are_no_numbers_are_refused),
        cmocka_unit_test(a_metric_that_is_no_number_has_a_reason),
        cmocka_unit_test(a_series_keeps_its_peak_however_much_it_is_reduced),
        cmocka_unit_test(a_tree_keeps_its_heaviest_nodes_and_their_parents),
        cmocka_unit_test(a_missing_host_is_named_with_what_is_wrong),
        cmocka_unit_test(csv_is_the_table_asked_for_quoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
