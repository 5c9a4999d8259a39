#include <stdio.h>
#include <stdlib.h>

#include "shard/tools/report_megascale.h"
#include "shard/tools/reports_more.h"
#include "shard/tools/slack_facts.h"
#include "shard/tools/slack_peers.h"

/* Is the network between slices the bottleneck, and which transfer? */

#define NO_TRANSFERS                                                                               \
    "the profile has no transfers between slices: it is of one slice, or was captured without "    \
    "the host's events (host_tracer_level=2)"

#define NO_MESSAGES                                                                                \
    "the profile has no messages that say who sent them: they are events of the host's threads "   \
    "(MegaScale: Communication Transport Receive); capture with host_tracer_level=2"

/* Of the transfers of a rendezvous, one by one. */
struct spread {
    uint64_t n, p50_ps, p99_ps;
    struct slack_sample slowest;
};

struct view {
    const struct slack *s;
    const struct slack_peers *p;
    struct xp_arena *a;
    const struct facts *hosts;
    size_t nhosts;
    uint64_t stall_us, occurrences;
    struct spread *spreads; /* by row */
    struct idmap peer_of;   /* collective -> place of its slowest peer */
};

static struct report_cell host_of(const struct view *v, uint32_t index)
{
    for (size_t i = 0; i < v->nhosts; i++)
        if (v->hosts[i].index == index)
            return report_of_text(v->hosts[i].host);
    return report_none();
}

static const struct report_column columns[] = {
    {"rendezvous", "Transfer", "", REPORT_COL_TEXT, false, "name of the rendezvous"},
    {"total_stall", "Stall in all", "ns", REPORT_COL_NUMBER, true, "stall of one x occurrences"},
    {"stall", "Stall", "ns", REPORT_COL_NUMBER, false, "of one: what its four ops took, mean"},
    {"slack", "Slack", "ns", REPORT_COL_NUMBER, false,
     "from the begin of send to the begin of recv-done, less what ops of transfers took, mean"},
    {"observed", "Observed", "ns", REPORT_COL_NUMBER, false,
     "from the begin of send to the end of recv-done, mean"},
    {"p50", "p50", "ps", REPORT_COL_NUMBER, false,
     "half of the transfers were observed for no longer; on the first device of each host"},
    {"p99", "p99", "ps", REPORT_COL_NUMBER, false, "99 % were observed for no longer"},
    {"tail", "p99 / p50", "", REPORT_COL_NUMBER, false,
     "how much longer than usual the slowest take: 1 is steady"},
    {"send_stall", "Send", "ns", REPORT_COL_NUMBER, false, "mean time of the op"},
    {"send_done_stall", "Send done", "ns", REPORT_COL_NUMBER, false, "mean time of the op"},
    {"recv_stall", "Recv", "ns", REPORT_COL_NUMBER, false, "mean time of the op"},
    {"recv_done_stall", "Recv done", "ns", REPORT_COL_NUMBER, false, "mean time of the op"},
    {"occurrences", "Occurrences", "count", REPORT_COL_NUMBER, true, "over all hosts"},
    {"bytes", "Sent", "bytes", REPORT_COL_BYTES, false, "over the network, each time"},
    {"required_rate", "Rate needed", "bytes/s", REPORT_COL_NUMBER, false,
     "bytes / slack: with this, nobody would wait"},
    {"slices", "Slices", "", REPORT_COL_TEXT, false, "that take part, or from which to which"},
    {"slowest_from", "Slowest peer", "", REPORT_COL_TEXT, false,
     "whose messages of this collective take longest, mean; n/a: no message names it"},
    {"duration", "Slowest", "ps", REPORT_COL_NUMBER, false, "transfer: the longest observed"},
    {"first_host", "On", "", REPORT_COL_TEXT, false, "host of the slowest transfer"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, "of the slowest transfer"},
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

/* "slice 1, device 0" */
static struct report_cell place(struct xp_arena *a, const int64_t *end)
{
    uint8_t *p = xp_arena_alloc(a, 64);
    int n =
        p ? snprintf((char *)p, 64, "slice %lld, device %lld", (long long)end[0], (long long)end[1])
          : 0;
    return n > 0 && n < 64 ? report_of_text(xp_span_of(p, (size_t)n)) : report_none();
}

/* Messages name a collective by its rendezvous, or by what stands there before the first "_". */
static struct report_cell slowest_peer(const struct view *v, uint32_t rendezvous)
{
    struct xp_span name = xp_strpool_get(&v->s->strings, rendezvous);
    const uint8_t *end = name.n ? memchr(name.p, '_', name.n) : NULL;
    uint32_t id = end ? xp_strpool_find(&v->s->strings, xp_span_of(name.p, (size_t)(end - name.p)))
                      : rendezvous;
    uint32_t at;
    if (id == XP_STRPOOL_FULL || !idmap_get(&v->peer_of, id, &at))
        return report_none();
    return place(v->a, VEC(v->p->peers, struct slack_peer)[at].from);
}

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct slack_row *r = &VEC(v->s->rows, struct slack_row)[i];
    const struct spread *m = &v->spreads[i];
    uint64_t all;
    *c++ = text(v, r->rendezvous);
    *c++ = __builtin_mul_overflow(r->stall_us, r->occurrences, &all) ? report_none() : ns(all);
    *c++ = ns(r->stall_us);
    *c++ = ns(r->slack_us);
    *c++ = ns(r->observed_us);
    *c++ = m->n ? report_of_u64(m->p50_ps) : report_none();
    *c++ = m->n ? report_of_u64(m->p99_ps) : report_none();
    *c++ = m->n ? report_ratio((double)m->p99_ps, (double)m->p50_ps) : report_none();
    *c++ = ns(r->send_us);
    *c++ = ns(r->send_done_us);
    *c++ = ns(r->own_recv_us);
    *c++ = ns(r->recv_done_us);
    *c++ = report_of_u64(r->occurrences);
    *c++ = r->bytes ? report_of_u64(r->bytes) : report_none();
    *c++ = r->bytes ? report_ratio((double)r->bytes * 1e6, (double)r->slack_us) : report_none();
    *c++ = text(v, r->slices);
    *c++ = slowest_peer(v, r->rendezvous);
    *c++ = m->n ? report_of_u64(m->slowest.observed_ps) : report_none();
    *c++ = m->n ? host_of(v, m->slowest.host) : report_none();
    *c++ = m->n ? report_of_i64(m->slowest.begin_ps) : report_none();
    *c++ = text(v, r->transfer_type);
    *c++ = text(v, r->send_op);
    *c = text(v, r->recv_op);
}

/* --- one by one --- */

static int sample_order(const void *a, const void *b)
{
    const struct slack_sample *x = a, *y = b;
    if (x->rendezvous != y->rendezvous)
        return x->rendezvous < y->rendezvous ? -1 : 1;
    if (x->slowest != y->slowest)
        return x->slowest ? 1 : -1;
    return (x->observed_ps > y->observed_ps) - (x->observed_ps < y->observed_ps);
}

static size_t percentile(size_t n, size_t percent)
{
    size_t k = (n * percent + 99) / 100;
    return k ? k - 1 : 0;
}

/* Sorted samples [0, n) of one rendezvous: the slowest of hosts come last. */
static void spread_of(struct spread *to, const struct slack_sample *m, size_t n)
{
    size_t own = n;
    while (own && m[own - 1].slowest)
        own--;
    if (!own)
        return;
    to->n = own;
    to->p50_ps = m[percentile(own, 50)].observed_ps;
    to->p99_ps = m[percentile(own, 99)].observed_ps;
    to->slowest = m[n - 1];
}

static bool find_spreads(struct view *v, struct slack *s)
{
    struct slack_sample *m = s->samples.p;
    v->spreads = xp_arena_zalloc(v->a, (s->rows.n + 1) * sizeof *v->spreads);
    if (!v->spreads)
        return false;
    if (s->samples.n)
        qsort(m, s->samples.n, sizeof *m, sample_order);
    for (size_t i = 0, k; i < s->samples.n; i = k) {
        uint32_t at;
        for (k = i; k < s->samples.n && m[k].rendezvous == m[i].rendezvous; k++)
            ;
        if (idmap_get(&s->by_rendezvous, m[i].rendezvous, &at))
            spread_of(&v->spreads[at], m + i, k - i);
    }
    return true;
}

/* --- who sent to whom --- */

static const struct report_column peer_columns[] = {
    {"collective", "Collective", "", REPORT_COL_TEXT, false, "its label up to the first _"},
    {"from", "From", "", REPORT_COL_TEXT, false, "slice and device in it"},
    {"to", "To", "", REPORT_COL_TEXT, false, "slice and device in it"},
    {"messages", "Messages", "count", REPORT_COL_NUMBER, true, "that were received"},
    {"total", "Total", "ps", REPORT_COL_NUMBER, true, "time of all of them"},
    {"mean", "Mean", "ps", REPORT_COL_NUMBER, false, "from being sent to being received"},
    {"p50", "p50", "ps", REPORT_COL_NUMBER, false, "half took no longer"},
    {"p99", "p99", "ps", REPORT_COL_NUMBER, false, "99 % took no longer"},
    {"tail", "p99 / p50", "", REPORT_COL_NUMBER, false, "1 is steady"},
    {"bytes", "Bytes", "bytes", REPORT_COL_BYTES, true, "of all messages"},
    {"rate", "Rate", "bytes/s", REPORT_COL_NUMBER, false, "bytes / time of all messages"},
    {"duration", "Longest", "ps", REPORT_COL_NUMBER, false, "message"},
    {"host", "Host", "", REPORT_COL_TEXT, false, "that received them"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, "of the longest message"},
};

static struct report_cell ps(uint64_t us)
{
    uint64_t v;
    return __builtin_mul_overflow(us, UINT64_C(1000000), &v) ? report_none() : report_of_u64(v);
}

static void peer_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct slack_peer *p = &VEC(v->p->peers, struct slack_peer)[i];
    c[0] = text(v, p->collective);
    c[1] = place(v->a, p->from);
    c[2] = place(v->a, p->to);
    c[3] = report_of_u64(p->messages);
    c[4] = ps(p->total_us);
    c[5] = p->messages ? ps(p->total_us / p->messages) : report_none();
    c[6] = ps(p->p50_us);
    c[7] = ps(p->p99_us);
    c[8] = report_ratio((double)p->p99_us, (double)p->p50_us);
    c[9] = report_of_u64(p->bytes);
    c[10] = report_ratio((double)p->bytes * 1e6, (double)p->total_us);
    c[11] = ps(p->longest_us);
    c[12] = host_of(v, p->host);
    c[13] = report_of_i64(p->longest_begin_ps);
}

static double mean_us(const struct slack_peer *p)
{
    return p->messages ? (double)p->total_us / (double)p->messages : 0;
}

static bool find_slowest_peers(struct view *v)
{
    const struct slack_peer *p = v->p->peers.p;
    idmap_init(&v->peer_of, v->a);
    for (size_t i = 0; i < v->p->peers.n; i++) {
        uint32_t at;
        if (idmap_get(&v->peer_of, p[i].collective, &at) && mean_us(&p[at]) >= mean_us(&p[i]))
            continue;
        if (!idmap_put(&v->peer_of, p[i].collective, (uint32_t)i))
            return false;
    }
    return true;
}

static void peers(struct report *r, struct view *v)
{
    report_table(r, &(struct report_rows){.id = "peers",
                                          .title = "Messages by who sent them to whom",
                                          .note = v->p->peers.n ? NULL : NO_MESSAGES,
                                          .columns = peer_columns,
                                          .ncolumns = sizeof peer_columns / sizeof *peer_columns,
                                          .n = v->p->peers.n,
                                          .row = peer_row,
                                          .ctx = v,
                                          .sort = "p99",
                                          .descending = true});
    if (v->p->unknown)
        report_note(r, REPORT_INFO, "messages_unknown",
                    "%llu messages do not say who sent them to whom, how large they are, or how "
                    "long they took.",
                    (unsigned long long)v->p->unknown);
    if (v->p->left)
        report_note(r, REPORT_WARNING, "messages_left",
                    "%llu messages beyond the first %llu of a host are not among those by who sent "
                    "them.",
                    (unsigned long long)v->p->left, (unsigned long long)SLACK_MESSAGES);
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

static enum xp_status write_rows(struct slack *s, struct slack_peers *p, struct mega *m,
                                 struct facts *hosts, size_t n, const struct tool_args *args,
                                 struct report *r, struct xp_error *err)
{
    struct view v = {.s = s, .p = p, .a = r->a, .hosts = hosts, .nhosts = n};
    struct xp_span first = {0};
    const struct slack_row *most = NULL;
    size_t without = 0;
    for (size_t i = 0; i < n; i++) {
        bool any;
        XP_TRY(slack_facts_add(s, &hosts[i], &any, err));
        XP_TRY(slack_peers_get(p, s, &hosts[i], err));
        XP_TRY(mega_add(m, &hosts[i], err));
        without += !any;
    }
    slack_finish(s);
    if (!find_spreads(&v, s) || !find_slowest_peers(&v))
        return xp_fail(err, XP_BUSY, 0, "no memory left for the transfers between slices");
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
    report_link(r, "transfers", "rendezvous");
    peers(r, &v);
    report_link(r, "peers", "collective");
    if (most)
        first = xp_strpool_get(&s->strings, most->rendezvous);
    return report_megascale_tracks(r, m, s, hosts, n, first, args, err);
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct facts *hosts;
    struct slack s;
    struct slack_peers p = {0};
    struct mega m;
    size_t n;
    XP_TRY(facts_open(merged, r->a, &hosts, &n, err));
    if (!slack_init(&s, r->a))
        return xp_fail(err, XP_BUSY, 0, "no memory left for the transfers between slices");
    enum xp_status st = mega_init(&m, r->a)
                            ? write_rows(&s, &p, &m, hosts, n, args, r, err)
                            : xp_fail(err, XP_BUSY, 0, "no memory left for transfers");
    mega_fini(&m);
    slack_peers_free(&p);
    slack_fini(&s);
    return st;
}

const struct tool_report report_megascale_stats = {
    .question = "Is the network between slices the bottleneck, and which transfer?",
    .map = slack_facts_map_any,
    .merge = facts_merge,
    .write = write_report,
};
