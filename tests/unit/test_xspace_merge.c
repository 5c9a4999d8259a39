/* Records of a capture, each an XSpace, made one: by hand, and read back field by field. */
#include "shard/decode/xspace_merge.h"
#include "tests/unit/unit.h"
#include "tests/unit/xspace_make.h"

#define BEGIN_NS INT64_C(1770000000000000000)

static enum xp_status add(void *ctx, struct xp_span s, struct xp_error *err)
{
    (void)err;
    xp_buf_span(ctx, s);
    return XP_OK;
}

static enum xp_status set(void *ctx, uint64_t at, struct xp_span s, struct xp_error *err)
{
    struct xp_buf *b = ctx;
    (void)err;
    assert_true(at + s.n <= b->n);
    memcpy(b->p + at, s.p, s.n);
    return XP_OK;
}

/* Frees the records' bytes and gives those of the one XSpace. */
static struct xp_buf merged(struct xp_buf *records, enum xp_status want)
{
    struct xp_arena *scratch = xp_arena_new(NULL);
    struct xp_buf all = make_message();
    const struct xspace_merge_out out = {&all, add, set};
    struct xp_error err = {0};
    xp_buf_span(&all, xp_buf_all(records));
    assert_int_equal(xspace_merge(xp_buf_all(records), scratch, 1 << 20, &out, &err), want);
    xp_arena_free(scratch);
    xp_buf_fini(records);
    return all;
}

/* The i-th field of that number; an empty span when there are fewer. */
static struct xp_span field(struct xp_span message, uint32_t num, int i)
{
    struct xp_pb r = xp_pb_open(message);
    struct xp_pb_field f;
    while (xp_pb_next(&r, &f))
        if (f.num == num && f.type == XP_PB_LEN && i-- == 0)
            return f.bytes;
    assert_false(r.bad);
    return (struct xp_span){0};
}

static uint64_t number(struct xp_span message, uint32_t num)
{
    struct xp_pb r = xp_pb_open(message);
    struct xp_pb_field f;
    while (xp_pb_next(&r, &f))
        if (f.num == num && f.type == XP_PB_VARINT)
            return f.value;
    return 0;
}

static void assert_text(struct xp_span have, const char *want)
{
    assert_int_equal(have.n, strlen(want));
    assert_memory_equal(have.p, want, have.n);
}

/* A plane "d" with that line, added as a record. */
static void add_plane(struct xp_buf *records, struct xp_buf *line, int64_t meta_id,
                      const char *meta)
{
    struct xp_buf plane = make_plane(1, "d");
    if (line)
        make_put(&plane, 3, line);
    if (meta)
        make_add_meta(&plane, 4, meta_id, meta);
    make_put(records, 1, &plane);
}

static struct xp_buf line_with(int64_t id, const char *name, int64_t timestamp_ns, int64_t event)
{
    struct xp_buf line = make_line(id, name, timestamp_ns);
    make_add_event(&line, event, 1000, 10);
    return line;
}

static void parts_of_a_line_count_from_the_earliest(void **state)
{
    struct xp_buf records = make_message();
    struct xp_buf late = line_with(7, "ops", BEGIN_NS + 5, 1);
    struct xp_buf early = line_with(7, "ops", BEGIN_NS, 1);
    (void)state;
    add_plane(&records, &late, 1, "mul");
    add_plane(&records, &early, 1, "mul");
    struct xp_buf all = merged(&records, XP_OK);
    struct xp_span plane = field(xp_buf_all(&all), 1, 0), line = field(plane, 3, 0);
    assert_int_equal(field(xp_buf_all(&all), 1, 1).n, 0);
    assert_int_equal(field(plane, 3, 1).n, 0);
    assert_int_equal(number(line, 3), BEGIN_NS);
    assert_int_equal(number(field(line, 4, 0), 2), 1000 + 5000);
    assert_int_equal(number(field(line, 4, 1), 2), 1000);
    xp_buf_fini(&all);
}

static void metadata_of_another_meaning_gets_an_id_of_its_own(void **state)
{
    struct xp_buf records = make_message();
    struct xp_buf a = line_with(7, "ops", BEGIN_NS, 1), b = line_with(7, "ops", BEGIN_NS, 1);
    (void)state;
    add_plane(&records, &a, 1, "mul");
    add_plane(&records, &b, 1, "add");
    struct xp_buf all = merged(&records, XP_OK);
    struct xp_span plane = field(xp_buf_all(&all), 1, 0), line = field(plane, 3, 0);
    assert_int_equal(number(field(line, 4, 0), 1), 1);
    assert_int_equal(number(field(line, 4, 1), 1), 2);
    assert_text(field(field(field(plane, 4, 1), 2, 0), 2, 0), "add");
    assert_int_equal(number(field(plane, 4, 1), 1), 2);
    xp_buf_fini(&all);
}

static void line_without_events_says_nothing_of_the_beginning(void **state)
{
    struct xp_buf records = make_message();
    struct xp_buf full = line_with(7, "ops", BEGIN_NS, 1), empty = make_line(7, "ops", 0);
    (void)state;
    add_plane(&records, &empty, 1, "mul");
    add_plane(&records, &full, 1, "mul");
    struct xp_buf all = merged(&records, XP_OK);
    struct xp_span plane = field(xp_buf_all(&all), 1, 0), line = field(plane, 3, 0);
    assert_int_equal(number(line, 3), BEGIN_NS);
    assert_int_equal(number(field(line, 4, 0), 2), 1000);
    assert_int_equal(field(plane, 3, 1).n, 0);
    xp_buf_fini(&all);
}

static void lines_of_one_id_but_other_names_or_times_stay_apart(void **state)
{
    struct xp_buf records = make_message();
    struct xp_buf a = line_with(0, "a", BEGIN_NS, 1), b = line_with(0, "b", BEGIN_NS, 1);
    struct xp_buf far = line_with(0, "a", 0, 1), same = line_with(0, "a", 0, 1);
    (void)state;
    add_plane(&records, &a, 1, "mul");
    add_plane(&records, &b, 1, "mul");
    add_plane(&records, &far, 1, "mul");
    add_plane(&records, &same, 1, "mul");
    struct xp_buf all = merged(&records, XP_OK);
    struct xp_span plane = field(xp_buf_all(&all), 1, 0);
    assert_text(field(field(plane, 3, 0), 2, 0), "a");
    assert_text(field(field(plane, 3, 1), 2, 0), "b");
    assert_text(field(field(plane, 3, 2), 2, 0), "a");
    assert_int_equal(number(field(plane, 3, 0), 3), BEGIN_NS);
    assert_int_equal(number(field(plane, 3, 2), 3), 0);
    assert_true(field(field(plane, 3, 2), 4, 1).n > 0);
    assert_int_equal(field(plane, 3, 3).n, 0);
    xp_buf_fini(&all);
}

static void what_is_there_once_stays_as_it_is(void **state)
{
    struct xp_buf records = make_message(), copy = make_message();
    struct xp_buf line = line_with(7, "ops", BEGIN_NS, 1);
    (void)state;
    add_plane(&records, &line, 1, "mul");
    make_text(&records, 4, "host");
    xp_buf_span(&copy, xp_buf_all(&records));
    make_text(&records, 4, "host");
    struct xp_buf all = merged(&records, XP_OK);
    assert_memory_equal(all.p, copy.p, copy.n);
    assert_text(field(xp_buf_all(&all), 4, 0), "host");
    assert_int_equal(field(xp_buf_all(&all), 4, 1).n, 0);
    xp_buf_fini(&copy);
    xp_buf_fini(&all);
}

static void an_entry_larger_than_allowed_is_refused(void **state)
{
    struct xp_buf records = make_message();
    char *name = calloc(1, (2 << 20) + 1);
    (void)state;
    assert_non_null(name);
    memset(name, 'x', 2 << 20);
    add_plane(&records, NULL, 1, name);
    add_plane(&records, NULL, 1, name);
    struct xp_buf all = merged(&records, XP_BUSY);
    xp_buf_fini(&all);
    free(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_a_line_count_from_the_earliest),
        cmocka_unit_test(metadata_of_another_meaning_gets_an_id_of_its_own),
        cmocka_unit_test(line_without_events_says_nothing_of_the_beginning),
        cmocka_unit_test(lines_of_one_id_but_other_names_or_times_stay_apart),
        cmocka_unit_test(what_is_there_once_stays_as_it_is),
        cmocka_unit_test(an_entry_larger_than_allowed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
