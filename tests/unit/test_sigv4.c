/* Against the examples of "Authenticating Requests (AWS Signature Version 4)" in S3's
 * documentation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

#include "lib/objstore/sigv4.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define DATE "20130524T000000Z"

static void expect(const char *method, const char *path, const char *query,
                   const struct sigv4_header *h, size_t n, const char *payload,
                   const char *signature)
{
    struct sigv4 s = {.key_id = "AKIAIOSFODNN7EXAMPLE",
                      .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                      .region = "us-east-1",
                      .method = method,
                      .path = path,
                      .query = query,
                      .headers = h,
                      .n_headers = n,
                      .payload_hex = payload,
                      .date = DATE};
    struct xp_buf out;
    xp_buf_init(&out, 4096);
    assert_true(sigv4_sign(&s, &out));
    xp_buf_byte(&out, 0);
    const char *at = strstr((char *)out.p, "Signature=");
    assert_non_null(at);
    assert_string_equal(at + 10, signature);
    assert_non_null(strstr((char *)out.p,
                           "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"));
    xp_buf_fini(&out);
}

#define HOST                                                                                       \
    {                                                                                              \
        "host", "examplebucket.s3.amazonaws.com"                                                   \
    }

static void an_object_with_a_range_is_signed_as_published(void **state)
{
    (void)state;
    const struct sigv4_header h[] = {
        HOST, {"range", "bytes=0-9"}, {"x-amz-content-sha256", EMPTY}, {"x-amz-date", DATE}};
    expect("GET", "/test.txt", "", h, 4, EMPTY,
           "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

static void an_upload_is_signed_as_published(void **state)
{
    char hex[SIGV4_HEX];
    (void)state;
    sigv4_hex(XP_SPAN_LIT("Welcome to Amazon S3."), hex);
    assert_string_equal(hex, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
    const struct sigv4_header h[] = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                     HOST,
                                     {"x-amz-content-sha256", hex},
                                     {"x-amz-date", DATE},
                                     {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
    expect("PUT", "/test%24file.text", "", h, 5, hex,
           "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

static void a_query_is_signed_as_published(void **state)
{
    (void)state;
    const struct sigv4_header h[] = {HOST, {"x-amz-content-sha256", EMPTY}, {"x-amz-date", DATE}};
    expect("GET", "/", "lifecycle=", h, 3, EMPTY,
           "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    expect("GET", "/", "max-keys=2&prefix=J", h, 3, EMPTY,
           "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void dates_are_utc(void **state)
{
    char date[SIGV4_DATE];
    (void)state;
    sigv4_date(1369353600, date);
    assert_string_equal(date, DATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_with_a_range_is_signed_as_published),
        cmocka_unit_test(an_upload_is_signed_as_published),
        cmocka_unit_test(a_query_is_signed_as_published),
        cmocka_unit_test(dates_are_utc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
