#include "shard/tools/report_pod.h"

#include <stdio.h>
#include <stdlib.h>

#include "shard/derive/vec.h"
#include "shard/tools/idmap.h"

static void no_room(struct report *r)
{
    r->busy = true;
}

/* --- who waits for whom --- */

struct wait {
    uint32_t host, of_host, of_core;
    uint32_t steps;
    double wait_ps, step_ps; /* sums over these steps of the mean of the host's cores */
    double most_ps;
    int64_t most_begin_ps; /* of the step it waited most in */
};

struct waits {
    const struct figures *f;
    struct xp_arena *a;
    double *slow_ps; /* by step of the run: what its slowest core waits itself */
    struct vec v;    /* struct wait */
    struct idmap by; /* host, core waited for -> place */
};

/* The place among the run's steps; nsteps: it is none of these. Numbers ascend on both sides. */
static uint32_t step_at(const struct figures *f, uint32_t *at, int64_t number)
{
    while (*at < f->nsteps && f->steps[*at].number < number)
        ++*at;
    return *at < f->nsteps && f->steps[*at].number == number ? *at : f->nsteps;
}

static void find_slow(struct waits *w)
{
    const struct figures *f = w->f;
    for (uint32_t h = 0; h < f->nhosts; h++)
        for (uint32_t c = 0; c < f->hosts[h].ncores; c++) {
            const struct figure_core *core = &f->hosts[h].cores[c];
            uint32_t at = 0;
            for (uint32_t i = 0; i < core->nsteps; i++) {
                uint32_t k = step_at(f, &at, core->steps[i].number);
                if (k < f->nsteps && f->steps[k].slowest_host == h && f->steps[k].slowest_core == c)
                    w->slow_ps[k] = (double)core->steps[i].wait_ps;
            }
        }
}

/* NULL: memory is out. */
static struct wait *wait_of(struct waits *w, uint32_t host, const struct run_step *s)
{
    uint64_t key =
        ((uint64_t)host * w->f->nhosts + s->slowest_host) << 24 | (s->slowest_core & 0xffffff);
    uint32_t at;
    if (idmap_get(&w->by, key, &at))
        return &VEC(w->v, struct wait)[at];
    struct wait *to = vec_push(&w->v, sizeof *to);
    if (!to || !idmap_put(&w->by, key, (uint32_t)w->v.n - 1))
        return NULL;
    *to = (struct wait){.host = host, .of_host = s->slowest_host, .of_core = s->slowest_core};
    return to;
}

struct step_sum {
    double wait_ps, step_ps; /* sums over cores */
    uint32_t cores;
    int64_t begin_ps;
};

static bool add_host(struct waits *w, uint32_t h, struct step_sum *steps)
{
    const struct figures *f = w->f;
    memset(steps, 0, (f->nsteps + 1) * sizeof *steps);
    for (uint32_t c = 0; c < f->hosts[h].ncores; c++) {
        const struct figure_core *core = &f->hosts[h].cores[c];
        uint32_t at = 0;
        for (uint32_t i = 0; i < core->nsteps; i++) {
            const struct figure_step *s = &core->steps[i];
            uint32_t k = step_at(f, &at, s->number);
            if (k == f->nsteps || !s->whole)
                continue;
            double wait = (double)s->wait_ps - w->slow_ps[k];
            steps[k].wait_ps += wait > 0 ? wait : 0;
            steps[k].step_ps += (double)figure_length(s->begin_ps, s->end_ps);
            steps[k].begin_ps = s->begin_ps;
            steps[k].cores++;
        }
    }
    for (uint32_t k = 0; k < f->nsteps; k++) {
        if (!steps[k].cores || !(steps[k].wait_ps > 0))
            continue;
        struct wait *to = wait_of(w, h, &f->steps[k]);
        if (!to)
            return false;
        double wait = steps[k].wait_ps / steps[k].cores;
        to->steps++;
        to->wait_ps += wait;
        to->step_ps += steps[k].step_ps / steps[k].cores;
        if (wait > to->most_ps) {
            to->most_ps = wait;
            to->most_begin_ps = steps[k].begin_ps;
        }
    }
    return true;
}

static const struct report_column wait_columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "that waits"},
    {"for_host", "For", "", REPORT_COL_TEXT, false,
     "host of the core with the longest step less waiting"},
    {"for_core", "Core", "", REPORT_COL_TEXT, false, "that core"},
    {"steps", "Steps", "count", REPORT_COL_NUMBER, true, "in which it does"},
    {"waiting", "Waiting", "ps", REPORT_COL_NUMBER, true,
     "in collectives, barriers and receives, beyond what that core waits itself; mean over the "
     "host's cores, sum over these steps"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, false, "of these steps' time"},
    {"duration", "Most in a step", "ps", REPORT_COL_NUMBER, false, "mean over the host's cores"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, "of that step"},
};

static void wait_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct waits *w = ctx;
    const struct wait *v = &VEC(w->v, struct wait)[i];
    c[0] = report_of_text(w->f->hosts[v->host].name);
    c[1] = report_of_text(w->f->hosts[v->of_host].name);
    c[2] = report_of_text(w->f->hosts[v->of_host].cores[v->of_core].name);
    c[3] = report_of_u64(v->steps);
    c[4] = report_of_u64((uint64_t)(v->wait_ps + 0.5));
    c[5] = report_ratio(v->wait_ps, v->step_ps);
    c[6] = report_of_u64((uint64_t)(v->most_ps + 0.5));
    c[7] = report_of_i64(v->most_begin_ps);
}

void report_pod_waits(struct report *r, const struct figures *f)
{
    struct waits w = {.f = f, .a = r->a};
    struct step_sum *steps = xp_arena_alloc(r->a, ((size_t)f->nsteps + 1) * sizeof *steps);
    w.slow_ps = xp_arena_zalloc(r->a, ((size_t)f->nsteps + 1) * sizeof *w.slow_ps);
    if (!steps || !w.slow_ps) {
        no_room(r);
        return;
    }
    idmap_init(&w.by, r->a);
    find_slow(&w);
    for (uint32_t h = 0; h < f->nhosts && !r->busy; h++)
        if (!add_host(&w, h, steps))
            no_room(r);
    report_table(r, &(struct report_rows){.id = "waits",
                                          .title = "Who waits for whom",
                                          .columns = wait_columns,
                                          .ncolumns = sizeof wait_columns / sizeof *wait_columns,
                                          .n = w.v.n,
                                          .row = wait_row,
                                          .ctx = &w,
                                          .sort = "waiting",
                                          .descending = true});
    report_link(r, "waits", "host");
    vec_free(&w.v);
}

/* --- what the cores' steps are made of --- */

#define BARS 64

struct bars {
    const struct pod_core **cores; /* the longest step less waiting first */
    uint32_t n;
    struct xp_arena *a;
};

static double own(const struct pod_core *c)
{
    return c->steps ? (double)c->own_ps / (double)c->steps : -1;
}

static int by_own(const void *a, const void *b)
{
    const struct pod_core *x = *(const struct pod_core *const *)a,
                          *y = *(const struct pod_core *const *)b;
    if (own(x) != own(y))
        return own(x) > own(y) ? -1 : 1;
    return (x > y) - (x < y);
}

/* host/TPU:1 */
static struct report_cell name_of(const struct pod_core *c, struct xp_arena *a)
{
    static const char prefix[] = "/device:";
    struct xp_span core = c->core->name;
    uint8_t *p = xp_arena_alloc(a, c->host->name.n + core.n + 2);
    if (!p)
        return report_none();
    if (xp_span_starts(core, xp_span_str(prefix)))
        core = xp_span_of(core.p + sizeof prefix - 1, core.n - (sizeof prefix - 1));
    if (c->host->name.n)
        memcpy(p, c->host->name.p, c->host->name.n);
    p[c->host->name.n] = '/';
    if (core.n)
        memcpy(p + c->host->name.n + 1, core.p, core.n);
    return report_of_text(xp_span_of(p, c->host->name.n + 1 + core.n));
}

/* Compute, waiting, input, the rest: means of a step. */
static void parts_of(const struct pod_core *c, uint64_t out[4])
{
    uint64_t left = c->step_ps, of[3] = {c->compute_ps, c->wait_ps, c->input_ps};
    for (int k = 0; k < 3; k++) {
        uint64_t ps = of[k] < left ? of[k] : left;
        left -= ps;
        out[k] = ps / c->steps;
    }
    out[3] = left / c->steps;
}

static void bar_point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct bars *b = ctx;
    uint64_t part[4];
    *x = name_of(b->cores[i], b->a);
    parts_of(b->cores[i], part);
    for (int k = 0; k < 4; k++)
        y[k] = report_of_u64(part[k]);
}

void report_pod_breakdown(struct report *r, const struct pod_core *cores, uint32_t n)
{
    static const char *const names[] = {"compute", "waiting", "input", "idle"};
    struct bars b = {xp_arena_alloc(r->a, ((size_t)n + 1) * sizeof *b.cores), 0, r->a};
    if (!b.cores) {
        no_room(r);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        if (cores[i].steps)
            b.cores[b.n++] = &cores[i];
    if (b.n)
        qsort(b.cores, b.n, sizeof *b.cores, by_own);
    report_series(r, &(struct report_points){.id = "cores",
                                             .title = "What the cores' steps are made of",
                                             .x_label = "core",
                                             .x_unit = "",
                                             .x_text = true,
                                             .y_label = "Mean of a step",
                                             .y_unit = "ps",
                                             .kind = "stack",
                                             .names = names,
                                             .nnames = 4,
                                             .n = b.n < BARS ? b.n : BARS,
                                             .total = b.n > BARS ? b.n : 0,
                                             .point = bar_point,
                                             .ctx = &b});
}

/* --- cores by hosts --- */

#define MAP_POINTS 1900

struct map {
    const struct pod_core **cores;
    const struct figures *f;
    uint32_t n;
};

static int by_place(const void *a, const void *b)
{
    const struct pod_core *x = *(const struct pod_core *const *)a,
                          *y = *(const struct pod_core *const *)b;
    if (x->core->ordinal != y->core->ordinal)
        return x->core->ordinal < y->core->ordinal ? -1 : 1;
    return (x > y) - (x < y);
}

static void map_point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct map *m = ctx;
    const struct pod_core *c = m->cores[i];
    uint64_t part[4];
    parts_of(c, part);
    *x = report_of_u64(c->core->ordinal);
    y[0] = report_of_u64((uint64_t)(c->host - m->f->hosts));
    y[1] = report_of_u64(c->own_ps / c->steps);
    y[2] = report_of_u64(c->step_ps / c->steps);
    for (int k = 0; k < 4; k++)
        y[3 + k] = report_of_u64(part[k]);
}

void report_pod_map(struct report *r, const struct figures *f, const struct pod_core *cores,
                    uint32_t n)
{
    static const char *const names[] = {"host",    "own_time", "step_time", "compute",
                                        "waiting", "input",    "idle"};
    struct map m = {xp_arena_alloc(r->a, ((size_t)n + 1) * sizeof *m.cores), f, 0};
    uint32_t all = 0;
    if (!m.cores) {
        no_room(r);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        if (cores[i].steps && cores[i].core->kind != FIGURE_SPARSE_CORE && all++ < MAP_POINTS)
            m.cores[m.n++] = &cores[i];
    if (m.n < 2)
        return;
    qsort(m.cores, m.n, sizeof *m.cores, by_place);
    report_series(r, &(struct report_points){.id = "map",
                                             .title = "Cores by hosts",
                                             .x_label = "core",
                                             .x_unit = "",
                                             .y_label = "Mean of a step",
                                             .y_unit = "ps",
                                             .kind = "heat",
                                             .names = names,
                                             .nnames = 7,
                                             .n = m.n,
                                             .total = all > m.n ? all : 0,
                                             .point = map_point,
                                             .ctx = &m});
}

/* --- collectives --- */

static const struct report_column collective_columns[] = {
    {"op", "Op", "", REPORT_COL_OP, false, "name of the HLO op"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, ""},
    {"category", "Category", "", REPORT_COL_TEXT, false, "as the profile says"},
    {"self_time", "Self time", "ps", REPORT_COL_NUMBER, true, "over all cores"},
    {"occurrences", "Occurrences", "count", REPORT_COL_NUMBER, true, "over all cores"},
    {"mean_time", "Mean", "ps", REPORT_COL_NUMBER, false, "of one, on one core"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "of the devices' windows"},
    {"first_host", "Host", "", REPORT_COL_TEXT, false, "of one of the first runs"},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, "where that was"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, "of that run"},
};

struct collectives {
    const struct figures *f;
    const struct op_metrics **ops;
    uint32_t n;
};

static struct xp_span short_name(struct xp_span s)
{
    const uint8_t *end = s.n ? memchr(s.p, ' ', s.n) : NULL;
    struct xp_span name = end ? xp_span_of(s.p, (size_t)(end - s.p)) : s;
    return name.n && name.p[0] == '%' ? xp_span_of(name.p + 1, name.n - 1) : name;
}

static void collective_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct collectives *v = ctx;
    const struct op_metrics *m = v->ops[i];
    c[0] = report_of_text(short_name(m->name));
    c[1] = m->program ? report_of_id(m->program) : report_none();
    c[2] = report_of_text(m->category);
    c[3] = report_of_u64(m->self_ps);
    c[4] = report_of_u64(m->occurrences);
    c[5] = m->occurrences ? report_of_u64(m->self_ps / m->occurrences) : report_none();
    c[6] = report_ratio((double)m->self_ps, (double)v->f->window_ps);
    for (uint32_t h = 0; h < v->f->nhosts && m->first_plane.n; h++)
        if (v->f->hosts[h].index == m->host) {
            c[7] = report_of_text(v->f->hosts[h].name);
            c[8] = report_of_text(m->first_plane);
            c[9] = report_of_i64(m->first_begin_ps);
        }
}

void report_pod_collectives(struct report *r, const struct figures *f)
{
    const struct op_db *db = &f->stats->device;
    struct collectives v = {f, xp_arena_alloc(r->a, ((size_t)db->n + 1) * sizeof *v.ops), 0};
    if (!v.ops) {
        no_room(r);
        return;
    }
    for (uint32_t i = 0; i < db->n; i++)
        if (db->ops[i].self_ps && figure_is_collective(db->ops[i].category, db->ops[i].name))
            v.ops[v.n++] = &db->ops[i];
    report_table(
        r, &(struct report_rows){.id = "collectives",
                                 .title = "Ops that wait for other devices",
                                 .columns = collective_columns,
                                 .ncolumns = sizeof collective_columns / sizeof *collective_columns,
                                 .n = v.n,
                                 .row = collective_row,
                                 .ctx = &v,
                                 .sort = "self_time",
                                 .descending = true});
}
