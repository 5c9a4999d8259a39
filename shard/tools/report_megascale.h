/* shard/tools/report_megascale.h - parts of the report of transfers between slices: collectives
 * each time they happened, the actions of one, and how many bytes were under way. For
 * report_megascale_stats.c.
 */
#ifndef SHARD_REPORT_MEGASCALE_H
#define SHARD_REPORT_MEGASCALE_H

#include "shard/tools/mega.h"

/* first: the collective that is shown unless args ask for another (collective=, occurrence=); of
 * it the occurrence that took longest. s: transfers, whose names may be asked for even if no
 * occurrence of theirs is whole. */
enum xp_status report_megascale_tracks(struct report *r, const struct mega *m,
                                       const struct slack *s, const struct facts *hosts, size_t n,
                                       struct xp_span first, const struct tool_args *args,
                                       struct xp_error *err);
void report_megascale_rates(struct report *r, const struct mega *m);

#endif
