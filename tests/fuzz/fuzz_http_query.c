/* tests/fuzz/fuzz_http_query.c - what a client can put into a request line and a Host header:
 * query strings, cookies, paths and authorities never read outside their bytes, and give bounded
 * results.
 *
 * Input: the query string, a newline, the path, a newline, the authority.
 */
#include <stdlib.h>

#include "lib/http/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of http_int.h, which only lib/http may include. */
enum xp_status request_decode_path(struct xp_span raw, uint8_t *out, size_t *n,
                                   struct xp_error *err);
bool request_path_climbs(struct xp_span path);
bool request_host_is_ours(const struct http_server *s, struct xp_span authority);

static struct xp_span take_line(struct xp_span *rest)
{
    const uint8_t *end = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
    size_t n = end ? (size_t)(end - rest->p) : rest->n;
    struct xp_span line = xp_span_of(rest->p, n);
    n += end ? 1 : 0;
    *rest = xp_span_of(rest->p + n, rest->n - n);
    return line;
}

/* Bytes of their own, so that a sanitizer sees a read past their end. */
static struct xp_span copy(struct xp_span s)
{
    uint8_t *p = malloc(s.n ? s.n : 1);
    XP_ASSERT(p);
    if (s.n)
        memcpy(p, s.p, s.n);
    return xp_span_of(p, s.n);
}

static void check_query(struct xp_span query)
{
    struct xp_buf name, value, first;
    struct xp_span rest = query;
    size_t n = 0;
    xp_buf_init(&name, query.n + 1);
    xp_buf_init(&value, query.n + 1);
    xp_buf_init(&first, query.n + 1);
    while (http_query_next(&rest, &name, &value)) {
        XP_ASSERT(!name.failed && !value.failed && name.n + value.n <= query.n);
        XP_ASSERT(++n <= query.n + 1);
    }
    XP_ASSERT(rest.n == 0);
    if (http_query_get(query, "run", &first))
        XP_ASSERT(first.n <= query.n);
    else
        XP_ASSERT(first.n == 0);
    xp_buf_fini(&name);
    xp_buf_fini(&value);
    xp_buf_fini(&first);
}

static void check_cookies(struct xp_span header)
{
    struct xp_span rest = header, name, value;
    size_t all = 0;
    while (http_cookie_next(&rest, &name, &value))
        all += name.n + value.n + (rest.n ? 1 : 0);
    XP_ASSERT(rest.n == 0 && all <= header.n);
}

static void check_path(struct xp_span raw)
{
    uint8_t *out = malloc(raw.n ? raw.n : 1);
    struct xp_error err = {0};
    size_t n = 0;
    XP_ASSERT(out);
    enum xp_status status = request_decode_path(raw, out, &n, &err);
    XP_ASSERT(n <= raw.n);
    if (status == XP_OK) {
        XP_ASSERT(!n || !memchr(out, 0, n));
        request_path_climbs(xp_span_of(out, n));
    } else {
        XP_ASSERT(status == XP_BAD_REQUEST && err.text[0]);
    }
    free(out);
}

static void answer_nothing(void *ctx, struct http_exchange *ex)
{
    (void)ctx;
    (void)ex;
}

static struct http_server *server(void)
{
    static struct http_server *s;
    static const char *const more[] = {"profiles.example", "*.lab.example", NULL};
    struct http_config c = {
        .host = "127.0.0.1", .loops = 1, .hosts = more, .handler = answer_nothing};
    struct xp_error err;
    if (!s)
        XP_ASSERT(http_server_start(&c, &s, &err) == XP_OK);
    return s;
}

/* No name outside these four shapes may pass: that is what keeps DNS rebinding out. */
static bool allowed_shape(struct xp_span a)
{
    char text[300] = "";
    if (a.n >= sizeof text)
        return false;
    for (size_t i = 0; i < a.n; i++)
        text[i] = (char)(a.p[i] >= 'A' && a.p[i] <= 'Z' ? a.p[i] | 0x20 : a.p[i]);
    return strstr(text, "localhost") || strstr(text, "example") || text[0] == '[' ||
           strncmp(text, "127.", 4) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct xp_span rest = xp_span_of(data, size);
    struct xp_span query = copy(take_line(&rest)), path = copy(take_line(&rest)), host = copy(rest);
    check_query(query);
    check_cookies(query);
    check_path(path);
    if (request_host_is_ours(server(), host))
        XP_ASSERT(allowed_shape(host));
    free((void *)query.p);
    free((void *)path.p);
    free((void *)host.p);
    return 0;
}
