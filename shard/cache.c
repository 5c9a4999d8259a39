#include "shard/cache.h"

#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "shard/load.h"

#define BUCKETS 256
/* An arena a part, of which jemalloc has 4095. */
#define PARTS_MAX 3000
/* Memory a byte of profile takes, before any was seen: device profiles 0.3, Python captures 0.35.
 */
#define RATIO_FIRST 0.4
#define RATIO_WEIGHT 0.25
#define SLACK_MIN (UINT64_C(16) << 20)
/* A browser asks again and again while a profile loads, and nobody holds it between two askings: a
 * load goes on for this long without anyone. */
#define LINGER_NS (3 * UINT64_C(1000000000))

struct waiter {
    struct waiter *next;
    enum cache_until until;
    const atomic_bool *cancel;
    cache_ready_fn fn;
    void *ctx;
    enum xp_status status; /* to be told */
    struct xp_error err;
};

/* A part, or the load that makes it. A handle is a counted pin of it. */
struct cache_handle {
    struct cache_handle *next; /* of its bucket */
    struct cache *cache;
    char *name;
    struct cache_key key;
    uint64_t hash;
    bool in_table, indexed, done;
    bool aside; /* nobody waits for it */
    uint32_t pins, asks;
    struct load *load; /* NULL once done */
    struct part *part;
    enum xp_status status;
    struct xp_error err;
    struct waiter *waiters;
    uint64_t reserved; /* of the budget, not charged yet */
    uint64_t charged;  /* the arena's size when reserved was settled last */
    uint64_t started_ns, rebuild_ns, used_ns;
};

struct cache {
    struct xp_workers *workers;
    struct xp_budget *budget;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct cache_handle *buckets[BUCKETS];
    int loads, drops; /* under way */
    double ratio;
    double pace; /* bytes that a load charges a ns; 0: not known */
    uint64_t linger_ns;
    struct cache_stats stats;
};

/* --- entries --- */

static struct cache_handle *find(struct cache *c, const struct cache_key *key, uint64_t hash)
{
    struct cache_handle *e = c->buckets[hash % BUCKETS];
    while (e && !(e->hash == hash && e->key.store == key->store &&
                  e->key.generation == key->generation && e->key.size == key->size &&
                  e->key.gz == key->gz && !strcmp(e->name, key->key)))
        e = e->next;
    return e;
}

static void insert(struct cache *c, struct cache_handle *e)
{
    struct cache_handle **bucket = &c->buckets[e->hash % BUCKETS];
    e->next = *bucket;
    *bucket = e;
    e->in_table = true;
    c->stats.parts++;
}

/* No asker will find it any more; those that hold it go on. */
static void forget(struct cache_handle *e)
{
    struct cache_handle **p = &e->cache->buckets[e->hash % BUCKETS];
    if (!e->in_table)
        return;
    while (*p != e)
        p = &(*p)->next;
    *p = e->next;
    e->in_table = false;
    e->cache->stats.parts--;
}

/* Ends the load of e, which nobody wants; under the lock. What on_done says last frees e. */
static void abandon(struct cache_handle *e)
{
    load_cancel(e->load);
    forget(e);
    e->cache->stats.cancelled++;
}

/* Ends the loads that nobody has wanted for so long; under the lock. */
static void abandon_lonely(struct cache *c, uint64_t linger_ns)
{
    uint64_t now = xp_now_ns();
    for (int i = 0; i < BUCKETS; i++) {
        for (struct cache_handle *e = c->buckets[i], *next; e; e = next) {
            next = e->next;
            if (e->load && !e->pins && now - e->used_ns >= linger_ns)
                abandon(e);
        }
    }
}

/* Ends the loads that nobody waits for, for one that somebody does; under the lock. */
static void abandon_aside(struct cache *c)
{
    for (int i = 0; i < BUCKETS; i++) {
        for (struct cache_handle *e = c->buckets[i], *next; e; e = next) {
            next = e->next;
            if (e->load && e->aside)
                abandon(e);
        }
    }
}

static void free_entry(struct cache_handle *e)
{
    part_free(e->part);
    free(e->name);
    free(e);
}

static enum xp_work_next drop_task(void *ctx)
{
    struct cache_handle *e = ctx;
    struct cache *c = e->cache;
    free_entry(e);
    pthread_mutex_lock(&c->lock);
    if (--c->drops == 0)
        pthread_cond_broadcast(&c->idle);
    pthread_mutex_unlock(&c->lock);
    return XP_WORK_DONE;
}

/* Frees e, of which nobody knows any more, on a worker. */
static void drop_later(struct cache *c, struct cache_handle *e)
{
    pthread_mutex_lock(&c->lock);
    c->drops++;
    pthread_mutex_unlock(&c->lock);
    if (xp_workers_post(c->workers, XP_WORK_LOAD, drop_task, e) != XP_OK)
        drop_task(e);
}

/* --- room --- */

/* What is idle longest for the work of making it again goes first; under the lock. */
static struct cache_handle *pick_victim(struct cache *c)
{
    struct cache_handle *victim = NULL;
    double worst = -1;
    uint64_t now = xp_now_ns();
    for (int i = 0; i < BUCKETS; i++) {
        for (struct cache_handle *e = c->buckets[i]; e; e = e->next) {
            if (e->pins || !e->done)
                continue;
            double cost = (double)e->rebuild_ns / (double)(e->charged + 1);
            double score = (double)(now - e->used_ns + 1) / (cost + 0.01);
            if (score > worst) {
                worst = score;
                victim = e;
            }
        }
    }
    if (victim) {
        forget(victim);
        c->stats.evictions++;
    }
    return victim;
}

static bool fits(const struct cache *c, uint64_t more)
{
    uint64_t used = atomic_load_explicit(&c->budget->used, memory_order_relaxed);
    uint64_t reserved = atomic_load_explicit(&c->budget->reserved, memory_order_relaxed);
    uint64_t limit = c->budget->limit;
    return !limit || (more <= limit && used <= limit - more && reserved <= limit - more - used);
}

/* Evicts until `more` bytes fit; under the lock, which is let go while memory is given back. */
static bool make_room(struct cache *c, uint64_t more)
{
    while (!fits(c, more)) {
        struct cache_handle *victim = pick_victim(c);
        if (!victim)
            return false;
        pthread_mutex_unlock(&c->lock);
        free_entry(victim);
        pthread_mutex_lock(&c->lock);
    }
    return true;
}

/* Room to keep free while something loads: what its hands need to decode, and estimates that are
 * too low. A chunk that finds none ends the load. */
static uint64_t slack(const struct cache *c)
{
    uint64_t limit = c->budget->limit;
    uint64_t least = limit / 4 < SLACK_MIN ? limit / 4 : SLACK_MIN;
    return limit / 16 > least ? limit / 16 : least;
}

static void reserve(struct cache_handle *e, uint64_t n)
{
    e->reserved += n;
    atomic_fetch_add_explicit(&e->cache->budget->reserved, n, memory_order_relaxed);
}

static void unreserve(struct cache_handle *e, uint64_t n)
{
    if (n > e->reserved)
        n = e->reserved;
    e->reserved -= n;
    atomic_fetch_sub_explicit(&e->cache->budget->reserved, n, memory_order_relaxed);
}

/* What the arena has grown by was reserved before and is charged now. */
static void settle(struct cache_handle *e)
{
    uint64_t now = e->part ? xp_arena_bytes(e->part->arena) : 0;
    if (now > e->charged)
        unreserve(e, now - e->charged);
    e->charged = now;
}

/* --- waiters --- */

static bool holds(const struct cache_handle *e, enum cache_until until)
{
    if (e->done)
        return true;
    if (until == CACHE_INDEXED)
        return e->indexed;
    return until == CACHE_FIRST_PLANE && e->indexed && load_has_plane(e->load);
}

/* Under the lock: those to be called now, with what they are told. */
static struct waiter *take_ready(struct cache_handle *e)
{
    struct waiter *ready = NULL, **end = &ready, **p = &e->waiters;
    while (*p) {
        struct waiter *w = *p;
        bool gone = w->cancel && atomic_load_explicit(w->cancel, memory_order_relaxed);
        if (!gone && !holds(e, w->until)) {
            p = &w->next;
            continue;
        }
        w->status = gone ? XP_CANCELLED : e->status;
        w->err = e->err;
        if (gone)
            xp_fail(&w->err, XP_CANCELLED, 0, "%s", xp_status_text(XP_CANCELLED));
        *p = w->next;
        w->next = NULL;
        *end = w;
        end = &w->next;
    }
    return ready;
}

/* Without the lock: the callbacks may put handles back. */
static void call_all(struct waiter *w)
{
    while (w) {
        struct waiter *next = w->next;
        w->fn(w->ctx, w->status, &w->err);
        free(w);
        w = next;
    }
}

/* --- what the load says --- */

/* When what is loading now will be through, so that it can be evicted if need be; under the lock.
 */
static uint64_t wait_ms(const struct cache *c)
{
    uint64_t left = atomic_load_explicit(&c->budget->reserved, memory_order_relaxed);
    double ms = c->pace > 0 ? (double)left / c->pace / 1e6 : 0;
    return ms < 1e6 ? (uint64_t)ms : 1000000;
}

static enum xp_status on_admit(void *ctx, uint64_t bytes, struct xp_error *err)
{
    struct cache_handle *e = ctx;
    struct cache *c = e->cache;
    pthread_mutex_lock(&c->lock);
    settle(e);
    uint64_t need = (uint64_t)((double)bytes * c->ratio);
    /* One load alone may try: the estimate may be too high, and the arena has the hard limit. */
    bool ok = e->aside ? fits(c, need + slack(c))
                       : make_room(c, need + slack(c)) || fits(c, need) || c->loads == 1;
    if (ok)
        reserve(e, need);
    else if (!e->aside)
        c->stats.refused++;
    uint64_t wait = wait_ms(c);
    if (!ok && !e->aside) { /* the one who tries again finds their room */
        abandon_lonely(c, 0);
        abandon_aside(c);
    }
    pthread_mutex_unlock(&c->lock);
    if (ok)
        return XP_OK;
    xp_fail(err, XP_BUSY, 0,
            "the memory budget is taken by profiles that are open; try again in a moment");
    xp_error_retry(err, wait);
    return XP_BUSY;
}

static void on_indexed(void *ctx)
{
    struct cache_handle *e = ctx;
    pthread_mutex_lock(&e->cache->lock);
    e->part = load_part(e->load);
    e->indexed = true;
    struct waiter *ready = take_ready(e);
    pthread_mutex_unlock(&e->cache->lock);
    call_all(ready);
}

static void on_changed(void *ctx)
{
    struct cache_handle *e = ctx;
    struct cache *c = e->cache;
    pthread_mutex_lock(&c->lock);
    settle(e);
    /* An estimate may have been too low; a part that is not used is no reason to fail, and one that
     * nobody waits for no reason to evict. */
    if (!e->aside)
        make_room(c, slack(c));
    abandon_lonely(c, c->linger_ns);
    struct waiter *ready = take_ready(e);
    pthread_mutex_unlock(&c->lock);
    call_all(ready);
}

static void learn(struct cache *c, const struct cache_handle *e)
{
    if (e->part->size < 1 << 20)
        return;
    double ratio = (double)e->charged / (double)e->part->size;
    c->ratio += (ratio - c->ratio) * RATIO_WEIGHT;
    double pace = (double)e->charged / (double)(e->rebuild_ns + 1);
    c->pace += (pace - c->pace) * (c->pace > 0 ? RATIO_WEIGHT : 1);
}

static void on_done(void *ctx, enum xp_status status, const struct xp_error *err)
{
    struct cache_handle *e = ctx;
    struct cache *c = e->cache;
    struct load *l = e->load;
    if (status != XP_OK && status != XP_CANCELLED)
        xp_log(XP_LOG_WARN, "load", "%s: %s (%s, byte %llu)", e->name, err->text,
               xp_status_code(status), (unsigned long long)err->offset);
    pthread_mutex_lock(&c->lock); /* once it is free the last one to unpin may free e */
    e->part = load_take(l);
    e->load = NULL;
    e->status = status;
    e->err = *err;
    e->done = true;
    settle(e);
    unreserve(e, e->reserved);
    e->used_ns = xp_now_ns();
    e->rebuild_ns = e->used_ns - e->started_ns;
    if (status == XP_OK)
        learn(c, e);
    else
        forget(e);
    bool orphan = !e->pins && !e->in_table;
    struct waiter *ready = take_ready(e);
    c->drops++; /* so that cache_free waits for what follows */
    c->loads--;
    pthread_mutex_unlock(&c->lock);

    load_free(l);
    if (orphan)
        free_entry(e);
    call_all(ready); /* e may be gone from here on */
    pthread_mutex_lock(&c->lock);
    if (--c->drops == 0)
        pthread_cond_broadcast(&c->idle);
    pthread_mutex_unlock(&c->lock);
}

/* --- asking --- */

struct cache *cache_new(struct xp_workers *w, struct xp_budget *budget)
{
    struct cache *c = calloc(1, sizeof *c);
    XP_ASSERT(c);
    c->workers = w;
    c->budget = budget;
    c->ratio = RATIO_FIRST;
    c->linger_ns = LINGER_NS;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->idle, NULL);
    return c;
}

void cache_free(struct cache *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < BUCKETS; i++)
        for (struct cache_handle *e = c->buckets[i]; e; e = e->next)
            if (e->load)
                load_cancel(e->load);
    while (c->loads || c->drops)
        pthread_cond_wait(&c->idle, &c->lock);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < BUCKETS; i++) {
        while (c->buckets[i]) {
            struct cache_handle *e = c->buckets[i];
            XP_ASSERT(!e->pins);
            c->buckets[i] = e->next;
            free_entry(e);
        }
    }
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->idle);
    free(c);
}

void cache_set_linger(struct cache *c, uint64_t ms)
{
    pthread_mutex_lock(&c->lock);
    c->linger_ns = ms * 1000000;
    pthread_mutex_unlock(&c->lock);
}

static uint64_t hash_of(const struct cache_key *key)
{
    return xp_hash(xp_span_str(key->key)) ^ xp_hash_u64(key->generation);
}

static struct cache_handle *new_entry(struct cache *c, const struct cache_key *key, uint64_t hash)
{
    struct cache_handle *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->name = strdup(key->key);
    e->cache = c;
    e->key = *key;
    e->key.key = e->name;
    e->hash = hash;
    e->pins = 1;
    e->aside = key->aside;
    e->started_ns = xp_now_ns();
    struct load_source src = {key->store, key->key, key->generation,
                              key->size,  key->gz,  key->device_later};
    struct load_hooks hooks = {
        .ctx = e, .admit = on_admit, .indexed = on_indexed, .changed = on_changed, .done = on_done};
    e->load = e->name ? load_new(&src, c->budget, &hooks) : NULL;
    if (e->load)
        return e;
    free_entry(e);
    return NULL;
}

/* Under the lock. The load's first hook waits for it. */
static struct cache_handle *start(struct cache *c, const struct cache_key *key, uint64_t hash)
{
    struct cache_handle *e = new_entry(c, key, hash);
    if (!e)
        return NULL;
    if (load_start(e->load, c->workers) != XP_OK) {
        load_free(e->load);
        free_entry(e);
        return NULL;
    }
    insert(c, e);
    c->loads++;
    c->stats.loads++;
    return e;
}

enum xp_status cache_get(struct cache *c, const struct cache_key *key, struct cache_handle **out,
                         struct xp_error *err)
{
    uint64_t hash = hash_of(key);
    struct cache_handle *victim = NULL;
    pthread_mutex_lock(&c->lock);
    struct cache_handle *e = find(c, key, hash);
    if (e) {
        e->pins++;
        e->aside &= key->aside;
        c->stats.hits++;
    } else if (key->aside && c->stats.parts >= PARTS_MAX) {
        /* it would cost another part */
    } else {
        if (c->stats.parts >= PARTS_MAX)
            victim = pick_victim(c);
        e = start(c, key, hash);
    }
    if (e)
        e->asks++;
    c->stats.refused += !e && !key->aside;
    pthread_mutex_unlock(&c->lock);
    if (victim)
        drop_later(c, victim);
    *out = e;
    return e ? XP_OK : xp_fail(err, XP_BUSY, 0, "the server has no memory to open another profile");
}

static void put(struct cache_handle *e, bool once)
{
    struct cache *c = e->cache;
    bool drop = false;
    pthread_mutex_lock(&c->lock);
    if (--e->pins == 0) {
        e->used_ns = xp_now_ns();
        if (once && !e->load && e->asks == 1)
            forget(e);
        if (e->load && e->in_table && (c->linger_ns == 0 || e->aside))
            abandon(e);
        drop = !e->load && !e->in_table;
    }
    pthread_mutex_unlock(&c->lock);
    if (drop)
        drop_later(c, e);
}

void cache_put(struct cache_handle *e)
{
    put(e, false);
}

void cache_put_once(struct cache_handle *e)
{
    put(e, true);
}

void cache_when(struct cache_handle *e, enum cache_until until, const atomic_bool *cancel,
                cache_ready_fn fn, void *ctx)
{
    struct waiter *w = calloc(1, sizeof *w);
    struct cache *c = e->cache;
    XP_ASSERT(w);
    *w = (struct waiter){.until = until, .cancel = cancel, .fn = fn, .ctx = ctx};
    pthread_mutex_lock(&c->lock);
    struct waiter **end = &e->waiters;
    while (*end)
        end = &(*end)->next;
    *end = w;
    struct waiter *ready = take_ready(e);
    pthread_mutex_unlock(&c->lock);
    call_all(ready);
}

struct part *cache_part(struct cache_handle *e)
{
    pthread_mutex_lock(&e->cache->lock);
    struct part *p = e->part;
    pthread_mutex_unlock(&e->cache->lock);
    return p;
}

void cache_progress(struct cache_handle *e, struct cache_progress *out)
{
    *out = (struct cache_progress){.bytes_total = e->key.size};
    pthread_mutex_lock(&e->cache->lock);
    struct part *p = e->part;
    out->indexed = e->indexed;
    out->done = e->done;
    out->status = e->status;
    if (p && e->indexed) {
        out->bytes_total = p->size;
        out->bytes_done = atomic_load_explicit(&p->bytes_done, memory_order_relaxed);
        out->events_done = atomic_load_explicit(&p->events_done, memory_order_relaxed);
        out->planes_total = p->nplanes;
        out->planes_done = p->nplanes - (e->load ? load_planes_left(e->load) : 0);
    }
    pthread_mutex_unlock(&e->cache->lock);
}

void cache_stats(struct cache *c, struct cache_stats *out)
{
    pthread_mutex_lock(&c->lock);
    *out = c->stats;
    for (int i = 0; i < BUCKETS; i++) {
        for (struct cache_handle *e = c->buckets[i]; e; e = e->next) {
            out->pinned += e->pins > 0;
            out->bytes += e->charged;
        }
    }
    pthread_mutex_unlock(&c->lock);
}
