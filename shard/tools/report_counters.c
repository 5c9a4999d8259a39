#include <math.h>
#include <stdio.h>

#include "shard/tools/counter_facts.h"
#include "shard/tools/report_beside.h"
#include "shard/tools/report_chip_units.h"
#include "shard/tools/report_kernels.h"
#include "shard/tools/reports_more.h"
#include "shard/tools/tpu_units.h"

/* Reports of hardware counters: what they say about each unit, and about kernels. */

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the counters");
}

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

/* Leaves the facts where the samples end, or where the chips do. */
static enum xp_status read_hosts(struct facts *hosts, size_t n, size_t max, struct xp_arena *a,
                                 struct samples *to, struct chips_seen *chips, struct xp_error *err)
{
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
        if (chips)
            chip_units_get(&hosts[i], chips);
        XP_TRY(facts_ok(&hosts[i], err));
    }
    return XP_OK;
}

static enum xp_status read_samples(struct xp_span merged, struct xp_arena *a, struct samples *to,
                                   struct chips_seen *chips, struct xp_error *err)
{
    struct facts *hosts;
    size_t n;
    XP_TRY(facts_open(merged, a, &hosts, &n, err));
    return read_hosts(hosts, n, merged.n / 5 + 1 /* a sample is 5 values at least */, a, to, chips,
                      err);
}

static void note_samples(struct report *r, const struct samples *s)
{
    if (s->n)
        report_u64(r, "samples", s->n, NULL);
    else
        report_na(r, "samples", COUNTERS_NONE);
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
    c[3] = report_text_or_none(u->s->kernel);
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

/* --- units by devices --- */

/* Names of units, in the order in which they are first met. */
struct names {
    const char *v[2 * TPU_METRICS_MAX];
    uint32_t n;
};

static uint32_t place_of(struct names *names, const char *name)
{
    for (uint32_t i = 0; i < names->n; i++)
        if (strcmp(names->v[i], name) == 0)
            return i;
    if (names->n == sizeof names->v / sizeof *names->v)
        return names->n;
    names->v[names->n] = name;
    return names->n++;
}

struct matrix {
    struct names names;
    struct beside devices;
    struct beside_samples samples;
    double (*busy)[2][BESIDE_MAX]; /* in sample=, in against=; NAN: it is not told */
};

static const struct report_column matrix_before[] = {
    {"unit", "Unit", "", REPORT_COL_TEXT, false, "of the hardware"},
};
static const struct report_column matrix_each = {
    NULL,       "device",
    "fraction", REPORT_COL_NUMBER,
    false,      "achieved / peak of its busiest node in that sample"};
static const struct report_column matrix_change = {
    NULL,       "device",
    "fraction", REPORT_COL_NUMBER,
    false,      "achieved / peak of its busiest node: in sample= less in against="};

static void matrix_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct matrix *m = ctx;
    c[0] = report_of_text(xp_span_str(m->names.v[i]));
    for (uint32_t d = 0; d < m->devices.n; d++) {
        double v = m->busy[i][0][d];
        c[1 + d] = report_of_double(m->samples.has_against ? v - m->busy[i][1][d] : v);
    }
}

static void put_busy(struct matrix *m, const struct sample *s, int which)
{
    uint32_t device = beside_place(&m->devices, s->host, s->device);
    for (size_t i = 0; i < s->n && device < BESIDE_MAX; i++) {
        uint32_t unit = place_of(&m->names, s->m[i].name);
        if (unit >= m->names.n || !(s->m[i].peak > 0))
            continue;
        double *to = &m->busy[unit][which][device], v = s->m[i].achieved / s->m[i].peak;
        if (isnan(*to) || v > *to)
            *to = v;
    }
}

/* One sample, for a mixture of several says nothing. */
static enum xp_status table_matrix(struct report *r, const struct samples *s,
                                   const struct beside_samples *asked, struct matrix *m,
                                   struct xp_error *err)
{
    size_t rows = sizeof m->names.v / sizeof *m->names.v;
    char title[96];
    m->samples = *asked;
    if (!asked->has_sample)
        m->samples.sample = s->v[0].id;
    for (size_t i = 1; i < s->n && !asked->has_sample; i++)
        m->samples.sample = s->v[i].id < m->samples.sample ? s->v[i].id : m->samples.sample;
    m->busy = xp_arena_alloc(r->a, rows * sizeof *m->busy);
    if (!m->busy)
        return no_memory(err);
    for (size_t i = 0; i < rows * 2 * BESIDE_MAX; i++)
        (&m->busy[0][0][0])[i] = NAN;
    for (size_t i = 0; i < s->n; i++) {
        if (s->v[i].id == m->samples.sample)
            put_busy(m, &s->v[i], 0);
        if (asked->has_against && s->v[i].id == asked->against)
            put_busy(m, &s->v[i], 1);
    }
    const struct report_column *columns =
        beside_columns(&m->devices, matrix_before, 1,
                       asked->has_against ? &matrix_change : &matrix_each, NULL, 0, r->a);
    if (!columns)
        return no_memory(err);
    beside_note(r, &m->devices);
    if (asked->has_against)
        snprintf(title, sizeof title, "Units by devices: sample %lld less sample %lld",
                 (long long)m->samples.sample, (long long)asked->against);
    else
        snprintf(title, sizeof title, "Units by devices: sample %lld",
                 (long long)m->samples.sample);
    report_table(r, &(struct report_rows){.id = "matrix",
                                          .title = title,
                                          .columns = columns,
                                          .ncolumns = 1 + m->devices.n,
                                          .n = m->names.n,
                                          .row = matrix_row,
                                          .ctx = m,
                                          .aside = true});
    return XP_OK;
}

static const struct report_column meaning_columns[] = {
    {"unit", "Unit", "", REPORT_COL_TEXT, false, "of the hardware"},
    {"meaning", "What it is", "", REPORT_COL_TEXT, false, ""},
    {"counters", "Counters", "", REPORT_COL_TEXT, false,
     "regular expression that finds the names of the counters behind it"},
};

static void meaning_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct names *names = ctx;
    const struct tpu_unit *u = tpu_unit_of(names->v[i]);
    c[0] = report_of_text(xp_span_str(names->v[i]));
    if (!u)
        return;
    c[1] = report_of_text(xp_span_str(u->meaning));
    c[2] = report_of_text(xp_span_str(u->counters));
}

static void table_meanings(struct report *r, const struct samples *s)
{
    struct names names = {.n = 0};
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < s->v[i].n; k++)
            place_of(&names, s->v[i].m[k].name);
    report_table(r,
                 &(struct report_rows){.id = "meanings",
                                       .title = "What the units are",
                                       .columns = meaning_columns,
                                       .ncolumns = sizeof meaning_columns / sizeof *meaning_columns,
                                       .n = names.n,
                                       .row = meaning_row,
                                       .ctx = &names,
                                       .aside = true});
}

static struct beside_sample *list_samples(const struct samples *s, struct xp_arena *a)
{
    struct beside_sample *v = xp_arena_alloc(a, (s->n + 1) * sizeof *v);
    for (size_t i = 0; v && i < s->n; i++)
        v[i] = (struct beside_sample){s->v[i].id, s->v[i].kernel, 1};
    return v;
}

static enum xp_status write_units(struct xp_span merged, const struct tool_args *args,
                                  struct report *r, struct xp_error *err)
{
    struct samples s;
    struct chips_seen chips = {.n = 0};
    struct beside_samples asked;
    struct matrix *m = xp_arena_zalloc(r->a, sizeof *m);
    size_t n = 0;
    XP_TRY(beside_samples_of(args, &asked, err));
    XP_TRY(read_samples(merged, r->a, &s, &chips, err));
    struct unit *v = xp_arena_alloc(r->a, (s.units + 1) * sizeof *v);
    struct beside_sample *ids = list_samples(&s, r->a);
    if (!v || !m || !ids)
        return no_memory(err);
    XP_TRY(beside_samples_exist(&asked, ids, s.n, err));
    for (size_t i = 0; i < s.n; i++)
        for (size_t k = 0; k < s.v[i].n; k++)
            if (!asked.has_sample || s.v[i].id == asked.sample)
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
    if (!s.units) {
        chip_units_write(r, &chips);
        return XP_OK;
    }
    XP_TRY(table_matrix(r, &s, &asked, m, err));
    table_meanings(r, &s);
    beside_table_samples(r, ids, s.n);
    chip_units_write(r, &chips);
    return XP_OK;
}

const struct tool_report report_utilization_viewer = {
    .question = "Which units of the hardware were busy?",
    .map = chip_units_map,
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
    c[3] = report_text_or_none(s->kernel);
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
    struct facts *hosts;
    size_t n;
    XP_TRY(facts_open(merged, r->a, &hosts, &n, err));
    XP_TRY(read_hosts(hosts, n, merged.n / 5 + 1, r->a, &s, NULL, err));
    XP_TRY(report_kernels(hosts, n, args, r, err));
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
                                       .title = "Kernels by counters",
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
    .question = "What does my kernel do inside, and how much of the hardware does it use?",
    .map = kernel_facts_map,
    .merge = facts_merge,
    .write = write_kernels,
};
