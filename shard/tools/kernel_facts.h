/* shard/tools/kernel_facts.h - the partial of the report about custom kernels: each host's kernels,
 * and the inside of one run of one of them, as facts (facts.h), behind the counters' samples.
 *
 * A host does not know of the others, so each looks into a run of the kernel that is asked for, or
 * of its own choice; the report shows one of these (kernel_facts_pick).
 */
#ifndef SHARD_KERNEL_FACTS_H
#define SHARD_KERNEL_FACTS_H

#include "shard/tools/facts.h"
#include "shard/tools/kernel_calls.h"
#include "shard/tools/kernel_inside.h"

#define KERNEL_ROWS 500 /* of a table, of a host */
#define KERNEL_REGIONS 2000
#define KERNEL_RUNS 1000

enum xp_status kernel_facts_map(const struct tool_host *host, const struct tool_args *args,
                                struct xp_arena *a, struct xp_span *partial, struct xp_error *err);

struct kernel_row {
    struct xp_span text[KERNEL_TALLY_KEYS];
    uint64_t count;
    int64_t time_ps, self_ps, longest_ps, first_ps;
    uint32_t parent; /* of a region: its row + 1; 0: none */
    struct xp_span source;
};

struct kernel_rows {
    struct kernel_row *v;
    size_t n;
    uint64_t total; /* n and those that are left out */
};

struct kernel_run_told {
    struct xp_span plane;
    int64_t begin_ps, end_ps;
    uint32_t has;
};

struct kernel_detail {
    uint32_t kernel;
    uint8_t fit; /* see kernel_choice */
    bool run_other;
    uint64_t number, of;
    struct xp_span plane;
    struct kernel_inside in; /* without tallies, texts and spans */
    struct kernel_rows opcodes, sources, regions, codes;
    struct xp_span *bundle_source;
    struct kernel_run_told *runs;
    size_t nruns;
};

struct kernel_host {
    struct xp_span name;
    struct kernel_calls calls;    /* without runs */
    struct kernel_detail *detail; /* NULL: none */
};

/* Behind the samples of counters. */
enum xp_status kernel_facts_read(struct facts *f, struct xp_arena *a, struct kernel_host *out,
                                 struct xp_error *err);

/* The host whose detail the report shows; NULL: none has one. */
const struct kernel_host *kernel_facts_pick(const struct kernel_host *hosts, size_t n);

#endif
