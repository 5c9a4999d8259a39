#include "shard/query/query_int.h"

enum xp_status query_select(struct query_book *b, const struct query_rows *rows, bool derived,
                            struct xp_arena *a, struct query_lines *out, struct xp_error *err)
{
    const struct part *p = b->p;
    bool beyond = rows->n && rows->lines[rows->n - 1] >= p->nlines;
    *out = (struct query_lines){0};
    if (beyond || (!rows->n && derived))
        XP_TRY(query_derive(b, a, err));
    size_t n = rows->n ? rows->n : (size_t)p->nlines + (derived ? b->nmade : 0);
    out->v = xp_arena_alloc(a, (n + 1) * sizeof *out->v);
    if (!out->v)
        return xp_fail(err, XP_BUSY, 0, "no memory left for a list of %zu rows", n);
    uint32_t plane = UINT32_MAX; /* a plane that is published meanwhile is in whole or not at all */
    bool ready = false;
    for (size_t i = 0; i < n; i++) {
        uint32_t number = rows->n ? rows->lines[i] : (uint32_t)i;
        if (number >= p->nlines) {
            if (number - p->nlines >= b->nmade)
                return xp_fail(err, XP_BAD_REQUEST, 0,
                               "rows: there is no line %u, the profile has %u and %u derived ones",
                               number, p->nlines, b->nmade);
            out->v[out->n++] = b->made[number - p->nlines];
            continue;
        }
        const struct part_line *l = &p->lines[number];
        if (l->plane != plane) {
            plane = l->plane;
            ready = plane_ready(&p->planes[plane]);
        }
        if (ready)
            out->v[out->n++] = (struct query_line){.line = l, .number = number};
    }
    return XP_OK;
}

/* From the first begin to the last end of everything published. */
static void extent(const struct part *p, int64_t *begin, int64_t *end)
{
    bool any = false;
    *begin = *end = 0;
    for (uint32_t i = 0; i < p->nplanes; i++) {
        const struct part_plane *pl = &p->planes[i];
        if (!plane_ready(pl))
            continue;
        for (uint32_t k = 0; k < pl->nlines; k++) {
            const struct part_line *l = &p->lines[pl->first_line + k];
            if (!l->nevents)
                continue;
            if (!any || l->begin_ps < *begin)
                *begin = l->begin_ps;
            if (!any || l->end_ps > *end)
                *end = l->end_ps;
            any = true;
        }
    }
}

enum xp_status query_times(const struct part *p, int64_t t0_ps, int64_t t1_ps,
                           struct query_span *out, struct xp_error *err)
{
    *out = (struct query_span){t0_ps, t1_ps, false};
    if (t0_ps == 0 && t1_ps == 0) {
        extent(p, &out->t0_ps, &out->t1_ps);
        out->t1_ps = query_add(out->t1_ps, 1);
        out->whole = true;
        if (out->t0_ps == INT64_MAX)
            out->t0_ps--;
        return XP_OK;
    }
    if (t0_ps >= t1_ps)
        return xp_fail(err, XP_BAD_REQUEST, 0, "t0 (%lld) must be less than t1 (%lld)",
                       (long long)t0_ps, (long long)t1_ps);
    return XP_OK;
}

void query_progress(const struct part *p, struct query_progress *out)
{
    *out = (struct query_progress){.loading = !part_ready(p), .planes_total = p->nplanes};
    out->bytes_done = atomic_load_explicit(&((struct part *)p)->bytes_done, memory_order_relaxed);
    out->bytes_total = p->size;
    for (uint32_t i = 0; i < p->nplanes; i++)
        out->planes_done +=
            atomic_load_explicit(&p->planes[i].state, memory_order_acquire) >= PART_READY;
    if (!out->loading)
        out->partial = p->partial;
}

enum query_kind query_plane_kind(struct xp_span name)
{
    if (xp_span_starts(name, XP_SPAN_LIT("/device:CUSTOM:")))
        return QUERY_CUSTOM;
    if (xp_span_starts(name, XP_SPAN_LIT("/device:")))
        return QUERY_DEVICE;
    if (xp_span_eq(name, XP_SPAN_LIT("/host:metadata")))
        return QUERY_OTHER;
    return xp_span_starts(name, XP_SPAN_LIT("/host:")) ? QUERY_HOST : QUERY_OTHER;
}

struct xp_span query_cut(struct xp_span s, size_t max)
{
    if (s.n <= max)
        return s;
    size_t n = max;
    while (n > 0 && max - n < 3 && (s.p[n] & 0xc0) == 0x80)
        n--;
    return xp_span_of(s.p, n);
}
