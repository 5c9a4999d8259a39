#include "lib/base/pb_wire.h"

/* Field numbers end at 2^29 - 1, so that a tag fits 32 bits. */
static const uint8_t *read_tag(const uint8_t *p, const uint8_t *end, struct xp_pb_field *f)
{
    uint64_t tag;
    p = xp_varint_read(p, end, &tag);
    if (!p || tag > UINT32_MAX || tag >> 3 == 0)
        return NULL;
    f->num = (uint32_t)(tag >> 3);
    f->type = (enum xp_pb_type)(tag & 7);
    return p;
}

static const uint8_t *read_fixed(const uint8_t *p, const uint8_t *end, size_t n, uint64_t *v)
{
    if ((size_t)(end - p) < n)
        return NULL;
    *v = 0;
    for (size_t i = 0; i < n; i++)
        *v |= (uint64_t)p[i] << (8 * i);
    return p + n;
}

static const uint8_t *read_bytes(const uint8_t *p, const uint8_t *end, struct xp_span *s)
{
    uint64_t n;
    p = xp_varint_read(p, end, &n);
    if (!p || n > (uint64_t)(end - p))
        return NULL;
    *s = xp_span_of(p, (size_t)n);
    return p + n;
}

static const uint8_t *read_value(const uint8_t *p, const uint8_t *end, struct xp_pb_field *f)
{
    switch (f->type) {
    case XP_PB_VARINT:
        return xp_varint_read(p, end, &f->value);
    case XP_PB_FIXED64:
        return read_fixed(p, end, 8, &f->value);
    case XP_PB_LEN:
        return read_bytes(p, end, &f->bytes);
    case XP_PB_FIXED32:
        return read_fixed(p, end, 4, &f->value);
    }
    return NULL;
}

bool xp_pb_next(struct xp_pb *r, struct xp_pb_field *f)
{
    if (r->bad || r->p == r->end)
        return false;
    f->value = 0;
    f->bytes = (struct xp_span){0};
    const uint8_t *p = read_tag(r->p, r->end, f);
    if (!p) {
        r->bad = true;
        return false;
    }
    const uint8_t *q = read_value(p, r->end, f);
    r->p = q ? q : p;
    r->bad = !q;
    return q != NULL;
}

void xp_pb_put_varint(struct xp_buf *b, uint64_t v)
{
    uint8_t t[XP_VARINT_MAX];
    xp_buf_add(b, t, (size_t)(xp_varint_write(t, v) - t));
}

static uint8_t *write_tag(uint8_t *p, uint32_t num, enum xp_pb_type type)
{
    return xp_varint_write(p, (uint64_t)num << 3 | type);
}

void xp_pb_put_u64(struct xp_buf *b, uint32_t num, uint64_t v)
{
    uint8_t t[2 * XP_VARINT_MAX];
    uint8_t *p = xp_varint_write(write_tag(t, num, XP_PB_VARINT), v);
    xp_buf_add(b, t, (size_t)(p - t));
}

void xp_pb_put_double(struct xp_buf *b, uint32_t num, double v)
{
    uint8_t t[XP_VARINT_MAX + 8];
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    uint8_t *p = write_tag(t, num, XP_PB_FIXED64);
    for (int i = 0; i < 8; i++)
        *p++ = (uint8_t)(bits >> (8 * i));
    xp_buf_add(b, t, (size_t)(p - t));
}

void xp_pb_put_bytes(struct xp_buf *b, uint32_t num, struct xp_span s)
{
    uint8_t t[2 * XP_VARINT_MAX];
    uint8_t *p = xp_varint_write(write_tag(t, num, XP_PB_LEN), s.n);
    xp_buf_add(b, t, (size_t)(p - t));
    xp_buf_add(b, s.p, s.n);
}
