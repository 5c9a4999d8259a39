#include <stdio.h>

#include "shard/tools/input_analysis.h"
#include "shard/tools/reports.h"

/* Whether steps wait for their input, on which core, and what the host does for it. */

static const char *const advice[] = {
    "Enqueuing data: you may want to combine small input data chunks into fewer but larger chunks.",
    "Data preprocessing: you may increase num_parallel_calls in <a "
    "href=\"https://www.tensorflow.org/api_docs/python/tf/data/Dataset#map\" "
    "target=\"_blank\">Dataset map()</a> or preprocess the data OFFLINE.",
    "Reading data from files in advance: you may tune parameters in the following tf.data API (<a "
    "href=\"https://www.tensorflow.org/api_docs/python/tf/data/Dataset#prefetch\" "
    "target=\"_blank\">prefetch size</a>, <a "
    "href=\"https://www.tensorflow.org/api_docs/python/tf/data/Dataset#interleave\" "
    "target=\"_blank\">interleave cycle_length</a>, <a "
    "href=\"https://www.tensorflow.org/api_docs/python/tf/data/"
    "TFRecordDataset#class_tfrecorddataset\" target=\"_blank\">reader buffer_size</a>)",
    "Reading data from files on demand: you should read data IN ADVANCE using the following "
    "tf.data API (<a href=\"https://www.tensorflow.org/api_docs/python/tf/data/Dataset#prefetch\" "
    "target=\"_blank\">prefetch</a>, <a "
    "href=\"https://www.tensorflow.org/api_docs/python/tf/data/Dataset#interleave\" "
    "target=\"_blank\">interleave</a>, <a href=\"https://www.tensorflow.org/api_docs/python/tf/"
    "data/TFRecordDataset#class_tfrecorddataset\" target=\"_blank\">reader buffer</a>)",
    "Other data reading or processing: you may consider using the <a "
    "href=\"https://www.tensorflow.org/programmers_guide/datasets\" target=\"_blank\">tf.data "
    "API</a> (if you are not using it now)",
};

/* The core that waited the longest, a column a step. */
static void table_cores(struct tables *t, const struct input_analysis *in)
{
    char text[24];
    table_begin(t);
    if (!in->tpu) {
        table_end(t);
        return;
    }
    table_col(t, "index", TABLE_STRING, "Index");
    for (uint32_t i = 0; i < in->n; i++) {
        snprintf(text, sizeof text, "%u", i);
        table_col(t, text, TABLE_STRING, text);
    }
    table_row(t);
    table_cstr(t, "Step number");
    for (uint32_t i = 0; i < in->n; i++) {
        snprintf(text, sizeof text, "%lld", (long long)in->details[i].num);
        table_cstr(t, text);
    }
    table_row(t);
    table_cstr(t, "Core name");
    for (uint32_t i = 0; i < in->n; i++) {
        const struct step_core *c = in->details[i].most_infeed;
        if (!c || !c->core || !c->core->has_details) {
            table_cstr(t, "unknown");
            continue;
        }
        struct xp_buf name;
        xp_buf_init(&name, c->host->hostname.n + sizeof text);
        xp_buf_span(&name, c->host->hostname);
        xp_buf_fmt(&name, ":%u", c->core->device_ordinal);
        table_str(t, xp_buf_all(&name));
        xp_buf_fini(&name);
    }
    table_end(t);
}

static const char *kind_name(enum input_op_kind kind)
{
    static const char *const names[INPUT_OP_KINDS] = {
        "Enqueue", "Demanded file read", "Advanced file read", "Preprocessing", "Unknown"};
    return names[kind];
}

static void prop_us(struct tables *t, const char *name, double us)
{
    char text[64];
    snprintf(text, sizeof text, "%.3f", us);
    table_prop(t, name, xp_span_str(text));
}

static void table_ops(struct tables *t, const struct input_analysis *in)
{
    double total = (double)in->ops_self_ps;
    table_begin(t);
    table_col(t, "opName", TABLE_STRING, "Input Op");
    table_col(t, "count", TABLE_NUMBER, "Count");
    table_col(t, "timeInMs", TABLE_NUMBER, "Total Time (in ms)");
    table_col(t, "timeInPercent", TABLE_NUMBER, "Total Time (as % of total input-processing time)");
    table_col(t, "selfTimeInMs", TABLE_NUMBER, "Total Self Time (in ms)");
    table_col(t, "selfTimeInPercent", TABLE_NUMBER,
              "Total Self Time (as % of total input-processing time)");
    table_col(t, "category", TABLE_STRING, "Category");
    for (uint32_t i = 0; i < in->nops; i++) {
        const struct op_metrics *m = in->ops[i].op;
        table_row(t);
        table_str(t, m->name);
        table_num(t, (double)m->occurrences);
        table_num(t, (double)m->time_ps / 1e9);
        table_num(t, op_divide((double)m->time_ps, total));
        table_num(t, (double)m->self_ps / 1e9);
        table_num(t, op_divide((double)m->self_ps, total));
        table_cstr(t, kind_name(in->ops[i].kind));
    }
    prop_us(t, "enqueue_us", in->kind_us[INPUT_OP_ENQUEUE]);
    prop_us(t, "demanded_file_read_us", in->kind_us[INPUT_OP_DEMAND]);
    prop_us(t, "advanced_file_read_us", in->kind_us[INPUT_OP_ADVANCE]);
    prop_us(t, "preprocessing_us", in->kind_us[INPUT_OP_PREPROCESS]);
    prop_us(t, "unclassified_nonequeue_us", in->unclassified_us);
    table_end(t);
}

static void table_advice(struct tables *t)
{
    table_begin(t);
    table_col(t, "link", TABLE_STRING, "link");
    for (size_t i = 0; i < sizeof advice / sizeof advice[0]; i++) {
        table_row(t);
        table_cstr(t, advice[i]);
    }
    table_end(t);
}

static enum xp_status render(struct xp_span merged, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct session s;
    struct step_db db;
    struct input_analysis in;
    struct tables t;
    XP_TRY(session_open(merged, scratch, &s, err));
    XP_TRY(steps_combine(&s.steps, s.stats, true, scratch, &db, err));
    XP_TRY(input_analyze(&s, &db, scratch, &in, err));
    struct xp_span warning = xp_span_str(session_step_warning(&db));
    tables_begin(&t, out, args->csv, true);
    table_cores(&t, &in);
    input_table_steps(&t, &in);
    table_ops(&t, &in);
    table_advice(&t);
    input_table_diagnostics(&t, &warning, warning.n > 0, NULL, 0);
    tables_end(&t);
    return XP_OK;
}

const struct tool tool_input_pipeline_analyzer = {
    .id = "input_pipeline_analyzer",
    .map = session_map,
    .merge = session_merge,
    .render = render,
    .report = &report_input_pipeline_analyzer,
};
