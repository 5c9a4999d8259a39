#include "shard/args.h"

#include <stdlib.h>

struct xp_span args_get(const struct args *a, const char *name)
{
    struct xp_span want = xp_span_str(name);
    for (size_t i = 0; i < a->n; i++)
        if (xp_span_eq(a->v[i].name, want))
            return a->v[i].value;
    return (struct xp_span){0};
}

static bool parse_u64(struct xp_span s, uint64_t *v)
{
    uint64_t x = 0;
    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned d = (unsigned)s.p[i] - '0';
        if (d > 9 || __builtin_mul_overflow(x, 10, &x) || __builtin_add_overflow(x, d, &x))
            return false;
    }
    *v = x;
    return true;
}

static bool parse_i64(struct xp_span s, int64_t *v)
{
    bool minus = s.n && s.p[0] == '-';
    uint64_t x;
    if (!parse_u64(minus ? xp_span_of(s.p + 1, s.n - 1) : s, &x))
        return false;
    if (x > (uint64_t)INT64_MAX + minus)
        return false;
    *v = minus ? (int64_t)(0 - x) : (int64_t)x;
    return true;
}

static enum xp_status not_a_number(struct xp_span s, const char *name, struct xp_error *err)
{
    return xp_fail(err, XP_BAD_REQUEST, 0, "%s=%.*s is not a whole number that fits", name,
                   (int)(s.n < 40 ? s.n : 40), (const char *)s.p);
}

enum xp_status args_i64(const struct args *a, const char *name, int64_t min, int64_t max,
                        int64_t *v, struct xp_error *err)
{
    struct xp_span s = args_get(a, name);
    int64_t x;
    if (s.n == 0)
        return XP_OK;
    if (!parse_i64(s, &x))
        return not_a_number(s, name, err);
    if (x < min || x > max)
        return xp_fail(err, XP_BAD_REQUEST, 0, "%s=%lld is not between %lld and %lld", name,
                       (long long)x, (long long)min, (long long)max);
    *v = x;
    return XP_OK;
}

enum xp_status args_u64(const struct args *a, const char *name, uint64_t max, uint64_t *v,
                        struct xp_error *err)
{
    struct xp_span s = args_get(a, name);
    uint64_t x;
    if (s.n == 0)
        return XP_OK;
    if (!parse_u64(s, &x) || x > max)
        return not_a_number(s, name, err);
    *v = x;
    return XP_OK;
}

enum xp_status args_u32(const struct args *a, const char *name, uint32_t min, uint32_t max,
                        uint32_t *v, struct xp_error *err)
{
    int64_t x = *v;
    XP_TRY(args_i64(a, name, min, max, &x, err));
    *v = (uint32_t)x;
    return XP_OK;
}

enum xp_status args_window(const struct args *a, int64_t *t0_ps, int64_t *t1_ps,
                           struct xp_error *err)
{
    bool has0 = args_get(a, "t0").n > 0, has1 = args_get(a, "t1").n > 0;
    int64_t t0 = 0, t1 = 0;
    if (has0 != has1)
        return xp_fail(err, XP_BAD_REQUEST, 0, "t0 and t1 go together: give both or neither");
    XP_TRY(args_i64(a, "t0", INT64_MIN, INT64_MAX, &t0, err));
    XP_TRY(args_i64(a, "t1", INT64_MIN, INT64_MAX, &t1, err));
    if (has0 && t0 >= t1)
        return xp_fail(err, XP_BAD_REQUEST, 0, "t0=%lld is not before t1=%lld", (long long)t0,
                       (long long)t1);
    *t0_ps = t0;
    *t1_ps = t1;
    return XP_OK;
}

static int by_number(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

/* Takes the next item, "7" or "7-12", off a list; false when it is malformed. */
static bool take_range(struct xp_span *list, uint32_t *from, uint32_t *to)
{
    const uint8_t *comma = list->n ? memchr(list->p, ',', list->n) : NULL;
    struct xp_span item = xp_span_of(list->p, comma ? (size_t)(comma - list->p) : list->n);
    const uint8_t *dash = item.n ? memchr(item.p, '-', item.n) : NULL;
    size_t head = dash ? (size_t)(dash - item.p) : item.n;
    uint64_t a, b;

    *list = comma ? xp_span_of(comma + 1, list->n - item.n - 1) : (struct xp_span){0};
    if (!parse_u64(xp_span_of(item.p, head), &a))
        return false;
    b = a;
    if (dash && !parse_u64(xp_span_of(dash + 1, item.n - head - 1), &b))
        return false;
    if (a > b || b > UINT32_MAX)
        return false;
    *from = (uint32_t)a;
    *to = (uint32_t)b;
    return true;
}

/* Lines in the list, repeats counted; false when it is malformed or longer than allowed. */
static bool count_rows(struct xp_span list, size_t *n)
{
    uint64_t count = 0;
    uint32_t from, to;
    while (list.p) {
        if (!take_range(&list, &from, &to))
            return false;
        count += (uint64_t)to - from + 1;
        if (count > ARGS_ROWS_MAX)
            return false;
    }
    *n = (size_t)count;
    return true;
}

static size_t sort_unique(uint32_t *v, size_t n)
{
    size_t kept = 0;
    qsort(v, n, sizeof *v, by_number);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || v[i] != v[kept - 1])
            v[kept++] = v[i];
    return kept;
}

enum xp_status args_rows(const struct args *a, struct xp_arena *arena, struct query_rows *rows,
                         struct xp_error *err)
{
    struct xp_span list = args_get(a, "rows");
    uint32_t *lines, from, to;
    size_t cap, n = 0;

    *rows = (struct query_rows){0};
    if (list.n == 0)
        return XP_OK;
    if (!count_rows(list, &cap))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "rows=%.*s is not a list of at most %d line numbers such as 0,3,7-12",
                       (int)(list.n < 60 ? list.n : 60), (const char *)list.p, ARGS_ROWS_MAX);
    lines = xp_arena_alloc(arena, cap * sizeof *lines);
    if (!lines)
        return xp_fail(err, XP_BUSY, 0, "the memory budget is spent");
    while (list.p && take_range(&list, &from, &to))
        for (uint64_t i = from; i <= to; i++)
            lines[n++] = (uint32_t)i;
    *rows = (struct query_rows){lines, sort_unique(lines, n)};
    return XP_OK;
}
