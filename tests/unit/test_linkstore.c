/* Records of links and what is revoked, in a directory and in a bucket. */
#include "server/linkstore.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/bucket_fixture.h"

#define LONG_AGO 1000
#define LATER INT64_C(4000000000)

static int setup(void **state)
{
    struct fake *f = calloc(1, sizeof *f);
    fake_open(f);
    tree_dir(&f->t, "store/state");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fake_close(*state);
    free(*state);
    return 0;
}

static struct linkstore *open_every(const char *where, uint32_t look_ms)
{
    struct linkstore *ls = NULL;
    struct xp_error err = {0};
    if (linkstore_open(where, NULL, look_ms, &ls, &err) != XP_OK)
        fail_msg("%s", err.text);
    return ls;
}

/* Looks only when it is told to. */
static struct linkstore *open_at(const char *where)
{
    return open_every(where, 3600000);
}

static struct link_claims add(struct linkstore *ls, const char *project, const char *run)
{
    struct link_claims c = {.issued_s = LONG_AGO, .expires_s = LATER};
    struct xp_error err = {0};
    snprintf(c.project, sizeof c.project, "%s", project);
    snprintf(c.run, sizeof c.run, "%s", run);
    snprintf(c.view, sizeof c.view, "trace?run=x");
    assert_int_equal(link_new_id(&c, &err), XP_OK);
    if (linkstore_add(ls, &c, "user:a@b.c", &err) != XP_OK)
        fail_msg("%s", err.text);
    return c;
}

/* How many links, over all pages; *of_run: those whose run is `named`. */
static size_t count(struct linkstore *ls, const char *run, const char *named, size_t *of_run)
{
    struct link_page page;
    struct xp_error err = {0};
    char *after = NULL;
    size_t n = 0;
    *of_run = 0;
    do {
        if (linkstore_list(ls, "p", run, after, &page, &err) != XP_OK)
            fail_msg("%s", err.text);
        for (size_t i = 0; i < page.n; i++) {
            assert_string_equal(page.v[i].claims.project, "p");
            *of_run += strcmp(page.v[i].claims.run, named) == 0;
        }
        n += page.n;
        free(after);
        after = page.next ? strdup(page.next) : NULL;
        link_page_fini(&page);
    } while (after);
    return n;
}

static void links_of_all_runs_are_listed_with_their_runs(void **state)
{
    struct fake *f = *state;
    static const char odd[] = "exp/2026 #1_\xc3\xbc%2F..";
    char *dir = strdup(tree_path(&f->t, "store/state"));
    const char *const places[] = {dir, "gs://state/bucket"};
    for (int i = 0; i < 2; i++) {
        struct linkstore *ls = open_at(places[i]);
        size_t of_run;
        add(ls, "p", "a");
        add(ls, "p", odd);
        add(ls, "p", odd);
        add(ls, "p", "b");
        add(ls, "pp", "a");
        assert_int_equal(count(ls, NULL, odd, &of_run), 4);
        assert_int_equal(of_run, 2);
        assert_int_equal(count(ls, odd, odd, &of_run), 2);
        assert_int_equal(count(ls, "none", odd, &of_run), 0);
        linkstore_close(ls);
    }
    free(dir);
}

static void long_lists_come_in_pages_and_damage_is_left_out(void **state)
{
    struct fake *f = *state;
    static const char record[] =
        "{\"id\":\"%032x\",\"tool\":\"\",\"view\":\"trace?run=r\",\"audience\":\"members\","
        "\"domain\":\"\",\"by\":\"x\",\"issued_s\":1,\"expires_s\":2}";
    char name[128], text[512];
    size_t of_run;
    for (unsigned i = 0; i < LINKSTORE_LIST_MAX + 20; i++) {
        snprintf(name, sizeof name, "store/pages/links/p/r/%032x", i);
        snprintf(text, sizeof text, record, i);
        tree_file(&f->t, name, i % 100 == 7 ? "{" : text);
    }
    tree_file(&f->t, "store/pages/links/p/stray", "{}");
    tree_file(&f->t, "store/pages/links/p/%zz/0123456789abcdef0123456789abcdef", "{}");
    struct linkstore *ls = open_at("gs://pages");
    assert_int_equal(count(ls, NULL, "r", &of_run), LINKSTORE_LIST_MAX + 20 - 3);
    linkstore_close(ls);
    struct linkstore *local = open_at(tree_path(&f->t, "store/pages"));
    assert_int_equal(count(local, NULL, "r", &of_run), LINKSTORE_LIST_MAX + 20 - 3);
    linkstore_close(local);
}

static void what_is_revoked_stays_so_whoever_looks(void **state)
{
    struct fake *f = *state;
    struct xp_error err = {0};
    char *dir = strdup(tree_path(&f->t, "store/state"));
    struct linkstore *mine = open_at(dir), *other = open_at(dir);
    struct link_claims one = add(mine, "p", "one"), all = add(mine, "p", "all"),
                       kept = add(mine, "p", "kept");
    assert_int_equal(linkstore_revoke(mine, &one, &err), XP_OK);
    assert_int_equal(linkstore_revoke_run(mine, "p", "all", 2000, &err), XP_OK);
    for (int i = 0; i < 3; i++) { /* at once, and from what is listed, and again */
        assert_int_equal(linkstore_judge(mine, &one), LINK_REVOKED);
        assert_int_equal(linkstore_judge(mine, &all), LINK_REVOKED);
        assert_int_equal(linkstore_judge(mine, &kept), LINK_GOOD);
        assert_int_equal(linkstore_issue_time(mine, "p", "all", 1500), 2001);
        linkstore_look(mine);
    }
    assert_int_equal(linkstore_judge(other, &one), LINK_GOOD);
    linkstore_look(other);
    assert_int_equal(linkstore_judge(other, &one), LINK_REVOKED);
    assert_int_equal(linkstore_judge(other, &all), LINK_REVOKED);
    assert_int_equal(linkstore_judge(other, &kept), LINK_GOOD);
    struct linkstore_stats st;
    linkstore_stats(other, &st);
    assert_int_equal(st.revoked, 2);
    linkstore_close(mine);
    linkstore_close(other);
    free(dir);
}

static void what_is_revoked_of_a_part_is_of_the_whole(void **state)
{
    struct fake *f = *state;
    struct xp_error err = {0};
    struct link_record r;
    char text[LINK_ID_TEXT];
    size_t whole;
    tree_dir(&f->t, "store/parts");
    struct linkstore *ls = open_at(tree_path(&f->t, "store/parts"));
    struct link_claims c = add(ls, "p", "a//b"), own = add(ls, "p", "c");
    link_id_text(&c, text);
    const char *const of[] = {"a", "b", "a//b", NULL};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(count(ls, of[i], "a//b", &whole), i == 3 ? 2 : 1);
        assert_int_equal(whole, 1);
    }
    assert_int_equal(count(ls, "c", "a//b", &whole), 1);
    assert_int_equal(whole, 0);
    assert_int_equal(linkstore_get(ls, "p", "b", text, &r, &err), XP_OK);
    assert_string_equal(r.claims.run, "a//b");
    assert_int_equal(linkstore_get(ls, "p", "c", text, &r, &err), XP_NOT_FOUND);
    assert_int_equal(linkstore_judge(ls, &c), LINK_GOOD);
    assert_int_equal(linkstore_revoke_run(ls, "p", "b", 2000, &err), XP_OK);
    for (int i = 0; i < 2; i++) { /* at once, and from what is listed */
        assert_int_equal(linkstore_judge(ls, &c), LINK_REVOKED);
        assert_int_equal(linkstore_judge(ls, &own), LINK_GOOD);
        assert_int_equal(linkstore_issue_time(ls, "p", "a//b", 1500), 2001);
        assert_int_equal(linkstore_issue_time(ls, "p", "a", 1500), 1500);
        linkstore_look(ls);
    }
    linkstore_close(ls);
}

static void names_too_long_for_a_directory_have_links_as_others(void **state)
{
    struct fake *f = *state;
    struct xp_error err = {0};
    char name[LINK_RUN_MAX + 1] = "2024_01_31_12_00_00", other[LINK_RUN_MAX + 1];
    size_t of_run;
    tree_dir(&f->t, "store/long");
    char *dir = strdup(tree_path(&f->t, "store/long"));
    const char *const places[] = {dir, "gs://state/long"};
    for (int i = 1; i < 40; i++)
        snprintf(name + strlen(name), sizeof name - strlen(name), "//2024_01_31_12_00_%02d", i);
    snprintf(other, sizeof other, "%s//x", name);
    for (int i = 0; i < 2; i++) {
        struct linkstore *ls = open_at(places[i]);
        struct link_claims c = add(ls, "p", name), kept = add(ls, "p", other);
        assert_int_equal(count(ls, name, name, &of_run), 1);
        assert_int_equal(of_run, 1);
        assert_int_equal(count(ls, NULL, name, &of_run), 2);
        assert_int_equal(of_run, 1);
        assert_int_equal(linkstore_revoke_run(ls, "p", name, 2000, &err), XP_OK);
        linkstore_look(ls);
        assert_int_equal(linkstore_judge(ls, &c), LINK_REVOKED);
        assert_int_equal(linkstore_judge(ls, &kept), LINK_GOOD);
        linkstore_close(ls);
    }
    free(dir);
}

/* By itself, of processes that share nothing else. */
static void what_is_revoked_is_known_everywhere_after_a_while(void **state)
{
    struct fake *f = *state;
    struct xp_error err = {0};
    char *dir = strdup(tree_path(&f->t, "store/state"));
    const char *const places[] = {dir, "gs://state/shared"};
    for (size_t i = 0; i < 2; i++) {
        struct linkstore *mine = open_at(places[i]);
        struct linkstore *others[] = {open_every(places[i], 1), open_every(places[i], 20)};
        struct link_claims one = add(mine, "p", "one"), all = add(mine, "p", "whole");
        assert_int_equal(linkstore_judge(others[0], &one), LINK_GOOD);
        assert_int_equal(linkstore_judge(others[1], &all), LINK_GOOD);
        assert_int_equal(linkstore_revoke(mine, &one, &err), XP_OK);
        assert_int_equal(linkstore_revoke_run(mine, "p", "whole", 2000, &err), XP_OK);
        for (size_t k = 0; k < 2; k++) {
            for (int n = 0; n < 20000 && (linkstore_judge(others[k], &one) != LINK_REVOKED ||
                                          linkstore_judge(others[k], &all) != LINK_REVOKED);
                 n++)
                usleep(1000);
            assert_int_equal(linkstore_judge(others[k], &one), LINK_REVOKED);
            assert_int_equal(linkstore_judge(others[k], &all), LINK_REVOKED);
            linkstore_close(others[k]);
        }
        linkstore_close(mine);
    }
    free(dir);
}

static void links_are_in_doubt_until_it_is_known_what_is_revoked(void **state)
{
    struct fake *f = *state;
    struct link_claims c = {.project = "p", .run = "r", .issued_s = LONG_AGO, .expires_s = LATER};
    free(fake_tell(f, "set", "{\"rules\":[{\"match\":\"revoked\",\"status\":403,\"times\":1}]}"));
    struct linkstore *ls = open_at("gs://state/doubt");
    assert_int_equal(linkstore_judge(ls, &c), LINK_UNSURE);
    linkstore_look(ls);
    assert_int_equal(linkstore_judge(ls, &c), LINK_GOOD);
    struct linkstore_stats st;
    linkstore_stats(ls, &st);
    assert_int_equal(st.revoked, 0);
    assert_true(st.since_s >= 0);
    linkstore_close(ls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_of_all_runs_are_listed_with_their_runs),
        cmocka_unit_test(long_lists_come_in_pages_and_damage_is_left_out),
        cmocka_unit_test(what_is_revoked_stays_so_whoever_looks),
        cmocka_unit_test(what_is_revoked_of_a_part_is_of_the_whole),
        cmocka_unit_test(names_too_long_for_a_directory_have_links_as_others),
        cmocka_unit_test(what_is_revoked_is_known_everywhere_after_a_while),
        cmocka_unit_test(links_are_in_doubt_until_it_is_known_what_is_revoked),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
