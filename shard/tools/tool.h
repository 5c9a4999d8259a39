/* shard/tools/tool.h - what a tool is: one file tool_<name>.c and one row of tools.def.
 *
 * A tool with `answer` sees all hosts' parts at once, in the order asked (the trace viewers). A
 * tool with map/merge/render turns one host into a small partial, joins partials in any order,
 * and writes the joined one: that is the road that scales over shards. If both are there, `answer`
 * is for one host.
 *
 *   map     one host -> partial, in memory of `a`
 *   merge   two partials of different hosts -> one; associative, order-free, and the empty partial
 *           joined with x is x
 *   render  the joined partial -> the answer
 *
 * Parts are pinned and wholly loaded while a tool runs; it runs on a worker, polls out_cancelled
 * in long loops, and takes scratch memory from the arena given, which is dropped after it.
 * Errors: XP_NOT_FOUND is XProf's "No Data" (404) on the compatible routes.
 * CSV: args->csv asks for the answer's first table as CSV (table.h knows how); a tool that has
 * no table fails with tool_no_csv.
 */
#ifndef SHARD_TOOL_H
#define SHARD_TOOL_H

#include "shard/out.h"
#include "shard/report/report.h"
#include "shard/store/part.h"

struct tool_args {
    const struct tool_arg {
        struct xp_span name, value;
    } * args;
    size_t n;
    bool csv;
    const struct report_range *range; /* of a report: NULL, all of the run */
};

/* The first value of name; false when absent. */
bool tool_arg(const struct tool_args *a, const char *name, struct xp_span *value);

struct tool_host {
    struct part *part;
    struct xp_span name; /* host name: the file's, without its suffix */
    uint32_t index;      /* place in the request */
};

/* What the tool says in our own API: see report/report.h. map and merge as above; a file that ends
 * early or that XProf would not read is a host like others. NULL: the tool's own. */
struct tool_report {
    const char *question; /* what a user comes for */
    bool whole;           /* about programs, not about times: no range changes it (range.h) */
    enum xp_status (*map)(const struct tool_host *host, const struct tool_args *args,
                          struct xp_arena *a, struct xp_span *partial, struct xp_error *err);
    enum xp_status (*merge)(struct xp_span x, struct xp_span y, struct xp_arena *a,
                            struct xp_span *both, struct xp_error *err);
    enum xp_status (*write)(struct xp_span merged, const struct tool_args *args, struct report *r,
                            struct xp_error *err);
};

struct tool {
    const char *id;
    bool index_only; /* the parts' index is enough: planes may not be ready yet */
    bool glance;     /* that is so for all hosts but the first */
    bool tolerant; /* a file that cannot be read is a host with part NULL; no host at all is fine */
    enum xp_status (*answer)(const struct tool_host *hosts, size_t n, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err);
    enum xp_status (*map)(const struct tool_host *host, const struct tool_args *args,
                          struct xp_arena *a, struct xp_span *partial, struct xp_error *err);
    enum xp_status (*merge)(struct xp_span x, struct xp_span y, struct xp_arena *a,
                            struct xp_span *both, struct xp_error *err);
    enum xp_status (*render)(struct xp_span merged, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err);
    const struct tool_report *report; /* NULL: none */
};

/* "Data format not suitable for CSV ...", XP_INTERNAL: XProf's 500. */
enum xp_status tool_no_csv(struct xp_error *err);
/* The `answer` of a tool that XProf does not have and that is a report alone. */
enum xp_status tool_no_data(const struct tool_host *hosts, size_t n, const struct tool_args *args,
                            struct xp_arena *scratch, struct out *out, struct xp_error *err);

/* The whole way of a tool: map each host, merge, render, or its answer. */
enum xp_status tool_run(const struct tool *t, const struct tool_host *hosts, size_t n,
                        const struct tool_args *args, struct xp_arena *scratch, struct out *out,
                        struct xp_error *err);

/* The report of hosts that were mapped and merged by t->report; args->csv: one table as CSV. */
enum xp_status tool_report_run(const struct tool *t, const struct report_host *hosts, size_t n,
                               struct xp_span merged, const struct tool_args *args,
                               struct xp_arena *scratch, struct out *out, struct xp_error *err);
/* The row's own map and merge where the report names none. */
struct tool_report tool_report_of(const struct tool *t);

const struct tool *tool_find(struct xp_span id);

#endif
