/* What the list of runs shows of a run: the figures of other reports, of one look at each host.
 *
 * A partial is those of the session, of the memory profile and of the coverage, each merged by its
 * own rule. A report of our own. */
#include "lib/base/pb_wire.h"
#include "shard/tools/coverage.h"
#include "shard/tools/memory_live.h"
#include "shard/tools/report_figures.h"
#include "shard/tools/reports.h"
#include "shard/tools/reports_more.h"
#include "shard/tools/requests.h"
#include "shard/tools/run_kind.h"

enum { FACTS_SESSION = 1, FACTS_MEMORY, FACTS_COVERAGE, FACTS_PARTS };

struct trio {
    struct xp_span of[FACTS_PARTS];
};

static enum xp_status pack(const struct trio *t, struct xp_arena *a, struct xp_span *out,
                           struct xp_error *err)
{
    struct xp_buf b;
    xp_buf_init(&b, SESSION_MAX);
    for (uint32_t i = FACTS_SESSION; i < FACTS_PARTS; i++)
        xp_pb_put_bytes(&b, i, t->of[i]);
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

static enum xp_status unpack(struct xp_span bytes, struct trio *t, struct xp_error *err)
{
    struct xp_pb r = xp_pb_open(bytes);
    struct xp_pb_field f;
    *t = (struct trio){0};
    while (xp_pb_next(&r, &f))
        if (f.type == XP_PB_LEN && f.num >= FACTS_SESSION && f.num < FACTS_PARTS)
            t->of[f.num] = f.bytes;
    return r.bad ? xp_fail(err, XP_CORRUPT, 0, "what another server said of a host cannot be read")
                 : XP_OK;
}

static enum xp_status map_host(const struct tool_host *host, const struct tool_args *args,
                               struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    struct trio t = {0};
    XP_TRY(report_overview_page.map(host, args, a, &t.of[FACTS_SESSION], err));
    XP_TRY(memory_live_map(host, args, a, &t.of[FACTS_MEMORY], err));
    XP_TRY(coverage_map(host, args, a, &t.of[FACTS_COVERAGE], err));
    return pack(&t, a, partial, err);
}

static enum xp_status merge_hosts(struct xp_span x, struct xp_span y, struct xp_arena *a,
                                  struct xp_span *both, struct xp_error *err)
{
    struct trio p, q, t = {0};
    *both = x.n ? x : y;
    if (!x.n || !y.n)
        return XP_OK;
    XP_TRY(unpack(x, &p, err));
    XP_TRY(unpack(y, &q, err));
    XP_TRY(session_merge(p.of[FACTS_SESSION], q.of[FACTS_SESSION], a, &t.of[FACTS_SESSION], err));
    XP_TRY(facts_merge(p.of[FACTS_MEMORY], q.of[FACTS_MEMORY], a, &t.of[FACTS_MEMORY], err));
    XP_TRY(facts_merge(p.of[FACTS_COVERAGE], q.of[FACTS_COVERAGE], a, &t.of[FACTS_COVERAGE], err));
    return pack(&t, a, both, err);
}

/* Does any allocator of a host have more than `most`? */
static enum xp_status peak_of(struct facts *host, struct xp_arena *a, bool *any, int64_t *most,
                              struct xp_error *err)
{
    struct memory_live m;
    XP_TRY(memory_live_read(host, a, &m, err));
    for (size_t i = 0; i < m.facts.nallocators; i++) {
        int64_t bytes = m.facts.allocators[i].peak.bytes;
        *most = !*any || bytes > *most ? bytes : *most;
        *any = true;
    }
    return XP_OK;
}

static enum xp_status memory_metric(struct report *r, struct xp_span merged, struct xp_error *err)
{
    struct facts *hosts;
    size_t n;
    bool any = false;
    int64_t most = 0;
    XP_TRY(facts_open(merged, r->a, &hosts, &n, err));
    for (size_t i = 0; i < n; i++)
        XP_TRY(peak_of(&hosts[i], r->a, &any, &most, err));
    if (any)
        report_u64(r, "peak_memory", most > 0 ? (uint64_t)most : 0, NULL);
    else
        report_na(r, "peak_memory", "%s", MEMORY_NO_EVENTS);
    return XP_OK;
}

/* What the run ran longest, for runs of the same work. */
static void workload(struct report *r, const struct figures *f)
{
    const struct figure_module *longest = NULL;
    for (uint32_t h = 0; h < f->nhosts; h++)
        for (uint32_t i = 0; i < f->hosts[h].nmodules && i < 1; i++)
            if (!longest || f->hosts[h].modules[i].total_ps > longest->total_ps)
                longest = &f->hosts[h].modules[i];
    struct xp_span name = longest ? longest->name : (struct xp_span){0};
    const uint8_t *paren = name.n ? memchr(name.p, '(', name.n) : NULL;
    if (paren)
        name.n = (size_t)(paren - name.p); /* a number of the compilation follows */
    if (name.n)
        report_string(r, "workload", name, NULL);
    else
        report_na(r, "workload", "the profile has no runs of programs");
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct trio t;
    struct session s;
    struct requests requests;
    struct coverage c;
    struct figures *f = xp_arena_alloc(r->a, sizeof *f);
    if (!f)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the report");
    XP_TRY(unpack(merged, &t, err));
    XP_TRY(session_open_report(t.of[FACTS_SESSION], args, r->a, &s, f, err));
    XP_TRY(requests_open_all(s.requests, r->a, &requests, err));
    XP_TRY(coverage_open(t.of[FACTS_COVERAGE], r->a, &c, err));
    report_steps(r, f);
    report_usage(r, f);
    report_run_kind(r, f, requests.n > 0);
    report_environment(r, f);
    workload(r, f);
    XP_TRY(memory_metric(r, t.of[FACTS_MEMORY], err));
    XP_TRY(report_suggestion_counts(r, f, err));
    coverage_metrics(r, &c);
    return XP_OK;
}

static const struct tool_report report_run_facts = {
    .question = "What is there to know of the run at a glance?",
    .map = map_host,
    .merge = merge_hosts,
    .write = write_report,
};

const struct tool tool_run_facts = {
    .id = "run_facts", .answer = tool_no_data, .report = &report_run_facts};
