#include "lib/base/arena.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/base/status.h"

#ifndef XP_PLAIN_MALLOC
#include <jemalloc/jemalloc.h>

/* For the whole process, read by jemalloc before main: what malloc'd answers leave behind goes
 * back to the system within seconds, by a thread of its own and not in the middle of a request. */
const char *malloc_conf = "background_thread:true,dirty_decay_ms:500,muzzy_decay_ms:0";
#endif

#if defined(__SANITIZE_ADDRESS__)
#define EACH_OBJECT 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EACH_OBJECT 1
#endif
#endif
#ifndef EACH_OBJECT
#define EACH_OBJECT 0
#endif

#define CHUNK_FIRST 4096
#define CHUNK_LAST (256 * 1024)
#define SMALL_ARENA (1024 * 1024)
#define PAGE 4096

/* Before the bytes of a chunk that malloc gave. */
struct chunk {
    struct chunk *next;
    uint64_t pad;
};

enum home { HOME_MALLOC, HOME_JEMALLOC, HOME_MALLOC_ONLY };

struct xp_arena {
    struct xp_budget *budget;
    _Atomic uint64_t bytes;
    _Atomic int home; /* HOME_*: where the next chunk comes from */
    unsigned index;   /* of the jemalloc arena, once home says so */
    pthread_mutex_t lock;
    struct chunk *chunks;
    struct xp_bump own; /* for xp_arena_alloc, under lock_own */
    pthread_mutex_t lock_own;
};

/* --- budget --- */

void xp_budget_init(struct xp_budget *b, uint64_t limit)
{
    atomic_init(&b->used, 0);
    atomic_init(&b->reserved, 0);
    atomic_init(&b->peak, 0);
    b->limit = limit;
}

static bool charge(struct xp_budget *b, uint64_t n)
{
    if (!b)
        return true;
    uint64_t used = atomic_load_explicit(&b->used, memory_order_relaxed);
    do {
        if (b->limit && (n > b->limit || used > b->limit - n))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&b->used, &used, used + n, memory_order_relaxed,
                                                    memory_order_relaxed));
    uint64_t peak = atomic_load_explicit(&b->peak, memory_order_relaxed);
    while (used + n > peak &&
           !atomic_compare_exchange_weak_explicit(&b->peak, &peak, used + n, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
    return true;
}

static void uncharge(struct xp_budget *b, uint64_t n)
{
    if (b)
        atomic_fetch_sub_explicit(&b->used, n, memory_order_relaxed);
}

/* --- chunks --- */

static void *malloc_chunk(struct xp_arena *a, size_t n)
{
    size_t whole;
    if (__builtin_add_overflow(n, sizeof(struct chunk), &whole))
        return NULL;
    struct chunk *c = malloc(whole);
    if (!c)
        return NULL;
    pthread_mutex_lock(&a->lock);
    c->next = a->chunks;
    a->chunks = c;
    pthread_mutex_unlock(&a->lock);
    return c + 1;
}

#ifndef XP_PLAIN_MALLOC

/* An arena that has outgrown malloc gets a jemalloc arena of its own, so that destroying it gives
 * the pages back to the system. jemalloc has 4095 of them: without one, malloc goes on. */
static int settle(struct xp_arena *a)
{
    pthread_mutex_lock(&a->lock);
    int home = atomic_load_explicit(&a->home, memory_order_relaxed);
    if (home == HOME_MALLOC) {
        size_t n = sizeof a->index;
        home = mallctl("arenas.create", &a->index, &n, NULL, 0) == 0 ? HOME_JEMALLOC
                                                                     : HOME_MALLOC_ONLY;
        atomic_store_explicit(&a->home, home, memory_order_release);
    }
    pthread_mutex_unlock(&a->lock);
    return home;
}

static void *get_chunk(struct xp_arena *a, size_t n)
{
    int home = atomic_load_explicit(&a->home, memory_order_acquire);
    if (home == HOME_MALLOC && xp_arena_bytes(a) > SMALL_ARENA)
        home = settle(a);
    if (home == HOME_JEMALLOC)
        return mallocx(n, MALLOCX_ARENA(a->index) | MALLOCX_TCACHE_NONE);
    return malloc_chunk(a, n);
}

static void destroy_home(struct xp_arena *a)
{
    if (atomic_load_explicit(&a->home, memory_order_relaxed) != HOME_JEMALLOC)
        return;
    char name[32];
    snprintf(name, sizeof name, "arena.%u.destroy", a->index);
    XP_ASSERT(mallctl(name, NULL, NULL, NULL, 0) == 0);
}

#else

static void *get_chunk(struct xp_arena *a, size_t n)
{
    return malloc_chunk(a, n);
}

static void destroy_home(struct xp_arena *a)
{
    (void)a;
}

#endif

/* What a chunk of n bytes costs: large ones come in pages. */
static uint64_t cost_of(size_t n)
{
    return n < PAGE ? n : ((uint64_t)n + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static void *new_chunk(struct xp_arena *a, size_t n)
{
    if (n > PTRDIFF_MAX - PAGE)
        return NULL;
    uint64_t cost = cost_of(n);
    if (!charge(a->budget, cost))
        return NULL;
    atomic_fetch_add_explicit(&a->bytes, cost, memory_order_relaxed);
    void *p = get_chunk(a, n);
    if (!p) {
        atomic_fetch_sub_explicit(&a->bytes, cost, memory_order_relaxed);
        uncharge(a->budget, cost);
    }
    return p;
}

/* --- arenas and bumps --- */

struct xp_arena *xp_arena_new(struct xp_budget *budget)
{
    struct xp_arena *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->budget = budget;
    atomic_init(&a->bytes, 0);
    atomic_init(&a->home, HOME_MALLOC);
    pthread_mutex_init(&a->lock, NULL);
    pthread_mutex_init(&a->lock_own, NULL);
    xp_bump_init(&a->own, a);
    return a;
}

void xp_arena_free(struct xp_arena *a)
{
    if (!a)
        return;
    destroy_home(a);
    for (struct chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    uncharge(a->budget, xp_arena_bytes(a));
    pthread_mutex_destroy(&a->lock);
    pthread_mutex_destroy(&a->lock_own);
    free(a);
}

uint64_t xp_arena_bytes(const struct xp_arena *a)
{
    return atomic_load_explicit(&a->bytes, memory_order_relaxed);
}

void *xp_arena_alloc(struct xp_arena *a, size_t n)
{
    pthread_mutex_lock(&a->lock_own);
    void *p = xp_bump_alloc(&a->own, n, 16);
    pthread_mutex_unlock(&a->lock_own);
    return p;
}

void *xp_arena_zalloc(struct xp_arena *a, size_t n)
{
    void *p = xp_arena_alloc(a, n);
    if (p)
        memset(p, 0, n);
    return p;
}

void xp_bump_init(struct xp_bump *b, struct xp_arena *a)
{
    *b = (struct xp_bump){.arena = a, .chunk = CHUNK_FIRST};
}

/* A chunk that will be written whole: its pages at once cost two thirds of what they do one by
 * one. Where the kernel cannot, they come as they are touched. */
static void populate(uint8_t *p, size_t n)
{
#ifdef MADV_POPULATE_WRITE
    uint8_t *from = (uint8_t *)(((uintptr_t)p + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    size_t whole = (n - (size_t)(from - p)) & ~(size_t)(PAGE - 1);
    (void)madvise(from, whole, MADV_POPULATE_WRITE);
#else
    (void)p;
    (void)n;
#endif
}

static size_t next_chunk(struct xp_bump *b)
{
    size_t n = b->chunk;
    if (b->chunk < CHUNK_LAST)
        b->chunk *= 2;
    return n;
}

void *xp_bump_slow(struct xp_bump *b, size_t n, size_t align)
{
    XP_ASSERT(align <= 16 && (align & (align - 1)) == 0);
    if (EACH_OBJECT)
        return new_chunk(b->arena, n);

    size_t size = next_chunk(b);
    /* A request that would take much of a chunk gets one to itself, and the pen stays where it
     * is: what is left there is still of use. */
    if (n > size / 2)
        return new_chunk(b->arena, n < 16 ? 16 : n);

    uint8_t *p = new_chunk(b->arena, size);
    if (!p)
        return NULL;
    if (size == CHUNK_LAST)
        populate(p, size);
    b->at = p + n;
    b->end = p + size;
    return p;
}

struct xp_span xp_bump_span(struct xp_bump *b, struct xp_span s)
{
    uint8_t *p = xp_bump_alloc(b, s.n, 1);
    if (!p)
        return (struct xp_span){0};
    if (s.n)
        memcpy(p, s.p, s.n);
    return (struct xp_span){p, s.n};
}
