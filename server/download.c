#include "server/download.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "server/gate.h"

#define PIECE_SENT 65536

struct download {
    struct download *next;     /* under the lock, as is asked */
    bool asked;                /* whether it is slow; look_whether_slow is to come */
    bool over;                 /* of the loop: all but that is done */
    _Atomic uint64_t waits_ns; /* for its client since then; 0: it does not */
    const struct who *who;
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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct download *under_way; /* from before its exchange has been asked anything, until the
                                    * exchange is done with */

/* --- who may --- */

static bool is_same_user(const struct who *a, const struct who *b)
{
    return a->kind == WHO_USER && b->kind == WHO_USER && strcmp(a->subject, b->subject) == 0;
}

/* Under the lock. */
static enum xp_status check_room(const struct who *who, struct xp_error *err)
{
    int all = 0, own = 0;
    for (const struct download *d = under_way; d; d = d->next) {
        all++;
        own += is_same_user(who, d->who);
    }
    if (own >= DOWNLOADS_EACH)
        return xp_fail(err, XP_BUSY, 0,
                       "you are downloading %d files already; try again when one has come", own);
    if (all >= DOWNLOADS_MAX)
        return xp_fail(err, XP_BUSY, 0, "%d files are being downloaded; try again in a moment",
                       all);
    return XP_OK;
}

static bool is_slow(struct download *d)
{
    uint64_t since = atomic_load(&d->waits_ns), now = xp_now_ns();
    return since && now > since && now - since > DOWNLOAD_LEAST_NS;
}

static void look_whether_slow(void *ctx);

/* Under the lock, under which exchanges of those that are listed are there. */
static void ask_the_slow(void)
{
    for (struct download *d = under_way; d; d = d->next) {
        if (d->asked || !is_slow(d))
            continue;
        d->asked = true;
        http_on_loop(d->ex, look_whether_slow, d);
    }
}

static enum xp_status take_room(struct download *d, struct xp_error *err)
{
    pthread_mutex_lock(&lock);
    enum xp_status status = check_room(d->who, err);
    if (status == XP_OK) {
        d->next = under_way;
        under_way = d;
    } else {
        ask_the_slow();
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* Before the exchange is done with. True: look_whether_slow is still to come. */
static bool give_room_back(struct download *d)
{
    struct download **at = &under_way;
    pthread_mutex_lock(&lock);
    while (*at != d)
        at = &(*at)->next;
    *at = d->next;
    bool asked = d->asked;
    pthread_mutex_unlock(&lock);
    return asked;
}

/* --- sending --- */

static void download_free(struct download *d)
{
    if (d->reader)
        xp_reader_close(d->reader);
    run_unref(d->run);
    who_unref(d->who);
    http_answer_fini(&d->head);
    free(d);
}

static void end(struct download *d, bool whole)
{
    bool asked = give_room_back(d);
    if (whole)
        http_stream_end(d->ex);
    else
        http_stream_break(d->ex);
    if (asked)
        d->over = true;
    else
        download_free(d);
}

/* On the loop. */
static void look_whether_slow(void *ctx)
{
    struct download *d = ctx;
    if (d->over) {
        download_free(d);
        return;
    }
    pthread_mutex_lock(&lock);
    d->asked = false;
    pthread_mutex_unlock(&lock);
    if (is_slow(d))
        end(d, false);
}

static void pump(void *ctx);

/* On the loop, from a worker. */
static void on_piece(void *ctx)
{
    struct download *d = ctx;
    d->reading = false;
    atomic_store(&d->waits_ns, xp_now_ns());
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
    atomic_store(&d->waits_ns, 0);
    if (xp_workers_post(d->workers, XP_WORK_LOAD, read_piece, d) == XP_OK)
        return;
    d->reading = false;
    end(d, false);
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
        atomic_store(&d->waits_ns, xp_now_ns());
    }
    if (status == XP_OK && d->at < d->size) {
        read_next(d);
        return;
    }
    end(d, status == XP_OK);
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
                              const struct who *who, const struct run *run,
                              const struct run_host *host, struct xp_error *err)
{
    struct download *d = calloc(1, sizeof *d);
    XP_ASSERT(d);
    d->who = who_ref(who);
    d->ex = ex;
    d->workers = workers;
    enum xp_status status = take_room(d, err);
    if (status == XP_OK) {
        status = xp_store_open_sized(run->store, host->key, host->generation, host->size,
                                     &d->reader, err);
        if (status != XP_OK)
            give_room_back(d); /* nobody has asked: it waits for no client */
    }
    if (status != XP_OK) {
        download_free(d);
        return status;
    }
    d->run = run;
    d->size = xp_reader_size(d->reader);
    make_head(d, host->key);
    http_on_loop(ex, begin, d);
    return XP_OK;
}
