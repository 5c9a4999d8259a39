#include "shard/tools/mega_rate.h"

#include "lib/base/arena.h"
#include "tests/unit/unit.h"

static struct xp_arena *arena;

static int setup(void **state)
{
    (void)state;
    arena = xp_arena_new(NULL);
    return arena ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    xp_arena_free(arena);
    return 0;
}

static void push(struct vec *v, int64_t begin, int64_t end, uint64_t bytes, uint8_t curve)
{
    struct mega_flow *f = vec_push(v, sizeof *f);
    assert_non_null(f);
    *f = (struct mega_flow){begin, end, bytes, curve};
}

static double sum(const struct mega_rate *r, int curve)
{
    double all = 0;
    for (uint32_t i = 0; i < r->n; i++)
        all += r->bins[i].bytes[curve];
    return all;
}

static void bytes_go_at_one_rate_from_begin_to_end(void **state)
{
    (void)state;
    struct vec flows = {0}, spans = {0};
    struct mega_rate r;
    push(&flows, 512, 512 + 2048, 4096, MEGA_TX); /* 2 bytes a ps, over three bins of 1024 */
    push(&spans, 0, 1024, 0, 0);
    assert_true(mega_rate_of(&r, &flows, &spans, arena));
    assert_int_equal(r.shift, 10);
    assert_int_equal(r.n, 3);
    assert_float_equal(r.bins[0].bytes[MEGA_TX], 1024, 1e-9);
    assert_float_equal(r.bins[1].bytes[MEGA_TX], 2048, 1e-9);
    assert_float_equal(r.bins[2].bytes[MEGA_TX], 1024, 1e-9);
    assert_float_equal(r.bins[1].byte_ps[MEGA_TX], 4096.0 * 1024, 1e-6);
    assert_float_equal(r.bins[0].inflight_ps, 1024, 1e-9);
    assert_float_equal(sum(&r, MEGA_RX), 0, 0);
    vec_free(&flows);
    vec_free(&spans);
}

static void no_byte_is_lost_where_hosts_are_joined(void **state)
{
    (void)state;
    struct vec a = {0}, b = {0}, none = {0};
    struct mega_rate x, y;
    push(&a, 5000, 9000, 700, MEGA_TX);
    push(&a, 7000, 7000, 11, MEGA_TX); /* at once */
    push(&b, INT64_C(1) << 40, (INT64_C(1) << 40) + 5, 1300, MEGA_TX);
    push(&b, -3000, 100, 17, MEGA_RX);
    assert_true(mega_rate_of(&x, &a, &none, arena) && mega_rate_of(&y, &b, &none, arena));
    assert_true(mega_rate_join(&x, &y, arena));
    assert_true(x.n <= MEGA_BINS && x.first < 0);
    assert_float_equal(sum(&x, MEGA_TX), 2011, 1e-6);
    assert_float_equal(sum(&x, MEGA_RX), 17, 1e-6);
    vec_free(&a);
    vec_free(&b);
}

static void times_at_the_ends_of_what_there_is_do_no_harm(void **state)
{
    (void)state;
    struct vec v = {0}, none = {0};
    struct mega_rate r;
    push(&v, -(INT64_C(1) << 62), INT64_C(1) << 62, 100, MEGA_TX);
    assert_true(mega_rate_of(&r, &v, &none, arena));
    assert_true(r.n <= MEGA_BINS);
    assert_float_equal(sum(&r, MEGA_TX), 100, 1e-6);
    vec_free(&v);
}

static void nothing_gives_no_curve(void **state)
{
    (void)state;
    struct vec none = {0};
    struct mega_rate r;
    assert_true(mega_rate_of(&r, &none, &none, arena));
    assert_int_equal(r.n, 0);
}

static void sizes_are_what_goes_to_other_devices(void **state)
{
    (void)state;
    uint64_t n;
    assert_true(mega_rate_bytes(XP_SPAN_LIT("s100001->200001d|$c0=1000"), &n) && n == 1000);
    assert_true(mega_rate_bytes(XP_SPAN_LIT("s1->2d|$c0=5, s1->1d|$c0=70, s1->3d|$c12=6"), &n) &&
                n == 11);
    assert_true(mega_rate_bytes(XP_SPAN_LIT("1048576"), &n) && n == 1048576);
    assert_false(mega_rate_bytes(XP_SPAN_LIT("s1->2d|$c0="), &n));
    assert_false(mega_rate_bytes(XP_SPAN_LIT("12 MB"), &n));
    assert_false(mega_rate_bytes((struct xp_span){0}, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_go_at_one_rate_from_begin_to_end, setup, teardown),
        cmocka_unit_test_setup_teardown(no_byte_is_lost_where_hosts_are_joined, setup, teardown),
        cmocka_unit_test_setup_teardown(times_at_the_ends_of_what_there_is_do_no_harm, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nothing_gives_no_curve, setup, teardown),
        cmocka_unit_test(sizes_are_what_goes_to_other_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
