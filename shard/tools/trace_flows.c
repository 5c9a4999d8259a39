#include "lib/base/hash.h"
#include "shard/derive/pick.h"
#include "shard/tools/trace.h"
#include "shard/tools/trace_merge.h"
#include "shard/tools/trace_vis.h"

/* The layers of flow events. The first event of a flow decides for all of it, and XProf decides
 * about flow events without looking at others: so that one pass over them, in time order, is
 * enough, and is done once for a part. */

#define FLOW_LAYERS TRACE_LAST_LAYER

struct flow_state {
    uint64_t id;
    uint16_t known, shown; /* by layer: XProf's map, which forgets a flow at its end */
    uint8_t layer;         /* of the first event */
    bool used;
};

struct flows_work {
    struct trace_host *h;
    struct vec events; /* struct trace_flow_event */
    struct trace_flow_row *rows;
    struct flow_state *states;
    size_t mask, nstates;
    struct trace_vis *vis; /* row * FLOW_LAYERS + layer */
    int64_t *last;         /* async: track * FLOW_LAYERS + layer */
    bool *has_last;
};

/* --- which events --- */

static int row_order(const void *a, const void *b, void *ctx)
{
    (void)ctx;
    const struct trace_flow_event *x = a, *y = b;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    if (x->end_ps != y->end_ps)
        return x->end_ps > y->end_ps ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static int file_order(const void *a, const void *b, void *ctx)
{
    (void)ctx;
    const struct plane_event *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static bool line_flows(struct flows_work *w, uint32_t row, uint32_t line)
{
    struct trace_host *h = w->h;
    const struct derive_line *l = &h->d->lines[line];
    uint64_t kinds = UINT64_C(1) << STAT_FLOW | UINT64_C(1) << STAT_CORRELATION_ID |
                     UINT64_C(1) << STAT_PRODUCER_ID | UINT64_C(1) << STAT_CONSUMER_ID |
                     UINT64_C(1) << STAT_RUN_ID | UINT64_C(1) << STAT_REQUEST_ID |
                     UINT64_C(1) << STAT_STEP_ID;
    struct vec picked = {0};
    struct derive_eye eye;
    /* in order of the file, in which the statistics are, and not lane by lane */
    bool ok = derive_pick(l, line, kinds, NULL, 0, 0, &picked) &&
              trace_merge_sort(picked.p, picked.n, sizeof(struct plane_event), file_order, NULL);
    uint32_t device = VEC(h->rows, struct trace_row)[row].device;
    derive_look(&eye, h->d, l);
    for (size_t i = 0; ok && i < picked.n; i++) {
        const struct plane_event *p = &VEC(picked, struct plane_event)[i];
        struct derive_event ev = {p->begin_ps, p->end_ps, p->at, p->name};
        struct derive_flow flow;
        if (trace_hidden(h, l, p->name) || !derive_flow(&eye, &ev, &flow))
            continue;
        struct trace_flow_event *e = vec_push(&w->events, sizeof *e);
        ok = e;
        if (!e)
            break;
        *e = (struct trace_flow_event){p->begin_ps, p->end_ps, p->at,    flow.id, p->name,
                                       line,        0,         flow.dir, 0,       flow.async};
        if (flow.async) {
            struct xp_span name = derive_event_name(&eye, &ev, NULL);
            e->track_name = trace_track_of(h, device, TRACE_ASYNC, name);
            ok = e->track_name != UINT32_MAX;
        }
    }
    vec_free(&picked);
    return ok;
}

static bool find_flows(struct flows_work *w)
{
    struct trace_host *h = w->h;
    for (uint32_t r = 0; r < h->rows.n; r++) {
        const struct trace_row *row = &VEC(h->rows, struct trace_row)[r];
        uint32_t first = (uint32_t)w->events.n, last_line = UINT32_MAX;
        for (uint32_t k = 0; !row->counter && row->may_flow && k < row->nlanes; k++) {
            uint32_t line = VEC(h->lanes, struct trace_lane)[row->first_lane + k].line;
            if (line != last_line && !line_flows(w, r, line))
                return false;
            last_line = line;
        }
        w->rows[r] = (struct trace_flow_row){first, (uint32_t)w->events.n - first, 0, 0, 0, 0};
        for (size_t i = first; i < w->events.n; i++) {
            const struct trace_flow_event *e = &VEC(w->events, struct trace_flow_event)[i];
            w->rows[r].nasync += e->async;
            if (e->end_ps - e->begin_ps > w->rows[r].longest_ps)
                w->rows[r].longest_ps = e->end_ps - e->begin_ps;
        }
        if (w->rows[r].n &&
            !trace_merge_sort(VEC(w->events, struct trace_flow_event) + first, w->rows[r].n,
                              sizeof(struct trace_flow_event), row_order, NULL))
            return false;
    }
    return true;
}

/* --- in which order --- */

struct order_key {
    int64_t begin_ps;
    uint32_t event, row;
};

static struct xp_span flow_name(const struct trace_host *h, const struct trace_flow_event *e)
{
    if (e->async)
        return VEC(h->tracks, struct trace_track)[e->track_name].name;
    return part_event_name(h->part, &h->part->planes[h->d->lines[e->line].plane], e->name);
}

static int global_order(const void *a, const void *b, void *ctx)
{
    const struct order_key *p = a, *q = b;
    if (p->begin_ps != q->begin_ps)
        return p->begin_ps < q->begin_ps ? -1 : 1;
    const struct flows_work *w = ctx;
    const struct trace_flow_event *x = &VEC(w->events, struct trace_flow_event)[p->event],
                                  *y = &VEC(w->events, struct trace_flow_event)[q->event];
    const struct trace_row *rows = w->h->rows.p;
    if (x->end_ps != y->end_ps)
        return x->end_ps > y->end_ps ? -1 : 1;
    if (rows[p->row].device != rows[q->row].device)
        return rows[p->row].device < rows[q->row].device ? -1 : 1;
    if (x->async != y->async)
        return x->async ? 1 : -1;
    if (!x->async && p->row != q->row)
        return p->row < q->row ? -1 : 1;
    int c = xp_span_cmp(flow_name(w->h, x), flow_name(w->h, y));
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

/* --- deciding --- */

static struct flow_state *state_of(struct flows_work *w, uint64_t id)
{
    size_t i = xp_hash_u64(id) & w->mask;
    while (w->states[i].used && w->states[i].id != id)
        i = (i + 1) & w->mask;
    return &w->states[i];
}

static bool async_shown(struct flows_work *w, const struct trace_flow_event *e, int layer,
                        bool force)
{
    size_t i = (size_t)e->track_name * FLOW_LAYERS + (size_t)layer;
    bool shown = force || !w->has_last[i] || e->begin_ps - w->last[i] >= trace_resolution_ps[layer];
    if (shown) {
        w->last[i] = e->begin_ps;
        w->has_last[i] = true;
    }
    return shown;
}

/* XProf's VisibleAtResolution of a flow event. Sets *ok to false when memory is out. */
static bool flow_shown(struct trace_vis *v, struct flow_state *s, const struct trace_flow_event *e,
                       int layer, bool *ok)
{
    int64_t res = trace_resolution_ps[layer];
    uint16_t bit = (uint16_t)(1 << layer);
    size_t depth = trace_vis_depth(v, e->begin_ps);
    bool shown = e->end_ps - e->begin_ps >= res || trace_vis_apart(v, depth, e->begin_ps, res);
    bool fresh = !(s->known & bit);
    if (fresh) {
        s->known |= bit;
        s->shown = (uint16_t)(shown ? s->shown | bit : s->shown & ~bit);
    }
    if (!shown) {
        if (fresh && trace_vis_flow_apart(v, e->end_ps, res))
            s->shown |= bit;
        shown = s->shown & bit;
    }
    if (e->dir == DERIVE_DIR_IN)
        s->known &= (uint16_t)~bit;
    if (shown) {
        v->last_flow = e->end_ps;
        v->has_flow = true;
        *ok = *ok && trace_vis_show(v, depth, e->end_ps);
    }
    return shown;
}

static void flow_show(struct trace_vis *v, struct flow_state *s, const struct trace_flow_event *e,
                      int layer, bool *ok)
{
    uint16_t bit = (uint16_t)(1 << layer);
    if (e->dir == DERIVE_DIR_IN) {
        s->known &= (uint16_t)~bit;
    } else if (!(s->known & bit)) {
        s->known |= bit;
        s->shown |= bit;
    }
    v->last_flow = e->end_ps;
    v->has_flow = true;
    *ok = *ok && trace_vis_show(v, trace_vis_depth(v, e->begin_ps), e->end_ps);
}

static uint8_t layer_by_length(int64_t dur)
{
    uint8_t z = 0;
    while (z < TRACE_LAST_LAYER && dur < trace_resolution_ps[z])
        z++;
    return z;
}

static bool decide(struct flows_work *w, struct trace_flow_event *e, uint32_t row)
{
    struct flow_state *s = state_of(w, e->id);
    struct trace_vis *v = &w->vis[(size_t)row * FLOW_LAYERS];
    bool ok = true, first = !s->used;
    if (first)
        *s = (struct flow_state){.id = e->id, .used = true};
    int z = 0;
    while (z < FLOW_LAYERS &&
           !(e->async ? async_shown(w, e, z, false) : flow_shown(&v[z], s, e, z, &ok)))
        z++;
    if (first)
        s->layer = (uint8_t)z;
    for (int i = z + 1; i < FLOW_LAYERS; i++) {
        if (e->async)
            async_shown(w, e, i, true);
        else
            flow_show(&v[i], s, e, i, &ok);
    }
    uint8_t own = layer_by_length(e->end_ps - e->begin_ps);
    e->layer = s->layer < own ? s->layer : own;
    return ok;
}

static bool decide_all(struct flows_work *w)
{
    struct trace_host *h = w->h;
    size_t n = w->events.n, at = 0;
    struct order_key *keys = malloc((n + 1) * sizeof *keys);
    size_t size = 64;
    while (size < n * 2)
        size *= 2;
    w->mask = size - 1;
    w->states = calloc(size, sizeof *w->states);
    w->vis = calloc(h->rows.n * FLOW_LAYERS + 1, sizeof *w->vis);
    w->last = calloc(h->tracks.n * FLOW_LAYERS + 1, sizeof *w->last);
    w->has_last = calloc(h->tracks.n * FLOW_LAYERS + 1, sizeof *w->has_last);
    bool ok = keys && w->states && w->vis && w->last && w->has_last;
    const struct trace_flow_event *ev = w->events.p;
    for (uint32_t r = 0; ok && r < h->rows.n; r++)
        for (uint32_t i = 0; i < w->rows[r].n; i++)
            keys[at++] =
                (struct order_key){ev[w->rows[r].first + i].begin_ps, w->rows[r].first + i, r};
    ok = ok && trace_merge_sort(keys, n, sizeof *keys, global_order, w);
    for (size_t i = 0; ok && i < n; i++)
        ok = decide(w, &VEC(w->events, struct trace_flow_event)[keys[i].event], keys[i].row);
    for (size_t i = 0; w->vis && i < h->rows.n * FLOW_LAYERS; i++)
        vec_free(&w->vis[i].ends);
    free(keys);
    free(w->states);
    free(w->vis);
    free(w->last);
    free(w->has_last);
    return ok;
}

const struct trace_flow_event *trace_flow_find(const struct trace_flow_event *f, uint32_t n,
                                               const struct trace_event *e)
{
    uint32_t lo = 0, hi = n;
    while (lo < hi) { /* in order of (begin, longer first, at) */
        uint32_t mid = lo + (hi - lo) / 2;
        if (f[mid].begin_ps < e->begin_ps ||
            (f[mid].begin_ps == e->begin_ps &&
             (f[mid].end_ps > e->end_ps || (f[mid].end_ps == e->end_ps && f[mid].at < e->at))))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && f[lo].at == e->at && f[lo].begin_ps == e->begin_ps ? &f[lo] : NULL;
}

/* --- keeping them --- */

/* Lists the events of coarse layers, which a scan from far away is after. */
static bool list_coarse(struct trace_flows *f, struct xp_arena *arena)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->nevents; i++)
        n += f->events[i].layer < TRACE_COARSE && !f->events[i].async;
    f->coarse = xp_arena_alloc(arena, (n + 1) * sizeof *f->coarse);
    n = 0;
    for (uint32_t r = 0; f->coarse && r < f->nrows; r++) {
        struct trace_flow_row *row = &f->rows[r];
        row->first_coarse = n;
        for (uint32_t i = 0; i < row->n; i++)
            if (f->events[row->first + i].layer < TRACE_COARSE && !f->events[row->first + i].async)
                f->coarse[n++] = i;
        row->ncoarse = n - row->first_coarse;
    }
    return f->coarse;
}

static enum xp_status flows_make(struct part *p, const struct derive *d, void **kept,
                                 struct xp_error *err)
{
    struct trace_host h = {.d = d, .part = p};
    struct flows_work w = {.h = &h};
    enum xp_status st = trace_host_init(&h, err);
    struct trace_flows *f = NULL;
    bool ok = st == XP_OK;
    if (ok) {
        w.rows = calloc(h.rows.n + 1, sizeof *w.rows);
        ok = w.rows && find_flows(&w) && decide_all(&w);
    }
    if (ok && (f = xp_arena_zalloc(p->arena, sizeof *f))) {
        f->nrows = (uint32_t)h.rows.n;
        f->nevents = (uint32_t)w.events.n;
        f->rows = xp_arena_alloc(p->arena, (h.rows.n + 1) * sizeof *f->rows);
        f->events = xp_arena_alloc(p->arena, (w.events.n + 1) * sizeof *f->events);
        f->strung = xp_arena_zalloc(p->arena, (h.rows.n + 1) * sizeof *f->strung);
        ok = f->rows && f->events && f->strung;
    }
    if (ok && f) {
        memcpy(f->rows, w.rows, h.rows.n * sizeof *f->rows);
        if (w.events.n)
            memcpy(f->events, w.events.p, w.events.n * sizeof *f->events);
        if (!list_coarse(f, p->arena))
            st = trace_busy(err);
        for (uint32_t r = 0; st == XP_OK && r < h.rows.n; r++)
            st = trace_strung_make(&h, r, f->events + f->rows[r].first, f->rows[r].n, p->arena,
                                   &f->strung[r], err);
        if (st == XP_OK)
            *kept = f;
    } else if (st == XP_OK) {
        st = trace_busy(err);
    }
    vec_free(&w.events);
    free(w.rows);
    trace_host_fini(&h);
    return st;
}

enum xp_status trace_flows_get(struct trace_host *h, struct xp_error *err)
{
    void *kept;
    XP_TRY(derive_keep(h->part, DERIVE_KEPT_FLOWS, flows_make, &kept, err));
    h->flows = kept;
    return XP_OK;
}
