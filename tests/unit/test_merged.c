#include "shard/merged.h"

#include <stdio.h>

#include "tests/unit/unit.h"

/* Joining is putting letters in order; `merges` counts how many letters were looked at. */
static size_t looked_at;
static bool refuses;

static enum xp_status sorted(struct xp_span x, struct xp_span y, struct xp_arena *a,
                             struct xp_span *both, struct xp_error *err)
{
    uint8_t *p = xp_arena_alloc(a, x.n + y.n + 1);
    size_t i = 0, k = 0, n = 0;
    if (refuses)
        return xp_fail(err, XP_CORRUPT, 0, "no");
    while (i < x.n || k < y.n)
        p[n++] = k == y.n || (i < x.n && x.p[i] <= y.p[k]) ? x.p[i++] : y.p[k++];
    looked_at += n;
    *both = xp_span_of(p, n);
    return XP_OK;
}

static void add(struct merged *m, struct xp_arena *a, uint32_t host, const char *one)
{
    struct xp_error err = {0};
    assert_int_equal(merged_add(m, sorted, host, xp_span_str(one), a, &err), XP_OK);
}

static struct xp_span all(const struct merged *m, struct xp_arena *a)
{
    struct xp_error err = {0};
    struct xp_span s;
    assert_int_equal(merged_all(m, sorted, a, &s, &err), XP_OK);
    return s;
}

static void any_number_of_partials_comes_to_one(void **state)
{
    static const char letters[] = "qwertyuiopasdfghjklzxcvbnm";
    (void)state;
    for (size_t n = 0; n < sizeof letters; n++) {
        struct xp_arena *a = xp_arena_new(NULL);
        struct merged m = {0};
        for (size_t i = 0; i < n; i++)
            add(&m, a, (uint32_t)i, (char[]){letters[i], '\0'});
        struct xp_span s = all(&m, a);
        assert_int_equal(s.n, n);
        for (size_t i = 1; i < n; i++)
            assert_true(s.p[i - 1] < s.p[i]);
        merged_fini(&m);
        xp_arena_free(a);
    }
}

static void a_partial_is_merged_a_few_times_and_not_with_each_other(void **state)
{
    struct xp_arena *a = xp_arena_new(NULL);
    struct merged m = {0};
    (void)state;
    looked_at = 0;
    for (uint32_t i = 0; i < 64; i++)
        add(&m, a, 63 - i, "x");
    assert_int_equal(all(&m, a).n, 64);
    assert_int_equal(looked_at, 64 * 6);
    merged_fini(&m);
    xp_arena_free(a);
}

static void a_failure_leaves_what_was_there(void **state)
{
    struct xp_arena *a = xp_arena_new(NULL);
    struct merged m = {0};
    struct xp_error err = {0};
    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        add(&m, a, i, "x");
    refuses = true;
    assert_int_equal(merged_add(&m, sorted, 3, XP_SPAN_LIT("y"), a, &err), XP_CORRUPT);
    refuses = false;
    assert_true(xp_span_eq(all(&m, a), XP_SPAN_LIT("xxx")));
    add(&m, a, 3, "y");
    assert_true(xp_span_eq(all(&m, a), XP_SPAN_LIT("xxxy")));
    merged_fini(&m);
    xp_arena_free(a);
}

/* Says what was joined with what. */
static enum xp_status told(struct xp_span x, struct xp_span y, struct xp_arena *a,
                           struct xp_span *both, struct xp_error *err)
{
    char *p = xp_arena_alloc(a, x.n + y.n + 3);
    (void)err;
    int n = snprintf(p, x.n + y.n + 3, "(%.*s%.*s)", (int)x.n, (const char *)x.p, (int)y.n,
                     (const char *)y.p);
    *both = xp_span_of(p, (size_t)n);
    return XP_OK;
}

/* The hosts of the set in that order, with other hosts to come that never do. */
static struct xp_span joined_in(struct xp_arena *a, const uint32_t *order, size_t n)
{
    struct merged m = {0};
    struct xp_error err = {0};
    struct xp_span all, copy;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(merged_add(&m, told, order[i],
                                    xp_span_str((char[]){(char)('a' + order[i]), 0}), a, &err),
                         XP_OK);
    assert_int_equal(merged_all(&m, told, a, &all, &err), XP_OK);
    uint8_t *p = xp_arena_alloc(a, all.n + 1);
    if (all.n)
        memcpy(p, all.p, all.n);
    copy = xp_span_of(p, all.n);
    merged_fini(&m);
    return copy;
}

static void what_is_joined_with_what_does_not_depend_on_who_came_first(void **state)
{
    enum { HOSTS = 9, TIMES = 20 };
    uint32_t order[HOSTS], x = 1;
    (void)state;
    for (unsigned set = 0; set < 1u << HOSTS; set++) {
        struct xp_arena *a = xp_arena_new(NULL);
        size_t n = 0;
        for (uint32_t h = 0; h < HOSTS; h++)
            if (set >> h & 1)
                order[n++] = h;
        struct xp_span want = joined_in(a, order, n);
        for (int k = 0; k < TIMES; k++) {
            for (size_t i = n; i > 1; i--) {
                x = x * 1664525 + 1013904223;
                size_t with = (x >> 8) % i;
                uint32_t one = order[i - 1];
                order[i - 1] = order[with];
                order[with] = one;
            }
            assert_true(xp_span_eq(joined_in(a, order, n), want));
        }
        xp_arena_free(a);
    }
    struct xp_arena *a = xp_arena_new(NULL);
    assert_true(
        xp_span_eq(joined_in(a, (uint32_t[]){4, 0, 2, 1, 3}, 5), XP_SPAN_LIT("(((ab)(cd))e)")));
    xp_arena_free(a);
}

static void no_more_are_held_than_the_limit(void **state)
{
    enum { HOSTS = 5 * MERGED_HELD };
    struct xp_arena *a = xp_arena_new(NULL);
    struct merged m = {0};
    (void)state;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = pass; i < HOSTS; i += 2) {
            add(&m, a, (i * 7) % HOSTS, "x");
            assert_true(m.n <= MERGED_HELD);
        }
    assert_int_equal(all(&m, a).n, HOSTS);
    merged_fini(&m);
    xp_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_partials_comes_to_one),
        cmocka_unit_test(a_partial_is_merged_a_few_times_and_not_with_each_other),
        cmocka_unit_test(a_failure_leaves_what_was_there),
        cmocka_unit_test(what_is_joined_with_what_does_not_depend_on_who_came_first),
        cmocka_unit_test(no_more_are_held_than_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
