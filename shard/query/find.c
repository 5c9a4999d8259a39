/* Events by id, and their neighbours. */
#include "lib/base/pb_wire.h"
#include "shard/query/query_int.h"

/* XEvent.offset_ps; absent is 0. */
static int64_t offset_of(struct xp_span body)
{
    struct xp_pb r = xp_pb_open(body);
    struct xp_pb_field f;
    int64_t offset = 0;
    while (xp_pb_next(&r, &f))
        if (f.num == 2 && f.type == XP_PB_VARINT)
            offset = (int64_t)f.value;
    return offset;
}

/* Looks where the event should be by its begin: a few events in each lane. */
static bool find_by_time(struct query_event_at *e, uint64_t id, int64_t t_ps)
{
    struct lane_cursor c;
    for (e->lane = 0; e->lane < e->l.line->nlanes; e->lane++) {
        lane_seek(&c, e->l.line->lanes[e->lane], t_ps);
        while (lane_next(&c, &e->ev) && e->ev.begin_ps <= t_ps)
            if (e->ev.at == id)
                return true;
    }
    return false;
}

/* Looks at all: for events whose begin was mended when they were decoded. */
static bool find_by_scan(struct query_event_at *e, uint64_t id, const struct out *out)
{
    struct lane_cursor c;
    struct lane_event ev[LANE_BLOCK];
    for (e->lane = 0; e->lane < e->l.line->nlanes; e->lane++) {
        lane_seek_ord(&c, e->l.line->lanes[e->lane], 0);
        for (size_t n; (n = lane_next_block(&c, ev)) && !out_cancelled(out);)
            for (size_t i = 0; i < n; i++)
                if (ev[i].at == id) {
                    e->ev = ev[i];
                    return true;
                }
    }
    return false;
}

static enum xp_status no_event(uint64_t id, struct xp_error *err)
{
    return xp_fail(err, XP_NOT_FOUND, 0, "there is no event %llu", (unsigned long long)id);
}

/* The derived line that has event `id`, which is one of theirs. */
static const struct query_line *made_at(const struct query_book *b, uint64_t id)
{
    uint32_t lo = 0, hi = b->nmade; /* the last that begins at or before id */
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (b->made[mid].first_id <= id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? &b->made[lo - 1] : NULL;
}

static enum xp_status find_made(struct query_book *b, uint64_t id, struct xp_arena *a,
                                struct query_event_at *found, struct xp_error *err)
{
    XP_TRY(query_derive(b, a, err));
    const struct query_line *l = id < b->end_id ? made_at(b, id) : NULL;
    if (!l)
        return no_event(id, err);
    uint64_t ord = id - l->first_id;
    uint32_t lane = 0;
    while (lane < l->line->nlanes && ord >= lane_count(l->line->lanes[lane]))
        ord -= lane_count(l->line->lanes[lane++]);
    struct lane_cursor c;
    *found = (struct query_event_at){.l = *l, .lane = lane};
    if (lane == l->line->nlanes)
        return no_event(id, err);
    lane_seek_ord(&c, l->line->lanes[lane], ord);
    if (!lane_next(&c, &found->ev))
        return no_event(id, err);
    found->ev.at = id;
    return XP_OK;
}

enum xp_status query_find(struct query_book *b, uint64_t id, struct xp_arena *a,
                          const struct out *out, struct query_event_at *found, struct xp_error *err)
{
    struct xp_span body;
    struct xp_error ignored;
    const struct part *p = b->p;
    if (id >= QUERY_DERIVED_ID)
        return find_made(b, id, a, found, err);
    const struct part_line *l = part_line_at(p, id);
    if (!l)
        return no_event(id, err);
    int state = atomic_load_explicit(&p->planes[l->plane].state, memory_order_acquire);
    if (state == PART_WAITING || state == PART_LOADING)
        return xp_fail(err, XP_BUSY, 0, "the plane of event %llu is still being decoded",
                       (unsigned long long)id);
    *found = (struct query_event_at){.l = {.line = l, .number = (uint32_t)(l - p->lines)}};
    if (state == PART_READY) {
        if (part_event_body(p, id, a, &body, &ignored) == XP_OK &&
            find_by_time(found, id, offset_of(body)))
            return XP_OK;
        if (find_by_scan(found, id, out))
            return XP_OK;
    }
    if (out_cancelled(out))
        return xp_fail(err, XP_CANCELLED, 0, "the event is not wanted any more");
    return no_event(id, err);
}

/* The next event of a lane, with its id. */
static bool next_of(struct lane_cursor *c, const struct query_line *l, uint32_t lane,
                    struct lane_event *ev)
{
    if (!lane_next(c, ev))
        return false;
    ev->at = query_id(l, lane, ev);
    return true;
}

/* The last event of the lane before `ev`, or the first after it. */
static bool step_in_lane(const struct query_line *l, uint32_t lane, const struct lane_event *ev,
                         int dir, struct lane_event *to)
{
    struct lane_cursor c;
    struct lane_event at;
    lane_seek(&c, l->line->lanes[lane], ev->begin_ps);
    uint64_t ord = c.ord;
    bool more = next_of(&c, l, lane, &at);
    while (more && lane_event_before(&at, ev)) {
        ord++;
        more = next_of(&c, l, lane, &at);
    }
    if (dir > 0) {
        while (more && !lane_event_before(ev, &at))
            more = next_of(&c, l, lane, &at);
        *to = at;
        return more;
    }
    if (ord == 0)
        return false;
    lane_seek_ord(&c, l->line->lanes[lane], ord - 1);
    return next_of(&c, l, lane, to);
}

bool query_step(const struct query_event_at *from, int dir, struct query_event_at *to)
{
    bool any = false;
    *to = *from;
    for (uint32_t i = 0; i < from->l.line->nlanes; i++) {
        struct lane_event ev;
        if (!step_in_lane(&from->l, i, &from->ev, dir, &ev))
            continue;
        if (!any || (dir > 0 ? lane_event_before(&ev, &to->ev) : lane_event_before(&to->ev, &ev))) {
            to->ev = ev;
            to->lane = i;
            any = true;
        }
    }
    return any;
}

int64_t query_self(const struct query_event_at *e)
{
    int64_t dur = e->ev.end_ps - e->ev.begin_ps;
    if (e->lane + 1 >= e->l.line->nlanes)
        return dur;
    const struct lane *below = e->l.line->lanes[e->lane + 1];
    struct lane_cursor c;
    struct lane_event ev;
    uint64_t first, last;
    lod_range(below, e->ev.begin_ps, e->ev.end_ps, &first, &last);
    if (first < last) {
        lane_seek_ord(&c, below, first);
        if (lane_next(&c, &ev) && ev.begin_ps < e->ev.begin_ps)
            first++;
    }
    if (first < last) {
        lane_seek_ord(&c, below, last - 1);
        if (lane_next(&c, &ev) && ev.end_ps > e->ev.end_ps)
            last--;
    }
    int64_t inside = first < last ? lod_busy(below, first, last) : 0;
    return inside < dur ? dur - inside : 0;
}
