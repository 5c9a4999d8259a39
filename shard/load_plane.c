#include <stdlib.h>

#include "lib/base/hash.h"
#include "lib/base/utf8.h"
#include "shard/load_int.h"

/* --- ids --- */

static uint32_t slot_of(const struct idmap *m, int64_t id)
{
    uint32_t i = (uint32_t)xp_hash_u64((uint64_t)id) & (m->nslots - 1);
    while (m->slots[i].value && m->slots[i].id != id)
        i = (i + 1) & (m->nslots - 1);
    return i;
}

uint32_t idmap_find(const struct idmap *m, int64_t id)
{
    if ((uint64_t)id < m->ndirect && m->direct[id])
        return m->direct[id] - 1;
    if (!m->used)
        return IDMAP_NONE;
    const struct idmap_slot *s = &m->slots[slot_of(m, id)];
    return s->value ? s->value - 1 : IDMAP_NONE;
}

static bool grow_slots(struct idmap *m, struct xp_arena *a)
{
    struct idmap old = *m;
    uint64_t n = old.nslots ? (uint64_t)old.nslots * 2 : 64;
    if (n > UINT32_MAX)
        return false;
    m->slots = xp_arena_zalloc(a, n * sizeof *m->slots);
    if (!m->slots)
        return false;
    m->nslots = (uint32_t)n;
    for (uint32_t i = 0; i < old.nslots; i++)
        if (old.slots[i].value)
            m->slots[slot_of(m, old.slots[i].id)] = old.slots[i];
    return true;
}

static bool grow_direct(struct idmap *m, struct xp_arena *a, uint64_t id)
{
    uint64_t n = m->ndirect ? m->ndirect : 256;
    while (n <= id)
        n *= 2;
    uint32_t *direct = xp_arena_zalloc(a, n * sizeof *direct);
    if (!direct)
        return false;
    if (m->ndirect)
        memcpy(direct, m->direct, m->ndirect * sizeof *direct);
    m->direct = direct;
    m->ndirect = n;
    return true;
}

bool idmap_set(struct idmap *m, struct xp_arena *a, int64_t id, uint32_t value)
{
    /* An id is small while the array stays about as large as what it holds. */
    bool known = m->used && m->slots[slot_of(m, id)].value;
    if (!known && (uint64_t)id < 16384 + 4 * (uint64_t)value) {
        if ((uint64_t)id >= m->ndirect && !grow_direct(m, a, (uint64_t)id))
            return false;
        m->direct[id] = value + 1;
        return true;
    }
    if ((uint64_t)m->used * 2 >= m->nslots && !grow_slots(m, a))
        return false;
    struct idmap_slot *s = &m->slots[slot_of(m, id)];
    m->used += s->value == 0;
    *s = (struct idmap_slot){id, value + 1};
    return true;
}

/* --- metadata --- */

bool plane_job_open(struct plane_job *pj, struct load *l)
{
    pj->scratch = xp_arena_new(l->budget);
    if (!pj->scratch)
        return false;
    pthread_mutex_init(&pj->strays_lock, NULL);
    xp_buf_init(&pj->stats_text, PART_PLANE_STATS_MAX);
    pj->kinds = xp_arena_alloc(pj->scratch, KINDS_MIN);
    if (!pj->kinds)
        return false;
    memset(pj->kinds, STAT_NOT_KEPT, KINDS_MIN);
    return true;
}

void plane_job_close(struct plane_job *pj)
{
    if (!pj->scratch)
        return;
    pthread_mutex_destroy(&pj->strays_lock);
    xp_buf_fini(&pj->stats_text);
    xp_arena_free(pj->scratch);
    pj->scratch = NULL;
}

static bool grow(struct xp_arena *a, void **p, uint32_t *cap, uint32_t n, size_t item)
{
    if (n < *cap)
        return true;
    uint64_t more = *cap ? (uint64_t)*cap * 2 : 64;
    if (more >= IDMAP_NONE)
        return false;
    void *q = xp_arena_alloc(a, more * item);
    if (!q)
        return false;
    if (n)
        memcpy(q, *p, n * item);
    *p = q;
    *cap = (uint32_t)more;
    return true;
}

static uint32_t intern(struct load *l, struct xp_span s, uint64_t at)
{
    if (!s.n)
        return 0;
    load_check_utf8(l, s, at);
    return part_intern(l->part, s);
}

static enum xp_status on_event_meta(struct hand *h, const struct xspace_meta *m, uint32_t name,
                                    uint32_t display)
{
    struct plane_job *pj = h->pj;
    uint32_t i = idmap_get(&pj->events, m->key);
    if (i == IDMAP_NONE) {
        if (!grow(pj->scratch, (void **)&pj->evmeta, &pj->evmeta_cap, pj->nevmeta,
                  sizeof *pj->evmeta) ||
            !idmap_set(&pj->events, pj->scratch, m->key, pj->nevmeta))
            return XP_BUSY;
        i = pj->nevmeta++;
    }
    pj->evmeta[i] = (struct part_evmeta){.id = m->key,
                                         .name = name,
                                         .display_name = display,
                                         .len = m->len < UINT32_MAX ? (uint32_t)m->len : UINT32_MAX,
                                         .at = m->at};
    return XP_OK;
}

static enum xp_status on_stat_meta(struct hand *h, const struct xspace_meta *m, uint32_t name)
{
    struct plane_job *pj = h->pj;
    uint32_t i = idmap_get(&pj->stats, m->key);
    if (i == IDMAP_NONE) {
        if (!grow(pj->scratch, (void **)&pj->statmeta, &pj->statmeta_cap, pj->nstatmeta,
                  sizeof *pj->statmeta) ||
            !idmap_set(&pj->stats, pj->scratch, m->key, pj->nstatmeta))
            return XP_BUSY;
        i = pj->nstatmeta++;
    }
    pj->statmeta[i] =
        (struct part_statmeta){.id = m->key, .name = name, .kind = (uint8_t)stat_kind_of(m->name)};
    return XP_OK;
}

static enum xp_status on_meta(void *ctx, const struct xspace_meta *m)
{
    struct hand *h = ctx;
    uint32_t name = intern(h->load, m->name, m->at);
    uint32_t display = 0;
    if (m->kind == XSPACE_EVENT_META)
        display = intern(h->load, m->display_name, m->at);
    else
        load_check_utf8(h->load, m->display_name, m->at);
    if (name == XP_STRPOOL_FULL || display == XP_STRPOOL_FULL)
        return XP_BUSY;
    if (m->kind == XSPACE_EVENT_META)
        return on_event_meta(h, m, name, display);
    return on_stat_meta(h, m, name);
}

static void put_stat(struct xp_buf *b, const struct xspace_stat *s)
{
    static const uint32_t fields[] = {0, 2, 3, 4, 5, 6, 7};
    xp_pb_put_u64(b, 1, (uint64_t)s->metadata_id);
    if (s->type == XSPACE_DOUBLE)
        xp_pb_put_double(b, 2, xp_pb_double(s->num));
    else if (s->type == XSPACE_STR || s->type == XSPACE_BYTES)
        xp_pb_put_bytes(b, fields[s->type], s->bytes);
    else if (s->type != XSPACE_NONE)
        xp_pb_put_u64(b, fields[s->type], s->num);
}

static enum xp_status on_plane_stat(void *ctx, uint64_t at, const struct xspace_stat *s)
{
    struct hand *h = ctx;
    struct xp_buf one;
    if (s->type == XSPACE_STR)
        load_check_utf8(h->load, s->bytes, at);
    xp_buf_init(&one, 2 * XSPACE_PATCH);
    put_stat(&one, s);
    if (!one.failed && one.n + 16 <= PART_PLANE_STATS_MAX - h->pj->stats_text.n)
        xp_pb_put_bytes(&h->pj->stats_text, 6, xp_buf_all(&one));
    else
        h->pj->plane->stats_cut = true;
    xp_buf_fini(&one);
    return XP_OK;
}

/* Of each run of the plane's fields; what a later run says counts. */
static enum xp_status on_plane_end(void *ctx, const struct xspace_plane *p)
{
    struct hand *h = ctx;
    struct part_plane *pl = h->pj->plane;
    if (p->id)
        pl->id = p->id;
    if (p->name.n) {
        uint32_t name = intern(h->load, p->name, p->at);
        if (name == XP_STRPOOL_FULL)
            return XP_BUSY;
        pl->name = name;
    }
    return XP_OK;
}

static const struct xspace_sink meta_sink = {
    .on_meta = on_meta, .on_plane_stat = on_plane_stat, .on_plane_end = on_plane_end};

/* Of a plane with an allocator's events: what each event does, and which stats tell of it. */
static bool note_memory(struct plane_job *pj, const struct part *p)
{
    bool any = false;
    for (uint32_t i = 0; i < pj->nevmeta && !any; i++)
        any = memory_act_of(part_str(p, pj->evmeta[i].name)) != MEMORY_NONE;
    if (!any)
        return true;
    if (!(pj->acts = xp_arena_zalloc(pj->scratch, pj->nevmeta)))
        return false;
    for (uint32_t i = 0; i < pj->nevmeta; i++)
        pj->acts[i] = (uint8_t)memory_act_of(part_str(p, pj->evmeta[i].name));
    for (uint32_t i = 0; i < pj->nstatmeta; i++) {
        const struct part_statmeta *m = &pj->statmeta[i];
        enum memory_stat stat = memory_stat_of(part_str(p, m->name));
        if (stat != MEMORY_STATS && m->kind == STAT_NOT_KEPT && (uint64_t)m->id < KINDS_MIN)
            pj->kinds[m->id] = (uint8_t)(KIND_MEMORY + stat);
    }
    pj->keeps = true;
    return true;
}

/* What the plane's metadata says about its stats, by id. Times on the device that stay in the file
 * are like any stat that is not kept: most lines have no others, which then need no look at all. */
static void note_kinds(struct plane_job *pj, bool device_later)
{
    for (uint32_t i = 0; i < pj->nstatmeta; i++) {
        const struct part_statmeta *m = &pj->statmeta[i];
        bool device = m->kind <= STAT_DEVICE_DURATION_PS;
        if (device && device_later)
            continue;
        if ((uint64_t)m->id < KINDS_MIN)
            pj->kinds[m->id] = m->kind;
        pj->keeps |= m->kind != STAT_NOT_KEPT;
        pj->device_times |= device;
    }
}

uint8_t plane_job_kind(const struct plane_job *pj, const struct part *p, int64_t id)
{
    if ((uint64_t)id < KINDS_MIN)
        return pj->kinds[id];
    uint32_t i = idmap_find(&pj->stats, id);
    if (i == IDMAP_NONE)
        return STAT_NOT_KEPT;
    uint8_t kind = pj->statmeta[i].kind;
    if (!pj->acts || kind != STAT_NOT_KEPT)
        return kind;
    enum memory_stat stat = memory_stat_of(part_str(p, pj->statmeta[i].name));
    return stat == MEMORY_STATS ? STAT_NOT_KEPT : (uint8_t)(KIND_MEMORY + stat);
}

bool hand_meta(struct hand *h, uint64_t *budget)
{
    struct plane_job *pj = h->pj;
    while (h->run < pj->nruns) {
        const struct xspace_ix_run *r = &h->load->index.runs[pj->first_run + h->run];
        if (!h->open) {
            xspace_decoder_init(h->dec, &meta_sink, h, XSPACE_AT_PLANE, r->at, r->len);
            h->pos = r->at;
            h->end = h->extent = r->at + r->len;
            h->open = true;
        }
        enum xp_status st;
        struct xp_error err;
        if (!hand_decode(h, budget, &st, &err))
            return false;
        h->open = false;
        if (st == XP_CORRUPT)
            load_damage(h->load, &err);
        else if (st != XP_OK)
            return true;
        h->run++;
    }
    note_kinds(pj, h->load->src.device_later);
    if (!note_memory(pj, h->load->part))
        load_busy(h->load);
    return true;
}

/* --- the end of a plane --- */

uint32_t plane_job_stray(struct plane_job *pj, int64_t id)
{
    pthread_mutex_lock(&pj->strays_lock);
    uint32_t i = idmap_get(&pj->strays, id);
    if (i == IDMAP_NONE && pj->nevmeta < IDMAP_NONE - pj->nstrays &&
        grow(pj->scratch, (void **)&pj->stray_ids, &pj->strays_cap, pj->nstrays,
             sizeof *pj->stray_ids) &&
        idmap_set(&pj->strays, pj->scratch, id, pj->nstrays)) {
        i = pj->nstrays++;
        pj->stray_ids[i] = id;
    }
    pthread_mutex_unlock(&pj->strays_lock);
    return i == IDMAP_NONE ? i : pj->nevmeta + i;
}

static int by_id(const void *x, const void *y)
{
    const struct part_statmeta *a = x, *b = y;
    return (a->id > b->id) - (a->id < b->id);
}

bool plane_job_publish(struct plane_job *pj, struct load *l, struct xp_bump *out)
{
    struct part_plane *pl = pj->plane;
    uint32_t nev = pj->nevmeta + pj->nstrays, nst = pj->nstatmeta;
    struct part_evmeta *ev = xp_bump_alloc(out, nev * sizeof *ev, 8);
    struct part_statmeta *st = xp_bump_alloc(out, nst * sizeof *st, 8);
    pl->stats = xp_bump_span(out, xp_buf_all(&pj->stats_text));
    if (!ev || !st || !pl->stats.p)
        return false;
    if (pj->nevmeta)
        memcpy(ev, pj->evmeta, pj->nevmeta * sizeof *ev);
    for (uint32_t i = 0; i < pj->nstrays; i++)
        ev[pj->nevmeta + i] = (struct part_evmeta){.id = pj->stray_ids[i]};
    if (nst) {
        memcpy(st, pj->statmeta, nst * sizeof *st);
        qsort(st, nst, sizeof *st, by_id);
    }
    pl->evmeta = ev;
    pl->nevmeta = nev;
    pl->statmeta = st;
    pl->nstatmeta = nst;
    for (uint32_t i = 0; i < pl->nlines; i++)
        pl->nevents += l->part->lines[pl->first_line + i].nevents;
    return true;
}
