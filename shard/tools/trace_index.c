#include "shard/tools/trace_pile.h"
#include "shard/tools/trace_rank.h"
#include "shard/tools/trace_sieve.h"
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
        x->lanes[i] = (struct trace_index_lane){.layers = p, .least = least};
        blocks = lane_blocks(&VEC(h->lanes, struct trace_lane)[i]);
        p += blocks * (LANE_BLOCK / 2);
        least += blocks;
    }
    return true;
}

/* Without room for the serials it goes without. */
static void serials_room(struct trace_index *x, const struct trace_host *h, struct xp_arena *arena)
{
    uint64_t blocks = 0;
    for (size_t i = 0; i < h->lanes.n; i++)
        blocks += lane_blocks(&VEC(h->lanes, struct trace_lane)[i]);
    _Atomic uint8_t *p = xp_arena_zalloc(arena, blocks * (LANE_BLOCK / 2) + 1);
    for (size_t i = 0; p && i < h->lanes.n; i++) {
        x->lanes[i].serials = p;
        if (x->lanes[i].sieve)
            x->lanes[i].sieve->index.serials = p;
        p += lane_blocks(&VEC(h->lanes, struct trace_lane)[i]) * (LANE_BLOCK / 2);
    }
    if (p)
        x->ranks = trace_ranks_new(h, arena);
}

/* The stacks of a row's layers. Fine layers show nearly everything, so that their stacks are mostly
 * the same: from `tail` on there is one for all. Coarse ones show next to nothing, and know until
 * when. */
struct stacks {
    struct trace_pile piles[LAYERS]; /* 0..tail */
    unsigned tail;
    uint32_t same[LAYERS]; /* z < tail: so many entries of the stacks z and z + 1 agree */
    int64_t hides_from[LAYERS], hides_until[LAYERS]; /* short events that begin then */
};

#define HIDES_STEPS 16

/* The pile hides a short event that begins now: until when? Or earlier, where that is hard to say.
 */
static int64_t hides_until(const struct trace_pile *p, int64_t resolution_ps)
{
    uint32_t d = p->depth;
    int64_t out = INT64_MIN;
    for (int i = 0; i < HIDES_STEPS; i++) {
        int64_t apart = p->e[d].end_ps + resolution_ps;
        if (!d || apart <= p->e[d - 1].least_ps)
            return apart;
        out = p->e[d - 1].least_ps; /* what begins then is no longer as deep */
        while (d && p->e[d - 1].least_ps <= out)
            d--;
    }
    return out;
}

/* The first layer that shows a complete event without a flow. */
static inline unsigned layer_of(struct stacks *s, int64_t begin_ps, int64_t dur_ps)
{
    unsigned z = 0;
    for (; z < LAYERS && dur_ps < trace_resolution_ps[z]; z++) {
        struct trace_pile *p = &s->piles[z < s->tail ? z : s->tail];
        if (begin_ps >= s->hides_from[z] && begin_ps < s->hides_until[z])
            continue;
        trace_pile_depth(p, begin_ps, true);
        if (trace_pile_apart(p, begin_ps, trace_resolution_ps[z]))
            break;
        if (z < s->tail) {
            s->hides_from[z] = begin_ps;
            s->hides_until[z] = hides_until(p, trace_resolution_ps[z]);
        }
    }
    return z;
}

/* The layers before z do not show what the tail is to show: they get stacks of their own. */
static bool split_tail(struct stacks *s, unsigned z)
{
    const struct trace_pile *from = &s->piles[s->tail];
    for (unsigned k = s->tail + 1; k <= z; k++)
        if (!trace_pile_copy(&s->piles[k], from))
            return false;
    for (; s->tail < z; s->tail++) {
        s->same[s->tail] = s->piles[z].n;
        s->hides_until[s->tail] = INT64_MIN;
    }
    return true;
}

static inline bool show(struct stacks *s, unsigned z, int64_t begin_ps, int64_t end_ps)
{
    if (z >= LAYERS || (z > s->tail && !split_tail(s, z)))
        return z >= LAYERS;
    uint32_t before = UINT32_MAX;
    for (unsigned k = z; k <= s->tail; k++) {
        uint32_t d = trace_pile_depth(&s->piles[k], begin_ps, true);
        if (!trace_pile_show(&s->piles[k], end_ps))
            return false;
        s->hides_until[k] = INT64_MIN;
        uint32_t *same = &s->same[k - (k > 0)], least = d < before ? d : before;
        if (k == 0)
            ;
        else if (d == before && *same >= d)
            *same = d + 1;
        else if (*same > least)
            *same = least;
        before = d;
    }
    while (s->tail > z && s->piles[s->tail - 1].n == s->piles[s->tail].n &&
           s->same[s->tail - 1] == s->piles[s->tail].n)
        s->tail--;
    return true;
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

static bool index_row(struct trace_index *x, const struct trace_host *h, uint32_t r,
                      struct xp_bump *out)
{
    const struct trace_row *row = &VEC(h->rows, struct trace_row)[r];
    const struct trace_flow_row *fr = &h->flows->rows[r];
    struct row_flows flows = {h->flows->events + fr->first, h->flows->events + fr->first + fr->n};
    struct stacks stacks = {0};
    struct trace_sieves sieves;
    struct trace_stream s;
    for (unsigned z = 0; z < LAYERS; z++)
        stacks.hides_until[z] = INT64_MIN;
    trace_sieves_open(&sieves, h, row, x, out);
    bool ok = trace_stream_open(&s, h, r, NULL);
    for (struct trace_stream_lane *l; ok && (l = s.now); trace_stream_step(&s)) {
        struct trace_event e = trace_stream_event(l);
        const struct lane_event *ev = trace_stream_at(l);
        uint32_t i = (uint32_t)(l - s.lanes);
        const struct trace_flow_event *f = flows.f < flows.end ? flow_of(&flows, &e) : NULL;
        unsigned z = TRACE_LAYER_NONE;
        bool never =
            (f && f->async) || (row->may_hide && trace_hidden(h, &h->d->lines[e.line], e.name));
        if (!never) {
            z = f ? f->layer : layer_of(&stacks, e.begin_ps, e.end_ps - e.begin_ps);
            ok = show(&stacks, z, e.begin_ps, e.end_ps);
        }
        trace_index_note(&x->lanes[row->first_lane + i], ev->ord, z);
        if ((int)z <= sieves.layer)
            trace_sieves_add(&sieves, i, ev, z);
    }
    for (unsigned z = 0; z < LAYERS; z++)
        free(stacks.piles[z].e);
    trace_stream_close(&s);
    trace_sieves_close(&sieves);
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
    struct xp_bump out;
    xp_bump_init(&out, p->arena);
    bool ok = x && st == XP_OK;
    ok = ok && make_room(x, &h, p->arena);
    for (uint32_t r = 0; ok && r < h.rows.n; r++)
        if (!VEC(h.rows, struct trace_row)[r].counter && !h.flows->strung[r].n)
            ok = index_row(x, &h, r, &out);
    if (ok) {
        serials_room(x, &h, p->arena);
        *kept = x;
    } else if (st == XP_OK)
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
