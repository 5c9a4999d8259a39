/* lib/objstore/retry.h - whether and when a failed call is made again.
 *
 * What may pass: no connection, a reset, a short body, a timeout; 408, 429 and 5xx. The delay is
 * drawn from 0 to 100 ms, 200 ms, ... 5 s ("full jitter"), or what the server asked for up to 10 s.
 * A call gets no more attempts once its deadline would pass. A store whose calls mostly fail makes
 * fewer: each attempt after the first takes a token, each success gives a tenth of one back.
 */
#ifndef XP_OBJSTORE_RETRY_H
#define XP_OBJSTORE_RETRY_H

#include <stdatomic.h>

#include "lib/base/status.h"

#define RETRY_FIRST_MS 100
#define RETRY_CAP_MS 5000
#define RETRY_AFTER_MAX_MS 10000
#define RETRY_TOKENS 100 /* attempts that a store may have failed before it goes slowly */

struct retry {
    uint64_t deadline_ns;
    unsigned attempts; /* that failed */
};

struct retry_budget {
    _Atomic int tenths;
};

void retry_budget_init(struct retry_budget *b);
void retry_succeeded(struct retry_budget *b);

/* status and code as of struct net_answer. */
bool retry_may_pass(enum xp_status status, int code);

/* Milliseconds to wait before the next attempt, -1 when there is none. `random` is any number. */
int64_t retry_delay_ms(struct retry *r, struct retry_budget *b, int64_t asked_ms, uint64_t random,
                       uint64_t now_ns);

/* When somebody who gave up may come again: the longest that the next delay could be. */
uint64_t retry_later_ms(const struct retry *r, int64_t asked_ms);

/* The value of Retry-After, which may be NULL, in milliseconds; only seconds are understood. */
int64_t retry_after_ms(const char *value);

#endif
