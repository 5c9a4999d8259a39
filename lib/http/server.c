/* lib/http/server.c - the server: configuration, loops, start and end. */
#include <signal.h>
#include <stdlib.h>

#include "lib/base/log.h"
#include "lib/http/http_int.h"

#define UNANSWERED_MS                                                                              \
    5000 /* beyond the grace, for handlers that have yet to see the cancel flag                    \
          */

/* --- one loop --- */

static void on_connection(uv_stream_t *listener, int status)
{
    if (status == 0)
        conn_accept(listener->data);
}

static void on_sweep(uv_timer_t *timer)
{
    conn_sweep(timer->data);
}

static void remember_handle(uv_handle_t *handle, void *known)
{
    *(uv_handle_t **)known = handle;
}

static void unref_handle(uv_handle_t *handle, void *known)
{
    if (handle != known)
        uv_unref(handle);
}

/* h2o's context keeps handles (an async, timers that it starts and never stops) which only its
 * dispose closes, and that must not happen while the loop runs: unreferenced, they do not keep
 * xp_loop_run from returning. Before it there is one handle, xp_loop's own. */
static void context_open(struct http_loop *l)
{
    uv_handle_t *known = NULL;
    uv_walk(l->uv, remember_handle, &known);
    h2o_context_init(&l->ctx, l->uv, &l->server->global);
    uv_walk(l->uv, unref_handle, known);
}

static void *loop_main(void *arg)
{
    struct http_loop *l = arg;
    struct http_server *s = l->server;

    xp_loop_run(l->run);
    h2o_context_dispose(&l->ctx);
    pthread_mutex_lock(&s->lock);
    s->running--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void loop_open(struct http_server *s, struct http_loop *l)
{
    l->server = s;
    l->run = xp_loop_new();
    l->uv = xp_loop_uv(l->run);
    context_open(l);
    l->accept = (h2o_accept_ctx_t){.ctx = &l->ctx, .hosts = s->global.hosts, .ssl_ctx = s->tls};
    uv_tcp_init(l->uv, &l->listener);
    uv_timer_init(l->uv, &l->sweep);
    uv_timer_init(l->uv, &l->drain);
    l->listener.data = l->sweep.data = l->drain.data = l;
}

static enum xp_status loop_listen(struct http_loop *l, int fd, struct xp_error *err)
{
    int rc = uv_tcp_open(&l->listener, fd);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)&l->listener, SOMAXCONN, on_connection);
    if (rc != 0)
        return xp_fail(err, XP_IO, 0, "cannot listen: %s", uv_strerror(rc));
    uint64_t sweep_ms = l->server->config.slow_reader_s < 4 ? 250 : 1000;
    uv_timer_start(&l->sweep, on_sweep, sweep_ms, sweep_ms);
    return XP_OK;
}

/* One that never ran. */
static void loop_discard(struct http_loop *l)
{
    uv_close((uv_handle_t *)&l->listener, NULL);
    uv_close((uv_handle_t *)&l->sweep, NULL);
    uv_close((uv_handle_t *)&l->drain, NULL);
    h2o_context_dispose(&l->ctx);
    xp_loop_free(l->run);
}

/* Signals are the main thread's business. */
static enum xp_status loop_start(struct http_loop *l, struct xp_error *err)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    l->server->running++;
    int rc = pthread_create(&l->thread, NULL, loop_main, l);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        l->server->running--;
        return xp_fail(err, XP_IO, 0, "cannot start a thread: %s", strerror(rc));
    }
    pthread_setname_np(l->thread, "http");
    l->started = true;
    return XP_OK;
}

/* --- configuration --- */

static const char *const *copy_names(const char *const *names)
{
    size_t n = 0;
    while (names && names[n])
        n++;
    char **copy = h2o_mem_alloc((n + 1) * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        copy[i] = strdup(names[i]);
    copy[n] = NULL;
    return (const char *const *)copy;
}

static void config_copy(struct http_server *s, const struct http_config *given)
{
    struct http_config *c = &s->config;

    *c = *given;
    c->host = strdup(given->host && given->host[0] ? given->host : "127.0.0.1");
    c->hosts = copy_names(given->hosts);
    c->loops = c->loops < 1 ? 1 : c->loops > HTTP_LOOPS_MAX ? HTTP_LOOPS_MAX : c->loops;
    c->body_max = c->body_max ? c->body_max : (size_t)1 << 20;
    c->slow_reader_s = c->slow_reader_s > 0 ? c->slow_reader_s : 120;
    c->idle_s = c->idle_s > 0 ? c->idle_s : 15;
}

static void h2o_configure(struct http_server *s)
{
    h2o_config_init(&s->global);
    s->global.server_name = h2o_iovec_init(H2O_STRLIT("xprofd"));
    s->global.max_request_entity_size = s->config.body_max;
    s->global.http1.req_timeout = (uint64_t)s->config.idle_s * 1000;
    s->global.http2.idle_timeout = (uint64_t)s->config.idle_s * 1000;
    h2o_hostconf_t *host =
        h2o_config_register_host(&s->global, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    host->http2.push_preload = 0;
    h2o_pathconf_t *path = h2o_config_register_path(host, "/", 0);
    filter_register(path);
    filter_register(&host->fallback_path);
    h2o_create_handler(path, sizeof(h2o_handler_t))->on_req = exchange_on_req;
}

static void learn_own_name(struct http_server *s)
{
    const struct sockaddr_storage *b = &s->bound;
    bool any = b->ss_family == AF_INET
                   ? ((const struct sockaddr_in *)b)->sin_addr.s_addr == htonl(INADDR_ANY)
                   : IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)b)->sin6_addr);

    if (!any || gethostname(s->own_name, sizeof s->own_name - 1) != 0)
        s->own_name[0] = '\0';
    h2o_strtolower(s->own_name, strlen(s->own_name));
}

/* A write to a socket that was shut down is an error like any other, not the process's end. */
static void ignore_sigpipe(void)
{
    struct sigaction old;
    if (sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        signal(SIGPIPE, SIG_IGN);
}

/* --- start --- */

static enum xp_status open_listeners(struct http_server *s, struct xp_error *err)
{
    for (int i = 0; i < s->config.loops; i++) {
        struct http_loop *l = &s->loops[i];
        int fd = i == 0 ? listen_open(s->config.host, s->config.port, s->config.loops > 1,
                                      &s->bound, err)
                        : listen_join(&s->bound, err);
        if (fd < 0)
            return XP_IO;
        loop_open(s, l);
        s->nloops++;
        XP_TRY(loop_listen(l, fd, err));
    }
    s->port = s->bound.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&s->bound)->sin6_port)
                                             : ntohs(((struct sockaddr_in *)&s->bound)->sin_port);
    return XP_OK;
}

static void server_free(struct http_server *s)
{
    SSL_CTX_free(s->tls);
    h2o_config_dispose(&s->global);
    for (size_t i = 0; s->config.hosts[i]; i++)
        free((char *)s->config.hosts[i]);
    free((void *)s->config.hosts);
    free((char *)s->config.host);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static struct http_server *server_new(const struct http_config *config)
{
    struct http_server *s = h2o_mem_alloc(sizeof *s);
    pthread_condattr_t attr;

    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &attr);
    pthread_condattr_destroy(&attr);
    config_copy(s, config);
    h2o_configure(s);
    return s;
}

enum xp_status http_server_start(const struct http_config *config, struct http_server **out,
                                 struct xp_error *err)
{
    struct http_server *s;

    if (!config->tls_cert != !config->tls_key)
        return xp_fail(err, XP_IO, 0, "TLS needs both a certificate and its key");
    ignore_sigpipe();
    s = server_new(config);
    if (config->tls_cert && !(s->tls = tls_open(config->tls_cert, config->tls_key, err)))
        goto fail;
    if (open_listeners(s, err) != XP_OK)
        goto fail;
    learn_own_name(s);
    for (int i = 0; i < s->nloops; i++)
        if (loop_start(&s->loops[i], err) != XP_OK)
            goto fail;
    *out = s;
    return XP_OK;

fail:
    for (int i = 0; i < s->nloops; i++)
        if (!s->loops[i].started)
            loop_discard(&s->loops[i]);
    s->nloops = 0;
    for (int i = 0; i < HTTP_LOOPS_MAX; i++)
        s->nloops += s->loops[i].started;
    http_server_drain(s, 0);
    return XP_IO;
}

int http_server_port(const struct http_server *s)
{
    return s->port;
}

/* --- end --- */

/* False: some loop still waits for an answer that was never given. */
static bool wait_for_loops(struct http_server *s, uint64_t ms)
{
    struct timespec until;
    int rc = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&s->lock);
    while (s->running && rc == 0)
        rc = pthread_cond_timedwait(&s->changed, &s->lock, &until);
    bool ended = s->running == 0;
    pthread_mutex_unlock(&s->lock);
    return ended;
}

void http_server_drain(struct http_server *s, int grace_ms)
{
    uint64_t grace = grace_ms > 0 ? (uint64_t)grace_ms : 0;

    if (!s)
        return;
    for (int i = 0; i < s->nloops; i++) {
        s->loops[i].drain_grace_ms = grace;
        xp_loop_post(s->loops[i].run, drain_begin, &s->loops[i]);
    }
    if (!wait_for_loops(s, grace + UNANSWERED_MS)) {
        /* Whoever holds an exchange may still answer it: the loops must live. */
        xp_log(XP_LOG_WARN, "http", "a request was never answered; its loop is left behind");
        return;
    }
    for (int i = 0; i < s->nloops; i++) {
        pthread_join(s->loops[i].thread, NULL);
        xp_loop_free(s->loops[i].run);
    }
    server_free(s);
}

void http_server_stats(const struct http_server *s, struct http_stats *out)
{
    *out = (struct http_stats){0};
    for (int i = 0; i < s->nloops; i++) {
        const struct http_counters *c = &s->loops[i].count;
        out->connections += atomic_load_explicit(&c->connections, memory_order_relaxed);
        out->requests += atomic_load_explicit(&c->requests, memory_order_relaxed);
        out->aborted += atomic_load_explicit(&c->aborted, memory_order_relaxed);
        out->condemned += atomic_load_explicit(&c->condemned, memory_order_relaxed);
        out->slow_closed += atomic_load_explicit(&c->slow_closed, memory_order_relaxed);
        out->open_connections += atomic_load_explicit(&c->open_connections, memory_order_relaxed);
    }
}
