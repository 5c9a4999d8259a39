#include "shard/tools/trace_rank.h"

#include "shard/tools/trace_peer.h"

/* The serials of the events that begin in a span of time, half a byte each.
 *
 * All lanes are read side by side, a block at a time, the one whose next block begins first. What
 * begins before all that is still unread is put into slots by its begin; most are alone there and
 * are done with that. Those of one begin are sorted by XProf's order, and numbered. */

#define LANES_MAX 4096
#define BLOCKS_AHEAD 256 /* read before they are numbered */
#define SLOT_BITS 15

struct rank_block {
    uint32_t lane;
    uint32_t left; /* events that are not numbered yet */
    struct lane_event ev[LANE_BLOCK];
};

struct trace_begin {
    int64_t begin_ps;
    uint32_t item;
};

struct rank_lane {
    const struct trace_lane *tl;
    _Atomic uint8_t *serials;
    uint64_t block, nblocks; /* the next to read, the end */
    int64_t head;            /* its begin, in session time */
    uint64_t order;          /* of its events that are not asynchronous: device, line */
    uint64_t async_order;
    bool may_hide, may_async, counter, looked;
    struct derive_eye eye;
};

/* One of several that begin together. */
struct rank_peer {
    struct trace_peer key;
    uint64_t ord;
    uint32_t lane;
};
_Static_assert(sizeof(struct rank_peer) <= TRACE_PEER_SIZE, "trace_peers_sort has room for one");

struct ranks {
    struct trace_host *h;
    struct rank_lane *lanes;
    uint32_t nlanes;
    uint32_t *heap; /* lanes with blocks to read, the first to begin on top */
    uint32_t nheap;
    struct rank_block *blocks;
    uint32_t *spare; /* blocks that are free */
    uint32_t nspare, nblocks;
    struct trace_begin *begins, *scratch; /* of the events read; item: block * LANE_BLOCK + i */
    size_t nbegins;
    uint32_t slots[1 << SLOT_BITS];        /* the last event of each, + 1 */
    uint32_t *next;                        /* of each event: another one of its slot, + 1 */
    uint16_t shared[(1 << SLOT_BITS) + 1]; /* slots of more than one event */
    int64_t from, until;                   /* what begins in [from, until) is numbered */
    int64_t done;                          /* all that begin before are */
    struct vec peers;
};

/* --- the lane that comes first --- */

static void heap_down(struct ranks *s, uint32_t i)
{
    uint32_t x = s->heap[i];
    for (uint32_t k; (k = 2 * i + 1) < s->nheap; i = k) {
        if (k + 1 < s->nheap && s->lanes[s->heap[k + 1]].head < s->lanes[s->heap[k]].head)
            k++;
        if (s->lanes[s->heap[k]].head >= s->lanes[x].head)
            break;
        s->heap[i] = s->heap[k];
    }
    s->heap[i] = x;
}

/* Is there another block that begins in time? */
static bool lane_head(const struct ranks *s, struct rank_lane *l)
{
    if (l->block >= l->nblocks)
        return false;
    l->head = l->tl->base_ps + lane_block_begin(l->tl->lane, l->block);
    return l->head < s->until;
}

/* Reads the first lane's next block. False: it is not in order. */
static bool read_first(struct ranks *s)
{
    uint32_t i = s->heap[0];
    struct rank_lane *l = &s->lanes[i];
    uint32_t at = s->spare[--s->nspare];
    struct rank_block *b = &s->blocks[at];
    struct lane_cursor c;
    lane_seek_ord(&c, l->tl->lane, l->block * LANE_BLOCK);
    uint32_t n = (uint32_t)lane_next_block(&c, b->ev);
    int64_t last = s->done;
    b->lane = i;
    b->left = 0;
    for (uint32_t k = 0; k < n; k++) {
        int64_t begin = l->tl->base_ps + b->ev[k].begin_ps;
        if (begin < last)
            return false;
        last = begin;
        if (begin < s->from || begin >= s->until)
            continue;
        s->begins[s->nbegins++] = (struct trace_begin){begin, at * LANE_BLOCK + k};
        b->left++;
    }
    if (!b->left)
        s->spare[s->nspare++] = at;
    l->block++;
    if (!lane_head(s, l))
        s->heap[0] = s->heap[--s->nheap];
    if (s->nheap)
        heap_down(s, 0);
    return true;
}

/* --- those that begin together --- */

static bool is_async(struct ranks *s, struct rank_lane *l, int64_t begin_ps,
                     const struct lane_event *ev)
{
    struct derive_event de = {begin_ps, l->tl->base_ps + ev->end_ps, ev->at, ev->name};
    struct derive_flow flow;
    if (l->counter || !l->may_async)
        return l->counter;
    if (!l->looked)
        derive_look(&l->eye, s->h->d, &s->h->d->lines[l->tl->line]);
    l->looked = true;
    return derive_flow(&l->eye, &de, &flow) && flow.async;
}

static bool add_peer(struct ranks *s, const struct trace_begin *b)
{
    const struct rank_block *block = &s->blocks[b->item / LANE_BLOCK];
    const struct lane_event *ev = &block->ev[b->item % LANE_BLOCK];
    struct rank_lane *l = &s->lanes[block->lane];
    if (l->may_hide && trace_hidden(s->h, &s->h->d->lines[l->tl->line], ev->name))
        return true;
    struct rank_peer *p = vec_push(&s->peers, sizeof *p);
    if (p)
        *p = (struct rank_peer){
            {l->tl->base_ps + ev->end_ps,
             is_async(s, l, b->begin_ps, ev) ? l->async_order : l->order, ev->at},
            ev->ord,
            block->lane,
        };
    return p;
}

/* Others read what was written there before. */
static inline void put_serial(_Atomic uint8_t *to, unsigned bits)
{
    unsigned now = atomic_load_explicit(to, memory_order_relaxed);
    atomic_store_explicit(to, (uint8_t)(now | bits), memory_order_relaxed);
}

/* Numbers those of one begin. What nothing tells apart is left to who knows which of them are
 * answered. */
static bool number(struct ranks *s, const struct trace_begin *b, size_t n)
{
    s->peers.n = 0;
    for (size_t i = 0; i < n; i++)
        if (!add_peer(s, &b[i]))
            return false;
    struct rank_peer *p = s->peers.p;
    n = s->peers.n;
    if (n)
        trace_peers_sort(p, n, sizeof *p);
    for (size_t i = 0; i < n; i++) {
        bool twin = (i && trace_peer_order(&p[i - 1], &p[i]) == 0) ||
                    (i + 1 < n && trace_peer_order(&p[i], &p[i + 1]) == 0);
        unsigned z = twin || i >= TRACE_RANK_NONE ? TRACE_RANK_NONE : (unsigned)i;
        put_serial(&s->lanes[p[i].lane].serials[p[i].ord / 2], z << (p[i].ord & 1) * 4);
    }
    return true;
}

/* --- which begin together --- */

static inline uint32_t slot_of(int64_t begin_ps)
{
    return (uint32_t)((uint64_t)begin_ps * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SLOT_BITS));
}

/* Moves what begins before `until` to the front and chains it by slots; returns how many. The rest
 * stays behind them, in order of time by lane. */
static size_t take_done(struct ranks *s, int64_t until, bool all, size_t *nshared)
{
    struct trace_begin *b = s->begins;
    size_t n = 0, kept = 0, shared = 0;
    memset(s->slots, 0, sizeof s->slots);
    for (size_t i = 0; i < s->nbegins; i++) {
        if (!all && b[i].begin_ps >= until) {
            s->scratch[kept++] = b[i];
            continue;
        }
        uint32_t block = b[i].item / LANE_BLOCK, slot = slot_of(b[i].begin_ps);
        if (--s->blocks[block].left == 0)
            s->spare[s->nspare++] = block; /* nothing is read into it meanwhile */
        uint32_t before = s->slots[slot];
        s->shared[shared] = (uint16_t)slot;
        shared += before && !s->next[before - 1];
        b[n] = b[i];
        s->next[n++] = before;
        s->slots[slot] = (uint32_t)n;
    }
    memcpy(b + n, s->scratch, kept * sizeof *b);
    *nshared = shared;
    return n;
}

static int begin_order(const void *a, const void *b)
{
    const struct trace_begin *x = a, *y = b;
    return (x->begin_ps > y->begin_ps) - (x->begin_ps < y->begin_ps);
}

/* Sorts what is in one slot and numbers it. */
static bool number_slot(struct ranks *s, struct trace_begin *b, uint32_t n)
{
    if (n > 32)
        qsort(b, n, sizeof *b, begin_order);
    for (uint32_t i = 1; n <= 32 && i < n; i++) {
        struct trace_begin x = b[i];
        uint32_t k = i;
        for (; k && x.begin_ps < b[k - 1].begin_ps; k--)
            b[k] = b[k - 1];
        b[k] = x;
    }
    for (uint32_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && b[k].begin_ps == b[i].begin_ps;)
            k++;
        if (k - i > 1 && !number(s, b + i, k - i))
            return false;
    }
    return true;
}

/* Numbers what begins before all that is unread: who is alone in its slot is the first of its
 * begin, as all are until they are numbered. */
static bool number_read(struct ranks *s)
{
    int64_t until = s->nheap ? s->lanes[s->heap[0]].head : INT64_MAX;
    size_t nshared, n = take_done(s, until, !s->nheap, &nshared);
    for (size_t i = 0; i < nshared; i++) {
        uint32_t m = 0;
        for (uint32_t k = s->slots[s->shared[i]]; k; k = s->next[k - 1])
            s->scratch[m++] = s->begins[k - 1];
        if (!number_slot(s, s->scratch, m))
            return false;
    }
    s->nbegins -= n;
    memmove(s->begins, s->begins + n, s->nbegins * sizeof *s->begins);
    s->done = until;
    return true;
}

/* --- all of it --- */

static void lane_init(struct ranks *s, uint32_t i, const struct trace_row *row,
                      const struct trace_index_lane *x)
{
    const struct trace_lane *tl = &VEC(s->h->lanes, struct trace_lane)[i];
    struct rank_lane *l = &s->lanes[i];
    bool same = i > row->first_lane && tl[-1].line == tl->line;
    uint64_t order = same ? l[-1].order : trace_peer_place(row->device, i);
    *l = (struct rank_lane){
        .tl = tl,
        .serials = x->serials,
        .block = lane_find_block(tl->lane, trace_add(s->from, -tl->base_ps)),
        .nblocks = lane_levels(tl->lane) ? lane_nodes(tl->lane, 0) : 0,
        .order = order,
        .async_order = trace_peer_async(order, tl->line),
        .may_hide = row->may_hide,
        .may_async = row->may_async,
        .counter = row->counter,
    };
    if (lane_head(s, l))
        s->heap[s->nheap++] = i;
}

static bool ranks_init(struct ranks *s, const struct trace_index *x)
{
    s->nlanes = (uint32_t)s->h->lanes.n;
    s->nblocks = s->nlanes + BLOCKS_AHEAD;
    size_t n = (size_t)s->nblocks * LANE_BLOCK;
    s->lanes = malloc((s->nlanes + 1) * sizeof *s->lanes);
    s->heap = malloc((s->nlanes + 1) * sizeof *s->heap);
    s->blocks = malloc(s->nblocks * sizeof *s->blocks);
    s->spare = malloc(s->nblocks * sizeof *s->spare);
    s->begins = malloc(n * sizeof *s->begins);
    s->scratch = malloc(n * sizeof *s->scratch);
    s->next = malloc(n * sizeof *s->next);
    if (!s->lanes || !s->heap || !s->blocks || !s->spare || !s->begins || !s->scratch || !s->next)
        return false;
    for (uint32_t r = 0; r < s->h->rows.n; r++) {
        const struct trace_row *row = &VEC(s->h->rows, struct trace_row)[r];
        for (uint32_t i = row->first_lane; i < row->first_lane + row->nlanes; i++)
            lane_init(s, i, row, &x->lanes[i]);
    }
    for (uint32_t i = s->nheap; i-- > 0;)
        heap_down(s, i);
    while (s->nspare < s->nblocks)
        s->spare[s->nspare] = s->nspare, s->nspare++;
    s->done = INT64_MIN;
    return true;
}

static bool run(struct ranks *s)
{
    while (s->nheap || s->nbegins) {
        while (s->nheap && s->nspare)
            if (!read_first(s))
                return false;
        if (!number_read(s) || (s->nheap && !s->nspare))
            return false; /* more begin together than are kept */
    }
    return true;
}

static bool number_span(struct trace_host *h, int64_t from, int64_t until)
{
    struct ranks *s = h->lanes.n > LANES_MAX ? NULL : malloc(sizeof *s);
    if (!s)
        return false;
    *s = (struct ranks){.h = h, .from = from, .until = until};
    bool ok = ranks_init(s, h->layers) && run(s);
    free(s->lanes);
    free(s->heap);
    free(s->blocks);
    free(s->spare);
    free(s->begins);
    free(s->scratch);
    free(s->next);
    vec_free(&s->peers);
    free(s);
    return ok;
}

struct trace_ranks *trace_ranks_new(const struct trace_host *h, struct xp_arena *arena)
{
    struct trace_ranks *r = xp_arena_zalloc(arena, sizeof *r);
    uint64_t span = (uint64_t)h->end_ps - (uint64_t)h->begin_ps;
    if (!r)
        return NULL;
    pthread_mutex_init(&r->lock, NULL);
    r->begin_ps = h->begin_ps;
    while (span >> r->shift >= TRACE_RANK_SLICES)
        r->shift++;
    return r;
}

/* Where slice i begins. */
static int64_t slice_begin(const struct trace_ranks *r, uint64_t i)
{
    return trace_add(r->begin_ps, (int64_t)(i << r->shift)); /* at most twice the trace */
}

static void mark_made(struct trace_ranks *r, uint64_t i)
{
    atomic_fetch_or_explicit(&r->made[i / 64], UINT64_C(1) << i % 64, memory_order_release);
}

void trace_rank(struct trace_host *h, int64_t begin_ps, int64_t end_ps)
{
    struct trace_ranks *r = h->layers->ranks;
    if (!r)
        return;
    uint64_t i = trace_rank_slice(r, begin_ps), end = trace_rank_slice(r, end_ps) + 1;
    if (end > TRACE_RANK_SLICES)
        end = TRACE_RANK_SLICES;
    while (i < end && trace_rank_made(r, i))
        i++;
    if (i >= end)
        return;
    pthread_mutex_lock(&r->lock);
    for (uint64_t k; i < end && !r->broken; i = k) {
        for (k = i; k < end && !trace_rank_made(r, k); k++)
            ;
        r->broken = k > i && !number_span(h, slice_begin(r, i), slice_begin(r, k));
        for (; i < k && !r->broken; i++)
            mark_made(r, i);
        k += k == i;
    }
    pthread_mutex_unlock(&r->lock);
}

/* --- events that came without --- */

struct known_block {
    uint64_t block;
    uint32_t n;
    struct lane_event ev[LANE_BLOCK];
};

struct find {
    struct trace_host *h;
    uint32_t *first, *end;      /* the lanes of each line */
    struct known_block **known; /* of each lane, what was read last */
};

static void know(struct known_block *k, const struct lane *lane, uint64_t block)
{
    struct lane_cursor c;
    k->block = block;
    lane_seek_ord(&c, lane, block * LANE_BLOCK);
    k->n = (uint32_t)lane_next_block(&c, k->ev);
}

/* Is the event in the block? */
static bool find_known(const struct find *f, uint32_t lane, struct trace_event *e)
{
    const struct known_block *k = f->known[lane];
    int64_t base = VEC(f->h->lanes, struct trace_lane)[lane].base_ps;
    uint32_t lo = 0, hi = k->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (base + k->ev[mid].begin_ps < e->begin_ps)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < k->n && base + k->ev[lo].begin_ps == e->begin_ps; lo++)
        if (k->ev[lo].at == e->at && base + k->ev[lo].end_ps == e->end_ps) {
            trace_rank_take(f->h->layers, &f->h->layers->lanes[lane], k->ev[lo].ord, e);
            return true;
        }
    return false;
}

#define BLOCKS_LOOKED                                                                              \
    4 /* of a lane, for one event: more hold no others than that begin with it                     \
       */

/* Can events that begin at t be in this block only? */
static bool only_here(const struct known_block *k, int64_t t)
{
    return k->n && k->ev[0].begin_ps < t && k->ev[k->n - 1].begin_ps > t;
}

/* Looks for the event in the lane. False when memory is out. */
static bool find_in(struct find *f, uint32_t i, struct trace_event *e, bool *found)
{
    const struct trace_lane *tl = &VEC(f->h->lanes, struct trace_lane)[i];
    struct known_block *k = f->known[i];
    int64_t t = e->begin_ps - tl->base_ps;
    if (k) {
        *found = find_known(f, i, e);
        if (*found || only_here(k, t))
            return true;
    } else {
        k = f->known[i] = malloc(sizeof *k);
        if (!k)
            return false;
        k->n = 0;
    }
    uint64_t n = lane_levels(tl->lane) ? lane_nodes(tl->lane, 0) : 0;
    uint64_t b = lane_find_block(tl->lane, t);
    for (int looked = 0; b < n && looked < BLOCKS_LOOKED && !*found; b++, looked++) {
        struct lane_node node;
        lane_node_get(tl->lane, 0, b, &node);
        if (node.begin_ps > t)
            break;
        if (k->n && k->block == b)
            continue;
        know(k, tl->lane, b);
        *found = find_known(f, i, e);
    }
    return true;
}

static bool find_all(struct find *f)
{
    struct trace_event *ev = f->h->events.p;
    for (size_t i = 0; i < f->h->events.n; i++) {
        bool found = false;
        if (ev[i].ranked)
            continue;
        for (uint32_t k = f->first[ev[i].line]; !found && k < f->end[ev[i].line]; k++)
            if (!find_in(f, k, &ev[i], &found))
                return false;
    }
    return true;
}

bool trace_rank_find(struct trace_host *h)
{
    struct find f = {.h = h};
    if (!h->layers || !h->layers->ranks)
        return true;
    f.first = calloc(h->d->nlines + 1, sizeof *f.first);
    f.end = calloc(h->d->nlines + 1, sizeof *f.end);
    f.known = calloc(h->lanes.n, sizeof *f.known);
    bool ok = f.first && f.end && f.known;
    for (uint32_t i = 0; ok && i < h->lanes.n; i++) {
        uint32_t line = VEC(h->lanes, struct trace_lane)[i].line;
        if (!f.end[line])
            f.first[line] = i;
        f.end[line] = i + 1;
    }
    ok = ok && find_all(&f);
    for (size_t i = 0; f.known && i < h->lanes.n; i++)
        free(f.known[i]);
    free(f.known);
    free(f.first);
    free(f.end);
    return ok;
}
