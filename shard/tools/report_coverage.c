/* How much of the run is there? The line that pages have below their title. A report of our own. */
#include "shard/tools/coverage.h"
#include "shard/tools/reports.h"

static const struct report_column columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"devices", "Devices", "count", REPORT_COL_NUMBER, true, "that have a plane in it"},
    {"dropped", "Dropped", "count", REPORT_COL_NUMBER, true,
     "events that its profiler says it dropped; n/a: some, it does not say how many"},
    {"complaints", "Complaints", "count", REPORT_COL_NUMBER, true,
     "errors and warnings of the profiler"},
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct coverage_host *h = &((const struct coverage *)ctx)->hosts[i];
    c[0] = report_of_text(h->name);
    c[1] = report_of_u64(h->devices);
    c[2] = h->dropped || !h->dropped_more ? report_of_u64(h->dropped) : report_none();
    c[3] = report_of_u64(h->complaints);
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct coverage c;
    (void)args;
    XP_TRY(coverage_open(merged, r->a, &c, err));
    report_u64(r, "hosts", c.n, NULL);
    coverage_metrics(r, &c);
    report_table(r, &(struct report_rows){.id = "hosts",
                                          .title = "Hosts",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = c.n,
                                          .row = row,
                                          .ctx = &c});
    return XP_OK;
}

static const struct tool_report report_coverage = {
    .question = "How much of the run is there?",
    .whole = true,
    .map = coverage_map,
    .merge = facts_merge,
    .write = write_report,
};

const struct tool tool_coverage = {
    .id = "coverage", .answer = tool_no_data, .report = &report_coverage};
