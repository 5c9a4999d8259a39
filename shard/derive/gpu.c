#include "shard/decode/xspace_decoder.h"
#include "shard/derive/derive_int.h"
#include "shard/derive/framework_op.h"
#include "shard/derive/hlo.h"

#include <stdio.h>

/* GPU planes: steps over all streams, and for each stream a block of lines made from what its
 * kernels were annotated with; then a line of launches, from the host's side. */

#define NONE UINT32_MAX
#define BLOCK_IDS 6     /* ids that a stream's derived lines take */
#define BLOCK_DISPLAY 7 /* numbers that a stream and its lines take */
#define SCOPES_MAX 1024

enum { LINE_SCOPES, LINE_OPS, LINE_MODULES, LINE_HLO_OPS, LINE_UNUSED, LINE_SOURCE, LINES };
static const char *const line_names[LINES] = {
    "Framework Name Scope", "Framework Ops", "XLA Modules", "XLA Ops", "", "Source code"};

struct scope_parent {
    int64_t child, parent;
};

struct gpu_work {
    struct derive_work *w;
    struct hlo_map *hlo;
    struct vec scopes; /* struct scope_parent, by child */
    uint32_t plane;
    uint32_t first_line, end_line; /* its lines of the file, in the work's */
    struct derive_eye *eyes;       /* one for each of them */
    struct line_maker *lines[LINES];
};

static struct derive_line *line_at(const struct gpu_work *g, uint32_t i)
{
    return &VEC(g->w->lines, struct derive_line)[i];
}

/* --- groups and steps --- */

static bool take_streams(const struct derive_line *l, const void *ctx)
{
    (void)ctx;
    return !l->line->derived && !derive_id_is_ours(l->line->id);
}

static bool add_run(struct vec *runs, const struct plane_event *ev, int64_t group)
{
    int32_t value = group == DERIVE_NO_GROUP ? -1 : (int32_t)group;
    if (runs->n && VEC(*runs, struct derive_span)[runs->n - 1].group == value)
        return true;
    struct derive_span *r = vec_push(runs, sizeof *r);
    if (r)
        *r = (struct derive_span){ev->begin_ps, ev->end_ps, value, -1};
    return r;
}

static bool keep_runs(struct gpu_work *g, uint32_t line, const struct vec *runs)
{
    struct derive_line *l = line_at(g, line);
    struct derive_span *kept = xp_bump_alloc(&g->w->bump, (runs->n + 1) * sizeof *kept, 16);
    if (!kept)
        return false;
    if (runs->n)
        memcpy(kept, runs->p, runs->n * sizeof *kept);
    l->group_by = DERIVE_GROUP_RUNS;
    l->spans = kept;
    l->nspans = (uint32_t)runs->n;
    derive_look(&g->eyes[line - g->first_line], g->w->d, l);
    return true;
}

/* Lines move while others are added. */
static struct derive_eye *eye_of(struct gpu_work *g, uint32_t line)
{
    struct derive_eye *eye = &g->eyes[line - g->first_line];
    eye->line = line_at(g, line);
    return eye;
}

/* Events without a group get the last one; steps are the events of one group. */
static bool group_events(struct gpu_work *g, struct line_maker *steps, struct vec *runs)
{
    struct derive_work *w = g->w;
    struct plane_walk *walk = plane_walk_new(VEC(w->lines, struct derive_line), g->first_line,
                                             g->end_line - g->first_line, take_streams, NULL);
    int64_t last = DERIVE_NO_GROUP;
    struct plane_event ev;
    bool ok = walk;
    while (ok && plane_walk_next(walk, &ev)) {
        struct derive_event e = {ev.begin_ps, ev.end_ps, ev.at, ev.name};
        int64_t group = derive_group(eye_of(g, ev.line), &e);
        if (group == DERIVE_NO_GROUP)
            group = last;
        last = group;
        ok = add_run(&runs[ev.line - g->first_line], &ev, group);
        if (!ok || group == DERIVE_NO_GROUP)
            continue;
        char text[24];
        snprintf(text, sizeof text, "%lld", (long long)group);
        uint32_t name = derive_name_of(w, g->plane, xp_span_str(text));
        ok = name != NONE &&
             line_maker_add(steps, 0, name, ev.begin_ps, ev.end_ps, group, INT64_MIN, ev.at);
    }
    ok = ok && !plane_walk_failed(walk);
    plane_walk_free(walk);
    return ok;
}

static bool add_line(struct gpu_work *g, struct line_maker **m, int64_t id, struct xp_span name,
                     int64_t tid, bool steps)
{
    struct maker_output out;
    enum xp_status st = line_maker_end(*m, &out);
    *m = NULL;
    if (st != XP_OK || !out.line)
        return st == XP_OK;
    struct derive_line *l = derive_add_line(g->w, g->plane, id, name, out.line);
    if (!l)
        return false;
    l->tid = tid;
    l->group_by = DERIVE_GROUP_RUNS;
    l->spans = out.runs;
    l->nspans = out.nruns;
    l->named_by_step = steps;
    l->args = steps ? DERIVE_ARGS_STEPS : DERIVE_ARGS_NONE;
    return true;
}

static bool plane_groups(struct gpu_work *g)
{
    uint32_t nlines = g->end_line - g->first_line;
    struct vec *runs = calloc((size_t)nlines + 1, sizeof *runs);
    struct line_maker *steps = line_maker_new(g->w, true);
    bool ok = runs && steps && group_events(g, steps, runs);
    for (uint32_t i = 0; ok && i < nlines; i++)
        if (take_streams(line_at(g, g->first_line + i), NULL))
            ok = keep_runs(g, g->first_line + i, &runs[i]);
    for (uint32_t i = 0; runs && i < nlines; i++)
        vec_free(&runs[i]);
    free(runs);
    if (ok)
        return add_line(g, &steps, DERIVE_LINE_STEPS, XP_SPAN_LIT("Steps"), DERIVE_LINE_STEPS,
                        true);
    line_maker_free(steps);
    return false;
}

/* --- one stream --- */

struct kernel {
    struct xp_span hlo_op, module, tf_op;
    uint64_t program;
    int64_t scope;
    bool is_kernel, has_program, has_scope;
};

static struct xp_span stat_text(const struct gpu_work *g, const struct side_cursor *c,
                                enum stat_kind kind)
{
    const struct side_stat *s = side_get(c, kind);
    return s && s->type == SIDE_STR ? part_str(g->w->part, (uint32_t)s->num) : (struct xp_span){0};
}

static void kernel_read(const struct gpu_work *g, struct derive_eye *eye, uint64_t at,
                        struct kernel *k)
{
    uint64_t v;
    *k = (struct kernel){0};
    if (!eye->side.side || !side_find(&eye->side, at))
        return;
    k->hlo_op = stat_text(g, &eye->side, STAT_HLO_OP);
    k->module = stat_text(g, &eye->side, STAT_HLO_MODULE);
    k->tf_op = stat_text(g, &eye->side, STAT_TF_OP);
    k->has_program = derive_int(&eye->side, STAT_PROGRAM_ID, &k->program);
    if (derive_int(&eye->side, STAT_SCOPE_RANGE_ID, &v)) {
        k->has_scope = true;
        k->scope = side_get(&eye->side, STAT_SCOPE_RANGE_ID)->type == SIDE_I64 ? (int64_t)v : 0;
    }
    k->is_kernel = stat_text(g, &eye->side, STAT_KERNEL_DETAILS).n ||
                   side_get(&eye->side, STAT_CUDA_GRAPH_EXEC_ID);
}

static bool parent_of(const struct gpu_work *g, int64_t child, int64_t *parent)
{
    const struct scope_parent *s = g->scopes.p;
    size_t lo = 0, hi = g->scopes.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s[mid].child < child)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == g->scopes.n || s[lo].child != child)
        return false;
    *parent = s[lo].parent;
    return true;
}

/* Ranges from the outermost to the kernel's own; at most SCOPES_MAX, so that cycles end. */
static size_t range_levels(const struct gpu_work *g, const struct kernel *k, int64_t *levels)
{
    size_t n = 0;
    int64_t at = k->scope;
    if (!k->has_scope)
        return 0;
    do
        levels[n++] = at;
    while (n < SCOPES_MAX && parent_of(g, at, &at));
    for (size_t i = 0; i < n / 2; i++) {
        int64_t t = levels[i];
        levels[i] = levels[n - 1 - i];
        levels[n - 1 - i] = t;
    }
    return n;
}

static bool framework_event(struct gpu_work *g, struct xp_span full, const struct plane_event *ev,
                            int64_t group)
{
    struct framework_op op = framework_op_parse(full);
    struct xp_span rest = op.name, scope;
    uint32_t level = 0;
    bool iterator;
    if (op.framework == FRAMEWORK_TF || op.framework == FRAMEWORK_JAX)
        while (level < SCOPES_MAX && framework_scope_next(&rest, &scope)) {
            uint32_t name = derive_name_of(g->w, g->plane, scope);
            if (name == NONE || !line_maker_add(g->lines[LINE_SCOPES], level++, name, ev->begin_ps,
                                                ev->end_ps, group, INT64_MIN, ev->at))
                return false;
        }
    if (level)
        line_maker_reset(g->lines[LINE_SCOPES], level);
    uint32_t name = derive_name_of(g->w, g->plane, full);
    struct xp_span label = framework_op_label(&op, &iterator);
    struct xp_buf b;
    xp_buf_init(&b, (size_t)1 << 20);
    xp_buf_str(&b, iterator ? "Iterator::" : "");
    xp_buf_span(&b, label);
    bool ok = name != NONE && !b.failed && derive_name_display(g->w, name, xp_buf_all(&b)) &&
              line_maker_add(g->lines[LINE_OPS], 0, name, ev->begin_ps, ev->end_ps, group,
                             INT64_MIN, ev->at);
    xp_buf_fini(&b);
    return ok;
}

static uint32_t prefixed_name(struct gpu_work *g, const struct kernel *k, struct xp_span op)
{
    struct xp_buf b;
    xp_buf_init(&b, (size_t)1 << 20);
    if (k->has_program)
        xp_buf_fmt(&b, "%llu", (unsigned long long)k->program);
    else
        xp_buf_span(&b, k->module);
    xp_buf_byte(&b, '/');
    xp_buf_span(&b, op);
    uint32_t name = b.failed ? NONE : derive_name_of(g->w, g->plane, xp_buf_all(&b));
    xp_buf_fini(&b);
    return name != NONE && derive_name_display(g->w, name, op) ? name : NONE;
}

static bool module_event(struct gpu_work *g, const struct kernel *k, const struct plane_event *ev,
                         int64_t group, int64_t scope)
{
    struct xp_buf b;
    xp_buf_init(&b, (size_t)1 << 20);
    xp_buf_span(&b, k->module);
    if (k->has_program)
        xp_buf_fmt(&b, "(%llu)", (unsigned long long)k->program);
    uint32_t name = b.failed ? NONE : derive_name_of(g->w, g->plane, xp_buf_all(&b));
    xp_buf_fini(&b);
    return name != NONE && line_maker_add(g->lines[LINE_MODULES], 0, name, ev->begin_ps, ev->end_ps,
                                          group, scope, ev->at);
}

static size_t count_ops(struct xp_span s)
{
    size_t n = 1;
    for (size_t i = 0; i + 1 < s.n; i++)
        if (s.p[i] == ':' && s.p[i + 1] == ':') {
            n++;
            i++;
        }
    return n;
}

/* The next of "a::b::c". */
static struct xp_span next_op(struct xp_span *rest)
{
    struct xp_span op = *rest;
    const uint8_t *sep = rest->n ? memmem(rest->p, rest->n, "::", 2) : NULL;
    if (sep) {
        op.n = (size_t)(sep - rest->p);
        *rest = xp_span_of(sep + 2, rest->n - op.n - 2);
    } else {
        *rest = (struct xp_span){0};
    }
    return op;
}

static bool hlo_event(struct gpu_work *g, const struct kernel *k, const struct plane_event *ev,
                      int64_t group, const int64_t *levels, size_t nlevels)
{
    struct xp_span rest = k->hlo_op, op = {0};
    size_t n = count_ops(rest);
    struct hlo_symbol symbol = {0};
    for (uint32_t i = 0; i < n; i++) {
        op = next_op(&rest);
        uint32_t name = prefixed_name(g, k, op);
        if (name == NONE ||
            !line_maker_add(g->lines[LINE_HLO_OPS], i, name, ev->begin_ps, ev->end_ps, group,
                            nlevels == n ? levels[i] : INT64_MIN, ev->at))
            return false;
    }
    line_maker_reset(g->lines[LINE_HLO_OPS], (uint32_t)n);
    if (!k->has_program || !hlo_find(g->hlo, k->program, op, &symbol))
        return true;
    if (symbol.op.n && !framework_event(g, symbol.op, ev, group))
        return false;
    if (!symbol.source.n)
        return true;
    uint32_t name = derive_name_of(g->w, g->plane, symbol.source);
    return name != NONE && line_maker_add(g->lines[LINE_SOURCE], 0, name, ev->begin_ps, ev->end_ps,
                                          group, INT64_MIN, ev->at);
}

static bool kernel_event(struct gpu_work *g, const struct plane_event *ev)
{
    struct derive_eye *eye = eye_of(g, ev->line);
    struct derive_event e = {ev->begin_ps, ev->end_ps, ev->at, ev->name};
    struct kernel k;
    int64_t levels[SCOPES_MAX];
    kernel_read(g, eye, ev->at, &k);
    if (!k.is_kernel)
        return true;
    int64_t group = derive_group(eye, &e);
    size_t n = k.module.n || k.hlo_op.n ? range_levels(g, &k, levels) : 0;
    if (k.module.n && !module_event(g, &k, ev, group, n ? levels[0] : INT64_MIN))
        return false;
    if (k.hlo_op.n)
        return hlo_event(g, &k, ev, group, levels, n);
    return !k.tf_op.n || framework_event(g, k.tf_op, ev, group);
}

static bool take_stream(const struct derive_line *l, const void *ctx)
{
    return take_streams(l, NULL) && l->line->id == *(const int64_t *)ctx;
}

static bool walk_stream(struct gpu_work *g, int64_t id)
{
    struct derive_work *w = g->w;
    struct plane_walk *walk = plane_walk_new(VEC(w->lines, struct derive_line), g->first_line,
                                             g->end_line - g->first_line, take_stream, &id);
    struct plane_event ev;
    bool ok = walk;
    while (ok && plane_walk_next(walk, &ev))
        ok = kernel_event(g, &ev);
    ok = ok && !plane_walk_failed(walk);
    plane_walk_free(walk);
    return ok;
}

static bool stream_lines(struct gpu_work *g, int64_t id, uint32_t index)
{
    int64_t first = DERIVE_LINE_GPU_FIRST + (int64_t)index * BLOCK_IDS;
    bool ok = true;
    for (int i = 0; i < LINES; i++)
        ok &= (g->lines[i] = line_maker_new(g->w, true)) != NULL;
    if (ok) {
        line_maker_depends(g->lines[LINE_SCOPES], g->lines[LINE_OPS]);
        line_maker_depends(g->lines[LINE_MODULES], g->lines[LINE_SCOPES]);
        line_maker_depends(g->lines[LINE_MODULES], g->lines[LINE_HLO_OPS]);
        ok = walk_stream(g, id);
    }
    for (int i = 0; ok && i < LINES; i++) {
        struct xp_buf b;
        xp_buf_init(&b, 256);
        xp_buf_fmt(&b, "%s - from #%lld", line_names[i], (long long)id);
        ok = add_line(g, &g->lines[i], first + i, xp_buf_all(&b),
                      (int64_t)index * BLOCK_DISPLAY + 2 + i - (i > LINE_UNUSED), false);
        xp_buf_fini(&b);
    }
    for (int i = 0; i < LINES; i++) {
        line_maker_free(g->lines[i]);
        g->lines[i] = NULL;
    }
    return ok;
}

/* --- the streams of a plane --- */

struct stream {
    uint64_t nevents;
    uint32_t line, order;
    int64_t id;
    bool compute;
};

static int stream_order(const void *a, const void *b)
{
    const struct stream *x = a, *y = b;
    if (x->compute != y->compute)
        return x->compute ? -1 : 1;
    if (x->nevents != y->nevents)
        return x->nevents > y->nevents ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static bool find_streams(struct gpu_work *g, struct vec *streams)
{
    for (uint32_t i = g->first_line; i < g->end_line; i++) {
        const struct derive_line *l = line_at(g, i);
        if (!take_streams(l, NULL))
            continue;
        struct xp_span name = part_str(g->w->part, l->line->name);
        struct stream *s = vec_push(streams, sizeof *s);
        if (!s)
            return false;
        *s = (struct stream){l->line->nevents, i, i, l->line->id,
                             name.n && memmem(name.p, name.n, "Compute", 7)};
    }
    if (streams->n)
        qsort(streams->p, streams->n, sizeof(struct stream), stream_order);
    return true;
}

static bool plane_streams(struct gpu_work *g)
{
    struct vec streams = {0};
    bool ok = find_streams(g, &streams);
    const struct stream *s = streams.p;
    for (uint32_t i = 0; ok && i < streams.n; i++) {
        if (DERIVE_LINE_GPU_FIRST + (int64_t)(i + 1) * BLOCK_IDS > DERIVE_LINE_GPU_LAST)
            break;
        line_at(g, s[i].line)->tid = (int64_t)i * BLOCK_DISPLAY + 1;
        ok = stream_lines(g, s[i].id, i);
    }
    vec_free(&streams);
    return ok;
}

/* --- launches --- */

struct launch {
    int64_t begin_ps, end_ps, group;
    uint64_t count, max_ps, sum_ps;
    size_t met; /* order of appearance */
};

/* Launches of a group mostly come one after another: those that do not are joined later. */
static struct launch *launch_of(struct vec *v, int64_t group)
{
    struct launch *l = v->n ? &VEC(*v, struct launch)[v->n - 1] : NULL;
    if (l && l->group == group)
        return l;
    size_t met = v->n;
    l = vec_push(v, sizeof *l);
    if (l)
        *l = (struct launch){.group = group, .met = met};
    return l;
}

static int launch_group_order(const void *a, const void *b)
{
    const struct launch *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->met > y->met) - (x->met < y->met);
}

/* One of each group. */
static void join_launches(struct vec *v)
{
    struct launch *l = v->p;
    size_t n = 0;
    qsort(l, v->n, sizeof *l, launch_group_order);
    for (size_t i = 0; i < v->n; i++) {
        struct launch *to = n ? &l[n - 1] : NULL;
        if (!to || to->group != l[i].group) {
            l[n++] = l[i];
            continue;
        }
        to->begin_ps = l[i].begin_ps < to->begin_ps ? l[i].begin_ps : to->begin_ps;
        to->end_ps = l[i].end_ps > to->end_ps ? l[i].end_ps : to->end_ps;
        to->max_ps = l[i].max_ps > to->max_ps ? l[i].max_ps : to->max_ps;
        to->count += l[i].count;
        to->sum_ps += l[i].sum_ps;
    }
    v->n = n;
}

static bool host_launches(struct derive_work *w, uint32_t line, struct vec *devices, uint64_t n)
{
    const struct derive_line *l = &VEC(w->lines, struct derive_line)[line];
    const struct part_plane *pl = &w->part->planes[l->plane];
    struct vec events = {0};
    struct derive_eye eye;
    bool ok = derive_pick(l, line, UINT64_C(1) << STAT_CORRELATION_ID, NULL, 0, 0, &events);
    derive_look(&eye, w->d, l);
    for (size_t i = 0; ok && i < events.n; i++) {
        const struct plane_event *p = &VEC(events, struct plane_event)[i];
        struct derive_event e = {p->begin_ps, p->end_ps, p->at, p->name};
        uint64_t device, correlation, dur = (uint64_t)(p->end_ps - p->begin_ps);
        if (p->name < pl->nevmeta &&
            xp_span_starts(part_str(w->part, pl->evmeta[p->name].name), XP_SPAN_LIT("cu")))
            continue;
        int64_t group = derive_group(&eye, &e);
        if (group == DERIVE_NO_GROUP || !side_find(&eye.side, p->at) ||
            !derive_int(&eye.side, STAT_DEVICE_ID, &device) ||
            !derive_int(&eye.side, STAT_CORRELATION_ID, &correlation) || device >= n)
            continue;
        struct launch *x = launch_of(&devices[device], group);
        ok = x;
        if (!x)
            break;
        if (!x->count || p->begin_ps < x->begin_ps)
            x->begin_ps = p->begin_ps;
        if (!x->count || p->end_ps > x->end_ps)
            x->end_ps = p->end_ps;
        x->count++;
        x->sum_ps += dur;
        if (dur > x->max_ps)
            x->max_ps = dur;
    }
    vec_free(&events);
    return ok;
}

static int launch_order(const void *a, const void *b)
{
    const struct launch *x = a, *y = b;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    if (x->end_ps != y->end_ps)
        return x->end_ps > y->end_ps ? -1 : 1;
    return (x->met > y->met) - (x->met < y->met);
}

static bool launch_event(struct derive_work *w, uint32_t plane, const struct launch *l,
                         struct vec *events)
{
    uint32_t id = l->group >= 0 && (size_t)l->group < w->group_names.n
                      ? VEC(w->group_names, uint32_t)[l->group]
                      : 0;
    if (!id)
        return true;
    struct xp_buf b;
    xp_buf_init(&b, (size_t)1 << 20);
    xp_buf_str(&b, "Launch Stats for ");
    xp_buf_span(&b, xp_strpool_get(&w->d->strings, id));
    uint32_t name = b.failed ? NONE : derive_name_of(w, plane, xp_buf_all(&b));
    xp_buf_fini(&b);
    struct plane_event *e = vec_push(events, sizeof *e);
    if (e)
        *e = (struct plane_event){l->begin_ps, l->end_ps, 0, name, 0};
    return e && name != NONE;
}

static bool launch_line(struct derive_work *w, uint32_t plane, struct vec *launches)
{
    join_launches(launches);
    size_t n = launches->n;
    struct launch *l = launches->p;
    struct derive_launch *kept = xp_bump_alloc(&w->bump, (n + 1) * sizeof *kept, 16);
    struct derive_span *runs = xp_bump_alloc(&w->bump, (n + 1) * sizeof *runs, 16);
    struct vec events = {0};
    struct part_line *line = NULL;
    bool ok = kept && runs;
    qsort(l, n, sizeof *l, launch_order);
    for (size_t i = 0; ok && i < n; i++) {
        kept[i] = (struct derive_launch){l[i].group, l[i].count, l[i].max_ps, l[i].sum_ps};
        runs[i] = (struct derive_span){l[i].begin_ps, l[i].end_ps, (int32_t)l[i].group, -1};
        ok = launch_event(w, plane, &l[i], &events);
    }
    ok = ok && (!events.n || derive_build(w, events.p, events.n, &line) == XP_OK);
    vec_free(&events);
    if (!ok || !line)
        return ok;
    struct derive_line *d =
        derive_add_line(w, plane, DERIVE_LINE_LAUNCHES, XP_SPAN_LIT("Launch Stats"), line);
    if (!d)
        return false;
    d->group_by = DERIVE_GROUP_RUNS;
    d->spans = runs;
    d->nspans = (uint32_t)n;
    d->args = DERIVE_ARGS_LAUNCHES;
    d->launches = kept;
    d->nlaunches = (uint32_t)n;
    return true;
}

static bool launches(struct derive_work *w, const uint32_t *planes, uint32_t n)
{
    struct vec *devices = calloc(n + 1, sizeof *devices);
    bool ok = devices;
    uint32_t nlines = (uint32_t)w->lines.n;
    for (uint32_t i = 0; ok && i < nlines; i++) {
        const struct derive_line *l = &VEC(w->lines, struct derive_line)[i];
        if (w->d->planes[l->plane].host && l->side && !derive_id_is_ours(l->line->id))
            ok = host_launches(w, i, devices, n);
    }
    for (uint32_t i = 0; ok && i < n; i++)
        if (devices[i].n)
            ok = launch_line(w, planes[i], &devices[i]);
    for (uint32_t i = 0; devices && i < n; i++)
        vec_free(&devices[i]);
    free(devices);
    return ok;
}

/* --- all --- */

static int scope_order(const void *a, const void *b)
{
    const struct scope_parent *x = a, *y = b;
    return (x->child > y->child) - (x->child < y->child);
}

static enum xp_status read_scopes(struct gpu_work *g)
{
    struct derive_work *w = g->w;
    for (uint32_t p = 0; p < w->part->nplanes; p++) {
        struct xp_span body;
        if (!xp_span_eq(w->d->planes[p].name, XP_SPAN_LIT("/host:__ScopeRangeCallStack__")))
            continue;
        XP_TRY(part_plane_stats(w->part, &w->part->planes[p], w->scratch, &body, w->err));
        struct xspace_stats it = xspace_stats_open(body, 6);
        struct xspace_stat s;
        while (xspace_stats_next(&it, &s)) {
            struct scope_parent *x = vec_push(&g->scopes, sizeof *x);
            if (!x)
                return derive_busy(w);
            *x = (struct scope_parent){s.metadata_id, s.type == XSPACE_I64 ? (int64_t)s.num : 0};
        }
    }
    if (g->scopes.n)
        qsort(g->scopes.p, g->scopes.n, sizeof(struct scope_parent), scope_order);
    return XP_OK;
}

static bool plane_lines(struct gpu_work *g)
{
    derive_plane_lines(g->w, g->plane, &g->first_line, &g->end_line);
    g->eyes = calloc((size_t)(g->end_line - g->first_line) + 1, sizeof *g->eyes);
    if (!g->eyes)
        return false;
    for (uint32_t i = g->first_line; i < g->end_line; i++)
        derive_look(&g->eyes[i - g->first_line], g->w->d, line_at(g, i));
    bool ok = plane_groups(g) && plane_streams(g);
    free(g->eyes);
    return ok;
}

enum xp_status derive_gpu_lines(struct derive_work *w)
{
    struct gpu_work g = {.w = w};
    uint32_t *planes = xp_arena_alloc(w->scratch, (w->part->nplanes + 1) * sizeof *planes), n = 0;
    if (!planes)
        return derive_busy(w);
    for (uint32_t p = 0; p < w->part->nplanes; p++)
        if (w->d->planes[p].gpu)
            planes[n++] = p;
    if (!n)
        return XP_OK;
    enum xp_status st = hlo_map_new(w, &g.hlo);
    if (st == XP_OK)
        st = read_scopes(&g);
    for (uint32_t i = 0; st == XP_OK && i < n; i++) {
        g.plane = planes[i];
        if (!plane_lines(&g))
            st = derive_busy(w);
    }
    if (st == XP_OK && !launches(w, planes, n))
        st = derive_busy(w);
    hlo_map_free(g.hlo);
    vec_free(&g.scopes);
    return st;
}
