#include "tests/unit/tool_support.h"

#include <unistd.h>

#include "lib/base/gzip.h"
#include "shard/part_open.h"
#include "shard/tools/tool.h"

static struct xp_buf stat_of(int64_t id)
{
    struct xp_buf b = make_message();
    xp_pb_put_u64(&b, 1, (uint64_t)id);
    return b;
}

void put_i64(struct xp_buf *b, uint32_t field, int64_t id, int64_t v)
{
    struct xp_buf s = stat_of(id);
    xp_pb_put_u64(&s, 4, (uint64_t)v);
    make_put(b, field, &s);
}

void put_u64(struct xp_buf *b, uint32_t field, int64_t id, uint64_t v)
{
    struct xp_buf s = stat_of(id);
    xp_pb_put_u64(&s, 3, v);
    make_put(b, field, &s);
}

void put_double(struct xp_buf *b, uint32_t field, int64_t id, double v)
{
    struct xp_buf s = stat_of(id);
    xp_pb_put_double(&s, 2, v);
    make_put(b, field, &s);
}

void put_text(struct xp_buf *b, uint32_t field, int64_t id, const char *text)
{
    struct xp_buf s = stat_of(id);
    make_text(&s, 5, text);
    make_put(b, field, &s);
}

void put_blob(struct xp_buf *b, uint32_t field, int64_t id, struct xp_span bytes)
{
    struct xp_buf s = stat_of(id);
    xp_pb_put_bytes(&s, 6, bytes);
    make_put(b, field, &s);
}

void put_meta(struct xp_buf *plane, int64_t id, const char *name, const char *display,
              struct xp_buf *stats)
{
    struct xp_buf value = make_message(), entry = make_message();
    xp_pb_put_u64(&value, 1, (uint64_t)id);
    make_text(&value, 2, name);
    if (display)
        make_text(&value, 4, display);
    if (stats) {
        xp_buf_span(&value, xp_buf_all(stats));
        xp_buf_fini(stats);
    }
    xp_pb_put_u64(&entry, 1, (uint64_t)id);
    make_put(&entry, 2, &value);
    make_put(plane, 4, &entry);
}

void put_stat_names(struct xp_buf *plane, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        make_add_meta(plane, 5, (int64_t)i + 1, names[i]);
}

#define HOSTS_MAX 8

struct opened {
    char *path[HOSTS_MAX];
    struct part_file *file[HOSTS_MAX];
    struct tool_host host[HOSTS_MAX];
};

static void open_all(struct opened *o, struct tool_file *files, size_t n)
{
    struct xp_error err = {0};
    assert_true(n <= HOSTS_MAX);
    for (size_t i = 0; i < n; i++) {
        o->path[i] = make_file(xp_buf_all(&files[i].space));
        xp_buf_fini(&files[i].space);
        if (part_open_file(o->path[i], NULL, NULL, &o->file[i], &err) != XP_OK)
            fail_msg("%s", err.text);
        o->host[i] =
            (struct tool_host){part_file_part(o->file[i]), xp_span_str(files[i].host), (uint32_t)i};
    }
}

static void close_all(struct opened *o, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        part_close(o->file[i]);
        unlink(o->path[i]);
        free(o->path[i]);
    }
}

static struct xp_buf unzipped(const uint8_t *body, size_t n, bool encoded)
{
    struct xp_buf b;
    xp_buf_init(&b, (size_t)1 << 30);
    if (!encoded) {
        xp_buf_add(&b, body, n);
        return b;
    }
    struct xp_gunzip *g = xp_gunzip_new(xp_span_of(body, n));
    uint8_t piece[4096];
    size_t got;
    while (xp_gunzip_read(g, piece, sizeof piece, &got) == XP_OK && got)
        xp_buf_add(&b, piece, got);
    xp_gunzip_free(g);
    return b;
}

static enum xp_status run_report(const struct tool *t, const struct tool_host *hosts, size_t n,
                                 const struct tool_args *args, struct xp_arena *a, struct out *out,
                                 struct xp_error *err)
{
    struct tool_report r = tool_report_of(t);
    struct report_host sources[HOSTS_MAX];
    struct xp_span all = {0}, one;
    for (size_t i = 0; i < n; i++) {
        sources[i] = (struct report_host){.name = hosts[i].name};
        XP_TRY(r.map(&hosts[i], args, a, &one, err));
        XP_TRY(r.merge(all, one, a, &all, err));
    }
    return tool_report_run(t, sources, n, all, args, a, out, err);
}

enum how { TOOL, REPORT, AT_ONCE };

static enum xp_status run(const char *tool, enum how how, struct tool_file *files, size_t n,
                          const char *const *args, struct xp_buf *answer)
{
    struct opened o = {{0}, {0}, {{0}}};
    struct tool_arg list[16];
    struct tool_args a = {.args = list};
    struct xp_error err = {0};
    struct xp_arena *scratch = xp_arena_new(NULL);
    const struct tool *t = tool_find(xp_span_str(tool));
    struct out out;
    uint8_t *body = NULL;
    size_t size = 0;
    bool encoded = false;
    assert_non_null(t);
    open_all(&o, files, n);
    for (; args && args[a.n]; a.n++) {
        const char *eq = strchr(args[a.n], '=');
        list[a.n] =
            (struct tool_arg){xp_span_of(args[a.n], (size_t)(eq - args[a.n])), xp_span_str(eq + 1)};
    }
    out_init(&out, NULL);
    enum xp_status st = XP_OK;
    if (how == REPORT)
        st = run_report(t, o.host, n, &a, scratch, &out, &err);
    else if (how == AT_ONCE)
        st = t->answer(o.host, n, &a, scratch, &out, &err);
    else
        st = tool_run(t, o.host, n, &a, scratch, &out, &err);
    if (st == XP_OK)
        st = out_finish(&out, &body, &size, &encoded, &err);
    if (st == XP_OK && answer)
        *answer = unzipped(body, size, encoded);
    free(body);
    out_fini(&out);
    xp_arena_free(scratch);
    close_all(&o, n);
    return st;
}

enum xp_status tool_text(const char *tool, bool at_once, struct tool_file *files, size_t n,
                         const char *const *args, struct xp_buf *answer)
{
    return run(tool, at_once ? AT_ONCE : TOOL, files, n, args, answer);
}

static json_t *ask(const char *tool, enum how how, struct tool_file *files, size_t n,
                   const char *const *args)
{
    struct xp_buf answer;
    json_error_t why;
    assert_int_equal(run(tool, how, files, n, args, &answer), XP_OK);
    json_t *j = json_loadb((const char *)answer.p, answer.n, 0, &why);
    if (!j)
        fail_msg("no JSON: %s in %.*s", why.text, (int)answer.n, (const char *)answer.p);
    xp_buf_fini(&answer);
    return j;
}

json_t *tool_ask(const char *tool, struct tool_file *files, size_t n, const char *const *args)
{
    return ask(tool, TOOL, files, n, args);
}

json_t *report_ask(const char *tool, struct tool_file *files, size_t n, const char *const *args)
{
    return ask(tool, REPORT, files, n, args);
}

static json_t *with_id(json_t *list, const char *id)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(list, i), "id")), id) == 0)
            return json_array_get(list, i);
    fail_msg("there is no %s", id);
    return NULL;
}

json_t *report_value(json_t *doc, const char *metric)
{
    json_t *m = with_id(json_object_get(doc, "metrics"), metric);
    assert_int_equal(json_is_null(json_object_get(m, "value")),
                     json_is_string(json_object_get(m, "reason")));
    return json_object_get(m, "value");
}

size_t report_rows(json_t *doc, const char *table)
{
    return json_array_size(json_object_get(with_id(json_object_get(doc, "tables"), table), "rows"));
}

json_t *report_at(json_t *doc, const char *table, size_t row, const char *column)
{
    json_t *t = with_id(json_object_get(doc, "tables"), table),
           *cols = json_object_get(t, "columns");
    json_t *c = with_id(cols, column);
    for (size_t i = 0; i < json_array_size(cols); i++)
        if (json_array_get(cols, i) == c)
            return json_array_get(json_array_get(json_object_get(t, "rows"), row), i);
    return NULL;
}

bool report_notes(json_t *doc, const char *code)
{
    json_t *list = json_object_get(doc, "notes");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(list, i), "code")), code) == 0)
            return true;
    return false;
}

enum xp_status tool_refuses(const char *tool, struct tool_file *files, size_t n,
                            const char *const *args)
{
    enum xp_status st = run(tool, false, files, n, args, NULL);
    assert_int_not_equal(st, XP_OK);
    return st;
}

enum xp_status report_refuses(const char *tool, struct tool_file *files, size_t n,
                              const char *const *args)
{
    enum xp_status st = run(tool, REPORT, files, n, args, NULL);
    assert_int_not_equal(st, XP_OK);
    return st;
}

json_t *cell(json_t *table, size_t row, const char *column)
{
    json_t *cols = json_object_get(table, "cols");
    for (size_t i = 0; i < json_array_size(cols); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(cols, i), "id")), column) == 0)
            return json_object_get(
                json_array_get(
                    json_object_get(json_array_get(json_object_get(table, "rows"), row), "c"), i),
                "v");
    fail_msg("there is no column %s", column);
    return NULL;
}

double cell_num(json_t *table, size_t row, const char *column)
{
    json_t *v = cell(table, row, column);
    assert_true(json_is_number(v));
    return json_number_value(v);
}

const char *cell_text(json_t *table, size_t row, const char *column)
{
    json_t *v = cell(table, row, column);
    assert_true(json_is_string(v));
    return json_string_value(v);
}

size_t table_rows(json_t *table)
{
    return json_array_size(json_object_get(table, "rows"));
}

size_t row_with(json_t *table, const char *column, const char *text)
{
    for (size_t i = 0; i < table_rows(table); i++)
        if (strcmp(cell_text(table, i, column), text) == 0)
            return i;
    fail_msg("no row has %s", text);
    return 0;
}
