#include "lib/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BUF_FIRST 256

void xp_buf_init(struct xp_buf *b, size_t max)
{
    *b = (struct xp_buf){.max = max};
}

void xp_buf_fini(struct xp_buf *b)
{
    free(b->p);
    *b = (struct xp_buf){.max = b->max};
}

static bool grow(struct xp_buf *b, size_t need)
{
    size_t cap = b->cap ? b->cap : BUF_FIRST;
    while (cap < need)
        cap = cap > b->max / 2 ? b->max : cap * 2;
    if (cap > b->max)
        cap = b->max;
    uint8_t *p = realloc(b->p, cap ? cap : 1);
    if (!p)
        return false;
    b->p = p;
    b->cap = cap;
    return true;
}

uint8_t *xp_buf_room(struct xp_buf *b, size_t n)
{
    if (b->failed)
        return NULL;
    if (n <= b->cap - b->n && b->p)
        return b->p + b->n;
    if (n > b->max - b->n || !grow(b, b->n + n)) {
        b->failed = true;
        return NULL;
    }
    return b->p + b->n;
}

void xp_buf_add(struct xp_buf *b, const void *p, size_t n)
{
    if (n == 0)
        return;
    uint8_t *to = xp_buf_room(b, n);
    if (!to)
        return;
    memcpy(to, p, n);
    b->n += n;
}

void xp_buf_str(struct xp_buf *b, const char *s)
{
    xp_buf_add(b, s, strlen(s));
}

void xp_buf_fmt(struct xp_buf *b, const char *fmt, ...)
{
    char small[256];
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n < 0) {
        b->failed = true;
    } else if ((size_t)n < sizeof small) {
        xp_buf_add(b, small, (size_t)n);
    } else {
        /* vsnprintf writes a NUL behind the text, which does not belong to the buffer's limit. */
        char *text = malloc((size_t)n + 1);
        if (text) {
            vsnprintf(text, (size_t)n + 1, fmt, again);
            xp_buf_add(b, text, (size_t)n);
        } else {
            b->failed = true;
        }
        free(text);
    }
    va_end(again);
}

uint8_t *xp_buf_take(struct xp_buf *b, size_t *n)
{
    uint8_t *p = b->p;
    *n = b->n;
    *b = (struct xp_buf){.max = b->max};
    return p;
}
