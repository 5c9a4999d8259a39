#include "tests/unit/tool_support.h"

enum {
    ALLOCATOR = 1,
    RESERVED,
    HEAP,
    FREE,
    FRAGMENTATION,
    PEAK,
    REQUESTED,
    ALLOCATED,
    ADDRESS,
    OP,
    REGION,
    TYPE,
    SHAPE,
    ORDINAL
};
static const char *const stat_names[] = {"allocator_name",  "bytes_reserved",   "bytes_allocated",
                                         "bytes_available", "fragmentation",    "peak_bytes_in_use",
                                         "requested_bytes", "allocation_bytes", "addr",
                                         "tf_op",           "region_type",      "data_type",
                                         "shape",           "device_ordinal"};

struct mem {
    int64_t at, reserved, heap, allocated, address;
    const char *op;
    bool frees;
};

static void put_mem(struct xp_buf *line, const struct mem *m)
{
    struct xp_buf e = make_event(m->frees ? 2 : 1, m->at, 0);
    put_text(&e, 4, ALLOCATOR, "hbm");
    put_i64(&e, 4, RESERVED, m->reserved);
    put_i64(&e, 4, HEAP, m->heap);
    put_i64(&e, 4, FREE, (int64_t)(5000 - (uint64_t)m->heap - (uint64_t)m->reserved));
    put_i64(&e, 4, PEAK, 4321);
    put_i64(&e, 4, REQUESTED, (int64_t)((uint64_t)m->allocated - 1));
    put_i64(&e, 4, ALLOCATED, m->allocated);
    put_i64(&e, 4, ADDRESS, m->address);
    if (m->op) {
        put_text(&e, 4, OP, m->op);
        put_text(&e, 4, REGION, "temp");
        put_i64(&e, 4, TYPE, 14);
        put_text(&e, 4, SHAPE, "[8]");
    }
    make_put(line, 4, &e);
}

static struct tool_file profile_of(struct xp_buf *line)
{
    struct tool_file f = {"h", make_message()};
    struct xp_buf plane = make_plane(1, "/host:CPU");
    make_put(&plane, 3, line);
    make_add_meta(&plane, 4, 1, "MemoryAllocation");
    make_add_meta(&plane, 4, 2, "MemoryDeallocation");
    put_stat_names(&plane, stat_names, sizeof stat_names / sizeof stat_names[0]);
    make_put(&f.space, 1, &plane);
    return f;
}

static json_t *ask(const struct mem *m, size_t n)
{
    struct xp_buf line = make_line(1, "t", 0);
    for (size_t i = 0; i < n; i++)
        put_mem(&line, &m[i]);
    struct tool_file f = profile_of(&line);
    return tool_ask("memory_profile", &f, 1, NULL);
}

static json_t *allocator(json_t *j, const char *id)
{
    json_t *a = json_object_get(json_object_get(j, "memoryProfilePerAllocator"), id);
    assert_non_null(a);
    return a;
}

/* 64-bit numbers are texts. */
static long long num(json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key);
    assert_true(json_is_string(v));
    return atoll(json_string_value(v));
}

static const char *text(json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static json_t *activity(json_t *list, size_t i)
{
    return json_object_get(json_array_get(list, i), "activityMetadata");
}

static void the_peak_is_where_most_was_in_use(void **state)
{
    static const struct mem m[] = {{100, 0, 100, 100, 16, "a", false},
                                   {200, 0, 300, 200, 32, "b", false},
                                   {300, 0, 200, 100, 16, NULL, true}};
    (void)state;
    json_t *j = ask(m, 3), *a = allocator(j, "hbm");
    json_t *s = json_object_get(a, "profileSummary"), *peak = json_object_get(s, "peakStats");
    assert_int_equal(num(s, "peakStatsTimePs"), 200);
    assert_int_equal(num(peak, "peakBytesInUse"), 300);
    assert_int_equal(num(s, "memoryCapacity"), 5000);
    assert_int_equal(num(s, "peakBytesUsageLifetime"), 4321);
    json_t *active = json_object_get(a, "activeAllocations");
    json_t *shots = json_object_get(a, "memoryProfileSnapshots");
    assert_int_equal(json_array_size(active), 2);
    assert_string_equal(text(activity(shots, 0), "tfOpName"), "b"); /* the larger first */
    assert_string_equal(text(activity(shots, 1), "tfOpName"), "a");
    assert_string_equal(text(activity(shots, 1), "dataType"), "bfloat16");
    json_decref(j);
}

static void a_deallocation_is_described_by_its_allocation(void **state)
{
    static const struct mem m[] = {{100, 0, 100, 100, 16, "a", false},
                                   {300, 0, 0, 100, 16, NULL, true},
                                   {400, 0, 0, 100, 16, NULL, true}};
    (void)state;
    json_t *j = ask(m, 3);
    json_t *line = json_object_get(allocator(j, "hbm"), "sampledTimelineSnapshots");
    assert_int_equal(json_array_size(line), 3);
    assert_string_equal(text(activity(line, 1), "memoryActivity"), "DEALLOCATION");
    assert_string_equal(text(activity(line, 1), "tfOpName"), "a");
    assert_string_equal(text(activity(line, 2), "tfOpName"), ""); /* freed twice */
    json_decref(j);
}

static void heap_that_no_event_explains_and_the_stack_are_rows(void **state)
{
    static const struct mem m[] = {{100, 64, 1000, 100, 16, "a", false}};
    (void)state;
    json_t *j = ask(m, 1), *a = allocator(j, "hbm");
    json_t *active = json_object_get(a, "activeAllocations");
    json_t *specials = json_object_get(a, "specialAllocations");
    assert_int_equal(json_array_size(active), 3);
    assert_int_equal(num(json_array_get(active, 0), "snapshotIndex"), -1);
    assert_int_equal(num(json_array_get(active, 0), "specialIndex"), 0);
    assert_int_equal(num(json_array_get(active, 1), "snapshotIndex"), 0);
    assert_int_equal(num(json_array_get(active, 2), "snapshotIndex"), -2);
    assert_int_equal(num(json_array_get(specials, 0), "allocationBytes"), 900);
    assert_string_equal(text(json_array_get(specials, 0), "regionType"), "persist/dynamic");
    assert_int_equal(num(json_array_get(specials, 1), "allocationBytes"), 64);
    assert_string_equal(text(json_array_get(specials, 1), "tfOpName"), "stack");
    json_decref(j);
}

static void equal_allocations_are_one_row(void **state)
{
    static const struct mem m[] = {{100, 0, 10, 10, 1, "a", false},
                                   {110, 0, 20, 10, 2, "a", false},
                                   {120, 0, 30, 10, 3, "b", false},
                                   {130, 0, 40, 10, 4, "a", false}};
    (void)state;
    json_t *j = ask(m, 4), *active = json_object_get(allocator(j, "hbm"), "activeAllocations");
    assert_int_equal(json_array_size(active), 2);
    assert_int_equal(num(json_array_get(active, 0), "numOccurrences"), 3);
    assert_int_equal(num(json_array_get(active, 1), "numOccurrences"), 1);
    json_decref(j);
}

static void a_long_timeline_is_a_thousand_boxes(void **state)
{
    enum { N = 2500 };
    struct mem *m = calloc(N, sizeof *m);
    (void)state;
    for (int i = 0; i < N; i++)
        m[i] = (struct mem){i, 0, 1000 + (i * 7919) % 3000, 1, i, "a", false};
    json_t *j = ask(m, N);
    json_t *line = json_object_get(allocator(j, "hbm"), "sampledTimelineSnapshots");
    assert_int_equal(json_array_size(line), 1000);
    /* 500 boxes of two, then 500 of three; of each the largest. */
    for (int box = 0; box < 1000; box++) {
        int from = box < 500 ? 2 * box : 1000 + 3 * (box - 500), width = box < 500 ? 2 : 3;
        int64_t most = 0;
        for (int i = from; i < from + width; i++)
            most = m[i].heap > most ? m[i].heap : most;
        json_t *stats = json_object_get(json_array_get(line, (size_t)box), "aggregationStats");
        assert_int_equal(num(stats, "heapAllocatedBytes"), most);
    }
    json_decref(j);
    free(m);
}

static void allocators_without_a_name_go_by_their_device(void **state)
{
    struct xp_buf line = make_line(1, "t", 0), e = make_event(1, 5, 0);
    (void)state;
    put_i64(&e, 4, ORDINAL, 7);
    make_put(&line, 4, &e);
    struct tool_file f = profile_of(&line);
    json_t *j = tool_ask("memory_profile", &f, 1, NULL);
    assert_string_equal(json_string_value(json_array_get(json_object_get(j, "memoryIds"), 0)), "7");
    assert_string_equal(
        text(activity(json_object_get(allocator(j, "7"), "sampledTimelineSnapshots"), 0),
             "dataType"),
        "");
    json_decref(j);
}

static void absurd_numbers_are_answered(void **state)
{
    static const struct mem m[] = {{100, INT64_MIN, INT64_MIN, INT64_MIN, -1, "a", false},
                                   {100, INT64_MAX, INT64_MAX, INT64_MAX, -1, "b", false},
                                   {-50, -1, -1, -1, INT64_MIN, NULL, true}};
    (void)state;
    json_t *j = ask(m, 3);
    assert_int_equal(
        json_array_size(json_object_get(allocator(j, "hbm"), "sampledTimelineSnapshots")), 3);
    json_decref(j);
}

static void modules_that_ran_are_listed(void **state)
{
    struct tool_file f = {"h", make_message()};
    struct xp_buf host = make_plane(1, "/host:CPU"), tpu = make_plane(2, "/device:TPU:3");
    struct xp_buf line = make_line(1, "XLA Modules", 1000);
    (void)state;
    make_add_event(&line, 1, 500, 250);
    make_put(&tpu, 3, &line);
    make_add_meta(&tpu, 4, 1, "jit_f(1)");
    make_put(&f.space, 1, &host);
    make_put(&f.space, 1, &tpu);
    json_t *j = tool_ask("memory_profile", &f, 1, NULL);
    json_t *m = json_array_get(json_object_get(j, "hloModules"), 0);
    assert_string_equal(text(m, "name"), "jit_f(1)");
    assert_string_equal(text(m, "planeName"), "TPU:3");
    assert_int_equal(num(m, "startTimePs"), 500);
    assert_int_equal(num(m, "endTimePs"), 750);
    json_decref(j);
}

static void it_is_of_one_host_with_threads(void **state)
{
    struct tool_file two[2], none = {"h", make_message()};
    struct xp_buf tpu = make_plane(2, "/device:TPU:3");
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct xp_buf line = make_line(1, "t", 0);
        two[i] = profile_of(&line);
    }
    assert_int_equal(tool_refuses("memory_profile", two, 2, NULL), XP_NOT_FOUND);
    make_put(&none.space, 1, &tpu);
    assert_int_equal(tool_refuses("memory_profile", &none, 1, NULL), XP_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peak_is_where_most_was_in_use),
        cmocka_unit_test(a_deallocation_is_described_by_its_allocation),
        cmocka_unit_test(heap_that_no_event_explains_and_the_stack_are_rows),
        cmocka_unit_test(equal_allocations_are_one_row),
        cmocka_unit_test(a_long_timeline_is_a_thousand_boxes),
        cmocka_unit_test(allocators_without_a_name_go_by_their_device),
        cmocka_unit_test(absurd_numbers_are_answered),
        cmocka_unit_test(modules_that_ran_are_listed),
        cmocka_unit_test(it_is_of_one_host_with_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
