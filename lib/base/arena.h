/* lib/base/arena.h - memory that dies all at once, inside a budget.
 *
 * A budget counts bytes for a whole process. An arena is one lifetime (a profile part, a
 * task's scratch): a jemalloc arena that hands out chunks, dropped in one call, its pages
 * returned to the system. A bump is one thread's pen into an arena: threads that fill one
 * part each hold their own bump, so that allocating takes no lock but for a new chunk.
 *
 * Order      xp_arena_new -> any number of xp_bump_init/xp_bump_alloc, xp_arena_alloc ->
 *            xp_arena_free. Nothing is freed singly.
 * Running out  A chunk that would exceed the budget (or the arena's own limit) gives NULL:
 *            the caller returns XP_BUSY and the arena is dropped whole.
 * Threads    xp_arena_alloc and xp_bump_* (each bump by one thread) may run concurrently on
 *            one arena. xp_arena_free must be alone, and takes 70-300 ms per GiB: call it on
 *            a worker, never on a loop.
 * Small      The first MiB comes from malloc, so that a short task does not pay for a jemalloc
 *            arena (create and destroy: 165 us).
 * Pages      A bump's full-sized chunks are faulted in at once, which costs two thirds of what
 *            their pages do one by one; they are charged whole anyhow.
 * Sanitizers Under TSan all chunks are malloc'd; under ASan each object is, so that it sees a
 *            read past any of them. All are freed at xp_arena_free.
 */
#ifndef XP_BASE_ARENA_H
#define XP_BASE_ARENA_H

#include <stdatomic.h>

#include "lib/base/span.h"

/* Bytes of the whole process that arenas may hold; shared by threads. */
struct xp_budget {
    _Atomic uint64_t used;     /* charged by chunks that exist */
    _Atomic uint64_t reserved; /* promised to loads that have not been charged yet */
    _Atomic uint64_t peak;     /* highest used seen */
    uint64_t limit;            /* 0: no limit */
};

void xp_budget_init(struct xp_budget *b, uint64_t limit);

struct xp_arena;

/* budget may be NULL (not counted). NULL only if the control block cannot be had. */
struct xp_arena *xp_arena_new(struct xp_budget *budget);
void xp_arena_free(struct xp_arena *a); /* NULL is fine */

/* Bytes of chunks held, what the budget was charged. */
uint64_t xp_arena_bytes(const struct xp_arena *a);

/* 16-byte aligned, not zeroed; NULL when the budget is spent. Takes a lock: for many small
 * objects use a bump. */
void *xp_arena_alloc(struct xp_arena *a, size_t n);
void *xp_arena_zalloc(struct xp_arena *a, size_t n);

struct xp_bump {
    struct xp_arena *arena;
    uint8_t *at, *end;
    size_t chunk; /* next chunk's size: grows from 4 KiB to 256 KiB, so small parts stay small */
};

void xp_bump_init(struct xp_bump *b, struct xp_arena *a);
void *xp_bump_slow(struct xp_bump *b, size_t n, size_t align);

/* align is a power of two, at most 16. */
static inline void *xp_bump_alloc(struct xp_bump *b, size_t n, size_t align)
{
    uintptr_t at = ((uintptr_t)b->at + align - 1) & ~(uintptr_t)(align - 1);
    uintptr_t end = (uintptr_t)b->end;
    if (b->at && at <= end && n <= end - at) {
        b->at = (uint8_t *)(at + n);
        return (void *)at;
    }
    return xp_bump_slow(b, n, align);
}

/* A copy of s that lives as long as the arena; p == NULL when the budget is spent (a copy of
 * an empty span is not NULL). */
struct xp_span xp_bump_span(struct xp_bump *b, struct xp_span s);

#endif
