/* shard/stats/host_gaps.h - what the threads of a host did while its device waited.
 *
 * Of each thread the time of its events in the gaps, less that of events inside them: so a thread
 * that stands in ten nested calls counts once, as the innermost. A name says what kind that is; the
 * one to look at is the one that works longest (host_gaps_busiest).
 *
 *   work     anything else
 *   input    an event of a loader: it waits for the work of others, or is all that is known of it
 *   waits    its name says that the thread waits (wait, block, sleep, acquire, idle)
 *   around   it lasts ten times as long as the gap or more, or is a step: a loop goes on around it
 */
#ifndef SHARD_HOST_GAPS_H
#define SHARD_HOST_GAPS_H

#include "shard/stats/figures.h"

enum host_gap_kind { HOST_GAP_AROUND, HOST_GAP_WAITS, HOST_GAP_INPUT, HOST_GAP_WORK };

struct host_gap_row {
    struct xp_span thread, event;
    uint8_t kind; /* enum host_gap_kind; the highest it had in any gap */
    uint64_t self_ps;
    uint32_t gaps;    /* in which it was seen */
    uint32_t most;    /* number of the gap in which it took longest */
    uint64_t most_ps; /* there */
};

#define HOST_GAPS_ROWS 100 /* of a host: those with the most time */

/* gaps: in session time, disjoint; step: what steps are called, or empty. Rows live in a, longest
 * first; their texts as long as the part.
 */
enum xp_status host_gaps_find(const struct part *p, const struct figure_span *gaps, uint32_t ngaps,
                              struct xp_span step, struct xp_arena *a, struct host_gap_row **rows,
                              uint32_t *n, struct xp_error *err);

/* Of rows, longest first: the longest work if it takes a tenth of all_ps, else the longest input
 * event if that does, else NULL. */
const struct host_gap_row *host_gaps_busiest(const struct host_gap_row *rows, uint32_t n,
                                             uint64_t all_ps);

#endif
