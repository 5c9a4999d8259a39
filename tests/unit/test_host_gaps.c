#include "shard/stats/host_gaps.h"

#include <stdlib.h>
#include <unistd.h>

#include "shard/part_open.h"
#include "tests/unit/unit.h"
#include "tests/unit/xspace_make.h"

#define US INT64_C(1000000)

enum { STEP = 1, LOAD, PARSE, BLOCK, NEXT };

/* A gap of 100 us at 1000, one of 50 at 2000. */
static const struct figure_span gaps[] = {{1000 * US, 1100 * US}, {2000 * US, 2050 * US}};

/* main: the step, in it a loader's call and a wait; worker: 60 us of parsing in a load that begins
 * before the gap, and ten in the second gap. */
static struct part_file *profile(void)
{
    struct xp_buf space = make_message(), plane = make_plane(1, "/host:CPU");
    struct xp_buf main = make_line(1, "main", 0), worker = make_line(2, "worker", 0);
    struct xp_error err = {0};
    struct part_file *file;
    make_add_event(&main, STEP, 900 * US, 250 * US);
    make_add_event(&main, NEXT, 1000 * US, 90 * US);
    make_add_event(&main, BLOCK, 2000 * US, 50 * US);
    make_add_event(&worker, LOAD, 990 * US, 100 * US);
    make_add_event(&worker, PARSE, 1020 * US, 60 * US);
    make_add_event(&worker, PARSE, 1990 * US, 20 * US);
    make_put(&plane, 3, &main);
    make_put(&plane, 3, &worker);
    make_add_meta(&plane, 4, STEP, "train");
    make_add_meta(&plane, 4, LOAD, "load");
    make_add_meta(&plane, 4, PARSE, "parse");
    make_add_meta(&plane, 4, BLOCK, "BlockUntilReady");
    make_add_meta(&plane, 4, NEXT, "DataLoader.__next__");
    make_put(&space, 1, &plane);
    char *path = make_file(xp_buf_all(&space));
    xp_buf_fini(&space);
    assert_int_equal(part_open_file(path, NULL, NULL, &file, &err), XP_OK);
    unlink(path);
    free(path);
    return file;
}

static const struct host_gap_row *row_of(const struct host_gap_row *v, uint32_t n,
                                         const char *event)
{
    for (uint32_t i = 0; i < n; i++)
        if (xp_span_eq(v[i].event, xp_span_str(event)))
            return &v[i];
    fail_msg("there is no %s", event);
    return NULL;
}

static void events_in_gaps_count_less_what_lies_in_them(void **state)
{
    struct part_file *f = profile();
    struct xp_arena *a = xp_arena_new(NULL);
    struct host_gap_row *v;
    uint32_t n;
    (void)state;
    assert_int_equal(
        host_gaps_find(part_file_part(f), gaps, 2, XP_SPAN_LIT("train"), a, &v, &n, NULL), XP_OK);
    assert_int_equal(n, 5);
    const struct host_gap_row *parse = row_of(v, n, "parse"), *load = row_of(v, n, "load");
    assert_int_equal(parse->self_ps, 70 * US);
    assert_int_equal(parse->gaps, 2);
    assert_int_equal(parse->most, 0);
    assert_int_equal(parse->kind, HOST_GAP_WORK);
    assert_true(xp_span_eq(parse->thread, XP_SPAN_LIT("worker")));
    assert_int_equal(load->self_ps, 30 * US); /* 90 in the gap, 60 of them parsing */
    assert_int_equal(row_of(v, n, "train")->self_ps, 10 * US);
    assert_int_equal(row_of(v, n, "train")->kind, HOST_GAP_AROUND);
    assert_int_equal(row_of(v, n, "DataLoader.__next__")->kind, HOST_GAP_INPUT);
    assert_int_equal(row_of(v, n, "BlockUntilReady")->kind, HOST_GAP_WAITS);
    xp_arena_free(a);
    part_close(f);
}

static void the_busiest_is_who_works_not_who_waits_for_that(void **state)
{
    struct part_file *f = profile();
    struct xp_arena *a = xp_arena_new(NULL);
    struct host_gap_row *v;
    uint32_t n;
    (void)state;
    assert_int_equal(
        host_gaps_find(part_file_part(f), gaps, 2, (struct xp_span){0}, a, &v, &n, NULL), XP_OK);
    assert_true(xp_span_eq(v[0].event, XP_SPAN_LIT("DataLoader.__next__"))); /* 90 us */
    assert_ptr_equal(host_gaps_busiest(v, n, 150 * US), row_of(v, n, "parse"));
    assert_ptr_equal(host_gaps_busiest(v, n, 800 * US), &v[0]); /* work is less than a tenth */
    assert_null(host_gaps_busiest(v, n, 5000 * US));
    xp_arena_free(a);
    part_close(f);
}

static void only_whole_words_of_a_name_say_that_it_waits(void **state)
{
    static const struct {
        const char *name;
        uint8_t kind;
    } of[] = {
        {"TokenizeBlocksNow", HOST_GAP_WORK},
        {"ReadBlock", HOST_GAP_WORK},
        {"TransformerBlock.__call__", HOST_GAP_WORK},
        {"block host", HOST_GAP_WORK},
        {"reacquired", HOST_GAP_WORK},
        {"IdlenessReport", HOST_GAP_WORK},
        {"Thread::Block", HOST_GAP_WAITS},
        {"x.block_until_ready", HOST_GAP_WAITS},
        {"BlockHostUntilDone", HOST_GAP_WAITS},
        {"BlockingCounter", HOST_GAP_WAITS},
        {"ThreadPoolWaitForTasks", HOST_GAP_WAITS},
        {"XLAWait", HOST_GAP_WAITS},
        {"pthread_cond_wait", HOST_GAP_WAITS},
        {"<method 'acquire' of lock>", HOST_GAP_WAITS},
    };
    enum { N = sizeof of / sizeof *of };
    struct xp_buf space = make_message(), plane = make_plane(1, "/host:CPU");
    struct xp_buf line = make_line(1, "main", 0);
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_error err = {0};
    struct part_file *f;
    struct host_gap_row *v;
    uint32_t n;
    (void)state;
    for (int i = 0; i < N; i++)
        make_add_event(&line, i + 1, (1000 + i) * US, US);
    make_put(&plane, 3, &line);
    for (int i = 0; i < N; i++)
        make_add_meta(&plane, 4, i + 1, of[i].name);
    make_put(&space, 1, &plane);
    char *path = make_file(xp_buf_all(&space));
    xp_buf_fini(&space);
    assert_int_equal(part_open_file(path, NULL, NULL, &f, &err), XP_OK);
    unlink(path);
    free(path);
    assert_int_equal(
        host_gaps_find(part_file_part(f), gaps, 2, (struct xp_span){0}, a, &v, &n, NULL), XP_OK);
    for (int i = 0; i < N; i++)
        if (row_of(v, n, of[i].name)->kind != of[i].kind)
            fail_msg("%s", of[i].name);
    xp_arena_free(a);
    part_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_in_gaps_count_less_what_lies_in_them),
        cmocka_unit_test(the_busiest_is_who_works_not_who_waits_for_that),
        cmocka_unit_test(only_whole_words_of_a_name_say_that_it_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
