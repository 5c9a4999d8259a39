#include "shard/tools/memory_view.h"
#include "tests/unit/hlo_make.h"
#include "tests/unit/unit.h"

/* A temporary allocation of 3 MiB, played by a trace, and a parameter's of 1 MiB. */
#define MIB (1 << 20)
#define MIB_FLOATS (MIB / 4)

struct fixture {
    struct xp_arena *a;
    struct hlo_make k;
    struct xp_buf trace;
    struct memory_view v;
    struct xp_error err;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->a = xp_arena_new(NULL);
    hlo_make_init(&f->k);
    xp_buf_init(&f->trace, (size_t)1 << 20);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    hlo_make_fini(&f->k);
    xp_buf_fini(&f->trace);
    xp_arena_free(f->a);
    free(f);
    return 0;
}

static void put_buffer(struct fixture *f, uint64_t id, uint64_t instr)
{
    struct xp_buf b, place;
    xp_buf_init(&b, 4096);
    xp_buf_init(&place, 4096);
    xp_pb_put_u64(&place, 4, instr);
    xp_pb_put_u64(&b, 1, id);
    xp_pb_put_u64(&b, 2, MIB);
    put_message(&b, 3, &place);
    put_message(&f->k.buffers, 1, &b);
    xp_buf_fini(&b);
    xp_buf_fini(&place);
}

/* Buffers first .. last, one behind the other. */
static void put_allocation(struct fixture *f, uint64_t index, bool parameter, uint64_t first,
                           uint64_t last)
{
    struct xp_buf b, assigned;
    xp_buf_init(&b, 4096);
    xp_buf_init(&assigned, 4096);
    xp_pb_put_u64(&b, 1, index);
    xp_pb_put_u64(&b, 2, (last - first + 1) * MIB);
    xp_pb_put_u64(&b, 5, parameter);
    for (uint64_t id = first; id <= last; id++) {
        xp_pb_put_u64(&assigned, 1, id);
        xp_pb_put_u64(&assigned, 2, (id - first) * MIB);
        xp_pb_put_u64(&assigned, 3, MIB);
        put_message(&b, 9, &assigned);
    }
    put_message(&f->k.buffers, 3, &b);
    xp_buf_fini(&b);
    xp_buf_fini(&assigned);
}

static void put_event(struct fixture *f, uint32_t kind, uint64_t id, uint64_t share_with)
{
    struct xp_buf e;
    xp_buf_init(&e, 4096);
    xp_pb_put_u64(&e, 1, kind);
    xp_pb_put_u64(&e, 2, id);
    put_text(&e, 4, "step");
    xp_pb_put_u64(&e, 5, share_with);
    put_message(&f->trace, 1, &e);
    xp_buf_fini(&e);
}

/* The view of a module with the events put so far. */
static enum xp_status view(struct fixture *f)
{
    struct hlo_module *m;

    add_parameter(&f->k, 1, "p", 0, DIMS(MIB_FLOATS));
    add_instr(&f->k, 2, "a", "negate", DIMS(MIB_FLOATS), OPS(1));
    add_instr(&f->k, 3, "b", "negate", DIMS(MIB_FLOATS / 2), OPS(2));
    add_instr(&f->k, 4, "c", "negate", DIMS(MIB_FLOATS), OPS(3));
    end_comp(&f->k, 1, "main", 4);
    for (uint64_t id = 1; id <= 4; id++)
        put_buffer(f, id, id);
    put_allocation(f, 0, true, 1, 1);
    put_allocation(f, 1, false, 2, 4);
    xp_pb_put_u64(&f->trace, 3, 1);
    put_message(&f->k.buffers, 4, &f->trace);
    assert_int_equal(hlo_decode(end_module(&f->k, "m", 1, f->a), f->a, &m, &f->err), XP_OK);
    return memory_view_make(m, 0, f->a, &f->v, &f->err);
}

static void test_heap_rises_and_falls(void **state)
{
    struct fixture *f = *state;
    put_event(f, HLO_HEAP_ALLOC, 2, 0);
    put_event(f, HLO_HEAP_ALLOC, 3, 0);
    put_event(f, HLO_HEAP_FREE, 2, 0);
    put_event(f, HLO_HEAP_FREE, 3, 0);
    assert_int_equal(view(f), XP_OK);
    static const int64_t heap[] = {0, MIB, 2 * MIB, MIB, 0};
    assert_int_equal(f->v.nsteps, 5);
    assert_memory_equal(f->v.heap, heap, sizeof heap);
    assert_int_equal(f->v.peak, 2 * MIB);
    assert_int_equal(f->v.peak_unpadded, MIB + MIB / 2);
    assert_int_equal(f->v.peak_step, 1); /* the event that reaches it */
}

static void test_parameters_stay(void **state)
{
    struct fixture *f = *state;
    put_event(f, HLO_HEAP_ALLOC, 2, 0);
    put_event(f, HLO_HEAP_FREE, 2, 0);
    assert_int_equal(view(f), XP_OK);
    assert_int_equal(f->v.indefinite, MIB);
    assert_int_equal(f->v.nobjects, 2);
    assert_true(memory_is_indefinite(&f->v.m->allocations[0]));
    assert_false(memory_is_indefinite(&f->v.m->allocations[1]));
    assert_string_equal(memory_category(&f->v.m->allocations[0]), "Parameter");
}

static void test_shared_memory_counts_once(void **state)
{
    struct fixture *f = *state;
    put_event(f, HLO_HEAP_ALLOC, 2, 0);
    put_event(f, HLO_HEAP_SHARE, 4, 2);
    put_event(f, HLO_HEAP_FREE, 2, 0);
    put_event(f, HLO_HEAP_FREE, 4, 0);
    assert_int_equal(view(f), XP_OK);
    static const int64_t heap[] = {0, MIB, MIB, MIB, 0};
    assert_int_equal(f->v.nsteps, 5);
    assert_memory_equal(f->v.heap, heap, sizeof heap);
    assert_int_equal(f->v.peak, MIB);
}

static void test_freed_twice(void **state)
{
    struct fixture *f = *state;
    put_event(f, HLO_HEAP_ALLOC, 2, 0);
    put_event(f, HLO_HEAP_FREE, 2, 0);
    put_event(f, HLO_HEAP_FREE, 2, 0);
    assert_int_equal(view(f), XP_NOT_FOUND);
}

static void test_unknown_buffer(void **state)
{
    struct fixture *f = *state;
    put_event(f, HLO_HEAP_ALLOC, 99, 0);
    put_event(f, HLO_HEAP_SHARE, 2, 98);
    enum xp_status st = view(f);
    assert_true(st == XP_OK || st == XP_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_heap_rises_and_falls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_parameters_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shared_memory_counts_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_freed_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unknown_buffer, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
