/* tests/fuzz/fuzz_decoder.c - the decoder and the indexer see the same in a profile however it is
 * cut, and what the index says lies inside the object.
 *
 * Input: one byte that seeds the cuts, then the profile.
 */
#include <stdlib.h>

#include "lib/base/hash.h"
#include "shard/decode/xspace_decoder.h"
#include "shard/decode/xspace_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t next_cut(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    uint32_t r = *state >> 16;
    /* Mostly short pieces, now and then one longer than the patch buffer. */
    return r % 7 == 0 ? 1 : r % 61 == 0 ? 70000 : 1 + r % 97;
}

/* A copy of exactly the piece, so that a sanitizer sees a read past its end. */
static uint8_t *piece_of(const uint8_t *p, size_t n)
{
    uint8_t *piece = malloc(n ? n : 1);
    XP_ASSERT(piece);
    memcpy(piece, p, n);
    return piece;
}

static void fold(uint64_t *digest, uint64_t v)
{
    *digest = xp_fnv(*digest, xp_span_of(&v, sizeof v));
}

static void fold_span(uint64_t *digest, struct xp_span s)
{
    fold(digest, s.n);
    *digest = xp_fnv(*digest, s);
}

static void fold_stats(uint64_t *digest, struct xp_span body, uint32_t field)
{
    struct xspace_stats it = xspace_stats_open(body, field);
    struct xspace_stat st;
    while (xspace_stats_next(&it, &st)) {
        fold(digest, (uint64_t)st.metadata_id);
        fold(digest, st.type);
        fold(digest, st.num);
        fold_span(digest, st.bytes);
    }
    fold(digest, it.bad);
}

static enum xp_status plane_begin(void *ctx, uint64_t at, uint64_t len)
{
    fold(ctx, at);
    fold(ctx, len);
    return XP_OK;
}

static enum xp_status line_begin(void *ctx, uint64_t at, uint64_t len)
{
    fold(ctx, at);
    fold(ctx, len);
    return XP_OK;
}

static enum xp_status events(void *ctx, const struct xspace_event *ev, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fold(ctx, ev[i].at);
        fold(ctx, ev[i].len);
        fold(ctx, (uint64_t)ev[i].metadata_id);
        fold(ctx, (uint64_t)ev[i].offset_ps);
        fold(ctx, (uint64_t)ev[i].duration_ps);
        fold(ctx, ev[i].has_occurrences ? (uint64_t)ev[i].num_occurrences : 0);
        fold(ctx, ev[i].big);
        fold_span(ctx, ev[i].body);
        fold_stats(ctx, ev[i].body, 4);
    }
    return XP_OK;
}

static enum xp_status line_end(void *ctx, const struct xspace_line *l)
{
    fold_span(ctx, l->name);
    fold_span(ctx, l->display_name);
    fold(ctx, (uint64_t)l->id);
    fold(ctx, (uint64_t)l->timestamp_ns);
    fold(ctx, l->nevents);
    return XP_OK;
}

static enum xp_status meta(void *ctx, const struct xspace_meta *m)
{
    fold(ctx, m->kind);
    fold(ctx, (uint64_t)m->key);
    fold(ctx, m->at);
    fold_span(ctx, m->name);
    fold_span(ctx, m->display_name);
    fold_stats(ctx, m->body, 5);
    return XP_OK;
}

static enum xp_status plane_stat(void *ctx, uint64_t at, const struct xspace_stat *st)
{
    fold(ctx, at);
    fold(ctx, st->type);
    fold(ctx, st->num);
    fold_span(ctx, st->bytes);
    return XP_OK;
}

static enum xp_status plane_end(void *ctx, const struct xspace_plane *p)
{
    fold_span(ctx, p->name);
    fold(ctx, (uint64_t)p->id);
    return XP_OK;
}

static enum xp_status hostname(void *ctx, struct xp_span name)
{
    fold_span(ctx, name);
    return XP_OK;
}

static enum xp_status message(void *ctx, bool is_error, struct xp_span text)
{
    fold(ctx, is_error);
    fold_span(ctx, text);
    return XP_OK;
}

static const struct xspace_sink sink = {.on_plane_begin = plane_begin,
                                        .on_line_begin = line_begin,
                                        .on_events = events,
                                        .on_line_end = line_end,
                                        .on_meta = meta,
                                        .on_plane_stat = plane_stat,
                                        .on_plane_end = plane_end,
                                        .on_hostname = hostname,
                                        .on_message = message};

struct outcome {
    uint64_t digest, offset;
    enum xp_status status;
};

/* seed 0: in one piece. */
static struct outcome decode(struct xp_span in, uint32_t seed)
{
    static struct xspace_decoder d;
    struct outcome out = {XP_FNV_INIT, 0, XP_OK};
    struct xp_error err = {0};
    xspace_decoder_init(&d, &sink, &out.digest, XSPACE_AT_SPACE, 0, UINT64_MAX);
    while (in.n && out.status == XP_OK) {
        size_t n = seed ? next_cut(&seed) : in.n;
        n = n < in.n ? n : in.n;
        uint8_t *piece = piece_of(in.p, n);
        out.status = xspace_decoder_push(&d, xp_span_of(piece, n), &err);
        free(piece);
        in = xp_span_of(in.p + n, in.n - n);
    }
    if (out.status == XP_OK)
        out.status = xspace_decoder_finish(&d, &err);
    XP_ASSERT(out.status == XP_OK || out.status == XP_CORRUPT);
    XP_ASSERT(out.status == XP_OK || (err.status == out.status && err.text[0]));
    out.offset = out.status == XP_OK ? 0 : err.offset;
    return out;
}

static void check_index(const struct xspace_index *ix, uint64_t size)
{
    XP_ASSERT(ix->size <= size);
    for (uint32_t i = 0; i < ix->nplanes; i++) {
        const struct xspace_ix_plane *p = &ix->planes[i];
        XP_ASSERT(p->at <= size && p->len <= size - p->at);
        XP_ASSERT(p->first_line <= ix->nlines && p->nlines <= ix->nlines - p->first_line);
        XP_ASSERT(p->first_run <= ix->nruns && p->nruns <= ix->nruns - p->first_run);
        for (uint32_t k = 0; k < p->nlines; k++) {
            const struct xspace_ix_line *l = &ix->lines[p->first_line + k];
            XP_ASSERT(l->plane == i && l->at >= p->at && l->at - p->at <= p->len);
            XP_ASSERT(l->len <= p->len - (l->at - p->at));
        }
    }
}

static uint64_t index_digest(struct xp_span in, uint32_t seed)
{
    struct xp_arena *a = xp_arena_new(NULL);
    XP_ASSERT(a);
    struct xspace_indexer *ix = xspace_indexer_new(a, in.n);
    XP_ASSERT(ix);
    struct xspace_index out = {0};
    struct xp_error err = {0};
    for (uint64_t at = 0; at < in.n;) {
        uint64_t wanted = xspace_indexer_at(ix);
        /* Now and then what it does not want is left out, as a seekable source does. */
        if (seed && seed % 3 == 0 && wanted > at)
            at = wanted;
        if (at >= in.n)
            break;
        size_t n = seed ? next_cut(&seed) : in.n;
        n = n < in.n - at ? n : in.n - (size_t)at;
        uint8_t *piece = piece_of(in.p + at, n);
        XP_ASSERT(xspace_indexer_push(ix, at, xp_span_of(piece, n), &err) == XP_OK);
        free(piece);
        at += n;
    }
    XP_ASSERT(xspace_indexer_finish(ix, &out, &err) == XP_OK);
    check_index(&out, in.n);
    uint64_t digest = XP_FNV_INIT;
    for (uint32_t i = 0; i < out.nplanes; i++) {
        fold(&digest, out.planes[i].at);
        fold(&digest, out.planes[i].len);
        fold(&digest, out.planes[i].nlines);
        fold(&digest, out.planes[i].nruns);
        fold(&digest, out.planes[i].cut);
    }
    for (uint32_t i = 0; i < out.nlines; i++) {
        fold(&digest, out.lines[i].at);
        fold(&digest, out.lines[i].len);
        fold(&digest, (uint64_t)out.lines[i].timestamp_ns);
    }
    fold(&digest, out.damage.status);
    fold(&digest, out.damage.status == XP_OK ? 0 : out.damage.offset);
    xp_arena_free(a);
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    uint32_t seed = data[0] + 1u;
    struct xp_span in = xp_span_of(data + 1, size - 1);
    struct outcome whole = decode(in, 0), cut = decode(in, seed);
    XP_ASSERT(whole.status == cut.status);
    XP_ASSERT(whole.digest == cut.digest);
    XP_ASSERT(whole.offset == cut.offset);
    XP_ASSERT(index_digest(in, 0) == index_digest(in, seed));
    return 0;
}
