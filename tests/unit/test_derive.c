#include "shard/derive/derive.h"

#include <unistd.h>

#include "shard/part_open.h"
#include "tests/unit/tool_support.h"

#define US INT64_C(1000000)

/* --- profiles --- */

enum { ROOT = 1, STEP_NUM, PRODUCER, PRODUCER_ID, CONSUMER, CONSUMER_ID, TF_OP, SOURCE, GROUP };
static const char *const stats[] = {"_r", "step_num", "_pt",    "_p",      "_ct",
                                    "_c", "tf_op",    "source", "group_id"};

struct opened {
    struct part_file *file;
    const struct derive *d;
};

static struct opened open_space(struct xp_buf *space)
{
    struct opened o;
    struct xp_error err = {0};
    char *path = make_file(xp_buf_all(space));
    if (part_open_file(path, NULL, NULL, &o.file, &err) != XP_OK)
        fail_msg("%s", err.text);
    unlink(path);
    free(path);
    xp_buf_fini(space);
    if (derive_get(part_file_part(o.file), &o.d, &err) != XP_OK)
        fail_msg("%s", err.text);
    return o;
}

static struct opened open_plane(struct xp_buf *plane)
{
    struct xp_buf space = make_message();
    make_put(&space, 1, plane);
    return open_space(&space);
}

static struct xp_buf host_plane(void)
{
    struct xp_buf plane = make_plane(1, "/host:CPU");
    put_stat_names(&plane, stats, GROUP - 1);
    make_add_meta(&plane, 4, 1, "train");
    make_add_meta(&plane, 4, 2, "work");
    return plane;
}

static void add(struct xp_buf *line, int64_t name, int64_t begin, int64_t end, int64_t stat1,
                int64_t v1, int64_t stat2, int64_t v2)
{
    struct xp_buf ev = make_event(name, begin, end - begin);
    if (stat1)
        put_i64(&ev, 4, stat1, v1);
    if (stat2)
        put_i64(&ev, 4, stat2, v2);
    make_put(line, 4, &ev);
}

/* --- looking at them --- */

static const struct derive_line *line_called(const struct derive *d, const char *name)
{
    for (uint32_t i = 0; i < d->nlines; i++)
        if (!d->lines[i].hidden && xp_span_eq(d->lines[i].name, xp_span_str(name)))
            return &d->lines[i];
    return NULL;
}

/* Event number i of the line, in order of time, lane by lane. */
static struct derive_event event_no(const struct derive_line *l, size_t i)
{
    struct derive_event e = {0};
    assert_non_null(l);
    for (uint32_t k = 0; k < l->line->nlanes; k++) {
        const struct lane *lane = l->line->lanes[k];
        struct lane_cursor c;
        struct lane_event ev;
        lane_seek_ord(&c, lane, 0);
        while (lane_next(&c, &ev))
            if (i-- == 0)
                return (struct derive_event){l->line->base_ps + ev.begin_ps,
                                             l->line->base_ps + ev.end_ps, ev.at, ev.name};
    }
    fail_msg("the line has no such event");
    return e;
}

static int64_t group_of(const struct derive *d, const char *line, size_t i)
{
    struct derive_eye eye;
    const struct derive_line *l = line_called(d, line);
    struct derive_event e = event_no(l, i);
    derive_look(&eye, d, l);
    return derive_group(&eye, &e);
}

static bool is_called(const struct derive *d, const char *line, size_t i, const char *name)
{
    struct derive_eye eye;
    const struct derive_line *l = line_called(d, line);
    struct derive_event e = event_no(l, i);
    derive_look(&eye, d, l);
    return xp_span_eq(derive_event_name(&eye, &e, NULL), xp_span_str(name));
}

/* --- groups --- */

static void events_inside_of_a_root_are_of_its_group(void **state)
{
    (void)state;
    struct xp_buf plane = host_plane(), line = make_line(5, "main", 1000);
    add(&line, 1, 0, 10 * US, ROOT, 1, STEP_NUM, 7);
    add(&line, 1, 20 * US, 30 * US, ROOT, 1, STEP_NUM, 8);
    add(&line, 2, 40 * US, 41 * US, 0, 0, 0, 0);
    add(&line, 2, 2 * US, 3 * US, 0, 0, 0, 0);
    add(&line, 2, 22 * US, 23 * US, 0, 0, 0, 0);
    make_put(&plane, 3, &line);
    struct opened o = open_plane(&plane);
    assert_int_equal(o.d->ngroups, 2);
    assert_true(xp_span_eq(derive_group_name(o.d, 0), XP_SPAN_LIT("train 7")));
    assert_true(xp_span_eq(derive_group_name(o.d, 1), XP_SPAN_LIT("train 8")));
    assert_int_equal(group_of(o.d, "main", 0), 0);
    assert_int_equal(group_of(o.d, "main", 1), 1);
    assert_true(group_of(o.d, "main", 2) == DERIVE_NO_GROUP);
    assert_int_equal(group_of(o.d, "main", 3), 0);
    assert_int_equal(group_of(o.d, "main", 4), 1);
    assert_true(is_called(o.d, "main", 0, "train 7"));
    assert_true(is_called(o.d, "main", 3, "work"));
    part_close(o.file);
}

static void a_group_follows_from_producer_to_consumer(void **state)
{
    (void)state;
    struct xp_buf plane = host_plane(), one = make_line(5, "one", 1000),
                  two = make_line(6, "two", 1000);
    add(&one, 1, 0, 10 * US, ROOT, 1, STEP_NUM, 7);
    add(&one, 2, 2 * US, 3 * US, PRODUCER, 1, PRODUCER_ID, 99);
    add(&two, 2, 5 * US, 9 * US, CONSUMER, 1, CONSUMER_ID, 99);
    add(&two, 2, 6 * US, 7 * US, 0, 0, 0, 0);
    make_put(&plane, 3, &one);
    make_put(&plane, 3, &two);
    struct opened o = open_plane(&plane);
    assert_int_equal(group_of(o.d, "two", 0), 0);
    assert_int_equal(group_of(o.d, "two", 1), 0);
    part_close(o.file);
}

static void producers_and_consumers_in_a_circle_end(void **state)
{
    (void)state;
    struct xp_buf plane = host_plane(), line = make_line(5, "main", 1000);
    add(&line, 1, 0, US, ROOT, 1, STEP_NUM, 7);
    for (int i = 0; i < 50; i++) { /* each waits for the one before, the first for the last */
        struct xp_buf ev = make_event(2, (2 + 2 * i) * US, US);
        put_i64(&ev, 4, PRODUCER, 1);
        put_i64(&ev, 4, PRODUCER_ID, i);
        put_i64(&ev, 4, CONSUMER, 1);
        put_i64(&ev, 4, CONSUMER_ID, (i + 49) % 50);
        make_put(&line, 4, &ev);
    }
    make_put(&plane, 3, &line);
    struct opened o = open_plane(&plane);
    assert_int_equal(group_of(o.d, "main", 0), 0);
    assert_true(group_of(o.d, "main", 25) == DERIVE_NO_GROUP);
    part_close(o.file);
}

static void groups_of_the_file_stay_whatever_they_are(void **state)
{
    (void)state;
    struct xp_buf plane = make_plane(1, "/host:CPU"), line = make_line(5, "main", 1000);
    put_stat_names(&plane, stats, GROUP);
    make_add_meta(&plane, 4, 1, "train");
    add(&line, 1, 0, US, GROUP, INT64_MAX, 0, 0);
    add(&line, 1, 2 * US, 3 * US, GROUP, -5, 0, 0);
    make_put(&plane, 3, &line);
    struct opened o = open_plane(&plane);
    assert_true(o.d->grouped);
    assert_true(group_of(o.d, "main", 0) == INT64_MAX);
    assert_true(group_of(o.d, "main", 1) == -5);
    assert_int_equal(derive_group_name(o.d, INT64_MAX).n, 0);
    part_close(o.file);
}

/* --- flows --- */

static void both_ends_of_a_flow_have_one_id(void **state)
{
    (void)state;
    struct xp_buf plane = host_plane(), line = make_line(5, "main", 1000);
    add(&line, 2, 0, US, PRODUCER, 1, PRODUCER_ID, 99);
    add(&line, 2, 2 * US, 3 * US, CONSUMER, 1, CONSUMER_ID, 99);
    add(&line, 2, 4 * US, 5 * US, CONSUMER, 1, CONSUMER_ID, 98);
    add(&line, 2, 6 * US, 7 * US, 0, 0, 0, 0);
    make_put(&plane, 3, &line);
    struct opened o = open_plane(&plane);
    const struct derive_line *l = line_called(o.d, "main");
    struct derive_flow f[3], none;
    struct derive_eye eye;
    derive_look(&eye, o.d, l);
    for (size_t i = 0; i < 3; i++) {
        struct derive_event e = event_no(l, i);
        assert_true(derive_flow(&eye, &e, &f[i]));
        assert_true(f[i].id >> 56 == 0);
    }
    struct derive_event e = event_no(l, 3);
    assert_false(derive_flow(&eye, &e, &none));
    assert_true(f[0].id == f[1].id);
    assert_true(f[0].id != f[2].id);
    assert_int_equal(f[0].dir, DERIVE_DIR_OUT);
    assert_int_equal(f[1].dir, DERIVE_DIR_IN);
    part_close(o.file);
}

/* --- lines of a TPU core --- */

enum { MATMUL = 1, ADD, STEP, MODULE };

static struct xp_buf tpu_plane(void)
{
    struct xp_buf plane = make_plane(2, "/device:TPU:0"), meta = make_message();
    put_stat_names(&plane, stats, GROUP - 1);
    put_text(&meta, 5, TF_OP, "net/layer/dot:MatMul");
    put_meta(&plane, MATMUL, "fusion.1", NULL, &meta);
    meta = make_message();
    put_text(&meta, 5, TF_OP, "net/layer/add:Add");
    put_meta(&plane, ADD, "fusion.2", NULL, &meta);
    put_meta(&plane, STEP, "3", NULL, NULL);
    put_meta(&plane, MODULE, "jit_f(1)", NULL, NULL);
    return plane;
}

static void add_step(struct xp_buf *plane, int64_t begin, int64_t end)
{
    struct xp_buf line = make_line(1, "Steps", 1000);
    add(&line, STEP, begin, end, 0, 0, 0, 0);
    make_put(plane, 3, &line);
}

static void ops_of_one_name_are_one_event_of_the_derived_lines(void **state)
{
    (void)state;
    struct xp_buf plane = tpu_plane(), ops = make_line(3, "XLA Ops", 1000);
    add_step(&plane, 0, 100 * US);
    add(&ops, MATMUL, 10 * US, 20 * US, 0, 0, 0, 0);
    add(&ops, MATMUL, 20 * US, 35 * US, 0, 0, 0, 0);
    add(&ops, ADD, 40 * US, 50 * US, 0, 0, 0, 0);
    make_put(&plane, 3, &ops);
    struct opened o = open_plane(&plane);
    const struct derive_line *named = line_called(o.d, "Framework Ops"),
                             *scopes = line_called(o.d, "Framework Name Scope");
    assert_non_null(named);
    assert_non_null(scopes);
    assert_true(named->line->derived);
    assert_int_equal(named->line->nevents, 2);
    struct derive_event first = event_no(named, 0), second = event_no(named, 1),
                        ops_first = event_no(line_called(o.d, "XLA Ops"), 0);
    assert_true(first.begin_ps == ops_first.begin_ps);
    assert_true(first.end_ps - first.begin_ps == 25 * US);
    assert_true(second.begin_ps - first.begin_ps == 30 * US);
    assert_int_equal(group_of(o.d, "XLA Ops", 0), group_of(o.d, "Framework Ops", 0));
    part_close(o.file);
}

static void deep_scopes_do_not_grow_without_bound(void **state)
{
    (void)state;
    struct xp_buf plane = tpu_plane(), ops = make_line(3, "XLA Ops", 1000), meta = make_message();
    static char deep[20001];
    for (size_t i = 0; i < sizeof deep - 1; i++)
        deep[i] = i & 1 ? '/' : 'a';
    memcpy(deep + sizeof deep - 8, ":MatMul", 7);
    put_text(&meta, 5, TF_OP, deep);
    put_meta(&plane, 9, "fusion.9", NULL, &meta);
    add_step(&plane, 0, 100 * US);
    for (int i = 0; i < 4; i++)
        add(&ops, 9, i * 10 * US, i * 10 * US + US, 0, 0, 0, 0);
    make_put(&plane, 3, &ops);
    struct opened o = open_plane(&plane);
    assert_non_null(line_called(o.d, "XLA Ops"));
    part_close(o.file);
}

static void a_plane_without_names_is_kept_as_it_is(void **state)
{
    (void)state;
    struct xp_buf plane = make_plane(2, "/device:TPU:0"), ops = make_line(3, "XLA Ops", 1000);
    make_add_event(&ops, 12345, 0, US);
    make_put(&plane, 3, &ops);
    struct opened o = open_plane(&plane);
    assert_true(is_called(o.d, "XLA Ops", 0, ""));
    part_close(o.file);
}

/* Planes of all kinds whose lines are looked at, with the steps that make it so. */
static void planes_look_at_lines_of_their_own_only(void **state)
{
    (void)state;
    struct xp_buf space = make_message();
    enum { PLANES = 300 };
    for (int i = 0; i < PLANES; i++) {
        char name[40];
        snprintf(name, sizeof name, i % 3 == 2 ? "/device:GPU:%d" : "/device:TPU:%d", i);
        struct xp_buf plane = make_plane(i, name), ops = make_line(3, "XLA Ops", 1000);
        put_stat_names(&plane, stats, GROUP - 1);
        struct xp_buf meta = make_message();
        put_text(&meta, 5, TF_OP, "net/layer/dot:MatMul");
        put_meta(&plane, MATMUL, "fusion.1", NULL, &meta);
        put_meta(&plane, STEP, "3", NULL, NULL);
        add_step(&plane, 0, 100 * US);
        add(&ops, MATMUL, 10 * US, 20 * US, 0, 0, 0, 0);
        make_put(&plane, 3, &ops);
        make_put(&space, 1, &plane);
    }
    struct opened o = open_space(&space);
    uint64_t lines = part_file_part(o.file)->nlines;
    assert_int_equal(lines, 2 * PLANES);
    assert_true(o.d->nlines > lines);
    assert_true(o.d->looked >= lines);
    assert_true(o.d->looked <= 6 * lines);
    part_close(o.file);
}

static void more_devices_than_any_host_has_are_refused(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        struct xp_buf space = make_message();
        struct xp_error err = {0};
        struct part_file *file;
        const struct derive *d;
        for (int i = 0; i < DERIVE_DEVICES_MAX + more; i++) {
            char name[40];
            snprintf(name, sizeof name, "/device:TPU:%d", i);
            struct xp_buf plane = make_plane(i, name);
            make_put(&space, 1, &plane);
        }
        char *path = make_file(xp_buf_all(&space));
        assert_int_equal(part_open_file(path, NULL, NULL, &file, &err), XP_OK);
        assert_int_equal(derive_get((struct part *)part_file_part(file), &d, &err),
                         more ? XP_TOO_LARGE : XP_OK);
        if (more)
            assert_non_null(strstr(err.text, "16385 devices"));
        part_close(file);
        unlink(path);
        free(path);
        xp_buf_fini(&space);
    }
}

static void it_is_derived_once(void **state)
{
    (void)state;
    struct xp_buf plane = host_plane(), line = make_line(5, "main", 1000);
    add(&line, 1, 0, US, ROOT, 1, STEP_NUM, 7);
    make_put(&plane, 3, &line);
    struct opened o = open_plane(&plane);
    const struct derive *again;
    struct xp_error err = {0};
    assert_int_equal(derive_get(part_file_part(o.file), &again, &err), XP_OK);
    assert_ptr_equal(again, o.d);
    part_close(o.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_inside_of_a_root_are_of_its_group),
        cmocka_unit_test(a_group_follows_from_producer_to_consumer),
        cmocka_unit_test(producers_and_consumers_in_a_circle_end),
        cmocka_unit_test(groups_of_the_file_stay_whatever_they_are),
        cmocka_unit_test(both_ends_of_a_flow_have_one_id),
        cmocka_unit_test(ops_of_one_name_are_one_event_of_the_derived_lines),
        cmocka_unit_test(deep_scopes_do_not_grow_without_bound),
        cmocka_unit_test(a_plane_without_names_is_kept_as_it_is),
        cmocka_unit_test(planes_look_at_lines_of_their_own_only),
        cmocka_unit_test(more_devices_than_any_host_has_are_refused),
        cmocka_unit_test(it_is_derived_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
