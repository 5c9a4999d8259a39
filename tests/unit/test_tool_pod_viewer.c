#include "tests/unit/steps_support.h"

static json_t *steps_of(json_t *all)
{
    return json_object_get(json_object_get(all, "podStatsSequence"), "podStatsMap");
}

static json_t *core_of(json_t *all, size_t step, const char *core)
{
    json_t *cores = json_object_get(json_array_get(steps_of(all), step), "podStatsPerCore");
    return json_object_get(cores, core);
}

static void assert_us(json_t *core, const char *kind, double want)
{
    json_t *v = json_object_get(json_object_get(core, "stepBreakdownUs"), kind);
    double have = json_number_value(v);
    if (!v || have < want - 1e-6 || have > want + 1e-6)
        fail_msg("%s: have %.9g, want %.9g", kind, have, want);
}

static void each_core_has_its_times(void **state)
{
    (void)state;
    struct tool_file f = tpu_host("w", 0, 1);
    json_t *all = tool_ask("pod_viewer", &f, 1, NULL), *core = core_of(all, 0, "1");
    assert_us(core, "1", 40000); /* compute */
    assert_us(core, "3", 20000); /* collectives */
    assert_us(core, "6", 20000); /* input */
    assert_us(core, "9", 20000); /* the rest */
    assert_us(core, "2", 0);
    assert_says(json_object_get(core, "bottleneck"), "Device compute");
    assert_says(json_object_get(core, "hostName"), "w");
    assert_us(core_of(all, 0, "2"), "1", 50000);
    json_decref(all);
}

static void cores_of_several_hosts_keep_apart(void **state)
{
    (void)state;
    struct tool_file f[2] = {tpu_host("a", 0, 2), tpu_host("b", 0, 2)};
    json_t *all = tool_ask("pod_viewer", f, 2, NULL);
    assert_int_equal(json_array_size(steps_of(all)), 2);
    assert_says(json_object_get(core_of(all, 1, "2"), "hostName"), "a");
    assert_says(json_object_get(core_of(all, 1, "1001"), "hostName"), "b");
    json_decref(all);
}

static void a_profile_without_steps_warns(void **state)
{
    (void)state;
    struct tool_file f = tpu_host("w", 0, 0);
    json_t *all = tool_ask("pod_viewer", &f, 1, NULL);
    json_t *warnings = json_object_get(json_object_get(all, "diagnostics"), "warnings");
    assert_int_equal(json_array_size(warnings), 1);
    assert_says(json_array_get(warnings, 0), "No step marker observed");
    assert_int_equal(json_array_size(json_object_get(all, "stepBreakdownEvents")), 9);
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_core_has_its_times),
        cmocka_unit_test(cores_of_several_hosts_keep_apart),
        cmocka_unit_test(a_profile_without_steps_warns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
