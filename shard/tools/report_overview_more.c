#include <stdio.h>

#include "shard/tools/op_sums.h"
#include "shard/tools/report_inference.h"
#include "shard/tools/report_overview.h"

/* --- shares --- */

static void placement(struct report *r, struct op_sums host, struct op_sums device)
{
    static const char *const none = "the profile has no framework ops of the host beside those of "
                                    "the device: TensorFlow records them (host_tracer_level=2), "
                                    "compiled JAX programs have none";
    double all = (double)host.count + (double)device.count;
    if (!host.count || !device.count) {
        report_na(r, "host_op_fraction", "%s", none);
        report_na(r, "device_op_fraction", "%s", none);
        return;
    }
    report_double(r, "host_op_fraction", (double)host.count / all, NULL);
    report_double(r, "device_op_fraction", (double)device.count / all, NULL);
}

static void eager(struct report *r, const char *id, struct op_sums s, const char *none)
{
    if (s.self_ps)
        report_double(r, id, (double)s.eager_ps / (double)s.self_ps,
                      s.eager_ps ? NULL : "no op says that it ran eagerly");
    else
        report_na(r, id, "%s", none);
}

static void widths(struct report *r, const struct session *s, const struct step_db *db)
{
    static const char *const ids[] = {"compute_16bit_fraction", "compute_32bit_fraction"};
    const uint64_t ps[] = {db->compute_16_ps, db->compute_32_ps};
    double all = (double)ps[0] + (double)ps[1];
    bool gpu = s->all.hardware == OP_HW_GPU;
    for (int i = 0; i < 2; i++)
        if (gpu && all > 0)
            report_double(r, ids[i], (double)ps[i] / all,
                          "16 bits: kernels whose shapes or name say so (half, fp16)");
        else
            report_na(r, ids[i], "%s",
                      gpu ? "no kernel that computes belongs to a step: mark steps with "
                            "jax.profiler.StepTraceAnnotation"
                          : "told of kernels of GPUs only: profiles of other devices do not say "
                            "how wide the numbers are that an op computes with");
}

enum xp_status report_overview_shares(struct report *r, const struct session *s,
                                      const struct figures *f, struct xp_error *err)
{
    struct op_db framework;
    struct step_db db;
    XP_TRY(op_stats_by_framework(&s->stats->device, false, r->a, &framework, err));
    XP_TRY(steps_combine(&s->steps, s->stats, true, r->a, &db, err));
    struct op_sums host = op_sums_of(&s->stats->host), device = op_sums_of(&framework);
    bool tpu = s->all.hardware == OP_HW_TPU;
    placement(r, host, device);
    eager(r, "host_eager_fraction", host,
          "the profile has no framework ops of the host: TensorFlow records them "
          "(host_tracer_level=2)");
    eager(r, "device_eager_fraction", tpu ? (struct op_sums){0} : device,
          tpu             ? "ops of TPUs are compiled, and do not say what called the program"
          : !f->window_ps ? "there is no device in the profile"
                          : "no framework op is known for what ran on the device");
    widths(r, s, &db);
    report_na(r, "goodput",
              "a capture is seconds of a run: what was lost before and after it (starts, "
              "checkpoints, steps done again) is not in it; the job's logs tell");
    return XP_OK;
}

/* --- steps of GPUs --- */

enum kind { COMPUTE, COLLECTIVES, BETWEEN, INPUT, OUTPUT, HOST, LAUNCH, COMPILE, OTHER, KINDS };

static const struct {
    const char *name, *text;
} kind_words[KINDS] = {
    [COMPUTE] = {"compute", "kernels that compute"},
    [COLLECTIVES] = {"collectives", "collectives between devices"},
    [BETWEEN] = {"device to device", "copies between devices, and waiting for them"},
    [INPUT] = {"input", "waiting for input, and copies from the host to the device"},
    [OUTPUT] = {"output", "copies from the device to the host"},
    [HOST] = {"host compute", "other work of the host, while the device does nothing"},
    [LAUNCH] = {"launch", "launching kernels"},
    [COMPILE] = {"compile", "compiling"},
    [OTHER] = {"other", "what is left of the step: nothing that is known runs"},
};

static enum kind kind_of(enum step_type t)
{
    switch (t) {
    case STEP_WAIT_INPUT:
    case STEP_HOST_TO_DEVICE:
    case STEP_WAIT_HOST:
        return INPUT;
    case STEP_DEVICE_TO_HOST:
        return OUTPUT;
    case STEP_COMPILE:
        return COMPILE;
    case STEP_PREPARE:
        return LAUNCH;
    case STEP_HOST_COMPUTE:
        return HOST;
    case STEP_COLLECTIVES:
        return COLLECTIVES;
    case STEP_DEVICE_TO_DEVICE:
    case STEP_WAIT_DEVICE:
        return BETWEEN;
    case STEP_COMPUTE_16:
    case STEP_COMPUTE_32:
        return COMPUTE;
    default:
        return OTHER;
    }
}

/* Of one step, picoseconds, mean over hosts. */
static void kinds_of(const struct step *s, double ps[KINDS])
{
    memset(ps, 0, KINDS * sizeof *ps);
    for (uint32_t c = 0; c < s->ncores; c++)
        for (int t = 0; t < STEP_TYPES; t++)
            ps[kind_of((enum step_type)t)] += (double)s->cores[c].type_ps[t] / s->ncores;
}

struct kinds {
    const struct step_db *db;
    double mean[KINDS], all;
};

static const struct report_column kind_columns[] = {
    {"kind", "Kind", "", REPORT_COL_TEXT, false, "each moment is of one kind"},
    {"time", "Time", "ps", REPORT_COL_NUMBER, true, "of a step, mean over steps and hosts"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "of the step"},
    {"what", "What it is", "", REPORT_COL_TEXT, false, ""},
};

static void kind_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct kinds *k = ctx;
    c[0] = report_of_text(xp_span_str(kind_words[i].name));
    c[1] = report_of_u64((uint64_t)(k->mean[i] + 0.5));
    c[2] = report_ratio(k->mean[i], k->all);
    c[3] = report_of_text(xp_span_str(kind_words[i].text));
}

static void kind_point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct kinds *k = ctx;
    double ps[KINDS];
    kinds_of(&k->db->steps[i], ps);
    *x = report_of_u64((uint64_t)figure_step_number(k->db->steps[i].name, k->db->steps[i].num));
    for (int n = 0; n < KINDS; n++)
        y[n] = report_of_u64((uint64_t)(ps[n] + 0.5));
}

enum xp_status report_overview_kinds(struct report *r, const struct session *s,
                                     struct xp_error *err)
{
    struct step_db db;
    struct kinds k = {.db = &db};
    double ps[KINDS];
    const char *names[KINDS];
    if (s->all.hardware != OP_HW_GPU)
        return XP_OK;
    XP_TRY(steps_combine(&s->steps, s->stats, true, r->a, &db, err));
    for (int n = 0; n < KINDS; n++)
        names[n] = kind_words[n].name;
    for (uint32_t i = 0; i < db.n; i++) {
        kinds_of(&db.steps[i], ps);
        for (int n = 0; n < KINDS; n++) {
            k.mean[n] += ps[n] / db.n;
            k.all += ps[n] / db.n;
        }
    }
    report_table(r, &(struct report_rows){.id = "step_kinds",
                                          .title = "What a step is made of",
                                          .note = db.n ? "of more than five steps the first and "
                                                         "the last are left out"
                                                       : "no step is marked in the profile, so "
                                                         "what it is made of is not known: mark "
                                                         "steps with "
                                                         "jax.profiler.StepTraceAnnotation",
                                          .columns = kind_columns,
                                          .ncolumns = sizeof kind_columns / sizeof *kind_columns,
                                          .n = db.n ? KINDS : 0,
                                          .row = kind_row,
                                          .ctx = &k});
    report_series(r, &(struct report_points){.id = "step_kinds",
                                             .title = "What steps are made of",
                                             .x_label = "step",
                                             .x_unit = "",
                                             .y_label = "Time",
                                             .y_unit = "ps",
                                             .kind = "stack",
                                             .names = names,
                                             .nnames = KINDS,
                                             .n = db.n,
                                             .point = kind_point,
                                             .ctx = &k});
    return XP_OK;
}

/* --- requests --- */

static const double percents[] = {50, 75, 90, 99, 99.9};

static const struct report_column latency_columns[] = {
    {"percentile", "Percentile", "", REPORT_COL_NUMBER, false,
     "percent of the requests took no longer"},
    {"latency", "Latency", "ps", REPORT_COL_NUMBER, false, "of the request there"},
    {"host", "Host", "ps", REPORT_COL_NUMBER, false, "what is left of it"},
    {"device", "Device", "ps", REPORT_COL_NUMBER, false, "programs ran"},
    {"transfer", "Copies", "ps", REPORT_COL_NUMBER, false, "between host and device"},
};

static const struct request *at_percent(const struct requests *q, double percent)
{
    return &q->v[inference_place(q->n, percent)];
}

static void latency_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct request *q = at_percent(ctx, percents[i]);
    uint64_t told = q->device_ps + q->transfer_ps;
    c[0] = report_of_double(percents[i]);
    c[1] = report_of_u64(q->total_ps);
    c[2] = report_of_u64(q->total_ps > told ? q->total_ps - told : 0);
    c[3] = report_of_u64(q->device_ps);
    c[4] = report_of_u64(q->transfer_ps);
}

static void latency_point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    struct report_cell c[5];
    latency_row(ctx, i, c);
    *x = c[0];
    memcpy(y, c + 2, 3 * sizeof *y);
}

void report_overview_latency(struct report *r, const struct session *s,
                             const struct requests *requests)
{
    uint64_t sum = 0;
    if (!requests->n || s->all.training)
        return;
    for (uint32_t i = 0; i < requests->n; i++)
        sum += requests->v[i].total_ps;
    report_u64(r, "requests", requests->n, NULL);
    report_u64(r, "latency_mean", sum / requests->n, NULL);
    report_u64(r, "latency_p50", at_percent(requests, 50)->total_ps, NULL);
    report_u64(r, "latency_p90", at_percent(requests, 90)->total_ps, NULL);
    report_u64(r, "latency_p99", at_percent(requests, 99)->total_ps, NULL);
}

void report_overview_percentiles(struct report *r, const struct session *s,
                                 const struct requests *requests)
{
    if (!requests->n || s->all.training)
        return;
    report_table(r,
                 &(struct report_rows){.id = "latency",
                                       .title = "How long requests took",
                                       .columns = latency_columns,
                                       .ncolumns = sizeof latency_columns / sizeof *latency_columns,
                                       .n = sizeof percents / sizeof *percents,
                                       .row = latency_row,
                                       .ctx = (void *)requests});
    static const char *const names[] = {"host", "device", "transfer"};
    report_series(r, &(struct report_points){.id = "latency",
                                             .title = "Latency by percentile",
                                             .x_label = "percentile",
                                             .x_unit = "",
                                             .y_label = "Time",
                                             .y_unit = "ps",
                                             .kind = "stack",
                                             .names = names,
                                             .nnames = 3,
                                             .n = sizeof percents / sizeof *percents,
                                             .point = latency_point,
                                             .ctx = (void *)requests});
}
