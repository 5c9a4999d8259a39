#include "server/ratelimit.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/hash.h"
#include "lib/base/status.h"

#define WAYS 8
#define SETS (RATELIMIT_BUCKETS / WAYS)
#define LOCKS 16

struct bucket {
    uint64_t asker; /* hash; 0: free */
    uint64_t at_ns;
    double tokens; /* at that time */
};

struct ratelimit {
    double per_ns, most;
    pthread_mutex_t locks[LOCKS];
    struct bucket buckets[SETS][WAYS];
};

struct ratelimit *ratelimit_new(double per_second)
{
    if (per_second <= 0)
        return NULL;
    struct ratelimit *r = calloc(1, sizeof *r);
    XP_ASSERT(r);
    r->per_ns = per_second / 1e9;
    r->most = per_second * RATELIMIT_BURST_S > 1 ? per_second * RATELIMIT_BURST_S : 1;
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_init(&r->locks[i], NULL);
    return r;
}

void ratelimit_free(struct ratelimit *r)
{
    for (int i = 0; r && i < LOCKS; i++)
        pthread_mutex_destroy(&r->locks[i]);
    free(r);
}

static double tokens_at(const struct ratelimit *r, const struct bucket *b, uint64_t now_ns)
{
    double v = b->tokens + (now_ns > b->at_ns ? (double)(now_ns - b->at_ns) * r->per_ns : 0);
    return b->asker == 0 || v > r->most ? r->most : v;
}

/* The asker's bucket, or the fullest of its set made its own. */
static struct bucket *find(const struct ratelimit *r, struct bucket *set, uint64_t asker,
                           uint64_t now_ns)
{
    struct bucket *fullest = &set[0];
    for (int i = 0; i < WAYS; i++) {
        if (set[i].asker == asker)
            return &set[i];
        if (tokens_at(r, &set[i], now_ns) > tokens_at(r, fullest, now_ns))
            fullest = &set[i];
    }
    *fullest = (struct bucket){asker, now_ns, r->most};
    return fullest;
}

int ratelimit_take(struct ratelimit *r, const char *asker, uint64_t now_ns)
{
    if (!r)
        return 0;
    uint64_t h = xp_hash(xp_span_str(asker)) | 1;
    size_t set = (h >> 20) % SETS;
    pthread_mutex_t *lock = &r->locks[set % LOCKS];
    int wait = 0;

    pthread_mutex_lock(lock);
    struct bucket *b = find(r, r->buckets[set], h, now_ns);
    b->tokens = tokens_at(r, b, now_ns);
    b->at_ns = now_ns;
    if (b->tokens >= 1)
        b->tokens -= 1;
    else
        wait = 1 + (int)((1 - b->tokens) / r->per_ns / 1e9);
    pthread_mutex_unlock(lock);
    return wait;
}
