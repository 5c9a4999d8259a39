#include "lib/base/pb_wire.h"
#include "shard/query/query.h"
#include "shard/store/side_int.h"
#include "tests/unit/query_support.h"

static const char *const names[] = {"outer", "inner", "leaf"};

static enum xp_status ask(struct fixture *f, uint64_t id, int step, json_t **j,
                          struct xp_error *err)
{
    struct xp_arena *a = xp_arena_new(NULL);
    struct out out;
    enum xp_status status;
    out_init(&out, NULL);
    if (step)
        status = query_neighbour(&f->part, id, step, a, &out, err);
    else
        status = query_event(&f->part, id, a, &out, err);
    if (status == XP_OK)
        *j = fixture_json(&out);
    out_fini(&out);
    xp_arena_free(a);
    return status;
}

static json_t *event(struct fixture *f, uint64_t id)
{
    struct xp_error err;
    json_t *j = NULL;
    if (ask(f, id, 0, &j, &err) != XP_OK)
        fail_msg("%s", err.text);
    return j;
}

static json_t *arg(json_t *ev, size_t i)
{
    return json_array_get(json_object_get(ev, "args"), i);
}

static void assert_text(json_t *obj, const char *key, const char *want)
{
    json_t *v = json_object_get(obj, key);
    assert_true(json_is_string(v));
    assert_string_equal(json_string_value(v), want);
}

/* Bytes of stats and metadata stay valid until the fixture goes. */
static void an_event_tells_its_place_and_arguments(void **state)
{
    (void)state;
    struct xp_buf stats, meta, one;
    xp_buf_init(&stats, 1 << 20);
    xp_buf_init(&meta, 1 << 20);
    xp_buf_init(&one, 1 << 20);
    fixture_stat_u64(&stats, 4, 2, UINT64_MAX);
    fixture_stat_str(&stats, 4, 3, "text <\xff>");
    xp_pb_put_u64(&one, 1, 4); /* int64 -5 */
    xp_pb_put_u64(&one, 4, (uint64_t)-5);
    xp_pb_put_bytes(&stats, 4, xp_buf_all(&one));
    one.n = 0;
    xp_pb_put_u64(&one, 1, 5); /* double */
    xp_pb_put_double(&one, 2, 0.1);
    xp_pb_put_bytes(&stats, 4, xp_buf_all(&one));
    one.n = 0;
    xp_pb_put_u64(&one, 1, 6); /* bytes */
    xp_pb_put_bytes(&one, 6, XP_SPAN_LIT("\0\1\2"));
    xp_pb_put_bytes(&stats, 4, xp_buf_all(&one));
    one.n = 0;
    xp_pb_put_u64(&one, 1, 7); /* reference to the name of stat 9 */
    xp_pb_put_u64(&one, 7, 9);
    xp_pb_put_bytes(&stats, 4, xp_buf_all(&one));
    fixture_stat_str(&meta, 5, 1, "fusion");

    struct fixture *f = fixture_new();
    struct part_plane *pl = fixture_plane(f, "/device:TPU:0", names, 3);
    struct fixture_event ev[] = {{.begin_ps = 0, .end_ps = 100, .name = 0},
                                 {.begin_ps = 10, .end_ps = 30, .name = 1},
                                 {.begin_ps = 40, .end_ps = 50, .name = 2}};
    ev[1].stats = xp_buf_all(&stats);
    fixture_line(f, "XLA Ops", 1000, ev, 3);
    pl->evmeta[1].at = f->file.n;
    pl->evmeta[1].len = (uint32_t)meta.n;
    xp_buf_span(&f->file, xp_buf_all(&meta));
    fixture_done(f);

    json_t *j = event(f, ev[1].at);
    assert_int_equal(fixture_int(j, "id"), ev[1].at);
    assert_text(j, "name", "inner");
    assert_text(j, "line_name", "XLA Ops");
    assert_text(j, "plane_name", "/device:TPU:0");
    assert_int_equal(fixture_int(j, "lane"), 1);
    assert_int_equal(fixture_int(j, "begin_ps"), 1010);
    assert_int_equal(fixture_int(j, "duration_ps"), 20);
    assert_int_equal(fixture_int(j, "self_ps"), 20);
    assert_true(json_is_null(json_object_get(j, "occurrences")));
    assert_int_equal(fixture_int(j, "previous"), ev[0].at);
    assert_int_equal(fixture_int(j, "next"), ev[2].at);
    assert_int_equal(json_array_size(json_object_get(j, "args")), 7);
    assert_text(arg(j, 0), "name", "stat1");
    assert_text(arg(j, 0), "value", "fusion");
    assert_text(arg(j, 0), "from", "metadata");
    assert_text(arg(j, 1), "value", "18446744073709551615");
    assert_text(arg(j, 1), "type", "uint64");
    assert_text(arg(j, 1), "from", "event");
    assert_text(arg(j, 2), "value", "text <\xef\xbf\xbd>");
    assert_text(arg(j, 3), "value", "-5");
    assert_text(arg(j, 3), "type", "int64");
    assert_text(arg(j, 4), "value", "0.1");
    assert_true(json_is_null(json_object_get(arg(j, 5), "value")));
    assert_int_equal(fixture_int(arg(j, 5), "bytes"), 3);
    assert_text(arg(j, 6), "value", "stat9");
    assert_text(arg(j, 6), "type", "string");
    assert_true(json_is_false(json_object_get(j, "args_cut")));
    json_decref(j);

    j = event(f, ev[0].at);
    assert_int_equal(fixture_int(j, "self_ps"), 70);
    assert_true(json_is_null(json_object_get(j, "previous")));
    json_decref(j);
    fixture_free(f);
    xp_buf_fini(&stats);
    xp_buf_fini(&meta);
    xp_buf_fini(&one);
}

static void long_arguments_are_cut_and_say_so(void **state)
{
    (void)state;
    static char text[100000];
    memset(text, 'x', sizeof text - 1);
    memcpy(text + 65535, "\xc3\xa9", 2); /* a letter across the cut */
    struct xp_buf stats;
    xp_buf_init(&stats, 1 << 20);
    fixture_stat_str(&stats, 4, 1, text);
    for (int i = 0; i < 1100; i++)
        fixture_stat_u64(&stats, 4, 2, 1);
    struct fixture *f = fixture_new();
    fixture_plane(f, "/host:CPU", names, 3);
    struct fixture_event ev = {.begin_ps = 0, .end_ps = 1, .stats = xp_buf_all(&stats)};
    fixture_line(f, "main", 0, &ev, 1);
    fixture_done(f);

    struct xp_arena *a = xp_arena_new(NULL);
    struct out out;
    struct xp_error err;
    uint8_t *body;
    static uint8_t plain[1 << 20];
    size_t n, got = 0, more = 1;
    bool encoded;
    out_init(&out, NULL);
    assert_int_equal(query_event(&f->part, ev.at, a, &out, &err), XP_OK);
    assert_int_equal(out_finish(&out, &body, &n, &encoded, &err), XP_OK);
    assert_true(encoded);
    struct xp_gunzip *g = xp_gunzip_new(xp_span_of(body, n));
    for (; more; got += more)
        assert_int_equal(xp_gunzip_read(g, plain + got, sizeof plain - got, &more), XP_OK);
    json_t *j = json_loadb((const char *)plain, got, 0, NULL);
    assert_non_null(j);
    assert_int_equal(json_string_length(json_object_get(arg(j, 0), "value")), 65535);
    assert_true(json_is_true(json_object_get(arg(j, 0), "cut")));
    assert_int_equal(json_array_size(json_object_get(j, "args")), 1000);
    assert_true(json_is_true(json_object_get(j, "args_cut")));
    json_decref(j);
    xp_gunzip_free(g);
    free(body);
    out_fini(&out);
    xp_arena_free(a);
    fixture_free(f);
    xp_buf_fini(&stats);
}

static void neighbours_walk_the_line_in_order(void **state)
{
    (void)state;
    uint64_t rng = 31;
    size_t n = 400;
    struct fixture_event *ev = fixture_random_events(&rng, n, 5, 3);
    struct fixture *f = fixture_new();
    fixture_plane(f, "/host:CPU", names, 3);
    fixture_line(f, "main", -77, ev, n);
    fixture_done(f);
    for (size_t i = 0; i < n; i++) {
        json_t *j = event(f, ev[i].at), *prev = json_object_get(j, "previous");
        json_t *next = json_object_get(j, "next");
        assert_int_equal(fixture_int(j, "begin_ps"), ev[i].begin_ps - 77);
        if (i)
            assert_int_equal(json_integer_value(prev), ev[i - 1].at);
        else
            assert_true(json_is_null(prev));
        if (i + 1 < n)
            assert_int_equal(json_integer_value(next), ev[i + 1].at);
        else
            assert_true(json_is_null(next));
        json_decref(j);
    }
    json_t *j = NULL;
    struct xp_error err = {0};
    assert_int_equal(ask(f, ev[5].at, 1, &j, &err), XP_OK);
    assert_int_equal(fixture_int(j, "id"), ev[6].at);
    json_decref(j);
    assert_int_equal(ask(f, ev[5].at, -1, &j, &err), XP_OK);
    assert_int_equal(fixture_int(j, "id"), ev[4].at);
    json_decref(j);
    assert_int_equal(ask(f, ev[0].at, -1, &j, &err), XP_NOT_FOUND);
    assert_int_equal(ask(f, ev[n - 1].at, 1, &j, &err), XP_NOT_FOUND);
    fixture_free(f);
    free(ev);
}

static void self_time_is_what_nested_events_leave(void **state)
{
    (void)state;
    struct fixture *f = fixture_new();
    struct fixture_event *ev = calloc(1002, sizeof *ev);
    fixture_plane(f, "/host:CPU", names, 3);
    ev[0] = (struct fixture_event){.begin_ps = 0, .end_ps = 100000};
    for (int i = 0; i < 1000; i++) {
        ev[i + 1].begin_ps = i * 100;
        ev[i + 1].end_ps = i * 100 + 40;
    }
    ev[1001] = (struct fixture_event){.begin_ps = 99990, .end_ps = 100010}; /* sticks out */
    fixture_line(f, "main", 0, ev, 1002);
    fixture_done(f);
    json_t *j = event(f, ev[0].at);
    assert_int_equal(fixture_int(j, "self_ps"), 60000);
    json_decref(j);
    fixture_free(f);
    free(ev);
}

static void ids_that_are_no_events_are_not_found(void **state)
{
    (void)state;
    struct fixture_event ev[] = {{.begin_ps = 0, .end_ps = 100}, {.begin_ps = 5, .end_ps = 6}};
    struct fixture *f = fixture_new();
    fixture_plane(f, "/host:CPU", names, 3);
    fixture_line(f, "main", 0, ev, 2);
    fixture_done(f);
    for (uint64_t id = 0; id < f->file.n + 5; id++) {
        struct xp_error err = {0};
        json_t *j = NULL;
        enum xp_status want = id == ev[0].at || id == ev[1].at ? XP_OK : XP_NOT_FOUND;
        assert_int_equal(ask(f, id, 0, &j, &err), want);
        json_decref(j);
    }
    struct xp_error err = {0};
    json_t *j = NULL;
    assert_int_equal(ask(f, UINT64_MAX, 0, &j, &err), XP_NOT_FOUND);
    assert_int_equal(ask(f, UINT64_MAX, 1, &j, &err), XP_NOT_FOUND);
    atomic_store(&f->planes[0].state, PART_LOADING);
    assert_int_equal(ask(f, ev[0].at, 0, &j, &err), XP_BUSY);
    fixture_free(f);
}

static void an_event_whose_time_was_mended_is_found(void **state)
{
    (void)state;
    struct fixture_event ev = {.begin_ps = INT64_MAX, .end_ps = INT64_MAX};
    struct fixture *f = fixture_new();
    fixture_plane(f, "/host:CPU", names, 3);
    fixture_line(f, "main", 0, &ev, 1);
    fixture_done(f);
    json_decref(event(f, ev.at));
    fixture_free(f);
}

/* --- flows --- */

static const struct side *side_of(struct fixture *f, const struct fixture_event *ev, size_t n,
                                  const struct side_stat (*stats)[2], const int *nstats)
{
    static struct side_pen pen;
    struct xp_bump out;
    const struct side *side;
    xp_bump_init(&out, f->arena);
    side_pen_init(&pen);
    for (size_t i = 0; i < n; i++)
        if (nstats[i])
            assert_true(side_pen_add(&pen, ev[i].at, stats[i], nstats[i], f->arena, &out));
    assert_true(side_pen_end(&pen, f->arena, &out, &side));
    return side;
}

static void flows_join_launches_producers_and_flow_ids(void **state)
{
    (void)state;
    struct fixture *f = fixture_new();
    struct fixture_event host[] = {{.begin_ps = 0, .end_ps = 5},
                                   {.begin_ps = 10, .end_ps = 15},
                                   {.begin_ps = 20, .end_ps = 25},
                                   {.begin_ps = 30, .end_ps = 35}};
    struct fixture_event dev[] = {{.begin_ps = 100, .end_ps = 105},
                                  {.begin_ps = 110, .end_ps = 115},
                                  {.begin_ps = 120, .end_ps = 125},
                                  {.begin_ps = 130, .end_ps = 135}};
    uint64_t id = 99, flow = id << 2 | UINT64_C(12) << 58;
    const struct side_stat host_stats[4][2] = {
        {{STAT_CORRELATION_ID, SIDE_U64, 7}},
        {{STAT_PRODUCER_TYPE, SIDE_I64, 11}, {STAT_PRODUCER_ID, SIDE_U64, 3}},
        {{STAT_FLOW, SIDE_U64, flow | 2}},
        {{STAT_RUN_ID, SIDE_U64, 1}}};
    const struct side_stat dev_stats[4][2] = {
        {{STAT_CORRELATION_ID, SIDE_U64, 7}},
        {{STAT_CONSUMER_TYPE, SIDE_I64, 11}, {STAT_CONSUMER_ID, SIDE_U64, 3}},
        {{STAT_FLOW, SIDE_U64, flow | 1}},
        {{STAT_CONSUMER_TYPE, SIDE_I64, 12}, {STAT_CONSUMER_ID, SIDE_U64, 3}}};
    static const int host_n[] = {1, 2, 1, 1}, dev_n[] = {1, 2, 1, 2};
    static const char *const categories[] = {"gpu_launch", "tpu_stream", "tpu_launch"};
    fixture_plane(f, "/host:CPU", names, 3);
    struct part_line *l = fixture_line(f, "main", 0, host, 4);
    l->side = side_of(f, host, 4, host_stats, host_n);
    fixture_plane(f, "/device:GPU:0", names, 3);
    l = fixture_line(f, "stream", 1000, dev, 4);
    l->side = side_of(f, dev, 4, dev_stats, dev_n);
    fixture_done(f);
    for (int i = 0; i < 4; i++) {
        json_t *out = event(f, host[i].at), *in = event(f, dev[i].at);
        json_t *to = json_object_get(out, "flows"), *from = json_object_get(in, "flows");
        assert_int_equal(json_array_size(to), i < 3);
        assert_int_equal(json_array_size(from), i < 3);
        if (i < 3) {
            json_t *a = json_array_get(to, 0), *b = json_array_get(from, 0);
            assert_text(a, "direction", "out");
            assert_text(b, "direction", "in");
            assert_text(a, "category", categories[i]);
            assert_text(b, "category", categories[i]);
            assert_int_equal(fixture_int(a, "line"), 1);
            assert_int_equal(fixture_int(a, "begin_ps"), dev[i].begin_ps + 1000);
            assert_int_equal(json_integer_value(json_array_get(json_object_get(a, "ids"), 0)),
                             dev[i].at);
            assert_int_equal(json_integer_value(json_array_get(json_object_get(b, "ids"), 0)),
                             host[i].at);
        }
        json_decref(out);
        json_decref(in);
    }
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_tells_its_place_and_arguments),
        cmocka_unit_test(long_arguments_are_cut_and_say_so),
        cmocka_unit_test(neighbours_walk_the_line_in_order),
        cmocka_unit_test(self_time_is_what_nested_events_leave),
        cmocka_unit_test(ids_that_are_no_events_are_not_found),
        cmocka_unit_test(an_event_whose_time_was_mended_is_found),
        cmocka_unit_test(flows_join_launches_producers_and_flow_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
