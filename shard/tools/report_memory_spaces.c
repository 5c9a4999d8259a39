#include <stdlib.h>

#include "shard/tools/report_programs.h"

/* Which memories a program's buffer assignment uses. The file has numbers ("colors"); the names are
 * those that XProf gives to a TPU's. */

static const char *const space_names[] = {"HBM",  "VMEM", "sync flags", "CMEM",
                                          "SMEM", "host", "SparseCore"};

enum xp_status memory_space_asked(const struct tool_args *args, int64_t *space,
                                  struct xp_error *err)
{
    struct xp_span s = {0};
    int64_t v = 0;
    tool_arg(args, "memory_space", &s);
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || s.n > 9)
            return xp_fail(err, XP_BAD_REQUEST, 0,
                           "memory_space= is a number, as the table spaces has it: 0 is HBM");
        v = v * 10 + (s.p[i] - '0');
    }
    *space = v;
    return XP_OK;
}

const char *memory_space_name(int64_t space)
{
    size_t n = sizeof space_names / sizeof *space_names;
    return space >= 0 && (uint64_t)space < n ? space_names[space] : NULL;
}

/* --- a host --- */

static struct memory_space *place_of(struct memory_spaces *all, int64_t space)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].space == space)
            return &all->v[i];
    if (all->n == MEMORY_SPACES_MAX)
        return NULL;
    all->v[all->n] = (struct memory_space){.space = space};
    return &all->v[all->n++];
}

void memory_spaces_put(struct facts_out *f, const struct hlo_module *m)
{
    struct memory_spaces all = {0};
    for (uint32_t i = 0; i < m->nallocations; i++) {
        const struct hlo_allocation *a = &m->allocations[i];
        struct memory_space *s = place_of(&all, a->color);
        if (!s)
            continue;
        s->allocations++;
        s->buffers += a->assigned.n;
        if (a->size > 0 && __builtin_add_overflow(s->bytes, (uint64_t)a->size, &s->bytes))
            s->bytes = UINT64_MAX;
    }
    facts_u64(f, all.n);
    for (size_t i = 0; i < all.n; i++) {
        facts_i64(f, all.v[i].space);
        facts_u64(f, all.v[i].allocations);
        facts_u64(f, all.v[i].buffers);
        facts_u64(f, all.v[i].bytes);
    }
}

/* --- the report --- */

static int by_space(const void *a, const void *b)
{
    const struct memory_space *x = a, *y = b;
    return (x->space > y->space) - (x->space < y->space);
}

void memory_spaces_get(struct facts *f, struct memory_spaces *all)
{
    size_t n = facts_get_count(f);
    *all = (struct memory_spaces){0};
    for (size_t i = 0; i < n && i < MEMORY_SPACES_MAX && !f->bad; i++) {
        struct memory_space *s = &all->v[all->n++];
        s->space = facts_get_i64(f);
        s->allocations = facts_get_u64(f);
        s->buffers = facts_get_u64(f);
        s->bytes = facts_get_u64(f);
    }
    if (all->n)
        qsort(all->v, all->n, sizeof *all->v, by_space);
}

static const struct report_column columns[] = {
    {"space", "Space", "", REPORT_COL_NUMBER, false, "memory_space= of it"},
    {"name", "Name", "", REPORT_COL_TEXT, false, "of a TPU's memory of that number"},
    {"size", "Allocated", "bytes", REPORT_COL_BYTES, false, "sum of its allocations"},
    {"allocations", "Allocations", "count", REPORT_COL_NUMBER, true, ""},
    {"buffers", "Buffers", "count", REPORT_COL_NUMBER, true, "that lie in them"},
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct memory_space *s = &((const struct memory_spaces *)ctx)->v[i];
    const char *name = memory_space_name(s->space);
    c[0] = report_of_i64(s->space);
    c[1] = name ? report_of_text(xp_span_str(name)) : report_none();
    c[2] = report_of_u64(s->bytes);
    c[3] = report_of_u64(s->allocations);
    c[4] = report_of_u64(s->buffers);
}

void memory_spaces_write(struct report *r, const struct memory_spaces *all, int64_t asked)
{
    bool there = false;
    for (size_t i = 0; i < all->n; i++)
        there |= all->v[i].space == asked;
    if (all->n && !there)
        report_note(r, REPORT_INFO, "memory_space_unused",
                    "The program has no buffers in this memory; the table spaces says where it "
                    "has some.");
    report_table(r, &(struct report_rows){.id = "spaces",
                                          .title = "Memories of the program",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = all->n,
                                          .row = row,
                                          .ctx = (void *)all,
                                          .sort = "space",
                                          .descending = false});
}
