/* lib/auth/secret.h - bricks for what must not be guessed. */
#ifndef XP_AUTH_SECRET_H
#define XP_AUTH_SECRET_H

#include "lib/base/span.h"

#define SECRET_SHA256 32

void xp_secret_sha256(struct xp_span bytes, uint8_t digest[SECRET_SHA256]);
void xp_secret_random(uint8_t *p, size_t n);
/* In a time that tells nothing of the content. */
bool xp_secret_same(struct xp_span a, struct xp_span b);
void xp_secret_wipe(void *p, size_t n);

#endif
