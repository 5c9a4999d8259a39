/* shard/stats/figures.h - what every report takes as given: each figure once, its rule beside it.
 *
 *   figures_of       part -> one host's figures: spans of its cores, steps, modules
 *   figures_pack     -> bytes that may travel; the host gets its place in the request
 *                    (bytes of different hosts are joined by appending, in any order)
 *   figures_open     bytes (and the op stats of the same hosts) -> the figures of the run
 *
 * Rules. All times are session picoseconds of the host, as the timeline shows them.
 *
 *   window     of a device: from the first begin to the last end of its steps, modules and ops (on
 *              GPUs: of what its streams did). Each device by itself.
 *
 *   busy       the union of the intervals of a device's ops, nested and overlapping ones once. On
 *              GPUs kernels and copies of all streams. Idle is the window less that.
 *
 *   step       TPU: an event of the line of steps of a core. It lasts to its end; where markers
 *              tile the time, the last one ends with the capture, not with the step, so it is not
 *              counted in times if there are others. GPU, CPU: the marker of the host (train ...,
 *              StepTraceAnnotation), or of the group of kernels. Else inferred: the runs of the
 *              module that took the most time, if a core ran it at least twice; one run is one
 *              step, and what follows until the next run belongs to it as far as waiting is
 *              concerned. step_marker= names another module, or events of host threads.
 *
 *   step time  of a step: mean over the cores that have it; of the run: mean over all hosts' steps.
 *
 *   input      a pause of a core (1 us or more) during at least half of which a thread of the host
 *              that launches steps was waiting for input or moving it, the whole pause; and the
 *              time of infeed ops. By time, not by group. CPU: as stats/steps.h says.
 *
 *   waiting    time in ops that end when others are ready: collectives, barriers, receives, and
 *              their dones.
 *
 *   straggler  who has the longest step time less waiting, if that is 3 % of a step more than the
 *              median: all others wait for it. A whole host if all its cores take that long.
 *
 *   clock      collectives and barriers of one step end everywhere at once: the median of the
 *              closest quarter of the differences of these ends from those of the first host, if
 *              they lie within 5 us of each other; offset=HOST:PS overrides it.
 *
 *   duty cycle op_stats.h's: an instant counts as its innermost op does; waiting does not count.
 *
 *   rates      flops and HBM bytes of all ops that have none inside (a run of a custom call that
 *              says its own: those) / windows of all devices.
 *
 *   peaks      peaks.h.
 *
 * Range. Of a part that is cut to one (derive/cut.h): the window is the range, as far as the device
 * was watched; busy, idle and waiting are what of them is inside; of ops, times are cut to the
 * range and those count, with flops and bytes, that begin in it. Steps are those wholly inside, and
 * what is known of each (its waiting until the next, too) is as of the whole profile, whose figures
 * are made first and kept.
 *
 * Ownership  Spans live as long as the part (figures_of), or the bytes (figures_open).
 * Errors     XP_BUSY: memory. XP_CORRUPT: bytes that figures_pack did not write. XP_BAD_REQUEST: an
 *            override that is none.
 */
#ifndef SHARD_FIGURES_H
#define SHARD_FIGURES_H

#include "shard/derive/derive.h"
#include "shard/derive/vec.h"
#include "shard/stats/op_stats.h"
#include "shard/stats/peaks.h"

#define FIGURE_STEPS_MAX 20000 /* of a core; later ones are not kept */
#define FIGURE_SYNCS_MAX 4096
#define FIGURE_MODULES_MAX 64
#define FIGURE_PAUSES_MAX 16 /* of a core: its longest */

enum figure_kind { FIGURE_TENSOR_CORE, FIGURE_SPARSE_CORE, FIGURE_GPU, FIGURE_CPU };

enum figure_basis { FIGURE_NO_STEPS, FIGURE_MARKERS, FIGURE_MODULE_RUNS, FIGURE_HOST_EVENTS };

struct figure_step {
    int64_t number;      /* as the marker says, or its place */
    struct xp_span name; /* may be empty */
    int64_t begin_ps, end_ps;
    int64_t until_ps; /* begin of the next, at least end_ps: what waiting is sought in */
    uint64_t busy_ps, input_ps, wait_ps;
    uint64_t barrier_ps; /* of wait_ps, what is no busy time: between ops */
    bool whole;          /* its end is known */
    bool last;           /* of several in the profile: what it waited for next was not captured */
};

/* The number that ends a step's name, or place. */
int64_t figure_step_number(struct xp_span name, int64_t place);

/* Nothing ran on the core. */
struct figure_pause {
    int64_t begin_ps, end_ps;
    bool input; /* the host waited for input, see above */
};

struct figure_core {
    struct xp_span name; /* of the plane */
    uint8_t kind;        /* enum figure_kind */
    uint32_t ordinal;
    int64_t begin_ps, end_ps; /* window; equal: nothing ran */
    uint64_t busy_ps, input_ps, wait_ps, barrier_ps;
    uint64_t event_ps; /* sum of the outermost events' durations */
    uint64_t loose_ps; /* of these, of kernels that no HLO op explains */
    struct figure_step *steps;
    uint32_t nsteps;
    struct figure_pause pauses[FIGURE_PAUSES_MAX]; /* longest first */
    uint32_t npauses;
};

struct figure_module {
    struct xp_span name;
    uint64_t runs, total_ps, min_ps, max_ps;
    uint64_t core_runs; /* most of one core */
};

/* An end that all hosts have at once. */
struct figure_sync {
    uint64_t key; /* of step, op, occurrence */
    int64_t end_ps;
};

struct figure_host {
    uint32_t index;      /* place in the request */
    struct xp_span name; /* of the file */
    struct xp_span chip; /* what the device calls itself, for peaks */
    int64_t start_wall_ns;
    uint8_t basis;             /* enum figure_basis */
    bool steps_cut, has_input; /* has_input: some event of a loader was seen */
    struct xp_span marker;     /* of which steps were inferred */
    uint64_t marker_runs;
    struct figure_core *cores;
    uint32_t ncores;
    struct figure_module *modules; /* by total time, longest first */
    uint32_t nmodules;
    struct figure_sync *syncs; /* by key */
    uint32_t nsyncs;
};

/* marker: step_marker=, or empty: then they are made at the first call and kept with the part.
 * Texts and arrays live as long as the part, or in a. */
enum xp_status figures_of(struct part *p, struct xp_span host, struct xp_span marker,
                          struct xp_arena *a, struct figure_host *out, struct xp_error *err);
void figures_pack(const struct figure_host *h, uint32_t index, struct xp_buf *out);
/* Bytes of hosts follow one another: joining is appending. */
enum xp_status figures_unpack(struct xp_span bytes, struct xp_arena *a, struct figure_host **hosts,
                              uint32_t *n, struct xp_error *err);

/* --- of the run --- */

struct figure {
    bool known;
    double v;
    char reason[280]; /* why not, and how to capture it */
    char note[200];   /* a label, or "" */
    bool has_spread;
    double min, max, sd;
    struct xp_span max_host;
};

/* A step of the run. */
struct run_step {
    int64_t number;
    struct xp_span name;
    double mean_ps, max_ps, min_ps;                /* over cores */
    double busy_ps, input_ps, wait_ps, barrier_ps; /* means */
    double worst_input; /* share of the core that waited most, of its step */
    double input;       /* mean share */
    uint32_t cores;
    uint32_t slowest_host, slowest_core; /* longest step time less waiting */
    int64_t begin_ps;                    /* of the step there */
    bool whole;
};

struct host_figures {
    struct xp_span name;
    bool has_steps, has_device;
    double step_ps, step_sd_ps;       /* mean over its whole steps */
    double idle, input, wait, own_ps; /* shares of its cores' windows; own: step less waiting */
    double late_ps;                   /* mean of its step's end less the earliest end; aligned */
    bool has_late, has_clock;
    double clock_ps; /* to add to its times */
    uint32_t cores;
};

struct figures {
    struct figure_host *hosts; /* by index */
    uint32_t nhosts;
    const struct op_stats *stats;
    struct op_session all;
    struct op_limits limits; /* of all.limits, with the peaks used here */
    struct device_peaks peaks;
    uint8_t basis;
    char basis_text[160]; /* "inferred from 12 runs of jit_train"; "" for markers */
    struct run_step *steps;
    uint32_t nsteps;
    bool common; /* steps are those that all hosts have */
    struct host_figures *by_host;
    uint64_t window_ps, busy_ps, wait_ps, barrier_ps, loose_ps; /* sums over devices */
    double flops, hbm_bytes;                                    /* sums over ops */
    struct figure step_time_mean, step_time_sd, nsteps_figure, idle, duty_cycle, input, device_time,
        flop_rate, mxu, hbm_rate, hbm, collective, unattributed, clock, straggler;
    char straggler_text[200];                /* "tpu-job-w-2/TPU:1"; "" */
    uint32_t straggler_host, straggler_core; /* places; core UINT32_MAX: all of the host's */
};

struct figure_override {
    struct xp_span host;
    double ps;
};

struct figures_ask {
    const struct peak_override *peaks;
    uint32_t npeaks;
    const struct figure_override *offsets;
    uint32_t noffsets;
};

enum xp_status figures_open(struct xp_span bytes, const struct op_stats *stats,
                            const struct figures_ask *ask, struct xp_arena *a, struct figures *out,
                            struct xp_error *err);

/* Does the op wait for others, or hand data to them? By its name, and its category. */
bool figure_is_wait(struct xp_span name);
bool figure_is_collective(struct xp_span category, struct xp_span name);

/* --- intervals: figures_spans.c --- */

struct figure_span {
    int64_t begin_ps, end_ps;
};
/* Sorts, joins what overlaps or touches: how many stay. */
size_t figure_unite(struct figure_span *v, size_t n);
/* What of [begin, end) they cover; united spans. *at: a place to go on from, for ascending calls;
 * 0 at first. */
uint64_t figure_covered(const struct figure_span *v, size_t n, size_t *at, int64_t begin_ps,
                        int64_t end_ps);

/* Does the device do something while an event of the line lasts (`busy` above)? */
bool figure_is_busy(const struct part *p, const struct part_line *l);
/* Appends the intervals of the line's events, struct figure_span in session time, all lanes; they
 * are not united. False: memory is out. */
bool figure_line_busy(const struct part_line *l, struct vec *spans);

/* From begin to end, 0 if it ends before: exact wherever the two are, where their signed difference
 * may not exist (times of a hostile file reach from -2^62 to 2^62). */
static inline uint64_t figure_length(int64_t begin_ps, int64_t end_ps)
{
    return end_ps > begin_ps ? (uint64_t)end_ps - (uint64_t)begin_ps : 0;
}

#endif
