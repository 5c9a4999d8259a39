#include "shard/answers.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/hash.h"

#define BUCKETS 1024
#define NOTES 16384 /* a newer key takes the place of an older one */

struct entry {
    struct entry *next;          /* in its bucket */
    struct entry *newer, *older; /* by last use */
    uint64_t hash;
    struct xp_blob *body;
    const char *content_type;
    bool encoded;
    struct xp_error *damage; /* NULL: none */
    size_t key_n;
    uint8_t key[];
};

struct answers {
    pthread_mutex_t lock;
    size_t max, bytes;
    struct entry *newest, *oldest;
    struct entry *buckets[BUCKETS];
    uint32_t notes[NOTES]; /* of hashes: the half that does not say the place */
};

struct answers *answers_new(size_t max_bytes)
{
    struct answers *a = calloc(1, sizeof *a);
    XP_ASSERT(a);
    pthread_mutex_init(&a->lock, NULL);
    a->max = max_bytes;
    return a;
}

static size_t cost_of(const struct entry *e)
{
    return sizeof *e + e->key_n + e->body->n + (e->damage ? sizeof *e->damage : 0);
}

/* --- the order of use; under the lock --- */

static void unlink_order(struct answers *a, struct entry *e)
{
    if (e->newer)
        e->newer->older = e->older;
    else
        a->newest = e->older;
    if (e->older)
        e->older->newer = e->newer;
    else
        a->oldest = e->newer;
}

static void make_newest(struct answers *a, struct entry *e)
{
    e->newer = NULL;
    e->older = a->newest;
    *(a->newest ? &a->newest->newer : &a->oldest) = e;
    a->newest = e;
}

static void drop_oldest(struct answers *a)
{
    struct entry *e = a->oldest, **p = &a->buckets[e->hash % BUCKETS];
    while (*p != e)
        p = &(*p)->next;
    *p = e->next;
    a->oldest = e->newer;
    if (a->oldest)
        a->oldest->older = NULL;
    else
        a->newest = NULL;
    a->bytes -= cost_of(e);
    xp_blob_unref(e->body);
    free(e->damage);
    free(e);
}

void answers_free(struct answers *a)
{
    if (!a)
        return;
    while (a->oldest)
        drop_oldest(a);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

static struct entry *find(struct answers *a, struct xp_span key, uint64_t hash)
{
    struct entry *e = a->buckets[hash % BUCKETS];
    while (e && !(e->hash == hash && xp_span_eq(xp_span_of(e->key, e->key_n), key)))
        e = e->next;
    return e;
}

static void fill(struct answers_item *out, const struct entry *e)
{
    *out = (struct answers_item){
        .body = e->body, .content_type = e->content_type, .encoded = e->encoded};
    if (e->damage)
        out->damage = *e->damage;
    xp_blob_ref(out->body);
}

bool answers_get(struct answers *a, struct xp_span key, struct answers_item *out)
{
    uint64_t hash = xp_hash(key);
    pthread_mutex_lock(&a->lock);
    struct entry *e = find(a, key, hash);
    if (e) {
        unlink_order(a, e);
        make_newest(a, e);
        fill(out, e);
    }
    pthread_mutex_unlock(&a->lock);
    return e != NULL;
}

static struct entry *new_entry(struct xp_span key, uint64_t hash, const struct answers_item *item)
{
    struct entry *e = calloc(1, sizeof *e + key.n);
    XP_ASSERT(e);
    e->hash = hash;
    e->body = item->body;
    e->content_type = item->content_type;
    e->encoded = item->encoded;
    xp_blob_ref(item->body);
    if (item->damage.status != XP_OK) {
        e->damage = malloc(sizeof *e->damage);
        XP_ASSERT(e->damage);
        *e->damage = item->damage;
    }
    e->key_n = key.n;
    memcpy(e->key, key.p, key.n);
    return e;
}

bool answers_again(struct answers *a, struct xp_span key)
{
    uint64_t hash = xp_hash(key);
    uint32_t half = (uint32_t)(hash >> 32);
    pthread_mutex_lock(&a->lock);
    uint32_t *note = &a->notes[hash % NOTES];
    bool again = *note == half;
    *note = half;
    pthread_mutex_unlock(&a->lock);
    return again;
}

void answers_put(struct answers *a, struct xp_span key, const struct answers_item *item)
{
    uint64_t hash = xp_hash(key);
    if (item->body->n > a->max / 8 || key.n > a->max / 8)
        return;
    pthread_mutex_lock(&a->lock);
    if (!find(a, key, hash)) {
        struct entry *e = new_entry(key, hash, item);
        e->next = a->buckets[hash % BUCKETS];
        a->buckets[hash % BUCKETS] = e;
        make_newest(a, e);
        a->bytes += cost_of(e);
        while (a->bytes > a->max && a->oldest)
            drop_oldest(a);
    }
    pthread_mutex_unlock(&a->lock);
}
