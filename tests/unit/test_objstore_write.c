/* Files that are written piece by piece: whole or not there, and never over another. */
#include <dirent.h>
#include <sys/stat.h>

#include "lib/objstore/objstore.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

#define KEY "plugins/profile/run/host.xplane.pb"

/* A tree "logs" that is the root, and "outside" beside it. */
struct place {
    struct tree t;
    struct xp_store *s;
};

static int place_setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    struct xp_error err;
    tree_init(&p->t);
    tree_dir(&p->t, "logs");
    tree_dir(&p->t, "outside");
    assert_int_equal(xp_store_open_dir_rw(tree_path(&p->t, "logs"), &p->s, &err), XP_OK);
    *state = p;
    return 0;
}

static int place_teardown(void **state)
{
    struct place *p = *state;
    xp_store_free(p->s);
    tree_fini(&p->t);
    free(p);
    return 0;
}

static size_t entries(const struct place *p, const char *key)
{
    DIR *d = opendir(tree_path(&p->t, key));
    size_t n = 0;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n ? n - 2 : 0; /* "." and ".." */
}

static void expect_content(const struct place *p, const char *key, const char *text)
{
    char have[64] = "";
    FILE *f = fopen(tree_path(&p->t, key), "re");
    assert_non_null(f);
    assert_true(fread(have, 1, sizeof have - 1, f) == strlen(text));
    fclose(f);
    assert_string_equal(have, text);
}

static struct xp_writer *open_writer(struct place *p)
{
    struct xp_writer *w = NULL;
    struct xp_error err;
    assert_int_equal(xp_writer_open(p->s, KEY, &w, &err), XP_OK);
    return w;
}

static void a_file_appears_when_it_is_whole(void **state)
{
    struct place *p = *state;
    struct xp_error err;
    struct xp_writer *w = open_writer(p);
    assert_int_equal(xp_writer_add(w, XP_SPAN_LIT("one, "), &err), XP_OK);
    assert_int_equal(xp_writer_add(w, XP_SPAN_LIT("two"), &err), XP_OK);
    struct xp_store_page page;
    assert_int_equal(xp_store_list(p->s, "plugins/profile/run/", true, NULL, 10, &page, &err),
                     XP_OK);
    assert_int_equal(page.n, 0);
    xp_store_page_fini(&page);
    assert_int_equal(xp_writer_finish(w, &err), XP_OK);
    expect_content(p, "logs/" KEY, "one, two");
    assert_int_equal(entries(p, "logs/plugins/profile/run"), 1);
}

static void a_file_that_is_there_is_never_replaced(void **state)
{
    struct place *p = *state;
    struct xp_error err;
    struct xp_writer *w = open_writer(p);
    assert_int_equal(xp_writer_add(w, XP_SPAN_LIT("new"), &err), XP_OK);
    tree_file(&p->t, "logs/" KEY, "old");
    assert_int_equal(xp_writer_finish(w, &err), XP_STALE);
    assert_non_null(strstr(err.text, "exists already"));
    expect_content(p, "logs/" KEY, "old");
    assert_int_equal(entries(p, "logs/plugins/profile/run"), 1);
}

static void what_is_dropped_leaves_nothing(void **state)
{
    struct place *p = *state;
    struct xp_error err;
    struct xp_writer *w = open_writer(p);
    assert_int_equal(xp_writer_add(w, XP_SPAN_LIT("x"), &err), XP_OK);
    xp_writer_drop(w);
    xp_writer_drop(NULL);
    assert_int_equal(entries(p, "logs/plugins/profile/run"), 0);
    xp_writer_clear(p->s, KEY);
    assert_int_equal(entries(p, "logs/plugins/profile"), 0);
    assert_int_equal(entries(p, "logs/plugins"), 1);
}

static void a_folder_with_something_in_it_is_not_cleared(void **state)
{
    struct place *p = *state;
    tree_file(&p->t, "logs/plugins/profile/run/other", "x");
    xp_writer_clear(p->s, KEY);
    expect_content(p, "logs/plugins/profile/run/other", "x");
    xp_writer_clear(p->s, "host"); /* the root itself is no folder to be cleared */
    assert_int_equal(entries(p, "logs"), 1);
}

static void nothing_is_written_outside_of_the_root_or_where_it_may_not_be(void **state)
{
    static const char *const bad[] = {"../outside/x", "/x", "a//b", "a/./b", "", "a/"};
    struct place *p = *state;
    struct xp_writer *w = NULL;
    struct xp_store *read_only;
    struct xp_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(xp_writer_open(p->s, bad[i], &w, &err), XP_BAD_REQUEST);
    tree_link(&p->t, "logs/plugins", "../outside");
    assert_int_equal(xp_writer_open(p->s, KEY, &w, &err), XP_DENIED);
    assert_int_equal(entries(p, "outside"), 0);
    assert_int_equal(xp_store_open_dir(tree_path(&p->t, "logs"), &read_only, &err), XP_OK);
    assert_int_equal(xp_writer_open(read_only, "x", &w, &err), XP_DENIED);
    xp_store_free(read_only);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_appears_when_it_is_whole, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(a_file_that_is_there_is_never_replaced, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(what_is_dropped_leaves_nothing, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(a_folder_with_something_in_it_is_not_cleared, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(
            nothing_is_written_outside_of_the_root_or_where_it_may_not_be, place_setup,
            place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
