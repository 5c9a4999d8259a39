#include "shard/tools/kernel_cause.h"

#include "lib/base/status.h"
#include "tests/unit/unit.h"

/* What a kernel did at each moment, of spans that are written by hand. */

static struct xp_arena *arena;

static int setup(void **state)
{
    (void)state;
    arena = xp_arena_new(NULL);
    return arena == NULL;
}

static int teardown(void **state)
{
    (void)state;
    xp_arena_free(arena);
    return 0;
}

static enum kernel_kind kind_of(const char *unit, const char *opcode, const char *details)
{
    return kernel_instruction_kind(xp_span_str(unit), xp_span_str(opcode), xp_span_str(details));
}

static void an_instruction_is_what_its_unit_name_and_text_say(void **state)
{
    (void)state;
    assert_int_equal(kind_of("MXU0", "vmatmul.bf16.mxu0", ""), KERNEL_WORK);
    assert_int_equal(kind_of("SALU", "sadd.s32", ""), KERNEL_SCALAR);
    assert_int_equal(kind_of("SALU", "dma.hbm_to_vmem", ""), KERNEL_SCALAR); /* starts one */
    assert_int_equal(kind_of("SALU", "dma.done.wait", ""), KERNEL_DMA);
    assert_int_equal(kind_of("VALU", "vsyncadd", ""), KERNEL_SYNC);
    assert_int_equal(kind_of("SALU", "vasync.copy", ""), KERNEL_SCALAR);
    assert_int_equal(kind_of("VLD", "vld", "%v1 = vld [vmem:%s1]"), KERNEL_VMEM);
    assert_int_equal(kind_of("VST", "vst", "vst [vmem:[#allocation9_spill]] %v3"), KERNEL_SPILL);
    assert_int_equal(kind_of("VALU", "vadd", "of a spill"), KERNEL_WORK);
}

static enum kernel_kind region(const char *name, bool inferred)
{
    bool got;
    enum kernel_kind kind = kernel_region_kind(xp_span_str(name), &got);
    assert_int_equal(got, inferred);
    return kind;
}

static void a_region_waits_if_its_name_says_so(void **state)
{
    (void)state;
    assert_int_equal(region("ep_wait_in", false), KERNEL_IN_DMA_IN);
    assert_int_equal(region("ep_wait_out", false), KERNEL_IN_DMA_OUT);
    assert_int_equal(region("ep_finalize", true), KERNEL_IN_DMA_OUT);
    assert_int_equal(region("dma_wait", false), KERNEL_IN_DMA);
    assert_int_equal(region("semaphore_wait", false), KERNEL_IN_SYNC);
    assert_int_equal(region("wait_for_it", false), KERNEL_IN_WAIT);
    assert_int_equal(region("await_nothing", false), KERNEL_IN_REGION); /* a word of its own */
    assert_int_equal(region("ep_copy_in", false), KERNEL_IN_REGION);
}

static void each_moment_has_one_cause_and_they_add_up(void **state)
{
    struct kernel_spans s;
    struct xp_error err;
    int64_t bins[4 * KERNEL_CAUSES] = {0};
    struct kernel_window w = {.end_ps = 100,
                              .has_record = true,
                              .record_ps = 10,
                              .recorded_ps = 80,
                              .bins = {.from_ps = 0, .to_ps = 100, .n = 4}};
    struct kernel_cause_sums sums = {.bins = bins};
    (void)state;
    kernel_spans_init(&s, arena);
    kernel_spans_add(&s, KERNEL_SCALAR, 10, 40);
    kernel_spans_add(&s, KERNEL_WORK, 20, 30);
    kernel_spans_add(&s, KERNEL_IN_DMA_IN, 25, 35); /* 5 of it while it computes */
    kernel_spans_add(&s, KERNEL_SPILL, 50, 60);
    kernel_spans_add(&s, KERNEL_VMEM, 55, 60);
    kernel_spans_add(&s, KERNEL_DMA, 70, 80);
    kernel_spans_add(&s, KERNEL_IN_REGION, 75, 90);
    kernel_spans_add(&s, KERNEL_WORK, 99, 500); /* cut to the run */
    assert_int_equal(kernel_causes(&s, &w, &sums, &err), XP_OK);
    assert_int_equal(sums.ps[CAUSE_WORK], 11);
    assert_int_equal(sums.ps[CAUSE_DMA_IN], 5);
    assert_int_equal(sums.ps[CAUSE_SCALAR], 15);
    assert_int_equal(sums.ps[CAUSE_SPILL], 5);
    assert_int_equal(sums.ps[CAUSE_VMEM], 5);
    assert_int_equal(sums.ps[CAUSE_DMA], 10);
    assert_int_equal(sums.ps[CAUSE_GAP], 20);    /* 40 to 50, 60 to 70 */
    assert_int_equal(sums.ps[CAUSE_REGION], 10); /* 80 to 90 */
    assert_int_equal(sums.ps[CAUSE_UNRECORDED], 19);
    int64_t all = 0, second = 0;
    for (int c = 0; c < KERNEL_CAUSES; c++)
        all += sums.ps[c], second += bins[KERNEL_CAUSES + c];
    assert_int_equal(all, 100);
    assert_int_equal(second, 25);
    assert_int_equal(bins[CAUSE_WORK], 5);                     /* 20 to 25 */
    assert_int_equal(bins[3 * KERNEL_CAUSES + CAUSE_WORK], 1); /* 99 to 100 */
}

static void parts_that_do_not_divide_lose_nothing(void **state)
{
    struct kernel_bins b = {.from_ps = 7, .to_ps = 7 + 10, .n = 3};
    int64_t v[3] = {0};
    (void)state;
    assert_int_equal(kernel_bin_begin(&b, 0), 7);
    assert_int_equal(kernel_bin_begin(&b, 1), 10);
    assert_int_equal(kernel_bin_begin(&b, 2), 13);
    assert_int_equal(kernel_bin_begin(&b, 3), 17);
    for (int64_t t = 7; t < 17; t++) {
        uint32_t i = kernel_bin_of(&b, t);
        assert_true(kernel_bin_begin(&b, i) <= t && t < kernel_bin_begin(&b, i + 1));
    }
    kernel_bins_add(&b, 0, 12, v, 1);
    kernel_bins_add(&b, 12, 100, v, 1);
    kernel_bins_add(&b, 30, 40, v, 1);
    assert_int_equal(v[0], 3);
    assert_int_equal(v[1], 3);
    assert_int_equal(v[2], 4);
}

static void nothing_recorded_is_all_unrecorded(void **state)
{
    struct kernel_spans s;
    struct xp_error err;
    struct kernel_window w = {.begin_ps = -5, .end_ps = 5};
    struct kernel_cause_sums sums = {.bins = NULL};
    (void)state;
    kernel_spans_init(&s, arena);
    kernel_spans_add(&s, KERNEL_WORK, 3, 3);
    assert_int_equal(kernel_causes(&s, &w, &sums, &err), XP_OK);
    assert_int_equal(sums.ps[CAUSE_UNRECORDED], 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_instruction_is_what_its_unit_name_and_text_say),
        cmocka_unit_test(a_region_waits_if_its_name_says_so),
        cmocka_unit_test_setup_teardown(each_moment_has_one_cause_and_they_add_up, setup, teardown),
        cmocka_unit_test(parts_that_do_not_divide_lose_nothing),
        cmocka_unit_test_setup_teardown(nothing_recorded_is_all_unrecorded, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
