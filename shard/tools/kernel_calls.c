#include "shard/tools/kernel_calls.h"

#include <stdlib.h>

#include "shard/tools/kernel_inside.h"
#include "shard/tools/profile.h"

enum { CATEGORY, PROGRAM, SOURCE, STACK, TF_OP, NAMES };
static const char *const names[NAMES] = {"hlo_category", "program_id", "source", "source_stack",
                                         "tf_op"};

struct finder {
    const struct part *p;
    struct xp_arena *a;
    struct xp_strpool keys; /* program and op -> kernel */
    struct kernel_calls *out;
    uint32_t cap;
    size_t capruns;
};

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the list of kernels");
}

/* "%matmul.1 = f32[8]{0} custom-call(...)": matmul.1. */
static struct xp_span op_of(const struct part *p, const struct part_evmeta *m)
{
    struct xp_span s = part_str(p, m->display_name);
    if (s.n)
        return s;
    s = part_str(p, m->name);
    const uint8_t *end = s.n ? memchr(s.p, ' ', s.n) : NULL;
    if (s.n && s.p[0] == '%' && end)
        s = xp_span_of(s.p + 1, (size_t)(end - s.p) - 1);
    return s;
}

bool kernel_is_call(struct xp_span hlo, struct xp_span category)
{
    return xp_span_has(hlo, XP_SPAN_LIT(" custom-call(")) ||
           xp_span_eq(category, XP_SPAN_LIT("custom-call"));
}

static struct xp_span target_of(struct xp_span hlo)
{
    static const char key[] = "custom_call_target=\"";
    const uint8_t *at = hlo.n ? memmem(hlo.p, hlo.n, key, sizeof key - 1) : NULL;
    if (!at)
        return (struct xp_span){0};
    at += sizeof key - 1;
    const uint8_t *end = memchr(at, '"', (size_t)(hlo.p + hlo.n - at));
    return end ? xp_span_of(at, (size_t)(end - at)) : (struct xp_span){0};
}

struct meta {
    struct xp_span category, source, stack, tf_op;
    uint64_t program;
    bool has_program;
};

static struct xp_span kept(struct finder *f, const struct value *v)
{
    uint8_t *p = v->type == VALUE_TEXT ? xp_arena_alloc(f->a, v->text.n + 1) : NULL;
    if (!p)
        return (struct xp_span){0};
    if (v->text.n)
        memcpy(p, v->text.p, v->text.n);
    return xp_span_of(p, v->text.n);
}

static enum xp_status read_meta(struct finder *f, struct values_eye *eye, uint32_t name,
                                struct meta *m, struct xp_error *err)
{
    struct value v;
    *m = (struct meta){0};
    XP_TRY(values_of_evmeta(eye, name, err));
    while (values_next(eye, &v)) {
        struct xp_span *to[NAMES] = {[CATEGORY] = &m->category,
                                     [SOURCE] = &m->source,
                                     [STACK] = &m->stack,
                                     [TF_OP] = &m->tf_op};
        if (v.which == PROGRAM) {
            m->program = value_u64(&v);
            m->has_program = true;
        } else {
            *to[v.which] = kept(f, &v);
        }
    }
    return XP_OK;
}

static bool grow_kernels(struct finder *f)
{
    struct kernel_calls *c = f->out;
    if (c->n < f->cap)
        return true;
    uint32_t cap = f->cap ? 2 * f->cap : 64;
    struct kernel_call *v = xp_arena_alloc(f->a, cap * sizeof *v);
    if (!v)
        return false;
    if (c->n)
        memcpy(v, c->kernels, c->n * sizeof *v);
    c->kernels = v;
    f->cap = cap;
    return true;
}

/* Its number, from 1; 0: the event's name is no kernel's. */
static enum xp_status kernel_of(struct finder *f, struct values_eye *eye,
                                const struct part_plane *pl, uint32_t name, uint32_t *number,
                                struct xp_error *err)
{
    struct meta m;
    const struct part_evmeta *em = &pl->evmeta[name];
    struct xp_span hlo = part_str(f->p, em->name), op = op_of(f->p, em);
    XP_TRY(read_meta(f, eye, name, &m, err));
    *number = 0;
    if (!kernel_is_call(hlo, m.category))
        return XP_OK;
    uint8_t *key = xp_arena_alloc(f->a, sizeof m.program + 1 + op.n);
    if (!key)
        return no_memory(err);
    memcpy(key, &m.program, sizeof m.program);
    key[sizeof m.program] = m.has_program;
    if (op.n)
        memcpy(key + sizeof m.program + 1, op.p, op.n);
    *number = xp_strpool_add(&f->keys, xp_span_of(key, sizeof m.program + 1 + op.n));
    if (*number == XP_STRPOOL_FULL || !grow_kernels(f))
        return no_memory(err);
    if (*number <= f->out->n)
        return XP_OK;
    f->out->kernels[f->out->n++] = (struct kernel_call){.op = op,
                                                        .program = m.program,
                                                        .has_program = m.has_program,
                                                        .target = target_of(hlo),
                                                        .source = m.source,
                                                        .stack = m.stack,
                                                        .tf_op = m.tf_op,
                                                        .first_ps = INT64_MAX};
    return XP_OK;
}

static bool grow_runs(struct finder *f)
{
    struct kernel_calls *c = f->out;
    if (c->nruns < f->capruns)
        return true;
    size_t cap = f->capruns ? 2 * f->capruns : 256;
    struct kernel_run *v = xp_arena_alloc(f->a, cap * sizeof *v);
    if (!v)
        return false;
    if (c->nruns)
        memcpy(v, c->runs, c->nruns * sizeof *v);
    c->runs = v;
    f->capruns = cap;
    return true;
}

static bool find_runs(struct finder *f, const struct part_plane *pl, const struct part_line *l,
                      const uint32_t *number)
{
    struct lane_event ev[LANE_BLOCK];
    size_t got;
    for (uint32_t i = 0; i < l->nlanes; i++) {
        struct lane_cursor c;
        lane_seek(&c, l->lanes[i], INT64_MIN);
        while ((got = lane_next_block(&c, ev)))
            for (size_t k = 0; k < got; k++) {
                uint32_t kernel = ev[k].name < pl->nevmeta ? number[ev[k].name] : 0;
                int64_t begin = ev[k].begin_ps + l->base_ps;
                if (!kernel)
                    continue;
                if (!grow_runs(f))
                    return false;
                f->out->runs[f->out->nruns++] =
                    (struct kernel_run){.kernel = kernel - 1,
                                        .plane = (uint32_t)(pl - f->p->planes),
                                        .begin_ps = begin,
                                        .end_ps = ev[k].end_ps + l->base_ps,
                                        .begins = part_begins(f->p, ev[k].at, begin)};
            }
    }
    return true;
}

static enum xp_status find_in_plane(struct finder *f, const struct part_plane *pl,
                                    struct xp_error *err)
{
    struct values_eye eye;
    uint32_t *number = xp_arena_zalloc(f->a, ((size_t)pl->nevmeta + 1) * sizeof *number);
    bool *used = xp_arena_zalloc(f->a, (size_t)pl->nevmeta + 1);
    const struct part_line *ops = NULL;
    if (!number || !used)
        return no_memory(err);
    for (uint32_t i = 0; i < pl->nlines && !ops; i++) {
        const struct part_line *l = &f->p->lines[pl->first_line + i];
        if (l->nevents && xp_span_eq(part_str(f->p, l->name), XP_SPAN_LIT("XLA Ops")))
            ops = l;
    }
    if (!ops)
        return XP_OK;
    for (uint32_t i = 0; i < ops->nlanes; i++) {
        uint32_t of[LANE_BLOCK];
        size_t got;
        for (uint64_t b = 0; (got = lane_names(ops->lanes[i], b, of)); b++)
            for (size_t k = 0; k < got; k++)
                if (of[k] < pl->nevmeta)
                    used[of[k]] = true;
    }
    values_open(&eye, f->p, pl, names, NAMES, f->a);
    for (uint32_t i = 0; i < pl->nevmeta; i++)
        if (used[i])
            XP_TRY(kernel_of(f, &eye, pl, i, &number[i], err));
    return find_runs(f, pl, ops, number) ? XP_OK : no_memory(err);
}

static int by_begin(const void *x, const void *y)
{
    const struct kernel_run *a = x, *b = y;
    if (a->begin_ps != b->begin_ps)
        return a->begin_ps < b->begin_ps ? -1 : 1;
    if (a->plane != b->plane)
        return a->plane < b->plane ? -1 : 1;
    return (a->end_ps > b->end_ps) - (a->end_ps < b->end_ps);
}

static void count_run(const struct part *p, struct kernel_call *k, const struct kernel_run *r)
{
    const struct part_plane *pl = &p->planes[r->plane];
    int64_t took = r->end_ps - r->begin_ps;
    k->time_ps = kernel_sum(k->time_ps, took);
    k->recorded += kernel_worth(r->has) > 0;
    k->best = kernel_worth(r->has) > kernel_worth(k->best) ? r->has : k->best;
    if (r->begin_ps < k->first_ps) {
        k->first_ps = r->begin_ps;
        k->first_duration_ps = took;
        k->first_plane = profile_plane_name(p, pl);
    }
    if (!r->begins)
        return;
    k->least_ps = k->runs == 0 || took < k->least_ps ? took : k->least_ps;
    k->most_ps = took > k->most_ps ? took : k->most_ps;
    k->begun_ps = kernel_sum(k->begun_ps, took);
    k->runs++;
}

enum xp_status kernel_calls_find(const struct part *p, struct xp_arena *a, struct kernel_calls *out,
                                 struct xp_error *err)
{
    struct finder f = {.p = p, .a = a, .out = out};
    *out = (struct kernel_calls){0};
    if (!xp_strpool_init(&f.keys, a))
        return no_memory(err);
    for (uint32_t i = 0; i < p->nplanes; i++)
        if (profile_is_tpu(profile_plane_name(p, &p->planes[i]))) {
            out->tpu = true;
            XP_TRY(find_in_plane(&f, &p->planes[i], err));
        }
    if (out->nruns)
        qsort(out->runs, out->nruns, sizeof *out->runs, by_begin);
    if (!kernel_calls_tell(p, out, a))
        return no_memory(err);
    for (size_t i = 0; i < out->nruns; i++)
        count_run(p, &out->kernels[out->runs[i].kernel], &out->runs[i]);
    return XP_OK;
}

/* --- which of them --- */

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

struct xp_span kernel_base_name(struct xp_span op)
{
    size_t n = op.n;
    while (n && is_digit(op.p[n - 1]))
        n--;
    return n > 1 && n < op.n && op.p[n - 1] == '.' ? xp_span_of(op.p, n - 1) : op;
}

/* Digits alone, and not too many. */
static bool whole(struct xp_span s, uint64_t *v)
{
    *v = 0;
    if (s.n == 0 || s.n > 20)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!is_digit(s.p[i]) || __builtin_mul_overflow(*v, 10, v) ||
            __builtin_add_overflow(*v, s.p[i] - '0', v))
            return false;
    return true;
}

enum xp_status kernel_ask_of(const struct tool_args *args, struct kernel_ask *ask,
                             struct xp_error *err)
{
    struct xp_span v;
    uint64_t program;
    *ask = (struct kernel_ask){0};
    if (tool_arg(args, "kernel", &v))
        ask->kernel = v;
    if (!ask->kernel.n && tool_arg(args, "prefer", &v) && v.n) {
        ask->kernel = v;
        ask->soft = true;
    }
    if (tool_arg(args, "on", &v))
        ask->host = v;
    if (tool_arg(args, "program_id", &v) && v.n) {
        if (!whole(v, &program))
            return xp_fail(err, XP_BAD_REQUEST, 0, "program_id is the number of a program");
        ask->program = v;
    }
    if (tool_arg(args, "occurrence", &v) && v.n && (!whole(v, &ask->run) || ask->run == 0))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "occurrence is the number of a run of the kernel, from 1");
    return XP_OK;
}

/* 0: not this one; 1: a name like it; 2: this name. */
static int fits(const struct kernel_call *k, const struct kernel_ask *ask)
{
    uint64_t program = 0;
    if (ask->program.n && (!whole(ask->program, &program) || program != k->program))
        return 0;
    if (!ask->kernel.n || xp_span_eq(k->op, ask->kernel))
        return 2;
    return xp_span_eq(kernel_base_name(k->op), kernel_base_name(ask->kernel));
}

static bool better(const struct kernel_call *x, const struct kernel_call *y)
{
    if (kernel_worth(x->best) != kernel_worth(y->best))
        return kernel_worth(x->best) > kernel_worth(y->best);
    return x->time_ps > y->time_ps;
}

static int by_time(const void *x, const void *y, void *runs)
{
    size_t i = *(const size_t *)x, k = *(const size_t *)y;
    const struct kernel_run *a = &((const struct kernel_run *)runs)[i],
                            *b = &((const struct kernel_run *)runs)[k];
    int64_t d = a->end_ps - a->begin_ps, e = b->end_ps - b->begin_ps;
    if (d != e)
        return d < e ? -1 : 1;
    return (i > k) - (i < k);
}

static void choose_run(const struct kernel_calls *c, uint64_t asked, struct xp_arena *a,
                       struct kernel_choice *out)
{
    size_t n = 0, *v = xp_arena_alloc(a, (c->nruns + 1) * sizeof *v);
    uint64_t number = 0;
    for (size_t i = 0; i < c->nruns; i++) {
        if (c->runs[i].kernel != out->kernel)
            continue;
        if (++number == asked) {
            out->run = i;
            out->found = true;
        }
        if (v && kernel_worth(c->runs[i].has) == kernel_worth(c->kernels[out->kernel].best))
            v[n++] = i;
    }
    out->of = number;
    out->number = asked;
    if (asked || !n)
        return;
    qsort_r(v, n, sizeof *v, by_time, c->runs);
    out->run = v[(n - 1) / 2];
    out->found = true;
    for (size_t i = 0; i <= out->run; i++)
        out->number += c->runs[i].kernel == out->kernel;
}

static void choose(const struct kernel_calls *c, const struct kernel_ask *ask, bool here,
                   struct xp_arena *a, struct kernel_choice *out)
{
    int best = 0;
    *out = (struct kernel_choice){0};
    for (uint32_t i = 0; here && i < c->n; i++) {
        int fit = fits(&c->kernels[i], ask);
        if (fit > best || (fit == best && best && better(&c->kernels[i], &c->kernels[out->kernel])))
            out->kernel = i;
        best = fit > best ? fit : best;
    }
    if (!best)
        return;
    out->fit = (uint8_t)best;
    choose_run(c, ask->run, a, out);
}

void kernel_calls_choose(const struct kernel_calls *c, const struct kernel_ask *ask, bool here,
                         struct xp_arena *a, struct kernel_choice *out)
{
    struct kernel_ask less = *ask;
    choose(c, ask, here, a, out);
    if (out->found || !ask->soft)
        return;
    less.run = 0;
    choose(c, &less, here, a, out);
    if (!out->found)
        choose(c, &less, true, a, out);
    less.program = (struct xp_span){0};
    if (!out->found)
        choose(c, &less, true, a, out);
    out->run_other = out->found;
    if (out->found)
        return;
    choose(c, &(struct kernel_ask){.soft = true}, true, a, out);
    out->fit = 0;
}
