#include "shard/stats/hlo_library.h"

#define POSITIONS_MAX 1000000 /* that are tried for one dimension; beyond, flops are not known */

static double elements(const struct hlo_module *m, uint32_t shape)
{
    return (double)hlo_shape_elements(m, shape);
}

bool hlo_is_library_conv(const struct hlo_instr *in)
{
    struct xp_span target;
    /* convForward, convBackwardInput, convBiasActivationForward, ... */
    return in->opcode == HLO_OP_CUSTOM_CALL &&
           hlo_get_span(in->raw, HLO_F_CUSTOM_CALL_TARGET, &target) &&
           xp_span_starts(target, XP_SPAN_LIT("__cudnn$conv"));
}

uint32_t hlo_library_result(const struct hlo_module *m, const struct hlo_instr *in)
{
    const struct hlo_shape *s = &m->shapes[in->shape];
    return s->type == HLO_TYPE_TUPLE && s->children.n ? s->children.at : in->shape;
}

static int64_t dim_of(const struct hlo_module *m, uint32_t shape, int64_t d)
{
    struct hlo_run dims = m->shapes[shape].dims;
    return d >= 0 && (uint64_t)d < dims.n ? m->ints[dims.at + (uint32_t)d] : 1;
}

double hlo_dot_flops(const struct hlo_module *m, uint32_t lhs_shape, uint32_t out_shape,
                     struct xp_span dims)
{
    double n = 2 * elements(m, out_shape);
    int64_t d;
    for (struct hlo_ints it = hlo_ints_open(dims, 1); hlo_ints_next(&it, &d);)
        n *= (double)dim_of(m, lhs_shape, d);
    return n;
}

/* --- matrix products of libraries --- */

bool hlo_is_library_dot(const struct hlo_instr *in)
{
    static const char *const targets[] = {"__cublas$gemm", "__cublas$lt$matmul",
                                          "__cublas$lt$matmul$f8"};
    struct xp_span target;
    if (in->opcode != HLO_OP_CUSTOM_CALL ||
        !hlo_get_span(in->raw, HLO_F_CUSTOM_CALL_TARGET, &target))
        return false;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (xp_span_eq(target, xp_span_str(targets[i])))
            return true;
    return false;
}

static const uint8_t *skip(const uint8_t *p, const uint8_t *end, const char *these)
{
    while (p < end && *p && strchr(these, *p))
        p++;
    return p;
}

/* The next number of a list in JSON, whose numbers are texts; false at its end, or if it is none.
 */
static bool next_number(const uint8_t **at, const uint8_t *end, int64_t *v)
{
    const uint8_t *p = skip(*at, end, " ,\"");
    if (p == end || *p < '0' || *p > '9')
        return false;
    for (*v = 0; p < end && *p >= '0' && *p <= '9'; p++)
        *v = *v > 9999 ? *v : *v * 10 + (*p - '0');
    *at = skip(p, end, "\"");
    return true;
}

double hlo_library_dot_flops(const struct hlo_module *m, const struct hlo_instr *in)
{
    static const char key[] = "\"lhs_contracting_dimensions\"";
    const struct hlo_instr *lhs = in->operands.n ? hlo_operand(m, in, 0) : NULL;
    struct xp_span config;
    if (!lhs || lhs->shape >= m->nshapes || !hlo_get_span(in->raw, HLO_F_BACKEND_CONFIG, &config) ||
        !config.n)
        return 0;
    const uint8_t *end = config.p + config.n;
    const uint8_t *p = memmem(config.p, config.n, key, sizeof key - 1);
    p = p ? skip(p + sizeof key - 1, end, " :") : end;
    if (p == end || *p != '[')
        return 0;
    double n = 2 * elements(m, hlo_library_result(m, in));
    int64_t d;
    for (p++; next_number(&p, end, &d);)
        n *= (double)dim_of(m, lhs->shape, d);
    return p < end && *skip(p, end, " ") == ']' ? n : 0;
}

/* --- convolutions --- */

struct conv_dim { /* one spatial dimension */
    int64_t kernel, out, in;
    int64_t stride, low, kernel_step, in_step;
};

/* Pairs of a place in the kernel and one in the output that meet an element of the input. */
static double positions(const struct conv_dim *d)
{
    int64_t n = 0, step = d->in_step > 1 ? d->in_step : 1;
    if (d->kernel < 1 || d->out < 1 || d->kernel > POSITIONS_MAX / d->out)
        return 0;
    for (int64_t k = 0; k < d->kernel; k++)
        for (int64_t o = 0; o < d->out; o++) {
            int64_t at = o * d->stride - d->low + k * d->kernel_step;
            n += at >= 0 && at % step == 0 && at / step < d->in;
        }
    return (double)n;
}

static bool sane(int64_t v)
{
    return v >= -(INT64_C(1) << 31) && v <= INT64_C(1) << 31; /* so that products are no overflow */
}

static bool read_window(struct xp_span window, struct conv_dim *d)
{
    d->stride = hlo_get_int(window, 2, 0);
    d->low = hlo_get_int(window, 3, 0);
    d->kernel_step = hlo_get_int(window, 5, 0);
    d->in_step = hlo_get_int(window, 6, 0);
    return sane(d->stride) && sane(d->low) && sane(d->kernel_step);
}

enum { IN_BATCH = 7, IN_FEATURE = 8, OUT_FEATURE = 10, KERNEL_SPATIAL = 6, IN_SPATIAL = 11 };
enum { OUT_SPATIAL = 12 };

static double spatial(const struct hlo_module *m, const struct hlo_instr *in, struct xp_span dims,
                      const uint32_t shapes[3])
{
    struct hlo_ints kernel = hlo_ints_open(dims, KERNEL_SPATIAL);
    struct hlo_ints from = hlo_ints_open(dims, IN_SPATIAL), to = hlo_ints_open(dims, OUT_SPATIAL);
    struct xp_span window, one;
    int64_t k, i, o;
    double n = 1;

    if (!hlo_get_span(in->raw, HLO_F_WINDOW, &window))
        return 1;
    for (struct hlo_spans it = hlo_spans_open(window, 1); hlo_spans_next(&it, &one);) {
        struct conv_dim d;
        if (!hlo_ints_next(&kernel, &k) || !hlo_ints_next(&from, &i) || !hlo_ints_next(&to, &o) ||
            !read_window(one, &d))
            return 0;
        d.in = dim_of(m, shapes[0], i);
        d.kernel = dim_of(m, shapes[1], k);
        d.out = dim_of(m, shapes[2], o);
        n *= positions(&d);
    }
    return n;
}

static int64_t part(int64_t n, struct xp_span raw, uint32_t field)
{
    int64_t parts = hlo_get_int(raw, field, 1);
    return parts > 1 ? n / parts : n;
}

double hlo_conv_flops(const struct hlo_module *m, const struct hlo_instr *in)
{
    const struct hlo_instr *lhs = hlo_operand(m, in, 0), *rhs = hlo_operand(m, in, 1);
    struct xp_span dims;
    if (!lhs || !rhs || !hlo_get_span(in->raw, HLO_F_CONVOLUTION_DIMENSION_NUMBERS, &dims))
        return 0;
    const uint32_t shapes[3] = {lhs->shape, rhs->shape, hlo_library_result(m, in)};
    int64_t features = dim_of(m, shapes[0], hlo_get_int(dims, IN_FEATURE, 0));
    int64_t batch = dim_of(m, shapes[0], hlo_get_int(dims, IN_BATCH, 0));
    double out = (double)dim_of(m, shapes[2], hlo_get_int(dims, OUT_FEATURE, 0));
    return 2.0 * (double)part(features, in->raw, HLO_F_FEATURE_GROUP_COUNT) * out *
           (double)part(batch, in->raw, HLO_F_BATCH_GROUP_COUNT) * spatial(m, in, dims, shapes);
}
