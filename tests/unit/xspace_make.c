#include "tests/unit/xspace_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "lib/base/status.h"

struct xp_buf make_message(void)
{
    struct xp_buf b;
    xp_buf_init(&b, (size_t)1 << 30);
    return b;
}

void make_put(struct xp_buf *parent, uint32_t field, struct xp_buf *child)
{
    xp_pb_put_bytes(parent, field, xp_buf_all(child));
    XP_ASSERT(!child->failed && !parent->failed);
    xp_buf_fini(child);
}

void make_text(struct xp_buf *b, uint32_t field, const char *text)
{
    xp_pb_put_bytes(b, field, xp_span_str(text));
}

struct xp_buf make_event(int64_t id, int64_t offset_ps, int64_t duration_ps)
{
    struct xp_buf b = make_message();
    xp_pb_put_u64(&b, 1, (uint64_t)id);
    xp_pb_put_u64(&b, 2, (uint64_t)offset_ps);
    xp_pb_put_u64(&b, 3, (uint64_t)duration_ps);
    return b;
}

void make_add_event(struct xp_buf *line, int64_t id, int64_t offset_ps, int64_t duration_ps)
{
    struct xp_buf b = make_event(id, offset_ps, duration_ps);
    make_put(line, 4, &b);
}

struct xp_buf make_line(int64_t id, const char *name, int64_t timestamp_ns)
{
    struct xp_buf b = make_message();
    xp_pb_put_u64(&b, 1, (uint64_t)id);
    make_text(&b, 2, name);
    xp_pb_put_u64(&b, 3, (uint64_t)timestamp_ns);
    return b;
}

void make_add_meta(struct xp_buf *plane, uint32_t field, int64_t id, const char *name)
{
    struct xp_buf value = make_message(), entry = make_message();
    xp_pb_put_u64(&value, 1, (uint64_t)id);
    make_text(&value, 2, name);
    xp_pb_put_u64(&entry, 1, (uint64_t)id);
    make_put(&entry, 2, &value);
    make_put(plane, field, &entry);
}

struct xp_buf make_stat_i64(int64_t id, int64_t v)
{
    struct xp_buf b = make_message();
    xp_pb_put_u64(&b, 1, (uint64_t)id);
    xp_pb_put_u64(&b, 4, (uint64_t)v);
    return b;
}

struct xp_buf make_plane(int64_t id, const char *name)
{
    struct xp_buf b = make_message();
    xp_pb_put_u64(&b, 1, (uint64_t)id);
    make_text(&b, 2, name);
    return b;
}

struct xp_span make_load(const char *path)
{
    char full[4096];
    const char *shared = getenv("SHARED_DIR");
    snprintf(full, sizeof full, "%s/data/%s", shared ? shared : "../shared", path);
    gzFile f = gzopen(full, "rb");
    if (!f)
        return (struct xp_span){0};
    struct xp_buf b = make_message();
    for (;;) {
        uint8_t *to = xp_buf_room(&b, 1 << 16);
        int n = gzread(f, to, 1 << 16);
        if (n <= 0)
            break;
        b.n += (size_t)n;
    }
    gzclose(f);
    size_t n;
    uint8_t *p = xp_buf_take(&b, &n);
    return xp_span_of(p, n);
}

char *make_file(struct xp_span bytes)
{
    const char *dir = getenv("TMPDIR");
    char *path = NULL;
    if (asprintf(&path, "%s/xspace-XXXXXX", dir ? dir : "/tmp") < 0)
        return NULL;
    int fd = mkstemp(path);
    XP_ASSERT(fd >= 0);
    while (bytes.n) {
        ssize_t n = write(fd, bytes.p, bytes.n);
        XP_ASSERT(n > 0);
        bytes.p += n;
        bytes.n -= (size_t)n;
    }
    close(fd);
    return path;
}

uint64_t make_rng(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}
