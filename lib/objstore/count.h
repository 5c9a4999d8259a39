/* lib/objstore/count.h - what was asked of buckets: counted over all stores of the process.
 *
 * Every attempt counts, so that calls less retries are what was wanted. A call's outcome is the
 * code of its answer, of a fixed set, or one of three words: "none" (no answer came: no connection,
 * a timeout), "cut" (the answer broke off) and "left" (we ended it, as nobody waits any more, or
 * what came was not what was asked for).
 *
 * Threads    Any, without a lock.
 */
#ifndef XP_OBJSTORE_COUNT_H
#define XP_OBJSTORE_COUNT_H

#include <stdatomic.h>
#include <stdint.h>

#include "lib/base/status.h"

enum xp_store_call {
    XP_CALL_LIST,
    XP_CALL_STAT,
    XP_CALL_READ,
    XP_CALL_WRITE,
    XP_CALL_TOKEN, /* of whoever hands out credentials for them */
    XP_CALLS
};

#define XP_OUTCOMES 24
#define XP_STORE_BOUNDS 12

extern const char *const xp_store_calls[XP_CALLS];         /* "list", ... */
extern const char *const xp_store_outcomes[XP_OUTCOMES];   /* "200", ..., "none" */
extern const uint32_t xp_store_bounds_us[XP_STORE_BOUNDS]; /* upper ends; the last is all */

struct xp_store_counts {
    struct xp_store_call_counts {
        uint64_t outcomes[XP_OUTCOMES];
        uint64_t retries;
        uint64_t buckets[XP_STORE_BOUNDS + 1], sum_us; /* until the answer's last byte */
    } calls[XP_CALLS];
    uint64_t bytes_read, bytes_written; /* of bodies: lists, too, and what was sent again */
    uint64_t connections;               /* open now */
};

void xp_store_counts(struct xp_store_counts *out);

/* --- for the stores --- */

/* net and code as of struct net_answer. */
void store_count_call(enum xp_store_call call, enum xp_status net, int code, uint64_t took_ns);
void store_count_retry(enum xp_store_call call);
void store_count_bytes(uint64_t read, uint64_t written);
/* What net_request.connections of their calls is. */
extern _Atomic uint64_t store_connections;

#endif
