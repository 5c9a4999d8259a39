#include "loadtest/lib/wire_int.h"

#if LOADTEST_H2
#include <nghttp2/nghttp2.h>
#include <stdio.h>

#include "lib/base/status.h"

/* As wide as browsers open them: a server that waits for windows is not what is measured. */
#define STREAM_WINDOW (1 << 20)
#define WIRE_WINDOW (15 << 20)

bool h2_is_there(void)
{
    return true;
}

/* --- what comes --- */

static struct wire_one *find(nghttp2_session *s, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(s, stream);
}

static int on_header(nghttp2_session *s, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *ctx)
{
    struct wire_one *one = find(s, frame->hd.stream_id);
    (void)flags;
    (void)ctx;
    if (!one)
        return 0;
    one->seen = true;
    if (name_n == 7 && memcmp(name, ":status", 7) == 0 && value_n == 3)
        one->status = (value[0] - '0') * 100 + (value[1] - '0') * 10 + (value[2] - '0');
    else if (name_n == 8 && memcmp(name, "location", 8) == 0)
        wire_note_location(one, value, value_n);
    return 0;
}

static int on_data(nghttp2_session *s, uint8_t flags, int32_t stream, const uint8_t *p, size_t n,
                   void *ctx)
{
    struct wire_one *one = find(s, stream);
    (void)flags;
    (void)ctx;
    if (one)
        wire_keep(one, p, n);
    return 0;
}

static int on_close(nghttp2_session *s, int32_t stream, uint32_t code, void *ctx)
{
    struct wire *w = ctx;
    struct wire_one *one = find(s, stream);
    if (!one)
        return 0;
    nghttp2_session_set_stream_user_data(s, stream, NULL);
    if (code == NGHTTP2_REFUSED_STREAM && !one->seen && !one->again) {
        w->leaving = one->again = one->waiting = true;
        w->set->retries++;
    } else {
        wire_end(one, code == NGHTTP2_NO_ERROR);
    }
    return 0;
}

/* --- what goes --- */

static ssize_t read_sent(nghttp2_session *s, int32_t stream, uint8_t *p, size_t max,
                         uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct wire_one *one = source->ptr;
    size_t n = one->sent.n - one->sent_at;
    (void)s;
    (void)stream;
    (void)ctx;
    n = n < max ? n : max;
    memcpy(p, one->sent.p + one->sent_at, n);
    one->sent_at += n;
    if (one->sent_at == one->sent.n)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static nghttp2_nv pair(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NONE};
}

void h2_ask(struct wire *w, struct wire_one *one)
{
    char authority[32];
    snprintf(authority, sizeof authority, "127.0.0.1:%d", w->set->config.port);
    nghttp2_nv head[7] = {pair(":method", one->method),
                          pair(":scheme", w->set->config.tls ? "https" : "http"),
                          pair(":authority", authority), pair(":path", one->path)};
    size_t n = 4;
    nghttp2_data_provider body = {.source.ptr = one, .read_callback = read_sent};
    if (!one->look)
        head[n++] = pair("accept-encoding", "gzip");
    if (one->sent.n)
        head[n++] = pair("content-type", "application/json");
    one->sent_at = 0;
    one->stream = nghttp2_submit_request(w->h2, NULL, head, n, one->sent.n ? &body : NULL, one);
    if (one->stream < 0)
        w->broken = true;
}

void h2_write(struct wire *w)
{
    const uint8_t *p;
    ssize_t n;
    while (w->out.n - w->out_at < WIRE_OUT_MAX / 8 && (n = nghttp2_session_mem_send(w->h2, &p)) > 0)
        xp_buf_add(&w->out, p, (size_t)n);
}

void h2_read(struct wire *w, const uint8_t *p, size_t n)
{
    if (nghttp2_session_mem_recv(w->h2, p, n) < 0 ||
        (!nghttp2_session_want_read(w->h2) && !nghttp2_session_want_write(w->h2)))
        w->broken = true;
    w->leaving = w->leaving || !nghttp2_session_check_request_allowed(w->h2);
}

/* --- life --- */

void h2_open(struct wire *w)
{
    nghttp2_session_callbacks *calls;
    nghttp2_session *s;
    nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                         {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW}};
    XP_ASSERT(nghttp2_session_callbacks_new(&calls) == 0);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_close);
    XP_ASSERT(nghttp2_session_client_new(&s, calls, w) == 0);
    nghttp2_session_callbacks_del(calls);
    XP_ASSERT(nghttp2_submit_settings(s, NGHTTP2_FLAG_NONE, settings, 2) == 0);
    XP_ASSERT(nghttp2_session_set_local_window_size(s, NGHTTP2_FLAG_NONE, 0, WIRE_WINDOW) == 0);
    w->h2 = s;
}

void h2_close(struct wire *w)
{
    nghttp2_session_del(w->h2);
    w->h2 = NULL;
}

#else

bool h2_is_there(void)
{
    return false;
}

void h2_open(struct wire *w)
{
    (void)w;
}

void h2_close(struct wire *w)
{
    (void)w;
}

void h2_ask(struct wire *w, struct wire_one *one)
{
    (void)w;
    (void)one;
}

void h2_read(struct wire *w, const uint8_t *p, size_t n)
{
    (void)w;
    (void)p;
    (void)n;
}

void h2_write(struct wire *w)
{
    (void)w;
}
#endif
