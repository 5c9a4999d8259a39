#include "tests/unit/http_fixture.h"

#include <stdlib.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/gzip.h"
#include "lib/http/http.h"
#include "lib/run/workers.h"
#include "tests/unit/unit.h"

/* h2o keeps freed buffers for reuse in thread-local lists, and has no call to give them back. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:h2o_mem_alloc_recycle\n";
}

/* Long enough for slow clients under a sanitizer on a machine that is busy: who looks at what
 * happens when it is over has a shorter one. */
#define GRACE_MS 60000

static uint8_t *static_bytes;

void fixture_pattern(uint8_t *p, size_t n)
{
    uint32_t x = 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        p[i] = (uint8_t)(x >> 24);
    }
}

void fixture_text(struct xp_buf *b, size_t n)
{
    for (unsigned line = 0; b->n < n; line++)
        xp_buf_fmt(b, "line %u of a text that repeats itself, %u\n", line, line * line);
    if (b->n > n)
        b->n = n;
}

static size_t size_asked(const struct http_request *rq)
{
    struct xp_buf b;
    size_t n = 0;
    xp_buf_init(&b, 32);
    if (http_query_get(rq->query, "n", &b)) {
        xp_buf_byte(&b, 0);
        n = strtoul((char *)b.p, NULL, 10);
    }
    xp_buf_fini(&b);
    return n;
}

static void body_of_text(struct http_answer *a, size_t n, bool gzip)
{
    struct xp_buf text, packed;
    xp_buf_init(&text, n + 4096);
    fixture_text(&text, n);
    if (gzip) {
        xp_buf_init(&packed, n + 4096);
        struct xp_gzip *g = xp_gzip_new(&packed);
        xp_gzip_add(g, xp_buf_all(&text));
        xp_gzip_end(g);
        xp_buf_fini(&text);
        a->encoded = true;
        http_answer_body(a, &packed);
    } else {
        http_answer_body(a, &text);
    }
}

static void body_of_echo(struct http_answer *a, const struct http_request *rq)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "other"};
    struct xp_buf b;
    xp_buf_init(&b, 4 << 20);
    xp_buf_fmt(&b, "%s\n", methods[rq->method]);
    xp_buf_span(&b, rq->path);
    xp_buf_str(&b, "\n");
    xp_buf_span(&b, rq->query);
    xp_buf_str(&b, "\n");
    xp_buf_span(&b, rq->body);
    xp_buf_str(&b, "\n");
    xp_buf_span(&b, rq->host);
    a->incompressible = true;
    http_answer_body(a, &b);
}

static void defer(struct fixture *f, struct http_exchange *ex)
{
    pthread_mutex_lock(&f->lock);
    assert_true(f->ndeferred < FIXTURE_DEFERRED_MAX);
    f->deferred[f->ndeferred++] = ex;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static bool path_is(const struct http_request *rq, const char *path)
{
    return xp_span_eq(rq->path, xp_span_str(path));
}

static void fill_static(struct http_answer *a, const void *p, size_t n)
{
    a->body = (uint8_t *)(uintptr_t)p;
    a->body_n = n;
    a->is_static = true;
}

static bool fill(struct http_answer *a, const struct http_request *rq)
{
    if (path_is(rq, "/hello")) {
        fill_static(a, "hello\n", 6);
        http_answer_header(a, "x-note", XP_SPAN_LIT("a\r\nb"));
    } else if (path_is(rq, "/tag")) {
        fill_static(a, "tagged\n", 7);
        memcpy(a->etag, "\"v1\"", 5);
    } else if (path_is(rq, "/size")) {
        a->body_n = size_asked(rq);
        a->body = malloc(a->body_n + 1);
        a->incompressible = true;
        fixture_pattern(a->body, a->body_n);
    } else if (path_is(rq, "/static")) {
        fill_static(a, static_bytes, size_asked(rq));
        a->incompressible = true;
    } else if (path_is(rq, "/text") || path_is(rq, "/gz")) {
        memcpy(a->etag, "\"t1\"", 5);
        body_of_text(a, size_asked(rq), path_is(rq, "/gz"));
    } else if (path_is(rq, "/broken")) {
        fill_static(a, "this is not gzip", 16);
        a->encoded = true;
    } else if (path_is(rq, "/fail")) {
        struct xp_error err;
        xp_fail(&err, XP_BUSY, 77, "no room for \"it\"");
        xp_error_retry(&err, 6100);
        http_answer_problem(a, &err);
    } else {
        return false;
    }
    return true;
}

static void handle(void *ctx, struct http_exchange *ex)
{
    const struct http_request *rq = http_request(ex);
    struct http_answer a;

    http_answer_init(&a, 200, "text/plain; charset=utf-8");
    if (path_is(rq, "/stream")) {
        a.content_type = "text/event-stream";
        http_stream_begin(ex, &a);
        defer(ctx, ex);
        return;
    }
    if (path_is(rq, "/defer")) {
        defer(ctx, ex);
        return;
    }
    if (!fill(&a, rq))
        body_of_echo(&a, rq);
    http_answer(ex, &a);
}

void fixture_start(struct fixture *f, const struct http_config *config)
{
    struct http_config c = config ? *config : (struct http_config){0};
    struct xp_error err = {0};

    *f = (struct fixture){.workers = xp_workers_new(1, 100)};
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    if (!static_bytes) {
        static_bytes = malloc(FIXTURE_STATIC);
        fixture_pattern(static_bytes, FIXTURE_STATIC);
    }
    c.handler = handle;
    c.ctx = f;
    c.workers = f->workers;
    c.loops = c.loops ? c.loops : 1;
    if (http_server_start(&c, &f->server, &err) != XP_OK)
        fail_msg("%s", err.text);
    f->port = http_server_port(f->server);
}

void fixture_stop(struct fixture *f)
{
    uint64_t start = xp_now_ns();
    http_server_drain(f->server, GRACE_MS);
    assert_true(xp_now_ns() - start < GRACE_MS * UINT64_C(1000000));
    xp_workers_free(f->workers);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
}

struct http_exchange *fixture_deferred(struct fixture *f, int i)
{
    pthread_mutex_lock(&f->lock);
    while (f->ndeferred <= i)
        pthread_cond_wait(&f->changed, &f->lock);
    struct http_exchange *ex = f->deferred[i];
    pthread_mutex_unlock(&f->lock);
    return ex;
}

void fixture_answer(struct http_exchange *ex)
{
    struct http_answer a;
    http_answer_init(&a, 200, "text/plain");
    fill_static(&a, "late\n", 5);
    http_answer_from(ex, &a);
}

struct http_stats fixture_stats(const struct fixture *f)
{
    struct http_stats s;
    http_server_stats(f->server, &s);
    return s;
}
