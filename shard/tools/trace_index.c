#include "shard/tools/trace_pile.h"
#include "shard/tools/trace_rank.h"
#include "shard/tools/trace_stream.h"

/* The layer of every event, half a byte each, and the least of each block.
 *
 * Made in one walk over each row in order of time, with the rule's stack for every layer. An event
 * is in the first layer that shows it, and is shown in all that are finer. */

#define LAYERS TRACE_LAST_LAYER /* that hide something */

static uint64_t lane_blocks(const struct trace_lane *l)
{
    return lane_levels(l->lane) ? lane_nodes(l->lane, 0) : 0;
}

static bool make_room(struct trace_index *x, const struct trace_host *h, struct xp_arena *arena)
{
    uint64_t blocks = 0;
    for (size_t i = 0; i < h->lanes.n; i++)
        blocks += lane_blocks(&VEC(h->lanes, struct trace_lane)[i]);
    x->lanes = xp_arena_alloc(arena, (h->lanes.n + 1) * sizeof *x->lanes);
    uint8_t *p = xp_arena_zalloc(arena, blocks * (LANE_BLOCK / 2 + 1) + 1);
    if (!x->lanes || !p)
        return false;
    uint8_t *least = p + blocks * (LANE_BLOCK / 2);
    memset(least, TRACE_LAYER_NONE, blocks);
    for (size_t i = 0; i < h->lanes.n; i++) {
        x->lanes[i] = (struct trace_index_lane){p, least, NULL};
        blocks = lane_blocks(&VEC(h->lanes, struct trace_lane)[i]);
        p += blocks * (LANE_BLOCK / 2);
        least += blocks;
    }
    return true;
}

/* Without room for the serials it goes without. */
static void find_serials(struct trace_index *x, struct trace_host *h, struct xp_arena *arena)
{
    uint64_t blocks = 0;
    for (size_t i = 0; i < h->lanes.n; i++)
        blocks += lane_blocks(&VEC(h->lanes, struct trace_lane)[i]);
    uint8_t *p = xp_arena_zalloc(arena, blocks * (LANE_BLOCK / 2) + 1);
    for (size_t i = 0; p && i < h->lanes.n; i++) {
        x->lanes[i].serials = p;
        p += lane_blocks(&VEC(h->lanes, struct trace_lane)[i]) * (LANE_BLOCK / 2);
    }
    if (p && !trace_rank(h, x))
        for (size_t i = 0; i < h->lanes.n; i++)
            x->lanes[i].serials = NULL;
}

static inline void note(struct trace_index_lane *x, uint64_t ord, unsigned z)
{
    uint8_t *least = &x->least[ord / LANE_BLOCK];
    x->layers[ord / 2] |= (uint8_t)(z << (ord & 1) * 4);
    if (z < *least)
        *least = (uint8_t)z;
}

/* The first layer that shows a complete event without a flow. */
static inline unsigned layer_of(struct trace_pile *piles, int64_t begin_ps, int64_t dur_ps)
{
    unsigned z = 0;
    for (; z < LAYERS && dur_ps < trace_resolution_ps[z]; z++) {
        trace_pile_depth(&piles[z], begin_ps, true);
        if (trace_pile_apart(&piles[z], begin_ps, trace_resolution_ps[z]))
            break;
    }
    return z;
}

static inline bool show(struct trace_pile *piles, unsigned z, int64_t begin_ps, int64_t end_ps)
{
    bool ok = true;
    for (; z < LAYERS; z++) {
        trace_pile_depth(&piles[z], begin_ps, true);
        ok &= trace_pile_show(&piles[z], end_ps);
    }
    return ok;
}

struct row_flows {
    const struct trace_flow_event *f, *end;
};

/* The flow event that `e` is, or NULL; events come in order. */
static inline const struct trace_flow_event *flow_of(struct row_flows *x,
                                                     const struct trace_event *e)
{
    for (; x->f < x->end; x->f++) {
        const struct trace_flow_event *f = x->f;
        if (f->begin_ps == e->begin_ps && f->at == e->at && f->line == e->line)
            return f;
        if (f->begin_ps > e->begin_ps ||
            (f->begin_ps == e->begin_ps &&
             (f->end_ps < e->end_ps || (f->end_ps == e->end_ps && f->at > e->at))))
            return NULL;
    }
    return NULL;
}

static bool index_row(struct trace_index *x, const struct trace_host *h, uint32_t r)
{
    const struct trace_row *row = &VEC(h->rows, struct trace_row)[r];
    const struct trace_flow_row *fr = &h->flows->rows[r];
    struct row_flows flows = {h->flows->events + fr->first, h->flows->events + fr->first + fr->n};
    struct trace_pile piles[LAYERS] = {0};
    struct trace_stream s;
    bool ok = trace_stream_open(&s, h, r, NULL);
    for (struct trace_stream_lane *l; ok && (l = s.now); trace_stream_step(&s)) {
        struct trace_event e = trace_stream_event(l);
        struct trace_index_lane *xl = &x->lanes[row->first_lane + (uint32_t)(l - s.lanes)];
        const struct trace_flow_event *f = flows.f < flows.end ? flow_of(&flows, &e) : NULL;
        unsigned z = TRACE_LAYER_NONE;
        bool never =
            (f && f->async) || (row->may_hide && trace_hidden(h, &h->d->lines[e.line], e.name));
        if (!never) {
            z = f ? f->layer : layer_of(piles, e.begin_ps, e.end_ps - e.begin_ps);
            ok = show(piles, z, e.begin_ps, e.end_ps);
        }
        note(xl, trace_stream_at(l)->ord, z);
    }
    for (unsigned z = 0; z < LAYERS; z++)
        free(piles[z].e);
    trace_stream_close(&s);
    return ok;
}

static enum xp_status index_make(struct part *p, const struct derive *d, void **kept,
                                 struct xp_error *err)
{
    struct trace_host h = {.d = d, .part = p};
    struct trace_index *x = xp_arena_zalloc(p->arena, sizeof *x);
    enum xp_status st = trace_host_init(&h, err);
    if (st == XP_OK)
        st = trace_flows_get(&h, err);
    bool ok = x && st == XP_OK;
    ok = ok && make_room(x, &h, p->arena);
    for (uint32_t r = 0; ok && r < h.rows.n; r++)
        if (!VEC(h.rows, struct trace_row)[r].counter && !h.flows->strung[r].n)
            ok = index_row(x, &h, r);
    if (ok)
        find_serials(x, &h, p->arena);
    if (ok)
        *kept = x;
    else if (st == XP_OK)
        st = trace_busy(err);
    trace_host_fini(&h);
    return st;
}

enum xp_status trace_index_get(struct trace_host *h, struct xp_error *err)
{
    void *kept;
    XP_TRY(derive_keep(h->part, DERIVE_KEPT_LAYERS, index_make, &kept, err));
    h->layers = kept;
    return XP_OK;
}
