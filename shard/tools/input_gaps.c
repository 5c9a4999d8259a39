#include "shard/tools/input_gaps.h"

#include <stdlib.h>

#include "lib/base/pb_wire.h"
#include "shard/tools/facts.h"
#include "shard/tools/session.h"

enum { PARTIAL_SESSION = 1, PARTIAL_GAPS };

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the input pipeline");
}

/* --- a host --- */

static uint64_t waited(const struct figure_core *c, bool input)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->npauses; i++)
        if (c->pauses[i].input || !input)
            sum += figure_length(c->pauses[i].begin_ps, c->pauses[i].end_ps);
    return sum;
}

static const struct figure_core *longest(const struct figure_host *h, bool input)
{
    const struct figure_core *most = NULL;
    for (uint32_t i = 0; i < h->ncores; i++) {
        const struct figure_core *c = &h->cores[i];
        if (c->kind != FIGURE_SPARSE_CORE && waited(c, input) &&
            (!most || waited(c, input) > waited(most, input)))
            most = c;
    }
    return most;
}

static void put_rows(struct facts_out *f, const struct host_gap_row *rows, uint32_t n)
{
    facts_u64(f, n);
    for (uint32_t i = 0; i < n; i++) {
        facts_text(f, rows[i].thread);
        facts_text(f, rows[i].event);
        facts_u64(f, rows[i].kind);
        facts_u64(f, rows[i].self_ps);
        facts_u64(f, rows[i].gaps);
        facts_u64(f, rows[i].most);
    }
}

static enum xp_status put_gaps(struct facts_out *f, const struct part *p,
                               const struct figure_host *h, struct xp_arena *a,
                               struct xp_error *err)
{
    struct figure_span gaps[FIGURE_PAUSES_MAX];
    const struct figure_core *core = longest(h, true);
    struct host_gap_row *rows;
    bool input = core;
    uint32_t n = 0, nrows;
    if (!core)
        core = longest(h, false);
    for (uint32_t i = 0; core && i < core->npauses; i++)
        if (core->pauses[i].input || !input)
            gaps[n++] = (struct figure_span){core->pauses[i].begin_ps, core->pauses[i].end_ps};
    facts_u64(f, n);
    if (!n)
        return XP_OK;
    XP_TRY(host_gaps_find(p, gaps, n, core->nsteps ? core->steps[0].name : (struct xp_span){0}, a,
                          &rows, &nrows, err));
    facts_text(f, core->name);
    facts_u64(f, input);
    for (uint32_t i = 0; i < n; i++) {
        facts_i64(f, gaps[i].begin_ps);
        facts_i64(f, gaps[i].end_ps);
    }
    put_rows(f, rows, nrows);
    return XP_OK;
}

static enum xp_status map_gaps(const struct tool_host *host, const struct tool_args *args,
                               struct xp_arena *a, struct xp_span *out, struct xp_error *err)
{
    struct facts_out f;
    struct figure_host h;
    struct xp_span marker = {0};
    tool_arg(args, "step_marker", &marker);
    XP_TRY(figures_of(host->part, host->name, marker, a, &h, err));
    XP_TRY(facts_begin(&f, a, err));
    enum xp_status st = put_gaps(&f, host->part, &h, a, err);
    if (st == XP_OK)
        return facts_end(&f, host, a, out, err);
    facts_drop(&f);
    return st;
}

/* --- both --- */

static enum xp_status join(struct xp_span session, struct xp_span gaps, struct xp_arena *a,
                           struct xp_span *out, struct xp_error *err)
{
    struct xp_buf b;
    xp_buf_init(&b, SESSION_MAX);
    xp_pb_put_bytes(&b, PARTIAL_SESSION, session);
    xp_pb_put_bytes(&b, PARTIAL_GAPS, gaps);
    uint8_t *own = b.failed ? NULL : xp_arena_alloc(a, b.n + 1);
    if (own)
        memcpy(own, b.p, b.n);
    *out = xp_span_of(own, own ? b.n : 0);
    xp_buf_fini(&b);
    return own ? XP_OK : no_memory(err);
}

static enum xp_status part(struct xp_span partial, struct xp_span *session, struct xp_span *gaps,
                           struct xp_error *err)
{
    struct xp_pb r = xp_pb_open(partial);
    struct xp_pb_field f;
    *session = *gaps = (struct xp_span){0};
    while (xp_pb_next(&r, &f)) {
        if (f.type != XP_PB_LEN)
            continue;
        if (f.num == PARTIAL_SESSION)
            *session = f.bytes;
        else if (f.num == PARTIAL_GAPS)
            *gaps = f.bytes;
    }
    return r.bad
               ? xp_fail(err, XP_CORRUPT, 0, "the input pipeline of another server cannot be read")
               : XP_OK;
}

enum xp_status input_gaps_map(const struct tool_host *host, const struct tool_args *args,
                              struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    struct xp_span session, gaps;
    XP_TRY(session_map_report(host, args, a, &session, err));
    XP_TRY(map_gaps(host, args, a, &gaps, err));
    return join(session, gaps, a, partial, err);
}

enum xp_status input_gaps_merge(struct xp_span x, struct xp_span y, struct xp_arena *a,
                                struct xp_span *both, struct xp_error *err)
{
    struct xp_span sx, sy, gx, gy, session, gaps;
    *both = x.n ? x : y;
    if (!x.n || !y.n)
        return XP_OK;
    XP_TRY(part(x, &sx, &gx, err));
    XP_TRY(part(y, &sy, &gy, err));
    XP_TRY(session_merge(sx, sy, a, &session, err));
    XP_TRY(facts_merge(gx, gy, a, &gaps, err));
    return join(session, gaps, a, both, err);
}

/* --- reading --- */

static bool get_rows(struct facts *f, struct xp_arena *a, struct input_gaps *g)
{
    g->nrows = (uint32_t)facts_get_count(f);
    g->rows = xp_arena_alloc(a, (g->nrows + 1) * sizeof *g->rows);
    for (uint32_t i = 0; g->rows && i < g->nrows; i++) {
        struct host_gap_row *row = &g->rows[i];
        *row = (struct host_gap_row){.thread = facts_get_text(f)};
        row->event = facts_get_text(f);
        uint64_t kind = facts_get_u64(f);
        row->kind = kind <= HOST_GAP_WORK ? (uint8_t)kind : HOST_GAP_AROUND;
        row->self_ps = facts_get_u64(f);
        row->gaps = (uint32_t)facts_get_u64(f);
        row->most = (uint32_t)facts_get_u64(f);
        if (row->most >= g->ngaps)
            row->most = 0;
    }
    return g->rows;
}

static bool get_gaps(struct facts *f, struct xp_arena *a, struct input_gaps *g)
{
    g->ngaps = (uint32_t)facts_get_count(f);
    if (!g->ngaps)
        return true;
    g->core = facts_get_text(f);
    g->input = facts_get_u64(f) != 0;
    g->gaps = xp_arena_alloc(a, g->ngaps * sizeof *g->gaps);
    for (uint32_t i = 0; g->gaps && i < g->ngaps; i++) {
        g->gaps[i].begin_ps = facts_get_i64(f);
        g->gaps[i].end_ps = facts_get_i64(f);
        g->all_ps += figure_length(g->gaps[i].begin_ps, g->gaps[i].end_ps);
    }
    return g->gaps && get_rows(f, a, g);
}

enum xp_status input_gaps_open(struct xp_span merged, struct xp_arena *a, struct xp_span *session,
                               struct input_gaps **hosts, size_t *n, struct xp_error *err)
{
    struct xp_span gaps;
    struct facts *f;
    XP_TRY(part(merged, session, &gaps, err));
    XP_TRY(facts_open(gaps, a, &f, n, err));
    *hosts = xp_arena_zalloc(a, (*n + 1) * sizeof **hosts);
    for (size_t i = 0; *hosts && i < *n; i++) {
        (*hosts)[i].host = f[i].host;
        if (!get_gaps(&f[i], a, &(*hosts)[i]))
            return no_memory(err);
        XP_TRY(facts_ok(&f[i], err));
    }
    return *hosts ? XP_OK : no_memory(err);
}
