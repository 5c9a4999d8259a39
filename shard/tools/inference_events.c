/* Which events of a host matter to its requests. */
#include <stdlib.h>

#include "shard/tools/inference_int.h"

static const struct {
    const char *name;
    uint8_t kind, rank;
} known[] = {
    {"BatchingSessionRun", INF_BATCHING_RUN, 0},
    {"TfrtModelRun", INF_TFRT_RUN, 0},
    {"ServingModelRun", INF_SERVING_RUN, 0},
    {"SessionRun", INF_SESSION_RUN, 0},
    {"RunGraph", INF_RUN_GRAPH, 0},
    {"ProcessBatch", INF_PROCESS_BATCH, 0},
    {"OrbaxServing::ProcessBatch", INF_PROCESS_BATCH, 1},
    {"ScheduleWithSplit", INF_SCHEDULE, 0},
    {"ScheduleWithoutSplit", INF_SCHEDULE, 1},
    {"ScheduleWithEagerSplit", INF_SCHEDULE, 2},
    {"ASBSQueue::Schedule", INF_SCHEDULE, 3},
    {"ConcatInputTensors", INF_CONCAT, 0},
    {"OrbaxServing::ConcatInputBuffers", INF_CONCAT, 1},
    {"MergeInputTensors", INF_CONCAT, 2},
    {"BrainSessionRun", INF_CONCAT, 3},
    {"ReadHbm", INF_TO_HOST, 0},
    {"TransferD2HRequest", INF_TO_HOST, 0},
    {"WriteHbm", INF_TO_DEVICE, 0},
    {"TransferH2DRequest", INF_TO_DEVICE, 0},
    {"TransferPreprocessedH2DRequest", INF_TO_DEVICE, 0},
    {"tpu::System::TransferToDevice=>IssueEvent", INF_TO_DEVICE_ISSUE, 0},
    {"tpu::System::TransferToDevice=>IssueEvent=>Done", INF_TO_DEVICE_DONE, 0},
    {"tpu::System::TransferFromDevice=>IssueEvent", INF_TO_HOST_ISSUE, 0},
    {"tpu::System::TransferFromDevice=>IssueEvent=>Done", INF_TO_HOST_DONE, 0},
    {"TPUPartitionedCallOp-ExecuteLocal", INF_EXECUTE, 0},
    {"TPUPartitionedCallOp-ExecuteRemote", INF_EXECUTE, 1},
    {"TPUPartitionedCallOp-InitializeVarOnTPU", INF_EXECUTE, 2},
    {"tpu::System::Execute", INF_EXECUTE, 3},
    {"DoEnqueueProgram", INF_LAUNCH, 0},
    {"DoEnqueueContinuationProgram", INF_LAUNCH, 0},
    {"CompleteCallbacks", INF_COMPLETE, 0},
    {"Linearize", INF_TENSOR, 0},
    {"Delinearize", INF_TENSOR, 0},
    {"TransferBufferFromDevice-FastPath", INF_TENSOR, 0},
};

/* By event name: index + 1 in known. */
static uint8_t *kinds_of(struct inf_host *h)
{
    uint8_t *kinds = xp_arena_zalloc(h->inf->a, (size_t)h->plane->nevmeta + 1);
    for (uint32_t i = 0; kinds && i < h->plane->nevmeta; i++) {
        struct xp_span name = part_str(h->part, h->plane->evmeta[i].name);
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
            if (xp_span_eq(name, xp_span_str(known[k].name)))
                kinds[i] = (uint8_t)(k + 1);
    }
    return kinds;
}

/* Roots that users made themselves. */
static bool is_user_root(const struct inf_host *h, const struct side_cursor *side, uint32_t name)
{
    const struct side_stat *s = side_get(side, STAT_ROOT_LEVEL);
    if (!s || s->type != SIDE_I64)
        return false;
    if ((int64_t)s->num == -1)
        return true;
    return (int64_t)s->num == 1 && name < h->plane->nevmeta &&
           xp_span_starts(part_str(h->part, h->plane->evmeta[name].name),
                          XP_SPAN_LIT("ModelServerRequest_"));
}

static bool add_event(struct inf_host *h, const struct derive_line *dl, struct derive_eye *eye,
                      const struct lane_event *ev, uint8_t kind, uint8_t rank, bool root,
                      const struct side_cursor *side)
{
    struct inf_event *e = vec_push(&h->events, sizeof *e);
    if (!e)
        return false;
    struct derive_event de = {dl->line->base_ps + ev->begin_ps, dl->line->base_ps + ev->end_ps,
                              ev->at, ev->name};
    const struct side_stat *c = side->n ? side_get(side, STAT_CONSUMER_ID) : NULL;
    *e = (struct inf_event){.at = ev->at,
                            .begin_ps = de.begin_ps,
                            .end_ps = de.end_ps,
                            .group = derive_group(eye, &de),
                            .kind = kind,
                            .name = ev->name,
                            .rank = rank,
                            .user_root = root,
                            .has_consumer = c != NULL};
    if (c && c->type == SIDE_I64)
        e->consumer = c->num;
    return true;
}

static bool line_events(struct inf_host *h, const struct derive_line *dl, const uint8_t *kinds)
{
    struct lane_event block[LANE_BLOCK];
    struct derive_eye eye;
    struct side_cursor side;
    size_t got;
    derive_look(&eye, h->d, dl);
    side_open(&side, dl->line->side);
    for (uint32_t i = 0; i < dl->line->nlanes; i++) {
        struct lane_cursor c;
        lane_seek(&c, dl->line->lanes[i], INT64_MIN);
        while ((got = lane_next_block(&c, block)))
            for (size_t k = 0; k < got; k++) {
                uint8_t kind = block[k].name < h->plane->nevmeta ? kinds[block[k].name] : 0;
                bool has = dl->line->side && side_find(&side, block[k].at);
                bool root = has && is_user_root(h, &side, block[k].name);
                if (!has)
                    side.n = 0;
                if ((kind || root) &&
                    !add_event(h, dl, &eye, &block[k], kind ? known[kind - 1].kind : INF_USER_ROOT,
                               kind ? known[kind - 1].rank : 0, root, &side))
                    return false;
            }
    }
    return true;
}

static int by_at(const void *a, const void *b)
{
    const struct inf_event *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

enum xp_status inference_events(struct inf_host *h, struct xp_error *err)
{
    const struct derive_plane *dp = &h->d->planes[h->plane - h->part->planes];
    const uint8_t *kinds = kinds_of(h);
    if (!kinds)
        return inference_busy(err);
    for (uint32_t i = dp->first_line; i < dp->first_line + dp->nlines; i++) {
        if (h->d->lines[i].line->derived)
            continue;
        if (!line_events(h, &h->d->lines[i], kinds))
            return inference_busy(err);
        if (out_cancelled(h->out))
            return XP_CANCELLED;
    }
    if (h->events.n)
        qsort(h->events.p, h->events.n, sizeof(struct inf_event), by_at);
    return XP_OK;
}
