#include "shard/tools/kernel_name.h"
#include "tests/unit/unit.h"

static void kernels_are_called_by_their_names_alone(void **state)
{
    static const char *const names[][2] = {
        {"ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn"},
        {"void at::native::gemm<float, 4>(float*, int)", "at::native::gemm"},
        {"_ZN2at6native4gemmIfLi4EEEvPfi", "at::native::gemm"},
        {"_Z9my_kernelPfi", "my_kernel"},
        {"_ZN12_GLOBAL__N_13addEv", "(anonymous namespace)::add"},
        {"void (anonymous namespace)::add<int>(int*)", "(anonymous namespace)::add"},
        {"std::enable_if<(1 > 0), void>::type ns::run<A<B> >(A)", "ns::run"},
        {"void cutlass::Kernel2<cutlass_80_tensorop_s1688, int>(Params)",
         "cutlass_80_tensorop_s1688"},
        {"_ZN12_GLOBAL__N_13addIfEEvPT_", "(anonymous namespace)::add"},
        {"_ZN2ns3FooIiEclEPf", "ns::Foo::operator()"},
        {"bool ns::operator< <int>(A const&, A const&)", "ns::operator<"},
        {"ns::run(int)::{lambda(float*, int)#2}::operator()(float*) const",
         "ns::run::{lambda#2}::operator()"},
        {"void ck_tile::kentry<ck_tile::gfx950_t, 2, ck_tile::Fwd<A<B>, C> >(D)", "ck_tile::Fwd"},
        {"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<int>>(P)",
         "cutlass::gemm::kernel::GemmUniversal"},
        {"_ZN7cutlass6KernelI28cutlass_80_wmma_tensorop_f16EEvNT_6ParamsE",
         "cutlass_80_wmma_tensorop_f16"},
        {"_ZN7cutlass7Kernel2I24cutlass_80_tensorop_s161EEvPT_", "cutlass_80_tensorop_s161"},
        {"loop_fusion_3.kd", "loop_fusion_3"},
        {"a::b(long*) [clone .kd]", "a::b"},
        {".kd", ".kd"},
        {"{lambda(", "{lambda"},
        {"f(", "f"},
        {"f()::", "f::"},
        {"operator", "operator"},
        {"cutlass::Kernel", "cutlass::Kernel"},
        {"cutlass::Kernel<", "cutlass::Kernel"},
        {"_ZS1_", "_ZS1_"},
        {"_Z99short", "_Z99short"},
        {"_Z", "_Z"},
        {"_ZN", "_ZN"},
        {"<>", "<>"},
        {"(", "("},
        {"f<a", "f"},
        {"", ""},
    };
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_bump b;
    (void)state;
    xp_bump_init(&b, a);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct xp_span got = kernel_short_name(xp_span_str(names[i][0]), &b);
        if (!xp_span_eq(got, xp_span_str(names[i][1])))
            fail_msg("%s: %.*s", names[i][0], (int)got.n, (const char *)got.p);
    }
    xp_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_are_called_by_their_names_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
