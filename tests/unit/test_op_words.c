#include "shard/tools/op_words.h"

#include "tests/unit/unit.h"

static const char *text_of(struct xp_span s)
{
    static char t[300];
    snprintf(t, sizeof t, "%.*s", (int)s.n, (const char *)s.p);
    return t;
}

static struct op_words read(const char *text)
{
    return op_words_read(xp_span_str(text));
}

static void a_permute_tells_its_channel_its_pairs_and_what_it_sends(void **state)
{
    (void)state;
    struct op_words w =
        read("%p.1 = (bf16[4,1024]{1,0:T(8,128)(2,1)S(1)}, bf16[4,1024]{1,0}, u32[]) "
             "collective-permute-start(bf16[4,1024]{1,0} %c), channel_id=7, "
             "source_target_pairs={{0,1},{1,2}}");
    int64_t from, to;
    assert_string_equal(text_of(w.opcode), "collective-permute-start");
    assert_int_equal(w.channel, 7);
    assert_int_equal(w.bytes, 4 * 1024 * 2);
    assert_true(op_words_pair(&w.pairs, &from, &to) && from == 0 && to == 1);
    assert_true(op_words_pair(&w.pairs, &from, &to) && from == 1 && to == 2);
    assert_false(op_words_pair(&w.pairs, &from, &to));
}

static void a_done_names_its_start(void **state)
{
    (void)state;
    struct op_words w = read("%d = bf16[2,3]{1,0} collective-permute-done((bf16[2,3]{1,0}, u32[]) "
                             "%collective-permute-start.1)");
    assert_string_equal(text_of(w.operand), "collective-permute-start.1");
    assert_int_equal(w.bytes, 12);
    assert_int_equal(w.channel, -1);
    w = read(
        "%r = (bf16[16,2]{1,0}, token[]) recv-done((bf16[16,2]{1,0}, u32[], token[]) %recv.8), "
        "channel_id=20");
    assert_string_equal(text_of(w.operand), "recv.8");
    assert_int_equal(w.channel, 20);
    assert_int_equal(w.bytes, 64);
}

static void sums_of_several_arrays_count_all_of_them(void **state)
{
    (void)state;
    assert_int_equal(read("%a = (f32[8]{0}, pred[3]{0}) all-reduce(f32[8] %x, pred[3] %y)").bytes,
                     35);
    assert_int_equal(read("%a = f32[] all-reduce(f32[] %x)").bytes, 4);
    assert_int_equal(read("%a = s4[3]{0} all-gather(s4[1] %x)").bytes, 2);
}

static void check(const char *groups, int64_t member, const char *wanted)
{
    char to[80];
    size_t n = op_words_group(xp_span_str(groups), member, 0, to, sizeof to);
    assert_string_equal(n ? to : "", wanted);
}

static void groups_are_found_by_their_members(void **state)
{
    (void)state;
    check("{{0,1},{2,3}}", 3, "2,3");
    check("{{0,1},{2,3}}", 4, "");
    check("[2,4]<=[8]", 5, "4,5,6,7");
    check("[4,4]<=[4,4]T(1,0)", 6, "2,6,10,14");
    check("[2,4]<=[2,2,2]T(1,0,2)", 4, "0,1,4,5"); /* rows y, columns x and z */
}

static void long_groups_say_how_many_there_are(void **state)
{
    (void)state;
    char to[32];
    assert_true(op_words_group(xp_span_str("[1,256]<=[256]"), 9, 0, to, sizeof to) > 0);
    assert_string_equal(to, "0,1,2,3,... of 256");
}

static void numbers_of_a_later_slice_go_on_from_those_before(void **state)
{
    (void)state;
    char to[40];
    struct op_words w = read("%a = f32[] all-reduce(f32[] %x), replica_groups={{0,1},{2,3}}, x=9");
    assert_int_equal(op_words_highest(&w), 3);
    assert_true(op_words_group(w.groups, 2, 4, to, sizeof to) > 0);
    assert_string_equal(to, "6,7");
    w = read("%a = f32[] all-reduce(f32[] %x), replica_groups=[2,4]<=[8]");
    assert_int_equal(op_words_highest(&w), 7);
    w = read("%a = f32[] all-reduce(f32[] %x)");
    assert_int_equal(op_words_highest(&w), -1);
}

/* [g,s]<=[a,b]T(1,0) by counting, for every member. */
static void transposed_groups_are_those_that_counting_finds(void **state)
{
    (void)state;
    struct op_words w =
        read("%a = f32[] all-reduce(f32[] %x), replica_groups=[4,6]<=[2,3,4]T(2,0,1)");
    int place = 0, at[24];
    for (int z = 0; z < 4; z++)
        for (int x = 0; x < 2; x++)
            for (int y = 0; y < 3; y++)
                at[place++] = (x * 3 + y) * 4 + z;
    for (int i = 0; i < 24; i++) {
        char to[80], expected[80];
        const int *g = at + i / 6 * 6;
        snprintf(expected, sizeof expected, "%d,%d,%d,%d,%d,%d", g[0], g[1], g[2], g[3], g[4],
                 g[5]);
        assert_true(op_words_group(w.groups, at[i], 0, to, sizeof to) > 0);
        assert_string_equal(to, expected);
    }
    char to[80];
    assert_int_equal(op_words_group(w.groups, 24, 0, to, sizeof to), 0);
    assert_int_equal(op_words_group(w.groups, -1, 0, to, sizeof to), 0);
}

/* Many of them took seconds when each was counted through. */
static void the_largest_groups_cost_no_more_than_small_ones(void **state)
{
    (void)state;
    struct op_words w =
        read("%a = f32[] all-reduce(f32[] %x), replica_groups=[1,65536]<=[256,256]T(1,0)");
    char to[80];
    for (int i = 0; i < 20000; i++)
        assert_true(op_words_group(w.groups, 65535, 0, to, sizeof to) > 0);
    assert_non_null(strstr(to, "... of 65536"));
}

static void what_is_no_group_is_none(void **state)
{
    (void)state;
    static const char *const odd[] = {"",
                                      "{",
                                      "{{",
                                      "{{1,",
                                      "[",
                                      "[2,4]",
                                      "[2,4]<=",
                                      "[2,4]<=[7]",
                                      "[2,4]<=[8]T(0,1)",
                                      "[2,4]<=[2,4]T(0,9)",
                                      "[2,4]<=[2,4]T(1,1)",
                                      "[0,0]<=[0]",
                                      "[4294967296,4294967296]<=[4294967296,4294967296]",
                                      "[9999999999999999999,1]<=[1]",
                                      "{}",
                                      "x"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        check(odd[i], 1, "");
}

static void texts_that_are_no_instruction_tell_nothing(void **state)
{
    (void)state;
    static const char *const odd[] = {"",          " = ",          "%a = ",        "%a = (",
                                      "%a = f32[", "%a = f32[2",   "%a = f32[2]{", "%a = (f32[2], ",
                                      "fusion.1",  "%a = f32[2] x"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct op_words w = read(odd[i]);
        assert_int_equal(w.opcode.n, 0);
        assert_int_equal(w.channel, -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_permute_tells_its_channel_its_pairs_and_what_it_sends),
        cmocka_unit_test(a_done_names_its_start),
        cmocka_unit_test(sums_of_several_arrays_count_all_of_them),
        cmocka_unit_test(groups_are_found_by_their_members),
        cmocka_unit_test(long_groups_say_how_many_there_are),
        cmocka_unit_test(numbers_of_a_later_slice_go_on_from_those_before),
        cmocka_unit_test(transposed_groups_are_those_that_counting_finds),
        cmocka_unit_test(the_largest_groups_cost_no_more_than_small_ones),
        cmocka_unit_test(what_is_no_group_is_none),
        cmocka_unit_test(texts_that_are_no_instruction_tell_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
