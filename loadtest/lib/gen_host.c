/* loadtest/lib/gen_host.c - the host side: threads of the runtime, Python frames; and the file. */
#include <stdio.h>
#include <stdlib.h>

#include "loadtest/lib/gen.h"

#define US INT64_C(1000000)
#define MS INT64_C(1000000000)
#define FIRST_STEP (5300 * US)
#define FRAMES_MAX 14

/* Names of host events; ids count from 1. */
#define HOST_NAMES(X)                                                                              \
    X(TRAIN, "train")                                                                              \
    X(NEXT_BATCH, "next_batch")                                                                    \
    X(PJIT, "PjitFunction(train_step)")                                                            \
    X(PARSE, "ParseArguments")                                                                     \
    X(EXECUTE, "TfrtTpuLoadedExecutable::Execute")                                                 \
    X(PREPARE, "TfrtTpuLoadedExecutable::ExecutePrepare")                                          \
    X(SCHEDULED, "Scheduled TfrtTpuLoadedExecutable::Execute")                                     \
    X(SYSTEM, "tpu::System::Execute")                                                              \
    X(ISSUE, "tpu::System::Execute=>IssueSequencedEvent")                                          \
    X(ENQUEUE, "DoEnqueueProgram")                                                                 \
    X(CALLBACKS, "CompleteCallbacks")                                                              \
    X(TRANSFER, "tpu::System::TransferToDevice=>IssueEvent")                                       \
    X(TRANSFERRED, "tpu::System::TransferToDevice=>IssueEvent=>Done")                              \
    X(DECODE, "Iterator::Prefetch::ParallelMap::Decode")                                           \
    X(BATCH, "Iterator::Prefetch::Batch")                                                          \
    X(READ, "Iterator::Prefetch::ParallelInterleave[12]::TFRecord")                                \
    X(METRICS, "metrics.write")                                                                    \
    X(BLOCK, "PyArray::BlockUntilReady")                                                           \
    X(CHECKPOINT, "checkpoint.save")

enum {
    HOST_NONE,
#define X(id, name) HOST_##id,
    HOST_NAMES(X)
#undef X
        HOST_FRAMES = 100 /* Python frames from here */
};

#define FRAME_NAMES 240

static const char *const frame_files[] = {
    "train.py",   "loop.py",      "optimizer.py", "pjit.py",     "tree_util.py", "api.py",
    "dataset.py", "attention.py", "module.py",    "profiler.py", "metrics.py",   "array.py"};
static const char *const frame_functions[] = {"train_step",
                                              "run_loop",
                                              "apply",
                                              "tree_map",
                                              "flatten_axes",
                                              "__call__",
                                              "_python_pjit_helper",
                                              "cache_miss",
                                              "next_batch",
                                              "shard_batch",
                                              "log_metrics",
                                              "__getitem__",
                                              "_value",
                                              "device_put",
                                              "block_until_ready",
                                              "update_state",
                                              "<lambda>",
                                              "<listcomp>",
                                              "wrapper",
                                              "reraise_with_filtered_traceback"};

struct thread {
    const struct gen_host *h;
    int64_t number;
    int64_t frame_ps; /* length of a typical Python leaf */
};

static int64_t around(struct rng *r, int64_t ps)
{
    return ps - ps / 4 + (int64_t)rng_below(r, 1000) * (ps / 2) / 1000;
}

static void plain(struct xs *x, int name, int64_t at, int64_t length)
{
    xs_event(x, name, at, length);
    xs_event_end(x);
}

/* Offsets of host lines count from the line's own timestamp. */
static int64_t from_line(const struct gen_host *h, int64_t ps)
{
    return ps - (h->host_ts_ns - (h->o->wall_clock ? GEN_WALL_NS : 0)) * 1000;
}

static void main_line(struct xs *x, const void *ctx, int64_t arg)
{
    const struct gen_host *h = ctx;
    (void)arg;
    for (int64_t s = 0; s < h->nsteps; s++) {
        struct rng r = rng_for(h->o->seed, 20, (uint64_t)s);
        int64_t t =
            from_line(h, h->steps[s].begin_ps) - 1200 * US - (int64_t)rng_below(&r, 90 * US);
        xs_event(x, HOST_TRAIN, t, h->steps[s].length_ps + 900 * US);
        xs_stat_i64(x, GEN_STEP_NUM, s);
        xs_stat_i64(x, GEN_ROOT_LEVEL, 1);
        xs_event_end(x);
        plain(x, HOST_NEXT_BATCH, t + 9 * US, around(&r, 190 * US));
        t += 260 * US;
        plain(x, HOST_PJIT, t, 420 * US);
        plain(x, HOST_PARSE, t + 2 * US, around(&r, 5 * US));
        xs_event(x, HOST_EXECUTE, t + 20 * US, 380 * US);
        xs_stat_i64(x, GEN_PRODUCER_TYPE, 5);
        xs_stat_i64(x, GEN_PRODUCER_ID, INT64_C(1) << 32 | s);
        xs_event_end(x);
        plain(x, HOST_PREPARE, t + 24 * US, around(&r, 200 * US));
        plain(x, HOST_BLOCK, t + 500 * US, h->steps[s].length_ps - 200 * US);
        if (s % 10 == 9)
            plain(x, HOST_METRICS, t + 360 * US + h->steps[s].length_ps, around(&r, 160 * US));
    }
}

static void execute_line(struct xs *x, const void *ctx, int64_t core)
{
    const struct gen_host *h = ctx;
    for (int64_t s = 0; s < h->nsteps; s++) {
        struct rng r = rng_for(h->o->seed, 30 + (uint64_t)core, (uint64_t)s);
        int64_t t = from_line(h, h->steps[s].begin_ps) - 480 * US + (int64_t)rng_below(&r, 40 * US);
        xs_event(x, HOST_SCHEDULED, t, 240 * US);
        xs_stat_i64(x, GEN_CONSUMER_TYPE, 5);
        xs_stat_i64(x, GEN_CONSUMER_ID, INT64_C(1) << 32 | s);
        xs_event_end(x);
        plain(x, HOST_PREPARE, t + 3 * US, around(&r, 120 * US));
        xs_event(x, HOST_SYSTEM, t + 160 * US, 60 * US);
        xs_stat_i64(x, GEN_PRODUCER_TYPE, 7);
        xs_stat_i64(x, GEN_PRODUCER_ID, (core + 2) << 32 | s);
        xs_event_end(x);
    }
}

static void queue_line(struct xs *x, const void *ctx, int64_t core)
{
    const struct gen_host *h = ctx;
    for (int64_t s = 0; s < h->nsteps; s++) {
        struct rng r = rng_for(h->o->seed, 40 + (uint64_t)core, (uint64_t)s);
        int64_t t = from_line(h, h->steps[s].begin_ps) - 160 * US + (int64_t)rng_below(&r, 50 * US);
        xs_event(x, HOST_ISSUE, t, 54 * US);
        xs_stat_i64(x, GEN_CONSUMER_TYPE, 7);
        xs_stat_i64(x, GEN_CONSUMER_ID, (core + 2) << 32 | s);
        xs_event_end(x);
        xs_event(x, HOST_ENQUEUE, t + 30 * US, 20 * US);
        xs_stat_i64(x, GEN_RUN_ID, s + 1);
        xs_stat_i64(x, GEN_QUEUE_ID, 0);
        xs_stat_i64(x, GEN_DEVICE_ORDINAL, core);
        xs_stat_i64(x, GEN_CORE_TYPE, 0);
        xs_stat_i64(x, GEN_PRODUCER_TYPE, 12);
        xs_stat_i64(x, GEN_PRODUCER_ID, gen_launch_id(h->host, (int)core, s));
        xs_event_end(x);
    }
}

static void callbacks_line(struct xs *x, const void *ctx, int64_t arg)
{
    const struct gen_host *h = ctx;
    (void)arg;
    for (int64_t s = 0; s < h->nsteps; s++) {
        struct rng r = rng_for(h->o->seed, 50, (uint64_t)s);
        plain(x, HOST_CALLBACKS,
              from_line(h, h->steps[s].begin_ps) + h->steps[s].length_ps + 30 * US,
              around(&r, 30 * US));
    }
}

static void transfer_line(struct xs *x, const void *ctx, int64_t worker)
{
    const struct gen_host *h = ctx;
    for (int64_t s = 0; s < h->nsteps; s++) {
        struct rng r = rng_for(h->o->seed, 60 + (uint64_t)worker, (uint64_t)s);
        int64_t t = from_line(h, h->steps[s].begin_ps) + (int64_t)rng_below(&r, 4000) * US;
        int64_t n = around(&r, 900 * US);
        xs_event(x, HOST_TRANSFER, t, n);
        xs_stat_u64(x, GEN_SIZE, 16777216);
        xs_event_end(x);
        plain(x, HOST_TRANSFERRED, t + n - 40 * US, 18 * US);
    }
}

/* The input pipeline works ahead all the time: reads inside decodes inside batches. */
static void data_line(struct xs *x, const void *ctx, int64_t worker)
{
    const struct gen_host *h = ctx;
    if (!h->nsteps)
        return;
    struct rng r = rng_for(h->o->seed, 70, (uint64_t)worker);
    int64_t t = from_line(h, h->steps[0].begin_ps) - 3 * MS;
    int64_t end =
        from_line(h, h->steps[h->nsteps - 1].begin_ps) + h->steps[h->nsteps - 1].length_ps;
    while (t < end) {
        int64_t n = around(&r, 6 * MS);
        plain(x, HOST_BATCH, t, n);
        for (int64_t at = t + 20 * US, k = 0; k < 6; k++, at += n / 7) {
            plain(x, HOST_DECODE, at, n / 8);
            plain(x, HOST_READ, at + n / 100, n / 24);
        }
        t += n + around(&r, 2 * MS);
    }
}

static int frame_name(struct rng *r, int depth)
{
    /* Shallow frames are few, deep ones are many. */
    return HOST_FRAMES + (depth < 4 ? depth * 3 + (int)rng_below(r, 2)
                                    : 12 + (int)rng_below(r, FRAME_NAMES - 12));
}

/* Call stacks that fill [t, end): an event begins after all that enclose it. */
static void frames(struct xs *x, struct rng *r, int64_t t, int64_t end, int64_t leaf)
{
    int64_t until[FRAMES_MAX];
    int depth = 0;
    while (t + 2 * leaf < end) {
        while (depth && until[depth - 1] - t < 2 * leaf)
            t = until[--depth] + leaf / 16;
        int64_t room = (depth ? until[depth - 1] : end) - t;
        if (room < 2 * leaf)
            continue;
        bool deeper = depth < FRAMES_MAX - 1 && rng_below(r, 4) != 0;
        int64_t n = leaf / 2 + (int64_t)rng_below(r, 1000) * leaf / 1000;
        if (deeper && depth < 4)
            n = room - room / (8 << depth) - leaf / 4;
        else if (deeper)
            n = n * (int64_t)(2 + rng_below(r, 12)) < room ? n * (int64_t)(2 + rng_below(r, 10))
                                                           : n;
        if (n > room - leaf / 8)
            n = room - leaf / 8;
        plain(x, frame_name(r, depth), t, n);
        if (deeper) {
            until[depth++] = t + n;
            t += leaf / 16;
        } else {
            t += n + leaf / 16;
        }
    }
}

static void python_line(struct xs *x, const void *ctx, int64_t arg)
{
    const struct thread *th = ctx;
    const struct gen_host *h = th->h;
    (void)arg;
    for (int64_t s = 0; s < h->nsteps; s++) {
        struct rng r = rng_for(h->o->seed, 80 + (uint64_t)th->number, (uint64_t)s);
        int64_t t = from_line(h, h->steps[s].begin_ps) - 1000 * US;
        frames(x, &r, t, t + h->steps[s].length_ps, th->frame_ps);
    }
}

void gen_stat_names(struct xp_buf *meta)
{
#define X(id, name) xs_stat_meta(meta, GEN_##id, xp_span_str(name));
    GEN_STATS(X)
#undef X
}

static void host_meta(struct xp_buf *meta)
{
    struct xp_span none = {0};
    char name[128];
#define X(id, text) xs_event_meta(meta, HOST_##id, xp_span_str(text), none, none);
    HOST_NAMES(X)
#undef X
    for (int i = 0; i < FRAME_NAMES; i++) {
        size_t files = sizeof frame_files / sizeof frame_files[0];
        size_t functions = sizeof frame_functions / sizeof frame_functions[0];
        snprintf(name, sizeof name, "$%s:%d %s", frame_files[(size_t)i % files], 12 + i * 7 % 900,
                 frame_functions[(size_t)i % functions]);
        xs_event_meta(meta, HOST_FRAMES + i, xp_span_str(name), none, none);
    }
    gen_stat_names(meta);
    xs_put_double(meta, 6, GEN_MXU_UTILIZATION, 43.7);
    xs_put_double(meta, 6, GEN_HBM_UTILIZATION, 38.2);
}

#define LINES_MAX 40
struct line_list {
    struct xs_line l[LINES_MAX];
    char names[LINES_MAX][48];
    int n;
    int64_t ts;
};

static void add_line(struct line_list *ll, const char *name, int64_t id,
                     void (*fn)(struct xs *, const void *, int64_t), const void *ctx, int64_t arg)
{
    if (ll->n == LINES_MAX)
        abort();
    if (strcmp(name, "python") == 0)
        snprintf(ll->names[ll->n], sizeof ll->names[0], "%s", name);
    else
        snprintf(ll->names[ll->n], sizeof ll->names[0], "%s/%lld", name, (long long)id);
    ll->l[ll->n] = (struct xs_line){id, ll->names[ll->n], ll->ts, fn, ctx, arg, false};
    ll->n++;
}

void gen_host_plane(struct xs *x, const struct gen_host *h)
{
    struct line_list *ll = calloc(1, sizeof *ll);
    struct thread threads[6];
    struct xp_buf meta;
    int64_t tid = 3116817 + h->host * 1000;
    if (!ll)
        abort();
    ll->ts = h->host_ts_ns;
    add_line(ll, "main", tid, main_line, h, 0);
    if (h->o->kind != GEN_TPU) {
        int n = h->o->kind == GEN_PYTHON ? 6 : 1;
        for (int i = 0; i < n; i++) {
            threads[i] = (struct thread){h, i, h->o->kind == GEN_PYTHON ? 5 * US : 280 * US};
            add_line(ll, "python", tid + i, python_line, &threads[i], 0);
        }
    }
    if (h->o->kind != GEN_PYTHON) {
        for (int core = 0; core < GEN_CORES; core++)
            add_line(ll, "py_xla_execute", tid + 100 + core, execute_line, h, core);
        for (int core = 0; core < GEN_CORES; core++)
            add_line(ll, "tfrt-non-blocking-queue", tid + 200 + core, queue_line, h, core);
        add_line(ll, "switchto-default-SDomainT", tid + 300, callbacks_line, h, 0);
        for (int i = 0; i < 3; i++)
            add_line(ll, "EventFDAsyncWorker", tid + 400 + i, transfer_line, h, i);
    }
    for (int i = 0; i < 4; i++)
        add_line(ll, "tf_data_private_threadpool", tid + 500 + i, data_line, h, i);
    xp_buf_init(&meta, SIZE_MAX / 2);
    host_meta(&meta);
    xs_plane(x, 0, "/host:CPU", ll->l, (size_t)ll->n, xp_buf_all(&meta));
    xp_buf_fini(&meta);
    free(ll);
}

/* --- the whole file --- */

static void plan_steps(struct gen_host *h)
{
    struct rng r = rng_for(h->o->seed, 10, 0); /* hosts march in step */
    int64_t t = FIRST_STEP;
    for (int64_t s = 0; s < h->nsteps; s++) {
        int slow = gen_program_variants() - 1;
        int variant = rng_below(&r, 11) == 0 ? slow : (int)rng_below(&r, (uint64_t)slow);
        h->steps[s] = (struct gen_step){t, gen_program_length(variant) + 31 * US, variant};
        t += h->steps[s].length_ps + 400 * US + (int64_t)rng_below(&r, 2600) * US;
    }
}

static void environment_plane(struct xs *x, const struct gen_host *h)
{
    const struct gen_step *last = h->nsteps ? &h->steps[h->nsteps - 1] : NULL;
    int64_t end_ns = last ? (last->begin_ps + last->length_ps) / 1000 + 2000000 : 1;
    struct xp_buf meta;
    xp_buf_init(&meta, 1 << 20);
    gen_stat_names(&meta);
    xs_put_u64(&meta, 6, GEN_START_TIME, (uint64_t)GEN_WALL_NS);
    xs_put_u64(&meta, 6, GEN_STOP_TIME, (uint64_t)(GEN_WALL_NS + end_ns));
    xs_plane(x, 0, "Task Environment", NULL, 0, xp_buf_all(&meta));
    xp_buf_fini(&meta);
}

void gen_profile(struct xs *x, const struct gen_options *o, int host, int64_t steps)
{
    struct gen_host h = {o, host, steps, NULL, 0, 212990};
    char name[64];
    h.steps = calloc((size_t)steps + 1, sizeof *h.steps);
    if (!h.steps)
        abort();
    if (o->wall_clock) {
        h.device_ts_ns = GEN_WALL_NS;
        h.host_ts_ns += GEN_WALL_NS;
    }
    plan_steps(&h);
    for (int core = 0; o->kind != GEN_PYTHON && core < GEN_CORES; core++)
        gen_device_plane(x, &h, core);
    gen_metadata_plane(x);
    gen_host_plane(x, &h);
    environment_plane(x, &h);
    snprintf(name, sizeof name, "host-%d", host);
    xs_hostname(x, name);
    free(h.steps);
}

static void measure(const struct gen_options *o, int64_t steps, uint64_t *bytes, uint64_t *events)
{
    struct xs x;
    xs_counter(&x);
    gen_profile(&x, o, 0, steps);
    *bytes = xs_bytes(&x);
    *events = x.events;
    xs_close(&x);
}

int64_t gen_steps(const struct gen_options *o)
{
    if (o->steps)
        return o->steps;
    if (!o->size && !o->events)
        return o->kind == GEN_PYTHON ? 3 : 24;
    uint64_t bytes[2], events[2];
    measure(o, 8, &bytes[0], &events[0]);
    measure(o, 24, &bytes[1], &events[1]);
    uint64_t a = o->size ? bytes[0] : events[0], b = o->size ? bytes[1] : events[1];
    uint64_t want = o->size ? o->size : o->events, per = (b - a) / 16 ? (b - a) / 16 : 1;
    uint64_t fixed = a > 8 * per ? a - 8 * per : 0;
    return want > fixed + per ? (int64_t)((want - fixed) / per) : 1;
}
