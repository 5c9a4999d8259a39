/* Share links: what was sealed opens, and nothing else does. */
#include "lib/auth/link.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static struct xp_keyring *ring(const char *text)
{
    char name[] = "/tmp/xprofd-keys-XXXXXX";
    struct xp_keyring *k = NULL;
    struct xp_error err;
    int fd = mkstemp(name);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    assert_int_equal(xp_keyring_open(name, &k, &err), XP_OK);
    unlink(name);
    return k;
}

static struct link_claims sample(void)
{
    struct link_claims c = {.audience = LINK_DOMAIN,
                            .issued_s = 1000,
                            .expires_s = 2000,
                            .project = "vision",
                            .run = "exp/2026_\xff run",
                            .tool = "op_profile",
                            .domain = "example.com",
                            .view = "op_profile?run=exp%2F2026&t0=1"};
    struct xp_error err;
    assert_int_equal(link_new_id(&c, &err), XP_OK);
    return c;
}

static struct xp_buf seal(const struct xp_keyring *k, enum link_kind kind)
{
    struct link_claims c = sample();
    struct xp_error err;
    struct xp_buf b;
    xp_buf_init(&b, 2 * LINK_TOKEN_MAX);
    assert_int_equal(link_seal(k, kind, &c, &b, &err), XP_OK);
    return b;
}

static bool opens(const struct xp_keyring *k, enum link_kind kind, struct xp_span token)
{
    struct link_claims c;
    struct xp_error err;
    return link_open(k, kind, token, &c, &err) == XP_OK;
}

static void link_opens_as_it_was_sealed(void **state)
{
    (void)state;
    struct xp_keyring *k = ring("0123456789abcdef\n");
    struct link_claims c = sample(), back;
    struct xp_error err;
    struct xp_buf b;
    char id[LINK_ID_TEXT], id_back[LINK_ID_TEXT];

    xp_buf_init(&b, LINK_TOKEN_MAX);
    assert_int_equal(link_seal(k, LINK_URL, &c, &b, &err), XP_OK);
    assert_int_equal(link_open(k, LINK_URL, xp_buf_all(&b), &back, &err), XP_OK);
    link_id_text(&c, id);
    link_id_text(&back, id_back);
    assert_string_equal(id, id_back);
    assert_int_equal(back.audience, LINK_DOMAIN);
    assert_int_equal(back.issued_s, 1000);
    assert_int_equal(back.expires_s, 2000);
    assert_string_equal(back.project, c.project);
    assert_string_equal(back.run, c.run);
    assert_string_equal(back.tool, c.tool);
    assert_string_equal(back.domain, c.domain);
    assert_string_equal(back.view, c.view);
    for (size_t i = 0; i < b.n; i++)
        assert_true(b.p[i] == '-' || b.p[i] == '_' || isalnum(b.p[i]));
    xp_buf_fini(&b);
    xp_keyring_close(k);
}

static void link_that_was_altered_cut_or_lengthened_does_not_open(void **state)
{
    (void)state;
    struct xp_keyring *k = ring("0123456789abcdef\n");
    struct xp_buf b = seal(k, LINK_URL);

    assert_true(opens(k, LINK_URL, xp_buf_all(&b)));
    for (size_t i = 0; i < b.n; i++) {
        uint8_t was = b.p[i];
        b.p[i] = was == 'A' ? 'B' : 'A';
        assert_false(opens(k, LINK_URL, xp_buf_all(&b)));
        b.p[i] = was;
        assert_false(opens(k, LINK_URL, xp_span_of(b.p, i)));
    }
    xp_buf_byte(&b, 'A');
    assert_false(opens(k, LINK_URL, xp_buf_all(&b)));
    xp_buf_fini(&b);
    xp_keyring_close(k);
}

static void link_is_no_cookie_and_a_cookie_no_link(void **state)
{
    (void)state;
    struct xp_keyring *k = ring("0123456789abcdef\n");
    struct xp_buf url = seal(k, LINK_URL), cookie = seal(k, LINK_COOKIE);

    assert_false(opens(k, LINK_COOKIE, xp_buf_all(&url)));
    assert_false(opens(k, LINK_URL, xp_buf_all(&cookie)));
    assert_true(opens(k, LINK_COOKIE, xp_buf_all(&cookie)));
    xp_buf_fini(&url);
    xp_buf_fini(&cookie);
    xp_keyring_close(k);
}

static void link_opens_with_either_key_while_they_overlap(void **state)
{
    (void)state;
    struct xp_keyring *old = ring("0123456789abcdef\n"), *new = ring("fedcba9876543210\n"),
                      *both = ring("fedcba9876543210\n0123456789abcdef\n");
    struct xp_buf b = seal(old, LINK_URL);

    assert_true(opens(both, LINK_URL, xp_buf_all(&b)));
    assert_false(opens(new, LINK_URL, xp_buf_all(&b)));
    xp_buf_fini(&b);
    b = seal(both, LINK_URL);
    assert_true(opens(new, LINK_URL, xp_buf_all(&b)));
    assert_false(opens(old, LINK_URL, xp_buf_all(&b)));
    xp_buf_fini(&b);
    xp_keyring_close(old);
    xp_keyring_close(new);
    xp_keyring_close(both);
}

static void link_takes_one_form_of_its_bytes_only(void **state)
{
    (void)state;
    struct xp_keyring *k = ring("0123456789abcdef\n");
    static const char *const none[] = {"", "1", "2", "1AAAA", "1=", "1A", "1AA==", "1 AAAA", "0"};
    struct xp_buf b = seal(k, LINK_URL);

    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(opens(k, LINK_URL, xp_span_str(none[i])));
    xp_buf_byte(&b, '=');
    assert_false(opens(k, LINK_URL, xp_buf_all(&b)));
    b.p[0] = '2';
    assert_false(opens(k, LINK_URL, xp_span_of(b.p, b.n - 1)));
    xp_buf_fini(&b);
    xp_keyring_close(k);
}

static void view_of_a_link_leads_nowhere_else(void **state)
{
    (void)state;
    static const char *const good[] = {"trace?run=a", "op_profile?run=a%20b&t0=1&t1=2"};
    static const char *const bad[] = {"",           "trace",          "?run=a",
                                      "//x?run=a",  "../x?run=a",     "http://x?run=a",
                                      "a/b?run=a",  "trace?run=a b",  "trace?run=a\r\nx:y",
                                      "a\\b?run=a", "trace?run=\"<>", "javascript:x?run=a"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(link_view_good(xp_span_str(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(link_view_good(xp_span_str(bad[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(link_opens_as_it_was_sealed),
        cmocka_unit_test(link_that_was_altered_cut_or_lengthened_does_not_open),
        cmocka_unit_test(link_is_no_cookie_and_a_cookie_no_link),
        cmocka_unit_test(link_opens_with_either_key_while_they_overlap),
        cmocka_unit_test(link_takes_one_form_of_its_bytes_only),
        cmocka_unit_test(view_of_a_link_leads_nowhere_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
