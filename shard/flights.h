/* shard/flights.h - what is being made now, so that the same is not made twice at once.
 *
 * Whoever is about to make an answer joins under what was asked, whole. The first of those who ask
 * the same makes it; who joins while it is under way waits behind that one, and is handed to it
 * when it ends: they are given its answer, or one of them makes it if it has none to give.
 *
 * Limit      Who waits is in no queue of workers, so that each says how many may wait before it.
 *            Those whose asker has left meanwhile are found when the next one joins; where many
 *            wait, by the time that there are twice as many, and where no more may, when so
 *            many were refused: it takes a look at each.
 * Ownership  A flight is part of its owner, and the key's bytes are: both stay until the first
 *            has ended, or flights_join has given them back.
 * Threads    Any. A flight that waits may be handed over before flights_join has returned: whoever
 *            is told to wait touches it no more.
 */
#ifndef SHARD_FLIGHTS_H
#define SHARD_FLIGHTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/span.h"

struct flights;

struct flight {
    struct flight *next; /* in the table; of those behind one, in order of their coming */
    struct flight *first_behind, *last_behind;
    size_t behind, sweep_at, refused; /* of a first: how many, and when to look for who has left */
    bool first;                       /* nobody made the same when it joined */
    uint64_t hash;
    struct xp_span key;
    const atomic_bool *cancel;
};

struct flights_ask {
    struct xp_span key;        /* what is asked, whole */
    const atomic_bool *cancel; /* its asker has left; NULL: it never does */
    size_t most;               /* that may wait behind one, with it */
};

enum flights_place {
    FLIGHTS_FIRST, /* ends with flights_end or flights_pass */
    FLIGHTS_WAITS,
    FLIGHTS_FULL, /* as many wait as may: it did not join */
};

struct flights *flights_new(void);
void flights_free(struct flights *f); /* nothing is under way */

/* *left: those that waited where it would and whose askers have left, linked by `next`; they are
 * the caller's, and wait no more. */
enum flights_place flights_join(struct flights *f, struct flight *me, const struct flights_ask *ask,
                                struct flight **left);
/* Does anyone wait behind this first one? */
bool flights_followed(struct flights *f, const struct flight *first);
/* Those who waited behind it, linked by `next`, or NULL; who asks the same now is the first again.
 */
struct flight *flights_end(struct flights *f, struct flight *first);
/* It ends, and the next takes its place, with all others behind it; NULL: nobody waited. */
struct flight *flights_pass(struct flights *f, struct flight *first);

#endif
