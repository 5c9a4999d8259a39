/* lib/objstore/bucket_int.h - what the files of the bucket store share.
 *
 *   bucket.c        opening; list, stat, put: small calls, made and repeated on the caller's thread
 *   bucket_read.c   readers: pieces of an object, fetched ahead
 *   bucket_ahead.c  which pieces: streams, plans
 *   bucket_url.c    gs:// and s3:// addresses, percent encoding, times
 *   gcs.c, s3.c     how each kind of store is asked, and what its answers say
 *   gcs_auth.c      tokens         sigv4.c  signatures
 *
 * An "ask" is one request as it goes out; it is made anew for each attempt, since tokens and
 * signatures age.
 */
#ifndef XP_OBJSTORE_BUCKET_INT_H
#define XP_OBJSTORE_BUCKET_INT_H

#include <pthread.h>

#include "lib/net/client.h"
#include "lib/objstore/objstore_int.h"
#include "lib/objstore/retry.h"

#define ASK_HEADERS 12

struct ask {
    const char *method;
    char *url;
    char *headers[ASK_HEADERS + 1];
    size_t n_headers;
    struct xp_span body;
    char *own_body; /* freed with the ask */
    bool failed;    /* memory was short */
};

void ask_header(struct ask *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ask_fini(struct ask *a);

enum bucket_op { BUCKET_LIST, BUCKET_STAT, BUCKET_READ, BUCKET_PUT };

struct bucket;

struct list_ask {
    const char *prefix; /* whole: with the root */
    bool delimiter;
    const char *token; /* of the store's own; may be NULL */
    size_t max;
};

struct bucket_kind {
    const char *scheme; /* "gs" */
    /* Finds endpoint and credentials; asks nobody. */
    enum xp_status (*open)(struct bucket *b, const struct xp_bucket_options *o,
                           struct xp_error *err);
    void (*free)(struct bucket *b); /* what is own, which may be NULL */
    enum xp_status (*list)(struct bucket *b, const struct list_ask *l, struct ask *a,
                           struct xp_error *err);
    /* Fills page, keys without the root; next is the store's own token. */
    enum xp_status (*list_answer)(struct bucket *b, const struct list_ask *l, struct xp_span body,
                                  struct xp_store_page *page, struct xp_error *err);
    enum xp_status (*stat)(struct bucket *b, const char *name, struct ask *a, struct xp_error *err);
    enum xp_status (*stat_answer)(struct bucket *b, const struct net_reply *reply,
                                  struct xp_object *out, struct xp_error *err);
    /* Bytes [from, to); generation 0: whatever is there. */
    enum xp_status (*read)(struct bucket *b, const char *name, uint64_t generation, uint64_t from,
                           uint64_t to, struct ask *a, struct xp_error *err);
    /* Of a running answer: the generation it is of, 0 when it does not say. */
    uint64_t (*read_generation)(struct net_call *call);
    enum xp_status (*put)(struct bucket *b, const char *key, struct xp_span body,
                          uint64_t if_generation, uint64_t *generation, struct xp_error *err);
    /* The right that a refused call lacked. */
    const char *(*permission)(enum bucket_op op);
    /* After a 401: true when the next attempt will carry other credentials. */
    bool (*refresh)(struct bucket *b);
};

extern const struct bucket_kind gcs_kind, s3_kind;

struct bucket {
    struct xp_store base;
    const struct bucket_kind *kind;
    void *own; /* the kind's: struct gcs_auth, struct s3_keys */
    struct net_client *net;
    char *bucket;
    char *root;     /* "" or ends in '/' */
    char *endpoint; /* "https://storage.googleapis.com", no '/' at the end */
    bool anonymous, path_style, writable;
    struct retry_budget retries;
    atomic_bool away;       /* the last call that ended had failed as often as it may */
    _Atomic uint64_t calls; /* also feeds the jitter */

    /* Readers: bucket_read.c */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct bucket_reader *readers;
    size_t memory_max, memory; /* bytes of pieces */
    int running;               /* calls for pieces */
    /* What the store was seen to do, smoothed: what a gap may cost. */
    uint64_t latency_ns, bytes_per_s;
};

/* One small call, repeated as long as it may pass. make fills an ask for each attempt. On XP_OK
 * the code is 2xx, or one of `also` (0: none). reply is to be finished by the caller. */
struct bucket_call {
    enum bucket_op op;
    const char *key; /* of the object or the prefix, for the sentence */
    enum xp_status (*make)(struct bucket *b, void *ctx, struct ask *a, struct xp_error *err);
    void *ctx;
    size_t max;
    int also;
};
enum xp_status bucket_call(struct bucket *b, const struct bucket_call *c, struct net_reply *reply,
                           struct xp_error *err);

/* One attempt only. */
enum xp_status bucket_call_once(struct bucket *b, const struct bucket_call *c,
                                struct net_reply *reply, struct xp_error *err);
/* Sleeps as before attempt n + 1 of an upload. */
void bucket_pause(struct bucket *b, int n);

/* Says what an HTTP code means for this call. body: what the store said. */
enum xp_status bucket_fail(struct bucket *b, enum bucket_op op, const char *key, int code,
                           struct xp_span body, struct xp_error *err);
/* The same for a call without an answer. */
enum xp_status bucket_fail_net(struct bucket *b, enum bucket_op op, const char *key,
                               enum xp_status status, const char *why, struct xp_error *err);

/* root + key, malloc'd */
char *bucket_name_of(const struct bucket *b, const char *key);
uint64_t bucket_random(struct bucket *b);

/* Adds an entry of a listing under its whole name; names that are no keys are left out. False
 * when memory is out. */
bool bucket_page_add(const struct bucket *b, const char *prefix, const char *name,
                     const struct xp_object *what, struct xp_store_page *page);

/* --- bucket_url.c --- */

struct bucket_url {
    char scheme[4];
    char *bucket, *root;
};
bool bucket_is_url(const char *text);
enum xp_status bucket_url_parse(const char *text, struct bucket_url *out, struct xp_error *err);
void bucket_url_fini(struct bucket_url *u);
/* http(s)://host[:port][/path]: a copy without '/' at its end. */
enum xp_status bucket_endpoint_parse(const char *text, const char *flag, char **out,
                                     struct xp_error *err);
/* https, or http to this machine: where secrets may be sent. */
bool bucket_url_is_private(const char *url);
/* Percent-encodes all but unreserved characters; '/' is kept when slashes says so. */
void bucket_encode(struct xp_buf *b, const char *s, bool slashes);
/* RFC 3339 -> ms since 1970; 0 if it is none. */
int64_t bucket_time_ms(const char *text);
/* Decimal digits only. */
bool bucket_u64(const char *text, uint64_t *v);

/* --- bucket_read.c --- */

enum xp_status bucket_open(struct xp_store *s, const char *key, uint64_t generation,
                           struct xp_reader **out, struct xp_error *err);
enum xp_status bucket_open_sized(struct xp_store *s, const char *key, uint64_t generation,
                                 uint64_t size, struct xp_reader **out, struct xp_error *err);
void bucket_readers_end(struct bucket *b); /* waits for calls of closed readers */

#endif
