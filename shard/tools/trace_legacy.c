#include "lib/base/json_out.h"
#include "shard/tools/trace.h"

/* The older viewer's JSON: the whole trace, every argument as text, no host in names and numbers.
 * At most LEGACY_MAX events, the earliest. */

#define LEGACY_MAX 1000000
#define FLUSH_AT ((size_t)32 << 10)
#define ARGS_BATCH 1024
#define HOST_DEVICE 701

struct legacy_event {
    int64_t begin_ps;
    struct trace_event e;
    uint32_t pid, tid;
};

struct legacy {
    struct trace *t;
    struct trace_host *h;
    struct xp_buf *b;
    struct vec events; /* struct legacy_event */
    struct vec args;
    struct xp_arena *args_memory;
    uint64_t nargs;
};

static void put(struct xp_buf *b, const char *s)
{
    xp_buf_add(b, s, strlen(s));
}

static void flush(struct legacy *w)
{
    if (w->b->n >= FLUSH_AT)
        out_flush(w->t->out);
}

/* --- devices --- */

static bool shown(const struct trace_host *h, uint32_t plane, bool gpu, bool tpu, uint32_t *pid)
{
    const struct derive_plane *dp = &h->d->planes[plane];
    *pid = dp->host ? HOST_DEVICE : 1 + (uint32_t)h->part->planes[plane].id;
    if (dp->host)
        return true;
    if (gpu || tpu)
        return gpu ? dp->gpu : dp->tpu;
    return xp_span_starts(dp->name, XP_SPAN_LIT("/device:CUSTOM:"));
}

static void write_metadata(struct legacy *w, const char *name, uint32_t pid, const uint32_t *tid,
                           const char *arg, struct xp_span text, uint32_t number)
{
    xp_buf_fmt(w->b, "{\"args\":{\"%s\":", arg);
    if (text.p)
        xp_json_escape(w->b, text);
    else
        xp_text_u64(w->b, number);
    xp_buf_fmt(w->b, "},\"name\":\"%s\",\"ph\":\"M\",\"pid\":%u", name, pid);
    if (tid)
        xp_buf_fmt(w->b, ",\"tid\":%u", *tid);
    put(w->b, "},\n");
    flush(w);
}

struct thread {
    uint32_t tid, order;
    struct xp_span name;
};

static int thread_order(const void *a, const void *b)
{
    const struct thread *x = a, *y = b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Lines that XProf removes from device planes when they are empty. */
static bool removed(const struct trace_host *h, const struct derive_line *l)
{
    const struct derive_plane *dp = &h->d->planes[l->plane];
    return l->hidden || (!l->line->nevents && !h->d->grouped && (dp->tensor_core || dp->gpu));
}

static bool write_device(struct legacy *w, uint32_t plane, uint32_t pid)
{
    const struct derive_plane *dp = &w->h->d->planes[plane];
    struct vec threads = {0};
    for (uint32_t i = dp->first_line; i < dp->first_line + dp->nlines; i++) {
        const struct derive_line *l = &w->h->d->lines[i];
        if (removed(w->h, l))
            continue;
        struct thread *t = vec_push(&threads, sizeof *t);
        if (!t) {
            vec_free(&threads);
            return false;
        }
        *t = (struct thread){(uint32_t)l->tid, i, l->name};
    }
    if (threads.n)
        qsort(threads.p, threads.n, sizeof(struct thread), thread_order);
    if (dp->name.n)
        write_metadata(w, "process_name", pid, NULL, "name", dp->name, 0);
    write_metadata(w, "process_sort_index", pid, NULL, "sort_index", (struct xp_span){0}, pid);
    const struct thread *t = threads.p;
    for (size_t i = 0; i < threads.n; i++) {
        if (i + 1 < threads.n && t[i + 1].tid == t[i].tid)
            continue;
        if (t[i].name.n)
            write_metadata(w, "thread_name", pid, &t[i].tid, "name", t[i].name, 0);
        write_metadata(w, "thread_sort_index", pid, &t[i].tid, "sort_index", (struct xp_span){0},
                       t[i].tid);
    }
    vec_free(&threads);
    return true;
}

/* --- events --- */

static bool gather(struct legacy *w, uint32_t plane, uint32_t pid)
{
    const struct derive_plane *dp = &w->h->d->planes[plane];
    struct lane_event ev[LANE_BLOCK];
    for (uint32_t i = dp->first_line; i < dp->first_line + dp->nlines; i++) {
        const struct derive_line *l = &w->h->d->lines[i];
        if (l->hidden || xp_span_eq(l->name, XP_SPAN_LIT("Async XLA Ops")))
            continue;
        for (uint32_t k = 0; k < l->line->nlanes; k++) {
            struct lane_cursor c;
            lane_seek_ord(&c, l->line->lanes[k], 0);
            for (size_t n; (n = lane_next_block(&c, ev));)
                for (size_t m = 0; m < n; m++) {
                    if (trace_hidden(w->h, l, ev[m].name))
                        continue;
                    struct legacy_event *e = vec_push(&w->events, sizeof *e);
                    if (!e)
                        return false;
                    int64_t base = l->line->base_ps;
                    *e =
                        (struct legacy_event){base + ev[m].begin_ps,
                                              {base + ev[m].begin_ps, base + ev[m].end_ps, ev[m].at,
                                               ev[m].name, i, 0, 0, 0, false, false, false},
                                              pid,
                                              (uint32_t)l->tid};
                }
        }
    }
    return true;
}

static int begin_order(const void *a, const void *b)
{
    const struct legacy_event *x = a, *y = b;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    return (x->e.at > y->e.at) - (x->e.at < y->e.at);
}

static void put_number(struct xp_buf *b, const struct trace_arg *a)
{
    double v;
    memcpy(&v, &a->num, sizeof v);
    if (a->type == TRACE_ARG_DOUBLE)
        xp_buf_fmt(b, "\"%g\"", v);
    else if (a->type == TRACE_ARG_U64)
        xp_buf_fmt(b, "\"%llu\"", (unsigned long long)a->num);
    else
        xp_buf_fmt(b, "\"%lld\"", (long long)a->num);
}

static bool named(const struct trace_arg *a, const char *name)
{
    return xp_span_eq(a->name, xp_span_str(name));
}

/* The last of a name counts, as in a map; what was computed comes last. */
static bool superseded(const struct legacy *w, size_t i, bool group, bool flow)
{
    const struct trace_arg *a = &VEC(w->args, struct trace_arg)[i];
    if ((group && named(a, "group_id")) || (flow && named(a, "flow")))
        return true;
    for (size_t k = i + 1; k < w->args.n; k++)
        if (xp_span_eq(VEC(w->args, struct trace_arg)[k].name, a->name))
            return true;
    return false;
}

static void put_args(struct legacy *w, struct derive_eye *eye, const struct derive_event *de)
{
    struct xp_buf *b = w->b;
    const char *comma = "";
    struct derive_flow f;
    int64_t group = derive_group(eye, de);
    bool flow = derive_flow(eye, de, &f), any = group != DERIVE_NO_GROUP || flow || w->args.n;
    if (!any)
        return;
    put(b, "\"args\":{");
    if (group != DERIVE_NO_GROUP) {
        xp_buf_fmt(b, "\"group_id\":\"%lld\"", (long long)group);
        comma = ",";
    }
    if (flow) {
        xp_buf_fmt(b, "%s\"flow\":\"%llu\"", comma,
                   (unsigned long long)((uint64_t)f.category << 58 | f.id << 2 | f.dir));
        comma = ",";
    }
    for (size_t i = 0; i < w->args.n; i++) {
        const struct trace_arg *a = &VEC(w->args, struct trace_arg)[i];
        if (superseded(w, i, group != DERIVE_NO_GROUP, flow))
            continue;
        put(b, comma);
        xp_json_escape(b, a->name);
        xp_buf_byte(b, ':');
        if (a->type == TRACE_ARG_STR)
            xp_json_escape(b, a->text);
        else if (a->type == TRACE_ARG_BYTES)
            put(b, "\"<opaque bytes>\"");
        else
            put_number(b, a);
        comma = ",";
    }
    put(b, "},");
}

static enum xp_status write_event(struct legacy *w, const struct legacy_event *le)
{
    struct xp_buf *b = w->b;
    const struct trace_event *e = &le->e;
    struct derive_event de = trace_derive_event(e);
    struct derive_eye eye;
    if (w->nargs++ % ARGS_BATCH == 0) {
        xp_arena_free(w->args_memory);
        if (!(w->args_memory = xp_arena_new(NULL)))
            return trace_busy(w->t->err);
    }
    derive_look(&eye, w->h->d, &w->h->d->lines[e->line]);
    XP_TRY(trace_args(w->h, &eye, e, w->args_memory, &w->args, w->t->err));
    xp_buf_byte(b, '{');
    put_args(w, &eye, &de);
    if (e->end_ps > e->begin_ps) {
        put(b, "\"dur\":");
        xp_text_us_from_ps(b, e->end_ps - e->begin_ps);
        xp_buf_byte(b, ',');
    }
    put(b, "\"name\":");
    xp_json_escape(b, derive_event_name(&eye, &de, NULL));
    xp_buf_fmt(b, ",\"ph\":\"%s\",\"pid\":%u,", e->end_ps > e->begin_ps ? "X" : "i", le->pid);
    if (e->end_ps <= e->begin_ps)
        put(b, "\"s\":\"t\",");
    xp_buf_fmt(b, "\"tid\":%u,\"ts\":", le->tid);
    xp_text_us_from_ps(b, e->begin_ps);
    put(b, "},\n");
    flush(w);
    return XP_OK;
}

static enum xp_status write_all(struct legacy *w)
{
    struct trace_host *h = w->h;
    bool gpu = false, tpu = false;
    for (uint32_t i = 0; i < h->part->nplanes; i++) {
        gpu |= h->d->planes[i].gpu;
        tpu |= h->d->planes[i].tpu;
    }
    put(w->b,
        "{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true},\n\"traceEvents\":[\n");
    for (uint32_t i = 0; i < h->part->nplanes; i++) {
        uint32_t pid;
        if (shown(h, i, gpu, tpu, &pid) && (!write_device(w, i, pid) || !gather(w, i, pid)))
            return trace_busy(w->t->err);
    }
    if (w->events.n > LEGACY_MAX) {
        qsort(w->events.p, w->events.n, sizeof(struct legacy_event), begin_order);
        w->events.n = LEGACY_MAX;
    }
    for (size_t i = 0; i < w->events.n; i++) {
        XP_TRY(write_event(w, &VEC(w->events, struct legacy_event)[i]));
        if ((i & 1023) == 0 && out_cancelled(w->t->out))
            return xp_fail(w->t->err, XP_CANCELLED, 0, "nobody waits for the trace any more");
    }
    put(w->b, "{}]}\n");
    return XP_OK;
}

enum xp_status trace_write_legacy(struct trace *t)
{
    struct legacy w = {.t = t, .h = &t->hosts[0], .b = &t->out->text};
    enum xp_status st = write_all(&w);
    vec_free(&w.events);
    vec_free(&w.args);
    xp_arena_free(w.args_memory);
    return st;
}
