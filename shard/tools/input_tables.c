#include <stdio.h>

#include "shard/tools/input_analysis.h"

static const char *hardware_name(uint8_t hardware)
{
    static const char *const names[] = {"UNKNOWN_HARDWARE", "CPU_ONLY", "GPU", "TPU"};
    return hardware <= OP_HW_TPU ? names[hardware] : names[0];
}

static void step_summary(struct tables *t, const struct input_analysis *in, int digits)
{
    const struct input_summary *s = &in->step_ms;
    table_propf(t, "hardware_type", "%s", hardware_name(in->session->all.hardware));
    table_propf(t, "steptime_ms_average", "%.*f", digits, s->mean);
    table_propf(t, "steptime_ms_standard_deviation", "%.*f", digits, s->deviation);
    table_propf(t, "steptime_ms_minimum", "%.*f", digits, s->min);
    table_propf(t, "steptime_ms_maximum", "%.*f", digits, s->max);
}

/* --- TPU --- */

/* Columns of times: those with a mean have a property of it too. */
static const struct tpu_column {
    const char *id, *label;
    size_t at;
    bool v0; /* only where there are no SparseCores of later kinds */
} tpu_columns[] = {
#define COLUMN(id, label, field, v0)                                                               \
    {                                                                                              \
        id, label, offsetof(struct step_details, field), v0                                        \
    }
    COLUMN("tcComputeTimeMs", "TensorCore compute (in ms)", compute, false),
    COLUMN("scv0ComputeTimeMs", "SparseCoreV0 compute (in ms)", sparse_v0, true),
    {"scv0InfeedTimeMs", "SparseCoreV0 input (in ms)", SIZE_MAX, true}, /* never measured */
    COLUMN("tcInfeedTimeMs", "TensorCore input (in ms)", infeed, false),
    COLUMN("tcOutfeedTimeMs", "TensorCore output (in ms)", outfeed, false),
    COLUMN("tcIdleTimeMs", "TensorCore idle (in ms)", idle, false),
    COLUMN("hostTransferTimeMs", "Host transfer (in ms)", transfer, false),
#undef COLUMN
};
#define TPU_COLUMNS (sizeof tpu_columns / sizeof tpu_columns[0])

static double field(const struct step_details *d, size_t at)
{
    double v = 0;
    if (at != SIZE_MAX)
        memcpy(&v, (const char *)d + at, sizeof v);
    return v;
}

static void tpu_row(struct tables *t, const struct input_analysis *in, const struct step_details *d)
{
    char num[24], tooltip[200];
    double step = d->compute + d->sparse_v0 + d->infeed + d->outfeed + d->idle;
    snprintf(num, sizeof num, "%lld", (long long)d->num);
    snprintf(tooltip, sizeof tooltip,
             "step %s:\nTime waiting for input data = %.3f ms, Step time = %.3f ms", num, d->infeed,
             step);
    table_row(t);
    table_cstr(t, num);
    for (size_t i = 0; i < TPU_COLUMNS; i++)
        if (!in->sparse || !tpu_columns[i].v0)
            table_num(t, field(d, tpu_columns[i].at));
    table_cstr(t, tooltip);
    table_num(t, d->infeed_percent);
    table_num(t, d->infeed_percent_min);
    table_num(t, d->infeed_percent_max);
}

double input_mean(const struct input_analysis *in, size_t at)
{
    double sum = 0;
    for (uint32_t i = 0; i < in->n; i++)
        sum += field(&in->details[i], at);
    return in->n ? sum / in->n : 0;
}

static void tpu_percents(struct tables *t, const struct input_analysis *in)
{
    struct input_stat stat = {0};
    struct input_summary s;
    for (uint32_t i = 0; i < in->n; i++)
        input_stat_add(&stat, in->details[i].infeed_percent_max);
    input_stat_sum_up(&stat, &s);
    table_propf(t, "infeed_percent_average", "%.1f", s.mean);
    table_propf(t, "infeed_percent_standard_deviation", "%.1f", s.deviation);
    table_propf(t, "infeed_percent_minimum", "%.1f", s.min);
    table_propf(t, "infeed_percent_maximum", "%.1f", s.max);
}

bool input_has_sparse(const struct input_analysis *in)
{
    bool all = in->tpu && in->sparse && in->n;
    for (uint32_t i = 0; all && i < in->n; i++)
        all = in->details[i].sparse_step > 0;
    return all;
}

static void tpu_sparse(struct tables *t, const struct input_analysis *in)
{
    table_propf(t, "sc_active_ms_average", "%.2f", INPUT_MEAN(in, sparse_active));
    table_propf(t, "sc_compute_ms_average", "%.2f", INPUT_MEAN(in, sparse_compute));
    table_propf(t, "sc_infeed_ms_average", "%.2f", 0.0);
    table_propf(t, "sc_outfeed_ms_average", "%.2f", 0.0);
    table_propf(t, "sc_idle_ms_average", "%.2f", INPUT_MEAN(in, sparse_idle));
    table_propf(t, "sc_step_time_ms_average", "%.1f", INPUT_MEAN(in, sparse_step));
}

static void tpu_props(struct tables *t, const struct input_analysis *in)
{
    step_summary(t, in, 2);
    tpu_percents(t, in);
    if (!in->sparse) {
        table_propf(t, "scv0_compute_ms_average", "%.2f", INPUT_MEAN(in, sparse_v0));
        table_propf(t, "scv0_infeed_ms_average", "%.2f", 0.0);
    }
    table_propf(t, "tc_compute_ms_average", "%.2f", INPUT_MEAN(in, compute));
    table_propf(t, "tc_infeed_ms_average", "%.2f", INPUT_MEAN(in, infeed));
    table_propf(t, "tc_outfeed_ms_average", "%.2f", INPUT_MEAN(in, outfeed));
    table_propf(t, "tc_idle_ms_average", "%.2f", INPUT_MEAN(in, idle));
    table_propf(t, "host_transfer_ms_average", "%.2f", INPUT_MEAN(in, transfer));
    table_propf(t, "tc_active_ms_average", "%.2f", INPUT_MEAN(in, active));
    table_propf(t, "active_steptime_ms_average", "%.2f", INPUT_MEAN(in, active));
    if (input_has_sparse(in))
        tpu_sparse(t, in);
    table_propf(t, "input_conclusion", "%s", in->verdict.input);
    table_propf(t, "output_conclusion", "%s", in->verdict.output);
    table_propf(t, "summary_nextstep", "%s", verdict_next_step(in));
}

static void tpu_table(struct tables *t, const struct input_analysis *in)
{
    char ids[300] = "stepnum";
    size_t n = strlen(ids);
    table_begin(t);
    table_col(t, "stepnum", TABLE_STRING, "stepnum");
    for (size_t i = 0; i < TPU_COLUMNS; i++) {
        const struct tpu_column *c = &tpu_columns[i];
        if (in->sparse && c->v0)
            continue;
        table_col(t, c->id, TABLE_NUMBER, c->label);
        n += (size_t)snprintf(ids + n, sizeof ids - n, ",%s", c->id);
    }
    snprintf(ids + n, sizeof ids - n, ",tooltip");
    table_col_role(t, "tooltip", TABLE_STRING, "tooltip", "tooltip");
    table_col(t, "infeedPercentAverage", TABLE_NUMBER, "% step time waiting for input data");
    table_col_role(t, "infeedPercentMin", TABLE_NUMBER, "Infeed percent min", "interval");
    table_col_role(t, "infeedPercentMax", TABLE_NUMBER, "Infeed percent max", "interval");
    for (uint32_t i = 0; i < in->n; i++)
        tpu_row(t, in, &in->details[i]);
    table_prop(t, "step_time_graph_column_ids", xp_span_str(ids));
    tpu_props(t, in);
    table_end(t);
}

/* --- CPU, GPU --- */

/* Input is waiting and transfer together: -1. */
static const struct event_column {
    const char *id, *label, *prop, *tip;
    int time;
} event_columns[] = {
    {"deviceComputeTimeMs", "Device compute", "device_compute", "Device compute", INPUT_COMPUTE},
    {"deviceToDeviceTimeMs", "Device to device", "device_to_device", "Device to device",
     INPUT_TO_DEVICE},
    {"deviceCollectivesTimeMs", "Device collective communication", "device_collectives",
     "Device collectives", INPUT_COLLECTIVES},
    {"hostComputeTimeMs", "Host compute", "host_compute", "Host compute", INPUT_HOST_COMPUTE},
    {"kernelLaunchTimeMs", "Kernel launch", "kernel_launch", "Kernel launch", INPUT_LAUNCH},
    {"infeedTimeMs", "Input", "infeed", "Input", -1},
    {"outfeedTimeMs", "Output", "outfeed", "Output", INPUT_OUTPUT},
    {"compileTimeMs", "Compilation", "compile", "Compilation", INPUT_COMPILE},
    {"otherTimeMs", "All others", "other", "All others", INPUT_UNKNOWN},
};
#define EVENT_COLUMNS (sizeof event_columns / sizeof event_columns[0])

static double time_of(const struct input_step *s, int time)
{
    return time < 0 ? s->of[INPUT_WAIT] + s->of[INPUT_TRANSFER] : s->of[time];
}

static void event_row(struct tables *t, const struct input_step *s)
{
    struct xp_buf tip;
    xp_buf_init(&tip, 4096 + s->name.n);
    xp_buf_str(&tip, "Step ");
    xp_buf_span(&tip, s->name);
    xp_buf_fmt(&tip, ", duration: %.2f ms", s->ms);
    table_row(t);
    table_str(t, s->name);
    for (size_t i = 0; i < EVENT_COLUMNS; i++)
        table_num(t, time_of(s, event_columns[i].time));
    for (size_t i = EVENT_COLUMNS; i-- > 0;)
        xp_buf_fmt(&tip, "\n-%s: %.2f ms", event_columns[i].tip, time_of(s, event_columns[i].time));
    table_str(t, xp_buf_all(&tip));
    table_num(t, s->ms);
    xp_buf_fini(&tip);
}

static void event_means(struct tables *t, const struct input_analysis *in)
{
    for (size_t i = 0; i < EVENT_COLUMNS; i++) {
        struct input_stat stat = {0};
        struct input_summary s;
        char name[64];
        for (uint32_t k = 0; k < in->n; k++)
            input_stat_add(&stat, time_of(&in->steps[k], event_columns[i].time));
        input_stat_sum_up(&stat, &s);
        snprintf(name, sizeof name, "%s_time_ms_avg", event_columns[i].prop);
        table_propf(t, name, "%.1f", s.mean);
        snprintf(name, sizeof name, "%s_time_ms_sdv", event_columns[i].prop);
        table_propf(t, name, "%.1f", s.deviation);
    }
}

static void event_table(struct tables *t, const struct input_analysis *in)
{
    const struct input_verdict *v = &in->verdict;
    table_begin(t);
    table_col(t, "stepnum", TABLE_STRING, "Step number");
    for (size_t i = 0; i < EVENT_COLUMNS; i++)
        table_col(t, event_columns[i].id, TABLE_NUMBER, event_columns[i].label);
    table_col_role(t, "tooltip", TABLE_STRING, "tooltip", "tooltip");
    table_col(t, "stepTimeMs", TABLE_NUMBER, "Step time");
    for (uint32_t i = 0; i < in->n; i++)
        event_row(t, &in->steps[i]);
    table_propf(t, "step_time_graph_column_ids",
                "stepnum,deviceComputeTimeMs,deviceToDeviceTimeMs,deviceCollectivesTimeMs,"
                "hostComputeTimeMs,kernelLaunchTimeMs,infeedTimeMs,outfeedTimeMs,compileTimeMs,"
                "otherTimeMs, tooltip");
    step_summary(t, in, 1);
    event_means(t, in);
    table_propf(t, "input_conclusion", "%s", v->input);
    table_propf(t, "device_collectives_bottleneck", "%s", v->collectives);
    table_propf(t, "device_collectives_statement", "%s", v->collectives);
    table_propf(t, "kernel_launch_bottleneck", "%s", v->launch);
    table_propf(t, "kernel_launch_statement", "%s", v->launch);
    table_propf(t, "all_other_bottleneck", "%s", v->other);
    table_propf(t, "all_other_statement", "%s", v->other);
    table_propf(t, "summary_nextstep", "%s", verdict_next_step(in));
    table_end(t);
}

void input_table_steps(struct tables *t, const struct input_analysis *in)
{
    if (in->tpu)
        tpu_table(t, in);
    else
        event_table(t, in);
}

void input_table_diagnostics(struct tables *t, const struct xp_span *warnings, uint32_t nwarnings,
                             const struct xp_span *errors, uint32_t nerrors)
{
    table_begin(t);
    table_col(t, "severity", TABLE_STRING, "Severity");
    table_col(t, "message", TABLE_STRING, "Message");
    for (uint32_t i = 0; i < nwarnings + nerrors; i++) {
        bool warning = i < nwarnings;
        table_row(t);
        table_cstr(t, warning ? "WARNING" : "ERROR");
        table_str(t, warning ? warnings[i] : errors[i - nwarnings]);
    }
    table_end(t);
}
