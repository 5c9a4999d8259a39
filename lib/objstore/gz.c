/* Reading a gzip object at any offset.
 *
 * ISA-L's inflate_state holds no pointer but those to the current input and output, and its
 * window lies within it (tmp_out_buffer, the last member, valid up to tmp_out_valid). So a copy
 * of it, cut there, is a checkpoint: 21 KiB of tables and 32 KiB of window in the middle of a
 * stream. The inflater counts in 32 bits; we count in 64.
 */
#include <isa-l/igzip_lib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/objstore/objstore_int.h"

#define IN_BYTES (64u << 10)
/* What the opening pass hands out at a time: each call copies up to 64 KiB of window, so that
 * small pieces cost (256 KiB: 6 % slower than 1 MiB). */
#define PIECE_BYTES (1u << 20)
#define SKIP_BYTES (128u << 10)
#define SPACING (8u << 20)
#define CHECKPOINTS_MAX 256
#define CURSORS_MAX 8
#define STATE_FIXED offsetof(struct inflate_state, tmp_out_buffer)

_Static_assert(STATE_FIXED + sizeof(((struct inflate_state *)0)->tmp_out_buffer) + 8 >=
                   sizeof(struct inflate_state),
               "the window must be the inflater's last member");

/* --- inflating forward --- */

struct inflater {
    struct inflate_state st;
    uint64_t in_at;  /* offset in the object of what is read next into in[] */
    uint64_t out_at; /* offset of the next inflated byte */
    bool end;
    uint8_t in[IN_BYTES];
};

static uint64_t inflater_offset(const struct inflater *f)
{
    return f->in_at - f->st.avail_in;
}

static void inflater_start(struct inflater *f)
{
    isal_inflate_init(&f->st);
    f->st.crc_flag = ISAL_GZIP;
    f->in_at = f->out_at = 0;
    f->end = false;
}

/* Makes sure that there is input, or avail_in stays 0 at the object's end. */
static enum xp_status refill(struct inflater *f, struct xp_reader *inner, struct xp_error *err)
{
    size_t got;
    if (f->st.avail_in)
        return XP_OK;
    XP_TRY(xp_reader_read(inner, f->in_at, f->in, sizeof f->in, &got, err));
    f->in_at += got;
    f->st.next_in = f->in;
    f->st.avail_in = (uint32_t)got;
    return XP_OK;
}

/* After a member: another one, padding, or the end. */
static enum xp_status next_member(struct inflater *f, struct xp_reader *inner, struct xp_error *err)
{
    XP_TRY(refill(f, inner, err));
    if (f->st.avail_in && f->st.next_in[0] != 0) {
        isal_inflate_reset(&f->st);
        f->st.crc_flag = ISAL_GZIP;
        return XP_OK;
    }
    while (f->st.avail_in) {
        if (f->st.next_in[0] != 0)
            return xp_fail(err, XP_CORRUPT, inflater_offset(f),
                           "gzip: something follows the padding after the last member");
        f->st.next_in++;
        f->st.avail_in--;
        XP_TRY(refill(f, inner, err));
    }
    f->end = true;
    return XP_OK;
}

static enum xp_status fail_inflate(const struct inflater *f, int code, struct xp_error *err)
{
    const char *what = code == ISAL_INVALID_WRAPPER      ? "no gzip header"
                       : code == ISAL_UNSUPPORTED_METHOD ? "an unknown compression method"
                       : code == ISAL_INCORRECT_CHECKSUM ? "a wrong checksum"
                       : code == ISAL_INVALID_LOOKBACK   ? "a reference before the beginning"
                       : code == ISAL_INVALID_SYMBOL     ? "an invalid symbol"
                                                         : "an invalid block";
    return xp_fail(err, XP_CORRUPT, inflater_offset(f),
                   "gzip: %s at or before compressed byte %llu", what,
                   (unsigned long long)inflater_offset(f));
}

/* Up to n > 0 bytes into dst; *got is 0 only at the end. With an error, *got bytes before it may
 * be there, too. */
static enum xp_status inflater_step(struct inflater *f, struct xp_reader *inner, uint8_t *dst,
                                    uint32_t n, uint32_t *got, struct xp_error *err)
{
    *got = 0;
    while (*got == 0 && !f->end) {
        XP_TRY(refill(f, inner, err));
        bool starved = f->st.avail_in == 0;
        f->st.next_out = dst;
        f->st.avail_out = n;
        int code = isal_inflate(&f->st);
        *got = n - f->st.avail_out;
        f->out_at += *got;
        if (code < 0)
            return fail_inflate(f, code, err);
        if (f->st.block_state == ISAL_BLOCK_FINISH)
            XP_TRY(next_member(f, inner, err));
        else if (starved && *got == 0)
            return xp_fail(err, XP_CORRUPT, inflater_offset(f),
                           "gzip: cut off at compressed byte %llu, before the end of the stream",
                           (unsigned long long)inflater_offset(f));
    }
    return XP_OK;
}

/* --- the reader --- */

struct checkpoint {
    uint64_t in_at, out_at;
    uint32_t window; /* bytes of tmp_out_buffer kept */
    uint8_t *state;
};

struct cursor {
    struct inflater *f;
    bool busy;
    uint64_t used; /* clock of the last use */
};

struct gz_reader {
    struct xp_reader base;
    struct xp_reader *inner;
    struct checkpoint points[CHECKPOINTS_MAX];
    size_t n_points;
    uint64_t spacing;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct cursor cursors[CURSORS_MAX];
    uint64_t clock;
};

static void gz_free(struct gz_reader *g)
{
    for (size_t i = 0; i < g->n_points; i++)
        free(g->points[i].state);
    for (size_t i = 0; i < CURSORS_MAX; i++)
        free(g->cursors[i].f);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->idle);
    free(g);
}

/* --- checkpoints --- */

/* Keeps every other one. The first, at 0, stays. */
static void points_thin(struct gz_reader *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_points; i++) {
        if (i % 2)
            free(g->points[i].state);
        else
            g->points[n++] = g->points[i];
    }
    g->n_points = n;
    g->spacing *= 2;
}

static enum xp_status point_add(struct gz_reader *g, const struct inflater *f, struct xp_error *err)
{
    if (g->n_points == CHECKPOINTS_MAX)
        points_thin(g);
    struct checkpoint *c = &g->points[g->n_points];
    c->window = (uint32_t)f->st.tmp_out_valid;
    c->in_at = inflater_offset(f);
    c->out_at = f->out_at;
    c->state = malloc(STATE_FIXED + c->window);
    if (!c->state)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    memcpy(c->state, &f->st, STATE_FIXED + c->window);
    g->n_points++;
    return XP_OK;
}

static void point_restore(const struct checkpoint *c, struct inflater *f)
{
    memcpy(&f->st, c->state, STATE_FIXED + c->window);
    f->st.next_in = f->in;
    f->st.avail_in = 0;
    f->in_at = c->in_at;
    f->out_at = c->out_at;
    f->end = false;
}

/* The last checkpoint at or before off. */
static const struct checkpoint *point_find(const struct gz_reader *g, uint64_t off)
{
    size_t lo = 0, hi = g->n_points;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (g->points[mid].out_at <= off)
            lo = mid;
        else
            hi = mid;
    }
    return &g->points[lo];
}

/* --- cursors --- */

/* The idle cursor to read from off with: the one that is nearest before it if that beats the
 * checkpoint, else one to start over. NULL when all are busy. */
static struct cursor *cursor_pick(struct gz_reader *g, uint64_t off, uint64_t point_at)
{
    struct cursor *near = NULL, *oldest = NULL;
    for (size_t i = 0; i < CURSORS_MAX; i++) {
        struct cursor *c = &g->cursors[i];
        if (c->busy)
            continue;
        if (c->f && c->f->out_at <= off && c->f->out_at >= point_at &&
            (!near || c->f->out_at > near->f->out_at))
            near = c;
        if (!oldest || c->used < oldest->used)
            oldest = c;
    }
    return near ? near : oldest;
}

static struct cursor *cursor_take(struct gz_reader *g, uint64_t off)
{
    const struct checkpoint *p = point_find(g, off);
    struct cursor *c;
    pthread_mutex_lock(&g->lock);
    while (!(c = cursor_pick(g, off, p->out_at)))
        pthread_cond_wait(&g->idle, &g->lock);
    c->busy = true;
    c->used = ++g->clock;
    pthread_mutex_unlock(&g->lock);
    if (c->f && c->f->out_at <= off && c->f->out_at >= p->out_at)
        return c;
    if (!c->f)
        c->f = malloc(sizeof *c->f);
    if (c->f)
        point_restore(p, c->f);
    return c;
}

static void cursor_give(struct gz_reader *g, struct cursor *c, bool usable)
{
    pthread_mutex_lock(&g->lock);
    if (!usable) {
        free(c->f);
        c->f = NULL;
        c->used = 0;
    }
    c->busy = false;
    pthread_cond_signal(&g->idle);
    pthread_mutex_unlock(&g->lock);
}

static enum xp_status fail_short(struct xp_error *err)
{
    return xp_fail(err, XP_STALE, 0, "gzip: the object became shorter while it was being read");
}

/* Inflates n bytes to nowhere. */
static enum xp_status skip(struct gz_reader *g, struct inflater *f, uint64_t n,
                           struct xp_error *err)
{
    uint8_t *scratch = malloc(SKIP_BYTES);
    enum xp_status status = XP_OK;
    if (!scratch)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    while (n && status == XP_OK) {
        uint32_t got, want = n < SKIP_BYTES ? (uint32_t)n : SKIP_BYTES;
        status = inflater_step(f, g->inner, scratch, want, &got, err);
        if (status == XP_OK && got == 0)
            status = fail_short(err);
        n -= got;
    }
    free(scratch);
    return status;
}

static enum xp_status gz_read(struct xp_reader *r, uint64_t off, void *buf, size_t n,
                              struct xp_error *err)
{
    struct gz_reader *g = (struct gz_reader *)r;
    struct cursor *c = cursor_take(g, off);
    enum xp_status status = XP_OK;
    if (!c->f)
        status = xp_fail(err, XP_BUSY, 0, "out of memory");
    else if (c->f->out_at < off)
        status = skip(g, c->f, off - c->f->out_at, err);
    for (size_t at = 0; at < n && status == XP_OK;) {
        uint32_t got, want = n - at < (256u << 20) ? (uint32_t)(n - at) : (256u << 20);
        status = inflater_step(c->f, g->inner, (uint8_t *)buf + at, want, &got, err);
        if (status == XP_OK && got == 0)
            status = fail_short(err);
        at += got;
    }
    cursor_give(g, c, status == XP_OK);
    return status;
}

static void gz_close(struct xp_reader *r)
{
    struct gz_reader *g = (struct gz_reader *)r;
    xp_reader_close(g->inner);
    gz_free(g);
}

static const struct xp_reader_ops gz_ops = {.read = gz_read, .close = gz_close};

/* --- opening --- */

struct opening {
    struct gz_reader *g;
    struct inflater *f;
    uint8_t *piece;
    uint64_t max_size;
    xp_gz_bytes_fn on_bytes;
    void *ctx;
};

/* One piece inflated, counted and handed on; *damage says what stopped the inflater. */
static enum xp_status open_step(struct opening *o, struct xp_error *damage, struct xp_error *err)
{
    struct gz_reader *g = o->g;
    uint32_t got;
    if (o->f->out_at >= g->spacing + g->points[g->n_points - 1].out_at)
        XP_TRY(point_add(g, o->f, err));
    enum xp_status status = inflater_step(o->f, g->inner, o->piece, PIECE_BYTES, &got, damage);
    if (status != XP_OK && status != XP_CORRUPT) { /* the storage, not the bytes */
        if (err)
            *err = *damage;
        return status;
    }
    if (o->f->out_at > o->max_size)
        return xp_fail(err, XP_TOO_LARGE, inflater_offset(o->f),
                       "gzip: inflates to more than the limit of %llu bytes",
                       (unsigned long long)o->max_size);
    g->base.size = o->f->out_at;
    return got && o->on_bytes ? o->on_bytes(o->ctx, xp_span_of(o->piece, got), err) : XP_OK;
}

static enum xp_status open_pass(struct opening *o, struct xp_error *damage, struct xp_error *err)
{
    inflater_start(o->f);
    XP_TRY(point_add(o->g, o->f, err));
    damage->status = XP_OK;
    while (!o->f->end && damage->status == XP_OK)
        XP_TRY(open_step(o, damage, err));
    return XP_OK;
}

static struct gz_reader *gz_new(struct xp_reader *inner)
{
    struct gz_reader *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->base.ops = &gz_ops;
    g->base.generation = xp_reader_generation(inner);
    g->inner = inner;
    g->spacing = SPACING;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->idle, NULL);
    return g;
}

enum xp_status xp_reader_open_gz_partial(struct xp_reader *inner, uint64_t max_size,
                                         xp_gz_bytes_fn on_bytes, void *ctx, struct xp_reader **out,
                                         struct xp_error *damage, struct xp_error *err)
{
    struct opening o = {
        .g = gz_new(inner),
        .f = malloc(sizeof *o.f),
        .piece = malloc(PIECE_BYTES),
        .max_size = max_size,
        .on_bytes = on_bytes,
        .ctx = ctx,
    };
    enum xp_status status = XP_BUSY;
    *out = NULL;
    if (o.g && o.f && o.piece)
        status = open_pass(&o, damage, err);
    else
        xp_fail(err, XP_BUSY, 0, "out of memory");
    free(o.f);
    free(o.piece);
    if (status == XP_OK)
        *out = &o.g->base;
    else if (o.g)
        gz_free(o.g);
    return status;
}

enum xp_status xp_reader_open_gz(struct xp_reader *inner, uint64_t max_size,
                                 xp_gz_bytes_fn on_bytes, void *ctx, struct xp_reader **out,
                                 struct xp_error *err)
{
    struct xp_error damage;
    struct xp_reader *r;
    *out = NULL;
    XP_TRY(xp_reader_open_gz_partial(inner, max_size, on_bytes, ctx, &r, &damage, err));
    if (damage.status != XP_OK) {
        gz_free((struct gz_reader *)r); /* inner stays the caller's */
        if (err)
            *err = damage;
        return damage.status;
    }
    *out = r;
    return XP_OK;
}
