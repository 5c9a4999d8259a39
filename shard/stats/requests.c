#include "shard/stats/requests.h"

void requests_mean(const struct requests *r, struct request_latency *out)
{
    double total = 0, device = 0, transfer = 0, n = r->n;
    for (uint32_t i = 0; i < r->n; i++) {
        total += (double)r->v[i].total_ps;
        device += (double)r->v[i].device_ps;
        transfer += (double)r->v[i].transfer_ps;
    }
    *out = (struct request_latency){total / n / 1e9, (total - device - transfer) / n / 1e9,
                                    device / n / 1e9, transfer / n / 1e9};
}

void requests_percentile(const struct requests *r, double percent, struct request_latency *out)
{
    size_t i = (size_t)(percent / 100.0 * r->n);
    const struct request *q = &r->v[i < r->n ? i : r->n - 1];
    double total = (double)q->total_ps, device = (double)q->device_ps;
    double transfer = (double)q->transfer_ps;
    *out = (struct request_latency){total / 1e9, (total - device - transfer) / 1e9, device / 1e9,
                                    transfer / 1e9};
}
