#include "shard/stats/steps_int.h"

/* Kernels and copies of GPU planes, by group. The plane's line of steps says which groups count. */

/* Writers have signed and unsigned ids. */
static bool is_ours(int64_t id)
{
    return (int32_t)id >= (int32_t)DERIVE_LINE_FIRST &&
           (int32_t)id <= (int32_t)DERIVE_LINE_GPU_LAST;
}

static bool is_steps(int64_t id)
{
    return (int32_t)id == (int32_t)DERIVE_LINE_STEPS;
}

static bool line_markers(const struct derive *d, const struct derive_line *l,
                         struct step_groups *marks)
{
    struct derive_eye eye;
    struct lane_cursor c;
    struct lane_event e;
    derive_look(&eye, d, l);
    for (uint32_t k = 0; k < l->line->nlanes; k++) {
        lane_seek_ord(&c, l->line->lanes[k], 0);
        while (lane_next(&c, &e)) {
            int64_t base = l->line->base_ps;
            struct derive_event ev = {base + e.begin_ps, base + e.end_ps, e.at, e.name};
            int64_t id = derive_group(&eye, &ev);
            struct step_group *g = id == DERIVE_NO_GROUP ? NULL : step_groups_get(marks, id);
            if (!g && id != DERIVE_NO_GROUP)
                return false;
            uint64_t begin = step_time(ev.begin_ps), duration = step_time(ev.end_ps) - begin;
            if (!g || duration <= g->device_ps)
                continue;
            g->device_begin_ps = begin;
            g->device_ps = duration;
        }
    }
    return true;
}

/* A negative correlation is none; XProf reads other types than signed as 0. */
static bool is_correlated(struct derive_eye *eye, uint64_t at, struct xp_span *shapes)
{
    if (!eye->side.side || !side_find(&eye->side, at))
        return false;
    const struct side_stat *s = side_get(&eye->side, STAT_CORRELATION_ID);
    if (!s || (s->type == SIDE_I64 && (int64_t)s->num < 0))
        return false;
    s = side_get(&eye->side, STAT_SHAPE);
    *shapes =
        s && s->type == SIDE_STR ? part_str(eye->d->part, (uint32_t)s->num) : (struct xp_span){0};
    return true;
}

static bool add_event(struct derive_eye *eye, const struct derive_event *ev,
                      struct step_groups *marks, struct step_groups *groups)
{
    struct xp_span shapes;
    int64_t id = derive_group(eye, ev);
    const struct step_group *m = id < 0 ? NULL : step_groups_find(marks, id);
    if (!m || !is_correlated(eye, ev->at, &shapes))
        return true;
    struct step_group *g = step_groups_get(groups, id);
    if (!g)
        return false;
    if (m->device_ps > g->device_ps) {
        g->device_begin_ps = m->device_begin_ps;
        g->device_ps = m->device_ps;
    }
    const struct part_plane *pl = &eye->d->part->planes[eye->line->plane];
    struct xp_span name = ev->name < pl->nevmeta ? part_str(eye->d->part, pl->evmeta[ev->name].name)
                                                 : (struct xp_span){0};
    struct step_span *s = vec_push(&g->spans, sizeof *s);
    if (s)
        *s = (struct step_span){step_time(ev->begin_ps), step_time(ev->end_ps),
                                (uint8_t)step_type_of_gpu(name, shapes)};
    return s;
}

static bool line_events(const struct derive *d, const struct derive_line *l,
                        struct step_groups *marks, struct step_groups *groups)
{
    struct derive_eye eye;
    struct lane_event e[LANE_BLOCK];
    struct lane_cursor c;
    size_t n;
    for (uint32_t k = 0; k < l->line->nlanes; k++) {
        derive_look(&eye, d, l);
        lane_seek_ord(&c, l->line->lanes[k], 0);
        while ((n = lane_next_block(&c, e)))
            for (size_t i = 0; i < n; i++) {
                int64_t base = l->line->base_ps;
                struct derive_event ev = {base + e[i].begin_ps, base + e[i].end_ps, e[i].at,
                                          e[i].name};
                if (!add_event(&eye, &ev, marks, groups))
                    return false;
            }
    }
    return true;
}

static bool plane_events(const struct derive *d, const struct derive_plane *dp,
                         struct step_groups *groups)
{
    struct step_groups marks = {0};
    bool ok = true;
    for (uint32_t i = 0; ok && i < dp->nlines; i++)
        if (is_steps(d->lines[dp->first_line + i].line->id))
            ok = line_markers(d, &d->lines[dp->first_line + i], &marks);
    for (uint32_t i = 0; ok && marks.v.n && i < dp->nlines; i++) {
        const struct derive_line *l = &d->lines[dp->first_line + i];
        if (!l->own_names && !is_ours(l->line->id))
            ok = line_events(d, l, &marks, groups);
    }
    step_groups_free(&marks);
    return ok;
}

bool step_gpu_events(const struct derive *d, struct step_groups *g)
{
    bool ok = true;
    for (uint32_t i = 0; ok && i < d->part->nplanes; i++)
        if (d->planes[i].gpu)
            ok = plane_events(d, &d->planes[i], g);
    return ok;
}
