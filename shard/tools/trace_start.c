#include "shard/tools/trace.h"

/* Where the scan of a layer may begin for a window: at the last event before it that nothing spans
 * and that is shown for sure, as it is long or long after everything before. All that the rule of
 * trace_vis.h remembers behind such an event is its end.
 *
 * Looked for backwards, in the row's outermost lane, block by block over the lane's pyramid. */

#define LANES_MAX 128 /* rows of more are scanned from their begin */
#define TRIES_MAX 256 /* events that turned out to be spanned */

struct back {
    const struct trace_host *h;
    const struct trace_row *row;
    const struct trace_lane *lanes;
    const struct trace_flow_event *flows;
    uint32_t nflows;
    uint64_t block; /* loaded */
    size_t n, i;    /* events of it; those before i are not looked at yet */
    struct lane_event ev[LANE_BLOCK];
};

static void load(struct back *b, uint64_t block)
{
    struct lane_cursor c;
    lane_seek_ord(&c, b->lanes->lane, block * LANE_BLOCK);
    b->n = b->i = lane_next_block(&c, b->ev);
    b->block = block;
}

/* No event of the node is long, or long after the one before. */
static bool node_plain(const struct back *b, int level, uint64_t i, int64_t res)
{
    struct lane_node n;
    lane_node_get(b->lanes->lane, level, i, &n);
    if (n.longest_ps >= res || n.max_gap_ps >= res)
        return false;
    if (!i)
        return true;
    struct lane_node before;
    lane_node_get(b->lanes->lane, level, i - 1, &before);
    return n.begin_ps - before.end_ps < res;
}

/* Loads the last block before the loaded one that is not plain; false when all are. */
static bool step_back(struct back *b, int64_t res)
{
    int levels = lane_levels(b->lanes->lane);
    uint64_t end = b->block; /* blocks before this one are looked at */
    while (end) {
        if (!node_plain(b, 0, end - 1, res)) {
            load(b, end - 1);
            return true;
        }
        uint64_t width = 1;
        int level = 0;
        while (level + 1 < levels && end % (width * LANE_FAN) == 0 &&
               node_plain(b, level + 1, end / (width * LANE_FAN) - 1, res)) {
            level++;
            width *= LANE_FAN;
        }
        end -= width;
    }
    return false;
}

/* The end of the event before the one at i, in the outermost lane. */
static bool end_before(const struct back *b, int64_t *end_ps)
{
    if (b->i) {
        *end_ps = b->ev[b->i - 1].end_ps;
        return true;
    }
    if (!b->block)
        return false;
    struct lane_node before;
    lane_node_get(b->lanes->lane, 0, b->block - 1, &before);
    *end_ps = before.end_ps;
    return true;
}

/* Did everything in the other lanes end by `limit`, or does it begin within the event? */
static bool others_clear(const struct back *b, const struct trace_event *e, int64_t limit)
{
    for (uint32_t k = 1; k < b->row->nlanes; k++) {
        const struct trace_lane *tl = &b->lanes[k];
        struct lane_cursor c;
        struct lane_event ev;
        int64_t t;
        if (__builtin_sub_overflow(limit, tl->base_ps, &t))
            return false;
        lane_seek(&c, tl->lane, t);
        if (!lane_next(&c, &ev))
            continue;
        int64_t begin = tl->base_ps + ev.begin_ps, end = tl->base_ps + ev.end_ps;
        if (begin < e->begin_ps || (begin == e->begin_ps && end >= e->end_ps))
            return false;
    }
    return true;
}

/* Is the layer's state known after the event at i? */
static bool is_start(const struct back *b, int64_t res, bool *tried, struct trace_event *e)
{
    const struct lane_event *l = &b->ev[b->i];
    int64_t before;
    bool first = !end_before(b, &before), is_long = l->end_ps - l->begin_ps >= res;
    *tried = false;
    if (first || (!is_long && l->begin_ps - before < res))
        return false;
    *e = (struct trace_event){.begin_ps = b->lanes->base_ps + l->begin_ps,
                              .end_ps = b->lanes->base_ps + l->end_ps,
                              .at = l->at,
                              .name = l->name,
                              .line = b->lanes->line};
    *tried = true;
    if (b->row->may_hide && trace_hidden(b->h, &b->h->d->lines[e->line], e->name))
        return false;
    const struct trace_flow_event *f = trace_flow_find(b->flows, b->nflows, e);
    if (f && (f->async || !is_long))
        return false;
    int64_t limit = e->begin_ps;
    return others_clear(b, e, is_long ? limit : trace_add(limit, -res));
}

uint32_t trace_starts(const struct trace_host *h, const struct trace_row *row,
                      const struct trace_flow_event *flows, uint32_t nflows, int64_t before_ps,
                      uint32_t layers, struct trace_event *starts)
{
    struct back b = {.h = h, .row = row, .flows = flows, .nflows = nflows};
    b.lanes = VEC(h->lanes, struct trace_lane) + row->first_lane;
    int64_t t;
    if (!row->nlanes || row->nlanes > LANES_MAX || !lane_count(b.lanes->lane) ||
        __builtin_sub_overflow(before_ps, b.lanes->base_ps, &t))
        return layers;
    struct lane_cursor c;
    lane_seek(&c, b.lanes->lane, t);
    uint64_t last = lane_count(b.lanes->lane) - 1;
    load(&b, (c.ord < last ? c.ord : last) / LANE_BLOCK);
    while (layers) {
        int64_t res = trace_resolution_ps[layers - 1];
        bool found = false, tried;
        for (uint32_t tries = 0; !found && tries < TRIES_MAX;) {
            if (!b.i && !step_back(&b, res))
                return layers;
            b.i--;
            found = b.ev[b.i].begin_ps <= t && is_start(&b, res, &tried, &starts[layers - 1]);
            tries += !found && b.ev[b.i].begin_ps <= t && tried;
        }
        if (!found)
            return layers;
        layers--;
        b.i++; /* it may do for the next layer too */
    }
    return 0;
}
