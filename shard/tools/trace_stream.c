#include "shard/tools/trace_stream.h"
#include "shard/tools/trace_sieve.h"

#include <endian.h>

/* Which of 16 layers of half a byte are at most z, below TRACE_LAYER_NONE: a bit each, the lowest
 * of its half byte. */
static inline uint64_t up_to(const uint8_t *layers, int z)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t v, add = (uint64_t)(15 - z) * ones;
    memcpy(&v, layers, sizeof v);
    v = le64toh(v);
    uint64_t even = ((v & 15 * ones) + add) >> 4 & ones, odd = ((v >> 4 & 15 * ones) + add) >> 4;
    return (even ^ ones) | ((odd & ones) ^ ones) << 4;
}

/* Which of the block's n events come. */
static uint32_t choose(const struct trace_stream *s, struct trace_stream_lane *l, uint64_t block,
                       uint32_t n)
{
    uint32_t m = 0;
    if (!l->index) {
        for (uint32_t i = 0; i < n; i++)
            l->take[i] = (uint8_t)i;
        return n;
    }
    const uint8_t *layers = l->index->layers + block * (LANE_BLOCK / 2);
    int64_t base = l->lane->base_ps;
    for (uint32_t first = 0; first < n; first += 16)
        for (uint64_t in = up_to(layers + first / 2, s->layer); in; in &= in - 1) {
            uint32_t i = first + (uint32_t)__builtin_ctzll(in) / 4;
            if (i >= n)
                break;
            l->take[m] = (uint8_t)i;
            m += (base + l->ev[i].begin_ps <= s->end_ps) & (base + l->ev[i].end_ps >= s->begin_ps);
        }
    return m;
}

void trace_stream_load(struct trace_stream *s, struct trace_stream_lane *l)
{
    struct lane_cursor c;
    l->i = l->n = 0;
    while (!l->n && l->block < l->nblocks) {
        uint64_t b = l->block++;
        if (l->index && l->index->least[b] > s->layer)
            continue;
        lane_seek_ord(&c, l->events, b * LANE_BLOCK);
        uint32_t n = (uint32_t)lane_next_block(&c, l->ev);
        if (l->index && n && l->lane->base_ps + l->ev[0].begin_ps > s->end_ps)
            l->block = l->nblocks;
        else
            l->n = choose(s, l, b, n);
    }
    s->heads[l - s->lanes] = l->n ? l->lane->base_ps + trace_stream_at(l)->begin_ps : INT64_MAX;
}

/* Of two that begin together: does a come first? */
static bool first(const struct trace_stream_lane *a, const struct trace_stream_lane *b)
{
    const struct lane_event *x = trace_stream_at(a), *y = trace_stream_at(b);
    int64_t xend = a->lane->base_ps + x->end_ps, yend = b->lane->base_ps + y->end_ps;
    return xend != yend ? xend > yend : x->at < y->at;
}

void trace_stream_pick(struct trace_stream *s)
{
    uint32_t best = 0;
    int64_t begin = s->heads[0];
    for (uint32_t i = 1; i < s->nlanes; i++) {
        if (s->heads[i] > begin)
            continue;
        if (s->heads[i] == begin && (begin == INT64_MAX || !first(&s->lanes[i], &s->lanes[best])))
            continue;
        best = i;
        begin = s->heads[i];
    }
    s->now = s->lanes[best].n ? &s->lanes[best] : NULL;
}

bool trace_stream_open(struct trace_stream *s, const struct trace_host *h, uint32_t r,
                       const struct trace_window *win)
{
    const struct trace_row *row = &VEC(h->rows, struct trace_row)[r];
    *s = (struct trace_stream){.nlanes = row->nlanes};
    if (win) {
        s->begin_ps = win->begin_ps;
        s->end_ps = win->end_ps;
        s->layer = win->layer;
    }
    s->lanes = malloc((row->nlanes + 1) * sizeof *s->lanes);
    s->heads = malloc((row->nlanes + 1) * sizeof *s->heads);
    if (!s->lanes || !s->heads)
        return false;
    for (uint32_t i = 0; i < row->nlanes; i++) {
        struct trace_stream_lane *l = &s->lanes[i];
        l->lane = &VEC(h->lanes, struct trace_lane)[row->first_lane + i];
        l->index = win ? &h->layers->lanes[row->first_lane + i] : NULL;
        l->events = l->lane->lane;
        l->ords = NULL;
        const struct trace_sieve *sieve = win ? l->index->sieve : NULL;
        if (sieve && win->layer <= sieve->layer) {
            l->index = &sieve->index;
            l->events = sieve->lane;
            l->ords = sieve->ords;
        }
        l->nblocks = lane_levels(l->events) ? lane_nodes(l->events, 0) : 0;
        l->block = 0;
        if (win)
            l->block = lane_find_block(l->events, trace_add(win->begin_ps, -l->lane->base_ps));
        trace_stream_load(s, l);
    }
    if (row->nlanes)
        trace_stream_pick(s);
    return true;
}

void trace_stream_close(struct trace_stream *s)
{
    free(s->lanes);
    free(s->heads);
    *s = (struct trace_stream){0};
}
