#include "shard/derive/vec.h"

#include "tests/unit/unit.h"

static void elements_stay_however_far_it_grows(void **state)
{
    (void)state;
    struct vec v = {0};
    const uint64_t n = 3000000; /* past where it is mapped */
    for (uint64_t i = 0; i < n; i++) {
        uint64_t *p = vec_push(&v, sizeof *p);
        assert_non_null(p);
        *p = i * 7;
    }
    assert_int_equal(v.n, n);
    assert_true(v.mapped);
    vec_trim(&v, 8);
    assert_int_equal(v.cap, n);
    assert_true(v.mapped >= n * 8);
    for (uint64_t i = n; i < n + 1000; i++)
        *(uint64_t *)vec_push(&v, 8) = i * 7;
    v.n = n;
    assert_true(v.cap > n);
    for (uint64_t i = 0; i < n; i++)
        assert_true(VEC(v, uint64_t)[i] == i * 7);
    vec_free(&v);
    assert_null(v.p);
    assert_int_equal(v.n + v.cap + v.mapped, 0);
    assert_non_null(vec_push(&v, 8));
    assert_false(v.mapped);
    vec_free(&v);
}

static void a_size_beyond_all_memory_is_no_memory(void **state)
{
    (void)state;
    struct vec v = {.cap = SIZE_MAX / 4};
    assert_null(vec_grow(&v, 64));
    assert_null(v.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_stay_however_far_it_grows),
        cmocka_unit_test(a_size_beyond_all_memory_is_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
