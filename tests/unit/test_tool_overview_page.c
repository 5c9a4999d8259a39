#include "tests/unit/steps_support.h"

static json_t *prop(json_t *tables, size_t table, const char *name)
{
    return json_object_get(json_object_get(json_array_get(tables, table), "p"), name);
}

static void a_run_is_told_in_seven_tables(void **state)
{
    (void)state;
    struct tool_file f = tpu_host("w", 0, 2);
    json_t *all = tool_ask("overview_page", &f, 1, NULL);
    assert_int_equal(json_array_size(all), 7);
    json_t *top = json_array_get(all, 0);
    assert_string_equal(cell_text(top, 0, "operation"), "fusion.1");
    double part = cell_num(top, 0, "selfTimePercent"); /* (40 + 50) of (80 + 80) ms */
    assert_true(part > 0.5624 && part < 0.5626);
    assert_says(prop(all, 0, "device_duty_cycle_percent"), "72.2%"); /* (120 + 140) of 2 * 180 ms */
    assert_says(prop(all, 0, "tc_active_ms_average"), "65.00");
    assert_says(prop(all, 2, "device_core_count"), "2");
    assert_says(prop(all, 2, "device_type"), "TPU v5 Lite");
    assert_int_equal(table_rows(json_array_get(all, 1)), 2);
    assert_int_equal(table_rows(json_array_get(all, 3)), 7);
    assert_int_equal(table_rows(json_array_get(all, 6)), 0);
    json_decref(all);
}

static void hosts_are_counted_by_name(void **state)
{
    (void)state;
    struct tool_file f[3] = {tpu_host("a", 0, 1), tpu_host("b", 0, 1), tpu_host("a", 0, 1)};
    json_t *all = tool_ask("overview_page", f, 3, NULL);
    assert_says(prop(all, 2, "host_count"), "2");
    assert_says(prop(all, 2, "task_count"), "3 (num tasks per host = 1)");
    assert_says(prop(all, 2, "device_core_count"), "6");
    json_decref(all);
}

static void what_the_profiler_complains_of_is_shown(void **state)
{
    (void)state;
    struct tool_file f = tpu_host("w", 0, 1);
    make_text(&f.space, 2, "zz broke");
    make_text(&f.space, 2, "a broke");
    make_text(&f.space, 3, "events were dropped");
    json_t *all = tool_ask("overview_page", &f, 1, NULL), *t = json_array_get(all, 6);
    assert_int_equal(table_rows(t), 3);
    assert_string_equal(cell_text(t, 0, "message"), "events were dropped");
    assert_string_equal(cell_text(t, 1, "message"), "a broke");
    assert_string_equal(cell_text(t, 2, "severity"), "ERROR");
    json_decref(all);
}

static void an_empty_profile_is_told_too(void **state)
{
    (void)state;
    struct tool_file f = {"h", make_message()};
    struct xp_buf plane = make_plane(1, "/host:CPU");
    make_put(&f.space, 1, &plane);
    json_t *all = tool_ask("overview_page", &f, 1, NULL);
    assert_says(prop(all, 3, "bottleneck"), "unknown");
    assert_says(prop(all, 2, "device_type"), "CPU");
    assert_int_equal(table_rows(json_array_get(all, 0)), 0);
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_told_in_seven_tables),
        cmocka_unit_test(hosts_are_counted_by_name),
        cmocka_unit_test(what_the_profiler_complains_of_is_shown),
        cmocka_unit_test(an_empty_profile_is_told_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
