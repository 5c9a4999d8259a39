/* shard/tools/report_overview.h - the panels of the overview beside its figures, ops and steps.
 *
 * What XProf's page has, too, is counted as it counts (op_sums.h, steps.h); but what the profile
 * does not say is n/a with a reason.
 */
#ifndef SHARD_REPORT_OVERVIEW_H
#define SHARD_REPORT_OVERVIEW_H

#include "shard/stats/figures.h"
#include "shard/tools/requests.h"
#include "shard/tools/session.h"

/* Where ops run, eagerly or not, in how many bits; goodput. */
enum xp_status report_overview_shares(struct report *r, const struct session *s,
                                      const struct figures *f, struct xp_error *err);
/* GPUs: what a step is made of, by kind. */
enum xp_status report_overview_kinds(struct report *r, const struct session *s,
                                     struct xp_error *err);
/* How long requests took; nothing where the run trains, or has none. */
void report_overview_latency(struct report *r, const struct session *s,
                             const struct requests *requests);
void report_overview_percentiles(struct report *r, const struct session *s,
                                 const struct requests *requests);
/* For the figures that a single moment explains: the step or op to look at. ops: by self time. */
void report_overview_windows(struct report *r, const struct figures *f,
                             const struct op_metrics *const *ops, uint32_t n);

#endif
