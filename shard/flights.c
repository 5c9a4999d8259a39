#include "shard/flights.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/hash.h"
#include "lib/base/status.h"

#define FEW 64u     /* are looked through at every join */
#define BUCKETS 256 /* of firsts: each waits for a worker or its hosts, or has a worker */

struct flights {
    pthread_mutex_t lock;
    struct flight *buckets[BUCKETS];
};

struct flights *flights_new(void)
{
    struct flights *f = calloc(1, sizeof *f);
    XP_ASSERT(f);
    pthread_mutex_init(&f->lock, NULL);
    return f;
}

void flights_free(struct flights *f)
{
    if (!f)
        return;
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static struct flight *find(const struct flights *f, const struct flight *like)
{
    struct flight *x = f->buckets[like->hash % BUCKETS];
    while (x && !(x->hash == like->hash && xp_span_eq(x->key, like->key)))
        x = x->next;
    return x;
}

/* Takes those out whose asker has left. */
static struct flight *sweep(struct flight *first)
{
    struct flight *left = NULL, **p = &first->first_behind;
    first->last_behind = NULL;
    while (*p) {
        struct flight *x = *p;
        if (!x->cancel || !atomic_load(x->cancel)) {
            first->last_behind = x;
            p = &x->next;
            continue;
        }
        *p = x->next;
        x->next = left;
        left = x;
        first->behind--;
    }
    return left;
}

/* Looking through all of many for each that joins, or is refused, would hold the lock for long. */
static bool looks(struct flight *first, size_t most)
{
    if (first->behind >= most)
        return first->refused++ % FEW == 0;
    return first->behind < FEW || first->behind >= first->sweep_at;
}

static enum flights_place stand_behind(struct flight *first, struct flight *me, size_t most,
                                       struct flight **left)
{
    *left = NULL;
    if (looks(first, most)) {
        *left = sweep(first);
        first->sweep_at = 2 * first->behind;
    }
    if (first->behind >= most)
        return FLIGHTS_FULL;
    *(first->last_behind ? &first->last_behind->next : &first->first_behind) = me;
    first->last_behind = me;
    first->behind++;
    return FLIGHTS_WAITS;
}

enum flights_place flights_join(struct flights *f, struct flight *me, const struct flights_ask *ask,
                                struct flight **left)
{
    enum flights_place place = FLIGHTS_FIRST;
    *me = (struct flight){.hash = xp_hash(ask->key), .key = ask->key, .cancel = ask->cancel};
    *left = NULL;
    pthread_mutex_lock(&f->lock);
    struct flight *first = find(f, me);
    if (first) {
        place = stand_behind(first, me, ask->most, left);
    } else {
        me->first = true;
        me->next = f->buckets[me->hash % BUCKETS];
        f->buckets[me->hash % BUCKETS] = me;
    }
    pthread_mutex_unlock(&f->lock);
    return place;
}

bool flights_followed(struct flights *f, const struct flight *first)
{
    pthread_mutex_lock(&f->lock);
    bool followed = first->first_behind != NULL;
    pthread_mutex_unlock(&f->lock);
    return followed;
}

/* Where the table says who is the first. */
static struct flight **place_of(struct flights *f, const struct flight *first)
{
    struct flight **p = &f->buckets[first->hash % BUCKETS];
    while (*p != first)
        p = &(*p)->next;
    return p;
}

struct flight *flights_end(struct flights *f, struct flight *first)
{
    pthread_mutex_lock(&f->lock);
    *place_of(f, first) = first->next;
    pthread_mutex_unlock(&f->lock);
    return first->first_behind;
}

struct flight *flights_pass(struct flights *f, struct flight *first)
{
    pthread_mutex_lock(&f->lock);
    struct flight **p = place_of(f, first), *heir = first->first_behind;
    if (!heir) {
        *p = first->next;
    } else {
        heir->first = true;
        heir->first_behind = heir->next;
        heir->last_behind = heir->next ? first->last_behind : NULL;
        heir->behind = first->behind - 1;
        heir->next = first->next;
        *p = heir;
    }
    pthread_mutex_unlock(&f->lock);
    return heir;
}
