#include "lib/auth/seal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "lib/auth/base64url.h"

#define VERSION 1
#define NONCE 12
#define TAG 16
#define TIME 8
#define HEAD (1 + NONCE)
#define KEY 32

/* Encrypts, or decrypts and checks, in place. */
static bool crypt(const uint8_t key[KEY], const uint8_t *nonce, const char *purpose, uint8_t *p,
                  size_t n, uint8_t *tag, bool seal)
{
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    int got = 0;
    XP_ASSERT(c);
    bool ok =
        EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, key, nonce, seal) == 1 &&
        EVP_CipherUpdate(c, NULL, &got, (const uint8_t *)purpose, (int)strlen(purpose)) == 1 &&
        EVP_CipherUpdate(c, p, &got, p, (int)n) == 1 &&
        (seal || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG, tag) == 1) &&
        EVP_CipherFinal_ex(c, p + n, &got) == 1 &&
        (!seal || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG, tag) == 1);
    EVP_CIPHER_CTX_free(c);
    return ok;
}

void xp_seal(const struct xp_keyring *k, const char *purpose, int64_t until_s, struct xp_span bytes,
             struct xp_buf *text)
{
    uint8_t raw[HEAD + TIME + SEAL_MAX + TAG], key[KEY];
    size_t n = TIME + bytes.n;

    XP_ASSERT(bytes.n <= SEAL_MAX && xp_keyring_derive(k, 0, purpose, key));
    raw[0] = VERSION;
    XP_ASSERT(RAND_bytes(raw + 1, NONCE) == 1);
    for (int i = 0; i < TIME; i++)
        raw[HEAD + i] = (uint8_t)((uint64_t)until_s >> (56 - 8 * i));
    if (bytes.n)
        memcpy(raw + HEAD + TIME, bytes.p, bytes.n);
    XP_ASSERT(crypt(key, raw + 1, purpose, raw + HEAD, n, raw + HEAD + n, true));
    xp_base64url_add(text, xp_span_of(raw, HEAD + n + TAG));
    OPENSSL_cleanse(key, sizeof key);
}

static bool open_with(const uint8_t key[KEY], const char *purpose, int64_t now_s,
                      const struct xp_buf *raw, struct xp_buf *bytes, int64_t *until_s)
{
    uint8_t p[TIME + SEAL_MAX + TAG], tag[TAG];
    size_t n = raw->n - HEAD - TAG;
    uint64_t until = 0;

    memcpy(p, raw->p + HEAD, n);
    memcpy(tag, raw->p + HEAD + n, TAG);
    if (!crypt(key, raw->p + 1, purpose, p, n, tag, false))
        return false;
    for (int i = 0; i < TIME; i++)
        until = until << 8 | p[i];
    if ((int64_t)until <= now_s)
        return false;
    if (until_s)
        *until_s = (int64_t)until;
    xp_buf_add(bytes, p + TIME, n - TIME);
    return !bytes->failed;
}

bool xp_unseal(const struct xp_keyring *k, const char *purpose, int64_t now_s, struct xp_span text,
               struct xp_buf *bytes, int64_t *until_s)
{
    uint8_t key[KEY];
    struct xp_buf raw;
    bool ok = false;

    xp_buf_init(&raw, HEAD + TIME + SEAL_MAX + TAG);
    if (text.n && xp_base64url_decode(&raw, text) && raw.n >= HEAD + TIME + TAG &&
        raw.p[0] == VERSION)
        for (size_t i = 0; !ok && xp_keyring_derive(k, i, purpose, key); i++)
            ok = open_with(key, purpose, now_s, &raw, bytes, until_s);
    OPENSSL_cleanse(key, sizeof key);
    xp_buf_fini(&raw);
    return ok;
}
