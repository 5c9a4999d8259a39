/* What the time of requests and batches was spent on. */
#include <stdlib.h>

#include "shard/tools/inference_int.h"

/* --- where spans come from --- */

static bool add_span(struct inf_host *h, int64_t group, int64_t begin, int64_t end,
                     enum inference_part part)
{
    if (!inf_group_ok(h, group))
        return true;
    struct inf_span *s = vec_push(&h->spans, sizeof *s);
    if (s)
        *s = (struct inf_span){group, begin, end, (uint8_t)part};
    return s != NULL;
}

static int by_id(const void *a, const void *b)
{
    const struct inf_event *x = *(const struct inf_event *const *)a,
                           *y = *(const struct inf_event *const *)b;
    if (x->consumer != y->consumer)
        return x->consumer < y->consumer ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static size_t pick(const struct inf_host *h, uint8_t kind, const struct inf_event **out)
{
    size_t n = 0;
    for (size_t i = 0; i < h->events.n; i++) {
        const struct inf_event *e = &VEC(h->events, struct inf_event)[i];
        if (e->kind == kind && e->has_consumer && e->group != DERIVE_NO_GROUP)
            out[n++] = e;
    }
    if (n)
        qsort(out, n, sizeof *out, by_id);
    return n;
}

/* Transfers that are two events: the last start of an id, and the last end after it. */
static bool add_pairs(struct inf_host *h, uint8_t issue, uint8_t done, enum inference_part part)
{
    size_t most = h->events.n + 1;
    const struct inf_event **starts = xp_arena_alloc(h->inf->a, 2 * most * sizeof *starts);
    if (!starts)
        return false;
    const struct inf_event **ends = starts + most;
    size_t nstarts = pick(h, issue, starts), nends = pick(h, done, ends);
    for (size_t i = 0, k = 0; i < nstarts; i++) {
        const struct inf_event *end = NULL;
        if (i + 1 < nstarts && starts[i + 1]->consumer == starts[i]->consumer)
            continue;
        while (k < nends && ends[k]->consumer < starts[i]->consumer)
            k++;
        for (; k < nends && ends[k]->consumer == starts[i]->consumer; k++)
            if (starts[i]->begin_ps < ends[k]->begin_ps)
                end = ends[k];
        if (end && !add_span(h, starts[i]->group, starts[i]->begin_ps, end->end_ps, part))
            return false;
    }
    return true;
}

static bool add_transfers(struct inf_host *h)
{
    for (size_t i = 0; i < h->events.n; i++) {
        const struct inf_event *e = &VEC(h->events, struct inf_event)[i];
        bool to_host = e->kind == INF_TO_HOST;
        if ((to_host || e->kind == INF_TO_DEVICE) &&
            !add_span(h, e->group, e->begin_ps, e->end_ps,
                      to_host ? INFERENCE_TO_HOST : INFERENCE_TO_DEVICE))
            return false;
    }
    return add_pairs(h, INF_TO_DEVICE_ISSUE, INF_TO_DEVICE_DONE, INFERENCE_TO_DEVICE) &&
           add_pairs(h, INF_TO_HOST_ISSUE, INF_TO_HOST_DONE, INFERENCE_TO_HOST);
}

static bool add_modules(struct inf_host *h)
{
    for (uint32_t i = 0; i < h->d->nlines; i++) {
        const struct derive_line *dl = &h->d->lines[i];
        struct derive_eye eye;
        if (dl->line->derived || !h->d->planes[dl->plane].tensor_core ||
            !xp_span_eq(part_str(h->part, dl->line->name), XP_SPAN_LIT("XLA Modules")))
            continue;
        derive_look(&eye, h->d, dl);
        for (uint32_t k = 0; k < dl->line->nlanes; k++) {
            struct lane_cursor c;
            struct lane_event ev;
            lane_seek(&c, dl->line->lanes[k], INT64_MIN);
            while (lane_next(&c, &ev)) {
                struct derive_event de = {dl->line->base_ps + ev.begin_ps,
                                          dl->line->base_ps + ev.end_ps, ev.at, ev.name};
                int64_t group = derive_group(&eye, &de);
                if (!add_span(h, group, de.begin_ps, de.end_ps, INFERENCE_COMPUTE) ||
                    !inference_add_run(h, dl, &de, group))
                    return false;
            }
        }
    }
    return true;
}

static int by_group(const void *a, const void *b)
{
    const struct inf_span *x = a, *y = b;
    return (x->group > y->group) - (x->group < y->group);
}

static void index_spans(struct inf_host *h)
{
    const struct inf_span *s = h->spans.p;
    if (h->spans.n)
        qsort(h->spans.p, h->spans.n, sizeof *s, by_group);
    for (uint32_t i = 0; i < h->spans.n; i++) {
        struct inf_group *g = &h->groups[s[i].group];
        if (!g->nspans++)
            g->first_span = i;
    }
}

/* --- the sweep --- */

static int edge_order(const void *a, const void *b)
{
    const struct inf_edge *x = a, *y = b;
    if (x->ps != y->ps)
        return x->ps < y->ps ? -1 : 1;
    if (x->begins != y->begins)
        return x->begins ? 1 : -1;
    return (int)y->part - (int)x->part;
}

bool inference_add_edges(struct vec *edges, int64_t begin, int64_t end, uint8_t part)
{
    struct inf_edge *e = vec_push(edges, sizeof *e);
    if (!e)
        return false;
    *e = (struct inf_edge){begin, part, true};
    if (!(e = vec_push(edges, sizeof *e)))
        return false;
    *e = (struct inf_edge){end > begin ? end : begin, part, false};
    return true;
}

void inference_sweep(struct vec *edges, uint64_t part_ps[INFERENCE_PARTS])
{
    struct inf_edge *e = edges->p;
    uint64_t open[INFERENCE_PARTS] = {0};
    if (edges->n)
        qsort(e, edges->n, sizeof *e, edge_order);
    for (size_t i = 0; i + 1 < edges->n; i++) {
        int top = INFERENCE_PARTS - 1;
        open[e[i].part] += e[i].begins ? 1 : UINT64_MAX;
        while (top > 0 && !open[top])
            top--;
        part_ps[top] += (uint64_t)e[i + 1].ps - (uint64_t)e[i].ps;
    }
}

/* --- requests --- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a == INF_NONE || (b != INF_NONE && b < a) ? b : a;
}

/* The moments of a request, from its own group and those it led to. */
struct moments {
    int64_t schedule, concat, execute, complete;
    int64_t computed; /* the last end of a program */
};

static bool take_group(struct inf_host *h, int64_t group, struct moments *m, struct vec *edges)
{
    if (!inf_group_ok(h, group))
        return true;
    const struct inf_group *g = &h->groups[group];
    const struct inf_span *s = h->spans.p;
    for (uint32_t i = g->first_span; i < g->first_span + g->nspans; i++) {
        if (s[i].part == INFERENCE_COMPUTE && s[i].end_ps > m->computed)
            m->computed = s[i].end_ps;
        if (!inference_add_edges(edges, s[i].begin_ps, s[i].end_ps, s[i].part))
            return false;
    }
    m->execute = earlier(m->execute, g->execute);
    m->concat = earlier(m->concat, g->concat);
    if (g->complete > m->complete)
        m->complete = g->complete;
    if (m->schedule == INF_NONE)
        m->schedule = g->schedule;
    return g->execute == INF_NONE || g->launch == INF_NONE ||
           inference_add_edges(edges, g->execute, g->launch, INFERENCE_RUNTIME);
}

static bool break_down(struct inf_host *h, struct inference_request *r, struct vec *edges)
{
    struct moments m = {INF_NONE, INF_NONE, INF_NONE, INF_NONE, INF_NONE};
    edges->n = 0;
    bool ok = take_group(h, r->group, &m, edges);
    for (uint32_t i = 0; ok && i < r->nbatches; i++)
        ok = take_group(h, r->batches[i], &m, edges);
    int64_t after = m.complete != INF_NONE ? m.complete : m.computed;
    if (m.execute != INF_NONE)
        ok = ok && inference_add_edges(edges, r->begin_ps, m.execute, INFERENCE_PREPROCESS);
    if (after != INF_NONE)
        ok = ok && inference_add_edges(edges, after, r->end_ps, INFERENCE_POSTPROCESS);
    if (m.schedule != INF_NONE && m.concat != INF_NONE)
        ok = ok && inference_add_edges(edges, m.schedule, m.concat, INFERENCE_FORMATION);
    if (ok)
        inference_sweep(edges, r->part_ps);
    return ok;
}

static bool break_down_batch(struct inf_host *h, struct inference_batch *b, struct vec *edges)
{
    uint64_t part_ps[INFERENCE_PARTS] = {0};
    edges->n = 0;
    const struct inf_group *g = &h->groups[b->group];
    const struct inf_span *s = h->spans.p;
    for (uint32_t i = g->first_span; i < g->first_span + g->nspans; i++)
        if (!inference_add_edges(edges, s[i].begin_ps, s[i].end_ps, s[i].part))
            return false;
    inference_sweep(edges, part_ps);
    b->device_ps = part_ps[INFERENCE_COMPUTE];
    return true;
}

enum xp_status inference_breakdown(struct inf_host *h, struct xp_error *err)
{
    struct vec edges = {0};
    bool ok = add_transfers(h) && add_modules(h);
    if (ok)
        index_spans(h);
    for (size_t i = 0; ok && i < h->requests.n; i++)
        ok = break_down(h, &VEC(h->requests, struct inference_request)[i], &edges);
    for (size_t i = 0; ok && i < h->batches.n; i++)
        ok = break_down_batch(h, &VEC(h->batches, struct inference_batch)[i], &edges);
    vec_free(&edges);
    return ok ? XP_OK : inference_busy(err);
}
