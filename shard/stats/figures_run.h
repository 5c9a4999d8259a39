/* shard/stats/figures_run.h - figures of the run as a whole: its steps, its hosts side by side. */
#ifndef SHARD_FIGURES_RUN_H
#define SHARD_FIGURES_RUN_H

#include "shard/stats/figures.h"

/* Fills steps, by_host, clock, straggler. */
enum xp_status figure_run(struct figures *f, const struct figures_ask *ask, struct xp_arena *a,
                          struct xp_error *err);

/* How often a core of the host ran its marker. */
uint64_t figure_runs(const struct figure_host *h);

/* What all runs of an op did: its own cost, or what the runs of a custom call say. */
static inline double figure_flops(const struct op_metrics *m)
{
    return m->flops > 0 ? m->flops : m->run_flops;
}

/* A transfer that is begun and awaited by two ops counts with the first. Where that does not say
 * which memories it touches, its bytes are those it reads and those it writes, and one end of a
 * copy between memories is in HBM. */
static inline double figure_hbm_bytes(const struct op_metrics *m)
{
    const uint64_t *hbm = m->memory.bytes[OP_MEM_HBM];
    if (xp_span_ends(m->category, XP_SPAN_LIT("-done")))
        return 0;
    if (m->memory.known)
        return (double)(hbm[0] + hbm[1] + hbm[2]);
    bool copy = xp_span_eq(m->category, XP_SPAN_LIT("copy-start")) ||
                xp_span_eq(m->category, XP_SPAN_LIT("async-start"));
    return (double)(m->bytes ? m->bytes : m->run_bytes) / (copy ? 2 : 1);
}

static inline bool figure_is_custom(const struct op_metrics *m)
{
    return xp_span_eq(m->category, XP_SPAN_LIT("custom-call")) && !figure_is_wait(m->name);
}

#endif
