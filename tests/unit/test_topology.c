#include "shard/tools/topology.h"

#include "tests/unit/unit.h"

static void check(const char *device, uint32_t chips, uint32_t x, uint32_t y, uint32_t z)
{
    struct topology t = topology_of(xp_span_str(device), chips);
    assert_int_equal(t.dims[0], x);
    assert_int_equal(t.dims[1], y);
    assert_int_equal(t.dims[2], z);
}

static void slices_have_the_shapes_that_they_are_sold_in(void **state)
{
    (void)state;
    check("TPU v5 Lite", 1, 1, 1, 1);
    check("TPU v5 Lite", 4, 2, 2, 1);
    check("TPU v6 Lite", 8, 2, 4, 1);
    check("TPU v6e", 16, 4, 4, 1);
    check("TPU v6 Lite", 32, 4, 8, 1);
    check("TPU v6 Lite", 256, 16, 16, 1);
    check("TPU v5p", 4, 2, 2, 1);
    check("TPU v4", 8, 2, 2, 2);
    check("TPU v5p", 16, 2, 2, 4);
    check("TPU7x", 64, 4, 4, 4);
    check("TPU v4", 128, 4, 4, 8);
    check("TPU v3", 512, 16, 32, 1);
}

static void odd_numbers_of_chips_have_a_place_each(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 40; n++) {
        struct topology t = topology_of(xp_span_str("TPU v4"), n);
        assert_int_equal(t.dims[0] * t.dims[1] * t.dims[2], n ? n : 1);
    }
}

static void slices_of_which_chips_are_missing_are_whole(void **state)
{
    (void)state;
    assert_int_equal(topology_whole(xp_span_str("TPU v6 Lite"), 12), 16);
    assert_int_equal(topology_whole(xp_span_str("TPU v6 Lite"), 16), 16);
    assert_int_equal(topology_whole(xp_span_str("TPU v4"), 3), 4);
    assert_int_equal(topology_whole(xp_span_str("TPU v5p"), 130), 192);
    assert_int_equal(topology_whole(xp_span_str("TPU v5p"), 1048573), 0);
}

static void chips_are_numbered_along_x_first(void **state)
{
    (void)state;
    struct topology t = topology_of(xp_span_str("TPU v4"), 16);
    uint32_t at[3];
    topology_place(&t, 7, at);
    assert_true(at[0] == 1 && at[1] == 1 && at[2] == 1);
    topology_place(&t, 99, at); /* outside: still no two chips in one place */
    assert_true(at[0] == 1 && at[1] == 1 && at[2] == 24);
}

static void a_size_is_taken_from_who_knows_it(void **state)
{
    (void)state;
    struct topology t;
    struct xp_error err = {0};
    assert_int_equal(topology_parse(xp_span_str("4x8"), 32, &t, &err), XP_OK);
    assert_true(t.dims[0] == 4 && t.dims[1] == 8 && t.dims[2] == 1 && !t.solid);
    assert_int_equal(topology_parse(xp_span_str("2x2x4"), 9, &t, &err), XP_OK);
    assert_true(t.dims[2] == 4 && t.solid);
}

static void a_size_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const odd[] = {"",      "4",    "4x",         "x4",
                                      "0x4",   "4x8x", "-1x4",       "4x8x2x2",
                                      "4 x 8", "2x2",  "99999999x1", "1048576x1048576x1048576"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct topology t;
        struct xp_error err = {0};
        assert_int_equal(topology_parse(xp_span_str(odd[i]), 16, &t, &err), XP_BAD_REQUEST);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_have_the_shapes_that_they_are_sold_in),
        cmocka_unit_test(odd_numbers_of_chips_have_a_place_each),
        cmocka_unit_test(slices_of_which_chips_are_missing_are_whole),
        cmocka_unit_test(chips_are_numbered_along_x_first),
        cmocka_unit_test(a_size_is_taken_from_who_knows_it),
        cmocka_unit_test(a_size_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
