#include "lib/base/hash.h"
#include "lib/base/pb_wire.h"
#include "shard/stats/figures_run.h"
#include "shard/stats/op_tpu_int.h"

/* One pass over a TensorCore's ops. A stack of the events around gives self times; sums gather by
 * metadata and group, and go to the core's ops and to the step when the group changes. */

/* An event that has not ended yet. */
struct frame {
    uint64_t begin_ps, end_ps;
    uint64_t inside_ps, grouped_inside_ps; /* direct children; those that have a group */
    int64_t group;
    uint32_t name;
    bool begins; /* in the range that is looked at: it counts as one */
};

/* Events of one metadata in one group. */
struct sum {
    uint32_t occurrences, grouped;
    bool listed; /* in touched */
    uint64_t time_ps, self_ps, step_self_ps, normalized_ps, stall_ps;
    double flops, model_flops, energy_j; /* of the events themselves */
    uint64_t bytes;
};

struct walk {
    struct op_build *b;
    const struct derive_plane *dp;
    struct op_metas metas;
    struct sum *now, *all; /* one a metadata */
    int64_t *begin_ps; /* one a metadata: session time of its first event; valid where some ran */
    struct xp_span plane; /* its name */
    uint32_t *first;      /* + 1: the metadata of its program and symbol that ended first */
    uint32_t *symbols;    /* of these, by program and symbol: metadata + 1 */
    size_t symbols_mask;
    struct vec touched; /* uint32_t: metadata in now */
    int64_t group;      /* of now */
    struct vec stack;   /* struct frame */
    struct tpu_steps steps;
    uint32_t *offload; /* by metadata: number + 1 of the SparseCore part it starts */
    const struct sparse_parts *sparse;
    uint64_t first_ps, last_ps;
};

static bool walk_init(struct walk *w, struct op_build *b, uint32_t plane)
{
    size_t n = (size_t)b->part->planes[plane].nevmeta + 1;
    *w = (struct walk){.b = b, .dp = &b->d->planes[plane], .group = DERIVE_NO_GROUP};
    w->now = xp_arena_zalloc(b->core, n * sizeof *w->now);
    w->all = xp_arena_zalloc(b->core, n * sizeof *w->all);
    w->offload = xp_arena_zalloc(b->core, n * sizeof *w->offload);
    w->begin_ps = xp_arena_alloc(b->core, n * sizeof *w->begin_ps);
    for (size_t i = 0; w->begin_ps && i < n; i++)
        w->begin_ps[i] = INT64_MAX;
    w->first = xp_arena_zalloc(b->core, n * sizeof *w->first);
    for (w->symbols_mask = 255; w->symbols_mask < 2 * n; w->symbols_mask = w->symbols_mask * 2 + 1)
        continue;
    w->symbols = xp_arena_zalloc(b->core, (w->symbols_mask + 1) * sizeof *w->symbols);
    w->first_ps = UINT64_MAX;
    return w->now && w->all && w->offload && w->begin_ps && w->first && w->symbols &&
           op_text(b, op_plane_name(b, plane), &w->plane);
}

static void walk_fini(struct walk *w)
{
    vec_free(&w->touched);
    vec_free(&w->stack);
    tpu_steps_fini(&w->steps);
}

/* --- sums --- */

/* Bytes of HBM: of each run by the op's own cost, or what the runs of a custom call said. */
static double step_hbm_bytes(const struct op_meta *m, const struct sum *s)
{
    double run = figure_hbm_bytes(&m->op);
    if (run > 0 || m->op.memory.known || !(m->kind & OP_KIND_CUSTOM_CALL))
        return run * (double)s->grouped;
    return (double)s->bytes;
}

static void step_op_of(const struct walk *w, uint32_t name, struct tpu_step_op *op)
{
    const struct sum *s = &w->now[name];
    const struct op_meta *m = &w->metas.v[name];
    double n = s->grouped;
    *op = (struct tpu_step_op){
        .category = m->category,
        .kind = m->kind,
        .self_ps = s->step_self_ps,
        .time_ps = s->time_ps,
        .flops = n * m->op.flops,
        .model_flops = n * (m->op.model_flops > 0 ? m->op.model_flops : m->op.flops),
        .run_flops = m->op.flops > 0                 ? n * m->op.flops
                     : m->kind & OP_KIND_CUSTOM_CALL ? s->flops
                                                     : 0,
        .hbm_bytes = step_hbm_bytes(m, s),
        .bytes = s->grouped * m->op.bytes,
        .memory = &m->op.memory,
        .times = s->grouped,
    };
}

/* What was gathered goes to the core's ops and to its step. */
static bool flush(struct walk *w)
{
    const uint32_t *names = VEC(w->touched, uint32_t);
    for (size_t i = 0; i < w->touched.n; i++) {
        struct sum *s = &w->now[names[i]], *all = &w->all[names[i]];
        struct tpu_step_op op;
        if (w->metas.v[names[i]].counted && w->group != DERIVE_NO_GROUP) {
            step_op_of(w, names[i], &op);
            if (!tpu_steps_add(&w->steps, w->group, &op))
                return false;
        }
        all->occurrences += s->occurrences;
        all->time_ps += s->time_ps;
        all->self_ps += s->self_ps;
        all->normalized_ps += s->normalized_ps;
        all->stall_ps += s->stall_ps;
        all->flops += s->flops;
        all->model_flops += s->model_flops;
        all->energy_j += s->energy_j;
        all->bytes += s->bytes;
        *s = (struct sum){0};
    }
    w->touched.n = 0;
    return true;
}

/* An op is a program's symbol: metadata that share one are one op, told by the first. */
static uint32_t first_of(struct walk *w, uint32_t name)
{
    const struct op_meta *m = &w->metas.v[name], *o;
    if (w->first[name])
        return w->first[name] - 1;
    if (m->counted) {
        size_t at = xp_hash_u64(m->op.program ^ xp_hash_u64(m->symbol)) & w->symbols_mask;
        for (; w->symbols[at]; at = (at + 1) & w->symbols_mask) {
            o = &w->metas.v[w->symbols[at] - 1];
            if (o->op.program == m->op.program && o->symbol == m->symbol)
                break;
        }
        if (!w->symbols[at])
            w->symbols[at] = name + 1;
        w->first[name] = w->symbols[at];
    } else {
        w->first[name] = name + 1;
    }
    return w->first[name] - 1;
}

static struct sum *sum_of(struct walk *w, int64_t group, uint32_t name)
{
    name = first_of(w, name);
    if (group != w->group) {
        if (!flush(w))
            return NULL;
        w->group = group;
    }
    struct sum *s = &w->now[name];
    if (!s->listed) {
        uint32_t *t = vec_push(&w->touched, sizeof *t);
        if (!t)
            return NULL;
        *t = name;
        s->listed = true;
    }
    return s;
}

/* --- the stack --- */

static bool pop(struct walk *w)
{
    struct frame *f = &VEC(w->stack, struct frame)[--w->stack.n];
    struct sum *s = sum_of(w, f->group, f->name);
    if (!s)
        return false;
    uint64_t time = f->end_ps - f->begin_ps;
    s->occurrences += f->begins;
    s->time_ps += time;
    s->normalized_ps += time;
    s->self_ps += time - f->inside_ps;
    if (f->group != DERIVE_NO_GROUP) {
        s->grouped += f->begins;
        s->step_self_ps += time - f->grouped_inside_ps;
    }
    return true;
}

static bool push(struct walk *w, const struct frame *f)
{
    struct frame *v = VEC(w->stack, struct frame);
    while (w->stack.n &&
           !(v[w->stack.n - 1].begin_ps <= f->begin_ps && f->end_ps <= v[w->stack.n - 1].end_ps))
        if (!pop(w))
            return false;
    uint64_t time = f->end_ps - f->begin_ps;
    if (w->stack.n)
        v[w->stack.n - 1].inside_ps += time;
    for (size_t i = w->stack.n; i && f->group != DERIVE_NO_GROUP; i--)
        if (v[i - 1].group != DERIVE_NO_GROUP) {
            v[i - 1].grouped_inside_ps += time;
            break;
        }
    struct frame *top = vec_push(&w->stack, sizeof *top);
    if (top)
        *top = *f;
    return top != NULL;
}

/* --- events --- */

static double side_double(const struct side_stat *s)
{
    if (s->type == SIDE_DOUBLE)
        return xp_pb_double(s->num);
    return s->type == SIDE_I64 ? (double)(int64_t)s->num : (double)s->num;
}

static bool note_collective(struct walk *w, const struct side_cursor *side, const struct frame *f,
                            uint64_t unique_id)
{
    const struct side_stat *id = side_get(side, STAT_ALL_REDUCE_ID);
    struct op_collective c = {.unique_id = unique_id,
                              .id = id ? id->num : 0,
                              .begin_ps = (int64_t)f->begin_ps,
                              .end_ps = (int64_t)f->end_ps,
                              .bytes = w->metas.v[f->name].op.bytes};
    return tpu_steps_collective(&w->steps, f->group, &c);
}

/* What an event's own stats add. */
static bool note_stats(struct walk *w, const struct side_cursor *side, const struct frame *f)
{
    const struct side_stat *core = NULL, *start = NULL, *collective = NULL;
    struct sum add = {0};
    bool some = false;
    for (int i = 0; i < side->n; i++) {
        const struct side_stat *s = &side->stats[i];
        switch (s->kind) {
        case STAT_TIME_SCALE: /* the stack adds the time once */
            add.normalized_ps = (uint64_t)((double)(f->end_ps - f->begin_ps) * side_double(s)) -
                                (f->end_ps - f->begin_ps);
            break;
        case STAT_DMA_STALL_PS:
            add.stall_ps = s->num;
            break;
        case STAT_VDD_ENERGY_J:
            add.energy_j += side_double(s);
            break;
        case STAT_FLOPS:
            add.flops += side_double(s);
            break;
        case STAT_MODEL_FLOPS:
            add.model_flops += side_double(s);
            break;
        case STAT_BYTES_ACCESSED:
            add.bytes += s->num;
            break;
        case STAT_OFFLOAD_CORE_ID:
            core = s;
            continue;
        case STAT_OFFLOAD_START_ID:
            start = s;
            continue;
        case STAT_ALL_REDUCE_UNIQUE_ID:
            collective = s;
            continue;
        default:
            continue;
        }
        some = true;
    }
    if (core && start && !w->offload[first_of(w, f->name)])
        w->offload[first_of(w, f->name)] = sparse_find(w->sparse, core->num, start->num);
    if (collective && f->group != DERIVE_NO_GROUP && !note_collective(w, side, f, collective->num))
        return false;
    if (!some)
        return true;
    struct sum *s = sum_of(w, f->group, f->name);
    if (!s)
        return false;
    s->normalized_ps += add.normalized_ps;
    s->stall_ps += add.stall_ps;
    s->energy_j += add.energy_j;
    s->flops += add.flops;
    s->model_flops += add.model_flops;
    s->bytes += add.bytes;
    return true;
}

static void note_span(struct walk *w, uint64_t begin, uint64_t end)
{
    w->first_ps = begin < w->first_ps ? begin : w->first_ps;
    w->last_ps = end > w->last_ps ? end : w->last_ps;
}

/* A custom call may wait for other chips. XProf is sure that it computes if its event, or else its
 * metadata, says how many flops it does, in 32 bits. */
static bool says_flops(const struct tpu_events *it, enum stat_kind kind, double of_meta)
{
    const struct side_stat *s = it->has_stats ? side_get(&it->side, kind) : NULL;
    uint64_t n = of_meta > 0 && of_meta < 0x1p63 ? (uint64_t)of_meta : 0;
    if (s)
        n = s->type == SIDE_U64 || s->type == SIDE_I64 ? s->num : 0;
    return (int32_t)(uint32_t)n > 0;
}

static void note_duty(struct tpu_duty *duty, const struct tpu_events *it,
                      const struct tpu_event *ev, const struct op_meta *m)
{
    bool busy = !(m->kind & OP_KIND_OFF_DUTY), sure = busy;
    if (m->kind & OP_KIND_CUSTOM_CALL)
        sure = says_flops(it, STAT_FLOPS, m->op.flops) ||
               says_flops(it, STAT_MODEL_FLOPS, m->op.model_flops);
    tpu_duty_event(duty, ev->begin_ps, ev->end_ps, busy, sure);
}

static bool walk_ops(struct walk *w, const struct derive_line *dl, struct tpu_duty *duty)
{
    struct tpu_event ev;
    struct tpu_events it;
    struct derive_eye eye;
    bool ok = tpu_events_open(&it, dl->line, w->b->core);
    derive_look(&eye, w->b->d, dl);
    while (ok && tpu_events_next(&it, &ev)) {
        struct derive_event de = {ev.begin_ps, ev.end_ps, ev.at, ev.name};
        struct frame f = {.begin_ps = ev.device_begin_ps,
                          .end_ps = ev.device_end_ps,
                          .name = ev.name,
                          .begins = part_begins(w->b->part, ev.at, ev.begin_ps),
                          .group = derive_group(&eye, &de)};
        if (ev.name >= w->metas.n)
            continue;
        if (ev.begin_ps < w->begin_ps[ev.name])
            w->begin_ps[ev.name] = ev.begin_ps;
        note_span(w, f.begin_ps, f.end_ps);
        /* XProf's line of framework ops has no times of the device, and counts with the host's. */
        if (w->metas.v[ev.name].op.provenance.n && ev.begin_ps >= 0)
            note_span(w, (uint64_t)ev.begin_ps, (uint64_t)ev.end_ps);
        note_duty(duty, &it, &ev, &w->metas.v[ev.name]);
        ok = push(w, &f) && (!it.has_stats || !f.begins || note_stats(w, &it.side, &f));
    }
    ok = ok && !it.failed;
    while (ok && w->stack.n)
        ok = pop(w);
    ok = ok && flush(w);
    tpu_duty_line_end(duty);
    w->group = DERIVE_NO_GROUP;
    tpu_events_close(&it);
    return ok;
}

static void note_modules(struct tpu_duty *duty, const struct part_line *line)
{
    if (part_watched(line))
        tpu_duty_widen(duty, line->begin_ps, line->end_ps);
}

/* Of a range the core's time is the range, as far as the line was watched. */
static void note_range(struct walk *w, const struct part_line *line)
{
    if (w->b->part->range && part_watched(line))
        note_span(w, (uint64_t)line->begin_ps, (uint64_t)line->end_ps);
}

/* Steps only widen the core's time. */
static bool walk_steps(struct walk *w, const struct derive_line *dl, bool markers)
{
    struct tpu_event ev;
    struct tpu_events it;
    struct derive_eye eye;
    bool ok = tpu_events_open(&it, dl->line, w->b->core);
    derive_look(&eye, w->b->d, dl);
    while (ok && tpu_events_next(&it, &ev)) {
        struct derive_event de = {ev.begin_ps, ev.end_ps, ev.at, ev.name};
        int64_t group = derive_group(&eye, &de);
        note_span(w, ev.device_begin_ps, ev.device_end_ps);
        if (markers && group != DERIVE_NO_GROUP)
            ok = tpu_steps_mark(&w->steps, group, derive_event_name(&eye, &de, NULL),
                                (int64_t)ev.device_begin_ps, (int64_t)ev.device_end_ps);
    }
    ok = ok && !it.failed;
    tpu_events_close(&it);
    return ok;
}

/* --- a core's ops --- */

static void op_of(const struct walk *w, uint32_t name, const struct sum *s, struct op_metrics *op)
{
    const struct op_meta *m = &w->metas.v[name];
    double n = s->occurrences;
    *op = m->op;
    op->occurrences = s->occurrences;
    op->time_ps = s->time_ps;
    op->self_ps = s->self_ps;
    op->normalized_ps = s->normalized_ps;
    op->dma_stall_ps = s->stall_ps;
    op->energy_j = s->energy_j;
    op->flops = n * m->op.flops;
    op->bytes = s->occurrences * m->op.bytes;
    op->model_flops = m->op.model_flops > 0 ? n * m->op.model_flops : op->flops;
    if (m->kind & OP_KIND_CUSTOM_CALL) {
        op->run_flops = s->flops;
        op->run_model_flops = s->model_flops;
        op->run_bytes = s->bytes;
    }
    op->memory = (struct op_memory){0};
    op_memory_add(&op->memory, &m->op.memory, s->occurrences);
    op->core_type = OP_CORE_TENSOR;
    op->first_begin_ps = w->begin_ps[name];
    op->first_plane = w->plane;
}

static bool core_ops(struct walk *w)
{
    struct op_build *b = w->b;
    struct op_db *db = &b->stats->device;
    uint64_t op_ps = 0;
    for (uint32_t i = 0; i < w->metas.n; i++) {
        struct op_metrics op, *to;
        if ((!w->all[i].occurrences && !w->all[i].time_ps) || !w->metas.v[i].counted)
            continue;
        op_of(w, i, &w->all[i], &op);
        if (w->offload[i])
            sparse_children(w->sparse, w->offload[i], &op);
        if (!(to = op_table_get(&b->device, op.program, op.name)))
            return false;
        op_ps += op.self_ps;
        if (op.time_ps) /* divided first: a clock that did not change is exactly 1 */
            db->total_op_norm_ps +=
                (uint64_t)((double)op.self_ps * ((double)op.normalized_ps / (double)op.time_ps));
        op_texts(to, &op);
        op_add(to, &op);
    }
    return op_add_idle(&b->device, db, w->last_ps - w->first_ps, op_ps);
}

enum xp_status tpu_tensor_core(struct op_build *b, uint32_t plane,
                               const struct sparse_parts *sparse, struct op_core *core,
                               struct tpu_duty *duty)
{
    struct walk w;
    const struct derive_plane *dp = &b->d->planes[plane];
    bool ok = walk_init(&w, b, plane);
    enum xp_status st = ok ? op_metas_read(b, plane, &w.metas) : op_busy(b);

    w.sparse = sparse;
    for (uint32_t i = 0; ok && st == XP_OK && i < dp->nlines; i++) {
        const struct derive_line *dl = &b->d->lines[dp->first_line + i];
        struct xp_span name = part_line_name(b->part, dl->line);
        if (dl->line->derived)
            name = dl->name;
        if (tpu_is_ops(name))
            ok = walk_ops(&w, dl, duty);
        else if (tpu_is_steps(name))
            ok = walk_steps(&w, dl, dp->tensor_core && xp_span_eq(name, XP_SPAN_LIT("Steps")));
        else if (tpu_is_modules(name))
            note_modules(duty, dl->line);
        if (tpu_is_ops(name) && b->part->range)
            note_modules(duty, dl->line);
        if (tpu_is_ops(name) || tpu_is_steps(name))
            note_range(&w, dl->line);
    }
    if (b->part->range && w.first_ps > w.last_ps)
        w.first_ps = w.last_ps;
    ok = ok && st == XP_OK && core_ops(&w) && tpu_steps_keep(b, &w.steps, &w.metas, core);
    walk_fini(&w);
    if (st == XP_OK && !ok)
        st = b->err->status != XP_OK ? b->err->status : op_busy(b);
    return st;
}
