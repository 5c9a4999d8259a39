#include <stdlib.h>

#include "shard/decode/xspace_merge.h"
#include "shard/load_int.h"

/* Lines closer than this and small together are one job. */
#define GROUP_GAP 4096
#define GROUP_BYTES ((uint64_t)1 << 20)
/* The index reads this much at first, up to LOAD_INDEX_READ where headers lie close. */
#define INDEX_READ 4096
/* Planes without lines up to this size are read before all others: one of them may say when the
 * profile began. */
#define EARLY_PLANE 65536

/* An entry of metadata of records that are joined; the largest are programs. */
#define RECORD_PIECE_MAX ((size_t)1 << 30)

/* --- opening and the index --- */

static enum xp_status on_inflated(void *ctx, struct xp_span bytes, struct xp_error *err)
{
    struct load *l = ctx;
    if (atomic_load_explicit(&l->cancelled, memory_order_relaxed))
        return xp_fail(err, XP_CANCELLED, 0, "nobody waits for this profile any more");
    uint64_t at = l->part->size;
    l->part->size += bytes.n;
    atomic_store_explicit(&l->part->bytes_done, l->part->size, memory_order_relaxed);
    if (at / LOAD_SLICE != l->part->size / LOAD_SLICE)
        load_changed(l);
    return xspace_indexer_push(l->indexer, at, bytes, err);
}

static enum xp_status on_unpacked(void *ctx, uint64_t done, struct xp_error *err)
{
    struct load *l = ctx;
    if (atomic_load_explicit(&l->cancelled, memory_order_relaxed))
        return xp_fail(err, XP_CANCELLED, 0, "nobody waits for this profile any more");
    if (done > atomic_load_explicit(&l->part->bytes_done, memory_order_relaxed))
        atomic_store_explicit(&l->part->bytes_done, done, memory_order_relaxed);
    load_changed(l);
    return XP_OK;
}

static enum xp_status on_joined(void *ctx, struct xp_span bytes, struct xp_error *err)
{
    struct load *l = ctx;
    uint64_t at = l->part->size;
    l->part->size += bytes.n;
    return xspace_indexer_push(l->indexer, at, bytes, err);
}

/* Four such pieces stay within what is left of the memory for profiles. */
static size_t piece_of(const struct xp_budget *b)
{
    uint64_t used = b ? atomic_load_explicit(&b->used, memory_order_relaxed) : 0;
    if (!b || !b->limit)
        return RECORD_PIECE_MAX;
    uint64_t left = b->limit > used ? (b->limit - used) / 8 : 0;
    return left < RECORD_PIECE_MAX ? (size_t)left : RECORD_PIECE_MAX;
}

static enum xp_status on_records(void *ctx, struct xp_span all, const struct xp_records_out *out,
                                 struct xp_error *err)
{
    const struct load *l = ctx;
    const struct xspace_merge_out to = {out->ctx, out->add, out->set};
    struct xp_arena *scratch = xp_arena_new(l->budget);
    enum xp_status st = scratch ? xspace_merge(all, scratch, piece_of(l->budget), &to, err)
                                : xp_fail(err, XP_BUSY, 0, "no memory is left to join records");
    xp_arena_free(scratch);
    return st;
}

static enum xp_status open_records(struct load *l, struct xp_reader *r, struct xp_reader **out,
                                   struct xp_error *err)
{
    const struct xp_records_calls calls = {l, on_unpacked, on_records, on_joined};
    struct xp_error damage;
    XP_TRY(xp_reader_open_records(r, LOAD_GZ_MAX, &calls, out, &damage, err));
    if (damage.status != XP_OK)
        load_damage(l, &damage);
    return XP_OK;
}

static enum xp_status open_packed(struct load *l, struct xp_reader *r, struct xp_reader **out,
                                  struct xp_error *err)
{
    uint8_t head[XP_RECORDS_HEAD];
    size_t got;
    XP_TRY(xp_reader_read(r, 0, head, sizeof head, &got, err));
    if (xp_records_begin(xp_span_of(head, got)))
        return open_records(l, r, out, err);
    return xp_reader_open_gz(r, LOAD_GZ_MAX, on_inflated, l, out, err);
}

static enum xp_status open_object(struct load *l, struct xp_error *err)
{
    struct xp_reader *r, *inflated;
    XP_TRY(xp_store_open_sized(l->src.store, l->key, l->src.generation, l->src.size, &r, err));
    pthread_mutex_lock(&l->lock);
    l->source = r;
    pthread_mutex_unlock(&l->lock);
    if (!l->src.gz) {
        l->part->reader = r;
        l->part->size = xp_reader_size(r);
        return XP_OK;
    }
    enum xp_status st = open_packed(l, r, &inflated, err);
    if (st != XP_OK) {
        pthread_mutex_lock(&l->lock);
        l->source = NULL;
        pthread_mutex_unlock(&l->lock);
        xp_reader_close(r);
        return st;
    }
    l->part->reader = inflated;
    return XP_OK;
}

/* The part's own arena holds it. */
static struct part *new_part(struct xp_budget *budget)
{
    struct xp_arena *a = xp_arena_new(budget);
    struct part *p = a ? xp_arena_zalloc(a, sizeof *p) : NULL;
    if (!p || !xp_strpool_init(&p->strings, a)) {
        xp_arena_free(a);
        return NULL;
    }
    p->arena = a;
    pthread_mutex_init(&p->strings_lock, NULL);
    pthread_mutex_init(&p->device_lock, NULL);
    return p;
}

static enum xp_status begin_index(struct hand *h, struct xp_error *err)
{
    struct load *l = h->load;
    uint64_t size = l->src.gz ? UINT64_MAX : l->src.size;
    l->part = new_part(l->budget);
    l->scratch = xp_arena_new(l->budget);
    if (!l->part || !l->scratch || !(l->indexer = xspace_indexer_new(l->scratch, size)))
        return xp_fail(err, XP_BUSY, 0, "no memory is left to open another profile");
    l->part->device_later = l->src.device_later;
    xp_bump_init(&h->out, l->part->arena);
    XP_TRY(open_object(l, err));
    if (!l->src.gz && l->part->size != l->src.size)
        return xp_fail(err, XP_STALE, 0, "the profile's size changed since it was listed");
    return XP_OK;
}

/* Some of the index. *over: it is complete. */
static enum xp_status index_some(struct hand *h, bool *over, struct xp_error *err)
{
    struct load *l = h->load;
    size_t window = INDEX_READ;
    *over = true;
    if (l->src.gz)
        return XP_OK;
    for (int reads = 0; xspace_indexer_at(l->indexer) < l->part->size; reads++) {
        uint64_t at = xspace_indexer_at(l->indexer);
        if (reads == 1024) {
            *over = false;
            return XP_OK;
        }
        bool close = at == h->buf_at + h->buf_n;
        window = !close ? INDEX_READ : window < LOAD_INDEX_READ ? window * 2 : window;
        if (hand_must_wait(h, at, window)) {
            *over = false;
            return XP_OK;
        }
        XP_TRY(hand_fill(h, at, window, err));
        if (!h->buf_n)
            return xp_fail(err, XP_STALE, at, "the profile became shorter while it was read");
        XP_TRY(xspace_indexer_push(l->indexer, at, xp_span_of(h->buf, h->buf_n), err));
    }
    return XP_OK;
}

/* --- jobs from the index --- */

static bool joins(const struct group *g, const struct xspace_ix_line *prev,
                  const struct xspace_ix_line *line)
{
    return line->plane == prev->plane && line->at - (prev->at + prev->len) < GROUP_GAP &&
           g->bytes + line->len < GROUP_BYTES;
}

static bool make_groups(struct load *l)
{
    const struct xspace_index *ix = &l->index;
    uint32_t n = 0;
    l->groups = xp_arena_alloc(l->scratch, ((size_t)ix->nlines + 1) * sizeof *l->groups);
    if (!l->groups)
        return false;
    for (uint32_t p = 0; p < ix->nplanes; p++) {
        const struct xspace_ix_plane *ip = &ix->planes[p];
        struct plane_job *pj = &l->jobs[p];
        pj->first_group = pj->next_group = n;
        for (uint32_t i = ip->first_line; i < ip->first_line + ip->nlines; i++) {
            if (n == pj->first_group || !joins(&l->groups[n - 1], &ix->lines[i - 1], &ix->lines[i]))
                l->groups[n++] = (struct group){i, 0, 0};
            l->groups[n - 1].nlines++;
            l->groups[n - 1].bytes += ix->lines[i].len;
        }
        pj->end_group = n;
        pj->groups_left = n - pj->first_group;
    }
    return true;
}

static int by_bytes_down(const void *x, const void *y, void *ctx)
{
    const struct xspace_ix_plane *planes = ctx;
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    if (planes[a].len != planes[b].len)
        return planes[a].len < planes[b].len ? 1 : -1;
    return (a > b) - (a < b);
}

/* Planes without lines are quick and may matter to all, so they are first; then the smallest that
 * has lines, so that there is something to look at; then the largest first, which keeps all
 * threads busy to the end. */
static void order_planes(struct load *l)
{
    const struct xspace_ix_plane *planes = l->index.planes;
    uint32_t n = l->index.nplanes, early = 0, rest;
    for (uint32_t i = 0; i < n; i++)
        if (!planes[i].nlines && planes[i].len <= EARLY_PLANE)
            l->order[early++] = i;
    rest = early;
    for (uint32_t i = 0; i < n; i++)
        if (planes[i].nlines || planes[i].len > EARLY_PLANE)
            l->order[rest++] = i;
    qsort_r(l->order + early, n - early, sizeof *l->order, by_bytes_down,
            (void *)(uintptr_t)planes);
    for (uint32_t i = n; i-- > early;) {
        if (!planes[l->order[i]].nlines)
            continue;
        uint32_t smallest = l->order[i];
        memmove(&l->order[early + 1], &l->order[early], (i - early) * sizeof *l->order);
        l->order[early] = smallest;
        break;
    }
}

static enum xp_status fill_part(struct load *l, struct xp_error *err)
{
    struct part *p = l->part;
    const struct xspace_index *ix = &l->index;
    p->size = ix->size;
    p->planes = xp_arena_zalloc(p->arena, ((size_t)ix->nplanes + 1) * sizeof *p->planes);
    p->lines = xp_arena_zalloc(p->arena, ((size_t)ix->nlines + 1) * sizeof *p->lines);
    l->jobs = xp_arena_zalloc(l->scratch, ((size_t)ix->nplanes + 1) * sizeof *l->jobs);
    l->order = xp_arena_alloc(l->scratch, ((size_t)ix->nplanes + 1) * sizeof *l->order);
    if (!p->planes || !p->lines || !l->jobs || !l->order || !make_groups(l))
        return xp_fail(err, XP_BUSY, 0, "no memory is left for the planes of the profile");
    for (uint32_t i = 0; i < ix->nplanes; i++) {
        const struct xspace_ix_plane *ip = &ix->planes[i];
        struct part_plane *pl = &p->planes[i];
        pl->at = ip->at;
        pl->len = ip->len;
        pl->first_line = ip->first_line;
        pl->nlines = ip->nlines;
        l->jobs[i].plane = pl;
        l->jobs[i].first_run = ip->first_run;
        l->jobs[i].nruns = ip->nruns;
    }
    for (uint32_t i = 0; i < ix->nlines; i++) {
        p->lines[i].at = ix->lines[i].at;
        p->lines[i].len = ix->lines[i].len;
        p->lines[i].plane = ix->lines[i].plane;
    }
    order_planes(l);
    p->nplanes = l->planes_left = ix->nplanes;
    p->nlines = ix->nlines;
    return XP_OK;
}

/* --- what will be read, for a store that is far away --- */

#define PLAN_WHOLE ((uint64_t)4 << 20) /* planes up to this size are one range */
#define PLAN_GAP ((uint64_t)128 << 10)

static void plan_add(struct xp_range *v, size_t *n, size_t first, uint64_t at, uint64_t len)
{
    struct xp_range *last = *n > first ? &v[*n - 1] : NULL;
    if (last && at >= last->to && at - last->to < PLAN_GAP && at + len - last->from <= PLAN_WHOLE)
        last->to = at + len;
    else if (len)
        v[(*n)++] = (struct xp_range){at, at + len};
}

/* In the order of work: a plane's metadata, then its lines. */
static void plan_reads(struct load *l)
{
    const struct xspace_index *ix = &l->index;
    struct xp_range *v;
    size_t n = 0;
    if (!xp_store_is_remote(l->src.store) || l->src.gz)
        return;
    v = malloc(((size_t)ix->nplanes + ix->nruns + ix->nlines + 1) * sizeof *v);
    if (!v)
        return;
    for (uint32_t i = 0; i < ix->nplanes; i++) {
        const struct xspace_ix_plane *p = &ix->planes[l->order[i]];
        size_t first = n;
        if (p->len <= PLAN_WHOLE) {
            plan_add(v, &n, first, p->at, p->len);
            continue;
        }
        for (uint32_t k = p->first_run; k < p->first_run + p->nruns; k++)
            plan_add(v, &n, first, ix->runs[k].at, ix->runs[k].len);
        first = n;
        for (uint32_t k = p->first_line; k < p->first_line + p->nlines; k++)
            plan_add(v, &n, first, ix->lines[k].at, ix->lines[k].len);
    }
    xp_reader_plan(l->part->reader, v, n);
    free(v);
}

/* --- host names, errors, warnings --- */

struct names {
    struct load *load;
    struct xp_bump out;
    uint32_t hostnames_cap, errors_cap, warnings_cap;
};

static enum xp_status keep_text(struct names *names, struct xp_span text, struct xp_span **v,
                                uint32_t *n, uint32_t *cap)
{
    load_check_utf8(names->load, text, 0);
    if (*n == *cap) {
        uint32_t more = *cap ? *cap * 2 : 4;
        struct xp_span *w = xp_bump_alloc(&names->out, more * sizeof *w, 8);
        if (!w)
            return XP_BUSY;
        if (*n)
            memcpy(w, *v, *n * sizeof *w);
        *v = w;
        *cap = more;
    }
    struct xp_span copy = xp_bump_span(&names->out, text);
    if (!copy.p)
        return XP_BUSY;
    (*v)[(*n)++] = copy;
    return XP_OK;
}

static enum xp_status on_hostname(void *ctx, struct xp_span name)
{
    struct names *n = ctx;
    struct part *p = n->load->part;
    return keep_text(n, name, &p->hostnames, &p->nhostnames, &n->hostnames_cap);
}

static enum xp_status on_message(void *ctx, bool is_error, struct xp_span text)
{
    struct names *n = ctx;
    struct part *p = n->load->part;
    return is_error ? keep_text(n, text, &p->errors, &p->nerrors, &n->errors_cap)
                    : keep_text(n, text, &p->warnings, &p->nwarnings, &n->warnings_cap);
}

/* What lies in the profile outside its planes: small, read at once. */
static bool read_rest(struct hand *h)
{
    static const struct xspace_sink sink = {.on_hostname = on_hostname, .on_message = on_message};
    struct load *l = h->load;
    struct names names = {.load = l};
    xp_bump_init(&names.out, l->part->arena);
    for (uint32_t i = 0; i < l->index.nrest; i++) {
        const struct xspace_ix_run *r = &l->index.rest[i];
        uint64_t budget = UINT64_MAX;
        enum xp_status st;
        struct xp_error err;
        xspace_decoder_init(h->dec, &sink, &names, XSPACE_AT_SPACE, r->at, r->len);
        h->pos = r->at;
        h->end = h->extent = r->at + r->len;
        hand_decode(h, &budget, &st, &err);
        if (st == XP_CORRUPT)
            load_damage(l, &err);
        else if (st != XP_OK)
            return false;
    }
    return true;
}

/* --- where time begins --- */

/* The stat "profile_start_time" of plane "Task Environment", ns; 0 if there is none. */
static int64_t told_start(struct load *l)
{
    struct part *p = l->part;
    for (uint32_t i = 0; i < p->nplanes; i++) {
        const struct part_plane *pl = &p->planes[i];
        if (!plane_ready(pl) || !xp_span_eq(part_str(p, pl->name), XP_SPAN_LIT("Task Environment")))
            continue;
        struct xspace_stats it = xspace_stats_open(pl->stats, 6);
        struct xspace_stat s;
        while (xspace_stats_next(&it, &s))
            if (xp_span_eq(part_stat_name(p, pl, s.metadata_id),
                           XP_SPAN_LIT("profile_start_time")) &&
                (s.type == XSPACE_U64 || s.type == XSPACE_I64) && (int64_t)s.num > 0)
                return (int64_t)s.num;
    }
    return 0;
}

/* Lines whose clock starts at boot, some weeks ago, would leave int64 ps as well. */
#define FAR_NS (LANE_TIME_MAX / 1000)

static int64_t base_of(int64_t timestamp_ns, int64_t origin_ns)
{
    int64_t ns, ps;
    if (__builtin_sub_overflow(timestamp_ns, origin_ns, &ns) ||
        __builtin_mul_overflow(ns, (int64_t)1000, &ps) || ps > LANE_TIME_MAX || ps < -LANE_TIME_MAX)
        return timestamp_ns < origin_ns ? -LANE_TIME_MAX : LANE_TIME_MAX;
    return ps;
}

/* What a line's clock counts from. A line whose timestamp is only known at its end may be the
 * first of its kind; it then is its own origin. */
int64_t load_base_of(const struct load *l, int64_t timestamp_ns)
{
    int64_t origin = 0;
    if (timestamp_ns > PART_WALL_NS)
        origin = l->part->origin_ns ? l->part->origin_ns : timestamp_ns;
    else if (timestamp_ns > FAR_NS)
        origin = l->far_origin_ns ? l->far_origin_ns : timestamp_ns;
    return base_of(timestamp_ns, origin);
}

static void choose_origin(struct load *l)
{
    struct part *p = l->part;
    int64_t first_wall = INT64_MAX, first_far = INT64_MAX, told = told_start(l);
    for (uint32_t i = 0; i < p->nlines; i++) {
        int64_t t = l->index.lines[i].timestamp_ns;
        if (t > PART_WALL_NS && t < first_wall)
            first_wall = t;
        else if (t > FAR_NS && t <= PART_WALL_NS && t < first_far)
            first_far = t;
    }
    if (first_wall != INT64_MAX) {
        bool near = told > PART_WALL_NS && first_wall - told < FAR_NS && told - first_wall < FAR_NS;
        p->origin_ns = near ? told : first_wall;
    }
    if (first_far != INT64_MAX)
        l->far_origin_ns = first_far;
    p->start_wall_ns = told ? told : p->origin_ns;
    for (uint32_t i = 0; i < p->nlines; i++) {
        p->lines[i].timestamp_ns = l->index.lines[i].timestamp_ns;
        p->lines[i].base_ps = load_base_of(l, p->lines[i].timestamp_ns);
    }
}

/* --- all of it --- */

/* The planes that are small and have no lines, before time's origin is chosen. */
static bool early_planes(struct hand *h)
{
    struct load *l = h->load;
    for (; l->next_meta < l->index.nplanes; l->next_meta++) {
        struct plane_job *pj = &l->jobs[l->order[l->next_meta]];
        if (pj->plane->nlines || pj->plane->len > EARLY_PLANE)
            break;
        uint64_t budget = UINT64_MAX;
        if (!hand_begin_meta(h, pj) || !hand_meta(h, &budget) || load_stopped(l))
            return false;
        plane_publish(h, pj);
    }
    h->doing = HAND_FREE;
    return !load_stopped(l);
}

static enum xp_status finish_index(struct hand *h, struct xp_error *err)
{
    struct load *l = h->load;
    XP_TRY(xspace_indexer_finish(l->indexer, &l->index, err));
    if (l->index.damage.status != XP_OK) {
        if (!l->index.nplanes) {
            *err = l->index.damage;
            return err->status;
        }
        load_damage(l, &l->index.damage);
        l->part->cut = true;
    }
    XP_TRY(fill_part(l, err));
    atomic_store_explicit(&l->part->bytes_done, 0, memory_order_relaxed);
    h->buf_n = 0;
    plan_reads(l);
    h->stays = true;
    if (!read_rest(h) || !early_planes(h))
        return xp_fail(err, XP_CANCELLED, 0, "the load was given up"); /* or failed: said already */
    h->stays = false;
    choose_origin(l);
    l->index_over = true;
    pthread_mutex_lock(&l->hook_lock);
    if (l->hooks.indexed)
        l->hooks.indexed(l->hooks.ctx);
    pthread_mutex_unlock(&l->hook_lock);
    return XP_OK;
}

bool hand_index(struct hand *h)
{
    struct load *l = h->load;
    struct xp_error err = {0};
    bool over = true;
    enum xp_status st = l->part ? XP_OK : begin_index(h, &err);
    if (st == XP_OK)
        st = index_some(h, &over, &err);
    if (st == XP_OK && over)
        st = finish_index(h, &err);
    if (st != XP_OK)
        load_fail(l, &err);
    return over || st != XP_OK;
}
