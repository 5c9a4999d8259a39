/* Which runs of kernels the lines of their plane tell something of. Both may be many: each lane is
 * swept along the runs once, and a run that a kind of lines tells of is not looked at again for it.
 */
#include "shard/tools/kernel_calls.h"
#include "shard/tools/kernel_inside.h"

struct sweep {
    const struct part *p;
    struct kernel_run *runs;
    size_t *of, n;    /* runs of the plane, by begin */
    int64_t *ends;    /* a tree of maxima over those not told yet; leaves from `leaves` on */
    size_t leaves, i; /* i: runs before this one are done with */
    uint32_t kind;
    int64_t base_ps;
};

static void plant(struct sweep *s)
{
    for (size_t i = 0; i < s->leaves; i++)
        s->ends[s->leaves + i] = i < s->n ? s->runs[s->of[i]].end_ps : INT64_MIN;
    for (size_t i = s->leaves - 1; i; i--)
        s->ends[i] = s->ends[2 * i] > s->ends[2 * i + 1] ? s->ends[2 * i] : s->ends[2 * i + 1];
}

/* The first run from i on that ends after t and is not told yet; n and more: none. */
static size_t ends_after(const struct sweep *s, size_t i, int64_t t)
{
    size_t at = s->leaves + i;
    while (s->ends[at] <= t) {
        if (!(at & (at + 1))) /* the last of its level */
            return s->leaves;
        for (at++; !(at & 1); at >>= 1)
            ;
    }
    while (at < s->leaves)
        at = 2 * at + (s->ends[2 * at] <= t);
    return at - s->leaves;
}

static void tell(struct sweep *s, size_t i)
{
    s->runs[s->of[i]].has |= s->kind;
    size_t at = s->leaves + i;
    s->ends[at] = INT64_MIN;
    for (at >>= 1; at; at >>= 1)
        s->ends[at] = s->ends[2 * at] > s->ends[2 * at + 1] ? s->ends[2 * at] : s->ends[2 * at + 1];
}

/* The first run that begins at t or later. */
static size_t begins_at(const struct sweep *s, int64_t t)
{
    size_t lo = s->i, hi = s->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->runs[s->of[mid]].begin_ps < t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* As lane_seek counts it: an event of no length lies where it begins. */
static bool over(const struct lane_event *ev, int64_t t)
{
    return ev->end_ps < t || (ev->end_ps == t && ev->begin_ps < t);
}

#define NEAR LANE_BLOCK /* as many are read before they are jumped over */

/* The first event from the cursor on that is not over at t. The schedule's have a length; other
 * counters are moments, and no matter here. */
static bool next_event(struct lane_cursor *c, int64_t t, bool lasting, struct lane_event *ev)
{
    for (int read = 0; lane_next(c, ev); read++) {
        if (!over(ev, t) && (!lasting || ev->end_ps > ev->begin_ps))
            return true;
        if (read == NEAR && over(ev, t))
            lane_seek(c, c->lane, t);
    }
    return false;
}

static void sweep_lane(struct sweep *s, const struct lane *l)
{
    struct lane_cursor c;
    struct lane_event ev;
    s->i = 0;
    lane_seek(&c, l, s->runs[s->of[0]].begin_ps - s->base_ps);
    while (s->i < s->n && next_event(&c, s->runs[s->of[s->i]].begin_ps - s->base_ps,
                                     s->kind == KERNEL_HAS_SCHEDULE, &ev)) {
        /* It is the first that matters to all runs up to `stop`. */
        size_t stop = begins_at(s, ev.end_ps + s->base_ps + (ev.end_ps == ev.begin_ps));
        size_t i = s->i;
        while ((i = ends_after(s, i, ev.begin_ps + s->base_ps)) < stop) {
            tell(s, i);
            if (++i == s->n)
                break;
        }
        s->i = stop;
    }
}

static void sweep_plane(struct sweep *s, const struct part_plane *pl)
{
    for (s->kind = KERNEL_HAS_INSTRUCTIONS; s->kind <= KERNEL_HAS_FLAGS; s->kind <<= 1) {
        bool planted = false;
        for (uint32_t i = 0; i < pl->nlines; i++) {
            const struct part_line *l = &s->p->lines[pl->first_line + i];
            if (kernel_line_kind(s->p, l) != s->kind || !l->nevents)
                continue;
            if (!planted)
                plant(s);
            planted = true;
            s->base_ps = l->base_ps;
            for (uint32_t k = 0; k < l->nlanes; k++)
                sweep_lane(s, l->lanes[k]);
        }
    }
}

bool kernel_calls_tell(const struct part *p, struct kernel_calls *c, struct xp_arena *a)
{
    struct sweep s = {.p = p, .runs = c->runs, .leaves = 1};
    while (s.leaves < c->nruns)
        s.leaves *= 2;
    s.of = xp_arena_alloc(a, (c->nruns + 1) * sizeof *s.of);
    s.ends = xp_arena_alloc(a, 2 * s.leaves * sizeof *s.ends);
    if (!s.of || !s.ends)
        return false;
    for (uint32_t i = 0; i < p->nplanes; i++) {
        s.n = 0;
        for (size_t k = 0; k < c->nruns; k++)
            if (c->runs[k].plane == i)
                s.of[s.n++] = k;
        if (s.n)
            sweep_plane(&s, &p->planes[i]);
    }
    return true;
}
