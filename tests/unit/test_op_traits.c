#include "shard/tools/op_traits.h"
#include "tests/unit/unit.h"

static struct op_metrics op_of(const char *text, const char *provenance)
{
    return (struct op_metrics){.long_name = xp_span_str(text),
                               .provenance = xp_span_str(provenance)};
}

static void groups_of_replicas_are_the_whole_value(void **state)
{
    static const char *const texts[][2] = {
        {"%ar = f32[4]{0} all-reduce(%p), channel_id=7, replica_groups={{0,1},{2,3}}, to_apply=%a",
         "{{0,1},{2,3}}"},
        {"%ar = f32[4] all-reduce(%p), replica_groups=[2,4]<=[4,2]T(1,0), dimensions={0}",
         "[2,4]<=[4,2]T(1,0)"},
        {"%ar = f32[4] all-reduce(%p), replica_groups={}", "{}"},
        {"%cp = f32[4] collective-permute(%p), source_target_pairs={{0,1},{1,0}}, x=1",
         "{{0,1},{1,0}}"},
        {"%ar = f32[4] all-reduce(%p), replica_groups={{0,1", "{{0,1"},
        {"%ar = f32[4] all-reduce(%p), replica_groups=", ""},
        {"%done = f32[4] all-reduce-done(%ar)", ""},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct op_metrics m = op_of(texts[i][0], "");
        struct xp_span got = op_replica_groups(&m);
        if (!xp_span_eq(got, xp_span_str(texts[i][1])))
            fail_msg("%s: %.*s", texts[i][0], (int)got.n, (const char *)got.p);
    }
}

static void an_op_is_rematerialized_by_its_name_or_its_scope(void **state)
{
    struct op_metrics by_name = op_of("%fusion.1.remat2 = f32[] fusion(%p)", "");
    struct op_metrics by_scope = op_of("%f = f32[] fusion(%p)", "jit(f)/rematted_computation/dot");
    struct op_metrics operand = op_of("%f = f32[] fusion(%fusion.1.remat2)", "jit(f)/dot");
    (void)state;
    assert_true(op_is_remat(&by_name));
    assert_true(op_is_remat(&by_scope));
    assert_false(op_is_remat(&operand));
}

static void an_op_of_the_host_is_outside(void **state)
{
    struct op_metrics send = op_of("%s = token[] send(%p)", "main/callback:XlaSendToHost");
    struct op_metrics done = op_of("%d = token[] send-done(%s), is_host_transfer=true", "");
    struct op_metrics other = op_of("%d = token[] send-done(%s)", "main/XlaSendToHost:Add");
    (void)state;
    assert_true(op_is_outside(&send));
    assert_true(op_is_outside(&done));
    assert_false(op_is_outside(&other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_of_replicas_are_the_whole_value),
        cmocka_unit_test(an_op_is_rematerialized_by_its_name_or_its_scope),
        cmocka_unit_test(an_op_of_the_host_is_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
