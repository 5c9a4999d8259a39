#include "tests/unit/tool_support.h"

enum { DEVICE = 1, TYPE, VALUE, ID };
static const char *const stat_names[] = {"device_id", "device_type_string", "counter_value",
                                         "performance_counter_id"};

struct count {
    uint64_t id, value;
};

static void put_sample(struct xp_buf *plane, int64_t line_id, const char *name,
                       const struct count *c, size_t n, int64_t duration)
{
    struct xp_buf line = make_line(line_id, name, 0);
    for (size_t i = 0; i < n; i++) {
        struct xp_buf e = make_event(1, 100, duration);
        put_u64(&e, 4, ID, c[i].id);
        if (i % 2)
            put_double(&e, 4, VALUE, (double)c[i].value);
        else
            put_u64(&e, 4, VALUE, c[i].value);
        make_put(&line, 4, &e);
    }
    make_put(plane, 3, &line);
}

static struct tool_file profile(const char *type, const char *name, const struct count *c, size_t n,
                                int64_t duration)
{
    struct tool_file f = {"h", make_message()};
    struct xp_buf plane = make_plane(1, "/device:TPU:0");
    put_sample(&plane, 42, name, c, n, duration);
    make_add_meta(&plane, 4, 1, "a counter");
    put_stat_names(&plane, stat_names, 4);
    put_u64(&plane, 6, DEVICE, 5);
    put_text(&plane, 6, TYPE, type);
    make_put(&f.space, 1, &plane);
    return f;
}

/* Numbers of counters of a TPU v6e, as its header lists them. */
#define V6E_CYCLES 3257466888
#define V6E_SCALAR_0 (V6E_CYCLES + 80)
#define V6E_SCALAR_1 (V6E_CYCLES + 88)
#define V6E_MXU_BUSY_1 (V6E_CYCLES + 520)
#define V6E_MXU_BUSY_2 (V6E_CYCLES + 528)
#define V6E_LMR_BF16_0 (V6E_CYCLES + 464)
#define V6E_XLU0_TRANSPOSE (V6E_CYCLES + 616)
#define V6E_HBM_1_2_READ (3019980840 + 33554432 + 2 * 2097152 + 16)
#define V6E_SC1_TILE3_VECTOR (3490186176 + 44040192 + 3 * 2097152)
#define V6E_SC1_CYCLES 3534225416

static const struct count v6e[] = {
    {V6E_CYCLES, 1000},      {V6E_SCALAR_0, 100},    {V6E_SCALAR_1, 300},
    {V6E_MXU_BUSY_1, 200},   {V6E_MXU_BUSY_2, 400},  {V6E_LMR_BF16_0, 25},
    {V6E_XLU0_TRANSPOSE, 7}, {V6E_HBM_1_2_READ, 10}, {V6E_SC1_TILE3_VECTOR, 9},
    {V6E_SC1_CYCLES, 50},    {V6E_SCALAR_0, 110}};
#define V6E_N (sizeof v6e / sizeof v6e[0])

static void is_row(json_t *t, const char *name, double achieved, double peak)
{
    size_t i = row_with(t, "name", name);
    assert_float_equal(cell_num(t, i, "achieved"), achieved, 1e-9);
    assert_float_equal(cell_num(t, i, "peak"), peak, 1e-3);
    assert_true(cell_num(t, i, "device") == 5);
    assert_true(cell_num(t, i, "sample") == 42);
}

static void units_are_counted_against_their_cycles(void **state)
{
    (void)state;
    struct tool_file f = profile("TPU v6 Lite", "s", v6e, V6E_N, 1);
    json_t *t = tool_ask("utilization_viewer", &f, 1, NULL);
    is_row(t, "Scalar Unit", 110 + 300, 2000); /* the last event of a counter counts */
    is_row(t, "Avg MXU Busy", 0.5 * 200 + 400, 1000);
    is_row(t, "MXU0", 4 * 25, 1000);
    is_row(t, "MXU BF16", 4 * 25, 2000);
    is_row(t, "XLU0", 7, 250);
    is_row(t, "HBM Rd+Wr - core 0", 320, 1525.5 * 1073741824 * (1000 / 1.75e9));
    is_row(t, "HBM Read Ratio", 320, 320);
    json_decref(t);
}

static void the_second_sparse_core_has_its_own_tiles(void **state)
{
    (void)state;
    struct tool_file f = profile("TPU v6 Lite", "s", v6e, V6E_N, 1);
    json_t *t = tool_ask("utilization_viewer", &f, 1, NULL);
    size_t first = row_with(t, "name", "SC Vector Issue"), second = first + 16;
    assert_string_equal(cell_text(t, second, "name"), "SC Vector Issue");
    assert_true(cell_num(t, first, "achieved") == 0 && cell_num(t, first, "node") == 0);
    assert_true(cell_num(t, second, "achieved") == 9 && cell_num(t, second, "node") == 1);
    assert_true(cell_num(t, second, "peak") == 50 * 16);
    json_decref(t);
}

static void a_core_without_cycles_says_nothing(void **state)
{
    (void)state;
    struct tool_file f = profile("TPU v6 Lite", "s", v6e + 1, V6E_N - 1, 1);
    json_t *t = tool_ask("utilization_viewer", &f, 1, NULL);
    assert_int_equal(table_rows(t), 32); /* SparseCores alone */
    json_decref(t);
}

static void other_chips_are_not_known(void **state)
{
    (void)state;
    struct tool_file f = profile("TPU v5 lite", "s", v6e, V6E_N, 1);
    json_t *t = tool_ask("utilization_viewer", &f, 1, NULL);
    assert_int_equal(table_rows(t), 0);
    json_decref(t);
}

/* --- kernels --- */

static json_t *kernel(json_t *t, size_t device, size_t k)
{
    return json_array_get(
        json_object_get(json_array_get(json_object_get(t, "devices"), device), "kernels"), k);
}

static double metric(json_t *k, const char *name)
{
    json_t *v = json_object_get(json_object_get(k, "other_metrics"), name);
    assert_non_null(v);
    return json_number_value(v);
}

static void a_kernel_is_told_in_percent_of_what_its_units_could_do(void **state)
{
    (void)state;
    struct tool_file f = profile("TPU v6 Lite", "counters_matmul", v6e, V6E_N, 2500000);
    json_t *t = tool_ask("kernel_utilization", &f, 1, NULL), *k = kernel(t, 0, 0);
    assert_string_equal(json_string_value(json_object_get(k, "kernel_name")), "matmul");
    assert_float_equal(json_number_value(json_object_get(k, "duration_us")), 2.5, 1e-9);
    assert_float_equal(json_number_value(json_object_get(k, "mxu_utilization")), 50, 1e-9);
    assert_false(json_is_true(json_object_get(k, "mxu_is_anomaly")));
    assert_float_equal(metric(k, "Scalar Unit"), 20.5, 1e-9);
    assert_float_equal(metric(k, "XLU0"), 2.8, 1e-9);
    /* The first SparseCore's cycles are not known: the second alone counts. */
    assert_float_equal(metric(k, "SC Vector Issue"), 1.13, 1e-9);
    assert_null(json_object_get(json_object_get(k, "other_metrics"), "Avg MXU Busy"));
    json_decref(t);
}

static void a_sample_of_no_kernel_has_the_default_name(void **state)
{
    (void)state;
    struct tool_file f = profile("TPU v6 Lite", "kernel_0", v6e, V6E_N, 1);
    json_t *t = tool_ask("kernel_utilization", &f, 1, NULL);
    assert_string_equal(json_string_value(json_object_get(kernel(t, 0, 0), "kernel_name")),
                        "default_kernel");
    json_decref(t);
}

static void kernels_are_of_one_host(void **state)
{
    (void)state;
    struct tool_file f[2] = {profile("TPU v6 Lite", "s", v6e, V6E_N, 1),
                             profile("TPU v6 Lite", "s", v6e, V6E_N, 1)};
    assert_int_equal(tool_refuses("kernel_utilization", f, 2, NULL), XP_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_are_counted_against_their_cycles),
        cmocka_unit_test(the_second_sparse_core_has_its_own_tiles),
        cmocka_unit_test(a_core_without_cycles_says_nothing),
        cmocka_unit_test(other_chips_are_not_known),
        cmocka_unit_test(a_kernel_is_told_in_percent_of_what_its_units_could_do),
        cmocka_unit_test(a_sample_of_no_kernel_has_the_default_name),
        cmocka_unit_test(kernels_are_of_one_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
