#include "server/access.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/hex.h"
#include "lib/base/json_out.h"
#include "lib/base/log.h"
#include "lib/net/client.h"
#include "lib/run/ticker.h"
#include "server/links.h"

#define LINE_MAX_BYTES ((size_t)16 << 10)
#define TEXT_MAX ((size_t)2048) /* of a path or query in a line */
#define FLUSH_MS 200
#define SEND_MS 2000 /* spans wait so long for more */
#define SPAN_NAME_MAX 128

struct span {
    struct http_trace trace;
    char name[SPAN_NAME_MAX], who[96];
    int status;
    int64_t began_wall_us;
    uint64_t took_ns, bytes;
};

struct access {
    int fd; /* -1: no log */
    char *url;
    const char *role, *version;
    struct net_client *net;
    struct xp_ticker *flushes;
    pthread_mutex_t lock;
    bool stopping, write_failed;
    int since_send_ms;
    struct xp_buf lines;       /* waiting */
    struct span *spans, *sent; /* waiting, and those that go out: ACCESS_SPANS_MAX each */
    size_t n_spans;
    _Atomic uint64_t lines_dropped, spans_sent, spans_dropped;
};

static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OTHER"};

/* --- a line --- */

/* Where the secret part of a path begins, or its end. */
static size_t public_part(struct xp_span path)
{
    static const char mark[] = "/" LINKS_PATH;
    const uint8_t *at = path.n ? memmem(path.p, path.n, mark, sizeof mark - 1) : NULL;
    return at ? (size_t)(at - path.p) + sizeof mark - 1 : path.n;
}

static bool holds(struct xp_span s, const char *what)
{
    return s.n && memmem(s.p, s.n, what, strlen(what));
}

static struct xp_span cut_to(struct xp_span s, size_t max)
{
    return s.n > max ? xp_span_of(s.p, max) : s;
}

static void add_time(struct xp_json *j, int64_t wall_us)
{
    time_t seconds = wall_us / 1000000;
    struct tm tm;
    char day[32], text[48];
    gmtime_r(&seconds, &tm);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text, sizeof text, "%s.%03dZ", day, (int)(wall_us % 1000000 / 1000));
    xp_json_key(j, "time");
    xp_json_str(j, text);
}

static void add_text(struct xp_json *j, const char *key, const char *value)
{
    if (!value[0])
        return;
    xp_json_key(j, key);
    xp_json_str(j, value);
}

static void write_line(struct xp_buf *b, const struct http_done *d)
{
    const struct http_request *r = d->request;
    char trace[33], ms[32];
    struct xp_json j;

    xp_hex(d->trace->trace, sizeof d->trace->trace, trace);
    snprintf(ms, sizeof ms, "%" PRIu64 ".%03" PRIu64, d->took_ns / 1000000,
             d->took_ns / 1000 % 1000);
    xp_json_init(&j, b);
    xp_json_obj(&j);
    add_time(&j, d->began_wall_us);
    add_text(&j, "id", d->trace->id);
    add_text(&j, "trace", trace);
    add_text(&j, "method", methods[r->method]);
    xp_json_key(&j, "path");
    xp_json_span(&j, cut_to(xp_span_of(r->path.p, public_part(r->path)), TEXT_MAX));
    if (r->query.n && (holds(r->path, "api/v1/") || holds(r->path, "/data"))) {
        xp_json_key(&j, "query");
        xp_json_span(&j, cut_to(r->query, TEXT_MAX));
    }
    xp_json_key(&j, "status");
    xp_json_i64(&j, d->status);
    xp_json_key(&j, "bytes");
    xp_json_u64(&j, d->bytes);
    xp_json_key(&j, "ms");
    xp_json_raw(&j, xp_span_str(ms));
    add_text(&j, "who", d->who);
    add_text(&j, "route", d->route);
    xp_json_key(&j, "aborted");
    xp_json_bool(&j, d->aborted);
    add_text(&j, "http", r->version >= 0x200 ? "2" : r->version == 0x100 ? "1.0" : "1.1");
    xp_json_obj_end(&j);
    xp_buf_byte(b, '\n');
}

static void keep_line(struct access *a, const struct http_done *d)
{
    struct xp_buf line;
    xp_buf_init(&line, LINE_MAX_BYTES);
    write_line(&line, d);
    pthread_mutex_lock(&a->lock);
    bool room = !line.failed && a->lines.n + line.n <= ACCESS_WAIT_MAX;
    if (room)
        xp_buf_span(&a->lines, xp_buf_all(&line));
    pthread_mutex_unlock(&a->lock);
    if (!room)
        atomic_fetch_add(&a->lines_dropped, 1);
    xp_buf_fini(&line);
}

static void keep_span(struct access *a, const struct http_done *d)
{
    pthread_mutex_lock(&a->lock);
    bool room = a->n_spans < ACCESS_SPANS_MAX;
    if (room) {
        struct span *s = &a->spans[a->n_spans++];
        *s = (struct span){.trace = *d->trace,
                           .status = d->status,
                           .began_wall_us = d->began_wall_us,
                           .took_ns = d->took_ns,
                           .bytes = d->bytes};
        snprintf(s->name, sizeof s->name, "%s %s", methods[d->request->method],
                 d->route[0] ? d->route : "page");
        snprintf(s->who, sizeof s->who, "%s", d->who);
    }
    pthread_mutex_unlock(&a->lock);
    if (!room)
        atomic_fetch_add(&a->spans_dropped, 1);
}

void access_done(void *access, const struct http_done *d)
{
    struct access *a = access;
    if (a->fd >= 0)
        keep_line(a, d);
    if (a->url && d->trace->sampled)
        keep_span(a, d);
}

/* --- spans as OTLP's JSON --- */

static void attribute(struct xp_json *j, const char *key, const char *text)
{
    xp_json_obj(j);
    xp_json_key(j, "key");
    xp_json_str(j, key);
    xp_json_key(j, "value");
    xp_json_obj(j);
    xp_json_key(j, "stringValue");
    xp_json_str(j, text);
    xp_json_obj_end(j);
    xp_json_obj_end(j);
}

/* 64-bit integers are strings in protobuf's JSON. */
static void int_attribute(struct xp_json *j, const char *key, uint64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, v);
    xp_json_obj(j);
    xp_json_key(j, "key");
    xp_json_str(j, key);
    xp_json_key(j, "value");
    xp_json_obj(j);
    xp_json_key(j, "intValue");
    xp_json_str(j, text);
    xp_json_obj_end(j);
    xp_json_obj_end(j);
}

static void id_of(struct xp_json *j, const char *key, const uint8_t *p, size_t n)
{
    char text[33];
    xp_hex(p, n, text);
    xp_json_key(j, key);
    xp_json_str(j, text);
}

static void nanos(struct xp_json *j, const char *key, uint64_t ns)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, ns);
    xp_json_key(j, key);
    xp_json_str(j, text);
}

static void write_span(struct xp_json *j, const struct span *s)
{
    uint64_t began = (uint64_t)s->began_wall_us * 1000;

    xp_json_obj(j);
    id_of(j, "traceId", s->trace.trace, sizeof s->trace.trace);
    id_of(j, "spanId", s->trace.span, sizeof s->trace.span);
    if (s->trace.has_parent)
        id_of(j, "parentSpanId", s->trace.parent, sizeof s->trace.parent);
    xp_json_key(j, "name");
    xp_json_str(j, s->name);
    xp_json_key(j, "kind");
    xp_json_i64(j, 2); /* SERVER */
    nanos(j, "startTimeUnixNano", began);
    nanos(j, "endTimeUnixNano", began + s->took_ns);
    xp_json_key(j, "attributes");
    xp_json_arr(j);
    int_attribute(j, "http.response.status_code", (uint64_t)s->status);
    int_attribute(j, "http.response.body.size", s->bytes);
    attribute(j, "xprofd.request_id", s->trace.id);
    if (s->who[0])
        attribute(j, "enduser.id", s->who);
    xp_json_arr_end(j);
    xp_json_key(j, "status");
    xp_json_obj(j);
    if (s->status >= 500 || s->status == 0) {
        xp_json_key(j, "code");
        xp_json_i64(j, 2); /* ERROR */
    }
    xp_json_obj_end(j);
    xp_json_obj_end(j);
}

static void write_spans(struct xp_buf *b, const struct access *a, const struct span *v, size_t n)
{
    struct xp_json j;

    xp_json_init(&j, b);
    xp_json_obj(&j);
    xp_json_key(&j, "resourceSpans");
    xp_json_arr(&j);
    xp_json_obj(&j);
    xp_json_key(&j, "resource");
    xp_json_obj(&j);
    xp_json_key(&j, "attributes");
    xp_json_arr(&j);
    attribute(&j, "service.name", "xprofd");
    attribute(&j, "service.version", a->version);
    attribute(&j, "xprofd.role", a->role);
    xp_json_arr_end(&j);
    xp_json_obj_end(&j);
    xp_json_key(&j, "scopeSpans");
    xp_json_arr(&j);
    xp_json_obj(&j);
    xp_json_key(&j, "spans");
    xp_json_arr(&j);
    for (size_t i = 0; i < n; i++)
        write_span(&j, &v[i]);
    xp_json_arr_end(&j);
    xp_json_obj_end(&j);
    xp_json_arr_end(&j);
    xp_json_obj_end(&j);
    xp_json_arr_end(&j);
    xp_json_obj_end(&j);
}

/* --- writing and sending --- */

static void put_lines(struct access *a, struct xp_span text)
{
    while (text.n) {
        ssize_t n = write(a->fd, text.p, text.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            if (!a->write_failed)
                xp_log(XP_LOG_ERROR, "access", "the log cannot be written: %s", strerror(errno));
            a->write_failed = true;
            return;
        }
        text = xp_span_of(text.p + n, text.n - (size_t)n);
    }
    a->write_failed = false;
}

static void send_spans(struct access *a, const struct span *v, size_t n)
{
    static const char *const headers[] = {"content-type: application/json", NULL};
    struct net_reply reply;
    struct xp_error err = {0};
    struct xp_buf b;

    xp_buf_init(&b, n * 1024 + 4096);
    write_spans(&b, a, v, n);
    struct net_request r = {.method = "POST",
                            .url = a->url,
                            .headers = headers,
                            .body = xp_buf_all(&b),
                            .connect_ms = 2000,
                            .total_ms = 5000};
    bool good = !b.failed && net_fetch(a->net, &r, 65536, &reply, &err) == XP_OK;
    if (!b.failed) {
        good = good && reply.code / 100 == 2;
        if (!good)
            xp_log(XP_LOG_DEBUG, "access", "spans were not taken: %s (%d)", err.text, reply.code);
        xp_buf_fini(&reply.body);
        xp_buf_fini(&reply.headers);
    }
    atomic_fetch_add(good ? &a->spans_sent : &a->spans_dropped, n);
    xp_buf_fini(&b);
}

/* Spans are taken out when some time is over, or half of the room. Lock held. */
static size_t take_spans(struct access *a)
{
    size_t n = a->n_spans;
    a->since_send_ms += FLUSH_MS;
    if (!a->stopping && a->since_send_ms < SEND_MS && n <= ACCESS_SPANS_MAX / 2)
        return 0;
    memcpy(a->sent, a->spans, n * sizeof *a->spans);
    a->n_spans = 0;
    a->since_send_ms = 0;
    return n;
}

static void flush(void *ctx)
{
    struct access *a = ctx;
    pthread_mutex_lock(&a->lock);
    struct xp_buf lines = a->lines;
    xp_buf_init(&a->lines, ACCESS_WAIT_MAX);
    size_t n = a->spans ? take_spans(a) : 0;
    pthread_mutex_unlock(&a->lock);
    put_lines(a, xp_buf_all(&lines));
    xp_buf_fini(&lines);
    if (n)
        send_spans(a, a->sent, n);
}

/* --- life --- */

static enum xp_status open_log(struct access *a, const char *path, struct xp_error *err)
{
    if (!path)
        return XP_OK;
    a->fd = strcmp(path, "-") == 0 ? STDERR_FILENO
                                   : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (a->fd < 0)
        return xp_fail(err, XP_IO, 0, "--access-log: cannot open \"%s\": %s", path,
                       strerror(errno));
    return XP_OK;
}

static enum xp_status open_spans(struct access *a, const char *endpoint, struct xp_error *err)
{
    if (!endpoint)
        return XP_OK;
    if (strncmp(endpoint, "http://", 7) != 0 && strncmp(endpoint, "https://", 8) != 0)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "--otlp-endpoint=%s is no http:// or https:// address", endpoint);
    size_t n = strlen(endpoint);
    XP_ASSERT(asprintf(&a->url, "%.*s/v1/traces", (int)(endpoint[n - 1] == '/' ? n - 1 : n),
                       endpoint) > 0);
    a->spans = calloc(ACCESS_SPANS_MAX, sizeof *a->spans);
    a->sent = calloc(ACCESS_SPANS_MAX, sizeof *a->sent);
    XP_ASSERT(a->spans && a->sent);
    a->net = net_client_open();
    return a->net ? XP_OK : xp_fail(err, XP_INTERNAL, 0, "no client for --otlp-endpoint");
}

static void release(struct access *a)
{
    if (a->fd > STDERR_FILENO)
        close(a->fd);
    net_client_close(a->net);
    xp_buf_fini(&a->lines);
    free(a->spans);
    free(a->sent);
    free(a->url);
    free(a);
}

enum xp_status access_new(const struct access_config *config, struct access **out,
                          struct xp_error *err)
{
    struct access *a = calloc(1, sizeof *a);

    XP_ASSERT(a);
    a->fd = -1;
    a->role = config->role;
    a->version = config->version;
    xp_buf_init(&a->lines, ACCESS_WAIT_MAX);
    enum xp_status status = open_log(a, config->log, err);
    if (status == XP_OK)
        status = open_spans(a, config->endpoint, err);
    if (status != XP_OK) {
        release(a);
        return status;
    }
    pthread_mutex_init(&a->lock, NULL);
    a->flushes = xp_ticker_new(FLUSH_MS, flush, a);
    *out = a;
    return XP_OK;
}

void access_free(struct access *a)
{
    if (!a)
        return;
    xp_ticker_free(a->flushes);
    a->stopping = true;
    flush(a); /* what came since */
    pthread_mutex_destroy(&a->lock);
    release(a);
}

void access_counts(const struct access *a, struct access_counts *out)
{
    *out = (struct access_counts){atomic_load(&a->lines_dropped), atomic_load(&a->spans_sent),
                                  atomic_load(&a->spans_dropped)};
}
