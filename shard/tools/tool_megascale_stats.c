/* Transfers between slices and what they made wait. */
#include <limits.h>
#include <stdio.h>
#include <strings.h>

#include "shard/tools/perfetto.h"
#include "shard/tools/reports_more.h"
#include "shard/tools/slack_facts.h"
#include "shard/tools/table.h"

#define GBPS_PER_BYTE_PER_US (8E-9 / 1E-6)

static void put_columns(struct tables *t)
{
    static const struct {
        const char *id;
        enum table_type type;
        const char *label;
    } cols[] = {
        {"rendezvous_name", TABLE_STRING, "Rendezvous Name"},
        {"recv_op_name", TABLE_STRING, "Recv Op Name"},
        {"send_op_name", TABLE_STRING, "Send Op Name"},
        {"transfer_type", TABLE_STRING, "Transfer Type"},
        {"slack_time", TABLE_NUMBER, "Slack Time (ms)"},
        {"host_stall", TABLE_STRING, "Host Stall (ms)"},
        {"observed_duration", TABLE_NUMBER, "Observed Duration (ms)"},
        {"send_stall", TABLE_NUMBER, "Send Stall (ms)"},
        {"send_done_stall", TABLE_NUMBER, "SendDone Stall (ms)"},
        {"recv_stall", TABLE_NUMBER, "Recv Stall (ms)"},
        {"recv_done_stall", TABLE_NUMBER, "RecvDone Stall (ms)"},
        {"stall_duration", TABLE_NUMBER, "Stall Duration (ms)"},
        {"total_stall", TABLE_NUMBER, "Aggregated Total Stall (ms)"},
        {"occurrences", TABLE_NUMBER, "Occurrences"},
        {"net_tx_bytes", TABLE_NUMBER, "Data Transmitted Size"},
        {"required_bandwidth", TABLE_NUMBER, "Required Bandwidth (Gbps)"},
    };
    for (size_t i = 0; i < sizeof cols / sizeof cols[0]; i++)
        table_col(t, cols[i].id, cols[i].type, cols[i].label);
}

/* 512B, 4.0K, 31.25M. */
static void put_bytes(struct tables *t, uint64_t bytes)
{
    static const char units[] = "KMGTPE";
    uint64_t n = bytes;
    size_t unit = 0;
    char text[40];
    while (n >= 1024 * 1024 && units[unit + 1]) {
        n /= 1024;
        unit++;
    }
    if (n < 1024)
        snprintf(text, sizeof text, "%lluB", (unsigned long long)n);
    else
        snprintf(text, sizeof text, "%.*f%c", unit ? 2 : 1, (double)n / 1024.0, units[unit]);
    table_num_text(t, (double)bytes, text);
}

static void put_ms(struct tables *t, uint64_t us)
{
    table_num(t, (double)us / 1e3);
}

static void put_row(struct tables *t, const struct slack *s, const struct slack_row *r)
{
    table_row(t);
    table_str(t, xp_strpool_get(&s->strings, r->rendezvous));
    table_str(t, xp_strpool_get(&s->strings, r->recv_op));
    table_str(t, xp_strpool_get(&s->strings, r->send_op));
    table_str(t, xp_strpool_get(&s->strings, r->transfer_type));
    put_ms(t, r->slack_us);
    table_cstr(t, "-"); /* XProf gives this page no host events */
    put_ms(t, r->observed_us);
    put_ms(t, r->send_us);
    put_ms(t, r->send_done_us);
    put_ms(t, r->recv_us);
    put_ms(t, r->recv_done_us);
    put_ms(t, r->stall_us);
    put_ms(t, r->stall_us * r->occurrences);
    table_num(t, (double)r->occurrences);
    put_bytes(t, r->bytes);
    table_num(t, r->slack_us ? (double)r->bytes / (double)r->slack_us * GBPS_PER_BYTE_PER_US
                             : INT_MAX);
}

static bool wants_perfetto(const struct tool_args *args)
{
    struct xp_span v = {0};
    return !args->csv && tool_arg(args, "perfetto", &v) && v.n == 4 &&
           strncasecmp((const char *)v.p, "true", 4) == 0;
}

/* The trace is one text, of the first host; there is none of several. */
static enum xp_status map_perfetto(const struct tool_host *host, struct xp_arena *a,
                                   struct xp_span *partial, struct xp_error *err)
{
    struct facts_out f;
    struct out trace;
    if (!profile_readable(host->part))
        return facts_unreadable(host, a, partial, err);
    XP_TRY(facts_begin(&f, a, err));
    out_init(&trace, NULL);
    enum xp_status st = host->index ? XP_OK : perfetto_write(host->part, a, &trace, err);
    facts_text(&f, xp_buf_all(&trace.text));
    out_fini(&trace);
    if (st == XP_OK)
        return facts_end(&f, host, a, partial, err);
    facts_drop(&f);
    return st;
}

static enum xp_status map(const struct tool_host *host, const struct tool_args *args,
                          struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    if (wants_perfetto(args))
        return map_perfetto(host, a, partial, err);
    return slack_facts_map(host, args, a, partial, err);
}

static enum xp_status render_perfetto(struct facts *hosts, size_t n, const struct tool_args *args,
                                      struct out *out, struct xp_error *err)
{
    struct xp_span host = {0};
    tool_arg(args, "host", &host);
    if (n != 1 || xp_span_eq(host, XP_SPAN_LIT("ALL_HOSTS")))
        return xp_fail(err, XP_NOT_FOUND, 0, "a trace for Perfetto is of one host");
    XP_TRY(facts_need_readable(hosts, err));
    xp_buf_span(&out->text, facts_get_text(hosts));
    out->content_type = "application/octet-stream";
    return facts_ok(hosts, err);
}

/* The hosts in order; at the first without transfers XProf takes it that there are none at all. */
static enum xp_status add_hosts(struct slack *s, struct facts *hosts, size_t n,
                                struct xp_error *err)
{
    for (size_t i = 0; i < n; i++) {
        bool any;
        XP_TRY(facts_need_readable(&hosts[i], err));
        XP_TRY(slack_facts_add(s, &hosts[i], &any, err));
        if (!any) {
            s->rows.n = 0;
            return XP_OK;
        }
    }
    slack_finish(s);
    return XP_OK;
}

static enum xp_status render(struct xp_span merged, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct facts *hosts;
    struct slack s;
    struct tables t;
    size_t n;
    XP_TRY(facts_open(merged, scratch, &hosts, &n, err));
    if (wants_perfetto(args))
        return render_perfetto(hosts, n, args, out, err);
    if (!slack_init(&s, scratch))
        return xp_fail(err, XP_BUSY, 0, "no memory left for the transfers between slices");
    enum xp_status st = add_hosts(&s, hosts, n, err);
    if (st == XP_OK) {
        tables_begin(&t, out, args->csv, true);
        table_begin(&t);
        put_columns(&t);
        for (size_t i = 0; i < s.rows.n; i++)
            put_row(&t, &s, &VEC(s.rows, struct slack_row)[i]);
        table_end(&t);
        tables_end(&t);
    }
    slack_fini(&s);
    return st;
}

const struct tool tool_megascale_stats = {.id = "megascale_stats",
                                          .tolerant = true,
                                          .map = map,
                                          .merge = facts_merge,
                                          .render = render,
                                          .report = &report_megascale_stats};
