#include "tests/unit/bucket_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/objstore/count.h"

#define MIB ((size_t)1 << 20)

static int setup(void **state)
{
    struct fake *f = calloc(1, sizeof *f);
    fake_open(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fake_close(*state);
    free(*state);
    return 0;
}

static int fresh(void **state)
{
    free(fake_tell(*state, "clear", ""));
    return 0;
}

static void fault(struct fake *f, const char *json)
{
    free(fake_tell(f, "set", json));
}

/* --- lists --- */

static void expect_list(struct fake *f, const char *url, const char *prefix, bool delimiter,
                        const char *expected)
{
    struct xp_store *s = fake_store(f, url, false);
    struct xp_buf text;
    char *token = NULL;
    xp_buf_init(&text, 1 << 16);
    do {
        struct xp_store_page page;
        struct xp_error err = {0};
        enum xp_status status = xp_store_list(s, prefix, delimiter, token, 2, &page, &err);
        if (status != XP_OK)
            print_error("%s\n", err.text);
        assert_int_equal(status, XP_OK);
        for (size_t i = 0; i < page.n; i++)
            xp_buf_fmt(&text, " %s", page.items[i].key);
        free(token);
        token = page.next ? strdup(page.next) : NULL;
        xp_store_page_fini(&page);
    } while (token);
    xp_buf_byte(&text, 0);
    assert_string_equal(text.p ? (char *)text.p : "", expected);
    xp_buf_fini(&text);
    xp_store_free(s);
}

static void lists_are_the_same_in_both_kinds_of_bucket(void **state)
{
    struct fake *f = *state;
    static const char *const urls[] = {"gs://lists", "s3://lists"};
    fake_object(f, "lists", "a/1", 3);
    fake_object(f, "lists", "a/2 + % & <x>", 3);
    fake_object(f, "lists", "a/b/3", 3);
    fake_object(f, "lists", "a/c/4", 3);
    fake_object(f, "lists", "\xc3\xa9/5", 3);
    for (int i = 0; i < 2; i++) {
        expect_list(f, urls[i], "", true, " a/ \xc3\xa9/");
        expect_list(f, urls[i], "a/", true, " a/1 a/2 + % & <x> a/b/ a/c/");
        expect_list(f, urls[i], "", false, " a/1 a/2 + % & <x> a/b/3 a/c/4 \xc3\xa9/5");
        expect_list(f, urls[i], "nothing/", true, "");
    }
    expect_list(f, "gs://lists/a/", "b/", true, " b/3");
    expect_list(f, "s3://lists/a", "", true, " 1 2 + % & <x> b/ c/");
}

static void several_folders_are_asked_for_at_once(void **state)
{
    struct fake *f = *state;
    struct xp_store_page pages[40];
    struct xp_error errs[40];
    char names[40][16];
    const char *prefixes[40];
    for (int i = 0; i < 40; i++) {
        snprintf(names[i], sizeof names[i], "r%d/", i);
        prefixes[i] = names[i];
        char key[40];
        snprintf(key, sizeof key, "r%d/h%d", i, i);
        fake_object(f, "each", key, 1);
    }
    struct xp_store *s = fake_store(f, "gs://each", false);
    fault(f, "{\"latency_ms\": 100}");
    uint64_t t = xp_now_ns();
    xp_store_list_each(s, prefixes, 40, pages, errs);
    assert_true(xp_now_ns() - t < UINT64_C(3000000000)); /* 4 s one after another */
    for (int i = 0; i < 40; i++) {
        assert_int_equal(errs[i].status, XP_OK);
        assert_int_equal(pages[i].n, 1);
        assert_int_equal(strncmp(pages[i].items[0].key, names[i], strlen(names[i])), 0);
        xp_store_page_fini(&pages[i]);
    }
    xp_store_free(s);
}

/* --- reads --- */

static struct xp_reader *open_reader(struct xp_store *s, const char *key)
{
    struct xp_reader *r;
    struct xp_error err = {0};
    assert_int_equal(xp_store_open(s, key, 0, &r, &err), XP_OK);
    return r;
}

static void expect_bytes(struct xp_reader *r, uint64_t off, size_t n, size_t expected)
{
    uint8_t *buf = malloc(n + 1);
    struct xp_error err = {0};
    size_t got = 0;
    enum xp_status status = xp_reader_read(r, off, buf, n, &got, &err);
    if (status != XP_OK)
        print_error("%s\n", err.text);
    assert_int_equal(status, XP_OK);
    assert_int_equal(got, expected);
    for (size_t i = 0; i < got; i++)
        if (buf[i] != fake_byte(off + i))
            fail_msg("byte %zu at %llu is wrong", i, (unsigned long long)off);
    free(buf);
}

static void reads_give_the_bytes_that_are_there(void **state)
{
    struct fake *f = *state;
    static const char *const urls[] = {"gs://reads", "s3://reads"};
    fake_object(f, "reads", "empty", 0);
    fake_object(f, "reads", "one", 1);
    fake_object(f, "reads", "big", 9 * MIB + 7);
    for (int i = 0; i < 2; i++) {
        struct xp_store *s = fake_store(f, urls[i], false);
        struct xp_reader *r = open_reader(s, "empty");
        expect_bytes(r, 0, 10, 0);
        xp_reader_close(r);
        r = open_reader(s, "one");
        expect_bytes(r, 0, 10, 1);
        xp_reader_close(r);
        r = open_reader(s, "big");
        assert_int_equal(xp_reader_size(r), 9 * MIB + 7);
        expect_bytes(r, 9 * MIB, 100, 7);
        expect_bytes(r, 123, 4096, 4096);
        expect_bytes(r, 5 * MIB, 200000, 200000);
        expect_bytes(r, 0, 9 * MIB + 7, 9 * MIB + 7);
        for (size_t at = 0; at < 9 * MIB; at += MIB / 2)
            expect_bytes(r, at, MIB / 2, MIB / 2);
        xp_reader_close(r);
        xp_store_free(s);
    }
}

struct hasty {
    struct xp_reader *r;
    size_t from;
};

static void *read_slowly(void *ctx)
{
    struct hasty *h = ctx;
    uint8_t buf[50000];
    for (size_t at = h->from; at < h->from + 4 * MIB; at += sizeof buf) {
        size_t got;
        if (xp_reader_read(h->r, at, buf, sizeof buf, &got, NULL) != XP_OK || !got)
            return "a read failed";
        for (size_t i = 0; i < got; i++)
            if (buf[i] != fake_byte(at + i))
                return "a byte is wrong";
    }
    return NULL;
}

static void threads_share_a_reader(void **state)
{
    struct fake *f = *state;
    fake_object(f, "threads", "big", 8 * MIB);
    struct xp_store *s = fake_store(f, "gs://threads", false);
    struct xp_reader *r = open_reader(s, "big");
    struct hasty h[4] = {{r, 0}, {r, 1 * MIB}, {r, 3 * MIB}, {r, 0}};
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, read_slowly, &h[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(t[i], &wrong);
        assert_null(wrong);
    }
    xp_reader_close(r);
    xp_store_free(s);
}

static void what_is_planned_is_fetched_once_and_ahead(void **state)
{
    struct fake *f = *state;
    struct xp_range plan[] = {{8 * MIB, 12 * MIB}, {0, 3 * MIB}, {4 * MIB, 8 * MIB}};
    uint64_t sent;
    fake_object(f, "plan", "big", 12 * MIB);
    struct xp_store *s = fake_store(f, "gs://plan", false);
    struct xp_reader *r = open_reader(s, "big");
    xp_reader_plan(r, plan, 3);
    for (int i = 0; i < 3; i++)
        for (uint64_t at = plan[i].from; at < plan[i].to; at += MIB)
            expect_bytes(r, at, MIB, MIB);
    fake_calls(f, "alt=media", &sent);
    assert_int_equal(sent, 11 * MIB);
    xp_reader_plan(r, NULL, 0);
    expect_bytes(r, 3 * MIB + 5, 10, 10);
    xp_reader_close(r);
    xp_store_free(s);
}

/* --- faults --- */

/* 6 MiB are read whole although the store does this once or more. */
static void expect_healed(struct fake *f, const char *faults, int least_calls)
{
    struct xp_store *s = fake_store(f, "gs://faults", false);
    struct xp_reader *r = open_reader(s, "big");
    free(fake_tell(f, "clear", ""));
    fault(f, faults);
    expect_bytes(r, 0, 6 * MIB, 6 * MIB);
    int calls = fake_calls(f, "alt=media", NULL);
    if (calls < least_calls)
        fail_msg("%d calls for %s", calls, faults);
    xp_reader_close(r);
    xp_store_free(s);
    free(fake_tell(f, "clear", ""));
}

static void a_read_heals_and_asks_only_for_what_is_missing(void **state)
{
    struct fake *f = *state;
    uint64_t sent;
    fake_object(f, "faults", "big", 6 * MIB);
    expect_healed(f, "{\"rules\":[{\"match\":\"alt=media\",\"status\":503,\"times\":2}]}", 4);
    expect_healed(f, "{\"rules\":[{\"match\":\"alt=media\",\"status\":429,\"retry_after\":\"1\"}]}",
                  3);
    expect_healed(f, "{\"rules\":[{\"match\":\"alt=media\",\"drop\":true,\"times\":2}]}", 4);
    expect_healed(f, "{\"rules\":[{\"match\":\"alt=media\",\"short_after\":1000000}]}", 3);
    struct xp_store *s = fake_store(f, "gs://faults", false);
    struct xp_reader *r = open_reader(s, "big");
    fault(f, "{\"rules\":[{\"match\":\"alt=media\",\"reset_after\":3000000}]}");
    expect_bytes(r, 0, 6 * MIB, 6 * MIB);
    fake_calls(f, "alt=media", &sent);
    assert_true(sent < 6 * MIB + 600000); /* what the kernel dropped with the reset, no more */
    xp_reader_close(r);
    xp_store_free(s);
}

static void expect_failure(struct xp_reader *r, enum xp_status expected, const char *words)
{
    uint8_t buf[100];
    struct xp_error err = {0};
    size_t got;
    assert_int_equal(xp_reader_read(r, 1000, buf, sizeof buf, &got, &err), expected);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" lacks \"%s\"", err.text, words);
}

static void an_object_that_is_replaced_is_stale(void **state)
{
    struct fake *f = *state;
    static const char *const urls[] = {"gs://stale/x", "s3://stale/x"};
    for (int i = 0; i < 2; i++) {
        fake_object(f, "stale", "x/big", 2 * MIB);
        struct xp_store *s = fake_store(f, urls[i], false);
        struct xp_reader *r = open_reader(s, "big");
        uint64_t generation = xp_reader_generation(r);
        fake_object(f, "stale", "x/big", 2 * MIB);
        expect_failure(r, XP_STALE, "stale/x/big");
        xp_reader_close(r);
        struct xp_error err;
        assert_int_equal(xp_store_open(s, "big", generation, &r, &err), XP_STALE);
        assert_int_equal(xp_store_open_sized(s, "big", generation, 2 * MIB, &r, &err), XP_OK);
        expect_failure(r, XP_STALE, "another object");
        xp_reader_close(r);
        xp_store_free(s);
    }
}

static void a_refusal_names_bucket_object_status_and_right(void **state)
{
    struct fake *f = *state;
    struct xp_store_page page;
    struct xp_error err = {0};
    fake_object(f, "refuse", "runs/big", 5000);
    struct xp_store *s = fake_store(f, "gs://refuse/runs", false);
    struct xp_reader *r = open_reader(s, "big");
    fault(f, "{\"rules\":[{\"match\":\"alt=media\",\"status\":403},"
             "{\"match\":\"prefix\",\"status\":403,\"body\":\"a@b does not have "
             "storage.objects.list access to it.\"}]}");
    expect_failure(r, XP_DENIED, "gs://refuse/runs/big: HTTP 403, storage.objects.get is missing");
    assert_int_equal(xp_store_list(s, "", true, NULL, 10, &page, &err), XP_DENIED);
    assert_non_null(strstr(err.text, "gs://refuse/runs/: HTTP 403, storage.objects.list"));
    xp_reader_close(r);
    xp_store_free(s);
    s = fake_store(f, "gs://no-such-bucket", false);
    assert_int_equal(xp_store_list(s, "", true, NULL, 10, &page, &err), XP_NOT_FOUND);
    assert_non_null(strstr(err.text, "there is no bucket gs://no-such-bucket"));
    xp_store_free(s);
}

static void answers_that_lie_are_not_believed(void **state)
{
    struct fake *f = *state;
    fake_object(f, "lies", "big", 5000);
    struct xp_store *s = fake_store(f, "gs://lies", false);
    struct xp_reader *r = open_reader(s, "big");
    fault(f, "{\"rules\":[{\"match\":\"alt=media\",\"wrong_range\":true}]}");
    expect_failure(r, XP_IO, "another range");
    expect_bytes(r, 0, 100, 100); /* asked for again, it is right */
    xp_reader_close(r);
    fault(f, "{\"rules\":[{\"match\":\"prefix\",\"status\":200}]}");
    xp_store_free(s);
}

/* --- without waiting --- */

struct wakes {
    _Atomic int n;
};

static void on_wake(void *ctx)
{
    atomic_fetch_add(&((struct wakes *)ctx)->n, 1);
}

static void wait_wake(struct wakes *w, int n)
{
    for (int i = 0; i < 500 && atomic_load(&w->n) < n; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_int_equal(atomic_load(&w->n), n);
}

static void who_does_not_wait_is_woken(void **state)
{
    struct fake *f = *state;
    struct wakes w = {0};
    fake_object(f, "wake", "big", 3 * MIB);
    struct xp_store *s = fake_store(f, "gs://wake", false);
    struct xp_reader *r = open_reader(s, "big");
    fault(f, "{\"latency_ms\":50,\"rules\":[{\"match\":\"alt=media\",\"status\":503}]}");
    uint64_t at = MIB;
    int asked = 0;
    while (!xp_reader_ready(r, at, MIB, on_wake, &w))
        wait_wake(&w, ++asked);
    assert_true(asked >= 1);
    expect_bytes(r, at, MIB, MIB);
    assert_true(xp_reader_ready(r, at, MIB, on_wake, &w));
    xp_reader_close(r);
    xp_store_free(s);
}

static void a_cancelled_reader_ends_every_wait(void **state)
{
    struct fake *f = *state;
    struct wakes w = {0};
    uint8_t buf[10];
    size_t got;
    struct xp_error err;
    fake_object(f, "cancel", "big", 3 * MIB);
    struct xp_store *s = fake_store(f, "gs://cancel", false);
    struct xp_reader *r = open_reader(s, "big");
    fault(f, "{\"rules\":[{\"match\":\"alt=media\",\"stall_after\":1000,\"times\":9}]}");
    assert_false(xp_reader_ready(r, 0, MIB, on_wake, &w));
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    assert_int_equal(atomic_load(&w.n), 0);
    uint64_t t = xp_now_ns();
    xp_reader_cancel(r);
    wait_wake(&w, 1);
    assert_int_equal(xp_reader_read(r, 0, buf, sizeof buf, &got, &err), XP_CANCELLED);
    xp_reader_close(r);
    xp_store_free(s);
    assert_true(xp_now_ns() - t < UINT64_C(5000000000));
}

/* --- writing --- */

static void expect_put(struct xp_store *s, const char *key, const char *body,
                       uint64_t if_generation, enum xp_status expected, uint64_t *generation)
{
    struct xp_error err = {0};
    enum xp_status status =
        xp_store_put_if(s, key, xp_span_str(body), if_generation, generation, &err);
    if (status != expected)
        print_error("%s\n", err.text);
    assert_int_equal(status, expected);
}

static void puts_hold_only_for_the_generation_they_name(void **state)
{
    struct fake *f = *state;
    static const char *const urls[] = {"gs://puts/g", "s3://puts/s"};
    tree_dir(&f->t, "store/puts");
    for (int i = 0; i < 2; i++) {
        struct xp_store *s = fake_store(f, urls[i], true);
        uint64_t first, second, none;
        struct xp_object o;
        expect_put(s, "k/new", "one", 0, XP_OK, &first);
        expect_put(s, "k/new", "two", 0, XP_STALE, &none);
        expect_put(s, "k/new", "two", first + 1, XP_STALE, &none);
        expect_put(s, "k/new", "three", first, XP_OK, &second);
        assert_true(first != second);
        assert_int_equal(xp_store_stat(s, "k/new", &o, NULL), XP_OK);
        assert_int_equal(o.size, 5);
        assert_int_equal(o.generation, second);
        free(o.key);
        xp_store_free(s);
        s = fake_store(f, urls[i], false);
        expect_put(s, "k/other", "x", 0, XP_DENIED, &none);
        xp_store_free(s);
    }
}

static void a_large_put_goes_on_where_it_was_cut(void **state)
{
    struct fake *f = *state;
    size_t n = 20 * MIB + 3;
    uint8_t *body = malloc(n);
    struct xp_error err = {0};
    uint64_t generation;
    for (size_t i = 0; i < n; i++)
        body[i] = fake_byte(i);
    tree_dir(&f->t, "store/large");
    struct xp_store *s = fake_store(f, "gs://large", true);
    fault(f, "{\"rules\":[{\"match\":\"upload_id\",\"keep\":3000000},"
             "{\"match\":\"upload_id\",\"lose_answer\":true,\"keep\":5000000},"
             "{\"match\":\"upload_id\",\"status\":503}]}");
    assert_int_equal(xp_store_put_if(s, "big", xp_span_of(body, n), 0, &generation, &err), XP_OK);
    struct xp_reader *r = open_reader(s, "big");
    assert_int_equal(xp_reader_generation(r), generation);
    expect_bytes(r, 0, n, n);
    xp_reader_close(r);
    xp_store_free(s);
    free(body);
}

/* --- counts --- */

static uint64_t outcomes(const struct xp_store_counts *c, enum xp_store_call call, const char *name)
{
    int i = 0;
    while (strcmp(xp_store_outcomes[i], name) != 0)
        i++;
    return c->calls[call].outcomes[i];
}

static uint64_t timed(const struct xp_store_counts *c, enum xp_store_call call)
{
    uint64_t n = 0;
    for (int i = 0; i <= XP_STORE_BOUNDS; i++)
        n += c->calls[call].buckets[i];
    return n;
}

static void every_attempt_is_counted_by_what_came_of_it(void **state)
{
    struct fake *f = *state;
    struct xp_store_counts was, now;
    struct xp_store_page page;
    struct xp_object o;
    uint64_t generation;
    fake_object(f, "counts", "big", MIB);
    struct xp_store *s = fake_store(f, "gs://counts", true);
    fault(f, "{\"rules\":[{\"match\":\"delimiter\",\"status\":503},"
             "{\"match\":\"alt=media\",\"short_after\":500000},"
             "{\"match\":\"upload\",\"status\":429}]}");
    xp_store_counts(&was);
    assert_int_equal(xp_store_list(s, "", true, NULL, 10, &page, NULL), XP_OK);
    xp_store_page_fini(&page);
    assert_int_equal(xp_store_stat(s, "none", &o, NULL), XP_NOT_FOUND);
    struct xp_reader *r = open_reader(s, "big");
    expect_bytes(r, 0, MIB, MIB);
    xp_reader_close(r);
    expect_put(s, "k", "body", 0, XP_OK, &generation);
    xp_store_counts(&now);
    static const struct {
        enum xp_store_call call;
        const char *outcome;
    } once[] = {{XP_CALL_LIST, "503"},  {XP_CALL_LIST, "200"}, {XP_CALL_STAT, "404"},
                {XP_CALL_STAT, "200"},  {XP_CALL_READ, "cut"}, {XP_CALL_READ, "206"},
                {XP_CALL_WRITE, "429"}, {XP_CALL_WRITE, "200"}};
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        if (outcomes(&now, once[i].call, once[i].outcome) !=
            outcomes(&was, once[i].call, once[i].outcome) + 1)
            fail_msg("%s %s", xp_store_calls[once[i].call], once[i].outcome);
    for (int c = 0; c < XP_CALL_TOKEN; c++) {
        assert_int_equal(timed(&now, c) - timed(&was, c), 2);
        assert_int_equal(now.calls[c].retries - was.calls[c].retries, c == XP_CALL_STAT ? 0 : 1);
    }
    assert_true(now.bytes_read - was.bytes_read >= MIB);
    assert_int_equal(now.bytes_written - was.bytes_written, 4);
    assert_true(now.connections > 0);
    xp_store_free(s);
}

/* --- paths --- */

static void paths_outside_of_the_prefix_are_refused(void **state)
{
    struct fake *f = *state;
    char *prefix;
    struct xp_error err;
    fake_object(f, "paths", "a/b/c", 3);
    struct xp_store *s = fake_store(f, "gs://paths/a/", false);
    assert_int_equal(xp_store_locate(s, "gs://paths/a/b", &prefix, &err), XP_OK);
    assert_string_equal(prefix, "b/");
    free(prefix);
    assert_int_equal(xp_store_locate(s, "gs://paths/a/none", &prefix, &err), XP_NOT_FOUND);
    static const char *const outside[] = {"gs://paths",     "gs://paths/ab",  "gs://other/a/b",
                                          "s3://paths/a/b", "/etc",           "gs://paths/a/../b",
                                          "gs://",          "gs://paths/a//b"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        assert_int_equal(xp_store_locate(s, outside[i], &prefix, &err), XP_DENIED);
    assert_string_equal(xp_store_label(s), "a");
    xp_store_free(s);
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lists_are_the_same_in_both_kinds_of_bucket),
        TEST(several_folders_are_asked_for_at_once),
        TEST(reads_give_the_bytes_that_are_there),
        TEST(threads_share_a_reader),
        TEST(what_is_planned_is_fetched_once_and_ahead),
        TEST(a_read_heals_and_asks_only_for_what_is_missing),
        TEST(an_object_that_is_replaced_is_stale),
        TEST(a_refusal_names_bucket_object_status_and_right),
        TEST(answers_that_lie_are_not_believed),
        TEST(who_does_not_wait_is_woken),
        TEST(a_cancelled_reader_ends_every_wait),
        TEST(puts_hold_only_for_the_generation_they_name),
        TEST(a_large_put_goes_on_where_it_was_cut),
        TEST(every_attempt_is_counted_by_what_came_of_it),
        TEST(paths_outside_of_the_prefix_are_refused),
    };
    int rc = cmocka_run_group_tests(tests, setup, teardown);
    struct xp_store_counts last;
    xp_store_counts(&last);
    if (last.connections) /* all clients have ended */
        fprintf(stderr, "%llu connections were left open\n", (unsigned long long)last.connections);
    return rc ? rc : last.connections != 0;
}
