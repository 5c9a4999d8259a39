#include "lib/base/pb_wire.h"
#include "shard/stats/op_tpu_int.h"

/* A device plane and what it gave. */
struct device {
    uint32_t plane;
    bool sparse;
    struct tpu_duty duty;
    struct vec spans, sure_spans;
    struct op_core *core;
    bool shared; /* its chip has other cores: intervals are to be united */
};

static bool is_sparse(struct xp_span name)
{
    static const struct xp_span mark = {(const uint8_t *)" SparseCore ", 12};
    return xp_span_has(name, mark);
}

/* CoreDetails */
static void read_details(struct op_core *core, struct xp_span bytes)
{
    struct xp_pb msg = xp_pb_open(bytes);
    struct xp_pb_field f;
    uint32_t *fields[] = {[2] = &core->device_ordinal,
                          [3] = &core->core_num,
                          [4] = &core->local_chip_id,
                          [5] = &core->global_chip_id,
                          [6] = &core->global_core_id};
    while (xp_pb_next(&msg, &f))
        if (f.type == XP_PB_VARINT && f.num >= 2 && f.num <= 6)
            *fields[f.num] = (uint32_t)f.value;
    core->has_details = !msg.bad;
}

static void describe(const struct op_build *b, struct device *dev, struct op_core *core)
{
    const struct part_plane *pl = &b->part->planes[dev->plane];
    struct xspace_stat s;
    *core = (struct op_core){.plane = dev->plane, .sparse = dev->sparse};
    core->key = (uint32_t)pl->id + (dev->sparse ? OP_SPARSE_CORE_KEY : 0);
    if (op_plane_stat(b, pl, "core_details", &s) &&
        (s.type == XSPACE_BYTES || s.type == XSPACE_STR))
        read_details(core, s.bytes);
    dev->core = core;
}

static void find_shared(struct device *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n && v[i].core->has_details && !v[i].shared; k++)
            v[i].shared = k != i && v[k].core->has_details &&
                          v[k].core->local_chip_id == v[i].core->local_chip_id;
    for (uint32_t i = 0; i < n; i++) {
        if (!v[i].shared)
            continue;
        v[i].duty.busy.spans = &v[i].spans;
        v[i].duty.sure.spans = &v[i].sure_spans;
    }
}

static int by_begin(const void *a, const void *b)
{
    const struct tpu_span *x = a, *y = b;
    return (x->begin_ps > y->begin_ps) - (x->begin_ps < y->begin_ps);
}

static bool append(struct vec *to, struct vec *from)
{
    for (size_t k = 0; k < from->n; k++) {
        struct tpu_span *s = vec_push(to, sizeof *s);
        if (!s)
            return false;
        *s = VEC(*from, struct tpu_span)[k];
    }
    vec_free(from);
    return true;
}

static uint64_t unite(struct vec *spans)
{
    struct tpu_union u = {0};
    if (spans->n)
        qsort(spans->p, spans->n, sizeof(struct tpu_span), by_begin);
    for (size_t k = 0; k < spans->n; k++)
        tpu_union_add(&u, VEC(*spans, struct tpu_span)[k].begin_ps,
                      VEC(*spans, struct tpu_span)[k].end_ps);
    tpu_union_close(&u);
    return u.busy_ps;
}

static void add_duty(struct op_host *h, uint64_t total_ps, uint64_t busy_ps, uint64_t sure_ps)
{
    h->busy_ps += busy_ps;
    h->idle_ps += total_ps - busy_ps;
    h->busy_sure_ps += sure_ps;
    h->idle_sure_ps += total_ps - sure_ps;
}

/* Busy and idle time of the chip of v[first], from the intervals of its cores. */
static bool unite_chip(struct op_host *h, struct device *v, uint32_t n, uint32_t first)
{
    struct tpu_duty chip = {0};
    struct vec all = {0}, sure = {0};
    bool ok = true;
    for (uint32_t i = first; ok && i < n; i++) {
        if (!v[i].shared || v[i].core->local_chip_id != v[first].core->local_chip_id)
            continue;
        ok = append(&all, &v[i].spans) && append(&sure, &v[i].sure_spans);
        if (v[i].duty.any)
            tpu_duty_widen(&chip, v[i].duty.first_ps, v[i].duty.last_ps);
        v[i].shared = i == first;
    }
    add_duty(h, tpu_duty_total(&chip), unite(&all), unite(&sure));
    vec_free(&all);
    vec_free(&sure);
    v[first].shared = false;
    return ok;
}

static bool sum_duty(struct op_host *h, struct device *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct tpu_duty *d = &v[i].duty;
        tpu_duty_close(d);
        if (d->busy.failed || d->sure.failed)
            return false;
        if (!v[i].shared)
            add_duty(h, tpu_duty_total(d), d->busy.busy_ps, d->sure.busy_ps);
    }
    for (uint32_t i = 0; i < n; i++)
        if (v[i].shared && !unite_chip(h, v, n, i))
            return false;
    return true;
}

static enum xp_status walk(struct op_build *b, struct device *v, uint32_t n)
{
    struct vec records = {0};
    struct sparse_parts parts = {0};
    enum xp_status st = XP_OK;
    for (uint32_t i = 0; st == XP_OK && i < n; i++)
        if (v[i].sparse && (st = op_next_core(b)) == XP_OK)
            st = tpu_sparse_core(b, v[i].plane, &records, v[i].core, &v[i].duty);
    if (st == XP_OK)
        st = tpu_sparse_parts(b, &records, &parts);
    for (uint32_t i = 0; st == XP_OK && i < n; i++)
        if (!v[i].sparse && (st = op_next_core(b)) == XP_OK)
            st = tpu_tensor_core(b, v[i].plane, &parts, v[i].core, &v[i].duty);
    vec_free(&records);
    return st;
}

enum xp_status op_tpu_planes(struct op_build *b)
{
    uint32_t n = 0;
    struct device *v = xp_arena_zalloc(b->scratch, (b->part->nplanes + 1) * sizeof *v);
    if (!v)
        return op_busy(b);
    for (uint32_t i = 0; i < b->part->nplanes; i++) {
        struct xp_span name = op_plane_name(b, i);
        if (xp_span_starts(name, XP_SPAN_LIT("/device:TPU:")))
            v[n++] = (struct device){.plane = i, .sparse = is_sparse(name)};
    }
    b->host->cores = xp_bump_alloc(&b->bump, (n + 1) * sizeof *b->host->cores, 16);
    if (!b->host->cores)
        return op_busy(b);
    b->host->ncores = n;
    for (uint32_t i = 0; i < n; i++)
        describe(b, &v[i], &b->host->cores[i]);
    find_shared(v, n);
    enum xp_status st = walk(b, v, n);
    if (st == XP_OK && !sum_duty(b->host, v, n))
        st = op_busy(b);
    for (uint32_t i = 0; i < n; i++) {
        vec_free(&v[i].spans);
        vec_free(&v[i].sure_spans);
        vec_free(&v[i].duty.stack);
    }
    return st;
}
