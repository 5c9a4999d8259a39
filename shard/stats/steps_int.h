/* shard/stats/steps_int.h - what the files of steps share. */
#ifndef SHARD_STEPS_INT_H
#define SHARD_STEPS_INT_H

#include "shard/derive/vec.h"
#include "shard/stats/steps.h"

/* What is known of one group while its host's events are walked. */
struct step_group {
    int64_t id;
    struct xp_span name;
    uint64_t host_begin_ps, host_ps; /* the longest marker of a thread, of a device */
    uint64_t device_begin_ps, device_ps;
    uint64_t input_ps;
    struct vec spans; /* struct step_span */
};

struct step_groups {
    struct vec v; /* struct step_group */
    uint32_t *table;
    size_t mask;
    uint32_t last; /* asked for last time */
};

/* The group, made if it is new; NULL when memory is out. */
struct step_group *step_groups_get(struct step_groups *g, int64_t id);
/* NULL: there is none. */
struct step_group *step_groups_find(struct step_groups *g, int64_t id);
void step_groups_sort(struct step_groups *g); /* by id; no more gets after it */
void step_groups_free(struct step_groups *g);

/* The host's groups: step_events.c (CPU, and what a host does for its TPUs), step_gpu.c. False when
 * memory is out. */
bool step_cpu_events(const struct derive *d, struct step_groups *g);
bool step_tpu_inputs(const struct derive *d, struct step_groups *g);
/* When the host's threads waited for input, or moved it to a device: struct step_span, unsorted.
 * Only of threads that launch steps, if there are such: others load ahead. */
bool step_input_spans(const struct derive *d, struct vec *spans);
/* Loaders that have no name of XProf's: Python's iterators and those of data libraries. */
bool step_is_loader(struct xp_span name);
bool step_gpu_events(const struct derive *d, struct step_groups *g);

/* The marker that counts for the group: a host's if it covers the device's. */
void step_group_marker(const struct step_group *g, uint64_t *begin_ps, uint64_t *duration_ps);

static inline uint64_t step_time(int64_t ps)
{
    return ps > 0 ? (uint64_t)ps : 0;
}

struct step_rows {
    struct step *v;
    uint32_t n;
};
/* Steps of one TPU host, cut to those that all its cores have; from a. */
enum xp_status step_tpu_host(const struct op_host *host, const struct steps_host *inputs,
                             struct xp_arena *a, struct step_rows *out, struct xp_error *err);

#endif
