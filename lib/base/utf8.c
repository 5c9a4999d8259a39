#include "lib/base/utf8.h"

/* The length a lead byte promises, and the bounds of the second byte, which rule out overlong
 * forms, surrogates and what lies above U+10FFFF (RFC 3629, table 3-7 of Unicode). */
static size_t lead(uint8_t c, uint8_t *lo, uint8_t *hi)
{
    *lo = 0x80;
    *hi = 0xbf;
    if (c < 0x80)
        return 1;
    if (c < 0xc2 || c > 0xf4)
        return 0;
    if (c < 0xe0)
        return 2;
    if (c < 0xf0) {
        *lo = c == 0xe0 ? 0xa0 : 0x80;
        *hi = c == 0xed ? 0x9f : 0xbf;
        return 3;
    }
    *lo = c == 0xf0 ? 0x90 : 0x80;
    *hi = c == 0xf4 ? 0x8f : 0xbf;
    return 4;
}

size_t xp_utf8_step(const uint8_t *p, const uint8_t *end, bool *ok)
{
    uint8_t lo, hi;
    size_t n = lead(*p, &lo, &hi), have = (size_t)(end - p), i = 1;
    while (i < n && i < have && p[i] >= lo && p[i] <= hi) {
        lo = 0x80;
        hi = 0xbf;
        i++;
    }
    *ok = i == n;
    return i;
}

static const uint8_t *skip_ascii(const uint8_t *p, const uint8_t *end)
{
    while (end - p >= 8) {
        uint64_t v;
        memcpy(&v, p, sizeof v);
        if (v & UINT64_C(0x8080808080808080))
            break;
        p += 8;
    }
    while (p < end && *p < 0x80)
        p++;
    return p;
}

bool xp_utf8_valid(struct xp_span s)
{
    if (s.n == 0)
        return true;
    const uint8_t *end = s.p + s.n;
    for (const uint8_t *p = skip_ascii(s.p, end); p < end; p = skip_ascii(p, end)) {
        bool ok;
        p += xp_utf8_step(p, end, &ok);
        if (!ok)
            return false;
    }
    return true;
}

void xp_utf8_append(struct xp_buf *b, struct xp_span s)
{
    if (s.n == 0)
        return;
    const uint8_t *p = s.p, *end = s.p + s.n, *run = p;
    while ((p = skip_ascii(p, end)) < end) {
        bool ok;
        size_t n = xp_utf8_step(p, end, &ok);
        if (!ok) {
            xp_buf_add(b, run, (size_t)(p - run));
            xp_buf_add(b, "\xef\xbf\xbd", 3);
            run = p + n;
        }
        p += n;
    }
    xp_buf_add(b, run, (size_t)(p - run));
}
