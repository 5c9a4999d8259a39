#include "tests/unit/steps_support.h"

static json_t *prop(json_t *tables, size_t table, const char *name)
{
    return json_object_get(json_object_get(json_array_get(tables, table), "p"), name);
}

static void near(double have, double want)
{
    if (have < want - 1e-9 || have > want + 1e-9)
        fail_msg("have %.12g, want %.12g", have, want);
}

static void a_step_is_told_over_its_cores(void **state)
{
    (void)state;
    struct tool_file f = tpu_host("w", 0, 2);
    json_t *all = tool_ask("input_pipeline_analyzer", &f, 1, NULL), *t = json_array_get(all, 1);
    assert_int_equal(json_array_size(all), 5);
    assert_int_equal(table_rows(t), 2);
    assert_string_equal(cell_text(t, 1, "stepnum"), "1");
    near(cell_num(t, 0, "tcComputeTimeMs"), 60); /* of the core that waits most */
    near(cell_num(t, 0, "tcInfeedTimeMs"), 20);
    near(cell_num(t, 0, "tcOutfeedTimeMs"), 0);
    near(cell_num(t, 0, "tcIdleTimeMs"), 20);
    near(cell_num(t, 0, "infeedPercentAverage"), 15);
    near(cell_num(t, 0, "infeedPercentMin"), 10);
    near(cell_num(t, 0, "infeedPercentMax"), 20);
    assert_string_equal(cell_text(t, 0, "tooltip"),
                        "step 0:\nTime waiting for input data = 20.000 ms, Step time = 100.000 ms");
    assert_says(prop(all, 1, "tc_active_ms_average"), "65.00");
    assert_says(prop(all, 1, "steptime_ms_average"), "100.00");
    assert_says(prop(all, 1, "input_conclusion"),
                "Your program is HIGHLY input-bound because 20.0%");
    json_decref(all);
}

static void the_core_that_waits_most_is_named(void **state)
{
    (void)state;
    struct tool_file f = tpu_host("w", 0, 1);
    json_t *all = tool_ask("input_pipeline_analyzer", &f, 1, NULL), *t = json_array_get(all, 0);
    assert_string_equal(cell_text(t, 1, "0"), "w:0");
    json_decref(all);
}

static void hosts_have_the_steps_they_share(void **state)
{
    (void)state;
    struct tool_file f[2] = {tpu_host("a", 0, 4), tpu_host("b", 2, 3)};
    json_t *all = tool_ask("input_pipeline_analyzer", f, 2, NULL), *t = json_array_get(all, 1);
    assert_int_equal(table_rows(t), 2);
    assert_string_equal(cell_text(t, 0, "stepnum"), "0"); /* counted anew */
    assert_int_equal(table_rows(json_array_get(all, 4)), 0);
    json_decref(all);
}

static void hosts_that_share_no_step_are_told_so(void **state)
{
    (void)state;
    struct tool_file f[3] = {tpu_host("a", 10, 3), tpu_host("b", 8, 3), tpu_host("c", 12, 3)};
    json_t *all = tool_ask("input_pipeline_analyzer", f, 3, NULL);
    assert_int_equal(table_rows(json_array_get(all, 1)), 0);
    assert_non_null(strstr(cell_text(json_array_get(all, 4), 0, "message"), "intersection"));
    json_decref(all);
}

static void a_profile_without_steps_says_what_to_do(void **state)
{
    (void)state;
    struct tool_file f = {"h", make_message()};
    struct xp_buf plane = make_plane(1, "/host:CPU");
    make_put(&f.space, 1, &plane);
    json_t *all = tool_ask("input_pipeline_analyzer", &f, 1, NULL);
    assert_int_equal(json_array_size(json_object_get(json_array_get(all, 0), "cols")), 0);
    assert_int_equal(table_rows(json_array_get(all, 1)), 0);
    assert_int_equal(table_rows(json_array_get(all, 3)), 5);
    assert_string_equal(cell_text(json_array_get(all, 4), 0, "severity"), "WARNING");
    assert_says(prop(all, 1, "hardware_type"), "CPU_ONLY");
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_told_over_its_cores),
        cmocka_unit_test(the_core_that_waits_most_is_named),
        cmocka_unit_test(hosts_have_the_steps_they_share),
        cmocka_unit_test(hosts_that_share_no_step_are_told_so),
        cmocka_unit_test(a_profile_without_steps_says_what_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
