#include "shard/store/device.h"

#include "lib/base/pb_wire.h"

/* An event is varint(zigzag(longer) << 1 | moved), and zigzag(change of the shift) if moved. A
 * difference of length that has no room for that bit is written with LONG and bare. */
#define ENTRY_MAX (3 * XP_VARINT_MAX)
#define CHUNK 4096
#define LONG_LIMIT (UINT64_C(1) << 62)
#define LONG_MARK (LONG_LIMIT << 1)

void device_pen_reset(struct device_pen *pen)
{
    *pen = (struct device_pen){0};
}

static bool put(struct device_pen *pen, struct xp_bump *out, uint64_t shift, uint64_t longer)
{
    uint64_t z = xp_zigzag((int64_t)longer), moved = shift != pen->shift;
    uint8_t *p = chunks_room(&pen->chunks, ENTRY_MAX, CHUNK, out);
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
    chunks_end_entry(&pen->chunks, p);
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
            *t = (struct device_times){pen->first_shift, pen->chunks.first};
    }
    *times = t;
    bool ok = t || !pen->any;
    device_pen_reset(pen);
    return ok;
}

void device_open(struct device_cursor *c, const struct device_times *times, int64_t base_ps)
{
    c->shift = times ? times->shift : (uint64_t)base_ps;
    chunk_open(&c->at, times ? times->first : NULL);
}

void device_next(struct device_cursor *c, uint64_t *shift, uint64_t *longer)
{
    *longer = 0;
    if (chunk_more(&c->at)) {
        uint64_t v = chunk_varint(&c->at.p);
        bool moved = v & 1;
        *longer = (uint64_t)xp_unzigzag(v & LONG_MARK ? chunk_varint(&c->at.p) : v >> 1);
        if (moved)
            c->shift += (uint64_t)xp_unzigzag(chunk_varint(&c->at.p));
    }
    *shift = c->shift;
}
