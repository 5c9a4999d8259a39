#include "shard/tools/coverage.h"
#include "tests/unit/tool_support.h"

static struct xp_buf assignment(uint64_t replicas, uint64_t computations)
{
    struct xp_buf m = make_message(), a = make_message();
    xp_pb_put_u64(&a, 1, replicas);
    xp_pb_put_u64(&a, 2, computations);
    make_put(&m, 15, &a);
    return m;
}

static uint64_t of(struct xp_buf *m)
{
    uint64_t n = coverage_of_module(xp_buf_all(m));
    xp_buf_fini(m);
    return n;
}

/* A module of one computation with one instruction. */
static struct xp_buf module_of(struct xp_buf *instr)
{
    struct xp_buf m = make_message(), c = make_message();
    make_put(&c, 2, instr);
    make_put(&m, 3, &c);
    return m;
}

static void a_program_says_how_many_devices_it_is_for(void **state)
{
    (void)state;
    struct xp_buf m = assignment(4, 16);
    assert_int_equal(of(&m), 64);
    m = assignment(1, 1);
    assert_int_equal(of(&m), 1);
}

static void who_takes_part_in_collectives_tells_it_else(void **state)
{
    (void)state;
    struct xp_buf instr = make_message(), group = make_message(), iota = make_message();
    for (uint64_t i = 0; i < 4; i++)
        xp_pb_put_u64(&group, 1, 3 + 4 * i);
    make_put(&instr, 49, &group);
    struct xp_buf m = module_of(&instr);
    assert_int_equal(of(&m), 16);

    instr = make_message();
    xp_pb_put_u64(&iota, 1, 8);
    xp_pb_put_u64(&iota, 2, 4);
    make_put(&instr, 92, &iota);
    m = module_of(&instr);
    assert_int_equal(of(&m), 32);
}

static void numbers_that_cannot_be_are_not_believed(void **state)
{
    (void)state;
    struct xp_buf m = assignment(UINT64_MAX, 2);
    assert_int_equal(of(&m), 0);
    m = assignment(INT64_MAX, INT64_MAX);
    assert_int_equal(of(&m), 0);
    m = make_message();
    assert_int_equal(of(&m), 0);
    assert_int_equal(coverage_of_module(XP_SPAN_LIT("\x7a\xff\xff\xff\xff\xff")), 0);
}

static uint64_t said(const char *text, bool *more)
{
    return coverage_of_message(xp_span_str(text), more);
}

static void messages_of_profilers_are_counted(void **state)
{
    (void)state;
    bool more;
    assert_int_equal(
        said("Detected GPU events dropped on h: Profiler has collected 7 driver events "
             "and 9 device events. 12 events dropped because of a; 30 events dropped "
             "because of b.",
             &more),
        42);
    assert_false(more);
    assert_int_equal(said("Some trace events were dropped.", &more), 0);
    assert_true(more);
    assert_int_equal(said("No XPlane found", &more), 0);
    assert_false(more);
    assert_int_equal(said("", &more), 0);
    assert_int_equal(said("events dropped", &more), 0);
    assert_true(more);
    const char *many = "9223372036854775807 events dropped, 99999999999999999999999 events dropped";
    assert_true(said(many, &more) == INT64_MAX);
    assert_true(said("123456789012345678 events dropped", &more) == 123456789012345678);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_says_how_many_devices_it_is_for),
        cmocka_unit_test(who_takes_part_in_collectives_tells_it_else),
        cmocka_unit_test(numbers_that_cannot_be_are_not_believed),
        cmocka_unit_test(messages_of_profilers_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
