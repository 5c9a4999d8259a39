#include "shard/stats/op_gpu_kernels.h"
#include "shard/stats/op_gpu_limits.h"
#include "tests/unit/unit.h"

static void a_launch_says_how_it_was_made(void **state)
{
    (void)state;
    struct op_kernel k = {.registers = 0};
    gpu_launch_params(XP_SPAN_LIT("regs:32 static_shared:16\ndynamic_shared:2048 grid:64,2,1 "
                                  "block:128,1 occ_pct:37.50 what:else regs:x"),
                      &k);
    assert_int_equal(k.registers, 32);
    assert_int_equal(k.static_shmem, 16);
    assert_int_equal(k.dynamic_shmem, 2048);
    assert_int_equal(k.grid[0], 64);
    assert_int_equal(k.grid[1], 2);
    assert_int_equal(k.block[0], 1); /* two numbers are no block */
    assert_true(k.occupancy == 37.5f);
}

static void tensor_cores_are_told_by_the_kernels_name(void **state)
{
    (void)state;
    assert_true(gpu_kernel_uses_tensor_core(XP_SPAN_LIT("volta_h884gemm_64x128")));
    assert_true(gpu_kernel_uses_tensor_core(XP_SPAN_LIT("gemm_fusion_dot_1.kd")));
    assert_false(gpu_kernel_uses_tensor_core(XP_SPAN_LIT("ampere_sgemm_128x64_nn")));
    assert_true(gpu_op_is_eligible(XP_SPAN_LIT("train/dense/MatMul")));
    assert_true(gpu_op_is_eligible(XP_SPAN_LIT("jit(f)/dot_general")));
    assert_false(gpu_op_is_eligible(XP_SPAN_LIT("MatMul")));
    assert_false(gpu_op_is_eligible(XP_SPAN_LIT("train/add")));
}

static void model(struct gpu_caps caps, const char *want, double flops)
{
    char text[GPU_MODEL_MAX];
    gpu_model(&caps, text);
    assert_string_equal(text, want);
    assert_true(gpu_core_gflops(&caps) == flops);
}

static void devices_have_models_and_limits(void **state)
{
    (void)state;
    struct xp_span nvidia = XP_SPAN_LIT("Nvidia"), amd = XP_SPAN_LIT("AMD");
    model((struct gpu_caps){.clock_ghz = 1, .major = 8, .vendor = nvidia}, "Nvidia GPU (Ampere)",
          2048);
    model((struct gpu_caps){.clock_ghz = 2, .major = 99, .vendor = nvidia}, "Nvidia GPU", 16384);
    model((struct gpu_caps){.clock_ghz = 1, .major = 1, .vendor = nvidia}, "Nvidia GPU", 64);
    model((struct gpu_caps){.clock_ghz = 1, .major = 9, .minor = 4, .vendor = amd},
          "AMD GPU - gfx942", 2048);
    model((struct gpu_caps){.clock_ghz = 1, .major = 10, .vendor = amd},
          "AMD GPU - gfx-10XX series", 0);
    model(
        (struct gpu_caps){.clock_ghz = 1, .major = 9, .vendor = amd, .name = XP_SPAN_LIT("gfx90a")},
        "AMD GPU - gfx90a", 1024);
    model((struct gpu_caps){.clock_ghz = 1}, "GPU", 0);
}

static void durations_fall_into_bins_that_people_can_read(void **state)
{
    (void)state;
    assert_int_equal(op_kernel_bin(0), 0);
    assert_int_equal(op_kernel_bin(9), 0);
    assert_int_equal(op_kernel_bin_begin(op_kernel_bin(10)), 10);
    assert_int_equal(op_kernel_bin_begin(op_kernel_bin(14)), 10);
    assert_int_equal(op_kernel_bin_begin(op_kernel_bin(99)), 70);
    assert_int_equal(op_kernel_bin_begin(op_kernel_bin(100)), 100);
    assert_int_equal(op_kernel_bin_begin(op_kernel_bin(149999)), 100000);
    assert_int_equal(op_kernel_bin_begin(op_kernel_bin(150000)), 150000);
    assert_int_equal(op_kernel_bin(UINT64_MAX), OP_KERNEL_BINS - 1);
    assert_int_equal(op_kernel_bin_begin(OP_KERNEL_BINS - 1), 100000000000);
    for (uint32_t i = 0; i < OP_KERNEL_BINS; i++) {
        assert_int_equal(op_kernel_bin(op_kernel_bin_begin(i)), i);
        if (i)
            assert_int_equal(op_kernel_bin(op_kernel_bin_begin(i) - 1), i - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launch_says_how_it_was_made),
        cmocka_unit_test(tensor_cores_are_told_by_the_kernels_name),
        cmocka_unit_test(devices_have_models_and_limits),
        cmocka_unit_test(durations_fall_into_bins_that_people_can_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
