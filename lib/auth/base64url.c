#include "lib/auth/base64url.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void xp_base64url_add(struct xp_buf *b, struct xp_span bytes)
{
    uint32_t bits = 0;
    int n = 0;
    for (size_t i = 0; i < bytes.n; i++) {
        bits = bits << 8 | bytes.p[i];
        for (n += 8; n >= 6; n -= 6)
            xp_buf_byte(b, (uint8_t)alphabet[bits >> (n - 6) & 63]);
    }
    if (n)
        xp_buf_byte(b, (uint8_t)alphabet[bits << (6 - n) & 63]);
}

static int value_of(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

bool xp_base64url_decode(struct xp_buf *b, struct xp_span text)
{
    uint32_t bits = 0;
    int n = 0;
    for (size_t i = 0; i < text.n; i++) {
        int v = value_of(text.p[i]);
        if (v < 0)
            return false;
        bits = bits << 6 | (uint32_t)v;
        n += 6;
        if (n >= 8) {
            n -= 8;
            xp_buf_byte(b, (uint8_t)(bits >> n));
        }
    }
    return n < 6 && (bits & ((1u << n) - 1)) == 0 && !b->failed;
}
