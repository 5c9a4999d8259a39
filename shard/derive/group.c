#include "lib/base/hash.h"
#include "shard/derive/derive_int.h"

/* Grouping over the few events that matter ("nodes"): roots, and those that produce, consume, or
 * carry a number of a step. What lies between a node and its descendants in its thread follows from
 * time alone, so that no other event is looked at twice. */

#define NODE_SPECIAL                                                                               \
    (EV_IMPLICIT | EV_EXECUTOR | EV_ITERATOR | EV_TPU_EXECUTE | EV_ENQUEUE | EV_DEQUEUE |          \
     EV_LAUNCH | EV_COMPLETE | EV_ROOT1 | EV_ROOT2 | EV_TF_DATA)
#define BIT(kind) (UINT64_C(1) << STAT_##kind)
#define NODE_KINDS                                                                                 \
    (BIT(PRODUCER_TYPE) | BIT(PRODUCER_ID) | BIT(CONSUMER_TYPE) | BIT(CONSUMER_ID) |               \
     BIT(ROOT_LEVEL) | BIT(GRAPH_TYPE) | BIT(ITER_NUM) | BIT(STEP_NUM) | BIT(CORRELATION_ID))
#define LINK_KINDS (BIT(PRODUCER_TYPE) | BIT(PRODUCER_ID) | BIT(CONSUMER_TYPE) | BIT(CONSUMER_ID))
#define CROWD 64 /* that many producers and as many consumers are not linked */
#define NONE UINT32_MAX

enum { TYPE_KERNEL = -1, TYPE_ITERATOR = -2 }; /* beside XProf's context types */

struct group_node {
    int64_t begin_ps, end_ps;
    uint64_t at;
    uint32_t line, name;
    uint32_t parent, sub_end; /* nearest node around it; end of the nodes inside it */
    uint32_t first_link, nlinks;
    int32_t group;
    int64_t root;
    uint32_t seen;
    bool has_root, async, implicit, tf_data_step;
};

/* A node on one side of a context; sorted by (type, id, side, node). */
struct group_context {
    uint64_t id;
    int32_t type;
    bool consumer;
    uint32_t node;
    uint32_t first, mid, end; /* of all of the same type and id: producers, consumers */
};

struct core {
    uint32_t first, n; /* nodes of its grouping line */
};

/* The line of regions made for a thread. */
struct regions {
    uint32_t of, line;
};

struct grouping {
    struct derive_work *w;
    struct vec regions; /* struct regions */
    uint32_t *links;    /* contexts by node */
    struct vec cores;
    struct vec queue;    /* uint32_t */
    struct vec tf_steps; /* uint64_t */
    size_t regions_at;   /* those of the planes that are done */
    uint32_t stamp;
    int32_t next;
};

static struct group_node *nodes_of(const struct grouping *g)
{
    return g->w->nodes.p;
}

static struct derive_line *line_of(const struct grouping *g, uint32_t line)
{
    return &VEC(g->w->lines, struct derive_line)[line];
}

static uint16_t flags_of(const struct grouping *g, const struct derive_line *l, uint32_t name)
{
    const struct part_plane *pl = &g->w->part->planes[l->plane];
    return !l->own_names && name < pl->nevmeta ? g->w->d->planes[l->plane].evflags[name] : 0;
}

/* --- finding nodes --- */

static bool pick_events(const struct grouping *g, uint32_t line, uint64_t kinds, uint16_t special,
                        struct vec *out)
{
    const struct derive_line *l = line_of(g, line);
    const struct part_plane *pl = &g->w->part->planes[l->plane];
    const struct derive_plane *dp = &g->w->d->planes[l->plane];
    return derive_pick(l, line, kinds, l->own_names ? NULL : dp->evflags, pl->nevmeta,
                       special & dp->evflags_any, out);
}

static bool add_context(struct grouping *g, uint32_t node, int32_t type, uint64_t id, bool consumer)
{
    struct group_context *c = vec_push(&g->w->contexts, sizeof *c);
    if (c)
        *c = (struct group_context){.id = id, .type = type, .consumer = consumer, .node = node};
    return c;
}

static bool add_stats_contexts(struct grouping *g, uint32_t node, const struct derive_stats *s)
{
    return (!s->producer.has || add_context(g, node, s->producer.type, s->producer.id, false)) &&
           (!s->consumer.has || add_context(g, node, s->consumer.type, s->consumer.id, true));
}

static uint32_t add_node(struct grouping *g, const struct plane_event *ev)
{
    struct group_node *n = vec_push(&g->w->nodes, sizeof *n);
    if (!n)
        return NONE;
    *n = (struct group_node){.begin_ps = ev->begin_ps,
                             .end_ps = ev->end_ps,
                             .at = ev->at,
                             .line = ev->line,
                             .name = ev->name,
                             .parent = NONE,
                             .group = -1};
    return (uint32_t)g->w->nodes.n - 1;
}

/* One event of a host or GPU line. */
static bool make_node(struct grouping *g, const struct plane_event *ev, struct side_cursor *side)
{
    const struct derive_line *l = line_of(g, ev->line);
    const struct derive_plane *dp = &g->w->d->planes[l->plane];
    uint16_t flags = flags_of(g, l, ev->name);
    struct derive_stats s;
    side_find(side, ev->at);
    derive_stats_read(g->w->d, dp, false, flags, side, &s);
    uint32_t k = add_node(g, ev);
    if (k == NONE)
        return false;
    struct group_node *n = &nodes_of(g)[k];
    n->has_root = s.has_root;
    n->root = s.root;
    n->async = s.async;
    n->implicit = flags & EV_IMPLICIT;
    if (!n->has_root && flags & EV_MARKER &&
        xp_span_eq(part_str(g->w->part, g->w->part->planes[l->plane].evmeta[ev->name].name),
                   XP_SPAN_LIT("TraceContext"))) {
        n->has_root = true;
        n->root = 1;
    }
    uint64_t step, iter;
    bool has_step = derive_int(side, STAT_STEP_ID, &step);
    if (flags & EV_TF_DATA && has_step) {
        uint64_t *t = vec_push(&g->tf_steps, sizeof *t);
        if (!t)
            return false;
        *t = step;
    }
    if (flags & (EV_EXECUTOR | EV_ITERATOR) && has_step && derive_int(side, STAT_ITER_NUM, &iter) &&
        !add_context(g, k, TYPE_ITERATOR, xp_hash_u64(step) ^ iter, flags & EV_ITERATOR))
        return false;
    if (!(flags & EV_TYPED) && s.has_correlation &&
        !add_context(g, k, TYPE_KERNEL, s.correlation, !dp->host))
        return false;
    return add_stats_contexts(g, k, &s);
}

/* Nodes of one thread, nested by time. */
static bool thread_nodes(struct grouping *g, uint32_t line)
{
    struct vec events = {0};
    uint32_t first = (uint32_t)g->w->nodes.n;
    bool ok = pick_events(g, line, NODE_KINDS, NODE_SPECIAL | EV_MARKER, &events);
    if (events.n)
        qsort(events.p, events.n, sizeof(struct plane_event), plane_event_order);
    struct side_cursor side;
    side_open(&side, line_of(g, line)->side);
    uint32_t top = NONE;
    for (size_t i = 0; ok && i < events.n; i++) {
        ok = make_node(g, &VEC(events, struct plane_event)[i], &side);
        uint32_t k = first + (uint32_t)i;
        struct group_node *n = nodes_of(g);
        if (!ok || n[k].async)
            continue;
        while (top != NONE && n[top].end_ps < n[k].end_ps) {
            n[top].sub_end = k;
            top = n[top].parent;
        }
        n[k].parent = top;
        top = k;
    }
    uint32_t end = (uint32_t)g->w->nodes.n;
    for (uint32_t k = first; ok && k < end; k++)
        if (!nodes_of(g)[k].sub_end)
            nodes_of(g)[k].sub_end = nodes_of(g)[k].async ? k + 1 : end;
    vec_free(&events);
    return ok;
}

static bool worth_walking(const struct grouping *g, const struct derive_line *l)
{
    if (!l->line->nevents)
        return false;
    return l->side || g->w->d->planes[l->plane].evflags_any & (EV_ROOT1 | EV_ROOT2 | EV_MARKER);
}

/* --- TPU cores --- */

static bool name_is(const struct grouping *g, const struct derive_line *l, const char *a,
                    const char *b)
{
    struct xp_span name = part_str(g->w->part, l->line->name);
    return xp_span_eq(name, xp_span_str(a)) || xp_span_eq(name, xp_span_str(b));
}

static bool is_step_line(const struct grouping *g, const struct derive_line *l)
{
    return name_is(g, l, "Steps", "Sparse Core Steps");
}

static void core_lines(const struct grouping *g, uint32_t plane, uint32_t *steps,
                       uint32_t *grouping)
{
    uint32_t modules = NONE, first, end;
    *steps = NONE;
    derive_plane_lines(g->w, plane, &first, &end);
    for (uint32_t i = first; i < end; i++) {
        const struct derive_line *l = line_of(g, i);
        if (is_step_line(g, l))
            *steps = i;
        else if (name_is(g, l, "XLA Modules", "Sparse Core Modules"))
            modules = i;
    }
    *grouping = *steps != NONE && line_of(g, *steps)->line->nevents     ? *steps
                : modules != NONE && line_of(g, modules)->line->nevents ? modules
                                                                        : NONE;
}

static bool all_events(struct grouping *g, uint32_t line, struct vec *out)
{
    const struct derive_line *l = line_of(g, line);
    struct lane_event ev[LANE_BLOCK];
    for (uint32_t k = 0; k < l->line->nlanes; k++) {
        struct lane_cursor c;
        lane_seek_ord(&c, l->line->lanes[k], 0);
        for (size_t n; (n = lane_next_block(&c, ev));)
            for (size_t e = 0; e < n; e++) {
                struct plane_event *p = vec_push(out, sizeof *p);
                if (!p)
                    return false;
                *p = (struct plane_event){l->line->base_ps + ev[e].begin_ps,
                                          l->line->base_ps + ev[e].end_ps, ev[e].at, ev[e].name,
                                          line};
            }
    }
    if (out->n)
        qsort(out->p, out->n, sizeof(struct plane_event), plane_event_order);
    return true;
}

/* Steps produce and consume for what is inside them. */
static bool delegate_line(struct grouping *g, uint32_t line, const struct core *core, bool own)
{
    const struct derive_line *l = line_of(g, line);
    const struct derive_plane *dp = &g->w->d->planes[l->plane];
    uint64_t kinds = LINK_KINDS | (l->module_line ? BIT(RUN_ID) : 0);
    if (!l->side)
        return true;
    struct vec events = {0};
    bool ok = pick_events(g, line, kinds, NODE_SPECIAL, &events);
    if (events.n)
        qsort(events.p, events.n, sizeof(struct plane_event), plane_event_order);
    struct side_cursor side;
    side_open(&side, l->side);
    uint32_t k = core->first, end = core->first + core->n;
    for (size_t i = 0; ok && i < events.n; i++) {
        const struct plane_event *ev = &VEC(events, struct plane_event)[i];
        const struct group_node *n = nodes_of(g);
        if (own)
            while (k < end && n[k].at != ev->at)
                k++;
        else
            while (k < end && n[k].end_ps <= ev->begin_ps)
                k++;
        if (k == end)
            break;
        if (!own && !(n[k].begin_ps <= ev->begin_ps && ev->end_ps <= n[k].end_ps))
            continue;
        struct derive_stats s;
        side_find(&side, ev->at);
        derive_stats_read(g->w->d, dp, l->module_line, flags_of(g, l, ev->name), &side, &s);
        ok = add_stats_contexts(g, k, &s);
    }
    vec_free(&events);
    return ok;
}

static bool is_sparse_core(struct xp_span name)
{
    for (size_t i = 0; i + 10 <= name.n; i++)
        if (memcmp(name.p + i, "SparseCore", 10) == 0)
            return name.p[name.n - 1] >= '0' && name.p[name.n - 1] <= '9';
    return false;
}

static bool core_nodes(struct grouping *g, uint32_t plane)
{
    const struct derive_plane *dp = &g->w->d->planes[plane];
    uint32_t steps, grouping;
    core_lines(g, plane, &steps, &grouping);
    if (grouping == NONE || !(dp->tensor_core || is_sparse_core(dp->name)))
        return true;
    struct vec events = {0};
    struct core core = {(uint32_t)g->w->nodes.n, 0};
    bool ok = all_events(g, grouping, &events);
    for (size_t i = 0; ok && i < events.n; i++) {
        uint32_t k = add_node(g, &VEC(events, struct plane_event)[i]);
        ok = k != NONE;
        if (ok) {
            nodes_of(g)[k].implicit = true;
            nodes_of(g)[k].sub_end = k + 1;
            core.n++;
        }
    }
    vec_free(&events);
    ok = ok && delegate_line(g, grouping, &core, true);
    uint64_t has = dp->kinds & (LINK_KINDS | BIT(RUN_ID));
    uint32_t first, end;
    derive_plane_lines(g->w, plane, &first, &end);
    for (uint32_t i = first; ok && has && i < end; i++)
        if (i != grouping)
            ok = delegate_line(g, i, &core, false);
    if (ok && dp->tensor_core) {
        struct core *c = vec_push(&g->cores, sizeof *c);
        ok = c;
        if (c)
            *c = core;
    }
    return ok;
}

/* --- links --- */

static int context_order(const void *a, const void *b)
{
    const struct group_context *x = a, *y = b;
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    if (x->consumer != y->consumer)
        return x->consumer ? 1 : -1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Finds which contexts belong together, and each node's. */
static bool link_nodes(struct grouping *g)
{
    struct group_context *c = g->w->contexts.p;
    uint32_t n = (uint32_t)g->w->contexts.n;
    struct group_node *nodes = nodes_of(g);
    if (!n)
        return true;
    qsort(c, n, sizeof *c, context_order);
    for (uint32_t first = 0, mid, end; first < n; first = end) {
        for (mid = first; mid < n && c[mid].type == c[first].type && c[mid].id == c[first].id &&
                          !c[mid].consumer;
             mid++)
            ;
        for (end = mid; end < n && c[end].type == c[first].type && c[end].id == c[first].id; end++)
            ;
        uint32_t from = c[first].type < 0 && mid > first ? mid - 1 : first;
        bool crowd = c[first].type >= 0 && mid - first >= CROWD && end - mid >= CROWD;
        for (uint32_t i = first; i < end; i++) {
            c[i].first = from;
            c[i].mid = crowd ? from : mid;
            c[i].end = crowd ? from : end;
            if (i < from)
                c[i].end = mid; /* an older producer that was replaced */
            nodes[c[i].node].nlinks++;
        }
    }
    g->links = malloc(n * sizeof *g->links);
    if (!g->links)
        return false;
    uint32_t at = 0;
    for (uint32_t k = 0; k < g->w->nodes.n; k++) {
        nodes[k].first_link = at;
        at += nodes[k].nlinks;
        nodes[k].nlinks = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct group_node *node = &nodes[c[i].node];
        g->links[node->first_link + node->nlinks++] = i;
    }
    return true;
}

static bool enqueue(struct grouping *g, uint32_t k)
{
    if (nodes_of(g)[k].seen == g->stamp)
        return true;
    nodes_of(g)[k].seen = g->stamp;
    uint32_t *q = vec_push(&g->queue, sizeof *q);
    if (q)
        *q = k;
    return q;
}

static bool enqueue_parents(struct grouping *g, uint32_t k)
{
    const struct group_node *n = &nodes_of(g)[k];
    const struct group_context *c = g->w->contexts.p;
    if (n->parent != NONE && !enqueue(g, n->parent))
        return false;
    for (uint32_t i = 0; i < n->nlinks; i++) {
        const struct group_context *x = &c[g->links[n->first_link + i]];
        for (uint32_t p = x->first; x->consumer && p < x->mid; p++)
            if (!enqueue(g, c[p].node))
                return false;
    }
    return true;
}

static bool enqueue_children(struct grouping *g, uint32_t k)
{
    struct group_node *nodes = nodes_of(g);
    const struct group_context *c = g->w->contexts.p;
    for (uint32_t i = k + 1; i < nodes[k].sub_end; i = nodes[i].sub_end)
        if (nodes[i].parent == k && !enqueue(g, i))
            return false;
    for (uint32_t i = 0; i < nodes[k].nlinks; i++) {
        const struct group_context *x = &c[g->links[nodes[k].first_link + i]];
        for (uint32_t p = x->mid; !x->consumer && p < x->end; p++)
            if (!enqueue(g, c[p].node))
                return false;
    }
    return true;
}

static void queue_start(struct grouping *g)
{
    g->queue.n = 0;
    g->stamp++;
}

/* --- groups --- */

static bool needs_group(struct grouping *g, uint32_t root)
{
    const struct group_node *nodes = nodes_of(g);
    int64_t level = nodes[root].has_root ? nodes[root].root : 0;
    if (nodes[root].group >= 0)
        return false;
    queue_start(g);
    enqueue(g, root);
    for (size_t i = 0; i < g->queue.n; i++) {
        uint32_t k = VEC(g->queue, uint32_t)[i];
        if (k != root && nodes[k].has_root && nodes[k].root == level)
            return false;
        enqueue_parents(g, k);
    }
    return true;
}

/* The stat of the nearest node, itself first, that has it. */
static bool context_stat(struct grouping *g, uint32_t from, enum stat_kind kind,
                         struct side_stat *out)
{
    queue_start(g);
    enqueue(g, from);
    for (size_t i = 0; i < g->queue.n; i++) {
        uint32_t k = VEC(g->queue, uint32_t)[i];
        const struct derive_line *l = line_of(g, nodes_of(g)[k].line);
        struct side_cursor side;
        const struct side_stat *s;
        side_open(&side, l->own_names ? NULL : l->side);
        if (g->w->d->planes[l->plane].kinds >> kind & 1 && side_find(&side, nodes_of(g)[k].at) &&
            (s = side_get(&side, kind))) {
            *out = *s;
            return true;
        }
        enqueue_parents(g, k);
    }
    return false;
}

static struct xp_span node_name(const struct grouping *g, uint32_t k)
{
    const struct group_node *n = &nodes_of(g)[k];
    const struct part_plane *pl = &g->w->part->planes[line_of(g, n->line)->plane];
    if (line_of(g, n->line)->own_names || n->name >= pl->nevmeta)
        return (struct xp_span){0};
    return part_str(g->w->part, pl->evmeta[n->name].name);
}

static bool group_name(struct grouping *g, uint32_t root, int64_t group, struct xp_buf *b)
{
    struct side_stat s;
    if (context_stat(g, root, STAT_GRAPH_TYPE, &s)) {
        if (s.type == SIDE_STR)
            xp_buf_span(b, part_str(g->w->part, (uint32_t)s.num));
        xp_buf_byte(b, ' ');
    } else if (!nodes_of(g)[root].implicit) {
        xp_buf_span(b, node_name(g, root));
        xp_buf_byte(b, ' ');
    }
    int64_t n = group;
    if (context_stat(g, root, STAT_ITER_NUM, &s) || context_stat(g, root, STAT_STEP_NUM, &s))
        n = s.type == SIDE_I64 ? (int64_t)s.num : 0;
    xp_buf_fmt(b, "%lld", (long long)n);
    return !b->failed;
}

static bool set_name(struct grouping *g, uint32_t root, int32_t group)
{
    struct derive_work *w = g->w;
    struct xp_buf b;
    xp_buf_init(&b, (size_t)1 << 20);
    uint32_t id = group_name(g, root, group, &b) ? xp_strpool_add(&w->d->strings, xp_buf_all(&b))
                                                 : XP_STRPOOL_FULL;
    xp_buf_fini(&b);
    if (id == XP_STRPOOL_FULL)
        return false;
    while (w->group_names.n <= (size_t)group) {
        uint32_t *n = vec_push(&w->group_names, sizeof *n);
        if (!n)
            return false;
        *n = 0;
    }
    VEC(w->group_names, uint32_t)[group] = id;
    if (nodes_of(g)[root].implicit)
        return true;
    struct derive_root *r = vec_push(&w->roots, sizeof *r);
    if (r)
        *r = (struct derive_root){nodes_of(g)[root].at, id};
    return r;
}

/* The root's group came upon a node of another. */
static bool relate(struct grouping *g, int32_t parent, int32_t child)
{
    const struct derive_relation *last =
        g->w->relations.n ? &VEC(g->w->relations, struct derive_relation)[g->w->relations.n - 1]
                          : NULL;
    if (parent == child || (last && last->parent == parent && last->child == child))
        return true;
    struct derive_relation *r = vec_push(&g->w->relations, sizeof *r);
    if (r)
        *r = (struct derive_relation){parent, child};
    return r;
}

static bool group_root(struct grouping *g, uint32_t root, int32_t group)
{
    queue_start(g);
    bool ok = enqueue(g, root);
    for (size_t i = 0; ok && i < g->queue.n; i++) {
        uint32_t k = VEC(g->queue, uint32_t)[i];
        if (nodes_of(g)[k].group >= 0) {
            ok = relate(g, group, nodes_of(g)[k].group);
            continue;
        }
        nodes_of(g)[k].group = group;
        ok = enqueue_children(g, k);
    }
    return ok && set_name(g, root, group);
}

struct root {
    int64_t level, begin_ps;
    uint32_t node;
};

static int root_order(const void *a, const void *b)
{
    const struct root *x = a, *y = b;
    if (x->level != y->level)
        return x->level > y->level ? -1 : 1;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static int step_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Functions that tf.data runs are no steps. */
static bool is_tf_data(struct grouping *g, uint32_t k)
{
    struct side_cursor side;
    uint64_t step;
    if (!g->tf_steps.n)
        return false;
    side_open(&side, line_of(g, nodes_of(g)[k].line)->side);
    if (!side_find(&side, nodes_of(g)[k].at) || !derive_int(&side, STAT_STEP_ID, &step))
        return false;
    return bsearch(&step, g->tf_steps.p, g->tf_steps.n, sizeof step, step_order);
}

static bool group_roots(struct grouping *g)
{
    struct vec roots = {0};
    bool ok = true;
    if (g->tf_steps.n)
        qsort(g->tf_steps.p, g->tf_steps.n, sizeof(uint64_t), step_order);
    for (uint32_t k = 0; ok && k < g->w->nodes.n; k++) {
        const struct group_node *n = &nodes_of(g)[k];
        if (!n->has_root || is_tf_data(g, k))
            continue;
        struct root *r = vec_push(&roots, sizeof *r);
        ok = r;
        if (r)
            *r = (struct root){n->root, n->begin_ps, k};
    }
    if (roots.n)
        qsort(roots.p, roots.n, sizeof(struct root), root_order);
    for (size_t i = 0; ok && i < roots.n && g->next < INT32_MAX; i++) {
        uint32_t k = VEC(roots, struct root)[i].node;
        if (needs_group(g, k))
            ok = group_root(g, k, g->next++);
    }
    vec_free(&roots);
    return ok;
}

/* Steps of the cores that no host event led to: all in lock step, or none. */
static bool group_cores(struct grouping *g)
{
    const struct core *cores = g->cores.p;
    for (size_t i = 0; i < g->cores.n; i++)
        for (uint32_t k = 0; k < cores[i].n; k++)
            if (!needs_group(g, cores[i].first + k))
                return true;
    for (size_t i = 0; i < g->cores.n; i++) {
        int32_t group = g->next;
        for (uint32_t k = 0; k < cores[i].n && group < INT32_MAX; k++)
            if (needs_group(g, cores[i].first + k) && !group_root(g, cores[i].first + k, group++))
                return false;
    }
    return true;
}

/* --- results --- */

/* Spans of one line's nodes [k, end) that change the group. span[]: of each node, the one it is
 * in. */
static bool line_spans(struct grouping *g, uint32_t k, uint32_t end, uint32_t *span,
                       struct vec *spans)
{
    for (uint32_t i = k; i < end; i++) {
        const struct group_node *n = &nodes_of(g)[i];
        uint32_t around = n->parent == NONE || n->parent < k ? NONE : span[n->parent];
        int32_t outer = around < spans->n ? VEC(*spans, struct derive_span)[around].group : -1;
        span[i] = around;
        if (n->group == outer || n->group < 0)
            continue;
        struct derive_span *s = vec_push(spans, sizeof *s);
        if (!s)
            return false;
        *s = (struct derive_span){n->begin_ps, n->end_ps, n->group,
                                  around == NONE ? -1 : (int32_t)around};
        span[i] = (uint32_t)spans->n - 1;
    }
    return true;
}

static bool keep_line_spans(struct grouping *g, uint32_t line, const struct vec *spans)
{
    struct derive_line *l = line_of(g, line);
    if (!spans->n || g->w->d->planes[l->plane].tpu)
        return true;
    struct derive_span *kept = xp_bump_alloc(&g->w->bump, spans->n * sizeof *kept, 16);
    if (!kept)
        return false;
    memcpy(kept, spans->p, spans->n * sizeof *kept);
    l->group_by = DERIVE_GROUP_SPANS;
    l->spans = kept;
    l->nspans = (uint32_t)spans->n;
    return true;
}

static bool keep_spans(struct grouping *g)
{
    struct derive_work *w = g->w;
    uint32_t *span = malloc((w->nodes.n + 1) * sizeof *span);
    bool ok = span;
    for (uint32_t k = 0, end; ok && k < w->nodes.n; k = end) {
        struct vec spans = {0};
        uint32_t line = nodes_of(g)[k].line;
        for (end = k; end < w->nodes.n && nodes_of(g)[end].line == line; end++)
            ;
        ok = line_spans(g, k, end, span, &spans) && keep_line_spans(g, line, &spans);
        vec_free(&spans);
    }
    free(span);
    const struct regions *r = g->regions.p;
    for (size_t i = 0; ok && i < g->regions.n; i++) {
        const struct derive_line *of = line_of(g, r[i].of);
        struct derive_line *l = line_of(g, r[i].line);
        if (of->group_by != DERIVE_GROUP_SPANS)
            continue;
        l->group_by = DERIVE_GROUP_SPANS;
        l->spans = of->spans;
        l->nspans = of->nspans;
    }
    return ok;
}

/* Neighbouring steps of one group become one, and those without a group are dropped, unless none
 * has one. Returns how many are left. */
static size_t merge_steps(struct plane_event *ev, struct derive_span *spans, size_t n)
{
    size_t kept = 0;
    int32_t open = -1;
    for (size_t i = 0; i < n; i++) {
        if (spans[i].group < 0) {
            open = -1;
        } else if (open == spans[i].group) {
            if (spans[i].end_ps > spans[kept - 1].begin_ps)
                ev[kept - 1].end_ps = spans[kept - 1].end_ps = spans[i].end_ps;
        } else {
            open = spans[i].group;
            ev[kept] = ev[i];
            spans[kept++] = spans[i];
        }
    }
    return kept ? kept : n;
}

/* Samples of counters are of no step. */
static bool counters(const struct derive_work *w, const struct derive_line *l)
{
    return xp_span_eq(part_str(w->part, l->line->name), XP_SPAN_LIT("_counters_"));
}

/* The first of the line's nodes, which are in order of lines. */
static uint32_t first_node(const struct grouping *g, uint32_t line)
{
    uint32_t lo = 0, hi = (uint32_t)g->w->nodes.n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (nodes_of(g)[mid].line < line)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* All lines of the plane; regions were made plane by plane too. */
static void group_by_steps(struct grouping *g, uint32_t plane)
{
    uint32_t first, end;
    derive_plane_lines(g->w, plane, &first, &end);
    for (uint32_t i = first; i < end; i++)
        line_of(g, i)->group_by =
            counters(g->w, line_of(g, i)) ? DERIVE_GROUP_NONE : DERIVE_GROUP_STEPS;
    const struct regions *r = g->regions.p;
    while (g->regions_at < g->regions.n && line_of(g, r[g->regions_at].of)->plane < plane)
        g->regions_at++;
    for (; g->regions_at < g->regions.n && line_of(g, r[g->regions_at].of)->plane == plane;
         g->regions_at++) {
        struct derive_line *l = line_of(g, r[g->regions_at].line);
        l->group_by = counters(g->w, l) ? DERIVE_GROUP_NONE : DERIVE_GROUP_STEPS;
    }
}

static bool keep_steps(struct grouping *g, uint32_t plane)
{
    struct derive_work *w = g->w;
    struct derive_plane *dp = &w->d->planes[plane];
    uint32_t steps, grouping;
    core_lines(g, plane, &steps, &grouping);
    if (grouping == NONE)
        return true;
    struct vec events = {0};
    bool ok = all_events(g, grouping, &events);
    size_t n = events.n;
    struct derive_span *spans =
        ok ? xp_bump_alloc(&w->bump, (n ? n : 1) * sizeof *spans, 16) : NULL;
    ok = spans;
    struct plane_event *ev = events.p;
    uint32_t k = first_node(g, grouping);
    for (size_t i = 0; ok && i < n; i++)
        spans[i] = (struct derive_span){ev[i].begin_ps, ev[i].end_ps,
                                        k + i < w->nodes.n && nodes_of(g)[k + i].line == grouping
                                            ? nodes_of(g)[k + i].group
                                            : -1,
                                        -1};
    size_t kept = n;
    if (ok && grouping == steps)
        kept = merge_steps(ev, spans, n);
    struct part_line *line = NULL;
    if (ok && kept < n)
        ok = derive_build(w, ev, kept, &line) == XP_OK;
    vec_free(&events);
    if (!ok)
        return false;
    dp->steps = spans;
    dp->nsteps = (uint32_t)kept;
    group_by_steps(g, plane);
    struct derive_line *old = steps == NONE ? NULL : line_of(g, steps);
    if (old) {
        old->named_by_step = true;
        old->args = DERIVE_ARGS_STEPS;
    }
    if (grouping == steps) {
        old->group_by = DERIVE_GROUP_RUNS;
        old->spans = spans;
        old->nspans = (uint32_t)kept;
    }
    if (!line)
        return true;
    line->plane = plane;
    line->id = old->line->id;
    line->display_id = old->line->display_id;
    line->name = old->line->name;
    line->display_name = old->line->display_name;
    old->line = line; /* in its place; names stay the plane's */
    return true;
}

/* --- regions of the thread pool --- */

static struct part_line *regions_line(struct grouping *g, uint32_t line, uint32_t start,
                                      uint32_t stop, bool *ok)
{
    struct vec events = {0}, regions = {0};
    struct part_line *out = NULL;
    const struct derive_line *l = line_of(g, line);
    *ok = pick_events(g, line, 0, EV_MARKER, &events);
    if (events.n)
        qsort(events.p, events.n, sizeof(struct plane_event), plane_event_order);
    struct side_cursor side;
    side_open(&side, l->side);
    const struct plane_event *open = NULL;
    for (size_t i = 0; *ok && i < events.n; i++) {
        const struct plane_event *e = &VEC(events, struct plane_event)[i];
        uint64_t id;
        if (e->name == start) {
            side_find(&side, e->at);
            if (derive_int(&side, STAT_CONSUMER_ID, &id))
                open = e->begin_ps ? e : NULL;
        } else if (e->name == stop && open) {
            struct plane_event *r = vec_push(&regions, sizeof *r);
            *ok = r;
            if (r)
                *r = (struct plane_event){open->begin_ps, e->begin_ps, open->at, 0, line};
        }
    }
    if (*ok && regions.n) {
        uint32_t name = derive_name_of(g->w, l->plane, XP_SPAN_LIT("ThreadpoolListener::Region"));
        *ok = name != UINT32_MAX;
        for (size_t i = 0; i < regions.n; i++)
            VEC(regions, struct plane_event)[i].name = name;
        qsort(regions.p, regions.n, sizeof(struct plane_event), plane_event_order);
        *ok = *ok && derive_build(g->w, regions.p, regions.n, &out) == XP_OK;
    }
    vec_free(&events);
    vec_free(&regions);
    return out;
}

/* Regions carry no context in XProf: they neither flow nor lead to a group. */
static bool add_regions(struct grouping *g, uint32_t line)
{
    struct derive_work *w = g->w;
    uint32_t plane = line_of(g, line)->plane, start = NONE, stop = NONE;
    const struct part_plane *pl = &w->part->planes[plane];
    bool ok = true;
    for (uint32_t i = 0; i < pl->nevmeta; i++) {
        if (!(w->d->planes[plane].evflags[i] & EV_MARKER))
            continue;
        struct xp_span name = part_str(w->part, pl->evmeta[i].name);
        if (xp_span_eq(name, XP_SPAN_LIT("ThreadpoolListener::StartRegion")))
            start = i;
        else if (xp_span_eq(name, XP_SPAN_LIT("ThreadpoolListener::StopRegion")))
            stop = i;
    }
    if (start == NONE || stop == NONE)
        return true;
    struct part_line *regions = regions_line(g, line, start, stop, &ok);
    if (!regions)
        return ok;
    struct xp_span name = line_of(g, line)->name;
    int64_t tid = line_of(g, line)->tid;
    struct derive_line *l = derive_add_line(w, plane, line_of(g, line)->line->id, name, regions);
    if (!l)
        return false;
    l->tid = tid;
    l->name = name;
    struct regions *r = vec_push(&g->regions, sizeof *r);
    if (r)
        *r = (struct regions){line, (uint32_t)w->lines.n - 1};
    return r;
}

/* --- all of it --- */

static bool has_loop_ops(const struct part *p)
{
    for (uint32_t i = 0; i < p->nplanes; i++)
        for (uint32_t k = 0; k < p->planes[i].nevmeta; k++)
            if (derive_is_loop(part_str(p, p->planes[i].evmeta[k].name)))
                return true;
    return false;
}

static bool all_nodes(struct grouping *g)
{
    struct derive_work *w = g->w;
    bool ok = true;
    uint32_t nlines = (uint32_t)w->lines.n;
    for (uint32_t p = 0; ok && p < w->part->nplanes; p++) {
        if (w->d->planes[p].tpu) {
            ok = core_nodes(g, p);
            continue;
        }
        uint32_t first = w->part->planes[p].first_line;
        for (uint32_t i = first; ok && i < first + w->part->planes[p].nlines && i < nlines; i++) {
            if (!worth_walking(g, line_of(g, i)))
                continue;
            ok = add_regions(g, i) && thread_nodes(g, i);
        }
    }
    return ok;
}

enum xp_status derive_group_events(struct derive_work *w)
{
    struct grouping g = {.w = w};
    bool tpu = false, ok;
    if (has_loop_ops(w->part))
        return XP_OK;
    for (uint32_t p = 0; p < w->part->nplanes; p++)
        tpu |= w->d->planes[p].tpu;
    ok = all_nodes(&g) && link_nodes(&g) && group_roots(&g) && group_cores(&g) && keep_spans(&g);
    for (uint32_t p = 0; ok && tpu && p < w->part->nplanes; p++)
        if (w->d->planes[p].device)
            ok = keep_steps(&g, p);
    free(g.links);
    vec_free(&g.cores);
    vec_free(&g.regions);
    vec_free(&g.queue);
    vec_free(&g.tf_steps);
    return ok ? XP_OK : derive_busy(w);
}
