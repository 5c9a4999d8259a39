/* shard/tools/inference_int.h - one host's requests while they are found; for inference_*.c. */
#ifndef SHARD_INFERENCE_INT_H
#define SHARD_INFERENCE_INT_H

#include "shard/derive/derive.h"
#include "shard/tools/idmap.h"
#include "shard/tools/inference.h"

/* What events of a name are to a request. */
enum inference_kind {
    INF_OTHER,
    INF_BATCHING_RUN, /* these begin a request */
    INF_TFRT_RUN,
    INF_SERVING_RUN,
    INF_SESSION_RUN,
    INF_RUN_GRAPH,
    INF_PROCESS_BATCH,
    INF_SCHEDULE,
    INF_CONCAT, /* with the batch's size and padding */
    INF_TO_HOST,
    INF_TO_DEVICE,
    INF_TO_DEVICE_ISSUE, /* transfers of two events, joined by _c */
    INF_TO_DEVICE_DONE,
    INF_TO_HOST_ISSUE,
    INF_TO_HOST_DONE,
    INF_EXECUTE,
    INF_LAUNCH,
    INF_COMPLETE,
    INF_TENSOR,
    INF_USER_ROOT, /* by its root level, not by name */
    INF_KINDS
};

struct inf_event {
    uint64_t at;
    int64_t begin_ps, end_ps; /* session time */
    int64_t group;
    uint64_t consumer; /* of the transfers' halves */
    uint32_t name;
    uint8_t kind, rank; /* rank: place among the kind's names, as XProf goes through them */
    bool user_root;     /* besides its kind */
    bool has_consumer;
};

#define INF_NONE INT64_MIN

/* Of one group, whatever request it belongs to. */
struct inf_group {
    int64_t schedule, concat, execute, launch, complete; /* begins, or INF_NONE */
    uint32_t first_span, nspans;                         /* in spans, once they are sorted */
};

struct inf_span {
    int64_t group;
    int64_t begin_ps, end_ps;
    uint8_t part; /* enum inference_part */
};

/* A program ran on a core. */
struct inf_run {
    int64_t group, begin_ps, end_ps;
    uint32_t plane, program; /* program: place in the host's */
};

struct inf_host {
    struct inference *inf;
    struct part *part;
    const struct derive *d;
    const struct part_plane *plane; /* of the host's threads */
    uint32_t host;
    bool ranged; /* [t0_ps, t1_ps) is asked for; the part is the whole one */
    int64_t t0_ps, t1_ps;
    struct out *out;
    struct vec events; /* struct inf_event, in file order */
    struct vec spans;  /* struct inf_span */
    struct vec runs;   /* struct inf_run */
    size_t first_ran;  /* its programs in inf->ran begin there */
    struct idmap ran_by;
    struct inf_group *groups;
    uint32_t ngroups;
    uint32_t *request;            /* by group: index + 1 in requests */
    uint32_t *batch;              /* by group: index + 1 in batches */
    int32_t *model;               /* by group, -1: none named */
    struct vec requests, batches; /* this host's */
};

static inline bool inf_group_ok(const struct inf_host *h, int64_t group)
{
    return group >= 0 && group < h->ngroups;
}

/* Does what begins then belong to what is asked for? */
static inline bool inf_in_range(const struct inf_host *h, int64_t begin_ps)
{
    return !h->ranged || (begin_ps >= h->t0_ps && begin_ps < h->t1_ps);
}

/* One that takes no time is none. */
static inline bool inf_request_counts(const struct inf_host *h, const struct inference_request *r)
{
    return r->end_ps > r->begin_ps && inf_in_range(h, r->begin_ps);
}

enum xp_status inference_events(struct inf_host *h, struct xp_error *err); /* _events.c */
/* Fills part_ps of the host's requests and device_ps of its batches. _breakdown.c */
enum xp_status inference_breakdown(struct inf_host *h, struct xp_error *err);
/* Once the runs and the requests are known: what of them was prefill, what decode. _phases.c */
uint8_t inference_phase_of_name(struct xp_span name); /* enum inference_phase */
bool inference_add_run(struct inf_host *h, const struct derive_line *dl,
                       const struct derive_event *ev, int64_t group);
enum xp_status inference_phases(struct inf_host *h, struct xp_error *err);
/* Of edges of intervals: the time in which each part was the last of those that were open. */
struct inf_edge {
    int64_t ps;
    uint8_t part;
    bool begins;
};
bool inference_add_edges(struct vec *edges, int64_t begin, int64_t end, uint8_t part);
void inference_sweep(struct vec *edges, uint64_t part_ps[INFERENCE_PARTS]);
enum xp_status inference_tensors(struct inf_host *h, struct xp_error *err); /* _tensors.c */
/* Once the models are known. _params.c */
enum xp_status inference_params(struct inf_host *h, struct xp_error *err);

static inline enum xp_status inference_busy(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the requests");
}

#endif
