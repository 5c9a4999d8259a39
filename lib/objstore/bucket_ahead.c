/* What to fetch before it is asked for.
 *
 * With a plan: the rest of the range that is being read, then the next ranges that nobody has
 * begun. Several threads read several ranges; each sees ahead from where it is, past what the
 * others have.
 *
 * Without: reads that go forward are streams. A step over a gap is still forward when reading the
 * gap costs less than another round trip: latency times throughput, as the store was seen to have.
 * As much is fetched ahead as was read so far, twice. */
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/objstore/bucket_reader.h"

#define GAP_MIN ((uint64_t)128 << 10)
#define GAP_MAX ((uint64_t)8 << 20)
#define NEAR ((uint64_t)1 << 20) /* a planned read may lie that far from where the last ended */
#define STREAMS_AT_ONCE 4        /* connections that share the throughput of a gap */

static uint64_t window_max(const struct bucket_reader *r)
{
    uint64_t share = r->b->memory_max / 4;
    return share < AHEAD_MAX ? share : AHEAD_MAX;
}

static uint64_t clamp(uint64_t v, uint64_t lo, uint64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* --- by plan --- */

static int by_from(const void *a, const void *b, void *ctx)
{
    const struct planned *plan = ctx;
    uint64_t x = plan[*(const uint32_t *)a].range.from, y = plan[*(const uint32_t *)b].range.from;
    return (x > y) - (x < y);
}

bool ahead_plan(struct bucket_reader *r, const struct xp_range *ranges, size_t n)
{
    free(r->plan);
    free(r->by_from);
    r->plan = NULL;
    r->by_from = NULL;
    r->n_plan = 0;
    if (!n || n > UINT32_MAX)
        return !n;
    r->plan = malloc(n * sizeof *r->plan);
    r->by_from = malloc(n * sizeof *r->by_from);
    if (!r->plan || !r->by_from)
        return false;
    for (size_t i = 0; i < n; i++) {
        r->plan[i] = (struct planned){ranges[i], ranges[i].from};
        r->by_from[i] = (uint32_t)i;
    }
    r->n_plan = (uint32_t)n;
    qsort_r(r->by_from, n, sizeof *r->by_from, by_from, r->plan);
    return true;
}

/* The range that off lies in; n_plan when there is none. */
static uint32_t find_range(const struct bucket_reader *r, uint64_t off)
{
    uint32_t lo = 0, hi = r->n_plan;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (r->plan[r->by_from[mid]].range.from <= off)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (!lo)
        return r->n_plan;
    uint32_t i = r->by_from[lo - 1];
    return off < r->plan[i].range.to ? i : r->n_plan;
}

static bool follows(const struct planned *p, uint64_t off)
{
    return off + NEAR >= p->pos && off <= p->pos + NEAR;
}

bool ahead_is_planned(const struct bucket_reader *r, uint64_t off)
{
    uint32_t i = find_range(r, off);
    return i < r->n_plan && follows(&r->plan[i], off);
}

static size_t planned_spans(struct bucket_reader *r, uint32_t i, uint64_t off, uint64_t n,
                            struct xp_range *spans)
{
    uint64_t window = window_max(r);
    size_t count = 0;
    if (off + n > r->plan[i].pos)
        r->plan[i].pos = off + n;
    for (uint32_t j = i; j < r->n_plan && window && count < SPANS_MAX; j++) {
        const struct planned *p = &r->plan[j];
        if (j != i && p->pos > p->range.from)
            continue;
        uint64_t from = j == i ? off : p->range.from;
        uint64_t len = p->range.to - from < window ? p->range.to - from : window;
        spans[count++] = (struct xp_range){from, from + len};
        window -= len;
    }
    return count;
}

/* --- by guess --- */

static uint64_t gap_max(const struct bucket *b)
{
    uint64_t us = b->latency_ns / 1000;
    if (us > 1000000)
        us = 1000000;
    uint64_t per_us = b->bytes_per_s / 1000000 + 1;
    return clamp(us * per_us * STREAMS_AT_ONCE, GAP_MIN, GAP_MAX);
}

/* The stream that this read goes on with, or one made new of the oldest. */
static struct stream *note(struct bucket_reader *r, uint64_t off, size_t n)
{
    struct stream *best = NULL, *oldest = &r->streams[0];
    uint64_t gap = gap_max(r->b), least = UINT64_MAX;
    for (int i = 0; i < STREAMS; i++) {
        struct stream *s = &r->streams[i];
        if (s->used_ns < oldest->used_ns)
            oldest = s;
        bool near = s->used_ns && off + PIECE_MIN >= s->pos && off <= s->pos + gap;
        uint64_t d = off > s->pos ? off - s->pos : s->pos - off;
        if (near && d < least) {
            least = d;
            best = s;
        }
    }
    if (!best) {
        best = oldest;
        *best = (struct stream){.pos = off};
    }
    if (off + n > best->pos) {
        best->run += off + n - best->pos;
        best->pos = off + n;
    }
    best->used_ns = xp_now_ns();
    return best;
}

size_t ahead_spans(struct bucket_reader *r, uint64_t off, size_t n,
                   struct xp_range spans[SPANS_MAX], uint64_t *piece)
{
    uint32_t i = find_range(r, off);
    size_t count = 0;
    *piece = PIECE_MAX;
    if (i < r->n_plan && follows(&r->plan[i], off))
        count = planned_spans(r, i, off, n, spans);
    if (count && spans[0].to >= off + n)
        return count;
    /* No plan, or a read that leaves its range: one span for all of it. */
    uint64_t window = 0;
    if (!count) {
        const struct stream *s = note(r, off, n);
        window = s->run > n ? s->run * 2 : 0;
        if (window > window_max(r))
            window = window_max(r);
        *piece = clamp(window / 4, PIECE_MIN, PIECE_MAX);
        if (*piece < n)
            *piece = n < PIECE_MAX ? n : PIECE_MAX;
    }
    uint64_t to = off + n + window;
    if (to < off + *piece && !count)
        to = off + *piece;
    if (to > r->base.size)
        to = r->base.size;
    spans[0] = (struct xp_range){off, to};
    return count ? count : 1;
}
