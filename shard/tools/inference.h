/* shard/tools/inference.h - requests that a server under profile answered, and the batches it ran
 * them in.
 *
 * A request is a group of events (derive.h) with an event that begins one; a batch is a group with
 * ProcessBatch. A request's batches are the groups it led to. Times are session picoseconds.
 *
 * inference_read adds one host's to what the hosts before it had. Models are numbered in the order
 * they were met; a profile that names none has a single one.
 */
#ifndef SHARD_INFERENCE_H
#define SHARD_INFERENCE_H

#include "lib/base/strpool.h"
#include "shard/derive/vec.h"
#include "shard/tools/profile.h"

/* What a moment of a request was spent on; the later wins. */
enum inference_part {
    INFERENCE_IDLE,
    INFERENCE_PREPROCESS,
    INFERENCE_POSTPROCESS,
    INFERENCE_FORMATION,
    INFERENCE_RUNTIME,
    INFERENCE_TO_DEVICE,
    INFERENCE_TO_HOST,
    INFERENCE_COMPUTE,
    INFERENCE_PARTS
};

struct inference_request {
    int64_t group;
    uint32_t host;
    int32_t model; /* -1: none */
    int64_t begin_ps, end_ps;
    int64_t delay_ps; /* until its first batch began */
    int64_t size;     /* in batching mode */
    uint64_t part_ps[INFERENCE_PARTS];
    const int64_t *batches; /* groups it led to, ascending; not all of them are batches */
    uint32_t nbatches;
};

struct inference_batch {
    int64_t group;
    uint32_t host;
    int32_t model;
    int64_t begin_ps, end_ps;
    int64_t delay_ps; /* since its first request began */
    int64_t padding, size;
    uint64_t device_ps;
};

/* Tensors of one request or batch. */
struct inference_tensor {
    int32_t model;
    uint32_t pattern; /* in inference->patterns */
    uint64_t ps;      /* laying them out */
};

/* How batches of a model are made, as its server says. */
struct inference_params {
    int32_t model;
    int64_t threads, timeout_us, max_size, max_enqueued;
    struct xp_span sizes; /* that are allowed: a list, as text */
    uint32_t told;        /* bit: an enum inference_param; the others are 0 */
    bool pair;            /* from the later of two snapshots, which is what XProf takes */
};
enum inference_param {
    INFERENCE_THREADS,
    INFERENCE_TIMEOUT,
    INFERENCE_MAX_SIZE,
    INFERENCE_MAX_ENQUEUED,
    INFERENCE_SIZES,
    INFERENCE_PARAMS
};

#define INFERENCE_TENSORS_MAX                                                                      \
    4096 /* of one request; more are no pattern that anyone would read                             \
          */

struct inference {
    struct xp_arena *a;
    struct xp_strpool models; /* id 0 is none: model k is string k + 1 */
    struct vec requests;      /* struct inference_request, of all hosts, by (duration, begin) */
    struct vec batches;       /* struct inference_batch, likewise */
    struct xp_strpool patterns;
    struct vec tensors; /* struct inference_tensor */
    struct vec params;  /* struct inference_params, one a model at most */
};

bool inference_init(struct inference *inf, struct xp_arena *a);
/* The part is pinned and wholly loaded. */
enum xp_status inference_read(struct inference *inf, struct part *p, uint32_t host, struct out *out,
                              struct xp_error *err);
/* After the last host. */
void inference_sort(struct inference *inf);
/* NULL: not known. The place for them is made by inference_params_at; NULL when memory is out. */
const struct inference_params *inference_params_of(const struct inference *inf, int32_t model);
struct inference_params *inference_params_at(struct inference *inf, int32_t model);
void inference_fini(struct inference *inf);

#endif
