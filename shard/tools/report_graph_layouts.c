#include <stdlib.h>

#include "shard/tools/report_graph.h"
#include "shard/tools/report_programs.h"

/* Where layouts change in a module, those first that take time for nothing else, then by bytes;
 * with what the module says of why. */

#define LAYOUTS_MAX 1000
#define USERS_MAX 64 /* of a copy, that are looked at for who wants it */
#define WHY_MAX 900
#define MOVES (HLO_LAYOUT_ORDER | HLO_LAYOUT_TILES | HLO_LAYOUT_DIMS)

struct move {
    uint32_t instr;
    struct hlo_relayout r;
    int64_t bytes;
    uint64_t self_ps, only_ps; /* only_ps: it does nothing else in that time */
};

/* --- what the module says of why --- */

struct why {
    const struct graph *g;
    const struct hlo_module *m;
    struct xp_buf *b;
    uint32_t n;
};

static void say(struct why *w, const char *fmt, struct xp_span name)
{
    if (w->n >= 3)
        return;
    xp_buf_str(w->b, w->n++ ? "; " : "");
    for (const char *p = fmt; *p; p++)
        if (*p == '@')
            xp_buf_span(w->b, xp_span_of(name.p, name.n < 200 ? name.n : 200));
        else
            xp_buf_byte(w->b, (uint8_t)*p);
}

static void say_operand(struct why *w, const struct hlo_instr *op)
{
    const struct hlo_comp *comp = hlo_comp_at(w->m, op->comp);
    while (op && (op->opcode == HLO_OP_GET_TUPLE_ELEMENT || op->opcode == HLO_OP_BITCAST) &&
           op->operands.n)
        op = w->m->refs[op->operands.at] < hlo_index_of(w->m, op) ? hlo_operand(w->m, op, 0) : NULL;
    if (op && op->opcode == HLO_OP_PARAMETER)
        say(w,
            op->comp == w->m->entry ? "argument @ of the program comes so"
                                    : "@ of the computation around it comes so",
            op->name);
    else if (op && op->opcode == HLO_OP_CUSTOM_CALL && comp)
        say(w, "result of custom call @ comes so", op->name);
}

static void say_user(struct why *w, const struct hlo_instr *in, const struct hlo_instr *u)
{
    struct xp_span target = {0};
    const struct hlo_comp *comp = hlo_comp_at(w->m, u->comp);
    bool root = comp && comp->root == hlo_index_of(w->m, u);
    if (root && u->opcode == HLO_OP_TUPLE)
        say(w,
            u->comp == w->m->entry ? "it is a result of the program"
                                   : "it is a result of the computation @",
            comp->name);
    else if (u->opcode == HLO_OP_CUSTOM_CALL && hlo_get_int(u->raw, HLO_F_CONSTRAIN_LAYOUT, 0)) {
        hlo_get_span(u->raw, HLO_F_CUSTOM_CALL_TARGET, &target);
        say(w, "custom call @ takes this layout only", u->name);
    } else if (u->opcode == HLO_OP_CONVOLUTION || u->opcode == HLO_OP_DOT) {
        say(w, "operand of @", u->name);
    } else if (u->opcode == HLO_OP_FUSION && in->users.n == 1) {
        say(w, "operand of fusion @", u->name);
    }
}

static void say_memory(struct why *w, const struct hlo_relayout *r)
{
    int64_t from = w->m->shapes[r->from].memory_space, to = w->m->shapes[r->to].memory_space;
    const char *a = memory_space_name(from), *b = memory_space_name(to);
    struct xp_buf text;
    if (!(r->changes & HLO_LAYOUT_SPACE))
        return;
    xp_buf_init(&text, 200);
    if (a && b)
        xp_buf_fmt(&text, "from %s to %s", a, b);
    else
        xp_buf_fmt(&text, "from memory %lld to %lld", (long long)from, (long long)to);
    say(w, "@", xp_buf_all(&text));
    xp_buf_fini(&text);
}

static void say_why(const struct graph *g, const struct move *x, struct xp_buf *b)
{
    const struct hlo_instr *in = &g->m->instrs[x->instr];
    const struct hlo_comp *comp = hlo_comp_at(g->m, in->comp);
    struct why w = {.g = g, .m = g->m, .b = b};
    struct xp_span framework = hlo_meta_read(in->metadata).op_name;
    say_memory(&w, &x->r);
    if (x->r.inside != HLO_NONE)
        say(&w, "@ inside of it puts data into another order", g->m->instrs[x->r.inside].name);
    if (x->r.boundary)
        say(&w, "the computation that it calls takes it in another layout", in->name);
    if (x->r.changes & HLO_LAYOUT_DIMS)
        say(&w, "the same elements fill tiles of other dimensions", in->name);
    if (in->opcode == HLO_OP_TRANSPOSE && framework.n)
        say(&w, "@ asks for it", framework);
    if (!(x->r.changes & MOVES) || !hlo_opcode_moves(in->opcode))
        return;
    const struct hlo_instr *op = hlo_operand(g->m, in, 0);
    if (op)
        say_operand(&w, op);
    if (comp && comp->root == x->instr)
        say(&w,
            in->comp == g->m->entry ? "it is the result of the program"
                                    : "it is the result of the computation @",
            comp->name);
    for (uint32_t k = 0; k < in->users.n && k < USERS_MAX; k++)
        if (g->m->refs[in->users.at + k] < g->m->ninstrs)
            say_user(&w, in, &g->m->instrs[g->m->refs[in->users.at + k]]);
}

/* --- a host --- */

/* What begins a copy takes no time: what waits for it does. */
static uint64_t time_of(const struct graph *g, uint32_t instr)
{
    const struct hlo_instr *in = &g->m->instrs[instr];
    uint64_t ps = g->self_ps[instr];
    if (in->opcode != HLO_OP_COPY_START && in->opcode != HLO_OP_ASYNC_START)
        return ps;
    for (uint32_t k = 0; k < in->users.n && k < USERS_MAX; k++) {
        uint32_t u = g->m->refs[in->users.at + k];
        if (u < g->m->ninstrs && (g->m->instrs[u].opcode == HLO_OP_COPY_DONE ||
                                  g->m->instrs[u].opcode == HLO_OP_ASYNC_DONE))
            ps += g->self_ps[u];
    }
    return ps;
}

static int costly_first(const void *a, const void *b)
{
    const struct move *x = a, *y = b;
    if (x->only_ps != y->only_ps)
        return x->only_ps > y->only_ps ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->instr > y->instr) - (x->instr < y->instr);
}

static bool outside_of_fusions(const struct hlo_module *m, const struct hlo_instr *in)
{
    const struct hlo_comp *c = hlo_comp_at(m, in->comp);
    return c && c->fused_by == HLO_NONE && !c->is_fusion;
}

static uint32_t find(struct graph *g, struct move *v, bool *layouts)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->m->ninstrs; i++) {
        const struct hlo_instr *in = &g->m->instrs[i];
        if (in->shape < g->m->nshapes)
            *layouts |= g->m->shapes[in->shape].has_layout && g->m->shapes[in->shape].dims.n > 0;
        if (!outside_of_fusions(g->m, in))
            continue;
        struct hlo_relayout r = hlo_relayout_op(&g->layouts, in);
        if (!r.changes)
            continue;
        struct move x = {.instr = i, .r = r, .self_ps = time_of(g, i)};
        int64_t from = hlo_shape_bytes(g->m, r.from, 0), to = hlo_shape_bytes(g->m, r.to, 0);
        x.bytes = from < to ? from : to; /* of a slice only that moves */
        bool only = hlo_opcode_moves(in->opcode) || in->opcode == HLO_OP_ASYNC_START;
        x.only_ps = only ? x.self_ps : 0;
        v[n++] = x;
    }
    return n;
}

enum xp_status graph_put_layouts(struct facts_out *f, struct graph *g, struct xp_error *err)
{
    struct move *v = xp_arena_alloc(g->a, ((size_t)g->m->ninstrs + 1) * sizeof *v);
    struct xp_buf b;
    bool layouts = false;
    uint64_t all = 0, moves = 0, ps = 0;
    if (!v)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the layouts");
    uint32_t n = find(g, v, &layouts);
    qsort(v, n, sizeof *v, costly_first);
    for (uint32_t i = 0; i < g->m->ninstrs; i++)
        all += g->self_ps[i];
    for (uint32_t i = 0; i < n; i++) {
        moves += (v[i].r.changes & MOVES) != 0;
        ps += v[i].r.changes & MOVES ? v[i].only_ps : 0;
    }
    facts_u64(f, layouts);
    facts_u64(f, g->layouts.spent);
    facts_u64(f, n);
    facts_u64(f, moves);
    facts_u64(f, ps);
    facts_u64(f, all);
    xp_buf_init(&b, (size_t)4 << 10);
    facts_u64(f, n < LAYOUTS_MAX ? n : LAYOUTS_MAX);
    for (uint32_t i = 0; i < n && i < LAYOUTS_MAX; i++) {
        const struct hlo_instr *in = &g->m->instrs[v[i].instr];
        uint32_t op = v[i].r.operand < in->operands.n ? g->m->refs[in->operands.at + v[i].r.operand]
                                                      : HLO_NONE;
        b.n = 0;
        say_why(g, &v[i], &b);
        graph_put_op(f, g, v[i].instr);
        facts_u64(f, v[i].r.changes);
        graph_put_shape(f, g, v[i].r.from, false);
        graph_put_shape(f, g, v[i].r.to, false);
        facts_text(f, op < g->m->ninstrs ? g->m->instrs[op].name : (struct xp_span){0});
        facts_u64(f, (uint64_t)v[i].bytes);
        facts_u64(f, v[i].self_ps);
        facts_u64(f, v[i].only_ps);
        facts_text(f,
                   b.failed ? (struct xp_span){0} : xp_span_of(b.p, b.n < WHY_MAX ? b.n : WHY_MAX));
    }
    xp_buf_fini(&b);
    return XP_OK;
}

/* --- the table --- */

struct change {
    struct graph_op op;
    uint64_t changes, bytes, self_ps, only_ps;
    struct xp_span from, to, operand, why;
};

struct graph_layouts {
    bool layouts, spent;
    uint64_t total, moves, ps, all;
    struct change *v;
    size_t n;
    uint64_t program;
};

struct graph_layouts *graph_get_layouts(struct facts *f, struct xp_arena *a)
{
    struct graph_layouts *l = xp_arena_zalloc(a, sizeof *l);
    if (!l)
        return NULL;
    l->layouts = facts_get_u64(f) != 0;
    l->spent = facts_get_u64(f) != 0;
    l->total = facts_get_u64(f);
    l->moves = facts_get_u64(f);
    l->ps = facts_get_u64(f);
    l->all = facts_get_u64(f);
    l->n = facts_get_count(f);
    l->v = xp_arena_zalloc(a, (l->n + 1) * sizeof *l->v);
    for (size_t i = 0; l->v && i < l->n; i++) {
        struct change *x = &l->v[i];
        graph_get_op(f, &x->op);
        x->changes = facts_get_u64(f);
        x->from = facts_get_text(f);
        x->to = facts_get_text(f);
        x->operand = facts_get_text(f);
        x->bytes = facts_get_u64(f);
        x->self_ps = facts_get_u64(f);
        x->only_ps = facts_get_u64(f);
        x->why = facts_get_text(f);
    }
    return l->v ? l : NULL;
}

static const struct report_column columns[] = {
    {"op", "Op", "", REPORT_COL_OP, false, "that does it"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, ""},
    {"opcode", "Opcode", "", REPORT_COL_TEXT, false, ""},
    {"changes", "What changes", "", REPORT_COL_TEXT, false,
     "order of dimensions, tiles, memory, or dimensions (elements come into other tiles)"},
    {"move_time", "Time for it", "ps", REPORT_COL_NUMBER, true,
     "self time of ops that do nothing else, of an asynchronous one with its end; n/a: it is part "
     "of other work, or did not run as an op of its own"},
    {"bytes", "Bytes", "bytes", REPORT_COL_BYTES, true,
     "that come into the other layout, without padding: of the operand, or of the result if that "
     "is less (a slice)"},
    {"reason", "Why", "", REPORT_COL_TEXT, false,
     "what the module says of it; n/a: it says nothing"},
    {"from", "From", "", REPORT_COL_TEXT, false, "shape and layout of what is taken"},
    {"to", "To", "", REPORT_COL_TEXT, false, "of what is made of it"},
    {"operand", "Operand", "", REPORT_COL_OP, false, "whose result is taken"},
    {"self_time", "Self time", "ps", REPORT_COL_NUMBER, true, "of the op, all that it does"},
    {"computation", "Computation", "", REPORT_COL_TEXT, false, "it is part of"},
    {"framework_op", "Framework op", "", REPORT_COL_TEXT, false, ""},
    {"source", "Source", "", REPORT_COL_TEXT, false, "innermost place, file and line"},
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct graph_layouts *l = ctx;
    const struct change *x = &l->v[i];
    c[0] = report_of_text(x->op.name);
    c[1] = l->program ? report_of_id(l->program) : report_none();
    c[2] = graph_text(x->op.opcode);
    c[3] = graph_text(graph_changes_text((uint32_t)x->changes));
    c[4] = x->only_ps ? report_of_u64(x->only_ps) : report_none();
    c[5] = report_of_u64(x->bytes);
    c[6] = graph_text(x->why);
    c[7] = graph_text(x->from);
    c[8] = graph_text(x->to);
    c[9] = graph_text(x->operand);
    c[10] = x->self_ps ? report_of_u64(x->self_ps) : report_none();
    c[11] = graph_text(x->op.comp);
    c[12] = graph_text(x->op.framework);
    c[13] = graph_text(x->op.source);
}

void graph_layouts_write(struct report *r, const struct graph_layouts *l, uint64_t program)
{
    struct graph_layouts v = *l;
    v.program = program;
    if (!l->layouts) {
        report_na(r, "layout_changes",
                  "the module names no layouts: XLA chooses them when it compiles");
        report_na(r, "layout_change_fraction",
                  "the module names no layouts: XLA chooses them when it compiles");
        return;
    }
    report_u64(r, "layout_changes", l->moves, NULL);
    if (l->all)
        report_double(r, "layout_change_fraction", (double)l->ps / (double)l->all, NULL);
    else
        report_na(r, "layout_change_fraction",
                  "no op of this program has a time: capture while it runs, with the device "
                  "tracer on");
    if (l->spent)
        report_note(r, REPORT_WARNING, "layouts_cut",
                    "The module is too large to look at every operand: more layouts may change.");
    if (l->total > l->n)
        report_note(r, REPORT_INFO, "layouts_most",
                    "Of %llu places where a layout changes the %zu that cost most are listed.",
                    (unsigned long long)l->total, l->n);
    report_table(r, &(struct report_rows){.id = "layouts",
                                          .title = "Where layouts change",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = v.n,
                                          .row = row,
                                          .ctx = &v});
}
