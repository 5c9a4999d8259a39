/* tests/fuzz/fuzz_tools.c - profiles of real shape, mutated field by field, through every tool and
 * every report.
 *
 * fuzz_load breaks framing and fuzz_built makes its own planes; here the framing stays whole, so
 * that what is damaged gets deep: an HLO proto loses its operands, a step its number, a stat turns
 * into another type. The corpus holds whole profiles (gzipped); each input is taken as it is and
 * in MUTANTS versions that depend on its bytes alone.
 *
 * A mutation walks down from the file into messages that look like some, picks a field, and drops,
 * doubles, swaps, cuts or overwrites it; the lengths around it are written anew.
 */
#include "lib/base/gzip.h"
#include "lib/base/pb_wire.h"
#include "tests/fuzz/shard_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

#define MUTANTS 6
#define FIELDS_MAX 4096
#define DEPTH_MAX 16
#define PROFILE_MAX ((size_t)1 << 20)

/* --- mutations --- */

static uint64_t next(uint64_t *rng)
{
    *rng ^= *rng << 13;
    *rng ^= *rng >> 7;
    *rng ^= *rng << 17;
    return *rng;
}

struct piece {
    size_t begin, end; /* with its tag */
    uint32_t num;
    enum xp_pb_type type;
    struct xp_span bytes;
};

/* The message's fields; 0 if it is none. */
static size_t split(struct xp_span s, struct piece *v)
{
    struct xp_pb r = xp_pb_open(s);
    struct xp_pb_field f;
    size_t n = 0, at = 0;
    while (n < FIELDS_MAX && xp_pb_next(&r, &f)) {
        size_t end = (size_t)(r.p - s.p);
        v[n++] = (struct piece){at, end, f.num, f.type, f.bytes};
        at = end;
    }
    return r.bad ? 0 : n;
}

static void put_number(struct xp_buf *b, const struct piece *p, uint64_t *rng)
{
    static const uint64_t odd[] = {0,          1,          2,       127,          1u << 31,
                                   UINT32_MAX, INT64_MAX,  1,       UINT64_MAX,   1ull << 63,
                                   100000,     1000000000, 1 << 20, (uint64_t)-2, 17};
    uint64_t v = odd[next(rng) % (sizeof odd / sizeof *odd)];
    if (p->type == XP_PB_FIXED64) {
        xp_pb_put_varint(b, (uint64_t)p->num << 3 | XP_PB_FIXED64);
        xp_buf_add(b, &v, 8);
    } else {
        xp_pb_put_u64(b, p->num, v);
    }
}

static void put_text(struct xp_buf *b, const struct piece *p, const struct piece *other,
                     uint64_t *rng)
{
    struct xp_span s = p->bytes;
    if (next(rng) % 3 == 0 && other->type == XP_PB_LEN)
        s = other->bytes;
    else
        s.n = s.n ? next(rng) % s.n : 0;
    xp_pb_put_bytes(b, p->num, s);
}

/* One field of the message, changed. */
static void change(struct xp_span s, const struct piece *v, size_t n, struct xp_buf *b,
                   uint64_t *rng)
{
    size_t i = next(rng) % n, k = next(rng) % n;
    struct xp_span own = xp_span_of(s.p + v[i].begin, v[i].end - v[i].begin);
    struct xp_span other = xp_span_of(s.p + v[k].begin, v[k].end - v[k].begin);
    xp_buf_add(b, s.p, v[i].begin);
    switch (next(rng) % 6) {
    case 0:
        break; /* gone */
    case 1:
        xp_buf_span(b, own);
        xp_buf_span(b, own);
        break;
    case 2:
        xp_buf_span(b, other);
        break;
    default:
        if (v[i].type == XP_PB_LEN)
            put_text(b, &v[i], &v[k], rng);
        else if (v[i].type == XP_PB_VARINT || v[i].type == XP_PB_FIXED64)
            put_number(b, &v[i], rng);
        else
            xp_buf_span(b, own);
    }
    xp_buf_add(b, s.p + v[i].end, s.n - v[i].end);
}

static struct xp_buf mutate(struct xp_span whole, uint64_t *rng)
{
    struct xp_span at[DEPTH_MAX] = {whole};
    struct piece in[DEPTH_MAX];
    struct piece *v = malloc(FIELDS_MAX * sizeof *v);
    size_t depth = 0, n;
    struct xp_buf b;
    XP_ASSERT(v);
    xp_buf_init(&b, 4 * PROFILE_MAX);
    for (;; depth++) {
        n = split(at[depth], v);
        const struct piece *down = n ? &v[next(rng) % n] : NULL;
        if (!down || depth + 1 == DEPTH_MAX || down->type != XP_PB_LEN || !down->bytes.n)
            break;
        struct xp_pb probe = xp_pb_open(down->bytes);
        struct xp_pb_field f;
        if (!xp_pb_next(&probe, &f) || next(rng) % 8 == 0)
            break;
        in[depth] = *down;
        at[depth + 1] = down->bytes;
    }
    if (n)
        change(at[depth], v, n, &b, rng);
    while (depth-- > 0) {
        struct xp_buf up;
        xp_buf_init(&up, 4 * PROFILE_MAX);
        xp_buf_add(&up, at[depth].p, in[depth].begin);
        xp_pb_put_bytes(&up, in[depth].num, xp_buf_all(&b));
        xp_buf_add(&up, at[depth].p + in[depth].end, at[depth].n - in[depth].end);
        xp_buf_fini(&b);
        b = up;
    }
    free(v);
    return b;
}

static struct xp_buf mutate_some(struct xp_span s, uint64_t seed)
{
    uint64_t rng = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    struct xp_buf b;
    xp_buf_init(&b, 4 * PROFILE_MAX);
    xp_buf_span(&b, s);
    for (unsigned i = 0; i < 1 + seed % 12; i++) {
        struct xp_buf changed = mutate(xp_buf_all(&b), &rng);
        xp_buf_fini(&b);
        b = changed;
    }
    return b;
}

/* --- a profile --- */

static struct xp_buf unzipped(const uint8_t *data, size_t size)
{
    struct xp_buf b;
    xp_buf_init(&b, PROFILE_MAX);
    if (size < 2 || data[0] != 0x1f || data[1] != 0x8b) {
        xp_buf_add(&b, data, size);
        return b;
    }
    struct xp_gunzip *g = xp_gunzip_new(xp_span_of(data, size));
    uint8_t piece[4096];
    size_t got;
    while (g && !b.failed && xp_gunzip_read(g, piece, sizeof piece, &got) == XP_OK && got)
        xp_buf_add(&b, piece, got);
    xp_gunzip_free(g);
    return b;
}

static void try_profile(struct xp_span s)
{
    uint8_t ask[2] = {(uint8_t)s.n, (uint8_t)(s.n >> 8)};
    load(s.p, s.n, false, ask);
}

/* Mutants are zipped, as the kept profiles are: plain, most would be longer than a fuzzer's inputs.
 * The byte that names the system that zipped them tells the two apart. */
#define OS_AT 9
#define OS_MUTANT 0x2a

static bool is_mutant(const uint8_t *data, size_t size)
{
    return size > OS_AT && data[0] == 0x1f && data[OS_AT] == OS_MUTANT;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    struct xp_buf plain = unzipped(data, size), b = mutate_some(xp_buf_all(&plain), seed), zipped;
    xp_buf_init(&zipped, PROFILE_MAX);
    struct xp_gzip *g = xp_gzip_new(&zipped);
    xp_gzip_add(g, xp_buf_all(&b));
    xp_gzip_end(g);
    size_t n = zipped.failed ? 0 : zipped.n;
    if (n > OS_AT && n <= max) {
        memcpy(data, zipped.p, n);
        data[OS_AT] = OS_MUTANT;
    }
    xp_buf_fini(&plain);
    xp_buf_fini(&b);
    xp_buf_fini(&zipped);
    return n > OS_AT && n <= max ? n : size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct xp_buf b = unzipped(data, size);
    bool kept = !is_mutant(data, size);
    if (b.n)
        try_profile(xp_buf_all(&b));
    for (uint64_t i = 0; kept && i < MUTANTS; i++) {
        struct xp_buf m = mutate_some(xp_buf_all(&b), i * 7 + b.n);
        try_profile(xp_buf_all(&m));
        xp_buf_fini(&m);
    }
    xp_buf_fini(&b);
    return 0;
}
