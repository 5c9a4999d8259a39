#include "lib/objstore/count.h"

#include <stdlib.h>

const char *const xp_store_calls[XP_CALLS] = {"list", "stat", "read", "write", "token"};

/* Words behind codes; of the codes that are not here "other" stands for all. */
enum { OTHER = XP_OUTCOMES - 4, NONE, CUT, LEFT };

const char *const xp_store_outcomes[XP_OUTCOMES] = {
    "200", "201", "204", "206", "304", "308", "400", "401", "403",   "404",  "408", "409",
    "410", "412", "416", "429", "500", "502", "503", "504", "other", "none", "cut", "left"};

const uint32_t xp_store_bounds_us[XP_STORE_BOUNDS] = {5000,    10000,   25000,    50000,
                                                      100000,  250000,  500000,   1000000,
                                                      2500000, 5000000, 10000000, 30000000};

_Atomic uint64_t store_connections;

static struct {
    _Atomic uint64_t outcomes[XP_OUTCOMES], buckets[XP_STORE_BOUNDS + 1], sum_us, retries;
} counts[XP_CALLS];
static _Atomic uint64_t bytes_read, bytes_written;

static void add(_Atomic uint64_t *to, uint64_t n)
{
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static uint64_t value(const _Atomic uint64_t *of)
{
    return atomic_load_explicit(of, memory_order_relaxed);
}

static int outcome_of(enum xp_status net, int code)
{
    if (net == XP_CANCELLED)
        return LEFT;
    if (net != XP_OK)
        return code > 0 ? CUT : NONE;
    for (int i = 0; i < OTHER; i++)
        if (strtol(xp_store_outcomes[i], NULL, 10) == code)
            return i;
    return OTHER;
}

void store_count_call(enum xp_store_call call, enum xp_status net, int code, uint64_t took_ns)
{
    uint64_t us = took_ns / 1000;
    size_t b = 0;
    while (b < XP_STORE_BOUNDS && us > xp_store_bounds_us[b])
        b++;
    add(&counts[call].outcomes[outcome_of(net, code)], 1);
    add(&counts[call].buckets[b], 1);
    add(&counts[call].sum_us, us);
}

void store_count_retry(enum xp_store_call call)
{
    add(&counts[call].retries, 1);
}

void store_count_bytes(uint64_t read, uint64_t written)
{
    add(&bytes_read, read);
    add(&bytes_written, written);
}

void xp_store_counts(struct xp_store_counts *out)
{
    for (int c = 0; c < XP_CALLS; c++) {
        struct xp_store_call_counts *to = &out->calls[c];
        for (int i = 0; i < XP_OUTCOMES; i++)
            to->outcomes[i] = value(&counts[c].outcomes[i]);
        for (int i = 0; i <= XP_STORE_BOUNDS; i++)
            to->buckets[i] = value(&counts[c].buckets[i]);
        to->sum_us = value(&counts[c].sum_us);
        to->retries = value(&counts[c].retries);
    }
    out->bytes_read = value(&bytes_read);
    out->bytes_written = value(&bytes_written);
    out->connections = value(&store_connections);
}
