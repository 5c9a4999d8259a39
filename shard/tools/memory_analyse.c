#include <stdio.h>
#include <stdlib.h>

#include "shard/tools/memory.h"

#define NOTHING UINT32_MAX

/* The latest allocation at each address: its index, or NOTHING. Addresses are never dropped. */
struct addresses {
    uint64_t *keys;
    uint32_t *index; /* + 1; 0: the slot is free */
    uint32_t *value;
    size_t mask;
};

static bool addresses_init(struct addresses *t, size_t n, struct xp_arena *a)
{
    size_t cap = 16;
    while (cap < 2 * n)
        cap *= 2;
    t->keys = xp_arena_alloc(a, cap * sizeof *t->keys);
    t->index = xp_arena_zalloc(a, cap * sizeof *t->index);
    t->value = xp_arena_alloc(a, cap * sizeof *t->value);
    t->mask = cap - 1;
    return t->keys && t->index && t->value;
}

static void addresses_clear(struct addresses *t)
{
    memset(t->index, 0, (t->mask + 1) * sizeof *t->index);
}

static uint32_t *address_slot(struct addresses *t, uint64_t address)
{
    size_t i = (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & t->mask;
    while (t->index[i] && t->keys[i] != address)
        i = (i + 1) & t->mask;
    if (!t->index[i]) {
        t->index[i] = 1;
        t->keys[i] = address;
        t->value[i] = NOTHING;
    }
    return &t->value[i];
}

/* Events without a step, between those of two steps, are of the one before and one more. */
static void number_steps(struct memory_allocator *al)
{
    int64_t last = -1;
    for (size_t i = 0; i < al->n; i++) {
        if (al->events[i].step == -1)
            al->events[i].step = (int64_t)((uint64_t)last + 1);
        else
            last = al->events[i].step;
    }
}

/* A deallocation is described by its allocation. */
static void describe_frees(struct memory_allocator *al, struct addresses *t)
{
    for (size_t i = 0; i < al->n; i++) {
        struct memory_event *ev = &al->events[i];
        uint32_t *of = address_slot(t, ev->address);
        if (!ev->frees) {
            if (*of == NOTHING)
                *of = (uint32_t)i;
            continue;
        }
        if (*of == NOTHING)
            continue;
        ev->op = al->events[*of].op;
        ev->region = al->events[*of].region;
        ev->type = al->events[*of].type;
        ev->shape = al->events[*of].shape;
        *of = NOTHING;
    }
}

static int64_t used(const struct memory_event *ev)
{
    return (int64_t)((uint64_t)ev->reserved + (uint64_t)ev->heap);
}

/* All events, or the largest of each of 1000 runs of about equal length. */
static void pick_timeline(const struct memory_allocator *al, struct memory_analysis *an)
{
    size_t max = MEMORY_TIMELINE_MAX, width = al->n / max, at = 0;
    size_t narrow = max * (width + 1) - al->n;
    an->ntimeline = al->n < max ? al->n : max;
    for (size_t i = 0; i < an->ntimeline; i++) {
        size_t n = al->n <= max ? 1 : i < narrow ? width : width + 1;
        const struct memory_event *best = &al->events[at];
        for (size_t k = 1; k < n; k++)
            if (used(&al->events[at + k]) > used(best))
                best = &al->events[at + k];
        an->timeline[i] = best;
        at += n;
    }
}

static int64_t step_of_peak(const struct memory_allocator *al)
{
    int64_t step = 0;
    for (size_t i = 0; i < al->n; i++)
        if (used(&al->events[i]) == al->peak.bytes)
            step = al->events[i].step;
    return step;
}

/* Fills t with the allocations of the peak's step that were alive at the peak; returns the heap
 * bytes that they do not explain. */
static int64_t find_alive(const struct memory_allocator *al, int64_t step, struct addresses *t)
{
    uint64_t unmapped = (uint64_t)al->peak.heap, freed = 0;
    for (size_t i = 0; i < al->n && al->events[i].time_ps <= al->peak.time_ps; i++) {
        const struct memory_event *ev = &al->events[i];
        if (ev->step != step)
            continue;
        uint32_t *alive = address_slot(t, ev->address);
        if (!ev->frees) {
            *alive = (uint32_t)i;
            unmapped -= (uint64_t)ev->allocated;
            continue;
        }
        if (*alive == NOTHING)
            freed += (uint64_t)ev->allocated;
        *alive = NOTHING;
        unmapped += (uint64_t)ev->allocated;
    }
    return (int64_t)(unmapped - freed);
}

static bool add_special(struct memory *m, struct memory_analysis *an, int64_t bytes, int64_t step,
                        const char *op, const char *region)
{
    struct memory_event *ev = &an->specials[an->nspecials];
    *ev = (struct memory_event){.requested = bytes,
                                .allocated = bytes,
                                .step = step,
                                .type = 0,
                                .op = xp_strpool_add(&m->strings, xp_span_str(op)),
                                .region = xp_strpool_add(&m->strings, xp_span_str(region)),
                                .shape = xp_strpool_add(&m->strings, XP_SPAN_LIT("unknown"))};
    an->active[an->nactive++] = (struct memory_active){ev, an->nspecials++, 1};
    return ev->op != XP_STRPOOL_FULL && ev->region != XP_STRPOOL_FULL &&
           ev->shape != XP_STRPOOL_FULL;
}

static int cmp_text(const struct memory *m, uint32_t x, uint32_t y)
{
    return x == y ? 0 : xp_span_cmp(xp_strpool_get(&m->strings, x), xp_strpool_get(&m->strings, y));
}

/* XProf negates the sizes to have the largest first; so the smallest number of all stays first. */
static int cmp_size(int64_t x, int64_t y)
{
    int64_t a = (int64_t)(0 - (uint64_t)x), b = (int64_t)(0 - (uint64_t)y);
    return (a > b) - (a < b);
}

void memory_type_text(int64_t type, char text[MEMORY_TYPE_TEXT])
{
    static const char *const types[] = {"INVALID",
                                        "float",
                                        "double",
                                        "int32",
                                        "uint8",
                                        "int16",
                                        "int8",
                                        "string",
                                        "complex64",
                                        "int64",
                                        "bool",
                                        "qint8",
                                        "quint8",
                                        "qint32",
                                        "bfloat16",
                                        "qint16",
                                        "quint16",
                                        "uint16",
                                        "complex128",
                                        "half",
                                        "resource",
                                        "variant",
                                        "uint32",
                                        "uint64",
                                        "float8_e5m2",
                                        "float8_e4m3fn",
                                        "float8_e4m3fnuz",
                                        "float8_e4m3b11fnuz",
                                        "float8_e5m2fnuz",
                                        "int4",
                                        "uint4"};
    const int64_t n = sizeof types / sizeof types[0];
    const char *ref = type > 100 ? "_ref" : "";
    text[0] = '\0';
    if (type == MEMORY_NO_TYPE)
        return;
    if (type > 100)
        type -= 100;
    if (type >= 0 && type < n)
        snprintf(text, MEMORY_TYPE_TEXT, "%s%s", types[type], ref);
    else
        snprintf(text, MEMORY_TYPE_TEXT, "unknown dtype enum (%lld)%s", (long long)type, ref);
}

static int cmp_type(int64_t x, int64_t y)
{
    char a[MEMORY_TYPE_TEXT], b[MEMORY_TYPE_TEXT];
    if (x == y)
        return 0;
    memory_type_text(x, a);
    memory_type_text(y, b);
    return strcmp(a, b);
}

/* By what is shown of the two; equal ones are one row. */
static int cmp_event(const struct memory *m, const struct memory_event *x,
                     const struct memory_event *y)
{
    int c = cmp_size(x->allocated, y->allocated);
    c = c ? c : cmp_size(x->requested, y->requested);
    c = c ? c : cmp_text(m, x->op, y->op);
    c = c ? c : cmp_text(m, x->region, y->region);
    c = c ? c : cmp_type(x->type, y->type);
    return c ? c : cmp_text(m, x->shape, y->shape);
}

static int by_event(const void *a, const void *b, void *ctx)
{
    const struct memory_active *x = a, *y = b;
    int c = cmp_event(ctx, x->event, y->event);
    if (c)
        return c;
    if (x->special != y->special)
        return x->special > y->special ? -1 : 1;
    return (x->event->at > y->event->at) - (x->event->at < y->event->at);
}

static void merge_equal(struct memory *m, struct memory_analysis *an)
{
    size_t n = 0;
    for (size_t i = 0; i < an->nactive; i++) {
        if (n && cmp_event(m, an->active[n - 1].event, an->active[i].event) == 0)
            an->active[n - 1].count++;
        else
            an->active[n++] = an->active[i];
    }
    an->nactive = n;
}

static bool list_active(struct memory *m, struct memory_allocator *al, struct memory_analysis *an,
                        struct addresses *t)
{
    int64_t step = step_of_peak(al), unmapped = find_alive(al, step, t);
    size_t n = 2;
    for (size_t i = 0; i <= t->mask; i++)
        n += t->index[i] && t->value[i] != NOTHING;
    an->active = xp_arena_alloc(m->arena, n * sizeof *an->active);
    if (!an->active)
        return false;
    for (size_t i = 0; i <= t->mask; i++)
        if (t->index[i] && t->value[i] != NOTHING)
            an->active[an->nactive++] = (struct memory_active){&al->events[t->value[i]], -1, 1};
    if (unmapped > 0 &&
        !add_special(m, an, unmapped, step, "unused preallocated device memory", "persist/dynamic"))
        return false;
    if (al->peak.reserved > 0 && !add_special(m, an, al->peak.reserved, step, "stack", "stack"))
        return false;
    qsort_r(an->active, an->nactive, sizeof *an->active, by_event, m);
    merge_equal(m, an);
    return true;
}

enum xp_status memory_analyse(struct memory *m, struct memory_allocator *al,
                              struct memory_analysis *an, struct xp_error *err)
{
    struct addresses t;
    *an = (struct memory_analysis){0};
    if (al->n >= UINT32_MAX / 4)
        return xp_fail(err, XP_TOO_LARGE, 0, "%zu memory events are too many", al->n);
    if (!addresses_init(&t, al->n, m->arena))
        return xp_fail(err, XP_BUSY, 0, "no memory left for %zu memory events", al->n);
    number_steps(al);
    describe_frees(al, &t);
    pick_timeline(al, an);
    addresses_clear(&t);
    if (!list_active(m, al, an, &t))
        return xp_fail(err, XP_BUSY, 0, "no memory left for the allocations at the peak");
    return XP_OK;
}
