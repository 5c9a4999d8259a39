/* Writing a file of a directory store, if it is what the caller last saw.
 *
 * The body goes to a temporary file of the same folder, to the disk, and only then to its name,
 * so that a reader sees the old content or the new, and a crash leaves one of the two. Compare
 * and rename are kept together by a mutex within the process and a flock on the folder between
 * processes (where the file system has flock on folders; NFS has not).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "lib/objstore/dir_int.h"

/* Opens the folder of key, making what is missing. Each part is checked before a folder is made
 * in it, so that a link cannot have one made elsewhere. */
enum xp_status dir_open_parent(const struct dir_root *root, char *key, int *fd,
                               struct xp_error *err)
{
    struct stat st;
    int at = -1;
    XP_TRY(dir_open_path(root, "", &at, &st, err));
    for (char *slash = strchr(key, '/'), *from = key; slash; slash = strchr(from, '/')) {
        int next = -1;
        *slash = '\0';
        if (mkdirat(at, from, 0777) != 0 && errno != EEXIST) {
            enum xp_status status = dir_fail_errno(err, errno, "make the folder", key);
            close(at);
            return status;
        }
        enum xp_status status = dir_open_path(root, key, &next, &st, err);
        close(at);
        if (status != XP_OK)
            return status;
        at = next;
        *slash = '/';
        from = slash + 1;
    }
    *fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int e = errno;
    close(at);
    return *fd >= 0 ? XP_OK : dir_fail_errno(err, e, "open the folder of", key);
}

static enum xp_status write_all(int fd, struct xp_span body, const char *key, struct xp_error *err)
{
    for (size_t at = 0; at < body.n;) {
        ssize_t n = write(fd, body.p + at, body.n - at);
        if (n < 0 && errno != EINTR)
            return dir_fail_errno(err, errno, "write", key);
        at += n > 0 ? (size_t)n : 0;
    }
    return fsync(fd) == 0 ? XP_OK : dir_fail_errno(err, errno, "write", key);
}

static enum xp_status write_temp(int parent, const char *temp, struct xp_span body, const char *key,
                                 uint64_t *generation, struct xp_error *err)
{
    struct stat st;
    int fd = openat(parent, temp, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0)
        return dir_fail_errno(err, errno, "write", key);
    enum xp_status status = write_all(fd, body, key, err);
    if (status == XP_OK && fstat(fd, &st) != 0)
        status = dir_fail_errno(err, errno, "stat", key);
    if (close(fd) != 0 && status == XP_OK)
        status = dir_fail_errno(err, errno, "write", key);
    if (status == XP_OK)
        *generation = dir_generation(&st);
    return status;
}

static enum xp_status check_current(int parent, const char *name, const char *key,
                                    uint64_t if_generation, struct xp_error *err)
{
    struct stat st;
    struct xp_key_text t;
    uint64_t now = 0;
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!S_ISREG(st.st_mode))
            return xp_fail(err, XP_DENIED, 0, "\"%s\" is no regular file and is not written to",
                           xp_key_shorten(key, &t));
        now = dir_generation(&st);
    } else if (errno != ENOENT) {
        return dir_fail_errno(err, errno, "stat", key);
    }
    if (now == if_generation)
        return XP_OK;
    return xp_fail(err, XP_STALE, 0, "\"%s\" %s", xp_key_shorten(key, &t),
                   !if_generation ? "exists already"
                   : now          ? "was changed by somebody else"
                                  : "was removed by somebody else");
}

/* Gives temp its name. A new object is named so that an existing one is never replaced, even by
 * a writer who does not take our locks. */
int dir_put_name(int parent, const char *temp, const char *name, bool is_new)
{
    if (!is_new)
        return renameat(parent, temp, parent, name);
    if (renameat2(parent, temp, parent, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    return linkat(parent, temp, parent, name, 0); /* temp is removed by the caller */
}

void dir_temp_name(char temp[DIR_TEMP_MAX])
{
    static _Atomic unsigned counter;
    snprintf(temp, DIR_TEMP_MAX, DIR_TEMP_PREFIX "%ld-%u", (long)getpid(),
             atomic_fetch_add(&counter, 1));
}

static enum xp_status put_locked(int parent, const char *name, const char *key, struct xp_span body,
                                 uint64_t if_generation, uint64_t *generation, struct xp_error *err)
{
    char temp[DIR_TEMP_MAX];
    struct xp_key_text t;
    XP_TRY(check_current(parent, name, key, if_generation, err));
    dir_temp_name(temp);
    enum xp_status status = write_temp(parent, temp, body, key, generation, err);
    if (status == XP_OK && dir_put_name(parent, temp, name, if_generation == 0) != 0)
        status = errno == EEXIST
                     ? xp_fail(err, XP_STALE, 0, "\"%s\" exists already", xp_key_shorten(key, &t))
                     : dir_fail_errno(err, errno, "write", key);
    unlinkat(parent, temp, 0);
    if (status == XP_OK && fsync(parent) != 0)
        status = dir_fail_errno(err, errno, "write", key);
    return status;
}

enum xp_status dir_put_if(struct xp_store *base, const char *key, struct xp_span body,
                          uint64_t if_generation, uint64_t *generation, struct xp_error *err)
{
    struct dir_store *s = (struct dir_store *)base;
    struct dir_root root;
    int parent = -1;
    if (!s->writable)
        return xp_fail(err, XP_DENIED, 0, "\"%.120s\" is read-only", s->base.name);
    char *copy = strdup(key);
    if (!copy)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    enum xp_status status = dir_root_open(s, &root, err);
    if (status == XP_OK) {
        status = dir_open_parent(&root, copy, &parent, err);
        dir_root_close(&root);
    }
    if (status == XP_OK) {
        const char *slash = strrchr(key, '/');
        pthread_mutex_lock(&s->put_lock);
        flock(parent, LOCK_EX);
        status =
            put_locked(parent, slash ? slash + 1 : key, key, body, if_generation, generation, err);
        pthread_mutex_unlock(&s->put_lock);
        close(parent); /* and the flock with it */
    }
    free(copy);
    return status;
}
