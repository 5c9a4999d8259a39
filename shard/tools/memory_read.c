#include <stdio.h>
#include <stdlib.h>

#include "shard/derive/derive.h"
#include "shard/tools/memory.h"

enum {
    INDEX,
    ORDINAL,
    ALLOCATOR,
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
static const char *const names[NAMES] = {
    "index_on_host",   "device_ordinal",   "allocator_name", "bytes_reserved",
    "bytes_allocated", "bytes_available",  "fragmentation",  "peak_bytes_in_use",
    "requested_bytes", "allocation_bytes", "addr",           "tf_op",
    "region_type",     "data_type",        "shape"};

enum { NO_MEMORY, ALLOCATES, FREES }; /* what events of a name do */

struct reader {
    struct memory *m;
    const struct part *part;
    const struct part_plane *plane;
    const struct derive *derive;
    uint8_t *acts; /* by event name */
    struct values_eye eye;
    uint32_t last[NAMES]; /* text that the event before had: often this one's too */
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
    for (uint32_t i = 0; r->acts && i < r->plane->nevmeta; i++) {
        r->acts[i] = act_of(part_str(r->part, r->plane->evmeta[i].name));
        *any |= r->acts[i] != NO_MEMORY;
    }
    return r->acts != NULL;
}

/* --- places and groups, from the lanes --- */

static size_t walk_line(struct reader *r, const struct derive_line *dl, struct memory_event *out)
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
            for (size_t k = 0; k < got; k++) {
                const struct lane_event *ev = &block[k];
                if (ev->name >= r->plane->nevmeta || !r->acts[ev->name])
                    continue;
                if (out) {
                    struct derive_event de = {line->base_ps + ev->begin_ps,
                                              line->base_ps + ev->end_ps, ev->at, ev->name};
                    int64_t group = derive_group(&eye, &de);
                    out[n] = (struct memory_event){.time_ps = ev->begin_ps,
                                                   .at = ev->at,
                                                   .step = group == DERIVE_NO_GROUP ? -1 : group,
                                                   .type = MEMORY_NO_TYPE,
                                                   .frees = r->acts[ev->name] == FREES};
                }
                n++;
            }
    }
    return n;
}

static size_t walk_plane(struct reader *r, struct memory_event *out)
{
    const struct derive_plane *dp = &r->derive->planes[r->plane - r->part->planes];
    size_t n = 0;
    for (uint32_t i = dp->first_line; i < dp->first_line + dp->nlines; i++)
        if (!r->derive->lines[i].line->derived)
            n += walk_line(r, &r->derive->lines[i], out ? out + n : NULL);
    return n;
}

static int by_at(const void *a, const void *b)
{
    const struct memory_event *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Most profiles have them in order already. */
static void sort_events(struct memory *m, int (*cmp)(const void *, const void *))
{
    size_t i = 1;
    while (i < m->n && cmp(&m->events[i - 1], &m->events[i]) <= 0)
        i++;
    if (i < m->n)
        qsort(m->events, m->n, sizeof *m->events, cmp);
}

/* --- stats, from the file --- */

static bool take_text(struct reader *r, const struct value *v, uint32_t *id)
{
    struct xp_span text = v->type == VALUE_TEXT ? v->text : (struct xp_span){0};
    *id = r->last[v->which];
    if (!xp_span_eq(xp_strpool_get(&r->m->strings, *id), text))
        *id = xp_strpool_add(&r->m->strings, text);
    r->last[v->which] = *id == XP_STRPOOL_FULL ? 0 : *id;
    return *id != XP_STRPOOL_FULL;
}

static bool take_number(struct reader *r, const struct value *v, uint32_t *id)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%lld", (long long)value_i64(v));
    *id = xp_strpool_add(&r->m->strings, xp_span_of(text, (size_t)n));
    return *id != XP_STRPOOL_FULL;
}

static bool take(struct reader *r, const struct value *v, struct memory_event *ev)
{
    switch (v->which) {
    case INDEX:
    case ORDINAL:
        return take_number(r, v, &ev->allocator);
    case ALLOCATOR:
        return take_text(r, v, &ev->allocator);
    case OP:
        return take_text(r, v, &ev->op);
    case REGION:
        return take_text(r, v, &ev->region);
    case SHAPE:
        return take_text(r, v, &ev->shape);
    case RESERVED:
        ev->reserved = value_i64(v);
        break;
    case HEAP:
        ev->heap = value_i64(v);
        break;
    case AVAILABLE:
        ev->available = value_i64(v);
        break;
    case FRAGMENTATION:
        ev->fragmentation = value_double(v);
        break;
    case PEAK:
        ev->peak = value_i64(v);
        break;
    case REQUESTED:
        ev->requested = value_i64(v);
        break;
    case ALLOCATED:
        ev->allocated = value_i64(v);
        break;
    case ADDRESS:
        ev->address = (uint64_t)value_i64(v);
        break;
    case TYPE:
        ev->type = (int32_t)value_i64(v);
        break;
    default:
        break;
    }
    return true;
}

static enum xp_status read_stats(struct reader *r, struct out *out, struct xp_error *err)
{
    values_open(&r->eye, r->part, r->plane, names, NAMES, r->m->arena);
    for (size_t i = 0; i < r->m->n; i++) {
        struct value v;
        XP_TRY(values_of_event(&r->eye, r->m->events[i].at, err));
        while (values_next(&r->eye, &v))
            if (!take(r, &v, &r->m->events[i]))
                return no_memory(err);
        if (out_cancelled(out))
            return XP_CANCELLED;
    }
    return XP_OK;
}

/* --- allocators --- */

static int64_t sum(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* The last event of the file that is at or above the peak so far is the peak. */
static void note_peak(struct memory_peak *p, const struct memory_event *ev)
{
    int64_t used = sum(ev->reserved, ev->heap);
    p->lifetime = ev->peak;
    if (used < p->bytes)
        return;
    p->reserved = ev->reserved;
    p->heap = ev->heap;
    p->available = ev->available;
    p->fragmentation = ev->fragmentation;
    p->bytes = used;
    p->time_ps = ev->time_ps;
    p->capacity = sum(used, ev->available);
}

static int by_name(const void *a, const void *b, void *ctx)
{
    const struct memory *m = ctx;
    const struct memory_allocator *x = a, *y = b;
    return xp_span_cmp(xp_strpool_get(&m->strings, x->name), xp_strpool_get(&m->strings, y->name));
}

static int by_allocator_and_time(const void *a, const void *b)
{
    const struct memory_event *x = a, *y = b;
    if (x->allocator != y->allocator)
        return x->allocator < y->allocator ? -1 : 1;
    if (x->time_ps != y->time_ps)
        return x->time_ps < y->time_ps ? -1 : 1;
    return by_at(a, b);
}

/* Numbers the allocators 0, 1, ... in ev->allocator; peaks are noted in the file's order. */
static bool find_allocators(struct memory *m)
{
    uint32_t *number = xp_arena_zalloc(m->arena, ((size_t)m->strings.n + 1) * sizeof *number);
    size_t most = m->n < m->strings.n + 1 ? m->n : m->strings.n + 1;
    m->allocators = xp_arena_zalloc(m->arena, (most + 1) * sizeof *m->allocators);
    if (!number || !m->allocators)
        return false;
    for (size_t i = 0; i < m->n; i++) {
        struct memory_event *ev = &m->events[i];
        if (!number[ev->allocator]) {
            number[ev->allocator] = (uint32_t)++m->nallocators;
            m->allocators[m->nallocators - 1].name = ev->allocator;
        }
        ev->allocator = number[ev->allocator] - 1;
        note_peak(&m->allocators[ev->allocator].peak, ev);
        m->allocators[ev->allocator].n++;
    }
    return true;
}

static void deal_events(struct memory *m)
{
    sort_events(m, by_allocator_and_time);
    struct memory_event *at = m->events;
    for (size_t i = 0; i < m->nallocators; i++) {
        m->allocators[i].events = at;
        at += m->allocators[i].n;
    }
    if (m->nallocators)
        qsort_r(m->allocators, m->nallocators, sizeof *m->allocators, by_name, m);
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
    m->events = xp_arena_alloc(a, (m->n + 1) * sizeof *m->events);
    if (!m->events)
        return no_memory(err);
    walk_plane(&r, m->events);
    sort_events(m, by_at);
    XP_TRY(read_stats(&r, out, err));
    if (!find_allocators(m))
        return no_memory(err);
    deal_events(m);
    return XP_OK;
}
