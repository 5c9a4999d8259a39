#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/auth/seal.h"

#define TEXT_MAX ((size_t)32 << 10)

static struct xp_keyring *ring_of(const char *lines)
{
    char path[] = "/tmp/xprofd-keys-XXXXXX";
    struct xp_keyring *k = NULL;
    struct xp_error err;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, lines, strlen(lines)), strlen(lines));
    close(fd);
    assert_int_equal(xp_keyring_open(path, &k, &err), XP_OK);
    unlink(path);
    return k;
}

static bool opens(const struct xp_keyring *k, const char *purpose, int64_t now, struct xp_span text,
                  const char *content)
{
    struct xp_buf b;
    int64_t until = 0;
    xp_buf_init(&b, TEXT_MAX);
    bool ok = xp_unseal(k, purpose, now, text, &b, &until);
    if (ok) {
        assert_int_equal(until, 1000);
        assert_true(xp_span_eq(xp_buf_all(&b), xp_span_str(content)));
    }
    xp_buf_fini(&b);
    return ok;
}

static void what_was_sealed_opens_until_its_time(void **state)
{
    struct xp_keyring *k = xp_keyring_random();
    struct xp_buf t;
    (void)state;
    xp_buf_init(&t, TEXT_MAX);
    xp_seal(k, "a", 1000, XP_SPAN_LIT("content"), &t);
    assert_true(opens(k, "a", 999, xp_buf_all(&t), "content"));
    assert_false(opens(k, "a", 1000, xp_buf_all(&t), "content"));
    assert_false(opens(k, "b", 999, xp_buf_all(&t), "content"));
    struct xp_keyring *other = xp_keyring_random();
    assert_false(opens(other, "a", 999, xp_buf_all(&t), "content"));
    xp_keyring_close(other);
    xp_keyring_close(k);
    xp_buf_fini(&t);
}

static void any_alteration_closes_it(void **state)
{
    struct xp_keyring *k = xp_keyring_random();
    struct xp_buf t;
    (void)state;
    xp_buf_init(&t, TEXT_MAX);
    xp_seal(k, "a", 1000, XP_SPAN_LIT("content"), &t);
    for (size_t i = 0; i < t.n; i++) {
        uint8_t was = t.p[i];
        t.p[i] = was == 'A' ? 'B' : 'A';
        assert_false(opens(k, "a", 1, xp_buf_all(&t), "content"));
        t.p[i] = was;
    }
    for (size_t n = 0; n < t.n; n++)
        assert_false(opens(k, "a", 1, xp_span_of(t.p, n), "content"));
    assert_true(opens(k, "a", 1, xp_buf_all(&t), "content"));
    xp_buf_fini(&t);
    xp_keyring_close(k);
}

static void an_old_key_still_opens_and_the_first_one_seals(void **state)
{
    struct xp_keyring *old = ring_of("the first key there was\n");
    struct xp_keyring *both = ring_of("the second key there is\nthe first key there was\n");
    struct xp_keyring *new = ring_of("the second key there is\n");
    struct xp_buf t, u;
    (void)state;
    xp_buf_init(&t, TEXT_MAX);
    xp_buf_init(&u, TEXT_MAX);
    xp_seal(old, "a", 1000, XP_SPAN_LIT("x"), &t);
    xp_seal(both, "a", 1000, XP_SPAN_LIT("x"), &u);
    assert_true(opens(both, "a", 1, xp_buf_all(&t), "x"));
    assert_false(opens(new, "a", 1, xp_buf_all(&t), "x"));
    assert_true(opens(new, "a", 1, xp_buf_all(&u), "x"));
    assert_false(opens(old, "a", 1, xp_buf_all(&u), "x"));
    xp_keyring_close(old);
    xp_keyring_close(both);
    xp_keyring_close(new);
    xp_buf_fini(&t);
    xp_buf_fini(&u);
}

static void the_largest_content_fits_and_the_empty_one_too(void **state)
{
    struct xp_keyring *k = xp_keyring_random();
    char *large = calloc(1, SEAL_MAX + 1);
    struct xp_buf t;
    (void)state;
    memset(large, 'x', SEAL_MAX);
    xp_buf_init(&t, TEXT_MAX);
    xp_seal(k, "a", 1000, xp_span_str(large), &t);
    assert_true(opens(k, "a", 1, xp_buf_all(&t), large));
    xp_buf_fini(&t);
    xp_buf_init(&t, TEXT_MAX);
    xp_seal(k, "a", 1000, (struct xp_span){0}, &t);
    assert_true(opens(k, "a", 1, xp_buf_all(&t), ""));
    xp_buf_fini(&t);
    free(large);
    xp_keyring_close(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sealed_opens_until_its_time),
        cmocka_unit_test(any_alteration_closes_it),
        cmocka_unit_test(an_old_key_still_opens_and_the_first_one_seals),
        cmocka_unit_test(the_largest_content_fits_and_the_empty_one_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
