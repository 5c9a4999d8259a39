/* shard/tools/coverage.h - how much of a run is there: what a profile tells of hosts and devices
 * that should be, of events that its profiler dropped, and of how the capture was begun.
 *
 * For reports: coverage_map puts a host's facts (facts.h), coverage_open reads those of all hosts,
 * coverage_metrics writes them. Nothing here looks at events.
 *
 * Expected  No profile says how many hosts there were. Two things tell how many devices: programs
 *           are compiled for so many (the module's device assignment, or who takes part in its
 *           collectives), and the highest id of a device that was seen, which says "at least".
 *           Hosts follow from the devices of each host that is there. All of it is labelled.
 * Dropped   The statistic dropped_traces of a device, and what errors and warnings of the profiler
 *           count. Profilers tell of it when it happens: no word of it is 0.
 */
#ifndef SHARD_COVERAGE_H
#define SHARD_COVERAGE_H

#include "shard/report/report.h"
#include "shard/tools/facts.h"

enum coverage_kind { COVERAGE_UNTOLD, COVERAGE_PROGRAM, COVERAGE_ON_DEMAND, COVERAGE_SNAPSHOT };

struct coverage_host {
    struct xp_span name;
    uint64_t devices;       /* with a plane of their own */
    uint64_t ids;           /* one more than the highest device id; 0: none is told */
    uint64_t compiled;      /* devices that a program is compiled for; 0: no program says */
    struct xp_span program; /* that */
    uint64_t names;         /* different names of hosts in the file */
    uint64_t dropped;       /* events */
    bool dropped_more;      /* some were, but it is not said how many */
    uint64_t complaints;    /* errors and warnings of the profiler */
    uint8_t kind;           /* enum coverage_kind */
    uint64_t asked_ms;      /* on demand: for so long */
};

struct coverage {
    struct coverage_host *hosts;
    size_t n;
};

enum xp_status coverage_map(const struct tool_host *host, const struct tool_args *args,
                            struct xp_arena *a, struct xp_span *partial, struct xp_error *err);
enum xp_status coverage_open(struct xp_span merged, struct xp_arena *a, struct coverage *c,
                             struct xp_error *err);

/* Metrics devices, expected_devices, expected_hosts, dropped_events, capture_kind. */
void coverage_metrics(struct report *r, const struct coverage *c);

/* --- for tests --- */

/* Devices that a program (HloModuleProto) is compiled for; 0: it does not say. */
uint64_t coverage_of_module(struct xp_span module);
/* Events that such a message says were dropped; *more: some, it does not say how many. */
uint64_t coverage_of_message(struct xp_span text, bool *more);

#endif
