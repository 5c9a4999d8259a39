/* shard/tools/inference.h - requests that a server under profile answered, and the batches it ran
 * them in.
 *
 * A request is a group of events (derive.h) with an event that begins one; a batch is a group with
 * ProcessBatch. A request's batches are the groups it led to. Times are session picoseconds.
 *
 * inference_read adds one host's to what the hosts before it had. Models are numbered in the order
 * they were met; a profile that names none has a single one.
 *
 * Of a part of the run (derive/cut.h) there are the requests, batches and runs that begin in it,
 * with all of their time, and programs are of the phase that the whole profile says: so parts add
 * up, and no mean or percentile is of what was cut.
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

/* What a program does with a request's tokens; the later wins where both run. */
enum inference_phase { INFERENCE_OTHER, INFERENCE_DECODE, INFERENCE_PREFILL, INFERENCE_PHASES };
/* How that is known: inference_phases.c has the rules. */
enum inference_rule { INFERENCE_UNTOLD, INFERENCE_BY_NAME, INFERENCE_BY_REPETITION };

/* Whose requests a program ran for. */
enum inference_served { INFERENCE_NOBODY, INFERENCE_ONE_MODEL, INFERENCE_MODELS };

#define INFERENCE_RUNS_MAX 4096 /* of a program: durations that are kept */

struct inference_program {
    uint32_t name; /* in inference->programs */
    uint32_t host;
    uint8_t phase, rule, served;
    int32_t model;           /* if it served one: as a request's */
    uint64_t runs, total_ps; /* over all cores */
    uint64_t core_runs;      /* of the core in question: the first that ran it */
    int64_t longest_begin_ps;
    uint64_t longest_ps;
    const uint64_t *ps; /* durations on that core, in order of time */
    uint32_t nps;
};

struct inference_request {
    int64_t group;
    uint32_t host;
    int32_t model; /* -1: none */
    int64_t begin_ps, end_ps;
    int64_t delay_ps; /* until its first batch began */
    int64_t size;     /* in batching mode */
    uint64_t part_ps[INFERENCE_PARTS];
    uint64_t phase_ps[INFERENCE_PHASES]; /* of the time of programs; together it is that */
    int64_t prefilled_ps; /* from its begin to the end of its prefill; INFERENCE_NEVER: none ran */
    uint32_t decodes;     /* runs on one core */
    const int64_t *batches; /* groups it led to, ascending; not all of them are batches */
    uint32_t nbatches;
};

#define INFERENCE_NEVER INT64_MIN

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
    struct xp_strpool programs;
    struct vec ran; /* struct inference_program, of each host by the order they first ran in */
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
