#include "lib/cluster/sign.h"

#include <unistd.h>

#include "tests/unit/unit.h"

#define NOW INT64_C(1800000000)

static const struct xp_span path = {(const uint8_t *)"/rpc/v1/ask", 11};

static enum xp_status open_keys(const char *text, struct xp_keyring **k, struct xp_error *err)
{
    char name[] = "/tmp/xprofd-keys-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    enum xp_status status = xp_keyring_open(name, k, err);
    unlink(name);
    return status;
}

static struct xp_keyring *keys(const char *text)
{
    struct xp_keyring *k = NULL;
    struct xp_error err;
    assert_int_equal(open_keys(text, &k, &err), XP_OK);
    return k;
}

static void what_was_signed_is_accepted_and_nothing_else(void **state)
{
    (void)state;
    struct xp_keyring *k = keys("0123456789abcdef\n"), *other = keys("fedcba9876543210\n");
    char text[SIGN_TEXT_MAX];
    struct xp_span body = XP_SPAN_LIT("body");

    xp_sign(k, NOW, path, body, text);
    struct xp_span good = xp_span_str(text);
    assert_true(xp_sign_check(k, NOW, path, body, good));
    assert_false(xp_sign_check(other, NOW, path, body, good));
    assert_false(xp_sign_check(k, NOW, path, XP_SPAN_LIT("Body"), good));
    assert_false(xp_sign_check(k, NOW, path, XP_SPAN_LIT(""), good));
    assert_false(xp_sign_check(k, NOW, XP_SPAN_LIT("/rpc/v1/asl"), body, good));
    xp_keyring_close(k);
    xp_keyring_close(other);
}

static void every_changed_or_missing_character_is_refused(void **state)
{
    (void)state;
    struct xp_keyring *k = keys("0123456789abcdef\n");
    char text[SIGN_TEXT_MAX];
    struct xp_span body = XP_SPAN_LIT("body");

    xp_sign(k, NOW, path, body, text);
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++) {
        char was = text[i];
        text[i] = was == '0' ? '1' : '0';
        assert_false(xp_sign_check(k, NOW, path, body, xp_span_of(text, n)));
        text[i] = was;
        assert_false(xp_sign_check(k, NOW, path, body, xp_span_of(text, i)));
    }
    assert_false(xp_sign_check(k, NOW, path, body, (struct xp_span){0}));
    xp_keyring_close(k);
}

static void a_signature_ages(void **state)
{
    (void)state;
    struct xp_keyring *k = keys("0123456789abcdef\n");
    char text[SIGN_TEXT_MAX];
    xp_sign(k, NOW, path, path, text);
    struct xp_span t = xp_span_str(text);
    assert_true(xp_sign_check(k, NOW + SIGN_WINDOW_S, path, path, t));
    assert_false(xp_sign_check(k, NOW + SIGN_WINDOW_S + 1, path, path, t));
    assert_true(xp_sign_check(k, NOW - SIGN_WINDOW_S, path, path, t));
    assert_false(xp_sign_check(k, NOW - SIGN_WINDOW_S - 1, path, path, t));
    xp_keyring_close(k);
}

static void keys_change_with_an_overlap(void **state)
{
    (void)state;
    struct xp_keyring *old = keys("old-old-old-old-\n");
    struct xp_keyring *both = keys("new-new-new-new-\nold-old-old-old-\n");
    struct xp_keyring *new = keys("new-new-new-new-\n");
    char text[SIGN_TEXT_MAX];
    xp_sign(old, NOW, path, path, text);
    assert_true(xp_sign_check(both, NOW, path, path, xp_span_str(text)));
    assert_false(xp_sign_check(new, NOW, path, path, xp_span_str(text)));
    xp_sign(both, NOW, path, path, text);
    assert_true(xp_sign_check(new, NOW, path, path, xp_span_str(text)));
    assert_false(xp_sign_check(old, NOW, path, path, xp_span_str(text)));
    xp_keyring_close(old);
    xp_keyring_close(both);
    xp_keyring_close(new);
}

static void a_file_without_a_good_key_is_refused_and_not_quoted(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "\n\n", "quite-short",
                                        "0123456789abcdef\nquite-short\n"};
    for (size_t i = 0; i < 4; i++) {
        struct xp_keyring *k = NULL;
        struct xp_error err = {0};
        assert_int_equal(open_keys(wrong[i], &k, &err), XP_BAD_REQUEST);
        assert_null(strstr(err.text, "quite-short"));
        assert_true(err.text[0]);
    }
    struct xp_keyring *k = NULL;
    struct xp_error err = {0};
    assert_int_equal(xp_keyring_open("/no/such/file", &k, &err), XP_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_signed_is_accepted_and_nothing_else),
        cmocka_unit_test(every_changed_or_missing_character_is_refused),
        cmocka_unit_test(a_signature_ages),
        cmocka_unit_test(keys_change_with_an_overlap),
        cmocka_unit_test(a_file_without_a_good_key_is_refused_and_not_quoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
