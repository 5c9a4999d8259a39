#include "shard/hlo/hlo_dot.h"
#include "shard/hlo/hlo_pbtxt.h"
#include "shard/hlo/hlo_text.h"
#include "shard/tools/dot_page.h"
#include "tests/unit/hlo_make.h"
#include "tests/unit/unit.h"

struct fixture {
    struct xp_arena *a;
    struct hlo_make k;
    struct xp_buf out;
    struct xp_error err;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->a = xp_arena_new(NULL);
    hlo_make_init(&f->k);
    xp_buf_init(&f->out, (size_t)64 << 20);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    hlo_make_fini(&f->k);
    xp_buf_fini(&f->out);
    xp_arena_free(f->a);
    free(f);
    return 0;
}

static struct hlo_module *decoded(struct fixture *f, int64_t entry)
{
    struct hlo_module *m = NULL;
    struct xp_span bytes = end_module(&f->k, "m", entry, f->a);
    if (hlo_decode(bytes, f->a, &m, &f->err) != XP_OK)
        fail_msg("%s", f->err.text);
    return m;
}

static struct hlo_text printer(struct fixture *f, const struct hlo_module *m)
{
    f->out.n = 0;
    return (struct hlo_text){.m = m, .opt = hlo_text_short, .scratch = f->a, .out = &f->out};
}

static void assert_text(struct fixture *f, const char *want)
{
    if (!xp_span_eq(xp_buf_all(&f->out), xp_span_str(want)))
        fail_msg("expected\n%s\ngot\n%.*s", want, (int)f->out.n, (const char *)f->out.p);
}

static void assert_has(struct fixture *f, const char *want)
{
    if (!memmem(f->out.p, f->out.n, want, strlen(want)))
        fail_msg("expected to find\n%s\nin\n%.*s", want, (int)f->out.n, (const char *)f->out.p);
}

static void assert_instr(struct fixture *f, const struct hlo_module *m, uint32_t i,
                         const char *want)
{
    struct hlo_text t = printer(f, m);
    hlo_text_instr(&t, &m->instrs[i]);
    assert_text(f, want);
}

static void module_prints_callees_first_and_operands_first(void **state)
{
    struct fixture *f = *state;
    add_instr(&f->k, 2, "n", "negate", DIMS(4), OPS(1));
    add_parameter(&f->k, 1, "p", 0, DIMS(4));
    end_comp(&f->k, 20, "fused", 2);
    add_parameter(&f->k, 3, "x", 0, DIMS(4));
    begin_instr(&f->k, 4, "fusion", "fusion", DIMS(4), OPS(3));
    put_text(&f->k.instr, HLO_F_FUSION_KIND, "kLoop");
    xp_pb_put_u64(&f->k.instr, HLO_F_CALLED_COMPUTATION_IDS, 20);
    end_instr(&f->k);
    end_comp(&f->k, 10, "main", 4);
    struct hlo_module *m = decoded(f, 10);
    struct hlo_text t = printer(f, m);

    assert_int_equal(hlo_text_module(&t, &f->err), XP_OK);
    assert_text(f, "HloModule m\n\n"
                   "fused {\n"
                   "  p = f32[4]{0} parameter(0)\n"
                   "  ROOT n = f32[4]{0} negate(p)\n"
                   "}\n\n"
                   "ENTRY main {\n"
                   "  x = f32[4]{0} parameter(0)\n"
                   "  ROOT fusion = f32[4]{0} fusion(x), kind=kLoop, calls=fused\n"
                   "}\n\n");
    t = printer(f, m);
    t.opt = hlo_text_default;
    assert_int_equal(hlo_text_module(&t, &f->err), XP_OK);
    assert_has(f, "%fused (p: f32[4]) -> f32[4] {\n");
    assert_has(f, "ROOT %fusion = f32[4]{0} fusion(%x), kind=kLoop, calls=%fused\n");
}

static void module_ends_when_operands_or_calls_form_a_ring(void **state)
{
    struct fixture *f = *state;
    begin_instr(&f->k, 1, "a", "call", DIMS(1), OPS(2));
    xp_pb_put_u64(&f->k.instr, HLO_F_CALLED_COMPUTATION_IDS, 10);
    end_instr(&f->k);
    add_instr(&f->k, 2, "b", "negate", DIMS(1), OPS(1));
    end_comp(&f->k, 10, "main", 1);
    struct hlo_module *m = decoded(f, 10);
    struct hlo_text t = printer(f, m);
    struct hlo_dot_options opt = {true, true};
    struct hlo_dot_out to = {.scratch = f->a, .out = &f->out};

    assert_int_equal(hlo_text_module(&t, &f->err), XP_OK);
    f->out.n = 0;
    assert_int_equal(hlo_dot_comp(m, 0, &opt, &to, &f->err), XP_OK);
    assert_int_equal(hlo_dot_around(m, 0, 1000, &opt, &to, &f->err), XP_OK);
}

static void graph_ends_when_a_fusion_fuses_itself(void **state)
{
    struct fixture *f = *state;
    begin_instr(&f->k, 1, "a", "fusion", DIMS(1), NO_OPS);
    xp_pb_put_u64(&f->k.instr, HLO_F_CALLED_COMPUTATION_IDS, 10);
    end_instr(&f->k);
    add_instr(&f->k, 2, "b", "negate", DIMS(1), OPS(1));
    end_comp(&f->k, 10, "main", 1);
    struct hlo_module *m = decoded(f, 10);
    struct hlo_dot_options opt = {true, true};
    struct hlo_dot_out to = {.scratch = f->a, .out = &f->out};

    assert_int_equal(hlo_dot_comp(m, 0, &opt, &to, &f->err), XP_OK);
    assert_int_equal(hlo_dot_around(m, 1, 5, &opt, &to, &f->err), XP_OK);
}

static void check_says_what_cannot_be_loaded(void **state)
{
    struct fixture *f = *state;
    struct hlo_module *m;

    assert_int_equal(hlo_decode((struct xp_span){0}, f->a, &m, &f->err), XP_OK);
    assert_int_equal(hlo_text_check(m, &f->err), XP_INTERNAL);
    assert_string_equal(f->err.text, "No HLO module found in the HLO proto");
    add_instr(&f->k, 1, "a", "add", DIMS(1), OPS(9, 9));
    end_comp(&f->k, 10, "main", 1);
    assert_int_equal(hlo_text_check(decoded(f, 10), &f->err), XP_INTERNAL);
    assert_non_null(strstr(f->err.text, "2 references"));
}

static void names_become_those_that_xla_would_give(void **state)
{
    struct fixture *f = *state;
    hlo_text_name(&f->out, XP_SPAN_LIT("1a b/c.d-e"));
    assert_text(f, "_a_b_c.d-e");
    f->out.n = 0;
    hlo_text_name(&f->out, XP_SPAN_LIT("token"));
    hlo_text_name(&f->out, XP_SPAN_LIT("tuple"));
    assert_text(f, "token_tuple");
}

static void shapes_print_layouts_tiles_and_spaces(void **state)
{
    struct fixture *f = *state;
    struct xp_buf shape, layout, tile;
    xp_buf_init(&shape, 4096);
    xp_buf_init(&layout, 4096);
    xp_buf_init(&tile, 4096);
    xp_pb_put_u64(&shape, 2, HLO_TYPE_BF16);
    xp_pb_put_bytes(&shape, 3, XP_SPAN_LIT("\x20\x10"));
    xp_pb_put_bytes(&layout, 1, XP_SPAN_LIT("\x01\x00"));
    xp_pb_put_u64(&tile, 1, 8);
    xp_pb_put_u64(&tile, 1, 128);
    put_message(&layout, 6, &tile);
    xp_pb_put_u64(&tile, 1, 2);
    xp_pb_put_u64(&tile, 1, 1);
    put_message(&layout, 6, &tile);
    xp_pb_put_u64(&layout, 8, 1);
    put_message(&shape, 5, &layout);
    put_text(&f->k.instr, HLO_F_NAME, "x");
    put_text(&f->k.instr, HLO_F_OPCODE, "parameter");
    put_message(&f->k.instr, HLO_F_SHAPE, &shape);
    end_instr(&f->k);
    end_comp(&f->k, 10, "main", 0);
    assert_instr(f, decoded(f, 10), 0, "x = bf16[32,16]{1,0:T(8,128)(2,1)S(1)} parameter(0)");
    xp_buf_fini(&shape);
    xp_buf_fini(&layout);
    xp_buf_fini(&tile);
}

static void tuples_print_nested_and_numbered(void **state)
{
    struct fixture *f = *state;
    struct xp_buf inner, outer;
    xp_buf_init(&inner, 4096);
    xp_buf_init(&outer, 4096);
    xp_pb_put_u64(&outer, 2, HLO_TYPE_TUPLE);
    put_array(&outer, 4, HLO_TYPE_S32, NO_DIMS);
    xp_pb_put_u64(&inner, 2, HLO_TYPE_TUPLE);
    put_message(&outer, 4, &inner); /* () */
    xp_pb_put_u64(&inner, 2, HLO_TYPE_TUPLE);
    put_array(&inner, 4, HLO_TYPE_PRED, DIMS(2));
    put_array(&inner, 4, HLO_TYPE_TOKEN, NO_DIMS);
    put_message(&outer, 4, &inner);
    for (int i = 0; i < 3; i++)
        put_array(&outer, 4, HLO_TYPE_U8, DIMS(1, 2));
    put_text(&f->k.instr, HLO_F_NAME, "t");
    put_text(&f->k.instr, HLO_F_OPCODE, "tuple");
    put_message(&f->k.instr, HLO_F_SHAPE, &outer);
    end_instr(&f->k);
    end_comp(&f->k, 10, "main", 0);
    struct hlo_module *m = decoded(f, 10);
    assert_instr(f, m, 0,
                 "t = (s32[], (), (pred[2]{0}, token[]), u8[1,2]{1,0}, u8[1,2]{1,0}, "
                 "/*index=5*/u8[1,2]{1,0}) tuple()");
    assert_int_equal(hlo_shape_elements(m, m->instrs[0].shape), 1 + 2 + 1 + 3 * 2);
    assert_int_equal(hlo_subshape(m, m->instrs[0].shape, (const int64_t[]){2, 1}, 2),
                     m->shapes[m->shapes[m->instrs[0].shape].children.at + 2].children.at + 1);
    assert_int_equal(hlo_subshape(m, m->instrs[0].shape, (const int64_t[]){6}, 1), HLO_NONE);
    xp_buf_fini(&inner);
    xp_buf_fini(&outer);
}

/* A constant of shape type[dims] whose LiteralProto has `bytes` in `field`. */
static void add_constant(struct fixture *f, int64_t id, uint32_t type, const int64_t *dims,
                         uint32_t field, struct xp_span bytes)
{
    struct xp_buf literal;
    xp_buf_init(&literal, 4096);
    put_array(&literal, 1, type, dims);
    xp_pb_put_bytes(&literal, field, bytes);
    put_text(&f->k.instr, HLO_F_NAME, "c");
    put_text(&f->k.instr, HLO_F_OPCODE, "constant");
    put_array(&f->k.instr, HLO_F_SHAPE, type, dims);
    xp_pb_put_u64(&f->k.instr, HLO_F_ID, (uint64_t)id);
    put_message(&f->k.instr, HLO_F_LITERAL, &literal);
    end_instr(&f->k);
    xp_buf_fini(&literal);
}

static void literals_print_as_xla_does(void **state)
{
    struct fixture *f = *state;
    add_constant(f, 0, HLO_TYPE_S32, DIMS(2, 3), 4, XP_SPAN_LIT("\1\2\3\4\5\6"));
    add_constant(f, 1, HLO_TYPE_PRED, NO_DIMS, 2, XP_SPAN_LIT("\1"));
    add_constant(f, 2, HLO_TYPE_PRED, DIMS(3), 2, XP_SPAN_LIT("\1\0\1"));
    add_constant(f, 3, HLO_TYPE_F32, DIMS(2), 8, XP_SPAN_LIT("\0\0\xc0\x3f\xcd\xcc\xcc\x3d"));
    add_constant(f, 4, HLO_TYPE_BF16, NO_DIMS, 13, XP_SPAN_LIT("\x80\x7f"));
    add_constant(f, 5, HLO_TYPE_S8, DIMS(1, 1), 15, XP_SPAN_LIT("\xff"));
    add_constant(f, 6, HLO_TYPE_F16, NO_DIMS, 11, XP_SPAN_LIT("\x01\x7c"));
    add_constant(f, 7, HLO_TYPE_S32, DIMS(2), 4, XP_SPAN_LIT("\1")); /* one too few */
    add_constant(f, 8, HLO_TYPE_S32, DIMS(2, 0), 4, XP_SPAN_LIT(""));
    end_comp(&f->k, 10, "main", 1);
    struct hlo_module *m = decoded(f, 10);
    assert_instr(f, m, 0, "c = s32[2,3]{1,0} constant({ { 1, 2, 3 }, { 4, 5, 6 } })");
    assert_instr(f, m, 1, "c = pred[] constant(true)");
    assert_instr(f, m, 2, "c = pred[3]{0} constant({1, 0, 1})");
    assert_instr(f, m, 3, "c = f32[2]{0} constant({1.5, 0.1})");
    assert_instr(f, m, 4, "c = bf16[] constant(inf)");
    assert_instr(f, m, 5, "c = s8[1,1]{1,0} constant({ {-1} })");
    assert_instr(f, m, 6, "c = f16[] constant(nan(0x001))");
    assert_instr(f, m, 7, "c = s32[2]{0} constant({...})");
    assert_instr(f, m, 8, "c = s32[2,0]{1,0} constant({ {}, {} })");
}

static void literals_follow_their_layout(void **state)
{
    struct fixture *f = *state;
    struct xp_buf literal, shape, layout;
    xp_buf_init(&literal, 4096);
    xp_buf_init(&shape, 4096);
    xp_buf_init(&layout, 4096);
    xp_pb_put_u64(&shape, 2, HLO_TYPE_U8);
    xp_pb_put_u64(&shape, 3, 2);
    xp_pb_put_u64(&shape, 3, 3);
    xp_pb_put_bytes(&layout, 1, XP_SPAN_LIT("\x00\x01")); /* columns first */
    put_message(&shape, 5, &layout);
    put_message(&literal, 1, &shape);
    xp_pb_put_bytes(&literal, 3, XP_SPAN_LIT("\1\4\2\5\3\6"));
    begin_instr(&f->k, 1, "c", "constant", DIMS(2, 3), NO_OPS);
    put_message(&f->k.instr, HLO_F_LITERAL, &literal);
    end_instr(&f->k);
    end_comp(&f->k, 10, "main", 1);
    assert_instr(f, decoded(f, 10), 0, "c = f32[2,3]{1,0} constant({ { 1, 2, 3 }, { 4, 5, 6 } })");
    xp_buf_fini(&literal);
    xp_buf_fini(&shape);
    xp_buf_fini(&layout);
}

static void a_literal_cannot_ask_for_more_than_its_bytes(void **state)
{
    struct fixture *f = *state;
    add_constant(f, 1, HLO_TYPE_S32, DIMS(1 << 30, 1 << 30, 1 << 30), 4, XP_SPAN_LIT("\1"));
    end_comp(&f->k, 10, "main", 1);
    struct hlo_module *m = decoded(f, 10);
    struct hlo_text t = printer(f, m);
    uint64_t before = xp_arena_bytes(f->a);

    hlo_text_instr(&t, &m->instrs[0]);
    assert_has(f, "constant({...})");
    assert_true(xp_arena_bytes(f->a) - before < (1 << 20));
}

static void attributes_print_by_opcode(void **state)
{
    struct fixture *f = *state;
    struct xp_buf x, y;
    xp_buf_init(&x, 4096);
    xp_buf_init(&y, 4096);
    add_parameter(&f->k, 1, "p", 0, DIMS(4));
    begin_instr(&f->k, 2, "dot", "dot", DIMS(4), OPS(1, 1));
    xp_pb_put_u64(&x, 1, 1);
    xp_pb_put_u64(&x, 2, 0);
    xp_pb_put_u64(&x, 3, 0);
    xp_pb_put_u64(&x, 4, 0);
    put_message(&f->k.instr, HLO_F_DOT_DIMENSION_NUMBERS, &x);
    xp_pb_put_bytes(&x, 1, XP_SPAN_LIT("\2\0"));
    put_message(&f->k.instr, HLO_F_PRECISION_CONFIG, &x);
    end_instr(&f->k);
    begin_instr(&f->k, 3, "ar", "all-reduce", DIMS(4), OPS(1));
    xp_pb_put_u64(&f->k.instr, HLO_F_CHANNEL_ID, 7);
    xp_pb_put_bytes(&x, 1, XP_SPAN_LIT("\0\1"));
    put_message(&f->k.instr, HLO_F_REPLICA_GROUPS, &x);
    xp_pb_put_bytes(&x, 1, XP_SPAN_LIT("\2\3"));
    put_message(&f->k.instr, HLO_F_REPLICA_GROUPS, &x);
    end_instr(&f->k);
    begin_instr(&f->k, 4, "cc", "custom-call", DIMS(4), OPS(1));
    put_text(&f->k.instr, HLO_F_CUSTOM_CALL_TARGET, "a\"b\n");
    xp_pb_put_u64(&f->k.instr, HLO_F_CUSTOM_CALL_API_VERSION, 1);
    xp_pb_put_u64(&f->k.instr, HLO_F_CONTROL_PREDECESSOR_IDS, 3);
    put_text(&f->k.instr, HLO_F_BACKEND_CONFIG, "{\"k\":{}}");
    end_instr(&f->k);
    begin_instr(&f->k, 5, "pad", "pad", DIMS(9), OPS(1, 1));
    xp_pb_put_u64(&y, 1, 2);
    xp_pb_put_u64(&y, 2, 3);
    put_message(&x, 1, &y);
    put_message(&f->k.instr, HLO_F_PADDING_CONFIG, &x);
    put_text(&f->k.instr, HLO_F_BACKEND_CONFIG, "x{");
    end_instr(&f->k);
    end_comp(&f->k, 10, "main", 5);
    struct hlo_module *m = decoded(f, 10);
    assert_instr(f, m, 1,
                 "dot = f32[4]{0} dot(p, p), lhs_batch_dims={0}, lhs_contracting_dims={1}, "
                 "rhs_batch_dims={0}, rhs_contracting_dims={0}, "
                 "operand_precision={highest,default}");
    assert_instr(f, m, 2,
                 "ar = f32[4]{0} all-reduce(p), channel_id=7, replica_groups={{0,1},{2,3}}");
    assert_instr(f, m, 3,
                 "cc = f32[4]{0} custom-call(p), custom_call_target=\"a\\\"b\\n\", "
                 "backend_config={\"k\":{}}");
    assert_instr(f, m, 4, "pad = f32[9]{0} pad(p, p), padding=2_3, backend_config=\"x{\"");
    struct hlo_text t = printer(f, m);
    t.opt.controls = true;
    hlo_text_instr(&t, &m->instrs[3]);
    assert_has(f, "control-predecessors={ar}");
    xp_buf_fini(&x);
    xp_buf_fini(&y);
}

static void graph_draws_neighbours_and_marks_the_middle(void **state)
{
    struct fixture *f = *state;
    add_parameter(&f->k, 1, "p<0>", 0, DIMS(8192));
    add_instr(&f->k, 2, "a", "negate", DIMS(8192), OPS(1));
    add_instr(&f->k, 3, "b", "abs", DIMS(8192), OPS(2));
    add_instr(&f->k, 4, "c", "sqrt", DIMS(8192), OPS(3));
    end_comp(&f->k, 10, "main", 4);
    struct hlo_module *m = decoded(f, 10);
    struct hlo_dot_options opt = {true, true};
    struct hlo_dot_out to = {.scratch = f->a, .out = &f->out};

    assert_int_equal(hlo_dot_around(m, 1, 1, &opt, &to, &f->err), XP_OK);
    assert_has(f, "label = <<b>Neighborhood of 1 nodes around a<br/>Computation main<br/>ENTRY "
                  "computation</b>>;\n");
    assert_has(f, "n1 [label=<<b>a</b><br/>negate<br/>f32[8192]>, shape=diamond,");
    assert_has(f, "n0 [label=<<b>Parameter 0</b>");
    assert_has(f, "n0 -> n1 [arrowhead=normal tooltip=\"p_0_ -> a\" ];\n");
    assert_has(f, "n2 [label=<<b>b</b><br/>abs");
    assert_null(memmem(f->out.p, f->out.n, "n3 [", 4));
    f->out.n = 0;
    assert_int_equal(hlo_dot_around(m, 1, 2, &opt, &to, &f->err), XP_OK);
    assert_has(f, "n3 [");
    assert_has(f, "n3 -> cluster_0 [tooltip=\" \"];\n");
}

/* What stands between quotation marks or in a label of a graph cannot end it. */
static void names_in_a_graph_stay_text(void **state)
{
    struct fixture *f = *state;
    struct xp_buf meta;
    add_parameter(&f->k, 1, "p", 0, DIMS(4));
    begin_instr(&f->k, 2, "a", "negate", DIMS(4), OPS(1));
    xp_buf_init(&meta, 4096);
    put_text(&meta, 2, "op\\");
    put_text(&meta, 3, "<module><script><a b=c>\" URL=\"javascript:1\\");
    xp_pb_put_u64(&meta, 4, 7);
    put_message(&f->k.instr, HLO_F_METADATA, &meta);
    xp_buf_fini(&meta);
    put_text(&f->k.instr, HLO_F_BACKEND_CONFIG, "{\"a\":\">, URL=<script>\"}");
    end_instr(&f->k);
    end_comp(&f->k, 10, "main", 2);
    struct hlo_module *m = decoded(f, 10);
    struct hlo_dot_options opt = {true, true};
    struct hlo_dot_out to = {.scratch = f->a, .out = &f->out};

    assert_int_equal(hlo_dot_comp(m, 0, &opt, &to, &f->err), XP_OK);
    assert_has(f, "tooltip=\"op\\\\\nsource: <module>&lt;script&gt;&lt;a b=c&gt;&quot; "
                  "URL=&quot;javascript:1\\\\:7\"");
    assert_has(f, "backend_config=\"{\"a\":\"&gt;, URL=&lt;script&gt;\"}\"");
    assert_null(memmem(f->out.p, f->out.n, "<script", 7));

    struct xp_buf page;
    xp_buf_init(&page, 4096);
    dot_page_text(&page, XP_SPAN_LIT("\\x22\\u{zz `${1}</script>"));
    assert_buf_is(&page, "\\\\x22\\\\u{zz \\x60\\x24{1}\\x3c/script>");
    xp_buf_fini(&page);
}

/* A collective's start, a fusion that runs meanwhile, the collective's end: its state is a tuple's
 * elements. Of the fusion's two parameters the first is used by an op, the second only by the root.
 */
static struct hlo_module *collective(struct fixture *f, const char *meanwhile)
{
    add_parameter(&f->k, 1, "s", 0, DIMS(8));
    begin_instr(&f->k, 2, "start.cc", "custom-call", DIMS(8), OPS(1));
    put_text(&f->k.instr, HLO_F_CUSTOM_CALL_TARGET, "AsyncCollectiveStart");
    end_instr(&f->k);
    end_comp(&f->k, 10, "fused_start", 2);
    add_parameter(&f->k, 3, "x", 0, DIMS(8));
    add_parameter(&f->k, 4, "y", 1, DIMS(8));
    add_instr(&f->k, 5, "op", "negate", DIMS(8), OPS(3));
    add_instr(&f->k, 6, "root", "tuple", DIMS(8), OPS(5, 3, 4));
    end_comp(&f->k, 20, meanwhile, 6);
    add_parameter(&f->k, 7, "z", 0, DIMS(8));
    begin_instr(&f->k, 8, "done.cc", "custom-call", DIMS(8), OPS(7));
    put_text(&f->k.instr, HLO_F_CUSTOM_CALL_TARGET, "AsyncCollectiveDone");
    end_instr(&f->k);
    end_comp(&f->k, 30, "fused_done", 8);
    add_parameter(&f->k, 11, "in", 0, DIMS(8));
    static const char *const names[] = {"start", "between", "done"};
    for (int i = 0; i < 3; i++) {
        int64_t id = 20 + 10 * i, of[] = {i ? id - 8 : 11, i == 1 ? id - 7 : -1, -1};
        begin_instr(&f->k, id, names[i], "fusion", DIMS(8), of);
        put_text(&f->k.instr, HLO_F_FUSION_KIND, "kCustom");
        xp_pb_put_u64(&f->k.instr, HLO_F_CALLED_COMPUTATION_IDS, (uint64_t)(10 + 10 * i));
        end_instr(&f->k);
        for (int k = 0; i < 2 && k < 2; k++)
            add_instr(&f->k, id + 2 + k, k ? "g1" : "g0", "get-tuple-element", DIMS(8), OPS(id));
    }
    end_comp(&f->k, 40, "main", 40);
    return decoded(f, 40);
}

static size_t parameters_around(struct fixture *f, const struct hlo_module *m, uint32_t instr)
{
    struct hlo_dot_options opt = {true, true};
    struct hlo_dot_out to = {.scratch = f->a, .out = &f->out};
    size_t n = 0;
    f->out.n = 0;
    assert_int_equal(hlo_dot_around(m, instr, 0, &opt, &to, &f->err), XP_OK);
    xp_buf_byte(&f->out, 0);
    for (const char *at = (const char *)f->out.p; (at = strstr(at, "<b>Parameter ")); at++)
        n++;
    return n;
}

static void neighbours_leave_out_what_a_collective_passes_on(void **state)
{
    struct fixture *f = *state;
    const struct hlo_module *m = collective(f, "async_collective_fusion.1");
    enum { BETWEEN = 12, DONE = 15, Y = 3 };
    struct hlo_dot_options opt = {true, true};
    struct hlo_dot_out to = {.scratch = f->a, .out = &f->out};
    assert_true(xp_span_eq(m->instrs[BETWEEN].name, XP_SPAN_LIT("between")));
    assert_true(xp_span_eq(m->instrs[DONE].name, XP_SPAN_LIT("done")));
    assert_int_equal(parameters_around(f, m, BETWEEN), 1); /* x, which an op uses */
    assert_int_equal(parameters_around(f, m, DONE), 0);
    assert_int_equal(parameters_around(f, m, Y), 1); /* what was asked for is there */
    f->out.n = 0;
    assert_int_equal(hlo_dot_comp(m, 1, &opt, &to, &f->err), XP_OK);
    assert_has(f, "<b>Parameter 1</b>");
}

static void neighbours_of_other_fusions_have_all_parameters(void **state)
{
    struct fixture *f = *state;
    const struct hlo_module *m = collective(f, "fused_computation");
    assert_int_equal(parameters_around(f, m, 12), 2);
    assert_int_equal(parameters_around(f, m, 15), 1);
}

static void pbtxt_prints_fields_by_number_and_leaves_out_the_unknown(void **state)
{
    struct fixture *f = *state;
    struct xp_buf module, proto, entry;
    xp_buf_init(&module, 4096);
    xp_buf_init(&proto, 4096);
    xp_buf_init(&entry, 4096);
    xp_pb_put_u64(&module, 999, 5);
    xp_pb_put_u64(&module, 5, (uint64_t)-3);
    put_text(&module, 1, "first");
    put_text(&module, 1, "a\x01\xc3");
    xp_pb_put_u64(&module, 11, 0); /* false: not shown */
    xp_pb_put_u64(&entry, 2, 1);
    put_message(&module, 10, &entry);
    put_message(&proto, 1, &module);
    assert_int_equal(hlo_pbtxt(xp_buf_all(&proto), &f->out, NULL, NULL, &f->err), XP_OK);
    assert_text(f, "hlo_module {\n"
                   "  name: \"a\\001\\303\"\n"
                   "  id: -3\n"
                   "  cross_program_prefetches {\n"
                   "    index: 1\n"
                   "  }\n"
                   "}\n");
    proto.n -= 1;
    assert_int_equal(hlo_pbtxt(xp_buf_all(&proto), &f->out, NULL, NULL, &f->err), XP_CORRUPT);
    xp_buf_fini(&module);
    xp_buf_fini(&proto);
    xp_buf_fini(&entry);
}

static void dicts_are_told_from_other_text(void **state)
{
    (void)state;
    assert_true(hlo_lexes_as_dict(XP_SPAN_LIT("{}")));
    assert_true(hlo_lexes_as_dict(XP_SPAN_LIT("{\"a}\\\"\":{\"b\":1}}")));
    assert_false(hlo_lexes_as_dict(XP_SPAN_LIT("{}{}")));
    assert_false(hlo_lexes_as_dict(XP_SPAN_LIT("{\"a}")));
    assert_false(hlo_lexes_as_dict(XP_SPAN_LIT("[]")));
    assert_false(hlo_lexes_as_dict((struct xp_span){0}));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(module_prints_callees_first_and_operands_first),
        TEST(module_ends_when_operands_or_calls_form_a_ring),
        TEST(graph_ends_when_a_fusion_fuses_itself),
        TEST(names_in_a_graph_stay_text),
        TEST(check_says_what_cannot_be_loaded),
        TEST(names_become_those_that_xla_would_give),
        TEST(shapes_print_layouts_tiles_and_spaces),
        TEST(tuples_print_nested_and_numbered),
        TEST(literals_print_as_xla_does),
        TEST(literals_follow_their_layout),
        TEST(a_literal_cannot_ask_for_more_than_its_bytes),
        TEST(attributes_print_by_opcode),
        TEST(graph_draws_neighbours_and_marks_the_middle),
        TEST(neighbours_leave_out_what_a_collective_passes_on),
        TEST(neighbours_of_other_fusions_have_all_parameters),
        TEST(pbtxt_prints_fields_by_number_and_leaves_out_the_unknown),
        TEST(dicts_are_told_from_other_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
