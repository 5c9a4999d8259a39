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

/* An event that was taken out by itself. */
struct walk_event {
    struct plane_event ev;
    uint64_t ord;
    uint32_t lane;
};

struct plane_walk {
    struct walk_lane **heap;
    uint32_t nheap, nlanes;
    struct walk_lane *lanes;
    struct vec batch; /* struct walk_event */
    size_t at;
    bool failed;
    struct lane_event one; /* a run of one */
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
    w->nlanes = (uint32_t)nlanes;
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

static inline void take_top(struct plane_walk *w, struct walk_event *ev)
{
    struct walk_lane *l = w->heap[0];
    const struct lane_event *e = &l->ev[l->i++];
    *ev = (struct walk_event){{l->begin_ps, l->base_ps + e->end_ps, e->at, e->name, l->line},
                              e->ord,
                              (uint32_t)(l - w->lanes)};
    if (!lane_fill(l)) {
        w->heap[0] = w->heap[--w->nheap];
        if (!w->nheap)
            return;
    }
    sift(w, 0);
}

static int shorter(const void *a, const void *b)
{
    const struct plane_event *x = &((const struct walk_event *)a)->ev;
    const struct plane_event *y = &((const struct walk_event *)b)->ev;
    if (x->end_ps != y->end_ps)
        return x->end_ps < y->end_ps ? -1 : 1;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* --- XProf's own order --- */

/* Where several events share begin and duration, XProf takes them as std::sort leaves them. Host
 * offloads are paired in that order, so that it has to be the same: this is the introspective sort
 * of libstdc++, whose result is a function of the order in the file. */
#define SORT_SMALL 16

static inline bool less(const struct walk_event *a, const struct walk_event *b)
{
    if (a->ev.begin_ps != b->ev.begin_ps)
        return a->ev.begin_ps < b->ev.begin_ps;
    return a->ev.end_ps - a->ev.begin_ps < b->ev.end_ps - b->ev.begin_ps;
}

static inline void swap(struct walk_event *a, struct walk_event *b)
{
    struct walk_event t = *a;
    *a = *b;
    *b = t;
}

static void median_to(struct walk_event *to, struct walk_event *a, struct walk_event *b,
                      struct walk_event *c)
{
    struct walk_event *lo = less(a, b) ? a : b, *hi = less(a, b) ? b : a;
    if (less(hi, c))
        swap(to, hi);
    else if (less(lo, c))
        swap(to, c);
    else
        swap(to, lo);
}

static struct walk_event *partition(struct walk_event *first, struct walk_event *last,
                                    const struct walk_event *pivot)
{
    for (;;) {
        while (less(first, pivot))
            first++;
        last--;
        while (less(pivot, last))
            last--;
        if (first >= last)
            return first;
        swap(first++, last);
    }
}

struct sort_range {
    struct walk_event *first, *last;
    int depth;
};

static bool sort_parts(struct walk_event *ev, size_t n)
{
    struct vec todo = {0};
    int depth = 0;
    for (size_t k = n; k > 1; k >>= 1)
        depth += 2;
    struct sort_range *r = vec_push(&todo, sizeof *r);
    bool ok = r;
    if (r)
        *r = (struct sort_range){ev, ev + n, depth};
    while (ok && todo.n) {
        struct sort_range x = VEC(todo, struct sort_range)[--todo.n];
        while (ok && x.last - x.first > SORT_SMALL) {
            if (!x.depth--) {
                qsort(x.first, (size_t)(x.last - x.first), sizeof *ev, shorter);
                break;
            }
            struct walk_event *mid = x.first + (x.last - x.first) / 2;
            median_to(x.first, x.first + 1, mid, x.last - 1);
            struct walk_event *cut = partition(x.first + 1, x.last, x.first);
            r = vec_push(&todo, sizeof *r);
            ok = r;
            if (r)
                *r = (struct sort_range){cut, x.last, x.depth};
            x.last = cut;
        }
    }
    vec_free(&todo);
    return ok;
}

static void sort_insert(struct walk_event *ev, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct walk_event e = ev[i];
        size_t k = i;
        for (; k > 0 && less(&e, &ev[k - 1]); k--)
            ev[k] = ev[k - 1];
        ev[k] = e;
    }
}

static int file_order(const void *a, const void *b)
{
    const struct plane_event *x = &((const struct walk_event *)a)->ev;
    const struct plane_event *y = &((const struct walk_event *)b)->ev;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

bool plane_walk_like_xprof(struct plane_walk *w)
{
    struct vec all = {0};
    while (w->nheap) {
        struct walk_event *e = vec_push(&all, sizeof *e);
        if (!e) {
            vec_free(&all);
            return false;
        }
        take_top(w, e);
    }
    if (all.n) {
        qsort(all.p, all.n, sizeof(struct walk_event), file_order);
        if (!sort_parts(all.p, all.n)) {
            vec_free(&all);
            return false;
        }
        sort_insert(all.p, all.n);
    }
    vec_free(&w->batch);
    w->batch = all;
    w->at = 0;
    return true;
}

/* Events that begin together are taken out together. */
static bool next(struct plane_walk *w, struct walk_event *ev)
{
    if (w->at < w->batch.n) {
        *ev = VEC(w->batch, struct walk_event)[w->at++];
        return true;
    }
    if (!w->nheap)
        return false;
    take_top(w, ev);
    if (!w->nheap || w->heap[0]->begin_ps != ev->ev.begin_ps)
        return true;
    w->batch.n = w->at = 0;
    struct walk_event *first = vec_push(&w->batch, sizeof *first);
    if (!first) {
        w->failed = true;
        return false;
    }
    *first = *ev;
    while (w->nheap && w->heap[0]->begin_ps == first->ev.begin_ps) {
        struct walk_event *e = vec_push(&w->batch, sizeof *e);
        if (!e) {
            w->failed = true;
            return false;
        }
        take_top(w, e);
        first = w->batch.p;
    }
    qsort(w->batch.p, w->batch.n, sizeof *ev, shorter);
    *ev = VEC(w->batch, struct walk_event)[w->at++];
    return true;
}

bool plane_walk_next(struct plane_walk *w, struct plane_event *ev)
{
    struct walk_event e;
    if (!next(w, &e))
        return false;
    *ev = e.ev;
    return true;
}

/* How many of the top lane's unpacked events come before all others, and have begins of their own.
 * The last one's neighbour is not known. */
static uint32_t alone(const struct plane_walk *w)
{
    const struct walk_lane *l = w->heap[0];
    int64_t limit = INT64_MAX;
    for (uint32_t k = 1; k < w->nheap && k < 3; k++)
        if (w->heap[k]->begin_ps < limit)
            limit = w->heap[k]->begin_ps;
    uint32_t i = l->i;
    while (i + 1 < l->n && l->base_ps + l->ev[i].begin_ps < limit &&
           l->ev[i].begin_ps != l->ev[i + 1].begin_ps)
        i++;
    return i - l->i;
}

bool plane_walk_run(struct plane_walk *w, struct plane_run *run)
{
    uint32_t n = w->at == w->batch.n && w->nheap ? alone(w) : 0;
    if (n) {
        struct walk_lane *l = w->heap[0];
        *run = (struct plane_run){l->ev + l->i, n, l->line, (uint32_t)(l - w->lanes), l->base_ps};
        l->i += n;
        l->begin_ps = l->base_ps + l->ev[l->i].begin_ps;
        sift(w, 0);
        return true;
    }
    struct walk_event e;
    if (!next(w, &e))
        return false;
    int64_t base_ps = w->lanes[e.lane].base_ps;
    w->one = (struct lane_event){.begin_ps = e.ev.begin_ps - base_ps,
                                 .end_ps = e.ev.end_ps - base_ps,
                                 .name = e.ev.name,
                                 .at = e.ev.at,
                                 .ord = e.ord};
    *run = (struct plane_run){&w->one, 1, e.ev.line, e.lane, base_ps};
    return true;
}

const struct lane_source *plane_walk_sources(const struct plane_walk *w, struct xp_bump *out)
{
    struct lane_source *s = xp_bump_alloc(out, (w->nlanes + 1) * sizeof *s, 16);
    for (uint32_t i = 0; s && i < w->nlanes; i++)
        s[i] = (struct lane_source){w->lanes[i].cur.lane, w->lanes[i].base_ps,
                                    lane_id(w->lanes[i].cur.lane)};
    return s;
}

bool plane_walk_failed(const struct plane_walk *w)
{
    return w->failed;
}
