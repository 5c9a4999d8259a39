#include "shard/derive/derive_int.h"

/* A line of events that are merged while the same name goes on, on several nested levels. The
 * ends of open events grow, so that events wait until the outermost one above them is closed.
 *
 * Most events only lengthen all open levels. How far is kept once for all of them, as the tail, and
 * put onto those that are closed. */

#define LEVELS_MAX 4096
#define DEPENDENTS_MAX 2
#define BATCH 64

struct made_level {
    bool open;
    uint32_t name;
    size_t ev; /* in pending */
    int64_t scope;
};

struct line_maker {
    struct derive_work *w;
    bool gpu, failed;
    struct vec levels;  /* struct made_level */
    struct vec pending; /* struct lane_view, in order of begin */
    struct line_builder *builder;
    struct line_maker *dependents[DEPENDENTS_MAX];
    uint32_t ndependents;
    struct vec runs; /* struct derive_span */
    uint64_t nevents;
    const struct lane_source *sources; /* NULL: events are kept with their times */
    int64_t tail_ps;
    uint64_t tail_ref;
    size_t nopen;  /* levels that the tail is about: [0, nopen), all open, of one group */
    uint32_t path; /* that they were opened with */
    int64_t group;
};

struct line_maker *line_maker_new(struct derive_work *w, bool gpu)
{
    struct line_maker *m = calloc(1, sizeof *m);
    if (m) {
        m->w = w;
        m->gpu = gpu;
    }
    return m;
}

void line_maker_view(struct line_maker *m, const struct lane_source *sources)
{
    m->sources = sources;
}

void line_maker_depends(struct line_maker *m, struct line_maker *dependent)
{
    XP_ASSERT(m->ndependents < DEPENDENTS_MAX);
    m->dependents[m->ndependents++] = dependent;
}

static bool sooner(const struct lane_view *a, const struct lane_view *b)
{
    if (a->ev.begin_ps != b->ev.begin_ps)
        return a->ev.begin_ps < b->ev.begin_ps;
    return a->ev.end_ps > b->ev.end_ps;
}

static void add_run(struct line_maker *m, const struct lane_view *e)
{
    int32_t group = e->group == DERIVE_NO_GROUP ? -1 : (int32_t)e->group;
    if (m->runs.n && VEC(m->runs, struct derive_span)[m->runs.n - 1].group == group)
        return;
    struct derive_span *r = vec_push(&m->runs, sizeof *r);
    if (!r)
        m->failed = true;
    else
        *r = (struct derive_span){e->ev.begin_ps, e->ev.end_ps, group, -1};
}

static int sooner_cmp(const void *a, const void *b)
{
    const struct lane_view *x = a, *y = b;
    return sooner(x, y) ? -1 : sooner(y, x);
}

/* They are in order but for some of equal begin. Returns their latest end. */
static int64_t sort_made(struct lane_view *ev, size_t n)
{
    size_t i = 1, moves = 0;
    int64_t end_ps = ev[0].ev.end_ps;
    for (size_t k = 1; k < n; k++)
        end_ps = ev[k].ev.end_ps > end_ps ? ev[k].ev.end_ps : end_ps;
    for (; i < n && moves < 4 * n; i++) {
        if (__builtin_expect(!sooner(&ev[i], &ev[i - 1]), 1))
            continue;
        struct lane_view e = ev[i];
        size_t k = i;
        for (; k > 0 && sooner(&e, &ev[k - 1]); k--, moves++)
            ev[k] = ev[k - 1];
        ev[k] = e;
    }
    if (i < n)
        qsort(ev, n, sizeof *ev, sooner_cmp);
    return end_ps;
}

/* Times within the bounds of lanes. */
static inline int64_t clamp(int64_t t)
{
    return t > LANE_TIME_MAX ? LANE_TIME_MAX : t < -LANE_TIME_MAX ? -LANE_TIME_MAX : t;
}

static inline void clamp_event(struct lane_view *e)
{
    int64_t begin = clamp(e->ev.begin_ps), end = clamp(e->ev.end_ps);
    if (begin == e->ev.begin_ps && end == e->ev.end_ps)
        return;
    e->ev.begin_ps = begin;
    e->ev.end_ps = end;
    e->ref.first = LANE_REF_NONE;
}

static void write(struct line_maker *m, struct lane_view *ev, size_t n, int64_t end_ps)
{
    bool within = ev[0].ev.begin_ps >= -LANE_TIME_MAX && end_ps <= LANE_TIME_MAX;
    if (!m->builder)
        m->builder = derive_builder(m->w, m->sources);
    for (size_t i = 0; m->gpu && i < n; i++)
        add_run(m, &ev[i]);
    for (size_t i = 0; !within && i < n; i++)
        clamp_event(&ev[i]);
    m->nevents += n;
    if (!m->builder || line_builder_add_views(m->builder, ev, n) != XP_OK)
        m->failed = true;
}

/* Writes out the pending events that begin before `now`; all are closed. */
static void flush(struct line_maker *m, int64_t now)
{
    struct lane_view *ev = m->pending.p;
    size_t n = m->pending.n, done = 0;
    if (!n)
        return;
    int64_t end_ps = sort_made(ev, n);
    while (done < n && ev[done].ev.begin_ps < now)
        done++;
    if (done && !m->failed)
        write(m, ev, done, end_ps);
    if (done && done < n)
        memmove(ev, ev + done, (n - done) * sizeof *ev);
    m->pending.n = n - done;
}

static inline struct lane_view *level_event(struct line_maker *m, size_t level)
{
    struct made_level *l = &VEC(m->levels, struct made_level)[level];
    return l->open ? &VEC(m->pending, struct lane_view)[l->ev] : NULL;
}

/* Levels of one span would be stacked in any order: each deeper one is made 1 ns shorter, but
 * never more than the deepest has. */
static void shrink(struct line_maker *m, size_t level)
{
    size_t end = level;
    while (end < m->levels.n && level_event(m, end))
        end++;
    if (end < level + 2)
        return;
    struct lane_raw *last = &level_event(m, end - 1)->ev;
    int64_t most = (last->end_ps - last->begin_ps) / 1000 - 1, by = 0;
    int64_t begin = 0, stop = 0;
    for (size_t i = level; i < end; i++) {
        struct lane_view *e = level_event(m, i);
        if (by < most && i > level && begin == e->ev.begin_ps && stop == e->ev.end_ps)
            by++;
        begin = e->ev.begin_ps;
        stop = e->ev.end_ps;
        if (by) {
            e->ref.cut_ns = (uint32_t)by;
            e->ev.end_ps -= 1000 * by;
            if (e->ev.end_ps < e->ev.begin_ps)
                e->ev.end_ps = e->ev.begin_ps;
        }
    }
}

static inline void lengthen(struct lane_view *e, int64_t end_ps, uint64_t ref)
{
    if (e->ev.end_ps < end_ps) {
        e->ev.end_ps = end_ps;
        e->ref.last = ref;
    }
}

static inline void lengthen_tail(struct line_maker *m, const struct maker_op *op)
{
    if (op->end_ps > m->tail_ps) {
        m->tail_ps = op->end_ps;
        m->tail_ref = op->ref;
    }
}

/* Puts the tail onto levels [from, to) of those that it is about. */
static void settle(struct line_maker *m, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        lengthen(level_event(m, i), m->tail_ps, m->tail_ref);
}

/* Ends the levels from this one on; the tail is on them. */
static void close_levels(struct line_maker *m, uint32_t level, int64_t now)
{
    shrink(m, level);
    for (size_t i = level; i < m->levels.n; i++)
        VEC(m->levels, struct made_level)[i].open = false;
    if (m->nopen > level)
        m->nopen = level;
    if (level)
        return;
    flush(m, now);
    for (uint32_t i = 0; i < m->ndependents; i++) {
        struct line_maker *d = m->dependents[i];
        settle(d, 0, d->nopen);
        close_levels(d, 0, now);
    }
}

static void reset_at(struct line_maker *m, uint32_t level, int64_t now)
{
    settle(m, 0, m->nopen);
    close_levels(m, level, now);
}

void line_maker_reset(struct line_maker *m, uint32_t level)
{
    reset_at(m, level, INT64_MIN);
}

static bool goes_on(const struct line_maker *m, const struct lane_view *e,
                    const struct made_level *l, uint32_t name, const struct maker_op *op,
                    int64_t scope)
{
    const struct lane_raw *ev = &e->ev;
    if (ev->name != name || e->group != op->group ||
        (scope != INT64_MIN && l->scope != INT64_MIN && scope != l->scope))
        return false;
    if (m->gpu || op->group != DERIVE_NO_GROUP)
        return true;
    int64_t reach;
    if (__builtin_mul_overflow(ev->end_ps - ev->begin_ps, (int64_t)2, &reach) ||
        __builtin_add_overflow(ev->end_ps, reach, &reach))
        return true;
    return reach >= op->begin_ps;
}

static bool level_room(struct line_maker *m, size_t level)
{
    while (m->levels.n <= level) {
        struct made_level *l = vec_push(&m->levels, sizeof *l);
        if (!l)
            return false;
        *l = (struct made_level){0};
    }
    return true;
}

static bool begin_level(struct line_maker *m, size_t level, uint32_t name,
                        const struct maker_op *op, int64_t scope, uint64_t at)
{
    struct lane_view *e = level_room(m, level) ? vec_push(&m->pending, sizeof *e) : NULL;
    if (!e)
        return !(m->failed = true);
    *e = (struct lane_view){{op->begin_ps, op->end_ps, at, name}, {op->ref, op->ref, 0}, op->group};
    VEC(m->levels, struct made_level)
    [level] = (struct made_level){true, name, m->pending.n - 1, scope};
    return true;
}

static bool add_level(struct line_maker *m, uint32_t level, uint32_t name,
                      const struct maker_op *op, int64_t scope, uint64_t at)
{
    if (level >= LEVELS_MAX || m->failed)
        return !m->failed;
    settle(m, 0, m->nopen);
    m->nopen = 0;
    if (!level_room(m, level))
        return !(m->failed = true);
    struct lane_view *e = level_event(m, level);
    if (e && goes_on(m, e, &VEC(m->levels, struct made_level)[level], name, op, scope)) {
        if (op->begin_ps < e->ev.begin_ps) {
            e->ev.begin_ps = op->begin_ps;
            e->ref.first = op->ref;
        }
        lengthen(e, op->end_ps, op->ref);
        return true;
    }
    close_levels(m, level, op->begin_ps);
    return begin_level(m, level, name, op, scope, at);
}

bool line_maker_add(struct line_maker *m, uint32_t level, uint32_t name, int64_t begin_ps,
                    int64_t end_ps, int64_t group, int64_t scope, uint64_t at)
{
    struct maker_op op = {begin_ps, end_ps, group, LANE_REF_NONE};
    return add_level(m, level, name, &op, scope, at);
}

static bool add_alone(struct line_maker *m, const uint32_t *names, size_t n,
                      const struct maker_op *op)
{
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = add_level(m, (uint32_t)i, names[i], op, INT64_MIN, 0);
    line_maker_reset(m, (uint32_t)n);
    return ok;
}

/* The one open event, on the first level, ends where the next begins; in short what close_levels
 * does. Ended events are written some at a time. False: it is not so simple. */
static inline bool next_of_one(struct line_maker *m, uint32_t name, const struct maker_op *op)
{
    struct made_level *l = m->levels.p;
    if (m->nopen != 1 || m->ndependents || l->ev + 1 != m->pending.n)
        return false;
    struct lane_view *e = VEC(m->pending, struct lane_view) + l->ev;
    if (e->ev.begin_ps >= op->begin_ps)
        return false;
    lengthen(e, m->tail_ps, m->tail_ref);
    if (m->pending.n >= BATCH)
        flush(m, op->begin_ps);
    e = vec_push(&m->pending, sizeof *e);
    if (!e)
        return false;
    *e = (struct lane_view){{op->begin_ps, op->end_ps, 0, name}, {op->ref, op->ref, 0}, op->group};
    *l = (struct made_level){true, name, m->pending.n - 1, INT64_MIN};
    return true;
}

/* Ends levels from k on and begins those of the names. Levels that go on have what the tail says,
 * which the op's end takes the place of unless it is less. */
static void change(struct line_maker *m, const uint32_t *names, size_t k, size_t n,
                   const struct maker_op *op)
{
    settle(m, k && m->tail_ps <= op->end_ps ? k : 0, m->nopen);
    close_levels(m, (uint32_t)k, k ? INT64_MIN : op->begin_ps);
    for (size_t i = k; i < n && !m->failed; i++)
        begin_level(m, i, names[i], op, INT64_MIN, 0);
    m->nopen = m->failed ? 0 : n;
}

/* It is not known to be what is open. */
static __attribute__((noinline)) bool add_levels(struct line_maker *m, const uint32_t *names,
                                                 size_t n, uint32_t path, const struct maker_op *op)
{
    if (op->group == DERIVE_NO_GROUP || m->gpu)
        return add_alone(m, names, n, op);
    const struct made_level *l = m->levels.p;
    size_t k = 0;
    if (op->group == m->group)
        while (k < n && k < m->nopen && l[k].name == names[k])
            k++;
    m->path = path;
    if (k == n && m->nopen == n) {
        lengthen_tail(m, op);
        return !m->failed;
    }
    if (n != 1 || k || m->failed || !next_of_one(m, names[0], op))
        change(m, names, k, n, op);
    m->tail_ps = op->end_ps;
    m->tail_ref = op->ref;
    m->group = op->group;
    return !m->failed;
}

bool line_maker_add_all(struct line_maker *m, const uint32_t *names, size_t n, uint32_t path,
                        const struct maker_op *op)
{
    if (!path || path != m->path || m->nopen != n || op->group != m->group || m->failed)
        return add_levels(m, names, n, path, op);
    lengthen_tail(m, op);
    return true;
}

static enum xp_status finish(struct line_maker *m, struct maker_output *out)
{
    struct part_line *line = xp_bump_alloc(&m->w->bump, sizeof *line, 16);
    if (!line)
        return XP_BUSY;
    *line = (struct part_line){0};
    enum xp_status st = derive_builder_end(m->w, m->builder, line);
    m->builder = NULL;
    if (st != XP_OK)
        return st;
    line->derived = true;
    line->sorted = true;
    out->line = line;
    if (!m->runs.n)
        return XP_OK;
    out->runs = xp_bump_alloc(&m->w->bump, m->runs.n * sizeof *out->runs, 16);
    if (!out->runs)
        return XP_BUSY;
    memcpy(out->runs, m->runs.p, m->runs.n * sizeof *out->runs);
    out->nruns = (uint32_t)m->runs.n;
    return XP_OK;
}

enum xp_status line_maker_end(struct line_maker *m, struct maker_output *out)
{
    *out = (struct maker_output){0};
    settle(m, 0, m->nopen);
    m->nopen = 0;
    shrink(m, 0);
    for (size_t i = 0; i < m->levels.n; i++)
        VEC(m->levels, struct made_level)[i].open = false;
    flush(m, INT64_MAX);
    enum xp_status st = m->failed ? XP_BUSY : XP_OK;
    if (st == XP_OK && m->nevents)
        st = finish(m, out);
    line_maker_free(m);
    return st;
}

void line_maker_free(struct line_maker *m)
{
    if (!m)
        return;
    vec_free(&m->levels);
    vec_free(&m->pending);
    vec_free(&m->runs);
    free(m);
}
