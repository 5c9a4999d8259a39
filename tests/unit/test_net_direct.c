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
#include "lib/net/direct.h"
#include "lib/net/timer.h"
#include "tests/unit/unit.h"

#define BIG ((size_t)1 << 20)
#define HUGE_BODY ((size_t)8 << 20) /* more than the sockets hold that nobody reads from */

/* What one connection does, a letter a request: 'a' answers and keeps the connection, 'z' answers
 * and closes, 'h' answers the half, 'x' closes without a word, 'b' answers BIG bytes, 'w' waits for
 * the client to leave, 'i' answers twice in advance, 'r' resets without a word, 'p' answers the
 * half before it reads the request's body, 'd' answers twice at once, 'u' answers, and, once held,
 * a second time. While the client's thread is held, so that it comes upon
 * all of it at once: 'H' answers the half and resets, 'A' answers and resets, 'T' the same without
 * a length, 'E' refuses what it has only read the head of, and resets. */
struct server {
    int fd, port;
    const char *const *scripts;
    size_t n;
    pthread_t thread;
    _Atomic int accepted, left, waits;
    _Atomic bool asked, held, gone;
};

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* False: it does not become true for very long. */
static bool wait_for(_Atomic bool *what)
{
    for (int i = 0; i < 10000 && !*what; i++)
        nap();
    return *what;
}

/* Ends where the head does, or after the body; of the latter only its length matters. */
static bool read_request(int fd, bool body)
{
    char text[512];
    size_t n = 0;
    char *length;
    while (n < 4 || memcmp(text + n - 4, "\r\n\r\n", 4) != 0)
        if (n == sizeof text - 1 || read(fd, text + n, 1) != 1)
            return false;
        else
            text[++n] = 0;
    if (!(length = strstr(text, "Content-Length: ")))
        return false;
    size_t left = body ? strtoul(length + 16, NULL, 10) : 0;
    for (ssize_t k; left; left -= (size_t)k)
        if ((k = read(fd, text, left < sizeof text ? left : sizeof text)) <= 0)
            return false;
    return true;
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

static void say_early(int fd)
{
    uint8_t *room = malloc(HUGE_BODY);
    size_t n = 0;
    say_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha");
    for (ssize_t k; n < HUGE_BODY && (k = read(fd, room + n, HUGE_BODY - n)) > 0;)
        n += (size_t)k;
    free(room);
    if (n == HUGE_BODY)
        say_text(fd, "lf");
}

/* The client knows of it at once, and of what was said before. */
static void reset(int fd)
{
    struct linger l = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
}

static void say_and_reset(struct server *s, int fd, char what)
{
    s->asked = true;
    wait_for(&s->held);
    say_text(fd, what == 'T'   ? "HTTP/1.1 200 OK\r\n\r\nhalf"
                 : what == 'H' ? "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"
                 : what == 'A' ? "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhalf"
                               : "HTTP/1.1 413 Large\r\nContent-Length: 4\r\n\r\nhalf");
    reset(fd);
}

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define NOT_ASKED "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"

static void see_it_leave(struct server *s, int fd)
{
    char c;
    s->waits++;
    s->left += read(fd, &c, 1) <= 0;
}

static void say_unasked(struct server *s, int fd)
{
    say_text(fd, OK_ANSWER);
    wait_for(&s->held);
    say_text(fd, NOT_ASKED);
    s->gone = true;
    see_it_leave(s, fd);
}

static void serve_one(struct server *s, int fd, const char *script)
{
    for (; *script && read_request(fd, *script != 'p' && *script != 'E'); script++) {
        if (*script == 'a')
            say_text(fd, "HTTP/1.1 200 OK\r\nX-Who: me\r\nContent-Length: 2\r\n\r\nok");
        else if (*script == 'z')
            say_text(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
        else if (*script == 'h')
            say_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
        else if (*script == 'b')
            say_big(fd);
        else if (*script == 'w')
            see_it_leave(s, fd);
        else if (*script == 'd')
            say_text(fd, OK_ANSWER NOT_ASKED);
        else if (*script == 'u')
            say_unasked(s, fd);
        else if (*script == 'i')
            say_text(fd, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
                         "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        else if (*script == 'r')
            reset(fd);
        else if (*script == 'p')
            say_early(fd);
        else if (strchr("HATE", *script))
            say_and_reset(s, fd, *script);
        if (strchr("zhxwruHATE", *script))
            break;
    }
    close(fd);
    s->gone = true;
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

static int listen_on(int backlog, int *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), room = 65536;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, backlog), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static void server_start(struct server *s, const char *const *scripts, size_t n)
{
    *s = (struct server){.scripts = scripts, .n = n};
    s->fd = listen_on(8, &s->port);
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
    bool over, pauses, paused, stuck, cancels;
    enum xp_status status;
    int code;
    char who[16], why[64];
    struct xp_buf body;
};

static bool on_body(void *ctx, struct net_call *call, struct xp_span bytes)
{
    struct waiter *w = ctx;
    pthread_mutex_lock(&w->lock);
    bool take = !w->pauses || w->paused;
    if (take) {
        xp_buf_span(&w->body, bytes);
        w->paused = false; /* the next piece finds no room */
    } else {
        net_pause(call);
        w->paused = true;
        if (w->cancels) {
            net_cancel(call);
            net_resume(call);
        } else {
            w->stuck = true;
            pthread_cond_signal(&w->wake);
        }
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
    snprintf(w->why, sizeof w->why, "%s", a->why ? a->why : "");
    w->over = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

static const char *const plain[] = {"content-type: text/plain", NULL};

static const struct net_request usual = {.method = "POST",
                                         .headers = plain,
                                         .body = XP_SPAN_LIT("body"),
                                         .connect_ms = 60000,
                                         .stall_ms = 20000,
                                         .direct = true,
                                         .body_fn = on_body,
                                         .done = on_done};

static struct net_call *begin_as(struct net_client *net, struct waiter *w, int port,
                                 struct net_request r)
{
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/path", port);
    r.url = url;
    r.ctx = w;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    xp_buf_init(&w->body, 2 * BIG);
    struct net_call *call = net_start(net, &r);
    assert_non_null(call);
    return call;
}

static struct net_call *begin(struct net_client *net, struct waiter *w, int port, uint32_t total_ms)
{
    struct net_request r = usual;
    r.total_ms = total_ms;
    return begin_as(net, w, port, r);
}

static void wait_over(struct waiter *w, struct net_call *call)
{
    pthread_mutex_lock(&w->lock);
    while (!w->over) {
        while (!w->stuck && !w->over)
            pthread_cond_wait(&w->wake, &w->lock);
        if (!w->over)
            net_resume(call);
        w->stuck = false;
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

/* The client's thread does nothing until the server is done with its connection. */
static void hold(void *ctx)
{
    struct server *s = ctx;
    s->held = true;
    wait_for(&s->gone);
}

/* A call, after which the connection is not used again. */
static void expect_of_reset(const char *script, struct xp_span request, enum xp_status status,
                            int code)
{
    const char *const scripts[] = {script, "a"};
    struct net_client *net = net_client_open();
    struct net_request r = usual;
    struct waiter w = {0};
    struct server s;
    server_start(&s, scripts, 2);
    if (strlen(script) == 2)
        expect_ok(net, s.port);
    r.body = request;
    struct net_call *call = begin_as(net, &w, s.port, r);
    assert_true(wait_for(&s.asked));
    net_timer_start(net, 0, hold, &s);
    wait_over(&w, call);
    if (w.status != status)
        fail_msg("%s: %d, %s", script, w.status, w.why);
    assert_int_equal(w.code, code);
    assert_int_equal(w.body.n, 4);
    assert_memory_equal(w.body.p, "half", 4);
    assert_int_equal(s.accepted, 1);
    xp_buf_fini(&w.body);
    expect_ok(net, s.port);
    assert_int_equal(s.accepted, 2);
    net_client_close(net);
    server_stop(&s);
}

static void what_came_before_a_reset_is_read_and_then_the_call_ends(void **state)
{
    uint8_t *body = calloc(1, HUGE_BODY);
    (void)state;
    expect_of_reset("H", usual.body, XP_IO, 200);
    expect_of_reset("aH", usual.body, XP_IO, 200);
    expect_of_reset("A", usual.body, XP_OK, 200);
    expect_of_reset("T", usual.body, XP_IO, 200); /* it may have been more */
    expect_of_reset("E", xp_span_of(body, HUGE_BODY), XP_OK, 413);
    expect_of_reset("aE", xp_span_of(body, HUGE_BODY), XP_OK, 413);
    free(body);
}

static void a_used_connection_that_is_reset_before_a_byte_costs_no_call(void **state)
{
    static const char *const scripts[] = {"ar", "a", "r"};
    struct net_client *net = net_client_open();
    struct server s;
    (void)state;
    server_start(&s, scripts, 3);
    expect_ok(net, s.port);
    expect_ok(net, s.port);
    assert_int_equal(s.accepted, 2);
    expect_failure(net, s.port, XP_IO); /* a new one does */
    server_stop(&s);
    net_client_close(net);
}

static void stand_still(void *ctx)
{
    struct server *s = ctx;
    s->asked = true;
    wait_for(&s->gone);
}

/* Whether the client sees them before its next call, or has to find them in its way. */
static void bytes_that_nobody_asked_for_are_no_answer(void **state)
{
    static const char *const scripts[] = {"da", "u", "a"};
    struct net_client *net = net_client_open();
    struct waiter w = {0};
    struct server s;
    (void)state;
    server_start(&s, scripts, 3);
    expect_ok(net, s.port);
    expect_ok(net, s.port);
    assert_int_equal(s.accepted, 2);
    s.gone = false;
    net_timer_start(net, 0, stand_still, &s);
    assert_true(wait_for(&s.asked));
    struct net_call *call = begin(net, &w, s.port, 0); /* the client will come to that first */
    s.held = true;
    wait_over(&w, call);
    assert_int_equal(w.status, XP_OK);
    assert_memory_equal(w.body.p, "ok", 2);
    xp_buf_fini(&w.body);
    net_client_close(net);
    server_stop(&s);
    assert_int_equal(s.accepted, 3);
    assert_int_equal(s.left, 1);
}

static void answers_in_advance_are_passed_over(void **state)
{
    static const char *const scripts[] = {"iia"};
    struct net_client *net = net_client_open();
    struct server s;
    (void)state;
    server_start(&s, scripts, 1);
    for (int i = 0; i < 3; i++)
        expect_ok(net, s.port);
    assert_int_equal(s.accepted, 1);
    net_client_close(net);
    server_stop(&s);
}

static void a_pause_while_the_request_is_sent_does_not_stop_it_for_ever(void **state)
{
    static const char *const scripts[] = {"p"};
    uint8_t *body = calloc(1, HUGE_BODY);
    struct net_client *net = net_client_open();
    struct net_request r = usual;
    struct waiter w = {.pauses = true};
    struct server s;
    (void)state;
    server_start(&s, scripts, 1);
    r.body = xp_span_of(body, HUGE_BODY);
    wait_over(&w, begin_as(net, &w, s.port, r));
    assert_int_equal(w.status, XP_OK);
    assert_int_equal(w.body.n, 4);
    assert_memory_equal(w.body.p, "half", 4);
    xp_buf_fini(&w.body);
    net_client_close(net);
    server_stop(&s);
    free(body);
}

static void a_call_may_be_resumed_after_it_was_cancelled(void **state)
{
    static const char *const scripts[] = {"b", "a"};
    struct net_client *net = net_client_open();
    struct waiter w = {.pauses = true, .cancels = true};
    struct server s;
    (void)state;
    server_start(&s, scripts, 2);
    wait_over(&w, begin(net, &w, s.port, 0));
    assert_int_equal(w.status, XP_CANCELLED);
    assert_int_equal(w.body.n, 0);
    xp_buf_fini(&w.body);
    expect_ok(net, s.port);
    net_client_close(net);
    server_stop(&s);
}

/* What is waited for alone is found in the words: each limit but one is far away. */
static void expect_late(struct net_client *net, int port, struct net_request r, const char *why)
{
    struct waiter w = {0};
    wait_over(&w, begin_as(net, &w, port, r));
    assert_int_equal(w.status, XP_TIMEOUT);
    assert_string_equal(w.why, why);
    xp_buf_fini(&w.body);
}

static void each_limit_of_time_ends_a_call(void **state)
{
    static const char *const scripts[] = {"w"};
    struct net_client *net = net_client_open();
    struct net_request r = usual;
    struct server s;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int port, full = listen_on(0, &port), fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)state;
    a.sin_port = htons((uint16_t)port);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0); /* no room for another */
    r.total_ms = 1;
    expect_late(net, port, r, "no answer in time");
    r.total_ms = 0;
    r.connect_ms = 1;
    expect_late(net, port, r, "no connection in time");
    server_start(&s, scripts, 1);
    r = usual;
    r.stall_ms = 1;
    expect_late(net, s.port, r, "hardly a byte came for too long");
    server_stop(&s);
    net_client_close(net);
    close(fd);
    close(full);
}

static size_t count_closed(const int *fds, size_t n)
{
    size_t closed = 0;
    char c;
    for (size_t i = 0; i < n; i++)
        closed += recv(fds[i], &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
    return closed;
}

static void no_more_connections_are_kept_than_the_limit(void **state)
{
    enum { N = DIRECT_IDLE_MAX + 3 };
    static struct waiter w[N];
    static struct net_call *calls[N];
    static int fds[N];
    struct net_client *net = net_client_open();
    int port, fd = listen_on(N, &port);
    (void)state;
    for (int i = 0; i < N; i++)
        calls[i] = begin(net, &w[i], port, 0);
    for (int i = 0; i < N; i++)
        assert_true((fds[i] = accept(fd, NULL, NULL)) >= 0 && read_request(fds[i], true));
    for (int i = 0; i < N; i++)
        say_text(fds[i], "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    for (int i = 0; i < N; i++) {
        wait_over(&w[i], calls[i]);
        assert_int_equal(w[i].status, XP_OK);
        xp_buf_fini(&w[i].body);
    }
    for (int i = 0; i < 5000 && count_closed(fds, N) < N - DIRECT_IDLE_MAX; i++)
        nap();
    assert_int_equal(count_closed(fds, N), N - DIRECT_IDLE_MAX);
    net_client_close(net);
    for (int i = 0; i < N; i++)
        close(fds[i]);
    close(fd);
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
    while (s.waits == 0) /* a call that ends before it was sent is none to the server */
        nap();
    net_cancel(call);
    wait_over(&w, call);
    assert_int_equal(w.status, XP_CANCELLED);
    xp_buf_fini(&w.body);
    w = (struct waiter){0};
    begin(net, &w, s.port, 0);
    while (s.waits == 1)
        nap();
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
        cmocka_unit_test(what_came_before_a_reset_is_read_and_then_the_call_ends),
        cmocka_unit_test(a_used_connection_that_is_reset_before_a_byte_costs_no_call),
        cmocka_unit_test(bytes_that_nobody_asked_for_are_no_answer),
        cmocka_unit_test(answers_in_advance_are_passed_over),
        cmocka_unit_test(a_pause_while_the_request_is_sent_does_not_stop_it_for_ever),
        cmocka_unit_test(a_call_may_be_resumed_after_it_was_cancelled),
        cmocka_unit_test(each_limit_of_time_ends_a_call),
        cmocka_unit_test(no_more_connections_are_kept_than_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
