/* server/ask.h - one request under way, from its route to its answer.
 *
 * An ask owns decoded parameters, references to the project, to whoever asks and to the run it is
 * about, and the exchange that waits. It is made on the loop, lives on workers, and ends with
 * exactly one of the ask_answer functions, after which it is gone.
 *
 * What is known needs no worker: ask_at_once runs the route's function on the loop first. Where it
 * would have to wait (to look at a run, to make an answer) it leaves the ask as it was; a worker
 * begins anew.
 */
#ifndef SERVER_ASK_H
#define SERVER_ASK_H

#include "lib/base/json_out.h"
#include "lib/http/http.h"
#include "server/audit.h"
#include "server/gate.h"
#include "server/projects.h"
#include "server/runs.h"
#include "shard/shard.h"

#define ASK_ARGS_MAX 64
#define ASK_QUERY_MAX 65536

struct ask;
typedef void (*ask_fn)(struct ask *ask); /* on a worker */

/* Methods of a route. */
enum { METHOD_READ = 1, METHOD_POST = 2, METHOD_DELETE = 4, METHOD_ANY = 8 };

/* What a route is; rows of routes.def. */
struct route {
    int methods;
    const char *path; /* after the prefix, without '/' */
    ask_fn fn;
    enum shard_op op;
    enum right right; /* RIGHT_NONE: of no project, for whoever may come in */
};

struct app {
    struct xp_workers *workers;
    struct shard *shard;       /* NULL in a frontend, */
    struct upstream *upstream; /* NULL elsewhere */
    struct xp_keyring *keys;   /* for the upstream's asks, or NULL */
    struct projects *projects;
    struct warm *warm;
    struct events *events;
    struct metrics *metrics;
    struct gate *gate;
    struct audit *audit;                   /* NULL: nothing is told */
    struct ratelimit *by_who, *by_address; /* NULL: no limit */
    struct links *links;                   /* NULL: none are made */
    struct uploads *uploads;               /* NULL: none are taken */
    struct captures *captures;             /* NULL: a frontend, which makes none */
    struct stock *stock;                   /* NULL: only our own pages */
    struct runfacts *facts;                /* what is known of runs, for their list */
    const char *version;
    const char *const *peaks; /* --peak: arguments of every report; NULL-terminated */
    uint64_t started_ns;
    _Atomic int asks;
    _Atomic bool stopping;
};

struct ask {
    struct app *app;
    struct http_exchange *ex;
    const struct route *route;
    bool compatible; /* XProf's route: errors in its form */
    bool one_page;   /* let in by a link that shows one page of a run */
    bool gzip;
    bool *later;   /* on the loop: set where it takes a worker; NULL: this is one */
    size_t number; /* of the route, for metrics */
    uint64_t began_ns;
    uint64_t identity;  /* hash of route and parameters, for the ETag */
    struct xp_buf text; /* the decoded parameters' bytes */
    struct shard_arg args[ASK_ARGS_MAX];
    size_t nargs, n_own; /* of these, those that were asked; the server's own follow */
    char if_none_match[64];
    char trace[HTTP_TRACEPARENT_MAX]; /* for shards elsewhere */
    const struct project *project; /* referenced; NULL only where the route's right is RIGHT_NONE */
    const struct who *who;         /* referenced */
    const struct run *run;         /* referenced, or NULL */
    bool whole;                    /* all of its hosts were asked of the shard */
};

/* The shard, in this process or another: shard_call (shard.h). run: what the objects are of. */
void app_call(struct app *app, const struct shard_request *req, const struct run *run,
              shard_answer_fn fn, void *ctx);

/* XP_BAD_REQUEST when the query has too many or too long parameters. References project and who.
 * Loop thread. */
enum xp_status ask_new(struct app *app, struct http_exchange *ex, const struct route *route,
                       const struct project *project, const struct who *who, struct ask **out,
                       struct xp_error *err);

/* True: the ask is answered and gone. Loop thread; for routes whose functions ask ask_may_wait. */
bool ask_at_once(struct ask *ask);
/* Before anything that takes time. False: this is the loop, leave it to a worker. */
bool ask_may_wait(const struct ask *ask);

/* The project's run of that name, listed, joined or uploaded, becomes the ask's. May wait. upload,
 * which may be NULL: untouched unless the run was uploaded. */
struct upload_state;
enum xp_status ask_take_run(struct ask *ask, struct xp_span name, struct upload_state *upload,
                            struct xp_error *err);
/* Whether the name is such that the run would be an upload's. */
bool ask_is_upload(const struct ask *ask, struct xp_span name);

/* The first value of a parameter; p == NULL when absent. */
struct xp_span ask_arg(const struct ask *ask, const char *name);

/* Takes ownership of the answer and ends the ask. */
void ask_answer(struct ask *ask, struct http_answer *a);
void ask_json(struct ask *ask, struct xp_buf *json);           /* moves the buffer's bytes */
void ask_problem(struct ask *ask, const struct xp_error *err); /* ours: problem+json */
/* XProf's way: a status and a line of text. */
void ask_text(struct ask *ask, int status, const char *type, struct xp_span text);

/* Ends the ask without an answer: exchange and run belong to somebody else now. */
void ask_handed_over(struct ask *ask);

/* Sends hosts [0, n) of ask->run (or those given by index) to the shard; the answer becomes the
 * ask's. */
void ask_shard(struct ask *ask, const struct shard_object *objects, size_t n);

#endif
