/* server/linkstore.h - the records of share links, and which of them are revoked.
 *
 * Below one place that is ours to write, a directory or a bucket (--state):
 *
 *     links/<project>/<run>/<id>                one link: JSON; never the token
 *     revoked/<when it expires>-<id>            one link is revoked
 *     revoked-runs/<project>/<run>/<seconds>    all links of the run made until then are
 *
 * with names percent-encoded, or, where that is too long, as "=" and their SHA-256. A link of a
 * joined run (runs.h) lies below that and below each part: it is listed with the links of a part,
 * and ends when they are revoked. All are only ever created, so that any number of processes may
 * write.
 * Revocations are in the names: a list tells them. Each process lists them every so often
 * (LINKSTORE_LOOK_MS) and knows its own at once; one that could not for LINKSTORE_STALE_S seconds
 * trusts no link until it can.
 *
 * Order      linkstore_open -> the rest from any thread -> linkstore_close.
 * Threads    linkstore_judge never blocks on the store; everything else does: on workers.
 * Limits     LINKSTORE_LIST_MAX links are a page; LINKSTORE_REVOKED_MAX revocations are
 *            kept, and above that no link is trusted (old ones are to be deleted by age).
 */
#ifndef SERVER_LINKSTORE_H
#define SERVER_LINKSTORE_H

#include "lib/auth/link.h"
#include "lib/objstore/objstore.h"

#define LINKSTORE_LOOK_MS 10000
#define LINKSTORE_STALE_S 30
#define LINKSTORE_LIST_MAX 200
#define LINKSTORE_REVOKED_MAX 100000

struct linkstore;

/* bucket: for gs:// and s3://; may be NULL. Blocks: it looks what is revoked, and goes on when it
 * cannot. */
enum xp_status linkstore_open(const char *where, const struct xp_bucket_options *bucket,
                              uint32_t look_ms, struct linkstore **out, struct xp_error *err);
void linkstore_close(struct linkstore *ls); /* NULL is fine */

/* by: who_name of the maker. */
enum xp_status linkstore_add(struct linkstore *ls, const struct link_claims *c, const char *by,
                             struct xp_error *err);

struct link_record {
    struct link_claims claims;
    char by[320];
    bool revoked;
};

struct link_page {
    struct link_record *v;
    size_t n;
    char *next; /* where the next page begins; NULL at the end */
};

/* The links of a run and of those that are joined of it and others, or, with run NULL, of all runs
 * of the project, run by run; otherwise in no order. after: NULL, or the next of the page before.
 */
enum xp_status linkstore_list(struct linkstore *ls, const char *project, const char *run,
                              const char *after, struct link_page *page, struct xp_error *err);
void link_page_fini(struct link_page *page);
/* One of them, as linkstore_list has them; XP_NOT_FOUND. id: in hex. */
enum xp_status linkstore_get(struct linkstore *ls, const char *project, const char *run,
                             const char *id, struct link_record *r, struct xp_error *err);

/* Done again it is done still. */
enum xp_status linkstore_revoke(struct linkstore *ls, const struct link_claims *c,
                                struct xp_error *err);
enum xp_status linkstore_revoke_run(struct linkstore *ls, const char *project, const char *run,
                                    int64_t now_s, struct xp_error *err);

/* Looks what is revoked, now; it happens by itself. Blocks. */
void linkstore_look(struct linkstore *ls);

enum link_verdict { LINK_GOOD, LINK_REVOKED, LINK_UNSURE /* the store cannot be asked */ };
enum link_verdict linkstore_judge(struct linkstore *ls, const struct link_claims *c);

struct linkstore_stats {
    uint64_t revoked; /* links, and runs, of which that is known */
    double since_s;   /* since what is known was looked at; of none: since the start */
};
void linkstore_stats(struct linkstore *ls, struct linkstore_stats *out);

/* When a link of the run that is made now must say it was made, so that no revocation before is
 * about it: Unix seconds. */
int64_t linkstore_issue_time(struct linkstore *ls, const char *project, const char *run,
                             int64_t now_s);

#endif
