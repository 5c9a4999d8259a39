#include "shard/stats/steps.h"

#include <stdlib.h>

#include "lib/base/pb_wire.h"
#include "shard/stats/steps_int.h"

static enum xp_status busy(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left to find the profile's steps");
}

/* --- of a part --- */

static bool is_whole(const struct step_mix *mix, bool has_device)
{
    return has_device ? mix->seen[STEP_COMPUTE_16] || mix->seen[STEP_COMPUTE_32]
                      : mix->seen[STEP_HOST_COMPUTE];
}

/* Steps without a marker, or without compute, are none. */
static enum xp_status add_step(struct steps_host *h, const struct step_group *g, bool has_device,
                               struct xp_bump *bump, struct xp_error *err)
{
    struct step_mix mix;
    struct host_step s = {.group = g->id};
    step_group_marker(g, &s.begin_ps, &s.duration_ps);
    XP_TRY(step_sweep(g->spans.p, g->spans.n, s.begin_ps, s.begin_ps + s.duration_ps, &mix, err));
    h->compute_16_ps += mix.all_ps[STEP_COMPUTE_16];
    h->compute_32_ps += mix.all_ps[STEP_COMPUTE_32];
    if (!s.duration_ps || !is_whole(&mix, has_device))
        return XP_OK;
    uint64_t sum = 0;
    for (int t = 0; t < STEP_TYPES; t++)
        sum += s.type_ps[t] = mix.within_ps[t];
    if (sum < s.duration_ps)
        s.type_ps[STEP_UNKNOWN] += s.duration_ps - sum;
    s.name = xp_bump_span(bump, g->name);
    if (!s.name.p)
        return busy(err);
    h->steps[h->nsteps++] = s;
    return XP_OK;
}

static enum xp_status add_groups(struct steps_host *h, struct step_groups *g, bool has_device,
                                 struct xp_arena *a, struct xp_error *err)
{
    struct xp_bump bump;
    xp_bump_init(&bump, a);
    step_groups_sort(g);
    h->steps = xp_arena_alloc(a, (g->v.n + 1) * sizeof *h->steps);
    if (!h->steps)
        return busy(err);
    for (size_t i = 0; i < g->v.n; i++)
        XP_TRY(add_step(h, &VEC(g->v, struct step_group)[i], has_device, &bump, err));
    return XP_OK;
}

static enum xp_status add_inputs(struct steps_host *h, struct step_groups *g, struct xp_arena *a,
                                 struct xp_error *err)
{
    step_groups_sort(g);
    h->inputs = xp_arena_alloc(a, (g->v.n + 1) * sizeof *h->inputs);
    if (!h->inputs)
        return busy(err);
    for (size_t i = 0; i < g->v.n; i++) {
        const struct step_group *s = &VEC(g->v, struct step_group)[i];
        h->inputs[h->ninputs++] = (struct host_input){s->id, s->input_ps};
    }
    return XP_OK;
}

/* A device that is fed by infeed ops says itself how long it waited. */
static bool has_infeed(const struct op_db *db)
{
    for (uint32_t i = 0; i < db->n; i++)
        if (xp_span_eq(db->ops[i].category, XP_SPAN_LIT("infeed")) ||
            xp_span_eq(db->ops[i].category, XP_SPAN_LIT("sparsecorev0 infeed")))
            return true;
    return false;
}

static enum xp_status make_inputs(struct part *p, const struct derive *d, struct steps_host *h,
                                  struct xp_error *err)
{
    const struct op_stats *ops;
    struct step_groups g = {0};
    XP_TRY(op_stats_get(p, &ops, err));
    bool ok = has_infeed(&ops->device) || step_tpu_inputs(d, &g);
    enum xp_status st = ok ? add_inputs(h, &g, p->arena, err) : busy(err);
    step_groups_free(&g);
    return st;
}

static enum xp_status make_steps(struct part *p, const struct derive *d, bool gpu,
                                 struct steps_host *h, struct xp_error *err)
{
    struct step_groups g = {0};
    bool ok = gpu ? step_gpu_events(d, &g) : step_cpu_events(d, &g);
    enum xp_status st = ok ? add_groups(h, &g, gpu, p->arena, err) : busy(err);
    step_groups_free(&g);
    return st;
}

static enum xp_status steps_make(struct part *p, const struct derive *d, void **kept,
                                 struct xp_error *err)
{
    struct steps *s = xp_arena_zalloc(p->arena, sizeof *s);
    struct steps_host *h = s ? xp_arena_zalloc(p->arena, sizeof *h) : NULL;
    bool tpu = false, gpu = false;
    if (!h)
        return busy(err);
    for (uint32_t i = 0; i < p->nplanes; i++) {
        tpu |= d->planes[i].tpu;
        gpu |= d->planes[i].gpu;
    }
    enum xp_status st = tpu ? make_inputs(p, d, h, err) : make_steps(p, d, gpu, h, err);
    *s = (struct steps){h, 1};
    if (st == XP_OK)
        *kept = s;
    return st;
}

enum xp_status steps_get(struct part *p, const struct steps **out, struct xp_error *err)
{
    void *kept = NULL;
    XP_TRY(derive_keep(p, DERIVE_KEPT_STEPS, steps_make, &kept, err));
    *out = kept;
    return XP_OK;
}

/* --- bytes --- */

enum { STEPS_HOST = 1 };
enum { HOST_INDEX = 1, HOST_STEP, HOST_INPUT, HOST_COMPUTE_16, HOST_COMPUTE_32 };
enum { STEP_GROUP = 1, STEP_NAME, STEP_BEGIN, STEP_DURATION, STEP_TYPE /* and on */ };
enum { INPUT_GROUP = 1, INPUT_TIME };

static void put_message(struct xp_buf *out, uint32_t num, struct xp_buf *message)
{
    xp_pb_put_bytes(out, num, xp_buf_all(message));
    out->failed |= message->failed;
    message->n = 0;
}

static void pack_host(const struct steps_host *h, uint32_t index, struct xp_buf *out)
{
    struct xp_buf b;
    xp_buf_init(&b, out->max);
    xp_pb_put_u64(out, HOST_INDEX, index);
    for (uint32_t i = 0; i < h->nsteps; i++) {
        const struct host_step *s = &h->steps[i];
        xp_pb_put_u64(&b, STEP_GROUP, (uint64_t)s->group);
        xp_pb_put_bytes(&b, STEP_NAME, s->name);
        xp_pb_put_u64(&b, STEP_BEGIN, s->begin_ps);
        xp_pb_put_u64(&b, STEP_DURATION, s->duration_ps);
        for (uint32_t t = 0; t < STEP_TYPES; t++)
            if (s->type_ps[t])
                xp_pb_put_u64(&b, STEP_TYPE + t, s->type_ps[t]);
        put_message(out, HOST_STEP, &b);
    }
    for (uint32_t i = 0; i < h->ninputs; i++) {
        xp_pb_put_u64(&b, INPUT_GROUP, (uint64_t)h->inputs[i].group);
        xp_pb_put_u64(&b, INPUT_TIME, h->inputs[i].ps);
        put_message(out, HOST_INPUT, &b);
    }
    xp_pb_put_u64(out, HOST_COMPUTE_16, h->compute_16_ps);
    xp_pb_put_u64(out, HOST_COMPUTE_32, h->compute_32_ps);
    xp_buf_fini(&b);
}

void steps_pack(const struct steps *s, uint32_t index, struct xp_buf *out)
{
    struct xp_buf b;
    xp_buf_init(&b, out->max);
    for (uint32_t i = 0; i < s->nhosts; i++) {
        pack_host(&s->hosts[i], s->nhosts == 1 ? index : s->hosts[i].index, &b);
        put_message(out, STEPS_HOST, &b);
    }
    xp_buf_fini(&b);
}

static enum xp_status corrupt(struct xp_error *err)
{
    return xp_fail(err, XP_CORRUPT, 0, "steps of another server cannot be read");
}

static bool unpack_step(struct xp_span bytes, struct host_step *s)
{
    struct xp_pb r = xp_pb_open(bytes);
    struct xp_pb_field f;
    *s = (struct host_step){0};
    while (xp_pb_next(&r, &f)) {
        if (f.num == STEP_GROUP)
            s->group = (int64_t)f.value;
        else if (f.num == STEP_NAME)
            s->name = f.bytes;
        else if (f.num == STEP_BEGIN)
            s->begin_ps = f.value;
        else if (f.num == STEP_DURATION)
            s->duration_ps = f.value;
        else if (f.num >= STEP_TYPE && f.num < STEP_TYPE + STEP_TYPES)
            s->type_ps[f.num - STEP_TYPE] = f.value;
    }
    return !r.bad;
}

static bool unpack_input(struct xp_span bytes, struct host_input *in)
{
    struct xp_pb r = xp_pb_open(bytes);
    struct xp_pb_field f;
    *in = (struct host_input){0};
    while (xp_pb_next(&r, &f)) {
        if (f.num == INPUT_GROUP)
            in->group = (int64_t)f.value;
        else if (f.num == INPUT_TIME)
            in->ps = f.value;
    }
    return !r.bad;
}

static uint32_t count_fields(struct xp_span bytes, uint32_t num)
{
    struct xp_pb r = xp_pb_open(bytes);
    struct xp_pb_field f;
    uint32_t n = 0;
    while (xp_pb_next(&r, &f))
        n += f.num == num && f.type == XP_PB_LEN;
    return n;
}

static enum xp_status unpack_host(struct xp_span bytes, struct xp_arena *a, struct steps_host *h,
                                  struct xp_error *err)
{
    struct xp_pb r = xp_pb_open(bytes);
    struct xp_pb_field f;
    *h = (struct steps_host){0};
    h->steps = xp_arena_alloc(a, (count_fields(bytes, HOST_STEP) + 1) * sizeof *h->steps);
    h->inputs = xp_arena_alloc(a, (count_fields(bytes, HOST_INPUT) + 1) * sizeof *h->inputs);
    if (!h->steps || !h->inputs)
        return busy(err);
    while (xp_pb_next(&r, &f)) {
        if (f.type == XP_PB_LEN) {
            if (f.num == HOST_STEP && !unpack_step(f.bytes, &h->steps[h->nsteps++]))
                return corrupt(err);
            if (f.num == HOST_INPUT && !unpack_input(f.bytes, &h->inputs[h->ninputs++]))
                return corrupt(err);
        } else if (f.num == HOST_INDEX) {
            h->index = (uint32_t)f.value;
        } else if (f.num == HOST_COMPUTE_16) {
            h->compute_16_ps = f.value;
        } else if (f.num == HOST_COMPUTE_32) {
            h->compute_32_ps = f.value;
        }
    }
    return r.bad ? corrupt(err) : XP_OK;
}

enum xp_status steps_unpack(struct xp_span bytes, struct xp_arena *a, struct steps *out,
                            struct xp_error *err)
{
    struct xp_pb r = xp_pb_open(bytes);
    struct xp_pb_field f;
    *out = (struct steps){0};
    out->hosts = xp_arena_alloc(a, (count_fields(bytes, STEPS_HOST) + 1) * sizeof *out->hosts);
    if (!out->hosts)
        return busy(err);
    while (xp_pb_next(&r, &f))
        if (f.num == STEPS_HOST && f.type == XP_PB_LEN)
            XP_TRY(unpack_host(f.bytes, a, &out->hosts[out->nhosts++], err));
    return r.bad ? corrupt(err) : XP_OK;
}

enum xp_status steps_merge(const struct steps *x, const struct steps *y, struct xp_arena *a,
                           struct steps *out, struct xp_error *err)
{
    uint32_t i = 0, k = 0, n = 0;
    struct steps_host *h =
        xp_arena_alloc(a, ((size_t)x->nhosts + y->nhosts + 1) * sizeof *out->hosts);
    if (!h)
        return busy(err);
    while (i < x->nhosts || k < y->nhosts) {
        bool first = k == y->nhosts || (i < x->nhosts && x->hosts[i].index <= y->hosts[k].index);
        h[n++] = first ? x->hosts[i++] : y->hosts[k++];
    }
    *out = (struct steps){h, n};
    return XP_OK;
}
