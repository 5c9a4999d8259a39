#include "shard/stats/hlo_cost.h"

#include <math.h>
#include <stdlib.h>

#include "shard/stats/hlo_library.h"

#define ELEMENT_FLOPS 3 /* of an elementwise operation that is not in the table */
#define CONCAT_FLOPS 6  /* a compare and a branch */
#define CONCAT_SPLIT_FLOPS                                                                         \
    400                 /* a warp crosses from one operand to the next: both branches run          \
                         */
#define FUSED_MAX 65536 /* instructions of a fusion that are looked at */
#define ROOTS_MAX 64    /* of an instruction; more count as one */

static double elements(const struct hlo_module *m, uint32_t shape)
{
    return (double)hlo_shape_elements(m, shape);
}

static uint64_t bytes(const struct hlo_module *m, uint32_t shape)
{
    int64_t n = hlo_shape_bytes(m, shape, 0);
    return n > 0 ? (uint64_t)n : 0;
}

static bool is_elementwise(enum hlo_opcode op)
{
    return hlo_opcode_elementwise(op) || op == HLO_OP_COPY;
}

/* --- one instruction --- */

static const uint16_t cycles[HLO_OP_COUNT][HLO_TYPE_C128 + 1] = {
#define X(op, type, n) [HLO_OP_##op][HLO_TYPE_##type] = n,
#include "shard/stats/gpu_cycles.def"
#undef X
};

static double element_flops(const struct hlo_module *m, const struct hlo_instr *in)
{
    uint32_t type = in->shape < m->nshapes ? m->shapes[in->shape].type : 0;
    uint16_t n = type <= HLO_TYPE_C128 ? cycles[in->opcode][type] : 0;
    return n ? n : ELEMENT_FLOPS;
}

/* Flops of a function of scalars, such as a reduction's. */
static double function_flops(const struct hlo_module *m, const struct hlo_instr *in)
{
    const struct hlo_comp *c = in->called.n ? hlo_comp_at(m, m->refs[in->called.at]) : NULL;
    double n = 0;
    for (uint32_t i = 0; c && i < c->instrs.n; i++) {
        const struct hlo_instr *x = hlo_instr_at(m, c->instrs.at + i);
        if (x && is_elementwise(x->opcode))
            n += element_flops(m, x);
    }
    return n;
}

static double reduce_flops(const struct hlo_module *m, const struct hlo_instr *in)
{
    const struct hlo_instr *from = hlo_operand(m, in, 0);
    const struct hlo_shape *s = &m->shapes[in->shape];
    double out =
        elements(m, s->type == HLO_TYPE_TUPLE && s->children.n ? s->children.at : in->shape);
    return from ? (elements(m, from->shape) - out) * function_flops(m, in) : 0;
}

/* As often as the function is applied: for each result, once less than the window has elements. A
 * window that spans its dimension from each place (a sum of all, told to all) counts as one sum. */
static double window_flops(const struct hlo_module *m, const struct hlo_instr *in)
{
    const struct hlo_run dims = m->shapes[hlo_library_result(m, in)].dims;
    double all = elements(m, hlo_library_result(m, in)), size = 1, span = 0;
    uint32_t wide = 0, padded = 0, at = 0;
    struct xp_span window, d;

    if (!hlo_get_span(in->raw, HLO_F_WINDOW, &window))
        return 0;
    for (struct hlo_spans it = hlo_spans_open(window, 1); hlo_spans_next(&it, &d); at++) {
        int64_t n = hlo_get_int(d, 1, 0), low = hlo_get_int(d, 3, 0), high = hlo_get_int(d, 4, 0);
        size *= (double)n;
        wide += n != 1;
        padded += low || high;
        if (n != 1 && low > 0 && low == high && n - 1 == 2 * low && at < dims.n &&
            m->ints[dims.at + at] - 1 == low)
            span = (double)m->ints[dims.at + at];
    }
    double times =
        wide == 1 && padded == 1 && span > 0 && m->shapes[in->shape].type != HLO_TYPE_TUPLE
            ? floor(all / span) + span - 1
            : (size - 1) * all;
    return times * function_flops(m, in);
}

static double sort_flops(const struct hlo_module *m, const struct hlo_instr *in)
{
    const struct hlo_instr *x = hlo_operand(m, in, 0);
    double n = x && x->shape < m->nshapes ? elements(m, x->shape) : 0;
    return n > 1 ? n * ceil(log2(n)) : 0;
}

static double scatter_flops(const struct hlo_module *m, const struct hlo_instr *in)
{
    const struct hlo_instr *update = hlo_operand(m, in, in->operands.n / 2 + 1);
    return update && update->shape < m->nshapes ? elements(m, update->shape) * function_flops(m, in)
                                                : 0;
}

static double dot_flops(const struct hlo_module *m, const struct hlo_instr *in)
{
    const struct hlo_instr *lhs = hlo_operand(m, in, 0);
    struct xp_span dims;
    if (!lhs || !hlo_get_span(in->raw, HLO_F_DOT_DIMENSION_NUMBERS, &dims))
        return 0;
    return hlo_dot_flops(m, lhs->shape, in->shape, dims);
}

static double concat_flops(const struct hlo_module *m, const struct hlo_instr *in)
{
    struct hlo_ints it = hlo_ints_open(in->raw, HLO_F_DIMENSIONS);
    double per = CONCAT_FLOPS;
    int64_t d = 0;
    hlo_ints_next(&it, &d);
    for (uint32_t k = 0; d > 0 && k < in->operands.n; k++) {
        const struct hlo_instr *x = hlo_operand(m, in, k);
        if (x && x->shape < m->nshapes && (uint64_t)d < m->shapes[x->shape].dims.n &&
            m->ints[m->shapes[x->shape].dims.at + (uint32_t)d] & 31)
            per = CONCAT_SPLIT_FLOPS;
    }
    return per * elements(m, in->shape);
}

static double flops_of(const struct hlo_module *m, const struct hlo_instr *in)
{
    if (in->shape >= m->nshapes)
        return 0;
    if (is_elementwise(in->opcode))
        return element_flops(m, in) * elements(m, in->shape);
    switch (in->opcode) {
    case HLO_OP_REDUCE:
        return reduce_flops(m, in);
    case HLO_OP_REDUCE_WINDOW:
        return window_flops(m, in);
    case HLO_OP_SCATTER:
        return scatter_flops(m, in);
    case HLO_OP_SORT:
        return sort_flops(m, in);
    case HLO_OP_DOT:
        return dot_flops(m, in);
    case HLO_OP_CONVOLUTION:
        return hlo_conv_flops(m, in);
    case HLO_OP_CONCATENATE:
        return concat_flops(m, in);
    case HLO_OP_MAP:
        return function_flops(m, in) * elements(m, in->shape);
    default:
        return 0;
    }
}

/* Of an operand's elements, the part that one run needs; the first value of a reduction is needed
 * for each of its results. */
static double needs(const struct hlo_module *m, const struct hlo_instr *in, uint32_t operand)
{
    const struct hlo_instr *x = hlo_operand(m, in, operand);
    const struct hlo_instr *update = hlo_operand(m, in, 1);
    double all = x && x->shape < m->nshapes ? elements(m, x->shape) : 0;

    if (in->opcode == HLO_OP_REDUCE && operand >= in->operands.n / 2)
        return elements(m, hlo_library_result(m, in));
    if (operand > 0 || all <= 0)
        return 1;
    switch (in->opcode) {
    case HLO_OP_SLICE:
    case HLO_OP_DYNAMIC_SLICE:
    case HLO_OP_GATHER:
        return elements(m, in->shape) / all;
    case HLO_OP_DYNAMIC_UPDATE_SLICE:
        return update && update->shape < m->nshapes ? 1 - elements(m, update->shape) / all : 1;
    default:
        return 1;
    }
}

/* --- a fusion --- */

/* An instruction of the fusion. It runs once for each of its roots: the nearest instructions on the
 * way to the fusion's result whose output is not used element by element. */
struct fused {
    double uses; /* as a root */
    double runs;
    uint32_t *roots; /* places in the fusion */
    uint32_t nroots;
};

struct fusion {
    const struct hlo_module *m;
    const struct hlo_comp *c;
    struct fused *v;
    uint32_t n;
};

static bool add_root(struct fused *f, uint32_t root)
{
    for (uint32_t i = 0; i < f->nroots; i++)
        if (f->roots[i] == root)
            return true;
    if (f->nroots == ROOTS_MAX)
        return true;
    if (!f->roots && !(f->roots = malloc(ROOTS_MAX * sizeof *f->roots)))
        return false;
    f->roots[f->nroots++] = root;
    return true;
}

static bool passes_on(const struct hlo_instr *in)
{
    return is_elementwise(in->opcode) || in->opcode == HLO_OP_TUPLE ||
           in->opcode == HLO_OP_GET_TUPLE_ELEMENT;
}

static bool use_operands(struct fusion *f, uint32_t place, const struct hlo_instr *in)
{
    for (uint32_t k = 0; k < in->operands.n; k++) {
        uint32_t at = f->m->refs[in->operands.at + k];
        if (at < f->c->instrs.at || at - f->c->instrs.at >= f->n)
            continue;
        uint32_t to = at - f->c->instrs.at;
        if (passes_on(in)) {
            for (uint32_t r = 0; r < f->v[place].nroots; r++)
                if (!add_root(&f->v[to], f->v[place].roots[r]))
                    return false;
            continue;
        }
        double all = elements(f->m, f->m->instrs[at].shape);
        double use = f->v[place].runs * needs(f->m, in, k);
        f->v[to].uses += all > 0 ? ceil(use * all) / all : 0;
        if (!add_root(&f->v[to], to))
            return false;
    }
    return true;
}

/* From the result to the parameters: users come after operands in the file. */
static bool walk(struct fusion *f, struct hlo_cost *out)
{
    for (uint32_t i = f->n; i--;) {
        const struct hlo_instr *in = &f->m->instrs[f->c->instrs.at + i];
        struct fused *x = &f->v[i];
        for (uint32_t r = 0; r < x->nroots; r++)
            x->runs += f->v[x->roots[r]].uses;
        out->flops += x->runs * flops_of(f->m, in);
        if (in->opcode == HLO_OP_PARAMETER)
            out->read_bytes +=
                (uint64_t)llround((double)bytes(f->m, in->shape) * (x->runs < 1 ? x->runs : 1));
        if (!use_operands(f, i, in))
            return false;
    }
    return true;
}

static bool fusion_cost(const struct hlo_module *m, const struct hlo_instr *in,
                        struct hlo_cost *out)
{
    const struct hlo_comp *c = in->called.n ? hlo_comp_at(m, m->refs[in->called.at]) : NULL;
    if (!c || !c->instrs.n || c->instrs.n > FUSED_MAX || c->root < c->instrs.at ||
        c->root - c->instrs.at >= c->instrs.n)
        return true;
    struct fusion f = {.m = m, .c = c, .n = c->instrs.n};
    f.v = calloc(f.n, sizeof *f.v);
    if (!f.v)
        return false;
    uint32_t root = c->root - c->instrs.at;
    f.v[root].uses = 1;
    bool ok = add_root(&f.v[root], root) && walk(&f, out);
    for (uint32_t i = 0; i < f.n; i++)
        free(f.v[i].roots);
    free(f.v);
    out->write_bytes = bytes(m, in->shape);
    return ok;
}

/* --- all --- */

static bool moves_nothing(enum hlo_opcode op)
{
    switch (op) {
    case HLO_OP_BITCAST:
    case HLO_OP_CALL:
    case HLO_OP_CONDITIONAL:
    case HLO_OP_CONSTANT:
    case HLO_OP_CUSTOM_CALL:
    case HLO_OP_GET_TUPLE_ELEMENT:
    case HLO_OP_PARAMETER:
    case HLO_OP_TUPLE:
    case HLO_OP_WHILE:
        return true;
    default:
        return false;
    }
}

/* By the widest operand, whose type the hardware's rate depends on. */
static double device_part(const struct hlo_module *m, const struct hlo_instr *in)
{
    uint32_t most = 0;
    for (uint32_t k = 0; k < in->operands.n; k++) {
        const struct hlo_instr *x = hlo_operand(m, in, k);
        uint32_t bits = x && x->shape < m->nshapes ? hlo_type_bits(m->shapes[x->shape].type) : 0;
        most = bits > most ? bits : most;
    }
    return most == 8 ? 0.5 : most == 4 ? 0.25 : 1;
}

static uint64_t operand_bytes(const struct hlo_module *m, const struct hlo_instr *in)
{
    uint64_t n = 0;
    for (uint32_t k = 0; k < in->operands.n; k++) {
        const struct hlo_instr *x = hlo_operand(m, in, k);
        n += x ? (uint64_t)llround((double)bytes(m, x->shape) * needs(m, in, k)) : 0;
    }
    return n;
}

/* Of calls only a library's convolutions and matrix products are known; their scratch memory does
 * not count. */
static void call_cost(const struct hlo_module *m, const struct hlo_instr *in, struct hlo_cost *out)
{
    if (hlo_is_library_dot(in)) {
        out->call_flops = hlo_library_dot_flops(m, in);
        out->call_device_flops = floor(out->call_flops * device_part(m, in));
        out->call_bytes = operand_bytes(m, in) + bytes(m, hlo_library_result(m, in));
    }
    if (!hlo_is_library_conv(in))
        return;
    out->flops = hlo_conv_flops(m, in);
    out->read_bytes = operand_bytes(m, in);
    *(m->shapes[in->shape].type == HLO_TYPE_TUPLE ? &out->other_bytes : &out->write_bytes) =
        bytes(m, hlo_library_result(m, in));
}

bool hlo_cost_of(const struct hlo_module *m, const struct hlo_instr *in, struct hlo_cost *out)
{
    *out = (struct hlo_cost){0};
    if (in->shape >= m->nshapes)
        return true;
    if (in->opcode == HLO_OP_FUSION) {
        if (!fusion_cost(m, in, out))
            return false;
    } else if (in->opcode == HLO_OP_CUSTOM_CALL) {
        call_cost(m, in, out);
    } else if (!moves_nothing(in->opcode)) {
        out->flops = flops_of(m, in);
        out->write_bytes = bytes(m, in->shape);
        out->read_bytes = operand_bytes(m, in);
    }
    out->flops = (double)(float)out->flops; /* XLA's properties are floats */
    out->device_flops = floor(out->flops * device_part(m, in));
    return true;
}
