#include "lib/cluster/sign.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "lib/base/hex.h"

#define MAC_BYTES KEYRING_MAC
#define PURPOSE "xprofd rpc 1"

/* What is signed; lengths are in it, so that no byte can move from the path to the body. */
struct text {
    char bytes[64 + SIGN_PATH_MAX + 2 * MAC_BYTES];
    size_t n;
};

static void text_of(int64_t at, struct xp_span path, struct xp_span body, struct text *t)
{
    uint8_t digest[MAC_BYTES];

    XP_ASSERT(EVP_Digest(body.n ? body.p : (const uint8_t *)"", body.n, digest, NULL, EVP_sha256(),
                         NULL) == 1);
    XP_ASSERT(path.n <= SIGN_PATH_MAX);
    int used = snprintf(t->bytes, sizeof t->bytes, "%" PRId64 " %zu %.*s ", at, path.n, (int)path.n,
                        path.n ? (const char *)path.p : "");
    xp_hex(digest, MAC_BYTES, t->bytes + used);
    t->n = (size_t)used + 2 * MAC_BYTES;
}

void xp_sign(const struct xp_keyring *k, int64_t now_s, struct xp_span path, struct xp_span body,
             char text[SIGN_TEXT_MAX])
{
    uint8_t mac[MAC_BYTES];
    struct text t;

    text_of(now_s, path, body, &t);
    xp_keyring_sign(k, PURPOSE, xp_span_of(t.bytes, t.n), mac);
    int n = snprintf(text, SIGN_TEXT_MAX, "%" PRId64 ".", now_s);
    xp_hex(mac, MAC_BYTES, text + n);
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
    return xp_unhex((const char *)dot + 1, MAC_BYTES, mac);
}

bool xp_sign_check(const struct xp_keyring *k, int64_t now_s, struct xp_span path,
                   struct xp_span body, struct xp_span text)
{
    uint8_t given[MAC_BYTES];
    struct text t;
    int64_t at;

    if (path.n > SIGN_PATH_MAX || !parse(text, &at, given) || at < now_s - SIGN_WINDOW_S ||
        at > now_s + SIGN_WINDOW_S)
        return false;
    text_of(at, path, body, &t);
    return xp_keyring_check(k, PURPOSE, xp_span_of(t.bytes, t.n), given);
}
