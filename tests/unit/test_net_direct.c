/* Calls between our own processes, against a server that does what a script says. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/net/client.h"
#include "tests/unit/unit.h"

#define BIG ((size_t)1 << 20)

/* What one connection does, a letter a request: 'a' answers and keeps the connection, 'z' answers
 * and closes, 'h' answers the half, 'x' closes without a word, 'b' answers BIG bytes, 'w' waits for
 * the client to leave. */
struct server {
    int fd, port;
    const char *const *scripts;
    size_t n;
    pthread_t thread;
    _Atomic int accepted, left;
};

static bool read_request(int fd)
{
    char text[4096];
    size_t n = 0;
    ssize_t k;
    while (n < sizeof text - 1 && (k = read(fd, text + n, sizeof text - 1 - n)) > 0) {
        n += (size_t)k;
        text[n] = 0;
        char *end = strstr(text, "\r\n\r\n");
        if (end && strstr(text, "Content-Length: 4\r\n") && strlen(end + 4) == 4)
            return true;
    }
    return false;
}

static void say(int fd, const void *p, size_t n)
{
    for (ssize_t k; n; p = (const char *)p + k, n -= (size_t)k)
        if ((k = send(fd, p, n, MSG_NOSIGNAL)) <= 0)
            return;
}

static void say_text(int fd, const char *text)
{
    say(fd, text, strlen(text));
}

static void say_big(int fd)
{
    uint8_t *p = malloc(BIG);
    char head[64];
    for (size_t i = 0; i < BIG; i++)
        p[i] = (uint8_t)(i * 2654435761u >> 13);
    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", BIG);
    say_text(fd, head);
    say(fd, p, BIG);
    free(p);
}

static void serve_one(struct server *s, int fd, const char *script)
{
    char c;
    for (; *script && read_request(fd); script++) {
        if (*script == 'a')
            say_text(fd, "HTTP/1.1 200 OK\r\nX-Who: me\r\nContent-Length: 2\r\n\r\nok");
        else if (*script == 'z')
            say_text(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
        else if (*script == 'h')
            say_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
        else if (*script == 'b')
            say_big(fd);
        else if (*script == 'w')
            s->left += read(fd, &c, 1) == 0;
        if (strchr("zhxw", *script))
            break;
    }
    close(fd);
}

static void *serve(void *ctx)
{
    struct server *s = ctx;
    for (size_t i = 0; i < s->n; i++) {
        int fd = accept(s->fd, NULL, NULL);
        if (fd < 0)
            break;
        s->accepted++;
        serve_one(s, fd, s->scripts[i]);
    }
    return NULL;
}

static void server_start(struct server *s, const char *const *scripts, size_t n)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof a;
    *s = (struct server){.scripts = scripts, .n = n};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &len), 0);
    s->port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_stop(struct server *s)
{
    pthread_join(s->thread, NULL);
    close(s->fd);
}

/* --- a call that is waited for --- */

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool over, pauses, paused;
    enum xp_status status;
    int code;
    char who[16];
    struct xp_buf body;
};

static bool on_body(void *ctx, struct net_call *call, struct xp_span bytes)
{
    struct waiter *w = ctx;
    pthread_mutex_lock(&w->lock);
    bool take = !w->pauses || w->body.n == 0 || w->paused;
    if (take) {
        xp_buf_span(&w->body, bytes);
        w->paused = false; /* the next piece finds no room */
    } else {
        net_pause(call);
        w->paused = true;
        pthread_cond_signal(&w->wake);
    }
    pthread_mutex_unlock(&w->lock);
    return take;
}

static void on_done(void *ctx, const struct net_answer *a)
{
    struct waiter *w = ctx;
    const char *who = a->status == XP_OK ? net_header(a->call, "x-who") : NULL;
    pthread_mutex_lock(&w->lock);
    w->status = a->status;
    w->code = a->code;
    snprintf(w->who, sizeof w->who, "%s", who ? who : "");
    w->over = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

static struct net_call *begin(struct net_client *net, struct waiter *w, int port, uint32_t total_ms)
{
    static const char *const headers[] = {"content-type: text/plain", NULL};
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/path", port);
    struct net_request r = {.method = "POST",
                            .url = url,
                            .headers = headers,
                            .body = XP_SPAN_LIT("body"),
                            .connect_ms = 5000,
                            .stall_ms = 20000,
                            .total_ms = total_ms,
                            .direct = true,
                            .ctx = w,
                            .body_fn = on_body,
                            .done = on_done};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    xp_buf_init(&w->body, 2 * BIG);
    struct net_call *call = net_start(net, &r);
    assert_non_null(call);
    return call;
}

static void wait_over(struct waiter *w, struct net_call *call)
{
    pthread_mutex_lock(&w->lock);
    while (!w->over) {
        pthread_cond_wait(&w->wake, &w->lock);
        if (w->paused && !w->over)
            net_resume(call);
    }
    pthread_mutex_unlock(&w->lock);
}

static enum xp_status ask(struct net_client *net, struct waiter *w, int port, uint32_t total_ms)
{
    *w = (struct waiter){.pauses = w->pauses};
    wait_over(w, begin(net, w, port, total_ms));
    return w->status;
}

static void expect_ok(struct net_client *net, int port)
{
    struct waiter w = {0};
    assert_int_equal(ask(net, &w, port, 0), XP_OK);
    assert_int_equal(w.code, 200);
    assert_int_equal(w.body.n, 2);
    assert_memory_equal(w.body.p, "ok", 2);
    xp_buf_fini(&w.body);
}

static void expect_failure(struct net_client *net, int port, enum xp_status status)
{
    struct waiter w = {0};
    assert_int_equal(ask(net, &w, port, status == XP_TIMEOUT ? 200 : 0), status);
    xp_buf_fini(&w.body);
}

/* --- promises --- */

static void a_connection_is_used_again(void **state)
{
    static const char *const scripts[] = {"aaz", "a"};
    struct net_client *net = net_client_open();
    struct server s;
    (void)state;
    server_start(&s, scripts, 2);
    struct waiter w = {0};
    assert_int_equal(ask(net, &w, s.port, 0), XP_OK);
    assert_string_equal(w.who, "me");
    xp_buf_fini(&w.body);
    expect_ok(net, s.port);
    expect_ok(net, s.port);
    assert_int_equal(s.accepted, 1);
    expect_ok(net, s.port);
    assert_int_equal(s.accepted, 2);
    net_client_close(net);
    server_stop(&s);
}

static void a_kept_connection_that_was_closed_costs_no_call(void **state)
{
    static const char *const scripts[] = {"ax", "a"};
    struct net_client *net = net_client_open();
    struct server s;
    (void)state;
    server_start(&s, scripts, 2);
    expect_ok(net, s.port);
    expect_ok(net, s.port);
    assert_int_equal(s.accepted, 2);
    net_client_close(net);
    server_stop(&s);
}

static void what_breaks_is_a_failure_and_is_not_asked_twice(void **state)
{
    static const char *const scripts[] = {"h", "x", "ah", "w"};
    struct net_client *net = net_client_open();
    struct server s;
    (void)state;
    server_start(&s, scripts, 4);
    expect_failure(net, s.port, XP_IO);
    expect_failure(net, s.port, XP_IO);
    assert_int_equal(s.accepted, 2);
    expect_ok(net, s.port);
    expect_failure(net, s.port, XP_IO);
    assert_int_equal(s.accepted, 3);
    expect_failure(net, s.port, XP_TIMEOUT);
    server_stop(&s);
    expect_failure(net, s.port, XP_IO); /* nobody listens */
    net_client_close(net);
}

static void a_body_that_there_is_no_room_for_comes_later_and_whole(void **state)
{
    static const char *const scripts[] = {"ba"};
    struct net_client *net = net_client_open();
    struct server s;
    struct waiter w = {.pauses = true};
    (void)state;
    server_start(&s, scripts, 1);
    assert_int_equal(ask(net, &w, s.port, 0), XP_OK);
    assert_int_equal(w.body.n, BIG);
    for (size_t i = 0; i < BIG; i++)
        if (w.body.p[i] != (uint8_t)(i * 2654435761u >> 13))
            fail_msg("byte %zu is another", i);
    xp_buf_fini(&w.body);
    expect_ok(net, s.port);
    assert_int_equal(s.accepted, 1);
    net_client_close(net);
    server_stop(&s);
}

static void a_call_that_is_not_wanted_leaves_the_server(void **state)
{
    static const char *const scripts[] = {"w", "w"};
    struct net_client *net = net_client_open();
    struct server s;
    struct waiter w = {0};
    (void)state;
    server_start(&s, scripts, 2);
    struct net_call *call = begin(net, &w, s.port, 0);
    while (s.accepted == 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    net_cancel(call);
    wait_over(&w, call);
    assert_int_equal(w.status, XP_CANCELLED);
    xp_buf_fini(&w.body);
    w = (struct waiter){0};
    begin(net, &w, s.port, 0);
    while (s.accepted == 1)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    net_client_close(net); /* and those that run when the client is closed are ended */
    assert_true(w.over);
    assert_int_equal(w.status, XP_CANCELLED);
    xp_buf_fini(&w.body);
    server_stop(&s);
    assert_int_equal(s.left, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_is_used_again),
        cmocka_unit_test(a_kept_connection_that_was_closed_costs_no_call),
        cmocka_unit_test(what_breaks_is_a_failure_and_is_not_asked_twice),
        cmocka_unit_test(a_body_that_there_is_no_room_for_comes_later_and_whole),
        cmocka_unit_test(a_call_that_is_not_wanted_leaves_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
