/* lib/base/buf.h - a growing run of bytes with a limit.
 *
 * Ownership  xp_buf owns its memory; xp_buf_fini frees it, xp_buf_take hands it over.
 * Limit      Growth past `max` bytes (or an allocation that fails) sets `failed` and drops
 *            what is appended from then on; the appender need not check each call, the one
 *            who uses the result must: `if (b.failed) return xp_fail(err, XP_TOO_LARGE, ...)`.
 * Threads    One buffer, one thread at a time.
 */
#ifndef XP_BASE_BUF_H
#define XP_BASE_BUF_H

#include "lib/base/span.h"

struct xp_buf {
    uint8_t *p;
    size_t n, cap, max;
    bool failed;
};

/* Never fails and allocates nothing. max is the largest n ever reached. */
void xp_buf_init(struct xp_buf *b, size_t max);
void xp_buf_fini(struct xp_buf *b);

/* Makes room for n more bytes and returns where they go, or NULL (and failed is set).
 * The caller writes at most n bytes there and adds what it wrote to b->n. */
uint8_t *xp_buf_room(struct xp_buf *b, size_t n);

void xp_buf_add(struct xp_buf *b, const void *p, size_t n);
void xp_buf_str(struct xp_buf *b, const char *s);
void xp_buf_fmt(struct xp_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline void xp_buf_byte(struct xp_buf *b, uint8_t c)
{
    if (b->n < b->cap && !b->failed)
        b->p[b->n++] = c;
    else
        xp_buf_add(b, &c, 1);
}

static inline void xp_buf_span(struct xp_buf *b, struct xp_span s)
{
    xp_buf_add(b, s.p, s.n);
}

static inline struct xp_span xp_buf_all(const struct xp_buf *b)
{
    return (struct xp_span){b->p, b->n};
}

/* Ownership moves to the caller, who frees it with free(); b is empty again. */
uint8_t *xp_buf_take(struct xp_buf *b, size_t *n);

#endif
