/* In which order things are printed: depth first over operands and over calls. No recursion: the
 * stacks are arrays, each thing is entered once, so that a ring ends. */
#include "shard/hlo/text_int.h"

/* --- computations --- */

struct comp_walk {
    const struct hlo_module *m;
    uint8_t *visited;
    struct frame {
        uint32_t comp, next; /* instruction of it */
    } * stack;
    uint32_t depth;
    uint32_t *order, n;
};

/* Called computations go on the stack in reverse, so that the first is entered first. */
static void push_called(struct comp_walk *w, const struct hlo_instr *in)
{
    for (uint32_t k = in->called.n; k-- > 0;) {
        uint32_t c = w->m->refs[in->called.at + k];
        if (c == HLO_NONE || w->visited[c])
            continue;
        w->visited[c] = 1;
        w->stack[w->depth++] = (struct frame){c, 0};
    }
}

static void walk_calls(struct comp_walk *w)
{
    while (w->depth) {
        struct frame *top = &w->stack[w->depth - 1];
        const struct hlo_comp *c = &w->m->comps[top->comp];
        if (top->next < c->instrs.n) {
            push_called(w, &w->m->instrs[c->instrs.at + top->next++]);
        } else {
            w->order[w->n++] = top->comp;
            w->depth--;
        }
    }
}

static void mark_called(const struct hlo_module *m, uint8_t *called)
{
    for (uint32_t i = 0; i < m->ninstrs; i++) {
        const struct hlo_run *r = &m->instrs[i].called;
        for (uint32_t k = 0; k < r->n; k++)
            if (m->refs[r->at + k] != HLO_NONE)
                called[m->refs[r->at + k]] = 1;
    }
}

uint32_t hlo_comp_order(const struct hlo_module *m, struct xp_arena *scratch, uint32_t *order)
{
    struct comp_walk w = {.m = m, .order = order};
    uint8_t *called = xp_arena_zalloc(scratch, m->ncomps + 1);

    w.visited = xp_arena_zalloc(scratch, m->ncomps + 1);
    w.stack = xp_arena_alloc(scratch, (size_t)(m->ncomps + 1) * sizeof *w.stack);
    if (!called || !w.visited || !w.stack)
        return HLO_NONE;
    mark_called(m, called);
    for (uint32_t i = 0; i < m->ncomps; i++) {
        if (called[i])
            continue;
        for (uint32_t k = 0; k < m->comps[i].instrs.n; k++) {
            push_called(&w, &m->instrs[m->comps[i].instrs.at + k]);
            walk_calls(&w);
        }
        order[w.n++] = i;
    }
    return w.n;
}

/* --- instructions --- */

enum { NEW, VISITING, VISITED };

struct instr_walk {
    const struct hlo_module *m;
    uint32_t first; /* of the computation */
    uint8_t *state;
    uint32_t *stack;
    size_t depth;
    uint32_t *order, n;
};

static void push_run(struct instr_walk *w, const struct hlo_run *run, bool reverse)
{
    for (uint32_t k = 0; k < run->n; k++) {
        uint32_t i = w->m->refs[run->at + (reverse ? run->n - 1 - k : k)];
        if (i != HLO_NONE && w->state[i - w->first] == NEW)
            w->stack[w->depth++] = i;
    }
}

static void walk_operands(struct instr_walk *w)
{
    while (w->depth) {
        uint32_t i = w->stack[w->depth - 1];
        uint8_t *state = &w->state[i - w->first];
        if (*state == NEW) {
            *state = VISITING;
            push_run(w, &w->m->instrs[i].operands, true);
            push_run(w, &w->m->instrs[i].controls, false);
            continue;
        }
        w->depth--;
        if (*state == VISITING)
            w->order[w->n++] = i;
        *state = VISITED;
    }
}

static size_t edges_of(const struct hlo_module *m, const struct hlo_comp *c)
{
    size_t n = 0;
    for (uint32_t k = 0; k < c->instrs.n; k++) {
        const struct hlo_instr *in = &m->instrs[c->instrs.at + k];
        n += (size_t)in->operands.n + in->controls.n;
    }
    return n;
}

uint32_t hlo_instr_order(const struct hlo_module *m, const struct hlo_comp *c,
                         struct xp_arena *scratch, uint32_t **order)
{
    struct instr_walk w = {.m = m, .first = c->instrs.at};

    if (c->scheduled) {
        *order = c->schedule.n ? m->refs + c->schedule.at : NULL;
        return c->schedule.n;
    }
    w.order = xp_arena_alloc(scratch, ((size_t)c->instrs.n + 1) * sizeof *w.order);
    w.state = xp_arena_zalloc(scratch, (size_t)c->instrs.n + 1);
    w.stack = xp_arena_alloc(scratch, (edges_of(m, c) + 2) * sizeof *w.stack);
    if (!w.order || !w.state || !w.stack)
        return HLO_NONE;
    for (uint32_t k = 0; k < c->instrs.n; k++) {
        uint32_t i = c->instrs.at + k;
        if (m->instrs[i].users.n || w.state[k] != NEW)
            continue;
        w.stack[w.depth++] = i;
        walk_operands(&w);
    }
    *order = w.order;
    return w.n;
}
