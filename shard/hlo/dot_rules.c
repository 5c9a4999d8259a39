/* What becomes a node of its own, what is drawn inside another, and what is left out. */
#include "shard/hlo/dot_int.h"

#define KIND_OF(d, in) ((d)->show[hlo_index_of((d)->m, in)])

static const struct hlo_instr *fusion_of(const struct dot *d, const struct hlo_instr *in)
{
    return hlo_instr_at(d->m, d->m->comps[in->comp].fused_by);
}

bool dot_is_fused(const struct dot *d, const struct hlo_instr *in)
{
    return fusion_of(d, in) != NULL;
}

static bool is_root(const struct dot *d, const struct hlo_instr *in)
{
    return d->m->comps[in->comp].root == hlo_index_of(d->m, in);
}

bool dot_fused_scalar(const struct dot *d, const struct hlo_instr *in)
{
    const struct hlo_instr *of = hlo_operand(d->m, in, 0);
    return in->opcode == HLO_OP_BROADCAST && dot_is_fused(d, in) && of &&
           of->opcode == HLO_OP_CONSTANT && hlo_shape_is_scalar_like(d->m, of->shape);
}

const struct hlo_instr *dot_fused_constant(const struct dot *d, const struct hlo_instr *in)
{
    const struct hlo_instr *fusion = in->opcode == HLO_OP_PARAMETER ? fusion_of(d, in) : NULL;
    if (!fusion || in->parameter_number < 0 || in->parameter_number >= fusion->operands.n)
        return NULL;
    const struct hlo_instr *of = hlo_operand(d->m, fusion, (uint32_t)in->parameter_number);
    return of && of->opcode == HLO_OP_CONSTANT ? of : NULL;
}

/* A tuple parameter that more than three shown users take apart. */
static bool is_taken_apart(const struct dot *d, const struct hlo_instr *in)
{
    uint32_t n = 0;

    if (in->opcode != HLO_OP_PARAMETER || d->m->shapes[in->shape].type != HLO_TYPE_TUPLE ||
        dot_is_fused(d, in))
        return false;
    for (uint32_t k = 0; k < in->users.n; k++) {
        const struct hlo_instr *user = &d->m->instrs[d->m->refs[in->users.at + k]];
        if (KIND_OF(d, user) == DOT_HIDE)
            continue;
        if (user->opcode != HLO_OP_GET_TUPLE_ELEMENT)
            return false;
        n++;
    }
    return n > 3;
}

bool dot_merged(struct dot *d, const struct hlo_instr *in)
{
    uint8_t *known = &d->merged[hlo_index_of(d->m, in)];
    if (!*known) {
        bool merged = (in->opcode == HLO_OP_GET_TUPLE_ELEMENT && !is_root(d, in)) ||
                      dot_fused_constant(d, in) || is_taken_apart(d, in);
        *known = merged ? 2 : 1;
    }
    return *known == 2;
}

/* --- computations --- */

static const char *trivial_op(const struct hlo_instr *root)
{
    static const struct {
        const char *direction, *text;
    } compares[] = {{"LE", "less-or-equal"}, {"GE", "greater-or-equal"}, {"GT", "greater-than"},
                    {"LT", "less-than"},     {"EQ", "equal-to"},         {"NE", "not-equal-to"}};
    struct xp_span direction = {0};

    switch (root->opcode) {
    case HLO_OP_ADD:
        return "add";
    case HLO_OP_MULTIPLY:
        return "multiply";
    case HLO_OP_MINIMUM:
        return "min";
    case HLO_OP_MAXIMUM:
        return "max";
    case HLO_OP_XOR:
        return "xor";
    case HLO_OP_AND:
        return "and";
    case HLO_OP_OR:
        return "or";
    case HLO_OP_COMPARE:
        hlo_get_span(root->raw, HLO_F_COMPARISON_DIRECTION, &direction);
        for (size_t i = 0; i < sizeof compares / sizeof *compares; i++)
            if (xp_span_eq(direction, xp_span_str(compares[i].direction)))
                return compares[i].text;
        return NULL;
    default:
        return NULL;
    }
}

static bool is_scalar_parameter(const struct dot *d, const struct hlo_instr *in)
{
    return in && in->opcode == HLO_OP_PARAMETER && hlo_shape_is_scalar_like(d->m, in->shape);
}

const char *dot_trivial(const struct dot *d, uint32_t comp)
{
    const struct hlo_comp *c = hlo_comp_at(d->m, comp);
    const struct hlo_instr *root = c ? hlo_instr_at(d->m, c->root) : NULL;

    if (!root || c->instrs.n != 3 || root->operands.n != 2 ||
        !hlo_shape_is_scalar_like(d->m, root->shape))
        return NULL;
    const struct hlo_instr *x = hlo_operand(d->m, root, 0), *y = hlo_operand(d->m, root, 1);
    if (!is_scalar_parameter(d, x) || !is_scalar_parameter(d, y) ||
        x->parameter_number + y->parameter_number != 1 ||
        (x->parameter_number != 0 && y->parameter_number != 0))
        return NULL;
    return trivial_op(root);
}

static bool shows_comp(struct dot *d, uint32_t comp)
{
    const struct hlo_comp *c = &d->m->comps[comp];

    if (c->fused_by != HLO_NONE) {
        enum dot_show fusion = d->show[c->fused_by];
        if (fusion == DOT_HIDE || fusion == DOT_SOME_OPERANDS || fusion == DOT_NO_OPERANDS ||
            !d->opt->fusions)
            return false;
    } else if (dot_trivial(d, comp)) {
        return false;
    }
    for (uint32_t k = 0; k < c->instrs.n; k++)
        if (d->show[c->instrs.at + k] != DOT_HIDE)
            return true;
    return false;
}

bool dot_shows_comp(struct dot *d, uint32_t comp)
{
    if (comp >= d->m->ncomps)
        return false;
    if (!d->shown[comp])
        d->shown[comp] = shows_comp(d, comp) ? 2 : 1;
    return d->shown[comp] == 2;
}

bool dot_shows_fusion(struct dot *d, const struct hlo_instr *in)
{
    return in->opcode == HLO_OP_FUSION && in->called.n &&
           dot_shows_comp(d, d->m->refs[in->called.at]);
}

const struct hlo_instr *dot_edge_end(struct dot *d, const struct hlo_instr *in)
{
    if (in->opcode == HLO_OP_GET_TUPLE_ELEMENT && hlo_operand(d->m, in, 0))
        in = hlo_operand(d->m, in, 0);
    /* A fusion that fuses itself would lead on for ever. */
    for (uint32_t n = 0; n < d->m->ncomps && dot_shows_fusion(d, in); n++) {
        const struct hlo_comp *c = &d->m->comps[d->m->refs[in->called.at]];
        if (c->root == HLO_NONE)
            break;
        in = &d->m->instrs[c->root];
    }
    return in;
}

bool dot_is_small(const struct dot *d, const struct hlo_instr *in)
{
    const struct hlo_module *m = d->m;
    /* Shapes inside a tuple lie behind it: up to the next one without a parent. */
    for (uint32_t s = in->shape; s < m->nshapes; s++) {
        if (s != in->shape && m->shapes[s].parent == HLO_NONE)
            break;
        if (m->shapes[s].type == HLO_TYPE_OPAQUE || m->shapes[s].type == HLO_TYPE_TOKEN)
            return true;
    }
    return hlo_shape_elements(m, in->shape) < 4096;
}

/* --- the neighbourhood --- */

/* As in XLA, an instruction may stand in the queue several times, and what the last of them says
 * counts; the queue's length is where ours ends. */
struct near {
    struct dot *d;
    uint32_t root;
    uint32_t *queue, *depth;
    size_t head, tail, cap;
};

static void push(struct near *n, uint32_t i, uint32_t depth)
{
    if (n->tail < n->cap && i != HLO_NONE) {
        n->queue[n->tail] = i;
        n->depth[n->tail++] = depth;
    }
}

/* Bitcasts are no distance. */
static void push_operands(struct near *n, const struct hlo_instr *in, uint32_t depth)
{
    for (uint32_t k = 0; k < in->operands.n; k++) {
        const struct hlo_instr *of = hlo_operand(n->d->m, in, k);
        if (!of || n->d->show[hlo_index_of(n->d->m, of)] != DOT_HIDE)
            continue;
        bool free_of_cost = of->opcode == HLO_OP_BITCAST || in->opcode == HLO_OP_BITCAST;
        push(n, hlo_index_of(n->d->m, of), free_of_cost ? depth : depth + 1);
    }
}

static void visit(struct near *n, uint32_t i, uint32_t depth)
{
    const struct hlo_module *m = n->d->m;
    const struct hlo_instr *in = &m->instrs[i];

    /* A tuple is usually the last of a graph: what goes into it says little. */
    if (i == n->root || in->opcode != HLO_OP_TUPLE)
        push_operands(n, in, depth);
    for (uint32_t k = 0; k < in->called.n; k++) {
        const struct hlo_comp *c = hlo_comp_at(m, m->refs[in->called.at + k]);
        if (c)
            push(n, c->root, depth + 1);
    }
    if (in->opcode == HLO_OP_CONSTANT)
        return;
    if (in->users.n > 16) {
        n->d->show[i] = DOT_SOME_USERS;
        return;
    }
    for (uint32_t k = 0; k < in->users.n; k++) {
        uint32_t user = m->refs[in->users.at + k];
        if (n->d->show[user] == DOT_HIDE)
            push(n, user, depth + 1);
    }
}

static bool displayed(const struct near *n, const uint8_t *found, uint32_t i)
{
    const struct hlo_instr *in = &n->d->m->instrs[i];
    return found[i] != DOT_HIDE || in->opcode == HLO_OP_CONSTANT ||
           in->comp != n->d->m->instrs[n->root].comp;
}

static void count_displayed(const struct near *n, const uint8_t *found, const struct hlo_run *run,
                            uint32_t *yes, uint32_t *no)
{
    *yes = *no = 0;
    for (uint32_t k = 0; k < run->n; k++) {
        uint32_t i = n->d->m->refs[run->at + k];
        bool is = i != HLO_NONE && displayed(n, found, i);
        *yes += is;
        *no += !is;
    }
}

static void settle(const struct near *n, const uint8_t *found, uint32_t i)
{
    const struct hlo_instr *in = &n->d->m->instrs[i];
    uint8_t *show = &n->d->show[i];
    uint32_t yes, no;

    count_displayed(n, found, &in->operands, &yes, &no);
    if (yes && no)
        *show = DOT_SOME_OPERANDS;
    else if (no)
        *show = DOT_NO_OPERANDS;
    if (*show == DOT_SOME_USERS) {
        count_displayed(n, found, &in->users, &yes, &no);
        if (!no)
            *show = DOT_NORMAL;
    }
}

/* --- what a collective that runs beside fusions hands from one to the next --- */

static bool root_calls(const struct hlo_module *m, const struct hlo_comp *c, struct xp_span target)
{
    const struct hlo_instr *root = c ? hlo_instr_at(m, c->root) : NULL;
    struct xp_span is = {0};
    return root && root->opcode == HLO_OP_CUSTOM_CALL &&
           hlo_get_span(root->raw, HLO_F_CUSTOM_CALL_TARGET, &is) && xp_span_eq(is, target);
}

static bool runs_beside(const struct hlo_comp *c)
{
    return xp_span_starts(c->name, XP_SPAN_LIT("async_collective_fusion"));
}

/* The fusion that the fusion's k-th operand is an element of. */
static const struct hlo_comp *element_of(const struct hlo_module *m, const struct hlo_instr *fusion,
                                         int64_t k)
{
    if (k < 0 || k >= fusion->operands.n)
        return NULL;
    const struct hlo_instr *of = hlo_operand(m, fusion, (uint32_t)k);
    if (!of || of->opcode != HLO_OP_GET_TUPLE_ELEMENT)
        return NULL;
    of = hlo_operand(m, of, 0);
    return of && of->opcode == HLO_OP_FUSION && of->called.n
               ? hlo_comp_at(m, m->refs[of->called.at])
               : NULL;
}

static bool only_root_uses(const struct hlo_module *m, const struct hlo_instr *in)
{
    for (uint32_t k = 0; k < in->users.n; k++)
        if (m->refs[in->users.at + k] != m->comps[in->comp].root)
            return false;
    return in->users.n > 0;
}

/* State of a collective, from its start to a fusion that runs meanwhile, or from there to its end:
 * a parameter that is passed on and no more. XProf's neighbourhoods are without them (its whole
 * computations are not), which was found by asking it about modules made for that. */
static bool passes_state(const struct dot *d, const struct hlo_instr *in)
{
    const struct hlo_module *m = d->m;
    const struct hlo_comp *here = &m->comps[in->comp];
    const struct hlo_instr *fusion = hlo_instr_at(m, here->fused_by);

    if (in->opcode != HLO_OP_PARAMETER || !fusion || !only_root_uses(m, in))
        return false;
    const struct hlo_comp *from = element_of(m, fusion, in->parameter_number);
    if (!from)
        return false;
    return (runs_beside(here) && root_calls(m, from, XP_SPAN_LIT("AsyncCollectiveStart"))) ||
           (runs_beside(from) && root_calls(m, here, XP_SPAN_LIT("AsyncCollectiveDone")));
}

static void hide_state(struct dot *d)
{
    for (uint32_t i = 0; i < d->m->ninstrs; i++)
        if (d->show[i] != DOT_HIDE && passes_state(d, &d->m->instrs[i]))
            d->show[i] = DOT_HIDE;
}

bool dot_neighbours(struct dot *d, uint32_t instr, uint32_t radius)
{
    const struct hlo_module *m = d->m;
    struct near n = {.d = d, .root = instr, .cap = 4 * ((size_t)m->nrefs + m->ninstrs) + 64};
    uint8_t *found = xp_arena_alloc(d->to->scratch, m->ninstrs + 1);

    n.queue = xp_arena_alloc(d->to->scratch, n.cap * sizeof *n.queue);
    n.depth = xp_arena_alloc(d->to->scratch, n.cap * sizeof *n.depth);
    if (!found || !n.queue || !n.depth)
        return false;
    memset(d->show, DOT_HIDE, m->ninstrs);
    push(&n, instr, 0);
    while (n.head < n.tail) {
        uint32_t i = n.queue[n.head], depth = n.depth[n.head];
        n.head++;
        d->show[i] = DOT_NORMAL;
        if (depth < radius)
            visit(&n, i, depth);
    }
    memcpy(found, d->show, m->ninstrs);
    for (uint32_t i = 0; i < m->ninstrs; i++) {
        if (found[i] != DOT_HIDE)
            settle(&n, found, i);
        else if (m->instrs[i].comp != m->instrs[instr].comp)
            d->show[i] = DOT_NORMAL;
    }
    hide_state(d);
    d->show[instr] = DOT_HIGHLIGHT;
    return true;
}
