#include "lib/base/strpool.h"
#include "tests/unit/unit.h"

static void strpool_gives_one_id_a_string_in_order_of_appearance(void **state)
{
    (void)state;
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_strpool sp;
    assert_true(xp_strpool_init(&sp, a));
    assert_int_equal(xp_strpool_add(&sp, XP_SPAN_LIT("")), 0);
    assert_int_equal(xp_strpool_add(&sp, (struct xp_span){0}), 0);
    assert_int_equal(xp_strpool_add(&sp, XP_SPAN_LIT("one")), 1);
    assert_int_equal(xp_strpool_add(&sp, XP_SPAN_LIT("two")), 2);
    assert_int_equal(xp_strpool_add(&sp, XP_SPAN_LIT("one")), 1);
    assert_int_equal(xp_strpool_add(&sp, XP_SPAN_LIT("one\0x")), 3);
    assert_int_equal(xp_strpool_find(&sp, XP_SPAN_LIT("two")), 2);
    assert_int_equal(xp_strpool_find(&sp, XP_SPAN_LIT("three")), XP_STRPOOL_FULL);
    assert_int_equal(xp_strpool_find(&sp, (struct xp_span){0}), 0);
    assert_int_equal(xp_strpool_get(&sp, 99).n, 0);
    xp_arena_free(a);
}

static void strpool_keeps_ids_and_bytes_while_it_grows(void **state)
{
    (void)state;
    enum { COUNT = 50000 };
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_strpool sp;
    assert_true(xp_strpool_init(&sp, a));
    const uint8_t *first = NULL;
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 1; i <= COUNT; i++) {
            char text[32];
            snprintf(text, sizeof text, "fusion.%u", i);
            assert_int_equal(xp_strpool_add(&sp, xp_span_str(text)), i);
        }
        if (!first)
            first = xp_strpool_get(&sp, 1).p;
    }
    assert_ptr_equal(first, xp_strpool_get(&sp, 1).p);
    assert_int_equal(sp.n, COUNT + 1);
    assert_true(xp_span_eq(xp_strpool_get(&sp, 777), XP_SPAN_LIT("fusion.777")));
    xp_arena_free(a);
}

static void strpool_says_when_the_budget_is_spent_and_stays_whole(void **state)
{
    (void)state;
    struct xp_budget budget;
    xp_budget_init(&budget, 64 * 1024);
    struct xp_arena *a = xp_arena_new(&budget);
    struct xp_strpool sp;
    assert_true(xp_strpool_init(&sp, a));
    uint32_t n = 1;
    for (;; n++) {
        char text[64];
        snprintf(text, sizeof text, "a name of some length, number %u", n);
        if (xp_strpool_add(&sp, xp_span_str(text)) == XP_STRPOOL_FULL)
            break;
        assert_true(n < 100000);
    }
    assert_true(n > 100);
    assert_int_equal(sp.n, n);
    assert_int_equal(xp_strpool_find(&sp, XP_SPAN_LIT("a name of some length, number 5")), 5);
    xp_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strpool_gives_one_id_a_string_in_order_of_appearance),
        cmocka_unit_test(strpool_keeps_ids_and_bytes_while_it_grows),
        cmocka_unit_test(strpool_says_when_the_budget_is_spent_and_stays_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
