#include "shard/store/memory_log.h"

#include "tests/unit/unit.h"

struct fixture {
    struct xp_arena *a;
    struct xp_bump out;
    struct memory_pen pen;
};

static int setup(void **state)
{
    static struct fixture f;
    f.a = xp_arena_new(NULL);
    xp_bump_init(&f.out, f.a);
    memory_pen_reset(&f.pen);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    xp_arena_free(((struct fixture *)*state)->a);
    return 0;
}

/* Of every kind: all fields at their ends, and rows that differ in one field from the last. */
static struct memory_row row_of(uint64_t i)
{
    uint64_t mix = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    struct memory_row row = {.at = i * 100, .begin_ps = (int64_t)i * 1000, .frees = i % 3 == 0};
    row.allocated = i % 7 == 0 ? INT64_MIN : (int64_t)(mix % 5000);
    row.heap = i % 11 == 0 ? INT64_MAX : (int64_t)(i * 64);
    row.reserved = i % 13 < 6 ? -(int64_t)i : 0;
    row.address = i % 5 == 0 ? UINT64_MAX : mix;
    row.duration_ps = i % 17 == 0 ? 500 : 0;
    row.allocator = i % 19 == 0 ? UINT32_MAX - 1 : (uint32_t)(i / 100);
    return row;
}

static const struct memory_log *logged(struct fixture *f, uint64_t n)
{
    const struct memory_log *log;
    for (uint64_t i = 0; i < n; i++) {
        struct memory_row row = row_of(i);
        assert_true(memory_pen_add(&f->pen, &row, &f->out));
    }
    assert_true(memory_pen_end(&f->pen, &f->out, &log));
    return log;
}

static void assert_row(const struct memory_row *is, const struct memory_row *want)
{
    assert_int_equal(is->at, want->at);
    assert_int_equal(is->begin_ps, want->begin_ps);
    assert_int_equal(is->duration_ps, want->duration_ps);
    assert_int_equal(is->reserved, want->reserved);
    assert_int_equal(is->heap, want->heap);
    assert_int_equal(is->allocated, want->allocated);
    assert_int_equal(is->address, want->address);
    assert_int_equal(is->allocator, want->allocator);
    assert_int_equal(is->frees, want->frees);
}

static void log_gives_back_what_was_added(void **state)
{
    struct memory_cursor c;
    const struct memory_log *log = logged(*state, 10000);
    assert_int_equal(log->count, 10000);
    memory_log_open(&c, log);
    for (uint64_t i = 0; i < 10000; i++) {
        struct memory_row want = row_of(i);
        assert_true(memory_log_next(&c));
        assert_row(&c.row, &want);
    }
    assert_false(memory_log_next(&c));
    assert_false(memory_log_next(&c));
}

static void log_without_events_is_none(void **state)
{
    struct memory_cursor c;
    assert_null(logged(*state, 0));
    memory_log_open(&c, NULL);
    assert_false(memory_log_next(&c));
}

static void cut_log_has_what_is_in_the_range_and_cuts_it(void **state)
{
    struct fixture *f = *state;
    const struct memory_log *log = logged(f, 100), *cut, *none;
    struct memory_cursor c;
    /* 17 begins at 17000 and lasts 500: its rest is in the range; 51 goes on beyond it. */
    assert_true(memory_log_cut(log, 17100, 51200, &f->out, &cut));
    assert_int_equal(cut->count, 1 + 51 - 17);
    memory_log_open(&c, cut);
    assert_true(memory_log_next(&c));
    assert_int_equal(c.row.at, 1700);
    assert_int_equal(c.row.begin_ps, 17100);
    assert_int_equal(c.row.duration_ps, 400);
    for (uint64_t i = 18; i <= 51; i++) {
        struct memory_row want = row_of(i);
        if (i == 51)
            want.duration_ps = 200;
        assert_true(memory_log_next(&c));
        assert_row(&c.row, &want);
    }
    assert_false(memory_log_next(&c));
    assert_true(memory_log_cut(log, 200000, 300000, &f->out, &none));
    assert_null(none);
}

static void stats_and_acts_are_known_by_name(void **state)
{
    (void)state;
    assert_int_equal(memory_stat_of(XP_SPAN_LIT("addr")), MEMORY_ADDRESS);
    assert_int_equal(memory_stat_of(XP_SPAN_LIT("device_ordinal")), MEMORY_DEVICE_ORDINAL);
    assert_int_equal(memory_stat_of(XP_SPAN_LIT("address")), MEMORY_STATS);
    assert_int_equal(memory_act_of(XP_SPAN_LIT("MemoryDeallocation")), MEMORY_FREES);
    assert_int_equal(memory_act_of(XP_SPAN_LIT("memoryallocation")), MEMORY_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(log_gives_back_what_was_added, setup, teardown),
        cmocka_unit_test_setup_teardown(log_without_events_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(cut_log_has_what_is_in_the_range_and_cuts_it, setup,
                                        teardown),
        cmocka_unit_test(stats_and_acts_are_known_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
