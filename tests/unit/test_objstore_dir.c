#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/objstore/objstore.h"
#include "tests/unit/tree.h"

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
    tree_file(&p->t, "outside/secret", "secret");
    assert_int_equal(xp_store_open_dir(tree_path(&p->t, "logs"), &p->s, &err), XP_OK);
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

/* Pages of `max` joined: "a b/ c", a '|' between pages. */
static char *list_text(struct xp_store *s, const char *prefix, bool delimiter, size_t max)
{
    struct xp_buf text;
    xp_buf_init(&text, 1 << 20);
    char *token = NULL;
    for (int pages = 0; pages < 10000; pages++) {
        struct xp_store_page page;
        struct xp_error err;
        assert_int_equal(xp_store_list(s, prefix, delimiter, token, max, &page, &err), XP_OK);
        assert_true(page.n <= max);
        for (size_t i = 0; i < page.n; i++)
            xp_buf_fmt(&text, "%s%s", i ? " " : "", page.items[i].key);
        free(token);
        token = page.next ? strdup(page.next) : NULL;
        xp_store_page_fini(&page);
        if (!token)
            break;
        xp_buf_byte(&text, '|');
    }
    assert_null(token);
    xp_buf_byte(&text, 0);
    assert_false(text.failed);
    size_t n;
    return (char *)xp_buf_take(&text, &n);
}

static void assert_list(struct xp_store *s, const char *prefix, bool delimiter, size_t max,
                        const char *want)
{
    char *got = list_text(s, prefix, delimiter, max);
    assert_string_equal(got, want);
    free(got);
}

static enum xp_status read_text(struct xp_store *s, const char *key, char *buf, size_t n,
                                struct xp_error *err)
{
    struct xp_reader *r;
    size_t got = 0;
    enum xp_status status = xp_store_open(s, key, 0, &r, err);
    if (status != XP_OK)
        return status;
    status = xp_reader_read(r, 0, buf, n - 1, &got, err);
    buf[got] = '\0';
    xp_reader_close(r);
    return status;
}

/* --- listing --- */

static void listing_is_in_byte_order_with_folders_by_their_slash(void **state)
{
    struct place *p = *state;
    tree_file(&p->t, "logs/a/x", "");
    tree_file(&p->t, "logs/a-b", "");
    tree_file(&p->t, "logs/a.b", "");
    tree_file(&p->t, "logs/a0", "");
    tree_file(&p->t, "logs/B", "");
    tree_file(&p->t, "logs/\xff", "");
    assert_list(p->s, "", true, 1000, "B a-b a.b a/ a0 \xff");
}

static void listing_gives_the_same_for_every_page_size(void **state)
{
    struct place *p = *state;
    const char *keys[] = {"a/1", "a/2", "a-/x", "a0", "b/c/d/e", "b/c/d-", "b/c/f", "b/z", "c"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char key[64];
        snprintf(key, sizeof key, "logs/%s", keys[i]);
        tree_file(&p->t, key, "");
    }
    for (int delimiter = 0; delimiter < 2; delimiter++) {
        char *whole = list_text(p->s, "", delimiter, 1000);
        for (size_t max = 1; max < 12; max++) {
            char *got = list_text(p->s, "", delimiter, max);
            for (char *c = got; *c; c++)
                if (*c == '|')
                    *c = ' ';
            assert_string_equal(got, whole);
            free(got);
        }
        free(whole);
    }
    assert_list(p->s, "", false, 1000, "a-/x a/1 a/2 a0 b/c/d- b/c/d/e b/c/f b/z c");
    assert_list(p->s, "b/", true, 1000, "b/c/ b/z");
    assert_list(p->s, "b/c/", false, 2, "b/c/d- b/c/d/e|b/c/f");
}

static void listing_of_an_unknown_prefix_is_empty(void **state)
{
    struct place *p = *state;
    tree_file(&p->t, "logs/file", "");
    assert_list(p->s, "nothing/", true, 10, "");
    assert_list(p->s, "file/", true, 10, "");
    assert_list(p->s, "", true, 10, "file");
}

static void listing_tells_sizes_times_and_generations(void **state)
{
    struct place *p = *state;
    struct xp_store_page page;
    struct xp_object o;
    struct xp_error err;
    tree_file(&p->t, "logs/d/x", "");
    tree_file(&p->t, "logs/f", "12345");
    tree_set_time(&p->t, "logs/f", 1700000000123);
    tree_set_time(&p->t, "logs/d", 1600000000000);
    assert_int_equal(xp_store_list(p->s, "", true, NULL, 10, &page, &err), XP_OK);
    assert_int_equal(page.n, 2);
    assert_true(page.items[0].prefix);
    assert_false(page.items[0].link);
    assert_int_equal(page.items[0].mtime_ms, 1600000000000);
    assert_int_equal(page.items[0].generation, 0);
    assert_false(page.items[1].prefix);
    assert_int_equal(page.items[1].size, 5);
    assert_int_equal(page.items[1].mtime_ms, 1700000000123);
    assert_int_equal(xp_store_stat(p->s, "f", &o, &err), XP_OK);
    assert_string_equal(o.key, "f");
    assert_int_equal(o.generation, page.items[1].generation);
    assert_int_not_equal(o.generation, 0);
    free(o.key);
    xp_store_page_fini(&page);
}

static void listing_survives_a_folder_of_many_entries_that_changes_meanwhile(void **state)
{
    struct place *p = *state;
    enum { N = 3000 };
    struct xp_error err;
    char *token = NULL, last[64] = "";
    size_t seen = 0;
    for (int i = 0; i < N; i++) {
        char key[64];
        snprintf(key, sizeof key, "logs/f%05d", i);
        tree_file(&p->t, key, "");
    }
    for (int pages = 0; pages < 100; pages++) {
        struct xp_store_page page;
        assert_int_equal(xp_store_list(p->s, "", true, token, 100, &page, &err), XP_OK);
        for (size_t i = 0; i < page.n; i++) {
            assert_true(strcmp(page.items[i].key, last) > 0);
            snprintf(last, sizeof last, "%s", page.items[i].key);
            seen += page.items[i].key[0] == 'f';
        }
        free(token);
        token = page.next ? strdup(page.next) : NULL;
        xp_store_page_fini(&page);
        if (!token)
            break;
        char key[64]; /* the listing goes on with what is there now */
        snprintf(key, sizeof key, "logs/a%d", pages);
        tree_file(&p->t, key, "");
    }
    assert_null(token);
    assert_int_equal(seen, N);
}

static void listing_refuses_bad_sizes_prefixes_and_tokens(void **state)
{
    struct place *p = *state;
    struct xp_store_page page;
    struct xp_error err;
    assert_int_equal(xp_store_list(p->s, "", true, NULL, 0, &page, &err), XP_BAD_REQUEST);
    assert_int_equal(xp_store_list(p->s, "", true, NULL, 1001, &page, &err), XP_BAD_REQUEST);
    assert_int_equal(xp_store_list(p->s, "a", true, NULL, 1, &page, &err), XP_BAD_REQUEST);
    assert_int_equal(xp_store_list(p->s, "/", true, NULL, 1, &page, &err), XP_DENIED);
    assert_int_equal(xp_store_list(p->s, "../", true, NULL, 1, &page, &err), XP_DENIED);
    assert_int_equal(xp_store_list(p->s, "a/", true, "b/x", 1, &page, &err), XP_BAD_REQUEST);
    assert_int_equal(page.n, 0);
    assert_null(page.items);
}

/* --- keys and links --- */

static void keys_cannot_lead_outside_or_be_malformed(void **state)
{
    struct place *p = *state;
    static const struct {
        const char *key;
        enum xp_status status;
    } bad[] = {
        {"..", XP_DENIED},       {"../outside/secret", XP_DENIED}, {"a/../../x", XP_DENIED},
        {"a/..", XP_DENIED},     {"/etc/passwd", XP_DENIED},       {"", XP_BAD_REQUEST},
        {".", XP_BAD_REQUEST},   {"a//b", XP_BAD_REQUEST},         {"a/", XP_BAD_REQUEST},
        {"./a", XP_BAD_REQUEST},
    };
    struct xp_reader *r;
    struct xp_object o;
    struct xp_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(xp_store_open(p->s, bad[i].key, 0, &r, &err), bad[i].status);
        assert_null(r);
        assert_int_equal(err.status, bad[i].status);
        assert_true(strlen(err.text) > 10);
        assert_int_equal(xp_store_stat(p->s, bad[i].key, &o, &err), bad[i].status);
    }
}

static void keys_too_long_for_any_file_are_refused_in_words(void **state)
{
    struct place *p = *state;
    struct xp_reader *r;
    struct xp_error err;
    char *key = malloc(5001);
    memset(key, 'x', 5000);
    key[5000] = '\0';
    assert_int_equal(xp_store_open(p->s, key, 0, &r, &err), XP_BAD_REQUEST);
    key[300] = '\0';
    assert_int_equal(xp_store_open(p->s, key, 0, &r, &err), XP_NOT_FOUND);
    assert_non_null(strstr(err.text, "..."));
    free(key);
}

static void links_are_followed_only_to_what_lies_below_the_root(void **state)
{
    struct place *p = *state;
    struct xp_error err;
    char buf[32];
    tree_file(&p->t, "logs/run/f", "inside");
    tree_link(&p->t, "logs/rel", "run/f");
    tree_link(&p->t, "logs/abs", tree_path(&p->t, "logs/run/f"));
    tree_link(&p->t, "logs/dir", "run");
    tree_link(&p->t, "logs/detour", "../logs/run/f");
    tree_link(&p->t, "logs/out", "../outside/secret");
    tree_link(&p->t, "logs/outabs", tree_path(&p->t, "outside/secret"));
    tree_link(&p->t, "logs/outdir", "../outside");
    tree_link(&p->t, "logs/loop", "loop");
    tree_link(&p->t, "logs/up", "..");
    const char *good[] = {"rel", "abs", "dir/f", "detour"};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(read_text(p->s, good[i], buf, sizeof buf, &err), XP_OK);
        assert_string_equal(buf, "inside");
    }
    const char *bad[] = {"out", "outabs", "outdir/secret", "up/outside/secret"};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(read_text(p->s, bad[i], buf, sizeof buf, &err), XP_DENIED);
    assert_null(strstr(err.text, p->t.root));
    assert_int_equal(read_text(p->s, "loop", buf, sizeof buf, &err), XP_NOT_FOUND);
    assert_list(p->s, "", true, 100, "abs detour dir/ rel run/");

    struct xp_store_page page;
    assert_int_equal(xp_store_list(p->s, "", true, NULL, 100, &page, &err), XP_OK);
    assert_int_equal(page.left_out, 4);
    assert_true(page.items[2].link);
    assert_false(page.items[4].link);
    xp_store_page_fini(&page);
    assert_int_equal(xp_store_list(p->s, "outdir/", true, NULL, 100, &page, &err), XP_DENIED);
}

static void links_to_the_root_itself_do_not_make_a_deep_listing_endless(void **state)
{
    struct place *p = *state;
    tree_file(&p->t, "logs/run/f", "");
    tree_link(&p->t, "logs/run/again", "..");
    tree_link(&p->t, "logs/me", ".");
    assert_list(p->s, "", false, 100, "run/f");
}

static void root_may_be_a_link_and_is_followed_when_it_is_turned(void **state)
{
    struct place *p = *state;
    struct xp_store *s;
    struct xp_error err;
    char buf[32];
    tree_file(&p->t, "one/f", "1");
    tree_file(&p->t, "two/f", "2");
    tree_link(&p->t, "current", "one");
    assert_int_equal(xp_store_open_dir(tree_path(&p->t, "current"), &s, &err), XP_OK);
    assert_string_equal(xp_store_label(s), "current");
    assert_int_equal(read_text(s, "f", buf, sizeof buf, &err), XP_OK);
    assert_string_equal(buf, "1");
    tree_remove(&p->t, "current");
    tree_link(&p->t, "current", "two");
    assert_int_equal(read_text(s, "f", buf, sizeof buf, &err), XP_OK);
    assert_string_equal(buf, "2");
    xp_store_free(s);
}

static void neighbours_whose_name_begins_as_the_root_are_outside(void **state)
{
    struct place *p = *state;
    struct xp_error err;
    char buf[32];
    tree_file(&p->t, "logs-private/f", "x");
    tree_link(&p->t, "logs/l", "../logs-private/f");
    assert_int_equal(read_text(p->s, "l", buf, sizeof buf, &err), XP_DENIED);
}

static void things_that_are_no_regular_file_are_named_and_never_block(void **state)
{
    struct place *p = *state;
    struct xp_error err;
    char buf[32];
    tree_fifo(&p->t, "logs/pipe.xplane.pb");
    tree_dir(&p->t, "logs/dir.xplane.pb");
    assert_int_equal(read_text(p->s, "pipe.xplane.pb", buf, sizeof buf, &err), XP_NOT_FOUND);
    assert_non_null(strstr(err.text, "a named pipe"));
    assert_int_equal(read_text(p->s, "dir.xplane.pb", buf, sizeof buf, &err), XP_NOT_FOUND);
    assert_non_null(strstr(err.text, "a folder"));
    assert_list(p->s, "", true, 10, "dir.xplane.pb/");
}

static void files_without_permission_are_denied_in_words(void **state)
{
    struct place *p = *state;
    struct xp_error err;
    char buf[32];
    if (geteuid() == 0)
        skip(); /* root reads everything */
    tree_file(&p->t, "logs/f", "x");
    assert_int_equal(chmod(tree_path(&p->t, "logs/f"), 0), 0);
    assert_int_equal(read_text(p->s, "f", buf, sizeof buf, &err), XP_DENIED);
    assert_non_null(strstr(err.text, "Permission denied"));
}

static void names_may_hold_any_bytes(void **state)
{
    struct place *p = *state;
    struct xp_error err;
    char buf[32];
    const char *name = "<b>\"'&\n\x01\xff\xfe %2e";
    char key[64];
    snprintf(key, sizeof key, "logs/%s", name);
    tree_file(&p->t, key, "odd");
    assert_list(p->s, "", true, 10, name);
    assert_int_equal(read_text(p->s, name, buf, sizeof buf, &err), XP_OK);
    assert_string_equal(buf, "odd");
}

/* --- reading --- */

static void reads_stop_at_the_end(void **state)
{
    struct place *p = *state;
    struct xp_reader *r;
    struct xp_error err;
    char buf[16];
    size_t got;
    tree_file(&p->t, "logs/f", "0123456789");
    assert_int_equal(xp_store_open(p->s, "f", 0, &r, &err), XP_OK);
    assert_int_equal(xp_reader_size(r), 10);
    assert_int_equal(xp_reader_read(r, 7, buf, 16, &got, &err), XP_OK);
    assert_int_equal(got, 3);
    assert_memory_equal(buf, "789", 3);
    assert_int_equal(xp_reader_read(r, 10, buf, 16, &got, &err), XP_OK);
    assert_int_equal(got, 0);
    assert_int_equal(xp_reader_read(r, UINT64_MAX, buf, 16, &got, &err), XP_OK);
    assert_int_equal(got, 0);
    xp_reader_close(r);
}

static void reads_of_a_changed_file_are_stale(void **state)
{
    struct place *p = *state;
    struct xp_reader *r, *r2;
    struct xp_error err;
    char buf[16];
    size_t got;
    tree_file(&p->t, "logs/f", "0123456789");
    tree_set_time(&p->t, "logs/f", 1000);
    assert_int_equal(xp_store_open(p->s, "f", 0, &r, &err), XP_OK);
    uint64_t generation = xp_reader_generation(r);
    assert_int_equal(xp_store_open(p->s, "f", generation, &r2, &err), XP_OK);
    xp_reader_close(r2);
    tree_file(&p->t, "logs/f", "01234"); /* in place */
    assert_int_equal(xp_reader_read(r, 0, buf, 10, &got, &err), XP_STALE);
    assert_int_equal(xp_reader_read(r, 0, buf, 3, &got, &err), XP_STALE);
    assert_int_equal(xp_store_open(p->s, "f", generation, &r2, &err), XP_STALE);
    xp_reader_close(r);
}

static void reads_go_on_when_the_file_is_replaced(void **state)
{
    struct place *p = *state;
    struct xp_reader *r;
    struct xp_error err;
    char buf[16];
    size_t got;
    tree_file(&p->t, "logs/f", "old");
    assert_int_equal(xp_store_open(p->s, "f", 0, &r, &err), XP_OK);
    tree_file(&p->t, "logs/g", "new");
    assert_int_equal(rename(tree_path(&p->t, "logs/g"), tree_path(&p->t, "logs/f")), 0);
    assert_int_equal(xp_reader_read(r, 0, buf, 3, &got, &err), XP_OK);
    assert_memory_equal(buf, "old", 3);
    xp_reader_close(r);
}

/* --- writing --- */

static void writes_are_denied_by_a_store_opened_read_only(void **state)
{
    struct place *p = *state;
    struct xp_error err;
    uint64_t g;
    assert_int_equal(xp_store_put_if(p->s, "f", xp_span_str("x"), 0, &g, &err), XP_DENIED);
    assert_list(p->s, "", true, 10, "");
}

static void writes_happen_only_upon_the_generation_named(void **state)
{
    struct place *p = *state;
    struct xp_store *s;
    struct xp_error err;
    uint64_t g1, g2, g3;
    char buf[16];
    assert_int_equal(xp_store_open_dir_rw(tree_path(&p->t, "logs"), &s, &err), XP_OK);
    assert_int_equal(xp_store_put_if(s, "a/b/f", xp_span_str("1"), 0, &g1, &err), XP_OK);
    assert_int_not_equal(g1, 0);
    assert_int_equal(xp_store_put_if(s, "a/b/f", xp_span_str("2"), 0, &g2, &err), XP_STALE);
    assert_int_equal(xp_store_put_if(s, "a/b/f", xp_span_str("22"), g1, &g2, &err), XP_OK);
    assert_int_equal(xp_store_put_if(s, "a/b/f", xp_span_str("3"), g1, &g3, &err), XP_STALE);
    assert_int_equal(xp_store_put_if(s, "none", xp_span_str("3"), g1, &g3, &err), XP_STALE);
    assert_int_equal(read_text(s, "a/b/f", buf, sizeof buf, &err), XP_OK);
    assert_string_equal(buf, "22");
    assert_list(s, "", false, 10, "a/b/f"); /* and no temporary file */
    assert_int_equal(access(tree_path(&p->t, "logs/none"), F_OK), -1);
    xp_store_free(s);
}

static void writes_do_not_leave_the_root_through_links(void **state)
{
    struct place *p = *state;
    struct xp_store *s;
    struct xp_error err;
    uint64_t g;
    tree_link(&p->t, "logs/out", "../outside");
    tree_link(&p->t, "logs/link", "../outside/new");
    assert_int_equal(xp_store_open_dir_rw(tree_path(&p->t, "logs"), &s, &err), XP_OK);
    assert_int_equal(xp_store_put_if(s, "out/f", xp_span_str("x"), 0, &g, &err), XP_DENIED);
    assert_int_equal(xp_store_put_if(s, "out/d/f", xp_span_str("x"), 0, &g, &err), XP_DENIED);
    assert_int_equal(xp_store_put_if(s, "link", xp_span_str("x"), 0, &g, &err), XP_DENIED);
    assert_int_equal(access(tree_path(&p->t, "outside/f"), F_OK), -1);
    assert_int_equal(access(tree_path(&p->t, "outside/d"), F_OK), -1);
    assert_int_equal(access(tree_path(&p->t, "outside/new"), F_OK), -1);
    xp_store_free(s);
}

struct writer {
    struct xp_store *s;
    int won;
};

static void *write_many(void *ctx)
{
    struct writer *w = ctx;
    for (int i = 0; i < 50; i++) {
        struct xp_object o;
        struct xp_error err;
        uint64_t g;
        char text[16];
        if (xp_store_stat(w->s, "n", &o, &err) != XP_OK)
            continue;
        free(o.key);
        snprintf(text, sizeof text, "%d", i);
        w->won += xp_store_put_if(w->s, "n", xp_span_str(text), o.generation, &g, &err) == XP_OK;
    }
    return NULL;
}

/* Appends to a counter file by compare and swap: a lost update would lose a line. */
static void *append_many(void *ctx)
{
    struct writer *w = ctx;
    for (int i = 0; i < 30;) {
        char buf[4096];
        struct xp_reader *r;
        struct xp_error err;
        size_t got;
        uint64_t g;
        if (xp_store_open(w->s, "log", 0, &r, &err) != XP_OK)
            continue;
        uint64_t seen = xp_reader_generation(r);
        enum xp_status status = xp_reader_read(r, 0, buf, sizeof buf - 1, &got, &err);
        xp_reader_close(r);
        if (status != XP_OK)
            continue;
        buf[got++] = '.';
        if (xp_store_put_if(w->s, "log", xp_span_of(buf, got), seen, &g, &err) == XP_OK)
            i++;
    }
    return NULL;
}

static void writes_by_several_threads_lose_no_update(void **state)
{
    struct place *p = *state;
    struct xp_error err;
    pthread_t threads[4];
    struct writer w[4];
    char buf[256];
    tree_file(&p->t, "logs/log", "");
    tree_file(&p->t, "logs/n", "");
    for (int i = 0; i < 4; i++) {
        assert_int_equal(xp_store_open_dir_rw(tree_path(&p->t, "logs"), &w[i].s, &err), XP_OK);
        assert_int_equal(pthread_create(&threads[i], NULL, i < 3 ? append_many : write_many, &w[i]),
                         0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        xp_store_free(w[i].s);
    }
    assert_int_equal(read_text(p->s, "log", buf, sizeof buf, &err), XP_OK);
    assert_int_equal(strlen(buf), 90);
}

/* --- opening stores --- */

static void stores_say_why_they_cannot_be_opened(void **state)
{
    struct place *p = *state;
    struct xp_store *s;
    struct xp_error err;
    tree_file(&p->t, "logs/f", "x");
    assert_int_equal(xp_store_open_dir("", &s, &err), XP_BAD_REQUEST);
    assert_int_equal(xp_store_open_dir(tree_path(&p->t, "none"), &s, &err), XP_NOT_FOUND);
    assert_non_null(strstr(err.text, "No such file"));
    assert_int_equal(xp_store_open_dir(tree_path(&p->t, "logs/f"), &s, &err), XP_NOT_FOUND);
    assert_non_null(strstr(err.text, "Not a directory"));
    assert_int_equal(xp_store_open_file(tree_path(&p->t, "logs"), &s, &err), XP_NOT_FOUND);
    assert_int_equal(xp_store_open_path(tree_path(&p->t, "none"), &s, &err), XP_NOT_FOUND);
    assert_null(s);
}

static void store_of_a_file_holds_just_that_file(void **state)
{
    struct place *p = *state;
    struct xp_store *s;
    struct xp_error err;
    char buf[16], *prefix;
    tree_file(&p->t, "logs/a.xplane.pb", "A");
    tree_file(&p->t, "logs/b.xplane.pb", "B");
    assert_int_equal(xp_store_open_path(tree_path(&p->t, "logs/a.xplane.pb"), &s, &err), XP_OK);
    assert_true(xp_store_is_file(s));
    assert_string_equal(xp_store_label(s), "a.xplane.pb");
    assert_list(s, "", true, 1, "a.xplane.pb");
    assert_list(s, "logs/", true, 1, "");
    assert_int_equal(read_text(s, "a.xplane.pb", buf, sizeof buf, &err), XP_OK);
    assert_string_equal(buf, "A");
    assert_int_equal(read_text(s, "b.xplane.pb", buf, sizeof buf, &err), XP_NOT_FOUND);
    assert_int_equal(xp_store_locate(s, tree_path(&p->t, "logs"), &prefix, &err), XP_DENIED);
    tree_remove(&p->t, "logs/a.xplane.pb");
    assert_list(s, "", true, 1, "");
    xp_store_free(s);
}

static void relative_roots_are_remembered_where_they_were(void **state)
{
    struct place *p = *state;
    struct xp_store *s, *dot;
    struct xp_error err;
    char cwd[1024];
    tree_file(&p->t, "logs/f", "x");
    assert_non_null(getcwd(cwd, sizeof cwd));
    assert_int_equal(chdir(p->t.root), 0);
    assert_int_equal(xp_store_open_dir("logs", &s, &err), XP_OK);
    assert_int_equal(xp_store_open_dir("logs/.", &dot, &err), XP_OK);
    assert_int_equal(chdir(cwd), 0);
    assert_list(s, "", true, 10, "f");
    assert_string_equal(xp_store_name(s), "logs");
    assert_string_equal(xp_store_label(dot), "logs");
    xp_store_free(s);
    xp_store_free(dot);
}

/* --- paths people write --- */

static void assert_located(struct xp_store *s, const char *path, enum xp_status status,
                           const char *want)
{
    char *prefix;
    struct xp_error err;
    assert_int_equal(xp_store_locate(s, path, &prefix, &err), status);
    if (status == XP_OK)
        assert_string_equal(prefix, want);
    else
        assert_null(prefix);
    free(prefix);
}

static void paths_are_located_only_below_the_root(void **state)
{
    struct place *p = *state;
    struct xp_store *s = p->s;
    char path[512];
    tree_file(&p->t, "logs/a/run/f", "x");
    tree_link(&p->t, "logs/latest", "a/run");
    tree_link(&p->t, "logs/out", "../outside");
    assert_located(s, tree_path(&p->t, "logs"), XP_OK, "");
    assert_located(s, tree_path(&p->t, "logs/"), XP_OK, "");
    assert_located(s, tree_path(&p->t, "logs/a//run/"), XP_OK, "a/run/");
    assert_located(s, tree_path(&p->t, "logs/latest"), XP_OK, "a/run/");
    assert_located(s, tree_path(&p->t, "outside/../logs/a"), XP_OK, "a/");
    assert_located(s, tree_path(&p->t, "logs/none"), XP_NOT_FOUND, NULL);
    assert_located(s, tree_path(&p->t, "logs/a/run/f"), XP_NOT_FOUND, NULL);
    const char *bad[] = {"logs/out",        "outside", "nowhere", "logs/../outside",
                         "logs/../nowhere", "logs-no", "",        "logs/out/none/.."};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_located(s, tree_path(&p->t, bad[i]), XP_DENIED, NULL);
    assert_located(s, "", XP_DENIED, NULL);
    assert_located(s, "/", XP_DENIED, NULL);
    assert_located(s, "/etc", XP_DENIED, NULL);
    assert_located(s, "gs://bucket/x", XP_DENIED, NULL);
    snprintf(path, sizeof path, "/proc/self/root%s", tree_path(&p->t, "outside"));
    assert_located(s, path, XP_DENIED, NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(listing_is_in_byte_order_with_folders_by_their_slash),
        TEST(listing_gives_the_same_for_every_page_size),
        TEST(listing_of_an_unknown_prefix_is_empty),
        TEST(listing_tells_sizes_times_and_generations),
        TEST(listing_survives_a_folder_of_many_entries_that_changes_meanwhile),
        TEST(listing_refuses_bad_sizes_prefixes_and_tokens),
        TEST(keys_cannot_lead_outside_or_be_malformed),
        TEST(keys_too_long_for_any_file_are_refused_in_words),
        TEST(links_are_followed_only_to_what_lies_below_the_root),
        TEST(links_to_the_root_itself_do_not_make_a_deep_listing_endless),
        TEST(root_may_be_a_link_and_is_followed_when_it_is_turned),
        TEST(neighbours_whose_name_begins_as_the_root_are_outside),
        TEST(things_that_are_no_regular_file_are_named_and_never_block),
        TEST(files_without_permission_are_denied_in_words),
        TEST(names_may_hold_any_bytes),
        TEST(reads_stop_at_the_end),
        TEST(reads_of_a_changed_file_are_stale),
        TEST(reads_go_on_when_the_file_is_replaced),
        TEST(writes_are_denied_by_a_store_opened_read_only),
        TEST(writes_happen_only_upon_the_generation_named),
        TEST(writes_do_not_leave_the_root_through_links),
        TEST(writes_by_several_threads_lose_no_update),
        TEST(stores_say_why_they_cannot_be_opened),
        TEST(store_of_a_file_holds_just_that_file),
        TEST(relative_roots_are_remembered_where_they_were),
        TEST(paths_are_located_only_below_the_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
