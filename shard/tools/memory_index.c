#include "shard/tools/memory_index.h"

#include "lib/base/pb_wire.h"
#include "shard/store/chunks.h"
#include "shard/tools/addresses.h"

#define BLOCK 256
#define ENTRY_MAX (3 * XP_VARINT_MAX)
#define NEVER UINT64_MAX

/* How an event reaches: an allocation is gone k events later, or never; what frees reaches nowhere.
 */
enum { REACH_FREES, REACH_NEVER, REACH_1 };

struct memory_index_block {
    const uint8_t *p;
    int64_t time_ps; /* of its first event */
    uint64_t at;
    uint64_t until; /* number of the event by which all of it is gone */
};

static bool find_reaches(const struct memory_change *v, size_t n, struct xp_arena *a,
                         uint32_t *reach)
{
    struct addresses t;
    if (!addresses_init(&t, a))
        return false;
    for (size_t i = 0; i < n; i++) {
        uint32_t old = address_take(&t, v[i].address);
        if (old != ADDRESS_FREE)
            reach[old] = (uint32_t)(i - old - 1) + REACH_1;
        reach[i] = v[i].frees ? REACH_FREES : REACH_NEVER;
        if (v[i].frees)
            continue;
        struct address *s = address_at(&t, v[i].address);
        if (!s)
            return false;
        s->index = (uint32_t)i;
    }
    return true;
}

static uint64_t end_of(uint64_t number, uint64_t reach)
{
    return reach == REACH_FREES ? 0 : reach == REACH_NEVER ? NEVER : number + 1 + reach - REACH_1;
}

/* Differences wrap: any number comes back as it was. */
static bool pack_block(struct memory_index_block *b, const struct memory_change *v,
                       const uint32_t *reach, size_t from, size_t to, struct xp_bump *out)
{
    uint8_t packed[BLOCK * ENTRY_MAX], *p = packed, *own;
    *b = (struct memory_index_block){.time_ps = v[from].time_ps, .at = v[from].at};
    for (size_t i = from; i < to; i++) {
        const struct memory_change *prev = &v[i > from ? i - 1 : i];
        uint64_t end = end_of(i, reach[i]);
        p = xp_varint_write(p, (uint64_t)v[i].time_ps - (uint64_t)prev->time_ps);
        p = xp_varint_write(p, xp_zigzag((int64_t)(v[i].at - prev->at)));
        p = xp_varint_write(p, reach[i]);
        b->until = end > b->until ? end : b->until;
    }
    own = xp_bump_alloc(out, (size_t)(p - packed), 1);
    if (own)
        memcpy(own, packed, (size_t)(p - packed));
    b->p = own;
    return own;
}

bool memory_index_make(struct memory_index *x, const struct memory_change *changes, size_t n,
                       struct xp_arena *scratch, struct xp_bump *out)
{
    uint32_t *reach = xp_arena_alloc(scratch, (n + 1) * sizeof *reach);
    size_t nblocks = n / BLOCK + (n % BLOCK != 0);
    *x = (struct memory_index){.n = n};
    x->blocks = xp_bump_alloc(out, (nblocks + 1) * sizeof *x->blocks, 8);
    if (!reach || !x->blocks || !find_reaches(changes, n, scratch, reach))
        return false;
    for (; x->nblocks < nblocks; x->nblocks++) {
        size_t from = x->nblocks * BLOCK, to = n - from < BLOCK ? n : from + BLOCK;
        if (!pack_block(&x->blocks[x->nblocks], changes, reach, from, to, out))
            return false;
    }
    return true;
}

struct walk {
    const uint8_t *p;
    struct memory_moment now; /* after a step */
    uint64_t end;             /* number of the event by which it is gone */
};

static struct walk walk_from(const struct memory_index *x, size_t block)
{
    const struct memory_index_block *b = &x->blocks[block];
    return (struct walk){.p = b->p, .now = {block * BLOCK - 1, b->time_ps, b->at}};
}

static void step(struct walk *w)
{
    w->now.number++;
    w->now.time_ps = (int64_t)((uint64_t)w->now.time_ps + chunk_varint(&w->p));
    w->now.at += (uint64_t)xp_unzigzag(chunk_varint(&w->p));
    w->end = end_of(w->now.number, chunk_varint(&w->p));
}

static size_t block_end(const struct memory_index *x, size_t block)
{
    uint64_t end = (uint64_t)(block + 1) * BLOCK;
    return end < x->n ? end : x->n;
}

static bool is_after(int64_t time_ps, uint64_t at, int64_t than_ps, uint64_t than_at)
{
    return time_ps != than_ps ? time_ps > than_ps : at > than_at;
}

bool memory_index_find(const struct memory_index *x, int64_t time_ps, uint64_t at,
                       struct memory_moment *m)
{
    size_t lo = 0, hi = x->nblocks; /* blocks before lo begin in time */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (is_after(x->blocks[mid].time_ps, x->blocks[mid].at, time_ps, at))
            hi = mid;
        else
            lo = mid + 1;
    }
    if (!lo)
        return false;
    struct walk w = walk_from(x, lo - 1);
    for (size_t end = block_end(x, lo - 1); w.now.number + 1 < end;) {
        step(&w);
        if (is_after(w.now.time_ps, w.now.at, time_ps, at))
            break;
        *m = w.now;
    }
    return true;
}

size_t memory_index_alive(const struct memory_index *x, uint64_t number,
                          struct memory_moment *alive)
{
    size_t n = 0;
    for (size_t i = 0; i < x->nblocks && i * BLOCK <= number; i++) {
        if (x->blocks[i].until <= number)
            continue;
        struct walk w = walk_from(x, i);
        size_t end = block_end(x, i);
        for (size_t k = i * BLOCK; k < end && k <= number; k++) {
            step(&w);
            if (w.end <= number)
                continue;
            if (alive)
                alive[n] = w.now;
            n++;
        }
    }
    return n;
}
