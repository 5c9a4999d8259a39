/* server/capture/profile_target.h - a profiler server in a workload: how it is asked, and what its
 * answers mean. Nothing here talks to anybody: addresses, messages, and the table of outcomes.
 *
 * The server is the one that jax.profiler.start_server starts: package tensorflow, service
 * ProfilerService, unary methods in the clear. It has one profiling session per process, whoever
 * began it.
 */
#ifndef SERVER_CAPTURE_PROFILE_TARGET_H
#define SERVER_CAPTURE_PROFILE_TARGET_H

#include "server/capture/grpc_unary.h"

#define TARGET_NAME_MAX 253
#define TARGET_ADDRESS_MAX 270
#define TARGET_RUN_MAX 128
#define TARGET_OPTIONS_MAX 32
#define TARGET_OPTION_BYTES 256

struct target {
    char name[TARGET_NAME_MAX + 1];       /* the host of its profiles */
    char address[TARGET_ADDRESS_MAX + 1]; /* "host:port" */
};

/* [NAME=]HOST:PORT, NAME being HOST unless it is said. XP_BAD_REQUEST with a sentence. */
enum xp_status target_parse(const char *text, struct target *t, struct xp_error *err);
/* All of them, at most max; their names differ. *v is to be freed. */
enum xp_status target_parse_all(const char *const *texts, size_t max, struct target **v, size_t *n,
                                struct xp_error *err);
/* [A-Za-z0-9._-]{1,253}, not "." or "..", and [A-Za-z0-9_-]{1,128}. */
bool target_name_ok(struct xp_span name);
bool target_run_ok(struct xp_span run);

/* --- what is asked --- */

extern const char method_profile[], method_terminate[], method_start[], method_snapshot[],
    method_stop[], method_hello[]; /* the last is none of any server's: it says who listens */

struct target_option {
    char name[65];
    enum { OPTION_STRING, OPTION_BOOL, OPTION_INTEGER } type;
    char text[TARGET_OPTION_BYTES + 1];
    int64_t number; /* a bool, too */
};

struct target_levels {
    int host, device, python;
};

struct target_profile {
    const char *host;       /* the target's name */
    const char *session;    /* the run's name */
    const char *repository; /* .../plugins/profile, as the target would write there */
    bool pull;              /* the answer brings the profile; else the target writes it */
    uint64_t start_ns;      /* wall clock */
    uint32_t duration_ms;
    struct target_levels levels;
    const struct target_option *options;
    size_t n_options;
};

/* Messages, appended to b. */
void target_put_profile(struct xp_buf *b, const struct target_profile *p);
/* Of a continuous session: levels of host and Python are 0 whatever p says, as those records grow
 * without end; what is kept is a ring. */
void target_put_start(struct xp_buf *b, const struct target_profile *p);
void target_put_terminate(struct xp_buf *b, const char *session);
/* session NULL: the answer brings the profile. */
void target_put_snapshot(struct xp_buf *b, const char *session);

/* --- what came of it --- */

#define OUTCOMES(X)                                                                                \
    X(NONE, "")                                                                                    \
    X(SUCCEEDED, "SUCCEEDED")                                                                      \
    X(PARTIAL, "PARTIAL") /* of a capture, never of a target */                                    \
    X(EMPTY, "EMPTY")                                                                              \
    X(BUSY, "BUSY")                                                                                \
    X(TOO_LARGE, "TOO_LARGE")                                                                      \
    X(UNSUPPORTED, "UNSUPPORTED")                                                                  \
    X(UNREACHABLE, "UNREACHABLE")                                                                  \
    X(TIMEOUT, "TIMEOUT")                                                                          \
    X(FAILED, "FAILED")                                                                            \
    X(CANCELLED, "CANCELLED")

enum outcome {
#define X(id, text) OUTCOME_##id,
    OUTCOMES(X)
#undef X
        OUTCOME_COUNT
};

const char *outcome_text(enum outcome o);

enum target_call { CALL_PROFILE, CALL_START, CALL_SNAPSHOT, CALL_STOP };

/* What is known when a call has ended. */
struct target_facts {
    enum target_call call;
    const struct grpc_reply *reply;
    bool pull;        /* it was asked for the profile itself */
    bool window_over; /* the time that was to be recorded had passed */
    bool again;       /* a snapshot that is not the first of its session here */
    /* Where the target was to write it, when there was no field 8: */
    bool looked; /* the place was looked at, */
    bool found;  /* there is a file, */
    uint64_t size;
};

struct target_verdict {
    enum outcome outcome;
    char message[GRPC_TEXT_MAX];
    const char *hint; /* the usual cure, "" */
};

void target_judge(const struct target_facts *f, struct target_verdict *v);

/* Of a capture, from its targets'. cancelled: somebody ended it. */
enum outcome outcome_of_all(const enum outcome *v, size_t n, bool cancelled);

/* How long a window may be for a profile of at most `limit` bytes, when windows of ms[0] and ms[1]
 * had bytes[0] and bytes[1]: what every profile has besides its events is told apart by the two.
 * ms[1] 0: there was one window only, and all of it counts as events. */
uint32_t target_window_for(const uint32_t ms[2], const uint64_t bytes[2], uint64_t limit);

#endif
