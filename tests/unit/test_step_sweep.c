#include "shard/stats/steps.h"
#include "tests/unit/unit.h"
#include "tests/unit/xspace_make.h"

static struct step_mix sweep(const struct step_span *v, size_t n, uint64_t begin, uint64_t end)
{
    struct step_mix mix;
    struct xp_error err;
    assert_int_equal(step_sweep(v, n, begin, end, &mix, &err), XP_OK);
    return mix;
}

static uint64_t sum(const uint64_t ps[STEP_TYPES])
{
    uint64_t s = 0;
    for (int t = 0; t < STEP_TYPES; t++)
        s += ps[t];
    return s;
}

static void the_highest_type_takes_an_instant(void **state)
{
    (void)state;
    const struct step_span v[] = {{10, 50, STEP_HOST_COMPUTE},
                                  {20, 30, STEP_WAIT_INPUT},
                                  {25, 60, STEP_HOST_TO_DEVICE},
                                  {80, 90, STEP_HOST_COMPUTE}};
    struct step_mix m = sweep(v, 4, 0, 100);
    assert_int_equal(m.within_ps[STEP_HOST_COMPUTE], 10 + 10);
    assert_int_equal(m.within_ps[STEP_WAIT_INPUT], 10);
    assert_int_equal(m.within_ps[STEP_HOST_TO_DEVICE], 30);
    assert_int_equal(m.within_ps[STEP_UNKNOWN], 20); /* the pause between; not the edges */
    assert_int_equal(sum(m.all_ps), 80);
}

static void only_what_lies_in_the_step_is_its_own(void **state)
{
    (void)state;
    const struct step_span v[] = {{0, 40, STEP_COMPUTE_32}, {60, 100, STEP_COMPUTE_16}};
    struct step_mix m = sweep(v, 2, 30, 70);
    assert_int_equal(m.within_ps[STEP_COMPUTE_32], 10);
    assert_int_equal(m.within_ps[STEP_UNKNOWN], 20);
    assert_int_equal(m.within_ps[STEP_COMPUTE_16], 10);
    assert_int_equal(m.all_ps[STEP_COMPUTE_32], 40);
    m = sweep(v, 2, 200, 300);
    assert_int_equal(sum(m.within_ps), 0);
    assert_true(m.seen[STEP_COMPUTE_16]);
    assert_false(m.seen[STEP_HOST_COMPUTE]);
}

static void nothing_gives_nothing(void **state)
{
    (void)state;
    struct step_mix m = sweep(NULL, 0, 0, 100);
    assert_int_equal(sum(m.all_ps), 0);
    assert_false(m.seen[STEP_UNKNOWN]);
}

/* XProf's fault, which its answers show. */
static void an_event_of_no_length_sticks_until_its_type_ends(void **state)
{
    (void)state;
    const struct step_span v[] = {{10, 10, STEP_WAIT_INPUT},
                                  {20, 30, STEP_HOST_COMPUTE},
                                  {40, 50, STEP_WAIT_INPUT},
                                  {60, 70, STEP_HOST_COMPUTE}};
    struct step_mix m = sweep(v, 4, 0, 100);
    assert_int_equal(m.within_ps[STEP_WAIT_INPUT], 40);
    assert_int_equal(m.within_ps[STEP_UNKNOWN], 10);
    assert_int_equal(m.within_ps[STEP_HOST_COMPUTE], 10);
}

static void times_far_apart_do_not_overflow(void **state)
{
    (void)state;
    const struct step_span v[] = {{0, UINT64_MAX, STEP_COMPUTE_32}, {5, 10, STEP_COMPUTE_16}};
    struct step_mix m = sweep(v, 2, 0, 100);
    assert_int_equal(m.within_ps[STEP_COMPUTE_16], 5);
    assert_int_equal(m.within_ps[STEP_COMPUTE_32], 95);
}

/* The same, an instant at a time. */
static void slow_sweep(const struct step_span *v, size_t n, uint64_t end, uint64_t ps[STEP_TYPES])
{
    uint64_t first = UINT64_MAX, last = 0;
    memset(ps, 0, STEP_TYPES * sizeof *ps);
    for (size_t i = 0; i < n; i++) {
        first = v[i].begin_ps < first ? v[i].begin_ps : first;
        last = v[i].end_ps > last ? v[i].end_ps : last;
    }
    for (uint64_t t = first; t < last && t < end; t++) {
        int best = STEP_UNKNOWN;
        for (size_t i = 0; i < n; i++)
            if (v[i].begin_ps <= t && t < v[i].end_ps && v[i].type > best)
                best = v[i].type;
        ps[best]++;
    }
}

static void many_spans_agree_with_looking_at_each_instant(void **state)
{
    (void)state;
    uint64_t rng = 7, want[STEP_TYPES];
    for (size_t n = 1; n < 1200; n = n * 3 + 1) {
        struct step_span *v = calloc(n, sizeof *v);
        for (size_t i = 0; i < n; i++) {
            v[i].begin_ps = make_rng(&rng) % 4000;
            v[i].end_ps = v[i].begin_ps + 1 + make_rng(&rng) % 50;
            v[i].type = (uint8_t)(1 + make_rng(&rng) % (STEP_TYPES - 1));
        }
        struct step_mix m = sweep(v, n, 0, 3000);
        slow_sweep(v, n, 3000, want);
        for (int t = 0; t < STEP_TYPES; t++)
            assert_int_equal(m.within_ps[t], want[t]);
        free(v);
    }
}

static struct xp_span lit(const char *s)
{
    return xp_span_str(s);
}

static void names_tell_what_a_host_does(void **state)
{
    (void)state;
    assert_int_equal(step_type_of_host(lit("scope/infeed:InfeedEnqueueTuple")),
                     STEP_HOST_TO_DEVICE);
    assert_int_equal(step_type_of_host(lit("MEMCPYHToD")), STEP_HOST_TO_DEVICE);
    assert_int_equal(step_type_of_host(lit("MemcpyHToH")), STEP_HOST_TO_HOST);
    assert_int_equal(step_type_of_host(lit("iteratorgetnextop::DoCompute")), STEP_WAIT_INPUT);
    assert_int_equal(step_type_of_host(lit("dot_general")), STEP_HOST_COMPUTE);
    assert_int_equal(step_type_of_host(lit("FunctionRun")), STEP_UNKNOWN);
    assert_int_equal(step_type_of_host(lit("EagerLocalExecute: X")), STEP_UNKNOWN);
    assert_int_equal(step_type_of_host((struct xp_span){0}), STEP_HOST_COMPUTE);
    assert_true(step_is_marker(lit("train 7")));
    assert_true(step_is_marker(lit("TraceContext")));
    assert_false(step_is_marker(lit("train/step")));
    assert_false(step_is_marker((struct xp_span){0}));
}

static void names_and_shapes_tell_what_a_gpu_does(void **state)
{
    (void)state;
    struct xp_span none = {0};
    assert_int_equal(step_type_of_gpu(lit("MemcpyDToH"), none), STEP_DEVICE_TO_HOST);
    assert_int_equal(step_type_of_gpu(lit("MemcpyDToD"), none), STEP_DEVICE_TO_DEVICE);
    assert_int_equal(step_type_of_gpu(lit("ncclAllReduceRing"), none), STEP_COLLECTIVES);
    assert_int_equal(step_type_of_gpu(lit("volta_fp16_gemm"), none), STEP_COMPUTE_16);
    assert_int_equal(step_type_of_gpu(lit("gemm"), none), STEP_COMPUTE_32);
    assert_int_equal(step_type_of_gpu(lit("gemm"), lit("(half[2,3])")), STEP_COMPUTE_16);
    assert_int_equal(step_type_of_gpu(lit("volta_fp16_gemm"), lit("(float[2])")), STEP_COMPUTE_32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_type_takes_an_instant),
        cmocka_unit_test(only_what_lies_in_the_step_is_its_own),
        cmocka_unit_test(nothing_gives_nothing),
        cmocka_unit_test(an_event_of_no_length_sticks_until_its_type_ends),
        cmocka_unit_test(times_far_apart_do_not_overflow),
        cmocka_unit_test(many_spans_agree_with_looking_at_each_instant),
        cmocka_unit_test(names_tell_what_a_host_does),
        cmocka_unit_test(names_and_shapes_tell_what_a_gpu_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
