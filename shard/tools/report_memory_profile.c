#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "shard/tools/report_memory.h"
#include "shard/tools/reports_more.h"

/* How does the allocators' use move over time, what is alive at the peak or at a moment that is
 * asked for? Whether it grows: report_memory_growth.c. */

#define SERIES_MAX 8 /* allocators that are drawn: those with the highest peaks */

struct live {
    const struct memory_pool *pool;
    const struct memory_live_row *row;
    char type[MEMORY_TYPE_TEXT];
};

struct view {
    struct memory_pool *all; /* of all hosts, highest peak first */
    size_t nall;
    struct memory_pool *pools; /* those of the allocator that is asked for; else all */
    size_t npools;
    struct memory_run *runs;
    size_t nruns;
    struct live *live;
    size_t nlive;
    uint64_t events;
};

static uint64_t bytes_of(int64_t v)
{
    return v > 0 ? (uint64_t)v : 0;
}

/* --- tables --- */

static const struct report_column pool_columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"allocator", "Allocator", "", REPORT_COL_TEXT, false, "as the profile names it"},
    {"peak", "Peak", "bytes", REPORT_COL_BYTES, false, "most that was in use in the profile"},
    {"peak_at", "Peak at", "ps", REPORT_COL_NUMBER, false, "session time"},
    {"heap", "Heap", "bytes", REPORT_COL_BYTES, false, "of the peak"},
    {"stack", "Stack", "bytes", REPORT_COL_BYTES, false, "of the peak: reserved by programs"},
    {"free", "Free", "bytes", REPORT_COL_BYTES, false, "at the peak"},
    {"fragmentation", "Fragmentation", "fraction", REPORT_COL_NUMBER, false,
     "of the free memory, at the peak: 1 - largest free piece / free"},
    {"lifetime_peak", "Peak before", "bytes", REPORT_COL_BYTES, false,
     "since the process began, as its allocator says"},
    {"allocations", "Allocations", "count", REPORT_COL_NUMBER, true, "all of the profile"},
    {"frees", "Deallocations", "count", REPORT_COL_NUMBER, true, "all of the profile"},
    {"allocated", "Allocated", "bytes", REPORT_COL_BYTES, true, "by all of them"},
    {"growth", "Growth", "bytes", REPORT_COL_NUMBER, true,
     "in use at the last event less at the first that are shown"},
};

static int64_t used(const struct memory_fact *f)
{
    return (int64_t)((uint64_t)f->reserved + (uint64_t)f->heap);
}

static void pool_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct memory_pool *p = &((const struct view *)ctx)->all[i];
    const struct memory_fact_allocator *al = p->al;
    c[0] = report_of_text(p->host);
    c[1] = report_of_text(al->name);
    c[2] = report_of_u64(bytes_of(al->peak.bytes));
    c[3] = report_of_i64(al->peak.time_ps);
    c[4] = report_of_u64(bytes_of(al->peak.heap));
    c[5] = report_of_u64(bytes_of(al->peak.reserved));
    c[6] = report_of_u64(bytes_of(al->peak.available));
    c[7] = al->peak.fragmentation >= 0 ? report_of_double(al->peak.fragmentation) : report_none();
    c[8] = al->peak.lifetime > 0 ? report_of_i64(al->peak.lifetime) : report_none();
    c[9] = report_of_u64(al->allocations);
    c[10] = report_of_u64(al->frees);
    c[11] = report_of_u64(al->allocated_bytes);
    c[12] = al->ntimeline > 1
                ? report_of_i64((int64_t)((uint64_t)used(&al->timeline[al->ntimeline - 1]) -
                                          (uint64_t)used(&al->timeline[0])))
                : report_none();
}

static const struct report_column live_columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"allocator", "Allocator", "", REPORT_COL_TEXT, false, ""},
    {"op", "Op", "", REPORT_COL_TEXT, false, "that allocated it, as the framework names it"},
    {"total", "Bytes", "bytes", REPORT_COL_BYTES, true, "of all equal ones"},
    {"size", "Size", "bytes", REPORT_COL_BYTES, false, "of one"},
    {"requested", "Requested", "bytes", REPORT_COL_BYTES, false, "of one, before rounding"},
    {"count", "Count", "count", REPORT_COL_NUMBER, true, "equal ones"},
    {"region", "Region", "", REPORT_COL_TEXT, false, "output, temp, persist/dynamic, stack"},
    {"type", "Type", "", REPORT_COL_TEXT, false, "of its elements"},
    {"shape", "Shape", "", REPORT_COL_TEXT, false, ""},
    {"explained", "Seen", "", REPORT_COL_BOOL, false,
     "its allocation is in the profile; else it was made before"},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, "that tells of its allocation"},
    {"first_begin_ps", "Allocated at", "ps", REPORT_COL_NUMBER, false,
     "session time; of equal ones the first"},
};

static struct report_cell special_text(int special)
{
    return report_of_text(special == MEMORY_STACK ? XP_SPAN_LIT("stack: reserved by programs")
                                                  : XP_SPAN_LIT("allocated before the profile"));
}

static void live_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct live *l = &((const struct view *)ctx)->live[i];
    const struct memory_fact *f = &l->row->fact;
    uint64_t total;
    c[0] = report_of_text(l->pool->host);
    c[1] = report_of_text(l->pool->al->name);
    c[2] = l->row->special < 0 ? report_text_or_none(f->op) : special_text(l->row->special);
    c[3] = __builtin_mul_overflow(bytes_of(f->allocated), l->row->count, &total)
               ? report_none()
               : report_of_u64(total);
    c[4] = report_of_u64(bytes_of(f->allocated));
    c[5] = report_of_u64(bytes_of(f->requested));
    c[6] = report_of_u64(l->row->count);
    c[7] = report_text_or_none(f->region);
    c[8] = l->type[0] && f->type ? report_of_text(xp_span_str(l->type)) : report_none();
    c[9] = report_text_or_none(f->shape);
    c[10] = report_of_bool(l->row->special < 0);
    c[11] = l->row->special < 0 ? report_of_text(XP_SPAN_LIT("/host:CPU")) : report_none();
    c[12] = l->row->special < 0 ? report_of_i64(f->time_ps) : report_none();
}

static const struct report_column moment_columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"allocator", "Allocator", "", REPORT_COL_TEXT, false, "as the profile names it"},
    {"used", "In use", "bytes", REPORT_COL_BYTES, true, "heap and stack"},
    {"heap", "Heap", "bytes", REPORT_COL_BYTES, true, ""},
    {"stack", "Stack", "bytes", REPORT_COL_BYTES, true, "reserved by programs"},
    {"free", "Free", "bytes", REPORT_COL_BYTES, true, ""},
    {"of_peak", "Of its peak", "fraction", REPORT_COL_NUMBER, false,
     "in use / most of the profile, or of the range and this moment"},
    {"alive", "Alive", "count", REPORT_COL_NUMBER, true, "allocations of the profile"},
    {"since", "Since", "ps", REPORT_COL_NUMBER, false, "session time of the last event before"},
};

static void moment_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct memory_pool *p = &((const struct view *)ctx)->pools[i];
    const struct memory_live_pool *now = p->live;
    uint64_t inuse = bytes_of((int64_t)((uint64_t)now->heap + (uint64_t)now->reserved));
    uint64_t peak = bytes_of(p->al->peak.bytes);
    c[0] = report_of_text(p->host);
    c[1] = report_of_text(p->al->name);
    if (!now->known)
        return;
    c[2] = report_of_u64(inuse);
    c[3] = report_of_u64(bytes_of(now->heap));
    c[4] = report_of_u64(bytes_of(now->reserved));
    c[5] = report_of_u64(bytes_of(now->available));
    c[6] = report_ratio((double)inuse,
                        (double)(inuse > peak ? inuse : peak)); /* it may be from before a range */
    c[7] = report_of_u64(now->allocations);
    c[8] = report_of_i64(now->time_ps);
}

static const struct report_column run_columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"module", "Program", "", REPORT_COL_TEXT, false, "as the profile names it"},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, "that ran it"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, "session time of that host"},
    {"time", "Time", "ps", REPORT_COL_NUMBER, true, ""},
};

static void run_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct memory_run *run = &((const struct view *)ctx)->runs[i];
    int64_t begin = run->module->begin_ps, end = run->module->end_ps;
    c[0] = report_of_text(run->host);
    c[1] = report_of_text(run->module->name);
    c[2] = report_of_text(run->module->plane);
    c[3] = report_of_i64(begin);
    c[4] = report_of_u64(end > begin ? (uint64_t)end - (uint64_t)begin : 0);
}

/* Of a stretch first what comes first. */
static const struct memory_fact *point_at(const struct memory_fact_allocator *al, uint64_t i)
{
    if (!al->nlows)
        return &al->timeline[i];
    const struct memory_fact *high = &al->timeline[i / 2], *low = &al->lows[i / 2];
    return (low->time_ps < high->time_ps) == (i % 2 == 0) ? low : high;
}

static void point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct memory_fact *f = point_at(ctx, i);
    *x = report_of_i64(f->time_ps);
    y[0] = report_of_i64(f->reserved);
    y[1] = report_of_i64(f->heap);
    y[2] = report_of_i64(f->available);
}

static void fragmented(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct memory_fact *f = point_at(ctx, i);
    *x = report_of_i64(f->time_ps);
    y[0] = report_of_double(f->fragmentation);
}

/* Of the fullest allocator, where it says so at all; of one that is asked for, also that not. */
static void draw_fragmentation(struct report *r, const struct memory_pool *p, bool asked)
{
    static const char *const names[] = {"fragmentation"};
    const struct memory_fact_allocator *al = p->al;
    size_t n = al->nlows ? 2 * al->nlows : al->ntimeline;
    char *title = xp_arena_alloc(r->a, 256);
    bool any = false;
    for (size_t i = 0; i < n && !any; i++)
        any = point_at(al, i)->fragmentation > 0;
    if (!any && asked)
        report_note(r, REPORT_INFO, "no_fragmentation",
                    "Allocator %.*s reports no fragmentation of its free memory.",
                    (int)(al->name.n < 100 ? al->name.n : 100), (const char *)al->name.p);
    if (!any || !title)
        return;
    snprintf(title, 256, "Fragmentation of %.*s, %.*s", (int)(al->name.n < 100 ? al->name.n : 100),
             (const char *)al->name.p, (int)(p->host.n < 100 ? p->host.n : 100),
             (const char *)p->host.p);
    report_series(r, &(struct report_points){.id = "fragmentation",
                                             .title = title,
                                             .x_label = "time",
                                             .x_unit = "ps",
                                             .y_label = "Of the free memory",
                                             .y_unit = "fraction",
                                             .kind = "line",
                                             .names = names,
                                             .nnames = 1,
                                             .n = n,
                                             .total = al->allocations + al->frees,
                                             .point = fragmented,
                                             .ctx = (void *)al});
}

static void draw(struct report *r, const struct view *v)
{
    static const char *const names[] = {"stack", "heap", "free"};
    for (size_t i = 0; i < v->npools && i < SERIES_MAX; i++) {
        const struct memory_pool *p = &v->pools[i];
        char id[24], *title = xp_arena_alloc(r->a, 256), *own = xp_arena_alloc(r->a, sizeof id);
        if (!title || !own)
            return;
        snprintf(own, sizeof id, "memory_%zu", i);
        snprintf(title, 256, "%.*s, %.*s", (int)(p->al->name.n < 100 ? p->al->name.n : 100),
                 (const char *)p->al->name.p, (int)(p->host.n < 100 ? p->host.n : 100),
                 (const char *)p->host.p);
        report_series(
            r, &(struct report_points){.id = own,
                                       .title = title,
                                       .x_label = "time",
                                       .x_unit = "ps",
                                       .y_label = "Memory",
                                       .y_unit = "bytes",
                                       .kind = "stack",
                                       .names = names,
                                       .nnames = 3,
                                       .n = p->al->nlows ? 2 * p->al->nlows : p->al->ntimeline,
                                       .total = p->al->allocations + p->al->frees,
                                       .point = point,
                                       .ctx = (void *)p->al});
        if (p->al->nlows)
            report_note(r, REPORT_INFO, "memory_reduced",
                        "%.*s: %zu points of %" PRIu64
                        " events, of each stretch those with the most and the least in use.",
                        (int)(p->al->name.n < 100 ? p->al->name.n : 100),
                        (const char *)p->al->name.p, 2 * p->al->nlows,
                        p->al->allocations + p->al->frees);
    }
}

/* --- all hosts --- */

static int by_peak(const void *a, const void *b)
{
    const struct memory_pool *x = a, *y = b;
    if (x->al->peak.bytes != y->al->peak.bytes)
        return x->al->peak.bytes > y->al->peak.bytes ? -1 : 1;
    int c = xp_span_cmp(x->host, y->host);
    return c ? c : xp_span_cmp(x->al->name, y->al->name);
}

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the memory profile");
}

static void gather_rows(struct view *v)
{
    for (size_t i = 0; i < v->npools; i++) {
        const struct memory_pool *p = &v->pools[i];
        v->events += p->al->allocations + p->al->frees;
        for (size_t k = 0; k < p->live->nrows; k++) {
            struct live *l = &v->live[v->nlive++];
            *l = (struct live){.pool = p, .row = &p->live->rows[k]};
            memory_type_text(l->row->fact.type, l->type);
        }
    }
}

static enum xp_status gather(struct view *v, struct facts *hosts, size_t n, struct xp_arena *a,
                             struct xp_error *err)
{
    struct memory_live *m = xp_arena_alloc(a, (n + 1) * sizeof *m);
    size_t nlive = 0;
    if (!m)
        return no_memory(err);
    for (size_t i = 0; i < n; i++) {
        XP_TRY(memory_live_read(&hosts[i], a, &m[i], err));
        v->nall += m[i].facts.nallocators;
        v->nruns += m[i].facts.nmodules;
        for (size_t k = 0; k < m[i].facts.nallocators; k++)
            nlive += m[i].pools[k].nrows;
    }
    v->all = xp_arena_alloc(a, (v->nall + 1) * sizeof *v->all);
    v->live = xp_arena_alloc(a, (nlive + 1) * sizeof *v->live);
    v->runs = xp_arena_alloc(a, (v->nruns + 1) * sizeof *v->runs);
    if (!v->all || !v->live || !v->runs)
        return no_memory(err);
    v->nall = v->nruns = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < m[i].facts.nallocators; k++)
            v->all[v->nall++] = (struct memory_pool){hosts[i].host, &m[i].facts.allocators[k],
                                                     &m[i].pools[k], &m[i]};
        for (size_t k = 0; k < m[i].facts.nmodules; k++)
            v->runs[v->nruns++] = (struct memory_run){hosts[i].host, &m[i].facts.modules[k]};
    }
    if (v->nall)
        qsort(v->all, v->nall, sizeof *v->all, by_peak);
    return XP_OK;
}

static void metrics(struct report *r, const struct view *v)
{
    if (!v->npools) {
        report_na(r, "peak_memory", MEMORY_NO_EVENTS);
        report_na(r, "capacity_memory", MEMORY_NO_EVENTS);
        report_na(r, "memory_events", MEMORY_NO_EVENTS);
        report_na(r, "growth_per_step", MEMORY_NO_EVENTS);
        report_memory_none(r);
        return;
    }
    const struct memory_pool *top = &v->pools[0], *low = &v->pools[v->npools - 1];
    struct report_spread spread = {.min = (double)low->al->peak.bytes,
                                   .max = (double)top->al->peak.bytes,
                                   .max_host = top->host,
                                   .whole = true};
    report_metric(r, "peak_memory", report_of_u64(bytes_of(top->al->peak.bytes)), NULL,
                  "of the allocator with the highest; spread over allocators", &spread);
    if (top->al->peak.capacity > 0)
        report_u64(r, "capacity_memory", bytes_of(top->al->peak.capacity), NULL);
    else
        report_na(r, "capacity_memory", "the allocator does not say how much is free");
    report_u64(r, "memory_events", v->events, NULL);
}

static void verdict(struct report *r, const struct view *v)
{
    const struct memory_pool *top = v->npools ? &v->pools[0] : NULL;
    if (top && top->al->peak.capacity > 0)
        report_verdict(r, "At its peak allocator %.*s uses %.1f %% of its memory.",
                       (int)(top->al->name.n < 100 ? top->al->name.n : 100),
                       (const char *)top->al->name.p,
                       100 * (double)top->al->peak.bytes / (double)top->al->peak.capacity);
}

static void table(struct report *r, const char *id, const char *title, const char *sort,
                  const struct report_column *columns, uint32_t ncolumns, uint64_t n,
                  void (*row)(void *, uint64_t, struct report_cell *), struct view *v)
{
    report_table(r, &(struct report_rows){.id = id,
                                          .title = title,
                                          .columns = columns,
                                          .ncolumns = ncolumns,
                                          .n = n,
                                          .row = row,
                                          .ctx = v,
                                          .sort = sort,
                                          .descending = sort != NULL});
}
#define COLUMNS(of) of, sizeof of / sizeof *of

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct view v = {0};
    struct facts *hosts;
    size_t n;
    bool asked;
    int64_t at_ps;
    XP_TRY(memory_live_at(args, &asked, &at_ps, err));
    XP_TRY(facts_open(merged, r->a, &hosts, &n, err));
    XP_TRY(gather(&v, hosts, n, r->a, err));
    XP_TRY(report_memory_choose(args, v.all, v.nall, r->a, &v.pools, &v.npools, err));
    gather_rows(&v);
    metrics(r, &v);
    verdict(r, &v);
    table(r, "allocators", "Allocators", "peak", COLUMNS(pool_columns), v.nall, pool_row, &v);
    if (asked)
        table(r, "moment", "In use then", "used", COLUMNS(moment_columns), v.npools, moment_row,
              &v);
    table(r, "live", asked ? "Alive then" : "Alive at the peak", "total", COLUMNS(live_columns),
          v.nlive, live_row, &v);
    draw(r, &v);
    if (v.npools) {
        report_memory_growth(r, v.pools, v.npools);
        draw_fragmentation(r, &v.pools[0], v.npools < v.nall);
        report_memory_flat(r, v.pools, v.npools);
    }
    table(r, "runs", "Programs that ran", NULL, COLUMNS(run_columns), v.nruns, run_row, &v);
    report_link(r, "live", "first_begin_ps");
    report_link(r, "runs", "module");
    return XP_OK;
}

const struct tool_report report_memory_profile = {
    .question = "How does memory use move over time, and what is alive at the peak?",
    .map = memory_live_map,
    .merge = facts_merge,
    .write = write_report,
};
