#include "lib/auth/keyring.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY_MAX 512

struct xp_keyring {
    size_t n;
    struct {
        size_t n;
        uint8_t bytes[KEY_MAX];
    } keys[KEYRING_KEYS_MAX];
};

static enum xp_status add_key(struct xp_keyring *k, const char *line, size_t n,
                              struct xp_error *err)
{
    if (n < KEYRING_KEY_MIN || n > KEY_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0, "a key is shorter than %d bytes or longer than %d",
                       KEYRING_KEY_MIN, KEY_MAX);
    if (k->n == KEYRING_KEYS_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0, "more than %d keys", KEYRING_KEYS_MAX);
    memcpy(k->keys[k->n].bytes, line, n);
    k->keys[k->n++].n = n;
    return XP_OK;
}

static enum xp_status read_keys(struct xp_keyring *k, FILE *f, struct xp_error *err)
{
    enum xp_status status = XP_OK;
    char line[KEY_MAX + 8];
    while (status == XP_OK && fgets(line, sizeof line, f)) {
        size_t n = strcspn(line, "\r\n");
        if (n > 0)
            status = add_key(k, line, n, err);
    }
    OPENSSL_cleanse(line, sizeof line);
    if (status == XP_OK && k->n == 0)
        status = xp_fail(err, XP_BAD_REQUEST, 0, "there is no key in the file");
    return status;
}

enum xp_status xp_keyring_open(const char *path, struct xp_keyring **out, struct xp_error *err)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return xp_fail(err, XP_IO, 0, "cannot open \"%s\": %s", path, strerror(errno));
    struct xp_keyring *k = calloc(1, sizeof *k);
    XP_ASSERT(k);
    enum xp_status status = read_keys(k, f, err);
    fclose(f);
    if (status != XP_OK) {
        xp_keyring_close(k);
        return status;
    }
    *out = k;
    return XP_OK;
}

void xp_keyring_close(struct xp_keyring *k)
{
    if (!k)
        return;
    OPENSSL_cleanse(k, sizeof *k);
    free(k);
}

static void mac_of(const struct xp_keyring *k, size_t key, const char *purpose,
                   struct xp_span bytes, uint8_t mac[KEYRING_MAC])
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                           OSSL_PARAM_construct_end()};
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *c = hmac ? EVP_MAC_CTX_new(hmac) : NULL;
    size_t n = 0;

    XP_ASSERT(c && EVP_MAC_init(c, k->keys[key].bytes, k->keys[key].n, params) == 1);
    XP_ASSERT(EVP_MAC_update(c, (const uint8_t *)purpose, strlen(purpose) + 1) == 1);
    XP_ASSERT(bytes.n == 0 || EVP_MAC_update(c, bytes.p, bytes.n) == 1);
    XP_ASSERT(EVP_MAC_final(c, mac, &n, KEYRING_MAC) == 1 && n == KEYRING_MAC);
    EVP_MAC_CTX_free(c);
    EVP_MAC_free(hmac);
}

void xp_keyring_sign(const struct xp_keyring *k, const char *purpose, struct xp_span bytes,
                     uint8_t mac[KEYRING_MAC])
{
    mac_of(k, 0, purpose, bytes, mac);
}

bool xp_keyring_check(const struct xp_keyring *k, const char *purpose, struct xp_span bytes,
                      const uint8_t mac[KEYRING_MAC])
{
    uint8_t right[KEYRING_MAC];
    bool good = false;
    for (size_t i = 0; i < k->n; i++) {
        mac_of(k, i, purpose, bytes, right);
        good |= CRYPTO_memcmp(right, mac, KEYRING_MAC) == 0;
    }
    return good;
}

struct xp_keyring *xp_keyring_random(void)
{
    struct xp_keyring *k = calloc(1, sizeof *k);
    XP_ASSERT(k && RAND_bytes(k->keys[0].bytes, KEYRING_MAC) == 1);
    k->keys[0].n = KEYRING_MAC;
    k->n = 1;
    return k;
}

bool xp_keyring_derive(const struct xp_keyring *k, size_t i, const char *purpose,
                       uint8_t key[KEYRING_MAC])
{
    if (i >= k->n)
        return false;
    mac_of(k, i, "xprofd derived key", xp_span_str(purpose), key);
    return true;
}
