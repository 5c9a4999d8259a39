/* shard/tools/kernel_calls.h - the custom kernels of a host's TPUs and their runs.
 *
 * A kernel is an op that is a custom call: its HLO text says so, or its category. It is known by
 * program and name. Of a range what ran in it counts, cut to it; a run that begins before it is no
 * run of its own, but may be looked into.
 *
 *   kernel_calls_find    all of them, in one pass over the lines of ops
 *   kernel_calls_choose  the one that is asked for, else the one that took longest of those whose
 *                        inside was recorded best; and of that the run that is asked for, else the
 *                        middle one by time of those that were recorded best
 */
#ifndef SHARD_KERNEL_CALLS_H
#define SHARD_KERNEL_CALLS_H

#include "shard/query/values.h"
#include "shard/tools/tool.h"

struct kernel_call {
    struct xp_span op;
    struct xp_span target, source, stack, tf_op;
    uint64_t program, runs, recorded; /* recorded: runs whose inside is told */
    bool has_program;
    int64_t time_ps;                     /* of all, cut to the range */
    int64_t begun_ps, least_ps, most_ps; /* of those that begin in it */
    int64_t first_ps, first_duration_ps;
    struct xp_span first_plane;
    uint32_t best; /* of all its runs: what their insides tell, see kernel_run */
};

struct kernel_run {
    uint32_t kernel, plane; /* numbers */
    uint32_t has;           /* KERNEL_HAS_... */
    int64_t begin_ps, end_ps;
    bool begins; /* in the range */
};

struct kernel_calls {
    struct kernel_call *kernels;
    uint32_t n;
    struct kernel_run *runs; /* by begin */
    size_t nruns;
    bool tpu; /* there is one */
};

/* By its HLO text, or its category: is the op a custom call? */
bool kernel_is_call(struct xp_span hlo, struct xp_span category);

enum xp_status kernel_calls_find(const struct part *p, struct xp_arena *a, struct kernel_calls *out,
                                 struct xp_error *err);

/* kernel_told.c: fills in `has` of all runs. False: no memory. */
bool kernel_calls_tell(const struct part *p, struct kernel_calls *c, struct xp_arena *a);

struct kernel_ask {
    struct xp_span kernel, program; /* empty: not asked for */
    struct xp_span host;            /* whose run `run` is; empty: any */
    uint64_t run;                   /* from 1; 0: not asked for */
    bool soft;                      /* what is not there is no fault: prefer= */
};
/* Of kernel= or prefer=, program_id=, occurrence=, on=. XP_BAD_REQUEST when they are not of their
 * form. */
enum xp_status kernel_ask_of(const struct tool_args *args, struct kernel_ask *ask,
                             struct xp_error *err);

struct kernel_choice {
    bool found;
    uint8_t fit;     /* 2: it is called as was asked for; 1: but for its number; 0: it is another */
    bool run_other;  /* of that name, but not that run, on that host, of that program */
    uint32_t kernel; /* number */
    size_t run;
    uint64_t number, of; /* among the kernel's runs, by begin, from 1 */
};
void kernel_calls_choose(const struct kernel_calls *c, const struct kernel_ask *ask, bool here,
                         struct xp_arena *a, struct kernel_choice *out);

/* The name without what counts it: "matmul.12" is "matmul". */
struct xp_span kernel_base_name(struct xp_span op);

#endif
