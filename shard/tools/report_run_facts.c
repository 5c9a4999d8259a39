/* What the list of runs shows of a run: the figures of other reports, of one look at each host. A
 * report of our own. */
#include "lib/base/pb_wire.h"
#include "shard/tools/coverage.h"
#include "shard/tools/memory_live.h"
#include "shard/tools/report_figures.h"
#include "shard/tools/reports.h"
#include "shard/tools/reports_more.h"
#include "shard/tools/requests.h"
#include "shard/tools/run_facts.h"
#include "shard/tools/run_kind.h"

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
    struct run_facts t;
    struct run_memory memory;
    struct session s;
    struct requests requests;
    struct coverage c;
    struct figures *f = xp_arena_alloc(r->a, sizeof *f);
    if (!f)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the report");
    XP_TRY(run_facts_open(merged, &t, err));
    XP_TRY(run_facts_memory(t.memory, r->a, &memory, err));
    XP_TRY(session_open_report(t.session, args, r->a, &s, f, err));
    XP_TRY(requests_open_all(s.requests, r->a, &requests, err));
    XP_TRY(coverage_open(t.coverage, r->a, &c, err));
    report_steps(r, f);
    report_usage(r, f);
    report_run_kind(r, f, requests.n > 0);
    report_environment(r, f);
    workload(r, f);
    if (memory.known)
        report_u64(r, "peak_memory", memory.peak_bytes > 0 ? (uint64_t)memory.peak_bytes : 0, NULL);
    else
        report_na(r, "peak_memory", "%s", MEMORY_NO_EVENTS);
    XP_TRY(report_suggestion_counts(r, f, &memory, err));
    coverage_metrics(r, &c);
    return XP_OK;
}

static const struct tool_report report_run_facts = {
    .question = "What is there to know of the run at a glance?",
    .map = run_facts_map,
    .merge = run_facts_merge,
    .write = write_report,
};

const struct tool tool_run_facts = {
    .id = "run_facts", .answer = tool_no_data, .report = &report_run_facts};
