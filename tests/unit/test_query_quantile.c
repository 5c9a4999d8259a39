#include "shard/query/quantile.h"
#include "tests/unit/query_support.h"

static int by_u64(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

/* n values, shift taken off random 64-bit ones. */
static void compare(size_t n, unsigned shift, double error)
{
    struct xp_arena *a = xp_arena_new(NULL);
    struct quantile q;
    uint64_t rng = 17 + n, *v = malloc(n * sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = fixture_random(&rng) >> (shift + fixture_random(&rng) % 8);
    uint64_t *sorted = malloc(n * sizeof *v);
    memcpy(sorted, v, n * sizeof *v);
    qsort(sorted, n, sizeof *v, by_u64);
    assert_true(quantile_init(&q, a, n, sorted[0], sorted[n - 1]));
    for (size_t i = 0; i < n; i++)
        quantile_add(&q, v[i]);
    for (uint32_t percent = 0; percent <= 100; percent++) {
        size_t rank = (n * percent + 99) / 100;
        double want = (double)sorted[rank ? rank - 1 : 0];
        double have = (double)quantile_get(&q, percent);
        assert_true(have >= want * (1 - error) && have <= want * (1 + error));
    }
    free(v);
    free(sorted);
    xp_arena_free(a);
}

static void few_values_are_exact(void **state)
{
    (void)state;
    size_t sizes[] = {1, 2, 3, 10, 999, 4096};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned shift = 0; shift < 60; shift += 9)
            compare(sizes[i], shift, 0);
}

static void many_values_are_within_one_percent(void **state)
{
    (void)state;
    for (unsigned shift = 0; shift < 60; shift += 5)
        compare(4097 + shift * 100, shift, 0.01);
}

static void buckets_ascend_without_a_gap(void **state)
{
    (void)state;
    uint32_t last = 0;
    for (uint64_t v = 1; v < 1000000; v++) {
        uint32_t b = quantile_bucket(v);
        assert_true(b == last || b == last + 1);
        last = b;
    }
    assert_true(quantile_bucket(UINT64_MAX) < 64 * 64);
    assert_int_equal(quantile_bucket(UINT64_C(1) << 63),
                     quantile_bucket((UINT64_C(1) << 63) - 1) + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_values_are_exact),
        cmocka_unit_test(many_values_are_within_one_percent),
        cmocka_unit_test(buckets_ascend_without_a_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
