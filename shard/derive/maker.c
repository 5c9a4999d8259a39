#include "shard/derive/derive_int.h"

/* A line of events that are merged while the same name goes on, on several nested levels. The
 * ends of open events grow, so that events wait until the outermost one above them is closed. */

#define LEVELS_MAX 4096
#define DEPENDENTS_MAX 2
#define BATCH 256

struct made {
    int64_t begin_ps, end_ps;
    int64_t group;
    uint64_t at;
    uint32_t name;
};

struct made_level {
    bool open;
    uint32_t name;
    size_t ev; /* in pending */
    int64_t scope;
};

struct line_maker {
    struct xp_arena *arena;
    bool gpu, failed;
    struct vec levels;  /* struct made_level */
    struct vec pending; /* struct made, in order of begin */
    struct line_builder *builder;
    struct line_maker *dependents[DEPENDENTS_MAX];
    uint32_t ndependents;
    struct vec runs; /* struct derive_span */
    uint64_t nevents;
    struct lane_raw batch[BATCH]; /* on their way to the builder */
    size_t nbatch;
    /* Most events only lengthen all open levels: how far is kept here, once for all of them. */
    int64_t tail_ps;
    size_t nopen; /* levels that the tail is about: [0, nopen), all open, of one group */
    int64_t group;
};

struct line_maker *line_maker_new(struct xp_arena *arena, bool gpu)
{
    struct line_maker *m = calloc(1, sizeof *m);
    if (m) {
        m->arena = arena;
        m->gpu = gpu;
    }
    return m;
}

void line_maker_depends(struct line_maker *m, struct line_maker *dependent)
{
    XP_ASSERT(m->ndependents < DEPENDENTS_MAX);
    m->dependents[m->ndependents++] = dependent;
}

static bool sooner(const struct made *a, const struct made *b)
{
    if (a->begin_ps != b->begin_ps)
        return a->begin_ps < b->begin_ps;
    return a->end_ps > b->end_ps;
}

static void add_run(struct line_maker *m, const struct made *e)
{
    int32_t group = e->group == DERIVE_NO_GROUP ? -1 : (int32_t)e->group;
    if (m->runs.n && VEC(m->runs, struct derive_span)[m->runs.n - 1].group == group)
        return;
    struct derive_span *r = vec_push(&m->runs, sizeof *r);
    if (!r)
        m->failed = true;
    else
        *r = (struct derive_span){e->begin_ps, e->end_ps, group, -1};
}

static int sooner_cmp(const void *a, const void *b)
{
    const struct made *x = a, *y = b;
    return sooner(x, y) ? -1 : sooner(y, x);
}

/* They are in order but for some of equal begin. */
static void sort_made(struct made *ev, size_t n)
{
    size_t i = 1, moves = 0;
    for (; i < n && moves < 4 * n; i++) {
        struct made e = ev[i];
        size_t k = i;
        for (; k > 0 && sooner(&e, &ev[k - 1]); k--, moves++)
            ev[k] = ev[k - 1];
        ev[k] = e;
    }
    if (i < n)
        qsort(ev, n, sizeof *ev, sooner_cmp);
}

static void write_batch(struct line_maker *m)
{
    if (m->nbatch && !m->failed && line_builder_add_many(m->builder, m->batch, m->nbatch) != XP_OK)
        m->failed = true;
    m->nbatch = 0;
}

static int64_t clamp(int64_t t)
{
    return t > LANE_TIME_MAX ? LANE_TIME_MAX : t < -LANE_TIME_MAX ? -LANE_TIME_MAX : t;
}

/* Writes out the pending events that begin before `now`; all are closed. */
static void flush(struct line_maker *m, int64_t now)
{
    struct made *ev = m->pending.p;
    size_t n = m->pending.n, done = 0;
    if (n > 1)
        sort_made(ev, n);
    if (!m->builder && n && !(m->builder = line_builder_new(m->arena)))
        m->failed = true;
    for (; done < n && ev[done].begin_ps < now && !m->failed; done++) {
        if (m->gpu)
            add_run(m, &ev[done]);
        if (m->nbatch == BATCH)
            write_batch(m);
        m->batch[m->nbatch++] = (struct lane_raw){clamp(ev[done].begin_ps), clamp(ev[done].end_ps),
                                                  ev[done].at, ev[done].name};
        m->nevents++;
    }
    if (done && done < n)
        memmove(ev, ev + done, (n - done) * sizeof *ev);
    m->pending.n = n - done;
}

static struct made *level_event(struct line_maker *m, size_t level)
{
    struct made_level *l = &VEC(m->levels, struct made_level)[level];
    return l->open ? &VEC(m->pending, struct made)[l->ev] : NULL;
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
    struct made *last = level_event(m, end - 1);
    int64_t most = (last->end_ps - last->begin_ps) / 1000 - 1, by = 0;
    int64_t begin = 0, stop = 0;
    for (size_t i = level; i < end; i++) {
        struct made *e = level_event(m, i);
        if (by < most && i > level && begin == e->begin_ps && stop == e->end_ps)
            by++;
        begin = e->begin_ps;
        stop = e->end_ps;
        if (by) {
            e->end_ps -= 1000 * by;
            if (e->end_ps < e->begin_ps)
                e->end_ps = e->begin_ps;
        }
    }
}

/* Puts the tail onto the levels that it is about. */
static void settle(struct line_maker *m)
{
    for (size_t i = 0; i < m->nopen; i++) {
        struct made *e = level_event(m, i);
        if (e->end_ps < m->tail_ps)
            e->end_ps = m->tail_ps;
    }
}

static void reset_at(struct line_maker *m, uint32_t level, int64_t now)
{
    settle(m);
    if (m->nopen > level)
        m->nopen = level;
    shrink(m, level);
    for (size_t i = level; i < m->levels.n; i++)
        VEC(m->levels, struct made_level)[i].open = false;
    if (level)
        return;
    flush(m, now);
    for (uint32_t i = 0; i < m->ndependents; i++)
        reset_at(m->dependents[i], 0, now);
}

void line_maker_reset(struct line_maker *m, uint32_t level)
{
    reset_at(m, level, INT64_MIN);
}

static bool goes_on(const struct line_maker *m, const struct made *e, const struct made_level *l,
                    uint32_t name, int64_t begin_ps, int64_t group, int64_t scope)
{
    if (e->name != name || e->group != group ||
        (scope != INT64_MIN && l->scope != INT64_MIN && scope != l->scope))
        return false;
    if (m->gpu || group != DERIVE_NO_GROUP)
        return true;
    int64_t reach;
    if (__builtin_mul_overflow(e->end_ps - e->begin_ps, (int64_t)2, &reach) ||
        __builtin_add_overflow(e->end_ps, reach, &reach))
        return true;
    return reach >= begin_ps;
}

bool line_maker_add(struct line_maker *m, uint32_t level, uint32_t name, int64_t begin_ps,
                    int64_t end_ps, int64_t group, int64_t scope, uint64_t at)
{
    if (level >= LEVELS_MAX || m->failed)
        return !m->failed;
    settle(m);
    m->nopen = 0;
    while (m->levels.n <= level) {
        struct made_level *l = vec_push(&m->levels, sizeof *l);
        if (!l)
            return !(m->failed = true);
        *l = (struct made_level){0};
    }
    struct made *e = level_event(m, level);
    if (e &&
        goes_on(m, e, &VEC(m->levels, struct made_level)[level], name, begin_ps, group, scope)) {
        if (begin_ps < e->begin_ps)
            e->begin_ps = begin_ps;
        if (end_ps > e->end_ps)
            e->end_ps = end_ps;
        return true;
    }
    reset_at(m, level, begin_ps);
    e = vec_push(&m->pending, sizeof *e);
    if (!e)
        return !(m->failed = true);
    *e = (struct made){begin_ps, end_ps, group, at, name};
    VEC(m->levels, struct made_level)
    [level] = (struct made_level){true, name, m->pending.n - 1, scope};
    return !m->failed;
}

static bool begin_level(struct line_maker *m, size_t level, uint32_t name, int64_t begin_ps,
                        int64_t end_ps, int64_t group, uint64_t at)
{
    while (m->levels.n <= level) {
        struct made_level *l = vec_push(&m->levels, sizeof *l);
        if (!l)
            return false;
        *l = (struct made_level){0};
    }
    struct made *e = vec_push(&m->pending, sizeof *e);
    if (!e)
        return false;
    *e = (struct made){begin_ps, end_ps, group, at, name};
    VEC(m->levels, struct made_level)
    [level] = (struct made_level){true, name, m->pending.n - 1, INT64_MIN};
    return true;
}

bool line_maker_add_all(struct line_maker *m, const uint32_t *names, size_t n, int64_t begin_ps,
                        int64_t end_ps, int64_t group)
{
    if (group == DERIVE_NO_GROUP || m->gpu) {
        bool ok = true;
        for (size_t i = 0; ok && i < n; i++)
            ok = line_maker_add(m, (uint32_t)i, names[i], begin_ps, end_ps, group, INT64_MIN, 0);
        line_maker_reset(m, (uint32_t)n);
        return ok;
    }
    const struct made_level *l = m->levels.p;
    size_t k = 0;
    if (group == m->group)
        while (k < n && k < m->nopen && l[k].name == names[k])
            k++;
    if (k < n || m->nopen > n) {
        reset_at(m, (uint32_t)k, k ? INT64_MIN : begin_ps);
        for (size_t i = k; i < n && !m->failed; i++)
            if (!begin_level(m, i, names[i], begin_ps, end_ps, group, 0))
                m->failed = true;
        m->nopen = m->failed ? 0 : n;
        m->tail_ps = end_ps;
        m->group = group;
    } else if (end_ps > m->tail_ps) {
        m->tail_ps = end_ps;
    }
    return !m->failed;
}

static enum xp_status finish(struct line_maker *m, struct maker_output *out)
{
    struct part_line *line = xp_arena_zalloc(m->arena, sizeof *line);
    if (!line)
        return XP_BUSY;
    enum xp_status st = line_builder_end(m->builder, line);
    m->builder = NULL;
    if (st != XP_OK)
        return st;
    line->derived = true;
    line->sorted = true;
    out->line = line;
    if (!m->runs.n)
        return XP_OK;
    out->runs = xp_arena_alloc(m->arena, m->runs.n * sizeof *out->runs);
    if (!out->runs)
        return XP_BUSY;
    memcpy(out->runs, m->runs.p, m->runs.n * sizeof *out->runs);
    out->nruns = (uint32_t)m->runs.n;
    return XP_OK;
}

enum xp_status line_maker_end(struct line_maker *m, struct maker_output *out)
{
    *out = (struct maker_output){0};
    settle(m);
    m->nopen = 0;
    shrink(m, 0);
    for (size_t i = 0; i < m->levels.n; i++)
        VEC(m->levels, struct made_level)[i].open = false;
    flush(m, INT64_MAX);
    write_batch(m);
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
