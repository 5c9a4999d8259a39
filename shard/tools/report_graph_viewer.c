#include <stdlib.h>
#include <strings.h>

#include "shard/hlo/hlo_text.h"
#include "shard/stats/op_stats.h"
#include "shard/tools/kernel_text.h"
#include "shard/tools/report_graph.h"
#include "shard/tools/report_modules.h"
#include "shard/tools/reports_more.h"

/* What surrounds an op, what is inside of it, and where do layouts change?
 *
 * node_name= is the op: its name, part of it, or letters of it in order; absent, the op of the
 * module that took the most time. radius= steps, nodes= how many at most; expand= names of ops
 * whose operands and users are there, too; inside= names of ops whose computations are, and
 * merge_fusion=false opens all fusions; ops=1 lists all ops of the module. */

#define MATCHES_MAX 50
#define ORIGINAL_NONE                                                                              \
    "profiles hold modules as they were after XLA's passes, and only these. Those before: run "    \
    "the program with XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_proto\"; DIR then has "      \
    "*.before_optimizations.hlo.pb of each, or print jax.jit(f).lower(...).as_text(\"hlo\")"
#define DEPTH_MAX 20 /* computations around an op */
#define TEXT_MAX ((size_t)64 << 10)
#define KERNEL_MAX ((size_t)4 << 20)

struct matches {
    uint32_t v[MATCHES_MAX], n, total;
};

/* --- times --- */

/* Self times of the program's ops, by instruction. Names are found through a pool of theirs. */
static enum xp_status add_times(struct graph *g, const struct tool_host *host, uint64_t program,
                                struct xp_error *err)
{
    const struct op_stats *s;
    struct xp_strpool names;
    uint32_t *first = xp_arena_alloc(g->a, ((size_t)g->m->ninstrs + 2) * sizeof *first);
    struct xp_error own = {0};
    if (!first || !xp_strpool_init(&names, g->a))
        return xp_fail(err, XP_BUSY, 0, "no memory left for the graph");
    if (op_stats_get(host->part, &s, &own) != XP_OK)
        return XP_OK; /* the graph is there without times */
    for (uint32_t i = 0; i < g->m->ninstrs; i++) {
        uint32_t n = names.n, id = xp_strpool_add(&names, g->m->instrs[i].name);
        if (id == XP_STRPOOL_FULL)
            return xp_fail(err, XP_BUSY, 0, "no memory left for the graph");
        if (id == n)
            first[id] = i;
    }
    for (uint32_t i = 0; i < s->device.n; i++) {
        const struct op_metrics *m = &s->device.ops[i];
        uint32_t id = m->program == program ? xp_strpool_find(&names, m->name) : XP_STRPOOL_FULL;
        if (id != XP_STRPOOL_FULL && id)
            g->self_ps[first[id]] += m->self_ps;
    }
    return XP_OK;
}

/* --- which op --- */

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static bool holds(struct xp_span s, struct xp_span part)
{
    for (size_t i = 0; i + part.n <= s.n; i++)
        if (strncasecmp((const char *)s.p + i, (const char *)part.p, part.n) == 0)
            return true;
    return false;
}

static bool in_order(struct xp_span s, struct xp_span letters)
{
    size_t k = 0;
    for (size_t i = 0; i < s.n && k < letters.n; i++)
        k += lower(s.p[i]) == lower(letters.p[k]);
    return k == letters.n;
}

/* 4: the name, 3: it begins so, 2: it is part of it, 1: its letters are there in order; 0: no. */
static int match(struct xp_span name, struct xp_span asked)
{
    if (!asked.n)
        return 0;
    if (name.n >= asked.n && strncasecmp((const char *)name.p, (const char *)asked.p, asked.n) == 0)
        return name.n == asked.n ? 4 : 3;
    return holds(name, asked) ? 2 : in_order(name, asked) ? 1 : 0;
}

struct rank {
    int match;
    uint64_t self_ps;
    uint32_t instr;
};

/* Better matches first, then longer times, then the file's order. */
static bool before(const struct rank *x, const struct rank *y)
{
    if (x->match != y->match)
        return x->match > y->match;
    if (x->self_ps != y->self_ps)
        return x->self_ps > y->self_ps;
    return x->instr < y->instr;
}

/* The best, sorted; of all ops, by time, where no name is asked for. */
static void find_matches(const struct graph *g, struct xp_span asked, struct matches *to)
{
    struct rank best[MATCHES_MAX];
    uint32_t n = 0;
    if (asked.n && asked.p[0] == '%')
        asked = xp_span_of(asked.p + 1, asked.n - 1);
    for (uint32_t i = 0; i < g->m->ninstrs; i++) {
        struct rank r = {match(g->m->instrs[i].name, asked), g->self_ps[i], i};
        if (asked.n ? !r.match : !r.self_ps)
            continue;
        to->total++;
        uint32_t at = n < MATCHES_MAX ? n++ : MATCHES_MAX;
        if (at == MATCHES_MAX && !before(&r, &best[MATCHES_MAX - 1]))
            continue;
        at = at == MATCHES_MAX ? MATCHES_MAX - 1 : at;
        for (; at && before(&r, &best[at - 1]); at--)
            best[at] = best[at - 1];
        best[at] = r;
    }
    for (uint32_t i = 0; i < n; i++)
        to->v[i] = best[i].instr;
    to->n = n;
}

/* HLO_NONE: no name is like it. */
static uint32_t center_of(const struct graph *g, struct xp_span asked, struct matches *found)
{
    find_matches(g, asked, found);
    if (found->n)
        return found->v[0];
    const struct hlo_comp *entry = asked.n ? NULL : hlo_comp_at(g->m, g->m->entry);
    return entry && entry->root < g->m->ninstrs ? entry->root : HLO_NONE;
}

/* --- its text --- */

/* The program of a kernel, as far as there is room for whole lines. */
static void put_kernel(struct xp_buf *b, struct graph *g, uint32_t center)
{
    struct xp_buf text;
    struct xp_error own = {0};
    size_t room = TEXT_MAX - b->n - 64;
    xp_buf_init(&text, KERNEL_MAX);
    struct xp_span config = hlo_backend_config(g->m, &g->m->instrs[center]);
    if (config.n && kernel_text(config, false, g->a, &text, &own) == XP_OK && !text.failed) {
        const uint8_t *end = text.n > room ? memrchr(text.p, '\n', room) : text.p + text.n;
        xp_buf_str(b, "\n\n");
        if (end)
            xp_buf_span(b, xp_span_of(text.p, (size_t)(end - text.p)));
        if (text.n > room)
            xp_buf_str(b, "\n...");
    }
    xp_buf_fini(&text);
}

static int by_place(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The lines of the other ops, in the module's order; what the compiler noted down for itself is
 * not in them. */
static void put_lines(struct xp_buf *b, struct graph *g, uint32_t center)
{
    uint32_t *order = xp_arena_alloc(g->a, ((size_t)g->nnodes + 1) * sizeof *order);
    struct xp_buf line;
    if (!order)
        return;
    for (uint32_t i = 0; i < g->nnodes; i++)
        order[i] = g->nodes[i].instr;
    qsort(order, g->nnodes, sizeof *order, by_place);
    xp_buf_init(&line, TEXT_MAX);
    struct hlo_text t = {.m = g->m, .opt = hlo_text_default, .scratch = g->a, .out = &line};
    t.opt.backend_config = false;
    for (uint32_t i = 0; i < g->nnodes; i++) {
        if (order[i] == center)
            continue;
        line.n = 0;
        hlo_text_instr(&t, &g->m->instrs[order[i]]);
        if (line.failed || b->n + line.n + 8 > TEXT_MAX) {
            xp_buf_str(b, "\n...");
            break;
        }
        xp_buf_str(b, "\n");
        xp_buf_span(b, xp_buf_all(&line));
    }
    xp_buf_fini(&line);
}

/* The op's own line: of thousands of operands as many as there is room for. */
static void put_own_line(struct xp_buf *b, struct graph *g, uint32_t center)
{
    struct xp_buf line;
    xp_buf_init(&line, KERNEL_MAX);
    struct hlo_text t = {.m = g->m, .opt = hlo_text_default, .scratch = g->a, .out = &line};
    hlo_text_instr(&t, &g->m->instrs[center]);
    size_t room = TEXT_MAX / 2;
    const uint8_t *end = line.n > room ? memrchr(line.p, ',', room) : NULL;
    if (line.n > room)
        line.n = end ? (size_t)(end + 1 - line.p) : room;
    xp_buf_span(b, xp_buf_all(&line));
    if (line.failed || line.n + 1 > room || end)
        xp_buf_str(b, " ...");
    xp_buf_fini(&line);
}

static void put_text(struct facts_out *f, struct graph *g, uint32_t center)
{
    struct xp_buf b;
    struct xp_error own = {0};
    xp_buf_init(&b, TEXT_MAX);
    bool sound = hlo_text_check(g->m, &own) == XP_OK;
    if (sound)
        put_own_line(&b, g, center);
    if (!b.failed && b.n < TEXT_MAX / 2 && g->m->instrs[center].opcode == HLO_OP_CUSTOM_CALL)
        put_kernel(&b, g, center);
    if (sound && !b.failed) {
        xp_buf_str(&b, g->nnodes > 1 ? "\n" : "");
        put_lines(&b, g, center);
    }
    facts_text(f, b.failed ? (struct xp_span){0} : xp_buf_all(&b));
    xp_buf_fini(&b);
}

/* The op that calls a computation: the first, where several do. */
static uint32_t caller_of(const struct graph *g, uint32_t comp)
{
    for (uint32_t i = 0; i < g->m->ninstrs; i++) {
        const struct hlo_instr *in = &g->m->instrs[i];
        for (uint32_t k = 0; k < in->called.n; k++)
            if (g->m->refs[in->called.at + k] == comp && in->comp != comp)
                return i;
    }
    return HLO_NONE;
}

/* The ops that the op is in, from the outermost: a fusion, a loop, a call. */
static void put_path(struct facts_out *f, const struct graph *g, uint32_t center)
{
    uint32_t path[DEPTH_MAX], n = 0;
    uint32_t at = center == HLO_NONE ? HLO_NONE : caller_of(g, g->m->instrs[center].comp);
    for (; at != HLO_NONE && n < DEPTH_MAX; at = caller_of(g, g->m->instrs[at].comp))
        path[n++] = at;
    facts_u64(f, n);
    while (n)
        graph_put_op(f, g, path[--n]);
}

/* What a node has beside what every op has. */
static void put_node(struct facts_out *f, const struct graph *g, const struct graph_node *n)
{
    const struct hlo_instr *in = &g->m->instrs[n->instr];
    struct xp_span kind = {0};
    uint32_t comp =
        in->opcode == HLO_OP_FUSION && in->called.n ? g->m->refs[in->called.at] : HLO_NONE;
    uint32_t mover = comp < g->m->ncomps ? g->layouts.movers[comp] : HLO_NONE;
    hlo_get_span(in->raw, HLO_F_FUSION_KIND, &kind);
    graph_put_op(f, g, n->instr);
    facts_u64(f, n->distance);
    facts_u64(f, graph_missing(g, in->operands));
    facts_u64(f, graph_missing(g, in->users));
    facts_u64(f, n->within == HLO_NONE ? 0 : (uint64_t)n->within + 1);
    facts_u64(f, graph_inner(g, in));
    facts_u64(f, n->opened);
    facts_text(f, kind);
    facts_text(f, mover == HLO_NONE ? (struct xp_span){0} : g->m->instrs[mover].name);
}

static enum xp_status put_graph(struct facts_out *f, struct graph *g, uint32_t center,
                                const struct matches *found, const struct tool_args *args,
                                struct xp_error *err)
{
    facts_u64(f, found->total);
    facts_u64(f, found->n);
    for (uint32_t i = 0; i < found->n; i++)
        graph_put_op(f, g, found->v[i]);
    facts_u64(f, g->nnodes);
    for (uint32_t i = 0; i < g->nnodes; i++)
        put_node(f, g, &g->nodes[i]);
    XP_TRY(graph_put_edges(f, g, err));
    if (center != HLO_NONE)
        put_text(f, g, center);
    else
        facts_text(f, (struct xp_span){0});
    put_path(f, g, center);
    facts_u64(f, g->m->has_schedule);
    XP_TRY(graph_put_layouts(f, g, err));
    graph_put_facts(f, g, center);
    graph_put_ops(f, g, args);
    graph_put_near(f, g, center);
    return XP_OK;
}

static enum xp_status put_around(struct facts_out *f, const struct tool_host *host,
                                 const struct report_module *of, const struct hlo_module *m,
                                 const struct tool_args *args, struct xp_arena *a,
                                 struct xp_error *err)
{
    struct graph *g = xp_arena_zalloc(a, sizeof *g);
    struct matches found = {0};
    struct xp_span asked = {0};
    if (!g || !graph_init(g, m, a))
        return xp_fail(err, XP_BUSY, 0, "no memory left for the graph");
    XP_TRY(add_times(g, host, of->program, err));
    tool_arg(args, "node_name", &asked);
    uint32_t center = center_of(g, asked, &found);
    if (center != HLO_NONE)
        graph_walk(g, center, args);
    return put_graph(f, g, center, &found, args, err);
}

static enum xp_status map(const struct tool_host *host, const struct tool_args *args,
                          struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    struct report_module of;
    struct hlo_module *m;
    struct facts_out f;
    XP_TRY(facts_begin(&f, a, err));
    enum xp_status st = report_modules_put(&f, host, args, a, &of, &m, err);
    if (st == XP_OK && m)
        st = put_around(&f, host, &of, m, args, a, err);
    if (st == XP_OK)
        return facts_end(&f, host, a, partial, err);
    facts_drop(&f);
    return st;
}

/* --- the report --- */

struct node {
    uint64_t distance, more_operands, more_users, within, inner, opened;
    struct xp_span kind, mover;
};

struct view {
    struct graph_op *matches, *ops, *path; /* ops: of the nodes */
    struct node *nodes;
    size_t nmatches, nnodes, npath;
    uint64_t total_matches, program;
    bool scheduled;
    struct xp_span text;
    struct graph_edges *edges;
    struct graph_layouts *layouts;
    struct graph_facts *facts;
    struct graph_ops *all;
    struct graph_near *near;
};

static struct graph_op *get_ops(struct facts *f, size_t *n, struct xp_arena *a)
{
    *n = facts_get_count(f);
    struct graph_op *v = xp_arena_alloc(a, (*n + 1) * sizeof *v);
    for (size_t i = 0; v && i < *n; i++)
        graph_get_op(f, &v[i]);
    return v;
}

static bool get_nodes(struct facts *f, struct view *v, struct xp_arena *a)
{
    v->nnodes = facts_get_count(f);
    v->ops = xp_arena_alloc(a, (v->nnodes + 1) * sizeof *v->ops);
    v->nodes = xp_arena_zalloc(a, (v->nnodes + 1) * sizeof *v->nodes);
    if (!v->ops || !v->nodes)
        return false;
    for (size_t i = 0; i < v->nnodes; i++) {
        struct node *n = &v->nodes[i];
        graph_get_op(f, &v->ops[i]);
        n->distance = facts_get_u64(f);
        n->more_operands = facts_get_u64(f);
        n->more_users = facts_get_u64(f);
        n->within = facts_get_u64(f);
        n->inner = facts_get_u64(f);
        n->opened = facts_get_u64(f);
        n->kind = facts_get_text(f);
        n->mover = facts_get_text(f);
        f->bad |= n->within > v->nnodes;
    }
    return true;
}

static bool get_view(struct facts *f, struct view *v, struct xp_arena *a)
{
    v->total_matches = facts_get_u64(f);
    v->matches = get_ops(f, &v->nmatches, a);
    if (!v->matches || !get_nodes(f, v, a))
        return false;
    v->edges = graph_get_edges(f, v->nnodes, a);
    v->text = facts_get_text(f);
    v->path = get_ops(f, &v->npath, a);
    v->scheduled = facts_get_u64(f) != 0;
    v->layouts = graph_get_layouts(f, a);
    v->facts = graph_get_facts(f, a);
    v->all = graph_get_ops(f, a);
    v->near = graph_get_near(f, a);
    return v->path && v->edges && v->layouts && v->facts && v->all && v->near;
}

#define NODE_CELLS 9
static const struct report_column own_columns[NODE_CELLS] = {
    {"distance", "Distance", "", REPORT_COL_NUMBER, false,
     "steps from the op in question; of what is inside of an op, that op's"},
    {"more_operands", "More operands", "count", REPORT_COL_NUMBER, false, "not among these nodes"},
    {"more_users", "More users", "count", REPORT_COL_NUMBER, false, "not among these nodes"},
    {"inside", "Inside of", "", REPORT_COL_OP, false,
     "the op that is open and calls the computation it is in; n/a: it stands by itself"},
    {"inside_node", "Inside of node", "", REPORT_COL_NUMBER, false,
     "row of the table nodes, from 0"},
    {"inner_ops", "Ops inside", "count", REPORT_COL_NUMBER, false,
     "of the computations that it calls; n/a: there is nothing to open"},
    {"opened", "Open", "", REPORT_COL_BOOL, false, "what is inside is among these nodes"},
    {"fusion_kind", "Fusion kind", "", REPORT_COL_TEXT, false, ""},
    {"layout_inside", "Changes a layout inside", "", REPORT_COL_TEXT, false,
     "the op of the fusion that does, the largest"},
};

static void node_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct node *n = &v->nodes[i];
    graph_op_cells(&v->ops[i], v->program, c);
    c += GRAPH_OP_CELLS;
    c[0] = report_of_u64(n->distance);
    c[1] = report_of_u64(n->more_operands);
    c[2] = report_of_u64(n->more_users);
    c[3] = n->within ? report_of_text(v->ops[n->within - 1].name) : report_none();
    c[4] = n->within ? report_of_u64(n->within - 1) : report_none();
    c[5] = n->inner ? report_of_u64(n->inner) : report_none();
    c[6] = report_of_bool(n->opened);
    c[7] = graph_text(n->kind);
    c[8] = graph_text(n->mover);
}

static void match_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    graph_op_cells(&v->matches[i], v->program, c);
}

static void path_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    graph_op_cells(&v->path[i], v->program, c);
}

static void ops_table(struct report *r, struct view *v, const char *id, const char *title,
                      uint64_t n, void (*row)(void *, uint64_t, struct report_cell *))
{
    report_table(r, &(struct report_rows){.id = id,
                                          .title = title,
                                          .columns = graph_op_columns,
                                          .ncolumns = GRAPH_OP_CELLS,
                                          .n = n,
                                          .row = row,
                                          .ctx = v});
}

static void nodes_table(struct report *r, struct view *v)
{
    struct report_column columns[GRAPH_OP_CELLS + NODE_CELLS];
    memcpy(columns, graph_op_columns, sizeof graph_op_columns);
    memcpy(columns + GRAPH_OP_CELLS, own_columns, sizeof own_columns);
    report_table(r, &(struct report_rows){.id = "nodes",
                                          .title = "Ops",
                                          .columns = columns,
                                          .ncolumns = GRAPH_OP_CELLS + NODE_CELLS,
                                          .n = v->nnodes,
                                          .row = node_row,
                                          .ctx = v});
}

/* Which graph it is, and why there is no other. */
static void write_type(struct report *r, const struct view *v, const struct tool_args *args)
{
    struct xp_span type = {0};
    report_string(
        r, "graph_type", v->scheduled ? XP_SPAN_LIT("optimized") : XP_SPAN_LIT("as given"),
        v->scheduled ? "the module after all of XLA's passes, with its schedule"
                     : "the module has no schedule: not all of XLA's passes went over it");
    report_na(r, "original_graph", ORIGINAL_NONE);
    if (tool_arg(args, "graph_type", &type) && xp_span_eq(type, XP_SPAN_LIT("original_hlo")))
        report_note(r, REPORT_WARNING, "no_original", "The original graph: " ORIGINAL_NONE ".");
}

static void write_view(struct report *r, struct view *v, const struct report_module *of,
                       const struct tool_args *args)
{
    struct xp_span asked = {0};
    uint64_t more = 0;
    tool_arg(args, "node_name", &asked);
    for (size_t i = 0; i < v->nnodes; i++)
        more += v->nodes[i].more_operands + v->nodes[i].more_users;
    if (v->nnodes)
        report_verdict(r, "%.*s in %.*s: %zu ops around it, %llu more edges lead on.",
                       (int)(v->ops[0].name.n < 100 ? v->ops[0].name.n : 100),
                       (const char *)v->ops[0].name.p, (int)(of->name.n < 100 ? of->name.n : 100),
                       (const char *)of->name.p, v->nnodes - 1, (unsigned long long)more);
    else if (asked.n)
        report_note(r, REPORT_WARNING, "no_such_op", "No op of %.*s has a name like that.",
                    (int)(of->name.n < 100 ? of->name.n : 100), (const char *)of->name.p);
    if (asked.n && v->total_matches > 1)
        report_note(r, REPORT_INFO, "several_match",
                    "%llu ops match; shown is the one that matches best or took longest.",
                    (unsigned long long)v->total_matches);
    write_type(r, v, args);
    nodes_table(r, v);
    graph_edges_table(r, v->edges, v->ops, v->program);
    graph_layouts_write(r, v->layouts, v->program);
    graph_facts_table(r, v->facts, v->program);
    graph_near_table(r, v->near, v->program);
    ops_table(r, v, "matches", asked.n ? "Ops that match" : "Ops that took longest", v->nmatches,
              match_row);
    ops_table(r, v, "path", "Ops that it is part of", v->npath, path_row);
    graph_ops_table(r, v->all, v->program);
    if (v->text.n)
        report_text(r, v->text);
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct report_modules m;
    struct facts *hosts;
    struct view *v = xp_arena_zalloc(r->a, sizeof *v);
    size_t n;
    XP_TRY(facts_open(merged, r->a, &hosts, &n, err));
    XP_TRY(report_modules_get(hosts, n, args, r, &m, err));
    if (m.found && m.of.runs)
        report_u64(r, "program_time", m.of.time_ps, NULL);
    if (m.found) {
        if (!v || !get_view(m.found, v, r->a))
            return xp_fail(err, XP_BUSY, 0, "no memory left for the graph");
        XP_TRY(facts_ok(m.found, err));
        v->program = m.of.program;
        write_view(r, v, &m.of, args);
    }
    report_modules_table(r, &m);
    return XP_OK;
}

const struct tool_report report_graph_viewer = {
    .question = "What surrounds an op, and where does its layout change?",
    .whole = true,
    .map = map,
    .merge = facts_merge,
    .write = write_report,
};
