#include <stdio.h>

#include "shard/tools/report_megascale.h"

#define NO_RATES                                                                                   \
    "the profile has neither network counters nor actions, messages or ops of transfers with "     \
    "bytes and times, from which rates could be computed: capture with host_tracer_level=2"

struct view {
    const struct mega_rate *r;
    double second; /* of a bin: its width in s */
    bool has[MEGA_CURVES];
};

static const char *source_of(uint32_t sources)
{
    if (sources & 1u << MEGA_BY_OPS)
        return "computed: bytes of transfers over the time from send to the end of recv-done";
    if (sources & 1u << MEGA_BY_MESSAGES)
        return "computed: bytes of messages received over the time that they took";
    return "computed: bytes of network actions over the time that they took";
}

static void rate_point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct view *v = ctx;
    *x = report_of_i64((v->r->first + (int64_t)i) * (INT64_C(1) << v->r->shift));
    for (int k = 0; k < MEGA_CURVES; k++)
        y[k] = v->has[k] ? report_of_double(v->r->bins[i].bytes[k] / v->second) : report_none();
}

static void outstanding_point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct view *v = ctx;
    rate_point(ctx, i, x, y);
    for (int k = 0; k < MEGA_CURVES; k++)
        if (v->has[k])
            y[k] = report_of_double(v->r->bins[i].byte_ps[k] / (v->second * 1e12));
}

static void inflight_point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct view *v = ctx;
    struct report_cell unused[MEGA_CURVES];
    rate_point(ctx, i, x, unused);
    *y = report_of_double(v->r->bins[i].inflight_ps / (v->second * 1e12));
}

static void curve(struct report *r, struct view *v, const char *id, const char *title,
                  const char *label, const char *unit,
                  void (*point)(void *, uint64_t, struct report_cell *, struct report_cell *),
                  bool both)
{
    static const char *const names[] = {"sent (TX)", "received (RX)"}, *const one[] = {""};
    report_series(r, &(struct report_points){.id = id,
                                             .title = title,
                                             .x_label = "time",
                                             .x_unit = "ps",
                                             .y_label = label,
                                             .y_unit = unit,
                                             .kind = "line",
                                             .names = both ? names : one,
                                             .nnames = both ? MEGA_CURVES : 1,
                                             .n = v->r->n,
                                             .point = point,
                                             .ctx = v});
}

static void peak(struct report *r, const struct view *v, const char *id, int k, uint32_t sources)
{
    double most = 0;
    if (!v->has[k]) {
        report_na(r, id, NO_RATES);
        return;
    }
    for (uint32_t i = 0; i < v->r->n; i++)
        most = v->r->bins[i].bytes[k] > most ? v->r->bins[i].bytes[k] : most;
    report_double(r, id, most / v->second, source_of(sources));
}

static void remark(struct report *r, const struct view *v, const struct mega *m)
{
    const char *tx = source_of(m->sources[MEGA_TX]), *rx = source_of(m->sources[MEGA_RX]);
    double us = v->second * 1e6;
    if (v->has[MEGA_TX] && v->has[MEGA_RX] && tx != rx)
        report_note(
            r, REPORT_INFO, "network_computed",
            "No network counters that are known are in the profile. What is sent is %s; what is "
            "received is %s. Each point is the mean of %.3g us.",
            tx, rx, us);
    else if (v->has[MEGA_TX] || v->has[MEGA_RX])
        report_note(
            r, REPORT_INFO, "network_computed",
            "No network counters that are known are in the profile: the curves are %s.%s%s Each "
            "point is the mean of %.3g us.",
            v->has[MEGA_TX] ? tx : rx,
            v->has[MEGA_TX] ? "" : " What is sent is not told; peers tell what they get.",
            v->has[MEGA_RX] ? "" : " What is received is not told.", us);
}

void report_megascale_rates(struct report *r, const struct mega *m)
{
    struct view v = {.r = &m->rate, .second = (double)(INT64_C(1) << m->rate.shift) / 1e12};
    for (int k = 0; k < MEGA_CURVES; k++)
        v.has[k] = m->rate.n && m->sources[k];
    peak(r, &v, "network_tx_peak", MEGA_TX, m->sources[MEGA_TX]);
    peak(r, &v, "network_rx_peak", MEGA_RX, m->sources[MEGA_RX]);
    if (!m->rate.n)
        return;
    if (v.has[MEGA_TX] || v.has[MEGA_RX]) {
        curve(r, &v, "network_rate", "Network between slices, all hosts", "Rate", "bytes/s",
              rate_point, true);
        curve(r, &v, "network_outstanding", "Bytes outstanding, all hosts", "Under way", "bytes",
              outstanding_point, true);
    }
    curve(r, &v, "inflight", "Collectives between slices under way, all devices", "Under way",
          "count", inflight_point, false);
    remark(r, &v, m);
}
