/* Stats by name (query/values.h), and the bodies they are read from (store/body.h). */
#include <unistd.h>

#include "shard/part_open.h"
#include "shard/query/values.h"
#include "tests/unit/tool_support.h"

struct opened {
    char *path;
    struct part_file *file;
    struct part *part;
    struct xp_arena *a;
};

static struct opened open_space(struct xp_buf *space)
{
    struct opened o = {.path = make_file(xp_buf_all(space)), .a = xp_arena_new(NULL)};
    struct xp_error err = {0};
    xp_buf_fini(space);
    if (part_open_file(o.path, NULL, NULL, &o.file, &err) != XP_OK)
        fail_msg("%s", err.text);
    o.part = part_file_part(o.file);
    return o;
}

static void close_space(struct opened *o)
{
    part_close(o->file);
    unlink(o->path);
    free(o->path);
    xp_arena_free(o->a);
}

static uint64_t first_at(const struct part *p, uint64_t ord)
{
    struct lane_cursor c;
    struct lane_event ev = {0};
    lane_seek_ord(&c, p->lines[0].lanes[0], ord);
    assert_true(lane_next(&c, &ev));
    return ev.at;
}

/* Stat names far apart, a reference, and two names that mean the same stat. */
static struct xp_buf space_of(int events, size_t filler)
{
    struct xp_buf space = make_message(), plane = make_plane(1, "p"), line = make_line(1, "l", 0);
    char *pad = calloc(filler + 1, 1);
    memset(pad, 'x', filler);
    for (int i = 0; i < events; i++) {
        struct xp_buf e = make_event(1, i * 10, 5), ref = make_message();
        put_text(&e, 4, 3, pad);
        put_i64(&e, 4, 1000000, i);
        xp_pb_put_u64(&ref, 1, 2);
        xp_pb_put_u64(&ref, 7, 4);
        make_put(&e, 4, &ref);
        put_i64(&e, 4, -5, 100 + i);
        make_put(&line, 4, &e);
    }
    free(pad);
    make_put(&plane, 3, &line);
    make_add_meta(&plane, 4, 1, "event");
    make_add_meta(&plane, 5, 1000000, "number");
    make_add_meta(&plane, 5, 2, "text");
    make_add_meta(&plane, 5, 3, "filler");
    make_add_meta(&plane, 5, 4, "what it refers to");
    make_add_meta(&plane, 5, -5, "number");
    make_put(&space, 1, &plane);
    return space;
}

static const char *const names[] = {"text", "number", "absent"};

static void stats_are_found_by_name_whatever_their_id(void **state)
{
    struct xp_buf space = space_of(1, 10);
    struct opened o = open_space(&space);
    struct xp_error err = {0};
    struct values_eye eye;
    struct value v;
    (void)state;
    values_open(&eye, o.part, &o.part->planes[0], names, 3, o.a);
    assert_int_equal(values_of_event(&eye, first_at(o.part, 0), &err), XP_OK);
    assert_true(values_next(&eye, &v)); /* the filler was not asked for */
    assert_int_equal(v.which, 1);
    assert_int_equal(value_i64(&v), 0);
    assert_true(values_next(&eye, &v));
    assert_int_equal(v.which, 0);
    assert_true(xp_span_eq(v.text, XP_SPAN_LIT("what it refers to")));
    assert_true(values_next(&eye, &v));
    assert_int_equal(value_i64(&v), 100);
    assert_false(values_next(&eye, &v));
    close_space(&o);
}

static void events_are_read_in_any_order_from_any_piece(void **state)
{
    enum { N = 700 };
    struct xp_buf space = space_of(N, 3000); /* 2 MB: more than a piece */
    struct opened o = open_space(&space);
    struct xp_error err = {0};
    struct values_eye eye;
    struct value v;
    (void)state;
    values_open(&eye, o.part, &o.part->planes[0], names, 3, o.a);
    for (int i = 0; i < N; i++) {
        int k = i < N / 2 ? i : (i * 7919) % N;
        assert_int_equal(values_of_event(&eye, first_at(o.part, (uint64_t)k), &err), XP_OK);
        assert_true(values_find(&eye, 1, &v));
        assert_int_equal(value_i64(&v), k);
    }
    close_space(&o);
}

static void an_offset_that_is_no_event_is_refused(void **state)
{
    struct xp_buf space = space_of(2, 10);
    struct opened o = open_space(&space);
    struct xp_error err = {0};
    struct xp_span body;
    struct body_reader r;
    (void)state;
    body_open(&r, o.part, o.a);
    assert_int_equal(body_event(&r, 0, &body, &err), XP_NOT_FOUND);
    assert_int_equal(body_event(&r, UINT64_MAX, &body, &err), XP_NOT_FOUND);
    close_space(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stats_are_found_by_name_whatever_their_id),
        cmocka_unit_test(events_are_read_in_any_order_from_any_piece),
        cmocka_unit_test(an_offset_that_is_no_event_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
