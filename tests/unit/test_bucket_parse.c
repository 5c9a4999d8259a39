/* Addresses, and what stores answer to lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/objstore/gcs_int.h"
#include "lib/objstore/s3_int.h"

/* --- addresses --- */

static void addresses_of_buckets_are_understood_or_refused(void **state)
{
    static const struct {
        const char *url, *bucket, *root;
    } rows[] = {
        {"gs://my-bucket", "my-bucket", ""},
        {"gs://my-bucket/", "my-bucket", ""},
        {"gs://my.bucket/a/b", "my.bucket", "a/b/"},
        {"s3://my_bucket//a/", "my_bucket", "a/"},
        {"gs://ab", NULL, NULL},
        {"gs://", NULL, NULL},
        {"gs://bucket?x", NULL, NULL},
        {"gs://buc ket/a", NULL, NULL},
        {"gs://bucket/a//b", NULL, NULL},
        {"gs://bucket/a/../b", NULL, NULL},
        {"gs://user@bucket/a", NULL, NULL},
        {"s3://bucket:80/a", NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bucket_url u;
        struct xp_error err = {0};
        enum xp_status status = bucket_url_parse(rows[i].url, &u, &err);
        assert_int_equal(status, rows[i].bucket ? XP_OK : XP_BAD_REQUEST);
        if (status != XP_OK)
            continue;
        assert_string_equal(u.bucket, rows[i].bucket);
        assert_string_equal(u.root, rows[i].root);
        bucket_url_fini(&u);
    }
    assert_false(bucket_is_url("/gs://bucket"));
    assert_false(bucket_is_url("http://bucket"));
}

static void secrets_go_to_https_or_this_machine_only(void **state)
{
    (void)state;
    assert_true(bucket_url_is_private("https://storage.googleapis.com"));
    assert_true(bucket_url_is_private("http://127.0.0.1:4443/x"));
    assert_true(bucket_url_is_private("http://localhost:1"));
    assert_true(bucket_url_is_private("http://[::1]:1/"));
    assert_false(bucket_url_is_private("http://localhost.example.com"));
    assert_false(bucket_url_is_private("http://127.0.0.1.example.com/"));
    assert_false(bucket_url_is_private("http://10.0.0.1"));
    assert_false(bucket_url_is_private("ftp://127.0.0.1"));
    assert_false(bucket_url_is_private("http://127.0.0.1@example.com"));
}

static void names_are_encoded_byte_by_byte(void **state)
{
    struct xp_buf b;
    (void)state;
    xp_buf_init(&b, 1000);
    bucket_encode(&b, "a/b c+\xc3\xa9%?#&=~-_.", false);
    xp_buf_byte(&b, ' ');
    bucket_encode(&b, "a/b", true);
    xp_buf_byte(&b, 0);
    assert_string_equal((char *)b.p, "a%2Fb%20c%2B%C3%A9%25%3F%23%26%3D~-_. a/b");
    xp_buf_fini(&b);
}

static void times_are_read_or_zero(void **state)
{
    (void)state;
    assert_int_equal(bucket_time_ms("1970-01-01T00:00:01.500Z"), 1500);
    assert_int_equal(bucket_time_ms("2026-11-30T02:42:00Z"), INT64_C(1796006520000));
    assert_int_equal(bucket_time_ms("2026-11-30T03:42:00.1+01:00"), INT64_C(1796006520100));
    assert_int_equal(bucket_time_ms("yesterday"), 0);
}

/* --- lists --- */

static char *text_of(const struct xp_store_page *p)
{
    struct xp_buf b;
    size_t n;
    xp_buf_init(&b, 10000);
    for (size_t i = 0; i < p->n; i++)
        xp_buf_fmt(&b, "%s%s", i ? "|" : "", p->items[i].key);
    xp_buf_fmt(&b, ">%s", p->next ? p->next : "");
    xp_buf_byte(&b, 0);
    return (char *)xp_buf_take(&b, &n);
}

static void expect(bool json, const char *body, enum xp_status expected, const char *text)
{
    static char root[] = "r/", name[] = "b";
    struct bucket b = {.root = root, .bucket = name};
    struct xp_store_page page = {0};
    struct xp_error err = {0};
    enum xp_status status = json ? gcs_parse_list(&b, "r/d/", xp_span_str(body), &page, &err)
                                 : s3_parse_list(&b, "r/d/", xp_span_str(body), &page, &err);
    assert_int_equal(status, expected);
    if (expected == XP_OK) {
        char *got = text_of(&page);
        assert_string_equal(got, text);
        free(got);
    } else {
        assert_non_null(strstr(err.text, "cannot be understood"));
    }
    xp_store_page_fini(&page);
}

#define ITEM(name) "{\"name\":\"" name "\",\"size\":\"7\",\"generation\":\"9\"}"

static void cloud_storage_lists_are_read(void **state)
{
    (void)state;
    expect(true, "{}", XP_OK, ">");
    expect(true,
           "{\"items\":[" ITEM("r/d/x") "," ITEM("r/d/") "," ITEM("r/d//y") "," ITEM(
               "other/z") "],\"prefixes\":[\"r/d/e/\",\"r/d//\"],\"nextPageToken\":\"T=\"}",
           XP_OK, "d/x|d/e/>T=");
    expect(true, "{\"items\":[{\"name\":\"r/d/x\",\"size\":\"7\"}]}", XP_IO, "");
    expect(true, "{\"items\":[{\"name\":\"r/d/x\",\"size\":\"-7\",\"generation\":\"1\"}]}", XP_IO,
           "");
    expect(true, "{\"prefixes\":[\"r/d/e\"]}", XP_IO, "");
    expect(true, "[]", XP_IO, "");
    expect(true, "{\"items\":[", XP_IO, "");
    expect(true, "", XP_IO, "");
}

#define S3(inner)                                                                                  \
    "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\">" inner "</ListBucketResult>"
#define CONTENTS(key)                                                                              \
    "<Contents><Key>" key "</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"            \
    "<ETag>&quot;abc&quot;</ETag><Size>7</Size><Owner><ID>x</ID></Owner></Contents>"

static void s3_lists_are_read(void **state)
{
    (void)state;
    expect(false, S3(""), XP_OK, ">");
    expect(false,
           S3("<!-- c --><IsTruncated>true</IsTruncated>" CONTENTS("r/d/x&amp;y&#32;z")
                  CONTENTS("r/d/") "<CommonPrefixes><Prefix>r/d/e/</Prefix></CommonPrefixes>"
                                   "<NextContinuationToken>a&lt;b</NextContinuationToken>"),
           XP_OK, "d/x&y z|d/e/>a<b");
    expect(false, S3("<EncodingType>url</EncodingType>" CONTENTS("r/d/a+b%2Bc%0A")), XP_OK,
           "d/a b+c\n>");
    expect(false, S3(CONTENTS("r/d/a%41")), XP_OK, "d/a%41>");
    expect(false, S3("<Contents><Key>r/d/x</Key></Contents>"), XP_IO, "");
    expect(false, "<Error><Code>x</Code></Error>", XP_IO, "");
    expect(false, "<ListBucketResult>", XP_IO, "");
    expect(false, S3("<a></b>"), XP_IO, "");
    expect(false, S3("<a><b><c><d><e><f><g><h></h></g></f></e></d></c></b></a>"), XP_IO, "");
    expect(false, "", XP_IO, "");
}

static void a_generation_is_of_the_etag_without_its_quotes(void **state)
{
    (void)state;
    assert_int_equal(s3_generation("\"abc\""), s3_generation("abc"));
    assert_int_equal(s3_generation("W/\"abc\""), s3_generation("abc"));
    assert_true(s3_generation("abc") != s3_generation("abd"));
    assert_true(s3_generation("") != 0);
}

/* --- signed claims --- */

static char *make_key(EVP_PKEY **key)
{
    char *pem, *copy;
    BIO *bio = BIO_new(BIO_s_mem());
    *key = EVP_RSA_gen(2048);
    assert_true(PEM_write_bio_PKCS8PrivateKey(bio, *key, NULL, NULL, 0, NULL, NULL));
    long n = BIO_get_mem_data(bio, &pem);
    copy = calloc(1, (size_t)n + 1);
    assert_non_null(copy);
    memcpy(copy, pem, (size_t)n);
    BIO_free(bio);
    return copy;
}

static size_t decode(const char *s, size_t n, uint8_t *out)
{
    char padded[2048];
    size_t m = n;
    memcpy(padded, s, n);
    for (size_t i = 0; i < n; i++)
        padded[i] = padded[i] == '-' ? '+' : padded[i] == '_' ? '/' : padded[i];
    while (m % 4)
        padded[m++] = '=';
    int got = EVP_DecodeBlock(out, (uint8_t *)padded, (int)m);
    assert_true(got > 0);
    return (size_t)got - (m - n);
}

static void a_claim_is_signed_with_the_key(void **state)
{
    EVP_PKEY *key;
    struct xp_error err;
    uint8_t text[2048];
    (void)state;
    char *pem = make_key(&key);
    char *jwt = gcs_auth_jwt(pem, "kid-1", "a@b.example", "scope/x", "https://t", 1000, &err);
    assert_non_null(jwt);
    const char *dot = strchr(jwt, '.'), *dot2 = strchr(dot + 1, '.');
    size_t n = decode(jwt, (size_t)(dot - jwt), text);
    assert_int_equal(n, strlen("{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"kid-1\"}"));
    n = decode(dot + 1, (size_t)(dot2 - dot) - 1, text);
    text[n] = 0;
    assert_string_equal((char *)text, "{\"iss\":\"a@b.example\",\"scope\":\"scope/x\",\"aud\":"
                                      "\"https://t\",\"iat\":1000,\"exp\":4600}");
    n = decode(dot2 + 1, strlen(dot2 + 1), text);
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestVerifyInit(md, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestVerify(md, text, n, (uint8_t *)jwt, (size_t)(dot2 - jwt)), 1);
    EVP_MD_CTX_free(md);
    EVP_PKEY_free(key);
    free(jwt);
    free(pem);
    assert_null(gcs_auth_jwt("no key", NULL, "a", "b", "c", 0, &err));
    assert_int_equal(err.status, XP_BAD_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_of_buckets_are_understood_or_refused),
        cmocka_unit_test(secrets_go_to_https_or_this_machine_only),
        cmocka_unit_test(names_are_encoded_byte_by_byte),
        cmocka_unit_test(times_are_read_or_zero),
        cmocka_unit_test(cloud_storage_lists_are_read),
        cmocka_unit_test(s3_lists_are_read),
        cmocka_unit_test(a_generation_is_of_the_etag_without_its_quotes),
        cmocka_unit_test(a_claim_is_signed_with_the_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
