#include "lib/base/hash.h"
#include "shard/stats/op_stats_int.h"

static uint64_t hash_of(uint64_t program, struct xp_span name)
{
    return xp_hash_u64(program ^ xp_hash(name));
}

static bool grow(struct op_table *t)
{
    size_t n = t->mask ? (t->mask + 1) * 2 : 256;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < t->ops.n; i++) {
        const struct op_metrics *m = &VEC(t->ops, struct op_metrics)[i];
        size_t at = hash_of(m->program, m->name) & (n - 1);
        while (slots[at])
            at = (at + 1) & (n - 1);
        slots[at] = (uint32_t)i + 1;
    }
    free(t->slots);
    t->slots = slots;
    t->mask = n - 1;
    return true;
}

struct op_metrics *op_table_get(struct op_table *t, uint64_t program, struct xp_span name)
{
    if (t->ops.n * 2 >= t->mask && !grow(t))
        return NULL;
    size_t at = hash_of(program, name) & t->mask;
    for (; t->slots[at]; at = (at + 1) & t->mask) {
        struct op_metrics *m = &VEC(t->ops, struct op_metrics)[t->slots[at] - 1];
        if (m->program == program && xp_span_eq(m->name, name))
            return m;
    }
    struct op_metrics *m = vec_push(&t->ops, sizeof *m);
    if (!m)
        return NULL;
    *m = (struct op_metrics){.program = program, .name = name};
    t->slots[at] = (uint32_t)t->ops.n;
    return m;
}

void op_table_fini(struct op_table *t)
{
    vec_free(&t->ops);
    free(t->slots);
    *t = (struct op_table){0};
}

void op_memory_add(struct op_memory *to, const struct op_memory *from, uint64_t times)
{
    if (!from->known)
        return;
    to->known = true;
    for (int s = 0; s < OP_MEM_SPACES; s++)
        for (int a = 0; a < OP_MEM_ACCESSES; a++)
            to->bytes[s][a] += from->bytes[s][a] * times;
}

void op_add(struct op_metrics *to, const struct op_metrics *from)
{
    to->occurrences += from->occurrences;
    to->time_ps += from->time_ps;
    to->self_ps += from->self_ps;
    to->normalized_ps += from->normalized_ps;
    to->dma_stall_ps += from->dma_stall_ps;
    to->flops += from->flops;
    to->model_flops += from->model_flops;
    to->energy_j += from->energy_j;
    to->bytes += from->bytes;
    to->run_flops += from->run_flops;
    to->run_model_flops += from->run_model_flops;
    to->run_bytes += from->run_bytes;
    to->eager |= from->eager;
    op_memory_add(&to->memory, &from->memory, 1);
}

static void text(struct xp_span *to, struct xp_span from)
{
    if (!to->n)
        *to = from;
}

void op_texts(struct op_metrics *to, const struct op_metrics *from)
{
    text(&to->long_name, from->long_name);
    text(&to->category, from->category);
    text(&to->provenance, from->provenance);
    text(&to->dedup_name, from->dedup_name);
    if (!to->source.file.n && !to->source.stack.n)
        to->source = from->source;
    if (!to->core_type)
        to->core_type = from->core_type;
    if (!to->first_plane.n) {
        to->first_plane = from->first_plane;
        to->first_begin_ps = from->first_begin_ps;
    }
    if (!to->nchildren) {
        to->children = from->children;
        to->nchildren = from->nchildren;
        to->children_total_ps = from->children_total_ps;
    }
}

bool op_add_idle(struct op_table *t, struct op_db *db, uint64_t total_ps, uint64_t op_ps)
{
    struct op_metrics *idle = op_table_get(t, 0, XP_SPAN_LIT("IDLE"));
    if (!idle)
        return false;
    /* A profile whose ops are longer than its time wraps, as XProf's does. */
    idle->category = XP_SPAN_LIT("IDLE");
    idle->time_ps += total_ps - op_ps;
    idle->self_ps += total_ps - op_ps;
    db->total_ps += total_ps;
    db->total_op_ps += op_ps;
    return true;
}
