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
    for (e->lane = 0; e->lane < e->line->nlanes; e->lane++) {
        lane_seek(&c, e->line->lanes[e->lane], t_ps);
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
    for (e->lane = 0; e->lane < e->line->nlanes; e->lane++) {
        lane_seek_ord(&c, e->line->lanes[e->lane], 0);
        for (size_t n; (n = lane_next_block(&c, ev)) && !out_cancelled(out);)
            for (size_t i = 0; i < n; i++)
                if (ev[i].at == id) {
                    e->ev = ev[i];
                    return true;
                }
    }
    return false;
}

enum xp_status query_find(const struct part *p, uint64_t id, struct xp_arena *a,
                          const struct out *out, struct query_event_at *found, struct xp_error *err)
{
    struct xp_span body;
    struct xp_error ignored;
    const struct part_line *l = part_line_at(p, id);
    if (!l)
        return xp_fail(err, XP_NOT_FOUND, 0, "there is no event %llu", (unsigned long long)id);
    int state = atomic_load_explicit(&p->planes[l->plane].state, memory_order_acquire);
    if (state == PART_WAITING || state == PART_LOADING)
        return xp_fail(err, XP_BUSY, 0, "the plane of event %llu is still being decoded",
                       (unsigned long long)id);
    *found = (struct query_event_at){.line = l, .number = (uint32_t)(l - p->lines)};
    if (state == PART_READY) {
        if (part_event_body(p, id, a, &body, &ignored) == XP_OK &&
            find_by_time(found, id, offset_of(body)))
            return XP_OK;
        if (find_by_scan(found, id, out))
            return XP_OK;
    }
    if (out_cancelled(out))
        return xp_fail(err, XP_CANCELLED, 0, "the event is not wanted any more");
    return xp_fail(err, XP_NOT_FOUND, 0, "there is no event %llu", (unsigned long long)id);
}

/* Order of (begin, longer first, id). */
static bool before(const struct lane_event *a, const struct lane_event *b)
{
    if (a->begin_ps != b->begin_ps)
        return a->begin_ps < b->begin_ps;
    if (a->end_ps != b->end_ps)
        return a->end_ps > b->end_ps;
    return a->at < b->at;
}

/* The last event of the lane before `ev`, or the first after it. */
static bool step_in_lane(const struct lane *l, const struct lane_event *ev, int dir,
                         struct lane_event *to)
{
    struct lane_cursor c;
    struct lane_event at;
    lane_seek(&c, l, ev->begin_ps);
    uint64_t ord = c.ord;
    bool more = lane_next(&c, &at);
    while (more && before(&at, ev)) {
        ord++;
        more = lane_next(&c, &at);
    }
    if (dir > 0) {
        while (more && !before(ev, &at))
            more = lane_next(&c, &at);
        *to = at;
        return more;
    }
    if (ord == 0)
        return false;
    lane_seek_ord(&c, l, ord - 1);
    return lane_next(&c, to);
}

bool query_step(const struct query_event_at *from, int dir, struct query_event_at *to)
{
    bool any = false;
    *to = *from;
    for (uint32_t i = 0; i < from->line->nlanes; i++) {
        struct lane_event ev;
        if (!step_in_lane(from->line->lanes[i], &from->ev, dir, &ev))
            continue;
        if (!any || (dir > 0 ? before(&ev, &to->ev) : before(&to->ev, &ev))) {
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
    if (e->lane + 1 >= e->line->nlanes)
        return dur;
    const struct lane *below = e->line->lanes[e->lane + 1];
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
