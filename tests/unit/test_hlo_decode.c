#include "shard/hlo/hlo.h"
#include "tests/unit/hlo_make.h"
#include "tests/unit/unit.h"

struct fixture {
    struct xp_arena *a;
    struct hlo_make k;
    struct xp_error err;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->a = xp_arena_new(NULL);
    hlo_make_init(&f->k);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    hlo_make_fini(&f->k);
    xp_arena_free(f->a);
    free(f);
    return 0;
}

static struct hlo_module *decoded(struct fixture *f, struct xp_span bytes)
{
    struct hlo_module *m = NULL;
    if (hlo_decode(bytes, f->a, &m, &f->err) != XP_OK)
        fail_msg("%s", f->err.text);
    return m;
}

/* x -> add(x, x) -> exp, add fused by nobody. */
static struct xp_span simple(struct fixture *f)
{
    add_parameter(&f->k, 10, "x", 0, DIMS(8, 128));
    add_instr(&f->k, 11, "sum", "add", DIMS(8, 128), OPS(10, 10));
    add_instr(&f->k, 12, "e", "exponential", DIMS(8, 128), OPS(11));
    end_comp(&f->k, 5, "main", 12);
    return end_module(&f->k, "simple", 5, f->a);
}

static void decode_resolves_operands_users_and_root(void **state)
{
    struct hlo_module *m = decoded(*state, simple(*state));

    assert_int_equal(m->ncomps, 1);
    assert_int_equal(m->ninstrs, 3);
    assert_int_equal(m->entry, 0);
    assert_int_equal(m->comps[0].root, 2);
    assert_int_equal(m->dangling, 0);
    const struct hlo_instr *sum = &m->instrs[1];
    assert_int_equal(sum->opcode, HLO_OP_ADD);
    assert_int_equal(sum->operands.n, 2);
    assert_ptr_equal(hlo_operand(m, sum, 1), &m->instrs[0]);
    assert_null(hlo_operand(m, sum, 2));
    /* An operand that is used twice has one user. */
    assert_int_equal(m->instrs[0].users.n, 1);
    assert_int_equal(m->refs[m->instrs[0].users.at], 1);
    assert_int_equal(m->instrs[2].users.n, 0);
}

static void decode_finds_by_id_and_by_name(void **state)
{
    struct hlo_module *m = decoded(*state, simple(*state));

    assert_int_equal(hlo_instr_by_id(m, 11), 1);
    assert_int_equal(hlo_instr_by_id(m, 13), HLO_NONE);
    assert_int_equal(hlo_instr_by_id(m, -1), HLO_NONE);
    assert_int_equal(hlo_instr_by_name(m, XP_SPAN_LIT("e")), 2);
    assert_int_equal(hlo_instr_by_name(m, XP_SPAN_LIT("E")), HLO_NONE);
    assert_int_equal(hlo_comp_by_id(m, 5), 0);
    assert_int_equal(hlo_comp_by_name(m, XP_SPAN_LIT("main")), 0);
}

static void decode_keeps_ids_of_a_computation_apart_from_others(void **state)
{
    struct fixture *f = *state;
    /* Both count from 1, and not upwards. */
    add_instr(&f->k, 2, "b", "negate", DIMS(1), OPS(1));
    add_parameter(&f->k, 1, "a", 0, DIMS(1));
    end_comp(&f->k, 7, "first", 2);
    add_parameter(&f->k, 1, "c", 0, DIMS(1));
    add_instr(&f->k, 2, "d", "negate", DIMS(1), OPS(1));
    end_comp(&f->k, 8, "second", 2);
    struct hlo_module *m = decoded(f, end_module(&f->k, "m", 8, f->a));

    assert_true(xp_span_eq(hlo_operand(m, &m->instrs[0], 0)->name, XP_SPAN_LIT("a")));
    assert_true(xp_span_eq(hlo_operand(m, &m->instrs[3], 0)->name, XP_SPAN_LIT("c")));
    assert_int_equal(m->comps[0].root, 0);
    assert_int_equal(m->comps[1].root, 3);
    assert_int_equal(hlo_instr_by_id(m, 1), 1);
}

static void decode_counts_ids_that_name_nothing(void **state)
{
    struct fixture *f = *state;
    add_instr(&f->k, 1, "a", "add", DIMS(1), OPS(77, 1));
    end_comp(&f->k, 3, "c", 99);
    struct hlo_module *m = decoded(f, end_module(&f->k, "m", 4, f->a));

    assert_int_equal(m->dangling, 2);
    assert_null(hlo_operand(m, &m->instrs[0], 0));
    assert_int_equal(m->comps[0].root, HLO_NONE);
    assert_int_equal(m->entry, HLO_NONE);
    assert_int_equal(m->instrs[0].users.n, 1); /* itself */
}

static void decode_links_fusions_and_what_they_fuse(void **state)
{
    struct fixture *f = *state;
    add_parameter(&f->k, 1, "p", 0, DIMS(4));
    add_instr(&f->k, 2, "n", "negate", DIMS(4), OPS(1));
    end_comp(&f->k, 20, "fused", 2);
    add_parameter(&f->k, 3, "x", 0, DIMS(4));
    begin_instr(&f->k, 4, "fusion", "fusion", DIMS(4), OPS(3));
    xp_pb_put_u64(&f->k.instr, HLO_F_CALLED_COMPUTATION_IDS, 20);
    end_instr(&f->k);
    end_comp(&f->k, 21, "main", 4);
    struct hlo_module *m = decoded(f, end_module(&f->k, "m", 21, f->a));

    assert_int_equal(m->comps[0].fused_by, 3);
    assert_int_equal(m->comps[1].fused_by, HLO_NONE);
    assert_int_equal(m->refs[m->instrs[3].called.at], 0);
}

static void decode_reads_a_list_packed_and_in_pieces(void **state)
{
    struct fixture *f = *state;
    add_parameter(&f->k, 1, "p", 0, DIMS(4));
    put_text(&f->k.instr, HLO_F_NAME, "t");
    put_text(&f->k.instr, HLO_F_OPCODE, "tuple");
    xp_pb_put_u64(&f->k.instr, HLO_F_ID, 2);
    xp_pb_put_bytes(&f->k.instr, HLO_F_OPERAND_IDS, XP_SPAN_LIT("\x01\x01"));
    xp_pb_put_u64(&f->k.instr, HLO_F_CONTROL_PREDECESSOR_IDS, 1);
    xp_pb_put_u64(&f->k.instr, HLO_F_OPERAND_IDS, 1);
    end_instr(&f->k);
    end_comp(&f->k, 3, "c", 2);
    struct hlo_module *m = decoded(f, end_module(&f->k, "m", 3, f->a));

    assert_int_equal(m->instrs[1].operands.n, 3);
    assert_int_equal(m->instrs[1].controls.n, 1);
    for (uint32_t k = 0; k < 3; k++)
        assert_ptr_equal(hlo_operand(m, &m->instrs[1], k), &m->instrs[0]);
    assert_int_equal(m->dangling, 0);
}

static void decode_keeps_unknown_opcodes_and_types(void **state)
{
    struct fixture *f = *state;
    put_text(&f->k.instr, HLO_F_OPCODE, "frobnicate");
    put_array(&f->k.instr, HLO_F_SHAPE, 4711, DIMS(3));
    end_instr(&f->k);
    end_comp(&f->k, 3, "c", 0);
    struct hlo_module *m = decoded(f, end_module(&f->k, "m", 3, f->a));

    assert_int_equal(m->instrs[0].opcode, HLO_OP_UNKNOWN);
    assert_true(xp_span_eq(m->instrs[0].opcode_text, XP_SPAN_LIT("frobnicate")));
    assert_string_equal(hlo_type_text(m->shapes[m->instrs[0].shape].type), "unknown");
    assert_int_equal(hlo_shape_bytes(m, m->instrs[0].shape, 8), 0);
}

static void decode_takes_a_hundred_thousand_operands(void **state)
{
    enum { N = 100000 };
    struct fixture *f = *state;
    add_parameter(&f->k, 1, "p", 0, DIMS(4));
    put_text(&f->k.instr, HLO_F_OPCODE, "tuple");
    xp_pb_put_u64(&f->k.instr, HLO_F_ID, 2);
    for (int i = 0; i < N; i++)
        xp_pb_put_u64(&f->k.instr, HLO_F_OPERAND_IDS, 1);
    end_instr(&f->k);
    end_comp(&f->k, 3, "c", 2);
    struct hlo_module *m = decoded(f, end_module(&f->k, "m", 3, f->a));

    assert_int_equal(m->instrs[1].operands.n, N);
    assert_int_equal(m->instrs[0].users.n, 1);
}

static void decode_refuses_tuples_that_nest_too_deep(void **state)
{
    struct fixture *f = *state;
    struct xp_buf shape, next;
    struct hlo_module *m;

    xp_buf_init(&shape, 1 << 20);
    xp_buf_init(&next, 1 << 20);
    /* Inside out: a tuple of a tuple of ... */
    for (int i = 0; i < HLO_DEPTH_MAX + 2; i++) {
        xp_pb_put_u64(&next, 2, HLO_TYPE_TUPLE);
        if (i)
            xp_pb_put_bytes(&next, 4, xp_buf_all(&shape));
        shape.n = 0;
        xp_buf_span(&shape, xp_buf_all(&next));
        next.n = 0;
    }
    put_message(&f->k.instr, HLO_F_SHAPE, &shape);
    end_instr(&f->k);
    end_comp(&f->k, 3, "c", 0);
    xp_buf_fini(&shape);
    xp_buf_fini(&next);
    assert_int_equal(hlo_decode(end_module(&f->k, "m", 3, f->a), f->a, &m, &f->err), XP_CORRUPT);
    assert_null(m);
}

static void decode_refuses_every_cut_or_takes_it_whole(void **state)
{
    struct fixture *f = *state;
    struct xp_span whole = simple(f);
    struct hlo_module *m;
    int refused = 0;

    for (size_t n = 0; n < whole.n; n++) {
        uint8_t *copy = malloc(n + 1); /* so that a sanitizer sees a read past the end */
        memcpy(copy, whole.p, n);
        enum xp_status status = hlo_decode(xp_span_of(copy, n), f->a, &m, &f->err);
        assert_true(status == XP_OK || status == XP_CORRUPT);
        if (status != XP_OK) {
            assert_true(f->err.offset <= n);
            refused++;
        }
        free(copy);
    }
    assert_true(refused > 100);
}

static void decode_says_when_the_budget_is_spent(void **state)
{
    struct fixture *f = *state;
    struct xp_span whole = simple(f);
    struct xp_budget budget;
    struct hlo_module *m;

    xp_budget_init(&budget, 1);
    struct xp_arena *a = xp_arena_new(&budget);
    assert_int_equal(hlo_decode(whole, a, &m, &f->err), XP_BUSY);
    xp_arena_free(a);
}

static void decode_of_nothing_is_a_module_that_is_not_there(void **state)
{
    struct hlo_module *m = decoded(*state, (struct xp_span){0});
    assert_false(m->has_module);
    assert_int_equal(m->ninstrs, 0);
    assert_int_equal(m->entry, HLO_NONE);
    assert_int_equal(hlo_instr_by_id(m, 0), HLO_NONE);
}

static void decode_reads_the_buffer_assignment(void **state)
{
    struct fixture *f = *state;
    struct xp_buf b, c;
    xp_buf_init(&b, 4096);
    xp_buf_init(&c, 4096);
    xp_pb_put_u64(&c, 4, 11); /* defined by sum, in part {2,0} of its shape */
    xp_pb_put_u64(&c, 3, 2);
    xp_pb_put_u64(&c, 3, 0);
    xp_pb_put_u64(&b, 1, 40);
    xp_pb_put_u64(&b, 2, 4096);
    put_message(&b, 3, &c);
    put_message(&f->k.buffers, 1, &b);
    xp_pb_put_u64(&c, 1, 40);
    xp_pb_put_u64(&c, 2, 128);
    xp_pb_put_u64(&b, 1, 3);
    put_message(&b, 9, &c);
    xp_pb_put_u64(&c, 1, 41);
    put_message(&b, 9, &c);
    put_message(&f->k.buffers, 3, &b);
    struct hlo_module *m = decoded(f, simple(f));
    xp_buf_fini(&b);
    xp_buf_fini(&c);

    assert_int_equal(m->nbuffers, 1);
    assert_int_equal(m->buffers[0].instr, 1);
    assert_int_equal(m->buffers[0].shape_index.n, 2);
    assert_int_equal(m->nallocations, 1);
    assert_int_equal(m->allocations[0].assigned.n, 2);
    assert_int_equal(m->assigned[0].buffer, 0);
    assert_int_equal(m->assigned[0].offset, 128);
    assert_int_equal(m->assigned[1].buffer, HLO_NONE);
    assert_int_equal(m->dangling, 1);
}

static void shapes_have_sizes_that_do_not_wrap(void **state)
{
    struct fixture *f = *state;
    add_parameter(&f->k, 1, "p", 0, DIMS(INT64_MAX / 2, 16));
    add_parameter(&f->k, 2, "q", 1, DIMS(3, 0, 5));
    add_parameter(&f->k, 3, "r", 2, NO_DIMS);
    end_comp(&f->k, 3, "c", 1);
    struct hlo_module *m = decoded(f, end_module(&f->k, "m", 3, f->a));

    assert_true(hlo_shape_elements(m, m->instrs[0].shape) == INT64_MAX);
    assert_true(hlo_shape_bytes(m, m->instrs[0].shape, 0) == INT64_MAX);
    assert_int_equal(hlo_shape_elements(m, m->instrs[1].shape), 0);
    assert_int_equal(hlo_shape_bytes(m, m->instrs[2].shape, 0), 4);
    assert_true(hlo_shape_is_scalar_like(m, m->instrs[2].shape));
    assert_false(hlo_shape_is_scalar_like(m, m->instrs[1].shape));
    assert_int_equal(hlo_shape_elements(m, 4711), 0);
}

static void opcodes_are_found_by_their_text(void **state)
{
    (void)state;
    for (int op = 1; op < HLO_OP_COUNT; op++)
        assert_int_equal(hlo_opcode_of(xp_span_str(hlo_opcode_text((enum hlo_opcode)op))), op);
    assert_int_equal(hlo_opcode_of(XP_SPAN_LIT("")), HLO_OP_UNKNOWN);
    assert_int_equal(hlo_opcode_of(XP_SPAN_LIT("zzz")), HLO_OP_UNKNOWN);
}

static void stacks_end_even_when_frames_form_a_ring(void **state)
{
    struct fixture *f = *state;
    struct xp_buf index, x, out;
    xp_buf_init(&index, 4096);
    xp_buf_init(&x, 4096);
    put_text(&index, 1, "a.py");
    xp_pb_put_u64(&x, 1, 1);
    xp_pb_put_u64(&x, 3, 7);
    xp_pb_put_u64(&x, 4, 2);
    put_message(&index, 3, &x);
    xp_pb_put_u64(&x, 1, 1);
    xp_pb_put_u64(&x, 2, 1); /* its own parent */
    put_message(&index, 4, &x);
    xp_pb_put_u64(&x, 1, 99); /* a place that is not there */
    put_message(&index, 4, &x);
    put_message(&f->k.module, 17, &index);
    struct hlo_module *m = decoded(f, simple(f));
    xp_buf_fini(&index);
    xp_buf_fini(&x);

    xp_buf_init(&out, 1 << 20);
    hlo_stack_text(m, 1, &out);
    assert_true(xp_span_starts(xp_buf_all(&out), XP_SPAN_LIT("a.py:7:2\na.py:7:2\n")));
    assert_int_equal(out.n, HLO_STACK_MAX * 9 - 1);
    out.n = 0;
    hlo_stack_text(m, 2, &out);
    assert_true(xp_span_eq(xp_buf_all(&out), XP_SPAN_LIT(":-1:-1")));
    out.n = 0;
    hlo_stack_text(m, 3, &out);
    hlo_stack_text(m, -1, &out);
    assert_int_equal(out.n, 0);
    xp_buf_fini(&out);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(decode_resolves_operands_users_and_root),
        TEST(decode_finds_by_id_and_by_name),
        TEST(decode_keeps_ids_of_a_computation_apart_from_others),
        TEST(decode_counts_ids_that_name_nothing),
        TEST(decode_links_fusions_and_what_they_fuse),
        TEST(decode_reads_a_list_packed_and_in_pieces),
        TEST(decode_keeps_unknown_opcodes_and_types),
        TEST(decode_takes_a_hundred_thousand_operands),
        TEST(decode_refuses_tuples_that_nest_too_deep),
        TEST(decode_refuses_every_cut_or_takes_it_whole),
        TEST(decode_says_when_the_budget_is_spent),
        TEST(decode_of_nothing_is_a_module_that_is_not_there),
        TEST(decode_reads_the_buffer_assignment),
        TEST(shapes_have_sizes_that_do_not_wrap),
        TEST(opcodes_are_found_by_their_text),
        TEST(stacks_end_even_when_frames_form_a_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
