#include <stdlib.h>

#include "shard/stats/steps.h"

/* Hosts number their steps as they like. The host that saw the shortest time is the chief; of every
 * other host's sequence the offset to the chief's that overlaps it for the longest time counts.
 * What all have of the chief's sequence, so shifted, are the common steps. */

struct host {
    const struct step_time_span *v;
    uint32_t n;
    uint64_t total_ps;
    uint32_t begin, chief_begin, steps; /* how it lies beside the chief's */
};

static uint64_t length(const struct step_time_span *s)
{
    return s->end_ps > s->begin_ps ? s->end_ps - s->begin_ps : 0;
}

static uint64_t total(const struct host *h)
{
    uint64_t begin = UINT64_MAX, end = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        if (!length(&h->v[i]))
            continue;
        begin = h->v[i].begin_ps < begin ? h->v[i].begin_ps : begin;
        end = h->v[i].end_ps > end ? h->v[i].end_ps : end;
    }
    return begin < end ? end - begin : 0;
}

/* overlaps[k + h->n - 1]: of h shifted by k. Each pair that overlaps is met once. */
static void add_overlaps(const struct host *h, const struct host *chief, uint64_t *overlaps)
{
    for (uint32_t i = 0, c = 0; i < h->n && c < chief->n;) {
        const struct step_time_span *a = &h->v[i], *b = &chief->v[c];
        if (!length(a)) {
            i++;
            continue;
        }
        if (!length(b)) {
            c++;
            continue;
        }
        uint64_t begin = a->begin_ps > b->begin_ps ? a->begin_ps : b->begin_ps;
        uint64_t end = a->end_ps < b->end_ps ? a->end_ps : b->end_ps;
        overlaps[(size_t)c + h->n - 1 - i] += begin < end ? end - begin : 0;
        uint64_t a_end = a->end_ps, b_end = b->end_ps;
        i += a_end <= b_end;
        c += b_end <= a_end;
    }
}

/* The best shift; of equals the smallest from 0 on, then -1, -2, ... */
static int64_t best_shift(const uint64_t *overlaps, uint32_t n, uint32_t chief_n)
{
    int64_t best = 0;
    uint64_t most = overlaps[n - 1];
    for (int64_t k = 1; k < (int64_t)chief_n; k++)
        if (overlaps[k + n - 1] > most) {
            most = overlaps[k + n - 1];
            best = k;
        }
    for (int64_t k = -1; k > -(int64_t)n; k--)
        if (overlaps[k + n - 1] > most) {
            most = overlaps[k + n - 1];
            best = k;
        }
    return best;
}

static bool align(struct host *h, const struct host *chief)
{
    h->begin = h->chief_begin = h->steps = 0;
    if (h == chief)
        h->steps = h->n;
    if (h == chief || !h->n || !chief->n)
        return true;
    uint64_t *overlaps = calloc((size_t)h->n + chief->n, sizeof *overlaps);
    if (!overlaps)
        return false;
    add_overlaps(h, chief, overlaps);
    int64_t k = best_shift(overlaps, h->n, chief->n);
    free(overlaps);
    h->begin = k < 0 ? (uint32_t)-k : 0;
    h->chief_begin = k > 0 ? (uint32_t)k : 0;
    uint32_t left = h->n - h->begin, chief_left = chief->n - h->chief_begin;
    h->steps = left < chief_left ? left : chief_left;
    return true;
}

static bool align_all(struct host *h, uint32_t n, uint32_t *begin, uint32_t *common, bool *empty)
{
    const struct host *chief = h;
    uint32_t from = 0, to = UINT32_MAX;
    for (uint32_t i = 1; i < n; i++)
        if (h[i].total_ps < chief->total_ps)
            chief = &h[i];
    if (!chief->n)
        return true;
    for (uint32_t i = 0; i < n; i++) {
        if (!align(&h[i], chief))
            return false;
        from = h[i].chief_begin > from ? h[i].chief_begin : from;
        to = h[i].chief_begin + h[i].steps < to ? h[i].chief_begin + h[i].steps : to;
    }
    *empty = from > to;
    if (*empty)
        return true;
    *common = to - from;
    for (uint32_t i = 0; i < n; i++)
        begin[i] = h[i].begin + (from - h[i].chief_begin);
    return true;
}

enum xp_status steps_align(const struct step_time_span *spans, const uint32_t *first, uint32_t n,
                           uint32_t *begin, uint32_t *common, bool *empty, struct xp_error *err)
{
    *common = 0;
    *empty = false;
    memset(begin, 0, n * sizeof *begin);
    if (!n)
        return XP_OK;
    struct host *h = calloc(n, sizeof *h);
    for (uint32_t i = 0; h && i < n; i++) {
        h[i] = (struct host){.v = spans + first[i], .n = first[i + 1] - first[i]};
        h[i].total_ps = total(&h[i]);
    }
    bool ok = h && align_all(h, n, begin, common, empty);
    free(h);
    return ok ? XP_OK : xp_fail(err, XP_BUSY, 0, "no memory left to align the hosts' steps");
}
