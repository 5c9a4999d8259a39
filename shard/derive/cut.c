#include "shard/derive/cut.h"

#include <stdlib.h>

#include "shard/derive/vec.h"

#define CUT_BATCH 128

struct cutter {
    const struct part *whole;
    struct part_range *range;
    struct xp_arena *a;
    struct xp_bump bump;
    struct line_builder *builder;
    struct lane_raw batch[CUT_BATCH]; /* on the way to it */
    size_t nbatch;
    struct side_pen *pen;
    struct vec carried;       /* uint64_t */
    struct vec first;         /* struct lane_raw: what begins at t0, or before */
    struct vec ats;           /* uint64_t: events of the line */
    struct xp_arena *scratch; /* of some lines: a file may have a million of them */
    uint32_t seeks;           /* in it */
};

#define SEEKS_MAX 4096

static int by_number(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

static int longer_first(const void *x, const void *y)
{
    const struct lane_raw *a = x, *b = y;
    if (a->end_ps != b->end_ps)
        return a->end_ps > b->end_ps ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static bool push(struct vec *v, uint64_t x)
{
    uint64_t *p = vec_push(v, sizeof *p);
    if (p)
        *p = x;
    return p;
}

/* Most events of a line come in the file's order, too. */
static void sort_numbers(struct vec *v)
{
    const uint64_t *p = v->p;
    size_t i = 1;
    while (i < v->n && p[i - 1] <= p[i])
        i++;
    if (i < v->n)
        qsort(v->p, v->n, sizeof *p, by_number);
}

/* --- a line --- */

static enum xp_status flush_batch(struct cutter *c)
{
    size_t n = c->nbatch;
    c->nbatch = 0;
    return n ? line_builder_add_many(c->builder, c->batch, n) : XP_OK;
}

static enum xp_status build(struct cutter *c, const struct lane_raw *ev)
{
    if (c->nbatch == CUT_BATCH)
        XP_TRY(flush_batch(c));
    c->batch[c->nbatch++] = *ev;
    return XP_OK;
}

struct line_cut {
    const struct part_line *line;
    int64_t t0, t1; /* line time */
    bool whole;     /* only what is wholly inside */
};

static bool is_steps(struct xp_span name)
{
    return xp_span_eq(name, XP_SPAN_LIT("Steps")) ||
           xp_span_eq(name, XP_SPAN_LIT("Sparse Core Steps"));
}

/* The event as it is in the range; false: it is not. */
static bool cut_event(const struct line_cut *l, const struct lane_event *e, struct lane_raw *out)
{
    bool empty = e->begin_ps == e->end_ps;
    *out = (struct lane_raw){e->begin_ps, e->end_ps, e->at, e->name};
    if (e->begin_ps < l->t0 && (empty || e->end_ps <= l->t0))
        return false;
    if (l->whole && (e->begin_ps < l->t0 || e->end_ps > l->t1))
        return false;
    if (out->begin_ps < l->t0)
        out->begin_ps = l->t0;
    if (out->end_ps > l->t1)
        out->end_ps = l->t1;
    return true;
}

/* Those at the very begin come first, and the longer ones of them, as they are cut. */
static enum xp_status flush_first(struct cutter *c)
{
    const struct lane_raw *v = VEC(c->first, struct lane_raw);
    if (c->first.n)
        qsort(c->first.p, c->first.n, sizeof *v, longer_first);
    for (size_t i = 0; i < c->first.n; i++)
        XP_TRY(build(c, &v[i]));
    c->first.n = 0;
    return XP_OK;
}

static enum xp_status add_event(struct cutter *c, const struct line_cut *l,
                                const struct lane_event *e, const struct lane_raw *ev)
{
    if (e->begin_ps < l->t0 && !push(&c->carried, e->at))
        return XP_BUSY;
    if (l->line->side && !push(&c->ats, e->at))
        return XP_BUSY;
    if (e->begin_ps > l->t0) {
        XP_TRY(flush_first(c));
        return build(c, ev);
    }
    struct lane_raw *to = vec_push(&c->first, sizeof *to);
    if (to)
        *to = *ev;
    return to ? XP_OK : XP_BUSY;
}

static enum xp_status cut_events(struct cutter *c, const struct line_cut *l)
{
    struct line_cursor it;
    struct lane_event e;
    struct lane_raw ev;
    if (++c->seeks > SEEKS_MAX) {
        xp_arena_free(c->scratch);
        c->scratch = xp_arena_new(NULL);
        c->seeks = 0;
    }
    if (!c->scratch)
        return XP_BUSY;
    XP_TRY(line_seek(&it, l->line, l->t0, c->scratch));
    while (line_next(&it, &e, NULL) && e.begin_ps < l->t1)
        if (cut_event(l, &e, &ev))
            XP_TRY(add_event(c, l, &e, &ev));
    return flush_first(c);
}

/* The statistics of the events that are there. */
static enum xp_status cut_side(struct cutter *c, const struct side *whole, const struct side **out)
{
    *out = NULL;
    if (!whole)
        return XP_OK;
    sort_numbers(&c->ats);
    return side_pick(whole, c->ats.p, c->ats.n, &c->pen, c->a, &c->bump, out) ? XP_OK : XP_BUSY;
}

/* Times of lines may lie anywhere: beyond what a line can hold nothing begins. */
static int64_t line_time(int64_t ps, int64_t base_ps)
{
    int64_t t;
    if (__builtin_sub_overflow(ps, base_ps, &t))
        return ps < 0 ? -LANE_TIME_MAX : LANE_TIME_MAX;
    return t < -LANE_TIME_MAX ? -LANE_TIME_MAX : t > LANE_TIME_MAX ? LANE_TIME_MAX : t;
}

static enum xp_status cut_line(struct cutter *c, const struct part_line *from, struct xp_span name,
                               struct part_line *to)
{
    int64_t t0 = c->range->t0_ps, t1 = c->range->t1_ps;
    struct line_cut l = {from, line_time(t0, from->base_ps), line_time(t1, from->base_ps),
                         is_steps(name)};
    *to = *from;
    to->lanes = NULL;
    to->nlanes = 0;
    to->nevents = to->odd = to->overflow = 0;
    to->device = NULL;
    to->side = NULL;
    to->memory = NULL;
    to->begin_ps = to->end_ps = 0;
    if (!from->nevents || from->begin_ps >= t1 || from->end_ps < t0)
        return XP_OK;
    c->ats.n = 0;
    c->nbatch = 0;
    XP_TRY(cut_events(c, &l));
    XP_TRY(flush_batch(c));
    XP_TRY(line_builder_end(c->builder, to));
    /* What is open at t0 is there longer first: only a lane for each keeps that in file order. */
    to->sorted = from->sorted && !to->overflow;
    XP_TRY(cut_side(c, from->side, &to->side));
    if (!memory_log_cut(from->memory, l.t0, l.t1, &c->bump, &to->memory))
        return XP_BUSY;
    to->begin_ps = from->begin_ps > t0 ? from->begin_ps : t0;
    to->end_ps = from->end_ps < t1 ? from->end_ps : t1;
    return XP_OK;
}

/* --- all lines --- */

static enum xp_status cut_lines(struct cutter *c, const struct derive *d, struct part_line *lines,
                                struct derive_line *shown)
{
    const struct part *whole = c->whole;
    bool *done = xp_arena_zalloc(c->a, (size_t)whole->nlines + 1);
    if (!done)
        return XP_BUSY;
    for (uint32_t i = 0; i < d->nlines; i++) {
        const struct derive_line *from = &d->lines[i];
        bool own = from->line >= whole->lines && from->line < whole->lines + whole->nlines;
        size_t k = own ? (size_t)(from->line - whole->lines) : 0;
        struct part_line *to = own ? &lines[k] : xp_bump_alloc(&c->bump, sizeof *to, 16);
        shown[i] = *from;
        if (!to)
            return XP_BUSY;
        if (!own || !done[k])
            XP_TRY(cut_line(c, from->line,
                            from->line->derived ? from->name : part_line_name(whole, from->line),
                            to));
        if (own)
            done[k] = true;
        shown[i].line = to;
        if (from->side == from->line->side)
            shown[i].side = to->side;
        shown[i].launches = NULL;
        shown[i].nlaunches = 0;
    }
    for (uint32_t i = 0; i < whole->nlines; i++)
        if (!done[i])
            XP_TRY(
                cut_line(c, &whole->lines[i], part_line_name(whole, &whole->lines[i]), &lines[i]));
    return XP_OK;
}

static enum xp_status keep_carried(struct cutter *c)
{
    uint64_t *v = xp_arena_alloc(c->a, (c->carried.n + 1) * sizeof *v);
    if (!v)
        return XP_BUSY;
    if (c->carried.n) {
        memcpy(v, c->carried.p, c->carried.n * sizeof *v);
        qsort(v, c->carried.n, sizeof *v, by_number);
    }
    c->range->carried = v;
    c->range->ncarried = c->carried.n;
    return XP_OK;
}

/* What is not of lines is the whole one's. No lock and no counter is copied: others use these. */
static struct part *part_of(const struct part *w, struct xp_arena *a)
{
    struct part *p = xp_arena_zalloc(a, sizeof *p);
    if (!p)
        return NULL;
    p->arena = a;
    p->reader = w->reader;
    p->strings = w->strings;
    p->planes = w->planes;
    p->nplanes = w->nplanes;
    p->nlines = w->nlines;
    p->hostnames = w->hostnames;
    p->nhostnames = w->nhostnames;
    p->errors = w->errors;
    p->nerrors = w->nerrors;
    p->warnings = w->warnings;
    p->nwarnings = w->nwarnings;
    p->origin_ns = w->origin_ns;
    p->start_wall_ns = w->start_wall_ns;
    p->size = w->size;
    p->damage = w->damage;
    p->partial = w->partial;
    p->cut = w->cut;
    p->utf8_bad = w->utf8_bad;
    p->utf8_bad_at = w->utf8_bad_at;
    p->lines = xp_arena_zalloc(a, ((size_t)w->nlines + 1) * sizeof *p->lines);
    pthread_mutex_init(&p->strings_lock, NULL);
    pthread_mutex_init(&p->device_lock, NULL);
    atomic_init(&p->state, PART_READY);
    return p->lines ? p : NULL;
}

static enum xp_status make(struct cutter *c, const struct derive *d, struct part *p)
{
    struct derive_line *shown = xp_arena_alloc(c->a, ((size_t)d->nlines + 1) * sizeof *shown);
    struct derive mine = *d;
    xp_bump_init(&c->bump, c->a);
    c->builder = line_builder_on(c->a, &c->bump);
    if (!shown || !c->builder)
        return XP_BUSY;
    XP_TRY(cut_lines(c, d, p->lines, shown));
    XP_TRY(keep_carried(c));
    mine.part = p;
    mine.lines = shown;
    return derive_borrow(p, &mine) ? XP_OK : XP_BUSY;
}

enum xp_status cut_open(struct part *whole, int64_t t0_ps, int64_t t1_ps, struct xp_arena *a,
                        struct part **out, struct xp_error *err)
{
    const struct derive *d;
    XP_TRY(derive_groups_get(whole, &d, err));
    struct part_range *range = xp_arena_zalloc(a, sizeof *range);
    struct part *p = range ? part_of(whole, a) : NULL;
    struct cutter c = {.whole = whole, .range = range, .a = a, .scratch = xp_arena_new(NULL)};
    *out = NULL;
    enum xp_status st = p && c.scratch ? XP_OK : XP_BUSY;
    if (st == XP_OK) {
        *range = (struct part_range){.whole = whole, .t0_ps = t0_ps, .t1_ps = t1_ps};
        p->range = range;
        st = make(&c, d, p);
    }
    vec_free(&c.carried);
    vec_free(&c.first);
    vec_free(&c.ats);
    xp_arena_free(c.scratch);
    if (st != XP_OK)
        return xp_fail(err, st, 0, "no memory left for the range");
    *out = p;
    return XP_OK;
}

void cut_close(struct part *cut)
{
    if (cut && cut->derived)
        cut->derived_free(cut->derived);
    if (cut)
        cut->derived = NULL;
}

bool cut_extent(const struct part *p, int64_t *begin_ps, int64_t *end_ps)
{
    bool any = false;
    for (uint32_t i = 0; i < p->nlines; i++) {
        const struct part_line *l = &p->lines[i];
        if (!l->nevents)
            continue;
        *begin_ps = any && *begin_ps < l->begin_ps ? *begin_ps : l->begin_ps;
        *end_ps = any && *end_ps > l->end_ps ? *end_ps : l->end_ps;
        any = true;
    }
    return any;
}
