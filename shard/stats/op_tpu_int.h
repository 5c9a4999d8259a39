/* shard/stats/op_tpu_int.h - what the files about TPU planes share. */
#ifndef SHARD_OP_TPU_INT_H
#define SHARD_OP_TPU_INT_H

#include "shard/stats/op_stats_int.h"

/* --- tpu_events.c: events of a line with their times on the device --- */

struct tpu_event {
    int64_t begin_ps, end_ps; /* session time */
    uint64_t device_begin_ps, device_end_ps;
    uint64_t at;
    uint32_t name;
};

struct tpu_events {
    struct line_cursor line;
    struct device_cursor device;
    struct side_cursor side; /* at the event's stats if has_stats */
    int64_t base_ps;
    bool has_stats, failed;
    /* Lines that are not in file order: what to add, by place in the file. */
    uint64_t *at, *shift, *longer;
    uint64_t n;
};

/* In order of (begin, longer first). Close it whatever comes. False: memory is out. */
bool tpu_events_open(struct tpu_events *it, const struct part_line *line, struct xp_arena *a);
bool tpu_events_next(struct tpu_events *it, struct tpu_event *ev);
void tpu_events_close(struct tpu_events *it);

bool tpu_is_ops(struct xp_span line);
bool tpu_is_steps(struct xp_span line);
bool tpu_is_modules(struct xp_span line);

/* --- busy time of one core --- */

struct tpu_span {
    int64_t begin_ps, end_ps;
};

/* The union of intervals, given in order of begin. */
struct tpu_union {
    uint64_t busy_ps;
    int64_t begin_ps, end_ps; /* of the interval that may still grow */
    bool open, failed;
    struct vec *spans; /* closed intervals, if another core's are to be united: struct tpu_span */
};
void tpu_union_close(struct tpu_union *u);
static inline void tpu_union_add(struct tpu_union *u, int64_t begin_ps, int64_t end_ps)
{
    if (u->open && begin_ps <= u->end_ps) {
        u->end_ps = end_ps > u->end_ps ? end_ps : u->end_ps;
        return;
    }
    tpu_union_close(u);
    u->open = true;
    u->begin_ps = begin_ps;
    u->end_ps = end_ps;
}

/* An instant counts as its innermost event does. `sure` leaves out what may be waiting too. */
struct tpu_duty {
    struct tpu_union busy, sure;
    int64_t first_ps, last_ps; /* of all events */
    bool any;
    struct vec stack; /* struct duty_frame */
};
void tpu_duty_event(struct tpu_duty *d, int64_t begin_ps, int64_t end_ps, bool busy, bool sure);
void tpu_duty_line_end(struct tpu_duty *d); /* events of the next one begin anew */
void tpu_duty_widen(struct tpu_duty *d, int64_t begin_ps, int64_t end_ps);
void tpu_duty_close(struct tpu_duty *d);
static inline uint64_t tpu_duty_total(const struct tpu_duty *d)
{
    return d->any ? (uint64_t)d->last_ps - (uint64_t)d->first_ps : 0;
}

/* --- tpu_steps.c: what each group was made of --- */

struct tpu_step_op {
    uint32_t category, kind;
    uint64_t self_ps, time_ps;
    double flops, model_flops;
    double run_flops, hbm_bytes; /* as our reports count them */
    uint64_t bytes;
    const struct op_memory *memory; /* of one run */
    uint64_t times;
};

struct tpu_steps {
    struct vec steps;       /* struct op_step, in order of first appearance */
    struct vec categories;  /* step, category, self time */
    struct vec collectives; /* step, struct op_collective */
    uint32_t *slots;        /* by group */
    size_t mask;
    uint32_t last; /* asked for last time */
};
bool tpu_steps_add(struct tpu_steps *s, int64_t group, const struct tpu_step_op *op);
bool tpu_steps_collective(struct tpu_steps *s, int64_t group, const struct op_collective *c);
bool tpu_steps_mark(struct tpu_steps *s, int64_t group, struct xp_span name, int64_t begin_ps,
                    int64_t end_ps);
bool tpu_steps_keep(struct op_build *b, struct tpu_steps *s, const struct op_metas *metas,
                    struct op_core *core);
void tpu_steps_fini(struct tpu_steps *s);

/* --- tpu_sparse.c: ops that TensorCores handed to SparseCores --- */

struct sparse_part {
    uint64_t core, start;
    struct op_metrics *ops;
    uint32_t nops;
    uint64_t total_ps;
};
struct sparse_parts {
    struct sparse_part *v; /* by (core, start) */
    uint32_t n;
};
/* Number + 1, or 0. */
uint32_t sparse_find(const struct sparse_parts *s, uint64_t core, uint64_t start);
void sparse_children(const struct sparse_parts *s, uint32_t number, struct op_metrics *op);
/* Adds the parts of a SparseCore's plane, and its steps and busy time. */
enum xp_status tpu_sparse_core(struct op_build *b, uint32_t plane, struct vec *records,
                               struct op_core *core, struct tpu_duty *duty);
enum xp_status tpu_sparse_parts(struct op_build *b, struct vec *records, struct sparse_parts *out);

/* --- op_tpu.c --- */

enum xp_status tpu_tensor_core(struct op_build *b, uint32_t plane,
                               const struct sparse_parts *sparse, struct op_core *core,
                               struct tpu_duty *duty);

#endif
