#include "shard/stats/op_stats.h"

#include <stdlib.h>
#include <unistd.h>

#include "shard/part_open.h"
#include "tests/unit/unit.h"
#include "tests/unit/xspace_make.h"

#define NS INT64_C(1000)

enum {
    PROGRAM_ID = 1,
    SYMBOL_ID,
    CATEGORY,
    FLOPS,
    MODEL_FLOPS,
    BYTES,
    DEVICE_OFFSET,
    DEVICE_DURATION,
    TIME_SCALE,
    GROUP,
    TFLOPS,
    TF_OP
};

static void add_stat_names(struct xp_buf *plane)
{
    make_add_meta(plane, 5, PROGRAM_ID, "program_id");
    make_add_meta(plane, 5, SYMBOL_ID, "symbol_id");
    make_add_meta(plane, 5, CATEGORY, "hlo_category");
    make_add_meta(plane, 5, FLOPS, "flops");
    make_add_meta(plane, 5, MODEL_FLOPS, "model_flops");
    make_add_meta(plane, 5, BYTES, "bytes_accessed");
    make_add_meta(plane, 5, DEVICE_OFFSET, "device_offset_ps");
    make_add_meta(plane, 5, DEVICE_DURATION, "device_duration_ps");
    make_add_meta(plane, 5, TIME_SCALE, "Time Scale Multiplier");
    make_add_meta(plane, 5, GROUP, "group_id");
    make_add_meta(plane, 5, TFLOPS, "peak_teraflops_per_second");
    make_add_meta(plane, 5, TF_OP, "tf_op");
}

static struct xp_buf stat_text(int64_t id, const char *text)
{
    struct xp_buf s = make_message();
    xp_pb_put_u64(&s, 1, (uint64_t)id);
    make_text(&s, 5, text);
    return s;
}

static struct xp_buf stat_double(int64_t id, double v)
{
    struct xp_buf s = make_message();
    xp_pb_put_u64(&s, 1, (uint64_t)id);
    xp_pb_put_double(&s, 2, v);
    return s;
}

struct op {
    int64_t id;
    const char *name, *category;
    int64_t program, symbol, flops, bytes;
};

/* An event metadata: an op. */
static void add_op(struct xp_buf *plane, const struct op *op)
{
    struct xp_buf entry = make_message(), meta = make_message(), s;
    xp_pb_put_u64(&meta, 1, (uint64_t)op->id);
    make_text(&meta, 2, op->name);
    make_text(&meta, 4, op->name);
    const int64_t numbers[][2] = {
        {PROGRAM_ID, op->program}, {SYMBOL_ID, op->symbol}, {FLOPS, op->flops}, {BYTES, op->bytes}};
    for (int i = 0; i < 4; i++) {
        s = make_stat_i64(numbers[i][0], numbers[i][1]);
        make_put(&meta, 5, &s);
    }
    s = stat_text(CATEGORY, op->category);
    make_put(&meta, 5, &s);
    xp_pb_put_u64(&entry, 1, (uint64_t)op->id);
    make_put(&entry, 2, &meta);
    make_put(plane, 4, &entry);
}

static void add_run(struct xp_buf *line, int64_t op, int64_t begin, int64_t end)
{
    make_add_event(line, op, begin, end - begin);
}

static struct part_file *open_space(struct xp_buf *space)
{
    struct part_file *f;
    struct xp_error err = {0};
    char *path = make_file(xp_buf_all(space)), *named = NULL;
    assert_true(asprintf(&named, "%s.xplane.pb", path) > 0);
    assert_int_equal(rename(path, named), 0);
    assert_int_equal(part_open_file(named, NULL, NULL, &f, &err), XP_OK);
    unlink(named);
    free(path);
    free(named);
    xp_buf_fini(space);
    return f;
}

static const struct op_stats *stats_of(struct part_file *f)
{
    const struct op_stats *s;
    struct xp_error err = {0};
    assert_int_equal(op_stats_get(part_file_part(f), &s, &err), XP_OK);
    return s;
}

static const struct op_metrics *find(const struct op_stats *s, const char *name)
{
    for (uint32_t i = 0; i < s->device.n; i++)
        if (xp_span_eq(s->device.ops[i].name, xp_span_str(name)))
            return &s->device.ops[i];
    fail_msg("there is no op %s", name);
    return NULL;
}

static const struct op ops[] = {
    {1, "while.1", "while", 7, 1, 0, 0},
    {2, "fusion.2", "loop fusion", 7, 2, 100, 10},
    {3, "infeed.3", "infeed", 7, 3, 0, 4},
    {4, "unknown.4", "copy", 7, 0, 5, 5}, /* no symbol: not an op */
    {5, "again.5", "copy", 7, 2, 1, 1},   /* the symbol of fusion.2 */
    {6, "call.6", "custom-call", 7, 6, 3, 2},
};

static struct xp_buf tpu_plane(int64_t id, const char *name)
{
    struct xp_buf plane = make_plane(id, name);
    add_stat_names(&plane);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        add_op(&plane, &ops[i]);
    return plane;
}

/* while.1 [0,100) with fusion.2 [10,40) and [50,60) inside; infeed.3 [100,150). */
static struct xp_buf small_host(const char *host, int64_t scale)
{
    struct xp_buf space = make_message(), plane = tpu_plane(2, "/device:TPU:0");
    struct xp_buf line = make_line(1, "XLA Ops", 0);
    add_run(&line, 1, 0, 100 * NS * scale);
    add_run(&line, 2, 10 * NS * scale, 40 * NS * scale);
    add_run(&line, 2, 50 * NS * scale, 60 * NS * scale);
    add_run(&line, 3, 100 * NS * scale, 150 * NS * scale);
    make_put(&plane, 3, &line);
    struct xp_buf s = stat_double(TFLOPS, 2.0);
    make_put(&plane, 6, &s);
    make_put(&space, 1, &plane);
    make_text(&space, 4, host);
    return space;
}

static void self_time_is_what_ops_inside_leave(void **state)
{
    (void)state;
    struct xp_buf space = small_host("h", 1);
    struct part_file *f = open_space(&space);
    const struct op_stats *s = stats_of(f);
    const struct op_metrics *loop = find(s, "while.1"), *fusion = find(s, "fusion.2");
    assert_int_equal(loop->time_ps, 100 * NS);
    assert_int_equal(loop->self_ps, 60 * NS);
    assert_int_equal(fusion->occurrences, 2);
    assert_int_equal(fusion->self_ps, 40 * NS);
    assert_true(fusion->flops == 200 && fusion->model_flops == 200);
    assert_int_equal(fusion->bytes, 20);
    assert_int_equal(s->device.total_ps, 150 * NS);
    assert_int_equal(s->device.total_op_ps, 150 * NS);
    assert_int_equal(find(s, "IDLE")->time_ps, 0);
    part_close(f);
}

static void an_infeed_is_not_busy(void **state)
{
    (void)state;
    struct xp_buf space = small_host("h", 1);
    struct part_file *f = open_space(&space);
    const struct op_host *h = &stats_of(f)->hosts[0];
    assert_int_equal(h->hardware, OP_HW_TPU);
    assert_int_equal(h->device_cores, 1);
    assert_true(h->limits.peak_tflops == 2.0);
    assert_int_equal(h->busy_ps, 100 * NS);
    assert_int_equal(h->idle_ps, 50 * NS);
    part_close(f);
}

static void ops_without_a_symbol_are_dropped_and_equal_symbols_are_one(void **state)
{
    (void)state;
    struct xp_buf space = make_message(), plane = tpu_plane(2, "/device:TPU:0");
    struct xp_buf line = make_line(1, "XLA Ops", 0);
    add_run(&line, 2, 0, 10 * NS);
    add_run(&line, 5, 10 * NS, 30 * NS);
    add_run(&line, 4, 30 * NS, 40 * NS);
    make_put(&plane, 3, &line);
    make_put(&space, 1, &plane);
    struct part_file *f = open_space(&space);
    const struct op_stats *s = stats_of(f);
    assert_int_equal(s->device.n, 2); /* with IDLE */
    assert_int_equal(find(s, "fusion.2")->time_ps, 30 * NS);
    assert_true(find(s, "fusion.2")->flops == 200);
    assert_int_equal(find(s, "IDLE")->time_ps, 10 * NS);
    part_close(f);
}

static void add_device_run(struct xp_buf *line, int64_t op, int64_t begin, int64_t end,
                           int64_t device_begin, int64_t device_end, double scale)
{
    struct xp_buf ev = make_event(op, begin, end - begin), s;
    s = make_stat_i64(DEVICE_OFFSET, device_begin);
    make_put(&ev, 4, &s);
    s = make_stat_i64(DEVICE_DURATION, device_end - device_begin);
    make_put(&ev, 4, &s);
    if (scale > 0) {
        s = stat_double(TIME_SCALE, scale);
        make_put(&ev, 4, &s);
    }
    if (op == 6) {
        s = make_stat_i64(FLOPS, 1000);
        make_put(&ev, 4, &s);
    }
    make_put(line, 4, &ev);
}

/* In any order of the events in the file. */
static void check_device_times(bool backwards)
{
    static const int64_t v[4][4] = {
        {0, 100, 5, 95}, {10, 41, 16, 44}, {200, 300, 190, 310}, {400, 410, 400, 440}};
    struct xp_buf space = make_message(), plane = tpu_plane(2, "/device:TPU:0");
    struct xp_buf line = make_line(1, "XLA Ops", 77);
    static const int64_t names[] = {1, 2, 6, 3};
    for (int i = 0; i < 4; i++) {
        int k = backwards ? 3 - i : i;
        add_device_run(&line, names[k], v[k][0] * NS, v[k][1] * NS, v[k][2] * NS, v[k][3] * NS,
                       k == 2 ? 0.5 : 0);
    }
    make_put(&plane, 3, &line);
    make_put(&space, 1, &plane);
    struct part_file *f = open_space(&space);
    const struct op_stats *s = stats_of(f);
    assert_int_equal(find(s, "while.1")->time_ps, 90 * NS);
    assert_int_equal(find(s, "while.1")->self_ps, 62 * NS);
    assert_int_equal(find(s, "fusion.2")->time_ps, 28 * NS);
    assert_int_equal(find(s, "call.6")->time_ps, 120 * NS);
    assert_int_equal(find(s, "call.6")->normalized_ps, 60 * NS);
    assert_true(find(s, "call.6")->flops == 3 && find(s, "call.6")->run_flops == 1000);
    assert_int_equal(find(s, "infeed.3")->time_ps, 40 * NS);
    assert_int_equal(s->device.total_ps, 435 * NS);
    part_close(f);
}

static void ops_run_on_the_devices_clock(void **state)
{
    (void)state;
    check_device_times(false);
    check_device_times(true);
}

static void steps_hold_their_groups_ops(void **state)
{
    (void)state;
    struct xp_buf space = make_message(), plane = tpu_plane(2, "/device:TPU:0");
    struct xp_buf steps = make_line(1, "Steps", 0), line = make_line(2, "XLA Ops", 0);
    for (int64_t i = 0; i < 3; i++) {
        struct xp_buf ev = make_event(10 + i, i * 100 * NS, 90 * NS), s = make_stat_i64(GROUP, i);
        make_put(&ev, 4, &s);
        make_put(&steps, 4, &ev);
        const int64_t names[] = {2, 3};
        for (int64_t k = 0; k < 2; k++) {
            ev = make_event(names[k], i * 100 * NS + k * 40 * NS, (30 + i) * NS);
            s = make_stat_i64(GROUP, i);
            make_put(&ev, 4, &s);
            make_put(&line, 4, &ev);
        }
    }
    make_put(&plane, 3, &steps);
    make_put(&plane, 3, &line);
    make_put(&space, 1, &plane);
    struct part_file *f = open_space(&space);
    const struct op_core *c = &stats_of(f)->hosts[0].cores[0];
    assert_int_equal(c->nsteps, 3);
    for (int i = 0; i < 3; i++) {
        const struct op_step *s = &c->steps[i];
        assert_int_equal(s->group, i);
        assert_true(s->marked);
        assert_int_equal(s->end_ps - s->begin_ps, 90 * NS);
        assert_int_equal(s->ncategories, 2);
        assert_true(xp_span_eq(s->categories[0].category, XP_SPAN_LIT("infeed")));
        assert_int_equal(s->categories[0].self_ps, (30 + i) * NS);
        assert_int_equal(s->op_self_ps, 2 * (30 + i) * NS);
        assert_int_equal(s->feeds_ps, (30 + i) * NS);
        assert_true(s->flops == 100 && s->feeds_flops == 0);
        assert_int_equal(s->bytes, 14);
        assert_int_equal(s->feeds_bytes, 4);
    }
    part_close(f);
}

static void host_ops_nest_by_time(void **state)
{
    (void)state;
    struct xp_buf space = make_message(), plane = make_plane(1, "/host:CPU");
    struct xp_buf line = make_line(1, "t", 0);
    make_add_meta(&plane, 4, 1, "outer:MatMul");
    make_add_meta(&plane, 4, 2, "inner:Add");
    make_add_meta(&plane, 4, 3, "not an op");
    make_add_event(&line, 1, 0, 100 * NS);
    make_add_event(&line, 2, 20 * NS, 30 * NS);
    make_add_event(&line, 3, 60 * NS, 10 * NS);
    make_add_event(&line, 1, 200 * NS, 50 * NS);
    make_put(&plane, 3, &line);
    make_put(&space, 1, &plane);
    struct part_file *f = open_space(&space);
    const struct op_stats *s = stats_of(f);
    assert_int_equal(s->hosts[0].hardware, OP_HW_CPU_ONLY);
    assert_int_equal(s->host.n, 3);
    const struct op_metrics *m = s->host.ops;
    assert_true(xp_span_eq(m[0].name, XP_SPAN_LIT("IDLE")));
    assert_int_equal(m[0].time_ps, 100 * NS);
    assert_true(xp_span_eq(m[2].name, XP_SPAN_LIT("outer")));
    assert_int_equal(m[2].occurrences, 2);
    assert_int_equal(m[2].self_ps, 120 * NS);
    assert_int_equal(s->host.total_ps, 250 * NS);
    part_close(f);
}

/* --- packing and merging --- */

static struct xp_buf packed(const struct op_stats *s, uint32_t index)
{
    struct xp_buf b;
    xp_buf_init(&b, 1 << 24);
    op_stats_pack(s, index, true, &b);
    assert_false(b.failed);
    return b;
}

static struct op_stats *unpacked(const struct xp_buf *b, struct xp_arena *a)
{
    struct op_stats *s;
    struct xp_error err = {0};
    assert_int_equal(op_stats_unpack(xp_buf_all(b), a, &s, &err), XP_OK);
    return s;
}

static struct op_stats *merged(const struct op_stats *x, const struct op_stats *y,
                               struct xp_arena *a)
{
    struct op_stats *s;
    struct xp_error err = {0};
    assert_int_equal(op_stats_merge(x, y, a, &s, &err), XP_OK);
    return s;
}

static void equal(const struct op_stats *x, const struct op_stats *y)
{
    struct xp_buf a = packed(x, 0), b = packed(y, 0);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.p, b.p, a.n);
    xp_buf_fini(&a);
    xp_buf_fini(&b);
}

static void what_is_packed_comes_back(void **state)
{
    (void)state;
    struct xp_buf space = small_host("h", 1);
    struct part_file *f = open_space(&space);
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_buf b = packed(stats_of(f), 3);
    struct op_stats *s = unpacked(&b, a);
    assert_int_equal(s->nhosts, 1);
    assert_int_equal(s->hosts[0].index, 3);
    assert_int_equal(find(s, "while.1")->self_ps, 60 * NS);
    assert_int_equal(find(s, "while.1")->host, 3);
    assert_true(s->hosts[0].limits.peak_tflops == 2.0);
    xp_buf_fini(&b);
    part_close(f);
    xp_arena_free(a);
}

static void merging_knows_no_order(void **state)
{
    (void)state;
    struct part_file *f[3];
    struct xp_arena *a = xp_arena_new(NULL);
    struct op_stats *s[3];
    struct xp_buf b[3];
    for (uint32_t i = 0; i < 3; i++) {
        struct xp_buf space = small_host("h", i + 1);
        f[i] = open_space(&space);
        b[i] = packed(stats_of(f[i]), i);
        s[i] = unpacked(&b[i], a);
    }
    struct op_stats *left = merged(merged(s[0], s[1], a), s[2], a);
    equal(left, merged(s[0], merged(s[1], s[2], a), a));
    equal(left, merged(merged(s[2], s[0], a), s[1], a));
    assert_int_equal(left->nhosts, 3);
    assert_int_equal(find(left, "while.1")->time_ps, 600 * NS);
    assert_int_equal(left->device.total_ps, 900 * NS);
    for (int i = 0; i < 3; i++) {
        xp_buf_fini(&b[i]);
        part_close(f[i]);
    }
    xp_arena_free(a);
}

static void bytes_of_another_make_are_refused_or_read_without_harm(void **state)
{
    (void)state;
    struct xp_buf space = small_host("h", 1);
    struct part_file *f = open_space(&space);
    struct xp_buf b = packed(stats_of(f), 0);
    uint64_t seed = 11;
    for (int round = 0; round < 3000; round++) {
        struct xp_arena *a = xp_arena_new(NULL);
        struct xp_error err = {0};
        struct op_stats *s;
        size_t n = round % 3 ? b.n : make_rng(&seed) % b.n;
        uint8_t *copy = malloc(n + 1);
        memcpy(copy, b.p, n);
        for (int k = 0; k < 3 && n; k++)
            copy[make_rng(&seed) % n] = (uint8_t)make_rng(&seed);
        if (op_stats_unpack(xp_span_of(copy, n), a, &s, &err) == XP_OK) {
            struct op_session all;
            op_stats_session(s, &all);
            merged(s, s, a);
        }
        free(copy);
        xp_arena_free(a);
    }
    xp_buf_fini(&b);
    part_close(f);
}

/* --- derived figures --- */

static void the_most_used_resource_bounds_an_op(void **state)
{
    (void)state;
    struct op_limits l = {.peak_tflops = 1, .gbs = {[OP_BW_HBM] = 100}, .ngbs = 7};
    struct op_metrics m = {.time_ps = 1000 * NS, .flops = 500000, .bytes = 1000};
    struct op_rates r;
    op_rates_of(&m, &l, OP_HW_TPU, &r);
    assert_true(r.flop_rate == 500);
    assert_string_equal(r.bound_by, "Compute");
    m.bytes = 90000;
    op_rates_of(&m, &l, OP_HW_TPU, &r);
    assert_string_equal(r.bound_by, "HBM");
    m = (struct op_metrics){.time_ps = 1};
    op_rates_of(&m, &l, OP_HW_TPU, &r);
    assert_string_equal(r.bound_by, "Unknown");
}

static void categories_have_kinds(void **state)
{
    (void)state;
    assert_int_equal(op_kind_of(XP_SPAN_LIT("while")), OP_KIND_INNER);
    assert_int_equal(op_kind_of(XP_SPAN_LIT("infeed")), OP_KIND_OFF_DUTY | OP_KIND_INFEED);
    assert_int_equal(op_kind_of(XP_SPAN_LIT("loop fusion")), OP_KIND_FUSION);
    assert_int_equal(op_kind_of(XP_SPAN_LIT("IDLE")), OP_KIND_IDLE);
    assert_int_equal(op_kind_of(XP_SPAN_LIT("copy")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(self_time_is_what_ops_inside_leave),
        cmocka_unit_test(an_infeed_is_not_busy),
        cmocka_unit_test(ops_without_a_symbol_are_dropped_and_equal_symbols_are_one),
        cmocka_unit_test(ops_run_on_the_devices_clock),
        cmocka_unit_test(steps_hold_their_groups_ops),
        cmocka_unit_test(host_ops_nest_by_time),
        cmocka_unit_test(what_is_packed_comes_back),
        cmocka_unit_test(merging_knows_no_order),
        cmocka_unit_test(bytes_of_another_make_are_refused_or_read_without_harm),
        cmocka_unit_test(the_most_used_resource_bounds_an_op),
        cmocka_unit_test(categories_have_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
