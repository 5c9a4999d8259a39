/* Every tool with map and merge: joining partials knows no order, nothing joined changes nothing,
 * and what is joined gives the answer over all hosts at once. Judged by the answers, so that
 * partials may hold things in any order; by the bytes where a tool has no answer of several hosts.
 */
#include <stdlib.h>
#include <unistd.h>

#include "shard/part_open.h"
#include "shard/tools/facts.h"
#include "shard/tools/range.h"
#include "shard/tools/tool.h"
#include "shard/tools/xprof_lists.h"
#include "tests/unit/tool_support.h"

#define HOSTS 3
#define DAMAGES 40 /* of each partial */
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
static struct xp_buf trains(uint32_t k)
{
    struct xp_buf space = make_message(), tpu = make_plane(2, "/device:TPU:0"),
                  cpu = make_plane(1, "/host:CPU");
    struct xp_buf steps = make_line(1, "Steps", 0), ops = make_line(2, "XLA Ops", 0),
                  thread = make_line(3, "main", 0);
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
    return space;
}

/* A server: requests of a model that each second host has of its own, in a batch; allocations. */
static struct xp_buf serves(uint32_t k)
{
    static const char *const names[] = {"_r",
                                        "_pt",
                                        "_p",
                                        "_ct",
                                        "_c",
                                        "model_id",
                                        "batching_input_task_size",
                                        "padding_amount",
                                        "batch_size_after_padding",
                                        "allocator_name",
                                        "bytes_allocated",
                                        "allocation_bytes",
                                        "addr"};
    enum { R = 1, PT, P, CT, C, MODEL, TASK, PADDING, SIZE, ALLOCATOR, HEAP, BYTES, ADDRESS };
    static const char *const events[] = {"BatchingSessionRun", "ScheduleWithoutSplit",
                                         "ProcessBatch",       "ConcatInputTensors",
                                         "MemoryAllocation",   "MemoryDeallocation"};
    struct xp_buf space = make_message(), cpu = make_plane(1, "/host:CPU");
    for (int64_t i = 0; i < 2; i++) {
        struct xp_buf line = make_line(i + 1, "t", 0), e;
        e = make_event(1, (1000 + 10 * i) * US, (100 + 7 * k) * US);
        put_i64(&e, 4, R, 1);
        put_i64(&e, 4, PT, 3);
        put_i64(&e, 4, P, 77);
        put_text(&e, 4, MODEL, k % 2 ? "odd:1" : "even:1");
        make_put(&line, 4, &e);
        e = make_event(2, (1015 + i) * US, US);
        put_i64(&e, 4, TASK, 2 + k);
        make_put(&line, 4, &e);
        e = make_event(5 + i, (2000 + i) * US, 0);
        put_text(&e, 4, ALLOCATOR, "hbm");
        put_i64(&e, 4, HEAP, 100 * (k + 1));
        put_i64(&e, 4, BYTES, 100);
        put_i64(&e, 4, ADDRESS, 4096);
        make_put(&line, 4, &e);
        make_put(&cpu, 3, &line);
    }
    struct xp_buf line = make_line(3, "batch", 0), e = make_event(3, 1025 * US, 50 * US);
    put_i64(&e, 4, R, 2);
    put_i64(&e, 4, CT, 3);
    put_i64(&e, 4, C, 77);
    put_text(&e, 4, MODEL, k % 2 ? "odd:1" : "even:1");
    make_put(&line, 4, &e);
    e = make_event(4, 1026 * US, US);
    put_i64(&e, 4, PADDING, 1);
    put_i64(&e, 4, SIZE, 8);
    make_put(&line, 4, &e);
    make_put(&cpu, 3, &line);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        make_add_meta(&cpu, 4, (int64_t)i + 1, events[i]);
    put_stat_names(&cpu, names, sizeof names / sizeof *names);
    make_put(&space, 1, &cpu);
    return space;
}

/* Counters of a TPU v6e, and steps whose cores wait at barriers. */
static struct xp_buf waits(uint32_t k)
{
    static const char *const names[] = {"device_id", "device_type_string", "counter_value",
                                        "performance_counter_id", "device_duration_ps"};
    static const uint64_t counters[] = {3257466888, 3257466888 + 520};
    char host[8] = {'h', (char)('0' + k)};
    struct xp_buf space = make_message(), tpu = make_plane(1, "/device:TPU:0"), e;
    struct xp_buf steps = make_line(1, "Steps", 0), ops = make_line(2, "XLA Ops", 0),
                  sample = make_line(3, "counters_k", 0);
    for (int64_t i = 0; i < 5; i++) {
        uint64_t ps = (uint64_t)((30 + 10 * k) * US);
        make_add_event(&steps, 1, 100 * US * (i + 1), 100 * US);
        e = make_event(2, 100 * US * (i + 1) + US, (int64_t)ps);
        put_u64(&e, 4, 5, ps);
        make_put(&ops, 4, &e);
    }
    for (int i = 0; i < 2; i++) {
        e = make_event(3, 0, 10 * US);
        put_u64(&e, 4, 3, i ? 10 + k : 1000);
        put_u64(&e, 4, 4, counters[i]);
        make_put(&sample, 4, &e);
    }
    make_put(&tpu, 3, &steps);
    make_put(&tpu, 3, &ops);
    make_put(&tpu, 3, &sample);
    make_add_meta(&tpu, 4, 1, "step");
    make_add_meta(&tpu, 4, 2, "barrier-cores.7");
    make_add_meta(&tpu, 4, 3, "a counter");
    put_stat_names(&tpu, names, sizeof names / sizeof *names);
    put_u64(&tpu, 6, 1, 5);
    put_text(&tpu, 6, 2, "TPU v6 Lite");
    make_put(&space, 1, &tpu);
    make_text(&space, 4, host);
    return space;
}

static void add_pair(struct xp_buf *in, const char *key, const char *value)
{
    struct xp_buf entry = make_message();
    make_text(&entry, 1, key);
    make_text(&entry, 2, value);
    make_put(in, 1, &entry);
}

/* send and recv-done of one rendezvous, the second k us later. */
static struct xp_buf sends(uint32_t k)
{
    static const char *const names[] = {"hlo_category"};
    static const char *const ops[] = {"send", "recv-done"};
    struct xp_buf space = make_message(), tpu = make_plane(1, "/device:TPU:0"),
                  cpu = make_plane(2, "/host:CPU"), hlo = make_plane(3, "/host:metadata");
    struct xp_buf runs = make_line(1, "XLA Modules", 0), line = make_line(2, "XLA Ops", 0);
    struct xp_buf proto = make_message(), module = make_message(), comp = make_message();
    make_text(&comp, 1, "main");
    make_add_event(&runs, 3, 0, 1000 * US);
    for (int i = 0; i < 2; i++) {
        struct xp_buf in = make_message(), attributes = make_message(), stats = make_message();
        make_text(&in, 1, ops[i]);
        make_text(&in, 2, ops[i]);
        xp_pb_put_u64(&in, 26, 9);
        xp_pb_put_u64(&in, 35, (uint64_t)i + 1);
        add_pair(&attributes, "_xla_host_transfer_rendezvous", k == 2 ? "ar.2" : "ar.1");
        make_put(&in, 68, &attributes);
        make_put(&comp, 2, &in);
        put_text(&stats, 5, 1, "host send");
        put_meta(&tpu, i + 1, ops[i], ops[i], &stats);
        make_add_event(&line, i + 1, (100 + i * (300 + k)) * US, 10 * US);
    }
    make_text(&module, 1, "jit_s");
    make_put(&module, 3, &comp);
    make_put(&proto, 1, &module);
    struct xp_buf stats = make_message();
    put_blob(&stats, 5, 1, xp_buf_all(&proto));
    xp_buf_fini(&proto);
    put_meta(&hlo, 5, "jit_s(5)", NULL, &stats);
    make_add_meta(&hlo, 5, 1, "Hlo Proto");
    make_add_meta(&tpu, 4, 3, "jit_s(5)");
    put_stat_names(&tpu, names, 1);
    make_add_meta(&cpu, 4, 1, "MegaScale: Send");
    make_put(&tpu, 3, &runs);
    make_put(&tpu, 3, &line);
    make_put(&space, 1, &tpu);
    make_put(&space, 1, &cpu);
    make_put(&space, 1, &hlo);
    return space;
}

static struct xp_buf (*const profiles[])(uint32_t k) = {trains, serves, waits, sends};
#define PROFILES (sizeof profiles / sizeof *profiles)

static struct part_file *host(struct xp_buf space)
{
    struct part_file *f;
    struct xp_error err = {0};
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
    struct tool_report
        report; /* of a tool that has one: that is looked at; else what its row has */
    bool is_report;
    struct xp_arena *a;
    struct tool_args args;
    struct xp_span one[HOSTS];
};

static struct xp_span join(struct rig *r, struct xp_span x, struct xp_span y)
{
    struct xp_span both = {0};
    struct xp_error err = {0};
    assert_int_equal(r->report.merge(x, y, r->a, &both, &err), XP_OK);
    return both;
}

/* Of what a tool wrote; "-" with the status where it has no answer. */
static char *text_of(struct out *o, enum xp_status st)
{
    struct xp_error err = {0};
    uint8_t *body;
    size_t n;
    bool encoded;
    char *text;
    if (st != XP_OK) {
        assert_true(asprintf(&text, "- %d", (int)st) > 0);
    } else {
        assert_int_equal(out_finish(o, &body, &n, &encoded, &err), XP_OK);
        text = calloc(1, n + 1);
        memcpy(text, body, n);
        free(body);
    }
    out_fini(o);
    return text;
}

static char *answer(struct rig *r, struct xp_span merged)
{
    struct report_host sources[HOSTS] = {{.name = XP_SPAN_LIT("h")}};
    struct xp_error err = {0};
    struct out o;
    out_init(&o, NULL);
    enum xp_status st =
        r->is_report ? tool_report_run(r->t, sources, HOSTS, merged, &r->args, r->a, &o, &err)
                     : r->t->render(merged, &r->args, r->a, &o, &err);
    return text_of(&o, st);
}

static char *answer_at_once(struct rig *r, const struct tool_host *hosts)
{
    struct xp_error err = {0};
    struct out o;
    out_init(&o, NULL);
    enum xp_status st = r->t->answer ? r->t->answer(hosts, HOSTS, &r->args, r->a, &o, &err)
                                     : tool_run(r->t, hosts, HOSTS, &r->args, r->a, &o, &err);
    return text_of(&o, st);
}

static void same(struct rig *r, struct xp_span x, struct xp_span y)
{
    char *a = answer(r, x), *b = answer(r, y);
    if (strcmp(a, b) != 0)
        fail_msg("%s: orders differ:\n%s\n%s", r->t->id, a, b);
    if (!r->is_report && r->t->merge == facts_merge)
        assert_true(xp_span_eq(x, y));
    free(a);
    free(b);
}

static struct rig rig_of(const struct tool *t, bool report)
{
    struct rig r = {.t = t, .a = xp_arena_new(NULL), .is_report = report};
    r.report = report ? tool_report_of(t) : (struct tool_report){.map = t->map, .merge = t->merge};
    return r;
}

static void check_report(const struct tool *t, struct part_file *const *f)
{
    struct rig r = rig_of(t, true);
    struct xp_span none = {0}, *v = r.one;
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct xp_error err = {0};
        struct tool_host h = {part_file_part(f[i]), XP_SPAN_LIT("h"), i};
        if (r.report.map(&h, &r.args, r.a, &r.one[i], &err) != XP_OK)
            fail_msg("%s: map: %s", t->id, err.text);
    }
    struct xp_span all = join(&r, join(&r, v[0], v[1]), v[2]);
    same(&r, join(&r, none, v[0]), v[0]);
    same(&r, all, join(&r, v[0], join(&r, v[1], v[2])));
    same(&r, all, join(&r, join(&r, v[2], v[0]), v[1]));
    same(&r, all, join(&r, v[1], join(&r, v[2], v[0])));
    xp_arena_free(r.a);
}

/* True: the hosts together have another answer than the first alone, so that joining showed. */
static bool check_tool(const struct tool *t, struct part_file *const *f)
{
    struct rig r = rig_of(t, false);
    struct tool_host hosts[HOSTS];
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct xp_error err = {0};
        hosts[i] = (struct tool_host){part_file_part(f[i]), XP_SPAN_LIT("h"), i};
        if (t->map(&hosts[i], &r.args, r.a, &r.one[i], &err) != XP_OK)
            fail_msg("%s: map: %s", t->id, err.text);
    }
    struct xp_span none = {0}, *v = r.one;
    same(&r, join(&r, none, v[0]), v[0]);
    same(&r, join(&r, v[0], none), v[0]);
    struct xp_span all = join(&r, join(&r, v[0], v[1]), v[2]);
    same(&r, all, join(&r, v[0], join(&r, v[1], v[2])));
    same(&r, all, join(&r, join(&r, v[2], v[0]), v[1]));
    same(&r, all, join(&r, v[1], join(&r, v[2], v[0])));
    char *joined = answer(&r, all), *at_once = answer_at_once(&r, hosts), *first = answer(&r, v[0]);
    assert_string_equal(joined, at_once);
    bool showed = strcmp(joined, first) != 0;
    free(joined);
    free(at_once);
    free(first);
    xp_arena_free(r.a);
    return showed;
}

/* XProf's page is of the first host alone. */
static bool is_of_one(const char *id)
{
    return strcmp(id, "utilization_viewer") == 0 || strcmp(id, "kernel_stats") == 0;
}

static void partials_join_in_any_order(void **state)
{
    bool showed[sizeof ids / sizeof *ids] = {false};
    int checked = 0;
    (void)state;
    for (size_t kind = 0; kind < PROFILES; kind++) {
        struct part_file *f[HOSTS];
        for (uint32_t i = 0; i < HOSTS; i++)
            f[i] = host(profiles[kind](i));
        for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
            const struct tool *t = tool_find(xp_span_str(ids[i]));
            assert_non_null(t);
            if (t->report)
                check_report(t, f);
            if (!t->map)
                continue;
            showed[i] |= check_tool(t, f);
            checked++;
        }
        for (uint32_t i = 0; i < HOSTS; i++)
            part_close(f[i]);
    }
    assert_true(checked >= 15 * (int)PROFILES);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (tool_find(xp_span_str(ids[i]))->map && !showed[i] && !is_of_one(ids[i]))
            fail_msg("%s: no profile here shows that its hosts are joined", ids[i]);
}

/* Merges and shows the partial with a bit of it wrong, or the rest of it missing. */
static void damage(const struct rig *r, struct xp_span one, int rounds, uint32_t *random)
{
    struct xp_error err;
    struct xp_span both;
    uint8_t *p = malloc(one.n + 1);
    for (int i = 0; one.n && i < rounds; i++) {
        struct rig mine = *r;
        mine.a = xp_arena_new(NULL);
        memcpy(p, one.p, one.n);
        *random = *random * 1664525 + 1013904223;
        size_t at = i % 2 ? *random % one.n : *random % (one.n < 256 ? one.n : 256);
        p[at] ^= (uint8_t)(1u << (*random >> 28 & 7));
        struct xp_span bad = xp_span_of(p, i % 5 ? one.n : at);
        if (r->report.merge(one, bad, mine.a, &both, &err) == XP_OK)
            free(answer(&mine, both));
        xp_arena_free(mine.a);
    }
    free(p);
}

/* What a peer of the same build says is trusted to be well meant, not to be whole. */
static void damaged_partials_do_no_harm(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (size_t kind = 0; kind < PROFILES; kind++) {
        struct part_file *f = host(profiles[kind](0));
        struct tool_host h = {part_file_part(f), XP_SPAN_LIT("h"), 0};
        for (size_t i = 0; i < 2 * sizeof ids / sizeof *ids; i++) {
            const struct tool *t = tool_find(xp_span_str(ids[i / 2]));
            struct xp_error err;
            if (i % 2 ? !t->report : !t->map)
                continue;
            struct rig r = rig_of(t, i % 2);
            assert_int_equal(r.report.map(&h, &r.args, r.a, &r.one[0], &err), XP_OK);
            damage(&r, r.one[0], DAMAGES, &random);
            xp_arena_free(r.a);
        }
        part_close(f);
    }
}

static void damaged_partials_of_a_trace_do_no_harm(void **state)
{
    (void)state;
    static const struct tool_arg pb = {XP_SPAN_LIT("format"), XP_SPAN_LIT("pb")};
    struct part_file *f = host(trains(0));
    uint32_t random = 1;
    for (int kind = 0; kind < 2; kind++) {
        struct rig r = rig_of(tool_find(XP_SPAN_LIT("trace_viewer@")), false);
        struct tool_host h = {part_file_part(f), XP_SPAN_LIT("h"), 0};
        struct xp_error err;
        r.args = (struct tool_args){.args = &pb, .n = (size_t)kind};
        assert_int_equal(r.t->map(&h, &r.args, r.a, &r.one[0], &err), XP_OK);
        damage(&r, r.one[0], 3000, &random);
        xp_arena_free(r.a);
    }
    part_close(f);
}

static void foreign_bytes_are_no_partial(void **state)
{
    (void)state;
    static const uint8_t bytes[][4] = {
        {0xff, 0xff, 0xff, 0xff}, {0x0a, 0x7f, 1, 2}, {0x12, 2, 8, 1}};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const struct tool *t = tool_find(xp_span_str(ids[i]));
        for (size_t k = 0; t->map && k < 3; k++) {
            struct rig r = rig_of(t, false);
            struct xp_span both, x = xp_span_of(bytes[k], 4);
            struct xp_error err = {0};
            free(answer(&r, x));
            (void)t->merge(x, x, r.a, &both, &err);
            xp_arena_free(r.a);
        }
        for (size_t k = 0; t->report && k < 3; k++) {
            struct rig r = rig_of(t, true);
            free(answer(&r, xp_span_of(bytes[k], 4)));
            xp_arena_free(r.a);
        }
    }
}

static void a_list_of_tools_is_a_byte_of_known_bits(void **state)
{
    (void)state;
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_error err;
    struct xp_span both, first = XP_SPAN_LIT("\x04"), none = XP_SPAN_LIT("\0");
    assert_int_equal(tool_run_tools.merge(first, none, a, &both, &err), XP_OK);
    assert_true(xp_span_eq(both, first));
    assert_int_equal(tool_run_tools.merge(first, XP_SPAN_LIT("\xff"), a, &both, &err), XP_INTERNAL);
    assert_int_equal(tool_run_tools.merge(first, XP_SPAN_LIT("\0\0"), a, &both, &err), XP_INTERNAL);
    xp_arena_free(a);
}

static void what_was_seen_of_a_range_travels_and_nothing_else_does(void **state)
{
    (void)state;
    struct range r = {.any = true, .seen = {true, false, true, 1, 2, 3, 4, 5, -6}};
    struct range_seen seen;
    struct xp_error err;
    struct xp_buf b;
    xp_buf_init(&b, 1024);
    range_put(&r, &b);
    xp_buf_str(&b, "rest");
    struct xp_span s = xp_buf_all(&b);
    assert_int_equal(range_take(&r, &s, &seen, &err), XP_OK);
    assert_true(xp_span_eq(s, XP_SPAN_LIT("rest")));
    assert_true(seen.found && !seen.has_steps && seen.has_events);
    assert_int_equal(seen.t1_ps, 2);
    assert_int_equal(seen.end_ps, -6);
    b.p[0] = 0xff;
    s = xp_buf_all(&b);
    assert_int_equal(range_take(&r, &s, &seen, &err), XP_CORRUPT);
    s = XP_SPAN_LIT("short");
    assert_int_equal(range_take(&r, &s, &seen, &err), XP_CORRUPT);
    assert_false(seen.found);
    xp_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partials_join_in_any_order),
        cmocka_unit_test(foreign_bytes_are_no_partial),
        cmocka_unit_test(a_list_of_tools_is_a_byte_of_known_bits),
        cmocka_unit_test(what_was_seen_of_a_range_travels_and_nothing_else_does),
        cmocka_unit_test(damaged_partials_do_no_harm),
        cmocka_unit_test(damaged_partials_of_a_trace_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
