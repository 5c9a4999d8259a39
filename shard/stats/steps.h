/* shard/stats/steps.h - the steps of a run: how long each took, and on what.
 *
 * A step is a group of events that belong together (derive.h). What it was made of depends on
 * the hardware:
 *   CPU, GPU  Each event has a type (device compute, waiting for input, ...). A sweep over all
 *             begins and ends gives each instant the type of highest priority; the step's
 *             marker cuts out its part. One row a step, as if the host were one core.
 *   TPU       Self time by op category for each core, from op_stats.h. Where the device has no
 *             infeed op but its host fed it, part of the idle time becomes infeed.
 *
 *   steps_get      part -> what op_stats does not know of its host; made once, kept with the part
 *   steps_pack     -> bytes that may travel; steps_unpack reads them back
 *   steps_merge    two of different hosts -> one; associative, order-free
 *   steps_combine  steps and op stats of the same hosts -> one table of steps: those that all hosts
 *                  have, aligned in time (http-api 11, 12)
 *
 * Time       Picoseconds, as the profile has them. Sums are unsigned and wrap as XProf's do when a
 *            profile contradicts itself (ops longer than their step); nothing depends on it.
 * Order      Hosts by index, steps by group, cores by key.
 * Ownership  As op_stats.h: spans live as long as the part, or as the arena and the bytes.
 * Errors     XP_BUSY: memory is out. XP_CORRUPT: bytes that steps_pack did not write.
 */
#ifndef SHARD_STEPS_H
#define SHARD_STEPS_H

#include "shard/derive/derive.h"
#include "shard/stats/op_stats.h"

/* In order of priority: the later wins. */
enum step_type {
    STEP_UNKNOWN,
    STEP_HOST_COMPUTE,
    STEP_COMPILE,
    STEP_HOST_TO_HOST,
    STEP_HOST_TO_DEVICE,
    STEP_PREPARE, /* launching kernels */
    STEP_COLLECTIVES,
    STEP_WAIT_INPUT,
    STEP_DEVICE_TO_DEVICE,
    STEP_DEVICE_TO_HOST,
    STEP_COMPUTE_32,
    STEP_COMPUTE_16,
    STEP_WAIT_DEVICE,
    STEP_WAIT_HOST,
    STEP_TYPES
};

/* --- one host --- */

struct host_step {
    int64_t group;
    struct xp_span name; /* may be empty */
    uint64_t begin_ps, duration_ps;
    uint64_t type_ps[STEP_TYPES];
};

/* How long the host fed its TPUs in one group. */
struct host_input {
    int64_t group;
    uint64_t ps;
};

struct steps_host {
    uint32_t index;          /* place in the request */
    struct host_step *steps; /* CPU, GPU: by group */
    uint32_t nsteps;
    struct host_input *inputs; /* TPU: by group */
    uint32_t ninputs;
    uint64_t compute_16_ps, compute_32_ps; /* over all groups */
};

struct steps {
    struct steps_host *hosts;
    uint32_t nhosts;
};

/* The part is pinned and wholly loaded. */
enum xp_status steps_get(struct part *p, const struct steps **out, struct xp_error *err);

/* Of steps of one host, index becomes the host's. */
void steps_pack(const struct steps *s, uint32_t index, struct xp_buf *out);
enum xp_status steps_unpack(struct xp_span bytes, struct xp_arena *a, struct steps *out,
                            struct xp_error *err);
enum xp_status steps_merge(const struct steps *x, const struct steps *y, struct xp_arena *a,
                           struct steps *out, struct xp_error *err);

/* --- all hosts --- */

/* A step of a TensorCore, by what it waited for; the rest is compute. */
struct step_tpu {
    uint64_t infeed_ps, outfeed_ps;
    uint64_t transfer_ps;  /* host send and host recv */
    uint64_t sparse_v0_ps; /* waiting for SparseCoreV0 */
    uint64_t idle_ps;
    uint64_t active_ps; /* ops that do not wait: not OP_KIND_OFF_DUTY */
};

#define STEP_HOST_KEYS 1000u /* keys of host i begin at i times this */

struct step_core {
    uint32_t key;
    bool sparse;
    const struct op_host *host;
    const struct op_core *core; /* NULL: CPU, GPU */
    const struct op_step *ops;  /* NULL: CPU, GPU */
    uint64_t begin_ps, duration_ps;
    uint64_t type_ps[STEP_TYPES]; /* CPU, GPU */
    struct step_tpu tpu;          /* TPU; of a SparseCore only the last two */
};

struct step {
    uint32_t num;        /* the group, or the place among the steps of several hosts */
    struct xp_span name; /* may be empty */
    struct step_core *cores;
    uint32_t ncores;
};

struct step_db {
    struct step *steps;
    uint32_t n;
    bool empty_intersection; /* hosts have steps, but none in common */
    uint64_t compute_16_ps, compute_32_ps;
};

/* drop_ends: of a CPU or GPU host with more than five steps leave out the first and the last, which
 * are rarely whole. */
enum xp_status steps_combine(const struct steps *s, const struct op_stats *stats, bool drop_ends,
                             struct xp_arena *a, struct step_db *out, struct xp_error *err);

/* A TPU step over its cores, as XProf's input pipeline page has it; times in ms. Collectives are
 * part of compute, and told once more by themselves. */
struct step_details {
    int64_t num; /* -1: no core had it */
    double compute, infeed, outfeed, idle, transfer;
    double sparse_v0;                   /* compute of SparseCoreV0 */
    double all_reduce, all_reduce_sync; /* of the core with the most of both */
    double infeed_percent, infeed_percent_min, infeed_percent_max;
    double active;                                                  /* mean over TensorCores */
    double sparse_compute, sparse_active, sparse_idle, sparse_step; /* SparseCores */
    const struct step_core *most_infeed;                            /* NULL: none waited */
};
enum xp_status step_details_of(const struct step *s, struct step_details *out,
                               struct xp_error *err);

/* --- for tests, and for each other --- */

/* The sweep: what [begin, end) of the spans given is made of. */
struct step_span {
    uint64_t begin_ps, end_ps;
    uint8_t type; /* enum step_type */
};
struct step_mix {
    uint64_t within_ps[STEP_TYPES]; /* within [begin, end) */
    uint64_t all_ps[STEP_TYPES];    /* anywhere */
    bool seen[STEP_TYPES];          /* some instant was of this type */
};
enum xp_status step_sweep(const struct step_span *spans, size_t n, uint64_t begin_ps,
                          uint64_t end_ps, struct step_mix *out, struct xp_error *err);

/* What an event of a host or of a GPU counts as, by its name. */
enum step_type step_type_of_host(struct xp_span name);
enum step_type step_type_of_gpu(struct xp_span name, struct xp_span shapes);
bool step_is_marker(struct xp_span name); /* "train 17": an explicit step marker */

/* Sequences of spans in time: which of theirs all have. The spans of host i are
 * spans[first[i]..first[i+1]); one of no length belongs nowhere. Gives the number of common steps,
 * and in begin[i] the first of host i. */
struct step_time_span {
    uint64_t begin_ps, end_ps;
};
enum xp_status steps_align(const struct step_time_span *spans, const uint32_t *first, uint32_t n,
                           uint32_t *begin, uint32_t *common, bool *empty, struct xp_error *err);

#endif
