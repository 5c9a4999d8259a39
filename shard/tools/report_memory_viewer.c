#include <inttypes.h>
#include <stdio.h>

#include "shard/tools/report_programs.h"
#include "shard/tools/reports_more.h"

/* Which buffers make up the peak of a compiled program, and could padding or lifetimes save some?
 */

#define NO_VIEW                                                                                    \
    "the module has no buffer assignment in the profile: it comes with programs that were "        \
    "compiled for a device"
#define TEXT_MAX 4096
#define STACK_MAX 1000 /* bytes; more innermost frames than anybody reads in a table */

struct asked {
    int64_t space;
    bool programs, lives;
};

static enum xp_status asked(const struct tool_args *args, struct asked *ask, struct xp_error *err)
{
    XP_TRY(memory_space_asked(args, &ask->space, err));
    XP_TRY(programs_asked(args, &ask->programs, err));
    return lifetimes_asked(args, &ask->lives, err);
}

/* --- a host --- */

static void put_shape(struct facts_out *f, const struct hlo_module *m, uint32_t shape)
{
    struct xp_buf b;
    xp_buf_init(&b, TEXT_MAX);
    if (shape != HLO_NONE)
        hlo_shape_text(m, shape, true, &b);
    facts_text(f, xp_buf_all(&b));
    xp_buf_fini(&b);
}

/* Whole lines of it. */
static struct xp_span first_frames(struct xp_span stack)
{
    if (stack.n <= STACK_MAX)
        return stack;
    size_t n = STACK_MAX;
    while (n && stack.p[n] != '\n')
        n--;
    return xp_span_of(stack.p, n);
}

/* "file:line", of the instruction or else of the innermost frame, and all frames. */
static void put_source(struct facts_out *f, const struct hlo_module *m, const struct hlo_meta *meta)
{
    struct xp_buf source, stack;
    xp_buf_init(&source, TEXT_MAX);
    xp_buf_init(&stack, 2 * TEXT_MAX);
    hlo_stack_text(m, meta->stack_frame_id, &stack);
    struct xp_span frames = first_frames(xp_buf_all(&stack));
    if (meta->source_file.n && meta->source_line) {
        xp_buf_fmt(&source, "%.*s:%d", (int)meta->source_file.n, (const char *)meta->source_file.p,
                   (int)meta->source_line);
    } else if (frames.n && frames.p[0] != ':') { /* file:line:column */
        const uint8_t *end = memchr(frames.p, '\n', frames.n);
        size_t n = end ? (size_t)(end - frames.p) : frames.n;
        while (n && frames.p[n - 1] != ':')
            n--;
        xp_buf_span(&source, xp_span_of(frames.p, n ? n - 1 : 0));
    }
    facts_text(f, xp_buf_all(&source));
    facts_text(f, frames);
    xp_buf_fini(&source);
    xp_buf_fini(&stack);
}

static void put_object(struct facts_out *f, const struct memory_view *v,
                       const struct memory_object *o)
{
    const struct hlo_module *m = v->m;
    const struct hlo_instr *in = NULL;
    const struct memory_buffer *b = NULL;
    struct hlo_meta meta = {0};
    struct xp_buf name;
    xp_buf_init(&name, TEXT_MAX);
    if (o->buffer != HLO_NONE) {
        b = &v->buffers[o->buffer];
        in = hlo_instr_at(m, m->buffers[o->buffer].instr);
        memory_buffer_name(v, o->buffer, &name);
    }
    if (in)
        meta = hlo_meta_read(in->metadata);
    bool placed = b && b->allocation < m->nallocations;
    facts_text(f, xp_buf_all(&name));
    facts_text(f, meta.op_name);
    facts_text(f, in ? in->opcode_text : (struct xp_span){0});
    put_shape(f, m, b ? b->shape : HLO_NONE);
    facts_text(f, placed ? xp_span_str(memory_category(&m->allocations[b->allocation]))
                         : (struct xp_span){0});
    put_source(f, m, &meta);
    facts_i64(f, o->bytes);
    facts_i64(f, b ? o->unpadded : o->bytes); /* of small ones together it is not known */
    facts_u64(f, b && b->start != HLO_NONE);
    facts_u64(f, b && b->start != HLO_NONE ? b->start : 0);
    facts_u64(f, b && b->start != HLO_NONE ? b->limit : 0);
    facts_u64(f, placed);
    facts_i64(f, placed ? m->allocations[b->allocation].index : 0);
    facts_i64(f, placed ? b->offset : 0);
    xp_buf_fini(&name);
}

static enum xp_status put_view(struct facts_out *f, const struct hlo_module *m,
                               const struct asked *ask, struct xp_arena *a, struct xp_error *err)
{
    struct memory_view v;
    struct xp_error own = {0};
    memory_spaces_put(f, m);
    enum xp_status st = memory_view_make(m, ask->space, a, &v, &own);
    if (st == XP_BUSY)
        return xp_fail(err, st, 0, "%s", own.text);
    bool known = st == XP_OK && m->nallocations; /* without any nothing is known, which is not 0 */
    facts_u64(f, known);
    if (!known)
        return XP_OK;
    facts_i64(f, v.peak);
    facts_i64(f, v.peak_unpadded);
    facts_i64(f, v.indefinite);
    facts_u64(f, v.peak_step);
    facts_u64(f, v.nsteps);
    for (uint32_t i = 0; i < v.nsteps; i++) {
        facts_i64(f, v.heap[i]);
        facts_i64(f, v.unpadded_heap[i]);
        facts_text(f, v.names[i]);
    }
    facts_u64(f, v.nobjects);
    for (uint32_t i = 0; i < v.nobjects; i++)
        put_object(f, &v, &v.objects[i]);
    return ask->lives ? lifetimes_put(f, &v, a, put_object, err) : XP_OK;
}

static enum xp_status map(const struct tool_host *host, const struct tool_args *args,
                          struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    struct report_module of;
    struct hlo_module *m;
    struct facts_out f;
    struct asked ask;
    XP_TRY(asked(args, &ask, err));
    XP_TRY(facts_begin(&f, a, err));
    enum xp_status st = XP_OK;
    if (ask.programs)
        st = programs_put(&f, host, ask.space, a, err);
    if (st == XP_OK)
        st = report_modules_put(&f, host, args, a, &of, &m, err);
    if (st == XP_OK && m)
        st = put_view(&f, m, &ask, a, err);
    if (st == XP_OK)
        return facts_end(&f, host, a, partial, err);
    facts_drop(&f);
    return st;
}

/* --- the report --- */

static void get_buffer(struct facts *f, struct program_buffer *b)
{
    *b = (struct program_buffer){.name = facts_get_text(f)};
    b->op = facts_get_text(f);
    b->opcode = facts_get_text(f);
    b->shape = facts_get_text(f);
    b->kind = facts_get_text(f);
    b->source = facts_get_text(f);
    b->stack = facts_get_text(f);
    b->bytes = (uint64_t)facts_get_i64(f);
    b->unpadded = (uint64_t)facts_get_i64(f);
    b->has_life = facts_get_u64(f) != 0;
    b->start = facts_get_u64(f);
    b->limit = facts_get_u64(f);
    b->placed = facts_get_u64(f) != 0;
    b->allocation = facts_get_i64(f);
    b->offset = facts_get_i64(f);
}

static bool get_view(struct facts *f, struct program_view *v, struct xp_arena *a)
{
    v->peak = facts_get_i64(f);
    v->peak_unpadded = facts_get_i64(f);
    v->indefinite = facts_get_i64(f);
    v->peak_step = facts_get_u64(f);
    v->nsteps = facts_get_count(f);
    v->heap = xp_arena_alloc(a, (v->nsteps + 1) * sizeof *v->heap);
    v->unpadded = xp_arena_alloc(a, (v->nsteps + 1) * sizeof *v->unpadded);
    v->at = xp_arena_alloc(a, (v->nsteps + 1) * sizeof *v->at);
    if (!v->heap || !v->unpadded || !v->at)
        return false;
    for (size_t i = 0; i < v->nsteps; i++) {
        v->heap[i] = facts_get_i64(f);
        v->unpadded[i] = facts_get_i64(f);
        v->at[i] = facts_get_text(f);
    }
    v->nbuffers = facts_get_count(f);
    v->buffers = xp_arena_alloc(a, (v->nbuffers + 1) * sizeof *v->buffers);
    for (size_t i = 0; v->buffers && i < v->nbuffers; i++)
        get_buffer(f, &v->buffers[i]);
    return v->buffers != NULL;
}

static const struct report_column columns[] = {
    {"op", "Buffer of", "", REPORT_COL_OP, false, "HLO op that defines it; none: all small ones"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, ""},
    {"size", "Size", "bytes", REPORT_COL_BYTES, true, "with padding"},
    {"unpadded", "Without padding", "bytes", REPORT_COL_BYTES, true,
     "of its elements alone; of all small ones together it is not known"},
    {"padding", "Padding", "bytes", REPORT_COL_BYTES, true, "size less that"},
    {"kind", "Kind", "", REPORT_COL_TEXT, false, "parameter, constant, output or temporary"},
    {"opcode", "Opcode", "", REPORT_COL_TEXT, false, ""},
    {"shape", "Shape", "", REPORT_COL_TEXT, false, "with its layout"},
    {"begin", "From", "", REPORT_COL_NUMBER, false, "step of the program that needs it first"},
    {"end", "To", "", REPORT_COL_NUMBER, false, "step after which it is free"},
    {"framework_op", "Framework op", "", REPORT_COL_TEXT, false, ""},
    {"source", "Source", "", REPORT_COL_TEXT, false, "file and line of the op"},
    {"allocation", "Allocation", "", REPORT_COL_NUMBER, false, "number of the one that it lies in"},
    {"offset", "Offset", "bytes", REPORT_COL_NUMBER, false, "where it begins in that"},
    {"stack", "Stack", "", REPORT_COL_TEXT, false,
     "file:line:column of the op and of what called it, the innermost first, 1,000 bytes at most"},
};

struct rows {
    const struct program_view *v;
    uint64_t program;
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct rows *rows = ctx;
    const struct program_buffer *b = &rows->v->buffers[i];
    c[0] = report_text_or_none(b->name);
    c[1] = rows->program && b->name.n ? report_of_id(rows->program) : report_none();
    c[2] = report_of_u64(b->bytes);
    if (b->name.n) {
        c[3] = report_of_u64(b->unpadded);
        c[4] = report_of_u64(b->bytes > b->unpadded ? b->bytes - b->unpadded : 0);
    }
    c[5] = report_text_or_none(b->kind);
    c[6] = report_text_or_none(b->opcode);
    c[7] = report_text_or_none(b->shape);
    c[8] = b->has_life ? report_of_u64(b->start) : report_none();
    c[9] = b->has_life ? report_of_u64(b->limit) : report_none();
    c[10] = report_text_or_none(b->op);
    c[11] = report_text_or_none(b->source);
    c[12] = b->placed ? report_of_i64(b->allocation) : report_none();
    c[13] = b->placed ? report_of_i64(b->offset) : report_none();
    c[14] = report_text_or_none(b->stack);
}

static void point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct program_view *v = ctx;
    *x = report_of_u64(i);
    y[0] = report_of_i64(v->heap[i] + v->indefinite);
    y[1] = report_of_i64(v->unpadded[i] + v->indefinite);
}

static void write_view(struct report *r, const struct program_view *v,
                       const struct report_module *of, int64_t space)
{
    static const char *const names[] = {"used", "without_padding"};
    struct rows *rows = xp_arena_alloc(r->a, sizeof *rows);
    uint64_t peak = (uint64_t)(v->peak + v->indefinite), padding = 0;
    if (!rows)
        return;
    *rows = (struct rows){v, of->program};
    const char *in = space ? memory_space_name(space) : NULL; /* 0 is what one expects */
    for (size_t i = 0; i < v->nbuffers; i++)
        padding += v->buffers[i].bytes > v->buffers[i].unpadded
                       ? v->buffers[i].bytes - v->buffers[i].unpadded
                       : 0;
    report_verdict(r,
                   "%.*s needs %.1f MiB%s%s at its peak, of which %.1f %% are arguments and "
                   "constants and %.1f %% padding.",
                   (int)(of->name.n < 100 ? of->name.n : 100), (const char *)of->name.p,
                   (double)peak / 0x1p20, in ? " of " : "", in ? in : "",
                   peak ? 100 * (double)v->indefinite / (double)peak : 0,
                   peak ? 100 * (double)padding / (double)peak : 0);
    report_u64(r, "program_peak", peak, NULL);
    report_u64(r, "program_peak_unpadded", (uint64_t)(v->peak_unpadded + v->indefinite), NULL);
    report_u64(r, "program_arguments", (uint64_t)v->indefinite, NULL);
    report_table(r, &(struct report_rows){.id = "buffers",
                                          .title = "Buffers at the peak",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = v->nbuffers,
                                          .row = row,
                                          .ctx = rows,
                                          .sort = "size",
                                          .descending = true});
    report_memory_hints(r, v, of->program, space);
    report_series(r, &(struct report_points){.id = "program_order",
                                             .title = "Memory over the program",
                                             .x_label = "step of the program",
                                             .x_unit = "",
                                             .y_label = "Memory",
                                             .y_unit = "bytes",
                                             .kind = "line",
                                             .names = names,
                                             .nnames = 2,
                                             .n = v->nsteps,
                                             .point = point,
                                             .ctx = (void *)v});
}

static enum xp_status write_found(struct report *r, const struct report_modules *m,
                                  const struct asked *ask, struct memory_spaces *spaces,
                                  struct xp_error *err)
{
    static const char *const ids[] = {"program_peak", "program_peak_unpadded", "program_arguments"};
    struct program_view *v = xp_arena_zalloc(r->a, sizeof *v);
    if (m->found)
        memory_spaces_get(m->found, spaces);
    if (m->found && facts_get_u64(m->found)) {
        struct program_lives *lives = NULL;
        if (!v || !get_view(m->found, v, r->a) ||
            (ask->lives && !lifetimes_get(m->found, &lives, r->a, get_buffer)))
            return xp_fail(err, XP_BUSY, 0, "no memory left for the buffers");
        XP_TRY(facts_ok(m->found, err));
        write_view(r, v, &m->of, ask->space);
        if (lives)
            lifetimes_write(r, lives, m->of.program);
        return XP_OK;
    }
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        report_na(r, ids[i], "%s", m->found ? NO_VIEW : "there is no such module");
    return XP_OK;
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct report_modules m;
    struct facts *hosts;
    struct programs *all = NULL;
    struct memory_spaces spaces = {0};
    size_t n;
    struct asked ask;
    XP_TRY(asked(args, &ask, err));
    XP_TRY(facts_open(merged, r->a, &hosts, &n, err));
    if (ask.programs)
        XP_TRY(programs_read(hosts, n, r->a, &all, err));
    XP_TRY(report_modules_get(hosts, n, args, r, &m, err));
    if (m.found && m.of.runs)
        report_u64(r, "program_time", m.of.time_ps, NULL);
    XP_TRY(write_found(r, &m, &ask, &spaces, err));
    if (all)
        programs_write(r, all);
    report_modules_table(r, &m);
    memory_spaces_write(r, &spaces, ask.space);
    return XP_OK;
}

const struct tool_report report_memory_viewer = {
    .question = "Which buffers make up a program's peak, and could padding or lifetimes save some?",
    .whole = true,
    .map = map,
    .merge = facts_merge,
    .write = write_report,
};
