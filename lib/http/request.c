/* lib/http/request.c - what must hold before a handler sees a request.
 *
 * h2o 2.2.5 accepts a target without '/', and a request without Host; a page on any name that
 * resolves to 127.0.0.1 could read a profile through the browser of somebody who runs xprofd
 * (DNS rebinding). Both end here.
 */
#include <arpa/inet.h>

#include "lib/base/hex.h"
#include "lib/http/http_int.h"

enum xp_status request_decode_path(struct xp_span raw, uint8_t *out, size_t *n,
                                   struct xp_error *err)
{
    *n = 0;
    for (size_t at = 0; at < raw.n; at++) {
        uint8_t c = raw.p[at];
        if (c == '%') {
            int hi = raw.n - at > 2 ? xp_hex_value(raw.p[at + 1]) : -1;
            int lo = raw.n - at > 2 ? xp_hex_value(raw.p[at + 2]) : -1;
            if (hi < 0 || lo < 0)
                return xp_fail(err, XP_BAD_REQUEST, 0,
                               "the path holds a '%%' that no two hexadecimal digits follow");
            c = (uint8_t)(hi << 4 | lo);
            at += 2;
        }
        if (!c)
            return xp_fail(err, XP_BAD_REQUEST, 0, "the path holds a NUL byte");
        out[(*n)++] = c;
    }
    return XP_OK;
}

bool request_path_climbs(struct xp_span path)
{
    for (size_t at = 0; at < path.n;) {
        const uint8_t *slash = memchr(path.p + at, '/', path.n - at);
        size_t end = slash ? (size_t)(slash - path.p) : path.n;
        if (end - at == 2 && path.p[at] == '.' && path.p[at + 1] == '.')
            return true;
        at = end + 1;
    }
    return false;
}

enum xp_status request_check(struct http_exchange *ex, const h2o_req_t *req, struct xp_error *err)
{
    struct xp_span path = ex->rq.path;

    if (!path.n || path.p[0] != '/')
        return xp_fail(err, XP_BAD_REQUEST, 0, "the request target does not begin with '/'");
    XP_TRY(request_decode_path(path, (uint8_t *)path.p, &ex->rq.path.n, err));
    if (request_path_climbs(ex->rq.path))
        return xp_fail(err, XP_BAD_REQUEST, 0, "the path holds a '..' segment");
    /* h2o puts the configured name where the client sent none. */
    if (req->input.authority.base == req->hostconf->authority.hostport.base || !ex->rq.host.n)
        return xp_fail(err, XP_BAD_REQUEST, 0, "the request has no Host header");
    if (!request_host_is_ours(ex->loop->server, ex->rq.host))
        return xp_fail(
            err, XP_MISDIRECTED, 0, "'%.*s' is not a name of this server; --allow-host adds one",
            (int)(ex->rq.host.n < 100 ? ex->rq.host.n : 100), (const char *)ex->rq.host.p);
    return XP_OK;
}

/* --- header lists --- */

static struct xp_span trimmed(struct xp_span s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = xp_span_of(s.p + 1, s.n - 1);
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* The next element of a list, without the space around it; false at the end. */
static bool list_next(struct xp_span *rest, char separator, struct xp_span *element)
{
    if (!rest->n)
        return false;
    const uint8_t *end = memchr(rest->p, separator, rest->n);
    size_t n = end ? (size_t)(end - rest->p) : rest->n;
    *element = trimmed(xp_span_of(rest->p, n));
    n += end ? 1 : 0;
    *rest = xp_span_of(rest->p + n, rest->n - n);
    return true;
}

static bool span_is_nocase(struct xp_span s, const char *lower)
{
    return h2o_lcstris((const char *)s.p, s.n, lower, strlen(lower));
}

/* ";q=0", ";q=0.000" */
static bool weight_is_zero(struct xp_span parameters)
{
    struct xp_span one;
    while (list_next(&parameters, ';', &one)) {
        if (one.n < 3 || (one.p[0] | 0x20) != 'q' || one.p[1] != '=' || one.p[2] != '0')
            continue;
        size_t at = 3;
        while (at < one.n && (one.p[at] == '.' || one.p[at] == '0'))
            at++;
        return at == one.n;
    }
    return false;
}

/* +1 gzip is welcome, -1 it is refused, 0 not mentioned; `any` the same for '*'. */
static int gzip_in_list(struct xp_span list, int *any)
{
    struct xp_span element;
    int gzip = 0;

    while (list_next(&list, ',', &element)) {
        struct xp_span coding;
        if (!list_next(&element, ';', &coding))
            continue;
        int taken = weight_is_zero(element) ? -1 : 1;
        if (span_is_nocase(coding, "gzip") || span_is_nocase(coding, "x-gzip"))
            gzip = taken;
        else if (span_is_nocase(coding, "*"))
            *any = taken;
    }
    return gzip;
}

bool request_accepts_gzip(const h2o_req_t *req)
{
    int gzip = 0, any = 0;
    ssize_t at = -1;

    while ((at = h2o_find_header(&req->headers, H2O_TOKEN_ACCEPT_ENCODING, at)) != -1) {
        h2o_iovec_t v = req->headers.entries[at].value;
        int here = gzip_in_list(xp_span_of(v.base, v.len), &any);
        gzip = here ? here : gzip;
    }
    return gzip ? gzip > 0 : any > 0;
}

static struct xp_span etag_opaque(struct xp_span tag)
{
    bool weak = tag.n > 2 && tag.p[0] == 'W' && tag.p[1] == '/';
    return weak ? xp_span_of(tag.p + 2, tag.n - 2) : tag;
}

/* If-None-Match compares weakly (RFC 9110, 13.1.2). Our tags hold no comma. */
bool request_etag_matches(const h2o_req_t *req, const char *etag)
{
    struct xp_span ours = etag_opaque(xp_span_str(etag)), element;
    ssize_t at = -1;

    while ((at = h2o_find_header(&req->headers, H2O_TOKEN_IF_NONE_MATCH, at)) != -1) {
        h2o_iovec_t v = req->headers.entries[at].value;
        struct xp_span list = xp_span_of(v.base, v.len);
        while (list_next(&list, ',', &element))
            if (xp_span_eq(etag_opaque(element), ours) || span_is_nocase(element, "*"))
                return true;
    }
    return false;
}

/* --- Host --- */

/* The name in lower case without port, brackets and the root's dot; false for what is none. */
static bool host_name(struct xp_span authority, char *name, size_t room, bool *v6)
{
    struct xp_span host = authority, port = {0};

    *v6 = authority.n && authority.p[0] == '[';
    if (*v6) {
        const uint8_t *end = memchr(authority.p, ']', authority.n);
        if (!end)
            return false;
        host = xp_span_of(authority.p + 1, (size_t)(end - authority.p) - 1);
        port = xp_span_of(end + 1, authority.n - host.n - 2);
    } else {
        const uint8_t *colon = memchr(authority.p, ':', authority.n);
        if (colon) {
            host.n = (size_t)(colon - authority.p);
            port = xp_span_of(colon, authority.n - host.n);
        }
    }
    if (port.n > sizeof ":65535" - 1)
        return false;
    for (size_t i = 0; i < port.n; i++)
        if (i == 0 ? port.p[i] != ':' : port.p[i] < '0' || port.p[i] > '9')
            return false;
    if (host.n && !*v6 && host.p[host.n - 1] == '.')
        host.n--;
    if (!host.n || host.n >= room || memchr(host.p, 0, host.n))
        return false;
    memcpy(name, host.p, host.n);
    name[host.n] = '\0';
    h2o_strtolower(name, host.n);
    return true;
}

static bool bound_to_any(const struct http_server *s)
{
    if (s->bound.ss_family == AF_INET)
        return ((const struct sockaddr_in *)&s->bound)->sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)&s->bound)->sin6_addr);
}

/* An address cannot be rebound to another one, so that any is fine where any was bound. */
static bool literal_is_ours(const struct http_server *s, const char *name, bool v6, bool *literal)
{
    struct in6_addr a6;
    struct in_addr a4;

    *literal = true;
    if (v6 && inet_pton(AF_INET6, name, &a6) == 1)
        return bound_to_any(s) || IN6_IS_ADDR_LOOPBACK(&a6) ||
               (s->bound.ss_family == AF_INET6 &&
                memcmp(&a6, &((const struct sockaddr_in6 *)&s->bound)->sin6_addr, sizeof a6) == 0);
    if (!v6 && inet_pton(AF_INET, name, &a4) == 1)
        return bound_to_any(s) || ntohl(a4.s_addr) >> 24 == 127 ||
               (s->bound.ss_family == AF_INET &&
                ((const struct sockaddr_in *)&s->bound)->sin_addr.s_addr == a4.s_addr);
    *literal = v6;
    return false;
}

static bool host_matches(const char *pattern, const char *name)
{
    if (strcmp(pattern, "*") == 0)
        return true;
    if (strncmp(pattern, "*.", 2) == 0) {
        size_t suffix = strlen(pattern + 1), n = strlen(name);
        return n > suffix && strcasecmp(name + n - suffix, pattern + 1) == 0;
    }
    return strcasecmp(pattern, name) == 0;
}

bool request_host_is_ours(const struct http_server *s, struct xp_span authority)
{
    const char *const *allowed = s->config.hosts;
    char name[256];
    bool v6, literal;

    for (size_t i = 0; allowed && allowed[i]; i++)
        if (strcmp(allowed[i], "*") == 0)
            return true;
    if (!host_name(authority, name, sizeof name, &v6))
        return false;
    if (literal_is_ours(s, name, v6, &literal))
        return true;
    for (size_t i = 0; allowed && allowed[i]; i++)
        if (host_matches(allowed[i], name))
            return true;
    if (literal)
        return false;
    return host_matches("localhost", name) || host_matches("*.localhost", name) ||
           host_matches(s->config.host, name) || (s->own_name[0] && !strcmp(s->own_name, name));
}
