/* The tables of stack frames before a module's text. XLA makes them anew when it loads a module:
 * the frames of instructions in file order, each after those it is called from, and of files,
 * functions and places only what these name, in the order in which they do. */
#include "shard/hlo/text_int.h"

/* Gives numbers to a frame and to those it is called from, the outermost first. A chain that comes
 * back to itself ends where it does. */
static void use_frame(const struct hlo_module *m, struct hlo_frame_view *v, uint32_t frame)
{
    uint32_t first = v->n, at = frame;

    for (; at < m->nframes && v->numbers[at] == 0; at = m->frames[at].parent - 1) {
        v->numbers[at] = UINT32_MAX; /* seen */
        v->used[v->n++] = at;
    }
    for (uint32_t lo = first, hi = v->n; lo + 1 < hi; lo++) {
        uint32_t swap = v->used[lo];
        v->used[lo] = v->used[--hi];
        v->used[hi] = swap;
    }
    for (uint32_t i = first; i < v->n; i++)
        v->numbers[v->used[i]] = i + 1;
}

bool hlo_frame_view_make(const struct hlo_module *m, struct xp_arena *scratch,
                         struct hlo_frame_view *v)
{
    v->n = 0;
    v->numbers = xp_arena_zalloc(scratch, ((size_t)m->nframes + 1) * sizeof *v->numbers);
    v->used = xp_arena_alloc(scratch, ((size_t)m->nframes + 1) * sizeof *v->used);
    if (!v->numbers || !v->used)
        return false;
    for (uint32_t i = 0; m->nframes && i < m->ninstrs; i++)
        use_frame(m, v, (uint32_t)hlo_meta_read(m->instrs[i].metadata).stack_frame_id - 1);
    return true;
}

/* --- numbers for files, functions and places, by first use --- */

struct renumber {
    uint32_t *numbers, *used;
    uint32_t n, max;
};

static bool renumber_init(struct renumber *r, struct xp_arena *scratch, uint32_t max)
{
    r->n = 0;
    r->max = max;
    r->numbers = xp_arena_zalloc(scratch, ((size_t)max + 1) * sizeof *r->numbers);
    r->used = xp_arena_alloc(scratch, ((size_t)max + 1) * sizeof *r->used);
    return r->numbers && r->used;
}

/* id counts from 1, as in the file; 0 for what is not there. */
static uint32_t number_of(struct renumber *r, uint32_t id)
{
    if (id == 0 || id > r->max)
        return 0;
    if (r->numbers[id - 1] == 0) {
        r->used[r->n++] = id - 1;
        r->numbers[id - 1] = r->n;
    }
    return r->numbers[id - 1];
}

static void name_table(const struct hlo_text *t, const char *head, const struct xp_span *names,
                       const struct renumber *r)
{
    xp_buf_str(t->out, head);
    for (uint32_t i = 0; i < r->n; i++) {
        xp_buf_fmt(t->out, "%u \"", i + 1);
        hlo_text_escape(t->out, names[r->used[i]]);
        xp_buf_str(t->out, "\"\n");
    }
}

static void tables(const struct hlo_text *t, const struct hlo_frame_view *v, struct renumber *files,
                   struct renumber *functions, struct renumber *places)
{
    const struct hlo_module *m = t->m;

    name_table(t, "\n\nFileNames\n", m->file_names, files);
    name_table(t, "\nFunctionNames\n", m->function_names, functions);
    xp_buf_str(t->out, "\nFileLocations\n");
    for (uint32_t i = 0; i < places->n; i++) {
        const struct hlo_location *l = &m->locations[places->used[i]];
        xp_buf_fmt(t->out,
                   "%u {file_name_id=%u function_name_id=%u line=%d end_line=%d column=%d "
                   "end_column=%d}\n",
                   i + 1, number_of(files, l->file), number_of(functions, l->function), l->line,
                   l->end_line, l->column, l->end_column);
    }
    xp_buf_str(t->out, "\nStackFrames\n");
    for (uint32_t i = 0; i < v->n; i++) {
        const struct hlo_frame *f = &m->frames[v->used[i]];
        uint32_t parent = f->parent - 1 < m->nframes ? v->numbers[f->parent - 1] : 0;
        /* XLA prints the parent's number plus one. */
        xp_buf_fmt(t->out, "%u {file_location_id=%u parent_frame_id=%u}\n", i + 1,
                   number_of(places, f->location), parent + 1);
    }
}

void hlo_text_frames(const struct hlo_text *t, const struct hlo_frame_view *v)
{
    const struct hlo_module *m = t->m;
    struct renumber files, functions, places;

    if (v->n == 0 || !renumber_init(&files, t->scratch, m->nfile_names) ||
        !renumber_init(&functions, t->scratch, m->nfunction_names) ||
        !renumber_init(&places, t->scratch, m->nlocations))
        return;
    for (uint32_t i = 0; i < v->n; i++) {
        uint32_t place = m->frames[v->used[i]].location;
        if (number_of(&places, place) == 0)
            continue;
        number_of(&files, m->locations[place - 1].file);
        number_of(&functions, m->locations[place - 1].function);
    }
    tables(t, v, &files, &functions, &places);
}
