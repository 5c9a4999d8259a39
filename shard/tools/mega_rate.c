#include "shard/tools/mega_rate.h"

static bool cover(struct mega_rate *r, int64_t begin_ps, int64_t end_ps, unsigned shift)
{
    int64_t first = begin_ps >> shift, last = end_ps >> shift, n;
    r->shift = shift;
    r->first = first;
    if (__builtin_sub_overflow(last, first, &n) || n >= MEGA_BINS)
        return false;
    r->n = (uint32_t)n + 1;
    return true;
}

/* The narrowest bins, of no less than 2^shift ps, of which there are not too many. */
static bool choose(struct mega_rate *r, int64_t begin_ps, int64_t end_ps, unsigned shift,
                   struct xp_arena *a)
{
    while (shift < 62 && !cover(r, begin_ps, end_ps, shift))
        shift++;
    r->bins = xp_arena_zalloc(a, ((size_t)r->n + 1) * sizeof *r->bins);
    return r->bins != NULL;
}

static void extent(const struct vec *flows, int64_t *begin_ps, int64_t *end_ps)
{
    const struct mega_flow *v = flows->p;
    for (size_t i = 0; i < flows->n; i++) {
        *begin_ps = v[i].begin_ps < *begin_ps ? v[i].begin_ps : *begin_ps;
        *end_ps = v[i].end_ps > *end_ps ? v[i].end_ps : *end_ps;
    }
}

/* Adds a flow; span: only that it was under way. */
static void add(struct mega_rate *r, const struct mega_flow *v, bool span)
{
    double length = (double)v->end_ps - (double)v->begin_ps, bytes = (double)v->bytes;
    int64_t at = (v->begin_ps >> r->shift) - r->first;
    int64_t last = (v->end_ps >> r->shift) - r->first;
    if (!(length > 0) && !span) { /* at once */
        r->bins[at].bytes[v->curve] += bytes;
        return;
    }
    for (; at <= last && at < r->n; at++) {
        double wide = (double)(INT64_C(1) << r->shift);
        double from = (double)(at + r->first) * wide, to = from + wide;
        from = from > (double)v->begin_ps ? from : (double)v->begin_ps;
        to = to < (double)v->end_ps ? to : (double)v->end_ps;
        if (!(to > from))
            continue;
        if (span) {
            r->bins[at].inflight_ps += to - from;
            continue;
        }
        r->bins[at].bytes[v->curve] += bytes * (to - from) / length;
        r->bins[at].byte_ps[v->curve] += bytes * (to - from);
    }
}

/* Differences of where flows begin and end would do for many that are long; there are at most
 * MEGA_BINS bins for each. */
bool mega_rate_of(struct mega_rate *r, const struct vec *flows, const struct vec *spans,
                  struct xp_arena *a)
{
    int64_t begin = INT64_MAX, end = INT64_MIN;
    *r = (struct mega_rate){0};
    extent(flows, &begin, &end);
    extent(spans, &begin, &end);
    if (begin > end)
        return true;
    if (!choose(r, begin, end, 10, a))
        return false;
    for (size_t i = 0; i < flows->n; i++)
        add(r, &VEC(*flows, struct mega_flow)[i], false);
    for (size_t i = 0; i < spans->n; i++)
        add(r, &VEC(*spans, struct mega_flow)[i], true);
    return true;
}

static void pour(struct mega_rate *to, const struct mega_rate *from)
{
    for (uint32_t i = 0; i < from->n; i++) {
        int64_t at = ((from->first + i) >> (to->shift - from->shift)) - to->first;
        if (at < 0 || at >= to->n)
            continue;
        for (int k = 0; k < MEGA_CURVES; k++) {
            to->bins[at].bytes[k] += from->bins[i].bytes[k];
            to->bins[at].byte_ps[k] += from->bins[i].byte_ps[k];
        }
        to->bins[at].inflight_ps += from->bins[i].inflight_ps;
    }
}

bool mega_rate_join(struct mega_rate *to, const struct mega_rate *from, struct xp_arena *a)
{
    if (!from->n)
        return true;
    if (!to->n) {
        *to = *from;
        return true;
    }
    struct mega_rate both = {0};
    int64_t w1 = INT64_C(1) << to->shift, w2 = INT64_C(1) << from->shift;
    int64_t b1 = to->first * w1, b2 = from->first * w2;
    int64_t e1 = (to->first + to->n - 1) * w1, e2 = (from->first + from->n - 1) * w2;
    unsigned shift = to->shift > from->shift ? to->shift : from->shift;
    if (!choose(&both, b1 < b2 ? b1 : b2, e1 > e2 ? e1 : e2, shift, a))
        return false;
    pour(&both, to);
    pour(&both, from);
    *to = both;
    return true;
}

/* --- facts --- */

void mega_rate_put(const struct mega_rate *r, struct facts_out *f)
{
    facts_u64(f, r->shift);
    facts_i64(f, r->first);
    facts_u64(f, r->n);
    for (uint32_t i = 0; i < r->n; i++) {
        for (int k = 0; k < MEGA_CURVES; k++) {
            facts_double(f, r->bins[i].bytes[k]);
            facts_double(f, r->bins[i].byte_ps[k]);
        }
        facts_double(f, r->bins[i].inflight_ps);
    }
}

bool mega_rate_get(struct mega_rate *r, struct facts *f, struct xp_arena *a)
{
    uint64_t shift = facts_get_u64(f);
    *r = (struct mega_rate){.first = facts_get_i64(f)};
    size_t n = facts_get_count(f);
    int64_t end;
    r->shift = (unsigned)shift;
    if (shift > 62 || n > MEGA_BINS || __builtin_add_overflow(r->first, (int64_t)n, &end) ||
        end > INT64_MAX >> shift || r->first < INT64_MIN >> shift) {
        f->bad = true;
        return true;
    }
    r->n = (uint32_t)n;
    r->bins = xp_arena_zalloc(a, (n + 1) * sizeof *r->bins);
    for (size_t i = 0; r->bins && i < n; i++) {
        for (int k = 0; k < MEGA_CURVES; k++) {
            r->bins[i].bytes[k] = facts_get_double(f);
            r->bins[i].byte_ps[k] = facts_get_double(f);
        }
        r->bins[i].inflight_ps = facts_get_double(f);
    }
    return r->bins != NULL;
}

/* --- sizes --- */

static bool number(struct xp_span s, size_t *at, uint64_t *v)
{
    size_t from = *at;
    *v = 0;
    for (; *at < s.n && s.p[*at] >= '0' && s.p[*at] <= '9'; ++*at)
        if (__builtin_mul_overflow(*v, UINT64_C(10), v) ||
            __builtin_add_overflow(*v, (uint64_t)(s.p[*at] - '0'), v))
            return false;
    return *at > from;
}

static bool word(struct xp_span s, size_t *at, const char *what)
{
    size_t n = strlen(what);
    if (s.n - *at < n || memcmp(s.p + *at, what, n) != 0)
        return false;
    *at += n;
    return true;
}

bool mega_rate_bytes(struct xp_span s, uint64_t *bytes)
{
    size_t at = 0;
    uint64_t from, to, chunk, n;
    bool any = false;
    *bytes = 0;
    if (number(s, &at, bytes) && at == s.n)
        return true;
    *bytes = 0;
    for (size_t i = 0; i < s.n; i++) {
        at = i;
        if (!word(s, &at, "s") || !number(s, &at, &from) || !word(s, &at, "->") ||
            !number(s, &at, &to) || !word(s, &at, "d|$c") || !number(s, &at, &chunk) ||
            !word(s, &at, "=") || !number(s, &at, &n))
            continue;
        any = true;
        i = at - 1;
        if (from != to && __builtin_add_overflow(*bytes, n, bytes))
            return false;
    }
    return any;
}
