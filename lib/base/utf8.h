/* lib/base/utf8.h - checking and mending UTF-8 (RFC 3629: no surrogates, no overlong forms). */
#ifndef XP_BASE_UTF8_H
#define XP_BASE_UTF8_H

#include "lib/base/buf.h"

/* Steps over one character at p < end: its bytes, with *ok true; or, with *ok false, the bytes
 * that one U+FFFD stands for (what could begin a character and does not end one, as browsers
 * and Python replace it). At least 1. */
size_t xp_utf8_step(const uint8_t *p, const uint8_t *end, bool *ok);

bool xp_utf8_valid(struct xp_span s);

/* Appends s with ill-formed bytes replaced by U+FFFD, see xp_utf8_step. */
void xp_utf8_append(struct xp_buf *b, struct xp_span s);

#endif
