#include "lib/base/hash.h"
#include "shard/derive/pick.h"
#include "shard/tools/trace.h"
#include "shard/tools/trace_merge.h"
#include "shard/tools/trace_vis.h"

/* The layers of flow events. The first event of a flow decides for all of it, and XProf decides
 * about flow events without looking at others: so that one pass over them, in time order, is
 * enough, and is done once for a part. */

#define FLOW_LAYERS TRACE_LAST_LAYER

#define LINES_MAX (1 << 25)
#define KINDS                                                                                      \
    (UINT64_C(1) << STAT_FLOW | UINT64_C(1) << STAT_CORRELATION_ID |                               \
     UINT64_C(1) << STAT_PRODUCER_ID | UINT64_C(1) << STAT_CONSUMER_ID |                           \
     UINT64_C(1) << STAT_RUN_ID | UINT64_C(1) << STAT_REQUEST_ID | UINT64_C(1) << STAT_STEP_ID)

struct flow_state {
    uint64_t id;
    uint16_t known, shown; /* by layer: XProf's map, which forgets a flow at its end */
    uint8_t layer;         /* of the first event */
    bool used;
};

struct flows_work {
    struct trace_host *h;
    struct trace_flows *f;
    uint32_t *tracks;  /* one an event: of asynchronous ones */
    uint64_t most;     /* events with stats that can make flows: those of all lines */
    uint32_t *counts;  /* one a line: events with stats that can make flows */
    struct vec states; /* struct flow_state, by number */
    uint32_t *numbers; /* open addressing over states by id: number + 1 */
    size_t mask;
    uint32_t *name_tracks; /* of the line's names, + 1 */
    struct trace_vis *vis; /* row * FLOW_LAYERS + layer */
    int64_t *last;         /* async: track * FLOW_LAYERS + layer */
    bool *has_last;        /* by track: the first event of one is shown at all layers */
};

struct row_event {
    struct trace_flow_event ev;
    uint32_t track;
};

/* --- which events --- */

static int row_order(const void *a, const void *b, void *ctx)
{
    (void)ctx; /* a struct row_event begins with its event */
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

/* The flow's number; UINT32_MAX when memory is out. */
static uint32_t flow_number(struct flows_work *w, uint64_t id)
{
    if (w->states.n * 2 >= w->mask) {
        size_t size = w->numbers ? (w->mask + 1) * 4 : 1024;
        uint32_t *numbers = calloc(size, sizeof *numbers);
        if (!numbers)
            return UINT32_MAX;
        free(w->numbers);
        w->numbers = numbers;
        w->mask = size - 1;
        for (uint32_t n = 0; n < w->states.n; n++) {
            size_t i = xp_hash_u64(VEC(w->states, struct flow_state)[n].id) & w->mask;
            while (numbers[i])
                i = (i + 1) & w->mask;
            numbers[i] = n + 1;
        }
    }
    size_t i = xp_hash_u64(id) & w->mask;
    for (; w->numbers[i]; i = (i + 1) & w->mask)
        if (VEC(w->states, struct flow_state)[w->numbers[i] - 1].id == id)
            return w->numbers[i] - 1;
    struct flow_state *s = vec_push(&w->states, sizeof *s);
    if (!s)
        return UINT32_MAX;
    *s = (struct flow_state){.id = id};
    w->numbers[i] = (uint32_t)w->states.n;
    return (uint32_t)w->states.n - 1;
}

/* The track of an asynchronous event, which its name decides unless it is called by its step. */
static uint32_t track_of(struct flows_work *w, uint32_t device, struct derive_eye *eye,
                         const struct derive_event *ev)
{
    uint32_t *known = NULL;
    if (w->name_tracks && ev->name < w->h->part->planes[eye->line->plane].nevmeta &&
        !derive_step_name(eye, ev).n)
        known = &w->name_tracks[ev->name];
    if (known && *known)
        return *known - 1;
    uint32_t track = trace_track_of(w->h, device, TRACE_ASYNC, derive_event_name(eye, ev, NULL));
    if (known && track != UINT32_MAX)
        *known = track + 1;
    return track;
}

static bool add_flow(struct flows_work *w, uint32_t device, struct derive_eye *eye,
                     const struct plane_event *p)
{
    struct derive_event ev = {p->begin_ps, p->end_ps, p->at, p->name};
    struct derive_flow flow;
    if (trace_hidden(w->h, eye->line, p->name) || !derive_flow(eye, &ev, &flow))
        return true;
    uint32_t number = flow_number(w, flow.id), track = 0;
    if (number == UINT32_MAX || w->f->nevents == w->most)
        return false;
    if (flow.async && (track = track_of(w, device, eye, &ev)) == UINT32_MAX)
        return false;
    w->tracks[w->f->nevents] = track;
    w->f->events[w->f->nevents++] = (struct trace_flow_event){
        p->begin_ps,  p->end_ps, p->at,     number, p->name, p->line & (LINES_MAX - 1),
        flow.dir & 3, 0,         flow.async};
    return true;
}

/* Few of the line's events: they are picked, and put into the order of the file, in which the
 * statistics are. */
static bool few_flows(struct flows_work *w, uint32_t device, struct derive_eye *eye, uint32_t line)
{
    struct vec picked = {0};
    bool ok = derive_pick(eye->line, line, KINDS, NULL, 0, 0, &picked) &&
              trace_merge_sort(picked.p, picked.n, sizeof(struct plane_event), file_order, NULL);
    for (size_t i = 0; ok && i < picked.n; i++)
        ok = add_flow(w, device, eye, &VEC(picked, struct plane_event)[i]);
    vec_free(&picked);
    return ok;
}

/* Many of them, and the file is in order of time. */
static bool many_flows(struct flows_work *w, uint32_t device, struct derive_eye *eye, uint32_t line)
{
    const struct part_line *l = eye->line->line;
    struct xp_arena *scratch = xp_arena_new(NULL);
    struct line_cursor c;
    struct lane_event ev;
    bool ok = scratch && line_seek(&c, l, INT64_MIN, scratch) == XP_OK;
    while (ok && line_next(&c, &ev, NULL)) {
        struct plane_event p = {l->base_ps + ev.begin_ps, l->base_ps + ev.end_ps, ev.at, ev.name,
                                line};
        ok = add_flow(w, device, eye, &p);
    }
    xp_arena_free(scratch);
    return ok;
}

static bool line_flows(struct flows_work *w, uint32_t row, uint32_t line)
{
    struct trace_host *h = w->h;
    const struct derive_line *l = &h->d->lines[line];
    uint32_t device = VEC(h->rows, struct trace_row)[row].device;
    struct derive_eye eye;
    if (!w->counts[line])
        return true;
    derive_look(&eye, h->d, l);
    if (!l->own_names)
        w->name_tracks = calloc(h->part->planes[l->plane].nevmeta + 1, sizeof *w->name_tracks);
    bool many = l->line->sorted && w->counts[line] >= l->line->nevents / 4;
    bool ok = many ? many_flows(w, device, &eye, line) : few_flows(w, device, &eye, line);
    free(w->name_tracks);
    w->name_tracks = NULL;
    return ok;
}

static bool row_lines(struct flows_work *w, uint32_t r)
{
    const struct trace_row *row = &VEC(w->h->rows, struct trace_row)[r];
    uint32_t last_line = UINT32_MAX;
    for (uint32_t k = 0; !row->counter && row->may_flow && k < row->nlanes; k++) {
        uint32_t line = VEC(w->h->lanes, struct trace_lane)[row->first_lane + k].line;
        if (line != last_line && !line_flows(w, r, line))
            return false;
        last_line = line;
    }
    return true;
}

/* Mostly they are in order. */
static bool sort_row(struct trace_flow_event *ev, uint32_t *tracks, size_t n)
{
    if (!n || trace_run_end((const char *)ev, 0, n, sizeof *ev, row_order, NULL) == n)
        return true;
    struct row_event *all = malloc(n * sizeof *all);
    for (size_t i = 0; all && i < n; i++)
        all[i] = (struct row_event){ev[i], tracks[i]};
    bool ok = all && trace_merge_sort(all, n, sizeof *all, row_order, NULL);
    for (size_t i = 0; ok && i < n; i++) {
        ev[i] = all[i].ev;
        tracks[i] = all[i].track;
    }
    free(all);
    return ok;
}

static bool find_flows(struct flows_work *w)
{
    struct trace_flows *f = w->f;
    for (uint32_t r = 0; r < f->nrows; r++) {
        struct trace_flow_row *row = &f->rows[r];
        struct trace_flow_event *ev = f->events + f->nevents;
        *row = (struct trace_flow_row){.first = f->nevents};
        if (!row_lines(w, r))
            return false;
        row->n = f->nevents - row->first;
        if (!sort_row(ev, w->tracks + row->first, row->n))
            return false;
        for (uint32_t i = 0; i < row->n; i++) {
            row->nasync += ev[i].async;
            if (ev[i].end_ps - ev[i].begin_ps > row->longest_ps)
                row->longest_ps = ev[i].end_ps - ev[i].begin_ps;
        }
    }
    return true;
}

/* At most so many events have flows: those with a stat that can make one. */
static uint64_t count_most(struct flows_work *w)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < w->h->d->nlines; i++) {
        const struct side *side = w->h->d->lines[i].side;
        uint64_t n = 0, most = side_events(side);
        for (uint64_t left = side_kinds(side) & KINDS; left; left &= left - 1)
            n += side_count(side, (enum stat_kind)__builtin_ctzll(left));
        n = n < most ? n : most;
        w->counts[i] = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
        all += n;
    }
    return all;
}

/* --- in which order --- */

/* Rows are in order of time; each stands at its next event. */
struct order {
    const struct flows_work *w;
    uint32_t *heap, *at; /* rows; where each stands */
    uint32_t nheap;
    struct vec together; /* struct order_key: of one begin and end, in their order */
    size_t next;
};

struct order_key {
    uint32_t event, row;
};

static struct xp_span flow_name(const struct trace_host *h, const struct trace_flow_event *e,
                                uint32_t track)
{
    if (e->async)
        return VEC(h->tracks, struct trace_track)[track].name;
    return part_event_name(h->part, &h->part->planes[h->d->lines[e->line].plane], e->name);
}

static bool sooner(const struct trace_flow_event *x, const struct trace_flow_event *y)
{
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps;
    return x->end_ps > y->end_ps;
}

/* Of events of one begin and end. */
static int together_order(const void *a, const void *b, void *ctx)
{
    const struct order_key *p = a, *q = b;
    const struct flows_work *w = ctx;
    const struct trace_flow_event *x = &w->f->events[p->event], *y = &w->f->events[q->event];
    const struct trace_row *rows = w->h->rows.p;
    if (rows[p->row].device != rows[q->row].device)
        return rows[p->row].device < rows[q->row].device ? -1 : 1;
    if (x->async != y->async)
        return x->async ? 1 : -1;
    if (!x->async && p->row != q->row)
        return p->row < q->row ? -1 : 1;
    int c = xp_span_cmp(flow_name(w->h, x, w->tracks[p->event]),
                        flow_name(w->h, y, w->tracks[q->event]));
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

static inline const struct trace_flow_event *head(const struct order *o, uint32_t row)
{
    return &o->w->f->events[o->at[row]];
}

static void sift(struct order *o, uint32_t i)
{
    uint32_t top = o->heap[i];
    for (uint32_t k; (k = 2 * i + 1) < o->nheap; i = k) {
        if (k + 1 < o->nheap && sooner(head(o, o->heap[k + 1]), head(o, o->heap[k])))
            k++;
        if (!sooner(head(o, o->heap[k]), head(o, top)))
            break;
        o->heap[i] = o->heap[k];
    }
    o->heap[i] = top;
}

static bool order_init(struct order *o, const struct flows_work *w)
{
    const struct trace_flows *f = w->f;
    *o = (struct order){.w = w};
    o->heap = malloc((f->nrows + 1) * sizeof *o->heap);
    o->at = malloc((f->nrows + 1) * sizeof *o->at);
    if (!o->heap || !o->at)
        return false;
    for (uint32_t r = 0; r < f->nrows; r++) {
        o->at[r] = f->rows[r].first;
        if (f->rows[r].n)
            o->heap[o->nheap++] = r;
    }
    for (uint32_t i = o->nheap / 2; i-- > 0;)
        sift(o, i);
    return true;
}

static void order_fini(struct order *o)
{
    free(o->heap);
    free(o->at);
    vec_free(&o->together);
}

static struct order_key take(struct order *o)
{
    uint32_t r = o->heap[0];
    const struct trace_flow_row *row = &o->w->f->rows[r];
    struct order_key key = {o->at[r]++, r};
    if (o->at[r] == row->first + row->n) {
        o->heap[0] = o->heap[--o->nheap];
        if (!o->nheap)
            return key;
    }
    sift(o, 0);
    return key;
}

/* False at the end, or when memory is out: *ok. */
static bool order_next(struct order *o, struct order_key *key, bool *ok)
{
    if (o->next < o->together.n) {
        *key = VEC(o->together, struct order_key)[o->next++];
        return true;
    }
    if (!o->nheap)
        return false;
    *key = take(o);
    const struct trace_flow_event *first = &o->w->f->events[key->event];
    if (!o->nheap || sooner(first, head(o, o->heap[0])))
        return true;
    o->together.n = o->next = 0;
    for (struct order_key k = *key;; k = take(o)) {
        struct order_key *e = vec_push(&o->together, sizeof *e);
        if (!e)
            return *ok = false;
        *e = k;
        if (!o->nheap || sooner(first, head(o, o->heap[0])))
            break;
    }
    qsort_r(o->together.p, o->together.n, sizeof *key, together_order, (void *)o->w);
    *key = VEC(o->together, struct order_key)[o->next++];
    return true;
}

/* --- deciding --- */

/* The coarsest layer at which an asynchronous event is shown; it is at all finer ones. */
static int async_layer(struct flows_work *w, const struct trace_flow_event *e, uint32_t track)
{
    int64_t *last = w->last + (size_t)track * FLOW_LAYERS, begin_ps = e->begin_ps;
    int z = 0;
    while (w->has_last[track] && z < FLOW_LAYERS && begin_ps - last[z] < trace_resolution_ps[z])
        z++;
    for (int i = z; i < FLOW_LAYERS; i++)
        last[i] = begin_ps;
    w->has_last[track] = true;
    return z;
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

/* The coarsest layer at which a flow event is shown; at finer ones it is by force. */
static int sync_layer(struct trace_vis *v, struct flow_state *s, const struct trace_flow_event *e,
                      bool *ok)
{
    int z = 0;
    while (z < FLOW_LAYERS && !flow_shown(&v[z], s, e, z, ok))
        z++;
    for (int i = z + 1; i < FLOW_LAYERS; i++)
        flow_show(&v[i], s, e, i, ok);
    return z;
}

static bool decide(struct flows_work *w, const struct order_key *key)
{
    struct trace_flow_event *e = &w->f->events[key->event];
    struct flow_state *s = &VEC(w->states, struct flow_state)[e->id];
    bool ok = true;
    int z = e->async ? async_layer(w, e, w->tracks[key->event])
                     : sync_layer(&w->vis[(size_t)key->row * FLOW_LAYERS], s, e, &ok);
    if (!s->used)
        s->layer = (uint8_t)z;
    s->used = true;
    uint8_t own = layer_by_length(e->end_ps - e->begin_ps);
    e->layer = (s->layer < own ? s->layer : own) & 15;
    w->f->rows[key->row].ncoarse += e->layer < TRACE_COARSE && !e->async;
    return ok;
}

static bool decide_all(struct flows_work *w)
{
    struct trace_host *h = w->h;
    struct order order;
    struct order_key key;
    w->vis = calloc(h->rows.n * FLOW_LAYERS + 1, sizeof *w->vis);
    w->last = calloc(h->tracks.n * FLOW_LAYERS + 1, sizeof *w->last);
    w->has_last = calloc(h->tracks.n + 1, sizeof *w->has_last);
    bool ok = order_init(&order, w) && w->vis && w->last && w->has_last;
    while (ok && order_next(&order, &key, &ok))
        ok = decide(w, &key);
    order_fini(&order);
    for (size_t i = 0; w->vis && i < h->rows.n * FLOW_LAYERS; i++)
        vec_free(&w->vis[i].ends);
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

/* Lists the events of coarse layers, which a scan from far away is after; they are counted. */
static bool list_coarse(struct trace_flows *f, struct xp_arena *arena)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < f->nrows; r++) {
        f->rows[r].first_coarse = n;
        n += f->rows[r].ncoarse;
    }
    f->coarse = xp_arena_alloc(arena, (n + 1) * sizeof *f->coarse);
    for (uint32_t r = 0; f->coarse && r < f->nrows; r++) {
        const struct trace_flow_row *row = &f->rows[r];
        uint32_t *to = f->coarse + row->first_coarse, *end = to + row->ncoarse;
        for (uint32_t i = 0; to < end; i++)
            if (f->events[row->first + i].layer < TRACE_COARSE && !f->events[row->first + i].async)
                *to++ = i;
    }
    return f->coarse;
}

static bool flows_run(struct flows_work *w, struct xp_arena *arena)
{
    struct trace_flows *f = w->f;
    w->counts = calloc(w->h->d->nlines + 1, sizeof *w->counts);
    if (!w->counts)
        return false;
    w->most = count_most(w);
    w->tracks = malloc((w->most + 1) * sizeof *w->tracks);
    f->nrows = (uint32_t)w->h->rows.n;
    f->rows = xp_arena_zalloc(arena, (f->nrows + 1) * sizeof *f->rows);
    f->strung = xp_arena_zalloc(arena, (f->nrows + 1) * sizeof *f->strung);
    f->events = xp_arena_alloc(arena, (w->most + 1) * sizeof *f->events);
    return w->tracks && f->rows && f->strung && f->events && w->h->d->nlines < LINES_MAX &&
           find_flows(w) && decide_all(w) && list_coarse(f, arena);
}

static enum xp_status flows_make(struct part *p, const struct derive *d, void **kept,
                                 struct xp_error *err)
{
    struct trace_host h = {.d = d, .part = p};
    struct flows_work w = {.h = &h, .f = xp_arena_zalloc(p->arena, sizeof *w.f)};
    enum xp_status st = trace_host_init(&h, err);
    if (st == XP_OK && (!w.f || !flows_run(&w, p->arena)))
        st = trace_busy(err);
    free(w.counts);
    free(w.tracks);
    free(w.numbers);
    vec_free(&w.states);
    for (uint32_t r = 0; st == XP_OK && r < h.rows.n; r++)
        st = trace_strung_make(&h, r, w.f->events + w.f->rows[r].first, w.f->rows[r].n, p->arena,
                               &w.f->strung[r], err);
    if (st == XP_OK)
        *kept = w.f;
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
