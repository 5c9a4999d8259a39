#include "shard/tools/trace.h"

#define FRAME_MIN 16 /* shorter texts stay arguments */
#define FRAME_NAME_MAX 10000

enum xp_status trace_frames_init(struct trace_frames *f, struct xp_arena *scratch,
                                 struct xp_error *err)
{
    return xp_strpool_init(&f->pool, scratch) ? XP_OK : trace_busy(err);
}

bool trace_is_frame(const struct trace_arg *a)
{
    return a->type == TRACE_ARG_STR && a->text.n > FRAME_MIN &&
           (xp_span_eq(a->name, XP_SPAN_LIT("long_name")) ||
            xp_span_eq(a->name, XP_SPAN_LIT("hlo_text")));
}

uint32_t trace_frame_of(struct trace_frames *f, const struct trace_arg *a)
{
    return xp_strpool_add(&f->pool, a->text);
}

static bool add_name(struct trace_frames *f, struct xp_span name, struct xp_span display)
{
    if (!display.n || name.n <= FRAME_MIN)
        return true;
    if (name.n > FRAME_NAME_MAX)
        return true; /* cut ones are added where they are used */
    return xp_strpool_add(&f->pool, name) != XP_STRPOOL_FULL;
}

/* Which planes have rows; NULL when memory is out. */
static bool *shown_planes(const struct trace_host *h)
{
    bool *shown = calloc((size_t)h->part->nplanes + 1, sizeof *shown);
    for (size_t i = 0; shown && i < h->lanes.n; i++)
        shown[h->d->lines[VEC(h->lanes, struct trace_lane)[i].line].plane] = true;
    return shown;
}

static bool add_plane(struct trace_frames *f, const struct trace_host *h, uint32_t plane)
{
    const struct part_plane *pl = &h->part->planes[plane];
    const bool *unused = h->d->planes[plane].unused;
    for (uint32_t i = 0; i < pl->nevmeta; i++)
        if (!unused || !unused[i])
            if (!add_name(f, part_str(h->part, pl->evmeta[i].name),
                          part_str(h->part, pl->evmeta[i].display_name)))
                return false;
    return true;
}

enum xp_status trace_frames_add_host(struct trace_frames *f, const struct trace_host *h,
                                     struct xp_error *err)
{
    const struct derive *d = h->d;
    bool *shown = shown_planes(h), ok = shown;
    for (uint32_t p = 0; ok && p < h->part->nplanes; p++)
        ok = !shown[p] || add_plane(f, h, p);
    for (uint32_t i = 0; ok && i < d->nnames; i++)
        ok = add_name(f, xp_strpool_get(&d->strings, d->names[i].name),
                      xp_strpool_get(&d->strings, d->names[i].display));
    free(shown);
    return ok ? XP_OK : trace_busy(err);
}

struct trace_place *trace_places(const struct trace_host *h, struct xp_arena *scratch)
{
    struct trace_place *p = xp_arena_zalloc(scratch, (h->d->nlines + 1) * sizeof *p);
    for (uint32_t r = 0; p && r < h->rows.n; r++) {
        const struct trace_row *row = &VEC(h->rows, struct trace_row)[r];
        uint32_t pid = 1000 * h->index + VEC(h->devices, struct trace_device)[row->device].id;
        for (uint32_t i = 0; i < row->nlanes; i++)
            p[VEC(h->lanes, struct trace_lane)[row->first_lane + i].line] =
                (struct trace_place){pid, row->tid, h->flows && h->flows->strung[r].n};
    }
    return p;
}

struct order_ctx {
    const struct trace_event *ev;
    const struct trace_place *places;
};

static int place_order(const void *a, const void *b, void *ctx)
{
    const struct order_ctx *c = ctx;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct trace_event *x = &c->ev[i], *y = &c->ev[k];
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    if (!x->track) {
        const struct trace_place *p = &c->places[x->line], *q = &c->places[y->line];
        if (p->pid != q->pid)
            return p->pid < q->pid ? -1 : 1;
        if (p->tid != q->tid)
            return p->tid < q->tid ? -1 : 1;
        if (p->strung)
            return (i > k) - (i < k);
    }
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    if (x->end_ps != y->end_ps)
        return x->end_ps > y->end_ps ? -1 : 1;
    if (x->serial != y->serial)
        return x->serial < y->serial ? -1 : 1;
    return (i > k) - (i < k);
}

uint32_t *trace_order(const struct trace_host *h, const struct trace_place *places,
                      struct xp_arena *scratch)
{
    struct order_ctx c = {h->events.p, places};
    uint32_t *at = xp_arena_alloc(scratch, (h->events.n + 1) * sizeof *at);
    for (size_t i = 0; at && i < h->events.n; i++)
        at[i] = (uint32_t)i;
    if (at && h->events.n)
        qsort_r(at, h->events.n, sizeof *at, place_order, &c);
    return at;
}
