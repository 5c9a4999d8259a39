#include "shard/query/query.h"
#include "tests/unit/query_support.h"

static const char *const names[] = {"alloc", "free", "c2",  "c3",  "c4",  "c5",  "c6",  "c7",
                                    "c8",    "c9",   "c10", "c11", "c12", "c13", "c14", "c15",
                                    "c16",   "c17",  "c18", "c19", "c20", "c21", "c22"};
#define NAMES (sizeof names / sizeof *names)

enum { COUNTER = 9 }; /* its statistic is called counter_value */

static enum xp_status try_curve(struct fixture *f, const char *stat, int64_t t0, int64_t t1,
                                uint32_t px, json_t **j, struct xp_error *err)
{
    struct xp_arena *a = xp_arena_new(NULL);
    struct out out;
    struct query_curve q = {.t0_ps = t0, .t1_ps = t1, .px = px, .stat = xp_span_str(stat)};
    q.rows = (struct query_rows){&(uint32_t){0}, 1};
    out_init(&out, NULL);
    enum xp_status status = query_curve(&f->part, &q, a, &out, err);
    if (status == XP_OK)
        *j = fixture_json(&out);
    out_fini(&out);
    xp_arena_free(a);
    return status;
}

static json_t *curve(struct fixture *f, const char *stat, int64_t t0, int64_t t1, uint32_t px)
{
    struct xp_error err;
    json_t *j = NULL;
    if (try_curve(f, stat, t0, t1, px, &j, &err) != XP_OK)
        fail_msg("%s", err.text);
    return j;
}

static uint32_t in_turn(size_t i)
{
    return i % 2;
}

static uint32_t one_early(size_t i)
{
    return i != 3;
}

/* Twenty once, then three in turn. */
static uint32_t twenty_early(size_t i)
{
    return i < 20 ? (uint32_t)i : 20 + (uint32_t)(i % 3);
}

/* n events, one each 10 ps, of a few names, with values of the statistics `even` and `odd`; stat2
 * of the first is a text. */
static struct fixture *filled_as(size_t n, uint64_t (*value)(size_t i), uint32_t even, uint32_t odd,
                                 uint32_t (*name)(size_t i))
{
    struct fixture *f = fixture_new();
    struct fixture_event *ev = calloc(n, sizeof *ev);
    struct xp_buf *b = calloc(n, sizeof *b);
    assert_non_null(ev);
    assert_non_null(b);
    for (size_t i = 0; i < n; i++) {
        xp_buf_init(&b[i], 1 << 10);
        fixture_stat_u64(&b[i], 4, i % 2 ? odd : even, value(i));
        if (i == 0)
            fixture_stat_str(&b[i], 4, 2, "text");
        ev[i] = (struct fixture_event){.begin_ps = (int64_t)i * 10,
                                       .end_ps = (int64_t)i * 10 + 5,
                                       .name = name(i),
                                       .stats = xp_buf_all(&b[i])};
    }
    struct part_plane *pl = fixture_plane(f, "/host:CPU", names, NAMES);
    pl->statmeta[COUNTER - 1].name = xp_strpool_add(&f->part.strings, XP_SPAN_LIT("counter_value"));
    fixture_line(f, "allocator", 1000, ev, n);
    fixture_done(f);
    for (size_t i = 0; i < n; i++)
        xp_buf_fini(&b[i]);
    free(b);
    free(ev);
    return f;
}

static struct fixture *filled_with(size_t n, uint64_t (*value)(size_t i), uint32_t even,
                                   uint32_t odd)
{
    return filled_as(n, value, even, odd, in_turn);
}

static struct fixture *filled(size_t n, uint64_t (*value)(size_t i))
{
    return filled_with(n, value, 1, 1);
}

static uint64_t rising(size_t i)
{
    return i * 7;
}

static json_t *first_series(json_t *j)
{
    json_t *s = json_array_get(json_object_get(j, "series"), 0);
    assert_non_null(s);
    return s;
}

static int64_t item(json_t *s, const char *key, size_t i)
{
    return (int64_t)json_number_value(json_array_get(json_object_get(s, key), i));
}

static void values_come_in_order_of_time_with_the_one_that_holds_before(void **state)
{
    (void)state;
    struct fixture *f = filled(20, rising);
    json_t *j = curve(f, "stat1", 1057, 1101, 1000);
    json_t *s = first_series(j);
    assert_int_equal(json_array_size(json_object_get(s, "t")), 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(item(s, "t", i), 1050 + (int64_t)i * 10);
        assert_int_equal(item(s, "v", i), (5 + (int64_t)i) * 7);
    }
    assert_int_equal(fixture_int(j, "series_total"), 1);
    json_decref(j);
    fixture_free(f);
}

static uint64_t spiky(size_t i)
{
    return i == 37 ? 1000 : i == 61 ? 0 : 50;
}

static void a_pixel_keeps_its_least_and_its_largest(void **state)
{
    (void)state;
    struct fixture *f = filled(100, spiky);
    json_t *j = curve(f, "stat1", 0, 0, 1);
    json_t *s = first_series(j);
    assert_int_equal(fixture_int(s, "values"), 100);
    assert_int_equal(json_array_size(json_object_get(s, "v")), 4);
    static const int64_t t[] = {1000, 1370, 1610, 1990}, v[] = {50, 1000, 0, 50};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(item(s, "t", i), t[i]);
        assert_int_equal(item(s, "v", i), v[i]);
    }
    assert_int_equal((int64_t)json_number_value(json_object_get(s, "max")), 1000);
    json_decref(j);
    fixture_free(f);
}

static void without_a_name_the_numbers_that_there_are_are_listed(void **state)
{
    (void)state;
    struct fixture *f = filled(3, rising);
    json_t *j = curve(f, "", 0, 0, 10), *stats = json_object_get(j, "stats");
    assert_int_equal(json_array_size(stats), 1);
    assert_string_equal(json_string_value(json_array_get(stats, 0)), "stat1");
    json_decref(j);
    j = curve(f, "stat9", 0, 0, 10);
    assert_int_equal(json_array_size(json_object_get(j, "series")), 0);
    json_decref(j);
    fixture_free(f);
}

static void of_very_many_events_some_are_looked_at_and_that_is_said(void **state)
{
    (void)state;
    struct fixture *f = filled(100001, rising);
    json_t *j = curve(f, "stat1", 0, 0, 16);
    assert_int_equal(fixture_int(j, "events"), 100001);
    assert_int_equal(fixture_int(j, "looked"), 50001);
    assert_int_equal(fixture_int(first_series(j), "values"), 50001);
    json_decref(j);
    fixture_free(f);
}

static void counters_in_turn_all_keep_their_curves_however_many_events_there_are(void **state)
{
    (void)state;
    struct fixture *f = filled_with(150000, rising, COUNTER, COUNTER);
    json_t *j = curve(f, "counter_value", 0, 0, 16);
    assert_int_equal(fixture_int(j, "series_total"), 2);
    assert_int_equal(fixture_int(j, "looked"), 75000);
    for (size_t k = 0; k < 2; k++) {
        json_t *s = json_array_get(json_object_get(j, "series"), k);
        assert_string_equal(json_string_value(json_object_get(s, "name")), names[k]);
        assert_int_equal(fixture_int(s, "values"), 37500);
        assert_int_equal(json_number_value(json_object_get(s, "min")), k * 7);
        assert_int_equal(json_number_value(json_object_get(s, "max")), (149996 + k) * 7);
    }
    json_decref(j);
    fixture_free(f);
}

/* Also when the window lies behind all of them, and when that is many events ago. */
static void the_value_that_each_counter_has_when_the_window_begins_is_among_its_values(void **state)
{
    static const struct {
        uint32_t (*name)(size_t i);
        int64_t t0, t1;
        size_t n[2]; /* values of each */
        int64_t first[2], last[2];
    } cases[] = {{in_turn, 1057, 1069, {2, 1}, {1040, 1050}, {1060, 1050}},
                 {in_turn, 1050, 1051, {1, 2}, {1040, 1030}, {1040, 1050}},
                 {in_turn, 3995, 4000, {1, 1}, {3980, 3990}, {3980, 3990}},
                 {one_early, 3005, 3025, {1, 3}, {1030, 3000}, {1030, 3020}},
                 {one_early, 1000, 1015, {0, 2}, {0, 1000}, {0, 1010}}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture *f = filled_as(300, rising, COUNTER, COUNTER, cases[i].name);
        json_t *j = curve(f, "counter_value", cases[i].t0, cases[i].t1, 1000);
        size_t at = 0;
        for (size_t k = 0; k < 2; k++) {
            if (cases[i].n[k] == 0)
                continue;
            json_t *s = json_array_get(json_object_get(j, "series"), at++);
            assert_string_equal(json_string_value(json_object_get(s, "name")), names[k]);
            assert_int_equal(fixture_int(s, "values"), cases[i].n[k]);
            assert_int_equal(item(s, "t", 0), cases[i].first[k]);
            assert_int_equal(item(s, "v", 0), (cases[i].first[k] - 1000) / 10 * 7);
            assert_int_equal(item(s, "t", cases[i].n[k] - 1), cases[i].last[k]);
        }
        assert_int_equal(fixture_int(j, "series_total"), at);
        assert_int_equal(fixture_int(j, "looked"), fixture_int(j, "events"));
        json_decref(j);
        fixture_free(f);
    }
}

static void counters_of_the_window_are_shown_before_those_that_only_hold(void **state)
{
    static const int64_t t1[] = {1210, 1230, 1300};
    (void)state;
    struct fixture *f = filled_as(30, rising, COUNTER, COUNTER, twenty_early);
    for (size_t i = 0; i < sizeof t1 / sizeof *t1; i++) {
        json_t *j = curve(f, "counter_value", 1200, t1[i], 1000);
        json_t *all = json_object_get(j, "series"), *s;
        size_t k, of_window = 0, alive = i == 0 ? 1 : 3;
        assert_int_equal(json_array_size(all), 16);
        json_array_foreach(all, k, s)
        {
            of_window += item(s, "t", json_array_size(json_object_get(s, "t")) - 1) >= 1200;
            if (k < 16 - alive)
                assert_string_equal(json_string_value(json_object_get(s, "name")), names[k]);
        }
        assert_int_equal(of_window, alive);
        assert_int_equal(fixture_int(j, "series_total"), 20 + alive);
        assert_int_equal(fixture_int(j, "events"), (t1[i] - 1200) / 10 + 1);
        assert_int_equal(fixture_int(j, "looked"), fixture_int(j, "events"));
        json_decref(j);
    }
    fixture_free(f);
}

static void statistics_in_turn_are_all_listed(void **state)
{
    (void)state;
    struct fixture *f = filled_with(600, rising, 1, 3);
    json_t *j = curve(f, "", 0, 0, 10), *stats = json_object_get(j, "stats");
    assert_int_equal(fixture_int(j, "looked"), 200);
    assert_int_equal(json_array_size(stats), 2);
    json_decref(j);
    fixture_free(f);
}

static void more_names_than_are_looked_at_leave_the_bound_as_it_is(void **state)
{
    enum { MANY = 2000, EVENTS = 4 * MANY };
    static char text[MANY][16];
    static const char *many[MANY];
    static struct fixture_event ev[EVENTS];
    (void)state;
    struct fixture *f = fixture_new();
    for (size_t i = 0; i < MANY; i++) {
        snprintf(text[i], sizeof text[i], "n%zu", i);
        many[i] = text[i];
    }
    for (size_t i = 0; i < EVENTS; i++)
        ev[i] = (struct fixture_event){
            .begin_ps = (int64_t)i * 10, .end_ps = (int64_t)i * 10 + 5, .name = i % MANY};
    fixture_plane(f, "/host:CPU", many, MANY);
    fixture_line(f, "ops", 1000, ev, EVENTS);
    fixture_done(f);
    json_t *j = curve(f, "", 0, 0, 10);
    assert_int_equal(fixture_int(j, "events"), EVENTS);
    assert_in_range(fixture_int(j, "looked"), 128, 512);
    json_decref(j);
    fixture_free(f);
}

static void more_than_one_line_or_no_pixel_is_refused(void **state)
{
    (void)state;
    struct fixture *f = filled(3, rising);
    struct xp_error err;
    json_t *j = NULL;
    assert_int_equal(try_curve(f, "stat1", 0, 0, 0, &j, &err), XP_BAD_REQUEST);
    struct out out;
    out_init(&out, NULL);
    struct xp_arena *a = xp_arena_new(NULL);
    assert_int_equal(query_curve(&f->part, &(struct query_curve){.px = 10}, a, &out, &err),
                     XP_BAD_REQUEST);
    xp_arena_free(a);
    out_fini(&out);
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_in_order_of_time_with_the_one_that_holds_before),
        cmocka_unit_test(a_pixel_keeps_its_least_and_its_largest),
        cmocka_unit_test(without_a_name_the_numbers_that_there_are_are_listed),
        cmocka_unit_test(of_very_many_events_some_are_looked_at_and_that_is_said),
        cmocka_unit_test(counters_in_turn_all_keep_their_curves_however_many_events_there_are),
        cmocka_unit_test(
            the_value_that_each_counter_has_when_the_window_begins_is_among_its_values),
        cmocka_unit_test(counters_of_the_window_are_shown_before_those_that_only_hold),
        cmocka_unit_test(statistics_in_turn_are_all_listed),
        cmocka_unit_test(more_names_than_are_looked_at_leave_the_bound_as_it_is),
        cmocka_unit_test(more_than_one_line_or_no_pixel_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
