#include "lib/net/client.h"

#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/net/client_int.h"
#include "lib/net/direct.h"

#define CONNECT_MS 10000
#define STALL_MS 15000
#define SLOW_BYTES_S 4096L
#define CONNECTIONS_KEPT 256L
#define CONNECTION_AGE_S 55L /* servers and balancers close idle ones after a minute */
#define RECEIVE_BYTES 262144L
#define KICK_MS 20 /* below */

struct net_client {
    struct xp_loop *loop;
    pthread_t thread;
    CURLM *multi;
    uv_timer_t timer;
    uv_timer_t kick;
    size_t n_h2c; /* calls that need the kick */
    struct direct *direct;
    struct net_call *calls; /* that run */
};

struct net_call {
    _Atomic int refs;
    struct net_client *client;
    struct net_call *next, **link;
    struct direct_call *direct; /* without libcurl; NULL: with it */
    CURL *easy;
    struct curl_slist *headers;
    struct net_request r; /* url, method and headers are not kept */
    bool running, cancelled, paused;
    curl_socket_t fd; /* h2c: what libcurl watches, or CURL_SOCKET_BAD */
    size_t fields;    /* h2c: bytes of the head and the trailers */
    char why[CURL_ERROR_SIZE];
};

/* A socket that libcurl wants watched. */
struct watch {
    uv_poll_t poll;
    curl_socket_t fd;
    struct net_client *client;
};

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static struct net_client *shared;
static int shared_users;

/* --- the end of a call --- */

static void call_unref(void *ctx)
{
    struct net_call *call = ctx;
    if (atomic_fetch_sub(&call->refs, 1) > 1)
        return;
    direct_free(call->direct);
    curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->headers);
    free(call);
}

static enum xp_status status_of(CURLcode rc)
{
    switch (rc) {
    case CURLE_OK:
        return XP_OK;
    case CURLE_OPERATION_TIMEDOUT:
        return XP_TIMEOUT;
    case CURLE_WRITE_ERROR:
        return XP_CANCELLED;
    default:
        return XP_IO;
    }
}

static void end_call(struct net_call *call, enum xp_status status, enum net_stage stage,
                     const char *why)
{
    struct net_answer a = {
        .status = call->cancelled ? XP_CANCELLED : status, .stage = stage, .call = call};
    a.code = net_code(call);
    a.why = why;
    call->running = false;
    if (call->r.h2c && !--call->client->n_h2c)
        uv_timer_stop(&call->client->kick);
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    call->r.done(call->r.ctx, &a);
    call_unref(call);
}

static enum net_stage stage_of(struct net_call *call, CURLcode rc)
{
    curl_off_t connected = 0, resolved = 0;
    if (rc == CURLE_COULDNT_RESOLVE_HOST || rc == CURLE_COULDNT_RESOLVE_PROXY)
        return NET_RESOLVING;
    curl_easy_getinfo(call->easy, CURLINFO_CONNECT_TIME_T, &connected);
    if (connected)
        return NET_TALKING;
    curl_easy_getinfo(call->easy, CURLINFO_NAMELOOKUP_TIME_T, &resolved);
    return resolved ? NET_CONNECTING : NET_RESOLVING;
}

static void finish(struct net_call *call, CURLcode rc)
{
    enum net_stage stage = stage_of(call, rc);
    curl_multi_remove_handle(call->client->multi, call->easy);
    end_call(call, status_of(rc), stage, call->why[0] ? call->why : curl_easy_strerror(rc));
}

/* Wherever it has got to. */
static void abort_call(struct net_call *call)
{
    call->cancelled = true;
    if (call->direct) {
        direct_abort(call->direct);
        end_call(call, XP_CANCELLED, NET_TALKING, "it is not wanted any more");
    } else {
        finish(call, CURLE_ABORTED_BY_CALLBACK);
    }
}

static void finish_done(struct net_client *c)
{
    CURLMsg *m;
    int left;
    while ((m = curl_multi_info_read(c->multi, &left))) {
        struct net_call *call;
        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &call);
        finish(call, m->data.result);
    }
}

/* --- libcurl on the loop --- */

static void act(struct net_client *c, curl_socket_t fd, int what)
{
    int running;
    curl_multi_socket_action(c->multi, fd, what, &running);
    finish_done(c);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *w = poll->data;
    /* Reading finds out what is wrong and says it in better words than "select/poll". */
    int what = status < 0 ? CURL_CSELECT_IN | CURL_CSELECT_OUT : 0;
    if (events & UV_READABLE)
        what |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        what |= CURL_CSELECT_OUT;
    act(w->client, w->fd, what);
}

static void on_timer(uv_timer_t *timer)
{
    act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

/* The end of an answer over HTTP/2 may lie inside of libcurl (7.88) while its socket is quiet, and
 * then nothing would come until the call's time is up: it is told again and again to look. What
 * is done is looked at when all were told, so that the list stays as it is meanwhile. */
static void on_kick(uv_timer_t *timer)
{
    struct net_client *c = timer->data;
    int running;
    for (struct net_call *call = c->calls; call; call = call->next)
        if (call->r.h2c && call->fd != CURL_SOCKET_BAD)
            curl_multi_socket_action(c->multi, call->fd, CURL_CSELECT_IN, &running);
    finish_done(c);
}

static void free_handle(uv_handle_t *h)
{
    free(h->data);
}

static void unwatch(struct net_client *c, curl_socket_t fd, struct watch *w)
{
    if (!w)
        return;
    uv_poll_stop(&w->poll);
    uv_close((uv_handle_t *)&w->poll, free_handle);
    curl_multi_assign(c->multi, fd, NULL);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *of_socket)
{
    struct net_client *c = ctx;
    struct watch *w = of_socket;
    struct net_call *call = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &call);
    if (call && (what != CURL_POLL_REMOVE || call->fd == fd))
        call->fd = what == CURL_POLL_REMOVE ? CURL_SOCKET_BAD : fd;
    if (what == CURL_POLL_REMOVE) {
        unwatch(c, fd, w);
        return 0;
    }
    if (!w) {
        w = calloc(1, sizeof *w);
        if (!w || uv_poll_init_socket(xp_loop_uv(c->loop), &w->poll, fd) != 0) {
            free(w);
            return -1;
        }
        w->fd = fd;
        w->client = c;
        w->poll.data = w;
        curl_multi_assign(c->multi, fd, w);
    }
    int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    uv_poll_start(&w->poll, events, on_poll);
    return 0;
}

/* libcurl must not be called from inside: a wait of 0 is one turn of the loop. */
static int on_wait(CURLM *multi, long ms, void *ctx)
{
    struct net_client *c = ctx;
    (void)multi;
    if (ms < 0)
        uv_timer_stop(&c->timer);
    else
        uv_timer_start(&c->timer, on_timer, (uint64_t)ms, 0);
    return 0;
}

/* --- the client --- */

static void *run(void *ctx)
{
    struct net_client *c = ctx;
    xp_loop_run(c->loop);
    return NULL;
}

static struct net_client *client_new(void)
{
    struct net_client *c = calloc(1, sizeof *c);
    sigset_t all, was;
    XP_ASSERT(c && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    c->loop = xp_loop_new();
    c->multi = curl_multi_init();
    XP_ASSERT(c->multi && uv_timer_init(xp_loop_uv(c->loop), &c->timer) == 0);
    c->timer.data = c;
    XP_ASSERT(uv_timer_init(xp_loop_uv(c->loop), &c->kick) == 0);
    c->kick.data = c;
    c->direct = direct_open(xp_loop_uv(c->loop));
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_wait);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, CONNECTIONS_KEPT);
    curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &was); /* signals are for main */
    XP_ASSERT(pthread_create(&c->thread, NULL, run, c) == 0);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    return c;
}

static void end(void *ctx)
{
    struct net_client *c = ctx;
    struct net_call *call = c->calls, *next;
    for (; call; call = next) {
        next = call->next;
        abort_call(call);
    }
    direct_close(c->direct);
    c->direct = NULL;
    curl_multi_cleanup(c->multi);
    c->multi = NULL;
    uv_close((uv_handle_t *)&c->timer, NULL);
    uv_close((uv_handle_t *)&c->kick, NULL);
    xp_loop_stop(c->loop);
}

static void client_free(struct net_client *c)
{
    xp_loop_post(c->loop, end, c);
    pthread_join(c->thread, NULL);
    xp_loop_free(c->loop);
    free(c);
}

struct net_client *net_client_open(void)
{
    pthread_mutex_lock(&shared_lock);
    if (!shared_users++)
        shared = client_new();
    struct net_client *c = shared;
    pthread_mutex_unlock(&shared_lock);
    return c;
}

void net_client_close(struct net_client *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&shared_lock);
    if (!--shared_users) {
        client_free(shared);
        shared = NULL;
    }
    pthread_mutex_unlock(&shared_lock);
}

/* --- a call --- */

int net_code(struct net_call *call)
{
    long code = 0;
    if (call->direct)
        return direct_code(call->direct);
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &code);
    return (int)code;
}

/* libcurl files the trailers of HTTP/2 under the head's fields (7.88), or under their own. */
const char *net_trailer(struct net_call *call, const char *name)
{
    struct curl_header *h;
    unsigned any = CURLH_HEADER | CURLH_TRAILER;
    if (call->direct || curl_easy_header(call->easy, name, 0, any, -1, &h) != CURLHE_OK ||
        curl_easy_header(call->easy, name, h->amount - 1, any, -1, &h) != CURLHE_OK)
        return NULL;
    return h->value;
}

const char *net_header(struct net_call *call, const char *name)
{
    struct curl_header *h;
    if (call->direct)
        return direct_field(call->direct, name);
    if (curl_easy_header(call->easy, name, 0, CURLH_HEADER, -1, &h) != CURLHE_OK)
        return NULL;
    return h->value;
}

static size_t on_body(char *p, size_t one, size_t n, void *ctx)
{
    struct net_call *call = ctx;
    size_t all = one * n;
    if (call->r.body_fn && !call->r.body_fn(call->r.ctx, call, xp_span_of(p, all)))
        return call->paused ? CURL_WRITEFUNC_PAUSE : CURL_WRITEFUNC_ERROR;
    return all;
}

static size_t on_field(char *p, size_t one, size_t n, void *ctx)
{
    struct net_call *call = ctx;
    (void)p;
    call->fields += one * n;
    return call->fields <= NET_FIELDS_MAX ? one * n : 0;
}

static bool add_headers(struct net_call *call, const char *const *headers)
{
    /* No "Expect: 100-continue": it costs a round trip and some servers never answer it. */
    static const char *const none[] = {"Expect:", NULL};
    const char *const *lists[] = {none, headers ? headers : none + 1};
    for (int i = 0; i < 2; i++) {
        for (const char *const *h = lists[i]; *h; h++) {
            struct curl_slist *more = curl_slist_append(call->headers, *h);
            if (!more)
                return false;
            call->headers = more;
        }
    }
    return true;
}

static void set_method(CURL *e, const struct net_request *r)
{
    if (strcmp(r->method, "HEAD") == 0) {
        curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
    } else if (strcmp(r->method, "GET") != 0) {
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.n);
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, r->body.n ? (const char *)r->body.p : "");
        curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, r->method);
    }
}

static curl_socket_t open_counted(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
    int fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
    (void)purpose;
    if (fd >= 0)
        atomic_fetch_add((_Atomic uint64_t *)ctx, 1);
    return fd;
}

static int close_counted(void *ctx, curl_socket_t fd)
{
    atomic_fetch_sub((_Atomic uint64_t *)ctx, 1);
    return close(fd);
}

/* libcurl 7.88 fails when such a connection is used again. */
static void set_h2c(struct net_call *call)
{
    CURL *e = call->easy;
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(e, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(e, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(e, CURLOPT_BUFFERSIZE, (long)CURL_MAX_WRITE_SIZE);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_field);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, call);
}

static bool set_up(struct net_call *call, const struct net_request *r)
{
    CURL *e = call->easy;
    uint32_t stall_ms = r->stall_ms ? r->stall_ms : STALL_MS;
    if (!add_headers(call, r->headers) || curl_easy_setopt(e, CURLOPT_URL, r->url) != CURLE_OK)
        return false;
    set_method(e, r);
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, call->headers);
    curl_easy_setopt(e, CURLOPT_PRIVATE, call);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, call->why);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    /* Else a call that ends while its name is looked up waits for that, and all calls with it. */
    curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_USERAGENT, "xprofd");
    curl_easy_setopt(e, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(e, CURLOPT_MAXAGE_CONN, CONNECTION_AGE_S);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)(r->connect_ms ? r->connect_ms : CONNECT_MS));
    curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES_S);
    curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, (long)((stall_ms + 999) / 1000));
    curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)r->total_ms);
    if (r->direct)
        curl_easy_setopt(e, CURLOPT_NOPROXY, "*");
    if (r->h2c)
        set_h2c(call);
    if (r->ca_file)
        curl_easy_setopt(e, CURLOPT_CAINFO, r->ca_file);
    if (r->connections) {
        curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, open_counted);
        curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, r->connections);
        curl_easy_setopt(e, CURLOPT_CLOSESOCKETFUNCTION, close_counted);
        curl_easy_setopt(e, CURLOPT_CLOSESOCKETDATA, r->connections);
    }
    return true;
}

static bool on_direct_body(void *ctx, struct xp_span bytes)
{
    struct net_call *call = ctx;
    if (!call->r.body_fn || call->r.body_fn(call->r.ctx, call, bytes))
        return true;
    if (call->paused)
        direct_pause(call->direct);
    return false;
}

static void on_direct_end(void *ctx, enum xp_status status, const char *why)
{
    end_call(ctx, status, NET_TALKING, why);
}

static void begin(void *ctx)
{
    struct net_call *call = ctx;
    struct net_client *c = call->client;
    call->running = true;
    call->next = c->calls;
    call->link = &c->calls;
    if (call->next)
        call->next->link = &call->next;
    c->calls = call;
    if (call->r.h2c && !c->n_h2c++)
        uv_timer_start(&c->kick, on_kick, KICK_MS, KICK_MS);
    if (call->direct && !c->direct)
        abort_call(call);
    else if (call->direct)
        direct_begin(c->direct, call->direct);
    else if (!c->multi || curl_multi_add_handle(c->multi, call->easy) != CURLM_OK)
        finish(call, CURLE_OUT_OF_MEMORY);
    else
        act(c, CURL_SOCKET_TIMEOUT, 0); /* at once, and not by a timer in the loop's next turn */
}

static const struct direct_calls by_direct = {on_direct_body, on_direct_end};

struct net_call *net_start(struct net_client *c, const struct net_request *r)
{
    struct net_call *call = calloc(1, sizeof *call);
    if (!call)
        return NULL;
    call->refs = 1;
    call->client = c;
    call->fd = CURL_SOCKET_BAD;
    call->r = *r;
    call->r.url = call->r.method = NULL;
    call->r.headers = NULL;
    call->r.ca_file = NULL;
    if (direct_fits(r))
        call->direct = direct_new(r, &by_direct, call);
    if (!call->direct)
        call->easy = curl_easy_init();
    if (!call->direct && (!call->easy || !set_up(call, r))) {
        call_unref(call);
        return NULL;
    }
    xp_loop_post(c->loop, begin, call);
    return call;
}

static void cancel(void *ctx)
{
    struct net_call *call = ctx;
    if (call->running)
        abort_call(call);
    call_unref(call);
}

void net_cancel(struct net_call *call)
{
    atomic_fetch_add(&call->refs, 1);
    xp_loop_post(call->client->loop, cancel, call);
}

void net_pause(struct net_call *call)
{
    call->paused = true;
}

static void resume(void *ctx)
{
    struct net_call *call = ctx;
    struct net_client *c = call->client;
    if (call->running && call->paused && call->direct) {
        call->paused = false;
        direct_resume(call->direct);
    } else if (call->running && call->paused) {
        call->paused = false;
        curl_easy_pause(call->easy, CURLPAUSE_CONT); /* body_fn may be called from here */
        act(c, CURL_SOCKET_TIMEOUT, 0);
    }
    call_unref(call);
}

void net_resume(struct net_call *call)
{
    atomic_fetch_add(&call->refs, 1);
    xp_loop_post(call->client->loop, resume, call);
}

void net_each_header(struct net_call *call, void (*fn)(void *ctx, const char *, const char *),
                     void *ctx)
{
    struct curl_header *h = NULL;
    if (call->direct) {
        direct_each_field(call->direct, fn, ctx);
        return;
    }
    while ((h = curl_easy_nextheader(call->easy, CURLH_HEADER, -1, h)))
        fn(ctx, h->name, h->value);
}

struct xp_loop *net_client_loop(struct net_client *c)
{
    return c->loop;
}
