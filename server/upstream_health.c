#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/upstream_int.h"

#define SLOTS 8192 /* a power of two, twice RING_MEMBERS_MAX */
#define PROBES 64
#define LOAD_NS 1000000000ull
#define SAY_NS 1000000000ull

struct health {
    uint64_t name;                     /* 0: nobody */
    uint64_t due_ns, load_ns, said_ns; /* of the last hello for an ask that waits */
    uint32_t load, failures;           /* failures: since it was well; 0: it is */
    bool asked;                        /* a hello is under way */
    char address[HEALTH_ADDRESS_MAX];
};

struct healths {
    pthread_mutex_t lock;
    size_t ill;
    struct health slots[SLOTS];
};

struct healths *healths_new(void)
{
    struct healths *h = calloc(1, sizeof *h);
    XP_ASSERT(h);
    pthread_mutex_init(&h->lock, NULL);
    return h;
}

void healths_free(struct healths *h)
{
    if (!h)
        return;
    pthread_mutex_destroy(&h->lock);
    free(h);
}

/* NULL: nothing is known. With add, a place is made, of one that is well if need be. */
static struct health *find(struct healths *h, uint64_t name, bool add)
{
    struct health *spare = NULL;
    for (size_t i = 0; i < PROBES; i++) {
        struct health *s = &h->slots[(name + i) & (SLOTS - 1)];
        if (s->name == name)
            return s;
        if (!spare && (!s->name || !s->failures))
            spare = s;
        if (!s->name)
            break;
    }
    if (!add || !spare)
        return NULL;
    *spare = (struct health){.name = name};
    return spare;
}

void healths_failed(struct healths *h, uint64_t name, const char *address, uint64_t now)
{
    pthread_mutex_lock(&h->lock);
    struct health *s = find(h, name, true);
    if (s && (s->asked || !s->failures)) { /* asks that fail meanwhile say nothing new */
        h->ill += s->failures == 0;
        uint64_t ms = s->failures < 6 ? (uint64_t)HEALTH_FIRST_MS << s->failures : HEALTH_MOST_MS;
        if (ms > HEALTH_MOST_MS)
            ms = HEALTH_MOST_MS;
        s->failures++;
        s->asked = false;
        s->due_ns = now + ms * 1000000 + (now ^ name) % (ms * 250000); /* not all at once */
        snprintf(s->address, sizeof s->address, "%s", address);
    }
    pthread_mutex_unlock(&h->lock);
}

void healths_well(struct healths *h, uint64_t name)
{
    pthread_mutex_lock(&h->lock);
    struct health *s = find(h, name, false);
    if (s && s->failures) {
        h->ill--;
        s->failures = 0;
        s->asked = false;
    }
    pthread_mutex_unlock(&h->lock);
}

bool healths_is_ill(struct healths *h, uint64_t name)
{
    pthread_mutex_lock(&h->lock);
    const struct health *s = find(h, name, false);
    bool ill = s && s->failures;
    pthread_mutex_unlock(&h->lock);
    return ill;
}

void healths_set_load(struct healths *h, uint64_t name, uint32_t load, uint64_t now)
{
    pthread_mutex_lock(&h->lock);
    struct health *s = find(h, name, true);
    if (s) {
        s->load = load;
        s->load_ns = now;
    }
    pthread_mutex_unlock(&h->lock);
}

uint32_t healths_load(struct healths *h, uint64_t name, uint64_t now)
{
    pthread_mutex_lock(&h->lock);
    const struct health *s = find(h, name, false);
    uint32_t load = s && now - s->load_ns < LOAD_NS ? s->load : 0;
    pthread_mutex_unlock(&h->lock);
    return load;
}

bool healths_may_say(struct healths *h, uint64_t name, uint64_t now)
{
    pthread_mutex_lock(&h->lock);
    struct health *s = find(h, name, true);
    bool may = s && now - s->said_ns >= SAY_NS;
    if (may)
        s->said_ns = now;
    pthread_mutex_unlock(&h->lock);
    return may;
}

bool healths_due(struct healths *h, uint64_t now, uint64_t *name, char address[HEALTH_ADDRESS_MAX])
{
    bool found = false;
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; h->ill && i < SLOTS && !found; i++) {
        struct health *s = &h->slots[i];
        found = s->failures && !s->asked && s->due_ns <= now;
        if (found) {
            s->asked = true;
            *name = s->name;
            snprintf(address, HEALTH_ADDRESS_MAX, "%s", s->address);
        }
    }
    pthread_mutex_unlock(&h->lock);
    return found;
}

uint64_t healths_wait_ms(struct healths *h, uint64_t name, uint64_t now)
{
    pthread_mutex_lock(&h->lock);
    const struct health *s = find(h, name, false);
    uint64_t due = s && s->failures ? s->due_ns : 0;
    pthread_mutex_unlock(&h->lock);
    return due > now ? (due - now) / 1000000 : 0;
}

uint64_t healths_ill(struct healths *h)
{
    pthread_mutex_lock(&h->lock);
    uint64_t n = h->ill;
    pthread_mutex_unlock(&h->lock);
    return n;
}
