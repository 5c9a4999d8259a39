#include "lib/base/hex.h"

void xp_hex(const uint8_t *p, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *out++ = digits[p[i] >> 4];
        *out++ = digits[p[i] & 15];
    }
    *out = 0;
}

int xp_hex_value(uint8_t digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit |= 0x20;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

bool xp_unhex(const char *text, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < 2 * n; i++) {
        int v = text[i] >= 'A' && text[i] <= 'F' ? -1 : xp_hex_value((uint8_t)text[i]);
        if (v < 0)
            return false;
        out[i / 2] = (uint8_t)(i % 2 ? out[i / 2] << 4 | v : v);
    }
    return true;
}
