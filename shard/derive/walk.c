#include "shard/derive/derive_int.h"

/* A heap of lanes by the begin of their next event; events of one begin are taken out together
 * and sorted, since lanes give the longer one first and here the shorter one comes first. */

struct walk_lane {
    int64_t begin_ps; /* of the next event; session time */
    struct lane_cursor cur;
    struct lane_event ev[LANE_BLOCK];
    uint32_t i, n;
    int64_t base_ps;
    uint32_t line;
};

struct plane_walk {
    struct walk_lane **heap;
    uint32_t nheap;
    struct walk_lane *lanes;
    struct vec batch; /* struct plane_event */
    size_t at;
    bool failed;
};

static bool lane_fill(struct walk_lane *l)
{
    if (l->i < l->n || (l->i = 0, l->n = (uint32_t)lane_next_block(&l->cur, l->ev))) {
        l->begin_ps = l->base_ps + l->ev[l->i].begin_ps;
        return true;
    }
    return false;
}

static void sift(struct plane_walk *w, uint32_t i)
{
    struct walk_lane *top = w->heap[i];
    for (uint32_t k; (k = 2 * i + 1) < w->nheap; i = k) {
        if (k + 1 < w->nheap && w->heap[k + 1]->begin_ps < w->heap[k]->begin_ps)
            k++;
        if (w->heap[k]->begin_ps >= top->begin_ps)
            break;
        w->heap[i] = w->heap[k];
    }
    w->heap[i] = top;
}

struct plane_walk *plane_walk_new(const struct derive_line *lines, uint32_t first, uint32_t n,
                                  bool (*take)(const struct derive_line *l, const void *ctx),
                                  const void *ctx)
{
    size_t nlanes = 0;
    for (uint32_t i = first; i < first + n; i++)
        if (take(&lines[i], ctx))
            nlanes += lines[i].line->nlanes;
    struct plane_walk *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->lanes = calloc(nlanes + 1, sizeof *w->lanes);
    w->heap = calloc(nlanes + 1, sizeof *w->heap);
    if (!w->lanes || !w->heap) {
        plane_walk_free(w);
        return NULL;
    }
    struct walk_lane *l = w->lanes;
    for (uint32_t i = first; i < first + n; i++) {
        if (!take(&lines[i], ctx))
            continue;
        for (uint32_t k = 0; k < lines[i].line->nlanes; k++, l++) {
            lane_seek_ord(&l->cur, lines[i].line->lanes[k], 0);
            l->base_ps = lines[i].line->base_ps;
            l->line = i;
            if (lane_fill(l))
                w->heap[w->nheap++] = l;
        }
    }
    for (uint32_t i = w->nheap / 2; i-- > 0;)
        sift(w, i);
    return w;
}

void plane_walk_free(struct plane_walk *w)
{
    if (!w)
        return;
    vec_free(&w->batch);
    free(w->lanes);
    free(w->heap);
    free(w);
}

static inline void take_top(struct plane_walk *w, struct plane_event *ev)
{
    struct walk_lane *l = w->heap[0];
    const struct lane_event *e = &l->ev[l->i++];
    *ev = (struct plane_event){l->begin_ps, l->base_ps + e->end_ps, e->at, e->name, l->line};
    if (!lane_fill(l)) {
        w->heap[0] = w->heap[--w->nheap];
        if (!w->nheap)
            return;
    }
    sift(w, 0);
}

static int shorter(const void *a, const void *b)
{
    const struct plane_event *x = a, *y = b;
    if (x->end_ps != y->end_ps)
        return x->end_ps < y->end_ps ? -1 : 1;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

bool plane_walk_next(struct plane_walk *w, struct plane_event *ev)
{
    if (w->at < w->batch.n) {
        *ev = VEC(w->batch, struct plane_event)[w->at++];
        return true;
    }
    if (!w->nheap)
        return false;
    take_top(w, ev);
    if (!w->nheap || w->heap[0]->begin_ps != ev->begin_ps)
        return true;
    w->batch.n = w->at = 0;
    struct plane_event *first = vec_push(&w->batch, sizeof *first);
    if (!first) {
        w->failed = true;
        return false;
    }
    *first = *ev;
    while (w->nheap && w->heap[0]->begin_ps == ev->begin_ps) {
        struct plane_event *e = vec_push(&w->batch, sizeof *e);
        if (!e) {
            w->failed = true;
            return false;
        }
        take_top(w, e);
    }
    qsort(w->batch.p, w->batch.n, sizeof *ev, shorter);
    *ev = VEC(w->batch, struct plane_event)[w->at++];
    return true;
}

bool plane_walk_failed(const struct plane_walk *w)
{
    return w->failed;
}
