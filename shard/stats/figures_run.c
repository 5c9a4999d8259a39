#include "shard/stats/figures_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "shard/stats/figures_int.h"

#define LONGER 0.03 /* of a step: so much more than the median is a straggler's */

/* One core's step. */
struct entry {
    int64_t number;
    uint32_t host, core;
    const struct figure_step *s;
};

static bool has_steps(const struct figure_core *c)
{
    return c->kind != FIGURE_SPARSE_CORE && c->nsteps;
}

uint64_t figure_runs(const struct figure_host *h)
{
    for (uint32_t c = 0; c < h->ncores; c++)
        if (has_steps(&h->cores[c]))
            return h->cores[c].nsteps;
    return h->marker_runs;
}

static double length(const struct figure_step *s)
{
    return (double)figure_length(s->begin_ps, s->end_ps);
}

static double own(const struct figure_step *s)
{
    return length(s) - (double)s->wait_ps;
}

/* --- steps --- */

static int by_number(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    return (x->core > y->core) - (x->core < y->core);
}

static size_t gather(const struct figures *f, struct entry *out)
{
    size_t n = 0;
    for (uint32_t h = 0; h < f->nhosts; h++)
        for (uint32_t c = 0; c < f->hosts[h].ncores; c++) {
            const struct figure_core *core = &f->hosts[h].cores[c];
            for (uint32_t i = 0; has_steps(core) && i < core->nsteps; i++, n++)
                if (out)
                    out[n] = (struct entry){core->steps[i].number, h, c, &core->steps[i]};
        }
    if (out && n)
        qsort(out, n, sizeof *out, by_number);
    return n;
}

static void join(const struct entry *e, size_t n, struct run_step *out)
{
    double longest = -1;
    *out = (struct run_step){.number = e->number, .name = e->s->name, .cores = (uint32_t)n};
    out->min_ps = length(e->s);
    out->whole = true;
    for (size_t i = 0; i < n; i++) {
        const struct figure_step *s = e[i].s;
        double ps = length(s), span = (double)figure_length(s->begin_ps, s->until_ps);
        double share = span > 0 ? (double)s->input_ps / span : 0;
        out->mean_ps += ps / (double)n;
        out->max_ps = ps > out->max_ps ? ps : out->max_ps;
        out->min_ps = ps < out->min_ps ? ps : out->min_ps;
        out->busy_ps += (double)s->busy_ps / (double)n;
        out->input_ps += (double)s->input_ps / (double)n;
        out->wait_ps += (double)s->wait_ps / (double)n;
        out->barrier_ps += (double)s->barrier_ps / (double)n;
        out->input += share / (double)n;
        out->worst_input = share > out->worst_input ? share : out->worst_input;
        out->whole &= s->whole;
        if (own(s) > longest) {
            longest = own(s);
            out->slowest_host = e[i].host;
            out->slowest_core = e[i].core;
            out->begin_ps = s->begin_ps;
        }
    }
}

static uint32_t hosts_in(const struct entry *e, size_t n)
{
    uint32_t hosts = 0;
    for (size_t i = 0; i < n; i++)
        hosts += !i || e[i].host != e[i - 1].host;
    return hosts;
}

/* Steps that all hosts with steps have; all, if there are none such. */
static void make_steps(struct figures *f, const struct entry *e, size_t n, uint32_t hosts)
{
    for (int all = 0; all < 2 && !f->nsteps; all++) {
        for (size_t i = 0, k; i < n; i = k) {
            for (k = i + 1; k < n && e[k].number == e[i].number; k++)
                continue;
            if (all || hosts_in(e + i, k - i) == hosts)
                join(e + i, k - i, &f->steps[f->nsteps++]);
        }
        f->common = !all;
    }
}

/* --- clocks --- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Ends that really are one differ by microseconds. Others, of the same name in groups of their own
 * (a slice, the chips of one host), do not: so it is the closest quarter that counts. */
#define SAME_PS 5e6

static bool agreed(double *v, size_t n, double *out)
{
    size_t some = n / 4 + 1, best = 0;
    qsort(v, n, sizeof *v, by_value);
    for (size_t i = 0; i + some <= n; i++)
        if (v[i + some - 1] - v[i] < v[best + some - 1] - v[best])
            best = i;
    if (v[best + some - 1] - v[best] > SAME_PS)
        return false;
    *out = median(v + best, some);
    return true;
}

/* Differences of the ends that both have; how many. */
static size_t differences(const struct figure_host *x, const struct figure_host *y, double *out)
{
    size_t n = 0;
    for (uint32_t i = 0, k = 0; i < x->nsyncs && k < y->nsyncs;) {
        if (x->syncs[i].key < y->syncs[k].key) {
            i++;
        } else if (x->syncs[i].key > y->syncs[k].key) {
            k++;
        } else {
            out[n++] =
                (double)(int64_t)((uint64_t)x->syncs[i].end_ps - (uint64_t)y->syncs[k].end_ps);
            i++;
            k++;
        }
    }
    return n;
}

static bool overridden(const struct figures_ask *ask, struct host_figures *h)
{
    for (uint32_t i = 0; i < ask->noffsets; i++)
        if (xp_span_eq(ask->offsets[i].host, h->name)) {
            h->clock_ps = ask->offsets[i].ps;
            h->has_clock = true;
            return true;
        }
    return false;
}

/* What the hosts' own clocks say the difference is. */
static double wall_ps(const struct figures *f, uint32_t h)
{
    int64_t a = f->hosts[0].start_wall_ns, b = f->hosts[h].start_wall_ns;
    return a && b ? (double)(b - a) * 1e3 : 0;
}

static enum xp_status clocks(struct figures *f, const struct figures_ask *ask, struct xp_arena *a,
                             struct xp_error *err)
{
    double *v = xp_arena_alloc(a, (FIGURE_SYNCS_MAX + 1) * sizeof *v), most = 0;
    bool any = false;
    uint32_t unknown = 0;
    if (!v)
        return figure_busy(err);
    for (uint32_t h = 0; h < f->nhosts; h++) {
        struct host_figures *x = &f->by_host[h];
        if (overridden(ask, x))
            continue;
        unknown += h > 0;
        x->clock_ps = wall_ps(f, h);
        x->has_clock = h == 0;
        size_t n = h ? differences(&f->hosts[0], &f->hosts[h], v) : 0;
        if (!n || !agreed(v, n, &x->clock_ps))
            continue;
        x->has_clock = true;
        unknown--;
        double off = fabs(x->clock_ps - wall_ps(f, h));
        if (!any || off > most) {
            f->clock.max_host = x->name;
            most = off;
        }
        any = true;
    }
    if (any) {
        f->clock.known = true;
        f->clock.v = most;
        if (unknown)
            snprintf(
                f->clock.note, sizeof f->clock.note,
                "%u of %u hosts have no collective in common with the first, as those of other "
                "slices have none: what their own clocks say is taken",
                unknown, f->nhosts);
    } else {
        snprintf(f->clock.reason, sizeof f->clock.reason, "%s",
                 f->nhosts < 2
                     ? "there is one host"
                     : "the hosts have no collective of a step in common, as slices have "
                       "none: what their own clocks say is taken; offset=HOST:PS sets one");
    }
    return XP_OK;
}

/* --- hosts side by side --- */

static void sum_host(const struct figure_host *h, struct host_figures *out)
{
    double window = 0, busy = 0, wait = 0, input = 0, n = 0, sum = 0, squares = 0, mine = 0;
    for (uint32_t c = 0; c < h->ncores; c++) {
        const struct figure_core *core = &h->cores[c];
        if (core->kind == FIGURE_SPARSE_CORE)
            continue;
        out->cores += core->kind != FIGURE_CPU;
        window += (double)figure_length(core->begin_ps, core->end_ps);
        busy += (double)core->busy_ps;
        wait += (double)core->wait_ps;
        input += (double)core->input_ps;
        for (uint32_t i = 0; i < core->nsteps; i++) {
            const struct figure_step *s = &core->steps[i];
            if (!s->whole)
                continue;
            n++;
            sum += length(s);
            squares += length(s) * length(s);
            mine += own(s);
        }
    }
    out->has_device = out->cores && window > 0;
    out->has_steps = n > 0;
    if (window > 0) {
        out->idle = 1 - busy / window;
        out->wait = wait / window;
        out->input = input / window;
    }
    if (n > 0) {
        double var = n > 1 ? (squares - sum * sum / n) / (n - 1) : 0;
        out->step_ps = sum / n;
        out->step_sd_ps = var > 0 ? sqrt(var) : 0;
        out->own_ps = mine / n;
    }
}

/* How much later than the first host each ends its steps, in the first host's time. */
static void lateness(struct figures *f, const struct entry *e, size_t n)
{
    double *sum = calloc(2 * (size_t)f->nhosts + 1, sizeof *sum), *count = sum + f->nhosts;
    for (size_t i = 0, k; sum && i < n; i = k) {
        double first = INFINITY;
        for (k = i; k < n && e[k].number == e[i].number; k++) {
            double end = (double)e[k].s->end_ps + f->by_host[e[k].host].clock_ps;
            first = end < first ? end : first;
        }
        if (hosts_in(e + i, k - i) < 2 || !e[i].s->whole)
            continue;
        for (size_t j = i; j < k; j++) {
            sum[e[j].host] += (double)e[j].s->end_ps + f->by_host[e[j].host].clock_ps - first;
            count[e[j].host]++;
        }
    }
    for (uint32_t h = 0; sum && h < f->nhosts; h++)
        if (count[h] > 0) {
            f->by_host[h].late_ps = sum[h] / count[h];
            f->by_host[h].has_late = true;
        }
    free(sum);
}

/* --- the straggler --- */

static double core_own(const struct figure_core *c)
{
    double sum = 0, n = 0;
    for (uint32_t i = 0; i < c->nsteps; i++)
        if (c->steps[i].whole) {
            sum += own(&c->steps[i]);
            n++;
        }
    return n > 0 ? sum / n : 0;
}

static void name_core(const struct figures *f, uint32_t h, uint32_t c, bool whole_host,
                      struct figures *out)
{
    const struct figure_core *core = &f->hosts[h].cores[c];
    struct xp_span name = f->hosts[h].name;
    int n = (int)(name.n < 120 ? name.n : 120);
    if (whole_host)
        snprintf(out->straggler_text, sizeof out->straggler_text, "%.*s", n, (const char *)name.p);
    else
        snprintf(out->straggler_text, sizeof out->straggler_text, "%.*s/%s:%u", n,
                 (const char *)name.p, core->kind == FIGURE_GPU ? "GPU" : "TPU", core->ordinal);
}

struct longest {
    uint32_t host, core;
    double ps;
};

static size_t core_times(const struct figures *f, double *v, struct longest *l)
{
    size_t n = 0;
    for (uint32_t h = 0; h < f->nhosts; h++)
        for (uint32_t c = 0; c < f->hosts[h].ncores; c++) {
            const struct figure_core *core = &f->hosts[h].cores[c];
            if (!has_steps(core) || core->kind == FIGURE_CPU)
                continue;
            double ps = core_own(core);
            if (!n || ps > l->ps)
                *l = (struct longest){h, c, ps};
            v[n++] = ps;
        }
    return n;
}

/* Do all cores of the host take so long? */
static bool all_cores(const struct figures *f, uint32_t h, double least)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < f->hosts[h].ncores; c++)
        if (has_steps(&f->hosts[h].cores[c])) {
            n++;
            if (core_own(&f->hosts[h].cores[c]) < least)
                return false;
        }
    return n > 1 || f->nhosts > 1;
}

static enum xp_status find_straggler(struct figures *f, struct xp_arena *a, struct xp_error *err)
{
    struct longest l = {0};
    size_t cores = 0;
    for (uint32_t h = 0; h < f->nhosts; h++)
        cores += f->hosts[h].ncores;
    double *v = xp_arena_alloc(a, (cores + 1) * sizeof *v), step = 0, whole = 0;
    if (!v)
        return figure_busy(err);
    size_t n = core_times(f, v, &l);
    for (uint32_t i = 0; i < f->nsteps; i++)
        if (f->steps[i].whole) {
            step += f->steps[i].mean_ps;
            whole++;
        }
    if (n < 2 || !(step > 0)) {
        snprintf(f->straggler.reason, sizeof f->straggler.reason, "%s",
                 n == 1 ? "there is one device" : "there are no steps of devices to compare");
        return XP_OK;
    }
    step /= whole;
    double mid = median(v, n), more = (l.ps - mid) / step;
    f->straggler.known = true;
    f->straggler.v = more;
    if (more >= LONGER) {
        bool all = f->nhosts > 1 && all_cores(f, l.host, mid + LONGER * step);
        name_core(f, l.host, l.core, all, f);
        f->straggler_host = l.host;
        f->straggler_core = all ? UINT32_MAX : l.core;
        snprintf(f->straggler.note, sizeof f->straggler.note,
                 "its step less waiting takes %.1f %% of a step longer than the median's",
                 100 * more);
    } else {
        snprintf(f->straggler.note, sizeof f->straggler.note,
                 "the longest step less waiting is %.1f %% of a step above the median", 100 * more);
    }
    return XP_OK;
}

enum xp_status figure_run(struct figures *f, const struct figures_ask *ask, struct xp_arena *a,
                          struct xp_error *err)
{
    size_t n = gather(f, NULL);
    uint32_t hosts = 0;
    struct entry *e = xp_arena_alloc(a, (n + 1) * sizeof *e);
    f->steps = xp_arena_alloc(a, (n + 1) * sizeof *f->steps);
    f->by_host = xp_arena_zalloc(a, ((size_t)f->nhosts + 1) * sizeof *f->by_host);
    if (!e || !f->steps || !f->by_host)
        return figure_busy(err);
    gather(f, e);
    for (uint32_t h = 0; h < f->nhosts; h++) {
        f->by_host[h].name = f->hosts[h].name;
        sum_host(&f->hosts[h], &f->by_host[h]);
        hosts += f->by_host[h].has_steps;
    }
    make_steps(f, e, n, hosts);
    XP_TRY(clocks(f, ask, a, err));
    lateness(f, e, n);
    return find_straggler(f, a, err);
}
