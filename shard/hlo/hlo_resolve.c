/* Ids become indices, once all tables are there. */
#include "shard/hlo/hlo_int.h"

#include <stdlib.h>

/* --- indices over ids --- */

static int id_cmp(const void *x, const void *y)
{
    const struct hlo_id *a = x, *b = y;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

struct hlo_id *hlo_index_ids(struct hlo_decoder *d, const int64_t *first, size_t stride, uint32_t n)
{
    struct hlo_id *ids = xp_bump_alloc(&d->bump, (n ? n : 1) * sizeof *ids, 16);
    bool sorted = true;

    if (!ids)
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(&ids[i].id, (const uint8_t *)first + i * stride, sizeof ids[i].id);
        ids[i].at = i;
        sorted = sorted && (i == 0 || ids[i - 1].id <= ids[i].id);
    }
    if (!sorted)
        qsort(ids, n, sizeof *ids, id_cmp);
    return ids;
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

/* Ids are unique in a computation; some writers count anew in each. */
static uint32_t in_comp(const struct hlo_module *m, const struct hlo_comp *c, int64_t id)
{
    uint32_t row = hlo_find_id(m->instr_ids, m->ninstrs, id);
    uint32_t lo = row, hi = row;

    while (hi < m->ninstrs && hi - lo < 64 && m->instr_ids[hi].id == id) {
        uint32_t at = m->instr_ids[hi++].at;
        if (at >= c->instrs.at && at - c->instrs.at < c->instrs.n)
            return at;
    }
    if (hi - lo < 64)
        return HLO_NONE;
    for (hi = m->ninstrs; lo < hi;) { /* many computations: the rows of one id are sorted by at */
        uint32_t mid = lo + (hi - lo) / 2;
        const struct hlo_id *r = &m->instr_ids[mid];
        if (r->id < id || (r->id == id && r->at < c->instrs.at))
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == m->ninstrs || m->instr_ids[lo].id != id)
        return HLO_NONE;
    uint32_t at = m->instr_ids[lo].at;
    return at - c->instrs.at < c->instrs.n ? at : HLO_NONE;
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
        to[i] = c ? in_comp(d->m, c, id) : hlo_comp_by_id(d->m, id);
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
        m->comps[i].root = in_comp(m, &m->comps[i], m->comps[i].root_id);
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
        *to = in_comp(d->m, c, id);
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

    m->comp_ids = hlo_index_ids(d, &m->comps->id, sizeof *m->comps, m->ncomps);
    m->instr_ids = hlo_index_ids(d, &m->instrs->id, sizeof *m->instrs, m->ninstrs);
    if (!m->comp_ids || !m->instr_ids || !resolve_instrs(d) || !make_users(d))
        return hlo_no_room(d);
    find_roots(d);
    m->entry = hlo_comp_by_id(m, hlo_get_int(m->raw, 6, 0));
    return read_schedule(d);
}
