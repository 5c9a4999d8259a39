#include "lib/base/hash.h"
#include "shard/derive/derive_int.h"

/* XProf's context types, as far as they are made here. */
enum {
    CONTEXT_LEGACY = 1,
    CONTEXT_GPU_LAUNCH = 9,
    CONTEXT_TPU_STREAM = 11,
    CONTEXT_TPU_LAUNCH = 12
};
#define CONTEXT_LAST 17
#define RUN_ID_MASK ((UINT64_C(1) << 27) - 1)
#define FLOW_ID_MASK ((UINT64_C(1) << 56) - 1)

static const char *const categories[CONTEXT_LAST + 1] = {
    "",
    "",
    "tf_exec",
    "tfrt_exec",
    "batch_sched",
    "PjRt",
    "as_batch_sched",
    "tfrt_rt",
    "tpu_embed",
    "gpu_launch",
    "batcher",
    "tpu_stream",
    "tpu_launch",
    "pathways_exec",
    "pjrt_library_call",
    "threadpool_event",
    "jax_serving",
    "sparsecore_offload",
};

const char *derive_category(uint8_t category)
{
    return category <= CONTEXT_LAST ? categories[category] : "";
}

/* Not seeded: the same pair must meet in every process. */
static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 29;
    h *= UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ h >> 32;
}

static void context_read(const struct side_cursor *side, enum stat_kind type_kind,
                         enum stat_kind id_kind, struct derive_context *c)
{
    uint64_t type;
    const struct side_stat *t = side_get(side, type_kind);
    if (!t || !derive_int(side, type_kind, &type) || !derive_int(side, id_kind, &c->id))
        return;
    c->has = true;
    c->type = t->type == SIDE_I64 ? (int32_t)(int64_t)type : 0;
    c->category = type <= CONTEXT_LAST ? (uint8_t)type : 0;
}

static void context_set(struct derive_context *c, uint8_t type, uint64_t id)
{
    *c = (struct derive_context){true, type, type, id};
}

/* Enough of the plane's stat names must be known before XProf makes a mutator at all. */
static bool plane_knows(const struct derive_plane *plane, enum stat_kind kind)
{
    return plane->kinds >> kind & 1;
}

static void stream_context(const struct derive_plane *plane, uint16_t evflags,
                           const struct side_cursor *side, struct derive_stats *s)
{
    uint64_t request, queue;
    if (!plane_knows(plane, STAT_REQUEST_ID) || !plane_knows(plane, STAT_QUEUE_ADDR) ||
        !derive_int(side, STAT_REQUEST_ID, &request) || !derive_int(side, STAT_QUEUE_ADDR, &queue))
        return;
    context_set(evflags & EV_ENQUEUE ? &s->producer : &s->consumer, CONTEXT_TPU_STREAM,
                mix(mix(1, request), queue));
}

static void launch_context(const struct derive_plane *plane, uint16_t evflags, bool module_line,
                           const struct side_cursor *side, struct derive_stats *s)
{
    uint64_t device = plane->ordinal, queue, run, core = 0;
    if (!derive_int(side, STAT_QUEUE_ID, &queue) || !derive_int(side, STAT_RUN_ID, &run))
        return;
    if (!module_line) {
        if (!derive_int(side, STAT_DEVICE_ORDINAL, &device))
            return;
        run &= RUN_ID_MASK;
    }
    derive_int(side, STAT_CORE_TYPE, &core);
    context_set(evflags & EV_LAUNCH && !module_line ? &s->producer : &s->consumer,
                CONTEXT_TPU_LAUNCH, mix(mix(mix(mix(2, device), queue), run), core));
}

static void executor_context(uint16_t evflags, const struct side_cursor *side,
                             struct derive_stats *s)
{
    uint64_t step, iter;
    if (!derive_int(side, STAT_STEP_ID, &step) || !derive_int(side, STAT_ITER_NUM, &iter))
        return;
    context_set(evflags & EV_EXECUTOR ? &s->producer : &s->consumer, CONTEXT_LEGACY,
                mix(mix(3, step), iter));
}

void derive_stats_read(const struct derive *d, const struct derive_plane *plane, bool module_line,
                       uint16_t evflags, const struct side_cursor *side, struct derive_stats *s)
{
    *s = (struct derive_stats){0};
    uint64_t v;
    s->has_flow = derive_int(side, STAT_FLOW, &s->flow);
    if (derive_int(side, STAT_IS_ASYNC, &v)) {
        s->async_stat = true;
        s->async = side_get(side, STAT_IS_ASYNC)->type == SIDE_I64 && v;
    }
    if (d->grouped)
        return;
    context_read(side, STAT_PRODUCER_TYPE, STAT_PRODUCER_ID, &s->producer);
    context_read(side, STAT_CONSUMER_TYPE, STAT_CONSUMER_ID, &s->consumer);
    if (derive_int(side, STAT_CORRELATION_ID, &s->correlation)) {
        s->has_correlation = true;
        s->correlation_flow =
            side_get(side, STAT_CORRELATION_ID)->type == SIDE_U64 ? s->correlation : 0;
    }
    const struct side_stat *root = side_get(side, STAT_ROOT_LEVEL);
    if (root) {
        s->has_root = true;
        s->root = root->type == SIDE_I64 ? (int64_t)root->num : 0;
    }
    if (evflags & (EV_ROOT1 | EV_ROOT2)) {
        s->has_root = true;
        s->root = evflags & EV_ROOT2 ? 2 : 1;
    }
    if (evflags & (EV_EXECUTOR | EV_TPU_EXECUTE))
        executor_context(evflags, side, s);
    if (evflags & (EV_ENQUEUE | EV_DEQUEUE))
        stream_context(plane, evflags, side, s);
    if (evflags & (EV_LAUNCH | EV_COMPLETE) || module_line)
        launch_context(plane, evflags, module_line, side, s);
}

bool derive_stats_flow(const struct derive *d, const struct derive_plane *plane,
                       const struct derive_stats *s, struct derive_flow *flow)
{
    *flow = (struct derive_flow){.async = s->async_stat};
    const struct derive_context *c = s->consumer.has ? &s->consumer : &s->producer;
    if (c->has) {
        flow->dir = s->consumer.has ? DERIVE_DIR_IN : DERIVE_DIR_OUT;
        flow->category = c->category;
        flow->id = mix(mix(mix(4, d->host), c->id), c->category) & FLOW_ID_MASK;
    } else if (s->has_correlation) {
        flow->dir = plane->device ? DERIVE_DIR_IN : DERIVE_DIR_OUT;
        flow->category = CONTEXT_GPU_LAUNCH;
        flow->id = mix(mix(5, d->host), s->correlation_flow) & FLOW_ID_MASK;
    } else if (s->has_flow) {
        flow->dir = s->flow & 3;
        flow->id = s->flow >> 2 & FLOW_ID_MASK;
        flow->category = (uint8_t)(s->flow >> 58);
        if (flow->category > CONTEXT_LAST)
            flow->category = 0;
    } else {
        return false;
    }
    return true;
}
