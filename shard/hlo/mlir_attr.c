/* Attributes and types of MLIR's builtin dialect, as MLIR prints them. */
#include "shard/hlo/mlir_int.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum attr_code {
    ATTR_ARRAY,
    ATTR_DICTIONARY,
    ATTR_STRING,
    ATTR_STRING_WITH_TYPE,
    ATTR_SYMBOL,
    ATTR_NESTED_SYMBOL,
    ATTR_TYPE,
    ATTR_UNIT,
    ATTR_INTEGER,
    ATTR_FLOAT,
    ATTR_DENSE_ARRAY = 17,
    ATTR_DENSE = 18
};

enum type_code {
    TYPE_INTEGER,
    TYPE_INDEX,
    TYPE_FUNCTION,
    TYPE_BF16,
    TYPE_F16,
    TYPE_F32,
    TYPE_F64,
    TYPE_COMPLEX = 9,
    TYPE_MEMREF,
    TYPE_MEMREF_IN,
    TYPE_NONE,
    TYPE_TENSOR,
    TYPE_TUPLE = 15,
    TYPE_VECTOR = 19
};

static struct mlir_in open_entry(const struct mlir_entry *e, uint64_t *code)
{
    struct mlir_in in = {e->bytes.p, e->bytes.p ? e->bytes.p + e->bytes.n : NULL, !e->encoded};
    *code = in.bad ? UINT64_MAX : mlir_varint(&in);
    return in;
}

static int64_t signed_of(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* An entry that is text ends with a 0. */
static struct xp_span text_of(const struct mlir_entry *e)
{
    return xp_span_of(e->bytes.p,
                      e->bytes.n && !e->bytes.p[e->bytes.n - 1] ? e->bytes.n - 1 : e->bytes.n);
}

static void put_string(struct xp_buf *out, struct xp_span s)
{
    xp_buf_byte(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\\')
            xp_buf_str(out, "\\\\");
        else if (s.p[i] >= ' ' && s.p[i] < 0x7f && s.p[i] != '"')
            xp_buf_byte(out, s.p[i]);
        else
            xp_buf_fmt(out, "\\%02X", s.p[i]);
    }
    xp_buf_byte(out, '"');
}

static bool is_word(struct xp_span s, bool dots)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        bool other = (c >= '0' && c <= '9') || c == '$' || (dots && c == '.');
        if (!letter && (!other || i == 0))
            return false;
    }
    return s.n > 0;
}

/* The text of a string attribute. */
static bool string_of(const struct mlir *m, uint32_t attr, struct xp_span *s)
{
    uint64_t code;
    if (attr >= m->nattrs)
        return false;
    struct mlir_in in = open_entry(&m->attrs[attr], &code);
    if (code != ATTR_STRING && code != ATTR_STRING_WITH_TYPE)
        return false;
    *s = m->nstrings ? m->strings[mlir_index(&in, m->nstrings)] : (struct xp_span){0};
    return !in.bad;
}

/* --- types --- */

static bool put_types(const struct mlir *m, struct mlir_in *in, struct xp_buf *out, int depth)
{
    for (uint64_t i = 0, n = mlir_varint(in); i < n; i++) {
        xp_buf_str(out, i ? ", " : "");
        if (in->bad || !mlir_put_type(m, mlir_index(in, m->ntypes), out, depth))
            return false;
    }
    return !in->bad;
}

static bool put_function(const struct mlir *m, struct mlir_in *in, struct xp_buf *out, int depth)
{
    xp_buf_byte(out, '(');
    if (!put_types(m, in, out, depth))
        return false;
    struct mlir_in peek = *in;
    uint64_t code = UINT64_MAX;
    bool one = mlir_varint(&peek) == 1;
    if (one && !peek.bad)
        open_entry(&m->types[mlir_index(&peek, m->ntypes)], &code);
    one = one && code != TYPE_FUNCTION;
    xp_buf_str(out, one ? ") -> " : ") -> (");
    bool ok = put_types(m, in, out, depth);
    xp_buf_str(out, one ? "" : ")");
    return ok;
}

#define DYNAMIC INT64_MIN /* a length that is not known */

static void put_shape(struct mlir_in *in, struct xp_buf *out, uint64_t *rank)
{
    *rank = mlir_varint(in);
    for (uint64_t i = 0; i < *rank && !in->bad; i++) {
        int64_t n = signed_of(mlir_varint(in));
        if (n == DYNAMIC)
            xp_buf_str(out, "?x");
        else
            xp_buf_fmt(out, "%" PRId64 "x", n);
    }
}

/* affine_map<(d0, d1) -> (d0, d1)> changes nothing and is not printed. */
static bool is_identity(struct xp_span map)
{
    const uint8_t *arrow = map.n ? memmem(map.p, map.n, " -> ", 4) : NULL;
    static const char head[] = "affine_map<";
    size_t h = sizeof head - 1;
    if (!arrow || map.n < h + 1 || memcmp(map.p, head, h) != 0)
        return false;
    size_t left = (size_t)(arrow - map.p) - h, right = map.n - 1 - (size_t)(arrow + 4 - map.p);
    return left == right && memcmp(map.p + h, arrow + 4, left) == 0;
}

static bool put_memref(const struct mlir *m, struct mlir_in *in, bool placed, struct xp_buf *out,
                       int depth)
{
    uint64_t rank;
    uint32_t place = placed ? mlir_index(in, m->nattrs) : MLIR_NONE;
    xp_buf_str(out, "memref<");
    put_shape(in, out, &rank);
    uint32_t element = mlir_index(in, m->ntypes);
    if (in->bad || (m->opt->plain_memory && !m->types[element].encoded) ||
        !mlir_put_type(m, element, out, depth))
        return false;
    uint32_t layout = mlir_index(in, m->nattrs);
    if (in->bad)
        return false;
    if (m->attrs[layout].encoded || !is_identity(text_of(&m->attrs[layout]))) {
        xp_buf_str(out, ", ");
        if (!mlir_put_attr(m, layout, out, depth))
            return false;
    }
    if (placed)
        xp_buf_str(out, ", ");
    bool ok = !placed || mlir_put_attr(m, place, out, depth);
    xp_buf_byte(out, '>');
    return ok;
}

static bool put_shaped(const struct mlir *m, struct mlir_in *in, const char *head,
                       struct xp_buf *out, int depth)
{
    uint64_t rank;
    xp_buf_str(out, head);
    put_shape(in, out, &rank);
    bool ok = !in->bad && mlir_put_type(m, mlir_index(in, m->ntypes), out, depth);
    xp_buf_byte(out, '>');
    return ok;
}

static bool put_integer_type(struct mlir_in *in, struct xp_buf *out)
{
    uint64_t v = mlir_varint(in);
    static const char *const signs[] = {"", "s", "u", ""};
    xp_buf_fmt(out, "%si%" PRIu64, signs[v & 3], v >> 2);
    return !in->bad;
}

bool mlir_put_type(const struct mlir *m, uint32_t type, struct xp_buf *out, int depth)
{
    static const char *const floats[] = {
        [TYPE_BF16] = "bf16", [TYPE_F16] = "f16", [TYPE_F32] = "f32", [TYPE_F64] = "f64"};
    uint64_t code;
    if (type >= m->ntypes || depth == 0 || out->failed)
        return false;
    if (!m->types[type].encoded) {
        xp_buf_span(out, text_of(&m->types[type]));
        return true;
    }
    struct mlir_in in = open_entry(&m->types[type], &code);
    switch (code) {
    case TYPE_INTEGER:
        return put_integer_type(&in, out);
    case TYPE_INDEX:
        xp_buf_str(out, "index");
        return true;
    case TYPE_FUNCTION:
        return put_function(m, &in, out, depth - 1);
    case TYPE_BF16:
    case TYPE_F16:
    case TYPE_F32:
    case TYPE_F64:
        xp_buf_str(out, floats[code]);
        return true;
    case TYPE_MEMREF:
    case TYPE_MEMREF_IN:
        return put_memref(m, &in, code == TYPE_MEMREF_IN, out, depth - 1);
    case TYPE_NONE:
        xp_buf_str(out, "none");
        return true;
    case TYPE_TENSOR:
        return put_shaped(m, &in, "tensor<", out, depth - 1);
    case TYPE_VECTOR:
        return put_shaped(m, &in, "vector<", out, depth - 1);
    default:
        return false;
    }
}

/* --- numbers --- */

struct number {
    uint64_t code; /* enum type_code */
    uint32_t bits; /* 1 to 64 */
};

/* Of integers, indices and floats. */
static bool number_of(const struct mlir *m, uint32_t type, struct number *n)
{
    static const uint8_t float_bits[] = {
        [TYPE_BF16] = 16, [TYPE_F16] = 16, [TYPE_F32] = 32, [TYPE_F64] = 64};
    if (type >= m->ntypes)
        return false;
    struct mlir_in in = open_entry(&m->types[type], &n->code);
    uint64_t bits = n->code == TYPE_INTEGER                       ? mlir_varint(&in) >> 2
                    : n->code == TYPE_INDEX                       ? 64
                    : n->code >= TYPE_BF16 && n->code <= TYPE_F64 ? float_bits[n->code]
                                                                  : 0;
    n->bits = bits <= 64 ? (uint32_t)bits : 0;
    return !in.bad && n->bits;
}

static double double_of(const struct number *n, uint64_t bits)
{
    union {
        uint64_t u;
        double d;
    } wide = {bits};
    union {
        uint32_t u;
        float f;
    } narrow = {n->code == TYPE_BF16 ? (uint32_t)bits << 16 : (uint32_t)bits};
    if (n->code == TYPE_F64)
        return wide.d;
    if (n->code != TYPE_F16)
        return (double)narrow.f;
    int exponent = (int)(bits >> 10 & 31), mantissa = (int)(bits & 1023);
    double v = exponent == 31  ? (mantissa ? (double)NAN : (double)INFINITY)
               : exponent == 0 ? ldexp(mantissa, -24)
                               : ldexp(1024 + mantissa, exponent - 25);
    return bits >> 15 & 1 ? -v : v;
}

/* Significant decimal digits after which APFloat stops, by the bits of the mantissa. */
static int digits_of(const struct number *n)
{
    int precision = n->code == TYPE_BF16  ? 8
                    : n->code == TYPE_F16 ? 11
                    : n->code == TYPE_F32 ? 24
                                          : 53;
    return 2 + precision * 59 / 196;
}

static bool reads_back(const struct number *n, const char *text, double v)
{
    double got = strtod(text, NULL);
    return n->code == TYPE_F32 ? strtof(text, NULL) == (float)v : got == v;
}

/* 0.0883883461, or 1.25E-7: as few digits as say the same. */
static void put_shortest(const struct number *n, double v, struct xp_buf *out)
{
    char text[40];
    int digits = digits_of(n);
    snprintf(text, sizeof text, "%.*e", digits - 1, fabs(v));
    char *e = strchr(text, 'e');
    int exponent = e ? (int)strtol(e + 1, NULL, 10) : 0, len = e ? (int)(e - text) : 0;
    while (len > 2 && text[len - 1] == '0')
        len--;
    xp_buf_str(out, signbit(v) ? "-" : "");
    if (exponent >= 0 && exponent < digits) {
        xp_buf_fmt(out, "%.*f", len - 2 > exponent ? len - 2 - exponent : 1, fabs(v));
    } else if (exponent < 0 && exponent >= -3) {
        xp_buf_fmt(out, "%.*f", len - 2 - exponent, fabs(v));
    } else {
        xp_buf_fmt(out, "%.*s%sE%+d", len, text, len == 2 ? "0" : "", exponent);
    }
}

static void put_float(const struct number *n, uint64_t bits, struct xp_buf *out)
{
    double v = double_of(n, bits);
    char text[40];
    if (!isfinite(v)) {
        xp_buf_fmt(out, "0x%" PRIX64, bits);
        return;
    }
    snprintf(text, sizeof text, "%.6e", v);
    if (reads_back(n, text, v))
        xp_buf_str(out, text);
    else
        put_shortest(n, v, out);
}

static void put_number(const struct number *n, uint64_t bits, struct xp_buf *out)
{
    if (n->code != TYPE_INTEGER && n->code != TYPE_INDEX)
        put_float(n, bits, out);
    else if (n->bits == 1)
        xp_buf_str(out, bits & 1 ? "true" : "false");
    else
        xp_buf_fmt(out, "%" PRId64, (int64_t)(bits << (64 - n->bits)) >> (64 - n->bits));
}

/* A number by itself: a byte up to 8 bits, else a signed varint. */
static uint64_t read_number(const struct number *n, struct mlir_in *in)
{
    uint64_t v = n->bits <= 8 ? mlir_byte(in) : (uint64_t)signed_of(mlir_varint(in));
    return n->bits == 64 ? v : v & ((UINT64_C(1) << n->bits) - 1);
}

static bool put_scalar(const struct mlir *m, struct mlir_in *in, struct xp_buf *out, int depth)
{
    struct number n;
    uint32_t type = mlir_index(in, m->ntypes);
    if (in->bad || !number_of(m, type, &n))
        return false;
    put_number(&n, read_number(&n, in), out);
    if (n.code == TYPE_INTEGER && n.bits == 1)
        return !in->bad;
    xp_buf_str(out, " : ");
    return !in->bad && mlir_put_type(m, type, out, depth);
}

/* Numbers side by side, in whole bytes, little endian. */
static uint64_t stored(struct xp_span raw, uint32_t bytes, uint64_t i)
{
    uint64_t v = 0;
    for (uint32_t k = bytes; k-- > 0;)
        v = v << 8 | raw.p[i * bytes + k];
    return v;
}

static bool put_dense_array(const struct mlir *m, struct mlir_in *in, struct xp_buf *out, int depth)
{
    struct number n;
    uint32_t type = mlir_index(in, m->ntypes);
    uint64_t size = mlir_varint(in), bytes = mlir_varint(in);
    struct xp_span raw = mlir_bytes(in, bytes);
    if (in->bad || !number_of(m, type, &n))
        return false;
    uint32_t each = (n.bits + 7) / 8;
    xp_buf_str(out, "array<");
    if (raw.n / each < size || !mlir_put_type(m, type, out, depth))
        return false;
    for (uint64_t i = 0; i < size; i++) {
        xp_buf_str(out, i ? ", " : ": ");
        put_number(&n, stored(raw, each, i), out);
    }
    xp_buf_byte(out, '>');
    return true;
}

/* The lengths of a vector or tensor, and what its elements are. */
static bool shape_of(const struct mlir *m, uint32_t type, struct number *n, struct mlir_in *lengths,
                     uint64_t *rank)
{
    uint64_t code;
    struct mlir_in in = open_entry(&m->types[type], &code);
    if (code != TYPE_VECTOR && code != TYPE_TENSOR)
        return false;
    *rank = mlir_varint(&in);
    *lengths = in;
    for (uint64_t i = 0; i < *rank && !in.bad; i++)
        mlir_varint(&in);
    return !in.bad && number_of(m, mlir_index(&in, m->ntypes), n);
}

#define RANK_MAX 16

static bool put_elements(const struct number *n, struct mlir_in lengths, uint64_t rank,
                         struct xp_span raw, struct xp_buf *out)
{
    uint64_t length[RANK_MAX], all = 1, each = (n->bits + 7) / 8;
    if (rank > RANK_MAX)
        return false;
    for (uint64_t k = 0; k < rank; k++) {
        length[k] = (uint64_t)signed_of(mlir_varint(&lengths));
        if (length[k] == 0 || length[k] > raw.n || __builtin_mul_overflow(all, length[k], &all))
            return false;
    }
    if (all > raw.n / each)
        return false;
    for (uint64_t i = 0; i < all && !out->failed; i++) {
        uint64_t run = 1, opens = 0, closes = 0;
        for (uint64_t k = rank; k-- > 0;) {
            run *= length[k];
            opens += i % run == 0;
            closes += (i + 1) % run == 0;
        }
        xp_buf_str(out, i ? ", " : "");
        for (; opens-- > 0;)
            xp_buf_byte(out, '[');
        put_number(n, stored(raw, (uint32_t)each, i), out);
        for (; closes-- > 0;)
            xp_buf_byte(out, ']');
    }
    return true;
}

static bool put_dense(const struct mlir *m, struct mlir_in *in, struct xp_buf *out, int depth)
{
    struct number n;
    struct mlir_in lengths;
    uint64_t rank;
    uint32_t type = mlir_index(in, m->ntypes);
    struct xp_span raw = mlir_bytes(in, mlir_varint(in));
    if (in->bad || !shape_of(m, type, &n, &lengths, &rank) || n.bits < 8)
        return false; /* single bits are packed in a way of their own */
    xp_buf_str(out, "dense<");
    if (raw.n == (n.bits + 7) / 8)
        put_number(&n, stored(raw, (n.bits + 7) / 8, 0), out);
    else if (!put_elements(&n, lengths, rank, raw, out))
        return false;
    xp_buf_str(out, "> : ");
    return mlir_put_type(m, type, out, depth);
}

/* --- attributes --- */

static bool put_symbol(const struct mlir *m, uint32_t attr, struct xp_buf *out)
{
    struct xp_span s;
    if (!string_of(m, attr, &s))
        return false;
    xp_buf_byte(out, '@');
    if (is_word(s, true))
        xp_buf_span(out, s);
    else
        put_string(out, s);
    return true;
}

static bool put_array(const struct mlir *m, struct mlir_in *in, struct xp_buf *out, int depth)
{
    xp_buf_byte(out, '[');
    for (uint64_t i = 0, n = mlir_varint(in); i < n; i++) {
        xp_buf_str(out, i ? ", " : "");
        if (in->bad || !mlir_put_attr(m, mlir_index(in, m->nattrs), out, depth))
            return false;
    }
    xp_buf_byte(out, ']');
    return !in->bad;
}

static bool is_unit(const struct mlir *m, uint32_t attr)
{
    uint64_t code;
    open_entry(&m->attrs[attr], &code);
    return code == ATTR_UNIT;
}

/* name = value, ... */
static bool put_pairs(const struct mlir *m, struct mlir_in *in, const char *but, bool *any,
                      const char *head, struct xp_buf *out, int depth)
{
    for (uint64_t n = mlir_varint(in); n-- > 0;) {
        struct xp_span name;
        uint32_t key = mlir_index(in, m->nattrs), value = mlir_index(in, m->nattrs);
        if (in->bad || out->failed || !string_of(m, key, &name))
            return false;
        if (but && xp_span_eq(name, xp_span_str(but)))
            continue;
        xp_buf_str(out, *any ? ", " : head);
        *any = true;
        if (is_word(name, true))
            xp_buf_span(out, name);
        else
            put_string(out, name);
        if (is_unit(m, value))
            continue;
        xp_buf_str(out, " = ");
        if (!mlir_put_attr(m, value, out, depth))
            return false;
    }
    return !in->bad;
}

bool mlir_put_dict(const struct mlir *m, uint32_t attr, const char *head, const char *but,
                   struct xp_buf *out)
{
    uint64_t code;
    bool any = false;
    if (attr == MLIR_NONE)
        return true;
    struct mlir_in in = open_entry(&m->attrs[attr], &code);
    if (code != ATTR_DICTIONARY || !put_pairs(m, &in, but, &any, head, out, MLIR_DEPTH_MAX))
        return false;
    if (any)
        xp_buf_byte(out, '}');
    return true;
}

bool mlir_dict_string(const struct mlir *m, uint32_t dict, const char *name, struct xp_span *s)
{
    uint64_t code;
    if (dict == MLIR_NONE)
        return false;
    struct mlir_in in = open_entry(&m->attrs[dict], &code);
    for (uint64_t n = code == ATTR_DICTIONARY ? mlir_varint(&in) : 0; n-- > 0 && !in.bad;) {
        struct xp_span key;
        uint32_t k = mlir_index(&in, m->nattrs), v = mlir_index(&in, m->nattrs);
        if (!in.bad && string_of(m, k, &key) && xp_span_eq(key, xp_span_str(name)))
            return string_of(m, v, s);
    }
    return false;
}

static bool put_symbol_path(const struct mlir *m, struct mlir_in *in, struct xp_buf *out)
{
    uint64_t code;
    if (!put_symbol(m, mlir_index(in, m->nattrs), out))
        return false;
    for (uint64_t n = mlir_varint(in); n-- > 0;) {
        uint32_t part = mlir_index(in, m->nattrs);
        if (in->bad)
            return false;
        struct mlir_in inner = open_entry(&m->attrs[part], &code);
        xp_buf_str(out, "::");
        if (code != ATTR_SYMBOL || !put_symbol(m, mlir_index(&inner, m->nattrs), out))
            return false;
    }
    return !in->bad;
}

static bool put_text(const struct mlir *m, uint32_t attr, struct xp_buf *out)
{
    struct xp_span s;
    if (!string_of(m, attr, &s))
        return false;
    put_string(out, s);
    return true;
}

bool mlir_put_attr(const struct mlir *m, uint32_t attr, struct xp_buf *out, int depth)
{
    uint64_t code;
    bool any = false;
    if (attr >= m->nattrs || depth == 0 || out->failed)
        return false;
    if (!m->attrs[attr].encoded) {
        xp_buf_span(out, text_of(&m->attrs[attr]));
        return true;
    }
    struct mlir_in in = open_entry(&m->attrs[attr], &code);
    switch (code) {
    case ATTR_ARRAY:
        return put_array(m, &in, out, depth - 1);
    case ATTR_DICTIONARY:
        xp_buf_byte(out, '{');
        any = put_pairs(m, &in, NULL, &any, "", out, depth - 1);
        xp_buf_byte(out, '}');
        return any;
    case ATTR_STRING:
        return put_text(m, attr, out);
    case ATTR_SYMBOL:
        return put_symbol(m, mlir_index(&in, m->nattrs), out);
    case ATTR_NESTED_SYMBOL:
        return put_symbol_path(m, &in, out);
    case ATTR_TYPE:
        return mlir_put_type(m, mlir_index(&in, m->ntypes), out, depth - 1) && !in.bad;
    case ATTR_UNIT:
        xp_buf_str(out, "unit");
        return true;
    case ATTR_INTEGER:
    case ATTR_FLOAT:
        return put_scalar(m, &in, out, depth - 1);
    case ATTR_DENSE_ARRAY:
        return put_dense_array(m, &in, out, depth - 1);
    case ATTR_DENSE:
        return put_dense(m, &in, out, depth - 1);
    default:
        return false;
    }
}
