#include "shard/derive/meta_reader.h"

#include <stdlib.h>

#define PIECE ((size_t)256 << 10)
#define META_MAX ((size_t)512 << 20)

void meta_reader_init(struct meta_reader *r, const struct part *part)
{
    *r = (struct meta_reader){.part = part};
}

void meta_reader_fini(struct meta_reader *r)
{
    free(r->buf);
    *r = (struct meta_reader){0};
}

static enum xp_status fill(struct meta_reader *r, uint64_t at, size_t len, struct xp_error *err)
{
    uint64_t left = r->part->size - at;
    size_t want = len > PIECE ? len : PIECE;
    if (want > left)
        want = (size_t)left;
    if (want > r->cap) {
        uint8_t *buf = realloc(r->buf, want);
        if (!buf)
            return xp_fail(err, XP_BUSY, at, "no memory left to read %zu bytes", want);
        r->buf = buf;
        r->cap = want;
    }
    r->at = at;
    r->n = 0;
    size_t got = 0;
    XP_TRY(xp_reader_read(r->part->reader, at, r->buf, want, &got, err));
    r->n = got;
    if (got < len)
        return xp_fail(err, XP_CORRUPT, at + got, "the profile ends inside an event's metadata");
    return XP_OK;
}

enum xp_status meta_reader_get(struct meta_reader *r, const struct part_evmeta *m,
                               struct xp_span *body, struct xp_error *err)
{
    *body = (struct xp_span){0};
    if (!m->at || !m->len)
        return XP_OK;
    if (m->len > META_MAX || m->at > r->part->size || m->len > r->part->size - m->at)
        return xp_fail(err, XP_CORRUPT, m->at, "an event's metadata ends outside the profile");
    if (m->at < r->at || m->at - r->at > r->n || m->len > r->n - (m->at - r->at))
        XP_TRY(fill(r, m->at, m->len, err));
    *body = xp_span_of(r->buf + (m->at - r->at), m->len);
    return XP_OK;
}

struct xp_span meta_stat_text(const struct part *part, const struct part_plane *pl,
                              const struct xspace_stat *s)
{
    if (s->type == XSPACE_STR)
        return s->bytes;
    if (s->type == XSPACE_REF)
        return part_stat_name(part, pl, (int64_t)s->num);
    return (struct xp_span){0};
}
