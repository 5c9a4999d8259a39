#include "shard/tools/report_graph.h"

/* All ops of a module, in its order: what another module is compared with, op by op. */

#define OPS_MAX 100000
#define OPERANDS_MAX 100 /* numbers of rows, of each op */

struct row_op {
    struct graph_op op;
    struct xp_span kind, operands;
    uint64_t noperands, nusers, inner;
};

struct graph_ops {
    bool asked;
    uint64_t total;
    struct row_op *v;
    size_t n;
    uint64_t program;
};

void graph_put_ops(struct facts_out *f, const struct graph *g, const struct tool_args *args)
{
    struct xp_span asked = {0};
    struct xp_buf b;
    bool all = tool_arg(args, "ops", &asked) && xp_span_eq(asked, XP_SPAN_LIT("1"));
    uint32_t n = !all ? 0 : g->m->ninstrs < OPS_MAX ? g->m->ninstrs : OPS_MAX;
    facts_u64(f, all);
    facts_u64(f, g->m->ninstrs);
    facts_u64(f, n);
    xp_buf_init(&b, 4096);
    for (uint32_t i = 0; i < n; i++) {
        const struct hlo_instr *in = &g->m->instrs[i];
        struct xp_span kind = {0};
        hlo_get_span(in->raw, HLO_F_FUSION_KIND, &kind);
        graph_put_op(f, g, i);
        facts_text(f, kind);
        b.n = 0;
        for (uint32_t k = 0; k < in->operands.n && k < OPERANDS_MAX; k++)
            xp_buf_fmt(&b, k ? " %u" : "%u", g->m->refs[in->operands.at + k]);
        facts_text(f, xp_buf_all(&b));
        facts_u64(f, in->operands.n);
        facts_u64(f, in->users.n);
        facts_u64(f, graph_inner(g, in));
    }
    xp_buf_fini(&b);
}

struct graph_ops *graph_get_ops(struct facts *f, struct xp_arena *a)
{
    struct graph_ops *v = xp_arena_zalloc(a, sizeof *v);
    if (!v)
        return NULL;
    v->asked = facts_get_u64(f) != 0;
    v->total = facts_get_u64(f);
    v->n = facts_get_count(f);
    v->v = xp_arena_zalloc(a, (v->n + 1) * sizeof *v->v);
    for (size_t i = 0; v->v && i < v->n; i++) {
        struct row_op *o = &v->v[i];
        graph_get_op(f, &o->op);
        o->kind = facts_get_text(f);
        o->operands = facts_get_text(f);
        o->noperands = facts_get_u64(f);
        o->nusers = facts_get_u64(f);
        o->inner = facts_get_u64(f);
    }
    return v->v ? v : NULL;
}

#define OWN_CELLS 5
static const struct report_column own[OWN_CELLS] = {
    {"fusion_kind", "Fusion kind", "", REPORT_COL_TEXT, false, ""},
    {"operand_rows", "Operands", "", REPORT_COL_TEXT, false,
     "rows of the first hundred, from 0 in the module's order"},
    {"operands", "Number of operands", "count", REPORT_COL_NUMBER, false, ""},
    {"users", "Number of users", "count", REPORT_COL_NUMBER, false, ""},
    {"inner_ops", "Ops inside", "count", REPORT_COL_NUMBER, false,
     "of the computations that it calls; n/a: there is nothing to open"},
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct graph_ops *v = ctx;
    const struct row_op *o = &v->v[i];
    graph_op_cells(&o->op, v->program, c);
    c += GRAPH_OP_CELLS;
    c[0] = graph_text(o->kind);
    c[1] = graph_text(o->operands);
    c[2] = report_of_u64(o->noperands);
    c[3] = report_of_u64(o->nusers);
    c[4] = o->inner ? report_of_u64(o->inner) : report_none();
}

/* A table of ops: what each is, then columns of its own. */
static void put_ops(struct report *r, const struct report_column *more, size_t n_more,
                    struct report_rows *rows)
{
    struct report_column columns[GRAPH_OP_CELLS + OWN_CELLS];
    memcpy(columns, graph_op_columns, sizeof graph_op_columns);
    memcpy(columns + GRAPH_OP_CELLS, more, n_more * sizeof *more);
    rows->columns = columns;
    rows->ncolumns = (uint32_t)(GRAPH_OP_CELLS + n_more);
    report_table(r, rows);
}

void graph_ops_table(struct report *r, const struct graph_ops *v, uint64_t program)
{
    struct graph_ops all = *v;
    if (!v->asked)
        return;
    all.program = program;
    if (v->total > v->n)
        report_note(r, REPORT_WARNING, "ops_cut",
                    "Of %llu ops of the module the first %zu are listed.",
                    (unsigned long long)v->total, v->n);
    put_ops(
        r, own, OWN_CELLS,
        &(struct report_rows){
            .id = "ops", .title = "All ops of the module", .n = all.n, .row = row, .ctx = &all});
}

/* --- around an op --- */

#define NEAR_MAX 20000

struct near_op {
    struct graph_op op;
    uint64_t number, user, drawn;
};

struct graph_near {
    uint64_t total;
    struct near_op *v;
    size_t n;
    uint64_t program;
};

static uint32_t put_run(struct facts_out *f, const struct graph *g, struct hlo_run run, bool user,
                        uint32_t room)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < run.n && n < room; k++) {
        uint32_t i = g->m->refs[run.at + k];
        if (i >= g->m->ninstrs)
            continue;
        n++;
        facts_u64(f, 1);
        facts_u64(f, user);
        facts_u64(f, k);
        facts_u64(f, g->place[i] != 0);
        graph_put_op(f, g, i);
    }
    return n;
}

void graph_put_near(struct facts_out *f, const struct graph *g, uint32_t center)
{
    if (center != HLO_NONE) {
        const struct hlo_instr *in = &g->m->instrs[center];
        facts_u64(f, (uint64_t)in->operands.n + in->users.n);
        uint32_t users = in->users.n < NEAR_MAX / 2 ? in->users.n : NEAR_MAX / 2;
        put_run(f, g, in->operands, false, NEAR_MAX - users);
        put_run(f, g, in->users, true, NEAR_MAX / 2);
    } else {
        facts_u64(f, 0);
    }
    facts_u64(f, 0);
}

struct graph_near *graph_get_near(struct facts *f, struct xp_arena *a)
{
    struct graph_near *v = xp_arena_zalloc(a, sizeof *v);
    if (!v)
        return NULL;
    v->total = facts_get_u64(f);
    v->v = xp_arena_alloc(a, NEAR_MAX * sizeof *v->v);
    while (v->v && facts_get_u64(f) == 1 && !f->bad) {
        struct near_op o = {.user = facts_get_u64(f)};
        o.number = facts_get_u64(f);
        o.drawn = facts_get_u64(f);
        graph_get_op(f, &o.op);
        if (v->n < NEAR_MAX)
            v->v[v->n++] = o;
    }
    return v->v ? v : NULL;
}

#define NEAR_CELLS 3
_Static_assert(NEAR_CELLS <= OWN_CELLS, "put_ops has room for the longer");
static const struct report_column near_columns[NEAR_CELLS] = {
    {"relation", "It is", "", REPORT_COL_TEXT, false, "to the op in question"},
    {"number", "Number", "", REPORT_COL_NUMBER, false, "of the operand, from 0; of the user"},
    {"drawn", "Drawn", "", REPORT_COL_BOOL, false, "it is among the nodes"},
};

static void near_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct graph_near *v = ctx;
    const struct near_op *o = &v->v[i];
    graph_op_cells(&o->op, v->program, c);
    c += GRAPH_OP_CELLS;
    c[0] = report_of_text(o->user ? XP_SPAN_LIT("user") : XP_SPAN_LIT("operand"));
    c[1] = report_of_u64(o->number);
    c[2] = report_of_bool(o->drawn);
}

void graph_near_table(struct report *r, const struct graph_near *v, uint64_t program)
{
    struct graph_near all = *v;
    all.program = program;
    if (v->total > v->n)
        report_note(r, REPORT_INFO, "around_cut",
                    "Of %llu operands and users of the op %zu are listed.",
                    (unsigned long long)v->total, v->n);
    put_ops(r, near_columns, NEAR_CELLS,
            &(struct report_rows){.id = "around",
                                  .title = "Operands and users",
                                  .n = all.n,
                                  .row = near_row,
                                  .ctx = &all});
}
