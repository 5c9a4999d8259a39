#include "shard/store/device.h"

#include "lib/base/pb_wire.h"

/* An event is varint(zigzag(longer) << 1 | moved), and zigzag(change of the shift) if moved. A
 * difference of length that has no room for that bit is written with LONG and bare. */
#define ENTRY_MAX (3 * XP_VARINT_MAX)
#define LONG_LIMIT (UINT64_C(1) << 62)
#define LONG_MARK (LONG_LIMIT << 1)

void device_pen_reset(struct device_pen *pen)
{
    *pen = (struct device_pen){0};
}

static uint8_t *room(struct device_pen *pen, struct xp_bump *out)
{
    struct device_chunk *c = pen->last;
    if (c && c->n + ENTRY_MAX <= DEVICE_CHUNK)
        return c->data + c->n;
    c = xp_bump_alloc(out, sizeof *c + DEVICE_CHUNK, 16);
    if (!c)
        return NULL;
    *c = (struct device_chunk){0};
    if (pen->last)
        pen->last->next = c;
    else
        pen->first = c;
    pen->last = c;
    return c->data;
}

static bool put(struct device_pen *pen, struct xp_bump *out, uint64_t shift, uint64_t longer)
{
    uint64_t z = xp_zigzag((int64_t)longer), moved = shift != pen->shift;
    uint8_t *p = room(pen, out), *begin = p;
    if (!p)
        return false;
    if (z < LONG_LIMIT) {
        p = xp_varint_write(p, z << 1 | moved);
    } else {
        p = xp_varint_write(p, LONG_MARK | moved);
        p = xp_varint_write(p, z);
    }
    if (moved)
        p = xp_varint_write(p, xp_zigzag((int64_t)(shift - pen->shift)));
    pen->last->n += (uint32_t)(p - begin);
    pen->shift = shift;
    return true;
}

bool device_pen_write(struct device_pen *pen, struct xp_bump *out, uint64_t shift, uint64_t longer)
{
    for (; pen->same; pen->same--)
        if (!put(pen, out, pen->shift, 0))
            return false;
    return put(pen, out, shift, longer);
}

bool device_pen_end(struct device_pen *pen, struct xp_bump *out, const struct device_times **times)
{
    struct device_times *t = NULL;
    if (pen->any) {
        t = xp_bump_alloc(out, sizeof *t, 16);
        if (t)
            *t = (struct device_times){pen->first_shift, pen->first};
    }
    *times = t;
    bool ok = t || !pen->any;
    device_pen_reset(pen);
    return ok;
}

void device_open(struct device_cursor *c, const struct device_times *times, int64_t base_ps)
{
    *c = (struct device_cursor){.chunk = times ? times->first : NULL,
                                .shift = times ? times->shift : (uint64_t)base_ps};
    if (c->chunk) {
        c->p = c->chunk->data;
        c->end = c->p + c->chunk->n;
    }
}

/* Our own bytes, always whole. */
static inline uint64_t take(const uint8_t **pp)
{
    const uint8_t *p = *pp;
    uint64_t v = *p & 0x7f;
    for (unsigned shift = 7; *p++ & 0x80; shift += 7)
        v |= (uint64_t)(*p & 0x7f) << shift;
    *pp = p;
    return v;
}

void device_next(struct device_cursor *c, uint64_t *shift, uint64_t *longer)
{
    *longer = 0;
    if (c->p == c->end && c->chunk && (c->chunk = c->chunk->next)) {
        c->p = c->chunk->data;
        c->end = c->p + c->chunk->n;
    }
    if (c->p != c->end) {
        uint64_t v = take(&c->p);
        bool moved = v & 1;
        *longer = (uint64_t)xp_unzigzag(v & LONG_MARK ? take(&c->p) : v >> 1);
        if (moved)
            c->shift += (uint64_t)xp_unzigzag(take(&c->p));
    }
    *shift = c->shift;
}
