#include "shard/query/query.h"
#include "tests/unit/query_support.h"

static const char *const names[] = {"a"};

static json_t *tracks(struct fixture *f)
{
    struct xp_error err;
    struct out out;
    out_init(&out, NULL);
    assert_int_equal(query_tracks(&f->part, &out, &err), XP_OK);
    json_t *j = fixture_json(&out);
    out_fini(&out);
    return j;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planes_come_in_display_order),
        cmocka_unit_test(lines_come_by_number_with_their_numbers_in_the_file),
        cmocka_unit_test(planes_that_are_not_published_come_last_without_lines),
        cmocka_unit_test(damage_is_told_with_its_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
