/* server/runs_int.h - what the files of the session index share.
 *
 *   runs_name.c    names: times, order, suffixes
 *   runs_folder.c  one folder read: what is in it, as a run
 *   runs_scan.c    stores walked: the list of runs
 *   runs_join.c    several runs as one
 *   runs_look.c    whether files can be read
 *   runs.c         the index: freshness, pages, lookup
 *   runs_query.c   the words of a search
 *   runs_order.c   pages in other orders
 *   runs_compat.c  XProf's view
 *
 * Memory for names and lists is small: running out of it ends the process.
 */
#ifndef SERVER_RUNS_INT_H
#define SERVER_RUNS_INT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/base/buf.h"
#include "server/runs.h"

#define RUNS_DEPTH_MAX 8
#define RUNS_FOLDER_ENTRIES_MAX 20000 /* read of one folder */
#define RUNS_FOLDERS_MAX 20000        /* read by one listing */
#define RUNS_MAX 200000               /* runs of one listing */
#define RUNS_EMPTY_MAX 50

/* Listings are reused until that long after they were begun, or twice as long as they took. */
#define RUNS_FRESH_NS UINT64_C(1000000000)
/* What is known of a bucket is good enough when looking again takes longer; for how long then. */
#define RUNS_PATIENCE_MS 2000
#define RUNS_AGAIN_NS UINT64_C(5000000000)
/* A run that is not there makes a new listing if the last is older than this. */
#define RUNS_MISS_NS UINT64_C(250000000)
/* Files not written to for that long are taken as they were listed, in lists. */
#define RUNS_SETTLED_MS 10000
/* The same for buckets, whose folders have no times: a run whose newest file is that old is looked
 * at again for lists after a while only. Each look is a call that costs money. */
#define RUNS_BUCKET_FRESH_NS UINT64_C(4000000000)
#define RUNS_BUCKET_SETTLED_MS 600000
#define RUNS_BUCKET_SETTLED_NS UINT64_C(300000000000)
/* Runs of a bucket whose names tell no time that one listing looks into; the next one goes on. */
#define RUNS_BUCKET_LOOKS_MAX 128
/* The same for a list that is ordered by what is in runs. */
#define RUNS_ORDER_LOOKS 1024
#define RUNS_ORDER_NS UINT64_C(2000000000) /* a slow disk is not waited for longer */
#define RUNS_AT_ONCE 64                    /* folders of a bucket asked for together */
#define RUNS_JOINED_KEPT 8

static inline void *must(void *p)
{
    XP_ASSERT(p != NULL);
    return p;
}

/* Room for one more of a list that grows at powers of two. */
#define RUNS_ROOM(list, n)                                                                         \
    do {                                                                                           \
        if (((n) & ((n)-1)) == 0)                                                                  \
            (list) = must(realloc((list), ((n) ? (n)*2 : 1) * sizeof *(list)));                    \
    } while (0)

/* --- names --- */

enum run_file { RUN_FILE_OTHER, RUN_FILE_PLAIN, RUN_FILE_PACKED };

/* What a file is by its name; *host_n: how much of it is the host's name. */
enum run_file run_file_of(const char *file, size_t *host_n);

/* --- one folder --- */

#define RUN_KINDS_MAX 8

/* What was seen of files that are no profiles. */
struct run_seen {
    size_t files, folders, links_out;
    size_t other; /* files of kinds that found no room below */
    struct {
        char suffix[16];
        size_t n;
    } kinds[RUN_KINDS_MAX];
    size_t n_kinds;
};

void run_seen_add(struct run_seen *to, const struct run_seen *s);
/* "3 files (2 .json, 1 .txt) and 1 folder" */
void run_seen_text(const struct run_seen *s, struct xp_buf *b);

struct run_sub {
    char *name; /* without '/' */
    int64_t mtime_ms;
    bool link;
};

struct run_folder {
    struct run_host *hosts;
    size_t n_hosts;
    struct run_sub *subs;
    size_t n_subs;
    struct run_seen seen;
    bool cut;
    struct xp_error error; /* status XP_OK: the folder was read */
};

/* Never fails: a folder that cannot be read says so in `error`. */
void run_folder_read(struct xp_store *s, const char *prefix, struct run_folder *f);
/* Several at once: of a bucket, as many calls at a time as it bears. */
void run_folders_read(struct xp_store *s, const char *const *prefixes, size_t n,
                      struct run_folder *f);
void run_folder_fini(struct run_folder *f);

static inline bool run_folder_has_profiles(const struct run_folder *f)
{
    return f->n_hosts != 0;
}

/* A run and what only the index knows of it. */
struct run_box {
    struct run run; /* first */
    _Atomic int refs;
    struct run_seen seen;
    int64_t newest_ms;    /* newest file of a host */
    bool leaf;            /* no folders in it */
    bool cut;             /* the listing of the folder was */
    char **_Atomic looks; /* NULL: nobody looked */
    _Atomic uint64_t id;  /* run_id's; 0: not known yet */
};

/* Moves the folder's hosts into a new run with one reference. */
struct run_box *run_box_new(struct xp_store *s, const char *prefix, const char *name,
                            struct run_folder *f);

void run_look_fini(struct run_box *box);

/* --- several as one --- */

enum xp_status run_join_get(struct run_index *ri, struct xp_span name, const struct run **out,
                            struct xp_error *err);
void run_page_find_joins(struct run_page *page);

/* What was made of parts that are still what is known of them; not referenced. Index locked. */
const struct run *run_join_known(struct run_index *ri, struct xp_span name);
void run_join_drop_all(struct run_index *ri);

/* --- a listing --- */

struct run_entry {
    char *name, *prefix;
    struct xp_store *store;
    uint32_t store_no;
    bool plugin; /* below plugins/profile: XProf lists it */
    bool hidden; /* starts with '.': XProf lists it, we do not */
    int64_t dir_mtime_ms;
    int64_t captured_ms;
    /* Of the index's lock: */
    struct run_box *box;          /* what was in it, NULL: not looked yet */
    bool filling;                 /* somebody looks */
    uint64_t filled_ns, again_ns; /* again: not before, as the bucket did not answer */
    int64_t filled_wall_ms;
};

struct run_listing {
    _Atomic int refs;
    struct run_entry *entries; /* newest first, then by name */
    size_t n;
    uint32_t *by_name;
    uint32_t *by_prefix; /* (store, prefix) */
    struct run_seen seen;
    struct xp_error error; /* of the last store that could not be read */
    bool too_deep, cut_folders, cut_entries;
    uint64_t made_ns, took_ns;
};

struct run_joined {
    const struct run *run; /* NULL: a free place */
    const struct run **parts;
    size_t n;
};

struct run_index {
    struct xp_store **stores;
    size_t n_stores;
    pthread_mutex_t lock;
    pthread_cond_t listed;
    struct run_listing *now;
    bool listing;
    struct run_joined joined[RUNS_JOINED_KEPT]; /* made lately */
    size_t next_joined;
};

/* Walks the stores; what `old` (may be NULL) knows of folders that did not change is reused. */
struct run_listing *run_scan(struct run_index *ri, const struct run_listing *old);
void run_listing_unref(struct run_listing *l); /* NULL is fine */

struct run_entry *run_listing_by_name(const struct run_listing *l, struct xp_span name);
struct run_entry *run_listing_by_prefix(const struct run_listing *l, uint32_t store_no,
                                        const char *prefix);

/* True when what the entry knows holds for lists: nothing in it was written to lately. Index
 * locked. */
bool run_entry_settled(const struct run_entry *e);

/* --- the index --- */

/* The listing, made anew when it is older than usual. */
struct run_listing *run_index_listing(struct run_index *ri);
/* One that was made after the caller began to look, within RUNS_MISS_NS. */
struct run_listing *run_index_listing_after_miss(struct run_index *ri);

/* What is in the entry, a reference; read again when older than a second, for lists only if its
 * files are young as well. */
struct run_box *run_entry_box(struct run_index *ri, struct run_entry *e, bool for_list);

/* Of a bucket: reads those of the entries, up to RUNS_AT_ONCE, that run_entry_box would read, all
 * together. */
void run_entries_refresh(struct run_index *ri, struct run_entry *const *entries, size_t n);

/* run_index_known of one that is not joined; not referenced. Index locked, and listed just now. */
const struct run *run_known(struct run_index *ri, struct xp_span name);

/* Reads entries of one store, marked as being filled, several at once. */
void run_entries_fill(struct run_index *ri, struct xp_store *store, struct run_entry *const *look,
                      size_t n);
/* Whether what is known of the entry will do. Index locked. */
bool run_entry_will_do(const struct run_entry *e, bool for_list);

/* What a page says beside its runs: what was cut, and why there is none. */
void run_page_tell(struct run_index *ri, struct run_listing *l, const char *q, bool first,
                   struct run_page *page);

/* Makes what is in `f`, which was read at that time, what the entry knows. A bucket that did not
 * answer does not make it forget. */
void run_entry_take(struct run_index *ri, struct run_entry *e, struct run_folder *f, uint64_t ns,
                    int64_t wall_ms);

char *run_span_dup(struct xp_span s);

#endif
