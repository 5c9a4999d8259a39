#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/auth/secret.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/base/log.h"
#include "server/uploads_int.h"

#define RUN_RANDOM 16
#define PROJECT_BYTES 64
#define BY_BYTES 400
#define MS UINT64_C(1000000)

struct upload {
    char run[UPLOAD_RUN_N + 1], project[PROJECT_BYTES], by[BY_BYTES];
    char host[UPLOAD_FILE_MAX];
    uint64_t bytes, received, until_ns;
    bool gz;
    bool writing;            /* whoever set this may use it without the lock */
    const struct run *whole; /* referenced; NULL: it is not */
    struct upload *next;     /* of those that are gone */
};

struct uploads {
    struct uploads_config config;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a write has ended, one is new or gone, or the end is near */
    struct upload *v[UPLOADS_MAX];
    size_t n;
    uint64_t bytes;      /* of all, as announced */
    struct upload *gone; /* nobody finds them any more; the thread removes their bytes */
    struct upload_place place;
    pthread_t thread;
    bool started, stop;
};

/* --- the table; all of it locked --- */

static uint64_t deadline(const struct uploads *u, const struct upload *up)
{
    int64_t ms = up->whole      ? u->config.keep_ms
                 : up->received ? u->config.stall_ms
                                : u->config.first_ms;
    return xp_now_ns() + (uint64_t)ms * MS;
}

static void tell(const struct upload *up, struct upload_state *s)
{
    uint64_t now = xp_now_ns();
    if (!s)
        return;
    snprintf(s->run, sizeof s->run, "%s", up->run);
    s->bytes = up->bytes;
    s->received = up->received;
    s->expires_ms = xp_wall_ms();
    if (up->until_ns > now)
        s->expires_ms += (int64_t)((up->until_ns - now) / MS);
}

/* Nobody finds it any more; the caller removes it (bury) when the table is not locked. */
static struct upload *take_out(struct uploads *u, size_t i)
{
    struct upload *up = u->v[i];
    u->bytes -= up->bytes;
    u->v[i] = u->v[--u->n];
    up->next = NULL;
    return up;
}

static struct upload *find(const struct uploads *u, const char *project, struct xp_span run)
{
    for (size_t i = 0; i < u->n; i++)
        if (xp_span_eq(xp_span_str(u->v[i]->run), run) && !strcmp(u->v[i]->project, project))
            return u->v[i];
    return NULL;
}

static struct upload *take_this_out(struct uploads *u, const struct upload *up)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->v[i] == up)
            return take_out(u, i);
    return NULL;
}

static void to_gone(struct uploads *u, size_t i)
{
    struct upload *up = take_out(u, i);
    up->next = u->gone;
    u->gone = up;
}

/* Takes out what has expired; when to look again. */
static uint64_t sweep(struct uploads *u)
{
    uint64_t now = xp_now_ns(), next = UINT64_MAX;
    for (size_t i = u->n; i-- > 0;) {
        if (u->v[i]->writing)
            continue;
        if (u->v[i]->until_ns <= now)
            to_gone(u, i);
        else if (u->v[i]->until_ns < next)
            next = u->v[i]->until_ns;
    }
    if (u->gone)
        pthread_cond_broadcast(&u->changed);
    return next;
}

/* --- its thread --- */

/* Not locked: to free the blocks of a large file takes seconds. */
static void bury(const struct uploads *u, struct upload *gone)
{
    while (gone) {
        struct upload *up = gone;
        gone = up->next;
        upload_place_remove(&u->place, up->run);
        run_unref(up->whole);
        free(up);
    }
}

/* Locked, but not meanwhile. */
static void bury_the_gone(struct uploads *u)
{
    struct upload *gone = u->gone;
    u->gone = NULL;
    pthread_mutex_unlock(&u->lock);
    bury(u, gone);
    pthread_mutex_lock(&u->lock);
}

static void *watch(void *ctx)
{
    struct uploads *u = ctx;
    pthread_mutex_lock(&u->lock);
    while (!u->stop) {
        uint64_t next = sweep(u);
        if (u->gone) {
            bury_the_gone(u);
            continue;
        }
        struct timespec at = {(time_t)(next / UINT64_C(1000000000)),
                              (long)(next % UINT64_C(1000000000))};
        if (next == UINT64_MAX)
            pthread_cond_wait(&u->changed, &u->lock);
        else
            pthread_cond_timedwait(&u->changed, &u->lock, &at);
    }
    pthread_mutex_unlock(&u->lock);
    return NULL;
}

/* --- life --- */

struct uploads *uploads_new(const struct uploads_config *config)
{
    struct uploads *u = calloc(1, sizeof *u);
    pthread_condattr_t monotonic;

    XP_ASSERT(u);
    u->config = *config;
    pthread_mutex_init(&u->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&u->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    upload_place_init(&u->place);
    return u;
}

void uploads_free(struct uploads *u)
{
    if (!u)
        return;
    pthread_mutex_lock(&u->lock);
    u->stop = true;
    pthread_cond_broadcast(&u->changed);
    pthread_mutex_unlock(&u->lock);
    if (u->started)
        pthread_join(u->thread, NULL);
    while (u->n)
        to_gone(u, 0);
    bury(u, u->gone);
    upload_place_fini(&u->place);
    pthread_cond_destroy(&u->changed);
    pthread_mutex_destroy(&u->lock);
    free(u);
}

/* --- one comes --- */

static void draw_name(char run[UPLOAD_RUN_N + 1])
{
    uint8_t bytes[RUN_RANDOM];
    size_t n = sizeof UPLOAD_RUN_PREFIX - 1;
    memcpy(run, UPLOAD_RUN_PREFIX, n);
    xp_secret_random(bytes, sizeof bytes);
    xp_hex(bytes, sizeof bytes, run + n);
}

static bool would_exceed(uint64_t have, uint64_t more, uint64_t most)
{
    uint64_t all = 0;
    return __builtin_add_overflow(have, more, &all) || all > most;
}

/* Whether the maker's share has room for it. Without identities all makers are one. */
static enum xp_status check_share(const struct uploads *u, const char *by, uint64_t bytes,
                                  struct xp_error *err)
{
    uint64_t have = 0;
    size_t n = 0;
    for (size_t i = 0; u->config.shares && i < u->n; i++)
        if (!strcmp(u->v[i]->by, by)) {
            have += u->v[i]->bytes;
            n++;
        }
    if (!u->config.shares || (n < UPLOADS_SHARE && !would_exceed(have, bytes, u->config.limit)))
        return XP_OK;
    return xp_fail(
        err, XP_BUSY, 0,
        "you keep %zu uploaded file%s with %llu bytes here already, and may keep %d with "
        "%llu: remove one, or wait until one expires",
        n, n == 1 ? "" : "s", (unsigned long long)have, UPLOADS_SHARE,
        (unsigned long long)u->config.limit);
}

static enum xp_status check_size(const struct uploads *u, uint64_t bytes, struct xp_error *err)
{
    if (bytes > u->config.limit)
        return xp_fail(err, XP_TOO_LARGE, 0,
                       "the file has %llu bytes, and at most %llu may be uploaded here "
                       "(--upload-limit): put it below the log directory instead",
                       (unsigned long long)bytes, (unsigned long long)u->config.limit);
    return bytes ? XP_OK : xp_fail(err, XP_CORRUPT, 0, "the file is empty");
}

static bool have_thread(struct uploads *u)
{
    if (!u->started)
        u->started = pthread_create(&u->thread, NULL, watch, u) == 0;
    return u->started;
}

static enum xp_status admit(struct uploads *u, const char *by, uint64_t bytes, struct xp_error *err)
{
    uint64_t most = 0;
    if (__builtin_mul_overflow(u->config.limit, UPLOADS_TOTAL, &most))
        most = UINT64_MAX;
    XP_TRY(check_size(u, bytes, err));
    sweep(u);
    XP_TRY(check_share(u, by, bytes, err));
    if (u->n == UPLOADS_MAX || would_exceed(u->bytes, bytes, most))
        return xp_fail(err, XP_BUSY, 0,
                       "as many uploaded files as may be are kept here already: remove one, or "
                       "wait until one expires");
    if (!have_thread(u))
        return xp_fail(err, XP_BUSY, 0, "nothing would remove the file in the end: no thread");
    return upload_place_have(&u->place, err);
}

enum xp_status uploads_begin(struct uploads *u, const char *project, const char *by,
                             struct xp_span file, uint64_t bytes, struct upload_state *state,
                             struct xp_error *err)
{
    struct upload *up;
    struct xp_buf host;

    pthread_mutex_lock(&u->lock);
    enum xp_status status = admit(u, by, bytes, err);
    if (status != XP_OK)
        goto out;
    up = calloc(1, sizeof *up);
    XP_ASSERT(up);
    draw_name(up->run);
    status = upload_place_add(&u->place, up->run, err);
    if (status != XP_OK) {
        free(up);
        goto out;
    }
    snprintf(up->project, sizeof up->project, "%s", project);
    snprintf(up->by, sizeof up->by, "%s", by);
    xp_buf_init(&host, UPLOAD_FILE_MAX);
    upload_host_name(file, &host);
    snprintf(up->host, sizeof up->host, "%.*s", (int)host.n, (const char *)host.p);
    xp_buf_fini(&host);
    up->bytes = bytes;
    up->until_ns = deadline(u, up);
    u->v[u->n++] = up;
    u->bytes += bytes;
    tell(up, state);
    pthread_cond_broadcast(&u->changed);
out:
    pthread_mutex_unlock(&u->lock);
    return status;
}

/* --- pieces --- */

static enum xp_status fail_gone(const struct uploads *u, struct xp_error *err)
{
    return xp_fail(err, XP_NOT_FOUND, 0,
                   "there is no such upload (any more): a file is kept for %lld minutes after its "
                   "last use, and until the server ends",
                   (long long)(u->config.keep_ms / 60000));
}

/* Locked. XP_OK with *skip: it is there already. */
static enum xp_status check_piece(struct upload *up, uint64_t at, struct xp_span piece, bool *skip,
                                  struct xp_error *err)
{
    uint64_t end = 0;
    *skip = false;
    if (piece.n == 0 || piece.n > UPLOAD_PIECE_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0, "a piece has 1 to %zu bytes", UPLOAD_PIECE_MAX);
    if (__builtin_add_overflow(at, piece.n, &end) || end > up->bytes)
        return xp_fail(err, XP_BAD_REQUEST, 0, "the piece ends behind the %llu bytes of the file",
                       (unsigned long long)up->bytes);
    if (end <= up->received) {
        *skip = true;
        return XP_OK;
    }
    if (at != up->received || up->writing)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "pieces come one after the other: the next one begins at byte %llu",
                       (unsigned long long)up->received);
    return at ? XP_OK : upload_look(piece, &up->gz, err);
}

static struct upload *find_made(const struct uploads *u, const char *project, const char *by,
                                struct xp_span run)
{
    struct upload *up = find(u, project, run);
    return up && !strcmp(up->by, by) ? up : NULL;
}

/* Not locked: the upload is being written. With its last byte, *whole. */
static enum xp_status write_piece(const struct uploads *u, const struct upload *up, uint64_t at,
                                  struct xp_span piece, const struct run **whole,
                                  struct xp_error *err)
{
    XP_TRY(upload_place_write(&u->place, up->run, at, piece, err));
    if (at + piece.n < up->bytes)
        return XP_OK;
    return upload_place_finish(&u->place, up->run, up->host, up->gz, whole, err);
}

/* Locked, but not while it writes. */
static enum xp_status take_piece(struct uploads *u, struct upload *up, uint64_t at,
                                 struct xp_span piece, struct xp_error *err)
{
    const struct run *whole = NULL;
    up->writing = true;
    pthread_mutex_unlock(&u->lock);
    enum xp_status status = write_piece(u, up, at, piece, &whole, err);
    pthread_mutex_lock(&u->lock);
    up->writing = false;
    if (status == XP_OK)
        up->received += piece.n;
    up->whole = whole;
    pthread_cond_broadcast(&u->changed);
    return status;
}

enum xp_status uploads_piece(struct uploads *u, const char *project, const char *by,
                             struct xp_span run, uint64_t at, struct xp_span piece,
                             struct upload_state *state, struct xp_error *err)
{
    enum xp_status status;
    struct upload *gone = NULL;
    bool skip = false;

    pthread_mutex_lock(&u->lock);
    struct upload *up = find_made(u, project, by, run);
    if (!up) {
        status = fail_gone(u, err);
        goto out;
    }
    status = check_piece(up, at, piece, &skip, err);
    if (status == XP_OK && !skip)
        status = take_piece(u, up, at, piece, err);
    if (status == XP_OK) {
        up->until_ns = deadline(u, up);
        tell(up, state);
    } else if (status != XP_BAD_REQUEST) {
        gone = take_this_out(u, up);
    }
out:
    pthread_mutex_unlock(&u->lock);
    bury(u, gone);
    return status;
}

enum xp_status uploads_drop(struct uploads *u, const char *project, const char *by,
                            struct xp_span run, struct xp_error *err)
{
    enum xp_status status = XP_OK;
    struct upload *gone = NULL;
    pthread_mutex_lock(&u->lock);
    struct upload *up = find_made(u, project, by, run);
    while (up && up->writing) {
        pthread_cond_wait(&u->changed, &u->lock);
        up = find_made(u, project, by, run);
    }
    if (up)
        gone = take_this_out(u, up);
    else
        status = fail_gone(u, err);
    pthread_mutex_unlock(&u->lock);
    bury(u, gone);
    return status;
}

/* --- one is opened --- */

bool uploads_is_name(struct xp_span run)
{
    if (run.n != UPLOAD_RUN_N || !xp_span_starts(run, XP_SPAN_LIT(UPLOAD_RUN_PREFIX)))
        return false;
    for (size_t i = sizeof UPLOAD_RUN_PREFIX - 1; i < run.n; i++)
        if (!(run.p[i] >= '0' && run.p[i] <= '9') && !(run.p[i] >= 'a' && run.p[i] <= 'f'))
            return false;
    return true;
}

enum xp_status uploads_run(struct uploads *u, const char *project, struct xp_span name,
                           const struct run **out, struct upload_state *state, struct xp_error *err)
{
    enum xp_status status = XP_OK;
    pthread_mutex_lock(&u->lock);
    sweep(u);
    struct upload *up = find(u, project, name);
    if (!up) {
        status = fail_gone(u, err);
    } else if (!up->whole) {
        status = xp_fail(err, XP_NOT_FOUND, 0, "the upload is not whole yet: %llu of %llu bytes",
                         (unsigned long long)up->received, (unsigned long long)up->bytes);
    } else {
        up->until_ns = deadline(u, up);
        *out = run_ref(up->whole);
        tell(up, state);
    }
    pthread_mutex_unlock(&u->lock);
    return status;
}
