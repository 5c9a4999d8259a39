#include "lib/auth/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "lib/base/status.h"

void xp_secret_sha256(struct xp_span bytes, uint8_t digest[SECRET_SHA256])
{
    const void *p = bytes.n ? (const void *)bytes.p : "";
    XP_ASSERT(EVP_Digest(p, bytes.n, digest, NULL, EVP_sha256(), NULL) == 1);
}

void xp_secret_random(uint8_t *p, size_t n)
{
    XP_ASSERT(RAND_bytes(p, (int)n) == 1);
}

bool xp_secret_same(struct xp_span a, struct xp_span b)
{
    return a.n == b.n && (a.n == 0 || CRYPTO_memcmp(a.p, b.p, a.n) == 0);
}

void xp_secret_wipe(void *p, size_t n)
{
    OPENSSL_cleanse(p, n);
}
