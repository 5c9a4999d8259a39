/* server/runs.h - the session index: stores into runs, runs into hosts.
 *
 * A run is one folder of profiles, a host is one profile in it. Found are
 *
 *     DIR/plugins/profile/<run>/<host>.xplane.pb      run "<run>"
 *     DIR/<exp>/plugins/profile/<run>/...             run "<exp>/<run>"
 *     DIR/<run>/<host>.xplane.pb                      run "<run>", at any depth up to 8
 *     DIR/<host>.xplane.pb                            one run, named as DIR's last part
 *     a store of one file                             one run, named as the file
 *
 * each also as <host>.xplane.pb.gz or, as records, <host>.xplane.riegeli (the plain file wins when
 * several are there). Names that begin with '.' are passed over, links to folders
 * are runs but are not searched for more. A second run of a name already taken gets "./" before
 * it (same store) or "@2" after it (second store).
 *
 * Joined    Captures of one moment that landed in several runs are one run, too, whose name is
 * theirs with RUN_JOIN between them: no run's own name holds that. Each has to hold a profile, and
 * their hosts have to differ. No list shows it; a page says which of its runs look like it.
 *
 * Two views:  ours, with every layout, newest first, only runs that hold something; and the
 * compatible one, with just what XProf 2.24.2 lists: folders below plugins/profile, also empty
 * ones, or what session_path / run_path name.
 *
 * Freshness  A listing is at most a second old (longer only when listing takes more than half a
 *            second: twice what it took). One caller lists, those who come meanwhile get the last
 *            one. What is in a run is listed when the run is first needed, and again after a
 *            second as long as its files are young; run_index_get and _compat_get answer from a
 *            listing of the run's own folder that is at most a second old.
 * Limits     Folders and entries read by one listing are bounded; past that a page says `cut`.
 * Ownership  struct run is shared and never changes: run_unref what you were given. Pages and
 *            name lists own copies and references: _fini. Stores outlive the index and its runs.
 * Names      Raw bytes of file names without NUL: not always UTF-8, maybe with quotes, HTML or
 *            newlines in them. Whoever writes them out escapes them.
 * Errors     A status and a sentence; a path is named as the caller or the command line gave it.
 * Threads    Any number at once. Every call may block: on workers, never on a loop.
 */
#ifndef SERVER_RUNS_H
#define SERVER_RUNS_H

#include "lib/objstore/objstore.h"

struct run_host {
    char *name; /* the file name without suffixes */
    char *key;  /* in run->store */
    uint64_t size, generation;
    int64_t mtime_ms;
    bool gz; /* packed, by gzip or as records: its first bytes tell */
};

struct run {
    char *name;
    struct xp_store *store;
    char *prefix;           /* its folder in store: "" or ends in '/'; "" of a joined one */
    int64_t captured_ms;    /* wall clock; 0: unknown (an empty run without a time in its name) */
    bool captured_by_name;  /* taken from the name (read as local time), else the newest file's */
    uint64_t bytes;         /* of all hosts' files */
    struct run_host *hosts; /* natural order: worker-2 before worker-10 */
    size_t n_hosts;
    size_t *by_name; /* indices of hosts in byte order, XProf's order */
    bool unreadable; /* the folder could not be read: note says why */
    char *note; /* why n_hosts is 0, or what else is odd ("listing cut at ..."); NULL: nothing */
};

const struct run *run_ref(const struct run *r);
void run_unref(const struct run *r); /* NULL is fine */

/* The host of that name; NULL when there is none. */
const struct run_host *run_host_find(const struct run *r, struct xp_span name);

/* Of each of run->hosts why its file cannot be read or is no profile, as its first bytes tell;
 * NULL: nothing speaks against it. Files of buckets are not asked for, only their sizes are judged.
 * The run's. May block, but the first time only: run_is_looked_at. */
const char *const *run_look(const struct run *r);
bool run_is_looked_at(const struct run *r);
/* How many of them cannot, as far as that was looked at; *first (may be NULL): one of these. */
size_t run_unreadable_hosts(const struct run *r, const struct run_host **first, const char **why);

/* A number that is another one when the run's files are others, the same in the next process. */
uint64_t run_id(const struct run *r);

struct run_index;

/* Lists nothing yet. NULL only without memory. */
struct run_index *run_index_new(struct xp_store *const *stores, size_t n);
void run_index_free(struct run_index *ri); /* NULL is fine */

/* A run is there that was not: the next who looks lists anew. Any thread, does not wait. */
void run_index_poke(struct run_index *ri);

/* --- our view --- */

#define RUN_JOIN "//"
#define RUN_JOIN_MAX 64
#define RUN_JOIN_MS 10000 /* between the first and the last of one moment */

bool run_is_joined(struct xp_span name);
/* Of the same runs, in whatever order: A//B and B//A. */
bool run_same_name(struct xp_span a, struct xp_span b);
/* Puts the parts of a joined one in the order of their bytes, in place. */
void run_canonical_name(char *name);
/* Cuts the first part off the name, the whole of one that is not joined; rest->p is NULL after the
 * last. */
struct xp_span run_next_part(struct xp_span *rest);

struct run_join {
    char *name;
    size_t n_hosts;
    int64_t span_ms; /* from the first to the last */
};

struct run_page {
    const struct run **runs; /* newest first; each holds at least one host */
    size_t n;
    char *next;       /* token of the next page, or NULL; text that is safe in a URL */
    size_t total;     /* runs that match, as far as is known */
    bool total_exact; /* false: folders counted in total that were not looked into may be empty */
    size_t looked;    /* of these, those that were looked into */
    const struct run **empty; /* first page: up to 50 runs found to hold nothing, note says why */
    size_t n_empty;
    struct run_join *joins; /* runs with times in their names that may be of one moment */
    size_t n_joins;
    char *cut; /* a sentence when the listing stopped at a limit, else NULL */
    /* When there is nothing to show at all (n is 0 on the first page): the locations that were
     * read, what was found there, what is expected. Else NULL. */
    char *read, *found, *expected;
    const char *reason; /* for programs: docs/api.md */
};

#define RUN_PAGE_MAX 1000

/* Runs whose name holds q (ASCII letters of either case are one; empty: all). token: empty, or
 * `next` of a page of the same q. A token stays good when runs come and go: nothing is left out.
 * XP_BAD_REQUEST for a token that is none and for limit outside 1..RUN_PAGE_MAX. */
enum xp_status run_index_list(struct run_index *ri, struct xp_span q, struct xp_span token,
                              size_t limit, struct run_page *page, struct xp_error *err);

/* The same in any order, and by more than names: runs_query.h has the words of q. In another order
 * than by time all runs are looked into; of buckets RUNS_ORDER_LOOKS of those that are not known
 * yet in one call, so that one says in `looked` < total how many stand where they belong: the
 * others come last. */
struct runfacts;
struct run_query {
    struct xp_span q, token, sort; /* sort: a column, or "-column"; empty: newest first */
    size_t limit;
    struct runfacts *facts; /* NULL: none are known */
};
enum xp_status run_index_query(struct run_index *ri, const struct run_query *query,
                               struct run_page *page, struct xp_error *err);
void run_page_fini(struct run_page *page);

/* The run of that name, as it is now; also an empty one, or a joined one. XP_NOT_FOUND when there
 * is none or a part of a joined one is empty, XP_BAD_REQUEST for runs that do not fit together. */
enum xp_status run_index_get(struct run_index *ri, struct xp_span name, const struct run **out,
                             struct xp_error *err);
/* The same from what is known, if that is as new as run_index_get would have it; NULL: it would
 * have to look. Never waits. */
const struct run *run_index_known(struct run_index *ri, struct xp_span name);

/* The run that a folder of a store is, as it is now, whatever is in it; of no index. Referenced. */
const struct run *run_read(struct xp_store *store, const char *prefix, const char *name);

/* --- XProf's view --- */

struct run_names {
    char **v;
    size_t n;
};
void run_names_fini(struct run_names *names);

/* The parameters of those names; empty: absent. session_path wins. */
struct run_scope {
    struct xp_span session_path, run_path;
};

/* What /runs lists, in its order. XP_DENIED when a path of the scope is not below a store's
 * root; a folder that is not there is an empty list. */
enum xp_status run_index_compat_list(struct run_index *ri, const struct run_scope *scope,
                                     struct run_names *names, struct xp_error *err);

/* The run of that name within the scope; without a scope, any run that run_index_get knows, too.
 * XP_NOT_FOUND: err's sentence is XProf's "Run X not found in run map: {...}" with a scope. */
enum xp_status run_index_compat_get(struct run_index *ri, const struct run_scope *scope,
                                    struct xp_span name, const struct run **out,
                                    struct xp_error *err);

/* What /hosts lists for the run and the tool `tag`, ALL_HOSTS included. */
enum xp_status run_compat_hosts(const struct run *r, struct xp_span tag, struct run_names *names,
                                struct xp_error *err);

/* --- bricks, also for tests --- */

/* A time such as 2024_01_31_12_00_00 within the last part of a run's name, as local time. */
bool run_time_from_name(const char *name, int64_t *ms);

/* Order by bytes, but runs of digits by their value; a total order. */
int run_natural_cmp(const char *a, const char *b);

#endif
