#include "lib/objstore/riegeli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/objstore/objstore_int.h"

#define PEN_BYTES (1u << 20)
#define LOOK_EVERY (UINT64_C(64) << 20) /* at the disk's room */

struct spool {
    struct xp_reader base; /* first */
    int fd;
    struct xp_reader *file;
};

/* While it is written. */
struct filling {
    struct spool *spool;
    const struct xp_records_calls *calls;
    uint8_t *pen;
    size_t pen_n;
    uint64_t written, kept; /* bytes in the file; up to the end of the last good chunk */
    uint64_t looked;
};

/* --- the file --- */

static enum xp_status fail_io(struct xp_error *err, const char *what)
{
    bool full = errno == ENOSPC || errno == EDQUOT;
    return xp_fail(err, full ? XP_BUSY : XP_IO, 0, "records cannot be %s below $TMPDIR: %s", what,
                   strerror(errno));
}

static int open_nameless(void)
{
    const char *t = getenv("TMPDIR");
    const char *dir = t && t[0] == '/' ? t : "/tmp";
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    char path[4096]; /* a file system without such files */
    if (snprintf(path, sizeof path, "%s/xprofd-records-XXXXXX", dir) >= (int)sizeof path)
        return -1;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

static enum xp_status write_at(int fd, uint64_t at, struct xp_span s, struct xp_error *err)
{
    while (s.n) {
        ssize_t n = pwrite(fd, s.p, s.n, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail_io(err, "unpacked");
        s = xp_span_of(s.p + n, s.n - (size_t)n);
        at += (uint64_t)n;
    }
    return XP_OK;
}

static enum xp_status look_at_room(struct filling *f, struct xp_error *err)
{
    struct statvfs v;
    if (f->written < f->looked)
        return XP_OK;
    f->looked = f->written + LOOK_EVERY;
    if (fstatvfs(f->spool->fd, &v) == 0 && v.f_blocks && v.f_bavail < v.f_blocks / 20)
        return xp_fail(err, XP_BUSY, 0,
                       "the disk of $TMPDIR is almost full, no records are unpacked there");
    return XP_OK;
}

static enum xp_status lift_pen(struct filling *f, struct xp_error *err)
{
    XP_TRY(look_at_room(f, err));
    XP_TRY(write_at(f->spool->fd, f->written, xp_span_of(f->pen, f->pen_n), err));
    f->written += f->pen_n;
    f->pen_n = 0;
    return f->calls->progress(f->calls->ctx, f->written, err);
}

static enum xp_status on_bytes(void *ctx, struct xp_span s, struct xp_error *err)
{
    struct filling *f = ctx;
    while (s.n) {
        size_t n = PEN_BYTES - f->pen_n < s.n ? PEN_BYTES - f->pen_n : s.n;
        memcpy(f->pen + f->pen_n, s.p, n);
        f->pen_n += n;
        s = xp_span_of(s.p + n, s.n - n);
        if (f->pen_n == PEN_BYTES)
            XP_TRY(lift_pen(f, err));
    }
    return XP_OK;
}

static enum xp_status on_end(void *ctx, bool keep, struct xp_error *err)
{
    struct filling *f = ctx;
    XP_TRY(lift_pen(f, err));
    if (keep)
        f->kept = f->written;
    else
        f->written = f->kept;
    return XP_OK;
}

static enum xp_status on_set(void *ctx, uint64_t at, struct xp_span s, struct xp_error *err)
{
    struct filling *f = ctx;
    XP_TRY(lift_pen(f, err));
    return write_at(f->spool->fd, at, s, err);
}

/* --- reading --- */

static enum xp_status spool_read(struct xp_reader *r, uint64_t off, void *buf, size_t n,
                                 struct xp_error *err)
{
    struct spool *s = (struct spool *)r;
    uint8_t *to = buf;
    while (n) {
        ssize_t got = pread(s->fd, to, n, (off_t)off);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return fail_io(err, "read");
        to += got;
        off += (uint64_t)got;
        n -= (size_t)got;
    }
    return XP_OK;
}

/* --- what it becomes --- */

static enum xp_status join(struct filling *f, struct xp_error *err)
{
    const struct xp_records_out out = {f, on_bytes, on_set};
    size_t n = (size_t)f->written;
    void *map = mmap(NULL, n, PROT_READ, MAP_SHARED, f->spool->fd, 0);
    if (map == MAP_FAILED)
        return xp_fail(err, XP_BUSY, 0, "records cannot be joined: %s", strerror(errno));
    enum xp_status status = f->calls->join(f->calls->ctx, xp_span_of(map, n), &out, err);
    munmap(map, n);
    return status == XP_OK ? lift_pen(f, err) : status;
}

static enum xp_status hand_on(struct filling *f, struct xp_error *err)
{
    for (uint64_t at = 0, n; at < f->written; at += n) {
        n = f->written - at < PEN_BYTES ? f->written - at : PEN_BYTES;
        XP_TRY(spool_read(&f->spool->base, at, f->pen, n, err));
        XP_TRY(f->calls->bytes(f->calls->ctx, xp_span_of(f->pen, n), err));
    }
    return XP_OK;
}

static enum xp_status fill(struct filling *f, struct xp_reader *file, uint64_t max_size,
                           struct xp_error *damage, struct xp_error *err)
{
    const struct xp_riegeli_sink sink = {f, on_bytes, on_end};
    XP_TRY(xp_riegeli_read(file, max_size, &sink, damage, err));
    if (f->written == 0) {
        if (damage->status == XP_OK)
            return xp_fail(err, XP_CORRUPT, 0, "the file of records holds none");
        if (err)
            *err = *damage;
        return damage->status;
    }
    if (ftruncate(f->spool->fd, (off_t)f->written) != 0) /* what was not kept */
        return fail_io(err, "unpacked");
    XP_TRY(join(f, err));
    f->spool->base.size = f->written;
    return hand_on(f, err);
}

static void spool_free(struct spool *s)
{
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}

static void spool_close(struct xp_reader *r)
{
    struct spool *s = (struct spool *)r;
    xp_reader_close(s->file);
    spool_free(s);
}

enum xp_status xp_reader_open_records(struct xp_reader *file, uint64_t max_size,
                                      const struct xp_records_calls *calls, struct xp_reader **out,
                                      struct xp_error *damage, struct xp_error *err)
{
    static const struct xp_reader_ops ops = {.read = spool_read, .close = spool_close};
    struct spool *s = calloc(1, sizeof *s);
    struct filling f = {.spool = s, .calls = calls, .pen = malloc(PEN_BYTES)};
    enum xp_status status;
    *out = NULL;
    *damage = (struct xp_error){0};
    if (s)
        s->fd = open_nameless();
    if (!s || !f.pen)
        status = xp_fail(err, XP_BUSY, 0, "out of memory");
    else if (s->fd < 0)
        status = fail_io(err, "unpacked");
    else
        status = fill(&f, file, max_size, damage, err);
    free(f.pen);
    if (status != XP_OK) {
        if (s)
            spool_free(s);
        return status;
    }
    s->base.ops = &ops;
    s->base.generation = xp_reader_generation(file);
    s->file = file;
    *out = &s->base;
    return XP_OK;
}
