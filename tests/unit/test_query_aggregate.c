#include "shard/query/query.h"
#include "tests/unit/query_support.h"

static const char *const names[] = {"outer", "inner", "leaf", "other"};

static enum xp_status try_aggregate(struct fixture *f, const struct query_aggregate *q, json_t **j,
                                    struct xp_error *err)
{
    struct xp_arena *a = xp_arena_new(NULL);
    struct out out;
    out_init(&out, NULL);
    enum xp_status status = query_aggregate(&f->part, q, a, &out, err);
    if (status == XP_OK)
        *j = fixture_json(&out);
    out_fini(&out);
    xp_arena_free(a);
    return status;
}

static json_t *aggregate(struct fixture *f, const struct query_aggregate *q)
{
    struct xp_error err;
    json_t *j = NULL;
    if (try_aggregate(f, q, &j, &err) != XP_OK)
        fail_msg("%s", err.text);
    return j;
}

static json_t *row_of(json_t *j, const char *name, int64_t plane)
{
    json_t *rows = json_object_get(j, "rows");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *r = json_array_get(rows, i);
        json_t *p = json_object_get(r, "plane");
        if (!strcmp(json_string_value(json_object_get(r, "name")), name) &&
            (plane < 0 ? !p : json_integer_value(p) == plane))
            return r;
    }
    return NULL;
}

static void a_stack_of_calls_is_summed_up(void **state)
{
    (void)state;
    struct fixture *f = fixture_new();
    struct fixture_event ev[] = {{.begin_ps = 0, .end_ps = 100, .name = 0},
                                 {.begin_ps = 10, .end_ps = 50, .name = 1},
                                 {.begin_ps = 20, .end_ps = 30, .name = 2},
                                 {.begin_ps = 60, .end_ps = 80, .name = 1},
                                 {.begin_ps = 200, .end_ps = 220, .name = 1}};
    fixture_plane(f, "/host:CPU", names, 4);
    fixture_line(f, "main", 1000, ev, 5);
    fixture_done(f);
    json_t *j = aggregate(f, &(struct query_aggregate){.limit = 10});
    assert_int_equal(fixture_int(j, "events"), 5);
    assert_int_equal(fixture_int(j, "names"), 3);
    assert_int_equal(fixture_int(j, "total_ps"), 190);
    assert_int_equal(fixture_int(j, "self_ps"), 120);
    json_t *r = row_of(j, "inner", 0);
    assert_int_equal(fixture_int(r, "count"), 3);
    assert_int_equal(fixture_int(r, "total_ps"), 80);
    assert_int_equal(fixture_int(r, "self_ps"), 70);
    assert_int_equal(fixture_int(r, "min_ps"), 20);
    assert_int_equal(fixture_int(r, "max_ps"), 40);
    assert_int_equal(fixture_int(r, "mean_ps"), 26);
    assert_int_equal(fixture_int(r, "p50_ps"), 20);
    assert_int_equal(fixture_int(r, "p99_ps"), 40);
    assert_int_equal(fixture_int(r, "longest_id"), ev[1].at);
    assert_int_equal(fixture_int(row_of(j, "outer", 0), "self_ps"), 40);
    /* Sorted by self time. */
    assert_ptr_equal(json_array_get(json_object_get(j, "rows"), 0), r);
    json_decref(j);

    /* Clipped: outer [1015,1025), inner [1015,1025), leaf [1020,1025). */
    j = aggregate(f, &(struct query_aggregate){.t0_ps = 1015, .t1_ps = 1025, .limit = 10});
    assert_int_equal(fixture_int(j, "events"), 3);
    assert_int_equal(fixture_int(row_of(j, "outer", 0), "total_ps"), 10);
    assert_int_equal(fixture_int(row_of(j, "outer", 0), "self_ps"), 0);
    assert_int_equal(fixture_int(row_of(j, "inner", 0), "self_ps"), 5);
    assert_int_equal(fixture_int(row_of(j, "leaf", 0), "self_ps"), 5);
    json_decref(j);
    fixture_free(f);
}

/* What aggregate should say of one name, by a plain scan. */
struct truth {
    uint64_t count;
    int64_t total, min, max;
    int64_t *dur;
};

static int by_i64(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return a < b ? -1 : a > b;
}

static void scan(const struct fixture_event *ev, size_t n, int64_t t0, int64_t t1,
                 struct truth t[4])
{
    for (size_t i = 0; i < n; i++) {
        int64_t b = ev[i].begin_ps, e = ev[i].end_ps;
        if (b >= t1 || !(e > t0 || (b == e && b >= t0)))
            continue;
        b = b > t0 ? b : t0;
        e = e < t1 ? e : t1;
        struct truth *x = &t[ev[i].name];
        x->dur[x->count++] = e - b;
        x->total += e - b;
    }
    for (int k = 0; k < 4; k++)
        qsort(t[k].dur, t[k].count, sizeof *t[k].dur, by_i64);
}

static void compare_row(json_t *r, const struct truth *t)
{
    assert_int_equal(fixture_int(r, "count"), t->count);
    assert_int_equal(fixture_int(r, "total_ps"), t->total);
    assert_int_equal(fixture_int(r, "min_ps"), t->dur[0]);
    assert_int_equal(fixture_int(r, "max_ps"), t->dur[t->count - 1]);
    for (int i = 0; i < 2; i++) {
        uint64_t percent = i ? 99 : 50, rank = (t->count * percent + 99) / 100;
        double want = (double)t->dur[rank - 1];
        double have = (double)fixture_int(r, i ? "p99_ps" : "p50_ps");
        double error = t->count > 4096 ? 0.01 : 0;
        assert_true(have >= want * (1 - error) && have <= want * (1 + error));
    }
    assert_int_equal(json_is_true(json_object_get(r, "approximate")), t->count > 4096);
}

static void sums_and_quantiles_are_those_of_a_plain_scan(void **state)
{
    (void)state;
    uint64_t rng = 2024;
    for (int round = 0; round < 12; round++) {
        size_t n = round % 3 ? 1 + fixture_random(&rng) % 3000 : 20000;
        struct fixture_event *ev = fixture_random_events(&rng, n, 1000, 4);
        struct fixture *f = fixture_new();
        struct truth t[4] = {0};
        int64_t t0 = round % 2 ? (int64_t)(fixture_random(&rng) % (n * 500)) : -100000;
        int64_t t1 = round % 2 ? t0 + (int64_t)n * 300 : (int64_t)n * 2000;
        fixture_plane(f, "/host:CPU", names, 4);
        fixture_line(f, "main", 0, ev, n);
        fixture_done(f);
        for (int k = 0; k < 4; k++)
            t[k].dur = calloc(n, sizeof *t[k].dur);
        scan(ev, n, t0, t1, t);
        json_t *j = aggregate(f, &(struct query_aggregate){.t0_ps = t0, .t1_ps = t1, .limit = 4});
        for (int k = 0; k < 4; k++) {
            json_t *r = row_of(j, names[k], 0);
            assert_int_equal(r != NULL, t[k].count > 0);
            if (r)
                compare_row(r, &t[k]);
            free(t[k].dur);
        }
        json_decref(j);
        fixture_free(f);
        free(ev);
    }
}

static void names_beyond_the_limit_are_in_the_rest(void **state)
{
    (void)state;
    struct fixture *f = fixture_new();
    struct fixture_event ev[] = {{.begin_ps = 0, .end_ps = 100, .name = 0},
                                 {.begin_ps = 100, .end_ps = 150, .name = 1},
                                 {.begin_ps = 200, .end_ps = 210, .name = 2}};
    struct fixture_event again[] = {{.begin_ps = 0, .end_ps = 30, .name = 0}};
    fixture_plane(f, "/device:TPU:0", names, 4);
    fixture_line(f, "ops", 0, ev, 3);
    fixture_plane(f, "/device:TPU:1", names, 4);
    fixture_line(f, "ops", 0, again, 1);
    fixture_done(f);
    json_t *j = aggregate(f, &(struct query_aggregate){.limit = 1}), *rest;
    assert_int_equal(json_array_size(json_object_get(j, "rows")), 1);
    rest = json_object_get(j, "rest");
    assert_int_equal(fixture_int(j, "names"), 4);
    assert_int_equal(fixture_int(rest, "names"), 3);
    assert_int_equal(fixture_int(rest, "count"), 3);
    assert_int_equal(fixture_int(rest, "total_ps"), 90);
    json_decref(j);
    j = aggregate(f, &(struct query_aggregate){.limit = 9, .by_name_only = true});
    assert_int_equal(fixture_int(j, "names"), 3);
    assert_int_equal(fixture_int(row_of(j, "outer", -1), "total_ps"), 130);
    json_decref(j);
    uint32_t row = 1;
    j = aggregate(f, &(struct query_aggregate){.limit = 9, .rows = {&row, 1}});
    assert_int_equal(fixture_int(j, "events"), 1);
    json_decref(j);
    fixture_free(f);
}

static void many_names_are_kept_apart(void **state)
{
    (void)state;
    enum { N = 3000 };
    static char text[N][16];
    static const char *list[N];
    struct fixture_event *ev = calloc(N * 2, sizeof *ev);
    struct fixture *f = fixture_new();
    for (uint32_t i = 0; i < N; i++) {
        snprintf(text[i], sizeof text[i], "op.%u", i);
        list[i] = text[i];
        ev[i * 2] = (struct fixture_event){.begin_ps = i * 10, .end_ps = i * 10 + 2, .name = i};
        ev[i * 2 + 1] = (struct fixture_event){.begin_ps = i * 10 + 5, .end_ps = i * 10 + 6};
        ev[i * 2 + 1].name = N - 1 - i;
    }
    fixture_plane(f, "/device:TPU:0", list, N);
    fixture_line(f, "ops", 0, ev, N * 2);
    fixture_done(f);
    json_t *j = aggregate(f, &(struct query_aggregate){.limit = 50});
    assert_int_equal(fixture_int(j, "names"), N);
    assert_int_equal(fixture_int(j, "total_ps"), N * 3);
    json_t *rows = json_object_get(j, "rows");
    for (size_t i = 0; i < 50; i++) {
        assert_int_equal(fixture_int(json_array_get(rows, i), "count"), 2);
        assert_int_equal(fixture_int(json_array_get(rows, i), "total_ps"), 3);
    }
    json_decref(j);
    fixture_free(f);
    free(ev);
}

static void bad_arguments_get_a_sentence(void **state)
{
    (void)state;
    struct fixture *f = fixture_new();
    fixture_done(f);
    uint32_t row = 0;
    struct query_aggregate bad[] = {{.limit = 0},
                                    {.limit = 1001},
                                    {.limit = 1, .t0_ps = 7, .t1_ps = 7},
                                    {.limit = 1, .rows = {&row, 1}}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct xp_error err = {0};
        json_t *j;
        assert_int_equal(try_aggregate(f, &bad[i], &j, &err), XP_BAD_REQUEST);
        assert_true(strlen(err.text) > 5);
    }
    json_t *j = aggregate(f, &(struct query_aggregate){.limit = 1});
    assert_int_equal(fixture_int(j, "events"), 0);
    json_decref(j);
    fixture_free(f);
}

static void a_cancelled_aggregate_stops(void **state)
{
    (void)state;
    struct fixture *f = fixture_new();
    struct fixture_event ev = {.begin_ps = 0, .end_ps = 5};
    struct query_aggregate q = {.limit = 1};
    struct xp_arena *a = xp_arena_new(NULL);
    atomic_bool cancel = true;
    struct xp_error err;
    struct out out;
    fixture_plane(f, "/host:CPU", names, 4);
    fixture_line(f, "main", 0, &ev, 1);
    fixture_done(f);
    out_init(&out, &cancel);
    assert_int_equal(query_aggregate(&f->part, &q, a, &out, &err), XP_CANCELLED);
    out_fini(&out);
    xp_arena_free(a);
    fixture_free(f);
}

static void sums_past_the_limits_stay_at_the_limits(void **state)
{
    (void)state;
    struct fixture *f = fixture_new();
    struct fixture_event ev[4] = {0};
    for (int i = 0; i < 4; i++)
        ev[i] = (struct fixture_event){.begin_ps = INT64_MIN / 2, .end_ps = INT64_MAX / 2};
    fixture_plane(f, "/host:CPU", names, 4);
    fixture_line(f, "main", INT64_MAX / 2, ev, 4);
    fixture_done(f);
    json_t *j = aggregate(f, &(struct query_aggregate){.limit = 1});
    assert_true(fixture_int(j, "total_ps") > 0);
    json_decref(j);
    j = aggregate(f, &(struct query_aggregate){.t0_ps = INT64_MIN, .t1_ps = INT64_MAX, .limit = 1});
    assert_int_equal(fixture_int(j, "total_ps"), INT64_MAX);
    assert_int_equal(fixture_int(j, "events"), 4);
    json_decref(j);
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_of_calls_is_summed_up),
        cmocka_unit_test(sums_and_quantiles_are_those_of_a_plain_scan),
        cmocka_unit_test(names_beyond_the_limit_are_in_the_rest),
        cmocka_unit_test(many_names_are_kept_apart),
        cmocka_unit_test(bad_arguments_get_a_sentence),
        cmocka_unit_test(a_cancelled_aggregate_stops),
        cmocka_unit_test(sums_past_the_limits_stay_at_the_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
