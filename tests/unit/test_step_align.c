#include "shard/stats/steps.h"
#include "tests/unit/unit.h"

#define HOSTS 4

struct case_ {
    struct step_time_span spans[32];
    uint32_t first[HOSTS + 1], n;
    uint32_t begin[HOSTS], common;
    bool empty;
};

/* n steps of 100, from begin on, on the next host */
static void add_host(struct case_ *c, uint64_t begin, uint32_t n)
{
    uint32_t at = c->first[c->n];
    for (uint32_t i = 0; i < n; i++)
        c->spans[at + i] = (struct step_time_span){begin + 100 * i, begin + 100 * i + 90};
    c->first[++c->n] = at + n;
}

static void align(struct case_ *c)
{
    struct xp_error err;
    assert_int_equal(steps_align(c->spans, c->first, c->n, c->begin, &c->common, &c->empty, &err),
                     XP_OK);
}

static void hosts_that_agree_keep_all_steps(void **state)
{
    (void)state;
    struct case_ c = {0};
    add_host(&c, 1000, 4);
    add_host(&c, 1005, 4);
    align(&c);
    assert_int_equal(c.common, 4);
    assert_int_equal(c.begin[0], 0);
    assert_int_equal(c.begin[1], 0);
}

static void a_host_that_came_late_shortens_all(void **state)
{
    (void)state;
    struct case_ c = {0};
    add_host(&c, 1000, 6); /* 1000..1600 */
    add_host(&c, 1210, 4); /* its first is the other's third */
    add_host(&c, 900, 6);  /* its second is the first's first; it ends a step earlier */
    align(&c);
    assert_int_equal(c.common, 3);
    assert_int_equal(c.begin[0], 2);
    assert_int_equal(c.begin[1], 0);
    assert_int_equal(c.begin[2], 3);
}

static void hosts_that_never_met_have_no_common_step(void **state)
{
    (void)state;
    struct case_ c = {0};
    add_host(&c, 10000, 3); /* of equals in time the first leads */
    add_host(&c, 9800, 3);  /* ends where the chief begins: its last step is the chief's first */
    add_host(&c, 10200, 3);
    align(&c);
    assert_int_equal(c.common, 0);
    assert_true(c.empty);
}

static void steps_of_no_length_belong_nowhere(void **state)
{
    (void)state;
    struct case_ c = {0};
    add_host(&c, 1000, 3);
    add_host(&c, 1000, 3);
    c.spans[3] = c.spans[4] = (struct step_time_span){0, 0};
    align(&c); /* the second host's third meets the first's third, and it is the chief */
    assert_int_equal(c.common, 3);
    assert_int_equal(c.begin[0], 0);
    assert_int_equal(c.begin[1], 0);
}

static void a_host_without_steps_leaves_none(void **state)
{
    (void)state;
    struct case_ c = {0};
    add_host(&c, 1000, 3);
    add_host(&c, 0, 0);
    align(&c);
    assert_int_equal(c.common, 0);
    assert_false(c.empty);
    struct case_ none = {0};
    align(&none);
    assert_int_equal(none.common, 0);
}

static void no_overlap_at_all_is_taken_as_no_shift(void **state)
{
    (void)state;
    struct case_ c = {0};
    add_host(&c, 1000, 3);
    add_host(&c, 500000, 4);
    align(&c);
    assert_int_equal(c.common, 3);
    assert_int_equal(c.begin[1], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_that_agree_keep_all_steps),
        cmocka_unit_test(a_host_that_came_late_shortens_all),
        cmocka_unit_test(hosts_that_never_met_have_no_common_step),
        cmocka_unit_test(steps_of_no_length_belong_nowhere),
        cmocka_unit_test(a_host_without_steps_leaves_none),
        cmocka_unit_test(no_overlap_at_all_is_taken_as_no_shift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
