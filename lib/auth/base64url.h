/* lib/auth/base64url.h - base64url without padding (RFC 4648 § 5). */
#ifndef XP_AUTH_BASE64URL_H
#define XP_AUTH_BASE64URL_H

#include "lib/base/buf.h"

void xp_base64url_add(struct xp_buf *b, struct xp_span bytes);

/* Appends what text stands for. False, with something or nothing appended, for a text that is not
 * the one that the encoder would make: another alphabet, padding, bits set beyond the last byte. */
bool xp_base64url_decode(struct xp_buf *b, struct xp_span text);

#endif
