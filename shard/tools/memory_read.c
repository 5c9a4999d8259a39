#include <stdio.h>
#include <stdlib.h>

#include "shard/derive/derive.h"
#include "shard/tools/memory.h"

/* Of an event that is shown. */
enum {
    RESERVED,
    HEAP,
    AVAILABLE,
    FRAGMENTATION,
    PEAK,
    REQUESTED,
    ALLOCATED,
    ADDRESS,
    OP,
    REGION,
    TYPE,
    SHAPE,
    NAMES
};
static const char *const names[NAMES] = {"bytes_reserved",
                                         "bytes_allocated",
                                         "bytes_available",
                                         "fragmentation",
                                         "peak_bytes_in_use",
                                         "requested_bytes",
                                         "allocation_bytes",
                                         "addr",
                                         "tf_op",
                                         "region_type",
                                         "data_type",
                                         "shape"};

struct reader {
    struct memory *m;
    const struct part *part;
    const struct derive *derive;
    enum memory_times times;
};

struct memory_details {
    struct values_eye eye;
};

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the memory profile");
}

bool memory_has_events(const struct part *p)
{
    const struct part_plane *pl = profile_plane(p, "/host:CPU");
    for (uint32_t i = 0; pl && i < pl->nevmeta; i++)
        if (memory_act_of(part_str(p, pl->evmeta[i].name)) != MEMORY_NONE)
            return true;
    return false;
}

static int by_at(const void *a, const void *b)
{
    const struct memory_change *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static int by_time(const void *a, const void *b)
{
    const struct memory_change *x = a, *y = b;
    if (x->time_ps != y->time_ps)
        return x->time_ps < y->time_ps ? -1 : 1;
    return by_at(a, b);
}

/* Most profiles have them in order already. */
static void sort_changes(struct memory_change *v, size_t n, int (*cmp)(const void *, const void *))
{
    size_t i = 1;
    while (i < n && cmp(&v[i - 1], &v[i]) <= 0)
        i++;
    if (i < n)
        qsort(v, n, sizeof *v, cmp);
}

/* --- what every event tells --- */

static int64_t sum(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static size_t read_line(struct reader *r, const struct derive_line *dl, struct memory_change *out)
{
    int64_t base = dl->line->base_ps;
    struct memory_cursor c;
    struct derive_eye eye;
    size_t n = 0;
    derive_look(&eye, r->derive, dl);
    memory_log_open(&c, dl->line->memory);
    while (memory_log_next(&c)) {
        const struct memory_row *row = &c.row;
        int64_t begin = base + row->begin_ps;
        struct derive_event de = {begin, begin + row->duration_ps, row->at, 0};
        int64_t group = derive_group(&eye, &de);
        out[n++] =
            (struct memory_change){.time_ps = r->times == MEMORY_LINE_TIMES ? row->begin_ps : begin,
                                   .at = row->at,
                                   .used = sum(row->reserved, row->heap),
                                   .allocated = row->allocated,
                                   .address = row->address,
                                   .step = group == DERIVE_NO_GROUP ? -1 : group,
                                   .allocator = row->allocator & INT32_MAX,
                                   .frees = row->frees};
    }
    return n;
}

/* Counts when `out` is NULL. */
static size_t read_plane(struct reader *r, const struct part_plane *plane,
                         struct memory_change *out)
{
    const struct derive_plane *dp = &r->derive->planes[plane - r->part->planes];
    size_t n = 0;
    for (uint32_t i = dp->first_line; i < dp->first_line + dp->nlines; i++) {
        const struct derive_line *dl = &r->derive->lines[i];
        if (dl->line->memory && !dl->line->derived)
            n += out ? read_line(r, dl, out + n) : dl->line->memory->count;
    }
    return n;
}

/* --- what those tell that are shown --- */

static bool take_text(struct memory *m, const struct value *v, uint32_t *id)
{
    *id = xp_strpool_add(&m->strings, v->type == VALUE_TEXT ? v->text : (struct xp_span){0});
    return *id != XP_STRPOOL_FULL;
}

static bool take(struct memory *m, const struct value *v, struct memory_event *ev)
{
    int64_t *const numbers[NAMES] = {
        [RESERVED] = &ev->reserved, [HEAP] = &ev->heap,           [AVAILABLE] = &ev->available,
        [PEAK] = &ev->peak,         [REQUESTED] = &ev->requested, [ALLOCATED] = &ev->allocated};
    switch (v->which) {
    case OP:
        return take_text(m, v, &ev->op);
    case REGION:
        return take_text(m, v, &ev->region);
    case SHAPE:
        return take_text(m, v, &ev->shape);
    case FRAGMENTATION:
        ev->fragmentation = value_double(v);
        break;
    case ADDRESS:
        ev->address = (uint64_t)value_i64(v);
        break;
    case TYPE:
        ev->type = (int32_t)value_i64(v);
        break;
    default:
        *numbers[v->which] = value_i64(v);
    }
    return true;
}

static enum xp_status read_event(struct memory *m, uint64_t at, struct memory_event *ev,
                                 struct xp_error *err)
{
    struct value v;
    *ev = (struct memory_event){.at = at, .type = MEMORY_NO_TYPE};
    XP_TRY(values_of_event(&m->details->eye, at, err));
    while (values_next(&m->details->eye, &v))
        if (!take(m, &v, ev))
            return no_memory(err);
    return XP_OK;
}

enum xp_status memory_describe(struct memory *m, const struct memory_allocator *al,
                               const struct memory_change *c, struct memory_event *ev,
                               struct xp_error *err)
{
    XP_TRY(read_event(m, c->at, ev, err));
    ev->time_ps = c->time_ps;
    ev->step = c->step;
    ev->frees = c->frees;
    if (c->frees && c->of) {
        struct memory_event made;
        XP_TRY(read_event(m, al->changes[c->of - 1].at, &made, err));
        ev->op = made.op;
        ev->region = made.region;
        ev->type = made.type;
        ev->shape = made.shape;
    }
    return XP_OK;
}

/* --- allocators --- */

/* The last event of the file that is at or above the peak so far is the peak. */
static void note_peak(struct memory_allocator *al, const struct memory_change *c)
{
    al->last_at = c->at;
    if (c->used < al->peak.bytes)
        return;
    al->peak.bytes = c->used;
    al->peak.time_ps = c->time_ps;
    al->peak_at = c->at;
}

static enum xp_status describe_peak(struct memory *m, struct memory_allocator *al,
                                    struct xp_error *err)
{
    struct memory_peak *p = &al->peak;
    struct memory_event ev;
    XP_TRY(read_event(m, al->last_at, &ev, err));
    p->lifetime = ev.peak;
    if (!al->peak_at)
        return XP_OK;
    XP_TRY(read_event(m, al->peak_at, &ev, err));
    p->reserved = ev.reserved;
    p->heap = ev.heap;
    p->available = ev.available;
    p->fragmentation = ev.fragmentation;
    p->capacity = sum(p->bytes, ev.available);
    return XP_OK;
}

static int by_name(const void *a, const void *b, void *ctx)
{
    const struct memory *m = ctx;
    const struct memory_allocator *x = a, *y = b;
    return xp_span_cmp(xp_strpool_get(&m->strings, x->name), xp_strpool_get(&m->strings, y->name));
}

/* Those that the part's strings name, as numbers 0, 1, ... in order of appearance. */
struct numbers {
    struct number {
        uint32_t name, at; /* at: 1 + where it is in m->allocators; 0: the slot is free */
    } * slots;
    size_t mask;
};

static struct number *number_find(const struct numbers *t, uint32_t name)
{
    size_t i = (name * UINT32_C(0x9e3779b9)) & t->mask;
    while (t->slots[i].at && t->slots[i].name != name)
        i = (i + 1) & t->mask;
    return &t->slots[i];
}

static bool numbers_grow(struct numbers *t, struct xp_arena *a)
{
    struct numbers old = *t;
    t->mask = old.slots ? 2 * old.mask + 1 : 63;
    t->slots = xp_arena_zalloc(a, (t->mask + 1) * sizeof *t->slots);
    for (size_t i = 0; t->slots && old.slots && i <= old.mask; i++)
        if (old.slots[i].at)
            *number_find(t, old.slots[i].name) = old.slots[i];
    return t->slots != NULL;
}

static bool add_allocator(struct reader *r, struct numbers *t, uint32_t name)
{
    struct memory *m = r->m;
    size_t n = m->nallocators;
    if (2 * (n + 1) > t->mask && !numbers_grow(t, m->arena))
        return false;
    if ((n & (n - 1)) == 0) { /* 1, 2, 4, ... */
        struct memory_allocator *v = xp_arena_zalloc(m->arena, (n ? 2 * n : 1) * sizeof *v);
        if (!v)
            return false;
        if (n)
            memcpy(v, m->allocators, n * sizeof *v);
        m->allocators = v;
    }
    uint32_t id = xp_strpool_add(&m->strings, part_str(r->part, name));
    *number_find(t, name) = (struct number){name, (uint32_t)n + 1};
    m->allocators[m->nallocators++].name = id;
    return id != XP_STRPOOL_FULL;
}

/* Numbers the allocators in c->allocator; peaks are noted in the file's order. */
static bool find_allocators(struct reader *r)
{
    struct memory *m = r->m;
    struct numbers t = {0};
    uint32_t last = UINT32_MAX, number = 0;
    if (!numbers_grow(&t, m->arena))
        return false;
    for (size_t i = 0; i < m->n; i++) {
        struct memory_change *c = &m->changes[i];
        if (c->allocator != last) {
            last = c->allocator;
            if (!number_find(&t, last)->at && !add_allocator(r, &t, last))
                return false;
            number = number_find(&t, last)->at - 1;
        }
        struct memory_allocator *al = &m->allocators[number];
        c->allocator = number & INT32_MAX;
        note_peak(al, c);
        al->n++;
        al->count[c->frees]++;
        al->bytes[c->frees] += c->allocated > 0 ? (uint64_t)c->allocated : 0;
    }
    return true;
}

/* Each allocator's together, by time. */
static bool deal_changes(struct memory *m)
{
    struct memory_change *to = m->changes;
    if (m->nallocators > 1 && !(to = xp_arena_alloc(m->arena, m->n * sizeof *to)))
        return false;
    struct memory_change *at = to;
    for (size_t i = 0; i < m->nallocators; i++) {
        m->allocators[i].changes = at;
        at += m->allocators[i].n;
        m->allocators[i].n = 0;
    }
    for (size_t i = 0; i < m->n && to != m->changes; i++) {
        struct memory_allocator *al = &m->allocators[m->changes[i].allocator];
        al->changes[al->n++] = m->changes[i];
    }
    if (to == m->changes && m->nallocators)
        m->allocators[0].n = m->n;
    m->changes = to;
    for (size_t i = 0; i < m->nallocators; i++)
        sort_changes(m->allocators[i].changes, m->allocators[i].n, by_time);
    if (m->nallocators)
        qsort_r(m->allocators, m->nallocators, sizeof *m->allocators, by_name, m);
    return true;
}

static enum xp_status open_details(struct memory *m, const struct part *p,
                                   const struct part_plane *plane, struct xp_error *err)
{
    m->details = xp_arena_alloc(m->arena, sizeof *m->details);
    if (!m->details)
        return no_memory(err);
    values_open(&m->details->eye, p, plane, names, NAMES, m->arena);
    return XP_OK;
}

static enum xp_status find_peaks(struct reader *r, const struct part_plane *plane,
                                 struct xp_error *err)
{
    struct memory *m = r->m;
    XP_TRY(open_details(m, r->part, plane, err));
    for (size_t i = 0; i < m->nallocators; i++)
        XP_TRY(describe_peak(m, &m->allocators[i], err));
    return XP_OK;
}

enum xp_status memory_open(const struct part *p, const struct part_plane *plane, struct xp_arena *a,
                           struct memory *m, struct xp_error *err)
{
    *m = (struct memory){.arena = a};
    return xp_strpool_init(&m->strings, a) ? open_details(m, p, plane, err) : no_memory(err);
}

enum xp_status memory_read(struct part *p, const struct part_plane *plane, enum memory_times times,
                           struct xp_arena *a, struct memory *m, struct xp_error *err)
{
    struct reader r = {.m = m, .part = p, .times = times};
    *m = (struct memory){.arena = a};
    if (!xp_strpool_init(&m->strings, a))
        return no_memory(err);
    if (!memory_has_events(p))
        return XP_OK; /* steps need not be known */
    XP_TRY(derive_groups_get(p, &r.derive, err));
    m->n = read_plane(&r, plane, NULL);
    m->changes = xp_arena_alloc(a, (m->n + 1) * sizeof *m->changes);
    if (!m->changes)
        return no_memory(err);
    read_plane(&r, plane, m->changes);
    sort_changes(m->changes, m->n, by_at);
    if (!find_allocators(&r) || !deal_changes(m))
        return no_memory(err);
    return find_peaks(&r, plane, err);
}
