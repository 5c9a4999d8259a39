#include "shard/stats/figures.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "shard/stats/figures_int.h"
#include "shard/stats/figures_run.h"

#define CAPTURE_STEPS                                                                              \
    "mark steps with jax.profiler.StepTraceAnnotation(\"train\", step_num=n), or name a module "   \
    "or a host event with step_marker="

/* --- figures --- */

static void set(struct figure *f, double v)
{
    *f = (struct figure){.known = true, .v = v};
}

static void __attribute__((format(printf, 2, 3))) missing(struct figure *f, const char *fmt, ...)
{
    va_list ap;
    *f = (struct figure){0};
    va_start(ap, fmt);
    vsnprintf(f->reason, sizeof f->reason, fmt, ap);
    va_end(ap);
}

static void __attribute__((format(printf, 2, 3))) note(struct figure *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->note, sizeof f->note, fmt, ap);
    va_end(ap);
}

static bool is_device(const struct figure_core *c)
{
    return c->kind == FIGURE_TENSOR_CORE || c->kind == FIGURE_GPU;
}

struct mean {
    double n, sum, squares, min, max;
};

static void mean_add(struct mean *m, double v)
{
    m->min = m->n == 0 || v < m->min ? v : m->min;
    m->max = m->n == 0 || v > m->max ? v : m->max;
    m->n++;
    m->sum += v;
    m->squares += v * v;
}

static double mean_of(const struct mean *m)
{
    return m->n > 0 ? m->sum / m->n : 0;
}

static double mean_sd(const struct mean *m)
{
    double d = m->n > 1 ? (m->squares - m->sum * m->sum / m->n) / (m->n - 1) : 0;
    return d > 0 ? sqrt(d) : 0;
}

/* --- devices --- */

static void sum_devices(struct figures *f)
{
    for (uint32_t h = 0; h < f->nhosts; h++)
        for (uint32_t c = 0; c < f->hosts[h].ncores; c++) {
            const struct figure_core *core = &f->hosts[h].cores[c];
            if (!is_device(core))
                continue;
            f->window_ps += figure_length(core->begin_ps, core->end_ps);
            f->busy_ps += core->busy_ps;
            f->wait_ps += core->wait_ps;
            f->barrier_ps += core->barrier_ps;
            f->loose_ps += core->loose_ps;
        }
}

static void sum_ops(struct figures *f)
{
    const struct op_db *db = &f->stats->device;
    for (uint32_t i = 0; i < db->n; i++) {
        const struct op_metrics *m = &db->ops[i];
        if (op_kind_of(m->category) & (OP_KIND_INNER | OP_KIND_IDLE))
            continue;
        f->flops += figure_flops(m);
        f->hbm_bytes += figure_hbm_bytes(m);
    }
}

static void no_device(struct figure *f)
{
    missing(f, "no device ran anything in this profile: it has host threads only, or the capture "
               "fell into a pause; capture while steps run");
}

static void device_figures(struct figures *f)
{
    double window = (double)f->window_ps, busy = (double)f->busy_ps;
    if (!f->window_ps) {
        no_device(&f->idle);
        f->device_time = f->duty_cycle = f->collective = f->unattributed = f->idle;
        return;
    }
    set(&f->idle, 1 - busy / window);
    set(&f->device_time, busy);
    struct mean host = {0};
    for (uint32_t h = 0; h < f->nhosts; h++)
        if (f->by_host[h].has_device) {
            mean_add(&host, f->by_host[h].idle);
            if (host.max == f->by_host[h].idle)
                f->idle.max_host = f->by_host[h].name;
        }
    f->idle.has_spread = f->nhosts > 1;
    f->idle.min = host.min, f->idle.max = host.max, f->idle.sd = mean_sd(&host);
    if (f->all.hardware == OP_HW_TPU && f->all.busy_ps + f->all.idle_ps) {
        set(&f->duty_cycle,
            (double)f->all.busy_ps / ((double)f->all.busy_ps + (double)f->all.idle_ps));
    } else {
        set(&f->duty_cycle, busy / window);
        note(&f->duty_cycle, "kernels and copies of any stream");
    }
}

static void share_figures(struct figures *f)
{
    double events = 0, custom = 0, ops = (double)f->stats->device.total_op_ps;
    double busy = (double)f->busy_ps;
    bool gpu = f->all.hardware == OP_HW_GPU;
    if (!f->busy_ps) {
        if (f->window_ps)
            missing(&f->collective, "no op ran");
        f->unattributed = f->collective;
        return;
    }
    for (uint32_t h = 0; h < f->nhosts; h++)
        for (uint32_t c = 0; c < f->hosts[h].ncores; c++)
            if (is_device(&f->hosts[h].cores[c]))
                events += (double)f->hosts[h].cores[c].event_ps;
    set(&f->collective, (double)f->wait_ps / (double)f->window_ps);
    for (uint32_t i = 0; i < f->stats->device.n; i++)
        if (figure_is_custom(&f->stats->device.ops[i]))
            custom += (double)f->stats->device.ops[i].self_ps;
    double loose = gpu ? (double)f->loose_ps : busy > ops ? busy - ops : 0;
    double all = gpu ? events : busy;
    set(&f->unattributed, all > 0 ? (loose + custom) / all : 0);
    note(&f->unattributed, "custom calls %.1f %%, without an HLO op %.1f %%",
         100 * custom / (all > 0 ? all : 1), 100 * loose / (all > 0 ? all : 1));
}

/* --- rates --- */

static void of_peak(struct figure *out, const struct figure *rate, double peak, const char *from,
                    const char *key)
{
    if (!rate->known) {
        *out = *rate;
        return;
    }
    if (!(peak > 0)) {
        missing(out, "the peak of this device is not known: give it with --peak %s=VALUE", key);
        return;
    }
    set(out, rate->v / peak);
    if (out->v > 1)
        note(out,
             "above 100 %%: the peak (from %s) is too low for this device, or work was counted "
             "that did not run",
             from);
}

static void rate_figures(struct figures *f)
{
    double window = (double)f->window_ps / 1e12;
    const char *gpu_note = "without library calls whose cost the profile does not say";
    if (!f->window_ps) {
        no_device(&f->flop_rate);
        f->hbm_rate = f->flop_rate;
    } else {
        if (f->flops > 0)
            set(&f->flop_rate, f->flops / window);
        else
            missing(&f->flop_rate,
                    "no op says how many flops it does: the profile has no HLO cost; "
                    "capture with HLO protos (enable_hlo_proto)");
        if (f->hbm_bytes > 0)
            set(&f->hbm_rate, f->hbm_bytes / window);
        else
            missing(&f->hbm_rate,
                    "no op says how many bytes it moves: the profile has no HLO cost; "
                    "capture with HLO protos (enable_hlo_proto)");
        if (f->all.hardware == OP_HW_GPU && f->flop_rate.known)
            note(&f->flop_rate, "%s", gpu_note);
        if (f->all.hardware == OP_HW_GPU && f->hbm_rate.known)
            note(&f->hbm_rate, "%s", gpu_note);
    }
    of_peak(&f->mxu, &f->flop_rate, f->peaks.flops, f->peaks.flops_from, "flops");
    of_peak(&f->hbm, &f->hbm_rate, f->peaks.hbm, f->peaks.hbm_from, "hbm");
}

/* --- steps --- */

static void name_basis(struct figures *f)
{
    for (uint32_t h = 0; h < f->nhosts; h++) {
        const struct figure_host *x = &f->hosts[h];
        struct xp_span name = figure_plain(x->marker);
        int n = (int)(name.n < 100 ? name.n : 100);
        if (x->basis == FIGURE_NO_STEPS || f->basis != FIGURE_NO_STEPS)
            continue;
        f->basis = x->basis;
        if (x->basis == FIGURE_MODULE_RUNS || x->basis == FIGURE_HOST_EVENTS)
            snprintf(f->basis_text, sizeof f->basis_text, "inferred from %llu runs of %.*s",
                     (unsigned long long)figure_runs(x), n, (const char *)name.p);
    }
}

static void no_steps(struct figures *f, struct figure *out)
{
    bool some = false;
    for (uint32_t h = 0; h < f->nhosts; h++)
        some |= f->hosts[h].basis != FIGURE_NO_STEPS;
    if (f->stats->nhosts == 0)
        missing(out, "nothing was read");
    else if (f->nsteps)
        missing(out, "what follows the profile's last step was not captured: choose more steps");
    else if (some)
        missing(out, "no step lies wholly in this range: choose a wider one, or steps");
    else
        missing(out, "the profile has no step markers, and no module ran twice: " CAPTURE_STEPS);
}

static void step_figures(struct figures *f)
{
    struct mean all = {0}, host = {0};
    uint32_t whole = 0;
    for (uint32_t i = 0; i < f->nsteps; i++)
        if (f->steps[i].whole) {
            mean_add(&all, f->steps[i].mean_ps);
            whole++;
        }
    if (!whole) {
        no_steps(f, &f->step_time_mean);
        f->step_time_sd = f->nsteps_figure = f->step_time_mean;
        return;
    }
    set(&f->nsteps_figure, f->nsteps);
    note(&f->nsteps_figure, "%s%s%s", f->basis_text,
         f->basis_text[0] && whole < f->nsteps ? "; " : "",
         whole < f->nsteps ? "the last ends with the capture and is not part of step times" : "");
    set(&f->step_time_mean, mean_of(&all));
    note(&f->step_time_mean, "%s", f->basis_text);
    if (whole > 1)
        set(&f->step_time_sd, mean_sd(&all));
    else
        missing(&f->step_time_sd, "there is one whole step only: capture more");
    note(&f->step_time_sd, "%s", f->basis_text);
    for (uint32_t h = 0; h < f->nhosts; h++)
        if (f->by_host[h].has_steps) {
            mean_add(&host, f->by_host[h].step_ps);
            if (host.max == f->by_host[h].step_ps)
                f->step_time_mean.max_host = f->by_host[h].name;
        }
    const struct mean *s = host.n > 1 ? &host : &all;
    f->step_time_mean.has_spread = true;
    f->step_time_mean.min = s->min;
    f->step_time_mean.max = s->max;
    f->step_time_mean.sd = mean_sd(s);
}

static void input_figure(struct figures *f)
{
    double input = 0, span = 0;
    bool seen = false;
    for (uint32_t h = 0; h < f->nhosts; h++) {
        seen |= f->hosts[h].has_input;
        for (uint32_t c = 0; c < f->hosts[h].ncores; c++) {
            const struct figure_core *core = &f->hosts[h].cores[c];
            for (uint32_t i = 0; core->kind != FIGURE_SPARSE_CORE && i < core->nsteps; i++) {
                if (core->steps[i].last)
                    continue; /* what follows it was not captured */
                input += (double)core->steps[i].input_ps;
                span += (double)figure_length(core->steps[i].begin_ps, core->steps[i].until_ps);
            }
        }
    }
    if (!(span > 0))
        no_steps(f, &f->input);
    else if (!seen && !(input > 0))
        missing(&f->input,
                "no thread of a host shows its input pipeline, so waiting for it cannot be told "
                "from other pauses: capture with host_tracer_level=2, or annotate the loader with "
                "TraceAnnotation(\"DataLoader\")");
    else
        set(&f->input, input / span);
    if (f->input.known)
        note(&f->input, "%s", f->basis_text);
}

/* --- all of it --- */

static void set_limits(struct figures *f, const struct figures_ask *ask)
{
    struct xp_span chip = f->all.device_type;
    for (uint32_t h = f->nhosts; h--;)
        if (f->hosts[h].chip.n)
            chip = f->hosts[h].chip;
    f->limits = f->all.limits;
    for (uint32_t h = f->stats->nhosts; h--;)
        if (f->stats->hosts[h].limits.ngbs) { /* these are lost where hosts are joined */
            f->limits.has_cmem = f->stats->hosts[h].limits.has_cmem;
            f->limits.has_merged_vmem = f->stats->hosts[h].limits.has_merged_vmem;
            f->limits.has_megacore = f->stats->hosts[h].limits.has_megacore;
        }
    device_peaks_of(chip, &f->all.limits, ask->peaks, ask->npeaks, &f->peaks);
    f->limits.peak_tflops = f->peaks.flops / 1e12;
    f->limits.gbs[OP_BW_HBM] = f->peaks.hbm / 1e9;
}

enum xp_status figures_open(struct xp_span bytes, const struct op_stats *stats,
                            const struct figures_ask *ask, struct xp_arena *a, struct figures *out,
                            struct xp_error *err)
{
    *out = (struct figures){.stats = stats};
    XP_TRY(figures_unpack(bytes, a, &out->hosts, &out->nhosts, err));
    op_stats_session(stats, &out->all);
    set_limits(out, ask);
    sum_devices(out);
    sum_ops(out);
    XP_TRY(figure_run(out, ask, a, err));
    name_basis(out);
    device_figures(out);
    share_figures(out);
    rate_figures(out);
    step_figures(out);
    input_figure(out);
    return XP_OK;
}
