#include <stdlib.h>

#include "shard/stats/figures_int.h"
#include "shard/stats/op_tpu_int.h"
#include "shard/stats/steps.h"

/* Where a host's steps come from: markers, else runs of a module; see figures.h. */

static struct xp_span line_name(const struct figure_build *b, const struct derive_line *l)
{
    return l->line->derived ? l->name : part_line_name(b->part, l->line);
}

int64_t figure_step_number(struct xp_span name, int64_t place)
{
    size_t i = name.n;
    int64_t v = 0, ten = 1;
    while (i && name.p[i - 1] >= '0' && name.p[i - 1] <= '9' && name.n - i < 18) {
        v += ten * (name.p[--i] - '0');
        ten *= 10;
    }
    return i < name.n ? v : place;
}

#define NO_NUMBER INT64_MIN

static bool add(struct vec *steps, struct xp_span name, int64_t begin_ps, int64_t end_ps)
{
    struct figure_step *s = vec_push(steps, sizeof *s);
    if (s)
        *s = (struct figure_step){.number = NO_NUMBER,
                                  .name = name,
                                  .begin_ps = begin_ps,
                                  .end_ps = end_ps,
                                  .until_ps = end_ps};
    return s;
}

/* --- markers --- */

static enum xp_status marked_steps(struct figure_build *b, uint32_t plane, struct vec *steps)
{
    const struct derive_plane *dp = &b->d->planes[plane];
    for (uint32_t i = 0; i < dp->nlines; i++) {
        const struct derive_line *l = &b->d->lines[dp->first_line + i];
        struct derive_eye eye;
        struct line_cursor c;
        struct lane_event e;
        if (!tpu_is_steps(line_name(b, l)) || l->hidden)
            continue;
        if (line_seek(&c, l->line, INT64_MIN, b->scratch) != XP_OK)
            return figure_busy(b->err);
        derive_look(&eye, b->d, l);
        while (line_next(&c, &e, NULL)) {
            int64_t base = l->line->base_ps;
            struct derive_event ev = {base + e.begin_ps, base + e.end_ps, e.at, e.name};
            struct xp_span name = xp_bump_span(&b->bump, derive_event_name(&eye, &ev, NULL));
            if (ev.end_ps <= ev.begin_ps)
                continue;
            if (!name.p || !add(steps, name, ev.begin_ps, ev.end_ps))
                return figure_busy(b->err);
            if (!l->own_names && !l->line->derived && e.name < b->part->planes[plane].nevmeta)
                VEC(*steps, struct figure_step)
            [steps->n - 1].number = figure_step_number(
                part_event_name(b->part, &b->part->planes[plane], e.name), NO_NUMBER);
        }
        break;
    }
    return XP_OK;
}

enum xp_status figure_host_steps(struct figure_build *b, bool with_input, struct vec *steps)
{
    const struct steps *s;
    XP_TRY(steps_get(b->part, &s, b->err));
    for (uint32_t i = 0; i < s->hosts[0].nsteps; i++) {
        const struct host_step *h = &s->hosts[0].steps[i];
        if (!add(steps, h->name, (int64_t)h->begin_ps, (int64_t)(h->begin_ps + h->duration_ps)))
            return figure_busy(b->err);
        struct figure_step *step = &VEC(*steps, struct figure_step)[steps->n - 1];
        if (with_input)
            step->input_ps = h->type_ps[STEP_WAIT_INPUT];
    }
    return XP_OK;
}

/* --- modules --- */

/* "jit_f(123)" -> "jit_f" */
struct xp_span figure_plain(struct xp_span name)
{
    const uint8_t *p = name.n ? memchr(name.p, '(', name.n) : NULL;
    return p && p > name.p ? xp_span_of(name.p, (size_t)(p - name.p)) : name;
}

static const struct derive_line *modules_line(const struct figure_build *b, uint32_t plane)
{
    const struct derive_plane *dp = &b->d->planes[plane];
    for (uint32_t i = 0; i < dp->nlines; i++) {
        const struct derive_line *l = &b->d->lines[dp->first_line + i];
        if (tpu_is_modules(line_name(b, l)) && l->line->nevents)
            return l;
    }
    return NULL;
}

static struct figure_module *module_of(struct figure_build *b, struct xp_span name)
{
    struct figure_module *v = VEC(b->modules, struct figure_module);
    for (size_t i = 0; i < b->modules.n; i++)
        if (xp_span_eq(v[i].name, name))
            return &v[i];
    struct figure_module *m = vec_push(&b->modules, sizeof *m);
    if (m)
        *m = (struct figure_module){.name = xp_bump_span(&b->bump, name), .min_ps = UINT64_MAX};
    return m;
}

static enum xp_status count_modules(struct figure_build *b, uint32_t plane)
{
    const struct derive_line *l = modules_line(b, plane);
    struct derive_eye eye;
    struct line_cursor c;
    struct lane_event e;
    size_t known = b->modules.n;
    if (!l)
        return XP_OK;
    if (line_seek(&c, l->line, INT64_MIN, b->scratch) != XP_OK)
        return figure_busy(b->err);
    uint64_t *before = xp_arena_zalloc(b->scratch, (known + 1) * sizeof *before);
    if (!before)
        return figure_busy(b->err);
    for (size_t i = 0; i < known; i++)
        before[i] = VEC(b->modules, struct figure_module)[i].runs;
    derive_look(&eye, b->d, l);
    while (line_next(&c, &e, NULL)) {
        int64_t base = l->line->base_ps;
        struct derive_event ev = {base + e.begin_ps, base + e.end_ps, e.at, e.name};
        uint64_t ps = figure_length(e.begin_ps, e.end_ps);
        struct figure_module *m = module_of(b, derive_event_name(&eye, &ev, NULL));
        if (!m || !m->name.p)
            return figure_busy(b->err);
        m->runs += part_begins(b->part, e.at, ev.begin_ps);
        m->total_ps += ps;
        m->min_ps = ps < m->min_ps ? ps : m->min_ps;
        m->max_ps = ps > m->max_ps ? ps : m->max_ps;
    }
    for (size_t i = 0; i < b->modules.n; i++) {
        struct figure_module *m = &VEC(b->modules, struct figure_module)[i];
        uint64_t here = m->runs - (i < known ? before[i] : 0);
        m->core_runs = here > m->core_runs ? here : m->core_runs;
    }
    return XP_OK;
}

static int by_total(const void *a, const void *b)
{
    const struct figure_module *x = a, *y = b;
    if (x->total_ps != y->total_ps)
        return x->total_ps > y->total_ps ? -1 : 1;
    return xp_span_cmp(x->name, y->name);
}

void figure_choose_module(struct figure_build *b)
{
    struct figure_module *v = VEC(b->modules, struct figure_module);
    if (b->modules.n)
        qsort(v, b->modules.n, sizeof *v, by_total);
    for (size_t i = 0; i < b->modules.n; i++) {
        bool asked = b->marker.n && (xp_span_eq(v[i].name, b->marker) ||
                                     xp_span_eq(figure_plain(v[i].name), b->marker));
        if (b->marker.n ? !asked : v[i].core_runs < 2)
            continue;
        b->host->basis = FIGURE_MODULE_RUNS;
        b->host->marker = v[i].name;
        return;
    }
}

static enum xp_status module_steps(struct figure_build *b, uint32_t plane, struct vec *steps)
{
    const struct derive_line *l = modules_line(b, plane);
    struct derive_eye eye;
    struct line_cursor c;
    struct lane_event e;
    if (!l)
        return XP_OK;
    if (line_seek(&c, l->line, INT64_MIN, b->scratch) != XP_OK)
        return figure_busy(b->err);
    derive_look(&eye, b->d, l);
    while (line_next(&c, &e, NULL)) {
        int64_t base = l->line->base_ps;
        struct derive_event ev = {base + e.begin_ps, base + e.end_ps, e.at, e.name};
        if (xp_span_eq(derive_event_name(&eye, &ev, NULL), b->host->marker) &&
            ev.end_ps > ev.begin_ps && !add(steps, (struct xp_span){0}, ev.begin_ps, ev.end_ps))
            return figure_busy(b->err);
    }
    return XP_OK;
}

/* --- events of the host --- */

static enum xp_status line_steps(struct figure_build *b, const struct derive_line *l,
                                 const struct part_plane *pl, struct vec *steps)
{
    struct lane_event e[LANE_BLOCK];
    struct lane_cursor c;
    size_t n;
    for (uint32_t k = 0; k < l->line->nlanes; k++) {
        lane_seek_ord(&c, l->line->lanes[k], 0);
        while ((n = lane_next_block(&c, e)))
            for (size_t i = 0; i < n; i++) {
                if (e[i].name >= pl->nevmeta || e[i].end_ps <= e[i].begin_ps ||
                    !xp_span_eq(figure_plain(part_event_name(b->part, pl, e[i].name)), b->marker))
                    continue;
                if (!add(steps, (struct xp_span){0}, l->line->base_ps + e[i].begin_ps,
                         l->line->base_ps + e[i].end_ps))
                    return figure_busy(b->err);
            }
    }
    return XP_OK;
}

enum xp_status figure_event_steps(struct figure_build *b, struct vec *steps)
{
    for (uint32_t p = 0; p < b->part->nplanes; p++) {
        const struct derive_plane *dp = &b->d->planes[p];
        for (uint32_t i = 0; dp->host && i < dp->nlines; i++) {
            const struct derive_line *l = &b->d->lines[dp->first_line + i];
            if (!l->line->derived && !l->own_names)
                XP_TRY(line_steps(b, l, &b->part->planes[p], steps));
        }
    }
    return XP_OK;
}

/* --- all --- */

static int by_begin(const void *a, const void *b)
{
    const struct figure_step *x = a, *y = b;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    return (x->end_ps < y->end_ps) - (x->end_ps > y->end_ps);
}

/* Steps that overlap the one before (a marker inside another) are none. */
void figure_finish_steps(struct figure_build *b, struct vec *steps, bool device_marked)
{
    struct figure_step *v = VEC(*steps, struct figure_step);
    size_t n = 0;
    if (steps->n)
        qsort(v, steps->n, sizeof *v, by_begin);
    for (size_t i = 0; i < steps->n; i++)
        if (!n || v[i].begin_ps >= v[n - 1].end_ps)
            v[n++] = v[i];
    if (n > FIGURE_STEPS_MAX) {
        n = FIGURE_STEPS_MAX;
        b->host->steps_cut = true;
    }
    steps->n = n;
    for (size_t i = 0; i < n; i++) {
        if (v[i].number == NO_NUMBER)
            v[i].number = figure_step_number(v[i].name, (int64_t)i);
        v[i].until_ps = i + 1 < n ? v[i + 1].begin_ps : v[i].end_ps;
        v[i].whole = !device_marked || i + 1 < n || n == 1 || b->host->steps_cut;
        v[i].last = i && i + 1 == n;
        if (device_marked && figure_length(v[i].end_ps, v[i].until_ps) >
                                 figure_length(v[i].begin_ps, v[i].end_ps) / 50)
            v[i].until_ps = v[i].end_ps;
    }
}

/* --- a plane's scratch, dropped with it: a file may have a million planes --- */

static struct xp_arena *begin_plane(struct figure_build *b)
{
    struct xp_arena *all = b->scratch;
    b->scratch = xp_arena_new(NULL);
    return all;
}

static enum xp_status end_plane(struct figure_build *b, struct xp_arena *all, enum xp_status st)
{
    xp_arena_free(b->scratch);
    b->scratch = all;
    return st;
}

enum xp_status figure_marked_steps(struct figure_build *b, uint32_t plane, struct vec *steps)
{
    struct xp_arena *all = begin_plane(b);
    return end_plane(b, all, b->scratch ? marked_steps(b, plane, steps) : figure_busy(b->err));
}

enum xp_status figure_count_modules(struct figure_build *b, uint32_t plane)
{
    struct xp_arena *all = begin_plane(b);
    return end_plane(b, all, b->scratch ? count_modules(b, plane) : figure_busy(b->err));
}

enum xp_status figure_module_steps(struct figure_build *b, uint32_t plane, struct vec *steps)
{
    struct xp_arena *all = begin_plane(b);
    return end_plane(b, all, b->scratch ? module_steps(b, plane, steps) : figure_busy(b->err));
}
