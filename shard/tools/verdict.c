#include <stdio.h>

#include "shard/tools/input_analysis.h"

/* What bounds a run, in XProf's words. Percentages are of the time of all steps together. */

#define INPUT_HIGH 20.0
#define INPUT_MODERATE 5.0
#define OUTPUT_HIGH 20.0
#define OUTPUT_MODERATE 5.0
#define OTHERS_HIGH 15.0 /* kernel launch, collectives, all others */
#define OTHERS_MODERATE 3.0

static const char no_steps[] =
    "No step time measured. Therefore we cannot tell where the performance bottleneck is.";

static const char input_high[] =
    "Your program is HIGHLY input-bound because %.1f%% of the total step time sampled is waiting "
    "for input. Therefore, you should first focus on reducing the input time.";
static const char input_moderate[] =
    "Your program is MODERATELY input-bound because %.1f%% of the total step time sampled is "
    "waiting for input. Therefore, you would need to reduce both the input time and other time.";
static const char input_potential[] =
    "Your program is POTENTIALLY input-bound because %.1f%% of the total step time sampled is "
    "spent on 'All Others' time (which could be due to I/O or Python execution or both).";
static const char input_not[] =
    "Your program is NOT input-bound because only %.1f%% of the total step time sampled is waiting "
    "for input. Therefore, you should focus on reducing other time.";
static const char output_high[] =
    "Your program is HIGHLY output-bound because %.1f%% of the total step time sampled is spent on "
    "output. Therefore, you should first focus on reducing the output time.";
static const char output_moderate[] =
    "Your program is MODERATELY output-bound because %.1f%% of the total step time sampled is "
    "spent on output. Therefore, you would need to reduce both the output time and other time.";
static const char collectives_some[] = "%.1f %% of the total step time sampled is spent on 'Device "
                                       "Collective Communication'.";
static const char launch_some[] =
    "%.1f %% of the total step time sampled is spent on 'Kernel Launch'.%s";
static const char launch_data[] =
    " It could be due to CPU contention with tf.data. In this case, you may try to set the "
    "environment variable TF_GPU_THREAD_MODE=gpu_private.";
static const char others_some[] = "%.1f %% of the total step time sampled is spent on 'All Others' "
                                  "time. This could be due to Python execution overhead.";

static void unknown(struct input_verdict *v)
{
    *v = (struct input_verdict){
        .bound = "unknown", .launch_level = "no", .other_level = "no", .collectives_level = "no"};
    snprintf(v->input, sizeof v->input, "%s", no_steps);
}

/* True: all other time was spoken about. */
static bool judge_input(double percent, double others, struct input_verdict *v)
{
    if (percent >= INPUT_HIGH) {
        v->bound = "host";
        snprintf(v->input, sizeof v->input, input_high, percent);
    } else if (percent >= INPUT_MODERATE) {
        v->bound = "both";
        snprintf(v->input, sizeof v->input, input_moderate, percent);
    } else if (others >= OTHERS_MODERATE) {
        v->bound = "both";
        snprintf(v->input, sizeof v->input, input_potential, others);
        return true;
    } else {
        v->bound = "device";
        snprintf(v->input, sizeof v->input, input_not, percent);
    }
    return false;
}

static const char *level(double percent)
{
    return percent >= OTHERS_HIGH ? "high" : percent >= OTHERS_MODERATE ? "moderate" : "no";
}

void verdict_tpu(const struct input_analysis *in, struct input_verdict *v)
{
    double total = 0, input = 0, output = 0;
    unknown(v);
    for (uint32_t i = 0; i < in->n; i++) {
        const struct step_details *d = &in->details[i];
        input += d->infeed;
        output += d->outfeed;
        /* XProf counts collectives twice here. */
        total += d->compute + d->sparse_v0 + d->infeed + d->all_reduce + d->all_reduce_sync +
                 d->outfeed + d->idle;
    }
    if (total == 0)
        return;
    judge_input(100 * input / total, 0, v);
    double percent = 100 * output / total;
    if (percent >= OUTPUT_HIGH)
        snprintf(v->output, sizeof v->output, output_high, percent);
    else if (percent >= OUTPUT_MODERATE)
        snprintf(v->output, sizeof v->output, output_moderate, percent);
}

/* XProf cannot take TPU steps apart here, and says nothing then. */
void verdict_generic(const struct input_analysis *in, struct input_verdict *v)
{
    double total = 0, of[INPUT_TIMES] = {0};
    unknown(v);
    if (in->tpu && in->n) {
        *v = (struct input_verdict){
            .bound = "", .launch_level = "", .other_level = "", .collectives_level = ""};
        return;
    }
    for (uint32_t i = 0; i < in->n; i++) {
        total += in->steps[i].ms;
        for (int k = 0; k < INPUT_TIMES; k++)
            of[k] += in->steps[i].of[k];
    }
    if (total == 0)
        return;
    double others = 100 * of[INPUT_UNKNOWN] / total;
    double launch = 100 * of[INPUT_LAUNCH] / total;
    double collectives = 100 * of[INPUT_COLLECTIVES] / total;
    v->input[0] = 0;
    if (judge_input(100 * (of[INPUT_WAIT] + of[INPUT_TRANSFER]) / total, others, v))
        others = 0;
    v->other_level = level(others);
    v->launch_level = level(launch);
    v->collectives_level = level(collectives);
    if (others >= OTHERS_MODERATE)
        snprintf(v->other, sizeof v->other, others_some, others);
    if (launch >= OTHERS_MODERATE)
        snprintf(v->launch, sizeof v->launch, launch_some, launch,
                 input_has_ops(in) ? launch_data : "");
    if (collectives >= OTHERS_MODERATE)
        snprintf(v->collectives, sizeof v->collectives, collectives_some, collectives);
}

const char *verdict_next_step(const struct input_analysis *in)
{
    const char *bound = in->verdict.bound;
    if (strcmp(bound, "host") != 0 && strcmp(bound, "both") != 0)
        return "You may skip the rest of this page.";
    if (input_has_ops(in))
        return "Look at Section 3 for the breakdown of input time on the host.";
    return "Consider using <a href=\"https://www.tensorflow.org/guide/data\" "
           "target=\"_blank\">the tf.data API</a> to enable profiler's host-side analysis for "
           "input "
           "pipeline. Profiler currently does not support custom input pipeline (please ignore "
           "Section 3 below).";
}
