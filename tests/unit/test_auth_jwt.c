#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>

#include "lib/auth/base64url.h"
#include "lib/auth/jwt.h"

#define NOW 1800000000
#define TEXT_MAX ((size_t)64 << 10)

static EVP_PKEY *rsa, *small_rsa, *ec, *other_rsa;
static struct xp_keyset *keys;

/* --- keys as JSON --- */

static void add_number(struct xp_buf *b, EVP_PKEY *key, const char *name, const char *field)
{
    BIGNUM *n = NULL;
    uint8_t bytes[1024];
    assert_int_equal(EVP_PKEY_get_bn_param(key, name, &n), 1);
    bool coordinate = field[1] == 0 && (field[0] == 'x' || field[0] == 'y');
    int size = coordinate ? 32 : BN_num_bytes(n);
    assert_int_equal(BN_bn2binpad(n, bytes, size), size);
    xp_buf_fmt(b, "\"%s\":\"", field);
    xp_base64url_add(b, xp_span_of(bytes, (size_t)size));
    xp_buf_str(b, "\",");
    BN_free(n);
}

static void add_jwk(struct xp_buf *b, EVP_PKEY *key, const char *more)
{
    xp_buf_str(b, "{");
    if (EVP_PKEY_base_id(key) == EVP_PKEY_RSA) {
        xp_buf_str(b, "\"kty\":\"RSA\",");
        add_number(b, key, OSSL_PKEY_PARAM_RSA_N, "n");
        add_number(b, key, OSSL_PKEY_PARAM_RSA_E, "e");
    } else {
        xp_buf_str(b, "\"kty\":\"EC\",\"crv\":\"P-256\",");
        add_number(b, key, OSSL_PKEY_PARAM_EC_PUB_X, "x");
        add_number(b, key, OSSL_PKEY_PARAM_EC_PUB_Y, "y");
    }
    xp_buf_fmt(b, "%s}", more);
}

/* --- tokens --- */

static void sign_rs256(EVP_PKEY *key, struct xp_buf *b)
{
    uint8_t sig[1024];
    size_t n = sizeof sig;
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestSignInit(md, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestSign(md, sig, &n, b->p, b->n), 1);
    EVP_MD_CTX_free(md);
    if (EVP_PKEY_base_id(key) == EVP_PKEY_EC) {
        const uint8_t *p = sig;
        ECDSA_SIG *ecdsa = d2i_ECDSA_SIG(NULL, &p, (long)n);
        BN_bn2binpad(ECDSA_SIG_get0_r(ecdsa), sig, 32);
        BN_bn2binpad(ECDSA_SIG_get0_s(ecdsa), sig + 32, 32);
        ECDSA_SIG_free(ecdsa);
        n = 64;
    }
    xp_buf_byte(b, '.');
    xp_base64url_add(b, xp_span_of(sig, n));
}

static void begin_token(struct xp_buf *b, const char *header, const char *claims)
{
    xp_buf_init(b, TEXT_MAX);
    xp_base64url_add(b, xp_span_str(header));
    xp_buf_byte(b, '.');
    xp_base64url_add(b, xp_span_str(claims));
}

#define RS256 "{\"alg\":\"RS256\",\"kid\":\"r\"}"
#define ES256 "{\"alg\":\"ES256\",\"kid\":\"e\"}"
#define GOOD "{\"iss\":\"https://i\",\"aud\":\"us\",\"sub\":\"ann\",\"exp\":1800000100}"

static enum xp_jwt_verdict check_rules(struct xp_span token, int algorithms, struct xp_error *err)
{
    static const char *const audiences[] = {"us", "us too", NULL};
    struct xp_jwt_rules rules = {algorithms, "https://i", audiences};
    json_t *claims;
    memset(err, 0, sizeof *err);
    enum xp_jwt_verdict v = xp_jwt_check(keys, &rules, token, NOW, &claims, err);
    assert_int_equal(v == JWT_GOOD, claims != NULL);
    assert_int_equal(v != JWT_GOOD, err->text[0] != 0);
    json_decref(claims);
    return v;
}

static enum xp_jwt_verdict check(struct xp_span token)
{
    struct xp_error err;
    return check_rules(token, JWT_RS256 | JWT_ES256, &err);
}

static enum xp_jwt_verdict verdict_of(EVP_PKEY *key, const char *header, const char *claims)
{
    struct xp_buf b;
    begin_token(&b, header, claims);
    sign_rs256(key, &b);
    enum xp_jwt_verdict v = check(xp_buf_all(&b));
    xp_buf_fini(&b);
    return v;
}

static int set_up(void **state)
{
    struct xp_buf b;
    struct xp_error err = {0};
    (void)state;
    rsa = EVP_RSA_gen(2048);
    other_rsa = EVP_RSA_gen(2048);
    small_rsa = EVP_RSA_gen(1024);
    ec = EVP_EC_gen("P-256");
    xp_buf_init(&b, TEXT_MAX);
    xp_buf_str(&b, "{\"keys\":[");
    add_jwk(&b, rsa, "\"kid\":\"r\",\"use\":\"sig\",\"alg\":\"RS256\"");
    xp_buf_byte(&b, ',');
    add_jwk(&b, ec, "\"kid\":\"e\"");
    xp_buf_byte(&b, ',');
    add_jwk(&b, small_rsa, "\"kid\":\"small\"");
    xp_buf_byte(&b, ',');
    add_jwk(&b, other_rsa, "\"kid\":\"sealing\",\"use\":\"enc\"");
    xp_buf_str(&b, ",{\"kty\":\"oct\",\"k\":\"AAAA\",\"kid\":\"o\"},{\"kty\":\"OKP\"},7]}");
    assert_int_equal(xp_keyset_parse(xp_buf_all(&b), &keys, &err), XP_OK);
    xp_buf_fini(&b);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    xp_keyset_unref(keys);
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(other_rsa);
    EVP_PKEY_free(small_rsa);
    EVP_PKEY_free(ec);
    return 0;
}

/* --- tests --- */

static void a_token_that_keeps_the_rules_is_good(void **state)
{
    (void)state;
    assert_int_equal(verdict_of(rsa, RS256, GOOD), JWT_GOOD);
    assert_int_equal(verdict_of(ec, ES256, GOOD), JWT_GOOD);
    assert_int_equal(verdict_of(rsa, "{\"alg\":\"RS256\"}", GOOD), JWT_GOOD);
    assert_int_equal(verdict_of(ec, "{\"alg\":\"ES256\",\"typ\":\"JWT\"}", GOOD), JWT_GOOD);
}

static void claims_are_held_against_the_rules(void **state)
{
    static const struct {
        const char *claims;
        enum xp_jwt_verdict verdict;
    } rows[] = {
        {"{\"iss\":\"https://i/\",\"aud\":\"us\",\"sub\":\"a\",\"exp\":1800000100}", JWT_BAD},
        {"{\"iss\":\"https://i\",\"aud\":\"them\",\"sub\":\"a\",\"exp\":1800000100}", JWT_BAD},
        {"{\"iss\":\"https://i\",\"aud\":[\"them\"],\"sub\":\"a\",\"exp\":1800000100}", JWT_BAD},
        {"{\"iss\":\"https://i\",\"aud\":[\"x\",\"us too\"],\"sub\":\"a\",\"exp\":1800000100}",
         JWT_GOOD},
        {"{\"iss\":\"https://i\",\"aud\":[],\"sub\":\"a\",\"exp\":1800000100}", JWT_BAD},
        {"{\"iss\":\"https://i\",\"sub\":\"a\",\"exp\":1800000100}", JWT_BAD},
        {"{\"iss\":\"https://i\",\"aud\":\"us\",\"sub\":\"a\"}", JWT_BAD},
        {"{\"iss\":\"https://i\",\"aud\":\"us\",\"sub\":\"a\",\"exp\":\"1800000100\"}", JWT_BAD},
        {"{\"iss\":\"https://i\",\"aud\":\"us\",\"sub\":\"a\",\"exp\":-1}", JWT_BAD},
        {"{\"iss\":\"https://i\",\"aud\":\"us\",\"sub\":\"a\",\"exp\":1e300}", JWT_BAD},
        {"{\"iss\":\"https://i\",\"aud\":\"us\",\"sub\":\"a\",\"exp\":1799999941}", JWT_GOOD},
        {"{\"iss\":\"https://i\",\"aud\":\"us\",\"sub\":\"a\",\"exp\":1799999940}", JWT_BAD},
        {"{\"iss\":\"https://i\",\"aud\":\"us\",\"sub\":\"a\",\"exp\":1800000100,"
         "\"nbf\":1800000060,\"iat\":1800000060}",
         JWT_GOOD},
        {"{\"iss\":\"https://i\",\"aud\":\"us\",\"sub\":\"a\",\"exp\":1800000100,"
         "\"nbf\":1800000061}",
         JWT_BAD},
        {"{\"iss\":\"https://i\",\"aud\":\"us\",\"sub\":\"a\",\"exp\":1800000100,"
         "\"iat\":1800000061}",
         JWT_BAD},
        {"{\"iss\":\"https://i\",\"aud\":\"us\",\"exp\":1800000100}", JWT_BAD},
        {"{\"iss\":\"https://i\",\"aud\":\"us\",\"sub\":\"\",\"exp\":1800000100}", JWT_BAD},
        {"{\"iss\":\"https://i\",\"aud\":\"us\",\"aud\":\"us\",\"sub\":\"a\",\"exp\":1800000100}",
         JWT_BAD},
        {"[1]", JWT_BAD},
        {"", JWT_BAD},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (verdict_of(rsa, RS256, rows[i].claims) != rows[i].verdict)
            fail_msg("%s", rows[i].claims);
}

static void an_altered_token_is_refused_wherever_it_was_altered(void **state)
{
    struct xp_buf b;
    (void)state;
    begin_token(&b, ES256, GOOD);
    sign_rs256(ec, &b);
    assert_int_equal(check(xp_buf_all(&b)), JWT_GOOD);
    for (size_t i = 0; i < b.n; i++) {
        uint8_t was = b.p[i];
        b.p[i] = was == 'A' ? 'B' : 'A';
        if (was != 'A' || i != b.n - 1)
            assert_int_not_equal(check(xp_buf_all(&b)), JWT_GOOD);
        b.p[i] = was;
    }
    for (size_t n = 0; n < b.n; n++)
        assert_int_not_equal(check(xp_span_of(b.p, n)), JWT_GOOD);
    xp_buf_byte(&b, 'A');
    assert_int_not_equal(check(xp_buf_all(&b)), JWT_GOOD);
    xp_buf_fini(&b);
}

static void only_the_listed_algorithms_are_computed(void **state)
{
    static const char *const headers[] = {
        "{\"alg\":\"none\",\"kid\":\"r\"}",
        "{\"alg\":\"None\"}",
        "{\"alg\":\"RS512\",\"kid\":\"r\"}",
        "{\"alg\":\"PS256\",\"kid\":\"r\"}",
        "{\"alg\":\"rs256\",\"kid\":\"r\"}",
        "{\"alg\":\"HS256\",\"kid\":\"r\"}",
        "{\"alg\":\"HS256\",\"kid\":\"o\"}",
        "{\"kid\":\"r\"}",
        "{\"alg\":null,\"kid\":\"r\"}",
        "{\"alg\":\"none\",\"alg\":\"RS256\",\"kid\":\"r\"}",
        "{\"alg\":\"RS256\",\"kid\":\"r\",\"crit\":[\"b64\"],\"b64\":false}",
        "{\"alg\":\"RS256\",\"kid\":7}",
        "{\"alg\":\"ES256\",\"kid\":\"r\"}",
        "7",
    };
    struct xp_error err;
    struct xp_buf b;
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        assert_int_not_equal(verdict_of(rsa, headers[i], GOOD), JWT_GOOD);
    begin_token(&b, RS256, GOOD);
    sign_rs256(rsa, &b);
    assert_int_equal(check_rules(xp_buf_all(&b), JWT_ES256, &err), JWT_BAD);
    xp_buf_fini(&b);
    begin_token(&b, "{\"alg\":\"none\"}", GOOD);
    xp_buf_byte(&b, '.');
    assert_int_equal(check(xp_buf_all(&b)), JWT_BAD);
    xp_buf_fini(&b);
}

static void a_public_key_is_no_secret(void **state)
{
    struct xp_buf b, jwk;
    uint8_t mac[32];
    unsigned n = sizeof mac;
    (void)state;
    xp_buf_init(&jwk, TEXT_MAX);
    add_jwk(&jwk, rsa, "\"kid\":\"r\"");
    begin_token(&b, "{\"alg\":\"HS256\",\"kid\":\"r\"}", GOOD);
    HMAC(EVP_sha256(), jwk.p, (int)jwk.n, b.p, b.n, mac, &n);
    xp_buf_byte(&b, '.');
    xp_base64url_add(&b, xp_span_of(mac, n));
    assert_int_equal(check(xp_buf_all(&b)), JWT_BAD);
    xp_buf_fini(&b);
    xp_buf_fini(&jwk);
}

static void a_key_that_is_not_in_the_set_may_be_in_a_newer_one(void **state)
{
    (void)state;
    assert_int_equal(verdict_of(rsa, "{\"alg\":\"RS256\",\"kid\":\"new\"}", GOOD), JWT_KEY_UNKNOWN);
    assert_int_equal(verdict_of(other_rsa, "{\"alg\":\"RS256\"}", GOOD), JWT_KEY_UNKNOWN);
    assert_int_equal(verdict_of(other_rsa, RS256, GOOD), JWT_BAD);
    assert_int_equal(verdict_of(other_rsa, "{\"alg\":\"RS256\",\"kid\":\"sealing\"}", GOOD),
                     JWT_KEY_UNKNOWN);
    assert_int_equal(verdict_of(small_rsa, "{\"alg\":\"RS256\",\"kid\":\"small\"}", GOOD),
                     JWT_KEY_UNKNOWN);
    struct xp_keyset *had = keys;
    keys = NULL;
    assert_int_equal(verdict_of(rsa, RS256, GOOD), JWT_KEY_UNKNOWN);
    keys = had;
}

static void long_and_odd_texts_are_no_tokens(void **state)
{
    static const char *const texts[] = {"",
                                        ".",
                                        "..",
                                        "...",
                                        "a.b",
                                        "a.b.c.d",
                                        "e30.e30.e30",
                                        "\n.\n.",
                                        "eyJhbGciOiJSUzI1NiJ9.e3=0.AAAA",
                                        "eyJhbGciOiJSUzI1NiJ9.=.AAAA"};
    struct xp_buf b;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(check(xp_span_str(texts[i])), JWT_BAD);
    begin_token(&b, RS256, GOOD);
    while (b.n <= JWT_MAX)
        xp_buf_byte(&b, 'A');
    assert_int_equal(check(xp_buf_all(&b)), JWT_BAD);
    xp_buf_fini(&b);
}

static void a_set_without_a_usable_key_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "{}",
        "[]",
        "{\"keys\":[]}",
        "{\"keys\":{}}",
        "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"}]}",
        "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"!\",\"e\":\"AQAB\"}]}",
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}]}",
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":"
        "\"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7=4\","
        "\"y\":\"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM\"}]}"};
    struct xp_keyset *ks;
    struct xp_error err;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(xp_keyset_parse(xp_span_str(texts[i]), &ks, &err), XP_BAD_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_that_keeps_the_rules_is_good),
        cmocka_unit_test(claims_are_held_against_the_rules),
        cmocka_unit_test(an_altered_token_is_refused_wherever_it_was_altered),
        cmocka_unit_test(only_the_listed_algorithms_are_computed),
        cmocka_unit_test(a_public_key_is_no_secret),
        cmocka_unit_test(a_key_that_is_not_in_the_set_may_be_in_a_newer_one),
        cmocka_unit_test(long_and_odd_texts_are_no_tokens),
        cmocka_unit_test(a_set_without_a_usable_key_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
