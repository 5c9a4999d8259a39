/* shard/load.h - from an object in a store to a part.
 *
 * Opens (unpacks, where it is packed) and indexes the object, then decodes metadata and lines of
 * its planes on several threads, packs the events into lanes as they stream by, and publishes plane
 * after plane.
 *
 * Order      load_new -> load_start (on workers) or load_run (on this thread, to the end). Then
 *            hooks run: indexed, changed any number of times, done exactly once and last; after
 *            it load_free. load_cancel at any time before done.
 * Ownership  The part belongs to the load until load_take, after done and whatever its status (it
 *            may be NULL then). Planes that were published stay valid until it is freed.
 * Threads    Hooks run on workers (or inside load_run), never two at once for one load.
 * Failing    XP_CORRUPT if nothing of the object can be read as a profile; damage after something
 *            could is XP_OK and part->partial. XP_BUSY when the budget is spent, XP_IO and XP_STALE
 *            from the store, XP_CANCELLED.
 */
#ifndef SHARD_LOAD_H
#define SHARD_LOAD_H

#include "lib/run/workers.h"
#include "shard/store/part.h"

/* Inflated bytes of a compressed profile; more is taken for a bomb. */
#define LOAD_GZ_MAX ((uint64_t)16 << 30)

struct load_source {
    struct xp_store *store; /* outlives the load */
    const char *key;        /* copied */
    uint64_t generation, size;
    bool gz;           /* packed, by gzip or as records (Riegeli): its first bytes tell */
    bool device_later; /* see part.h */
};

struct load_hooks {
    void *ctx; /* any hook may be NULL */
    /* Before a plane of this many bytes is decoded; another status than XP_OK ends the load. */
    enum xp_status (*admit)(void *ctx, uint64_t bytes, struct xp_error *err);
    /* The table of planes exists, load_part is not NULL. */
    void (*indexed)(void *ctx);
    /* A slice of work was done; planes may have been published. */
    void (*changed)(void *ctx);
    void (*done)(void *ctx, enum xp_status status, const struct xp_error *err);
};

struct load;

/* NULL when memory is short. */
struct load *load_new(const struct load_source *src, struct xp_budget *budget,
                      const struct load_hooks *hooks);
/* XP_BUSY: nothing was started. */
enum xp_status load_start(struct load *l, struct xp_workers *w);
void load_run(struct load *l);
void load_cancel(struct load *l);

struct part *load_part(struct load *l);
/* A plane with events is published. */
bool load_has_plane(struct load *l);
uint32_t load_planes_left(struct load *l);
struct part *load_take(struct load *l);
void load_free(struct load *l); /* and the part, unless it was taken */

#endif
