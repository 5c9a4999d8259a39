/* tests/fuzz/fuzz_gz.c - reading a compressed object: damage is XP_CORRUPT, a bomb XP_TOO_LARGE,
 * and what can be read anywhere is what came in order.
 *
 * Input: two bytes that seed the places read, then the gzip object.
 */
#include <stdlib.h>

#include "lib/base/buf.h"
#include "lib/objstore/objstore_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INFLATED_MAX (4u << 20)

struct memory_reader {
    struct xp_reader base;
    uint8_t *bytes;
};

static enum xp_status memory_read(struct xp_reader *r, uint64_t off, void *buf, size_t n,
                                  struct xp_error *err)
{
    (void)err;
    memcpy(buf, ((struct memory_reader *)r)->bytes + off, n);
    return XP_OK;
}

static void memory_close(struct xp_reader *r)
{
    free(((struct memory_reader *)r)->bytes);
    free(r);
}

static const struct xp_reader_ops memory_ops = {.read = memory_read, .close = memory_close};

static struct xp_reader *memory_open(const uint8_t *p, size_t n)
{
    struct memory_reader *m = calloc(1, sizeof *m);
    XP_ASSERT(m);
    m->base = (struct xp_reader){&memory_ops, n, 1};
    m->bytes = malloc(n ? n : 1);
    XP_ASSERT(m->bytes);
    if (n)
        memcpy(m->bytes, p, n);
    return &m->base;
}

static enum xp_status collect(void *ctx, struct xp_span bytes, struct xp_error *err)
{
    struct xp_buf *all = ctx;
    xp_buf_span(all, bytes);
    return all->failed ? xp_fail(err, XP_TOO_LARGE, 0, "more than max_size was handed on") : XP_OK;
}

static void read_anywhere(struct xp_reader *r, const struct xp_buf *all, uint32_t seed)
{
    uint8_t buf[777];
    struct xp_error err;
    XP_ASSERT(xp_reader_size(r) == all->n);
    for (int i = 0; i < 6; i++) {
        seed = seed * 1664525 + 1013904223;
        uint64_t off = all->n ? seed % (all->n + 1) : 0;
        size_t n = 1 + (seed >> 8) % sizeof buf, got = 0;
        XP_ASSERT(xp_reader_read(r, off, buf, n, &got, &err) == XP_OK);
        XP_ASSERT(got == (n < all->n - off ? n : all->n - off));
        XP_ASSERT(!got || memcmp(buf, all->p + off, got) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct xp_buf all;
    struct xp_error err = {0};
    struct xp_reader *inner = memory_open(data + 2, size - 2), *r = NULL;
    xp_buf_init(&all, INFLATED_MAX);
    enum xp_status status = xp_reader_open_gz(inner, INFLATED_MAX, collect, &all, &r, &err);
    if (status == XP_OK) {
        read_anywhere(r, &all, (uint32_t)data[0] << 8 | data[1]);
        xp_reader_close(r);
    } else {
        XP_ASSERT(status == XP_CORRUPT || status == XP_TOO_LARGE);
        XP_ASSERT(err.status == status && err.text[0]);
        xp_reader_close(inner);
    }
    xp_buf_fini(&all);
    return 0;
}
