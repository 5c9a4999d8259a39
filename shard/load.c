#include "shard/load.h"

#include <stdlib.h>

#include "lib/base/utf8.h"
#include "shard/load_int.h"

static enum xp_work_next hand_work(void *ctx);

/* --- failing --- */

void load_fail(struct load *l, const struct xp_error *err)
{
    pthread_mutex_lock(&l->lock);
    if (!l->failed)
        l->error = *err;
    l->failed = true;
    pthread_mutex_unlock(&l->lock);
}

void load_busy(struct load *l)
{
    struct xp_error err;
    xp_fail(&err, XP_BUSY, 0,
            "the memory budget is spent; try again when other profiles are closed");
    load_fail(l, &err);
}

void load_damage(struct load *l, const struct xp_error *err)
{
    pthread_mutex_lock(&l->lock);
    if (!l->partial || err->offset < l->damage.offset)
        l->damage = *err;
    l->partial = true;
    pthread_mutex_unlock(&l->lock);
}

void load_check_utf8(struct load *l, struct xp_span s, uint64_t at)
{
    if (xp_utf8_valid(s))
        return;
    pthread_mutex_lock(&l->lock);
    if (!l->utf8_bad || at < l->utf8_bad_at)
        l->utf8_bad_at = at;
    l->utf8_bad = true;
    pthread_mutex_unlock(&l->lock);
}

static bool cancelled(const struct load *l)
{
    return atomic_load_explicit(&l->cancelled, memory_order_relaxed);
}

bool load_stopped(struct load *l)
{
    pthread_mutex_lock(&l->lock);
    bool stop = l->failed || cancelled(l);
    pthread_mutex_unlock(&l->lock);
    return stop;
}

void load_changed(struct load *l)
{
    if (!l->hooks.changed)
        return;
    pthread_mutex_lock(&l->hook_lock);
    l->hooks.changed(l->hooks.ctx);
    pthread_mutex_unlock(&l->hook_lock);
}

/* --- reading --- */

/* What the hand waits for came, or failed. Any thread. */
static void hand_wake(void *ctx)
{
    struct hand *h = ctx;
    struct load *l = h->load;
    struct xp_workers *w = l->workers;
    pthread_mutex_lock(&l->lock);
    bool post = h->resting;
    h->resting = false;
    h->woken = !post;
    pthread_mutex_unlock(&l->lock);
    if (post) {
        enum xp_status st = xp_workers_post(w, XP_WORK_LOAD, hand_work, h);
        XP_ASSERT(st == XP_OK); /* loads are always taken */
    }
}

/* The hand leaves the workers until it is woken. False: it was woken already. */
static bool hand_rest(struct hand *h)
{
    struct load *l = h->load;
    pthread_mutex_lock(&l->lock);
    h->waits = false;
    bool rest = h->resting = !h->woken;
    h->woken = false;
    pthread_mutex_unlock(&l->lock);
    return rest;
}

bool hand_must_wait(struct hand *h, uint64_t at, uint64_t n)
{
    struct load *l = h->load;
    if (!l->workers || h->stays)
        return false;
    if (n > LOAD_READ)
        n = LOAD_READ;
    h->waits = !xp_reader_ready(l->part->reader, at, (size_t)n, hand_wake, h);
    return h->waits;
}

enum xp_status hand_fill(struct hand *h, uint64_t at, size_t n, struct xp_error *err)
{
    h->buf_at = at;
    h->buf_n = 0;
    return xp_reader_read(h->load->part->reader, at, h->buf, n, &h->buf_n, err);
}

static bool holds(const struct hand *h, uint64_t at)
{
    return at >= h->buf_at && at - h->buf_at < h->buf_n;
}

struct xp_span hand_read(struct hand *h, uint64_t at)
{
    struct xp_error err;
    if (!holds(h, at)) {
        uint64_t n = h->extent - at;
        enum xp_status st = hand_fill(h, at, n < LOAD_READ ? (size_t)n : LOAD_READ, &err);
        if (st == XP_OK && !h->buf_n)
            st = xp_fail(&err, XP_STALE, at, "the profile became shorter while it was read");
        if (st != XP_OK) {
            load_fail(h->load, &err);
            return (struct xp_span){0};
        }
    }
    size_t skip = (size_t)(at - h->buf_at);
    return xp_span_of(h->buf + skip, h->buf_n - skip);
}

static void done_bytes(struct hand *h, uint64_t n, uint64_t *budget)
{
    *budget -= n < *budget ? n : *budget;
    atomic_fetch_add_explicit(&h->load->part->bytes_done, n, memory_order_relaxed);
}

bool hand_decode(struct hand *h, uint64_t *budget, enum xp_status *st, struct xp_error *err)
{
    *st = XP_OK;
    while (*st == XP_OK && h->pos < h->end) {
        if (!*budget)
            return false;
        uint64_t hop = xspace_decoder_hop(h->dec);
        h->pos += hop;
        done_bytes(h, hop, budget);
        if (h->pos >= h->end)
            break;
        if (!holds(h, h->pos) && hand_must_wait(h, h->pos, h->extent - h->pos)) {
            *budget = 0;
            return false;
        }
        struct xp_span in = hand_read(h, h->pos);
        if (!in.n) {
            *st = XP_IO;
            return true;
        }
        if (in.n > h->end - h->pos)
            in.n = (size_t)(h->end - h->pos);
        *st = xspace_decoder_push(h->dec, in, err);
        h->pos += in.n;
        done_bytes(h, in.n, budget);
    }
    if (*st == XP_OK)
        *st = xspace_decoder_finish(h->dec, err);
    if (*st == XP_BUSY)
        load_busy(h->load);
    else if (*st != XP_OK && *st != XP_CORRUPT)
        load_fail(h->load, err);
    return true;
}

/* --- planes --- */

static enum xp_status admit(struct load *l, const struct plane_job *pj, struct xp_error *err)
{
    if (!l->hooks.admit)
        return XP_OK;
    pthread_mutex_lock(&l->hook_lock);
    enum xp_status st = l->hooks.admit(l->hooks.ctx, pj->plane->len, err);
    pthread_mutex_unlock(&l->hook_lock);
    return st;
}

void plane_publish(struct hand *h, struct plane_job *pj)
{
    struct load *l = h->load;
    bool ok = plane_job_publish(pj, l, &h->out);
    plane_job_close(pj);
    if (!ok) {
        load_busy(l);
        return;
    }
    atomic_store_explicit(&pj->plane->state, PART_READY, memory_order_release);
    pthread_mutex_lock(&l->lock);
    l->planes_left--;
    l->has_plane |= pj->plane->nevents > 0;
    pthread_mutex_unlock(&l->lock);
}

bool hand_begin_meta(struct hand *h, struct plane_job *pj)
{
    struct load *l = h->load;
    struct xp_error err;
    atomic_store_explicit(&pj->plane->state, PART_LOADING, memory_order_relaxed);
    if (admit(l, pj, &err) != XP_OK) {
        load_fail(l, &err);
        return false;
    }
    if (!plane_job_open(pj, l)) {
        load_busy(l);
        return false;
    }
    h->doing = HAND_META;
    h->pj = pj;
    h->run = 0;
    h->open = false;
    return true;
}

/* --- hands --- */

static bool hand_open(struct hand *h, struct load *l)
{
    size_t read = LOAD_READ;
    if (!l->src.gz && l->src.size < read)
        read = l->src.size < LOAD_INDEX_READ ? LOAD_INDEX_READ : (size_t)l->src.size;
    h->load = l;
    h->scratch = xp_arena_new(l->budget);
    if (!h->scratch)
        return false;
    xp_bump_init(&h->out, l->part ? l->part->arena : NULL);
    h->buf = xp_arena_alloc(h->scratch, read);
    h->dec = xp_arena_alloc(h->scratch, sizeof *h->dec);
    h->builder = line_builder_on(h->scratch, &h->out);
    side_pen_init(&h->side);
    return h->buf && h->dec && h->builder;
}

static void hand_close(struct hand *h)
{
    xp_arena_free(h->line.sort_arena);
    xp_arena_free(h->scratch);
    h->line.sort_arena = h->scratch = NULL;
}

/* Under the lock: puts up to n resting hands to work. */
static void wake_hands(struct load *l, uint32_t n)
{
    for (int i = 0; i < l->nhands && n && l->workers; i++) {
        struct hand *h = &l->hands[i];
        if (h->posted)
            continue;
        if (xp_workers_post(l->workers, XP_WORK_LOAD, hand_work, h) != XP_OK)
            return; /* those that work go on */
        h->posted = true;
        l->active++;
        n--;
    }
}

/* Metadata is done: opens the plane's lines to all, or publishes a plane that has none. */
static void end_meta(struct hand *h)
{
    struct load *l = h->load;
    struct plane_job *pj = h->pj;
    h->doing = HAND_FREE;
    if (load_stopped(l))
        return;
    if (!pj->groups_left) {
        plane_publish(h, pj);
        return;
    }
    pthread_mutex_lock(&l->lock);
    l->open[l->nopen++] = pj; /* new metadata is begun only when none is open: one a hand */
    wake_hands(l, pj->groups_left - 1);
    pthread_mutex_unlock(&l->lock);
}

static void end_lines(struct hand *h)
{
    struct load *l = h->load;
    struct plane_job *pj = h->pj;
    h->doing = HAND_FREE;
    if (load_stopped(l))
        return;
    pthread_mutex_lock(&l->lock);
    bool last = --pj->groups_left == 0;
    pthread_mutex_unlock(&l->lock);
    if (last)
        plane_publish(h, pj);
}

/* The index is made: as many hands as there may be work for. */
static void end_index(struct hand *h)
{
    struct load *l = h->load;
    h->doing = HAND_FREE;
    pthread_mutex_lock(&l->lock);
    if (!l->failed)
        wake_hands(l, l->planes_left);
    pthread_mutex_unlock(&l->lock);
}

/* Lines that are open come first, so that planes are finished one by one; else the next plane's
 * metadata. False: nothing to do for now. */
static bool take_job(struct hand *h)
{
    struct load *l = h->load;
    struct plane_job *meta = NULL;
    pthread_mutex_lock(&l->lock);
    bool stop = l->failed || cancelled(l);
    if (!stop && l->nopen) {
        h->pj = l->open[0];
        h->group = l->groups[h->pj->next_group++];
        if (h->pj->next_group == h->pj->end_group)
            memmove(l->open, l->open + 1, (size_t)--l->nopen * sizeof *l->open);
        h->doing = HAND_LINES;
    } else if (!stop && l->next_meta < l->index.nplanes) {
        meta = &l->jobs[l->order[l->next_meta++]];
    }
    pthread_mutex_unlock(&l->lock);
    if (meta)
        return hand_begin_meta(h, meta);
    if (h->doing == HAND_LINES) {
        const struct part_line *last = &l->part->lines[h->group.first_line + h->group.nlines - 1];
        h->extent = last->at + last->len;
        h->open = h->line.merging = false;
    }
    return h->doing != HAND_FREE;
}

static void work_some(struct hand *h, uint64_t *budget)
{
    switch (h->doing) {
    case HAND_INDEX:
        if (hand_index(h))
            end_index(h);
        *budget = 0;
        break;
    case HAND_META:
        if (hand_meta(h, budget))
            end_meta(h);
        break;
    case HAND_LINES:
        if (hand_lines(h, budget))
            end_lines(h);
        break;
    case HAND_FREE:
        break;
    }
}

static bool hand_slice(struct hand *h)
{
    struct load *l = h->load;
    uint64_t budget = LOAD_SLICE;
    if (!h->scratch && !hand_open(h, l)) {
        load_busy(l);
        return false;
    }
    while (budget) {
        if (load_stopped(l) || (h->doing == HAND_FREE && !take_job(h)))
            return false;
        work_some(h, &budget);
    }
    load_changed(l);
    return true;
}

/* --- the end --- */

static enum xp_status outcome(struct load *l, struct xp_error *err)
{
    *err = (struct xp_error){0};
    if (l->failed)
        *err = l->error;
    else if (l->planes_left || !l->index_over)
        xp_fail(err, XP_CANCELLED, 0, "nobody waits for this profile any more");
    return err->status;
}

static void load_end(struct load *l)
{
    struct xp_error err;
    struct part *p = l->part;
    enum xp_status st = outcome(l, &err);
    for (int i = 0; i < l->nhands; i++)
        hand_close(&l->hands[i]);
    for (uint32_t i = 0; l->jobs && i < l->index.nplanes; i++)
        plane_job_close(&l->jobs[i]);
    xp_arena_free(l->scratch);
    l->scratch = NULL;
    l->jobs = NULL;
    if (p && p->reader)
        xp_reader_plan(p->reader, NULL, 0);
    if (st == XP_OK) {
        p->damage = l->damage;
        p->partial = l->partial;
        p->utf8_bad = l->utf8_bad;
        p->utf8_bad_at = l->utf8_bad_at;
        atomic_store_explicit(&p->bytes_done, p->size, memory_order_relaxed);
        atomic_store_explicit(&p->state, PART_READY, memory_order_release);
    }
    if (l->hooks.done)
        l->hooks.done(l->hooks.ctx, st, &err); /* l may be gone now */
}

static enum xp_work_next hand_work(void *ctx)
{
    struct hand *h = ctx;
    struct load *l = h->load;
    if (hand_slice(h))
        return h->waits && hand_rest(h) ? XP_WORK_DONE : XP_WORK_AGAIN;
    pthread_mutex_lock(&l->lock);
    h->posted = false;
    bool last = --l->active == 0;
    pthread_mutex_unlock(&l->lock);
    if (last)
        load_end(l);
    return XP_WORK_DONE;
}

/* --- asked from outside --- */

struct load *load_new(const struct load_source *src, struct xp_budget *budget,
                      const struct load_hooks *hooks)
{
    struct load *l = calloc(1, sizeof *l);
    char *key = strdup(src->key);
    if (!l || !key) {
        free(l);
        free(key);
        return NULL;
    }
    l->key = key;
    l->src = *src;
    l->src.key = key;
    l->budget = budget;
    if (hooks)
        l->hooks = *hooks;
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->hook_lock, NULL);
    for (int i = 0; i < LOAD_HANDS; i++)
        l->hands[i].load = l;
    l->hands[0].doing = HAND_INDEX;
    return l;
}

enum xp_status load_start(struct load *l, struct xp_workers *w)
{
    int threads = xp_workers_threads(w);
    l->workers = w;
    l->nhands = threads < LOAD_HANDS ? threads : LOAD_HANDS;
    pthread_mutex_lock(&l->lock);
    wake_hands(l, 1);
    bool started = l->active > 0;
    pthread_mutex_unlock(&l->lock);
    return started ? XP_OK : XP_BUSY;
}

void load_run(struct load *l)
{
    l->nhands = 1;
    while (hand_slice(&l->hands[0]))
        ;
    load_end(l);
}

void load_cancel(struct load *l)
{
    atomic_store_explicit(&l->cancelled, true, memory_order_relaxed);
    pthread_mutex_lock(&l->lock);
    struct xp_reader *source = l->source;
    pthread_mutex_unlock(&l->lock);
    if (source)
        xp_reader_cancel(source);
}

struct part *load_part(struct load *l)
{
    return l->part;
}

bool load_has_plane(struct load *l)
{
    pthread_mutex_lock(&l->lock);
    bool has = l->has_plane;
    pthread_mutex_unlock(&l->lock);
    return has;
}

uint32_t load_planes_left(struct load *l)
{
    pthread_mutex_lock(&l->lock);
    uint32_t n = l->planes_left;
    pthread_mutex_unlock(&l->lock);
    return n;
}

struct part *load_take(struct load *l)
{
    struct part *p = l->part;
    l->part = NULL;
    return p;
}

void load_free(struct load *l)
{
    if (!l)
        return;
    part_free(l->part);
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->hook_lock);
    free(l->key);
    free(l);
}
