#include "shard/tools/report_modules.h"

#include <stdlib.h>

#include "shard/tools/modules.h"
#include "shard/tools/profile.h"

#define MODULES_MAX 10000

struct list {
    struct report_module *v;
    size_t n, max;
};

/* The number in jit_f(123). */
static uint64_t program_of(struct xp_span name, int64_t id)
{
    uint64_t v = 0;
    size_t i = name.n;
    if (i < 3 || name.p[i - 1] != ')')
        return (uint64_t)id;
    for (i--; i && name.p[i - 1] >= '0' && name.p[i - 1] <= '9'; i--)
        ;
    if (!i || name.p[i - 1] != '(')
        return (uint64_t)id;
    for (; name.p[i] != ')'; i++)
        v = v * 10 + (uint64_t)(name.p[i] - '0');
    return v;
}

static struct report_module *module_named(struct list *l, struct xp_span name)
{
    for (size_t i = 0; i < l->n; i++)
        if (xp_span_eq(l->v[i].name, name))
            return &l->v[i];
    return NULL;
}

static enum xp_status list_plane(struct list *l, const struct part *p, const struct part_plane *pl,
                                 struct xp_arena *a, struct xp_error *err)
{
    static const char *const names[] = {"Hlo Proto", "HLO Proto", "hlo_proto"};
    struct values_eye eye;
    struct value v;
    values_open(&eye, p, pl, names, 3, a);
    for (uint32_t i = 0; i < pl->nevmeta && l->n < l->max; i++) {
        struct xp_span name = part_str(p, pl->evmeta[i].name);
        uint64_t bytes = pl->evmeta[i].len;
        enum xp_status st = values_of_evmeta(&eye, i, err);
        if (st == XP_TOO_LARGE) { /* to be looked at for a list: nothing but a module is so large */
            *err = (struct xp_error){0};
        } else {
            XP_TRY(st);
            if (!values_next(&eye, &v) || v.type != VALUE_BYTES)
                continue;
            bytes = v.text.n;
        }
        l->v[l->n++] = (struct report_module){
            .name = name, .program = program_of(name, pl->evmeta[i].id), .bytes = bytes};
    }
    return XP_OK;
}

/* Runs of modules, on devices that have a line of them. */
static void add_line(struct list *l, const struct part *p, const struct part_line *line)
{
    const struct part_plane *pl = &p->planes[line->plane];
    uint32_t last = UINT32_MAX;
    struct report_module *m = NULL;
    for (uint32_t i = 0; i < line->nlanes; i++) {
        struct lane_cursor c;
        struct lane_event ev;
        lane_seek(&c, line->lanes[i], INT64_MIN);
        while (lane_next(&c, &ev)) {
            if (ev.name >= pl->nevmeta)
                continue;
            if (ev.name != last)
                m = module_named(l, part_str(p, pl->evmeta[ev.name].name));
            last = ev.name;
            if (m) {
                m->time_ps += (uint64_t)ev.end_ps - (uint64_t)ev.begin_ps;
                m->runs++;
            }
        }
    }
}

static int longest_first(const void *a, const void *b)
{
    const struct report_module *x = a, *y = b;
    if (x->time_ps != y->time_ps)
        return x->time_ps > y->time_ps ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return xp_span_cmp(x->name, y->name);
}

static enum xp_status list_modules(struct list *l, const struct part *p, struct xp_arena *a,
                                   struct xp_error *err)
{
    for (uint32_t i = 0; i < p->nplanes; i++)
        if (xp_span_eq(profile_plane_name(p, &p->planes[i]), XP_SPAN_LIT("/host:metadata")))
            l->max += p->planes[i].nevmeta;
    l->max = l->max < MODULES_MAX ? l->max : MODULES_MAX;
    l->v = xp_arena_alloc(a, (l->max + 1) * sizeof *l->v);
    if (!l->v)
        return xp_fail(err, XP_BUSY, 0, "no memory left to list modules");
    for (uint32_t i = 0; i < p->nplanes; i++)
        if (xp_span_eq(profile_plane_name(p, &p->planes[i]), XP_SPAN_LIT("/host:metadata")))
            XP_TRY(list_plane(l, p, &p->planes[i], a, err));
    for (uint32_t i = 0; l->n && i < p->nlines; i++)
        if (xp_span_eq(part_str(p, p->lines[i].name), XP_SPAN_LIT("XLA Modules")))
            add_line(l, p, &p->lines[i]);
    if (l->n)
        qsort(l->v, l->n, sizeof *l->v, longest_first);
    return XP_OK;
}

enum xp_status report_modules_list(const struct tool_host *host, struct xp_arena *a,
                                   struct report_module **v, size_t *n, struct xp_error *err)
{
    struct list l = {0};
    XP_TRY(list_modules(&l, host->part, a, err));
    *v = l.v;
    *n = l.n;
    return XP_OK;
}

static bool is_named(const struct tool_args *args)
{
    struct xp_span v = {0}, w = {0};
    tool_arg(args, "module_name", &v);
    tool_arg(args, "program_id", &w);
    return v.n || w.n;
}

/* A module of the list that is asked for by its whole name, or by its number. */
static struct report_module *asked_for(struct list *l, const struct tool_args *args)
{
    struct xp_span name = {0}, program = {0};
    tool_arg(args, "module_name", &name);
    tool_arg(args, "program_id", &program);
    uint64_t id = 0;
    for (size_t i = 0; i < program.n; i++)
        id = id * 10 + (uint64_t)(program.p[i] - '0');
    if (name.n)
        return module_named(l, name);
    for (size_t i = 0; program.n && i < l->n; i++)
        if (l->v[i].program == id)
            return &l->v[i];
    return NULL;
}

static void put_list(struct facts_out *f, const struct list *l)
{
    facts_u64(f, l->n);
    for (size_t i = 0; i < l->n; i++) {
        facts_text(f, l->v[i].name);
        facts_u64(f, l->v[i].program);
        facts_u64(f, l->v[i].time_ps);
        facts_u64(f, l->v[i].runs);
        facts_u64(f, l->v[i].bytes);
    }
}

enum xp_status report_modules_put(struct facts_out *f, const struct tool_host *host,
                                  const struct tool_args *args, struct xp_arena *a,
                                  struct report_module *of, struct hlo_module **m,
                                  struct xp_error *err)
{
    struct list l = {0};
    struct xp_error own = {0};
    struct xp_span proto;
    *m = NULL;
    XP_TRY(list_modules(&l, host->part, a, err));
    put_list(f, &l);
    struct report_module *pick = is_named(args) ? asked_for(&l, args) : l.n ? &l.v[0] : NULL;
    if (pick) {
        struct tool_arg name = {XP_SPAN_LIT("module_name"), pick->name};
        struct tool_args by_name = {.args = &name, .n = 1};
        enum xp_status st = modules_find(host, 1, &by_name, a, &proto, &own);
        if (st == XP_OK)
            st = hlo_decode(proto, a, m, &own);
        if (st == XP_BUSY)
            return xp_fail(err, st, 0, "%s", own.text);
        if (st != XP_OK)
            *m = NULL;
        *of = *pick;
    }
    facts_u64(f, *m != NULL);
    facts_text(f, pick && !*m ? xp_span_str(own.text) : (struct xp_span){0});
    if (!*m)
        return XP_OK;
    facts_text(f, of->name);
    facts_u64(f, of->program);
    facts_u64(f, of->time_ps);
    facts_u64(f, of->runs);
    facts_u64(f, of->bytes);
    return XP_OK;
}

/* --- reading --- */

static struct report_module get_module(struct facts *f)
{
    struct report_module m = {.name = facts_get_text(f)};
    m.program = facts_get_u64(f);
    m.time_ps = facts_get_u64(f);
    m.runs = facts_get_u64(f);
    m.bytes = facts_get_u64(f);
    return m;
}

static const struct report_column columns[] = {
    {"module", "Module", "", REPORT_COL_TEXT, false, "name, with the number of its program"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, ""},
    {"time", "Time", "ps", REPORT_COL_NUMBER, true, "sum of its runs over the host's cores"},
    {"runs", "Runs", "count", REPORT_COL_NUMBER, true, ""},
    {"bytes", "Size", "bytes", REPORT_COL_BYTES, false, "of its HloProto in the profile"},
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct report_module *m = &((const struct report_module *)ctx)[i];
    c[0] = report_of_text(m->name);
    c[1] = m->program ? report_of_id(m->program) : report_none();
    c[2] = m->runs ? report_of_u64(m->time_ps) : report_none();
    c[3] = report_of_u64(m->runs);
    c[4] = report_of_u64(m->bytes);
}

/* Modules of equal names on several hosts are one row; the first host's comes first. */
static void get_list(struct facts *f, struct list *l)
{
    for (size_t n = facts_get_count(f); n && !f->bad; n--) {
        struct report_module m = get_module(f), *to = module_named(l, m.name);
        if (to) {
            to->time_ps += m.time_ps;
            to->runs += m.runs;
        } else if (l->n < l->max) {
            l->v[l->n++] = m;
        }
    }
}

static void say_missing(struct report *r, const struct tool_args *args, const struct list *l,
                        struct xp_span why)
{
    if (!l->n)
        report_note(r, REPORT_WARNING, "no_modules",
                    "The profile holds no compiled modules: capture with the device tracer on "
                    "while a program runs that XLA compiled.");
    else if (why.n)
        report_note(r, REPORT_ERROR, "module_damaged", "The module cannot be read: %.*s",
                    (int)(why.n < 200 ? why.n : 200), (const char *)why.p);
    else if (is_named(args))
        report_note(r, REPORT_WARNING, "module_unknown",
                    "No module has that name or program_id; the table \"modules\" lists those "
                    "there are.");
}

enum xp_status report_modules_get(struct facts *hosts, size_t n, const struct tool_args *args,
                                  struct report *r, struct report_modules *out,
                                  struct xp_error *err)
{
    struct list l = {.max = MODULES_MAX};
    struct xp_span why = {0};
    *out = (struct report_modules){0};
    l.v = xp_arena_alloc(r->a, l.max * sizeof *l.v);
    if (!l.v)
        return xp_fail(err, XP_BUSY, 0, "no memory left to list modules");
    for (size_t i = 0; i < n; i++) {
        get_list(&hosts[i], &l);
        bool here = facts_get_u64(&hosts[i]) != 0;
        struct xp_span text = facts_get_text(&hosts[i]);
        why = why.n ? why : text;
        if (here && !out->found) {
            out->of = get_module(&hosts[i]);
            out->found = &hosts[i];
        }
        XP_TRY(facts_ok(&hosts[i], err));
    }
    out->v = l.v;
    out->n = l.n;
    if (!out->found)
        say_missing(r, args, &l, why);
    return XP_OK;
}

void report_modules_table(struct report *r, const struct report_modules *m)
{
    report_table(r, &(struct report_rows){.id = "modules",
                                          .title = "Modules",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = m->n,
                                          .row = row,
                                          .ctx = m->v,
                                          .sort = "time",
                                          .descending = true});
}
