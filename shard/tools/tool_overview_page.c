#include <stdio.h>
#include <stdlib.h>

#include "shard/tools/input_analysis.h"
#include "shard/tools/op_sums.h"
#include "shard/tools/reports.h"
#include "shard/tools/requests.h"

/* The first page: where the time went, how long steps took, what to do about it. */

#define TOP_OPS 10
#define LOW_PRECISION 10.0 /* percent of 16 bit compute that goes without a remark */

struct overview {
    struct session s;
    struct step_db db;
    struct input_analysis in;
    struct requests requests;
    struct op_db framework;
    const struct op_metrics **top;
    bool tpu, gpu; /* as the device's name says */
};

static void percent(struct tables *t, const char *name, double v)
{
    if (v >= 0)
        table_propf(t, name, "%.1f%%", v);
    else
        table_propf(t, name, "unknown");
}

static bool contains(struct xp_span s, const char *word)
{
    return s.n && memmem(s.p, s.n, word, strlen(word));
}

/* --- ops --- */

static double ratio(uint64_t a, uint64_t b)
{
    return 100.0 * op_divide((double)a, (double)b);
}

static double idle_percent(const struct op_db *db)
{
    return 100.0 * (1.0 - op_divide((double)db->total_op_ps, (double)db->total_ps));
}

/* Whether kernels of the op may use, and did use, the GPU's tensor cores. */
static void tensor_cores(const struct op_stats *stats, struct xp_span op, bool *may, bool *did)
{
    bool seen = false;
    *may = *did = false;
    for (uint32_t i = 0; i < stats->nkernels; i++) {
        const struct op_kernel *k = &stats->kernels[i];
        if (!xp_span_eq(k->op_name, op))
            continue;
        if (!seen)
            *may = k->eligible;
        seen = true;
        *did |= k->tensor_core && k->total_ns;
    }
}

static void top_ops(struct tables *t, const struct overview *o)
{
    double cumulative = 0;
    for (uint32_t i = 0; i < o->framework.n && i < TOP_OPS; i++) {
        const struct op_metrics *m = o->top[i];
        double part = op_divide((double)m->self_ps, (double)o->framework.total_ps);
        cumulative += part;
        table_row(t);
        table_num(t, part);
        table_num(t, cumulative);
        table_str(t, m->category);
        table_str(t, m->name);
        table_num(t, op_divide(m->flops, (double)m->time_ps / 1e3));
        if (o->gpu) {
            bool may, did;
            tensor_cores(o->s.stats, m->name, &may, &did);
            table_bool(t, may);
            table_bool(t, did);
        }
    }
}

static void common_props(struct tables *t, const struct overview *o)
{
    struct op_sums host = op_sums_of(&o->s.stats->host), device = op_sums_of(&o->framework);
    table_propf(t, "host_trace_level", "0");
    percent(t, "host_tf_op_percent", ratio(host.count, host.count + device.count));
    percent(t, "device_tf_op_percent", ratio(device.count, host.count + device.count));
    percent(t, "host_op_time_eager_percent", ratio(host.eager_ps, host.self_ps));
    percent(t, "device_op_time_eager_percent", ratio(device.eager_ps, device.self_ps));
    table_propf(t, "remark_text", "%s", "");
    table_propf(t, "remark_color", "%s", "");
    percent(t, "mxu_utilization_percent", o->s.all.mxu_percent);
    percent(t, "hbm_utilization_percent", o->s.all.hbm_percent);
}

static void sparse_props(struct tables *t, const struct input_analysis *in)
{
    table_propf(t, "sc_active_ms_average", "%.2f", INPUT_MEAN(in, sparse_active));
    table_propf(t, "sc_steptime_average", "%.1f", INPUT_MEAN(in, sparse_step));
    table_propf(t, "sc_infeed_time_avg", "%.1f", 0.0);
    table_propf(t, "sc_outfeed_time_avg", "%.1f", 0.0);
    table_propf(t, "sc_idle_time_avg", "%.1f", INPUT_MEAN(in, sparse_idle));
}

static void tpu_props(struct tables *t, const struct overview *o)
{
    const struct op_session *all = &o->s.all;
    double duty = o->tpu ? ratio(all->busy_ps, all->busy_ps + all->idle_ps) : 0;
    double active = o->in.tpu ? INPUT_MEAN(&o->in, active) : 0;
    percent(t, "flop_rate_utilization_relative_to_roofline", 0);
    percent(t, "memory_bw_utilization_relative_to_hw_limit", 0);
    percent(t, "device_idle_time_percent", o->tpu ? idle_percent(&o->s.stats->device) : 0);
    percent(t, "host_idle_time_percent", o->tpu ? idle_percent(&o->s.stats->host) : 0);
    percent(t, "device_duty_cycle_percent", duty);
    percent(t, "device_duty_cycle_high_confidence_percent",
            o->tpu ? ratio(all->busy_sure_ps, all->busy_sure_ps + all->idle_sure_ps) : 0);
    if (o->tpu && all->idle_sure_ps)
        table_prop_num(t, "idle_time_high_confidence_ps", (double)all->idle_sure_ps);
    if (active != 0) {
        table_propf(t, "tc_active_ms_average", "%.2f", active);
        table_propf(t, "active_steptime_ms_average", "%.2f", active);
    }
    if (input_has_sparse(&o->in))
        sparse_props(t, &o->in);
}

static void gpu_props(struct tables *t, const struct overview *o)
{
    uint64_t all = o->db.compute_16_ps + o->db.compute_32_ps;
    percent(t, "device_compute_16bit_percent", ratio(o->db.compute_16_ps, all));
    percent(t, "device_compute_32bit_percent", ratio(o->db.compute_32_ps, all));
}

static void table_analysis(struct tables *t, const struct overview *o)
{
    table_begin(t);
    table_col(t, "selfTimePercent", TABLE_NUMBER, "Time (%)");
    table_col(t, "cumulativeTimePercent", TABLE_NUMBER, "Cumulative time (%)");
    table_col(t, "category", TABLE_STRING, "Category");
    table_col(t, "operation", TABLE_STRING, "Operation");
    table_col(t, "flopRate", TABLE_NUMBER,
              o->gpu ? "GFLOPs/Sec" : "Bf16 Normalized Flop Rate(GFLOPs/Sec)");
    if (o->gpu) {
        table_col(t, "tcEligibility", TABLE_BOOLEAN, "TensorCore eligibility");
        table_col(t, "tcUtilization", TABLE_BOOLEAN, "Op is using TensorCore");
    }
    top_ops(t, o);
    common_props(t, o);
    if (o->gpu)
        gpu_props(t, o);
    else
        tpu_props(t, o);
    table_end(t);
}

/* --- environment --- */

static void table_environment(struct tables *t, const struct overview *o)
{
    const struct op_session *all = &o->s.all;
    table_begin(t);
    table_col(t, "host_id", TABLE_STRING, "host_id");
    table_col(t, "command_line", TABLE_STRING, "command_line");
    table_col(t, "start_time", TABLE_STRING, "start_time");
    table_col(t, "bns_address", TABLE_STRING, "bns_address");
    table_propf(t, "host_count", "%u", all->hosts);
    if (all->tasks && all->hosts)
        table_propf(t, "task_count", "%u (num tasks per host = %u)", all->tasks,
                    all->tasks / all->hosts);
    else
        table_propf(t, "task_count", "%u", all->tasks);
    table_prop(t, "device_type", all->device_type);
    table_propf(t, "device_core_count", "%u", all->device_cores);
    table_propf(t, "is_training", "%s", all->training ? "true" : "false");
    table_end(t);
}

/* --- recommendations --- */

static void tip(struct tables *t, const char *type, const char *text, const char *description)
{
    table_row(t);
    table_cstr(t, type);
    table_cstr(t, text);
    table_cstr(t, description);
}

static void tips(struct tables *t, const struct overview *o)
{
    static const char next_host[] = "Next steps for reducing the Host time";
    static const char next_device[] = "Next steps for reducing the Device time";
    const char *device = o->tpu   ? "TPU"
                         : o->gpu ? "GPU"
                         : xp_span_eq(o->s.all.device_type, XP_SPAN_LIT("CPU"))
                             ? "CPU_ONLY"
                             : "UNKNOWN_HARDWARE";
    char text[160];
    tip(t, "faq", "Refer to the TF2 Profiler FAQ", "Tool troubleshooting / FAQ");
    tip(t, "host",
        "input_pipeline_analyzer (especially Section 3 for the breakdown of input operations on "
        "the Host)",
        next_host);
    tip(t, "host",
        "trace_viewer (look at the activities on the timeline of each Host Thread near the bottom "
        "of the trace view)",
        next_host);
    snprintf(text, sizeof text, "%s (identify the time-consuming operations executed on the %s)",
             o->tpu ? "op_profile" : "framework_op_stats", device);
    tip(t, "device", text, next_device);
    snprintf(text, sizeof text,
             "trace_viewer (look at the activities on the timeline of each %s in the trace view)",
             o->tpu ? "TPU core" : device);
    tip(t, "device", text, next_device);
    tip(t, "doc",
        "<a href=\"https://www.tensorflow.org/guide/data_performance_analysis\" "
        "target=\"_blank\">Analyze tf.data performance with the TF Profiler</a>",
        "Other useful resources");
    tip(t, "doc",
        "<a href=\"https://www.tensorflow.org/guide/data_performance\" target=\"_blank\">Better "
        "performance with the tf.data API</a>",
        "Other useful resources");
}

static void precision(struct tables *t, const struct overview *o)
{
    uint64_t all = o->db.compute_16_ps + o->db.compute_32_ps;
    double low = ratio(o->db.compute_16_ps, all);
    if (all && low < LOW_PRECISION)
        table_propf(
            t, "precision_statement",
            "Only %.1f%% of device computation is 16 bit. So you might want to replace more 32-bit "
            "Ops by 16-bit Ops to improve performance (if the reduced accuracy is acceptable).",
            low);
    else
        table_propf(t, "precision_statement", "%s", "");
}

static void table_advice(struct tables *t, const struct overview *o)
{
    const struct input_verdict *v = &o->in.generic;
    table_begin(t);
    table_col(t, "tip_type", TABLE_STRING, "tip_type");
    table_col(t, "link", TABLE_STRING, "link");
    table_col(t, "description", TABLE_STRING, "description");
    tips(t, o);
    table_propf(t, "bottleneck", "%s", v->bound);
    table_propf(t, "statement", "%s", v->input);
    table_propf(t, "kernel_launch_bottleneck", "%s", v->launch_level);
    table_propf(t, "kernel_launch_statement", "%s", v->launch);
    table_propf(t, "all_other_bottleneck", "%s", v->other_level);
    table_propf(t, "all_other_statement", "%s", v->other);
    precision(t, o);
    table_propf(t, "device_collectives_bottleneck", "%s", v->collectives_level);
    table_propf(t, "device_collectives_statement", "%s", v->collectives);
    table_propf(t, "non_bottleneck_tip_types", "%s",
                strcmp(v->bound, "host") == 0     ? "device"
                : strcmp(v->bound, "device") == 0 ? "host"
                                                  : "");
    table_end(t);
}

/* --- latency of requests --- */

static void latency(struct tables *t, const char *label, const struct request_latency *l)
{
    table_row(t);
    table_cstr(t, label);
    table_num(t, l->host_ms);
    table_num(t, l->device_ms);
    table_num(t, l->transfer_ms);
    table_num(t, l->total_ms);
}

static void table_latency(struct tables *t, const struct overview *o)
{
    static const double percents[] = {50.0, 75.0, 90.0, 99.0, 99.9};
    struct request_latency l;
    table_begin(t);
    table_col(t, "percentile", TABLE_STRING, "percentile");
    table_col(t, "hostTimeMs", TABLE_NUMBER, "Host time (in ms)");
    table_col(t, "deviceTimeMs", TABLE_NUMBER, "Device time (in ms)");
    table_col(t, "communicationTimeMs", TABLE_NUMBER, "Host-device communication time (in ms)");
    table_col(t, "totalTimeMs", TABLE_NUMBER, "Total latency (in ms)");
    if (o->requests.n && !o->s.all.training) {
        requests_mean(&o->requests, &l);
        latency(t, "Avg", &l);
        for (size_t i = 0; i < sizeof percents / sizeof percents[0]; i++) {
            char label[16];
            snprintf(label, sizeof label, "%.1f%%", percents[i]);
            requests_percentile(&o->requests, percents[i], &l);
            latency(t, label, &l);
        }
    }
    table_end(t);
}

/* --- diagnostics --- */

static int span_order(const void *a, const void *b)
{
    return xp_span_cmp(*(const struct xp_span *)a, *(const struct xp_span *)b);
}

static enum xp_status table_diagnostics(struct tables *t, const struct overview *o,
                                        struct xp_arena *a, struct xp_error *err)
{
    const struct op_stats *stats = o->s.stats;
    size_t nw = 0, ne = 0;
    for (uint32_t i = 0; i < stats->nhosts; i++) {
        nw += stats->hosts[i].nwarnings;
        ne += stats->hosts[i].nerrors;
    }
    struct xp_span *w = xp_arena_alloc(a, (nw + 1) * sizeof *w);
    struct xp_span *e = xp_arena_alloc(a, (ne + 1) * sizeof *e);
    if (!w || !e)
        return xp_fail(err, XP_BUSY, 0, "no memory left to list what is wrong");
    nw = ne = 0;
    for (uint32_t i = 0; i < stats->nhosts; i++) {
        for (uint32_t k = 0; k < stats->hosts[i].nwarnings; k++)
            w[nw++] = stats->hosts[i].warnings[k];
        for (uint32_t k = 0; k < stats->hosts[i].nerrors; k++)
            e[ne++] = stats->hosts[i].errors[k];
    }
    if (ne)
        qsort(e, ne, sizeof *e, span_order);
    else if (!xp_span_eq(o->s.all.device_type, XP_SPAN_LIT("CPU")) && !o->s.all.device_cores)
        e[ne++] = XP_SPAN_LIT(
            "No TensorCore device trace was collected. This might happen if your job hadn't been "
            "run on the device when sampling was turned on. You could try the sampling again "
            "later.");
    struct xp_span warning = xp_span_str(session_step_warning(&o->db));
    if (warning.n)
        w[nw++] = warning;
    input_table_diagnostics(t, w, (uint32_t)nw, e, (uint32_t)ne);
    return XP_OK;
}

/* --- all of it --- */

static enum xp_status open_all(struct overview *o, struct xp_span merged, struct xp_arena *a,
                               struct xp_error *err)
{
    XP_TRY(session_open(merged, a, &o->s, err));
    XP_TRY(steps_combine(&o->s.steps, o->s.stats, true, a, &o->db, err));
    XP_TRY(input_analyze(&o->s, &o->db, a, &o->in, err));
    XP_TRY(requests_open(o->s.requests, a, &o->requests, err));
    XP_TRY(op_stats_by_framework(&o->s.stats->device, false, a, &o->framework, err));
    o->top = op_db_sorted(&o->framework, a);
    o->gpu = contains(o->s.all.device_type, "GPU");
    o->tpu = !o->gpu && contains(o->s.all.device_type, "TPU");
    return o->top ? XP_OK : xp_fail(err, XP_BUSY, 0, "no memory left to sort ops");
}

static enum xp_status render(struct xp_span merged, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct overview o = {0};
    struct tables t;
    XP_TRY(open_all(&o, merged, scratch, err));
    tables_begin(&t, out, args->csv, true);
    table_analysis(&t, &o);
    input_table_steps(&t, &o.in);
    table_environment(&t, &o);
    table_advice(&t, &o);
    table_latency(&t, &o);
    tables_raw(&t, XP_SPAN_LIT("{}"));
    XP_TRY(table_diagnostics(&t, &o, scratch, err));
    tables_end(&t);
    return XP_OK;
}

const struct tool tool_overview_page = {
    .id = "overview_page",
    .map = session_map_requests,
    .merge = session_merge,
    .render = render,
    .report = &report_overview_page,
};
