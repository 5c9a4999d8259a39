/* Tensors that requests and batches laid out for the device: by pattern, how long that took. */
#include <stdlib.h>

#include "shard/tools/inference_int.h"

enum { SHAPE, LAYOUT, NAMES };
static const char *const names[NAMES] = {"shape", "layout"};

static int by_group(const void *a, const void *b)
{
    const struct inf_event *x = *(const struct inf_event *const *)a,
                           *y = *(const struct inf_event *const *)b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static int by_text(const void *a, const void *b)
{
    return xp_span_cmp(*(const struct xp_span *)a, *(const struct xp_span *)b);
}

static struct xp_span joined(struct xp_arena *a, struct xp_span x, const char *glue,
                             struct xp_span y)
{
    size_t g = strlen(glue);
    uint8_t *p = xp_arena_alloc(a, x.n + g + y.n + 1);
    if (!p)
        return (struct xp_span){0};
    memcpy(p, x.n ? x.p : p, x.n);
    memcpy(p + x.n, glue, g);
    memcpy(p + x.n + g, y.n ? y.p : p, y.n);
    return xp_span_of(p, x.n + g + y.n);
}

/* "name shape layout"; p == NULL: memory is out; empty: the event does not tell. */
static enum xp_status describe(struct inf_host *h, struct values_eye *eye,
                               const struct inf_event *e, struct xp_span *text,
                               struct xp_error *err)
{
    struct value v;
    bool has[NAMES] = {false};
    struct xp_span part[NAMES] = {{0}};
    *text = (struct xp_span){(const uint8_t *)"", 0};
    XP_TRY(values_of_event(eye, e->at, err));
    while (values_next(eye, &v)) {
        if (has[v.which])
            continue;
        has[v.which] = true;
        part[v.which] = v.type == VALUE_TEXT ? v.text : (struct xp_span){0};
    }
    if (!has[SHAPE] || !has[LAYOUT])
        return XP_OK;
    struct xp_span name = part_str(h->part, h->plane->evmeta[e->name].name);
    *text = joined(h->inf->a, joined(h->inf->a, name, " ", part[SHAPE]), " ", part[LAYOUT]);
    return text->p ? XP_OK : inference_busy(err);
}

static bool owner_of(const struct inf_host *h, int64_t group, int32_t *model)
{
    if (h->request[group]) {
        const struct inference_request *r =
            &VEC(h->requests, struct inference_request)[h->request[group] - 1];
        *model = r->model;
        return inf_request_counts(h, r);
    }
    const struct inference_batch *b = &VEC(h->batches, struct inference_batch)[h->batch[group] - 1];
    *model = b->model;
    return inf_in_range(h, b->begin_ps);
}

/* The events of one group: a pattern is all of theirs together. */
static enum xp_status add_group(struct inf_host *h, struct values_eye *eye,
                                const struct inf_event **ev, size_t n, struct xp_error *err)
{
    struct xp_arena *a = h->inf->a;
    struct xp_span *parts = xp_arena_alloc(a, n * sizeof *parts);
    struct inference_tensor t = {0};
    if (!parts)
        return inference_busy(err);
    for (size_t i = 0; i < n; i++) {
        XP_TRY(describe(h, eye, ev[i], &parts[i], err));
        if (!parts[i].n)
            return XP_OK;
        t.ps += (uint64_t)ev[i]->end_ps - (uint64_t)ev[i]->begin_ps;
    }
    qsort(parts, n, sizeof *parts, by_text);
    struct xp_span all = parts[0];
    for (size_t i = 1; i < n; i++)
        all = joined(a, all, "<br>", parts[i]);
    t.pattern = xp_strpool_add(&h->inf->patterns, all);
    if (!all.p || t.pattern == XP_STRPOOL_FULL)
        return inference_busy(err);
    if (!owner_of(h, ev[0]->group, &t.model))
        return XP_OK;
    struct inference_tensor *to = vec_push(&h->inf->tensors, sizeof *to);
    if (!to)
        return inference_busy(err);
    *to = t;
    return XP_OK;
}

enum xp_status inference_tensors(struct inf_host *h, struct xp_error *err)
{
    const struct inf_event **ev = xp_arena_alloc(h->inf->a, (h->events.n + 1) * sizeof *ev);
    struct values_eye eye;
    size_t n = 0;
    if (!ev)
        return inference_busy(err);
    for (size_t i = 0; i < h->events.n; i++) {
        const struct inf_event *e = &VEC(h->events, struct inf_event)[i];
        if (e->kind == INF_TENSOR && inf_group_ok(h, e->group) &&
            (h->request[e->group] || h->batch[e->group]))
            ev[n++] = e;
    }
    if (!n)
        return XP_OK;
    qsort(ev, n, sizeof *ev, by_group);
    values_open(&eye, h->part, h->plane, names, NAMES, h->inf->a);
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i; k < n && ev[k]->group == ev[i]->group; k++)
            ;
        if (k - i > INFERENCE_TENSORS_MAX)
            continue;
        XP_TRY(add_group(h, &eye, ev + i, k - i, err));
    }
    return XP_OK;
}
