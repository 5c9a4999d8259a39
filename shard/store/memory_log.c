#include "shard/store/memory_log.h"

#include "lib/base/pb_wire.h"

/* A row is a byte of flags, then as varints what is other than in the row before: distance in the
 * file, and zigzag differences of begin, bytes and address; the rest where a flag says so. */
enum {
    FREES = 1,
    ALLOCATOR = 2, /* another one */
    RESERVED = 4,
    DURATION = 8,
    HEAP = 16, /* moved by another amount than was handed out or taken back */
};

#define ROW_MAX (1 + 8 * XP_VARINT_MAX)
#define CHUNK 8192

struct memory_chunk {
    struct memory_chunk *next;
    uint32_t n;
    uint8_t data[];
};

enum memory_stat memory_stat_of(struct xp_span name)
{
    static const char *const names[MEMORY_STATS] = {
        [MEMORY_INDEX_ON_HOST] = "index_on_host",
        [MEMORY_DEVICE_ORDINAL] = "device_ordinal",
        [MEMORY_ALLOCATOR_NAME] = "allocator_name",
        [MEMORY_BYTES_RESERVED] = "bytes_reserved",
        [MEMORY_BYTES_ALLOCATED] = "bytes_allocated",
        [MEMORY_ALLOCATION_BYTES] = "allocation_bytes",
        [MEMORY_ADDRESS] = "addr",
    };
    int k = 0;
    while (k < MEMORY_STATS && !xp_span_eq(name, xp_span_str(names[k])))
        k++;
    return (enum memory_stat)k;
}

enum memory_act memory_act_of(struct xp_span name)
{
    if (xp_span_eq(name, XP_SPAN_LIT("MemoryAllocation")))
        return MEMORY_ALLOCATES;
    return xp_span_eq(name, XP_SPAN_LIT("MemoryDeallocation")) ? MEMORY_FREES : MEMORY_NONE;
}

/* --- writing --- */

void memory_pen_reset(struct memory_pen *pen)
{
    *pen = (struct memory_pen){0};
}

static uint8_t *room(struct memory_pen *pen, struct xp_bump *out)
{
    struct memory_chunk *c = pen->last;
    if (c && c->n + ROW_MAX <= CHUNK)
        return c->data + c->n;
    c = xp_bump_alloc(out, sizeof *c + CHUNK, 16);
    if (!c)
        return NULL;
    *c = (struct memory_chunk){0};
    if (pen->last)
        pen->last->next = c;
    else
        pen->first = c;
    pen->last = c;
    return c->data;
}

/* Differences wrap: any number comes back as it was. */
static uint8_t *put(uint8_t *p, uint64_t is, uint64_t was)
{
    return xp_varint_write(p, xp_zigzag((int64_t)(is - was)));
}

static uint64_t moved(const struct memory_row *row)
{
    return row->frees ? -(uint64_t)row->allocated : (uint64_t)row->allocated;
}

bool memory_pen_add(struct memory_pen *pen, const struct memory_row *row, struct xp_bump *out)
{
    const struct memory_row *prev = &pen->prev;
    uint8_t *begin = room(pen, out), *p = begin;
    uint64_t heap = (uint64_t)prev->heap + moved(row);

    if (!p)
        return false;
    *p++ =
        (uint8_t)((row->frees ? FREES : 0) | (row->allocator != prev->allocator ? ALLOCATOR : 0) |
                  (row->reserved != prev->reserved ? RESERVED : 0) |
                  (row->duration_ps ? DURATION : 0) | ((uint64_t)row->heap != heap ? HEAP : 0));
    p = xp_varint_write(p, row->at - prev->at);
    p = put(p, (uint64_t)row->begin_ps, (uint64_t)prev->begin_ps);
    p = put(p, (uint64_t)row->allocated, 0);
    p = put(p, row->address, prev->address);
    if (*begin & ALLOCATOR)
        p = xp_varint_write(p, row->allocator);
    if (*begin & RESERVED)
        p = put(p, (uint64_t)row->reserved, (uint64_t)prev->reserved);
    if (*begin & DURATION)
        p = put(p, (uint64_t)row->duration_ps, 0);
    if (*begin & HEAP)
        p = put(p, (uint64_t)row->heap, heap);
    pen->last->n += (uint32_t)(p - begin);
    pen->prev = *row;
    pen->count++;
    return true;
}

bool memory_pen_end(struct memory_pen *pen, struct xp_bump *out, const struct memory_log **log)
{
    struct memory_log *l = NULL;
    if (pen->count) {
        l = xp_bump_alloc(out, sizeof *l, _Alignof(struct memory_log));
        if (!l)
            return false;
        *l = (struct memory_log){pen->count, pen->first};
    }
    *log = l;
    memory_pen_reset(pen);
    return true;
}

/* --- reading; our own bytes, always whole --- */

static inline uint64_t take(const uint8_t **pp)
{
    const uint8_t *p = *pp;
    uint64_t v = *p & 0x7f;
    for (unsigned shift = 7; *p++ & 0x80; shift += 7)
        v |= (uint64_t)(*p & 0x7f) << shift;
    *pp = p;
    return v;
}

static inline uint64_t take_from(const uint8_t **pp, uint64_t was)
{
    return was + (uint64_t)xp_unzigzag(take(pp));
}

static void open_chunk(struct memory_cursor *c, const struct memory_chunk *chunk)
{
    c->chunk = chunk;
    c->p = chunk ? chunk->data : NULL;
    c->end = chunk ? chunk->data + chunk->n : NULL;
}

void memory_log_open(struct memory_cursor *c, const struct memory_log *log)
{
    c->row = (struct memory_row){0};
    open_chunk(c, log ? log->first : NULL);
}

bool memory_log_next(struct memory_cursor *c)
{
    struct memory_row *row = &c->row;
    if (c->p == c->end && c->chunk)
        open_chunk(c, c->chunk->next);
    if (c->p == c->end)
        return false;
    const uint8_t *p = c->p;
    uint8_t flags = *p++;
    row->frees = flags & FREES;
    row->at += take(&p);
    row->begin_ps = (int64_t)take_from(&p, (uint64_t)row->begin_ps);
    row->allocated = (int64_t)take_from(&p, 0);
    row->address = take_from(&p, row->address);
    if (flags & ALLOCATOR)
        row->allocator = (uint32_t)take(&p);
    if (flags & RESERVED)
        row->reserved = (int64_t)take_from(&p, (uint64_t)row->reserved);
    row->duration_ps = flags & DURATION ? (int64_t)take_from(&p, 0) : 0;
    row->heap = (int64_t)((uint64_t)row->heap + moved(row));
    if (flags & HEAP)
        row->heap = (int64_t)take_from(&p, (uint64_t)row->heap);
    c->p = p;
    return true;
}

bool memory_log_cut(const struct memory_log *log, int64_t t0_ps, int64_t t1_ps, struct xp_bump *out,
                    const struct memory_log **cut)
{
    struct memory_pen pen;
    struct memory_cursor c;
    memory_pen_reset(&pen);
    memory_log_open(&c, log);
    while (memory_log_next(&c)) {
        struct memory_row row = c.row;
        int64_t begin = row.begin_ps, end = begin + row.duration_ps;
        if (begin >= t1_ps || (begin < t0_ps && end <= t0_ps))
            continue;
        row.begin_ps = begin < t0_ps ? t0_ps : begin;
        row.duration_ps = (end > t1_ps ? t1_ps : end) - row.begin_ps;
        if (!memory_pen_add(&pen, &row, out))
            return false;
    }
    return memory_pen_end(&pen, out, cut);
}
