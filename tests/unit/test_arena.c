#include "lib/base/arena.h"

#include <pthread.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define MIB (1024 * 1024)

static void arena_charges_the_budget_and_gives_it_back(void **state)
{
    (void)state;
    struct xp_budget budget;
    xp_budget_init(&budget, 0);
    struct xp_arena *a = xp_arena_new(&budget);
    struct xp_bump b;
    xp_bump_init(&b, a);
    for (int i = 0; i < 10000; i++)
        assert_non_null(xp_bump_alloc(&b, 100, 8));
    assert_true(xp_arena_bytes(a) >= 1000000);
    assert_int_equal(xp_arena_bytes(a), budget.used);
    xp_arena_free(a);
    assert_int_equal(budget.used, 0);
    assert_true(budget.peak >= 1000000);
}

static void arena_stays_small_for_a_small_part(void **state)
{
    (void)state;
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_bump b;
    xp_bump_init(&b, a);
    assert_non_null(xp_bump_alloc(&b, 10, 1));
    assert_true(xp_arena_bytes(a) <= 4096);
    xp_arena_free(a);
}

static void budget_refuses_what_exceeds_it(void **state)
{
    (void)state;
    struct xp_budget budget;
    xp_budget_init(&budget, 4 * MIB);
    struct xp_arena *a = xp_arena_new(&budget);
    int n = 0;
    while (xp_arena_alloc(a, 100000))
        assert_true(++n < 1000);
    assert_true(n >= 30 && n <= 42);
    assert_true(budget.used <= 4 * MIB);
    assert_true(budget.peak <= 4 * MIB);
    xp_arena_free(a);
    assert_int_equal(budget.used, 0);
}

static void arena_refuses_sizes_that_would_wrap(void **state)
{
    (void)state;
    struct xp_budget budget;
    xp_budget_init(&budget, 0);
    struct xp_arena *a = xp_arena_new(&budget);
    struct xp_bump b;
    xp_bump_init(&b, a);
    assert_non_null(xp_bump_alloc(&b, 8, 8));
    assert_null(xp_bump_alloc(&b, SIZE_MAX, 1));
    assert_null(xp_bump_alloc(&b, SIZE_MAX - 15, 16));
    assert_null(xp_bump_alloc(&b, (size_t)PTRDIFF_MAX, 16));
    assert_non_null(xp_bump_alloc(&b, 8, 8));
    xp_arena_free(a);
    assert_int_equal(budget.used, 0);
}

static void objects_are_aligned_and_do_not_overlap(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static uint8_t *at[COUNT];
    static size_t size[COUNT];
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_bump b;
    xp_bump_init(&b, a);
    uint32_t r = 1;
    for (int i = 0; i < COUNT; i++) {
        r = r * 1664525 + 1013904223;
        size_t align = (size_t)1 << (r >> 28) % 5;
        size[i] = i % 100 == 0 ? 70000 : (r >> 8) % 300;
        at[i] = xp_bump_alloc(&b, size[i], align);
        assert_non_null(at[i]);
        assert_int_equal((uintptr_t)at[i] % align, 0);
        memset(at[i], i & 0xff, size[i]);
    }
    for (int i = 0; i < COUNT; i++)
        for (size_t k = 0; k < size[i]; k++)
            assert_int_equal(at[i][k], i & 0xff);
    xp_arena_free(a);
}

static void a_copied_span_lives_in_the_arena(void **state)
{
    (void)state;
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_bump b;
    xp_bump_init(&b, a);
    char text[] = "name";
    struct xp_span s = xp_bump_span(&b, xp_span_str(text));
    text[0] = 'x';
    assert_true(xp_span_eq(s, XP_SPAN_LIT("name")));
    assert_non_null(xp_bump_span(&b, (struct xp_span){0}).p);
    uint8_t *zero = xp_arena_zalloc(a, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(zero[i], 0);
    xp_arena_free(a);
}

struct filler {
    struct xp_arena *a;
    uint64_t sum;
};

static void *fill(void *arg)
{
    struct filler *f = arg;
    struct xp_bump b;
    xp_bump_init(&b, f->a);
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t *p = xp_bump_alloc(&b, 64, 8);
        uint64_t *q = i % 64 ? p : xp_arena_alloc(f->a, 64);
        if (!p || !q)
            return NULL;
        *p = *q = i;
        f->sum += *p;
    }
    return NULL;
}

static void many_threads_fill_one_arena(void **state)
{
    (void)state;
    struct xp_budget budget;
    xp_budget_init(&budget, 0);
    struct xp_arena *a = xp_arena_new(&budget);
    struct filler f[4];
    pthread_t t[4];
    for (int i = 0; i < 4; i++) {
        f[i] = (struct filler){a, 0};
        assert_int_equal(pthread_create(&t[i], NULL, fill, &f[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(f[i].sum, UINT64_C(20000) * 19999 / 2);
    }
    assert_int_equal(budget.used, xp_arena_bytes(a));
    xp_arena_free(a);
    assert_int_equal(budget.used, 0);
}

#ifndef XP_PLAIN_MALLOC
static uint64_t resident(void)
{
    unsigned long size = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu %lu", &size, &pages), 2);
    fclose(f);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void dropping_an_arena_returns_its_memory_to_the_system(void **state)
{
    (void)state;
    uint64_t before = resident();
    for (int round = 0; round < 4; round++) {
        struct xp_arena *a = xp_arena_new(NULL);
        struct xp_bump b;
        xp_bump_init(&b, a);
        for (int i = 0; i < 64 * MIB / 1024; i++)
            memset(xp_bump_alloc(&b, 1024, 16), 1, 1024);
        assert_true(resident() >= before + 60 * MIB);
        xp_arena_free(a);
        assert_true(resident() < before + 8 * MIB);
    }
}

static void more_arenas_than_jemalloc_has_still_work(void **state)
{
    (void)state;
    enum { COUNT = 4500 };
    static struct xp_arena *arenas[COUNT];
    struct xp_budget budget;
    xp_budget_init(&budget, 0);
    for (int i = 0; i < COUNT; i++) {
        arenas[i] = xp_arena_new(&budget);
        assert_non_null(xp_arena_alloc(arenas[i], 2 * MIB));
        uint8_t *p = xp_arena_alloc(arenas[i], 64);
        assert_non_null(p);
        *p = 1;
        assert_non_null(xp_arena_alloc(arenas[i], 100000));
    }
    for (int i = 0; i < COUNT; i++)
        xp_arena_free(arenas[i]);
    assert_int_equal(budget.used, 0);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_charges_the_budget_and_gives_it_back),
        cmocka_unit_test(arena_stays_small_for_a_small_part),
        cmocka_unit_test(budget_refuses_what_exceeds_it),
        cmocka_unit_test(arena_refuses_sizes_that_would_wrap),
        cmocka_unit_test(objects_are_aligned_and_do_not_overlap),
        cmocka_unit_test(a_copied_span_lives_in_the_arena),
        cmocka_unit_test(many_threads_fill_one_arena),
#ifndef XP_PLAIN_MALLOC
        cmocka_unit_test(dropping_an_arena_returns_its_memory_to_the_system),
        cmocka_unit_test(more_arenas_than_jemalloc_has_still_work),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
