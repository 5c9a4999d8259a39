#include "lib/base/regex.h"
#include "shard/tools/tpu_counters.h"
#include "shard/tools/tpu_units.h"
#include "tests/unit/tool_support.h"

/* Reports of counters: chips side by side, what changed, one counter, units and what they are. */

enum { DEVICE = 1, TYPE, VALUE, ID };
static const char *const stat_names[] = {"device_id", "device_type_string", "counter_value",
                                         "performance_counter_id"};
#define TCS_V6E 3257466888u /* the first counter of a v6e's TensorCore: its cycles */

/* A chip with two samples: 7 has a = first, b = 5; 8 has a = second, b = 0. */
static void put_chip(struct tool_file *f, int64_t id, uint64_t first, uint64_t second)
{
    struct xp_buf plane = make_plane(id + 1, "/device:TPU:0");
    for (int64_t sample = 7; sample < 9; sample++) {
        struct xp_buf line = make_line(sample, sample == 7 ? "counters_k" : "counters_l", 0);
        for (int64_t name = 1; name < 3; name++) {
            struct xp_buf e = make_event(name, 1, 5);
            uint64_t a = sample == 7 ? first : second, b = sample == 7 ? 5 : 0;
            put_u64(&e, 4, VALUE, name == 1 ? a : b);
            put_u64(&e, 4, ID, TCS_V6E + (name == 1 ? 0 : 1));
            make_put(&line, 4, &e);
        }
        make_put(&plane, 3, &line);
    }
    make_add_meta(&plane, 4, 1, "A");
    make_add_meta(&plane, 4, 2, "B");
    put_stat_names(&plane, stat_names, 4);
    put_u64(&plane, 6, DEVICE, (uint64_t)id);
    put_text(&plane, 6, TYPE, "TPU v6 Lite");
    make_put(&f->space, 1, &plane);
}

static json_t *ask(const char *tool, const char *const *args)
{
    struct tool_file f = {"h", make_message()};
    put_chip(&f, 0, 100, 90);
    put_chip(&f, 1, 80, 95);
    return report_ask(tool, &f, 1, args);
}

static json_int_t whole(json_t *j, const char *table, size_t row, const char *column)
{
    json_t *v = report_at(j, table, row, column);
    assert_true(json_is_integer(v));
    return json_integer_value(v);
}

static void chips_stand_side_by_side(void **state)
{
    (void)state;
    json_t *j = ask("perf_counters", (const char *const[]){"beside=chips", NULL});
    assert_int_equal(report_rows(j, "chips"), 2);
    assert_int_equal(whole(j, "chips", 0, "0"), 100);
    assert_int_equal(whole(j, "chips", 0, "1"), 80);
    assert_float_equal(json_number_value(report_at(j, "chips", 0, "spread")), 0.2, 1e-9);
    assert_int_equal(report_rows(j, "samples"), 2);
    assert_int_equal(whole(j, "samples", 0, "devices"), 2);
    json_decref(j);
}

static void what_changed_between_samples_may_be_less_than_0(void **state)
{
    (void)state;
    json_t *j = ask("perf_counters", (const char *const[]){"sample=8", "against=7", NULL});
    assert_int_equal(whole(j, "chips", 0, "0"), -10);
    assert_int_equal(whole(j, "chips", 0, "1"), 15);
    assert_int_equal(whole(j, "chips", 1, "1"), -5); /* 0 now, but it was not */
    json_decref(j);
}

static void one_counter_is_told_of_all_chips_and_samples_whatever_is_filtered(void **state)
{
    (void)state;
    json_t *j =
        ask("perf_counters", (const char *const[]){"counter=b", "filter=/^a$/", "limit=1", NULL});
    assert_int_equal(report_rows(j, "counter"), 4);
    assert_int_equal(whole(j, "counter", 1, "value"), 0);
    assert_int_equal(whole(j, "counter", 1, "change"), -5);
    assert_true(json_is_null(report_at(j, "counter", 2, "change"))); /* the next chip's first */
    assert_string_equal(json_string_value(report_at(j, "counter", 0, "hex")), "0x5");
    assert_int_equal(report_rows(j, "counters"), 1);
    json_decref(j);
    j = ask("perf_counters", (const char *const[]){"counter=none", NULL});
    assert_true(report_notes(j, "no_such_counter"));
    json_decref(j);
}

/* --- units --- */

static double busy(json_t *j, const char *unit, const char *device)
{
    for (size_t i = 0; i < report_rows(j, "matrix"); i++)
        if (strcmp(json_string_value(report_at(j, "matrix", i, "unit")), unit) == 0)
            return json_number_value(report_at(j, "matrix", i, device));
    fail_msg("no unit %s", unit);
    return -1;
}

static void units_stand_against_devices_and_samples_against_each_other(void **state)
{
    struct tool_file f = {"h", make_message()};
    struct xp_buf plane = make_plane(1, "/device:TPU:0");
    static const uint64_t ids[] = {TCS_V6E, TCS_V6E + 80}; /* cycles, scalar instructions */
    static const uint64_t values[2][2] = {{1000, 400}, {1000, 100}};
    (void)state;
    for (int s = 0; s < 2; s++) {
        struct xp_buf line = make_line(7 + s, "counters_k", 0);
        for (int i = 0; i < 2; i++) {
            struct xp_buf e = make_event(1, 0, 5);
            put_u64(&e, 4, VALUE, values[s][i]);
            put_u64(&e, 4, ID, ids[i]);
            make_put(&line, 4, &e);
        }
        make_put(&plane, 3, &line);
    }
    make_add_meta(&plane, 4, 1, "a counter");
    put_stat_names(&plane, stat_names, 4);
    put_u64(&plane, 6, DEVICE, 5);
    put_text(&plane, 6, TYPE, "TPU v6 Lite");
    make_put(&f.space, 1, &plane);
    struct tool_file again = {"h", make_message()};
    xp_buf_span(&again.space, xp_buf_all(&f.space));
    json_t *j = report_ask("utilization_viewer", &f, 1, NULL);
    assert_float_equal(busy(j, "Scalar Unit", "5"), 0.2, 1e-9);
    assert_int_equal(report_rows(j, "meanings"), report_rows(j, "matrix"));
    assert_int_equal(report_rows(j, "samples"), 2);
    json_decref(j);
    j = report_ask("utilization_viewer", &again, 1,
                   (const char *const[]){"sample=8", "against=7", NULL});
    assert_float_equal(busy(j, "Scalar Unit", "5"), -0.15, 1e-9);
    json_decref(j);
}

static bool some_name_fits(json_t *names, const struct xp_regex *r)
{
    size_t i;
    json_t *x;
    json_array_foreach(names, i, x) if (xp_regex_find(
                                            r, xp_span_str(json_string_value(
                                                   json_object_get(x, "name"))))) return true;
    return false;
}

static void each_unit_of_each_chip_has_a_meaning_and_counters_behind_it(void **state)
{
    static const char *const chips[TPU_CHIPS] = {"device_type=v6e", "device_type=v7x"};
    static struct tpu_metric m[TPU_METRICS_MAX];
    static struct xp_regex r;
    (void)state;
    for (int chip = 0; chip < TPU_CHIPS; chip++) {
        json_t *names = tool_ask("perf_counters", NULL, 0,
                                 (const char *const[]){"names_only=1", chips[chip], NULL});
        size_t n = json_array_size(names);
        struct tpu_counter_value *v = calloc(n, sizeof *v);
        for (size_t i = 0; i < n; i++)
            v[i] = (struct tpu_counter_value){
                (uint64_t)json_integer_value(json_object_get(json_array_get(names, i), "val")), 1};
        struct tpu_counter_values values = {v, n};
        for (size_t i = 1; i < n; i++) /* sorted, as tpu_metrics wants them */
            for (size_t k = i; k && v[k - 1].id > v[k].id; k--) {
                struct tpu_counter_value swap = v[k];
                v[k] = v[k - 1];
                v[k - 1] = swap;
            }
        size_t metrics = tpu_metrics((enum tpu_chip)chip, &values, m);
        assert_true(metrics > 40);
        for (size_t i = 0; i < metrics; i++) {
            const struct tpu_unit *u = tpu_unit_of(m[i].name);
            struct xp_error err;
            if (!u)
                fail_msg("no word about %s", m[i].name);
            assert_int_equal(xp_regex_parse(&r, xp_span_str(u->counters), &err), XP_OK);
            if (!some_name_fits(names, &r))
                fail_msg("%s: no counter of the chip is called %s", u->name, u->counters);
        }
        free(v);
        json_decref(names);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chips_stand_side_by_side),
        cmocka_unit_test(what_changed_between_samples_may_be_less_than_0),
        cmocka_unit_test(one_counter_is_told_of_all_chips_and_samples_whatever_is_filtered),
        cmocka_unit_test(units_stand_against_devices_and_samples_against_each_other),
        cmocka_unit_test(each_unit_of_each_chip_has_a_meaning_and_counters_behind_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
