/* shard/decode/xspace_wire.h - the head of a field, when the bytes may end anywhere.
 *
 * lib/base/pb_wire.h reads messages that lie whole in memory; decoder and indexer see pieces, and
 * must tell "not yet" from "never". Both step over groups, as protobuf's parser does.
 */
#ifndef XSPACE_WIRE_H
#define XSPACE_WIRE_H

#include "lib/base/pb_wire.h"

#define XSPACE_GROUP_BEGIN 3
#define XSPACE_GROUP_END 4

/* Tag and length, or tag and value: what must be there to know what a field is. */
#define XSPACE_HEADER_MAX 20

struct xspace_field {
    uint32_t num, type;
    uint64_t value;      /* VARINT, FIXED; length of LEN */
    const uint8_t *data; /* LEN: first byte */
};

/* Reads tag and value, or tag and length. NULL when [p, end) is too short; *bad when no more
 * bytes could help. */
static inline const uint8_t *xspace_header(const uint8_t *p, const uint8_t *end,
                                           struct xspace_field *f, bool *bad)
{
    uint64_t tag;
    const uint8_t *q = xp_varint_read(p, end, &tag);
    *bad = false;
    if (!q) {
        *bad = end - p >= XP_VARINT_MAX;
        return NULL;
    }
    f->num = (uint32_t)(tag >> 3);
    f->type = (uint32_t)(tag & 7);
    f->value = 0;
    *bad = tag > UINT32_MAX || f->num == 0 || f->type > XP_PB_FIXED32;
    if (*bad)
        return NULL;
    switch (f->type) {
    case XP_PB_VARINT:
    case XP_PB_LEN:
        p = q;
        q = xp_varint_read(p, end, &f->value);
        *bad = !q && end - p >= XP_VARINT_MAX;
        break;
    case XP_PB_FIXED64:
    case XP_PB_FIXED32: {
        size_t n = f->type == XP_PB_FIXED64 ? 8 : 4;
        if ((size_t)(end - q) < n)
            return NULL;
        memcpy(&f->value, q, n); /* little-endian, as the wire */
        q += n;
        break;
    }
    default:
        break;
    }
    f->data = q;
    return q;
}

static inline struct xp_span xspace_field_span(const struct xspace_field *f)
{
    return xp_span_of(f->data, f->value);
}

#endif
