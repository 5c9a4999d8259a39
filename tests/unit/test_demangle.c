#include "shard/tools/demangle.h"
#include "tests/unit/unit.h"

static struct xp_span read_name(const char *name, struct xp_buf *out)
{
    out->n = 0;
    return demangle(xp_span_str(name), out) ? xp_buf_all(out) : XP_SPAN_LIT("refused");
}

static void check(const char *const names[][2], size_t n)
{
    struct xp_buf out;
    xp_buf_init(&out, 2 * DEMANGLE_OUT_MAX);
    for (size_t i = 0; i < n; i++) {
        struct xp_span got = read_name(names[i][0], &out);
        if (!xp_span_eq(got, xp_span_str(names[i][1])))
            fail_msg("%s: %.*s", names[i][0], (int)got.n, (const char *)got.p);
    }
    xp_buf_fini(&out);
}

#define CHECK(names) check(names, sizeof names / sizeof *names)

static void names_of_kernels_are_read(void **state)
{
    static const char *const names[][2] = {
        {"_Z3addv", "add()"},
        {"_Z5saxpyifPfS_", "saxpy(int, float, float*, float*)"},
        {"_ZN2at6native4gemmIfLi4EEEvPfi", "void at::native::gemm<float, 4>(float*, int)"},
        {"_ZN12_GLOBAL__N_13addIiEEvPKT_", "void (anonymous namespace)::add<int>(int const*)"},
        {"_Z1fI6__halfLb1EEvPKT_S3_jm",
         "void f<__half, true>(__half const*, __half const*, unsigned int, unsigned long)"},
        {"_ZN2ns1AIiLin3EE1gEv", "ns::A<int, -3>::g()"},
        {"_Z1fILj4ELm8EEvv", "void f<4u, 8ul>()"},
        {"_ZN1AC1Ei", "A::A(int)"},
        {"_ZN1AIiED2Ev", "A<int>::~A()"},
        {"_ZNK1AclEi", "A::operator()(int) const"},
        {"_ZltIiEbRK1AIT_ES4_", "bool operator< <int>(A<int> const&, A<int> const&)"},
        {"_Z1fIJifdEEvDpRKT_", "void f<int, float, double>(int const&, float const&, double "
                               "const&)"},
        {"_Z1fIJEEvDpT_", "void f<>()"},
        {"_Z1fIJEEvPDpPFvT_E", "void f<>(*)"},
        {"_Z1fIJEEvM1CDpPFvT_E", "void f<>( C::*)"},
        {"_Z1fIJEEvPDpA4_PFvT_E", "void f<>(*)"},
        {"_Z1fIRiEvOT_", "void f<int&>(int&)"},
        {"_Z1fPFvifE", "f(void (*)(int, float))"},
        {"_Z1fRA4_Kf", "f(float const (&) [4])"},
        {"_Z1fM1AFviE", "f(void (A::*)(int))"},
        {"_Z1fM1Ai", "f(int A::*)"},
        {"_ZZ1fIiEvvENKUlifE_clEif",
         "f<int>()::{lambda(int, float)#1}::operator()(int, float) const"},
        {"_ZZ1gvENUt0_4workEv", "g()::{unnamed type#2}::work()"},
        {"_Z1fDv4_fDF16bDh", "f(float __vector(4), std::bfloat16_t, half)"},
        {"_Z1fPU3AS1Kf", "f(float const AS1*)"},
        {"_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_c",
         "std::basic_ostream<char, std::char_traits<char> >& std::operator<< "
         "<std::char_traits<char> >(std::basic_ostream<char, std::char_traits<char> >&, char)"},
        {"_Z3addv.kd", "add() [clone .kd]"},
    };
    (void)state;
    CHECK(names);
}

static void what_is_no_name_or_has_an_expression_is_refused(void **state)
{
    static const char *const names[][2] = {
        {"", "refused"},
        {"_Z", "refused"},
        {"add", "refused"},
        {"_Z99short", "refused"},
        {"_ZN", "refused"},
        {"_ZN3add", "refused"},
        {"_Z1fS_", "refused"},
        {"_Z1fIXsr1A1BEEvv", "refused"},
        {"_ZTV1A", "refused"},
        {"_Z0v", "refused"},
        {"_ZC1v", "refused"},
        {"_ZD2v", "refused"},
        {"_Z1fIiEv junk", "refused"},
        {"_Z1fA_", "refused"},
        {"_Z1fS99999999999999999_", "refused"},
    };
    (void)state;
    CHECK(names);
}

/* S_ twice as long each time: 2^40 bytes, were it written. */
static void names_that_grow_beyond_bounds_are_refused(void **state)
{
    char deep[1000];
    struct xp_buf name, out;
    (void)state;
    xp_buf_init(&name, 4096);
    xp_buf_init(&out, 2 * DEMANGLE_OUT_MAX);
    xp_buf_str(&name, "_Z1f1AIiiE");
    for (int i = 0; i < 40; i++)
        xp_buf_fmt(&name, "1AIS%c_S%c_E", i < 10 ? '0' + i : 'A' + i - 10,
                   i < 10 ? '0' + i : 'A' + i - 10);
    xp_buf_byte(&name, 0);
    read_name((const char *)name.p, &out);
    assert_true(out.n <= DEMANGLE_OUT_MAX);
    memset(deep, 'P', sizeof deep);
    memcpy(deep, "_Z1f", 4);
    deep[998] = 'i';
    deep[999] = 0;
    assert_true(xp_span_eq(read_name(deep, &out), XP_SPAN_LIT("refused")));
    xp_buf_fini(&name);
    xp_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_kernels_are_read),
        cmocka_unit_test(what_is_no_name_or_has_an_expression_is_refused),
        cmocka_unit_test(names_that_grow_beyond_bounds_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
