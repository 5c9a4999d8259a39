/* lib/base/utf8.h - checking and mending UTF-8 (RFC 3629: no surrogates, no overlong forms). */
#ifndef XP_BASE_UTF8_H
#define XP_BASE_UTF8_H

#include "lib/base/buf.h"

bool xp_utf8_valid(struct xp_span s);

/* Appends s with each maximal ill-formed run's bytes replaced by U+FFFD. */
void xp_utf8_append(struct xp_buf *b, struct xp_span s);

#endif
