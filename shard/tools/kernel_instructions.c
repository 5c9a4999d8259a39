/* Lines of instructions: what each unit issued, when, of which bundle and line of source. */
#include <stdlib.h>

#include "shard/tools/kernel_inside_int.h"

/* What an instruction's stats say; of those that it has not, what all of its name have. */
struct facts_of {
    uint32_t bundle, source, scopes, primitive;
    bool has_bundle, details, spill;
};

struct line_reader {
    struct kernel_reader *r;
    struct kernel_unit *unit; /* NULL: one too many */
    struct xp_span unit_name;
    uint32_t unit_id;
    struct facts_of *metas; /* by event name */
    bool *known;
};

static void read_stats(struct kernel_reader *r, struct facts_of *f)
{
    struct value v;
    while (values_next(&r->eye, &v)) {
        uint32_t text = v.type == VALUE_TEXT && v.which != KERNEL_STAT_DETAILS
                            ? kernel_text_id(&r->k->texts, v.text)
                            : 0;
        switch (v.which) {
        case KERNEL_STAT_BUNDLE:
            f->has_bundle = v.type == VALUE_U64 || v.type == VALUE_I64;
            f->bundle = v.num < KERNEL_NO_BUNDLE ? (uint32_t)v.num : KERNEL_NO_BUNDLE;
            break;
        case KERNEL_STAT_DETAILS:
            f->details = true;
            f->spill = xp_span_has(v.text, XP_SPAN_LIT("spill"));
            break;
        case KERNEL_STAT_SOURCE:
            f->source = text;
            break;
        case KERNEL_STAT_SCOPES:
            f->scopes = text;
            break;
        case KERNEL_STAT_PRIMITIVE:
            f->primitive = text;
            break;
        }
    }
}

static enum xp_status stats_of(struct line_reader *lr, const struct kernel_event *e,
                               struct facts_of *f, struct xp_error *err)
{
    struct kernel_reader *r = lr->r;
    *f = (struct facts_of){0};
    if (e->name < r->plane->nevmeta) {
        if (!lr->known[e->name]) {
            lr->known[e->name] = true;
            XP_TRY(values_of_evmeta(&r->eye, e->name, err));
            read_stats(r, &lr->metas[e->name]);
        }
        *f = lr->metas[e->name];
    }
    XP_TRY(values_of_event(&r->eye, e->at, err));
    read_stats(r, f);
    return XP_OK;
}

static bool keep_issue(struct kernel_reader *r, const struct kernel_event *e,
                       const struct facts_of *f, uint32_t opcode)
{
    if (r->k->bundles_cut || !e->begins)
        return true;
    if (r->nissues == KERNEL_ISSUES_MAX) {
        r->k->bundles_cut = true;
        return true;
    }
    if (r->nissues == r->capissues) {
        size_t cap = r->capissues ? 2 * r->capissues : 1024;
        struct kernel_issue *v = xp_arena_alloc(r->k->a, cap * sizeof *v);
        if (!v)
            return false;
        if (r->nissues)
            memcpy(v, r->issues, r->nissues * sizeof *v);
        r->issues = v;
        r->capissues = cap;
    }
    r->issues[r->nissues++] = (struct kernel_issue){
        e->begin_ps, e->end_ps, f->has_bundle ? f->bundle : KERNEL_NO_BUNDLE, opcode, f->source};
    return true;
}

/* Events come by begin: `until` is how far the unit's busy time is counted. */
static void count_unit(struct kernel_inside *k, struct kernel_unit *u, const struct kernel_event *e,
                       int64_t *until)
{
    int64_t from = e->begin_ps > *until ? e->begin_ps : *until;
    if (!u)
        return;
    if (e->begins)
        u->instructions++;
    if (e->end_ps > from && !u->joined) {
        u->busy_ps += e->end_ps - from;
        kernel_bins_add(&k->bins, from, e->end_ps, u->busy, 1);
        *until = e->end_ps;
    }
    if (e->begins && k->bins.n && e->begin_ps >= k->bins.from_ps && e->begin_ps < k->bins.to_ps)
        u->issued[kernel_bin_of(&k->bins, e->begin_ps)]++;
}

static enum xp_status read_event(struct line_reader *lr, const struct kernel_event *e,
                                 int64_t *until, struct xp_error *err)
{
    struct kernel_inside *k = lr->r->k;
    struct xp_span opcode = kernel_event_name(lr->r, e->name);
    uint32_t opcode_id = kernel_text_id(&k->texts, opcode);
    struct facts_of f;
    XP_TRY(stats_of(lr, e, &f, err));
    k->has_details |= f.details;
    k->has_numbers |= f.has_bundle;
    k->instructions += e->begins;
    k->sourced += e->begins && f.source;
    count_unit(k, lr->unit, e, until);
    enum kernel_kind kind = kernel_instruction_kind(
        lr->unit_name, opcode, f.spill ? XP_SPAN_LIT("spill") : (struct xp_span){0});
    kernel_spans_add(&k->spans, kind, e->begin_ps, e->end_ps);
    struct kernel_tally_row *op =
        kernel_tally_row(&k->opcodes, (uint32_t[KERNEL_TALLY_KEYS]){lr->unit_id, opcode_id});
    struct kernel_tally_row *source = kernel_tally_row(
        &k->sources, (uint32_t[KERNEL_TALLY_KEYS]){f.source, f.primitive, f.scopes});
    if (!op || !source || !keep_issue(lr->r, e, &f, opcode_id))
        return kernel_no_memory(err);
    kernel_tally_add(op, e->begin_ps, e->end_ps - e->begin_ps, e->begins);
    kernel_tally_add(source, e->begin_ps, e->end_ps - e->begin_ps, e->begins);
    return XP_OK;
}

static struct kernel_unit *unit_for(struct kernel_inside *k, struct xp_span name)
{
    for (uint32_t i = 0; i < k->nunits; i++)
        if (xp_span_eq(k->units[i].name, name))
            return &k->units[i];
    if (k->nunits == KERNEL_UNITS) {
        k->units_cut++;
        return NULL;
    }
    struct kernel_unit *u = &k->units[k->nunits];
    u->name = name;
    u->busy = xp_arena_zalloc(k->a, (k->bins.n + 1) * sizeof *u->busy);
    u->issued = xp_arena_zalloc(k->a, (k->bins.n + 1) * sizeof *u->issued);
    if (!u->busy || !u->issued)
        return NULL;
    k->nunits++;
    return u;
}

/* --- a unit that has several lines, which may be busy at once --- */

struct busy {
    int64_t begin_ps, end_ps;
};

static int by_busy_begin(const void *x, const void *y)
{
    int64_t a = ((const struct busy *)x)->begin_ps, b = ((const struct busy *)y)->begin_ps;
    return (a > b) - (a < b);
}

static bool is_line_of(const struct kernel_reader *r, const struct part_line *l,
                       struct xp_span name)
{
    return !l->derived && l->nevents && xp_span_eq(part_line_name(r->part, l), name);
}

/* The line's events in the run into v, or only how many. */
static enum xp_status take_busy(struct kernel_reader *r, const struct part_line *l, struct busy *v,
                                size_t *n, struct xp_error *err)
{
    struct line_cursor c;
    struct kernel_event e;
    if (line_seek(&c, l, r->k->begin_ps - l->base_ps, r->k->a) != XP_OK)
        return kernel_no_memory(err);
    for (; kernel_next(&c, r->k, &e); ++*n)
        if (v)
            v[*n] = (struct busy){e.begin_ps, e.end_ps};
    return XP_OK;
}

static enum xp_status take_lines(struct kernel_reader *r, struct xp_span name, struct busy *v,
                                 size_t *n, struct xp_error *err)
{
    *n = 0;
    for (uint32_t i = 0; i < r->plane->nlines; i++) {
        const struct part_line *l = &r->part->lines[r->plane->first_line + i];
        if (is_line_of(r, l, name))
            XP_TRY(take_busy(r, l, v, n, err));
    }
    return XP_OK;
}

static enum xp_status join_lines(struct kernel_reader *r, struct kernel_unit *u,
                                 struct xp_span name, struct xp_error *err)
{
    struct kernel_inside *k = r->k;
    int64_t until = k->begin_ps;
    size_t n, lines = 0;
    for (uint32_t i = 0; u && !u->joined && i < r->plane->nlines; i++)
        lines += is_line_of(r, &r->part->lines[r->plane->first_line + i], name);
    if (lines < 2)
        return XP_OK;
    XP_TRY(take_lines(r, name, NULL, &n, err));
    struct busy *v = xp_arena_alloc(k->a, (n + 1) * sizeof *v);
    if (!v)
        return kernel_no_memory(err);
    XP_TRY(take_lines(r, name, v, &n, err));
    qsort(v, n, sizeof *v, by_busy_begin);
    for (size_t i = 0; i < n; i++) {
        int64_t from = v[i].begin_ps > until ? v[i].begin_ps : until;
        if (v[i].end_ps <= from)
            continue;
        u->busy_ps += v[i].end_ps - from;
        kernel_bins_add(&k->bins, from, v[i].end_ps, u->busy, 1);
        until = v[i].end_ps;
    }
    u->joined = true;
    return XP_OK;
}

enum xp_status kernel_read_instructions(struct kernel_reader *r, const struct part_line *l,
                                        struct kernel_line *told, struct xp_error *err)
{
    struct line_cursor c;
    struct kernel_event e;
    size_t names = r->plane->nevmeta;
    int64_t until = r->k->begin_ps;
    struct line_reader lr = {.r = r, .unit_name = told->name};
    lr.unit_name.n -= strlen(" Instructions");
    lr.unit_id = kernel_text_id(&r->k->texts, lr.unit_name);
    lr.unit = unit_for(r->k, lr.unit_name);
    XP_TRY(join_lines(r, lr.unit, told->name, err));
    lr.metas = xp_arena_zalloc(r->k->a, (names + 1) * sizeof *lr.metas);
    lr.known = xp_arena_zalloc(r->k->a, (names + 1) * sizeof *lr.known);
    if (!lr.metas || !lr.known || line_seek(&c, l, r->k->begin_ps - l->base_ps, r->k->a) != XP_OK)
        return kernel_no_memory(err);
    while (kernel_next(&c, r->k, &e)) {
        kernel_line_sees(told, &e);
        XP_TRY(read_event(&lr, &e, &until, err));
    }
    return XP_OK;
}

/* --- bundles: instructions that begin at one time --- */

static int by_begin(const void *x, const void *y)
{
    const struct kernel_issue *a = x, *b = y;
    if (a->begin_ps != b->begin_ps)
        return a->begin_ps < b->begin_ps ? -1 : 1;
    return (a->bundle > b->bundle) - (a->bundle < b->bundle);
}

#define OPCODES_MAX 160 /* bytes of the list of a bundle's opcodes */

static struct xp_span opcodes_of(const struct kernel_reader *r, size_t first)
{
    struct xp_arena *a = r->k->a;
    uint8_t *p = xp_arena_alloc(a, OPCODES_MAX + 8);
    size_t n = 0;
    for (size_t i = first;
         p && i < r->nissues && r->issues[i].begin_ps == r->issues[first].begin_ps; i++) {
        struct xp_span name = xp_strpool_get(&r->k->texts, r->issues[i].opcode);
        if (n + 2 + name.n > OPCODES_MAX) {
            memcpy(p + n, ", \xe2\x80\xa6", 5);
            n += 5;
            break;
        }
        if (n)
            p[n++] = ',', p[n++] = ' ';
        if (name.n)
            memcpy(p + n, name.p, name.n);
        n += name.n;
    }
    return xp_span_of(p, p ? n : 0);
}

struct groups {
    struct kernel_reader *r;
    struct kernel_tally tally; /* bundle number + 1 -> runs, time */
    uint64_t *instructions;    /* by row */
    size_t *first;             /* by row: its first issue */
    int64_t end_ps;            /* the last end of any */
};

static enum xp_status count_group(struct groups *g, size_t from, size_t to, int64_t next,
                                  struct xp_error *err)
{
    struct kernel_inside *k = g->r->k;
    const struct kernel_issue *v = g->r->issues;
    int64_t begin = v[from].begin_ps;
    k->bundles++;
    if (k->bins.n && begin >= k->bins.from_ps && begin < k->bins.to_ps)
        k->bundle_bins[kernel_bin_of(&k->bins, begin)]++;
    if (v[from].bundle == KERNEL_NO_BUNDLE)
        return XP_OK;
    struct kernel_tally_row *row =
        kernel_tally_row(&g->tally, (uint32_t[KERNEL_TALLY_KEYS]){v[from].bundle, 1});
    if (!row)
        return kernel_no_memory(err);
    size_t at = (size_t)(row - g->tally.rows);
    if (row->count == 0)
        g->first[at] = from;
    kernel_tally_add(row, begin, next - begin, true);
    g->instructions[at] += to - from;
    return XP_OK;
}

#define BUNDLES_SHOWN 500

static uint32_t source_in(const struct kernel_reader *r, size_t first)
{
    for (size_t i = first; i < r->nissues && r->issues[i].begin_ps == r->issues[first].begin_ps;
         i++)
        if (r->issues[i].source)
            return r->issues[i].source;
    return 0;
}

static enum xp_status list_bundles(struct groups *g, struct xp_error *err)
{
    struct kernel_inside *k = g->r->k;
    uint32_t *order = kernel_tally_sorted(&g->tally, BUNDLES_SHOWN, &k->nbundle);
    k->bundle_numbers = g->tally.n - 1;
    k->bundle = xp_arena_zalloc(k->a, (k->nbundle + 1) * sizeof *k->bundle);
    if (!order || !k->bundle)
        return kernel_no_memory(err);
    for (uint32_t i = 0; i < k->nbundle; i++) {
        const struct kernel_tally_row *row = &g->tally.rows[order[i]];
        size_t first = g->first[order[i]];
        k->bundle[i] = (struct kernel_bundle){.number = row->key[0],
                                              .runs = row->count,
                                              .instructions = g->instructions[order[i]],
                                              .time_ps = row->time_ps,
                                              .first_ps = row->first_ps,
                                              .opcodes = opcodes_of(g->r, first),
                                              .source = source_in(g->r, first)};
    }
    return XP_OK;
}

enum xp_status kernel_make_bundles(struct kernel_reader *r, struct xp_error *err)
{
    struct kernel_inside *k = r->k;
    struct groups g = {.r = r, .end_ps = k->recorded_ps};
    if (k->bundles_cut || !r->nissues)
        return XP_OK;
    qsort(r->issues, r->nissues, sizeof *r->issues, by_begin);
    g.instructions = xp_arena_zalloc(k->a, (KERNEL_TALLY_MAX + 2) * sizeof *g.instructions);
    g.first = xp_arena_zalloc(k->a, (KERNEL_TALLY_MAX + 2) * sizeof *g.first);
    if (!g.instructions || !g.first || !kernel_tally_init(&g.tally, k->a))
        return kernel_no_memory(err);
    for (size_t i = 0, to; i < r->nissues; i = to) {
        for (to = i + 1; to < r->nissues && r->issues[to].begin_ps == r->issues[i].begin_ps; to++)
            ;
        int64_t next = to < r->nissues ? r->issues[to].begin_ps : g.end_ps;
        XP_TRY(count_group(&g, i, to, next > r->issues[i].begin_ps ? next : r->issues[i].begin_ps,
                           err));
    }
    return list_bundles(&g, err);
}
