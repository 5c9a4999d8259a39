#include "shard/lod/lod.h"
#include "shard/store/part.h"
#include "tests/unit/query_support.h"

/* A line with the events in lanes, and the events of each lane in order. */
struct lanes {
    struct fixture *f;
    struct part_line *line;
};

static struct lanes lanes_of(struct fixture_event *ev, size_t n)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct lanes l = {.f = fixture_new()};
    fixture_plane(l.f, "/device:TPU:0", names, 4);
    l.line = fixture_line(l.f, "ops", 0, ev, n);
    fixture_done(l.f);
    return l;
}

static struct lane_event *events_of(const struct lane *l)
{
    struct lane_event *ev = calloc(lane_count(l) + 1, sizeof *ev);
    struct lane_cursor c;
    lane_seek_ord(&c, l, 0);
    for (size_t i = 0; lane_next(&c, &ev[i]); i++)
        ;
    return ev;
}

static bool overlaps(const struct lane_event *ev, int64_t t0, int64_t t1)
{
    if (ev->begin_ps >= t1)
        return false;
    return ev->end_ps > t0 || (ev->begin_ps == ev->end_ps && ev->begin_ps >= t0);
}

static void a_range_holds_exactly_the_events_that_overlap_it(void **state)
{
    (void)state;
    uint64_t rng = 7;
    for (int round = 0; round < 10; round++) {
        size_t n = 1 + fixture_random(&rng) % 2000;
        struct fixture_event *made = fixture_random_events(&rng, n, 50, 4);
        struct lanes l = lanes_of(made, n);
        for (uint32_t k = 0; k < l.line->nlanes && k < LANE_MAX - 1; k++) {
            struct lane_event *ev = events_of(l.line->lanes[k]);
            uint64_t count = lane_count(l.line->lanes[k]);
            for (int i = 0; i < 50; i++) {
                int64_t t0 = (int64_t)(fixture_random(&rng) % (n * 60)) - 100;
                int64_t t1 = t0 + 1 + (int64_t)(fixture_random(&rng) % (n * 20));
                uint64_t first, last, want = 0;
                lod_range(l.line->lanes[k], t0, t1, &first, &last);
                for (uint64_t e = 0; e < count; e++) {
                    want += overlaps(&ev[e], t0, t1);
                    if (e >= first && e < last)
                        assert_true(overlaps(&ev[e], t0, t1));
                }
                assert_int_equal(last - first, want);
            }
            free(ev);
        }
        fixture_free(l.f);
        free(made);
    }
}

static void empty_and_extreme_ranges_are_safe(void **state)
{
    (void)state;
    struct fixture_event ev[] = {{.begin_ps = 10, .end_ps = 20}, {.begin_ps = 20, .end_ps = 20}};
    struct lanes l = lanes_of(ev, 2);
    const struct lane *lane = l.line->lanes[0];
    uint64_t first, last;
    int64_t most = INT64_C(1) << 62;
    lod_range(lane, -most, most, &first, &last);
    assert_int_equal(last - first, 2);
    lod_range(lane, 20, 21, &first, &last);
    assert_int_equal(last - first, 1);
    lod_range(lane, 21, most, &first, &last);
    assert_int_equal(last - first, 0);
    lod_range(lane, 0, 10, &first, &last);
    assert_int_equal(last - first, 0);
    lod_range(lane, 15, 15, &first, &last);
    assert_int_equal(last - first, 0);
    fixture_free(l.f);
}

/* What must hold for any rectangles of events [first, last). */
static void check_rects(const struct lane_event *ev, uint64_t first, uint64_t last,
                        const struct lod_rect *v, size_t n)
{
    uint64_t at = first;
    for (size_t i = 0; i < n; i++) {
        int64_t busy = 0, longest = -1, end = INT64_MIN;
        bool named = false;
        assert_true(v[i].count > 0 && v[i].count <= last - at);
        assert_int_equal(v[i].begin_ps, ev[at].begin_ps);
        for (uint64_t e = at; e < at + v[i].count; e++) {
            int64_t dur = ev[e].end_ps - ev[e].begin_ps;
            busy += dur;
            longest = dur > longest ? dur : longest;
            end = ev[e].end_ps > end ? ev[e].end_ps : end;
            named |= ev[e].at == v[i].id && ev[e].name == v[i].name && dur == v[i].longest_ps;
        }
        assert_int_equal(v[i].end_ps, end);
        assert_int_equal(v[i].busy_ps, busy);
        assert_int_equal(v[i].longest_ps, longest);
        assert_true(named);
        if (i)
            assert_true(v[i].begin_ps >= v[i - 1].end_ps);
        at += v[i].count;
    }
    assert_int_equal(at, last);
}

static void rectangles_hold_every_event_once_and_are_few(void **state)
{
    (void)state;
    uint64_t rng = 99;
    for (int round = 0; round < 12; round++) {
        size_t n = 1 + fixture_random(&rng) % 20000;
        struct fixture_event *made = fixture_random_events(&rng, n, 50, 4);
        struct lanes l = lanes_of(made, n);
        for (uint32_t k = 0; k < l.line->nlanes && k < LANE_MAX - 1; k++) {
            const struct lane *lane = l.line->lanes[k];
            struct lane_event *ev = events_of(lane);
            for (uint64_t cell = 0; cell < n * 100; cell = cell * 3 + 1) {
                struct lod_scale s = {cell, cell, round % 2 ? cell * 4 : 0};
                struct lod_rects r = {.a = l.f->arena};
                int64_t t0 = (int64_t)(fixture_random(&rng) % (n * 50)), t1 = t0 + (int64_t)n * 20;
                uint64_t first, last;
                lod_range(lane, t0, t1, &first, &last);
                assert_true(lod_walk(lane, first, last, &s, &r));
                check_rects(ev, first, last, r.v, r.n);
                if (cell)
                    assert_true(r.n <= 2 * ((uint64_t)n * 20 / cell + 1) + 2);
                size_t merged = lod_merge(r.v, r.n, cell * 5);
                check_rects(ev, first, last, r.v, merged);
                assert_true(merged <= r.n);
            }
            free(ev);
        }
        fixture_free(l.f);
        free(made);
    }
}

static void a_cell_of_no_length_gives_every_event_by_itself(void **state)
{
    (void)state;
    struct fixture_event ev[200] = {0};
    for (int i = 0; i < 200; i++)
        ev[i].begin_ps = ev[i].end_ps = 5 + i / 100;
    struct lanes l = lanes_of(ev, 200);
    struct lod_scale single = {0}, merged = {.cell_ps = 1};
    struct lod_rects r = {.a = l.f->arena};
    assert_true(lod_walk(l.line->lanes[0], 0, 200, &single, &r));
    assert_int_equal(r.n, 200);
    r.n = 0;
    assert_true(lod_walk(l.line->lanes[0], 0, 200, &merged, &r));
    assert_int_equal(r.n, 2);
    fixture_free(l.f);
}

static void an_event_wider_than_a_cell_stands_alone(void **state)
{
    (void)state;
    struct fixture_event ev[1000] = {0};
    for (int i = 0; i < 1000; i++) {
        ev[i].begin_ps = i * 10;
        ev[i].end_ps = i * 10 + (i == 500 ? 10 : 1);
    }
    struct lanes l = lanes_of(ev, 1000);
    struct lod_scale s = {.cell_ps = 10};
    struct lod_rects r = {.a = l.f->arena};
    bool seen = false;
    assert_true(lod_walk(l.line->lanes[0], 0, 1000, &s, &r));
    for (size_t i = 0; i < r.n; i++)
        seen |= r.v[i].begin_ps == 5000 && r.v[i].end_ps == 5010 && r.v[i].count == 1;
    assert_true(seen);
    fixture_free(l.f);
}

static void panning_does_not_regroup(void **state)
{
    (void)state;
    uint64_t rng = 5;
    size_t n = 5000;
    struct fixture_event *made = fixture_random_events(&rng, n, 50, 4);
    struct lanes l = lanes_of(made, n);
    struct lod_scale s = {.cell_ps = 700};
    struct lod_rects a = {.a = l.f->arena}, b = {.a = l.f->arena};
    const struct lane *lane = l.line->lanes[0];
    uint64_t first, last, at = 0;
    lod_range(lane, 10000, 110000, &first, &last);
    assert_true(lod_walk(lane, first, last, &s, &a));
    lod_range(lane, 30000, 130000, &first, &last);
    assert_true(lod_walk(lane, first, last, &s, &b));
    for (size_t i = 0; i < b.n && b.v[i].end_ps < 100000; i++) {
        if (b.v[i].begin_ps < 50000)
            continue;
        while (at < a.n && a.v[at].begin_ps < b.v[i].begin_ps)
            at++;
        assert_true(at < a.n);
        assert_memory_equal(&a.v[at], &b.v[i], sizeof b.v[i]);
    }
    assert_true(at > 0);
    fixture_free(l.f);
    free(made);
}

static void rectangles_of_overlapping_events_do_not_overlap(void **state)
{
    (void)state;
    struct fixture_event *ev = calloc(2000, sizeof *ev);
    for (int i = 0; i < 2000; i++) {
        ev[i].begin_ps = i;
        ev[i].end_ps = 100000 + i * 7 % 1000;
    }
    struct lanes l = lanes_of(ev, 2000);
    assert_int_equal(l.line->nlanes, LANE_MAX);
    const struct lane *lane = l.line->lanes[LANE_MAX - 1];
    for (uint64_t cell = 0; cell < 1000000; cell = cell * 10 + 1) {
        struct lod_scale s = {.cell_ps = cell};
        struct lod_rects r = {.a = l.f->arena};
        uint64_t sum = 0;
        assert_true(lod_walk(lane, 0, lane_count(lane), &s, &r));
        for (size_t i = 0; i < r.n; i++) {
            sum += r.v[i].count;
            assert_true(r.v[i].end_ps >= r.v[i].begin_ps);
            assert_true(!i || r.v[i].begin_ps >= r.v[i - 1].end_ps);
        }
        assert_int_equal(sum, lane_count(lane));
    }
    fixture_free(l.f);
    free(ev);
}

static void busy_is_the_sum_of_durations(void **state)
{
    (void)state;
    uint64_t rng = 3;
    size_t n = 9000;
    struct fixture_event *made = fixture_random_events(&rng, n, 50, 4);
    struct lanes l = lanes_of(made, n);
    const struct lane *lane = l.line->lanes[0];
    struct lane_event *ev = events_of(lane);
    for (int i = 0; i < 300; i++) {
        uint64_t first = fixture_random(&rng) % lane_count(lane);
        uint64_t last = first + fixture_random(&rng) % (lane_count(lane) - first + 1);
        int64_t want = 0;
        for (uint64_t e = first; e < last; e++)
            want += ev[e].end_ps - ev[e].begin_ps;
        assert_int_equal(lod_busy(lane, first, last), want);
    }
    free(ev);
    fixture_free(l.f);
    free(made);
}

static void times_at_the_limits_do_not_overflow(void **state)
{
    (void)state;
    struct fixture_event ev[] = {{.begin_ps = INT64_MIN / 2 + 1, .end_ps = INT64_MAX / 2},
                                 {.begin_ps = INT64_MAX / 2, .end_ps = INT64_MAX / 2},
                                 {.begin_ps = INT64_MIN / 2 + 1, .end_ps = 0}};
    struct lanes l = lanes_of(ev, 3);
    uint64_t cells[] = {0, 1, UINT64_C(1) << 61, UINT64_C(1) << 62, UINT64_C(1) << 63, UINT64_MAX};
    for (uint32_t k = 0; k < l.line->nlanes; k++)
        for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
            struct lod_scale s = {cells[i], cells[i], cells[i]};
            struct lod_rects r = {.a = l.f->arena};
            assert_true(lod_walk(l.line->lanes[k], 0, lane_count(l.line->lanes[k]), &s, &r));
            assert_true(r.n >= 1);
        }
    fixture_free(l.f);
}

static void what_is_expected_bounds_what_comes(void **state)
{
    (void)state;
    uint64_t rng = 11;
    size_t n = 30000;
    struct fixture_event *made = fixture_random_events(&rng, n, 50, 4);
    struct lanes l = lanes_of(made, n);
    const struct lane *lane = l.line->lanes[0];
    struct lod_sample samples[LOD_SAMPLES];
    size_t k = lod_sample(lane, 0, lane_count(lane), samples);
    uint64_t sum = 0;
    for (size_t i = 0; i < k; i++)
        sum += samples[i].count;
    assert_int_equal(sum, lane_count(lane));
    for (uint64_t cell = 10; cell < 100000; cell *= 10) {
        struct lod_scale s = {.cell_ps = cell};
        struct lod_rects r = {.a = l.f->arena};
        assert_true(lod_walk(lane, 0, lane_count(lane), &s, &r));
        uint64_t want = lod_expect(samples, k, cell);
        assert_true(want >= r.n / 4 && want <= r.n * 4 + LOD_SAMPLES);
    }
    fixture_free(l.f);
    free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_holds_exactly_the_events_that_overlap_it),
        cmocka_unit_test(empty_and_extreme_ranges_are_safe),
        cmocka_unit_test(rectangles_hold_every_event_once_and_are_few),
        cmocka_unit_test(a_cell_of_no_length_gives_every_event_by_itself),
        cmocka_unit_test(an_event_wider_than_a_cell_stands_alone),
        cmocka_unit_test(panning_does_not_regroup),
        cmocka_unit_test(rectangles_of_overlapping_events_do_not_overlap),
        cmocka_unit_test(busy_is_the_sum_of_durations),
        cmocka_unit_test(times_at_the_limits_do_not_overflow),
        cmocka_unit_test(what_is_expected_bounds_what_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
