/* server/runfacts.h - figures of runs, for their list: device, step time, memory, findings, and the
 * like, kept from when a run was looked at.
 *
 * They come from the report run_facts. A run is looked at when somebody has its profile open (they
 * cost little then), and, by and by, when somebody looks at the list: the newest runs of the
 * project, one at a time, only while nobody waits for anything, only small ones, and in memory that
 * is free (shard_request.aside), so that no profile that somebody opened has to go. With a limit of
 * 0, and on a frontend, which has no memory of its own and whose shards do not know that nobody
 * waits, no run is looked at: there those are known whose report was made for somebody.
 *
 * Kept       RUNFACTS_MAX runs, those used last; by what the files are (run_id): a file that was
 *            written again makes another run of it. With `dir` also in the file run-facts.json of
 *            that directory, for the next process; nothing is ever written beside profiles.
 * Failures   A run that cannot be read is kept as such, with the sentence. What may pass (no room,
 *            a shard that is away, a file that may not be read) is tried again after a while; what
 *            is known of the other hosts meanwhile is in memory only. A report that was made for
 *            somebody, and that lacks no host, takes the place of either.
 * Order      runfacts_new -> runfacts_start -> others -> runfacts_stop -> no request is under way
 * -> runfacts_free. Threads    Any; runfacts_get and runfacts_opened never wait.
 */
#ifndef SERVER_RUNFACTS_H
#define SERVER_RUNFACTS_H

#include "lib/base/json_out.h"
#include "server/runs.h"

struct app;
struct project;
struct runfacts;

#define RUNFACTS_MAX 10000
#define RUNFACTS_FILE_MAX ((size_t)64 << 20)
#define RUNFACTS_TEXT_MAX 240 /* bytes of a text, or of a reason */

enum run_fact {
#define FACT(symbol, metric, type) FACT_##symbol,
#include "server/runfacts.def"
#undef FACT
    FACTS_N
};

struct run_fact_value {
    bool known;
    double number;
    char *text; /* of a text; else what is said beside the number, or why there is none; or NULL */
};

/* Never changes. */
struct run_facts {
    _Atomic int refs;
    struct run_fact_value v[FACTS_N];
    char *problem; /* the run cannot be read; or NULL */
    char *missing; /* hosts that cannot be, and why: a sentence; or NULL */
    uint32_t n_missing;
    bool passing; /* why one of them cannot be read may pass */
};

void run_facts_unref(const struct run_facts *f); /* NULL is fine */

struct runfacts_config {
    struct app *app;
    /* Bytes of a run's files that are read though nobody asked; 0: no run is looked at. */
    uint64_t limit;
    const char *dir; /* NULL: memory only; below no root of app->projects (NULL: none) */
};

/* XP_BAD_REQUEST and the like when dir cannot be used. */
enum xp_status runfacts_new(const struct runfacts_config *config, struct runfacts **out,
                            struct xp_error *err);
/* From here on runs are looked at: app->shard or upstream is there. */
void runfacts_start(struct runfacts *rf);
void runfacts_stop(struct runfacts *rf); /* nothing is begun any more; NULL is fine */
void runfacts_free(struct runfacts *rf);

/* What is known of the run, referenced; NULL: nothing. */
const struct run_facts *runfacts_get(struct runfacts *rf, const struct run *r);

/* Somebody has the run open, all of its hosts or some. */
void runfacts_opened(struct runfacts *rf, const struct project *p, const struct run *r, bool all);
/* The report run_facts of all of it was made for somebody. */
void runfacts_told(struct runfacts *rf, const struct run *r, struct xp_span body, bool gzip);
/* Somebody looks at the list of the project's runs. */
void runfacts_listed(struct runfacts *rf, const struct project *p);
/* Bytes of a run that is looked at by and by; 0: none are. */
uint64_t runfacts_limit(const struct runfacts *rf);

/* Counts up whenever something else is known. */
uint64_t runfacts_version(const struct runfacts *rf);

/* How the capture was begun: as the profile says, but "automatic" for a session that is called so.
 * NULL: not known. */
const char *run_capture_kind(const struct run *r, const struct run_facts *f);

/* An object, or null. Sentences with `secret` (NULL: there is none) in them are not told. */
void run_facts_write(struct xp_json *j, const struct run *r, const struct run_facts *f,
                     const char *secret);

/* --- the parts, also for tests --- */

/* Of a report's JSON; NULL: it is none. */
const struct run_facts *run_facts_parse(struct xp_span report);
const struct run_facts *run_facts_failed(const char *sentence);
void runfacts_put(struct runfacts *rf, const struct run *r,
                  const struct run_facts *f); /* takes f */
/* Reads and writes the file. */
void runfacts_load(struct runfacts *rf);
void runfacts_save(struct runfacts *rf);

#endif
