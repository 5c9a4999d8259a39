#include "shard/tools/report_graph.h"

/* --- an op --- */

void graph_put_shape(struct facts_out *f, const struct graph *g, uint32_t shape, bool layout_only)
{
    struct xp_buf b;
    xp_buf_init(&b, GRAPH_SHAPE_MAX);
    hlo_shape_text(g->m, shape, true, &b);
    struct xp_span s = b.failed ? XP_SPAN_LIT("(...)") : xp_buf_all(&b);
    const uint8_t *brace = layout_only && s.n ? memchr(s.p, '{', s.n) : NULL;
    facts_text(f, brace ? xp_span_of(brace, (size_t)(s.p + s.n - brace)) : s);
    xp_buf_fini(&b);
}

/* The innermost place in the source: file:line. */
void graph_put_source(struct facts_out *f, const struct graph *g, const struct hlo_instr *in)
{
    struct hlo_meta meta = hlo_meta_read(in->metadata);
    struct xp_buf b;
    xp_buf_init(&b, (size_t)64 << 10);
    if (meta.source_file.n && meta.source_line) {
        xp_buf_span(&b, meta.source_file);
        xp_buf_fmt(&b, ":%d", (int)meta.source_line);
    } else {
        hlo_stack_text(g->m, meta.stack_frame_id, &b);
    }
    struct xp_span s = b.failed ? (struct xp_span){0} : xp_buf_all(&b);
    const uint8_t *end = s.n ? memchr(s.p, '\n', s.n) : NULL;
    facts_text(f, end ? xp_span_of(s.p, (size_t)(end - s.p)) : s);
    xp_buf_fini(&b);
}

void graph_put_op(struct facts_out *f, const struct graph *g, uint32_t instr)
{
    const struct hlo_instr *in = &g->m->instrs[instr];
    const struct hlo_comp *comp = hlo_comp_at(g->m, in->comp);
    facts_text(f, in->name);
    facts_text(f, in->opcode_text);
    graph_put_shape(f, g, in->shape, false);
    facts_text(f, comp ? comp->name : (struct xp_span){0});
    facts_text(f, hlo_meta_read(in->metadata).op_name);
    graph_put_source(f, g, in);
    facts_u64(f, g->self_ps[instr]);
}

void graph_get_op(struct facts *f, struct graph_op *o)
{
    *o = (struct graph_op){.name = facts_get_text(f)};
    o->opcode = facts_get_text(f);
    o->shape = facts_get_text(f);
    o->comp = facts_get_text(f);
    o->framework = facts_get_text(f);
    o->source = facts_get_text(f);
    o->self_ps = facts_get_u64(f);
}

const struct report_column graph_op_columns[GRAPH_OP_CELLS] = {
    {"op", "Op", "", REPORT_COL_OP, false, "name of the HLO instruction"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, ""},
    {"opcode", "Opcode", "", REPORT_COL_TEXT, false, ""},
    {"self_time", "Self time", "ps", REPORT_COL_NUMBER, true,
     "on the host's devices; n/a: it did not run as an op of its own"},
    {"shape", "Shape", "", REPORT_COL_TEXT, false, "with its layout"},
    {"computation", "Computation", "", REPORT_COL_TEXT, false, "it is part of"},
    {"framework_op", "Framework op", "", REPORT_COL_TEXT, false, ""},
    {"source", "Source", "", REPORT_COL_TEXT, false, "innermost place, file and line"},
};

struct report_cell graph_text(struct xp_span s)
{
    return s.n ? report_of_text(s) : report_none();
}

void graph_op_cells(const struct graph_op *o, uint64_t program, struct report_cell *c)
{
    c[0] = report_of_text(o->name);
    c[1] = program ? report_of_id(program) : report_none();
    c[2] = graph_text(o->opcode);
    c[3] = o->self_ps ? report_of_u64(o->self_ps) : report_none();
    c[4] = graph_text(o->shape);
    c[5] = graph_text(o->comp);
    c[6] = graph_text(o->framework);
    c[7] = graph_text(o->source);
}

struct xp_span graph_changes_text(uint32_t changes)
{
    static const char *const texts[16] = {
        "",
        "order",
        "tiles",
        "order, tiles",
        "memory",
        "order, memory",
        "tiles, memory",
        "order, tiles, memory",
        "dimensions",
        "order, dimensions",
        "tiles, dimensions",
        "order, tiles, dimensions",
        "memory, dimensions",
        "order, memory, dimensions",
        "tiles, memory, dimensions",
        "order, tiles, memory, dimensions",
    };
    return xp_span_str(texts[changes & 15]);
}

/* --- edges of a host --- */

struct edge {
    uint32_t from, to, count;
    uint8_t kind;
    struct hlo_relayout move;
};

struct edges {
    struct edge *v;
    uint32_t n;
    uint32_t last[GRAPH_NODES_MAX]; /* the edge from that node that was added last, + 1 */
};

static void add(struct graph *g, struct edges *e, uint32_t from, uint32_t to, uint8_t kind,
                const struct hlo_relayout *move)
{
    uint32_t node = from < g->m->ninstrs ? g->place[from] : 0;
    if (!node)
        return;
    struct edge *old = e->last[node - 1] ? &e->v[e->last[node - 1] - 1] : NULL;
    if (old && old->to == to && old->kind == kind) { /* one result, taken more than once */
        old->count++;
        return;
    }
    if (e->n == GRAPH_EDGES_MAX)
        return;
    e->v[e->n] = (struct edge){.from = node - 1, .to = to, .count = 1, .kind = kind};
    if (move)
        e->v[e->n].move = *move;
    e->last[node - 1] = ++e->n;
}

/* What the operands of an op that is open are called in there. */
static void add_parameters(struct graph *g, struct edges *e, const struct hlo_instr *in, uint32_t k,
                           const struct hlo_relayout *move)
{
    struct hlo_run called = hlo_operand_called(in, k);
    for (uint32_t c = called.at; c < called.at + called.n; c++) {
        int64_t number = hlo_operand_parameter(in, k, c);
        uint32_t p = hlo_parameter(&g->layouts, g->m->refs[in->called.at + c], number);
        if (p < g->m->ninstrs && g->place[p])
            add(g, e, g->m->refs[in->operands.at + k], g->place[p] - 1, GRAPH_PARAMETER, move);
    }
}

static void add_all(struct graph *g, struct edges *e)
{
    for (uint32_t i = 0; i < g->nnodes; i++) {
        const struct hlo_instr *in = &g->m->instrs[g->nodes[i].instr];
        for (uint32_t k = 0; k < in->operands.n; k++) {
            uint32_t from = g->m->refs[in->operands.at + k];
            if (from >= g->m->ninstrs || !g->place[from])
                continue;
            struct hlo_relayout move = hlo_relayout_edge(&g->layouts, in, k);
            add(g, e, from, i, GRAPH_OPERAND, &move);
            if (g->nodes[i].opened)
                add_parameters(g, e, in, k, &move);
        }
        for (uint32_t k = 0; k < in->controls.n; k++)
            add(g, e, g->m->refs[in->controls.at + k], i, GRAPH_CONTROL, NULL);
    }
}

enum xp_status graph_put_edges(struct facts_out *f, struct graph *g, struct xp_error *err)
{
    struct edges e = {.v = xp_arena_alloc(g->a, GRAPH_EDGES_MAX * sizeof *e.v)};
    if (!e.v)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the graph");
    add_all(g, &e);
    facts_u64(f, e.n);
    for (uint32_t i = 0; i < e.n; i++) {
        const struct edge *x = &e.v[i];
        facts_u64(f, x->from);
        facts_u64(f, x->to);
        facts_u64(f, x->kind);
        facts_u64(f, x->count);
        facts_u64(f, x->move.changes);
        if (!x->move.changes)
            continue;
        graph_put_shape(f, g, x->move.from, true);
        graph_put_shape(f, g, x->move.to, true);
    }
    return XP_OK;
}

/* --- the table --- */

struct link {
    uint64_t from, to, kind, count, changes;
    struct xp_span from_layout, to_layout;
};

struct graph_edges {
    struct link *v;
    size_t n;
};

struct graph_edges *graph_get_edges(struct facts *f, uint64_t nnodes, struct xp_arena *a)
{
    struct graph_edges *e = xp_arena_zalloc(a, sizeof *e);
    size_t n = facts_get_count(f);
    if (e)
        e->v = xp_arena_zalloc(a, (n + 1) * sizeof *e->v);
    for (size_t i = 0; e && e->v && i < n; i++) {
        struct link *l = &e->v[e->n++];
        l->from = facts_get_u64(f);
        l->to = facts_get_u64(f);
        l->kind = facts_get_u64(f);
        l->count = facts_get_u64(f);
        l->changes = facts_get_u64(f);
        if (l->changes) {
            l->from_layout = facts_get_text(f);
            l->to_layout = facts_get_text(f);
        }
        f->bad |= l->from >= nnodes || l->to >= nnodes;
    }
    return e && e->v ? e : NULL;
}

static const struct report_column columns[] = {
    {"from", "From", "", REPORT_COL_OP, false, "op whose result is used"},
    {"to", "To", "", REPORT_COL_OP, false, "op that uses it"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, ""},
    {"kind", "Kind", "", REPORT_COL_TEXT, false,
     "operand; control: it only has to wait; parameter: what the operand is called inside of an op "
     "that is open"},
    {"shape", "Shape", "", REPORT_COL_TEXT, false, "of what is handed over"},
    {"layout_changes", "Layout changes", "", REPORT_COL_BOOL, false,
     "the user gives it another layout, or takes it in another"},
    {"changes", "What changes", "", REPORT_COL_TEXT, false,
     "order of dimensions, tiles, memory, or dimensions (elements come into other tiles)"},
    {"from_layout", "From layout", "", REPORT_COL_TEXT, false, "as it is handed over"},
    {"to_layout", "To layout", "", REPORT_COL_TEXT, false, "of the result, or of the parameter"},
    {"count", "Times", "count", REPORT_COL_NUMBER, false, "that the user takes it"},
    {"from_node", "From node", "", REPORT_COL_NUMBER, false, "row of the table nodes, from 0"},
    {"to_node", "To node", "", REPORT_COL_NUMBER, false, "row of the table nodes, from 0"},
};

struct view {
    const struct graph_edges *e;
    const struct graph_op *nodes;
    uint64_t program;
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    static const char *const kinds[] = {"operand", "control", "parameter"};
    const struct view *v = ctx;
    const struct link *l = &v->e->v[i];
    c[0] = report_of_text(v->nodes[l->from].name);
    c[1] = report_of_text(v->nodes[l->to].name);
    c[2] = v->program ? report_of_id(v->program) : report_none();
    c[3] = report_of_text(xp_span_str(kinds[l->kind < 3 ? l->kind : 0]));
    c[4] = graph_text(v->nodes[l->from].shape);
    c[5] = report_of_bool(l->changes != 0);
    c[6] = graph_text(graph_changes_text((uint32_t)l->changes));
    c[7] = graph_text(l->from_layout);
    c[8] = graph_text(l->to_layout);
    c[9] = report_of_u64(l->count);
    c[10] = report_of_u64(l->from);
    c[11] = report_of_u64(l->to);
}

void graph_edges_table(struct report *r, const struct graph_edges *e, const struct graph_op *nodes,
                       uint64_t program)
{
    struct view v = {e, nodes, program};
    report_table(r, &(struct report_rows){.id = "edges",
                                          .title = "Edges",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = e->n,
                                          .row = row,
                                          .ctx = &v});
}
