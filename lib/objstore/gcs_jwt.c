/* A claim signed with a service account's key: RS256. */
#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>

#include "lib/objstore/gcs_int.h"

#define LIFE_S 3600

static void add_base64url(struct xp_buf *b, const void *p, size_t n)
{
    size_t room = (n + 2) / 3 * 4 + 1;
    uint8_t *to = xp_buf_room(b, room);
    if (!to)
        return;
    size_t m = (size_t)EVP_EncodeBlock(to, p, (int)n);
    while (m && to[m - 1] == '=')
        m--;
    for (size_t i = 0; i < m; i++)
        to[i] = to[i] == '+' ? '-' : to[i] == '/' ? '_' : to[i];
    b->n += m;
}

static void add_json(struct xp_buf *b, json_t *o)
{
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    if (text)
        add_base64url(b, text, strlen(text));
    else
        b->failed = true;
    free(text);
    json_decref(o);
}

static bool sign(struct xp_buf *b, const char *pem)
{
    uint8_t sig[1024];
    size_t n = sizeof sig;
    BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)"") : NULL;
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    bool ok = key && md && EVP_PKEY_base_id(key) == EVP_PKEY_RSA &&
              EVP_PKEY_size(key) <= (int)sizeof sig &&
              EVP_DigestSignInit(md, NULL, EVP_sha256(), NULL, key) == 1 &&
              EVP_DigestSign(md, sig, &n, b->p, b->n) == 1;
    if (ok) {
        xp_buf_byte(b, '.');
        add_base64url(b, sig, n);
    }
    EVP_MD_CTX_free(md);
    EVP_PKEY_free(key);
    BIO_free(bio);
    return ok;
}

char *gcs_auth_jwt(const char *pem, const char *key_id, const char *email, const char *scope,
                   const char *audience, int64_t now_s, struct xp_error *err)
{
    struct xp_buf b;
    size_t n;
    json_int_t now = now_s, end = now + LIFE_S;
    json_t *head = json_pack("{s:s, s:s}", "alg", "RS256", "typ", "JWT");
    if (head && key_id)
        json_object_set_new(head, "kid", json_string(key_id));
    xp_buf_init(&b, 16384);
    add_json(&b, head);
    xp_buf_byte(&b, '.');
    add_json(&b, json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss", email, "scope", scope, "aud",
                           audience, "iat", now, "exp", end));
    bool ok = !b.failed && sign(&b, pem);
    xp_buf_byte(&b, 0);
    if (ok && !b.failed)
        return (char *)xp_buf_take(&b, &n);
    xp_buf_fini(&b);
    xp_fail(err, XP_BAD_REQUEST, 0,
            "the service account's private key cannot be used: a PEM of an "
            "RSA key is expected");
    return NULL;
}
