/* Reports of rare events and of single modules, on profiles whose numbers are worked out by hand.
 */
#include <stdlib.h>

#include "tests/unit/tool_support.h"

#define US INT64_C(1000000)

static bool is_text(json_t *v, const char *text)
{
    return json_is_string(v) && strcmp(json_string_value(v), text) == 0;
}

/* --- memory --- */

struct mem {
    const char *pool;
    int64_t at, heap, bytes, address;
    bool frees;
};

/* Of each allocator; reserved is beyond what the heap may have. */
static int64_t heap_max = 1000, reserved = 0;

/* Steps are events "work" of another thread, each of 100 ps. */
static struct tool_file memory_with_steps(const char *host, const struct mem *v, size_t n,
                                          size_t nsteps)
{
    static const char *const names[] = {
        "allocator_name", "bytes_allocated", "bytes_available", "allocation_bytes",
        "addr",           "tf_op",           "bytes_reserved"};
    struct tool_file f = {host, make_message()};
    struct xp_buf plane = make_plane(1, "/host:CPU"), line = make_line(1, "t", 0);
    for (size_t i = 0; i < n; i++) {
        struct xp_buf e = make_event(v[i].frees ? 2 : 1, v[i].at, 0);
        put_text(&e, 4, 1, v[i].pool);
        put_i64(&e, 4, 2, v[i].heap);
        put_i64(&e, 4, 3, heap_max - v[i].heap);
        put_i64(&e, 4, 4, v[i].bytes);
        put_i64(&e, 4, 5, v[i].address);
        if (!v[i].frees)
            put_text(&e, 4, 6, "op");
        put_i64(&e, 4, 7, reserved);
        make_put(&line, 4, &e);
    }
    make_put(&plane, 3, &line);
    struct xp_buf steps = make_line(2, "main", 0);
    for (size_t i = 0; i < nsteps; i++) {
        struct xp_buf e = make_event(3, (int64_t)i * 100, 100);
        make_put(&steps, 4, &e);
    }
    make_put(&plane, 3, &steps);
    make_add_meta(&plane, 4, 1, "MemoryAllocation");
    make_add_meta(&plane, 4, 2, "MemoryDeallocation");
    make_add_meta(&plane, 4, 3, "work");
    put_stat_names(&plane, names, sizeof names / sizeof *names);
    make_put(&f.space, 1, &plane);
    return f;
}

static struct tool_file memory(const char *host, const struct mem *v, size_t n)
{
    return memory_with_steps(host, v, n, 0);
}

static void the_peak_is_of_the_fullest_allocator_of_all_hosts(void **state)
{
    static const struct mem a[] = {
        {"x", 10, 300, 300, 1, false}, {"x", 20, 700, 400, 2, false}, {"x", 30, 300, 400, 2, true}};
    static const struct mem b[] = {{"y", 10, 900, 900, 1, false}};
    struct tool_file f[2] = {memory("a", a, 3), memory("b", b, 1)};
    json_t *j = report_ask("memory_profile", f, 2, NULL);
    (void)state;
    assert_int_equal(json_integer_value(report_value(j, "peak_memory")), 900);
    assert_int_equal(json_integer_value(report_value(j, "capacity_memory")), 1000);
    assert_int_equal(json_integer_value(report_value(j, "memory_events")), 4);
    assert_int_equal(report_rows(j, "allocators"), 2);
    assert_true(is_text(report_at(j, "allocators", 0, "host"), "b"));
    assert_int_equal(json_integer_value(report_at(j, "allocators", 1, "peak")), 700);
    assert_int_equal(json_integer_value(report_at(j, "allocators", 1, "peak_at")), 20);
    assert_int_equal(json_integer_value(report_at(j, "allocators", 1, "allocated")), 700);
    assert_int_equal(json_integer_value(report_at(j, "allocators", 1, "frees")), 1);
    assert_int_equal(report_rows(j, "live"), 3); /* 900; 400 and 300 */
    assert_int_equal(json_integer_value(report_at(j, "live", 1, "total")), 400);
    json_decref(j);
}

static void an_allocator_that_is_asked_for_is_alone_but_in_the_list_of_all(void **state)
{
    static const struct mem v[] = {{"x", 10, 300, 300, 1, false},
                                   {"x", 20, 700, 400, 2, false},
                                   {"y", 30, 900, 900, 3, false}};
    struct tool_file f = memory("a", v, 3);
    json_t *j =
        report_ask("memory_profile", &f, 1, (const char *const[]){"allocator=x", "at=25", NULL});
    (void)state;
    assert_int_equal(json_integer_value(report_value(j, "peak_memory")), 700);
    assert_int_equal(json_integer_value(report_value(j, "memory_events")), 2);
    assert_int_equal(report_rows(j, "allocators"), 2);
    assert_int_equal(report_rows(j, "moment"), 1);
    assert_int_equal(report_rows(j, "live"), 2);
    assert_true(report_notes(j, "no_fragmentation"));
    assert_false(report_notes(j, "memory_flat"));
    json_decref(j);
    f = memory("a", v, 3);
    j = report_ask("memory_profile", &f, 1, (const char *const[]){"allocator=y", NULL});
    assert_int_equal(json_integer_value(report_value(j, "peak_memory")), 900);
    assert_true(report_notes(j, "memory_flat")); /* one event */
    json_decref(j);
}

static void many_memory_events_make_a_small_answer_with_all_totals(void **state)
{
    enum { N = 50000 };
    struct mem *v = calloc(N, sizeof *v);
    (void)state;
    for (int i = 0; i < N; i++)
        v[i] = (struct mem){"x", i, i + 1, 1, i, false};
    struct tool_file f = memory("a", v, N);
    json_t *j = report_ask("memory_profile", &f, 1, NULL);
    char *text = json_dumps(j, JSON_COMPACT);
    assert_true(strlen(text) < 400000);
    assert_int_equal(json_integer_value(report_value(j, "memory_events")), N);
    assert_int_equal(json_integer_value(report_at(j, "allocators", 0, "allocations")), N);
    assert_true(report_notes(j, "memory_reduced"));
    const json_t *s = json_array_get(json_object_get(j, "series"), 0);
    assert_true(json_is_true(json_object_get(s, "reduced")));
    assert_int_equal(json_integer_value(json_object_get(s, "total_points")), N);
    assert_int_equal(json_array_size(json_object_get(s, "points")), 2000);
    free(text);
    free(v);
    json_decref(j);
}

static void without_an_allocator_it_is_said_how_to_capture_one(void **state)
{
    (void)state;
    struct tool_file f = memory("a", NULL, 0);
    json_t *j = report_ask("memory_profile", &f, 1, NULL);
    assert_true(json_is_null(report_value(j, "peak_memory")));
    assert_true(report_notes(j, "memory_no_events"));
    json_decref(j);
}

static json_t *at_moment(const char *at)
{
    static const struct mem a[] = {{"x", 10, 500, 300, 1, false},
                                   {"x", 20, 600, 100, 2, false},
                                   {"x", 30, 300, 300, 1, true},
                                   {"x", 40, 900, 600, 3, false}};
    struct tool_file f = memory("a", a, 4);
    return report_ask("memory_profile", &f, 1, (const char *const[]){at, NULL});
}

static void a_moment_shows_what_was_alive_then_and_what_came_before_the_profile(void **state)
{
    (void)state;
    json_t *j = at_moment("at=25");
    assert_int_equal(report_rows(j, "live"), 3); /* 300; 200 from before; 100 */
    assert_int_equal(json_integer_value(report_at(j, "live", 0, "total")), 300);
    assert_int_equal(json_integer_value(report_at(j, "live", 0, "first_begin_ps")), 10);
    assert_int_equal(json_integer_value(report_at(j, "live", 1, "total")), 200);
    assert_true(json_is_false(report_at(j, "live", 1, "explained")));
    assert_int_equal(json_integer_value(report_at(j, "moment", 0, "used")), 600);
    assert_int_equal(json_integer_value(report_at(j, "moment", 0, "since")), 20);
    assert_int_equal(json_integer_value(report_at(j, "moment", 0, "alive")), 2);
    json_decref(j);
    j = at_moment("at=30");
    assert_int_equal(report_rows(j, "live"), 2); /* 200 from before; 100 */
    json_decref(j);
    j = at_moment("at=9");
    assert_int_equal(report_rows(j, "live"), 0);
    assert_true(json_is_null(report_at(j, "moment", 0, "used")));
    json_decref(j);
}

/* Each step keeps `kept` bytes of the 100 that it allocates twice. */
static json_t *steps_that_keep(int64_t kept)
{
    enum { STEPS = 12, N = 3 * STEPS };
    static struct mem v[N];
    for (int64_t i = 0; i < STEPS; i++) {
        int64_t heap = 1000 + i * kept;
        v[3 * i] = (struct mem){"x", i * 100 + 10, heap + 100, 100, 3 * i, false};
        v[3 * i + 1] = (struct mem){"x", i * 100 + 20, heap + 100 + kept, kept, 3 * i + 1, false};
        v[3 * i + 2] = (struct mem){"x", i * 100 + 30, heap + kept, 100, 3 * i, true};
    }
    struct tool_file f = memory_with_steps("a", v, N, STEPS);
    return report_ask("memory_profile", &f, 1, (const char *const[]){"step_marker=work", NULL});
}

static void what_every_step_keeps_is_growth(void **state)
{
    (void)state;
    json_t *j = steps_that_keep(8);
    assert_int_equal(json_integer_value(report_value(j, "growth_per_step")), 8);
    assert_true(json_is_true(report_at(j, "growth", 0, "steady")));
    assert_true(report_notes(j, "memory_grows"));
    json_decref(j);
    j = steps_that_keep(0);
    assert_int_equal(json_integer_value(report_value(j, "growth_per_step")), 0);
    assert_false(report_notes(j, "memory_grows"));
    json_decref(j);
}

/* --- counters --- */

static void units_are_shares_of_what_they_could_do(void **state)
{
    static const char *const names[] = {"device_id", "device_type_string", "counter_value",
                                        "performance_counter_id"};
    static const uint64_t ids[] = {3257466888, 3257466888 + 80, 3257466888 + 88, 1},
                          values[] = {1000, 100, 300, 0};
    struct tool_file f[3];
    (void)state;
    for (int k = 0; k < 3; k++) {
        struct xp_buf plane = make_plane(1, "/device:TPU:0"), line = make_line(7, "counters_k", 0);
        f[k] = (struct tool_file){"h", make_message()};
        for (int i = 0; i < 4; i++) {
            struct xp_buf e = make_event(1, 0, 5);
            put_u64(&e, 4, 3, values[i]);
            put_u64(&e, 4, 4, ids[i]);
            make_put(&line, 4, &e);
        }
        make_put(&plane, 3, &line);
        make_add_meta(&plane, 4, 1, "a counter");
        put_stat_names(&plane, names, 4);
        put_u64(&plane, 6, 1, 5);
        put_text(&plane, 6, 2, "TPU v6 Lite");
        make_put(&f[k].space, 1, &plane);
    }
    json_t *j = report_ask("utilization_viewer", &f[0], 1, NULL);
    json_t *t = json_object_get(json_array_get(json_object_get(j, "tables"), 0), "rows");
    double busy = -1;
    for (size_t i = 0; i < json_array_size(t); i++)
        if (is_text(json_array_get(json_array_get(t, i), 5), "Scalar Unit"))
            busy = json_number_value(json_array_get(json_array_get(t, i), 6));
    assert_float_equal(busy, 400.0 / 2000.0, 1e-9);
    json_decref(j);
    j = report_ask("perf_counters", &f[1], 1, NULL);
    assert_int_equal(json_integer_value(report_value(j, "counters")), 4);
    assert_int_equal(report_rows(j, "counters"), 3); /* one is 0 */
    assert_true(report_notes(j, "zeros_hidden"));
    json_decref(j);
    j = report_ask("kernel_utilization", &f[2], 1, NULL);
    assert_int_equal(json_integer_value(report_at(j, "kernels", 0, "time")), 5);
    assert_true(is_text(report_at(j, "kernels", 0, "kernel"), "k"));
    assert_float_equal(json_number_value(report_at(j, "kernels", 0, "scalar")), 0.2, 1e-9);
    json_decref(j);
}

/* --- requests --- */

static void a_request_spends_its_time_on_what_its_events_say(void **state)
{
    static const char *const names[] = {
        "_r", "_pt", "_p", "_ct", "_c", "batch_size_after_padding", "padding_amount"};
    static const char *const events[] = {"BatchingSessionRun", "ProcessBatch", "ConcatInputTensors",
                                         "TransferH2DRequest"};
    struct tool_file f = {"h", make_message()};
    struct xp_buf plane = make_plane(1, "/host:CPU"), a = make_line(1, "a", 0),
                  b = make_line(2, "b", 0), e = make_event(1, 1000 * US, 100 * US);
    (void)state;
    put_i64(&e, 4, 1, 1);
    put_i64(&e, 4, 2, 3);
    put_i64(&e, 4, 3, 77);
    make_put(&a, 4, &e);
    e = make_event(2, 1025 * US, 50 * US);
    put_i64(&e, 4, 1, 2);
    put_i64(&e, 4, 4, 3);
    put_i64(&e, 4, 5, 77);
    make_put(&b, 4, &e);
    e = make_event(3, 1026 * US, US);
    put_i64(&e, 4, 6, 8);
    put_i64(&e, 4, 7, 2);
    make_put(&b, 4, &e);
    make_add_event(&b, 4, 1028 * US, 5 * US);
    make_put(&plane, 3, &a);
    make_put(&plane, 3, &b);
    for (int i = 0; i < 4; i++)
        make_add_meta(&plane, 4, i + 1, events[i]);
    put_stat_names(&plane, names, sizeof names / sizeof *names);
    make_put(&f.space, 1, &plane);
    json_t *j = report_ask("inference_profile", &f, 1, NULL);
    assert_int_equal(json_integer_value(report_value(j, "requests")), 1);
    assert_int_equal(json_integer_value(report_value(j, "latency_mean")), 100 * US);
    assert_int_equal(json_integer_value(report_value(j, "latency_p99")), 100 * US);
    assert_float_equal(json_number_value(report_value(j, "padding_fraction")), 0.25, 1e-9);
    assert_int_equal(json_integer_value(report_at(j, "requests", 0, "to_device")), 5 * US);
    static const char *const parts[] = {"preprocess", "formation", "runtime",     "to_device",
                                        "compute",    "to_host",   "postprocess", "idle"};
    int64_t sum = 0;
    for (int i = 0; i < 8; i++)
        sum += json_integer_value(report_at(j, "requests", 0, parts[i]));
    assert_int_equal(sum, 100 * US);
    assert_float_equal(json_number_value(report_at(j, "batches", 0, "used")), 0.75, 1e-9);
    json_t *sizes = json_array_get(json_object_get(j, "series"), 2);
    assert_string_equal(json_string_value(json_object_get(sizes, "id")), "batch_sizes");
    static const int64_t point[] = {8, 6, 2}; /* size, used, padding */
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(json_integer_value(json_array_get(
                             json_array_get(json_object_get(sizes, "points"), 0), i)),
                         point[i]);
    json_decref(j);
}

static void memory_that_programs_reserved_is_not_free_to_grow_into(void **state)
{
    (void)state;
    heap_max = 2000;
    reserved = 500;
    json_t *j = steps_that_keep(8); /* 1096 in use after the last of 12 */
    heap_max = 1000;
    reserved = 0;
    assert_int_equal(json_integer_value(report_at(j, "growth", 0, "last")), 1096);
    assert_int_equal(json_integer_value(report_at(j, "growth", 0, "full_in")), 904 / 8);
    json_decref(j);
}

/* --- modules --- */

static void add_instr(struct xp_buf *comp, int64_t id, const char *name, const char *opcode,
                      uint64_t type, const int64_t *operands, size_t n)
{
    struct xp_buf in = make_message(), shape = make_message();
    make_text(&in, 1, name);
    make_text(&in, 2, opcode);
    xp_pb_put_u64(&shape, 2, type);
    xp_pb_put_u64(&shape, 3, 4);
    make_put(&in, 3, &shape);
    xp_pb_put_u64(&in, 35, (uint64_t)id);
    for (size_t i = 0; i < n; i++)
        xp_pb_put_u64(&in, 36, (uint64_t)operands[i]);
    make_put(comp, 2, &in);
}

/* Without buffers, in memories 0, 2 and 9. */
static void put_allocations(struct xp_buf *proto)
{
    static const uint64_t v[][2] = {{9, 1}, {2, 8}, {0, 100}, {2, 4}};
    struct xp_buf assignment = make_message();
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct xp_buf a = make_message();
        xp_pb_put_u64(&a, 1, i);
        xp_pb_put_u64(&a, 2, v[i][1]);
        xp_pb_put_u64(&a, 8, v[i][0]);
        make_put(&assignment, 3, &a);
    }
    make_put(proto, 3, &assignment);
}

/* A chain p.0 -> op.1 -> ... -> op.<n>; the last has `many` operands, all op.1. Each second opcode
 * is unknown, and in a ring each element type. */
static struct tool_file chain_of(int n, size_t many, bool ring, bool allocations)
{
    struct tool_file f = {"h", make_message()};
    struct xp_buf proto = make_message(), module = make_message(), comp = make_message();
    struct xp_buf plane = make_plane(9, "/host:metadata"), stats = make_message();
    int64_t *all = calloc(many + 1, sizeof *all);
    make_text(&comp, 1, "main");
    xp_pb_put_u64(&comp, 5, 1);
    add_instr(&comp, 100, "p.0", "parameter", 11, NULL, 0);
    for (int i = 1; i <= n; i++) {
        char name[32];
        int64_t before = ring && i == 1 ? 100 + n : 99 + i;
        snprintf(name, sizeof name, "op.%d", i);
        for (size_t k = 0; k < many; k++)
            all[k] = 101;
        bool last = i == n && many;
        add_instr(&comp, 100 + i, name, i % 2 ? "negate" : "no-such-opcode", ring ? 250 : 11,
                  last ? all : &before, last ? many : 1);
    }
    xp_pb_put_u64(&comp, 6, (uint64_t)(100 + n));
    make_text(&module, 1, "jit_c");
    make_text(&module, 2, "main");
    make_put(&module, 3, &comp);
    xp_pb_put_u64(&module, 6, 1);
    make_put(&proto, 1, &module);
    if (allocations)
        put_allocations(&proto);
    put_blob(&stats, 5, 1, xp_buf_all(&proto));
    xp_buf_fini(&proto);
    put_meta(&plane, 5, "jit_c(5)", NULL, &stats);
    make_add_meta(&plane, 5, 1, "Hlo Proto");
    make_put(&f.space, 1, &plane);
    free(all);
    return f;
}

static struct tool_file chain(int n, size_t many, bool ring)
{
    return chain_of(n, many, ring, true);
}

static json_t *programs_of(bool first, bool second)
{
    struct tool_file f[] = {chain_of(3, 0, false, first), chain_of(3, 0, false, second)};
    f[0].host = "g";
    return report_ask("memory_viewer", f, 2, (const char *const[]){"programs=all", NULL});
}

static bool note_begins(json_t *doc, const char *code, const char *text)
{
    size_t i;
    json_t *n;
    json_array_foreach(
        json_object_get(doc, "notes"), i,
        n) if (is_text(json_object_get(n, "code"),
                       code)) return strncmp(json_string_value(json_object_get(n, "text")), text,
                                             strlen(text)) == 0;
    return false;
}

static void a_program_of_many_hosts_is_one_and_unknown_if_none_knows_it(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        json_t *j = programs_of(i & 1, i & 2);
        assert_int_equal(report_rows(j, "programs"), i ? 1 : 0);
        assert_int_equal(report_notes(j, "programs_unknown"), i == 0);
        if (i)
            assert_true(json_is_null(report_at(j, "programs", 0, "runs"))); /* not told */
        else
            assert_true(note_begins(j, "programs_unknown", "1 program has"));
        json_decref(j);
    }
}

static void the_memories_of_a_program_are_listed_by_number_and_name(void **state)
{
    static const char *const sync[] = {"memory_space=2", NULL}, *const none[] = {"memory_space=6",
                                                                                 NULL};
    (void)state;
    struct tool_file f = chain(3, 0, false);
    json_t *j = report_ask("memory_viewer", &f, 1, sync);
    assert_int_equal(report_rows(j, "spaces"), 3);
    assert_true(is_text(report_at(j, "spaces", 0, "name"), "HBM"));
    assert_int_equal(json_integer_value(report_at(j, "spaces", 0, "size")), 100);
    assert_true(is_text(report_at(j, "spaces", 1, "name"), "sync flags"));
    assert_int_equal(json_integer_value(report_at(j, "spaces", 1, "size")), 12);
    assert_int_equal(json_integer_value(report_at(j, "spaces", 1, "allocations")), 2);
    assert_int_equal(json_integer_value(report_at(j, "spaces", 2, "space")), 9);
    assert_true(json_is_null(report_at(j, "spaces", 2, "name")));
    assert_false(report_notes(j, "memory_space_unused"));
    json_decref(j);
    f = chain(3, 0, false);
    j = report_ask("memory_viewer", &f, 1, none);
    assert_true(report_notes(j, "memory_space_unused"));
    json_decref(j);
}

static void an_op_is_found_by_part_of_its_name_and_shown_with_its_neighbours(void **state)
{
    static const char *const args[] = {"node_name=OP.5", "radius=2", NULL};
    struct tool_file f = chain(9, 0, false);
    json_t *j = report_ask("graph_viewer", &f, 1, args);
    (void)state;
    assert_int_equal(report_rows(j, "nodes"), 5); /* op.3 to op.7 */
    assert_true(is_text(report_at(j, "nodes", 0, "op"), "op.5"));
    assert_int_equal(report_rows(j, "edges"), 4);
    assert_int_equal(json_integer_value(report_at(j, "nodes", 3, "distance")), 2);
    assert_int_equal(json_integer_value(report_at(j, "nodes", 3, "more_operands")), 1);
    json_decref(j);
}

static void nodes_stay_within_their_budget(void **state)
{
    static const char *const args[] = {"node_name=op.50", "radius=20", "nodes=7", NULL};
    struct tool_file f = chain(99, 0, false);
    json_t *j = report_ask("graph_viewer", &f, 1, args);
    (void)state;
    assert_int_equal(report_rows(j, "nodes"), 7);
    json_decref(j);
}

static void rings_many_operands_unknown_opcodes_and_types_are_no_trouble(void **state)
{
    static const char *const args[] = {"node_name=op.1", "radius=20", "nodes=400", NULL};
    static const char *const tools[] = {"graph_viewer", "memory_viewer"};
    (void)state;
    for (int k = 0; k < 4; k++)
        for (int t = 0; t < 2; t++) {
            struct tool_file f = chain(30, k & 1 ? 100000 : 0, k & 2);
            json_t *j = report_ask(tools[t], &f, 1, args);
            char *text = json_dumps(j, JSON_COMPACT);
            assert_true(strlen(text) < 2000000);
            assert_int_equal(report_rows(j, "modules"), 1);
            free(text);
            json_decref(j);
        }
}

static void an_unknown_module_or_op_is_said_so(void **state)
{
    static const char *const module[] = {"module_name=jit_x(1)", NULL};
    static const char *const number[] = {"program_id=50", NULL}; /* part of no number: 5 is there */
    static const char *const op[] = {"node_name=zzz", NULL};
    (void)state;
    struct tool_file f = chain(3, 0, false);
    json_t *j = report_ask("memory_viewer", &f, 1, module);
    assert_true(report_notes(j, "module_unknown"));
    assert_true(json_is_null(report_value(j, "program_peak")));
    assert_true(is_text(report_at(j, "modules", 0, "module"), "jit_c(5)"));
    json_decref(j);
    f = chain(3, 0, false);
    j = report_ask("graph_viewer", &f, 1, number);
    assert_true(report_notes(j, "module_unknown"));
    json_decref(j);
    f = chain(3, 0, false);
    j = report_ask("graph_viewer", &f, 1, op);
    assert_true(report_notes(j, "no_such_op"));
    assert_int_equal(report_rows(j, "nodes"), 0);
    json_decref(j);
}

/* --- activity --- */

struct op {
    int line;
    int64_t begin_us, us;
};

/* Both reports must agree: where a host has one device, their windows are the same. */
static void assert_busy(const char *plane_name, const char *line_name, const struct op *v, size_t n,
                        double truth, const char *levels)
{
    for (int tool = 0; tool < 2; tool++) {
        struct tool_file f = {"h", make_message()};
        struct xp_buf plane = make_plane(2, plane_name);
        for (int k = 0; k < 3; k++) {
            struct xp_buf line = make_line(14 + k, line_name, 0);
            for (size_t i = 0; i < n; i++)
                if (v[i].line == k)
                    make_add_event(&line, 1, v[i].begin_us * US, v[i].us * US);
            make_put(&plane, 3, &line);
        }
        make_add_meta(&plane, 4, 1, "op");
        make_put(&f.space, 1, &plane);
        json_t *j = report_ask(tool ? "overview_page" : "device_activity", &f, 1, NULL);
        if (tool) {
            double idle = json_number_value(report_value(j, "idle_fraction"));
            assert_float_equal(1 - idle, truth, 1e-9);
        } else {
            json_t *text = report_at(j, "devices", 0, "activity");
            assert_float_equal(json_number_value(report_at(j, "devices", 0, "busy")), truth, 1e-9);
            for (size_t i = 0; levels && i < 4; i++) /* in the middle of each quarter */
                assert_int_equal(json_string_value(text)[16 + 32 * i], levels[i]);
        }
        json_decref(j);
    }
}

static void time_that_several_streams_are_busy_counts_once(void **state)
{
    static const struct op same[] = {{0, 0, 500}, {1, 0, 500}, {0, 999, 1}, {1, 998, 2}};
    static const struct op apart[] = {{0, 0, 250}, {1, 200, 100}, {2, 750, 250}, {0, 800, 100}};
    static struct op fine[1000]; /* several in each part of the picture */
    (void)state;
    for (int i = 0; i < 1000; i++)
        fine[i] = (struct op){i % 2, i / 2 * 2, 1};
    assert_busy("/device:GPU:0", "Stream #7(Compute)", fine, 1000, 500.0 / 999, NULL);
    assert_busy("/device:GPU:0", "Stream #7(Compute)", same, 4, 0.502, "zz00");
    assert_busy("/device:GPU:0", "Stream #7(Compute)", apart, 4, 0.55, "z00z");
}

static void what_sticks_out_of_an_op_is_busy_too(void **state)
{
    static const struct op v[] = {
        {0, 0, 250}, {0, 100, 300}, {0, 300, 200}, {0, 310, 5}, {0, 750, 250}};
    static const struct op flat[] = {{0, 0, 250}, {0, 250, 250}, {0, 750, 250}};
    (void)state;
    assert_busy("/device:TPU:0", "XLA Ops", v, 5, 0.75, "zz0z");
    assert_busy("/device:TPU:0", "XLA Ops", flat, 3, 0.75, "zz0z");
}

/* --- every report --- */

static void an_empty_profile_says_what_is_missing(void **state)
{
    static const char *const ids[] = {"memory_profile",    "memory_viewer",    "graph_viewer",
                                      "inference_profile", "pod_viewer",       "megascale_stats",
                                      "perf_counters",     "smart_suggestion", "utilization_viewer",
                                      "kernel_utilization"};
    (void)state;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct tool_file f = {"h", make_message()};
        json_t *j = report_ask(ids[i], &f, 1, NULL);
        assert_true(is_text(json_object_get(j, "tool"), ids[i]));
        json_decref(j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peak_is_of_the_fullest_allocator_of_all_hosts),
        cmocka_unit_test(a_moment_shows_what_was_alive_then_and_what_came_before_the_profile),
        cmocka_unit_test(what_every_step_keeps_is_growth),
        cmocka_unit_test(memory_that_programs_reserved_is_not_free_to_grow_into),
        cmocka_unit_test(a_program_of_many_hosts_is_one_and_unknown_if_none_knows_it),
        cmocka_unit_test(an_allocator_that_is_asked_for_is_alone_but_in_the_list_of_all),
        cmocka_unit_test(the_memories_of_a_program_are_listed_by_number_and_name),
        cmocka_unit_test(many_memory_events_make_a_small_answer_with_all_totals),
        cmocka_unit_test(without_an_allocator_it_is_said_how_to_capture_one),
        cmocka_unit_test(units_are_shares_of_what_they_could_do),
        cmocka_unit_test(a_request_spends_its_time_on_what_its_events_say),
        cmocka_unit_test(an_op_is_found_by_part_of_its_name_and_shown_with_its_neighbours),
        cmocka_unit_test(nodes_stay_within_their_budget),
        cmocka_unit_test(rings_many_operands_unknown_opcodes_and_types_are_no_trouble),
        cmocka_unit_test(an_unknown_module_or_op_is_said_so),
        cmocka_unit_test(time_that_several_streams_are_busy_counts_once),
        cmocka_unit_test(what_sticks_out_of_an_op_is_busy_too),
        cmocka_unit_test(an_empty_profile_says_what_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
