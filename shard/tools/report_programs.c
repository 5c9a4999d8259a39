#include "shard/tools/report_programs.h"

#include <stdio.h>
#include <stdlib.h>

#include "shard/tools/modules.h"

/* All compiled programs of a run beside each other: which one needs most, and for what. */

#define NAME_MAX_BYTES 100

struct program {
    struct report_module of;
    bool known;
    size_t number;                            /* in the order of hosts */
    uint64_t arguments, temporaries, padding; /* at its peak; they add up to it */
};

enum xp_status programs_asked(const struct tool_args *args, bool *asked, struct xp_error *err)
{
    struct xp_span v = {0};
    *asked = tool_arg(args, "programs", &v) && v.n;
    if (*asked && !xp_span_eq(v, XP_SPAN_LIT("all")))
        return xp_fail(err, XP_BAD_REQUEST, 0, "programs= is all, or absent");
    return XP_OK;
}

/* --- a host --- */

static void put_program(struct facts_out *f, const struct report_module *of,
                        const struct memory_view *v)
{
    uint64_t peak = (uint64_t)v->peak, unpadded = (uint64_t)v->peak_unpadded;
    uint64_t padding = peak > unpadded ? peak - unpadded : 0;
    facts_u64(f, of->program);
    facts_u64(f, of->time_ps);
    facts_u64(f, of->runs);
    facts_u64(f, (uint64_t)v->indefinite);
    facts_u64(f, peak - padding);
    facts_u64(f, padding);
}

/* Its own arena: modules are large, and there may be many. */
static enum xp_status one(struct facts_out *f, const struct tool_host *host, int64_t space,
                          const struct report_module *of, struct xp_error *err)
{
    struct tool_arg name = {XP_SPAN_LIT("module_name"), of->name};
    struct tool_args by_name = {.args = &name, .n = 1};
    struct xp_error own = {0};
    struct xp_arena *a = xp_arena_new(NULL);
    struct hlo_module *m;
    struct memory_view v;
    struct xp_span proto;
    if (!a)
        return xp_fail(err, XP_BUSY, 0, "no memory left for a program's buffers");
    enum xp_status st = modules_find(host, 1, &by_name, a, &proto, &own);
    if (st == XP_OK)
        st = hlo_decode(proto, a, &m, &own);
    if (st == XP_OK)
        st = memory_view_make(m, space, a, &v, &own);
    bool known = st == XP_OK && m->nallocations;
    facts_text(f, of->name);
    facts_u64(f, known);
    if (known)
        put_program(f, of, &v);
    xp_arena_free(a);
    return st == XP_BUSY ? xp_fail(err, st, 0, "%s", own.text) : XP_OK;
}

enum xp_status programs_put(struct facts_out *f, const struct tool_host *host, int64_t space,
                            struct xp_arena *a, struct xp_error *err)
{
    struct report_module *v;
    size_t n;
    XP_TRY(report_modules_list(host, a, &v, &n, err));
    n = n < PROGRAMS_MAX ? n : PROGRAMS_MAX;
    facts_u64(f, n);
    for (size_t i = 0; i < n; i++)
        XP_TRY(one(f, host, space, &v[i], err));
    return XP_OK;
}

/* --- the report --- */

struct programs {
    struct program *v;
    size_t n, cap, unknown; /* unknown: names */
};

static void get_programs(struct facts *f, struct programs *all)
{
    size_t n = facts_get_count(f);
    f->bad |= n > all->cap - all->n;
    for (; n && !f->bad; n--) {
        struct program p = {.of = {.name = facts_get_text(f)}, .number = all->n};
        p.known = facts_get_u64(f) != 0;
        if (!p.known) {
            all->v[all->n++] = p;
            continue;
        }
        p.of.program = facts_get_u64(f);
        p.of.time_ps = facts_get_u64(f);
        p.of.runs = facts_get_u64(f);
        p.arguments = facts_get_u64(f);
        p.temporaries = facts_get_u64(f);
        p.padding = facts_get_u64(f);
        all->v[all->n++] = p;
    }
}

static int by_number(const void *a, const void *b)
{
    const struct program *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Of a name the first host's that knows it is first. */
static int by_name(const void *a, const void *b)
{
    const struct program *x = a, *y = b;
    int c = xp_span_cmp(x->of.name, y->of.name);
    c = c ? c : y->known - x->known;
    return c ? c : by_number(a, b);
}

/* Programs of equal names are one, whatever the host. */
static void join(struct programs *all)
{
    struct program *to = NULL;
    struct xp_span last = {0};
    size_t n = all->n;
    all->n = 0;
    if (n)
        qsort(all->v, n, sizeof *all->v, by_name);
    for (size_t i = 0; i < n; i++) {
        struct program p = all->v[i];
        bool again = i && xp_span_eq(p.of.name, last);
        last = p.of.name;
        if (!p.known) {
            all->unknown += !again;
        } else if (again) {
            to->of.time_ps += p.of.time_ps;
            to->of.runs += p.of.runs;
        } else {
            to = &all->v[all->n++];
            *to = p;
        }
    }
}

static uint64_t peak_of(const struct program *p)
{
    return p->arguments + p->temporaries + p->padding;
}

static int by_peak(const void *a, const void *b)
{
    uint64_t x = peak_of(a), y = peak_of(b);
    return x != y ? (y > x) - (y < x) : by_number(a, b);
}

static const struct report_column columns[] = {
    {"module", "Program", "", REPORT_COL_TEXT, false, "name, with its number"},
    {"program_id", "Id", "", REPORT_COL_TEXT, false, ""},
    {"peak", "Peak", "bytes", REPORT_COL_BYTES, false, "of its buffers"},
    {"arguments", "Arguments", "bytes", REPORT_COL_BYTES, false,
     "parameters, constants and results: as long as it runs"},
    {"temporaries", "Temporaries", "bytes", REPORT_COL_BYTES, false,
     "without padding, at the peak"},
    {"padding", "Padding", "bytes", REPORT_COL_BYTES, false, "of these"},
    {"runs", "Runs", "count", REPORT_COL_NUMBER, false,
     "over all cores; empty where the profile does not tell them"},
    {"time", "Time", "ps", REPORT_COL_NUMBER, false, "sum of them"},
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct program *p = &((const struct programs *)ctx)->v[i];
    c[0] = report_of_text(p->of.name);
    c[1] = p->of.program ? report_of_id(p->of.program) : report_none();
    c[2] = report_of_u64(peak_of(p));
    c[3] = report_of_u64(p->arguments);
    c[4] = report_of_u64(p->temporaries);
    c[5] = report_of_u64(p->padding);
    c[6] = p->of.runs ? report_of_u64(p->of.runs) : report_none();
    c[7] = p->of.runs ? report_of_u64(p->of.time_ps) : report_none();
}

static void point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct program *p = &((const struct programs *)ctx)->v[i];
    *x = report_of_text(
        xp_span_of(p->of.name.p, p->of.name.n < NAME_MAX_BYTES ? p->of.name.n : NAME_MAX_BYTES));
    y[0] = report_of_u64(p->arguments);
    y[1] = report_of_u64(p->temporaries);
    y[2] = report_of_u64(p->padding);
}

enum xp_status programs_read(struct facts *hosts, size_t n, struct xp_arena *a,
                             struct programs **all, struct xp_error *err)
{
    struct programs *p = xp_arena_zalloc(a, sizeof *p);
    if (p)
        p->v = xp_arena_alloc(a, (n * PROGRAMS_MAX + 1) * sizeof *p->v);
    if (!p || !p->v)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the programs");
    p->cap = n * PROGRAMS_MAX;
    for (size_t i = 0; i < n; i++) {
        get_programs(&hosts[i], p);
        XP_TRY(facts_ok(&hosts[i], err));
    }
    join(p);
    if (p->n)
        qsort(p->v, p->n, sizeof *p->v, by_peak);
    *all = p;
    return XP_OK;
}

void programs_write(struct report *r, const struct programs *all)
{
    static const char *const names[] = {"arguments", "temporaries", "padding"};
    if (all->unknown)
        report_note(r, REPORT_INFO, "programs_unknown",
                    "%zu program%s no buffer assignment in the profile, or cannot be read.",
                    all->unknown, all->unknown == 1 ? " has" : "s have");
    report_table(r, &(struct report_rows){.id = "programs",
                                          .title = "All programs",
                                          .note = "those that ran longest, of each host 64 at most",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = all->n,
                                          .row = row,
                                          .ctx = (void *)all,
                                          .sort = "peak",
                                          .descending = true});
    report_series(r, &(struct report_points){.id = "programs",
                                             .title = "Peaks of all programs",
                                             .x_label = "program",
                                             .x_unit = "",
                                             .x_text = true,
                                             .y_label = "Memory",
                                             .y_unit = "bytes",
                                             .kind = "stack",
                                             .names = names,
                                             .nnames = 3,
                                             .n = all->n,
                                             .point = point,
                                             .ctx = (void *)all});
}
