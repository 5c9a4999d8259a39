#include <stdio.h>
#include <stdlib.h>

#include "shard/tools/report_memory.h"

/* A leak shows in what is in use when steps end: it should be the same after each.
 *
 * The first step is left out, which makes what later ones use. The growth is the slope of the
 * straight line with the least squares. It is steady if there are eight steps or more, at least
 * three of four end with more in use than the one before, and the last quarter of them never falls
 * to what the first had. */

#define STEPS_MIN 5  /* with the first */
#define STEADY_MIN 8 /* steps that count */
#define NAME_MAX_BYTES 60
#define NO_HEAP INT64_MIN

struct growth {
    const struct memory_pool *pool;
    bool known, steady;
    uint64_t first, last;   /* in use */
    double per_step, rises; /* rises: share of the steps */
    size_t n;               /* steps that count */
};

static void fit(struct growth *g, const int64_t *v, size_t n, uint64_t stride)
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    size_t up = 0;
    for (size_t i = 0; i < n; i++) {
        double x = (double)i * (double)stride, y = (double)(v[i] - v[0]);
        sx += x, sy += y, sxx += x * x, sxy += x * y;
        up += i && v[i] > v[i - 1];
    }
    double d = (double)n * sxx - sx * sx;
    g->per_step = d > 0 ? ((double)n * sxy - sx * sy) / d : 0;
    g->rises = (double)up / (double)(n - 1);
}

static bool stays_above(const int64_t *v, size_t n)
{
    size_t quarter = n / 4 ? n / 4 : 1;
    int64_t most = v[0], least = v[n - 1];
    for (size_t i = 0; i < quarter; i++) {
        most = v[i] > most ? v[i] : most;
        least = v[n - 1 - i] < least ? v[n - 1 - i] : least;
    }
    return least > most;
}

static struct growth growth_of(const struct memory_pool *p)
{
    struct growth g = {.pool = p};
    const int64_t *v = p->live->heap_after;
    size_t from = 1, n = p->of->nsteps;
    while (from < n && v[from] == NO_HEAP)
        from++;
    g.n = n > from ? n - from : 0;
    if (g.n + 1 < STEPS_MIN)
        return g;
    v += from;
    for (size_t i = 0; i < g.n; i++)
        if (v[i] < 0) /* the profile's numbers are odd */
            return g;
    g.known = true;
    g.first = (uint64_t)v[0];
    g.last = (uint64_t)v[g.n - 1];
    fit(&g, v, g.n, p->of->stride);
    g.steady = g.n >= STEADY_MIN && g.per_step >= 1 && g.rises >= 0.75 && stays_above(v, g.n);
    return g;
}

static int by_growth(const void *a, const void *b)
{
    const struct growth *x = a, *y = b;
    if (x->known != y->known)
        return x->known ? -1 : 1;
    if (x->steady != y->steady)
        return x->steady ? -1 : 1;
    return (y->per_step > x->per_step) - (y->per_step < x->per_step);
}

/* --- what is shown --- */

static const struct report_column columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"allocator", "Allocator", "", REPORT_COL_TEXT, false, "as the profile names it"},
    {"per_step", "A step", "bytes", REPORT_COL_NUMBER, false,
     "slope of the heap in use when steps end, the first step left out"},
    {"first", "First", "bytes", REPORT_COL_BYTES, false,
     "heap when the first step that counts ends"},
    {"last", "Last", "bytes", REPORT_COL_BYTES, false, "heap when the last step ends"},
    {"steps", "Steps", "count", REPORT_COL_NUMBER, false, "that count"},
    {"rises", "Rises", "fraction", REPORT_COL_NUMBER, false,
     "steps that end with more than the one before"},
    {"steady", "Steady", "", REPORT_COL_BOOL, false,
     "eight steps or more, three of four rise, and the last quarter never falls to what the first "
     "had"},
    {"full_in", "Full in", "count", REPORT_COL_NUMBER, false,
     "steps until what is free at the last is used up, where it grows steadily"},
};

struct growths {
    struct growth *v;
    size_t n;
};

/* What programs reserved at the last is not free for the heap. */
static uint64_t free_last(const struct growth *g)
{
    const struct memory_fact_allocator *al = g->pool->al;
    int64_t reserved = al->ntimeline ? al->timeline[al->ntimeline - 1].reserved : al->peak.reserved;
    uint64_t capacity = al->peak.capacity > 0 ? (uint64_t)al->peak.capacity : 0, used = g->last;
    if (reserved > 0)
        used += (uint64_t)reserved; /* neither is negative: they fit */
    return capacity > used ? capacity - used : 0;
}

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct growth *g = &((const struct growths *)ctx)->v[i];
    c[0] = report_of_text(g->pool->host);
    c[1] = report_of_text(g->pool->al->name);
    c[5] = report_of_u64(g->n);
    if (!g->known)
        return;
    c[2] = report_of_i64((int64_t)g->per_step);
    c[3] = report_of_u64(g->first);
    c[4] = report_of_u64(g->last);
    c[6] = report_of_double(g->rises);
    c[7] = report_of_bool(g->steady);
    if (g->steady && g->pool->al->peak.capacity > 0)
        c[8] = report_of_u64((uint64_t)((double)free_last(g) / g->per_step));
}

static void warn(struct report *r, const struct growth *g)
{
    const struct memory_pool *p = g->pool;
    report_note(
        r, REPORT_WARNING, "memory_grows",
        "Allocator %.*s of %.*s has %.2f MiB more in use after each step, steadily over %zu "
        "steps: something may be kept that no later step needs.",
        (int)(p->al->name.n < 100 ? p->al->name.n : 100), (const char *)p->al->name.p,
        (int)(p->host.n < 100 ? p->host.n : 100), (const char *)p->host.p, g->per_step / 0x1p20,
        g->n);
}

/* --- the curve: allocators of the host that grows most --- */

struct curve {
    const struct memory_live *of;
    const struct memory_pool *pools[REPORT_NAMES_MAX];
    const char *names[REPORT_NAMES_MAX];
    uint32_t n;
};

static void point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct curve *c = ctx;
    *x = report_of_i64(c->of->steps[i]);
    for (uint32_t k = 0; k < c->n; k++) {
        int64_t v = c->pools[k]->live->heap_after[i];
        y[k] = v == NO_HEAP ? report_none() : report_of_i64(v);
    }
}

static void draw(struct report *r, const struct growths *all)
{
    struct curve c = {.of = all->v[0].pool->of};
    for (size_t i = 0; i < all->n && c.n < 8; i++) {
        const struct memory_pool *p = all->v[i].pool;
        char *name = xp_arena_alloc(r->a, NAME_MAX_BYTES);
        if (p->of != c.of || !all->v[i].known || !name)
            continue;
        snprintf(name, NAME_MAX_BYTES, "%.*s", (int)(p->al->name.n < 50 ? p->al->name.n : 50),
                 (const char *)p->al->name.p);
        c.pools[c.n] = p;
        c.names[c.n++] = name;
    }
    report_series(r, &(struct report_points){.id = "growth",
                                             .title = "Heap when steps end",
                                             .x_label = "step",
                                             .x_unit = "",
                                             .y_label = "Heap",
                                             .y_unit = "bytes",
                                             .kind = "line",
                                             .names = c.names,
                                             .nnames = c.n,
                                             .n = c.of->nsteps,
                                             .point = point,
                                             .ctx = &c});
}

void report_memory_growth(struct report *r, const struct memory_pool *pools, size_t n)
{
    struct growths all = {.v = xp_arena_alloc(r->a, n * sizeof *all.v), .n = n};
    size_t steps = 0;
    if (!all.v) {
        r->busy = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        all.v[i] = growth_of(&pools[i]);
        steps = pools[i].of->nsteps > steps ? pools[i].of->nsteps : steps;
    }
    qsort(all.v, n, sizeof *all.v, by_growth);
    const struct growth *top = &all.v[0];
    if (!steps)
        report_na(
            r, "growth_per_step",
            "the profile has no steps: mark them with StepTraceAnnotation, or name what is one "
            "with step_marker=");
    else if (!top->known)
        report_na(r, "growth_per_step",
                  "whole steps with allocator events: %zu; to tell, capture %d or more", steps,
                  STEPS_MIN);
    else
        report_metric(r, "growth_per_step", report_of_i64((int64_t)top->per_step), NULL,
                      top->steady ? "steadily: a leak?" : "not steadily", NULL);
    for (size_t i = 0; i < n && all.v[i].known && all.v[i].steady && i < 4; i++)
        warn(r, &all.v[i]);
    report_table(r, &(struct report_rows){.id = "growth",
                                          .title = "Growth from step to step",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = top->known ? n : 0,
                                          .row = row,
                                          .ctx = &all});
    if (top->known)
        draw(r, &all);
}
