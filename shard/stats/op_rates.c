#include <stdlib.h>

#include "shard/stats/op_stats.h"

static double gib_per_s(uint64_t bytes, double ns)
{
    return op_divide((double)bytes, ns) * OP_GIB_PER_GB;
}

/* One thing that may hold an op back. */
struct resource {
    const char *name;
    double used, peak, intensity;
};

static void choose_bound(const struct resource *v, size_t n, struct op_rates *r)
{
    double most = 0;
    r->bound_by = "Unknown";
    r->bound_intensity = 0;
    for (size_t i = 0; i < n; i++) {
        double share = op_divide(v[i].used, v[i].peak);
        if (most < share) {
            most = share;
            r->bound_by = v[i].name;
            r->bound_intensity = v[i].intensity;
        }
    }
}

void op_rates_of(const struct op_metrics *m, const struct op_limits *l, enum op_hardware hardware,
                 struct op_rates *r)
{
    const struct op_memory *mem = &m->memory;
    double ns = (double)m->time_ps / 1e3;
    uint64_t hbm = m->bytes;
    if (mem->known)
        hbm = mem->bytes[OP_MEM_HBM][0] + mem->bytes[OP_MEM_HBM][1] + mem->bytes[OP_MEM_HBM][2];
    uint64_t cmem_rd = mem->bytes[OP_MEM_CMEM][OP_MEM_READ];
    uint64_t cmem_wr = mem->bytes[OP_MEM_CMEM][OP_MEM_WRITE];
    uint64_t vmem_rd = mem->bytes[OP_MEM_VMEM][OP_MEM_READ];
    uint64_t vmem_wr = mem->bytes[OP_MEM_VMEM][OP_MEM_WRITE];

    *r = (struct op_rates){
        .flop_rate = op_divide(m->flops, ns),
        .model_flop_rate = op_divide(m->model_flops, ns),
        .memory_bw = gib_per_s(m->bytes, ns),
        .intensity = op_divide(m->flops, (double)m->bytes),
        .hbm_bw = gib_per_s(hbm, ns),
        .cmem_rd_bw = gib_per_s(cmem_rd, ns),
        .cmem_wr_bw = gib_per_s(cmem_wr, ns),
        .vmem_rd_bw = gib_per_s(vmem_rd, ns),
        .vmem_wr_bw = gib_per_s(vmem_wr, ns),
        .hbm_intensity = op_divide(m->flops, (double)hbm),
        .cmem_rd_intensity = op_divide(m->flops, (double)cmem_rd),
        .cmem_wr_intensity = op_divide(m->flops, (double)cmem_wr),
        .vmem_rd_intensity = op_divide(m->flops, (double)vmem_rd),
        .vmem_wr_intensity = op_divide(m->flops, (double)vmem_wr),
    };
    bool tpu = hardware == OP_HW_TPU;
    double gib = OP_GIB_PER_GB;
    struct resource v[] = {
        {"Compute", r->flop_rate, l->peak_tflops * 1e3, r->intensity},
        {"HBM", r->hbm_bw, l->gbs[OP_BW_HBM] * gib, r->hbm_intensity},
        {"CMEM Read", r->cmem_rd_bw, tpu ? l->gbs[OP_BW_CMEM_RD] * gib : 0, r->cmem_rd_intensity},
        {"CMEM Write", r->cmem_wr_bw, tpu ? l->gbs[OP_BW_CMEM_WR] * gib : 0, r->cmem_wr_intensity},
        {"VMEM Read", r->vmem_rd_bw, tpu ? l->gbs[OP_BW_VMEM_RD] * gib : 0, r->vmem_rd_intensity},
        {"VMEM Write", r->vmem_wr_bw, tpu ? l->gbs[OP_BW_VMEM_WR] * gib : 0, r->vmem_wr_intensity},
        {"Shm/L1", r->hbm_bw, hardware == OP_HW_GPU ? l->gbs[OP_BW_SRAM_WR] * gib : 0,
         r->hbm_intensity},
    };
    choose_bound(v, sizeof v / sizeof *v, r);
}

/* --- order --- */

static int by_self_time(const void *a, const void *b)
{
    const struct op_metrics *x = *(const struct op_metrics *const *)a;
    const struct op_metrics *y = *(const struct op_metrics *const *)b;
    if (x->self_ps != y->self_ps)
        return x->self_ps > y->self_ps ? -1 : 1;
    int c = xp_span_cmp(x->name, y->name);
    return c ? c : (x->program > y->program) - (x->program < y->program);
}

const struct op_metrics **op_db_sorted(const struct op_db *db, struct xp_arena *a)
{
    const struct op_metrics **v = xp_arena_alloc(a, ((size_t)db->n + 1) * sizeof *v);
    if (!v)
        return NULL;
    for (uint32_t i = 0; i < db->n; i++)
        v[i] = &db->ops[i];
    qsort(v, db->n, sizeof *v, by_self_time);
    return v;
}

/* --- a session --- */

static bool new_name(const struct op_stats *s, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (xp_span_eq(s->hosts[k].hostname, s->hosts[i].hostname))
            return false;
    return true;
}

static void add_host(const struct op_host *h, struct op_session *out)
{
    if (!xp_span_eq(h->device_type, XP_SPAN_LIT("CPU"))) {
        out->device_type = h->device_type;
        out->device_cores += h->device_cores;
    } else if (!out->device_type.n) {
        out->device_type = h->device_type;
    }
    if (h->hardware > out->hardware)
        out->hardware = h->hardware;
    out->training = h->training;
    if (h->limits.peak_tflops > 0)
        out->limits.peak_tflops = h->limits.peak_tflops;
    if (h->limits.ngbs && !out->limits.ngbs) {
        memcpy(out->limits.gbs, h->limits.gbs, sizeof out->limits.gbs);
        out->limits.ngbs = h->limits.ngbs;
    }
    out->busy_ps += h->busy_ps;
    out->idle_ps += h->idle_ps;
    out->busy_sure_ps += h->busy_sure_ps;
    out->idle_sure_ps += h->idle_sure_ps;
    out->mxu_percent += h->mxu_percent;
    out->hbm_percent += h->hbm_percent;
}

void op_stats_session(const struct op_stats *s, struct op_session *out)
{
    *out = (struct op_session){.tasks = s->nhosts};
    for (uint32_t i = 0; i < s->nhosts; i++) {
        out->hosts += new_name(s, i);
        add_host(&s->hosts[i], out);
    }
    if (s->nhosts == 1)
        out->limits = s->hosts[0].limits;
    if (s->nhosts) {
        out->mxu_percent /= s->nhosts;
        out->hbm_percent /= s->nhosts;
    }
}
