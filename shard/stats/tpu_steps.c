#include "lib/base/hash.h"
#include "shard/stats/op_tpu_int.h"

struct category_row {
    uint32_t step, category;
    uint64_t self_ps;
};

struct collective_row {
    uint32_t step;
    struct op_collective c;
};

/* --- steps by group --- */

static bool grow(struct tpu_steps *s)
{
    size_t n = s->mask ? (s->mask + 1) * 2 : 64;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < s->steps.n; i++) {
        size_t at = xp_hash_u64((uint64_t)VEC(s->steps, struct op_step)[i].group) & (n - 1);
        while (slots[at])
            at = (at + 1) & (n - 1);
        slots[at] = (uint32_t)i + 1;
    }
    free(s->slots);
    s->slots = slots;
    s->mask = n - 1;
    return true;
}

/* Sets *number; false when memory is out. */
static bool number_of(struct tpu_steps *s, int64_t group, uint32_t *number)
{
    const struct op_step *v = VEC(s->steps, struct op_step);
    if (s->last < s->steps.n && v[s->last].group == group) {
        *number = s->last;
        return true;
    }
    if (s->steps.n * 2 >= s->mask && !grow(s))
        return false;
    size_t at = xp_hash_u64((uint64_t)group) & s->mask;
    for (; s->slots[at]; at = (at + 1) & s->mask)
        if (v[s->slots[at] - 1].group == group) {
            *number = s->last = s->slots[at] - 1;
            return true;
        }
    struct op_step *step = vec_push(&s->steps, sizeof *step);
    if (!step)
        return false;
    *step = (struct op_step){.group = group};
    s->slots[at] = (uint32_t)s->steps.n;
    *number = s->last = (uint32_t)s->steps.n - 1;
    return true;
}

static void sum_program(struct op_step *step, const struct tpu_step_op *op)
{
    bool feed = op->kind & (OP_KIND_INFEED | OP_KIND_OUTFEED);
    if (feed)
        step->feeds_ps += op->time_ps;
    if (op->kind & OP_KIND_INNER)
        return;
    step->flops += op->flops;
    step->model_flops += op->model_flops;
    step->run_flops += op->run_flops;
    step->hbm_bytes += op->hbm_bytes;
    step->bytes += op->bytes;
    op_memory_add(&step->memory, op->memory, op->times);
    if (!feed)
        return;
    step->feeds_flops += op->flops;
    step->feeds_model_flops += op->model_flops;
    step->feeds_bytes += op->bytes;
    op_memory_add(&step->feeds_memory, op->memory, op->times);
}

bool tpu_steps_add(struct tpu_steps *s, int64_t group, const struct tpu_step_op *op)
{
    uint32_t number;
    struct category_row *row;
    if (!number_of(s, group, &number) || !(row = vec_push(&s->categories, sizeof *row)))
        return false;
    *row = (struct category_row){number, op->category, op->self_ps};
    struct op_step *step = &VEC(s->steps, struct op_step)[number];
    step->op_self_ps += op->self_ps;
    sum_program(step, op);
    return true;
}

bool tpu_steps_collective(struct tpu_steps *s, int64_t group, const struct op_collective *c)
{
    uint32_t number;
    struct collective_row *row;
    if (!number_of(s, group, &number) || !(row = vec_push(&s->collectives, sizeof *row)))
        return false;
    *row = (struct collective_row){number, *c};
    return true;
}

bool tpu_steps_mark(struct tpu_steps *s, int64_t group, struct xp_span name, int64_t begin_ps,
                    int64_t end_ps)
{
    uint32_t number;
    if (!number_of(s, group, &number))
        return false;
    struct op_step *step = &VEC(s->steps, struct op_step)[number];
    /* Of several markers the longest counts. */
    if (step->marked &&
        (uint64_t)end_ps - (uint64_t)begin_ps <= (uint64_t)step->end_ps - (uint64_t)step->begin_ps)
        return true;
    step->marked = true;
    step->name = name;
    step->begin_ps = begin_ps;
    step->end_ps = end_ps;
    return true;
}

void tpu_steps_fini(struct tpu_steps *s)
{
    vec_free(&s->steps);
    vec_free(&s->categories);
    vec_free(&s->collectives);
    free(s->slots);
    *s = (struct tpu_steps){0};
}

/* --- to the core --- */

static int by_step(const void *a, const void *b)
{
    const struct category_row *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x->category > y->category) - (x->category < y->category);
}

static int by_collective_step(const void *a, const void *b)
{
    const struct collective_row *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x->c.begin_ps > y->c.begin_ps) - (x->c.begin_ps < y->c.begin_ps);
}

static int by_category(const void *a, const void *b)
{
    const struct op_category_time *x = a, *y = b;
    return xp_span_cmp(x->category, y->category);
}

static int by_group(const void *a, const void *b)
{
    const struct op_step *x = a, *y = b;
    return (x->group > y->group) - (x->group < y->group);
}

static bool keep_categories(struct op_build *b, struct tpu_steps *s, const struct op_metas *metas)
{
    struct category_row *v = VEC(s->categories, struct category_row);
    size_t n = s->categories.n, out = 0;
    if (n)
        qsort(v, n, sizeof *v, by_step);
    for (size_t i = 0; i < n; i++) {
        if (out && !by_step(&v[out - 1], &v[i]))
            v[out - 1].self_ps += v[i].self_ps;
        else
            v[out++] = v[i];
    }
    struct op_category_time *t = xp_bump_alloc(&b->bump, (out + 1) * sizeof *t, 16);
    if (!t)
        return false;
    for (size_t i = 0; i < out; i++) {
        struct op_step *step = &VEC(s->steps, struct op_step)[v[i].step];
        if (!step->ncategories++)
            step->categories = &t[i];
        t[i].self_ps = v[i].self_ps;
        if (!op_text(b, metas->categories[v[i].category], &t[i].category))
            return false;
    }
    for (size_t i = 0; i < s->steps.n; i++) {
        struct op_step *step = &VEC(s->steps, struct op_step)[i];
        if (step->ncategories)
            qsort(step->categories, step->ncategories, sizeof *t, by_category);
    }
    return true;
}

static bool keep_collectives(struct op_build *b, struct tpu_steps *s)
{
    struct collective_row *v = VEC(s->collectives, struct collective_row);
    size_t n = s->collectives.n;
    struct op_collective *c = xp_bump_alloc(&b->bump, (n + 1) * sizeof *c, 16);
    if (!c)
        return false;
    if (n)
        qsort(v, n, sizeof *v, by_collective_step);
    for (size_t i = 0; i < n; i++) {
        struct op_step *step = &VEC(s->steps, struct op_step)[v[i].step];
        if (!step->ncollectives++)
            step->collectives = &c[i];
        c[i] = v[i].c;
    }
    return true;
}

bool tpu_steps_keep(struct op_build *b, struct tpu_steps *s, const struct op_metas *metas,
                    struct op_core *core)
{
    if (!keep_categories(b, s, metas) || !keep_collectives(b, s))
        return false;
    for (size_t i = 0; i < s->steps.n; i++) {
        struct op_step *step = &VEC(s->steps, struct op_step)[i];
        if (step->name.n && !op_text(b, step->name, &step->name))
            return false;
    }
    if (s->steps.n)
        qsort(s->steps.p, s->steps.n, sizeof(struct op_step), by_group);
    return op_keep(b, &s->steps, sizeof(struct op_step), &core->steps, &core->nsteps);
}
