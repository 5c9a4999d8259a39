#include "tests/unit/tool_support.h"

/* The report of custom kernels, on a plane whose numbers are worked out by hand. */

enum {
    CATEGORY = 1,
    PROGRAM,
    SOURCE,
    STACK,
    BUNDLE,
    DETAILS,
    INFO,
    SCOPES,
    PRIMITIVE,
    SHARE,
    LONG
};
static const char *const stat_names[] = {
    "hlo_category", "program_id", "source",           "source_stack", "bundle_number", "details",
    "source_info",  "llo_scopes", "pallas_primitive", "% util",       "long_name"};

enum { KERNEL = 1, OTHER, FUSION, MATMUL, ADD, LOAD, WAIT, RUN, INNER, MXU, XLU, POINT_A, POINT_B };

/* Runs of k.1: [1000, 1100), [2000, 2200), [3000, 3150); of k.2: [4000, 4010). */
static void put_ops(struct xp_buf *plane)
{
    struct xp_buf line = make_line(1, "XLA Ops", 0);
    make_add_event(&line, KERNEL, 1000, 100);
    make_add_event(&line, FUSION, 1200, 500);
    make_add_event(&line, KERNEL, 2000, 200);
    make_add_event(&line, KERNEL, 3000, 150);
    make_add_event(&line, OTHER, 4000, 10);
    make_put(plane, 3, &line);
}

static void put_op_names(struct xp_buf *plane)
{
    struct xp_buf s = make_message();
    put_text(&s, 5, CATEGORY, "custom-call");
    put_u64(&s, 5, PROGRAM, UINT64_C(17342868964687645945));
    put_text(&s, 5, SOURCE, "a.py:7");
    put_text(&s, 5, STACK, "a.py:7:inner\nb.py:9:12\n");
    put_meta(plane, KERNEL,
             "%k.1 = f32[8]{0} custom-call(f32[8]{0} %x), custom_call_target=\"tpu_custom_call\"",
             "k.1", &s);
    put_meta(plane, OTHER, "%k.2 = (f32[8]{0}, u32[]) custom-call(f32[8]{0} %x)", NULL, NULL);
    put_meta(plane, FUSION, "%fusion.3 = f32[8]{0} fusion(f32[8]{0} %custom-call.4)", NULL, NULL);
    make_add_meta(plane, 4, MATMUL, "vmatmul");
    make_add_meta(plane, 4, ADD, "sadd");
    make_add_meta(plane, 4, LOAD, "vld");
    make_add_meta(plane, 4, WAIT, "ep_wait_in");
    make_add_meta(plane, 4, RUN, "ep_run_kernel");
    make_add_meta(plane, 4, INNER, "init");
    make_add_meta(plane, 4, MXU, "MXU");
    make_add_meta(plane, 4, XLU, "XLU");
    make_add_meta(plane, 4, POINT_A, "bundle.1");
    make_add_meta(plane, 4, POINT_B, "bundle.2");
}

static void put_instruction(struct xp_buf *line, int64_t name, int64_t at, int64_t lasts,
                            uint64_t bundle, const char *source)
{
    struct xp_buf e = make_event(name, at, lasts);
    put_u64(&e, 4, BUNDLE, bundle);
    put_text(&e, 4, DETAILS, name == LOAD ? "%v = vld [#allocation1_spill]" : "");
    if (source) {
        put_text(&e, 4, INFO, source);
        put_text(&e, 4, PRIMITIVE, "dot_general");
        put_text(&e, 4, SCOPES, "[\"k\", \"scores\"]");
    }
    make_put(line, 4, &e);
}

/* In the second run; one instruction begins before it, one lasts beyond it. */
static void put_instructions(struct xp_buf *plane)
{
    struct xp_buf mxu = make_line(11, "MXU0 Instructions", 0),
                  salu = make_line(12, "SALU Instructions", 0),
                  vld = make_line(13, "VLD Instructions", 0);
    put_instruction(&mxu, MATMUL, 2020, 10, 5, "a.py:1 (dot_general)");
    put_instruction(&mxu, MATMUL, 2025, 10, 6, "a.py:1 (dot_general)");
    put_instruction(&mxu, MATMUL, 2190, 40, 5, NULL);
    struct xp_buf twin = make_line(14, "SALU Instructions", 0); /* at once with the other */
    put_instruction(&twin, ADD, 1995, 8, 1, NULL);
    put_instruction(&salu, ADD, 1990, 15, 1, NULL);
    put_instruction(&salu, ADD, 2020, 5, 5, NULL);
    put_instruction(&vld, LOAD, 2050, 10, 7, NULL);
    make_put(plane, 3, &mxu);
    make_put(plane, 3, &salu);
    make_put(plane, 3, &vld);
    make_put(plane, 3, &twin);
}

static void put_share(struct xp_buf *line, int64_t name, int64_t at, int64_t lasts, double share)
{
    struct xp_buf e = make_event(name, at, lasts);
    put_double(&e, 4, SHARE, share);
    make_put(line, 4, &e);
}

static void put_point(struct xp_buf *line, int64_t name, int64_t at, const char *text)
{
    struct xp_buf e = make_event(name, at, 0);
    put_text(&e, 4, LONG, text);
    make_put(line, 4, &e);
}

/* In the third run; in the first one region outlasts the one that it begins in. */
static void put_regions(struct xp_buf *plane)
{
    struct xp_buf regions = make_line(21, "XLA TraceMe", 0),
                  shares = make_line(22, "_counters_", 0), points = make_line(23, "Tensor Core", 0);
    make_add_event(&regions, WAIT, 1000, 50);
    make_add_event(&regions, RUN, 1040, 60);
    make_add_event(&regions, WAIT, 3000, 60);
    make_add_event(&regions, RUN, 3060, 80);
    make_add_event(&regions, INNER, 3070, 30);
    put_share(&shares, XLU, 2900, 10, 0); /* none since: it still is */
    put_share(&shares, MXU, 3000, 100, 50);
    put_share(&shares, MXU, 3100, 1000, 20);
    put_point(&points, POINT_A, 3010, "[1]  0x1f: bundle.1");
    put_point(&points, POINT_B, 3050, "[2]  0x2a: bundle.2");
    put_point(&points, POINT_A, 3110, "[1]  0x1f: bundle.1");
    make_put(plane, 3, &regions);
    make_put(plane, 3, &shares);
    make_put(plane, 3, &points);
}

static struct tool_file profile(const char *host, bool instructions, bool regions)
{
    struct tool_file f = {host, make_message()};
    struct xp_buf plane = make_plane(1, "/device:TPU:0");
    put_ops(&plane);
    if (instructions)
        put_instructions(&plane);
    if (regions)
        put_regions(&plane);
    put_op_names(&plane);
    put_stat_names(&plane, stat_names, sizeof stat_names / sizeof *stat_names);
    make_put(&f.space, 1, &plane);
    return f;
}

static json_t *ask(bool instructions, bool regions, const char *const *args)
{
    struct tool_file f = profile("h", instructions, regions);
    return report_ask("kernel_utilization", &f, 1, args);
}

static json_int_t whole(json_t *j, const char *table, size_t row, const char *column)
{
    json_t *v = report_at(j, table, row, column);
    assert_true(json_is_integer(v));
    return json_integer_value(v);
}

static bool is_text(json_t *v, const char *text)
{
    return json_is_string(v) && strcmp(json_string_value(v), text) == 0;
}

enum { WORK, DMA_IN, DMA_OUT, DMA, SYNC, WAITS, VMEM, SPILL, SCALAR, GAP, REGION, UNRECORDED };

static json_int_t cause(json_t *j, size_t row)
{
    return whole(j, "stalls", row, "time");
}

static void kernels_are_the_custom_calls_of_the_ops(void **state)
{
    json_t *j = ask(false, false, NULL);
    (void)state;
    assert_int_equal(report_rows(j, "calls"), 2); /* an operand's name makes no kernel */
    assert_true(is_text(report_at(j, "calls", 0, "op"), "k.1"));
    assert_int_equal(whole(j, "calls", 0, "time"), 450);
    assert_int_equal(whole(j, "calls", 0, "occurrences"), 3);
    assert_int_equal(whole(j, "calls", 0, "min_time"), 100);
    assert_int_equal(whole(j, "calls", 0, "max_time"), 200);
    assert_int_equal(whole(j, "calls", 0, "recorded"), 0);
    assert_true(is_text(report_at(j, "calls", 0, "program_id"), "17342868964687645945"));
    assert_true(is_text(report_at(j, "calls", 0, "target"), "tpu_custom_call"));
    assert_true(is_text(report_at(j, "calls", 1, "op"), "k.2"));
    assert_true(json_is_null(report_at(j, "calls", 1, "program_id")));
    assert_int_equal(report_rows(j, "stack"), 2);
    assert_true(is_text(report_at(j, "stack", 0, "source"), "a.py:7"));
    assert_true(is_text(report_at(j, "stack", 0, "function"), "inner"));
    assert_true(is_text(report_at(j, "stack", 1, "source"), "b.py:9")); /* 12 is a column */
    assert_true(json_is_null(report_at(j, "stack", 1, "function")));
    json_decref(j);
}

static void
without_lines_of_its_inside_all_is_unrecorded_and_it_is_said_how_to_have_them(void **state)
{
    json_t *j = ask(false, false, NULL);
    (void)state;
    assert_int_equal(json_integer_value(report_value(j, "kernel_run_time")), 150); /* the middle */
    assert_true(json_is_null(report_value(j, "kernel_wait_fraction")));
    assert_true(json_is_null(report_value(j, "kernel_bundles")));
    assert_float_equal(json_number_value(report_value(j, "kernel_recorded_fraction")), 0, 0);
    assert_true(json_is_null(report_at(j, "stalls", WORK, "time")));
    assert_true(json_is_string(report_at(j, "stalls", WORK, "reason")));
    assert_int_equal(cause(j, UNRECORDED), 150);
    assert_true(report_notes(j, "kernel_inside_none"));
    assert_int_equal(json_array_size(json_object_get(j, "series")), 0);
    json_decref(j);
}

static void instructions_tell_units_bundles_and_source(void **state)
{
    json_t *j = ask(true, true, NULL);
    (void)state;
    /* Of all runs the one with instructions. */
    assert_int_equal(json_integer_value(report_value(j, "kernel_run_time")), 200);
    assert_int_equal(json_integer_value(report_value(j, "kernel_instructions")), 5);
    assert_int_equal(json_integer_value(report_value(j, "kernel_bundles")), 4);
    assert_int_equal(report_rows(j, "unit_times"), 3);
    assert_true(is_text(report_at(j, "unit_times", 0, "unit"), "MXU0"));
    assert_int_equal(whole(j, "unit_times", 0, "busy"), 25); /* 2020 to 2035, 2190 to 2200 */
    assert_int_equal(whole(j, "unit_times", 0, "instructions"), 3);
    assert_int_equal(whole(j, "unit_times", 1, "busy"), 10); /* 2000 to 2005, 2020 to 2025 */
    assert_int_equal(whole(j, "unit_times", 1, "instructions"), 1);
    assert_int_equal(cause(j, WORK), 25);
    assert_int_equal(cause(j, SCALAR), 5);
    assert_int_equal(cause(j, SPILL), 10);
    assert_int_equal(cause(j, VMEM), 0);
    assert_int_equal(cause(j, GAP), 160); /* the record ends with the run */
    assert_int_equal(cause(j, UNRECORDED), 0);
    /* From a bundle's begin to the next one's: 5 from 2020 and from 2190. */
    assert_int_equal(report_rows(j, "bundles"), 3);
    assert_int_equal(whole(j, "bundles", 0, "bundle"), 7);
    assert_int_equal(whole(j, "bundles", 0, "time"), 140);
    assert_int_equal(whole(j, "bundles", 1, "bundle"), 6);
    assert_int_equal(whole(j, "bundles", 1, "time"), 25);
    assert_int_equal(whole(j, "bundles", 2, "time"), 15);
    assert_int_equal(whole(j, "bundles", 2, "runs"), 2);
    assert_float_equal(json_number_value(report_at(j, "bundles", 2, "instructions")), 1.5, 1e-9);
    assert_true(is_text(report_at(j, "bundles", 2, "source"), "a.py:1 (dot_general)"));
    assert_int_equal(whole(j, "sources", 0, "count"), 3);
    assert_true(json_is_null(report_at(j, "sources", 0, "source")));
    assert_true(is_text(report_at(j, "sources", 1, "scopes"), "k > scores"));
    assert_float_equal(json_number_value(report_value(j, "kernel_sourced_fraction")), 0.4, 1e-9);
    json_decref(j);
}

static void regions_tell_what_it_waited_for_and_the_schedule_holds_until_it_changes(void **state)
{
    json_t *j = ask(true, true, (const char *const[]){"kernel=k.1", "occurrence=3", NULL});
    (void)state;
    assert_int_equal(json_integer_value(report_value(j, "kernel_run_time")), 150);
    assert_int_equal(cause(j, DMA_IN), 60);
    assert_int_equal(cause(j, REGION), 80);
    assert_int_equal(cause(j, UNRECORDED), 10);
    assert_true(json_is_null(report_at(j, "stalls", WORK, "time")));
    assert_float_equal(json_number_value(report_value(j, "kernel_wait_fraction")), 60.0 / 140,
                       1e-9);
    assert_int_equal(report_rows(j, "regions"), 3);
    assert_true(is_text(report_at(j, "regions", 0, "region"), "ep_run_kernel"));
    assert_int_equal(whole(j, "regions", 0, "own_time"), 50);
    assert_true(is_text(report_at(j, "regions", 2, "region"), "ep_run_kernel > init"));
    assert_true(is_text(report_at(j, "regions", 1, "waits"), "input copies"));
    /* 100 ps at 50 %, 50 at 20 %: the last one is cut to the run. XLU was 0 before. */
    assert_int_equal(report_rows(j, "unit_times"), 2);
    for (size_t i = 0; i < 2; i++)
        assert_float_equal(json_number_value(report_at(j, "unit_times", i, "schedule")),
                           is_text(report_at(j, "unit_times", i, "unit"), "MXU") ? 0.4 : 0, 1e-9);
    assert_true(report_notes(j, "kernel_schedule"));
    /* begin to 0x1f: 10; 0x1f to 0x2a: 40; 0x2a to 0x1f: 60; 0x1f to the end: 40. */
    assert_int_equal(report_rows(j, "code"), 4);
    assert_true(is_text(report_at(j, "code", 0, "from"), "0x2a"));
    assert_int_equal(whole(j, "code", 0, "time"), 60);
    assert_true(is_text(report_at(j, "code", 3, "from"), "begin"));
    assert_int_equal(whole(j, "code", 3, "time"), 10);
    json_decref(j);
}

static void a_region_that_outlasts_another_is_not_inside_it_and_keeps_its_time(void **state)
{
    json_t *j = ask(true, true, (const char *const[]){"kernel=k.1", "occurrence=1", NULL});
    (void)state;
    assert_int_equal(report_rows(j, "regions"), 2);
    assert_true(is_text(report_at(j, "regions", 0, "region"), "ep_run_kernel"));
    assert_int_equal(whole(j, "regions", 0, "own_time"), 60);
    assert_int_equal(whole(j, "regions", 1, "own_time"), 40);
    assert_int_equal(cause(j, DMA_IN), 40);
    assert_int_equal(cause(j, REGION), 60);
    assert_int_equal(cause(j, UNRECORDED), 0);
    json_decref(j);
}

static void a_kernel_is_found_by_its_name_without_its_number(void **state)
{
    json_t *j = ask(true, false, (const char *const[]){"kernel=k.77", NULL});
    (void)state;
    assert_true(is_text(report_value(j, "kernel_name"), "k.1")); /* told better than k.2 */
    assert_true(report_notes(j, "kernel_like"));
    json_decref(j);
    j = ask(true, false, (const char *const[]){"kernel=k.2", NULL});
    assert_true(is_text(report_value(j, "kernel_name"), "k.2"));
    assert_false(report_notes(j, "kernel_like"));
    json_decref(j);
}

static void what_is_preferred_need_not_be_there(void **state)
{
    json_t *j = ask(true, false, (const char *const[]){"prefer=k.2", NULL});
    (void)state;
    assert_true(is_text(report_value(j, "kernel_name"), "k.2"));
    json_decref(j);
    j = ask(true, false, (const char *const[]){"prefer=fusion.3", "occurrence=9", "on=x", NULL});
    assert_true(is_text(report_value(j, "kernel_name"), "k.1"));
    assert_true(report_notes(j, "kernel_other"));
    json_decref(j);
    j = ask(true, false, (const char *const[]){"prefer=k.1", "occurrence=9", NULL});
    assert_int_equal(json_integer_value(report_value(j, "kernel_run_time")), 200);
    assert_false(report_notes(j, "kernel_other"));
    assert_true(report_notes(j, "kernel_run_other"));
    json_decref(j);
    /* The name goes last: not k.1, which is told better. */
    j = ask(true, false, (const char *const[]){"prefer=k.2", "program_id=7", "on=x", NULL});
    assert_true(is_text(report_value(j, "kernel_name"), "k.2"));
    assert_true(json_is_null(report_value(j, "kernel_program")));
    assert_true(report_notes(j, "kernel_run_other"));
    json_decref(j);
    j = ask(true, false, (const char *const[]){"prefer=k.1", "occurrence=2", "on=h", NULL});
    assert_true(is_text(report_value(j, "kernel_program"), "17342868964687645945"));
    assert_false(report_notes(j, "kernel_run_other"));
    json_decref(j);
}

static void what_is_not_there_is_refused(void **state)
{
    static const char *const bad[] = {"kernel=nothing", "occurrence=4", "occurrence=0",
                                      "occurrence=x",   "program_id=7", "program_id=-1",
                                      "on=elsewhere"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tool_file f = profile("h", true, true);
        assert_int_equal(
            report_refuses("kernel_utilization", &f, 1,
                           (const char *const[]){"kernel=k.1", bad[i], NULL} + (i == 0)),
            XP_BAD_REQUEST);
    }
}

static void hosts_add_up_and_the_run_is_of_the_one_that_tells_most(void **state)
{
    struct tool_file f[2] = {profile("a", false, false), profile("b", true, false)};
    json_t *j = report_ask("kernel_utilization", f, 2, NULL);
    (void)state;
    assert_int_equal(report_rows(j, "calls"), 2);
    assert_int_equal(whole(j, "calls", 0, "time"), 900);
    assert_int_equal(whole(j, "calls", 0, "occurrences"), 6);
    assert_int_equal(whole(j, "calls", 0, "recorded"), 1);
    assert_true(is_text(report_at(j, "calls", 0, "inside"), "instructions")); /* of the second */
    assert_true(is_text(report_at(j, "runs", 0, "first_host"), "b"));
    json_decref(j);
    struct tool_file g[2] = {profile("a", false, false), profile("b", true, false)};
    j = report_ask("kernel_utilization", g, 2,
                   (const char *const[]){"kernel=k.1", "on=a", "occurrence=1", NULL});
    assert_int_equal(json_integer_value(report_value(j, "kernel_run_time")), 100);
    assert_true(is_text(report_at(j, "runs", 0, "first_host"), "a"));
    json_decref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_the_custom_calls_of_the_ops),
        cmocka_unit_test(
            without_lines_of_its_inside_all_is_unrecorded_and_it_is_said_how_to_have_them),
        cmocka_unit_test(instructions_tell_units_bundles_and_source),
        cmocka_unit_test(regions_tell_what_it_waited_for_and_the_schedule_holds_until_it_changes),
        cmocka_unit_test(a_region_that_outlasts_another_is_not_inside_it_and_keeps_its_time),
        cmocka_unit_test(a_kernel_is_found_by_its_name_without_its_number),
        cmocka_unit_test(what_is_preferred_need_not_be_there),
        cmocka_unit_test(what_is_not_there_is_refused),
        cmocka_unit_test(hosts_add_up_and_the_run_is_of_the_one_that_tells_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
