#include "shard/tools/kernel_cause.h"

#include <stdlib.h>

#include "shard/stats/name_words.h"

/* In the order in which they are looked for. */
const struct kernel_cause_text kernel_cause_texts[KERNEL_CAUSES] = {
    [CAUSE_WORK] =
        {"work", "Computes",
         "a matrix, vector, transpose or other computing unit issues an instruction that "
         "is not about a sync flag",
         false},
    [CAUSE_DMA_IN] = {"dma_in", "Waits for input copies",
                      "in the region ep_wait_in of Pallas' pipeline, which waits for the DMAs that "
                      "bring the next blocks, and no unit computes",
                      true},
    [CAUSE_DMA_OUT] = {"dma_out", "Waits for output copies",
                       "in the regions ep_wait_out or ep_finalize of Pallas' pipeline, which wait "
                       "for the DMAs that take results away, and no unit computes",
                       true},
    [CAUSE_DMA] =
        {"dma", "Waits for a DMA",
         "an instruction or a region whose name has dma and wait, of which it is not told "
         "which way it copies, and no unit computes",
         true},
    [CAUSE_SYNC] = {"sync", "Semaphores, sync flags",
                    "instructions whose name has sync, barrier, fence or wait, or a region called "
                    "after a wait for a semaphore, barrier or flag, and no unit computes",
                    true},
    [CAUSE_WAIT] = {"wait", "Waits, not told for what",
                    "in a region whose name has wait and no more, and no unit computes", true},
    [CAUSE_VMEM] = {"vmem", "Loads and stores only",
                    "vector loads or stores issue, and no unit computes", true},
    [CAUSE_SPILL] = {"spill", "Spilled registers",
                     "only loads and stores of registers that were spilled issue (their text has "
                     "spill), maybe beside scalar instructions",
                     true},
    [CAUSE_SCALAR] = {"scalar", "Scalar unit only",
                      "only the scalar unit issues: addresses, loops, starts of DMAs", true},
    [CAUSE_GAP] = {"gap", "Nothing issues",
                   "between the first and the last instruction that was recorded, but none of any "
                   "unit: latency of what was issued before, or trace points that were dropped",
                   true},
    [CAUSE_REGION] =
        {"region", "In a region, units not told",
         "in a named region that does not wait, with no instructions recorded: what it "
         "did there the profile does not say",
         false},
    [CAUSE_UNRECORDED] = {"unrecorded", "Not recorded",
                          "before, after or without anything that the profile says of the kernel's "
                          "inside",
                          false},
};

static bool has(struct xp_span s, const char *what)
{
    return xp_span_has(s, xp_span_str(what));
}

/* Not what is asynchronous. */
static bool syncs(struct xp_span opcode)
{
    for (size_t i = 0; i + 4 <= opcode.n; i++)
        if (memcmp(opcode.p + i, "sync", 4) == 0 && (i == 0 || opcode.p[i - 1] != 'a'))
            return true;
    return false;
}

enum kernel_kind kernel_instruction_kind(struct xp_span unit, struct xp_span opcode,
                                         struct xp_span details)
{
    static const char *const sync[] = {"barrier", "fence", "wait"};
    if (has(opcode, "wait") && has(opcode, "dma"))
        return KERNEL_DMA;
    if (syncs(opcode))
        return KERNEL_SYNC;
    for (size_t i = 0; i < sizeof sync / sizeof *sync; i++)
        if (has(opcode, sync[i]))
            return KERNEL_SYNC;
    if (xp_span_eq(unit, XP_SPAN_LIT("SALU")))
        return KERNEL_SCALAR;
    if (xp_span_eq(unit, XP_SPAN_LIT("VLD")) || xp_span_eq(unit, XP_SPAN_LIT("VST")))
        return has(details, "spill") ? KERNEL_SPILL : KERNEL_VMEM;
    return KERNEL_WORK;
}

enum kernel_kind kernel_region_kind(struct xp_span region, bool *inferred)
{
    static const char *const flags[] = {"sem", "semaphore", "barrier", "sync", "flag", "sflag"};
    bool waits = name_has_word(region, "wait");
    *inferred = xp_span_eq(region, XP_SPAN_LIT("ep_finalize"));
    if (xp_span_starts(region, XP_SPAN_LIT("ep_wait_in")))
        return KERNEL_IN_DMA_IN;
    if (xp_span_starts(region, XP_SPAN_LIT("ep_wait_out")) || *inferred)
        return KERNEL_IN_DMA_OUT;
    if (waits && name_has_word(region, "dma"))
        return KERNEL_IN_DMA;
    if (waits && name_has_any(region, flags, sizeof flags / sizeof *flags))
        return KERNEL_IN_SYNC;
    return waits ? KERNEL_IN_WAIT : KERNEL_IN_REGION;
}

void kernel_spans_init(struct kernel_spans *s, struct xp_arena *a)
{
    *s = (struct kernel_spans){.a = a};
}

void kernel_spans_add(struct kernel_spans *s, enum kernel_kind kind, int64_t begin_ps,
                      int64_t end_ps)
{
    size_t n = s->of[kind].n;
    struct kernel_span *last = n ? &s->of[kind].v[n - 1] : NULL;
    if (end_ps <= begin_ps)
        return;
    if (last && begin_ps >= last->begin_ps && begin_ps <= last->end_ps) {
        last->end_ps = end_ps > last->end_ps ? end_ps : last->end_ps;
        return;
    }
    if (n == s->of[kind].cap) {
        size_t cap = n ? 2 * n : 64;
        struct kernel_span *v = xp_arena_alloc(s->a, cap * sizeof *v);
        if (!v) {
            s->full = true;
            return;
        }
        if (n)
            memcpy(v, s->of[kind].v, n * sizeof *v);
        s->of[kind].v = v;
        s->of[kind].cap = cap;
    }
    s->of[kind].v[s->of[kind].n++] = (struct kernel_span){begin_ps, end_ps};
}

int64_t kernel_bin_begin(const struct kernel_bins *b, uint32_t i)
{
    return b->from_ps + (int64_t)((__int128)(b->to_ps - b->from_ps) * i / b->n);
}

uint32_t kernel_bin_of(const struct kernel_bins *b, int64_t t)
{
    uint32_t i = (uint32_t)((__int128)(t - b->from_ps) * b->n / (b->to_ps - b->from_ps));
    while (i + 1 < b->n && kernel_bin_begin(b, i + 1) <= t) /* parts begin at rounded times */
        i++;
    return i;
}

void kernel_bins_add(const struct kernel_bins *b, int64_t begin_ps, int64_t end_ps, int64_t *v,
                     size_t stride)
{
    int64_t at = begin_ps > b->from_ps ? begin_ps : b->from_ps;
    int64_t end = end_ps < b->to_ps ? end_ps : b->to_ps;
    if (!b->n || at >= end)
        return;
    for (uint32_t i = kernel_bin_of(b, at); i < b->n && at < end; i++) {
        int64_t next = kernel_bin_begin(b, i + 1);
        int64_t stop = next < end ? next : end;
        v[i * stride] = kernel_sum(v[i * stride], stop - at);
        at = stop;
    }
}

/* --- the sweep --- */

struct edge {
    int64_t at;
    int32_t kind, delta;
};

static int by_time(const void *x, const void *y)
{
    int64_t a = ((const struct edge *)x)->at, b = ((const struct edge *)y)->at;
    return (a > b) - (a < b);
}

static enum kernel_cause cause_of(const int64_t *on, bool recorded)
{
    const bool fits[KERNEL_CAUSES] = {
        [CAUSE_WORK] = on[KERNEL_WORK] > 0,
        [CAUSE_DMA_IN] = on[KERNEL_IN_DMA_IN] > 0,
        [CAUSE_DMA_OUT] = on[KERNEL_IN_DMA_OUT] > 0,
        [CAUSE_DMA] = on[KERNEL_DMA] > 0 || on[KERNEL_IN_DMA] > 0,
        [CAUSE_SYNC] = on[KERNEL_SYNC] > 0 || on[KERNEL_IN_SYNC] > 0,
        [CAUSE_WAIT] = on[KERNEL_IN_WAIT] > 0,
        [CAUSE_VMEM] = on[KERNEL_VMEM] > 0,
        [CAUSE_SPILL] = on[KERNEL_SPILL] > 0,
        [CAUSE_SCALAR] = on[KERNEL_SCALAR] > 0,
        [CAUSE_GAP] = recorded,
        [CAUSE_REGION] = on[KERNEL_IN_REGION] > 0,
        [CAUSE_UNRECORDED] = true,
    };
    int c = CAUSE_WORK;
    while (!fits[c])
        c++;
    return (enum kernel_cause)c;
}

static size_t put_edges(const struct kernel_spans *s, const struct kernel_window *w, struct edge *e)
{
    size_t n = 0;
    for (int k = 0; k < KERNEL_KINDS; k++)
        for (size_t i = 0; i < s->of[k].n; i++) {
            int64_t begin = s->of[k].v[i].begin_ps, end = s->of[k].v[i].end_ps;
            begin = begin > w->begin_ps ? begin : w->begin_ps;
            end = end < w->end_ps ? end : w->end_ps;
            if (begin >= end)
                continue;
            e[n++] = (struct edge){begin, k, 1};
            e[n++] = (struct edge){end, k, -1};
        }
    /* Edges of nothing: the causes change where the record begins and ends, too. */
    if (w->has_record && w->record_ps > w->begin_ps && w->record_ps < w->end_ps)
        e[n++] = (struct edge){w->record_ps, 0, 0};
    if (w->has_record && w->recorded_ps > w->begin_ps && w->recorded_ps < w->end_ps)
        e[n++] = (struct edge){w->recorded_ps, 0, 0};
    e[n++] = (struct edge){w->end_ps, 0, 0};
    return n;
}

enum xp_status kernel_causes(const struct kernel_spans *s, const struct kernel_window *w,
                             struct kernel_cause_sums *sums, struct xp_error *err)
{
    int64_t on[KERNEL_KINDS] = {0}, at = w->begin_ps;
    size_t n = 3;
    memset(sums->ps, 0, sizeof sums->ps);
    for (int k = 0; k < KERNEL_KINDS; k++)
        n += 2 * s->of[k].n;
    struct edge *e = xp_arena_alloc(s->a, n * sizeof *e);
    if (!e || s->full)
        return xp_fail(err, XP_BUSY, 0, "no memory left for what a kernel did");
    n = put_edges(s, w, e);
    qsort(e, n, sizeof *e, by_time);
    for (size_t i = 0; i < n; i++) {
        if (e[i].at > at) {
            bool recorded = w->has_record && at >= w->record_ps && at < w->recorded_ps;
            enum kernel_cause c = cause_of(on, recorded);
            sums->ps[c] += e[i].at - at;
            if (sums->bins)
                kernel_bins_add(&w->bins, at, e[i].at, sums->bins + c, KERNEL_CAUSES);
            at = e[i].at;
        }
        on[e[i].kind] += e[i].delta;
    }
    return XP_OK;
}
