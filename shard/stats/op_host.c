#include "lib/base/hash.h"
#include "shard/derive/framework_op.h"
#include "shard/derive/pick.h"
#include "shard/stats/op_stats_int.h"

/* What a host's threads ran for the framework: events named by an op, stages of an input pipeline,
 * and events with a tf_op. Begins and ends of a thread, in order of time, go through a stack. */

#define NAMED 1 /* flag of a metadata: its name is an op */
#define ALIAS 2 /* its id is that of a stage: XProf takes its events for the stage's */

struct host_op {
    struct xp_span name, type;
    uint64_t stage; /* id; 0 for others */
};

struct stage {
    int64_t id;
    struct host_op op;
};

struct activity {
    uint64_t ps;
    uint32_t number; /* of the run, in its thread */
    bool end, eager;
    bool begins; /* in the range that is looked at: it counts as one */
    struct host_op op;
};

struct running {
    uint32_t number;
    uint64_t begin_ps, inside_ps;
};

struct host_walk {
    struct op_build *b;
    uint32_t plane;
    uint16_t *flags;
    struct vec stages; /* struct stage, by id */
    struct vec picked; /* struct plane_event */
    struct vec activities, stack;
    uint64_t feed_begin_ps, feed_ps; /* the last infeed enqueue of the thread */
    bool fed;
};

static struct host_op parse(struct xp_span full)
{
    struct framework_op op = framework_op_parse(full);
    return (struct host_op){op.name, op.type, 0};
}

static const struct host_op *stage_of(const struct host_walk *w, int64_t id)
{
    const struct stage *v = VEC(w->stages, struct stage);
    size_t lo = 0, hi = w->stages.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (v[mid].id == id)
            return &v[mid].op;
        if (v[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* --- what the names say --- */

static bool flag_names(struct host_walk *w)
{
    const struct part_plane *pl = &w->b->part->planes[w->plane];
    w->flags = xp_arena_zalloc(w->b->scratch, ((size_t)pl->nevmeta + 1) * sizeof *w->flags);
    if (!w->flags)
        return false;
    for (uint32_t i = 0; i < pl->nevmeta; i++) {
        struct xp_span name = part_str(w->b->part, pl->evmeta[i].name);
        if (name.n && framework_op_parse(name).framework != FRAMEWORK_UNKNOWN)
            w->flags[i] = NAMED;
    }
    return true;
}

static int by_stage(const void *a, const void *b)
{
    const struct stage *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* The first event of a stage names it. */
static bool find_stages(struct host_walk *w, const struct derive_line *dl)
{
    const struct part_plane *pl = &w->b->part->planes[w->plane];
    struct side_cursor side;
    w->picked.n = 0;
    if (!derive_pick(dl, 0, UINT64_C(1) << STAT_INPUT_STAGE_CATEGORY, NULL, 0, 0, &w->picked))
        return false;
    side_open(&side, dl->side);
    for (size_t i = 0; i < w->picked.n; i++) {
        const struct plane_event *ev = &VEC(w->picked, struct plane_event)[i];
        const struct side_stat *id, *category;
        if (!side_find(&side, ev->at) || !(id = side_get(&side, STAT_INPUT_STAGE_ID)) ||
            !(category = side_get(&side, STAT_INPUT_STAGE_CATEGORY)) || ev->name >= pl->nevmeta)
            continue;
        bool known = false;
        for (size_t k = 0; k < w->stages.n && !known; k++)
            known = VEC(w->stages, struct stage)[k].id == (int64_t)id->num;
        struct xp_span name = part_str(w->b->part, pl->evmeta[ev->name].name);
        if (known || !name.n)
            continue;
        struct stage *s = vec_push(&w->stages, sizeof *s);
        if (!s)
            return false;
        *s = (struct stage){(int64_t)id->num,
                            {name, part_str(w->b->part, (uint32_t)category->num), id->num}};
    }
    return true;
}

static void flag_aliases(struct host_walk *w)
{
    const struct part_plane *pl = &w->b->part->planes[w->plane];
    if (!w->stages.n)
        return;
    qsort(w->stages.p, w->stages.n, sizeof(struct stage), by_stage);
    for (uint32_t i = 0; i < pl->nevmeta; i++)
        if (!w->flags[i] && stage_of(w, pl->evmeta[i].id))
            w->flags[i] = ALIAS;
}

/* --- a thread --- */

/* Those of many threads are in order already. */
static void sort(struct vec *v, size_t size, int (*order)(const void *, const void *))
{
    const char *p = v->p;
    size_t i = 1;
    while (i < v->n && order(p + (i - 1) * size, p + i * size) <= 0)
        i++;
    if (i < v->n)
        qsort(v->p, v->n, size, order);
}

static bool add_run(struct host_walk *w, const struct plane_event *ev, const struct host_op *op,
                    bool eager, uint32_t *number)
{
    struct activity a = {
        .ps = (uint64_t)ev->begin_ps, .number = ++*number, .eager = eager, .op = *op};
    a.begins = part_begins(w->b->part, ev->at, ev->begin_ps);
    for (int end = 0; end < 2; end++) {
        struct activity *to = vec_push(&w->activities, sizeof *to);
        if (!to)
            return false;
        a.end = end;
        a.ps = (uint64_t)(end ? ev->end_ps : ev->begin_ps);
        *to = a;
    }
    return true;
}

static bool add_event(struct host_walk *w, const struct plane_event *ev,
                      const struct side_cursor *side, uint32_t *number)
{
    const struct part_plane *pl = &w->b->part->planes[w->plane];
    const struct side_stat *stage = side_get(side, STAT_INPUT_STAGE_ID);
    const struct side_stat *eager = side_get(side, STAT_IS_EAGER);
    const struct side_stat *tf_op = side_get(side, STAT_TF_OP);
    struct host_op op;
    const struct host_op *found = NULL;

    if (stage) {
        found = stage_of(w, (int64_t)stage->num);
    } else if (w->flags[ev->name] & NAMED) {
        op = parse(part_str(w->b->part, pl->evmeta[ev->name].name));
        found = &op;
    } else if (w->flags[ev->name] & ALIAS) {
        found = stage_of(w, pl->evmeta[ev->name].id);
    }
    if (found && !add_run(w, ev, found, eager && eager->num, number))
        return false;
    struct xp_span full = tf_op ? part_str(w->b->part, (uint32_t)tf_op->num) : (struct xp_span){0};
    if (!full.n)
        return true;
    op = parse(full);
    return add_run(w, ev, &op, false, number);
}

static int by_time(const void *a, const void *b)
{
    const struct activity *x = a, *y = b;
    if (x->ps != y->ps)
        return x->ps < y->ps ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (int)x->end - (int)y->end;
}

static void note_feed(struct host_walk *w, uint64_t begin_ps, uint64_t ps)
{
    struct op_db *db = &w->b->stats->host;
    if (w->fed) {
        db->infeed_enq_ps += w->feed_ps;
        db->infeed_enq_starts_ps += begin_ps - w->feed_begin_ps;
    }
    w->fed = ps > 0;
    w->feed_begin_ps = begin_ps;
    w->feed_ps = ps;
}

static bool is_feed(struct xp_span type)
{
    return xp_span_eq(type, XP_SPAN_LIT("InfeedEnqueue")) ||
           xp_span_eq(type, XP_SPAN_LIT("InfeedEnqueueTuple"));
}

/* Ends the run; those above it on the stack never end, as in XProf. */
static bool end_run(struct host_walk *w, const struct activity *a, uint64_t *op_ps)
{
    const struct running *v = VEC(w->stack, struct running), *r = NULL;
    while (w->stack.n && !r)
        if (v[--w->stack.n].number == a->number)
            r = &v[w->stack.n];
    if (!r)
        return true;
    uint64_t time = a->ps - r->begin_ps, self = time - r->inside_ps, begin = r->begin_ps;
    struct op_metrics *m = op_table_get(&w->b->host_ops, a->op.stage, a->op.name);
    if (!m)
        return false;
    if (!m->category.n)
        m->category = a->op.type;
    m->eager |= a->eager;
    m->occurrences += a->begins;
    m->time_ps += time;
    m->self_ps += self;
    *op_ps += self;
    if (w->stack.n)
        VEC(w->stack, struct running)[w->stack.n - 1].inside_ps += time;
    if (is_feed(a->op.type))
        note_feed(w, begin, time);
    return true;
}

static bool run_thread(struct host_walk *w)
{
    struct activity *v = VEC(w->activities, struct activity);
    size_t n = w->activities.n;
    uint64_t op_ps = 0, total = 0;
    w->stack.n = 0;
    w->fed = false;
    if (n) {
        sort(&w->activities, sizeof *v, by_time);
        total = v[n - 1].ps - v[0].ps;
    }
    for (size_t i = 0; i < n; i++) {
        if (v[i].end) {
            if (!end_run(w, &v[i], &op_ps))
                return false;
            continue;
        }
        struct running *r = vec_push(&w->stack, sizeof *r);
        if (!r)
            return false;
        *r = (struct running){v[i].number, v[i].ps, 0};
    }
    return op_add_idle(&w->b->host_ops, &w->b->stats->host, total, op_ps);
}

static bool thread(struct host_walk *w, const struct derive_line *dl)
{
    const struct part_plane *pl = &w->b->part->planes[w->plane];
    struct side_cursor side;
    uint32_t number = 0;
    w->picked.n = w->activities.n = 0;
    if (!derive_pick(dl, 0, UINT64_C(1) << STAT_INPUT_STAGE_ID | UINT64_C(1) << STAT_TF_OP,
                     w->flags, pl->nevmeta, NAMED | ALIAS, &w->picked))
        return false;
    sort(&w->picked, sizeof(struct plane_event), plane_event_order);
    side_open(&side, dl->side);
    for (size_t i = 0; i < w->picked.n; i++) {
        const struct plane_event *ev = &VEC(w->picked, struct plane_event)[i];
        side_find(&side, ev->at);
        if (ev->name < pl->nevmeta && !add_event(w, ev, &side, &number))
            return false;
    }
    return run_thread(w);
}

static bool is_thread(const struct derive_line *dl)
{
    return !dl->line->derived && !dl->own_names;
}

enum xp_status op_host_plane(struct op_build *b, uint32_t plane)
{
    struct host_walk w = {.b = b, .plane = plane};
    const struct derive_plane *dp = &b->d->planes[plane];
    const struct derive_line *lines = b->d->lines + dp->first_line;
    bool ok = flag_names(&w);
    for (uint32_t i = 0; ok && i < dp->nlines; i++)
        ok = !is_thread(&lines[i]) || find_stages(&w, &lines[i]);
    if (ok)
        flag_aliases(&w);
    for (uint32_t i = 0; ok && i < dp->nlines; i++)
        ok = !is_thread(&lines[i]) || thread(&w, &lines[i]);
    vec_free(&w.stages);
    vec_free(&w.picked);
    vec_free(&w.activities);
    vec_free(&w.stack);
    return ok ? XP_OK : op_busy(b);
}
