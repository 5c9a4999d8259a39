/* tests/fuzz/fuzz_records.c - records: a file of them is read or told to be damaged, and joining
 * planes of any bytes gives bytes that are fields, or XP_CORRUPT.
 *
 * Input: a byte, odd for an XSpace that is joined, even for a file; then it.
 */
#include <stdlib.h>

#include "lib/base/pb_wire.h"
#include "lib/objstore/objstore.h"
#include "lib/objstore/riegeli.h"
#include "shard/decode/xspace_merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUT_MAX (64u << 20)

struct held {
    struct xp_buf all;
    size_t kept;
};

static enum xp_status add(void *ctx, struct xp_span s, struct xp_error *err)
{
    struct held *h = ctx;
    xp_buf_span(&h->all, s);
    return h->all.failed ? xp_fail(err, XP_TOO_LARGE, 0, "more than there is room for") : XP_OK;
}

static enum xp_status end(void *ctx, bool keep, struct xp_error *err)
{
    struct held *h = ctx;
    (void)err;
    if (keep)
        h->kept = h->all.n;
    else
        h->all.n = h->kept;
    return XP_OK;
}

static enum xp_status set(void *ctx, uint64_t at, struct xp_span s, struct xp_error *err)
{
    struct held *h = ctx;
    (void)err;
    XP_ASSERT(at <= h->all.n && s.n <= h->all.n - at);
    memcpy(h->all.p + at, s.p, s.n);
    return XP_OK;
}

static size_t fields_of(struct xp_span s)
{
    struct xp_pb r = xp_pb_open(s);
    struct xp_pb_field f;
    size_t n = 0;
    while (xp_pb_next(&r, &f))
        n++;
    return r.bad ? 0 : n;
}

static void join(struct xp_span xspace)
{
    struct held h = {0};
    struct xp_error err = {0};
    struct xp_arena *scratch = xp_arena_new(NULL);
    const struct xspace_merge_out out = {&h, add, set};
    size_t before = fields_of(xspace);
    xp_buf_init(&h.all, OUT_MAX);
    xp_buf_span(&h.all, xspace);
    enum xp_status status = xspace_merge(xspace, scratch, OUT_MAX, &out, &err);
    XP_ASSERT(status == XP_OK || status == XP_CORRUPT || status == XP_TOO_LARGE ||
              status == XP_BUSY);
    XP_ASSERT(status == XP_OK || err.text[0]);
    if (status == XP_OK && before)
        XP_ASSERT(fields_of(xp_buf_all(&h.all)) >= before);
    xp_arena_free(scratch);
    xp_buf_fini(&h.all);
}

static void read_file(struct xp_span file)
{
    struct held h = {0};
    struct xp_error damage, err = {0};
    struct xp_reader *r = NULL;
    const struct xp_riegeli_sink sink = {&h, add, end};
    xp_buf_init(&h.all, OUT_MAX);
    XP_ASSERT(xp_reader_open_mem(file, 1, &r, &err) == XP_OK);
    enum xp_status status = xp_riegeli_read(r, OUT_MAX / 2, &sink, &damage, &err);
    XP_ASSERT(status == XP_OK || status == XP_TOO_LARGE);
    XP_ASSERT(h.all.n <= OUT_MAX / 2);
    xp_reader_close(r);
    xp_buf_fini(&h.all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    if (data[0] & 1)
        join(xp_span_of(data + 1, size - 1));
    else
        read_file(xp_span_of(data + 1, size - 1));
    return 0;
}
