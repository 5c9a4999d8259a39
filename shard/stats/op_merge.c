#include <stdlib.h>

#include "shard/stats/op_stats_int.h"

#define KERNELS_MAX 1000 /* those with the longest total stay, as in XProf */

static enum xp_status busy(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left to join op statistics");
}

static int op_order(const struct op_metrics *x, const struct op_metrics *y)
{
    if (x->program != y->program)
        return x->program < y->program ? -1 : 1;
    return xp_span_cmp(x->name, y->name);
}

/* The texts of the host that comes first; numbers of both. */
static struct op_metrics both(const struct op_metrics *x, const struct op_metrics *y)
{
    const struct op_metrics *first = x->host <= y->host ? x : y, *second = first == x ? y : x;
    struct op_metrics m = *first;
    op_add(&m, second);
    return m;
}

static bool merge_db(const struct op_db *x, const struct op_db *y, struct xp_arena *a,
                     struct op_db *out)
{
    uint32_t i = 0, k = 0;
    *out = (struct op_db){
        .total_ps = x->total_ps + y->total_ps,
        .total_op_ps = x->total_op_ps + y->total_op_ps,
        .total_op_norm_ps = x->total_op_norm_ps + y->total_op_norm_ps,
        .infeed_enq_ps = x->infeed_enq_ps + y->infeed_enq_ps,
        .infeed_enq_starts_ps = x->infeed_enq_starts_ps + y->infeed_enq_starts_ps,
    };
    out->ops = xp_arena_alloc(a, ((size_t)x->n + y->n + 1) * sizeof *out->ops);
    if (!out->ops)
        return false;
    while (i < x->n || k < y->n) {
        int c = i == x->n ? 1 : k == y->n ? -1 : op_order(&x->ops[i], &y->ops[k]);
        if (c < 0)
            out->ops[out->n++] = x->ops[i++];
        else if (c > 0)
            out->ops[out->n++] = y->ops[k++];
        else
            out->ops[out->n++] = both(&x->ops[i++], &y->ops[k++]);
    }
    return true;
}

static bool merge_hosts(const struct op_stats *x, const struct op_stats *y, struct xp_arena *a,
                        struct op_stats *out)
{
    uint32_t i = 0, k = 0;
    out->nhosts = x->nhosts + y->nhosts;
    out->hosts = xp_arena_alloc(a, ((size_t)out->nhosts + 1) * sizeof *out->hosts);
    if (!out->hosts)
        return false;
    for (uint32_t n = 0; n < out->nhosts; n++) {
        bool from_x = k == y->nhosts || (i < x->nhosts && x->hosts[i].index <= y->hosts[k].index);
        out->hosts[n] = from_x ? x->hosts[i++] : y->hosts[k++];
    }
    return true;
}

static bool merge_programs(const struct op_stats *x, const struct op_stats *y, struct xp_arena *a,
                           struct op_stats *out)
{
    uint32_t i = 0, k = 0;
    out->programs =
        xp_arena_alloc(a, ((size_t)x->nprograms + y->nprograms + 1) * sizeof *out->programs);
    if (!out->programs)
        return false;
    while (i < x->nprograms || k < y->nprograms) {
        const struct op_program *p = i < x->nprograms ? &x->programs[i] : NULL;
        const struct op_program *q = k < y->nprograms ? &y->programs[k] : NULL;
        bool take_p = p && (!q || p->id <= q->id), take_q = q && (!p || q->id <= p->id);
        bool p_counts = take_p && (!take_q || xp_span_cmp(p->name, q->name) <= 0);
        const struct op_program *one = p_counts ? p : q;
        if (one)
            out->programs[out->nprograms++] = *one;
        i += take_p;
        k += take_q;
    }
    return true;
}

/* --- kernels --- */

static int compare_u64(uint64_t x, uint64_t y)
{
    return (x > y) - (x < y);
}

/* What tells kernels apart, in XProf's order. */
int op_kernel_compare(const struct op_kernel *x, const struct op_kernel *y)
{
    int c = xp_span_cmp(x->name, y->name);
    for (int i = 0; !c && i < 3; i++)
        c = compare_u64(x->grid[i], y->grid[i]);
    for (int i = 0; !c && i < 3; i++)
        c = compare_u64(x->block[i], y->block[i]);
    c = c ? c : compare_u64(x->registers, y->registers);
    c = c ? c : compare_u64(x->static_shmem, y->static_shmem);
    c = c ? c : compare_u64(x->dynamic_shmem, y->dynamic_shmem);
    c = c ? c : compare_u64(x->tensor_core, y->tensor_core);
    c = c ? c : compare_u64(x->eligible, y->eligible);
    return c ? c : xp_span_cmp(x->op_name, y->op_name);
}

static const uint64_t bin_begins[] = {10, 15, 20, 30, 50, 70};
#define BINS_A_DECADE (sizeof bin_begins / sizeof *bin_begins)

uint32_t op_kernel_bin(uint64_t ns)
{
    uint32_t bin = 1;
    uint64_t power = 1;
    if (ns < bin_begins[0])
        return 0;
    for (; ns >= 100 * power && bin < OP_KERNEL_BINS - 1; power *= 10)
        bin += BINS_A_DECADE;
    for (uint32_t i = 1;
         i < BINS_A_DECADE && bin < OP_KERNEL_BINS - 1 && ns >= bin_begins[i] * power; i++)
        bin++;
    return bin;
}

uint64_t op_kernel_bin_begin(uint32_t bin)
{
    uint64_t power = 1;
    if (!bin)
        return 0;
    for (bin--; bin >= BINS_A_DECADE; bin -= BINS_A_DECADE)
        power *= 10;
    return bin_begins[bin] * power;
}

static void add_sums(struct op_kernel_sums *s, const struct op_kernel_sums *x)
{
    s->total_ns += x->total_ns;
    s->tensor_ns += x->tensor_ns;
    s->unnamed_ns += x->unnamed_ns;
    s->occurrences += x->occurrences;
    for (int i = 0; i < OP_KERNEL_BINS; i++)
        s->bins[i] += x->bins[i];
}

static int by_total(const void *a, const void *b)
{
    const struct op_kernel *x = a, *y = b;
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    int c = op_kernel_compare(x, y);
    c = c ? c : compare_u64(x->occurrences, y->occurrences);
    c = c ? c : compare_u64(x->min_ns, y->min_ns);
    c = c ? c : compare_u64(x->max_ns, y->max_ns);
    return c ? c : (x->occupancy > y->occupancy) - (x->occupancy < y->occupancy);
}

uint32_t op_kernels_sort(struct op_kernel *v, uint32_t n)
{
    qsort(v, n, sizeof *v, by_total);
    return n < KERNELS_MAX ? n : KERNELS_MAX;
}

static bool merge_kernels(const struct op_stats *x, const struct op_stats *y, struct xp_arena *a,
                          struct op_stats *out)
{
    uint32_t n = x->nkernels + y->nkernels;
    out->kernels = xp_arena_alloc(a, ((size_t)n + 1) * sizeof *out->kernels);
    if (!out->kernels)
        return false;
    if (x->nkernels)
        memcpy(out->kernels, x->kernels, x->nkernels * sizeof *x->kernels);
    if (y->nkernels)
        memcpy(out->kernels + x->nkernels, y->kernels, y->nkernels * sizeof *y->kernels);
    out->nkernels = op_kernels_sort(out->kernels, n);
    add_sums(&out->kernel_sums, &x->kernel_sums);
    add_sums(&out->kernel_sums, &y->kernel_sums);
    return true;
}

enum xp_status op_stats_merge(const struct op_stats *x, const struct op_stats *y,
                              struct xp_arena *a, struct op_stats **out, struct xp_error *err)
{
    struct op_stats *s = xp_arena_zalloc(a, sizeof *s);
    if (!s || !merge_hosts(x, y, a, s) || !merge_db(&x->device, &y->device, a, &s->device) ||
        !merge_db(&x->host, &y->host, a, &s->host) || !merge_kernels(x, y, a, s) ||
        !merge_programs(x, y, a, s))
        return busy(err);
    *out = s;
    return XP_OK;
}
