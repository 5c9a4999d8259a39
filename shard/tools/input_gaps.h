/* shard/tools/input_gaps.h - the partial of input_pipeline_analyzer's report: the session
 * (session.h) and, of each host, what its threads did while a core waited (stats/host_gaps.h).
 *
 * The core is that which waited longest. Its gaps are the pauses that were waits for input; where
 * none is known as one, all of its pauses: of each core the 16 longest are known.
 */
#ifndef SHARD_INPUT_GAPS_H
#define SHARD_INPUT_GAPS_H

#include "shard/stats/host_gaps.h"
#include "shard/tools/tool.h"

struct input_gaps {
    struct xp_span host, core;
    bool input; /* the gaps were waits for input */
    struct figure_span *gaps;
    uint32_t ngaps;
    uint64_t all_ps;           /* their length */
    struct host_gap_row *rows; /* longest first */
    uint32_t nrows;
};

enum xp_status input_gaps_map(const struct tool_host *host, const struct tool_args *args,
                              struct xp_arena *a, struct xp_span *partial, struct xp_error *err);
enum xp_status input_gaps_merge(struct xp_span x, struct xp_span y, struct xp_arena *a,
                                struct xp_span *both, struct xp_error *err);
/* *session: for session_open_report. */
enum xp_status input_gaps_open(struct xp_span merged, struct xp_arena *a, struct xp_span *session,
                               struct input_gaps **hosts, size_t *n, struct xp_error *err);

#endif
