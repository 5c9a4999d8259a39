/* Literals: constants' values, in the order of their indices, on one line. */
#include "shard/hlo/text_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define LITERAL_RANK_MAX 64
#define LITERAL_TUPLES_MAX 16

/* Which field of a LiteralProto holds the elements of a type, and how. */
enum coding { NONE, VARINT, FIXED32, FIXED64, BYTES1, BYTES2 };
static const struct {
    uint8_t field;
    uint8_t coding;
} codings[] = {
    [HLO_TYPE_PRED] = {2, VARINT},        [HLO_TYPE_S8] = {15, BYTES1},
    [HLO_TYPE_S16] = {17, BYTES2},        [HLO_TYPE_S32] = {4, VARINT},
    [HLO_TYPE_S64] = {5, VARINT},         [HLO_TYPE_U8] = {3, BYTES1},
    [HLO_TYPE_U16] = {16, BYTES2},        [HLO_TYPE_U32] = {6, VARINT},
    [HLO_TYPE_U64] = {7, VARINT},         [HLO_TYPE_F16] = {11, BYTES2},
    [HLO_TYPE_F32] = {8, FIXED32},        [HLO_TYPE_F64] = {9, FIXED64},
    [HLO_TYPE_C64] = {12, FIXED32},       [HLO_TYPE_BF16] = {13, BYTES2},
    [HLO_TYPE_C128] = {18, FIXED64},      [HLO_TYPE_F8E5M2] = {19, BYTES1},
    [HLO_TYPE_F8E4M3FN] = {20, BYTES1},   [HLO_TYPE_S4] = {21, BYTES1},
    [HLO_TYPE_U4] = {22, BYTES1},         [HLO_TYPE_F8E4M3B11FNUZ] = {23, BYTES1},
    [HLO_TYPE_F8E5M2FNUZ] = {24, BYTES1}, [HLO_TYPE_F8E4M3FNUZ] = {25, BYTES1},
    [HLO_TYPE_S2] = {26, BYTES1},         [HLO_TYPE_U2] = {27, BYTES1},
    [HLO_TYPE_F8E4M3] = {28, BYTES1},     [HLO_TYPE_F8E3M4] = {29, BYTES1},
    [HLO_TYPE_S1] = {30, BYTES1},         [HLO_TYPE_U1] = {31, BYTES1},
    [HLO_TYPE_F4E2M1FN] = {32, BYTES1},   [HLO_TYPE_F8E8M0FNU] = {33, BYTES1},
    [HLO_TYPE_F6E3M2FN] = {35, BYTES1},   [HLO_TYPE_F6E2M3FN] = {36, BYTES1},
};

struct elements {
    uint64_t *v;
    uint64_t n, max;
};

static void add_fixed(struct elements *e, struct xp_span bytes, size_t size)
{
    for (size_t i = 0; i + size <= bytes.n && e->n < e->max; i += size) {
        uint64_t v = 0;
        for (size_t k = 0; k < size; k++)
            v |= (uint64_t)bytes.p[i + k] << (8 * k);
        e->v[e->n++] = v;
    }
}

static void add_varints(struct elements *e, struct xp_span bytes)
{
    const uint8_t *p = bytes.p, *end = bytes.p + bytes.n;
    uint64_t v;
    while (p < end && e->n < e->max && (p = xp_varint_read(p, end, &v)))
        e->v[e->n++] = v;
}

static void add_field(struct elements *e, const struct xp_pb_field *f, enum coding coding)
{
    if (f->type != XP_PB_LEN) {
        if (e->n < e->max)
            e->v[e->n++] = f->value;
        return;
    }
    switch (coding) {
    case VARINT:
        add_varints(e, f->bytes);
        break;
    case FIXED32:
        add_fixed(e, f->bytes, 4);
        break;
    case FIXED64:
        add_fixed(e, f->bytes, 8);
        break;
    case BYTES1:
        add_fixed(e, f->bytes, 1);
        break;
    case BYTES2:
        add_fixed(e, f->bytes, 2);
        break;
    case NONE:
        break;
    }
}

/* All elements, or false when there are not as many as the shape says. */
static bool read_elements(const struct hlo_text *t, struct xp_span literal, uint32_t type,
                          int64_t count, struct elements *e)
{
    struct xp_pb r = xp_pb_open(literal);
    struct xp_pb_field f;

    if (type >= sizeof codings / sizeof *codings || codings[type].coding == NONE)
        return false;
    if (type == HLO_TYPE_C64 || type == HLO_TYPE_C128)
        count = count > INT64_MAX / 2 ? INT64_MAX : count * 2;
    /* An element is a byte at least, also one of 4 bits: no more room than the bytes can fill. */
    if (count < 0 || (uint64_t)count > (uint64_t)literal.n)
        return false;
    e->max = (uint64_t)count;
    e->v = xp_arena_alloc(t->scratch, (e->max + 1) * sizeof *e->v);
    while (e->v && xp_pb_next(&r, &f))
        if (f.num == codings[type].field)
            add_field(e, &f, codings[type].coding);
    return e->v && e->n == e->max;
}

/* --- numbers --- */

/* IEEE-like: sign, exponent and mantissa bits, bias; fn: no infinities, uz: no negative zero. */
struct small_float {
    uint8_t exponent, mantissa, digits;
    int bias;
    bool no_inf, no_negative_zero, no_nan;
};

static const struct small_float *small_float_of(uint32_t type)
{
    static const struct small_float f16 = {5, 10, 5, 15, 0, 0, 0}, bf16 = {8, 7, 4, 127, 0, 0, 0},
                                    e5m2 = {5, 2, 2, 15, 0, 0, 0}, e4m3 = {4, 3, 3, 7, 0, 0, 0},
                                    e4m3fn = {4, 3, 3, 7, 1, 0, 0}, e3m4 = {3, 4, 3, 3, 0, 0, 0},
                                    b11 = {4, 3, 3, 11, 1, 1, 0}, e5m2uz = {5, 2, 2, 16, 1, 1, 0},
                                    e4m3uz = {4, 3, 3, 8, 1, 1, 0}, e2m1 = {2, 1, 2, 1, 1, 0, 1},
                                    e3m2 = {3, 2, 2, 3, 1, 0, 1}, e2m3 = {2, 3, 3, 1, 1, 0, 1};
    switch (type) {
    case HLO_TYPE_F16:
        return &f16;
    case HLO_TYPE_BF16:
        return &bf16;
    case HLO_TYPE_F8E5M2:
        return &e5m2;
    case HLO_TYPE_F8E4M3:
        return &e4m3;
    case HLO_TYPE_F8E4M3FN:
        return &e4m3fn;
    case HLO_TYPE_F8E3M4:
        return &e3m4;
    case HLO_TYPE_F8E4M3B11FNUZ:
        return &b11;
    case HLO_TYPE_F8E5M2FNUZ:
        return &e5m2uz;
    case HLO_TYPE_F8E4M3FNUZ:
        return &e4m3uz;
    case HLO_TYPE_F4E2M1FN:
        return &e2m1;
    case HLO_TYPE_F6E3M2FN:
        return &e3m2;
    case HLO_TYPE_F6E2M3FN:
        return &e2m3;
    }
    return NULL;
}

static double small_value(const struct small_float *f, uint64_t bits)
{
    uint64_t mantissa = bits & ((1u << f->mantissa) - 1);
    uint64_t top = (1u << f->exponent) - 1, exponent = bits >> f->mantissa & top;
    bool negative = bits >> (f->mantissa + f->exponent) & 1;
    double v;

    if (f->no_negative_zero && negative && !mantissa && !exponent)
        return -NAN;
    if (!f->no_inf && exponent == top)
        v = mantissa ? NAN : INFINITY;
    else if (f->no_inf && !f->no_negative_zero && !f->no_nan && exponent == top &&
             mantissa == (1u << f->mantissa) - 1)
        v = NAN;
    else if (exponent == 0)
        v = ldexp((double)mantissa, 1 - f->bias - f->mantissa);
    else
        v = ldexp((double)(mantissa | 1u << f->mantissa), (int)exponent - f->bias - f->mantissa);
    return negative ? -v : v;
}

/* A NaN that carries something shows it. */
static void nan_payload(struct xp_buf *out, uint64_t bits, int width)
{
    uint64_t payload = bits & ((UINT64_C(1) << width) - 1);
    if (payload != UINT64_C(1) << (width - 1))
        xp_buf_fmt(out, "(0x%0*llx)", (width + 3) / 4, (unsigned long long)payload);
}

static void f32_text(struct xp_buf *out, uint64_t bits)
{
    char text[48];
    uint32_t low = (uint32_t)bits;
    float v;

    memcpy(&v, &low, sizeof v);
    snprintf(text, sizeof text, "%.6g", (double)v);
    if (!isnan(v) && strtof(text, NULL) != v)
        snprintf(text, sizeof text, "%.9g", (double)v);
    xp_buf_str(out, text);
    if (isnan(v))
        nan_payload(out, bits, 23);
}

static void f64_text(struct xp_buf *out, uint64_t bits)
{
    char text[48];
    double v = xp_pb_double(bits);

    snprintf(text, sizeof text, "%.15g", v);
    if (!isnan(v) && strtod(text, NULL) != v)
        snprintf(text, sizeof text, "%.17g", v);
    xp_buf_str(out, text);
    if (isnan(v))
        nan_payload(out, bits, 52);
}

static void small_text(struct xp_buf *out, const struct small_float *f, uint64_t bits)
{
    double v = small_value(f, bits);
    xp_buf_fmt(out, "%.*g", f->digits, v);
    if (isnan(v) && f->mantissa >= 7)
        nan_payload(out, bits, f->mantissa);
}

static void element_text(struct xp_buf *out, uint32_t type, uint32_t rank, const struct elements *e,
                         uint64_t i)
{
    const struct small_float *f = small_float_of(type);
    uint32_t bits = hlo_type_bits(type);

    if (f) {
        small_text(out, f, e->v[i]);
        return;
    }
    switch (type) {
    case HLO_TYPE_PRED:
        xp_buf_str(out, rank ? (e->v[i] ? "1" : "0") : (e->v[i] ? "true" : "false"));
        break;
    case HLO_TYPE_F32:
        f32_text(out, e->v[i]);
        break;
    case HLO_TYPE_F64:
        f64_text(out, e->v[i]);
        break;
    case HLO_TYPE_F8E8M0FNU:
        xp_buf_fmt(out, "%.2g", e->v[i] == 255 ? (double)NAN : ldexp(1, (int)e->v[i] - 127));
        break;
    case HLO_TYPE_C64:
    case HLO_TYPE_C128:
        xp_buf_byte(out, '(');
        (type == HLO_TYPE_C64 ? f32_text : f64_text)(out, e->v[2 * i]);
        xp_buf_str(out, ", ");
        (type == HLO_TYPE_C64 ? f32_text : f64_text)(out, e->v[2 * i + 1]);
        xp_buf_byte(out, ')');
        break;
    case HLO_TYPE_U1:
    case HLO_TYPE_U2:
    case HLO_TYPE_U4:
    case HLO_TYPE_U8:
    case HLO_TYPE_U16:
    case HLO_TYPE_U32:
    case HLO_TYPE_U64:
        xp_buf_fmt(out, "%llu", (unsigned long long)(e->v[i] << (64 - bits) >> (64 - bits)));
        break;
    default: { /* signed: the top bit of the element is its sign */
        int64_t v = (int64_t)(e->v[i] << (64 - bits));
        xp_buf_fmt(out, "%lld", (long long)(v >> (64 - bits)));
    }
    }
}

/* --- arrays --- */

struct array {
    const char *line; /* between rows: a space or a line end */
    const int64_t *dims;
    int64_t stride[LITERAL_RANK_MAX]; /* in elements as stored */
    int64_t at[LITERAL_RANK_MAX];
    uint32_t rank;
};

static void open_brace(struct xp_buf *out, const struct array *a, uint32_t depth)
{
    if (a->rank > 1 && depth == a->rank - 1 && a->line[0] == '\n')
        xp_buf_str(out, "  ");
    xp_buf_byte(out, '{');
    if (a->rank == 1)
        return;
    if (depth == a->rank - 1) {
        if (a->dims[depth] > 1)
            xp_buf_byte(out, ' ');
        return;
    }
    if (a->rank > 3 && depth > 0)
        xp_buf_fmt(out, " /*i%u=%lld*/", depth - 1, (long long)a->at[depth - 1]);
    xp_buf_str(out, a->line);
}

static void close_brace(struct xp_buf *out, const struct array *a, uint32_t depth)
{
    if (a->rank > 1 && depth < a->rank - 1)
        xp_buf_str(out, a->line);
    else if (a->rank > 1 && a->dims[depth] > 1)
        xp_buf_byte(out, ' ');
    xp_buf_byte(out, '}');
}

/* Counts the index on; false when it was the last. Braces are closed and opened on the way. */
static bool next_element(struct xp_buf *out, struct array *a, uint32_t depth_end)
{
    uint32_t k = depth_end;
    while (k-- > 0) {
        if (a->at[k] + 1 < a->dims[k]) {
            a->at[k]++;
            xp_buf_byte(out, ',');
            xp_buf_str(out, k + 1 < a->rank ? a->line : " ");
            while (++k < depth_end)
                open_brace(out, a, k);
            return true;
        }
        a->at[k] = 0;
        close_brace(out, a, k);
    }
    return false;
}

static void layout_strides(const struct hlo_module *m, const struct hlo_shape *s, struct array *a)
{
    int64_t stride = 1;
    bool seen[LITERAL_RANK_MAX] = {false};
    bool usable = s->minor.n == a->rank;

    for (uint32_t i = 0; usable && i < a->rank; i++) {
        int64_t d = m->ints[s->minor.at + i];
        usable = d >= 0 && d < a->rank && !seen[d];
        if (usable)
            seen[d] = true;
    }
    for (uint32_t i = 0; i < a->rank; i++) {
        uint32_t d = usable ? (uint32_t)m->ints[s->minor.at + i] : a->rank - 1 - i;
        a->stride[d] = stride;
        stride *= a->dims[d]; /* the product is the number of elements, which are there */
    }
}

static void array_literal(const struct hlo_text *t, struct xp_span literal,
                          const struct hlo_module *sm, const struct hlo_shape *s, const char *line)
{
    struct elements e = {0};
    struct array a = {
        .line = line, .dims = s->dims.n ? sm->ints + s->dims.at : NULL, .rank = s->dims.n};
    int64_t count = hlo_shape_elements(sm, (uint32_t)(s - sm->shapes));
    uint32_t depth = a.rank, zero = a.rank;

    if (a.rank > LITERAL_RANK_MAX || !read_elements(t, literal, s->type, count, &e)) {
        xp_buf_str(t->out, "{...}");
        return;
    }
    for (uint32_t d = a.rank; d-- > 0;)
        if (a.dims[d] <= 0)
            zero = d;
    if (zero < a.rank)
        depth = zero;
    else
        layout_strides(sm, s, &a);
    for (uint32_t d = 0; d < depth; d++)
        open_brace(t->out, &a, d);
    do {
        int64_t at = 0;
        for (uint32_t d = 0; zero == a.rank && d < a.rank; d++)
            at += a.at[d] * a.stride[d];
        if (zero == a.rank) {
            element_text(t->out, s->type, a.rank, &e, (uint64_t)at);
        } else {
            open_brace(t->out, &a, zero);
            close_brace(t->out, &a, zero);
        }
    } while (!t->out->failed && next_element(t->out, &a, depth));
}

/* Bounded by LITERAL_TUPLES_MAX, whatever the bytes say. */
static void any_literal(const struct hlo_text *t, struct xp_span literal, const char *line,
                        int depth)
{
    struct xp_span shape = {0}, member;
    hlo_get_span(literal, 1, &shape);
    const struct hlo_module *sm = hlo_shape_alone(shape, t->scratch);

    if (!sm || depth > LITERAL_TUPLES_MAX) {
        xp_buf_str(t->out, "{...}");
    } else if (sm->shapes[0].type == HLO_TYPE_TUPLE) {
        struct hlo_spans it = hlo_spans_open(literal, 10);
        xp_buf_str(t->out, "( ");
        for (const char *comma = ""; hlo_spans_next(&it, &member); comma = ", ") {
            xp_buf_str(t->out, comma);
            any_literal(t, member, line, depth + 1);
        }
        xp_buf_str(t->out, " )");
    } else if (sm->shapes[0].type == HLO_TYPE_TOKEN) {
        xp_buf_str(t->out, "token");
    } else {
        array_literal(t, literal, sm, &sm->shapes[0], line);
    }
}

void hlo_text_literal(const struct hlo_text *t, struct xp_span literal)
{
    any_literal(t, literal, " ", 0);
}

void hlo_text_literal_lines(const struct hlo_text *t, struct xp_span literal)
{
    any_literal(t, literal, "\n", 0);
}
