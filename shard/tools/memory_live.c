#include "shard/tools/memory_live.h"

#include <inttypes.h>
#include <stdlib.h>

#include "shard/derive/derive.h"
#include "shard/stats/figures.h"
#include "shard/tools/memory_index.h"

#define NO_HEAP INT64_MIN

/* Kept with a part. */
struct pool {
    struct xp_span name;
    int64_t peak_ps;
    uint64_t peak_at;
    struct memory_index index;
};
struct kept {
    struct xp_span partial; /* memory_facts_put's, of no host in particular */
    struct pool *pools;     /* by name, as in the partial */
    size_t npools;
};

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the memory profile");
}

/* --- what is kept --- */

static enum xp_status keep_pools(struct kept *k, const struct memory *m, struct xp_arena *scratch,
                                 struct xp_bump *out, struct xp_error *err)
{
    k->pools = xp_bump_alloc(out, (m->nallocators + 1) * sizeof *k->pools, 8);
    for (size_t i = 0; k->pools && i < m->nallocators; i++) {
        const struct memory_allocator *al = &m->allocators[i];
        struct pool *p = &k->pools[k->npools++];
        *p = (struct pool){.name = xp_bump_span(out, xp_strpool_get(&m->strings, al->name)),
                           .peak_ps = al->peak.time_ps,
                           .peak_at = al->peak_at};
        if (al->n >= UINT32_MAX / 4)
            return xp_fail(err, XP_TOO_LARGE, 0, "%zu memory events are too many", al->n);
        if (!p->name.p || !memory_index_make(&p->index, al->changes, al->n, scratch, out))
            return no_memory(err);
    }
    return k->pools ? XP_OK : no_memory(err);
}

static enum xp_status fill(struct kept *k, struct part *p, struct xp_arena *scratch,
                           struct xp_error *err)
{
    const struct part_plane *plane = profile_plane(p, "/host:CPU");
    struct tool_host nobody = {.part = p};
    struct facts_out f;
    struct memory m;
    struct xp_bump out;
    xp_bump_init(&out, p->arena);
    if (plane)
        XP_TRY(memory_read(p, plane, MEMORY_SESSION_TIMES, scratch, &m, err));
    if (plane)
        XP_TRY(keep_pools(k, &m, scratch, &out, err));
    XP_TRY(facts_begin(&f, scratch, err));
    enum xp_status st =
        memory_facts_put(&f, p, plane ? &m : NULL, MEMORY_SESSION_TIMES, scratch, err);
    if (st == XP_OK)
        return facts_end(&f, &nobody, p->arena, &k->partial, err);
    facts_drop(&f);
    return st;
}

static enum xp_status make(struct part *p, const struct derive *d, void **kept,
                           struct xp_error *err)
{
    struct kept *k = xp_arena_zalloc(p->arena, sizeof *k);
    struct xp_arena *scratch = xp_arena_new(NULL);
    (void)d;
    enum xp_status st = k && scratch ? fill(k, p, scratch, err) : no_memory(err);
    xp_arena_free(scratch);
    if (st == XP_OK)
        *kept = k;
    return st;
}

/* --- a host's facts --- */

struct look {
    struct facts_out *f;
    struct memory *m; /* reads events */
    struct xp_arena *a;
    bool asked;
    int64_t at_ps;
    const int64_t *ends; /* of steps */
    size_t nsteps;
    struct xp_error *err;
};

/* The index is of the whole profile, where the allocators are that a range has, and maybe more. */
static const struct pool *same_pool(const struct kept *whole, struct xp_span name)
{
    for (size_t i = 0; i < whole->npools; i++)
        if (xp_span_eq(whole->pools[i].name, name))
            return &whole->pools[i];
    return NULL;
}

static enum xp_status describe(const struct look *l, const struct memory_moment *m,
                               struct memory_event *ev)
{
    struct memory_change c = {.time_ps = m->time_ps, .at = m->at, .step = -1};
    return memory_describe(l->m, NULL, &c, ev, l->err);
}

/* What no event tells of: a part of the heap, and what programs reserved. */
static size_t add_special(const struct memory_event *now, int64_t known, struct memory_event *ev,
                          struct memory_active *v)
{
    const int64_t bytes[] = {(int64_t)((uint64_t)now->heap - (uint64_t)known), now->reserved};
    size_t n = 0;
    for (int i = 0; i < 2; i++) {
        if (bytes[i] <= 0)
            continue;
        ev[n] = (struct memory_event){
            .requested = bytes[i], .allocated = bytes[i], .type = MEMORY_NO_TYPE};
        v[n] = (struct memory_active){&ev[n], i == 0 ? MEMORY_BEFORE : MEMORY_STACK, 1};
        n++;
    }
    return n;
}

static void put_rows(const struct look *l, const struct memory_active *v, size_t n)
{
    facts_u64(l->f, n);
    for (size_t i = 0; i < n; i++) {
        facts_i64(l->f, v[i].special);
        facts_u64(l->f, v[i].count);
        memory_facts_put_event(l->f, l->m, v[i].event);
    }
}

static enum xp_status put_alive(const struct look *l, const struct memory_index *x,
                                const struct memory_moment *when, const struct memory_event *now)
{
    size_t n = memory_index_alive(x, when->number, NULL);
    struct memory_moment *alive = xp_arena_alloc(l->a, (n + 1) * sizeof *alive);
    struct memory_event *events = xp_arena_alloc(l->a, (n + 2) * sizeof *events);
    struct memory_active *v = xp_arena_alloc(l->a, (n + 2) * sizeof *v);
    uint64_t known = 0;
    if (!alive || !events || !v)
        return no_memory(l->err);
    memory_index_alive(x, when->number, alive);
    for (size_t i = 0; i < n; i++) {
        XP_TRY(describe(l, &alive[i], &events[i]));
        known += (uint64_t)events[i].allocated;
        v[i] = (struct memory_active){&events[i], -1, 1};
    }
    facts_u64(l->f, n);
    n += add_special(now, (int64_t)known, &events[n], &v[n]);
    put_rows(l, v, memory_group(l->m, v, n));
    return XP_OK;
}

static enum xp_status put_heaps(const struct look *l, const struct memory_index *x)
{
    for (size_t i = 0; i < l->nsteps; i++) {
        struct memory_moment when;
        struct memory_event now = {.heap = NO_HEAP};
        if (memory_index_find(x, l->ends[i], UINT64_MAX, &when))
            XP_TRY(describe(l, &when, &now));
        facts_i64(l->f, now.heap);
    }
    return XP_OK;
}

static enum xp_status put_pool(const struct look *l, const struct pool *own,
                               const struct pool *whole)
{
    struct memory_moment when;
    struct memory_event now;
    bool known = memory_index_find(&whole->index, l->asked ? l->at_ps : own->peak_ps,
                                   l->asked ? UINT64_MAX : own->peak_at, &when);
    facts_u64(l->f, known);
    if (known) {
        XP_TRY(describe(l, &when, &now));
        facts_i64(l->f, when.time_ps);
        facts_i64(l->f, now.reserved);
        facts_i64(l->f, now.heap);
        facts_i64(l->f, now.available);
        XP_TRY(put_alive(l, &whole->index, &when, &now));
    }
    return put_heaps(l, &whole->index);
}

/* --- steps --- */

/* The core that has most of them stands for all. */
static const struct figure_core *stepper(const struct figure_host *h)
{
    const struct figure_core *most = NULL;
    for (uint32_t i = 0; i < h->ncores; i++)
        if (h->cores[i].kind != FIGURE_SPARSE_CORE && (!most || h->cores[i].nsteps > most->nsteps))
            most = &h->cores[i];
    return most;
}

static enum xp_status put_steps(struct look *l, const struct tool_host *host,
                                const struct tool_args *args)
{
    struct figure_host h;
    struct xp_span marker = {0};
    tool_arg(args, "step_marker", &marker);
    XP_TRY(figures_of(host->part, host->name, marker, l->a, &h, l->err));
    const struct figure_core *core = stepper(&h);
    size_t all = core ? core->nsteps : 0;
    while (all && !core->steps[all - 1].whole) /* it ends with the capture */
        all--;
    size_t stride = all / MEMORY_STEPS_MAX + (all % MEMORY_STEPS_MAX != 0);
    int64_t *ends = xp_arena_alloc(l->a, (MEMORY_STEPS_MAX + 1) * sizeof *ends);
    if (!ends)
        return no_memory(l->err);
    l->ends = ends;
    facts_u64(l->f, stride);
    facts_u64(l->f, stride ? (all - 1) / stride + 1 : 0);
    for (size_t i = 0; i < all; i += stride) {
        ends[l->nsteps++] = core->steps[i].end_ps;
        facts_i64(l->f, core->steps[i].number);
    }
    return XP_OK;
}

static enum xp_status put_moment(struct look *l, const struct tool_host *host,
                                 const struct tool_args *args)
{
    struct part *p = host->part, *all = p->range ? p->range->whole : p;
    void *own, *whole;
    XP_TRY(derive_keep(p, DERIVE_KEPT_MEMORY_TIMES, make, &own, l->err));
    XP_TRY(derive_keep(all, DERIVE_KEPT_MEMORY_TIMES, make, &whole, l->err));
    const struct kept *k = own;
    facts_text(l->f, k->partial);
    XP_TRY(put_steps(l, host, args));
    XP_TRY(memory_open(all, profile_plane(all, "/host:CPU"), l->a, l->m, l->err));
    for (size_t i = 0; i < k->npools; i++) {
        const struct pool *same = same_pool(whole, k->pools[i].name);
        XP_TRY(put_pool(l, &k->pools[i], same ? same : &k->pools[i]));
    }
    return XP_OK;
}

enum xp_status memory_live_at(const struct tool_args *args, bool *asked, int64_t *at_ps,
                              struct xp_error *err)
{
    struct xp_span s = {0};
    tool_arg(args, "at", &s);
    bool minus = s.n && s.p[0] == '-';
    int64_t v = 0;
    for (size_t i = minus; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9' || s.n > 18)
            return xp_fail(err, XP_BAD_REQUEST, 0,
                           "at= is a time of the session in picoseconds, a whole number");
        else
            v = v * 10 + (s.p[i] - '0');
    if (minus && s.n == 1)
        return xp_fail(err, XP_BAD_REQUEST, 0, "at= is a time of the session, - is none");
    *asked = s.n != 0;
    *at_ps = minus ? -v : v;
    return XP_OK;
}

/* Steps are at other times on each host, and what one of them lacks is no fault of the question. */
static enum xp_status in_range(const struct part *p, const struct look *l,
                               const struct tool_args *args)
{
    const struct part_range *r = p->range;
    struct xp_span steps = {0};
    tool_arg(args, "steps", &steps);
    if (!r || !l->asked || steps.n || (l->at_ps >= r->t0_ps && l->at_ps <= r->t1_ps))
        return XP_OK;
    return xp_fail(l->err, XP_BAD_REQUEST, 0,
                   "at=%" PRId64 " lies outside the range, which is from %" PRId64 " to %" PRId64
                   " ps",
                   l->at_ps, r->t0_ps, r->t1_ps);
}

enum xp_status memory_live_map(const struct tool_host *host, const struct tool_args *args,
                               struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    struct facts_out f;
    struct memory m;
    struct look l = {.f = &f, .m = &m, .a = a, .err = err};
    XP_TRY(memory_live_at(args, &l.asked, &l.at_ps, err));
    XP_TRY(in_range(host->part, &l, args));
    XP_TRY(facts_begin(&f, a, err));
    bool any = memory_has_events(host->part); /* else steps need not be known */
    facts_u64(&f, any);
    enum xp_status st = any ? put_moment(&l, host, args) : XP_OK;
    if (st == XP_OK)
        return facts_end(&f, host, a, partial, err);
    facts_drop(&f);
    return st;
}

/* --- reading --- */

static bool get_rows(struct facts *f, struct xp_arena *a, struct memory_live_pool *p)
{
    p->nrows = facts_get_count(f);
    p->rows = xp_arena_alloc(a, (p->nrows + 1) * sizeof *p->rows);
    for (size_t i = 0; p->rows && i < p->nrows; i++) {
        int64_t special = facts_get_i64(f);
        p->rows[i].special =
            special == MEMORY_BEFORE || special == MEMORY_STACK ? (int)special : -1;
        p->rows[i].count = facts_get_u64(f);
        memory_facts_get_event(f, &p->rows[i].fact);
    }
    return p->rows;
}

static bool get_pool(struct facts *f, struct xp_arena *a, size_t nsteps, struct memory_live_pool *p)
{
    *p = (struct memory_live_pool){.known = facts_get_u64(f) != 0};
    if (p->known) {
        p->time_ps = facts_get_i64(f);
        p->reserved = facts_get_i64(f);
        p->heap = facts_get_i64(f);
        p->available = facts_get_i64(f);
        p->allocations = facts_get_u64(f);
        if (!get_rows(f, a, p))
            return false;
    }
    p->heap_after = xp_arena_alloc(a, (nsteps + 1) * sizeof *p->heap_after);
    for (size_t i = 0; p->heap_after && i < nsteps; i++)
        p->heap_after[i] = facts_get_i64(f);
    return p->heap_after;
}

enum xp_status memory_live_read(struct facts *f, struct xp_arena *a, struct memory_live *m,
                                struct xp_error *err)
{
    struct facts *inner;
    size_t n;
    *m = (struct memory_live){0};
    if (!facts_get_u64(f))
        return facts_ok(f, err);
    XP_TRY(facts_open(facts_get_text(f), a, &inner, &n, err));
    if (n != 1)
        return xp_fail(err, XP_CORRUPT, 0, "what another server said of a host cannot be read");
    XP_TRY(memory_facts_read(inner, a, &m->facts, err));
    m->stride = facts_get_u64(f);
    m->nsteps = facts_get_count(f);
    m->steps = xp_arena_alloc(a, (m->nsteps + 1) * sizeof *m->steps);
    m->pools = xp_arena_zalloc(a, (m->facts.nallocators + 1) * sizeof *m->pools);
    if (!m->steps || !m->pools)
        return no_memory(err);
    for (size_t i = 0; i < m->nsteps; i++)
        m->steps[i] = facts_get_i64(f);
    for (size_t i = 0; i < m->facts.nallocators && !f->bad; i++)
        if (!get_pool(f, a, m->nsteps, &m->pools[i]))
            return no_memory(err);
    return facts_ok(f, err);
}
