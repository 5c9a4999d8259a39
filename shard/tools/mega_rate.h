/* shard/tools/mega_rate.h - bytes under way between slices, as curves.
 *
 * A transfer of some bytes is taken to go at one rate from its begin to its end. A curve is sums by
 * bins of 2^k ps that begin at multiples of that, so that curves of hosts whose captures differ
 * join exactly: those of narrower bins are widened. At most MEGA_BINS bins.
 */
#ifndef SHARD_MEGA_RATE_H
#define SHARD_MEGA_RATE_H

#include "shard/derive/vec.h"
#include "shard/tools/facts.h"

#define MEGA_BINS 1024

enum mega_curve { MEGA_TX, MEGA_RX, MEGA_CURVES };

struct mega_flow {
    int64_t begin_ps, end_ps;
    uint64_t bytes;
    uint8_t curve; /* enum mega_curve */
};

struct mega_bin {
    double bytes[MEGA_CURVES];   /* that went */
    double byte_ps[MEGA_CURVES]; /* under way x time */
    double inflight_ps;          /* collectives under way x time */
};

struct mega_rate {
    unsigned shift; /* bins of 2^shift ps */
    int64_t first;  /* number of the first bin: it begins at first << shift */
    uint32_t n;     /* 0: nothing went */
    struct mega_bin *bins;
};

/* flows: struct mega_flow; spans: of collectives, too, their bytes and curve do not count. */
bool mega_rate_of(struct mega_rate *r, const struct vec *flows, const struct vec *spans,
                  struct xp_arena *a);
/* *to becomes both; false: memory is out. */
bool mega_rate_join(struct mega_rate *to, const struct mega_rate *from, struct xp_arena *a);

void mega_rate_put(const struct mega_rate *r, struct facts_out *f);
bool mega_rate_get(struct mega_rate *r, struct facts *f, struct xp_arena *a);

/* "s100001->200001d|$c0=1000 ...": the bytes that go to another device; a plain number is bytes.
 * False: it is neither. */
bool mega_rate_bytes(struct xp_span buffer_sizes, uint64_t *bytes);

#endif
