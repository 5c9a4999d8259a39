/* lib/http/cookie.c - the Cookie header, taken apart. */
#include "lib/http/http.h"

bool http_cookie_next(struct xp_span *header, struct xp_span *name, struct xp_span *value)
{
    while (header->n && (header->p[0] == ' ' || header->p[0] == ';'))
        *header = xp_span_of(header->p + 1, header->n - 1);
    if (header->n == 0)
        return false;
    const uint8_t *end = memchr(header->p, ';', header->n);
    size_t n = end ? (size_t)(end - header->p) : header->n;
    const uint8_t *eq = memchr(header->p, '=', n);
    size_t at = eq ? (size_t)(eq - header->p) : n;
    *name = xp_span_of(header->p, at);
    *value = eq ? xp_span_of(eq + 1, n - at - 1) : (struct xp_span){0};
    *header = xp_span_of(header->p + n, header->n - n);
    return true;
}

struct xp_span http_cookie(const struct http_exchange *ex, const char *name)
{
    struct xp_span header = http_header(ex, "cookie"), one, value;
    while (http_cookie_next(&header, &one, &value))
        if (xp_span_eq(one, xp_span_str(name)))
            return value;
    return (struct xp_span){0};
}
