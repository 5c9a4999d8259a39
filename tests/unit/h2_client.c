#include "tests/unit/h2_client.h"

#include "lib/base/hash.h"
#include "tests/unit/unit.h"

static void put32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

void h2_send(struct peer *p, int type, int flags, uint32_t stream, const void *payload, size_t n)
{
    uint8_t frame[9 + 16384];
    assert_true(n <= 16384);
    put32(frame, (uint32_t)n << 8);
    frame[3] = (uint8_t)type;
    frame[4] = (uint8_t)flags;
    put32(frame + 5, stream);
    if (n)
        memcpy(frame + 9, payload, n);
    peer_send(p, frame, 9 + n);
}

void h2_start(struct peer *p, uint32_t stream_window, uint32_t connection_window)
{
    uint8_t settings[6] = {0, 4};
    peer_say(p, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    put32(settings + 2, stream_window);
    h2_send(p, H2_SETTINGS, 0, 0, settings, sizeof settings);
    if (connection_window > 65535)
        h2_window(p, 0, connection_window - 65535);
}

void h2_window(struct peer *p, uint32_t stream, uint32_t more)
{
    uint8_t payload[4];
    put32(payload, more);
    h2_send(p, H2_WINDOW_UPDATE, 0, stream, payload, sizeof payload);
}

void h2_reset(struct peer *p, uint32_t stream)
{
    h2_send(p, H2_RST_STREAM, 0, stream, (uint8_t[4]){0, 0, 0, 8}, 4);
}

/* A literal header without indexing and without Huffman coding. */
static void put_header(struct xp_buf *b, const char *name, const char *value)
{
    xp_buf_byte(b, 0);
    assert_true(strlen(name) < 127 && strlen(value) < 127);
    xp_buf_byte(b, (uint8_t)strlen(name));
    xp_buf_str(b, name);
    xp_buf_byte(b, (uint8_t)strlen(value));
    xp_buf_str(b, value);
}

void h2_request_at(struct peer *p, uint32_t stream, const char *method, const char *path,
                   const char *authority, const char *accept_encoding, bool end_stream)
{
    struct xp_buf b;
    xp_buf_init(&b, 4096);
    put_header(&b, ":method", method);
    put_header(&b, ":scheme", "http");
    put_header(&b, ":path", path);
    if (authority)
        put_header(&b, ":authority", authority);
    if (accept_encoding)
        put_header(&b, "accept-encoding", accept_encoding);
    h2_send(p, H2_HEADERS, H2_END_HEADERS | (end_stream ? H2_END_STREAM : 0), stream, b.p, b.n);
    xp_buf_fini(&b);
}

void h2_request(struct peer *p, uint32_t stream, const char *method, const char *path)
{
    h2_request_at(p, stream, method, path, "localhost", NULL, true);
}

bool h2_read(struct peer *p, struct h2_frame *f)
{
    peer_used(p, p->frame_n);
    p->frame_n = 0;
    for (;;) {
        if (!peer_want(p, 9))
            return false;
        f->n = (size_t)p->in.p[0] << 16 | (size_t)p->in.p[1] << 8 | p->in.p[2];
        if (!peer_want(p, 9 + f->n))
            return false;
        f->type = p->in.p[3];
        f->flags = p->in.p[4];
        f->stream = (uint32_t)(p->in.p[5] & 127) << 24 | (uint32_t)p->in.p[6] << 16 |
                    (uint32_t)p->in.p[7] << 8 | p->in.p[8];
        f->payload = p->in.p + 9;
        if (f->type != H2_SETTINGS && f->type != H2_WINDOW_UPDATE)
            break;
        if (f->type == H2_SETTINGS && !(f->flags & H2_ACK))
            h2_send(p, H2_SETTINGS, H2_ACK, 0, NULL, 0);
        peer_used(p, 9 + f->n);
    }
    p->frame_n = 9 + f->n;
    return true;
}

int h2_status(const struct h2_frame *f)
{
    static const int indexed[] = {200, 204, 206, 304, 400, 404, 500};
    const uint8_t *p = f->payload;
    int status = 0;

    assert_int_equal(f->type, H2_HEADERS);
    assert_true(f->n > 0);
    /* Static table entries 8 to 14. */
    if (p[0] >= 0x88 && p[0] <= 0x8e)
        return indexed[p[0] - 0x88];
    /* A literal with the static name 8. h2o writes numbers this short as they are, or Huffman
     * coded, where digits take five or six bits. */
    assert_true((p[0] & 0x0f) == 8 || (p[0] & 0x3f) == 8);
    size_t n = p[1] & 127;
    if (!(p[1] & 128)) {
        for (size_t i = 0; i < n; i++)
            status = status * 10 + (p[2 + i] - '0');
        return status;
    }
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; i++)
        bits = bits << 8 | (i < n ? p[2 + i] : 0xff);
    for (int left = 24, i = 0; i < 3; i++) {
        uint32_t top5 = bits >> (left - 5) & 31;
        if (top5 < 3) {
            status = status * 10 + (int)top5;
            left -= 5;
        } else {
            status = status * 10 + (int)(bits >> (left - 6) & 63) - 0x19 + 3;
            left -= 6;
        }
    }
    return status;
}

void h2_read_reply(struct peer *p, uint32_t stream, struct h2_reply *r)
{
    struct h2_frame f;

    *r = (struct h2_reply){.sum = XP_FNV_INIT};
    while (!r->ended && !r->reset && h2_read(p, &f)) {
        if (f.stream != stream) {
            /* What a stream that was reset still sent has used up the connection's window. */
            if (f.type == H2_DATA && f.n)
                h2_window(p, 0, (uint32_t)f.n);
            continue;
        }
        if (f.type == H2_HEADERS)
            r->status = h2_status(&f);
        if (f.type == H2_DATA && f.n) {
            r->n += f.n;
            r->sum = xp_fnv(r->sum, xp_span_of(f.payload, f.n));
            h2_window(p, 0, (uint32_t)f.n);
            h2_window(p, stream, (uint32_t)f.n);
        }
        if (f.type == H2_RST_STREAM)
            r->reset = true;
        if ((f.type == H2_DATA || f.type == H2_HEADERS) && f.flags & H2_END_STREAM)
            r->ended = true;
    }
}
