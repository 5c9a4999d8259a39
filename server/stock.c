#include "server/stock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/gzip.h"
#include "lib/base/hash.h"

#define FILE_MAX ((size_t)64 << 20)

/* What XProf 2.24 serves, and as what. */
static const struct {
    const char *name, *type;
} known[] = {
    {"index.html", "text/html"},
    {"index.js", "application/javascript"},
    {"bundle.js", "application/javascript"},
    {"runtime.js", "application/javascript"},
    {"zone.js", "application/javascript"},
    {"styles.css", "text/css"},
    {"trace_viewer_index.html", "text/html"},
    {"trace_viewer_index.js", "application/javascript"},
    {"trace_viewer_v2.js", "application/javascript"},
    {"trace_viewer_v2.wasm", "application/wasm"},
    {"materialicons.woff2", "application/octet-stream"},
    {"material_symbols_outlined.woff2", "application/octet-stream"},
};

#define KNOWN_N (sizeof known / sizeof *known)

static const char policy[] =
    "default-src 'self'; script-src 'self' 'unsafe-eval' 'unsafe-inline' https://www.gstatic.com; "
    "object-src 'none'; style-src 'self' 'unsafe-inline' https://fonts.googleapis.com "
    "https://www.gstatic.com; font-src 'self' https://fonts.googleapis.com "
    "https://fonts.gstatic.com data:; connect-src 'self' data: www.gstatic.com; "
    "img-src 'self' blob: data:; frame-src 'self' https://ui.perfetto.dev; "
    "script-src-elem 'self' 'unsafe-inline' https://www.gstatic.com";

struct stock {
    struct xp_blob *files[KNOWN_N]; /* gzip; NULL: not there */
    char etags[KNOWN_N][40];
};

static enum xp_status read_all(int fd, size_t n, uint8_t *p, const char *name, struct xp_error *err)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = read(fd, p + at, n - at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return xp_fail(err, XP_IO, 0, "%s could not be read whole", name);
        at += (size_t)got;
    }
    return XP_OK;
}

static enum xp_status compress(struct xp_span raw, const char *name, struct xp_blob **out,
                               struct xp_error *err)
{
    struct xp_buf b;
    size_t n;

    xp_buf_init(&b, FILE_MAX);
    struct xp_gzip *gz = xp_gzip_new(&b);
    xp_gzip_add(gz, raw);
    xp_gzip_end(gz);
    if (b.failed) {
        xp_buf_fini(&b);
        return xp_fail(err, XP_TOO_LARGE, 0, "%s is too large", name);
    }
    uint8_t *p = xp_buf_take(&b, &n);
    *out = xp_blob_new(p, n);
    return XP_OK;
}

/* A file that is not there is no error: later versions of XProf may lack one. */
static enum xp_status load(int dir, const char *name, struct xp_blob **out, char etag[40],
                           struct xp_error *err)
{
    enum xp_status status = XP_OK;
    struct stat st;
    uint8_t *raw = NULL;
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return XP_OK;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)FILE_MAX)
        goto out;
    raw = malloc((size_t)st.st_size + 1);
    XP_ASSERT(raw);
    status = read_all(fd, (size_t)st.st_size, raw, name, err);
    if (status == XP_OK) {
        struct xp_span bytes = xp_span_of(raw, (size_t)st.st_size);
        snprintf(etag, 40, "\"%016llx\"", (unsigned long long)xp_fnv(XP_FNV_INIT, bytes));
        status = compress(bytes, name, out, err);
    }
out:
    free(raw);
    close(fd);
    return status;
}

enum xp_status stock_open(const char *dir, struct stock **out, struct xp_error *err)
{
    enum xp_status status = XP_OK;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return xp_fail(err, XP_NOT_FOUND, 0, "--ui stock=%s is not a directory that can be read",
                       dir);
    struct stock *s = calloc(1, sizeof *s);
    XP_ASSERT(s);
    for (size_t i = 0; i < KNOWN_N && status == XP_OK; i++)
        status = load(fd, known[i].name, &s->files[i], s->etags[i], err);
    close(fd);
    if (status == XP_OK && !s->files[0])
        status = xp_fail(err, XP_NOT_FOUND, 0,
                         "--ui stock=%s holds no index.html: name the folder xprof/static of an "
                         "installed xprof",
                         dir);
    if (status != XP_OK) {
        stock_free(s);
        return status;
    }
    *out = s;
    return XP_OK;
}

void stock_free(struct stock *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < KNOWN_N; i++)
        xp_blob_unref(s->files[i]);
    free(s);
}

static const char *page_or_name(struct xp_span path, bool below_prefix)
{
    bool dot = path.n && memchr(path.p, '.', path.n);
    if (path.n == 0 || xp_span_eq(path, XP_SPAN_LIT("local")) || (below_prefix && !dot))
        return "index.html";
    for (size_t i = 0; i < KNOWN_N; i++)
        if (xp_span_eq(path, xp_span_str(known[i].name)))
            return known[i].name;
    return NULL;
}

bool stock_answer(const struct stock *s, struct http_exchange *ex, struct xp_span path,
                  bool below_prefix)
{
    const char *name = page_or_name(path, below_prefix);
    struct http_answer a;
    size_t i = 0;

    while (name && i < KNOWN_N && strcmp(known[i].name, name) != 0)
        i++;
    if (!name || !s->files[i])
        return false;
    http_answer_init(&a, 200, known[i].type);
    http_answer_blob(&a, xp_blob_ref(s->files[i]));
    a.encoded = true;
    a.cache_control = "no-cache";
    snprintf(a.etag, sizeof a.etag, "%s", s->etags[i]);
    http_answer_header(&a, "content-security-policy", xp_span_str(policy));
    http_answer(ex, &a);
    return true;
}
