#include "shard/out.h"

#define PLAIN_MAX (16 << 10)

void out_init(struct out *o, const atomic_bool *cancel)
{
    *o = (struct out){.content_type = "application/json", .cancel = cancel};
    xp_buf_init(&o->text, OUT_MAX);
    xp_buf_init(&o->body, OUT_MAX);
}

struct xp_gzip *out_gzip(struct out *o)
{
    if (!o->gz)
        o->gz = xp_gzip_new(&o->body);
    xp_gzip_add(o->gz, xp_buf_all(&o->text));
    o->text.n = 0;
    return o->gz;
}

void out_flush(struct out *o)
{
    if (o->text.n > PLAIN_MAX && !o->text.failed)
        out_gzip(o);
}

enum xp_status out_finish(struct out *o, uint8_t **body, size_t *n, bool *encoded,
                          struct xp_error *err)
{
    struct xp_buf *whole = &o->text;
    if (o->gz) {
        if (!o->text.failed)
            xp_gzip_add(o->gz, xp_buf_all(&o->text));
        xp_gzip_end(o->gz);
        whole = &o->body;
    }
    *encoded = o->gz != NULL;
    o->gz = NULL;
    if (o->text.failed || o->body.failed)
        return xp_fail(err, XP_TOO_LARGE, 0, "the answer is larger than %zu MiB", OUT_MAX >> 20);
    *body = xp_buf_take(whole, n);
    return XP_OK;
}

void out_fini(struct out *o)
{
    xp_gzip_drop(o->gz);
    o->gz = NULL;
    xp_buf_fini(&o->text);
    xp_buf_fini(&o->body);
}
