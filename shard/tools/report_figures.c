#include "shard/tools/report_figures.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static double rounded(double v, bool whole)
{
    return whole ? floor(v + 0.5) : v;
}

void report_figure(struct report *r, const char *id, const struct figure *f, bool whole)
{
    struct report_spread s = {
        .min = f->min, .max = f->max, .sd = f->sd, .max_host = f->max_host, .whole = whole};
    struct report_cell c = report_none();
    if (f->known && whole && fabs(f->v) < 9e18)
        c = report_of_i64((int64_t)rounded(f->v, true));
    else if (f->known)
        c = report_of_double(f->v);
    report_metric(r, id, c, f->reason[0] ? f->reason : NULL, f->note, f->has_spread ? &s : NULL);
}

/* --- sets of metrics --- */

static bool has_device(const struct figures *f)
{
    return f->window_ps > 0;
}

void report_environment(struct report *r, const struct figures *f)
{
    report_u64(r, "hosts", f->nhosts, NULL);
    if (f->all.device_cores)
        report_u64(r, "cores", f->all.device_cores, NULL);
    else
        report_na(r, "cores", "the profile has no device planes: only host threads were captured");
    if (f->all.device_type.n)
        report_string(r, "device_type", f->all.device_type, f->peaks.name ? f->peaks.name : NULL);
    else
        report_na(r, "device_type", "the profile does not say what it ran on");
}

void report_steps(struct report *r, const struct figures *f)
{
    report_figure(r, "step_time_mean", &f->step_time_mean, true);
    report_figure(r, "step_time_sd", &f->step_time_sd, true);
    report_figure(r, "steps", &f->nsteps_figure, true);
    report_figure(r, "input_fraction", &f->input, false);
}

static void peak(struct report *r, const char *id, double v, const char *from, const char *key,
                 const struct figures *f)
{
    char note[200];
    if (!(v > 0)) {
        report_na(r, id, "%s",
                  has_device(f) ? "the device is in no table of peaks and the profile "
                                  "does not say: give it with --peak KEY=VALUE "
                                  "(keys: flops, hbm)"
                                : "there is no device in the profile");
        return;
    }
    if (strcmp(from, "table") == 0)
        snprintf(note, sizeof note, "%s (%s)", f->peaks.name, f->peaks.source);
    else
        snprintf(note, sizeof note, "%s",
                 strcmp(from, "profile") == 0 ? "as the profile says" : "as given with --peak");
    (void)key;
    report_double(r, id, v, note);
}

void report_usage(struct report *r, const struct figures *f)
{
    report_figure(r, "idle_fraction", &f->idle, false);
    report_figure(r, "duty_cycle", &f->duty_cycle, false);
    report_figure(r, "device_time", &f->device_time, true);
    report_figure(r, "mxu_utilization", &f->mxu, false);
    report_figure(r, "flop_rate", &f->flop_rate, false);
    report_figure(r, "hbm_utilization", &f->hbm, false);
    report_figure(r, "hbm_rate", &f->hbm_rate, false);
    peak(r, "peak_flop_rate", f->peaks.flops, f->peaks.flops_from, "flops", f);
    peak(r, "peak_hbm_rate", f->peaks.hbm, f->peaks.hbm_from, "hbm", f);
}

/* --- the roof --- */

static const char *roof_reason(const struct figures *f)
{
    if (!(f->flops > 0))
        return f->flop_rate.reason;
    if (!(f->hbm_bytes > 0))
        return f->hbm_rate.reason;
    return "peaks of this device are not known: give them with --peak flops=VALUE and --peak "
           "hbm=VALUE";
}

/* What limits is used as much of its peak as the program reaches of its optimum, and of the other
 * it could not use more: so the share is one for both. */
static void optimum(struct report *r, const struct figures *f, double intensity, double ridge)
{
    char note[200];
    double use = f->mxu.known ? f->mxu.v : 0;
    use = f->hbm.known && f->hbm.v > use ? f->hbm.v : use;
    if (!f->mxu.known && !f->hbm.known) {
        report_na(r, "roofline_efficiency", "%s", f->mxu.reason);
        return;
    }
    if (intensity > 0 && ridge > 0)
        snprintf(note, sizeof note, "%s%s bound", use > 1 ? "above 100 %; " : "",
                 intensity < ridge ? "memory" : "compute");
    else
        snprintf(note, sizeof note, "%sof %s only", use > 1 ? "above 100 %; " : "",
                 f->mxu.known ? "the FLOP rate" : "the HBM bandwidth");
    report_double(r, "roofline_efficiency", use, note);
}

void report_roof(struct report *r, const struct figures *f)
{
    double ridge = f->peaks.flops > 0 && f->peaks.hbm > 0 ? f->peaks.flops / f->peaks.hbm : 0;
    double intensity = f->flops > 0 && f->hbm_bytes > 0 ? f->flops / f->hbm_bytes : 0;
    if (ridge > 0)
        report_double(r, "ridge_intensity", ridge, NULL);
    else
        report_na(r, "ridge_intensity",
                  "peaks of this device are not known: give them with "
                  "--peak flops=VALUE and --peak hbm=VALUE");
    if (intensity > 0)
        report_double(r, "arithmetic_intensity", intensity, NULL);
    else
        report_na(r, "arithmetic_intensity", "%s",
                  f->flop_rate.known ? f->hbm_rate.reason : f->flop_rate.reason);
    optimum(r, f, intensity, ridge);
    if (ridge > 0 && intensity > 0) {
        bool memory = intensity < ridge;
        report_double(r, "optimum_flop_rate", memory ? intensity * f->peaks.hbm : f->peaks.flops,
                      memory ? "bound by memory" : "the peak");
        report_double(r, "optimum_hbm_rate", memory ? f->peaks.hbm : f->peaks.flops / intensity,
                      memory ? "the peak" : "bound by compute");
    } else {
        report_na(r, "optimum_flop_rate", "%s", roof_reason(f));
        report_na(r, "optimum_hbm_rate", "%s", roof_reason(f));
    }
}

/* --- hosts --- */

static const struct report_column host_columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"cores", "Cores", "count", REPORT_COL_NUMBER, true, "devices of the host"},
    {"step_time", "Step time", "ps", REPORT_COL_NUMBER, false, "mean over its cores' whole steps"},
    {"step_sd", "Deviation", "ps", REPORT_COL_NUMBER, false, "of these"},
    {"own_time", "Step less waiting", "ps", REPORT_COL_NUMBER, false,
     "step time less collectives, barriers and receives: the longest holds up the others"},
    {"idle", "Idle", "fraction", REPORT_COL_NUMBER, false, "of its devices' windows"},
    {"waiting", "Waiting", "fraction", REPORT_COL_NUMBER, false,
     "time in collectives, barriers and receives, of its devices' windows"},
    {"input", "Input", "fraction", REPORT_COL_NUMBER, false,
     "waiting for input, of its devices' windows"},
    {"late", "Ends late by", "ps", REPORT_COL_NUMBER, false,
     "mean end of its steps after the earliest host's, clocks set right"},
    {"clock", "Clock offset", "ps", REPORT_COL_NUMBER, false,
     "to add to its times to have those of the first host"},
};

static void host_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct figures *f = ctx;
    const struct host_figures *h = &f->by_host[i];
    c[0] = report_of_text(h->name);
    c[1] = report_of_u64(h->cores);
    if (h->has_steps) {
        c[2] = report_of_u64((uint64_t)rounded(h->step_ps, true));
        c[3] = report_of_u64((uint64_t)rounded(h->step_sd_ps, true));
        c[4] = report_of_i64((int64_t)rounded(h->own_ps, true));
    }
    if (h->has_device) {
        c[5] = report_of_double(h->idle);
        c[6] = report_of_double(h->wait);
        if (f->hosts[i].has_input || h->input > 0)
            c[7] = report_of_double(h->input);
    }
    if (h->has_late)
        c[8] = report_of_i64((int64_t)rounded(h->late_ps, true));
    if (h->has_clock)
        c[9] = report_of_i64((int64_t)rounded(h->clock_ps, true));
}

void report_table_hosts(struct report *r, const struct figures *f, struct xp_arena *a)
{
    (void)a;
    report_table(r, &(struct report_rows){.id = "hosts",
                                          .title = "Hosts",
                                          .columns = host_columns,
                                          .ncolumns = sizeof host_columns / sizeof *host_columns,
                                          .n = f->nhosts,
                                          .row = host_row,
                                          .ctx = (void *)f});
}

/* --- steps --- */

static const struct report_column step_columns[] = {
    {"step", "Step", "", REPORT_COL_NUMBER, false, "number of the step, as its marker says"},
    {"name", "Name", "", REPORT_COL_TEXT, false, "of its marker"},
    {"time", "Time", "ps", REPORT_COL_NUMBER, true, "mean over cores"},
    {"shortest", "Shortest core", "ps", REPORT_COL_NUMBER, false, ""},
    {"longest", "Longest core", "ps", REPORT_COL_NUMBER, false, ""},
    {"compute", "Compute", "ps", REPORT_COL_NUMBER, true, "busy less waiting, mean over cores"},
    {"waiting", "Waiting", "ps", REPORT_COL_NUMBER, true,
     "collectives, barriers and receives, mean over cores"},
    {"input", "Input", "ps", REPORT_COL_NUMBER, true, "waiting for input, mean over cores"},
    {"idle", "Other idle", "ps", REPORT_COL_NUMBER, true, "what is left of the step"},
    {"worst_input", "Worst input share", "fraction", REPORT_COL_NUMBER, false,
     "of the core that waited most"},
    {"whole", "Whole", "", REPORT_COL_BOOL, false, "whether its end is known"},
    {"host", "Slowest host", "", REPORT_COL_TEXT, false,
     "of the core with the longest step less waiting"},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, "of that core"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false,
     "of the step there, session time of that host"},
};

static uint64_t ps(double v)
{
    return v > 0 ? (uint64_t)(v + 0.5) : 0;
}

/* Compute, waiting, input, the rest. */
static void split(const struct figures *f, const struct run_step *s, double out[4])
{
    bool cpu = !f->window_ps;
    double idle = s->mean_ps - (cpu ? 0 : s->busy_ps + s->barrier_ps);
    out[1] = s->wait_ps;
    out[2] = s->input_ps > idle ? idle : s->input_ps; /* the rest lies after the step's end */
    out[2] = out[2] > 0 ? out[2] : 0;
    out[0] = cpu ? s->mean_ps - out[2] : s->busy_ps + s->barrier_ps - s->wait_ps;
    out[3] = s->mean_ps - out[0] - out[1] - out[2];
}

static void step_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct figures *f = ctx;
    const struct run_step *s = &f->steps[i];
    double part[4];
    split(f, s, part);
    c[0] = report_of_i64(s->number);
    c[1] = s->name.n ? report_of_text(s->name) : report_none();
    c[2] = report_of_u64(ps(s->mean_ps));
    c[3] = report_of_u64(ps(s->min_ps));
    c[4] = report_of_u64(ps(s->max_ps));
    for (int k = 0; k < 4 && f->window_ps; k++)
        c[5 + k] = report_of_u64(ps(part[k]));
    if (!f->input.known)
        c[7] = report_none();
    c[9] = f->input.known ? report_of_double(s->worst_input) : report_none();
    c[10] = report_of_bool(s->whole);
    c[11] = report_of_text(f->hosts[s->slowest_host].name);
    c[12] = report_of_text(f->hosts[s->slowest_host].cores[s->slowest_core].name);
    c[13] = report_of_i64(s->begin_ps);
}

void report_table_steps(struct report *r, const struct figures *f)
{
    report_table(r, &(struct report_rows){.id = "steps",
                                          .title = "Steps",
                                          .note = f->basis_text[0] ? f->basis_text : NULL,
                                          .columns = step_columns,
                                          .ncolumns = sizeof step_columns / sizeof *step_columns,
                                          .n = f->nsteps,
                                          .row = step_row,
                                          .ctx = (void *)f});
    report_link(r, "steps", "step");
}

static void step_point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct figures *f = ctx;
    double part[4];
    split(f, &f->steps[i], part);
    *x = report_of_i64(f->steps[i].number);
    for (int k = 0; k < 4; k++)
        y[k] = report_of_u64(ps(part[k]));
}

void report_series_steps(struct report *r, const struct figures *f)
{
    static const char *const names[] = {"compute", "waiting", "input", "idle"};
    if (f->nsteps)
        report_series(r, &(struct report_points){.id = "steps",
                                                 .title = "Step time",
                                                 .x_label = "step",
                                                 .y_label = "Time",
                                                 .y_unit = "ps",
                                                 .kind = "stack",
                                                 .names = names,
                                                 .nnames = 4,
                                                 .n = f->nsteps,
                                                 .point = step_point,
                                                 .ctx = (void *)f});
}

/* --- pauses --- */

static const struct report_column pause_columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, ""},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, "the core that did nothing"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, "session time of that host"},
    {"time", "Time", "ps", REPORT_COL_NUMBER, true, "until the next op"},
    {"cause", "Cause", "", REPORT_COL_TEXT, false,
     "input: the host waited for it, or moved it, for half of the pause or more"},
};

struct pauses {
    const struct figures *f;
    struct {
        uint32_t host, core, pause;
    } * v;
};

static void pause_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct pauses *p = ctx;
    const struct figure_host *h = &p->f->hosts[p->v[i].host];
    const struct figure_core *core = &h->cores[p->v[i].core];
    const struct figure_pause *x = &core->pauses[p->v[i].pause];
    c[0] = report_of_text(h->name);
    c[1] = report_of_text(core->name);
    c[2] = report_of_i64(x->begin_ps);
    c[3] = report_of_u64(figure_length(x->begin_ps, x->end_ps));
    c[4] = x->input       ? report_of_text(XP_SPAN_LIT("input"))
           : h->has_input ? report_of_text(XP_SPAN_LIT("other"))
                          : report_none();
}

static uint32_t pauses_of(const struct figure_core *c)
{
    return c->kind == FIGURE_SPARSE_CORE ? 0 : c->npauses;
}

void report_table_pauses(struct report *r, const struct figures *f)
{
    struct pauses p = {.f = f};
    size_t n = 0, max = 1;
    for (uint32_t h = 0; h < f->nhosts; h++)
        max += f->hosts[h].ncores * (size_t)FIGURE_PAUSES_MAX;
    p.v = xp_arena_alloc(r->a, max * sizeof *p.v);
    if (!p.v) {
        r->busy = true;
        return;
    }
    for (uint32_t h = 0; h < f->nhosts; h++)
        for (uint32_t c = 0; c < f->hosts[h].ncores; c++)
            for (uint32_t k = 0; k < pauses_of(&f->hosts[h].cores[c]); k++, n++)
                p.v[n].host = h, p.v[n].core = c, p.v[n].pause = k;
    report_table(r, &(struct report_rows){.id = "pauses",
                                          .title = "Longest pauses",
                                          .note = "the longest of each core",
                                          .columns = pause_columns,
                                          .ncolumns = sizeof pause_columns / sizeof *pause_columns,
                                          .n = n,
                                          .row = pause_row,
                                          .ctx = &p,
                                          .sort = "time",
                                          .descending = true});
    report_link(r, "pauses", "time");
}

/* --- remarks --- */

static void note_hosts(struct report *r, const struct figures *f)
{
    for (uint32_t h = 0; h < f->nhosts; h++)
        if (f->hosts[h].steps_cut)
            report_note(r, REPORT_INFO, "steps_cut",
                        "%.*s has more than %d steps a core: later ones are not looked at",
                        (int)(f->hosts[h].name.n < 100 ? f->hosts[h].name.n : 100),
                        (const char *)f->hosts[h].name.p, FIGURE_STEPS_MAX);
    for (uint32_t i = 0; i < f->stats->nhosts; i++) {
        const struct op_host *h = &f->stats->hosts[i];
        for (uint32_t k = 0; k < h->nwarnings; k++)
            report_note(r, REPORT_WARNING, "profiler_warning", "%.*s",
                        (int)(h->warnings[k].n < 500 ? h->warnings[k].n : 500),
                        (const char *)h->warnings[k].p);
        for (uint32_t k = 0; k < h->nerrors; k++)
            report_note(r, REPORT_ERROR, "profiler_error", "%.*s",
                        (int)(h->errors[k].n < 500 ? h->errors[k].n : 500),
                        (const char *)h->errors[k].p);
    }
}

void report_remarks(struct report *r, const struct figures *f)
{
    if (f->basis_text[0])
        report_note(r, REPORT_INFO, "steps_inferred",
                    "The profile has no step markers: steps are %s. step_marker= names another "
                    "module or host event.",
                    f->basis_text);
    else if (!f->nsteps)
        report_note(r, REPORT_WARNING, "no_steps", "%s", f->step_time_mean.reason);
    if (f->nsteps && !f->common)
        report_note(r, REPORT_WARNING, "no_common_steps",
                    "The hosts have no step in common: all of them are counted.");
    if (!f->window_ps)
        report_note(r, REPORT_WARNING, "no_device", "%s", f->idle.reason);
    if (f->mxu.known && f->mxu.v > 1)
        report_note(r, REPORT_WARNING, "above_peak", "FLOP utilization is %.0f %%: %s",
                    100 * f->mxu.v, f->mxu.note);
    if (f->hbm.known && f->hbm.v > 1)
        report_note(r, REPORT_WARNING, "above_peak", "HBM utilization is %.0f %%: %s",
                    100 * f->hbm.v, f->hbm.note);
    note_hosts(r, f);
}

void report_straggler(struct report *r, const struct figures *f)
{
    if (f->straggler_text[0])
        report_string(r, "straggler", xp_span_str(f->straggler_text), f->straggler.note);
    else if (f->straggler.known)
        report_string(r, "straggler", XP_SPAN_LIT("none"), f->straggler.note);
    else
        report_na(r, "straggler", "%s", f->straggler.reason);
    report_figure(r, "clock_offset", &f->clock, true);
}
