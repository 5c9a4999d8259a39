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

void tpu_duty_close(struct tpu_duty *d)
{
    if (!d->open)
        return;
    d->open = false;
    d->busy_ps += (uint64_t)(d->end_ps - d->begin_ps);
    if (!d->spans)
        return;
    struct tpu_span *s = vec_push(d->spans, sizeof *s);
    if (s)
        *s = (struct tpu_span){d->begin_ps, d->end_ps};
    else
        d->failed = true;
}

static void widen(struct tpu_duty *d, int64_t begin_ps, int64_t end_ps)
{
    if (!d->any || begin_ps < d->first_ps)
        d->first_ps = begin_ps;
    if (!d->any || end_ps > d->last_ps)
        d->last_ps = end_ps;
    d->any = true;
}

void tpu_duty_add(struct tpu_duty *d, int64_t begin_ps, int64_t end_ps, bool busy)
{
    widen(d, begin_ps, end_ps);
    if (!busy)
        return;
    if (d->open && begin_ps <= d->end_ps) {
        d->end_ps = end_ps > d->end_ps ? end_ps : d->end_ps;
        return;
    }
    tpu_duty_close(d);
    d->open = true;
    d->begin_ps = begin_ps;
    d->end_ps = end_ps;
}

void tpu_duty_widen(struct tpu_duty *d, const struct part_line *line)
{
    if (line->nevents)
        widen(d, line->begin_ps, line->end_ps);
}
