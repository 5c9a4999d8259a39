/* loadtest/lib/gen.h - made-up captures: what a run of training steps leaves in a profile.
 *
 * A host trains a transformer: each step is dispatched by a Python thread, goes through the
 * runtime's queues (flows lead from thread to thread and to the device) and runs on four TPU
 * cores, where loops over layers enclose fusions, convolutions and collectives, while copies and
 * gathers of weights run beside them. Every eleventh step or so is slow in its collectives.
 *
 * Everything follows from struct gen_options; the same options make the same bytes.
 */
#ifndef LOADTEST_GEN_H
#define LOADTEST_GEN_H

#include "loadtest/lib/xs.h"

enum gen_kind { GEN_MIXED, GEN_TPU, GEN_PYTHON };

#define GEN_CORES 4
#define GEN_WALL_NS INT64_C(1767225600000000000) /* 2026-01-01 */

struct gen_options {
    const char *out, *run;
    int hosts;
    uint64_t events, size; /* 0: by steps */
    int64_t steps;
    enum gen_kind kind;
    bool gz, wall_clock;
    uint64_t seed;
    const char *hostile; /* NULL: a sound profile */
};

/* Names of stats; their ids, the same in every plane, count from 1. */
#define GEN_STATS(X)                                                                               \
    X(HLO_CATEGORY, "hlo_category")                                                                \
    X(PROGRAM_ID, "program_id")                                                                    \
    X(SYMBOL_ID, "symbol_id")                                                                      \
    X(FLOPS, "flops")                                                                              \
    X(MODEL_FLOPS, "model_flops")                                                                  \
    X(BYTES_ACCESSED, "bytes_accessed")                                                            \
    X(RAW_BYTES_ACCESSED, "raw_bytes_accessed")                                                    \
    X(MEMORY_BREAKDOWN, "memory_access_breakdown")                                                 \
    X(SHAPE, "shape_with_layout")                                                                  \
    X(TF_OP, "tf_op")                                                                              \
    X(SOURCE, "source")                                                                            \
    X(SOURCE_STACK, "source_stack")                                                                \
    X(DEVICE_OFFSET, "device_offset_ps")                                                           \
    X(DEVICE_DURATION, "device_duration_ps")                                                       \
    X(ALL_REDUCE_ID, "all_reduce_unique_id")                                                       \
    X(HLO_OP, "hlo_op")                                                                            \
    X(IS_ASYNC, "_a")                                                                              \
    X(FLOW, "flow")                                                                                \
    X(STEP_ID, "id")                                                                               \
    X(GROUP_ID, "group_id")                                                                        \
    X(RUN_ID, "run_id")                                                                            \
    X(REPLICA_ID, "replica_id")                                                                    \
    X(QUEUE_ID, "queue_id")                                                                        \
    X(CORE_TYPE, "core_type")                                                                      \
    X(DEVICE_ORDINAL, "device_ordinal")                                                            \
    X(PRODUCER_TYPE, "_pt")                                                                        \
    X(PRODUCER_ID, "_p")                                                                           \
    X(CONSUMER_TYPE, "_ct")                                                                        \
    X(CONSUMER_ID, "_c")                                                                           \
    X(ROOT_LEVEL, "_r")                                                                            \
    X(STEP_NUM, "step_num")                                                                        \
    X(SIZE, "size")                                                                                \
    X(DEVICE_TYPE, "device_type_string")                                                           \
    X(PEAK_TERAFLOPS, "peak_teraflops_per_second")                                                 \
    X(PEAK_HBM, "peak_hbm_bw_gigabytes_per_second")                                                \
    X(MXU_UTILIZATION, "matrix_unit_utilization_percent")                                          \
    X(HBM_UTILIZATION, "hbm_utilization_percent")                                                  \
    X(HLO_PROTO, "Hlo Proto")                                                                      \
    X(START_TIME, "profile_start_time")                                                            \
    X(STOP_TIME, "profile_stop_time")                                                              \
    X(SOFTWARE, "jax_version")

enum gen_stat {
    GEN_NO_STAT,
#define X(id, name) GEN_##id,
    GEN_STATS(X)
#undef X
};

/* Appends the names of all stats to a plane's metadata. */
void gen_stat_names(struct xp_buf *meta);

/* One step: when it began on the devices, which prepared variant it is. */
struct gen_step {
    int64_t begin_ps, length_ps;
    int variant;
};

/* What one host's file is made from. */
struct gen_host {
    const struct gen_options *o;
    int host;
    int64_t nsteps;
    struct gen_step *steps;
    int64_t device_ts_ns, host_ts_ns; /* of lines */
};

#define GEN_PROGRAM UINT64_C(5912043377018274101)
#define GEN_MODULE "jit_train_step(5912043377018274101)"

/* The id that joins a launch on the host to the module's run on a core. */
int64_t gen_launch_id(int host, int core, int64_t step);

/* Builds the prepared variants of a step; once, before gen_plan. */
void gen_program_init(uint64_t seed);
void gen_program_fini(void);
int gen_program_variants(void);
int64_t gen_program_length(int variant);

void gen_device_plane(struct xs *x, const struct gen_host *h, int core);
void gen_metadata_plane(struct xs *x);
void gen_host_plane(struct xs *x, const struct gen_host *h);

/* Writes a whole sound profile of one host. */
void gen_profile(struct xs *x, const struct gen_options *o, int host, int64_t steps);
/* Steps that reach o->events or o->size, or o->steps. */
int64_t gen_steps(const struct gen_options *o);

/* Kinds for tests: NULL-terminated. */
extern const char *const gen_hostile_kinds[];
/* Writes one; false when the kind is unknown. */
bool gen_hostile(const char *path, const struct gen_options *o, bool *written);

#endif
