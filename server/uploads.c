#include "server/uploads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/auth/secret.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/base/log.h"

#define RUN_PREFIX "upload-"
#define RUN_RANDOM 16
#define FOLDER "xprofd-uploads-"
#define PART "part" /* what a file is called until it is whole */
#define FILE_MAX 256
#define PATH_BYTES 4096
#define LEFT_OVER_S 60 /* a younger folder that nobody holds may be about to be held */
#define PROJECT_BYTES 64
#define BY_BYTES 400
#define MS UINT64_C(1000000)

struct upload {
    char run[UPLOAD_RUN_N + 1], project[PROJECT_BYTES], by[BY_BYTES];
    char host[FILE_MAX];
    uint64_t bytes, received, until_ns;
    bool gz, writing;
    const struct run *whole; /* referenced; NULL: it is not */
};

struct uploads {
    struct uploads_config config;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a write has ended, there is a new one, or the end is near */
    struct upload *v[UPLOADS_MAX];
    size_t n;
    uint64_t bytes; /* of all, as announced */
    char path[PATH_BYTES];
    int folder; /* locked as long as this process lives; -1: none yet */
    struct xp_store *store;
    pthread_t thread;
    bool started, stop;
};

/* --- folders --- */

static const char *temporary(void)
{
    const char *t = getenv("TMPDIR");
    return t && t[0] == '/' ? t : "/tmp";
}

/* The folder's files and itself. Their bytes go at once, though a profile that is in memory may
 * still hold them open: readers then say that the object has changed. */
static void remove_folder(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *e;

    while (d && (e = readdir(d))) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        int file = openat(fd, e->d_name, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        if (file >= 0)
            close(file);
        unlinkat(fd, e->d_name, 0);
    }
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
    unlinkat(parent, name, AT_REMOVEDIR);
}

static void remove_uploads(int folder)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *e;
    while (d && (e = readdir(d)))
        if (!strncmp(e->d_name, RUN_PREFIX, sizeof RUN_PREFIX - 1))
            remove_folder(folder, e->d_name);
    if (d)
        closedir(d);
    else if (copy >= 0)
        close(copy);
}

/* Of a process that was killed: ours by owner, and nobody holds it. */
static void remove_left_over(int parent, const char *name)
{
    struct stat st;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && time(NULL) - st.st_mtime > LEFT_OVER_S &&
        flock(fd, LOCK_EX | LOCK_NB) == 0) {
        remove_uploads(fd);
        unlinkat(parent, name, AT_REMOVEDIR);
    }
    close(fd);
}

static void look_for_left_overs(void)
{
    DIR *d = opendir(temporary());
    const struct dirent *e;
    while (d && (e = readdir(d)))
        if (!strncmp(e->d_name, FOLDER, sizeof FOLDER - 1))
            remove_left_over(dirfd(d), e->d_name);
    if (d)
        closedir(d);
}

/* Locked: the private folder and the store that reads it. */
static enum xp_status have_folder(struct uploads *u, struct xp_error *err)
{
    if (u->store)
        return XP_OK;
    snprintf(u->path, sizeof u->path, "%.4000s/" FOLDER "XXXXXX", temporary());
    if (!mkdtemp(u->path))
        return xp_fail(err, XP_IO, 0, "there is no place for uploads: %s", strerror(errno));
    u->folder = open(u->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (u->folder < 0 || flock(u->folder, LOCK_EX | LOCK_NB) != 0)
        return xp_fail(err, XP_IO, 0, "the place for uploads cannot be held: %s", strerror(errno));
    return xp_store_open_dir(u->path, &u->store, err);
}

/* --- the table; all of it locked --- */

static uint64_t deadline(const struct uploads *u, const struct upload *up)
{
    int64_t ms = up->whole ? u->config.keep_ms : u->config.stall_ms;
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

static void forget(struct uploads *u, size_t i)
{
    struct upload *up = u->v[i];
    remove_folder(u->folder, up->run);
    u->bytes -= up->bytes;
    u->v[i] = u->v[--u->n];
    run_unref(up->whole);
    free(up);
}

static struct upload *find(const struct uploads *u, const char *project, struct xp_span run)
{
    for (size_t i = 0; i < u->n; i++)
        if (xp_span_eq(xp_span_str(u->v[i]->run), run) && !strcmp(u->v[i]->project, project))
            return u->v[i];
    return NULL;
}

static void forget_this(struct uploads *u, const struct upload *up)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->v[i] == up) {
            forget(u, i);
            return;
        }
}

/* Removes what has expired; when to look again. */
static uint64_t sweep(struct uploads *u)
{
    uint64_t now = xp_now_ns(), next = UINT64_MAX;
    for (size_t i = u->n; i-- > 0;) {
        if (u->v[i]->writing)
            continue;
        if (u->v[i]->until_ns <= now)
            forget(u, i);
        else if (u->v[i]->until_ns < next)
            next = u->v[i]->until_ns;
    }
    return next;
}

static void *watch(void *ctx)
{
    struct uploads *u = ctx;
    pthread_mutex_lock(&u->lock);
    while (!u->stop) {
        uint64_t next = sweep(u);
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
    u->folder = -1;
    pthread_mutex_init(&u->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&u->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    look_for_left_overs();
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
        forget(u, 0);
    xp_store_free(u->store);
    if (u->folder >= 0) {
        rmdir(u->path);
        close(u->folder);
    }
    pthread_cond_destroy(&u->changed);
    pthread_mutex_destroy(&u->lock);
    free(u);
}

/* --- one comes --- */

static void draw_name(char run[UPLOAD_RUN_N + 1])
{
    uint8_t bytes[RUN_RANDOM];
    size_t n = sizeof RUN_PREFIX - 1;
    memcpy(run, RUN_PREFIX, n);
    xp_secret_random(bytes, sizeof bytes);
    xp_hex(bytes, sizeof bytes, run + n);
}

static enum xp_status admit(struct uploads *u, uint64_t bytes, struct xp_error *err)
{
    uint64_t all = 0;
    if (bytes > u->config.limit)
        return xp_fail(err, XP_TOO_LARGE, 0,
                       "the file has %llu bytes, and at most %llu may be uploaded here "
                       "(--upload-limit): put it below the log directory instead",
                       (unsigned long long)bytes, (unsigned long long)u->config.limit);
    if (bytes == 0)
        return xp_fail(err, XP_CORRUPT, 0, "the file is empty");
    sweep(u);
    if (u->n == UPLOADS_MAX || __builtin_add_overflow(u->bytes, bytes, &all) ||
        all / UPLOADS_TOTAL > u->config.limit)
        return xp_fail(err, XP_BUSY, 0,
                       "%zu uploaded files with %llu bytes are kept already: remove one, or wait "
                       "until one expires",
                       u->n, (unsigned long long)u->bytes);
    return have_folder(u, err);
}

enum xp_status uploads_begin(struct uploads *u, const char *project, const char *by,
                             struct xp_span file, uint64_t bytes, struct upload_state *state,
                             struct xp_error *err)
{
    struct upload *up;
    struct xp_buf host;

    pthread_mutex_lock(&u->lock);
    enum xp_status status = admit(u, bytes, err);
    if (status != XP_OK)
        goto out;
    up = calloc(1, sizeof *up);
    XP_ASSERT(up);
    draw_name(up->run);
    if (mkdirat(u->folder, up->run, 0700) != 0) {
        status = xp_fail(err, XP_IO, 0, "no place for the upload: %s", strerror(errno));
        free(up);
        goto out;
    }
    snprintf(up->project, sizeof up->project, "%s", project);
    snprintf(up->by, sizeof up->by, "%s", by);
    xp_buf_init(&host, FILE_MAX);
    upload_host_name(file, &host);
    snprintf(up->host, sizeof up->host, "%.*s", (int)host.n, (const char *)host.p);
    xp_buf_fini(&host);
    up->bytes = bytes;
    up->until_ns = deadline(u, up);
    u->v[u->n++] = up;
    u->bytes += bytes;
    tell(up, state);
    if (!u->started)
        u->started = pthread_create(&u->thread, NULL, watch, u) == 0;
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

/* Not locked: nobody else touches an upload that is being written. */
static enum xp_status write_piece(int folder, const char *run, uint64_t at, struct xp_span piece,
                                  struct xp_error *err)
{
    char name[UPLOAD_RUN_N + 16];
    size_t done = 0;
    snprintf(name, sizeof name, "%s/" PART, run);
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    while (fd >= 0 && done < piece.n) {
        ssize_t n = pwrite(fd, piece.p + done, piece.n - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    int why = errno;
    if (fd >= 0)
        close(fd);
    if (done == piece.n)
        return XP_OK;
    return xp_fail(err, XP_IO, 0, "the upload cannot be kept: %s", strerror(why));
}

/* Locked: what was written becomes a run. */
static enum xp_status finish(struct uploads *u, struct upload *up, struct xp_error *err)
{
    char from[UPLOAD_RUN_N + 16], to[UPLOAD_RUN_N + FILE_MAX + 32], prefix[UPLOAD_RUN_N + 2];
    snprintf(from, sizeof from, "%s/" PART, up->run);
    snprintf(to, sizeof to, "%s/%s.xplane.pb%s", up->run, up->host, up->gz ? ".gz" : "");
    snprintf(prefix, sizeof prefix, "%s/", up->run);
    if (renameat(u->folder, from, u->folder, to) != 0)
        return xp_fail(err, XP_IO, 0, "the upload cannot be kept: %s", strerror(errno));
    const struct run *r = run_read(u->store, prefix, up->run);
    if (r->n_hosts != 1) {
        run_unref(r);
        return xp_fail(err, XP_IO, 0, "the uploaded file cannot be read again");
    }
    up->whole = r;
    return XP_OK;
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

enum xp_status uploads_piece(struct uploads *u, const char *project, const char *by,
                             struct xp_span run, uint64_t at, struct xp_span piece,
                             struct upload_state *state, struct xp_error *err)
{
    enum xp_status status;
    bool skip = false;

    pthread_mutex_lock(&u->lock);
    struct upload *up = find_made(u, project, by, run);
    if (!up) {
        status = fail_gone(u, err);
        goto out;
    }
    status = check_piece(up, at, piece, &skip, err);
    if (status == XP_OK && !skip) {
        up->writing = true;
        pthread_mutex_unlock(&u->lock);
        status = write_piece(u->folder, up->run, at, piece, err);
        pthread_mutex_lock(&u->lock);
        up->writing = false;
        if (status == XP_OK) {
            up->received += piece.n;
            status = up->received == up->bytes ? finish(u, up, err) : XP_OK;
        }
        pthread_cond_broadcast(&u->changed);
    }
    if (status == XP_OK) {
        up->until_ns = deadline(u, up);
        tell(up, state);
    } else if (status != XP_BAD_REQUEST) {
        forget_this(u, up);
    }
out:
    pthread_mutex_unlock(&u->lock);
    return status;
}

enum xp_status uploads_drop(struct uploads *u, const char *project, const char *by,
                            struct xp_span run, struct xp_error *err)
{
    enum xp_status status = XP_OK;
    pthread_mutex_lock(&u->lock);
    struct upload *up = find_made(u, project, by, run);
    while (up && up->writing) {
        pthread_cond_wait(&u->changed, &u->lock);
        up = find_made(u, project, by, run);
    }
    if (up)
        forget_this(u, up);
    else
        status = fail_gone(u, err);
    pthread_mutex_unlock(&u->lock);
    return status;
}

/* --- one is opened --- */

bool uploads_is_name(struct xp_span run)
{
    if (run.n != UPLOAD_RUN_N || !xp_span_starts(run, XP_SPAN_LIT(RUN_PREFIX)))
        return false;
    for (size_t i = sizeof RUN_PREFIX - 1; i < run.n; i++)
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
