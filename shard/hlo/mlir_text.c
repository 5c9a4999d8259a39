#include "shard/hlo/mlir_text.h"

#include "shard/hlo/mlir_int.h"

struct counters {
    uint32_t values, arguments;
};

/* Values are numbered region by region. What a region holds goes on from where the region around it
 * ended, so that its sides (of an "if") have the same numbers. */
static bool number_values(struct mlir *m, struct xp_arena *a)
{
    struct counters *end = xp_arena_zalloc(a, ((size_t)m->nregions + 1) * sizeof *end);
    if (!end)
        return false;
    for (uint32_t i = 0; i < m->nregions; i++) {
        const struct mlir_region *g = &m->regions[i];
        struct counters n = g->parent != MLIR_NONE ? end[g->parent] : (struct counters){0};
        for (uint32_t k = 0; k < g->narguments; k++)
            m->values[g->first_argument + k].label = n.arguments++;
        for (uint32_t o = g->first_op; o != MLIR_NONE; o = m->ops[o].next)
            if (m->ops[o].nresults)
                m->values[m->ops[o].first_result].label = n.values++;
        end[i] = n;
    }
    /* The results of one operation share its number. */
    for (uint32_t o = 0; o < m->nops; o++)
        for (uint32_t k = 1; k < m->ops[o].nresults; k++)
            m->values[m->ops[o].first_result + k].label = m->values[m->ops[o].first_result].label;
    return true;
}

struct printing {
    const struct mlir *m;
    struct xp_buf *out;
    uint32_t *part; /* of a value: which result of its operation, + 1; 0: the only one */
};

static void put_value(const struct printing *p, uint32_t value)
{
    const struct mlir_value *v = &p->m->values[value];
    xp_buf_fmt(p->out, v->argument ? "%%arg%u" : "%%%u", v->label);
    if (p->part[value])
        xp_buf_fmt(p->out, "#%u", p->part[value] - 1);
}

static void indent(const struct printing *p, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++)
        xp_buf_str(p->out, "  ");
}

static bool put_value_types(const struct printing *p, const uint32_t *values, uint32_t first,
                            uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        xp_buf_str(p->out, i ? ", " : "");
        uint32_t v = values ? values[i] : first + i;
        if (!mlir_put_type(p->m, p->m->values[v].type, p->out, MLIR_DEPTH_MAX))
            return false;
    }
    return true;
}

/* : (operands) -> results */
static bool put_signature(const struct printing *p, const struct mlir_op *op)
{
    xp_buf_str(p->out, " : (");
    if (!put_value_types(p, p->m->refs + op->operands, 0, op->noperands))
        return false;
    size_t at = p->out->n;
    xp_buf_str(p->out, ") -> ");
    size_t begin = p->out->n;
    xp_buf_str(p->out, op->nresults == 1 ? "" : "(");
    if (!put_value_types(p, NULL, op->first_result, op->nresults))
        return false;
    /* A single result that is a function gets parentheses too. */
    if (op->nresults == 1 && !p->out->failed && p->out->n > begin && p->out->p[begin] == '(') {
        p->out->n = at;
        xp_buf_str(p->out, ") -> (");
        if (!put_value_types(p, NULL, op->first_result, 1))
            return false;
        xp_buf_byte(p->out, ')');
    }
    xp_buf_str(p->out, op->nresults == 1 ? "" : ")");
    return true;
}

static bool is_module(const struct mlir *m, const struct mlir_op *op)
{
    return xp_span_eq(m->dialects[m->op_dialects[op->name]], XP_SPAN_LIT("builtin")) &&
           xp_span_eq(m->op_names[op->name], XP_SPAN_LIT("module"));
}

static void put_name(const struct printing *p, const struct mlir_op *op)
{
    xp_buf_byte(p->out, '"');
    xp_buf_span(p->out, p->m->dialects[p->m->op_dialects[op->name]]);
    xp_buf_byte(p->out, '.');
    xp_buf_span(p->out, p->m->op_names[op->name]);
    xp_buf_byte(p->out, '"');
}

/* All up to the regions. */
static bool begin_op(const struct printing *p, const struct mlir_op *op)
{
    struct xp_span symbol;
    if (op->nresults) {
        xp_buf_fmt(p->out, "%%%u", p->m->values[op->first_result].label);
        if (op->nresults > 1)
            xp_buf_fmt(p->out, ":%u", op->nresults);
        xp_buf_str(p->out, " = ");
    }
    if (is_module(p->m, op)) {
        xp_buf_str(p->out, "module");
        if (mlir_dict_string(p->m, op->attrs, "sym_name", &symbol)) {
            xp_buf_str(p->out, " @");
            xp_buf_span(p->out, symbol);
        }
        bool ok = mlir_put_dict(p->m, op->attrs, " attributes {", "sym_name", p->out);
        xp_buf_byte(p->out, ' ');
        return ok;
    }
    put_name(p, op);
    xp_buf_byte(p->out, '(');
    for (uint32_t i = 0; i < op->noperands; i++) {
        xp_buf_str(p->out, i ? ", " : "");
        put_value(p, p->m->refs[op->operands + i]);
    }
    xp_buf_str(p->out, op->nregions ? ") (" : ")");
    return true;
}

/* All behind the regions. */
static bool end_op(const struct printing *p, const struct mlir_op *op)
{
    if (is_module(p->m, op))
        return true;
    xp_buf_str(p->out, op->nregions ? ")" : "");
    return mlir_put_dict(p->m, op->attrs, " {", NULL, p->out) && put_signature(p, op);
}

static bool begin_region(const struct printing *p, const struct mlir_region *g, bool module,
                         uint32_t depth)
{
    xp_buf_str(p->out, "{\n");
    bool label = g->narguments || (g->has_block && g->first_op == MLIR_NONE);
    if (module || !label)
        return true;
    indent(p, depth);
    xp_buf_str(p->out, "^bb0");
    for (uint32_t i = 0; i < g->narguments; i++) {
        xp_buf_str(p->out, i ? ", " : "(");
        put_value(p, g->first_argument + i);
        xp_buf_str(p->out, ": ");
        if (!put_value_types(p, NULL, g->first_argument + i, 1))
            return false;
    }
    xp_buf_str(p->out, g->narguments ? "):\n" : ":\n");
    return true;
}

/* Where the printer is: the next operation of a region, the operation that holds the region. */
struct open_region {
    uint32_t op, region, next;
};

static bool put_all(const struct printing *p, struct open_region *open)
{
    const struct mlir *m = p->m;
    uint32_t depth = 0;
    open[0] = (struct open_region){MLIR_NONE, 0, m->regions[0].first_op};
    while (!p->out->failed) {
        struct open_region *o = &open[depth];
        if (o->next != MLIR_NONE) {
            const struct mlir_op *op = &m->ops[o->next];
            uint32_t at = o->next;
            o->next = op->next;
            indent(p, depth);
            if (!begin_op(p, op))
                return false;
            if (op->nregions) {
                const struct mlir_region *g = &m->regions[op->first_region];
                open[++depth] = (struct open_region){at, op->first_region, g->first_op};
                if (!begin_region(p, g, is_module(m, op), depth - 1))
                    return false;
                continue;
            }
            if (!end_op(p, op))
                return false;
        } else {
            if (depth == 0)
                return true;
            indent(p, depth - 1);
            xp_buf_byte(p->out, '}');
            const struct mlir_op *op = &m->ops[o->op];
            uint32_t next = m->regions[o->region].next;
            if (next != MLIR_NONE) {
                xp_buf_str(p->out, ", ");
                *o = (struct open_region){o->op, next, m->regions[next].first_op};
                if (!begin_region(p, &m->regions[next], false, depth - 1))
                    return false;
                continue;
            }
            depth--;
            if (!end_op(p, op))
                return false;
        }
        if (depth || open[0].next != MLIR_NONE)
            xp_buf_byte(p->out, '\n');
    }
    return true;
}

enum xp_status mlir_text(struct xp_span bytecode, const struct mlir_options *opt,
                         struct xp_arena *scratch, struct xp_buf *out, struct xp_error *err)
{
    struct mlir m;
    XP_TRY(mlir_read(bytecode, scratch, &m, err));
    m.opt = opt;
    struct printing p = {&m, out, xp_arena_zalloc(scratch, ((size_t)m.nvalues + 1) * 4)};
    struct open_region *open =
        xp_arena_alloc(scratch, ((size_t)m.nregions + 2) * sizeof(struct open_region));
    if (!p.part || !open || !number_values(&m, scratch))
        return xp_fail(err, XP_BUSY, 0, "no memory for MLIR bytecode");
    for (uint32_t o = 0; o < m.nops; o++)
        for (uint32_t k = 0; m.ops[o].nresults > 1 && k < m.ops[o].nresults; k++)
            p.part[m.ops[o].first_result + k] = k + 1;
    bool known = put_all(&p, open);
    if (out->failed)
        return xp_fail(err, XP_TOO_LARGE, 0, "the kernel's text is too large");
    return known ? XP_OK
                 : xp_fail(err, XP_CORRUPT, 0,
                           "the kernel has a type or an attribute that is not known here");
}
