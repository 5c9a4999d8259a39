/* shard/tools/report_chip_units.h - what units a TPU chip has by what is published of it, and
 * whether its counters say how busy they were.
 */
#ifndef SHARD_REPORT_CHIP_UNITS_H
#define SHARD_REPORT_CHIP_UNITS_H

#include "shard/report/report.h"
#include "shard/tools/facts.h"

#define CHIPS_SEEN_MAX 8 /* kinds of them in a run; more are not told */

struct chips_seen {
    struct chip_seen {
        struct xp_span type; /* "TPU v5 Lite" */
        bool counted;        /* the profile has hardware counters of one */
    } v[CHIPS_SEEN_MAX];
    uint32_t n;
};

/* The facts of counter_facts.h, behind them the chips. */
enum xp_status chip_units_map(const struct tool_host *host, const struct tool_args *args,
                              struct xp_arena *a, struct xp_span *partial, struct xp_error *err);
/* Of a host, where counter_facts_device said that there is no other; adds to all. */
void chip_units_get(struct facts *f, struct chips_seen *all);
/* Table "chip_units", and a note of counters that nobody can read. */
void chip_units_write(struct report *r, const struct chips_seen *all);

#endif
