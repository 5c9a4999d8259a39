#include <stdlib.h>

#include "shard/stats/op_tpu_int.h"

bool tpu_is_ops(struct xp_span line)
{
    return xp_span_eq(line, XP_SPAN_LIT("XLA Ops")) ||
           xp_span_eq(line, XP_SPAN_LIT("Sparse Core Ops"));
}

bool tpu_is_steps(struct xp_span line)
{
    return xp_span_eq(line, XP_SPAN_LIT("Steps")) ||
           xp_span_eq(line, XP_SPAN_LIT("Sparse Core Steps"));
}

bool tpu_is_modules(struct xp_span line)
{
    return xp_span_eq(line, XP_SPAN_LIT("XLA Modules")) ||
           xp_span_eq(line, XP_SPAN_LIT("Sparse Core Modules"));
}

/* --- lines whose events do not come in file order --- */

static int by_at(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool number_events(struct tpu_events *it, const struct part_line *line)
{
    struct lane_event ev;
    uint64_t n = 0;
    it->at = malloc((line->nevents + 1) * sizeof *it->at);
    it->shift = malloc((line->nevents + 1) * sizeof *it->shift);
    it->longer = malloc((line->nevents + 1) * sizeof *it->longer);
    if (!it->at || !it->shift || !it->longer)
        return false;
    for (uint32_t i = 0; i < line->nlanes; i++) {
        struct lane_cursor c;
        lane_seek_ord(&c, line->lanes[i], 0);
        while (n < line->nevents && lane_next(&c, &ev))
            it->at[n++] = ev.at;
    }
    qsort(it->at, n, sizeof *it->at, by_at);
    for (uint64_t i = 0; i < n; i++)
        device_next(&it->device, &it->shift[i], &it->longer[i]);
    it->n = n;
    return true;
}

static void device_of(struct tpu_events *it, uint64_t at, uint64_t *shift, uint64_t *longer)
{
    if (!it->at) {
        device_next(&it->device, shift, longer);
        return;
    }
    const uint64_t *found = bsearch(&at, it->at, it->n, sizeof *it->at, by_at);
    uint64_t i = found ? (uint64_t)(found - it->at) : 0;
    *shift = it->n ? it->shift[i] : 0;
    *longer = it->n ? it->longer[i] : 0;
}

bool tpu_events_open(struct tpu_events *it, const struct part_line *line, struct xp_arena *a)
{
    *it = (struct tpu_events){.base_ps = line->base_ps};
    device_open(&it->device, line->device, line->base_ps);
    side_open(&it->side, line->side);
    if (line_seek(&it->line, line, INT64_MIN, a) != XP_OK)
        return false;
    return line->sorted || !line->device || !line->device->first || number_events(it, line);
}

bool tpu_events_next(struct tpu_events *it, struct tpu_event *ev)
{
    struct lane_event e;
    uint64_t shift, longer;
    if (!line_next(&it->line, &e, NULL))
        return false;
    device_of(it, e.at, &shift, &longer);
    it->has_stats = it->side.side && side_find(&it->side, e.at);
    *ev = (struct tpu_event){it->base_ps + e.begin_ps,
                             it->base_ps + e.end_ps,
                             (uint64_t)e.begin_ps + shift,
                             (uint64_t)e.end_ps + shift + longer,
                             e.at,
                             e.name};
    return true;
}

void tpu_events_close(struct tpu_events *it)
{
    free(it->at);
    free(it->shift);
    free(it->longer);
    it->at = it->shift = it->longer = NULL;
}

/* --- busy time --- */

void tpu_union_close(struct tpu_union *u)
{
    if (!u->open)
        return;
    u->open = false;
    u->busy_ps += (uint64_t)u->end_ps - (uint64_t)u->begin_ps;
    if (!u->spans)
        return;
    struct tpu_span *s = vec_push(u->spans, sizeof *s);
    if (s)
        *s = (struct tpu_span){u->begin_ps, u->end_ps};
    else
        u->failed = true;
}

struct duty_frame {
    int64_t from_ps, end_ps; /* what is left of the event */
    bool busy, sure;
};

static inline void duty_take(struct tpu_duty *d, struct duty_frame *f, int64_t to_ps)
{
    if (to_ps <= f->from_ps)
        return;
    if (f->busy)
        tpu_union_add(&d->busy, f->from_ps, to_ps);
    if (f->sure)
        tpu_union_add(&d->sure, f->from_ps, to_ps);
    f->from_ps = to_ps;
}

static inline void duty_pop(struct tpu_duty *d)
{
    struct duty_frame *top = &VEC(d->stack, struct duty_frame)[--d->stack.n];
    duty_take(d, top, top->end_ps);
    if (d->stack.n && top[-1].from_ps < top->from_ps)
        top[-1].from_ps = top->from_ps;
}

void tpu_duty_event(struct tpu_duty *d, int64_t begin_ps, int64_t end_ps, bool busy, bool sure)
{
    struct duty_frame *v = d->stack.p, *top;
    tpu_duty_widen(d, begin_ps, end_ps);
    while (d->stack.n > 1 && v[d->stack.n - 1].end_ps <= begin_ps)
        duty_pop(d);
    if (d->stack.n == 1 && v[0].end_ps <= begin_ps) { /* most events follow one another */
        duty_take(d, v, v->end_ps);
        *v = (struct duty_frame){begin_ps, end_ps, busy, sure};
        return;
    }
    if (d->stack.n)
        duty_take(d, &v[d->stack.n - 1], begin_ps);
    if ((top = vec_push(&d->stack, sizeof *top)))
        *top = (struct duty_frame){begin_ps, end_ps, busy, sure};
    else
        d->busy.failed = true;
}

void tpu_duty_line_end(struct tpu_duty *d)
{
    while (d->stack.n)
        duty_pop(d);
}

void tpu_duty_widen(struct tpu_duty *d, int64_t begin_ps, int64_t end_ps)
{
    if (!d->any || begin_ps < d->first_ps)
        d->first_ps = begin_ps;
    if (!d->any || end_ps > d->last_ps)
        d->last_ps = end_ps;
    d->any = true;
}

void tpu_duty_close(struct tpu_duty *d)
{
    tpu_duty_line_end(d);
    tpu_union_close(&d->busy);
    tpu_union_close(&d->sure);
    vec_free(&d->stack);
}
