/* The attributes that follow an instruction's operands: first those of its opcode, then the
 * computations it calls, then what any instruction may have. */
#include "shard/hlo/text_int.h"

struct attr_printer {
    const struct hlo_text *t;
    const struct hlo_instr *in;
    struct hlo_attrs *attrs;
    bool no_frontend; /* an async operation's own stand for those of what it wraps */
};

static struct xp_buf *next_attr(struct attr_printer *p)
{
    struct hlo_attrs *a = p->attrs;
    if (a->n < HLO_ATTRS_MAX)
        a->start[a->n++] = p->t->out->n;
    else if (!a->separator[0])
        xp_buf_byte(p->t->out, ' ');
    xp_buf_str(p->t->out, a->separator);
    return p->t->out;
}

static int64_t field(const struct attr_printer *p, enum hlo_field f)
{
    return hlo_get_int(p->in->raw, f, 0);
}

static struct xp_span message(const struct attr_printer *p, enum hlo_field f)
{
    struct xp_span s = {0};
    hlo_get_span(p->in->raw, f, &s);
    return s;
}

static void flag(struct attr_printer *p, enum hlo_field f, const char *text)
{
    if (field(p, f))
        xp_buf_str(next_attr(p), text);
}

static void number(struct attr_printer *p, const char *head, int64_t v)
{
    xp_buf_fmt(next_attr(p), "%s%lld", head, (long long)v);
}

static void set(struct attr_printer *p, const char *head, enum hlo_field f)
{
    struct xp_buf *out = next_attr(p);
    xp_buf_str(out, head);
    hlo_text_set(out, p->in->raw, f);
}

static void quoted(struct attr_printer *p, const char *head, struct xp_span s)
{
    struct xp_buf *out = next_attr(p);
    xp_buf_str(out, head);
    xp_buf_byte(out, '"');
    hlo_text_escape(out, s);
    xp_buf_byte(out, '"');
}

/* The name of an enum's value; its number when it has none here. */
static void named(struct attr_printer *p, const char *head, int64_t v, const char *const *names,
                  int64_t n)
{
    if (v >= 0 && v < n)
        xp_buf_fmt(next_attr(p), "%s%s", head, names[v]);
    else
        number(p, head, v);
}
#define NAMED(p, head, v, ...)                                                                     \
    do {                                                                                           \
        static const char *const names[] = {__VA_ARGS__};                                          \
        named(p, head, v, names, sizeof names / sizeof *names);                                    \
    } while (0)

/* --- attributes of an opcode --- */

static void precision(struct attr_printer *p)
{
    static const char *const texts[] = {"default", "high", "highest"};
    static const char *const algorithms[] = {"unset",
                                             "dot_any_f8_any_f8_f32",
                                             "dot_any_f8_any_f8_f32_fast_accum",
                                             "dot_f16_f16_f16",
                                             "dot_f16_f16_f32",
                                             "dot_bf16_bf16_bf16",
                                             "dot_bf16_bf16_f32",
                                             "dot_bf16_bf16_f32_x3",
                                             "dot_bf16_bf16_f32_x6",
                                             "dot_tf32_tf32_f32",
                                             "dot_tf32_tf32_f32_x3",
                                             "dot_f32_f32_f32",
                                             "dot_f64_f64_f64",
                                             "dot_bf16_bf16_f32_x9",
                                             "dot_bf16_bf16_fp8x3",
                                             "dot_bf16_bf16_fp8x4"};
    struct xp_span config = message(p, HLO_F_PRECISION_CONFIG);
    struct hlo_ints it = hlo_ints_open(config, 1);
    bool any = false;
    int64_t v;

    while (hlo_ints_next(&it, &v))
        any |= v != 0;
    if (any) {
        struct xp_buf *out = next_attr(p);
        xp_buf_str(out, "operand_precision={");
        it = hlo_ints_open(config, 1);
        for (const char *comma = ""; hlo_ints_next(&it, &v); comma = ",")
            xp_buf_fmt(out, "%s%s", comma, v >= 0 && v < 3 ? texts[v] : "unknown");
        xp_buf_byte(out, '}');
    }
    int64_t algorithm = hlo_get_int(config, 2, 0);
    if (algorithm)
        named(p, "algorithm=", algorithm, algorithms, sizeof algorithms / sizeof *algorithms);
}

static void dimensions(struct attr_printer *p)
{
    set(p, "dimensions=", HLO_F_DIMENSIONS);
}

static void first_dimension(struct attr_printer *p, const char *head, const char *tail)
{
    struct hlo_ints it = hlo_ints_open(p->in->raw, HLO_F_DIMENSIONS);
    int64_t v;
    if (hlo_ints_next(&it, &v))
        xp_buf_fmt(next_attr(p), "%s%lld%s", head, (long long)v, tail);
}

static void window(struct attr_printer *p)
{
    struct xp_span w = message(p, HLO_F_WINDOW), dim;
    struct hlo_spans it = hlo_spans_open(w, 1);
    if (!hlo_spans_next(&it, &dim))
        return;
    struct xp_buf *out = next_attr(p);
    xp_buf_str(out, "window={");
    hlo_text_window(out, w);
    xp_buf_byte(out, '}');
}

static void channel(struct attr_printer *p)
{
    if (field(p, HLO_F_CHANNEL_ID) > 0)
        number(p, "channel_id=", field(p, HLO_F_CHANNEL_ID));
}

static void collective(struct attr_printer *p)
{
    channel(p);
    struct xp_buf *out = next_attr(p);
    xp_buf_str(out, "replica_groups=");
    hlo_text_replica_groups(out, p->in->raw);
    flag(p, HLO_F_CONSTRAIN_LAYOUT, "constrain_layout=true");
}

static void collective_broadcast(struct attr_printer *p)
{
    collective(p);
    xp_buf_str(next_attr(p), field(p, HLO_F_HAS_DYNAMIC_ROOT) ? "has_dynamic_root=true"
                                                              : "has_dynamic_root=false");
}

static void all_gather(struct attr_printer *p)
{
    collective(p);
    first_dimension(p, "dimensions={", "}");
    flag(p, HLO_F_USE_GLOBAL_DEVICE_IDS, "use_global_device_ids=true");
}

static void all_reduce(struct attr_printer *p)
{
    collective(p);
    flag(p, HLO_F_USE_GLOBAL_DEVICE_IDS, "use_global_device_ids=true");
}

static void reduce_scatter(struct attr_printer *p)
{
    all_reduce(p);
    first_dimension(p, "dimensions={", "}");
}

static void all_to_all(struct attr_printer *p)
{
    collective(p);
    first_dimension(p, "dimensions={", "}");
}

static void collective_permute(struct attr_printer *p)
{
    struct hlo_spans it = hlo_spans_open(p->in->raw, HLO_F_SOURCE_TARGET_PAIRS);
    struct xp_span pair;

    channel(p);
    struct xp_buf *out = next_attr(p);
    xp_buf_str(out, "source_target_pairs={");
    for (const char *comma = ""; hlo_spans_next(&it, &pair); comma = ",")
        xp_buf_fmt(out, "%s{%lld,%lld}", comma, (long long)hlo_get_int(pair, 1, 0),
                   (long long)hlo_get_int(pair, 2, 0));
    xp_buf_byte(out, '}');
    if (hlo_has_ints(p->in->raw, HLO_F_DYNAMIC_SLICE_SIZES)) {
        out = next_attr(p);
        xp_buf_str(out, "slice_sizes={");
        hlo_text_set(out, p->in->raw, HLO_F_DYNAMIC_SLICE_SIZES);
        xp_buf_byte(out, '}');
    }
}

static void send_recv(struct attr_printer *p)
{
    channel(p);
    flag(p, HLO_F_IS_HOST_TRANSFER, "is_host_transfer=true");
}

static void compare(struct attr_printer *p)
{
    const struct hlo_module *m = p->t->m;
    const struct hlo_instr *lhs = hlo_operand(m, p->in, 0);
    struct xp_span direction = message(p, HLO_F_COMPARISON_DIRECTION);
    struct xp_span type = message(p, HLO_F_COMPARISON_TYPE);
    uint32_t of = lhs ? m->shapes[lhs->shape].type : HLO_TYPE_INVALID;
    const char *usual = "FLOAT";

    if (of == HLO_TYPE_PRED || hlo_type_text(of)[0] == 'u')
        usual = "UNSIGNED";
    else if (hlo_type_text(of)[0] == 's')
        usual = "SIGNED";
    struct xp_buf *out = next_attr(p);
    xp_buf_str(out, "direction=");
    xp_buf_span(out, direction);
    if (usual[0] == 'F' && (xp_span_eq(type, XP_SPAN_LIT("TOTALORDER")) ||
                            xp_span_eq(message(p, HLO_F_COMPARISON_ORDER), XP_SPAN_LIT("TOTAL")))) {
        xp_buf_str(next_attr(p), "order=TOTAL");
    } else if (type.n && !xp_span_eq(type, xp_span_str(usual))) {
        out = next_attr(p);
        xp_buf_str(out, "type=");
        xp_buf_span(out, type);
    }
}

static void slice(struct attr_printer *p)
{
    struct hlo_spans it = hlo_spans_open(p->in->raw, HLO_F_SLICE_DIMENSIONS);
    struct xp_span dim;
    bool strides = false;

    while (hlo_spans_next(&it, &dim))
        strides |= hlo_get_int(dim, 3, 0) != 1;
    struct xp_buf *out = next_attr(p);
    xp_buf_str(out, "slice={");
    it = hlo_spans_open(p->in->raw, HLO_F_SLICE_DIMENSIONS);
    for (const char *comma = ""; hlo_spans_next(&it, &dim); comma = ", ") {
        xp_buf_fmt(out, "%s[%lld:%lld", comma, (long long)hlo_get_int(dim, 1, 0),
                   (long long)hlo_get_int(dim, 2, 0));
        if (strides)
            xp_buf_fmt(out, ":%lld", (long long)hlo_get_int(dim, 3, 0));
        xp_buf_byte(out, ']');
    }
    xp_buf_byte(out, '}');
}

static void dot(struct attr_printer *p)
{
    hlo_text_dot_dims(next_attr(p), message(p, HLO_F_DOT_DIMENSION_NUMBERS));
    precision(p);
}

static void ragged_dot(struct attr_printer *p)
{
    struct xp_span dims = message(p, HLO_F_RAGGED_DOT_DIMENSION_NUMBERS), plain = {0};
    struct xp_buf *out = next_attr(p);

    hlo_get_span(dims, 1, &plain);
    hlo_text_dot_dims(out, plain);
    xp_buf_str(out, ", lhs_ragged_dims=");
    hlo_text_set(out, dims, 2);
    if (hlo_has_ints(dims, 3)) {
        xp_buf_str(out, ", rhs_group_dims=");
        hlo_text_set(out, dims, 3);
    }
    precision(p);
}

static void group_counts(struct attr_printer *p)
{
    int64_t feature = field(p, HLO_F_FEATURE_GROUP_COUNT);
    int64_t batch = field(p, HLO_F_BATCH_GROUP_COUNT);
    if (feature > 1)
        number(p, "feature_group_count=", feature);
    if (batch > 1)
        number(p, "batch_group_count=", batch);
}

static void conv_dims(struct attr_printer *p)
{
    struct xp_buf *out = next_attr(p);
    xp_buf_str(out, "dim_labels=");
    hlo_text_conv_dims(out, message(p, HLO_F_CONVOLUTION_DIMENSION_NUMBERS));
}

static void convolution(struct attr_printer *p)
{
    window(p);
    conv_dims(p);
    group_counts(p);
    precision(p);
}

static void aliasing(struct attr_printer *p)
{
    struct hlo_spans it = hlo_spans_open(p->in->raw, HLO_F_OUTPUT_OPERAND_ALIASING);
    struct xp_span pair;
    struct xp_buf *out = NULL;

    while (hlo_spans_next(&it, &pair)) {
        if (out)
            xp_buf_str(out, ", ");
        else
            xp_buf_str(out = next_attr(p), "output_to_operand_aliasing={");
        hlo_text_set(out, pair, 1);
        xp_buf_fmt(out, ": (%lld, ", (long long)hlo_get_int(pair, 2, 0));
        hlo_text_set(out, pair, 3);
        xp_buf_byte(out, ')');
    }
    if (out)
        xp_buf_byte(out, '}');
}

static void fusion(struct attr_printer *p)
{
    struct xp_buf *out = next_attr(p);
    xp_buf_str(out, "kind=");
    xp_buf_span(out, message(p, HLO_F_FUSION_KIND));
    aliasing(p);
}

static void put_shape(struct attr_printer *p, struct xp_buf *out, struct xp_span shape)
{
    const struct hlo_module *sm = hlo_shape_alone(shape, p->t->scratch);
    if (sm)
        hlo_shape_text(sm, 0, true, out);
    else
        xp_buf_str(out, "unknown[]");
}

static void layout_constraints(struct attr_printer *p)
{
    struct hlo_spans it = hlo_spans_open(p->in->raw, HLO_F_OPERAND_SHAPES_WITH_LAYOUT);
    struct xp_span shape;

    if (!field(p, HLO_F_CONSTRAIN_LAYOUT))
        return;
    struct xp_buf *out = next_attr(p);
    xp_buf_str(out, "operand_layout_constraints={");
    for (const char *comma = ""; hlo_spans_next(&it, &shape); comma = ", ") {
        xp_buf_str(out, comma);
        put_shape(p, out, shape);
    }
    xp_buf_byte(out, '}');
}

static void custom_call_literal(struct attr_printer *p)
{
    struct xp_span literal, shape = {0};
    if (!hlo_get_span(p->in->raw, HLO_F_LITERAL, &literal))
        return;
    struct xp_buf *out = next_attr(p);
    hlo_get_span(literal, 1, &shape);
    xp_buf_str(out, "literal=");
    put_shape(p, out, shape);
    xp_buf_byte(out, ' ');
    hlo_text_literal(p->t, literal);
}

static void custom_call(struct attr_printer *p)
{
    struct xp_span s;

    if (hlo_get_span(p->in->raw, HLO_F_WINDOW, &s)) {
        struct xp_buf *out = next_attr(p);
        xp_buf_str(out, "window={");
        hlo_text_window(out, s);
        xp_buf_byte(out, '}');
    }
    if (hlo_get_span(p->in->raw, HLO_F_CONVOLUTION_DIMENSION_NUMBERS, &s))
        conv_dims(p);
    group_counts(p);
    precision(p);
    if (field(p, HLO_F_PADDING_TYPE))
        NAMED(p, "padding_type=", field(p, HLO_F_PADDING_TYPE), "PADDING_INVALID", "PADDING_VALID",
              "PADDING_SAME");
    quoted(p, "custom_call_target=", message(p, HLO_F_CUSTOM_CALL_TARGET));
    layout_constraints(p);
    flag(p, HLO_F_CUSTOM_CALL_HAS_SIDE_EFFECT, "custom_call_has_side_effect=true");
    custom_call_literal(p);
    aliasing(p);
    if (field(p, HLO_F_CUSTOM_CALL_SCHEDULE))
        NAMED(p, "schedule=", field(p, HLO_F_CUSTOM_CALL_SCHEDULE), "SCHEDULE_NONE",
              "SCHEDULE_LATEST", "SCHEDULE_EARLIEST");
    if (field(p, HLO_F_CUSTOM_CALL_API_VERSION) != 1)
        NAMED(p, "api_version=", field(p, HLO_F_CUSTOM_CALL_API_VERSION), "API_VERSION_UNSPECIFIED",
              "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
              "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI");
}

static void infeed_config(struct attr_printer *p, const char *head, enum hlo_field f)
{
    struct xp_span config = message(p, f);
    if (p->t->opt.infeed_config && config.n)
        quoted(p, head, config);
}

static void outfeed(struct attr_printer *p)
{
    struct xp_buf *out = next_attr(p);
    xp_buf_str(out, "outfeed_shape=");
    put_shape(p, out, message(p, HLO_F_OUTFEED_SHAPE));
    infeed_config(p, "outfeed_config=", HLO_F_OUTFEED_CONFIG);
}

static void gather(struct attr_printer *p)
{
    hlo_text_gather_dims(next_attr(p), message(p, HLO_F_GATHER_DIMENSION_NUMBERS));
    set(p, "slice_sizes=", HLO_F_GATHER_SLICE_SIZES);
    flag(p, HLO_F_INDICES_ARE_SORTED, "indices_are_sorted=true");
}

static void scatter(struct attr_printer *p)
{
    hlo_text_scatter_dims(next_attr(p), message(p, HLO_F_SCATTER_DIMENSION_NUMBERS));
    flag(p, HLO_F_INDICES_ARE_SORTED, "indices_are_sorted=true");
    flag(p, HLO_F_UNIQUE_INDICES, "unique_indices=true");
}

static void sort(struct attr_printer *p)
{
    dimensions(p);
    flag(p, HLO_F_IS_STABLE, "is_stable=true");
}

static void batch_norm(struct attr_printer *p)
{
    struct xp_pb r = xp_pb_open(p->in->raw);
    struct xp_pb_field f;
    float epsilon = 0;

    while (xp_pb_next(&r, &f)) {
        uint32_t bits = (uint32_t)f.value;
        if (f.num == HLO_F_EPSILON && f.type == XP_PB_FIXED32)
            memcpy(&epsilon, &bits, sizeof epsilon);
    }
    xp_buf_fmt(next_attr(p), "epsilon=%.6g", (double)epsilon);
    number(p, "feature_index=", field(p, HLO_F_FEATURE_INDEX));
}

static void fft(struct attr_printer *p)
{
    NAMED(p, "fft_type=", field(p, HLO_F_FFT_TYPE), "FFT", "IFFT", "RFFT", "IRFFT");
    set(p, "fft_length=", HLO_F_FFT_LENGTH);
}

static void reduce_precision(struct attr_printer *p)
{
    number(p, "exponent_bits=", field(p, HLO_F_EXPONENT_BITS));
    number(p, "mantissa_bits=", field(p, HLO_F_MANTISSA_BITS));
}

static void option(struct attr_printer *p, struct xp_span options, uint32_t f, const char *text)
{
    if (hlo_get_int(options, f, 0))
        xp_buf_str(next_attr(p), text);
}

static void triangular_solve(struct attr_printer *p)
{
    struct xp_span options = message(p, HLO_F_TRIANGULAR_SOLVE_OPTIONS);
    option(p, options, 1, "left_side=true");
    option(p, options, 2, "lower=true");
    option(p, options, 3, "unit_diagonal=true");
    if (hlo_get_int(options, 4, 0))
        NAMED(p, "transpose_a=", hlo_get_int(options, 4, 0), "TRANSPOSE_INVALID", "NO_TRANSPOSE",
              "TRANSPOSE", "ADJOINT");
}

static void parameter(struct attr_printer *p)
{
    struct xp_span replication = message(p, HLO_F_PARAMETER_REPLICATION);
    struct hlo_ints it = hlo_ints_open(replication, 1);
    struct xp_buf *out = NULL;
    int64_t v;

    while (hlo_ints_next(&it, &v)) {
        const char *head = out ? "," : "parameter_replication={";
        out = out ? out : next_attr(p);
        xp_buf_fmt(out, "%s%s", head, v ? "true" : "false");
    }
    if (out)
        xp_buf_byte(out, '}');
}

static void topk(struct attr_printer *p)
{
    number(p, "k=", field(p, HLO_F_K));
    xp_buf_str(next_attr(p), field(p, HLO_F_LARGEST) ? "largest=true" : "largest=false");
    xp_buf_str(next_attr(p), field(p, HLO_F_IS_STABLE) ? "is_stable=true" : "is_stable=false");
}

static void copy_start(struct attr_printer *p)
{
    int64_t index = hlo_get_int(p->in->raw, HLO_F_CROSS_PROGRAM_PREFETCH_INDEX, -1);
    if (index < 0 && field(p, HLO_F_IS_CROSS_PROGRAM_PREFETCH))
        index = 0;
    if (index >= 0)
        number(p, "cross_program_prefetch_index=", index);
}

static void rng(struct attr_printer *p)
{
    NAMED(p, "distribution=", field(p, HLO_F_DISTRIBUTION), "rng_invalid", "rng_uniform",
          "rng_normal");
}

static void rng_bit_generator(struct attr_printer *p)
{
    NAMED(p, "algorithm=", field(p, HLO_F_RNG_ALGORITHM), "rng_default", "rng_three_fry",
          "rng_philox");
}

static void domain(struct attr_printer *p)
{
    struct xp_span entry, exit_side;
    if (!hlo_get_span(p->in->raw, HLO_F_DOMAIN_ENTRY_SHARDING, &entry) ||
        !hlo_get_span(p->in->raw, HLO_F_DOMAIN_EXIT_SHARDING, &exit_side))
        return;
    struct xp_buf *out = next_attr(p);
    xp_buf_str(out, "domain={kind=\"sharding\", entry=");
    hlo_text_sharding(out, exit_side, false);
    xp_buf_str(out, ", exit=");
    hlo_text_sharding(out, entry, false);
    xp_buf_byte(out, '}');
}

static void any_attrs(struct attr_printer *p);

static void async_start(struct attr_printer *p)
{
    struct xp_span thread = message(p, HLO_F_ASYNC_EXECUTION_THREAD);
    const struct hlo_instr *wrapped = hlo_async_wrapped(p->t->m, p->in);

    if (thread.n && !xp_span_eq(thread, XP_SPAN_LIT("main")))
        quoted(p, "async_execution_thread=", thread);
    if (wrapped && wrapped->opcode != HLO_OP_ASYNC_START) {
        struct xp_span frontend = message(p, HLO_F_FRONTEND_ATTRIBUTES), entry;
        struct hlo_spans it = hlo_spans_open(frontend, 1);
        struct attr_printer inner = {p->t, wrapped, p->attrs, hlo_spans_next(&it, &entry)};
        any_attrs(&inner);
    }
    aliasing(p);
}

static void opcode_attrs(struct attr_printer *p)
{
    switch (p->in->opcode) {
    case HLO_OP_PARAMETER:
        parameter(p);
        break;
    case HLO_OP_GET_TUPLE_ELEMENT:
        number(p, "index=", p->in->tuple_index);
        break;
    case HLO_OP_FUSION:
        fusion(p);
        break;
    case HLO_OP_INFEED:
        infeed_config(p, "infeed_config=", HLO_F_INFEED_CONFIG);
        break;
    case HLO_OP_DYNAMIC_SLICE:
        set(p, "dynamic_slice_sizes=", HLO_F_DYNAMIC_SLICE_SIZES);
        break;
    case HLO_OP_PAD:
        xp_buf_str(next_attr(p), "padding=");
        hlo_text_padding(p->t->out, message(p, HLO_F_PADDING_CONFIG));
        break;
    case HLO_OP_IOTA:
        first_dimension(p, "iota_dimension=", "");
        break;
    case HLO_OP_RESHAPE:
        first_dimension(p, "inferred_dimension=", "");
        break;
    case HLO_OP_RNG_GET_AND_UPDATE_STATE:
        number(p, "delta=", field(p, HLO_F_DELTA));
        break;
    case HLO_OP_CHOLESKY:
        option(p, message(p, HLO_F_CHOLESKY_OPTIONS), 1, "lower=true");
        break;
    default:
        break;
    }
}

typedef void (*attr_fn)(struct attr_printer *p);

static const attr_fn by_opcode[HLO_OP_COUNT] = {
    [HLO_OP_ALL_GATHER] = all_gather,
    [HLO_OP_ALL_GATHER_START] = all_gather,
    [HLO_OP_ALL_REDUCE] = all_reduce,
    [HLO_OP_ALL_REDUCE_START] = all_reduce,
    [HLO_OP_ALL_TO_ALL] = all_to_all,
    [HLO_OP_ASYNC_START] = async_start,
    [HLO_OP_ASYNC_UPDATE] = aliasing,
    [HLO_OP_BATCH_NORM_GRAD] = batch_norm,
    [HLO_OP_BATCH_NORM_INFERENCE] = batch_norm,
    [HLO_OP_BATCH_NORM_TRAINING] = batch_norm,
    [HLO_OP_BROADCAST] = dimensions,
    [HLO_OP_CALL] = aliasing,
    [HLO_OP_COLLECTIVE_BROADCAST] = collective_broadcast,
    [HLO_OP_COLLECTIVE_PERMUTE] = collective_permute,
    [HLO_OP_COLLECTIVE_PERMUTE_START] = collective_permute,
    [HLO_OP_COMPARE] = compare,
    [HLO_OP_CONCATENATE] = dimensions,
    [HLO_OP_CONVOLUTION] = convolution,
    [HLO_OP_COPY_START] = copy_start,
    [HLO_OP_CUSTOM_CALL] = custom_call,
    [HLO_OP_DOMAIN] = domain,
    [HLO_OP_DOT] = dot,
    [HLO_OP_FFT] = fft,
    [HLO_OP_GATHER] = gather,
    [HLO_OP_GET_DIMENSION_SIZE] = dimensions,
    [HLO_OP_MAP] = dimensions,
    [HLO_OP_OUTFEED] = outfeed,
    [HLO_OP_RAGGED_ALL_TO_ALL] = collective,
    [HLO_OP_RAGGED_DOT] = ragged_dot,
    [HLO_OP_RECV] = send_recv,
    [HLO_OP_RECV_DONE] = send_recv,
    [HLO_OP_REDUCE] = dimensions,
    [HLO_OP_REDUCE_PRECISION] = reduce_precision,
    [HLO_OP_REDUCE_SCATTER] = reduce_scatter,
    [HLO_OP_REDUCE_WINDOW] = window,
    [HLO_OP_REVERSE] = dimensions,
    [HLO_OP_RNG] = rng,
    [HLO_OP_RNG_BIT_GENERATOR] = rng_bit_generator,
    [HLO_OP_SCATTER] = scatter,
    [HLO_OP_SELECT_AND_SCATTER] = window,
    [HLO_OP_SEND] = send_recv,
    [HLO_OP_SEND_DONE] = send_recv,
    [HLO_OP_SET_DIMENSION_SIZE] = dimensions,
    [HLO_OP_SLICE] = slice,
    [HLO_OP_SORT] = sort,
    [HLO_OP_TOPK] = topk,
    [HLO_OP_TRANSPOSE] = dimensions,
    [HLO_OP_TRIANGULAR_SOLVE] = triangular_solve,
};

/* --- called computations --- */

static void called_name(struct attr_printer *p, uint32_t k)
{
    const struct hlo_module *m = p->t->m;
    const struct hlo_comp *c =
        k < p->in->called.n ? hlo_comp_at(m, m->refs[p->in->called.at + k]) : NULL;
    hlo_text_ref(p->t, c ? c->name : XP_SPAN_LIT("null"));
}

static void call_attr(struct attr_printer *p, const char *head, uint32_t k)
{
    xp_buf_str(next_attr(p), head);
    called_name(p, k);
}

static void call_list(struct attr_printer *p, const char *head, const char *tail)
{
    xp_buf_str(next_attr(p), head);
    for (uint32_t k = 0; k < p->in->called.n; k++) {
        if (k)
            xp_buf_str(p->t->out, ", ");
        called_name(p, k);
    }
    xp_buf_str(p->t->out, tail);
}

static bool applies(enum hlo_opcode op)
{
    return op == HLO_OP_CALL || op == HLO_OP_MAP || op == HLO_OP_REDUCE_WINDOW ||
           op == HLO_OP_REDUCE || op == HLO_OP_ALL_REDUCE || op == HLO_OP_REDUCE_SCATTER ||
           op == HLO_OP_ALL_REDUCE_START || op == HLO_OP_SCATTER || op == HLO_OP_SORT ||
           op == HLO_OP_SCAN;
}

static void conditional_calls(struct attr_printer *p)
{
    const struct hlo_instr *on = hlo_operand(p->t->m, p->in, 0);
    if (on && p->t->m->shapes[on->shape].type == HLO_TYPE_PRED) {
        call_attr(p, "true_computation=", 0);
        call_attr(p, "false_computation=", 1);
    } else {
        call_list(p, "branch_computations={", "}");
    }
}

static void called_attrs(struct attr_printer *p)
{
    enum hlo_opcode op = p->in->opcode;
    bool any = p->in->called.n > 0;

    if (op == HLO_OP_WHILE) { /* the body comes first in the file */
        call_attr(p, "condition=", 1);
        call_attr(p, "body=", 0);
    } else if (op == HLO_OP_SELECT_AND_SCATTER) {
        call_attr(p, "select=", 0);
        call_attr(p, "scatter=", 1);
    } else if (op == HLO_OP_CONDITIONAL) {
        conditional_calls(p);
    } else if (applies(op)) {
        if (any)
            call_attr(p, "to_apply=", 0);
        if (op == HLO_OP_CALL)
            flag(p, HLO_F_IS_COMPOSITE, "is_composite=true");
    } else if (op == HLO_OP_CUSTOM_CALL) {
        if (any)
            call_list(p, "called_computations={", "}");
    } else if (op == HLO_OP_ASYNC_START) {
        if (any && !hlo_async_wrapped(p->t->m, p->in))
            call_attr(p, "calls=", 0);
    } else if (op != HLO_OP_ASYNC_UPDATE && op != HLO_OP_ASYNC_DONE && any) {
        call_list(p, "calls=", "");
    }
}

/* --- what any instruction may have --- */

static void control_predecessors(struct attr_printer *p)
{
    const struct hlo_module *m = p->t->m;
    const struct hlo_run *run = &p->in->controls;

    if (run->n == 0)
        return;
    struct xp_buf *out = next_attr(p);
    xp_buf_str(out, "control-predecessors={");
    for (uint32_t k = 0; k < run->n; k++) {
        const struct hlo_instr *in = hlo_instr_at(m, m->refs[run->at + k]);
        if (k)
            xp_buf_str(out, ", ");
        hlo_text_ref(p->t, in ? in->name : XP_SPAN_LIT("null"));
    }
    xp_buf_byte(out, '}');
}

static double fixed64_field(struct xp_span msg, uint32_t num)
{
    struct xp_pb r = xp_pb_open(msg);
    struct xp_pb_field f;
    double v = 0;
    while (xp_pb_next(&r, &f))
        if (f.num == num && f.type == XP_PB_FIXED64)
            v = xp_pb_double(f.value);
    return v;
}

static void statistics(struct attr_printer *p)
{
    struct xp_span viz = message(p, HLO_F_STATISTICS_VIZ), stat, name;
    struct hlo_spans it = hlo_spans_open(viz, 2);
    struct xp_buf *out = NULL;

    while (hlo_spans_next(&it, &stat)) {
        if (!out) {
            out = next_attr(p);
            xp_buf_fmt(out, "statistics={visualizing_index=%lld",
                       (long long)hlo_get_int(viz, 1, 0));
        }
        xp_buf_byte(out, ',');
        if (hlo_get_span(stat, 1, &name))
            xp_buf_span(out, name);
        xp_buf_fmt(out, "=%.6g", fixed64_field(stat, 2));
    }
    if (out)
        xp_buf_byte(out, '}');
}

static void result_accuracy(struct attr_printer *p)
{
    struct xp_span accuracy = message(p, HLO_F_RESULT_ACCURACY), tolerance;

    if (hlo_get_int(accuracy, 1, 0) == 1)
        xp_buf_str(next_attr(p), "result_accuracy={mode=highest}");
    else if (hlo_get_span(accuracy, 2, &tolerance))
        xp_buf_fmt(next_attr(p), "result_accuracy={tolerance={atol=%.6g,rtol=%.6g,ulps=%lld}}",
                   fixed64_field(tolerance, 1), fixed64_field(tolerance, 2),
                   (long long)hlo_get_int(tolerance, 3, 0));
}

static void any_attrs(struct attr_printer *p)
{
    struct xp_span s, entry;

    if (by_opcode[p->in->opcode])
        by_opcode[p->in->opcode](p);
    else
        opcode_attrs(p);
    if (p->t->opt.called)
        called_attrs(p);
    if (hlo_get_span(p->in->raw, HLO_F_SHARDING, &s)) {
        xp_buf_str(next_attr(p), "sharding=");
        hlo_text_sharding(p->t->out, s, p->t->opt.metadata);
    }
    s = message(p, HLO_F_FRONTEND_ATTRIBUTES);
    struct hlo_spans it = hlo_spans_open(s, 1);
    if (!p->no_frontend && hlo_spans_next(&it, &entry)) {
        xp_buf_str(next_attr(p), "frontend_attributes=");
        hlo_text_frontend(p->t->out, s, p->t->scratch);
    }
    if (p->t->opt.controls)
        control_predecessors(p);
    statistics(p);
    result_accuracy(p);
}

void hlo_text_attrs(const struct hlo_text *t, const struct hlo_instr *in, struct hlo_attrs *attrs)
{
    struct attr_printer p = {t, in, attrs, false};
    attrs->n = 0;
    any_attrs(&p);
    attrs->start[attrs->n] = t->out->n;
}
