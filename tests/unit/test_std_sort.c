#include "shard/tools/std_sort.h"
#include "tests/unit/unit.h"
#include "tests/unit/xspace_make.h"

/* What g++ 12 made of these keys, given in ascending order. */
static void equal_keys_come_as_libstdcxx_leaves_them(void **state)
{
    static const uint64_t keys[] = {27, 27, 28, 28, 28, 28, 29, 29, 29, 29, 29, 29,
                                    29, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30};
    static const uint32_t ids[] = {19, 29, 15, 18, 25, 28, 12, 14, 17, 22, 24, 27,
                                   32, 10, 11, 13, 16, 20, 21, 23, 26, 30, 31};
    static const uint32_t want[] = {29, 19, 15, 18, 25, 28, 27, 32, 24, 22, 17, 14,
                                    12, 10, 11, 13, 16, 20, 21, 23, 26, 30, 31};
    struct std_sort_item v[23];
    (void)state;
    for (int i = 0; i < 23; i++)
        v[i] = (struct std_sort_item){keys[i], ids[i]};
    std_sort(v, 23);
    for (int i = 0; i < 23; i++)
        assert_int_equal(v[i].index, want[i]);
}

static void a_short_run_keeps_the_order_of_equal_keys(void **state)
{
    struct std_sort_item v[16];
    (void)state;
    for (uint32_t i = 0; i < 16; i++)
        v[i] = (struct std_sort_item){i % 2, i};
    std_sort(v, 16);
    for (uint32_t i = 0; i < 16; i++)
        assert_int_equal(v[i].index, i < 8 ? 2 * i : 2 * (i - 8) + 1);
}

static void anything_comes_out_in_order_and_whole(void **state)
{
    uint64_t rng = 7;
    (void)state;
    for (size_t n = 0; n < 3000; n = n * 3 / 2 + 1) {
        struct std_sort_item *v = calloc(n + 1, sizeof *v);
        uint64_t sum = 0, got = 0;
        for (size_t i = 0; i < n; i++) {
            v[i] = (struct std_sort_item){make_rng(&rng) % (n / 3 + 1), (uint32_t)i};
            sum += (i + 1) * (i + 1);
        }
        std_sort(v, n);
        for (size_t i = 0; i < n; i++) {
            got += (uint64_t)(v[i].index + 1) * (v[i].index + 1);
            assert_true(i == 0 || v[i - 1].key <= v[i].key);
        }
        assert_int_equal(got, sum);
        free(v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_keys_come_as_libstdcxx_leaves_them),
        cmocka_unit_test(a_short_run_keeps_the_order_of_equal_keys),
        cmocka_unit_test(anything_comes_out_in_order_and_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
