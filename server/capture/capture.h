/* server/capture/capture.h - captures of profiles from workloads, as jobs.
 *
 * A target is a profiler server of --target. A capture asks some of them to record the same moment
 * and brings what they recorded into one run of the project's first root, a file a target:
 *
 *     pull     the root is a directory: targets answer with the profile, which goes to the disk
 *              as it comes and gets its name when it is whole
 *     write    the root is a bucket: each target writes the object itself, and we look at it
 *
 * A target has SUCCEEDED only when a profile of it that is not empty lies in the run; the capture
 * when all have. Nothing that is there is ever replaced. A snapshot is a capture of what continuous
 * profiling, which targets do on their own, has recorded since the last one.
 *
 * A capture: hello to all (who does not answer at all is out), a short window to see how much they
 * record where the window might pass 2 GiB (which ends a workload), the delay, one start time for
 * all, the window, the profiles. A target that is busy is asked again, three times at most.
 *
 * Order      captures_new -> anything -> captures_stop (all that runs is dropped) -> captures_free,
 *            which waits for them.
 * Threads    Any. captures_begin and captures_snapshot look at the store: on workers. All else
 *            takes a lock for a moment. A capture has a thread of its own, which writes files too.
 * Limits     CAPTURE_TARGETS_MAX targets, CAPTURES_AT_ONCE captures at once, CAPTURES_KEPT known.
 *            What a target sends is held in two buffers of 128 KiB at most.
 * State      Lives in this process. Files of an unfinished capture have no names and are gone with
 *            it, whatever ends it. Where the file system knows no such files (O_TMPFILE) they have
 *            names that no list shows, and what a process leaves that is killed lies there.
 */
#ifndef SERVER_CAPTURE_CAPTURE_H
#define SERVER_CAPTURE_CAPTURE_H

#include "lib/base/json_out.h"
#include "server/capture/profile_target.h"
#include "server/projects.h"

#define CAPTURE_TARGETS_MAX 256
#define CAPTURES_AT_ONCE 8
#define CAPTURES_KEPT 100
#define CAPTURE_ID_N 16
#define CAPTURE_MS_MIN 100
#define CAPTURE_MS_MAX 600000
#define CAPTURE_JSON_MAX ((size_t)32 << 20)

struct captures;

struct captures_config {
    const char *const *targets;    /* --target; NULL-terminated */
    const struct project *project; /* whose runs they become; NULL: there is no default one */
    /* Something has, or also the list of runs; must not call back. */
    void (*changed)(void *ctx, bool runs);
    void *ctx;
};

/* XP_BAD_REQUEST with a sentence when targets are malformed. */
enum xp_status captures_new(const struct captures_config *config, struct captures **out,
                            struct xp_error *err);
void captures_stop(struct captures *c);
void captures_free(struct captures *c); /* NULL is fine */

/* NULL: captures can be made for that project; else a sentence that says why not. */
const char *captures_reason(const struct captures *c, const struct project *project);
bool captures_have_targets(const struct captures *c);

/* Another number whenever anything has changed; unlike those of another process. */
uint64_t captures_version(const struct captures *c);

struct capture_wish {
    const char *const *targets; /* names */
    size_t n;
    const char *run; /* NULL: by the time */
    uint32_t duration_ms, delay_ms;
    struct target_levels levels;
    const struct target_option *options;
    size_t n_options;
    const char *by; /* NULL: nobody has a name here */
};

/* The answers' JSON goes to j; docs/api.md. */
void captures_write(struct captures *c, struct xp_json *j);
enum xp_status captures_write_one(struct captures *c, struct xp_span id, struct xp_json *j,
                                  struct xp_error *err);
/* XP_CONFLICT: a target is taken, or the run has a profile of it; XP_NOT_FOUND: no such target;
 * XP_BUSY: too many at once. id: of the new one. */
enum xp_status captures_begin(struct captures *c, const struct capture_wish *wish,
                              char id[CAPTURE_ID_N + 1], struct xp_error *err);
/* Of targets, or of all that profile continuously if there are none. One that is under way and has
 * all of them is the answer: a snapshot takes with it what there was. */
enum xp_status captures_snapshot(struct captures *c, const struct capture_wish *wish,
                                 char id[CAPTURE_ID_N + 1], struct xp_error *err);
/* "ID into RUN: worker-0, worker-1", for people; cut to the room there is. */
void captures_name(struct captures *c, struct xp_span id, char *text, size_t n);
/* Ends it early; what was recorded is kept unless drop. Of one that is over: nothing. */
enum xp_status captures_end(struct captures *c, struct xp_span id, bool drop, struct xp_error *err);

/* Called from another thread, where continuous profiling was changed: each for every target (why
 * NULL: it has done so), then done with the answer's JSON. Of what is refused, neither is. */
struct captures_heard {
    void (*each)(void *ctx, bool on, const char *target, const char *why);
    void (*done)(void *ctx, struct xp_buf *json);
    void *ctx;
};

/* Starts or stops continuous profiling of targets. Only targets and n, levels.device and by of the
 * wish count. */
enum xp_status captures_continuous(struct captures *c, const struct capture_wish *wish, bool on,
                                   const struct captures_heard *heard, struct xp_error *err);

struct captures_stats {
    uint64_t captures[OUTCOME_COUNT], targets[OUTCOME_COUNT];
    uint64_t running, continuous, bytes;
};
void captures_stats(struct captures *c, struct captures_stats *st);

#endif
