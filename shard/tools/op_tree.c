#include "shard/tools/op_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/hash.h"

#define CHILDREN_MAX 100 /* of a node that is cut */

enum slot_kind { SLOT_PROGRAM, SLOT_CATEGORY, SLOT_DUPLICATES, SLOT_SCOPE };

struct op_tree_slot {
    const struct op_node *parent;
    struct op_node *node; /* NULL: free */
    struct xp_span name;
    uint64_t program;
    uint8_t kind;
};

/* --- nodes --- */

static struct op_node *node_new(struct op_tree *t, struct op_node *parent, struct xp_span name)
{
    struct op_node *n = xp_arena_zalloc(t->a, sizeof *n);
    if (!n)
        return NULL;
    n->name = name;
    if (!parent)
        return n;
    if (parent->nchildren == parent->cap) {
        uint32_t cap = parent->cap ? parent->cap * 2 : 4;
        struct op_node **v = xp_arena_alloc(t->a, cap * sizeof(struct op_node *));
        if (!v)
            return NULL;
        if (parent->nchildren)
            memcpy(v, parent->children, parent->nchildren * sizeof(struct op_node *));
        parent->children = v;
        parent->cap = cap;
    }
    parent->children[parent->nchildren++] = n;
    return n;
}

static size_t slot_hash(const struct op_tree_slot *s)
{
    return xp_hash_u64((uintptr_t)s->parent ^ xp_hash(s->name) ^ xp_hash_u64(s->program + s->kind));
}

static bool grow(struct op_tree *t)
{
    size_t n = t->mask ? (t->mask + 1) * 2 : 1024;
    struct op_tree_slot *v = xp_arena_zalloc(t->a, n * sizeof *v);
    if (!v)
        return false;
    for (size_t i = 0; t->slots && i <= t->mask; i++) {
        if (!t->slots[i].node)
            continue;
        size_t at = slot_hash(&t->slots[i]) & (n - 1);
        while (v[at].node)
            at = (at + 1) & (n - 1);
        v[at] = t->slots[i];
    }
    t->slots = v;
    t->mask = n - 1;
    return true;
}

static struct op_node *group(struct op_tree *t, struct op_node *parent, enum slot_kind kind,
                             struct xp_span name, uint64_t program)
{
    struct op_tree_slot s = {.parent = parent, .name = name, .program = program, .kind = kind};
    if (t->n * 2 >= t->mask && !grow(t))
        return NULL;
    size_t at = slot_hash(&s) & t->mask;
    for (; t->slots[at].node; at = (at + 1) & t->mask) {
        const struct op_tree_slot *o = &t->slots[at];
        if (o->parent == parent && o->kind == kind && o->program == program &&
            xp_span_eq(o->name, name))
            return o->node;
    }
    s.node = node_new(t, parent, name);
    if (s.node) {
        t->slots[at] = s;
        t->n++;
    }
    return s.node;
}

/* --- sums --- */

static void add(struct op_metrics *to, const struct op_metrics *m)
{
    to->occurrences += m->occurrences;
    to->time_ps += m->time_ps;
    to->self_ps += m->self_ps;
    to->normalized_ps += m->normalized_ps;
    to->flops += m->flops;
    to->model_flops += m->model_flops;
    to->bytes += m->bytes;
    to->memory.known |= m->memory.known;
    for (int s = 0; s < OP_MEM_SPACES; s++)
        for (int a = 0; a < OP_MEM_ACCESSES; a++)
            to->memory.bytes[s][a] += m->memory.bytes[s][a];
}

static bool has_inner_time(const struct op_metrics *m)
{
    return m->time_ps != m->self_ps;
}

/* Nodes above groups: their own time is that of the ops below, whose work counts once. */
static void add_above(struct op_node *n, const struct op_metrics *m)
{
    struct op_metrics part = {
        .time_ps = m->self_ps, .self_ps = m->self_ps, .normalized_ps = m->normalized_ps};
    if (!has_inner_time(m)) {
        part.flops = m->flops;
        part.model_flops = m->model_flops;
        part.bytes = m->bytes;
        part.memory = m->memory;
    }
    add(&n->sum, &part);
}

/* --- one op --- */

static bool add_inside(struct op_tree *t, struct op_node *parent, const struct op_metrics *m,
                       int depth)
{
    for (uint32_t i = 0; depth && i < m->nchildren; i++) {
        struct op_node *n = node_new(t, parent, m->children[i].name);
        if (!n)
            return false;
        n->op = &m->children[i];
        add(&n->sum, n->op);
        if (!add_inside(t, n, n->op, depth - 1))
            return false;
    }
    return true;
}

static struct op_node *leaf(struct op_tree *t, struct op_node *parent, const struct op_metrics *m)
{
    struct op_node *n = node_new(t, parent, m->name);
    if (!n || !add_inside(t, n, m, 8))
        return NULL;
    n->op = m;
    add(&n->sum, m);
    return n;
}

static struct op_node *program_node(struct op_tree *t, uint64_t program)
{
    struct op_node *n = group(t, t->root, SLOT_PROGRAM, (struct xp_span){0}, program);
    if (!n || n->name.n)
        return n;
    n->name = XP_SPAN_LIT("main");
    for (uint32_t i = 0; i < t->stats->nprograms; i++) {
        const struct op_program *p = &t->stats->programs[i];
        if (p->id != program)
            continue;
        size_t room = p->name.n + 24;
        char *text = xp_arena_alloc(t->a, room);
        if (!text)
            return NULL;
        int len = snprintf(text, room, "%.*s(%" PRIu64 ")", (int)p->name.n, (const char *)p->name.p,
                           program);
        n->name = xp_span_of(text, (size_t)len);
    }
    return n;
}

/* The next component of "a/b/c:Type"; the last goes to the colon. */
static bool next_scope(struct xp_span *rest, struct xp_span *scope)
{
    while (rest->n && rest->p[0] == '/')
        *rest = xp_span_of(rest->p + 1, rest->n - 1);
    if (!rest->n)
        return false;
    const uint8_t *slash = memchr(rest->p, '/', rest->n);
    *scope = xp_span_of(rest->p, slash ? (size_t)(slash - rest->p) : rest->n);
    *rest = xp_span_of(rest->p + scope->n, rest->n - scope->n);
    bool last = true;
    for (size_t i = 0; i < rest->n; i++)
        last &= rest->p[i] == '/';
    const uint8_t *colon = last ? memchr(scope->p, ':', scope->n) : NULL;
    if (colon)
        scope->n = (size_t)(colon - scope->p);
    return true;
}

static struct op_node *scope_node(struct op_tree *t, struct op_node *at, const struct op_metrics *m)
{
    struct xp_span rest = m->provenance, scope;
    while (at && next_scope(&rest, &scope)) {
        at = group(t, at, SLOT_SCOPE, scope, 0);
        if (at)
            add_above(at, m);
    }
    return at;
}

static bool runs_sparse(const struct op_metrics *m)
{
    for (uint32_t i = 0; i < m->nchildren; i++)
        if (m->children[i].core_type == OP_CORE_SPARSE)
            return true;
    return false;
}

static bool add_op(struct op_tree *t, const struct op_metrics *m)
{
    struct op_node *parent = t->root;
    add_above(t->root, m);
    if (op_is_idle(m))
        return leaf(t, t->root, m) != NULL;
    if (t->by != OP_BY_CATEGORY) {
        parent = program_node(t, m->program);
        if (!parent)
            return false;
        add_above(parent, m);
    }
    if (has_inner_time(m) && !runs_sparse(m))
        return true;
    if (t->by == OP_BY_PROVENANCE && m->provenance.n)
        parent = scope_node(t, parent, m);
    if (parent)
        parent = group(t, parent, SLOT_CATEGORY, m->category, 0);
    if (!parent)
        return false;
    add(&parent->sum, m);
    struct xp_span dedup = m->dedup_name.n ? m->dedup_name : m->name;
    struct op_node *group_node = group(t, parent, SLOT_DUPLICATES, dedup, 0);
    if (!group_node)
        return false;
    add(&group_node->sum, m);
    return leaf(t, group_node, m) != NULL;
}

/* --- order --- */

static int by_time(const void *a, const void *b)
{
    const struct op_node *x = *(struct op_node *const *)a, *y = *(struct op_node *const *)b;
    if (x->sum.time_ps != y->sum.time_ps)
        return x->sum.time_ps > y->sum.time_ps ? -1 : 1;
    return xp_span_cmp(x->name, y->name);
}

static int by_flops(const void *a, const void *b)
{
    const struct op_node *x = *(struct op_node *const *)a, *y = *(struct op_node *const *)b;
    if (x->sum.model_flops != y->sum.model_flops)
        return x->sum.model_flops > y->sum.model_flops ? -1 : 1;
    return xp_span_cmp(x->name, y->name);
}

static bool is_fusion(const struct op_metrics *m)
{
    return m && xp_span_ends(m->category, XP_SPAN_LIT(" fusion"));
}

/* A node still to be put in order, and how many levels below are not cut. */
struct todo {
    struct op_node *node;
    int level;
};

static void order_children(struct op_node *n, int level)
{
    n->all_children = n->nchildren;
    if (n->nchildren > 1)
        qsort(n->children, n->nchildren, sizeof(struct op_node *),
              is_fusion(n->op) ? by_flops : by_time);
    if (level <= 0 && n->nchildren > CHILDREN_MAX)
        n->nchildren = CHILDREN_MAX;
}

/* A group of duplicates with one child becomes that child; others are named by their first. */
static void name_duplicates(struct op_tree *t, struct op_node *n)
{
    static const char tail[] = " and its duplicate(s)";
    bool all_ops = n->nchildren > 0 && !n->op;
    for (uint32_t i = 0; i < n->nchildren; i++)
        all_ops &= n->children[i]->op != NULL;
    if (!all_ops)
        return;
    struct op_node *first = n->children[0];
    if (n->nchildren == 1) {
        *n = *first;
        return;
    }
    char *text = xp_arena_alloc(t->a, first->name.n + sizeof tail);
    if (!text)
        return;
    if (first->name.n)
        memcpy(text, first->name.p, first->name.n);
    memcpy(text + first->name.n, tail, sizeof tail);
    n->name = xp_span_of(text, first->name.n + sizeof tail - 1);
    n->op = first->op;
    n->duplicates = true;
}

/* A tree is as deep as its names have slashes: no recursion. */
static bool finish(struct op_tree *t, int level)
{
    size_t n = 0, cap = 1024;
    struct todo *stack = malloc(cap * sizeof *stack);
    if (!stack)
        return false;
    stack[n++] = (struct todo){t->root, level};
    while (n) {
        struct todo x = stack[--n];
        order_children(x.node, x.level);
        for (uint32_t i = 0; i < x.node->nchildren; i++) {
            if (n == cap) {
                struct todo *more = realloc(stack, cap * 2 * sizeof *more);
                if (!more) {
                    free(stack);
                    return false;
                }
                stack = more;
                cap *= 2;
            }
            stack[n++] = (struct todo){x.node->children[i], x.level - 1};
        }
    }
    free(stack);
    return true;
}

static bool name_all(struct op_tree *t)
{
    size_t n = 0, cap = 1024;
    struct op_node **stack = malloc(cap * sizeof(struct op_node *));
    if (!stack)
        return false;
    stack[n++] = t->root;
    while (n) {
        struct op_node *x = stack[--n];
        name_duplicates(t, x);
        for (uint32_t i = 0; !x->op && i < x->nchildren; i++) {
            if (n == cap) {
                struct op_node **more = realloc(stack, cap * 2 * sizeof(struct op_node *));
                if (!more) {
                    free(stack);
                    return false;
                }
                stack = more;
                cap *= 2;
            }
            stack[n++] = x->children[i];
        }
    }
    free(stack);
    return true;
}

enum xp_status op_tree_build(struct op_tree *t, const struct op_stats *s, enum op_grouping by,
                             bool idle, struct xp_arena *a, struct xp_error *err)
{
    static const char *const names[] = {"by_program", "by_category", "by_provenance"};
    static const int levels[] = {2, 1, 100};
    *t = (struct op_tree){.a = a, .by = by, .stats = s};
    t->root = node_new(t, NULL, xp_span_str(names[by]));
    bool ok = t->root != NULL;
    for (uint32_t i = 0; ok && i < s->device.n; i++) {
        const struct op_metrics *m = &s->device.ops[i];
        /* Ops that cannot be told by name. */
        if (xp_span_starts(m->name, XP_SPAN_LIT("region")) || (!idle && op_is_idle(m)))
            continue;
        ok = add_op(t, m);
    }
    if (ok)
        t->root->sum.time_ps = idle ? s->device.total_ps : s->device.total_op_ps;
    ok = ok && finish(t, levels[by]) && name_all(t);
    return ok ? XP_OK : xp_fail(err, XP_BUSY, 0, "no memory left for the op profile's tree");
}
