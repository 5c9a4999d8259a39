/* Every tool with map and merge: joining partials knows no order, and nothing joined changes
 * nothing. Judged by the answers, so that partials may hold things in any order. */
#include <stdlib.h>
#include <unistd.h>

#include "shard/part_open.h"
#include "shard/tools/tool.h"
#include "tests/unit/unit.h"
#include "tests/unit/xspace_make.h"

#define HOSTS 3
#define US INT64_C(1000000)

static const char *const ids[] = {
#define TOOL(symbol, id, title, view, hosts) id,
#include "shard/tools/tools.def"
#undef TOOL
};

enum { PROGRAM_ID = 1, SYMBOL_ID, CATEGORY, FLOPS, GROUP, ROOT };

static void add_stat(struct xp_buf *to, uint32_t field, int64_t id, int64_t v)
{
    struct xp_buf s = make_stat_i64(id, v);
    make_put(to, field, &s);
}

static void add_op(struct xp_buf *plane, int64_t id, const char *name, const char *category)
{
    struct xp_buf entry = make_message(), meta = make_message(), s = make_message();
    xp_pb_put_u64(&meta, 1, (uint64_t)id);
    make_text(&meta, 2, name);
    make_text(&meta, 4, name);
    add_stat(&meta, 5, PROGRAM_ID, 9);
    add_stat(&meta, 5, SYMBOL_ID, id);
    add_stat(&meta, 5, FLOPS, 1000 * id);
    xp_pb_put_u64(&s, 1, CATEGORY);
    make_text(&s, 5, category);
    make_put(&meta, 5, &s);
    xp_pb_put_u64(&entry, 1, (uint64_t)id);
    make_put(&entry, 2, &meta);
    make_put(plane, 4, &entry);
}

static void add_names(struct xp_buf *plane)
{
    make_add_meta(plane, 5, PROGRAM_ID, "program_id");
    make_add_meta(plane, 5, SYMBOL_ID, "symbol_id");
    make_add_meta(plane, 5, CATEGORY, "hlo_category");
    make_add_meta(plane, 5, FLOPS, "flops");
    make_add_meta(plane, 5, GROUP, "group_id");
    make_add_meta(plane, 5, ROOT, "_r");
}

/* A host with one TPU core, two steps, and a thread; k makes it its own. */
static struct part_file *host(uint32_t k)
{
    struct xp_buf space = make_message(), tpu = make_plane(2, "/device:TPU:0"),
                  cpu = make_plane(1, "/host:CPU");
    struct xp_buf steps = make_line(1, "Steps", 0), ops = make_line(2, "XLA Ops", 0),
                  thread = make_line(3, "main", 0);
    struct part_file *f;
    struct xp_error err = {0};
    add_names(&tpu);
    add_op(&tpu, 1, "fusion.1", "loop fusion");
    add_op(&tpu, 2 + k, k ? "copy.2" : "infeed.2", k ? "copy" : "infeed");
    make_add_meta(&cpu, 4, 1, "train:Train");
    add_names(&cpu);
    for (int64_t i = 0; i < 2; i++) {
        int64_t at = i * 100 * US, long_us = 20 + 5 * k;
        struct xp_buf ev = make_event(50 + i, at, 90 * US);
        add_stat(&ev, 4, GROUP, i);
        make_put(&steps, 4, &ev);
        for (int64_t n = 0; n < 2; n++) {
            ev = make_event(n ? 2 + k : 1, at + n * 40 * US, long_us * US);
            add_stat(&ev, 4, GROUP, i);
            make_put(&ops, 4, &ev);
        }
        make_add_event(&thread, 1, at, 80 * US);
    }
    make_put(&tpu, 3, &steps);
    make_put(&tpu, 3, &ops);
    make_put(&cpu, 3, &thread);
    make_put(&space, 1, &tpu);
    make_put(&space, 1, &cpu);
    char *path = make_file(xp_buf_all(&space)), *named = NULL;
    assert_true(asprintf(&named, "%s.xplane.pb", path) > 0);
    assert_int_equal(rename(path, named), 0);
    assert_int_equal(part_open_file(named, NULL, NULL, &f, &err), XP_OK);
    unlink(named);
    free(path);
    free(named);
    xp_buf_fini(&space);
    return f;
}

struct rig {
    const struct tool *t;
    struct xp_arena *a;
    struct tool_args args;
    struct xp_span one[HOSTS];
};

static struct xp_span join(struct rig *r, struct xp_span x, struct xp_span y)
{
    struct xp_span both = {0};
    struct xp_error err = {0};
    assert_int_equal(r->t->merge(x, y, r->a, &both, &err), XP_OK);
    return both;
}

/* The answer's text, or "-" with the status where a tool has none. */
static char *answer(struct rig *r, struct xp_span merged)
{
    struct xp_error err = {0};
    struct out o;
    uint8_t *body;
    size_t n;
    bool encoded;
    char *text;
    out_init(&o, NULL);
    enum xp_status st = r->t->render(merged, &r->args, r->a, &o, &err);
    if (st != XP_OK) {
        out_fini(&o);
        assert_true(asprintf(&text, "- %d", (int)st) > 0);
        return text;
    }
    assert_int_equal(out_finish(&o, &body, &n, &encoded, &err), XP_OK);
    text = calloc(1, n + 1);
    memcpy(text, body, n);
    free(body);
    out_fini(&o);
    return text;
}

static void same(struct rig *r, struct xp_span x, struct xp_span y)
{
    char *a = answer(r, x), *b = answer(r, y);
    if (strcmp(a, b) != 0)
        fail_msg("%s: orders differ:\n%s\n%s", r->t->id, a, b);
    free(a);
    free(b);
}

static void check_tool(const struct tool *t, struct part_file *const *f)
{
    struct rig r = {.t = t, .a = xp_arena_new(NULL)};
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct tool_host h = {part_file_part(f[i]), XP_SPAN_LIT("h"), i};
        struct xp_error err = {0};
        if (t->map(&h, &r.args, r.a, &r.one[i], &err) != XP_OK)
            fail_msg("%s: map: %s", t->id, err.text);
    }
    struct xp_span none = {0}, *v = r.one;
    same(&r, join(&r, none, v[0]), v[0]);
    same(&r, join(&r, v[0], none), v[0]);
    struct xp_span all = join(&r, join(&r, v[0], v[1]), v[2]);
    same(&r, all, join(&r, v[0], join(&r, v[1], v[2])));
    same(&r, all, join(&r, join(&r, v[2], v[0]), v[1]));
    same(&r, all, join(&r, v[1], join(&r, v[2], v[0])));
    xp_arena_free(r.a);
}

static void partials_join_in_any_order(void **state)
{
    struct part_file *f[HOSTS];
    int checked = 0;
    (void)state;
    for (uint32_t i = 0; i < HOSTS; i++)
        f[i] = host(i);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const struct tool *t = tool_find(xp_span_str(ids[i]));
        assert_non_null(t);
        if (!t->map)
            continue;
        check_tool(t, f);
        checked++;
    }
    assert_true(checked >= 5);
    for (uint32_t i = 0; i < HOSTS; i++)
        part_close(f[i]);
}

static void foreign_bytes_are_no_partial(void **state)
{
    (void)state;
    static const uint8_t bytes[][4] = {
        {0xff, 0xff, 0xff, 0xff}, {0x0a, 0x7f, 1, 2}, {0x12, 2, 8, 1}};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const struct tool *t = tool_find(xp_span_str(ids[i]));
        for (size_t k = 0; t->map && k < 3; k++) {
            struct rig r = {.t = t, .a = xp_arena_new(NULL)};
            struct xp_span both, x = xp_span_of(bytes[k], 4);
            struct xp_error err = {0};
            free(answer(&r, x));
            (void)t->merge(x, x, r.a, &both, &err);
            xp_arena_free(r.a);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partials_join_in_any_order),
        cmocka_unit_test(foreign_bytes_are_no_partial),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
