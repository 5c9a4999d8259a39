/* Ids become indices, once all tables are there. */
#include "shard/hlo/hlo_int.h"

/* --- indices over ids --- */

/* By bytes of the id, the lowest first; bytes that all ids share are skipped. Stable, and for any
 * ids in the same time. */
static struct hlo_id *sort_ids(struct hlo_id *ids, struct hlo_id *other, uint32_t n)
{
    uint64_t differ = 0;

    for (uint32_t i = 1; i < n; i++)
        differ |= (uint64_t)(ids[i].id ^ ids[0].id);
    for (int shift = 0; shift < 64; shift += 8) {
        uint32_t at[257] = {0};
        if ((differ >> shift & 0xff) == 0)
            continue;
        uint8_t flip = shift == 56 ? 0x80 : 0; /* negative ids come first */
        for (uint32_t i = 0; i < n; i++)
            at[(((uint64_t)ids[i].id >> shift & 0xff) ^ flip) + 1]++;
        for (int k = 0; k < 256; k++)
            at[k + 1] += at[k];
        for (uint32_t i = 0; i < n; i++)
            other[at[((uint64_t)ids[i].id >> shift & 0xff) ^ flip]++] = ids[i];
        struct hlo_id *swap = ids;
        ids = other;
        other = swap;
    }
    return ids;
}

struct hlo_id *hlo_index_ids(struct hlo_decoder *d, const void *rows, size_t stride, size_t offset,
                             uint32_t n)
{
    struct hlo_id *ids = xp_bump_alloc(&d->bump, ((size_t)n + 1) * sizeof *ids, 16);
    bool sorted = true;

    if (!ids)
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(&ids[i].id, (const uint8_t *)rows + i * stride + offset, sizeof ids[i].id);
        ids[i].at = i;
        sorted = sorted && (i == 0 || ids[i - 1].id <= ids[i].id);
    }
    if (sorted)
        return ids;
    struct hlo_id *other = xp_bump_alloc(&d->bump, (size_t)n * sizeof *ids, 16);
    return other ? sort_ids(ids, other, n) : NULL;
}

uint32_t hlo_find_id(const struct hlo_id *ids, uint32_t n, int64_t id)
{
    uint32_t lo = 0, hi = n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (ids[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && ids[lo].id == id ? lo : n;
}

static uint32_t by_id(const struct hlo_id *ids, uint32_t n, int64_t id)
{
    uint32_t row = hlo_find_id(ids, n, id);
    return row < n ? ids[row].at : HLO_NONE;
}

uint32_t hlo_instr_by_id(const struct hlo_module *m, int64_t id)
{
    return by_id(m->instr_ids, m->ninstrs, id);
}

uint32_t hlo_comp_by_id(const struct hlo_module *m, int64_t id)
{
    return by_id(m->comp_ids, m->ncomps, id);
}

uint32_t hlo_buffer_by_id(const struct hlo_module *m, int64_t id)
{
    return by_id(m->buffer_ids, m->nbuffers, id);
}

uint32_t hlo_instr_by_name(const struct hlo_module *m, struct xp_span name)
{
    for (uint32_t i = 0; i < m->ninstrs; i++)
        if (xp_span_eq(m->instrs[i].name, name))
            return i;
    return HLO_NONE;
}

uint32_t hlo_comp_by_name(const struct hlo_module *m, struct xp_span name)
{
    for (uint32_t i = 0; i < m->ncomps; i++)
        if (xp_span_eq(m->comps[i].name, name))
            return i;
    return HLO_NONE;
}

/* The rows of the index dealt out to their computations: there they are in order as well. */
static bool deal_by_comp(struct hlo_decoder *d)
{
    struct hlo_module *m = d->m;
    uint32_t *next = xp_bump_alloc(&d->bump, ((size_t)m->ncomps + 1) * sizeof *next, 16);

    d->by_comp = xp_bump_alloc(&d->bump, ((size_t)m->ninstrs + 1) * sizeof *d->by_comp, 16);
    if (!next || !d->by_comp)
        return false;
    for (uint32_t i = 0; i < m->ncomps; i++)
        next[i] = m->comps[i].instrs.at;
    for (uint32_t i = 0; i < m->ninstrs; i++) {
        uint32_t at = m->instr_ids[i].at;
        d->by_comp[next[m->instrs[at].comp]++] = at;
    }
    return true;
}

/* Ids are unique in a computation; some writers count anew in each. */
static uint32_t in_comp(const struct hlo_decoder *d, const struct hlo_comp *c, int64_t id)
{
    const struct hlo_instr *instrs = d->m->instrs;
    uint32_t lo = c->instrs.at, end = lo + c->instrs.n, hi = end;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (instrs[d->by_comp[mid]].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < end && instrs[d->by_comp[lo]].id == id ? d->by_comp[lo] : HLO_NONE;
}

/* --- references --- */

/* The ids of a run of ints become a run of refs. */
static bool resolve_run(struct hlo_decoder *d, const struct hlo_comp *c, struct hlo_run *run)
{
    uint32_t n = run->n;
    uint32_t *to = n ? hlo_vec_more(d, &d->refs, n) : NULL;

    if (n && !to)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        int64_t id = d->m->ints[run->at + i];
        to[i] = c ? in_comp(d, c, id) : hlo_comp_by_id(d->m, id);
        d->m->dangling += to[i] == HLO_NONE;
    }
    run->at = d->refs.n - n;
    return true;
}

static bool resolve_instrs(struct hlo_decoder *d)
{
    struct hlo_module *m = d->m;
    for (uint32_t i = 0; i < m->ninstrs; i++) {
        struct hlo_instr *in = &m->instrs[i];
        const struct hlo_comp *c = &m->comps[in->comp];
        if (!resolve_run(d, c, &in->operands) || !resolve_run(d, c, &in->controls) ||
            !resolve_run(d, NULL, &in->called))
            return false;
    }
    return true;
}

/* Calls visit(user, operand's instruction) for each edge, an operand used twice once. */
static void each_edge(struct hlo_module *m, const uint32_t *refs, uint32_t *last, bool fill,
                      uint32_t *user_refs)
{
    memset(last, 0xff, (size_t)m->ninstrs * sizeof *last);
    for (uint32_t i = 0; i < m->ninstrs; i++) {
        const struct hlo_run *ops = &m->instrs[i].operands;
        for (uint32_t k = 0; k < ops->n; k++) {
            uint32_t op = refs[ops->at + k];
            if (op == HLO_NONE || last[op] == i)
                continue;
            last[op] = i;
            if (fill)
                user_refs[m->instrs[op].users.at + m->instrs[op].users.n] = i;
            m->instrs[op].users.n++;
        }
    }
}

static bool make_users(struct hlo_decoder *d)
{
    struct hlo_module *m = d->m;
    uint32_t *last = xp_bump_alloc(&d->bump, (size_t)(m->ninstrs + 1) * sizeof *last, 16);
    uint32_t total = 0;

    if (!last)
        return false;
    each_edge(m, d->refs.p, last, false, NULL);
    for (uint32_t i = 0; i < m->ninstrs; i++) {
        m->instrs[i].users.at = d->refs.n + total;
        total += m->instrs[i].users.n;
        m->instrs[i].users.n = 0;
    }
    if (total && !hlo_vec_more(d, &d->refs, total))
        return false;
    each_edge(m, d->refs.p, last, true, d->refs.p);
    return true;
}

static void find_roots(struct hlo_decoder *d)
{
    struct hlo_module *m = d->m;
    const uint32_t *refs = d->refs.p;

    for (uint32_t i = 0; i < m->ncomps; i++) {
        m->comps[i].root = in_comp(d, &m->comps[i], m->comps[i].root_id);
        m->dangling += m->comps[i].root == HLO_NONE;
    }
    for (uint32_t i = 0; i < m->ninstrs; i++) {
        const struct hlo_instr *in = &m->instrs[i];
        for (uint32_t k = 0; in->opcode == HLO_OP_FUSION && k < in->called.n; k++) {
            uint32_t c = refs[in->called.at + k];
            if (c != HLO_NONE && m->comps[c].fused_by == HLO_NONE)
                m->comps[c].fused_by = i;
        }
    }
}

/* --- the schedule --- */

static enum xp_status one_sequence(struct hlo_decoder *d, struct xp_span entry)
{
    struct xp_span value = {0};
    struct hlo_ints it;
    int64_t id;

    hlo_get_span(entry, 2, &value);
    uint32_t comp = hlo_comp_by_id(d->m, hlo_get_int(entry, 1, 0));
    if (comp == HLO_NONE) {
        d->m->dangling++;
        return XP_OK;
    }
    struct hlo_comp *c = &d->m->comps[comp];
    c->scheduled = true;
    c->schedule = (struct hlo_run){d->refs.n, 0};
    for (it = hlo_ints_open(value, 1); hlo_ints_next(&it, &id); c->schedule.n++) {
        uint32_t *to = hlo_vec_more(d, &d->refs, 1);
        if (!to)
            return hlo_no_room(d);
        *to = in_comp(d, c, id);
        d->m->dangling += *to == HLO_NONE;
    }
    return XP_OK;
}

static enum xp_status read_schedule(struct hlo_decoder *d)
{
    struct xp_span schedule, entry;
    if (!hlo_get_span(d->m->raw, 7, &schedule))
        return XP_OK;
    struct hlo_spans it = hlo_spans_open(schedule, 1);
    while (hlo_spans_next(&it, &entry))
        XP_TRY(one_sequence(d, entry));
    return XP_OK;
}

enum xp_status hlo_resolve(struct hlo_decoder *d)
{
    struct hlo_module *m = d->m;

    m->comp_ids =
        hlo_index_ids(d, m->comps, sizeof *m->comps, offsetof(struct hlo_comp, id), m->ncomps);
    m->instr_ids =
        hlo_index_ids(d, m->instrs, sizeof *m->instrs, offsetof(struct hlo_instr, id), m->ninstrs);
    if (!m->comp_ids || !m->instr_ids || !deal_by_comp(d) || !resolve_instrs(d) || !make_users(d))
        return hlo_no_room(d);
    find_roots(d);
    m->entry = hlo_comp_by_id(m, hlo_get_int(m->raw, 6, 0));
    return read_schedule(d);
}
