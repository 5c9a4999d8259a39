#include <stdlib.h>

#include "shard/stats/steps_int.h"

/* A step over its cores. Means are of whole picoseconds, cut off, as XProf's are. */

static double ms(uint64_t ps)
{
    return (double)ps / 1e9;
}

struct stat {
    uint64_t n, sum, min, max;
};

static void stat_add(struct stat *s, uint64_t v)
{
    s->min = !s->n || v < s->min ? v : s->min;
    s->max = !s->n || v > s->max ? v : s->max;
    s->sum += v;
    s->n++;
}

static double stat_mean_ms(const struct stat *s)
{
    return s->n ? ms((uint64_t)((double)s->sum / (double)s->n)) : 0;
}

/* --- collectives: what the fastest core needs is the work, the rest is waiting for it --- */

struct collective {
    uint64_t id, ps;
};

static int by_id(const void *a, const void *b)
{
    const struct collective *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->ps > y->ps) - (x->ps < y->ps);
}

static uint64_t fastest_ps(const struct collective *v, size_t n, uint64_t id)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (v[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && v[lo].id == id ? v[lo].ps : 0;
}

static uint64_t collective_ps(const struct op_collective *c)
{
    return step_time(c->end_ps) - step_time(c->begin_ps);
}

static bool collectives(const struct step *s, struct step_details *out)
{
    size_t n = 0, at = 0;
    for (uint32_t i = 0; i < s->ncores; i++)
        n += s->cores[i].ops ? s->cores[i].ops->ncollectives : 0;
    struct collective *v = n ? malloc(n * sizeof *v) : NULL;
    if (n && !v)
        return false;
    for (uint32_t i = 0; n && i < s->ncores; i++) {
        const struct op_step *ops = s->cores[i].ops;
        for (uint32_t k = 0; ops && k < ops->ncollectives; k++)
            v[at++] = (struct collective){ops->collectives[k].unique_id,
                                          collective_ps(&ops->collectives[k])};
    }
    if (n)
        qsort(v, n, sizeof *v, by_id);
    uint64_t most = 0;
    for (uint32_t i = 0; n && i < s->ncores; i++) {
        const struct op_step *ops = s->cores[i].ops;
        uint64_t work = 0, sync = 0;
        for (uint32_t k = 0; ops && !s->cores[i].sparse && k < ops->ncollectives; k++) {
            uint64_t least = fastest_ps(v, n, ops->collectives[k].unique_id);
            work += least;
            sync += collective_ps(&ops->collectives[k]) - least;
        }
        if (work + sync <= most)
            continue;
        most = work + sync;
        out->all_reduce = ms(work);
        out->all_reduce_sync = ms(sync);
    }
    free(v);
    return true;
}

/* --- cores --- */

struct cores {
    struct stat step, outfeed, optimal, transfer, active;
    struct stat sparse_step, sparse_compute, sparse_active, sparse_idle;
    uint64_t infeed, sparse_v0; /* the most */
    double percent_sum;
    uint32_t npercents;
};

static void add_sparse(struct cores *t, const struct step_core *c)
{
    stat_add(&t->sparse_step, c->duration_ps);
    stat_add(&t->sparse_compute, c->duration_ps - c->tpu.idle_ps);
    stat_add(&t->sparse_idle, c->tpu.idle_ps);
    stat_add(&t->sparse_active, c->tpu.active_ps);
}

static void add_percent(struct cores *t, const struct step_core *c, struct step_details *out)
{
    double p = 100.0 * (double)c->tpu.infeed_ps / (double)c->duration_ps;
    if (!t->npercents || p < out->infeed_percent_min)
        out->infeed_percent_min = p;
    if (!t->npercents || p > out->infeed_percent_max)
        out->infeed_percent_max = p;
    t->percent_sum += p;
    t->npercents++;
}

static void add_core(struct cores *t, const struct step_core *c, struct step_details *out)
{
    const struct step_tpu *u = &c->tpu;
    uint64_t host = u->infeed_ps + u->outfeed_ps + u->transfer_ps + u->idle_ps;
    stat_add(&t->step, c->duration_ps);
    stat_add(&t->outfeed, u->outfeed_ps);
    stat_add(&t->transfer, u->transfer_ps);
    stat_add(&t->optimal, c->duration_ps - host - u->sparse_v0_ps);
    stat_add(&t->active, u->active_ps);
    add_percent(t, c, out);
    if (u->sparse_v0_ps > t->sparse_v0)
        t->sparse_v0 = u->sparse_v0_ps;
    if (u->infeed_ps > t->infeed) {
        t->infeed = u->infeed_ps;
        out->most_infeed = c;
    }
}

static void finish(const struct cores *t, struct step_details *out)
{
    out->compute = ms(t->optimal.min);
    out->outfeed = stat_mean_ms(&t->outfeed);
    out->transfer = ms(t->transfer.max);
    out->infeed = ms(t->infeed);
    out->sparse_v0 = ms(t->sparse_v0);
    out->active = stat_mean_ms(&t->active);
    out->infeed_percent = t->npercents ? t->percent_sum / t->npercents : 0;
    out->sparse_step = stat_mean_ms(&t->sparse_step);
    out->sparse_active = stat_mean_ms(&t->sparse_active);
    out->sparse_idle = stat_mean_ms(&t->sparse_idle);
    out->sparse_compute = ms(t->sparse_compute.min);
    double busy = out->compute + out->sparse_v0 + out->infeed + out->outfeed;
    out->idle = t->step.n && ms(t->step.min) > busy ? ms(t->step.min) - busy : 0;
}

enum xp_status step_details_of(const struct step *s, struct step_details *out, struct xp_error *err)
{
    struct cores t = {0};
    *out = (struct step_details){.num = s->ncores ? (int64_t)s->num : -1};
    if (!collectives(s, out))
        return xp_fail(err, XP_BUSY, 0, "no memory left to compare the cores' collectives");
    for (uint32_t i = 0; i < s->ncores; i++) {
        if (s->cores[i].sparse)
            add_sparse(&t, &s->cores[i]);
        else
            add_core(&t, &s->cores[i], out);
    }
    finish(&t, out);
    return XP_OK;
}
