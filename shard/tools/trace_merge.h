/* shard/tools/trace_merge.h - sorting what consists of few sorted runs.
 *
 * Rows are sorted; what is gathered from row after row needs to be merged only. For use with a
 * comparison that can be inlined.
 */
#ifndef SHARD_TRACE_MERGE_H
#define SHARD_TRACE_MERGE_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef int trace_cmp(const void *a, const void *b, void *ctx);

/* Where the run ends that begins at `from`. */
static inline __attribute__((always_inline)) size_t
trace_run_end(const char *p, size_t from, size_t n, size_t size, trace_cmp *cmp, void *ctx)
{
    size_t i = from + 1;
    while (i < n && cmp(p + (i - 1) * size, p + i * size, ctx) <= 0)
        i++;
    return i < n ? i : n;
}

static inline __attribute__((always_inline)) void trace_merge_two(const char *a, size_t na,
                                                                  const char *b, size_t nb,
                                                                  char *to, size_t size,
                                                                  trace_cmp *cmp, void *ctx)
{
    const char *aend = a + na * size, *bend = b + nb * size;
    while (a < aend && b < bend) {
        bool second = cmp(a, b, ctx) > 0;
        memcpy(to, second ? b : a, size);
        to += size;
        a += second ? 0 : size;
        b += second ? size : 0;
    }
    if (a < aend)
        memcpy(to, a, (size_t)(aend - a));
    else if (b < bend)
        memcpy(to, b, (size_t)(bend - b));
}

/* Sorts, stable: pairs of runs are merged until one is left. False when memory is out. */
static inline __attribute__((always_inline)) bool
trace_merge_sort(void *base, size_t n, size_t size, trace_cmp *cmp, void *ctx)
{
    char *from = base;
    if (n < 2 || trace_run_end(from, 0, n, size, cmp, ctx) == n)
        return true;
    char *tmp = malloc(n * size), *to = tmp;
    if (!tmp)
        return false;
    for (bool one = false; !one;) {
        size_t runs = 0;
        for (size_t i = 0; i < n;) {
            size_t mid = trace_run_end(from, i, n, size, cmp, ctx);
            size_t end = mid < n ? trace_run_end(from, mid, n, size, cmp, ctx) : n;
            trace_merge_two(from + i * size, mid - i, from + mid * size, end - mid, to + i * size,
                            size, cmp, ctx);
            i = end;
            runs++;
        }
        one = runs == 1;
        char *was = from;
        from = to;
        to = was;
    }
    if (from != base)
        memcpy(base, from, n * size);
    free(tmp);
    return true;
}

#endif
