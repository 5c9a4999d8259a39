#include "lib/auth/jwt.h"

#include <cjose/cjose.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/auth/base64url.h"

#define RSA_BYTES_MIN 256
#define RSA_BYTES_MAX 1024
#define EXPONENT_MAX 8
#define EC_BYTES 32
#define HEADER_MAX ((size_t)4 << 10)
#define KID_MAX 256
#define TIME_MAX 1e12
#define ES256_TEXT 86 /* 64 bytes */

struct key {
    int algorithm;
    char *kid; /* NULL: it has none */
    cjose_jwk_t *jwk;
};

struct xp_keyset {
    _Atomic int refs;
    size_t n;
    struct key keys[JWT_KEYS_MAX];
};

/* --- key sets --- */

static const char *text_of(const json_t *o, const char *field)
{
    return json_string_value(json_object_get(o, field));
}

static bool is(const char *text, const char *wanted)
{
    return text && strcmp(text, wanted) == 0;
}

/* The one algorithm that the key is good for; 0: none of ours. */
static int algorithm_of(const json_t *o)
{
    const char *use = text_of(o, "use"), *alg = text_of(o, "alg");
    if (use && !is(use, "sig"))
        return 0;
    if (is(text_of(o, "kty"), "RSA") && (!alg || is(alg, "RS256")))
        return JWT_RS256;
    if (is(text_of(o, "kty"), "EC") && is(text_of(o, "crv"), "P-256") && (!alg || is(alg, "ES256")))
        return JWT_ES256;
    return 0;
}

/* A number of the key, at most max bytes. cjose decodes base64 of its own, and ends the process
 * over some that is none: it is given bytes. */
static bool number_of(const json_t *o, const char *field, struct xp_buf *b, size_t max)
{
    xp_buf_init(b, max);
    return xp_base64url_decode(b, xp_span_str(text_of(o, field))) && b->n > 0;
}

static cjose_jwk_t *ec_key(const json_t *o)
{
    struct xp_buf x, y = {0};
    cjose_jwk_t *jwk = NULL;
    cjose_err err;
    if (number_of(o, "x", &x, EC_BYTES) && number_of(o, "y", &y, EC_BYTES) && x.n == EC_BYTES &&
        y.n == EC_BYTES) {
        cjose_jwk_ec_keyspec spec = {
            .crv = CJOSE_JWK_EC_P_256, .x = x.p, .xlen = x.n, .y = y.p, .ylen = y.n};
        jwk = cjose_jwk_create_EC_spec(&spec, &err);
    }
    xp_buf_fini(&x);
    xp_buf_fini(&y);
    return jwk;
}

static cjose_jwk_t *rsa_key(const json_t *o)
{
    struct xp_buf n, e = {0};
    cjose_jwk_t *jwk = NULL;
    cjose_err err;
    if (number_of(o, "n", &n, RSA_BYTES_MAX) && number_of(o, "e", &e, EXPONENT_MAX) &&
        n.n >= RSA_BYTES_MIN && n.p[0] >= 0x80) {
        cjose_jwk_rsa_keyspec spec = {.n = n.p, .nlen = n.n, .e = e.p, .elen = e.n};
        jwk = cjose_jwk_create_RSA_spec(&spec, &err);
    }
    xp_buf_fini(&n);
    xp_buf_fini(&e);
    return jwk;
}

static void add_key(struct xp_keyset *ks, const json_t *o)
{
    int algorithm = json_is_object(o) ? algorithm_of(o) : 0;
    const char *kid = text_of(o, "kid");

    if (!algorithm || (kid && strlen(kid) > KID_MAX))
        return;
    cjose_jwk_t *jwk = algorithm == JWT_ES256 ? ec_key(o) : rsa_key(o);
    if (!jwk)
        return;
    char *copy = kid ? strdup(kid) : NULL;
    XP_ASSERT(!kid || copy);
    ks->keys[ks->n++] = (struct key){algorithm, copy, jwk};
}

enum xp_status xp_keyset_parse(struct xp_span json, struct xp_keyset **out, struct xp_error *err)
{
    if (json.n > JWT_KEYS_MAX_BYTES)
        return xp_fail(err, XP_TOO_LARGE, 0, "the key set is larger than %zu bytes",
                       JWT_KEYS_MAX_BYTES);
    json_t *o = json_loadb((const char *)json.p, json.n, JSON_REJECT_DUPLICATES, NULL);
    const json_t *list = json_object_get(o, "keys");
    struct xp_keyset *ks = calloc(1, sizeof *ks);
    XP_ASSERT(ks);
    atomic_init(&ks->refs, 1);
    for (size_t i = 0; i < json_array_size(list) && ks->n < JWT_KEYS_MAX; i++)
        add_key(ks, json_array_get(list, i));
    bool is_set = json_is_array(list);
    json_decref(o);
    if (ks->n) {
        *out = ks;
        return XP_OK;
    }
    xp_keyset_unref(ks);
    return xp_fail(err, XP_BAD_REQUEST, 0,
                   is_set ? "the key set holds no key for RS256 or ES256" : "this is no key set");
}

struct xp_keyset *xp_keyset_ref(struct xp_keyset *ks)
{
    atomic_fetch_add(&ks->refs, 1);
    return ks;
}

void xp_keyset_unref(struct xp_keyset *ks)
{
    if (!ks || atomic_fetch_sub(&ks->refs, 1) != 1)
        return;
    for (size_t i = 0; i < ks->n; i++) {
        cjose_jwk_release(ks->keys[i].jwk);
        free(ks->keys[i].kid);
    }
    free(ks);
}

/* --- the header, before anything is computed --- */

struct header {
    int algorithm;
    char kid[KID_MAX + 1]; /* "" when there is none */
};

static json_t *decode_object(struct xp_span text, size_t max)
{
    struct xp_buf b;
    json_t *o = NULL;
    xp_buf_init(&b, max);
    if (text.n && xp_base64url_decode(&b, text))
        o = json_loadb((const char *)b.p, b.n, JSON_REJECT_DUPLICATES, NULL);
    xp_buf_fini(&b);
    if (json_is_object(o))
        return o;
    json_decref(o);
    return NULL;
}

/* Whether the text is base64url as it is written, so that no two tokens mean the same; and so that
 * cjose's decoder, which ends the process over some that is not, never sees such. */
static bool is_base64url(struct xp_span text)
{
    struct xp_buf b;
    xp_buf_init(&b, JWT_MAX);
    bool ok = text.n && xp_base64url_decode(&b, text);
    xp_buf_fini(&b);
    return ok;
}

struct parts {
    struct xp_span header, claims, signature;
};

static bool split(struct xp_span token, struct parts *parts)
{
    const uint8_t *end = token.p + token.n;
    const uint8_t *a = token.n ? memchr(token.p, '.', token.n) : NULL;
    const uint8_t *b = a ? memchr(a + 1, '.', (size_t)(end - a - 1)) : NULL;
    if (!b || b + 1 == end || memchr(b + 1, '.', (size_t)(end - b - 1)))
        return false;
    parts->header = xp_span_of(token.p, (size_t)(a - token.p));
    parts->claims = xp_span_of(a + 1, (size_t)(b - a - 1));
    parts->signature = xp_span_of(b + 1, (size_t)(end - b - 1));
    return is_base64url(parts->claims) && is_base64url(parts->signature);
}

static enum xp_status bad(struct xp_error *err, const char *text)
{
    return xp_fail(err, XP_DENIED, 0, "%s", text);
}

static enum xp_status read_header(struct xp_span text, int allowed, struct header *h,
                                  struct xp_error *err)
{
    json_t *o = decode_object(text, HEADER_MAX);
    if (!o)
        return bad(err, "the token's header cannot be read");
    const json_t *kid = json_object_get(o, "kid");
    const char *alg = text_of(o, "alg");
    enum xp_status status = XP_OK;

    h->algorithm = is(alg, "RS256") ? JWT_RS256 : is(alg, "ES256") ? JWT_ES256 : 0;
    h->kid[0] = 0;
    if (!(h->algorithm & allowed))
        status = bad(err, "the token is signed in a way that is not accepted here");
    else if (json_object_get(o, "crit"))
        status = bad(err, "the token has a critical header that is not known here");
    else if (kid && (!json_is_string(kid) || json_string_length(kid) > KID_MAX))
        status = bad(err, "the token's key id cannot be read");
    else if (kid)
        memcpy(h->kid, json_string_value(kid), json_string_length(kid) + 1);
    json_decref(o);
    return status;
}

/* --- the signature --- */

static bool may_fit(const struct key *k, const struct header *h)
{
    return k->algorithm == h->algorithm && (!h->kid[0] || !k->kid || !strcmp(k->kid, h->kid));
}

static enum xp_jwt_verdict check_signature(const struct xp_keyset *ks, const struct header *h,
                                           struct xp_span token, struct xp_error *err)
{
    cjose_err why;
    bool tried = false, good = false;
    cjose_jws_t *jws = cjose_jws_import((const char *)token.p, token.n, &why);

    if (!jws)
        return bad(err, "the token cannot be read"), JWT_BAD;
    for (size_t i = 0; ks && i < ks->n && !good; i++)
        if (may_fit(&ks->keys[i], h)) {
            tried = true;
            good = cjose_jws_verify(jws, ks->keys[i].jwk, &why);
        }
    cjose_jws_release(jws);
    if (good)
        return JWT_GOOD;
    if (tried && h->kid[0])
        return bad(err, "the token's signature is wrong"), JWT_BAD;
    return bad(err, "the token is signed with a key that is not known"), JWT_KEY_UNKNOWN;
}

/* --- the claims --- */

static bool is_wanted(const json_t *aud, const struct xp_jwt_rules *rules)
{
    for (size_t i = 0; rules->audiences[i]; i++)
        if (is(json_string_value(aud), rules->audiences[i]))
            return true;
    return false;
}

static bool is_for_us(const json_t *aud, const struct xp_jwt_rules *rules)
{
    if (!json_is_array(aud))
        return is_wanted(aud, rules);
    for (size_t i = 0; i < json_array_size(aud); i++)
        if (is_wanted(json_array_get(aud, i), rules))
            return true;
    return false;
}

/* A time that is there; NAN and the like cannot be written in JSON. */
static bool time_of(const json_t *o, const char *field, double *at)
{
    const json_t *v = json_object_get(o, field);
    *at = json_number_value(v);
    return json_is_number(v) && *at >= 0 && *at < TIME_MAX;
}

static enum xp_status check_claims(const json_t *o, const struct xp_jwt_rules *rules, int64_t now_s,
                                   struct xp_error *err)
{
    const json_t *sub = json_object_get(o, "sub");
    double now = (double)now_s, at;

    if (!is(text_of(o, "iss"), rules->issuer))
        return bad(err, "the token is of another issuer");
    if (!is_for_us(json_object_get(o, "aud"), rules))
        return bad(err, "the token is for another audience");
    if (!time_of(o, "exp", &at))
        return bad(err, "the token does not say when it ends");
    if (now >= at + JWT_SKEW_S)
        return bad(err, "the token has expired");
    if (json_object_get(o, "nbf") && (!time_of(o, "nbf", &at) || now < at - JWT_SKEW_S))
        return bad(err, "the token is not valid yet");
    if (json_object_get(o, "iat") && (!time_of(o, "iat", &at) || now < at - JWT_SKEW_S))
        return bad(err, "the token was issued in the future");
    if (!json_is_string(sub) || json_string_length(sub) == 0 || json_string_length(sub) > 255)
        return bad(err, "the token does not say whose it is");
    return XP_OK;
}

enum xp_jwt_verdict xp_jwt_check(const struct xp_keyset *ks, const struct xp_jwt_rules *rules,
                                 struct xp_span token, int64_t now_s, json_t **claims,
                                 struct xp_error *err)
{
    struct parts parts;
    struct header h;

    *claims = NULL;
    if (token.n > JWT_MAX)
        return bad(err, "the token is too long"), JWT_BAD;
    if (!split(token, &parts))
        return bad(err, "this is no token"), JWT_BAD;
    if (read_header(parts.header, rules->algorithms, &h, err) != XP_OK)
        return JWT_BAD;
    if (h.algorithm == JWT_ES256 && parts.signature.n != ES256_TEXT)
        return bad(err, "the token's signature is wrong"), JWT_BAD;
    enum xp_jwt_verdict verdict = check_signature(ks, &h, token, err);
    if (verdict != JWT_GOOD)
        return verdict;
    json_t *o = decode_object(parts.claims, JWT_MAX);
    if (!o)
        return bad(err, "the token's claims cannot be read"), JWT_BAD;
    if (check_claims(o, rules, now_s, err) != XP_OK) {
        json_decref(o);
        return JWT_BAD;
    }
    *claims = o;
    return JWT_GOOD;
}
