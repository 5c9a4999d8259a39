/* shard/stats/requests.h - the requests that a server under profile answered, and how long they
 * took.
 */
#ifndef SHARD_REQUESTS_H
#define SHARD_REQUESTS_H

#include "shard/derive/derive.h"

struct request {
    uint64_t total_ps, device_ps, transfer_ps;
};

struct requests {
    struct request *v; /* by total_ps */
    uint32_t n;
};

struct request_latency {
    double total_ms, host_ms, device_ms, transfer_ms; /* host: what is left */
};
/* n > 0. */
void requests_mean(const struct requests *r, struct request_latency *out);
void requests_percentile(const struct requests *r, double percent, struct request_latency *out);

#endif
