#include "tests/unit/steps_support.h"

#define MS INT64_C(1000000000)

enum { PROGRAM_ID = 1, SYMBOL_ID, CATEGORY, GROUP, DETAILS, TYPE };
static const char *const stat_names[] = {"program_id", "symbol_id",    "hlo_category",
                                         "group_id",   "core_details", "device_type_string"};

enum { FUSION = 1, INFEED, REDUCE, FIRST_STEP = 10 };

static void put_op(struct xp_buf *plane, int64_t id, const char *name, const char *category)
{
    struct xp_buf stats = make_message();
    put_u64(&stats, 5, PROGRAM_ID, 9);
    put_u64(&stats, 5, SYMBOL_ID, (uint64_t)id);
    put_text(&stats, 5, CATEGORY, category);
    put_meta(plane, id, name, name, &stats);
}

static void put_grouped(struct xp_buf *line, int64_t name, int64_t begin, int64_t end,
                        int64_t group)
{
    struct xp_buf e = make_event(name, begin, end - begin);
    put_i64(&e, 4, GROUP, group);
    make_put(line, 4, &e);
}

static void put_core(struct xp_buf *space, int core, int first, int steps)
{
    char name[32];
    snprintf(name, sizeof name, "/device:TPU:%d", core);
    struct xp_buf plane = make_plane(core + 1, name), details = make_message();
    struct xp_buf marks = make_line(1, "Steps", 0), ops = make_line(2, "XLA Ops", 0);
    for (int i = 0; i < steps; i++) {
        int64_t at = (first + i) * 100 * MS, wait = at + (core ? 50 : 40) * MS;
        put_grouped(&marks, FIRST_STEP + i, at, at + 100 * MS, i);
        put_grouped(&ops, FUSION, at, wait, i);
        put_grouped(&ops, INFEED, wait, at + 60 * MS, i);
        put_grouped(&ops, REDUCE, at + 60 * MS, at + 80 * MS, i);
        snprintf(name, sizeof name, "%d", i);
        make_add_meta(&plane, 4, FIRST_STEP + i, name);
    }
    make_put(&plane, 3, &marks);
    make_put(&plane, 3, &ops);
    put_op(&plane, FUSION, "fusion.1", "loop fusion");
    put_op(&plane, INFEED, "infeed.2", "infeed");
    put_op(&plane, REDUCE, "all-reduce.3", "all-reduce");
    put_stat_names(&plane, stat_names, sizeof stat_names / sizeof *stat_names);
    xp_pb_put_u64(&details, 2, (uint64_t)core); /* device ordinal */
    xp_pb_put_u64(&details, 4, (uint64_t)core); /* chip */
    put_blob(&plane, 6, DETAILS, xp_buf_all(&details));
    xp_buf_fini(&details);
    put_text(&plane, 6, TYPE, "TPU v5 Lite");
    make_put(space, 1, &plane);
}

struct tool_file tpu_host(const char *name, int first, int steps)
{
    struct tool_file f = {name, make_message()};
    struct xp_buf host = make_plane(9, "/host:CPU");
    put_stat_names(&host, stat_names, sizeof stat_names / sizeof *stat_names);
    put_core(&f.space, 0, first, steps);
    put_core(&f.space, 1, first, steps);
    make_put(&f.space, 1, &host);
    make_text(&f.space, 4, name);
    return f;
}

void assert_says(json_t *text, const char *start)
{
    const char *s = json_string_value(text);
    if (!s || strncmp(s, start, strlen(start)) != 0)
        fail_msg("have <%s>, want <%s...>", s ? s : "nothing", start);
}
