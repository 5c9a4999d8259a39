/* server/runfacts_int.h - what the files of runfacts share.
 *
 *   runfacts.c        what is kept, and who asks
 *   runfacts_json.c   from a report, to the list, to and from the file
 *   runfacts_look.c   runs looked at, one at a time
 */
#ifndef SERVER_RUNFACTS_INT_H
#define SERVER_RUNFACTS_INT_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

#include "lib/run/ticker.h"
#include "server/ask.h"
#include "server/runfacts.h"

#define RUNFACTS_TICK_MS 100
#define RUNFACTS_QUEUE_MAX 64
#define RUNFACTS_NEWEST 300 /* runs of a project that are looked at by and by */
#define RUNFACTS_PROJECTS 8 /* whose lists were looked at lately */
#define RUNFACTS_INTEREST_NS (600 * UINT64_C(1000000000))
#define RUNFACTS_REFILL_NS (10 * UINT64_C(1000000000))
#define RUNFACTS_AGAIN_NS (120 * UINT64_C(1000000000)) /* after what may pass */
#define RUNFACTS_SAVE_NS (30 * UINT64_C(1000000000))
#define RUNFACTS_MANY 4 /* as for HOSTS_MANY of the shard */
#define RUNFACTS_MANY_BYTES (UINT64_C(256) << 20)
#define RUNFACTS_HOSTS_MAX 64 /* of a run that is looked at though nobody asked */

struct runfacts_entry {
    struct runfacts_entry *next; /* of its bucket */
    uint64_t id, bytes;
    char *name;
    const struct run_facts *facts; /* NULL: it failed; that or passing: */
    uint64_t again_ns;             /* it is not tried before */
    uint64_t used;                 /* count of uses when it was used last */
};

#define RUNFACTS_BUCKETS 4096

struct runfacts_wish {
    const struct project *project;
    const struct run *run;
};

/* A project whose list somebody looked at. */
struct runfacts_place {
    const struct project *project;
    uint64_t wanted_ns, filled_ns;
};

struct runfacts {
    struct app *app;
    uint64_t limit;
    char *path; /* of the file, or NULL */
    struct xp_ticker *ticker;
    pthread_mutex_t lock;
    struct runfacts_entry *buckets[RUNFACTS_BUCKETS];
    size_t n;
    uint64_t uses;
    bool stopping, busy;                            /* busy: a look is under way */
    uint64_t rest_until_ns;                         /* after one */
    struct runfacts_wish queue[RUNFACTS_QUEUE_MAX]; /* somebody has them open; oldest first */
    size_t n_queue;
    struct runfacts_place places[RUNFACTS_PROJECTS];
    _Atomic uint64_t version;
    uint64_t saved_version, saved_ns;
    bool shut; /* a root of a project has come above the file */
    /* The ticker's own: */
    struct runfacts_wish newest[RUNFACTS_NEWEST]; /* to be looked at by and by, the newest last */
    size_t n_newest;
};

/* A turn of the ticker. */
void runfacts_turn(void *ctx);
/* Gives back what is wished. */
void runfacts_forget_wishes(struct runfacts *rf);
/* Whether a look at the run would tell something that is not known. */
bool runfacts_wants(struct runfacts *rf, const struct run *r);
/* It failed for what may pass. */
void runfacts_put_off(struct runfacts *rf, const struct run *r);

/* What a report tells that may be gzipped; NULL: it is none. */
const struct run_facts *runfacts_read(struct xp_span body, bool gzip);

void run_facts_free(struct run_facts *f);
json_t *run_facts_to_json(const struct run_facts *f);
const struct run_facts *run_facts_of_json(json_t *j);

#endif
