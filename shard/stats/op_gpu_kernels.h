/* shard/stats/op_gpu_kernels.h - GPU kernels by what they were launched with, and the HLO
 * instructions that launched them.
 */
#ifndef SHARD_OP_GPU_KERNELS_H
#define SHARD_OP_GPU_KERNELS_H

#include "lib/base/pb_wire.h"
#include "shard/stats/op_stats_int.h"

struct gpu_instruction {
    uint64_t program;
    struct xp_span name;
    bool found;
    struct op_metrics op;        /* of one run */
    struct xp_span framework_op; /* "name:type" */
};

struct gpu_kernels {
    struct op_build *b;
    struct vec kernels; /* struct op_kernel */
    struct op_kernel_sums sums;
    uint32_t *slots;
    size_t mask;
    struct gpu_instruction **known; /* by hash of program and name; scratch */
    size_t known_mask, nknown;
};

/* One launch. */
struct gpu_launch {
    struct xp_span name, details, tf_op, equation;
    const struct gpu_instruction *hlo; /* NULL: none */
    uint64_t ns;
    bool begins; /* in the range that is looked at: it counts as one */
};

void gpu_kernels_init(struct gpu_kernels *k, struct op_build *b);
void gpu_kernels_fini(struct gpu_kernels *k);
/* Looked up once for each name; lives in scratch. */
enum xp_status gpu_instruction_get(struct gpu_kernels *k, uint64_t program, struct xp_span name,
                                   const struct gpu_instruction **out);
bool gpu_kernel_add(struct gpu_kernels *k, const struct gpu_launch *l);
/* The longest go to the stats. */
bool gpu_kernels_keep(struct gpu_kernels *k);

/* For tests: what a launch's details say; what uses, or could use, tensor cores. */
void gpu_launch_params(struct xp_span details, struct op_kernel *out);
bool gpu_kernel_uses_tensor_core(struct xp_span kernel);
bool gpu_op_is_eligible(struct xp_span op);

#endif
