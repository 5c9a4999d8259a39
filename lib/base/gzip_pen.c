#include "lib/base/gzip_pen.h"

#include <endian.h>
#include <pthread.h>
#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "lib/base/gzip_pen_code.h"

#define HISTORY XP_PEN_REACH
#define WINDOW (4 * HISTORY)
#define SLACK 16 /* bytes behind the text that are read, but never count */
#define MATCH_LEAST 4
#define MATCH_MOST 258
#define FIELDS_MAX 64
#define END_OF_BLOCK 256

/* --- the code: lengths are constants, codes follow from them as RFC 1951 says --- */

struct symbol {
    uint32_t bits;
    uint8_t n;
};

/* A distance's code, and what its further bits count from. */
struct distance {
    uint16_t bits, base;
    uint8_t n, all; /* bits of the code; and with the further ones */
};

static struct symbol length_of[MATCH_MOST + 1], end_of_block;
static struct distance distance[512]; /* of distances up to 256, then of their upper bits */
static uint8_t literal_n[256];        /* bits of a literal's code */
static uint32_t literals[1 << 16];    /* codes of two literals; above PAIR_BITS how many bits */
#define PAIR_BITS 24
static uint8_t head[400];
static size_t head_bits;

static uint32_t reversed(uint32_t code, unsigned n)
{
    uint32_t r = 0;
    for (unsigned i = 0; i < n; i++)
        r |= (code >> i & 1) << (n - 1 - i);
    return r;
}

static void assign(const uint8_t *lengths, size_t n, struct symbol *out)
{
    uint32_t code = 0;
    for (unsigned len = 1; len <= 15; len++, code <<= 1)
        for (size_t i = 0; i < n; i++)
            if (lengths[i] == len)
                out[i] = (struct symbol){reversed(code++, len), (uint8_t)len};
}

static void head_put(uint32_t v, unsigned n)
{
    for (unsigned i = 0; i < n; i++, head_bits++)
        head[head_bits / 8] |= (uint8_t)((v >> i & 1) << head_bits % 8);
}

/* A block with these code lengths, each written in four bits: its head. */
static void make_head(void)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    head_put(0, 1); /* not the last */
    head_put(2, 2);
    head_put(sizeof pen_literal_lengths - 257, 5);
    head_put(sizeof pen_distance_lengths - 1, 5);
    head_put(19 - 4, 4);
    for (int i = 0; i < 19; i++)
        head_put(order[i] < 16 ? 4 : 0, 3);
    for (size_t i = 0; i < sizeof pen_literal_lengths; i++)
        head_put(reversed(pen_literal_lengths[i], 4), 4);
    for (size_t i = 0; i < sizeof pen_distance_lengths; i++)
        head_put(reversed(pen_distance_lengths[i], 4), 4);
}

static void make_lengths(const struct symbol *code)
{
    unsigned len = 3;
    for (unsigned s = 0; s < 28; s++) {
        unsigned extra = s < 8 ? 0 : s / 4 - 1;
        for (uint32_t i = 0; i < 1u << extra && len < MATCH_MOST; i++, len++)
            length_of[len] = (struct symbol){code[257 + s].bits | i << code[257 + s].n,
                                             (uint8_t)(code[257 + s].n + extra)};
    }
    length_of[MATCH_MOST] = code[285];
}

static void make_distances(const struct symbol *code)
{
    unsigned at = 1;
    for (unsigned s = 0; s < 30; s++) {
        unsigned extra = s < 4 ? 0 : s / 2 - 1, base = at;
        for (unsigned i = 0; i < 1u << extra; i++, at++)
            distance[at <= 256 ? at - 1 : 256 + ((at - 1) >> 7)] = (struct distance){
                (uint16_t)code[s].bits, (uint16_t)base, code[s].n, (uint8_t)(code[s].n + extra)};
    }
}

static void make_literals(const struct symbol *code)
{
    for (unsigned a = 0; a < 256; a++) {
        literal_n[a] = code[a].n;
        for (unsigned b = 0; b < 256; b++) {
            unsigned n = code[a].n + code[b].n;
            XP_ASSERT(n <= PAIR_BITS);
            literals[a | b << 8] = code[a].bits | code[b].bits << code[a].n | n << PAIR_BITS;
        }
    }
}

static void make_code(void)
{
    struct symbol code[sizeof pen_literal_lengths] = {0}, far[sizeof pen_distance_lengths] = {0};
    assign(pen_literal_lengths, sizeof pen_literal_lengths, code);
    make_literals(code);
    end_of_block = code[END_OF_BLOCK];
    assign(pen_distance_lengths, sizeof pen_distance_lengths, far);
    make_lengths(code);
    make_distances(far);
    make_head();
}

/* --- the pen --- */

struct xp_pen {
    struct xp_gzip *gz;
    struct xp_buf *out;
    uint8_t *text; /* WINDOW bytes and SLACK */
    uint64_t base; /* what text[0] is in the whole */
    uint32_t n;    /* text written */
    uint32_t counted;
    uint32_t match, back; /* a match that may go on: its length and distance */
    uint64_t bits;        /* that are no whole byte yet */
    unsigned nbits;
    /* The last record waits until the next is written: what was just put into memory in small
     * pieces is slow to read in large ones. */
    uint32_t waits; /* its length */
    size_t nfields;
    struct xp_pen_field fields[FIELDS_MAX + 1];
};

/* What is written while a record is taken: a copy, so that it stays in registers. */
struct bits {
    uint64_t bits;
    unsigned n; /* below 8 between calls */
    uint8_t *p; /* in pen->out */
    uint32_t match, back;
};

struct xp_pen *xp_pen_new(struct xp_gzip *gz)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_code);
    struct xp_pen *pen = calloc(1, sizeof *pen);
    XP_ASSERT(pen);
    pen->gz = gz;
    pen->out = xp_gzip_pause(gz);
    pen->text = calloc(1, WINDOW + SLACK);
    XP_ASSERT(pen->text);
    xp_buf_add(pen->out, head, head_bits / 8);
    pen->nbits = head_bits % 8;
    pen->bits = pen->nbits ? head[head_bits / 8] : 0;
    return pen;
}

/* Calls would put what is written into memory, where it should stay in registers. */
#define INLINE static inline __attribute__((always_inline))

INLINE void put(struct bits *b, uint64_t bits, unsigned n)
{
    b->bits |= bits << b->n;
    b->n += n;
}

/* Whole bytes leave; there is room for 56 bits then. */
INLINE void spill(struct bits *b)
{
    uint64_t v = htole64(b->bits);
    memcpy(b->p, &v, 8);
    b->p += b->n / 8;
    b->bits >>= b->n & ~7u;
    b->n %= 8;
}

INLINE void put_match(struct bits *b)
{
    if (!b->match)
        return;
    uint32_t back = b->back - 1;
    const struct distance *at = &distance[back < 256 ? back : 256 + (back >> 7)];
    uint64_t bits = at->bits | (uint64_t)(b->back - at->base) << at->n;
    for (; b->match > MATCH_MOST; spill(b)) {
        uint32_t n =
            b->match < MATCH_MOST + MATCH_LEAST ? b->match - MATCH_LEAST : (uint32_t)MATCH_MOST;
        put(b, length_of[n].bits | bits << length_of[n].n, length_of[n].n + at->all);
        b->match -= n;
    }
    struct symbol len = length_of[b->match];
    put(b, len.bits | bits << len.n, len.n + at->all);
    spill(b);
    b->match = 0;
}

INLINE uint32_t two_at(const uint8_t *p)
{
    return literals[p[0] | p[1] << 8];
}

INLINE uint64_t code_of(uint32_t two)
{
    return two & ((1u << PAIR_BITS) - 1);
}

/* The first n of four literals at p: how many there are is not worth a branch. */
INLINE void put_last(struct bits *b, const uint8_t *p, size_t n)
{
    uint32_t x = two_at(p), y = two_at(p + 2);
    unsigned n2 = x >> PAIR_BITS;
    uint32_t upto =
        literal_n[p[0]] | n2 << 8 | (n2 + literal_n[p[2]]) << 16 | (n2 + (y >> PAIR_BITS)) << 24;
    unsigned take = upto >> (8 * (n - 1)) & 63;
    put(b, (code_of(x) | code_of(y) << n2) & ((UINT64_C(1) << take) - 1), take);
    spill(b);
}

INLINE void put_literals(struct bits *b, const uint8_t *p, const uint8_t *end)
{
    if (p == end)
        return;
    put_match(b);
    for (; end - p > 4; p += 4) {
        uint32_t x = two_at(p), y = two_at(p + 2);
        put(b, code_of(x), x >> PAIR_BITS);
        put(b, code_of(y), y >> PAIR_BITS);
        spill(b);
    }
    put_last(b, p, (size_t)(end - p));
}

static void count(struct xp_pen *pen)
{
    xp_gzip_count(pen->gz, xp_span_of(pen->text + pen->counted, pen->n - pen->counted));
    pen->counted = pen->n;
}

/* How many of up to `most` bytes at a and b agree. */
INLINE uint32_t agree(const uint8_t *a, const uint8_t *b, uint32_t most)
{
    uint32_t n = 0;
#ifdef __SSE2__
    for (; n < most; n += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(a + n));
        __m128i y = _mm_loadu_si128((const __m128i *)(b + n));
        unsigned differ = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, y)) ^ 0xffff;
        if (differ) {
            n += (unsigned)__builtin_ctz(differ);
            break;
        }
    }
#else
    while (n < most && a[n] == b[n])
        n++;
#endif
    return n < most ? n : most;
}

/* What stands at `at` is taken to be like what stands at `like`, in `sure` bytes for certain; the
 * place up to which it is. */
INLINE uint32_t take_like(struct bits *b, const uint8_t *text, uint32_t at, uint64_t like,
                          uint32_t sure, uint32_t end, bool look)
{
    if (like >= at || at - like > HISTORY)
        return at;
    uint32_t back = at - (uint32_t)like, same = sure;
    if (look)
        same += agree(text + at + same, text + like + same, end - at - same);
    if (b->match && b->back == back) {
        b->match += same;
        return at + same;
    }
    if (same < MATCH_LEAST)
        return at;
    put_match(b);
    b->match = same;
    b->back = back;
    return at + same;
}

INLINE uint8_t *room_for(struct xp_buf *b, size_t n)
{
    return b->cap - b->n >= n && !b->failed ? b->p + b->n : xp_buf_room(b, n);
}

static void encode(struct xp_pen *pen)
{
    if (!pen->waits)
        return;
    const uint8_t *text = pen->text;
    uint32_t from = pen->n - pen->waits, at = from, end = pen->n;
    uint8_t *room = room_for(pen->out, (size_t)pen->waits * 2 + 64);
    struct bits b = {pen->bits, pen->nbits, room, pen->match, pen->back};
    pen->waits = 0;
    if (!room)
        return;
    pen->fields[pen->nfields] = (struct xp_pen_field){.at = end - from};
    for (size_t i = 0; i < pen->nfields; i++) {
        const struct xp_pen_field *f = &pen->fields[i];
        uint32_t next = from + f[1].at, past = at - from - f->at;
        if (at >= next)
            continue; /* it is empty, or the last match goes on behind it */
        uint32_t sure = f->sure > past && f->like ? f->sure - past : 0;
        bool look = !f[1].sure || from + f->at + f->sure < next;
        at = take_like(&b, text, at, f->like - pen->base - 1 + past, sure, end, look);
        if (at < next) {
            put_literals(&b, text + at, text + next);
            at = next;
        }
    }
    if (b.match > MATCH_MOST)
        put_match(&b);
    pen->bits = b.bits;
    pen->nbits = b.n;
    pen->match = b.match;
    pen->back = b.back;
    pen->out->n = (size_t)(b.p - pen->out->p);
}

void xp_pen_record(struct xp_pen *pen, size_t n, const struct xp_pen_field *fields, size_t nfields)
{
    XP_ASSERT(nfields <= FIELDS_MAX);
    encode(pen);
    for (size_t i = 0; i < nfields; i++)
        pen->fields[i] = fields[i];
    pen->nfields = nfields;
    pen->waits = (uint32_t)n;
    pen->n += (uint32_t)n;
}

void xp_pen_free(struct xp_pen *pen)
{
    if (!pen)
        return;
    encode(pen);
    count(pen);
    struct bits b = {pen->bits, pen->nbits, xp_buf_room(pen->out, 64), pen->match, pen->back};
    if (b.p) {
        put_match(&b);
        put(&b, end_of_block.bits, end_of_block.n);
        put(&b, 0, 3); /* an empty stored block: to a whole byte */
        spill(&b);
        b.n = b.n ? 8 : 0;
        spill(&b);
        memcpy(b.p, "\0\0\xff\xff", 4);
        pen->out->n = (size_t)(b.p + 4 - pen->out->p);
    }
    free(pen->text);
    free(pen);
}

static void slide(struct xp_pen *pen)
{
    encode(pen);
    count(pen);
    uint32_t by = pen->n - HISTORY;
    memmove(pen->text, pen->text + by, HISTORY);
    pen->base += by;
    pen->n = pen->counted = HISTORY;
}

uint8_t *xp_pen_room(struct xp_pen *pen, size_t n)
{
    XP_ASSERT(n <= XP_PEN_RECORD_MAX);
    if (n > WINDOW - pen->n)
        slide(pen);
    return pen->text + pen->n;
}

uint64_t xp_pen_place(const struct xp_pen *pen)
{
    return pen->base + pen->n + 1;
}

/* The place behind the next comma from p on. */
static uint32_t comma(const uint8_t *p, uint32_t at, uint32_t end)
{
    const uint8_t *c = at < end ? memchr(p + at, ',', end - at) : NULL;
    return c ? (uint32_t)(c - p) + 1 : end;
}

static void text_piece(struct xp_pen *pen, struct xp_span text, uint64_t like)
{
    struct xp_pen_field f[FIELDS_MAX] = {{0, like, 0}};
    uint32_t n = (uint32_t)text.n;
    memcpy(xp_pen_room(pen, n), text.p, n);
    uint64_t from = like - 1 - pen->base;
    size_t nf = 1;
    if (from < pen->n)
        for (uint32_t at = 0, is = (uint32_t)from; nf < FIELDS_MAX; nf++) {
            at = comma(text.p, at, n);
            is = comma(pen->text, is, pen->n);
            if (at == n || is == pen->n)
                break;
            f[nf] = (struct xp_pen_field){at, pen->base + is + 1, 0};
        }
    xp_pen_record(pen, n, f, nf);
}

void xp_pen_text(struct xp_pen *pen, struct xp_span text, uint64_t like)
{
    while (text.n) {
        size_t n = text.n < XP_PEN_RECORD_MAX ? text.n : XP_PEN_RECORD_MAX;
        text_piece(pen, xp_span_of(text.p, n), like);
        text = xp_span_of(text.p + n, text.n - n);
        like = 0;
    }
}
