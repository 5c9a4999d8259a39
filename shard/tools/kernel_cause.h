/* shard/tools/kernel_cause.h - what a custom kernel did at each moment, as far as its profile says.
 *
 * The profile tells what each unit issued (lines of instructions) and which named region the
 * program was in (Pallas' own names, or the user's). Of both together each moment of a run has one
 * cause; the first that fits, in the order of enum kernel_cause, so that causes add up to the run.
 *
 *     kernel_spans_add(&s, KERNEL_WORK, begin, end);   for each thing that the profile says
 *     kernel_causes(&s, &window, sums)                 one sort, one sweep
 */
#ifndef SHARD_KERNEL_CAUSE_H
#define SHARD_KERNEL_CAUSE_H

#include "lib/base/arena.h"
#include "lib/base/status.h"

/* What an instruction, or the innermost region, says. */
enum kernel_kind {
    KERNEL_WORK,   /* a matrix, vector, transpose or other computing unit issues */
    KERNEL_DMA,    /* an instruction that waits for a DMA */
    KERNEL_SYNC,   /* one that waits for, or changes, a sync flag */
    KERNEL_VMEM,   /* a load or store of vector memory */
    KERNEL_SPILL,  /* ... of a register that was spilled */
    KERNEL_SCALAR, /* the scalar unit issues */
    KERNEL_IN_DMA_IN,
    KERNEL_IN_DMA_OUT,
    KERNEL_IN_DMA,
    KERNEL_IN_SYNC,
    KERNEL_IN_WAIT,
    KERNEL_IN_REGION, /* one that does not wait */
    KERNEL_KINDS
};

enum kernel_cause {
    CAUSE_WORK,
    CAUSE_DMA_IN,
    CAUSE_DMA_OUT,
    CAUSE_DMA,
    CAUSE_SYNC,
    CAUSE_WAIT,
    CAUSE_VMEM,
    CAUSE_SPILL,
    CAUSE_SCALAR,
    CAUSE_GAP,
    CAUSE_REGION,
    CAUSE_UNRECORDED,
    KERNEL_CAUSES
};

struct kernel_cause_text {
    const char *id, *label, *definition;
    bool stall; /* the kernel gets nowhere */
};
extern const struct kernel_cause_text kernel_cause_texts[KERNEL_CAUSES];

/* unit: the name of the line without " Instructions". details: the instruction's text, may be
 * empty. */
enum kernel_kind kernel_instruction_kind(struct xp_span unit, struct xp_span opcode,
                                         struct xp_span details);
/* inferred: the name does not say that it waits, but that is what it is for. */
enum kernel_kind kernel_region_kind(struct xp_span region, bool *inferred);

/* Times of a profile may be anything: sums stay at the greatest number. */
static inline int64_t kernel_sum(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

struct kernel_span {
    int64_t begin_ps, end_ps;
};

struct kernel_spans {
    struct xp_arena *a;
    struct {
        struct kernel_span *v;
        size_t n, cap;
    } of[KERNEL_KINDS];
    bool full; /* no memory was left */
};

void kernel_spans_init(struct kernel_spans *s, struct xp_arena *a);
/* One that begins in the last one of its kind, or at its end, makes that longer. */
void kernel_spans_add(struct kernel_spans *s, enum kernel_kind kind, int64_t begin_ps,
                      int64_t end_ps);

/* A stretch of time in equal parts. */
struct kernel_bins {
    int64_t from_ps, to_ps;
    uint32_t n;
};
int64_t kernel_bin_begin(const struct kernel_bins *b, uint32_t i); /* i == n: the end */
/* The part that t, which is in the stretch, is in. */
uint32_t kernel_bin_of(const struct kernel_bins *b, int64_t t);
/* Adds to each part what [begin, end) covers of it: v[i * stride]. */
void kernel_bins_add(const struct kernel_bins *b, int64_t begin_ps, int64_t end_ps, int64_t *v,
                     size_t stride);

struct kernel_window {
    int64_t begin_ps, end_ps;       /* the run */
    bool has_record;                /* instructions were recorded in */
    int64_t record_ps, recorded_ps; /* [record_ps, recorded_ps) */
    struct kernel_bins bins;
};

struct kernel_cause_sums {
    int64_t ps[KERNEL_CAUSES];
    int64_t *bins; /* n * KERNEL_CAUSES, bin by bin; NULL: not wanted */
};

enum xp_status kernel_causes(const struct kernel_spans *s, const struct kernel_window *w,
                             struct kernel_cause_sums *sums, struct xp_error *err);

#endif
