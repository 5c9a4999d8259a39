#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/ask.h"
#include "server/download.h"
#include "server/projects.h"
#include "server/runfacts.h"
#include "server/runs_query.h"
#include "tests/unit/tree.h"

struct place {
    struct tree t;
    struct xp_store *s;
    struct run_index *ri;
    struct app app;
    struct runfacts *facts;
};

/* Five runs; names, sizes and times have orders of their own. */
static const struct {
    const char *name;
    int bytes, hosts;
} runs[] = {{"2026_01_05_10_00_00", 10, 1},
            {"2026_01_04_10_00_00_b10", 500, 2},
            {"2026_01_03_10_00_00_b9", 30, 1},
            {"2026_01_02_10_00_00", 30, 3},
            {"2026_01_01_10_00_00", 200, 1}};

static int place_setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    struct xp_error err;
    char key[256], text[512];
    tree_init(&p->t);
    for (size_t i = 0; i < 5; i++)
        for (int h = 0; h < runs[i].hosts; h++) {
            snprintf(key, sizeof key, "logs/plugins/profile/%s/h%d.xplane.pb", runs[i].name, h);
            memset(text, 'x', sizeof text);
            text[runs[i].bytes / runs[i].hosts] = 0;
            tree_file(&p->t, key, text);
        }
    assert_int_equal(xp_store_open_path(tree_path(&p->t, "logs"), &p->s, &err), XP_OK);
    p->ri = run_index_new(&p->s, 1);
    p->app.version = "1";
    assert_int_equal(runfacts_new(&(struct runfacts_config){.app = &p->app}, &p->facts, &err),
                     XP_OK);
    *state = p;
    return 0;
}

static int place_teardown(void **state)
{
    struct place *p = *state;
    runfacts_free(p->facts);
    run_index_free(p->ri);
    xp_store_free(p->s);
    tree_fini(&p->t);
    free(p);
    return 0;
}

/* As if what is known were old. */
static void look_anew(struct place *p)
{
    run_index_free(p->ri);
    p->ri = run_index_new(&p->s, 1);
}

static void know(struct place *p, const char *name, const char *metrics)
{
    const struct run *r;
    struct xp_error err;
    char json[1024];
    snprintf(json, sizeof json, "{\"metrics\":[%s],\"missing_hosts\":[]}", metrics);
    assert_int_equal(run_index_get(p->ri, xp_span_str(name), &r, &err), XP_OK);
    runfacts_told(p->facts, r, xp_span_str(json), false);
    run_unref(r);
}

static void open_page(struct place *p, const char *q, const char *sort, const char *token,
                      size_t limit, struct run_page *page)
{
    struct xp_error err;
    struct run_query query = {.q = xp_span_str(q),
                              .sort = xp_span_str(sort),
                              .token = xp_span_str(token),
                              .limit = limit,
                              .facts = p->facts};
    assert_int_equal(run_index_query(p->ri, &query, page, &err), XP_OK);
}

/* Days of the runs, page by page of that many. */
static void assert_days(struct place *p, const char *q, const char *sort, size_t limit,
                        const char *want)
{
    char got[64] = "", token[4096] = "";
    size_t n = 0;
    do {
        struct run_page page;
        open_page(p, q, sort, token, limit, &page);
        assert_true(page.n <= limit);
        for (size_t i = 0; i < page.n; i++)
            got[n++] = page.runs[i]->name[9];
        snprintf(token, sizeof token, "%s", page.next ? page.next : "");
        run_page_fini(&page);
    } while (token[0]);
    assert_string_equal(got, want);
}

static void runs_are_ordered_by_any_column_page_by_page(void **state)
{
    struct place *p = *state;
    for (size_t limit = 1; limit < 7; limit++) {
        assert_days(p, "", "", limit, "54321");
        assert_days(p, "", "captured", limit, "12345");
        assert_days(p, "", "-size", limit, "41325"); /* equal ones: newest first */
        assert_days(p, "", "size", limit, "53214");
        assert_days(p, "", "-hosts", limit, "24531");
        assert_days(p, "", "run", limit, "12345");
        assert_days(p, "", "-run", limit, "54321");
    }
}

static void what_is_not_known_is_last_either_way(void **state)
{
    struct place *p = *state;
    know(p, runs[1].name, "{\"id\":\"step_time_mean\",\"value\":2e9}");
    know(p, runs[4].name,
         "{\"id\":\"step_time_mean\",\"value\":5000000000},"
         "{\"id\":\"device_type\",\"value\":\"TPU v10\"}");
    know(p, runs[3].name,
         "{\"id\":\"step_time_mean\",\"value\":null,\"reason\":\"no steps\"},"
         "{\"id\":\"device_type\",\"value\":\"TPU v9\"}");
    for (size_t limit = 1; limit < 7; limit++) {
        assert_days(p, "", "step", limit, "41532");
        assert_days(p, "", "-step", limit, "14532");
        assert_days(p, "", "device", limit, "21543");
    }
}

static void a_token_is_of_its_order(void **state)
{
    struct place *p = *state;
    struct run_page page, other;
    struct xp_error err;
    open_page(p, "", "-size", "", 2, &page);
    struct run_query query = {.sort = XP_SPAN_LIT("size"), .limit = 2, .facts = p->facts};
    query.token = xp_span_str(page.next);
    assert_int_equal(run_index_query(p->ri, &query, &other, &err), XP_BAD_REQUEST);
    query.sort = XP_SPAN_LIT("-run");
    assert_int_equal(run_index_query(p->ri, &query, &other, &err), XP_BAD_REQUEST);
    query.sort = XP_SPAN_LIT("colour");
    assert_int_equal(run_index_query(p->ri, &query, &other, &err), XP_BAD_REQUEST);
    assert_non_null(strstr(err.text, "\"colour\""));
    static const char *const bad[] = {"o", "o3,d,", "o3,d,dzz,", "o3,d,d0,0", "o0,a,t0,", "x"};
    query.sort = XP_SPAN_LIT("-size");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        query.token = xp_span_str(bad[i]);
        assert_int_equal(run_index_query(p->ri, &query, &other, &err), XP_BAD_REQUEST);
    }
    run_page_fini(&page);
}

static void a_run_that_goes_leaves_no_gap(void **state)
{
    struct place *p = *state;
    struct run_page page, next;
    open_page(p, "", "-size", "", 2, &page); /* 4 1, then 3 2 5 */
    tree_remove(&p->t, "logs/plugins/profile/2026_01_01_10_00_00/h0.xplane.pb");
    tree_remove(&p->t, "logs/plugins/profile/2026_01_01_10_00_00");
    look_anew(p);
    open_page(p, "", "-size", page.next, 2, &next);
    assert_int_equal(next.total, 4);
    assert_int_equal(next.runs[0]->name[9], '3');
    assert_int_equal(next.runs[1]->name[9], '2');
    run_page_fini(&next);
    run_page_fini(&page);
}

static void words_choose_runs(void **state)
{
    struct place *p = *state;
    know(p, runs[1].name,
         "{\"id\":\"step_time_mean\",\"value\":2000000},{\"id\":\"device_type\","
         "\"value\":\"TPU v5 Lite\"},{\"id\":\"mxu_utilization\",\"value\":0.42},"
         "{\"id\":\"findings_p0\",\"value\":0},{\"id\":\"findings_p1\",\"value\":2},"
         "{\"id\":\"findings_p2\",\"value\":0}");
    assert_days(p, "B9", "", 9, "3");
    assert_days(p, "2026 b", "", 9, "43");
    assert_days(p, "-b", "", 9, "521");
    assert_days(p, "\"01_0\" size>=200B", "", 9, "41");
    assert_days(p, "size<30", "", 9, "5");
    assert_days(p, "hosts=3", "", 9, "2");
    assert_days(p, "device:\"v5 l\"", "", 9, "4");
    assert_days(p, "-device:v5", "", 9, "5321");
    assert_days(p, "step>1.5us mfu>40% findings>1 p0=0", "", 9, "4");
    assert_days(p, "step>1ms", "", 9, "");
    assert_days(p, "state:ready", "-size", 9, "41325");
    assert_days(p, "size>many", "", 9, ""); /* part of a name */
    assert_days(p, "foo:bar", "", 9, "");
    assert_days(p, "   ", "", 9, "54321");
}

static void too_many_words_are_refused(void **state)
{
    struct place *p = *state;
    struct run_page page;
    struct xp_error err;
    char q[2 * (RUN_TERMS_MAX + 1) + 1];
    memset(q, 'a', sizeof q);
    for (size_t i = 1; i < sizeof q; i += 2)
        q[i] = ' ';
    q[sizeof q - 1] = 0;
    struct run_query query = {.q = xp_span_str(q), .limit = 1, .facts = p->facts};
    assert_int_equal(run_index_query(p->ri, &query, &page, &err), XP_BAD_REQUEST);
}

static const struct run *run_of(struct place *p, const char *name)
{
    const struct run *r;
    struct xp_error err;
    assert_int_equal(run_index_get(p->ri, xp_span_str(name), &r, &err), XP_OK);
    return r;
}

static void facts_are_of_the_files_they_were_read_from(void **state)
{
    struct place *p = *state;
    know(p, runs[0].name, "{\"id\":\"cores\",\"value\":8}");
    const struct run *r = run_of(p, runs[0].name);
    const struct run_facts *f = runfacts_get(p->facts, r);
    assert_non_null(f);
    assert_true(f->v[FACT_CORES].known && f->v[FACT_CORES].number == 8);
    assert_false(f->v[FACT_STEP].known);
    run_facts_unref(f);
    uint64_t id = run_id(r);
    run_unref(r);
    tree_file(&p->t, "logs/plugins/profile/2026_01_05_10_00_00/h0.xplane.pb", "another file");
    look_anew(p);
    r = run_of(p, runs[0].name);
    assert_int_not_equal(run_id(r), id);
    assert_null(runfacts_get(p->facts, r));
    run_unref(r);
}

static void facts_are_there_after_a_restart_but_not_of_another_version(void **state)
{
    struct place *p = *state;
    struct xp_error err;
    struct runfacts *rf;
    tree_dir(&p->t, "kept");
    struct runfacts_config config = {.app = &p->app, .dir = tree_path(&p->t, "kept")};
    const struct run *r = run_of(p, runs[0].name);
    assert_int_equal(runfacts_new(&config, &rf, &err), XP_OK);
    runfacts_told(rf, r,
                  XP_SPAN_LIT("{\"metrics\":[{\"id\":\"device_type\",\"value\":\"<v5>\"},{\"id\":"
                              "\"cores\",\"value\":null,\"reason\":\"no device\"}],"
                              "\"missing_hosts\":[{\"host\":\"h9\",\"code\":\"corrupt_profile\","
                              "\"detail\":\"cut\"}]}"),
                  false);
    runfacts_free(rf);
    assert_int_equal(runfacts_new(&config, &rf, &err), XP_OK);
    const struct run_facts *f = runfacts_get(rf, r);
    assert_non_null(f);
    assert_string_equal(f->v[FACT_DEVICE].text, "<v5>");
    assert_string_equal(f->v[FACT_CORES].text, "no device");
    assert_string_equal(f->missing, "h9: cut");
    run_facts_unref(f);
    runfacts_free(rf);
    p->app.version = "2";
    assert_int_equal(runfacts_new(&config, &rf, &err), XP_OK);
    assert_null(runfacts_get(rf, r));
    runfacts_free(rf);
    tree_file(&p->t, "kept/run-facts.json", "{\"format\":1,\"runs\":[7,{}");
    assert_int_equal(runfacts_new(&config, &rf, &err), XP_OK);
    assert_null(runfacts_get(rf, r));
    runfacts_free(rf);
    run_unref(r);
}

static void nothing_is_kept_beside_profiles(void **state)
{
    struct place *p = *state;
    struct xp_error err;
    struct runfacts *rf;
    char *table = strdup(tree_path(&p->t, "table.json")), *kept = strdup(tree_path(&p->t, "kept"));
    char json[2048];
    tree_dir(&p->t, "kept");
    snprintf(json, sizeof json, "{\"projects\":{\"a\":{\"roots\":[\"%s\"]}}}",
             tree_path(&p->t, "logs"));
    tree_file(&p->t, "table.json", json);
    struct projects_config projects = {.table = table};
    assert_int_equal(projects_new(&projects, &p->app.projects, &err), XP_OK);
    struct runfacts_config config = {.app = &p->app, .dir = tree_path(&p->t, "logs/plugins")};
    assert_int_equal(runfacts_new(&config, &rf, &err), XP_BAD_REQUEST);
    config.dir = tree_path(&p->t, "no such");
    assert_int_equal(runfacts_new(&config, &rf, &err), XP_BAD_REQUEST);

    config.dir = kept; /* till a project shows it, too */
    assert_int_equal(runfacts_new(&config, &rf, &err), XP_OK);
    snprintf(json, sizeof json, "{\"projects\":{\"a\":{\"roots\":[\"%s\"]}}}", kept);
    tree_file(&p->t, "table.json", json);
    projects_look(p->app.projects);
    const struct run *r = run_of(p, runs[0].name);
    runfacts_told(rf, r, XP_SPAN_LIT("{\"metrics\":[]}"), false);
    runfacts_free(rf);
    assert_int_equal(rmdir(kept), 0); /* it is empty */
    run_unref(r);
    projects_free(p->app.projects);
    free(table);
    free(kept);
}

#define DENIED "{\"metrics\":[],\"missing_hosts\":[{\"host\":\"h\",\"code\":\"denied\"}]}"
#define CUT "{\"metrics\":[],\"missing_hosts\":[{\"host\":\"h\",\"code\":\"corrupt_profile\"}]}"
#define WHOLE "{\"metrics\":[{\"id\":\"cores\",\"value\":8}],\"missing_hosts\":[]}"

static bool knows(struct runfacts *rf, const struct run *r, bool missing, bool cores)
{
    const struct run_facts *f = runfacts_get(rf, r);
    bool as_told = f && (f->missing != NULL) == missing && f->v[FACT_CORES].known == cores;
    run_facts_unref(f);
    return as_told;
}

static void what_may_pass_is_not_kept_and_gives_way_to_a_whole_report(void **state)
{
    struct place *p = *state;
    struct xp_error err;
    struct runfacts *rf;
    tree_dir(&p->t, "kept");
    struct runfacts_config config = {.app = &p->app, .dir = tree_path(&p->t, "kept")};
    const struct run *denied = run_of(p, runs[0].name), *cut = run_of(p, runs[1].name);
    assert_int_equal(runfacts_new(&config, &rf, &err), XP_OK);
    runfacts_told(rf, denied, XP_SPAN_LIT(DENIED), false);
    runfacts_told(rf, cut, XP_SPAN_LIT(CUT), false);
    assert_true(knows(rf, denied, true, false) && knows(rf, cut, true, false));
    runfacts_free(rf);
    assert_int_equal(runfacts_new(&config, &rf, &err), XP_OK);
    assert_null(runfacts_get(rf, denied));
    assert_true(knows(rf, cut, true, false));

    runfacts_told(rf, denied, XP_SPAN_LIT(DENIED), false);
    runfacts_told(rf, denied, XP_SPAN_LIT(WHOLE), false);
    assert_true(knows(rf, denied, false, true));
    runfacts_told(rf, denied, XP_SPAN_LIT(DENIED), false); /* tells less */
    assert_true(knows(rf, denied, false, true));
    runfacts_put(rf, cut, run_facts_failed("it cannot be read"));
    runfacts_told(rf, cut, XP_SPAN_LIT(WHOLE), false);
    assert_true(knows(rf, cut, false, true));
    runfacts_free(rf);
    run_unref(denied);
    run_unref(cut);
}

static void a_link_in_place_of_the_part_is_not_followed(void **state)
{
    struct place *p = *state;
    struct xp_error err;
    struct runfacts *rf;
    char part[64];
    struct stat st;
    tree_dir(&p->t, "kept");
    snprintf(part, sizeof part, "kept/run-facts.json.%d.part", (int)getpid());
    tree_file(&p->t, "precious", "as it was");
    assert_int_equal(symlink("../precious", tree_path(&p->t, part)), 0);
    struct runfacts_config config = {.app = &p->app, .dir = tree_path(&p->t, "kept")};
    assert_int_equal(runfacts_new(&config, &rf, &err), XP_OK);
    const struct run *r = run_of(p, runs[0].name);
    runfacts_told(rf, r, XP_SPAN_LIT(WHOLE), false);
    runfacts_free(rf);
    run_unref(r);
    assert_int_equal(stat(tree_path(&p->t, "precious"), &st), 0);
    assert_int_equal(st.st_size, strlen("as it was"));
    assert_int_equal(lstat(tree_path(&p->t, "kept/run-facts.json"), &st), 0);
    assert_true(S_ISREG(st.st_mode) && (st.st_mode & 0777) == 0600);
}

static void what_is_no_report_tells_nothing(void **state)
{
    (void)state;
    assert_null(run_facts_parse(XP_SPAN_LIT("")));
    assert_null(run_facts_parse(XP_SPAN_LIT("[]")));
    assert_null(run_facts_parse(XP_SPAN_LIT("{\"metrics\":1}")));
    const struct run_facts *f =
        run_facts_parse(XP_SPAN_LIT("{\"metrics\":[1,{\"id\":7},{\"id\":\"cores\",\"value\":\"x\"},"
                                    "{\"id\":\"device_type\",\"value\":3}]}"));
    assert_non_null(f);
    assert_false(f->v[FACT_CORES].known);
    assert_false(f->v[FACT_DEVICE].known);
    run_facts_unref(f);
    f = run_facts_parse(
        XP_SPAN_LIT("{\"metrics\":[{\"id\":\"device_type\",\"value\":\"v\\u00005\"}]}"));
    assert_non_null(f);
    assert_string_equal(f->v[FACT_DEVICE].text, "v");
    run_facts_unref(f);
}

static void a_joined_run_is_one_whatever_its_order(void **state)
{
    (void)state;
    char name[] = "b//a c//a";
    run_canonical_name(name);
    assert_string_equal(name, "a//a c//b");
    char one[] = "a/b";
    run_canonical_name(one);
    assert_string_equal(one, "a/b");
    assert_true(run_same_name(XP_SPAN_LIT("b//a"), XP_SPAN_LIT("a//b")));
    assert_false(run_same_name(XP_SPAN_LIT("b//a"), XP_SPAN_LIT("a//c")));
    assert_false(run_same_name(XP_SPAN_LIT("b//a"), XP_SPAN_LIT("a///b")));
    assert_true(run_same_name(XP_SPAN_LIT("x"), XP_SPAN_LIT("x")));
    assert_false(run_same_name(XP_SPAN_LIT("x"), XP_SPAN_LIT("y")));
}

static void any_name_is_a_name_of_a_download(void **state)
{
    (void)state;
    struct xp_buf b;
    xp_buf_init(&b, 4096);
    download_disposition("plugins/profile/r/h\u00e9 \"1\".xplane.pb", &b);
    xp_buf_byte(&b, 0);
    assert_string_equal((const char *)b.p, "attachment; filename=\"h___1_.xplane.pb\"; "
                                           "filename*=UTF-8''h%C3%A9%20%221%22.xplane.pb");
    xp_buf_fini(&b);
}

int main(void)
{
#define PLACE(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)
    const struct CMUnitTest tests[] = {
        PLACE(runs_are_ordered_by_any_column_page_by_page),
        PLACE(what_is_not_known_is_last_either_way),
        PLACE(a_token_is_of_its_order),
        PLACE(a_run_that_goes_leaves_no_gap),
        PLACE(words_choose_runs),
        PLACE(too_many_words_are_refused),
        PLACE(facts_are_of_the_files_they_were_read_from),
        PLACE(facts_are_there_after_a_restart_but_not_of_another_version),
        PLACE(nothing_is_kept_beside_profiles),
        PLACE(what_may_pass_is_not_kept_and_gives_way_to_a_whole_report),
        PLACE(a_link_in_place_of_the_part_is_not_followed),
        cmocka_unit_test(a_joined_run_is_one_whatever_its_order),
        cmocka_unit_test(any_name_is_a_name_of_a_download),
        cmocka_unit_test(what_is_no_report_tells_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
