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
    uint8_t *begin = chunks_room(&pen->chunks, ROW_MAX, CHUNK, out), *p = begin;
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
    chunks_end_entry(&pen->chunks, p);
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
        *l = (struct memory_log){pen->count, pen->chunks.first};
    }
    *log = l;
    memory_pen_reset(pen);
    return true;
}

/* --- reading; our own bytes, always whole --- */

static inline uint64_t take_from(const uint8_t **pp, uint64_t was)
{
    return was + (uint64_t)xp_unzigzag(chunk_varint(pp));
}

void memory_log_open(struct memory_cursor *c, const struct memory_log *log)
{
    c->row = (struct memory_row){0};
    chunk_open(&c->at, log ? log->first : NULL);
}

bool memory_log_next(struct memory_cursor *c)
{
    struct memory_row *row = &c->row;
    if (!chunk_more(&c->at))
        return false;
    const uint8_t *p = c->at.p;
    uint8_t flags = *p++;
    row->frees = flags & FREES;
    row->at += chunk_varint(&p);
    row->begin_ps = (int64_t)take_from(&p, (uint64_t)row->begin_ps);
    row->allocated = (int64_t)take_from(&p, 0);
    row->address = take_from(&p, row->address);
    if (flags & ALLOCATOR)
        row->allocator = (uint32_t)chunk_varint(&p);
    if (flags & RESERVED)
        row->reserved = (int64_t)take_from(&p, (uint64_t)row->reserved);
    row->duration_ps = flags & DURATION ? (int64_t)take_from(&p, 0) : 0;
    row->heap = (int64_t)((uint64_t)row->heap + moved(row));
    if (flags & HEAP)
        row->heap = (int64_t)take_from(&p, (uint64_t)row->heap);
    c->at.p = p;
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
