#include <stdlib.h>
#include <strings.h>

#include "shard/hlo/hlo_text.h"
#include "shard/stats/op_stats.h"
#include "shard/tools/kernel_text.h"
#include "shard/tools/report_modules.h"
#include "shard/tools/reports_more.h"

/* What surrounds an op? Its operands and users some steps away, within a budget of nodes.
 *
 * node_name= is the op: its name, part of it, or letters of it in order; absent, the op of the
 * module that took the most time. radius= steps, nodes= how many at most; expand= names of ops
 * whose operands and users are there, too. */

#define RADIUS 2
#define RADIUS_MAX 20
#define NODES 60
#define NODES_MAX 400
#define MATCHES_MAX 50
#define EXPAND_MAX 50
#define DEPTH_MAX 20    /* computations around an op */
#define EDGES_MAX 10000 /* an op may take one result 10^5 times */
#define TEXT_MAX ((size_t)64 << 10)
#define KERNEL_MAX ((size_t)4 << 20)
#define SHAPE_MAX 1024

enum edge { OPERAND, CONTROL };

struct graph {
    const struct hlo_module *m;
    struct xp_arena *a;
    uint64_t *self_ps;  /* by instruction; 0: it did not run as an op of its own */
    uint32_t *place;    /* by instruction: its node + 1 */
    uint32_t *nodes;    /* instructions, nearest first */
    uint32_t *distance; /* by node */
    uint32_t nnodes, max_nodes, radius, nedges;
    uint32_t matches[MATCHES_MAX], nmatches, total_matches;
};

static uint32_t number(const struct tool_args *args, const char *name, uint32_t otherwise,
                       uint32_t max)
{
    struct xp_span s = {0};
    uint32_t v = 0;
    if (!tool_arg(args, name, &s) || !s.n || s.n > 6)
        return otherwise;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return otherwise;
        v = v * 10 + (uint32_t)(s.p[i] - '0');
    }
    return v < max ? v : max;
}

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
static void find_matches(struct graph *g, struct xp_span asked)
{
    struct rank best[MATCHES_MAX];
    uint32_t n = 0;
    if (asked.n && asked.p[0] == '%')
        asked = xp_span_of(asked.p + 1, asked.n - 1);
    for (uint32_t i = 0; i < g->m->ninstrs; i++) {
        struct rank r = {match(g->m->instrs[i].name, asked), g->self_ps[i], i};
        if (asked.n ? !r.match : !r.self_ps)
            continue;
        g->total_matches++;
        uint32_t at = n < MATCHES_MAX ? n++ : MATCHES_MAX;
        if (at == MATCHES_MAX && !before(&r, &best[MATCHES_MAX - 1]))
            continue;
        at = at == MATCHES_MAX ? MATCHES_MAX - 1 : at;
        for (; at && before(&r, &best[at - 1]); at--)
            best[at] = best[at - 1];
        best[at] = r;
    }
    for (uint32_t i = 0; i < n; i++)
        g->matches[i] = best[i].instr;
    g->nmatches = n;
}

/* HLO_NONE: no name is like it. */
static uint32_t center_of(struct graph *g, struct xp_span asked)
{
    find_matches(g, asked);
    if (g->nmatches)
        return g->matches[0];
    const struct hlo_comp *entry = asked.n ? NULL : hlo_comp_at(g->m, g->m->entry);
    return entry && entry->root < g->m->ninstrs ? entry->root : HLO_NONE;
}

/* --- what is around it --- */

static void visit(struct graph *g, uint32_t instr, uint32_t distance)
{
    if (instr >= g->m->ninstrs || g->place[instr] || g->nnodes == g->max_nodes)
        return;
    g->nodes[g->nnodes] = instr;
    g->distance[g->nnodes] = distance;
    g->place[instr] = ++g->nnodes;
}

static void visit_run(struct graph *g, struct hlo_run run, uint32_t distance)
{
    for (uint32_t k = 0; k < run.n; k++)
        visit(g, g->m->refs[run.at + k], distance);
}

static void walk(struct graph *g, uint32_t center)
{
    visit(g, center, 0);
    for (uint32_t i = 0; i < g->nnodes && g->distance[i] < g->radius; i++) {
        const struct hlo_instr *in = &g->m->instrs[g->nodes[i]];
        visit_run(g, in->operands, g->distance[i] + 1);
        visit_run(g, in->users, g->distance[i] + 1);
    }
}

/* What the nodes named there lead to; names of others are left out. */
static void expand(struct graph *g, struct xp_span list)
{
    for (uint32_t n = 0; list.n && n < EXPAND_MAX; n++) {
        const uint8_t *end = memchr(list.p, ',', list.n);
        size_t len = end ? (size_t)(end - list.p) : list.n;
        uint32_t i = hlo_instr_by_name(g->m, xp_span_of(list.p, len));
        if (i < g->m->ninstrs && g->place[i]) {
            uint32_t distance = g->distance[g->place[i] - 1] + 1;
            visit_run(g, g->m->instrs[i].operands, distance);
            visit_run(g, g->m->instrs[i].users, distance);
        }
        len += end != NULL;
        list = xp_span_of(list.p + len, list.n - len);
    }
}

static uint32_t missing(const struct graph *g, struct hlo_run run)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < run.n; k++) {
        uint32_t i = g->m->refs[run.at + k];
        n += i < g->m->ninstrs && !g->place[i];
    }
    return n;
}

/* --- a host --- */

static void put_op(struct facts_out *f, const struct graph *g, uint32_t instr)
{
    const struct hlo_instr *in = &g->m->instrs[instr];
    const struct hlo_comp *comp = hlo_comp_at(g->m, in->comp);
    struct xp_buf shape;
    xp_buf_init(&shape, SHAPE_MAX);
    hlo_shape_text(g->m, in->shape, true, &shape);
    facts_text(f, in->name);
    facts_text(f, in->opcode_text);
    facts_text(f, shape.failed ? XP_SPAN_LIT("(...)") : xp_buf_all(&shape));
    facts_text(f, comp ? comp->name : (struct xp_span){0});
    facts_text(f, hlo_meta_read(in->metadata).op_name);
    facts_u64(f, g->self_ps[instr]);
    xp_buf_fini(&shape);
}

static void put_edges(struct facts_out *f, struct graph *g, uint32_t node, struct hlo_run run,
                      enum edge kind)
{
    for (uint32_t k = 0; k < run.n && g->nedges < EDGES_MAX; k++) {
        uint32_t from = g->m->refs[run.at + k];
        if (from >= g->m->ninstrs || !g->place[from])
            continue;
        g->nedges++;
        facts_u64(f, 1);
        facts_u64(f, g->place[from] - 1);
        facts_u64(f, node);
        facts_u64(f, kind);
    }
}

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
    memcpy(order, g->nodes, g->nnodes * sizeof *order);
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

static void put_text(struct facts_out *f, struct graph *g, uint32_t center)
{
    struct xp_buf b;
    struct xp_error own = {0};
    xp_buf_init(&b, TEXT_MAX);
    struct hlo_text t = {.m = g->m, .opt = hlo_text_default, .scratch = g->a, .out = &b};
    bool sound = hlo_text_check(g->m, &own) == XP_OK;
    if (sound)
        hlo_text_instr(&t, &g->m->instrs[center]);
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
        put_op(f, g, path[--n]);
}

static void put_graph(struct facts_out *f, struct graph *g, uint32_t center)
{
    facts_u64(f, g->total_matches);
    facts_u64(f, g->nmatches);
    for (uint32_t i = 0; i < g->nmatches; i++)
        put_op(f, g, g->matches[i]);
    facts_u64(f, g->nnodes);
    for (uint32_t i = 0; i < g->nnodes; i++) {
        const struct hlo_instr *in = &g->m->instrs[g->nodes[i]];
        put_op(f, g, g->nodes[i]);
        facts_u64(f, g->distance[i]);
        facts_u64(f, missing(g, in->operands));
        facts_u64(f, missing(g, in->users));
    }
    for (uint32_t i = 0; i < g->nnodes; i++) {
        const struct hlo_instr *in = &g->m->instrs[g->nodes[i]];
        put_edges(f, g, i, in->operands, OPERAND);
        put_edges(f, g, i, in->controls, CONTROL);
    }
    facts_u64(f, 0);
    if (center != HLO_NONE)
        put_text(f, g, center);
    else
        facts_text(f, (struct xp_span){0});
    put_path(f, g, center);
}

static enum xp_status put_around(struct facts_out *f, const struct tool_host *host,
                                 const struct report_module *of, const struct hlo_module *m,
                                 const struct tool_args *args, struct xp_arena *a,
                                 struct xp_error *err)
{
    struct graph *g = xp_arena_zalloc(a, sizeof *g);
    struct xp_span asked = {0}, more = {0};
    if (!g)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the graph");
    *g = (struct graph){.m = m, .a = a};
    g->radius = number(args, "radius", RADIUS, RADIUS_MAX);
    g->max_nodes = number(args, "nodes", NODES, NODES_MAX);
    g->max_nodes = g->max_nodes ? g->max_nodes : 1;
    g->self_ps = xp_arena_zalloc(a, ((size_t)m->ninstrs + 1) * sizeof *g->self_ps);
    g->place = xp_arena_zalloc(a, ((size_t)m->ninstrs + 1) * sizeof *g->place);
    g->nodes = xp_arena_alloc(a, NODES_MAX * sizeof *g->nodes);
    g->distance = xp_arena_alloc(a, NODES_MAX * sizeof *g->distance);
    if (!g->self_ps || !g->place || !g->nodes || !g->distance)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the graph");
    XP_TRY(add_times(g, host, of->program, err));
    tool_arg(args, "node_name", &asked);
    uint32_t center = center_of(g, asked);
    if (center != HLO_NONE)
        walk(g, center);
    if (tool_arg(args, "expand", &more))
        expand(g, more);
    put_graph(f, g, center);
    return XP_OK;
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

struct op {
    struct xp_span name, opcode, shape, comp, framework;
    uint64_t self_ps, distance, more_operands, more_users;
};

struct link {
    uint64_t from, to, kind;
};

struct view {
    struct op *matches, *nodes, *path;
    size_t nmatches, nnodes, nlinks, npath;
    struct link *links;
    uint64_t total_matches, program;
    struct xp_span text;
};

static void get_op(struct facts *f, struct op *o)
{
    *o = (struct op){.name = facts_get_text(f)};
    o->opcode = facts_get_text(f);
    o->shape = facts_get_text(f);
    o->comp = facts_get_text(f);
    o->framework = facts_get_text(f);
    o->self_ps = facts_get_u64(f);
}

static size_t get_links(struct facts *f, struct link *v)
{
    size_t n = 0;
    for (; facts_get_u64(f) == 1 && !f->bad; n++) {
        struct link l = {.from = facts_get_u64(f)};
        l.to = facts_get_u64(f);
        l.kind = facts_get_u64(f);
        if (v)
            v[n] = l;
    }
    return n;
}

static bool get_view(struct facts *f, struct view *v, struct xp_arena *a)
{
    v->total_matches = facts_get_u64(f);
    v->nmatches = facts_get_count(f);
    v->matches = xp_arena_alloc(a, (v->nmatches + 1) * sizeof *v->matches);
    for (size_t i = 0; v->matches && i < v->nmatches; i++)
        get_op(f, &v->matches[i]);
    v->nnodes = facts_get_count(f);
    v->nodes = xp_arena_alloc(a, (v->nnodes + 1) * sizeof *v->nodes);
    for (size_t i = 0; v->nodes && i < v->nnodes; i++) {
        get_op(f, &v->nodes[i]);
        v->nodes[i].distance = facts_get_u64(f);
        v->nodes[i].more_operands = facts_get_u64(f);
        v->nodes[i].more_users = facts_get_u64(f);
    }
    struct facts again = *f;
    v->nlinks = get_links(f, NULL);
    v->links = xp_arena_alloc(a, (v->nlinks + 1) * sizeof *v->links);
    if (!v->matches || !v->nodes || !v->links)
        return false;
    get_links(&again, v->links);
    for (size_t i = 0; i < v->nlinks; i++)
        if (v->links[i].from >= v->nnodes || v->links[i].to >= v->nnodes)
            f->bad = true;
    v->text = facts_get_text(f);
    v->npath = facts_get_count(f);
    v->path = xp_arena_alloc(a, (v->npath + 1) * sizeof *v->path);
    for (size_t i = 0; v->path && i < v->npath; i++)
        get_op(f, &v->path[i]);
    return v->path != NULL;
}

#define OP_COLUMNS                                                                                 \
    {"op", "Op", "", REPORT_COL_OP, false, "name of the HLO instruction"},                         \
        {"program_id", "Program", "", REPORT_COL_TEXT, false, ""},                                 \
        {"opcode", "Opcode", "", REPORT_COL_TEXT, false, ""},                                      \
        {"self_time", "Self time",                                                                 \
         "ps",        REPORT_COL_NUMBER,                                                           \
         true,        "on the host's devices; n/a: it did not run as an op of its own"},           \
        {"shape", "Shape", "", REPORT_COL_TEXT, false, "with its layout"},                         \
        {"computation", "Computation", "", REPORT_COL_TEXT, false, "it is part of"},               \
    {                                                                                              \
        "framework_op", "Framework op", "", REPORT_COL_TEXT, false, ""                             \
    }
#define OP_CELLS 7

static const struct report_column node_columns[] = {
    OP_COLUMNS,
    {"distance", "Distance", "", REPORT_COL_NUMBER, false, "steps from the op in question"},
    {"more_operands", "More operands", "count", REPORT_COL_NUMBER, false, "not among these nodes"},
    {"more_users", "More users", "count", REPORT_COL_NUMBER, false, "not among these nodes"},
};
static const struct report_column match_columns[] = {OP_COLUMNS};
static const struct report_column edge_columns[] = {
    {"from", "From", "", REPORT_COL_OP, false, "op whose result is used"},
    {"to", "To", "", REPORT_COL_OP, false, "op that uses it"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, ""},
    {"kind", "Kind", "", REPORT_COL_TEXT, false, "operand, or control: it only has to wait"},
    {"shape", "Shape", "", REPORT_COL_TEXT, false, "of what is handed over"},
    {"layout_changes", "Layout changes", "", REPORT_COL_BOOL, false,
     "the user is a copy or transpose to another layout"},
};

static struct report_cell text_or_none(struct xp_span s)
{
    return s.n ? report_of_text(s) : report_none();
}

static void op_cells(const struct view *v, const struct op *o, struct report_cell *c)
{
    c[0] = report_of_text(o->name);
    c[1] = v->program ? report_of_id(v->program) : report_none();
    c[2] = text_or_none(o->opcode);
    c[3] = o->self_ps ? report_of_u64(o->self_ps) : report_none();
    c[4] = text_or_none(o->shape);
    c[5] = text_or_none(o->comp);
    c[6] = text_or_none(o->framework);
}

static void node_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    op_cells(v, &v->nodes[i], c);
    c[OP_CELLS] = report_of_u64(v->nodes[i].distance);
    c[OP_CELLS + 1] = report_of_u64(v->nodes[i].more_operands);
    c[OP_CELLS + 2] = report_of_u64(v->nodes[i].more_users);
}

static void match_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    op_cells(v, &v->matches[i], c);
}

static void path_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    op_cells(v, &v->path[i], c);
}

static void edge_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct op *from = &v->nodes[v->links[i].from], *to = &v->nodes[v->links[i].to];
    bool moves = xp_span_eq(to->opcode, XP_SPAN_LIT("copy")) ||
                 xp_span_eq(to->opcode, XP_SPAN_LIT("transpose"));
    c[0] = report_of_text(from->name);
    c[1] = report_of_text(to->name);
    c[2] = v->program ? report_of_id(v->program) : report_none();
    c[3] = report_of_text(v->links[i].kind == CONTROL ? XP_SPAN_LIT("control")
                                                      : XP_SPAN_LIT("operand"));
    c[4] = text_or_none(from->shape);
    c[5] = report_of_bool(moves && !xp_span_eq(from->shape, to->shape));
}

#define ROWS(name, heading, cols, count, fn)                                                       \
    report_table(r, &(struct report_rows){.id = (name),                                            \
                                          .title = (heading),                                      \
                                          .columns = (cols),                                       \
                                          .ncolumns = sizeof(cols) / sizeof *(cols),               \
                                          .n = (count),                                            \
                                          .row = (fn),                                             \
                                          .ctx = v})

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
                       (int)(v->nodes[0].name.n < 100 ? v->nodes[0].name.n : 100),
                       (const char *)v->nodes[0].name.p, (int)(of->name.n < 100 ? of->name.n : 100),
                       (const char *)of->name.p, v->nnodes - 1, (unsigned long long)more);
    else if (asked.n)
        report_note(r, REPORT_WARNING, "no_such_op", "No op of %.*s has a name like that.",
                    (int)(of->name.n < 100 ? of->name.n : 100), (const char *)of->name.p);
    if (asked.n && v->total_matches > 1)
        report_note(r, REPORT_INFO, "several_match",
                    "%llu ops match; shown is the one that matches best or took longest.",
                    (unsigned long long)v->total_matches);
    ROWS("nodes", "Ops", node_columns, v->nnodes, node_row);
    ROWS("edges", "Edges", edge_columns, v->nlinks, edge_row);
    ROWS("matches", asked.n ? "Ops that match" : "Ops that took longest", match_columns,
         v->nmatches, match_row);
    ROWS("path", "Ops that it is part of", match_columns, v->npath, path_row);
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
