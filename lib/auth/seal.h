/* lib/auth/seal.h - what a client keeps for us and may neither read nor change: cookies.
 *
 * AES-256-GCM with a key derived from the keyring's first key and the purpose; any key of the ring
 * opens. What was sealed for one purpose does not open for another, nor after its time.
 *
 * Limits     SEAL_MAX bytes of content; the text is about a third longer, and 60 bytes.
 * Threads    Any.
 */
#ifndef XP_AUTH_SEAL_H
#define XP_AUTH_SEAL_H

#include "lib/auth/keyring.h"
#include "lib/base/buf.h"

#define SEAL_MAX ((size_t)8 << 10)

/* Appends the text, which is base64url. */
void xp_seal(const struct xp_keyring *k, const char *purpose, int64_t until_s, struct xp_span bytes,
             struct xp_buf *text);

/* Appends the content. False for a text that was altered, sealed by another key or for another
 * purpose, or whose time is over. until_s may be NULL. */
bool xp_unseal(const struct xp_keyring *k, const char *purpose, int64_t now_s, struct xp_span text,
               struct xp_buf *bytes, int64_t *until_s);

#endif
