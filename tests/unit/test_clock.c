#include "lib/base/clock.h"
#include "tests/unit/unit.h"

static void iso_text_of_times_that_matter(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00Z"},
        {999, "1970-01-01T00:00:00Z"},
        {-1, "1969-12-31T23:59:59Z"},
        {-1000, "1969-12-31T23:59:59Z"},
        {951782400000, "2000-02-29T00:00:00Z"},
        {253402300799999, "9999-12-31T23:59:59Z"},
        {253402300800000, ""},
        {INT64_MAX, ""},
        {INT64_MIN, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char t[XP_ISO_MAX];
        assert_string_equal(xp_iso_from_ms(rows[i].ms, t), rows[i].text);
    }
}

static void clocks_move_forward(void **state)
{
    (void)state;
    uint64_t a = xp_now_ns(), cpu = xp_thread_cpu_ns();
    volatile unsigned sink = 0;
    while (xp_thread_cpu_ns() - cpu < 1000000)
        sink++;
    assert_true(xp_now_ns() - a >= 1000000);
    assert_true(xp_wall_ms() > INT64_C(1700000000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iso_text_of_times_that_matter),
        cmocka_unit_test(clocks_move_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
