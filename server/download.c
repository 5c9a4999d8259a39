#include "server/download.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_SENT 65536

struct download {
    struct http_exchange *ex;
    struct xp_workers *workers;
    const struct run *run;
    struct xp_reader *reader;
    struct http_answer head;
    uint64_t size, at; /* of the file; what was read */
    enum xp_status status;
    size_t n, sent; /* of the piece */
    bool reading;   /* the piece is a worker's; of the loop */
    uint8_t piece[DOWNLOAD_PIECE];
};

static atomic_int under_way;

static void download_free(struct download *d)
{
    xp_reader_close(d->reader);
    run_unref(d->run);
    http_answer_fini(&d->head);
    free(d);
    atomic_fetch_sub(&under_way, 1);
}

static void pump(void *ctx);

/* On the loop, from a worker. */
static void on_piece(void *ctx)
{
    struct download *d = ctx;
    d->reading = false;
    pump(d);
}

static enum xp_work_next read_piece(void *ctx)
{
    struct download *d = ctx;
    struct xp_error err;
    uint64_t left = d->size - d->at;
    size_t want = left < DOWNLOAD_PIECE ? (size_t)left : DOWNLOAD_PIECE;
    d->status = xp_reader_read(d->reader, d->at, d->piece, want, &d->n, &err);
    if (d->status == XP_OK && d->n < want)
        d->status = XP_STALE; /* it became shorter */
    d->at += d->n;
    d->sent = 0;
    http_on_loop(d->ex, on_piece, d);
    return XP_WORK_DONE;
}

static void read_next(struct download *d)
{
    d->reading = true;
    if (xp_workers_post(d->workers, XP_WORK_LOAD, read_piece, d) == XP_OK)
        return;
    d->reading = false;
    http_stream_break(d->ex);
    download_free(d);
}

/* On the loop: as much as the client takes. Also called when it has room again, or has left. */
static void pump(void *ctx)
{
    struct download *d = ctx;
    enum xp_status status = d->status;
    if (d->reading)
        return;
    while (status == XP_OK && d->sent < d->n) {
        size_t n = d->n - d->sent < PIECE_SENT ? d->n - d->sent : PIECE_SENT;
        status = http_stream_send(d->ex, xp_span_of(d->piece + d->sent, n));
        if (status == XP_BUSY)
            return;
        d->sent += n;
    }
    if (status == XP_OK && d->at < d->size) {
        read_next(d);
        return;
    }
    if (status == XP_OK)
        http_stream_end(d->ex);
    else
        http_stream_break(d->ex);
    download_free(d);
}

static void begin(void *ctx)
{
    struct download *d = ctx;
    d->reading = true; /* until it has begun, room means nothing */
    http_stream_begin_whole(d->ex, &d->head, (size_t)d->size, pump, d);
    d->reading = false;
    pump(d);
}

static bool is_plain(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

void download_disposition(const char *key, struct xp_buf *b)
{
    const char *slash = strrchr(key, '/');
    struct xp_span name = xp_span_str(slash ? slash + 1 : key);
    b->n = 0;
    xp_buf_str(b, "attachment; filename=\"");
    for (size_t i = 0; i < name.n; i++)
        if ((name.p[i] & 0xc0) != 0x80)
            xp_buf_byte(b, is_plain(name.p[i]) ? name.p[i] : '_');
    xp_buf_str(b, "\"; filename*=UTF-8''");
    for (size_t i = 0; i < name.n; i++)
        if (is_plain(name.p[i]))
            xp_buf_byte(b, name.p[i]);
        else
            xp_buf_fmt(b, "%%%02X", name.p[i]);
}

static void make_head(struct download *d, const char *key)
{
    struct xp_buf value;
    http_answer_init(&d->head, 200, "application/octet-stream");
    d->head.cache_control = "no-store";
    xp_buf_init(&value, (size_t)64 << 10);
    download_disposition(key, &value);
    if (!value.failed)
        http_answer_header(&d->head, "content-disposition", xp_buf_all(&value));
    xp_buf_fini(&value);
}

enum xp_status download_start(struct xp_workers *workers, struct http_exchange *ex,
                              const struct run *run, const struct run_host *host,
                              struct xp_error *err)
{
    struct xp_reader *reader;
    if (atomic_fetch_add(&under_way, 1) >= DOWNLOADS_MAX) {
        atomic_fetch_sub(&under_way, 1);
        return xp_fail(err, XP_BUSY, 0, "%d files are being downloaded; try again in a moment",
                       DOWNLOADS_MAX);
    }
    enum xp_status status =
        xp_store_open_sized(run->store, host->key, host->generation, host->size, &reader, err);
    if (status != XP_OK) {
        atomic_fetch_sub(&under_way, 1);
        return status;
    }
    struct download *d = calloc(1, sizeof *d);
    XP_ASSERT(d);
    d->ex = ex;
    d->workers = workers;
    d->run = run;
    d->reader = reader;
    d->size = xp_reader_size(reader);
    make_head(d, host->key);
    http_on_loop(ex, begin, d);
    return XP_OK;
}
