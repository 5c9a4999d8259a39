/* What a file that somebody brings is called here, and whether it is a profile at all. */
#include "lib/base/buf.h"
#include "lib/base/gzip.h"
#include "lib/base/utf8.h"
#include "lib/objstore/objstore.h"
#include "server/uploads.h"

#define NAME_MAX_BYTES 120

/* --- its name --- */

static bool cut_end(struct xp_span *s, const char *end)
{
    struct xp_span e = xp_span_str(end);
    if (s->n <= e.n || memcmp(s->p + s->n - e.n, e.p, e.n) != 0)
        return false;
    s->n -= e.n;
    return true;
}

static struct xp_span last_part(struct xp_span file)
{
    for (size_t i = file.n; i > 0; i--)
        if (file.p[i - 1] == '/' || file.p[i - 1] == '\\')
            return xp_span_of(file.p + i, file.n - i);
    return file;
}

void upload_host_name(struct xp_span file, struct xp_buf *b)
{
    struct xp_span s = last_part(file);
    cut_end(&s, ".gz");
    cut_end(&s, ".pb");
    cut_end(&s, ".riegeli");
    cut_end(&s, ".xplane");
    b->n = 0;
    while (s.n && *s.p == '.') /* nothing hidden, no ".." */
        s = xp_span_of(s.p + 1, s.n - 1);
    for (const uint8_t *p = s.p, *end = s.p + s.n; p < end;) {
        bool ok;
        size_t n = xp_utf8_step(p, end, &ok);
        if (b->n + n > NAME_MAX_BYTES)
            break;
        if (!ok || *p < 0x20 || *p == 0x7f)
            xp_buf_byte(b, '_');
        else
            xp_buf_add(b, p, n);
        p += n;
    }
    if (b->n == 0)
        xp_buf_str(b, "profile");
}

/* --- its bytes --- */

/* The first byte of an XSpace: a plane, an error, a warning or a host's name. */
static bool begins_xspace(uint8_t c)
{
    return c == 0x0a || c == 0x12 || c == 0x1a || c == 0x22;
}

static enum xp_status no_profile(struct xp_span head, const char *where, struct xp_error *err)
{
    const char *what = "something else";
    if (head.p[0] == '{' || head.p[0] == '[')
        what = "JSON, maybe a trace for another viewer";
    else if (head.p[0] == '<')
        what = "a page or XML";
    else if (head.n > 1 && head.p[0] == 'P' && head.p[1] == 'K')
        what = "a ZIP archive: unpack it, each host's file is one profile";
    return xp_fail(err, XP_CORRUPT, 0,
                   "this is no XSpace (.xplane.pb): %s begins with byte 0x%02x, which is %s", where,
                   head.p[0], what);
}

static enum xp_status look_inside(struct xp_span head, struct xp_error *err)
{
    uint8_t first[2];
    size_t got = 0;
    struct xp_gunzip *g = xp_gunzip_new(head);
    enum xp_status status = xp_gunzip_read(g, first, sizeof first, &got);
    xp_gunzip_free(g);
    if (got == 0)
        return xp_fail(err, XP_CORRUPT, 0, "the gzip file %s",
                       status == XP_OK ? "holds nothing" : "is damaged at its beginning");
    if (!begins_xspace(first[0]))
        return no_profile(xp_span_of(first, got), "what the gzip file holds", err);
    return XP_OK;
}

enum xp_status upload_look(struct xp_span head, bool *packed, struct xp_error *err)
{
    bool gzip = head.n > 1 && head.p[0] == 0x1f && head.p[1] == 0x8b;
    bool records = xp_records_begin(head);
    *packed = gzip || records;
    if (head.n == 0)
        return xp_fail(err, XP_CORRUPT, 0, "the file is empty");
    if (records)
        return XP_OK;
    if (gzip)
        return look_inside(head, err);
    return begins_xspace(head.p[0]) ? XP_OK : no_profile(head, "it", err);
}
