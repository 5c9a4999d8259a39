/* lib/base/pb_wire.h - reading and writing protobuf's wire format.
 *
 * A reader walks the fields of one message that lies whole in memory; nested messages are
 * spans to walk with a reader of their own, so depth costs the caller's stack and nothing is
 * recursive here. Unknown fields are stepped over by type. Groups (types 3 and 4) are
 * refused: no message of ours or XProf's has them.
 *
 * Errors     A reader that meets malformed bytes stops, sets `bad`, and leaves `p` at the byte
 *            that could not be read; offset = p - start.
 */
#ifndef XP_BASE_PB_WIRE_H
#define XP_BASE_PB_WIRE_H

#include "lib/base/buf.h"

enum xp_pb_type { XP_PB_VARINT = 0, XP_PB_FIXED64 = 1, XP_PB_LEN = 2, XP_PB_FIXED32 = 5 };

struct xp_pb {
    const uint8_t *p, *end;
    bool bad;
};

struct xp_pb_field {
    uint32_t num;
    enum xp_pb_type type;
    uint64_t value;       /* VARINT, FIXED64, FIXED32 */
    struct xp_span bytes; /* LEN */
};

/* Reads a varint of at most 10 bytes from [p, end). Returns the byte after it, or NULL when it
 * is cut off or too long. Bits above 64 are dropped, as protobuf does. */
static inline const uint8_t *xp_varint_read(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
    uint64_t x = 0;
    for (unsigned shift = 0; p < end && shift < 70; shift += 7) {
        uint8_t b = *p++;
        x |= shift < 64 ? (uint64_t)(b & 0x7f) << shift : 0;
        if (b < 0x80) {
            *v = x;
            return p;
        }
    }
    return NULL;
}

#define XP_VARINT_MAX 10

/* Writes v at p, which has room for XP_VARINT_MAX bytes; returns the byte after it. */
static inline uint8_t *xp_varint_write(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

static inline uint64_t xp_zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int64_t xp_unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static inline struct xp_pb xp_pb_open(struct xp_span s)
{
    return (struct xp_pb){s.p, s.n ? s.p + s.n : s.p, false};
}

/* The next field into *f; false at the end or when malformed (then r->bad). */
bool xp_pb_next(struct xp_pb *r, struct xp_pb_field *f);

static inline double xp_pb_double(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* Writers append to a buffer; its limit and `failed` work as in buf.h. */
void xp_pb_put_varint(struct xp_buf *b, uint64_t v);            /* bare */
void xp_pb_put_u64(struct xp_buf *b, uint32_t num, uint64_t v); /* tag and value, also 0 */
void xp_pb_put_double(struct xp_buf *b, uint32_t num, double v);
void xp_pb_put_bytes(struct xp_buf *b, uint32_t num, struct xp_span s);

#endif
