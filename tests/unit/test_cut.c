/* A part cut to a range: what is there of each event, and that parts add up. */
#include "shard/derive/cut.h"

#include <stdlib.h>
#include <unistd.h>

#include "shard/part_open.h"
#include "tests/unit/unit.h"
#include "tests/unit/xspace_make.h"

struct span {
    int64_t begin, end;
};

static struct part_file *open_events(const struct span *v, size_t n, const char *line_name)
{
    struct part_file *file;
    struct xp_error err = {0};
    struct xp_buf space = make_message(), plane = make_plane(1, "/device:TPU:0");
    struct xp_buf line = make_line(1, line_name, 0);
    make_add_meta(&plane, 4, 1, "op");
    for (size_t i = 0; i < n; i++)
        make_add_event(&line, 1, v[i].begin, v[i].end - v[i].begin);
    make_put(&plane, 3, &line);
    make_put(&space, 1, &plane);
    char *path = make_file(xp_buf_all(&space));
    if (part_open_file(path, NULL, NULL, &file, &err) != XP_OK)
        fail_msg("%s", err.text);
    unlink(path);
    free(path);
    xp_buf_fini(&space);
    return file;
}

/* Events of the line, in order, and their sum and how many begin there. */
struct seen {
    size_t n, begins;
    int64_t sum;
    struct span v[64];
    int64_t begin_ps, end_ps; /* of the line */
};

static struct seen look(struct part_file *file, int64_t t0, int64_t t1)
{
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_error err = {0};
    struct part *p;
    struct line_cursor c;
    struct lane_event e;
    struct seen s = {0};
    assert_int_equal(cut_open(part_file_part(file), t0, t1, a, &p, &err), XP_OK);
    assert_int_equal(line_seek(&c, &p->lines[0], INT64_MIN, a), XP_OK);
    while (line_next(&c, &e, NULL)) {
        s.begins += part_begins(p, e.at, e.begin_ps);
        s.sum += e.end_ps - e.begin_ps;
        if (s.n < 64)
            s.v[s.n] = (struct span){e.begin_ps, e.end_ps};
        s.n++;
    }
    assert_int_equal(s.n, p->lines[0].nevents);
    s.begin_ps = p->lines[0].begin_ps;
    s.end_ps = p->lines[0].end_ps;
    cut_close(p);
    xp_arena_free(a);
    return s;
}

static void an_event_is_cut_to_the_range_and_counts_where_it_begins(void **state)
{
    static const struct span v[] = {{0, 100}, {10, 40}, {40, 40}, {60, 90}, {120, 150}};
    struct part_file *f = open_events(v, 5, "XLA Ops");
    struct seen s = look(f, 40, 130);
    (void)state;
    assert_int_equal(s.n, 4);
    assert_int_equal(s.v[0].begin, 40); /* what began before, and is longer, comes first */
    assert_int_equal(s.v[0].end, 100);
    assert_int_equal(s.v[1].end, 40);
    assert_int_equal(s.v[3].end, 130);
    assert_int_equal(s.begins, 3);
    assert_int_equal(s.begin_ps, 40);
    assert_int_equal(s.end_ps, 130);
    part_close(f);
}

static void a_pause_and_what_is_outside_have_no_events_but_a_pause_was_watched(void **state)
{
    static const struct span v[] = {{10, 20}, {50, 60}};
    struct part_file *f = open_events(v, 2, "XLA Ops");
    struct seen s = look(f, 20, 50);
    (void)state;
    assert_int_equal(s.n, 0);
    assert_int_equal(s.end_ps - s.begin_ps, 30);
    s = look(f, 70, 90);
    assert_int_equal(s.n, 0);
    assert_int_equal(s.end_ps - s.begin_ps, 0);
    s = look(f, INT64_MIN, INT64_MIN + 1);
    assert_int_equal(s.n, 0);
    s = look(f, INT64_MIN, INT64_MAX);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.begins, 2);
    part_close(f);
}

static void a_step_is_there_whole_or_not_at_all(void **state)
{
    static const struct span v[] = {{0, 100}, {100, 200}, {200, 300}};
    struct part_file *f = open_events(v, 3, "Steps");
    struct seen s = look(f, 50, 250);
    (void)state;
    assert_int_equal(s.n, 1);
    assert_int_equal(s.v[0].begin, 100);
    assert_int_equal(look(f, 100, 300).n, 2);
    part_close(f);
}

static void parts_add_up_whatever_overlaps_what(void **state)
{
    struct span v[300];
    uint64_t rng = 7;
    (void)state;
    for (size_t i = 0; i < 300; i++) {
        v[i].begin = (int64_t)(make_rng(&rng) % 5000);
        v[i].end = v[i].begin + (int64_t)(make_rng(&rng) % (i % 7 ? 40 : 900));
    }
    struct part_file *f = open_events(v, 300, "Stream");
    for (int k = 0; k < 60; k++) {
        int64_t a = (int64_t)(make_rng(&rng) % 3000), c = a + 2 + (int64_t)(make_rng(&rng) % 3000);
        int64_t b = a + 1 + (int64_t)(make_rng(&rng) % (uint64_t)(c - a - 1));
        struct seen one = look(f, a, b), two = look(f, b, c), both = look(f, a, c);
        int64_t sum = 0;
        size_t begins = 0;
        for (size_t i = 0; i < 300; i++) {
            int64_t from = v[i].begin > a ? v[i].begin : a, to = v[i].end < c ? v[i].end : c;
            sum += to > from ? to - from : 0;
            begins += v[i].begin >= a && v[i].begin < c;
        }
        assert_int_equal(both.sum, sum);
        assert_int_equal(both.begins, begins);
        assert_int_equal(one.sum + two.sum, both.sum);
        assert_int_equal(one.begins + two.begins, both.begins);
    }
    part_close(f);
}

/* Of a line that says so. */
static void assert_in_file_order(const struct part_line *line)
{
    for (uint32_t i = 0; i < line->nlanes; i++) {
        struct lane_cursor c;
        struct lane_event e;
        uint64_t last = 0;
        lane_seek_ord(&c, line->lanes[i], 0);
        while (lane_next(&c, &e)) {
            assert_true(e.at > last);
            last = e.at;
        }
    }
}

/* At the range's begin the longest comes first, which may be the last of the file. */
static void a_cut_line_is_called_sorted_only_where_its_lanes_are(void **state)
{
    enum { OPEN = LANE_MAX + 45 };
    static const struct {
        size_t n;
        bool sorted;
    } cases[] = {{LANE_MAX, true}, {OPEN, false}};
    struct span v[OPEN];
    (void)state;
    for (size_t i = 0; i < OPEN; i++)
        v[i] = (struct span){(int64_t)i, 1000 + 10 * (int64_t)i};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct part_file *f = open_events(v, cases[k].n, "Stream");
        struct xp_arena *a = xp_arena_new(NULL);
        struct xp_error err = {0};
        struct part *p;
        assert_true(part_file_part(f)->lines[0].sorted);
        assert_int_equal(cut_open(part_file_part(f), 500, 5000, a, &p, &err), XP_OK);
        assert_int_equal(p->lines[0].nevents, cases[k].n);
        assert_int_equal(p->lines[0].overflow, cases[k].n - LANE_MAX);
        assert_int_equal(p->lines[0].sorted, cases[k].sorted);
        if (p->lines[0].sorted)
            assert_in_file_order(&p->lines[0]);
        cut_close(p);
        xp_arena_free(a);
        part_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_cut_to_the_range_and_counts_where_it_begins),
        cmocka_unit_test(a_pause_and_what_is_outside_have_no_events_but_a_pause_was_watched),
        cmocka_unit_test(a_step_is_there_whole_or_not_at_all),
        cmocka_unit_test(parts_add_up_whatever_overlaps_what),
        cmocka_unit_test(a_cut_line_is_called_sorted_only_where_its_lanes_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
