/* shard/tools/report_figures.h - what several reports show of stats/figures.h, written once.
 */
#ifndef SHARD_REPORT_FIGURES_H
#define SHARD_REPORT_FIGURES_H

#include "shard/stats/figures.h"
#include "shard/tools/session.h"

/* whole: it is written without a fraction, as picoseconds are. */
void report_figure(struct report *r, const char *id, const struct figure *f, bool whole);

/* Sets of metrics. */
void report_environment(struct report *r, const struct figures *f); /* hosts, device, cores */
void report_steps(struct report *r, const struct figures *f);       /* step times, input share */
void report_straggler(struct report *r, const struct figures *f);   /* and clock offsets */
void report_usage(struct report *r, const struct figures *f);       /* idle, rates, peaks */

/* Intensity, ridge, and how near the program is to its own optimum: the least of what its intensity
 * lets the matrix units and the memory do. */
void report_roof(struct report *r, const struct figures *f);

/* Tables and series. */
void report_table_hosts(struct report *r, const struct figures *f, struct xp_arena *a);
void report_table_pauses(struct report *r, const struct figures *f);
void report_table_steps(struct report *r, const struct figures *f);
void report_series_steps(struct report *r, const struct figures *f);
/* What the reader of any of them has to know: inferred steps, dropped events, odd peaks. */
void report_remarks(struct report *r, const struct figures *f);

#endif
