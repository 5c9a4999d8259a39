/* What all findings say together, on profiles whose numbers are worked out by hand. */
#include "tests/unit/tool_support.h"

#define US INT64_C(1000000)
#define STEPS 4
#define STEP_US 1000

static const char *const stat_names[] = {"hlo_category", "flops", "bytes_accessed", "program_id",
                                         "symbol_id"};

struct op {
    const char *name, *category;
    int64_t us; /* of a step */
    uint64_t flops;
};

static void add_op(struct xp_buf *plane, int64_t id, const struct op *op)
{
    struct xp_buf stats = make_message();
    put_text(&stats, 5, 1, op->category);
    put_u64(&stats, 5, 2, op->flops);
    put_u64(&stats, 5, 3, 1000);
    put_u64(&stats, 5, 4, 7);
    put_u64(&stats, 5, 5, (uint64_t)id);
    put_meta(plane, id, op->name, op->name, &stats);
}

/* Steps of 1000 us, the ops of each one after the other from its begin. */
static struct xp_buf device(const struct op *ops, int64_t n)
{
    struct xp_buf plane = make_plane(1, "/device:TPU:0");
    struct xp_buf steps = make_line(1, "Steps", 0), line = make_line(2, "XLA Ops", 0);
    for (int64_t i = 0; i < STEPS; i++) {
        int64_t at = (1 + i) * STEP_US * US;
        make_add_event(&steps, 1, at, STEP_US * US);
        for (int64_t k = 0; k < n; at += ops[k++].us * US)
            make_add_event(&line, 2 + k, at, ops[k].us * US);
    }
    make_put(&plane, 3, &steps);
    make_put(&plane, 3, &line);
    make_add_meta(&plane, 4, 1, "step");
    for (int64_t k = 0; k < n; k++)
        add_op(&plane, 2 + k, &ops[k]);
    put_stat_names(&plane, stat_names, sizeof stat_names / sizeof *stat_names);
    return plane;
}

/* An allocator that had `used` of 1000 bytes. */
static struct xp_buf memory(int64_t used)
{
    static const char *const names[] = {
        "allocator_name", "bytes_allocated", "bytes_available", "allocation_bytes",
        "addr",           "bytes_reserved"};
    struct xp_buf plane = make_plane(2, "/host:CPU"), line = make_line(1, "t", 0);
    struct xp_buf e = make_event(1, 1500 * US, 0);
    put_text(&e, 4, 1, "hbm");
    put_i64(&e, 4, 2, used);
    put_i64(&e, 4, 3, 1000 - used);
    put_i64(&e, 4, 4, used);
    put_i64(&e, 4, 5, 1);
    put_i64(&e, 4, 6, 0);
    make_put(&line, 4, &e);
    make_put(&plane, 3, &line);
    make_add_meta(&plane, 4, 1, "MemoryAllocation");
    put_stat_names(&plane, names, sizeof names / sizeof *names);
    return plane;
}

static json_t *ask(const struct op *ops, int64_t n, int64_t used)
{
    static const char *const args[] = {"peak=flops=1e12", "peak=hbm=1e12", NULL};
    struct tool_file f = {"h", make_message()};
    if (n) {
        struct xp_buf plane = device(ops, n);
        make_put(&f.space, 1, &plane);
    }
    if (used) {
        struct xp_buf plane = memory(used);
        make_put(&f.space, 1, &plane);
    }
    return report_ask("smart_suggestion", &f, 1, args);
}

static const char *status_of(json_t *j)
{
    json_t *v = report_value(j, "status");
    return json_is_string(v) ? json_string_value(v) : "";
}

static double number(json_t *j, const char *table, size_t row, const char *column)
{
    return json_number_value(report_at(j, table, row, column));
}

static const char *text(json_t *j, const char *table, size_t row, const char *column)
{
    const char *s = json_string_value(report_at(j, table, row, column));
    return s ? s : "";
}

/* 0.7 of the flops that the device can do in the step. */
static const struct op good[] = {{"fusion.1", "convolution fusion", 980, 700000000}};

static void hardware_well_used_with_memory_left_is_optimal(void **state)
{
    json_t *j = ask(good, 1, 500);
    (void)state;
    assert_string_equal(status_of(j), "OPTIMAL");
    assert_in_range(report_rows(j, "summary"), 3, 5);
    for (size_t i = 0; i < report_rows(j, "gate"); i++)
        assert_true(json_is_true(report_at(j, "gate", i, "met")));
    json_decref(j);
}

/* What is whole, and not one that the capture cuts. */
static void the_mean_says_of_how_many_steps_it_is(void **state)
{
    char of[40];
    json_t *j = ask(good, 1, 500);
    (void)state;
    int whole = STEPS - 1; /* the last one ends with the capture */
    snprintf(of, sizeof of, "the mean of %d", whole);
    assert_non_null(strstr(text(j, "summary", 1, "sentence"), of));
    json_decref(j);
}

static void what_is_not_known_is_not_optimal(void **state)
{
    json_t *j = ask(good, 1, 0); /* no allocator */
    (void)state;
    assert_string_equal(status_of(j), "");
    assert_true(json_is_null(report_at(j, "gate", 3, "met")));
    assert_non_null(strstr(text(j, "summary", 0, "sentence"), "not known"));
    json_decref(j);
}

static void a_profile_without_a_device_has_too_little(void **state)
{
    json_t *j = ask(NULL, 0, 500);
    (void)state;
    assert_string_equal(status_of(j), "");
    assert_int_equal(report_rows(j, "findings"), 0);
    assert_in_range(report_rows(j, "summary"), 3, 5);
    json_decref(j);
}

static void weighty_findings_need_attention_and_show_what_they_are_from(void **state)
{
    static const struct op ops[] = {{"fusion.1", "convolution fusion", 500, 400000000},
                                    {"copy-done.2", "copy-done", 300, 0},
                                    {"copy-done.3", "copy-done", 100, 0}};
    json_t *j = ask(ops, 3, 960);
    (void)state;
    assert_string_equal(status_of(j), "NEEDS_ATTENTION");
    size_t copies = 0, memory = 0;
    for (size_t i = 0; i < report_rows(j, "findings"); i++) {
        copies = strcmp(text(j, "findings", i, "rule"), "copies") ? copies : i + 1;
        memory = strcmp(text(j, "findings", i, "rule"), "memory_near_limit") ? memory : i + 1;
    }
    assert_true(copies && memory);
    assert_string_equal(text(j, "findings", copies - 1, "priority"), "P0");
    assert_float_equal(number(j, "findings", copies - 1, "impact"),
                       number(j, "findings", copies - 1, "share") * STEP_US * US, 1);
    assert_string_equal(text(j, "findings", memory - 1, "priority"), "P0");
    assert_true(json_is_null(report_at(j, "findings", memory - 1, "impact")));
    double ops_of = 0, whole = 0;
    for (size_t i = 0; i < report_rows(j, "evidence"); i++) {
        if (strcmp(text(j, "evidence", i, "rule"), "copies") != 0)
            continue;
        bool op = *text(j, "evidence", i, "op") != 0;
        *(op ? &ops_of : &whole) += number(j, "evidence", i, "share");
        if (op)
            assert_string_equal(text(j, "evidence", i, "first_plane"), "/device:TPU:0");
    }
    assert_float_equal(ops_of, whole, 1e-9); /* there are two of them, both named */
    assert_float_equal(whole, number(j, "findings", copies - 1, "share"), 1e-9);
    json_decref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hardware_well_used_with_memory_left_is_optimal),
        cmocka_unit_test(the_mean_says_of_how_many_steps_it_is),
        cmocka_unit_test(what_is_not_known_is_not_optimal),
        cmocka_unit_test(a_profile_without_a_device_has_too_little),
        cmocka_unit_test(weighty_findings_need_attention_and_show_what_they_are_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
