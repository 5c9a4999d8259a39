#include <pthread.h>
#include <stdlib.h>

#include "server/upstream_int.h"

#define OPS (SHARD_MAP_REPORT_CSV + 1) /* and the cold ones */
#define STEPS 4                        /* buckets for each doubling */
#define BUCKETS (28 * STEPS)
#define FORGET 2048 /* samples after which the old ones count half */
#define SAVED_MAX 10.0

struct pace {
    uint32_t n;
    uint32_t counts[BUCKETS];
    uint64_t delay_us;
};

struct paces {
    pthread_mutex_t lock;
    double saved; /* second asks that may be made */
    struct pace of[OPS * 2];
};

struct paces *paces_new(void)
{
    struct paces *p = calloc(1, sizeof *p);
    XP_ASSERT(p);
    pthread_mutex_init(&p->lock, NULL);
    for (size_t i = 0; i < OPS * 2; i++)
        p->of[i].delay_us = UINT64_MAX;
    return p;
}

void paces_free(struct paces *p)
{
    if (!p)
        return;
    pthread_mutex_destroy(&p->lock);
    free(p);
}

bool paces_may(enum shard_op op, bool warm)
{
    switch (op) {
    case SHARD_TRACKS:
    case SHARD_WINDOW:
    case SHARD_EVENT:
    case SHARD_NEIGHBOUR:
    case SHARD_SEARCH:
    case SHARD_AGGREGATE:
    case SHARD_CURVE:
        return warm;
    case SHARD_MAP:
    case SHARD_MAP_CSV:
    case SHARD_MAP_REPORT:
    case SHARD_MAP_REPORT_CSV:
        return true;
    default:
        return false;
    }
}

/* Two bits after the highest one. */
static size_t bucket_of(uint64_t us)
{
    if (us < STEPS)
        return (size_t)us;
    unsigned top = 63 - (unsigned)__builtin_clzll(us);
    size_t b = (size_t)(top - 1) * STEPS + (us >> (top - 2) & (STEPS - 1));
    return b < BUCKETS ? b : BUCKETS - 1;
}

static uint64_t end_of(size_t bucket)
{
    if (bucket < STEPS)
        return bucket + 1;
    unsigned top = (unsigned)(bucket / STEPS) + 1;
    return (UINT64_C(1) << top) + ((uint64_t)(bucket % STEPS) + 1) * (UINT64_C(1) << (top - 2));
}

static void settle(struct pace *p, uint64_t least_us)
{
    uint32_t so_far = 0;
    size_t b = 0;
    while (b < BUCKETS - 1 && so_far + p->counts[b] < PACE_SHARE * p->n)
        so_far += p->counts[b++];
    uint64_t us = end_of(b);
    p->delay_us = us > least_us ? us : least_us;
    if (p->n < FORGET)
        return;
    p->n = 0;
    for (size_t i = 0; i < BUCKETS; i++)
        p->n += p->counts[i] /= 2;
}

static size_t place_of(enum shard_op op, bool warm)
{
    return (size_t)op + (warm ? 0 : OPS);
}

void paces_note(struct paces *p, enum shard_op op, bool warm, uint64_t us)
{
    pthread_mutex_lock(&p->lock);
    struct pace *one = &p->of[place_of(op, warm)];
    one->counts[bucket_of(us)]++;
    if (++one->n % PACE_SAMPLES == 0)
        settle(one, warm ? PACE_LEAST_US : PACE_COLD_US);
    pthread_mutex_unlock(&p->lock);
}

uint64_t paces_delay_us(struct paces *p, enum shard_op op, bool warm)
{
    pthread_mutex_lock(&p->lock);
    uint64_t us = p->of[place_of(op, warm)].delay_us;
    pthread_mutex_unlock(&p->lock);
    return us;
}

void paces_earn(struct paces *p)
{
    pthread_mutex_lock(&p->lock);
    p->saved = p->saved + PACE_EXTRA < SAVED_MAX ? p->saved + PACE_EXTRA : SAVED_MAX;
    pthread_mutex_unlock(&p->lock);
}

bool paces_spend(struct paces *p)
{
    pthread_mutex_lock(&p->lock);
    bool may = p->saved >= 1;
    if (may)
        p->saved -= 1;
    pthread_mutex_unlock(&p->lock);
    return may;
}
