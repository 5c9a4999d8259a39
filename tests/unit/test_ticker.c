#include "lib/run/ticker.h"

#include <stdatomic.h>
#include <time.h>

#include "lib/base/clock.h"
#include "tests/unit/unit.h"

struct turns {
    _Atomic int n, inside;
    int slow_ms;
};

static void turn(void *ctx)
{
    struct turns *t = ctx;
    t->inside = 1;
    nanosleep(&(struct timespec){.tv_nsec = t->slow_ms * 1000000L}, NULL);
    t->inside = 0;
    t->n++;
}

/* Within ten seconds. */
static void wait_for(const _Atomic int *v, int n)
{
    for (int i = 0; i < 10000 && *v < n; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_true(*v >= n);
}

static void ticker_has_turns_until_it_ends(void **state)
{
    struct turns t = {0};
    (void)state;
    struct xp_ticker *ticker = xp_ticker_new(1, turn, &t);
    wait_for(&t.n, 3);
    xp_ticker_free(ticker);
    int n = t.n;
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    assert_int_equal(t.n, n);
    xp_ticker_free(NULL);
}

static void ticker_ends_at_once_between_turns(void **state)
{
    struct turns t = {0};
    uint64_t began = xp_now_ns();
    (void)state;
    xp_ticker_free(xp_ticker_new(3600000, turn, &t));
    assert_int_equal(t.n, 0);
    assert_true(xp_now_ns() - began < UINT64_C(60000000000));
}

static void ticker_waits_for_a_turn_under_way(void **state)
{
    struct turns t = {.slow_ms = 20};
    (void)state;
    struct xp_ticker *ticker = xp_ticker_new(0, turn, &t);
    wait_for(&t.inside, 1);
    xp_ticker_free(ticker);
    assert_int_equal(t.inside, 0);
    assert_true(t.n >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticker_has_turns_until_it_ends),
        cmocka_unit_test(ticker_ends_at_once_between_turns),
        cmocka_unit_test(ticker_waits_for_a_turn_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
