#include "shard/flights.h"

#include "tests/unit/unit.h"

#define MOST 3

struct asker {
    struct flight flight;
    atomic_bool gone;
};

/* Says how many were let go, too. */
static enum flights_place join(struct flights *f, struct asker *me, size_t *nleft)
{
    struct flights_ask ask = {XP_SPAN_LIT("the same"), &me->gone, MOST};
    struct flight *left;
    enum flights_place place = flights_join(f, &me->flight, &ask, &left);
    for (*nleft = 0; left; left = left->next)
        ++*nleft;
    return place;
}

static void a_flight_has_so_many_behind_it_and_no_more(void **state)
{
    (void)state;
    struct flights *f = flights_new();
    struct asker a[MOST + 3] = {0};
    size_t nleft, n = 0;
    assert_int_equal(join(f, &a[0], &nleft), FLIGHTS_FIRST);
    for (size_t i = 1; i <= MOST; i++)
        assert_int_equal(join(f, &a[i], &nleft), FLIGHTS_WAITS);
    assert_int_equal(join(f, &a[MOST + 1], &nleft), FLIGHTS_FULL);
    assert_ptr_equal(flights_pass(f, &a[0].flight), &a[1].flight); /* one place is free */
    assert_int_equal(join(f, &a[MOST + 1], &nleft), FLIGHTS_WAITS);
    assert_int_equal(join(f, &a[MOST + 2], &nleft), FLIGHTS_FULL);
    for (struct flight *x = flights_end(f, &a[1].flight); x; x = x->next)
        assert_ptr_equal(x, &a[2 + n++].flight);
    assert_int_equal(n, MOST);
    flights_free(f);
}

static void who_left_makes_room_wherever_it_waits(void **state)
{
    (void)state;
    for (unsigned gone = 0; gone < 1U << MOST; gone++) {
        struct flights *f = flights_new();
        struct asker a[MOST + 2] = {0};
        struct flight *x;
        size_t nleft, want = (size_t)__builtin_popcount(gone);
        for (size_t i = 0; i <= MOST; i++)
            join(f, &a[i], &nleft);
        for (size_t i = 0; i < MOST; i++)
            atomic_store(&a[1 + i].gone, gone >> i & 1);
        assert_int_equal(join(f, &a[MOST + 1], &nleft), gone ? FLIGHTS_WAITS : FLIGHTS_FULL);
        assert_int_equal(nleft, want);
        x = flights_end(f, &a[0].flight);
        for (size_t i = 1; i <= MOST + (gone != 0); i++) {
            if (atomic_load(&a[i].gone))
                continue;
            assert_ptr_equal(x, &a[i].flight);
            x = x->next;
        }
        assert_null(x);
        flights_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flight_has_so_many_behind_it_and_no_more),
        cmocka_unit_test(who_left_makes_room_wherever_it_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
