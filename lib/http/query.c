/* lib/http/query.c - one parameter out of a query string. */
#include "lib/base/hex.h"
#include "lib/http/http.h"

/* Browsers and XProf's scripts send stray '%': like them, we take it as it stands. */
static size_t query_byte(struct xp_span s, size_t at, uint8_t *c)
{
    *c = s.p[at];
    if (*c == '+')
        *c = ' ';
    if (*c == '%' && s.n - at > 2) {
        int hi = xp_hex_value(s.p[at + 1]), lo = xp_hex_value(s.p[at + 2]);
        if (hi >= 0 && lo >= 0) {
            *c = (uint8_t)(hi << 4 | lo);
            return 3;
        }
    }
    return 1;
}

static void decode_into(struct xp_buf *b, struct xp_span s)
{
    for (size_t at = 0; at < s.n;) {
        uint8_t c;
        at += query_byte(s, at, &c);
        xp_buf_byte(b, c);
    }
}

bool http_query_next(struct xp_span *query, struct xp_buf *name, struct xp_buf *value)
{
    if (!query->n)
        return false;
    const uint8_t *amp = memchr(query->p, '&', query->n);
    size_t n = amp ? (size_t)(amp - query->p) : query->n;
    const uint8_t *eq = memchr(query->p, '=', n);
    size_t name_n = eq ? (size_t)(eq - query->p) : n;

    name->n = value->n = 0;
    decode_into(name, xp_span_of(query->p, name_n));
    if (eq)
        decode_into(value, xp_span_of(eq + 1, n - name_n - 1));
    n += amp ? 1 : 0;
    *query = xp_span_of(query->p + n, query->n - n);
    return true;
}

bool http_query_get(struct xp_span query, const char *name, struct xp_buf *b)
{
    struct xp_buf key;
    bool found = false;

    xp_buf_init(&key, query.n + 1);
    while (!found && http_query_next(&query, &key, b))
        found = xp_span_eq(xp_buf_all(&key), xp_span_str(name));
    if (!found)
        b->n = 0;
    xp_buf_fini(&key);
    return found;
}
