#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "shard/store/lane_int.h"
#include "shard/store/part.h"

static uint64_t rng_state = 1;

static uint64_t rng(void)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return rng_state;
}

static int by_time(const void *x, const void *y)
{
    const struct lane_raw *a = x, *b = y;
    if (a->begin_ps != b->begin_ps)
        return a->begin_ps < b->begin_ps ? -1 : 1;
    if (a->end_ps != b->end_ps)
        return a->end_ps > b->end_ps ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static struct lane_raw *random_events(size_t n, uint64_t unit, uint64_t spread, uint64_t longest)
{
    struct lane_raw *ev = test_malloc(n * sizeof *ev);
    for (size_t i = 0; i < n; i++) {
        ev[i].begin_ps = (int64_t)(rng() % spread * unit) - 1000;
        uint64_t dur = rng() % 8 ? rng() % longest : rng() % 4 ? 0 : rng() % (longest * 100);
        ev[i].end_ps = ev[i].begin_ps + (int64_t)(dur * unit);
        ev[i].name = (uint32_t)(rng() % 5000);
        ev[i].at = 1000 + i * 30;
    }
    qsort(ev, n, sizeof *ev, by_time);
    return ev;
}

static void fill(struct part_line *line, struct xp_arena *a, const struct lane_raw *ev, size_t n)
{
    struct line_builder *b = line_builder_new(a);
    assert_non_null(b);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(line_builder_add(b, ev[i].begin_ps, ev[i].end_ps, ev[i].name, ev[i].at),
                         XP_OK);
    assert_int_equal(line_builder_end(b, line), XP_OK);
}

static void lanes_hold_exactly_the_events_and_never_overlap(void **state)
{
    (void)state;
    for (int round = 0; round < 30; round++) {
        size_t n = 1 + rng() % 5000;
        struct lane_raw *ev = random_events(n, round % 2 ? 1000 : 7, n * 50, 200);
        struct xp_arena *a = xp_arena_new(NULL);
        struct part_line line = {.base_ps = 5};
        fill(&line, a, ev, n);
        assert_int_equal(line.nevents, n);
        assert_int_equal(line.overflow, 0);
        assert_int_equal(line.begin_ps, ev[0].begin_ps + 5);
        struct line_cursor c;
        assert_int_equal(line_seek(&c, &line, INT64_MIN, a), XP_OK);
        struct lane_event got;
        int64_t ends[LANE_MAX];
        for (int i = 0; i < LANE_MAX; i++)
            ends[i] = INT64_MIN;
        uint32_t lane;
        for (size_t i = 0; i < n; i++) {
            assert_true(line_next(&c, &got, &lane));
            assert_int_equal(got.begin_ps, ev[i].begin_ps);
            assert_int_equal(got.end_ps, ev[i].end_ps);
            assert_int_equal(got.name, ev[i].name);
            assert_int_equal(got.at, ev[i].at);
            assert_true(got.begin_ps >= ends[lane]);
            for (uint32_t below = 0; below < lane; below++)
                assert_true(ends[below] > got.begin_ps); /* the lowest free one was taken */
            ends[lane] = got.end_ps;
        }
        assert_false(line_next(&c, &got, NULL));
        xp_arena_free(a);
        test_free(ev);
    }
}

static void check_node(const struct lane *l, const struct lane_event *ev, int level, uint64_t i)
{
    struct lane_node n;
    lane_node_get(l, level, i, &n);
    const struct lane_event *e = &ev[n.first];
    int64_t busy = 0, gap = 0, longest = -1;
    for (uint64_t k = 0; k < n.count; k++) {
        int64_t dur = e[k].end_ps - e[k].begin_ps;
        busy += dur;
        if (dur > longest)
            longest = dur;
        if (k && e[k].begin_ps - e[k - 1].end_ps > gap)
            gap = e[k].begin_ps - e[k - 1].end_ps;
    }
    assert_int_equal(n.begin_ps, e[0].begin_ps);
    assert_int_equal(n.end_ps, e[n.count - 1].end_ps);
    assert_int_equal(n.busy_ps, busy);
    assert_int_equal(n.max_gap_ps, gap);
    assert_int_equal(n.longest_ps, longest);
    bool found = false;
    for (uint64_t k = 0; k < n.count; k++)
        found |= e[k].at == n.longest_at && e[k].name == n.longest_name &&
                 e[k].begin_ps == n.longest_begin_ps && e[k].end_ps - e[k].begin_ps == longest;
    assert_true(found);
}

static struct lane_event *unpack(const struct lane *l)
{
    struct lane_event *ev = test_malloc((lane_count(l) + LANE_BLOCK) * sizeof *ev);
    struct lane_cursor c;
    lane_seek(&c, l, INT64_MIN);
    size_t n = 0, k;
    while ((k = lane_next_block(&c, ev + n)))
        n += k;
    assert_int_equal(n, lane_count(l));
    return ev;
}

static void pyramid_nodes_equal_recomputation(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 63, 64, 65, 1024, 1025, 16384, 16385, 70001};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct lane_raw *ev = random_events(sizes[s], 1, sizes[s] * 300, 200);
        struct xp_arena *a = xp_arena_new(NULL);
        struct part_line line = {0};
        fill(&line, a, ev, sizes[s]);
        for (uint32_t i = 0; i < line.nlanes; i++) {
            const struct lane *l = line.lanes[i];
            struct lane_event *all = unpack(l);
            for (int level = 0; level < lane_levels(l); level++) {
                uint64_t covered = 0;
                for (uint64_t k = 0; k < lane_nodes(l, level); k++) {
                    struct lane_node n;
                    lane_node_get(l, level, k, &n);
                    assert_int_equal(n.first, covered);
                    covered += n.count;
                    check_node(l, all, level, k);
                }
                assert_int_equal(covered, lane_count(l));
            }
            assert_int_equal(lane_nodes(l, lane_levels(l) - 1), 1);
            assert_int_equal(lane_nodes(l, lane_levels(l)), 0);
            test_free(all);
        }
        xp_arena_free(a);
        test_free(ev);
    }
}

static void same_event(const struct lane_event *a, const struct lane_event *b)
{
    assert_int_equal(a->begin_ps, b->begin_ps);
    assert_int_equal(a->end_ps, b->end_ps);
    assert_int_equal(a->name, b->name);
    assert_int_equal(a->at, b->at);
    assert_int_equal(a->ord, b->ord);
}

static void seek_equals_linear_scan(void **state)
{
    (void)state;
    struct lane_raw *ev = random_events(3000, 10, 9000, 5);
    struct xp_arena *a = xp_arena_new(NULL);
    struct part_line line = {0};
    fill(&line, a, ev, 3000);
    for (uint32_t i = 0; i < line.nlanes; i++) {
        const struct lane *l = line.lanes[i];
        struct lane_event *all = unpack(l);
        for (int round = 0; round < 500; round++) {
            int64_t t = (int64_t)(rng() % 95000) - 3000;
            if (round % 2)
                t = round % 4 == 1 ? all[rng() % lane_count(l)].end_ps
                                   : all[rng() % lane_count(l)].begin_ps;
            uint64_t want = 0;
            while (want < lane_count(l) &&
                   !(all[want].end_ps > t ||
                     (all[want].begin_ps == all[want].end_ps && all[want].begin_ps >= t)))
                want++;
            struct lane_cursor c;
            struct lane_event got;
            lane_seek(&c, l, t);
            assert_int_equal(lane_next(&c, &got), want < lane_count(l));
            if (want < lane_count(l)) {
                assert_int_equal(got.ord, want);
                assert_int_equal(got.at, all[want].at);
            }
            uint64_t ord = rng() % (lane_count(l) + 2);
            lane_seek_ord(&c, l, ord);
            assert_int_equal(lane_next(&c, &got), ord < lane_count(l));
            if (ord < lane_count(l))
                same_event(&got, &all[ord]);
        }
        test_free(all);
    }
    xp_arena_free(a);
    test_free(ev);
}

static void next_block_and_next_give_the_same_events(void **state)
{
    (void)state;
    struct lane_raw *ev = random_events(1000, 1000, 1000000, 5);
    struct xp_arena *a = xp_arena_new(NULL);
    struct part_line line = {0};
    fill(&line, a, ev, 1000);
    const struct lane *l = line.lanes[0];
    struct lane_event *all = unpack(l);
    struct lane_cursor c;
    lane_seek_ord(&c, l, 30);
    struct lane_event block[LANE_BLOCK], one;
    assert_int_equal(lane_next_block(&c, block), LANE_BLOCK - 30);
    assert_int_equal(block[0].ord, 30);
    for (int i = 0; i < 34; i++)
        same_event(&block[i], &all[30 + i]);
    assert_true(lane_next(&c, &one));
    assert_int_equal(one.ord, 64);
    lane_seek_ord(&c, l, lane_count(l));
    assert_int_equal(lane_next_block(&c, block), 0);
    assert_int_equal(lane_next_block(&c, block), 0);
    assert_false(lane_next(&c, &one));
    test_free(all);
    xp_arena_free(a);
    test_free(ev);
}

/* Events made of runs of the lanes' events, as derive/ makes them, some with times of their own. */
static size_t make_views(const struct part_line *line, struct lane_view *v)
{
    size_t n = 0;
    for (uint32_t k = 0; k < line->nlanes; k++) {
        struct lane_event *all = unpack(line->lanes[k]);
        for (uint64_t i = 0, run; i < lane_count(line->lanes[k]); i += run) {
            run = 1 + rng() % (rng() % 9 ? 4 : 200);
            uint64_t last = i + run - 1;
            if (last >= lane_count(line->lanes[k]))
                last = lane_count(line->lanes[k]) - 1;
            struct lane_view x = {
                .ev = {all[i].begin_ps + 5, all[last].end_ps + 5, 0, (uint32_t)(rng() % 300)},
                .ref = {LANE_REF(k, i), LANE_REF(k, last), rng() % 4 ? 0 : (uint32_t)(rng() % 9)}};
            x.ev.end_ps -= x.ref.cut_ns * 1000;
            if (x.ev.end_ps < x.ev.begin_ps)
                x.ev.end_ps = x.ev.begin_ps;
            if (rng() % 400 == 0) {
                x.ref.first = LANE_REF_NONE;
                x.ev.end_ps++;
            }
            v[n++] = x;
        }
        test_free(all);
    }
    qsort(v, n, sizeof *v, by_time);
    return n;
}

/* A sieve lets through all it was made for, and of a block's events gives what the block does. */
static size_t sifts_and_picks(const struct lane *l, uint64_t block, int64_t base_ps)
{
    struct lane_cursor c;
    struct lane_event all[LANE_BLOCK], some[LANE_BLOCK];
    uint8_t which[LANE_BLOCK];
    int64_t begins[LANE_BLOCK];
    uint64_t words[2] = {0}, wanted = 0;
    struct lane_sieve s = {words, 63, lane_new_id()};
    lane_seek_ord(&c, l, block * LANE_BLOCK);
    struct lane_cursor first = c;
    size_t n = lane_next_block(&c, all), found, next = 0;
    assert_int_equal(lane_block_begin(l, block), all[0].begin_ps);
    for (size_t i = 0; i < n; i++)
        if (rng() % 9 == 0) {
            uint64_t hash = lane_sieve_hash(base_ps + all[i].begin_ps);
            words[hash >> 63] |= lane_sieve_bits(hash);
            wanted |= UINT64_C(1) << i;
        }
    found = lane_sift(&first, &s, base_ps, which, begins);
    assert_int_equal(lane_sift(&first, &s, base_ps, which, begins), found);
    lane_pick(&first, begins, which, found, some);
    for (size_t i = 0; i < n; i++) {
        bool has = lane_sieve_has(&s, base_ps + all[i].begin_ps);
        assert_true(has || !(wanted >> i & 1));
        if (!has)
            continue;
        assert_int_equal(which[next], i);
        assert_int_equal(begins[next], all[i].begin_ps);
        same_event(&some[next], &all[i]);
        assert_int_equal(some[next++].ord, all[i].ord);
    }
    assert_int_equal(next, found);
    lane_seek_ord(&c, l, lane_count(l));
    assert_int_equal(lane_sift(&c, &s, base_ps, which, begins), 0);
    return n;
}

static void same_lane(const struct lane *l, const struct lane *view)
{
    struct lane_cursor a, b;
    struct lane_event x, y, bx[LANE_BLOCK], by[LANE_BLOCK];
    uint32_t nx[LANE_BLOCK], ny[LANE_BLOCK];
    assert_int_equal(lane_count(l), lane_count(view));
    lane_seek_ord(&a, l, 0);
    lane_seek_ord(&b, view, 0);
    while (lane_next(&a, &x)) {
        assert_true(lane_next(&b, &y));
        same_event(&x, &y);
    }
    for (uint64_t i = 0; i < lane_nodes(l, 0); i++) {
        lane_seek_ord(&a, l, i * LANE_BLOCK + rng() % 20);
        lane_seek_ord(&b, view, a.ord);
        size_t n = lane_next_block(&a, bx);
        assert_int_equal(lane_next_block(&b, by), n);
        for (size_t k = 0; k < n; k++)
            same_event(&bx[k], &by[k]);
        n = lane_names(l, i, nx);
        assert_int_equal(lane_names(view, i, ny), n);
        assert_memory_equal(nx, ny, n * sizeof *nx);
        assert_int_equal(sifts_and_picks(l, i, 3), n);
        assert_int_equal(sifts_and_picks(view, i, 3), n);
        lane_seek_ord(&a, l, i * LANE_BLOCK);
        lane_next_block(&a, bx);
        int64_t t = bx[rng() % n].begin_ps + (int64_t)(rng() % 30) - 1;
        lane_seek(&a, l, t);
        lane_seek(&b, view, t);
        assert_int_equal(a.ord, b.ord);
        assert_int_equal(lane_next(&a, &x), lane_next(&b, &y));
        same_event(&x, &y);
    }
}

static void a_view_gives_what_a_lane_of_its_own_would(void **state)
{
    (void)state;
    uint64_t bytes[2] = {0};
    for (int round = 0; round < 10; round++) {
        size_t n = 20000;
        struct lane_raw *ev = random_events(n, round % 2 ? 1000 : 7, n * 50, 20);
        struct xp_arena *a = xp_arena_new(NULL);
        struct part_line line = {0}, own = {0}, view = {0};
        fill(&line, a, ev, n);
        struct lane_source sources[LANE_MAX];
        for (uint32_t k = 0; k < line.nlanes; k++)
            sources[k] = (struct lane_source){line.lanes[k], 5, lane_id(line.lanes[k])};
        struct lane_view *v = test_malloc(n * sizeof *v);
        size_t nv = make_views(&line, v);
        struct line_builder *b = line_builder_new(a), *w = line_builder_view(a, sources);
        for (size_t i = 0; i < nv; i++)
            assert_int_equal(line_builder_add_many(b, &v[i].ev, 1), XP_OK);
        assert_int_equal(line_builder_add_views(w, v, nv), XP_OK);
        assert_int_equal(line_builder_end(b, &own), XP_OK);
        assert_int_equal(line_builder_end(w, &view), XP_OK);
        assert_int_equal(own.nlanes, view.nlanes);
        for (uint32_t k = 0; k < own.nlanes; k++) {
            same_lane(own.lanes[k], view.lanes[k]);
            /* the source's blocks are known by now */
            for (uint64_t i = 0; k < line.nlanes && i < lane_nodes(line.lanes[k], 0); i++)
                sifts_and_picks(line.lanes[k], i, 8);
            for (uint64_t i = 0; i < own.lanes[k]->nblocks; i++) {
                bytes[0] += lane_block(own.lanes[k], i)->bytes;
                bytes[1] += lane_block(view.lanes[k], i)->bytes;
            }
        }
        test_free(v);
        xp_arena_free(a);
        test_free(ev);
    }
    assert_true(bytes[1] < bytes[0]); /* some blocks are views */
}

static void events_beyond_the_last_lane_are_kept_and_counted(void **state)
{
    (void)state;
    struct xp_arena *a = xp_arena_new(NULL);
    struct part_line line = {0};
    struct line_builder *b = line_builder_new(a);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(line_builder_add(b, i, 100000 + i * 3 % 70, (uint32_t)i, (uint64_t)i * 9),
                         XP_OK);
    assert_int_equal(line_builder_end(b, &line), XP_OK);
    assert_int_equal(line.nlanes, LANE_MAX);
    assert_int_equal(line.overflow, 1000 - LANE_MAX);
    struct line_cursor c;
    assert_int_equal(line_seek(&c, &line, INT64_MIN, a), XP_OK);
    struct lane_event ev;
    for (int i = 0; i < 1000; i++) {
        assert_true(line_next(&c, &ev, NULL));
        assert_int_equal(ev.begin_ps, i);
        assert_int_equal(ev.end_ps, 100000 + i * 3 % 70);
        assert_int_equal(ev.at, i * 9);
    }
    assert_false(line_next(&c, &ev, NULL));
    xp_arena_free(a);
}

static void extreme_times_survive(void **state)
{
    (void)state;
    struct xp_arena *a = xp_arena_new(NULL);
    struct part_line line = {0};
    struct line_builder *b = line_builder_new(a);
    assert_int_equal(line_builder_add(b, INT64_MIN, INT64_MIN, UINT32_MAX, 0), XP_OK);
    assert_int_equal(line_builder_add(b, 0, INT64_MAX, 0, UINT64_MAX), XP_OK);
    assert_int_equal(line_builder_add(b, INT64_MAX, 0, 1, 3), XP_OK);
    assert_int_equal(line_builder_add(b, 5, 6, 1, 3), XP_INTERNAL); /* out of order */
    assert_int_equal(line_builder_end(b, &line), XP_OK);
    struct line_cursor c;
    assert_int_equal(line_seek(&c, &line, INT64_MIN, a), XP_OK);
    struct lane_event ev;
    assert_true(line_next(&c, &ev, NULL));
    assert_int_equal(ev.begin_ps, -LANE_TIME_MAX);
    assert_int_equal(ev.name, UINT32_MAX);
    assert_true(line_next(&c, &ev, NULL));
    assert_int_equal(ev.end_ps, LANE_TIME_MAX);
    assert_int_equal(ev.at, UINT64_MAX);
    assert_true(line_next(&c, &ev, NULL));
    assert_int_equal(ev.begin_ps, LANE_TIME_MAX);
    assert_int_equal(ev.end_ps, LANE_TIME_MAX);
    assert_false(line_next(&c, &ev, NULL));
    xp_arena_free(a);
}

static void an_empty_line_has_no_lanes(void **state)
{
    (void)state;
    struct xp_arena *a = xp_arena_new(NULL);
    struct part_line line = {0};
    fill(&line, a, NULL, 0);
    assert_int_equal(line.nlanes, 0);
    struct line_cursor c;
    assert_int_equal(line_seek(&c, &line, 0, a), XP_OK);
    struct lane_event ev;
    assert_false(line_next(&c, &ev, NULL));
    xp_arena_free(a);
}

static void a_builder_is_empty_again_after_its_end(void **state)
{
    (void)state;
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_bump out;
    xp_bump_init(&out, a);
    struct line_builder *b = line_builder_on(a, &out);
    for (int round = 0; round < 3; round++) {
        struct part_line line = {0};
        for (int i = 0; i < 10000; i++)
            assert_int_equal(line_builder_add(b, i * 10, i * 10 + 15 - round * 5, 1, (uint64_t)i),
                             XP_OK);
        assert_int_equal(line_builder_end(b, &line), XP_OK);
        assert_int_equal(line.nevents, 10000);
        assert_int_equal(line.nlanes, round ? 1 : 2);
    }
    xp_arena_free(a);
}

static void a_spent_budget_is_busy_not_a_crash(void **state)
{
    (void)state;
    for (uint64_t limit = 1; limit < 1000000; limit += 45000) {
        struct xp_budget budget;
        xp_budget_init(&budget, limit);
        struct xp_arena *a = xp_arena_new(&budget);
        assert_non_null(a);
        struct line_builder *b = line_builder_new(a);
        enum xp_status st = b ? XP_OK : XP_BUSY;
        for (int i = 0; i < 500000 && st == XP_OK; i++)
            st = line_builder_add(b, i * 10L, i * 10L + 5, (uint32_t)i, (uint64_t)i * 50);
        assert_int_equal(st, XP_BUSY);
        xp_arena_free(a);
        assert_int_equal(budget.used, 0);
    }
}

static int64_t narrow(int shift)
{
    return (int64_t)(rng() >> shift);
}

/* Of any size and width; whole nanoseconds, nearly whole ones, and not; overlapping too. */
static void blocks_are_packed_alike_on_all_cpus_and_come_back(void **state)
{
    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct lane_raw ev[LANE_BLOCK];
        struct lane_event back[LANE_BLOCK];
        uint8_t packed[2][LANE_PACK_MAX] = {0};
        struct lane_block b[2];
        struct lane_columns c;
        struct lane_unpack u;
        uint32_t n = 1 + (uint32_t)(rng() % LANE_BLOCK);
        int64_t unit = round % 3 ? 1 : 1000, t = unit * (narrow(34) - narrow(34));
        int widths = 20 + (int)(rng() % 44);
        for (uint32_t i = 0; i < n; i++) {
            t += unit * narrow(widths < 34 ? 34 : widths) - (round % 7 ? 0 : unit * 1000);
            int64_t dur = unit * narrow(34 + (int)(rng() % 29));
            if (round % 3 == 0 && rng() % 500 == 0)
                dur += 500;
            ev[i] = (struct lane_raw){t, t + dur, i ? ev[i - 1].at + rng() % 5000 : rng() >> 8,
                                      (uint32_t)(rng() >> (33 + rng() % 31))};
            t += dur;
        }
        lane_measure(ev, n, &b[0], &c);
        size_t bytes = lane_pack(ev, n, &c, &b[0], packed[0]);
        lane_measure_plain(ev, n, &b[1], &c);
        assert_int_equal(lane_pack_plain(ev, n, &c, &b[1], packed[1]), bytes);
        assert_memory_equal(packed[0], packed[1], bytes);
        assert_int_equal(b[0].busy_ps, b[1].busy_ps);
        assert_int_equal(b[0].longest_at, b[1].longest_at);
        b[0].data = packed[0];
        lane_unpack_open(&u, &b[0]);
        lane_unpack_many(&u, back, n, 0);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(back[i].begin_ps == ev[i].begin_ps && back[i].end_ps == ev[i].end_ps);
            assert_true(back[i].name == ev[i].name && back[i].at == ev[i].at);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_hold_exactly_the_events_and_never_overlap),
        cmocka_unit_test(pyramid_nodes_equal_recomputation),
        cmocka_unit_test(seek_equals_linear_scan),
        cmocka_unit_test(next_block_and_next_give_the_same_events),
        cmocka_unit_test(a_view_gives_what_a_lane_of_its_own_would),
        cmocka_unit_test(events_beyond_the_last_lane_are_kept_and_counted),
        cmocka_unit_test(extreme_times_survive),
        cmocka_unit_test(an_empty_line_has_no_lanes),
        cmocka_unit_test(a_builder_is_empty_again_after_its_end),
        cmocka_unit_test(blocks_are_packed_alike_on_all_cpus_and_come_back),
        cmocka_unit_test(a_spent_budget_is_busy_not_a_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
