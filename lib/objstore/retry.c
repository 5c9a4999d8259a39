#include "lib/objstore/retry.h"

#include <stdlib.h>

void retry_budget_init(struct retry_budget *b)
{
    atomic_init(&b->tenths, RETRY_TOKENS * 10);
}

void retry_succeeded(struct retry_budget *b)
{
    int now = atomic_load(&b->tenths);
    while (now < RETRY_TOKENS * 10 && !atomic_compare_exchange_weak(&b->tenths, &now, now + 1)) {
    }
}

static bool take_token(struct retry_budget *b)
{
    int now = atomic_load(&b->tenths);
    while (now >= 10)
        if (atomic_compare_exchange_weak(&b->tenths, &now, now - 10))
            return true;
    return false;
}

bool retry_may_pass(enum xp_status status, int code)
{
    if (status != XP_OK)
        return status == XP_IO || status == XP_TIMEOUT;
    return code == 408 || code == 429 || (code >= 500 && code != 501);
}

int64_t retry_delay_ms(struct retry *r, struct retry_budget *b, int64_t asked_ms, uint64_t random,
                       uint64_t now_ns)
{
    uint64_t most = RETRY_CAP_MS;
    unsigned n = r->attempts++;
    if (take_token(b) && n < 6)
        most = (uint64_t)RETRY_FIRST_MS << n;
    if (most > RETRY_CAP_MS)
        most = RETRY_CAP_MS;
    uint64_t ms = random % (most + 1);
    if (asked_ms > RETRY_AFTER_MAX_MS)
        asked_ms = RETRY_AFTER_MAX_MS;
    if (asked_ms > 0 && ms < (uint64_t)asked_ms)
        ms = (uint64_t)asked_ms;
    return now_ns + ms * 1000000 >= r->deadline_ns ? -1 : (int64_t)ms;
}

uint64_t retry_later_ms(const struct retry *r, int64_t asked_ms)
{
    uint64_t ms = r->attempts < 6 ? (uint64_t)RETRY_FIRST_MS << r->attempts : RETRY_CAP_MS;
    if (ms > RETRY_CAP_MS)
        ms = RETRY_CAP_MS;
    return asked_ms > 0 && (uint64_t)asked_ms > ms ? (uint64_t)asked_ms : ms;
}

int64_t retry_after_ms(const char *value)
{
    char *end;
    if (!value || *value < '0' || *value > '9')
        return 0;
    unsigned long s = strtoul(value, &end, 10);
    return s > 3600 ? 3600000 : (int64_t)s * 1000;
}
