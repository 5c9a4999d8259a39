/* lib/auth/keyring.h - secret keys from a file, and what is signed with them.
 *
 * A file holds one key a line, of at least KEYRING_KEY_MIN bytes: the first signs, any verifies, so
 * that a key is changed by adding the new one everywhere as second, then as first, then dropping
 * the old one.
 *
 * Threads    A keyring never changes; any number may use it. Compares take constant time.
 * Errors     XP_IO, XP_BAD_REQUEST with a sentence that never holds a key.
 */
#ifndef XP_AUTH_KEYRING_H
#define XP_AUTH_KEYRING_H

#include "lib/base/span.h"
#include "lib/base/status.h"

#define KEYRING_KEY_MIN 16
#define KEYRING_KEYS_MAX 8
#define KEYRING_MAC 32

struct xp_keyring;

enum xp_status xp_keyring_open(const char *path, struct xp_keyring **out, struct xp_error *err);
/* One key, drawn at random: good as long as the process lives. */
struct xp_keyring *xp_keyring_random(void);
void xp_keyring_close(struct xp_keyring *k); /* NULL is fine; keys are wiped */

/* HMAC-SHA-256 of purpose, a zero byte and bytes, with the first key. What is signed for one
 * purpose is no signature for another. */
void xp_keyring_sign(const struct xp_keyring *k, const char *purpose, struct xp_span bytes,
                     uint8_t mac[KEYRING_MAC]);
/* A key for other uses, made of the i-th one and the purpose; false: there are not so many. */
bool xp_keyring_derive(const struct xp_keyring *k, size_t i, const char *purpose,
                       uint8_t key[KEYRING_MAC]);
/* Whether mac is that of any key. */
bool xp_keyring_check(const struct xp_keyring *k, const char *purpose, struct xp_span bytes,
                      const uint8_t mac[KEYRING_MAC]);

#endif
