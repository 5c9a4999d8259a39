#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "server/runs.h"
#include "tests/unit/tree.h"

#define RUN "plugins/profile/"

struct place {
    struct tree t;
    struct xp_store *s;
    struct run_index *ri;
};

static int place_setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    tree_init(&p->t);
    tree_dir(&p->t, "logs");
    *state = p;
    return 0;
}

static int place_teardown(void **state)
{
    struct place *p = *state;
    run_index_free(p->ri);
    xp_store_free(p->s);
    tree_fini(&p->t);
    free(p);
    return 0;
}

/* Opens an index over a path of the tree; the files are there already. */
static void start(struct place *p, const char *key)
{
    struct xp_error err;
    assert_int_equal(xp_store_open_path(tree_path(&p->t, key), &p->s, &err), XP_OK);
    p->ri = run_index_new(&p->s, 1);
    assert_non_null(p->ri);
}

static void file(struct place *p, const char *key)
{
    char path[5000];
    snprintf(path, sizeof path, "logs/%s", key);
    tree_file(&p->t, path, "xplane");
}

static void page_open(struct place *p, const char *q, const char *token, size_t limit,
                      struct run_page *page)
{
    struct xp_error err;
    assert_int_equal(run_index_list(p->ri, xp_span_str(q), xp_span_str(token), limit, page, &err),
                     XP_OK);
    assert_true(page->n <= limit);
}

static void assert_runs(struct place *p, const char *q, const char *want)
{
    struct run_page page;
    char got[4096] = "";
    size_t at = 0;
    page_open(p, q, "", 100, &page);
    for (size_t i = 0; i < page.n; i++)
        at += (size_t)snprintf(got + at, sizeof got - at, "%s%s", i ? " " : "", page.runs[i]->name);
    assert_string_equal(got, want);
    assert_null(page.next);
    run_page_fini(&page);
}

static const struct run *get(struct place *p, const char *name)
{
    const struct run *r;
    struct xp_error err;
    assert_int_equal(run_index_get(p->ri, xp_span_str(name), &r, &err), XP_OK);
    assert_string_equal(r->name, name);
    return r;
}

static void assert_hosts(const struct run *r, const char *want)
{
    char got[4096] = "";
    size_t at = 0;
    for (size_t i = 0; i < r->n_hosts; i++)
        at += (size_t)snprintf(got + at, sizeof got - at, "%s%s%s", i ? " " : "", r->hosts[i].name,
                               r->hosts[i].gz ? "(gz)" : "");
    assert_string_equal(got, want);
    run_unref(r);
}

static void assert_compat(struct place *p, const char *session, const char *run_path,
                          const char *want)
{
    struct run_scope scope = {xp_span_str(session), xp_span_str(run_path)};
    struct run_names names;
    struct xp_error err;
    char got[4096] = "";
    size_t at = 0;
    assert_int_equal(run_index_compat_list(p->ri, &scope, &names, &err), XP_OK);
    for (size_t i = 0; i < names.n; i++)
        at += (size_t)snprintf(got + at, sizeof got - at, "%s%s", i ? " " : "", names.v[i]);
    assert_string_equal(got, want);
    run_names_fini(&names);
}

/* --- layouts --- */

static void every_layout_is_found_and_only_plugin_folders_are_compatible(void **state)
{
    struct place *p = *state;
    file(p, RUN "2024_01_04_00_00_00/h.xplane.pb");
    file(p, "train/" RUN "2024_01_03_00_00_00/h.xplane.pb");
    file(p, "a/b/" RUN "2024_01_02_00_00_00/h.xplane.pb.gz");
    file(p, "2024_01_01_00_00_00/h.xplane.pb");
    file(p, "x/y/2023_01_01_00_00_00/h.xplane.pb");
    file(p, "x/y/notes.txt");
    start(p, "logs");
    assert_runs(p, "",
                "2024_01_04_00_00_00 train/2024_01_03_00_00_00 a/b/2024_01_02_00_00_00 "
                "2024_01_01_00_00_00 x/y/2023_01_01_00_00_00");
    assert_compat(p, "", "",
                  "train/2024_01_03_00_00_00 a/b/2024_01_02_00_00_00 2024_01_04_00_00_00");
    const struct run *r = get(p, "a/b/2024_01_02_00_00_00");
    assert_string_equal(r->hosts[0].key, "a/b/" RUN "2024_01_02_00_00_00/h.xplane.pb.gz");
    assert_hosts(r, "h(gz)");
}

static void folder_that_holds_profiles_itself_is_one_run_named_as_it(void **state)
{
    struct place *p = *state;
    file(p, "w-2.xplane.pb");
    file(p, "w-10.xplane.pb");
    start(p, "logs/");
    assert_runs(p, "", "logs");
    assert_hosts(get(p, "logs"), "w-2 w-10");
}

static void one_file_is_one_run_whatever_it_is_called(void **state)
{
    struct place *p = *state;
    file(p, "w-2.xplane.pb.gz");
    file(p, "other.xplane.pb");
    file(p, "odd.bin");
    start(p, "logs/w-2.xplane.pb.gz");
    assert_runs(p, "", "w-2");
    assert_hosts(get(p, "w-2"), "w-2(gz)");
    run_index_free(p->ri);
    xp_store_free(p->s);
    start(p, "logs/odd.bin");
    assert_runs(p, "", "odd.bin");
    assert_hosts(get(p, "odd.bin"), "odd.bin");
}

static void plain_file_wins_over_its_compressed_one(void **state)
{
    struct place *p = *state;
    file(p, RUN "r/a.xplane.pb");
    file(p, RUN "r/a.xplane.pb.gz");
    file(p, RUN "r/b.xplane.pb.gz");
    file(p, RUN "r/b.xplane.riegeli");
    start(p, "logs");
    const struct run *r = get(p, "r");
    assert_string_equal(r->hosts[0].key, RUN "r/a.xplane.pb");
    assert_hosts(r, "a b(gz)");
}

static void caches_dot_files_and_other_things_are_no_hosts(void **state)
{
    struct place *p = *state;
    file(p, RUN "r/h.xplane.pb");
    file(p, RUN "r/h.SSTABLE");
    file(p, RUN "r/h.metadata.SSTABLE");
    file(p, RUN "r/h.op_stats_v2.pb");
    file(p, RUN "r/jit_f(1).hlo_proto.pb");
    file(p, RUN "r/.cached_tools.json");
    file(p, RUN "r/.hidden.xplane.pb");
    file(p, RUN "r/.xplane.pb");
    file(p, RUN "r/cache_version.txt");
    file(p, RUN "r/xplane.pb");
    file(p, RUN "r/hxplane.pb");
    file(p, RUN "r/sub.xplane.pb/file");
    tree_fifo(&p->t, "logs/" RUN "r/pipe.xplane.pb");
    start(p, "logs");
    assert_hosts(get(p, "r"), "h");
}

static void records_are_hosts_and_stand_back_for_the_plain_file(void **state)
{
    struct place *p = *state;
    file(p, RUN "old/h.xplane.riegeli");
    file(p, RUN "new/g.xplane.riegeli");
    file(p, RUN "new/h.xplane.riegeli");
    file(p, RUN "new/h.xplane.pb");
    start(p, "logs");
    assert_hosts(get(p, "old"), "h(gz)");
    assert_hosts(get(p, "new"), "g(gz) h");
}

static void names_may_hold_any_bytes(void **state)
{
    struct place *p = *state;
    const char *name = "<b>\"'&\n\x01\xff\xfe%2e";
    char key[200];
    snprintf(key, sizeof key, RUN "%s/%s.xplane.pb", name, name);
    file(p, key);
    start(p, "logs");
    assert_runs(p, "", name);
    assert_compat(p, "", "", name);
    const struct run *r = get(p, name);
    assert_string_equal(r->hosts[0].key, key);
    assert_non_null(run_host_find(r, xp_span_str(name)));
    assert_null(run_host_find(r, xp_span_str("h")));
    assert_hosts(r, name);
}

static void names_taken_twice_get_a_mark(void **state)
{
    struct place *p = *state;
    struct xp_store *stores[2];
    struct xp_error err;
    file(p, RUN "r/plugin.xplane.pb");
    file(p, "r/flat.xplane.pb");
    tree_file(&p->t, "second/" RUN "r/second.xplane.pb", "x");
    assert_int_equal(xp_store_open_dir(tree_path(&p->t, "logs"), &stores[0], &err), XP_OK);
    assert_int_equal(xp_store_open_dir(tree_path(&p->t, "second"), &stores[1], &err), XP_OK);
    p->ri = run_index_new(stores, 2);
    for (int i = 0; i < 2; i++) { /* the second time the folders are known */
        assert_hosts(get(p, "r"), "plugin");
        assert_hosts(get(p, "./r"), "flat");
        assert_hosts(get(p, "r@2"), "second");
        usleep(i ? 0 : 1100000);
    }
    run_index_free(p->ri);
    p->ri = NULL;
    xp_store_free(stores[0]);
    xp_store_free(stores[1]);
}

/* --- order --- */

static void runs_are_newest_first_by_name_or_else_by_newest_file(void **state)
{
    struct place *p = *state;
    file(p, RUN "2024_01_31_12_00_00/h.xplane.pb");
    file(p, RUN "later/h.xplane.pb");
    file(p, RUN "later/g.xplane.pb");
    file(p, RUN "earlier/h.xplane.pb");
    tree_set_time(&p->t, "logs/" RUN "later/h.xplane.pb", 1000);
    tree_set_time(&p->t, "logs/" RUN "later/g.xplane.pb", 1738368000000);   /* 2025-02-01 */
    tree_set_time(&p->t, "logs/" RUN "earlier/h.xplane.pb", 1672531200000); /* 2023-01-01 */
    start(p, "logs");
    assert_runs(p, "", "later 2024_01_31_12_00_00 earlier");
    const struct run *r = get(p, "2024_01_31_12_00_00");
    assert_true(r->captured_by_name);
    assert_int_equal(r->captured_ms, 1706702400000);
    run_unref(r);
    r = get(p, "later");
    assert_false(r->captured_by_name);
    assert_int_equal(r->captured_ms, 1738368000000);
    assert_int_equal(r->bytes, 12);
    run_unref(r);
}

static void times_are_read_from_many_forms_of_names(void **state)
{
    (void)state;
    static const char *good[] = {"2024_01_31_12_00_00",      "2024-01-31T12:00:00Z",
                                 "20240131-120000",          "20240131120000",
                                 "job7-2024-01-31_12-00-00", "exp/2024_01_31_12_00_00",
                                 "2024_01_31_12_00_00.123"};
    static const char *bad[] = {"",
                                "run1",
                                "2024_13_31_12_00_00",
                                "2024_02_30_12_00_00",
                                "2024_01_31_24_00_00",
                                "2024_01_31",
                                "2024_01_31_12_00_0",
                                "2024_01_31_12_00_000",
                                "12024_01_31_12_00_00",
                                "1234_01_31_12_00_00",
                                "2024_01_31_12_00_00/run",
                                "2024__01_31_12_00_00"};
    int64_t ms;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(run_time_from_name(good[i], &ms));
        assert_int_equal(ms, 1706702400000);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(run_time_from_name(bad[i], &ms));
}

static void times_in_names_are_local_times(void **state)
{
    (void)state;
    int64_t ms;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    assert_true(run_time_from_name("2024_01_31_13_00_00", &ms));
    assert_int_equal(ms, 1706702400000);
    assert_true(run_time_from_name("2024_07_31_14_00_00", &ms));
    assert_int_equal(ms, 1722427200000);
    assert_true(run_time_from_name("2024_03_31_01_59_59", &ms)); /* summer begins at 2 */
    assert_int_equal(ms, 1711846799000);
    assert_true(run_time_from_name("2024_03_31_03_00_00", &ms));
    assert_int_equal(ms, 1711846800000);
    setenv("TZ", "UTC", 1);
    tzset();
}

static void natural_order_is_total_and_counts_digits(void **state)
{
    (void)state;
    static const char *sorted[] = {"",
                                   "10",
                                   "a",
                                   "a1",
                                   "a01",
                                   "a1b",
                                   "a2",
                                   "a10",
                                   "a10b2",
                                   "a10b10",
                                   "a99999999999999999999",
                                   "a100000000000000000000",
                                   "b",
                                   "\xff"};
    size_t n = sizeof sorted / sizeof *sorted;
    /* a1 and a01 are equal but for zeros: bytes decide, '0' before '1' */
    const char *a = "a01", *b = "a1";
    assert_true(run_natural_cmp(a, b) < 0);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            int c = run_natural_cmp(sorted[i], sorted[k]);
            assert_int_equal(c, -run_natural_cmp(sorted[k], sorted[i]));
            if ((i == 3 && k == 4) || (i == 4 && k == 3))
                continue;
            assert_true(i == k ? c == 0 : i < k ? c < 0 : c > 0);
        }
    }
}

static void hosts_are_in_natural_order_and_by_name_for_xprof(void **state)
{
    struct place *p = *state;
    file(p, RUN "r/worker-10.xplane.pb");
    file(p, RUN "r/worker-2.xplane.pb");
    file(p, RUN "r/worker-1.xplane.pb");
    start(p, "logs");
    const struct run *r = get(p, "r");
    assert_string_equal(r->hosts[r->by_name[0]].name, "worker-1");
    assert_string_equal(r->hosts[r->by_name[1]].name, "worker-10");
    assert_string_equal(r->hosts[r->by_name[2]].name, "worker-2");
    assert_hosts(r, "worker-1 worker-2 worker-10");
}

/* --- pages and search --- */

static void pages_give_every_run_once_for_every_page_size(void **state)
{
    struct place *p = *state;
    enum { N = 23 };
    for (int i = 0; i < N; i++) {
        char key[100]; /* several of one second, in different experiments; some empty */
        snprintf(key, sizeof key, "e%d/" RUN "2024_01_01_00_00_%02d/%s", i, i / 4,
                 i % 5 ? "h.xplane.pb" : "x.txt");
        file(p, key);
    }
    start(p, "logs");
    for (size_t limit = 1; limit < 25; limit++) {
        char token[64] = "";
        int seen = 0, pages = 0;
        int64_t last = INT64_MAX;
        do {
            struct run_page page;
            page_open(p, "", token, limit, &page);
            for (size_t i = 0; i < page.n; i++, seen++) {
                assert_true(page.runs[i]->captured_ms <= last);
                last = page.runs[i]->captured_ms;
            }
            assert_true(page.next == NULL || page.n == limit);
            snprintf(token, sizeof token, "%s", page.next ? page.next : "");
            run_page_fini(&page);
        } while (*token && pages++ < 100);
        assert_int_equal(seen, 18);
    }
    struct run_page page;
    page_open(p, "", "", 100, &page);
    assert_int_equal(page.total, 18);
    assert_true(page.total_exact);
    assert_int_equal(page.n_empty, 5);
    assert_non_null(strstr(page.empty[0]->note, "1 file (1 .txt)"));
    run_page_fini(&page);
}

static void pages_leave_out_nothing_when_runs_come_and_go(void **state)
{
    struct place *p = *state;
    struct run_page page;
    char token[64];
    for (int i = 0; i < 6; i++) {
        char key[100];
        snprintf(key, sizeof key, RUN "2024_01_01_00_00_0%d/h.xplane.pb", i);
        file(p, key);
    }
    start(p, "logs");
    page_open(p, "", "", 2, &page);
    assert_string_equal(page.runs[1]->name, "2024_01_01_00_00_04");
    snprintf(token, sizeof token, "%s", page.next);
    run_page_fini(&page);
    tree_remove(&p->t, "logs/" RUN "2024_01_01_00_00_04/h.xplane.pb");
    tree_remove(&p->t, "logs/" RUN "2024_01_01_00_00_04");
    file(p, RUN "2024_01_01_00_00_09/h.xplane.pb");
    usleep(1100000);
    page_open(p, "", token, 2, &page);
    assert_string_equal(page.runs[0]->name, "2024_01_01_00_00_03");
    run_page_fini(&page);
}

static void search_finds_parts_of_names_in_either_case(void **state)
{
    struct place *p = *state;
    file(p, RUN "LLama-7b/h.xplane.pb");
    file(p, "exp-llama/" RUN "r1/h.xplane.pb");
    file(p, RUN "gemma/h.xplane.pb");
    tree_set_time(&p->t, "logs/" RUN "LLama-7b/h.xplane.pb", 3000);
    tree_set_time(&p->t, "logs/exp-llama/" RUN "r1/h.xplane.pb", 2000);
    start(p, "logs");
    assert_runs(p, "llAMA", "LLama-7b exp-llama/r1");
    assert_runs(p, "-7B", "LLama-7b");
    struct run_page page;
    page_open(p, "nothing like it", "", 10, &page);
    assert_int_equal(page.n, 0);
    assert_non_null(strstr(page.found, "3 runs, none with such a name"));
    run_page_fini(&page);
}

static void bad_tokens_limits_and_queries_are_refused(void **state)
{
    struct place *p = *state;
    struct run_page page;
    struct xp_error err;
    struct xp_span none = {0};
    start(p, "logs");
    const char *tokens[] = {"x", "zz", "0123456789abcdef0123456789abcde",
                            "0123456789ABCDEF0123456789abcdef", "../../../../../../../etc/passwd"};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(run_index_list(p->ri, none, xp_span_str(tokens[i]), 1, &page, &err),
                         XP_BAD_REQUEST);
    assert_int_equal(run_index_list(p->ri, none, none, 0, &page, &err), XP_BAD_REQUEST);
    assert_int_equal(run_index_list(p->ri, none, none, 1001, &page, &err), XP_BAD_REQUEST);
    assert_int_equal(run_index_list(p->ri, XP_SPAN_LIT("a\0b"), none, 1, &page, &err),
                     XP_BAD_REQUEST);
}

/* --- nothing there --- */

static void empty_answer_says_what_was_read_found_and_expected(void **state)
{
    struct place *p = *state;
    struct run_page page;
    file(p, "a.json");
    file(p, "b.json");
    file(p, "d/c.txt");
    file(p, RUN "empty_run/.keep");
    file(p, RUN "other_run/h.txt");
    tree_file(&p->t, "outside/h.xplane.pb", "x");
    tree_link(&p->t, "logs/far", "../outside");
    start(p, "logs");
    page_open(p, "", "", 10, &page);
    assert_int_equal(page.n, 0);
    assert_int_equal(page.total, 0);
    assert_true(page.total_exact);
    assert_string_equal(page.read, tree_path(&p->t, "logs"));
    assert_non_null(strstr(page.found, "5 files (2 .json, 2 .txt, 1 other)"));
    assert_non_null(strstr(page.found, "1 link that lead"));
    assert_non_null(strstr(page.found, "2 run folders without profiles"));
    assert_non_null(strstr(page.expected, "logs/plugins/profile/<run>/<host>.xplane.pb"));
    assert_int_equal(page.n_empty, 2);
    assert_string_equal(page.reason, "other_files");
    run_page_fini(&page);
    assert_compat(p, "", "", "other_run empty_run");
}

static void location_that_vanishes_is_explained_and_comes_back(void **state)
{
    struct place *p = *state;
    struct run_page page;
    start(p, "logs");
    tree_remove(&p->t, "logs");
    page_open(p, "", "", 10, &page);
    assert_non_null(strstr(page.found, "No such file"));
    run_page_fini(&page);
    file(p, RUN "r/h.xplane.pb");
    usleep(1100000);
    assert_runs(p, "", "r");
}

/* --- freshness --- */

static void new_runs_and_hosts_appear_within_two_seconds(void **state)
{
    struct place *p = *state;
    file(p, RUN "2024_01_01_00_00_00/a.xplane.pb");
    start(p, "logs");
    assert_runs(p, "", "2024_01_01_00_00_00");
    assert_hosts(get(p, "2024_01_01_00_00_00"), "a");
    file(p, RUN "2024_01_01_00_00_00/b.xplane.pb");
    file(p, RUN "2024_01_02_00_00_00/a.xplane.pb");
    usleep(300000);
    assert_hosts(get(p, "2024_01_02_00_00_00"), "a"); /* asked for by name: at once */
    usleep(900000);
    assert_runs(p, "", "2024_01_02_00_00_00 2024_01_01_00_00_00");
    assert_hosts(get(p, "2024_01_01_00_00_00"), "a b");
}

static void old_run_that_changes_is_noticed(void **state)
{
    struct place *p = *state;
    const char *dir = "logs/" RUN "2024_01_01_00_00_00";
    file(p, RUN "2024_01_01_00_00_00/a.xplane.pb");
    tree_set_time(&p->t, "logs/" RUN "2024_01_01_00_00_00/a.xplane.pb", 1000);
    tree_set_time(&p->t, dir, 1000);
    start(p, "logs");
    assert_runs(p, "", "2024_01_01_00_00_00");
    const struct run *r = get(p, "2024_01_01_00_00_00");
    uint64_t before = r->hosts[0].generation;
    run_unref(r);
    tree_remove(&p->t, "logs/" RUN "2024_01_01_00_00_00/a.xplane.pb");
    file(p, RUN "2024_01_01_00_00_00/a.xplane.pb");
    usleep(1100000);
    r = get(p, "2024_01_01_00_00_00");
    assert_int_not_equal(r->hosts[0].generation, before);
    run_unref(r);
    tree_remove(&p->t, "logs/" RUN "2024_01_01_00_00_00/a.xplane.pb");
    usleep(1100000);
    assert_runs(p, "", "");
}

static void assert_no_join(struct place *p, const char *name, enum xp_status status,
                           const char *words)
{
    struct xp_error err;
    const struct run *r;
    assert_int_equal(run_index_get(p->ri, xp_span_str(name), &r, &err), status);
    assert_null(r);
    assert_non_null(strstr(err.text, words));
}

static void runs_of_one_moment_are_one_run_when_they_are_asked_for_so(void **state)
{
    struct place *p = *state;
    file(p, RUN "2024_01_31_12_00_00/w-10.xplane.pb");
    file(p, RUN "2024_01_31_12_00_02/w-2.xplane.pb");
    file(p, RUN "2024_01_31_12_00_02/w-3.xplane.riegeli");
    file(p, RUN "2024_01_31_13_00_00/w-2.xplane.pb");
    file(p, RUN "empty/x.txt");
    start(p, "logs");
    const struct run *r = get(p, "2024_01_31_12_00_02//2024_01_31_12_00_00");
    assert_string_equal(r->hosts[2].key, RUN "2024_01_31_12_00_00/w-10.xplane.pb");
    assert_int_equal(r->captured_ms, INT64_C(1706702400000));
    assert_null(r->note);
    assert_string_equal(r->prefix, "");
    assert_int_equal(r->bytes, 18);
    assert_hosts(r, "w-2 w-3(gz) w-10");
    assert_no_join(p, "2024_01_31_12_00_02//2024_01_31_13_00_00", XP_BAD_REQUEST, "\"w-2\"");
    assert_no_join(p, "2024_01_31_12_00_02//nowhere", XP_NOT_FOUND, "nowhere");
    assert_no_join(p, "2024_01_31_12_00_02//empty", XP_NOT_FOUND,
                   "\"empty\" has no profile: holds");
    assert_no_join(p, "2024_01_31_12_00_02//", XP_NOT_FOUND, "not in");
    assert_no_join(p, "//", XP_NOT_FOUND, "not in");
}

static void what_a_part_lacks_is_told_of_the_whole(void **state)
{
    struct place *p = *state;
    char key[64];
    file(p, RUN "b/w-1.xplane.pb");
    for (int i = 0; i < 20000; i++) { /* as many as are read of one folder, and one more */
        snprintf(key, sizeof key, "logs/" RUN "b/z%05d", i);
        tree_file(&p->t, key, "");
    }
    file(p, RUN "a/w-2.xplane.pb");
    start(p, "logs");
    const struct run *r = get(p, "a//b");
    assert_string_equal(r->note, "listing cut at 20000 entries");
    run_unref(r);
}

static void page_says_which_runs_look_like_one_moment(void **state)
{
    struct place *p = *state;
    struct run_page page;
    file(p, RUN "2024_01_31_12_00_00/a.xplane.pb");
    file(p, RUN "2024_01_31_12_00_04/b.xplane.pb");
    file(p, RUN "2024_01_31_12_00_09/c.xplane.pb");
    file(p, RUN "2024_01_31_12_01_00/a.xplane.pb");
    file(p, RUN "2024_01_31_12_01_01/a.xplane.pb"); /* the same host again */
    file(p, RUN "2024_01_31_12_02_00/a.xplane.pb");
    file(p, RUN "2024_01_31_12_02_11/b.xplane.pb"); /* too late */
    file(p, "exp/" RUN "2024_01_31_12_02_12/c.xplane.pb");
    start(p, "logs");
    page_open(p, "", "", 100, &page);
    assert_int_equal(page.n_joins, 1);
    assert_string_equal(page.joins[0].name,
                        "2024_01_31_12_00_00//2024_01_31_12_00_04//2024_01_31_12_00_09");
    assert_int_equal(page.joins[0].n_hosts, 3);
    assert_int_equal(page.joins[0].span_ms, 9000);
    run_unref(get(p, page.joins[0].name));
    run_page_fini(&page);
}

static void files_that_are_no_profiles_are_told_by_a_look(void **state)
{
    struct place *p = *state;
    tree_file(&p->t, "logs/" RUN "r/a.xplane.pb", "\n\1x");
    tree_file(&p->t, "logs/" RUN "r/b.xplane.pb", "");
    tree_file(&p->t, "logs/" RUN "r/c.xplane.pb", "{\"traceEvents\":[]}");
    tree_file(&p->t, "logs/" RUN "r/d.xplane.pb.gz", "\x1f\x8b nothing");
    start(p, "logs");
    const struct run *r = get(p, "r");
    assert_false(run_is_looked_at(r));
    const char *const *why = run_look(r);
    assert_true(run_is_looked_at(r));
    assert_null(why[0]);
    assert_non_null(strstr(why[1], "empty"));
    assert_non_null(strstr(why[2], "JSON"));
    assert_non_null(strstr(why[3], "gzip"));
    assert_ptr_equal(run_look(r), why);
    run_unref(r);
}

static void run_that_is_not_there_is_not_found_in_words(void **state)
{
    struct place *p = *state;
    const struct run *r;
    struct xp_error err;
    struct xp_span bad[] = {XP_SPAN_LIT("nope"),        XP_SPAN_LIT(""),
                            XP_SPAN_LIT("../logs/r"),   XP_SPAN_LIT("r/"),
                            XP_SPAN_LIT("/etc/passwd"), XP_SPAN_LIT("r\0x")};
    file(p, RUN "r/h.xplane.pb");
    start(p, "logs");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(run_index_get(p->ri, bad[i], &r, &err), XP_NOT_FOUND);
        assert_null(r);
        assert_non_null(strstr(err.text, "is not in"));
    }
}

static void what_was_looked_at_just_now_is_known_and_nothing_else_is(void **state)
{
    struct place *p = *state;
    const struct run *known = NULL;
    int i;
    file(p, RUN "r/h.xplane.pb");
    file(p, RUN "s/i.xplane.pb");
    start(p, "logs");
    assert_null(run_index_known(p->ri, XP_SPAN_LIT("r")));
    for (i = 0; i < 100 && !known; i++) { /* a second may pass between the two */
        run_unref(get(p, "r"));
        known = run_index_known(p->ri, XP_SPAN_LIT("r"));
    }
    assert_non_null(known);
    assert_hosts(known, "h");
    assert_null(run_index_known(p->ri, XP_SPAN_LIT("r/")));
    assert_null(run_index_known(p->ri, XP_SPAN_LIT("nope")));
    assert_null(run_index_known(p->ri, XP_SPAN_LIT("r//s")));
    for (known = NULL; !known && i++ < 200;) {
        const struct run *whole = get(p, "r//s");
        known = run_index_known(p->ri, XP_SPAN_LIT("r//s"));
        assert_true(!known || known == whole);
        run_unref(whole);
    }
    assert_hosts(known, "h i");
    assert_null(run_index_known(p->ri, XP_SPAN_LIT("s//r")));
}

/* --- trees that mean ill --- */

static void links_in_circles_end_and_links_are_runs(void **state)
{
    struct place *p = *state;
    file(p, RUN "2024_01_01_00_00_00/h.xplane.pb");
    tree_link(&p->t, "logs/" RUN "latest", "2024_01_01_00_00_00");
    tree_link(&p->t, "logs/me", ".");
    tree_link(&p->t, "logs/a/up", "..");
    tree_link(&p->t, "logs/b/up", "../a");
    tree_link(&p->t, "logs/" RUN "self", "self");
    tree_file(&p->t, "outside/h.xplane.pb", "x");
    tree_link(&p->t, "logs/" RUN "out", "../../../outside");
    tree_link(&p->t, "logs/" RUN "2024_01_01_00_00_00/out.xplane.pb",
              "../../../../outside/h.xplane.pb");
    start(p, "logs");
    assert_hosts(get(p, "latest"), "h");
    assert_hosts(get(p, "2024_01_01_00_00_00"), "h");
    assert_compat(p, "", "", "latest 2024_01_01_00_00_00");
}

static void folders_too_deep_are_not_searched_and_that_is_said(void **state)
{
    struct place *p = *state;
    struct run_page page;
    file(p, "1/2/3/4/5/6/7/8/h.xplane.pb");
    file(p, "1/2/3/4/5/6/7/8/9/10/11/12/h.xplane.pb");
    start(p, "logs");
    page_open(p, "", "", 10, &page);
    assert_int_equal(page.n, 1);
    assert_string_equal(page.runs[0]->name, "1/2/3/4/5/6/7/8");
    assert_non_null(strstr(page.cut, "more than 8 deep"));
    run_page_fini(&page);
}

static void hidden_folders_are_not_searched(void **state)
{
    struct place *p = *state;
    file(p, ".git/" RUN "r/h.xplane.pb");
    file(p, ".trash/h.xplane.pb");
    file(p, RUN ".hidden/h.xplane.pb");
    start(p, "logs");
    assert_runs(p, "", "");
    assert_compat(p, "", "", ".hidden"); /* as XProf lists it */
}

/* --- paths in queries --- */

static void session_path_is_one_run_named_by_its_last_part(void **state)
{
    struct place *p = *state;
    const struct run *r;
    struct xp_error err;
    char path[600];
    file(p, RUN "r1/h.xplane.pb");
    file(p, RUN "empty/x.txt");
    tree_link(&p->t, "logs/latest", RUN "r1");
    start(p, "logs");
    const char *session = tree_path(&p->t, "logs/" RUN "r1");
    assert_compat(p, session, "", "r1");
    assert_compat(p, session, "/etc", "r1"); /* wins over run_path */
    snprintf(path, sizeof path, "%s//./", session);
    assert_compat(p, path, "", "r1");
    assert_compat(p, tree_path(&p->t, "logs/latest"), "", "latest");
    assert_compat(p, tree_path(&p->t, "logs/" RUN "empty"), "", "");
    assert_compat(p, tree_path(&p->t, "logs/none"), "", "");

    struct run_scope scope = {xp_span_str(session), {0}};
    assert_int_equal(run_index_compat_get(p->ri, &scope, XP_SPAN_LIT("r1"), &r, &err), XP_OK);
    assert_hosts(r, "h");
    assert_int_equal(run_index_compat_get(p->ri, &scope, XP_SPAN_LIT("other"), &r, &err),
                     XP_NOT_FOUND);
    snprintf(path, sizeof path, "Run other not found in run map: {'r1': '%s'}", session);
    assert_string_equal(err.text, path);
}

static void run_path_lists_folders_with_profiles(void **state)
{
    struct place *p = *state;
    const struct run *r;
    struct xp_error err;
    file(p, "exp/r1/h.xplane.pb");
    file(p, "exp/r2/h.xplane.riegeli");
    file(p, "exp/r3/h.xplane.pb.gz");
    file(p, "exp/empty/x.txt");
    file(p, "exp/h.xplane.pb");
    start(p, "logs");
    const char *run_path = tree_path(&p->t, "logs/exp");
    assert_compat(p, "", run_path, "r3 r2 r1");
    assert_compat(p, "", tree_path(&p->t, "logs/none"), "");
    struct run_scope scope = {{0}, xp_span_str(run_path)};
    assert_int_equal(run_index_compat_get(p->ri, &scope, XP_SPAN_LIT("r3"), &r, &err), XP_OK);
    assert_hosts(r, "h(gz)");
    struct xp_span bad[] = {XP_SPAN_LIT("empty"), XP_SPAN_LIT(""),    XP_SPAN_LIT(".."),
                            XP_SPAN_LIT("."),     XP_SPAN_LIT("r1/"), XP_SPAN_LIT("../exp/r1"),
                            XP_SPAN_LIT("r1\0")};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(run_index_compat_get(p->ri, &scope, bad[i], &r, &err), XP_NOT_FOUND);
        assert_non_null(strstr(err.text, "not found in run map: {'r3': '"));
    }
}

static void paths_outside_of_the_locations_are_refused(void **state)
{
    struct place *p = *state;
    const struct run *r;
    struct run_names names;
    struct xp_error err;
    char path[600];
    tree_file(&p->t, "outside/run/h.xplane.pb", "x");
    tree_link(&p->t, "logs/out", "../outside/run");
    start(p, "logs");
    snprintf(path, sizeof path, "%s/../outside/run", tree_path(&p->t, "logs"));
    struct xp_span bad[] = {xp_span_str(tree_path(&p->t, "outside/run")),
                            xp_span_str(tree_path(&p->t, "logs/out")),
                            xp_span_str(tree_path(&p->t, "nowhere")),
                            xp_span_str(path),
                            XP_SPAN_LIT("/"),
                            XP_SPAN_LIT(".."),
                            XP_SPAN_LIT("gs://bucket/run"),
                            XP_SPAN_LIT("/tmp\0/x")};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct run_scope session = {bad[i], {0}}, run_path = {{0}, bad[i]};
        assert_int_equal(run_index_compat_list(p->ri, &session, &names, &err), XP_DENIED);
        assert_int_equal(run_index_compat_list(p->ri, &run_path, &names, &err), XP_DENIED);
        assert_true(strlen(err.text) > 10);
        assert_int_equal(run_index_compat_get(p->ri, &session, XP_SPAN_LIT("run"), &r, &err),
                         XP_DENIED);
        assert_null(r);
    }
}

/* --- XProf's host lists --- */

static void assert_tag(const struct run *r, const char *tag, const char *want)
{
    struct run_names names;
    struct xp_error err;
    char got[256] = "";
    size_t at = 0;
    assert_int_equal(run_compat_hosts(r, xp_span_str(tag), &names, &err), XP_OK);
    for (size_t i = 0; i < names.n; i++)
        at += (size_t)snprintf(got + at, sizeof got - at, "%s%s", i ? " " : "", names.v[i]);
    assert_string_equal(got, want);
    run_names_fini(&names);
}

static void host_lists_follow_the_tool(void **state)
{
    struct place *p = *state;
    file(p, RUN "two/w-0.xplane.pb");
    file(p, RUN "two/A.xplane.pb");
    file(p, RUN "one/w-0.xplane.pb");
    file(p, RUN "none/x");
    start(p, "logs");
    const struct run *two = get(p, "two"), *one = get(p, "one"), *none = get(p, "none");
    assert_tag(two, "overview_page", "ALL_HOSTS");
    assert_tag(two, "pod_viewer", "ALL_HOSTS");
    assert_tag(two, "smart_suggestion", "ALL_HOSTS");
    assert_tag(two, "kernel_stats", "A ALL_HOSTS w-0");
    assert_tag(two, "framework_op_stats", "A ALL_HOSTS w-0");
    assert_tag(two, "trace_viewer@", "A w-0");
    assert_tag(two, "", "A w-0");
    assert_tag(one, "overview_page", "w-0");
    assert_tag(none, "overview_page", "");
    run_unref(two), run_unref(one), run_unref(none);
}

/* --- threads --- */

static void *use_index(void *ctx)
{
    struct place *p = ctx;
    struct run_scope scope = {0};
    for (int i = 0; i < 300; i++) {
        struct run_page page;
        struct run_names names;
        struct xp_error err;
        const struct run *r;
        if (run_index_list(p->ri, (struct xp_span){0}, (struct xp_span){0}, 10, &page, &err) ==
            XP_OK)
            run_page_fini(&page);
        if (run_index_get(p->ri, XP_SPAN_LIT("r3"), &r, &err) == XP_OK)
            run_unref(r);
        if (i % 50 == 0 && run_index_get(p->ri, XP_SPAN_LIT("nope"), &r, &err) == XP_OK)
            run_unref(r);
        if (run_index_compat_list(p->ri, &scope, &names, &err) == XP_OK)
            run_names_fini(&names);
        usleep(5000);
    }
    return NULL;
}

static void threads_may_use_the_index_while_runs_come(void **state)
{
    struct place *p = *state;
    pthread_t threads[4];
    for (int i = 0; i < 20; i++) {
        char key[64];
        snprintf(key, sizeof key, RUN "r%d/h.xplane.pb", i);
        file(p, key);
    }
    start(p, "logs");
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_index, p), 0);
    for (int i = 20; i < 60; i++) {
        char key[64];
        snprintf(key, sizeof key, RUN "r%d/h.xplane.pb", i);
        file(p, key);
        usleep(20000);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    usleep(1100000);
    struct run_page page;
    page_open(p, "", "", 1000, &page);
    assert_int_equal(page.n, 60);
    run_page_fini(&page);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)

int main(void)
{
    setenv("TZ", "UTC", 1);
    tzset();
    const struct CMUnitTest tests[] = {
        TEST(every_layout_is_found_and_only_plugin_folders_are_compatible),
        TEST(folder_that_holds_profiles_itself_is_one_run_named_as_it),
        TEST(one_file_is_one_run_whatever_it_is_called),
        TEST(plain_file_wins_over_its_compressed_one),
        TEST(caches_dot_files_and_other_things_are_no_hosts),
        TEST(records_are_hosts_and_stand_back_for_the_plain_file),
        TEST(names_may_hold_any_bytes),
        TEST(names_taken_twice_get_a_mark),
        TEST(runs_are_newest_first_by_name_or_else_by_newest_file),
        TEST(times_are_read_from_many_forms_of_names),
        TEST(times_in_names_are_local_times),
        TEST(natural_order_is_total_and_counts_digits),
        TEST(hosts_are_in_natural_order_and_by_name_for_xprof),
        TEST(pages_give_every_run_once_for_every_page_size),
        TEST(pages_leave_out_nothing_when_runs_come_and_go),
        TEST(search_finds_parts_of_names_in_either_case),
        TEST(bad_tokens_limits_and_queries_are_refused),
        TEST(empty_answer_says_what_was_read_found_and_expected),
        TEST(location_that_vanishes_is_explained_and_comes_back),
        TEST(new_runs_and_hosts_appear_within_two_seconds),
        TEST(old_run_that_changes_is_noticed),
        TEST(runs_of_one_moment_are_one_run_when_they_are_asked_for_so),
        TEST(what_a_part_lacks_is_told_of_the_whole),
        TEST(page_says_which_runs_look_like_one_moment),
        TEST(files_that_are_no_profiles_are_told_by_a_look),
        TEST(run_that_is_not_there_is_not_found_in_words),
        TEST(what_was_looked_at_just_now_is_known_and_nothing_else_is),
        TEST(links_in_circles_end_and_links_are_runs),
        TEST(folders_too_deep_are_not_searched_and_that_is_said),
        TEST(hidden_folders_are_not_searched),
        TEST(session_path_is_one_run_named_by_its_last_part),
        TEST(run_path_lists_folders_with_profiles),
        TEST(paths_outside_of_the_locations_are_refused),
        TEST(host_lists_follow_the_tool),
        TEST(threads_may_use_the_index_while_runs_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
