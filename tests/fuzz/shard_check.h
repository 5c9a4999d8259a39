/* tests/fuzz/shard_check.h - a profile's bytes through object, load, part and queries, with checks.
 *
 * load() asserts what must hold whatever the bytes are: the load ends once with a status and a
 * sentence, published lines walk in order of time and count what they say, every query answers or
 * refuses, and all memory is given back.
 */
#ifndef TESTS_FUZZ_SHARD_CHECK_H
#define TESTS_FUZZ_SHARD_CHECK_H

#include <stdlib.h>

#include "lib/base/hash.h"
#include "lib/objstore/objstore_int.h"
#include "shard/derive/cut.h"
#include "shard/load.h"
#include "shard/query/query.h"
#include "shard/tools/range.h"
#include "shard/tools/tool.h"
#include "shard/tools/xprof_lists.h"

#define BUDGET ((uint64_t)256 << 20)

/* --- a store of one object in memory --- */

struct memory_store {
    struct xp_store base;
    const uint8_t *bytes;
    size_t n;
};

struct memory_reader {
    struct xp_reader base;
    const struct memory_store *store;
};

static enum xp_status memory_read(struct xp_reader *r, uint64_t off, void *buf, size_t n,
                                  struct xp_error *err)
{
    (void)err;
    memcpy(buf, ((struct memory_reader *)r)->store->bytes + off, n);
    return XP_OK;
}

static void memory_close(struct xp_reader *r)
{
    free(r);
}

static const struct xp_reader_ops reader_ops = {.read = memory_read, .close = memory_close};

static enum xp_status memory_open(struct xp_store *s, const char *key, uint64_t generation,
                                  struct xp_reader **out, struct xp_error *err)
{
    struct memory_reader *r = calloc(1, sizeof *r);
    (void)key;
    (void)generation;
    (void)err;
    XP_ASSERT(r);
    r->store = (struct memory_store *)s;
    r->base = (struct xp_reader){&reader_ops, r->store->n, 1};
    *out = &r->base;
    return XP_OK;
}

static const struct xp_store_ops store_ops = {.open = memory_open};

/* --- looking at what came out --- */

struct totals {
    uint64_t planes, lines, events, digest;
};

static void walk_line(const struct part_line *l, struct totals *t)
{
    struct xp_arena *a = xp_arena_new(NULL);
    struct line_cursor c;
    struct lane_event ev;
    int64_t last = INT64_MIN;
    uint64_t n = 0;
    XP_ASSERT(a && line_seek(&c, l, INT64_MIN, a) == XP_OK);
    while (line_next(&c, &ev, NULL)) {
        XP_ASSERT(ev.begin_ps >= last && ev.end_ps >= ev.begin_ps);
        last = ev.begin_ps;
        t->digest = xp_fnv(t->digest, xp_span_of(&ev.begin_ps, sizeof ev.begin_ps));
        t->digest = xp_fnv(t->digest, xp_span_of(&ev.end_ps, sizeof ev.end_ps));
        t->digest = xp_fnv(t->digest, xp_span_of(&ev.at, sizeof ev.at));
        n++;
    }
    XP_ASSERT(n == l->nevents && l->nlanes <= LANE_MAX);
    t->events += n;
    t->lines++;
    xp_arena_free(a);
}

static struct totals walk(const struct part *p)
{
    struct totals t = {.digest = XP_FNV_INIT};
    for (uint32_t i = 0; i < p->nplanes; i++) {
        const struct part_plane *pl = &p->planes[i];
        if (!plane_ready(pl))
            continue;
        XP_ASSERT(pl->first_line <= p->nlines && pl->nlines <= p->nlines - pl->first_line);
        for (uint32_t k = 0; k < pl->nlines; k++)
            walk_line(&p->lines[pl->first_line + k], &t);
        t.planes++;
    }
    return t;
}

/* --- queries --- */

static void finish(enum xp_status status, struct out *o, struct xp_error *err)
{
    uint8_t *body = NULL;
    size_t n;
    bool encoded;
    if (status == XP_OK) {
        XP_ASSERT(out_finish(o, &body, &n, &encoded, err) == XP_OK);
        free(body);
    } else {
        XP_ASSERT(status == XP_BAD_REQUEST || status == XP_NOT_FOUND || status == XP_CORRUPT ||
                  status == XP_TOO_LARGE || status == XP_BUSY || status == XP_INTERNAL);
        XP_ASSERT(err->text[0]);
    }
    out_fini(o);
}

/* Asks one question with memory and an answer of its own. */
#define ASK(call)                                                                                  \
    do {                                                                                           \
        struct xp_arena *a = xp_arena_new(NULL);                                                   \
        struct xp_error err = {0};                                                                 \
        struct out o;                                                                              \
        XP_ASSERT(a);                                                                              \
        out_init(&o, NULL);                                                                        \
        finish((call), &o, &err);                                                                  \
        xp_arena_free(a);                                                                          \
    } while (0)

static void ask_window(const struct part *p, int64_t t0, int64_t t1, uint32_t px, uint32_t max)
{
    struct query_window q = {.t0_ps = t0, .t1_ps = t1, .px = px, .max_bytes = max};
    ASK(query_window(p, &q, a, &o, &err));
}

static void ask_event(const struct part *p, uint64_t id)
{
    ASK(query_event(p, id, a, &o, &err));
    ASK(query_neighbour(p, id, -1, a, &o, &err));
    ASK(query_neighbour(p, id, 1, a, &o, &err));
}

static void ask_events(const struct part *p)
{
    int asked = 0;
    for (uint32_t i = 0; i < p->nlines && asked < 6; i++) {
        const struct part_line *l = &p->lines[i];
        struct lane_cursor c;
        struct lane_event ev;
        if (!plane_ready(&p->planes[l->plane]) || !l->nlanes)
            continue;
        lane_seek_ord(&c, l->lanes[l->nlanes - 1], 0);
        if (lane_next(&c, &ev)) {
            ask_event(p, ev.at);
            asked++;
        }
    }
    ask_event(p, 0);
    ask_event(p, p->size / 2);
}

static void ask_all(const struct part *p, uint8_t a0, uint8_t a1)
{
    static const char *const searches[] = {"a", "-f dur>1ns", "name:x line:o plane:/", "dur<5us"};
    int64_t far = INT64_C(1) << (a0 % 62);
    uint32_t px = 1 + a1 * 17u;
    struct query_tracks t = {.limit = 1 + a0, .first = a1 & 3};
    ASK(query_tracks(p, &t, a, &o, &err));
    t.q = xp_span_str("a -line:z");
    ASK(query_tracks(p, &t, a, &o, &err));
    ask_window(p, 0, 0, px, 65536);
    ask_window(p, 0, 0, 16384, 4096);
    ask_window(p, -far, far, px, 0);
    ask_window(p, far, far + 1, px, 0);
    ask_window(p, INT64_MIN, INT64_MAX, px, 0);
    ask_events(p);
    struct query_search s = {
        .q = xp_span_str(searches[a0 % 4]), .dir = a1 & 1 ? 1 : -1, .limit = 20};
    ASK(query_search(p, &s, a, &o, &err));
    struct query_aggregate g = {.limit = 1 + a0 % 9, .by_name_only = a1 & 1};
    ASK(query_aggregate(p, &g, a, &o, &err));
    g.t0_ps = -far;
    g.t1_ps = far;
    ASK(query_aggregate(p, &g, a, &o, &err));
}

static const char *const tool_ids[] = {
#define TOOL(symbol, id, title, view, hosts) id,
#include "shard/tools/tools.def"
#undef TOOL
};
#define TOOLS (sizeof tool_ids / sizeof tool_ids[0])

/* Pages of modules, by the names that the profile has. */
static void ask_modules(struct part *p)
{
    static const char *const types[] = {"graph", "short_txt", "long_txt", "pbtxt", "adj_nodes"};
    struct tool_host host = {.part = p, .name = xp_span_str("host")};
    struct tool_arg v[] = {{xp_span_str("module_name"), {0}},
                           {xp_span_str("type"), {0}},
                           {xp_span_str("node_name"), xp_span_str("fusion")},
                           {xp_span_str("graph_width"), xp_span_str("3")}};
    struct tool_args args = {.args = v, .n = 4};
    int asked = 0;
    for (uint32_t i = 0; i < p->nplanes; i++) {
        const struct part_plane *pl = &p->planes[i];
        if (!xp_span_eq(part_str(p, pl->name), xp_span_str("/host:metadata")))
            continue;
        for (uint32_t k = 0; k < pl->nevmeta && asked < 2; k++, asked++) {
            v[0].value = part_str(p, pl->evmeta[k].name);
            ASK(tool_run(tool_find(xp_span_str("memory_viewer")), &host, 1, &args, a, &o, &err));
            for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
                v[1].value = xp_span_str(types[t]);
                ASK(tool_run(tool_find(xp_span_str("graph_viewer")), &host, 1, &args, a, &o, &err));
            }
        }
    }
}

static enum xp_status report(const struct tool *t, struct part *p, struct range *range,
                             struct xp_arena *a, struct out *o, struct xp_error *err)
{
    struct range_seen seen;
    struct tool_host host = {.part = p, .name = xp_span_str("host")};
    struct report_host source = {.name = host.name};
    struct tool_report r = tool_report_of(t);
    struct tool_args none = {0};
    struct xp_span merged = {0}, one = {0};
    XP_TRY(range_map(range, &r, &host, &none, a, &one, &seen, err));
    XP_TRY(r.merge(merged, one, a, &merged, err));
    range_see(range, &seen);
    XP_TRY(range_close(range, &r, err));
    none.range = range->any ? &range->shown : NULL;
    return tool_report_run(t, &source, 1, merged, &none, a, o, err);
}

/* Of all of it, of the middle of it, and of a step. */
static void ask_reports(struct part *p)
{
    int64_t begin = 0, end = 0;
    cut_extent(p, &begin, &end);
    for (size_t i = 0; i < 3 * TOOLS; i++) {
        const struct tool *t = tool_find(xp_span_str(tool_ids[i / 3]));
        struct range range = {.any = i % 3, .by_steps = i % 3 == 2, .first = 0, .last = 1};
        range.shown.t0_ps = begin + (int64_t)(((uint64_t)end - (uint64_t)begin) / 4);
        range.shown.t1_ps = end - (int64_t)(((uint64_t)end - (uint64_t)begin) / 3);
        bool some = i % 3 != 1 || range.shown.t0_ps < range.shown.t1_ps;
        if (t->report && some)
            ASK(report(t, p, &range, a, &o, &err));
    }
}

/* Every tool, whole and by a window; pages of modules, reports; then XProf's lists. */
static void ask_tools(struct part *p, uint8_t a0, uint8_t a1)
{
    static const char *const numbers[] = {"0", "1", "-1", "0.000001", "1e300", "nan", "9", "x"};
    struct tool_host host = {.part = p, .name = xp_span_str("host")};
    struct tool_arg v[] = {
        {xp_span_str("resolution"), xp_span_str(numbers[a0 % 8])},
        {xp_span_str("start_time_ms"), xp_span_str(numbers[a1 % 8])},
        {xp_span_str("end_time_ms"), xp_span_str(numbers[a1 / 8 % 8])},
        {xp_span_str(a0 & 64 ? "search_prefix" : "full_dma"), xp_span_str(a0 & 64 ? "f" : "true")},
        {xp_span_str("format"), xp_span_str(a0 & 32 ? "pb" : "json")},
    };
    struct tool_args whole = {.args = v, .n = 0}, part = {.args = v, .n = 5};
    for (size_t i = 0; i < TOOLS; i++) {
        const struct tool *t = tool_find(xp_span_str(tool_ids[i]));
        XP_ASSERT(t);
        ASK(tool_run(t, &host, 1, &whole, a, &o, &err));
        ASK(tool_run(t, &host, 1, &part, a, &o, &err));
    }
    ask_modules(p);
    ask_reports(p);
    ASK(tool_run(&tool_run_tools, &host, 1, &whole, a, &o, &err));
    ASK(tool_run(&tool_module_list, &host, 1, &whole, a, &o, &err));
}

/* --- loads --- */

struct verdict {
    enum xp_status status;
    int calls;
};

static void done(void *ctx, enum xp_status status, const struct xp_error *err)
{
    struct verdict *v = ctx;
    v->status = status;
    v->calls++;
    XP_ASSERT(status == XP_OK || err->text[0]);
    XP_ASSERT(status == XP_OK || status == XP_CORRUPT || status == XP_BUSY ||
              status == XP_TOO_LARGE);
}

/* Totals of the part; planes UINT64_MAX when there is none. */
static struct totals load(const uint8_t *p, size_t n, bool gz, const uint8_t *ask)
{
    struct memory_store store = {{&store_ops, (char *)"memory", (char *)"memory", false}, p, n};
    struct load_source src = {.store = &store.base,
                              .key = gz ? "h.xplane.pb.gz" : "h.xplane.pb",
                              .generation = 1,
                              .size = n,
                              .gz = gz};
    struct verdict v = {0};
    struct load_hooks hooks = {.ctx = &v, .done = done};
    struct xp_budget budget;
    struct totals t = {.planes = UINT64_MAX};
    xp_budget_init(&budget, BUDGET);
    struct load *l = load_new(&src, &budget, &hooks);
    XP_ASSERT(l);
    load_run(l);
    XP_ASSERT(v.calls == 1);
    struct part *part = load_part(l);
    if (v.status == XP_OK) {
        XP_ASSERT(part && part_ready(part));
        XP_ASSERT(part->partial == (part->damage.status != XP_OK));
        t = walk(part);
        XP_ASSERT(t.events <= n || gz);
        if (ask) {
            ask_all(part, ask[0], ask[1]);
            ask_tools(part, ask[0], ask[1]);
        }
    }
    load_free(l);
    XP_ASSERT(atomic_load(&budget.used) == 0);
    return t;
}

#endif
