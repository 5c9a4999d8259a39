/* How a node looks: colours and words. */
#include "shard/hlo/dot_int.h"

#include <ctype.h>
#include <inttypes.h>
#include <strings.h>

/* --- colours --- */

void dot_color_text(struct xp_buf *out, enum dot_color color)
{
    static const struct {
        const char *style, *fill, *stroke, *font;
    } colors[] = {
        [DOT_BROWN] = {"filled", "#bcaaa4", "#8c7b75", "black"},
        [DOT_DARK_BLUE] = {"filled", "#1565c0", "#003c8f", "white"},
        [DOT_DARK_GREEN] = {"filled", "#2e7d32", "#005005", "white"},
        [DOT_DARK_ORANGE] = {"filled", "#ffb74d", "#c88719", "black"},
        [DOT_DARK_RED] = {"filled", "#b71c1c", "#7f0000", "white"},
        [DOT_GRAY] = {"filled", "#cfd8dc", "#9ea7aa", "black"},
        [DOT_GREEN] = {"filled", "#c8e6c9", "#97b498", "black"},
        [DOT_ORANGE] = {"filled", "#ffe0b2", "#cbae82", "black"},
        [DOT_PURPLE] = {"filled", "#e1bee7", "#af8eb5", "black"},
        [DOT_WHITE] = {"filled", "white", "#9e9e9e", "black"},
        [DOT_YELLOW] = {"filled", "#fff9c4", "#cbc693", "black"},
        [DOT_DASHED] = {"filled,dashed", "white", "#757575", "#757575"},
    };
    xp_buf_fmt(out, "style=\"%s\", fontcolor=\"%s\", color=\"%s\", fillcolor=\"%s\"",
               colors[color].style, colors[color].font, colors[color].stroke, colors[color].fill);
}

/* What is not here is white: element by element, or no work at all. */
static const uint8_t by_opcode[HLO_OP_COUNT] = {
    [HLO_OP_ALL_GATHER] = DOT_BROWN,
    [HLO_OP_ALL_GATHER_DONE] = DOT_BROWN,
    [HLO_OP_ALL_GATHER_START] = DOT_BROWN,
    [HLO_OP_ALL_REDUCE] = DOT_BROWN,
    [HLO_OP_ALL_REDUCE_DONE] = DOT_BROWN,
    [HLO_OP_ALL_REDUCE_START] = DOT_BROWN,
    [HLO_OP_ALL_TO_ALL] = DOT_BROWN,
    [HLO_OP_BATCH_NORM_GRAD] = DOT_PURPLE,
    [HLO_OP_BATCH_NORM_INFERENCE] = DOT_PURPLE,
    [HLO_OP_BATCH_NORM_TRAINING] = DOT_PURPLE,
    [HLO_OP_BROADCAST] = DOT_YELLOW,
    [HLO_OP_CALL] = DOT_DARK_GREEN,
    [HLO_OP_CHOLESKY] = DOT_DARK_BLUE,
    [HLO_OP_COLLECTIVE_BROADCAST] = DOT_BROWN,
    [HLO_OP_COLLECTIVE_PERMUTE] = DOT_BROWN,
    [HLO_OP_COLLECTIVE_PERMUTE_DONE] = DOT_BROWN,
    [HLO_OP_COLLECTIVE_PERMUTE_START] = DOT_BROWN,
    [HLO_OP_CONCATENATE] = DOT_GREEN,
    [HLO_OP_CONDITIONAL] = DOT_DARK_GREEN,
    [HLO_OP_CONVOLUTION] = DOT_DARK_BLUE,
    [HLO_OP_COPY] = DOT_GREEN,
    [HLO_OP_COPY_DONE] = DOT_GREEN,
    [HLO_OP_COPY_START] = DOT_GREEN,
    [HLO_OP_CUSTOM_CALL] = DOT_DARK_GREEN,
    [HLO_OP_DOMAIN] = DOT_GRAY,
    [HLO_OP_DOT] = DOT_DARK_BLUE,
    [HLO_OP_DYNAMIC_RESHAPE] = DOT_GREEN,
    [HLO_OP_DYNAMIC_SLICE] = DOT_GREEN,
    [HLO_OP_DYNAMIC_UPDATE_SLICE] = DOT_YELLOW,
    [HLO_OP_FFT] = DOT_DARK_BLUE,
    [HLO_OP_FUSION] = DOT_GRAY,
    [HLO_OP_GATHER] = DOT_PURPLE,
    [HLO_OP_GET_DIMENSION_SIZE] = DOT_GRAY,
    [HLO_OP_INFEED] = DOT_BROWN,
    [HLO_OP_MAP] = DOT_GRAY,
    [HLO_OP_OUTFEED] = DOT_BROWN,
    [HLO_OP_PARTITION_ID] = DOT_BROWN,
    [HLO_OP_RAGGED_ALL_TO_ALL] = DOT_BROWN,
    [HLO_OP_RAGGED_DOT] = DOT_DARK_BLUE,
    [HLO_OP_RECV] = DOT_BROWN,
    [HLO_OP_RECV_DONE] = DOT_BROWN,
    [HLO_OP_REDUCE] = DOT_PURPLE,
    [HLO_OP_REDUCE_SCATTER] = DOT_BROWN,
    [HLO_OP_REDUCE_WINDOW] = DOT_PURPLE,
    [HLO_OP_REPLICA_ID] = DOT_BROWN,
    [HLO_OP_RESHAPE] = DOT_GREEN,
    [HLO_OP_REVERSE] = DOT_GREEN,
    [HLO_OP_SCALED_DOT] = DOT_DARK_BLUE,
    [HLO_OP_SCAN] = DOT_PURPLE,
    [HLO_OP_SCATTER] = DOT_PURPLE,
    [HLO_OP_SELECT_AND_SCATTER] = DOT_PURPLE,
    [HLO_OP_SEND] = DOT_BROWN,
    [HLO_OP_SEND_DONE] = DOT_BROWN,
    [HLO_OP_SET_DIMENSION_SIZE] = DOT_GRAY,
    [HLO_OP_TRANSPOSE] = DOT_GREEN,
    [HLO_OP_TRIANGULAR_SOLVE] = DOT_DARK_BLUE,
    [HLO_OP_WHILE] = DOT_DARK_GREEN,
};

static bool has_merged_parameter(struct dot *d, const struct hlo_instr *in)
{
    for (uint32_t k = 0; k < in->operands.n; k++) {
        const struct hlo_instr *of = hlo_operand(d->m, in, k);
        if (of && of->opcode == HLO_OP_PARAMETER && dot_merged(d, of) && !dot_fused_constant(d, of))
            return true;
    }
    return false;
}

/* The instruction that an async operation runs; itself for any other. */
static const struct hlo_instr *async_target(const struct dot *d, const struct hlo_instr *in)
{
    const struct hlo_instr *at = in;

    for (uint32_t n = 0; at && n < d->m->ninstrs &&
                         (at->opcode == HLO_OP_ASYNC_DONE || at->opcode == HLO_OP_ASYNC_UPDATE);
         n++)
        at = hlo_operand(d->m, at, 0);
    if (!at || at->opcode != HLO_OP_ASYNC_START || at->called.n == 0)
        return in;
    const struct hlo_comp *c = hlo_comp_at(d->m, d->m->refs[at->called.at]);
    return c && c->root != HLO_NONE ? &d->m->instrs[c->root] : in;
}

enum dot_color dot_color_of(struct dot *d, const struct hlo_instr *in)
{
    in = async_target(d, in);
    enum dot_color parameter = dot_is_small(d, in) ? DOT_ORANGE : DOT_DARK_ORANGE;

    if (in->opcode == HLO_OP_PARAMETER || has_merged_parameter(d, in))
        return parameter;
    if (in->opcode == HLO_OP_BITCAST && dot_is_fused(d, in))
        return DOT_GREEN;
    return (enum dot_color)by_opcode[in->opcode];
}

/* --- words --- */

void dot_html(struct xp_buf *out, struct xp_span s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '<')
            xp_buf_str(out, "&lt;");
        else if (s.p[i] == '>')
            xp_buf_str(out, "&gt;");
        else if (s.p[i] == '"')
            xp_buf_str(out, "&quot;");
        else
            xp_buf_byte(out, s.p[i]);
    }
}

/* Text between quotation marks, where graphviz takes backslashes for its own. */
static void quoted(struct xp_buf *out, struct xp_span s)
{
    const uint8_t *slash;

    while (s.n && (slash = memchr(s.p, '\\', s.n))) {
        size_t n = (size_t)(slash - s.p) + 1;
        dot_html(out, xp_span_of(s.p, n));
        xp_buf_byte(out, '\\');
        s = xp_span_of(s.p + n, s.n - n);
    }
    dot_html(out, s);
}

/* The length of <module>, <lambda> and the like at the beginning of s; 0: it is something else, as
 * what has attributes or is a script. */
static size_t frame_word(struct xp_span s)
{
    size_t n = 1;

    if (s.n >= 7 && strncasecmp((const char *)s.p + 1, "script", 6) == 0)
        return 0;
    while (n < s.n && (s.p[n] == '_' || s.p[n] == ' ' || s.p[n] == '\'' || isalnum(s.p[n])))
        n++;
    return n > 1 && n < s.n && s.p[n] == '>' ? n + 1 : 0;
}

/* The same of a place in the source, where XProf leaves such words as they are. */
static void quoted_place(struct xp_buf *out, struct xp_span s)
{
    const uint8_t *open;

    while (s.n && (open = memchr(s.p, '<', s.n))) {
        size_t n = (size_t)(open - s.p);
        size_t word = frame_word(xp_span_of(open, s.n - n));
        quoted(out, xp_span_of(s.p, n));
        if (word)
            xp_buf_add(out, open, word);
        else
            xp_buf_str(out, "&lt;");
        n += word ? word : 1;
        s = xp_span_of(s.p + n, s.n - n);
    }
    quoted(out, s);
}

/* What was written to out from `at` on becomes text for a label. */
static void html_from(struct xp_buf *out, size_t at)
{
    struct xp_buf copy;

    if (out->failed)
        return;
    xp_buf_init(&copy, out->max);
    xp_buf_add(&copy, out->p + at, out->n - at);
    out->n = at;
    dot_html(out, xp_buf_all(&copy));
    xp_buf_fini(&copy);
}

static void opcode_text(struct xp_buf *out, const struct hlo_instr *in)
{
    struct xp_span kind = {0};
    dot_html(out, in->opcode_text);
    if (in->opcode != HLO_OP_FUSION)
        return;
    hlo_get_span(in->raw, HLO_F_FUSION_KIND, &kind);
    xp_buf_byte(out, ':');
    dot_html(out, kind);
}

/* What a call gives to the parameter. */
static void parameter_source(const struct dot *d, const struct hlo_instr *in)
{
    struct xp_buf *out = d->to->out;
    const struct hlo_instr *call = hlo_instr_at(d->m, d->call[in->comp]);
    const struct hlo_instr *from =
        call && in->parameter_number >= 0 && in->parameter_number < call->operands.n
            ? hlo_operand(d->m, call, (uint32_t)in->parameter_number)
            : NULL;
    if (!from)
        return;
    xp_buf_str(out, "<br/><i>from ");
    hlo_text_name(out, from->name);
    xp_buf_str(out, " in ");
    if (from->comp == d->m->entry)
        xp_buf_str(out, "the ENTRY computation");
    else
        hlo_text_name(out, d->m->comps[from->comp].name);
    xp_buf_str(out, "</i>");
}

static void title(const struct dot *d, const struct hlo_instr *in)
{
    struct xp_buf *out = d->to->out;

    xp_buf_str(out, "<b>");
    if (in->opcode == HLO_OP_PARAMETER) {
        xp_buf_fmt(out, "Parameter %" PRId64 "</b>", in->parameter_number);
        parameter_source(d, in);
    } else if (xp_span_starts(in->name, in->opcode_text)) {
        hlo_text_name(out, in->name);
        xp_buf_str(out, "</b>");
    } else {
        hlo_text_name(out, in->name);
        xp_buf_str(out, "</b><br/>");
        opcode_text(out, in);
    }
}

static void trivial_calls(const struct dot *d, const struct hlo_instr *in)
{
    struct xp_buf *out = d->to->out;

    for (uint32_t k = 0; in->opcode != HLO_OP_FUSION && k < in->called.n; k++) {
        const char *what = dot_trivial(d, d->m->refs[in->called.at + k]);
        if (!what)
            continue;
        xp_buf_str(out, "<br/>Subcomputation");
        if (in->called.n > 1)
            xp_buf_fmt(out, " %u", k);
        xp_buf_fmt(out, ": <b>%s</b>", what);
    }
}

/* Some attributes list every device. */
#define DEVICES_MAX 128

static bool is_device_list(struct xp_span s)
{
    return xp_span_starts(s, XP_SPAN_LIT("replica_groups=")) ||
           xp_span_starts(s, XP_SPAN_LIT("source_target_pairs=")) ||
           xp_span_starts(s, XP_SPAN_LIT("control-predecessors="));
}

static void attribute_lines(struct dot *d, const struct hlo_instr *in, const char **before)
{
    struct xp_buf line, *out = d->to->out;
    struct hlo_attrs attrs = {.separator = ""};
    struct hlo_text t = {
        .m = d->m, .opt = hlo_text_default, .scratch = d->to->scratch, .out = &line};

    t.opt.called = false;
    t.opt.infeed_config = false;
    xp_buf_init(&line, out->max);
    hlo_text_attrs(&t, in, &attrs);
    for (uint32_t i = 0; i < attrs.n && !line.failed; i++) {
        struct xp_span s = xp_span_of(line.p + attrs.start[i], attrs.start[i + 1] - attrs.start[i]);
        bool cut = s.n > DEVICES_MAX && is_device_list(s);
        bool bold = xp_span_starts(s, XP_SPAN_LIT("feature_group_count="));
        xp_buf_str(out, *before);
        xp_buf_str(out, bold ? "<b>" : "");
        dot_html(out, cut ? xp_span_of(s.p, DEVICES_MAX - 3) : s);
        xp_buf_str(out, cut ? "..." : bold ? "</b>" : "");
        *before = "<br/>";
    }
    xp_buf_fini(&line);
}

#define SHAPE_MAX 64

static void shape_line(struct dot *d, const struct hlo_instr *in)
{
    const struct hlo_module *m = d->m;
    struct xp_buf *out = d->to->out;
    bool layout = false;
    size_t at = out->n;

    for (uint32_t s = in->shape; s < m->nshapes; s++) {
        if (s != in->shape && m->shapes[s].parent == HLO_NONE)
            break;
        layout |= m->shapes[s].dims.n > 1;
    }
    hlo_shape_text(m, in->shape, layout && in->opcode != HLO_OP_TUPLE, out);
    if (!out->failed && out->n - at > SHAPE_MAX) {
        out->n = at + SHAPE_MAX - 3;
        xp_buf_str(out, "...");
    }
    html_from(out, at);
}

/* The text behind "key": in a backend's JSON, without quotes, up to what ends it. */
static struct xp_span config_value(struct xp_span config, struct xp_span key)
{
    const uint8_t *at = config.n ? memmem(config.p, config.n, key.p, key.n) : NULL;
    if (!at)
        return (struct xp_span){0};
    struct xp_span s = xp_span_of(at + key.n, config.n - (size_t)(at + key.n - config.p));
    size_t n = 0;
    while (n < s.n && (s.p[n] == ':' || s.p[n] == ' ' || s.p[n] == '"' || s.p[n] == '{'))
        n++;
    s = xp_span_of(s.p + n, s.n - n);
    for (n = 0; n < s.n && s.p[n] != '"' && s.p[n] != ',' && s.p[n] != '}'; n++)
        ;
    return xp_span_of(s.p, n);
}

/* What XLA's backend for GPUs tells of a convolution: kRelu is relu. */
static void conv_lines(struct dot *d, const struct hlo_instr *in)
{
    struct xp_buf *out = d->to->out;
    struct xp_span target, config = hlo_backend_config(d->m, in);

    if (in->opcode != HLO_OP_CUSTOM_CALL ||
        !hlo_get_span(in->raw, HLO_F_CUSTOM_CALL_TARGET, &target) ||
        !xp_span_starts(target, XP_SPAN_LIT("__cudnn$conv")))
        return;
    struct xp_span mode = config_value(config, XP_SPAN_LIT("\"activation_mode\""));
    struct xp_span algorithm = config_value(config, XP_SPAN_LIT("\"algo_id\""));
    if (mode.n > 1 && mode.p[0] == 'k') {
        xp_buf_str(out, "<br/><br/>activation_mode=");
        size_t at = out->n;
        dot_html(out, xp_span_of(mode.p + 1, mode.n - 1));
        for (; at < out->n; at++)
            out->p[at] += out->p[at] >= 'A' && out->p[at] <= 'Z' ? 'a' - 'A' : 0;
    }
    if (algorithm.n) {
        xp_buf_str(out, "<br/>algo=eng");
        dot_html(out, algorithm);
        xp_buf_str(out, "{}");
    }
}

void dot_extra_info(struct dot *d, const struct hlo_instr *in, const char *before)
{
    attribute_lines(d, in, &before);
    if (dot_shows_fusion(d, in))
        return;
    xp_buf_str(d->to->out, before);
    shape_line(d, in);
    conv_lines(d, in);
}

static void constant_text(struct dot *d, const struct hlo_instr *constant, uint32_t shape)
{
    const struct hlo_module *m = d->m;
    struct xp_buf *out = d->to->out;
    struct xp_span literal;
    size_t at = out->n;

    if (hlo_type_bits(m->shapes[shape].type) && hlo_shape_elements(m, shape) == 0) {
        xp_buf_str(out, "{} (");
        hlo_shape_text(m, constant->shape, false, out);
        xp_buf_byte(out, ')');
        return;
    }
    if (hlo_type_bits(m->shapes[shape].type) && hlo_shape_elements(m, constant->shape) <= 8 &&
        hlo_get_span(constant->raw, HLO_F_LITERAL, &literal)) {
        struct hlo_text t = {.m = m, .scratch = d->to->scratch, .out = out};
        hlo_shape_text(m, shape, false, out);
        xp_buf_byte(out, ' ');
        size_t value = out->n;
        hlo_text_literal_lines(&t, literal);
        if (out->n - value <= 64)
            return;
        out->n = out->failed ? out->n : at;
    }
    if (!xp_span_starts(constant->name, XP_SPAN_LIT("constant")))
        xp_buf_str(out, "constant ");
    hlo_text_name(out, constant->name);
    xp_buf_byte(out, ' ');
    hlo_shape_text(m, shape, false, out);
}

static void element_text(struct dot *d, const struct hlo_instr *in)
{
    struct xp_buf *out = d->to->out;
    const struct hlo_instr *of = hlo_operand(d->m, in, 0);

    xp_buf_fmt(out, "tuple-element %" PRId64 " of ", in->tuple_index);
    hlo_text_name(out, of ? of->name : XP_SPAN_LIT("null"));
    xp_buf_byte(out, ' ');
    hlo_shape_text(d->m, in->shape, true, out);
}

/* An operand that is no node: its text; false when it has one of its own. */
static bool inlined_operand(struct dot *d, const struct hlo_instr *of)
{
    if (of->opcode == HLO_OP_CONSTANT)
        constant_text(d, of, of->shape);
    else if (dot_fused_scalar(d, of))
        constant_text(d, hlo_operand(d->m, of, 0), of->shape);
    else if (!dot_merged(d, of))
        return false;
    else if (dot_fused_constant(d, of))
        constant_text(d, dot_fused_constant(d, of), dot_fused_constant(d, of)->shape);
    else if (of->opcode == HLO_OP_PARAMETER)
        xp_buf_fmt(d->to->out, "Parameter %" PRId64, of->parameter_number);
    else
        element_text(d, of);
    return true;
}

#define OPERANDS_MAX 32

static void inlined_operands(struct dot *d, const struct hlo_instr *in)
{
    struct xp_buf *out = d->to->out;
    int shown = 0;

    for (uint32_t k = 0; k < in->operands.n && !out->failed; k++) {
        const struct hlo_instr *of = hlo_operand(d->m, in, k);
        size_t at = out->n;
        xp_buf_str(out, "<br/><b>operand");
        if (in->operands.n > 1)
            xp_buf_fmt(out, " %u", k);
        xp_buf_str(out, "</b> = ");
        if (of && inlined_operand(d, of))
            shown++;
        else
            out->n = out->failed ? out->n : at;
        if (shown == OPERANDS_MAX && k + 1 < in->operands.n) {
            xp_buf_str(out, "<br/>...");
            break;
        }
    }
    if (in->opcode != HLO_OP_PARAMETER || !dot_is_fused(d, in))
        return;
    const struct hlo_instr *fusion = hlo_instr_at(d->m, d->m->comps[in->comp].fused_by);
    const struct hlo_instr *from =
        fusion && in->parameter_number >= 0 && in->parameter_number < fusion->operands.n
            ? hlo_operand(d->m, fusion, (uint32_t)in->parameter_number)
            : NULL;
    if (from && from->opcode == HLO_OP_GET_TUPLE_ELEMENT) {
        xp_buf_str(out, "<br/>");
        element_text(d, from);
    }
}

/* As XProf has it, only what would end a label is escaped. */
static void label_keeping_quotes(struct xp_buf *out, struct xp_span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '<' || s.p[i] == '>')
            xp_buf_str(out, s.p[i] == '<' ? "&lt;" : "&gt;");
        else
            xp_buf_byte(out, s.p[i]);
}

void dot_backend_config(struct dot *d, const struct hlo_instr *in, const char *before)
{
    struct xp_span config;
    struct xp_buf text;

    if (!d->opt->backend_config || (config = hlo_backend_config(d->m, in)).n == 0)
        return;
    xp_buf_str(d->to->out, before);
    xp_buf_str(d->to->out, "backend_config=\"");
    xp_buf_init(&text, d->to->out->max);
    hlo_text_backend_config(&text, config);
    label_keeping_quotes(d->to->out, xp_buf_all(&text));
    xp_buf_fini(&text);
    xp_buf_byte(d->to->out, '"');
}

void dot_node_label(struct dot *d, const struct hlo_instr *in)
{
    title(d, in);
    trivial_calls(d, in);
    dot_extra_info(d, in, "<br/>");
    inlined_operands(d, in);
    dot_backend_config(d, in, "<br/>");
}

static struct xp_span name_at(const struct xp_span *names, uint32_t n, uint32_t id)
{
    return id >= 1 && id <= n ? names[id - 1] : (struct xp_span){0};
}

/* file:function:line:column a frame, the innermost first. */
static void stack_lines(struct dot *d, int32_t frame, const char *gap)
{
    const struct hlo_module *m = d->m;
    struct xp_buf *out = d->to->out;
    uint32_t id = frame > 0 ? (uint32_t)frame : 0;

    for (int n = 0; id >= 1 && id <= m->nframes && n < HLO_STACK_MAX; n++, gap = "\n") {
        const struct hlo_frame *f = &m->frames[id - 1];
        if (f->location < 1 || f->location > m->nlocations)
            return;
        const struct hlo_location *l = &m->locations[f->location - 1];
        xp_buf_str(out, gap);
        quoted_place(out, name_at(m->file_names, m->nfile_names, l->file));
        xp_buf_byte(out, ':');
        quoted_place(out, name_at(m->function_names, m->nfunction_names, l->function));
        xp_buf_fmt(out, ":%d", l->line);
        if (l->column)
            xp_buf_fmt(out, ":%d", l->column);
        id = f->parent;
    }
}

void dot_node_tooltip(struct dot *d, const struct hlo_instr *in)
{
    struct hlo_meta meta = hlo_meta_read(in->metadata);
    struct xp_buf *out = d->to->out;
    const char *gap = "";

    if (meta.op_name.n) {
        quoted(out, meta.op_name);
        gap = "\n";
    }
    if (meta.op_type.n) {
        xp_buf_fmt(out, "%sop_type: ", gap);
        quoted(out, meta.op_type);
        gap = "\n";
    }
    if (meta.source_file.n && meta.source_line) {
        xp_buf_fmt(out, "%ssource: ", gap);
        quoted_place(out, meta.source_file);
        xp_buf_fmt(out, ":%d", meta.source_line);
        gap = "\n";
    }
    stack_lines(d, meta.stack_frame_id, gap);
}
