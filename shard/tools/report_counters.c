#include <math.h>
#include <stdio.h>

#include "shard/tools/counter_facts.h"
#include "shard/tools/reports_more.h"

/* Reports of hardware counters: their values, what they say about each unit, and about kernels. */

#define NO_COUNTERS                                                                                \
    "the profile has no hardware counters of a TPU: they are taken only when the capture asks "    \
    "for them (tpu_trace_mode with counters, xprof kernel profiling)"
#define UNKNOWN_CHIP                                                                               \
    "the counters are of a chip whose units are not known here (known: TPU v6e, v7x); their "      \
    "values are in perf_counters"

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the counters");
}

/* --- perf_counters: values --- */

struct counter {
    struct xp_span host, kernel, name, words, set;
    int64_t chip, sample;
    uint64_t value;
};

struct counters {
    struct counter *v;
    size_t n, zeros;
};

static const struct report_column value_columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"chip", "Chip", "", REPORT_COL_NUMBER, false, "its number in the slice, else of the host"},
    {"kernel", "Kernel", "", REPORT_COL_TEXT, false, "line that holds the sample"},
    {"sample", "Sample", "", REPORT_COL_NUMBER, false, "number of that line"},
    {"counter", "Counter", "", REPORT_COL_TEXT, false, "name"},
    {"value", "Value", "count", REPORT_COL_NUMBER, false, "as it was read"},
    {"set", "Set", "", REPORT_COL_TEXT, false, "what it belongs to"},
    {"words", "Meaning", "", REPORT_COL_TEXT, false, "what it counts"},
};

static struct report_cell text_or_none(struct xp_span s)
{
    return s.n ? report_of_text(s) : report_none();
}

static void value_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct counter *v = &((const struct counters *)ctx)->v[i];
    c[0] = report_of_text(v->host);
    c[1] = report_of_i64(v->chip);
    c[2] = text_or_none(v->kernel);
    c[3] = report_of_i64(v->sample);
    c[4] = report_of_text(v->name);
    c[5] = report_of_u64(v->value);
    c[6] = text_or_none(v->set);
    c[7] = text_or_none(v->words);
}

/* All values; those that are 0 only if they are asked for. */
static bool read_values(struct facts *f, bool zeros, struct counters *c, size_t max)
{
    while (c->n < max && facts_get_u64(f) == PERF_COUNTERS_ROW) {
        struct counter *v = &c->v[c->n];
        *v = (struct counter){.host = f->host, .chip = facts_get_i64(f)};
        v->kernel = facts_get_text(f);
        v->sample = facts_get_i64(f);
        v->name = facts_get_text(f);
        v->value = facts_get_u64(f);
        v->words = facts_get_text(f);
        v->set = facts_get_text(f);
        c->zeros += !v->value;
        c->n += zeros || v->value;
    }
    return !f->bad;
}

static enum xp_status write_values(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct counters c = {0};
    struct facts *hosts;
    struct xp_span asked = {0};
    size_t n, max = merged.n / 7 + 1; /* a row is 7 values at least */
    XP_TRY(facts_open(merged, r->a, &hosts, &n, err));
    bool zeros = tool_arg(args, "zeros", &asked) && xp_span_eq(asked, XP_SPAN_LIT("1"));
    c.v = xp_arena_alloc(r->a, max * sizeof *c.v);
    if (!c.v)
        return no_memory(err);
    for (size_t i = 0; i < n; i++)
        if (!read_values(&hosts[i], zeros, &c, max - 1))
            return facts_ok(&hosts[i], err);
    size_t all = zeros ? c.n : c.n + c.zeros;
    if (all)
        report_u64(r, "counters", all, NULL);
    else
        report_na(r, "counters", NO_COUNTERS);
    if (c.zeros && !zeros)
        report_note(r, REPORT_INFO, "zeros_hidden",
                    "%zu counters that are 0 are not shown; zeros=1 shows them.", c.zeros);
    report_table(r, &(struct report_rows){.id = "counters",
                                          .title = "Counters",
                                          .columns = value_columns,
                                          .ncolumns = sizeof value_columns / sizeof *value_columns,
                                          .n = c.n,
                                          .row = value_row,
                                          .ctx = &c});
    return XP_OK;
}

const struct tool_report report_perf_counters = {
    .question = "What is the value of a hardware counter?",
    .map = perf_counters_map_any,
    .merge = facts_merge,
    .write = write_values,
};

/* --- samples and what they say --- */

struct sample {
    struct xp_span host, type, kernel;
    int64_t device, id, ps;
    struct tpu_metric *m;
    size_t n;
};

struct samples {
    struct sample *v;
    size_t n;
    size_t units; /* metrics of all samples */
};

static bool read_sample(struct facts *f, const struct counter_facts_device *d,
                        const struct counter_facts_sample *s, struct xp_arena *a,
                        struct samples *to)
{
    struct tpu_metric m[TPU_METRICS_MAX];
    size_t n = tpu_metrics(d->chip, &s->values, m);
    struct sample *v = &to->v[to->n++];
    *v = (struct sample){.host = f->host,
                         .type = d->type,
                         .kernel = s->kernel,
                         .device = d->id,
                         .id = s->id,
                         .ps = s->duration_ps ? s->duration_ps : s->kernel_ps,
                         .m = xp_arena_alloc(a, (n + 1) * sizeof *m),
                         .n = n};
    if (v->m)
        memcpy(v->m, m, n * sizeof *m);
    to->units += n;
    return v->m != NULL;
}

static enum xp_status read_samples(struct xp_span merged, struct xp_arena *a, struct samples *to,
                                   struct xp_error *err)
{
    struct facts *hosts;
    size_t n, max = merged.n / 5 + 1; /* a sample is 5 values at least */
    XP_TRY(facts_open(merged, a, &hosts, &n, err));
    *to = (struct samples){.v = xp_arena_alloc(a, max * sizeof *to->v)};
    if (!to->v)
        return no_memory(err);
    for (size_t i = 0; i < n; i++) {
        struct counter_facts_device d;
        struct counter_facts_sample s;
        while (counter_facts_device(&hosts[i], &d))
            while (to->n < max && counter_facts_sample(&hosts[i], a, &s))
                if (!read_sample(&hosts[i], &d, &s, a, to))
                    return no_memory(err);
        XP_TRY(facts_ok(&hosts[i], err));
    }
    return XP_OK;
}

static void note_samples(struct report *r, const struct samples *s)
{
    if (s->n)
        report_u64(r, "samples", s->n, NULL);
    else
        report_na(r, "samples", NO_COUNTERS);
    if (s->n && !s->units)
        report_note(r, REPORT_WARNING, "units_unknown", UNKNOWN_CHIP);
}

/* --- utilization_viewer: units --- */

struct unit {
    const struct sample *s;
    const struct tpu_metric *m;
};

static const struct report_column unit_columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"device", "Device", "", REPORT_COL_NUMBER, false, "number"},
    {"sample", "Sample", "", REPORT_COL_NUMBER, false, "number of its line"},
    {"kernel", "Kernel", "", REPORT_COL_TEXT, false, "that ran"},
    {"node", "Node", "", REPORT_COL_NUMBER, false, "core, die or SparseCore"},
    {"unit", "Unit", "", REPORT_COL_TEXT, false, "of the hardware"},
    {"busy", "Busy", "fraction", REPORT_COL_NUMBER, false, "achieved / peak"},
    {"achieved", "Achieved", "", REPORT_COL_NUMBER, false, "in the unit of `measure`"},
    {"peak", "Peak", "", REPORT_COL_NUMBER, false, "what it could have done in that time"},
    {"measure", "In", "", REPORT_COL_TEXT, false, "cycles, instructions, bytes"},
};

static void unit_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct unit *u = &((const struct unit *)ctx)[i];
    c[0] = report_of_text(u->s->host);
    c[1] = report_of_i64(u->s->device);
    c[2] = report_of_i64(u->s->id);
    c[3] = text_or_none(u->s->kernel);
    c[4] = report_of_u64(u->m->node);
    c[5] = report_of_text(xp_span_str(u->m->name));
    c[6] = report_ratio(u->m->achieved, u->m->peak);
    c[7] = report_of_double(u->m->achieved);
    c[8] = u->m->peak > 0 ? report_of_double(u->m->peak) : report_none();
    c[9] = report_of_text(xp_span_str(u->m->unit));
}

/* "No MXU Busy": how long none of them worked. */
static bool counts_rest(const struct tpu_metric *m)
{
    return strncmp(m->name, "No ", 3) == 0;
}

/* More than all there was is said of counters that are not of one span: no word about these. */
static void say_busiest(struct report *r, const struct unit *v, size_t n)
{
    const struct unit *most = NULL;
    size_t above = 0;
    for (size_t i = 0; i < n; i++) {
        const struct tpu_metric *m = v[i].m;
        if (m->peak > 0 && m->achieved > m->peak)
            above++;
        else if (m->peak > 0 && !counts_rest(m) &&
                 (!most || m->achieved / m->peak > most->m->achieved / most->m->peak))
            most = &v[i];
    }
    if (most)
        report_verdict(r, "%s is busiest: %.1f %% of what it could do.", most->m->name,
                       100 * most->m->achieved / most->m->peak);
    if (above)
        report_note(r, REPORT_WARNING, "above_peak",
                    "%zu figures are above 100 %%: their counters are not of one span.", above);
}

static enum xp_status write_units(struct xp_span merged, const struct tool_args *args,
                                  struct report *r, struct xp_error *err)
{
    struct samples s;
    size_t n = 0;
    (void)args;
    XP_TRY(read_samples(merged, r->a, &s, err));
    struct unit *v = xp_arena_alloc(r->a, (s.units + 1) * sizeof *v);
    if (!v)
        return no_memory(err);
    for (size_t i = 0; i < s.n; i++)
        for (size_t k = 0; k < s.v[i].n; k++)
            v[n++] = (struct unit){&s.v[i], &s.v[i].m[k]};
    say_busiest(r, v, n);
    note_samples(r, &s);
    report_table(r, &(struct report_rows){.id = "units",
                                          .title = "Units of the hardware",
                                          .columns = unit_columns,
                                          .ncolumns = sizeof unit_columns / sizeof *unit_columns,
                                          .n = n,
                                          .row = unit_row,
                                          .ctx = v,
                                          .sort = "busy",
                                          .descending = true});
    return XP_OK;
}

const struct tool_report report_utilization_viewer = {
    .question = "Which units of the hardware were busy?",
    .map = counter_facts_map_any,
    .merge = facts_merge,
    .write = write_units,
};

/* --- kernel_utilization: kernels --- */

static const struct report_column kernel_columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"device", "Device", "", REPORT_COL_NUMBER, false, "number"},
    {"sample", "Sample", "", REPORT_COL_NUMBER, false, "number of its line"},
    {"kernel", "Kernel", "", REPORT_COL_TEXT, false, "that ran while it was counted"},
    {"time", "Time", "ps", REPORT_COL_NUMBER, false, "of the sample, or else of the kernel"},
    {"mxu", "Matrix units", "fraction", REPORT_COL_NUMBER, false, "busy, mean of all"},
    {"bf16", "bf16", "fraction", REPORT_COL_NUMBER, false, "of the matrix units' cycles"},
    {"fp8", "fp8", "fraction", REPORT_COL_NUMBER, false, "of the matrix units' cycles"},
    {"int8", "int8", "fraction", REPORT_COL_NUMBER, false, "of the matrix units' cycles"},
    {"int4", "int4", "fraction", REPORT_COL_NUMBER, false, "of the matrix units' cycles"},
    {"scalar", "Scalar unit", "fraction", REPORT_COL_NUMBER, false, "busy"},
    {"vector", "Vector ALUs", "fraction", REPORT_COL_NUMBER, false, "busy"},
    {"hbm", "HBM", "fraction", REPORT_COL_NUMBER, false, "bytes read and written / peak"},
};

struct sums {
    double achieved, peak;
};

static struct sums sum_of(const struct sample *s, const char *name, bool prefix)
{
    struct sums sum = {0};
    for (size_t i = 0; i < s->n; i++)
        if (s->m[i].peak > 0 && (prefix ? strncmp(s->m[i].name, name, strlen(name)) == 0
                                        : strcmp(s->m[i].name, name) == 0)) {
            sum.achieved += s->m[i].achieved;
            sum.peak += s->m[i].peak;
        }
    return sum;
}

static struct report_cell busy(const struct sample *s, const char *name, bool prefix)
{
    struct sums sum = sum_of(s, name, prefix);
    return report_ratio(sum.achieved, sum.peak);
}

static void kernel_row(void *ctx, uint64_t i, struct report_cell *c)
{
    static const char *const types[] = {"MXU BF16", "MXU E4M3 + E5M2", "MXU I8", "MXU I4"};
    const struct sample *s = &((const struct samples *)ctx)->v[i];
    double all = 0;
    c[0] = report_of_text(s->host);
    c[1] = report_of_i64(s->device);
    c[2] = report_of_i64(s->id);
    c[3] = text_or_none(s->kernel);
    c[4] = s->ps > 0 ? report_of_i64(s->ps) : report_none();
    c[5] = busy(s, "Avg MXU Busy", false);
    for (int k = 0; k < 4; k++)
        all += sum_of(s, types[k], false).achieved;
    for (int k = 0; k < 4; k++)
        c[6 + k] = report_ratio(sum_of(s, types[k], false).achieved, all);
    c[10] = busy(s, "Scalar Unit", false);
    c[11] = busy(s, "Vector ALUs", false);
    c[12] = busy(s, "HBM Rd+Wr", true);
}

static enum xp_status write_kernels(struct xp_span merged, const struct tool_args *args,
                                    struct report *r, struct xp_error *err)
{
    struct samples s;
    (void)args;
    XP_TRY(read_samples(merged, r->a, &s, err));
    note_samples(r, &s);
    for (size_t i = 0; i < s.n; i++) {
        struct sums mxu = sum_of(&s.v[i], "Avg MXU Busy", false);
        if (mxu.peak > 0 && mxu.achieved > mxu.peak)
            report_note(r, REPORT_WARNING, "above_peak",
                        "%.*s: more cycles of matrix units than there were: the counters are not "
                        "of one span.",
                        (int)(s.v[i].kernel.n < 100 ? s.v[i].kernel.n : 100),
                        (const char *)s.v[i].kernel.p);
    }
    report_table(r,
                 &(struct report_rows){.id = "kernels",
                                       .title = "Kernels",
                                       .columns = kernel_columns,
                                       .ncolumns = sizeof kernel_columns / sizeof *kernel_columns,
                                       .n = s.n,
                                       .row = kernel_row,
                                       .ctx = &s,
                                       .sort = "time",
                                       .descending = true});
    return XP_OK;
}

const struct tool_report report_kernel_utilization = {
    .question = "How much of the hardware did a kernel use?",
    .map = counter_facts_map_any,
    .merge = facts_merge,
    .write = write_kernels,
};
