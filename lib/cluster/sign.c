#include "lib/cluster/sign.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY_MAX 512
#define MAC_BYTES 32

struct xp_keyring {
    size_t n;
    struct {
        size_t n;
        uint8_t bytes[KEY_MAX];
    } keys[SIGN_KEYS_MAX];
};

static enum xp_status add_key(struct xp_keyring *k, const char *line, size_t n,
                              struct xp_error *err)
{
    if (n < SIGN_KEY_MIN || n > KEY_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0, "a key is shorter than %d bytes or longer than %d",
                       SIGN_KEY_MIN, KEY_MAX);
    if (k->n == SIGN_KEYS_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0, "more than %d keys", SIGN_KEYS_MAX);
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

enum xp_status xp_sign_open(const char *path, struct xp_keyring **out, struct xp_error *err)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return xp_fail(err, XP_IO, 0, "cannot open \"%s\": %s", path, strerror(errno));
    struct xp_keyring *k = calloc(1, sizeof *k);
    XP_ASSERT(k);
    enum xp_status status = read_keys(k, f, err);
    fclose(f);
    if (status != XP_OK) {
        xp_sign_close(k);
        return status;
    }
    *out = k;
    return XP_OK;
}

void xp_sign_close(struct xp_keyring *k)
{
    if (!k)
        return;
    OPENSSL_cleanse(k, sizeof *k);
    free(k);
}

/* Lengths are in what is signed, so that no byte can move from the path to the body. */
static void mac_of(const struct xp_keyring *k, size_t key, int64_t at, struct xp_span path,
                   struct xp_span body, uint8_t mac[MAC_BYTES])
{
    uint8_t digest[MAC_BYTES];
    char text[64 + SIGN_PATH_MAX + 2 * MAC_BYTES];
    unsigned n = MAC_BYTES;

    XP_ASSERT(EVP_Digest(body.n ? body.p : (const uint8_t *)"", body.n, digest, NULL, EVP_sha256(),
                         NULL) == 1);
    XP_ASSERT(path.n <= SIGN_PATH_MAX);
    int used = snprintf(text, sizeof text, "xprofd-1 %" PRId64 " %zu %.*s ", at, path.n,
                        (int)path.n, path.n ? (const char *)path.p : "");
    for (int i = 0; i < MAC_BYTES; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%02x", digest[i]);
    XP_ASSERT(HMAC(EVP_sha256(), k->keys[key].bytes, (int)k->keys[key].n, (const uint8_t *)text,
                   (size_t)used, mac, &n));
}

void xp_sign(const struct xp_keyring *k, int64_t now_s, struct xp_span path, struct xp_span body,
             char text[SIGN_TEXT_MAX])
{
    uint8_t mac[MAC_BYTES];
    mac_of(k, 0, now_s, path, body, mac);
    int n = snprintf(text, SIGN_TEXT_MAX, "%" PRId64 ".", now_s);
    for (int i = 0; i < MAC_BYTES; i++)
        n += snprintf(text + n, SIGN_TEXT_MAX - (size_t)n, "%02x", mac[i]);
}

static int nibble(uint8_t c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse(struct xp_span text, int64_t *at, uint8_t mac[MAC_BYTES])
{
    const uint8_t *dot = text.n && text.n < SIGN_TEXT_MAX ? memchr(text.p, '.', text.n) : NULL;
    if (!dot || dot == text.p || dot - text.p > 12 ||
        (size_t)(text.p + text.n - dot - 1) != (size_t)2 * MAC_BYTES)
        return false;
    *at = 0;
    for (const uint8_t *p = text.p; p < dot; p++) {
        if (*p < '0' || *p > '9')
            return false;
        *at = *at * 10 + (*p - '0');
    }
    for (int i = 0; i < MAC_BYTES; i++) {
        int high = nibble(dot[1 + 2 * i]), low = nibble(dot[2 + 2 * i]);
        if (high < 0 || low < 0)
            return false;
        mac[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool xp_sign_check(const struct xp_keyring *k, int64_t now_s, struct xp_span path,
                   struct xp_span body, struct xp_span text)
{
    uint8_t given[MAC_BYTES], mac[MAC_BYTES];
    int64_t at;
    bool good = false;

    if (path.n > SIGN_PATH_MAX || !parse(text, &at, given) || at < now_s - SIGN_WINDOW_S ||
        at > now_s + SIGN_WINDOW_S)
        return false;
    for (size_t i = 0; i < k->n; i++) {
        mac_of(k, i, at, path, body, mac);
        good |= CRYPTO_memcmp(mac, given, MAC_BYTES) == 0;
    }
    return good;
}
