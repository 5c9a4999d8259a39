#include "shard/store/lane_int.h"

/* Times of host tracers are whole nanoseconds; dividing by 1000 saves a byte or more of each. */
#define UNIT_NS 1
/* Some event begins before its predecessor ended: gaps are zigzag. */
#define OVERLAP 2

static uint8_t choose_flags(const struct lane_raw *ev, uint32_t n)
{
    int64_t end = ev[0].begin_ps;
    uint8_t flags = UNIT_NS;
    for (uint32_t i = 0; i < n; i++) {
        int64_t gap = ev[i].begin_ps - end, dur = ev[i].end_ps - ev[i].begin_ps;
        if (gap < 0)
            flags |= OVERLAP;
        if (gap % 1000 || dur % 1000)
            flags &= (uint8_t)~UNIT_NS;
        end = ev[i].end_ps;
    }
    return flags;
}

size_t lane_pack(const struct lane_raw *ev, uint32_t n, struct lane_block *b, uint8_t *out)
{
    uint8_t *p = out;
    b->flags = choose_flags(ev, n);
    int64_t unit = b->flags & UNIT_NS ? 1000 : 1;
    int64_t end = ev[0].begin_ps;
    uint64_t at = ev[0].at;
    for (uint32_t i = 0; i < n; i++) {
        int64_t gap = (ev[i].begin_ps - end) / unit;
        p = xp_varint_write(p, b->flags & OVERLAP ? xp_zigzag(gap) : (uint64_t)gap);
        p = xp_varint_write(p, (uint64_t)(ev[i].end_ps - ev[i].begin_ps) / (uint64_t)unit);
        p = xp_varint_write(p, ev[i].name);
        p = xp_varint_write(p, xp_zigzag((int64_t)(ev[i].at - at)));
        end = ev[i].end_ps;
        at = ev[i].at;
    }
    return (size_t)(p - out);
}

/* Our own bytes: always whole, so that no end need be checked. */
static inline uint64_t take(const uint8_t **pp)
{
    const uint8_t *p = *pp;
    uint64_t v = *p & 0x7f;
    for (unsigned shift = 7; *p++ & 0x80; shift += 7)
        v |= (uint64_t)(*p & 0x7f) << shift;
    *pp = p;
    return v;
}

static inline void unpack_one(struct lane_unpack *u, int64_t unit, struct lane_event *ev)
{
    uint64_t gap = take(&u->p);
    int64_t step = u->flags & OVERLAP ? xp_unzigzag(gap) : (int64_t)gap;
    ev->begin_ps = u->prev_end + step * unit;
    ev->end_ps = ev->begin_ps + (int64_t)take(&u->p) * unit;
    ev->name = (uint32_t)take(&u->p);
    ev->at = u->prev_at + (uint64_t)xp_unzigzag(take(&u->p));
    u->prev_end = ev->end_ps;
    u->prev_at = ev->at;
}

void lane_unpack_next(struct lane_unpack *u, struct lane_event *ev)
{
    unpack_one(u, u->flags & UNIT_NS ? 1000 : 1, ev);
}

void lane_unpack_many(struct lane_unpack *u, struct lane_event *ev, size_t n, uint64_t ord)
{
    int64_t unit = u->flags & UNIT_NS ? 1000 : 1;
    for (size_t i = 0; i < n; i++) {
        unpack_one(u, unit, &ev[i]);
        ev[i].ord = ord + i;
    }
}
