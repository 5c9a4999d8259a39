/* lib/auth/jwt.h - signed tokens of others (JWT, RFC 7519), checked against their public keys.
 *
 * Only RS256 with RSA keys of 2048 bits or more and ES256 with P-256 keys, and of these what the
 * rules allow: the algorithm in the token's header is held against that list before anything is
 * computed with it, and a key is used only for its own kind. A token without a `kid` is tried with
 * all keys. iss, aud, exp and sub have to be there; exp, nbf and iat may be off by JWT_SKEW_S.
 *
 * Ownership  Key sets are shared and never change. Claims belong to the caller.
 * Limits     JWT_MAX bytes a token, JWT_KEYS_MAX_BYTES a key set, JWT_KEYS_MAX usable keys.
 * Threads    Any.
 * Errors     A sentence that never holds any of the token.
 */
#ifndef XP_AUTH_JWT_H
#define XP_AUTH_JWT_H

#include <jansson.h>

#include "lib/base/span.h"
#include "lib/base/status.h"

#define JWT_MAX ((size_t)16 << 10)
#define JWT_KEYS_MAX_BYTES ((size_t)256 << 10)
#define JWT_KEYS_MAX 64
#define JWT_SKEW_S 60

struct xp_keyset;

/* A JWK set. Keys of other kinds and uses are passed over; XP_BAD_REQUEST when none is left. */
enum xp_status xp_keyset_parse(struct xp_span json, struct xp_keyset **out, struct xp_error *err);
struct xp_keyset *xp_keyset_ref(struct xp_keyset *ks);
void xp_keyset_unref(struct xp_keyset *ks); /* NULL is fine */

enum { JWT_RS256 = 1, JWT_ES256 = 2 };

struct xp_jwt_rules {
    int algorithms;
    const char *issuer;
    const char *const *audiences; /* any of them; NULL-terminated */
};

enum xp_jwt_verdict {
    JWT_GOOD,
    JWT_BAD,
    JWT_KEY_UNKNOWN, /* no key fits: there may be a newer set */
};

/* ks NULL: no keys are known yet. JWT_GOOD: *claims is an object, to be given back. */
enum xp_jwt_verdict xp_jwt_check(const struct xp_keyset *ks, const struct xp_jwt_rules *rules,
                                 struct xp_span token, int64_t now_s, json_t **claims,
                                 struct xp_error *err);

#endif
