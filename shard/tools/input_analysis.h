/* shard/tools/input_analysis.h - whether a run waits for its input (http-api 13.5).
 *
 * A session's steps become times by kind, their means, and a verdict in XProf's words; and the
 * host's input ops, by what they do. overview_page and input_pipeline_analyzer share it.
 * All of it lives in the arena given.
 */
#ifndef SHARD_INPUT_ANALYSIS_H
#define SHARD_INPUT_ANALYSIS_H

#include "shard/tools/session.h"
#include "shard/tools/table.h"

/* Mean and spread as XProf's Stat has them. */
struct input_stat {
    uint64_t n;
    double sum, squares, min, max;
};
struct input_summary {
    double mean, deviation, min, max;
};
void input_stat_add(struct input_stat *s, double v);
void input_stat_sum_up(const struct input_stat *s, struct input_summary *out);

/* A CPU or GPU step; ms. */
enum input_time {
    INPUT_UNKNOWN,
    INPUT_WAIT,      /* for the input pipeline */
    INPUT_TRANSFER,  /* host to device */
    INPUT_OUTPUT,    /* device to host */
    INPUT_COMPUTE,   /* on the device */
    INPUT_TO_DEVICE, /* device to device */
    INPUT_COLLECTIVES,
    INPUT_HOST_COMPUTE,
    INPUT_LAUNCH,
    INPUT_COMPILE,
    INPUT_TIMES
};
struct input_step {
    struct xp_span name; /* or its number */
    double ms, of[INPUT_TIMES];
};

#define INPUT_TEXT 320
/* What bounds the run: "" where the page has no opinion. Levels are "no", "moderate", "high". */
struct input_verdict {
    const char *bound; /* "host", "both", "device", "unknown" */
    char input[INPUT_TEXT], output[INPUT_TEXT];
    const char *launch_level, *other_level, *collectives_level;
    char launch[INPUT_TEXT], other[INPUT_TEXT], collectives[INPUT_TEXT];
};

enum input_op_kind {
    INPUT_OP_ENQUEUE,
    INPUT_OP_DEMAND,
    INPUT_OP_ADVANCE,
    INPUT_OP_PREPROCESS,
    INPUT_OP_UNKNOWN,
    INPUT_OP_KINDS
};
struct input_op {
    const struct op_metrics *op;
    enum input_op_kind kind;
};

struct input_analysis {
    const struct session *session;
    const struct step_db *db;
    bool tpu;
    bool sparse;                  /* some SparseCore is described */
    struct input_step *steps;     /* CPU, GPU */
    struct step_details *details; /* TPU */
    uint32_t n;
    struct input_summary step_ms;
    struct input_op *ops;
    uint32_t nops;
    uint64_t ops_self_ps;
    double kind_us[INPUT_OP_KINDS]; /* of the host's input time; scaled to the steps but enqueue */
    double unclassified_us;
    struct input_verdict verdict; /* of the hardware at hand */
    struct input_verdict generic; /* what the overview makes of it: nothing on TPUs with steps */
};

enum xp_status input_analyze(const struct session *s, const struct step_db *db, struct xp_arena *a,
                             struct input_analysis *out, struct xp_error *err);

/* Is the host's tf.data seen at work? */
static inline bool input_has_ops(const struct input_analysis *in)
{
    return in->kind_us[INPUT_OP_DEMAND] > 0 || in->kind_us[INPUT_OP_ADVANCE] > 0 ||
           in->kind_us[INPUT_OP_PREPROCESS] > 0;
}

/* Mean over TPU steps of a double of struct step_details, at that offset. */
double input_mean(const struct input_analysis *in, size_t at);
#define INPUT_MEAN(in, of) input_mean(in, offsetof(struct step_details, of))
/* Did SparseCores of later kinds take part in every step? */
bool input_has_sparse(const struct input_analysis *in);

/* The table of steps; input_tables.c. */
void input_table_steps(struct tables *t, const struct input_analysis *in);
/* The table of what is wrong: texts, each NULL or a warning, then errors. */
void input_table_diagnostics(struct tables *t, const struct xp_span *warnings, uint32_t nwarnings,
                             const struct xp_span *errors, uint32_t nerrors);

/* verdict.c */
void verdict_tpu(const struct input_analysis *in, struct input_verdict *out);
void verdict_generic(const struct input_analysis *in, struct input_verdict *out);
const char *verdict_next_step(const struct input_analysis *in);

#endif
