/* shard/tools/report_inference.h - what the files that write the report of requests share:
 * report_inference_profile.c (requests, batches), report_inference_phases.c (prefill and decode),
 * report_inference_more.c (distribution, models, tensors).
 */
#ifndef SHARD_REPORT_INFERENCE_H
#define SHARD_REPORT_INFERENCE_H

#include "shard/tools/inference_facts.h"

struct inference_view {
    struct inference inf;
    struct facts *hosts;
    size_t nhosts;
    struct xp_arena *a;
    /* Of the model that was asked for: */
    const struct inference_request **requests; /* by how long they took */
    const struct inference_request **chosen;   /* by what percentiles are of */
    const struct inference_batch **batches;
    const struct inference_program **ran; /* programs that ran for its requests; all of them */
    size_t nrequests, nchosen, nbatches, nran;
    const struct inference_params *params;
    size_t nparams;
    int32_t model; /* that was asked for, if only one was */
    bool one;
    bool phases; /* some program is known to be of one */
    bool shared; /* a program ran for other models, too: its runs are counted all the same */
};

static inline uint64_t inference_lasted(int64_t begin_ps, int64_t end_ps)
{
    return end_ps > begin_ps ? (uint64_t)end_ps - (uint64_t)begin_ps : 0;
}
static inline uint64_t inference_latency(const struct inference_request *q)
{
    return inference_lasted(q->begin_ps, q->end_ps);
}
/* The place, of n in order, at which so many percent are not above. */
static inline size_t inference_place(size_t n, double percent)
{
    size_t k = (size_t)(percent / 100 * (double)n + 0.999999);
    return k ? (k <= n ? k - 1 : n - 1) : 0;
}

struct report_cell inference_host_cell(const struct inference_view *v, uint32_t index);
struct report_cell inference_model_cell(const struct inference_view *v, int32_t model);

/* Why there are no requests. */
const char *inference_no_requests(const struct inference_view *v);

/* report_inference_phases.c; the view says of which requests. */
void report_inference_phases(struct report *r, struct inference_view *v);
void report_inference_programs(struct report *r, struct inference_view *v);

/* report_inference_more.c. model: as asked, empty: all. XP_BAD_REQUEST: there is none. */
enum xp_status inference_view_choose(struct inference_view *v, struct xp_span model,
                                     struct xp_error *err);
void report_inference_distribution(struct report *r, struct inference_view *v);
void report_inference_models(struct report *r, struct inference_view *v);
void report_inference_sizes(struct report *r, struct inference_view *v);
void report_inference_tensors(struct report *r, struct inference_view *v);

#endif
