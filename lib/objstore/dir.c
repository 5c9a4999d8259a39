#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/hash.h"
#include "lib/objstore/dir_int.h"

static enum xp_status errno_status(int e)
{
    switch (e) {
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
    case EISDIR:
        return XP_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return XP_DENIED;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return XP_BUSY;
    case ESTALE:
        return XP_STALE;
    default:
        return XP_IO;
    }
}

enum xp_status dir_fail_errno(struct xp_error *err, int e, const char *what, const char *key)
{
    char text[80];
    struct xp_key_text t;
    const char *why = strerror_r(e, text, sizeof text);
    if (!*key) /* the root */
        return xp_fail(err, errno_status(e), 0, "cannot %s itself: %s",
                       strcmp(what, "open") == 0 ? "open the folder" : what, why);
    return xp_fail(err, errno_status(e), 0, "cannot %s \"%s\": %s", what, xp_key_shorten(key, &t),
                   why);
}

/* --- where things lie --- */

/* Where fd really lies, into real; its length, or 0. */
static size_t real_path(int fd, char real[PATH_MAX])
{
    char proc[40];
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(proc, real, PATH_MAX - 1);
    if (n <= 0 || n >= PATH_MAX - 1)
        return 0;
    real[n] = '\0';
    return (size_t)n;
}

enum xp_status dir_root_open(const struct dir_store *s, struct dir_root *root, struct xp_error *err)
{
    root->n = 0;
    root->fd = open(s->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root->fd < 0)
        return dir_fail_errno(err, errno, "open the folder", s->base.name);
    root->n = real_path(root->fd, root->real);
    if (root->n)
        return XP_OK;
    dir_root_close(root);
    return xp_fail(err, XP_IO, 0,
                   "cannot tell where \"%.100s\" lies: its path is too long or /proc is missing",
                   s->base.name);
}

void dir_root_close(struct dir_root *root)
{
    close(root->fd);
    root->fd = -1;
}

static bool root_holds(const struct dir_root *root, const char *real)
{
    if (root->n == 1)
        return true;
    return strncmp(real, root->real, root->n) == 0 &&
           (real[root->n] == '/' || real[root->n] == '\0');
}

enum xp_status dir_open_path(const struct dir_root *root, const char *key, int *fd, struct stat *st,
                             struct xp_error *err)
{
    char real[PATH_MAX] = "";
    struct xp_key_text t;
    *fd = openat(root->fd, *key ? key : ".", O_PATH | O_CLOEXEC);
    if (*fd < 0)
        return dir_fail_errno(err, errno, "open", key);
    if (!real_path(*fd, real) || !root_holds(root, real)) {
        close(*fd);
        *fd = -1;
        return xp_fail(err, XP_DENIED, 0, "\"%s\" is a link that leads outside of the root",
                       xp_key_shorten(key, &t));
    }
    if (fstat(*fd, st) == 0)
        return XP_OK;
    enum xp_status status = dir_fail_errno(err, errno, "stat", key);
    close(*fd);
    *fd = -1;
    return status;
}

uint64_t dir_generation(const struct stat *st)
{
    uint64_t what[] = {(uint64_t)st->st_ino, (uint64_t)st->st_size, (uint64_t)st->st_mtim.tv_sec,
                       (uint64_t)st->st_mtim.tv_nsec};
    uint64_t h = xp_fnv(XP_FNV_INIT, xp_span_of(what, sizeof what));
    return h ? h : 1; /* 0 means "any" and "none" */
}

int64_t dir_mtime_ms(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

static const char *kind_text(mode_t mode)
{
    if (S_ISDIR(mode))
        return "a folder";
    if (S_ISFIFO(mode))
        return "a named pipe";
    if (S_ISSOCK(mode))
        return "a socket";
    return "a device";
}

/* O_PATH descriptor of a regular file. Pipes and devices are not even opened. */
static enum xp_status open_regular(const struct dir_store *s, const char *key, int *fd,
                                   struct stat *st, struct xp_error *err)
{
    struct dir_root root;
    struct xp_key_text t;
    *fd = -1;
    *st = (struct stat){0};
    if (s->only) {
        if (strcmp(key, s->only) != 0)
            return xp_fail(err, XP_NOT_FOUND, 0, "there is no \"%s\" here, only \"%.100s\"",
                           xp_key_shorten(key, &t), s->only);
    }
    XP_TRY(dir_root_open(s, &root, err));
    enum xp_status status = XP_OK;
    if (s->only) { /* named on the command line, wherever it leads */
        *fd = openat(root.fd, key, O_PATH | O_CLOEXEC);
        if (*fd < 0 || fstat(*fd, st) != 0)
            status = dir_fail_errno(err, errno, "open", key);
    } else {
        status = dir_open_path(&root, key, fd, st, err);
    }
    dir_root_close(&root);
    if (status == XP_OK && !S_ISREG(st->st_mode))
        status = xp_fail(err, XP_NOT_FOUND, 0, "\"%s\" is %s, not a regular file",
                         xp_key_shorten(key, &t), kind_text(st->st_mode));
    if (status != XP_OK && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    return status;
}

/* A descriptor that reads, of the very file that path_fd names. */
static int reopen(int path_fd)
{
    char proc[40];
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", path_fd);
    return open(proc, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* --- readers --- */

struct file_reader {
    struct xp_reader base;
    int fd;
    char *key;
};

static enum xp_status fail_stale(struct xp_error *err, const char *key)
{
    struct xp_key_text t;
    return xp_fail(err, XP_STALE, 0, "\"%s\" changed while it was being read",
                   xp_key_shorten(key, &t));
}

static enum xp_status file_read(struct xp_reader *r, uint64_t off, void *buf, size_t n,
                                struct xp_error *err)
{
    struct file_reader *f = (struct file_reader *)r;
    struct stat st;
    for (size_t at = 0; at < n;) {
        ssize_t got = pread(f->fd, (char *)buf + at, n - at, (off_t)(off + at));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return dir_fail_errno(err, errno, "read", f->key);
        if (got == 0)
            return fail_stale(err, f->key); /* it was longer when it was opened */
        at += (size_t)got;
    }
    /* Asked after the read: then what was read is of the generation that was opened. */
    if (fstat(f->fd, &st) != 0)
        return dir_fail_errno(err, errno, "stat", f->key);
    return dir_generation(&st) == f->base.generation ? XP_OK : fail_stale(err, f->key);
}

static void file_close(struct xp_reader *r)
{
    struct file_reader *f = (struct file_reader *)r;
    if (f->fd >= 0)
        close(f->fd);
    free(f->key);
    free(f);
}

static const struct xp_reader_ops file_ops = {.read = file_read, .close = file_close};

static enum xp_status dir_open(struct xp_store *base, const char *key, uint64_t generation,
                               struct xp_reader **out, struct xp_error *err)
{
    struct dir_store *s = (struct dir_store *)base;
    struct file_reader *f = NULL;
    struct stat st;
    int fd;
    XP_TRY(open_regular(s, key, &fd, &st, err));

    enum xp_status status = XP_OK;
    f = calloc(1, sizeof *f);
    if (!f || !(f->key = strdup(key))) {
        status = xp_fail(err, XP_BUSY, 0, "out of memory");
        goto out;
    }
    f->fd = reopen(fd);
    if (f->fd < 0) {
        status = dir_fail_errno(err, errno, "open", key);
        goto out;
    }
    if (fstat(f->fd, &st) != 0) {
        status = dir_fail_errno(err, errno, "stat", key);
        goto out;
    }
    f->base = (struct xp_reader){&file_ops, (uint64_t)st.st_size, dir_generation(&st)};
    if (generation && generation != f->base.generation) {
        status = fail_stale(err, key);
        goto out;
    }
    *out = &f->base;
    f = NULL;
out:
    close(fd);
    if (f)
        file_close(&f->base);
    return status;
}

static enum xp_status dir_stat(struct xp_store *base, const char *key, struct xp_object *out,
                               struct xp_error *err)
{
    struct stat st;
    int fd;
    XP_TRY(open_regular((struct dir_store *)base, key, &fd, &st, err));
    close(fd);
    *out = (struct xp_object){.key = strdup(key),
                              .size = (uint64_t)st.st_size,
                              .generation = dir_generation(&st),
                              .mtime_ms = dir_mtime_ms(&st)};
    return out->key ? XP_OK : xp_fail(err, XP_BUSY, 0, "out of memory");
}

/* --- paths people write --- */

/* True when path, as it is written, lies below dir: a prefix of whole parts and no "..". */
static bool written_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    if (strncmp(path, dir, n) != 0 || (n > 1 && path[n] != '/' && path[n] != '\0'))
        return false;
    for (const char *p = path; (p = strstr(p, "..")); p += 2)
        if ((p == path || p[-1] == '/') && (p[2] == '/' || p[2] == '\0'))
            return false;
    return true;
}

static enum xp_status fail_outside(struct xp_error *err, const char *path)
{
    struct xp_key_text t;
    return xp_fail(err, XP_DENIED, 0, "\"%s\" is outside of the configured locations",
                   xp_key_shorten(path, &t));
}

/* The key prefix of a folder whose real path is below the root's. */
static char *prefix_of(const struct dir_root *root, const char *real)
{
    const char *rest = real + (root->n == 1 ? 0 : root->n);
    while (*rest == '/')
        rest++;
    return *rest ? xp_store_join(rest, "/") : strdup("");
}

static enum xp_status dir_locate(struct xp_store *base, const char *path, char **prefix,
                                 struct xp_error *err)
{
    struct dir_store *s = (struct dir_store *)base;
    char real[PATH_MAX] = "";
    struct xp_key_text t;
    struct dir_root root;
    int fd = -1;
    enum xp_status status = XP_OK;

    if (s->only)
        return fail_outside(err, path);
    XP_TRY(dir_root_open(s, &root, err));
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && (written_below(path, s->path) || written_below(path, root.real)))
        status =
            xp_fail(err, XP_NOT_FOUND, 0, "there is no folder \"%s\"", xp_key_shorten(path, &t));
    else if (fd < 0 || !real_path(fd, real) || !root_holds(&root, real))
        status = fail_outside(err, path);
    else if (!(*prefix = prefix_of(&root, real)))
        status = xp_fail(err, XP_BUSY, 0, "out of memory");
    if (fd >= 0)
        close(fd);
    dir_root_close(&root);
    return status;
}

/* --- the store --- */

static void dir_free(struct xp_store *base)
{
    struct dir_store *s = (struct dir_store *)base;
    dir_folder_unref(s->last);
    pthread_mutex_destroy(&s->put_lock);
    pthread_mutex_destroy(&s->last_lock);
    free(s->path);
    free(s->only);
    free(s);
}

static const struct xp_store_ops dir_ops = {
    .free = dir_free,
    .locate = dir_locate,
    .list = dir_list,
    .stat = dir_stat,
    .open = dir_open,
    .put_if = dir_put_if,
};

bool dir_is(const struct xp_store *s)
{
    return s->ops == &dir_ops && !s->is_file;
}

/* path made absolute, so that a later chdir changes nothing; links stay as they are. */
static char *absolute(const char *path)
{
    if (path[0] == '/')
        return strdup(path);
    char *cwd = get_current_dir_name();
    if (!cwd)
        return NULL;
    char *dir = xp_store_join(cwd, "/");
    char *all = dir ? xp_store_join(dir, path) : NULL;
    free(dir);
    free(cwd);
    return all;
}

/* The last part of path; of where it lies when that is "." or "..". */
static char *last_part(const char *path)
{
    char real[PATH_MAX];
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] == '/')
        n--;
    size_t from = n;
    while (from > 0 && path[from - 1] != '/')
        from--;
    bool dots = (n - from == 1 || n - from == 2) && strncmp(path + from, "..", n - from) == 0;
    if (dots && realpath(path, real)) {
        const char *slash = strrchr(real, '/');
        return strdup(slash && slash[1] ? slash + 1 : "/");
    }
    return n > from ? strndup(path + from, n - from) : strdup("/");
}

static struct dir_store *store_new(const char *path)
{
    struct dir_store *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->base.ops = &dir_ops;
    pthread_mutex_init(&s->put_lock, NULL);
    pthread_mutex_init(&s->last_lock, NULL);
    s->base.name = strdup(path);
    s->path = absolute(path);
    s->base.label = s->path ? last_part(s->path) : NULL;
    if (s->base.name && s->base.label)
        return s;
    xp_store_free(&s->base);
    return NULL;
}

static enum xp_status check_root_path(const char *path, struct xp_error *err)
{
    if (!path || !*path)
        return xp_fail(err, XP_BAD_REQUEST, 0, "no folder was named");
    if (strlen(path) >= PATH_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0, "the folder's path is too long");
    return XP_OK;
}

static enum xp_status open_dir(const char *path, bool writable, struct xp_store **out,
                               struct xp_error *err)
{
    struct dir_root root;
    *out = NULL;
    XP_TRY(check_root_path(path, err));
    struct dir_store *s = store_new(path);
    if (!s)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    s->writable = writable;
    enum xp_status status = dir_root_open(s, &root, err);
    if (status != XP_OK) {
        xp_store_free(&s->base);
        return status;
    }
    dir_root_close(&root);
    *out = &s->base;
    return XP_OK;
}

enum xp_status xp_store_open_dir(const char *path, struct xp_store **out, struct xp_error *err)
{
    return open_dir(path, false, out, err);
}

enum xp_status xp_store_open_dir_rw(const char *path, struct xp_store **out, struct xp_error *err)
{
    return open_dir(path, true, out, err);
}

enum xp_status xp_store_open_file(const char *path, struct xp_store **out, struct xp_error *err)
{
    struct stat st;
    int fd;
    *out = NULL;
    XP_TRY(check_root_path(path, err));
    if (path[strlen(path) - 1] == '/')
        return xp_fail(err, XP_BAD_REQUEST, 0, "\"%.120s\" names a folder, not a file", path);
    struct dir_store *s = store_new(path);
    if (!s)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    s->base.is_file = true;
    char *slash = strrchr(s->path, '/');
    s->only = strdup(slash + 1);
    slash[slash == s->path] = '\0'; /* keeps the slash of "/" */
    if (!s->only) {
        xp_store_free(&s->base);
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    }
    enum xp_status status = open_regular(s, s->only, &fd, &st, err);
    if (status != XP_OK) {
        xp_store_free(&s->base);
        return status;
    }
    close(fd);
    *out = &s->base;
    return XP_OK;
}

static enum xp_status fail_no_place(const char *path, int e, struct xp_error *err)
{
    static const char places[] = "a directory, one file, gs://BUCKET/PREFIX or s3://BUCKET/PREFIX";
    if (strstr(path, "://"))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "\"%.100s\" is a kind of place that is not known: %s "
                       "is read",
                       path, places);
    dir_fail_errno(err, e, "open", path);
    if (err && e == ENOENT) {
        size_t n = strlen(err->text);
        snprintf(err->text + n, sizeof err->text - n, "; what can be read is %s", places);
    }
    return errno_status(e);
}

enum xp_status xp_store_open_path(const char *path, struct xp_store **out, struct xp_error *err)
{
    struct stat st;
    *out = NULL;
    XP_TRY(check_root_path(path, err));
    if (xp_store_is_bucket(path))
        return xp_store_open_bucket(path, NULL, out, err);
    if (stat(path, &st) != 0)
        return fail_no_place(path, errno, err);
    return S_ISDIR(st.st_mode) ? xp_store_open_dir(path, out, err)
                               : xp_store_open_file(path, out, err);
}
