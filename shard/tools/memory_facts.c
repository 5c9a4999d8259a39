#include "shard/tools/memory_facts.h"

#include "shard/derive/derive.h"

/* --- writing --- */

void memory_facts_put_event(struct facts_out *f, const struct memory *m,
                            const struct memory_event *ev)
{
    facts_i64(f, ev->time_ps);
    facts_i64(f, ev->reserved);
    facts_i64(f, ev->heap);
    facts_i64(f, ev->available);
    facts_i64(f, ev->peak);
    facts_double(f, ev->fragmentation);
    facts_i64(f, ev->requested);
    facts_i64(f, ev->allocated);
    facts_u64(f, ev->address);
    facts_i64(f, ev->step);
    facts_i64(f, ev->type);
    facts_text(f, xp_strpool_get(&m->strings, ev->op));
    facts_text(f, xp_strpool_get(&m->strings, ev->region));
    facts_text(f, xp_strpool_get(&m->strings, ev->shape));
    facts_u64(f, ev->frees);
}

static void put_peak(struct facts_out *f, const struct memory_peak *p)
{
    facts_i64(f, p->lifetime);
    facts_i64(f, p->reserved);
    facts_i64(f, p->heap);
    facts_i64(f, p->available);
    facts_i64(f, p->bytes);
    facts_i64(f, p->time_ps);
    facts_i64(f, p->capacity);
    facts_double(f, p->fragmentation);
}

static void put_totals(struct facts_out *f, const struct memory_allocator *al)
{
    for (int i = 0; i < 2; i++) {
        facts_u64(f, al->count[i]);
        facts_u64(f, al->bytes[i]);
    }
}

static enum xp_status put_allocator(struct facts_out *f, struct memory *m,
                                    const struct memory_allocator *al,
                                    const struct memory_analysis *an, struct xp_error *err)
{
    facts_text(f, xp_strpool_get(&m->strings, al->name));
    put_peak(f, &al->peak);
    put_totals(f, al);
    facts_u64(f, an->ntimeline);
    for (size_t i = 0; i < an->ntimeline; i++) {
        struct memory_event ev;
        XP_TRY(memory_describe(m, al, an->timeline[i], &ev, err));
        memory_facts_put_event(f, m, &ev);
    }
    facts_u64(f, an->nlows);
    for (size_t i = 0; i < an->nlows; i++) {
        struct memory_event ev;
        XP_TRY(memory_describe(m, al, an->lows[i], &ev, err));
        memory_facts_put_event(f, m, &ev);
    }
    facts_u64(f, an->nactive);
    for (size_t i = 0; i < an->nactive; i++) {
        facts_i64(f, an->active[i].special);
        facts_u64(f, an->active[i].count);
        memory_facts_put_event(f, m, an->active[i].event);
    }
    return XP_OK;
}

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the memory profile");
}

static enum xp_status put_allocators(struct facts_out *f, struct memory *m, enum memory_times times,
                                     struct xp_error *err)
{
    struct memory_analysis *an = xp_arena_alloc(m->arena, sizeof *an);
    if (!an)
        return no_memory(err);
    facts_u64(f, m->nallocators);
    for (size_t i = 0; i < m->nallocators; i++) {
        if (times == MEMORY_LINE_TIMES)
            XP_TRY(memory_analyse(m, &m->allocators[i], an, err));
        else
            memory_outline(&m->allocators[i], an);
        XP_TRY(put_allocator(f, m, &m->allocators[i], an, err));
    }
    return XP_OK;
}

static bool any(void *ctx, const struct lane_event *ev)
{
    (void)ctx, (void)ev;
    return true;
}

static void put_module(struct facts_out *f, const struct part *p, const struct part_plane *pl,
                       int64_t base_ps, const struct lane_event *ev)
{
    facts_text(f, ev->name < pl->nevmeta ? part_str(p, pl->evmeta[ev->name].name)
                                         : (struct xp_span){0});
    facts_text(f, profile_plane_name(p, pl));
    facts_i64(f, base_ps + ev->begin_ps);
    facts_i64(f, base_ps + ev->end_ps);
}

/* The runs of modules, from all TPUs. */
static enum xp_status put_modules(struct facts_out *f, const struct part *p,
                                  enum memory_times times, struct xp_arena *a, struct xp_error *err)
{
    for (uint32_t i = 0; i < p->nlines; i++) {
        const struct part_line *line = &p->lines[i];
        const struct part_plane *pl = &p->planes[line->plane];
        struct lane_event *events;
        size_t n;
        if (!profile_is_tpu(profile_plane_name(p, pl)) ||
            !xp_span_eq(part_str(p, line->name), XP_SPAN_LIT("XLA Modules")))
            continue;
        XP_TRY(profile_events(line, any, NULL, a, &events, &n, err));
        if (n)
            facts_u64(f, n);
        for (size_t k = 0; k < n; k++)
            put_module(f, p, pl, times == MEMORY_LINE_TIMES ? 0 : line->base_ps, &events[k]);
    }
    facts_u64(f, 0);
    return XP_OK;
}

enum xp_status memory_facts_put(struct facts_out *f, const struct part *p, struct memory *m,
                                enum memory_times times, struct xp_arena *a, struct xp_error *err)
{
    facts_u64(f, m != NULL);
    if (m)
        XP_TRY(put_allocators(f, m, times, err));
    else
        facts_u64(f, 0);
    return put_modules(f, p, times, a, err);
}

static enum xp_status put_host(struct facts_out *f, struct part *p, struct xp_arena *a,
                               struct xp_error *err)
{
    const struct part_plane *plane = profile_plane(p, "/host:CPU");
    struct memory *m = plane ? xp_arena_alloc(a, sizeof *m) : NULL;
    if (plane && !m)
        return no_memory(err);
    if (plane)
        XP_TRY(memory_read(p, plane, MEMORY_LINE_TIMES, a, m, err));
    return memory_facts_put(f, p, m, MEMORY_LINE_TIMES, a, err);
}

static enum xp_status pack(struct part *p, const struct tool_host *host, struct xp_arena *a,
                           struct xp_arena *scratch, struct xp_span *partial, struct xp_error *err)
{
    struct facts_out f;
    XP_TRY(facts_begin(&f, scratch, err));
    enum xp_status st = put_host(&f, p, scratch, err);
    if (st == XP_OK)
        return facts_end(&f, host, a, partial, err);
    facts_drop(&f);
    return st;
}

/* Kept with the part: a million events take a third of a second. */
static enum xp_status make(struct part *p, const struct derive *d, void **kept,
                           struct xp_error *err)
{
    struct tool_host nobody = {.part = p};
    struct xp_span *partial = xp_arena_alloc(p->arena, sizeof *partial);
    struct xp_arena *scratch = xp_arena_new(NULL);
    enum xp_status st = XP_OK;
    (void)d;
    if (!partial || !scratch)
        st = no_memory(err);
    if (st == XP_OK)
        st = pack(p, &nobody, p->arena, scratch, partial, err);
    xp_arena_free(scratch);
    if (st == XP_OK)
        *kept = partial;
    return st;
}

enum xp_status memory_facts_map(const struct tool_host *host, const struct tool_args *args,
                                struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    void *kept = NULL;
    (void)args;
    if (!profile_readable(host->part))
        return facts_unreadable(host, a, partial, err);
    if (!memory_has_events(host->part)) /* steps need not be known */
        return pack(host->part, host, a, a, partial, err);
    XP_TRY(derive_keep(host->part, DERIVE_KEPT_MEMORY, make, &kept, err));
    return facts_of(*(struct xp_span *)kept, host, a, partial, err);
}

/* --- reading --- */

void memory_facts_get_event(struct facts *f, struct memory_fact *ev)
{
    ev->time_ps = facts_get_i64(f);
    ev->reserved = facts_get_i64(f);
    ev->heap = facts_get_i64(f);
    ev->available = facts_get_i64(f);
    ev->peak = facts_get_i64(f);
    ev->fragmentation = facts_get_double(f);
    ev->requested = facts_get_i64(f);
    ev->allocated = facts_get_i64(f);
    ev->address = facts_get_u64(f);
    ev->step = facts_get_i64(f);
    ev->type = facts_get_i64(f);
    ev->op = facts_get_text(f);
    ev->region = facts_get_text(f);
    ev->shape = facts_get_text(f);
    ev->frees = facts_get_u64(f) != 0;
}

static void get_peak(struct facts *f, struct memory_peak *p)
{
    p->lifetime = facts_get_i64(f);
    p->reserved = facts_get_i64(f);
    p->heap = facts_get_i64(f);
    p->available = facts_get_i64(f);
    p->bytes = facts_get_i64(f);
    p->time_ps = facts_get_i64(f);
    p->capacity = facts_get_i64(f);
    p->fragmentation = facts_get_double(f);
}

static bool get_allocator(struct facts *f, struct xp_arena *a, struct memory_fact_allocator *al)
{
    al->name = facts_get_text(f);
    get_peak(f, &al->peak);
    al->allocations = facts_get_u64(f);
    al->allocated_bytes = facts_get_u64(f);
    al->frees = facts_get_u64(f);
    al->freed_bytes = facts_get_u64(f);
    al->ntimeline = facts_get_count(f);
    al->timeline = xp_arena_alloc(a, (al->ntimeline + 1) * sizeof *al->timeline);
    for (size_t i = 0; al->timeline && i < al->ntimeline; i++)
        memory_facts_get_event(f, &al->timeline[i]);
    al->nlows = facts_get_count(f);
    al->lows = xp_arena_alloc(a, (al->nlows + 1) * sizeof *al->lows);
    for (size_t i = 0; al->lows && i < al->nlows; i++)
        memory_facts_get_event(f, &al->lows[i]);
    al->nactive = facts_get_count(f);
    al->active = xp_arena_alloc(a, (al->nactive + 1) * sizeof *al->active);
    for (size_t i = 0; al->active && i < al->nactive; i++) {
        int64_t special = facts_get_i64(f);
        al->active[i].special = special == 0 || special == 1 ? (int)special : -1;
        al->active[i].count = facts_get_u64(f);
        memory_facts_get_event(f, &al->active[i].fact);
    }
    return al->timeline && al->lows && al->active;
}

/* They come in pieces, a line each; counts when v is NULL. */
static size_t get_modules(struct facts *f, struct memory_fact_module *v)
{
    size_t n = 0, piece;
    while ((piece = facts_get_count(f)) && !f->bad)
        for (size_t i = 0; i < piece; i++, n++) {
            struct memory_fact_module one = {.name = facts_get_text(f)};
            one.plane = facts_get_text(f);
            one.begin_ps = facts_get_i64(f);
            one.end_ps = facts_get_i64(f);
            if (v)
                v[n] = one;
        }
    return n;
}

enum xp_status memory_facts_read(struct facts *f, struct xp_arena *a, struct memory_facts *m,
                                 struct xp_error *err)
{
    *m = (struct memory_facts){.has_threads = facts_get_u64(f) != 0};
    m->nallocators = facts_get_count(f);
    m->allocators = xp_arena_zalloc(a, (m->nallocators + 1) * sizeof *m->allocators);
    for (size_t i = 0; i < m->nallocators && m->allocators && !f->bad; i++)
        if (!get_allocator(f, a, &m->allocators[i]))
            m->allocators = NULL;
    struct facts again = *f;
    m->nmodules = m->allocators ? get_modules(f, NULL) : 0;
    m->modules = xp_arena_alloc(a, (m->nmodules + 1) * sizeof *m->modules);
    if (!m->allocators || !m->modules)
        return no_memory(err);
    get_modules(&again, m->modules);
    return facts_ok(f, err);
}
