#include <stdlib.h>

#include "shard/tools/report_programs.h"

/* All buffers of a program in a memory space, not only those of its peak: when each is alive, and
 * where it lies. Those that take most (bytes by steps) are told one by one, the others as what they
 * are together at each step. */

#define LIVES_MAX 2000

enum xp_status lifetimes_asked(const struct tool_args *args, bool *asked, struct xp_error *err)
{
    struct xp_span v = {0};
    *asked = tool_arg(args, "lifetimes", &v) && v.n;
    if (*asked && !xp_span_eq(v, XP_SPAN_LIT("all")))
        return xp_fail(err, XP_BAD_REQUEST, 0, "lifetimes= is all, or absent");
    return XP_OK;
}

/* --- a host --- */

struct life {
    uint32_t buffer;
    uint32_t start, limit; /* events; of what is there all the time 0 and the last */
    int64_t bytes;
    double weight;
    bool whole;
};

static int by_weight(const void *a, const void *b)
{
    const struct life *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

static bool is_alive(const struct memory_view *v, uint32_t i)
{
    return v->buffers[i].start != HLO_NONE && v->buffers[i].allocation != HLO_NONE &&
           v->m->allocations[v->buffers[i].allocation].color == v->color &&
           !memory_is_indefinite(&v->m->allocations[v->buffers[i].allocation]);
}

static struct life life_of(uint32_t b, uint32_t start, uint32_t limit, int64_t bytes, bool whole)
{
    double weight = (double)bytes * ((double)(limit - start) + 1);
    return (struct life){b, start, limit, bytes, weight, whole};
}

/* Of an allocation that is there all the time the largest buffer stands for all of it. */
static uint32_t largest(const struct memory_view *v, const struct hlo_allocation *a)
{
    uint32_t best = HLO_NONE;
    for (uint32_t k = a->assigned.at; k < a->assigned.at + a->assigned.n; k++) {
        uint32_t b = v->m->assigned[k].buffer;
        if (b != HLO_NONE && v->buffers[b].allocation != HLO_NONE && v->m->buffers[b].size > 0 &&
            (best == HLO_NONE || v->m->buffers[b].size > v->m->buffers[best].size))
            best = b;
    }
    return best;
}

static uint32_t gather(const struct memory_view *v, struct life *all)
{
    uint32_t n = 0, last = v->nsteps ? v->nsteps - 1 : 0;
    for (uint32_t i = 0; v->color == 0 && i < v->nallocations; i++) { /* elsewhere none take any */
        const struct hlo_allocation *a = &v->m->allocations[v->allocations[i]];
        uint32_t b = memory_is_indefinite(a) ? largest(v, a) : HLO_NONE;
        if (b != HLO_NONE)
            all[n++] = life_of(b, 0, last, a->size, true);
    }
    for (uint32_t i = 0; i < v->m->nbuffers; i++)
        if (is_alive(v, i) && v->m->buffers[i].size > 0 &&
            v->buffers[i].limit >= v->buffers[i].start)
            all[n++] =
                life_of(i, v->buffers[i].start, v->buffers[i].limit, v->m->buffers[i].size, false);
    return n;
}

/* Adds x to what is alive between the two. */
static void between(int64_t *at, size_t steps, const struct life *l, int64_t x)
{
    size_t from = l->start + (size_t)1, to = l->limit + (size_t)1;
    if (from > steps || to > steps)
        return;
    (void)__builtin_add_overflow(at[from], x, &at[from]);
    (void)__builtin_sub_overflow(at[to], x, &at[to]);
}

/* What those that are told one by one leave of the curve, before each event, and how many others
 * are alive. Memory that one buffer handed to another may outlast both, and is no buffer's then. */
static bool put_rest(struct facts_out *f, const struct memory_view *v, const struct life *all,
                     uint32_t kept, uint32_t n, struct xp_arena *a)
{
    size_t steps = v->nsteps;
    int64_t *bytes = xp_arena_zalloc(a, (steps + 2) * sizeof *bytes), told = 0, alive = 0;
    int64_t *count = xp_arena_zalloc(a, (steps + 2) * sizeof *count), whole = 0;
    if (!bytes || !count)
        return false;
    for (uint32_t i = 0; steps && i < n; i++) {
        const struct life *l = &all[i];
        if (l->whole && i < kept)
            (void)__builtin_add_overflow(whole, l->bytes, &whole);
        else if (i < kept)
            between(bytes, steps, l, l->bytes);
        else if (!l->whole)
            between(count, steps, l, 1);
        else
            alive++;
    }
    facts_u64(f, n - kept);
    facts_u64(f, steps);
    for (size_t i = 0; i < steps; i++) {
        int64_t left = 0;
        (void)__builtin_add_overflow(told, bytes[i], &told);
        alive += count[i];
        if (__builtin_sub_overflow(v->heap[i], told, &left) ||
            __builtin_add_overflow(left, v->indefinite, &left) ||
            __builtin_sub_overflow(left, whole, &left) || left < 0)
            left = 0;
        facts_i64(f, left);
        facts_i64(f, alive);
    }
    return true;
}

enum xp_status lifetimes_put(struct facts_out *f, const struct memory_view *v, struct xp_arena *a,
                             program_put_fn *put, struct xp_error *err)
{
    struct life *all =
        xp_arena_alloc(a, ((size_t)v->nallocations + v->m->nbuffers + 1) * sizeof *all);
    uint32_t n, kept;
    if (!all)
        return xp_fail(err, XP_BUSY, 0, "no memory for the lifetimes of buffers");
    n = gather(v, all);
    qsort(all, n, sizeof *all, by_weight);
    kept = n < LIVES_MAX ? n : LIVES_MAX;
    facts_u64(f, kept);
    for (uint32_t i = 0; i < kept; i++) {
        struct memory_object o = {all[i].buffer, all[i].bytes, v->buffers[all[i].buffer].unpadded};
        facts_u64(f, v->color_of[all[i].buffer] != HLO_NONE);
        put(f, v, &o);
    }
    if (!put_rest(f, v, all, kept, n, a))
        return xp_fail(err, XP_BUSY, 0, "no memory for the lifetimes of buffers");
    return XP_OK;
}

/* --- the report --- */

struct program_lives {
    struct program_buffer *v;
    bool *at_peak;
    size_t n;
    uint64_t rest; /* how many are only told together */
    bool some;     /* there is something of them to tell */
    struct program_rest {
        int64_t bytes, count;
    } * at;
    size_t nsteps;
    uint64_t program;
};

bool lifetimes_get(struct facts *f, struct program_lives **out, struct xp_arena *a,
                   program_get_fn *get)
{
    struct program_lives *l = xp_arena_zalloc(a, sizeof *l);
    *out = l;
    if (!l)
        return false;
    l->n = facts_get_count(f);
    l->v = xp_arena_zalloc(a, (l->n + 1) * sizeof *l->v);
    l->at_peak = xp_arena_zalloc(a, l->n + 1);
    if (!l->v || !l->at_peak)
        return false;
    for (size_t i = 0; i < l->n; i++) {
        l->at_peak[i] = facts_get_u64(f) != 0;
        get(f, &l->v[i]);
    }
    l->rest = facts_get_u64(f);
    l->nsteps = facts_get_count(f);
    l->at = xp_arena_zalloc(a, (l->nsteps + 1) * sizeof *l->at);
    for (size_t i = 0; l->at && i < l->nsteps; i++) {
        l->at[i].bytes = facts_get_i64(f);
        l->at[i].count = facts_get_i64(f);
        l->some |= l->at[i].bytes > 0;
    }
    return l->at != NULL;
}

static const struct report_column columns[] = {
    {"op", "Buffer of", "", REPORT_COL_OP, false, "HLO op that defines it"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, ""},
    {"size", "Size", "bytes", REPORT_COL_BYTES, true, "with padding"},
    {"kind", "Kind", "", REPORT_COL_TEXT, false, "parameter, constant, output or temporary"},
    {"begin", "From", "", REPORT_COL_NUMBER, false, "step of the program that needs it first"},
    {"end", "To", "", REPORT_COL_NUMBER, false, "step after which it is free"},
    {"at_peak", "At the peak", "", REPORT_COL_BOOL, false, "one of the table buffers"},
    {"allocation", "Allocation", "", REPORT_COL_NUMBER, false, "number of the one that it lies in"},
    {"offset", "Offset", "bytes", REPORT_COL_NUMBER, false, "where it begins in that"},
    {"shape", "Shape", "", REPORT_COL_TEXT, false, "with its layout"},
    {"framework_op", "Framework op", "", REPORT_COL_TEXT, false, ""},
    {"source", "Source", "", REPORT_COL_TEXT, false, "file and line of the op"},
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct program_lives *l = ctx;
    const struct program_buffer *b = &l->v[i];
    c[0] = report_text_or_none(b->name);
    c[1] = l->program ? report_of_id(l->program) : report_none();
    c[2] = report_of_u64(b->bytes);
    c[3] = report_text_or_none(b->kind);
    c[4] = b->has_life ? report_of_u64(b->start) : report_none();
    c[5] = b->has_life ? report_of_u64(b->limit) : report_none();
    c[6] = report_of_bool(l->at_peak[i]);
    c[7] = b->placed ? report_of_i64(b->allocation) : report_none();
    c[8] = b->placed ? report_of_i64(b->offset) : report_none();
    c[9] = report_text_or_none(b->shape);
    c[10] = report_text_or_none(b->op);
    c[11] = report_text_or_none(b->source);
}

static void point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct program_lives *l = ctx;
    *x = report_of_u64(i);
    y[0] = report_of_i64(l->at[i].bytes);
    y[1] = report_of_i64(l->at[i].count);
}

void lifetimes_write(struct report *r, struct program_lives *l, uint64_t program)
{
    static const char *const names[] = {"bytes", "buffers"};
    l->program = program;
    report_table(r, &(struct report_rows){.id = "lifetimes",
                                          .title = "Buffers over the program",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = l->n,
                                          .row = row,
                                          .ctx = l,
                                          .aside = true});
    if (l->rest)
        report_note(r, REPORT_INFO, "lifetimes_rest",
                    "%llu buffers that take less (bytes by steps) than the %d listed are in the "
                    "series lifetimes_rest, together.",
                    (unsigned long long)l->rest, LIVES_MAX);
    if (!l->some)
        return;
    report_series(r, &(struct report_points){.id = "lifetimes_rest",
                                             .title = "What no listed buffer holds",
                                             .x_label = "step of the program",
                                             .x_unit = "",
                                             .y_label = "Memory",
                                             .y_unit = "bytes",
                                             .kind = "line",
                                             .names = names,
                                             .nnames = 2,
                                             .n = l->nsteps,
                                             .point = point,
                                             .ctx = l});
}
