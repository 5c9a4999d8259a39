#include "shard/tools/trace_merge.h"
#include "shard/tools/trace_peer.h"
#include "shard/tools/trace_rank.h"

/* Serials: the answered events meet all events of the host that begin with one of them. Begins
 * are looked up lane by lane, block by block. Each event so met counts for the answered ones that
 * come after it in XProf's order; where very many begin together, all that do are gathered and
 * sorted instead. */

#define TOGETHER_MAX 64 /* answered events of one begin that are counted for one by one */

struct peer {
    struct trace_peer key;
    uint32_t group; /* which begin */
    uint32_t row, name, line;
    bool answered;
};
_Static_assert(sizeof(struct peer) <= TRACE_PEER_SIZE, "trace_peers_sort has room for one");

/* An answered event that is looked for: what it is compared by. */
struct asked {
    struct trace_peer key;
    uint32_t item; /* in host->events */
    uint32_t line, serial;
};

struct serials {
    struct trace_host *h;
    const struct out *out;
    int64_t *begins; /* ascending, distinct */
    size_t nbegins;
    struct lane_sieve sieve;
    struct asked *by;   /* by begin */
    uint32_t *first;    /* of each begin, in `by` */
    uint64_t *order_of; /* of each line, of its events that are not asynchronous */
    bool gather;
    struct vec peers;
    struct derive_eye *eyes; /* one a line, looked with when needed */
    bool *looked;
};

static struct derive_eye *eye_of(struct serials *s, uint32_t line)
{
    if (!s->looked[line]) {
        derive_look(&s->eyes[line], s->h->d, &s->h->d->lines[line]);
        s->looked[line] = true;
    }
    return &s->eyes[line];
}

static uint64_t order_of(struct serials *s, uint32_t line, bool async)
{
    return async ? trace_peer_async(s->order_of[line], line) : s->order_of[line];
}

/* Only now is it looked whether the event is asynchronous. */
static void set_order(struct serials *s, struct peer *p)
{
    const struct trace_row *row = &VEC(s->h->rows, struct trace_row)[p->row];
    struct derive_event ev = {s->begins[p->group], p->key.end_ps, p->key.at, p->name};
    struct derive_flow flow;
    bool async = row->counter ||
                 (row->may_async && derive_flow(eye_of(s, p->line), &ev, &flow) && flow.async);
    p->key.order = order_of(s, p->line, async);
}

static struct peer peer_of(const struct trace_lane *tl, const struct lane_event *ev, uint32_t row,
                           size_t group)
{
    return (struct peer){.key = {.end_ps = tl->base_ps + ev->end_ps, .at = ev->at},
                         .group = (uint32_t)group,
                         .row = row,
                         .name = ev->name,
                         .line = tl->line};
}

/* The first begin at or after t, from `from` on. */
static size_t begin_far(const struct serials *s, size_t from, int64_t t)
{
    size_t step = 1, lo = from;
    while (lo + step < s->nbegins && s->begins[lo + step] < t) {
        lo += step;
        step *= 2;
    }
    size_t hi = lo + step < s->nbegins ? lo + step + 1 : s->nbegins;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->begins[mid] < t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static inline size_t begin_at(const struct serials *s, size_t from, int64_t t)
{
    for (size_t end = from + 4 < s->nbegins ? from + 4 : s->nbegins; from < end; from++)
        if (s->begins[from] >= t)
            return from;
    return from < s->nbegins ? begin_far(s, from, t) : from;
}

static bool add_peer(struct serials *s, uint32_t r, const struct trace_lane *tl,
                     const struct lane_event *ev, size_t group)
{
    const struct trace_row *row = &VEC(s->h->rows, struct trace_row)[r];
    const struct derive_line *l = &s->h->d->lines[tl->line];
    if (row->may_hide && trace_hidden(s->h, l, ev->name))
        return true;
    struct peer *p = vec_push(&s->peers, sizeof *p);
    if (!p)
        return false;
    *p = peer_of(tl, ev, r, group);
    set_order(s, p);
    return true;
}

/* The first block from *b on that begins no later than the begin it may hold, *k; false: none. */
static bool next_block(const struct serials *s, const struct trace_lane *tl, uint64_t nblocks,
                       uint64_t *b, size_t *k)
{
    for (; *b < nblocks; ++*b) {
        *k = begin_at(s, *k, tl->base_ps + lane_block_begin(tl->lane, *b));
        if (*k == s->nbegins)
            return false;
        if (*b + 1 == nblocks || tl->base_ps + lane_block_begin(tl->lane, *b + 1) >= s->begins[*k])
            return true;
    }
    return false;
}

static void count_peer(struct serials *s, uint32_t r, const struct trace_lane *tl,
                       const struct lane_event *ev, size_t group)
{
    struct trace_host *h = s->h;
    if (VEC(h->rows, struct trace_row)[r].may_hide &&
        trace_hidden(h, &h->d->lines[tl->line], ev->name))
        return;
    struct peer p = peer_of(tl, ev, r, group);
    bool ordered = false;
    for (uint32_t i = s->first[group]; i < s->first[group + 1]; i++) {
        struct asked *e = &s->by[i];
        bool same_end = e->key.end_ps == p.key.end_ps;
        if (same_end && e->key.at == p.key.at && e->line == p.line)
            continue;
        if (same_end && !ordered)
            set_order(s, &p);
        ordered |= same_end;
        e->serial += trace_peer_order(&p.key, &e->key) < 0;
    }
}

/* Most events begin with no answered one: with 16 bits a begin one in 50 of them is let through. */
static bool make_sieve(struct serials *s)
{
    unsigned log = 1;
    while (log < 31 && s->nbegins >> (log + 2))
        log++;
    s->sieve =
        (struct lane_sieve){calloc((size_t)1 << log, sizeof(uint64_t)), 64 - log, lane_new_id()};
    for (size_t i = 0; s->sieve.words && i < s->nbegins; i++) {
        uint64_t hash = lane_sieve_hash(s->begins[i]);
        s->sieve.words[hash >> s->sieve.shift] |= lane_sieve_bits(hash);
    }
    return s->sieve.words;
}

/* The last of n >= 1 ascending begins at or before t, or the first. */
static inline size_t last_begin(const int64_t *begins, size_t n, int64_t t)
{
    size_t at = 0;
    while (n > 1) {
        size_t half = n / 2;
        at += begins[at + half] <= t ? half : 0;
        n -= half;
    }
    return at;
}

/* Events of a block that begin with an answered one: which, and with which begin. */
struct matches {
    uint32_t n;
    uint8_t event[LANE_BLOCK];
    uint32_t group[LANE_BLOCK];
};

/* Of n events that may, those that do; begins from k on are looked at. */
static void match(const struct serials *s, int64_t base_ps, int64_t *begins, size_t n, size_t k,
                  struct matches *m)
{
    m->n = 0;
    if (!n)
        return;
    size_t end = begin_at(s, k, base_ps + begins[n - 1]);
    const int64_t *from = s->begins + k;
    size_t nfrom = end < s->nbegins ? end + 1 - k : end - k;
    for (size_t i = 0; i < n; i++) {
        int64_t t = base_ps + begins[i];
        size_t at = last_begin(from, nfrom, t);
        m->event[m->n] = m->event[i];
        begins[m->n] = begins[i];
        m->group[m->n] = (uint32_t)(k + at);
        m->n += from[at] == t;
    }
}

/* The events of block b that begin with an answered one, of begins from k on. */
static void read_block(const struct serials *s, const struct trace_lane *tl, uint64_t b, size_t k,
                       struct lane_event *ev, struct matches *m)
{
    int64_t begins[LANE_BLOCK];
    struct lane_cursor c;
    lane_seek_ord(&c, tl->lane, b * LANE_BLOCK);
    size_t n = lane_sift(&c, &s->sieve, tl->base_ps, m->event, begins);
    match(s, tl->base_ps, begins, n, k, m);
    lane_pick(&c, begins, m->event, m->n, ev);
}

/* Where a lane stands: its next block, and the first begin that may be in it. */
struct lane_place {
    uint64_t block;
    size_t begin;
};

/* The lane's events of begins before number `until`. */
static bool lane_peers(struct serials *s, uint32_t r, const struct trace_lane *tl,
                       struct lane_place *at, size_t until)
{
    uint64_t nblocks = lane_levels(tl->lane) ? lane_nodes(tl->lane, 0) : 0;
    struct lane_event ev[LANE_BLOCK];
    struct matches m;
    for (; next_block(s, tl, nblocks, &at->block, &at->begin); at->block++) {
        if (at->begin >= until)
            return true;
        read_block(s, tl, at->block, at->begin, ev, &m);
        for (size_t i = 0; i < m.n; i++)
            if (!s->gather)
                count_peer(s, r, tl, &ev[i], m.group[i]);
            else if (!add_peer(s, r, tl, &ev[i], m.group[i]))
                return false;
    }
    at->begin = s->nbegins;
    return true;
}

#define SLICE 512

static bool row_peers(struct serials *s, uint32_t r, struct lane_place *at, size_t until)
{
    const struct trace_row *row = &VEC(s->h->rows, struct trace_row)[r];
    const struct trace_lane *lanes = s->h->lanes.p;
    for (uint32_t i = row->first_lane; i < row->first_lane + row->nlanes; i++)
        if (at[i].begin < until && !lane_peers(s, r, &lanes[i], &at[i], until))
            return false;
    return true;
}

/* All lanes, some begins at a time: what is known of these begins stays at hand, and lanes that are
 * views of one other (lane.h) are quickly read along with each other, and then that one: it is in
 * an earlier row. */
static bool all_peers(struct serials *s)
{
    const struct trace_lane *lanes = s->h->lanes.p;
    struct lane_place *at = calloc(s->h->lanes.n + 1, sizeof *at);
    bool ok = at;
    for (size_t i = 0; ok && s->nbegins && i < s->h->lanes.n; i++)
        if (lane_levels(lanes[i].lane))
            at[i].block =
                lane_find_block(lanes[i].lane, trace_add(s->begins[0], -lanes[i].base_ps));
    for (size_t until = 0; ok && until < s->nbegins && !out_cancelled(s->out);) {
        until = s->nbegins - until > SLICE ? until + SLICE : s->nbegins;
        for (uint32_t r = (uint32_t)s->h->rows.n; ok && r-- > 0;)
            ok = row_peers(s, r, at, until);
    }
    free(at);
    return ok;
}

/* Groups of one begin lie together afterwards, in no order yet. */
static bool bucket(struct serials *s, uint32_t **first)
{
    size_t n = s->peers.n;
    struct peer *sorted = malloc((n + 1) * sizeof *sorted), *p = s->peers.p;
    uint32_t *at = calloc(s->nbegins + 2, sizeof *at);
    if (!sorted || !at) {
        free(sorted);
        free(at);
        return false;
    }
    for (size_t i = 0; i < n; i++)
        at[p[i].group + 2]++;
    for (size_t g = 2; g < s->nbegins + 2; g++)
        at[g] += at[g - 1];
    for (size_t i = 0; i < n; i++)
        sorted[at[p[i].group + 1]++] = p[i];
    vec_free(&s->peers);
    s->peers = (struct vec){sorted, n, n + 1, 0};
    *first = at; /* group g is [at[g], at[g + 1]) */
    return true;
}

static bool is_peer(const struct peer *p, const struct trace_event *e)
{
    return p->key.at == e->at && p->line == e->line && p->key.end_ps == e->end_ps &&
           p->name == e->name;
}

static void settle(struct serials *s, const uint32_t *first)
{
    struct peer *p = s->peers.p;
    struct trace_event *ev = s->h->events.p;
    for (size_t g = 0; g < s->nbegins; g++) {
        uint32_t n = first[g + 1] - first[g];
        trace_peers_sort(p + first[g], n, sizeof *p);
        for (uint32_t i = s->first[g]; i < s->first[g + 1]; i++) {
            struct trace_event *e = &ev[s->by[i].item];
            e->serial = TRACE_SERIAL_MAX + 1; /* the others are lost */
            for (uint32_t k = 0; k < n && k <= TRACE_SERIAL_MAX; k++)
                if (!p[first[g] + k].answered && is_peer(&p[first[g] + k], e)) {
                    p[first[g] + k].answered = true;
                    e->serial = k;
                    break;
                }
        }
    }
}

static bool same_event(const struct asked *a, const struct asked *b)
{
    return a->line == b->line && a->key.at == b->key.at && a->key.end_ps == b->key.end_ps;
}

/* After counting: events that nothing tells apart follow each other. */
static void settle_counts(struct serials *s)
{
    struct trace_event *ev = s->h->events.p;
    for (size_t g = 0; g < s->nbegins; g++)
        for (uint32_t i = s->first[g]; i < s->first[g + 1]; i++) {
            uint32_t serial = s->by[i].serial;
            for (uint32_t k = s->first[g]; k < i; k++)
                serial += same_event(&s->by[i], &s->by[k]);
            ev[s->by[i].item].serial = serial;
        }
}

static void drop_late(struct trace_host *h)
{
    struct trace_event *ev = h->events.p;
    size_t kept = 0;
    for (size_t i = 0; i < h->events.n; i++)
        if (ev[i].serial <= TRACE_SERIAL_MAX)
            ev[kept++] = ev[i];
    h->events.n = kept;
}

static bool serials_init(struct serials *s)
{
    s->eyes = malloc((s->h->d->nlines + 1) * sizeof *s->eyes);
    s->looked = calloc(s->h->d->nlines + 1, sizeof *s->looked);
    s->order_of = calloc(s->h->d->nlines + 1, sizeof *s->order_of);
    if (!s->eyes || !s->looked || !s->order_of)
        return false;
    for (uint32_t r = 0; r < s->h->rows.n; r++) {
        const struct trace_row *row = &VEC(s->h->rows, struct trace_row)[r];
        for (uint32_t i = row->first_lane + row->nlanes; i-- > row->first_lane;)
            s->order_of[VEC(s->h->lanes, struct trace_lane)[i].line] =
                trace_peer_place(row->device, i);
    }
    return true;
}

static void serials_fini(struct serials *s)
{
    free(s->begins);
    free(s->sieve.words);
    free(s->by);
    free(s->first);
    free(s->order_of);
    free(s->eyes);
    free(s->looked);
    vec_free(&s->peers);
}

static int begin_order(const void *a, const void *b, void *ctx)
{
    const struct trace_event *ev = ctx;
    int64_t x = ev[*(const uint32_t *)a].begin_ps, y = ev[*(const uint32_t *)b].begin_ps;
    return (x > y) - (x < y);
}

/* The answered events of no serial yet, by begin: numbers, as memory is at its most here. Rows are
 * in order already. */
static uint32_t *sort_asked(struct serials *s, size_t *count)
{
    struct trace_event *ev = s->h->events.p;
    size_t n = 0;
    for (size_t i = 0; i < s->h->events.n; i++)
        n += !ev[i].ranked;
    uint32_t *items = malloc((n + 1) * sizeof *items);
    for (size_t i = n = 0; items && i < s->h->events.n; i++) {
        if (ev[i].ranked)
            continue;
        ev[i].serial = 0;
        items[n++] = (uint32_t)i;
    }
    *count = n;
    if (items && trace_merge_sort(items, n, sizeof *items, begin_order, ev))
        return items;
    free(items);
    return NULL;
}

/* What is looked for, by begin, and their distinct begins. */
static void group(struct serials *s, const uint32_t *sorted, size_t n)
{
    const struct trace_event *ev = s->h->events.p;
    size_t most = 0;
    for (size_t i = 0; i < n; i++) {
        const struct trace_event *e = &ev[sorted[i]];
        s->by[i] = (struct asked){
            {e->end_ps, order_of(s, e->line, e->track != 0), e->at}, sorted[i], e->line, 0};
        if (!i || e->begin_ps != s->begins[s->nbegins - 1]) {
            s->first[s->nbegins] = (uint32_t)i;
            s->begins[s->nbegins++] = e->begin_ps;
        }
    }
    s->first[s->nbegins] = (uint32_t)n;
    for (size_t g = 0; g < s->nbegins; g++)
        if (s->first[g + 1] - s->first[g] > most)
            most = s->first[g + 1] - s->first[g];
    s->gather = most > TOGETHER_MAX;
}

static bool take_begins(struct serials *s)
{
    size_t n = 0, nbegins = 0;
    const struct trace_event *ev = s->h->events.p;
    uint32_t *sorted = sort_asked(s, &n);
    if (!sorted)
        return false;
    for (size_t i = 0; i < n; i++)
        nbegins += !i || ev[sorted[i]].begin_ps != ev[sorted[i - 1]].begin_ps;
    s->by = malloc((n + 1) * sizeof *s->by);
    s->begins = malloc((nbegins + 1) * sizeof *s->begins);
    s->first = malloc((nbegins + 1) * sizeof *s->first);
    bool ok = s->by && s->begins && s->first;
    if (ok)
        group(s, sorted, n);
    free(sorted);
    return ok;
}

enum xp_status trace_serials(struct trace_host *h, const struct out *out, struct xp_error *err)
{
    struct serials s = {.h = h, .out = out};
    uint32_t *first = NULL;
    if (!h->events.n)
        return XP_OK;
    bool ok = trace_rank_find(h) && serials_init(&s) && take_begins(&s) && make_sieve(&s) &&
              all_peers(&s);
    if (ok && s.gather) {
        ok = bucket(&s, &first);
        if (ok)
            settle(&s, first);
    } else if (ok) {
        settle_counts(&s);
    }
    drop_late(h);
    free(first);
    serials_fini(&s);
    return ok ? XP_OK : trace_busy(err);
}

/* --- one instant --- */

static bool instant_lane(struct serials *s, uint32_t r, const struct trace_lane *tl)
{
    int64_t t;
    if (__builtin_sub_overflow(s->begins[0], tl->base_ps, &t))
        return true;
    struct lane_cursor c;
    struct lane_event ev;
    lane_seek(&c, tl->lane, t - 1);
    while (lane_next(&c, &ev) && ev.begin_ps <= t)
        if (ev.begin_ps == t && !add_peer(s, r, tl, &ev, 0))
            return false;
    return true;
}

enum xp_status trace_events_at(struct trace_host *h, int64_t begin_ps, struct vec *out,
                               struct xp_error *err)
{
    struct serials s = {.h = h, .nbegins = 1};
    s.begins = malloc(sizeof *s.begins);
    bool ok = s.begins && serials_init(&s);
    if (ok)
        s.begins[0] = begin_ps;
    for (uint32_t r = 0; ok && r < h->rows.n; r++) {
        const struct trace_row *row = &VEC(h->rows, struct trace_row)[r];
        for (uint32_t i = 0; ok && i < row->nlanes; i++)
            ok = instant_lane(&s, r, &VEC(h->lanes, struct trace_lane)[row->first_lane + i]);
    }
    if (ok && s.peers.n)
        trace_peers_sort(s.peers.p, s.peers.n, sizeof(struct peer));
    for (size_t i = 0; ok && i < s.peers.n; i++) {
        const struct peer *p = &VEC(s.peers, struct peer)[i];
        const struct trace_row *row = &VEC(h->rows, struct trace_row)[p->row];
        struct trace_event *e = vec_push(out, sizeof *e);
        ok = e;
        if (!e)
            break;
        *e = (struct trace_event){.begin_ps = begin_ps,
                                  .end_ps = p->key.end_ps,
                                  .at = p->key.at,
                                  .name = p->name,
                                  .line = p->line,
                                  .serial = (uint32_t)i};
        if (trace_peer_is_async(p->key.order)) {
            struct derive_event de = trace_derive_event(e);
            e->track = trace_track_of(h, row->device, row->counter ? TRACE_COUNTER : TRACE_ASYNC,
                                      derive_event_name(eye_of(&s, p->line), &de, NULL)) +
                       1;
            ok = e->track;
        }
    }
    serials_fini(&s);
    return ok ? XP_OK : trace_busy(err);
}
