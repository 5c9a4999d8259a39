/* One host's requests and batches. */
#include <stdio.h>
#include <stdlib.h>

#include "shard/tools/inference_int.h"

enum { MODEL_ID, TASK_SIZE, PADDING, PADDED_SIZE, NAMES };
static const char *const names[NAMES] = {"model_id", "batching_input_task_size", "padding_amount",
                                         "batch_size_after_padding"};

bool inference_init(struct inference *inf, struct xp_arena *a)
{
    *inf = (struct inference){.a = a};
    return xp_strpool_init(&inf->models, a) && xp_strpool_init(&inf->patterns, a) &&
           xp_strpool_init(&inf->programs, a);
}

void inference_fini(struct inference *inf)
{
    vec_free(&inf->requests);
    vec_free(&inf->batches);
    vec_free(&inf->tensors);
    vec_free(&inf->params);
    vec_free(&inf->ran);
}

/* --- groups and what led to what --- */

static bool groups_init(struct inf_host *h)
{
    struct xp_arena *a = h->inf->a;
    size_t n = (size_t)h->d->ngroups + 1;
    h->ngroups = h->d->ngroups;
    h->groups = xp_arena_alloc(a, n * sizeof *h->groups);
    h->request = xp_arena_zalloc(a, n * sizeof *h->request);
    h->batch = xp_arena_zalloc(a, n * sizeof *h->batch);
    h->model = xp_arena_alloc(a, n * sizeof *h->model);
    if (!h->groups || !h->request || !h->batch || !h->model)
        return false;
    for (size_t i = 0; i < n; i++) {
        h->groups[i] = (struct inf_group){INF_NONE, INF_NONE, INF_NONE, INF_NONE, INF_NONE, 0, 0};
        h->model[i] = -1;
    }
    return true;
}

/* The groups that a group led to, ascending. */
static bool children_of(const struct inf_host *h, int64_t group, const int64_t **list, uint32_t *n)
{
    const struct derive_relation *r = h->d->relations;
    uint32_t lo = 0, hi = h->d->nrelations;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (r[mid].parent < group)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (hi = lo; hi < h->d->nrelations && r[hi].parent == group; hi++)
        ;
    *n = hi - lo;
    int64_t *out = xp_arena_alloc(h->inf->a, (*n + 1) * sizeof *out);
    for (uint32_t i = 0; out && i < *n; i++)
        out[i] = r[lo + i].child;
    *list = out;
    return out != NULL;
}

/* --- models --- */

static bool name_model(struct inf_host *h, const struct value *v, int64_t group)
{
    char text[40];
    struct xp_span s = v->text;
    if (v->type == VALUE_I64)
        s = xp_span_of(text, (size_t)snprintf(text, sizeof text, "%lld", (long long)v->num));
    else if (v->type == VALUE_U64)
        s = xp_span_of(text,
                       (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)v->num));
    else if (v->type == VALUE_DOUBLE)
        s = xp_span_of(text, (size_t)snprintf(text, sizeof text, "%g", value_double(v)));
    uint32_t id = xp_strpool_add(&h->inf->models, s);
    if (id == XP_STRPOOL_FULL)
        return false;
    h->model[group] = (int32_t)id - 1; /* the empty name is none */
    return true;
}

static enum xp_status read_models(struct inf_host *h, struct values_eye *eye, struct xp_error *err)
{
    static const uint8_t kinds[] = {INF_SESSION_RUN, INF_TFRT_RUN, INF_SERVING_RUN, INF_USER_ROOT};
    for (size_t k = 0; k < sizeof kinds; k++)
        for (size_t i = 0; i < h->events.n; i++) {
            const struct inf_event *e = &VEC(h->events, struct inf_event)[i];
            struct value v;
            if (!(kinds[k] == INF_USER_ROOT ? e->user_root : e->kind == kinds[k]) ||
                !inf_group_ok(h, e->group))
                continue;
            XP_TRY(values_of_event(eye, e->at, err));
            if (values_find(eye, MODEL_ID, &v) && !name_model(h, &v, e->group))
                return inference_busy(err);
        }
    return XP_OK;
}

/* The model that all groups the request led to have; -1 if they differ. */
static int32_t common_model(const struct inf_host *h, const struct inference_request *r)
{
    int32_t model = -1;
    for (uint32_t i = 0; i < r->nbatches; i++) {
        int32_t m = inf_group_ok(h, r->batches[i]) ? h->model[r->batches[i]] : -1;
        if (model == -1)
            model = m;
        else if (m != model)
            return -1;
    }
    return model;
}

/* Where XProf has no model yet, it says 0, the first. */
static int32_t model_of(const struct inf_host *h, const struct inference_request *r, uint8_t kind)
{
    if (kind == INF_BATCHING_RUN)
        return !r->nbatches ? 0 : inf_group_ok(h, r->batches[0]) ? h->model[r->batches[0]] : -1;
    if (kind == INF_USER_ROOT && h->model[r->group] == -1)
        return r->nbatches ? common_model(h, r) : 0;
    return h->model[r->group];
}

/* --- requests --- */

static bool add_request(struct inf_host *h, int64_t group, uint8_t kind)
{
    if (!inf_group_ok(h, group) || h->batch[group] || h->request[group])
        return true;
    struct inference_request *r = vec_push(&h->requests, sizeof *r);
    if (!r)
        return false;
    *r = (struct inference_request){
        .group = group, .host = h->host, .prefilled_ps = INFERENCE_NEVER};
    h->request[group] = (uint32_t)h->requests.n;
    if (!children_of(h, group, &r->batches, &r->nbatches))
        return false;
    r->model = model_of(h, r, kind);
    return true;
}

static bool has_kind(const struct inf_host *h, uint8_t kind)
{
    for (size_t i = 0; i < h->events.n; i++)
        if (VEC(h->events, struct inf_event)[i].kind == kind)
            return true;
    return false;
}

static bool add_requests_of(struct inf_host *h, uint8_t kind)
{
    for (size_t i = 0; i < h->events.n; i++) {
        const struct inf_event *e = &VEC(h->events, struct inf_event)[i];
        if ((kind == INF_USER_ROOT ? e->user_root : e->kind == kind) &&
            !add_request(h, e->group, kind))
            return false;
    }
    return true;
}

/* Of the kinds of events that may begin a request only the most telling that is there counts. */
static bool find_requests(struct inf_host *h)
{
    static const uint8_t first[] = {INF_BATCHING_RUN, INF_TFRT_RUN, INF_SERVING_RUN};
    bool found = false;
    for (size_t i = 0; i < sizeof first && !found; i++) {
        found = has_kind(h, first[i]);
        if (found && !add_requests_of(h, first[i]))
            return false;
    }
    if (!found && (!add_requests_of(h, INF_SESSION_RUN) || !add_requests_of(h, INF_RUN_GRAPH)))
        return false;
    return add_requests_of(h, INF_USER_ROOT);
}

/* A request lasts from the first begin to the last end of its group's host events. */
static enum xp_status find_spans(struct inf_host *h)
{
    const struct derive_plane *dp = &h->d->planes[h->plane - h->part->planes];
    struct inference_request *requests = h->requests.p;
    struct lane_event block[LANE_BLOCK];
    for (uint32_t i = dp->first_line; h->requests.n && i < dp->first_line + dp->nlines; i++) {
        const struct derive_line *dl = &h->d->lines[i];
        struct derive_eye eye;
        size_t got;
        if (dl->line->derived)
            continue;
        derive_look(&eye, h->d, dl);
        for (uint32_t n = 0; n < dl->line->nlanes; n++) {
            struct lane_cursor c;
            lane_seek(&c, dl->line->lanes[n], INT64_MIN);
            while ((got = lane_next_block(&c, block)))
                for (size_t k = 0; k < got; k++) {
                    struct derive_event de = {dl->line->base_ps + block[k].begin_ps,
                                              dl->line->base_ps + block[k].end_ps, block[k].at,
                                              block[k].name};
                    int64_t group = derive_group(&eye, &de);
                    if (!inf_group_ok(h, group) || !h->request[group])
                        continue;
                    struct inference_request *r = &requests[h->request[group] - 1];
                    if (r->begin_ps == 0 || de.begin_ps < r->begin_ps)
                        r->begin_ps = de.begin_ps;
                    if (de.end_ps > r->end_ps)
                        r->end_ps = de.end_ps;
                }
        }
        if (out_cancelled(h->out))
            return XP_CANCELLED;
    }
    return XP_OK;
}

/* --- batches --- */

static bool add_batches(struct inf_host *h)
{
    for (uint8_t rank = 0; rank < 2; rank++)
        for (size_t i = 0; i < h->events.n; i++) {
            const struct inf_event *e = &VEC(h->events, struct inf_event)[i];
            if (e->kind != INF_PROCESS_BATCH || e->rank != rank || !inf_group_ok(h, e->group))
                continue;
            if (!h->batch[e->group]) {
                struct inference_batch *b = vec_push(&h->batches, sizeof *b);
                if (!b)
                    return false;
                *b = (struct inference_batch){.group = e->group, .host = h->host};
                h->batch[e->group] = (uint32_t)h->batches.n;
            }
            struct inference_batch *b =
                &VEC(h->batches, struct inference_batch)[h->batch[e->group] - 1];
            b->begin_ps = e->begin_ps;
            b->end_ps = e->end_ps;
        }
    return true;
}

/* Times of one kind's events by their groups; the last event of a group counts. */
static void note_moments(struct inf_host *h)
{
    for (uint8_t rank = 0; rank < 4; rank++)
        for (size_t i = 0; i < h->events.n; i++) {
            const struct inf_event *e = &VEC(h->events, struct inf_event)[i];
            if (e->rank != rank || !inf_group_ok(h, e->group))
                continue;
            struct inf_group *g = &h->groups[e->group];
            if (e->kind == INF_SCHEDULE)
                g->schedule = e->begin_ps;
            else if (e->kind == INF_CONCAT)
                g->concat = e->begin_ps;
            else if (e->kind == INF_EXECUTE)
                g->execute = e->begin_ps;
            else if (e->kind == INF_COMPLETE)
                g->complete = e->begin_ps;
            else if (e->kind == INF_LAUNCH && (g->launch == INF_NONE || e->begin_ps < g->launch))
                g->launch = e->begin_ps;
        }
}

static enum xp_status read_sizes(struct inf_host *h, struct values_eye *eye, struct xp_error *err)
{
    for (uint8_t rank = 0; rank < 4; rank++)
        for (size_t i = 0; i < h->events.n; i++) {
            const struct inf_event *e = &VEC(h->events, struct inf_event)[i];
            struct value v, seen[NAMES] = {{0}};
            bool request = e->kind == INF_SCHEDULE, batch = e->kind == INF_CONCAT;
            if (e->rank != rank || !inf_group_ok(h, e->group) ||
                !((request && h->request[e->group]) || (batch && h->batch[e->group])))
                continue;
            XP_TRY(values_of_event(eye, e->at, err));
            while (values_next(eye, &v))
                if (!seen[v.which].type)
                    seen[v.which] = v;
            if (request && seen[TASK_SIZE].type)
                VEC(h->requests, struct inference_request)
            [h->request[e->group] - 1].size = (int32_t)value_i64(&seen[TASK_SIZE]);
            if (!batch || !seen[PADDING].type || !seen[PADDED_SIZE].type)
                continue;
            struct inference_batch *b =
                &VEC(h->batches, struct inference_batch)[h->batch[e->group] - 1];
            b->padding = (int32_t)value_i64(&seen[PADDING]);
            b->size = (int32_t)value_i64(&seen[PADDED_SIZE]);
        }
    return XP_OK;
}

/* A batch has the model of its first request, and waits from that of them that began first. */
static bool join_batches(struct inf_host *h)
{
    struct inference_request *requests = h->requests.p;
    struct inference_batch *batches = h->batches.p;
    bool *seen = xp_arena_zalloc(h->inf->a, h->batches.n + 1);
    const struct inference_request **first =
        xp_arena_zalloc(h->inf->a, (h->batches.n + 1) * sizeof *first);
    if (!seen || !first)
        return false;
    for (uint32_t i = 0; i < h->d->nrelations; i++) {
        const struct derive_relation *r = &h->d->relations[i];
        if (!inf_group_ok(h, r->child) || !h->batch[r->child] || !inf_group_ok(h, r->parent))
            continue;
        uint32_t b = h->batch[r->child] - 1, q = h->request[r->parent];
        bool smallest = !seen[b]; /* relations come by parent */
        seen[b] = true;
        if (!q)
            continue;
        if (smallest)
            batches[b].model = requests[q - 1].model;
        if (!first[b] || requests[q - 1].begin_ps < first[b]->begin_ps)
            first[b] = &requests[q - 1];
        batches[b].delay_ps = batches[b].begin_ps - first[b]->begin_ps;
    }
    return true;
}

/* A request waits until its first batch begins, and is not over before that ends. */
static void join_requests(struct inf_host *h)
{
    struct inference_batch *batches = h->batches.p;
    for (size_t i = 0; i < h->requests.n; i++) {
        struct inference_request *r = &VEC(h->requests, struct inference_request)[i];
        for (uint32_t k = 0; k < r->nbatches; k++) {
            if (!inf_group_ok(h, r->batches[k]) || !h->batch[r->batches[k]])
                continue;
            const struct inference_batch *b = &batches[h->batch[r->batches[k]] - 1];
            r->delay_ps = b->begin_ps - r->begin_ps;
            if (r->end_ps < b->end_ps)
                r->end_ps = b->end_ps;
            break;
        }
    }
}

/* --- a host --- */

static bool hand_over(struct inf_host *h)
{
    for (size_t i = 0; i < h->requests.n; i++) {
        const struct inference_request *r = &VEC(h->requests, struct inference_request)[i];
        if (!inf_request_counts(h, r))
            continue;
        struct inference_request *to = vec_push(&h->inf->requests, sizeof *to);
        if (!to)
            return false;
        *to = *r;
    }
    for (size_t i = 0; i < h->batches.n; i++) {
        if (!inf_in_range(h, VEC(h->batches, struct inference_batch)[i].begin_ps))
            continue;
        struct inference_batch *to = vec_push(&h->inf->batches, sizeof *to);
        if (!to)
            return false;
        *to = VEC(h->batches, struct inference_batch)[i];
    }
    return true;
}

static enum xp_status read_host(struct inf_host *h, struct xp_error *err)
{
    struct values_eye eye;
    if (!groups_init(h))
        return inference_busy(err);
    XP_TRY(inference_events(h, err));
    values_open(&eye, h->part, h->plane, names, NAMES, h->inf->a);
    XP_TRY(read_models(h, &eye, err));
    if (!add_batches(h) || !find_requests(h))
        return inference_busy(err);
    XP_TRY(find_spans(h));
    note_moments(h);
    XP_TRY(read_sizes(h, &eye, err));
    join_requests(h);
    if (!join_batches(h))
        return inference_busy(err);
    XP_TRY(inference_breakdown(h, err));
    XP_TRY(inference_phases(h, err));
    XP_TRY(inference_tensors(h, err));
    XP_TRY(inference_params(h, err));
    return hand_over(h) ? XP_OK : inference_busy(err);
}

/* Whether there may be a request or a batch: only then are groups needed. */
static bool worth_it(const struct inf_host *h)
{
    static const char *const begins[] = {
        "BatchingSessionRun", "TfrtModelRun", "ServingModelRun",           "SessionRun",
        "RunGraph",           "ProcessBatch", "OrbaxServing::ProcessBatch"};
    for (uint32_t i = 0; i < h->plane->nevmeta; i++) {
        struct xp_span name = part_str(h->part, h->plane->evmeta[i].name);
        for (size_t k = 0; k < sizeof begins / sizeof begins[0]; k++)
            if (xp_span_eq(name, xp_span_str(begins[k])))
                return true;
        if (xp_span_starts(name, XP_SPAN_LIT("ModelServerRequest_")))
            return true;
    }
    for (uint32_t i = 0; i < h->plane->nlines; i++) {
        struct side_cursor c;
        const struct side *side = h->part->lines[h->plane->first_line + i].side;
        side_open(&c, side);
        while (side && side_next(&c)) {
            const struct side_stat *s = side_get(&c, STAT_ROOT_LEVEL);
            if (s && s->type == SIDE_I64 && (int64_t)s->num == -1)
                return true;
        }
    }
    return false;
}

enum xp_status inference_read(struct inference *inf, struct part *p, uint32_t host, struct out *out,
                              struct xp_error *err)
{
    struct inf_host h = {.inf = inf, .part = p, .host = host, .out = out, .first_ran = inf->ran.n};
    idmap_init(&h.ran_by, inf->a);
    if (p->range) {
        h.ranged = true;
        h.t0_ps = p->range->t0_ps;
        h.t1_ps = p->range->t1_ps;
        h.part = p = p->range->whole;
    }
    h.plane = profile_plane(p, "/host:CPU");
    if (!h.plane || !worth_it(&h))
        return XP_OK;
    enum xp_status st = derive_groups_get(p, &h.d, err);
    if (st == XP_OK)
        st = read_host(&h, err);
    vec_free(&h.events);
    vec_free(&h.spans);
    vec_free(&h.runs);
    vec_free(&h.requests);
    vec_free(&h.batches);
    return st;
}

static int by_span(int64_t xb, int64_t xe, int64_t yb, int64_t ye)
{
    uint64_t x = (uint64_t)xe - (uint64_t)xb, y = (uint64_t)ye - (uint64_t)yb;
    if (x != y)
        return x < y ? -1 : 1;
    return (xb > yb) - (xb < yb);
}

static int request_order(const void *a, const void *b)
{
    const struct inference_request *x = a, *y = b;
    int c = by_span(x->begin_ps, x->end_ps, y->begin_ps, y->end_ps);
    c = c ? c : (x->host > y->host) - (x->host < y->host);
    return c ? c : (x->group > y->group) - (x->group < y->group);
}

static int batch_order(const void *a, const void *b)
{
    const struct inference_batch *x = a, *y = b;
    int c = by_span(x->begin_ps, x->end_ps, y->begin_ps, y->end_ps);
    c = c ? c : (x->host > y->host) - (x->host < y->host);
    return c ? c : (x->group > y->group) - (x->group < y->group);
}

void inference_sort(struct inference *inf)
{
    if (inf->requests.n)
        qsort(inf->requests.p, inf->requests.n, sizeof(struct inference_request), request_order);
    if (inf->batches.n)
        qsort(inf->batches.p, inf->batches.n, sizeof(struct inference_batch), batch_order);
}
