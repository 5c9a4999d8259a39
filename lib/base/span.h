/* lib/base/span.h - a borrowed run of bytes.
 *
 * A span owns nothing and need not end in NUL. Whoever hands one out says how long
 * the bytes live; the usual answer is "until this call returns" or "as long as the
 * arena". An empty span may have p == NULL.
 */
#ifndef XP_BASE_SPAN_H
#define XP_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct xp_span {
    const uint8_t *p;
    size_t n;
};

#define XP_SPAN_LIT(s) ((struct xp_span){(const uint8_t *)("" s), sizeof(s) - 1})

static inline struct xp_span xp_span_of(const void *p, size_t n)
{
    return (struct xp_span){(const uint8_t *)p, n};
}

static inline struct xp_span xp_span_str(const char *s)
{
    return (struct xp_span){(const uint8_t *)s, s ? strlen(s) : 0};
}

static inline bool xp_span_eq(struct xp_span a, struct xp_span b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool xp_span_starts(struct xp_span s, struct xp_span prefix)
{
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

static inline bool xp_span_ends(struct xp_span s, struct xp_span suffix)
{
    return s.n >= suffix.n &&
           (suffix.n == 0 || memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0);
}

/* Whether what, which is not empty, occurs in s. */
static inline bool xp_span_has(struct xp_span s, struct xp_span what)
{
    return s.n >= what.n && s.n && memmem(s.p, s.n, what.p, what.n) != NULL;
}

/* Byte order, shorter first among equals; what strcmp does for strings without NUL. */
static inline int xp_span_cmp(struct xp_span a, struct xp_span b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

#endif
