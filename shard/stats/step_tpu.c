#include <stdlib.h>

#include "shard/stats/steps_int.h"

/* --- which groups all TensorCores of a host have ---
 * SparseCores have no say: their ops belong to the TensorCore's step at that time. */

struct tpu_host {
    const struct op_host *host;
    uint32_t first;  /* cores before it do not count: their steps met none of the next one's */
    int64_t *groups; /* that all cores since then have */
    uint32_t ngroups;
};

static bool counts(const struct op_core *c, const struct op_step *s)
{
    return (s->marked || c->sparse) && (s->ncategories || s->ncollectives);
}

static uint32_t nsteps_that_count(const struct op_core *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->nsteps; i++)
        n += counts(c, &c->steps[i]);
    return n;
}

/* Both ascend by group. */
static void intersect(struct tpu_host *h, const struct op_core *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0, k = 0; i < h->ngroups && k < c->nsteps;) {
        if (!counts(c, &c->steps[k]) || c->steps[k].group < h->groups[i]) {
            k++;
        } else if (c->steps[k].group > h->groups[i]) {
            i++;
        } else {
            h->groups[n++] = h->groups[i++];
            k++;
        }
    }
    h->ngroups = n;
}

static bool find_groups(struct tpu_host *h, struct xp_arena *a)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < h->host->ncores; i++)
        most = h->host->cores[i].nsteps > most ? h->host->cores[i].nsteps : most;
    if (!(h->groups = xp_arena_alloc(a, ((size_t)most + 1) * sizeof *h->groups)))
        return false;
    for (uint32_t i = 0; i < h->host->ncores; i++) {
        const struct op_core *c = &h->host->cores[i];
        if (c->sparse || !nsteps_that_count(c))
            continue;
        if (h->ngroups) {
            intersect(h, c);
            continue;
        }
        h->first = i;
        for (uint32_t k = 0; k < c->nsteps; k++)
            if (counts(c, &c->steps[k]))
                h->groups[h->ngroups++] = c->steps[k].group;
    }
    return true;
}

static const struct op_step *find_step(const struct op_core *c, int64_t group)
{
    uint32_t lo = 0, hi = c->nsteps;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (c->steps[mid].group < group)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < c->nsteps && c->steps[lo].group == group && counts(c, &c->steps[lo]) ? &c->steps[lo]
                                                                                     : NULL;
}

/* --- what a core's step was made of --- */

static bool is(struct xp_span category, const char *name)
{
    return xp_span_eq(category, xp_span_str(name));
}

static void break_down(const struct op_step *s, uint64_t duration_ps, struct step_tpu *t)
{
    uint64_t sum = 0, v0_in = 0, v0_out = 0, v0_wait = 0;
    *t = (struct step_tpu){0};
    for (uint32_t i = 0; i < s->ncategories; i++) {
        const struct op_category_time *c = &s->categories[i];
        sum += c->self_ps;
        if (!(op_kind_of(c->category) & OP_KIND_OFF_DUTY))
            t->active_ps += c->self_ps;
        if (is(c->category, "sparsecorev0 infeed"))
            v0_in = c->self_ps;
        else if (is(c->category, "sparsecorev0 outfeed"))
            v0_out = c->self_ps;
        else if (is(c->category, "sparsecorev0 infeed wait"))
            v0_wait = c->self_ps;
        else if (is(c->category, "infeed"))
            t->infeed_ps += c->self_ps;
        else if (is(c->category, "outfeed"))
            t->outfeed_ps += c->self_ps;
        else if (op_kind_of(c->category) & OP_KIND_HOST_XFER)
            t->transfer_ps += c->self_ps;
    }
    /* What goes out takes as long as what comes in; more than that was waiting. */
    t->sparse_v0_ps = v0_in ? v0_in - (v0_in < v0_out ? v0_in : v0_out) : v0_wait;
    t->idle_ps = duration_ps - sum;
}

static void set_core(const struct tpu_host *h, const struct op_core *c, const struct op_step *ops,
                     uint64_t begin_ps, uint64_t duration_ps, struct step_core *out)
{
    *out = (struct step_core){.key = c->key,
                              .sparse = c->sparse,
                              .host = h->host,
                              .core = c,
                              .ops = ops,
                              .begin_ps = begin_ps,
                              .duration_ps = duration_ps};
    if (c->sparse)
        out->tpu = (struct step_tpu){.idle_ps = duration_ps - ops->op_self_ps,
                                     .active_ps = ops->op_self_ps};
    else
        break_down(ops, duration_ps, &out->tpu);
}

static uint64_t marker_ps(const struct op_step *s)
{
    return step_time(s->end_ps) - step_time(s->begin_ps);
}

static int by_key(const void *a, const void *b)
{
    const struct step_core *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

/* A step lasts as long as the longest of all TensorCores. */
static bool set_step(const struct tpu_host *h, int64_t group, struct xp_arena *a, struct step *s)
{
    const struct op_step *longest = NULL;
    *s = (struct step){.num = (uint32_t)group};
    s->cores = xp_arena_alloc(a, (size_t)(h->host->ncores + 1) * sizeof *s->cores);
    if (!s->cores)
        return false;
    for (uint32_t i = h->first; i < h->host->ncores; i++) {
        const struct op_step *ops = find_step(&h->host->cores[i], group);
        if (ops && !h->host->cores[i].sparse && (!longest || marker_ps(ops) > marker_ps(longest)))
            longest = ops;
    }
    if (!longest || !marker_ps(longest))
        return true;
    for (uint32_t i = h->first; i < h->host->ncores; i++) {
        const struct op_core *c = &h->host->cores[i];
        const struct op_step *ops = find_step(c, group);
        if (ops)
            set_core(h, c, ops, step_time(longest->begin_ps), marker_ps(longest),
                     &s->cores[s->ncores++]);
    }
    qsort(s->cores, s->ncores, sizeof *s->cores, by_key);
    return true;
}

/* --- input that did not come by infeed --- */

static const struct host_input *find_input(const struct steps_host *in, uint32_t group)
{
    uint32_t lo = 0, hi = in->ninputs;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (in->inputs[mid].group < (int64_t)group)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < in->ninputs && in->inputs[lo].group == (int64_t)group ? &in->inputs[lo] : NULL;
}

static enum xp_status attribute_idle(const struct steps_host *in, struct step *s,
                                     struct xp_error *err)
{
    struct step_details d;
    const struct host_input *input = find_input(in, s->num);
    if (!input || !input->ps)
        return XP_OK;
    XP_TRY(step_details_of(s, &d, err));
    double ratio = op_divide((double)input->ps / 1e9, d.idle);
    for (uint32_t i = 0; i < s->ncores; i++) {
        struct step_core *c = &s->cores[i];
        if (c->sparse || c->ops->op_self_ps >= c->duration_ps)
            continue;
        double idle = (double)(c->duration_ps - c->ops->op_self_ps);
        uint64_t infeed = (uint64_t)(idle * (ratio < 1 ? ratio : 1));
        c->tpu.infeed_ps += infeed;
        c->tpu.idle_ps -= infeed;
    }
    return XP_OK;
}

enum xp_status step_tpu_host(const struct op_host *host, const struct steps_host *inputs,
                             struct xp_arena *a, struct step_rows *out, struct xp_error *err)
{
    struct tpu_host h = {.host = host};
    if (!find_groups(&h, a) ||
        !(out->v = xp_arena_alloc(a, ((size_t)h.ngroups + 1) * sizeof *out->v)))
        return xp_fail(err, XP_BUSY, 0, "no memory left to find the cores' steps");
    for (out->n = 0; out->n < h.ngroups; out->n++) {
        struct step *s = &out->v[out->n];
        if (!set_step(&h, h.groups[out->n], a, s))
            return xp_fail(err, XP_BUSY, 0, "no memory left to find the cores' steps");
        XP_TRY(attribute_idle(inputs, s, err));
    }
    return XP_OK;
}
