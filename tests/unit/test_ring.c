#include "lib/cluster/ring.h"
#include "tests/unit/unit.h"

#define KEYS 20000

static struct xp_ring *make(size_t first, size_t n)
{
    static char names[256][16], addresses[256][24];
    struct xp_ring_member m[256];
    struct xp_ring *r = NULL;
    struct xp_error err;

    for (size_t i = 0; i < n; i++) {
        size_t k = n - 1 - i; /* in no order */
        snprintf(names[k], sizeof names[k], "shard-%zu", first + k);
        snprintf(addresses[k], sizeof addresses[k], "10.0.0.%zu:8792", first + k);
        m[i] = (struct xp_ring_member){names[k], addresses[k]};
    }
    assert_int_equal(xp_ring_new(m, n, &r, &err), XP_OK);
    return r;
}

static uint64_t key_of(uint64_t i)
{
    struct xp_span parts[] = {XP_SPAN_LIT("bucket"), xp_span_of(&i, sizeof i)};
    return xp_ring_key(parts, 2);
}

static const char *owner(const struct xp_ring *r, uint64_t key)
{
    uint32_t at;
    assert_int_equal(xp_ring_rank(r, key, &at, 1), 1);
    return xp_ring_member(r, at)->name;
}

static void a_member_that_comes_takes_its_share_and_nothing_else_moves(void **state)
{
    (void)state;
    struct xp_ring *before = make(0, 7), *after = make(0, 8);
    size_t moved = 0;
    for (uint64_t i = 0; i < KEYS; i++) {
        const char *was = owner(before, key_of(i)), *is = owner(after, key_of(i));
        if (!strcmp(was, is))
            continue;
        assert_string_equal(is, "shard-7");
        moved++;
    }
    assert_in_range(moved, KEYS / 8 * 9 / 10, KEYS / 8 * 11 / 10);
    xp_ring_unref(before);
    xp_ring_unref(after);
}

static void keys_are_spread_evenly(void **state)
{
    (void)state;
    struct xp_ring *r = make(0, 16);
    size_t count[16] = {0};
    for (uint64_t i = 0; i < KEYS; i++) {
        uint32_t at;
        xp_ring_rank(r, key_of(i), &at, 1);
        count[at]++;
    }
    for (size_t i = 0; i < 16; i++)
        assert_in_range(count[i], KEYS / 16 * 85 / 100, KEYS / 16 * 115 / 100);
    xp_ring_unref(r);
}

static void the_second_rank_is_the_owner_when_the_first_is_gone(void **state)
{
    (void)state;
    struct xp_ring *all = make(0, 5), *rest = make(1, 4);
    for (uint64_t i = 0; i < 2000; i++) {
        uint32_t ranks[5];
        assert_int_equal(xp_ring_rank(all, key_of(i), ranks, 5), 5);
        if (!strcmp(xp_ring_member(all, ranks[0])->name, "shard-0"))
            assert_string_equal(owner(rest, key_of(i)), xp_ring_member(all, ranks[1])->name);
        for (size_t a = 0; a < 5; a++)
            for (size_t b = 0; b < a; b++)
                assert_int_not_equal(ranks[a], ranks[b]);
    }
    xp_ring_unref(all);
    xp_ring_unref(rest);
}

static void no_member_has_more_of_a_session_than_a_quarter_above_the_mean(void **state)
{
    (void)state;
    struct xp_error err;
    for (size_t members = 1; members <= 16; members++) {
        struct xp_ring *r = make(0, members);
        for (uint64_t session = 0; session < 50; session++) {
            uint64_t keys[64];
            uint32_t at[64], again[64];
            size_t count[16] = {0};
            for (size_t i = 0; i < 64; i++)
                keys[i] = key_of(session * 64 + i);
            assert_int_equal(xp_ring_spread(r, keys, 64, at, &err), XP_OK);
            assert_int_equal(xp_ring_spread(r, keys, 64, again, &err), XP_OK);
            assert_memory_equal(at, again, sizeof at);
            for (size_t i = 0; i < 64; i++)
                count[at[i]]++;
            for (size_t i = 0; i < members; i++)
                assert_in_range(count[i], 0, (64 * 5 + 4 * members - 1) / (4 * members));
        }
        xp_ring_unref(r);
    }
}

static void an_empty_ring_has_no_ranks_and_says_so(void **state)
{
    (void)state;
    struct xp_ring *r = make(0, 0);
    struct xp_error err;
    uint32_t at;
    uint64_t key = 1;
    assert_int_equal(xp_ring_rank(r, key, &at, 1), 0);
    assert_int_equal(xp_ring_spread(r, &key, 1, &at, &err), XP_BUSY);
    xp_ring_unref(r);
}

static void a_name_that_is_there_twice_or_empty_is_refused(void **state)
{
    (void)state;
    struct xp_ring_member twice[] = {{"a", "1"}, {"b", "2"}, {"a", "3"}}, empty[] = {{"", "1"}};
    struct xp_ring *r = NULL;
    struct xp_error err;
    assert_int_equal(xp_ring_new(twice, 3, &r, &err), XP_BAD_REQUEST);
    assert_non_null(strstr(err.text, "\"a\""));
    assert_int_equal(xp_ring_new(empty, 1, &r, &err), XP_BAD_REQUEST);
}

static void the_parts_of_a_key_do_not_run_together(void **state)
{
    (void)state;
    struct xp_span one[] = {XP_SPAN_LIT("a"), XP_SPAN_LIT("bc")};
    struct xp_span other[] = {XP_SPAN_LIT("ab"), XP_SPAN_LIT("c")};
    assert_true(xp_ring_key(one, 2) != xp_ring_key(other, 2));
}

/* Part of the protocol between versions: whoever changes it sends every key elsewhere. */
static void the_hash_stays_what_it_is(void **state)
{
    (void)state;
    static const char *const want[] = {"shard-0", "shard-1", "shard-1", "shard-5"};
    struct xp_ring *r = make(0, 8);
    for (uint64_t i = 0; i < 4; i++)
        assert_string_equal(owner(r, key_of(i)), want[i]);
    xp_ring_unref(r);
}

static void rings_are_the_same_by_names_and_addresses(void **state)
{
    (void)state;
    struct xp_ring *a = make(0, 3), *b = make(0, 3), *c = make(1, 3);
    assert_true(xp_ring_same(a, b));
    assert_false(xp_ring_same(a, c));
    assert_ptr_equal(xp_ring_ref(a), a);
    xp_ring_unref(a);
    xp_ring_unref(a);
    xp_ring_unref(b);
    xp_ring_unref(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_that_comes_takes_its_share_and_nothing_else_moves),
        cmocka_unit_test(keys_are_spread_evenly),
        cmocka_unit_test(the_second_rank_is_the_owner_when_the_first_is_gone),
        cmocka_unit_test(no_member_has_more_of_a_session_than_a_quarter_above_the_mean),
        cmocka_unit_test(an_empty_ring_has_no_ranks_and_says_so),
        cmocka_unit_test(a_name_that_is_there_twice_or_empty_is_refused),
        cmocka_unit_test(the_parts_of_a_key_do_not_run_together),
        cmocka_unit_test(the_hash_stays_what_it_is),
        cmocka_unit_test(rings_are_the_same_by_names_and_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
