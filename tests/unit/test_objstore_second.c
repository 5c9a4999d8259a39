/* What the store does to an emulator of Cloud Storage that somebody else wrote, fake-gcs-server: a
 * second opinion about what fake_store.py says. FAKE_GCS_SERVER names the program, else it is
 * looked for in ~/go/bin; where it is not there the tests are skipped. */
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/net/client.h"
#include "lib/objstore/objstore.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

#define MIB ((size_t)1 << 20)

struct emulator {
    struct tree t;
    pid_t pid;
    char url[64];
};

static bool find_program(char path[512])
{
    const char *named = getenv("FAKE_GCS_SERVER"), *home = getenv("HOME");
    if (named)
        snprintf(path, 512, "%s", named);
    else
        snprintf(path, 512, "%s/go/bin/fake-gcs-server", home ? home : "");
    return access(path, X_OK) == 0;
}

static int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    close(fd);
    return ntohs(a.sin_port);
}

static void run_program(const struct emulator *e, const char *path, const char *port)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execl(path, path, "-scheme", "http", "-host", "127.0.0.1", "-port", port, "-backend", "memory",
          "-data", tree_path(&e->t, "store"), "-public-host", e->url + strlen("http://"),
          "-external-url", e->url, "-log-level", "error", (char *)NULL);
    _exit(127);
}

/* Within half a minute. */
static void wait_until_it_answers(const struct emulator *e)
{
    struct net_client *net = net_client_open();
    char url[128];
    int code = 0;
    snprintf(url, sizeof url, "%s/storage/v1/b", e->url);
    for (int i = 0; i < 300 && code != 200; i++) {
        struct net_reply reply;
        struct net_request r = {.method = "GET", .url = url, .total_ms = 2000};
        net_fetch(net, &r, MIB, &reply, NULL);
        code = reply.code;
        net_reply_fini(&reply);
        if (code != 200)
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    net_client_close(net);
    assert_int_equal(code, 200);
}

static int setup(void **state)
{
    static struct emulator e;
    char path[512], port[16];
    *state = NULL;
    if (!find_program(path)) {
        fprintf(stderr, "fake-gcs-server is not there (FAKE_GCS_SERVER names it): no second "
                        "opinion about buckets\n");
        return 0;
    }
    tree_init(&e.t);
    tree_file(&e.t, "store/pool/runs/a/one", "0123456789");
    tree_file(&e.t, "store/pool/runs/b/two #2", "abc");
    tree_file(&e.t, "store/pool/runs/c", "x");
    tree_file(&e.t, "store/pool/other", "y");
    snprintf(port, sizeof port, "%d", free_port());
    snprintf(e.url, sizeof e.url, "http://127.0.0.1:%s", port);
    setenv("STORAGE_EMULATOR_HOST", e.url, 1);
    unsetenv("http_proxy");
    e.pid = fork();
    assert_true(e.pid >= 0);
    if (e.pid == 0)
        run_program(&e, path, port);
    *state = &e;
    wait_until_it_answers(&e);
    return 0;
}

static int teardown(void **state)
{
    struct emulator *e = *state;
    if (!e)
        return 0;
    kill(e->pid, SIGKILL);
    waitpid(e->pid, NULL, 0);
    tree_fini(&e->t);
    return 0;
}

static struct xp_store *open_store(void **state, const char *url)
{
    struct xp_store *s;
    struct xp_error err = {0};
    if (!*state)
        skip();
    if (xp_store_open_bucket(url, &(struct xp_bucket_options){.writable = true}, &s, &err) != XP_OK)
        fail_msg("%s", err.text);
    return s;
}

static void expect_list(struct xp_store *s, bool delimiter, const char *expected)
{
    struct xp_buf text;
    char *token = NULL;
    xp_buf_init(&text, 65536);
    do {
        struct xp_store_page page;
        struct xp_error err = {0};
        if (xp_store_list(s, "", delimiter, token, 2, &page, &err) != XP_OK)
            fail_msg("%s", err.text);
        for (size_t i = 0; i < page.n; i++)
            xp_buf_fmt(&text, " %s", page.items[i].key);
        free(token);
        token = page.next ? strdup(page.next) : NULL;
        xp_store_page_fini(&page);
    } while (token);
    assert_buf_is(&text, expected);
    xp_buf_fini(&text);
}

static void lists_are_as_the_other_one_says(void **state)
{
    struct xp_store *s = open_store(state, "gs://pool/runs");
    expect_list(s, false, " a/one b/two #2 c");
    struct xp_store_page page;
    assert_int_equal(xp_store_list(s, "", true, NULL, 100, &page, NULL), XP_OK);
    assert_int_equal(page.n, 3);
    assert_true(page.items[0].prefix && page.items[1].prefix && !page.items[2].prefix);
    assert_int_equal(page.items[2].size, 1);
    assert_true(page.items[2].generation && page.items[2].mtime_ms);
    xp_store_page_fini(&page);
    xp_store_free(s);
}

static void bytes_are_those_of_the_generation_that_was_opened(void **state)
{
    struct xp_store *s = open_store(state, "gs://pool");
    struct xp_reader *r;
    struct xp_error err = {0};
    uint64_t generation;
    char text[16];
    size_t got;
    assert_int_equal(xp_store_open(s, "runs/a/one", 0, &r, &err), XP_OK);
    assert_int_equal(xp_reader_read(r, 3, text, sizeof text, &got, &err), XP_OK);
    assert_int_equal(got, 7);
    assert_memory_equal(text, "3456789", 7);
    uint64_t first = xp_reader_generation(r);
    xp_reader_close(r);
    assert_int_equal(
        xp_store_put_if(s, "runs/a/one", XP_SPAN_LIT("anew"), first, &generation, &err), XP_OK);
    assert_true(generation != first);
    assert_int_equal(xp_store_open_sized(s, "runs/a/one", first, 10, &r, &err), XP_OK);
    assert_int_equal(xp_reader_read(r, 0, text, sizeof text, &got, &err), XP_STALE);
    xp_reader_close(r);
    assert_int_equal(xp_store_open(s, "runs/none", 0, &r, &err), XP_NOT_FOUND);
    xp_store_free(s);
}

static void puts_hold_only_for_the_generation_they_name(void **state)
{
    struct xp_store *s = open_store(state, "gs://pool/puts");
    struct xp_error err = {0};
    struct xp_object o;
    uint64_t first, second, none;
    assert_int_equal(xp_store_put_if(s, "k", XP_SPAN_LIT("one"), 0, &first, &err), XP_OK);
    assert_int_equal(xp_store_put_if(s, "k", XP_SPAN_LIT("two"), 0, &none, &err), XP_STALE);
    assert_int_equal(xp_store_put_if(s, "k", XP_SPAN_LIT("two"), first + 1, &none, &err), XP_STALE);
    assert_int_equal(xp_store_put_if(s, "k", XP_SPAN_LIT("three"), first, &second, &err), XP_OK);
    assert_int_equal(xp_store_stat(s, "k", &o, &err), XP_OK);
    assert_int_equal(o.size, 5);
    assert_int_equal(o.generation, second);
    free(o.key);
    xp_store_free(s);
}

static void a_large_put_arrives_whole_in_its_parts(void **state)
{
    struct xp_store *s = open_store(state, "gs://pool/large");
    struct xp_reader *r;
    struct xp_error err = {0};
    size_t n = 20 * MIB + 3, got;
    uint8_t *body = malloc(n), *back = malloc(n);
    uint64_t generation;
    for (size_t i = 0; i < n; i++)
        body[i] = (uint8_t)(i * 2654435761u >> 13);
    if (xp_store_put_if(s, "big", xp_span_of(body, n), 0, &generation, &err) != XP_OK)
        fail_msg("%s", err.text);
    assert_int_equal(xp_store_open(s, "big", generation, &r, &err), XP_OK);
    assert_int_equal(xp_reader_read(r, 0, back, n, &got, &err), XP_OK);
    assert_int_equal(got, n);
    assert_memory_equal(body, back, n);
    xp_reader_close(r);
    xp_store_free(s);
    free(body);
    free(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_as_the_other_one_says),
        cmocka_unit_test(bytes_are_those_of_the_generation_that_was_opened),
        cmocka_unit_test(puts_hold_only_for_the_generation_they_name),
        cmocka_unit_test(a_large_put_arrives_whole_in_its_parts),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
