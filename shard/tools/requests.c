#include "shard/tools/requests.h"

#include <stdlib.h>

#include "lib/base/pb_wire.h"
#include "shard/tools/inference.h"

enum { FIELDS = 4 }; /* whether it names its model, and the times: a varint each */

static void pack(const struct inference *inf, struct xp_buf *out)
{
    for (size_t i = 0; i < inf->requests.n; i++) {
        const struct inference_request *r = &VEC(inf->requests, struct inference_request)[i];
        xp_pb_put_varint(out, r->model >= 0);
        xp_pb_put_varint(out, r->end_ps > r->begin_ps ? (uint64_t)(r->end_ps - r->begin_ps) : 0);
        xp_pb_put_varint(out, r->part_ps[INFERENCE_COMPUTE]);
        xp_pb_put_varint(out, r->part_ps[INFERENCE_TO_DEVICE] + r->part_ps[INFERENCE_TO_HOST]);
    }
}

enum xp_status requests_pack(struct part *p, struct xp_arena *a, struct xp_buf *out,
                             struct xp_error *err)
{
    struct inference inf;
    struct out nobody = {0}; /* who could cancel it */
    if (!inference_init(&inf, a))
        return xp_fail(err, XP_BUSY, 0, "no memory left to find requests");
    enum xp_status st = inference_read(&inf, p, 0, &nobody, err);
    if (st == XP_OK)
        pack(&inf, out);
    inference_fini(&inf);
    return st;
}

static int by_total(const void *a, const void *b)
{
    const struct request *x = a, *y = b;
    if (x->total_ps != y->total_ps)
        return x->total_ps < y->total_ps ? -1 : 1;
    if (x->device_ps != y->device_ps)
        return x->device_ps < y->device_ps ? -1 : 1;
    return (x->transfer_ps > y->transfer_ps) - (x->transfer_ps < y->transfer_ps);
}

/* Those that name a model, or that do not; counts when v is NULL. False: the bytes are not ours. */
static bool read_all(struct xp_span bytes, bool named, struct request *v, uint32_t *n)
{
    const uint8_t *p = bytes.p, *end = bytes.n ? bytes.p + bytes.n : bytes.p;
    *n = 0;
    while (p < end) {
        uint64_t f[FIELDS];
        for (int i = 0; i < FIELDS; i++)
            if (!(p = xp_varint_read(p, end, &f[i])))
                return false;
        if ((f[0] != 0) != named)
            continue;
        if (v)
            v[*n] = (struct request){f[1], f[2], f[3]};
        ++*n;
    }
    return true;
}

static enum xp_status open_some(struct xp_span bytes, bool all, struct xp_arena *a,
                                struct requests *out, struct xp_error *err)
{
    uint32_t named, others;
    if (!read_all(bytes, true, NULL, &named) || !read_all(bytes, false, NULL, &others))
        return xp_fail(err, XP_CORRUPT, 0, "requests of another server cannot be read");
    out->v = xp_arena_alloc(a, ((size_t)named + others + 1) * sizeof *out->v);
    if (!out->v)
        return xp_fail(err, XP_BUSY, 0, "no memory left to sort requests");
    read_all(bytes, true, out->v, &named);
    if (all || !named)
        read_all(bytes, false, out->v + named, &others);
    out->n = all || !named ? named + others : named;
    if (out->n)
        qsort(out->v, out->n, sizeof *out->v, by_total);
    return XP_OK;
}

enum xp_status requests_open(struct xp_span bytes, struct xp_arena *a, struct requests *out,
                             struct xp_error *err)
{
    return open_some(bytes, false, a, out, err);
}

enum xp_status requests_open_all(struct xp_span bytes, struct xp_arena *a, struct requests *out,
                                 struct xp_error *err)
{
    return open_some(bytes, true, a, out, err);
}

static struct request_latency latency(double total, double device, double transfer)
{
    return (struct request_latency){total / 1e9, (total - device - transfer) / 1e9, device / 1e9,
                                    transfer / 1e9};
}

void requests_mean(const struct requests *r, struct request_latency *out)
{
    double total = 0, device = 0, transfer = 0, n = r->n;
    for (uint32_t i = 0; i < r->n; i++) {
        total += (double)r->v[i].total_ps;
        device += (double)r->v[i].device_ps;
        transfer += (double)r->v[i].transfer_ps;
    }
    *out = latency(total / n, device / n, transfer / n);
}

void requests_percentile(const struct requests *r, double percent, struct request_latency *out)
{
    size_t i = (size_t)(percent / 100.0 * r->n);
    const struct request *q = &r->v[i < r->n ? i : r->n - 1];
    *out = latency((double)q->total_ps, (double)q->device_ps, (double)q->transfer_ps);
}
