#include <pthread.h>
#include <stdlib.h>

#include "server/upstream_int.h"

#define SLOTS 4096 /* a power of two */
#define SECOND_NS 1000000000ull
/* A copy that was not thought of for that long may be gone, and one that was not finished by then
 * may be tried again. */
#define COPY_NS (60 * SECOND_NS)

struct copy {
    uint64_t member; /* 0: none */
    uint64_t since_ns;
    bool there;
};

struct hot {
    uint64_t key;
    uint64_t second; /* that `now` counts */
    uint32_t now, before;
    uint64_t warm; /* the member that answered last */
    struct copy copies[HOT_COPIES];
};

struct hots {
    pthread_mutex_t lock;
    struct hot slots[SLOTS];
};

struct hots *hots_new(void)
{
    struct hots *h = calloc(1, sizeof *h);
    XP_ASSERT(h);
    pthread_mutex_init(&h->lock, NULL);
    return h;
}

void hots_free(struct hots *h)
{
    if (!h)
        return;
    pthread_mutex_destroy(&h->lock);
    free(h);
}

/* Two keys in one place take turns: the one that is asked for less loses what is known of it. */
static struct hot *touch(struct hots *h, uint64_t key, uint64_t now)
{
    struct hot *s = &h->slots[(key ^ key >> 32) & (SLOTS - 1)];
    uint64_t second = now / SECOND_NS;
    if (s->second != second) {
        s->before = s->second + 1 == second ? s->now : 0;
        s->now = 0;
        s->second = second;
    }
    if (s->key != key) {
        if (s->now + s->before > 1) {
            s->now--;
            return NULL;
        }
        *s = (struct hot){.key = key, .second = second};
    }
    s->now++;
    return s;
}

static struct hot *find(struct hots *h, uint64_t key)
{
    struct hot *s = &h->slots[(key ^ key >> 32) & (SLOTS - 1)];
    return s->key == key ? s : NULL;
}

static struct copy *copy_at(struct hot *s, uint64_t member)
{
    for (size_t i = 0; i < HOT_COPIES; i++)
        if (s->copies[i].member == member)
            return &s->copies[i];
    return NULL;
}

static bool is_old(const struct copy *c, uint64_t now)
{
    return now - c->since_ns >= COPY_NS;
}

/* A place for a copy at member. */
static bool begin_copy(struct hot *s, uint64_t member, uint64_t now)
{
    for (size_t i = 0; i < HOT_COPIES; i++) {
        struct copy *c = &s->copies[i];
        if (c->member && c->member != member && !is_old(c, now))
            continue;
        *c = (struct copy){.member = member, .since_ns = now};
        return true;
    }
    return false;
}

static bool is_copy(struct hot *s, uint64_t member, uint64_t now)
{
    struct copy *c = copy_at(s, member);
    if (!c || !c->there || is_old(c, now))
        return false;
    c->since_ns = now;
    return true;
}

static bool is_being_made(struct hot *s, uint64_t member, uint64_t now)
{
    const struct copy *c = copy_at(s, member);
    return c && !c->there && !is_old(c, now);
}

struct hot_choice hots_choose(struct hots *h, struct healths *healths, uint64_t key,
                              const uint64_t *ranks, size_t n, uint64_t now)
{
    struct hot_choice choice = {0};
    pthread_mutex_lock(&h->lock);
    struct hot *s = touch(h, key, now);
    uint32_t rate = s ? (s->now > s->before ? s->now : s->before) : 0;
    uint32_t least = rate >= HOT_RATE ? healths_load(healths, ranks[0], now) : 0;
    if (least >= HOT_LOAD) {
        size_t reach = rate >= HOT_RATE_MORE ? 4 : 2;
        for (size_t i = 1; i < n && i < reach; i++) {
            if (healths_is_ill(healths, ranks[i]))
                continue;
            if (is_copy(s, ranks[i], now)) {
                uint32_t load = healths_load(healths, ranks[i], now);
                if (load < least) {
                    choice.rank = i;
                    least = load;
                }
            } else if (!choice.copy && !is_being_made(s, ranks[i], now) && least >= HOT_LOAD) {
                choice.copy = begin_copy(s, ranks[i], now) ? i : 0;
            }
        }
    }
    pthread_mutex_unlock(&h->lock);
    return choice;
}

void hots_touch(struct hots *h, uint64_t key, uint64_t now)
{
    pthread_mutex_lock(&h->lock);
    touch(h, key, now);
    pthread_mutex_unlock(&h->lock);
}

void hots_copied(struct hots *h, uint64_t key, uint64_t member, bool there, uint64_t now)
{
    pthread_mutex_lock(&h->lock);
    struct hot *s = find(h, key);
    struct copy *c = s ? copy_at(s, member) : NULL;
    if (c) {
        c->there = there;
        c->since_ns = now; /* one that failed is not tried again at once */
    }
    pthread_mutex_unlock(&h->lock);
}

void hots_set_warm(struct hots *h, uint64_t key, uint64_t member)
{
    pthread_mutex_lock(&h->lock);
    struct hot *s = find(h, key);
    if (s)
        s->warm = member;
    pthread_mutex_unlock(&h->lock);
}

bool hots_is_warm(struct hots *h, uint64_t key, uint64_t member)
{
    pthread_mutex_lock(&h->lock);
    const struct hot *s = find(h, key);
    bool warm = s && s->warm == member;
    pthread_mutex_unlock(&h->lock);
    return warm;
}
