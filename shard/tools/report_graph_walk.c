#include "shard/tools/report_graph.h"

#define ASKED_MAX 50 /* names in a list of the address */
#define ROUNDS_MAX 8 /* what is opened may hold what is to be opened */

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

bool graph_init(struct graph *g, const struct hlo_module *m, struct xp_arena *a)
{
    size_t n = (size_t)m->ninstrs + 1;
    *g = (struct graph){.m = m, .a = a};
    g->self_ps = xp_arena_zalloc(a, n * sizeof *g->self_ps);
    g->place = xp_arena_zalloc(a, n * sizeof *g->place);
    g->opened_by = xp_arena_zalloc(a, ((size_t)m->ncomps + 1) * sizeof *g->opened_by);
    g->nodes = xp_arena_alloc(a, GRAPH_NODES_MAX * sizeof *g->nodes);
    return g->self_ps && g->place && g->opened_by && g->nodes &&
           hlo_layouts_make(m, a, &g->layouts);
}

/* --- a step --- */

static bool visit(struct graph *g, uint32_t instr, uint32_t distance, uint32_t within)
{
    if (instr >= g->m->ninstrs || g->place[instr] || g->nnodes >= g->limit)
        return false;
    g->nodes[g->nnodes] =
        (struct graph_node){.instr = instr, .distance = distance, .within = within};
    g->place[instr] = ++g->nnodes;
    return true;
}

/* Operands and users by turns: thousands of the ones leave room for the others. */
static void visit_around(struct graph *g, uint32_t node)
{
    const struct graph_node *n = &g->nodes[node];
    const struct hlo_instr *in = &g->m->instrs[n->instr];
    uint32_t most = in->operands.n > in->users.n ? in->operands.n : in->users.n;
    uint32_t distance = n->within == HLO_NONE ? n->distance + 1 : n->distance, within = n->within;
    for (uint32_t k = 0; k < most && g->nnodes < g->limit; k++) {
        if (k < in->operands.n)
            visit(g, g->m->refs[in->operands.at + k], distance, within);
        if (k < in->users.n)
            visit(g, g->m->refs[in->users.at + k], distance, within);
    }
}

static void grow(struct graph *g, uint32_t by)
{
    g->limit = g->nnodes + by < GRAPH_NODES_MAX ? g->nnodes + by : GRAPH_NODES_MAX;
}

/* --- what is called --- */

/* Not the functions of reductions, sorts and the like: these are about single elements. */
static bool can_open(const struct hlo_instr *in)
{
    switch (in->opcode) {
    case HLO_OP_FUSION:
    case HLO_OP_CALL:
    case HLO_OP_ASYNC_START:
    case HLO_OP_WHILE:
    case HLO_OP_CONDITIONAL:
        return in->called.n > 0;
    default:
        return false;
    }
}

uint32_t graph_inner(const struct graph *g, const struct hlo_instr *in)
{
    uint64_t n = 0;
    for (uint32_t c = 0; can_open(in) && c < in->called.n; c++) {
        const struct hlo_comp *comp = hlo_comp_at(g->m, g->m->refs[in->called.at + c]);
        n += comp ? comp->instrs.n : 0;
    }
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* The root, what operands are called in there, then from the root up, and what does not lead to it,
 * as far as there is room. */
static bool open_comp(struct graph *g, uint32_t comp, uint32_t node, uint32_t room)
{
    const struct hlo_comp *c = &g->m->comps[comp];
    uint32_t first = g->nnodes, distance = g->nodes[node].distance;
    grow(g, room);
    if (c->root != HLO_NONE)
        visit(g, c->root, distance, node);
    for (uint32_t k = 0; k < (room + 1) / 2; k++)
        visit(g, hlo_parameter(&g->layouts, comp, k), distance, node);
    for (uint32_t i = first; i < g->nnodes; i++) {
        struct hlo_run run = g->m->instrs[g->nodes[i].instr].operands;
        for (uint32_t k = 0; k < run.n && g->nnodes < g->limit; k++)
            visit(g, g->m->refs[run.at + k], distance, node);
    }
    for (uint32_t i = 0; i < c->instrs.n && g->nnodes < g->limit; i++)
        visit(g, c->instrs.at + i, distance, node);
    return g->nnodes > first;
}

/* The computations that it calls, each once; more than are nodes would not be drawn. */
static uint32_t called_once(struct graph *g, const struct hlo_instr *in, uint32_t node,
                            uint32_t comps[GRAPH_NODES_MAX])
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < in->called.n && n < GRAPH_NODES_MAX; c++) {
        uint32_t comp = g->m->refs[in->called.at + c];
        if (comp >= g->m->ncomps || g->opened_by[comp] == node + 1)
            continue;
        g->opened_by[comp] = node + 1;
        comps[n++] = comp;
    }
    return n;
}

static bool open_node(struct graph *g, uint32_t node)
{
    const struct hlo_instr *in = &g->m->instrs[g->nodes[node].instr];
    if (!can_open(in) || g->nodes[node].opened)
        return false;
    uint32_t comps[GRAPH_NODES_MAX];
    uint32_t n = called_once(g, in, node, comps);
    for (uint32_t c = 0; c < n && g->nnodes < GRAPH_NODES_MAX; c++)
        g->nodes[node].opened |=
            open_comp(g, comps[c], node, GRAPH_INSIDE / n ? GRAPH_INSIDE / n : 1);
    return g->nodes[node].opened;
}

/* --- what the address asks for --- */

struct asked {
    struct xp_span name;
    bool inside, done;
};

static uint32_t list(const struct tool_args *args, const char *name, bool inside, struct asked *v)
{
    struct xp_span s = {0};
    uint32_t n = 0;
    if (!tool_arg(args, name, &s))
        return 0;
    while (s.n && n < ASKED_MAX) {
        const uint8_t *end = memchr(s.p, ',', s.n);
        size_t len = end ? (size_t)(end - s.p) : s.n;
        v[n++] = (struct asked){.name = xp_span_of(s.p, len), .inside = inside};
        len += end != NULL;
        s = xp_span_of(s.p + len, s.n - len);
    }
    return n;
}

static uint32_t node_named(const struct graph *g, struct xp_span name)
{
    for (uint32_t i = 0; i < g->nnodes; i++)
        if (xp_span_eq(g->m->instrs[g->nodes[i].instr].name, name))
            return i;
    return HLO_NONE;
}

/* Names of ops that are not drawn may be so once others are opened: they are tried again. */
static void follow(struct graph *g, struct asked *v, uint32_t n)
{
    bool more = true;
    for (uint32_t round = 0; more && round < ROUNDS_MAX; round++) {
        more = false;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t node = v[i].done ? HLO_NONE : node_named(g, v[i].name);
            if (node == HLO_NONE)
                continue;
            v[i].done = more = true;
            if (v[i].inside) {
                open_node(g, node);
            } else {
                grow(g, GRAPH_GROW);
                visit_around(g, node);
            }
        }
    }
}

void graph_walk(struct graph *g, uint32_t center, const struct tool_args *args)
{
    struct asked v[2 * ASKED_MAX];
    struct xp_span merge = {0};
    g->radius = number(args, "radius", GRAPH_RADIUS, GRAPH_RADIUS_MAX);
    g->limit = number(args, "nodes", GRAPH_NODES, GRAPH_NODES_MAX);
    g->limit = g->limit ? g->limit : 1;
    visit(g, center, 0, HLO_NONE);
    for (uint32_t i = 0; i < g->nnodes && g->nodes[i].distance < g->radius; i++)
        visit_around(g, i);
    uint32_t n = list(args, "inside", true, v);
    n += list(args, "expand", false, v + n);
    follow(g, v, n);
    if (!tool_arg(args, "merge_fusion", &merge) || !xp_span_eq(merge, XP_SPAN_LIT("false")))
        return;
    for (uint32_t i = 0; i < g->nnodes; i++)
        if (g->m->instrs[g->nodes[i].instr].opcode == HLO_OP_FUSION)
            open_node(g, i);
}

uint32_t graph_missing(const struct graph *g, struct hlo_run run)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < run.n; k++) {
        uint32_t i = g->m->refs[run.at + k];
        n += i < g->m->ninstrs && !g->place[i];
    }
    return n;
}
