/* How the server puts requests into batches: TensorFlow Serving's own counters, of which a snapshot
 * is taken at the begin and at the end of a profile. The last one counts: at the begin the server
 * may not have set them yet. XProf takes no plane with more or fewer than two. */
#include <stdlib.h>

#include "shard/tools/inference_int.h"

#define PREFIX "/tensorflow/serving/batching/"

static const char *const params[INFERENCE_PARAMS] = {
    [INFERENCE_THREADS] = "num_batch_threads", [INFERENCE_TIMEOUT] = "batch_timeout_micros",
    [INFERENCE_MAX_SIZE] = "max_batch_size",   [INFERENCE_MAX_ENQUEUED] = "max_enqueued_batches",
    [INFERENCE_SIZES] = "allowed_batch_sizes",
};

/* The value of `key`; false when the label is another, or no pair. */
static bool label(struct xp_span s, const char *key, struct xp_span *value)
{
    struct xp_span k = xp_span_str(key);
    if (!xp_span_starts(s, k))
        return false;
    *value = xp_span_of(s.p + k.n, s.n - k.n);
    return !memchr(value->p, '=', value->n);
}

/* The model of "param{model_name=M, op_name=O}". */
static bool model_of_param(struct xp_span s, struct xp_span *model)
{
    const uint8_t *from = s.n ? memchr(s.p, '{', s.n) : NULL;
    const uint8_t *to = s.n ? memrchr(s.p, '}', s.n) : NULL;
    if (!from || !to || to <= from)
        return false;
    for (from++; from; from = from ? from + 2 : NULL) {
        const uint8_t *end = memmem(from, (size_t)(to - from), ", ", 2);
        if (label(xp_span_of(from, (size_t)((end ? end : to) - from)), "model_name=", model))
            return true;
        from = end;
    }
    return false;
}

/* "M:17" is version 17 of M; what follows the colon must be a number. */
static bool model_without_version(struct xp_span id, struct xp_span *model)
{
    const uint8_t *colon = id.n ? memrchr(id.p, ':', id.n) : NULL;
    *model = id;
    if (!colon)
        return true;
    const uint8_t *p = colon + 1, *end = id.p + id.n;
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    if (p == end || end - p > 18)
        return false;
    for (; p < end; p++)
        if (*p < '0' || *p > '9')
            return false;
    *model = xp_span_of(id.p, (size_t)(colon - id.p));
    return true;
}

/* --- the snapshot --- */

static bool any(void *ctx, const struct lane_event *ev)
{
    (void)ctx, (void)ev;
    return true;
}

/* How many there are; *at: the last. */
static size_t last_snapshot(const struct inf_host *h, const struct part_plane *pl, uint64_t *at)
{
    struct lane_event *events;
    struct xp_error err;
    size_t n;
    if (!pl->nlines || profile_events(&h->part->lines[pl->first_line], any, NULL, h->inf->a,
                                      &events, &n, &err) != XP_OK)
        return 0;
    if (n)
        *at = events[n - 1].at;
    return n;
}

const struct inference_params *inference_params_of(const struct inference *inf, int32_t model)
{
    const struct inference_params *v = inf->params.p;
    for (size_t i = 0; i < inf->params.n; i++)
        if (v[i].model == model)
            return &v[i];
    return NULL;
}

struct inference_params *inference_params_at(struct inference *inf, int32_t model)
{
    const struct inference_params *there = inference_params_of(inf, model);
    if (there)
        return &VEC(inf->params,
                    struct inference_params)[there - VEC(inf->params, struct inference_params)];
    struct inference_params *v = vec_push(&inf->params, sizeof *v);
    if (v)
        *v = (struct inference_params){.model = model};
    return v;
}

static bool take(struct inference *inf, struct inference_params *p, int which,
                 const struct value *v)
{
    int64_t *const numbers[] = {[INFERENCE_THREADS] = &p->threads,
                                [INFERENCE_TIMEOUT] = &p->timeout_us,
                                [INFERENCE_MAX_SIZE] = &p->max_size,
                                [INFERENCE_MAX_ENQUEUED] = &p->max_enqueued};
    p->told |= 1u << which;
    if (which != INFERENCE_SIZES) {
        *numbers[which] = value_i64(v);
        return true;
    }
    struct xp_span text = v->type == VALUE_TEXT ? v->text : (struct xp_span){0};
    uint8_t *copy = xp_arena_alloc(inf->a, text.n + 1);
    if (!copy)
        return false;
    if (text.n)
        memcpy(copy, text.p, text.n);
    p->sizes = xp_span_of(copy, text.n);
    return true;
}

static int param_of(struct xp_span name)
{
    int k = 0;
    while (k < INFERENCE_PARAMS && !xp_span_starts(name, xp_span_str(params[k])))
        k++;
    return k;
}

/* A value of the server's model, for each of the profile's that is a version of it. */
static bool take_of_models(struct inference *inf, const char *stat, const struct value *v,
                           bool pair)
{
    struct xp_span name = xp_span_str(stat + sizeof PREFIX - 1), model, base;
    int which = param_of(name);
    if (which == INFERENCE_PARAMS || !model_of_param(name, &model))
        return true;
    for (uint32_t i = 1; i < inf->models.n; i++) {
        if (!model_without_version(xp_strpool_get(&inf->models, i), &base) ||
            !xp_span_eq(base, model))
            continue;
        struct inference_params *p = inference_params_at(inf, (int32_t)i - 1);
        if (!p || !take(inf, p, which, v))
            return false;
        p->pair = pair;
    }
    return true;
}

/* The plane's names of batching parameters from *next on, as many as an eye takes. */
static uint32_t names_from(const struct inf_host *h, const struct part_plane *pl, uint32_t *next,
                           const char **names)
{
    uint32_t n = 0;
    for (; *next < pl->nstatmeta && n < VALUES_NAMES_MAX; (*next)++) {
        struct xp_span name = part_str(h->part, pl->statmeta[*next].name);
        char *copy;
        if (!xp_span_starts(name, XP_SPAN_LIT(PREFIX)) ||
            !(copy = xp_arena_zalloc(h->inf->a, name.n + 1)))
            continue;
        memcpy(copy, name.p, name.n);
        names[n++] = copy;
    }
    return n;
}

enum xp_status inference_params(struct inf_host *h, struct xp_error *err)
{
    const struct part_plane *pl = profile_plane(h->part, "/host:tfstreamz");
    const char *names[VALUES_NAMES_MAX];
    uint32_t next = 0, n;
    uint64_t at;
    size_t snapshots = pl ? last_snapshot(h, pl, &at) : 0;
    if (!snapshots)
        return XP_OK;
    while ((n = names_from(h, pl, &next, names))) {
        struct values_eye eye;
        struct value v;
        values_open(&eye, h->part, pl, names, n, h->inf->a);
        XP_TRY(values_of_event(&eye, at, err));
        while (values_next(&eye, &v))
            if (!take_of_models(h->inf, names[v.which], &v, snapshots == 2))
                return inference_busy(err);
    }
    return XP_OK;
}
