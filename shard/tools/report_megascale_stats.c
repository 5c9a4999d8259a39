#include "shard/tools/reports_more.h"
#include "shard/tools/slack_facts.h"

/* Is the network between slices the bottleneck, and which transfer? */

#define NO_TRANSFERS                                                                               \
    "the profile has no transfers between slices: it is of one slice, or was captured without "    \
    "the host's events (host_tracer_level=2)"

struct view {
    const struct slack *s;
    uint64_t stall_us, occurrences;
};

static const struct report_column columns[] = {
    {"rendezvous", "Transfer", "", REPORT_COL_TEXT, false, "name of the rendezvous"},
    {"total_stall", "Stall in all", "ns", REPORT_COL_NUMBER, true, "stall of one x occurrences"},
    {"stall", "Stall", "ns", REPORT_COL_NUMBER, false, "of one: what its four ops took, mean"},
    {"slack", "Slack", "ns", REPORT_COL_NUMBER, false,
     "from the begin of send to the begin of recv-done, less what ops of transfers took, mean"},
    {"observed", "Observed", "ns", REPORT_COL_NUMBER, false,
     "from the begin of send to the end of recv-done, mean"},
    {"send_stall", "Send", "ns", REPORT_COL_NUMBER, false, "mean time of the op"},
    {"send_done_stall", "Send done", "ns", REPORT_COL_NUMBER, false, "mean time of the op"},
    {"recv_stall", "Recv", "ns", REPORT_COL_NUMBER, false, "mean time of the op"},
    {"recv_done_stall", "Recv done", "ns", REPORT_COL_NUMBER, false, "mean time of the op"},
    {"occurrences", "Occurrences", "count", REPORT_COL_NUMBER, true, "over all hosts"},
    {"bytes", "Sent", "bytes", REPORT_COL_BYTES, false, "over the network, each time"},
    {"required_rate", "Rate needed", "bytes/s", REPORT_COL_NUMBER, false,
     "bytes / slack: with this, nobody would wait"},
    {"kind", "Kind", "", REPORT_COL_TEXT, false, "of the collective"},
    {"send_op", "Send op", "", REPORT_COL_TEXT, false, "name of the HLO op"},
    {"recv_op", "Recv op", "", REPORT_COL_TEXT, false, "name of the HLO op"},
};

static struct report_cell ns(uint64_t us)
{
    uint64_t v;
    return __builtin_mul_overflow(us, UINT64_C(1000), &v) ? report_none() : report_of_u64(v);
}

static struct report_cell text(const struct view *v, uint32_t id)
{
    return id ? report_of_text(xp_strpool_get(&v->s->strings, id)) : report_none();
}

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct slack_row *r = &VEC(v->s->rows, struct slack_row)[i];
    uint64_t all;
    c[0] = text(v, r->rendezvous);
    c[1] = __builtin_mul_overflow(r->stall_us, r->occurrences, &all) ? report_none() : ns(all);
    c[2] = ns(r->stall_us);
    c[3] = ns(r->slack_us);
    c[4] = ns(r->observed_us);
    c[5] = ns(r->send_us);
    c[6] = ns(r->send_done_us);
    c[7] = ns(r->own_recv_us);
    c[8] = ns(r->recv_done_us);
    c[9] = report_of_u64(r->occurrences);
    c[10] = r->bytes ? report_of_u64(r->bytes) : report_none();
    c[11] = r->bytes ? report_ratio((double)r->bytes * 1e6, (double)r->slack_us) : report_none();
    c[12] = text(v, r->transfer_type);
    c[13] = text(v, r->send_op);
    c[14] = text(v, r->recv_op);
}

static void metrics(struct report *r, const struct view *v)
{
    if (!v->occurrences) {
        report_na(r, "transfers", NO_TRANSFERS);
        report_na(r, "transfer_stall", NO_TRANSFERS);
        return;
    }
    report_u64(r, "transfers", v->occurrences, NULL);
    report_metric(r, "transfer_stall", ns(v->stall_us), "it is too large to be written", NULL,
                  NULL);
}

static enum xp_status write_rows(struct slack *s, struct facts *hosts, size_t n, struct report *r,
                                 struct xp_error *err)
{
    struct view v = {.s = s};
    const struct slack_row *most = NULL;
    size_t without = 0;
    for (size_t i = 0; i < n; i++) {
        bool any;
        XP_TRY(slack_facts_add(s, &hosts[i], &any, err));
        without += !any;
    }
    slack_finish(s);
    for (size_t i = 0; i < s->rows.n; i++) {
        const struct slack_row *w = &VEC(s->rows, struct slack_row)[i];
        v.stall_us += w->stall_us * w->occurrences;
        v.occurrences += w->occurrences;
        if (!most || w->stall_us * w->occurrences > most->stall_us * most->occurrences)
            most = w;
    }
    metrics(r, &v);
    if (most && v.stall_us) {
        struct xp_span name = xp_strpool_get(&s->strings, most->rendezvous);
        report_verdict(r, "%.*s stalls longest: %.3f ms in all, of %.3f ms.",
                       (int)(name.n < 100 ? name.n : 100), (const char *)name.p,
                       (double)(most->stall_us * most->occurrences) / 1e3,
                       (double)v.stall_us / 1e3);
    }
    if (without && without < n)
        report_note(r, REPORT_WARNING, "hosts_without_transfers",
                    "%zu of %zu hosts have no events of transfers.", without, n);
    report_table(r, &(struct report_rows){.id = "transfers",
                                          .title = "Transfers between slices",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = s->rows.n,
                                          .row = row,
                                          .ctx = &v,
                                          .sort = "total_stall",
                                          .descending = true});
    return XP_OK;
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct facts *hosts;
    struct slack s;
    size_t n;
    (void)args;
    XP_TRY(facts_open(merged, r->a, &hosts, &n, err));
    if (!slack_init(&s, r->a))
        return xp_fail(err, XP_BUSY, 0, "no memory left for the transfers between slices");
    enum xp_status st = write_rows(&s, hosts, n, r, err);
    slack_fini(&s);
    return st;
}

const struct tool_report report_megascale_stats = {
    .question = "Is the network between slices the bottleneck, and which transfer?",
    .map = slack_facts_map_any,
    .merge = facts_merge,
    .write = write_report,
};
