#include "shard/tools/idmap.h"
#include "tests/unit/unit.h"

static void what_was_put_is_found_and_nothing_else(void **state)
{
    struct xp_arena *a = xp_arena_new(NULL);
    struct idmap m;
    uint32_t v;
    (void)state;
    idmap_init(&m, a);
    assert_false(idmap_get(&m, 0, &v));
    for (uint64_t k = 0; k < 5000; k++)
        assert_true(idmap_put(&m, k * 4096, (uint32_t)k));
    for (uint64_t k = 0; k < 5000; k++) {
        assert_true(idmap_get(&m, k * 4096, &v));
        assert_int_equal(v, k);
        assert_false(idmap_get(&m, k * 4096 + 1, &v));
    }
    xp_arena_free(a);
}

static void a_key_put_again_has_its_new_value(void **state)
{
    struct xp_arena *a = xp_arena_new(NULL);
    struct idmap m;
    uint32_t v = 0;
    (void)state;
    idmap_init(&m, a);
    assert_true(idmap_put(&m, UINT64_MAX, 1));
    assert_true(idmap_put(&m, UINT64_MAX, 0));
    assert_true(idmap_get(&m, UINT64_MAX, &v));
    assert_int_equal(v, 0);
    assert_int_equal(m.n, 1);
    xp_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_is_found_and_nothing_else),
        cmocka_unit_test(a_key_put_again_has_its_new_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
