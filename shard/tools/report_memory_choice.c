#include <inttypes.h>

#include "shard/tools/report_memory.h"

#define FLAT 0.01 /* of the most that is in use: what moves less looks like a line */
#define NAME_SHOWN 100
#define SEE_MORE                                                                                   \
    "On a TPU a program gets its memory in one piece, and what it does inside is no allocation: "  \
    "memory_viewer shows that. For more, begin the capture before arrays are made and programs "   \
    "are loaded, with host_tracer_level=2 or higher."

static int shown(struct xp_span s)
{
    return (int)(s.n < NAME_SHOWN ? s.n : NAME_SHOWN);
}

enum xp_status report_memory_choose(const struct tool_args *args, struct memory_pool *all, size_t n,
                                    struct xp_arena *a, struct memory_pool **of, size_t *nof,
                                    struct xp_error *err)
{
    struct xp_span name = {0};
    *of = all;
    *nof = n;
    if (!tool_arg(args, "allocator", &name) || !name.n || !n)
        return XP_OK;
    *of = xp_arena_alloc(a, n * sizeof **of);
    *nof = 0;
    if (!*of)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the memory profile");
    for (size_t i = 0; i < n; i++)
        if (xp_span_eq(all[i].al->name, name))
            (*of)[(*nof)++] = all[i];
    if (*nof)
        return XP_OK;
    return xp_fail(err, XP_BAD_REQUEST, 0,
                   "allocator= names one of the table allocators, such as %.*s; none is called "
                   "%.*s",
                   shown(all[0].al->name), (const char *)all[0].al->name.p, shown(name),
                   (const char *)name.p);
}

void report_memory_none(struct report *r)
{
    report_note(r, REPORT_INFO, "memory_no_events",
                "No allocator tells of anything that was allocated or freed in the window. "
                "%s",
                SEE_MORE);
}

struct extent {
    int64_t low, high;
};

static void widen(struct extent *e, const struct memory_fact *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t used = (int64_t)((uint64_t)v[i].reserved + (uint64_t)v[i].heap);
        e->low = used < e->low ? used : e->low;
        e->high = used > e->high ? used : e->high;
    }
}

/* How much of the most that was in use it ever moved by. */
static double movement(const struct memory_fact_allocator *al)
{
    struct extent e = {INT64_MAX, INT64_MIN};
    widen(&e, al->timeline, al->ntimeline);
    widen(&e, al->lows, al->nlows);
    return e.high > 0 ? ((double)e.high - (double)e.low) / (double)e.high : 0;
}

void report_memory_flat(struct report *r, const struct memory_pool *pools, size_t n)
{
    const struct memory_pool *first = NULL;
    size_t flat = 0;
    for (size_t i = 0; i < n; i++) {
        if (!pools[i].al->ntimeline || movement(pools[i].al) >= FLAT)
            continue;
        first = first ? first : &pools[i];
        flat++;
    }
    if (!flat)
        return;
    uint64_t events = first->al->allocations + first->al->frees;
    report_note(r, REPORT_INFO, "memory_flat",
                "%zu of %zu curves are flat: with %" PRIu64 " events in the window what allocator "
                "%.*s of %.*s has in use moved by %.2g %% of its most. %s",
                flat, n, events, shown(first->al->name), (const char *)first->al->name.p,
                shown(first->host), (const char *)first->host.p, 100 * movement(first->al),
                SEE_MORE);
}
