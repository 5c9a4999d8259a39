#include <stdlib.h>

#include "tests/unit/tool_support.h"

/* The report graph_viewer about modules made for it. */

struct fixture {
    struct xp_buf module, comp;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->module = make_message();
    f->comp = make_message();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    xp_buf_fini(&f->module);
    xp_buf_fini(&f->comp);
    free(f);
    return 0;
}

#define OPS(...) ((const int64_t[]){__VA_ARGS__, -1})
#define NO_OPS ((const int64_t[]){-1})

static void call(struct fixture *f, int64_t id, const char *name, const char *opcode,
                 const int64_t *operands, int64_t comp, int64_t other)
{
    struct xp_buf in = make_message(), shape = make_message();
    make_text(&in, 1, name);
    make_text(&in, 2, opcode);
    xp_pb_put_u64(&shape, 2, 11);
    xp_pb_put_u64(&shape, 3, 8);
    make_put(&in, 3, &shape);
    xp_pb_put_u64(&in, 35, (uint64_t)id);
    for (; *operands >= 0; operands++)
        xp_pb_put_u64(&in, 36, (uint64_t)*operands);
    if (comp)
        xp_pb_put_u64(&in, 38, (uint64_t)comp);
    if (other)
        xp_pb_put_u64(&in, 38, (uint64_t)other);
    make_put(&f->comp, 2, &in);
}

static void add_instr(struct fixture *f, int64_t id, const char *name, const char *opcode,
                      const int64_t *operands)
{
    call(f, id, name, opcode, operands, 0, 0);
}

static void add_parameter(struct fixture *f, int64_t id, const char *name)
{
    add_instr(f, id, name, "parameter", NO_OPS);
}

static void end_comp(struct fixture *f, int64_t id, const char *name, int64_t root)
{
    make_text(&f->comp, 1, name);
    xp_pb_put_u64(&f->comp, 5, (uint64_t)id);
    xp_pb_put_u64(&f->comp, 6, (uint64_t)root);
    make_put(&f->module, 3, &f->comp);
    f->comp = make_message();
}

static json_t *ask(struct fixture *f, const char *const *args)
{
    struct tool_file file = {"h", make_message()};
    struct xp_buf plane = make_plane(9, "/host:metadata"), stats = make_message();
    struct xp_buf proto = make_message();
    make_text(&f->module, 1, "jit_g");
    xp_pb_put_u64(&f->module, 6, 10);
    make_put(&proto, 1, &f->module);
    f->module = make_message();
    put_blob(&stats, 5, 1, xp_buf_all(&proto));
    xp_buf_fini(&proto);
    put_meta(&plane, 5, "jit_g(5)", NULL, &stats);
    make_add_meta(&plane, 5, 1, "Hlo Proto");
    make_put(&file.space, 1, &plane);
    return report_ask("graph_viewer", &file, 1, args);
}

/* x -> outer (p -> inner (q -> neg) -> sine) -> y */
static void make_nested(struct fixture *f)
{
    add_parameter(f, 1, "q");
    add_instr(f, 2, "neg", "negate", OPS(1));
    end_comp(f, 30, "inner_comp", 2);
    add_parameter(f, 3, "p");
    call(f, 4, "inner", "fusion", OPS(3), 30, 0);
    add_instr(f, 5, "sine", "sine", OPS(4));
    end_comp(f, 20, "outer_comp", 5);
    add_parameter(f, 6, "x");
    call(f, 7, "outer", "fusion", OPS(6), 20, 0);
    add_instr(f, 8, "y", "negate", OPS(7));
    end_comp(f, 10, "main", 8);
}

static long long at(json_t *j, size_t row, const char *column)
{
    json_t *v = report_at(j, "nodes", row, column);
    return json_is_null(v) ? -1 : json_integer_value(v);
}

static size_t node_of(json_t *j, const char *name)
{
    size_t n = report_rows(j, "nodes");
    for (size_t i = 0; i < n; i++)
        if (strcmp(json_string_value(report_at(j, "nodes", i, "op")), name) == 0)
            return i;
    return n;
}

static size_t edges(json_t *j, const char *from, const char *to, const char *kind)
{
    size_t n = 0;
    for (size_t i = 0; i < report_rows(j, "edges"); i++)
        n += strcmp(json_string_value(report_at(j, "edges", i, "from")), from) == 0 &&
             strcmp(json_string_value(report_at(j, "edges", i, "to")), to) == 0 &&
             strcmp(json_string_value(report_at(j, "edges", i, "kind")), kind) == 0;
    return n;
}

static void a_fusion_is_opened_in_place_with_its_parameters_tied_to_operands(void **state)
{
    struct fixture *f = *state;
    make_nested(f);
    json_t *j = ask(f, (const char *const[]){"node_name=outer", NULL});
    assert_int_equal(report_rows(j, "nodes"), 3);
    assert_int_equal(at(j, 0, "inner_ops"), 3);
    json_decref(j);
    make_nested(f);
    j = ask(f, (const char *const[]){"node_name=outer", "inside=outer", NULL});
    assert_int_equal(report_rows(j, "nodes"), 6);
    assert_int_equal(at(j, node_of(j, "sine"), "inside_node"), 0);
    assert_true(json_is_true(report_at(j, "nodes", 0, "opened")));
    assert_int_equal(edges(j, "x", "p", "parameter"), 1);
    assert_int_equal(edges(j, "x", "outer", "operand"), 1);
    assert_int_equal(node_of(j, "neg"), 6); /* not there */
    json_decref(j);
}

static void what_is_inside_is_opened_too_whatever_the_order_and_all_fusions_at_once(void **state)
{
    static const char *const lists[][4] = {{"node_name=outer", "inside=inner,outer", NULL},
                                           {"node_name=outer", "merge_fusion=false", NULL}};
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        make_nested(f);
        json_t *j = ask(f, lists[i]);
        assert_int_equal(report_rows(j, "nodes"), 8);
        assert_int_equal(at(j, node_of(j, "neg"), "inside_node"), (long long)node_of(j, "inner"));
        assert_int_equal(edges(j, "p", "q", "parameter"), 1);
        json_decref(j);
    }
}

static void a_loop_holds_its_body_and_its_condition(void **state)
{
    struct fixture *f = *state;
    add_parameter(f, 1, "state");
    add_instr(f, 2, "step", "negate", OPS(1));
    end_comp(f, 20, "body", 2);
    add_parameter(f, 3, "seen");
    add_instr(f, 4, "more", "compare", OPS(3));
    end_comp(f, 30, "cond", 4);
    add_parameter(f, 5, "x");
    call(f, 6, "loop", "while", OPS(5), 20, 30);
    end_comp(f, 10, "main", 6);
    json_t *j = ask(f, (const char *const[]){"node_name=loop", "inside=loop", NULL});
    assert_int_equal(report_rows(j, "nodes"), 6);
    assert_int_equal(edges(j, "x", "state", "parameter"), 1);
    assert_int_equal(edges(j, "x", "seen", "parameter"), 1);
    json_decref(j);
}

static void a_computation_called_a_thousand_times_is_opened_once_and_whole(void **state)
{
    struct fixture *f = *state;
    struct xp_buf in = make_message(), shape = make_message();
    add_parameter(f, 1, "p");
    for (int64_t i = 2; i < 22; i++)
        add_instr(f, i, "n", "negate", OPS(i - 1));
    end_comp(f, 20, "called", 21);
    make_text(&in, 1, "many");
    make_text(&in, 2, "call");
    xp_pb_put_u64(&shape, 2, 11);
    make_put(&in, 3, &shape);
    xp_pb_put_u64(&in, 35, 40);
    for (int i = 0; i < 1000; i++)
        xp_pb_put_u64(&in, 38, 20);
    make_put(&f->comp, 2, &in);
    end_comp(f, 10, "main", 40);
    json_t *j = ask(f, (const char *const[]){"node_name=many", "inside=many", NULL});
    assert_int_equal(report_rows(j, "nodes"), 22);
    json_decref(j);
}

static void computations_that_call_themselves_end(void **state)
{
    struct fixture *f = *state;
    add_parameter(f, 1, "p");
    call(f, 2, "again", "fusion", OPS(1), 20, 0);
    end_comp(f, 20, "ring", 2);
    add_parameter(f, 3, "x");
    call(f, 4, "start", "fusion", OPS(3), 20, 0);
    call(f, 5, "other", "fusion", OPS(4), 20, 0);
    end_comp(f, 10, "main", 5);
    json_t *j = ask(f, (const char *const[]){"node_name=start", "merge_fusion=false", NULL});
    assert_int_equal(report_rows(j, "nodes"), 5);
    json_decref(j);
}

/* hub takes p.0 to p.<n - 1>, and is used as often */
static void make_hub(struct fixture *f, int n)
{
    int64_t *all = calloc((size_t)n + 1, sizeof *all);
    char name[32];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "p.%d", i);
        add_parameter(f, 1000 + i, name);
        all[i] = 1000 + i;
    }
    all[n] = -1;
    add_instr(f, 1, "hub", "tuple", all);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "u.%d", i);
        add_instr(f, 100000 + i, name, "negate", OPS(1));
    }
    end_comp(f, 10, "main", 1);
    free(all);
}

static void of_thousands_of_operands_and_users_both_have_their_share(void **state)
{
    struct fixture *f = *state;
    make_hub(f, 5000);
    json_t *j = ask(f, (const char *const[]){"node_name=hub", "radius=1", NULL});
    assert_int_equal(report_rows(j, "nodes"), 60);
    assert_int_equal(at(j, 0, "more_operands"), 5000 - 30);
    assert_int_equal(at(j, 0, "more_users"), 5000 - 29);
    /* all of them are listed, and the op's line holds those that there is room for */
    json_t *around = NULL, *t;
    size_t i;
    json_array_foreach(json_object_get(j, "tables"), i,
                       t) if (strcmp(json_string_value(json_object_get(t, "id")), "around") == 0)
        around = t;
    assert_int_equal(json_integer_value(json_object_get(around, "total_rows")), 10000);
    const char *text = json_string_value(json_object_get(j, "text"));
    assert_ptr_equal(strstr(text, "%hub"), text);
    assert_true(strlen(text) < 64 << 10 && strlen(text) > 1000);
    json_decref(j);
}

static void each_asking_for_more_adds_some_and_never_more_than_the_most(void **state)
{
    struct fixture *f = *state;
    make_hub(f, 500);
    json_t *j = ask(f, (const char *const[]){"node_name=hub", "nodes=10", "expand=hub,hub", NULL});
    assert_int_equal(report_rows(j, "nodes"), 90);
    json_decref(j);
    make_hub(f, 500);
    j = ask(f, (const char *const[]){"node_name=hub", "nodes=390", "expand=hub,hub,hub", NULL});
    assert_int_equal(report_rows(j, "nodes"), 400);
    json_decref(j);
}

static void one_result_taken_a_hundred_thousand_times_is_one_edge(void **state)
{
    struct fixture *f = *state;
    int64_t *all = malloc(100001 * sizeof *all);
    for (int i = 0; i < 100000; i++)
        all[i] = 1;
    all[100000] = -1;
    add_parameter(f, 1, "x");
    add_instr(f, 2, "hub", "tuple", all);
    end_comp(f, 10, "main", 2);
    json_t *j = ask(f, (const char *const[]){"node_name=hub", NULL});
    assert_int_equal(report_rows(j, "edges"), 1);
    assert_int_equal(json_integer_value(report_at(j, "edges", 0, "count")), 100000);
    json_decref(j);
    free(all);
}

static void all_ops_are_listed_where_they_are_asked_for(void **state)
{
    struct fixture *f = *state;
    make_nested(f);
    json_t *j = ask(f, (const char *const[]){"ops=1", "table=ops", NULL});
    assert_int_equal(report_rows(j, "ops"), 8);
    assert_string_equal(json_string_value(report_at(j, "ops", 6, "operand_rows")), "5");
    json_decref(j);
    make_nested(f);
    j = ask(f, (const char *const[]){"node_name=x", NULL});
    size_t i;
    json_t *t;
    json_array_foreach(json_object_get(j, "tables"), i, t)
        assert_string_not_equal(json_string_value(json_object_get(t, "id")), "ops");
    json_decref(j);
}

static void the_original_graph_is_said_to_be_in_no_profile(void **state)
{
    struct fixture *f = *state;
    make_nested(f);
    json_t *j = ask(f, (const char *const[]){"graph_type=original_hlo", NULL});
    assert_true(report_notes(j, "no_original"));
    assert_true(json_is_null(report_value(j, "original_graph")));
    json_decref(j);
}

static void what_bears_on_fusion_is_told_of_the_op_and_its_neighbours(void **state)
{
    struct fixture *f = *state;
    bool several = false, fused = false;
    make_nested(f);
    json_t *j = ask(f, (const char *const[]){"node_name=neg", NULL});
    for (size_t i = 0; i < report_rows(j, "fusion"); i++)
        fused |= strcmp(json_string_value(report_at(j, "fusion", i, "fact")),
                        "is fused: part of a fusion") == 0;
    assert_true(fused);
    json_decref(j);
    make_hub(f, 3);
    j = ask(f, (const char *const[]){"node_name=hub", NULL});
    for (size_t i = 0; i < report_rows(j, "fusion"); i++)
        several |=
            strstr(json_string_value(report_at(j, "fusion", i, "fact")), "several users") != NULL;
    assert_true(several);
    json_decref(j);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_fusion_is_opened_in_place_with_its_parameters_tied_to_operands),
        T(what_is_inside_is_opened_too_whatever_the_order_and_all_fusions_at_once),
        T(a_loop_holds_its_body_and_its_condition),
        T(a_computation_called_a_thousand_times_is_opened_once_and_whole),
        T(computations_that_call_themselves_end),
        T(of_thousands_of_operands_and_users_both_have_their_share),
        T(each_asking_for_more_adds_some_and_never_more_than_the_most),
        T(one_result_taken_a_hundred_thousand_times_is_one_edge),
        T(all_ops_are_listed_where_they_are_asked_for),
        T(the_original_graph_is_said_to_be_in_no_profile),
        T(what_bears_on_fusion_is_told_of_the_op_and_its_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
