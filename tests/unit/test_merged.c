#include "shard/merged.h"
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

static void add(struct merged *m, struct xp_arena *a, const char *one)
{
    struct xp_error err = {0};
    assert_int_equal(merged_add(m, sorted, xp_span_str(one), a, &err), XP_OK);
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
            add(&m, a, (char[]){letters[i], '\0'});
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
    for (int i = 0; i < 64; i++)
        add(&m, a, "x");
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
    for (int i = 0; i < 3; i++)
        add(&m, a, "x");
    refuses = true;
    assert_int_equal(merged_add(&m, sorted, XP_SPAN_LIT("y"), a, &err), XP_CORRUPT);
    refuses = false;
    assert_true(xp_span_eq(all(&m, a), XP_SPAN_LIT("xxx")));
    add(&m, a, "y");
    assert_true(xp_span_eq(all(&m, a), XP_SPAN_LIT("xxxy")));
    merged_fini(&m);
    xp_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_partials_comes_to_one),
        cmocka_unit_test(a_partial_is_merged_a_few_times_and_not_with_each_other),
        cmocka_unit_test(a_failure_leaves_what_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
