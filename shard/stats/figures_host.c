#include <stdlib.h>

#include "lib/base/hash.h"
#include "lib/base/pb_wire.h"
#include "shard/derive/meta_reader.h"
#include "shard/stats/figures_int.h"
#include "shard/stats/op_tpu_int.h"
#include "shard/stats/steps_int.h"

#define PAUSE_MIN_PS 1000000 /* of a core, to ask what it waited for */

enum xp_status figure_busy(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left to work out steps and idle time");
}

/* --- names --- */

static bool begins(struct xp_span name, const char *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (xp_span_starts(name, xp_span_str(v[i])))
            return true;
    return false;
}

static bool is_start(struct xp_span name)
{
    return xp_span_has(name, XP_SPAN_LIT("-start"));
}

/* "%x = f32[8] all-reduce(f32[8] %y), ..." -> "all-reduce("...; else name itself, without '%'. */
static struct xp_span opcode_of(struct xp_span name)
{
    if (!name.n)
        return name;
    const uint8_t *eq = memmem(name.p, name.n, " = ", 3);
    if (!eq) {
        bool mark = name.p[0] == '%';
        return xp_span_of(name.p + mark, name.n - mark);
    }
    const uint8_t *end = name.p + name.n;
    int depth = 0; /* of a tuple's shape, which has spaces in it */
    const uint8_t *p = eq + 3;
    for (; p < end && (depth || *p != ' '); p++)
        depth += (*p == '(' || *p == '{') - (*p == ')' || *p == '}');
    return p < end ? xp_span_of(p + 1, (size_t)(end - p - 1)) : (struct xp_span){0};
}

static struct xp_span word(struct xp_span s)
{
    const uint8_t *p = s.n ? memchr(s.p, '(', s.n) : NULL;
    return p ? xp_span_of(s.p, (size_t)(p - s.p)) : s;
}

uint8_t figure_name_of(struct xp_span name)
{
    static const char *const syncs[] = {
        "all-reduce",           "all-gather",    "reduce-scatter",
        "all-to-all",           "barrier-cores", "ragged-all-to-all",
        "collective-broadcast", "nccl",          "rccl"};
    static const char *const waits[] = {"collective-permute", "recv", "send-done", "host recv",
                                        "host send-done"};
    name = word(opcode_of(name));
    if (begins(name, (const char *const[]){"infeed"}, 1))
        return FIGURE_NAME_INFEED;
    if (is_start(name))
        return 0;
    if (begins(name, syncs, sizeof syncs / sizeof *syncs))
        return FIGURE_NAME_WAIT | (xp_span_has(name, XP_SPAN_LIT("-done")) ? 0 : FIGURE_NAME_SYNC);
    return begins(name, waits, sizeof waits / sizeof *waits) ? FIGURE_NAME_WAIT : 0;
}

bool figure_is_wait(struct xp_span name)
{
    return figure_name_of(name) & FIGURE_NAME_WAIT;
}

bool figure_is_collective(struct xp_span category, struct xp_span name)
{
    return figure_is_wait(name) || figure_is_wait(category) ||
           xp_span_starts(category, XP_SPAN_LIT("collective"));
}

/* --- a core's events --- */

struct core_walk {
    struct figure_build *b;
    struct figure_core *core;
    const struct part_plane *plane;
    uint8_t *names;                  /* by metadata: bits of figure_name_of */
    struct vec busy, waits, infeeds; /* struct figure_span */
    struct vec taken;                /* busy and waits; empty: no wait lies between ops */
    struct vec steps;                /* struct figure_step */
    bool first;                      /* of its host: its syncs are kept */
    uint32_t *seen;                  /* by metadata: syncs in the step `seen_step` */
    size_t seen_step;
};

static void widen(struct figure_core *c, int64_t begin_ps, int64_t end_ps)
{
    bool none = c->begin_ps == c->end_ps;
    if (none || begin_ps < c->begin_ps)
        c->begin_ps = begin_ps;
    if (none || end_ps > c->end_ps)
        c->end_ps = end_ps;
}

/* Events come lane by lane, in order of begin: steps are found by going on. */
static bool note_sync(struct core_walk *w, size_t *step, uint32_t name, int64_t begin_ps,
                      int64_t end_ps)
{
    const struct figure_step *v = VEC(w->steps, struct figure_step);
    if (!w->first || w->b->syncs.n >= FIGURE_SYNCS_MAX)
        return true;
    while (*step < w->steps.n && v[*step].until_ps <= begin_ps)
        ++*step;
    if (*step == w->steps.n || v[*step].begin_ps > begin_ps)
        return true;
    if (w->seen_step != *step + 1) {
        memset(w->seen, 0, w->plane->nevmeta * sizeof *w->seen);
        w->seen_step = *step + 1;
    }
    struct xp_span text = part_event_name(w->b->part, w->plane, name);
    uint64_t key[3] = {(uint64_t)v[*step].number, xp_fnv(XP_FNV_INIT, text), w->seen[name]++};
    struct figure_sync *s = vec_push(&w->b->syncs, sizeof *s);
    if (s)
        *s = (struct figure_sync){xp_fnv(XP_FNV_INIT, xp_span_of(key, sizeof key)), end_ps};
    return s;
}

static bool note_named(struct core_walk *w, size_t *step, const struct lane_event *e, int64_t base)
{
    uint8_t bits = w->names[e->name];
    if (bits & FIGURE_NAME_SYNC &&
        !note_sync(w, step, e->name, base + e->begin_ps, base + e->end_ps))
        return false;
    return figure_push(bits & FIGURE_NAME_INFEED ? &w->infeeds : &w->waits, base + e->begin_ps,
                       base + e->end_ps);
}

static bool walk_lane(struct core_walk *w, const struct part_line *line, uint32_t lane)
{
    struct lane_event e[LANE_BLOCK];
    struct lane_cursor c;
    struct figure_join j = figure_join_lane(&w->busy, lane);
    int64_t base = line->base_ps;
    size_t n, step = 0;
    lane_seek_ord(&c, line->lanes[lane], 0);
    w->seen_step = 0;
    while ((n = lane_next_block(&c, e)))
        for (size_t i = 0; i < n; i++) {
            if (e[i].name >= w->plane->nevmeta)
                continue;
            if (!figure_join(&j, base + e[i].begin_ps, base + e[i].end_ps))
                return false;
            if (lane == 0)
                w->core->event_ps += figure_length(e[i].begin_ps, e[i].end_ps);
            if (w->names[e[i].name] && !note_named(w, &step, &e[i], base))
                return false;
        }
    figure_join_end(&j);
    return true;
}

static bool walk_line(struct core_walk *w, const struct part_line *line)
{
    for (uint32_t k = 0; k < line->nlanes; k++)
        if (!walk_lane(w, line, k))
            return false;
    if (part_watched(line))
        widen(w->core, line->begin_ps, line->end_ps);
    return true;
}

/* What a core does outside of ops: waiting in barriers. It is no busy time. */
static bool walk_marks(struct core_walk *w, const struct part_line *line)
{
    struct lane_event e[LANE_BLOCK];
    struct lane_cursor c;
    size_t n;
    for (uint32_t k = 0; k < line->nlanes; k++) {
        size_t step = 0;
        lane_seek_ord(&c, line->lanes[k], 0);
        w->seen_step = 0;
        while ((n = lane_next_block(&c, e)))
            for (size_t i = 0; i < n; i++)
                if (e[i].name < w->plane->nevmeta && w->names[e[i].name] &&
                    !note_named(w, &step, &e[i], line->base_ps))
                    return false;
    }
    return true;
}

/* --- kernels that no op explains --- */

static bool is_copy(struct xp_span name)
{
    return xp_span_starts(name, XP_SPAN_LIT("Memcpy")) ||
           xp_span_starts(name, XP_SPAN_LIT("Memset"));
}

static bool walk_loose(struct core_walk *w, const struct derive_line *l)
{
    struct lane_event e[LANE_BLOCK];
    struct lane_cursor c;
    struct side_cursor side;
    size_t n;
    for (uint32_t k = 0; k < l->line->nlanes; k++) {
        lane_seek_ord(&c, l->line->lanes[k], 0);
        side_open(&side, l->line->side);
        while ((n = lane_next_block(&c, e)))
            for (size_t i = 0; i < n; i++) {
                bool known = side.side && side_find(&side, e[i].at) &&
                             (side_get(&side, STAT_HLO_OP) || side_get(&side, STAT_TF_OP));
                if (!known && e[i].name < w->plane->nevmeta &&
                    !is_copy(part_event_name(w->b->part, w->plane, e[i].name)))
                    w->core->loose_ps += figure_length(e[i].begin_ps, e[i].end_ps);
            }
    }
    return true;
}

/* --- a core --- */

static enum xp_status core_events(struct core_walk *w, uint32_t plane)
{
    struct figure_build *b = w->b;
    const struct derive_plane *dp = &b->d->planes[plane];
    bool ok = true, gpu = w->core->kind == FIGURE_GPU;
    for (uint32_t i = 0; ok && i < dp->nlines; i++) {
        const struct derive_line *l = &b->d->lines[dp->first_line + i];
        struct xp_span name = l->line->derived ? l->name : part_line_name(b->part, l->line);
        if (!l->own_names && figure_is_busy(b->part, l->line))
            ok = walk_line(w, l->line) && (!gpu || walk_loose(w, l));
        else if (!gpu && xp_span_eq(name, XP_SPAN_LIT("XLA TraceMe")) && !l->line->derived)
            ok = walk_marks(w, l->line);
        else if (!gpu && (tpu_is_steps(name) || tpu_is_modules(name)) && part_watched(l->line))
            widen(w->core, l->line->begin_ps, l->line->end_ps);
    }
    w->busy.n = figure_unite(w->busy.p, w->busy.n);
    w->waits.n = figure_unite(w->waits.p, w->waits.n);
    w->infeeds.n = figure_unite(w->infeeds.p, w->infeeds.n);
    return ok ? XP_OK : figure_busy(b->err);
}

static uint64_t length(const struct vec *spans)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < spans->n; i++)
        sum += figure_length(VEC(*spans, struct figure_span)[i].begin_ps,
                             VEC(*spans, struct figure_span)[i].end_ps);
    return sum;
}

static uint64_t length_of_pause(const struct figure_pause *p)
{
    return figure_length(p->begin_ps, p->end_ps);
}

/* The longest stay. */
static void note_pause(struct figure_core *c, int64_t begin_ps, int64_t end_ps, bool input)
{
    uint64_t length = figure_length(begin_ps, end_ps);
    uint32_t i = c->npauses;
    if (i == FIGURE_PAUSES_MAX && length <= length_of_pause(&c->pauses[i - 1]))
        return;
    if (i < FIGURE_PAUSES_MAX)
        c->npauses++;
    else
        i--;
    for (; i && length_of_pause(&c->pauses[i - 1]) < length; i--)
        c->pauses[i] = c->pauses[i - 1];
    c->pauses[i] = (struct figure_pause){begin_ps, end_ps, input};
}

/* The pauses that are waits for input join the infeed ops. */
static bool find_input(struct core_walk *w)
{
    const struct figure_span *in = VEC(w->b->inputs, struct figure_span);
    const struct figure_span *v = VEC(w->busy, struct figure_span);
    size_t n = w->busy.n, at = 0;
    int64_t from = w->core->begin_ps;
    for (size_t i = 0; i <= n; i++) {
        int64_t to = i < n ? v[i].begin_ps : w->core->end_ps;
        if (figure_length(from, to) >= PAUSE_MIN_PS) {
            uint64_t waited = figure_covered(in, w->b->inputs.n, &at, from, to);
            bool input = waited * 2 >= figure_length(from, to);
            note_pause(w->core, from, to, input);
            if (input && !figure_push(&w->infeeds, from, to))
                return false;
        }
        if (i < n)
            from = v[i].end_ps;
    }
    w->infeeds.n = figure_unite(w->infeeds.p, w->infeeds.n);
    return true;
}

/* Waits between ops, in barriers, are no busy time; those in ops are. */
static bool find_barriers(struct core_walk *w)
{
    const struct figure_span *v = VEC(w->waits, struct figure_span);
    size_t at = 0;
    bool between = false;
    for (size_t i = 0; i < w->waits.n && !between; i++)
        between = figure_covered(w->busy.p, w->busy.n, &at, v[i].begin_ps, v[i].end_ps) <
                  figure_length(v[i].begin_ps, v[i].end_ps);
    for (int k = 0; between && k < 2; k++) {
        const struct vec *from = k ? &w->waits : &w->busy;
        for (size_t i = 0; i < from->n; i++) {
            struct figure_span *s = vec_push(&w->taken, sizeof *s);
            if (!s)
                return false;
            *s = VEC(*from, struct figure_span)[i];
        }
    }
    w->taken.n = figure_unite(w->taken.p, w->taken.n);
    w->core->barrier_ps = between ? length(&w->taken) - length(&w->busy) : 0;
    return true;
}

static void fill_steps(struct core_walk *w)
{
    size_t busy = 0, wait = 0, input = 0, taken = 0;
    for (size_t i = 0; i < w->steps.n; i++) {
        struct figure_step *s = &VEC(w->steps, struct figure_step)[i];
        s->busy_ps = figure_covered(w->busy.p, w->busy.n, &busy, s->begin_ps, s->end_ps);
        s->wait_ps = figure_covered(w->waits.p, w->waits.n, &wait, s->begin_ps, s->end_ps);
        if (w->taken.n)
            s->barrier_ps =
                figure_covered(w->taken.p, w->taken.n, &taken, s->begin_ps, s->end_ps) - s->busy_ps;
        s->input_ps = figure_covered(w->infeeds.p, w->infeeds.n, &input, s->begin_ps, s->until_ps);
    }
}

static bool keep_steps(struct figure_build *b, const struct vec *steps, struct figure_core *core)
{
    core->nsteps = (uint32_t)steps->n;
    core->steps = xp_bump_alloc(&b->bump, (steps->n + 1) * sizeof *core->steps, 16);
    if (core->steps && steps->n)
        memcpy(core->steps, steps->p, steps->n * sizeof *core->steps);
    return core->steps;
}

static enum xp_status walk_core(struct core_walk *w, uint32_t plane)
{
    struct figure_build *b = w->b;
    const struct part_plane *pl = &b->part->planes[plane];
    w->plane = pl;
    w->names = xp_arena_zalloc(b->scratch, pl->nevmeta + 1);
    w->seen = xp_arena_zalloc(b->scratch, (pl->nevmeta + 1) * sizeof *w->seen);
    if (!w->names || !w->seen)
        return figure_busy(b->err);
    for (uint32_t i = 0; i < pl->nevmeta; i++)
        w->names[i] = figure_name_of(part_str(b->part, pl->evmeta[i].name)) |
                      figure_name_of(part_event_name(b->part, pl, i));
    XP_TRY(core_events(w, plane));
    if (!find_input(w) || !find_barriers(w))
        return figure_busy(b->err);
    if (!b->whole)
        fill_steps(w);
    w->core->busy_ps = length(&w->busy);
    w->core->wait_ps = length(&w->waits);
    w->core->input_ps = length(&w->infeeds);
    return keep_steps(b, &w->steps, w->core) ? XP_OK : figure_busy(b->err);
}

/* Of a range: the core's steps that are wholly inside, and all that is known of them. */
static bool steps_inside(const struct figure_build *b, const struct figure_core *core,
                         struct vec *steps)
{
    const struct figure_core *whole = &b->whole->cores[core - b->host->cores];
    for (uint32_t i = 0; i < whole->nsteps; i++) {
        const struct figure_step *from = &whole->steps[i];
        if (from->begin_ps < b->part->range->t0_ps || from->end_ps > b->part->range->t1_ps)
            continue;
        struct figure_step *s = vec_push(steps, sizeof *s);
        if (!s)
            return false;
        *s = *from;
    }
    return true;
}

static enum xp_status find_steps(struct figure_build *b, uint32_t plane,
                                 const struct vec *host_steps, struct core_walk *w)
{
    bool gpu = w->core->kind == FIGURE_GPU;
    enum xp_status st = XP_OK;
    if (b->whole)
        return steps_inside(b, w->core, &w->steps) ? XP_OK : figure_busy(b->err);
    if (b->host->basis == FIGURE_MODULE_RUNS)
        st = figure_module_steps(b, plane, &w->steps);
    else if (b->host->basis == FIGURE_MARKERS && !gpu)
        st = figure_marked_steps(b, plane, &w->steps);
    for (size_t i = 0; st == XP_OK && (gpu || b->host->basis == FIGURE_HOST_EVENTS) &&
                       b->host->basis != FIGURE_MODULE_RUNS && i < host_steps->n;
         i++) {
        struct figure_step *s = vec_push(&w->steps, sizeof *s);
        if (s)
            *s = VEC(*host_steps, struct figure_step)[i];
        else
            st = figure_busy(b->err);
    }
    figure_finish_steps(b, &w->steps, b->host->basis == FIGURE_MARKERS && !gpu);
    return st;
}

static enum xp_status core(struct figure_build *b, uint32_t plane, const struct vec *host_steps,
                           struct figure_core *out)
{
    struct core_walk w = {.b = b, .core = out, .first = out == b->host->cores};
    enum xp_status st = find_steps(b, plane, host_steps, &w);
    if (st == XP_OK)
        st = walk_core(&w, plane);
    vec_free(&w.busy);
    vec_free(&w.waits);
    vec_free(&w.taken);
    vec_free(&w.infeeds);
    vec_free(&w.steps);
    return st;
}

/* --- what there is --- */

static bool list_cores(struct figure_build *b, uint32_t **planes)
{
    struct figure_host *h = b->host;
    uint32_t n = b->part->nplanes;
    h->cores = xp_bump_alloc(&b->bump, (n + 1) * sizeof *h->cores, 16);
    *planes = xp_arena_alloc(b->scratch, (n + 1) * sizeof **planes);
    if (!h->cores || !*planes)
        return false;
    for (int sparse = 0; sparse < 2; sparse++) /* the first one is no SparseCore */
        for (uint32_t i = 0; i < n; i++) {
            const struct derive_plane *dp = &b->d->planes[i];
            bool is_sparse = dp->tpu && figure_is_sparse(dp->name);
            bool core = dp->tensor_core || dp->gpu || is_sparse;
            if (!core || is_sparse != sparse)
                continue;
            struct figure_core *c = &h->cores[h->ncores];
            (*planes)[h->ncores++] = i;
            *c = (struct figure_core){.ordinal = dp->ordinal,
                                      .kind = dp->gpu     ? FIGURE_GPU
                                              : is_sparse ? FIGURE_SPARSE_CORE
                                                          : FIGURE_TENSOR_CORE,
                                      .name = xp_bump_span(&b->bump, dp->name)};
            if (!c->name.p)
                return false;
        }
    return true;
}

static bool find_chip(struct figure_build *b, uint32_t plane)
{
    static const char *const names[] = {"device_type_string", "gpu_device_name", "device_name"};
    const struct part_plane *pl = &b->part->planes[plane];
    struct xspace_stats it = xspace_stats_open(pl->stats, 6);
    struct xspace_stat s;
    while (xspace_stats_next(&it, &s) && !b->host->chip.n)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (xp_span_eq(part_stat_name(b->part, pl, s.metadata_id), xp_span_str(names[k])))
                b->host->chip = xp_bump_span(&b->bump, meta_stat_text(b->part, pl, &s));
    return true;
}

static enum xp_status find_inputs(struct figure_build *b)
{
    struct vec spans = {0};
    bool ok = step_input_spans(b->d, &spans);
    b->host->has_input = spans.n > 0 || (b->whole && b->whole->has_input);
    for (size_t i = 0; ok && i < spans.n; i++) {
        const struct step_span *s = &VEC(spans, struct step_span)[i];
        struct figure_span *to = vec_push(&b->inputs, sizeof *to);
        ok = to;
        if (to)
            *to = (struct figure_span){(int64_t)s->begin_ps, (int64_t)s->end_ps};
    }
    vec_free(&spans);
    b->inputs.n = figure_unite(b->inputs.p, b->inputs.n);
    return ok ? XP_OK : figure_busy(b->err);
}

/* Which kind of steps the host has; host_steps: those that all its cores share. */
static enum xp_status choose_basis(struct figure_build *b, const uint32_t *planes,
                                   struct vec *host_steps)
{
    struct figure_host *h = b->host;
    bool tpu = h->ncores && h->cores[0].kind != FIGURE_GPU;
    struct vec marked = {0};
    enum xp_status st = XP_OK;
    for (uint32_t i = 0; st == XP_OK && i < h->ncores; i++)
        if (h->cores[i].kind != FIGURE_SPARSE_CORE)
            st = figure_count_modules(b, planes[i]);
    if (st == XP_OK && b->whole) {
        h->basis = b->whole->basis;
        h->marker = b->whole->marker;
        h->steps_cut = b->whole->steps_cut;
        return XP_OK;
    }
    if (st == XP_OK && !b->marker.n)
        st = tpu ? figure_marked_steps(b, planes[0], &marked)
                 : figure_host_steps(b, !h->ncores, host_steps);
    if (marked.n || host_steps->n)
        h->basis = FIGURE_MARKERS;
    vec_free(&marked);
    if (st == XP_OK && h->basis == FIGURE_NO_STEPS)
        figure_choose_module(b);
    if (st == XP_OK && h->basis == FIGURE_NO_STEPS && b->marker.n) {
        st = figure_event_steps(b, host_steps);
        if (host_steps->n) {
            h->basis = FIGURE_HOST_EVENTS;
            h->marker = b->marker;
        }
    }
    return st;
}

/* A host without devices: its steps, as if it were one core. */
static bool cpu_core(struct figure_build *b, struct vec *steps)
{
    struct figure_core *c = &b->host->cores[0];
    *c = (struct figure_core){.kind = FIGURE_CPU, .name = XP_SPAN_LIT("/host:CPU")};
    b->host->ncores = 1;
    if (b->whole && b->whole->ncores && !steps_inside(b, c, steps))
        return false;
    if (!b->whole)
        figure_finish_steps(b, steps, false);
    for (size_t i = 0; i < steps->n; i++)
        c->input_ps += VEC(*steps, struct figure_step)[i].input_ps;
    if (steps->n)
        widen(c, VEC(*steps, struct figure_step)[0].begin_ps,
              VEC(*steps, struct figure_step)[steps->n - 1].end_ps);
    b->host->has_input |= c->input_ps > 0;
    return keep_steps(b, steps, c);
}

static int by_key(const void *a, const void *b)
{
    const struct figure_sync *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static bool keep_lists(struct figure_build *b)
{
    struct figure_host *h = b->host;
    h->nmodules = b->modules.n < FIGURE_MODULES_MAX ? (uint32_t)b->modules.n : FIGURE_MODULES_MAX;
    h->nsyncs = (uint32_t)b->syncs.n;
    h->modules = xp_bump_alloc(&b->bump, (h->nmodules + 1) * sizeof *h->modules, 16);
    h->syncs = xp_bump_alloc(&b->bump, (h->nsyncs + 1) * sizeof *h->syncs, 16);
    if (!h->modules || !h->syncs)
        return false;
    if (h->nmodules)
        memcpy(h->modules, b->modules.p, h->nmodules * sizeof *h->modules);
    if (h->nsyncs)
        memcpy(h->syncs, b->syncs.p, h->nsyncs * sizeof *h->syncs);
    qsort(h->syncs, h->nsyncs, sizeof *h->syncs, by_key);
    for (uint32_t i = 0; i < h->nmodules; i++)
        if (xp_span_eq(h->modules[i].name, h->marker))
            h->marker_runs = h->modules[i].runs;
    return true;
}

static enum xp_status build(struct figure_build *b)
{
    struct figure_host *h = b->host;
    struct vec host_steps = {0};
    uint32_t *planes = NULL;
    if (!list_cores(b, &planes))
        return figure_busy(b->err);
    if (h->ncores && !find_chip(b, planes[0]))
        return figure_busy(b->err);
    XP_TRY(find_inputs(b));
    enum xp_status st = choose_basis(b, planes, &host_steps);
    uint32_t ndevices = h->ncores;
    for (uint32_t i = 0; st == XP_OK && i < ndevices; i++)
        st = core(b, planes[i], &host_steps, &h->cores[i]);
    if (st == XP_OK && !ndevices && !cpu_core(b, &host_steps))
        st = figure_busy(b->err);
    if (h->basis == FIGURE_HOST_EVENTS)
        h->marker_runs = b->whole ? b->whole->marker_runs : host_steps.n;
    vec_free(&host_steps);
    if (st == XP_OK && !keep_lists(b))
        st = figure_busy(b->err);
    return st;
}

static enum xp_status look(struct part *p, const struct derive *d, struct xp_span marker,
                           const struct figure_host *whole, struct xp_arena *a,
                           struct figure_host *out, struct xp_error *err)
{
    struct xp_error own = {0};
    struct figure_build b = {
        .part = p, .d = d, .marker = marker, .whole = whole, .host = out, .err = err ? err : &own};
    *out = (struct figure_host){.start_wall_ns = p->start_wall_ns};
    b.scratch = xp_arena_new(NULL);
    xp_bump_init(&b.bump, a);
    enum xp_status st = b.scratch ? build(&b) : figure_busy(b.err);
    xp_arena_free(b.scratch);
    vec_free(&b.inputs);
    vec_free(&b.syncs);
    vec_free(&b.modules);
    return st;
}

static enum xp_status make(struct part *p, const struct derive *d, void **kept,
                           struct xp_error *err)
{
    struct figure_host *h = xp_arena_zalloc(p->arena, sizeof *h);
    if (!h)
        return figure_busy(err);
    XP_TRY(look(p, d, (struct xp_span){0}, NULL, p->arena, h, err));
    *kept = h;
    return XP_OK;
}

enum xp_status figures_of(struct part *p, struct xp_span host, struct xp_span marker,
                          struct xp_arena *a, struct figure_host *out, struct xp_error *err)
{
    const struct derive *d;
    void *kept = NULL;
    if (p->range) {
        struct figure_host whole;
        XP_TRY(figures_of(p->range->whole, host, marker, a, &whole, err));
        XP_TRY(derive_groups_get(p, &d, err));
        XP_TRY(look(p, d, marker, &whole, a, out, err));
    } else if (marker.n) {
        XP_TRY(derive_groups_get(p, &d, err));
        XP_TRY(look(p, d, marker, NULL, a, out, err));
    } else {
        XP_TRY(derive_keep(p, DERIVE_KEPT_FIGURES, make, &kept, err));
        *out = *(const struct figure_host *)kept;
    }
    out->name = host;
    return XP_OK;
}
