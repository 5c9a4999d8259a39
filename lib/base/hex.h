/* lib/base/hex.h - bytes as hexadecimal digits, in lower case. */
#ifndef XP_BASE_HEX_H
#define XP_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 2 * n digits and NUL. */
void xp_hex(const uint8_t *p, size_t n, char *out);
/* n bytes of 2 * n digits. False when one of them is none, or in upper case: there is one form of
 * each number. text need not end in NUL. */
bool xp_unhex(const char *text, size_t n, uint8_t *out);
/* Of one digit, of either case; -1 when it is none. */
int xp_hex_value(uint8_t digit);

#endif
