/* lib/cluster/sign.h - messages between our own processes, signed with a key they share.
 *
 * A signature is "<unix seconds>.<hex of HMAC-SHA-256(key, seconds, path, body)>" and is good for
 * SIGN_WINDOW_S before and after its time. What is signed are reads of what the asker may read
 * anyway, so that one sent again within the window gains nothing.
 *
 * Keys come from a file with one key a line, of at least SIGN_KEY_MIN bytes: the first signs, any
 * verifies, so that a key is changed by adding the new one everywhere as second, then as first,
 * then dropping the old one.
 *
 * Threads    A keyring never changes; any number may use it. Compares take constant time.
 * Errors     xp_sign_open: XP_IO, XP_BAD_REQUEST with a sentence that never holds a key.
 */
#ifndef XP_CLUSTER_SIGN_H
#define XP_CLUSTER_SIGN_H

#include "lib/base/span.h"
#include "lib/base/status.h"

#define SIGN_KEY_MIN 16
#define SIGN_KEYS_MAX 8
#define SIGN_WINDOW_S 120
#define SIGN_TEXT_MAX 96
#define SIGN_PATH_MAX 64 /* our own paths are short; a longer one is never verified */

struct xp_keyring;

enum xp_status xp_sign_open(const char *path, struct xp_keyring **out, struct xp_error *err);
void xp_sign_close(struct xp_keyring *k); /* NULL is fine; keys are wiped */

/* Writes a signature, NUL-terminated. */
void xp_sign(const struct xp_keyring *k, int64_t now_s, struct xp_span path, struct xp_span body,
             char text[SIGN_TEXT_MAX]);
bool xp_sign_check(const struct xp_keyring *k, int64_t now_s, struct xp_span path,
                   struct xp_span body, struct xp_span text);

#endif
