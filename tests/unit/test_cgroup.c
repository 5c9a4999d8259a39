#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "lib/base/cgroup.h"

static char root[] = "/tmp/cgroupXXXXXX";

/* Writes root/path, with the folders above it. */
static void put(const char *path, const char *text)
{
    char name[256];
    snprintf(name, sizeof name, "%s/%s", root, path);
    for (char *p = name + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(name, 0700);
        *p = '/';
    }
    FILE *f = fopen(name, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static uint64_t limit(const char *self)
{
    char name[256];
    put("self", self);
    snprintf(name, sizeof name, "%s/self", root);
    return xp_cgroup_memory(root, name);
}

static void the_lowest_limit_on_the_way_up_counts(void **state)
{
    (void)state;
    put("a/b/memory.max", "max\n");
    put("a/memory.max", "3000\n");
    put("c/memory.max", "7\n");
    assert_int_equal(limit("0::/a/b\n"), 3000);
    put("a/b/memory.max", "2000\n");
    assert_int_equal(limit("0::/a/b\n"), 2000);
    put("memory.max", "1000\n");
    assert_int_equal(limit("0::/a/b\n"), 1000);
    assert_int_equal(limit("0::/nowhere\n"), 1000);
}

static void the_first_version_is_read_where_it_has_memory(void **state)
{
    (void)state;
    put("memory.max", "max\n");
    put("memory/x/memory.limit_in_bytes", "500\n");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(limit("4:cpu,memory:/x\n0::/\n"), 500);
    assert_true(limit("4:cpu,memoryless:/x\n3:cpuset:/x\n") > UINT64_C(1) << 60);
}

static void paths_of_elsewhere_and_odd_lines_say_nothing(void **state)
{
    (void)state;
    put("memory.max", "800\n");
    assert_int_equal(limit("0::/../c\n"), 800);
    assert_int_equal(limit("nonsense\n\n::\n0::\n"), 800);
    assert_int_equal(xp_cgroup_memory(root, "/nowhere"), 800);
    assert_true(xp_cgroup_memory("/nowhere", "/nowhere") == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lowest_limit_on_the_way_up_counts),
        cmocka_unit_test(the_first_version_is_read_where_it_has_memory),
        cmocka_unit_test(paths_of_elsewhere_and_odd_lines_say_nothing),
    };
    char command[64];
    if (!mkdtemp(root))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command) == 0 ? failed : 1;
}
