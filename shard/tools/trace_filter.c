#include "shard/tools/trace_merge.h"
#include "shard/tools/trace_pile.h"
#include "shard/tools/trace_rank.h"
#include "shard/tools/trace_stream.h"

#include "lib/base/hash.h"

/* The last filter, at the resolution asked for: the rule of trace_vis.h row by row. Flows couple
 * rows: the first event of one decides for the rest, so that flow events are visited in XProf's
 * order over all rows, and each row is brought up to them.
 *
 * The events of a row lie in an array, or come from a stream, of which only those that are shown
 * are ever copied. */

struct filter_row {
    struct trace_pile pile;
    int64_t last_flow;
    bool has_flow;
    bool in_order;
    bool drop_middles;
    uint32_t at, end; /* in ev: events not looked at yet */
    bool streamed, open;
    struct trace_stream in;
    const struct trace_flow_event *middle; /* of the row's flow events: not before where `in` is */
    struct vec out;                        /* struct trace_event: shown ones of the stream */
};

struct flow_key {
    int64_t begin_ps, end_ps;
    uint64_t at;
    uint64_t id;
    uint32_t line;
    uint32_t row, event; /* event: in ev, or in the row's flow events */
    uint8_t dir;
};

struct filter {
    struct trace_host *h;
    const struct trace_window *win;
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

static bool add_key(struct filter *f, uint32_t r, const struct trace_flow_event *x, uint32_t event)
{
    struct flow_key *key = vec_push(&f->keys, sizeof *key);
    if (key)
        *key = (struct flow_key){x->begin_ps, x->end_ps, x->at, x->id, x->line, r, event, x->dir};
    return key;
}

/* Which events of a row belong to flows. */
static bool find_keys(struct filter *f, uint32_t r)
{
    const struct trace_flow_row *fr = &f->h->flows->rows[r];
    const struct trace_flow_event *fl = f->h->flows->events + fr->first;
    for (uint32_t i = f->rows[r].at; fr->n && i < f->rows[r].end; i++) {
        const struct trace_event *e = &f->ev[i];
        const struct trace_flow_event *x = trace_flow_find(fl, fr->n, e);
        if (x && x->line == e->line && !x->async && !e->middle && !add_key(f, r, x, i))
            return false;
    }
    return true;
}

/* The same for a stream, which is not read for it. */
static bool stream_keys(struct filter *f, uint32_t r)
{
    const struct trace_flow_row *fr = &f->h->flows->rows[r];
    const struct trace_flow_event *fl = f->h->flows->events + fr->first;
    uint32_t i = trace_flow_at(fl, fr->n, trace_add(f->win->begin_ps, -fr->longest_ps));
    f->rows[r].middle = fl + i;
    for (; i < fr->n && fl[i].begin_ps <= f->win->end_ps; i++) {
        const struct trace_flow_event *x = &fl[i];
        if (x->async || x->layer > f->win->layer || x->end_ps < f->win->begin_ps ||
            (f->rows[r].drop_middles && x->dir == DERIVE_DIR_BOTH))
            continue;
        if (!add_key(f, r, x, i))
            return false;
    }
    return true;
}

static int key_order(const void *a, const void *b, void *ctx)
{
    const struct flow_key *keys = ctx;
    const struct flow_key *x = &keys[*(const uint32_t *)a], *y = &keys[*(const uint32_t *)b];
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    if (x->end_ps != y->end_ps)
        return x->end_ps > y->end_ps ? -1 : 1;
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

/* Is an event that belongs to no flow shown? */
static bool shows(struct filter *f, struct filter_row *r, int64_t begin_ps, int64_t end_ps)
{
    trace_pile_depth(&r->pile, begin_ps, r->in_order);
    if (end_ps - begin_ps < f->res && !trace_pile_apart(&r->pile, begin_ps, f->res))
        return false;
    f->ok = f->ok && trace_pile_show(&r->pile, end_ps);
    return true;
}

static bool shows_track(struct filter *f, const struct trace_event *e)
{
    uint32_t t = e->track - 1;
    bool shown = !f->has_last[t] || e->begin_ps - f->last[t] >= f->res;
    if (shown) {
        f->last[t] = e->begin_ps;
        f->has_last[t] = true;
    }
    return shown;
}

/* Events of a row up to `until` that belong to no flow. */
static void bring_row(struct filter *f, struct filter_row *r, uint32_t until)
{
    for (; r->at < until; r->at++) {
        const struct trace_event *e = &f->ev[r->at];
        f->shown[r->at] =
            e->middle || (e->track ? shows_track(f, e) : shows(f, r, e->begin_ps, e->end_ps));
    }
}

static void take(struct filter *f, struct filter_row *r, bool flow)
{
    struct trace_event *e = vec_push(&r->out, sizeof *e);
    if (e) {
        const struct trace_stream_lane *l = r->in.now;
        *e = trace_stream_event(l);
        trace_rank_take(f->h->layers, l->index, trace_stream_ord(l), e);
        e->no_flow = !flow;
    } else {
        f->ok = false;
    }
}

/* Is the stream at the middle of a flow, which is not shown? */
static bool at_middle(struct filter *f, struct filter_row *r, const struct flow_key *key)
{
    const struct trace_flow_row *fr = &f->h->flows->rows[r - f->rows];
    const struct trace_flow_event *end = f->h->flows->events + fr->first + fr->n;
    while (r->middle < end && r->middle->begin_ps < key->begin_ps)
        r->middle++;
    for (const struct trace_flow_event *x = r->middle; x < end && x->begin_ps == key->begin_ps; x++)
        if (x->at == key->at && x->line == key->line)
            return x->dir == DERIVE_DIR_BOTH;
    return false;
}

static bool reached(const struct flow_key *e, const struct flow_key *key)
{
    if (e->begin_ps != key->begin_ps)
        return e->begin_ps > key->begin_ps;
    if (e->end_ps != key->end_ps)
        return e->end_ps < key->end_ps;
    /* a derived event may have the flow event's place in the file */
    return e->at == key->at ? e->line == key->line : e->at > key->at;
}

/* Reads the row's stream up to the event of `until`, or to its end. */
static void bring_stream(struct filter *f, struct filter_row *r, const struct flow_key *until)
{
    if (!r->open) {
        r->open = true;
        f->ok = f->ok && trace_stream_open(&r->in, f->h, (uint32_t)(r - f->rows), f->win);
    }
    for (; f->ok && r->in.now; trace_stream_step(&r->in)) {
        const struct lane_event *e = trace_stream_at(r->in.now);
        int64_t base = r->in.now->lane->base_ps;
        struct flow_key key = {
            base + e->begin_ps, base + e->end_ps, e->at, 0, r->in.now->lane->line, 0, 0, 0};
        if (until && reached(&key, until))
            return;
        if (!(r->drop_middles && at_middle(f, r, &key)) && shows(f, r, key.begin_ps, key.end_ps))
            take(f, r, false);
    }
}

/* Brings the row to the event of the flow; false if it is not there. */
static bool bring(struct filter *f, struct filter_row *r, const struct flow_key *key)
{
    if (!r->streamed) {
        bring_row(f, r, key->event);
        return true;
    }
    bring_stream(f, r, key);
    return f->ok && r->in.now && trace_stream_at(r->in.now)->at == key->at &&
           r->in.now->lane->line == key->line;
}

static void settle_flow(struct filter *f, struct filter_row *r, const struct flow_key *key,
                        bool shown)
{
    if (r->streamed) {
        if (shown)
            take(f, r, true);
        trace_stream_step(&r->in);
    } else {
        f->shown[key->event] = shown;
        r->at = key->event + 1;
    }
}

/* XProf's difference is unsigned: an arrow that ends before the last one does is far from it. */
static bool arrow_apart(const struct filter *f, const struct filter_row *r, int64_t end_ps)
{
    return !r->has_flow || (uint64_t)end_ps - (uint64_t)r->last_flow >= (uint64_t)f->res;
}

static void visit_flow(struct filter *f, const struct flow_key *key)
{
    struct filter_row *r = &f->rows[key->row];
    if (!bring(f, r, key))
        return;
    trace_pile_depth(&r->pile, key->begin_ps, r->in_order);
    bool shown =
        key->end_ps - key->begin_ps >= f->res || trace_pile_apart(&r->pile, key->begin_ps, f->res);
    uint8_t *state = flow_state(f, key->id);
    bool fresh = !*state;
    if (fresh)
        *state = shown ? 2 : 1;
    if (!shown) {
        if (fresh && arrow_apart(f, r, key->end_ps))
            *state = 2;
        shown = *state == 2;
    }
    if (key->dir == DERIVE_DIR_IN)
        *state = 0;
    if (shown) {
        r->last_flow = key->end_ps;
        r->has_flow = true;
        f->ok = f->ok && trace_pile_show(&r->pile, key->end_ps);
    }
    settle_flow(f, r, key, shown);
}

/* In XProf's order over all rows. Their numbers are sorted: a key is large. */
static bool visit_flows(struct filter *f)
{
    uint32_t *order = malloc((f->keys.n + 1) * sizeof *order);
    for (size_t i = 0; order && i < f->keys.n; i++)
        order[i] = (uint32_t)i;
    bool ok = order && trace_merge_sort(order, f->keys.n, sizeof *order, key_order, f->keys.p);
    for (size_t i = 0; ok && f->ok && i < f->keys.n; i++)
        visit_flow(f, &VEC(f->keys, struct flow_key)[order[i]]);
    free(order);
    return ok && f->ok;
}

static bool row_init(struct filter *f, uint32_t r, const uint32_t *bounds, bool full_dma)
{
    struct trace_host *h = f->h;
    struct filter_row *x = &f->rows[r];
    const struct trace_row *row = &VEC(h->rows, struct trace_row)[r];
    x->at = bounds[r];
    x->end = bounds[r + 1];
    x->streamed = trace_row_streams(h, r, full_dma);
    x->drop_middles = VEC(h->devices, struct trace_device)[row->device].tpu && h->flows->rows[r].n;
    x->in_order = !(h->flows && h->flows->strung[r].n);
    if (x->streamed)
        return stream_keys(f, r);
    uint32_t n = x->end - x->at;
    if (n && x->in_order && !in_order(f->ev + x->at, n))
        qsort(f->ev + x->at, n, sizeof *f->ev, event_order);
    return !h->flows || find_keys(f, r);
}

static bool filter_init(struct filter *f, const uint32_t *bounds, bool full_dma)
{
    struct trace_host *h = f->h;
    f->ev = h->events.p;
    f->rows = calloc(h->rows.n + 1, sizeof *f->rows);
    f->shown = calloc(h->events.n + 1, sizeof *f->shown);
    f->last = calloc(h->tracks.n + 1, sizeof *f->last);
    f->has_last = calloc(h->tracks.n + 1, sizeof *f->has_last);
    if (!f->rows || !f->shown || !f->last || !f->has_last)
        return false;
    for (uint32_t r = 0; r < h->rows.n; r++)
        if (!row_init(f, r, bounds, full_dma))
            return false;
    size_t size = 16;
    while (size < f->keys.n * 2 + 1)
        size *= 2;
    f->mask = size - 1;
    f->flow_ids = calloc(size, sizeof *f->flow_ids);
    f->flow_states = calloc(size, 1);
    return f->flow_ids && f->flow_states;
}

static void filter_fini(struct filter *f)
{
    for (uint32_t r = 0; f->rows && r < f->h->rows.n; r++) {
        free(f->rows[r].pile.e);
        vec_free(&f->rows[r].out);
        if (f->rows[r].open)
            trace_stream_close(&f->rows[r].in);
    }
    free(f->rows);
    free(f->shown);
    free(f->last);
    free(f->has_last);
    free(f->flow_ids);
    free(f->flow_states);
    vec_free(&f->keys);
}

/* Whatever is left of a row. */
static void end_row(struct filter *f, struct filter_row *r)
{
    if (!r->streamed) {
        bring_row(f, r, r->end);
        return;
    }
    bring_stream(f, r, NULL);
    trace_stream_close(&r->in);
    r->open = false;
}

/* The same where no row was read from its lanes. */
static bool collect_loaded(struct filter *f)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->h->events.n; i++)
        if (f->shown[i])
            f->ev[kept++] = f->ev[i];
    f->h->events.n = kept;
    vec_trim(&f->h->events, sizeof *f->ev);
    return true;
}

/* What is shown, row by row, in the place of what was loaded. */
static bool collect(struct filter *f, const uint32_t *bounds)
{
    struct trace_host *h = f->h;
    size_t n = h->events.n;
    for (uint32_t r = 0; r < h->rows.n; r++)
        n += f->rows[r].out.n;
    if (n == h->events.n)
        return collect_loaded(f);
    struct trace_event *kept = malloc((n + 1) * sizeof *kept), *to = kept;
    if (!kept)
        return false;
    for (uint32_t r = 0; r < h->rows.n; r++) {
        const struct vec *out = &f->rows[r].out;
        for (uint32_t i = bounds[r]; i < bounds[r + 1]; i++)
            if (f->shown[i])
                *to++ = f->ev[i];
        if (out->n)
            memcpy(to, out->p, out->n * sizeof *to);
        to += out->n;
    }
    vec_free(&h->events);
    h->events = (struct vec){kept, (size_t)(to - kept), n + 1, 0};
    return true;
}

enum xp_status trace_filter(struct trace_host *h, const struct trace_window *win,
                            const struct trace *t, const uint32_t *bounds, struct xp_error *err)
{
    struct filter f = {.h = h, .win = win, .res = win->resolution_ps, .ok = true};
    f.ok = filter_init(&f, bounds, t->req.full_dma);
    f.ok = f.ok && visit_flows(&f);
    for (uint32_t r = 0; f.ok && r < h->rows.n; r++)
        end_row(&f, &f.rows[r]);
    f.ok = f.ok && collect(&f, bounds);
    filter_fini(&f);
    return f.ok ? XP_OK : trace_busy(err);
}
