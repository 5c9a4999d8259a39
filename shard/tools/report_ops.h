/* shard/tools/report_ops.h - tables of ops, for the reports that have some.
 *
 * Columns of several reports are the same: op, program, times, rates against the run's peaks.
 * An op of a SparseCore that a TensorCore's op started is a row of its own, with its parent.
 */
#ifndef SHARD_REPORT_OPS_H
#define SHARD_REPORT_OPS_H

#include "shard/tools/op_traits.h"
#include "shard/tools/report_figures.h"

struct op_row {
    const struct op_metrics *op, *parent; /* parent NULL: a core's own */
};

struct op_view {
    const struct figures *f;
    struct xp_arena *a;
    struct op_row *rows;
    uint32_t n;
    uint64_t total_ps; /* self time of rows without a parent: what shares are of */
    double steps_ps;   /* of all cores; 0: no steps are known */
    struct op_group *groups;
    uint32_t ngroups;
    const struct op_metrics **gains; /* rows of report_table_gains */
    uint32_t ngains;
};

/* Ops by category, or by another text. By replica group: collectives only. */
enum op_group_by {
    OPS_BY_CATEGORY,
    OPS_BY_LAYER,
    OPS_BY_SOURCE,
    OPS_BY_REPLICA_GROUP,
    OPS_BY_REMAT,
    OPS_BY_OUTSIDE
};

struct op_group {
    struct xp_span name; /* empty: of those that have none */
    uint64_t self_ps, backward_ps, occurrences, ops;
    double flops, hbm_bytes, time_ps; /* of ops that have none inside */
};

/* The ops of db that ran, without IDLE. */
enum xp_status op_view_open(struct op_view *v, const struct figures *f, const struct op_db *db,
                            struct xp_arena *a, struct xp_error *err);

/* The op's name without its text: "%fusion.1 = ..." -> fusion.1 */
struct xp_span op_short_name(const struct op_metrics *m);
/* What cores did nothing, of all their time; 0: no such op, or ops take longer than it. */
uint64_t op_idle_ps(const struct op_db *db);

/* idle=1: time that cores did nothing counts, too; XP_BAD_REQUEST: neither 0 nor 1. */
enum xp_status report_with_idle(const struct tool_args *args, bool *idle, struct xp_error *err);

void report_table_ops(struct report *r, struct op_view *v);
/* Nothing is written but by category when no op has such a layer, source, ... */
void report_table_groups(struct report *r, struct op_view *v, enum op_group_by by);
/* What would be gained at the roof, most first; and the sum of it. */
void report_table_gains(struct report *r, struct op_view *v);

/* "": not known. Of the run that first_begin_ps of an op is of. */
struct report_cell op_host_name(const struct figures *f, uint32_t index);

/* How far an op is from what the device could do. */
struct op_use {
    struct report_cell flop_rate, flop_use, hbm_rate, hbm_use, intensity, roof_use;
    struct report_cell normalized_flop_rate, cmem_read, cmem_write;
    struct report_cell bound; /* text */
};
void op_use_of(const struct figures *f, const struct op_metrics *m, struct op_use *u);

#endif
