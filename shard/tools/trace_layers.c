#include "shard/tools/trace_rank.h"
#include "shard/tools/trace_stream.h"
#include "shard/tools/trace_vis.h"

/* The events of one row that are loaded.
 *
 * Without layers these are the ones that overlap the window. With layers, an event is loaded if
 * the rule of trace_vis.h shows it at one of the resolutions down to the wanted one, coarsest
 * first; a shown event counts as shown at all finer ones.
 *
 * Between two shown events nothing changes, and the rule says from which instant on a short event
 * would be shown again. So the scan asks its lanes for the next event that begins after that
 * instant or is long, and steps over all others by the lanes' pyramids.
 *
 * It begins where the row does. Who looks closely has an index instead (trace_index.c), and reads
 * the lanes near the window only. */

#define LAYERS_MAX TRACE_LAST_LAYER

struct scan_block {
    struct lane_event ev[LANE_BLOCK];
    uint64_t block;
    uint32_t n;
};

/* One lane: where it stands (everything before is done), and the next event that may be shown. */
struct scan_lane {
    const struct lane *lane;
    int64_t base_ps;
    uint32_t line;
    uint64_t nblocks;
    struct scan_block *at, *ahead;
    uint32_t i; /* in at; at->n: at the end of the lane */
    bool has_next;
    int64_t next_from; /* the instant that `next` was searched with */
    struct trace_event next;
};

struct scan {
    struct trace_host *h;
    const struct trace_window *win;
    const struct trace *t;
    struct scan_lane *lanes;
    uint32_t nlanes;
    struct trace_vis vis[LAYERS_MAX];
    int64_t from[LAYERS_MAX]; /* when a short event would be shown */
    int layers;
    const struct trace_flow_event *flows;
    const uint32_t *coarse;
    uint32_t nflows, flow, flow_next; /* passed; next that is loaded */
    uint32_t ncoarse, coarse_next;
    int64_t longest_ps; /* flow event */
    bool may_hide, tpu, drop_middles;
    struct vec *out;
};

/* --- lanes --- */

static void block_load(const struct scan_lane *l, struct scan_block *b, uint64_t block)
{
    struct lane_cursor c;
    lane_seek_ord(&c, l->lane, block * LANE_BLOCK);
    b->n = (uint32_t)lane_next_block(&c, b->ev);
    b->block = block;
}

static inline void event_at(const struct scan_lane *l, const struct lane_event *e,
                            struct trace_event *ev)
{
    *ev = (struct trace_event){.begin_ps = l->base_ps + e->begin_ps,
                               .end_ps = l->base_ps + e->end_ps,
                               .at = e->at,
                               .name = e->name,
                               .line = l->line};
}

/* All events of node i of a level are short and begin before `from` (line time). */
static bool node_dull(const struct scan_lane *l, int level, uint64_t i, int64_t from, int64_t res)
{
    struct lane_node n;
    lane_node_get(l->lane, level, i, &n);
    if (n.longest_ps >= res)
        return false;
    if (i + 1 == lane_nodes(l->lane, level))
        return n.end_ps < from;
    struct lane_node next;
    lane_node_get(l->lane, level, i + 1, &next);
    return next.begin_ps < from;
}

/* The first block from `block` on that is not dull; nblocks if all are. */
static uint64_t skip_blocks(const struct scan_lane *l, uint64_t block, int64_t from, int64_t res)
{
    int levels = lane_levels(l->lane);
    while (block < l->nblocks && node_dull(l, 0, block, from, res)) {
        uint64_t width = 1;
        int level = 0;
        while (level + 1 < levels && block % (width * LANE_FAN) == 0 &&
               node_dull(l, level + 1, block / (width * LANE_FAN), from, res)) {
            level++;
            width *= LANE_FAN;
        }
        block += width;
    }
    return block < l->nblocks ? block : l->nblocks;
}

static int64_t line_time(const struct scan_lane *l, int64_t t)
{
    int64_t v;
    if (__builtin_sub_overflow(t, l->base_ps, &v))
        return t < 0 ? INT64_MIN : INT64_MAX;
    return v;
}

/* Finds `next`: the first event from where the lane stands that begins at or after `from`, or is
 * long. */
static void find_next(struct scan_lane *l, int64_t from, int64_t res)
{
    int64_t t = line_time(l, from);
    l->next_from = from;
    l->has_next = true;
    for (uint32_t i = l->i; i < l->at->n; i++)
        if (l->at->ev[i].begin_ps >= t || l->at->ev[i].end_ps - l->at->ev[i].begin_ps >= res) {
            event_at(l, &l->at->ev[i], &l->next);
            return;
        }
    uint64_t b = l->at->n ? l->at->block + 1 : l->nblocks;
    for (; (b = skip_blocks(l, b, t, res)) < l->nblocks; b++) {
        if (l->ahead->block != b)
            block_load(l, l->ahead, b);
        for (uint32_t i = 0; i < l->ahead->n; i++)
            if (l->ahead->ev[i].begin_ps >= t ||
                l->ahead->ev[i].end_ps - l->ahead->ev[i].begin_ps >= res) {
                event_at(l, &l->ahead->ev[i], &l->next);
                return;
            }
    }
    l->has_next = false;
}

static inline int order(int64_t abegin, int64_t aend, uint64_t aat, int64_t bbegin, int64_t bend,
                        uint64_t bat)
{
    if (abegin != bbegin)
        return abegin < bbegin ? -1 : 1;
    if (aend != bend)
        return aend > bend ? -1 : 1;
    return (aat > bat) - (aat < bat);
}

static inline int event_cmp(const struct trace_event *a, const struct trace_event *b)
{
    return order(a->begin_ps, a->end_ps, a->at, b->begin_ps, b->end_ps, b->at);
}

/* Moves the lane to its first event after `ev`. */
static void pass(struct scan_lane *l, const struct trace_event *ev)
{
    int64_t begin = line_time(l, ev->begin_ps), end = line_time(l, ev->end_ps);
    for (;;) {
        while (l->i < l->at->n) {
            const struct lane_event *e = &l->at->ev[l->i];
            if (order(e->begin_ps, e->end_ps, e->at, begin, end, ev->at) > 0)
                return;
            l->i++;
        }
        if (!l->at->n || l->at->block + 1 >= l->nblocks)
            return;
        uint64_t b = skip_blocks(l, l->at->block + 1, begin, INT64_MAX);
        if (b >= l->nblocks)
            b = l->nblocks - 1;
        if (l->ahead->block == b) {
            struct scan_block *was = l->at;
            l->at = l->ahead;
            l->ahead = was;
        } else {
            block_load(l, l->at, b);
        }
        l->i = 0;
    }
}

/* --- the rule --- */

/* The layer at which a complete event without a flow is shown, or -1. */
static int layer_of(struct scan *s, const struct trace_event *ev)
{
    for (int z = 0; z < s->layers; z++) {
        if (ev->end_ps - ev->begin_ps >= trace_resolution_ps[z])
            return z;
        if (ev->begin_ps < s->from[z])
            continue;
        size_t depth = trace_vis_depth(&s->vis[z], ev->begin_ps);
        if (trace_vis_apart(&s->vis[z], depth, ev->begin_ps, trace_resolution_ps[z]))
            return z;
        s->from[z] = trace_vis_next(&s->vis[z], ev->begin_ps, trace_resolution_ps[z]);
    }
    return -1;
}

static bool show(struct scan *s, const struct trace_event *ev, int z)
{
    for (; z < s->layers; z++) {
        struct trace_vis *v = &s->vis[z];
        if (!trace_vis_show(v, trace_vis_depth(v, ev->begin_ps), ev->end_ps))
            return false;
        s->from[z] = trace_vis_next(v, ev->begin_ps, trace_resolution_ps[z]);
    }
    return true;
}

/* The first flow event from `i` on that is not before `ev`. */
static uint32_t flow_at(const struct scan *s, uint32_t i, const struct trace_event *ev)
{
    uint32_t step = 1, lo = i, hi = s->nflows;
    while (lo + step < hi) {
        const struct trace_flow_event *f = &s->flows[lo + step];
        if (order(f->begin_ps, f->end_ps, f->at, ev->begin_ps, ev->end_ps, ev->at) >= 0) {
            hi = lo + step;
            break;
        }
        lo += step;
        step *= 2;
    }
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        const struct trace_flow_event *f = &s->flows[mid];
        if (order(f->begin_ps, f->end_ps, f->at, ev->begin_ps, ev->end_ps, ev->at) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The flow event that `ev` is, or NULL. */
static const struct trace_flow_event *flow_of(struct scan *s, const struct trace_event *ev)
{
    s->flow = flow_at(s, s->flow, ev);
    const struct trace_flow_event *f = s->flow < s->nflows ? &s->flows[s->flow] : NULL;
    return f && f->at == ev->at && f->line == ev->line ? f : NULL;
}

static bool overlaps(const struct trace_window *win, int64_t begin_ps, int64_t end_ps)
{
    return win->instant ? begin_ps <= win->end_ps
                        : begin_ps <= win->end_ps && end_ps >= win->begin_ps;
}

static bool push(struct scan *s, const struct trace_event *ev)
{
    struct trace_event *e = vec_push(s->out, sizeof *e);
    if (e)
        *e = *ev;
    return e;
}

static bool emit(struct scan *s, const struct trace_event *ev)
{
    if (!overlaps(s->win, ev->begin_ps, ev->end_ps))
        return true;
    return push(s, ev);
}

/* Middles of flows are shown with full_dma whatever the resolution, if only they are loaded: also
 * those that end before the window. */
static bool emit_middle(struct scan *s, const struct trace_event *ev, int z)
{
    if (s->drop_middles || ev->begin_ps > s->win->end_ps ||
        (z && s->win->begin_ps > trace_resolution_ps[z - 1] &&
         ev->begin_ps < s->win->begin_ps - trace_resolution_ps[z - 1]))
        return true;
    struct trace_event e = *ev;
    e.middle = true;
    return push(s, &e);
}

static bool visit(struct scan *s, const struct trace_event *ev)
{
    if (s->may_hide && trace_hidden(s->h, &s->h->d->lines[ev->line], ev->name))
        return true;
    const struct trace_flow_event *f = s->nflows ? flow_of(s, ev) : NULL;
    if (f && f->async)
        return true;
    int z = f ? (f->layer < s->layers ? f->layer : -1) : layer_of(s, ev);
    if (z < 0)
        return true;
    if (!show(s, ev, z))
        return false;
    return f && f->dir == DERIVE_DIR_BOTH && s->tpu ? emit_middle(s, ev, z) : emit(s, ev);
}

/* --- the scan --- */

/* Is the flow event loaded, and not passed? */
static bool flow_ahead(const struct scan *s, const struct trace_flow_event *f,
                       const struct trace_event *after)
{
    return !f->async && f->layer < s->layers &&
           (!after ||
            order(f->begin_ps, f->end_ps, f->at, after->begin_ps, after->end_ps, after->at) > 0);
}

static int64_t next_flow(struct scan *s, const struct trace_event *after)
{
    if (s->layers <= TRACE_COARSE) {
        for (; s->coarse_next < s->ncoarse; s->coarse_next++)
            if (flow_ahead(s, &s->flows[s->coarse[s->coarse_next]], after))
                return s->flows[s->coarse[s->coarse_next]].begin_ps;
        return INT64_MAX;
    }
    for (; s->flow_next < s->nflows; s->flow_next++)
        if (flow_ahead(s, &s->flows[s->flow_next], after))
            return s->flows[s->flow_next].begin_ps;
    return INT64_MAX;
}

/* The next event that may be shown, or NULL. */
static const struct trace_event *scan_next(struct scan *s, const struct trace_event *last)
{
    int64_t res = trace_resolution_ps[s->layers - 1], from = next_flow(s, last);
    for (int z = 0; z < s->layers; z++)
        if (s->from[z] < from)
            from = s->from[z];
    struct scan_lane *best = NULL;
    for (uint32_t i = 0; i < s->nlanes; i++) {
        struct scan_lane *l = &s->lanes[i];
        bool stale = l->next_from > from ||
                     (l->has_next && l->next_from < from && l->next.begin_ps < from &&
                      l->next.end_ps - l->next.begin_ps < res) ||
                     (l->has_next && last && event_cmp(&l->next, last) <= 0);
        if (stale) {
            if (last)
                pass(l, last);
            find_next(l, from, res);
        }
        if (l->has_next && (!best || event_cmp(&l->next, &best->next) < 0))
            best = l;
    }
    return best ? &best->next : NULL;
}

static bool scan_run(struct scan *s)
{
    struct trace_event last;
    bool any = false;
    for (uint64_t steps = 0;; steps++) {
        const struct trace_event *next = scan_next(s, any ? &last : NULL);
        if (!next || next->begin_ps > s->win->end_ps)
            return true;
        last = *next;
        any = true;
        if (!visit(s, &last))
            return false;
        if ((steps & 4095) == 0 && out_cancelled(s->t->out))
            return true;
    }
}

static bool scan_init(struct scan *s, const struct trace_row *row)
{
    s->lanes = calloc(row->nlanes + 1, sizeof *s->lanes);
    for (uint32_t i = 0; s->lanes && i < row->nlanes; i++) {
        const struct trace_lane *tl = &VEC(s->h->lanes, struct trace_lane)[row->first_lane + i];
        struct scan_lane *l = &s->lanes[s->nlanes];
        *l = (struct scan_lane){
            .lane = tl->lane, .base_ps = tl->base_ps, .line = tl->line, .next_from = INT64_MAX};
        l->nblocks = lane_levels(tl->lane) ? lane_nodes(tl->lane, 0) : 0;
        if (!l->nblocks)
            continue;
        s->nlanes++;
        l->at = malloc(sizeof *l->at);
        l->ahead = malloc(sizeof *l->ahead);
        if (!l->at || !l->ahead)
            return false;
        l->ahead->block = UINT64_MAX;
        block_load(l, l->at, 0);
    }
    for (int z = 0; z < s->layers; z++)
        s->from[z] = INT64_MIN;
    return s->lanes;
}

static void scan_fini(struct scan *s)
{
    for (uint32_t i = 0; s->lanes && i < s->nlanes; i++) {
        free(s->lanes[i].at);
        free(s->lanes[i].ahead);
    }
    free(s->lanes);
    for (int z = 0; z < LAYERS_MAX; z++)
        vec_free(&s->vis[z].ends);
}

/* Asynchronous events of the row's lines: layers were decided with their flows. */
static bool async_layers(struct scan *s, const struct trace_row *row)
{
    int64_t reach = trace_add(s->win->begin_ps, -s->longest_ps);
    struct trace_event from = {.begin_ps = reach, .end_ps = INT64_MAX};
    bool from_start = s->win->instant || (s->tpu && !s->drop_middles);
    for (uint32_t i = from_start ? 0 : flow_at(s, 0, &from); i < s->nflows; i++) {
        const struct trace_flow_event *f = &s->flows[i];
        if (f->begin_ps > s->win->end_ps)
            break;
        bool middle = f->dir == DERIVE_DIR_BOTH && s->tpu;
        if (!f->async || f->layer >= s->layers ||
            (!middle && !overlaps(s->win, f->begin_ps, f->end_ps)))
            continue;
        struct trace_event ev = {.begin_ps = f->begin_ps,
                                 .end_ps = f->end_ps,
                                 .at = f->at,
                                 .name = f->name,
                                 .line = f->line};
        struct derive_event de = trace_derive_event(&ev);
        struct derive_eye eye;
        derive_look(&eye, s->h->d, &s->h->d->lines[f->line]);
        ev.track =
            trace_track_of(s->h, row->device, TRACE_ASYNC, derive_event_name(&eye, &de, NULL)) + 1;
        if (!ev.track || !(middle ? emit_middle(s, &ev, f->layer) : emit(s, &ev)))
            return false;
    }
    return true;
}

/* Lines of DMA: their events are not shown in the row. */
static bool all_async(const struct trace_host *h, uint32_t r)
{
    const struct trace_row *row = &VEC(h->rows, struct trace_row)[r];
    uint64_t n = 0;
    for (uint32_t i = 0; i < row->nlanes; i++)
        n += lane_count(VEC(h->lanes, struct trace_lane)[row->first_lane + i].lane);
    return n == h->flows->rows[r].nasync;
}

static bool row_indexed(struct scan *s, uint32_t r)
{
    struct trace_stream in;
    bool ok = trace_stream_open(&in, s->h, r, s->win);
    for (; ok && in.now; trace_stream_step(&in)) {
        struct trace_event e = trace_stream_event(in.now);
        trace_rank_take(s->h->layers, in.now->index, trace_stream_ord(in.now), &e);
        const struct trace_flow_event *f = s->nflows && s->drop_middles ? flow_of(s, &e) : NULL;
        if (!f || f->dir != DERIVE_DIR_BOTH)
            ok = push(s, &e);
    }
    trace_stream_close(&in);
    return ok;
}

static bool row_layers(struct trace_host *h, uint32_t r, const struct trace_window *win,
                       const struct trace *t, struct vec *out)
{
    const struct trace_row *row = &VEC(h->rows, struct trace_row)[r];
    struct scan s = {.h = h, .win = win, .t = t, .layers = win->layer + 1, .out = out};
    s.may_hide = row->may_hide;
    s.tpu = VEC(h->devices, struct trace_device)[row->device].tpu;
    s.drop_middles = s.tpu && !t->req.full_dma;
    s.flows = h->flows->events + h->flows->rows[r].first;
    s.nflows = h->flows->rows[r].n;
    s.longest_ps = h->flows->rows[r].longest_ps;
    s.coarse = h->flows->coarse + h->flows->rows[r].first_coarse;
    s.ncoarse = h->flows->rows[r].ncoarse;
    const struct trace_strung *strung = &h->flows->strung[r];
    bool ok = true;
    if (strung->n)
        ok = trace_strung_events(strung, win, out);
    else if (h->layers && !(s.nflows && s.tpu && t->req.full_dma))
        ok = row_indexed(&s, r);
    else if (!all_async(h, r))
        ok = scan_init(&s, row) && scan_run(&s);
    ok = ok && (!row->may_async || async_layers(&s, row));
    scan_fini(&s);
    return ok;
}

/* --- everything that overlaps --- */

struct take {
    struct trace_host *h;
    const struct trace_row *row;
    const struct trace *t;
    const struct derive_line *line;
    struct derive_eye eye;
    bool tpu, flows;
    struct vec *out;
};

static bool take_event(struct take *k, struct trace_event *ev)
{
    struct trace_host *h = k->h;
    if (k->row->may_hide && trace_hidden(h, k->line, ev->name))
        return true;
    struct derive_event de = trace_derive_event(ev);
    struct derive_flow flow;
    if (k->row->counter) {
        ev->track = trace_track_of(h, k->row->device, TRACE_COUNTER,
                                   derive_event_name(&k->eye, &de, NULL)) +
                    1;
        if (!ev->track)
            return false;
    } else if (k->flows && derive_flow(&k->eye, &de, &flow)) {
        if (k->tpu && flow.dir == DERIVE_DIR_BOTH && !k->t->req.full_dma)
            return true;
        if (flow.async) {
            ev->track = trace_track_of(h, k->row->device, TRACE_ASYNC,
                                       derive_event_name(&k->eye, &de, NULL)) +
                        1;
            if (!ev->track)
                return false;
        }
    }
    struct trace_event *e = vec_push(k->out, sizeof *e);
    if (e)
        *e = *ev;
    return e;
}

static bool take_lane(struct take *k, const struct trace_lane *tl, const struct trace_window *win)
{
    struct lane_cursor c;
    struct lane_event ev[LANE_BLOCK];
    struct scan_lane l = {.base_ps = tl->base_ps, .line = tl->line};
    int64_t begin = line_time(&l, win->begin_ps), end = line_time(&l, win->end_ps);
    if (win->instant || begin == INT64_MIN)
        lane_seek_ord(&c, tl->lane, 0);
    else
        lane_seek(&c, tl->lane, begin - 1);
    for (size_t n; (n = lane_next_block(&c, ev));) {
        for (size_t i = 0; i < n; i++) {
            if (ev[i].begin_ps > end)
                return true;
            if (!win->instant && ev[i].end_ps < begin)
                continue;
            struct trace_event e;
            event_at(&l, &ev[i], &e);
            if (!take_event(k, &e))
                return false;
        }
        if (out_cancelled(k->t->out))
            return true;
    }
    return true;
}

static bool row_all(struct trace_host *h, uint32_t r, const struct trace_window *win,
                    const struct trace *t, struct vec *out)
{
    const struct trace_row *row = &VEC(h->rows, struct trace_row)[r];
    struct take k = {.h = h, .row = row, .t = t, .out = out};
    k.tpu = VEC(h->devices, struct trace_device)[row->device].tpu;
    k.flows = row->may_async || (k.tpu && row->may_flow);
    uint32_t line = UINT32_MAX;
    for (uint32_t i = 0; i < row->nlanes; i++) {
        const struct trace_lane *tl = &VEC(h->lanes, struct trace_lane)[row->first_lane + i];
        if (tl->line != line) {
            line = tl->line;
            k.line = &h->d->lines[line];
            derive_look(&k.eye, h->d, k.line);
        }
        if (!take_lane(&k, tl, win))
            return false;
    }
    return true;
}

bool trace_row_streams(const struct trace_host *h, uint32_t r, bool full_dma)
{
    const struct trace_row *row = &VEC(h->rows, struct trace_row)[r];
    bool middles = full_dma && VEC(h->devices, struct trace_device)[row->device].tpu;
    return h->layers && !row->counter && !row->may_async && !h->flows->strung[r].n &&
           !(middles && h->flows->rows[r].n);
}

enum xp_status trace_row_events(struct trace_host *h, uint32_t row, const struct trace_window *win,
                                const struct trace *t, struct vec *out, struct xp_error *err)
{
    bool layered = win->filtered && !win->instant && win->layer < TRACE_LAST_LAYER &&
                   !VEC(h->rows, struct trace_row)[row].counter;
    bool ok = layered ? row_layers(h, row, win, t, out) : row_all(h, row, win, t, out);
    return ok ? XP_OK : trace_busy(err);
}
