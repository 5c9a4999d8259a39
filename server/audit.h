/* server/audit.h - who did what: one JSON object a line, to a file or to stderr.
 *
 *     {"time":"2026-11-30T07:00:00.123Z","what":"sign_in","who":"user:ann@example.com",
 *      "project":"vision","outcome":"ok","detail":"...","address":"192.0.2.7"}
 *
 * What is told: signing in and out, refusals of a right, changes of the project table, captures,
 * share links made, opened, revoked, uploads made and removed. Never in it: tokens, cookies, codes,
 * keys.
 *
 * Threads    Any. A line is one write; a file that cannot be written to is said once in the log.
 */
#ifndef SERVER_AUDIT_H
#define SERVER_AUDIT_H

#include "lib/base/status.h"

struct audit;

struct audit_event {
    const char *what;    /* "link_made": a word that stays what it is */
    const char *who;     /* who_name */
    const char *project; /* NULL: of none */
    const char *outcome; /* "ok", "refused", "failed" */
    const char *detail;  /* a few words or an id; NULL */
    const char *address; /* NULL or "": not known */
};

/* path NULL: stderr. XP_IO when the file cannot be opened for appending. */
enum xp_status audit_open(const char *path, struct audit **out, struct xp_error *err);
void audit_close(struct audit *a); /* NULL is fine */

/* a NULL: nothing is told. */
void audit(struct audit *a, const struct audit_event *e);

#endif
