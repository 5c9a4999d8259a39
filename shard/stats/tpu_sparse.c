#include "shard/stats/op_tpu_int.h"

/* A SparseCore runs modules that a TensorCore's op started: (core id, start id) names the op. What
 * ran inside them becomes that op's children. */

struct module {
    uint64_t begin_ps, end_ps, core, start; /* device time */
    struct vec stack;                       /* struct op_frame */
};

struct op_frame {
    uint64_t begin_ps, end_ps, inside_ps;
    uint32_t name;
    bool begins; /* in the range that is looked at */
};

/* One run of one op. */
struct record {
    uint64_t core, start;
    bool module; /* no op: the module's own time */
    bool begins;
    uint64_t time_ps, self_ps;
    struct op_metrics *op; /* as metadata say; scratch */
    uint64_t symbol;
};

static int by_begin(const void *a, const void *b)
{
    const struct module *x = a, *y = b;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    return (x->end_ps < y->end_ps) - (x->end_ps > y->end_ps);
}

static bool find_modules(struct op_build *b, const struct derive_line *dl, struct vec *modules)
{
    struct tpu_events it;
    struct tpu_event ev;
    bool ok = tpu_events_open(&it, dl->line, b->core);
    while (ok && tpu_events_next(&it, &ev)) {
        const struct side_stat *core, *start;
        if (!it.has_stats || !(core = side_get(&it.side, STAT_OFFLOAD_CORE_ID)) ||
            !(start = side_get(&it.side, STAT_OFFLOAD_START_ID)))
            continue;
        struct module *m = vec_push(modules, sizeof *m);
        ok = m != NULL;
        if (ok)
            *m = (struct module){ev.device_begin_ps, ev.device_end_ps, core->num, start->num, {0}};
    }
    tpu_events_close(&it);
    return ok;
}

struct sparse_walk {
    struct op_build *b;
    struct op_metas metas;
    struct vec modules, *records;
    size_t module; /* the first that does not end before the event */
    struct tpu_steps steps;
    struct vec stack; /* of the whole line, for steps */
};

static bool sparse_pop(struct sparse_walk *w, struct module *m)
{
    struct op_frame *f = &VEC(m->stack, struct op_frame)[--m->stack.n];
    struct op_meta *meta = &w->metas.v[f->name];
    if (!meta->counted)
        return true;
    struct record *r = vec_push(w->records, sizeof *r);
    if (!r)
        return false;
    uint64_t time = f->end_ps - f->begin_ps;
    *r = (struct record){.core = m->core,
                         .start = m->start,
                         .begins = f->begins,
                         .time_ps = time,
                         .self_ps = time - f->inside_ps,
                         .op = &meta->op,
                         .symbol = meta->symbol};
    return true;
}

static bool sparse_push(struct sparse_walk *w, struct module *m, const struct tpu_event *ev)
{
    struct op_frame *v = VEC(m->stack, struct op_frame);
    while (m->stack.n && !(v[m->stack.n - 1].begin_ps <= ev->device_begin_ps &&
                           ev->device_end_ps <= v[m->stack.n - 1].end_ps))
        if (!sparse_pop(w, m))
            return false;
    if (m->stack.n)
        v[m->stack.n - 1].inside_ps += ev->device_end_ps - ev->device_begin_ps;
    struct op_frame *top = vec_push(&m->stack, sizeof *top);
    if (top)
        *top = (struct op_frame){ev->device_begin_ps, ev->device_end_ps, 0, ev->name,
                                 part_begins(w->b->part, ev->at, ev->begin_ps)};
    return top != NULL;
}

static bool in_module(struct sparse_walk *w, const struct tpu_event *ev)
{
    struct module *m = VEC(w->modules, struct module);
    while (w->module < w->modules.n && m[w->module].end_ps < ev->device_begin_ps)
        w->module++;
    if (w->module == w->modules.n)
        return true;
    m += w->module;
    if (m->begin_ps > ev->device_begin_ps || ev->device_end_ps > m->end_ps)
        return true;
    return sparse_push(w, m, ev);
}

/* Self time for the steps; nesting as in the whole line. */
static bool in_step(struct sparse_walk *w, const struct tpu_event *ev, int64_t group)
{
    struct op_meta *meta = &w->metas.v[ev->name];
    struct tpu_step_op op = {.category = meta->category,
                             .kind = meta->kind,
                             .self_ps = ev->device_end_ps - ev->device_begin_ps,
                             .memory = &(struct op_memory){.known = false}};
    op.time_ps = op.self_ps;
    if (group == DERIVE_NO_GROUP)
        return true;
    struct op_frame *v = VEC(w->stack, struct op_frame);
    while (w->stack.n && !(v[w->stack.n - 1].begin_ps <= ev->device_begin_ps &&
                           ev->device_end_ps <= v[w->stack.n - 1].end_ps))
        w->stack.n--;
    if (w->stack.n && w->metas.v[v[w->stack.n - 1].name].counted) {
        /* What runs inside is not its parent's own time. */
        struct op_meta *parent = &w->metas.v[v[w->stack.n - 1].name];
        struct tpu_step_op less = {
            .category = parent->category, .self_ps = (uint64_t)0 - op.self_ps, .memory = op.memory};
        if (!tpu_steps_add(&w->steps, (int64_t)v[w->stack.n - 1].inside_ps, &less))
            return false;
    }
    struct op_frame *top = vec_push(&w->stack, sizeof *top);
    if (!top)
        return false;
    *top =
        (struct op_frame){ev->device_begin_ps, ev->device_end_ps, (uint64_t)group, ev->name, true};
    return !meta->counted || tpu_steps_add(&w->steps, group, &op);
}

/* A line whose events have the groups of the TensorCore's steps; else the SparseCore's own. */
static const struct derive_line *line_of_steps(const struct derive *d, const struct derive_line *dl)
{
    uint32_t chip = UINT32_MAX;
    struct xp_span name = d->planes[dl->plane].name;
    for (uint32_t i = 0; i < d->part->nplanes; i++)
        if (d->planes[i].tensor_core && d->planes[i].nsteps &&
            (chip == UINT32_MAX || xp_span_starts(name, d->planes[i].name)))
            chip = i;
    for (uint32_t i = 0; chip != UINT32_MAX && i < d->planes[chip].nlines; i++) {
        const struct derive_line *l = &d->lines[d->planes[chip].first_line + i];
        if (l->group_by == DERIVE_GROUP_STEPS)
            return l;
    }
    return dl;
}

static bool sparse_ops(struct sparse_walk *w, const struct derive_line *dl, struct tpu_duty *duty)
{
    struct tpu_events it;
    struct tpu_event ev;
    struct derive_eye eye;
    bool ok = tpu_events_open(&it, dl->line, w->b->core);
    derive_look(&eye, w->b->d, line_of_steps(w->b->d, dl));
    w->module = 0;
    while (ok && tpu_events_next(&it, &ev)) {
        struct derive_event de = {ev.begin_ps, ev.end_ps, ev.at, ev.name};
        if (ev.name >= w->metas.n)
            continue;
        tpu_duty_event(duty, ev.begin_ps, ev.end_ps, true, true);
        ok = in_module(w, &ev) && in_step(w, &ev, derive_group(&eye, &de));
    }
    tpu_duty_line_end(duty);
    tpu_events_close(&it);
    return ok;
}

static bool sparse_steps(struct sparse_walk *w, const struct derive_line *dl)
{
    struct tpu_events it;
    struct tpu_event ev;
    struct derive_eye eye;
    bool ok = tpu_events_open(&it, dl->line, w->b->core);
    derive_look(&eye, w->b->d, dl);
    while (ok && tpu_events_next(&it, &ev)) {
        struct derive_event de = {ev.begin_ps, ev.end_ps, ev.at, ev.name};
        int64_t group = derive_group(&eye, &de);
        if (group != DERIVE_NO_GROUP)
            ok = tpu_steps_mark(&w->steps, group, derive_event_name(&eye, &de, NULL),
                                (int64_t)ev.device_begin_ps, (int64_t)ev.device_end_ps);
    }
    tpu_events_close(&it);
    return ok;
}

static bool end_modules(struct sparse_walk *w)
{
    for (size_t i = 0; i < w->modules.n; i++) {
        struct module *m = &VEC(w->modules, struct module)[i];
        while (m->stack.n)
            if (!sparse_pop(w, m))
                return false;
        struct record *r = vec_push(w->records, sizeof *r);
        if (!r)
            return false;
        *r = (struct record){
            .core = m->core, .start = m->start, .module = true, .time_ps = m->end_ps - m->begin_ps};
    }
    return true;
}

static bool sparse_lines(struct sparse_walk *w, const struct derive_plane *dp,
                         struct tpu_duty *duty)
{
    const struct derive_line *lines = w->b->d->lines + dp->first_line;
    for (uint32_t i = 0; i < dp->nlines; i++) {
        if (!xp_span_eq(lines[i].name, XP_SPAN_LIT("Sparse Core Modules")))
            continue;
        if (part_watched(lines[i].line))
            tpu_duty_widen(duty, lines[i].line->begin_ps, lines[i].line->end_ps);
        if (!find_modules(w->b, &lines[i], &w->modules))
            return false;
    }
    if (w->modules.n)
        qsort(w->modules.p, w->modules.n, sizeof(struct module), by_begin);
    for (uint32_t i = 0; i < dp->nlines; i++) {
        struct xp_span name = lines[i].name;
        if (xp_span_eq(name, XP_SPAN_LIT("Sparse Core Ops")) && !sparse_ops(w, &lines[i], duty))
            return false;
        if (xp_span_eq(name, XP_SPAN_LIT("Sparse Core Steps")) && !sparse_steps(w, &lines[i]))
            return false;
    }
    return end_modules(w);
}

enum xp_status tpu_sparse_core(struct op_build *b, uint32_t plane, struct vec *records,
                               struct op_core *core, struct tpu_duty *duty)
{
    struct sparse_walk w = {.b = b, .records = records};
    enum xp_status st = op_metas_read(b, plane, &w.metas);
    if (st == XP_OK && !(sparse_lines(&w, &b->d->planes[plane], duty) &&
                         tpu_steps_keep(b, &w.steps, &w.metas, core)))
        st = op_busy(b);
    for (size_t i = 0; i < w.modules.n; i++)
        vec_free(&VEC(w.modules, struct module)[i].stack);
    vec_free(&w.modules);
    vec_free(&w.stack);
    tpu_steps_fini(&w.steps);
    return st;
}

/* --- all parts --- */

static int by_part(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    if (x->core != y->core)
        return x->core < y->core ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return 0;
}

/* Ops of one part, from its records; IDLE at the end. */
static bool make_part(struct op_build *b, const struct record *r, size_t n, struct sparse_part *p)
{
    struct op_table t = {0};
    struct op_db db = {0};
    uint64_t op_ps = 0;
    bool ok = true;
    *p = (struct sparse_part){.core = r->core, .start = r->start};
    for (size_t i = 0; ok && i < n; i++) {
        if (r[i].module) {
            p->total_ps += r[i].time_ps;
            continue;
        }
        struct op_metrics one = *r[i].op, *to;
        one.occurrences = r[i].begins;
        one.time_ps = r[i].time_ps;
        one.self_ps = r[i].self_ps;
        one.core_type = OP_CORE_SPARSE;
        if (one.model_flops <= 0)
            one.model_flops = one.flops;
        ok = op_hlo_children(b, &one) == XP_OK && (to = op_table_get(&t, one.program, one.name));
        if (!ok)
            break;
        op_texts(to, &one);
        op_add(to, &one);
        op_ps += one.self_ps;
    }
    ok = ok && op_add_idle(&t, &db, p->total_ps, op_ps) &&
         op_keep(b, &t.ops, sizeof(struct op_metrics), &p->ops, &p->nops);
    op_table_fini(&t);
    return ok;
}

enum xp_status tpu_sparse_parts(struct op_build *b, struct vec *records, struct sparse_parts *out)
{
    struct record *r = VEC(*records, struct record);
    size_t n = records->n, end;
    *out = (struct sparse_parts){0};
    if (!n)
        return XP_OK;
    qsort(r, n, sizeof *r, by_part);
    out->v = xp_arena_alloc(b->scratch, n * sizeof *out->v);
    if (!out->v)
        return op_busy(b);
    for (size_t i = 0; i < n; i = end) {
        bool ops = false;
        for (end = i; end < n && !by_part(&r[i], &r[end]); end++)
            ops |= !r[end].module;
        if (ops && !make_part(b, r + i, end - i, &out->v[out->n++]))
            return op_busy(b);
    }
    return XP_OK;
}

uint32_t sparse_find(const struct sparse_parts *s, uint64_t core, uint64_t start)
{
    uint32_t lo = 0, hi = s ? s->n : 0;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        const struct sparse_part *p = &s->v[mid];
        if (p->core == core && p->start == start)
            return mid + 1;
        if (p->core < core || (p->core == core && p->start < start))
            lo = mid + 1;
        else
            hi = mid;
    }
    return 0;
}

void sparse_children(const struct sparse_parts *s, uint32_t number, struct op_metrics *op)
{
    const struct sparse_part *p = &s->v[number - 1];
    op->children = p->ops;
    op->nchildren = p->nops;
    op->children_total_ps = p->total_ps;
}
