/* loadtest/lib/xs.c */
#include "loadtest/lib/xs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void init(struct xs *x)
{
    memset(x, 0, sizeof *x);
    x->fd = -1;
    x->stop_at = UINT64_MAX;
    x->buf = malloc(XS_BUF);
    if (!x->buf)
        abort();
}

void xs_counter(struct xs *x)
{
    init(x);
    x->counting = true;
}

bool xs_open(struct xs *x, const char *path, bool gz)
{
    init(x);
    x->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (x->fd >= 0 && gz) {
        x->gz = gzdopen(x->fd, "wb1");
        if (!x->gz)
            close(x->fd);
    }
    if (x->fd >= 0 && (!gz || x->gz))
        return true;
    free(x->buf);
    x->buf = NULL;
    return false;
}

static bool write_all(int fd, const uint8_t *p, size_t n)
{
    while (n) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return false;
        p += w;
        n -= (size_t)w;
    }
    return true;
}

static void flip_bits(struct xs *x)
{
    for (int i = 0; i < x->nflips; i++) {
        if (x->flips[i] >= x->bytes && x->flips[i] - x->bytes < x->n)
            x->buf[x->flips[i] - x->bytes] ^= (uint8_t)(1u << (i % 8));
    }
}

void xs_flush(struct xs *x)
{
    size_t n = x->n;
    if (!x->counting) {
        flip_bits(x);
        if (x->bytes >= x->stop_at)
            n = 0;
        else if (n > x->stop_at - x->bytes)
            n = (size_t)(x->stop_at - x->bytes);
        if (x->gz)
            x->failed |= n && gzwrite(x->gz, x->buf, (unsigned)n) != (int)n;
        else
            x->failed |= !write_all(x->fd, x->buf, n);
    }
    x->bytes += x->n;
    x->n = 0;
}

bool xs_close(struct xs *x)
{
    xs_flush(x);
    if (x->gz)
        x->failed |= gzclose(x->gz) != Z_OK;
    else if (x->fd >= 0)
        x->failed |= close(x->fd) != 0;
    free(x->buf);
    x->buf = NULL;
    return !x->failed;
}

uint64_t xs_bytes(const struct xs *x)
{
    return x->bytes + x->n;
}

void xs_raw(struct xs *x, struct xp_span s)
{
    while (s.n) {
        if (x->n == XS_BUF)
            xs_flush(x);
        size_t n = s.n < XS_BUF - x->n ? s.n : XS_BUF - x->n;
        memcpy(x->buf + x->n, s.p, n);
        x->n += n;
        s.p += n;
        s.n -= n;
    }
}

void xs_event_end(struct xs *x)
{
    size_t n = x->n - x->body;
    x->buf[x->event] = 0x22;
    if (n < 0x80) {
        x->buf[x->event + 1] = (uint8_t)n;
    } else {
        uint8_t len[XP_VARINT_MAX];
        size_t nlen = (size_t)(xp_varint_write(len, n) - len);
        memmove(x->buf + x->event + 1 + nlen, x->buf + x->body, n);
        memcpy(x->buf + x->event + 1, len, nlen);
        x->n = x->event + 1 + nlen + n;
    }
    x->events++;
}

static void line_head(struct xp_buf *b, const struct xs_line *l)
{
    xp_pb_put_u64(b, 1, (uint64_t)l->id);
    xp_pb_put_bytes(b, 2, xp_span_str(l->name));
    xp_pb_put_u64(b, 3, (uint64_t)l->timestamp_ns);
}

/* Bytes of the line's events. */
static uint64_t events_len(const struct xs_line *l)
{
    struct xs count;
    xs_counter(&count);
    if (l->events)
        l->events(&count, l->ctx, l->arg);
    uint64_t n = xs_bytes(&count);
    xs_close(&count);
    return n;
}

static size_t varint_len(uint64_t v)
{
    uint8_t b[XP_VARINT_MAX];
    return (size_t)(xp_varint_write(b, v) - b);
}

static void put_len(struct xs *x, uint8_t tag, uint64_t n)
{
    xs_room(x);
    xs_put(x, tag, n);
}

static void put_line(struct xs *x, const struct xs_line *l, struct xp_span head, uint64_t len)
{
    put_len(x, 0x1a, len);
    if (!l->late)
        xs_raw(x, head);
    if (l->events)
        l->events(x, l->ctx, l->arg);
    if (l->late)
        xs_raw(x, head);
}

void xs_plane(struct xs *x, int64_t id, const char *name, const struct xs_line *lines,
              size_t nlines, struct xp_span meta)
{
    struct xp_buf head, *heads = calloc(nlines + 1, sizeof *heads);
    uint64_t *len = calloc(nlines + 1, sizeof *len);
    if (!heads || !len)
        abort();
    xp_buf_init(&head, 1 << 20);
    xp_pb_put_u64(&head, 1, (uint64_t)id);
    xp_pb_put_bytes(&head, 2, xp_span_str(name));
    uint64_t total = head.n + meta.n;
    for (size_t i = 0; i < nlines; i++) {
        xp_buf_init(&heads[i], 1 << 20);
        line_head(&heads[i], &lines[i]);
        len[i] = heads[i].n + events_len(&lines[i]);
        total += 1 + varint_len(len[i]) + len[i];
    }
    put_len(x, 0x0a, total);
    xs_raw(x, xp_buf_all(&head));
    for (size_t i = 0; i < nlines; i++) {
        put_line(x, &lines[i], xp_buf_all(&heads[i]), len[i]);
        xp_buf_fini(&heads[i]);
    }
    xs_raw(x, meta);
    xp_buf_fini(&head);
    free(heads);
    free(len);
}

void xs_hostname(struct xs *x, const char *name)
{
    put_len(x, 0x22, strlen(name));
    xs_raw(x, xp_span_str(name));
}

static void map_entry(struct xp_buf *meta, uint32_t field, int64_t id, struct xp_buf *value)
{
    struct xp_buf entry;
    xp_buf_init(&entry, SIZE_MAX / 2);
    xp_pb_put_u64(&entry, 1, (uint64_t)id);
    xp_pb_put_bytes(&entry, 2, xp_buf_all(value));
    xp_pb_put_bytes(meta, field, xp_buf_all(&entry));
    xp_buf_fini(&entry);
}

void xs_event_meta(struct xp_buf *meta, int64_t id, struct xp_span name, struct xp_span display,
                   struct xp_span stats)
{
    struct xp_buf v;
    xp_buf_init(&v, SIZE_MAX / 2);
    xp_pb_put_u64(&v, 1, (uint64_t)id);
    if (name.n)
        xp_pb_put_bytes(&v, 2, name);
    if (display.n)
        xp_pb_put_bytes(&v, 4, display);
    xp_buf_span(&v, stats);
    map_entry(meta, 4, id, &v);
    xp_buf_fini(&v);
}

void xs_stat_meta(struct xp_buf *meta, int64_t id, struct xp_span name)
{
    struct xp_buf v;
    xp_buf_init(&v, 1 << 20);
    xp_pb_put_u64(&v, 1, (uint64_t)id);
    xp_pb_put_bytes(&v, 2, name);
    map_entry(meta, 5, id, &v);
    xp_buf_fini(&v);
}

static void put_stat(struct xp_buf *b, uint32_t field, struct xp_buf *stat)
{
    xp_pb_put_bytes(b, field, xp_buf_all(stat));
    xp_buf_fini(stat);
}

static void begin_stat(struct xp_buf *stat, unsigned id)
{
    xp_buf_init(stat, SIZE_MAX / 2);
    xp_pb_put_u64(stat, 1, id);
}

void xs_put_u64(struct xp_buf *b, uint32_t field, unsigned id, uint64_t v)
{
    struct xp_buf s;
    begin_stat(&s, id);
    xp_pb_put_u64(&s, 3, v);
    put_stat(b, field, &s);
}

void xs_put_i64(struct xp_buf *b, uint32_t field, unsigned id, int64_t v)
{
    struct xp_buf s;
    begin_stat(&s, id);
    xp_pb_put_u64(&s, 4, (uint64_t)v);
    put_stat(b, field, &s);
}

void xs_put_double(struct xp_buf *b, uint32_t field, unsigned id, double v)
{
    struct xp_buf s;
    begin_stat(&s, id);
    xp_pb_put_double(&s, 2, v);
    put_stat(b, field, &s);
}

void xs_put_str(struct xp_buf *b, uint32_t field, unsigned id, struct xp_span v)
{
    struct xp_buf s;
    begin_stat(&s, id);
    xp_pb_put_bytes(&s, 5, v);
    put_stat(b, field, &s);
}

void xs_put_bytes(struct xp_buf *b, uint32_t field, unsigned id, struct xp_span v)
{
    struct xp_buf s;
    begin_stat(&s, id);
    xp_pb_put_bytes(&s, 6, v);
    put_stat(b, field, &s);
}

struct rng rng_for(uint64_t seed, uint64_t a, uint64_t b)
{
    struct rng r = {seed * UINT64_C(0x9e3779b97f4a7c15) ^ (a + 1) << 40 ^ b};
    rng_next(&r);
    return r;
}
