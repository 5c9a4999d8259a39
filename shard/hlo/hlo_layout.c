#include "shard/hlo/hlo_layout.h"

enum { LAYOUT_TILES = 6 };

static const struct hlo_shape *shape_at(const struct hlo_module *m, uint32_t i)
{
    return i < m->nshapes ? &m->shapes[i] : NULL;
}

#define RANK_MAX 32 /* what has more dimensions is compared with nothing */

static bool is_array(const struct hlo_shape *s)
{
    return s && s->type != HLO_TYPE_TUPLE && hlo_type_bits(s->type) > 0 && s->dims.n <= RANK_MAX;
}

static bool same_dims(const struct hlo_module *m, const struct hlo_shape *x,
                      const struct hlo_shape *y)
{
    if (x->dims.n != y->dims.n)
        return false;
    for (uint32_t i = 0; i < x->dims.n; i++)
        if (m->ints[x->dims.at + i] != m->ints[y->dims.at + i])
            return false;
    return true;
}

/* --- two layouts --- */

static bool tiles_differ(const struct hlo_shape *x, const struct hlo_shape *y)
{
    struct hlo_spans a = hlo_spans_open(x->layout, LAYOUT_TILES);
    struct hlo_spans b = hlo_spans_open(y->layout, LAYOUT_TILES);
    struct xp_span s, t;
    for (;;) {
        bool more = hlo_spans_next(&a, &s), other = hlo_spans_next(&b, &t);
        if (!more || !other)
            return more != other;
        if (!xp_span_eq(s, t))
            return true;
        if (x->type != y->type)
            return false;
    }
}

/* The order of the dimensions of more than one element: where there are no tiles, others may stand
 * anywhere. perm: dimension i of y is dimension perm[i] of x; NULL: they are the same. */
static bool orders_differ(const struct hlo_module *m, const struct hlo_shape *x,
                          const struct hlo_shape *y, const int64_t *perm)
{
    bool tiled = hlo_get_span(x->layout, LAYOUT_TILES, &(struct xp_span){0});
    uint32_t i = 0, k = 0;
    if (x->minor.n != x->dims.n || y->minor.n != y->dims.n)
        return false;
    for (;;) {
        int64_t a = -1, b = -1;
        while (i < x->minor.n && a < 0) {
            a = m->ints[x->minor.at + i++];
            if (a < 0 || a >= x->dims.n)
                return false;
            a = !tiled && m->ints[x->dims.at + a] == 1 ? -1 : a;
        }
        while (k < y->minor.n && b < 0) {
            b = m->ints[y->minor.at + k++];
            if (b < 0 || b >= y->dims.n)
                return false;
            b = perm ? perm[b] : b;
            b = !tiled && b >= 0 && b < x->dims.n && m->ints[x->dims.at + b] == 1 ? -1 : b;
        }
        if (a != b)
            return true;
        if (a < 0)
            return false;
    }
}

static uint32_t compare(const struct hlo_module *m, const struct hlo_shape *x,
                        const struct hlo_shape *y, const int64_t *perm)
{
    uint32_t changes = 0;
    if (!x->has_layout || !y->has_layout)
        return 0;
    if (x->dims.n > 0) {
        changes |= orders_differ(m, x, y, perm) ? HLO_LAYOUT_ORDER : 0;
        changes |= tiles_differ(x, y) ? HLO_LAYOUT_TILES : 0;
    }
    return changes | (x->memory_space != y->memory_space ? HLO_LAYOUT_SPACE : 0);
}

uint32_t hlo_layout_compare(const struct hlo_module *m, uint32_t x, uint32_t y)
{
    const struct hlo_shape *a = shape_at(m, x), *b = shape_at(m, y);
    if (!is_array(a) || !is_array(b) || !same_dims(m, a, b))
        return 0;
    return compare(m, a, b, NULL);
}

static uint32_t compare_transposed(const struct hlo_module *m, const struct hlo_instr *in,
                                   const struct hlo_shape *x, const struct hlo_shape *y)
{
    int64_t perm[RANK_MAX], v;
    uint32_t n = 0;
    struct hlo_ints it = hlo_ints_open(in->raw, HLO_F_DIMENSIONS);
    while (n < RANK_MAX && hlo_ints_next(&it, &v))
        perm[n++] = v;
    return n == x->dims.n && n == y->dims.n ? compare(m, x, y, perm) : 0;
}

/* Elements of the dimensions that a tile covers, which are the minor ones. */
static bool tiles_move(const struct hlo_module *m, const struct hlo_shape *x,
                       const struct hlo_shape *y)
{
    struct xp_span tile;
    struct hlo_spans it = hlo_spans_open(x->layout, LAYOUT_TILES);
    if (!hlo_spans_next(&it, &tile))
        return false;
    uint32_t covered = 0;
    int64_t v;
    struct hlo_ints dims = hlo_ints_open(tile, 1);
    while (hlo_ints_next(&dims, &v))
        covered++;
    for (uint32_t i = 0; i < covered; i++) {
        if (i >= x->minor.n || i >= y->minor.n)
            return x->minor.n != y->minor.n;
        int64_t a = m->ints[x->minor.at + i], b = m->ints[y->minor.at + i];
        if (a < 0 || b < 0 || a >= x->dims.n || b >= y->dims.n)
            return false;
        if (m->ints[x->dims.at + a] != m->ints[y->dims.at + b])
            return true;
    }
    return false;
}

static uint32_t compare_reshaped(const struct hlo_module *m, const struct hlo_shape *x,
                                 const struct hlo_shape *y)
{
    if (!x->has_layout || !y->has_layout)
        return 0;
    uint32_t changes = x->memory_space != y->memory_space ? HLO_LAYOUT_SPACE : 0;
    changes |= tiles_differ(x, y) ? HLO_LAYOUT_TILES : 0;
    return changes | (tiles_move(m, x, y) ? HLO_LAYOUT_DIMS : 0);
}

/* --- an op --- */

bool hlo_opcode_moves(enum hlo_opcode op)
{
    return op == HLO_OP_COPY || op == HLO_OP_COPY_START || op == HLO_OP_COPY_DONE ||
           op == HLO_OP_TRANSPOSE || op == HLO_OP_RESHAPE || op == HLO_OP_BITCAST_CONVERT;
}

/* Opcodes that say nothing of layouts by themselves: they hand on, or name anew. */
static bool says_nothing(enum hlo_opcode op)
{
    switch (op) {
    case HLO_OP_BITCAST:
    case HLO_OP_TUPLE:
    case HLO_OP_GET_TUPLE_ELEMENT:
    case HLO_OP_PARAMETER:
    case HLO_OP_WHILE:
    case HLO_OP_CONDITIONAL:
    case HLO_OP_CALL:
    case HLO_OP_COPY_DONE:
    case HLO_OP_ASYNC_UPDATE:
    case HLO_OP_ASYNC_DONE:
    case HLO_OP_OPT_BARRIER:
        return true;
    default:
        return false;
    }
}

/* An asynchronous slice and the like: results are the second member of its tuple. */
static uint32_t results_of(const struct hlo_module *m, const struct hlo_instr *in)
{
    int64_t second = 1;
    return in->opcode == HLO_OP_ASYNC_START ? hlo_subshape(m, in->shape, &second, 1) : in->shape;
}

static uint32_t compare_as(const struct hlo_module *m, const struct hlo_instr *in,
                           const struct hlo_shape *x, const struct hlo_shape *y)
{
    if (in->opcode == HLO_OP_ASYNC_START)
        return x->has_layout && y->has_layout && x->memory_space != y->memory_space
                   ? HLO_LAYOUT_SPACE
                   : 0;
    if (in->opcode == HLO_OP_TRANSPOSE)
        return compare_transposed(m, in, x, y);
    if (in->opcode == HLO_OP_RESHAPE)
        return compare_reshaped(m, x, y);
    return same_dims(m, x, y) ? compare(m, x, y, NULL) : 0;
}

static bool pay(struct hlo_layouts *l)
{
    l->spent |= l->work <= 0;
    return l->work-- > 0;
}

/* A comparison reads both layouts, whose tiles and minor dimensions may be any number. */
#define LAYOUT_UNIT 64

static bool pay_to_compare(struct hlo_layouts *l, const struct hlo_shape *x,
                           const struct hlo_shape *y)
{
    bool paid = pay(l);
    l->work -= (int64_t)(x->layout.n / LAYOUT_UNIT + y->layout.n / LAYOUT_UNIT);
    return paid;
}

/* Operand and result; of several results the first that differs. */
static void against_result(struct hlo_layouts *l, const struct hlo_instr *in, uint32_t from,
                           struct hlo_relayout *r)
{
    const struct hlo_module *m = l->m;
    uint32_t to = results_of(m, in);
    const struct hlo_shape *x = shape_at(m, from), *y = shape_at(m, to);
    if (says_nothing(in->opcode) || !is_array(x) || !y)
        return;
    uint32_t n = y->type == HLO_TYPE_TUPLE ? y->children.n : 1;
    uint32_t at = y->type == HLO_TYPE_TUPLE ? y->children.at : to;
    n = in->opcode == HLO_OP_COPY_START && n ? 1 : n;
    for (uint32_t i = 0; i < n && !r->changes && pay_to_compare(l, x, &m->shapes[at + i]); i++) {
        if (is_array(&m->shapes[at + i]))
            r->changes = compare_as(m, in, x, &m->shapes[at + i]);
        r->from = from;
        r->to = at + i;
    }
}

/* The first leaves of two shapes of one form that differ. */
static void against_parameter(struct hlo_layouts *l, uint32_t from, uint32_t to,
                              struct hlo_relayout *r)
{
    struct {
        uint32_t x, y, n;
    } stack[HLO_DEPTH_MAX + 1];
    uint32_t depth = 1;
    stack[0].x = from, stack[0].y = to, stack[0].n = 1;
    while (depth && pay(l)) {
        if (!stack[depth - 1].n) {
            depth--;
            continue;
        }
        uint32_t x = stack[depth - 1].x++, y = stack[depth - 1].y++;
        stack[depth - 1].n--;
        const struct hlo_shape *a = shape_at(l->m, x), *b = shape_at(l->m, y);
        if (a && b && a->type == HLO_TYPE_TUPLE && b->type == HLO_TYPE_TUPLE) {
            if (depth > HLO_DEPTH_MAX)
                return;
            stack[depth].x = a->children.at, stack[depth].y = b->children.at;
            stack[depth++].n = a->children.n < b->children.n ? a->children.n : b->children.n;
            continue;
        }
        if (!a || !b || !pay_to_compare(l, a, b))
            continue;
        r->changes = hlo_layout_compare(l->m, x, y);
        if (!r->changes)
            continue;
        r->from = x, r->to = y, r->boundary = true;
        return;
    }
}

struct hlo_relayout hlo_relayout_edge(struct hlo_layouts *l, const struct hlo_instr *in, uint32_t k)
{
    struct hlo_relayout r = {.operand = k, .from = HLO_NONE, .to = HLO_NONE, .inside = HLO_NONE};
    const struct hlo_instr *op = hlo_operand(l->m, in, k);
    if (!op)
        return r;
    struct hlo_run called = hlo_operand_called(in, k);
    for (uint32_t c = called.at; c < called.at + called.n && !r.changes && pay(l); c++) {
        uint32_t comp = l->m->refs[in->called.at + c];
        uint32_t p = hlo_parameter(l, comp, hlo_operand_parameter(in, k, c));
        if (p != HLO_NONE)
            against_parameter(l, op->shape, l->m->instrs[p].shape, &r);
    }
    if (!r.changes)
        against_result(l, in, op->shape, &r);
    return r;
}

/* An op that does nothing else and puts its operand into another order; bytes, or -1. */
static int64_t moves(struct hlo_layouts *l, const struct hlo_instr *in, struct hlo_relayout *r)
{
    const struct hlo_instr *op = hlo_operand(l->m, in, 0);
    *r = (struct hlo_relayout){.operand = HLO_NONE, .inside = HLO_NONE};
    if (!op || !hlo_opcode_moves(in->opcode))
        return -1;
    against_result(l, in, op->shape, r);
    return r->changes & ~(uint32_t)HLO_LAYOUT_SPACE ? hlo_shape_bytes(l->m, r->from, 0) : -1;
}

bool hlo_layouts_make(const struct hlo_module *m, struct xp_arena *a, struct hlo_layouts *l)
{
    struct hlo_relayout r;
    *l = (struct hlo_layouts){.m = m, .work = HLO_LAYOUT_WORK};
    l->parameters = xp_arena_alloc(a, ((size_t)m->ninstrs + 1) * sizeof *l->parameters);
    l->movers = xp_arena_alloc(a, ((size_t)m->ncomps + 1) * sizeof *l->movers);
    if (!l->parameters || !l->movers)
        return false;
    memset(l->parameters, 0xff, ((size_t)m->ninstrs + 1) * sizeof *l->parameters);
    for (uint32_t c = 0; c < m->ncomps; c++) {
        struct hlo_run run = m->comps[c].instrs;
        int64_t most = -1;
        l->movers[c] = HLO_NONE;
        for (uint32_t i = run.at; i < run.at + run.n; i++) {
            const struct hlo_instr *in = &m->instrs[i];
            bool parameter = in->opcode == HLO_OP_PARAMETER && in->parameter_number >= 0 &&
                             in->parameter_number < run.n;
            if (parameter && l->parameters[run.at + in->parameter_number] == HLO_NONE)
                l->parameters[run.at + in->parameter_number] = i;
            int64_t bytes = moves(l, in, &r);
            if (bytes > most)
                most = bytes, l->movers[c] = i;
        }
    }
    return true;
}

struct hlo_relayout hlo_relayout_op(struct hlo_layouts *l, const struct hlo_instr *in)
{
    struct hlo_relayout best = {
        .operand = HLO_NONE, .from = HLO_NONE, .to = HLO_NONE, .inside = HLO_NONE};
    int64_t most = -1;
    for (uint32_t k = 0; k < in->operands.n && pay(l); k++) {
        struct hlo_relayout r = hlo_relayout_edge(l, in, k);
        int64_t bytes = r.changes ? hlo_shape_bytes(l->m, r.from, 0) : -1;
        if (bytes > most)
            most = bytes, best = r;
    }
    uint32_t comp =
        in->opcode == HLO_OP_FUSION && in->called.n ? l->m->refs[in->called.at] : HLO_NONE;
    if (comp < l->m->ncomps && l->movers[comp] != HLO_NONE) {
        best.inside = l->movers[comp];
        if (!best.changes) {
            moves(l, &l->m->instrs[best.inside], &best);
            best.inside = l->movers[comp];
        }
    }
    return best;
}

/* --- what is called --- */

uint32_t hlo_parameter(const struct hlo_layouts *l, uint32_t comp, int64_t number)
{
    const struct hlo_comp *c = hlo_comp_at(l->m, comp);
    if (!c || number < 0 || number >= c->instrs.n)
        return HLO_NONE;
    return l->parameters[c->instrs.at + number];
}

struct hlo_run hlo_operand_called(const struct hlo_instr *in, uint32_t k)
{
    uint32_t n = in->called.n;
    switch (in->opcode) {
    case HLO_OP_FUSION:
    case HLO_OP_CALL:
    case HLO_OP_ASYNC_START:
        return (struct hlo_run){0, n ? 1 : 0};
    case HLO_OP_WHILE:
        return (struct hlo_run){0, k == 0 ? n : 0};
    case HLO_OP_CONDITIONAL:
        return k >= 1 && k - 1 < n ? (struct hlo_run){k - 1, 1} : (struct hlo_run){0, 0};
    default:
        return (struct hlo_run){0, 0};
    }
}

int64_t hlo_operand_parameter(const struct hlo_instr *in, uint32_t k, uint32_t c)
{
    switch (in->opcode) {
    case HLO_OP_FUSION:
    case HLO_OP_CALL:
    case HLO_OP_ASYNC_START:
        return c == 0 ? (int64_t)k : -1;
    case HLO_OP_WHILE:
        return k == 0 ? 0 : -1;
    case HLO_OP_CONDITIONAL:
        return k == c + 1 ? 0 : -1;
    default:
        return -1;
    }
}
