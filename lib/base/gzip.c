#include "lib/base/gzip.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>

/* ISA-L counts in 32 bits. */
#define PIECE_MAX (1u << 30)
#define HEADER_N 10

/* --- out --- */

struct xp_gzip {
    struct xp_buf *out;
    uint32_t crc; /* of the text so far, */
    uint64_t total;
    bool unflushed;
    struct isal_zstream z;
    uint8_t level_buf[ISAL_DEF_LVL1_DEFAULT];
};

struct xp_gzip *xp_gzip_new(struct xp_buf *out)
{
    static const uint8_t header[HEADER_N] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};
    struct xp_gzip *g = malloc(sizeof *g);
    XP_ASSERT(g);
    g->out = out;
    isal_deflate_init(&g->z);
    g->z.level = 1;
    g->z.level_buf = g->level_buf;
    g->z.level_buf_size = sizeof g->level_buf;
    g->z.gzip_flag = IGZIP_DEFLATE;
    g->z.flush = NO_FLUSH;
    g->z.end_of_stream = 0;
    g->crc = 0;
    g->total = 0;
    g->unflushed = false;
    xp_buf_add(out, header, sizeof header);
    return g;
}

/* Room for about what is to come, never more than the buffer's limit allows. */
static bool give_room(struct xp_gzip *g)
{
    struct xp_buf *b = g->out;
    size_t want = g->z.avail_in / 4 + 4096, left = b->max - b->n;
    if (b->p && b->cap - b->n >= 1024)
        want = b->cap - b->n;
    if (want > left)
        want = left ? left : 1;
    uint8_t *p = xp_buf_room(b, want);
    if (!p)
        return false;
    g->z.next_out = p;
    g->z.avail_out = want > PIECE_MAX ? PIECE_MAX : (uint32_t)want;
    return true;
}

static bool deflate_some(struct xp_gzip *g)
{
    if (!give_room(g))
        return false;
    uint32_t room = g->z.avail_out;
    int rc = isal_deflate(&g->z);
    XP_ASSERT(rc == COMP_OK);
    g->out->n += room - g->z.avail_out;
    return true;
}

void xp_gzip_count(struct xp_gzip *g, struct xp_span text)
{
    g->crc = crc32_gzip_refl(g->crc, text.p, text.n);
    g->total += text.n;
}

void xp_gzip_add(struct xp_gzip *g, struct xp_span s)
{
    xp_gzip_count(g, s);
    g->unflushed |= s.n > 0;
    while (s.n) {
        uint32_t n = s.n > PIECE_MAX ? PIECE_MAX : (uint32_t)s.n;
        g->z.next_in = (uint8_t *)(uintptr_t)s.p;
        g->z.avail_in = n;
        do {
            if (!deflate_some(g))
                return;
        } while (g->z.avail_in || g->z.avail_out == 0);
        s = xp_span_of(s.p + n, s.n - n);
    }
}

struct xp_buf *xp_gzip_pause(struct xp_gzip *g)
{
    g->z.avail_in = 0;
    g->z.flush = FULL_FLUSH;
    while (g->unflushed && deflate_some(g))
        if (g->z.avail_out)
            g->unflushed = false;
    g->z.flush = NO_FLUSH;
    return g->out;
}

static void add_u32(struct xp_buf *b, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        xp_buf_byte(b, (uint8_t)(v >> 8 * i));
}

void xp_gzip_end(struct xp_gzip *g)
{
    g->z.end_of_stream = 1;
    g->z.flush = NO_FLUSH;
    g->z.avail_in = 0;
    while (g->z.internal_state.state != ZSTATE_END && deflate_some(g)) {
    }
    add_u32(g->out, g->crc);
    add_u32(g->out, (uint32_t)g->total);
    free(g);
}

struct xp_gzip_part xp_gzip_part(struct xp_gzip *g)
{
    const struct xp_buf *b = xp_gzip_pause(g);
    size_t n = b->n > HEADER_N ? b->n - HEADER_N : 0;
    return (struct xp_gzip_part){xp_span_of(n ? b->p + HEADER_N : NULL, n), g->total, g->crc};
}

/* Polynomials over GF(2) modulo the CRC's; bit 31 is x^0. */
static uint32_t poly_times(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = UINT32_C(1) << 31; bit; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = b & 1 ? b >> 1 ^ UINT32_C(0xedb88320) : b >> 1;
    }
    return product;
}

/* What a CRC becomes when n bytes of zero follow: times x^(8n). */
static uint32_t crc_shifted(uint32_t crc, uint64_t n)
{
    uint32_t power = UINT32_C(1) << 31, square = UINT32_C(1) << 23;
    for (; n; n >>= 1, square = poly_times(square, square))
        if (n & 1)
            power = poly_times(power, square);
    return poly_times(power, crc);
}

void xp_gzip_join(struct xp_gzip *g, const struct xp_gzip_part *part)
{
    xp_buf_span(xp_gzip_pause(g), part->blocks);
    g->crc = crc_shifted(g->crc, part->n) ^ part->crc;
    g->total += part->n;
}

void xp_gzip_drop(struct xp_gzip *g)
{
    free(g);
}

/* --- in --- */

struct xp_gunzip {
    struct xp_span left;
    struct inflate_state z;
    bool whole; /* the last member is complete */
};

static void begin_member(struct xp_gunzip *g)
{
    isal_inflate_init(&g->z);
    g->z.crc_flag = ISAL_GZIP;
    g->whole = false;
}

struct xp_gunzip *xp_gunzip_new(struct xp_span in)
{
    struct xp_gunzip *g = malloc(sizeof *g);
    XP_ASSERT(g);
    g->left = in;
    begin_member(g);
    return g;
}

/* One call of the inflater; what it did not take stays in g->left. */
static enum xp_status inflate_some(struct xp_gunzip *g, uint8_t *to, size_t n, size_t *got)
{
    uint32_t in = g->left.n > PIECE_MAX ? PIECE_MAX : (uint32_t)g->left.n;
    uint32_t room = n > PIECE_MAX ? PIECE_MAX : (uint32_t)n;
    g->z.next_in = (uint8_t *)(uintptr_t)g->left.p;
    g->z.avail_in = in;
    g->z.next_out = to;
    g->z.avail_out = room;
    int rc = isal_inflate(&g->z);
    uint32_t took = in - g->z.avail_in;
    *got = room - g->z.avail_out;
    g->left = xp_span_of(took ? g->left.p + took : g->left.p, g->left.n - took);
    g->whole = g->z.block_state == ISAL_BLOCK_FINISH;
    if (rc < 0 || (rc > 0 && rc != ISAL_END_INPUT && rc != ISAL_OUT_OVERFLOW))
        return XP_CORRUPT;
    if (!g->whole && took == 0 && *got == 0)
        return XP_CORRUPT;
    return XP_OK;
}

enum xp_status xp_gunzip_read(struct xp_gunzip *g, void *buf, size_t n, size_t *got)
{
    *got = 0;
    while (*got < n) {
        if (g->whole && g->left.n == 0)
            return XP_OK;
        if (g->whole)
            begin_member(g);
        size_t more;
        XP_TRY(inflate_some(g, (uint8_t *)buf + *got, n - *got, &more));
        *got += more;
    }
    return XP_OK;
}

void xp_gunzip_free(struct xp_gunzip *g)
{
    free(g);
}
