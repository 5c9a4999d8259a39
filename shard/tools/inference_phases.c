/* Prefill and decode: which of a server's programs reads prompts, which makes tokens.
 *
 * A profile does not say. Two rules tell, and the report names the one that did:
 *
 *   by name        a program is called so: "prefill" is a word of its name, or "decode" or
 *                  "generate" is (jit_prefill, jit__decode_step); not both. name_words.h says
 *                  what a word is: a decoder is none. If any program of the host is called so,
 *                  names decide for all of them.
 *
 *   by repetition  a request reads its prompt once and makes its tokens one by one. So in a request
 *                  the program that one core ran most often, REPEATS times or more, decodes; of
 *                  those that it ran before, and no more often than once, the one that took longest
 *                  is the prefill. Programs are told apart by their id: one function compiled for
 *                  prompts and for single tokens is two. What most requests of a program say
 * counts.
 *
 * Else neither is known. */
#include <stdlib.h>

#include "shard/stats/name_words.h"
#include "shard/tools/inference_int.h"

#define REPEATS 3

/* --- names --- */

uint8_t inference_phase_of_name(struct xp_span name)
{
    bool prefill = name_says_prefill(name), decode = name_says_decode(name);
    if (prefill == decode)
        return INFERENCE_OTHER;
    return prefill ? INFERENCE_PREFILL : INFERENCE_DECODE;
}

/* --- runs --- */

/* The host's programs are the end of inf->ran. */
static uint32_t program_of(struct inf_host *h, uint32_t name)
{
    struct inference *inf = h->inf;
    uint32_t at;
    if (idmap_get(&h->ran_by, name, &at))
        return at;
    at = (uint32_t)(inf->ran.n - h->first_ran);
    struct inference_program *p = vec_push(&inf->ran, sizeof *p);
    if (!p || !idmap_put(&h->ran_by, name, at))
        return UINT32_MAX;
    *p = (struct inference_program){.name = name, .host = h->host};
    return at;
}

bool inference_add_run(struct inf_host *h, const struct derive_line *dl,
                       const struct derive_event *ev, int64_t group)
{
    const struct part_plane *pl = &h->part->planes[dl->plane];
    if (ev->name >= pl->nevmeta)
        return true;
    uint32_t name = xp_strpool_add(&h->inf->programs, part_str(h->part, pl->evmeta[ev->name].name));
    uint32_t program = name == XP_STRPOOL_FULL ? UINT32_MAX : program_of(h, name);
    struct inf_run *run = program == UINT32_MAX ? NULL : vec_push(&h->runs, sizeof *run);
    if (run)
        *run = (struct inf_run){.group = group,
                                .begin_ps = ev->begin_ps,
                                .end_ps = ev->end_ps > ev->begin_ps ? ev->end_ps : ev->begin_ps,
                                .plane = dl->plane,
                                .program = program};
    return run != NULL;
}

static uint64_t lasted(const struct inf_run *r)
{
    return (uint64_t)r->end_ps - (uint64_t)r->begin_ps;
}

static struct inference_program *programs(const struct inf_host *h)
{
    struct inference_program *all = VEC(h->inf->ran, struct inference_program);
    return all ? all + h->first_ran : NULL;
}

static uint32_t nprograms(const struct inf_host *h)
{
    return (uint32_t)(h->inf->ran.n - h->first_ran);
}

/* A part of the run has the runs that begin in it. */
static bool counts(const struct inf_host *h, const struct inf_run *r)
{
    return inf_in_range(h, r->begin_ps);
}

struct first_core {
    uint32_t plane;
    uint64_t seen, every;
    uint64_t *ps;
};

static bool keep_runs(struct inf_host *h, struct first_core *core)
{
    const struct inf_run *runs = h->runs.p;
    struct inference_program *of = programs(h);
    for (uint32_t k = 0; k < nprograms(h); k++) {
        uint64_t n = of[k].core_runs;
        core[k].every = (n + INFERENCE_RUNS_MAX - 1) / INFERENCE_RUNS_MAX;
        n = n < INFERENCE_RUNS_MAX ? n : INFERENCE_RUNS_MAX;
        of[k].ps = core[k].ps = xp_arena_alloc(h->inf->a, (n + 1) * sizeof *core[k].ps);
        if (!core[k].ps)
            return false;
    }
    for (size_t i = 0; i < h->runs.n; i++) {
        struct first_core *c = &core[runs[i].program];
        if (counts(h, &runs[i]) && runs[i].plane == c->plane && c->seen++ % c->every == 0)
            c->ps[of[runs[i].program].nps++] = lasted(&runs[i]);
    }
    return true;
}

/* How long runs took: all of them together, and those of the first core one by one. */
static bool measure(struct inf_host *h)
{
    const struct inf_run *runs = h->runs.p;
    struct inference_program *of = programs(h);
    struct first_core *core = xp_arena_zalloc(h->inf->a, (nprograms(h) + 1) * sizeof *core);
    if (!core)
        return false;
    for (size_t i = 0; i < h->runs.n; i++) {
        struct inference_program *p = &of[runs[i].program];
        if (!counts(h, &runs[i]))
            continue;
        if (!p->runs++)
            core[runs[i].program].plane = runs[i].plane;
        p->core_runs += core[runs[i].program].plane == runs[i].plane;
        p->total_ps += lasted(&runs[i]);
        if (lasted(&runs[i]) >= p->longest_ps) {
            p->longest_ps = lasted(&runs[i]);
            p->longest_begin_ps = runs[i].begin_ps;
        }
    }
    return keep_runs(h, core);
}

static int run_order(const void *a, const void *b)
{
    const struct inf_run *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->plane != y->plane)
        return x->plane < y->plane ? -1 : 1;
    return (x->begin_ps > y->begin_ps) - (x->begin_ps < y->begin_ps);
}

/* Runs of a group, once they are sorted; *n of them. */
static const struct inf_run *runs_of(const struct inf_host *h, int64_t group, size_t *n)
{
    const struct inf_run *v = h->runs.p;
    size_t lo = 0, hi = h->runs.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (v[mid].group < group)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (hi = lo; hi < h->runs.n && v[hi].group == group; hi++)
        ;
    *n = hi - lo;
    return v ? v + lo : NULL;
}

/* All runs of a request, of its own group and those it led to; false: memory is out. */
static bool gather(const struct inf_host *h, const struct inference_request *r, struct vec *out)
{
    out->n = 0;
    for (uint32_t g = 0; g <= r->nbatches; g++) {
        size_t n;
        const struct inf_run *v = runs_of(h, g ? r->batches[g - 1] : r->group, &n);
        for (size_t i = 0; i < n; i++) {
            struct inf_run *to = vec_push(out, sizeof *to);
            if (!to)
                return false;
            *to = v[i];
        }
    }
    return true;
}

/* --- which does what --- */

static bool by_name(struct inf_host *h)
{
    struct inference_program *of = programs(h);
    bool any = false;
    for (uint32_t k = 0; k < nprograms(h); k++) {
        of[k].phase = inference_phase_of_name(xp_strpool_get(&h->inf->programs, of[k].name));
        of[k].rule = of[k].phase ? INFERENCE_BY_NAME : INFERENCE_UNTOLD;
        any |= of[k].phase != INFERENCE_OTHER;
    }
    return any;
}

struct ballot {
    uint32_t votes[INFERENCE_PHASES];
    uint32_t runs; /* in the request that is looked at */
};

static uint32_t only(const struct vec *runs)
{
    uint32_t plane = UINT32_MAX;
    for (size_t i = 0; i < runs->n; i++) {
        const struct inf_run *r = &VEC(*runs, struct inf_run)[i];
        plane = r->plane < plane ? r->plane : plane;
    }
    return plane;
}

/* Of the programs that ran once before `first`, the one that took longest; NULL: none. */
static const struct inf_run *prompt_of(const struct vec *runs, uint32_t plane, int64_t first,
                                       const struct ballot *b)
{
    const struct inf_run *best = NULL;
    for (size_t i = 0; i < runs->n; i++) {
        const struct inf_run *r = &VEC(*runs, struct inf_run)[i];
        if (r->plane == plane && r->begin_ps < first && b[r->program].runs == 1 &&
            (!best || lasted(r) > lasted(best)))
            best = r;
    }
    return best;
}

/* What one request says. */
static void vote(const struct vec *runs, struct ballot *b)
{
    const struct inf_run *v = runs->p;
    uint32_t plane = only(runs), most = 0;
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < runs->n; i++)
        b[v[i].program].runs += v[i].plane == plane;
    for (size_t i = 0; i < runs->n; i++)
        most = !i || b[v[i].program].runs > b[most].runs ? v[i].program : most;
    bool repeats = runs->n && b[most].runs >= REPEATS;
    for (size_t i = 0; i < runs->n && repeats; i++)
        if (v[i].plane == plane && v[i].program == most && v[i].begin_ps < first)
            first = v[i].begin_ps;
    const struct inf_run *prompt = repeats ? prompt_of(runs, plane, first, b) : NULL;
    for (size_t i = 0; i < runs->n; i++) {
        uint32_t k = v[i].program;
        if (!b[k].runs)
            continue; /* it voted, or ran on other cores only */
        b[k].runs = 0;
        if (prompt && prompt->program == k)
            b[k].votes[INFERENCE_PREFILL]++;
        else
            b[k].votes[repeats && k == most ? INFERENCE_DECODE : INFERENCE_OTHER]++;
    }
}

static bool by_repetition(struct inf_host *h, struct vec *runs)
{
    uint32_t n = nprograms(h);
    struct inference_program *of = programs(h);
    struct ballot *b = xp_arena_zalloc(h->inf->a, (n + 1) * sizeof *b);
    if (!b)
        return false;
    for (size_t i = 0; i < h->requests.n; i++) {
        if (!gather(h, &VEC(h->requests, struct inference_request)[i], runs))
            return false;
        vote(runs, b);
    }
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t *v = b[k].votes;
        uint32_t all = v[INFERENCE_OTHER] + v[INFERENCE_DECODE] + v[INFERENCE_PREFILL];
        for (int phase = INFERENCE_DECODE; phase < INFERENCE_PHASES; phase++)
            if (2 * (uint64_t)v[phase] > all) {
                of[k].phase = (uint8_t)phase;
                of[k].rule = INFERENCE_BY_REPETITION;
            }
    }
    return true;
}

/* --- requests --- */

static bool divide(struct inf_host *h, struct inference_request *r, const struct vec *runs,
                   struct vec *edges)
{
    const struct inference_program *of = programs(h);
    uint64_t part_ps[INFERENCE_PARTS] = {0};
    uint32_t plane = only(runs);
    edges->n = 0;
    for (size_t i = 0; i < runs->n; i++) {
        const struct inf_run *run = &VEC(*runs, struct inf_run)[i];
        uint8_t phase = of[run->program].phase;
        if (!inference_add_edges(edges, run->begin_ps, run->end_ps, (uint8_t)(phase + 1)))
            return false;
        r->decodes += phase == INFERENCE_DECODE && run->plane == plane;
        int64_t until;
        if (phase == INFERENCE_PREFILL && run->end_ps > r->begin_ps &&
            !__builtin_sub_overflow(run->end_ps, r->begin_ps, &until) && until > r->prefilled_ps)
            r->prefilled_ps = until;
    }
    inference_sweep(edges, part_ps);
    for (int k = 0; k < INFERENCE_PHASES; k++)
        r->phase_ps[k] = part_ps[k + 1];
    return true;
}

/* For whose requests programs ran. */
static void serve(struct inf_host *h, const struct inference_request *r, const struct vec *runs)
{
    struct inference_program *of = programs(h);
    if (!inf_request_counts(h, r))
        return;
    for (size_t i = 0; i < runs->n; i++) {
        struct inference_program *p = &of[VEC(*runs, struct inf_run)[i].program];
        if (p->served == INFERENCE_NOBODY) {
            p->served = INFERENCE_ONE_MODEL;
            p->model = r->model;
        } else if (p->model != r->model) {
            p->served = INFERENCE_MODELS;
        }
    }
}

/* Of a part of the run: what ran elsewhere, and for no request of it, is not there. */
static void drop_programs(struct inf_host *h)
{
    struct inference_program *of = programs(h);
    size_t n = 0;
    for (uint32_t k = 0; k < nprograms(h); k++)
        if (of[k].runs || of[k].served)
            of[n++] = of[k];
    h->inf->ran.n = h->first_ran + n;
}

enum xp_status inference_phases(struct inf_host *h, struct xp_error *err)
{
    struct vec runs = {0}, edges = {0};
    bool ok = measure(h);
    if (h->runs.n)
        qsort(h->runs.p, h->runs.n, sizeof(struct inf_run), run_order);
    if (ok && !by_name(h))
        ok = by_repetition(h, &runs);
    for (size_t i = 0; ok && i < h->requests.n; i++) {
        struct inference_request *r = &VEC(h->requests, struct inference_request)[i];
        ok = gather(h, r, &runs) && divide(h, r, &runs, &edges);
        if (ok)
            serve(h, r, &runs);
    }
    if (ok)
        drop_programs(h);
    vec_free(&runs);
    vec_free(&edges);
    return ok ? XP_OK : inference_busy(err);
}
