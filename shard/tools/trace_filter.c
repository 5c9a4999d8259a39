#include "shard/tools/trace.h"
#include "shard/tools/trace_merge.h"
#include "shard/tools/trace_vis.h"

#include "lib/base/hash.h"

/* The last filter, at the resolution asked for: the rule of trace_vis.h row by row. Flows couple
 * rows: the first event of one decides for the rest, so that flow events are visited in XProf's
 * order over all rows, and each row is brought up to them. */

struct filter_row {
    struct trace_vis vis;
    uint32_t at, end; /* events not looked at yet */
};

struct flow_key {
    uint32_t event, row, device;
    uint64_t id;
    uint8_t dir;
};

struct filter {
    struct trace_host *h;
    struct trace_event *ev;
    int64_t res;
    struct filter_row *rows;
    bool *shown;
    struct vec keys;      /* struct flow_key */
    uint64_t *flow_ids;   /* open addressing; id + 1 */
    uint8_t *flow_states; /* 0: unknown, 1: not shown, 2: shown */
    size_t mask;
    int64_t *last; /* of tracks */
    bool *has_last;
    bool ok;
};

static int event_order(const void *a, const void *b)
{
    const struct trace_event *x = a, *y = b;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    if (x->end_ps != y->end_ps)
        return x->end_ps > y->end_ps ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static bool in_order(const struct trace_event *ev, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (event_order(&ev[i - 1], &ev[i]) > 0)
            return false;
    return true;
}

/* Which events of a row belong to flows. */
static bool find_keys(struct filter *f, uint32_t r)
{
    const struct trace_row *row = &VEC(f->h->rows, struct trace_row)[r];
    const struct trace_flow_row *fr = &f->h->flows->rows[r];
    const struct trace_flow_event *fl = f->h->flows->events + fr->first;
    for (uint32_t i = f->rows[r].at; fr->n && i < f->rows[r].end; i++) {
        const struct trace_event *e = &f->ev[i];
        const struct trace_flow_event *x = trace_flow_find(fl, fr->n, e);
        if (!x || x->async || e->middle)
            continue;
        struct flow_key *key = vec_push(&f->keys, sizeof *key);
        if (!key)
            return false;
        *key = (struct flow_key){i, r, row->device, x->id, x->dir};
    }
    return true;
}

static int key_order(const void *a, const void *b, void *ctx)
{
    const struct flow_key *x = a, *y = b;
    const struct trace_event *ev = ctx, *ex = &ev[x->event], *ey = &ev[y->event];
    if (ex->begin_ps != ey->begin_ps)
        return ex->begin_ps < ey->begin_ps ? -1 : 1;
    if (ex->end_ps != ey->end_ps)
        return ex->end_ps > ey->end_ps ? -1 : 1;
    if (x->row != y->row) /* rows are in order of (device, thread) */
        return x->row < y->row ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

static uint8_t *flow_state(struct filter *f, uint64_t id)
{
    size_t i = xp_hash_u64(id) & f->mask;
    while (f->flow_ids[i] && f->flow_ids[i] != id + 1)
        i = (i + 1) & f->mask;
    f->flow_ids[i] = id + 1;
    return &f->flow_states[i];
}

static void set_end(struct filter *f, struct filter_row *r, size_t depth,
                    const struct trace_event *e)
{
    f->ok = f->ok && trace_vis_show(&r->vis, depth, e->end_ps);
}

/* Events of a row up to `until` that belong to no flow. */
static void bring_row(struct filter *f, struct filter_row *r, uint32_t until)
{
    for (; r->at < until; r->at++) {
        const struct trace_event *e = &f->ev[r->at];
        if (e->middle) {
            f->shown[r->at] = true;
            continue;
        }
        if (e->track) {
            uint32_t t = e->track - 1;
            f->shown[r->at] = !f->has_last[t] || e->begin_ps - f->last[t] >= f->res;
            if (f->shown[r->at]) {
                f->last[t] = e->begin_ps;
                f->has_last[t] = true;
            }
            continue;
        }
        size_t depth = trace_vis_depth(&r->vis, e->begin_ps);
        f->shown[r->at] = e->end_ps - e->begin_ps >= f->res ||
                          trace_vis_apart(&r->vis, depth, e->begin_ps, f->res);
        if (f->shown[r->at])
            set_end(f, r, depth, e);
    }
}

static void visit_flow(struct filter *f, const struct flow_key *key)
{
    struct filter_row *r = &f->rows[key->row];
    const struct trace_event *e = &f->ev[key->event];
    bring_row(f, r, key->event);
    size_t depth = trace_vis_depth(&r->vis, e->begin_ps);
    bool shown =
        e->end_ps - e->begin_ps >= f->res || trace_vis_apart(&r->vis, depth, e->begin_ps, f->res);
    uint8_t *state = flow_state(f, key->id);
    bool fresh = !*state;
    if (fresh)
        *state = shown ? 2 : 1;
    if (!shown) {
        if (fresh && trace_vis_flow_apart(&r->vis, e->end_ps, f->res))
            *state = 2;
        shown = *state == 2;
    }
    if (key->dir == DERIVE_DIR_IN)
        *state = 0;
    if (shown) {
        r->vis.last_flow = e->end_ps;
        r->vis.has_flow = true;
        set_end(f, r, depth, e);
    }
    f->shown[key->event] = shown;
    r->at = key->event + 1;
}

static bool filter_init(struct filter *f, const uint32_t *bounds)
{
    struct trace_host *h = f->h;
    f->ev = h->events.p;
    f->rows = calloc(h->rows.n + 1, sizeof *f->rows);
    f->shown = calloc(h->events.n + 1, sizeof *f->shown);
    f->last = calloc(h->tracks.n + 1, sizeof *f->last);
    f->has_last = calloc(h->tracks.n + 1, sizeof *f->has_last);
    if (!f->rows || !f->shown || !f->last || !f->has_last)
        return false;
    for (uint32_t r = 0; r < h->rows.n; r++) {
        f->rows[r].at = bounds[r];
        f->rows[r].end = bounds[r + 1];
        uint32_t n = bounds[r + 1] - bounds[r];
        bool strung = h->flows && h->flows->strung[r].n;
        if (n && !strung && !in_order(f->ev + bounds[r], n))
            qsort(f->ev + bounds[r], n, sizeof *f->ev, event_order);
        if (h->flows && !find_keys(f, r))
            return false;
    }
    size_t size = 16;
    while (size < f->keys.n * 2 + 1)
        size *= 2;
    f->mask = size - 1;
    f->flow_ids = calloc(size, sizeof *f->flow_ids);
    f->flow_states = calloc(size, 1);
    return f->flow_ids && f->flow_states;
}

enum xp_status trace_filter(struct trace_host *h, const struct trace_window *win,
                            const struct trace *t, const uint32_t *bounds, struct xp_error *err)
{
    (void)t;
    struct filter f = {.h = h, .res = win->resolution_ps, .ok = true};
    f.ok = filter_init(&f, bounds);
    f.ok = f.ok && trace_merge_sort(f.keys.p, f.keys.n, sizeof(struct flow_key), key_order, f.ev);
    for (size_t i = 0; f.ok && i < f.keys.n; i++)
        visit_flow(&f, &VEC(f.keys, struct flow_key)[i]);
    for (uint32_t r = 0; f.ok && r < h->rows.n; r++)
        bring_row(&f, &f.rows[r], f.rows[r].end);
    size_t kept = 0;
    for (size_t i = 0; f.ok && i < h->events.n; i++)
        if (f.shown[i])
            f.ev[kept++] = f.ev[i];
    if (f.ok)
        h->events.n = kept;
    for (uint32_t r = 0; f.rows && r < h->rows.n; r++)
        vec_free(&f.rows[r].vis.ends);
    free(f.rows);
    free(f.shown);
    free(f.last);
    free(f.has_last);
    free(f.flow_ids);
    free(f.flow_states);
    vec_free(&f.keys);
    return f.ok ? XP_OK : trace_busy(err);
}
