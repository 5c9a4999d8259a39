#include "tests/unit/tool_support.h"

#define US INT64_C(1000000)

static const char *const stat_names[] = {"device_duration_ps"};

/* Five steps of 1000 us; in each the core waits `us` at a barrier, in the outer two all the time.
 */
static struct tool_file profile(const char *host, int64_t us)
{
    struct tool_file f = {host, make_message()};
    struct xp_buf plane = make_plane(1, "/device:TPU:0");
    struct xp_buf steps = make_line(1, "Steps", 0), ops = make_line(2, "XLA Ops", 0);
    for (int i = 0; i < 5; i++) {
        int64_t at = 1000 * US * (i + 1), waits = i == 0 || i == 4 ? 900 * US : us * US;
        make_add_event(&steps, 1, at, 1000 * US);
        struct xp_buf e = make_event(2, at + US, waits);
        put_u64(&e, 4, 1, (uint64_t)waits);
        make_put(&ops, 4, &e);
        struct xp_buf dummy = make_event(2, at + 999 * US, 1250);
        put_u64(&dummy, 4, 1, 1250);
        make_put(&ops, 4, &dummy);
    }
    make_put(&plane, 3, &steps);
    make_put(&plane, 3, &ops);
    make_add_meta(&plane, 4, 1, "step");
    make_add_meta(&plane, 4, 2, "barrier-cores.7");
    put_stat_names(&plane, stat_names, 1);
    make_put(&f.space, 1, &plane);
    make_text(&f.space, 4, host);
    return f;
}

static const char *suggestion(json_t *j)
{
    json_t *list = json_object_get(j, "suggestions");
    assert_int_equal(json_array_size(list), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "ruleName")),
                        "BarrierCoresRule");
    return json_string_value(json_object_get(json_array_get(list, 0), "suggestionText"));
}

static void much_waiting_at_barriers_is_told(void **state)
{
    (void)state;
    struct tool_file f = profile("a", 250);
    json_t *j = tool_ask("smart_suggestion", &f, 1, NULL);
    assert_non_null(strstr(suggestion(j), "an average of 25.0% of each step time"));
    assert_non_null(strstr(suggestion(j), "Investigate Workload Balance"));
    json_decref(j);
}

static void little_is_not(void **state)
{
    (void)state;
    struct tool_file f = profile("a", 90);
    json_t *j = tool_ask("smart_suggestion", &f, 1, NULL);
    assert_int_equal(json_array_size(json_object_get(j, "suggestions")), 0);
    json_decref(j);
}

static void a_host_that_stands_out_is_named(void **state)
{
    (void)state;
    struct tool_file f[3] = {profile("even-0", 200), profile("even-1", 200), profile("odd", 600)};
    json_t *j = tool_ask("smart_suggestion", f, 3, NULL);
    assert_non_null(strstr(suggestion(j), "<li>Host <b>odd</b> average barrier-cores time "
                                          "fraction: <b>60.0%</b></li>"));
    assert_null(strstr(suggestion(j), "even-0"));
    json_decref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(much_waiting_at_barriers_is_told),
        cmocka_unit_test(little_is_not),
        cmocka_unit_test(a_host_that_stands_out_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
