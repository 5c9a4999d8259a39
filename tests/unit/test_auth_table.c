#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/gate_int.h"
#include "server/login.h"
#include "server/projects_int.h"
#include "server/ratelimit.h"

#define SECOND UINT64_C(1000000000)

/* --- the document --- */

static void a_table_is_read_in_the_order_of_names(void **state)
{
    static const char text[] =
        "{\"projects\": {\n"
        " \"b-2\": {\"roots\": [\"x\", \"gs://b/p\"], \"links\": {\"anyone\": true, \"max_days\": "
        "3}},\n"
        " \"a\": {\"roots\": [\"y\"], \"viewers\": [\"domain:Example.COM\", \"members\"],\n"
        "        \"editors\": [\"group:G\"], \"admins\": [\"user:A@b.c\"]}}}";
    struct table_rows rows;
    struct xp_error err = {0};
    (void)state;
    assert_int_equal(table_parse(xp_span_str(text), &rows, &err), XP_OK);
    assert_int_equal(rows.n, 2);
    assert_string_equal(rows.v[0].name, "a");
    assert_int_equal(rows.v[0].links_max_days, LINK_DAYS_MAX);
    assert_false(rows.v[0].links_anyone);
    assert_string_equal(rows.v[0].lists[LIST_VIEWERS].v[0].name, "example.com");
    assert_int_equal(rows.v[0].lists[LIST_VIEWERS].v[1].kind, MEMBER_SIGNED_IN);
    assert_string_equal(rows.v[0].lists[LIST_ADMINS].v[0].name, "a@b.c");
    assert_int_equal(rows.v[1].n_roots, 2);
    assert_true(rows.v[1].links_anyone);
    assert_int_equal(rows.v[1].links_max_days, 3);
    table_fini(&rows);
}

#define TABLE(text) "{\"projects\": {\n\"p\": {\"roots\": [\"r\"],\n" text "}}}"

static void what_is_wrong_is_said_with_its_line(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"{", "line 1"},
        {"{\"projects\": {\n\n]}", "line 3"},
        {"[]", "the table is"},
        {"{\"project\": {}}", "line 1: the field \"project\" is unknown"},
        {"{\"projects\": []}", "line 1"},
        {"{\"projects\": {}}", "line 1"},
        {"{\"projects\": {\n\"Big\": {}}}", "line 2: \"Big\" is no name"},
        {"{\"projects\": {\n\"-a\": {}}}", "line 2: \"-a\" is no name"},
        {"{\"projects\": {\n\"\": {}}}", "is no name"},
        {"{\"projects\": {\n\"../x\": {}}}", "is no name"},
        {"{\"projects\": {\"p\": []}}", "line 1: project \"p\": it is not an object"},
        {"{\"projects\": {\"p\": {}}}", "line 1: project \"p\": it has no roots"},
        {"{\"projects\": {\"p\": {\"roots\": \"r\"}}}", "roots is a list of strings"},
        {"{\"projects\": {\"p\": {\"roots\": [\"\"]}}}", "roots is a list of strings"},
        {TABLE("\"owners\": []"), "line 3: project \"p\": the field \"owners\" is unknown"},
        {TABLE("\"viewers\": [\n\"ann@example.com\"]"),
         "line 4: project \"p\": \"ann@example.com\""},
        {TABLE("\"viewers\": [\"user:ann\"]"), "line 3"},
        {TABLE("\"viewers\": [\"domain:@x\"]"), "line 3"},
        {TABLE("\"viewers\": [\"group:\"]"), "line 3"},
        {TABLE("\"viewers\": [\"group:a b\"]"), "line 3"},
        {TABLE("\"viewers\": [\"allUsers\"]"), "line 3"},
        {TABLE("\"viewers\": [7]"), "line 3"},
        {TABLE("\"links\": {\n\"max_days\": 0}"), "line 4"},
        {TABLE("\"links\": {\"max_days\": 91}"), "line 3"},
        {TABLE("\"links\": {\"anyone\": 1}"), "line 3"},
        {TABLE("\"links\": {\"everyone\": true}"), "line 3"},
        {TABLE("\"links\": 1"), "line 3"},
        {TABLE("\"viewers\": [], \"viewers\": []"), "duplicate"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct table_rows got;
        struct xp_error err = {0};
        enum xp_status status = table_parse(xp_span_str(rows[i].text), &got, &err);
        table_fini(&got);
        if (status != XP_BAD_REQUEST || !strstr(err.text, rows[i].words))
            fail_msg("%s: %s", rows[i].text, err.text);
    }
}

/* --- rights --- */

static struct projects *open_table(const char *lists)
{
    char path[] = "/tmp/xprofd-table-XXXXXX";
    struct projects *ps = NULL;
    struct xp_error err = {0};
    struct projects_config config = {NULL, path, NULL, NULL};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    dprintf(fd, "{\"projects\": {\"p\": {\"roots\": [\"/tmp\"], %s}}}", lists);
    close(fd);
    assert_int_equal(projects_new(&config, &ps, &err), XP_OK);
    unlink(path);
    return ps;
}

static enum right right_of(const struct project *p, const char *email, const char *group)
{
    const char *groups[] = {group};
    const struct who *who = who_new(WHO_USER, "subject", email, groups, group ? 1 : 0);
    enum right right = project_right(p, who);
    who_unref(who);
    return right;
}

static void a_right_is_the_greatest_that_a_list_gives(void **state)
{
    struct projects *ps = open_table("\"viewers\": [\"domain:example.com\", \"user:v@x.org\"],"
                                     "\"editors\": [\"group:Eng@example.com\"],"
                                     "\"admins\": [\"user:Ann@example.com\"]");
    const struct project *p = projects_default(ps);
    (void)state;
    assert_non_null(p);
    assert_int_equal(right_of(p, "bob@example.com", NULL), RIGHT_VIEW);
    assert_int_equal(right_of(p, "BOB@EXAMPLE.COM", NULL), RIGHT_VIEW);
    assert_int_equal(right_of(p, "v@x.org", NULL), RIGHT_VIEW);
    assert_int_equal(right_of(p, "bob@example.com", "eng@example.com"), RIGHT_EDIT);
    assert_int_equal(right_of(p, "", "ENG@example.com"), RIGHT_EDIT);
    assert_int_equal(right_of(p, "ann@example.com", "eng@example.com"), RIGHT_ADMIN);
    assert_int_equal(project_right(p, &who_local), RIGHT_ADMIN);
    project_unref(p);
    projects_free(ps);
}

static void who_is_on_no_list_has_no_right(void **state)
{
    struct projects *ps = open_table("\"viewers\": [\"domain:example.com\", \"group:g\"]");
    const struct project *p = projects_default(ps);
    const struct who *link = who_new(WHO_LINK, "example.com", "a@example.com", NULL, 0);
    (void)state;
    assert_int_equal(right_of(p, "", NULL), RIGHT_NONE);
    assert_int_equal(right_of(p, "a@sub.example.com", NULL), RIGHT_NONE);
    assert_int_equal(right_of(p, "a@example.com.evil.org", NULL), RIGHT_NONE);
    assert_int_equal(right_of(p, "example.com", NULL), RIGHT_NONE);
    assert_int_equal(right_of(p, "a@notexample.com", "gg"), RIGHT_NONE);
    assert_int_equal(project_right(p, &who_nobody), RIGHT_NONE);
    assert_int_equal(project_right(p, link), RIGHT_NONE);
    size_t n;
    const struct project **v = projects_list(ps, &who_nobody, &n);
    assert_int_equal(n, 0);
    free(v);
    who_unref(link);
    project_unref(p);
    projects_free(ps);
}

static void members_are_those_who_are_signed_in(void **state)
{
    struct projects *ps = open_table("\"viewers\": [\"members\"]");
    const struct project *p = projects_default(ps);
    (void)state;
    assert_int_equal(right_of(p, "", NULL), RIGHT_VIEW);
    assert_int_equal(project_right(p, &who_nobody), RIGHT_NONE);
    project_unref(p);
    projects_free(ps);
}

static void an_identity_is_copied_and_bounded(void **state)
{
    char *groups[WHO_GROUPS_MAX + 2], huge[WHO_TEXT_MAX + 2];
    (void)state;
    memset(huge, 'x', sizeof huge - 1);
    huge[sizeof huge - 1] = 0;
    groups[0] = huge;
    for (int i = 1; i < WHO_GROUPS_MAX + 2; i++)
        groups[i] = "g";
    const struct who *who =
        who_new(WHO_USER, "s", huge, (const char *const *)groups, WHO_GROUPS_MAX + 2);
    assert_int_equal(who->n_groups, WHO_GROUPS_MAX);
    assert_string_equal(who->groups[0], "g");
    assert_string_equal(who->email, "");
    assert_string_equal(who_name(who), "user:s");
    who_unref(who_ref(who));
    who_unref(who);
    assert_string_equal(who_name(&who_nobody), "nobody");
}

/* --- the way back from a login --- */

static void a_place_to_go_to_is_one_of_this_site(void **state)
{
    static const char *const good[] = {"", "p/a/", "p/a/trace?run=r&host=h:1//x", "?q",
                                       "p/a/x%20y"};
    static const char *const bad[] = {
        "/",   "//x",       "p//x", "../x", "p/../x", "p/..", "p/%2e%2e/", "p/%2E./",
        "a:b", "https://x", ":x",   "p\\x", "p/#x",   "p x",  "p/\x7f",    "p/\xff"};
    char longest[2000];
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!login_place_ok(xp_span_str(good[i])))
            fail_msg("%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (login_place_ok(xp_span_str(bad[i])))
            fail_msg("%s", bad[i]);
    memset(longest, 'a', sizeof longest);
    assert_false(login_place_ok(xp_span_of(longest, sizeof longest)));
    assert_false(login_place_ok(XP_SPAN_LIT("p/\0a")));
}

/* --- cookies --- */

static void cookies_are_as_safe_as_the_address_of_the_site(void **state)
{
    static const struct {
        const char *url, *name, *path;
        bool secure;
    } rows[] = {{"https://x.example", "__Host-xprofd-session", "/", true},
                {"https://x.example/", "__Host-xprofd-session", "/", true},
                {"https://x.example/a", "xprofd-session", "/a/", true},
                {"http://localhost:8791", "xprofd-session", "/", false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *argv[] = {"xprofd",
                        "/tmp",
                        "--auth=oidc",
                        "--oidc-issuer=http://127.0.0.1:9",
                        "--oidc-client-id=x",
                        "--public-url",
                        (char *)rows[i].url,
                        NULL};
        struct options o;
        struct gate *g = NULL;
        struct xp_error err = {0};
        assert_int_equal(options_parse(7, argv, "0", &o), OPTIONS_OK);
        if (gate_new(&o, &g, &err) != XP_OK)
            fail_msg("%s", err.text);
        assert_string_equal(g->session_cookie, rows[i].name);
        assert_string_equal(g->path, rows[i].path);
        assert_int_equal(g->secure, rows[i].secure);
        gate_free(g);
    }
}

/* --- limits --- */

static void a_bucket_gives_its_burst_and_then_its_rate(void **state)
{
    struct ratelimit *r = ratelimit_new(10);
    uint64_t now = 1000 * SECOND;
    (void)state;
    for (int i = 0; i < 10 * RATELIMIT_BURST_S; i++)
        assert_int_equal(ratelimit_take(r, "ann", now), 0);
    assert_int_equal(ratelimit_take(r, "ann", now), 1);
    assert_int_equal(ratelimit_take(r, "bob", now), 0);
    assert_int_equal(ratelimit_take(r, "ann", now + SECOND / 10 + 1), 0);
    assert_int_equal(ratelimit_take(r, "ann", now + SECOND / 10 + 1), 1);
    assert_int_equal(ratelimit_take(r, "ann", now), 1); /* a clock that goes back gives nothing */
    ratelimit_free(r);
    assert_null(ratelimit_new(0));
    assert_int_equal(ratelimit_take(NULL, "ann", now), 0);
}

static void many_askers_do_not_free_the_one_who_asks_most(void **state)
{
    struct ratelimit *r = ratelimit_new(10);
    uint64_t now = 1000 * SECOND;
    char name[32];
    int refused = 0;
    (void)state;
    while (ratelimit_take(r, "flood", now) == 0)
        ;
    for (int i = 0; i < 4 * RATELIMIT_BUCKETS; i++) {
        snprintf(name, sizeof name, "asker-%d", i);
        assert_int_equal(ratelimit_take(r, name, now), 0);
        if (i % 64 == 0)
            refused += ratelimit_take(r, "flood", now) != 0;
    }
    assert_int_equal(refused, 4 * RATELIMIT_BUCKETS / 64);
    ratelimit_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_read_in_the_order_of_names),
        cmocka_unit_test(what_is_wrong_is_said_with_its_line),
        cmocka_unit_test(a_right_is_the_greatest_that_a_list_gives),
        cmocka_unit_test(who_is_on_no_list_has_no_right),
        cmocka_unit_test(members_are_those_who_are_signed_in),
        cmocka_unit_test(an_identity_is_copied_and_bounded),
        cmocka_unit_test(a_place_to_go_to_is_one_of_this_site),
        cmocka_unit_test(cookies_are_as_safe_as_the_address_of_the_site),
        cmocka_unit_test(a_bucket_gives_its_burst_and_then_its_rate),
        cmocka_unit_test(many_askers_do_not_free_the_one_who_asks_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
