#include "shard/derive/device_time.h"

#include <unistd.h>

#include "shard/part_open.h"
#include "tests/unit/tool_support.h"

#define US INT64_C(1000000)
#define EVENTS 3000

enum { OFFSET = 1, DURATION, BYTES };
static const char *const stats[] = {"device_offset_ps", "device_duration_ps", "bytes"};

/* Events with both times, in this order or that, with one of them, with none. */
static void add(struct xp_buf *line, int i)
{
    int64_t begin = i * US, shift = i < 100 ? 5 : 5 + i % 3, longer = i % 7 ? i % 4 : -3;
    struct xp_buf ev = make_event(1, begin, US / 2);
    if (i % 11 == 0)
        put_i64(&ev, 4, BYTES, i);
    if (i % 5 == 4)
        put_i64(&ev, 4, DURATION, US / 2 + longer);
    if (i % 13)
        put_i64(&ev, 4, OFFSET, begin + shift);
    if (i % 5 != 4)
        put_i64(&ev, 4, DURATION, US / 2 + longer);
    make_put(line, 4, &ev);
}

static struct part_file *open_ops(void)
{
    struct xp_buf space = make_message(), plane = make_plane(2, "/device:TPU:0");
    struct part_file *f;
    struct xp_error err;
    put_stat_names(&plane, stats, BYTES);
    make_add_meta(&plane, 4, 1, "fusion");
    const char *const names[] = {"XLA Ops", "Steps", "XLA Modules"};
    for (int k = 0; k < 3; k++) {
        struct xp_buf line = make_line(k + 1, names[k], 1000 * (k + 1));
        for (int i = 0; i < (k ? 10 : EVENTS); i++)
            add(&line, i);
        make_put(&plane, 3, &line);
    }
    make_put(&space, 1, &plane);
    char *path = make_file(xp_buf_all(&space));
    assert_int_equal(part_open_file(path, NULL, NULL, &f, &err), XP_OK);
    unlink(path);
    free(path);
    xp_buf_fini(&space);
    return f;
}

static void times_read_later_are_those_of_the_load(void **state)
{
    (void)state;
    struct part_file *f = open_ops();
    struct part *p = part_file_part(f);
    const struct device_times *was[3];
    struct xp_error err;
    assert_int_equal(p->nlines, 3);
    for (int k = 0; k < 3; k++) {
        was[k] = p->lines[k].device;
        p->lines[k].device = NULL;
        assert_true(device_time_wanted(part_str(p, p->lines[k].name)) == (was[k] != NULL));
    }
    assert_int_equal(device_times_get(p, &err), XP_OK);
    assert_null(p->lines[0].device); /* nothing had been left */
    p->device_later = true;
    assert_int_equal(device_times_get(p, &err), XP_OK);
    assert_int_equal(device_times_get(p, &err), XP_OK);
    for (int k = 0; k < 3; k++) {
        struct device_cursor a, b;
        assert_true((was[k] != NULL) == (p->lines[k].device != NULL));
        device_open(&a, was[k], p->lines[k].base_ps);
        device_open(&b, p->lines[k].device, p->lines[k].base_ps);
        for (int i = 0; i < (k ? 10 : EVENTS); i++) {
            uint64_t shift[2], longer[2];
            device_next(&a, &shift[0], &longer[0]);
            device_next(&b, &shift[1], &longer[1]);
            assert_true(shift[0] == shift[1] && longer[0] == longer[1]);
        }
    }
    part_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_read_later_are_those_of_the_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
