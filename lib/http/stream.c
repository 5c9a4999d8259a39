/* lib/http/stream.c - an answer that comes over time, with a bounded queue.
 *
 * Of two kinds: events, which may end whenever, and a body of promised length (`whole`).
 * Two buffers: h2o reads `sending` piece by piece, the handler fills `waiting`; they change
 * places when the first is used up.
 */
#include "lib/http/http_int.h"

static void stream_push(struct http_exchange *ex)
{
    if (!ex->req || ex->in_flight || ex->phase != HTTP_STREAMING)
        return;
    if (ex->at == ex->sending.n) {
        struct xp_buf used = ex->sending;
        used.n = ex->at = 0;
        ex->sending = ex->waiting;
        ex->waiting = used;
    }
    size_t n = ex->sending.n - ex->at < HTTP_PIECE ? ex->sending.n - ex->at : HTTP_PIECE;
    bool last = ex->stream_ended && ex->at + n == ex->sending.n && !ex->waiting.n;
    if (!n && !last)
        return;
    h2o_iovec_t piece = h2o_iovec_init(n ? ex->sending.p + ex->at : NULL, n);
    ex->at += n;
    ex->left -= ex->left == SIZE_MAX ? 0 : n;
    if (last)
        ex->phase = HTTP_SENT;
    exchange_flight(ex, true);
    h2o_send(ex->req, &piece, n ? 1 : 0,
             !last                                              ? H2O_SEND_STATE_IN_PROGRESS
             : ex->broken || (ex->left && ex->left != SIZE_MAX) ? H2O_SEND_STATE_ERROR
                                                                : H2O_SEND_STATE_FINAL);
}

/* Half of the room is free again: a whole piece fits. */
static void tell_room(struct http_exchange *ex)
{
    if (!ex->refused || ex->waiting.n + ex->sending.n - ex->at > HTTP_STREAM_WAIT_MAX / 2)
        return;
    ex->refused = false;
    ex->on_room(ex->room_ctx);
}

void stream_proceed(struct http_exchange *ex)
{
    bool tell = ex->on_room; /* else the stream has ended, and its last piece may take ex with it */
    stream_push(ex);
    if (tell)
        tell_room(ex);
}

static void begin(struct http_exchange *ex, struct http_answer *head, size_t length)
{
    XP_ASSERT(!ex->answered);
    ex->answered = true;
    ex->answer = *head;
    *head = (struct http_answer){0};
    if (!ex->req)
        return;
    send_head(ex, length);
    h2o_start_response(ex->req, &ex->gen);
    if (ex->rq.method == HTTP_HEAD) {
        ex->phase = HTTP_SENT;
        exchange_cancel(ex);
        exchange_flight(ex, true);
        h2o_send(ex->req, NULL, 0, H2O_SEND_STATE_FINAL);
        return;
    }
    ex->phase = HTTP_STREAMING;
    ex->left = length;
    /* h2o's chunked filter sends no head before the first byte: an empty comment is one. */
    if (ex->answer.content_type && strcmp(ex->answer.content_type, "text/event-stream") == 0)
        xp_buf_str(&ex->waiting, ":\n\n");
    stream_push(ex);
}

void http_stream_begin(struct http_exchange *ex, struct http_answer *head)
{
    begin(ex, head, SIZE_MAX);
}

void http_stream_begin_whole(struct http_exchange *ex, struct http_answer *head, size_t length,
                             void (*on_room)(void *ctx), void *ctx)
{
    ex->whole = true;
    ex->on_room = on_room;
    ex->room_ctx = ctx;
    begin(ex, head, length);
}

enum xp_status http_stream_send(struct http_exchange *ex, struct xp_span bytes)
{
    if (!ex->req || ex->phase != HTTP_STREAMING || ex->stream_ended || http_cancelled(ex))
        return XP_CANCELLED;
    size_t waiting = ex->waiting.n + ex->sending.n - ex->at;
    if (bytes.n > HTTP_STREAM_WAIT_MAX - waiting) {
        ex->refused = ex->on_room != NULL;
        return XP_BUSY;
    }
    xp_buf_span(&ex->waiting, bytes);
    if (ex->waiting.failed)
        return XP_BUSY;
    stream_push(ex);
    return XP_OK;
}

void stream_cut(struct http_exchange *ex)
{
    if (ex->phase != HTTP_STREAMING || ex->stream_ended || ex->whole)
        return;
    exchange_cancel(ex);
    ex->stream_ended = true;
    stream_push(ex);
}

void http_stream_end(struct http_exchange *ex)
{
    ex->stream_ended = true;
    ex->on_room = NULL; /* whoever it would call may be gone */
    ex->refused = false;
    stream_push(ex);
    exchange_disown(ex);
}

void http_stream_break(struct http_exchange *ex)
{
    ex->broken = true;
    http_stream_end(ex);
}
