#include "server/capture/capture_int.h"
#include "tests/unit/unit.h"

static char *here[] = {"logs/a"}, *elsewhere[] = {"logs/b"}, *with_more[] = {"logs/a", "logs/b"};

static struct project project_of(char *name, char **roots, size_t n)
{
    return (struct project){.name = name, .roots = roots, .n_roots = n};
}

static void captures_are_of_the_project_and_the_root_that_they_began_with(void **state)
{
    const struct project began = project_of("one", here, 1);
    const struct captures c = {.project = &began};
    struct project now = project_of("one", here, 1);
    (void)state;
    assert_null(captures_reason(&c, &now));
    now = project_of("one", with_more, 2); /* profiles go to the first one, as before */
    assert_null(captures_reason(&c, &now));
    now = project_of("one", elsewhere, 1);
    assert_non_null(strstr(captures_reason(&c, &now), "restart"));
    now = project_of("two", here, 1);
    assert_non_null(strstr(captures_reason(&c, &now), "another project"));
}

static void what_stands_in_the_way_of_all_is_said_first(void **state)
{
    const struct project any = project_of("one", here, 1);
    const struct captures c = {.reason = "no target"};
    (void)state;
    assert_string_equal(captures_reason(&c, &any), "no target");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captures_are_of_the_project_and_the_root_that_they_began_with),
        cmocka_unit_test(what_stands_in_the_way_of_all_is_said_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
