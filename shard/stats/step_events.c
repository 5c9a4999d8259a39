#include <stdlib.h>

#include "lib/base/hash.h"
#include "shard/derive/pick.h"
#include "shard/stats/steps_int.h"

/* Events of host threads, by group and type. */

#define BIT(kind) (UINT64_C(1) << STAT_##kind)
#define ROOT_BITS 16
#define META_MARKER 0x80 /* in types: beside or instead of an enum step_type */

enum { PICK_INPUT = 1 };

struct host_walk {
    const struct derive *d;
    const struct derive_plane *plane;
    const struct part_plane *part_plane;
    struct step_groups *groups;
    uint8_t *types;       /* of names: enum step_type, META_MARKER */
    uint64_t *maybe_root; /* bitmap of hashes of the roots' ids */
    bool step_stats;      /* events may carry names of steps */
    struct vec producers; /* struct link, sorted */
    struct vec stages;    /* uint64_t: ids of the line's outermost input stages, sorted */
    struct xp_arena *scratch;
};

struct link {
    uint64_t type, id;
};

/* --- names --- */

static uint8_t type_of_name(struct xp_span name)
{
    return step_is_marker(name) ? META_MARKER : (uint8_t)step_type_of_host(name);
}

static bool types_init(struct host_walk *w)
{
    w->types = malloc(w->part_plane->nevmeta + 1);
    for (uint32_t i = 0; w->types && i < w->part_plane->nevmeta; i++)
        w->types[i] = type_of_name(part_str(w->d->part, w->part_plane->evmeta[i].name));
    return w->types;
}

static uint8_t type_of(const struct host_walk *w, const struct derive_line *l, uint32_t name)
{
    if (l->own_names)
        return name < w->d->nnames
                   ? type_of_name(xp_strpool_get(&w->d->strings, w->d->names[name].name))
                   : STEP_UNKNOWN;
    return name < w->part_plane->nevmeta ? w->types[name] : STEP_UNKNOWN;
}

/* --- names of steps --- */

static size_t root_bit(uint64_t at)
{
    return xp_hash_u64(at) >> (64 - ROOT_BITS);
}

static bool roots_init(struct host_walk *w)
{
    w->maybe_root = calloc((1u << ROOT_BITS) / 64, sizeof *w->maybe_root);
    for (uint32_t i = 0; w->maybe_root && i < w->d->nroots; i++) {
        size_t bit = root_bit(w->d->roots[i].at);
        w->maybe_root[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    w->step_stats = w->plane->kinds & BIT(STEP_NAME);
    return w->maybe_root;
}

static struct xp_span step_name(const struct host_walk *w, struct derive_eye *eye,
                                const struct derive_event *ev)
{
    size_t bit = root_bit(ev->at);
    if (!(w->maybe_root[bit / 64] >> bit % 64 & 1) && !w->step_stats && !eye->line->named_by_step)
        return (struct xp_span){0};
    return derive_step_name(eye, ev);
}

/* --- input pipelines: only the outermost stage of a thread waits for input --- */

static int link_order(const void *a, const void *b)
{
    const struct link *x = a, *y = b;
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static bool read_link(const struct side_cursor *c, enum stat_kind type, enum stat_kind id,
                      struct link *l)
{
    const struct side_stat *t = side_get(c, type), *i = side_get(c, id);
    if (!t || !i || t->type > SIDE_I64 || i->type > SIDE_I64)
        return false;
    *l = (struct link){t->num, i->num};
    return true;
}

static bool producers_find(struct host_walk *w)
{
    for (uint32_t i = 0; i < w->plane->nlines; i++) {
        const struct derive_line *l = &w->d->lines[w->plane->first_line + i];
        struct side_cursor c;
        struct link link;
        side_open(&c, l->side);
        while (l->side && !l->hidden && side_next(&c)) {
            if (!read_link(&c, STAT_PRODUCER_TYPE, STAT_PRODUCER_ID, &link))
                continue;
            struct link *p = vec_push(&w->producers, sizeof *p);
            if (!p)
                return false;
            *p = link;
        }
    }
    if (w->producers.n)
        qsort(w->producers.p, w->producers.n, sizeof(struct link), link_order);
    return true;
}

static int at_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

struct stage {
    int64_t end_ps;
    bool stage, inside; /* inside: of another stage, here or in a thread that made it run */
};

static bool stage_add(struct host_walk *w, struct side_cursor *c, const struct plane_event *ev,
                      struct vec *stack)
{
    struct link link;
    if (!side_find(c, ev->at))
        return true;
    struct stage *top = stack->p;
    while (stack->n && top[stack->n - 1].end_ps < ev->end_ps)
        stack->n--;
    struct stage s = {.end_ps = ev->end_ps, .stage = side_get(c, STAT_INPUT_STAGE_ID)};
    s.inside = read_link(c, STAT_CONSUMER_TYPE, STAT_CONSUMER_ID, &link) && w->producers.n &&
               bsearch(&link, w->producers.p, w->producers.n, sizeof link, link_order);
    if (stack->n)
        s.inside |= top[stack->n - 1].inside || top[stack->n - 1].stage;
    struct stage *put = vec_push(stack, sizeof *put);
    if (!put)
        return false;
    *put = s;
    if (!s.stage || s.inside)
        return true;
    uint64_t *at = vec_push(&w->stages, sizeof *at);
    if (at)
        *at = ev->at;
    return at;
}

/* The line's outermost stages into w->stages. */
static bool stages_find(struct host_walk *w, const struct derive_line *l)
{
    struct vec picked = {0}, stack = {0};
    w->stages.n = 0;
    if (!(w->plane->kinds & BIT(INPUT_STAGE_ID)) || !l->side)
        return true;
    bool ok = derive_pick(l, 0, BIT(INPUT_STAGE_ID) | BIT(CONSUMER_ID), NULL, 0, 0, &picked);
    if (picked.n)
        qsort(picked.p, picked.n, sizeof(struct plane_event), plane_event_order);
    struct side_cursor c;
    side_open(&c, l->side);
    for (size_t i = 0; ok && i < picked.n; i++)
        ok = stage_add(w, &c, &VEC(picked, struct plane_event)[i], &stack);
    if (w->stages.n)
        qsort(w->stages.p, w->stages.n, sizeof(uint64_t), at_order);
    vec_free(&picked);
    vec_free(&stack);
    return ok;
}

static bool is_stage(const struct host_walk *w, uint64_t at)
{
    return w->stages.n && bsearch(&at, w->stages.p, w->stages.n, sizeof at, at_order);
}

/* --- one event --- */

/* The span of each type that was kept last. An event that one of them covers, of its own type or
 * a higher one in the same group, changes nothing in the sweep and is left out: most events of a
 * deep stack. */
struct covers {
    struct cover {
        int64_t group, end_ps;
    } by_type[STEP_TYPES];
};

static bool covered(struct covers *c, uint8_t type, int64_t group, const struct derive_event *ev)
{
    for (int t = type; t < STEP_TYPES; t++) {
        const struct cover *k = &c->by_type[t];
        if (k->group != group || k->end_ps < ev->end_ps)
            continue;
        if (k->end_ps > ev->end_ps || ev->end_ps > ev->begin_ps)
            return true;
    }
    c->by_type[type] = (struct cover){group, ev->end_ps};
    return false;
}

static void mark(struct step_group *g, const struct derive_event *ev)
{
    uint64_t begin = step_time(ev->begin_ps), duration = step_time(ev->end_ps) - begin;
    if (duration <= g->host_ps)
        return;
    g->host_begin_ps = begin;
    g->host_ps = duration;
}

static bool add_event(struct host_walk *w, struct derive_eye *eye, const struct derive_event *ev,
                      struct covers *covers)
{
    int64_t id = derive_group(eye, ev);
    if (id < 0)
        return true;
    uint8_t type = type_of(w, eye->line, ev->name);
    struct xp_span name = step_name(w, eye, ev);
    bool marker = type == META_MARKER || name.n;
    if (!marker && type != STEP_UNKNOWN) {
        if (type == STEP_HOST_COMPUTE && is_stage(w, ev->at))
            type = STEP_WAIT_INPUT;
        if (covered(covers, type, id, ev))
            return true;
    }
    if (!marker && type == STEP_UNKNOWN)
        return true;
    struct step_group *g = step_groups_get(w->groups, id);
    if (!g)
        return false;
    if (name.n)
        g->name = name;
    if (marker) {
        mark(g, ev);
        return true;
    }
    struct step_span *s = vec_push(&g->spans, sizeof *s);
    if (s)
        *s = (struct step_span){step_time(ev->begin_ps), step_time(ev->end_ps), type};
    return s;
}

/* --- lines --- */

static bool has_groups(const struct host_walk *w, const struct derive_line *l)
{
    return !l->hidden && (l->nspans || (l->side && w->plane->kinds & BIT(GROUP_ID)));
}

/* A name that an earlier line gave stays, in this line the last one counts. */
static bool line_events(struct host_walk *w, const struct derive_line *l)
{
    struct derive_eye eye;
    struct line_cursor cur;
    struct lane_event e;
    struct covers covers;
    bool ok = stages_find(w, l) && line_seek(&cur, l->line, INT64_MIN, w->scratch) == XP_OK;
    for (int t = 0; t < STEP_TYPES; t++)
        covers.by_type[t] = (struct cover){DERIVE_NO_GROUP, 0};
    derive_look(&eye, w->d, l);
    while (ok && line_next(&cur, &e, NULL)) {
        int64_t base = l->line->base_ps;
        struct derive_event ev = {base + e.begin_ps, base + e.end_ps, e.at, e.name};
        ok = add_event(w, &eye, &ev, &covers);
    }
    return ok;
}

/* Lines are walked apart and joined, since a step takes its name from the first line that has one.
 */
static bool join(struct step_groups *to, struct step_groups *from)
{
    for (uint32_t i = 0; i < from->v.n; i++) {
        struct step_group *s = &VEC(from->v, struct step_group)[i];
        struct step_group *g = step_groups_get(to, s->id);
        if (!g)
            return false;
        if (!g->name.n)
            g->name = s->name;
        if (s->host_ps > g->host_ps) {
            g->host_ps = s->host_ps;
            g->host_begin_ps = s->host_begin_ps;
        }
        if (!g->spans.n) {
            struct vec t = g->spans;
            g->spans = s->spans;
            s->spans = t;
        }
        for (size_t k = 0; k < s->spans.n; k++) {
            struct step_span *p = vec_push(&g->spans, sizeof *p);
            if (!p)
                return false;
            *p = VEC(s->spans, struct step_span)[k];
        }
    }
    return true;
}

static bool walk_open(struct host_walk *w, const struct derive *d, struct step_groups *g)
{
    *w = (struct host_walk){.d = d, .groups = g};
    for (uint32_t i = 0; i < d->part->nplanes && !w->plane; i++)
        if (d->planes[i].host) {
            w->plane = &d->planes[i];
            w->part_plane = &d->part->planes[i];
        }
    if (!w->plane)
        return true;
    w->scratch = xp_arena_new(NULL);
    return w->scratch && types_init(w) && roots_init(w) &&
           (!(w->plane->kinds & BIT(INPUT_STAGE_ID)) || producers_find(w));
}

static void walk_close(struct host_walk *w)
{
    free(w->types);
    free(w->maybe_root);
    vec_free(&w->producers);
    vec_free(&w->stages);
    xp_arena_free(w->scratch);
}

bool step_cpu_events(const struct derive *d, struct step_groups *g)
{
    struct host_walk w;
    bool ok = walk_open(&w, d, g);
    for (uint32_t i = 0; ok && w.plane && i < w.plane->nlines; i++) {
        const struct derive_line *l = &d->lines[w.plane->first_line + i];
        if (!has_groups(&w, l))
            continue;
        struct step_groups line = {0};
        w.groups = &line;
        ok = line_events(&w, l) && join(g, &line);
        step_groups_free(&line);
    }
    walk_close(&w);
    return ok;
}

/* --- what a host does for its TPUs --- */

static bool add_inputs(struct host_walk *w, const struct derive_line *l, const uint16_t *flags)
{
    struct vec picked = {0};
    struct derive_eye eye;
    uint64_t kinds = w->stages.n ? BIT(INPUT_STAGE_ID) : 0;
    bool ok = derive_pick(l, 0, kinds, flags, l->own_names ? 0 : w->part_plane->nevmeta, PICK_INPUT,
                          &picked);
    if (picked.n)
        qsort(picked.p, picked.n, sizeof(struct plane_event), plane_event_order);
    derive_look(&eye, w->d, l);
    for (size_t i = 0; ok && i < picked.n; i++) {
        const struct plane_event *p = &VEC(picked, struct plane_event)[i];
        struct derive_event ev = {p->begin_ps, p->end_ps, p->at, p->name};
        int64_t id = derive_group(&eye, &ev);
        uint8_t type = type_of(w, l, ev.name);
        bool input = type == STEP_WAIT_INPUT || type == STEP_HOST_TO_DEVICE ||
                     (type == STEP_HOST_COMPUTE && is_stage(w, ev.at));
        if (id < 0 || !input || step_name(w, &eye, &ev).n)
            continue;
        struct step_group *g = step_groups_get(w->groups, id);
        if (!g)
            ok = false;
        else
            g->input_ps += step_time(ev.end_ps) - step_time(ev.begin_ps);
    }
    vec_free(&picked);
    return ok;
}

/* Names worth a look, and whether there are any. */
static uint16_t *input_names(const struct host_walk *w, bool *any)
{
    uint16_t *flags = calloc(w->part_plane->nevmeta + 1, sizeof *flags);
    *any = w->plane->kinds & BIT(INPUT_STAGE_ID);
    for (uint32_t i = 0; flags && i < w->part_plane->nevmeta; i++) {
        if (w->types[i] != STEP_WAIT_INPUT && w->types[i] != STEP_HOST_TO_DEVICE)
            continue;
        flags[i] = PICK_INPUT;
        *any = true;
    }
    return flags;
}

bool step_tpu_inputs(const struct derive *d, struct step_groups *g)
{
    struct host_walk w;
    bool ok = walk_open(&w, d, g), any = false;
    uint16_t *flags = ok && w.plane ? input_names(&w, &any) : NULL;
    ok = ok && (flags || !w.plane);
    for (uint32_t i = 0; ok && any && i < w.plane->nlines; i++) {
        const struct derive_line *l = &d->lines[w.plane->first_line + i];
        if (has_groups(&w, l))
            ok = stages_find(&w, l) && add_inputs(&w, l, flags);
    }
    free(flags);
    walk_close(&w);
    return ok;
}

/* --- when a host waited for input, for facts --- */

bool step_is_loader(struct xp_span name)
{
    static const char *const marks[] = {"DataLoader", "__next__",   "GetNext",
                                        "get_next",   "Iterator::", "InfeedEnqueue"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (xp_span_has(name, xp_span_str(marks[i])))
            return true;
    return false;
}

static bool line_inputs(struct host_walk *w, const struct derive_line *l, const uint16_t *flags,
                        struct vec *spans)
{
    struct vec picked = {0};
    bool ok = stages_find(w, l);
    uint64_t kinds = w->stages.n ? BIT(INPUT_STAGE_ID) : 0;
    ok = ok && derive_pick(l, 0, kinds, flags, l->own_names ? 0 : w->part_plane->nevmeta,
                           PICK_INPUT, &picked);
    for (size_t i = 0; ok && i < picked.n; i++) {
        const struct plane_event *p = &VEC(picked, struct plane_event)[i];
        uint8_t type = type_of(w, l, p->name);
        bool named = p->name < w->part_plane->nevmeta && !l->own_names && flags[p->name];
        if (!named && type != STEP_WAIT_INPUT && type != STEP_HOST_TO_DEVICE && !is_stage(w, p->at))
            continue;
        struct step_span *s = vec_push(spans, sizeof *s);
        ok = s;
        if (s)
            *s = (struct step_span){step_time(p->begin_ps), step_time(p->end_ps), STEP_WAIT_INPUT};
    }
    vec_free(&picked);
    return ok;
}

bool step_input_spans(const struct derive *d, struct vec *spans)
{
    struct host_walk w;
    bool ok = walk_open(&w, d, NULL), any = false, groups = false;
    uint16_t *flags = ok && w.plane ? input_names(&w, &any) : NULL;
    ok = ok && (flags || !w.plane);
    for (uint32_t i = 0; flags && i < w.part_plane->nevmeta; i++)
        if (step_is_loader(part_event_name(d->part, w.part_plane, i))) {
            flags[i] = PICK_INPUT;
            any = true;
        }
    for (uint32_t i = 0; ok && w.plane && i < w.plane->nlines; i++)
        groups |= has_groups(&w, &d->lines[w.plane->first_line + i]);
    for (uint32_t i = 0; ok && any && i < w.plane->nlines; i++) {
        const struct derive_line *l = &d->lines[w.plane->first_line + i];
        if (!l->hidden && !l->line->derived && (!groups || has_groups(&w, l)))
            ok = line_inputs(&w, l, flags, spans);
    }
    free(flags);
    walk_close(&w);
    return ok;
}
