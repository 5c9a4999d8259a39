/* shard/stats/op_gpu_limits.h - what a GPU could do, from its capability and clock.
 *
 * Figures per core (SM, CU) and cycle are the vendors' (white papers); the best of the dense 16 and
 * 32 bit rates counts, tensor cores included, as XProf has it.
 */
#ifndef SHARD_OP_GPU_LIMITS_H
#define SHARD_OP_GPU_LIMITS_H

#include "lib/base/span.h"

struct gpu_caps {
    double clock_ghz, cores, memory_bytes_per_s;
    int major, minor;
    struct xp_span vendor; /* "Nvidia", "AMD" */
    struct xp_span name;   /* AMD: "gfx942" */
};

double gpu_core_gflops(const struct gpu_caps *caps); /* 0: not known */
double gpu_shared_gbs(const struct gpu_caps *caps);  /* shared memory, GB/s of a core */
/* "Nvidia GPU (Ampere)", "AMD GPU - gfx942", "GPU"; at most GPU_MODEL_MAX bytes with the NUL. */
#define GPU_MODEL_MAX 64
void gpu_model(const struct gpu_caps *caps, char out[GPU_MODEL_MAX]);

#endif
