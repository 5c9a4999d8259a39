#include "shard/stats/steps_int.h"

#define DROP_ABOVE 5 /* so many steps are all kept, the ends too */

struct combine {
    const struct op_stats *stats;
    struct xp_arena *a;
    struct xp_error *err;
    struct step_rows *rows; /* one a host that takes part */
    const struct op_host **hosts;
    uint32_t n;
};

static enum xp_status busy(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left to combine the hosts' steps");
}

static bool contains(struct xp_span s, const char *word)
{
    return s.n && memmem(s.p, s.n, word, strlen(word));
}

static bool has_device(const struct op_host *h)
{
    return contains(h->device_type, "GPU") || contains(h->device_type, "TPU");
}

/* --- rows of one host --- */

static enum xp_status event_rows(struct combine *c, const struct op_host *host,
                                 const struct steps_host *s, bool drop_ends, struct step_rows *out)
{
    uint32_t n = s->nsteps, from = drop_ends && n > DROP_ABOVE;
    out->v = xp_arena_alloc(c->a, ((size_t)n + 1) * sizeof *out->v);
    struct step_core *cores = xp_arena_alloc(c->a, ((size_t)n + 1) * sizeof *cores);
    if (!out->v || !cores)
        return busy(c->err);
    out->n = 0;
    for (uint32_t i = from; i < n - from; i++) {
        const struct host_step *h = &s->steps[i];
        cores[i] = (struct step_core){.key = 1,
                                      .host = host,
                                      .begin_ps = h->begin_ps,
                                      .duration_ps = h->duration_ps,
                                      .tpu = {.idle_ps = h->duration_ps}};
        memcpy(cores[i].type_ps, h->type_ps, sizeof h->type_ps);
        out->v[out->n++] = (struct step){(uint32_t)h->group, h->name, &cores[i], 1};
    }
    return XP_OK;
}

static const struct op_host *find_host(const struct op_stats *stats, uint32_t index)
{
    for (uint32_t i = 0; i < stats->nhosts; i++)
        if (stats->hosts[i].index == index)
            return &stats->hosts[i];
    return NULL;
}

/* Hosts without a device take no part where others have one. */
static enum xp_status all_rows(struct combine *c, const struct steps *s, bool drop_ends)
{
    bool device = false;
    for (uint32_t i = 0; i < c->stats->nhosts; i++)
        device |= has_device(&c->stats->hosts[i]);
    for (uint32_t i = 0; i < s->nhosts; i++) {
        const struct op_host *host = find_host(c->stats, s->hosts[i].index);
        if (!host || (s->nhosts > 1 && device && !has_device(host)))
            continue;
        struct step_rows *rows = &c->rows[c->n];
        if (host->ncores)
            XP_TRY(step_tpu_host(host, &s->hosts[i], c->a, rows, c->err));
        else
            XP_TRY(event_rows(c, host, &s->hosts[i], drop_ends, rows));
        c->hosts[c->n++] = host;
    }
    return XP_OK;
}

/* --- all hosts --- */

static struct step_time_span time_of(const struct step *s)
{
    struct step_time_span t = {UINT64_MAX, 0};
    for (uint32_t i = 0; i < s->ncores; i++) {
        uint64_t begin = s->cores[i].begin_ps, end = begin + s->cores[i].duration_ps;
        t.begin_ps = begin < t.begin_ps ? begin : t.begin_ps;
        t.end_ps = end > t.end_ps ? end : t.end_ps;
    }
    return t.begin_ps < t.end_ps ? t : (struct step_time_span){0, 0};
}

static enum xp_status find_common(struct combine *c, uint32_t *begin, uint32_t *common, bool *empty)
{
    size_t nspans = 0;
    uint32_t *first = xp_arena_alloc(c->a, ((size_t)c->n + 1) * sizeof *first);
    for (uint32_t i = 0; i < c->n; i++)
        nspans += c->rows[i].n;
    struct step_time_span *spans = xp_arena_alloc(c->a, (nspans + 1) * sizeof *spans);
    if (!first || !spans || nspans > UINT32_MAX)
        return busy(c->err);
    first[0] = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        first[i + 1] = first[i] + c->rows[i].n;
        for (uint32_t k = 0; k < c->rows[i].n; k++)
            spans[first[i] + k] = time_of(&c->rows[i].v[k]);
    }
    return steps_align(spans, first, c->n, begin, common, empty, c->err);
}

static enum xp_status join_step(struct combine *c, const uint32_t *begin, uint32_t k,
                                struct step *out)
{
    size_t n = 0;
    for (uint32_t i = 0; i < c->n; i++)
        n += c->rows[i].v[begin[i] + k].ncores;
    *out = (struct step){.num = k, .cores = xp_arena_alloc(c->a, (n + 1) * sizeof *out->cores)};
    if (!out->cores)
        return busy(c->err);
    for (uint32_t i = 0; i < c->n; i++) {
        const struct step *s = &c->rows[i].v[begin[i] + k];
        if (!i)
            out->name = s->name;
        for (uint32_t m = 0; m < s->ncores; m++) {
            out->cores[out->ncores] = s->cores[m];
            out->cores[out->ncores++].key += STEP_HOST_KEYS * c->hosts[i]->index;
        }
    }
    return XP_OK;
}

static enum xp_status join_hosts(struct combine *c, struct step_db *out)
{
    uint32_t common = 0;
    uint32_t *begin = xp_arena_alloc(c->a, ((size_t)c->n + 1) * sizeof *begin);
    if (!begin)
        return busy(c->err);
    XP_TRY(find_common(c, begin, &common, &out->empty_intersection));
    out->steps = xp_arena_alloc(c->a, ((size_t)common + 1) * sizeof *out->steps);
    if (!out->steps)
        return busy(c->err);
    for (; out->n < common; out->n++)
        XP_TRY(join_step(c, begin, out->n, &out->steps[out->n]));
    return XP_OK;
}

enum xp_status steps_combine(const struct steps *s, const struct op_stats *stats, bool drop_ends,
                             struct xp_arena *a, struct step_db *out, struct xp_error *err)
{
    struct combine c = {.stats = stats, .a = a, .err = err};
    *out = (struct step_db){0};
    c.rows = xp_arena_alloc(a, ((size_t)s->nhosts + 1) * sizeof *c.rows);
    c.hosts = xp_arena_alloc(a, ((size_t)s->nhosts + 1) * sizeof *c.hosts);
    if (!c.rows || !c.hosts)
        return busy(err);
    for (uint32_t i = 0; i < s->nhosts; i++) {
        out->compute_16_ps += s->hosts[i].compute_16_ps;
        out->compute_32_ps += s->hosts[i].compute_32_ps;
    }
    XP_TRY(all_rows(&c, s, drop_ends));
    if (s->nhosts > 1)
        return join_hosts(&c, out);
    if (c.n) {
        out->steps = c.rows[0].v;
        out->n = c.rows[0].n;
    }
    return XP_OK;
}
