#include "lib/base/json_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "lib/base/utf8.h"

#define DEPTH_MAX 32

/* xp_buf_room, with the common case in line: half the time of writing a number. */
static inline uint8_t *room(struct xp_buf *b, size_t n)
{
    if (n <= b->cap - b->n && b->p && !b->failed)
        return b->p + b->n;
    return xp_buf_room(b, n);
}

/* --- numbers --- */

static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233"
                            "34353637383940414243444546474849505152535455565758596061626364656667"
                            "6869707172737475767778798081828384858687888990919293949596979899";

static unsigned digits(uint64_t v)
{
    static const uint64_t powers[] = {0,
                                      10,
                                      100,
                                      1000,
                                      10000,
                                      100000,
                                      1000000,
                                      10000000,
                                      100000000,
                                      1000000000,
                                      10000000000,
                                      100000000000,
                                      1000000000000,
                                      10000000000000,
                                      100000000000000,
                                      1000000000000000,
                                      10000000000000000,
                                      100000000000000000,
                                      1000000000000000000,
                                      10000000000000000000u};
    /* log10(2) is about 1233/4096: right or one too many, which the table settles. */
    unsigned guess = ((unsigned)(64 - __builtin_clzll(v | 1)) * 1233) >> 12;
    return guess + (v >= powers[guess]);
}

/* v in exactly n digits, with zeros in front. */
static void put_digits(uint8_t *p, uint64_t v, unsigned n)
{
    while (n >= 2) {
        n -= 2;
        memcpy(p + n, pairs + v % 100 * 2, 2);
        v /= 100;
    }
    if (n)
        p[0] = (uint8_t)('0' + v % 10);
}

void xp_text_u64(struct xp_buf *b, uint64_t v)
{
    unsigned n = digits(v);
    uint8_t *p = room(b, n);
    if (!p)
        return;
    put_digits(p, v, n);
    b->n += n;
}

static void text_i64(struct xp_buf *b, int64_t v)
{
    if (v < 0)
        xp_buf_byte(b, '-');
    xp_text_u64(b, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

/* millionths / 10^6, without trailing zeros. */
static void text_millionths(struct xp_buf *b, uint64_t millionths)
{
    uint64_t whole = millionths / 1000000, rest = millionths % 1000000;
    unsigned n = digits(whole), after = 6;
    if (rest == 0) {
        xp_text_u64(b, whole);
        return;
    }
    while (rest % 10 == 0) {
        rest /= 10;
        after--;
    }
    uint8_t *p = room(b, n + 1 + after);
    if (!p)
        return;
    put_digits(p, whole, n);
    p[n] = '.';
    put_digits(p + n + 1, rest, after);
    b->n += n + 1 + after;
}

void xp_text_us_from_ps(struct xp_buf *b, int64_t ps)
{
    if (ps < 0)
        xp_buf_byte(b, '-');
    text_millionths(b, ps < 0 ? -(uint64_t)ps : (uint64_t)ps);
}

/* A double that is k / 10^6 with k below 10^15 has at most 15 digits, and no other decimal of so
 * few digits reads back as it: the short form needs no trial. The quotient of two exact doubles is
 * rounded as a reader of the decimal text rounds it, so that the comparison proves the text. */
static bool text_short_double(struct xp_buf *b, double v)
{
    double a = fabs(v);
    if (!(a < 1e9) || (a < 1e-6 && a != 0))
        return false;
    double k = nearbyint(a * 1e6);
    if (k / 1e6 != a)
        return false;
    if (signbit(v))
        xp_buf_byte(b, '-');
    text_millionths(b, (uint64_t)k);
    if (a == 0 && signbit(v))
        xp_buf_str(b, ".0");
    return true;
}

static void text_double(struct xp_buf *b, double v)
{
    if (text_short_double(b, v))
        return;
    if (fabs(v) < 1e15 && v == nearbyint(v)) {
        text_i64(b, (int64_t)v);
        return;
    }
    char t[32];
    int n = 0;
    for (int precision = 15; precision <= 17; precision++) {
        n = snprintf(t, sizeof t, "%.*g", precision, v);
        if (strtod(t, NULL) == v)
            break;
    }
    xp_buf_add(b, t, (size_t)n);
}

/* --- strings --- */

static bool plain(uint8_t c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\' && c != '<';
}

/* How many bytes from p on need no look. */
static size_t plain_run(const uint8_t *p, size_t n)
{
    size_t i = 0;
#ifdef __SSE2__
    const __m128i space = _mm_set1_epi8(0x20), quote = _mm_set1_epi8('"');
    const __m128i slash = _mm_set1_epi8('\\'), less = _mm_set1_epi8('<');
    for (; n - i >= 16; i += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(p + i));
        /* Signed: bytes from 0x80 on are below 0x20 as well. */
        __m128i bad = _mm_or_si128(_mm_cmplt_epi8(v, space), _mm_cmpeq_epi8(v, quote));
        bad = _mm_or_si128(bad, _mm_cmpeq_epi8(v, slash));
        bad = _mm_or_si128(bad, _mm_cmpeq_epi8(v, less));
        unsigned mask = (unsigned)_mm_movemask_epi8(bad);
        if (mask)
            return i + (unsigned)__builtin_ctz(mask);
    }
#endif
    while (i < n && plain(p[i]))
        i++;
    return i;
}

static void escape_ascii(struct xp_buf *b, uint8_t c)
{
    static const char hex[] = "0123456789abcdef";
    switch (c) {
    case '"':
        xp_buf_add(b, "\\\"", 2);
        return;
    case '\\':
        xp_buf_add(b, "\\\\", 2);
        return;
    case '\n':
        xp_buf_add(b, "\\n", 2);
        return;
    case '\r':
        xp_buf_add(b, "\\r", 2);
        return;
    case '\t':
        xp_buf_add(b, "\\t", 2);
        return;
    default: {
        char t[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
        xp_buf_add(b, t, sizeof t);
    }
    }
}

/* U+2028 and U+2029 end a line in a script. */
static bool line_separator(const uint8_t *p, size_t n)
{
    return n == 3 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9);
}

static size_t escape_wide(struct xp_buf *b, const uint8_t *p, const uint8_t *end)
{
    bool ok;
    size_t n = xp_utf8_step(p, end, &ok);
    if (!ok)
        xp_buf_add(b, "\xef\xbf\xbd", 3);
    else if (line_separator(p, n))
        xp_buf_add(b, p[2] == 0xa8 ? "\\u2028" : "\\u2029", 6);
    else
        xp_buf_add(b, p, n);
    return n;
}

static void escape_rest(struct xp_buf *b, const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        size_t run = plain_run(p, (size_t)(end - p));
        xp_buf_add(b, p, run);
        p += run;
        if (p == end)
            break;
        if (*p < 0x80)
            escape_ascii(b, *p++);
        else
            p += escape_wide(b, p, end);
    }
}

void xp_json_escape(struct xp_buf *b, struct xp_span s)
{
    size_t run = s.n ? plain_run(s.p, s.n) : 0;
    uint8_t *p = room(b, run + 2);
    if (!p)
        return;
    *p++ = '"';
    if (run)
        memcpy(p, s.p, run);
    if (run == s.n) {
        p[run] = '"';
        b->n += run + 2;
        return;
    }
    b->n += run + 1;
    escape_rest(b, s.p + run, s.p + s.n);
    xp_buf_byte(b, '"');
}

/* --- structure --- */

void xp_json_init(struct xp_json *j, struct xp_buf *b)
{
    *j = (struct xp_json){.b = b};
}

/* Whether a comma is due before a value or a key. */
static inline bool comma_due(struct xp_json *j)
{
    if (j->named) {
        j->named = false;
        return false;
    }
    uint32_t bit = UINT32_C(1) << j->depth;
    bool due = j->comma & bit;
    j->comma |= bit;
    return due;
}

static inline void separate(struct xp_json *j)
{
    if (comma_due(j))
        xp_buf_byte(j->b, ',');
}

static void open_container(struct xp_json *j, uint8_t c)
{
    separate(j);
    xp_buf_byte(j->b, c);
    if (j->depth == DEPTH_MAX - 1) {
        j->b->failed = true;
        return;
    }
    j->depth++;
    j->comma &= ~(UINT32_C(1) << j->depth);
}

static void close_container(struct xp_json *j, uint8_t c)
{
    xp_buf_byte(j->b, c);
    j->named = false;
    if (j->depth > 0)
        j->depth--;
}

void xp_json_obj(struct xp_json *j)
{
    open_container(j, '{');
}

void xp_json_obj_end(struct xp_json *j)
{
    close_container(j, '}');
}

void xp_json_arr(struct xp_json *j)
{
    open_container(j, '[');
}

void xp_json_arr_end(struct xp_json *j)
{
    close_container(j, ']');
}

void xp_json_key(struct xp_json *j, const char *key)
{
    size_t n = strlen(key);
    bool comma = comma_due(j);
    j->named = true;
    uint8_t *p = room(j->b, comma + n + 3);
    if (!p)
        return;
    if (comma)
        *p++ = ',';
    p[0] = '"';
    memcpy(p + 1, key, n);
    p[n + 1] = '"';
    p[n + 2] = ':';
    j->b->n += comma + n + 3;
}

void xp_json_key_span(struct xp_json *j, struct xp_span key)
{
    separate(j);
    xp_json_escape(j->b, key);
    xp_buf_byte(j->b, ':');
    j->named = true;
}

void xp_json_span(struct xp_json *j, struct xp_span s)
{
    separate(j);
    xp_json_escape(j->b, s);
}

void xp_json_str(struct xp_json *j, const char *s)
{
    xp_json_span(j, xp_span_str(s));
}

void xp_json_i64(struct xp_json *j, int64_t v)
{
    separate(j);
    text_i64(j->b, v);
}

void xp_json_u64(struct xp_json *j, uint64_t v)
{
    separate(j);
    xp_text_u64(j->b, v);
}

void xp_json_bool(struct xp_json *j, bool v)
{
    separate(j);
    xp_buf_str(j->b, v ? "true" : "false");
}

void xp_json_null(struct xp_json *j)
{
    separate(j);
    xp_buf_add(j->b, "null", 4);
}

void xp_json_double(struct xp_json *j, double v)
{
    separate(j);
    if (isfinite(v))
        text_double(j->b, v);
    else
        xp_buf_add(j->b, "null", 4);
}

void xp_json_raw(struct xp_json *j, struct xp_span text)
{
    separate(j);
    xp_buf_span(j->b, text);
}

void xp_json_us_from_ps(struct xp_json *j, int64_t ps)
{
    separate(j);
    xp_text_us_from_ps(j->b, ps);
}
