#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "shard/store/side_int.h"

#define N 10000

static uint64_t at_of(uint64_t i)
{
    return 1000 + i * 40 + i % 7;
}

static int stats_of(uint64_t i, struct side_stat *s)
{
    int n = (int)(i % 4) + 1;
    for (int k = 0; k < n; k++) {
        s[k].kind = (uint8_t)((i + (uint64_t)k * 3) % STAT_KIND_COUNT);
        s[k].type = (uint8_t)((i / 3 + (uint64_t)k) % 4);
        s[k].num = i % 5 ? i * 77777777777u : (uint64_t) - (int64_t)i;
    }
    return n;
}

static const struct side *make(struct xp_arena *a)
{
    struct xp_bump out;
    xp_bump_init(&out, a);
    struct side_pen *pen = xp_arena_alloc(a, sizeof *pen);
    side_pen_init(pen);
    for (uint64_t i = 0; i < N; i++) {
        struct side_stat s[SIDE_MAX];
        int n = stats_of(i, s);
        assert_true(side_pen_add(pen, at_of(i), s, n, a, &out));
    }
    const struct side *side;
    assert_true(side_pen_end(pen, a, &out, &side));
    assert_non_null(side);
    return side;
}

static void same(const struct side_cursor *c, uint64_t i)
{
    struct side_stat s[SIDE_MAX];
    int n = stats_of(i, s);
    assert_int_equal(c->n, n);
    assert_int_equal(c->at, at_of(i));
    for (int k = 0; k < n; k++) {
        assert_int_equal(c->stats[k].kind, s[k].kind);
        assert_int_equal(c->stats[k].type, s[k].type);
        assert_int_equal(c->stats[k].num, s[k].num);
    }
}

static void stream_gives_back_what_was_written(void **state)
{
    (void)state;
    struct xp_arena *a = xp_arena_new(NULL);
    struct side_cursor c;
    side_open(&c, make(a));
    for (uint64_t i = 0; i < N; i++) {
        assert_true(side_next(&c));
        same(&c, i);
    }
    assert_false(side_next(&c));
    assert_false(side_next(&c));
    xp_arena_free(a);
}

static void events_of_a_kind_are_counted_once_each(void **state)
{
    (void)state;
    struct xp_arena *a = xp_arena_new(NULL);
    const struct side *side = make(a);
    uint64_t counts[STAT_KIND_COUNT] = {0}, zeros = 0;
    for (uint64_t i = 0; i < N; i++) {
        struct side_stat s[SIDE_MAX];
        uint64_t kinds = 0;
        for (int n = stats_of(i, s), k = 0; k < n; k++) {
            kinds |= UINT64_C(1) << s[k].kind;
            zeros |= (uint64_t)!s[k].num << s[k].kind;
        }
        for (int kind = 0; kind < STAT_KIND_COUNT; kind++)
            counts[kind] += kinds >> kind & 1;
    }
    for (int kind = 0; kind < STAT_KIND_COUNT; kind++)
        assert_int_equal(side_count(side, (enum stat_kind)kind), counts[kind]);
    assert_int_equal(side_zeros(side), zeros);
    assert_int_equal(side_events(side), N);
    assert_int_equal(side_count(NULL, STAT_FLOW) + side_events(NULL) + side_zeros(NULL), 0);

    struct xp_bump out;
    xp_bump_init(&out, a);
    struct side_pen *pen = xp_arena_alloc(a, sizeof *pen);
    side_pen_init(pen);
    struct side_stat twice[] = {{STAT_FLOW, SIDE_U64, 7}, {STAT_FLOW, SIDE_U64, 8}};
    assert_true(side_pen_add(pen, 10, twice, 2, a, &out));
    assert_true(side_pen_end(pen, a, &out, &side));
    assert_int_equal(side_count(side, STAT_FLOW), 1);
    assert_int_equal(side_count(side, STAT_IS_ASYNC), 0);
    assert_int_equal(side_zeros(side), 0);
    xp_arena_free(a);
}

static void find_works_in_any_order(void **state)
{
    (void)state;
    struct xp_arena *a = xp_arena_new(NULL);
    struct side_cursor c;
    side_open(&c, make(a));
    for (uint64_t k = 0; k < N; k++) { /* ascending, events without stats between */
        assert_false(side_find(&c, at_of(k) - 1));
        assert_int_equal(c.n, 0);
        assert_true(side_find(&c, at_of(k)));
        same(&c, k);
        assert_true(side_find(&c, at_of(k)));
        same(&c, k);
    }
    assert_false(side_find(&c, at_of(N)));
    for (uint64_t k = 0; k < N; k++) {
        uint64_t i = k * 7919 % N;
        assert_true(side_find(&c, at_of(i)));
        same(&c, i);
        assert_false(side_find(&c, at_of(i) + 1));
    }
    assert_false(side_find(&c, 0));
    assert_true(side_find(&c, at_of(0)));
    assert_true(side_next(&c));
    same(&c, 1);
    xp_arena_free(a);
}

static void get_gives_the_last_stat_of_a_kind(void **state)
{
    (void)state;
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_bump out;
    xp_bump_init(&out, a);
    struct side_pen *pen = xp_arena_alloc(a, sizeof *pen);
    side_pen_init(pen);
    struct side_stat s[3] = {{STAT_GROUP_ID, SIDE_I64, 4},
                             {STAT_FLOW, SIDE_U64, 5},
                             {STAT_GROUP_ID, SIDE_I64, (uint64_t)-6}};
    assert_true(side_pen_add(pen, 10, s, 3, a, &out));
    const struct side *side;
    assert_true(side_pen_end(pen, a, &out, &side));
    struct side_cursor c;
    side_open(&c, side);
    assert_true(side_find(&c, 10));
    assert_int_equal((int64_t)side_get(&c, STAT_GROUP_ID)->num, -6);
    assert_int_equal(side_get(&c, STAT_FLOW)->num, 5);
    assert_null(side_get(&c, STAT_RUN_ID));
    xp_arena_free(a);
}

static void no_side_finds_nothing(void **state)
{
    (void)state;
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_bump out;
    xp_bump_init(&out, a);
    struct side_pen *pen = xp_arena_alloc(a, sizeof *pen);
    side_pen_init(pen);
    const struct side *side;
    assert_true(side_pen_end(pen, a, &out, &side));
    assert_null(side);
    struct side_cursor c;
    side_open(&c, side);
    assert_false(side_next(&c));
    assert_false(side_find(&c, 1));
    assert_null(side_get(&c, STAT_FLOW));
    xp_arena_free(a);
}

static void kinds_have_names_and_are_found_by_them(void **state)
{
    (void)state;
    for (int k = 0; k < STAT_KIND_COUNT; k++)
        assert_int_equal(stat_kind_of(xp_span_str(stat_kind_name((enum stat_kind)k))), k);
    assert_int_equal(stat_kind_of(XP_SPAN_LIT("nothing")), STAT_NOT_KEPT);
    assert_int_equal(stat_kind_of((struct xp_span){0}), STAT_NOT_KEPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stream_gives_back_what_was_written),
        cmocka_unit_test(events_of_a_kind_are_counted_once_each),
        cmocka_unit_test(find_works_in_any_order),
        cmocka_unit_test(get_gives_the_last_stat_of_a_kind),
        cmocka_unit_test(no_side_finds_nothing),
        cmocka_unit_test(kinds_have_names_and_are_found_by_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
