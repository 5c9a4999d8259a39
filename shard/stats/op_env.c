#include <stdlib.h>

#include "lib/base/pb_wire.h"
#include "shard/stats/op_gpu_limits.h"
#include "shard/stats/op_stats_int.h"

#define TPU_PREFIX XP_SPAN_LIT("/device:TPU:")
#define GPU_PREFIX XP_SPAN_LIT("/device:GPU:")

bool op_plane_stat(const struct op_build *b, const struct part_plane *pl, const char *name,
                   struct xspace_stat *out)
{
    struct xspace_stats it = xspace_stats_open(pl->stats, 6);
    struct xspace_stat s;
    while (xspace_stats_next(&it, &s))
        if (xp_span_eq(part_stat_name(b->part, pl, s.metadata_id), xp_span_str(name))) {
            *out = s;
            return true;
        }
    return false;
}

bool op_plane_num(const struct op_build *b, const struct part_plane *pl, const char *name,
                  double *v)
{
    struct xspace_stat s;
    if (!op_plane_stat(b, pl, name, &s))
        return false;
    switch (s.type) {
    case XSPACE_DOUBLE:
        *v = xp_pb_double(s.num);
        return true;
    case XSPACE_U64:
        *v = (double)s.num;
        return true;
    case XSPACE_I64:
        *v = (double)(int64_t)s.num;
        return true;
    default:
        return false;
    }
}

/* --- limits --- */

static const char *const tpu_bandwidths[OP_BW_COUNT] = {
    [OP_BW_HBM] = "peak_hbm_bw_gigabytes_per_second",
    [OP_BW_SRAM_RD] = "peak_sram_rd_bw_gigabytes_per_second",
    [OP_BW_SRAM_WR] = "peak_sram_wr_bw_gigabytes_per_second",
    [OP_BW_CMEM_RD] = "peak_cmem_rd_bw_gigabytes_per_second",
    [OP_BW_CMEM_WR] = "peak_cmem_wr_bw_gigabytes_per_second",
    [OP_BW_VMEM_RD] = "peak_vmem_rd_bw_gigabytes_per_second",
    [OP_BW_VMEM_WR] = "peak_vmem_wr_bw_gigabytes_per_second",
};

/* XProf reads flags of one type only. */
static bool flag(const struct op_build *b, const struct part_plane *pl, const char *name)
{
    struct xspace_stat s;
    return op_plane_stat(b, pl, name, &s) && s.type == XSPACE_I64 && s.num;
}

static void tpu_limits(const struct op_build *b, const struct part_plane *pl, struct op_limits *l)
{
    op_plane_num(b, pl, "peak_teraflops_per_second", &l->peak_tflops);
    for (int i = 0; i < OP_BW_COUNT; i++)
        op_plane_num(b, pl, tpu_bandwidths[i], &l->gbs[i]);
    l->ngbs = OP_BW_COUNT;
    l->has_cmem = l->gbs[OP_BW_CMEM_RD] > 0 || l->gbs[OP_BW_CMEM_WR] > 0;
    l->has_megacore = flag(b, pl, "has_megacore");
    l->has_merged_vmem = flag(b, pl, "has_merged_vmem");
}

static void gpu_caps(const struct op_build *b, const struct part_plane *pl, struct gpu_caps *caps)
{
    struct xspace_stat s;
    double v = 0;
    *caps = (struct gpu_caps){0};
    if (op_plane_num(b, pl, "clock_rate", &v))
        caps->clock_ghz = v / 1e6;
    op_plane_num(b, pl, "core_count", &caps->cores);
    op_plane_num(b, pl, "memory_bandwidth", &caps->memory_bytes_per_s);
    if (op_plane_num(b, pl, "compute_cap_major", &v))
        caps->major = (int)v;
    if (op_plane_num(b, pl, "compute_cap_minor", &v))
        caps->minor = (int)v;
    if (op_plane_stat(b, pl, "device_vendor", &s))
        caps->vendor = meta_stat_text(b->part, pl, &s);
    if (op_plane_stat(b, pl, "gpu_device_name", &s))
        caps->name = meta_stat_text(b->part, pl, &s);
}

static void gpu_limits(const struct op_build *b, const struct part_plane *pl, struct op_limits *l)
{
    struct gpu_caps caps;
    double v;
    gpu_caps(b, pl, &caps);
    l->ngbs = 3;
    l->gbs[OP_BW_HBM] = caps.memory_bytes_per_s / 1e9;
    l->gbs[OP_BW_SRAM_RD] = l->gbs[OP_BW_SRAM_WR] = caps.cores * gpu_shared_gbs(&caps);
    l->peak_tflops = caps.cores * gpu_core_gflops(&caps) / 1e3;
    if (op_plane_num(b, pl, "peak_teraflops_per_second", &v) && v > 0)
        l->peak_tflops = v;
    for (int i = OP_BW_SRAM_RD; i <= OP_BW_SRAM_WR; i++)
        if (op_plane_num(b, pl, tpu_bandwidths[i], &v) && v > 0)
            l->gbs[i] = v;
}

/* --- what it is --- */

static bool tpu_host(struct op_build *b, uint32_t first)
{
    struct op_host *h = b->host;
    struct xspace_stat s;
    bool typed = false;
    h->hardware = OP_HW_TPU;
    tpu_limits(b, &b->part->planes[first], &h->limits);
    for (uint32_t i = 0; i < b->part->nplanes; i++) {
        const struct part_plane *pl = &b->part->planes[i];
        if (!b->d->planes[i].tensor_core)
            continue;
        h->device_cores++;
        if (typed)
            continue;
        typed = true;
        if (op_plane_stat(b, pl, "device_type_string", &s) &&
            !op_text(b, meta_stat_text(b->part, pl, &s), &h->device_type))
            return false;
    }
    return true;
}

static bool gpu_host(struct op_build *b, uint32_t first, uint32_t n)
{
    struct op_host *h = b->host;
    struct gpu_caps caps;
    char model[GPU_MODEL_MAX];
    gpu_caps(b, &b->part->planes[first], &caps);
    h->hardware = OP_HW_GPU;
    h->device_cores = n;
    gpu_model(&caps, model);
    gpu_limits(b, &b->part->planes[first], &h->limits);
    return op_text(b, xp_span_str(model), &h->device_type);
}

/* First plane with that prefix and their number. */
static uint32_t planes_of(const struct op_build *b, struct xp_span prefix, uint32_t *n)
{
    uint32_t first = 0;
    *n = 0;
    for (uint32_t i = b->part->nplanes; i--;)
        if (xp_span_starts(op_plane_name(b, i), prefix)) {
            first = i;
            ++*n;
        }
    return first;
}

static void host_percents(struct op_build *b)
{
    for (uint32_t i = 0; i < b->part->nplanes; i++) {
        const struct part_plane *pl = &b->part->planes[i];
        if (!xp_span_eq(op_plane_name(b, i), XP_SPAN_LIT("/host:CPU")))
            continue;
        struct op_host *h = b->host;
        h->has_mxu = op_plane_num(b, pl, "matrix_unit_utilization_percent", &h->mxu_percent);
        h->has_hbm_util = op_plane_num(b, pl, "hbm_utilization_percent", &h->hbm_percent);
        return;
    }
}

static int by_text(const void *a, const void *b)
{
    return xp_span_cmp(*(const struct xp_span *)a, *(const struct xp_span *)b);
}

/* Sorted, each once. The texts themselves live as long as the part. */
static bool unique_texts(struct op_build *b, const struct xp_span *v, uint32_t n,
                         struct xp_span **out, uint32_t *nout)
{
    struct xp_span *to = n ? xp_bump_alloc(&b->bump, n * sizeof *to, 8) : NULL;
    *nout = 0;
    if (!n)
        return true;
    if (!to)
        return false;
    memcpy(to, v, n * sizeof *to);
    qsort(to, n, sizeof *to, by_text);
    for (uint32_t i = 0; i < n; i++)
        if (!i || !xp_span_eq(to[i], to[*nout - 1]))
            to[(*nout)++] = to[i];
    *out = to;
    return true;
}

enum xp_status op_environment(struct op_build *b)
{
    struct op_host *h = b->host;
    uint32_t ntpu, ngpu;
    uint32_t tpu = planes_of(b, TPU_PREFIX, &ntpu), gpu = planes_of(b, GPU_PREFIX, &ngpu);

    h->hostname = XP_SPAN_LIT("localhost");
    if (b->part->nhostnames)
        h->hostname = b->part->hostnames[0];
    host_percents(b);
    if (!unique_texts(b, b->part->errors, b->part->nerrors, &h->errors, &h->nerrors) ||
        !unique_texts(b, b->part->warnings, b->part->nwarnings, &h->warnings, &h->nwarnings))
        return op_busy(b);
    if (ntpu) {
        if (!tpu_host(b, tpu))
            return op_busy(b);
    } else if (ngpu) {
        if (!gpu_host(b, gpu, ngpu))
            return op_busy(b);
    } else {
        h->hardware = OP_HW_CPU_ONLY;
        h->device_type = XP_SPAN_LIT("CPU");
    }
    return XP_OK;
}
