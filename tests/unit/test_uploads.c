#include "tests/unit/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/gzip.h"
#include "server/uploads.h"
#include "tests/unit/tree.h"

#define LIMIT 1000
#define WHO "user:ann@example.com"

static struct tree tree;

static int setup(void **state)
{
    (void)state;
    tree_init(&tree);
    return setenv("TMPDIR", tree_path(&tree, ""), 1);
}

static int teardown(void **state)
{
    (void)state;
    unsetenv("TMPDIR");
    tree_fini(&tree);
    return 0;
}

static size_t entries(const char *path)
{
    const struct dirent *e;
    size_t n = 0;
    DIR *d = opendir(path);
    while (d && (e = readdir(d)))
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static struct uploads *open_them(int64_t keep_ms, int64_t stall_ms)
{
    return uploads_new(&(struct uploads_config){LIMIT, keep_ms, stall_ms, stall_ms, false});
}

static struct uploads *usual(void)
{
    return open_them(3600000, 120000);
}

static enum xp_status begin_as(struct uploads *u, const char *who, uint64_t bytes,
                               struct upload_state *s, struct xp_error *err)
{
    return uploads_begin(u, "p", who, xp_span_str("x"), bytes, s, err);
}

static enum xp_status begin(struct uploads *u, const char *file, uint64_t bytes,
                            struct upload_state *s)
{
    struct xp_error err = {0};
    enum xp_status status = uploads_begin(u, "p", WHO, xp_span_str(file), bytes, s, &err);
    assert_true(status == XP_OK || err.text[0]);
    return status;
}

static enum xp_status piece(struct uploads *u, struct upload_state *s, uint64_t at,
                            struct xp_span bytes, struct xp_error *err)
{
    return uploads_piece(u, "p", WHO, xp_span_str(s->run), at, bytes, s, err);
}

static enum xp_status open_run(struct uploads *u, const char *project, const char *name,
                               const struct run **r)
{
    struct xp_error err = {0};
    return uploads_run(u, project, xp_span_str(name), r, NULL, &err);
}

/* A whole upload of these bytes, all in one piece. */
static void bring(struct uploads *u, const char *file, struct xp_span bytes, struct upload_state *s)
{
    struct xp_error err = {0};
    assert_int_equal(begin(u, file, bytes.n, s), XP_OK);
    assert_int_equal(piece(u, s, 0, bytes, &err), XP_OK);
}

static const uint8_t xspace[] = {0x0a, 4, 0x08, 1, 0x12, 0, 0x22, 1, 'h'};
static const struct xp_span sound = {xspace, sizeof xspace};

static void file_that_came_whole_is_a_run_of_one_host_for_who_knows_its_name(void **state)
{
    struct upload_state s, other;
    struct xp_error err = {0};
    const struct run *r;
    struct uploads *u = usual();
    (void)state;
    assert_int_equal(begin(u, "worker-0.xplane.pb", sound.n, &s), XP_OK);
    assert_true(uploads_is_name(xp_span_str(s.run)));
    assert_int_equal(piece(u, &s, 0, xp_span_of(xspace, 4), &err), XP_OK);
    assert_int_equal(open_run(u, "p", s.run, &r), XP_NOT_FOUND);
    assert_int_equal(piece(u, &s, 4, xp_span_of(xspace + 4, sound.n - 4), &err), XP_OK);
    assert_int_equal(open_run(u, "p", s.run, &r), XP_OK);
    assert_int_equal(r->n_hosts, 1);
    assert_string_equal(r->hosts[0].name, "worker-0");
    assert_int_equal(r->hosts[0].size, sound.n);
    assert_false(r->hosts[0].gz);
    run_unref(r);
    assert_int_equal(open_run(u, "q", s.run, &r), XP_NOT_FOUND);
    bring(u, "worker-0.xplane.pb", sound, &other);
    assert_string_not_equal(s.run, other.run);
    uploads_free(u);
}

static void whether_it_is_gzip_its_bytes_say(void **state)
{
    struct upload_state s;
    const struct run *r;
    struct uploads *u = usual();
    struct xp_buf b;
    (void)state;
    xp_buf_init(&b, 1000);
    struct xp_gzip *g = xp_gzip_new(&b);
    xp_gzip_add(g, sound);
    xp_gzip_end(g);
    bring(u, "x.xplane.pb", xp_buf_all(&b), &s);
    assert_int_equal(open_run(u, "p", s.run, &r), XP_OK);
    assert_true(r->hosts[0].gz);
    run_unref(r);
    xp_buf_fini(&b);
    bring(u, "x.xplane.pb.gz", sound, &s);
    assert_int_equal(open_run(u, "p", s.run, &r), XP_OK);
    assert_false(r->hosts[0].gz);
    run_unref(r);
    uploads_free(u);
}

static void what_is_no_profile_is_said_and_gone_at_its_first_piece(void **state)
{
    static const struct {
        const char *bytes, *words;
    } wrong[] = {{"{\"traceEvents\":[]}", "JSON"},
                 {"<html>", "a page"},
                 {"PK\3\4rest", "ZIP"},
                 {"\x1f\x8bnot gzip at all", "damaged at its beginning"},
                 {"\x7f"
                  "ELF",
                  "0x7f"}};
    struct uploads *u = usual();
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct upload_state s;
        struct xp_error err = {0};
        struct xp_span bytes = xp_span_str(wrong[i].bytes);
        assert_int_equal(begin(u, "x", bytes.n, &s), XP_OK);
        assert_int_equal(piece(u, &s, 0, bytes, &err), XP_CORRUPT);
        if (!strstr(err.text, wrong[i].words))
            fail_msg("\"%s\" does not say \"%s\"", err.text, wrong[i].words);
        assert_int_equal(piece(u, &s, 0, bytes, &err), XP_NOT_FOUND);
    }
    uploads_free(u);
}

static void names_lead_nowhere_else(void **state)
{
    static const char *const names[][2] = {{"../../etc/passwd", "passwd"},
                                           {"..\\..\\boot.ini", "boot.ini"},
                                           {"a/b/..", "profile"},
                                           {"...", "profile"},
                                           {".hidden.xplane.pb", "hidden"},
                                           {"w\n\x01-0.xplane.pb.gz", "w__-0"},
                                           {"caf\xc3\xa9\xff.pb", "caf\xc3\xa9_"},
                                           {"", "profile"},
                                           {"x/", "profile"}};
    struct uploads *u = usual();
    struct xp_buf b;
    (void)state;
    xp_buf_init(&b, 1000);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct upload_state s;
        const struct run *r;
        upload_host_name(xp_span_str(names[i][0]), &b);
        assert_buf_is(&b, names[i][1]);
        bring(u, names[i][0], sound, &s);
        assert_int_equal(open_run(u, "p", s.run, &r), XP_OK);
        assert_string_equal(r->hosts[0].name, names[i][1]);
        run_unref(r);
    }
    char much[5000];
    memset(much, 'x', sizeof much - 1);
    much[sizeof much - 1] = 0;
    upload_host_name(xp_span_str(much), &b);
    assert_in_range(b.n, 1, 200);
    xp_buf_fini(&b);
    assert_int_equal(entries(tree_path(&tree, "")), 1); /* all of it is in the one folder */
    uploads_free(u);
    assert_int_equal(entries(tree_path(&tree, "")), 0);
}

static void size_and_number_are_bounded(void **state)
{
    struct upload_state s;
    struct uploads *u = usual();
    (void)state;
    assert_int_equal(begin(u, "x", LIMIT + 1, &s), XP_TOO_LARGE);
    assert_int_equal(begin(u, "x", 0, &s), XP_CORRUPT);
    for (int i = 0; i < UPLOADS_TOTAL; i++)
        assert_int_equal(begin(u, "x", LIMIT, &s), XP_OK);
    assert_int_equal(begin(u, "x", LIMIT, &s), XP_BUSY);
    struct xp_error err = {0};
    assert_int_equal(uploads_drop(u, "p", WHO, xp_span_str(s.run), &err), XP_OK);
    assert_int_equal(begin(u, "x", LIMIT, &s), XP_OK);
    uploads_free(u);
    u = usual();
    for (int i = 0; i < UPLOADS_MAX; i++)
        assert_int_equal(begin(u, "x", 1, &s), XP_OK);
    assert_int_equal(begin(u, "x", 1, &s), XP_BUSY);
    uploads_free(u);
}

static void maker_has_a_share_and_takes_the_place_of_nobody_else(void **state)
{
    static const char bob[] = "user:bob@example.com";
    struct uploads_config config = {LIMIT, 3600000, 120000, 120000, true};
    struct xp_error err = {0};
    struct upload_state s;
    struct uploads *u = uploads_new(&config);
    (void)state;
    assert_int_equal(begin_as(u, bob, LIMIT, &s, &err), XP_OK);
    assert_int_equal(begin_as(u, WHO, LIMIT - 1, &s, &err), XP_OK);
    assert_int_equal(begin_as(u, WHO, 2, &s, &err), XP_BUSY);
    assert_non_null(strstr(err.text, "you keep 1 uploaded file with 999 bytes"));
    assert_int_equal(begin_as(u, WHO, 1, &s, &err), XP_OK);
    uploads_free(u);
    u = uploads_new(&config);
    for (int i = 0; i < UPLOADS_SHARE; i++)
        assert_int_equal(begin_as(u, WHO, 1, &s, &err), XP_OK);
    assert_int_equal(begin_as(u, WHO, 1, &s, &err), XP_BUSY);
    assert_int_equal(begin_as(u, bob, LIMIT, &s, &err), XP_OK);
    assert_int_equal(begin_as(u, "c", LIMIT, &s, &err), XP_OK);
    assert_int_equal(begin_as(u, "d", LIMIT, &s, &err), XP_OK);
    assert_int_equal(begin_as(u, "e", LIMIT, &s, &err), XP_BUSY);
    assert_null(strpbrk(err.text, "0123456789")); /* how much others have is their business */
    uploads_free(u);
}

static void pieces_come_in_order_and_within_what_was_said(void **state)
{
    struct upload_state s;
    struct xp_error err = {0};
    struct uploads *u = usual();
    (void)state;
    assert_int_equal(begin(u, "x", sound.n, &s), XP_OK);
    assert_int_equal(piece(u, &s, 4, xp_span_of(xspace + 4, 2), &err), XP_BAD_REQUEST);
    assert_int_equal(piece(u, &s, 0, xp_span_of(xspace, 0), &err), XP_BAD_REQUEST);
    assert_int_equal(piece(u, &s, UINT64_MAX, sound, &err), XP_BAD_REQUEST);
    assert_int_equal(piece(u, &s, 1, sound, &err), XP_BAD_REQUEST);
    assert_int_equal(piece(u, &s, 0, xp_span_of(xspace, 4), &err), XP_OK);
    assert_int_equal(piece(u, &s, 0, xp_span_of(xspace, 4), &err), XP_OK); /* asked again */
    assert_int_equal(s.received, 4);
    assert_int_equal(piece(u, &s, 3, xp_span_of(xspace + 3, 3), &err), XP_BAD_REQUEST);
    assert_int_equal(piece(u, &s, 4, xp_span_of(xspace + 4, sound.n - 4), &err), XP_OK);
    assert_int_equal(s.received, sound.n);
    uploads_free(u);
}

static void only_its_maker_adds_to_it_or_removes_it(void **state)
{
    struct upload_state s;
    struct xp_error err = {0};
    struct uploads *u = usual();
    (void)state;
    assert_int_equal(begin(u, "x", sound.n, &s), XP_OK);
    struct xp_span run = xp_span_str(s.run);
    assert_int_equal(uploads_piece(u, "p", "user:bob@example.com", run, 0, sound, &s, &err),
                     XP_NOT_FOUND);
    assert_int_equal(uploads_piece(u, "q", WHO, run, 0, sound, &s, &err), XP_NOT_FOUND);
    assert_int_equal(uploads_drop(u, "p", "user:bob@example.com", run, &err), XP_NOT_FOUND);
    assert_int_equal(uploads_drop(u, "p", WHO, run, &err), XP_OK);
    assert_int_equal(uploads_drop(u, "p", WHO, run, &err), XP_NOT_FOUND);
    uploads_free(u);
}

/* The thread removes it, whether anybody asks or not. */
static void wait_until_gone(const char *path, size_t left)
{
    for (int i = 0; i < 500 && entries(path) > left; i++)
        usleep(10000);
    assert_int_equal(entries(path), left);
}

static char *folder_of(struct tree *t, char path[600])
{
    const struct dirent *e;
    DIR *d = opendir(tree_path(t, ""));
    path[0] = 0;
    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.')
            snprintf(path, 600, "%s/%s", tree_path(t, ""), e->d_name);
    if (d)
        closedir(d);
    return path;
}

static void what_nobody_uses_or_goes_on_with_is_removed(void **state)
{
    struct upload_state whole, stalled;
    struct xp_error err = {0};
    const struct run *r;
    char path[600];
    struct uploads *u = open_them(30, 3600000);
    (void)state;
    bring(u, "x", sound, &whole);
    wait_until_gone(folder_of(&tree, path), 0);
    assert_int_equal(open_run(u, "p", whole.run, &r), XP_NOT_FOUND);
    uploads_free(u);
    u = uploads_new(&(struct uploads_config){LIMIT, 3600000, 30, 3600000, false});
    assert_int_equal(begin(u, "x", sound.n, &stalled), XP_OK);
    assert_int_equal(piece(u, &stalled, 0, xp_span_of(xspace, 4), &err), XP_OK);
    wait_until_gone(folder_of(&tree, path), 0);
    assert_int_equal(piece(u, &stalled, 0, sound, &err), XP_NOT_FOUND);
    uploads_free(u);
    u = uploads_new(&(struct uploads_config){LIMIT, 3600000, 3600000, 30, false});
    assert_int_equal(begin(u, "x", sound.n, &stalled), XP_OK); /* no piece came: first_ms */
    wait_until_gone(folder_of(&tree, path), 0);
    uploads_free(u);
    assert_int_equal(entries(tree_path(&tree, "")), 0);
}

static size_t descriptors(void)
{
    return entries("/proc/self/fd");
}

static void place_that_cannot_be_had_leaks_nothing_and_is_tried_again(void **state)
{
    struct upload_state s;
    struct rlimit was, few;
    struct uploads *u = usual();
    size_t before = descriptors();
    (void)state;
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(next >= 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    for (int i = 0; i < 2; i++) { /* the folder has no descriptor, then the store has none */
        few = (struct rlimit){(rlim_t)(next + i), was.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        enum xp_status status = begin(u, "x", 1, &s);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
        assert_int_not_equal(status, XP_OK);
        if (i == 0)
            close(next);
        assert_int_equal(descriptors(), before);
        assert_int_equal(entries(tree_path(&tree, "")), 0);
    }
    assert_int_equal(begin(u, "x", 1, &s), XP_OK);
    uploads_free(u);
}

static void what_a_killed_process_left_is_removed_by_the_next_one(void **state)
{
    struct upload_state s;
    char path[600], kept[600];
    (void)state;
    tree_bytes(&tree, "xprofd-uploads-old/upload-1/x.xplane.pb", sound);
    tree_bytes(&tree, "xprofd-uploads-new/upload-1/x.xplane.pb", sound);
    tree_set_time(&tree, "xprofd-uploads-old", 1000000);
    struct uploads *u = usual(), *other;
    assert_int_equal(entries(tree_path(&tree, "")), 1); /* the young one may be about to be held */
    tree_remove(&tree, "xprofd-uploads-new/upload-1/x.xplane.pb");
    tree_remove(&tree, "xprofd-uploads-new/upload-1");
    tree_remove(&tree, "xprofd-uploads-new");
    bring(u, "x", sound, &s);
    snprintf(kept, sizeof kept, "%s", strrchr(folder_of(&tree, path), '/') + 1);
    tree_set_time(&tree, kept, 1000000);
    other = usual(); /* the first one is alive and holds it */
    assert_int_equal(entries(path), 1);
    uploads_free(other);
    uploads_free(u);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(file_that_came_whole_is_a_run_of_one_host_for_who_knows_its_name),
        TEST(whether_it_is_gzip_its_bytes_say),
        TEST(what_is_no_profile_is_said_and_gone_at_its_first_piece),
        TEST(names_lead_nowhere_else),
        TEST(size_and_number_are_bounded),
        TEST(maker_has_a_share_and_takes_the_place_of_nobody_else),
        TEST(place_that_cannot_be_had_leaks_nothing_and_is_tried_again),
        TEST(pieces_come_in_order_and_within_what_was_said),
        TEST(only_its_maker_adds_to_it_or_removes_it),
        TEST(what_nobody_uses_or_goes_on_with_is_removed),
        TEST(what_a_killed_process_left_is_removed_by_the_next_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
