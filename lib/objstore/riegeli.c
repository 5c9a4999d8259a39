#include "lib/objstore/riegeli.h"

#include <brotli/decode.h>
#include <stdlib.h>
#include <zstd.h>

#include "lib/base/highway.h"
#include "lib/base/pb_wire.h"

#define BLOCK (UINT64_C(1) << 16)
#define BLOCK_HEADER 24
#define USABLE (BLOCK - BLOCK_HEADER)
#define CHUNK_HEADER 40
#define OUT_BYTES (256u << 10)
#define WINDOW_LOG_MAX 25 /* of Zstandard; writers of records use 23 or less */
/* No offset is beyond: sums of a few do not wrap. */
#define FILE_MAX (UINT64_C(1) << 60)

static const uint64_t key[4] = {0x2f696c6567656952, 0x0a7364726f636572, 0x2f696c6567656952,
                                0x0a7364726f636572};

static uint64_t hash_of(struct xp_span s)
{
    struct xp_highway h;
    xp_highway_init(&h, key);
    xp_highway_add(&h, s);
    return xp_highway_end(&h);
}

static uint64_t get64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v); /* little-endian, as the format */
    return v;
}

bool xp_records_begin(struct xp_span head)
{
    static const uint8_t first[] = {0x83, 0xaf, 0x70, 0xd1, 0x0d, 0x88, 0x4a, 0x3f,
                                    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                                    0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
    return xp_span_starts(head, xp_span_of(first, sizeof first));
}

/* --- bytes of chunks: the file's without the headers of blocks --- */

struct feed {
    struct xp_reader *file;
    uint64_t at, size;
    uint64_t block_at; /* of what is in block[] */
    size_t block_n;
    uint8_t block[BLOCK];
};

static enum xp_status have_block(struct feed *f, uint64_t block_at, struct xp_error *err)
{
    if (f->block_n && f->block_at == block_at)
        return XP_OK;
    f->block_at = block_at;
    f->block_n = 0;
    return xp_reader_read(f->file, block_at, f->block, BLOCK, &f->block_n, err);
}

/* The next bytes that lie together, at most max > 0; none at the end of the file. */
static enum xp_status feed_next(struct feed *f, uint64_t max, struct xp_span *s,
                                struct xp_error *err)
{
    *s = (struct xp_span){0};
    if (f->at % BLOCK == 0)
        f->at += BLOCK_HEADER;
    if (f->at >= f->size)
        return XP_OK;
    XP_TRY(have_block(f, f->at / BLOCK * BLOCK, err));
    uint64_t in = f->at % BLOCK;
    if (in >= f->block_n)
        return xp_fail(err, XP_STALE, f->at, "the profile became shorter while it was read");
    uint64_t n = f->block_n - in;
    *s = xp_span_of(f->block + in, n < max ? n : max);
    f->at += s->n;
    return XP_OK;
}

/* --- headers of chunks --- */

struct chunk {
    uint64_t at, end;
    uint64_t data_size, data_hash;
    uint8_t type;
    uint64_t records, decoded_size;
};

/* Where bytes that begin at pos end, the headers of blocks among them counted in. */
static uint64_t with_headers(uint64_t pos, uint64_t n)
{
    uint64_t headers = (n + (pos + USABLE - 1) % BLOCK) / USABLE;
    return pos + n + headers * BLOCK_HEADER;
}

/* No chunk ends in a header of a block or right behind it. */
static uint64_t possible_end(uint64_t pos)
{
    uint64_t left = BLOCK - 1 - (pos + BLOCK - 1) % BLOCK;
    return left > USABLE - 1 ? pos + (left - (USABLE - 1)) : pos;
}

enum head { HEAD_OK, HEAD_CUT, HEAD_BAD };

static enum xp_status read_head(struct feed *f, struct chunk *c, enum head *how,
                                struct xp_error *err)
{
    uint8_t h[CHUNK_HEADER];
    f->at = c->at;
    for (size_t n = 0; n < sizeof h;) {
        struct xp_span s;
        XP_TRY(feed_next(f, sizeof h - n, &s, err));
        *how = HEAD_CUT;
        if (!s.n)
            return XP_OK;
        memcpy(h + n, s.p, s.n);
        n += s.n;
    }
    c->data_size = get64(h + 8);
    c->data_hash = get64(h + 16);
    c->type = h[24];
    c->records = get64(h + 24) >> 8;
    c->decoded_size = get64(h + 32);
    *how = HEAD_BAD;
    if (get64(h) != hash_of(xp_span_of(h + 8, sizeof h - 8)) || c->data_size > FILE_MAX)
        return XP_OK;
    uint64_t by_data = with_headers(c->at, CHUNK_HEADER + c->data_size);
    uint64_t by_records = possible_end(c->at + c->records);
    c->end = by_data > by_records ? by_data : by_records;
    *how = HEAD_OK;
    return XP_OK;
}

/* The first chunk behind pos that the header of a block leads to; the file's size if none does. */
static enum xp_status find_chunk(struct feed *f, uint64_t pos, uint64_t *found,
                                 struct xp_error *err)
{
    for (uint64_t block = (pos / BLOCK + 1) * BLOCK; block < f->size; block += BLOCK) {
        XP_TRY(have_block(f, block, err));
        if (f->block_n < BLOCK_HEADER ||
            get64(f->block) != hash_of(xp_span_of(f->block + 8, BLOCK_HEADER - 8)))
            continue;
        uint64_t before = get64(f->block + 8), after = get64(f->block + 16);
        *found = before == 0 ? block : after < f->size - block ? block + after : f->size;
        if (*found > pos)
            return XP_OK;
    }
    *found = f->size;
    return XP_OK;
}

/* --- what a chunk holds --- */

enum kind { KIND_PLAIN = 0, KIND_BROTLI = 'b', KIND_ZSTD = 'z' };

struct opened {
    struct feed *f;
    const struct chunk *c;
    const struct xp_riegeli_sink *sink;
    struct xp_highway hash;
    uint64_t left; /* of the data */
    uint64_t out;  /* bytes handed on */
    bool bad;      /* what the data are not is in *damage */
    struct xp_error *damage;
};

static void spoilt(struct opened *o, const char *what)
{
    if (!o->bad)
        xp_fail(o->damage, XP_CORRUPT, o->c->at, "records: %s in the chunk at byte %llu", what,
                (unsigned long long)o->c->at);
    o->bad = true;
}

static enum xp_status data_next(struct opened *o, uint64_t max, struct xp_span *s,
                                struct xp_error *err)
{
    *s = (struct xp_span){0};
    if (!o->left || !max)
        return XP_OK;
    XP_TRY(feed_next(o->f, max < o->left ? max : o->left, s, err));
    if (!s->n)
        spoilt(o, "the file ends");
    xp_highway_add(&o->hash, *s);
    o->left -= s->n;
    return XP_OK;
}

static enum xp_status data_varint(struct opened *o, uint64_t *v, struct xp_error *err)
{
    uint8_t b[XP_VARINT_MAX];
    struct xp_span s;
    for (size_t n = 0; n < sizeof b;) {
        XP_TRY(data_next(o, 1, &s, err));
        if (!s.n)
            break;
        b[n++] = *s.p;
        if (*s.p < 0x80) {
            xp_varint_read(b, b + n, v);
            return XP_OK;
        }
    }
    spoilt(o, "a number is cut off");
    return XP_OK;
}

static enum xp_status hand_on(struct opened *o, const void *p, size_t n, struct xp_error *err)
{
    if (n > o->c->decoded_size - o->out) {
        spoilt(o, "more than it says is");
        return XP_OK;
    }
    o->out += n;
    return n ? o->sink->bytes(o->sink->ctx, xp_span_of(p, n), err) : XP_OK;
}

static enum xp_status pour_plain(struct opened *o, struct xp_error *err)
{
    while (o->left && !o->bad) {
        struct xp_span s;
        XP_TRY(data_next(o, o->left, &s, err));
        XP_TRY(hand_on(o, s.p, s.n, err));
    }
    return XP_OK;
}

static enum xp_status pour_brotli(struct opened *o, struct xp_error *err)
{
    enum xp_status status = XP_OK;
    BrotliDecoderResult r = BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT;
    BrotliDecoderState *d = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    if (!d)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    while (status == XP_OK && !o->bad && r == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT) {
        struct xp_span s;
        status = data_next(o, UINT64_MAX, &s, err);
        if (status != XP_OK || !s.n)
            break;
        do {
            size_t none = 0;
            r = BrotliDecoderDecompressStream(d, &s.n, &s.p, &none, NULL, NULL);
            while (BrotliDecoderHasMoreOutput(d) && status == XP_OK && !o->bad) {
                size_t n = 0;
                const uint8_t *p = BrotliDecoderTakeOutput(d, &n);
                status = hand_on(o, p, n, err);
            }
        } while (r == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT && status == XP_OK && !o->bad);
        if (s.n && r == BROTLI_DECODER_RESULT_SUCCESS)
            spoilt(o, "something follows the compressed bytes");
    }
    if (status == XP_OK && r != BROTLI_DECODER_RESULT_SUCCESS)
        spoilt(o, "Brotli's bytes are damaged");
    BrotliDecoderDestroyInstance(d);
    return status;
}

static enum xp_status pour_zstd(struct opened *o, struct xp_error *err)
{
    enum xp_status status = XP_OK;
    ZSTD_DStream *d = ZSTD_createDStream();
    uint8_t *out = malloc(OUT_BYTES);
    size_t r = 1;
    if (!d || !out || ZSTD_isError(ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
        status = xp_fail(err, XP_BUSY, 0, "out of memory");
    while (status == XP_OK && !o->bad && r != 0) {
        struct xp_span s;
        status = data_next(o, UINT64_MAX, &s, err);
        if (status != XP_OK || !s.n)
            break;
        ZSTD_inBuffer in = {s.p, s.n, 0};
        ZSTD_outBuffer to;
        do {
            to = (ZSTD_outBuffer){out, OUT_BYTES, 0};
            r = ZSTD_decompressStream(d, &to, &in);
            if (ZSTD_isError(r))
                spoilt(o, "Zstandard's bytes are damaged");
            else
                status = hand_on(o, out, to.pos, err);
        } while (status == XP_OK && !o->bad && r != 0 && (in.pos < in.size || to.pos == to.size));
    }
    if (status == XP_OK && r != 0)
        spoilt(o, "Zstandard's bytes are cut off");
    free(out);
    ZSTD_freeDStream(d);
    return status;
}

static enum xp_status pour(struct opened *o, struct xp_error *err)
{
    struct xp_span s;
    uint64_t sizes = 0, decoded = o->c->decoded_size;
    XP_TRY(data_next(o, 1, &s, err));
    enum kind kind = s.n ? (enum kind) * s.p : KIND_PLAIN;
    XP_TRY(data_varint(o, &sizes, err));
    if (sizes > o->left)
        spoilt(o, "sizes of records are cut off");
    while (sizes && !o->bad) { /* where one record ends and the next begins does not matter here */
        XP_TRY(data_next(o, sizes, &s, err));
        sizes -= s.n;
    }
    if (kind != KIND_PLAIN && !o->bad)
        XP_TRY(data_varint(o, &decoded, err));
    if (decoded != o->c->decoded_size)
        spoilt(o, "sizes disagree");
    if (o->bad)
        return XP_OK;
    switch (kind) {
    case KIND_PLAIN:
        return pour_plain(o, err);
    case KIND_BROTLI:
        return pour_brotli(o, err);
    case KIND_ZSTD:
        return pour_zstd(o, err);
    }
    spoilt(o, "a compression that is not supported (none, Brotli and Zstandard are)");
    return XP_OK;
}

static enum xp_status read_chunk(struct feed *f, const struct chunk *c,
                                 const struct xp_riegeli_sink *sink, struct xp_error *damage,
                                 struct xp_error *err)
{
    struct opened o = {.f = f, .c = c, .sink = sink, .left = c->data_size, .damage = damage};
    struct xp_span s;
    xp_highway_init(&o.hash, key);
    XP_TRY(pour(&o, err));
    while (o.left && !o.bad) {
        spoilt(&o, "something follows the compressed bytes");
        XP_TRY(data_next(&o, o.left, &s, err));
    }
    if (!o.bad && xp_highway_end(&o.hash) != c->data_hash)
        spoilt(&o, "a checksum is wrong");
    if (!o.bad && o.out != c->decoded_size)
        spoilt(&o, "less than it says is");
    return sink->end(sink->ctx, !o.bad, err);
}

/* --- the file --- */

/* What is not read, or NULL. */
static const char *not_read(uint8_t type)
{
    switch (type) {
    case 's': /* signature */
    case 'm': /* metadata */
    case 'p': /* padding */
    case 'r':
        return NULL;
    case 't':
        return "transposed records, which are not supported,";
    default:
        return "a kind that is not known";
    }
}

static void note(struct xp_error *damage, const struct xp_error *new)
{
    if (damage->status == XP_OK)
        *damage = *new;
}

static enum xp_status take_chunk(struct feed *f, const struct chunk *c, uint64_t *room,
                                 const struct xp_riegeli_sink *sink, struct xp_error *damage,
                                 struct xp_error *err)
{
    struct xp_error one = {0};
    const char *why = not_read(c->type);
    if (why)
        xp_fail(&one, XP_CORRUPT, c->at, "records: %s in the chunk at byte %llu", why,
                (unsigned long long)c->at);
    else if (c->type == 'r' && c->decoded_size > *room)
        return xp_fail(err, XP_TOO_LARGE, c->at, "the records hold more than may be unpacked");
    else if (c->type == 'r')
        XP_TRY(read_chunk(f, c, sink, &one, err));
    if (one.status != XP_OK)
        note(damage, &one);
    else if (c->type == 'r')
        *room -= c->decoded_size;
    return XP_OK;
}

enum xp_status xp_riegeli_read(struct xp_reader *file, uint64_t max_size,
                               const struct xp_riegeli_sink *sink, struct xp_error *damage,
                               struct xp_error *err)
{
    struct feed *f = malloc(sizeof *f);
    struct chunk c = {0};
    enum xp_status status = XP_OK;
    *damage = (struct xp_error){0};
    if (!f)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    f->file = file;
    f->size = xp_reader_size(file);
    f->block_n = 0;
    while (status == XP_OK && c.at < f->size && f->size <= FILE_MAX) {
        enum head how;
        struct xp_error one = {0};
        status = read_head(f, &c, &how, err);
        if (status != XP_OK)
            break;
        if (how == HEAD_OK) {
            status = take_chunk(f, &c, &max_size, sink, damage, err);
            c.at = c.end;
            continue;
        }
        xp_fail(&one, XP_CORRUPT, c.at, "records: the header at byte %llu is %s",
                (unsigned long long)c.at, how == HEAD_CUT ? "cut off" : "damaged");
        note(damage, &one);
        status = find_chunk(f, c.at, &c.at, err);
    }
    free(f);
    return status;
}
