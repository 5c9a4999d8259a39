#include <stdio.h>

#include "shard/derive/derive_int.h"
#include "shard/derive/framework_op.h"
#include "shard/derive/meta_reader.h"

/* A TensorCore's derived lines: what its ops say about the framework they come from. What an op
 * says is the same for all its events, so that it is taken apart once. */

#define NONE UINT32_MAX
#define SCOPES_MAX 1024
/* Stats of an event that stand above those of its metadata. */
#define OWN_STATS                                                                                  \
    (UINT64_C(1) << STAT_TF_OP | UINT64_C(1) << STAT_SOURCE | UINT64_C(1) << STAT_IS_ASYNC)
#define EXACT_ORDER_MAX 1000000 /* events of a plane whose order costs memory for each */

enum { OFFLOAD_NO, OFFLOAD_START, OFFLOAD_DONE, OFFLOAD_OTHER };

struct op_info {
    uint32_t op, source;      /* names; NONE: none */
    uint32_t scopes, nscopes; /* in the work's */
    uint32_t offload_name;    /* index in offloads */
    uint8_t offload;
    bool async;
    bool dull; /* nothing is derived from its events but for stats of their own */
};

struct offload_start {
    int64_t begin_ps;
    uint64_t at;
    uint32_t meta;
};

/* Starts of one instruction that wait for their end, first in first out. */
struct offload {
    uint32_t display; /* in the strings */
    struct vec starts;
    size_t taken;
};

struct offload_line {
    struct vec events; /* struct plane_event */
    int64_t frontier;
};

struct tpu_work {
    struct derive_work *w;
    struct derive_plane *dp;
    const struct part_plane *pl;
    uint32_t plane;
    struct op_info *ops; /* one an event metadata */
    bool *unused;        /* likewise; no part of ops, where writing it would hold up reading them */
    struct vec offloads; /* struct offload */
    struct vec by_display; /* uint32_t: index in offloads by name, or NONE */
    struct offload_line rows[DERIVE_LINE_OFFLOADS_MAX];
    uint32_t nrows;
    struct line_maker *scope_line, *op_line, *source_line;
    uint32_t first_line, end_line; /* the plane's own, in the work's */
    struct derive_eye *eyes;       /* one for each of them; for groups and stats */
    struct derive_span step;       /* the one that the last event was in */
    int64_t step_after;            /* end of the one before */
    bool any;                      /* something is derived */
};

/* --- what an op says --- */

static bool op_is_dull(const struct op_info *o)
{
    return o->async || (o->op == NONE && o->source == NONE && !o->offload);
}

/* Ops of the same scopes have one list of them. */
static bool share_path(struct tpu_work *t, struct op_info *o)
{
    if (!o->nscopes)
        return true;
    const uint32_t *names = VEC(t->w->scopes, uint32_t) + o->scopes;
    uint32_t id = xp_strpool_add(&t->w->paths, xp_span_of((const uint8_t *)names, 4 * o->nscopes));
    if (id == XP_STRPOOL_FULL)
        return false;
    while (t->w->path_at.n <= id) {
        uint32_t *at = vec_push(&t->w->path_at, sizeof *at);
        if (!at)
            return false;
        *at = o->scopes;
    }
    uint32_t at = VEC(t->w->path_at, uint32_t)[id];
    if (at != o->scopes) {
        t->w->scopes.n = o->scopes;
        o->scopes = at;
    }
    return true;
}

static bool op_info_parse(struct tpu_work *t, struct xp_span full, struct op_info *o)
{
    struct framework_op op = framework_op_parse(full);
    o->scopes = (uint32_t)t->w->scopes.n;
    o->nscopes = 0;
    struct xp_span rest = op.name, scope;
    bool scoped = op.framework == FRAMEWORK_TF || op.framework == FRAMEWORK_JAX;
    while (scoped && o->nscopes < SCOPES_MAX && framework_scope_next(&rest, &scope)) {
        uint32_t *s = vec_push(&t->w->scopes, sizeof *s);
        if (!s || (*s = derive_name_of(t->w, t->plane, scope)) == NONE)
            return false;
        o->nscopes++;
    }
    if (!share_path(t, o))
        return false;
    o->op = derive_name_of(t->w, t->plane, full);
    if (o->op == NONE)
        return false;
    bool iterator;
    struct xp_span label = framework_op_label(&op, &iterator);
    if (!iterator)
        return derive_name_display(t->w, o->op, label);
    struct xp_buf b;
    xp_buf_init(&b, (size_t)1 << 20);
    xp_buf_str(&b, "Iterator::");
    xp_buf_span(&b, label);
    bool ok = !b.failed && derive_name_display(t->w, o->op, xp_buf_all(&b));
    xp_buf_fini(&b);
    return ok;
}

static bool contains(struct xp_span s, const char *word)
{
    return s.n && memmem(s.p, s.n, word, strlen(word));
}

static struct xp_span before(struct xp_span s, const char *word)
{
    const uint8_t *p = s.n ? memmem(s.p, s.n, word, strlen(word)) : NULL;
    return p ? xp_span_of(s.p, (size_t)(p - s.p)) : s;
}

/* "copy-start.3" and "copy-done.3" are "offload-copy.3". */
static uint32_t offload_of(struct tpu_work *t, struct xp_span display)
{
    size_t dot = display.n;
    while (dot && display.p[dot - 1] != '.')
        dot--;
    struct xp_span stem = before(display, contains(display, "-start") ? "-start" : "-done");
    struct xp_buf b;
    xp_buf_init(&b, (size_t)1 << 20);
    xp_buf_str(&b, "offload-");
    xp_buf_span(&b, stem);
    xp_buf_byte(&b, '.');
    if (dot)
        xp_buf_add(&b, display.p + dot, display.n - dot);
    else
        xp_buf_byte(&b, '0');
    uint32_t id = b.failed ? XP_STRPOOL_FULL : xp_strpool_add(&t->w->d->strings, xp_buf_all(&b));
    xp_buf_fini(&b);
    if (id == XP_STRPOOL_FULL)
        return NONE;
    while (t->by_display.n <= id) {
        uint32_t *none = vec_push(&t->by_display, sizeof *none);
        if (!none)
            return NONE;
        *none = NONE;
    }
    uint32_t *known = &VEC(t->by_display, uint32_t)[id];
    if (*known != NONE)
        return *known;
    struct offload *o = vec_push(&t->offloads, sizeof *o);
    if (!o)
        return NONE;
    *o = (struct offload){.display = id};
    return *known = (uint32_t)t->offloads.n - 1;
}

static bool offload_parse(struct tpu_work *t, const struct part_evmeta *m, struct op_info *o)
{
    static const char *const words[] = {"copy-start",
                                        "copy-done",
                                        "dynamic-slice-start",
                                        "dynamic-slice-done",
                                        "dynamic-update-slice-start",
                                        "dynamic-update-slice-done"};
    struct xp_span display = part_str(t->w->part, m->display_name);
    if (!contains(part_str(t->w->part, m->name), "S(5)"))
        return true;
    bool hit = false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hit = hit || contains(display, words[i]);
    if (!hit)
        return true;
    o->offload = contains(display, "-start") ? OFFLOAD_START : OFFLOAD_DONE;
    o->offload_name = offload_of(t, display);
    t->any = true;
    return o->offload_name != NONE;
}

static uint8_t kind_of(const struct part_plane *pl, int64_t id)
{
    const struct part_statmeta *m = part_statmeta(pl, id);
    return m ? m->kind : STAT_NOT_KEPT;
}

static bool meta_parse(struct tpu_work *t, struct xp_span body, struct op_info *o)
{
    struct xspace_stats it = xspace_stats_open(body, 5);
    struct xspace_stat s;
    struct xp_span op = {0}, source = {0};
    while (xspace_stats_next(&it, &s)) {
        uint8_t kind = kind_of(t->pl, s.metadata_id);
        if (kind == STAT_TF_OP)
            op = meta_stat_text(t->w->part, t->pl, &s);
        else if (kind == STAT_SOURCE)
            source = meta_stat_text(t->w->part, t->pl, &s);
        else if (kind == STAT_IS_ASYNC)
            o->async = s.num;
    }
    if (op.n && !op_info_parse(t, op, o))
        return false;
    if (source.n && (o->source = derive_name_of(t->w, t->plane, source)) == NONE)
        return false;
    t->any |= op.n || source.n;
    return true;
}

static enum xp_status ops_read(struct tpu_work *t)
{
    struct meta_reader r;
    enum xp_status st = XP_OK;
    meta_reader_init(&r, t->w->part);
    bool stats = t->dp->kinds & OWN_STATS;
    for (uint32_t i = 0; st == XP_OK && i < t->pl->nevmeta; i++) {
        struct op_info *o = &t->ops[i];
        struct xp_span body;
        *o = (struct op_info){.op = NONE, .source = NONE};
        bool ok = offload_parse(t, &t->pl->evmeta[i], o);
        if (ok && stats) {
            st = meta_reader_get(&r, &t->pl->evmeta[i], &body, t->w->err);
            ok = st != XP_OK || meta_parse(t, body, o);
        }
        if (!ok)
            st = derive_busy(t->w);
        o->dull = op_is_dull(o);
    }
    meta_reader_fini(&r);
    return st;
}

/* --- offloads --- */

/* The row whose last event ended earliest, if it had ended; else a new one. */
static struct offload_line *offload_row(struct tpu_work *t, int64_t begin_ps, int64_t end_ps)
{
    struct offload_line *row = NULL;
    int64_t least = begin_ps;
    for (uint32_t i = 0; i < t->nrows; i++)
        if (t->rows[i].frontier <= least) {
            row = &t->rows[i];
            least = row->frontier;
        }
    if (!row && t->nrows < DERIVE_LINE_OFFLOADS_MAX)
        (row = &t->rows[t->nrows++])->frontier = end_ps;
    if (!row)
        row = &t->rows[t->nrows - 1];
    if (end_ps > row->frontier)
        row->frontier = end_ps;
    return row;
}

static bool offload_name(struct tpu_work *t, uint32_t display, uint32_t start, uint32_t done,
                         uint32_t *name)
{
    struct vec *names = &t->w->names;
    for (size_t i = names->n; i-- > 0 && names->n - i < 64;) {
        const struct derive_name *n = &VEC(*names, struct derive_name)[i];
        if (n->display == display && n->start == start + 1 && n->evmeta == done + 1) {
            *name = (uint32_t)i;
            return true;
        }
    }
    struct derive_name *n = vec_push(names, sizeof *n);
    if (!n)
        return false;
    *n = (struct derive_name){.display = display, .evmeta = done + 1, .start = start + 1};
    *name = (uint32_t)names->n - 1;
    return true;
}

static bool offload_event(struct tpu_work *t, const struct plane_event *ev, const struct op_info *o)
{
    struct offload *f = &VEC(t->offloads, struct offload)[o->offload_name];
    if (o->offload == OFFLOAD_START) {
        struct offload_start *s = vec_push(&f->starts, sizeof *s);
        if (s)
            *s = (struct offload_start){ev->begin_ps, ev->at, ev->name};
        return s;
    }
    if (f->taken == f->starts.n)
        return true;
    const struct offload_start *s = &VEC(f->starts, struct offload_start)[f->taken++];
    int64_t end = ev->end_ps > s->begin_ps ? ev->end_ps : s->begin_ps;
    struct offload_line *row = offload_row(t, s->begin_ps, end);
    struct plane_event *e = vec_push(&row->events, sizeof *e);
    uint32_t name;
    if (!e || !offload_name(t, f->display, s->meta, ev->name, &name))
        return false;
    *e = (struct plane_event){s->begin_ps, end, s->at, name, 0};
    return true;
}

static int longer_first(const void *a, const void *b)
{
    const struct plane_event *x = a, *y = b;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    return (x->end_ps < y->end_ps) - (x->end_ps > y->end_ps);
}

static enum xp_status offload_lines(struct tpu_work *t)
{
    for (uint32_t i = 0; i < t->nrows; i++) {
        struct vec *events = &t->rows[i].events;
        struct part_line *line;
        char name[48];
        qsort(events->p, events->n, sizeof(struct plane_event), longer_first);
        XP_TRY(derive_build(t->w, events->p, events->n, &line));
        snprintf(name, sizeof name, "Host Offload Ops row %u", i);
        struct derive_line *l =
            derive_add_line(t->w, t->plane, DERIVE_LINE_OFFLOADS + i, xp_span_str(name), line);
        if (!l)
            return derive_busy(t->w);
        l->args = DERIVE_ARGS_OFFLOADS;
    }
    return XP_OK;
}

/* --- walking --- */

/* Stats of the event itself that stand above those of its metadata. False: out of memory. */
static bool event_stats(struct tpu_work *t, struct derive_eye *eye, const struct plane_event *ev,
                        struct op_info *o)
{
    const struct side_stat *s;
    if (!eye->side.side || !side_find(&eye->side, ev->at))
        return true;
    if ((s = side_get(&eye->side, STAT_IS_ASYNC)))
        o->async = s->num;
    if ((s = side_get(&eye->side, STAT_TF_OP)) && s->type == SIDE_STR) {
        struct xp_span op = part_str(t->w->part, (uint32_t)s->num);
        o->op = NONE;
        if (op.n && !op_info_parse(t, op, o))
            return false;
    }
    if ((s = side_get(&eye->side, STAT_SOURCE)) && s->type == SIDE_STR) {
        struct xp_span source = part_str(t->w->part, (uint32_t)s->num);
        o->source = NONE;
        if (source.n && (o->source = derive_name_of(t->w, t->plane, source)) == NONE)
            return false;
    }
    return true;
}

static bool take_event(struct tpu_work *t, const struct plane_event *ev, const struct op_info *o,
                       const struct maker_op *op)
{
    bool ok = true;
    if (o->op != NONE) {
        if (o->nscopes)
            ok = line_maker_add_all(t->scope_line, VEC(t->w->scopes, uint32_t) + o->scopes,
                                    o->nscopes, o->scopes + 1, op);
        ok = ok && line_maker_add_all(t->op_line, &o->op, 1, o->op + 1, op);
    }
    if (ok && o->source != NONE)
        ok = line_maker_add_all(t->source_line, &o->source, 1, o->source + 1, op);
    if (ok && o->offload)
        ok = offload_event(t, ev, o);
    return ok;
}

/* Nothing is derived from a line whose events all say that they are asynchronous. */
static bool all_async(const struct derive_line *l)
{
    return side_count(l->side, STAT_IS_ASYNC) == l->line->nevents &&
           !(side_zeros(l->side) >> STAT_IS_ASYNC & 1);
}

/* Of a line that is not walked. */
static void note_names(struct tpu_work *t, const struct part_line *line)
{
    uint32_t names[LANE_BLOCK];
    for (uint32_t k = 0; k < line->nlanes; k++)
        for (uint64_t b = 0, n; (n = lane_names(line->lanes[k], b, names)); b++)
            for (uint64_t i = 0; i < n; i++)
                t->unused[names[i]] = false;
}

/* Which lines to walk: t->eyes look at them. XProf's order depends on all there are. */
static void choose_lines(struct tpu_work *t, bool like_xprof)
{
    for (uint32_t i = t->first_line; i < t->end_line; i++) {
        const struct derive_line *l = &VEC(t->w->lines, struct derive_line)[i];
        if (!l->line->nevents)
            continue;
        if (!like_xprof && all_async(l))
            note_names(t, l->line);
        else
            derive_look(&t->eyes[i - t->first_line], t->w->d, l);
    }
}

static bool take_line(const struct derive_line *l, const void *ctx)
{
    const struct tpu_work *t = ctx;
    return t->eyes[l - VEC(t->w->lines, struct derive_line) - t->first_line].line;
}

/* Events that are not of one step that was found before are looked up. */
static inline int64_t group_of(struct tpu_work *t, struct derive_eye *eye,
                               const struct plane_event *ev)
{
    if (ev->begin_ps > t->step_after && ev->begin_ps <= t->step.end_ps &&
        ev->end_ps >= t->step.begin_ps && t->step.group >= 0 &&
        eye->line->group_by == DERIVE_GROUP_STEPS)
        return t->step.group;
    struct derive_event e = {ev->begin_ps, ev->end_ps, ev->at, ev->name};
    int64_t group = derive_group(eye, &e);
    if (eye->line->group_by == DERIVE_GROUP_STEPS && eye->span < t->dp->nsteps) {
        t->step = t->dp->steps[eye->span];
        t->step_after = eye->span ? t->dp->steps[eye->span - 1].end_ps : INT64_MIN;
    }
    return group;
}

static bool take_run(struct tpu_work *t, const struct plane_run *run)
{
    struct derive_eye *eye = &t->eyes[run->line - t->first_line];
    bool own = side_kinds(eye->side.side) & OWN_STATS, ok = true;
    for (uint32_t i = 0; ok && i < run->n; i++) {
        const struct lane_event *e = &run->ev[i];
        struct op_info *o = &t->ops[e->name], mine;
        t->unused[e->name] = false;
        if (!own && o->dull)
            continue;
        struct plane_event ev = {run->base_ps + e->begin_ps, run->base_ps + e->end_ps, e->at,
                                 e->name, run->line};
        if (own) {
            mine = *o;
            o = &mine;
            ok = event_stats(t, eye, &ev, o);
            if (!ok || op_is_dull(o))
                continue;
        }
        struct maker_op op = {ev.begin_ps, ev.end_ps, group_of(t, eye, &ev),
                              LANE_REF(run->lane, e->ord)};
        ok = take_event(t, &ev, o, &op);
    }
    return ok;
}

static bool view_all(struct tpu_work *t, const struct plane_walk *walk)
{
    const struct lane_source *sources = plane_walk_sources(walk, &t->w->bump);
    line_maker_view(t->scope_line, sources);
    line_maker_view(t->op_line, sources);
    line_maker_view(t->source_line, sources);
    return sources;
}

static bool walk_plane(struct tpu_work *t)
{
    struct derive_work *w = t->w;
    derive_plane_lines(w, t->plane, &t->first_line, &t->end_line);
    uint32_t nlines = t->end_line - t->first_line;
    t->eyes = calloc((size_t)nlines + 1, sizeof *t->eyes);
    if (!t->eyes)
        return false;
    bool like_xprof = t->offloads.n && t->pl->nevents <= EXACT_ORDER_MAX;
    choose_lines(t, like_xprof);
    struct plane_walk *walk =
        plane_walk_new(VEC(w->lines, struct derive_line), t->first_line, nlines, take_line, t);
    bool ok = walk && view_all(t, walk);
    if (ok && like_xprof)
        ok = plane_walk_like_xprof(walk);
    struct plane_run run;
    while (ok && plane_walk_run(walk, &run))
        ok = take_run(t, &run);
    ok = ok && !plane_walk_failed(walk);
    plane_walk_free(walk);
    free(t->eyes);
    return ok;
}

static enum xp_status add_made(struct tpu_work *t, struct line_maker **m, int64_t id,
                               const char *name, enum xp_status before_st)
{
    struct maker_output out;
    enum xp_status st = line_maker_end(*m, &out);
    *m = NULL;
    if (before_st != XP_OK)
        return before_st;
    if (st != XP_OK)
        return derive_busy(t->w);
    if (!out.line)
        return XP_OK;
    struct derive_line *l = derive_add_line(t->w, t->plane, id, xp_span_str(name), out.line);
    if (!l)
        return derive_busy(t->w);
    l->group_by = t->dp->nsteps ? DERIVE_GROUP_STEPS : DERIVE_GROUP_NONE;
    return XP_OK;
}

static enum xp_status make_lines(struct tpu_work *t)
{
    t->scope_line = line_maker_new(t->w, false);
    t->op_line = line_maker_new(t->w, false);
    t->source_line = line_maker_new(t->w, false);
    enum xp_status st = XP_OK;
    if (!t->scope_line || !t->op_line || !t->source_line) {
        line_maker_free(t->scope_line);
        line_maker_free(t->op_line);
        line_maker_free(t->source_line);
        return derive_busy(t->w);
    }
    line_maker_depends(t->scope_line, t->op_line);
    t->unused = xp_bump_alloc(&t->w->bump, t->pl->nevmeta, 1);
    if (t->unused)
        memset(t->unused, true, t->pl->nevmeta);
    if (!t->unused || !walk_plane(t))
        st = derive_busy(t->w);
    /* The end of the scopes ends the ops too, before theirs is written out. */
    line_maker_reset(t->scope_line, 0);
    st = add_made(t, &t->scope_line, DERIVE_LINE_SCOPES, "Framework Name Scope", st);
    st = add_made(t, &t->op_line, DERIVE_LINE_OPS, "Framework Ops", st);
    st = add_made(t, &t->source_line, DERIVE_LINE_SOURCE, "Source code", st);
    t->dp->unused = t->unused;
    return st == XP_OK ? offload_lines(t) : st;
}

enum xp_status derive_tpu_lines(struct derive_work *w, uint32_t plane)
{
    struct tpu_work t = {
        .w = w, .dp = &w->d->planes[plane], .pl = &w->part->planes[plane], .plane = plane};
    if (!t.pl->nevmeta)
        return XP_OK;
    t.ops = malloc(t.pl->nevmeta * sizeof *t.ops);
    enum xp_status st = t.ops ? ops_read(&t) : derive_busy(w);
    uint64_t own = UINT64_C(1) << STAT_TF_OP | UINT64_C(1) << STAT_SOURCE;
    if (st == XP_OK && (t.any || t.dp->kinds & own))
        st = make_lines(&t);
    free(t.ops);
    for (size_t i = 0; i < t.offloads.n; i++)
        vec_free(&VEC(t.offloads, struct offload)[i].starts);
    vec_free(&t.offloads);
    vec_free(&t.by_display);
    for (uint32_t i = 0; i < t.nrows; i++)
        vec_free(&t.rows[i].events);
    return st;
}
