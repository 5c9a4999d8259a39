/* server/upstream_int.h - what the upstream knows: how shards are, which profiles are hot, how long
 * answers take, who owns the hosts of a session. Each has a lock of its own and may be asked from
 * any thread; nothing here is agreed upon with other frontends.
 */
#ifndef SERVER_UPSTREAM_INT_H
#define SERVER_UPSTREAM_INT_H

#include "lib/cluster/ring.h"
#include "server/runs.h"
#include "server/upstream.h"

/* --- how shards are (upstream_health.c) --- */

/* One that fails is left alone: it is asked last, and for a hello after HEALTH_FIRST_MS, twice
 * that, and so on up to HEALTH_MOST_MS, until it says it. A request never pays for finding out. */
#define HEALTH_FIRST_MS 250
#define HEALTH_MOST_MS 8000
#define HEALTH_ADDRESS_MAX 320

struct healths;

struct healths *healths_new(void);
void healths_free(struct healths *h);
void healths_failed(struct healths *h, uint64_t name, const char *address, uint64_t now);
void healths_well(struct healths *h, uint64_t name);
bool healths_is_ill(struct healths *h, uint64_t name);
/* What it said it has to do, or 0 when that was more than a second ago. */
void healths_set_load(struct healths *h, uint64_t name, uint32_t load, uint64_t now);
uint32_t healths_load(struct healths *h, uint64_t name, uint64_t now);
/* Whether it is to be said hello to because an ask waits for it: once a second, however many do. */
bool healths_may_say(struct healths *h, uint64_t name, uint64_t now);
/* One that is to be said hello to now; false: none. It is not due again before it failed. */
bool healths_due(struct healths *h, uint64_t now, uint64_t *name, char address[HEALTH_ADDRESS_MAX]);
/* When one that is ill is asked for a hello again, from now on; 0: it is well. */
uint64_t healths_wait_ms(struct healths *h, uint64_t name, uint64_t now);
uint64_t healths_ill(struct healths *h); /* how many */

/* --- hot profiles (upstream_hot.c) --- */

/* A profile that is asked for HOT_RATE times a second, of a shard that has HOT_LOAD to do, gets a
 * copy at the next rank; where that is not enough, at the two ranks after it. A copy is used once
 * it is whole, and goes away by eviction when it is used no more. */
#define HOT_RATE 20
#define HOT_RATE_MORE 80
#define HOT_LOAD 300
#define HOT_COPIES 3

struct hots;

struct hots *hots_new(void);
void hots_free(struct hots *h);

struct hot_choice {
    size_t rank; /* who is asked: a place in ranks, 0 where nothing is hot */
    size_t copy; /* a rank where a copy is to be made; 0: none */
};

/* A request for a key. ranks: hashes of the members' names, best first; those that are ill count
 * for nothing. */
struct hot_choice hots_choose(struct hots *h, struct healths *healths, uint64_t key,
                              const uint64_t *ranks, size_t n, uint64_t now);
/* The same without a choice, so that what is learnt of the key is kept. */
void hots_touch(struct hots *h, uint64_t key, uint64_t now);
/* The copy that hots_choose asked for is there, or could not be made. */
void hots_copied(struct hots *h, uint64_t key, uint64_t member, bool there, uint64_t now);
/* Whether the member gave a whole answer about the key lately, so that it should be quick. */
void hots_set_warm(struct hots *h, uint64_t key, uint64_t member);
bool hots_is_warm(struct hots *h, uint64_t key, uint64_t member);

/* --- how long answers take (upstream_pace.c) --- */

/* Of each kind the delay that PACE_SHARE of the answers stay below; whoever waits longer may ask
 * another shard as well, but no more than PACE_EXTRA of all asks are such second ones. A kind is an
 * operation on what the shard has (warm) or a map of what it has to load first; reads of what has
 * to be loaded are none, as another shard would have to load it too. */
#define PACE_SHARE 0.95
#define PACE_EXTRA 0.05
#define PACE_LEAST_US 10000
#define PACE_COLD_US 1000000
#define PACE_SAMPLES 32

struct paces;

struct paces *paces_new(void);
void paces_free(struct paces *p);
bool paces_may(enum shard_op op, bool warm); /* a kind that is asked for twice at all */
void paces_note(struct paces *p, enum shard_op op, bool warm, uint64_t us);
/* UINT64_MAX: not known yet. */
uint64_t paces_delay_us(struct paces *p, enum shard_op op, bool warm);
void paces_earn(struct paces *p);  /* an ask was made */
bool paces_spend(struct paces *p); /* may a second one be made? */

/* --- who owns what (upstream_place.c) --- */

struct places;

struct places *places_new(void);
void places_free(struct places *p);

uint64_t place_name(const struct xp_ring *ring, uint32_t member); /* a hash */
uint64_t place_key(const struct shard_request *req); /* of the first object, or of their folder */

/* The ranks for one request: an only object's owner within its run first (run may be NULL). */
size_t places_ranks(struct places *p, const struct xp_ring *ring, const struct shard_request *req,
                    const struct run *run, uint32_t *ranks, size_t max);

/* Who maps which of the request's objects; owners and peers are malloc'd, and part of req then.
 * False: the shard that is asked does it all. */
bool places_share_out(struct places *p, struct healths *healths, const struct xp_ring *ring,
                      const struct run *run, struct shard_request *req);

#endif
