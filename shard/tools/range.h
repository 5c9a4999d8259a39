/* shard/tools/range.h - reports about a part of the run: t0= and t1=, or steps=.
 *
 *   range_parse   the request's arguments -> what is asked; XP_BAD_REQUEST and a sentence if they
 *                 are not of their form
 *   range_map     a host's partial of the report, of what it has in the range, and what that is
 *   range_see     ... which joins what others had
 *   range_close   after the last host: XP_BAD_REQUEST if no host had anything of it
 *
 * t0, t1     Session picoseconds, as the timeline shows them; [t0, t1). The same on every host.
 * steps      "10-20" or "12": numbers of steps as reports show them, both ends included. On each
 *            host from where the first of them begins on a core to where the last one ends: hosts
 *            need not agree on clocks. A host without such steps has nothing in the range.
 * How        The host's part is cut (derive/cut.h) and mapped as if it were whole, so that all
 *            tools, which know nothing of ranges, agree. A range that holds all of a host's events
 *            is the whole profile, to the picosecond.
 * Whole      Reports about programs and not about times (tool_report.whole) leave the range alone
 *            and say so with the note range_ignored.
 */
#ifndef SHARD_RANGE_H
#define SHARD_RANGE_H

#include "shard/args.h"
#include "shard/tools/tool.h"

#define RANGE_STEP_MAX INT64_C(999999999999999)

/* What a host, or several, had of it. */
struct range_seen {
    bool found, has_steps, has_events;
    int64_t t0_ps, t1_ps;     /* of the steps, if some were found */
    int64_t low, high;        /* steps that there are */
    int64_t begin_ps, end_ps; /* from the first event to the last */
};

struct range {
    bool any, by_steps;
    struct report_range shown; /* what the document says */
    int64_t first, last;       /* steps */
    struct range_seen seen;
};

enum xp_status range_parse(const struct args *args, struct range *r, struct xp_error *err);
enum xp_status range_map(const struct range *r, const struct tool_report *report,
                         const struct tool_host *host, const struct tool_args *args,
                         struct xp_arena *a, struct xp_span *partial, struct range_seen *seen,
                         struct xp_error *err);
void range_see(struct range *r, const struct range_seen *seen);
enum xp_status range_close(struct range *r, const struct tool_report *report, struct xp_error *err);

/* For a partial that goes from one process to another, of one build: what was seen goes before it.
 * Nothing does unless a range is asked for. */
void range_put(const struct range *r, struct xp_buf *out);
enum xp_status range_take(const struct range *r, struct xp_span *partial, struct range_seen *seen,
                          struct xp_error *err);

#endif
