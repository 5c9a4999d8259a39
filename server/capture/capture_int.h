/* server/capture/capture_int.h - what the files of the captures share.
 *
 *   grpc_frame.c, grpc_unary.c   the wire
 *   profile_target.c             messages to a target, and what its answers mean
 *   capture.c                    the table: targets, what runs, what is known of what ran
 *   capture_job.c                one capture, from hello to its outcome, on its thread
 *   capture_pull.c               a profile from the wire to the disk
 *   capture_more.c               continuous profiling
 *   capture_json.c               how it is told
 *   capture_routes.c             the API
 *
 * One lock for all of it: what it guards is small, and under it nothing waits.
 */
#ifndef SERVER_CAPTURE_CAPTURE_INT_H
#define SERVER_CAPTURE_CAPTURE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/capture/capture.h"

#define FOLDER "plugins/profile/"
#define SUFFIX ".xplane.pb"
#define CAPTURE_KEY_MAX (sizeof FOLDER + TARGET_RUN_MAX + TARGET_NAME_MAX + sizeof SUFFIX + 2)
#define NOTE_MAX 256

enum capture_kind { CAPTURE_ON_DEMAND, CAPTURE_SNAPSHOT };
enum capture_phase { PHASE_WAITING, PHASE_CAPTURING, PHASE_COLLECTING, PHASE_DONE };

/* What is known of a target's part in a capture. */
struct capture_target {
    size_t target; /* of the service's */
    enum capture_phase phase;
    enum outcome outcome;
    int grpc_status; /* -1: none */
    char *message;   /* NULL: none */
    const char *hint;
    uint64_t bytes;
    bool has_bytes;
    unsigned attempts;
};

struct capture {
    struct captures *c;
    struct capture *next; /* newest first */
    char id[CAPTURE_ID_N + 1];
    enum capture_kind kind;
    char run[TARGET_RUN_MAX + 1];
    int64_t began_ms, ends_ms, ended_ms;
    uint32_t duration_ms, delay_ms;
    struct target_levels levels;
    struct target_option *options;
    size_t n_options;
    char *by; /* NULL: nobody has a name here */
    char note[NOTE_MAX];
    struct capture_target *targets;
    size_t n;
    enum capture_phase phase;
    enum outcome outcome;
    bool end, drop;      /* asked for */
    pthread_cond_t wake; /* something came for its thread */
};

/* Continuous profiling of a target, as far as is known here. */
struct session {
    bool runs;
    bool unknown;   /* it was not started here, or could not be asked */
    bool changing;  /* somebody starts or stops it */
    bool snapshots; /* one was taken */
    int64_t since_ms;
    int device;
    char *by, *message;
};

struct captures {
    struct target *targets;
    size_t n;
    uint64_t *rates; /* bytes a second, of the last that succeeded; 0: not known */
    struct session *sessions;
    const struct project *project; /* referenced, or NULL */
    char *reason;                  /* why there are none */
    struct xp_store *store;        /* of the root */
    struct xp_store *own;          /* the same if it is ours to free */
    char *repository;              /* what targets are told */
    bool pull;
    struct net_client *net;
    void (*changed)(void *ctx, bool runs);
    void *ctx;
    pthread_mutex_t lock;
    pthread_cond_t idle; /* a thread has ended */
    struct capture *first;
    size_t kept, running, threads;
    bool stopping;
    _Atomic uint64_t version;
    struct captures_stats stats;
};

/* Locked. */
void captures_tell(struct captures *c);      /* that something has changed, */
void captures_tell_runs(struct captures *c); /* and a run is there that was not */
void capture_say(struct capture_target *t, const struct target_verdict *v);
/* A thread of the service's, which waits for it; false: there is none. It ends with
 * captures_thread_over. */
bool captures_thread(struct captures *c, void *(*fn)(void *arg), void *arg);
void captures_thread_over(struct captures *c);

/* Waits for wake, locked, until a time of xp_now_ns. */
void captures_wait(struct captures *c, pthread_cond_t *wake, uint64_t until_ns);

/* Locked; NULL: it is not known (any more). */
struct capture *capture_find(const struct captures *c, struct xp_span id);

void session_over(struct session *s);
void session_say(struct session *s, const char *message);

/* "plugins/profile/RUN/NAME.xplane.pb" */
void capture_key(const char *run, const char *name, char key[CAPTURE_KEY_MAX]);

void *capture_run(void *capture); /* its thread */

/* --- from the wire to the disk --- */

#define PULL_BUFFER ((size_t)128 << 10)

/* The two sides of a pull: the client's thread fills a buffer while the capture's writes the other.
 * The lock is the service's. */
struct pull {
    struct captures *c;
    pthread_cond_t *wake;
    uint8_t *fill, *full;
    size_t fill_n, full_n; /* full_n 0: nothing to be written */
    bool paused;           /* the call waits until there is room */
    bool lost;             /* nothing more is kept */
    struct xp_writer *writer;
    uint64_t written;
};

void pull_init(struct pull *p, struct captures *c, pthread_cond_t *wake);
void pull_fini(struct pull *p); /* not locked; what was not finished is dropped */
/* On the client's thread. */
bool pull_room(struct pull *p, size_t n);
void pull_take(struct pull *p, struct xp_span bytes);
/* On the capture's, locked but not while it writes. True: there is room again for a call that
 * waits. After an error nothing more is kept. */
enum xp_status pull_write(struct pull *p, const char *key, bool *room, struct xp_error *err);
/* The same of all that is left, when the call is over; and then the file has its name. */
enum xp_status pull_finish(struct pull *p, const char *key, struct xp_error *err);

/* --- JSON, locked --- */

/* whole: messages are not cut. */
void capture_write(const struct capture *k, bool whole, struct xp_json *j);
void captures_write_continuous(const struct captures *c, struct xp_json *j);

#endif
