#include "shard/stats/op_stats_int.h"

enum xp_status op_busy(struct op_build *b)
{
    return xp_fail(b->err, XP_BUSY, 0, "no memory left to work out the profile's ops");
}

enum xp_status op_next_core(struct op_build *b)
{
    xp_arena_free(b->core);
    b->core = xp_arena_new(NULL);
    return b->core ? XP_OK : op_busy(b);
}

bool op_text(struct op_build *b, struct xp_span s, struct xp_span *out)
{
    uint32_t id = xp_strpool_add(&b->strings, s);
    *out = id == XP_STRPOOL_FULL ? (struct xp_span){0} : xp_strpool_get(&b->strings, id);
    return id != XP_STRPOOL_FULL;
}

bool op_keep(struct op_build *b, const struct vec *v, size_t size, void *to, uint32_t *n)
{
    void *p = NULL;
    if (v->n) {
        p = xp_bump_alloc(&b->bump, v->n * size, 16);
        if (!p)
            return false;
        memcpy(p, v->p, v->n * size);
    }
    memcpy(to, &p, sizeof p);
    *n = (uint32_t)v->n;
    return true;
}

/* --- order --- */

static int by_program_and_name(const void *a, const void *b)
{
    const struct op_metrics *x = a, *y = b;
    if (x->program != y->program)
        return x->program < y->program ? -1 : 1;
    return xp_span_cmp(x->name, y->name);
}

static bool keep_ops(struct op_build *b, struct op_table *t, struct op_db *db)
{
    if (t->ops.n)
        qsort(t->ops.p, t->ops.n, sizeof(struct op_metrics), by_program_and_name);
    return op_keep(b, &t->ops, sizeof(struct op_metrics), &db->ops, &db->n);
}

/* --- the planes --- */

static enum xp_status device_planes(struct op_build *b)
{
    switch (b->host->hardware) {
    case OP_HW_TPU:
        return op_tpu_planes(b);
    case OP_HW_GPU:
        return op_gpu_planes(b);
    default:
        return XP_OK;
    }
}

static enum xp_status host_planes(struct op_build *b)
{
    for (uint32_t i = 0; i < b->part->nplanes; i++)
        if (xp_span_eq(op_plane_name(b, i), XP_SPAN_LIT("/host:CPU")))
            return op_host_plane(b, i);
    return XP_OK;
}

static enum xp_status build(struct op_build *b)
{
    XP_TRY(op_environment(b));
    XP_TRY(op_hlo_open(b));
    XP_TRY(device_planes(b));
    XP_TRY(host_planes(b));
    if (!keep_ops(b, &b->device, &b->stats->device) || !keep_ops(b, &b->host_ops, &b->stats->host))
        return op_busy(b);
    return XP_OK;
}

static enum xp_status open_build(struct op_build *b, struct part *p, const struct derive *d,
                                 struct xp_error *err)
{
    *b = (struct op_build){.part = p, .d = d, .err = err};
    b->err->status = XP_OK;
    b->scratch = xp_arena_new(NULL);
    b->stats = xp_arena_zalloc(p->arena, sizeof *b->stats);
    b->host = xp_arena_zalloc(p->arena, sizeof *b->host);
    xp_bump_init(&b->bump, p->arena);
    if (!b->scratch || !b->stats || !b->host || !xp_strpool_init(&b->strings, p->arena))
        return op_busy(b);
    return XP_OK;
}

static void close_build(struct op_build *b)
{
    op_hlo_close(b);
    op_table_fini(&b->device);
    op_table_fini(&b->host_ops);
    xp_arena_free(b->core);
    xp_arena_free(b->scratch);
}

static enum xp_status make(struct part *p, const struct derive *d, void **kept,
                           struct xp_error *err)
{
    struct xp_error own = {0};
    struct op_build b;
    enum xp_status st = open_build(&b, p, d, err ? err : &own);
    if (st == XP_OK) {
        b.stats->hosts = b.host;
        b.stats->nhosts = 1;
        st = build(&b);
    }
    close_build(&b);
    if (st == XP_OK)
        *kept = b.stats;
    return st;
}

enum xp_status op_stats_get(struct part *p, const struct op_stats **out, struct xp_error *err)
{
    void *kept = NULL;
    XP_TRY(derive_keep(p, DERIVE_KEPT_OP_STATS, make, &kept, err));
    *out = kept;
    return XP_OK;
}

/* --- with the ops inside fusions --- */

static enum xp_status add_children(struct op_build *b, const struct op_stats *of)
{
    struct op_metrics *ops = xp_bump_alloc(&b->bump, ((size_t)of->device.n + 1) * sizeof *ops, 16);
    if (!ops)
        return op_busy(b);
    XP_TRY(op_hlo_open(b));
    *b->stats = *of;
    b->stats->device.ops = ops;
    for (uint32_t i = 0; i < of->device.n; i++) {
        ops[i] = of->device.ops[i];
        XP_TRY(op_hlo_children(b, &ops[i]));
    }
    return XP_OK;
}

static enum xp_status make_children(struct part *p, const struct derive *d, void **kept,
                                    struct xp_error *err)
{
    const struct op_stats *of;
    struct xp_error own = {0};
    struct op_build b;
    XP_TRY(op_stats_get(p, &of, err));
    if (!of->nhosts || of->hosts[0].hardware != OP_HW_TPU) {
        memcpy(kept, &of, sizeof of); /* they are the TPUs' */
        return XP_OK;
    }
    enum xp_status st = open_build(&b, p, d, err ? err : &own);
    if (st == XP_OK)
        st = add_children(&b, of);
    close_build(&b);
    if (st == XP_OK)
        *kept = b.stats;
    return st;
}

enum xp_status op_stats_children(struct part *p, const struct op_stats **out, struct xp_error *err)
{
    void *kept = NULL;
    XP_TRY(derive_keep(p, DERIVE_KEPT_OP_CHILDREN, make_children, &kept, err));
    *out = kept;
    return XP_OK;
}
