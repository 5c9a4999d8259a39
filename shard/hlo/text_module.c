#include "shard/hlo/text_int.h"

/* --- what XLA would not load --- */

enum xp_status hlo_text_check(const struct hlo_module *m, struct xp_error *err)
{
    if (!m->has_module)
        return xp_fail(err, XP_INTERNAL, 0, "No HLO module found in the HLO proto");
    if (m->entry == HLO_NONE)
        return xp_fail(err, XP_INTERNAL, 0, "the HLO module has no entry computation");
    if (m->dangling)
        return xp_fail(err, XP_INTERNAL, 0,
                       "the HLO module is damaged: %u references name nothing that is in it",
                       m->dangling);
    return XP_OK;
}

/* --- the original value of an instruction: which arrays of the unoptimized program it holds --- */

struct index_path {
    int64_t at[HLO_DEPTH_MAX + 1];
    uint32_t n;
};

static void path_of(const struct hlo_module *m, uint32_t root, uint32_t shape, struct index_path *p)
{
    int64_t reverse[HLO_DEPTH_MAX + 1];
    p->n = 0;
    for (; shape != root && p->n <= HLO_DEPTH_MAX; shape = m->shapes[shape].parent)
        reverse[p->n++] = shape - m->shapes[m->shapes[shape].parent].children.at;
    for (uint32_t i = 0; i < p->n; i++)
        p->at[i] = reverse[p->n - 1 - i];
}

static bool same_index(struct xp_span msg, uint32_t field, const struct index_path *p)
{
    struct hlo_ints it = hlo_ints_open(msg, field);
    uint32_t n = 0;
    int64_t v;
    for (; hlo_ints_next(&it, &v); n++)
        if (n >= p->n || p->at[n] != v)
            return false;
    return n == p->n;
}

static void original_leaf(const struct hlo_text *t, struct xp_span value,
                          const struct index_path *p)
{
    struct hlo_spans it = hlo_spans_open(value, 1);
    struct xp_span element, array, name = {0};

    while (hlo_spans_next(&it, &element)) {
        if (!same_index(element, 1, p) || !hlo_get_span(element, 2, &array))
            continue;
        hlo_get_span(array, 1, &name);
        xp_buf_str(t->out, "{\"");
        xp_buf_span(t->out, name);
        xp_buf_byte(t->out, '"');
        if (hlo_has_ints(array, 2)) {
            xp_buf_byte(t->out, ' ');
            hlo_text_set(t->out, array, 2);
        }
        xp_buf_byte(t->out, '}');
        return;
    }
    xp_buf_str(t->out, "{}");
}

void hlo_text_original(const struct hlo_text *t, const struct hlo_instr *in, struct xp_span value)
{
    const struct hlo_module *m = t->m;
    struct index_path p;

    xp_buf_str(t->out, ", origin={");
    for (uint32_t at = in->shape; at != HLO_NONE && !t->out->failed;) {
        const struct hlo_shape *s = &m->shapes[at];
        if (s->type == HLO_TYPE_TUPLE && s->children.n) {
            xp_buf_byte(t->out, '(');
            at = s->children.at;
            continue;
        }
        path_of(m, in->shape, at, &p);
        if (s->type == HLO_TYPE_TUPLE)
            xp_buf_str(t->out, "()");
        else
            original_leaf(t, value, &p);
        for (;; at = m->shapes[at].parent) { /* the next sibling, of it or of one above */
            if (at == in->shape) {
                at = HLO_NONE;
                break;
            }
            const struct hlo_run *siblings = &m->shapes[m->shapes[at].parent].children;
            if (at + 1 < siblings->at + siblings->n) {
                xp_buf_str(t->out, ", ");
                at++;
                break;
            }
            xp_buf_byte(t->out, ')');
        }
    }
    xp_buf_byte(t->out, '}');
}

/* --- computations --- */

/* Parameters by number; those that share one or have a wild one are left out. */
static void parameters(const struct hlo_text *t, const struct hlo_comp *c)
{
    const struct hlo_module *m = t->m;
    const struct hlo_instr **by_number =
        xp_arena_zalloc(t->scratch, ((size_t)c->instrs.n + 1) * sizeof *by_number);
    const char *comma = "";

    for (uint32_t k = 0; by_number && k < c->instrs.n; k++) {
        const struct hlo_instr *in = &m->instrs[c->instrs.at + k];
        if (in->opcode == HLO_OP_PARAMETER && in->parameter_number >= 0 &&
            in->parameter_number < c->instrs.n)
            by_number[in->parameter_number] = in;
    }
    for (uint32_t k = 0; by_number && k < c->instrs.n; k++) {
        if (!by_number[k])
            continue;
        xp_buf_str(t->out, comma);
        hlo_text_name(t->out, by_number[k]->name);
        xp_buf_str(t->out, ": ");
        hlo_shape_text(m, by_number[k]->shape, false, t->out);
        comma = ", ";
    }
}

static void program_shape(const struct hlo_text *t, const struct hlo_comp *c)
{
    xp_buf_byte(t->out, '(');
    parameters(t, c);
    xp_buf_str(t->out, ") -> ");
    if (c->root != HLO_NONE)
        hlo_shape_text(t->m, t->m->instrs[c->root].shape, false, t->out);
    xp_buf_byte(t->out, ' ');
}

static enum xp_status print_comp(const struct hlo_text *t, uint32_t index, struct xp_error *err)
{
    const struct hlo_comp *c = &t->m->comps[index];
    uint32_t *order = NULL, n = hlo_instr_order(t->m, c, t->scratch, &order);

    if (n == HLO_NONE)
        return xp_fail(err, XP_BUSY, 0, "no memory to print an HLO module");
    if (index == t->m->entry)
        xp_buf_str(t->out, "ENTRY ");
    hlo_text_ref(t, c->name);
    xp_buf_byte(t->out, ' ');
    if (t->opt.program_shape)
        program_shape(t, c);
    xp_buf_str(t->out, "{\n");
    for (uint32_t k = 0; k < n && !t->out->failed; k++) {
        if (order[k] == HLO_NONE)
            continue;
        xp_buf_str(t->out, order[k] == c->root ? "  ROOT " : "  ");
        hlo_text_instr(t, &t->m->instrs[order[k]]);
        xp_buf_byte(t->out, '\n');
        if (t->flush)
            t->flush(t->ctx);
    }
    xp_buf_byte(t->out, '}');
    if (c->execution_thread.n && !xp_span_eq(c->execution_thread, XP_SPAN_LIT("main"))) {
        xp_buf_str(t->out, ", execution_thread=\"");
        xp_buf_span(t->out, c->execution_thread);
        xp_buf_byte(t->out, '"');
    }
    xp_buf_str(t->out, "\n\n");
    return XP_OK;
}

static bool is_sugar(const struct hlo_module *m, const uint8_t *async, uint32_t comp)
{
    const struct hlo_comp *c = &m->comps[comp];
    if (!async[comp] || c->root == HLO_NONE)
        return false;
    for (uint32_t k = 0; k < c->instrs.n; k++)
        if (c->instrs.at + k != c->root && m->instrs[c->instrs.at + k].opcode != HLO_OP_PARAMETER)
            return false;
    return true;
}

static void mark_async(const struct hlo_module *m, uint8_t *async)
{
    for (uint32_t i = 0; i < m->ninstrs; i++) {
        const struct hlo_instr *in = &m->instrs[i];
        if (in->opcode == HLO_OP_ASYNC_START && in->called.n && m->refs[in->called.at] != HLO_NONE)
            async[m->refs[in->called.at]] = 1;
    }
}

static enum xp_status print_comps(const struct hlo_text *t, struct xp_error *err)
{
    uint32_t *order = xp_arena_alloc(t->scratch, (size_t)(t->m->ncomps + 1) * sizeof *order);
    uint8_t *async = xp_arena_zalloc(t->scratch, t->m->ncomps + 1);
    uint32_t n = order && async ? hlo_comp_order(t->m, t->scratch, order) : HLO_NONE;

    if (n == HLO_NONE)
        return xp_fail(err, XP_BUSY, 0, "no memory to print an HLO module");
    mark_async(t->m, async);
    for (uint32_t i = 0; i < n; i++)
        if (!is_sugar(t->m, async, order[i]))
            XP_TRY(print_comp(t, order[i], err));
    return XP_OK;
}

/* --- the module's own line --- */

static void alias_list(const struct hlo_text *t)
{
    static const char *const kinds[] = {"undefined-alias", "may-alias", "must-alias"};
    struct xp_span config = {0}, entry;
    const char *head = ", input_output_alias={ ", *tail = "";

    hlo_get_span(t->m->raw, 8, &config);
    struct hlo_spans it = hlo_spans_open(config, 1);
    for (; hlo_spans_next(&it, &entry); head = ", ", tail = " }") {
        int64_t kind = hlo_get_int(entry, 4, 0);
        xp_buf_str(t->out, head);
        hlo_text_set(t->out, entry, 1);
        xp_buf_fmt(t->out, ": (%lld, ", (long long)hlo_get_int(entry, 2, 0));
        hlo_text_set(t->out, entry, 3);
        xp_buf_fmt(t->out, ", %s)", kind >= 0 && kind < 3 ? kinds[kind] : "unknown-alias");
    }
    xp_buf_str(t->out, tail);
}

static void donor_list(const struct hlo_text *t)
{
    struct xp_span config = {0}, entry;
    const char *head = ", buffer_donor={ ", *tail = "";

    hlo_get_span(t->m->raw, 18, &config);
    struct hlo_spans it = hlo_spans_open(config, 1);
    for (; hlo_spans_next(&it, &entry); head = ", ", tail = " }") {
        xp_buf_fmt(t->out, "%s(%lld, ", head, (long long)hlo_get_int(entry, 1, 0));
        hlo_text_set(t->out, entry, 2);
        xp_buf_byte(t->out, ')');
    }
    xp_buf_str(t->out, tail);
}

static void layout_of(const struct hlo_text *t, struct xp_span shape)
{
    const struct hlo_module *sm = hlo_shape_alone(shape, t->scratch);
    if (sm)
        hlo_shape_text(sm, 0, true, t->out);
}

static void entry_layout(const struct hlo_text *t)
{
    struct xp_span program, shape = {0};
    if (!hlo_get_span(t->m->raw, 4, &program))
        return;
    struct hlo_spans it = hlo_spans_open(program, 1);
    xp_buf_str(t->out, ", entry_computation_layout={(");
    for (uint32_t i = 0; hlo_spans_next(&it, &shape); i++) {
        if (i && i % 5 == 0)
            xp_buf_fmt(t->out, ", /*index=%u*/", i);
        else if (i)
            xp_buf_str(t->out, ", ");
        layout_of(t, shape);
    }
    xp_buf_str(t->out, ")->");
    shape = (struct xp_span){0};
    hlo_get_span(program, 2, &shape);
    layout_of(t, shape);
    xp_buf_byte(t->out, '}');
}

enum xp_status hlo_text_module(const struct hlo_text *given, struct xp_error *err)
{
    struct hlo_text own = *given, *t = &own;
    struct xp_span attributes = {0}, entry;
    struct hlo_frame_view frames;

    if (!hlo_frame_view_make(t->m, t->scratch, &frames))
        return xp_fail(err, XP_BUSY, 0, "no memory to print an HLO module");
    t->frame_numbers = frames.numbers;
    xp_buf_str(t->out, "HloModule ");
    hlo_text_name(t->out, t->m->name);
    if (t->m->has_schedule)
        xp_buf_str(t->out, ", is_scheduled=true");
    alias_list(t);
    donor_list(t);
    entry_layout(t);
    hlo_get_span(t->m->raw, 19, &attributes);
    struct hlo_spans it = hlo_spans_open(attributes, 1);
    if (hlo_spans_next(&it, &entry)) {
        xp_buf_str(t->out, ", frontend_attributes=");
        hlo_text_frontend(t->out, attributes, t->scratch);
    }
    if (t->opt.metadata)
        hlo_text_frames(t, &frames);
    xp_buf_str(t->out, "\n\n");
    return print_comps(t, err);
}
