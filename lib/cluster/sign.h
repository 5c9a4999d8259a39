/* lib/cluster/sign.h - messages between our own processes, signed with a key they share.
 *
 * A signature is "<unix seconds>.<hex of HMAC-SHA-256(key, seconds, path, body)>" and is good for
 * SIGN_WINDOW_S before and after its time. What is signed are reads of what the asker may read
 * anyway, so that one sent again within the window gains nothing.
 *
 * Keys: lib/auth/keyring.h. Compares take constant time.
 */
#ifndef XP_CLUSTER_SIGN_H
#define XP_CLUSTER_SIGN_H

#include "lib/auth/keyring.h"

#define SIGN_WINDOW_S 120
#define SIGN_TEXT_MAX 96
#define SIGN_PATH_MAX 64 /* our own paths are short; a longer one is never verified */

/* Writes a signature, NUL-terminated. */
void xp_sign(const struct xp_keyring *k, int64_t now_s, struct xp_span path, struct xp_span body,
             char text[SIGN_TEXT_MAX]);
bool xp_sign_check(const struct xp_keyring *k, int64_t now_s, struct xp_span path,
                   struct xp_span body, struct xp_span text);

#endif
