#include "shard/tools/report_nodes.h"

#include "lib/base/hash.h"
#include "shard/stats/figures_run.h"

#define DEPTH_MAX 64

static struct op_node *node_of(const struct op_nodes *t, uint32_t i)
{
    return &VEC(t->v, struct op_node)[i];
}

void op_nodes_init(struct op_nodes *t, const struct figures *f)
{
    *t = (struct op_nodes){.f = f};
    struct op_node *root = vec_push(&t->v, sizeof *root);
    t->failed = !root;
    if (root)
        *root = (struct op_node){.name = XP_SPAN_LIT("all ops")};
}

void op_nodes_fini(struct op_nodes *t)
{
    vec_free(&t->v);
    free(t->slots);
    *t = (struct op_nodes){0};
}

static size_t slot_of(const struct op_nodes *t, uint32_t parent, struct xp_span name)
{
    return (xp_hash(name) ^ xp_hash_u64(parent)) & t->mask;
}

static bool grow(struct op_nodes *t)
{
    size_t n = t->mask ? (t->mask + 1) * 2 : 256;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (!slots)
        return false;
    free(t->slots);
    t->slots = slots;
    t->mask = n - 1;
    for (uint32_t i = 1; i < t->v.n; i++) {
        size_t at = slot_of(t, node_of(t, i)->parent, node_of(t, i)->name);
        while (slots[at])
            at = (at + 1) & t->mask;
        slots[at] = i;
    }
    return true;
}

uint32_t op_nodes_get(struct op_nodes *t, uint32_t parent, struct xp_span name)
{
    if (t->failed || (t->v.n * 2 >= t->mask && !grow(t))) {
        t->failed = true;
        return parent;
    }
    size_t at = slot_of(t, parent, name);
    for (; t->slots[at]; at = (at + 1) & t->mask) {
        const struct op_node *n = node_of(t, t->slots[at]);
        if (n->parent == parent && xp_span_eq(n->name, name))
            return t->slots[at];
    }
    if (t->v.n >= OP_NODES_MAX)
        return parent;
    struct op_node *n = vec_push(&t->v, sizeof *n);
    if (!n) {
        t->failed = true;
        return parent;
    }
    *n = (struct op_node){.name = name, .parent = parent};
    t->slots[at] = (uint32_t)t->v.n - 1;
    return t->slots[at];
}

uint32_t op_nodes_path(struct op_nodes *t, uint32_t parent, struct xp_span path)
{
    int depth = 0, round = 0;
    size_t from = 0;
    for (size_t i = 0; i <= path.n; i++) {
        bool end = i == path.n || (path.p[i] == '/' && !round && depth + 1 < DEPTH_MAX);
        round += i < path.n ? (path.p[i] == '(') - (path.p[i] == ')') : 0;
        if (!end)
            continue;
        if (i > from) {
            parent = op_nodes_get(t, parent, xp_span_of(path.p + from, i - from));
            depth++;
        }
        from = i + 1;
        round = 0;
    }
    return parent;
}

void op_nodes_add(struct op_nodes *t, uint32_t at, const struct op_metrics *m)
{
    bool inside = op_kind_of(m->category) & OP_KIND_INNER;
    for (int depth = 0; !t->failed && depth < 2 * DEPTH_MAX; depth++) {
        struct op_node *n = node_of(t, at);
        if (op_is_idle(m))
            n->idle = at > 0;
        else
            n->op = n->ops++ ? NULL : m;
        n->self_ps += m->self_ps;
        n->occurrences += m->occurrences;
        if (!inside) {
            n->flops += figure_flops(m);
            n->hbm_bytes += figure_hbm_bytes(m);
            n->time_ps += (double)m->time_ps;
        }
        if (!at)
            break;
        at = n->parent;
    }
}

/* --- the most of it --- */

static int by_parent_and_time(const void *a, const void *b)
{
    const struct op_node *x = *(struct op_node *const *)a, *y = *(struct op_node *const *)b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    if (x->self_ps != y->self_ps)
        return x->self_ps > y->self_ps ? -1 : 1;
    return (x > y) - (x < y);
}

/* keep[i] of nodes that are among the first of their parent's children. */
static void mark_top(const struct op_nodes *t, uint32_t percent, struct op_node **sorted,
                     uint32_t *keep)
{
    const struct op_node *first = node_of(t, 0);
    uint64_t sum = 0;
    for (uint32_t i = 0; i + 1 < t->v.n; i++) {
        const struct op_node *n = sorted[i];
        if (!i || n->parent != sorted[i - 1]->parent)
            sum = 0;
        double goal = (double)node_of(t, n->parent)->self_ps * percent / 100;
        keep[n - first] = (double)sum < goal;
        sum += n->self_ps;
    }
}

/* keep[i] becomes the node's new place. */
static uint32_t drop_others(struct op_nodes *t, uint32_t *keep, uint64_t *ps)
{
    uint32_t n = 1, all = (uint32_t)t->v.n;
    keep[0] = 0;
    for (uint32_t i = 1; i < all; i++) {
        struct op_node x = *node_of(t, i);
        bool above = x.parent == 0 || keep[x.parent];
        if (above && !keep[i])
            *ps += x.self_ps;
        keep[i] = above && keep[i] ? n : 0;
        x.parent = keep[x.parent];
        if (keep[i])
            *node_of(t, n++) = x;
    }
    t->v.n = n;
    return all - n;
}

uint32_t op_nodes_keep_top(struct op_nodes *t, uint32_t percent, uint64_t *ps)
{
    *ps = 0;
    if (t->failed)
        return 0;
    struct op_node **sorted = malloc(t->v.n * sizeof *sorted);
    uint32_t *keep = calloc(t->v.n, sizeof *keep), gone = 0;
    t->failed = !sorted || !keep;
    if (!t->failed) {
        for (uint32_t i = 1; i < t->v.n; i++)
            sorted[i - 1] = node_of(t, i);
        qsort(sorted, t->v.n - 1, sizeof *sorted, by_parent_and_time);
        mark_top(t, percent, sorted, keep);
        gone = drop_others(t, keep, ps);
    }
    free(sorted);
    free(keep);
    return gone;
}

/* --- as a tree --- */

static const struct report_column columns[] = {
    {"self_time", "Self time", "ps", REPORT_COL_NUMBER, true, "of all ops below, over all devices"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "self time / that of the root"},
    {"wasted", "Wasted", "fraction", REPORT_COL_NUMBER, true,
     "share x (1 - the larger of FLOP use and HBM use), idle time all of it"},
    {"flop_utilization", "FLOP use", "fraction", REPORT_COL_NUMBER, false,
     "flops / time / peak_flop_rate"},
    {"hbm_utilization", "HBM use", "fraction", REPORT_COL_NUMBER, false,
     "HBM bytes / time / peak_hbm_rate"},
    {"occurrences", "Occurrences", "count", REPORT_COL_NUMBER, true, "runs, over all devices"},
    {"ops", "Ops", "count", REPORT_COL_NUMBER, true, "different ops below"},
    {"op", "Op", "", REPORT_COL_OP, false, "where there is just one"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, "of that op"},
    {"category", "Category", "", REPORT_COL_TEXT, false, "of that op"},
    {"host", "Host", "", REPORT_COL_TEXT, false, "of the run that first_begin_ps is of"},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, "where that was"},
    {"first_begin_ps", "First begin", "ps", REPORT_COL_NUMBER, false,
     "begin of one of that op's first runs, session time of that host"},
};

static double clipped(const struct report_cell *c)
{
    double v = c->kind == REPORT_DOUBLE ? c->d : 0;
    return v < 1 ? v : 1;
}

static void node(void *ctx, uint64_t i, int64_t *parent, struct xp_span *name,
                 struct report_cell *c)
{
    const struct op_nodes *t = ctx;
    const struct op_node *n = node_of(t, (uint32_t)i), *root = node_of(t, 0);
    double s = n->time_ps / 1e12;
    *parent = i ? (int64_t)n->parent : -1;
    *name = n->name;
    c[0] = report_of_u64(n->self_ps);
    c[1] = report_ratio((double)n->self_ps, (double)root->self_ps);
    if (n->flops > 0)
        c[3] = report_ratio(n->flops, s * t->f->peaks.flops);
    if (n->hbm_bytes > 0)
        c[4] = report_ratio(n->hbm_bytes, s * t->f->peaks.hbm);
    if (c[1].kind == REPORT_DOUBLE && (c[3].kind || c[4].kind || n->idle)) {
        double use = clipped(&c[3]) > clipped(&c[4]) ? clipped(&c[3]) : clipped(&c[4]);
        c[2] = report_of_double(c[1].d * (1 - use));
    }
    c[5] = report_of_u64(n->occurrences);
    c[6] = report_of_u64(n->ops);
    if (!n->op)
        return;
    c[7] = report_of_text(op_short_name(n->op));
    c[8] = n->op->program ? report_of_id(n->op->program) : report_none();
    c[9] = report_of_text(n->op->category);
    if (!n->op->first_plane.n)
        return;
    c[10] = op_host_name(t->f, n->op->host);
    c[11] = report_of_text(n->op->first_plane);
    c[12] = report_of_i64(n->op->first_begin_ps);
}

void op_nodes_write(struct report *r, struct op_nodes *t, const char *id)
{
    if (t->failed) {
        r->busy = true;
        return;
    }
    report_tree(r, &(struct report_nodes){.id = id,
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = t->v.n,
                                          .weight = 1,
                                          .node = node,
                                          .ctx = t});
}
