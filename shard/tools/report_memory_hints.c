#include <stdio.h>
#include <stdlib.h>

#include "shard/tools/report_programs.h"

/* What would make the peak smaller, seen from each buffer that is alive then. What one hint saves
 * is told as if it were the only one, and at most: XLA may find another peak. */

#define WORTH 0.01     /* of the peak: what is less is not told */
#define DONORS_MAX 200 /* results that one is looked for, each among all buffers */

enum hint_kind { HINT_PADDING, HINT_LIFE, HINT_TYPE, HINT_DONATE };

static const struct {
    const char *what, *how;
} texts[] = {
    [HINT_PADDING] = {"padding", "choose dimensions, or an order of them, that fill the tiles of "
                                 "the layout"},
    [HINT_LIFE] = {"long-lived temporary",
                   "it waits for half of the program or more: compute it again where it is used "
                   "(jax.checkpoint), or keep it in the host's memory meanwhile"},
    [HINT_TYPE] = {"wide type", "bf16 instead of f32 takes half, where the numbers allow it"},
    [HINT_DONATE] = {"argument is not donated",
                     "a result of the same shape gets memory of its own: donate the argument "
                     "(donate_argnums) if it is not needed any more"},
};

struct hint {
    uint8_t kind;
    const struct program_buffer *b;
    uint64_t saves;
};

struct hints {
    struct hint *v;
    size_t n;
    uint64_t program, peak;
    bool device;     /* it is the device's main memory, which the host's can spare */
    uint32_t donors; /* times that one was looked for */
    bool *taken;     /* by buffer: an argument that a result was given */
};

static bool is_kind(const struct program_buffer *b, const char *kind)
{
    return xp_span_eq(b->kind, xp_span_str(kind));
}

static bool is_worth(const struct hints *h, uint64_t saves)
{
    return saves && (double)saves >= WORTH * (double)h->peak;
}

static void add(struct hints *h, enum hint_kind kind, const struct program_buffer *b,
                uint64_t saves)
{
    if (is_worth(h, saves) && b->name.n)
        h->v[h->n++] = (struct hint){(uint8_t)kind, b, saves};
}

/* "f32[8,4]{1,0:T(8,128)}" -> "f32[8,4]" */
static struct xp_span without_layout(struct xp_span shape)
{
    const uint8_t *brace = shape.n ? memchr(shape.p, '{', shape.n) : NULL;
    return brace ? xp_span_of(shape.p, (size_t)(brace - shape.p)) : shape;
}

/* An argument of the result's shape that no other result was given. Of a sound program a hundred
 * results at most are worth it. */
static void find_donor(struct hints *h, const struct program_view *v,
                       const struct program_buffer *out)
{
    if (!is_worth(h, out->bytes) || h->donors++ >= DONORS_MAX)
        return;
    for (size_t i = 0; i < v->nbuffers; i++) {
        const struct program_buffer *in = &v->buffers[i];
        if (h->taken[i] || !is_kind(in, "Parameter") || in->bytes != out->bytes ||
            !xp_span_eq(without_layout(in->shape), without_layout(out->shape)))
            continue;
        h->taken[i] = true;
        add(h, HINT_DONATE, in, out->bytes);
        return;
    }
}

static void look_at(struct hints *h, const struct program_view *v, const struct program_buffer *b)
{
    bool temporary = is_kind(b, "Temporary");
    if (b->bytes > b->unpadded)
        add(h, HINT_PADDING, b, b->bytes - b->unpadded);
    if (h->device && temporary && b->has_life && b->limit > b->start &&
        b->limit - b->start >= v->nsteps / 2)
        add(h, HINT_LIFE, b, b->bytes);
    if (temporary && xp_span_starts(b->shape, XP_SPAN_LIT("f32[")))
        add(h, HINT_TYPE, b, b->unpadded / 2);
    if (h->device && is_kind(b, "Output"))
        find_donor(h, v, b);
}

static const struct report_column columns[] = {
    {"op", "Buffer of", "", REPORT_COL_OP, false, "HLO op that defines it"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, ""},
    {"what", "What", "", REPORT_COL_TEXT, false, ""},
    {"saves", "Saves at most", "bytes", REPORT_COL_BYTES, false,
     "of the peak, if nothing else is changed; hints about one buffer do not add up"},
    {"share", "Of the peak", "fraction", REPORT_COL_NUMBER, false, ""},
    {"how", "How", "", REPORT_COL_TEXT, false, ""},
    {"size", "Size", "bytes", REPORT_COL_BYTES, false, "of the buffer"},
    {"shape", "Shape", "", REPORT_COL_TEXT, false, "with its layout"},
    {"source", "Source", "", REPORT_COL_TEXT, false, "of the op"},
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct hints *h = ctx;
    const struct program_buffer *b = h->v[i].b;
    c[0] = report_of_text(b->name);
    c[1] = h->program ? report_of_id(h->program) : report_none();
    c[2] = report_of_text(xp_span_str(texts[h->v[i].kind].what));
    c[3] = report_of_u64(h->v[i].saves);
    c[4] = report_ratio((double)h->v[i].saves, (double)h->peak);
    c[6] = report_of_u64(b->bytes);
    c[7] = b->shape.n ? report_of_text(b->shape) : report_none();
    c[5] = report_of_text(xp_span_str(texts[h->v[i].kind].how));
    c[8] = b->source.n ? report_of_text(b->source) : report_none();
}

void report_memory_hints(struct report *r, const struct program_view *v, uint64_t program,
                         int64_t space)
{
    struct hints h = {.v = xp_arena_alloc(r->a, (4 * v->nbuffers + 1) * sizeof *h.v),
                      .taken = xp_arena_zalloc(r->a, v->nbuffers + 1),
                      .program = program,
                      .device = space == 0,
                      .peak = (uint64_t)(v->peak + v->indefinite)};
    if (!h.v || !h.taken) {
        r->busy = true;
        return;
    }
    for (size_t i = 0; i < v->nbuffers; i++)
        look_at(&h, v, &v->buffers[i]);
    report_table(r, &(struct report_rows){.id = "hints",
                                          .title = "What could save memory",
                                          .note = "buffers at the peak that cost 1 % of it or more",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = h.n,
                                          .row = row,
                                          .ctx = &h,
                                          .sort = "saves",
                                          .descending = true});
}
