/* shard/shard.h - the shard's one door: a request in, an answer out.
 *
 * The frontend turns an HTTP request into a struct shard_request and gets a struct
 * shard_answer back. Today it is a direct call inside one process; the struct holds
 * nothing that could not travel (no handler, no connection), so that a process of its own needs no
 * other interface. This header and tools/tools.def are all that server/ sees of shard/.
 *
 * A run of many hosts can be looked at by several shards: each maps the hosts that it owns (MAP),
 * and the one that was asked joins what they say, as it comes, and writes the answer. Who owns what
 * comes with the request; how others are asked is given by shard_set_peers. A host whose owners
 * both fail is mapped here, and what cannot be read here either is named as missing.
 *
 * Order      shard_new -> shard_call from any thread -> shard_free (waits for calls to end).
 * Ownership  The request, its objects and args are copied where they outlive the call, except
 *            `store` and `cancel`, which the caller keeps valid until the answer. The answer's
 *            body is a reference that the callback owns.
 * Threads    The callback runs once, on a worker or (for refusals) inside shard_call.
 */
#ifndef SHARD_H
#define SHARD_H

#include <stdatomic.h>

#include "lib/base/arena.h"
#include "lib/base/blob.h"
#include "lib/base/buf.h"
#include "lib/objstore/objstore.h"
#include "lib/run/workers.h"

struct shard;

/* What is asked. The names travel between processes, of different versions maybe: a row's name
 * never changes its meaning. TOOL: one of tools.def, by id in `tool`; the others are ours
 * (docs/api.md). */
#define SHARD_OP_MAP(X)                                                                            \
    X(TRACKS, "tracks")                                                                            \
    X(WINDOW, "window")                                                                            \
    X(EVENT, "event")                                                                              \
    X(NEIGHBOUR, "neighbour")                                                                      \
    X(SEARCH, "search")                                                                            \
    X(AGGREGATE, "aggregate")                                                                      \
    X(CURVE, "curve")                                                                              \
    X(PROGRESS, "progress")                                                                        \
    X(TOOL, "tool")                                                                                \
    X(TOOL_CSV, "tool_csv")     /* the tool's first table, as CSV */                               \
    X(REPORT, "report")         /* the tool's report, our own answer (report/report.h) */          \
    X(REPORT_CSV, "report_csv") /* one table of it */                                              \
    X(RUN_TOOLS, "run_tools")   /* XProf's list of tools that make sense, from the first object */ \
    X(MODULE_LIST, "module_list") /* XProf's HLO module names of all objects */                    \
    X(MAP, "map")                 /* between shards: the partial of one host, for TOOL and */      \
    X(MAP_CSV, "map_csv")         /* TOOL_CSV */                                                   \
    X(MAP_REPORT, "map_report")   /* the same for REPORT and */                                    \
    X(MAP_REPORT_CSV, "map_report_csv") /* REPORT_CSV */

enum shard_op {
#define X(op, name) SHARD_##op,
    SHARD_OP_MAP(X)
#undef X
};

/* One host's profile. */
struct shard_object {
    struct xp_store *store;
    const char *key, *host;
    uint64_t generation, size;
    bool gz;
};

struct shard_arg {
    struct xp_span name, value; /* decoded */
};

/* Another shard that can be asked. */
struct shard_peer {
    const char *name, *address;
};

/* Who maps an object, as numbers of peers, from 1; first 0: the shard that is asked. */
struct shard_owner {
    uint32_t first, next;
};

struct shard_request {
    enum shard_op op;
    const char *tool;
    const struct shard_object *objects;
    size_t nobjects;
    const struct shard_arg *args;
    size_t nargs;
    const struct shard_owner *owners; /* one an object; NULL: all are looked at here */
    const struct shard_peer *peers;
    size_t npeers;
    uint32_t index; /* MAP: the object's place among all of the run's */
    bool aside;     /* nobody waits: it may take free room only (cache.h), keeps nothing */
    bool gzip;      /* the asker takes gzip: large answers come encoded anyway */
    const atomic_bool *cancel; /* NULL: cannot be cancelled */
    const char *trace;         /* the asker's span, for other processes: a traceparent, or NULL */
};

struct shard_answer {
    struct xp_error error; /* status XP_OK: the rest is the answer */
    const char *content_type;
    struct xp_blob *body;   /* a reference, the callback's */
    bool encoded;           /* body is gzip */
    bool volatile_answer;   /* something is still loading: do not cache */
    uint64_t version;       /* of what was read: for the ETag, together with the request */
    struct xp_error damage; /* MAP: the object could be read up to there; status XP_OK: all of it */
};

typedef void (*shard_answer_fn)(void *ctx, struct shard_answer *a);

struct shard *shard_new(struct xp_workers *w, uint64_t memory_budget);
void shard_free(struct shard *s);
void shard_call(struct shard *s, const struct shard_request *req, shard_answer_fn fn, void *ctx);

/* What every answer's version is, known before the answer: a hash of all that it is made from. */
uint64_t shard_version(const struct shard_object *objects, size_t n);

/* True: the same was asked before and its answer kept; *out is it, at once and on any thread.
 * False: it takes shard_call. Nothing is started, nothing is waited for. */
bool shard_known(struct shard *s, const struct shard_request *req, struct shard_answer *out);

/* Asks the peers given, one after the other until one answers; the callback may run inside the
 * call, and on a thread that must not be kept. Before the first shard_call. */
typedef void (*shard_ask_fn)(void *ctx, const struct shard_peer *const *peers, size_t n,
                             const struct shard_request *req, shard_answer_fn fn, void *fn_ctx);
void shard_set_peers(struct shard *s, shard_ask_fn ask, void *ctx);

struct shard_stats {
    uint64_t parts, pinned, bytes, budget, hits, loads, evictions, refused, cancelled;
    uint64_t known;        /* answers that were kept from an earlier asking */
    uint64_t made, shared; /* answers made here; and given to more who asked the same meanwhile */
    uint64_t maps, gathered, regained; /* hosts mapped here, by peers, here as no peer could */
};
void shard_stats(struct shard *s, struct shard_stats *out);

#endif
