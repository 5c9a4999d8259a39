/* Where requests come from. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "server/gate_int.h"

/* --- addresses --- */

static int read_address(const char *text, uint8_t address[16])
{
    if (inet_pton(AF_INET, text, address) == 1)
        return AF_INET;
    return inet_pton(AF_INET6, text, address) == 1 ? AF_INET6 : 0;
}

/* 10.0.0.0/8, fd00::/8, 192.0.2.1 */
static bool read_network(const char *text, struct network *n)
{
    char address[HTTP_PEER_MAX];
    size_t length = strcspn(text, "/");
    char *end = NULL;

    if (length >= sizeof address)
        return false;
    memcpy(address, text, length);
    address[length] = 0;
    n->family = read_address(address, n->address);
    int most = n->family == AF_INET ? 32 : 128;
    long bits = text[length] ? strtol(text + length + 1, &end, 10) : most;
    n->bits = (int)bits;
    return n->family && bits >= 0 && bits <= most &&
           (!end || (*end == 0 && text[length + 1] >= '0' && text[length + 1] <= '9'));
}

enum xp_status gate_read_networks(struct gate *g, const char *const *list, struct xp_error *err)
{
    size_t n = 0;
    while (list[n])
        n++;
    g->trusted = calloc(n + 1, sizeof *g->trusted);
    XP_ASSERT(g->trusted);
    for (; g->n_trusted < n; g->n_trusted++)
        if (!read_network(list[g->n_trusted], &g->trusted[g->n_trusted]))
            return xp_fail(err, XP_BAD_REQUEST, 0,
                           "--trusted-from=%.60s is no address or network such as 10.0.0.0/8",
                           list[g->n_trusted]);
    return XP_OK;
}

static bool is_in(const struct network *n, int family, const uint8_t address[16])
{
    int whole = n->bits / 8, rest = n->bits % 8;
    if (n->family != family || memcmp(n->address, address, (size_t)whole) != 0)
        return false;
    return rest == 0 || (n->address[whole] ^ address[whole]) >> (8 - rest) == 0;
}

static bool is_named(const struct gate *g, const char *peer)
{
    uint8_t address[16];
    int family = read_address(peer, address);
    for (size_t i = 0; family && i < g->n_trusted; i++)
        if (is_in(&g->trusted[i], family, address))
            return true;
    return false;
}

bool gate_is_trusted(const struct gate *g, const struct http_exchange *ex)
{
    char peer[HTTP_PEER_MAX];
    if (g->n_trusted == 0)
        return true;
    http_peer(ex, peer);
    return is_named(g, peer);
}

void gate_address(const struct gate *g, const struct http_exchange *ex, char text[GATE_ADDRESS_MAX])
{
    uint8_t address[16];
    char seen[GATE_ADDRESS_MAX];

    http_peer(ex, text);
    if (g->n_trusted == 0 || !is_named(g, text) || http_header_count(ex, "x-forwarded-for") != 1)
        return;
    struct xp_span list = http_header(ex, "x-forwarded-for");
    const uint8_t *comma = list.n ? memrchr(list.p, ',', list.n) : NULL;
    const uint8_t *p = comma ? comma + 1 : list.p, *end = list.p + list.n;
    while (p < end && *p == ' ')
        p++;
    if (end - p >= GATE_ADDRESS_MAX)
        return;
    snprintf(seen, sizeof seen, "%.*s", (int)(end - p), (const char *)p);
    if (read_address(seen, address))
        memcpy(text, seen, sizeof seen);
}

/* --- pages --- */

/* Whether an origin, https://host:port, is this server by the name it was asked for, or by the one
 * it is known as. */
static bool is_our_origin(const struct gate *g, const struct http_exchange *ex,
                          struct xp_span origin)
{
    struct xp_span host = http_request(ex)->host, rest;
    if (g->base && origin.n < strlen(g->base) &&
        !strncasecmp(g->base, (const char *)origin.p, origin.n))
        return g->base[origin.n] == '/';
    if (xp_span_starts(origin, XP_SPAN_LIT("https://")))
        rest = xp_span_of(origin.p + 8, origin.n - 8);
    else if (xp_span_starts(origin, XP_SPAN_LIT("http://")))
        rest = xp_span_of(origin.p + 7, origin.n - 7);
    else
        return false;
    return rest.n && rest.n == host.n &&
           !strncasecmp((const char *)rest.p, (const char *)host.p, host.n);
}

static bool is_json(const struct http_exchange *ex)
{
    static const char json[] = "application/json";
    struct xp_span type = http_header(ex, "content-type");
    size_t n = sizeof json - 1;
    if (http_header(ex, "x-xprofd").p)
        return true;
    return type.n >= n && !strncasecmp((const char *)type.p, json, n) &&
           (type.n == n || type.p[n] == ';' || type.p[n] == ' ');
}

enum xp_status gate_is_own(const struct gate *g, const struct http_exchange *ex, bool json,
                           struct xp_error *err)
{
    struct xp_span site = http_header(ex, "sec-fetch-site");
    struct xp_span origin = http_header(ex, "origin");

    if (g->mode == MODE_OIDC && http_header(ex, "authorization").p)
        return XP_OK;
    if (site.p && !xp_span_eq(site, XP_SPAN_LIT("same-origin")) &&
        !xp_span_eq(site, XP_SPAN_LIT("none")))
        return xp_fail(err, XP_DENIED, 0, "this came from a page of another site");
    if (origin.p && !is_our_origin(g, ex, origin) &&
        !(site.p && xp_span_eq(site, XP_SPAN_LIT("same-origin"))))
        return xp_fail(err, XP_DENIED, 0, "this came from a page of another site");
    if (json && !is_json(ex))
        return xp_fail(err, XP_DENIED, 0,
                       "send it as application/json, or with the header x-xprofd: 1");
    return XP_OK;
}
