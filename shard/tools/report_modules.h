/* shard/tools/report_modules.h - which HLO module a report is about: the one that is named
 * (module_name=, program_id=), or else the one that ran longest.
 *
 * For map: the modules of a host, longest first, go into the facts (facts.h) as a list, then
 * whether one was found; the tool's own facts follow if so.
 */
#ifndef SHARD_REPORT_MODULES_H
#define SHARD_REPORT_MODULES_H

#include "shard/hlo/hlo.h"
#include "shard/report/report.h"
#include "shard/tools/facts.h"

struct report_module {
    struct xp_span name;
    uint64_t program; /* 0: not known */
    uint64_t time_ps, runs, bytes;
};

/* Puts the list, and decodes the module; *m NULL: there is none of that name, or none at all. */
enum xp_status report_modules_put(struct facts_out *f, const struct tool_host *host,
                                  const struct tool_args *args, struct xp_arena *a,
                                  struct report_module *of, struct hlo_module **m,
                                  struct xp_error *err);

/* A host's modules, longest first. */
enum xp_status report_modules_list(const struct tool_host *host, struct xp_arena *a,
                                   struct report_module **v, size_t *n, struct xp_error *err);

struct report_modules {
    struct report_module *v; /* of all hosts, in the first's order */
    size_t n;
    struct report_module of; /* the one in question */
    struct facts *found;     /* whose facts stand behind it; NULL: there is no such module */
};

/* For write: what the maps put; says what is missing. The list is a table of its own. */
enum xp_status report_modules_get(struct facts *hosts, size_t n, const struct tool_args *args,
                                  struct report *r, struct report_modules *out,
                                  struct xp_error *err);
void report_modules_table(struct report *r, const struct report_modules *m);

#endif
