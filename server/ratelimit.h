/* server/ratelimit.h - how often one asker may ask: a token bucket each, in a table of fixed size.
 *
 * An asker is whatever names it: an identity, an address. A bucket holds RATELIMIT_BURST_S seconds'
 * worth; one that nobody draws from is full again after that time, so that forgetting it, for an
 * asker that is new, gives nothing away. Where too many draw at once the fullest are forgotten.
 *
 * Memory     RATELIMIT_BUCKETS buckets of 24 bytes, whatever comes.
 * Threads    Any; a call holds a lock for some nanoseconds.
 */
#ifndef SERVER_RATELIMIT_H
#define SERVER_RATELIMIT_H

#include "lib/base/span.h"

#define RATELIMIT_BUCKETS 16384
#define RATELIMIT_BURST_S 5

struct ratelimit;

/* per_second of each asker; 0: no limit. */
struct ratelimit *ratelimit_new(double per_second);
void ratelimit_free(struct ratelimit *r); /* NULL is fine */

/* 0: go on. Else the seconds after which it is worth to ask again, at least 1. NULL limits
 * nothing. */
int ratelimit_take(struct ratelimit *r, const char *asker, uint64_t now_ns);

#endif
