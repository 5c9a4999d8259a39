#include <zstd.h>

#include "lib/base/pb_wire.h"
#include "shard/tools/trace.h"

/* TraceDataResponse (contract § 7.4), one zstd frame. Numbers of fields are the message's. */

struct pb_work {
    struct trace *t;
    struct xp_buf msg;
    struct xp_strpool strings; /* id 0 is "" */
    struct xp_buf series, deltas, durations, names, meta, one;
};

static bool interned(struct pb_work *w, struct xp_span s, uint32_t *id)
{
    *id = xp_strpool_add(&w->strings, s);
    return *id != XP_STRPOOL_FULL;
}

static void put_nonzero(struct xp_buf *b, uint32_t num, uint64_t v)
{
    if (v)
        xp_pb_put_u64(b, num, v);
}

static void put_text(struct xp_buf *b, uint32_t num, struct xp_span s)
{
    if (s.n)
        xp_pb_put_bytes(b, num, s);
}

static void put_device(struct pb_work *w, const struct trace_host *h, const struct trace_device *d,
                       struct xp_buf *processes)
{
    struct xp_buf process, name, thread;
    uint32_t pid = 1000 * h->index + d->id;
    xp_buf_init(&process, OUT_MAX);
    xp_buf_init(&name, OUT_MAX);
    xp_buf_init(&thread, OUT_MAX);
    (void)w;
    xp_buf_span(&name, h->name);
    xp_buf_byte(&name, ' ');
    xp_buf_span(&name, d->name);
    put_text(&process, 1, xp_buf_all(&name));
    put_nonzero(&process, 2, pid);
    put_nonzero(&process, 3, pid);
    for (uint32_t i = 0; i < d->nthreads; i++) {
        const struct trace_thread *th = &VEC(h->threads, struct trace_thread)[d->first_thread + i];
        thread.n = 0;
        put_text(&thread, 1, th->name);
        put_nonzero(&thread, 2, th->tid);
        put_nonzero(&thread, 3, th->tid);
        xp_pb_put_bytes(&process, 4, xp_buf_all(&thread));
    }
    xp_pb_put_bytes(processes, 1, xp_buf_all(&process));
    xp_buf_fini(&process);
    xp_buf_fini(&name);
    xp_buf_fini(&thread);
}

static void put_detail(struct pb_work *w, const char *name, bool value)
{
    w->one.n = 0;
    put_text(&w->one, 1, xp_span_str(name));
    put_nonzero(&w->one, 2, value);
    xp_pb_put_bytes(&w->msg, 6, xp_buf_all(&w->one));
}

static void put_head(struct pb_work *w, bool details)
{
    struct trace *t = w->t;
    struct xp_buf processes;
    bool tpu = false, any = false;
    int64_t begin = 0, end = 0;
    xp_buf_init(&processes, OUT_MAX);
    for (size_t i = 0; i < t->nhosts; i++) {
        const struct trace_host *h = &t->hosts[i];
        for (size_t k = 0; k < h->devices.n; k++)
            put_device(w, h, &VEC(h->devices, struct trace_device)[k], &processes);
        tpu |= h->tpu;
        if (!h->nevents)
            continue;
        if (!any || h->begin_ps < begin)
            begin = h->begin_ps;
        if (!any || h->end_ps > end)
            end = h->end_ps;
        any = true;
    }
    xp_pb_put_bytes(&w->msg, 4, xp_buf_all(&processes));
    xp_buf_fini(&processes);
    if (details)
        put_detail(w, "mpmd_pipeline_view", false);
    if (details && tpu)
        put_detail(w, "full_dma", t->req.full_dma);
    if (any) {
        xp_pb_put_u64(&w->msg, 7, (uint64_t)begin);
        xp_pb_put_u64(&w->msg, 8, (uint64_t)end);
    }
}

/* --- one event --- */

static bool put_meta(struct pb_work *w, struct derive_eye *eye, const struct derive_event *de,
                     const struct trace_event *e)
{
    struct derive_flow f;
    uint32_t category;
    if (derive_flow(eye, de, &f)) {
        put_nonzero(&w->one, 1, (uint32_t)f.id);
        const char *name = derive_category(f.category);
        if (!interned(w, xp_span_str(name), &category))
            return false;
        put_nonzero(&w->one, 2, category);
    }
    int64_t group = derive_group(eye, de);
    if (group != DERIVE_NO_GROUP)
        put_nonzero(&w->one, 3, (uint32_t)group);
    put_nonzero(&w->one, 4, e->serial);
    return true;
}

static enum xp_status put_counter(struct pb_work *w, struct trace_host *h, struct derive_eye *eye,
                                  const struct trace_event *e)
{
    struct vec args = {0};
    struct xp_arena *a = xp_arena_new(NULL);
    enum xp_status st = a ? trace_args(h, eye, e, a, &args, w->t->err) : trace_busy(w->t->err);
    for (size_t i = 0; st == XP_OK && i < args.n; i++) {
        const struct trace_arg *x = &VEC(args, struct trace_arg)[i];
        double v;
        if (x->special || x->type == TRACE_ARG_BYTES)
            continue;
        memcpy(&v, &x->num, sizeof v);
        if (x->type == TRACE_ARG_DOUBLE)
            xp_pb_put_double(&w->one, 5, v);
        else if (x->type == TRACE_ARG_U64)
            xp_pb_put_u64(&w->one, 6, x->num);
        break;
    }
    vec_free(&args);
    xp_arena_free(a);
    return st;
}

static enum xp_status put_event(struct pb_work *w, struct trace_host *h,
                                const struct trace_event *e, int64_t *last, enum trace_kind kind)
{
    struct derive_eye eye;
    struct derive_event de = trace_derive_event(e);
    uint32_t name;
    derive_look(&eye, h->d, &h->d->lines[e->line]);
    int64_t begin_ps =
        e->moved ? VEC(h->moved, struct trace_moved)[e->moved - 1].begin_ps : e->begin_ps;
    xp_pb_put_varint(&w->deltas, (uint64_t)begin_ps - (uint64_t)*last);
    *last = begin_ps;
    w->one.n = 0;
    if (kind == TRACE_COUNTER) {
        XP_TRY(put_counter(w, h, &eye, e));
    } else {
        xp_pb_put_varint(&w->durations, (uint64_t)(e->end_ps - e->begin_ps));
        if (!put_meta(w, &eye, &de, e))
            return trace_busy(w->t->err);
    }
    xp_pb_put_bytes(&w->meta, 5, xp_buf_all(&w->one));
    if (kind == TRACE_THREAD) {
        if (!interned(w, derive_event_name(&eye, &de, NULL), &name))
            return trace_busy(w->t->err);
        xp_pb_put_varint(&w->names, name);
    }
    return XP_OK;
}

/* --- series --- */

static enum trace_kind kind_of(const struct trace_host *h, const struct trace_event *e)
{
    return e->track ? VEC(h->tracks, struct trace_track)[e->track - 1].kind : TRACE_THREAD;
}

static bool same_series(const struct trace_place *places, const struct trace_event *a,
                        const struct trace_event *b)
{
    if (a->track != b->track)
        return false;
    return a->track || (places[a->line].pid == places[b->line].pid &&
                        places[a->line].tid == places[b->line].tid);
}

static bool series_head(struct pb_work *w, const struct trace_host *h, const struct trace_event *e,
                        const struct trace_place *p, enum trace_kind kind)
{
    w->one.n = w->series.n = w->deltas.n = w->durations.n = w->names.n = w->meta.n = 0;
    put_nonzero(&w->one, 1, p->pid);
    if (kind == TRACE_THREAD) {
        put_nonzero(&w->one, 2, p->tid);
    } else {
        uint32_t name;
        if (!interned(w, VEC(h->tracks, struct trace_track)[e->track - 1].name, &name))
            return false;
        put_nonzero(&w->one, 3, name);
    }
    xp_pb_put_bytes(&w->series, 1, xp_buf_all(&w->one));
    return true;
}

static void series_end(struct pb_work *w, enum trace_kind kind)
{
    static const uint32_t field[] = {[TRACE_THREAD] = 1, [TRACE_COUNTER] = 2, [TRACE_ASYNC] = 3};
    put_text(&w->series, 2, xp_buf_all(&w->deltas));
    put_text(&w->series, 3, xp_buf_all(&w->durations));
    put_text(&w->series, 4, xp_buf_all(&w->names));
    xp_buf_span(&w->series, xp_buf_all(&w->meta));
    xp_pb_put_bytes(&w->msg, field[kind], xp_buf_all(&w->series));
}

static enum xp_status put_host(struct pb_work *w, struct trace_host *h)
{
    struct trace_place *places = trace_places(h, w->t->scratch);
    uint32_t *at = places ? trace_order(h, places, w->t->scratch) : NULL;
    const struct trace_event *ev = h->events.p;
    if (!at)
        return trace_busy(w->t->err);
    for (size_t i = 0, k; i < h->events.n; i = k) {
        const struct trace_event *first = &ev[at[i]];
        enum trace_kind kind = kind_of(h, first);
        int64_t last = 0;
        if (!series_head(w, h, first, &places[first->line], kind))
            return trace_busy(w->t->err);
        for (k = i; k < h->events.n && same_series(places, first, &ev[at[k]]); k++)
            XP_TRY(put_event(w, h, &ev[at[k]], &last, kind));
        series_end(w, kind);
        if (out_cancelled(w->t->out))
            return xp_fail(w->t->err, XP_CANCELLED, 0, "nobody waits for the trace any more");
    }
    return XP_OK;
}

static enum xp_status compress(struct pb_work *w)
{
    struct xp_buf *out = &w->t->out->text;
    size_t bound = ZSTD_compressBound(w->msg.n);
    uint8_t *to = xp_buf_room(out, bound);
    if (w->msg.failed || !to)
        return xp_fail(w->t->err, XP_TOO_LARGE, 0, "the trace is larger than %zu MiB",
                       OUT_MAX >> 20);
    size_t n = ZSTD_compress(to, bound, w->msg.p, w->msg.n, 1);
    if (ZSTD_isError(n))
        return xp_fail(w->t->err, XP_INTERNAL, 0, "the trace could not be compressed");
    out->n += n;
    w->t->out->content_type = "application/octet-stream";
    return XP_OK;
}

enum xp_status trace_write_pb(struct trace *t, bool details)
{
    struct pb_work w = {.t = t};
    struct xp_buf *const bufs[] = {&w.msg,   &w.series, &w.deltas, &w.durations,
                                   &w.names, &w.meta,   &w.one};
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++)
        xp_buf_init(bufs[i], OUT_MAX);
    enum xp_status st = xp_strpool_init(&w.strings, t->scratch) ? XP_OK : trace_busy(t->err);
    if (st == XP_OK)
        put_head(&w, details);
    for (size_t i = 0; st == XP_OK && i < t->nhosts; i++)
        st = put_host(&w, &t->hosts[i]);
    for (uint32_t i = 0; st == XP_OK && i < w.strings.n; i++)
        xp_pb_put_bytes(&w.msg, 5, xp_strpool_get(&w.strings, i));
    if (st == XP_OK)
        st = compress(&w);
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++)
        xp_buf_fini(bufs[i]);
    return st;
}
