#include "shard/tools/report_graph.h"

/* What a module says of an op and its neighbours that bears on fusion. No profile says why the
 * compiler fused what it did: these are facts, and no guesses at its reasons. */

#define NEIGHBOURS_MAX 30
#define FACTS_ROWS_MAX 400
#define DETAIL_MAX 400

enum relation { ITSELF, OPERAND, USER };

struct writer {
    struct facts_out *f;
    struct graph *g;
    const struct hlo_module *m;
    struct xp_buf b; /* of a detail */
    uint32_t n;
};

static void forget(struct writer *w)
{
    w->b.n = 0;
    w->b.failed = false;
}

static void put(struct writer *w, uint32_t instr, enum relation relation, const char *fact)
{
    if (w->n == FACTS_ROWS_MAX)
        return;
    w->n++;
    facts_u64(w->f, 1);
    facts_text(w->f, w->m->instrs[instr].name);
    facts_u64(w->f, relation);
    facts_text(w->f, xp_span_str(fact));
    facts_text(w->f, w->b.failed ? XP_SPAN_LIT("...") : xp_buf_all(&w->b));
    forget(w);
}

static void add(struct writer *w, struct xp_span s)
{
    xp_buf_span(&w->b, xp_span_of(s.p, s.n < 120 ? s.n : 120));
}

static struct xp_span field(const struct hlo_instr *in, uint32_t number)
{
    struct xp_span s = {0};
    hlo_get_span(in->raw, number, &s);
    return s;
}

static bool is_collective(enum hlo_opcode op)
{
    switch (op) {
    case HLO_OP_ALL_GATHER:
    case HLO_OP_ALL_GATHER_START:
    case HLO_OP_ALL_GATHER_DONE:
    case HLO_OP_ALL_REDUCE:
    case HLO_OP_ALL_REDUCE_START:
    case HLO_OP_ALL_REDUCE_DONE:
    case HLO_OP_ALL_TO_ALL:
    case HLO_OP_COLLECTIVE_BROADCAST:
    case HLO_OP_COLLECTIVE_PERMUTE:
    case HLO_OP_COLLECTIVE_PERMUTE_START:
    case HLO_OP_COLLECTIVE_PERMUTE_DONE:
    case HLO_OP_REDUCE_SCATTER:
        return true;
    default:
        return false;
    }
}

static bool ends_in(struct xp_span s, const char *tail)
{
    size_t n = strlen(tail);
    return s.n >= n && memcmp(s.p + s.n - n, tail, n) == 0;
}

/* What the op is: the first that holds. */
static void kind(struct writer *w, uint32_t i, enum relation relation)
{
    const struct hlo_instr *in = &w->m->instrs[i];
    const struct hlo_comp *c = in->called.n ? hlo_comp_at(w->m, w->m->refs[in->called.at]) : NULL;
    add(w, in->opcode_text);
    if (in->opcode == HLO_OP_FUSION) {
        forget(w);
        add(w, field(in, HLO_F_FUSION_KIND));
        if (c) {
            xp_buf_fmt(&w->b, ", %u ops", c->instrs.n);
            const struct hlo_instr *root = hlo_instr_at(w->m, c->root);
            if (root) {
                xp_buf_str(&w->b, ", root ");
                add(w, root->name);
                xp_buf_str(&w->b, " (");
                add(w, root->opcode_text);
                xp_buf_str(&w->b, ")");
            }
        }
        put(w, i, relation, "is a fusion");
    } else if (in->opcode == HLO_OP_CUSTOM_CALL) {
        forget(w);
        add(w, field(in, HLO_F_CUSTOM_CALL_TARGET));
        put(w, i, relation, "is a custom call, whose code is no HLO");
    } else if (in->opcode == HLO_OP_WHILE || in->opcode == HLO_OP_CONDITIONAL ||
               in->opcode == HLO_OP_CALL) {
        put(w, i, relation, "is control flow: what it calls are computations of their own");
    } else if (ends_in(in->opcode_text, "-start") || ends_in(in->opcode_text, "-done")) {
        put(w, i, relation, "is one end of an asynchronous operation");
    } else if (is_collective(in->opcode)) {
        put(w, i, relation, "is a collective");
    } else if (in->opcode == HLO_OP_PARAMETER || in->opcode == HLO_OP_CONSTANT ||
               in->opcode == HLO_OP_TUPLE || in->opcode == HLO_OP_GET_TUPLE_ELEMENT ||
               in->opcode == HLO_OP_BITCAST) {
        put(w, i, relation, "computes nothing");
    } else if (hlo_opcode_elementwise(in->opcode)) {
        put(w, i, relation, "works on each element by itself");
    } else {
        put(w, i, relation, "is an op of its own");
    }
}

static void size(struct writer *w, uint32_t i, enum relation relation)
{
    const struct hlo_instr *in = &w->m->instrs[i];
    int64_t bytes = hlo_shape_bytes(w->m, in->shape, 0);
    if (bytes == INT64_MAX)
        return;
    if (bytes >= 1 << 20)
        xp_buf_fmt(&w->b, "%.4g MiB", (double)bytes / (1 << 20));
    else
        xp_buf_fmt(&w->b, "%lld bytes", (long long)bytes);
    put(w, i, relation, "has a result of that size");
}

static void users(struct writer *w, uint32_t i, enum relation relation)
{
    const struct hlo_instr *in = &w->m->instrs[i];
    if (in->users.n < 2)
        return;
    xp_buf_fmt(&w->b, "%u: ", in->users.n);
    for (uint32_t k = 0; k < in->users.n && k < 4; k++) {
        const struct hlo_instr *u = hlo_instr_at(w->m, w->m->refs[in->users.at + k]);
        if (!u)
            continue;
        xp_buf_str(&w->b, k ? ", " : "");
        add(w, u->name);
    }
    xp_buf_str(&w->b, in->users.n > 4 ? ", ..." : "");
    put(w, i, relation, "has several users: each needs the result");
}

/* Where it stands: in a fusion, at the edge of a loop, at the end of its computation. */
static void place(struct writer *w, uint32_t i)
{
    const struct hlo_instr *in = &w->m->instrs[i];
    const struct hlo_comp *c = hlo_comp_at(w->m, in->comp);
    const struct hlo_instr *fusion = c ? hlo_instr_at(w->m, c->fused_by) : NULL;
    if (fusion) {
        add(w, fusion->name);
        put(w, i, ITSELF, "is fused: part of a fusion");
    }
    if (c && c->root == i) {
        add(w, c->name);
        put(w, i, ITSELF, "is the result of its computation");
    }
    if (in->controls.n) {
        xp_buf_fmt(&w->b, "%u", in->controls.n);
        put(w, i, ITSELF, "has to wait for ops that it does not use");
    }
    if (in->opcode == HLO_OP_CUSTOM_CALL &&
        hlo_get_int(in->raw, HLO_F_CUSTOM_CALL_HAS_SIDE_EFFECT, 0))
        put(w, i, ITSELF, "has side effects");
}

/* What lies between an op and one that uses it; `about` is the neighbour of the two. */
static void between(struct writer *w, uint32_t from, uint32_t to, uint32_t about,
                    enum relation relation)
{
    const struct hlo_instr *x = &w->m->instrs[from], *y = &w->m->instrs[to];
    int64_t a = hlo_shape_elements(w->m, x->shape), b = hlo_shape_elements(w->m, y->shape);
    for (uint32_t k = 0; k < y->operands.n; k++) {
        if (w->m->refs[y->operands.at + k] != from)
            continue;
        struct hlo_relayout r = hlo_relayout_edge(&w->g->layouts, y, k);
        if (r.changes) {
            xp_buf_span(&w->b, graph_changes_text(r.changes));
            put(w, about, relation, "changes the layout in between");
        }
        break;
    }
    bool data = y->opcode != HLO_OP_TUPLE && x->opcode != HLO_OP_TUPLE;
    if (data && a != b && a != INT64_MAX && b != INT64_MAX) {
        xp_buf_fmt(&w->b, "%lld and %lld", (long long)a, (long long)b);
        put(w, about, relation,
            relation == USER ? "has a result of another number of elements"
                             : "is of another number of elements");
    }
    const struct hlo_comp *c = hlo_comp_at(w->m, y->comp);
    if (relation == USER && y->opcode == HLO_OP_TUPLE && c && c->root == to) {
        add(w, c->name);
        put(w, about, relation,
            y->comp == w->m->entry ? "ends the program: what it takes is a result"
                                   : "ends a computation: what it takes goes to who called it");
    }
}

void graph_put_facts(struct facts_out *f, struct graph *g, uint32_t center)
{
    struct writer w = {.f = f, .g = g, .m = g->m};
    xp_buf_init(&w.b, DETAIL_MAX);
    if (center != HLO_NONE) {
        const struct hlo_instr *in = &g->m->instrs[center];
        kind(&w, center, ITSELF);
        place(&w, center);
        size(&w, center, ITSELF);
        users(&w, center, ITSELF);
        for (uint32_t k = 0; k < in->operands.n && k < NEIGHBOURS_MAX; k++) {
            uint32_t i = g->m->refs[in->operands.at + k];
            if (i >= g->m->ninstrs)
                continue;
            kind(&w, i, OPERAND);
            between(&w, i, center, i, OPERAND);
            users(&w, i, OPERAND);
        }
        for (uint32_t k = 0; k < in->users.n && k < NEIGHBOURS_MAX; k++) {
            uint32_t i = g->m->refs[in->users.at + k];
            if (i >= g->m->ninstrs)
                continue;
            kind(&w, i, USER);
            between(&w, center, i, i, USER);
        }
    }
    facts_u64(f, 0);
    xp_buf_fini(&w.b);
}

/* --- the table --- */

struct fact {
    struct xp_span op, fact, detail;
    uint64_t relation;
};

struct graph_facts {
    struct fact v[FACTS_ROWS_MAX];
    size_t n;
    uint64_t program;
};

struct graph_facts *graph_get_facts(struct facts *f, struct xp_arena *a)
{
    struct graph_facts *v = xp_arena_zalloc(a, sizeof *v);
    while (v && facts_get_u64(f) == 1 && !f->bad) {
        struct fact x = {.op = facts_get_text(f)};
        x.relation = facts_get_u64(f);
        x.fact = facts_get_text(f);
        x.detail = facts_get_text(f);
        if (v->n < FACTS_ROWS_MAX)
            v->v[v->n++] = x;
    }
    return v;
}

static const struct report_column columns[] = {
    {"op", "Op", "", REPORT_COL_OP, false, "that the fact is about"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, ""},
    {"relation", "It is", "", REPORT_COL_TEXT, false, "to the op in question"},
    {"fact", "Fact", "", REPORT_COL_TEXT, false, "as the module says it"},
    {"detail", "Detail", "", REPORT_COL_TEXT, false, ""},
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    static const char *const relations[] = {"the op", "operand", "user"};
    const struct graph_facts *v = ctx;
    const struct fact *x = &v->v[i];
    c[0] = report_of_text(x->op);
    c[1] = v->program ? report_of_id(v->program) : report_none();
    c[2] = report_of_text(xp_span_str(relations[x->relation < 3 ? x->relation : 0]));
    c[3] = graph_text(x->fact);
    c[4] = graph_text(x->detail);
}

void graph_facts_table(struct report *r, const struct graph_facts *v, uint64_t program)
{
    struct graph_facts *own = xp_arena_alloc(r->a, sizeof *own);
    if (!own)
        return;
    *own = *v;
    own->program = program;
    report_table(r, &(struct report_rows){
                        .id = "fusion",
                        .title = "What bears on fusion",
                        .note = "Facts of the module; why the compiler fused or did not is in no "
                                "profile.",
                        .columns = columns,
                        .ncolumns = sizeof columns / sizeof *columns,
                        .n = own->n,
                        .row = row,
                        .ctx = own});
}
