/* The heap trace as rectangles. */
#include "shard/tools/memory_view.h"

#include "shard/tools/dot_page.h"

/* XProf's palette for buffers, in the order in which they get their colours. */
static const char *const colors[] = {
    "#e91e63", "#2196f3", "#81c784", "#4dd0e1", "#3f51b5", "#e53935", "#ff9100", "#b39ddb",
    "#90a4ae", "#26c6da", "#ad1457", "#03a9f4", "#2196f3", "#c2185b", "#795548", "#f9a825",
    "#00bfa5", "#880e4f", "#d500f9", "#ce93d8", "#ec407a", "#4caf50", "#ff8f00", "#ffca28",
    "#ab47bc", "#00e5ff", "#ff9800", "#40c4ff", "#1e88e5", "#9fa8da", "#bf360c", "#00b8d4",
    "#f57f17", "#64b5f6", "#e040fb", "#ffab91", "#4caf50", "#01579b", "#66bb6a", "#ef9a9a",
    "#558b2f", "#fb8c00", "#ff4081", "#00e676", "#388e3c", "#424242", "#6d4c41", "#c62828",
    "#616161", "#00897b", "#448aff", "#0d47a1", "#607d8b", "#673ab7", "#00c853", "#2e7d32",
    "#ffa726", "#5e35b1", "#ba68c8", "#8d6e63", "#00bcd4", "#ff6f00", "#f4511e", "#ff1744",
    "#9e9e9e", "#d81b60", "#4a148c", "#26a69a", "#689f38", "#7b1fa2", "#b0bec5", "#304ffe",
    "#f48fb1", "#ffd600", "#ffb74d", "#8bc34a", "#303f9f", "#5d4037", "#80cbc4", "#ffcc80",
    "#00acc1", "#3e2723", "#ff5252", "#ff7043", "#e91e63", "#ea80fc", "#e65100", "#d84315",
    "#212121", "#ff5722", "#1976d2", "#2962ff", "#bdbdbd", "#3949ab", "#69f0ae", "#d50000",
    "#ffd740", "#c0ca33", "#ff6e40", "#00b0ff", "#2979ff", "#e64a19", "#7c4dff", "#607d8b",
    "#009688", "#ffb300", "#c51162", "#ffc400", "#29b6f6", "#3d5afe", "#76ff03", "#cddc39",
    "#b388ff", "#5c6bc0", "#9e9d24", "#7cb342", "#ef5350", "#fdd835", "#ef6c00", "#4fc3f7",
    "#6200ea", "#004d40", "#ff8a65", "#ffab00", "#80deea", "#0097a7", "#7e57c2", "#ff6d00",
    "#1565c0", "#455a64", "#ffc107", "#4527a0", "#ff5722", "#f44336", "#f57c00", "#827717",
    "#a5d6a7", "#82b1ff", "#9c27b0", "#ff80ab", "#e1bee7", "#78909c", "#311b92", "#00695c",
    "#4e342e", "#3f51b5", "#651fff", "#9e9e9e", "#81d4fa", "#f8bbd0", "#b71c1c", "#0091ea",
    "#673ab7", "#a1887f", "#4db6ac", "#ffa000", "#6a1b9a", "#43a047", "#bcaaa4", "#546e7a",
    "#aeea00", "#e57373", "#ffccbc", "#006064", "#fbc02d", "#ffeb3b", "#8bc34a", "#039be5",
    "#8e24aa", "#80d8ff", "#009688", "#9ccc65", "#512da8", "#ffc107", "#757575", "#0277bd",
    "#ff3d00", "#33691e", "#03a9f4", "#00838f", "#ff8a80", "#283593", "#f50057", "#1a237e",
    "#90caf9", "#9c27b0", "#aa00ff", "#aed581", "#afb42b", "#9575cd", "#d32f2f", "#64dd17",
    "#f44336", "#795548", "#cddc39", "#ff9e80", "#7986cb", "#dd2c00", "#0288d1", "#ff9800",
    "#263238", "#00796b", "#42a5f5", "#8c9eff", "#1b5e20", "#ffab40", "#536dfe", "#00bcd4",
    "#f06292",
};
#define NCOLORS (sizeof colors / sizeof *colors)

#define GRAPH_POINTS 4096.0
#define POINTS_PER_INCH 72.0
#define MARGIN_INCHES 0.02

/* --- blocks --- */

struct canvas {
    uint64_t height; /* bytes */
    uint32_t width;  /* events */
    double scale_x, scale_y;
    uint32_t nodes; /* drawn so far */
};

static bool is_drawn(const struct memory_view *v, uint32_t allocation)
{
    return !memory_is_indefinite(&v->m->allocations[allocation]) &&
           v->trace_of[allocation] != HLO_NONE;
}

static bool measure(const struct memory_view *v, struct canvas *c)
{
    for (uint32_t i = 0; i < v->nallocations; i++) {
        uint32_t at = v->allocations[i], trace = v->trace_of[at];
        if (!is_drawn(v, at))
            continue;
        c->height += (uint64_t)v->m->allocations[at].size;
        if (v->m->heap_traces[trace].events.n > c->width)
            c->width = v->m->heap_traces[trace].events.n;
    }
    if (!c->height || !c->width)
        return false;
    c->scale_x = GRAPH_POINTS / c->width;
    c->scale_y = GRAPH_POINTS / (double)c->height;
    return true;
}

static void lay_out(struct canvas *c, struct memory_block *b)
{
    double width = (double)b->end - (double)b->start;

    b->width = width * c->scale_x;
    b->height = (double)b->bytes * c->scale_y;
    b->x = ((double)b->start + width / 2) * c->scale_x;
    b->y = ((double)b->offset + (double)b->bytes / 2) * c->scale_y;
    b->drawn = b->width >= 1 && b->height >= 1;
}

static void buffer_blocks(const struct memory_view *v, struct canvas *c, uint32_t allocation,
                          uint64_t offset, void (*fn)(void *, const struct memory_block *),
                          void *ctx)
{
    const struct hlo_run *run = &v->m->allocations[allocation].assigned;

    for (uint32_t k = run->at; k < run->at + run->n; k++) {
        uint32_t b = v->m->assigned[k].buffer;
        if (b == HLO_NONE || v->buffers[b].start == HLO_NONE)
            continue;
        uint32_t color = v->color_of[b] != HLO_NONE ? v->color_of[b] : c->nodes;
        struct memory_block block = {
            .allocation = v->buffers[b].allocation,
            .buffer = b,
            .offset = offset + (uint64_t)v->buffers[b].offset,
            .bytes = (uint64_t)v->m->buffers[b].size,
            .start = v->buffers[b].start,
            .end = v->buffers[b].limit,
            .color = colors[color % NCOLORS],
        };
        lay_out(c, &block);
        fn(ctx, &block);
        c->nodes += block.drawn;
    }
}

void memory_blocks(const struct memory_view *v, void (*fn)(void *ctx, const struct memory_block *b),
                   void *ctx)
{
    struct canvas c = {0};
    uint64_t offset = 0;

    if (!measure(v, &c))
        return;
    for (uint32_t i = 0; i < v->nallocations; i++) {
        uint32_t at = v->allocations[i];
        if (!is_drawn(v, at))
            continue;
        struct memory_block block = {
            .allocation = at,
            .buffer = HLO_NONE,
            .offset = offset,
            .bytes = (uint64_t)v->m->allocations[at].size,
            .end = c.width,
            .color = "#ffffff",
        };
        lay_out(&c, &block);
        fn(ctx, &block);
        c.nodes += block.drawn;
        buffer_blocks(v, &c, at, offset, fn, ctx);
        offset += block.bytes;
    }
}

/* --- the page --- */

struct drawing {
    const struct memory_view *v;
    struct out *out;
    struct xp_buf line;
    uint32_t nodes;
};

/* Text between quotation marks in DOT. */
static void quoted(struct xp_buf *out, struct xp_span s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\\' || s.p[i] == '"')
            xp_buf_byte(out, '\\');
        xp_buf_byte(out, s.p[i]);
    }
}

/* As much of a name as fits a rectangle in Arial. */
static void fitting_label(struct xp_buf *out, struct xp_span name, const struct memory_block *b,
                          double font)
{
    double margin = 2 * MARGIN_INCHES * POINTS_PER_INCH;
    double height = b->height - margin, width = b->width - margin, letter = 0.55 * font;

    if (name.n == 0 || height < 1.2 * font || width < letter)
        return;
    size_t letters = (size_t)(width / letter);
    if (name.n <= letters) {
        quoted(out, name);
    } else if (letters >= 4) {
        quoted(out, xp_span_of(name.p, letters - 3));
        xp_buf_str(out, "...");
    }
}

static void tooltip(struct drawing *d, const struct memory_block *b)
{
    const struct memory_view *v = d->v;
    const struct hlo_allocation *a = &v->m->allocations[b->allocation];
    struct xp_buf *out = &d->line;

    if (b->buffer == HLO_NONE) {
        xp_buf_fmt(out, "buffer_allocation_id:%lld\nsize:%lld\nbuffer_counts:%u\n",
                   (long long)a->index, (long long)a->size, a->assigned.n);
        return;
    }
    const struct hlo_buffer *buffer = &v->m->buffers[b->buffer];
    xp_buf_fmt(out, "buffer_id:%lld\nhlo_op:", (long long)buffer->id);
    quoted(out, v->m->instrs[buffer->instr].name);
    xp_buf_str(out, "\nshape:");
    hlo_shape_text(v->m, v->buffers[b->buffer].shape, true, out);
    xp_buf_fmt(out, "\nsize:%lld\nunpadded_size:%lld\noffset:%lld\nspan:(%u,%u)",
               (long long)buffer->size, (long long)v->buffers[b->buffer].unpadded,
               (long long)v->buffers[b->buffer].offset, b->start, b->end);
}

static void draw(void *ctx, const struct memory_block *b)
{
    struct drawing *d = ctx;
    struct xp_buf *out = &d->line;
    double font = b->height * 0.6 < 8 ? 8 : b->height * 0.6 > 14 ? 14 : b->height * 0.6;
    struct xp_span name = {0};

    if (!b->drawn)
        return;
    out->n = 0;
    xp_buf_fmt(out, "%s\"%u\" [tooltip=\"", d->nodes ? "\n" : "", d->nodes);
    d->nodes++;
    tooltip(d, b);
    xp_buf_fmt(out, "\", pos=\"%.2f,%.2f!\", width=\"%.4f\", height=\"%.4f\", ", b->x, b->y,
               b->width / POINTS_PER_INCH, b->height / POINTS_PER_INCH);
    xp_buf_fmt(out, "fixedsize=true, color=\"%s\", fontsize=%.1f, label=\"",
               b->buffer == HLO_NONE ? "#ffffffff" : b->color, font);
    if (b->buffer != HLO_NONE)
        name = d->v->m->instrs[d->v->m->buffers[b->buffer].instr].name;
    fitting_label(out, name, b, font);
    xp_buf_str(out, "\"];");
    dot_page_text(&d->out->text, xp_buf_all(out));
    if (d->out->text.n > 65536)
        out_flush(d->out);
}

void memory_page(const struct memory_view *v, struct out *out)
{
    struct drawing d = {.v = v, .out = out};
    struct canvas c = {0};

    if (!measure(v, &c)) {
        xp_buf_str(&out->text,
                   "<html><body style=\"font-family: sans-serif; padding: 20px;\">"
                   "<h2>No memory allocation timeline available</h2>"
                   "<p>There is no memory activity data to display for this timeline.</p>"
                   "</body></html>");
        return;
    }
    xp_buf_init(&d.line, 1 << 24);
    dot_page_begin(&out->text);
    xp_buf_str(&out->text,
               "graph G {\n epsilon=0.5 \n inputscale=72 \n node [shape=box,style=filled,"
               "fontname=\"Arial\",margin=\"0.02,0.02\"];\n  ");
    memory_blocks(v, draw, &d);
    xp_buf_str(&out->text, "\n}");
    dot_page_end(&out->text, "neato");
    xp_buf_fini(&d.line);
}
