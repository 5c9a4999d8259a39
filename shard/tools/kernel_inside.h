/* shard/tools/kernel_inside.h - what a profile says of the inside of one run of a custom kernel.
 *
 * Four kinds of lines of the TPU's plane do, and none need be there:
 *
 * - instructions: "SALU Instructions", "MXU0 Instructions", ...: what each unit issued, and in
 * which bundle; their stats may tell the line of source
 * - regions: "Pallas Primitives", "XLA TraceMe": named parts of the program, which nest
 * - schedule: "_counters_": how full the compiler made the bundles that follow each trace point, a
 *   share of each unit; no measurement
 * - trace points: "Tensor Core": when the program came by certain bundles
 *
 * kernel_inside_has says which there are; kernel_inside_read reads all events of the run once, each
 * line by itself. Time is session time, of the lines as the timeline shows them.
 *
 * Charts are about the part of the run for which something is recorded ([bins.from_ps, to_ps)): of
 * long runs often only the first instructions are.
 */
#ifndef SHARD_KERNEL_INSIDE_H
#define SHARD_KERNEL_INSIDE_H

#include "shard/query/values.h"
#include "shard/tools/kernel_cause.h"
#include "shard/tools/kernel_tally.h"

enum {
    KERNEL_HAS_INSTRUCTIONS = 1,
    KERNEL_HAS_REGIONS = 2,
    KERNEL_HAS_SCHEDULE = 4,
    KERNEL_HAS_POINTS = 8,
    KERNEL_HAS_FLAGS = 16 /* a line of sync flags; it is listed and no more */
};

#define KERNEL_BINS 240
#define KERNEL_UNITS 16
#define KERNEL_LINES 64
#define KERNEL_ISSUES_MAX                                                                          \
    ((size_t)4 << 20) /* bundles are not told apart among more instructions                        \
                       */

/* A unit as its line of instructions shows it, or as the schedule has it. */
struct kernel_unit {
    struct xp_span name;
    uint64_t instructions; /* that begin in the run */
    int64_t busy_ps;       /* it issues */
    bool joined;           /* busy is counted: of all its lines at once */
    double fill_ps;        /* schedule: share * time, summed */
    int64_t told_ps;       /* schedule: time for which a share is told */
    int64_t *busy;         /* by bin: ps */
    uint64_t *issued;      /* by bin: instructions */
    double *fill;          /* schedule, by bin: share * ps, and ps that it is told for */
    int64_t *told;
};

struct kernel_line {
    struct xp_span name;
    uint32_t kind; /* KERNEL_HAS_... */
    uint64_t events;
    int64_t first_ps,
        last_ps; /* what they cover of the run, from its first begin to the last end */
};

struct kernel_bundle {
    uint32_t number;
    uint64_t runs, instructions;
    int64_t time_ps, first_ps; /* from its begin to the next bundle's */
    struct xp_span opcodes;    /* of its first run */
    uint32_t source;           /* a text; 0: not told */
};

struct kernel_inside {
    struct xp_arena *a;
    int64_t begin_ps, end_ps;
    uint32_t has;
    struct kernel_bins bins;
    struct xp_strpool texts;
    struct kernel_unit units[KERNEL_UNITS], scheduled[KERNEL_UNITS];
    uint32_t nunits, nscheduled, units_cut; /* units_cut: of both that are left out */
    struct kernel_line lines[KERNEL_LINES];
    uint32_t nlines;
    uint64_t instructions, sourced; /* sourced: those that tell their line */
    int64_t record_ps, recorded_ps; /* from the first instruction to the end of the last */
    bool has_details, has_numbers, bundles_cut;
    uint64_t bundles;             /* issued: distinct begins of instructions */
    uint64_t *bundle_bins;        /* by bin */
    struct kernel_bundle *bundle; /* the longest first */
    uint32_t nbundle;
    uint64_t bundle_numbers;     /* of these and of those that are left out */
    struct kernel_tally opcodes; /* unit, opcode */
    struct kernel_tally sources; /* source, primitive, scopes */
    struct kernel_tally regions; /* parent row, name, line */
    struct kernel_tally codes;   /* trace points: from, to */
    struct kernel_spans spans;
    struct kernel_cause_sums causes;
    bool finalize_waits; /* some of dma_out is of a region whose name does not say that it waits */
};

/* What a line tells, KERNEL_HAS_...; 0: nothing of kernels. */
uint32_t kernel_line_kind(const struct part *p, const struct part_line *l);
/* Instructions say most (3); regions and trace points something; the schedule alone little; 0. */
int kernel_worth(uint32_t has);

/* Of the plane's lines that have an event in [begin, end). */
uint32_t kernel_inside_has(const struct part *p, const struct part_plane *pl, int64_t begin_ps,
                           int64_t end_ps);

/* XP_BUSY: no memory. */
enum xp_status kernel_inside_read(const struct part *p, const struct part_plane *pl,
                                  int64_t begin_ps, int64_t end_ps, struct xp_arena *a,
                                  struct kernel_inside **out, struct xp_error *err);

/* The source that most instructions of that primitive have; 0: none. */
uint32_t kernel_source_of(const struct kernel_inside *k, uint32_t primitive);

#endif
