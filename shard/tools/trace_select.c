#include <math.h>

#include "shard/tools/trace.h"
#include "shard/tools/trace_rank.h"

/* --- a window --- */

static int64_t ps_of_ms(double ms)
{
    double ps = ms * 1e9;
    if (!(ps > 0))
        return 0;
    return ps >= 9e18 ? INT64_MAX : (int64_t)ps;
}

static void window_of(const struct trace *t, const struct trace_host *h, struct trace_window *w)
{
    int64_t begin = ps_of_ms(t->req.start_ms), end = ps_of_ms(t->req.end_ms);
    *w = (struct trace_window){.filtered = h->nevents >= TRACE_STREAM_EVENTS};
    w->begin_ps = begin < h->begin_ps ? h->begin_ps : begin;
    w->end_ps = end == 0 || end > h->end_ps ? h->end_ps : end;
    if (w->end_ps < w->begin_ps)
        w->end_ps = w->begin_ps;
    w->instant = w->begin_ps == w->end_ps;
    if (w->filtered && t->req.resolution) {
        double p = (double)(w->end_ps - w->begin_ps) / (double)t->req.resolution;
        w->resolution_ps = llround(p);
    }
    w->layer = trace_layer_of(w->resolution_ps);
}

/* Who looks at everything does not need the index, which takes a walk over everything. */
static void get_index(struct trace_host *h, const struct trace_window *win)
{
    struct xp_error none;
    if (win->filtered && !win->instant && win->resolution_ps && win->layer < TRACE_LAST_LAYER &&
        (win->end_ps - win->begin_ps) <= (h->end_ps - h->begin_ps) / 2 &&
        trace_index_get(h, &none) != XP_OK)
        h->layers = NULL; /* the budget is spent: it goes without */
    if (h->layers)
        trace_rank(h, win->begin_ps, win->end_ps);
}

enum xp_status trace_select_window(struct trace *t, struct trace_host *h)
{
    struct trace_window win;
    window_of(t, h, &win);
    if (win.filtered)
        XP_TRY(trace_flows_get(h, t->err));
    get_index(h, &win);
    uint32_t *bounds = calloc(h->rows.n + 1, sizeof *bounds);
    if (!bounds)
        return trace_busy(t->err);
    enum xp_status st = XP_OK;
    for (uint32_t r = 0; st == XP_OK && r < h->rows.n; r++) {
        if (!trace_row_streams(h, r, t->req.full_dma))
            st = trace_row_events(h, r, &win, t, &h->events, t->err);
        bounds[r + 1] = (uint32_t)h->events.n;
        if (out_cancelled(t->out))
            st = xp_fail(t->err, XP_CANCELLED, 0, "nobody waits for the trace any more");
    }
    if (st == XP_OK && win.resolution_ps && !win.instant)
        st = trace_filter(h, &win, t, bounds, t->err);
    free(bounds);
    return st == XP_OK ? trace_serials(h, t->out, t->err) : st;
}

/* --- a search --- */

struct search {
    struct trace *t;
    struct trace_host *h;
    bool *names; /* of the plane or of derive: does it begin with the prefix? */
    size_t nnames;
};

static bool begins(const struct search *s, struct xp_span name)
{
    return xp_span_starts(name, s->t->req.search_prefix);
}

/* Which names of the line's events match; whether any can. */
static bool mark_names(struct search *s, const struct derive_line *l, bool *any)
{
    const struct derive *d = s->h->d;
    size_t n = l->own_names ? d->nnames : s->h->part->planes[l->plane].nevmeta;
    bool *names = realloc(s->names, (n + 1) * sizeof *names);
    if (!names)
        return false;
    s->names = names;
    s->nnames = n;
    *any = l->named_by_step || d->nroots || d->planes[l->plane].kinds >> STAT_STEP_NAME & 1;
    for (uint32_t i = 0; i < n; i++) {
        struct xp_span name;
        if (l->own_names) {
            const struct derive_name *x = &d->names[i];
            name = xp_strpool_get(&d->strings, x->display ? x->display : x->name);
        } else {
            name = part_event_name(s->h->part, &s->h->part->planes[l->plane], i);
        }
        names[i] = begins(s, name);
        *any |= names[i];
    }
    return true;
}

static bool is_root(const struct derive *d, uint64_t at)
{
    uint32_t lo = 0, hi = d->nroots;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (d->roots[mid].at < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < d->nroots && d->roots[lo].at == at;
}

/* Whether the event is called by a name that begins as asked, and is shown. */
static bool search_hits(struct search *s, const struct trace_row *row, const struct derive_line *l,
                        struct derive_eye *eye, bool steps, const struct derive_event *de)
{
    const struct derive *d = s->h->d;
    bool hit = de->name < s->nnames && s->names[de->name];
    if (steps || (d->nroots && !l->own_names && is_root(d, de->at)))
        hit = begins(s, derive_event_name(eye, de, NULL));
    return hit && !(row->may_hide && trace_hidden(s->h, l, de->name));
}

/* False: the middle of a flow on a TPU, which is shown with full_dma only. */
static bool search_kind(const struct search *s, const struct trace_row *row, struct derive_eye *eye,
                        const struct derive_event *de, enum trace_kind *kind)
{
    bool tpu = VEC(s->h->devices, struct trace_device)[row->device].tpu && s->h->tpu;
    struct derive_flow flow;
    *kind = row->counter ? TRACE_COUNTER : TRACE_THREAD;
    if (row->counter || !row->may_flow || !derive_flow(eye, de, &flow))
        return true;
    if (flow.async)
        *kind = TRACE_ASYNC;
    return !tpu || flow.dir != DERIVE_DIR_BOTH || s->t->req.full_dma;
}

/* False: no memory is left. */
static bool search_add(struct search *s, const struct trace_row *row, struct derive_eye *eye,
                       struct trace_event e)
{
    struct trace_host *h = s->h;
    struct derive_event de = trace_derive_event(&e);
    enum trace_kind kind;
    if (!search_kind(s, row, eye, &de, &kind))
        return true;
    if (kind != TRACE_THREAD)
        e.track = trace_track_of(h, row->device, kind, derive_event_name(eye, &de, NULL)) + 1;
    struct trace_event *out = vec_push(&h->events, sizeof *out);
    if (!out || (kind != TRACE_THREAD && !e.track))
        return false;
    *out = e;
    return true;
}

static bool search_lane(struct search *s, const struct trace_row *row, const struct trace_lane *tl,
                        struct derive_eye *eye)
{
    const struct derive_line *l = eye->line;
    bool steps = l->named_by_step || s->h->d->planes[l->plane].kinds >> STAT_STEP_NAME & 1;
    struct lane_event ev[LANE_BLOCK];
    struct lane_cursor c;
    lane_seek_ord(&c, tl->lane, 0);
    for (size_t n; (n = lane_next_block(&c, ev));) {
        for (size_t i = 0; i < n; i++) {
            struct trace_event e = {.begin_ps = tl->base_ps + ev[i].begin_ps,
                                    .end_ps = tl->base_ps + ev[i].end_ps,
                                    .at = ev[i].at,
                                    .name = ev[i].name,
                                    .line = tl->line};
            struct derive_event de = trace_derive_event(&e);
            if (search_hits(s, row, l, eye, steps, &de) && !search_add(s, row, eye, e))
                return false;
        }
        if (out_cancelled(s->t->out))
            return true;
    }
    return true;
}

bool trace_is_middle(const struct trace *t, const struct trace_host *h, struct derive_eye *eye,
                     const struct trace_event *e)
{
    struct derive_event de = trace_derive_event(e);
    struct derive_flow flow;
    return h->tpu && !t->req.full_dma && h->d->planes[eye->line->plane].tpu &&
           derive_flow(eye, &de, &flow) && flow.dir == DERIVE_DIR_BOTH;
}

enum xp_status trace_select_search(struct trace *t, struct trace_host *h)
{
    if (trace_is_strung(h))
        return trace_table_search(t, h);
    struct search s = {.t = t, .h = h};
    bool ok = true, any = false;
    uint32_t line = UINT32_MAX;
    struct derive_eye eye;
    for (uint32_t r = 0; ok && r < h->rows.n; r++) {
        const struct trace_row *row = &VEC(h->rows, struct trace_row)[r];
        for (uint32_t i = 0; ok && i < row->nlanes; i++) {
            const struct trace_lane *tl = &VEC(h->lanes, struct trace_lane)[row->first_lane + i];
            if (tl->line != line) {
                line = tl->line;
                derive_look(&eye, h->d, &h->d->lines[line]);
                ok = mark_names(&s, eye.line, &any);
            }
            ok = ok && (!any || search_lane(&s, row, tl, &eye));
        }
        if (out_cancelled(t->out)) {
            free(s.names);
            return xp_fail(t->err, XP_CANCELLED, 0, "nobody waits for the trace any more");
        }
    }
    free(s.names);
    return ok ? trace_serials(h, t->out, t->err) : trace_busy(t->err);
}

/* --- one event --- */

enum xp_status trace_select_event(struct trace *t, struct trace_host *h)
{
    double begin = round(t->req.start_ms * 1e9), dur = round(t->req.duration_ms * 1e9);
    if (!(begin >= 0 && begin < 9e18 && dur >= 0 && dur < 9e18))
        return xp_fail(t->err, XP_NOT_FOUND, 0, "no event begins then");
    struct vec at = {0};
    enum xp_status st = trace_events_at(h, (int64_t)begin, &at, t->err);
    bool found = false;
    if (st == XP_OK && t->req.unique_id < at.n && t->req.unique_id <= TRACE_SERIAL_MAX) {
        struct trace_event *e = &VEC(at, struct trace_event)[t->req.unique_id];
        struct derive_event de = trace_derive_event(e);
        struct derive_eye eye;
        derive_look(&eye, h->d, &h->d->lines[e->line]);
        if (xp_span_eq(derive_event_name(&eye, &de, NULL), t->req.event_name) &&
            e->end_ps - e->begin_ps == (int64_t)dur) {
            struct trace_event *out = vec_push(&h->events, sizeof *out);
            if (out)
                *out = *e;
            else
                st = trace_busy(t->err);
            found = true;
        }
    }
    vec_free(&at);
    if (st == XP_OK && !found)
        st = xp_fail(t->err, XP_NOT_FOUND, 0, "no such event");
    return st;
}
