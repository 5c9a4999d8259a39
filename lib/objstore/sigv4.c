#include "lib/objstore/sigv4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <time.h>

#include "lib/base/hex.h"

#define HASH 32

void sigv4_hex(struct xp_span bytes, char out[SIGV4_HEX])
{
    uint8_t hash[HASH] = {0};
    unsigned n = sizeof hash;
    EVP_Digest(bytes.n ? (const void *)bytes.p : "", bytes.n, hash, &n, EVP_sha256(), NULL);
    xp_hex(hash, HASH, out);
}

void sigv4_date(int64_t now_s, char out[SIGV4_DATE])
{
    struct tm tm;
    time_t t = (time_t)now_s;
    gmtime_r(&t, &tm);
    strftime(out, SIGV4_DATE, "%Y%m%dT%H%M%SZ", &tm);
}

static bool mac(const uint8_t *key, size_t nkey, struct xp_span text, uint8_t out[HASH])
{
    unsigned n = HASH;
    return HMAC(EVP_sha256(), key, (int)nkey, text.p, text.n, out, &n) && n == HASH;
}

static void add_names(const struct sigv4 *s, struct xp_buf *b)
{
    for (size_t i = 0; i < s->n_headers; i++)
        xp_buf_fmt(b, "%s%s", i ? ";" : "", s->headers[i].name);
}

static bool canonical_hash(const struct sigv4 *s, char out[SIGV4_HEX])
{
    struct xp_buf b;
    xp_buf_init(&b, 32768);
    xp_buf_fmt(&b, "%s\n%s\n%s\n", s->method, s->path, s->query);
    for (size_t i = 0; i < s->n_headers; i++)
        xp_buf_fmt(&b, "%s:%s\n", s->headers[i].name, s->headers[i].value);
    xp_buf_byte(&b, '\n');
    add_names(s, &b);
    xp_buf_fmt(&b, "\n%s", s->payload_hex);
    bool ok = !b.failed;
    if (ok)
        sigv4_hex(xp_buf_all(&b), out);
    xp_buf_fini(&b);
    return ok;
}

/* The key is derived for a day, a region and a service. */
static bool signing_key(const struct sigv4 *s, uint8_t key[HASH])
{
    char first[512];
    int n = snprintf(first, sizeof first, "AWS4%s", s->secret);
    bool ok = n > 0 && (size_t)n < sizeof first &&
              mac((const uint8_t *)first, (size_t)n, xp_span_of(s->date, 8), key) &&
              mac(key, HASH, xp_span_str(s->region), key) &&
              mac(key, HASH, XP_SPAN_LIT("s3"), key) &&
              mac(key, HASH, XP_SPAN_LIT("aws4_request"), key);
    explicit_bzero(first, sizeof first);
    return ok;
}

bool sigv4_sign(const struct sigv4 *s, struct xp_buf *out)
{
    char hash[SIGV4_HEX], scope[128], text[512], sig[SIGV4_HEX];
    uint8_t key[HASH], raw[HASH];
    if (!canonical_hash(s, hash) || strlen(s->region) > 64)
        return false;
    snprintf(scope, sizeof scope, "%.8s/%s/s3/aws4_request", s->date, s->region);
    snprintf(text, sizeof text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", s->date, scope, hash);
    bool ok = signing_key(s, key) && mac(key, HASH, xp_span_str(text), raw);
    explicit_bzero(key, sizeof key);
    if (!ok)
        return false;
    xp_hex(raw, HASH, sig);
    xp_buf_fmt(out, "AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=", s->key_id, scope);
    add_names(s, out);
    xp_buf_fmt(out, ",Signature=%s", sig);
    return !out->failed;
}
