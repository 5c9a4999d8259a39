#include <stdio.h>
#include <stdlib.h>

#include "lib/base/pb_wire.h"
#include "shard/tools/report_figures.h"
#include "shard/tools/report_pod.h"
#include "shard/tools/reports_more.h"

/* Which host or core do the others wait for, and when? */

#define HEAT_POINTS 1900 /* below what a series may have, so that it is not thinned out */

/* A host during some steps. */
struct cell {
    int64_t step; /* the first of them */
    uint32_t host;
    double own_ps, step_ps; /* the longest of its cores */
};

struct view {
    const struct figures *f;
    struct pod_core *cores;
    uint32_t ncores;
    struct cell *cells;
    uint32_t ncells;
};

/* --- cores --- */

static const struct report_column core_columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"core", "Core", "", REPORT_COL_TEXT, false, "its plane"},
    {"steps", "Steps", "count", REPORT_COL_NUMBER, false, "whole ones"},
    {"step_time", "Step time", "ps", REPORT_COL_NUMBER, false, "mean"},
    {"own_time", "Step less waiting", "ps", REPORT_COL_NUMBER, false,
     "mean step time less collectives, barriers and receives: the longest holds up the others"},
    {"longest", "Longest step", "ps", REPORT_COL_NUMBER, false, ""},
    {"waiting", "Waiting", "fraction", REPORT_COL_NUMBER, false, "of the steps' time, for others"},
    {"input", "Input", "fraction", REPORT_COL_NUMBER, false,
     "of the steps' time, with the pauses between them"},
    {"idle", "Idle", "fraction", REPORT_COL_NUMBER, false, "of its window"},
};

static void core_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct pod_core *v = &((const struct view *)ctx)->cores[i];
    double window = (double)v->core->end_ps - (double)v->core->begin_ps;
    c[0] = report_of_text(v->host->name);
    c[1] = report_of_text(v->core->name);
    c[2] = v->steps ? report_of_u64(v->steps) : report_none();
    c[3] = v->steps ? report_of_u64(v->step_ps / v->steps) : report_none();
    c[4] = v->steps ? report_of_u64(v->own_ps / v->steps) : report_none();
    c[5] = v->steps ? report_of_u64(v->longest_ps) : report_none();
    c[6] = report_ratio((double)v->wait_ps, (double)v->step_ps);
    c[7] = report_ratio((double)v->input_ps, (double)v->step_ps);
    c[8] = window > 0 ? report_of_double(1 - (double)v->core->busy_ps / window) : report_none();
}

static uint64_t lasts(const struct figure_step *s)
{
    return s->end_ps > s->begin_ps ? (uint64_t)s->end_ps - (uint64_t)s->begin_ps : 0;
}

static uint64_t own(const struct figure_step *s)
{
    uint64_t ps = lasts(s);
    return ps > s->wait_ps ? ps - s->wait_ps : 0;
}

void pod_core_add(struct pod_core *to, const struct figure_step *s)
{
    uint64_t busy = s->busy_ps + s->barrier_ps;
    to->steps++;
    to->step_ps += lasts(s);
    to->own_ps += own(s);
    to->wait_ps += s->wait_ps;
    to->input_ps += s->input_ps;
    if (to->core->kind == FIGURE_CPU) /* nothing tells what it did */
        to->compute_ps += lasts(s) > s->input_ps ? lasts(s) - s->input_ps : 0;
    else
        to->compute_ps += busy > s->wait_ps ? busy - s->wait_ps : 0;
    to->longest_ps = lasts(s) > to->longest_ps ? lasts(s) : to->longest_ps;
}

static bool list_cores(struct view *v, struct xp_arena *a)
{
    const struct figures *f = v->f;
    size_t n = 0;
    for (uint32_t h = 0; h < f->nhosts; h++)
        n += f->hosts[h].ncores;
    v->cores = xp_arena_zalloc(a, (n + 1) * sizeof *v->cores);
    for (uint32_t h = 0; v->cores && h < f->nhosts; h++)
        for (uint32_t k = 0; k < f->hosts[h].ncores; k++) {
            const struct figure_core *core = &f->hosts[h].cores[k];
            struct pod_core *to = &v->cores[v->ncores++];
            to->host = &f->hosts[h];
            to->core = core;
            for (uint32_t i = 0; i < core->nsteps; i++)
                if (core->steps[i].whole)
                    pod_core_add(to, &core->steps[i]);
        }
    return v->cores != NULL;
}

/* --- hosts by steps --- */

/* Adds the steps of a host's cores to its row of cells, `wide` steps a cell. */
static void heat_host(struct view *v, uint32_t h, uint32_t wide, struct cell *row, uint32_t columns)
{
    const struct figure_host *host = &v->f->hosts[h];
    for (uint32_t k = 0; k < host->ncores; k++) {
        const struct figure_core *core = &host->cores[k];
        uint32_t at = 0;
        for (uint32_t i = 0; i < core->nsteps; i++) {
            const struct figure_step *s = &core->steps[i];
            while (at < v->f->nsteps && v->f->steps[at].number < s->number)
                at++;
            if (at == v->f->nsteps || v->f->steps[at].number != s->number || at / wide >= columns)
                continue;
            struct cell *c = &row[at / wide];
            c->own_ps = (double)own(s) > c->own_ps ? (double)own(s) : c->own_ps;
            c->step_ps = (double)lasts(s) > c->step_ps ? (double)lasts(s) : c->step_ps;
        }
    }
}

static bool heat(struct view *v, uint32_t *wide, struct xp_arena *a)
{
    const struct figures *f = v->f;
    uint32_t rows = f->nhosts < HEAT_POINTS ? f->nhosts : HEAT_POINTS;
    uint32_t most = rows ? HEAT_POINTS / rows : 1;
    *wide = f->nsteps ? (f->nsteps + most - 1) / most : 1;
    uint32_t columns = (f->nsteps + *wide - 1) / *wide;
    v->cells = xp_arena_zalloc(a, ((size_t)rows * columns + 1) * sizeof *v->cells);
    if (!v->cells)
        return false;
    for (uint32_t h = 0; h < rows; h++) {
        struct cell *row = v->cells + (size_t)h * columns;
        for (uint32_t c = 0; c < columns; c++) {
            row[c].step = f->steps[c * *wide].number;
            row[c].host = h;
        }
        heat_host(v, h, *wide, row, columns);
    }
    v->ncells = rows * columns;
    return true;
}

static void heat_point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct view *v = ctx;
    uint32_t rows = v->f->nhosts < HEAT_POINTS ? v->f->nhosts : HEAT_POINTS;
    uint64_t columns = rows ? v->ncells / rows : 1;
    const struct cell *c = &v->cells[i % rows * columns + i / rows]; /* by step, then host */
    *x = report_of_i64(c->step);
    y[0] = report_of_u64(c->host);
    y[1] = c->step_ps > 0 ? report_of_u64((uint64_t)c->own_ps) : report_none();
    y[2] = c->step_ps > 0 ? report_of_u64((uint64_t)c->step_ps) : report_none();
}

static void draw(struct report *r, struct view *v, uint32_t wide)
{
    static const char *const names[] = {"host", "own_time", "step_time"};
    report_series(r, &(struct report_points){.id = "heat",
                                             .title = "Hosts by steps",
                                             .x_label = "step",
                                             .x_unit = "",
                                             .y_label = "Time",
                                             .y_unit = "ps",
                                             .kind = "heat",
                                             .names = names,
                                             .nnames = 3,
                                             .n = v->ncells,
                                             .point = heat_point,
                                             .ctx = v});
    if (wide > 1)
        report_note(r, REPORT_INFO, "heat_reduced",
                    "Each cell of hosts by steps is the longest of %u steps and of the host's "
                    "cores.",
                    wide);
}

/* --- the report --- */

static void straggler(struct report *r, const struct figures *f)
{
    report_straggler(r, f);
    if (f->straggler_text[0])
        report_verdict(r, "The others wait for %s.", f->straggler_text);
    else if (f->straggler.known)
        report_verdict(r, "No host or core holds up the others.");
}

/* --- the partial: the session's, and what goes between devices --- */

enum { POD_SESSION = 1, POD_COMM };

static enum xp_status pack(struct xp_span session, struct xp_span comm, struct xp_arena *a,
                           struct xp_span *out, struct xp_error *err)
{
    struct xp_buf b;
    xp_buf_init(&b, SESSION_MAX + FACTS_MAX);
    xp_pb_put_bytes(&b, POD_SESSION, session);
    xp_pb_put_bytes(&b, POD_COMM, comm);
    uint8_t *p = b.failed ? NULL : xp_arena_alloc(a, b.n + 1);
    if (p)
        memcpy(p, b.p, b.n);
    *out = xp_span_of(p, p ? b.n : 0);
    enum xp_status st = p ? XP_OK
                          : xp_fail(err, b.failed ? XP_TOO_LARGE : XP_BUSY, 0,
                                    "hosts and steps do not fit into memory");
    xp_buf_fini(&b);
    return st;
}

static enum xp_status unpack(struct xp_span bytes, struct xp_span *session, struct xp_span *comm,
                             struct xp_error *err)
{
    struct xp_pb r = xp_pb_open(bytes);
    struct xp_pb_field f;
    *session = *comm = (struct xp_span){0};
    while (xp_pb_next(&r, &f)) {
        if (f.num == POD_SESSION && f.type == XP_PB_LEN)
            *session = f.bytes;
        else if (f.num == POD_COMM && f.type == XP_PB_LEN)
            *comm = f.bytes;
    }
    return r.bad ? xp_fail(err, XP_CORRUPT, 0, "hosts and steps of another server cannot be read")
                 : XP_OK;
}

static enum xp_status map_pod(const struct tool_host *host, const struct tool_args *args,
                              struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    struct xp_span session, comm;
    XP_TRY(session_map_report(host, args, a, &session, err));
    XP_TRY(comm_map(host, args, a, &comm, err));
    return pack(session, comm, a, partial, err);
}

static enum xp_status merge_pod(struct xp_span x, struct xp_span y, struct xp_arena *a,
                                struct xp_span *both, struct xp_error *err)
{
    struct xp_span session[3], comm[3];
    *both = x.n ? x : y;
    if (!x.n || !y.n)
        return XP_OK;
    XP_TRY(unpack(x, &session[0], &comm[0], err));
    XP_TRY(unpack(y, &session[1], &comm[1], err));
    XP_TRY(session_merge(session[0], session[1], a, &session[2], err));
    XP_TRY(facts_merge(comm[0], comm[1], a, &comm[2], err));
    return pack(session[2], comm[2], a, both, err);
}

static enum xp_status open_comm(struct comm *c, struct xp_span facts, const struct figures *f,
                                struct xp_arena *a, struct xp_error *err)
{
    struct facts *hosts;
    size_t n;
    XP_TRY(facts_open(facts, a, &hosts, &n, err));
    for (size_t i = 0; i < n; i++)
        for (uint32_t h = 0; h < f->nhosts; h++)
            if (f->hosts[h].index == hosts[i].index) {
                XP_TRY(comm_add(c, &hosts[i], h, err));
                break;
            }
    return XP_OK;
}

static enum xp_status write_links(struct report *r, struct view *v, struct xp_span facts,
                                  const struct tool_args *args, struct xp_error *err)
{
    struct xp_span channel = {0};
    struct comm c;
    tool_arg(args, "channel", &channel);
    enum xp_status st = comm_init(&c, r->a) ? open_comm(&c, facts, v->f, r->a, err)
                                            : xp_fail(err, XP_BUSY, 0, "no memory left");
    if (st == XP_OK)
        st = report_pod_chips(r, v->f, &c, v->cores, v->ncores, args, err);
    if (st == XP_OK)
        st = report_pod_links(r, v->f, &c, channel, err);
    comm_fini(&c);
    return st;
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct session s;
    struct figures *f = xp_arena_alloc(r->a, sizeof *f);
    struct view v = {.f = f};
    struct xp_span session, facts;
    uint32_t wide = 1;
    if (!f)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the report");
    XP_TRY(unpack(merged, &session, &facts, err));
    XP_TRY(session_open_report(session, args, r->a, &s, f, err));
    if (!list_cores(&v, r->a) || !heat(&v, &wide, r->a))
        return xp_fail(err, XP_BUSY, 0, "no memory left for hosts and steps");
    straggler(r, f);
    report_steps(r, f);
    report_figure(r, "idle_fraction", &f->idle, false);
    report_figure(r, "collective_fraction", &f->collective, false);
    report_environment(r, f);
    report_table_hosts(r, f, r->a);
    report_pod_waits(r, f);
    report_table(r, &(struct report_rows){.id = "cores",
                                          .title = "Cores",
                                          .columns = core_columns,
                                          .ncolumns = sizeof core_columns / sizeof *core_columns,
                                          .n = v.ncores,
                                          .row = core_row,
                                          .ctx = &v,
                                          .sort = "own_time",
                                          .descending = true});
    report_table_steps(r, f);
    report_pod_collectives(r, f);
    draw(r, &v, wide);
    XP_TRY(write_links(r, &v, facts, args, err));
    report_pod_breakdown(r, v.cores, v.ncores);
    report_pod_map(r, f, v.cores, v.ncores);
    report_remarks(r, f);
    return XP_OK;
}

const struct tool_report report_pod_viewer = {
    .question = "Which host or core do the others wait for?",
    .map = map_pod,
    .merge = merge_pod,
    .write = write_report,
};
