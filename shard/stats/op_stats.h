/* shard/stats/op_stats.h - where the time of a profile went: by op, by kernel, by step.
 *
 * One host's part becomes a struct op_stats: what ran there, how fast its device could be, every
 * op with its times, flops and bytes, the busy time, the GPU kernels, and what each step of each
 * TPU core was made of. Stats of several hosts merge into one of the same kind. The tools are views
 * of it and compute nothing from events themselves.
 *
 *   op_stats_get     part -> stats, made at the first call and kept with the part; with the ops
 *                    inside fusions, which cost a text each: op_stats_children
 *   op_stats_pack    stats -> bytes that may travel; the host gets its place in the request
 *   op_stats_unpack  bytes -> stats
 *   op_stats_merge   two of different hosts -> one; associative, order-free
 *
 * Ops        An op of a device is (program, name). One that calls others (a while, a call) counts
 *            their time in time_ps, not in self_ps. Each core ends with an op IDLE, which is what
 *            is left of its time; merging adds these like others.
 * Device     The planes /device:TPU:*, or, if there are none, /device:GPU:*.
 * Time       TPU ops run on device time: the event's stats device_offset_ps and
 *            device_duration_ps where it has them. All sums are whole picoseconds.
 * Merging    Times and counts add. Of an op's texts those of the host that comes first in the
 *            request count. What does not add (device type, limits, cores) stays with its host
 *            in `hosts`; op_stats_session says what XProf makes of them together.
 * Order      ops, kernels and programs are sorted (by program and name, by what tells them apart,
 *            by id), hosts by index. Tools sort for themselves.
 * Ownership  Spans live as long as the part (op_stats_get), or as the arena and, for unpacked
 *            stats, the bytes that were unpacked.
 * Errors     XP_BUSY: the budget is spent. XP_CORRUPT: bytes that op_stats_pack did not write.
 */
#ifndef SHARD_OP_STATS_H
#define SHARD_OP_STATS_H

#include "lib/base/buf.h"
#include "shard/store/part.h"

/* XProf's numbers; the greater wins when hosts differ. */
enum op_hardware { OP_HW_UNKNOWN, OP_HW_CPU_ONLY, OP_HW_GPU, OP_HW_TPU };

/* --- ops --- */

enum op_mem_space { OP_MEM_HBM, OP_MEM_CMEM, OP_MEM_VMEM, OP_MEM_OTHER, OP_MEM_SPACES };
enum op_mem_access { OP_MEM_UNKNOWN, OP_MEM_READ, OP_MEM_WRITE, OP_MEM_ACCESSES };

struct op_memory {
    uint64_t bytes[OP_MEM_SPACES][OP_MEM_ACCESSES];
    bool known; /* some entry was given, be it 0 */
};

enum op_core_type { OP_CORE_UNKNOWN, OP_CORE_TENSOR, OP_CORE_SPARSE };

/* How ops of one kind count: see op_kind_of. */
enum op_kind {
    OP_KIND_IDLE = 1 << 0,
    OP_KIND_INNER = 1 << 1,     /* may have ops inside: call, conditional, while, megacore fusion */
    OP_KIND_INFEED = 1 << 2,    /* infeed */
    OP_KIND_OUTFEED = 1 << 3,   /* outfeed */
    OP_KIND_HOST_XFER = 1 << 4, /* host send, host recv and their dones */
    OP_KIND_OFF_DUTY = 1 << 5,  /* the core waits: feeds, host transfers, async-done, ... */
    OP_KIND_FUSION = 1 << 6,
    OP_KIND_ALL_REDUCE = 1 << 7, /* all-reduce, all-to-all */
    OP_KIND_CUSTOM_CALL = 1 << 8,
};
uint32_t op_kind_of(struct xp_span category);

struct op_source {
    struct xp_span file, stack;
    int32_t line;
};

struct op_metrics {
    uint64_t program; /* 0: none; of an input pipeline's stage: its id */
    struct xp_span name, long_name, category, provenance, dedup_name;
    struct op_source source;
    uint64_t occurrences;
    uint64_t time_ps, self_ps, normalized_ps, dma_stall_ps;
    double flops, model_flops, energy_j;
    uint64_t bytes;
    /* What the runs of a custom call say of themselves, or what a library's matrix product must
     * cost; XProf 2.24.2 leaves it out. */
    double run_flops, run_model_flops;
    uint64_t run_bytes;
    struct op_memory memory;
    uint8_t core_type; /* enum op_core_type */
    bool eager;
    uint32_t host;               /* index of the host whose texts these are */
    int64_t first_begin_ps;      /* session time of a run on that host, one of the first */
    struct xp_span first_plane;  /* where that was; empty: not known */
    struct op_metrics *children; /* inside a fusion (no times), or on SparseCores */
    uint32_t nchildren;
    uint64_t children_total_ps; /* total time of SparseCore children */
};

struct op_db {
    struct op_metrics *ops;
    uint32_t n;
    uint64_t total_ps;                            /* last end - first begin, summed over cores */
    uint64_t total_op_ps;                         /* sum of self_ps without IDLE */
    uint64_t total_op_norm_ps;                    /* the same, normalized */
    uint64_t infeed_enq_ps, infeed_enq_starts_ps; /* host: see http-api 10 */
};

/* --- steps of TPU cores --- */

struct op_category_time {
    struct xp_span category;
    uint64_t self_ps;
};

struct op_collective {
    uint64_t unique_id, id; /* all_reduce_unique_id, all_reduce_id */
    int64_t begin_ps, end_ps;
    uint64_t bytes;
};

/* What ran on one core in one group of events. Not yet cut to the steps that all cores have. */
struct op_step {
    int64_t group;
    bool marked; /* has an event in the line of steps: name and times below */
    struct xp_span name;
    int64_t begin_ps, end_ps;            /* device time */
    uint64_t op_self_ps;                 /* sum of self_ps */
    struct op_category_time *categories; /* sorted by category; no IDLE */
    uint32_t ncategories;
    struct op_collective *collectives;
    uint32_t ncollectives;
    /* Sums over ops that have none inside; feeds_* of those that are infeed or outfeed. */
    double flops, model_flops, feeds_flops, feeds_model_flops;
    double run_flops, hbm_bytes; /* as our reports count them: figures_run.h */
    uint64_t bytes, feeds_bytes, feeds_ps;
    struct op_memory memory, feeds_memory;
};

#define OP_SPARSE_CORE_KEY 1000000u /* XProf's key of a SparseCore: this + plane id */

struct op_core {
    uint32_t key;   /* as XProf counts cores within a host */
    uint32_t plane; /* in the host's part; meaningless after unpack */
    bool sparse;
    bool has_details; /* the plane's stat core_details: */
    uint32_t device_ordinal, core_num, local_chip_id, global_chip_id, global_core_id;
    struct op_step *steps; /* by group */
    uint32_t nsteps;
};

/* --- hosts --- */

enum op_bandwidth {
    OP_BW_HBM,
    OP_BW_SRAM_RD,
    OP_BW_SRAM_WR,
    OP_BW_CMEM_RD,
    OP_BW_CMEM_WR,
    OP_BW_VMEM_RD,
    OP_BW_VMEM_WR,
    OP_BW_COUNT
};

struct op_limits {
    double peak_tflops;      /* TFLOP/s of a core; 0: not known */
    double gbs[OP_BW_COUNT]; /* GB/s */
    uint32_t ngbs;           /* how many are given: 0, 3 (GPU) or 7 (TPU) */
    bool has_cmem, has_merged_vmem, has_megacore;
};

struct op_host {
    uint32_t index;          /* place in the request */
    struct xp_span hostname; /* as the profile says, or "localhost" */
    struct xp_span device_type;
    uint8_t hardware; /* enum op_hardware */
    uint32_t device_cores;
    bool training;
    struct op_limits limits;
    struct op_core *cores; /* TPU: in file order */
    uint32_t ncores;
    uint64_t busy_ps, idle_ps; /* TPU: united over the cores of a chip, summed over chips */
    uint64_t busy_sure_ps, idle_sure_ps; /* the same, where custom calls may be waiting */
    bool has_mxu, has_hbm_util;
    double mxu_percent, hbm_percent;   /* stats of the host plane */
    struct xp_span *errors, *warnings; /* of the profile, each once, sorted */
    uint32_t nerrors, nwarnings;
};

/* --- kernels (GPU) --- */

/* Durations fall into bins that begin at 1, 1.5, 2, 3, 5, 7 times a power of ten, from 10 ns on;
 * bin 0 holds what is shorter, the last what takes 100 s or more. */
#define OP_KERNEL_BINS 62
uint32_t op_kernel_bin(uint64_t ns);
uint64_t op_kernel_bin_begin(uint32_t bin); /* ns */

struct op_kernel {
    struct xp_span name, op_name;
    uint32_t grid[3], block[3];
    uint32_t registers, static_shmem, dynamic_shmem;
    float occupancy;
    bool tensor_core, eligible;
    uint64_t occurrences, total_ns, min_ns, max_ns;
    uint32_t bins[OP_KERNEL_BINS]; /* occurrences by duration */
};

/* Of all kernels, those too that are not kept. */
struct op_kernel_sums {
    uint64_t total_ns, tensor_ns, unnamed_ns; /* unnamed: no op is known that launched it */
    uint64_t occurrences;
    uint64_t bins[OP_KERNEL_BINS];
};

struct op_program {
    uint64_t id;
    struct xp_span name;
};

/* --- all of it --- */

struct op_stats {
    struct op_host *hosts;
    uint32_t nhosts;
    struct op_db device, host;
    struct op_kernel *kernels;
    uint32_t nkernels;
    struct op_kernel_sums kernel_sums;
    struct op_program *programs;
    uint32_t nprograms;
};

/* The part is pinned and wholly loaded. */
enum xp_status op_stats_get(struct part *p, const struct op_stats **out, struct xp_error *err);
enum xp_status op_stats_children(struct part *p, const struct op_stats **out, struct xp_error *err);

/* children: with the ops inside fusions, if s has them (op_stats_children). Of a stats of one host,
 * index becomes the host's. */
void op_stats_pack(const struct op_stats *s, uint32_t index, bool children, struct xp_buf *out);
enum xp_status op_stats_unpack(struct xp_span bytes, struct xp_arena *a, struct op_stats **out,
                               struct xp_error *err);
/* x and y hold different hosts. Spans of the result point where those of x and y do. */
enum xp_status op_stats_merge(const struct op_stats *x, const struct op_stats *y,
                              struct xp_arena *a, struct op_stats **out, struct xp_error *err);

/* --- what hosts are together, as XProf combines them (http-api 12) --- */

struct op_session {
    uint32_t hosts; /* distinct names */
    uint32_t tasks, device_cores;
    struct xp_span device_type;
    uint8_t hardware;
    bool training;           /* of the last host */
    struct op_limits limits; /* several hosts: without has_* */
    uint64_t busy_ps, idle_ps;
    uint64_t busy_sure_ps, idle_sure_ps;
    double mxu_percent, hbm_percent; /* mean over hosts */
};
void op_stats_session(const struct op_stats *s, struct op_session *out);

/* --- derived figures --- */

/* a / b, and 0 where b is (nearly) 0, as XProf does everywhere. */
static inline double op_divide(double a, double b)
{
    return b < 1e-10 && b > -1e-10 ? 0.0 : a / b;
}

#define OP_GIB_PER_GB (1e9 / 1073741824.0)

static inline bool op_is_idle(const struct op_metrics *m)
{
    return xp_span_eq(m->category, XP_SPAN_LIT("IDLE"));
}

/* Sorted by (self time descending, name): pointers into db, from the arena; NULL: XP_BUSY. */
const struct op_metrics **op_db_sorted(const struct op_db *db, struct xp_arena *a);

/* Ops of the device by framework op, with IDLE unless without_idle (http-api 13.6). */
enum xp_status op_stats_by_framework(const struct op_db *device, bool with_idle, struct xp_arena *a,
                                     struct op_db *out, struct xp_error *err);

/* Rates of an op against the limits (http-api 13.9); GFLOP/s, GiB/s, FLOP/byte. */
struct op_rates {
    double flop_rate, model_flop_rate, memory_bw, intensity;
    double hbm_bw, cmem_rd_bw, cmem_wr_bw, vmem_rd_bw, vmem_wr_bw;
    double hbm_intensity, cmem_rd_intensity, cmem_wr_intensity, vmem_rd_intensity,
        vmem_wr_intensity, bound_intensity;
    const char *bound_by;
};
void op_rates_of(const struct op_metrics *m, const struct op_limits *limits,
                 enum op_hardware hardware, struct op_rates *r);

#endif
