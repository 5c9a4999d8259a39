#include "shard/hlo/text_int.h"

#include <stdlib.h>

const struct hlo_text_options hlo_text_default = {
    .percent = true,
    .program_shape = true,
    .large_constants = true,
    .metadata = true,
    .backend_config = true,
    .infeed_config = true,
    .called = true,
    .controls = true,
    .operand_index = 5,
};

const struct hlo_text_options hlo_text_short = {
    .large_constants = true,
    .backend_config = true,
    .infeed_config = true,
    .called = true,
};

/* --- words --- */

void hlo_text_escape(struct xp_buf *out, struct xp_span s)
{
    static const char special[] = "\n\r\t\"'\\", letters[] = "nrt\"'\\";

    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        const char *at = c ? strchr(special, c) : NULL;
        if (at)
            xp_buf_fmt(out, "\\%c", letters[at - special]);
        else if (c >= 0x20 && c < 0x7f)
            xp_buf_byte(out, c);
        else
            xp_buf_fmt(out, "\\%03o", c);
    }
}

bool hlo_lexes_as_dict(struct xp_span s)
{
    bool in_string = false, escaped = false;
    size_t depth = 0;

    if (s.n < 2 || s.p[0] != '{')
        return false;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        if (in_string) {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{') {
            depth++;
        } else if (c == '}' && --depth == 0) {
            return i + 1 == s.n;
        }
    }
    return false;
}

static bool name_byte(uint8_t c, bool first)
{
    uint8_t lower = c | 0x20;
    if ((lower >= 'a' && lower <= 'z') || c == '_')
        return true;
    return !first && ((c >= '0' && c <= '9') || c == '.' || c == '-');
}

static bool is_type_name(struct xp_span name)
{
    for (uint32_t type = 1; name.n <= 16 && type <= HLO_TYPE_F6E2M3FN; type++)
        if (xp_span_eq(name, xp_span_str(hlo_type_text(type))))
            return type != HLO_TYPE_TUPLE;
    return false;
}

void hlo_text_name(struct xp_buf *out, struct xp_span name)
{
    for (size_t i = 0; i < name.n; i++)
        xp_buf_byte(out, name_byte(name.p[i], i == 0) ? name.p[i] : '_');
    if (is_type_name(name))
        xp_buf_byte(out, '_');
}

void hlo_text_ref(const struct hlo_text *t, struct xp_span name)
{
    if (t->opt.percent)
        xp_buf_byte(t->out, '%');
    hlo_text_name(t->out, name);
}

const struct hlo_module *hlo_shape_alone(struct xp_span shape, struct xp_arena *scratch)
{
    struct xp_error err;
    struct hlo_decoder d = {.err = &err};
    uint32_t index;

    xp_bump_init(&d.bump, scratch);
    d.shapes.size = sizeof(struct hlo_shape);
    d.ints.size = sizeof(int64_t);
    d.m = xp_bump_alloc(&d.bump, sizeof *d.m, 16);
    if (!d.m)
        return NULL;
    memset(d.m, 0, sizeof *d.m);
    d.m->bytes = shape;
    if (hlo_decode_shape(&d, shape, &index) != XP_OK)
        return NULL;
    d.m->shapes = d.shapes.p, d.m->nshapes = d.shapes.n;
    d.m->ints = d.ints.p, d.m->nints = d.ints.n;
    return d.m;
}

/* --- small things of an instruction --- */

static void meta_text(struct xp_buf *out, const char **gap, const char *head, struct xp_span s)
{
    if (s.n == 0)
        return;
    xp_buf_fmt(out, "%s%s=\"", *gap, head);
    hlo_text_escape(out, s);
    xp_buf_byte(out, '"');
    *gap = " ";
}

static void meta_number(struct xp_buf *out, const char **gap, const char *head, int32_t v)
{
    if (v == 0)
        return;
    xp_buf_fmt(out, "%s%s=%d", *gap, head, v);
    *gap = " ";
}

void hlo_text_metadata(const struct hlo_meta *meta, struct xp_buf *out)
{
    const char *gap = "";

    meta_text(out, &gap, "op_type", meta->op_type);
    meta_text(out, &gap, "op_name", meta->op_name);
    meta_text(out, &gap, "source_file", meta->source_file);
    meta_number(out, &gap, "source_line", meta->source_line);
    meta_number(out, &gap, "source_end_line", meta->source_end_line);
    meta_number(out, &gap, "source_column", meta->source_column);
    meta_number(out, &gap, "source_end_column", meta->source_end_column);
    meta_text(out, &gap, "deduplicated_name", meta->deduplicated_name);
    meta_text(out, &gap, "scheduling_name", meta->scheduling_name);
    meta_number(out, &gap, "stack_frame_id", meta->stack_frame_id);
}

struct xp_span hlo_backend_config(const struct hlo_module *m, const struct hlo_instr *in)
{
    struct xp_span config = {0}, payload;

    if (hlo_get_span(in->raw, HLO_F_BACKEND_CONFIG, &config) && config.n)
        return config;
    if (!hlo_get_span(in->raw, HLO_F_BACKEND_CONFIG_PAYLOAD, &payload) ||
        hlo_get_span(payload, 1, &config))
        return config;
    int64_t id = hlo_get_int(payload, 2, -1);
    struct hlo_spans it = hlo_spans_open(m->raw, 22);
    for (; id >= 0 && hlo_spans_next(&it, &payload); id--)
        if (id == 0)
            return payload;
    return (struct xp_span){0};
}

void hlo_text_backend_config(struct xp_buf *out, struct xp_span config)
{
    static const char gone[] = "\"wait_on_operation_queues\":[],";
    const uint8_t *at = config.n ? memmem(config.p, config.n, gone, sizeof gone - 1) : NULL;

    if (at) {
        xp_buf_add(out, config.p, (size_t)(at - config.p));
        config.n -= (size_t)(at - config.p) + sizeof gone - 1;
        config.p = at + sizeof gone - 1;
    }
    xp_buf_span(out, config);
}

struct pair {
    struct xp_span key, value;
};

static int pair_cmp(const void *x, const void *y)
{
    const struct pair *a = x, *b = y;
    int c = xp_span_cmp(a->key, b->key);
    return c ? c : xp_span_cmp(a->value, b->value);
}

void hlo_text_frontend(struct xp_buf *out, struct xp_span attributes, struct xp_arena *scratch)
{
    struct hlo_spans it = hlo_spans_open(attributes, 1);
    struct xp_span entry;
    size_t n = 0;

    while (hlo_spans_next(&it, &entry))
        n++;
    struct pair *pairs = xp_arena_zalloc(scratch, (n + 1) * sizeof *pairs);
    it = hlo_spans_open(attributes, 1);
    for (size_t i = 0; pairs && hlo_spans_next(&it, &entry); i++) {
        hlo_get_span(entry, 1, &pairs[i].key);
        hlo_get_span(entry, 2, &pairs[i].value);
    }
    if (pairs)
        qsort(pairs, n, sizeof *pairs, pair_cmp);
    xp_buf_byte(out, '{');
    for (size_t i = 0; pairs && i < n; i++) {
        if (i)
            xp_buf_byte(out, ',');
        xp_buf_span(out, pairs[i].key);
        xp_buf_byte(out, '=');
        if (hlo_lexes_as_dict(pairs[i].value)) {
            xp_buf_span(out, pairs[i].value);
            continue;
        }
        xp_buf_byte(out, '"');
        hlo_text_escape(out, pairs[i].value);
        xp_buf_byte(out, '"');
    }
    xp_buf_byte(out, '}');
}

static bool only_parameters(const struct hlo_module *m, const struct hlo_comp *c)
{
    for (uint32_t k = 0; k < c->instrs.n; k++) {
        uint32_t i = c->instrs.at + k;
        if (i != c->root && m->instrs[i].opcode != HLO_OP_PARAMETER)
            return false;
    }
    return c->root != HLO_NONE;
}

const struct hlo_instr *hlo_async_wrapped(const struct hlo_module *m, const struct hlo_instr *in)
{
    /* async-done and async-update lead back to their start; a ring of them does not. */
    for (uint32_t n = 0; in && in->opcode != HLO_OP_ASYNC_START; n++) {
        if ((in->opcode != HLO_OP_ASYNC_UPDATE && in->opcode != HLO_OP_ASYNC_DONE) ||
            n == m->ninstrs)
            return NULL;
        in = hlo_operand(m, in, 0);
    }
    if (!in || in->called.n == 0)
        return NULL;
    const struct hlo_comp *c = hlo_comp_at(m, m->refs[in->called.at]);
    return c && only_parameters(m, c) ? &m->instrs[c->root] : NULL;
}

static bool is_elementwise(enum hlo_opcode op)
{
    return hlo_opcode_elementwise(op) || op == HLO_OP_CONSTANT || op == HLO_OP_MAP ||
           op == HLO_OP_RNG;
}

static bool dilated(const struct hlo_instr *in, uint32_t dim_field)
{
    struct xp_span window = {0}, dim;
    hlo_get_span(in->raw, HLO_F_WINDOW, &window);
    struct hlo_spans it = hlo_spans_open(window, 1);
    while (hlo_spans_next(&it, &dim))
        if (hlo_get_int(dim, dim_field, 0) != 1)
            return true;
    return false;
}

void hlo_text_category(const struct hlo_module *m, const struct hlo_instr *in, struct xp_buf *out)
{
    struct xp_span kind = {0};

    (void)m;
    if (in->opcode == HLO_OP_FUSION) {
        hlo_get_span(in->raw, HLO_F_FUSION_KIND, &kind);
        xp_buf_str(out, xp_span_eq(kind, XP_SPAN_LIT("kInput"))    ? "input fusion"
                        : xp_span_eq(kind, XP_SPAN_LIT("kOutput")) ? "output fusion"
                        : xp_span_eq(kind, XP_SPAN_LIT("kCustom")) ? "custom fusion"
                                                                   : "loop fusion");
    } else if (in->opcode == HLO_OP_CONVOLUTION) {
        xp_buf_str(out, "convolution");
        xp_buf_str(out, dilated(in, 6) ? " base-dilated" : "");
        xp_buf_str(out, dilated(in, 5) ? " window-dilated" : "");
    } else if (in->opcode == HLO_OP_TRANSPOSE || in->opcode == HLO_OP_COPY ||
               in->opcode == HLO_OP_RESHAPE || in->opcode == HLO_OP_DYNAMIC_RESHAPE) {
        xp_buf_str(out, "data formatting");
    } else if (is_elementwise(in->opcode)) {
        xp_buf_str(out, "non-fusion elementwise");
    } else {
        xp_buf_span(out, in->opcode_text);
    }
}

/* --- the instruction --- */

static void operand(const struct hlo_text *t, uint32_t at)
{
    const struct hlo_instr *in = hlo_instr_at(t->m, at);
    if (!in) {
        xp_buf_str(t->out, "null ");
        return;
    }
    if (t->opt.operand_shapes) {
        hlo_shape_text(t->m, in->shape, true, t->out);
        xp_buf_byte(t->out, ' ');
    }
    hlo_text_ref(t, in->name);
}

static void constant(const struct hlo_text *t, const struct hlo_instr *in)
{
    struct xp_span literal;
    bool array = hlo_type_bits(t->m->shapes[in->shape].type) != 0;
    bool few = array && hlo_shape_elements(t->m, in->shape) <= 10;

    if (hlo_get_span(in->raw, HLO_F_LITERAL, &literal) && (few || t->opt.large_constants))
        hlo_text_literal(t, literal);
    else
        xp_buf_str(t->out, "{...}");
}

static void operands(const struct hlo_text *t, const struct hlo_instr *in)
{
    if (in->opcode == HLO_OP_PARAMETER) {
        xp_buf_fmt(t->out, "%lld", (long long)in->parameter_number);
        return;
    }
    if (in->opcode == HLO_OP_CONSTANT) {
        constant(t, in);
        return;
    }
    for (uint32_t k = 0; k < in->operands.n && !t->out->failed; k++) {
        if (k && t->opt.operand_index && k % t->opt.operand_index == 0)
            xp_buf_fmt(t->out, ", /*index=%u*/", k);
        else if (k)
            xp_buf_str(t->out, ", ");
        operand(t, t->m->refs[in->operands.at + k]);
    }
}

static void opcode(const struct hlo_text *t, const struct hlo_instr *in)
{
    bool async = in->opcode == HLO_OP_ASYNC_START || in->opcode == HLO_OP_ASYNC_UPDATE ||
                 in->opcode == HLO_OP_ASYNC_DONE;
    const struct hlo_instr *wrapped = async ? hlo_async_wrapped(t->m, in) : NULL;

    if (!wrapped) {
        xp_buf_span(t->out, in->opcode_text);
        return;
    }
    xp_buf_span(t->out, wrapped->opcode_text);
    xp_buf_str(t->out, hlo_opcode_text(in->opcode) + strlen("async"));
}

static void put_metadata(const struct hlo_text *t, struct xp_span metadata)
{
    struct hlo_meta meta = hlo_meta_read(metadata);
    uint32_t frame = (uint32_t)meta.stack_frame_id - 1;

    if (t->frame_numbers)
        meta.stack_frame_id = frame < t->m->nframes ? (int32_t)t->frame_numbers[frame] : 0;
    if (!meta.op_type.n && !meta.op_name.n && !meta.source_file.n && !meta.scheduling_name.n &&
        !meta.stack_frame_id)
        return;
    xp_buf_str(t->out, ", metadata={");
    hlo_text_metadata(&meta, t->out);
    xp_buf_byte(t->out, '}');
}

static void put_backend_config(const struct hlo_text *t, struct xp_span config)
{
    xp_buf_str(t->out, ", backend_config=");
    if (hlo_lexes_as_dict(config)) {
        hlo_text_backend_config(t->out, config);
        return;
    }
    xp_buf_byte(t->out, '"');
    hlo_text_escape(t->out, config);
    xp_buf_byte(t->out, '"');
}

void hlo_text_instr(const struct hlo_text *t, const struct hlo_instr *in)
{
    struct hlo_attrs attrs = {.separator = ", "};
    struct xp_span s;

    hlo_text_ref(t, in->name);
    xp_buf_str(t->out, " = ");
    hlo_shape_text(t->m, in->shape, true, t->out);
    xp_buf_byte(t->out, ' ');
    opcode(t, in);
    xp_buf_byte(t->out, '(');
    operands(t, in);
    xp_buf_byte(t->out, ')');
    hlo_text_attrs(t, in, &attrs);
    if (hlo_get_span(in->raw, HLO_F_ORIGINAL_VALUE, &s))
        hlo_text_original(t, in, s);
    if (t->opt.metadata)
        put_metadata(t, in->metadata);
    if (t->opt.backend_config && (s = hlo_backend_config(t->m, in)).n)
        put_backend_config(t, s);
}
