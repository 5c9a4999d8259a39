#include "lib/base/gzip.h"
#include "shard/query/query.h"
#include "tests/unit/query_support.h"

static const char *const names[] = {"a"};

static json_t *page(struct fixture *f, const char *q, uint64_t first, uint32_t limit)
{
    struct query_tracks t = {.q = xp_span_str(q), .first = first, .limit = limit};
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_error err;
    struct out out;
    out_init(&out, NULL);
    assert_int_equal(query_tracks(&f->part, &t, a, &out, &err), XP_OK);
    json_t *j = fixture_json(&out);
    out_fini(&out);
    xp_arena_free(a);
    return j;
}

static json_t *tracks(struct fixture *f)
{
    return page(f, "", 0, 1000);
}

static json_t *plane(json_t *j, size_t i)
{
    return json_array_get(json_object_get(j, "planes"), i);
}

static const char *text(json_t *obj, const char *key)
{
    return json_string_value(json_object_get(obj, key));
}

static void add_plane(struct fixture *f, const char *name)
{
    struct fixture_event ev = {.begin_ps = 5, .end_ps = 25};
    fixture_plane(f, name, names, 1);
    fixture_line(f, "line", 100, &ev, 1);
}

static void planes_come_in_display_order(void **state)
{
    (void)state;
    static const char *const in[] = {"/host:metadata",
                                     "/device:CUSTOM:Megascale",
                                     "/device:TPU:10",
                                     "/host:CPU",
                                     "/device:TPU:2",
                                     "Task Environment",
                                     "/device:TPU:2 SparseCore 1"};
    static const char *const out[] = {"/device:TPU:2",   "/device:TPU:2 SparseCore 1",
                                      "/device:TPU:10",  "/device:CUSTOM:Megascale",
                                      "/host:CPU",       "/host:metadata",
                                      "Task Environment"};
    static const char *const kinds[] = {"device", "device", "device", "device",
                                        "host",   "other",  "other"};
    struct fixture *f = fixture_new();
    for (int i = 0; i < 7; i++)
        add_plane(f, in[i]);
    fixture_done(f);
    f->part.start_wall_ns = INT64_C(1769853600000000001);
    json_t *j = tracks(f);
    for (size_t i = 0; i < 7; i++) {
        assert_string_equal(text(plane(j, i), "name"), out[i]);
        assert_string_equal(text(plane(j, i), "kind"), kinds[i]);
        assert_string_equal(text(plane(j, i), "state"), "ready");
    }
    assert_int_equal(fixture_int(plane(j, 0), "plane"), 4);
    assert_int_equal(fixture_int(j, "begin_ps"), 105);
    assert_int_equal(fixture_int(j, "end_ps"), 125);
    assert_int_equal(fixture_int(j, "events"), 7);
    assert_string_equal(text(j, "start_wall_ns"), "1769853600000000001");
    assert_true(json_is_false(json_object_get(j, "loading")));
    assert_true(json_is_null(json_object_get(j, "damage")));
    json_decref(j);
    fixture_free(f);
}

static void lines_come_by_number_with_their_numbers_in_the_file(void **state)
{
    (void)state;
    struct fixture *f = fixture_new();
    struct fixture_event ev[] = {{.begin_ps = 0, .end_ps = 10}, {.begin_ps = 5, .end_ps = 12}};
    fixture_plane(f, "/host:CPU", names, 1);
    fixture_line(f, "second", 0, ev, 2)->id = 20;
    struct part_line *l = fixture_line(f, "first", 0, ev, 1);
    l->id = 30;
    l->display_id = 10;
    l->odd = 3;
    fixture_done(f);
    json_t *j = tracks(f), *lines = json_object_get(plane(j, 0), "lines");
    json_t *first = json_array_get(lines, 0), *second = json_array_get(lines, 1);
    assert_string_equal(text(first, "name"), "first");
    assert_int_equal(fixture_int(first, "line"), 1);
    assert_int_equal(fixture_int(first, "id"), 10);
    assert_int_equal(fixture_int(first, "odd"), 3);
    assert_int_equal(fixture_int(second, "line"), 0);
    assert_int_equal(fixture_int(second, "lanes"), 2);
    assert_int_equal(fixture_int(second, "events"), 2);
    assert_int_equal(fixture_int(second, "end_ps"), 12);
    json_decref(j);
    fixture_free(f);
}

static void planes_that_are_not_published_come_last_without_lines(void **state)
{
    (void)state;
    struct fixture *f = fixture_new();
    add_plane(f, "/device:TPU:0");
    add_plane(f, "/host:CPU");
    add_plane(f, "/device:TPU:1");
    fixture_done(f);
    atomic_store(&f->part.state, PART_LOADING);
    atomic_store(&f->planes[0].state, PART_LOADING);
    atomic_store(&f->planes[2].state, PART_FAILED);
    f->planes[0].name = 12345678;
    json_t *j = tracks(f);
    assert_string_equal(text(plane(j, 0), "name"), "/host:CPU");
    assert_string_equal(text(plane(j, 1), "state"), "loading");
    assert_string_equal(text(plane(j, 1), "name"), "");
    assert_int_equal(json_array_size(json_object_get(plane(j, 1), "lines")), 0);
    assert_string_equal(text(plane(j, 2), "state"), "failed");
    assert_int_equal(fixture_int(j, "events"), 1);
    assert_int_equal(fixture_int(j, "planes_done"), 2);
    assert_true(json_is_true(json_object_get(j, "loading")));
    json_decref(j);
    fixture_free(f);
}

static void damage_is_told_with_its_byte(void **state)
{
    (void)state;
    struct fixture *f = fixture_new();
    fixture_done(f);
    f->part.partial = true;
    xp_fail(&f->part.damage, XP_CORRUPT, 321, "a length leaves its plane");
    json_t *j = tracks(f), *damage = json_object_get(j, "damage");
    assert_true(json_is_true(json_object_get(j, "partial")));
    assert_int_equal(fixture_int(damage, "offset"), 321);
    assert_string_equal(text(damage, "detail"), "a length leaves its plane");
    json_decref(j);
    fixture_free(f);
}

/* Adds the numbers of the page's lines to seen; returns how many rows it says it has. */
static uint64_t count_lines(json_t *j, int *seen, uint64_t *first)
{
    size_t i, k;
    json_t *p, *l;
    json_array_foreach(json_object_get(j, "planes"), i, p)
    {
        json_array_foreach(json_object_get(p, "lines"), k, l) seen[fixture_int(l, "line")]++;
    }
    const char *next = text(j, "next");
    *first = next ? strtoull(next, NULL, 10) : 0;
    return (uint64_t)fixture_int(j, "rows");
}

static void pages_hold_every_line_once_and_the_totals_of_all(void **state)
{
    (void)state;
    struct fixture *f = fixture_new();
    struct fixture_event ev = {.begin_ps = 5, .end_ps = 25};
    for (int i = 0; i < 3; i++) {
        add_plane(f, i == 1 ? "/device:TPU:1" : "/host:CPU");
        for (int k = 0; k < 4; k++)
            fixture_line(f, "more", 0, &ev, 1);
    }
    fixture_done(f);
    for (uint32_t limit = 1; limit <= 20; limit++) {
        int seen[15] = {0};
        uint64_t first = 0, rows = 0, pages = 0;
        do {
            json_t *j = page(f, "", first, limit);
            assert_int_equal(fixture_int(j, "events"), 15);
            assert_int_equal(fixture_int(j, "lines_total"), 15);
            assert_int_equal(fixture_int(j, "planes_total"), 3);
            assert_int_equal(fixture_int(j, "rows_total"), 18);
            assert_int_equal(fixture_int(j, "first_row"), first);
            uint64_t n = count_lines(j, seen, &first);
            assert_true(n <= limit);
            rows += n;
            pages++;
            json_decref(j);
        } while (first);
        assert_int_equal(rows, 18);
        assert_int_equal(pages, (18 + limit - 1) / limit);
        for (int i = 0; i < 15; i++)
            assert_int_equal(seen[i], 1);
    }
    fixture_free(f);
}

static void rows_are_found_by_the_names_of_plane_and_line(void **state)
{
    (void)state;
    struct fixture *f = fixture_new();
    struct fixture_event ev = {.begin_ps = 5, .end_ps = 25};
    add_plane(f, "/device:TPU:1");
    fixture_line(f, "XLA Ops", 0, &ev, 1);
    add_plane(f, "/device:TPU:2");
    fixture_line(f, "XLA Ops", 0, &ev, 1);
    fixture_plane(f, "/host:ops", names, 1);
    fixture_done(f);
    static const struct {
        const char *q;
        int planes, rows;
    } cases[] = {{"xla", 2, 4},     {"tpu:2 ops", 1, 2},     {"tpu:2", 1, 3},
                 {"ops", 3, 5},     {"plane:ops", 1, 1},     {"-tpu", 1, 1},
                 {"nothing", 0, 0}, {"line:ops tpu:1", 1, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *j = page(f, cases[i].q, 0, 100);
        assert_int_equal(json_array_size(json_object_get(j, "planes")), cases[i].planes);
        assert_int_equal(fixture_int(j, "rows_total"), cases[i].rows);
        assert_int_equal(fixture_int(j, "lines_total"), 4);
        json_decref(j);
    }
    struct query_tracks t = {.limit = 9, .rows = {(const uint32_t[]){1, 3}, 2}};
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_error err;
    struct out out;
    int seen[4] = {0};
    uint64_t next;
    out_init(&out, NULL);
    assert_int_equal(query_tracks(&f->part, &t, a, &out, &err), XP_OK);
    json_t *j = fixture_json(&out);
    assert_int_equal(count_lines(j, seen, &next), 4);
    assert_memory_equal(seen, ((int[]){0, 1, 0, 1}), sizeof seen);
    json_decref(j);
    out_fini(&out);
    xp_arena_free(a);
    fixture_free(f);
}

static void a_page_of_long_names_ends_early(void **state)
{
    (void)state;
    struct fixture *f = fixture_new();
    static char name[200001];
    struct fixture_event ev = {.begin_ps = 5, .end_ps = 25};
    memset(name, 'n', sizeof name - 1);
    add_plane(f, "/host:CPU");
    for (int i = 0; i < 9; i++)
        fixture_line(f, name, 0, &ev, 1);
    fixture_done(f);
    struct query_tracks t = {.limit = 100};
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_error err;
    struct out out;
    uint8_t *body;
    size_t n;
    bool encoded;
    out_init(&out, NULL);
    assert_int_equal(query_tracks(&f->part, &t, a, &out, &err), XP_OK);
    assert_int_equal(out_finish(&out, &body, &n, &encoded, &err), XP_OK);
    assert_true(encoded); /* it is large, so that it comes compressed */
    struct xp_gunzip *gz = xp_gunzip_new(xp_span_of(body, n));
    static char plain[3 << 20];
    size_t got = 0, more;
    while (xp_gunzip_read(gz, plain + got, sizeof plain - got, &more) == XP_OK && more)
        got += more;
    xp_gunzip_free(gz);
    assert_true(got > sizeof name && got < (size_t)1200 << 10);
    json_t *j = json_loadb(plain, got, 0, NULL);
    assert_true(fixture_int(j, "rows") < 8);
    assert_int_equal(fixture_int(j, "rows_total"), 11);
    assert_non_null(text(j, "next"));
    json_decref(j);
    free(body);
    out_fini(&out);
    xp_arena_free(a);
    fixture_free(f);
}

static void what_cannot_be_asked_is_refused(void **state)
{
    (void)state;
    struct fixture *f = fixture_new();
    fixture_done(f);
    static const struct query_tracks bad[] = {
        {.limit = 0}, {.limit = QUERY_TRACKS_MAX + 1}, {.limit = 5, .q = XP_SPAN_LIT("dur>5us")}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct xp_arena *a = xp_arena_new(NULL);
        struct xp_error err = {0};
        struct out out;
        out_init(&out, NULL);
        assert_int_equal(query_tracks(&f->part, &bad[i], a, &out, &err), XP_BAD_REQUEST);
        assert_true(strlen(err.text) > 10);
        out_fini(&out);
        xp_arena_free(a);
    }
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planes_come_in_display_order),
        cmocka_unit_test(lines_come_by_number_with_their_numbers_in_the_file),
        cmocka_unit_test(planes_that_are_not_published_come_last_without_lines),
        cmocka_unit_test(damage_is_told_with_its_byte),
        cmocka_unit_test(pages_hold_every_line_once_and_the_totals_of_all),
        cmocka_unit_test(rows_are_found_by_the_names_of_plane_and_line),
        cmocka_unit_test(a_page_of_long_names_ends_early),
        cmocka_unit_test(what_cannot_be_asked_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
