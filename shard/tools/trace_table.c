#include "shard/tools/trace.h"
#include "shard/tools/trace_vis.h"

/* A search in a host whose rows XProf strings together.
 *
 * XProf keeps a table of all events by (layer, begin, serial) and looks what matched up in it.
 * Where a row is out of order, so is the table, and the lookup, a binary search over every 16th key
 * and a walk from there, may come upon another event, which is then shown in the place of the right
 * one. So here the table's order is made anew, and searched in the same way. */

#define TABLE_MAX 1500000 /* events of a host; in larger ones, what matched is shown */
#define RESTART 16
#define BLOCK_SIZE (20 << 20) /* XProf's; bytes */
#define NAME_INLINE 32        /* longer names are kept apart */
#define ARG_INLINE 16         /* ... and longer arguments */
#define ARGS_BATCH 4096

struct cell {
    struct trace_event ev;
    uint32_t source;
    uint8_t layer;
};

/* What XProf merges: rows, and tracks of asynchronous events and counters. */
struct source {
    uint32_t device, order; /* within the device: rows by number, then tracks by name */
    struct xp_span name;    /* tracks */
    bool track;
};

/* Cells in the order of a table, and where its blocks begin. */
struct keys {
    uint32_t *cells;
    size_t n;
    struct vec blocks; /* size_t; the first is 0 */
};

struct table {
    struct trace_host *h;
    const struct trace *t;
    struct vec cells;       /* struct cell: by source, in XProf's order */
    struct source *sources; /* rows, then tracks */
    uint32_t nsources, *rank;
    struct keys keys, args; /* of all; of those with arguments */
};

static struct cell *cell(const struct table *b, size_t i)
{
    return &VEC(b->cells, struct cell)[i];
}

/* --- gathering --- */

static bool add_cell(struct table *b, const struct trace_event *e, uint32_t source, uint8_t layer)
{
    struct cell *c = vec_push(&b->cells, sizeof *c);
    if (c)
        *c = (struct cell){*e, source, layer};
    return c;
}

static bool add_on_track(struct table *b, uint32_t r, const struct trace_event *e, uint8_t layer)
{
    const struct trace_row *row = &VEC(b->h->rows, struct trace_row)[r];
    struct derive_event de = trace_derive_event(e);
    struct trace_event x = *e;
    struct derive_eye eye;
    derive_look(&eye, b->h->d, &b->h->d->lines[e->line]);
    uint32_t track = trace_track_of(b->h, row->device, row->counter ? TRACE_COUNTER : TRACE_ASYNC,
                                    derive_event_name(&eye, &de, NULL));
    x.track = track + 1;
    return track != UINT32_MAX && add_cell(b, &x, (uint32_t)b->h->rows.n + track, layer);
}

static bool gather_row(struct table *b, uint32_t r)
{
    struct trace_host *h = b->h;
    const struct trace_row *row = &VEC(h->rows, struct trace_row)[r];
    const struct trace_flow_row *fr = &h->flows->rows[r];
    const struct trace_flow_event *flows = h->flows->events + fr->first;
    struct trace_strung all = h->flows->strung[r];
    struct xp_arena *own = NULL;
    bool ok = true;
    if (!all.n) {
        own = xp_arena_new(NULL);
        ok = own && trace_row_order(h, row, flows, row->counter ? 0 : fr->n, own, &all);
    }
    for (uint32_t i = 0; ok && i < all.n; i++) {
        struct trace_event ev = trace_strung_event(&all, i), *e = &ev;
        const struct trace_flow_event *f = trace_flow_find(flows, fr->n, e);
        if (row->counter || (f && f->async))
            ok = add_on_track(b, r, e, f ? f->layer : 0);
        else
            ok = add_cell(b, e, r, all.layers[i]);
    }
    xp_arena_free(own);
    return ok;
}

static int source_order(const void *a, const void *b, void *ctx)
{
    const struct source *all = ctx, *x = &all[*(const uint32_t *)a],
                        *y = &all[*(const uint32_t *)b];
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->track != y->track)
        return x->track ? 1 : -1;
    int c = x->track ? xp_span_cmp(x->name, y->name) : 0;
    return c ? c : (x->order > y->order) - (x->order < y->order);
}

static bool make_sources(struct table *b)
{
    const struct trace_host *h = b->h;
    b->nsources = (uint32_t)(h->rows.n + h->tracks.n);
    b->sources = calloc(b->nsources + 1, sizeof *b->sources);
    b->rank = malloc((b->nsources + 1) * sizeof *b->rank);
    uint32_t *by = malloc((b->nsources + 1) * sizeof *by);
    bool ok = b->sources && b->rank && by;
    for (uint32_t i = 0; ok && i < b->nsources; i++) {
        by[i] = i;
        if (i < h->rows.n) {
            b->sources[i] =
                (struct source){.device = VEC(h->rows, struct trace_row)[i].device, .order = i};
            continue;
        }
        const struct trace_track *t = &VEC(h->tracks, struct trace_track)[i - h->rows.n];
        b->sources[i] = (struct source){t->device, i, t->name, true};
    }
    if (ok && b->nsources)
        qsort_r(by, b->nsources, sizeof *by, source_order, b->sources);
    for (uint32_t i = 0; ok && i < b->nsources; i++)
        b->rank[by[i]] = i;
    free(by);
    return ok;
}

/* --- merging --- */

/* XProf's merge of what is in order or not: the least of the sources' next events is taken. */
struct merge {
    const struct table *b;
    const uint32_t *from; /* cells by source */
    uint32_t *at, *end;   /* of each source, in `from` */
    uint32_t *heap;
    uint32_t n;
};

static bool sooner(const struct merge *m, uint32_t x, uint32_t y)
{
    const struct trace_event *a = &cell(m->b, m->from[m->at[x]])->ev,
                             *b = &cell(m->b, m->from[m->at[y]])->ev;
    if (a->begin_ps != b->begin_ps)
        return a->begin_ps < b->begin_ps;
    if (a->end_ps != b->end_ps)
        return a->end_ps > b->end_ps;
    return m->b->rank[x] < m->b->rank[y];
}

static void sink(struct merge *m, uint32_t i)
{
    for (;;) {
        uint32_t least = i, left = 2 * i + 1;
        if (left < m->n && sooner(m, m->heap[left], m->heap[least]))
            least = left;
        if (left + 1 < m->n && sooner(m, m->heap[left + 1], m->heap[least]))
            least = left + 1;
        if (least == i)
            return;
        uint32_t x = m->heap[i];
        m->heap[i] = m->heap[least];
        m->heap[least] = x;
        i = least;
    }
}

/* Merges cells of one layer, or all (layer < 0), to `to`; false when memory is out. */
static bool merge(const struct table *b, int layer, uint32_t *from, uint32_t *to, size_t *n)
{
    uint32_t *at = calloc(3 * ((size_t)b->nsources + 1), sizeof *at);
    if (!at)
        return false;
    struct merge m = {b, from, at, at + b->nsources + 1, at + 2 * (b->nsources + 1), 0};
    size_t k = 0;
    for (int pass = 0; pass < 2; pass++) { /* count, then deal */
        for (size_t i = 0; i < b->cells.n; i++) {
            const struct cell *c = cell(b, i);
            if (layer >= 0 && c->layer != layer)
                continue;
            if (pass)
                from[m.end[c->source]] = (uint32_t)i;
            m.end[c->source]++;
        }
        for (uint32_t s = 0; !pass && s < b->nsources; s++) {
            m.at[s] = (uint32_t)k;
            k += m.end[s];
            m.end[s] = m.at[s];
        }
    }
    for (uint32_t s = 0; s < b->nsources; s++)
        if (m.at[s] < m.end[s])
            m.heap[m.n++] = s;
    for (uint32_t i = m.n / 2; i-- > 0;)
        sink(&m, i);
    for (*n = 0; m.n;) {
        uint32_t s = m.heap[0];
        to[(*n)++] = from[m.at[s]++];
        if (m.at[s] == m.end[s])
            m.heap[0] = m.heap[--m.n];
        sink(&m, 0);
    }
    free(at);
    return true;
}

/* --- the table --- */

static bool make_keys(struct table *b)
{
    size_t n = b->cells.n, got;
    uint32_t *from = malloc((n + 1) * sizeof *from), *to = malloc((n + 1) * sizeof *to);
    b->keys.cells = malloc((n + 1) * sizeof *from);
    b->args.cells = malloc((n + 1) * sizeof *from);
    bool ok = from && to && b->keys.cells && b->args.cells && merge(b, -1, from, to, &got);
    for (size_t i = 1; ok && i < n; i++) {
        const struct trace_event *before = &cell(b, to[i - 1])->ev;
        struct trace_event *e = &cell(b, to[i])->ev;
        e->serial = e->begin_ps == before->begin_ps ? before->serial + 1 : 0;
    }
    for (int z = 0; ok && z < TRACE_LAYERS; z++) {
        ok = merge(b, z, from, to, &got);
        for (size_t i = 0; ok && i < got; i++) {
            const struct trace_event *e = &cell(b, to[i])->ev;
            if (e->serial > TRACE_SERIAL_MAX)
                continue;
            b->keys.cells[b->keys.n++] = to[i];
            if (!e->track ||
                VEC(b->h->tracks, struct trace_track)[e->track - 1].kind != TRACE_COUNTER)
                b->args.cells[b->args.n++] = to[i];
        }
    }
    free(from);
    free(to);
    return ok;
}

static int key_order(const struct table *b, uint32_t x, uint32_t y)
{
    const struct cell *p = cell(b, x), *q = cell(b, y);
    if (p->layer != q->layer)
        return p->layer < q->layer ? -1 : 1;
    if (p->ev.begin_ps != q->ev.begin_ps)
        return p->ev.begin_ps < q->ev.begin_ps ? -1 : 1;
    return (p->ev.serial > q->ev.serial) - (p->ev.serial < q->ev.serial);
}

static size_t varint_size(uint64_t v)
{
    return (size_t)(64 - __builtin_clzll(v | 1) + 6) / 7;
}

/* Bytes of the event's message, as XProf keeps it. */
static size_t message_size(const struct table *b, struct derive_eye *eye, const struct cell *c)
{
    const struct trace_host *h = b->h;
    const struct trace_event *e = &c->ev;
    struct derive_event de = trace_derive_event(e);
    struct derive_flow flow;
    const struct source *s = &b->sources[c->source];
    size_t n = 1 + varint_size(VEC(h->devices, struct trace_device)[s->device].id);
    struct xp_span name = derive_event_name(eye, &de, NULL);
    n += name.n > NAME_INLINE ? 9 : 2 + name.n;
    if (!s->track)
        n += 1 + varint_size(VEC(h->rows, struct trace_row)[c->source].tid);
    int64_t group = derive_group(eye, &de);
    if (group != DERIVE_NO_GROUP)
        n += 1 + varint_size((uint64_t)group);
    if (e->end_ps > e->begin_ps)
        n += 1 + varint_size((uint64_t)(e->end_ps - e->begin_ps));
    if (derive_flow(eye, &de, &flow))
        n += 1 + varint_size(flow.id) + 4;
    if (e->serial)
        n += 1 + varint_size(e->serial);
    return n;
}

/* Bytes of its arguments. False when memory is out. */
static bool args_size(const struct table *b, struct derive_eye *eye, const struct cell *c,
                      struct vec *args, struct xp_arena *memory, size_t *size)
{
    if (trace_args(b->h, eye, &c->ev, memory, args, b->t->err) != XP_OK)
        return false;
    size_t n = 0;
    for (size_t i = 0; i < args->n; i++) {
        const struct trace_arg *a = &VEC(*args, struct trace_arg)[i];
        if (a->special)
            continue;
        size_t one = 1 + varint_size(a->name.n) + a->name.n;
        if (a->type == TRACE_ARG_I64 || a->type == TRACE_ARG_U64)
            one += 1 + varint_size(a->num);
        else if (a->type == TRACE_ARG_DOUBLE || a->text.n > ARG_INLINE)
            one += 9;
        else if (a->type == TRACE_ARG_STR)
            one += 2 + a->text.n;
        n += 1 + varint_size(one) + one;
    }
    n += 1 + varint_size(n);
    *size = n + 1 + varint_size(n);
    return true;
}

static void key_bytes(const struct cell *c, uint8_t key[10])
{
    uint64_t t = __builtin_bswap64((uint64_t)c->ev.begin_ps);
    key[0] = c->layer;
    memcpy(key + 1, &t, sizeof t);
    key[9] = (uint8_t)c->ev.serial;
}

/* Where the table's blocks begin: each ends with the event that fills it. */
static bool cut_blocks(const struct table *b, struct keys *k, bool of_args)
{
    struct xp_arena *memory = NULL;
    struct vec args = {0};
    struct derive_eye *eyes = malloc((b->h->d->nlines + 1) * sizeof *eyes);
    bool *looked = calloc(b->h->d->nlines + 1, sizeof *looked), ok = eyes && looked;
    uint8_t before[10] = {0}, key[10];
    size_t *at = ok ? vec_push(&k->blocks, sizeof *at) : NULL, size = 0, first = 0;
    ok = at;
    if (at)
        *at = 0;
    for (size_t i = 0; ok && i < k->n; i++) {
        const struct cell *c = cell(b, k->cells[i]);
        if (!looked[c->ev.line])
            derive_look(&eyes[c->ev.line], b->h->d, &b->h->d->lines[c->ev.line]);
        looked[c->ev.line] = true;
        size_t value = 0, shared = 0;
        if (of_args && i % ARGS_BATCH == 0) {
            xp_arena_free(memory);
            memory = xp_arena_new(NULL);
        }
        if (!of_args)
            value = message_size(b, &eyes[c->ev.line], c);
        else if (!memory || !args_size(b, &eyes[c->ev.line], c, &args, memory, &value))
            ok = false;
        key_bytes(c, key);
        while ((i - first) % RESTART && shared < 10 && key[shared] == before[shared])
            shared++;
        memcpy(before, key, sizeof key);
        size += 2 + varint_size(value) + (10 - shared) + value;
        if ((i - first) % RESTART == 0)
            size += 4;
        if (size + 4 < BLOCK_SIZE)
            continue;
        first = i + 1;
        size = 0;
        ok = (at = vec_push(&k->blocks, sizeof *at));
        if (at)
            *at = first;
    }
    xp_arena_free(memory);
    vec_free(&args);
    free(eyes);
    free(looked);
    return ok;
}

/* Where XProf's search for the key of `x` ends; k->n: behind all. */
static size_t seek(const struct table *b, const struct keys *k, uint32_t x)
{
    const size_t *blocks = k->blocks.p;
    size_t block = 0, end;
    while (block + 1 < k->blocks.n && blocks[block + 1] &&
           key_order(b, k->cells[blocks[block + 1] - 1], x) < 0)
        block++;
    end = block + 1 < k->blocks.n ? blocks[block + 1] : k->n;
    size_t first = blocks[block], lo = 0, hi = end > first ? (end - first - 1) / RESTART : 0;
    while (lo < hi) {
        size_t mid = lo + (hi - lo + 1) / 2;
        if (key_order(b, k->cells[first + mid * RESTART], x) < 0)
            lo = mid;
        else
            hi = mid - 1;
    }
    size_t i = first + lo * RESTART;
    while (i < k->n && key_order(b, k->cells[i], x) < 0)
        i++;
    return i;
}

static bool answer(struct table *b, uint32_t x)
{
    size_t i = seek(b, &b->keys, x);
    if (i == b->keys.n)
        return true;
    uint32_t found = b->keys.cells[i], with = found;
    bool args = false;
    if (b->t->req.search_metadata) {
        size_t k = seek(b, &b->args, x);
        args = k < b->args.n && key_order(b, b->args.cells[k], x) == 0;
        with = args ? b->args.cells[k] : with;
    }
    struct trace_event e = cell(b, found)->ev;
    if (found != x || (b->t->req.search_metadata && (!args || with != x))) {
        struct trace_moved *m = vec_push(&b->h->moved, sizeof *m);
        if (!m)
            return false;
        *m = (struct trace_moved){cell(b, x)->ev.begin_ps, args, cell(b, with)->ev};
        e.moved = (uint32_t)b->h->moved.n;
    }
    struct trace_event *out = vec_push(&b->h->events, sizeof *out);
    if (out)
        *out = e;
    return out;
}

static bool answer_all(struct table *b)
{
    struct derive_eye eye;
    uint32_t line = UINT32_MAX;
    struct vec found = {0};
    bool ok = true;
    for (uint32_t i = 0; ok && i < b->cells.n; i++) {
        const struct cell *c = cell(b, i);
        struct derive_event de = trace_derive_event(&c->ev);
        if (c->ev.line != line)
            derive_look(&eye, b->h->d, &b->h->d->lines[c->ev.line]);
        line = c->ev.line;
        if (c->ev.serial > TRACE_SERIAL_MAX ||
            !xp_span_starts(derive_event_name(&eye, &de, NULL), b->t->req.search_prefix) ||
            trace_is_middle(b->t, b->h, &eye, &c->ev))
            continue;
        uint32_t *f = vec_push(&found, sizeof *f);
        ok = f;
        if (f)
            *f = i;
    }
    for (size_t i = 0; ok && i < found.n; i++)
        ok = answer(b, VEC(found, uint32_t)[i]);
    vec_free(&found);
    return ok;
}

bool trace_is_strung(const struct trace_host *h)
{
    uint64_t n, all = 0;
    bool strung = false;
    for (size_t r = 0; r < h->rows.n; r++) {
        const struct trace_row *row = &VEC(h->rows, struct trace_row)[r];
        for (uint32_t i = 0; i < row->nlanes; i++)
            all += lane_count(VEC(h->lanes, struct trace_lane)[row->first_lane + i].lane);
        strung |= !row->counter && trace_row_is_strung(h, row, &n);
    }
    return strung && all <= TABLE_MAX;
}

enum xp_status trace_table_search(struct trace *t, struct trace_host *h)
{
    struct table b = {.h = h, .t = t};
    XP_TRY(trace_flows_get(h, t->err));
    bool ok = true;
    for (uint32_t r = 0; ok && r < h->rows.n; r++)
        ok = gather_row(&b, r);
    ok = ok && make_sources(&b) && make_keys(&b) && cut_blocks(&b, &b.keys, false) &&
         (!t->req.search_metadata || cut_blocks(&b, &b.args, true)) && answer_all(&b);
    vec_free(&b.cells);
    free(b.sources);
    free(b.rank);
    free(b.keys.cells);
    free(b.args.cells);
    vec_free(&b.keys.blocks);
    vec_free(&b.args.blocks);
    return ok ? XP_OK : trace_busy(t->err);
}
