#include "server/capture/grpc_frame.h"

#include <stdio.h>

#include "lib/base/hex.h"
#include "lib/base/pb_wire.h"
#include "lib/base/utf8.h"

#define FIELD_EMPTY 7
#define FIELD_PROFILE 8
#define VARINT_BITS_MAX 70

void frame_init(struct grpc_frame *f, void (*profile_fn)(void *ctx, struct xp_span bytes),
                void *ctx)
{
    *f = (struct grpc_frame){.profile_fn = profile_fn, .ctx = ctx};
}

static bool broken(struct grpc_frame *f, const char *why)
{
    f->why = why;
    return false;
}

static bool head_over(struct grpc_frame *f)
{
    const uint8_t *h = f->head;
    uint32_t n = (uint32_t)h[1] << 24 | (uint32_t)h[2] << 16 | (uint32_t)h[3] << 8 | h[4];
    if (h[0] != 0)
        return broken(f, "it is compressed, which nobody asked for");
    if (n > FRAME_MESSAGE_MAX)
        return broken(f, "it claims to be longer than 2 GiB");
    f->seen = true;
    f->message_n = f->left = n;
    f->state = FRAME_TAG;
    return true;
}

/* A field's tag, or its length, or its value is whole. */
static bool number_over(struct grpc_frame *f)
{
    uint64_t v = f->varint;
    f->varint = f->shift = 0;
    if (f->state == FRAME_VARINT) {
        f->empty = f->number == FIELD_EMPTY ? v != 0 : f->empty;
        f->state = FRAME_TAG;
        return true;
    }
    if (f->state == FRAME_LENGTH) {
        if (v > f->left)
            return broken(f, "a field is longer than the message");
        f->field = v;
        f->profile |= f->number == FIELD_PROFILE;
        f->state = v == 0 ? FRAME_TAG : f->number == FIELD_PROFILE ? FRAME_PROFILE : FRAME_SKIP;
        return true;
    }
    f->number = v >> 3;
    if (f->number == 0 || v > UINT32_MAX)
        return broken(f, "a field's number is none");
    switch ((enum xp_pb_type)(v & 7)) {
    case XP_PB_VARINT:
        f->state = FRAME_VARINT;
        return true;
    case XP_PB_LEN:
        f->state = FRAME_LENGTH;
        return true;
    case XP_PB_FIXED32:
    case XP_PB_FIXED64:
        f->field = (v & 7) == XP_PB_FIXED32 ? 4 : 8;
        f->state = FRAME_SKIP;
        return f->field <= f->left || broken(f, "a field is longer than the message");
    }
    return broken(f, "a field is of a type that does not exist");
}

static bool one_byte(struct grpc_frame *f, uint8_t c)
{
    if (f->shift >= VARINT_BITS_MAX)
        return broken(f, "a number is too long");
    f->varint |= f->shift < 64 ? (uint64_t)(c & 0x7f) << f->shift : 0;
    f->shift += 7;
    f->left--;
    return c >= 0x80 || number_over(f);
}

/* The bytes of a field that are there. */
static size_t of_field(struct grpc_frame *f, struct xp_span bytes)
{
    size_t n = bytes.n < f->field ? bytes.n : (size_t)f->field;
    if (f->state == FRAME_PROFILE) {
        f->profile_n += n;
        if (f->profile_fn)
            f->profile_fn(f->ctx, xp_span_of(bytes.p, n));
    }
    f->field -= n;
    f->left -= (uint32_t)n; /* field <= left */
    if (f->field == 0)
        f->state = FRAME_TAG;
    return n;
}

bool frame_feed(struct grpc_frame *f, struct xp_span bytes)
{
    for (size_t i = 0; i < bytes.n && !f->why;) {
        if (f->state == FRAME_HEAD) {
            f->head[f->head_n++] = bytes.p[i++];
            if (f->head_n == FRAME_PREFIX)
                head_over(f);
        } else if (f->left == 0) {
            broken(f, "something follows the message");
        } else if (f->state == FRAME_SKIP || f->state == FRAME_PROFILE) {
            i += of_field(f, xp_span_of(bytes.p + i, bytes.n - i));
        } else {
            one_byte(f, bytes.p[i++]);
        }
    }
    return !f->why;
}

bool frame_is_whole(const struct grpc_frame *f)
{
    return !f->why && f->seen && f->left == 0 && f->state == FRAME_TAG && f->shift == 0;
}

void frame_put(struct xp_buf *b, struct xp_span message)
{
    uint32_t n = (uint32_t)message.n;
    uint8_t head[FRAME_PREFIX] = {0, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
                                  (uint8_t)n};
    xp_buf_add(b, head, sizeof head);
    xp_buf_span(b, message);
}

/* --- head and trailers --- */

static size_t unescape(const char *s, uint8_t *c)
{
    int high = s[0] == '%' ? xp_hex_value((uint8_t)s[1]) : -1;
    int low = high >= 0 ? xp_hex_value((uint8_t)s[2]) : -1;
    *c = low >= 0 ? (uint8_t)(high << 4 | low) : (uint8_t)s[0];
    if (*c < 0x20 || *c == 0x7f)
        *c = ' ';
    return low >= 0 ? 3 : 1;
}

void grpc_text(const char *message, char *to, size_t n)
{
    size_t at = 0;
    while (*message && at + 1 < n)
        message += unescape(message, (uint8_t *)&to[at++]);
    to[at] = '\0';
    const uint8_t *p = (const uint8_t *)to, *end = p + at;
    while (*message && p < end) { /* cut: not within a character */
        bool ok;
        const uint8_t *from = p;
        p += xp_utf8_step(p, end, &ok);
        if (!ok && p >= end)
            to[from - (const uint8_t *)to] = '\0';
    }
}

int grpc_number(const char *text)
{
    int v = 0;
    size_t n = text ? strspn(text, "0123456789") : 0;
    if (n == 0 || n > 2 || text[n])
        return -1;
    for (size_t i = 0; i < n; i++)
        v = 10 * v + (text[i] - '0');
    return v <= 16 ? v : -1;
}

void grpc_timeout_text(uint32_t ms, char to[16])
{
    if (ms < 100000000)
        snprintf(to, 16, "%um", (unsigned)ms);
    else
        snprintf(to, 16, "%uS", (unsigned)(ms / 1000));
}
