#include "shard/store/body.h"

#include "lib/base/pb_wire.h"

#define PIECE_MIN ((size_t)4 << 10)
#define PIECE_MAX ((size_t)1 << 20)

void body_open(struct body_reader *r, const struct part *part, struct xp_arena *a)
{
    *r = (struct body_reader){.part = part, .arena = a, .piece = PIECE_MIN};
}

static bool holds(const struct body_reader *r, uint64_t at, uint64_t len)
{
    return at >= r->at && at - r->at <= r->n && len <= r->n - (at - r->at);
}

/* Makes [at, at + len) lie in the buffer. */
static enum xp_status fill(struct body_reader *r, uint64_t at, uint64_t len, struct xp_error *err)
{
    if (at > r->part->size || len > r->part->size - at)
        return xp_fail(err, XP_CORRUPT, at, "the profile ends before the %llu bytes expected here",
                       (unsigned long long)len);
    bool onward = at >= r->at && at - r->at <= r->n + r->piece;
    r->piece = !onward ? PIECE_MIN : r->piece < PIECE_MAX ? r->piece * 2 : PIECE_MAX;
    uint64_t left = r->part->size - at, want = len > r->piece ? len : r->piece;
    if (want > left)
        want = left;
    if (want > r->cap) {
        size_t cap = want < PIECE_MAX ? (size_t)want * 2 : (size_t)want;
        uint8_t *buf = xp_arena_alloc(r->arena, cap);
        if (!buf)
            return xp_fail(err, XP_BUSY, at, "no memory left to read %zu bytes", cap);
        r->buf = buf;
        r->cap = cap;
    }
    size_t got = 0;
    r->n = 0;
    r->at = at;
    XP_TRY(xp_reader_read(r->part->reader, at, r->buf, (size_t)want, &got, err));
    r->n = got;
    if (got < len)
        return xp_fail(err, XP_CORRUPT, at + got, "the profile ends inside a message");
    return XP_OK;
}

static enum xp_status get(struct body_reader *r, uint64_t at, uint64_t len, struct xp_span *body,
                          struct xp_error *err)
{
    if (!holds(r, at, len))
        XP_TRY(fill(r, at, len, err));
    *body = xp_span_of(r->buf + (at - r->at), (size_t)len);
    return XP_OK;
}

/* The length that stands before the message at `at`: see part.c. */
static bool length_before(struct xp_span head, uint64_t *len)
{
    size_t i = head.n;
    if (!i || head.p[i - 1] >= 0x80)
        return false;
    i--;
    while (i && head.p[i - 1] >= 0x80)
        i--;
    return xp_varint_read(head.p + i, head.p + head.n, len);
}

enum xp_status body_event(struct body_reader *r, uint64_t at, struct xp_span *body,
                          struct xp_error *err)
{
    const struct part_line *l = part_line_at(r->part, at);
    struct xp_span head;
    uint64_t back = at < XP_VARINT_MAX ? at : XP_VARINT_MAX, len;
    if (!l)
        return xp_fail(err, XP_NOT_FOUND, at, "no line holds an event at this offset");
    XP_TRY(get(r, at - back, back, &head, err));
    if (!length_before(head, &len) || len > l->at + l->len - at)
        return xp_fail(err, XP_CORRUPT, at, "no event begins at this offset");
    if (len > BODY_EVENT_MAX)
        return xp_fail(err, XP_TOO_LARGE, at, "an event of %llu bytes is too large to be read",
                       (unsigned long long)len);
    return get(r, at, len, body, err);
}

enum xp_status body_evmeta(struct body_reader *r, const struct part_evmeta *m, struct xp_span *body,
                           struct xp_error *err)
{
    *body = (struct xp_span){0};
    if (!m->at || !m->len)
        return XP_OK;
    if (m->len > BODY_EVENT_MAX)
        return xp_fail(err, XP_TOO_LARGE, m->at, "metadata of %u bytes are too large to be read",
                       m->len);
    return get(r, m->at, m->len, body, err);
}
