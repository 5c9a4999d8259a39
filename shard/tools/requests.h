/* shard/tools/requests.h - how long the requests took that a server under profile answered.
 *
 * requests_pack turns a host's requests (inference.h) into bytes; those of several hosts are put
 * one behind the other, in any order; requests_open reads them. Where some request names its
 * model, those that name none do not count.
 */
#ifndef SHARD_REQUESTS_H
#define SHARD_REQUESTS_H

#include "shard/tools/tool.h"

struct request {
    uint64_t total_ps, device_ps, transfer_ps;
};

struct requests {
    struct request *v; /* by total_ps */
    uint32_t n;
};

enum xp_status requests_pack(struct part *p, struct xp_arena *a, struct xp_buf *out,
                             struct xp_error *err);
enum xp_status requests_open(struct xp_span bytes, struct xp_arena *a, struct requests *out,
                             struct xp_error *err);
/* All of them, as our own reports count. */
enum xp_status requests_open_all(struct xp_span bytes, struct xp_arena *a, struct requests *out,
                                 struct xp_error *err);

struct request_latency {
    double total_ms, host_ms, device_ms, transfer_ms; /* host: what is left */
};
/* n > 0. */
void requests_mean(const struct requests *r, struct request_latency *out);
void requests_percentile(const struct requests *r, double percent, struct request_latency *out);

#endif
