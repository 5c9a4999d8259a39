/* A new file of a directory store, written piece by piece. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/objstore/dir_int.h"

struct xp_writer {
    char *key;
    int parent, fd;
    char temp[DIR_TEMP_MAX]; /* "": the file has no name yet */
};

static const char *last_part(const char *key)
{
    const char *slash = strrchr(key, '/');
    return slash ? slash + 1 : key;
}

static enum xp_status open_folder(struct dir_store *s, const char *key, int *fd,
                                  struct xp_error *err)
{
    struct dir_root root;
    char *copy = strdup(key);
    if (!copy)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    enum xp_status status = dir_root_open(s, &root, err);
    if (status == XP_OK) {
        status = dir_open_parent(&root, copy, fd, err);
        dir_root_close(&root);
    }
    free(copy);
    return status;
}

/* Without a name a file is gone with its process, whatever ends that; not all file systems have
 * such files. */
static enum xp_status open_file(struct xp_writer *w, struct xp_error *err)
{
    w->fd = openat(w->parent, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (w->fd >= 0)
        return XP_OK;
    dir_temp_name(w->temp);
    w->fd = openat(w->parent, w->temp, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (w->fd >= 0)
        return XP_OK;
    w->temp[0] = '\0';
    return dir_fail_errno(err, errno, "write", w->key);
}

enum xp_status xp_writer_open(struct xp_store *base, const char *key, struct xp_writer **out,
                              struct xp_error *err)
{
    struct dir_store *s = (struct dir_store *)base;
    if (!dir_is(base) || !s->writable)
        return xp_fail(err, XP_DENIED, 0, "\"%.120s\" is not written to", base->name);
    if (!xp_store_key_ok(key))
        return xp_fail(err, XP_BAD_REQUEST, 0, "that is no name of a file");
    struct xp_writer *w = calloc(1, sizeof *w);
    XP_ASSERT(w && (w->key = strdup(key)));
    w->parent = w->fd = -1;
    enum xp_status status = open_folder(s, key, &w->parent, err);
    if (status == XP_OK)
        status = open_file(w, err);
    if (status == XP_OK)
        *out = w;
    else
        xp_writer_drop(w);
    return status;
}

enum xp_status xp_writer_add(struct xp_writer *w, struct xp_span bytes, struct xp_error *err)
{
    for (size_t at = 0; at < bytes.n;) {
        ssize_t n = write(w->fd, bytes.p + at, bytes.n - at);
        if (n < 0 && errno != EINTR)
            return dir_fail_errno(err, errno, "write", w->key);
        at += n > 0 ? (size_t)n : 0;
    }
    return XP_OK;
}

static int give_name(const struct xp_writer *w, const char *name)
{
    char proc[40];
    if (w->temp[0])
        return dir_put_name(w->parent, w->temp, name, true);
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", w->fd);
    return linkat(AT_FDCWD, proc, w->parent, name, AT_SYMLINK_FOLLOW);
}

enum xp_status xp_writer_finish(struct xp_writer *w, struct xp_error *err)
{
    struct xp_key_text t;
    enum xp_status status = XP_OK;
    if (fsync(w->fd) != 0)
        status = dir_fail_errno(err, errno, "write", w->key);
    if (status == XP_OK && give_name(w, last_part(w->key)) != 0)
        status = errno == EEXIST ? xp_fail(err, XP_STALE, 0, "\"%s\" exists already",
                                           xp_key_shorten(w->key, &t))
                                 : dir_fail_errno(err, errno, "write", w->key);
    if (status == XP_OK && fsync(w->parent) != 0)
        status = dir_fail_errno(err, errno, "write", w->key);
    xp_writer_drop(w);
    return status;
}

void xp_writer_drop(struct xp_writer *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    if (w->temp[0])
        unlinkat(w->parent, w->temp, 0); /* after rename there is none of that name */
    if (w->parent >= 0)
        close(w->parent);
    free(w->key);
    free(w);
}

void xp_writer_clear(struct xp_store *base, const char *key)
{
    struct dir_store *s = (struct dir_store *)base;
    struct dir_root root;
    struct stat st;
    struct xp_error err;
    int fd = -1;
    char *folder = strndup(key, (size_t)(last_part(key) - key));
    XP_ASSERT(folder);
    if (dir_is(base) && s->writable && folder[0] && dir_root_open(s, &root, &err) == XP_OK) {
        folder[strlen(folder) - 1] = '\0';
        if (dir_open_path(&root, folder, &fd, &st, &err) == XP_OK) { /* below the root, then */
            close(fd);
            unlinkat(root.fd, folder, AT_REMOVEDIR);
        }
        dir_root_close(&root);
    }
    free(folder);
}
