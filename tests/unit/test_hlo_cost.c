#include "shard/stats/hlo_cost.h"

#include "tests/unit/unit.h"
#include "tests/unit/xspace_make.h"

enum { F32 = 11, S8 = 2, TUPLE = 13 };

struct instr {
    int64_t id;
    const char *name, *opcode;
    int type;
    int64_t dims[3];
    int ndims;
    int64_t operands[3];
    int noperands;
    int64_t called;    /* computation, or 0 */
    int64_t dimension; /* of a concatenate, or -1 */
    bool window;       /* of 3, stride 1, padded by 1 on both sides of the last dimension */
};

static void put_window(struct xp_buf *m)
{
    struct xp_buf window = make_message(), dim = make_message();
    for (uint32_t field = 1; field <= 6; field++)
        xp_pb_put_u64(&dim, field, field == 1 ? 3 : 1);
    make_put(&window, 1, &dim);
    make_put(m, 15, &window);
}

/* Input [batch, features, places], kernel [output features, features, places]. */
static void put_conv(struct xp_buf *m)
{
    struct xp_buf dims = make_message();
    static const int64_t at[][2] = {{3, 1}, {4, 0},  {6, 2},  {7, 0}, {8, 1},
                                    {9, 0}, {10, 1}, {11, 2}, {12, 2}};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        xp_pb_put_u64(&dims, (uint32_t)at[i][0], (uint64_t)at[i][1]);
    make_put(m, 16, &dims);
    make_text(m, 28, "__cudnn$convForward");
}

static const char *config; /* of custom calls, which are matrix products */

static void put_instr(struct xp_buf *comp, const struct instr *in)
{
    struct xp_buf m = make_message(), shape = make_message();
    make_text(&m, 1, in->name);
    make_text(&m, 2, in->opcode);
    xp_pb_put_u64(&shape, 2, (uint64_t)in->type);
    for (int i = 0; i < in->ndims; i++)
        xp_pb_put_u64(&shape, 3, (uint64_t)in->dims[i]);
    make_put(&m, 3, &shape);
    if (in->dimension >= 0)
        xp_pb_put_u64(&m, 14, (uint64_t)in->dimension);
    if (in->window) {
        put_window(&m);
        put_conv(&m);
    }
    if (strcmp(in->opcode, "custom-call") == 0 && !in->window) {
        make_text(&m, 28, "__cublas$gemm");
        make_text(&m, 43, config);
    }
    xp_pb_put_u64(&m, 35, (uint64_t)in->id);
    for (int i = 0; i < in->noperands; i++)
        xp_pb_put_u64(&m, 36, (uint64_t)in->operands[i]);
    if (in->called)
        xp_pb_put_u64(&m, 38, (uint64_t)in->called);
    make_put(comp, 2, &m);
}

static void put_comp(struct xp_buf *module, int64_t id, int64_t root, bool fusion,
                     const struct instr *v, size_t n)
{
    struct xp_buf c = make_message();
    make_text(&c, 1, "c");
    for (size_t i = 0; i < n; i++)
        put_instr(&c, &v[i]);
    xp_pb_put_u64(&c, 5, (uint64_t)id);
    xp_pb_put_u64(&c, 6, (uint64_t)root);
    xp_pb_put_u64(&c, 7, fusion);
    make_put(module, 3, &c);
}

/* Of the first instruction called `name`. */
static struct hlo_cost cost_in(struct xp_buf *module, const char *name)
{
    struct xp_buf proto = make_message();
    struct xp_arena *a = xp_arena_new(NULL);
    struct hlo_module *m;
    struct hlo_cost cost;
    struct xp_error err = {0};
    make_put(&proto, 1, module);
    assert_int_equal(hlo_decode(xp_buf_all(&proto), a, &m, &err), XP_OK);
    uint32_t i = hlo_instr_by_name(m, xp_span_str(name));
    assert_true(i != HLO_NONE);
    assert_true(hlo_cost_of(m, &m->instrs[i], &cost));
    xp_arena_free(a);
    xp_buf_fini(&proto);
    return cost;
}

static void elementwise_operations_cost_by_the_element(void **state)
{
    (void)state;
    static const struct instr v[] = {
        {1, "p", "parameter", F32, {4, 8}, 2, {0}, 0, 0, -1, false},
        {2, "add", "add", F32, {4, 8}, 2, {1, 1}, 2, 0, -1, false},
    };
    struct xp_buf module = make_message();
    put_comp(&module, 1, 2, false, v, 2);
    struct hlo_cost c = cost_in(&module, "add");
    assert_true(c.flops == 3 * 32);
    assert_int_equal(c.read_bytes, 2 * 128);
    assert_int_equal(c.write_bytes, 128);
}

static void a_fusion_computes_a_shared_value_once_and_reads_it_once(void **state)
{
    (void)state;
    static const struct instr inner[] = {
        {1, "p", "parameter", F32, {32}, 1, {0}, 0, 0, -1, false},
        {2, "neg", "negate", F32, {32}, 1, {1}, 1, 0, -1, false},
        {3, "wide", "broadcast", F32, {32, 10}, 2, {2}, 1, 0, -1, false},
        {4, "mul", "multiply", F32, {32, 10}, 2, {3, 3}, 2, 0, -1, false},
    };
    static const struct instr outer[] = {
        {10, "q", "parameter", F32, {32}, 1, {0}, 0, 0, -1, false},
        {11, "fusion", "fusion", F32, {32, 10}, 2, {10}, 1, 1, -1, false},
    };
    struct xp_buf module = make_message();
    put_comp(&module, 1, 4, true, inner, 4);
    put_comp(&module, 2, 11, false, outer, 2);
    struct hlo_cost c = cost_in(&module, "fusion");
    assert_true(c.flops == 3 * 320 + 3 * 32);
    assert_int_equal(c.read_bytes, 128);
    assert_int_equal(c.write_bytes, 1280);
}

static void a_concatenation_across_warps_costs_both_branches(void **state)
{
    (void)state;
    struct instr v[] = {
        {1, "p", "parameter", F32, {32, 1}, 2, {0}, 0, 0, -1, false},
        {2, "cat", "concatenate", F32, {32, 2}, 2, {1, 1}, 2, 0, 1, false},
    };
    struct xp_buf module = make_message();
    put_comp(&module, 1, 2, false, v, 2);
    assert_true(cost_in(&module, "cat").flops == 400 * 64);
    module = make_message();
    v[1].dimension = 0;
    v[1].dims[0] = 64, v[1].dims[1] = 1;
    put_comp(&module, 1, 2, false, v, 2);
    assert_true(cost_in(&module, "cat").flops == 6 * 64);
}

static void slow_functions_cost_their_cycles(void **state)
{
    (void)state;
    static const struct instr v[] = {
        {1, "p", "parameter", F32, {4}, 1, {0}, 0, 0, -1, false},
        {2, "root", "sqrt", F32, {4}, 1, {1}, 1, 0, -1, false},
    };
    struct xp_buf module = make_message();
    put_comp(&module, 1, 2, false, v, 2);
    assert_true(cost_in(&module, "root").flops == 75 * 4);
}

/* Of 3 places of the kernel at each of 8 places, 2 lie on the padding: 22 products a feature. */
static void a_convolution_costs_its_products(void **state)
{
    (void)state;
    static const struct instr v[] = {
        {1, "in", "parameter", F32, {2, 5, 8}, 3, {0}, 0, 0, -1, false},
        {2, "kernel", "parameter", F32, {7, 5, 3}, 3, {0}, 0, 0, -1, false},
        {3, "conv", "convolution", F32, {2, 7, 8}, 3, {1, 2}, 2, 0, -1, true},
        {4, "call", "custom-call", F32, {2, 7, 8}, 3, {1, 2}, 2, 0, -1, true},
    };
    struct xp_buf module = make_message();
    put_comp(&module, 1, 3, false, v, 4);
    struct hlo_cost c = cost_in(&module, "conv");
    assert_true(c.flops == 2 * 2 * 5 * 7 * 22);
    assert_int_equal(c.write_bytes, 4 * 2 * 7 * 8);
    module = make_message();
    put_comp(&module, 1, 3, false, v, 4);
    assert_true(cost_in(&module, "call").flops == c.flops);
}

/* A sum over windows of 3: two additions for each of 8 results. */
static void a_windowed_sum_costs_its_additions(void **state)
{
    (void)state;
    static const struct instr sum[] = {
        {1, "a", "parameter", F32, {0}, 0, {0}, 0, 0, -1, false},
        {2, "add", "add", F32, {0}, 0, {1, 1}, 2, 0, -1, false},
    };
    static const struct instr v[] = {
        {10, "p", "parameter", F32, {8, 2}, 2, {0}, 0, 0, -1, false},
        {11, "zero", "constant", F32, {0}, 0, {0}, 0, 0, -1, false},
        {12, "sum", "reduce-window", F32, {8, 2}, 2, {10, 11}, 2, 1, -1, true},
    };
    struct xp_buf module = make_message();
    put_comp(&module, 1, 2, false, sum, 2);
    put_comp(&module, 2, 12, false, v, 3);
    assert_true(cost_in(&module, "sum").flops == 3 * 2 * 16);
}

/* Each of the 4 results starts from the first value, which is converted for each. */
static void the_first_value_of_a_reduction_is_read_for_each_result(void **state)
{
    (void)state;
    static const struct instr max[] = {
        {1, "a", "parameter", F32, {0}, 0, {0}, 0, 0, -1, false},
        {2, "max", "maximum", F32, {0}, 0, {1, 1}, 2, 0, -1, false},
    };
    static const struct instr inner[] = {
        {5, "p", "parameter", F32, {4, 8}, 2, {0}, 0, 0, -1, false},
        {6, "low", "constant", F32, {0}, 0, {0}, 0, 0, -1, false},
        {7, "wide", "convert", F32, {0}, 0, {6}, 1, 0, -1, false},
        {8, "reduce", "reduce", F32, {4}, 1, {5, 7}, 2, 1, -1, false},
    };
    static const struct instr outer[] = {
        {10, "q", "parameter", F32, {4, 8}, 2, {0}, 0, 0, -1, false},
        {11, "fusion", "fusion", F32, {4}, 1, {10}, 1, 2, -1, false},
    };
    struct xp_buf module = make_message();
    put_comp(&module, 1, 2, false, max, 2);
    put_comp(&module, 2, 8, true, inner, 4);
    put_comp(&module, 3, 11, false, outer, 2);
    assert_true(cost_in(&module, "fusion").flops == 3 * (32 - 4) + 3 * 4);
}

static void narrow_operands_run_faster(void **state)
{
    (void)state;
    static const struct instr v[] = {
        {1, "p", "parameter", S8, {16}, 1, {0}, 0, 0, -1, false},
        {2, "add", "add", S8, {16}, 1, {1, 1}, 2, 0, -1, false},
    };
    struct xp_buf module = make_message();
    put_comp(&module, 1, 2, false, v, 2);
    struct hlo_cost c = cost_in(&module, "add");
    assert_true(c.flops == 48 && c.device_flops == 24);
}

static void broken_modules_cost_something_finite(void **state)
{
    (void)state;
    static const struct instr inner[] = {
        {1, "a", "add", F32, {8}, 1, {2, 2}, 2, 0, -1, false}, /* uses what comes later */
        {2, "b", "add", F32, {8}, 1, {1, 99}, 2, 0, -1, false},
    };
    static const struct instr outer[] = {
        {11, "fusion", "fusion", F32, {8}, 1, {11}, 1, 1, -1, false}, /* its own operand */
        {12, "lost", "fusion", F32, {8}, 1, {77}, 1, 55, -1, false},
        {13, "red", "reduce", F32, {8}, 1, {0}, 0, 0, -1, false},
    };
    static const char *const names[] = {"fusion", "lost", "red"};
    for (int i = 0; i < 3; i++) {
        struct xp_buf module = make_message();
        put_comp(&module, 1, 2, true, inner, 2);
        put_comp(&module, 2, 11, false, outer, 3);
        struct hlo_cost c = cost_in(&module, names[i]);
        assert_true(c.flops >= 0 && c.flops < 1e6);
    }
}

static struct hlo_cost cost_of_gemm(const char *how)
{
    static const struct instr v[] = {
        {1, "a", "parameter", F32, {5, 7, 3}, 3, {0}, 0, 0, -1, false},
        {2, "b", "parameter", F32, {3, 7, 2}, 3, {0}, 0, 0, -1, false},
        {3, "gemm", "custom-call", F32, {5, 2}, 2, {1, 2}, 2, 0, -1, false},
    };
    struct xp_buf module = make_message();
    config = how;
    put_comp(&module, 1, 3, false, v, 3);
    return cost_in(&module, "gemm");
}

static void a_product_in_a_library_costs_what_it_must_and_nothing_to_xprof(void **state)
{
    (void)state;
    struct hlo_cost c = cost_of_gemm("{\"gemm_backend_config\":{\"dot_dimension_numbers\":{"
                                     "\"lhs_contracting_dimensions\":[\"1\",\"2\"],"
                                     "\"rhs_contracting_dimensions\":[\"1\",\"0\"]}}}");
    assert_true(c.flops == 0 && c.device_flops == 0);
    assert_int_equal(c.read_bytes + c.write_bytes + c.other_bytes, 0);
    assert_true(c.call_flops == 2 * 5 * 2 * 7 * 3);
    assert_true(c.call_device_flops == c.call_flops);
    assert_int_equal(c.call_bytes, 4 * (5 * 7 * 3 + 3 * 7 * 2 + 5 * 2));
}

static void a_product_whose_configuration_says_nothing_is_not_guessed(void **state)
{
    static const char *const how[] = {"",
                                      "{}",
                                      "\"lhs_contracting_dimensions\"",
                                      "\"lhs_contracting_dimensions\":",
                                      "\"lhs_contracting_dimensions\":[",
                                      "\"lhs_contracting_dimensions\":[\"1",
                                      "\"lhs_contracting_dimensions\":[\"1\",x]"};
    (void)state;
    for (size_t i = 0; i < sizeof how / sizeof *how; i++)
        assert_true(cost_of_gemm(how[i]).call_flops == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementwise_operations_cost_by_the_element),
        cmocka_unit_test(a_fusion_computes_a_shared_value_once_and_reads_it_once),
        cmocka_unit_test(a_concatenation_across_warps_costs_both_branches),
        cmocka_unit_test(slow_functions_cost_their_cycles),
        cmocka_unit_test(a_convolution_costs_its_products),
        cmocka_unit_test(a_product_in_a_library_costs_what_it_must_and_nothing_to_xprof),
        cmocka_unit_test(a_product_whose_configuration_says_nothing_is_not_guessed),
        cmocka_unit_test(a_windowed_sum_costs_its_additions),
        cmocka_unit_test(the_first_value_of_a_reduction_is_read_for_each_result),
        cmocka_unit_test(narrow_operands_run_faster),
        cmocka_unit_test(broken_modules_cost_something_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
