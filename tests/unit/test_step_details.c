#include "shard/stats/steps.h"
#include "tests/unit/unit.h"

#define MS UINT64_C(1000000000)

static void near(double have, double want)
{
    if (have < want - 1e-9 || have > want + 1e-9)
        fail_msg("have %.12g, want %.12g", have, want);
}

static struct step_details details_of(struct step_core *cores, uint32_t n)
{
    struct step s = {.num = 7, .cores = cores, .ncores = n};
    struct step_details d;
    struct xp_error err;
    assert_int_equal(step_details_of(&s, &d, &err), XP_OK);
    return d;
}

static void a_step_without_cores_has_no_number(void **state)
{
    (void)state;
    struct step_details d = details_of(NULL, 0);
    assert_int_equal(d.num, -1);
    near(d.compute + d.idle + d.infeed, 0);
    assert_null(d.most_infeed);
}

static void compute_is_the_least_and_waiting_the_most(void **state)
{
    (void)state;
    struct step_core c[2] = {
        {.key = 1,
         .duration_ps = 100 * MS,
         .tpu = {.infeed_ps = 10 * MS,
                 .outfeed_ps = 4 * MS,
                 .transfer_ps = 6 * MS,
                 .idle_ps = 20 * MS,
                 .active_ps = 60 * MS}},
        {.key = 2,
         .duration_ps = 100 * MS,
         .tpu = {.infeed_ps = 30 * MS,
                 .outfeed_ps = 2 * MS,
                 .sparse_v0_ps = 8 * MS,
                 .idle_ps = 10 * MS,
                 .active_ps = 58 * MS}},
    };
    struct step_details d = details_of(c, 2);
    assert_int_equal(d.num, 7);
    near(d.compute, 50); /* 100 - 30 - 2 - 10 - 8 */
    near(d.infeed, 30);
    near(d.outfeed, 3);
    near(d.transfer, 6);
    near(d.sparse_v0, 8);
    near(d.idle, 9); /* 100 - 50 - 8 - 30 - 3 */
    near(d.active, 59);
    near(d.infeed_percent, 20);
    assert_ptr_equal(d.most_infeed, &c[1]);
}

static void of_a_collective_the_fastest_core_does_the_work(void **state)
{
    (void)state;
    struct op_collective fast[] = {{.unique_id = 5, .begin_ps = 0, .end_ps = 3 * MS},
                                   {.unique_id = 6, .begin_ps = 10 * MS, .end_ps = 15 * MS}};
    struct op_collective slow[] = {{.unique_id = 6, .begin_ps = 9 * MS, .end_ps = 16 * MS},
                                   {.unique_id = 5, .begin_ps = 0, .end_ps = 8 * MS}};
    struct op_step a = {.collectives = fast, .ncollectives = 2};
    struct op_step b = {.collectives = slow, .ncollectives = 2};
    struct step_core c[2] = {{.key = 1, .duration_ps = 20 * MS, .ops = &a},
                             {.key = 2, .duration_ps = 20 * MS, .ops = &b}};
    struct step_details d = details_of(c, 2);
    near(d.all_reduce, 8);      /* 3 + 5 */
    near(d.all_reduce_sync, 7); /* of the slow core: (8 - 3) + (7 - 5) */
}

static void sparse_cores_are_told_apart(void **state)
{
    (void)state;
    struct step_core c[3] = {
        {.key = 1, .duration_ps = 100 * MS, .tpu = {.active_ps = 100 * MS}},
        {.key = 1000002,
         .sparse = true,
         .duration_ps = 100 * MS,
         .tpu = {.idle_ps = 90 * MS, .active_ps = 10 * MS}},
        {.key = 1000003,
         .sparse = true,
         .duration_ps = 100 * MS,
         .tpu = {.idle_ps = 60 * MS, .active_ps = 40 * MS}},
    };
    struct step_details d = details_of(c, 3);
    near(d.compute, 100);
    near(d.sparse_compute, 10);
    near(d.sparse_active, 25);
    near(d.sparse_idle, 75);
    near(d.sparse_step, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_without_cores_has_no_number),
        cmocka_unit_test(compute_is_the_least_and_waiting_the_most),
        cmocka_unit_test(of_a_collective_the_fastest_core_does_the_work),
        cmocka_unit_test(sparse_cores_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
