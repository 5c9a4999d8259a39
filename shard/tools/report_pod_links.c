/* Of the report of hosts and steps: what goes between devices (comm.h). */
#include <stdio.h>
#include <stdlib.h>

#include "shard/tools/report_pod.h"

#define NO_CHANNELS                                                                                \
    "no op of these profiles is a permute, send or receive of TPU cores that tells its text; on "  \
    "GPUs that is done by kernels, which name no channel"

#define NO_GROUPS "no collective of these profiles is an op of a TPU core that tells its text"

struct view {
    const struct figures *f;
    const struct comm *c;
    struct xp_arena *a;
    const struct comm_edge **edges; /* of the chosen channel */
    uint32_t nedges;
    struct idmap by_id; /* id -> core of the run */
};

static struct report_cell text(const struct view *v, uint32_t id)
{
    return id ? report_of_text(xp_strpool_get(&v->c->strings, id)) : report_none();
}

static const struct comm_core *core_at(const struct view *v, uint32_t i)
{
    return i < v->c->cores.n ? &VEC(v->c->cores, struct comm_core)[i] : NULL;
}

static struct report_cell mean(uint64_t total, uint64_t n)
{
    return n ? report_of_u64(total / n) : report_none();
}

static struct report_cell *longest(const struct view *v, const struct comm_sum *s,
                                   struct report_cell *c)
{
    const struct comm_core *core = s->count ? core_at(v, s->longest_core) : NULL;
    *c++ = s->count ? report_of_u64(s->longest_ps) : report_none();
    *c++ = core && core->host < v->f->nhosts ? report_of_text(v->f->hosts[core->host].name)
                                             : report_none();
    *c++ = core ? text(v, core->plane) : report_none();
    *c++ = core ? report_of_i64(s->longest_begin_ps) : report_none();
    return c;
}

/* --- channels --- */

static const struct report_column channel_columns[] = {
    {"op", "Op", "", REPORT_COL_OP, false, "name of the HLO op; of a pair the start"},
    {"channel", "Channel", "", REPORT_COL_NUMBER, false, "its channel_id; ops may share one"},
    {"kind", "Kind", "", REPORT_COL_TEXT, false, "permute, send or recv"},
    {"total", "Total", "ps", REPORT_COL_NUMBER, true, "latencies of all, over all cores"},
    {"count", "Times", "count", REPORT_COL_NUMBER, true, "over all cores"},
    {"mean_time", "Latency", "ps", REPORT_COL_NUMBER, false,
     "from the begin of the start to the end of its done, mean; of an op in one piece what it "
     "takes"},
    {"wait", "Waiting", "ps", REPORT_COL_NUMBER, false,
     "what its done takes, mean: the core does nothing else; all of an op in one piece"},
    {"bytes", "Bytes", "bytes", REPORT_COL_BYTES, false, "that one core sends each time"},
    {"rate", "Rate", "bytes/s", REPORT_COL_NUMBER, false,
     "bytes / latency: what was reached at least, for the latency may hold time in which nothing "
     "was sent"},
    {"duration", "Longest", "ps", REPORT_COL_NUMBER, false, "latency"},
    {"first_host", "Host", "", REPORT_COL_TEXT, false, "of the longest"},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, "of the longest"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, "of the longest"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, ""},
    {"key", "Key", "", REPORT_COL_TEXT, false, "channel=KEY shows who sends to whom"},
};

static void channel_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct comm_channel *x = &VEC(v->c->channels, struct comm_channel)[i];
    *c++ = text(v, x->op);
    *c++ = x->channel >= 0 ? report_of_i64(x->channel) : report_none();
    *c++ = report_of_text(xp_span_str(comm_kind_name(x->kind)));
    *c++ = report_of_u64(x->sum.total_ps);
    *c++ = report_of_u64(x->sum.count);
    *c++ = mean(x->sum.total_ps, x->sum.count);
    *c++ = mean(x->sum.wait_ps, x->sum.waits);
    *c++ = x->bytes ? report_of_u64(x->bytes) : report_none();
    *c++ = x->bytes ? report_ratio((double)x->bytes * (double)x->sum.count * 1e12,
                                   (double)x->sum.total_ps)
                    : report_none();
    c = longest(v, &x->sum, c);
    *c++ = x->program ? report_of_id(x->program) : report_none();
    *c = text(v, x->key);
}

static void channels(struct report *r, struct view *v)
{
    report_table(r,
                 &(struct report_rows){.id = "channels",
                                       .title = "Sends and receives by channel",
                                       .note = v->c->channels.n ? NULL : NO_CHANNELS,
                                       .columns = channel_columns,
                                       .ncolumns = sizeof channel_columns / sizeof *channel_columns,
                                       .n = v->c->channels.n,
                                       .row = channel_row,
                                       .ctx = v,
                                       .sort = "total",
                                       .descending = true});
}

/* --- who sends to whom --- */

static const struct report_column edge_columns[] = {
    {"from", "From", "count", REPORT_COL_NUMBER, false,
     "partition that sends; partition i is taken for core i"},
    {"to", "To", "count", REPORT_COL_NUMBER, false, "partition that gets it, where it is measured"},
    {"host", "Host", "", REPORT_COL_TEXT, false, "that gets it"},
    {"core", "Core", "", REPORT_COL_TEXT, false, "that gets it"},
    {"from_host", "From host", "", REPORT_COL_TEXT, false,
     "n/a: its profile is not here, or none tells which core it is"},
    {"from_core", "From core", "", REPORT_COL_TEXT, false, ""},
    {"count", "Times", "count", REPORT_COL_NUMBER, true, ""},
    {"mean_time", "Latency", "ps", REPORT_COL_NUMBER, false, "mean, on the core that gets it"},
    {"wait", "Waiting", "ps", REPORT_COL_NUMBER, false, "mean, on the core that gets it"},
    {"bytes", "Bytes", "bytes", REPORT_COL_BYTES, false, "each time"},
    {"rate", "Rate", "bytes/s", REPORT_COL_NUMBER, false, "bytes / latency"},
    {"duration", "Longest", "ps", REPORT_COL_NUMBER, false, "latency"},
    {"first_host", "Seen on", "", REPORT_COL_TEXT, false, "host of the longest"},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, "of the longest"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, "of the longest"},
    {"op", "Op", "", REPORT_COL_OP, false, "name of the HLO op"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, ""},
};

static void name_core(const struct view *v, int64_t id, struct report_cell *host,
                      struct report_cell *plane)
{
    uint32_t at;
    const struct comm_core *core =
        id >= 0 && idmap_get(&v->by_id, (uint64_t)id, &at) ? core_at(v, at) : NULL;
    *host = core && core->host < v->f->nhosts ? report_of_text(v->f->hosts[core->host].name)
                                              : report_none();
    *plane = core ? text(v, core->plane) : report_none();
}

static void edge_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct comm_edge *e = v->edges[i];
    const struct comm_channel *x = &VEC(v->c->channels, struct comm_channel)[e->channel];
    const struct comm_core *core = core_at(v, e->core);
    bool told = core && comm_has_id(v->c, core);
    int64_t from = told ? e->from : -1;
    *c++ = from >= 0 ? report_of_i64(from) : report_none();
    *c++ = told ? report_of_i64(core->id) : report_none();
    *c++ = core && core->host < v->f->nhosts ? report_of_text(v->f->hosts[core->host].name)
                                             : report_none();
    *c++ = core ? text(v, core->plane) : report_none();
    name_core(v, from, c, c + 1);
    c += 2;
    *c++ = report_of_u64(e->sum.count);
    *c++ = mean(e->sum.total_ps, e->sum.count);
    *c++ = mean(e->sum.wait_ps, e->sum.waits);
    *c++ = x->bytes ? report_of_u64(x->bytes) : report_none();
    *c++ = x->bytes ? report_ratio((double)x->bytes * (double)e->sum.count * 1e12,
                                   (double)e->sum.total_ps)
                    : report_none();
    c = longest(v, &e->sum, c);
    *c++ = text(v, x->op);
    *c = x->program ? report_of_id(x->program) : report_none();
}

static bool is_before(const struct comm_channel *x, const struct comm_channel *y)
{
    bool px = x->kind == COMM_PERMUTE, py = y->kind == COMM_PERMUTE;
    return px != py ? px : x->sum.total_ps > y->sum.total_ps;
}

/* The channel that is asked for, else the permute, or if there is none the channel, that takes
 * longest; channels.n: there is none. */
static size_t chosen(const struct comm *c, struct xp_span wanted)
{
    const struct comm_channel *v = c->channels.p;
    size_t at = c->channels.n;
    for (size_t i = 0; i < c->channels.n; i++) {
        if (wanted.n && xp_span_eq(xp_strpool_get(&c->strings, v[i].key), wanted))
            return i;
        if (!wanted.n && (at == c->channels.n || is_before(&v[i], &v[at])))
            at = i;
    }
    return at;
}

/* Cores by what the program calls them; an id that several have is nobody's. */
static bool find_ids(struct view *v)
{
    idmap_init(&v->by_id, v->a);
    for (size_t i = 0; i < v->c->cores.n; i++) {
        const struct comm_core *core = &VEC(v->c->cores, struct comm_core)[i];
        uint32_t at = (uint32_t)i, before;
        if (!comm_has_id(v->c, core))
            continue;
        if (idmap_get(&v->by_id, (uint64_t)core->id, &before))
            at = UINT32_MAX;
        if (!idmap_put(&v->by_id, (uint64_t)core->id, at))
            return false;
    }
    return true;
}

/* A row is a core that gets something: where the pairs are told, one that only sends has none. */
static bool find_edges(struct view *v, size_t channel)
{
    const struct comm_edge *e = v->c->edges.p;
    bool pairs = false;
    v->edges = xp_arena_alloc(v->a, (v->c->edges.n + 1) * sizeof *v->edges);
    for (size_t i = 0; i < v->c->edges.n; i++)
        pairs |= e[i].channel == channel && (e[i].from >= 0 || e[i].to >= 0);
    for (size_t i = 0; v->edges && i < v->c->edges.n; i++) {
        const struct comm_core *core = core_at(v, e[i].core);
        bool gets = e[i].from >= 0 || !pairs || !core || !comm_has_id(v->c, core);
        if (e[i].channel == channel && e[i].sum.count && gets)
            v->edges[v->nedges++] = &e[i];
    }
    return v->edges && find_ids(v);
}

static enum xp_status edges(struct report *r, struct view *v, struct xp_span wanted,
                            struct xp_error *err)
{
    size_t at = chosen(v->c, wanted);
    if (wanted.n && at == v->c->channels.n) {
        report_note(r, REPORT_WARNING, "no_such_channel",
                    "There is no channel of the key that was asked for in what the page is about: "
                    "%s.",
                    at ? "another is shown" : "there is none at all");
        wanted = (struct xp_span){0};
        at = chosen(v->c, wanted);
    }
    if (!find_edges(v, at))
        return xp_fail(err, XP_BUSY, 0, "no memory left for channels");
    if (at == v->c->channels.n)
        return XP_OK;
    const struct comm_channel *x = &VEC(v->c->channels, struct comm_channel)[at];
    report_string(r, "channel", xp_strpool_get(&v->c->strings, x->key),
                  wanted.n ? NULL : "of permutes, or else of all, that which takes longest");
    report_table(r, &(struct report_rows){.id = "edges",
                                          .title = "Who sends to whom in the channel",
                                          .columns = edge_columns,
                                          .ncolumns = sizeof edge_columns / sizeof *edge_columns,
                                          .n = v->nedges,
                                          .row = edge_row,
                                          .ctx = v,
                                          .sort = "mean_time",
                                          .descending = true,
                                          .aside = true});
    return XP_OK;
}

/* --- collectives by who takes part --- */

static const struct report_column group_columns[] = {
    {"op", "Op", "", REPORT_COL_OP, false, "name of the HLO op; of a pair the start"},
    {"kind", "Kind", "", REPORT_COL_TEXT, false, "all-reduce, all-gather, ..."},
    {"group", "Replica group", "", REPORT_COL_TEXT, false,
     "who takes part with a core, by the program's numbers, those of a later slice counted on; "
     "n/a: "
     "its text does not tell"},
    {"total", "Total", "ps", REPORT_COL_NUMBER, true, "over all cores of the group"},
    {"count", "Times", "count", REPORT_COL_NUMBER, true, "over all cores of the group"},
    {"mean_time", "Mean", "ps", REPORT_COL_NUMBER, false,
     "of one, on one core; of a pair from the begin of its start to the end of its done"},
    {"wait", "Waiting", "ps", REPORT_COL_NUMBER, false, "what the done takes, mean"},
    {"bytes", "Bytes", "bytes", REPORT_COL_BYTES, false, "of the result, on one core"},
    {"duration", "Longest", "ps", REPORT_COL_NUMBER, false, "on one core"},
    {"first_host", "Host", "", REPORT_COL_TEXT, false, "of the longest"},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, "of the longest"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, "of the longest"},
    {"program_id", "Program", "", REPORT_COL_TEXT, false, ""},
};

static void group_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct comm_group *x = &VEC(v->c->groups, struct comm_group)[i];
    *c++ = text(v, x->op);
    *c++ = report_of_text(xp_span_str(comm_kind_name(x->kind)));
    *c++ = text(v, x->label);
    *c++ = report_of_u64(x->sum.total_ps);
    *c++ = report_of_u64(x->sum.count);
    *c++ = mean(x->sum.total_ps, x->sum.count);
    *c++ = mean(x->sum.wait_ps, x->sum.waits);
    *c++ = x->bytes ? report_of_u64(x->bytes) : report_none();
    c = longest(v, &x->sum, c);
    *c = x->program ? report_of_id(x->program) : report_none();
}

static void groups(struct report *r, struct view *v)
{
    report_table(r, &(struct report_rows){.id = "replica_groups",
                                          .title = "Collectives by replica group",
                                          .note = v->c->groups.n ? NULL : NO_GROUPS,
                                          .columns = group_columns,
                                          .ncolumns = sizeof group_columns / sizeof *group_columns,
                                          .n = v->c->groups.n,
                                          .row = group_row,
                                          .ctx = v,
                                          .sort = "total",
                                          .descending = true});
}

/* --- ... and step --- */

#define LINES 12 /* of groups that are drawn; all are in the table */

struct line {
    uint32_t label;
    uint8_t kind;
    uint64_t total_ps;
};

struct per_step {
    struct view *v;
    struct line lines[LINES];
    const char *names[LINES];
    uint32_t nlines;
    int64_t *steps; /* ascending */
    uint32_t nsteps;
    struct comm_cell *cells; /* step by line: sums */
};

static int by_time(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    bool rx = x->kind == COMM_ALL_REDUCE, ry = y->kind == COMM_ALL_REDUCE;
    if (rx != ry)
        return rx ? -1 : 1;
    if (x->total_ps != y->total_ps)
        return x->total_ps > y->total_ps ? -1 : 1;
    return (x->label > y->label) - (x->label < y->label);
}

/* All-reduces first: of each group what it took in all. */
static bool choose_lines(struct per_step *p, uint32_t *all)
{
    const struct comm_group *g = p->v->c->groups.p;
    struct idmap by;
    struct line *v = xp_arena_zalloc(p->v->a, (p->v->c->groups.n + 1) * sizeof *v);
    *all = 0;
    idmap_init(&by, p->v->a);
    for (size_t i = 0; v && i < p->v->c->groups.n; i++) {
        uint64_t key = (uint64_t)g[i].label << 8 | g[i].kind;
        uint32_t at;
        if (!idmap_get(&by, key, &at)) {
            at = (*all)++;
            v[at] = (struct line){g[i].label, g[i].kind, 0};
            if (!idmap_put(&by, key, at))
                return false;
        }
        v[at].total_ps += g[i].sum.total_ps;
    }
    if (!v)
        return false;
    qsort(v, *all, sizeof *v, by_time);
    p->nlines = *all < LINES ? *all : LINES;
    memcpy(p->lines, v, p->nlines * sizeof *v);
    return true;
}

/* "all-reduce 0,1,2,3" */
static bool name_lines(struct per_step *p)
{
    for (uint32_t i = 0; i < p->nlines; i++) {
        struct xp_span label = xp_strpool_get(&p->v->c->strings, p->lines[i].label);
        const char *kind = comm_kind_name(p->lines[i].kind);
        size_t cap = strlen(kind) + label.n + 2;
        char *t = xp_arena_alloc(p->v->a, cap);
        if (!t)
            return false;
        snprintf(t, cap, "%s%s%.*s", kind, label.n ? " " : "", (int)label.n,
                 label.n ? (const char *)label.p : "");
        p->names[i] = t;
    }
    return true;
}

static int step_order(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static uint32_t step_at(const struct per_step *p, int64_t step)
{
    uint32_t low = 0, high = p->nsteps;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (p->steps[mid] < step)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Cells of steps by the groups that are drawn. */
static bool fill(struct per_step *p)
{
    const struct comm_cell *c = p->v->c->cells.p;
    size_t n = p->v->c->cells.n;
    p->steps = xp_arena_alloc(p->v->a, (n + 1) * sizeof *p->steps);
    if (!p->steps)
        return false;
    for (size_t i = 0; i < n; i++)
        p->steps[i] = c[i].step;
    if (n)
        qsort(p->steps, n, sizeof *p->steps, step_order);
    for (size_t i = 0; i < n; i++)
        if (!p->nsteps || p->steps[i] != p->steps[p->nsteps - 1])
            p->steps[p->nsteps++] = p->steps[i];
    p->cells = xp_arena_zalloc(p->v->a, ((size_t)p->nsteps * LINES + 1) * sizeof *p->cells);
    for (size_t i = 0; p->cells && i < n; i++)
        for (uint32_t k = 0; k < p->nlines; k++)
            if (p->lines[k].label == c[i].label && p->lines[k].kind == c[i].kind) {
                struct comm_cell *to = &p->cells[(size_t)step_at(p, c[i].step) * LINES + k];
                to->cores += c[i].cores;
                to->total_ps += c[i].total_ps;
            }
    return p->cells != NULL;
}

static void step_point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct per_step *p = ctx;
    *x = report_of_i64(p->steps[i]);
    for (uint32_t k = 0; k < p->nlines; k++)
        y[k] = mean(p->cells[i * LINES + k].total_ps, p->cells[i * LINES + k].cores);
}

static bool by_step(struct report *r, struct view *v)
{
    struct per_step p = {.v = v};
    uint32_t all;
    if (!choose_lines(&p, &all) || !name_lines(&p) || !fill(&p))
        return false;
    if (!p.nsteps || !p.nlines)
        return true;
    report_series(r, &(struct report_points){.id = "group_steps",
                                             .title = "Collectives by step and replica group",
                                             .x_label = "step",
                                             .x_unit = "",
                                             .y_label = "Time in a step, mean of a core",
                                             .y_unit = "ps",
                                             .kind = "heat",
                                             .names = p.names,
                                             .nnames = p.nlines,
                                             .n = p.nsteps,
                                             .point = step_point,
                                             .ctx = &p});
    if (all > p.nlines)
        report_note(r, REPORT_INFO, "groups_cut",
                    "Drawn are %u of %u replica groups: all-reduces first, then those that take "
                    "longest. The table has all of them.",
                    p.nlines, all);
    return true;
}

enum xp_status report_pod_links(struct report *r, const struct figures *f, const struct comm *c,
                                struct xp_span channel, struct xp_error *err)
{
    struct view v = {.f = f, .c = c, .a = r->a};
    channels(r, &v);
    XP_TRY(edges(r, &v, channel, err));
    groups(r, &v);
    if (!by_step(r, &v))
        return xp_fail(err, XP_BUSY, 0, "no memory left for collectives");
    if (c->cells_left)
        report_note(r, REPORT_WARNING, "cells_left",
                    "%llu runs of collectives beyond the first %zu groups and steps of a host are "
                    "not among those by step.",
                    (unsigned long long)c->cells_left, COMM_CELLS);
    if (c->channels_left)
        report_note(r, REPORT_WARNING, "channels_left",
                    "%llu sends and receives are of ops beyond the first %zu of a host.",
                    (unsigned long long)c->channels_left, COMM_CHANNELS);
    return XP_OK;
}
