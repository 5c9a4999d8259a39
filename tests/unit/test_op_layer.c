#include "shard/tools/op_layer.h"
#include "tests/unit/unit.h"

static void a_layer_is_the_outermost_scope_that_is_called_so(void **state)
{
    static const char *const names[][2] = {
        {"jit(step)/jit(main)/layer_3/attention_1/dot_general", "layer_3"},
        {"jit(step)/transpose(jvp(decoder))/layers/3/mlp/dot_general", "layers/3"},
        {"jit(step)/transpose(jvp(layer_12))/mlp/dot_general", "layer_12"},
        {"jit(step)/while/body/decoder/layers/mlp/dot_general", "layers/mlp"},
        {"jit(step)/while/body/layers/add", "layers"},
        {"jit(step)/jvp(layers)/0/attn/mul", "layers/0"},
        {"jit(step)/transpose(jvp(layers))/0/attn/mul", "layers/0"},
        {"jit(step)/layers/while/body/closed_call/mlp/mul", "layers/mlp"},
        {"jit(step)/transpose(jvp(layers))/while/body/checkpoint/mlp/mul", "layers/mlp"},
        {"jit(step)/layers/while/cond/lt", "layers"},
        {"jit(step)/Dense_0/dot_general", "Dense_0"},
        {"jit(step)/Encoder_0/Block_7/Dense_1/add", "Block_7"},
        {"gpt/h/11/attn/mul", "h/11"},
        {"h.3/attn/mul", "h.3"},
        {"model/h/attn/mul", ""},
        {"jit(step)/(transpose(jvp(x))/layers/rmsnorm/mul:reduce_sum):", "layers/rmsnorm"},
        {"jit(layer_1)/add", ""},
        {"layer_1", ""},
        {"a/b/c_1", ""},
        {"a/7/c", ""},
        {"((((", ""},
        {"", ""},
    };
    struct xp_arena *a = xp_arena_new(NULL);
    (void)state;
    assert_non_null(a);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct xp_span got = op_layer_of(xp_span_str(names[i][0]), a);
        if (!xp_span_eq(got, xp_span_str(names[i][1])))
            fail_msg("%s: %.*s", names[i][0], (int)got.n, (const char *)got.p);
    }
    xp_arena_free(a);
}

static void what_was_transposed_is_of_the_backward_pass(void **state)
{
    (void)state;
    assert_true(op_is_backward(XP_SPAN_LIT("jit(f)/transpose(jvp(layer_1))/dot_general")));
    assert_true(op_is_backward(XP_SPAN_LIT("jit(f)/vmap(transpose(jvp(a/b)))/dot_general")));
    assert_true(op_is_backward(XP_SPAN_LIT("gradients/layer_1/MatMul:MatMul")));
    assert_true(op_is_backward(XP_SPAN_LIT("gradient_tape/model/dense/MatMul")));
    assert_false(op_is_backward(XP_SPAN_LIT("jit(f)/layer_1/transpose")));
    assert_false(op_is_backward(XP_SPAN_LIT("jit(f)/conv_transpose(x)/conv")));
    assert_false(op_is_backward(XP_SPAN_LIT("model/dense/MatMul:MatMul")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_is_the_outermost_scope_that_is_called_so),
        cmocka_unit_test(what_was_transposed_is_of_the_backward_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
