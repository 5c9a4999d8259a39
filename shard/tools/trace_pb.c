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

static void put_device(const struct trace_host *h, const struct trace_device *d,
                       struct xp_buf *processes)
{
    struct xp_buf process, name, thread;
    uint32_t pid = 1000 * h->index + d->id;
    xp_buf_init(&process, OUT_MAX);
    xp_buf_init(&name, OUT_MAX);
    xp_buf_init(&thread, OUT_MAX);
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

static void put_head(struct pb_work *w, struct xp_span processes, const struct trace_sum *sum,
                     bool details)
{
    xp_pb_put_bytes(&w->msg, 4, processes);
    if (details)
        put_detail(w, "mpmd_pipeline_view", false);
    if (details && sum->tpu)
        put_detail(w, "full_dma", w->t->req.full_dma);
    if (sum->any) {
        xp_pb_put_u64(&w->msg, 7, (uint64_t)sum->begin_ps);
        xp_pb_put_u64(&w->msg, 8, (uint64_t)sum->end_ps);
    }
}

static void put_devices(const struct trace_host *h, struct xp_buf *processes)
{
    for (size_t k = 0; k < h->devices.n; k++)
        put_device(h, &VEC(h->devices, struct trace_device)[k], processes);
}

static void put_head_of_all(struct pb_work *w, bool details)
{
    const struct trace *t = w->t;
    struct trace_sum sum = {0};
    struct xp_buf processes;
    xp_buf_init(&processes, OUT_MAX);
    for (size_t i = 0; i < t->nhosts; i++) {
        put_devices(&t->hosts[i], &processes);
        trace_sum_add(&sum, trace_sum_of(&t->hosts[i]));
    }
    put_head(w, xp_buf_all(&processes), &sum, details);
    w->msg.failed |= processes.failed;
    xp_buf_fini(&processes);
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

static enum xp_status work_init(struct pb_work *w, struct trace *t)
{
    *w = (struct pb_work){.t = t};
    xp_buf_init(&w->msg, OUT_MAX);
    xp_buf_init(&w->series, OUT_MAX);
    xp_buf_init(&w->deltas, OUT_MAX);
    xp_buf_init(&w->durations, OUT_MAX);
    xp_buf_init(&w->names, OUT_MAX);
    xp_buf_init(&w->meta, OUT_MAX);
    xp_buf_init(&w->one, OUT_MAX);
    return xp_strpool_init(&w->strings, t->scratch) ? XP_OK : trace_busy(t->err);
}

static void work_fini(struct pb_work *w)
{
    xp_buf_fini(&w->msg);
    xp_buf_fini(&w->series);
    xp_buf_fini(&w->deltas);
    xp_buf_fini(&w->durations);
    xp_buf_fini(&w->names);
    xp_buf_fini(&w->meta);
    xp_buf_fini(&w->one);
}

static enum xp_status finish(struct pb_work *w, const struct xp_strpool *strings)
{
    for (uint32_t i = 0; i < strings->n; i++)
        xp_pb_put_bytes(&w->msg, 5, xp_strpool_get(strings, i));
    return compress(w);
}

enum xp_status trace_write_pb(struct trace *t, bool details)
{
    struct pb_work w;
    enum xp_status st = work_init(&w, t);
    if (st == XP_OK)
        put_head_of_all(&w, details);
    for (size_t i = 0; st == XP_OK && i < t->nhosts; i++)
        st = put_host(&w, &t->hosts[i]);
    if (st == XP_OK)
        st = finish(&w, &w.strings);
    work_fini(&w);
    return st;
}

/* --- several hosts, looked at one by one --- */

bool trace_is_pb(const struct trace *t)
{
    return !t->req.event_name.n && xp_span_eq(t->req.format, XP_SPAN_LIT("pb"));
}

enum xp_status trace_pb_piece(struct trace *t, struct trace_piece *p)
{
    struct pb_work w;
    enum xp_status st = work_init(&w, t);
    put_devices(&t->hosts[0], &p->devices);
    if (st == XP_OK)
        st = put_host(&w, &t->hosts[0]);
    p->strings = w.strings;
    p->nfirst = w.strings.n;
    xp_buf_fini(&t->out->text);
    t->out->text = w.msg;
    xp_buf_init(&w.msg, OUT_MAX);
    work_fini(&w);
    return st;
}

/* What a string of the host's is called in the answer. */
static bool renamed(const struct trace_pb_host *h, uint64_t id, uint32_t *to)
{
    uint32_t at;
    *to = 0;
    if (!id)
        return true;
    if (id > h->ids.n / sizeof at)
        return false;
    memcpy(&at, h->ids.p + (id - 1) * sizeof at, sizeof at);
    *to = h->of[at];
    return true;
}

/* A message as it is, but for the field that is a string's id. */
static bool join_ref(struct xp_buf *to, struct xp_span msg, uint32_t ref,
                     const struct trace_pb_host *h)
{
    struct xp_pb r = xp_pb_open(msg);
    struct xp_pb_field f;
    const uint8_t *at = r.p;
    uint32_t id;
    for (; xp_pb_next(&r, &f); at = r.p) {
        if (f.num != ref || f.type != XP_PB_VARINT) {
            xp_buf_add(to, at, (size_t)(r.p - at));
            continue;
        }
        if (!renamed(h, f.value, &id))
            return false;
        put_nonzero(to, ref, id);
    }
    return r.p == r.end;
}

static bool join_names(struct xp_buf *to, struct xp_span packed, const struct trace_pb_host *h)
{
    const uint8_t *p = packed.p, *end = packed.p + packed.n;
    uint64_t v;
    uint32_t id;
    while (p < end) {
        if (!(p = xp_varint_read(p, end, &v)) || !renamed(h, v, &id))
            return false;
        xp_pb_put_varint(to, id);
    }
    return true;
}

enum { SERIES_HEAD = 1, SERIES_NAMES = 4, SERIES_META = 5, HEAD_NAME = 3, META_CATEGORY = 2 };

static bool join_series(struct pb_work *w, struct xp_span msg, const struct trace_pb_host *h)
{
    struct xp_pb r = xp_pb_open(msg);
    struct xp_pb_field f;
    bool ok = true;
    w->series.n = 0;
    while (ok && xp_pb_next(&r, &f)) {
        w->one.n = 0;
        if (f.type != XP_PB_LEN)
            return false;
        if (f.num == SERIES_HEAD)
            ok = join_ref(&w->one, f.bytes, HEAD_NAME, h);
        else if (f.num == SERIES_META)
            ok = join_ref(&w->one, f.bytes, META_CATEGORY, h);
        else if (f.num == SERIES_NAMES)
            ok = join_names(&w->one, f.bytes, h);
        else
            xp_buf_span(&w->one, f.bytes);
        xp_pb_put_bytes(&w->series, f.num, xp_buf_all(&w->one));
    }
    return ok && r.p == r.end;
}

static bool join_host(struct pb_work *w, const struct trace_pb_host *h)
{
    struct xp_pb r = xp_pb_open(h->series);
    struct xp_pb_field f;
    while (xp_pb_next(&r, &f)) {
        if (f.type != XP_PB_LEN || !join_series(w, f.bytes, h))
            return false;
        xp_pb_put_bytes(&w->msg, f.num, xp_buf_all(&w->series));
    }
    return r.p == r.end;
}

enum xp_status trace_pb_join(struct trace *t, const struct trace_sum *sum,
                             const struct trace_pb_host *hosts, size_t n,
                             const struct xp_strpool *strings)
{
    struct pb_work w;
    struct xp_buf processes;
    enum xp_status st = work_init(&w, t);
    bool ok = st == XP_OK;
    xp_buf_init(&processes, OUT_MAX);
    for (size_t i = 0; i < n; i++)
        xp_buf_span(&processes, hosts[i].devices);
    put_head(&w, xp_buf_all(&processes), sum, true);
    w.msg.failed |= processes.failed;
    xp_buf_fini(&processes);
    for (size_t i = 0; ok && i < n; i++) {
        ok = join_host(&w, &hosts[i]);
        if (out_cancelled(t->out))
            break;
    }
    if (st == XP_OK)
        st = ok ? finish(&w, strings)
                : xp_fail(t->err, XP_INTERNAL, 0, "a host's part of the trace is no such thing");
    work_fini(&w);
    return st;
}
