#include "shard/tools/run_facts.h"

#include "lib/base/pb_wire.h"
#include "shard/tools/coverage.h"
#include "shard/tools/memory_live.h"
#include "shard/tools/reports.h"

enum { FACTS_SESSION = 1, FACTS_MEMORY, FACTS_COVERAGE };

static enum xp_status pack(const struct run_facts *t, struct xp_arena *a, struct xp_span *out,
                           struct xp_error *err)
{
    struct xp_buf b;
    xp_buf_init(&b, SESSION_MAX);
    xp_pb_put_bytes(&b, FACTS_SESSION, t->session);
    xp_pb_put_bytes(&b, FACTS_MEMORY, t->memory);
    xp_pb_put_bytes(&b, FACTS_COVERAGE, t->coverage);
    uint8_t *p = b.failed ? NULL : xp_arena_alloc(a, b.n + 1);
    if (p)
        memcpy(p, b.p, b.n);
    *out = xp_span_of(p, p ? b.n : 0);
    bool failed = b.failed;
    xp_buf_fini(&b);
    return p ? XP_OK
             : xp_fail(err, failed ? XP_TOO_LARGE : XP_BUSY, 0,
                       "what the run's hosts say does not fit into memory");
}

enum xp_status run_facts_open(struct xp_span merged, struct run_facts *t, struct xp_error *err)
{
    struct xp_pb r = xp_pb_open(merged);
    struct xp_pb_field f;
    *t = (struct run_facts){0};
    while (xp_pb_next(&r, &f)) {
        if (f.type != XP_PB_LEN)
            continue;
        if (f.num == FACTS_SESSION)
            t->session = f.bytes;
        else if (f.num == FACTS_MEMORY)
            t->memory = f.bytes;
        else if (f.num == FACTS_COVERAGE)
            t->coverage = f.bytes;
    }
    return r.bad ? xp_fail(err, XP_CORRUPT, 0, "what another server said of a host cannot be read")
                 : XP_OK;
}

enum xp_status run_facts_map(const struct tool_host *host, const struct tool_args *args,
                             struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    struct run_facts t = {0};
    XP_TRY(report_overview_page.map(host, args, a, &t.session, err));
    XP_TRY(memory_live_map(host, args, a, &t.memory, err));
    XP_TRY(coverage_map(host, args, a, &t.coverage, err));
    return pack(&t, a, partial, err);
}

enum xp_status run_facts_merge(struct xp_span x, struct xp_span y, struct xp_arena *a,
                               struct xp_span *both, struct xp_error *err)
{
    struct run_facts p, q, t = {0};
    *both = x.n ? x : y;
    if (!x.n || !y.n)
        return XP_OK;
    XP_TRY(run_facts_open(x, &p, err));
    XP_TRY(run_facts_open(y, &q, err));
    XP_TRY(session_merge(p.session, q.session, a, &t.session, err));
    XP_TRY(facts_merge(p.memory, q.memory, a, &t.memory, err));
    XP_TRY(facts_merge(p.coverage, q.coverage, a, &t.coverage, err));
    return pack(&t, a, both, err);
}

static void look_at(const struct memory_fact_allocator *al, struct xp_span host,
                    struct run_memory *m)
{
    const struct memory_peak *p = &al->peak;
    if (!m->known || p->bytes > m->peak_bytes)
        m->peak_bytes = p->bytes;
    m->known = true;
    if (p->capacity <= 0 || p->bytes <= 0 || (double)p->bytes <= m->full * (double)p->capacity)
        return;
    m->full = (double)p->bytes / (double)p->capacity;
    m->full_bytes = p->bytes;
    m->capacity = p->capacity;
    m->full_at_ps = p->time_ps;
    m->host = host;
    m->allocator = al->name;
}

enum xp_status run_facts_memory(struct xp_span memory, struct xp_arena *a, struct run_memory *out,
                                struct xp_error *err)
{
    struct facts *hosts;
    size_t n;
    *out = (struct run_memory){0};
    XP_TRY(facts_open(memory, a, &hosts, &n, err));
    for (size_t i = 0; i < n; i++) {
        struct memory_live m;
        XP_TRY(memory_live_read(&hosts[i], a, &m, err));
        for (size_t k = 0; k < m.facts.nallocators; k++)
            look_at(&m.facts.allocators[k], hosts[i].host, out);
    }
    return XP_OK;
}
