#include <stdio.h>
#include <stdlib.h>

#include "shard/tools/addresses.h"
#include "shard/tools/memory.h"

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the allocations of the profile");
}

/* In one pass, for there may be millions. Events without a step, between those of two steps, are of
 * the one before and one more. A deallocation is described by its allocation: the first at its
 * address that is not freed. */
static bool settle(struct memory_allocator *al, struct addresses *t)
{
    int64_t last = -1;
    for (size_t i = 0; i < al->n; i++) {
        struct memory_change *c = &al->changes[i];
        if (c->step == -1)
            c->step = (int64_t)((uint64_t)last + 1);
        else
            last = c->step;
        if (c->frees) {
            uint32_t of = address_take(t, c->address);
            c->of = of == ADDRESS_FREE ? 0 : of + 1;
            continue;
        }
        struct address *s = address_at(t, c->address);
        if (!s)
            return false;
        if (s->index == ADDRESS_FREE)
            s->index = (uint32_t)i;
    }
    return true;
}

/* All events, or the largest (and the smallest) of each of 1000 runs of about equal length. */
void memory_outline(const struct memory_allocator *al, struct memory_analysis *an)
{
    *an = (struct memory_analysis){0};
    size_t max = MEMORY_TIMELINE_MAX, width = al->n / max, at = 0;
    size_t narrow = max * (width + 1) - al->n;
    an->ntimeline = al->n < max ? al->n : max;
    for (size_t i = 0; i < an->ntimeline; i++) {
        size_t n = al->n <= max ? 1 : i < narrow ? width : width + 1;
        const struct memory_change *best = &al->changes[at], *low = best;
        for (size_t k = 1; k < n; k++) {
            if (al->changes[at + k].used > best->used)
                best = &al->changes[at + k];
            if (al->changes[at + k].used < low->used)
                low = &al->changes[at + k];
        }
        an->timeline[i] = best;
        an->lows[i] = low;
        at += n;
    }
    an->nlows = al->n > max ? max : 0;
}

static int64_t step_of_peak(const struct memory_allocator *al)
{
    for (size_t i = al->n; i-- > 0;)
        if (al->changes[i].used == al->peak.bytes)
            return al->changes[i].step;
    return 0;
}

/* Fills t with the allocations of the peak's step that were alive at the peak, and *unexplained
 * with the heap bytes that they do not explain. */
static bool find_alive(const struct memory_allocator *al, int64_t step, struct addresses *t,
                       int64_t *unexplained)
{
    uint64_t unmapped = (uint64_t)al->peak.heap, freed = 0;
    for (size_t i = 0; i < al->n && al->changes[i].time_ps <= al->peak.time_ps; i++) {
        const struct memory_change *c = &al->changes[i];
        if (c->step != step)
            continue;
        if (c->frees) {
            if (address_take(t, c->address) == ADDRESS_FREE)
                freed += (uint64_t)c->allocated;
            unmapped += (uint64_t)c->allocated;
            continue;
        }
        struct address *s = address_at(t, c->address);
        if (!s)
            return false;
        s->index = (uint32_t)i;
        unmapped -= (uint64_t)c->allocated;
    }
    *unexplained = (int64_t)(unmapped - freed);
    return true;
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

size_t memory_group(struct memory *m, struct memory_active *v, size_t n)
{
    size_t left = 0;
    if (n)
        qsort_r(v, n, sizeof *v, by_event, m);
    for (size_t i = 0; i < n; i++) {
        if (left && cmp_event(m, v[left - 1].event, v[i].event) == 0)
            v[left - 1].count++;
        else
            v[left++] = v[i];
    }
    return left;
}

static int by_index(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Reads what is in t, in the file's order as far as that is the order of time. */
static enum xp_status describe_alive(struct memory *m, struct memory_allocator *al,
                                     struct memory_analysis *an, const struct addresses *t,
                                     struct xp_error *err)
{
    uint32_t *alive = xp_arena_alloc(m->arena, (t->n + 1) * sizeof *alive);
    struct memory_event *events = xp_arena_alloc(m->arena, (t->n + 1) * sizeof *events);
    size_t n = 0;
    an->active = xp_arena_alloc(m->arena, (t->n + 2) * sizeof *an->active);
    if (!alive || !events || !an->active)
        return no_memory(err);
    for (size_t i = 0; i <= t->mask; i++)
        if (t->slots[i].index != ADDRESS_FREE)
            alive[n++] = t->slots[i].index;
    qsort(alive, n, sizeof *alive, by_index);
    for (size_t i = 0; i < n; i++) {
        XP_TRY(memory_describe(m, al, &al->changes[alive[i]], &events[i], err));
        an->active[an->nactive++] = (struct memory_active){&events[i], -1, 1};
    }
    return XP_OK;
}

static enum xp_status list_active(struct memory *m, struct memory_allocator *al,
                                  struct memory_analysis *an, struct addresses *t,
                                  struct xp_error *err)
{
    int64_t step = step_of_peak(al), unmapped;
    if (!find_alive(al, step, t, &unmapped))
        return no_memory(err);
    XP_TRY(describe_alive(m, al, an, t, err));
    if (unmapped > 0 &&
        !add_special(m, an, unmapped, step, "unused preallocated device memory", "persist/dynamic"))
        return no_memory(err);
    if (al->peak.reserved > 0 && !add_special(m, an, al->peak.reserved, step, "stack", "stack"))
        return no_memory(err);
    an->nactive = memory_group(m, an->active, an->nactive);
    return XP_OK;
}

enum xp_status memory_analyse(struct memory *m, struct memory_allocator *al,
                              struct memory_analysis *an, struct xp_error *err)
{
    struct addresses t;
    if (al->n >= UINT32_MAX / 4)
        return xp_fail(err, XP_TOO_LARGE, 0, "%zu memory events are too many", al->n);
    if (!addresses_init(&t, m->arena))
        return no_memory(err);
    if (!settle(al, &t))
        return no_memory(err);
    memory_outline(al, an);
    addresses_clear(&t);
    return list_active(m, al, an, &t, err);
}
