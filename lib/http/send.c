/* lib/http/send.c - an answer goes out.
 *
 *   304?  ->  compress on a worker, or open the inflater  ->  head  ->  pieces
 *
 * h2o wants one h2o_send in flight and the bytes valid until it asks for more (proceed), or,
 * behind the last piece, until the request's pool is cleared: the guard holds the exchange, and
 * with it the body, until then. A HEAD must never be given a body, on either protocol.
 */
#include <stdlib.h>

#include "lib/http/http_int.h"

/* --- what the client gets --- */

static bool type_compresses(const char *type)
{
    static const char *const dense[] = {"image/",          "video/",          "audio/",
                                        "font/",           "application/zip", "application/gzip",
                                        "application/zstd"};
    if (!type || strncmp(type, "image/svg", 9) == 0)
        return type != NULL;
    for (size_t i = 0; i < sizeof dense / sizeof dense[0]; i++)
        if (strncmp(type, dense[i], strlen(dense[i])) == 0)
            return false;
    return true;
}

static bool may_compress(const struct http_answer *a)
{
    return !a->incompressible && type_compresses(a->content_type);
}

static bool worth_compressing(const struct http_answer *a)
{
    return !a->encoded && may_compress(a) && a->body_n > HTTP_COMPRESS_MIN;
}

static bool is_not_modified(const struct http_exchange *ex)
{
    const struct http_answer *a = &ex->answer;
    bool safe = ex->rq.method == HTTP_GET || ex->rq.method == HTTP_HEAD;
    return a->status == 200 && safe && a->etag[0] && request_etag_matches(ex->req, a->etag);
}

/* --- compression, on a worker --- */

struct compression {
    struct http_exchange *ex;
    struct xp_buf out;
};

static void on_compressed(void *ctx)
{
    struct compression *job = ctx;
    struct http_answer *a = &job->ex->answer;

    if (!job->out.failed && job->out.n) {
        http_answer_body(a, &job->out);
        a->encoded = true;
        job->ex->recoded = true;
    }
    a->incompressible = true;
    xp_buf_fini(&job->out);
    struct http_exchange *ex = job->ex;
    free(job);
    send_answer(ex);
}

static enum xp_work_next compress(void *ctx)
{
    struct compression *job = ctx;
    const struct http_answer *a = &job->ex->answer;

    if (!http_cancelled(job->ex)) {
        struct xp_gzip *g = xp_gzip_new(&job->out);
        xp_gzip_add(g, xp_span_of(a->body, a->body_n));
        xp_gzip_end(g);
    }
    xp_loop_post(job->ex->loop->run, on_compressed, job);
    return XP_WORK_DONE;
}

/* False: no worker is free, the body goes as it is. */
static bool begin_compression(struct http_exchange *ex)
{
    struct xp_workers *workers = ex->loop->server->config.workers;
    struct compression *job;

    if (!workers)
        return false;
    job = h2o_mem_alloc(sizeof *job);
    job->ex = ex;
    /* What does not shrink fails, and is sent as it is. */
    xp_buf_init(&job->out, ex->answer.body_n);
    if (xp_workers_post(workers, XP_WORK_QUERY, compress, job) == XP_OK)
        return true;
    free(job);
    return false;
}

/* --- inflating, for the few who take no gzip --- */

static bool inflate_piece(struct http_exchange *ex)
{
    return xp_gunzip_read(ex->gunzip, ex->piece, HTTP_PIECE, &ex->piece_n) == XP_OK;
}

static bool begin_inflating(struct http_exchange *ex)
{
    ex->recoded = true;
    if (ex->rq.method == HTTP_HEAD)
        return true;
    ex->gunzip = xp_gunzip_new(xp_span_of(ex->answer.body, ex->answer.body_n));
    ex->piece = h2o_mem_alloc(HTTP_PIECE);
    return inflate_piece(ex);
}

static void answer_is_broken(struct http_exchange *ex)
{
    struct xp_error err;

    http_answer_fini(&ex->answer);
    xp_fail(&err, XP_INTERNAL, 0, "the answer cannot be inflated");
    http_answer_problem(&ex->answer, &err);
    xp_gunzip_free(ex->gunzip);
    ex->gunzip = NULL;
    ex->recoded = false;
}

/* --- the head --- */

static void add_header(h2o_req_t *req, const h2o_token_t *token, const char *value)
{
    h2o_add_header(&req->pool, &req->res.headers, token, NULL, value, strlen(value));
}

/* Which coding lies kept, the client's or another, is chance; a 304 has to name what the 200 named.
 * No ranges are served, the one thing that a strong tag would be good for. */
static void add_etag(struct http_exchange *ex)
{
    const char *tag = ex->answer.etag;

    snprintf(ex->etag, sizeof ex->etag, "%s%s", strncmp(tag, "W/", 2) ? "W/" : "", tag);
    add_header(ex->req, H2O_TOKEN_ETAG, ex->etag);
}

void send_head(struct http_exchange *ex, size_t content_length)
{
    const struct http_answer *a = &ex->answer;
    h2o_req_t *req = ex->req;
    const char *cache = a->cache_control;

    req->res.status = a->status;
    req->res.reason = http_reason(a->status);
    req->res.content_length = content_length;
    /* HTTP/1.0 has no chunks: the end of the connection is the end of the body. */
    if (content_length == SIZE_MAX && req->version == 0x100)
        req->http1_is_persistent = 0;
    if (a->content_type && a->status != 304 && a->status != 204)
        add_header(req, H2O_TOKEN_CONTENT_TYPE, a->content_type);
    if (a->encoded && a->status != 304 && !ex->gunzip)
        add_header(req, H2O_TOKEN_CONTENT_ENCODING, "gzip");
    if (ex->variable)
        add_header(req, H2O_TOKEN_VARY, "Accept-Encoding");
    if (a->etag[0])
        add_etag(ex);
    add_header(req, H2O_TOKEN_CACHE_CONTROL, cache ? cache : a->etag[0] ? "no-cache" : "no-store");
    h2o_add_header_by_str(&req->pool, &req->res.headers, "x-request-id", strlen("x-request-id"), 1,
                          NULL, ex->trace.id, strlen(ex->trace.id));
    for (int i = 0; i < a->nheaders; i++)
        h2o_add_header_by_str(&req->pool, &req->res.headers, a->names[i], strlen(a->names[i]), 1,
                              NULL, a->values[i], strlen(a->values[i]));
}

/* --- the body --- */

static void send_piece(struct http_exchange *ex, const uint8_t *p, size_t n, bool last)
{
    h2o_iovec_t piece = h2o_iovec_init(p, n);

    exchange_flight(ex, true);
    if (last)
        ex->phase = HTTP_SENT;
    h2o_send(ex->req, &piece, n ? 1 : 0, last ? H2O_SEND_STATE_FINAL : H2O_SEND_STATE_IN_PROGRESS);
}

/* h2o and libuv write an answer from where it lies, so that a large piece costs no memory and saves
 * turns of the loop; but TLS encrypts a whole piece before it writes. */
static size_t piece_max(const struct http_exchange *ex)
{
    return ex->rq.tls ? HTTP_PIECE : HTTP_PIECE_AS_IS;
}

static void send_next(struct http_exchange *ex)
{
    const struct http_answer *a = &ex->answer;

    if (ex->gunzip) {
        /* A short piece is the last one. */
        send_piece(ex, ex->piece, ex->piece_n, ex->piece_n < HTTP_PIECE);
        return;
    }
    size_t left = a->body_n - ex->at, n = left < piece_max(ex) ? left : piece_max(ex);
    const uint8_t *p = n ? a->body + ex->at : NULL;
    ex->at += n;
    send_piece(ex, p, n, ex->at == a->body_n);
}

void send_proceed(h2o_generator_t *gen, h2o_req_t *req)
{
    struct http_exchange *ex = (struct http_exchange *)gen;

    exchange_flight(ex, false);
    ex->conn->progress_ms = uv_now(ex->loop->uv);
    if (ex->phase == HTTP_STREAMING) {
        stream_proceed(ex);
    } else if (ex->gunzip && !inflate_piece(ex)) {
        ex->phase = HTTP_SENT;
        h2o_send(req, NULL, 0, H2O_SEND_STATE_ERROR);
    } else {
        send_next(ex);
    }
}

static size_t final_length(const struct http_exchange *ex)
{
    const struct http_answer *a = &ex->answer;

    if (a->status == 304 || a->status == 204)
        return SIZE_MAX;
    if (ex->gunzip)
        return ex->piece_n < HTTP_PIECE ? ex->piece_n : SIZE_MAX;
    /* HEAD of a body that would be recoded: its length is not worth the work. */
    if (ex->rq.method == HTTP_HEAD && ex->recoded)
        return SIZE_MAX;
    return a->body_n;
}

static void send_all(struct http_exchange *ex)
{
    bool bare = ex->rq.method == HTTP_HEAD || ex->answer.status == 304 || ex->answer.status == 204;

    send_head(ex, final_length(ex));
    ex->phase = HTTP_SENDING;
    h2o_start_response(ex->req, &ex->gen);
    if (bare)
        send_piece(ex, NULL, 0, true);
    else
        send_next(ex);
}

void send_answer(struct http_exchange *ex)
{
    struct http_answer *a = &ex->answer;

    /* The client left while the answer was made, or compressed. */
    if (!ex->req) {
        exchange_disown(ex);
        return;
    }
    /* Of any size, as a 304 that was given without the body says what the 200 does. */
    ex->variable = ex->variable || a->encoded || may_compress(a);
    if (is_not_modified(ex)) {
        a->status = 304;
        answer_drop_body(a);
    } else if (ex->rq.accepts_gzip && worth_compressing(a)) {
        if (ex->rq.method == HTTP_HEAD)
            a->encoded = ex->recoded = true;
        else if (begin_compression(ex))
            return;
    } else if (a->encoded && !ex->rq.accepts_gzip && !begin_inflating(ex)) {
        answer_is_broken(ex);
    }
    if (ex->rq.method == HTTP_HEAD && a->encoded && !ex->rq.accepts_gzip)
        a->encoded = false;
    ex->owned = false;
    send_all(ex);
}
