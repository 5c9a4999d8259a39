#include "lib/base/log.h"

#include <unistd.h>

#include "tests/unit/unit.h"

/* Runs one xp_log with stderr in a file; what was written. */
static size_t logged(char *out, size_t size, enum xp_log_level level, const char *text)
{
    FILE *f = tmpfile();
    assert_non_null(f);
    int old = dup(STDERR_FILENO);
    assert_true(dup2(fileno(f), STDERR_FILENO) >= 0);
    xp_log(level, "load", "%s", text);
    assert_true(dup2(old, STDERR_FILENO) >= 0);
    close(old);
    rewind(f);
    size_t n = fread(out, 1, size - 1, f);
    out[n] = 0;
    fclose(f);
    return n;
}

static void a_line_has_time_level_module_and_text(void **state)
{
    (void)state;
    char line[4096];
    logged(line, sizeof line, XP_LOG_WARN, "host a: slow");
    assert_int_equal(line[4], '-');
    assert_int_equal(line[10], 'T');
    assert_int_equal(line[23], 'Z');
    assert_string_equal(line + 24, " warn load host a: slow\n");
}

static void a_name_cannot_forge_a_line_or_a_terminal_command(void **state)
{
    (void)state;
    char line[4096];
    logged(line, sizeof line, XP_LOG_INFO, "a\nb\x1b[2J\x7f \xff \xc2\x9b \xc3\xa9");
    assert_string_equal(line + 24, " info load a\\x0ab\\x1b[2J\\x7f \\xff \\xc2\\x9b \xc3\xa9\n");
}

static void a_long_text_is_cut(void **state)
{
    (void)state;
    char line[8192], text[5000];
    memset(text, 1, sizeof text - 1);
    text[sizeof text - 1] = 0;
    size_t n = logged(line, sizeof line, XP_LOG_INFO, text);
    assert_true(n > 1000 && n < 4000);
    assert_int_equal(line[n - 1], '\n');
    assert_ptr_equal(strchr(line, '\n'), line + n - 1);
}

static void less_than_the_level_is_not_written(void **state)
{
    (void)state;
    char line[4096];
    assert_int_equal(logged(line, sizeof line, XP_LOG_DEBUG, "x"), 0);
    xp_log_set_level(XP_LOG_ERROR);
    assert_int_equal(logged(line, sizeof line, XP_LOG_WARN, "x"), 0);
    xp_log_set_level(XP_LOG_DEBUG);
    assert_true(logged(line, sizeof line, XP_LOG_DEBUG, "x") > 0);
    xp_log_set_level(XP_LOG_INFO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_time_level_module_and_text),
        cmocka_unit_test(a_name_cannot_forge_a_line_or_a_terminal_command),
        cmocka_unit_test(a_long_text_is_cut),
        cmocka_unit_test(less_than_the_level_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
