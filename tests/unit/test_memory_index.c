#include "shard/tools/memory_index.h"

#include "tests/unit/unit.h"

#define EVENTS 3000
#define PLACES 97

/* Allocations and frees of few addresses, so that some are handed out again without being taken
 * back, and some taken back that nobody handed out; several events at one time. */
static void make_changes(struct memory_change *v)
{
    uint64_t mix = 1;
    for (size_t i = 0; i < EVENTS; i++) {
        mix = mix * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        v[i] = (struct memory_change){.time_ps = (int64_t)(i / 3) * 1000 - 5000,
                                      .at = i % 3 == 0 ? i * 50 : i * 50 + 7,
                                      .address = (mix >> 40) % PLACES,
                                      .frees = (mix >> 33) % 2};
    }
}

static bool made(struct memory_index *x, const struct memory_change *v, size_t n,
                 struct xp_arena *a)
{
    struct xp_bump out;
    xp_bump_init(&out, a);
    return memory_index_make(x, v, n, a, &out);
}

static void what_is_alive_is_what_a_walk_through_all_events_finds(void **state)
{
    static struct memory_change v[EVENTS];
    static struct memory_moment alive[EVENTS];
    struct xp_arena *a = xp_arena_new(NULL);
    struct memory_index x;
    uint64_t at[PLACES] = {0}; /* what is there, by number + 1 */
    (void)state;
    make_changes(v);
    assert_true(made(&x, v, EVENTS, a));
    for (uint64_t i = 0; i < EVENTS; i++) {
        size_t expected = 0;
        at[v[i].address] = v[i].frees ? 0 : i + 1;
        for (size_t k = 0; k < PLACES; k++)
            expected += at[k] != 0;
        size_t n = memory_index_alive(&x, i, alive);
        assert_int_equal(n, expected);
        for (size_t k = 0; k < n; k++) {
            assert_true(k == 0 || alive[k - 1].number < alive[k].number);
            assert_int_equal(at[v[alive[k].number].address], alive[k].number + 1);
            assert_int_equal(alive[k].at, v[alive[k].number].at);
            assert_int_equal(alive[k].time_ps, v[alive[k].number].time_ps);
        }
    }
    xp_arena_free(a);
}

static void a_moment_is_the_last_event_that_is_not_after_it(void **state)
{
    static struct memory_change v[EVENTS];
    struct xp_arena *a = xp_arena_new(NULL);
    struct memory_index x;
    struct memory_moment m;
    (void)state;
    make_changes(v);
    assert_true(made(&x, v, EVENTS, a));
    assert_false(memory_index_find(&x, v[0].time_ps - 1, UINT64_MAX, &m));
    for (size_t i = 0; i < EVENTS; i++) {
        assert_true(memory_index_find(&x, v[i].time_ps, v[i].at, &m));
        assert_int_equal(m.number, i);
        assert_int_equal(m.at, v[i].at);
        assert_true(memory_index_find(&x, v[i].time_ps + 999, UINT64_MAX, &m));
        assert_int_equal(m.number, i / 3 * 3 + 2);
    }
    assert_true(memory_index_find(&x, INT64_MAX, UINT64_MAX, &m));
    assert_int_equal(m.number, EVENTS - 1);
    xp_arena_free(a);
}

static void an_allocator_without_events_has_no_moment(void **state)
{
    struct xp_arena *a = xp_arena_new(NULL);
    struct memory_index x;
    struct memory_moment m;
    (void)state;
    assert_true(made(&x, NULL, 0, a));
    assert_false(memory_index_find(&x, 0, 0, &m));
    assert_int_equal(memory_index_alive(&x, 0, NULL), 0);
    xp_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_alive_is_what_a_walk_through_all_events_finds),
        cmocka_unit_test(a_moment_is_the_last_event_that_is_not_after_it),
        cmocka_unit_test(an_allocator_without_events_has_no_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
