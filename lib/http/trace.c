/* lib/http/trace.c - which request it is (W3C trace context, level 1), and the report at its end.
 */
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/http/http_int.h"

/* splitmix64: ids need to differ, not to be secret. */
static uint64_t next_random(struct http_loop *l)
{
    if (l->random == 0 && getrandom(&l->random, sizeof l->random, 0) != sizeof l->random)
        l->random = xp_now_ns() ^ (uintptr_t)l;
    uint64_t z = l->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void fill(struct http_loop *l, uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t v = next_random(l) | 1; /* never all zeroes: that is "none" */
        memcpy(p + i, &v, 8);
    }
}

static bool read_hex(struct xp_span text, size_t at, uint8_t *out, size_t n)
{
    return xp_unhex((const char *)text.p + at, n, out);
}

static bool is_set(const uint8_t *p, size_t n)
{
    while (n && p[n - 1] == 0)
        n--;
    return n != 0;
}

/* "00-<trace>-<parent>-<flags>"; a later version may say more behind it. */
static bool read_parent(struct xp_span h, struct http_trace *t)
{
    uint8_t version = 0, flags = 0;
    bool form = h.n >= 55 && h.p[2] == '-' && h.p[35] == '-' && h.p[52] == '-' &&
                (h.n == 55 || h.p[55] == '-');
    if (!form || !read_hex(h, 0, &version, 1) || !read_hex(h, 53, &flags, 1) ||
        !read_hex(h, 3, t->trace, sizeof t->trace) || !read_hex(h, 36, t->parent, sizeof t->parent))
        return false;
    if (version == 0xff || (version == 0 && h.n != 55) || !is_set(t->trace, sizeof t->trace) ||
        !is_set(t->parent, sizeof t->parent))
        return false;
    t->has_parent = true;
    t->sampled = flags & 1;
    return true;
}

/* A word of the client's that can stand in a log and a header. */
static bool take_id(struct xp_span h, char id[HTTP_ID_MAX])
{
    if (h.n == 0 || h.n >= HTTP_ID_MAX)
        return false;
    for (size_t i = 0; i < h.n; i++) {
        uint8_t c = h.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_' || c == '.'))
            return false;
    }
    memcpy(id, h.p, h.n);
    id[h.n] = 0;
    return true;
}

static struct xp_span header(const h2o_req_t *req, const char *name)
{
    ssize_t at = h2o_find_header_by_str(&req->headers, name, strlen(name), -1);
    if (at == -1)
        return (struct xp_span){0};
    h2o_iovec_t v = req->headers.entries[at].value;
    return xp_span_of(v.base, v.len);
}

void trace_begin(struct http_exchange *ex, const h2o_req_t *req)
{
    struct http_trace *t = &ex->trace;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    ex->began_ns = xp_now_ns();
    ex->began_wall_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    if (!read_parent(header(req, "traceparent"), t)) {
        memset(t->parent, 0, sizeof t->parent);
        fill(ex->loop, t->trace, sizeof t->trace);
        t->sampled = (int)(next_random(ex->loop) % 100) < ex->loop->server->config.trace_percent;
    }
    fill(ex->loop, t->span, sizeof t->span);
    if (!take_id(header(req, "x-request-id"), t->id))
        xp_hex(t->trace, sizeof t->trace, t->id);
}

void trace_end(struct http_exchange *ex, bool aborted)
{
    const struct http_config *c = &ex->loop->server->config;
    bool begun = ex->phase != HTTP_PENDING;

    if (!c->done)
        return;
    c->done(c->done_ctx, &(struct http_done){.trace = &ex->trace,
                                             .request = &ex->rq,
                                             .who = ex->who,
                                             .route = ex->route,
                                             .status = begun ? ex->req->res.status : 0,
                                             .bytes = begun ? ex->req->bytes_sent : 0,
                                             .began_ns = ex->began_ns,
                                             .began_wall_us = ex->began_wall_us,
                                             .took_ns = xp_now_ns() - ex->began_ns,
                                             .aborted = aborted});
}

const struct http_trace *http_trace(const struct http_exchange *ex)
{
    return &ex->trace;
}

void http_traceparent(const struct http_trace *t, char text[HTTP_TRACEPARENT_MAX])
{
    memcpy(text, "00-", 3);
    xp_hex(t->trace, sizeof t->trace, text + 3);
    text[35] = '-';
    xp_hex(t->span, sizeof t->span, text + 36);
    memcpy(text + 52, t->sampled ? "-01" : "-00", 4);
}

void http_note(struct http_exchange *ex, const char *who, const char *route)
{
    snprintf(ex->who, sizeof ex->who, "%s", who);
    snprintf(ex->route, sizeof ex->route, "%s", route);
}
