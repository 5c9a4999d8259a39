#include "tests/unit/tool_support.h"

enum { CHIP = 1, DEVICE, VALUE, WORDS, SETS };
static const char *const stat_names[] = {"global_chip_id", "device_id", "counter_value",
                                         "performance_counter_description",
                                         "performance_counter_sets"};

static void put_event(struct xp_buf *line, int64_t name, uint64_t value, const char *words)
{
    struct xp_buf e = make_event(name, 10, 5);
    put_u64(&e, 4, VALUE, value);
    if (words)
        put_text(&e, 4, WORDS, words);
    make_put(line, 4, &e);
}

static struct tool_file profile(const char *plane_name, bool with_chip)
{
    struct tool_file f = {"host-a", make_message()};
    struct xp_buf plane = make_plane(1, plane_name), line = make_line(7, "sample", 0);
    put_event(&line, 1, 255, "own words");
    put_event(&line, 2, 16, "own words");
    make_add_event(&line, 1, 20, 5); /* no value: no row */
    make_put(&plane, 3, &line);
    make_add_meta(&plane, 4, 1, "My_Counter");
    make_add_meta(&plane, 4, 2,
                  "VF_CHIP_SC_1_SCT_15_SC_STATS_COUNTERS_UNPRIVILEGED_COUNT_VECTOR_ISSUE");
    put_stat_names(&plane, stat_names, 5);
    if (with_chip) {
        put_u64(&plane, 6, DEVICE, 9);
        put_u64(&plane, 6, CHIP, 3);
    }
    make_put(&f.space, 1, &plane);
    return f;
}

static void each_value_is_a_row(void **state)
{
    (void)state;
    struct tool_file f = profile("/device:TPU:0", true);
    json_t *t = tool_ask("perf_counters", &f, 1, NULL);
    assert_int_equal(table_rows(t), 2);
    assert_string_equal(cell_text(t, 0, "Host"), "host-a");
    assert_true(cell_num(t, 0, "Chip") == 3);
    assert_string_equal(cell_text(t, 0, "Kernel"), "sample");
    assert_true(cell_num(t, 0, "Sample") == 7);
    assert_string_equal(cell_text(t, 0, "Counter"), "my_counter");
    assert_true(cell_num(t, 0, "Value") == 255);
    json_t *row = json_array_get(json_object_get(t, "rows"), 0);
    json_t *value = json_array_get(json_object_get(row, "c"), 5);
    assert_string_equal(json_string_value(json_object_get(value, "f")), "0xff");
    json_decref(t);
}

static void known_counters_have_xprofs_words_and_others_their_own(void **state)
{
    (void)state;
    struct tool_file f = profile("/device:TPU:0", true);
    json_t *t = tool_ask("perf_counters", &f, 1, NULL);
    assert_string_equal(cell_text(t, 0, "Description"), "own words");
    assert_non_null(strstr(cell_text(t, 1, "Description"), "undergoes vector issue"));
    assert_string_equal(cell_text(t, 1, "Set"), "activity issue vector");
    json_decref(t);
}

static void planes_without_a_chip_or_of_the_host_are_left_out(void **state)
{
    (void)state;
    struct tool_file f = profile("/device:TPU:0", false);
    json_t *t = tool_ask("perf_counters", &f, 1, NULL);
    assert_int_equal(table_rows(t), 0);
    json_decref(t);
    f = profile("/host:CPU", true);
    t = tool_ask("perf_counters", &f, 1, NULL);
    assert_int_equal(table_rows(t), 0);
    json_decref(t);
}

static void all_counters_of_a_chip_are_listed(void **state)
{
    static const char *const v6e[] = {"names_only=1", "device_type=v6e", NULL};
    static const char *const v7x[] = {"names_only=1", "device_type=v7x", NULL};
    static const char *const v5[] = {"names_only=1", "device_type=v5", NULL};
    (void)state;
    json_t *t = tool_ask("perf_counters", NULL, 0, v6e);
    assert_int_equal(json_array_size(t), 900);
    /* Places come in the order of their numbers' texts: 0, 10, 11, ... */
    json_t *second = json_array_get(t, 62 + 12);
    assert_string_equal(
        json_string_value(json_object_get(second, "name")),
        "vf_chip_hbm_0_hbmc_10_cmn_hi_freq_stats_counters_unprivileged_partial_write_req_ps0");
    assert_int_equal(json_integer_value(json_object_get(second, "val")), 3040952360);
    json_decref(t);
    t = tool_ask("perf_counters", NULL, 0, v7x);
    assert_int_equal(json_array_size(t), 2933);
    json_decref(t);
    assert_int_equal(tool_refuses("perf_counters", NULL, 0, v5), XP_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_value_is_a_row),
        cmocka_unit_test(known_counters_have_xprofs_words_and_others_their_own),
        cmocka_unit_test(planes_without_a_chip_or_of_the_host_are_left_out),
        cmocka_unit_test(all_counters_of_a_chip_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
