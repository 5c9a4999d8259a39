/* shard/tools/report_pod.h - parts of the report of hosts and steps that look at each core: who
 * waits for whom, what the cores' steps are made of, cores by hosts and in the torus, what goes
 * between them. For report_pod_viewer.c.
 */
#ifndef SHARD_REPORT_POD_H
#define SHARD_REPORT_POD_H

#include "shard/tools/comm.h"
#include "shard/tools/report_figures.h"

/* Sums over a core's whole steps. */
struct pod_core {
    const struct figure_host *host;
    const struct figure_core *core;
    uint64_t steps, step_ps, own_ps, compute_ps, input_ps, wait_ps, longest_ps;
};

void pod_core_add(struct pod_core *to, const struct figure_step *s);

/* In a step the others wait for the core with the longest step less waiting. What a core waits
 * there beyond what that one waits itself is waiting for it; a host's is the mean of its cores'. */
void report_pod_waits(struct report *r, const struct figures *f);

void report_pod_breakdown(struct report *r, const struct pod_core *cores, uint32_t n);
void report_pod_map(struct report *r, const struct figures *f, const struct pod_core *cores,
                    uint32_t n);
void report_pod_collectives(struct report *r, const struct figures *f);

/* Cores where their chips sit (topology.h), in the step of args' step= or the mean of all. */
enum xp_status report_pod_chips(struct report *r, const struct figures *f, const struct comm *c,
                                const struct pod_core *cores, uint32_t n,
                                const struct tool_args *args, struct xp_error *err);
/* Channels, who sends to whom in one (empty: that which takes longest), collectives by group. */
enum xp_status report_pod_links(struct report *r, const struct figures *f, const struct comm *c,
                                struct xp_span channel, struct xp_error *err);

#endif
