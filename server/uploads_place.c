#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/uploads_int.h"

#define FOLDER "xprofd-uploads-"
#define PART "part"    /* what a file is called until it is whole */
#define LEFT_OVER_S 60 /* a younger folder that nobody holds may be about to be held */

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
        if (!strncmp(e->d_name, UPLOAD_RUN_PREFIX, sizeof UPLOAD_RUN_PREFIX - 1))
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

/* --- the place --- */

void upload_place_init(struct upload_place *p)
{
    *p = (struct upload_place){.folder = -1};
    look_for_left_overs();
}

static enum xp_status open_folder(struct upload_place *p, struct xp_error *err)
{
    p->folder = open(p->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (p->folder < 0 || flock(p->folder, LOCK_EX | LOCK_NB) != 0)
        return xp_fail(err, XP_IO, 0, "the place for uploads cannot be held: %s", strerror(errno));
    return xp_store_open_dir(p->path, &p->store, err);
}

static void close_folder(struct upload_place *p)
{
    rmdir(p->path);
    if (p->folder >= 0)
        close(p->folder);
    p->folder = -1;
}

enum xp_status upload_place_have(struct upload_place *p, struct xp_error *err)
{
    if (p->store)
        return XP_OK;
    snprintf(p->path, sizeof p->path, "%.4000s/" FOLDER "XXXXXX", temporary());
    if (!mkdtemp(p->path))
        return xp_fail(err, XP_IO, 0, "there is no place for uploads: %s", strerror(errno));
    enum xp_status status = open_folder(p, err);
    if (status != XP_OK)
        close_folder(p);
    return status;
}

void upload_place_fini(struct upload_place *p)
{
    xp_store_free(p->store);
    p->store = NULL;
    if (p->folder >= 0)
        close_folder(p);
}

/* --- one upload --- */

enum xp_status upload_place_add(const struct upload_place *p, const char *run, struct xp_error *err)
{
    if (mkdirat(p->folder, run, 0700) == 0)
        return XP_OK;
    return xp_fail(err, XP_IO, 0, "no place for the upload: %s", strerror(errno));
}

enum xp_status upload_place_write(const struct upload_place *p, const char *run, uint64_t at,
                                  struct xp_span piece, struct xp_error *err)
{
    char name[UPLOAD_RUN_N + 16];
    size_t done = 0;
    snprintf(name, sizeof name, "%s/" PART, run);
    int fd = openat(p->folder, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
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

enum xp_status upload_place_finish(const struct upload_place *p, const char *run, const char *host,
                                   bool gz, const struct run **out, struct xp_error *err)
{
    char from[UPLOAD_RUN_N + 16], to[UPLOAD_RUN_N + UPLOAD_FILE_MAX + 32];
    char prefix[UPLOAD_RUN_N + 2];
    snprintf(from, sizeof from, "%s/" PART, run);
    snprintf(to, sizeof to, "%s/%s.xplane.pb%s", run, host, gz ? ".gz" : "");
    snprintf(prefix, sizeof prefix, "%s/", run);
    if (renameat(p->folder, from, p->folder, to) != 0)
        return xp_fail(err, XP_IO, 0, "the upload cannot be kept: %s", strerror(errno));
    const struct run *r = run_read(p->store, prefix, run);
    if (r->n_hosts == 1) {
        *out = r;
        return XP_OK;
    }
    run_unref(r);
    return xp_fail(err, XP_IO, 0, "the uploaded file cannot be read again");
}

void upload_place_remove(const struct upload_place *p, const char *run)
{
    remove_folder(p->folder, run);
}
