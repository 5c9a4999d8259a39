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

enum { NO_MEMORY, ALLOCATES, FREES }; /* what events of a name do */

/* Those that every event is asked for. */
enum {
    EACH_INDEX,
    EACH_ORDINAL,
    EACH_ALLOCATOR,
    EACH_RESERVED,
    EACH_HEAP,
    EACH_ALLOCATED,
    EACH_ADDRESS,
    EACH
};
static const char *const each[EACH] = {"index_on_host",
                                       "device_ordinal",
                                       "allocator_name",
                                       "bytes_reserved",
                                       "bytes_allocated",
                                       "allocation_bytes",
                                       "addr"};

struct reader {
    struct memory *m;
    const struct part *part;
    const struct part_plane *plane;
    const struct derive *derive;
    uint8_t *acts; /* by event name */
    bool *wanted;  /* by event name: does it act? */
    struct values_eye eye;
    uint32_t named, numbered; /* the allocators that were met last: often the next one's too */
    int64_t number;
};

struct memory_details {
    struct values_eye eye;
};

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the memory profile");
}

static uint8_t act_of(struct xp_span name)
{
    if (xp_span_eq(name, XP_SPAN_LIT("MemoryAllocation")))
        return ALLOCATES;
    return xp_span_eq(name, XP_SPAN_LIT("MemoryDeallocation")) ? FREES : NO_MEMORY;
}

bool memory_has_events(const struct part *p)
{
    const struct part_plane *pl = profile_plane(p, "/host:CPU");
    for (uint32_t i = 0; pl && i < pl->nevmeta; i++)
        if (act_of(part_str(p, pl->evmeta[i].name)) != NO_MEMORY)
            return true;
    return false;
}

/* Sets *any if there is a name that does something. */
static bool acts_of(struct reader *r, bool *any)
{
    r->acts = xp_arena_zalloc(r->m->arena, (size_t)r->plane->nevmeta + 1);
    r->wanted = xp_arena_zalloc(r->m->arena, (size_t)r->plane->nevmeta + 1);
    if (!r->acts || !r->wanted)
        return false;
    for (uint32_t i = 0; i < r->plane->nevmeta; i++) {
        r->acts[i] = act_of(part_str(r->part, r->plane->evmeta[i].name));
        *any |= r->wanted[i] = r->acts[i] != NO_MEMORY;
    }
    return true;
}

/* --- places and groups, from the lanes --- */

static struct memory_change change_of(struct reader *r, const struct derive_line *dl,
                                      struct derive_eye *eye, const struct lane_event *ev)
{
    int64_t base = dl->line->base_ps;
    struct derive_event de = {base + ev->begin_ps, base + ev->end_ps, ev->at, ev->name};
    int64_t group = derive_group(eye, &de);
    return (struct memory_change){.time_ps = ev->begin_ps,
                                  .at = ev->at,
                                  .step = group == DERIVE_NO_GROUP ? -1 : group,
                                  .frees = r->acts[ev->name] == FREES};
}

static size_t walk_line(struct reader *r, const struct derive_line *dl, struct memory_change *out)
{
    const struct part_line *line = dl->line;
    struct lane_event block[LANE_BLOCK];
    struct derive_eye eye;
    size_t n = 0, got;
    derive_look(&eye, r->derive, dl);
    for (uint32_t i = 0; i < line->nlanes; i++) {
        struct lane_cursor c;
        lane_seek(&c, line->lanes[i], INT64_MIN);
        while ((got = lane_next_block(&c, block)))
            for (size_t k = 0; k < got; k++)
                if (block[k].name < r->plane->nevmeta && r->acts[block[k].name])
                    out[n++] = change_of(r, dl, &eye, &block[k]);
    }
    return n;
}

/* Counts when `out` is NULL. */
static size_t walk_plane(struct reader *r, struct memory_change *out)
{
    const struct derive_plane *dp = &r->derive->planes[r->plane - r->part->planes];
    size_t n = 0;
    for (uint32_t i = dp->first_line; i < dp->first_line + dp->nlines; i++) {
        const struct derive_line *dl = &r->derive->lines[i];
        if (dl->line->derived)
            continue;
        size_t here = profile_count_named(dl->line, r->wanted, r->plane->nevmeta);
        n += here && out ? walk_line(r, dl, out + n) : here;
    }
    return n;
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

/* --- what every event tells, from the file --- */

static bool name_allocator(struct reader *r, const struct value *v, uint32_t *id)
{
    struct xp_span text = v->type == VALUE_TEXT ? v->text : (struct xp_span){0};
    if (!xp_span_eq(xp_strpool_get(&r->m->strings, r->named), text))
        r->named = xp_strpool_add(&r->m->strings, text);
    *id = r->named;
    return *id != XP_STRPOOL_FULL;
}

static bool number_allocator(struct reader *r, const struct value *v, uint32_t *id)
{
    int64_t number = value_i64(v);
    if (!r->numbered || number != r->number) {
        char text[24];
        int n = snprintf(text, sizeof text, "%lld", (long long)number);
        r->numbered = xp_strpool_add(&r->m->strings, xp_span_of(text, (size_t)n));
        r->number = number;
    }
    *id = r->numbered;
    return *id != XP_STRPOOL_FULL;
}

static int64_t sum(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Of stats that come twice the last counts. */
static bool read_change(struct reader *r, struct memory_change *c)
{
    uint32_t allocator = 0;
    int64_t reserved = 0, heap = 0;
    struct value v;
    bool ok = true;
    while (ok && values_next(&r->eye, &v))
        switch (v.which) {
        case EACH_ALLOCATOR:
            ok = name_allocator(r, &v, &allocator);
            break;
        case EACH_RESERVED:
            reserved = value_i64(&v);
            break;
        case EACH_HEAP:
            heap = value_i64(&v);
            break;
        case EACH_ALLOCATED:
            c->allocated = value_i64(&v);
            break;
        case EACH_ADDRESS:
            c->address = (uint64_t)value_i64(&v);
            break;
        default:
            ok = number_allocator(r, &v, &allocator);
        }
    c->used = sum(reserved, heap);
    c->allocator = allocator & INT32_MAX;
    return ok;
}

static enum xp_status read_changes(struct reader *r, struct out *out, struct xp_error *err)
{
    values_open(&r->eye, r->part, r->plane, each, EACH, r->m->arena);
    for (size_t i = 0; i < r->m->n; i++) {
        XP_TRY(values_of_event(&r->eye, r->m->changes[i].at, err));
        if (!read_change(r, &r->m->changes[i]))
            return no_memory(err);
        if (out_cancelled(out))
            return XP_CANCELLED;
    }
    return XP_OK;
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

/* Numbers the allocators 0, 1, ... in c->allocator; peaks are noted in the file's order. */
static bool find_allocators(struct memory *m)
{
    uint32_t *number = xp_arena_zalloc(m->arena, ((size_t)m->strings.n + 1) * sizeof *number);
    size_t most = m->n < m->strings.n + 1 ? m->n : m->strings.n + 1;
    m->allocators = xp_arena_zalloc(m->arena, (most + 1) * sizeof *m->allocators);
    if (!number || !m->allocators)
        return false;
    for (size_t i = 0; i < m->n; i++) {
        struct memory_change *c = &m->changes[i];
        if (!number[c->allocator]) {
            number[c->allocator] = (uint32_t)++m->nallocators;
            m->allocators[m->nallocators - 1].name = c->allocator;
        }
        c->allocator = (number[c->allocator] - 1) & INT32_MAX;
        note_peak(&m->allocators[c->allocator], c);
        m->allocators[c->allocator].n++;
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
    for (size_t i = 0; i < m->n; i++) {
        struct memory_allocator *al = &m->allocators[m->changes[i].allocator];
        al->changes[al->n++] = m->changes[i];
    }
    m->changes = to;
    for (size_t i = 0; i < m->nallocators; i++)
        sort_changes(m->allocators[i].changes, m->allocators[i].n, by_time);
    if (m->nallocators)
        qsort_r(m->allocators, m->nallocators, sizeof *m->allocators, by_name, m);
    return true;
}

static enum xp_status find_peaks(struct reader *r, struct xp_error *err)
{
    struct memory *m = r->m;
    m->details = xp_arena_alloc(m->arena, sizeof *m->details);
    if (!m->details)
        return no_memory(err);
    values_open(&m->details->eye, r->part, r->plane, names, NAMES, m->arena);
    for (size_t i = 0; i < m->nallocators; i++)
        XP_TRY(describe_peak(m, &m->allocators[i], err));
    return XP_OK;
}

enum xp_status memory_read(struct part *p, const struct part_plane *plane, struct xp_arena *a,
                           struct out *out, struct memory *m, struct xp_error *err)
{
    struct reader r = {.m = m, .part = p, .plane = plane};
    bool any = false;
    *m = (struct memory){.arena = a};
    if (!xp_strpool_init(&m->strings, a) || !acts_of(&r, &any))
        return no_memory(err);
    if (!any)
        return XP_OK; /* steps need not be known */
    XP_TRY(derive_groups_get(p, &r.derive, err));
    m->n = walk_plane(&r, NULL);
    m->changes = xp_arena_alloc(a, (m->n + 1) * sizeof *m->changes);
    if (!m->changes)
        return no_memory(err);
    walk_plane(&r, m->changes);
    sort_changes(m->changes, m->n, by_at);
    XP_TRY(read_changes(&r, out, err));
    if (!find_allocators(m) || !deal_changes(m))
        return no_memory(err);
    return find_peaks(&r, err);
}
