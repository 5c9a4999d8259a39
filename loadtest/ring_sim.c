/* ring_sim - what the placement of lib/cluster/ring.h does at a size that no test machine has.
 *
 *     ring_sim [SHARDS [SESSIONS]]        (1000 and 100000)
 *
 * Three questions, each answered by the code that frontends run: how many keys move when a shard
 * comes or goes, how much more than the mean the fullest shard has (all sessions alike; asked for
 * as the web is, a few much and most seldom, with and without copies of what is hot; sessions of 64
 * hosts), and whether Kubernetes' HPA, with its default policy, comes to rest over a day's demand
 * although each change of size makes shards load again what moved. The last is a model: its rates
 * are below.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cluster/ring.h"

#define HOSTS 64
#define NAME 32

static struct xp_ring *make_ring(size_t n)
{
    struct xp_ring_member *m = calloc(n + 1, sizeof *m);
    char(*names)[NAME] = calloc(n + 1, NAME);
    struct xp_ring *ring = NULL;
    struct xp_error err = {0};
    XP_ASSERT(m && names);
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], NAME, "xprofd-shard-%zu", i);
        m[i] = (struct xp_ring_member){names[i], names[i]};
    }
    if (xp_ring_new(m, n, &ring, &err) != XP_OK) {
        fprintf(stderr, "ring_sim: %s\n", err.text);
        exit(1);
    }
    free(m);
    free(names);
    return ring;
}

static uint64_t key_of(size_t session, size_t host)
{
    char run[64], name[64];
    snprintf(run, sizeof run, "plugins/profile/2026_11_%02zu_run-%zu", session % 28 + 1, session);
    snprintf(name, sizeof name, "worker-%zu.xplane.pb", host);
    struct xp_span parts[] = {xp_span_str(run), xp_span_str(name)};
    return xp_ring_key(parts, 2);
}

static const char *owner_name(const struct xp_ring *r, uint64_t key)
{
    uint32_t at = 0;
    xp_ring_rank(r, key, &at, 1);
    return xp_ring_member(r, at)->name;
}

/* --- keys that move --- */

static void moved(size_t shards, size_t sessions)
{
    struct xp_ring *now = make_ring(shards), *more = make_ring(shards + 1);
    size_t n = 0, to_new = 0;
    char newest[NAME];
    snprintf(newest, sizeof newest, "xprofd-shard-%zu", shards);
    for (size_t i = 0; i < sessions; i++) {
        uint64_t key = key_of(i, 0);
        const char *a = owner_name(now, key), *b = owner_name(more, key);
        n += strcmp(a, b) != 0;
        to_new += strcmp(b, newest) == 0;
    }
    printf("keys moved, %zu -> %zu shards and back: %zu of %zu, %.3f %% (1/(n+1) is %.3f %%); to "
           "others than the one that came or went: %zu\n",
           shards, shards + 1, n, sessions, 100.0 * (double)n / (double)sessions,
           100.0 / (double)(shards + 1), n - to_new);
    xp_ring_unref(now);
    xp_ring_unref(more);
}

/* --- the fullest shard --- */

static void print_full(const char *what, const double *load, size_t n)
{
    double sum = 0, max = 0;
    for (size_t i = 0; i < n; i++) {
        sum += load[i];
        max = load[i] > max ? load[i] : max;
    }
    printf("fullest shard, %s: %.2f x the mean\n", what, max / (sum / (double)n));
}

static void alike(const struct xp_ring *r, size_t sessions)
{
    size_t n = xp_ring_size(r);
    double *load = calloc(n, sizeof *load);
    XP_ASSERT(load);
    for (size_t i = 0; i < sessions; i++) {
        uint32_t at = 0;
        xp_ring_rank(r, key_of(i, 0), &at, 1);
        load[at]++;
    }
    print_full("profiles held", load, n);
    free(load);
}

/* Asked for by Zipf's law with exponent s. With copies, what is above `hot` of a shard's mean goes
 * evenly to the first `most` ranks: to two when two are enough. */
static void popular(const struct xp_ring *r, size_t sessions, double s, size_t most)
{
    size_t n = xp_ring_size(r);
    double *load = calloc(n, sizeof *load), sum = 0;
    char what[96];
    XP_ASSERT(load);
    for (size_t i = 0; i < sessions; i++)
        sum += pow((double)(i + 1), -s);
    for (size_t i = 0; i < sessions; i++) {
        uint32_t ranks[4] = {0};
        double asks = pow((double)(i + 1), -s) / sum * (double)n; /* 1: a shard's mean */
        size_t copies = most > 1 && asks > 0.5 ? (asks > 1 ? most : 2) : 1;
        size_t found = xp_ring_rank(r, key_of(i, 0), ranks, copies);
        for (size_t k = 0; k < found; k++)
            load[ranks[k]] += asks / (double)found;
    }
    snprintf(what, sizeof what, "requests, Zipf %.1f, up to %zu cop%s of what is hot", s, most,
             most > 1 ? "ies" : "y");
    print_full(what, load, n);
    free(load);
}

static void many_hosts(size_t shards, size_t sessions)
{
    struct xp_ring *r = make_ring(shards);
    double worst = 0, worst_spread = 0, mean = (double)HOSTS / (double)shards;
    struct xp_error err = {0};
    size_t displaced = 0;
    for (size_t i = 0; i < sessions; i++) {
        uint64_t keys[HOSTS];
        uint32_t spread[HOSTS], *plain = calloc(shards, sizeof *plain);
        uint32_t *load = calloc(shards, sizeof *load);
        XP_ASSERT(plain && load);
        for (size_t h = 0; h < HOSTS; h++)
            keys[h] = key_of(i, h);
        XP_ASSERT(xp_ring_spread(r, keys, HOSTS, spread, &err) == XP_OK);
        for (size_t h = 0; h < HOSTS; h++) {
            uint32_t at = 0;
            xp_ring_rank(r, keys[h], &at, 1);
            displaced += at != spread[h];
            plain[at]++;
            load[spread[h]]++;
            worst = plain[at] > worst ? plain[at] : worst;
            worst_spread = load[spread[h]] > worst_spread ? load[spread[h]] : worst_spread;
        }
        free(plain);
        free(load);
    }
    printf("sessions of %d hosts on %zu shards: fullest %.0f hosts (%.2f x the mean), without the "
           "cap %.0f (%.2f x); %.1f %% of hosts not at their first rank\n",
           HOSTS, shards, worst_spread, worst_spread / mean, worst, worst / mean,
           100.0 * (double)displaced / (double)(sessions * HOSTS));
    xp_ring_unref(r);
}

/* --- the HPA over a day --- */

#define SYNC_S 15
#define DAY_S 86400
#define TARGET 0.6    /* of a shard's CPU */
#define TOLERANCE 0.1 /* of the HPA */
#define READY_S 30    /* from a new pod to its first answer */
#define LOAD_S 2.0    /* CPU to load a profile again */
#define ACTIVE 0.1    /* of the sessions are in use, and loaded again when they moved, */
#define RETURN_S 600  /* when they are next looked at: after so long in the mean */
#define KEPT_MAX 64

struct policy {
    const char *name;
    size_t window;      /* syncs: down to the highest proposal of so many */
    double down_minute; /* share of the pods that may go in a minute; 1: all */
};

struct day {
    size_t ups, downs, turns, most, least;
    double over_s, reload, work, all;
};

struct fleet {
    const struct policy *policy;
    size_t pods, ready, syncs;
    double came, turned, due; /* due: CPU seconds of loading again that are still to come */
    double kept[KEPT_MAX];
    double per_share; /* CPU seconds of loading again when all move */
    int last;
};

/* A day's demand, in shards' CPUs: a wave, half as much again for half an hour at noon, noise. */
static double demand(double t, double base, uint32_t *seed)
{
    double wave = 0.55 - 0.45 * cos(2 * M_PI * t / DAY_S);
    double burst = t > 43200 && t < 45000 ? 0.5 : 0;
    *seed = *seed * 1664525u + 1013904223u;
    double noise = ((double)(*seed >> 8) / (double)(1 << 24) - 0.5) * 0.1;
    return base * (wave + burst) * (1 + noise);
}

static void move_keys(struct fleet *f, struct day *d, double share)
{
    f->due += share * f->per_share;
    d->reload += share * f->per_share;
}

/* Up by 4 pods or to twice as many a sync, the larger, at once; down to the highest of the last
 * proposals. */
static size_t hpa(struct fleet *f, double used)
{
    double ratio = used / TARGET, pods = (double)f->pods;
    double want = fabs(ratio - 1) <= TOLERANCE ? pods : ceil((double)f->ready * ratio);
    double up = pods * 2 > pods + 4 ? pods * 2 : pods + 4, highest = 0;
    f->kept[f->syncs++ % f->policy->window] = want;
    for (size_t i = 0; i < f->policy->window; i++)
        highest = f->kept[i] > highest ? f->kept[i] : highest;
    if (want > pods)
        return (size_t)(want < up ? want : up);
    if (highest >= pods || f->syncs < f->policy->window)
        return f->pods;
    double most = pods * f->policy->down_minute * SYNC_S / 60;
    double least = pods - (most < 1 ? (f->syncs % 4 == 0) : floor(most));
    return (size_t)(highest > least || f->policy->down_minute >= 1 ? highest : least);
}

static void resize(struct fleet *f, struct day *d, size_t next, double t)
{
    int dir = next > f->pods ? 1 : -1;
    d->ups += dir > 0;
    d->downs += dir < 0;
    d->turns += f->last && dir != f->last && t - f->turned < 600;
    f->last = dir;
    f->turned = t;
    if (dir > 0 && f->ready == f->pods)
        f->came = t;
    if (dir < 0) {
        move_keys(f, d, (double)(f->pods - next) / (double)f->pods);
        f->ready = f->ready < next ? f->ready : next;
    }
    f->pods = next;
}

static void run_day(double base, size_t sessions, const struct policy *policy, struct day *d)
{
    struct fleet f = {.policy = policy, .per_share = (double)sessions * ACTIVE * LOAD_S};
    double late = 0; /* CPU seconds that did not fit */
    uint32_t seed = 1;
    f.pods = f.ready = (size_t)(base * 0.1 / TARGET) + 1;
    *d = (struct day){.least = SIZE_MAX};
    for (double t = 0; t < DAY_S; t += SYNC_S) {
        double again = f.due * SYNC_S / RETURN_S, asked = demand(t, base, &seed) * SYNC_S;
        double able = (double)f.ready * SYNC_S, work = asked + again + late;
        f.due -= again;
        late = work > able ? work - able : 0;
        double used = work > able ? 1 : work / able;
        d->work += asked;
        d->all += able;
        d->over_s += used >= 0.95 ? SYNC_S : 0;
        if (f.ready < f.pods && t - f.came >= READY_S) {
            move_keys(&f, d, (double)(f.pods - f.ready) / (double)f.pods);
            f.ready = f.pods;
        }
        size_t next = hpa(&f, used);
        if (next && next != f.pods)
            resize(&f, d, next, t);
        d->most = f.pods > d->most ? f.pods : d->most;
        d->least = f.pods < d->least ? f.pods : d->least;
    }
}

static void scale(size_t shards, size_t sessions)
{
    static const struct policy policies[] = {
        {"default policy (5 min, no limit down)", 20, 1},
        {"10 min, 5 % down a minute", 40, 0.05},
        {"10 min, 1 % down a minute", 40, 0.01},
    };
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct day d;
        run_day((double)shards * TARGET, sessions, &policies[i], &d);
        printf("HPA, %s: a day between %zu and %zu shards, %zu times up, %zu down, %zu changes of "
               "direction within ten minutes, CPU at 95 %% or more for %.0f s; loading again what "
               "moved is %.1f %% of the work; mean CPU %.0f %%\n",
               policies[i].name, d.least, d.most, d.ups, d.downs, d.turns, d.over_s,
               100 * d.reload / d.work, 100 * d.work / d.all);
    }
}

int main(int argc, char **argv)
{
    size_t shards = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    size_t sessions = argc > 2 ? strtoul(argv[2], NULL, 10) : 100000;
    if (shards < 2 || shards >= RING_MEMBERS_MAX || sessions < 1 || sessions > 10000000) {
        fprintf(stderr, "usage: ring_sim [SHARDS [SESSIONS]]\n");
        return 2;
    }
    struct xp_ring *r = make_ring(shards);
    printf("%zu shards, %zu sessions\n", shards, sessions);
    moved(shards, sessions);
    alike(r, sessions);
    popular(r, sessions, 0.8, 1);
    popular(r, sessions, 0.8, 4);
    popular(r, sessions, 1.0, 1);
    popular(r, sessions, 1.0, 4);
    xp_ring_unref(r);
    for (size_t n = 4; n <= 16; n *= 2)
        many_hosts(n, 200);
    many_hosts(shards, 200);
    scale(shards, sessions);
    return 0;
}
