#include "shard/stats/host_gaps.h"

#include <stdlib.h>
#include <strings.h>

#include "shard/stats/name_words.h"
#include "shard/stats/steps_int.h"

#define EVENTS_MAX ((size_t)1 << 20) /* of a thread in a gap; later ones are not looked at */
#define AROUND 10

/* A name on a line. */
struct entry {
    uint32_t line, name;
    uint8_t kind;
    uint32_t gaps, most;
    uint64_t self_ps, most_ps;
};

struct look {
    const struct part *part;
    const struct part_plane *plane;
    struct xp_span step; /* what steps are called */
    uint32_t line;
    struct figure_span gap; /* session time */
    uint32_t number;        /* of the gap */
    struct vec events;      /* struct lane_event, clipped to the gap, session time */
    struct vec stack;       /* struct open */
    struct vec entries;     /* struct entry */
    uint64_t *self;         /* by name, of the line in the gap */
    uint8_t *kind;          /* likewise */
};

struct open {
    uint32_t name;
    int64_t end_ps;
    uint64_t self_ps;
};

/* --- kinds --- */

/* Blocks are read and computed, too: as a word Block says that a thread waits only before Until or
 * Host, or as all that stands behind ::. */
static bool says_wait(struct xp_span name)
{
    static const char *const waits[] = {"wait",       "waiting",     "waits",     "await",
                                        "sleep",      "nanosleep",   "usleep",    "sleeping",
                                        "acquire",    "idle",        "idling",    "blocking",
                                        "blockuntil", "block_until", "blockhost", "block_host"};
    static const char block[] = "::block";
    size_t n = sizeof block - 1;
    if (name_has_any(name, waits, sizeof waits / sizeof *waits))
        return true;
    return name.n >= n && strncasecmp((const char *)name.p + name.n - n, block, n) == 0;
}

static uint8_t kind_of(struct xp_span name, struct xp_span step)
{
    if (step.n && xp_span_eq(name, step))
        return HOST_GAP_AROUND;
    if (says_wait(name))
        return HOST_GAP_WAITS;
    return step_is_loader(name) ? HOST_GAP_INPUT : HOST_GAP_WORK;
}

/* --- a thread in a gap --- */

static bool collect_lane(struct look *l, const struct part_line *line, uint32_t lane)
{
    struct lane_event e[LANE_BLOCK];
    struct lane_cursor c;
    int64_t base = line->base_ps;
    size_t n;
    lane_seek(&c, line->lanes[lane], l->gap.begin_ps - base);
    while ((n = lane_next_block(&c, e)))
        for (size_t i = 0; i < n; i++) {
            int64_t begin = base + e[i].begin_ps, end = base + e[i].end_ps;
            if (begin >= l->gap.end_ps || l->events.n >= EVENTS_MAX)
                return true;
            if (end <= l->gap.begin_ps || end <= begin || e[i].name >= l->plane->nevmeta)
                continue;
            if (figure_length(begin, end) / AROUND >= figure_length(l->gap.begin_ps, l->gap.end_ps))
                l->kind[e[i].name] = HOST_GAP_AROUND;
            struct lane_event *to = vec_push(&l->events, sizeof *to);
            if (!to)
                return false;
            *to = e[i];
            to->begin_ps = begin > l->gap.begin_ps ? begin : l->gap.begin_ps;
            to->end_ps = end < l->gap.end_ps ? end : l->gap.end_ps;
        }
    return true;
}

static int by_begin(const void *a, const void *b)
{
    const struct lane_event *x = a, *y = b;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    return (x->end_ps < y->end_ps) - (x->end_ps > y->end_ps);
}

static void close_until(struct look *l, int64_t time_ps)
{
    struct open *v = l->stack.p;
    for (; l->stack.n && v[l->stack.n - 1].end_ps <= time_ps; l->stack.n--)
        l->self[v[l->stack.n - 1].name] += v[l->stack.n - 1].self_ps;
}

/* What an event takes it takes from the one it lies in. */
static bool sum_up(struct look *l)
{
    const struct lane_event *e = l->events.p;
    l->stack.n = 0;
    for (size_t i = 0; i < l->events.n; i++) {
        close_until(l, e[i].begin_ps);
        struct open *out = l->stack.n ? &VEC(l->stack, struct open)[l->stack.n - 1] : NULL;
        int64_t end = out && out->end_ps < e[i].end_ps ? out->end_ps : e[i].end_ps;
        uint64_t length = figure_length(e[i].begin_ps, end);
        if (out)
            out->self_ps -= length < out->self_ps ? length : out->self_ps;
        struct open *in = vec_push(&l->stack, sizeof *in);
        if (!in)
            return false;
        *in = (struct open){e[i].name, end, length};
    }
    close_until(l, INT64_MAX);
    return true;
}

static bool note_sums(struct look *l)
{
    const struct lane_event *e = l->events.p;
    for (size_t i = 0; i < l->events.n; i++) {
        uint32_t name = e[i].name;
        uint64_t self = l->self[name];
        if (!self)
            continue;
        struct entry *to = vec_push(&l->entries, sizeof *to);
        if (!to)
            return false;
        uint8_t kind = l->kind[name] == HOST_GAP_AROUND
                           ? HOST_GAP_AROUND
                           : kind_of(part_event_name(l->part, l->plane, name), l->step);
        *to = (struct entry){l->line, name, kind, 1, l->number, self, self};
        l->self[name] = 0;
    }
    for (size_t i = 0; i < l->events.n; i++)
        l->kind[e[i].name] = HOST_GAP_WORK;
    return true;
}

static bool look_at_line(struct look *l)
{
    const struct part_line *line = &l->part->lines[l->line];
    l->events.n = 0;
    for (uint32_t k = 0; k < line->nlanes; k++)
        if (!collect_lane(l, line, k))
            return false;
    if (l->events.n)
        qsort(l->events.p, l->events.n, sizeof(struct lane_event), by_begin);
    return sum_up(l) && note_sums(l);
}

/* --- all --- */

static int by_place(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return (x->name > y->name) - (x->name < y->name);
}

static int by_time(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->self_ps != y->self_ps)
        return x->self_ps > y->self_ps ? -1 : 1;
    return by_place(a, b);
}

static void merge(struct vec *entries)
{
    struct entry *v = entries->p;
    size_t n = 0;
    if (entries->n)
        qsort(v, entries->n, sizeof *v, by_place);
    for (size_t i = 0; i < entries->n; i++) {
        if (!n || by_place(&v[n - 1], &v[i])) {
            v[n++] = v[i];
            continue;
        }
        struct entry *to = &v[n - 1];
        to->self_ps += v[i].self_ps;
        to->gaps++;
        to->kind = v[i].kind > to->kind ? v[i].kind : to->kind;
        if (v[i].most_ps > to->most_ps)
            to->most_ps = v[i].most_ps, to->most = v[i].most;
    }
    entries->n = n;
    if (n)
        qsort(v, n, sizeof *v, by_time);
}

static bool is_host(const struct part *p, const struct part_plane *pl)
{
    struct xp_span name = part_str(p, pl->name);
    return xp_span_starts(name, XP_SPAN_LIT("/host:CPU")) ||
           xp_span_starts(name, XP_SPAN_LIT("/host:python"));
}

static bool look_at_plane(struct look *l, const struct figure_span *gaps, uint32_t ngaps,
                          struct xp_arena *a)
{
    l->self = xp_arena_zalloc(a, (l->plane->nevmeta + 1) * sizeof *l->self);
    l->kind = xp_arena_alloc(a, l->plane->nevmeta + 1);
    if (!l->self || !l->kind)
        return false;
    memset(l->kind, HOST_GAP_WORK, l->plane->nevmeta + 1);
    for (uint32_t i = 0; i < l->plane->nlines; i++)
        for (uint32_t k = 0; k < ngaps; k++) {
            l->line = l->plane->first_line + i;
            l->gap = gaps[k];
            l->number = k;
            if (!look_at_line(l))
                return false;
        }
    return true;
}

static bool keep(const struct look *l, struct xp_arena *a, struct host_gap_row **rows, uint32_t *n)
{
    const struct part *p = l->part;
    *n = l->entries.n < HOST_GAPS_ROWS ? (uint32_t)l->entries.n : HOST_GAPS_ROWS;
    *rows = xp_arena_alloc(a, (*n + 1) * sizeof **rows);
    for (uint32_t i = 0; *rows && i < *n; i++) {
        const struct entry *e = &VEC(l->entries, struct entry)[i];
        const struct part_line *line = &p->lines[e->line];
        (*rows)[i] =
            (struct host_gap_row){.thread = part_line_name(p, line),
                                  .event = part_event_name(p, &p->planes[line->plane], e->name),
                                  .kind = e->kind,
                                  .self_ps = e->self_ps,
                                  .gaps = e->gaps,
                                  .most = e->most,
                                  .most_ps = e->most_ps};
    }
    return *rows;
}

enum xp_status host_gaps_find(const struct part *p, const struct figure_span *gaps, uint32_t ngaps,
                              struct xp_span step, struct xp_arena *a, struct host_gap_row **rows,
                              uint32_t *n, struct xp_error *err)
{
    struct look l = {.part = p, .step = step};
    bool ok = true;
    for (uint32_t i = 0; ok && ngaps && i < p->nplanes; i++) {
        l.plane = &p->planes[i];
        if (plane_ready(l.plane) && is_host(p, l.plane))
            ok = look_at_plane(&l, gaps, ngaps, a);
    }
    merge(&l.entries);
    ok = ok && keep(&l, a, rows, n);
    vec_free(&l.events);
    vec_free(&l.stack);
    vec_free(&l.entries);
    return ok ? XP_OK
              : xp_fail(err, XP_BUSY, 0, "no memory left for what host threads did in gaps");
}

const struct host_gap_row *host_gaps_busiest(const struct host_gap_row *rows, uint32_t n,
                                             uint64_t all_ps)
{
    for (int kind = HOST_GAP_WORK; kind >= HOST_GAP_INPUT; kind--)
        for (uint32_t i = 0; i < n; i++)
            if (rows[i].kind == kind && rows[i].self_ps >= all_ps / 10)
                return &rows[i];
    return NULL;
}
