#include "shard/tools/facts.h"

#include "lib/base/pb_wire.h"

/* A partial is fields HOST by index; of each: */
enum { HOST = 1 };
enum { HOST_INDEX = 1, HOST_NAME, HOST_READABLE, HOST_TEXT, HOST_BODY };

/* --- writing --- */

enum xp_status facts_begin(struct facts_out *f, struct xp_arena *a, struct xp_error *err)
{
    *f = (struct facts_out){0};
    xp_buf_init(&f->body, FACTS_MAX);
    if (xp_strpool_init(&f->texts, a))
        return XP_OK;
    return xp_fail(err, XP_BUSY, 0, "no memory left for what a host's profile says");
}

void facts_drop(struct facts_out *f)
{
    xp_buf_fini(&f->body);
}

void facts_u64(struct facts_out *f, uint64_t v)
{
    xp_pb_put_varint(&f->body, v);
}

void facts_i64(struct facts_out *f, int64_t v)
{
    xp_pb_put_varint(&f->body, xp_zigzag(v));
}

void facts_double(struct facts_out *f, double v)
{
    xp_buf_add(&f->body, &v, sizeof v);
}

void facts_text(struct facts_out *f, struct xp_span s)
{
    uint32_t id = xp_strpool_add(&f->texts, s);
    f->full |= id == XP_STRPOOL_FULL;
    xp_pb_put_varint(&f->body, id);
}

static enum xp_status keep(struct xp_buf *b, struct xp_arena *a, struct xp_span *out,
                           struct xp_error *err)
{
    uint8_t *p = b->failed ? NULL : xp_arena_alloc(a, b->n + 1);
    if (!p)
        return xp_fail(err, b->failed ? XP_TOO_LARGE : XP_BUSY, 0,
                       "what the hosts' profiles say does not fit into memory");
    if (b->n)
        memcpy(p, b->p, b->n);
    *out = xp_span_of(p, b->n);
    return XP_OK;
}

static enum xp_status pack(const struct facts_out *f, const struct tool_host *host, bool readable,
                           struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    struct xp_buf one, all;
    xp_buf_init(&one, FACTS_MAX);
    xp_buf_init(&all, FACTS_MAX);
    xp_pb_put_u64(&one, HOST_INDEX, host->index);
    xp_pb_put_bytes(&one, HOST_NAME, host->name);
    xp_pb_put_u64(&one, HOST_READABLE, readable);
    for (uint32_t i = 1; f && i < f->texts.n; i++)
        xp_pb_put_bytes(&one, HOST_TEXT, xp_strpool_get(&f->texts, i));
    if (f)
        xp_pb_put_bytes(&one, HOST_BODY, xp_buf_all(&f->body));
    xp_pb_put_bytes(&all, HOST, xp_buf_all(&one));
    all.failed |= one.failed || (f && (f->body.failed || f->full));
    enum xp_status st = keep(&all, a, partial, err);
    xp_buf_fini(&one);
    xp_buf_fini(&all);
    return st;
}

enum xp_status facts_end(struct facts_out *f, const struct tool_host *host, struct xp_arena *a,
                         struct xp_span *partial, struct xp_error *err)
{
    enum xp_status st = pack(f, host, true, a, partial, err);
    facts_drop(f);
    return st;
}

enum xp_status facts_unreadable(const struct tool_host *host, struct xp_arena *a,
                                struct xp_span *partial, struct xp_error *err)
{
    return pack(NULL, host, false, a, partial, err);
}

static enum xp_status not_ours(struct xp_error *err)
{
    return xp_fail(err, XP_CORRUPT, 0, "what another server said of a host cannot be read");
}

enum xp_status facts_of(struct xp_span partial, const struct tool_host *host, struct xp_arena *a,
                        struct xp_span *out, struct xp_error *err)
{
    struct xp_pb r = xp_pb_open(partial), h;
    struct xp_pb_field f;
    struct xp_buf one, all;
    bool found = xp_pb_next(&r, &f) && f.num == HOST && f.type == XP_PB_LEN;
    if (!found)
        return not_ours(err);
    xp_buf_init(&one, FACTS_MAX);
    xp_buf_init(&all, FACTS_MAX);
    xp_pb_put_u64(&one, HOST_INDEX, host->index);
    xp_pb_put_bytes(&one, HOST_NAME, host->name);
    for (h = xp_pb_open(f.bytes); xp_pb_next(&h, &f);) {
        if (f.num == HOST_READABLE)
            xp_pb_put_u64(&one, f.num, f.value);
        else if (f.num == HOST_TEXT || f.num == HOST_BODY)
            xp_pb_put_bytes(&one, f.num, f.bytes);
    }
    xp_pb_put_bytes(&all, HOST, xp_buf_all(&one));
    all.failed |= one.failed;
    enum xp_status st = keep(&all, a, out, err);
    xp_buf_fini(&one);
    xp_buf_fini(&all);
    return st;
}

/* --- merging --- */

/* The next host's bytes and index; false at the end, or when r->bad. */
static bool next_host(struct xp_pb *r, struct xp_span *bytes, uint64_t *index)
{
    struct xp_pb_field f, g;
    while (xp_pb_next(r, &f)) {
        if (f.num != HOST || f.type != XP_PB_LEN)
            continue;
        struct xp_pb h = xp_pb_open(f.bytes);
        *bytes = f.bytes;
        *index = 0;
        if (xp_pb_next(&h, &g) && g.num == HOST_INDEX && g.type == XP_PB_VARINT)
            *index = g.value;
        return true;
    }
    return false;
}

enum xp_status facts_merge(struct xp_span x, struct xp_span y, struct xp_arena *a,
                           struct xp_span *both, struct xp_error *err)
{
    struct xp_pb rx = xp_pb_open(x), ry = xp_pb_open(y);
    struct xp_span hx, hy;
    uint64_t ix, iy;
    struct xp_buf b;
    *both = x.n ? x : y;
    if (!x.n || !y.n)
        return XP_OK;
    xp_buf_init(&b, FACTS_MAX);
    bool more_x = next_host(&rx, &hx, &ix), more_y = next_host(&ry, &hy, &iy);
    while (more_x || more_y) {
        bool take_x = more_x && (!more_y || ix <= iy);
        xp_pb_put_bytes(&b, HOST, take_x ? hx : hy);
        if (take_x)
            more_x = next_host(&rx, &hx, &ix);
        else
            more_y = next_host(&ry, &hy, &iy);
    }
    enum xp_status st = rx.bad || ry.bad ? not_ours(err) : keep(&b, a, both, err);
    xp_buf_fini(&b);
    return st;
}

/* --- reading --- */

/* Counts its texts while `texts` is NULL. */
static bool read_host(struct xp_span bytes, struct facts *f, struct xp_span *texts)
{
    struct xp_pb r = xp_pb_open(bytes);
    struct xp_pb_field g;
    *f = (struct facts){.texts = texts, .ntexts = 1};
    while (xp_pb_next(&r, &g)) {
        if (g.num == HOST_INDEX && g.type == XP_PB_VARINT)
            f->index = (uint32_t)g.value;
        else if (g.num == HOST_NAME && g.type == XP_PB_LEN)
            f->host = g.bytes;
        else if (g.num == HOST_READABLE && g.type == XP_PB_VARINT)
            f->readable = g.value != 0;
        else if (g.num == HOST_BODY && g.type == XP_PB_LEN)
            f->p = g.bytes.p, f->end = g.bytes.n ? g.bytes.p + g.bytes.n : g.bytes.p;
        else if (g.num == HOST_TEXT && g.type == XP_PB_LEN) {
            if (texts)
                texts[f->ntexts] = g.bytes;
            f->ntexts++;
        }
    }
    return !r.bad;
}

enum xp_status facts_open(struct xp_span merged, struct xp_arena *a, struct facts **hosts,
                          size_t *n, struct xp_error *err)
{
    struct xp_pb r = xp_pb_open(merged);
    struct xp_span bytes;
    uint64_t index;
    size_t max = 0;
    *n = 0;
    while (next_host(&r, &bytes, &index))
        max++;
    *hosts = xp_arena_alloc(a, (max + 1) * sizeof **hosts);
    if (r.bad)
        return not_ours(err);
    for (r = xp_pb_open(merged); *hosts && next_host(&r, &bytes, &index); ++*n) {
        struct facts *f = &(*hosts)[*n];
        if (!read_host(bytes, f, NULL))
            return not_ours(err);
        struct xp_span *texts = xp_arena_zalloc(a, f->ntexts * sizeof *texts);
        if (!texts)
            *hosts = NULL;
        else
            read_host(bytes, f, texts);
    }
    return *hosts ? XP_OK : xp_fail(err, XP_BUSY, 0, "no memory left for what the hosts say");
}

uint64_t facts_get_u64(struct facts *f)
{
    uint64_t v;
    const uint8_t *p = f->p ? xp_varint_read(f->p, f->end, &v) : NULL;
    if (!p) {
        f->bad = true;
        f->p = f->end;
        return 0;
    }
    f->p = p;
    return v;
}

int64_t facts_get_i64(struct facts *f)
{
    return xp_unzigzag(facts_get_u64(f));
}

double facts_get_double(struct facts *f)
{
    double v = 0;
    if (!f->p || (size_t)(f->end - f->p) < sizeof v) {
        f->bad = true;
        f->p = f->end;
        return 0;
    }
    memcpy(&v, f->p, sizeof v);
    f->p += sizeof v;
    return v;
}

struct xp_span facts_get_text(struct facts *f)
{
    uint64_t id = facts_get_u64(f);
    if (id < f->ntexts)
        return f->texts[id];
    f->bad = true;
    return (struct xp_span){0};
}

size_t facts_get_count(struct facts *f)
{
    uint64_t n = facts_get_u64(f);
    if (n <= (f->p ? (size_t)(f->end - f->p) : 0))
        return (size_t)n;
    f->bad = true;
    return 0;
}

enum xp_status facts_need_readable(const struct facts *f, struct xp_error *err)
{
    if (f->readable)
        return XP_OK;
    return xp_fail(err, XP_NOT_FOUND, 0, "the profile of host %.*s is damaged",
                   (int)(f->host.n < 80 ? f->host.n : 80), (const char *)f->host.p);
}

enum xp_status facts_ok(const struct facts *f, struct xp_error *err)
{
    return f->bad ? not_ours(err) : XP_OK;
}
