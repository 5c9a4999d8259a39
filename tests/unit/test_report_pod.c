#include "tests/unit/steps_support.h"

#define US INT64_C(1000000)

enum { PROGRAM = 1, DEVICE, CHIP };
static const char *const stat_names[] = {"program_id", "device_id", "global_chip_id"};
enum { START = 1, DONE, WHOLE, SEND, SEND_DONE, STEP = 8, STEP2 };

static void put_op(struct xp_buf *plane, int64_t id, const char *text, const char *name)
{
    struct xp_buf stats = make_message();
    put_u64(&stats, 5, PROGRAM, 77);
    put_meta(plane, id, text, name, &stats);
}

/* Two steps of 1000 us. In each a permute from 100 us on, whose done waits 30 us and ends `late` us
 * after 200; an all-reduce of 50 us; a send of 10 us whose done ends 60 us later. */
static void put_core(struct xp_buf *space, int n, int id, int64_t late)
{
    char name[32];
    snprintf(name, sizeof name, "/device:TPU:%d", n);
    struct xp_buf plane = make_plane(n + 1, name);
    struct xp_buf steps = make_line(1, "Steps", 0), ops = make_line(3, "XLA Ops", 0);
    for (int64_t s = 0; s < 2; s++) {
        int64_t t = 1000 * s;
        make_add_event(&steps, s ? STEP2 : STEP, t * US, 1000 * US - 2000);
        make_add_event(&ops, START, (t + 100) * US, 5 * US);
        make_add_event(&ops, DONE, (t + 170 + late) * US, 30 * US);
        make_add_event(&ops, WHOLE, (t + 400) * US, 50 * US);
        make_add_event(&ops, SEND, (t + 600) * US, 10 * US);
        make_add_event(&ops, SEND_DONE, (t + 650) * US, 20 * US);
    }
    make_put(&plane, 3, &steps);
    make_put(&plane, 3, &ops);
    put_op(&plane, START,
           "%p.1 = (bf16[1024]{0}, bf16[1024]{0}, u32[]) collective-permute-start(bf16[1024] %x), "
           "channel_id=5, source_target_pairs={{0,1},{1,2},{2,0}}",
           "p.1");
    put_op(&plane, DONE, "%p-done.1 = bf16[1024]{0} collective-permute-done((bf16[1024]) %p.1)",
           "p-done.1");
    put_op(&plane, WHOLE,
           "%ar = f32[256]{0} all-reduce(f32[256] %x), channel_id=6, replica_groups={{0,1},{2,3}}",
           "ar");
    put_op(&plane, SEND, "%send.9 = f32[8] send()", "send.9");
    put_op(&plane, SEND_DONE, "%send-done.9 = token[] send-done()", "send-done.9");
    make_add_meta(&plane, 4, STEP, "7");
    make_add_meta(&plane, 4, STEP2, "8");
    put_stat_names(&plane, stat_names, 3);
    if (id >= 0) {
        put_u64(&plane, 6, DEVICE, (uint64_t)id);
        put_u64(&plane, 6, CHIP, (uint64_t)id);
    }
    make_put(space, 1, &plane);
}

static struct tool_file host(const char *name, int first)
{
    struct tool_file f = {name, make_message()};
    put_core(&f.space, 0, first, 0);
    put_core(&f.space, 1, first < 0 ? first : first + 1, 40);
    return f;
}

static json_t *ask(const char *const *args)
{
    struct tool_file f[2] = {host("a", 0), host("b", 2)};
    return report_ask("pod_viewer", f, 2, args);
}

static int64_t whole(json_t *doc, const char *table, size_t row, const char *column)
{
    return json_integer_value(report_at(doc, table, row, column));
}

/* The row where a column has this number. */
static size_t row_of(json_t *doc, const char *table, const char *column, int64_t v)
{
    for (size_t i = 0; i < report_rows(doc, table); i++)
        if (whole(doc, table, i, column) == v)
            return i;
    fail_msg("no row of %s has %s %lld", table, column, (long long)v);
    return 0;
}

static void a_permute_takes_from_its_start_to_the_end_of_its_done(void **state)
{
    (void)state;
    json_t *doc = ask(NULL);
    assert_int_equal(report_rows(doc, "channels"), 2);
    assert_says(report_at(doc, "channels", 0, "op"), "p.1");
    assert_int_equal(whole(doc, "channels", 0, "channel"), 5);
    assert_int_equal(whole(doc, "channels", 0, "count"), 8);
    /* 100 us on two cores, 140 us on two, each twice. */
    assert_int_equal(whole(doc, "channels", 0, "total"), 4 * (100 + 140) * US);
    assert_int_equal(whole(doc, "channels", 0, "mean_time"), 120 * US);
    assert_int_equal(whole(doc, "channels", 0, "wait"), 30 * US);
    assert_int_equal(whole(doc, "channels", 0, "bytes"), 2048);
    assert_int_equal(whole(doc, "channels", 0, "duration"), 140 * US);
    assert_says(report_at(doc, "channels", 1, "op"), "send.9");
    assert_int_equal(whole(doc, "channels", 1, "mean_time"), 70 * US);
    assert_int_equal(whole(doc, "channels", 1, "wait"), 20 * US);
    json_decref(doc);
}

static void edges_lead_from_who_sends_to_where_it_is_measured(void **state)
{
    (void)state;
    json_t *doc = ask(NULL);
    assert_says(report_value(doc, "channel"), "p.1:77");
    size_t r = row_of(doc, "edges", "to", 1);
    assert_int_equal(whole(doc, "edges", r, "from"), 0);
    assert_int_equal(whole(doc, "edges", r, "mean_time"), 140 * US);
    assert_int_equal(whole(doc, "edges", r, "count"), 2);
    r = row_of(doc, "edges", "to", 2);
    assert_says(report_at(doc, "edges", r, "host"), "b");
    assert_says(report_at(doc, "edges", r, "from_host"), "a");
    assert_says(report_at(doc, "edges", r, "from_core"), "/device:TPU:1");
    assert_int_equal(report_rows(doc, "edges"), 3); /* nobody sends to 3 */
    json_decref(doc);
}

static void another_channel_is_shown_when_it_is_asked_for(void **state)
{
    static const char *const send[] = {"channel=send.9:77", NULL};
    (void)state;
    json_t *doc = ask(send);
    assert_says(report_at(doc, "edges", 0, "op"), "send.9");
    assert_int_equal(report_rows(doc, "edges"), 4);
    json_decref(doc);
}

static void collectives_are_told_by_group_and_by_step(void **state)
{
    (void)state;
    json_t *doc = ask(NULL), *series, *s = NULL;
    size_t i;
    assert_int_equal(report_rows(doc, "replica_groups"), 2);
    for (size_t r = 0; r < 2; r++) {
        assert_int_equal(whole(doc, "replica_groups", r, "count"), 4);
        assert_int_equal(whole(doc, "replica_groups", r, "mean_time"), 50 * US);
        assert_int_equal(whole(doc, "replica_groups", r, "bytes"), 1024);
    }
    json_array_foreach(json_object_get(doc, "series"), i,
                       series) if (!strcmp(json_string_value(json_object_get(series, "id")),
                                           "group_steps")) s = series;
    assert_non_null(s);
    assert_int_equal(json_array_size(json_object_get(s, "points")), 2);
    json_t *first = json_array_get(json_object_get(s, "points"), 0);
    assert_int_equal(json_integer_value(json_array_get(first, 0)), 7);
    assert_int_equal(json_integer_value(json_array_get(first, 1)), 50 * US);
    json_decref(doc);
}

static void chips_are_where_their_numbers_put_them(void **state)
{
    (void)state;
    json_t *doc = ask(NULL);
    assert_int_equal(report_rows(doc, "chips"), 4);
    size_t r = row_of(doc, "chips", "id", 3);
    assert_says(report_at(doc, "chips", r, "host"), "b");
    assert_int_equal(whole(doc, "chips", r, "chip"), 3);
    assert_int_equal(whole(doc, "chips", r, "x"), 1);
    assert_int_equal(whole(doc, "chips", r, "y"), 1);
    json_decref(doc);
}

/* One of two hosts: the groups say that there are four. */
static void a_slice_is_as_large_as_the_program_says(void **state)
{
    static const char *const none[] = {"channel=x:1", NULL};
    (void)state;
    struct tool_file f[2] = {host("b", 2), host("a", 0)};
    json_t *doc = report_ask("pod_viewer", f, 1, NULL);
    xp_buf_fini(&f[1].space);
    size_t r = row_of(doc, "chips", "id", 3);
    assert_int_equal(whole(doc, "chips", r, "x"), 1);
    assert_int_equal(whole(doc, "chips", r, "y"), 1);
    json_decref(doc);
    doc = report_ask("pod_viewer", (struct tool_file[]){host("a", 0)}, 1, none);
    assert_true(report_notes(doc, "no_such_channel"));
    assert_int_equal(whole(doc, "chips", row_of(doc, "chips", "id", 1), "x"), 1);
    json_decref(doc);
}

/* Both hosts have a core 0, and nothing says which of them is partition 0. */
static void ids_that_no_profile_tells_are_nobodys(void **state)
{
    (void)state;
    struct tool_file f[2] = {host("a", -1), host("b", -1)};
    json_t *doc = report_ask("pod_viewer", f, 2, NULL);
    for (size_t i = 0; i < report_rows(doc, "chips"); i++)
        assert_true(json_is_null(report_at(doc, "chips", i, "id")));
    assert_int_equal(report_rows(doc, "edges"), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_true(json_is_null(report_at(doc, "edges", i, "from")));
        assert_true(json_is_null(report_at(doc, "edges", i, "to")));
        assert_true(json_is_null(report_at(doc, "edges", i, "from_host")));
    }
    json_decref(doc);
}

static void a_step_that_is_asked_for_is_that_one(void **state)
{
    static const char *const eight[] = {"step=8", "topology=4x1", NULL};
    (void)state;
    json_t *doc = ask(eight);
    size_t r = row_of(doc, "chips", "id", 3);
    assert_int_equal(whole(doc, "chips", r, "first_begin_ps"), 1000 * US);
    assert_int_equal(whole(doc, "chips", r, "x"), 3);
    assert_int_equal(whole(doc, "chips", r, "y"), 0);
    json_decref(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_permute_takes_from_its_start_to_the_end_of_its_done),
        cmocka_unit_test(edges_lead_from_who_sends_to_where_it_is_measured),
        cmocka_unit_test(another_channel_is_shown_when_it_is_asked_for),
        cmocka_unit_test(collectives_are_told_by_group_and_by_step),
        cmocka_unit_test(chips_are_where_their_numbers_put_them),
        cmocka_unit_test(a_slice_is_as_large_as_the_program_says),
        cmocka_unit_test(ids_that_no_profile_tells_are_nobodys),
        cmocka_unit_test(a_step_that_is_asked_for_is_that_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
