#include "shard/hlo/hlo_layout.h"
#include "tests/unit/hlo_make.h"
#include "tests/unit/unit.h"

struct fixture {
    struct xp_arena *a;
    struct hlo_make k;
    struct hlo_module *m;
    struct hlo_layouts l;
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

static const int64_t usual[] = {32, 64, -1}, row_major[] = {1, 0, -1}, column_major[] = {0, 1, -1},
                     wide[] = {8, 128, -1}, flat[] = {1024, -1};

/* 32 x 64 in row-major order, where nothing else is said. */
struct layout {
    uint32_t type; /* 0: f32 */
    const int64_t *dims, *minor, *tile;
    int64_t space;
};

static void put_shape(struct xp_buf *b, uint32_t field, struct layout x)
{
    struct xp_buf shape, layout, tile;
    xp_buf_init(&shape, 4096);
    xp_buf_init(&layout, 4096);
    xp_buf_init(&tile, 4096);
    x.dims = x.dims ? x.dims : usual;
    x.minor = x.minor ? x.minor : row_major;
    xp_pb_put_u64(&shape, 2, x.type ? x.type : HLO_TYPE_F32);
    for (const int64_t *d = x.dims; *d >= 0; d++)
        xp_pb_put_u64(&shape, 3, (uint64_t)*d);
    for (const int64_t *d = x.minor; *d >= 0; d++)
        xp_pb_put_u64(&layout, 1, (uint64_t)*d);
    for (const int64_t *d = x.tile; d && *d >= 0; d++)
        xp_pb_put_u64(&tile, 1, (uint64_t)*d);
    if (x.tile)
        put_message(&layout, 6, &tile);
    if (x.space)
        xp_pb_put_u64(&layout, 8, (uint64_t)x.space);
    put_message(&shape, 5, &layout);
    put_message(b, field, &shape);
    xp_buf_fini(&shape);
    xp_buf_fini(&layout);
    xp_buf_fini(&tile);
}

/* Its place in the module is the number of those before it. */
static void op(struct fixture *f, int64_t id, const char *opcode, struct layout x,
               const int64_t *operands)
{
    char name[32];
    snprintf(name, sizeof name, "%s.%d", opcode, (int)id);
    put_text(&f->k.instr, HLO_F_NAME, name);
    put_text(&f->k.instr, HLO_F_OPCODE, opcode);
    put_shape(&f->k.instr, HLO_F_SHAPE, x);
    xp_pb_put_u64(&f->k.instr, HLO_F_ID, (uint64_t)id);
    for (; *operands >= 0; operands++)
        xp_pb_put_u64(&f->k.instr, HLO_F_OPERAND_IDS, (uint64_t)*operands);
}

static void decode(struct fixture *f, int64_t entry)
{
    struct xp_error err = {0};
    struct xp_span bytes = end_module(&f->k, "m", entry, f->a);
    assert_int_equal(hlo_decode(bytes, f->a, &f->m, &err), XP_OK);
    assert_true(hlo_layouts_make(f->m, f->a, &f->l));
}

static struct hlo_relayout of(struct fixture *f, const char *name)
{
    uint32_t i = hlo_instr_by_name(f->m, xp_span_str(name));
    assert_true(i < f->m->ninstrs);
    return hlo_relayout_op(&f->l, &f->m->instrs[i]);
}

/* A parameter, and an op of it. */
static uint32_t change(struct fixture *f, const char *opcode, struct layout x, struct layout y)
{
    char name[32];
    op(f, 1, "parameter", x, NO_OPS);
    end_instr(&f->k);
    op(f, 2, opcode, y, OPS(1));
    if (strcmp(opcode, "transpose") == 0) {
        xp_pb_put_u64(&f->k.instr, HLO_F_DIMENSIONS, 1);
        xp_pb_put_u64(&f->k.instr, HLO_F_DIMENSIONS, 0);
    }
    end_instr(&f->k);
    end_comp(&f->k, 10, "main", 2);
    decode(f, 10);
    snprintf(name, sizeof name, "%s.2", opcode);
    return of(f, name).changes;
}

#define A(...) ((struct layout){__VA_ARGS__})

static void a_copy_to_another_order_tiles_or_memory_is_told_apart(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(change(f, "copy", A(0), A(0)), 0);
    assert_int_equal(change(f, "copy", A(0), A(.minor = column_major)), HLO_LAYOUT_ORDER);
    assert_int_equal(change(f, "copy", A(.tile = wide), A(.tile = flat)), HLO_LAYOUT_TILES);
    assert_int_equal(change(f, "copy", A(0), A(.space = 1)), HLO_LAYOUT_SPACE);
    assert_int_equal(change(f, "copy", A(.tile = wide, .space = 1), A(.minor = column_major)),
                     HLO_LAYOUT_ORDER | HLO_LAYOUT_TILES | HLO_LAYOUT_SPACE);
    assert_int_equal(change(f, "add", A(0), A(.minor = column_major)), HLO_LAYOUT_ORDER);
}

static void what_says_anew_how_bytes_are_read_changes_nothing(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(change(f, "bitcast", A(0), A(.minor = column_major)), 0);
    assert_int_equal(change(f, "copy-done", A(0), A(.space = 1)), 0);
    /* dimensions of one element may stand anywhere, unless there are tiles */
    assert_int_equal(
        change(f, "copy", A(.dims = DIMS(1, 64)), A(.dims = DIMS(1, 64), .minor = column_major)),
        0);
    assert_int_equal(change(f, "copy", A(.dims = DIMS(1, 64), .tile = wide),
                            A(.dims = DIMS(1, 64), .minor = column_major, .tile = wide)),
                     HLO_LAYOUT_ORDER);
}

static void a_transpose_moves_only_where_the_layout_does_not_follow_it(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(change(f, "transpose", A(0), A(.dims = DIMS(64, 32), .minor = column_major)),
                     0);
    assert_int_equal(change(f, "transpose", A(0), A(.dims = DIMS(64, 32))), HLO_LAYOUT_ORDER);
}

static void a_reshape_moves_where_its_tiles_hold_other_dimensions(void **state)
{
    struct fixture *f = *state;
    struct layout all = {.dims = DIMS(2048), .minor = DIMS(0)};
    assert_int_equal(change(f, "reshape", A(0), all), 0);
    assert_int_equal(change(f, "reshape", A(.tile = wide), A(.dims = DIMS(16, 128), .tile = wide)),
                     HLO_LAYOUT_DIMS);
    assert_int_equal(
        change(f, "reshape",
               (struct layout){.dims = DIMS(2, 32, 64), .minor = DIMS(2, 1, 0), .tile = wide},
               A(.dims = DIMS(32, 64), .tile = wide)),
        0);
}

static void what_computes_anew_is_other_data(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(change(f, "reduce", A(0), A(.dims = DIMS(64, 32), .minor = column_major)), 0);
}

static void of_other_types_only_the_first_tiles_are_compared(void **state)
{
    struct fixture *f = *state;
    struct layout half = A(.type = HLO_TYPE_BF16, .tile = wide);
    assert_int_equal(change(f, "convert", A(.tile = wide), half), 0);
    half.tile = flat;
    assert_int_equal(change(f, "convert", A(.tile = wide), half), HLO_LAYOUT_TILES);
}

/* fused: parameter 0 -> transpose; main: argument -> fusion, whose parameter has another layout */
static void a_fusion_says_what_it_does_inside_and_at_its_edge(void **state)
{
    struct fixture *f = *state;
    op(f, 1, "parameter", A(0), NO_OPS);
    end_instr(&f->k);
    op(f, 2, "copy", A(.minor = column_major), OPS(1));
    end_instr(&f->k);
    op(f, 3, "negate", A(0), OPS(2));
    end_instr(&f->k);
    end_comp(&f->k, 20, "fused", 3);
    op(f, 4, "parameter", A(.tile = wide), NO_OPS);
    end_instr(&f->k);
    op(f, 5, "parameter", A(0), NO_OPS);
    end_instr(&f->k);
    op(f, 6, "fusion", A(.tile = wide), OPS(4));
    xp_pb_put_u64(&f->k.instr, HLO_F_CALLED_COMPUTATION_IDS, 20);
    end_instr(&f->k);
    op(f, 7, "fusion", A(0), OPS(5));
    xp_pb_put_u64(&f->k.instr, HLO_F_CALLED_COMPUTATION_IDS, 20);
    end_instr(&f->k);
    end_comp(&f->k, 10, "main", 6);
    decode(f, 10);
    struct hlo_relayout edge = of(f, "fusion.6"), inside = of(f, "fusion.7");
    assert_true(edge.boundary);
    assert_int_equal(edge.changes, HLO_LAYOUT_TILES);
    assert_int_equal(edge.operand, 0);
    assert_int_equal(edge.inside, hlo_instr_by_name(f->m, XP_SPAN_LIT("copy.2")));
    assert_int_equal(inside.operand, HLO_NONE);
    assert_int_equal(inside.changes, HLO_LAYOUT_ORDER);
    assert_int_equal(inside.inside, edge.inside);
}

static void an_operand_is_a_parameter_of_what_is_called(void **state)
{
    struct hlo_instr in = {.opcode = HLO_OP_CONDITIONAL};
    (void)state;
    assert_int_equal(hlo_operand_parameter(&in, 0, 0), -1);
    assert_int_equal(hlo_operand_parameter(&in, 1, 0), 0);
    assert_int_equal(hlo_operand_parameter(&in, 1, 1), -1);
    in.opcode = HLO_OP_WHILE;
    assert_int_equal(hlo_operand_parameter(&in, 0, 1), 0);
    in.opcode = HLO_OP_CALL;
    assert_int_equal(hlo_operand_parameter(&in, 3, 0), 3);
    in.opcode = HLO_OP_REDUCE;
    assert_int_equal(hlo_operand_parameter(&in, 0, 0), -1);
}

static void when_the_work_is_spent_it_is_said_and_nothing_more_is_found(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(change(f, "copy", A(0), A(.minor = column_major)), HLO_LAYOUT_ORDER);
    f->l.work = 0;
    assert_int_equal(of(f, "copy.2").changes, 0);
    assert_true(f->l.spent);
}

/* Work is counted, not time: 100 operands of many dimensions cost a look each, no more. */
static void what_has_many_dimensions_is_not_compared(void **state)
{
    struct fixture *f = *state;
    int64_t dims[101], minor[101], operands[101];
    for (int i = 0; i < 100; i++)
        dims[i] = 1, minor[i] = i, operands[i] = 1;
    dims[100] = minor[100] = operands[100] = -1;
    struct layout many = A(.dims = dims, .minor = minor);
    op(f, 1, "parameter", many, NO_OPS);
    end_instr(&f->k);
    minor[0] = 1, minor[1] = 0;
    op(f, 2, "add", many, operands);
    end_instr(&f->k);
    end_comp(&f->k, 10, "main", 2);
    decode(f, 10);
    int64_t before = f->l.work;
    assert_int_equal(of(f, "add.2").changes, 0);
    assert_in_range(before - f->l.work, 1, 600);
}

/* A layout's tiles may be of any length: what reads them pays for it. */
static void a_long_layout_is_paid_for_by_its_length(void **state)
{
    struct fixture *f = *state;
    int64_t tile[1001];
    for (int i = 0; i < 1000; i++)
        tile[i] = 8;
    tile[1000] = -1;
    op(f, 1, "parameter", A(.tile = tile), NO_OPS);
    end_instr(&f->k);
    op(f, 2, "add", A(.tile = tile), OPS(1, 1));
    end_instr(&f->k);
    end_comp(&f->k, 10, "main", 2);
    decode(f, 10);
    int64_t before = f->l.work;
    assert_int_equal(of(f, "add.2").changes, 0);
    assert_true(before - f->l.work > 2 * 2 * 1000 / 64);
}

static void an_operand_reaches_few_of_many_that_are_called(void **state)
{
    (void)state;
    struct hlo_instr in = {.called = {.n = 1000}};
    static const struct {
        enum hlo_opcode op;
        uint32_t k, first, n;
    } cases[] = {{HLO_OP_FUSION, 7, 0, 1},      {HLO_OP_WHILE, 0, 0, 1000},
                 {HLO_OP_WHILE, 7, 0, 0},       {HLO_OP_CONDITIONAL, 0, 0, 0},
                 {HLO_OP_CONDITIONAL, 7, 6, 1}, {HLO_OP_CONDITIONAL, 1001, 0, 0},
                 {HLO_OP_REDUCE, 0, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        in.opcode = cases[i].op;
        struct hlo_run run = hlo_operand_called(&in, cases[i].k);
        assert_int_equal(run.at, cases[i].first);
        assert_int_equal(run.n, cases[i].n);
        for (uint32_t c = 0; c < in.called.n; c++)
            if (hlo_operand_parameter(&in, cases[i].k, c) >= 0)
                assert_true(c >= run.at && c - run.at < run.n);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_copy_to_another_order_tiles_or_memory_is_told_apart),
        T(what_says_anew_how_bytes_are_read_changes_nothing),
        T(a_transpose_moves_only_where_the_layout_does_not_follow_it),
        T(a_reshape_moves_where_its_tiles_hold_other_dimensions),
        T(what_computes_anew_is_other_data),
        T(of_other_types_only_the_first_tiles_are_compared),
        T(a_fusion_says_what_it_does_inside_and_at_its_edge),
        T(an_operand_is_a_parameter_of_what_is_called),
        T(what_has_many_dimensions_is_not_compared),
        T(a_long_layout_is_paid_for_by_its_length),
        T(an_operand_reaches_few_of_many_that_are_called),
        T(when_the_work_is_spent_it_is_said_and_nothing_more_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
