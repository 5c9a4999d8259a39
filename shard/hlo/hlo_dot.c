#include "shard/hlo/hlo_dot.h"

#include "shard/hlo/dot_int.h"

/* --- edges come at the end, when all nodes are known --- */

static void edge_name(struct dot *d, const struct hlo_instr *in)
{
    hlo_text_name(&d->edges, in->name);
}

#define EDGES_MAX 64 /* between two nodes */

static void edge(struct dot *d, const struct hlo_instr *from, const struct hlo_instr *to,
                 uint32_t k, bool control)
{
    uint32_t at = hlo_index_of(d->m, from), end = hlo_index_of(d->m, to);
    if (d->edge_to[at] == end && d->edge_n[at] > EDGES_MAX)
        return;
    from = dot_edge_end(d, from);
    if (d->show[hlo_index_of(d->m, from)] == DOT_HIDE || from->opcode == HLO_OP_CONSTANT ||
        dot_fused_scalar(d, from) || dot_merged(d, from))
        return;
    at = hlo_index_of(d->m, from);
    d->edge_n[at] = d->edge_to[at] == end ? d->edge_n[at] + 1 : 1;
    d->edge_to[at] = end;
    xp_buf_fmt(&d->edges, "n%u -> n%u [arrowhead=%s tooltip=\"", hlo_index_of(d->m, from),
               hlo_index_of(d->m, to), dot_is_small(d, from) ? "empty" : "normal");
    edge_name(d, from);
    xp_buf_str(&d->edges, " -> ");
    edge_name(d, to);
    xp_buf_str(&d->edges, "\" ");
    if (control)
        xp_buf_str(&d->edges, "style=\"dotted\" color=\"gray\" label=\"ctrl\"");
    else if (to->operands.n > 1)
        xp_buf_fmt(&d->edges, " headlabel=\"%u\", labeldistance=2", k);
    xp_buf_str(&d->edges, "];\n");
}

/* What a fused parameter gets comes from the fusion's operand. */
static void parameter_edge(struct dot *d, const struct hlo_instr *in)
{
    const struct hlo_instr *fusion = &d->m->instrs[d->m->comps[in->comp].fused_by];
    if (in->comp == d->comp || in->parameter_number < 0 ||
        in->parameter_number >= fusion->operands.n)
        return;
    const struct hlo_instr *from = hlo_operand(d->m, fusion, (uint32_t)in->parameter_number);
    if (from)
        edge(d, from, in, 0, false);
}

static void incoming_edges(struct dot *d, const struct hlo_instr *in)
{
    if (in->opcode == HLO_OP_PARAMETER && dot_is_fused(d, in)) {
        parameter_edge(d, in);
        return;
    }
    for (uint32_t k = 0; k < in->operands.n && !d->edges.failed; k++)
        if (hlo_operand(d->m, in, k))
            edge(d, hlo_operand(d->m, in, k), in, k, false);
    for (uint32_t k = 0; k < in->controls.n && !d->edges.failed; k++) {
        const struct hlo_instr *from = hlo_instr_at(d->m, d->m->refs[in->controls.at + k]);
        if (from)
            edge(d, from, in, 0, true);
    }
}

/* --- nodes --- */

static void node(struct dot *d, const struct hlo_instr *in)
{
    struct xp_buf *out = d->to->out;
    enum dot_show show = d->show[hlo_index_of(d->m, in)];
    bool root = d->m->comps[in->comp].root == hlo_index_of(d->m, in);
    enum dot_color color;

    if ((in->opcode == HLO_OP_CONSTANT || dot_fused_scalar(d, in)) && !root)
        return;
    if (dot_merged(d, in) || dot_shows_fusion(d, in))
        return;
    if (show == DOT_HIGHLIGHT)
        color = DOT_DARK_RED;
    else if (show == DOT_NORMAL)
        color = dot_color_of(d, in);
    else
        color = DOT_DASHED;
    xp_buf_fmt(out, "n%u [label=<", hlo_index_of(d->m, in));
    dot_node_label(d, in);
    xp_buf_fmt(out, ">, shape=%s, tooltip=\"",
               show == DOT_HIGHLIGHT        ? "diamond"
               : in->opcode == HLO_OP_WHILE ? "ellipse"
                                            : "rect");
    dot_node_tooltip(d, in);
    xp_buf_str(out, "\", ");
    dot_color_text(out, color);
    xp_buf_str(out, "];\n");
    incoming_edges(d, in);
    if (d->to->flush)
        d->to->flush(d->to->ctx);
}

static void root_tag(struct dot *d)
{
    const struct hlo_instr *root = hlo_instr_at(d->m, d->m->comps[d->comp].root);
    const struct hlo_instr *from = root ? dot_edge_end(d, root) : NULL;

    if (!from || d->show[hlo_index_of(d->m, from)] == DOT_HIDE || from->opcode == HLO_OP_CONSTANT ||
        dot_fused_scalar(d, from))
        return;
    xp_buf_fmt(&d->edges, "n%u -> cluster_%u [tooltip=\" \"];\n", hlo_index_of(d->m, from),
               d->comp);
    xp_buf_fmt(d->to->out, "cluster_%u [label=<ROOT>, shape=circle, tooltip=\" \", ", d->comp);
    dot_color_text(d->to->out, DOT_BROWN);
    xp_buf_str(d->to->out, "];\n");
}

/* --- boxes: called computations inside the graph; the open ones are a stack, not recursion --- */

struct box {
    uint32_t comp, next, called; /* instruction of it, computation that this calls */
};

static void fusion_label(struct dot *d, const struct hlo_instr *fusion)
{
    struct xp_buf *out = d->to->out;
    bool highlight = d->show[hlo_index_of(d->m, fusion)] == DOT_HIGHLIGHT;

    xp_buf_fmt(out, "style=\"rounded,filled,bold\"; fillcolor=\"%s\"; color=\"%s;\"\n",
               highlight ? "#ffcdd2" : "#f5f5f5", highlight ? "#b71c1c" : "#c2c2c2");
    xp_buf_str(out, "label = <Fused expression for <b>");
    hlo_text_name(out, fusion->name);
    xp_buf_str(out, "</b><br/>");
    hlo_text_category(d->m, fusion, out);
    dot_extra_info(d, fusion, "<br/>");
    dot_backend_config(d, fusion, "<br/>");
}

static void open_box(struct dot *d, uint32_t comp, const struct hlo_instr *caller)
{
    struct xp_buf *out = d->to->out;

    xp_buf_fmt(out, "subgraph cluster_%u {\n", comp);
    if (caller->opcode == HLO_OP_FUSION) {
        fusion_label(d, caller);
    } else {
        xp_buf_str(out, "style=rounded; color=black;\nlabel = <Subcomputation for <b>");
        hlo_text_name(out, caller->name);
        xp_buf_str(out, "</b><br/>");
        hlo_text_name(out, d->m->comps[comp].name);
    }
    xp_buf_str(out, ">;\nlabelloc = t;\ntooltip = \" \";\n");
}

static void call_edge(struct dot *d, uint32_t comp, const struct hlo_instr *caller)
{
    const struct hlo_comp *c = &d->m->comps[comp];
    if (caller->opcode == HLO_OP_FUSION || c->root == HLO_NONE)
        return;
    const struct hlo_instr *from = dot_edge_end(d, &d->m->instrs[c->root]);
    xp_buf_fmt(&d->edges, "n%u -> n%u [ltail=\"cluster_%u\", style=\"dashed\" tooltip=\"",
               hlo_index_of(d->m, from), hlo_index_of(d->m, caller), comp);
    hlo_text_name(&d->edges, c->name);
    xp_buf_str(&d->edges, " -> ");
    edge_name(d, caller);
    xp_buf_str(&d->edges, "\"];\n");
}

/* The next computation that the instruction calls and that gets a box; HLO_NONE: no more. */
static uint32_t next_called(struct dot *d, const struct hlo_instr *in, uint32_t *k)
{
    while (*k < in->called.n) {
        uint32_t comp = d->m->refs[in->called.at + (*k)++];
        if (!dot_shows_comp(d, comp))
            continue;
        call_edge(d, comp, in);
        if (!d->clustered[comp])
            return comp;
    }
    return HLO_NONE;
}

static bool draw(struct dot *d)
{
    const struct hlo_module *m = d->m;
    struct box *open = xp_arena_alloc(d->to->scratch, ((size_t)m->ncomps + 2) * sizeof *open);
    size_t depth = 0;

    if (!open)
        return false;
    open[depth++] = (struct box){.comp = d->comp};
    while (depth && !d->to->out->failed) {
        struct box *b = &open[depth - 1];
        const struct hlo_comp *c = &m->comps[b->comp];
        if (b->next == c->instrs.n) {
            if (--depth)
                xp_buf_fmt(d->to->out, "\n}  // cluster_%u\n\n", b->comp);
            continue;
        }
        const struct hlo_instr *in = &m->instrs[c->instrs.at + b->next];
        uint32_t comp =
            d->show[c->instrs.at + b->next] == DOT_HIDE ? HLO_NONE : next_called(d, in, &b->called);
        if (comp != HLO_NONE) {
            d->clustered[comp] = 1;
            open_box(d, comp, in);
            open[depth++] = (struct box){.comp = comp};
            continue;
        }
        if (d->show[c->instrs.at + b->next] != DOT_HIDE)
            node(d, in);
        b->next++;
        b->called = 0;
    }
    return true;
}

/* --- the graph --- */

/* Who calls the computation, in file order. */
static void callers(struct dot *d)
{
    const struct hlo_module *m = d->m;
    struct xp_buf *out = d->to->out;
    const char *head = "<br/>Caller instructions: ";

    for (uint32_t i = 0; i < m->ninstrs && !out->failed; i++) {
        const struct hlo_run *called = &m->instrs[i].called;
        for (uint32_t k = 0; k < called->n; k++) {
            if (m->refs[called->at + k] != d->comp)
                continue;
            xp_buf_str(out, head);
            hlo_text_name(out, m->instrs[i].name);
            head = ", ";
            break;
        }
    }
}

static void header(struct dot *d, struct xp_span label)
{
    const struct hlo_comp *c = &d->m->comps[d->comp];
    struct xp_buf *out = d->to->out;

    xp_buf_str(out, "digraph G {\nrankdir = TB;\ncompound = true;\nlabel = <<b>");
    xp_buf_span(out, label);
    xp_buf_str(out, "<br/>Computation ");
    hlo_text_name(out, c->name);
    if (c->fused_by != HLO_NONE) {
        xp_buf_str(out, " (in fusion instruction ");
        hlo_text_name(out, d->m->instrs[c->fused_by].name);
        xp_buf_byte(out, ')');
    }
    if (d->comp == d->m->entry)
        xp_buf_str(out, "<br/>ENTRY computation");
    else if (c->fused_by == HLO_NONE)
        callers(d);
    xp_buf_str(out, "</b>>;\nlabelloc = t;\n// \"\" would not do\ntooltip = \" \";\n"
                    "stylesheet=<\n  data:text/css,\n  svg text {\n"
                    "    font-family: 'Roboto', sans-serif;\n    font-size: 12px;\n  }\n>\n\n");
}

static bool find_calls(struct dot *d)
{
    const struct hlo_module *m = d->m;
    uint8_t *many = xp_arena_zalloc(d->to->scratch, m->ncomps + 1);

    d->call = xp_arena_alloc(d->to->scratch, (m->ncomps + 1) * sizeof *d->call);
    if (!many || !d->call)
        return false;
    memset(d->call, 0xff, (m->ncomps + 1) * sizeof *d->call);
    for (uint32_t i = 0; i < m->ninstrs; i++)
        for (uint32_t k = 0; k < m->instrs[i].called.n; k++) {
            uint32_t comp = m->refs[m->instrs[i].called.at + k];
            if (comp >= m->ncomps)
                continue;
            bool only = !many[comp] && m->instrs[i].opcode == HLO_OP_CALL;
            d->call[comp] = only ? i : HLO_NONE;
            many[comp] = 1;
        }
    return true;
}

static bool prepare(struct dot *d)
{
    if (!find_calls(d))
        return false;
    d->show = xp_arena_alloc(d->to->scratch, d->m->ninstrs + 1);
    d->merged = xp_arena_zalloc(d->to->scratch, d->m->ninstrs + 1);
    d->shown = xp_arena_zalloc(d->to->scratch, d->m->ncomps + 1);
    d->clustered = xp_arena_zalloc(d->to->scratch, d->m->ncomps + 1);
    d->edge_to = xp_arena_alloc(d->to->scratch, (d->m->ninstrs + 1) * sizeof *d->edge_to);
    d->edge_n = xp_arena_zalloc(d->to->scratch, (d->m->ninstrs + 1) * sizeof *d->edge_n);
    if (!d->show || !d->merged || !d->shown || !d->clustered || !d->edge_to || !d->edge_n)
        return false;
    memset(d->edge_to, 0xff, (d->m->ninstrs + 1) * sizeof *d->edge_to);
    memset(d->show, DOT_NORMAL, d->m->ninstrs + 1);
    xp_buf_init(&d->edges, d->to->out->max);
    return true;
}

static enum xp_status graph(struct dot *d, struct xp_span label, struct xp_error *err)
{
    d->clustered[d->comp] = 1; /* it is the graph itself */
    header(d, label);
    bool drawn = draw(d);
    root_tag(d);
    xp_buf_span(d->to->out, xp_buf_all(&d->edges));
    xp_buf_byte(d->to->out, '}');
    bool failed = d->edges.failed;
    xp_buf_fini(&d->edges);
    if (!drawn)
        return xp_fail(err, XP_BUSY, 0, "no memory to draw a graph");
    return failed ? xp_fail(err, XP_TOO_LARGE, 0, "the graph is too large") : XP_OK;
}

enum xp_status hlo_dot_comp(const struct hlo_module *m, uint32_t comp,
                            const struct hlo_dot_options *opt, const struct hlo_dot_out *out,
                            struct xp_error *err)
{
    struct dot d = {.m = m, .opt = opt, .to = out, .comp = comp};
    if (!prepare(&d))
        return xp_fail(err, XP_BUSY, 0, "no memory to draw a graph");
    return graph(&d, (struct xp_span){0}, err);
}

enum xp_status hlo_dot_around(const struct hlo_module *m, uint32_t instr, uint32_t radius,
                              const struct hlo_dot_options *opt, const struct hlo_dot_out *out,
                              struct xp_error *err)
{
    struct dot d = {.m = m, .opt = opt, .to = out, .comp = m->instrs[instr].comp};
    struct xp_buf label;

    if (!prepare(&d) || !dot_neighbours(&d, instr, radius))
        return xp_fail(err, XP_BUSY, 0, "no memory to draw a graph");
    xp_buf_init(&label, 1 << 20);
    xp_buf_fmt(&label, "Neighborhood of %u nodes around ", radius);
    hlo_text_name(&label, m->instrs[instr].name);
    enum xp_status status = graph(&d, xp_buf_all(&label), err);
    xp_buf_fini(&label);
    return status;
}
