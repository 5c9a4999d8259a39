#include "shard/store/device.h"

#include "tests/unit/unit.h"
#include "tests/unit/xspace_make.h"

static const struct device_times *pack(struct xp_arena *a, const uint64_t (*v)[2], size_t n)
{
    struct device_pen pen;
    struct xp_bump out;
    const struct device_times *t;
    xp_bump_init(&out, a);
    device_pen_reset(&pen);
    for (size_t i = 0; i < n; i++)
        assert_true(device_pen_add(&pen, &out, v[i][0], v[i][1]));
    assert_true(device_pen_end(&pen, &out, &t));
    return t;
}

static void same(const struct device_times *t, const uint64_t (*v)[2], size_t n)
{
    struct device_cursor c;
    device_open(&c, t, 0);
    for (size_t i = 0; i < n; i++) {
        uint64_t shift, longer;
        device_next(&c, &shift, &longer);
        assert_int_equal(shift, v[i][0]);
        assert_int_equal(longer, v[i][1]);
    }
}

static void a_constant_shift_keeps_nothing(void **state)
{
    (void)state;
    static const uint64_t v[3][2] = {{77, 0}, {77, 0}, {77, 0}};
    struct xp_arena *a = xp_arena_new(NULL);
    const struct device_times *t = pack(a, v, 3);
    assert_null(t->first);
    same(t, v, 3);
    xp_arena_free(a);
}

static void every_difference_comes_back(void **state)
{
    (void)state;
    enum { N = 20000 };
    static uint64_t v[N][2];
    uint64_t seed = 7;
    for (int i = 0; i < N; i++) {
        v[i][0] = i > 100 && make_rng(&seed) % 8 == 0 ? make_rng(&seed) : i ? v[i - 1][0] : 5;
        v[i][1] = make_rng(&seed) % 3 ? make_rng(&seed) % 4000 - 2000 : 0;
    }
    v[3][1] = UINT64_MAX / 2;
    v[4][1] = UINT64_C(1) << 63;
    v[5][0] = v[5][1] = UINT64_MAX;
    struct xp_arena *a = xp_arena_new(NULL);
    same(pack(a, v, N), v, N);
    xp_arena_free(a);
}

static void a_late_difference_keeps_what_came_before(void **state)
{
    (void)state;
    static uint64_t v[9000][2];
    for (int i = 0; i < 9000; i++)
        v[i][0] = 12;
    v[8999][1] = 1;
    struct xp_arena *a = xp_arena_new(NULL);
    same(pack(a, v, 9000), v, 9000);
    xp_arena_free(a);
}

static void a_line_without_times_runs_on_session_time(void **state)
{
    (void)state;
    struct device_cursor c;
    uint64_t shift, longer;
    device_open(&c, NULL, 1000);
    device_next(&c, &shift, &longer);
    assert_int_equal(shift, 1000);
    assert_int_equal(longer, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constant_shift_keeps_nothing),
        cmocka_unit_test(every_difference_comes_back),
        cmocka_unit_test(a_late_difference_keeps_what_came_before),
        cmocka_unit_test(a_line_without_times_runs_on_session_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
