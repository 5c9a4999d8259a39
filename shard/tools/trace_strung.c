#include "shard/tools/trace.h"
#include "shard/tools/trace_merge.h"
#include "shard/tools/trace_vis.h"

/* Rows that XProf strings together.
 *
 * Its tables hold each layer in the order in which a merge by begin takes events from the rows; an
 * event behind a later one of its row is taken right after that one. So the place of an event in
 * its layer is the latest begin so far in its row and layer, here called its turn; windows are cut
 * out by turn, and what was loaded is filtered in order of turn. */

#define STRUNG_MAX 2000000 /* events of a row; larger ones are taken in order of time */

struct turn {
    int64_t turn_ps;
    uint32_t event;
    uint8_t layer;
};

static int file_order(const void *a, const void *b, void *ctx)
{
    (void)ctx;
    const struct trace_strung_event *x = a, *y = b;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static int time_order(const void *a, const void *b, void *ctx)
{
    const struct trace_strung_event *x = a, *y = b;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    if (x->end_ps != y->end_ps)
        return x->end_ps > y->end_ps ? -1 : 1;
    return file_order(a, b, ctx);
}

/* Lines made by XProf and those of TensorCores are sorted before. */
bool trace_row_is_strung(const struct trace_host *h, const struct trace_row *row, uint64_t *n)
{
    const struct trace_lane *lanes = VEC(h->lanes, struct trace_lane) + row->first_lane;
    int64_t last = INT64_MIN;
    bool strung = false;
    *n = 0;
    for (uint32_t i = 0; i < row->nlanes; i++) {
        const struct derive_line *l = &h->d->lines[lanes[i].line];
        if (i && lanes[i].line == lanes[i - 1].line)
            continue;
        if (l->own_names || (h->d->planes[l->plane].tensor_core && !h->d->grouped))
            return false;
        strung |= !l->line->sorted || l->line->begin_ps < last;
        last = l->line->end_ps > last ? l->line->end_ps : last;
        *n += l->line->nevents;
    }
    return strung && *n <= STRUNG_MAX;
}

/* Lanes are in order of time, and mostly of the file. */
static bool gather(const struct trace_host *h, const struct trace_row *row, bool by_time,
                   struct vec *out)
{
    struct lane_event ev[LANE_BLOCK];
    for (uint32_t i = 0; i < row->nlanes; i++) {
        const struct trace_lane *tl = &VEC(h->lanes, struct trace_lane)[row->first_lane + i];
        struct lane_cursor c;
        lane_seek_ord(&c, tl->lane, 0);
        for (size_t n; (n = lane_next_block(&c, ev));)
            for (size_t k = 0; k < n; k++) {
                if (row->may_hide && trace_hidden(h, &h->d->lines[tl->line], ev[k].name))
                    continue;
                struct trace_strung_event *e = vec_push(out, sizeof *e);
                if (!e)
                    return false;
                *e = (struct trace_strung_event){.begin_ps = tl->base_ps + ev[k].begin_ps,
                                                 .end_ps = tl->base_ps + ev[k].end_ps,
                                                 .at = ev[k].at,
                                                 .name = ev[k].name,
                                                 .line = tl->line};
            }
    }
    size_t size = sizeof(struct trace_strung_event);
    return by_time ? trace_merge_sort(out->p, out->n, size, time_order, NULL)
                   : trace_merge_sort(out->p, out->n, size, file_order, NULL);
}

static int layer_of(const struct trace_vis *vis, const struct trace_event *e)
{
    int z = 0;
    for (; z < TRACE_LAST_LAYER; z++)
        if (e->end_ps - e->begin_ps >= trace_resolution_ps[z] ||
            trace_vis_apart(&vis[z], trace_vis_depth(&vis[z], e->begin_ps), e->begin_ps,
                            trace_resolution_ps[z]))
            break;
    return z;
}

static bool decide(struct trace_strung *s, const struct trace_flow_event *flows, uint32_t nflows)
{
    struct trace_vis vis[TRACE_LAST_LAYER] = {0};
    bool ok = true;
    for (uint32_t i = 0; ok && i < s->n; i++) {
        struct trace_event ev = trace_strung_event(s, i), *e = &ev;
        const struct trace_flow_event *f = trace_flow_find(flows, nflows, e);
        int z = f ? f->layer : layer_of(vis, e);
        s->layers[i] = f && f->async ? UINT8_MAX : (uint8_t)z;
        for (; ok && !(f && f->async) && z < TRACE_LAST_LAYER; z++)
            ok = trace_vis_show(&vis[z], trace_vis_depth(&vis[z], e->begin_ps), e->end_ps);
    }
    for (int z = 0; z < TRACE_LAST_LAYER; z++)
        vec_free(&vis[z].ends);
    return ok;
}

static bool order_row(const struct trace_host *h, const struct trace_row *row, bool by_time,
                      const struct trace_flow_event *flows, uint32_t nflows, struct xp_arena *arena,
                      struct trace_strung *s)
{
    struct vec events = {0};
    bool ok = gather(h, row, by_time, &events);
    if (ok && events.n) {
        s->n = (uint32_t)events.n;
        s->events = xp_arena_alloc(arena, events.n * sizeof *s->events);
        s->layers = xp_arena_alloc(arena, events.n);
        ok = s->events && s->layers;
        if (ok)
            memcpy(s->events, events.p, events.n * sizeof *s->events);
        ok = ok && decide(s, flows, nflows);
    }
    vec_free(&events);
    return ok;
}

bool trace_row_order(const struct trace_host *h, const struct trace_row *row,
                     const struct trace_flow_event *flows, uint32_t nflows, struct xp_arena *arena,
                     struct trace_strung *s)
{
    *s = (struct trace_strung){0};
    return order_row(h, row, true, flows, nflows, arena, s);
}

enum xp_status trace_strung_make(struct trace_host *h, uint32_t r,
                                 const struct trace_flow_event *flows, uint32_t nflows,
                                 struct xp_arena *arena, struct trace_strung *s,
                                 struct xp_error *err)
{
    const struct trace_row *row = &VEC(h->rows, struct trace_row)[r];
    uint64_t n;
    *s = (struct trace_strung){0};
    if (row->counter || !trace_row_is_strung(h, row, &n))
        return XP_OK;
    return order_row(h, row, false, flows, nflows, arena, s) ? XP_OK : trace_busy(err);
}

static int turn_order(const void *a, const void *b, void *ctx)
{
    (void)ctx;
    const struct turn *x = a, *y = b;
    if (x->turn_ps != y->turn_ps)
        return x->turn_ps < y->turn_ps ? -1 : 1;
    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

bool trace_strung_events(const struct trace_strung *s, const struct trace_window *win,
                         struct vec *out)
{
    int64_t latest[TRACE_LAYERS], from[TRACE_LAYERS];
    struct vec turns = {0};
    bool ok = true;
    for (int z = 0; z < TRACE_LAYERS; z++) {
        latest[z] = from[z] = INT64_MIN;
        if (z && win->begin_ps > trace_resolution_ps[z - 1])
            from[z] = win->begin_ps - trace_resolution_ps[z - 1];
    }
    for (uint32_t i = 0; ok && i < s->n; i++) {
        uint8_t z = s->layers[i];
        const struct trace_strung_event *e = &s->events[i];
        if (z > win->layer)
            continue;
        if (e->begin_ps > latest[z])
            latest[z] = e->begin_ps;
        if (latest[z] < from[z] || latest[z] > win->end_ps ||
            (!win->instant && (e->begin_ps > win->end_ps || e->end_ps < win->begin_ps)))
            continue;
        struct turn *t = vec_push(&turns, sizeof *t);
        ok = t;
        if (t)
            *t = (struct turn){latest[z], i, z};
    }
    ok = ok && trace_merge_sort(turns.p, turns.n, sizeof(struct turn), turn_order, NULL);
    for (size_t i = 0; ok && i < turns.n; i++) {
        struct trace_event *e = vec_push(out, sizeof *e);
        ok = e;
        if (e)
            *e = trace_strung_event(s, VEC(turns, struct turn)[i].event);
    }
    vec_free(&turns);
    return ok;
}
