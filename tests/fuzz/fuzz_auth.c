/* tests/fuzz/fuzz_auth.c - what strangers bring to the door: tokens, key sets, cookies, the place
 * to go to after a login; and the table of projects. Nothing that was not signed is let in.
 *
 * Input: one byte that says which, and the bytes. A token is made of header and claims, separated
 * by a newline, so that what lies behind the base64url is reached; or it is taken as it is.
 */
#include <stdlib.h>

#include "lib/auth/base64url.h"
#include "lib/auth/jwt.h"
#include "lib/auth/seal.h"
#include "server/login.h"
#include "server/projects_int.h"

#define TOKEN_MAX ((size_t)64 << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The example key of RFC 7517 A.1, whose owner signs nothing here. */
static const char keys[] = "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"1\","
                           "\"x\":\"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4\","
                           "\"y\":\"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM\"}]}";

static void check_token(struct xp_span token)
{
    static struct xp_keyset *ks;
    static const char *const audiences[] = {"us", NULL};
    struct xp_jwt_rules rules = {JWT_RS256 | JWT_ES256, "i", audiences};
    struct xp_error err = {0};
    json_t *claims;

    if (!ks)
        XP_ASSERT(xp_keyset_parse(xp_span_str(keys), &ks, &err) == XP_OK);
    XP_ASSERT(xp_jwt_check(ks, &rules, token, 1800000000, &claims, &err) != JWT_GOOD);
    XP_ASSERT(!claims && err.text[0]);
}

static void check_made_token(struct xp_span bytes)
{
    static const uint8_t signature[64] = {1};
    const uint8_t *end = bytes.n ? memchr(bytes.p, '\n', bytes.n) : NULL;
    size_t n = end ? (size_t)(end - bytes.p) : bytes.n;
    struct xp_buf b;

    xp_buf_init(&b, TOKEN_MAX);
    xp_base64url_add(&b, xp_span_of(bytes.p, n));
    xp_buf_byte(&b, '.');
    xp_base64url_add(&b, end ? xp_span_of(end + 1, bytes.n - n - 1) : (struct xp_span){0});
    xp_buf_byte(&b, '.');
    xp_base64url_add(&b, xp_span_of(signature, sizeof signature));
    check_token(xp_buf_all(&b));
    xp_buf_fini(&b);
}

static void check_keys(struct xp_span bytes)
{
    struct xp_keyset *ks = NULL;
    struct xp_error err = {0};
    if (xp_keyset_parse(bytes, &ks, &err) == XP_OK)
        xp_keyset_unref(ks);
    else
        XP_ASSERT(err.text[0]);
}

static void check_cookie(struct xp_span bytes)
{
    static struct xp_keyring *ring;
    struct xp_buf b;
    if (!ring)
        ring = xp_keyring_random();
    xp_buf_init(&b, SEAL_MAX);
    XP_ASSERT(!xp_unseal(ring, "x", 0, bytes, &b, NULL));
    xp_buf_fini(&b);
}

static void check_table(struct xp_span bytes)
{
    struct table_rows rows;
    struct xp_error err = {0};
    if (table_parse(bytes, &rows, &err) == XP_OK)
        for (size_t i = 0; i < rows.n; i++)
            XP_ASSERT(project_is_name(xp_span_str(rows.v[i].name)) && rows.v[i].n_roots > 0);
    else
        XP_ASSERT(err.status == XP_BAD_REQUEST && err.text[0]);
    table_fini(&rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const checks[])(struct xp_span) = {check_token, check_made_token, check_keys,
                                                     check_cookie, check_table};
    uint8_t *copy = malloc(size ? size : 1);
    XP_ASSERT(copy);
    if (size)
        memcpy(copy, data, size);
    if (size)
        checks[copy[0] % (sizeof checks / sizeof *checks)](xp_span_of(copy + 1, size - 1));
    if (size && login_place_ok(xp_span_of(copy, size)))
        XP_ASSERT(copy[0] != '/' && !memchr(copy, '\\', size));
    free(copy);
    return 0;
}
