/* The table of projects as an object of a bucket, read again when it is another. */
#include "server/projects.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/gate.h"
#include "tests/unit/bucket_fixture.h"

#define TABLE "gs://tables/site/projects.json"

static int setup(void **state)
{
    struct fake *f = calloc(1, sizeof *f);
    fake_open(f);
    tree_dir(&f->t, "a");
    tree_dir(&f->t, "b");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fake_close(*state);
    free(*state);
    return 0;
}

/* One project of that name whose root is that folder of the tree. */
static void put_table(struct fake *f, const char *project, const char *folder, const char *more)
{
    char text[1024];
    snprintf(text, sizeof text, "{\"projects\": {\"%s\": {\"roots\": [\"%s\"]%s}}}", project,
             tree_path(&f->t, folder), more);
    tree_file(&f->t, "store/tables/site/projects.json", text);
}

static enum xp_status open_table(const char *table, struct projects **ps, struct xp_error *err)
{
    return projects_new(&(struct projects_config){.table = table}, ps, err);
}

static bool has(struct projects *ps, const char *name)
{
    const struct project *p = projects_find(ps, xp_span_str(name));
    project_unref(p);
    return p != NULL;
}

static void a_table_in_a_bucket_is_read_again_when_it_is_another(void **state)
{
    struct fake *f = *state;
    struct projects *ps;
    struct xp_error err = {0};
    uint64_t sent;
    put_table(f, "one", "a", "");
    if (open_table(TABLE, &ps, &err) != XP_OK)
        fail_msg("%s", err.text);
    assert_true(has(ps, "one"));
    free(fake_tell(f, "clear", ""));
    assert_false(projects_look(ps));
    assert_int_equal(fake_calls(f, "alt=media", &sent), 0); /* the same one is not fetched */
    put_table(f, "two", "b", ", \"viewers\": [\"members\"]");
    assert_true(projects_look(ps));
    assert_false(has(ps, "one"));
    const struct project *p = projects_find(ps, XP_SPAN_LIT("two"));
    assert_non_null(p);
    const struct who *who = who_new(WHO_USER, "s", "x@y.z", NULL, 0);
    assert_int_equal(project_right(p, who), RIGHT_VIEW);
    who_unref(who);
    project_unref(p);
    projects_free(ps);
}

static void a_table_that_is_wrong_or_gone_leaves_the_last_good_one(void **state)
{
    struct fake *f = *state;
    struct projects *ps;
    struct xp_error err = {0};
    put_table(f, "one", "a", "");
    assert_int_equal(open_table(TABLE, &ps, &err), XP_OK);
    put_table(f, "two", "b", ", \"colour\": 1");
    assert_false(projects_look(ps));
    put_table(f, "three", "no such folder", "");
    assert_false(projects_look(ps));
    tree_remove(&f->t, "store/tables/site/projects.json");
    assert_false(projects_look(ps));
    free(fake_tell(f, "set", "{\"rules\":[{\"match\":\"projects.json\",\"status\":403}]}"));
    assert_false(projects_look(ps));
    assert_true(has(ps, "one"));
    put_table(f, "four", "b", "");
    assert_true(projects_look(ps));
    assert_true(has(ps, "four"));
    projects_free(ps);
}

static void a_table_that_cannot_be_read_at_first_is_a_sentence(void **state)
{
    struct fake *f = *state;
    static const struct {
        const char *table, *words;
    } rows[] = {{"gs://tables/none.json", "there is no object gs://tables/none.json"},
                {"gs://tables/", "names no object"},
                {"gs://tables/site/large.json", "larger than"},
                {"gs://tables/site/bad.json", "line 1"}};
    struct projects *ps;
    fake_object(f, "tables", "site/large.json", PROJECTS_TABLE_MAX + 1);
    tree_file(&f->t, "store/tables/site/bad.json", "{");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct xp_error err = {0};
        assert_int_not_equal(open_table(rows[i].table, &ps, &err), XP_OK);
        if (!strstr(err.text, rows[i].words))
            fail_msg("%s: %s", rows[i].table, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_in_a_bucket_is_read_again_when_it_is_another),
        cmocka_unit_test(a_table_that_is_wrong_or_gone_leaves_the_last_good_one),
        cmocka_unit_test(a_table_that_cannot_be_read_at_first_is_a_sentence),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
