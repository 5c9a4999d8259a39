#include "shard/tools/inference_facts.h"

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the requests");
}

/* --- writing --- */

static void put_texts(struct facts_out *f, const struct xp_strpool *sp)
{
    facts_u64(f, sp->n - 1);
    for (uint32_t i = 1; i < sp->n; i++)
        facts_text(f, xp_strpool_get(sp, i));
}

static void put_request(struct facts_out *f, const struct inference_request *r)
{
    facts_i64(f, r->group);
    facts_i64(f, r->model);
    facts_i64(f, r->begin_ps);
    facts_i64(f, r->end_ps);
    facts_i64(f, r->delay_ps);
    facts_i64(f, r->size);
    for (int i = 0; i < INFERENCE_PARTS; i++)
        facts_u64(f, r->part_ps[i]);
    for (int i = 0; i < INFERENCE_PHASES; i++)
        facts_u64(f, r->phase_ps[i]);
    facts_i64(f, r->prefilled_ps);
    facts_u64(f, r->decodes);
    facts_u64(f, r->nbatches);
    for (uint32_t i = 0; i < r->nbatches; i++)
        facts_i64(f, r->batches[i]);
}

static void put_batch(struct facts_out *f, const struct inference_batch *b)
{
    facts_i64(f, b->group);
    facts_i64(f, b->model);
    facts_i64(f, b->begin_ps);
    facts_i64(f, b->end_ps);
    facts_i64(f, b->delay_ps);
    facts_i64(f, b->padding);
    facts_i64(f, b->size);
    facts_u64(f, b->device_ps);
}

static void put_params(struct facts_out *f, const struct inference_params *p)
{
    facts_i64(f, p->model);
    facts_i64(f, p->threads);
    facts_i64(f, p->timeout_us);
    facts_i64(f, p->max_size);
    facts_i64(f, p->max_enqueued);
    facts_text(f, p->sizes);
    facts_u64(f, p->told);
    facts_u64(f, p->pair);
}

static void put_program(struct facts_out *f, const struct inference *inf,
                        const struct inference_program *p)
{
    facts_text(f, xp_strpool_get(&inf->programs, p->name));
    facts_u64(f, p->phase);
    facts_u64(f, p->rule);
    facts_u64(f, p->served);
    facts_i64(f, p->model);
    facts_u64(f, p->runs);
    facts_u64(f, p->total_ps);
    facts_u64(f, p->core_runs);
    facts_i64(f, p->longest_begin_ps);
    facts_u64(f, p->longest_ps);
    facts_u64(f, p->nps);
    for (uint32_t i = 0; i < p->nps; i++)
        facts_u64(f, p->ps[i]);
}

static void put_host(struct facts_out *f, const struct inference *inf)
{
    put_texts(f, &inf->models);
    put_texts(f, &inf->patterns);
    facts_u64(f, inf->requests.n);
    for (size_t i = 0; i < inf->requests.n; i++)
        put_request(f, &VEC(inf->requests, struct inference_request)[i]);
    facts_u64(f, inf->batches.n);
    for (size_t i = 0; i < inf->batches.n; i++)
        put_batch(f, &VEC(inf->batches, struct inference_batch)[i]);
    facts_u64(f, inf->tensors.n);
    for (size_t i = 0; i < inf->tensors.n; i++) {
        const struct inference_tensor *t = &VEC(inf->tensors, struct inference_tensor)[i];
        facts_i64(f, t->model);
        facts_u64(f, t->pattern);
        facts_u64(f, t->ps);
    }
    facts_u64(f, inf->params.n);
    for (size_t i = 0; i < inf->params.n; i++)
        put_params(f, &VEC(inf->params, struct inference_params)[i]);
    facts_u64(f, inf->ran.n);
    for (size_t i = 0; i < inf->ran.n; i++)
        put_program(f, inf, &VEC(inf->ran, struct inference_program)[i]);
}

enum xp_status inference_facts_map_any(const struct tool_host *host, const struct tool_args *args,
                                       struct xp_arena *a, struct xp_span *partial,
                                       struct xp_error *err)
{
    struct out nobody = {0}; /* who could cancel it */
    struct inference inf;
    struct facts_out f;
    (void)args;
    if (!inference_init(&inf, a))
        return no_memory(err);
    enum xp_status st = inference_read(&inf, host->part, host->index, &nobody, err);
    if (st == XP_OK)
        st = facts_begin(&f, a, err);
    if (st == XP_OK) {
        put_host(&f, &inf);
        st = facts_end(&f, host, a, partial, err);
    }
    inference_fini(&inf);
    return st;
}

enum xp_status inference_facts_map(const struct tool_host *host, const struct tool_args *args,
                                   struct xp_arena *a, struct xp_span *partial,
                                   struct xp_error *err)
{
    if (!profile_readable(host->part))
        return facts_unreadable(host, a, partial, err);
    return inference_facts_map_any(host, args, a, partial, err);
}

/* --- reading --- */

/* A host's numbers of texts, as the joined ones know them. */
struct texts {
    uint32_t *ids;
    size_t n;
};

static bool get_texts(struct facts *f, struct xp_strpool *sp, struct xp_arena *a, struct texts *t)
{
    t->n = facts_get_count(f) + 1;
    t->ids = xp_arena_zalloc(a, t->n * sizeof *t->ids);
    for (size_t i = 1; t->ids && i < t->n; i++) {
        t->ids[i] = xp_strpool_add(sp, facts_get_text(f));
        if (t->ids[i] == XP_STRPOOL_FULL)
            return false;
    }
    return t->ids != NULL;
}

/* Model k is text k + 1; -1 is none. */
static int32_t get_model(struct facts *f, const struct texts *models)
{
    int64_t model = facts_get_i64(f);
    if (model < 0 || (uint64_t)model + 1 >= models->n)
        return -1;
    return (int32_t)models->ids[model + 1] - 1;
}

static bool get_request(struct facts *f, struct inference *inf, const struct texts *models)
{
    struct inference_request *r = vec_push(&inf->requests, sizeof *r);
    if (!r)
        return false;
    *r = (struct inference_request){.host = f->index, .group = facts_get_i64(f)};
    r->model = get_model(f, models);
    r->begin_ps = facts_get_i64(f);
    r->end_ps = facts_get_i64(f);
    r->delay_ps = facts_get_i64(f);
    r->size = facts_get_i64(f);
    for (int i = 0; i < INFERENCE_PARTS; i++)
        r->part_ps[i] = facts_get_u64(f);
    for (int i = 0; i < INFERENCE_PHASES; i++)
        r->phase_ps[i] = facts_get_u64(f);
    r->prefilled_ps = facts_get_i64(f);
    r->decodes = (uint32_t)facts_get_u64(f);
    size_t n = facts_get_count(f);
    int64_t *batches = n <= UINT32_MAX ? xp_arena_alloc(inf->a, (n + 1) * sizeof *batches) : NULL;
    if (!batches)
        return false;
    for (size_t i = 0; i < n; i++)
        batches[i] = facts_get_i64(f);
    r->batches = batches;
    r->nbatches = (uint32_t)n;
    return true;
}

static bool get_batch(struct facts *f, struct inference *inf, const struct texts *models)
{
    struct inference_batch *b = vec_push(&inf->batches, sizeof *b);
    if (!b)
        return false;
    *b = (struct inference_batch){.host = f->index, .group = facts_get_i64(f)};
    b->model = get_model(f, models);
    b->begin_ps = facts_get_i64(f);
    b->end_ps = facts_get_i64(f);
    b->delay_ps = facts_get_i64(f);
    b->padding = facts_get_i64(f);
    b->size = facts_get_i64(f);
    b->device_ps = facts_get_u64(f);
    return true;
}

static bool get_tensor(struct facts *f, struct inference *inf, const struct texts *models,
                       const struct texts *patterns)
{
    struct inference_tensor *t = vec_push(&inf->tensors, sizeof *t);
    if (!t)
        return false;
    t->model = get_model(f, models);
    uint64_t pattern = facts_get_u64(f);
    t->pattern = pattern < patterns->n ? patterns->ids[pattern] : 0;
    t->ps = facts_get_u64(f);
    return true;
}

/* Of hosts that differ the first counts. */
static bool get_params(struct facts *f, struct inference *inf, const struct texts *models)
{
    struct inference_params got = {.model = get_model(f, models)}, *p;
    got.threads = facts_get_i64(f);
    got.timeout_us = facts_get_i64(f);
    got.max_size = facts_get_i64(f);
    got.max_enqueued = facts_get_i64(f);
    got.sizes = facts_get_text(f);
    got.told = (uint32_t)facts_get_u64(f);
    got.pair = facts_get_u64(f) != 0;
    if (inference_params_of(inf, got.model))
        return true;
    p = inference_params_at(inf, got.model);
    if (p)
        *p = got;
    return p != NULL;
}

static bool get_program(struct facts *f, struct inference *inf, const struct texts *models)
{
    struct inference_program *p = vec_push(&inf->ran, sizeof *p);
    if (!p)
        return false;
    *p = (struct inference_program){.host = f->index};
    p->name = xp_strpool_add(&inf->programs, facts_get_text(f));
    uint64_t phase = facts_get_u64(f), rule = facts_get_u64(f);
    p->phase = phase < INFERENCE_PHASES ? (uint8_t)phase : INFERENCE_OTHER;
    p->rule = rule <= INFERENCE_BY_REPETITION ? (uint8_t)rule : INFERENCE_UNTOLD;
    uint64_t served = facts_get_u64(f);
    p->served = served <= INFERENCE_MODELS ? (uint8_t)served : INFERENCE_NOBODY;
    p->model = get_model(f, models);
    p->runs = facts_get_u64(f);
    p->total_ps = facts_get_u64(f);
    p->core_runs = facts_get_u64(f);
    p->longest_begin_ps = facts_get_i64(f);
    p->longest_ps = facts_get_u64(f);
    size_t n = facts_get_count(f);
    n = n < INFERENCE_RUNS_MAX ? n : INFERENCE_RUNS_MAX;
    uint64_t *ps = xp_arena_alloc(inf->a, (n + 1) * sizeof *ps);
    for (size_t i = 0; ps && i < n; i++)
        ps[i] = facts_get_u64(f);
    p->ps = ps;
    p->nps = (uint32_t)n;
    return ps && p->name != XP_STRPOOL_FULL;
}

static bool get_host(struct inference *inf, struct facts *f)
{
    struct texts models, patterns;
    if (!get_texts(f, &inf->models, inf->a, &models) ||
        !get_texts(f, &inf->patterns, inf->a, &patterns))
        return false;
    for (size_t n = facts_get_count(f); n && !f->bad; n--)
        if (!get_request(f, inf, &models))
            return false;
    for (size_t n = facts_get_count(f); n && !f->bad; n--)
        if (!get_batch(f, inf, &models))
            return false;
    for (size_t n = facts_get_count(f); n && !f->bad; n--)
        if (!get_tensor(f, inf, &models, &patterns))
            return false;
    for (size_t n = facts_get_count(f); n && !f->bad; n--)
        if (!get_params(f, inf, &models))
            return false;
    for (size_t n = facts_get_count(f); n && !f->bad; n--)
        if (!get_program(f, inf, &models))
            return false;
    return true;
}

enum xp_status inference_facts_add(struct inference *inf, struct facts *f, struct xp_error *err)
{
    if (!get_host(inf, f))
        return no_memory(err);
    return facts_ok(f, err);
}
