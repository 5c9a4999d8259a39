/* The view as the JSON of XProf's PreprocessResult: what is zero or empty is left out. */
#include "shard/tools/memory_view.h"

#include <stdlib.h>

#define MIB 1048576.0

struct writer {
    const struct memory_view *v;
    struct xp_json j;
    struct xp_buf text; /* one string in the making */
    struct out *out;
};

/* --- members that are left out when they say nothing --- */

static double mib(int64_t bytes)
{
    return (double)bytes / MIB;
}

static void put_double(struct writer *w, const char *key, double v)
{
    if (v == 0)
        return;
    xp_json_key(&w->j, key);
    xp_json_double(&w->j, v);
}

static void put_int(struct writer *w, const char *key, int64_t v)
{
    if (v == 0)
        return;
    xp_json_key(&w->j, key);
    xp_json_i64(&w->j, v);
}

static void put_span(struct writer *w, const char *key, struct xp_span s)
{
    if (s.n == 0)
        return;
    xp_json_key(&w->j, key);
    xp_json_span(&w->j, s);
}

/* 64-bit integers are strings in proto's JSON. */
static void put_id(struct writer *w, const char *key, int64_t v)
{
    if (v == 0)
        return;
    w->text.n = 0;
    xp_buf_fmt(&w->text, "%lld", (long long)v);
    put_span(w, key, xp_buf_all(&w->text));
}

static void put_shape(struct writer *w, const char *key, uint32_t shape)
{
    w->text.n = 0;
    hlo_shape_text(w->v->m, shape, true, &w->text);
    put_span(w, key, xp_buf_all(&w->text));
}

static void put_name(struct writer *w, const char *key, uint32_t buffer)
{
    w->text.n = 0;
    memory_buffer_name(w->v, buffer, &w->text);
    put_span(w, key, xp_buf_all(&w->text));
}

/* --- where an instruction comes from --- */

/* The first line of a stack says it when the instruction does not. */
static void first_frame(struct xp_span stack, struct xp_span *file, int64_t *line)
{
    const uint8_t *end = stack.n ? memchr(stack.p, '\n', stack.n) : NULL;
    struct xp_span first = xp_span_of(stack.p, end ? (size_t)(end - stack.p) : stack.n);
    const uint8_t *colon = first.n ? memchr(first.p, ':', first.n) : NULL;

    if (!colon)
        return;
    *file = xp_span_of(first.p, (size_t)(colon - first.p));
    char number[24] = "";
    size_t n = (size_t)(first.p + first.n - (colon + 1));
    memcpy(number, colon + 1, n < sizeof number - 1 ? n : sizeof number - 1);
    *line = strtoll(number, NULL, 10);
}

static void put_source(struct writer *w, const struct hlo_instr *in)
{
    struct hlo_meta meta = hlo_meta_read(in->metadata);
    struct xp_span file = meta.source_file;
    int64_t line = meta.source_line;

    w->text.n = 0;
    hlo_stack_text(w->v->m, meta.stack_frame_id, &w->text);
    if (file.n == 0)
        first_frame(xp_buf_all(&w->text), &file, &line);
    if (file.n == 0)
        return;
    xp_json_key(&w->j, "sourceInfo");
    xp_json_obj(&w->j);
    put_span(w, "fileName", file);
    put_int(w, "lineNumber", line);
    put_span(w, "stackFrame", xp_buf_all(&w->text));
    xp_json_obj_end(&w->j);
}

static const struct hlo_instr *instr_of(const struct writer *w, uint32_t buffer)
{
    return &w->v->m->instrs[w->v->m->buffers[buffer].instr];
}

/* --- objects at the peak --- */

static void put_label(struct writer *w, uint32_t buffer)
{
    const struct hlo_instr *in = instr_of(w, buffer);

    w->text.n = 0;
    xp_buf_span(&w->text, in->name);
    xp_buf_str(&w->text, ": ");
    hlo_shape_text(w->v->m, w->v->buffers[buffer].shape, true, &w->text);
    xp_buf_str(&w->text, " # ");
    xp_buf_span(&w->text, hlo_meta_read(in->metadata).op_name);
    put_span(w, "label", xp_buf_all(&w->text));
}

static void put_object(struct writer *w, uint32_t place)
{
    const struct memory_view *v = w->v;
    const struct memory_object *o = &v->objects[place];

    xp_json_obj(&w->j);
    xp_json_key(&w->j, "numbered");
    xp_json_i64(&w->j, place);
    put_double(w, "logicalBufferSizeMib", mib(o->bytes));
    put_double(w, "unpaddedShapeMib", mib(o->unpadded));
    if (o->buffer == HLO_NONE) {
        put_span(w, "label", XP_SPAN_LIT("small (<16384 bytes)"));
        put_int(w, "logicalBufferId", -1);
    } else {
        const struct hlo_instr *in = instr_of(w, o->buffer);
        uint32_t allocation = v->buffers[o->buffer].allocation;
        put_label(w, o->buffer);
        put_int(w, "logicalBufferId", v->m->buffers[o->buffer].id);
        put_name(w, "instructionName", o->buffer);
        put_shape(w, "shapeString", v->buffers[o->buffer].shape);
        put_span(w, "tfOpName", hlo_meta_read(in->metadata).op_name);
        put_span(w, "groupName", xp_span_str(memory_category(&v->m->allocations[allocation])));
        put_span(w, "opCode", in->opcode_text);
        put_source(w, in);
    }
    xp_json_obj_end(&w->j);
}

struct by_size {
    int64_t bytes;
    uint32_t place;
};

static int by_size_cmp(const void *x, const void *y)
{
    const struct by_size *a = x, *b = y;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

static void put_places(struct writer *w, const char *key, const uint32_t *places, uint32_t n)
{
    xp_json_key(&w->j, key);
    xp_json_arr(&w->j);
    for (uint32_t i = 0; i < n; i++)
        xp_json_i64(&w->j, places[i]);
    xp_json_arr_end(&w->j);
}

static bool put_objects(struct writer *w, struct xp_arena *scratch)
{
    uint32_t n = w->v->nobjects;
    struct by_size *order = xp_arena_alloc(scratch, ((size_t)n + 1) * sizeof *order);
    uint32_t *rank = xp_arena_alloc(scratch, ((size_t)n + 1) * 2 * sizeof *rank);

    if (!order || !rank)
        return false;
    if (n == 0)
        return true;
    for (uint32_t i = 0; i < n; i++)
        order[i] = (struct by_size){w->v->objects[i].bytes, i};
    qsort(order, n, sizeof *order, by_size_cmp);
    for (uint32_t i = 0; i < n; i++) {
        rank[order[i].place] = i;
        rank[n + i] = order[i].place;
    }
    xp_json_key(&w->j, "maxHeap");
    xp_json_arr(&w->j);
    for (uint32_t i = 0; i < n; i++)
        put_object(w, i);
    xp_json_arr_end(&w->j);
    xp_json_key(&w->j, "maxHeapBySize");
    xp_json_arr(&w->j);
    for (uint32_t i = 0; i < n; i++)
        put_object(w, order[i].place);
    xp_json_arr_end(&w->j);
    put_places(w, "maxHeapToBySize", rank, n);
    put_places(w, "bySizeToMaxHeap", rank + n, n);
    return true;
}

/* --- the heap over time --- */

static void put_sizes(struct writer *w, const char *key, const int64_t *sizes)
{
    double always = mib(w->v->indefinite);

    xp_json_key(&w->j, key);
    xp_json_arr(&w->j);
    for (uint32_t i = 0; i < w->v->nsteps; i++)
        xp_json_double(&w->j, mib(sizes[i]) + always);
    xp_json_arr_end(&w->j);
}

static void put_spans(struct writer *w)
{
    bool open = false;

    for (uint32_t i = 0; i < w->v->m->nbuffers; i++) {
        const struct memory_buffer *b = &w->v->buffers[i];
        if (!b->seen || b->start == HLO_NONE)
            continue;
        if (!open) {
            xp_json_key(&w->j, "logicalBufferSpans");
            xp_json_obj(&w->j);
            open = true;
        }
        w->text.n = 0;
        xp_buf_fmt(&w->text, "%lld", (long long)w->v->m->buffers[i].id);
        xp_json_key_span(&w->j, xp_buf_all(&w->text));
        xp_json_obj(&w->j);
        put_int(w, "start", b->start);
        put_int(w, "limit", b->limit);
        xp_json_obj_end(&w->j);
    }
    if (open)
        xp_json_obj_end(&w->j);
}

static void put_timeline(struct writer *w)
{
    const struct memory_view *v = w->v;

    if (v->nsteps) {
        put_sizes(w, "heapSizes", v->heap);
        put_sizes(w, "unpaddedHeapSizes", v->unpadded_heap);
        xp_json_key(&w->j, "hloInstructionNames");
        xp_json_arr(&w->j);
        for (uint32_t i = 0; i < v->nsteps; i++)
            xp_json_span(&w->j, v->names[i]);
        xp_json_arr_end(&w->j);
    }
    put_double(w, "peakHeapMib", mib(v->peak) + mib(v->indefinite));
    put_double(w, "peakUnpaddedHeapMib", mib(v->peak_unpadded) + mib(v->indefinite));
    put_int(w, "peakHeapSizePosition", v->peak_step);
    put_spans(w);
}

/* --- allocations --- */

static bool is_reusable(const struct hlo_allocation *a)
{
    return !a->is_thread_local && !a->tuple;
}

static void put_attributes(struct writer *w, const struct hlo_allocation *a)
{
    if (!a->entry_parameter && !a->maybe_live_out && !is_reusable(a))
        return;
    xp_json_key(&w->j, "attributes");
    xp_json_arr(&w->j);
    if (a->entry_parameter)
        xp_json_str(&w->j, "entry computation parameter");
    if (a->maybe_live_out)
        xp_json_str(&w->j, "may-be live out");
    if (is_reusable(a))
        xp_json_str(&w->j, "reusable");
    xp_json_arr_end(&w->j);
}

static void put_assigned(struct writer *w, const struct hlo_assigned *as)
{
    const struct hlo_module *m = w->v->m;

    xp_json_obj(&w->j);
    put_id(w, "id", as->buffer_id);
    put_double(w, "sizeMib", mib(as->size));
    if (as->buffer != HLO_NONE && w->v->buffers[as->buffer].allocation != HLO_NONE) {
        const struct hlo_run *index = &m->buffers[as->buffer].shape_index;
        put_span(w, "hloName", instr_of(w, as->buffer)->name);
        put_shape(w, "shape", w->v->buffers[as->buffer].shape);
        if (index->n) {
            xp_json_key(&w->j, "shapeIndex");
            xp_json_arr(&w->j);
        }
        for (uint32_t i = 0; i < index->n; i++) {
            w->text.n = 0;
            xp_buf_fmt(&w->text, "%lld", (long long)m->ints[index->at + i]);
            xp_json_span(&w->j, xp_buf_all(&w->text));
        }
        if (index->n)
            xp_json_arr_end(&w->j);
    }
    xp_json_obj_end(&w->j);
}

/* The shape that all buffers of an allocation have; none when they differ. */
static void put_common_shape(struct writer *w, const struct hlo_run *run)
{
    const struct memory_view *v = w->v;
    struct xp_buf first;

    xp_buf_init(&first, w->text.max);
    for (uint32_t k = 0; k < run->n; k++) {
        uint32_t b = v->m->assigned[run->at + k].buffer;
        w->text.n = 0;
        if (b != HLO_NONE && v->buffers[b].allocation != HLO_NONE)
            hlo_shape_text(v->m, v->buffers[b].shape, true, &w->text);
        if (k == 0)
            xp_buf_span(&first, xp_buf_all(&w->text));
        else if (!xp_span_eq(xp_buf_all(&first), xp_buf_all(&w->text)))
            first.n = 0;
        if (first.n == 0)
            break;
    }
    put_span(w, "commonShape", xp_buf_all(&first));
    xp_buf_fini(&first);
}

static void put_lifetime(struct writer *w, const struct hlo_allocation *a)
{
    xp_json_obj(&w->j);
    put_id(w, "id", a->index);
    put_double(w, "sizeMib", mib(a->size));
    put_attributes(w, a);
    if (a->assigned.n) {
        xp_json_key(&w->j, "logicalBuffers");
        xp_json_arr(&w->j);
        for (uint32_t k = 0; k < a->assigned.n; k++)
            put_assigned(w, &w->v->m->assigned[a->assigned.at + k]);
        xp_json_arr_end(&w->j);
        put_common_shape(w, &a->assigned);
    }
    xp_json_obj_end(&w->j);
    if (w->out->text.n > 65536)
        out_flush(w->out);
}

static void put_lifetimes(struct writer *w)
{
    const struct memory_view *v = w->v;
    bool open = false;

    for (uint32_t i = 0; i < v->nallocations; i++) {
        const struct hlo_allocation *a = &v->m->allocations[v->allocations[i]];
        if (!memory_is_indefinite(a))
            continue;
        if (!open) {
            xp_json_key(&w->j, "indefiniteLifetimes");
            xp_json_arr(&w->j);
            open = true;
        }
        put_lifetime(w, a);
    }
    if (open)
        xp_json_arr_end(&w->j);
}

/* Whole bytes as doubles: nothing wraps, whatever the file says. */
static void put_totals(struct writer *w)
{
    const struct memory_view *v = w->v;
    double parameters = 0, fixed = 0, live_out = 0, total = 0;

    for (uint32_t i = 0; i < v->nallocations; i++) {
        const struct hlo_allocation *a = &v->m->allocations[v->allocations[i]];
        double bytes = (double)a->size;
        parameters += a->entry_parameter ? bytes : 0;
        fixed += is_reusable(a) ? 0 : bytes;
        live_out += a->maybe_live_out ? bytes : 0;
        total += a->is_thread_local ? 0 : bytes;
    }
    put_double(w, "entryComputationParametersMib", parameters / MIB);
    put_double(w, "nonReusableMib", fixed / MIB);
    put_double(w, "maybeLiveOutMib", live_out / MIB);
    put_double(w, "totalBufferAllocationMib", total / MIB);
    put_double(w, "indefiniteBufferAllocationMib", mib(v->indefinite));
}

/* --- blocks --- */

struct blocks {
    struct writer *w;
    bool open;
};

static void put_block(void *ctx, const struct memory_block *b)
{
    struct blocks *blocks = ctx;
    struct writer *w = blocks->w;
    const struct memory_view *v = w->v;
    struct xp_span category = xp_span_str(memory_category(&v->m->allocations[b->allocation]));

    if (!blocks->open) {
        xp_json_key(&w->j, "bufferBlocks");
        xp_json_arr(&w->j);
        blocks->open = true;
    }
    xp_json_obj(&w->j);
    put_int(w, "logicalBufferId", b->buffer == HLO_NONE ? -1 : v->m->buffers[b->buffer].id);
    if (b->buffer == HLO_NONE)
        put_span(w, "name", category);
    else
        put_name(w, "name", b->buffer);
    put_double(w, "offset", (double)b->offset);
    put_double(w, "size", (double)b->bytes);
    put_int(w, "startStep", b->start);
    put_int(w, "endStep", b->end);
    put_span(w, "category", category);
    put_span(w, "color", xp_span_str(b->color));
    if (b->buffer != HLO_NONE) {
        const struct hlo_instr *in = instr_of(w, b->buffer);
        put_span(w, "tfOpName", hlo_meta_read(in->metadata).op_name);
        put_shape(w, "shapeString", v->buffers[b->buffer].shape);
        put_double(w, "unpaddedSize", (double)v->buffers[b->buffer].unpadded);
        put_source(w, in);
    }
    xp_json_obj_end(&w->j);
    if (w->out->text.n > 65536)
        out_flush(w->out);
}

/* --- memory that instructions take for themselves, in VMEM --- */

/* The value of a member of a JSON object, up to the comma or bracket after it. */
static bool json_member(struct xp_span object, struct xp_span key, struct xp_span *value)
{
    bool in_string = false, escaped = false;
    int depth = 0;

    for (size_t i = 0; i < object.n; i++) {
        uint8_t c = object.p[i];
        if (in_string) {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth--;
        } else if (c == '"') {
            struct xp_span rest = xp_span_of(object.p + i, object.n - i);
            if (depth == 1 && xp_span_starts(rest, key)) {
                *value = xp_span_of(rest.p + key.n, rest.n - key.n);
                return true;
            }
            in_string = true;
        }
    }
    return false;
}

/* 12, "12": as proto's JSON writes 64-bit integers. */
static int64_t json_int(struct xp_span object, struct xp_span key)
{
    struct xp_span value;
    char text[24] = "";

    if (!json_member(object, key, &value))
        return 0;
    while (value.n && (value.p[0] == ' ' || value.p[0] == '"'))
        value = xp_span_of(value.p + 1, value.n - 1);
    memcpy(text, value.p, value.n < sizeof text - 1 ? value.n : sizeof text - 1);
    return strtoll(text, NULL, 10);
}

static int64_t scoped_bytes(struct xp_span config)
{
    static const char key[] = "\"used_scoped_memory_configs\":";
    struct xp_span list;
    int64_t most = 0;

    if (!config.n || !memmem(config.p, config.n, key, sizeof key - 1) ||
        !json_member(config, XP_SPAN_LIT("\"used_scoped_memory_configs\":"), &list))
        return 0;
    const uint8_t *end = list.n ? memchr(list.p, ']', list.n) : NULL;
    while (end && list.p < end) {
        const uint8_t *open = memchr(list.p, '{', (size_t)(end - list.p));
        const uint8_t *close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
        if (!close)
            break;
        struct xp_span entry = xp_span_of(open, (size_t)(close + 1 - open));
        int64_t size = json_int(entry, XP_SPAN_LIT("\"size\":"));
        if (json_int(entry, XP_SPAN_LIT("\"memory_space\":")) == 1 && size > most)
            most = size;
        list.p = close + 1;
    }
    return most;
}

static void put_scoped(struct writer *w)
{
    const struct hlo_module *m = w->v->m;
    struct xp_span name = {0};
    int64_t most = 0;

    for (uint32_t i = 0; w->v->color == 1 && i < m->ninstrs; i++) {
        struct xp_span config = {0};
        hlo_get_span(m->instrs[i].raw, HLO_F_BACKEND_CONFIG, &config);
        int64_t bytes = scoped_bytes(config);
        if (bytes > most) {
            most = bytes;
            name = m->instrs[i].name;
        }
    }
    put_double(w, "maxScopedVmemAllocationMib", mib(most));
    put_span(w, "maxScopedVmemInstructionName", name);
}

enum xp_status memory_json(const struct memory_view *v, struct xp_arena *scratch, struct out *out,
                           struct xp_error *err)
{
    struct writer w = {.v = v, .out = out};
    struct blocks blocks = {.w = &w};

    xp_json_init(&w.j, &out->text);
    xp_buf_init(&w.text, (size_t)64 << 20);
    xp_json_obj(&w.j);
    put_span(&w, "moduleName", v->m->name);
    put_span(&w, "entryComputationName", v->m->entry_name);
    bool done = put_objects(&w, scratch);
    put_timeline(&w);
    put_lifetimes(&w);
    put_totals(&w);
    put_scoped(&w);
    memory_blocks(v, put_block, &blocks);
    if (blocks.open)
        xp_json_arr_end(&w.j);
    xp_json_obj_end(&w.j);
    bool failed = w.text.failed;
    xp_buf_fini(&w.text);
    if (!done)
        return xp_fail(err, XP_BUSY, 0, "no memory for the view of a module's buffers");
    return failed ? xp_fail(err, XP_TOO_LARGE, 0, "a shape is too large to print") : XP_OK;
}
