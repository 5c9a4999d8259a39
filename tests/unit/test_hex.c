#include "lib/base/hex.h"

#include "tests/unit/unit.h"

static void hex_of_every_byte_comes_back(void **state)
{
    uint8_t all[256], back[256];
    char text[513];
    (void)state;
    for (int i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    xp_hex(all, sizeof all, text);
    assert_int_equal(strlen(text), 512);
    assert_memory_equal(text, "000102", 6);
    assert_memory_equal(text + 506, "fdfeff", 6);
    assert_true(xp_unhex(text, sizeof back, back));
    assert_memory_equal(all, back, sizeof all);
}

static void hex_has_one_form_and_digits_only(void **state)
{
    static const char *const bad[] = {"0A", "0g", "g0", " 1", "1 ", "-1", "0x", "\xb0\x31"};
    uint8_t out[1];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(xp_unhex(bad[i], 1, out));
    assert_true(xp_unhex("", 0, out));
    assert_int_equal(xp_hex_value('F'), 15);
    assert_int_equal(xp_hex_value('f'), 15);
    for (int c = 0; c < 256; c++)
        if (xp_hex_value((uint8_t)c) >= 0)
            assert_non_null(memchr("0123456789abcdefABCDEF", c, 22));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hex_of_every_byte_comes_back),
        cmocka_unit_test(hex_has_one_form_and_digits_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
